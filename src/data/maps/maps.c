/* Dataset of maps over time: steps are cut into patches, each of which is a sequence; the target is a
 * mask. */
#include "data/maps/maps.h"

#include "core/files.h"
#include "core/memory.h"
#include "core/philox.h"
#include "platform/text.h"

#include <math.h>
#include <string.h>

enum { STEPS, LENGTHS, MASK, FIELDS, LONGEST = 1 << 16, LARGEST_PATCH = 1024 };
static const uint64_t FLIP_SEED = 0x6D617073u; /* "maps": a separate family of random streams */
static const int64_t KEPT_BYTES = INT64_C(1) << 30;

/* --- sizes ---------------------------------------------------------------------------------------------------- */

int64_t cleat_maps_step_elements(const cleat_maps *maps) {
    return maps->channels * maps->height * maps->width;
}

int64_t cleat_maps_target_elements(const cleat_maps *maps) {
    return maps->height * maps->width;
}

cleat_status cleat_maps_make_room(cleat_maps *maps, const char *path, bool steps, cleat_error *error) {
    size_t step = (size_t)cleat_maps_step_elements(maps) * sizeof *maps->steps;
    if (steps && maps->n_steps) maps->steps = cleat_alloc((size_t)maps->n_steps, step);
    if (maps->n_targets) maps->targets = cleat_alloc((size_t)maps->n_targets, (size_t)cleat_maps_target_elements(maps));
    if ((!steps || !maps->n_steps || maps->steps) && (!maps->n_targets || maps->targets)) return CLEAT_OK;
    return cleat_fail(error, CLEAT_ERR_MEMORY, "%s: no memory for %lld frames of %zu bytes and %lld masks", path,
                      (long long)maps->n_steps, step, (long long)maps->n_targets);
}

cleat_status cleat_maps_add_sample(cleat_maps *maps, const cleat_maps_sample *sample, cleat_error *error) {
    size_t count = maps->common.base.count;
    cleat_status status = cleat_grow(&maps->samples, count, &maps->capacity, error);
    if (status) {
        cleat_free(sample->id);
        cleat_free(sample->path);
        return status;
    }
    maps->samples[count] = *sample;
    maps->common.base.count = count + 1;
    return CLEAT_OK;
}

void cleat_maps_set_target(const float *values, int64_t count, int8_t *target) {
    for (int64_t i = 0; i < count; ++i) target[i] = isnan(values[i]) ? -1 : values[i] > 0 ? 1 : 0;
}

cleat_status cleat_maps_sample_steps(const cleat_maps *maps, const cleat_maps_sample *sample, float *room,
                                     const float **steps, cleat_error *error) {
    int64_t size = cleat_maps_step_elements(maps);
    if (maps->steps) {
        *steps = maps->steps + sample->first * size;
        return CLEAT_OK;
    }
    *steps = room;
    return cleat_npy_read(sample->path, &sample->stack, sample->skipped * size, sample->steps * size, room, error);
}

/* --- a sample ------------------------------------------------------------------------------------------------- */

/* Mirroring of a sample's steps and target. */
typedef struct mirror {
    bool rows, columns;
} mirror;

static mirror draw_mirror(const cleat_maps *maps, size_t sample, const cleat_rng_key *rng_key) {
    if (!rng_key || (!maps->flip && !maps->flip_vertical)) return (mirror){false, false};
    cleat_random random = cleat_random_stream(rng_key->seed ^ FLIP_SEED, rng_key->epoch, (uint32_t)sample);
    bool columns = cleat_random_below(&random, 2), rows = cleat_random_below(&random, 2);
    return (mirror){.rows = rows && maps->flip_vertical, .columns = columns && maps->flip};
}

/* Copies one patch of one step: pixels [p, p, C] from step [C, H, W]. Pixels outside the step keep their
 * value, 0. */
static void copy_patch(const cleat_maps *maps, const float *step, int64_t top, int64_t left, mirror seen,
                       float *pixels) {
    int64_t p = maps->patch, height = maps->height, width = maps->width;
    for (int64_t r = 0; r < p && top + r < height; ++r)
        for (int64_t c = 0; c < p && left + c < width; ++c) {
            int64_t y = seen.rows ? height - 1 - top - r : top + r;
            int64_t x = seen.columns ? width - 1 - left - c : left + c;
            for (int64_t k = 0; k < maps->channels; ++k)
                pixels[(r * p + c) * maps->channels + k] = step[(k * height + y) * width + x];
        }
}

