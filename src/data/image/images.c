/* Dataset of images with classes: opens it, fits means and standard deviations, fills samples, and answers
 * queries. */
#include "data/image/images.h"

#include "core/files.h"
#include "core/memory.h"
#include "core/string.h"
#include "data/image/image_base.h"

#include <math.h>
#include <string.h>

enum { MAX_FIT_SAMPLES = 2000 };

typedef struct images {
    cleat_image_base all; /* first, so that a cleat_dataset * can be cast to this type */
    cleat_image_set set;  /* rows [count]; names are not used once it is open */
    int64_t min_side;     /* minimum size in pixels at which a file is decoded */
    float (*table)[256];  /* [C] standardized value of each byte */
    uint32_t *partners;   /* [n_partners] training samples that are mixed into others */
    size_t n_partners;
} images;

enum { IMAGE = CLEAT_IMAGE, LABEL = CLEAT_IMAGE_TARGET, LABELS, MIX, MIXED_FIELDS };

static const images *images_of(const cleat_dataset *dataset) {
    return (const images *)dataset;
}

/* --- one image ------------------------------------------------------------------------------------------------ */

static cleat_status read_file(void *user, size_t index, cleat_image *image, cleat_error *error) {
    const images *im = user;
    char path[CLEAT_FILE_PATH];
    const cleat_image_row *row = &im->set.rows[index];
    cleat_status status = cleat_path_join(im->set.root, row->file ? row->file : row->id, path, CLEAT_FILE_PATH, error);
    if (status) return status;
    return cleat_image_read_min_side(path, im->all.fitted.channels, im->min_side, image, error);
}

/* *image is borrowed until release_image. */
static cleat_status acquire_image(const images *im, size_t sample, cleat_image *image, cleat_error *error) {
    const cleat_image_row *row = &im->set.rows[sample];
    if (!row->pixels) return cleat_image_cache_get(im->all.cache, sample, read_file, (void *)im, image, error);
    *image = (cleat_image){.height = im->set.height,
                           .width = im->set.width,
                           .channels = im->set.channels,
                           .pixels = (uint8_t *)row->pixels};
    return CLEAT_OK;
}

static void release_image(const images *im, size_t sample, cleat_image *image) {
    if (!im->set.rows[sample].pixels) cleat_image_cache_release(im->all.cache, sample, image);
}

static const char *images_id(const cleat_dataset *dataset, size_t sample) {
    return images_of(dataset)->set.rows[sample].id;
}

static cleat_split images_split(const cleat_dataset *dataset, size_t sample) {
    return (cleat_split)images_of(dataset)->set.rows[sample].split;
}

static int64_t one_item(const cleat_dataset *dataset, size_t sample) {
    (void)dataset;
    (void)sample;
    return 1;
}

static void fill_plain(const images *im, const cleat_image *image, float *values) {
    int64_t pixels = image->height * image->width, channels = image->channels;
    const uint8_t *from = image->pixels;
    for (int64_t i = 0; i < pixels; ++i)
        for (int64_t c = 0; c < channels; ++c) *values++ = im->table[c][*from++];
}

static cleat_status fill_image(const images *im, size_t sample, const cleat_rng_key *rng_key, float *values,
                               cleat_error *error) {
    int64_t size = im->all.common.info.size;
    cleat_image image;
    cleat_status status = acquire_image(im, sample, &image, error);
    if (status) return status;
    cleat_augment_params params = rng_key && im->all.augments
                                      ? cleat_augment_random(&image, true, size, &im->all.augment, rng_key, sample)
                                      : cleat_augment_identity(&image, true);
    if (cleat_augment_is_identity(&image, &params, size)) {
        fill_plain(im, &image, values);
    } else {
        status = cleat_augment_apply(&image, &params, &im->all.fitted, size, values, error);
    }
    release_image(im, sample, &image);
    return status;
}

static void mix_targets(const cleat_targets *targets, size_t other, float weight, float *slot) {
    float values[CLEAT_TARGETS_MOST];
    cleat_targets_fill(targets, other, values);
    for (size_t k = 0; k < targets->count; ++k) slot[k] = weight * slot[k] + (1 - weight) * values[k];
}

