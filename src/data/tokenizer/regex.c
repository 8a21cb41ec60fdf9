/* Regular expressions of tokenizer.json, by PCRE2.
 *
 * Hugging Face's tokenizers search with Oniguruma. The expression is translated for PCRE2: classes by their
 * members, because \s and \w differ and its Unicode tables may be older; constructs with another meaning are
 * refused. A search in a hostile file must end: a callout at each item of the expression counts the steps. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "tokenizer/pattern.h"

#include "core/string.h"
#include "tokenizer/classes.h"
#include "tokenizer/unicode.h"

#include <pcre2.h>
#include <string.h>

enum { LONGEST_CHAR = 4, HEAP_KIB = 1 << 18 };

typedef struct translation {
    const char *source, *at;
    cleat_string out;
    cleat_status status;
    cleat_error *error;
} translation;

static void fail(translation *t, const char *what) {
    if (t->status) return;
    t->status = cleat_fail(t->error, CLEAT_ERR_NOT_SUPPORTED, "the expression '%.200s': %s at character %zu", t->source,
                           what, (size_t)(t->at - t->source) + 1);
}

static int32_t read_char(translation *t) {
    int32_t character = 0;
    size_t length = *t->at ? cleat_utf8_decode(t->at, strnlen(t->at, LONGEST_CHAR), &character) : 0;
    if (!length) fail(t, "it ends too early");
    t->at += length;
    return character;
}

/* \x{2581}, \x41, \u2581 */
static int32_t read_hex(translation *t, size_t digits) {
    const bool braces = digits == 2 && *t->at == '{';
    const char *at = t->at + braces;
    const size_t run = strspn(at, "0123456789abcdefABCDEF"), count = braces || run < digits ? run : digits;
    int32_t value = 0;
    if (braces ? !count || count > 6 || at[count] != '}' : count < digits) fail(t, "a wrong character code");
    for (size_t i = 0; i < count && !t->status; ++i)
        value = value * 16 + (at[i] <= '9' ? at[i] - '0' : (at[i] | 0x20) - 'a' + 10);
    t->at = at + count + braces;
    return value;
}

/* The part after a backslash that stands for one character. */
static int32_t read_escape(translation *t) {
    static const char controls[] = "nrtfv", meanings[] = "\n\r\t\f\v";
    const char c = *t->at, *control = c ? strchr(controls, c) : NULL;
    if ((unsigned char)c >= 0x80) return read_char(t);
    ++t->at;
    if (c == 'x' || c == 'u') return read_hex(t, c == 'x' ? 2 : 4);
    if (!control && ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == 0))
        fail(t, "an unknown escape");
    return control ? meanings[control - controls] : c;
}

static void add_range(cleat_string *members, int32_t first, int32_t last) {
    cleat_string_add(members, first == last ? "\\x{%X}" : "\\x{%X}-\\x{%X}", (unsigned)first, (unsigned)last);
}

/* A general category ("L" or "Lu"), also of characters that PCRE2 may not know. */
static void add_category(cleat_string *members, const char *category) {
    cleat_string_add(members, "\\p{%s}", category);
    for (const cleat_new_chars *c = cleat_class_new; c < cleat_class_new + CLEAT_NEW_CHARS; ++c)
        if (strncmp(c->category, category, strlen(category)) == 0)
            for (size_t i = 0; i < c->count; ++i) add_range(members, c->ranges[i].first, c->ranges[i].last);
}

static void add_categories(cleat_string *members, const char *const *categories) {
    for (; *categories; ++categories) add_category(members, *categories);
}

/* \p{L}, \p{^Lu}. Returns whether the members are those outside the class: the set of unassigned characters
 * depends on the tables. */
static bool read_category(translation *t, cleat_string *members) {
    static const char *const assigned[] = {"L", "M", "N", "P", "S", "Z", NULL};
    static const char *const others[] = {"Cc", "Cf", "Co", "Cs", NULL};
    char name[3] = {0};
    bool complement = t->at[0] == '{' && t->at[1] == '^';
    const char *at = t->at + 1 + complement;
    if (*t->at == '{' && *at && strchr("LMNPSZC", *at)) name[0] = *at++;
    if (name[0] && *at >= 'a' && *at <= 'z') name[1] = *at++;
    if (!name[0] || *at != '}') {
        fail(t, "unknown character property");
        return false;
    }
    t->at = at + 1;
    if (name[0] != 'C' || (name[1] && name[1] != 'n')) {
        add_category(members, name);
        return complement;
    }
    add_categories(members, assigned);
    if (name[1]) add_categories(members, others);
    return !complement;
}

static bool is_class(char c) {
    return c && strchr("sSdDwWpP", c);
}

