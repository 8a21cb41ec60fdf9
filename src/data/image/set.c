/* The image set that readers fill: its rows, splits, and the mapping of names to classes. */
#include "data/image/images.h"

#include "core/files.h"
#include "core/memory.h"
#include "core/string.h"
#include "data/common/split_files.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CLASSES = 65536 };

void cleat_image_set_free(cleat_image_set *set) {
    for (size_t i = 0; i < set->n_rows; ++i)
        cleat_free(set->rows[i].id), cleat_free(set->rows[i].file), cleat_free(set->rows[i].group);
    for (size_t i = 0; i < set->n_blocks; ++i) cleat_free(set->blocks[i]);
    cleat_free(set->rows);
    cleat_name_list_free(&set->names);
    cleat_free(set->blocks);
    cleat_free(set->root);
    cleat_targets_free(&set->targets);
    *set = (cleat_image_set){0};
}

cleat_status cleat_image_set_add(cleat_image_set *set, const char *id, const uint8_t *pixels, int32_t label,
                                 cleat_split split, cleat_error *error) {
    if (set->n_rows >= UINT32_MAX)
        return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED, "%s: more than 4294967295 images", set->root);
    cleat_status status = cleat_grow(&set->rows, set->n_rows, &set->rows_capacity, error);
    if (status) return status;
    cleat_image_row row = {.id = cleat_strdup(id),
                           .pixels = pixels,
                           .label = label,
                           .split = (uint8_t)split,
                           .channels = (uint8_t)set->channels};
    if (!row.id) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the name %.60s", id);
    set->rows[set->n_rows++] = row;
    return CLEAT_OK;
}

cleat_status cleat_image_set_add_block(cleat_image_set *set, uint8_t *block, cleat_error *error) {
    cleat_status status = cleat_grow(&set->blocks, set->n_blocks, &set->blocks_capacity, error);
    if (!status)
        set->blocks[set->n_blocks++] = block;
    else
        cleat_free(block);
    return status;
}

/* The next significant character of a name in lower case; 0 at the end. ' ', '_' and '-' are insignificant
 * except before a digit, so that 1-2 differs from 12. */
static int next_letter(const char **name) {
    while (**name && strchr(" _-", **name) && !isdigit((unsigned char)(*name)[1])) ++*name;
    return **name ? tolower((unsigned char)*(*name)++) : 0;
}

static bool spelt_alike(const char *a, const char *b) {
    for (;;) {
        int x = next_letter(&a), y = next_letter(&b);
        if (x != y) return false;
        if (!x) return true;
    }
}

cleat_status cleat_image_set_name(cleat_image_set *set, const char *name, const char *place, int32_t *label,
                                  cleat_error *error) {
    for (size_t i = 0; i < set->names.count; ++i) {
        if (strcmp(set->names.names[i], name) == 0) {
            *label = (int32_t)i;
            return CLEAT_OK;
        }
        if (spelt_alike(set->names.names[i], name) && !set->options->predict)
            return cleat_fail(error, CLEAT_ERR_FORMAT,
                              "%s: '%.60s' and '%.60s' are two spellings of one class; rename one of them", place,
                              set->names.names[i], name);
    }
    if (set->names.count >= MAX_CLASSES)
        return cleat_fail(error, CLEAT_ERR_FORMAT, "%s: more than %d classes", place, MAX_CLASSES);
    cleat_status status = cleat_name_list_add(&set->names, name, error);
    if (!status) *label = (int32_t)set->names.count - 1;
    return status;
}

cleat_status cleat_image_set_number(cleat_image_set *set, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    int32_t most = -1;
    char name[16];
    for (size_t i = 0; i < set->n_rows; ++i) most = set->rows[i].label > most ? set->rows[i].label : most;
    for (int32_t i = 0; i <= most && !status; ++i) {
        snprintf(name, sizeof name, "%d", i);
        status = cleat_name_list_add(&set->names, name, error);
    }
    set->numbered = true;
    return status;
}

static bool is_fitted(const cleat_image_set *set) {
    return set->options->fitted && *set->options->fitted;
}

