/* The tuning table: keys, the choose function that follows it, its text format. */
#include "graph/tuning.h"

#include "core/files.h"
#include "core/memory.h"
#include "core/string.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- keys ----------------------------------------------------------------------------------------------------- */

/* Appends text to a key. A plan computes the key of every node that has more than one variant, and the search
 * for micro-batches makes many plans; this is faster than printf. */
typedef struct pen {
    char *at, *end; /* `end`: the last byte, for the terminating zero */
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

void cleat_tuning_key(const cleat_node *node, char key[CLEAT_TUNING_KEY]) {
    pen p = {key, key + CLEAT_TUNING_KEY - 1};
    put(&p, node->op->name);
    if (node->tf32) put(&p, " tf32");
    for (int i = 0; i < node->n_in; ++i) put_tensor(&p, node->in[i]);
    put(&p, " ->");
    for (int i = 0; i < node->n_out; ++i) put_tensor(&p, node->out[i]);
}

/* --- the table ------------------------------------------------------------------------------------------------ */

cleat_status cleat_tuning_create(cleat_tuning_table **tuning, cleat_error *error) {
    cleat_tuning_table *made = cleat_alloc(1, sizeof *made);
    if (!made) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a table of choices");
    *tuning = made;
    return CLEAT_OK;
}

void cleat_tuning_destroy(cleat_tuning_table *tuning) {
    if (!tuning) return;
    for (size_t i = 0; i < tuning->count; ++i) cleat_free(tuning->items[i].key);
    cleat_free(tuning->items);
    cleat_free(tuning);
}

/* The index of `key`, or its insertion point. */
static size_t find(const cleat_tuning_table *tuning, const char *key, bool *there) {
    size_t low = 0, high = tuning->count;
    *there = false;
    while (low < high && !*there) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(key, tuning->items[middle].key);
        if (order == 0) *there = true;
        if (order <= 0)
            high = middle;
        else
            low = middle + 1;
    }
    return high;
}

cleat_status cleat_tuning_set(cleat_tuning_table *tuning, const char *key, const char *variant, cleat_error *error) {
    bool there;
    size_t at = find(tuning, key, &there);
    if (strlen(variant) >= CLEAT_NAME)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "the name of variant '%s' is too long", variant);
    if (!there) {
        cleat_status status = cleat_grow(&tuning->items, tuning->count, &tuning->capacity, error);
        if (status) return status;
        char *copy = cleat_strdup(key);
        if (!copy) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a choice");
        memmove(&tuning->items[at + 1], &tuning->items[at], (tuning->count - at) * sizeof *tuning->items);
        tuning->items[at].key = copy;
        ++tuning->count;
    }
    snprintf(tuning->items[at].variant, CLEAT_NAME, "%s", variant);
    tuning->items[at].shipped = false;
    return CLEAT_OK;
}

static const cleat_tuning_entry *get(const cleat_tuning_table *tuning, const char *key) {
    bool there = false;
    size_t at = tuning && tuning->count > 0 ? find(tuning, key, &there) : 0;
    return there ? &tuning->items[at] : NULL;
}

const char *cleat_tuning_get(const cleat_tuning_table *tuning, const char *key) {
    const cleat_tuning_entry *entry = get(tuning, key);
    return entry ? entry->variant : NULL;
}

cleat_status cleat_tuning_add_shipped(cleat_tuning_table *tuning, const char *file, const cleat_tuning_table *shipped,
                                      cleat_error *error) {
    /* If the table has entries, CLBlast was measured with the table's parameters, or with its defaults. */
    bool tuned_here = tuning->count > 0;
    for (size_t i = 0; i < shipped->count; ++i) {
        bool there;
        if (get(tuning, shipped->items[i].key)) continue;
        cleat_status status = cleat_tuning_set(tuning, shipped->items[i].key, shipped->items[i].variant, error);
        if (status) return status;
        tuning->items[find(tuning, shipped->items[i].key, &there)].shipped = true;
    }
    if (shipped->has_clblast && !tuned_here) {
        tuning->has_clblast = tuning->clblast_shipped = true;
        tuning->clblast = shipped->clblast;
    }
    snprintf(tuning->shipped_file, sizeof tuning->shipped_file, "%s", file);
    snprintf(tuning->shipped_date, sizeof tuning->shipped_date, "%s", shipped->date);
    return CLEAT_OK;
}

