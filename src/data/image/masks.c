/* Dataset of images with masks: opens it, fits means and standard deviations, and fills samples. */
#include "data/image/masks.h"

#include "core/memory.h"
#include "data/image/image_base.h"
#include "platform/text.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { IMAGE = CLEAT_IMAGE, MASK = CLEAT_IMAGE_TARGET, MAX_FIT_SAMPLES = 2000 };

/* The cache has the image of sample i as 2 i and its mask as 2 i + 1. */
typedef struct masks {
    cleat_image_base all; /* first, so that a cleat_dataset * can be cast to this type */
    cleat_mask_set set;
    cleat_mask_classes classes;
} masks;

static const masks *masks_of(const cleat_dataset *dataset) {
    return (const masks *)dataset;
}

/* --- a sample ------------------------------------------------------------------------------------------------- */

static cleat_status read_file(void *user, size_t index, cleat_image *image, cleat_error *error) {
    const masks *m = user;
    const cleat_mask_sample *sample = &m->set.samples[index / 2];
    bool is_mask = index % 2;
    cleat_image read = {0};
    cleat_status status = !is_mask           ? cleat_image_read(sample->image, m->all.fitted.channels, &read, error)
                          : m->classes.count ? cleat_mask_read_classes(sample->mask, &m->classes, &read, error)
                                             : cleat_mask_read(sample->mask, &read, error);
    if (status) return status;
    if (read.height != sample->height || read.width != sample->width) {
        cleat_image_free(&read);
        return cleat_fail(error, CLEAT_ERR_FORMAT, "%s: the image size has changed since the folder was opened",
                          is_mask ? sample->mask : sample->image);
    }
    *image = read;
    return CLEAT_OK;
}

/* *image is borrowed until release_image. */
static cleat_status acquire_image(const masks *m, size_t file, cleat_image *image, cleat_error *error) {
    return cleat_image_cache_get(m->all.cache, file, read_file, (void *)m, image, error);
}

static void release_image(const masks *m, size_t file, cleat_image *image) {
    cleat_image_cache_release(m->all.cache, file, image);
}

/* Image and mask use the same crop, which depends on the size alone. */
static cleat_augment_params augment_params_of(const masks *m, size_t sample, const cleat_rng_key *rng_key) {
    cleat_image size = {.height = m->set.samples[sample].height, .width = m->set.samples[sample].width};
    if (!rng_key || !m->all.augments) return cleat_augment_identity(&size, false);
    return cleat_augment_random(&size, false, m->all.common.info.size, &m->all.augment, rng_key, sample);
}

static cleat_status fill_image(const masks *m, size_t sample, const cleat_augment_params *params, int64_t length,
                               float *values, cleat_error *error) {
    int64_t size = m->all.common.info.size;
    size_t pixel = (size_t)m->all.fitted.channels * sizeof *values;
    cleat_image image;
    cleat_status status = acquire_image(m, 2 * sample, &image, error);
    if (status) return status;
    status = cleat_augment_apply(&image, params, &m->all.fitted, size, values, error);
    release_image(m, 2 * sample, &image);
    if (status) return status;
    cleat_image_base_pad(size, (size_t)size * pixel, (size_t)length * pixel, 0, values);
    return CLEAT_OK;
}

static cleat_status fill_mask(const masks *m, size_t sample, const cleat_augment_params *params, int64_t length,
                              int32_t *labels, cleat_error *error) {
    int64_t size = m->all.common.info.size;
    cleat_image mask;
    if (!m->set.samples[sample].mask) return CLEAT_OK;
    cleat_status status = acquire_image(m, 2 * sample + 1, &mask, error);
    if (status) return status;
    status = cleat_augment_apply_labels(&mask, params, size, labels, error);
    release_image(m, 2 * sample + 1, &mask);
    if (status) return status;
    for (int64_t i = 0; m->classes.count && i < size * size; ++i)
        if (labels[i] == CLEAT_MASK_UNLABELLED) labels[i] = -1;
    cleat_image_base_pad(size, (size_t)size * sizeof *labels, (size_t)length * sizeof *labels, -1, labels);
    return CLEAT_OK;
}

