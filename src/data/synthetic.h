/* A dataset without data: samples of one length, made of random numbers (benchmarks) or copied from given
 * arrays (reference trajectories). Batches of it go through the loader, as those of files do. */
#ifndef CLEAT_SRC_SYNTHETIC_H
#define CLEAT_SRC_SYNTHETIC_H

#include "data/dataset.h"

/* What a field without given values holds. */
typedef enum cleat_values {
    CLEAT_VALUES_RANDOM,   /* normal random numbers; integers: uniform in [0, below) */
    CLEAT_VALUES_LENGTH,   /* the sample's length */
    CLEAT_VALUES_ONE,      /* 1 */
    CLEAT_VALUES_OPPOSITE, /* place i of L: L - 1 - i, as in a hairpin; the field's `pad` in the middle */
} cleat_values;

typedef struct cleat_synthetic_field {
    cleat_field field;
    cleat_values values;
    int64_t below; /* bound of the integers; 0: none is known */
    /* Values [count, field.shape...] of field.dtype, which are copied as they stand, or NULL. Borrowed. */
    const void *given;
} cleat_synthetic_field;

/* Fields of one sample's shape [rank], -1 for the dataset's length: of normal random numbers; of integers
 * in [0, below); of what `values` says, integers but for CLEAT_VALUES_ONE. Integers have the pad -1. */
cleat_synthetic_field cleat_synthetic_floats(const char *name, int rank, const int64_t *shape);
cleat_synthetic_field cleat_synthetic_integers(const char *name, int64_t below, int rank, const int64_t *shape);
cleat_synthetic_field cleat_synthetic_values(const char *name, cleat_values values, int rank, const int64_t *shape);

/* `count` samples of `length` with fields [n_fields], which are copied. The values depend on (seed,
 * sample, field) only. The number of items of a sample is its length, or where the field of
 * CLEAT_VALUES_LENGTH is given, what that says. */
cleat_status cleat_synthetic_open(const cleat_synthetic_field *fields, size_t n_fields, size_t count, int64_t length,
                                  uint64_t seed, cleat_dataset **dataset, cleat_error *error);

#endif
