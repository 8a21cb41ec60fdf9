/* Labels of a dataset of texts: their source, their order, and the mapping of the set's names to them. */
#include "data/text/set.h"

#include "core/files.h"
#include "core/memory.h"
#include "core/string.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Appends a name written by a user at `place`; a duplicate is an error. */
static cleat_status append_once(cleat_name_list *list, const char *name, size_t size, const char *place,
                                cleat_error *error) {
    char shown[CLEAT_EXCERPT_SIZE];
    if (list->count >= CLEAT_TEXT_MAX_LABELS)
        return cleat_fail(error, CLEAT_ERR_FORMAT, "%s: more than %d labels", place, CLEAT_TEXT_MAX_LABELS);
    cleat_status status = cleat_name_list_add_part(list, name, size, error);
    if (!status && cleat_name_list_find(list, list->names[list->count - 1]) != (int)list->count - 1)
        status = cleat_fail(error, CLEAT_ERR_FORMAT, "%s: duplicate label '%s'", place,
                            cleat_format_excerpt(name, size, shown));
    return status;
}

/* A name with blanks is in quotes: "very good" bad. */
static cleat_status from_option(const char *text, cleat_name_list *list, cleat_error *error) {
    cleat_name_list names = {0};
    cleat_status status = cleat_names_split(text, "data.labels", &names, error);
    for (size_t i = 0; i < names.count && !status; ++i)
        status = append_once(list, names.names[i], strlen(names.names[i]), "data.labels", error);
    cleat_name_list_free(&names);
    return status;
}

/* Reads the number that a label is, or ends in (LABEL_10). */
static bool read_number(const char *name, double *number) {
    return cleat_number_parse(*name == '-' ? name : name + strcspn(name, "0123456789"), number);
}

static int by_number(const void *a, const void *b) {
    double first = 0, second = 0;
    (void)(read_number(*(char *const *)a, &first) && read_number(*(char *const *)b, &second));
    return first == second ? cleat_by_bytes(a, b) : first < second ? -1 : 1;
}

/* Whether all labels are numbers after the same letters. Rows of a published output layer are in numerical
 * order; byte order has 10 before 2. */
static bool are_numbers(const cleat_name_list *list) {
    double number;
    for (size_t i = 0; i < list->count; ++i) {
        const size_t size = strcspn(list->names[i], "-0123456789");
        if (!read_number(list->names[i], &number) || strncmp(list->names[i], list->names[0], size) != 0 ||
            strcspn(list->names[0], "-0123456789") != size)
            return false;
    }
    return true;
}

static cleat_status from_training(const cleat_text_set *set, cleat_name_list *list, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; i < set->n_names && !status; ++i)
        if (set->names[i].trained) status = cleat_name_list_add(list, set->names[i].name, error);
    if (!status && list->count)
        qsort(list->names, list->count, sizeof *list->names, are_numbers(list) ? by_number : cleat_by_bytes);
    return status;
}

static const char FILE_NAME[] = "labels.txt", SAMPLES_NAME[] = "label_samples.txt";

/* For tags line 1 is O, followed by B-x and I-x alternately; the x are the types. */
static cleat_status read_tag_line(const char *place, size_t number, const char *line, size_t size,
                                  cleat_name_list *list, cleat_error *error) {
    char shown[CLEAT_EXCERPT_SIZE];
    if (number == 1 && size == 1 && *line == 'O') return CLEAT_OK;
    char wanted = number % 2 == 0 ? 'B' : 'I';
    bool fits = number > 1 && size > 2 && line[0] == wanted && line[1] == '-';
    if (fits && wanted == 'B') return append_once(list, line + 2, size - 2, place, error);
    const char *type = list->count ? list->names[list->count - 1] : "";
    if (fits && strlen(type) == size - 2 && memcmp(type, line + 2, size - 2) == 0) return CLEAT_OK;
    return cleat_fail(error, CLEAT_ERR_FORMAT,
                      "%s: '%s' is out of order; the labels of a tagger are O, B-x, I-x, B-y, I-y, ... (labels of a "
                      "classifier? then change model.type in the profile)",
                      place, cleat_format_excerpt(line, size, shown));
}

static cleat_status from_folder(const char *folder, cleat_text_task task, cleat_name_list *list, cleat_error *error) {
    cleat_source source;
    char path[4096], place[4200];
    size_t number = 0;
    cleat_status status = cleat_path_join(folder, FILE_NAME, path, sizeof path, error);
    if (!status) status = cleat_source_read(path, true, &source, error);
    if (status) return status;
    while (source.at < source.end && !status) {
        size_t size = strcspn(source.at, "\r\n");
        snprintf(place, sizeof place, "%s:%zu", path, ++number);
        if (!size)
            status = cleat_fail(error, CLEAT_ERR_FORMAT, "%s: an empty line; every line must be a label", place);
        else if (task == CLEAT_TEXT_TAGS)
            status = read_tag_line(place, number, source.at, size, list, error);
        else
            status = append_once(list, source.at, size, place, error);
        source.at += size;
        if (*source.at == '\r') ++source.at;
        if (*source.at == '\n') ++source.at;
    }
    cleat_source_close(&source);
    return status;
}

