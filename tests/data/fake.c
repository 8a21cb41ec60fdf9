/* Implements the in-memory dataset of fake.h. */
#include "fake.h"

#include <stdio.h>

static const cleat_field fields[] = {
    {.name = "values", .dtype = CLEAT_I32, .rank = 1, .shape = {-1}, .pad = -1},
    {.name = "lengths", .dtype = CLEAT_I32, .rank = 0},
    {.name = "matrix", .dtype = CLEAT_F32, .rank = 2, .shape = {-1, 2}, .pad = 3},
};

static const char *fake_id(const cleat_dataset *dataset, size_t sample) {
    (void)dataset;
    return sample ? "some" : "first";
}

static int64_t fake_length(const cleat_dataset *dataset, size_t sample) {
    return ((const fake_dataset *)dataset)->lengths[sample];
}

static cleat_split fake_split(const cleat_dataset *dataset, size_t sample) {
    (void)dataset;
    return sample % 5 ? CLEAT_SPLIT_TRAIN : CLEAT_SPLIT_VAL;
}

int32_t fake_value(size_t sample, int64_t i, const cleat_rng_key *rng_key) {
    uint32_t random = rng_key ? (uint32_t)rng_key->seed * 31 + rng_key->epoch * 7 : 0;
    return (int32_t)((uint32_t)sample * 1000 + (uint32_t)i + random);
}

static cleat_status fake_fill(const cleat_dataset *dataset, size_t sample, int64_t length, const cleat_rng_key *rng_key,
                              void *const *slots, cleat_error *error) {
    (void)length;
    const fake_dataset *fake = (const fake_dataset *)dataset;
    if (sample == fake->bad_sample)
        return cleat_fail(error, CLEAT_ERR_FORMAT, "data.bin:7: sample %zu is rotten", sample);
    for (volatile long spin = (long)(sample * 7919 % 13) * fake->spin; spin > 0;) spin = spin - 1;
    int32_t *values = slots[0], *lengths = slots[1];
    float *matrix = slots[2];
    if (lengths) *lengths = (int32_t)fake->lengths[sample];
    for (int64_t i = 0; i < fake->lengths[sample]; ++i) {
        if (values) values[i] = fake_value(sample, i, rng_key);
        if (matrix) matrix[2 * i] = (float)sample, matrix[2 * i + 1] = (float)i;
    }
    return CLEAT_OK;
}

static void fake_destroy(cleat_dataset *dataset) {
    (void)dataset;
}

static const cleat_dataset_class fake_class = {.name = "fake",
                                               .fields = fields,
                                               .n_fields = 3,
                                               .id = fake_id,
                                               .length = fake_length,
                                               .split = fake_split,
                                               .fill = fake_fill,
                                               .destroy = fake_destroy};

fake_dataset fake_make(const int64_t *lengths, size_t count) {
    return (fake_dataset){.base = {.type = &fake_class, .count = count}, .lengths = lengths, .bad_sample = SIZE_MAX};
}