static cleat_status masks_fill(const cleat_dataset *dataset, size_t sample, int64_t length,
                               const cleat_rng_key *rng_key, void *const *slots, cleat_error *error) {
    const masks *m = masks_of(dataset);
    cleat_mask_sample *own = &m->set.samples[sample];
    if (own->unreadable) return CLEAT_OK;
    cleat_augment_params params = augment_params_of(m, sample, rng_key);
    cleat_status status = CLEAT_OK;
    cleat_error why = {0};
    if (slots[IMAGE]) status = fill_image(m, sample, &params, length, slots[IMAGE], &why);
    if (status && m->all.predicts && cleat_image_skips(&why)) {
        own->unreadable = true;
        return CLEAT_OK;
    }
    if (status) return cleat_fail(error, status, "%s", why.text);
    return slots[MASK] ? fill_mask(m, sample, &params, length, slots[MASK], error) : CLEAT_OK;
}

static const char *masks_id(const cleat_dataset *dataset, size_t sample) {
    return masks_of(dataset)->set.samples[sample].name;
}

static cleat_split masks_split(const cleat_dataset *dataset, size_t sample) {
    return masks_of(dataset)->set.samples[sample].split;
}

static cleat_sample_state masks_state(const cleat_dataset *dataset, size_t sample) {
    return masks_of(dataset)->set.samples[sample].unreadable ? CLEAT_SAMPLE_UNREADABLE : CLEAT_SAMPLE_WHOLE;
}

static void masks_destroy(cleat_dataset *dataset) {
    masks *m = (masks *)dataset;
    cleat_mask_set_free(&m->set);
    cleat_image_preprocessor_free(&m->all.fitted);
    cleat_image_cache_destroy(m->all.cache);
    cleat_free(m);
}

static const cleat_dataset_class masks_class = {
    .name = CLEAT_MASKS_NAME,
    .n_fields = CLEAT_IMAGE_FIELDS,
    .id = masks_id,
    .length = cleat_image_base_length,
    .split = masks_split,
    .fill = masks_fill,
    .state = masks_state,
    .save = cleat_image_base_save,
    .check_saved = cleat_image_base_check_saved,
    .destroy = masks_destroy,
};

/* --- fitting to the training split ---------------------------------------------------------------------------- */

typedef struct fit_job {
    const masks *m;
    _Atomic int64_t pixels, classes[1 + CLEAT_MASK_CLASSES]; /* of the masks: all, of each class */
} fit_job;

static cleat_status add_sample(void *user, size_t sample, cleat_channel_sums *sums, cleat_error *error) {
    fit_job *l = user;
    int64_t counts[1 + CLEAT_MASK_CLASSES] = {0};
    cleat_image image, mask;
    cleat_status status = acquire_image(l->m, 2 * sample, &image, error);
    if (status) return status;
    cleat_channel_sums_add(sums, &image);
    release_image(l->m, 2 * sample, &image);
    status = acquire_image(l->m, 2 * sample + 1, &mask, error);
    if (status) return status;
    const int64_t pixels = mask.height * mask.width;
    for (int64_t i = 0; i < pixels; ++i) ++counts[mask.pixels[i]];
    for (int c = 0; c <= CLEAT_MASK_CLASSES; ++c) l->classes[c] += counts[c];
    l->pixels += pixels;
    release_image(l->m, 2 * sample + 1, &mask);
    return CLEAT_OK;
}

static void log_unlabelled(const masks *m, const char *path, const fit_job *l) {
    bool absent = false;
    for (int64_t c = 0; c < m->classes.count; ++c) absent = absent || !l->classes[c];
    if (!m->classes.count || !l->classes[CLEAT_MASK_UNLABELLED]) return;
    cleat_log(absent ? CLEAT_LOG_WARNING : CLEAT_LOG_INFO,
              "%s: %.3g %% of the pixels of the training masks are unlabelled (%s): they are neither trained nor "
              "counted%s",
              path, 100.0 * (double)l->classes[CLEAT_MASK_UNLABELLED] / (double)l->pixels,
              m->classes.reduce ? "0 and 255, data.reduce_labels" : "255",
              absent ? "; if this value stands for a class, write the number of the class in its place, or leave "
                       "data.classes out for masks of black and white"
                     : "");
}

