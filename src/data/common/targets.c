/* Targets of samples that have no single class: reading them from a table, their names, and what is fitted to them. */
#include "data/common/targets.h"

#include "core/files.h"
#include "core/json.h"
#include "core/memory.h"
#include "platform/text.h"
#include "json/member.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char blanks[] = " \t\r\n";

const char *const cleat_problem_names[] = {"single_label", "multi_label", "regression", NULL};
const char *const cleat_label_separator_names[] = {"any", "bar", "semicolon", "comma", "blank", NULL};
static const char *const separators[] = {"|;,", "|", ";", ",", " \t"}; /* by cleat_label_separator */

cleat_status cleat_names_split(const char *text, const char *setting, cleat_name_list *names, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    for (const char *at = text + strspn(text, blanks); *at && !status; at += strspn(at, blanks)) {
        const bool quoted = *at == '"';
        at += quoted;
        const size_t size = strcspn(at, quoted ? "\"" : blanks);
        if (!size || (quoted && at[size] != '"'))
            return cleat_fail(error, CLEAT_ERR_FORMAT, "%s: an empty name, or a quote that is not closed: %.80s",
                              setting, at - 1);
        status = cleat_name_list_add_part(names, at, size, error);
        at += size + quoted;
    }
    return status;
}

static bool are_numbers(const cleat_targets *targets) {
    return targets->options.problem == CLEAT_REGRESSION;
}

static cleat_status add_name(cleat_targets *targets, const char *name, const char *place, cleat_error *error) {
    char shown[CLEAT_EXCERPT_SIZE];
    uint32_t known;
    if (cleat_name_table_find(&targets->index, name, &known))
        return cleat_fail(error, CLEAT_ERR_FORMAT, "%s: duplicate name '%s'", place,
                          cleat_format_excerpt(name, strlen(name), shown));
    if (targets->count >= CLEAT_TARGETS_MOST)
        return cleat_fail(error, CLEAT_ERR_FORMAT,
                          "%s: more than %d different labels; is data.label_column the right column?", place,
                          CLEAT_TARGETS_MOST);
    cleat_status status = cleat_name_table_add(&targets->index, name, (uint32_t)targets->count, error);
    if (!status) status = cleat_grow(&targets->all, targets->count, &targets->capacity, error);
    if (status) return status;
    targets->all[targets->count] =
        (cleat_target){.name = cleat_strdup(name), .std = 1, .threshold = 0.5, .number = (int32_t)targets->count};
    return targets->all[targets->count++].name ? CLEAT_OK : cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a name");
}

cleat_status cleat_targets_open(const cleat_target_options *options, const char *labels, const char *fitted,
                                cleat_targets *targets, cleat_error *error) {
    cleat_name_list names = {0};
    *targets = (cleat_targets){0};
    cleat_status status =
        *fitted ? cleat_targets_read(fitted, targets, error) : cleat_names_split(labels, "data.labels", &names, error);
    for (size_t i = 0; i < names.count && !status; ++i)
        status = add_name(targets, names.names[i], "data.labels", error);
    targets->named = targets->count > 0;
    targets->options = *options;
    cleat_name_list_free(&names);
    return status;
}

void cleat_targets_free(cleat_targets *targets) {
    for (size_t i = 0; i < targets->count; ++i) cleat_free(targets->all[i].name);
    cleat_free(targets->all);
    cleat_name_table_free(&targets->index);
    cleat_free(targets->columns);
    cleat_free(targets->entries);
    cleat_free(targets->starts);
    cleat_free(targets->slots);
    *targets = (cleat_targets){0};
}

/* --- reading a table ------------------------------------------------------------------------------------------ */

/* Labels with given names are found by them; a column of numbers may have another name in other data. */
static cleat_status find_columns(cleat_targets *targets, const cleat_csv *csv, char *const *names, cleat_error *error) {
    const bool by_name = targets->named && !are_numbers(targets);
    cleat_status status = CLEAT_OK;
    if (!targets->is_list && targets->named && targets->n_columns != targets->count)
        return cleat_csv_fail(csv, error, "%zu columns are named, and the model, or data.labels, has %zu targets",
                              targets->n_columns, targets->count);
    for (size_t i = 0; i < targets->n_columns && !status; ++i) {
        const char *name = by_name && !targets->is_list ? targets->all[i].name : names[i];
        status = cleat_csv_need_column(csv, name, &targets->columns[i], error);
        if (!status && !targets->is_list && !targets->named) status = add_name(targets, name, csv->source.path, error);
    }
    targets->named |= !targets->is_list;
    return status;
}