/* The class after a backslash: its members, as between brackets. Returns whether it is their complement. */
static bool read_class(translation *t, cleat_string *members) {
    static const char *const digits[] = {"Nd", NULL}, *const words[] = {"L", "M", "Nd", "Nl", "Pc", NULL};
    const char c = *t->at++;
    bool complement = c == 'S' || c == 'D' || c == 'W' || c == 'P';
    if (c == 's' || c == 'S')
        cleat_string_add(members,
                         "\\x{9}-\\x{D}\\x{20}\\x{85}\\x{A0}\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}\\x{202F}"
                         "\\x{205F}\\x{3000}");
    else if (c == 'd' || c == 'D')
        add_categories(members, digits);
    else if (c == 'p' || c == 'P')
        return read_category(t, members) != complement;
    else {
        add_categories(members, words);
        cleat_string_add(members, "\\x{24B6}-\\x{24E9}\\x{1F130}-\\x{1F149}\\x{1F150}-\\x{1F169}"
                                  "\\x{1F170}-\\x{1F189}");
    }
    return complement;
}

static void add_set(cleat_string *out, bool complement, const cleat_string *members) {
    out->failed = out->failed || members->failed;
    if (!members->size) return;
    cleat_string_add(out, complement ? "[^" : "[");
    cleat_string_add_bytes(out, members->data, members->size);
    cleat_string_add(out, "]");
}

/* A character, or a range of them, between brackets. */
static void read_range(translation *t, cleat_string *members) {
    int32_t ends[2] = {0};
    for (int i = 0; i < 2; ++i) {
        const bool escape = *t->at == '\\';
        if (escape) ++t->at;
        if (escape && is_class(*t->at)) fail(t, "a class as the end of a range");
        ends[i] = escape ? read_escape(t) : read_char(t);
        if (i == 0) ends[1] = ends[0];
        if (t->status || i == 1 || t->at[0] != '-' || t->at[1] == ']' || !t->at[1]) break;
        ++t->at;
    }
    if (ends[1] < ends[0]) fail(t, "a range that ends before it begins");
    add_range(members, ends[0], ends[1]);
}

/* The characters after an opening bracket. Complements of classes are alternatives: PCRE2 may not know all members. */
static void read_set(translation *t) {
    cleat_string members = {0}, class = {0}, others = {0}, *out = &t->out;
    const bool negated = *t->at == '^';
    if (negated) ++t->at;
    for (const char *first = t->at; !t->status && (t->at == first || *t->at != ']');) {
        if (*t->at == '[' || (t->at[0] == '&' && t->at[1] == '&')) fail(t, "sets within sets");
        if (t->at[0] != '\\' || !is_class(t->at[1])) {
            read_range(t, &members);
            continue;
        }
        ++t->at;
        const bool complement = read_class(t, &class);
        if (complement && others.size) cleat_string_add(&others, "|");
        if (complement)
            add_set(&others, true, &class);
        else
            cleat_string_add_bytes(&members, class.data, class.size);
        members.failed = members.failed || class.failed;
        cleat_string_free(&class);
    }
    t->at += !t->status;
    if (others.size) cleat_string_add(out, negated ? "(?:(?!" : "(?:");
    add_set(out, negated && !others.size, &members);
    if (others.size && members.size) cleat_string_add(out, "|");
    cleat_string_add_bytes(out, others.data, others.size);
    if (others.size) cleat_string_add(out, negated ? ")\\p{Any})" : ")");
    out->failed = out->failed || others.failed;
    cleat_string_free(&members);
    cleat_string_free(&others);
}

static void read_group(translation *t) {
    static const char *const kinds[] = {"(?:", "(?i:", "(?=", "(?!", "(?>", "(?<=", "(?<!"};
    size_t length = t->at[1] == '?' || t->at[1] == '*' ? 0 : 1;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && !length; ++i)
        if (strncmp(t->at, kinds[i], strlen(kinds[i])) == 0) length = strlen(kinds[i]);
    if (!length) fail(t, "an unknown kind of group");
    cleat_string_add_bytes(&t->out, t->at, length);
    t->at += length;
}

/* {m}, {m,}, {,n}, {m,n}; else the bracket stands for itself. */
static void read_counts(translation *t) {
    static const char digits[] = "0123456789";
    const char *low = t->at + 1;
    const size_t low_size = strspn(low, digits);
    const bool comma = low[low_size] == ',';
    const char *high = low + low_size + comma;
    const size_t high_size = comma ? strspn(high, digits) : 0;
    if (high[high_size] != '}' || (!low_size && !high_size)) {
        cleat_string_add(&t->out, "\\{");
        ++t->at;
        return;
    }
    cleat_string_add(&t->out, "{%s", low_size ? "" : "0");
    cleat_string_add_bytes(&t->out, low, (size_t)(high + high_size + 1 - low));
    t->at = high + high_size + 1;
    if (*t->at == '+') fail(t, "a quantifier after another");
    if (*t->at == '?' && !comma) fail(t, "a lazy quantifier with one number");
}

static void read_item(translation *t) {
    cleat_string class = {0};
    const char c = *t->at;
    if (c == '[' || c == '\\') ++t->at;
    if (c == '[') {
        read_set(t);
    } else if (c == '(') {
        read_group(t);
    } else if (c == '{') {
        read_counts(t);
    } else if (c == '\\' && is_class(*t->at)) {
        const bool word = *t->at == 'w' || *t->at == 'W', complement = read_class(t, &class);
        if (word) cleat_string_add(&class, "\\x{B2}\\x{B3}\\x{B9}\\x{BC}-\\x{BE}"); /* not within brackets */
        add_set(&t->out, complement, &class);
        cleat_string_free(&class);
    } else if (c == '\\') {
        const int32_t character = read_escape(t);
        add_range(&t->out, character, character);
    } else {
        cleat_string_add_bytes(&t->out, t->at++, 1);
    }
}