static cleat_status assign_splits(cleat_image_set *set, cleat_error *error) {
    const cleat_image_options *options = set->options;
    bool test_validates = set->official_test && !set->parts[CLEAT_SPLIT_VAL] && !(options->val_fraction > 0) &&
                          !options->predict && !options->fold.count;
    if (test_validates) {
        set->parts[CLEAT_SPLIT_VAL] = set->parts[CLEAT_SPLIT_TEST];
        set->parts[CLEAT_SPLIT_TEST] = false;
    }
    double val = set->parts[CLEAT_SPLIT_VAL] ? 0 : options->val_fraction;
    double test = set->parts[CLEAT_SPLIT_TEST] ? 0 : options->test_fraction;
    const char **names = cleat_alloc(set->n_rows, sizeof *names);
    cleat_split *splits = cleat_alloc(set->n_rows, sizeof *splits);
    int32_t *labels = cleat_alloc(set->n_rows, sizeof *labels);
    cleat_status status = names && splits && labels
                              ? CLEAT_OK
                              : cleat_fail(error, CLEAT_ERR_MEMORY, "%s: no memory for the splits", set->root);
    bool grouped = is_fitted(set) || !options->fold.count || !options->fold_column || !*options->fold_column;
    for (size_t i = 0; i < set->n_rows && !status; ++i) {
        const cleat_image_row *row = &set->rows[i];
        grouped |= row->group != NULL;
        names[i] = row->group ? row->group : row->id;
        labels[i] = row->label;
        splits[i] = options->predict                                   ? CLEAT_SPLIT_TEST
                    : test_validates && row->split == CLEAT_SPLIT_TEST ? CLEAT_SPLIT_VAL
                                                                       : (cleat_split)row->split;
    }
    if (!status && !grouped)
        status = cleat_fail(error, CLEAT_ERR_ARGUMENT, "data.fold_column: %s is not a table of images", set->root);
    if (!status) status = cleat_split_names(names, labels, set->n_rows, val, test, &options->fold, splits, error);
    for (size_t i = 0; i < set->n_rows && !status; ++i) set->rows[i].split = (uint8_t)splits[i];
    cleat_free(names);
    cleat_free(splits);
    cleat_free(labels);
    return status;
}

static bool has_classes(const cleat_image_set *set) {
    return set->options->classes && set->options->classes[strspn(set->options->classes, " \t\n")];
}

static cleat_status classes_from_option(const char *text, cleat_image_preprocessor *fitted, cleat_error *error) {
    char name[256];
    cleat_status status = CLEAT_OK;
    for (const char *at = text + strspn(text, " \t\n"); *at && !status; at += strspn(at, " \t\n")) {
        int size = (int)strcspn(at, " \t\n");
        snprintf(name, sizeof name, "%.*s", size, at);
        if (cleat_name_list_find(&fitted->classes, name) >= 0)
            return cleat_fail(error, CLEAT_ERR_ARGUMENT, "the classes: duplicate '%s'", name);
        status = cleat_name_list_add(&fitted->classes, name, error);
        at += size;
    }
    return status;
}

/* Classes are the names that occur in the training split. If classes have numbers, unused ones in between are
 * kept, so that a class index equals the data's number. */
static cleat_status classes_from_training(const cleat_image_set *set, cleat_image_preprocessor *fitted,
                                          cleat_error *error) {
    cleat_status status = CLEAT_OK;
    bool *trained = cleat_alloc(set->names.count, sizeof *trained);
    if (!trained) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %zu classes", set->names.count);
    for (size_t i = 0; i < set->n_rows; ++i)
        if (set->rows[i].split == CLEAT_SPLIT_TRAIN && set->rows[i].label >= 0) trained[set->rows[i].label] = true;
    size_t ordered = set->ordered ? set->names.count : 0;
    while (set->numbered && ordered && !trained[ordered - 1]) --ordered;
    for (size_t i = 0; i < set->names.count && !status; ++i)
        if (set->ordered ? i < ordered : trained[i])
            status = cleat_name_list_add(&fitted->classes, set->names.names[i], error);
    if (!status && !set->ordered && fitted->classes.count)
        qsort(fitted->classes.names, fitted->classes.count, sizeof *fitted->classes.names, cleat_by_bytes);
    cleat_free(trained);
    return status;
}

static cleat_status assign_classes(const cleat_image_set *set, cleat_image_preprocessor *fitted, cleat_error *error) {
    if (is_fitted(set)) return CLEAT_OK;
    cleat_status status = has_classes(set) ? classes_from_option(set->options->classes, fitted, error)
                                           : classes_from_training(set, fitted, error);
    if (!status && fitted->classes.count < 2)
        status = cleat_fail(error, CLEAT_ERR_FORMAT,
                            "%s: %zu classes in the training split: classification requires two or more", set->root,
                            fitted->classes.count);
    return status;
}

/* Length of the part of the id that is shown in messages: the folder of a file, else the whole id. */
static int place_size(const cleat_image_row *row) {
    const char *slash = strrchr(row->id, '/');
    if (row->file) return (int)strlen(row->file); /* of a table */
    return (int)(slash ? (size_t)(slash - row->id) : strlen(row->id));
}