cleat_status cleat_targets_find(cleat_targets *targets, const cleat_csv *csv, const char *label_column,
                                cleat_error *error) {
    cleat_name_list names = {0};
    cleat_status status = cleat_csv_column(csv, label_column) >= 0 /* one name, perhaps with blanks */
                              ? cleat_name_list_add(&names, label_column, error)
                              : cleat_names_split(label_column, "names", &names, error);
    const size_t count = names.count;
    cleat_free(targets->columns);
    targets->columns = cleat_alloc(count, sizeof *targets->columns);
    targets->n_columns = count;
    targets->is_list = !are_numbers(targets) && count == 1;
    if (!status && !targets->columns) status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %zu columns", count);
    if (!status) status = find_columns(targets, csv, names.names, error);
    cleat_name_list_free(&names);
    return status;
}

static cleat_status add_entry(cleat_targets *targets, size_t target, double value, cleat_error *error) {
    for (size_t i = targets->starts[targets->rows]; i < targets->n_entries; ++i)
        if (targets->entries[i].target == (int32_t)target) return CLEAT_OK; /* a label twice in a cell */
    cleat_status status = cleat_grow(&targets->entries, targets->n_entries, &targets->entries_capacity, error);
    if (!status) targets->entries[targets->n_entries++] = (cleat_target_entry){(int32_t)target, (float)value};
    return status;
}

static cleat_status add_label(cleat_targets *targets, const cleat_csv *csv, const char *name, cleat_error *error) {
    char place[4200], shown[CLEAT_EXCERPT_SIZE];
    uint32_t target = (uint32_t)targets->count;
    cleat_status status = CLEAT_OK;
    const bool known = cleat_name_table_find(&targets->index, name, &target);
    if (!known && (targets->named || strpbrk(name, "\r\n")))
        return cleat_csv_fail(csv, error, "unknown label '%s': %s", cleat_format_excerpt(name, strlen(name), shown),
                              targets->named
                                  ? "it is none of the model or of data.labels; correct it, or remove the row"
                                  : "a line break in it; is data.label_column the right column?");
    snprintf(place, sizeof place, "%.4096s:%zu", csv->source.path, csv->line);
    if (!known) status = add_name(targets, name, place, error);
    return status ? status : add_entry(targets, target, 1, error);
}

/* Labels with separators, or as Python and JSON write a list: ['a', 'b']. */
static cleat_status add_list(cleat_targets *targets, const cleat_csv *csv, cleat_error *error) {
    char *cell = cleat_strdup(csv->fields[targets->columns[0]]), *rest = NULL;
    cleat_status status = cell ? CLEAT_OK : cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for labels");
    const size_t end = cell && *cell ? strlen(cell) - 1 : 0;
    const bool is_quoted = end > 0 && cell[0] == '[' && cell[end] == ']';
    const char *const separator = is_quoted ? "," : separators[targets->options.separator];
    if (is_quoted) cell[0] = ' ', cell[end] = 0;
    for (char *name = cell; !status && (name = strtok_r(name, separator, &rest)); name = NULL) {
        name += strspn(name, blanks);
        size_t size = strlen(name);
        while (size && strchr(blanks, name[size - 1])) name[--size] = 0;
        if (is_quoted && size > 1 && strchr("'\"", *name) && name[size - 1] == *name) name++ [size - 1] = 0;
        if (*name) status = add_label(targets, csv, name, error);
        targets->was_split |= targets->n_entries > targets->starts[targets->rows] + 1;
    }
    cleat_free(cell);
    return status;
}

/* A decimal comma as in tables of spreadsheets, whose fields are then separated by something else. */
static bool parse(const cleat_targets *targets, const cleat_csv *csv, const char *cell, double *number) {
    char copy[64];
    const size_t size = strlen(cell), comma = strcspn(cell, ",");
    if (size >= sizeof copy) return false;
    memcpy(copy, cell, size + 1);
    if (csv->separator != ',' && copy[comma] && !strchr(copy, '.')) copy[comma] = '.';
    const bool is_true = strcasecmp(copy, "true") == 0, is_word = is_true || strcasecmp(copy, "false") == 0;
    if (is_word) *number = is_true;
    if (are_numbers(targets)) return cleat_parse_decimal(copy, size, number) && isfinite((float)*number);
    return is_word || (cleat_parse_decimal(copy, size, number) && (*number == 0 || *number == 1));
}

