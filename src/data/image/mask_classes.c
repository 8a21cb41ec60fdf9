/* Masks whose values are classes: their number, their names, and reading them. */
#include "core/files.h"
#include "core/memory.h"
#include "data/image/masks.h"
#include "json/member.h"

#include <stdio.h>
#include <string.h>

static const char FILE_NAME[] = "labels.txt";

/* The next name of a list separated by `separators`: moves *at to it and returns its size; 0: there are no more. */
static size_t next_name(const char **at, const char *separators) {
    *at += strspn(*at, separators);
    return strcspn(*at, separators);
}

static int64_t count_names(const char *text, const char *separators) {
    int64_t count = 0;
    for (size_t size; text && (size = next_name(&text, separators)) > 0; text += size) ++count;
    return count;
}

cleat_status cleat_mask_classes_of(const cleat_image_options *options, cleat_mask_classes *classes,
                                   cleat_error *error) {
    const int64_t names = count_names(options->classes, " "), asked = options->mask_classes;
    if (asked && names && asked != names)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                          "data.classes = %lld, but data.labels has %lld names; give one name for each class",
                          (long long)asked, (long long)names);
    const int64_t count = asked ? asked : names;
    if (count && (count < 2 || count > CLEAT_MASK_CLASSES))
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "masks of %lld classes: there must be 2 to %d", (long long)count,
                          CLEAT_MASK_CLASSES);
    if (!count && options->reduce_labels)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                          "data.reduce_labels is for masks with classes: set data.classes to their number");
    *classes = (cleat_mask_classes){.count = count, .reduce = options->reduce_labels};
    return CLEAT_OK;
}

/* Appends the names in `text`, one for each class. */
static cleat_status add_names(const char *text, const char *separators, cleat_name_list *names, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    for (size_t size; !status && (size = next_name(&text, separators)) > 0; text += size)
        status = cleat_name_list_add_part(names, text, size, error);
    return status;
}

static cleat_status add_numbers(int64_t count, cleat_name_list *names, cleat_error *error) {
    char name[32];
    cleat_status status = CLEAT_OK;
    for (int64_t c = 0; c < count && !status; ++c) {
        snprintf(name, sizeof name, "class_%lld", (long long)c);
        status = add_names(name, " ", names, error);
    }
    return status;
}

static cleat_status add_lines(const char *path, int64_t count, cleat_name_list *names, cleat_error *error) {
    static const char ends[] = "\r\n";
    char *text = NULL;
    size_t size = 0;
    cleat_status status = cleat_file_read_text(path, &text, &size, error);
    if (status) return status;
    const int64_t lines = count_names(text, ends);
    if (lines != count)
        status = cleat_fail(error, CLEAT_ERR_FORMAT,
                            "%s: has %lld names, but data.classes is %lld; give one line for each class", path,
                            (long long)lines, (long long)count);
    else
        status = add_names(text, ends, names, error);
    cleat_free(text);
    return status;
}

/* *all: the object names each class. */
static cleat_status add_ids(const cJSON *ids, int64_t count, bool *all, cleat_name_list *names, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    *all = cJSON_GetArraySize(ids) == count;
    for (int64_t c = 0; c < count && *all && !status; ++c) {
        char key[24];
        snprintf(key, sizeof key, "%lld", (long long)c);
        const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(ids, key));
        *all = name && strcspn(name, "\r\n") == strlen(name) && name[strspn(name, " ")];
        if (*all) status = add_names(name, "\n", names, error);
    }
    return status;
}

/* The names in a config.json, or numbers if it does not name all classes. */
static cleat_status add_names_of(const char *path, int64_t count, cleat_name_list *names, cleat_error *error) {
    char *text = NULL;
    size_t size = 0;
    bool all = false;
    cleat_status status = cleat_file_read_text(path, &text, &size, error);
    if (status) return status;
    cJSON *object = cJSON_ParseWithLength(text, size);
    status = add_ids(cleat_json_member(object, "id2label"), count, &all, names, error);
    cJSON_Delete(object);
    cleat_free(text);
    if (status || all) return status;
    cleat_name_list_free(names);
    return add_numbers(count, names, error);
}

cleat_status cleat_mask_classes_name(const char *path, const cleat_image_options *options,
                                     const cleat_mask_classes *classes, cleat_image_preprocessor *fitted,
                                     cleat_error *error) {
    char file[CLEAT_FILE_PATH];
    fitted->samples = cleat_alloc((size_t)classes->count, sizeof *fitted->samples);
    if (!fitted->samples)
        return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %lld classes", (long long)classes->count);
    if (count_names(options->classes, " ") > 0) return add_names(options->classes, " ", &fitted->classes, error);
    cleat_status status = cleat_path_join(path, FILE_NAME, file, sizeof file, error);
    if (status) return status;
    if (cleat_file_exists(file)) return add_lines(file, classes->count, &fitted->classes, error);
    return options->names && *options->names && cleat_file_exists(options->names)
               ? add_names_of(options->names, classes->count, &fitted->classes, error)
               : add_numbers(classes->count, &fitted->classes, error);
}

static cleat_status no_class(const char *path, const cleat_mask_classes *classes, const cleat_image *mask, int64_t i,
                             int value, cleat_error *error) {
    const int first = classes->reduce ? 1 : 0;
    return cleat_fail(
        error, CLEAT_ERR_FORMAT,
        "%s: the value %d at row %lld, column %lld is not a class: with data.classes = %lld%s they are %d to "
        "%lld, and %s unlabelled; correct the mask, or set data.classes (or data.reduce_labels)",
        path, value, (long long)(i / mask->width), (long long)(i % mask->width), (long long)classes->count,
        classes->reduce ? " and data.reduce_labels" : "", first, (long long)(classes->count - 1 + first),
        classes->reduce ? "0 and 255 are" : "255 is");
}

cleat_status cleat_mask_read_classes(const char *path, const cleat_mask_classes *classes, cleat_image *mask,
                                     cleat_error *error) {
    cleat_image read = {0};
    cleat_status status = cleat_image_read_ids(path, &read, error);
    if (!status && read.peak > UINT8_MAX)
        status = no_class(path, classes, &read, read.peak_at / read.channels, read.peak, error);
    if (!status && read.channels == 3) status = cleat_mask_to_grey(path, &read, error);
    for (int64_t i = 0; !status && i < read.height * read.width; ++i) {
        const int value = read.pixels[i];
        if (value == CLEAT_MASK_UNLABELLED) continue;
        /* 0 - 1 is 255 in a byte: unlabelled */
        read.pixels[i] = (uint8_t)(value - (classes->reduce ? 1 : 0));
        if (read.pixels[i] == CLEAT_MASK_UNLABELLED || read.pixels[i] < classes->count) continue;
        status = no_class(path, classes, &read, i, value, error);
    }
    if (!status)
        *mask = read;
    else
        cleat_image_free(&read);
    return status;
}