static cleat_status unknown_class(const cleat_image_set *set, const cleat_image_preprocessor *fitted,
                                  const cleat_image_row *row, cleat_error *error) {
    const char *name = set->names.names[row->label];
    const char *source = is_fitted(set) ? "the model" : has_classes(set) ? "data.labels" : "the training split";
    const char *near = cleat_nearest_name(name, (const char *const *)fitted->classes.names, fitted->classes.count);
    cleat_string known = {0};
    for (size_t i = 0; i < fitted->classes.count && known.size < 400; ++i)
        cleat_string_add(&known, "%s%s", i ? ", " : "", fitted->classes.names[i]);
    cleat_status status = cleat_fail(error, CLEAT_ERR_FORMAT, "%s/%.*s: unknown class '%.60s': %s has %s%s%s%s",
                                     set->root, place_size(row), row->file ? row->file : row->id, name, source,
                                     known.data ? known.data : "none", near ? "; did you mean '" : "", near ? near : "",
                                     near ? "'?" : "; rename it, add training images of it, or remove it");
    cleat_string_free(&known);
    return status;
}

static int32_t class_of(const cleat_image_set *set, const cleat_image_preprocessor *fitted, size_t name) {
    if (set->numbered) return name < fitted->classes.count ? (int32_t)name : CLEAT_NO_CLASS;
    const int found = cleat_name_list_find(&fitted->classes, set->names.names[name]);
    return found < 0 ? CLEAT_NO_CLASS : found;
}

static cleat_status rename_rows(cleat_image_set *set, const cleat_image_preprocessor *fitted, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    int32_t *classes = cleat_alloc(set->names.count, sizeof *classes);
    if (!classes) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %zu classes", set->names.count);
    for (size_t i = 0; i < set->names.count; ++i) classes[i] = class_of(set, fitted, i);
    for (size_t i = 0; i < set->n_rows && !status; ++i) {
        cleat_image_row *row = &set->rows[i];
        if (row->label == CLEAT_NO_CLASS) continue;
        if (classes[row->label] == CLEAT_NO_CLASS && !set->options->predict)
            status = unknown_class(set, fitted, row, error);
        else
            row->label = classes[row->label];
    }
    cleat_free(classes);
    return status;
}

/* A class that occurs only in validation or test data would never be learned and is an error. */
static cleat_status check_trained(const cleat_image_set *set, const cleat_image_preprocessor *fitted,
                                  cleat_error *error) {
    cleat_status status = CLEAT_OK;
    int64_t *trained = cleat_alloc(fitted->classes.count, sizeof *trained);
    double number;
    if (!trained) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %zu classes", fitted->classes.count);
    for (size_t i = 0; i < set->n_rows; ++i)
        if (set->rows[i].split == CLEAT_SPLIT_TRAIN) ++trained[set->rows[i].label];
    for (size_t i = 0; i < set->n_rows && !status; ++i) {
        const cleat_image_row *row = &set->rows[i];
        if (!trained[row->label])
            status = cleat_fail(error, CLEAT_ERR_FORMAT,
                                "%s/%.*s: the class '%.60s' has no images in the training split; add images, reduce "
                                "data.val_fraction, or remove the class%s",
                                set->root, place_size(row), row->file ? row->file : row->id,
                                fitted->classes.names[row->label],
                                cleat_number_parse(fitted->classes.names[row->label], &number)
                                    ? "; if numbers are to be estimated, set model.problem_type=regression"
                                    : "");
    }
    for (size_t i = 0; i < fitted->classes.count && !status; ++i)
        if (!trained[i])
            cleat_log(CLEAT_LOG_WARNING, "%s: the class '%s' has no images", set->root, fitted->classes.names[i]);
    cleat_free(trained);
    return status;
}

cleat_status cleat_image_set_assign_classes(cleat_image_set *set, cleat_image_preprocessor *fitted,
                                            cleat_error *error) {
    if (!set->n_rows) return cleat_fail(error, CLEAT_ERR_FORMAT, "%s: no images are left", set->root);
    const bool has_targets = set->targets.options.problem != CLEAT_SINGLE_LABEL;
    cleat_status status = has_targets ? CLEAT_OK : assign_classes(set, fitted, error);
    if (!status) status = assign_splits(set, error);
    if (has_targets) return status;
    if (!status && is_fitted(set) && set->numbered && set->names.count && strcmp(fitted->classes.names[0], "0") != 0)
        cleat_log(CLEAT_LOG_WARNING, "%s: labels are numbers: 0 is mapped to class '%s' of the model, and so on",
                  set->root, fitted->classes.names[0]);
    if (!status) status = rename_rows(set, fitted, error);
    if (!status && !is_fitted(set)) status = check_trained(set, fitted, error);
    return status;
}
