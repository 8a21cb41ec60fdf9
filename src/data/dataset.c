/* Common part of all datasets: argument checks, padding, and calls of the format's functions. */
#include "data/dataset.h"

#include "core/files.h"
#include "core/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *cleat_split_name(cleat_split split) {
    static const char *const names[CLEAT_SPLITS] = {"train", "val", "test"};
    return (unsigned)split < CLEAT_SPLITS ? names[split] : "unknown";
}

double cleat_hashed_place(const void *bytes, size_t size) {
    char text[33];
    cleat_hash_text(bytes, size, text);
    text[12] = 0; /* 48 bits, which a double represents exactly */
    return (double)strtoull(text, NULL, 16) / (double)(1ull << 48);
}

/* Moves all training samples of the lowest place to `split`. Returns their number, 0 if no others would be
 * left. */
static size_t move_lowest(const double *places, size_t count, cleat_split split, cleat_split *splits) {
    double lowest = INFINITY;
    size_t moved = 0, left = 0;
    for (size_t i = 0; i < count; ++i)
        if (splits[i] == CLEAT_SPLIT_TRAIN && places[i] < lowest) lowest = places[i];
    for (size_t i = 0; i < count; ++i) left += splits[i] == CLEAT_SPLIT_TRAIN && places[i] > lowest;
    for (size_t i = 0; i < count && left; ++i)
        if (splits[i] == CLEAT_SPLIT_TRAIN && places[i] == lowest) {
            splits[i] = split;
            ++moved;
        }
    return moved;
}

void cleat_hashed_splits(const double *places, size_t count, double val_fraction, double test_fraction,
                         cleat_split *splits) {
    size_t drawn[CLEAT_SPLITS] = {0}, hashed = 0;
    for (size_t i = 0; i < count; ++i) {
        splits[i] = places[i] < test_fraction                  ? CLEAT_SPLIT_TEST
                    : places[i] < test_fraction + val_fraction ? CLEAT_SPLIT_VAL
                                                               : CLEAT_SPLIT_TRAIN;
        ++drawn[splits[i]];
        hashed += places[i] <= 1;
    }
    for (int s = CLEAT_SPLIT_VAL; s <= CLEAT_SPLIT_TEST; ++s) {
        const double fraction = s == CLEAT_SPLIT_VAL ? val_fraction : test_fraction;
        const size_t wanted = drawn[s] ? 0 : (size_t)(fraction * (double)hashed + 0.5);
        for (size_t moved = 0, more = 1; moved < wanted && more; moved += more)
            more = move_lowest(places, count, (cleat_split)s, splits);
    }
}

static int compare_places(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

typedef struct placed_sample {
    double place;
    size_t sample;
} placed_sample;

/* The part that has the smallest shares of the classes of sorted[first, end), and of these the smallest; counts them
 * in `have` [parts + 1][width]: all samples of the part, and those of each class; at last of the set. */
static int64_t deal(const placed_sample *sorted, size_t first, size_t end, const int32_t *classes, int64_t parts,
                    size_t width, double *have) {
    double least = INFINITY, *best = have;
    for (double *part = have; part < have + (size_t)parts * width; part += width) {
        double cost = 1e-9 * part[0];
        for (size_t j = first; j < end; ++j) {
            const size_t class = (size_t)(classes[sorted[j].sample] + 1);
            cost += part[class] / have[(size_t)parts * width + class];
        }
        if (cost < least) least = cost, best = part;
    }
    for (size_t j = first; j < end; ++j) ++best[0], ++best[classes[sorted[j].sample] + 1];
    return (best - have) / (int64_t)width;
}

cleat_status cleat_hashed_fold(const double *places, const int32_t *classes, size_t count, const cleat_fold *fold,
                               cleat_split *splits, cleat_error *error) {
    size_t n = 0, width = 1;
    if (!fold->count) return CLEAT_OK;
    if (fold->index > fold->count)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "data.fold = %lld, but data.folds = %lld", (long long)fold->index,
                          (long long)fold->count);
    for (size_t i = 0; classes && i < count; ++i)
        if (classes[i] + 2 > (int32_t)width) width = (size_t)classes[i] + 2;
    placed_sample *sorted = cleat_alloc(count, sizeof *sorted);
    double *have = cleat_alloc((size_t)(fold->count + 1) * width, sizeof *have);
    const bool there = sorted && have;
    for (size_t i = 0; i < count && there; ++i) {
        if (splits[i] != CLEAT_SPLIT_TRAIN || !(places[i] <= 1)) continue;
        sorted[n++] = (placed_sample){places[i], i};
        if (width > 1) ++have[(size_t)fold->count * width + (size_t)(classes[i] + 1)];
    }
    if (n) qsort(sorted, n, sizeof *sorted, compare_places);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && sorted[end].place == sorted[i].place;) ++end;
        const int64_t part =
            width > 1 ? deal(sorted, i, end, classes, fold->count, width, have) : (int64_t)i * fold->count / (int64_t)n;
        for (size_t j = i; j < end && part == fold->index - 1; ++j) splits[sorted[j].sample] = CLEAT_SPLIT_VAL;
    }
    cleat_free(sorted);
    cleat_free(have);
    return there ? CLEAT_OK : cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the folds of %zu samples", count);
}