static const uint64_t MIX_SEED = 0x6d6978u; /* "mix": a separate family of random streams */

/* Mixes a training sample, as it is augmented in this epoch, into the sample; itself, if targets of the other are
 * unknown. */
static cleat_status mix_sample(const images *im, size_t sample, const cleat_rng_key *rng_key, void *const *slots,
                               cleat_error *error) {
    const int64_t size = im->all.common.info.size, channels = im->all.fitted.channels;
    const cleat_targets *targets = im->all.common.base.targets;
    cleat_mix mix = {.weight = 1};
    size_t other = sample;
    if (rng_key) {
        cleat_random random = cleat_random_stream(rng_key->seed ^ MIX_SEED, rng_key->epoch, (uint32_t)sample);
        other = im->partners[cleat_random_below(&random, (uint32_t)im->n_partners)];
        mix = cleat_mix_draw(&im->all.augment, &random, size);
        if (targets && (size_t)cleat_targets_items(&im->all.common.base, other) < targets->count) other = sample;
    }
    if (targets && slots[LABEL]) mix_targets(targets, other, mix.weight, slots[LABEL]);
    if (!targets && slots[LABELS])
        memcpy(slots[LABELS], (int32_t[]){im->set.rows[sample].label, im->set.rows[other].label}, 2 * sizeof(int32_t));
    if (!targets && slots[MIX]) memcpy(slots[MIX], (float[]){mix.weight, 1 - mix.weight}, 2 * sizeof(float));
    if (!rng_key || !slots[IMAGE]) return CLEAT_OK;
    float *values = cleat_alloc((size_t)(size * size * channels), sizeof *values);
    if (!values) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for mixing two images");
    const cleat_status status = fill_image(im, other, rng_key, values, error);
    if (!status) cleat_mix_apply(&mix, size, channels, values, slots[IMAGE]);
    cleat_free(values);
    return status;
}

static cleat_status images_fill(const cleat_dataset *dataset, size_t sample, int64_t length,
                                const cleat_rng_key *rng_key, void *const *slots, cleat_error *error) {
    const images *im = images_of(dataset);
    cleat_image_row *row = &im->set.rows[sample];
    cleat_error why = {0};
    int64_t size = im->all.common.info.size;
    if (slots[LABEL] && dataset->targets)
        cleat_targets_fill(dataset->targets, sample, slots[LABEL]);
    else if (slots[LABEL])
        *(int32_t *)slots[LABEL] = row->label;
    if (row->unreadable) return CLEAT_OK;
    cleat_status status = slots[IMAGE] ? fill_image(im, sample, rng_key, slots[IMAGE], &why) : CLEAT_OK;
    if (!status && (im->partners || dataset->type->n_fields == MIXED_FIELDS))
        status = mix_sample(im, sample, rng_key, slots, &why);
    if (status && im->all.predicts && cleat_image_skips(&why)) {
        row->unreadable = true;
        return CLEAT_OK;
    }
    if (status) return cleat_fail(error, status, "%s", why.text);
    const size_t pixel = (size_t)im->all.fitted.channels * sizeof(float);
    if (slots[IMAGE]) cleat_image_base_pad(size, (size_t)size * pixel, (size_t)length * pixel, 0, slots[IMAGE]);
    return CLEAT_OK;
}

static cleat_sample_state images_state(const cleat_dataset *dataset, size_t sample) {
    return images_of(dataset)->set.rows[sample].unreadable ? CLEAT_SAMPLE_UNREADABLE : CLEAT_SAMPLE_WHOLE;
}

static void images_destroy(cleat_dataset *dataset) {
    images *im = (images *)dataset;
    cleat_image_set_free(&im->set);
    cleat_image_preprocessor_free(&im->all.fitted);
    cleat_image_cache_destroy(im->all.cache);
    cleat_free(im->table);
    cleat_samples_free(im->partners);
    cleat_free(im);
}

static const cleat_dataset_class images_class = {
    .name = CLEAT_IMAGES_NAME,
    .n_fields = CLEAT_IMAGE_FIELDS,
    .id = images_id,
    .length = cleat_image_base_length,
    .split = images_split,
    .fill = images_fill,
    .items = one_item,
    .state = images_state,
    .save = cleat_image_base_save,
    .check_saved = cleat_image_base_check_saved,
    .destroy = images_destroy,
};

