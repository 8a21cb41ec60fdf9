/* A small in-memory dataset for tests that do not depend on a file format. Sample i has length lengths[i];
 * its values encode sample, position, epoch and seed. */
#ifndef CLEAT_TESTS_DATA_FAKE_H
#define CLEAT_TESTS_DATA_FAKE_H

#include "cleat/loader.h"
#include "data/dataset.h"

typedef struct fake_dataset {
    cleat_dataset base;
    const int64_t *lengths;
    size_t bad_sample; /* sample whose fill fails; SIZE_MAX: none */
    long spin;         /* iterations of busy work per fill */
} fake_dataset;

fake_dataset fake_make(const int64_t *lengths, size_t count);
/* Returns the value that fill writes at position `i` of a sample. */
int32_t fake_value(size_t sample, int64_t i, const cleat_rng_key *rng_key);

#endif
