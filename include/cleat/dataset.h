/* Datasets behind one interface.
 *
 * A dataset gives samples; a sample is one entry in each FIELD the dataset lists. Letters: B slots of a
 * batch, L padded length.
 *
 * Threads: once it is open a dataset does not change, but for cleat_dataset_make_whole: any number of
 * threads may read and fill samples at the same time. The loader's threads do. */
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

/* One named part of every sample. A batch holds it as [B, shape...]. */
typedef struct cleat_field {
    char name[CLEAT_NAME];
    cleat_dtype dtype;             /* CLEAT_I32 or CLEAT_F32 */
    int rank;                      /* of one sample; 0: one value a sample */
    int64_t shape[CLEAT_MAX_RANK]; /* -1 stands for the padded length L */
    int32_t pad;                   /* value of padding past the end of a sample, and of an empty slot */
} cleat_field;

/* Key of the random augmentation of a sample. */
typedef struct cleat_rng_key {
    uint64_t seed;
    uint32_t epoch;
} cleat_rng_key;

CLEAT_API void cleat_dataset_destroy(cleat_dataset *dataset); /* takes NULL */

/* The number of samples, of all splits. */
CLEAT_API size_t cleat_dataset_count(const cleat_dataset *dataset);
/* The id of a sample. Borrowed; valid for the lifetime of the dataset. */
CLEAT_API const char *cleat_dataset_id(const cleat_dataset *dataset, size_t sample);
/* The length that determines the bucket: the length that cleat_dataset_fill writes, after the cut to the
 * largest length of the dataset. */
CLEAT_API int64_t cleat_dataset_length(const cleat_dataset *dataset, size_t sample);
/* The items of a sample in a loss that is a mean over items: its length, or the words of a tagged text. */
CLEAT_API int64_t cleat_dataset_items(const cleat_dataset *dataset, size_t sample);
CLEAT_API cleat_split cleat_dataset_split(const cleat_dataset *dataset, size_t sample);
/* Writes the fitted preprocessing (vocabulary, labels, means) as files into the existing `folder`. Other
 * data opened with that folder are read in the same way. A dataset without fitted state writes nothing.
 *. */
CLEAT_API cleat_status cleat_dataset_save(const cleat_dataset *dataset, const char *folder, cleat_error *error);
/* The samples of one split in file order. `*samples` [*count] is the caller's (cleat_samples_free); NULL when
 * there is none. */
CLEAT_API cleat_status cleat_dataset_samples(const cleat_dataset *dataset, cleat_split split, uint32_t **samples,
                                             size_t *count, cleat_error *error);
CLEAT_API void cleat_samples_free(uint32_t *samples);
/* Merges the splits into one: samples that were left out at the borders between splits are added, all
 * samples become CLEAT_SPLIT_TEST, and their indices change; lengths and fields stay. Does nothing if the
 * dataset already holds every sample. Not thread-safe: call it before any fill. CLEAT_ERR_MEMORY. */
CLEAT_API cleat_status cleat_dataset_make_whole(cleat_dataset *dataset, cleat_error *error);
/* True if the dataset is one split, after cleat_dataset_make_whole or because the requested splits do not
 * suit the data. */
CLEAT_API bool cleat_dataset_is_whole(const cleat_dataset *dataset);

/* The number of fields, and field `field` of them; borrowed. */
CLEAT_API size_t cleat_dataset_fields(const cleat_dataset *dataset);
CLEAT_API const cleat_field *cleat_dataset_field(const cleat_dataset *dataset, size_t field);
/* The index of the field called `name`, or -1. */
CLEAT_API int cleat_dataset_find_field(const cleat_dataset *dataset, const char *name);
/* Elements, and bytes, of one sample of this field at padded length `length`. */
CLEAT_API int64_t cleat_field_elements(const cleat_field *field, int64_t length);
CLEAT_API int64_t cleat_field_bytes(const cleat_field *field, int64_t length);

/* Writes one sample, padded to `length`, into slots[field] (cleat_field_bytes each); a NULL slot is left
 * out. `rng_key` NULL: evaluation, nothing is random. The bytes depend on (sample, length, rng_key) only.
 * Thread-safe. CLEAT_ERR_ARGUMENT when the sample is longer than `length`. */
CLEAT_API cleat_status cleat_dataset_fill(const cleat_dataset *dataset, size_t sample, int64_t length,
                                          const cleat_rng_key *rng_key, void *const *slots, cleat_error *error);
/* Writes a slot without a sample: every field is its `pad`. */
CLEAT_API void cleat_dataset_fill_empty(const cleat_dataset *dataset, int64_t length, void *const *slots);

#ifdef __cplusplus
}
#endif
#endif
