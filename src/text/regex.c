/* Regular expressions of tokenizer.json, by backtracking.
 *
 * The source is compiled to a program. A set of characters with a quantifier is one instruction, so that the usual
 * expressions need few branches. Branches that may still be tried are on a stack; their number and that of the steps
 * is bounded, because a search in a hostile file must end. */
#include "text/pattern.h"

#include "core/memory.h"
#include "text/classes.h"
#include "text/unicode.h"

#include <string.h>

typedef enum set_kind { SET_RANGE, SET_SPACE, SET_DIGIT, SET_WORD, SET_CATEGORY } set_kind;

typedef struct set_item {
    set_kind kind;
    bool negated;
    int32_t first, last; /* RANGE */
    char category[2];    /* CATEGORY; second 0: all of the first letter */
} set_item;

typedef enum op_kind {
    OP_SET,   /* a character of set `set`, min to max times */
    OP_SPLIT, /* tries `next`, then `other` */
    OP_JUMP,
    OP_LOOK, /* the program from `next` to OP_MATCH must (or must not) match here; goes on at `other` */
    OP_START,
    OP_END,
    OP_MATCH
} op_kind;

typedef struct op {
    op_kind kind;
    uint32_t set, n_items; /* SET: items set .. set + n_items - 1 */
    bool negated;          /* SET, LOOK */
    bool fold;             /* SET: letters of either case */
    bool lazy, possessive;
    uint32_t min, max;
    uint32_t next, other;
} op;

struct cleat_regex {
    op *ops;
    size_t n_ops, ops_capacity;
    set_item *items;
    size_t n_items, items_capacity;
};

enum { MAX_OPS = 1 << 14, DEEPEST = 32, LONGEST_CHAR = 4 };

/* --- parsing -------------------------------------------------------------------------------------------------- */

typedef struct parser {
    const char *source, *at;
    struct cleat_regex *regex;
    bool fold;
    int depth;
    cleat_status status;
    cleat_error *error;
} parser;

static void fail(parser *p, const char *what) {
    if (p->status != CLEAT_OK) return;
    p->status = cleat_fail(p->error, CLEAT_ERR_NOT_SUPPORTED, "the expression '%.200s': %s at character %zu", p->source,
                           what, (size_t)(p->at - p->source) + 1);
}

static uint32_t add_op(parser *p, op added) {
    struct cleat_regex *r = p->regex;
    if (p->status != CLEAT_OK) return 0;
    if (r->n_ops >= MAX_OPS) fail(p, "too long");
    if (p->status == CLEAT_OK) p->status = cleat_grow(&r->ops, r->n_ops, &r->ops_capacity, sizeof added, p->error);
    if (p->status != CLEAT_OK) return 0;
    r->ops[r->n_ops] = added;
    return (uint32_t)r->n_ops++;
}

static void add_item(parser *p, set_item added) {
    struct cleat_regex *r = p->regex;
    if (p->status == CLEAT_OK)
        p->status = cleat_grow(&r->items, r->n_items, &r->items_capacity, sizeof added, p->error);
    if (p->status == CLEAT_OK) r->items[r->n_items++] = added;
}

static int32_t read_char(parser *p) {
    int32_t character = 0;
    size_t length = cleat_utf8_decode(p->at, strnlen(p->at, LONGEST_CHAR), &character);
    if (!length) fail(p, "it ends too early");
    p->at += length;
    return character;
}

/* \p{L}, \p{Lu}, \pL */
static void read_category(parser *p, bool negated) {
    set_item item = {.kind = SET_CATEGORY, .negated = negated};
    bool braces = *p->at == '{';
    if (braces) ++p->at;
    if (braces && *p->at == '^') {
        item.negated = !item.negated;
        ++p->at;
    }
    if (!*p->at || !strchr("LMNPSZC", *p->at)) {
        fail(p, "unknown character property");
        return;
    }
    item.category[0] = *p->at++;
    if (braces && *p->at >= 'a' && *p->at <= 'z') item.category[1] = *p->at++;
    if (braces && *p->at++ != '}') fail(p, "unknown character property");
    add_item(p, item);
}

/* \x{2581}, \x41, \u2581 */
static int32_t read_hex(parser *p, int digits) {
    int32_t value = 0;
    bool braces = *p->at == '{';
    if (braces) ++p->at;
    for (int i = 0; braces ? *p->at != '}' : i < digits; ++i, ++p->at) {
        const char *digit = *p->at ? strchr("0123456789abcdef0000000000ABCDEF", *p->at) : NULL;
        if (!digit || value > 0xFFFF) {
            fail(p, "a wrong character code");
            return 0;
        }
        int number = (int)(digit - "0123456789abcdef0000000000ABCDEF");
        value = value * 16 + (*p->at <= '9' ? *p->at - '0' : number % 16);
    }
    if (braces) ++p->at;
    return value;
}