/* --- fitting to the training split ---------------------------------------------------------------------------- */

static cleat_status add_image(void *user, size_t sample, cleat_channel_sums *sums, cleat_error *error) {
    const images *im = user;
    cleat_image image;
    cleat_status status = acquire_image(im, sample, &image, error);
    if (status) return status;
    cleat_channel_sums_add(sums, &image);
    release_image(im, sample, &image);
    return CLEAT_OK;
}

static cleat_status fit_means(images *im, cleat_error *error) {
    size_t used;
    if (cleat_image_normalisation_given(im->set.options))
        return cleat_image_preprocessor_give(&im->all.fitted, im->set.options, error);
    return cleat_image_base_fit(&im->all, im->set.root, im->set.height ? SIZE_MAX : MAX_FIT_SAMPLES, add_image, im,
                                &used, error);
}

/* 1 (grey), or 3 (colour) if any training image has colours. */
static int64_t channels_of(const images *im) {
    int64_t channels = im->set.options->channels ? im->set.options->channels : im->set.channels;
    if (channels) return channels;
    channels = 1;
    for (size_t i = 0; i < im->set.n_rows && channels == 1; ++i)
        if (im->set.rows[i].split == CLEAT_SPLIT_TRAIN) channels = im->set.rows[i].channels;
    return channels;
}

static cleat_status check_channels(const images *im, cleat_error *error) {
    int64_t wanted = im->all.fitted.channels, own = im->set.channels;
    if (own ? wanted == own || (wanted == 1 && own == 3) || (wanted == 3 && own == 1) : wanted == 1 || wanted == 3)
        return CLEAT_OK;
    return cleat_fail(error, CLEAT_ERR_FORMAT,
                      "%s: the images have %lld channels, but %lld are required; only grey (1) and colour (3) can be "
                      "converted to each other",
                      im->set.root, (long long)(own ? own : 3), (long long)wanted);
}

static int64_t min_decoded_side(const cleat_image_options *options) {
    double crop = options->augment.crop_min;
    /* the shorter side of the smallest crop, with aspect ratio 3/4, still has the sample's size */
    return crop < 1 ? (int64_t)ceil((double)options->size / sqrt(crop * 0.75)) : options->size;
}

static cleat_status read_set(const char *path, cleat_image_set *set, cleat_error *error) {
    bool found = false, is_table = false;
    if (!cleat_folder_exists(path) && !cleat_file_exists(path))
        return cleat_fail(error, CLEAT_ERR_NOT_FOUND, "%s: no such file or folder (data.path)", path);
    if (!(set->root = cleat_strdup(path))) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a path");
    for (size_t end = strlen(set->root); end > 1 && set->root[end - 1] == '/';) set->root[--end] = 0;
    const bool file = cleat_file_exists(path);
    if (file && !cleat_image_is_table(path)) return cleat_image_folders_open(path, set, error);
    cleat_status status = file ? CLEAT_OK : cleat_idx_open(path, set, &found, error);
    if (!status && !file && !found) status = cleat_cifar_open(path, set, &found, error);
    if (!status && !found && (file || !set->options->predict))
        status = cleat_image_table_open(path, set, &is_table, error);
    if (!status && set->targets.options.problem && !is_table && !set->options->predict)
        return cleat_fail(error, CLEAT_ERR_FORMAT,
                          "%s: model.problem_type = %s needs a table of images and targets (.csv, .tsv) as data.path; "
                          "images in folders have one class each",
                          path, cleat_problem_names[set->targets.options.problem]);
    if (!status && !found && !is_table) status = cleat_image_folders_open(path, set, error);
    return status;
}

/* Images in memory are converted to the requested channels now; those in files are converted when they are
 * read. */