static cleat_status fit_preprocessor(masks *m, const char *path, cleat_error *error) {
    size_t used;
    fit_job l = {.m = m};
    cleat_status status = cleat_image_base_fit(&m->all, path, MAX_FIT_SAMPLES, add_sample, &l, &used, error);
    if (!status) {
        for (int64_t c = 0; c < m->classes.count; ++c) m->all.fitted.samples[c] = l.classes[c];
        log_unlabelled(m, path, &l);
        const int64_t ones = l.classes[1];
        if (!m->classes.count) m->all.fitted.positive = l.pixels ? (double)ones / (double)l.pixels : 0;
        if ((!ones || ones == l.pixels) && !m->classes.count) {
            cleat_error why;
            (void)!cleat_fail(&why, CLEAT_ERR_FORMAT,
                              "%s: %s pixel of the %zu training masks%s is 1, so training is impossible; check the "
                              "masks. If their shape is in the transparency, which is not read, write it in black and "
                              "white (ImageMagick: " CLEAT_CONVERT " FILE -alpha extract FILE)",
                              path, ones ? "every" : "no", used, used < MAX_FIT_SAMPLES ? "" : " read first");
            if (used < MAX_FIT_SAMPLES) return cleat_fail(error, CLEAT_ERR_FORMAT, "%s", why.text);
            cleat_log(CLEAT_LOG_WARNING, "%s", why.text);
        }
    }
    return status;
}

/* 1 (grey), or 3 (colour) if any training image has colours; *trained is false if there are no training
 * images. */
static int64_t channels_of_training(const masks *m, bool *trained) {
    int64_t channels = 1;
    *trained = false;
    for (size_t i = 0; i < m->set.count; ++i) {
        if (m->set.samples[i].split != CLEAT_SPLIT_TRAIN) continue;
        *trained = true;
        if (m->set.samples[i].channels == 3) channels = 3;
    }
    return channels;
}

static cleat_status select_channels(masks *m, const char *path, const cleat_image_options *options,
                                    cleat_error *error) {
    bool trained = false;
    int64_t found = channels_of_training(m, &trained), wanted = options->channels;
    if (wanted != 0 && wanted != 1 && wanted != 3)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "%lld channels: images with masks are grey (1) or colour (3)",
                          (long long)wanted);
    if (!options->fitted && !trained)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                          "%s: no training images are left; use smaller validation and test splits (val.txt, test.txt, "
                          "data.val_fraction)",
                          path);
    if (!options->fitted) m->all.fitted.channels = wanted ? wanted : found;
    return CLEAT_OK;
}

/* The fitted classes are those of the model; the options may repeat their number. */
static cleat_status read_fitted(masks *m, const cleat_image_options *options, cleat_error *error) {
    const char *folder = options->fitted;
    const int64_t asked = m->classes.count;
    cleat_status status = cleat_image_base_read_fitted(&m->all, options, error);
    if (status) return status;
    m->classes.count = (int64_t)m->all.fitted.classes.count;
    if (asked == m->classes.count) return CLEAT_OK;
    if (!asked)
        return cleat_fail(error, CLEAT_ERR_FORMAT,
                          "%s/pictures.json: the file has classes: the model was not trained on masks of black and "
                          "white; with masks of classes, set data.classes = %lld",
                          folder, (long long)m->classes.count);
    return cleat_fail(
        error, CLEAT_ERR_FORMAT,
        "%s/pictures.json: the model was trained with %lld classes (0: black and white), but data.classes "
        "is %lld; use the settings of the training",
        folder, (long long)m->classes.count, (long long)asked);
}