/* The part after a backslash. Returns true and sets *character if it stands for one character; else adds an item. */
static bool read_escape(parser *p, int32_t *character) {
    static const char controls[] = "nrtfv", meanings[] = "\n\r\t\f\v";
    const char c = *p->at;
    const char *control = c ? strchr(controls, c) : NULL;
    set_item item = {.negated = c == 'S' || c == 'D' || c == 'W'};
    ++p->at;
    switch (c) {
    case 's':
    case 'S':
        item.kind = SET_SPACE;
        break;
    case 'd':
    case 'D':
        item.kind = SET_DIGIT;
        break;
    case 'w':
    case 'W':
        item.kind = SET_WORD;
        break;
    case 'p':
    case 'P':
        read_category(p, c == 'P');
        return false;
    case 'x':
        *character = read_hex(p, 2);
        return true;
    case 'u':
        *character = read_hex(p, 4);
        return true;
    default:
        *character = control ? meanings[control - controls] : c;
        if (!control && ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == 0))
            fail(p, "an escape that is not known");
        return true;
    }
    add_item(p, item);
    return false;
}

static void add_range(parser *p, int32_t first, int32_t last) {
    if (last < first) fail(p, "a range that ends before it begins");
    add_item(p, (set_item){.kind = SET_RANGE, .first = first, .last = last});
}

/* The characters between brackets, after the first one. */
static void read_set(parser *p, op *set) {
    set->negated = *p->at == '^';
    if (set->negated) ++p->at;
    for (bool first = true; p->status == CLEAT_OK && (first || *p->at != ']'); first = false) {
        int32_t low = 0, high;
        if (*p->at == '[' || (p->at[0] == '&' && p->at[1] == '&')) fail(p, "sets within sets");
        if (*p->at == '\\') {
            ++p->at;
            if (!read_escape(p, &low)) continue;
        } else {
            low = read_char(p);
        }
        high = low;
        if (p->at[0] == '-' && p->at[1] != ']' && p->at[1]) {
            ++p->at;
            bool escape = *p->at == '\\';
            if (escape) ++p->at;
            if (!escape)
                high = read_char(p);
            else if (!read_escape(p, &high))
                fail(p, "a class as the end of a range");
        }
        add_range(p, low, high);
    }
    if (p->status == CLEAT_OK) ++p->at;
}

static void parse_alternatives(parser *p);

/* Reads {m}, {m,}, {,n}, {m,n}; returns false if it is none, which then stands for itself. */
static bool read_counts(parser *p, uint32_t *min, uint32_t *max) {
    const char *at = p->at + 1;
    uint32_t counts[2] = {0, UINT32_MAX};
    bool any[2] = {false, false}, comma = false;
    for (int i = 0; i < 2; ++i) {
        uint32_t value = 0;
        for (; *at >= '0' && *at <= '9' && value < 100000; ++at, any[i] = true)
            value = value * 10 + (uint32_t)(*at - '0');
        if (any[i]) counts[i] = value;
        if (i == 0 && *at == ',') {
            comma = true;
            ++at;
        }
    }
    if (*at != '}' || (!any[0] && !any[1])) return false;
    p->at = at + 1;
    *min = counts[0];
    *max = comma ? counts[1] : counts[0];
    if (*max < *min) fail(p, "a quantifier whose limits are in the wrong order");
    return true;
}

/* A quantifier, if there is one. */
static bool read_quantifier(parser *p, op *q) {
    const char c = *p->at;
    q->min = q->max = 1;
    if (c == '*' || c == '+' || c == '?') {
        q->min = c == '+';
        q->max = c == '?' ? 1 : UINT32_MAX;
        ++p->at;
    } else if (c != '{' || !read_counts(p, &q->min, &q->max)) {
        return false;
    }
    if (*p->at == '?' && q->max != UINT32_MAX && q->max > q->min + 1) fail(p, "a lazy quantifier with a limit");
    if (*p->at == '?') q->lazy = true;
    if (*p->at == '+' && c == '{') fail(p, "a quantifier after another");
    if (*p->at == '+') q->possessive = true;
    if (q->lazy || q->possessive) ++p->at;
    return true;
}

/* Repeats a group, the ops from `first` on, as a quantifier says: `min` copies, and after them optional ones or a
 * loop. */