/* Writes the expression for PCRE2, or the part of it that gives `stop` bytes; its end is t->at. */
static cleat_status translate(translation *t, const char *source, size_t stop, cleat_error *error) {
    *t = (translation){.source = source, .at = source, .error = error};
    cleat_string_add(&t->out, "(*LF)");
    while (!t->status && *t->at && t->out.size < stop) read_item(t);
    if (!t->status && t->out.failed) t->status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for an expression");
    return t->status;
}

cleat_status cleat_pattern_regex(const char *source, cleat_pattern *pattern, cleat_error *error) {
    translation t;
    int code = 0;
    uint32_t empty = 0;
    PCRE2_SIZE offset = 0;
    cleat_status status = translate(&t, source, SIZE_MAX, error);
    *pattern = (cleat_pattern){0};
    if (!status) {
        pattern->regex =
            pcre2_compile((PCRE2_SPTR)t.out.data, t.out.size,
                          PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_AUTO_CALLOUT, &code, &offset, NULL);
        if (pattern->regex) (void)pcre2_jit_compile(pattern->regex, PCRE2_JIT_COMPLETE);
        if (pattern->regex) (void)pcre2_pattern_info(pattern->regex, PCRE2_INFO_SIZE, &pattern->size);
        if (pattern->regex) (void)pcre2_pattern_info(pattern->regex, PCRE2_INFO_MATCHEMPTY, &empty);
    }
    cleat_string_free(&t.out);
    if (empty) {
        fail(&t, "it can match the empty text, where Hugging Face's tokenizers split, unlike cleat,");
        pcre2_code_free(pattern->regex);
        pattern->regex = NULL;
        return t.status;
    }
    if (status || pattern->regex) return status;
    char what[128];
    (void)pcre2_get_error_message(code, (PCRE2_UCHAR *)what, sizeof what);
    status = translate(&t, source, offset, error); /* to the place of the error */
    if (!status) fail(&t, what);
    cleat_string_free(&t.out);
    return t.status;
}

void cleat_regex_destroy(cleat_pattern *pattern) {
    pcre2_code_free(pattern->regex);
}

/* Counts an item, and the characters since the last one: each may be compared with all of a long set. */
static int count_steps(pcre2_callout_block *block, void *user) {
    cleat_pattern_work *work = user;
    const size_t at = block->current_position, cost = 1 + (at > work->at ? (at - work->at) * work->weight : 0);
    work->at = at;
    work->steps -= work->steps > cost ? cost : work->steps;
    return work->steps ? 0 : PCRE2_ERROR_CALLOUT;
}

static bool prepare(cleat_pattern_work *work) {
    if (!work->match) work->match = pcre2_match_data_create(1, NULL);
    if (!work->context) work->context = pcre2_match_context_create(NULL);
    if (!work->match || !work->context) return false;
    pcre2_set_callout(work->context, count_steps, work);
    pcre2_set_match_limit(work->context, UINT32_MAX);
    pcre2_set_depth_limit(work->context, UINT32_MAX);
    pcre2_set_heap_limit(work->context, HEAP_KIB);
    return true;
}

cleat_pattern_result cleat_regex_find(const cleat_pattern *pattern, const char *text, size_t size, size_t from,
                                      cleat_pattern_work *work, size_t *start, size_t *end) {
    enum { SMALL_SET = 1 << 12 };
    const PCRE2_SPTR bytes = (PCRE2_SPTR)text;
    if (!prepare(work)) return CLEAT_PATTERN_FAILED;
    work->weight = 1 + pattern->size / SMALL_SET;
    for (size_t at = from; at < size;) {
        work->at = at;
        const uint32_t checked = at ? PCRE2_NO_UTF_CHECK : 0;
        int found = pcre2_match(pattern->regex, bytes, size, at, checked, work->match, work->context);
        if (found == PCRE2_ERROR_JIT_STACKLIMIT) /* the interpreter's stack grows */
            found = pcre2_match(pattern->regex, bytes, size, at, checked | PCRE2_NO_JIT, work->match, work->context);
        if (found < 0) return found == PCRE2_ERROR_NOMATCH ? CLEAT_PATTERN_NONE : CLEAT_PATTERN_FAILED;
        const PCRE2_SIZE *range = pcre2_get_ovector_pointer(work->match);
        if (range[1] > range[0]) {
            *start = range[0];
            *end = range[1];
            return CLEAT_PATTERN_FOUND;
        }
        for (at = range[0] + 1; at < size && ((unsigned char)text[at] & 0xC0) == 0x80;) ++at;
    }
    return CLEAT_PATTERN_NONE;
}

void cleat_pattern_work_free(cleat_pattern_work *work) {
    pcre2_match_data_free(work->match);
    pcre2_match_context_free(work->context);
    *work = (cleat_pattern_work){0};
}