const char *cleat_tuning_describe(const cleat_tuning_table *tuning, char text[CLEAT_TUNING_TEXT]) {
    size_t shipped = 0;
    for (size_t i = 0; tuning && i < tuning->count; ++i) shipped += tuning->items[i].shipped;
    const size_t own = tuning ? tuning->count - shipped : 0;
    char here[64] = "", came[160] = "";
    if (own > 0) snprintf(here, sizeof here, "%zu choices tuned here on %s", own, tuning->date);
    if (shipped > 0)
        snprintf(came, sizeof came, "%zu choices shipped for %s, measured on %s", shipped, tuning->shipped_file,
                 tuning->shipped_date);
    snprintf(text, CLEAT_TUNING_TEXT, "%s%s%s%s", own + shipped > 0 ? here : "the defaults",
             own > 0 && shipped > 0 ? " and " : "", came,
             tuning && tuning->has_clblast ? (tuning->clblast_shipped ? ", with shipped parameters for CLBlast"
                                                                      : ", with parameters tuned here for CLBlast")
                                           : "");
    return text;
}

/* --- choosing ------------------------------------------------------------------------------------------------- */

bool cleat_op_is_tunable(const cleat_op *op) {
    return op->variants && op->variants[0].name && op->variants[1].name;
}

/* The table's entry for the node, or NULL. */
static const cleat_tuning_entry *listed_for(const cleat_tuning_table *tuning, const cleat_node *node) {
    char key[CLEAT_TUNING_KEY];
    if (!tuning || tuning->count == 0 || !cleat_op_is_tunable(node->op)) return NULL;
    cleat_tuning_key(node, key);
    return get(tuning, key);
}

/* The op's variant of that name, if it can compute the node; else NULL with the reason. A variant may be
 * listed twice, at the places that it has on different devices. */
static const cleat_variant *find_serving(const cleat_node *node, const cleat_device_facts *facts, const char *name,
                                         const char **reason) {
    *reason = "no longer exists";
    for (const cleat_variant *v = node->op->variants; v->name; ++v) {
        if (strcmp(v->name, name) != 0) continue;
        *reason = v->refuse ? v->refuse(node, facts) : NULL;
        if (!*reason) return v;
    }
    return NULL;
}

const cleat_variant *cleat_choose_tuned(void *user, const cleat_node *node, const cleat_device_facts *facts) {
    const cleat_tuning_table *tuning = user;
    const cleat_tuning_entry *listed = listed_for(tuning, node);
    const char *reason;
    const cleat_variant *variant = listed ? find_serving(node, facts, listed->variant, &reason) : NULL;
    if (!listed) return cleat_choose_first(NULL, node, facts);
    const char *origin = listed->shipped ? "shipped, measured on" : "tuned here on";
    const char *date = listed->shipped ? tuning->shipped_date : tuning->date;
    if (variant) {
        cleat_log(CLEAT_LOG_DISPATCH, "%s: variant %s is the fastest measured (%s %s)", node->name, variant->name,
                  origin, date);
        return variant;
    }
    cleat_log(CLEAT_LOG_DISPATCH, "%s: variant %s (%s %s): %s", node->name, listed->variant, origin, date, reason);
    return cleat_choose_first(NULL, node, facts);
}

static void count_node_use(const cleat_tuning_table *tuning, const cleat_node *node, const cleat_device_facts *facts,
                           cleat_tuning_use *use) {
    const cleat_tuning_entry *listed = listed_for(tuning, node);
    const char *reason;
    if (!cleat_op_is_tunable(node->op)) return;
    ++use->nodes;
    if (!listed) return;
    ++use->listed;
    if (find_serving(node, facts, listed->variant, &reason)) return;
    if (listed->shipped) {
        ++use->shipped_gone;
        return;
    }
    if (use->gone++ == 0) snprintf(use->example, sizeof use->example, "%s: %s", node->op->name, listed->variant);
}

cleat_tuning_use cleat_tuning_count_use(const cleat_tuning_table *tuning, const cleat_plan *plan) {
    cleat_tuning_use use = {0};
    for (size_t g = 0; g < plan->layout_count; ++g)
        for (size_t i = 0; i < plan->layouts[g].graph->node_count; ++i)
            count_node_use(tuning, plan->layouts[g].graph->nodes[i], &plan->facts, &use);
    return use;
}

/* --- formatting ----------------------------------------------------------------------------------------------- */

static void print_clblast(const cleat_tuning_table *tuning, cleat_string *text) {
    if (!tuning->has_clblast) return;
    cleat_string_add(text, "[clblast]\n");
    for (int i = 0; i < CLEAT_CLBLAST_COUNT; ++i)
        cleat_string_add(text, "%s = %d\n", cleat_clblast_names[i], (int)tuning->clblast.values[i]);
    cleat_string_add(text, "\n");
}