static cleat_status convert_memory(images *im, cleat_error *error) {
    cleat_image_set *set = &im->set;
    int64_t from = set->channels, to = im->all.fitted.channels, pixels = set->height * set->width;
    if (!from || from == to) return CLEAT_OK;
    uint8_t *block = cleat_alloc(set->n_rows, (size_t)(pixels * to));
    if (!block) return cleat_fail(error, CLEAT_ERR_MEMORY, "%s: no memory for %zu images", set->root, set->n_rows);
    cleat_status status = cleat_image_set_add_block(set, block, error);
    for (size_t i = 0; i < set->n_rows && !status; ++i, block += pixels * to) {
        if (to == 1)
            cleat_image_to_grey(set->rows[i].pixels, pixels, block);
        else
            cleat_image_to_colour(set->rows[i].pixels, pixels, block);
        set->rows[i].pixels = block;
    }
    if (status) return status;
    for (size_t i = 0; i + 1 < set->n_blocks; ++i) cleat_free(set->blocks[i]);
    set->blocks[0] = set->blocks[set->n_blocks - 1];
    set->n_blocks = 1;
    set->channels = to;
    return CLEAT_OK;
}

static cleat_status make_table(images *im, cleat_error *error) {
    im->table = cleat_alloc((size_t)im->all.fitted.channels, sizeof *im->table);
    if (!im->table) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a table of colours");
    float pixel[CLEAT_IMAGE_MAX_CHANNELS];
    for (int value = 0; value < 256; ++value) {
        for (int64_t c = 0; c < im->all.fitted.channels; ++c) pixel[c] = (float)value * (1.0f / 255);
        cleat_image_standardise(&im->all.fitted, 1, pixel);
        for (int64_t c = 0; c < im->all.fitted.channels; ++c) im->table[c][value] = pixel[c];
    }
    return CLEAT_OK;
}

static cleat_status count_samples(images *im, cleat_error *error) {
    cleat_image_info *info = &im->all.common.info;
    bool given = im->all.fitted.samples != NULL;
    if (!given) im->all.fitted.samples = cleat_alloc(im->all.fitted.classes.count, sizeof *im->all.fitted.samples);
    if (!im->all.fitted.samples)
        return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %zu classes", im->all.fitted.classes.count);
    for (size_t i = 0; i < im->set.n_rows; ++i) {
        const cleat_image_row *row = &im->set.rows[i];
        ++info->samples[row->split];
        if (!given && row->split == CLEAT_SPLIT_TRAIN && row->label >= 0) ++im->all.fitted.samples[row->label];
    }
    return CLEAT_OK;
}

static void log_classes(const images *im, const char *path) {
    cleat_string line = {0};
    for (size_t i = 0; i < im->all.fitted.classes.count && line.size < 800; ++i)
        cleat_string_add(&line, "%s%s %lld", i ? ", " : "", im->all.fitted.classes.names[i],
                         (long long)im->all.fitted.samples[i]);
    if (line.data) cleat_log(CLEAT_LOG_INFO, "%s: training split: %s", path, line.data);
    cleat_string_free(&line);
}

/* Finds the partners and adds the fields, if samples are mixed. */
static cleat_status open_mixing(images *im, cleat_error *error) {
    const cleat_image_options *options = im->set.options;
    if (options->predict || (options->augment.mixup <= 0 && options->augment.cutmix <= 0)) return CLEAT_OK;
    im->all.common.fields[LABELS] =
        (cleat_field){.name = "labels", .dtype = CLEAT_I32, .rank = 1, .shape = {2}, .pad = CLEAT_NO_CLASS};
    im->all.common.fields[MIX] = (cleat_field){.name = "mix", .dtype = CLEAT_F32, .rank = 1, .shape = {2}};
    if (!im->all.common.base.targets) im->all.common.type.n_fields = MIXED_FIELDS;
    cleat_status status =
        cleat_dataset_samples(&im->all.common.base, CLEAT_SPLIT_TRAIN, &im->partners, &im->n_partners, error);
    if (!status && options->partners > 0 && (size_t)options->partners < im->n_partners)
        im->n_partners = (size_t)options->partners;
    return status;
}

/* Fits the targets, which take the place of classes. */
static cleat_status open_targets(images *im, const char *path, cleat_error *error) {
    cleat_targets *targets = &im->set.targets;
    cleat_status status = cleat_targets_fit(targets, &im->all.common.base, path, error);
    im->all.common.base.targets = targets;
    im->all.common.type.items = cleat_targets_items;
    im->all.common.fields[LABEL] = cleat_targets_field(targets);
    im->all.common.info.classes = (int64_t)targets->count;
    return status;
}

