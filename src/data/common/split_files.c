/* Assigns the samples of a folder to splits, by name. */
#include "data/common/split_files.h"

#include "core/files.h"
#include "core/memory.h"
#include "core/name_table.h"
#include "data/common/source.h"
#include "data/dataset.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { NAME_BYTES = 256 };

/* Assigns the sample of one line, whose name has been trimmed. */
static cleat_status assign_line(const cleat_source *source, size_t line, const char *name, cleat_split split,
                                const cleat_name_table *known, cleat_split *splits, cleat_error *error) {
    uint32_t index = 0;
    if (!cleat_name_table_find(known, name, &index))
        return cleat_fail(error, CLEAT_ERR_FORMAT,
                          "%s:%zu: no sample is named '%.100s'; each line is a file name without folder and extension",
                          source->path, line, name);
    if (splits[index] != CLEAT_SPLIT_TRAIN && splits[index] != split)
        return cleat_fail(error, CLEAT_ERR_FORMAT,
                          "%s:%zu: '%.100s' is also in %s.txt; delete it from one of the files", source->path, line,
                          name, cleat_split_name(splits[index]));
    splits[index] = split;
    return CLEAT_OK;
}

static cleat_status next_line(cleat_source *source, size_t line, char name[NAME_BYTES], cleat_error *error) {
    size_t size = strcspn(source->at, "\n"), first = strspn(source->at, " \t\r"), end = size;
    if (first > size) first = size;
    while (end > first && strchr(" \t\r", source->at[end - 1])) --end;
    if (end - first >= NAME_BYTES)
        return cleat_fail(error, CLEAT_ERR_FORMAT, "%s:%zu: a name of %zu bytes; each line is the name of one sample",
                          source->path, line, end - first);
    memcpy(name, source->at + first, end - first);
    name[end - first] = 0;
    source->at += size + (source->at[size] == '\n');
    return CLEAT_OK;
}

/* *there: whether the folder has a file of this split. */
static cleat_status assign_file(const char *folder, cleat_split split, const cleat_name_table *known,
                                cleat_split *splits, bool *there, cleat_faults *faults, cleat_error *error) {
    char path[CLEAT_FILE_PATH], name[NAME_BYTES];
    cleat_source source;
    cleat_error why;
    *there = false;
    snprintf(name, sizeof name, "%s.txt", cleat_split_name(split));
    cleat_status status = cleat_path_join(folder, name, path, sizeof path, error);
    if (status || !cleat_file_exists(path)) return status;
    status = cleat_source_read(path, true, &source, error);
    if (status) return status;
    for (size_t line = 1; source.at < source.end && !status; ++line) {
        status = next_line(&source, line, name, error);
        if (!status && *name && assign_line(&source, line, name, split, known, splits, &why) != CLEAT_OK)
            status = cleat_faults_add(faults, &why, error);
    }
    cleat_source_close(&source);
    *there = true;
    return status;
}

cleat_status cleat_split_files_read(const char *folder, const char *const *names, size_t count, double val_fraction,
                                    double test_fraction, const cleat_fold *fold, cleat_split *splits,
                                    cleat_faults *faults, cleat_error *error) {
    cleat_name_table known = {0};
    cleat_status status = CLEAT_OK;
    bool has_val = false, has_test = false;
    for (size_t i = 0; i < count && !status; ++i) {
        splits[i] = CLEAT_SPLIT_TRAIN;
        status = cleat_name_table_add(&known, names[i], (uint32_t)i, error);
    }
    if (!status) status = assign_file(folder, CLEAT_SPLIT_VAL, &known, splits, &has_val, faults, error);
    if (!status) status = assign_file(folder, CLEAT_SPLIT_TEST, &known, splits, &has_test, faults, error);
    if (!status)
        status = cleat_split_names(names, NULL, count, has_val ? 0 : val_fraction, has_test ? 0 : test_fraction, fold,
                                   splits, error);
    cleat_name_table_free(&known);
    return status;
}

cleat_status cleat_split_names(const char *const *names, const int32_t *classes, size_t count, double val_fraction,
                               double test_fraction, const cleat_fold *fold, cleat_split *splits, cleat_error *error) {
    double *places = cleat_alloc(count, sizeof *places);
    cleat_split *hashed = cleat_alloc(count, sizeof *hashed);
    cleat_status status = places && hashed
                              ? CLEAT_OK
                              : cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the splits of %zu samples", count);
    for (size_t i = 0; i < count && !status; ++i) {
        if (fold->count && splits[i] == CLEAT_SPLIT_VAL) splits[i] = CLEAT_SPLIT_TRAIN;
        places[i] = splits[i] == CLEAT_SPLIT_TRAIN ? cleat_hashed_place(names[i], strlen(names[i])) : INFINITY;
    }
    if (!status) cleat_hashed_splits(places, count, fold->count ? 0 : val_fraction, test_fraction, hashed);
    if (!status) status = cleat_hashed_fold(places, classes, count, fold, hashed, error);
    for (size_t i = 0; i < count && !status; ++i)
        if (splits[i] == CLEAT_SPLIT_TRAIN) splits[i] = hashed[i];
    cleat_free(places);
    cleat_free(hashed);
    return status;
}