static cleat_status unknown_label(const cleat_text_set *set, const cleat_text_name *name, const cleat_name_list *list,
                                  cleat_error *error) {
    const cleat_text_options *options = set->options;
    const bool fitted = *cleat_text_option(options->fitted);
    const bool of_setting = !fitted && *cleat_text_option(options->labels);
    const char *source = fitted ? "labels.txt of the model" : of_setting ? "data.labels" : "the training split";
    const char *near = cleat_nearest_name(name->name, (const char *const *)list->names, list->count);
    char shown[CLEAT_EXCERPT_SIZE];
    cleat_string known = {0};
    for (size_t i = 0; i < list->count && known.size < 400; ++i)
        cleat_string_add(&known, "%s%s", i ? ", " : "", list->names[i]);
    cleat_status status =
        cleat_fail(error, CLEAT_ERR_FORMAT, "%s:%zu: unknown label '%s': %s has %s%s%s%s", name->path, name->line,
                   cleat_format_excerpt(name->name, strlen(name->name), shown), source,
                   known.data ? known.data : "none", near ? "; did you mean '" : "", near ? near : "",
                   near         ? "'?"
                   : of_setting ? "; correct it, remove such rows, or name the labels of this data in "
                                  "data.labels: a published network then gets a new output layer"
                                : "; correct it, or remove such rows");
    cleat_string_free(&known);
    return status;
}

static cleat_status rename_units(cleat_text_set *set, const cleat_name_list *list, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    bool tags = set->options->task == CLEAT_TEXT_TAGS;
    int32_t *ids = cleat_alloc(set->n_names, sizeof *ids);
    if (!ids) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %zu labels", set->n_names);
    for (size_t i = 0; i < set->n_names && !status; ++i) {
        cleat_error why;
        ids[i] = cleat_name_list_find(list, set->names[i].name);
        if (ids[i] >= 0) continue;
        (void)unknown_label(set, &set->names[i], list, &why);
        status = cleat_faults_add(&set->faults, &why, error);
    }
    if (!status) status = cleat_faults_report(&set->faults, error);
    for (size_t i = 0; i < set->n_units && !status; ++i) {
        int32_t *label = &set->units[i].label;
        if (*label == CLEAT_TEXT_NO_LABEL || (tags && *label == 0)) continue;
        *label = tags ? 2 * ids[(*label - 1) / 2] + 2 - *label % 2 : ids[*label];
    }
    cleat_free(ids);
    return status;
}

/* Classes are copied; types become O, B-x, I-x, ... */
static cleat_status set_label_names(const cleat_name_list *list, cleat_text_task task, cleat_text_labels *labels,
                                    cleat_error *error) {
    bool tags = task == CLEAT_TEXT_TAGS;
    cleat_text_labels made = {.count = tags ? 1 + 2 * list->count : list->count};
    bool failed = !(made.names = cleat_alloc(made.count, sizeof *made.names));
    for (size_t i = 0; i < made.count && !failed; ++i) {
        cleat_string name = {0};
        if (tags && i > 0) cleat_string_add(&name, "%c-", i % 2 ? 'B' : 'I');
        cleat_string_add(&name, "%s", !tags ? list->names[i] : i ? list->names[(i - 1) / 2] : "O");
        failed = cleat_string_detach(&name, &made.names[i], NULL) != CLEAT_OK;
    }
    if (failed) {
        cleat_text_labels_free(&made);
        return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %zu labels", list->count);
    }
    *labels = made;
    return CLEAT_OK;
}

/* Reads the number of training samples of each label of a fitted model; a folder without the file has no
 * counts. */
static cleat_status read_samples(const char *folder, cleat_text_labels *labels, cleat_error *error) {
    cleat_source source;
    char path[4096];
    cleat_status status = cleat_path_join(folder, SAMPLES_NAME, path, sizeof path, error);
    if (status || !cleat_file_exists(path)) return status;
    status = cleat_source_read(path, true, &source, error);
    if (status) return status;
    labels->samples = cleat_alloc(labels->count, sizeof *labels->samples);
    if (!labels->samples)
        status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the counts of %zu labels", labels->count);
    for (size_t i = 0; i < labels->count && !status; ++i) {
        char *end;
        labels->samples[i] = strtoll(source.at, &end, 10);
        if (end == source.at || *end != '\n' || labels->samples[i] < 0)
            status = cleat_fail(error, CLEAT_ERR_FORMAT,
                                "%s:%zu: no count; the file has one for each line of labels.txt and is written by "
                                "training: copy both from the run folder again",
                                path, i + 1);
        source.at = end;
    }
    cleat_source_close(&source);
    return status;
}