/* Cuts steps [count, C, H, W] into values [N, L, p p C]. */
static void cut_patches(const cleat_maps *maps, const float *steps, int64_t count, int64_t length, mirror seen,
                        float *values) {
    const cleat_image_info *info = &maps->common.info;
    int64_t p = maps->patch, size = p * p * maps->channels;
    for (int64_t top = 0; top < info->height; top += p)
        for (int64_t left = 0; left < info->width; left += p, values += length * size)
            for (int64_t f = 0; f < count; ++f)
                copy_patch(maps, steps + f * cleat_maps_step_elements(maps), top, left, seen, values + f * size);
}

/* mask [padded height, padded width], filled with -1 by the caller. */
static void copy_target(const cleat_maps *maps, int64_t target, mirror seen, int32_t *mask) {
    int64_t height = maps->height, width = maps->width;
    if (target < 0) return;
    const int8_t *from = maps->targets + target * height * width;
    for (int64_t r = 0; r < height; ++r)
        for (int64_t c = 0; c < width; ++c)
            mask[r * maps->common.info.width + c] =
                from[(seen.rows ? height - 1 - r : r) * width + (seen.columns ? width - 1 - c : c)];
}

/* Loads the standardized steps of a sample. *room is allocated unless the steps are in memory; the caller
 * frees it. */
static cleat_status load_steps(const cleat_maps *maps, const cleat_maps_sample *sample, float **room,
                               const float **steps, cleat_error *error) {
    int64_t count = sample->steps * cleat_maps_step_elements(maps);
    if (!maps->steps) {
        *room = cleat_alloc((size_t)count, sizeof **room);
        if (!*room) return cleat_fail(error, CLEAT_ERR_MEMORY, "%s: no memory for the frames", sample->path);
    }
    cleat_status status = cleat_maps_sample_steps(maps, sample, *room, steps, error);
    if (status || !*room) return status;
    cleat_maps_transform(maps->fitted.transform, *room, count);
    return cleat_maps_standardise(maps, sample->path, *room, sample->steps, error);
}

static cleat_status maps_fill(const cleat_dataset *dataset, size_t index, int64_t length, const cleat_rng_key *rng_key,
                              void *const *slots, cleat_error *error) {
    const cleat_maps *maps = (const cleat_maps *)dataset;
    const cleat_maps_sample *sample = &maps->samples[index];
    mirror seen = draw_mirror(maps, index, rng_key);
    if (slots[STEPS]) {
        float *room = NULL;
        const float *steps = NULL;
        cleat_status status = load_steps(maps, sample, &room, &steps, error);
        if (!status) cut_patches(maps, steps, sample->steps, length, seen, slots[STEPS]);
        cleat_free(room);
        if (status) return status;
    }
    int32_t *lengths = slots[LENGTHS];
    for (int64_t n = 0; lengths && n < maps->common.fields[LENGTHS].shape[0]; ++n) lengths[n] = (int32_t)sample->steps;
    if (slots[MASK]) copy_target(maps, sample->target, seen, slots[MASK]);
    return CLEAT_OK;
}

static int64_t shown_channel(const cleat_maps *maps) {
    const int index = maps->fitted.target ? cleat_name_list_find(&maps->fitted.names, maps->fitted.target) : -1;
    return index > 0 ? index : 0;
}

cleat_status cleat_maps_last_frame(const cleat_dataset *dataset, size_t index, float *values, int64_t *channel,
                                   const char **name, cleat_error *error) {
    const cleat_maps *maps = (const cleat_maps *)dataset;
    const cleat_maps_sample *sample = &maps->samples[index];
    const int64_t shown = shown_channel(maps), pixels = cleat_maps_target_elements(maps);
    float *room = NULL;
    const float *steps = NULL;
    cleat_status status = load_steps(maps, sample, &room, &steps, error);
    if (!status) {
        const float *from = steps + (sample->steps - 1) * cleat_maps_step_elements(maps) + shown * pixels;
        for (int64_t i = 0; i < pixels; ++i)
            values[i] = (float)((double)from[i] * maps->fitted.std[shown] + maps->fitted.mean[shown]);
        *channel = shown;
        *name = (size_t)shown < maps->fitted.names.count ? maps->fitted.names.names[shown] : NULL;
    }
    cleat_free(room);
    return status;
}