static void quantify_group(parser *p, uint32_t first, const op *q) {
    struct cleat_regex *r = p->regex;
    const uint32_t end = (uint32_t)r->n_ops;
    if (q->possessive) fail(p, "a possessive group");
    if (q->max != UINT32_MAX && q->max > 64) fail(p, "a group that is repeated more than 64 times");
    if (q->min > 64) fail(p, "a group that is repeated more than 64 times");
    if (p->status != CLEAT_OK || end == first) return; /* an empty group is the same any number of times */
    op *saved = cleat_alloc(end - first + 1, sizeof *saved);
    if (!saved) {
        p->status = cleat_fail(p->error, CLEAT_ERR_MEMORY, "no memory for an expression");
        return;
    }
    memcpy(saved, r->ops + first, (end - first) * sizeof *saved);
    r->n_ops = first;
    const uint32_t copies = q->max == UINT32_MAX ? q->min + 1 : q->max;
    uint32_t splits[65], n_splits = 0;
    for (uint32_t copy = 0; copy < copies && p->status == CLEAT_OK; ++copy) {
        bool optional = copy >= q->min;
        uint32_t start = (uint32_t)r->n_ops;
        if (optional) splits[n_splits++] = add_op(p, (op){.kind = OP_SPLIT, .lazy = q->lazy});
        uint32_t body = (uint32_t)r->n_ops;
        for (uint32_t i = 0; i < end - first && p->status == CLEAT_OK; ++i) {
            op moved = saved[i];
            moved.next += body - first;
            moved.other += body - first;
            add_op(p, moved);
        }
        if (optional && q->max == UINT32_MAX) add_op(p, (op){.kind = OP_JUMP, .next = start});
        if (optional && p->status == CLEAT_OK) r->ops[splits[n_splits - 1]].next = body;
    }
    for (uint32_t i = 0; i < n_splits && p->status == CLEAT_OK; ++i) r->ops[splits[i]].other = (uint32_t)r->n_ops;
    cleat_free(saved);
}

/* A group, after its bracket. */
static void parse_group(parser *p) {
    const bool fold = p->fold;
    const uint32_t first = (uint32_t)p->regex->n_ops;
    bool look = false, negated = false;
    op q = {0};
    if (++p->depth > DEEPEST) fail(p, "too deep");
    if (strncmp(p->at, "?:", 2) == 0) {
        p->at += 2;
    } else if (strncmp(p->at, "?i:", 3) == 0) {
        p->fold = true;
        p->at += 3;
    } else if (strncmp(p->at, "?!", 2) == 0 || strncmp(p->at, "?=", 2) == 0) {
        look = true;
        negated = p->at[1] == '!';
        p->at += 2;
    } else if (*p->at == '?') {
        fail(p, "a group of a kind that is not known");
    }
    uint32_t looks = look ? add_op(p, (op){.kind = OP_LOOK, .negated = negated}) : 0;
    if (p->status == CLEAT_OK) parse_alternatives(p);
    if (p->status == CLEAT_OK && *p->at++ != ')') fail(p, "a group without its end");
    if (look) add_op(p, (op){.kind = OP_MATCH});
    if (look && p->status == CLEAT_OK) {
        p->regex->ops[looks].next = looks + 1;
        p->regex->ops[looks].other = (uint32_t)p->regex->n_ops;
    }
    p->fold = fold;
    --p->depth;
    if (p->status == CLEAT_OK && read_quantifier(p, &q)) quantify_group(p, first, &q);
}

/* One character, set, class or group, with its quantifier. */
static void parse_atom(parser *p) {
    struct cleat_regex *r = p->regex;
    op set = {.kind = OP_SET, .set = (uint32_t)r->n_items, .fold = p->fold};
    const char c = *p->at;
    int32_t character;
    if (c == '(') {
        ++p->at;
        parse_group(p);
        return;
    }
    if (c == '^' || c == '$') {
        ++p->at;
        add_op(p, (op){.kind = c == '^' ? OP_START : OP_END});
        return;
    }
    if (c == '[') {
        ++p->at;
        read_set(p, &set);
    } else if (c == '.') {
        ++p->at;
        set.negated = true;
        add_range(p, '\n', '\n');
    } else if (c == '\\') {
        ++p->at;
        if (read_escape(p, &character)) add_range(p, character, character);
    } else if (c == '*' || c == '+' || c == '?') {
        fail(p, "a quantifier of nothing");
    } else {
        character = read_char(p);
        add_range(p, character, character);
    }
    set.n_items = (uint32_t)r->n_items - set.set;
    if (p->status == CLEAT_OK) read_quantifier(p, &set);
    add_op(p, set);
}