static void print_lines(const cleat_tuning_table *tuning, cleat_string *text) {
    for (size_t i = 0; i < tuning->count; ++i)
        cleat_string_add(text, "%s = %s\n", tuning->items[i].key, tuning->items[i].variant);
}

cleat_status cleat_tuning_format(const cleat_tuning_table *tuning, char **text, cleat_error *error) {
    cleat_string made = {0};
    cleat_string_add(
        &made,
        "; The fastest kernels of a device, as measured by `cleat tune`. Removing a line of [choices], the whole "
        "section\n; [clblast], or this file restores the defaults.\n[tuned]\ndevice = %s\nkernels = %s\ndate = %s\n",
        tuning->device, tuning->kernels, tuning->date);
    if (tuning->match[0]) cleat_string_add(&made, "match = %s\n", tuning->match);
    if (tuning->shape[0]) cleat_string_add(&made, "shape = %s\n", tuning->shape);
    cleat_string_add(&made, "\n");
    print_clblast(tuning, &made);
    cleat_string_add(&made, "[choices]\n");
    print_lines(tuning, &made);
    return cleat_string_detach(&made, text, error);
}

cleat_status cleat_tuning_hash(const cleat_tuning_table *tuning, char hash[9], cleat_error *error) {
    cleat_string lines = {0};
    char *text = NULL, whole[33];
    cleat_string_add(&lines, "choices\n");
    print_clblast(tuning, &lines);
    print_lines(tuning, &lines);
    cleat_status status = cleat_string_detach(&lines, &text, error);
    if (status) return status;
    cleat_hash_text(text, strlen(text), whole);
    cleat_free(text);
    snprintf(hash, 9, "%.8s", whole);
    return CLEAT_OK;
}

void cleat_tuning_log(const cleat_tuning_table *tuning, const cleat_plan *plan) {
    char hash[9] = "", text[CLEAT_TUNING_TEXT];
    if (!tuning) return;
    cleat_tuning_use use = cleat_tuning_count_use(tuning, plan);
    if (cleat_tuning_hash(tuning, hash, NULL) != CLEAT_OK) hash[0] = 0;
    cleat_log(use.listed > 0 ? CLEAT_LOG_INFO : CLEAT_LOG_DEBUG,
              "kernels: %s (%s): they cover %zu of the %zu nodes with several kernels%s",
              cleat_tuning_describe(tuning, text), hash, use.listed, use.nodes,
              use.listed < use.nodes ? "; `cleat tune` measures the others" : "");
    if (use.shipped_gone > 0)
        cleat_log(CLEAT_LOG_DEBUG,
                  "kernels: %zu nodes have a shipped choice whose variant no longer exists or does not support them",
                  use.shipped_gone);
    if (use.gone > 0)
        cleat_log(CLEAT_LOG_WARNING,
                  "kernels: %zu nodes are tuned to a variant that no longer exists or does not support them (%s): "
                  "using the default; `cleat tune` selects again",
                  use.gone, use.example);
}

/* --- parsing -------------------------------------------------------------------------------------------------- */

/* State of the parser. */
typedef struct reader {
    const char *place;
    int number; /* line number */
    bool in_entries, in_header, in_clblast;
    cleat_tuning_table *tuning;
    bool given[CLEAT_CLBLAST_COUNT]; /* which parameters of [clblast] have been read */
    int clblast_line;                /* line of [clblast] */
} reader;

static cleat_status fail_line(const reader *r, const char *line, const char *what, cleat_error *error) {
    return cleat_fail(error, CLEAT_ERR_FORMAT, "%s:%d: %s: '%.120s'", r->place, r->number, what, line);
}

/* Removes blanks at both ends. */
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
    } fields[] = {{"device", r->tuning->device, sizeof r->tuning->device},
                  {"kernels", r->tuning->kernels, sizeof r->tuning->kernels},
                  {"date", r->tuning->date, sizeof r->tuning->date},
                  {"match", r->tuning->match, sizeof r->tuning->match},
                  {"shape", r->tuning->shape, sizeof r->tuning->shape}};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; ++i) {
        if (strcmp(name, fields[i].name) != 0) continue;
        if (fields[i].field[0]) return fail_line(r, line, "is given twice", error);
        if (strlen(value) >= fields[i].size) return fail_line(r, line, "is too long", error);
        memcpy(fields[i].field, value, strlen(value) + 1);
        return CLEAT_OK;
    }
    return fail_line(r, line, "unknown key: [tuned] has device, kernels, date, match and shape", error);
}

