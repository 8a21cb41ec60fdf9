/* Reader of tables of texts: each row has an id, a text (or a pair) and its class. Columns are found by name, others
 * are ignored. */
#include "data/text/set.h"

#include "data/common/csv_stream.h"

#include <string.h>

typedef struct text_columns {
    int text, pair, label, id, group; /* all but the first: -1 if not used */
} text_columns;

static bool is_blank(const char *text) {
    return text[strspn(text, " \t\r\n")] == 0;
}

/* The profile may name the id column of other data; without such a column, row numbers are the ids. */
static cleat_status find_id_column(const cleat_csv *csv, const char *name, int *column, cleat_error *error) {
    if (!*name) return CLEAT_OK;
    if (cleat_csv_column(csv, name) < 0) {
        cleat_log(CLEAT_LOG_WARNING,
                  "%s: no column '%s' (data.id_column); row numbers are the ids, as with an empty data.id_column",
                  csv->source.path, name);
        return CLEAT_OK;
    }
    return cleat_csv_need_column(csv, name, column, error);
}

static cleat_status find_columns(const cleat_csv *csv, const cleat_text_options *options, text_columns *columns,
                                 cleat_error *error) {
    *columns = (text_columns){.pair = -1, .label = -1, .id = -1, .group = -1};
    cleat_status status = cleat_csv_need_column(csv, cleat_text_option(options->text_column), &columns->text, error);
    if (status) return cleat_fail_in(error, status, "data.text_column");
    if (cleat_text_has_pairs(options)) {
        status = cleat_csv_need_column(csv, options->text_pair_column, &columns->pair, error);
        if (status) return cleat_fail_in(error, status, "data.text_pair_column");
    }
    if (options->labelled && !cleat_text_has_targets(options)) {
        status = cleat_csv_need_column(csv, cleat_text_option(options->label_column), &columns->label, error);
        if (status) return cleat_fail_in(error, status, "data.label_column");
    }
    if (options->labelled && options->fold.count && *cleat_text_option(options->fold_column)) {
        status = cleat_csv_need_column(csv, options->fold_column, &columns->group, error);
        if (status) return cleat_fail_in(error, status, "data.fold_column");
    }
    return CLEAT_OK;
}

static cleat_status find_targets(const cleat_csv *csv, const cleat_text_options *options, cleat_targets *targets,
                                 cleat_error *error) {
    if (!options->labelled || !cleat_text_has_targets(options)) return CLEAT_OK;
    cleat_status status = cleat_targets_find(targets, csv, cleat_text_option(options->label_column), error);
    return status ? cleat_fail_in(error, status, "data.label_column") : status;
}

static cleat_status find_all_columns(const cleat_csv *csv, const cleat_text_options *options, text_columns *columns,
                                     cleat_error *error) {
    cleat_status status = find_columns(csv, options, columns, error);
    if (status) return status;
    status = find_id_column(csv, cleat_text_option(options->id_column), &columns->id, error);
    return status ? cleat_fail_in(error, status, "data.id_column") : status;
}

static cleat_status read_label(const cleat_csv *csv, int column, cleat_text_set *set, int32_t *label,
                               cleat_error *error) {
    const char *name = column < 0 ? NULL : csv->fields[column];
    *label = CLEAT_TEXT_NO_LABEL;
    if (!name) return CLEAT_OK;
    if (is_blank(name)) return cleat_csv_fail(csv, error, "the label is empty; fill it in, or remove the row");
    if (strpbrk(name, "\r\n"))
        return cleat_csv_fail(csv, error,
                              "a line break in the label; is data.label_column the right column, or a quote missing?");
    return cleat_text_name_id(set, name, csv->source.path, csv->line, label, error);
}

typedef struct table {
    cleat_csv *csv;
    text_columns columns;
    size_t number; /* of the row, from 1 */
    const cleat_text_file *file;
    cleat_text_set *set;
} table;