static void parse_sequence(parser *p) {
    while (p->status == CLEAT_OK && *p->at && *p->at != '|' && *p->at != ')') parse_atom(p);
}

/* a|b|c: a split before each alternative but the last, and a jump to the end after it. */
static void parse_alternatives(parser *p) {
    struct cleat_regex *r = p->regex;
    uint32_t last_jump = UINT32_MAX;
    for (;;) {
        const uint32_t first = (uint32_t)r->n_ops;
        parse_sequence(p);
        if (p->status != CLEAT_OK || *p->at != '|') break;
        ++p->at;
        const uint32_t end = (uint32_t)r->n_ops;
        add_op(p, (op){.kind = OP_JUMP}); /* room for the split; the alternative moves up by one */
        if (p->status != CLEAT_OK) break;
        memmove(r->ops + first + 1, r->ops + first, (end - first) * sizeof *r->ops);
        for (uint32_t i = first + 1; i <= end; ++i) {
            ++r->ops[i].next;
            ++r->ops[i].other;
        }
        /* jumps to the end are chained by their target until it is known */
        uint32_t jump = add_op(p, (op){.kind = OP_JUMP, .next = last_jump});
        last_jump = jump;
        if (p->status == CLEAT_OK)
            r->ops[first] = (op){.kind = OP_SPLIT, .next = first + 1, .other = (uint32_t)r->n_ops};
    }
    while (p->status == CLEAT_OK && last_jump != UINT32_MAX) {
        uint32_t before = r->ops[last_jump].next;
        r->ops[last_jump].next = (uint32_t)r->n_ops;
        last_jump = before;
    }
}

cleat_status cleat_regex_compile(const char *source, struct cleat_regex **regex, cleat_error *error) {
    parser p = {.source = source, .at = source, .error = error};
    p.regex = cleat_alloc(1, sizeof *p.regex);
    if (!p.regex) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for an expression");
    parse_alternatives(&p);
    if (p.status == CLEAT_OK && *p.at) fail(&p, "a bracket that was not opened");
    add_op(&p, (op){.kind = OP_MATCH});
    if (p.status != CLEAT_OK) {
        cleat_regex_destroy(p.regex);
        return p.status;
    }
    *regex = p.regex;
    return CLEAT_OK;
}

void cleat_regex_destroy(struct cleat_regex *regex) {
    if (!regex) return;
    cleat_free(regex->ops);
    cleat_free(regex->items);
    cleat_free(regex);
}

/* --- searching ------------------------------------------------------------------------------------------------ */

typedef enum branch_kind { BRANCH_OTHER, BRANCH_FEWER, BRANCH_MORE } branch_kind;

/* A way that may still be tried: another instruction, a set with one character fewer, or one more. */
typedef struct branch {
    branch_kind kind;
    uint32_t pc;
    size_t at, low; /* FEWER: not below `low` */
} branch;

typedef struct search {
    const struct cleat_regex *regex;
    const char *text;
    size_t size;
    branch *stack; /* [n_stack] */
    size_t n_stack, capacity;
    size_t *steps; /* that may still be taken */
    bool failed;
} search;

static bool in_item(const set_item *item, int32_t c) {
    char category[2];
    switch (item->kind) {
    case SET_RANGE:
        return c >= item->first && c <= item->last;
    case SET_SPACE:
        return cleat_class_space(c);
    case SET_DIGIT:
        cleat_class_category(c, category);
        return category[0] == 'N' && category[1] == 'd';
    case SET_WORD:
        return cleat_class_word(c);
    case SET_CATEGORY:
        break;
    }
    cleat_class_category(c, category);
    return category[0] == item->category[0] && (!item->category[1] || category[1] == item->category[1]);
}

static bool in_items(const struct cleat_regex *regex, const op *set, int32_t c) {
    for (uint32_t i = set->set; i < set->set + set->n_items; ++i)
        if (in_item(&regex->items[i], c) != regex->items[i].negated) return true;
    return false;
}

/* Whether the character at `at` is in the set; sets its length. */
static bool in_set(const search *s, const op *set, size_t at, size_t *length) {
    int32_t c = 0xFFFD;
    if (at >= s->size) return false;
    *length = cleat_utf8_decode(s->text + at, s->size - at, &c);
    if (!*length) *length = 1;
    bool found = in_items(s->regex, set, c);
    if (set->fold && !found) {
        const int32_t lower = cleat_char_lower(c), upper = cleat_char_upper(c);
        found = (lower != c && in_items(s->regex, set, lower)) || (upper != c && in_items(s->regex, set, upper)) ||
                (c == 0x17F && in_items(s->regex, set, 's')); /* the long s */
    }
    return found != set->negated;
}

