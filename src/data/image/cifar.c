/* Reader of CIFAR-10 binary files: records of a label byte and 32 x 32 red, green and blue bytes. */
#include "data/image/images.h"

#include "core/files.h"
#include "core/memory.h"

#include <stdio.h>
#include <string.h>

enum { SIDE = 32, PLANE = SIDE * SIDE, RECORD = 1 + 3 * PLANE };

/* Split by file name; CLEAT_SPLITS: not a file of this layout. */
static cleat_split split_of(const char *name) {
    if (strcmp(cleat_name_ending(name), ".bin") != 0) return CLEAT_SPLITS;
    if (strncmp(name, "data_batch", 10) == 0) return CLEAT_SPLIT_TRAIN;
    return strncmp(name, "test_batch", 10) == 0 ? CLEAT_SPLIT_TEST : CLEAT_SPLITS;
}

static cleat_status wrong_size(const char *path, size_t size, cleat_error *error) {
    if (size && size % (RECORD + 1) == 0)
        return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED,
                          "%s: %zu bytes are records of %d bytes, those of CIFAR-100 with two labels; only records of "
                          "%d bytes are supported: remove the coarse label from each",
                          path, size, RECORD + 1, RECORD);
    return cleat_fail(error, CLEAT_ERR_FORMAT,
                      "%s: %zu bytes are not a multiple of the record size %d; the file is truncated or not in "
                      "CIFAR-10 layout: copy it again",
                      path, size, RECORD);
}

static cleat_status add_records(const char *path, const char *stem, cleat_split split, const uint8_t *bytes,
                                size_t records, cleat_image_set *set, cleat_error *error) {
    char id[300];
    uint8_t *block = cleat_alloc(records, RECORD - 1);
    if (!block) return cleat_fail(error, CLEAT_ERR_MEMORY, "%s: no memory for %zu images", path, records);
    cleat_status status = cleat_image_set_add_block(set, block, error);
    for (size_t i = 0; i < records && !status; ++i) {
        const uint8_t *record = bytes + i * RECORD;
        uint8_t *pixels = block + i * (RECORD - 1);
        for (int p = 0; p < PLANE; ++p) /* from [3, 32, 32], to [32, 32, 3] */
            for (int c = 0; c < 3; ++c) pixels[3 * p + c] = record[1 + c * PLANE + p];
        if (set->names.count && record[0] >= set->names.count)
            return cleat_fail(
                error, CLEAT_ERR_FORMAT,
                "%s: label %d of record %zu is out of range: batches.meta.txt names %zu classes, 0 to %zu", path,
                record[0], i, set->names.count, set->names.count - 1);
        snprintf(id, sizeof id, "%s-%05zu", stem, i);
        status = cleat_image_set_add(set, id, pixels, record[0], split, error);
    }
    return status;
}

static cleat_status read_file(const char *folder, const char *name, cleat_split split, cleat_image_set *set,
                              cleat_error *error) {
    char path[CLEAT_FILE_PATH], stem[256], *data = NULL;
    size_t size = 0;
    snprintf(stem, sizeof stem, "%.*s", (int)(strlen(name) - 4), name);
    cleat_status status = cleat_path_join(folder, name, path, CLEAT_FILE_PATH, error);
    if (!status) status = cleat_file_read(path, &data, &size, error);
    if (status) return status;
    status = size == 0 || size % RECORD
                 ? wrong_size(path, size, error)
                 : add_records(path, stem, split, (const uint8_t *)data, size / RECORD, set, error);
    cleat_free(data);
    return status;
}

/* One name per line; empty lines are ignored. */
static cleat_status read_names(const char *folder, cleat_image_set *set, cleat_error *error) {
    char path[CLEAT_FILE_PATH], *data = NULL;
    size_t size = 0;
    cleat_status status = cleat_path_join(folder, "batches.meta.txt", path, CLEAT_FILE_PATH, error);
    if (status || !cleat_file_exists(path)) return status;
    status = cleat_file_read(path, &data, &size, error);
    if (status) return status;
    char *rest = NULL;
    for (char *line = strtok_r(data, "\r\n", &rest); line && !status; line = strtok_r(NULL, "\r\n", &rest)) {
        int32_t label;
        line += strspn(line, " \t");
        for (size_t end = strlen(line); end && strchr(" \t", line[end - 1]);) line[--end] = 0;
        if (!*line) continue;
        size_t before = set->names.count;
        status = cleat_image_set_name(set, line, path, &label, error);
        if (!status && set->names.count == before)
            status = cleat_fail(error, CLEAT_ERR_FORMAT, "%s: duplicate class '%.60s'", path, line);
    }
    cleat_free(data);
    return status;
}

static cleat_status read_files(const char *folder, const cleat_name_list *listing, cleat_image_set *set,
                               cleat_error *error) {
    cleat_status status = read_names(folder, set, error);
    bool named = set->names.count > 0;
    set->height = set->width = SIDE;
    set->channels = 3;
    for (size_t i = 0; i < listing->count && !status; ++i) {
        cleat_split split = split_of(listing->names[i]);
        if (split == CLEAT_SPLITS) continue;
        status = read_file(folder, listing->names[i], split, set, error);
        set->parts[split] = true;
    }
    set->official_test = set->ordered = true;
    return !status && !named ? cleat_image_set_number(set, error) : status;
}

cleat_status cleat_cifar_open(const char *folder, cleat_image_set *set, bool *found, cleat_error *error) {
    cleat_name_list listing = {0};
    *found = false;
    cleat_status status = cleat_listing_read(folder, NULL, &listing, error);
    for (size_t i = 0; i < listing.count; ++i) *found |= split_of(listing.names[i]) != CLEAT_SPLITS;
    if (!status && *found) status = read_files(folder, &listing, set, error);
    if (!status && !*found && cleat_name_list_find(&listing, "train.bin") >= 0 &&
        cleat_name_list_find(&listing, "fine_label_names.txt") >= 0)
        status = cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED,
                            "%s: CIFAR-100 files, with two labels per record, are not supported; use the CIFAR-10 "
                            "layout, in data_batch_*.bin and test_batch.bin",
                            folder);
    cleat_name_list_free(&listing);
    return status;
}
