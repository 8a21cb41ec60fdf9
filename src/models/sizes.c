/* Sizes of models by name, for models without data: reference trajectories and benchmarks. */
#include "models/model.h"

#include <cjson/cJSON.h>
#include <stddef.h>
#include <string.h>

typedef struct size_row {
    const char *name;
    size_t offset;
    int count; /* maximum number of values */
    bool real; /* true: double; false: int64_t */
} size_row;

#define SIZE(NAME, COUNT)                                                                                              \
    { .name = #NAME, .offset = offsetof(cleat_model_sizes, NAME), .count = COUNT }
static const size_row rows[] = {
    SIZE(vocabulary, 1),
    SIZE(classes, 1),
    SIZE(inputs, 1),
    SIZE(outputs, 1),
    SIZE(hidden, CLEAT_MODEL_LAYERS),
    SIZE(blocks, CLEAT_MODEL_STAGES),
    SIZE(stage_widths, CLEAT_MODEL_STAGES),
    SIZE(stage_heads, CLEAT_MODEL_STAGES),
    SIZE(stage_reductions, CLEAT_MODEL_STAGES),
    SIZE(stage_depths, CLEAT_MODEL_STAGES),
    SIZE(decoder, 1),
    SIZE(pairs, 1),
    {.name = "bond", .offset = offsetof(cleat_model_sizes, bond), .count = 1, .real = true},
};

static const size_row *find_row(const char *name) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i)
        if (strcmp(rows[i].name, name) == 0) return &rows[i];
    return NULL;
}

static bool read_size(const size_row *row, const cJSON *value, int i, cleat_model_sizes *sizes) {
    char *place = (char *)sizes + row->offset;
    if (!cJSON_IsNumber(value) || !(value->valuedouble <= INT32_MAX) || i >= row->count) return false;
    if (row->real) {
        *(double *)(void *)place = value->valuedouble;
        return value->valuedouble > 0;
    }
    ((int64_t *)(void *)place)[i] = (int64_t)value->valuedouble;
    return value->valuedouble >= 1 && value->valuedouble == (double)(int64_t)value->valuedouble;
}

static cleat_status read_sizes(const cJSON *json, cleat_model_sizes *sizes, cleat_error *error) {
    const cJSON *item, *value;
    cJSON_ArrayForEach(item, json) {
        const size_row *row = item->string ? find_row(item->string) : NULL;
        bool good = row != NULL;
        int i = 0;
        if (!row)
            return cleat_fail(error, CLEAT_ERR_FORMAT, "models have no size '%.60s'", item->string ? item->string : "");
        if (cJSON_IsArray(item)) {
            cJSON_ArrayForEach(value, item) good = good && read_size(row, value, i++, sizes);
        } else {
            do good = read_size(row, item, i, sizes);
            while (good && ++i < row->count && row->count == CLEAT_MODEL_STAGES);
        }
        if (!good)
            return cleat_fail(error, CLEAT_ERR_FORMAT, "the size '%s' must be up to %d %s number%s above 0", row->name,
                              row->count, row->real ? "real" : "whole", row->count > 1 ? "s" : "");
    }
    return CLEAT_OK;
}

cleat_status cleat_model_set_sizes(cleat_model *model, const char *json, cleat_error *error) {
    cleat_model_sizes sizes = {0};
    cJSON *parsed = cJSON_Parse(json);
    cleat_status status = cJSON_IsObject(parsed) ? read_sizes(parsed, &sizes, error)
                                                 : cleat_fail(error, CLEAT_ERR_FORMAT,
                                                              "a model's sizes are not a JSON object: %.200s", json);
    cJSON_Delete(parsed);
    if (!status) model->sizes = sizes;
    return status;
}
