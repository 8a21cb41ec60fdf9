/* Tables of images with one class each. */
#include "core/memory.h"
#include "core/name_table.h"
#include "data/image/images.h"
#include "data/image/table.h"

#include <stdio.h>
#include <string.h>

typedef struct classes {
    cleat_image_set *set;
    cleat_image_tables tables;
    cleat_faults faults;
    char root[CLEAT_IMAGE_TABLE_PATH], place[CLEAT_IMAGE_TABLE_PATH + 32];
    int column;             /* -1: no classes */
    cleat_name_table known; /* names of classes and their indices */
} classes;

/* A competition's test table has no classes. */
static cleat_status begin(void *user, const cleat_csv *csv, cleat_split split, bool *skip, cleat_error *error) {
    classes *c = user;
    const cleat_image_options *options = c->set->options;
    const char *name = options->label_column && *options->label_column ? options->label_column : "label";
    c->column = cleat_csv_column(csv, name);
    *skip = c->column < 0 && !options->predict && c->tables.guessed && split == CLEAT_SPLIT_TEST;
    if (*skip) cleat_log(CLEAT_LOG_WARNING, "%s: has no column '%s' and is ignored", csv->source.path, name);
    c->set->parts[split] = !*skip;
    if (*skip || (c->column < 0 && options->predict)) return CLEAT_OK;
    cleat_status status = cleat_csv_need_column(csv, name, &c->column, error);
    return status ? cleat_fail_in(error, status, "data.label_column") : CLEAT_OK;
}

static cleat_status label_of(classes *c, const cleat_csv *csv, int32_t *label, cleat_error *error) {
    const char *name = c->column < 0 ? "" : csv->fields[c->column];
    uint32_t index = (uint32_t)CLEAT_NO_CLASS;
    const bool blank = !name[strspn(name, " \t")];
    if (blank && !c->set->options->predict)
        return cleat_csv_fail(csv, error, "the class is empty; fill it in, or remove the row");
    const bool known = blank || cleat_name_table_find(&c->known, name, &index);
    *label = (int32_t)index;
    if (known) return CLEAT_OK;
    snprintf(c->place, sizeof c->place, "%s:%zu", csv->source.path, csv->line);
    cleat_status status = cleat_image_set_name(c->set, name, c->place, label, error);
    return status ? status : cleat_name_table_add(&c->known, name, (uint32_t)*label, error);
}

static cleat_status add_row(void *user, const cleat_csv *csv, const char *id, const char *file, cleat_split split,
                            cleat_error *error) {
    classes *c = user;
    int32_t label;
    cleat_status status = label_of(c, csv, &label, error);
    if (!status) status = cleat_image_set_add(c->set, id, NULL, label, split, error);
    if (status) return status;
    cleat_image_row *added = &c->set->rows[c->set->n_rows - 1];
    added->unreadable = !file;
    if (file && strcmp(file, id) != 0 && !(added->file = cleat_strdup(file)))
        return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the name %.60s", id);
    return CLEAT_OK;
}

cleat_status cleat_image_table_open(const char *path, cleat_image_set *set, bool *found, cleat_error *error) {
    classes *c = cleat_alloc(1, sizeof *c);
    if (!c) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for reading a table");
    const cleat_image_table_reader reader = {.begin = begin, .row = add_row, .user = c};
    c->set = set;
    cleat_status status = cleat_image_tables_find(path, &c->tables, found, error);
    if (status || !*found) goto done;
    status = cleat_image_tables_read(&c->tables, set->options, &reader, c->root, &c->faults, error);
    cleat_free(set->root);
    set->root = cleat_strdup(c->root);
    if (!status && !set->root) status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a path");
    if (!status) status = cleat_image_set_probe(set, &c->faults, error);
done:
    cleat_name_table_free(&c->known);
    cleat_free(c);
    return status;
}
