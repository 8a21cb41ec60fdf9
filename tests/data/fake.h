/* A small dataset made in memory, to test what does not depend on a format. Sample i has length lengths[i];
 * its values tell sample, place, epoch and seed. */
#ifndef CLEAT_TESTS_DATA_FAKE_H
#define CLEAT_TESTS_DATA_FAKE_H

#include "cleat/loader.h"
#include "data/dataset.h"

typedef struct fake_dataset {
    cleat_dataset base;
    const int64_t *lengths;
    size_t bad_sample; /* filling it fails; SIZE_MAX: none does */
    long spin;         /* work a fill does for nothing */
} fake_dataset;

fake_dataset fake_make(const int64_t *lengths, size_t count);
/* The value fill writes at place `i` of a sample. */
int32_t fake_value(size_t sample, int64_t i, const cleat_rng_key *rng_key);

#endif
