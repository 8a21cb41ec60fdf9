/* The table of measured choices: keys, the chooser that follows it, its text. */
#include "graph/choices.h"

#include "core/files.h"
#include "core/memory.h"
#include "core/text.h"

#include <stdio.h>
#include <string.h>

/* --- keys ----------------------------------------------------------------------------------------------------- */

/* A plan asks for the key of every node that has a choice, and a search for micro-batches makes many plans: this is
 * faster than printf. */
typedef struct pen {
    char *at, *end; /* `end`: the last byte, for the zero */
} pen;

static void put(pen *p, const char *text) {
    while (*text && p->at < p->end) *p->at++ = *text++;
    *p->at = 0;
}

static void put_number(pen *p, int64_t number) {
    char digits[24], *at = digits + sizeof digits - 1;
    *at = 0;
    do *--at = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    put(p, at);
}

static void put_tensor(pen *p, const cleat_tensor *tensor) {
    if (!tensor) {
        put(p, " -");
        return;
    }
    put(p, " ");
    put(p, cleat_dtype_name(tensor->dtype));
    for (int i = 0; i < tensor->rank; ++i) {
        put(p, i ? "," : "[");
        put_number(p, tensor->shape[i]);
    }
    put(p, "]");
}

void cleat_choice_key(const cleat_node *node, char key[CLEAT_CHOICE_KEY]) {
    pen p = {key, key + CLEAT_CHOICE_KEY - 1};
    put(&p, node->op->name);
    for (int i = 0; i < node->n_in; ++i) put_tensor(&p, node->in[i]);
    put(&p, " ->");
    for (int i = 0; i < node->n_out; ++i) put_tensor(&p, node->out[i]);
}

/* --- the table ------------------------------------------------------------------------------------------------ */

cleat_status cleat_choices_create(cleat_choices **choices, cleat_error *error) {
    cleat_choices *made = cleat_alloc(1, sizeof *made);
    if (!made) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a table of choices");
    *choices = made;
    return CLEAT_OK;
}

void cleat_choices_destroy(cleat_choices *choices) {
    if (!choices) return;
    for (size_t i = 0; i < choices->count; ++i) cleat_free(choices->items[i].key);
    cleat_free(choices->items);
    cleat_free(choices);
}

/* The place of `key`, or where it would be. */
static size_t find(const cleat_choices *choices, const char *key, bool *there) {
    size_t low = 0, high = choices->count;
    *there = false;
    while (low < high && !*there) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(key, choices->items[middle].key);
        if (order == 0) *there = true;
        if (order <= 0)
            high = middle;
        else
            low = middle + 1;
    }
    return high;
}

cleat_status cleat_choices_set(cleat_choices *choices, const char *key, const char *variant, cleat_error *error) {
    bool there;
    size_t at = find(choices, key, &there);
    if (strlen(variant) >= CLEAT_NAME)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "the name of variant '%s' is too long", variant);
    if (!there) {
        cleat_status status =
            cleat_grow(&choices->items, choices->count, &choices->capacity, sizeof *choices->items, error);
        if (status != CLEAT_OK) return status;
        char *copy = cleat_strdup(key);
        if (!copy) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a choice");
        memmove(&choices->items[at + 1], &choices->items[at], (choices->count - at) * sizeof *choices->items);
        choices->items[at].key = copy;
        ++choices->count;
    }
    snprintf(choices->items[at].variant, CLEAT_NAME, "%s", variant);
    return CLEAT_OK;
}

const char *cleat_choices_get(const cleat_choices *choices, const char *key) {
    bool there = false;
    size_t at = choices && choices->count > 0 ? find(choices, key, &there) : 0;
    return there ? choices->items[at].variant : NULL;
}

/* --- choosing ------------------------------------------------------------------------------------------------- */

bool cleat_op_has_choice(const cleat_op *op) {
    return op->variants && op->variants[0].name && op->variants[1].name;
}

/* The name that is listed for the node, or NULL. */
static const char *listed_for(const cleat_choices *choices, const cleat_node *node) {
    char key[CLEAT_CHOICE_KEY];
    if (!choices || choices->count == 0 || !cleat_op_has_choice(node->op)) return NULL;
    cleat_choice_key(node, key);
    return cleat_choices_get(choices, key);
}

