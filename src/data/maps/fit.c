/* Fits means and standard deviations of the channels of maps, and reads and writes maps.json:
 *
 *   {"channels": ["count", "frp"], "target": "count", "transform": "log1p",
 *    "means": [0.02, 0.1], "deviations": [0.2, 0.7], "positive": 0.02}
 *
 * Channels of stacks have no names: "channels" is then their number, and there is no target. */
#include "data/maps/maps.h"

#include "core/memory.h"
#include "data/common/extremes.h"
#include "data/common/fitted_json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char FILE_NAME[] = "maps.json";
const char *const cleat_transform_names[] = {"none", "log1p", NULL};

void cleat_maps_transform(cleat_transform transform, float *values, int64_t count) {
    if (transform == CLEAT_TRANSFORM_NONE) return;
    for (int64_t i = 0; i < count; ++i) values[i] = copysignf((float)log1p(fabsf(values[i])), values[i]);
}

cleat_status cleat_maps_standardise(const cleat_maps *maps, const char *path, float *values, int64_t steps,
                                    cleat_error *error) {
    int64_t pixels = cleat_maps_target_elements(maps);
    for (int64_t f = 0; f < steps; ++f)
        for (int64_t c = 0; c < maps->channels; ++c, values += pixels) {
            double mean = maps->fitted.mean[c], std = maps->fitted.std[c];
            for (int64_t i = 0; i < pixels; ++i) {
                float value = values[i];
                values[i] = isnan(value) ? 0 : (float)((value - mean) / std);
                if (!isfinite(values[i]))
                    return cleat_fail(
                        error, CLEAT_ERR_FORMAT,
                        "%s: channel %lld has %g, which exceeds single precision after division by the standard "
                        "deviation (%g) of the training frames; correct the value, or remove the channel",
                        path, (long long)c, (double)value, std);
            }
        }
    return CLEAT_OK;
}

/* Count, mean and sum of squared deviations from the mean. */
typedef struct moments {
    double count, mean, squares;
    cleat_extremes extremes;
} moments;

static moments moments_of(const float *values, int64_t count) {
    moments m = {.extremes = cleat_extremes_none()};
    for (int64_t i = 0; i < count; ++i) {
        if (isnan(values[i])) continue;
        m.count += 1;
        m.mean += values[i];
        cleat_extremes_add(&m.extremes, values[i]);
    }
    if (m.count > 0) m.mean /= m.count;
    for (int64_t i = 0; i < count; ++i)
        if (!isnan(values[i])) m.squares += (values[i] - m.mean) * (values[i] - m.mean);
    return m;
}

/* Chan, Golub, LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1982. */
static void merge(moments *all, const moments *more) {
    if (more->count == 0) return;
    double count = all->count + more->count, apart = more->mean - all->mean;
    all->squares += more->squares + apart * apart * all->count * more->count / count;
    all->mean += apart * more->count / count;
    all->count = count;
    cleat_extremes_merge(&all->extremes, &more->extremes);
}

static const char *channel_name(const cleat_maps *maps, int64_t c, char number[24]) {
    if (maps->fitted.names.count) return maps->fitted.names.names[c];
    snprintf(number, 24, "%lld", (long long)c);
    return number;
}

/* Inverse of cleat_maps_transform. */
static double before_transform(const cleat_maps *maps, double value) {
    return maps->fitted.transform == CLEAT_TRANSFORM_NONE ? value : copysign(expm1(fabs(value)), value);
}

static cleat_status store_moments(cleat_maps *maps, const char *path, int64_t c, const moments *m, cleat_error *error) {
    char number[24], what[128];
    if (m->count == 0)
        return cleat_fail(error, CLEAT_ERR_FORMAT,
                          "%s: channel '%.100s' has no known value in the training frames; remove it", path,
                          channel_name(maps, c, number));
    const cleat_extremes *e = &m->extremes;
    bool constant = e->least == e->most; /* the sum of squares would be nothing but rounding errors */
    maps->fitted.mean[c] = constant ? e->least : m->mean;
    maps->fitted.std[c] = constant ? 1 : sqrt(m->squares / m->count);
    if (constant)
        cleat_log(CLEAT_LOG_WARNING,
                  "%s: channel '%s' is constant (%g) in all training frames; its standard deviation is set to 1", path,
                  channel_name(maps, c, number), maps->fitted.mean[c]);
    const cleat_extremes in_file = {before_transform(maps, e->least),
                                    before_transform(maps, e->above),
                                    before_transform(maps, e->most),
                                    before_transform(maps, e->below),
                                    e->n_least,
                                    e->n_most};
    snprintf(what, sizeof what, "channel '%.100s'", channel_name(maps, c, number));
    cleat_extremes_warn(&in_file, path, what, "if it stands for unknown cells, name it as NODATA_value, or write NaN");
    return CLEAT_OK;
}