static const char *maps_id(const cleat_dataset *dataset, size_t sample) {
    return ((const cleat_maps *)dataset)->samples[sample].id;
}

static int64_t maps_length(const cleat_dataset *dataset, size_t sample) {
    return ((const cleat_maps *)dataset)->samples[sample].steps;
}

static cleat_split maps_split(const cleat_dataset *dataset, size_t sample) {
    return ((const cleat_maps *)dataset)->samples[sample].split;
}

static cleat_status maps_save(const cleat_dataset *dataset, const char *folder, cleat_error *error) {
    return cleat_maps_preprocessor_write(folder, &((const cleat_maps *)dataset)->fitted, error);
}

static cleat_status maps_check_saved(const cleat_dataset *dataset, const char *folder, cleat_error *error) {
    cleat_maps_preprocessor read = {0};
    (void)dataset;
    cleat_status status = cleat_maps_preprocessor_read(folder, &read, error);
    if (!status) cleat_maps_preprocessor_free(&read);
    return status;
}

static void maps_destroy(cleat_dataset *dataset) {
    cleat_maps *maps = (cleat_maps *)dataset;
    for (size_t i = 0; i < dataset->count; ++i) {
        cleat_free(maps->samples[i].id);
        cleat_free(maps->samples[i].path);
    }
    cleat_free(maps->samples);
    cleat_free(maps->steps);
    cleat_free(maps->targets);
    cleat_maps_preprocessor_free(&maps->fitted);
    cleat_free(maps);
}

static const cleat_dataset_class maps_class = {
    .name = CLEAT_MAPS_NAME,
    .n_fields = FIELDS,
    .id = maps_id,
    .length = maps_length,
    .split = maps_split,
    .fill = maps_fill,
    .save = maps_save,
    .check_saved = maps_check_saved,
    .destroy = maps_destroy,
};

static int64_t padded(int64_t size, int64_t patch) {
    return (size + patch - 1) / patch * patch;
}

static void set_shapes(cleat_maps *maps, int64_t lookback) {
    cleat_image_info *info = &maps->common.info;
    cleat_field *fields = maps->common.fields;
    *info = (cleat_image_info){.channels = maps->channels,
                               .classes = 2,
                               .positive = maps->fitted.positive,
                               .height = padded(maps->height, maps->patch),
                               .width = padded(maps->width, maps->patch),
                               .file_height = maps->height,
                               .file_width = maps->width,
                               .steps = lookback};
    maps->common.mean = maps->fitted.mean;
    maps->common.std = maps->fitted.std;
    for (size_t i = 0; i < maps->common.base.count; ++i) ++info->samples[maps->samples[i].split];
    int64_t patches = info->height / maps->patch * (info->width / maps->patch);
    fields[STEPS] = (cleat_field){.name = "frames",
                                  .dtype = CLEAT_F32,
                                  .rank = 3,
                                  .shape = {patches, -1, maps->patch * maps->patch * maps->channels}};
    fields[LENGTHS] = (cleat_field){.name = "lengths", .dtype = CLEAT_I32, .rank = 1, .shape = {patches}};
    fields[MASK] =
        (cleat_field){.name = "mask", .dtype = CLEAT_I32, .rank = 2, .shape = {info->height, info->width}, .pad = -1};
}

cleat_maps_options cleat_maps_defaults(void) {
    return (cleat_maps_options){
        .lookback = 6, .horizon = 1, .patch = 4, .transform = CLEAT_TRANSFORM_LOG1P, .val_fraction = 0.2};
}