static cleat_status open_masks(const char *path, const cleat_image_options *options, masks *m, cleat_error *error) {
    cleat_status status = cleat_mask_classes_of(options, &m->classes, error);
    if (!status && options->fitted) status = read_fitted(m, options, error);
    if (!status && !options->fitted && m->classes.count)
        status = cleat_mask_classes_name(path, options, &m->classes, &m->all.fitted, error);
    if (!status) status = cleat_mask_set_find(path, options, &m->set, error);
    m->all.common.base.count = m->set.count;
    if (!status) status = select_channels(m, path, options, error);
    if (!status) status = cleat_image_cache_create(2 * m->set.count, options->cache_bytes, &m->all.cache, error);
    if (!status && !options->fitted) status = fit_preprocessor(m, path, error);
    if (!status && !options->fitted && cleat_image_normalisation_given(options))
        status = cleat_image_preprocessor_give(&m->all.fitted, options, error);
    if (status) return status;
    cleat_image_base_describe(&m->all, options, m->classes.count ? m->classes.count : 2);
    m->all.common.fields[MASK] =
        (cleat_field){.name = "mask", .dtype = CLEAT_I32, .rank = 2, .shape = {-1, -1}, .pad = -1};
    for (size_t i = 0; i < m->set.count; ++i) ++m->all.common.info.samples[m->set.samples[i].split];
    return CLEAT_OK;
}

static void log_summary(const char *path, const masks *m) {
    const cleat_image_info *info = &m->all.common.info;
    char shares[64];
    if (m->classes.count)
        snprintf(shares, sizeof shares, "%lld classes", (long long)m->classes.count);
    else
        snprintf(shares, sizeof shares, "%.3g %% of the training masks are 1", 100 * info->positive);
    cleat_log(
        CLEAT_LOG_INFO,
        "%s: images of %lld channels with masks, as %lld x %lld; %s; %lld training, %lld validation and %lld test "
        "samples",
        path, (long long)info->channels, (long long)info->size, (long long)info->size, shares,
        (long long)info->samples[CLEAT_SPLIT_TRAIN], (long long)info->samples[CLEAT_SPLIT_VAL],
        (long long)info->samples[CLEAT_SPLIT_TEST]);
}

cleat_status cleat_masks_open(const char *path, const cleat_image_options *options, cleat_dataset **dataset,
                              cleat_error *error) {
    cleat_image_options chosen = options ? *options : cleat_image_defaults();
    if (chosen.fitted && !*chosen.fitted) chosen.fitted = NULL;
    cleat_status status = cleat_image_check_options(&chosen, error);
    if (status) return status;
    masks *m = cleat_alloc(1, sizeof *m);
    if (!m) return cleat_fail(error, CLEAT_ERR_MEMORY, "%s: no memory for the dataset", path);
    cleat_image_base_init(&m->all, &chosen, &masks_class);
    status = open_masks(path, &chosen, m, error);
    if (status) {
        cleat_dataset_destroy(&m->all.common.base);
        return status;
    }
    log_summary(path, m);
    *dataset = &m->all.common.base;
    return CLEAT_OK;
}

cleat_status cleat_masks_file_size(const cleat_dataset *dataset, size_t sample, int64_t *height, int64_t *width,
                                   cleat_error *error) {
    if (dataset->type->destroy != masks_destroy)
        return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED, "only images with masks have individual sizes");
    if (sample >= dataset->count)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "sample %zu is out of range in a dataset of %zu samples", sample,
                          dataset->count);
    *height = masks_of(dataset)->set.samples[sample].height;
    *width = masks_of(dataset)->set.samples[sample].width;
    return CLEAT_OK;
}

cleat_status cleat_masks_image(const cleat_dataset *dataset, size_t sample, cleat_image *image, cleat_error *error) {
    const masks *m = masks_of(dataset);
    return cleat_image_read(m->set.samples[sample].image, m->all.fitted.channels, image, error);
}

/* NULL: another dataset. */
static const masks *as_masks(const cleat_dataset *dataset) {
    return dataset->type->destroy == masks_destroy ? masks_of(dataset) : NULL;
}

const char *cleat_masks_class(const cleat_dataset *dataset, size_t index) {
    const masks *m = as_masks(dataset);
    return m && index < m->all.fitted.classes.count ? m->all.fitted.classes.names[index] : NULL;
}

int64_t cleat_masks_class_pixels(const cleat_dataset *dataset, size_t index) {
    const masks *m = as_masks(dataset);
    return m && index < m->all.fitted.classes.count && m->all.fitted.samples ? m->all.fitted.samples[index] : 0;
}
