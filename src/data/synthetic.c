/* Synthetic samples: a pure function of (seed, sample, field). */
#include "data/synthetic.h"

#include "core/memory.h"
#include "core/philox.h"

#include <stdio.h>
#include <string.h>

enum { MAX_FIELDS = 8 };

typedef struct synthetic_dataset {
    cleat_dataset base;
    cleat_dataset_class type;
    cleat_field fields[MAX_FIELDS];
    cleat_synthetic_field rules[MAX_FIELDS];
    int64_t length;
    uint64_t seed;
} synthetic_dataset;

static cleat_synthetic_field field_of(const char *name, cleat_dtype dtype, int rank, const int64_t *shape) {
    cleat_synthetic_field made = {.field = {.dtype = dtype, .rank = rank, .pad = dtype == CLEAT_I32 ? -1 : 0}};
    snprintf(made.field.name, sizeof made.field.name, "%s", name);
    for (int i = 0; i < rank; ++i) made.field.shape[i] = shape[i];
    return made;
}

cleat_synthetic_field cleat_synthetic_floats(const char *name, int rank, const int64_t *shape) {
    return field_of(name, CLEAT_F32, rank, shape);
}

cleat_synthetic_field cleat_synthetic_integers(const char *name, int64_t below, int rank, const int64_t *shape) {
    cleat_synthetic_field made = field_of(name, CLEAT_I32, rank, shape);
    made.below = below;
    return made;
}

cleat_synthetic_field cleat_synthetic_values(const char *name, cleat_synthetic_content values, int rank,
                                             const int64_t *shape) {
    cleat_synthetic_field made = field_of(name, values == CLEAT_VALUES_ONE ? CLEAT_F32 : CLEAT_I32, rank, shape);
    made.values = values;
    return made;
}

static const synthetic_dataset *synthetic_of(const cleat_dataset *dataset) {
    return (const synthetic_dataset *)dataset;
}

static const char *id(const cleat_dataset *dataset, size_t sample) {
    (void)dataset, (void)sample;
    return "synthetic";
}

static int64_t length_of(const cleat_dataset *dataset, size_t sample) {
    (void)sample;
    return synthetic_of(dataset)->length;
}

static cleat_split split(const cleat_dataset *dataset, size_t sample) {
    (void)dataset, (void)sample;
    return CLEAT_SPLIT_TRAIN;
}

static int64_t items(const cleat_dataset *dataset, size_t sample) {
    const synthetic_dataset *made = synthetic_of(dataset);
    for (size_t f = 0; f < made->type.n_fields; ++f)
        if (made->rules[f].values == CLEAT_VALUES_LENGTH && made->rules[f].given)
            return ((const int32_t *)made->rules[f]
                        .given)[(int64_t)sample * cleat_field_elements(&made->fields[f], made->length)];
    return made->length;
}

static void make_integers(const synthetic_dataset *made, const cleat_synthetic_field *rule, int64_t count,
                          cleat_random *random, int32_t *values) {
    for (int64_t i = 0; i < count; ++i) switch (rule->values) {
        case CLEAT_VALUES_RANDOM:
            values[i] = rule->below > 0 ? (int32_t)cleat_random_below(random, (uint32_t)rule->below) : 0;
            break;
        case CLEAT_VALUES_LENGTH:
            values[i] = (int32_t)made->length;
            break;
        case CLEAT_VALUES_ONE:
            values[i] = 1;
            break;
        case CLEAT_VALUES_OPPOSITE:
            values[i] = i == count - 1 - i ? rule->field.pad : (int32_t)(count - 1 - i);
            break;
        }
}

static cleat_status fill(const cleat_dataset *dataset, size_t sample, int64_t length, const cleat_rng_key *rng_key,
                         void *const *slots, cleat_error *error) {
    const synthetic_dataset *made = synthetic_of(dataset);
    (void)rng_key;
    if (length != made->length)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "synthetic samples of length %lld are not padded to %lld",
                          (long long)made->length, (long long)length);
    for (size_t f = 0; f < made->type.n_fields; ++f) {
        const cleat_synthetic_field *rule = &made->rules[f];
        const int64_t count = cleat_field_elements(&rule->field, length),
                      bytes = cleat_field_bytes(&rule->field, length);
        cleat_random random = cleat_random_stream(made->seed, (uint32_t)sample, (uint32_t)f);
        if (!slots[f]) continue;
        if (rule->given)
            memcpy(slots[f], (const char *)rule->given + (int64_t)sample * bytes, (size_t)bytes);
        else if (rule->field.dtype == CLEAT_I32)
            make_integers(made, rule, count, &random, slots[f]);
        else
            for (int64_t i = 0; i < count; ++i)
                ((float *)slots[f])[i] = rule->values == CLEAT_VALUES_ONE ? 1.0f : (float)cleat_random_normal(&random);
    }
    return CLEAT_OK;
}

static void destroy(cleat_dataset *dataset) {
    cleat_free(dataset);
}

cleat_status cleat_synthetic_open(const cleat_synthetic_field *fields, size_t n_fields, size_t count, int64_t length,
                                  uint64_t seed, cleat_dataset **dataset, cleat_error *error) {
    if (n_fields > MAX_FIELDS || count > UINT32_MAX || length < 1)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                          "a synthetic dataset of %zu fields, %zu samples and length %lld: it may have %d fields, and "
                          "lengths begin at 1",
                          n_fields, count, (long long)length, MAX_FIELDS);
    synthetic_dataset *made = cleat_alloc(1, sizeof *made);
    if (!made) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a synthetic dataset");
    made->type = (cleat_dataset_class){.name = "synthetic",
                                       .fields = made->fields,
                                       .n_fields = n_fields,
                                       .id = id,
                                       .length = length_of,
                                       .split = split,
                                       .fill = fill,
                                       .items = items,
                                       .destroy = destroy};
    made->base = (cleat_dataset){.type = &made->type, .count = count};
    made->length = length;
    made->seed = seed;
    for (size_t f = 0; f < n_fields; ++f) {
        made->rules[f] = fields[f];
        made->fields[f] = fields[f].field;
    }
    *dataset = &made->base;
    return CLEAT_OK;
}
