/* Interface that each dataset format implements.
 *
 * A format is one file (or a few) with one `static const cleat_dataset_class`; its open function returns a
 * struct whose first member is a cleat_dataset. There is no central list of formats.
 *
 * Fitted preprocessing belongs to the checkpoint: a dataset writes what its training part determined
 * (vocabulary, labels, means) into each checkpoint and reads other data with it. */
#ifndef CLEAT_SRC_DATASET_H
#define CLEAT_SRC_DATASET_H

#include "cleat/dataset.h"

/* Whether a sample can be predicted. */
typedef enum cleat_sample_state {
    CLEAT_SAMPLE_WHOLE,
    CLEAT_SAMPLE_CUT,        /* data.max_length cuts off its end, which gets no prediction */
    CLEAT_SAMPLE_UNREADABLE, /* its file cannot be read, as a warning reported; known once it was filled */
} cleat_sample_state;

typedef struct cleat_dataset_class {
    const char *name; /* "rna" */
    const cleat_field *fields;
    size_t n_fields;
    const char *(*id)(const cleat_dataset *dataset, size_t sample);
    int64_t (*length)(const cleat_dataset *dataset, size_t sample);
    cleat_split (*split)(const cleat_dataset *dataset, size_t sample);
    /* Writes the sample's own elements; the slots are already filled with `pad`. Slots are 4-byte aligned;
     * some may be NULL. Called concurrently by several threads. */
    cleat_status (*fill)(const cleat_dataset *dataset, size_t sample, int64_t length, const cleat_rng_key *rng_key,
                         void *const *slots, cleat_error *error);
    /* Number of items that a sample contributes to a loss that is a mean over items; NULL: its length. */
    int64_t (*items)(const cleat_dataset *dataset, size_t sample);
    /* NULL: CLEAT_SAMPLE_WHOLE. */
    cleat_sample_state (*state)(const cleat_dataset *dataset, size_t sample);
    /* Writes the fitted preprocessing state (a vocabulary, means) as files into the folder; NULL: there is
     * none. */
    cleat_status (*save)(const cleat_dataset *dataset, const char *folder, cleat_error *error);
    /* Reads back what `save` wrote, as opening a dataset with it does; required beside `save`. */
    cleat_status (*check_saved)(const cleat_dataset *dataset, const char *folder, cleat_error *error);
    /* Implements cleat_dataset_make_whole, which sets `whole`; NULL: the splits omit no samples. */
    cleat_status (*make_whole)(cleat_dataset *dataset, cleat_error *error);
    void (*destroy)(cleat_dataset *dataset);
} cleat_dataset_class;

cleat_sample_state cleat_dataset_sample_state(const cleat_dataset *dataset, size_t sample);
/* Splits by hashes: the hash of a sample gives its place, 0 to 1 (INFINITY: a training sample in any case),
 * and the places [count] give the splits. A split that would get no samples of a small set gets its share,
 * rounded, from the lowest places of the training split. */
double cleat_hashed_place(const void *bytes, size_t size);
void cleat_hashed_splits(const double *places, size_t count, double val_fraction, double test_fraction,
                         cleat_split *splits);
/* Divides the training samples with a place, in the order of places, into `fold->count` parts of equal size, samples of
 * one place together, and makes part `fold->index` the validation samples. Count 0: does nothing. With classes [count]
 * (-1: unknown; NULL: none are known) each class is divided into parts of equal size, as far as places allow. */
cleat_status cleat_hashed_fold(const double *places, const int32_t *classes, size_t count, const cleat_fold *fold,
                               cleat_split *splits, cleat_error *error);

struct cleat_dataset {
    const cleat_dataset_class *type;
    size_t count;
    bool whole; /* all samples are in one split */
    struct cleat_targets
        *targets; /* of samples without a single class (common/targets.h), owned by the format; or NULL */
};

#endif
