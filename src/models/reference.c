/* References: what their config says, and those with made-up arrays, which measurements train on. */
#include "models/model.h"

#include "core/memory.h"
#include "core/philox.h"

#include <string.h>

int64_t cleat_reference_size(const cleat_reference_config *config, const char *key, const char *param, int axis) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(config->json, key);
    if (cJSON_IsNumber(item)) return (int64_t)item->valuedouble;
    return param && config->extent ? config->extent(config->user, param, axis) : 0;
}

bool cleat_reference_loss_says(const cleat_reference_config *config, const char *words) {
    const cJSON *loss = cJSON_GetObjectItemCaseSensitive(config->json, "loss");
    return cJSON_IsString(loss) && strstr(loss->valuestring, words);
}

static cleat_status make_array(cleat_random *random, cleat_reference_array *array, cleat_error *error) {
    int64_t count = 1;
    for (int i = 0; i < array->rank; ++i) count *= array->shape[i];
    void *data = cleat_alloc((size_t)count, array->integers ? sizeof(int64_t) : sizeof(float));
    if (!data) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %lld made-up values", (long long)count);
    for (int64_t i = 0; i < count; ++i)
        if (array->integers)
            ((int64_t *)data)[i] = cleat_random_below(random, (uint32_t)array->below);
        else
            ((float *)data)[i] = (float)cleat_random_normal(random);
    array->data = data;
    return CLEAT_OK;
}

cleat_status cleat_reference_make(const cleat_model *model, int64_t batch, int64_t length, cleat_reference *reference,
                                  cleat_error *error) {
    cleat_reference made = {.batch = batch, .length = length};
    cleat_random random = cleat_random_stream(1, 0, 0);
    model->type->reference_arrays(model, &made);
    cleat_status status = make_array(&random, &made.input, error);
    if (status == CLEAT_OK) status = make_array(&random, &made.target, error);
    if (status != CLEAT_OK) {
        cleat_reference_free(&made);
        return status;
    }
    *reference = made;
    return CLEAT_OK;
}

void cleat_reference_free(cleat_reference *reference) {
    cleat_free((void *)reference->input.data);
    cleat_free((void *)reference->target.data);
    *reference = (cleat_reference){.batch = 0};
}