static cleat_status check_options(const cleat_maps_options *o, cleat_error *error) {
    const struct {
        const char *name;
        int64_t value, least, most;
    } numbers[] = {
        {"lookback", o->lookback, 1, LONGEST},     {"horizon", o->horizon, 1, LONGEST},
        {"patch", o->patch, 1, LARGEST_PATCH},     {"val_days", o->val_days, 0, INT32_MAX},
        {"test_days", o->test_days, 0, INT32_MAX},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; ++i)
        if (numbers[i].value < numbers[i].least || numbers[i].value > numbers[i].most)
            return cleat_fail(error, CLEAT_ERR_ARGUMENT, "%s is %lld; it must be %lld to %lld", numbers[i].name,
                              (long long)numbers[i].value, (long long)numbers[i].least, (long long)numbers[i].most);
    if (!(o->val_fraction >= 0 && o->test_fraction >= 0 && o->val_fraction + o->test_fraction <= 1))
        return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                          "val_fraction %g and test_fraction %g, and their sum, must be in 0..1", o->val_fraction,
                          o->test_fraction);
    if ((unsigned)o->transform > CLEAT_TRANSFORM_LOG1P)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "unknown transform (%d)", (int)o->transform);
    if (o->predict && !o->fitted)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "prediction requires the preprocessing state saved by training");
    return CLEAT_OK;
}

/* Determines whether the folder contains grids or stacks. */
static const char of_table[] =
    "; for a table of detections (FIRMS: latitude, longitude, acq_date), count the rows of each cell and day "
    "(numpy.histogram2d), and write each day as a grid count_YYYYMMDD.asc";

static cleat_status find_layout(const char *folder, bool *grids, cleat_error *error) {
    size_t asc = 0, npy = 0, tables = cleat_ends_in(folder, ".csv");
    cleat_name_list listing = {0};
    if (cleat_file_exists(folder))
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "%s: is a file; maps are a folder (data.path)%s", folder,
                          tables ? of_table : "");
    cleat_status status = cleat_listing_read(folder, NULL, &listing, error);
    if (status == CLEAT_ERR_NOT_FOUND)
        return cleat_fail(error, status, "%s: the folder does not exist (data.path)", folder);
    if (status) return cleat_fail_in(error, status, "data.path is a folder");
    for (size_t i = 0; i < listing.count; ++i) {
        asc += cleat_ends_in(listing.names[i], ".asc");
        npy += cleat_ends_in(listing.names[i], ".npy");
        tables += cleat_ends_in(listing.names[i], ".csv");
    }
    cleat_name_list_free(&listing);
    if (!asc && !npy)
        return cleat_fail(error, CLEAT_ERR_NOT_FOUND,
                          "%s: no maps in this folder; expected ESRI ASCII grids NAME_YYYYMMDD.asc, or stacks NAME.npy "
                          "[T, C, H, W] with NAME_mask.npy [H, W]%s",
                          folder, tables ? of_table : "");
    if (asc && npy)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                          "%s: both ESRI grids (.asc) and stacks (.npy); move one kind to a separate folder", folder);
    *grids = asc > 0;
    return CLEAT_OK;
}

static cleat_status check_fitted(const char *folder, bool grids, const cleat_maps_options *options,
                                 const cleat_maps_preprocessor *fitted, cleat_error *error) {
    if (grids != (fitted->names.count > 0))
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "%s: the model was trained on %s, but this folder contains %s",
                          folder, grids ? "stacks (.npy)" : "ESRI grids (.asc)", grids ? "ESRI grids" : "stacks");
    if (options->transform != fitted->transform)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                          "%s: data.transform differs from that of the training; do not change it", options->fitted);
    return CLEAT_OK;
}

static bool is_unknown(const cleat_maps *maps, int64_t target) {
    int64_t pixels = cleat_maps_target_elements(maps);
    const int8_t *values = maps->targets + target * pixels;
    for (int64_t i = 0; i < pixels; ++i)
        if (values[i] >= 0) return false;
    return true;
}

/* A sample without a known target pixel contributes neither to training nor to evaluation. */
static void drop_unknown(const char *folder, cleat_maps *maps) {
    size_t kept = 0, count = maps->common.base.count;
    for (size_t i = 0; i < count; ++i) {
        cleat_maps_sample sample = maps->samples[i];
        if (!is_unknown(maps, sample.target)) {
            maps->samples[kept++] = sample;
            continue;
        }
        cleat_free(sample.id);
        cleat_free(sample.path);
    }
    maps->common.base.count = kept;
    if (kept < count)
        cleat_log(CLEAT_LOG_WARNING, "%s: %zu samples are skipped because their target is unknown everywhere", folder,
                  count - kept);
}

