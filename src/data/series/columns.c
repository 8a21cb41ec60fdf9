/* Selects the columns of a table that are features, targets and the time. */
#include "data/series/series.h"

#include "core/memory.h"
#include "core/name_table.h"
#include "core/string.h"

#include <string.h>

static cleat_status add_once(cleat_name_list *names, const char *name, const char *what, cleat_error *error) {
    char shown[CLEAT_EXCERPT_SIZE];
    if (!*name) return cleat_fail(error, CLEAT_ERR_ARGUMENT, "the list of %s has an empty name between commas", what);
    if (cleat_name_list_find(names, name) >= 0)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "the list of %s contains '%s' twice", what,
                          cleat_format_excerpt(name, strlen(name), shown));
    return cleat_name_list_add(names, name, error);
}

/* Splits the text at commas and trims spaces around names. An empty text is an empty list. */
static cleat_status split_names(const char *text, const char *what, cleat_name_list *names, cleat_error *error) {
    if (!text || !text[strspn(text, " ")]) return CLEAT_OK;
    char *copy = cleat_strdup(text);
    if (!copy) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the list of %s", what);
    cleat_status status = CLEAT_OK;
    for (char *at = copy, *next = at; !status && next; at = next) {
        next = strchr(at, ',');
        if (next) *next++ = 0;
        at += strspn(at, " ");
        for (size_t length = strlen(at); length && at[length - 1] == ' ';) at[--length] = 0;
        status = add_once(names, at, what, error);
    }
    cleat_free(copy);
    return status;
}

/* Rejects a first line that is not a header. */
static cleat_status check_header(const cleat_csv *csv, cleat_error *error) {
    const char *path = csv->source.path, *first = csv->fields[0];
    char shown[CLEAT_EXCERPT_SIZE];
    int64_t seconds;
    cleat_time_form form = {0};
    if (!cleat_time_parse(first, false, &seconds, &form))
        return cleat_fail(error, CLEAT_ERR_FORMAT,
                          "%s:%zu: begins with the time '%s' instead of column names; add a header line", path,
                          csv->line, cleat_format_excerpt(first, strlen(first), shown));
    return CLEAT_OK;
}

/* Selects all columns except the time and the names of series. */
static cleat_status all_columns(const cleat_csv *csv, int time, int series, cleat_name_list *names,
                                cleat_error *error) {
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; i < csv->count && !status; ++i) {
        if ((int)i == time || (int)i == series) continue;
        if (!*csv->fields[i])
            return cleat_csv_fail(csv, error, "column %zu has no name; name it, or set data.features", i + 1);
        status = cleat_name_list_add(names, csv->fields[i], error);
    }
    if (!status && !names->count) status = cleat_csv_fail(csv, error, "no column besides the time");
    return status;
}

static cleat_status copy_names(const cleat_name_list *from, cleat_name_list *to, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; i < from->count && !status; ++i) status = cleat_name_list_add(to, from->names[i], error);
    return status;
}

static bool same_names(const cleat_name_list *a, const cleat_name_list *b) {
    if (a->count != b->count) return false;
    for (size_t i = 0; i < a->count; ++i)
        if (strcmp(a->names[i], b->names[i]) != 0) return false;
    return true;
}

static cleat_status differs(const char *what, const cleat_name_list *asked, const cleat_name_list *fitted,
                            const char *folder, cleat_error *error) {
    cleat_string had = {0}, has = {0};
    for (size_t i = 0; i < fitted->count; ++i) cleat_string_add(&had, "%s%s", i ? "," : "", fitted->names[i]);
    for (size_t i = 0; i < asked->count; ++i) cleat_string_add(&has, "%s%s", i ? "," : "", asked->names[i]);
    cleat_status status =
        cleat_fail(error, CLEAT_ERR_ARGUMENT,
                   "%s: the %s are %.300s in training and %.300s here; a model requires the columns it was trained on",
                   folder, what, had.data ? had.data : "", has.data ? has.data : "");
    cleat_string_free(&had);
    cleat_string_free(&has);
    return status;
}

/* The requested names: those in the list, or, if it is empty, those of the training. */
static cleat_status names_asked(const char *list, const char *what, const cleat_name_list *fitted, const char *folder,
                                cleat_name_list *names, cleat_error *error) {
    cleat_status status = split_names(list, what, names, error);
    if (status || !fitted) return status;
    if (!names->count) return copy_names(fitted, names, error);
    return same_names(names, fitted) ? CLEAT_OK : differs(what, names, fitted, folder, error);
}

static cleat_status find_column(const cleat_csv *csv, const char *name, const char *setting, int *column,
                                cleat_error *error) {
    if (!name || !*name) return CLEAT_OK;
    const cleat_status status = cleat_csv_need_column(csv, name, column, error);
    return status ? cleat_fail_in(error, status, "%s", setting) : status;
}

/* The columns of a header by name. */
typedef struct header_table {
    cleat_name_table names; /* index of the first column of each name */
    bool *again;            /* [csv->count]: another column has this one's name */
} header_table;

