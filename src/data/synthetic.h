/* A synthetic dataset: samples of one length, made of random numbers (benchmarks) or copied from given
 * arrays (reference trajectories). Its batches pass through the loader like those of files. */
#ifndef CLEAT_SRC_SYNTHETIC_H
#define CLEAT_SRC_SYNTHETIC_H

#include "data/dataset.h"

/* Contents of a field without given values. */
typedef enum cleat_synthetic_content {
    CLEAT_VALUES_RANDOM, /* floats: normal random numbers; integers: uniform in [0, below) */
    CLEAT_VALUES_LENGTH, /* the length of the sample */
    CLEAT_VALUES_ONE,    /* 1 */
    /* position i of L: L - 1 - i, the pairing of a hairpin; the `pad` of the field in the middle */
    CLEAT_VALUES_OPPOSITE,
} cleat_synthetic_content;

typedef struct cleat_synthetic_field {
    cleat_field field;
    cleat_synthetic_content values;
    int64_t below; /* exclusive upper bound of the integers; 0: unknown */
    /* Values [count, field.shape...] of field.dtype, copied unchanged, or NULL. Borrowed. */
    const void *given;
} cleat_synthetic_field;

/* Fields whose samples have the given shape [rank], with -1 for the length of the dataset.
 * cleat_synthetic_floats: normal random numbers; cleat_synthetic_integers: integers in [0, below);
 * cleat_synthetic_values: as `values` states, integers except for CLEAT_VALUES_ONE. The pad of integers is
 * -1. */
cleat_synthetic_field cleat_synthetic_floats(const char *name, int rank, const int64_t *shape);
cleat_synthetic_field cleat_synthetic_integers(const char *name, int64_t below, int rank, const int64_t *shape);
cleat_synthetic_field cleat_synthetic_values(const char *name, cleat_synthetic_content values, int rank,
                                             const int64_t *shape);

/* `count` samples of `length` with fields [n_fields], which are copied. The values depend only on (seed,
 * sample, field). The number of items of a sample is its length, or its value in a CLEAT_VALUES_LENGTH
 * field whose values are given. */
cleat_status cleat_synthetic_open(const cleat_synthetic_field *fields, size_t n_fields, size_t count, int64_t length,
                                  uint64_t seed, cleat_dataset **dataset, cleat_error *error);

#endif