/* Adds the steps of a sample that no earlier sample contains; all [C]. */
static cleat_status add_sample(const cleat_maps *maps, const cleat_maps_sample *sample, int64_t *seen, float *room,
                               moments *all, cleat_error *error) {
    const float *steps;
    int64_t size = cleat_maps_step_elements(maps), pixels = cleat_maps_target_elements(maps);
    int64_t known = *seen > sample->first ? *seen - sample->first : 0;
    cleat_status status = cleat_maps_sample_steps(maps, sample, room, &steps, error);
    if (status) return status;
    if (steps == room) cleat_maps_transform(maps->fitted.transform, room, sample->steps * size);
    for (int64_t f = known; f < sample->steps; ++f)
        for (int64_t c = 0; c < maps->channels; ++c) {
            moments m = moments_of(steps + f * size + c * pixels, pixels);
            merge(&all[c], &m);
        }
    *seen = sample->first + sample->steps;
    return CLEAT_OK;
}

static void fit_positive(cleat_maps *maps, const char *path) {
    int64_t known = 0, positive = 0, pixels = cleat_maps_target_elements(maps);
    for (size_t i = 0; i < maps->common.base.count; ++i) {
        const cleat_maps_sample *sample = &maps->samples[i];
        const int8_t *target = maps->targets + sample->target * pixels;
        if (sample->split != CLEAT_SPLIT_TRAIN || sample->target < 0) continue;
        for (int64_t p = 0; p < pixels; ++p) {
            known += target[p] >= 0;
            positive += target[p] > 0;
        }
    }
    maps->fitted.positive = known ? (double)positive / (double)known : 0;
    if (!positive)
        cleat_log(CLEAT_LOG_WARNING,
                  "%s: no cell of the training masks is 1, so training is impossible; check the target", path);
}

static int64_t max_steps(const cleat_maps *maps) {
    int64_t most = 1;
    for (size_t i = 0; i < maps->common.base.count; ++i)
        if (maps->samples[i].steps > most) most = maps->samples[i].steps;
    return most;
}

cleat_status cleat_maps_fit_preprocessor(cleat_maps *maps, const char *path, cleat_error *error) {
    size_t channels = (size_t)maps->channels;
    cleat_status status = CLEAT_OK;
    int64_t seen = 0;
    maps->fitted.channels = channels;
    maps->fitted.mean = cleat_alloc(channels, sizeof *maps->fitted.mean);
    maps->fitted.std = cleat_alloc(channels, sizeof *maps->fitted.std);
    moments *all = cleat_alloc(channels, sizeof *all);
    float *room = maps->steps ? NULL : cleat_alloc((size_t)(max_steps(maps) * cleat_maps_step_elements(maps)), 4);
    if (!maps->fitted.mean || !maps->fitted.std || !all || (!room && !maps->steps))
        status = cleat_fail(error, CLEAT_ERR_MEMORY, "%s: no memory for the means of %zu channels", path, channels);
    for (size_t c = 0; c < channels && !status; ++c) all[c] = (moments){.extremes = cleat_extremes_none()};
    for (size_t i = 0; i < maps->common.base.count && !status; ++i)
        if (maps->samples[i].split == CLEAT_SPLIT_TRAIN)
            status = add_sample(maps, &maps->samples[i], &seen, room, all, error);
    for (int64_t c = 0; c < maps->channels && !status; ++c) status = store_moments(maps, path, c, &all[c], error);
    if (!status) fit_positive(maps, path);
    cleat_free(all);
    cleat_free(room);
    return status;
}

void cleat_maps_preprocessor_free(cleat_maps_preprocessor *fitted) {
    cleat_name_list_free(&fitted->names);
    cleat_free(fitted->target);
    cleat_free(fitted->mean);
    cleat_free(fitted->std);
    *fitted = (cleat_maps_preprocessor){0};
}