static cleat_status read_header(const cleat_csv *csv, header_table *header, cleat_error *error) {
    uint32_t first;
    cleat_status status = CLEAT_OK;
    if (csv->count > INT32_MAX) return cleat_csv_fail(csv, error, "%zu columns, more than %d", csv->count, INT32_MAX);
    header->again = cleat_alloc(csv->count, sizeof *header->again);
    if (!header->again) return cleat_fail(error, CLEAT_ERR_MEMORY, "%s: no memory for its columns", csv->source.path);
    for (size_t i = 0; i < csv->count && !status; ++i)
        if (cleat_name_table_find(&header->names, csv->fields[i], &first))
            header->again[first] = true;
        else
            status = cleat_name_table_add(&header->names, csv->fields[i], (uint32_t)i, error);
    return status;
}

/* Calls cleat_csv_need_column, which compares all columns, only for its messages. */
static cleat_status need_column(const cleat_csv *csv, const header_table *header, const char *name, int *column,
                                cleat_error *error) {
    uint32_t found;
    if (!cleat_name_table_find(&header->names, name, &found) || header->again[found])
        return cleat_csv_need_column(csv, name, column, error);
    *column = (int)found;
    return CLEAT_OK;
}

/* Sets `target`, and adds the targets that are not features to `used`. */
static cleat_status place_targets(const cleat_name_list *targets, cleat_series_columns *columns, cleat_error *error) {
    cleat_name_table places = {0};
    cleat_status status = CLEAT_OK;
    uint32_t place;
    for (size_t i = 0; i < columns->used.count && !status; ++i)
        if (!cleat_name_table_find(&places, columns->used.names[i], &place))
            status = cleat_name_table_add(&places, columns->used.names[i], (uint32_t)i, error);
    for (size_t k = 0; k < targets->count && !status; ++k) {
        const bool found = cleat_name_table_find(&places, targets->names[k], &place);
        columns->target[k] = found ? place : columns->used.count;
        if (found) continue;
        status = cleat_name_table_add(&places, targets->names[k], (uint32_t)columns->used.count, error);
        if (!status) status = cleat_name_list_add(&columns->used, targets->names[k], error);
    }
    cleat_name_table_free(&places);
    return status;
}

/* Sets `at`. */
static cleat_status place_columns(const cleat_csv *csv, cleat_series_columns *columns, cleat_error *error) {
    const cleat_name_list *used = &columns->used;
    header_table header = {0};
    cleat_status status = read_header(csv, &header, error);
    for (size_t i = 0; i < used->count && !status; ++i) {
        status = need_column(csv, &header, used->names[i], &columns->at[i], error);
        if (status) status = cleat_fail_in(error, status, i < columns->features ? "data.features" : "data.targets");
        if (!status && (columns->at[i] == columns->time || columns->at[i] == columns->series))
            status = cleat_fail(
                error, CLEAT_ERR_ARGUMENT, "%s:%zu: '%.100s' is the %s column and cannot also be a feature or target",
                csv->source.path, csv->line, used->names[i], columns->at[i] == columns->time ? "time" : "series");
    }
    cleat_name_table_free(&header.names);
    cleat_free(header.again);
    return status;
}

/* Sets `used`, `target` and `at` from the two lists. */
static cleat_status place(const cleat_csv *csv, const cleat_name_list *features, const cleat_name_list *targets,
                          cleat_series_columns *columns, cleat_error *error) {
    cleat_status status = copy_names(features, &columns->used, error);
    columns->features = features->count;
    columns->targets = targets->count;
    columns->target = cleat_alloc(targets->count, sizeof *columns->target);
    columns->at = cleat_alloc(features->count + targets->count, sizeof *columns->at);
    if (!status && (!columns->target || !columns->at))
        status =
            cleat_fail(error, CLEAT_ERR_MEMORY, "%s: no memory for %zu columns", csv->source.path, columns->used.count);
    if (!status) status = place_targets(targets, columns, error);
    return status ? status : place_columns(csv, columns, error);
}

cleat_status cleat_series_columns_choose(const cleat_csv *csv, const cleat_series_options *options,
                                         const cleat_series_preprocessor *fitted, cleat_series_columns *columns,
                                         cleat_error *error) {
    cleat_series_columns chosen = {.series = -1};
    cleat_name_list features = {0}, targets = {0};
    cleat_status status = check_header(csv, error);
    if (!status) status = find_column(csv, options->series_column, "data.series_column", &chosen.series, error);
    chosen.time = chosen.series == 0; /* the first column but that */
    if (!status)
        status =
            find_column(csv, options->time_column, "data.time_column (empty: the first column)", &chosen.time, error);
    if (!status)
        status = names_asked(options->features, "features", fitted ? &fitted->features : NULL, options->fitted,
                             &features, error);
    if (!status && !features.count) status = all_columns(csv, chosen.time, chosen.series, &features, error);
    if (!status)
        status = names_asked(options->targets, "targets", fitted ? &fitted->targets : NULL, options->fitted, &targets,
                             error);
    if (!status && !targets.count) status = copy_names(&features, &targets, error);
    if (!status) status = place(csv, &features, &targets, &chosen, error);
    cleat_name_list_free(&features);
    cleat_name_list_free(&targets);
    if (status) {
        cleat_series_columns_free(&chosen);
        return status;
    }
    *columns = chosen;
    return CLEAT_OK;
}

void cleat_series_columns_free(cleat_series_columns *columns) {
    cleat_name_list_free(&columns->used);
    cleat_free(columns->target);
    cleat_free(columns->at);
    *columns = (cleat_series_columns){0};
}