static cleat_status check_count(const cleat_text_options *options, size_t count, cleat_error *error) {
    if (options->task == CLEAT_TEXT_CLASSES && count < 2)
        return cleat_fail(
            error, CLEAT_ERR_FORMAT,
            "%zu classes: classification requires two or more; is data.label_column = %s the right column?", count,
            cleat_text_option(options->label_column));
    if (options->task == CLEAT_TEXT_TAGS && !count)
        return cleat_fail(error, CLEAT_ERR_FORMAT,
                          "no entities in the training split: every tag is O; is the last column the tag?");
    return CLEAT_OK;
}

/* Rejects labels that are measured values: all numbers, not 0 to n, and with few rows each; warns of very many. */
static cleat_status check_regression(const cleat_text_set *set, cleat_error *error) {
    enum { FEW = 12, MANY = 50, ROWS = 2, ROWS_OF_DECIMALS = 20 };
    size_t decimals = 0;
    double value, most = 0;
    if (set->options->task != CLEAT_TEXT_CLASSES || set->n_names <= FEW) return CLEAT_OK;
    for (size_t i = 0; i < set->n_names; ++i) {
        char number[32];
        snprintf(number, sizeof number, "%.31s", set->names[i].name);
        number[strcspn(number, ",")] = number[strcspn(number, ",")] ? '.' : 0;
        if (!cleat_number_parse(number, &value)) return CLEAT_OK;
        decimals += value != floor(value);
        most = fmax(most, fabs(value));
    }
    const size_t rows = 2 * decimals < set->n_names ? ROWS : ROWS_OF_DECIMALS;
    const bool sure = rows * set->n_names >= set->n_rows;
    cleat_error why;
    if ((!sure && set->n_names <= MANY) || (!decimals && most <= (double)set->n_names)) return CLEAT_OK;
    cleat_fail(sure ? error : &why, CLEAT_ERR_FORMAT,
               "%s:%zu: data.label_column = %s has %zu different numbers ('%.20s', '%.20s', ...): values to be "
               "estimated. Train with model.problem_type=regression run.metric=spearman; or write a class for "
               "each range of values, such as low, middle and high (if they are classes, list them in "
               "data.labels)",
               set->names[0].path, set->names[0].line, cleat_text_option(set->options->label_column), set->n_names,
               set->names[0].name, set->names[1].name);
    if (!sure) cleat_log(CLEAT_LOG_WARNING, "%s", why.text);
    return sure ? CLEAT_ERR_FORMAT : CLEAT_OK;
}

cleat_status cleat_text_select_labels(cleat_text_set *set, cleat_text_labels *labels, cleat_error *error) {
    const cleat_text_options *options = set->options;
    cleat_name_list list = {0};
    const bool found = !*cleat_text_option(options->fitted) && !*cleat_text_option(options->labels);
    cleat_status status = found ? check_regression(set, error) : CLEAT_OK;
    if (status) return status;
    status = *cleat_text_option(options->fitted)   ? from_folder(options->fitted, options->task, &list, error)
             : *cleat_text_option(options->labels) ? from_option(options->labels, &list, error)
                                                   : from_training(set, &list, error);
    if (!status) status = check_count(options, list.count, error);
    if (!status) status = rename_units(set, &list, error);
    if (!status) status = set_label_names(&list, options->task, labels, error);
    if (!status && *cleat_text_option(options->fitted)) status = read_samples(options->fitted, labels, error);
    cleat_name_list_free(&list);
    return status;
}

cleat_status cleat_text_check_labels(cleat_text_task task, const char *folder, cleat_error *error) {
    cleat_name_list list = {0};
    cleat_status status = from_folder(folder, task, &list, error);
    cleat_name_list_free(&list);
    return status;
}

cleat_status cleat_text_save_labels(const cleat_text_labels *labels, const char *folder, cleat_error *error) {
    cleat_string names = {0}, samples = {0};
    for (size_t i = 0; i < labels->count; ++i) cleat_string_add(&names, "%s\n", labels->names[i]);
    cleat_status status = cleat_file_write_in(folder, FILE_NAME, &names, error);
    if (status) return status;
    for (size_t i = 0; i < labels->count; ++i) cleat_string_add(&samples, "%lld\n", (long long)labels->samples[i]);
    return cleat_file_write_in(folder, SAMPLES_NAME, &samples, error);
}

void cleat_text_labels_free(cleat_text_labels *labels) {
    for (size_t i = 0; labels->names && i < labels->count; ++i) cleat_free(labels->names[i]);
    cleat_free(labels->names);
    cleat_free(labels->samples);
    *labels = (cleat_text_labels){0};
}