static cleat_status add_row(void *user, cleat_error *error) {
    table *t = user;
    const cleat_csv *csv = t->csv;
    const cleat_text_file *file = t->file;
    cleat_text_set *set = t->set;
    const text_columns *columns = &t->columns;
    const char *text = csv->fields[columns->text];
    int32_t label;
    ++t->number;
    if (is_blank(text) && set->options->empty == CLEAT_TEXT_EMPTY_SKIP) {
        ++set->summary.skipped;
        return CLEAT_OK;
    }
    if (is_blank(text) && set->options->empty == CLEAT_TEXT_EMPTY_ERROR)
        return cleat_csv_fail(
            csv, error, "the text is empty; remove the row, or set data.empty_texts = skip (skips such rows) or keep");
    cleat_status status = read_label(csv, columns->label, set, &label, error);
    if (!status && set->options->labelled && cleat_text_has_targets(set->options))
        status = cleat_targets_add(&set->targets, csv, error);
    if (!status)
        status = cleat_text_begin_row(set, file, columns->id < 0 ? NULL : csv->fields[columns->id], t->number, error);
    if (!status && columns->group >= 0) status = cleat_text_set_group(set, csv->fields[columns->group], error);
    if (!status) status = cleat_text_add_unit(set, text, strlen(text), label, error);
    if (!status && columns->pair >= 0) {
        const char *second = csv->fields[columns->pair];
        status = cleat_text_add_unit(set, second, strlen(second), CLEAT_TEXT_NO_LABEL, error);
    }
    return status;
}

/* Whether this is a test table that was not requested explicitly and has no labels, as distributed by
 * competitions. */
static bool is_unlabelled_test(const cleat_csv *csv, const cleat_text_file *file, const cleat_text_options *options) {
    cleat_targets targets = {.options = options->targets};
    if (!options->labelled || !file->guessed || file->split != CLEAT_SPLIT_TEST) return false;
    if (!cleat_text_has_targets(options)) return cleat_csv_column(csv, cleat_text_option(options->label_column)) < 0;
    const bool lacks = find_targets(csv, options, &targets, NULL) != CLEAT_OK;
    cleat_targets_free(&targets);
    return lacks;
}

static cleat_status read_rows(cleat_csv *csv, const cleat_text_file *file, cleat_text_set *set, cleat_error *error) {
    table t = {.csv = csv, .file = file, .set = set};
    const size_t faults = set->faults.count;
    cleat_status status = find_all_columns(csv, set->options, &t.columns, error);
    if (!status) status = find_targets(csv, set->options, &set->targets, error);
    if (!status) status = cleat_csv_each(csv, add_row, &t, &set->faults, error);
    if (!status && !t.number && set->faults.count == faults)
        status = cleat_fail(error, CLEAT_ERR_FORMAT, "%s:%zu: no row below the header", file->path, csv->line);
    return status;
}

cleat_status cleat_text_read_table(const cleat_text_file *file, cleat_text_set *set, cleat_error *error) {
    cleat_source source;
    cleat_csv csv;
    cleat_status status = cleat_text_source(file, set, &source, error);
    if (!status) status = cleat_csv_begin(&source, &csv, error);
    if (status) return status;
    cleat_csv_log_separator(&csv);
    if (is_unlabelled_test(&csv, file, set->options))
        cleat_log(CLEAT_LOG_WARNING, "%s: has no column '%s' and is ignored", file->path,
                  cleat_text_option(set->options->label_column));
    else
        status = read_rows(&csv, file, set, error);
    cleat_csv_close(&csv);
    return status;
}

typedef struct table_check {
    const cleat_text_file *file;
    const cleat_text_options *options;
} table_check;

static cleat_status check_columns(const cleat_csv *csv, const void *user, cleat_error *error) {
    const table_check *c = user;
    text_columns columns;
    return is_unlabelled_test(csv, c->file, c->options) ? CLEAT_OK : find_columns(csv, c->options, &columns, error);
}

cleat_status cleat_text_check_columns(const char *path, const cleat_text_options *options, cleat_error *error) {
    cleat_text_files files;
    cleat_status status = cleat_text_find_files(path, options, &files, error);
    for (size_t i = 0; i < files.count && !status && options->task == CLEAT_TEXT_CLASSES; ++i) {
        const table_check check = {.file = &files.files[i], .options = options};
        if (!files.files[i].lines) status = cleat_csv_check_header(files.files[i].path, check_columns, &check, error);
    }
    return status;
}