static cleat_status read_folder(const char *folder, const cleat_maps_options *options, cleat_maps *maps,
                                cleat_error *error) {
    bool grids = false;
    size_t trained = 0;
    cleat_status status = find_layout(folder, &grids, error);
    if (!status && options->fitted) status = cleat_maps_preprocessor_read(options->fitted, &maps->fitted, error);
    if (!status && options->fitted) status = check_fitted(folder, grids, options, &maps->fitted, error);
    maps->fitted.transform = options->transform;
    if (!status) status = (grids ? cleat_maps_read_esri : cleat_maps_read_npy)(folder, options, maps, error);
    if (!status && !options->predict) drop_unknown(folder, maps);
    for (size_t i = 0; !status && i < maps->common.base.count; ++i)
        trained += maps->samples[i].split == CLEAT_SPLIT_TRAIN;
    if (!status && !options->fitted && !trained)
        status = cleat_fail(error, CLEAT_ERR_ARGUMENT,
                            "%s: no training samples are left; use smaller validation and test splits, or more data",
                            folder);
    return status;
}

static void log_summary(const char *folder, const cleat_maps *maps) {
    const cleat_image_info *info = &maps->common.info;
    cleat_log(CLEAT_LOG_INFO,
              "%s: %lld frames of %lld channels, %lld x %lld; %.3g %% of the training masks are 1; %lld training, %lld "
              "validation and %lld test samples",
              folder, (long long)maps->n_steps, (long long)maps->channels, (long long)maps->height,
              (long long)maps->width, 100 * maps->fitted.positive, (long long)info->samples[CLEAT_SPLIT_TRAIN],
              (long long)info->samples[CLEAT_SPLIT_VAL], (long long)info->samples[CLEAT_SPLIT_TEST]);
}

cleat_status cleat_maps_open(const char *path, const cleat_maps_options *options, cleat_dataset **dataset,
                             cleat_error *error) {
    return cleat_maps_open_within(path, options, KEPT_BYTES, dataset, error);
}

cleat_status cleat_maps_open_within(const char *path, const cleat_maps_options *options, int64_t kept_bytes,
                                    cleat_dataset **dataset, cleat_error *error) {
    cleat_maps_options chosen = options ? *options : cleat_maps_defaults();
    if (chosen.fitted && !*chosen.fitted) chosen.fitted = NULL;
    cleat_status status = check_options(&chosen, error);
    if (status) return status;
    cleat_maps *maps = cleat_alloc(1, sizeof *maps);
    if (!maps) return cleat_fail(error, CLEAT_ERR_MEMORY, "%s: no memory for the dataset", path);
    maps->patch = chosen.patch;
    maps->kept_bytes = kept_bytes;
    maps->flip = chosen.flip;
    maps->flip_vertical = chosen.flip_vertical;
    cleat_image_dataset_init(&maps->common, &maps_class);
    status = read_folder(path, &chosen, maps, error);
    if (!status && maps->steps)
        cleat_maps_transform(maps->fitted.transform, maps->steps, maps->n_steps * cleat_maps_step_elements(maps));
    if (!status && !chosen.fitted) status = cleat_maps_fit_preprocessor(maps, path, error);
    if (!status && maps->steps) status = cleat_maps_standardise(maps, path, maps->steps, maps->n_steps, error);
    if (status) {
        cleat_dataset_destroy(&maps->common.base);
        return status;
    }
    set_shapes(maps, chosen.lookback);
    log_summary(path, maps);
    *dataset = &maps->common.base;
    return CLEAT_OK;
}

/* --- persistence ---------------------------------------------------------------------------------------------- */

cleat_status cleat_maps_persistence(const cleat_dataset *dataset, size_t sample, int32_t *mask, cleat_error *error) {
    if (dataset->type->destroy != maps_destroy)
        return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED,
                          "a persistence forecast is available only for maps over time");
    const cleat_maps *maps = (const cleat_maps *)dataset;
    const cleat_image_info *info = &maps->common.info;
    if (sample >= dataset->count)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "sample %zu is out of range in a dataset of %zu samples", sample,
                          dataset->count);
    if (maps->samples[sample].path)
        return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED,
                          "%s: the frames of a stack have no targets, so no persistence forecast is available",
                          maps->samples[sample].id);
    for (int64_t i = 0; i < info->height * info->width; ++i) mask[i] = -1;
    copy_target(maps, maps->samples[sample].today, (mirror){false, false}, mask);
    return CLEAT_OK;
}