cleat_status cleat_maps_preprocessor_write(const char *folder, const cleat_maps_preprocessor *fitted,
                                           cleat_error *error) {
    cleat_string text = {0};
    cleat_string_add(&text, "{\"channels\": ");
    if (!fitted->names.count) cleat_string_add(&text, "%zu", fitted->channels);
    for (size_t i = 0; i < fitted->names.count; ++i) {
        cleat_string_add(&text, i ? ", " : "[");
        cleat_fitted_json_add_string(&text, fitted->names.names[i]);
    }
    if (fitted->names.count) {
        cleat_string_add(&text, "], \"target\": ");
        cleat_fitted_json_add_string(&text, fitted->target);
    }
    cleat_string_add(&text, ", \"transform\": \"%s\",\n \"means\": ", cleat_transform_names[fitted->transform]);
    cleat_fitted_json_add_numbers(&text, fitted->mean, fitted->channels);
    cleat_string_add(&text, ",\n \"deviations\": ");
    cleat_fitted_json_add_numbers(&text, fitted->std, fitted->channels);
    cleat_string_add(&text, ",\n \"positive\": ");
    cleat_fitted_json_add_number(&text, fitted->positive);
    cleat_string_add(&text, "}\n");
    return cleat_fitted_json_write(folder, FILE_NAME, &text, error);
}

static const char *text_of(const cJSON *item) {
    return cJSON_IsString(item) && *item->valuestring ? item->valuestring : NULL;
}

static cleat_status read_names(const char *folder, const cJSON *root, cleat_maps_preprocessor *fitted,
                               cleat_error *error) {
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(root, "channels"), *item;
    const char *target = text_of(cJSON_GetObjectItemCaseSensitive(root, "target"));
    double number;
    if (cleat_fitted_json_get_number(root, "channels", &number) && number >= 1 && number < 1e6 &&
        number == floor(number)) {
        fitted->channels = (size_t)number;
        return CLEAT_OK;
    }
    if (!cJSON_IsArray(list) || !list->child || !target)
        return cleat_fitted_json_fail(folder, FILE_NAME, "the channels, or the target, are missing", error);
    cJSON_ArrayForEach(item, list) {
        const char *name = text_of(item);
        if (!name || cleat_name_list_find(&fitted->names, name) >= 0)
            return cleat_fitted_json_fail(folder, FILE_NAME, "a channel without a name, or a duplicate channel", error);
        cleat_status status = cleat_name_list_add(&fitted->names, name, error);
        if (status) return status;
    }
    fitted->channels = fitted->names.count;
    fitted->target = cleat_strdup(target);
    return fitted->target ? CLEAT_OK : cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the name %.40s", target);
}

static cleat_status read_numbers(const char *folder, const cJSON *root, cleat_maps_preprocessor *fitted,
                                 cleat_error *error) {
    fitted->mean = cleat_alloc(fitted->channels, sizeof *fitted->mean);
    fitted->std = cleat_alloc(fitted->channels, sizeof *fitted->std);
    if (!fitted->mean || !fitted->std)
        return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the means of %zu channels", fitted->channels);
    bool good = cleat_fitted_json_get_numbers(root, "means", fitted->mean, fitted->channels) &&
                cleat_fitted_json_get_numbers(root, "deviations", fitted->std, fitted->channels);
    for (size_t c = 0; good && c < fitted->channels; ++c) good = fitted->std[c] > 0;
    if (!good)
        return cleat_fitted_json_fail(
            folder, FILE_NAME,
            "\"means\" and \"deviations\" must have a number for each channel, deviations greater than 0", error);
    if (!cleat_fitted_json_get_number(root, "positive", &fitted->positive) || fitted->positive < 0 ||
        fitted->positive > 1)
        return cleat_fitted_json_fail(folder, FILE_NAME, "the fraction \"positive\" must be 0 to 1", error);
    return CLEAT_OK;
}

static cleat_status read_transform(const char *folder, const cJSON *root, cleat_maps_preprocessor *fitted,
                                   cleat_error *error) {
    const char *name = text_of(cJSON_GetObjectItemCaseSensitive(root, "transform"));
    for (int t = 0; name && t <= CLEAT_TRANSFORM_LOG1P; ++t)
        if (strcmp(name, cleat_transform_names[t]) == 0) {
            fitted->transform = (cleat_transform)t;
            return CLEAT_OK;
        }
    return cleat_fitted_json_fail(folder, FILE_NAME, "the transform must be none or log1p", error);
}

cleat_status cleat_maps_preprocessor_read(const char *folder, cleat_maps_preprocessor *fitted, cleat_error *error) {
    cJSON *root = NULL;
    cleat_maps_preprocessor found = {0};
    cleat_status status = cleat_fitted_json_read(folder, FILE_NAME, &root, error);
    if (!status) status = read_names(folder, root, &found, error);
    if (!status) status = read_transform(folder, root, &found, error);
    if (!status) status = read_numbers(folder, root, &found, error);
    cJSON_Delete(root);
    if (!status)
        *fitted = found;
    else
        cleat_maps_preprocessor_free(&found);
    return status;
}
