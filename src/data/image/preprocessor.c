/* Reads and writes pictures.json, the preprocessing state fitted to images:
 *
 *   {"channels": 3, "means": [0.5, 0.4, 0.4], "deviations": [0.2, 0.2, 0.2], "classes": ["cat", "dog"],
 *    "samples": [40, 60]}
 *
 * or, for masks, "classes": [] and "positive": 0.1, the fraction of their pixels that is 1. */
#include "data/image/common.h"

#include "core/memory.h"
#include "data/common/fitted_json.h"

#include <math.h>

static const char file[] = "pictures.json";

void cleat_image_preprocessor_free(cleat_image_preprocessor *fitted) {
    cleat_name_list_free(&fitted->classes);
    cleat_free(fitted->samples);
    *fitted = (cleat_image_preprocessor){0};
}

cleat_status cleat_image_preprocessor_write(const char *folder, const cleat_image_preprocessor *fitted,
                                            cleat_error *error) {
    cleat_string text = {0};
    cleat_string_add(&text, "{\"channels\": %lld,\n \"means\": ", (long long)fitted->channels);
    cleat_fitted_json_add_numbers(&text, fitted->mean, (size_t)fitted->channels);
    cleat_string_add(&text, ",\n \"deviations\": ");
    cleat_fitted_json_add_numbers(&text, fitted->std, (size_t)fitted->channels);
    cleat_string_add(&text, ",\n \"classes\": [");
    for (size_t i = 0; i < fitted->classes.count; ++i) {
        cleat_string_add(&text, "%s", i ? ", " : "");
        cleat_fitted_json_add_string(&text, fitted->classes.names[i]);
    }
    cleat_string_add(&text, "]");
    if (fitted->samples) {
        cleat_string_add(&text, ",\n \"samples\": [");
        for (size_t i = 0; i < fitted->classes.count; ++i)
            cleat_string_add(&text, "%s%lld", i ? ", " : "", (long long)fitted->samples[i]);
        cleat_string_add(&text, "]");
    }
    if (!fitted->classes.count) {
        cleat_string_add(&text, ",\n \"positive\": ");
        cleat_fitted_json_add_number(&text, fitted->positive);
    }
    cleat_string_add(&text, "}\n");
    return cleat_fitted_json_write(folder, file, &text, error);
}

static cleat_status get_classes(const cJSON *list, cleat_image_preprocessor *fitted, cleat_error *error) {
    const cJSON *item;
    cleat_status status = CLEAT_OK;
    cJSON_ArrayForEach(item, list) {
        if (!status) status = cleat_name_list_add(&fitted->classes, item->valuestring, error);
    }
    return status;
}

static cleat_status get_samples(const cJSON *list, cleat_image_preprocessor *fitted, cleat_error *error) {
    const cJSON *item;
    size_t used = 0;
    if (!list) return CLEAT_OK;
    fitted->samples = cleat_alloc(fitted->classes.count, sizeof *fitted->samples);
    if (!fitted->samples) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the classes' samples");
    cJSON_ArrayForEach(item, list) fitted->samples[used++] = (int64_t)item->valuedouble;
    return CLEAT_OK;
}

static bool is_counts(const cJSON *list, int length) {
    const cJSON *item;
    if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) != length) return false;
    cJSON_ArrayForEach(item, list) {
        if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0 && item->valuedouble < 1e15)) return false;
    }
    return true;
}

/* Returns NULL if the object is valid, else what is wrong with it. */
static const char *fault_of(const cJSON *root, cleat_image_preprocessor *fitted) {
    const cJSON *classes = cJSON_GetObjectItemCaseSensitive(root, "classes"), *item;
    const cJSON *samples = cJSON_GetObjectItemCaseSensitive(root, "samples");
    double channels;
    if (!cleat_fitted_json_get_number(root, "channels", &channels) || channels != floor(channels) || channels < 1 ||
        channels > CLEAT_IMAGE_MAX_CHANNELS)
        return "\"channels\" must be a whole number, 1 to 16";
    fitted->channels = (int64_t)channels;
    if (!cleat_fitted_json_get_numbers(root, "means", fitted->mean, (size_t)fitted->channels) ||
        !cleat_fitted_json_get_numbers(root, "deviations", fitted->std, (size_t)fitted->channels))
        return "\"means\" and \"deviations\" must have a number for each channel";
    for (int64_t c = 0; c < fitted->channels; ++c)
        if (!(fitted->std[c] > 0)) return "\"deviations\" must be greater than 0";
    if (!cJSON_IsArray(classes)) return "\"classes\" must be a list of names";
    cJSON_ArrayForEach(item, classes) {
        if (!cJSON_IsString(item) || !*item->valuestring) return "\"classes\" must be a list of names";
    }
    if (samples && !is_counts(samples, cJSON_GetArraySize(classes)))
        return "\"samples\" must have a count for each class";
    bool masks = !classes->child;
    if (masks && !(cleat_fitted_json_get_number(root, "positive", &fitted->positive) && fitted->positive >= 0 &&
                   fitted->positive <= 1))
        return "without classes, \"positive\", the fraction of mask pixels, must be 0 to 1";
    return NULL;
}

cleat_status cleat_image_preprocessor_read(const char *folder, cleat_image_preprocessor *fitted, cleat_error *error) {
    cJSON *root = NULL;
    cleat_image_preprocessor found = {0};
    cleat_status status = cleat_fitted_json_read(folder, file, &root, error);
    if (status) return status;
    const char *fault = fault_of(root, &found);
    status = fault ? cleat_fitted_json_fail(folder, file, fault, error)
                   : get_classes(cJSON_GetObjectItemCaseSensitive(root, "classes"), &found, error);
    if (!status) status = get_samples(cJSON_GetObjectItemCaseSensitive(root, "samples"), &found, error);
    if (!status)
        *fitted = found;
    else
        cleat_image_preprocessor_free(&found);
    cJSON_Delete(root);
    return status;
}