/* The op's variant of that name, where it serves the node. */
static const cleat_variant *serving(const cleat_node *node, const cleat_device_facts *facts, const char *name,
                                    const char **reason) {
    *reason = "is gone";
    for (const cleat_variant *v = node->op->variants; v->name; ++v) {
        if (strcmp(v->name, name) != 0) continue;
        *reason = v->refuse ? v->refuse(node, facts) : NULL;
        return *reason ? NULL : v;
    }
    return NULL;
}

const cleat_variant *cleat_choose_listed(void *user, const cleat_node *node, const cleat_device_facts *facts) {
    const char *name = listed_for(user, node), *reason;
    const cleat_variant *variant = name ? serving(node, facts, name, &reason) : NULL;
    if (variant) {
        cleat_log(CLEAT_LOG_DISPATCH, "%s: variant %s was measured to be the fastest", node->name, name);
        return variant;
    }
    if (name) cleat_log(CLEAT_LOG_DISPATCH, "%s: the tuned variant %s: %s", node->name, name, reason);
    return cleat_choose_first(NULL, node, facts);
}

static void judge_node(const cleat_choices *choices, const cleat_node *node, const cleat_device_facts *facts,
                       cleat_choices_use *use) {
    const char *name = listed_for(choices, node), *reason;
    if (!cleat_op_has_choice(node->op)) return;
    ++use->nodes;
    if (!name) return;
    ++use->listed;
    if (serving(node, facts, name, &reason)) return;
    if (use->gone++ == 0) snprintf(use->example, sizeof use->example, "%s: %s", node->op->name, name);
}

cleat_choices_use cleat_choices_judge(const cleat_choices *choices, const cleat_plan *plan) {
    cleat_choices_use use = {0};
    for (size_t g = 0; g < plan->layout_count; ++g)
        for (size_t i = 0; i < plan->layouts[g].graph->node_count; ++i)
            judge_node(choices, plan->layouts[g].graph->nodes[i], &plan->facts, &use);
    return use;
}

/* --- text ----------------------------------------------------------------------------------------------------- */

static void print_lines(const cleat_choices *choices, cleat_text *text) {
    for (size_t i = 0; i < choices->count; ++i)
        cleat_text_add(text, "%s = %s\n", choices->items[i].key, choices->items[i].variant);
}

cleat_status cleat_choices_print(const cleat_choices *choices, char **text, cleat_error *error) {
    cleat_text made = {0};
    cleat_text_add(&made,
                   "; The kernels that `cleat tune` measured to be the fastest of a device. A line that is taken out, "
                   "or the whole file,\n; brings the default back.\n[tuned]\ndevice = %s\nkernels = %s\ndate = "
                   "%s\n\n[choices]\n",
                   choices->device, choices->kernels, choices->date);
    print_lines(choices, &made);
    return cleat_text_take(&made, text, error);
}

cleat_status cleat_choices_hash(const cleat_choices *choices, char hash[9], cleat_error *error) {
    cleat_text lines = {0};
    char *text = NULL, whole[33];
    cleat_text_add(&lines, "choices\n");
    print_lines(choices, &lines);
    cleat_status status = cleat_text_take(&lines, &text, error);
    if (status != CLEAT_OK) return status;
    cleat_hash_text(text, strlen(text), whole);
    cleat_free(text);
    snprintf(hash, 9, "%.8s", whole);
    return CLEAT_OK;
}

void cleat_choices_log(const cleat_choices *choices, const cleat_plan *plan) {
    char hash[9] = "";
    if (!choices) return;
    cleat_choices_use use = cleat_choices_judge(choices, plan);
    if (cleat_choices_hash(choices, hash, NULL) != CLEAT_OK) hash[0] = 0;
    cleat_log(CLEAT_LOG_INFO, "kernels: %zu choices tuned on %s (%s) know %zu of the %zu nodes that have a choice%s",
              choices->count, choices->date, hash, use.listed, use.nodes,
              use.listed < use.nodes ? "; `cleat tune` finds the others" : "");
    if (use.gone > 0)
        cleat_log(CLEAT_LOG_WARNING,
                  "kernels: %zu nodes are tuned to a variant that is gone or refuses them (%s): the default serves; "
                  "`cleat tune` chooses again",
                  use.gone, use.example);
}

