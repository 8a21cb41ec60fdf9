/* Rows of texts and words in an arena, their splits, and the names of their labels. */
#include "data/text/set.h"

#include "data/dataset.h"

#include "core/files.h"
#include "core/memory.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *cleat_text_option(const char *text) {
    return text ? text : "";
}

bool cleat_text_has_pairs(const cleat_text_options *options) {
    return options->task == CLEAT_TEXT_CLASSES && *cleat_text_option(options->text_pair_column);
}

bool cleat_text_has_targets(const cleat_text_options *options) {
    return options->task == CLEAT_TEXT_CLASSES && !options->plain && options->targets.problem != CLEAT_SINGLE_LABEL;
}

cleat_status cleat_text_source(const cleat_text_file *file, cleat_text_set *set, cleat_source *source,
                               cleat_error *error) {
    bool repair = set->options->replace_invalid;
    size_t replaced = 0;
    cleat_status status = cleat_source_read(file->path, !repair, source, error);
    if (status || !repair) return status;
    status = cleat_source_repair_utf8(source, &replaced, error);
    if (status) cleat_source_close(source);
    set->summary.replaced += replaced;
    return status;
}

/* Appends a copy of `text` and a zero byte to the set's bytes. */
static cleat_status keep(cleat_text_set *set, const char *text, size_t size, size_t *start, cleat_error *error) {
    size_t at = set->bytes.size;
    cleat_string_add_bytes(&set->bytes, text, size);
    cleat_string_add_bytes(&set->bytes, "", 1);
    if (set->bytes.failed) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %zu bytes of text", at + size + 1);
    *start = at;
    return CLEAT_OK;
}

bool cleat_text_is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r';
}

cleat_stretch cleat_text_trim(cleat_stretch text) {
    while (text.at < text.end && cleat_text_is_blank(*text.at)) ++text.at;
    while (text.end > text.at && cleat_text_is_blank(text.end[-1])) --text.end;
    return text;
}

bool cleat_text_is_tag(cleat_stretch word) {
    const size_t size = (size_t)(word.end - word.at);
    return (size == 1 && *word.at == 'O') || (size > 2 && word.at[1] == '-' && (*word.at == 'B' || *word.at == 'I'));
}

cleat_status cleat_text_begin_row(cleat_text_set *set, const cleat_text_file *file, const char *id, size_t number,
                                  cleat_error *error) {
    char numbered[32];
    cleat_status status = cleat_grow(&set->rows, set->n_rows, &set->rows_capacity, error);
    if (status) return status;
    cleat_text_row row = {.first = set->n_units, .split = file->split};
    if (!id && file->several)
        snprintf(numbered, sizeof numbered, "%s-%zu", cleat_split_name(file->split), number);
    else if (!id)
        snprintf(numbered, sizeof numbered, "%zu", number);
    const char *kept = id ? id : numbered;
    status = keep(set, kept, strlen(kept), &row.id, error);
    if (!status) set->rows[set->n_rows++] = row;
    return status;
}

cleat_status cleat_text_set_group(cleat_text_set *set, const char *group, cleat_error *error) {
    return keep(set, group, strlen(group), &set->rows[set->n_rows - 1].group, error);
}

cleat_status cleat_text_add_unit(cleat_text_set *set, const char *text, size_t size, int32_t label,
                                 cleat_error *error) {
    cleat_text_unit unit = {.size = size, .label = label, .position = -1};
    cleat_status status = cleat_grow(&set->units, set->n_units, &set->units_capacity, error);
    if (!status) status = keep(set, text, size, &unit.start, error);
    if (status) return status;
    set->units[set->n_units++] = unit;
    ++set->rows[set->n_rows - 1].units;
    return CLEAT_OK;
}

/* Place of a row by a hash of its text; a row without one stays in the split of its file. */
static double place_of(const cleat_text_set *set, const cleat_text_row *row) {
    char text[33], key[64];
    if (row->group) return cleat_hashed_place(set->bytes.data + row->group, strlen(set->bytes.data + row->group));
    if (!row->units) return INFINITY;
    const cleat_text_unit *last = &set->units[row->first + row->units - 1];
    const size_t start = set->units[row->first].start;
    cleat_hash_text(set->bytes.data + start, last->start + last->size + 1 - start, text);
    int length = snprintf(key, sizeof key, "%llu/%s", (unsigned long long)set->options->split_seed, text);
    return cleat_hashed_place(key, (size_t)length);
}