static cleat_status add_cell(cleat_targets *targets, const cleat_csv *csv, size_t i, cleat_error *error) {
    const char *cell = csv->fields[targets->columns[i]], *name = targets->all[i].name;
    const bool numbers = are_numbers(targets);
    char shown[CLEAT_EXCERPT_SIZE], shown_name[CLEAT_EXCERPT_SIZE];
    double value;
    if (!cell[strspn(cell, blanks)] || strcasecmp(cell, "nan") == 0)
        return numbers ? CLEAT_OK : add_entry(targets, i, NAN, error);
    if (parse(targets, csv, cell, &value))
        return value != 0 || numbers ? add_entry(targets, i, value, error) : CLEAT_OK;
    return cleat_csv_fail(csv, error, "%s is '%s', not %s", cleat_format_excerpt(name, strlen(name), shown_name),
                          cleat_format_excerpt(cell, strlen(cell), shown),
                          numbers ? "a number; correct it, leave out units, or remove the row"
                                  : "0 or 1: of several columns, each is a label that a row has or not");
}

cleat_status cleat_targets_add(cleat_targets *targets, const cleat_csv *csv, cleat_error *error) {
    const size_t before = targets->n_entries;
    cleat_status status = CLEAT_OK;
    while (targets->starts_capacity < targets->rows + 2 && !status)
        status = cleat_grow(&targets->starts, targets->starts_capacity, &targets->starts_capacity, error);
    if (status) return status;
    targets->starts[targets->rows] = before;
    if (targets->is_list) status = add_list(targets, csv, error);
    for (size_t i = 0; i < targets->n_columns && !targets->is_list && !status; ++i)
        status = add_cell(targets, csv, i, error);
    size_t known = are_numbers(targets) ? targets->n_entries - before : targets->n_columns;
    for (size_t i = before; i < targets->n_entries; ++i) known -= isnan(targets->entries[i].value) != 0;
    if (!status && !targets->is_list && !known)
        status = cleat_csv_fail(csv, error, "no target; fill one in, or remove the row");
    if (status)
        targets->n_entries = before;
    else
        targets->starts[++targets->rows] = targets->n_entries;
    return status;
}

/* --- samples -------------------------------------------------------------------------------------------------- */

size_t cleat_targets_get(const cleat_targets *targets, size_t sample, float *values) {
    const bool there = sample < targets->rows, zero = there && !are_numbers(targets);
    size_t known = 0;
    for (size_t k = 0; k < targets->count; ++k) values[k] = zero ? 0 : NAN;
    for (size_t i = there ? targets->starts[sample] : 1; there && i < targets->starts[sample + 1]; ++i)
        values[targets->entries[i].target] = targets->entries[i].value;
    for (size_t k = 0; k < targets->count; ++k) known += !isnan(values[k]);
    return known;
}

int64_t cleat_targets_items(const cleat_dataset *dataset, size_t sample) {
    float values[CLEAT_TARGETS_MOST];
    return (int64_t)cleat_targets_get(dataset->targets, sample, values);
}

double cleat_targets_scale(const cleat_targets *targets, size_t target) {
    return are_numbers(targets) && targets->options.standardise ? targets->all[target].std : 1;
}

double cleat_targets_shift(const cleat_targets *targets, size_t target) {
    return are_numbers(targets) && targets->options.standardise ? targets->all[target].mean : 0;
}

cleat_field cleat_targets_field(const cleat_targets *targets) {
    return (cleat_field){.name = "target", .dtype = CLEAT_F32, .rank = 2, .shape = {(int64_t)targets->count, 1}};
}

void cleat_targets_fill(const cleat_targets *targets, size_t sample, float *slot) {
    cleat_targets_get(targets, sample, slot);
    for (size_t k = 0; k < targets->count; ++k)
        slot[k] = isnan(slot[k])
                      ? 0
                      : (float)(((double)slot[k] - cleat_targets_shift(targets, k)) / cleat_targets_scale(targets, k));
}

/* --- the fitted state ----------------------------------------------------------------------------------------- */

/* Numbers by value. */
static int by_name(const void *a, const void *b) {
    return strverscmp(((const cleat_target *)a)->name, ((const cleat_target *)b)->name);
}

static cleat_status sort(cleat_targets *targets, cleat_error *error) {
    int32_t *order = cleat_alloc(targets->count, sizeof *order);
    if (!order) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for labels");
    qsort(targets->all, targets->count, sizeof *targets->all, by_name);
    for (size_t k = 0; k < targets->count; ++k) order[targets->all[k].number] = (int32_t)k;
    for (size_t i = 0; i < targets->n_entries; ++i) targets->entries[i].target = order[targets->entries[i].target];
    cleat_free(order);
    return CLEAT_OK;
}

/* Running means and squared deviations (Welford 1962). */
static void fit_to(cleat_targets *targets, size_t sample) {
    for (size_t i = targets->starts[sample]; i < targets->starts[sample + 1]; ++i) {
        cleat_target *t = &targets->all[targets->entries[i].target];
        const double value = (double)targets->entries[i].value, difference = value - t->mean;
        if (isnan(value)) continue;
        t->mean += difference / (double)++t->samples;
        t->std += difference * (value - t->mean);
    }
}