/* --- from text ------------------------------------------------------------------------------------------------ */

/* A file that is being read. */
typedef struct reader {
    const char *place;
    int number; /* of the line */
    bool in_choices, in_header;
    cleat_choices *choices;
} reader;

static cleat_status fail_line(const reader *r, const char *line, const char *what, cleat_error *error) {
    return cleat_fail(error, CLEAT_ERR_FORMAT, "%s:%d: %s: '%.120s'", r->place, r->number, what, line);
}

/* Cuts blanks off both ends. */
static char *trim(char *text) {
    char *end = text + strlen(text);
    while (end > text && strchr(" \t\r", end[-1])) *--end = 0;
    return text + strspn(text, " \t");
}

static cleat_status read_header(const reader *r, const char *line, const char *name, const char *value,
                                cleat_error *error) {
    const struct {
        const char *name;
        char *field;
        size_t size;
    } fields[] = {{"device", r->choices->device, sizeof r->choices->device},
                  {"kernels", r->choices->kernels, sizeof r->choices->kernels},
                  {"date", r->choices->date, sizeof r->choices->date}};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; ++i) {
        if (strcmp(name, fields[i].name) != 0) continue;
        if (fields[i].field[0]) return fail_line(r, line, "is given twice", error);
        if (strlen(value) >= fields[i].size) return fail_line(r, line, "is too long", error);
        memcpy(fields[i].field, value, strlen(value) + 1);
        return CLEAT_OK;
    }
    return fail_line(r, line, "[tuned] has device, kernels and date", error);
}

static cleat_status read_choice(const reader *r, const char *line, const char *key, const char *variant,
                                cleat_error *error) {
    if (!strstr(key, " ->") || strlen(key) >= CLEAT_CHOICE_KEY || strlen(variant) >= CLEAT_NAME)
        return fail_line(r, line, "a choice is 'op inputs -> outputs = variant'", error);
    if (cleat_choices_get(r->choices, key)) return fail_line(r, line, "is chosen twice", error);
    return cleat_choices_set(r->choices, key, variant, error);
}

static cleat_status read_line(reader *r, char *text, cleat_error *error) {
    char *line = trim(text), *equals = strstr(line, " = ");
    ++r->number;
    if (!*line || *line == ';' || *line == '#') return CLEAT_OK;
    if (*line == '[') {
        r->in_header = strcmp(line, "[tuned]") == 0;
        r->in_choices = strcmp(line, "[choices]") == 0;
        return r->in_header || r->in_choices ? CLEAT_OK : fail_line(r, line, "no such section", error);
    }
    if (!equals || !(r->in_header || r->in_choices))
        return fail_line(r, line, "'name = value' within [tuned] or [choices] is expected", error);
    *equals = 0;
    const char *name = trim(line), *value = trim(equals + 3);
    if (!*name || !*value) return fail_line(r, line, "'name = value' is expected", error);
    return r->in_header ? read_header(r, line, name, value, error) : read_choice(r, line, name, value, error);
}

static cleat_status read_lines(reader *r, char *text, const char *end, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    while (text < end && status == CLEAT_OK) {
        char *stop = text + strcspn(text, "\n"), *next = stop + 1;
        if (stop < end && *stop != '\n') return fail_line(r, text, "a zero byte follows", error);
        *stop = 0;
        status = read_line(r, text, error);
        text = next;
    }
    if (status != CLEAT_OK) return status;
    if (r->choices->device[0] && r->choices->kernels[0] && r->choices->date[0]) return CLEAT_OK;
    return cleat_fail(error, CLEAT_ERR_FORMAT, "%s: [tuned] must give device, kernels and date", r->place);
}

cleat_status cleat_choices_read(const char *place, const char *text, size_t size, cleat_choices **choices,
                                cleat_error *error) {
    reader r = {.place = place};
    char *copy = cleat_alloc(size + 1, 1);
    if (!copy) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %s", place);
    memcpy(copy, text, size);
    cleat_status status = cleat_choices_create(&r.choices, error);
    if (status == CLEAT_OK) status = read_lines(&r, copy, copy + size, error);
    cleat_free(copy);
    if (status == CLEAT_OK)
        *choices = r.choices;
    else
        cleat_choices_destroy(r.choices);
    return status;
}
