/* Datasets: one interface to samples of all kinds of data.
 *
 * A dataset contains samples; a sample has one entry for each field that the dataset lists. Letters: B slots
 * of a batch, L padded length.
 *
 * Threads: an open dataset is immutable except for cleat_dataset_make_whole, so any number of threads may
 * read and fill samples at the same time. The threads of the loader do. */
#ifndef CLEAT_DATASET_H
#define CLEAT_DATASET_H

#include "cleat/core.h"
#include "cleat/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cleat_dataset cleat_dataset;

typedef enum cleat_split { CLEAT_SPLIT_TRAIN, CLEAT_SPLIT_VAL, CLEAT_SPLIT_TEST, CLEAT_SPLITS } cleat_split;

/* "train", "val", "test". */
CLEAT_API const char *cleat_split_name(cleat_split split);

/* What a sample of a classifier has: one class, any number of labels, or numbers (transformers' problem_type). */
typedef enum cleat_problem { CLEAT_SINGLE_LABEL, CLEAT_MULTI_LABEL, CLEAT_REGRESSION, CLEAT_PROBLEMS } cleat_problem;
/* The mark between the labels of a cell; ANY: a bar, a semicolon or a comma. */
typedef enum cleat_label_separator {
    CLEAT_SEPARATOR_ANY,
    CLEAT_SEPARATOR_BAR,
    CLEAT_SEPARATOR_SEMICOLON,
    CLEAT_SEPARATOR_COMMA,
    CLEAT_SEPARATOR_BLANK
} cleat_label_separator;
/* Targets of samples that have no single class. */
typedef struct cleat_target_options {
    cleat_problem problem;
    cleat_label_separator separator; /* several labels in one column */
    bool standardise;                /* numbers: to mean 0 and deviation 1 of the training part */
} cleat_target_options;

/* Fold `index`, from 1, of a cross-validation with `count` folds, which is its validation set; count 0: none. */
typedef struct cleat_fold {
    int64_t index, count;
} cleat_fold;

/* One named part of every sample. In a batch it is [B, shape...]. */
typedef struct cleat_field {
    char name[CLEAT_NAME];
    cleat_dtype dtype;             /* CLEAT_I32 or CLEAT_F32 */
    int rank;                      /* rank of one sample; 0: a scalar */
    int64_t shape[CLEAT_MAX_RANK]; /* -1: the padded length L */
    int32_t pad;                   /* value after the end of a sample and in an empty slot */
} cleat_field;

/* Key of the random augmentation of a sample. */
typedef struct cleat_rng_key {
    uint64_t seed;
    uint32_t epoch;
} cleat_rng_key;

CLEAT_API void cleat_dataset_destroy(cleat_dataset *dataset); /* accepts NULL */

/* Number of samples in all splits. */
CLEAT_API size_t cleat_dataset_count(const cleat_dataset *dataset);
/* Id of a sample, borrowed; valid for the lifetime of the dataset. */
CLEAT_API const char *cleat_dataset_id(const cleat_dataset *dataset, size_t sample);
/* Length of a sample as written by cleat_dataset_fill, that is after truncation to the maximum length of the
 * dataset. It determines the bucket. */
CLEAT_API int64_t cleat_dataset_length(const cleat_dataset *dataset, size_t sample);
/* Number of items of a sample, for a loss that is a mean over items: its length, or the words of a tagged
 * text. */
CLEAT_API int64_t cleat_dataset_items(const cleat_dataset *dataset, size_t sample);
CLEAT_API cleat_split cleat_dataset_split(const cleat_dataset *dataset, size_t sample);
/* Writes the fitted preprocessing state (vocabulary, labels, means) as files into `folder`, which must exist.
 * Data opened with that folder as `fitted` are preprocessed in the same way. A dataset without fitted state
 * writes nothing. */
CLEAT_API cleat_status cleat_dataset_save(const cleat_dataset *dataset, const char *folder, cleat_error *error);
/* Returns the indices of the samples of one split, in file order. The caller owns *samples [*count]
 * (cleat_samples_free); it is NULL if the split is empty. */
CLEAT_API cleat_status cleat_dataset_samples(const cleat_dataset *dataset, cleat_split split, uint32_t **samples,
                                             size_t *count, cleat_error *error);
CLEAT_API void cleat_samples_free(uint32_t *samples);
/* Merges all splits into CLEAT_SPLIT_TEST and adds the samples that were omitted at the borders between
 * splits. Indices of samples change; lengths and fields do not. Does nothing if the dataset already contains
 * every sample. Not thread-safe: call it before any fill. CLEAT_ERR_MEMORY. */
CLEAT_API cleat_status cleat_dataset_make_whole(cleat_dataset *dataset, cleat_error *error);
/* True if the dataset has only one split, after cleat_dataset_make_whole or because the requested splits do
 * not apply to the data. */
CLEAT_API bool cleat_dataset_is_whole(const cleat_dataset *dataset);

/* Number of fields, and the field of that index; borrowed. */
CLEAT_API size_t cleat_dataset_fields(const cleat_dataset *dataset);
CLEAT_API const cleat_field *cleat_dataset_field(const cleat_dataset *dataset, size_t field);
/* Index of the field called `name`, or -1. */
CLEAT_API int cleat_dataset_find_field(const cleat_dataset *dataset, const char *name);
/* Number of elements, and of bytes, of this field in one sample padded to `length`. */
CLEAT_API int64_t cleat_field_elements(const cleat_field *field, int64_t length);
CLEAT_API int64_t cleat_field_bytes(const cleat_field *field, int64_t length);

/* Writes one sample, padded to `length`, to slots[field] (cleat_field_bytes each); fields with a NULL slot
 * are skipped. `rng_key` NULL: evaluation, without random augmentation. The bytes depend only on (sample,
 * length, rng_key). Thread-safe. CLEAT_ERR_ARGUMENT: the sample is longer than `length`. */
CLEAT_API cleat_status cleat_dataset_fill(const cleat_dataset *dataset, size_t sample, int64_t length,
                                          const cleat_rng_key *rng_key, void *const *slots, cleat_error *error);
/* Writes an empty slot: every element is the `pad` of its field. */
CLEAT_API void cleat_dataset_fill_empty(const cleat_dataset *dataset, int64_t length, void *const *slots);

#ifdef __cplusplus
}
#endif
#endif