static cleat_status read_entry(const reader *r, const char *line, const char *key, const char *variant,
                               cleat_error *error) {
    if (!strstr(key, " ->") || strlen(key) >= CLEAT_TUNING_KEY || strlen(variant) >= CLEAT_NAME)
        return fail_line(r, line, "a choice must be 'op inputs -> outputs = variant'", error);
    if (cleat_tuning_get(r->tuning, key)) return fail_line(r, line, "has two choices", error);
    return cleat_tuning_set(r->tuning, key, variant, error);
}

static cleat_status read_parameter(reader *r, const char *line, const char *name, const char *value,
                                   cleat_error *error) {
    int i = 0;
    char *end;
    while (i < CLEAT_CLBLAST_COUNT && strcmp(name, cleat_clblast_names[i]) != 0) ++i;
    if (i == CLEAT_CLBLAST_COUNT) return fail_line(r, line, "CLBlast has no such parameter", error);
    if (r->given[i]) return fail_line(r, line, "is given twice", error);
    long number = strtol(value, &end, 10);
    if (end == value || *end || number < 0 || number > CLEAT_CLBLAST_SIZE_MAX)
        return fail_line(r, line, "a whole number up to 1048576 is expected", error);
    r->given[i] = true;
    r->tuning->clblast.values[i] = (int32_t)number;
    return CLEAT_OK;
}

/* The parameters of [clblast] must be complete, or the section absent. */
static cleat_status check_clblast(const reader *r, cleat_error *error) {
    if (r->clblast_line == 0) return CLEAT_OK;
    for (int i = 0; i < CLEAT_CLBLAST_COUNT; ++i)
        if (!r->given[i])
            return cleat_fail(error, CLEAT_ERR_FORMAT,
                              "%s:%d: [clblast] lacks %s: set all parameters, or remove the section", r->place,
                              r->clblast_line, cleat_clblast_names[i]);
    const char *reason = cleat_clblast_refuse(&r->tuning->clblast, NULL);
    if (reason)
        return cleat_fail(error, CLEAT_ERR_FORMAT, "%s:%d: [clblast] is invalid: %s", r->place, r->clblast_line,
                          reason);
    r->tuning->has_clblast = true;
    return CLEAT_OK;
}

static cleat_status read_section(reader *r, const char *line, cleat_error *error) {
    r->in_header = strcmp(line, "[tuned]") == 0;
    r->in_entries = strcmp(line, "[choices]") == 0;
    r->in_clblast = strcmp(line, "[clblast]") == 0;
    if (r->in_clblast) r->clblast_line = r->number;
    return r->in_header || r->in_entries || r->in_clblast ? CLEAT_OK : fail_line(r, line, "unknown section", error);
}

static cleat_status read_line(reader *r, char *text, cleat_error *error) {
    char *line = trim(text), *equals = strstr(line, " = ");
    ++r->number;
    if (!*line || *line == ';' || *line == '#') return CLEAT_OK;
    if (*line == '[') return read_section(r, line, error);
    if (!equals || !(r->in_header || r->in_entries || r->in_clblast))
        return fail_line(r, line, "'name = value' within [tuned], [clblast] or [choices] is expected", error);
    *equals = 0;
    const char *name = trim(line), *value = trim(equals + 3);
    if (!*name || !*value) return fail_line(r, line, "'name = value' is expected", error);
    if (r->in_header) return read_header(r, line, name, value, error);
    return r->in_clblast ? read_parameter(r, line, name, value, error) : read_entry(r, line, name, value, error);
}

static cleat_status read_lines(reader *r, char *text, const char *end, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    while (text < end && !status) {
        char *stop = text + strcspn(text, "\n"), *next = stop + 1;
        if (stop < end && *stop != '\n') return fail_line(r, text, "the line contains a zero byte", error);
        *stop = 0;
        status = read_line(r, text, error);
        text = next;
    }
    if (!status) status = check_clblast(r, error);
    if (status) return status;
    if (r->tuning->device[0] && r->tuning->kernels[0] && r->tuning->date[0]) return CLEAT_OK;
    return cleat_fail(error, CLEAT_ERR_FORMAT, "%s: [tuned] must set device, kernels and date", r->place);
}

cleat_status cleat_tuning_parse(const char *place, const char *text, size_t size, cleat_tuning_table **tuning,
                                cleat_error *error) {
    reader r = {.place = place};
    char *copy = cleat_alloc(size + 1, 1);
    if (!copy) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %s", place);
    memcpy(copy, text, size);
    cleat_status status = cleat_tuning_create(&r.tuning, error);
    if (!status) status = read_lines(&r, copy, copy + size, error);
    cleat_free(copy);
    if (!status)
        *tuning = r.tuning;
    else
        cleat_tuning_destroy(r.tuning);
    return status;
}