void cleat_dataset_destroy(cleat_dataset *dataset) {
    if (dataset) dataset->type->destroy(dataset);
}

size_t cleat_dataset_count(const cleat_dataset *dataset) {
    return dataset->count;
}

const char *cleat_dataset_id(const cleat_dataset *dataset, size_t sample) {
    return sample < dataset->count ? dataset->type->id(dataset, sample) : NULL;
}

int64_t cleat_dataset_length(const cleat_dataset *dataset, size_t sample) {
    return sample < dataset->count ? dataset->type->length(dataset, sample) : 0;
}

int64_t cleat_dataset_items(const cleat_dataset *dataset, size_t sample) {
    if (!dataset->type->items) return cleat_dataset_length(dataset, sample);
    return sample < dataset->count ? dataset->type->items(dataset, sample) : 0;
}

cleat_sample_state cleat_dataset_sample_state(const cleat_dataset *dataset, size_t sample) {
    return dataset->type->state ? dataset->type->state(dataset, sample) : CLEAT_SAMPLE_WHOLE;
}

cleat_status cleat_dataset_save(const cleat_dataset *dataset, const char *folder, cleat_error *error) {
    if (!dataset->type->save) return CLEAT_OK;
    cleat_status status = dataset->type->save(dataset, folder, error);
    if (status || !dataset->type->check_saved) return status;
    status = dataset->type->check_saved(dataset, folder, error);
    return status ? cleat_fail_in(error, status, "what was written cannot be read back") : CLEAT_OK;
}

cleat_split cleat_dataset_split(const cleat_dataset *dataset, size_t sample) {
    return sample < dataset->count ? dataset->type->split(dataset, sample) : CLEAT_SPLITS;
}

cleat_status cleat_dataset_samples(const cleat_dataset *dataset, cleat_split split, uint32_t **samples, size_t *count,
                                   cleat_error *error) {
    size_t wanted = 0;
    for (size_t i = 0; i < dataset->count; ++i) wanted += dataset->type->split(dataset, i) == split;
    uint32_t *list = NULL;
    if (wanted && !(list = cleat_alloc(wanted, sizeof *list)))
        return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a list of %zu samples", wanted);
    size_t used = 0;
    for (size_t i = 0; i < dataset->count; ++i)
        if (dataset->type->split(dataset, i) == split) list[used++] = (uint32_t)i;
    *samples = list;
    *count = wanted;
    return CLEAT_OK;
}

cleat_status cleat_dataset_make_whole(cleat_dataset *dataset, cleat_error *error) {
    if (dataset->whole || !dataset->type->make_whole) return CLEAT_OK;
    cleat_status status = dataset->type->make_whole(dataset, error);
    if (!status) dataset->whole = true;
    return status;
}

bool cleat_dataset_is_whole(const cleat_dataset *dataset) {
    return dataset->whole;
}

void cleat_samples_free(uint32_t *samples) {
    cleat_free(samples);
}

size_t cleat_dataset_fields(const cleat_dataset *dataset) {
    return dataset->type->n_fields;
}

const cleat_field *cleat_dataset_field(const cleat_dataset *dataset, size_t field) {
    return field < dataset->type->n_fields ? &dataset->type->fields[field] : NULL;
}

int cleat_dataset_find_field(const cleat_dataset *dataset, const char *name) {
    for (size_t i = 0; i < dataset->type->n_fields; ++i)
        if (strcmp(dataset->type->fields[i].name, name) == 0) return (int)i;
    return -1;
}

int64_t cleat_field_elements(const cleat_field *field, int64_t length) {
    int64_t elements = 1;
    for (int i = 0; i < field->rank; ++i) elements *= field->shape[i] < 0 ? length : field->shape[i];
    return elements;
}

int64_t cleat_field_bytes(const cleat_field *field, int64_t length) {
    return cleat_field_elements(field, length) * 4; /* i32 or f32 */
}

static void pad_field(const cleat_field *field, int64_t length, void *slot) {
    int64_t elements = cleat_field_elements(field, length);
    if (field->pad == 0) {
        memset(slot, 0, (size_t)elements * 4);
    } else if (field->dtype == CLEAT_F32) {
        for (int64_t i = 0; i < elements; ++i) ((float *)slot)[i] = (float)field->pad;
    } else {
        for (int64_t i = 0; i < elements; ++i) ((int32_t *)slot)[i] = field->pad;
    }
}

void cleat_dataset_fill_empty(const cleat_dataset *dataset, int64_t length, void *const *slots) {
    for (size_t i = 0; i < dataset->type->n_fields; ++i)
        if (slots[i]) pad_field(&dataset->type->fields[i], length, slots[i]);
}

cleat_status cleat_dataset_fill(const cleat_dataset *dataset, size_t sample, int64_t length,
                                const cleat_rng_key *rng_key, void *const *slots, cleat_error *error) {
    if (sample >= dataset->count)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "sample %zu is out of range in a dataset of %zu samples", sample,
                          dataset->count);
    int64_t own = dataset->type->length(dataset, sample);
    if (own > length)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "sample %s has length %lld and does not fit length %lld",
                          dataset->type->id(dataset, sample), (long long)own, (long long)length);
    cleat_dataset_fill_empty(dataset, length, slots);
    return dataset->type->fill(dataset, sample, length, rng_key, slots, error);
}
