/* pictures.json: what pictures taught,
 *   {"channels": 3, "means": [0.5, 0.4, 0.4], "deviations": [0.2, 0.2, 0.2], "classes": ["cat", "dog"], "samples": [40, 60]}
 * or of masks "classes": [] and "positive": 0.1, the share of 1 among their pixels. */
#include "data/pictures.h"

#include "core/memory.h"
#include "data/learnt_json.h"

#include <math.h>

static const char file[] = "pictures.json";

void cleat_picture_learnt_free(cleat_picture_learnt *learnt) {
    for (size_t i = 0; learnt->classes && i < learnt->n_classes; ++i) cleat_free(learnt->classes[i]);
    cleat_free(learnt->classes);
    cleat_free(learnt->samples);
    *learnt = (cleat_picture_learnt){0};
}

/* --- writing -------------------------------------------------------------------------------------------------- */

cleat_status cleat_picture_learnt_write(const char *folder, const cleat_picture_learnt *learnt, cleat_error *error) {
    cleat_text text = {0};
    cleat_text_add(&text, "{\"channels\": %lld,\n \"means\": ", (long long)learnt->channels);
    cleat_learnt_add_numbers(&text, learnt->mean, (size_t)learnt->channels);
    cleat_text_add(&text, ",\n \"deviations\": ");
    cleat_learnt_add_numbers(&text, learnt->deviation, (size_t)learnt->channels);
    cleat_text_add(&text, ",\n \"classes\": [");
    for (size_t i = 0; i < learnt->n_classes; ++i) {
        cleat_text_add(&text, "%s", i ? ", " : "");
        cleat_learnt_add_string(&text, learnt->classes[i]);
    }
    cleat_text_add(&text, "]");
    if (learnt->samples) {
        cleat_text_add(&text, ",\n \"samples\": [");
        for (size_t i = 0; i < learnt->n_classes; ++i)
            cleat_text_add(&text, "%s%lld", i ? ", " : "", (long long)learnt->samples[i]);
        cleat_text_add(&text, "]");
    }
    if (!learnt->n_classes) {
        cleat_text_add(&text, ",\n \"positive\": ");
        cleat_learnt_add_number(&text, learnt->positive);
    }
    cleat_text_add(&text, "}\n");
    return cleat_learnt_write(folder, file, &text, error);
}

/* --- reading -------------------------------------------------------------------------------------------------- */

static cleat_status get_classes(const cJSON *list, cleat_picture_learnt *learnt, cleat_error *error) {
    const cJSON *item;
    learnt->classes = cleat_alloc((size_t)cJSON_GetArraySize(list), sizeof *learnt->classes);
    if (!learnt->classes) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the classes' names");
    cJSON_ArrayForEach(item, list) {
        char *name = cleat_strdup(item->valuestring);
        if (!name) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the classes' names");
        learnt->classes[learnt->n_classes++] = name;
    }
    return CLEAT_OK;
}

static cleat_status get_samples(const cJSON *list, cleat_picture_learnt *learnt, cleat_error *error) {
    const cJSON *item;
    size_t used = 0;
    if (!list) return CLEAT_OK;
    learnt->samples = cleat_alloc(learnt->n_classes, sizeof *learnt->samples);
    if (!learnt->samples) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the classes' samples");
    cJSON_ArrayForEach(item, list) learnt->samples[used++] = (int64_t)item->valuedouble;
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

/* NULL: it is sound. */
static const char *fault_of(const cJSON *root, cleat_picture_learnt *learnt) {
    const cJSON *classes = cJSON_GetObjectItemCaseSensitive(root, "classes"), *item;
    const cJSON *samples = cJSON_GetObjectItemCaseSensitive(root, "samples");
    double channels;
    if (!cleat_learnt_get_number(root, "channels", &channels) || channels != floor(channels) || channels < 1 ||
        channels > CLEAT_PICTURE_PLANES)
        return "\"channels\" must be a whole number, 1 to 16";
    learnt->channels = (int64_t)channels;
    if (!cleat_learnt_get_numbers(root, "means", learnt->mean, (size_t)learnt->channels) ||
        !cleat_learnt_get_numbers(root, "deviations", learnt->deviation, (size_t)learnt->channels))
        return "\"means\" and \"deviations\" must have a number for each channel";
    for (int64_t c = 0; c < learnt->channels; ++c)
        if (!(learnt->deviation[c] > 0)) return "deviations must be above 0";
    if (!cJSON_IsArray(classes)) return "\"classes\" must be a list of names";
    cJSON_ArrayForEach(item, classes) {
        if (!cJSON_IsString(item) || !*item->valuestring) return "\"classes\" must be a list of names";
    }
    if (samples && !is_counts(samples, cJSON_GetArraySize(classes)))
        return "\"samples\" must have a count for each class";
    bool masks = !classes->child;
    if (masks && !(cleat_learnt_get_number(root, "positive", &learnt->positive) && learnt->positive >= 0 &&
                   learnt->positive <= 1))
        return "without classes \"positive\", the share of 1 in the masks, must be 0 to 1";
    return NULL;
}

cleat_status cleat_picture_learnt_read(const char *folder, cleat_picture_learnt *learnt, cleat_error *error) {
    cJSON *root = NULL;
    cleat_picture_learnt found = {0};
    cleat_status status = cleat_learnt_read(folder, file, &root, error);
    if (status != CLEAT_OK) return status;
    const char *fault = fault_of(root, &found);
    status = fault ? cleat_learnt_fault(folder, file, fault, error)
                   : get_classes(cJSON_GetObjectItemCaseSensitive(root, "classes"), &found, error);
    if (status == CLEAT_OK) status = get_samples(cJSON_GetObjectItemCaseSensitive(root, "samples"), &found, error);
    if (status == CLEAT_OK)
        *learnt = found;
    else
        cleat_picture_learnt_free(&found);
    cJSON_Delete(root);
    return status;
}