static cleat_status open_images(const char *path, images *im, cleat_error *error) {
    const cleat_image_options *options = im->set.options;
    const bool fitted = options->fitted && *options->fitted,
               has_targets = options->targets.problem != CLEAT_SINGLE_LABEL;
    cleat_image_base_init(&im->all, options, &images_class);
    im->min_side = min_decoded_side(options);
    cleat_status status = fitted ? cleat_image_base_read_fitted(&im->all, options, error) : CLEAT_OK;
    if (!status && has_targets)
        status = cleat_targets_open(&options->targets, options->classes ? options->classes : "",
                                    fitted ? options->fitted : "", &im->set.targets, error);
    if (!status && fitted && !im->all.fitted.classes.count && !has_targets)
        status =
            cleat_fail(error, CLEAT_ERR_FORMAT,
                       "%s/pictures.json: the file has no classes: the model was trained on masks", options->fitted);
    if (!status) status = read_set(path, &im->set, error);
    if (!status) status = cleat_image_set_assign_classes(&im->set, &im->all.fitted, error);
    if (!status && !fitted) im->all.fitted.channels = channels_of(im);
    if (!status) status = check_channels(im, error);
    if (!status) status = convert_memory(im, error);
    if (!status && !im->set.height)
        status = cleat_image_cache_create(im->set.n_rows, options->cache_bytes, &im->all.cache, error);
    if (status) return status;
    cleat_image_base_describe(&im->all, options, (int64_t)im->all.fitted.classes.count);
    im->all.common.fields[LABEL] = (cleat_field){.name = "label", .dtype = CLEAT_I32, .rank = 0, .pad = CLEAT_NO_CLASS};
    im->all.common.base.count = im->set.n_rows;
    if (has_targets) status = open_targets(im, path, error);
    if (!status) status = count_samples(im, error);
    if (!status && !fitted) log_classes(im, path);
    if (!status && !fitted) status = fit_means(im, error);
    if (!status) status = open_mixing(im, error);
    return status ? status : make_table(im, error);
}

cleat_status cleat_images_open(const char *path, const cleat_image_options *options, cleat_dataset **dataset,
                               cleat_error *error) {
    cleat_image_options defaults = cleat_image_defaults();
    if (!options) options = &defaults;
    cleat_status status = cleat_image_check_options(options, error);
    if (status) return status;
    images *im = cleat_alloc(1, sizeof *im);
    if (!im) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a dataset");
    im->set.options = options;
    status = open_images(path, im, error);
    im->set.options = NULL; /* owned by the caller */
    if (!status)
        *dataset = &im->all.common.base;
    else
        images_destroy(&im->all.common.base);
    return status;
}

static const images *as_images(const cleat_dataset *dataset) {
    return dataset->type->destroy == images_destroy ? images_of(dataset) : NULL;
}

const char *cleat_images_class(const cleat_dataset *dataset, size_t index) {
    const images *im = as_images(dataset);
    if (im && dataset->targets) return index < dataset->targets->count ? dataset->targets->all[index].name : NULL;
    return im && index < im->all.fitted.classes.count ? im->all.fitted.classes.names[index] : NULL;
}

int32_t cleat_images_label(const cleat_dataset *dataset, size_t sample) {
    const images *im = as_images(dataset);
    return im && sample < im->set.n_rows ? im->set.rows[sample].label : CLEAT_NO_CLASS;
}

int64_t cleat_images_class_samples(const cleat_dataset *dataset, size_t index) {
    const images *im = as_images(dataset);
    if (im && dataset->targets) return index < dataset->targets->count ? dataset->targets->all[index].samples : 0;
    return im && index < im->all.fitted.classes.count ? im->all.fitted.samples[index] : 0;
}

cleat_image_cache_stats cleat_images_dataset_cache_statistics(const cleat_dataset *dataset) {
    const images *im = as_images(dataset);
    return im && im->all.cache ? cleat_image_cache_statistics(im->all.cache) : (cleat_image_cache_stats){0};
}