static void push(search *s, branch added) {
    if (cleat_grow(&s->stack, s->n_stack, &s->capacity, sizeof added, NULL) == CLEAT_OK)
        s->stack[s->n_stack++] = added;
    else
        s->failed = true;
}

/* Matches a set as often as its quantifier says. Returns false if there are too few characters. */
static bool match_set(search *s, uint32_t pc, size_t *at) {
    const op *set = &s->regex->ops[pc];
    size_t here = *at, low = here, length = 0;
    const size_t cost = 1 + set->n_items / 8; /* a character is compared with each item */
    uint32_t count = 0, limit = set->lazy ? set->min : set->max;
    for (; count < limit && in_set(s, set, here, &length); ++count) {
        here += length;
        if (count + 1 == set->min) low = here;
        *s->steps -= *s->steps > cost ? cost : *s->steps;
    }
    if (count < set->min) return false;
    *at = here;
    if (set->lazy && set->max > set->min)
        push(s, (branch){BRANCH_MORE, pc, here, 0});
    else if (!set->possessive && here > low)
        push(s, (branch){BRANCH_FEWER, pc + 1, here, low});
    return true;
}

/* Goes back to the last branch above `base`. Returns false if there is none. */
static bool backtrack(search *s, size_t base, uint32_t *pc, size_t *at) {
    while (s->n_stack > base) {
        branch *top = &s->stack[s->n_stack - 1];
        size_t length = 0;
        if (top->kind == BRANCH_FEWER) {
            do --top->at;
            while (top->at > top->low && ((unsigned char)s->text[top->at] & 0xC0) == 0x80);
            *at = top->at;
            *pc = top->pc;
            if (top->at <= top->low) --s->n_stack;
            return true;
        }
        if (top->kind == BRANCH_OTHER) {
            *pc = top->pc;
            *at = top->at;
            --s->n_stack;
            return true;
        }
        if (in_set(s, &s->regex->ops[top->pc], top->at, &length)) { /* one more */
            top->at += length;
            *at = top->at;
            *pc = top->pc + 1;
            return true;
        }
        --s->n_stack;
    }
    return false;
}

/* Runs the program from `pc` on at text[at]; returns whether it matches, and sets *end. */
static bool run(search *s, uint32_t pc, size_t at, size_t *end) {
    const size_t base = s->n_stack;
    bool matches = false;
    while (!s->failed) {
        const op *o = &s->regex->ops[pc];
        bool fits = true, inner;
        size_t ignored;
        if (*s->steps == 0) s->failed = true;
        if (s->failed) break;
        --*s->steps;
        switch (o->kind) {
        case OP_SET:
            fits = match_set(s, pc++, &at);
            break;
        case OP_SPLIT:
            push(s, (branch){BRANCH_OTHER, o->lazy ? o->next : o->other, at, 0});
            pc = o->lazy ? o->other : o->next;
            break;
        case OP_JUMP:
            pc = o->next;
            break;
        case OP_LOOK:
            inner = run(s, o->next, at, &ignored);
            fits = inner != o->negated;
            pc = o->other;
            break;
        case OP_START:
            fits = at == 0;
            ++pc;
            break;
        case OP_END:
            fits = at == s->size;
            ++pc;
            break;
        case OP_MATCH:
            *end = at;
            matches = true;
            break;
        }
        if (matches || (!fits && !backtrack(s, base, &pc, &at))) break;
    }
    s->n_stack = base;
    return matches;
}

cleat_pattern_result cleat_regex_find(const struct cleat_regex *regex, const char *text, size_t size, size_t from,
                                      size_t *steps, size_t *start, size_t *end) {
    search s = {.regex = regex, .text = text, .size = size, .steps = steps};
    cleat_pattern_result result = CLEAT_PATTERN_NONE;
    for (size_t at = from; at < size && result == CLEAT_PATTERN_NONE; ++at) {
        if (((unsigned char)text[at] & 0xC0) == 0x80) continue;
        if (run(&s, 0, at, end) && *end > at) {
            *start = at;
            result = CLEAT_PATTERN_FOUND;
        } else if (s.failed) {
            result = CLEAT_PATTERN_FAILED;
        }
    }
    cleat_free(s.stack);
    return result;
}