cleat_status cleat_targets_fit(cleat_targets *targets, const cleat_dataset *dataset, const char *path,
                               cleat_error *error) {
    if (targets->fitted) return CLEAT_OK;
    if (!targets->count)
        return cleat_fail(error, CLEAT_ERR_FORMAT, "%s: no row has a label; is data.label_column the right column?",
                          path);
    if (targets->is_list && !targets->was_split)
        cleat_log(CLEAT_LOG_WARNING,
                  "%s: no row has more than one label; if another mark separates them, set data.label_separator; if "
                  "each row has one, model.problem_type = single_label suits better",
                  path);
    cleat_status status = targets->named ? CLEAT_OK : sort(targets, error);
    for (size_t k = 0; k < targets->count; ++k) targets->all[k].std = 0;
    for (size_t s = 0; s < targets->rows; ++s)
        if (cleat_dataset_split(dataset, s) == CLEAT_SPLIT_TRAIN) fit_to(targets, s);
    for (size_t k = 0; k < targets->count && !status; ++k) {
        cleat_target *t = &targets->all[k];
        t->std = are_numbers(targets) ? sqrt(t->std / (double)t->samples) : 1;
        if (!(t->std > 0))
            status = cleat_fail(error, CLEAT_ERR_FORMAT,
                                "%s: '%s' %s in all rows of the training part; leave it out of data.label_column", path,
                                t->name, t->samples ? "has the same value" : "is empty");
    }
    cleat_string line = {0};
    for (size_t k = 0; k < targets->count && !status && line.size < 800; ++k) {
        const cleat_target *t = &targets->all[k];
        cleat_string_add(&line, "%s%s %lld", k ? ", " : "", t->name, (long long)t->samples);
        if (are_numbers(targets)) cleat_string_add(&line, " (mean %.6g, deviation %.6g)", t->mean, t->std);
    }
    if (line.data) cleat_log(CLEAT_LOG_INFO, "%s: training split: %s", path, line.data);
    cleat_string_free(&line);
    return status;
}

cleat_status cleat_targets_save(const cleat_targets *targets, const char *folder, cleat_error *error) {
    cleat_string text = {0};
    json_add(&text, json_open(NULL, '{'), json_text("problem_type", cleat_problem_names[targets->options.problem]),
             json_bool("standardise", targets->options.standardise), json_open("targets", '['));
    for (size_t k = 0; k < targets->count; ++k) {
        const cleat_target *t = &targets->all[k];
        json_add(&text, json_open(NULL, '{'), json_text("name", t->name), json_count("samples", t->samples),
                 json_exact("mean", t->mean), json_exact("std", t->std), json_exact("threshold", t->threshold),
                 json_close('}'));
    }
    json_add(&text, json_close(']'), json_close('}'));
    return cleat_file_write_in(folder, CLEAT_TARGETS_FILE, &text, error);
}

cleat_status cleat_targets_read(const char *folder, cleat_targets *targets, cleat_error *error) {
    cJSON *object = NULL;
    cleat_status status = cleat_json_read_file(folder, CLEAT_TARGETS_FILE, &object, error);
    const char *problem = cleat_json_text(object, "problem_type");
    const cJSON *item;
    bool good = problem != NULL;
    cJSON_ArrayForEach(item, cleat_json_member(object, "targets")) {
        const char *name = cleat_json_text(item, "name");
        good = good && name;
        if (good && !status) status = add_name(targets, name, CLEAT_TARGETS_FILE, error);
        if (!good || status) break;
        cleat_target *t = &targets->all[targets->count - 1];
        const double samples = cleat_json_number(item, "samples");
        t->mean = cleat_json_number(item, "mean");
        t->std = cleat_json_number(item, "std");
        t->threshold = cleat_json_number(item, "threshold");
        good = samples >= 0 && samples < 1e15 && isfinite(t->mean) && t->std > 0 && isfinite(t->std) &&
               isfinite(t->threshold);
        t->samples = good ? (int64_t)samples : 0;
    }
    if (!status && (!good || !targets->count))
        status = cleat_fail(error, CLEAT_ERR_FORMAT,
                            "%s/%s: missing, or not as training writes it; copy it from the run folder again", folder,
                            CLEAT_TARGETS_FILE);
    targets->options.problem = problem && strcmp(problem, "regression") == 0 ? CLEAT_REGRESSION : CLEAT_MULTI_LABEL;
    targets->options.standardise = cJSON_IsTrue(cleat_json_member(object, "standardise"));
    targets->fitted = true;
    cJSON_Delete(object);
    return status;
}