bool cleat_text_fits(const cleat_text_set *set, const cleat_text_row *row) {
    return row->split == CLEAT_SPLIT_TRAIN || (set->options->fold.count && row->split == CLEAT_SPLIT_VAL);
}

static void record_labels(cleat_text_set *set, const cleat_text_row *row) {
    for (size_t i = row->first; i < row->first + row->units && cleat_text_fits(set, row); ++i) {
        int32_t label = set->units[i].label;
        bool tags = set->options->task == CLEAT_TEXT_TAGS;
        if (label == CLEAT_TEXT_NO_LABEL || (tags && label == 0)) continue;
        set->names[tags ? (label - 1) / 2 : label].trained = true;
    }
}

cleat_status cleat_text_assign_splits(cleat_text_set *set, const cleat_text_file *file, size_t first,
                                      cleat_error *error) {
    const size_t count = set->n_rows - first;
    if (!count) return CLEAT_OK;
    cleat_text_row *rows = set->rows + first;
    if (file->val_fraction + file->test_fraction > 0 || file->fold.count) {
        double *places = cleat_alloc(count, sizeof *places);
        cleat_split *splits = cleat_alloc(count, sizeof *splits);
        int32_t *classes = cleat_alloc(count, sizeof *classes);
        const bool there = places && splits && classes, tags = set->options->task == CLEAT_TEXT_TAGS;
        for (size_t i = 0; i < count && there; ++i) {
            places[i] = place_of(set, &rows[i]);
            classes[i] = rows[i].units && !tags ? set->units[rows[i].first].label : CLEAT_TEXT_NO_LABEL;
        }
        cleat_status status = CLEAT_OK;
        if (there) cleat_hashed_splits(places, count, file->val_fraction, file->test_fraction, splits);
        if (there) status = cleat_hashed_fold(places, classes, count, &file->fold, splits, error);
        for (size_t i = 0; i < count && there; ++i)
            if (splits[i] != CLEAT_SPLIT_TRAIN || file->fold.count) rows[i].split = splits[i];
        cleat_free(places);
        cleat_free(splits);
        cleat_free(classes);
        if (!there) return cleat_fail(error, CLEAT_ERR_MEMORY, "%s: no memory for the splits", file->path);
        if (status) return status;
    }
    for (size_t i = 0; i < count; ++i) record_labels(set, &rows[i]);
    return CLEAT_OK;
}

cleat_status cleat_text_name_id(cleat_text_set *set, const char *name, const char *path, size_t line, int32_t *id,
                                cleat_error *error) {
    uint32_t known;
    if (cleat_name_table_find(&set->index, name, &known)) {
        *id = (int32_t)known;
        return CLEAT_OK;
    }
    if (set->n_names >= CLEAT_TEXT_MAX_LABELS)
        return cleat_fail(error, CLEAT_ERR_FORMAT,
                          "%s:%zu: more than %d different labels; is data.label_column the right column?", path, line,
                          CLEAT_TEXT_MAX_LABELS);
    cleat_status status = cleat_grow(&set->names, set->n_names, &set->names_capacity, error);
    if (!status) status = cleat_name_table_add(&set->index, name, (uint32_t)set->n_names, error);
    if (status) return status;
    char *copy = cleat_strdup(name);
    if (!copy) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the label %.40s", name);
    *id = (int32_t)set->n_names;
    set->names[set->n_names++] = (cleat_text_name){.name = copy, .path = path, .line = line};
    return CLEAT_OK;
}

void cleat_text_free_names(cleat_text_set *set) {
    for (size_t i = 0; i < set->n_names; ++i) cleat_free(set->names[i].name);
    cleat_free(set->names);
    set->names = NULL;
    set->n_names = set->names_capacity = 0;
    cleat_name_table_free(&set->index);
}

void cleat_text_set_free(cleat_text_set *set) {
    cleat_text_free_names(set);
    cleat_targets_free(&set->targets);
    cleat_free(set->units);
    cleat_free(set->rows);
    cleat_string_free(&set->bytes);
    *set = (cleat_text_set){0};
}
