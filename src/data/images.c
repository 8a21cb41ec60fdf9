/* The dataset of pictures with classes: opens them, learns means, fills samples, answers questions. */
#include "data/images.h"

#include "core/files.h"
#include "core/memory.h"
#include "data/parallel.h"
#include "data/view.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { PATH_BYTES = 4096, MOST_LEARNT_FROM = 2000 };

typedef struct images {
    cleat_pictures pictures; /* first: a cleat_dataset * is one of these */
    cleat_image_set set;     /* rows [count]; no names */
    cleat_picture_learnt learnt;
    cleat_picture_cache *cache; /* of files */
    cleat_augment augment;
    bool varies;         /* any augmentation */
    int64_t least;       /* a file's picture is decoded with at least so many pixels a side */
    float (*table)[256]; /* [C] standardised values of a byte */
} images;

enum { IMAGE, LABEL, FIELDS };

static const images *images_of(const cleat_dataset *dataset) {
    return (const images *)dataset;
}

/* --- one picture ---------------------------------------------------------------------------------------------- */

static cleat_status read_file(void *user, size_t index, cleat_picture *picture, cleat_error *error) {
    const images *im = user;
    char path[PATH_BYTES];
    cleat_status status = cleat_path_join(im->set.root, im->set.rows[index].id, path, PATH_BYTES, error);
    if (status != CLEAT_OK) return status;
    return cleat_picture_read_least(path, im->learnt.channels, im->least, picture, error);
}

/* Borrowed until `give_back`. */
static cleat_status borrow(const images *im, size_t sample, cleat_picture *picture, cleat_error *error) {
    const cleat_image_row *row = &im->set.rows[sample];
    if (!row->pixels) return cleat_picture_cache_get(im->cache, sample, read_file, (void *)im, picture, error);
    *picture = (cleat_picture){.height = im->set.height,
                               .width = im->set.width,
                               .channels = im->set.channels,
                               .pixels = (uint8_t *)row->pixels};
    return CLEAT_OK;
}

static void give_back(const images *im, size_t sample, cleat_picture *picture) {
    if (!im->set.rows[sample].pixels) cleat_picture_cache_release(im->cache, sample, picture);
}

/* --- the class ------------------------------------------------------------------------------------------------ */

static const char *images_id(const cleat_dataset *dataset, size_t sample) {
    return images_of(dataset)->set.rows[sample].id;
}

static int64_t images_length(const cleat_dataset *dataset, size_t sample) {
    (void)sample;
    return images_of(dataset)->pictures.info.size;
}

static cleat_split images_split(const cleat_dataset *dataset, size_t sample) {
    return (cleat_split)images_of(dataset)->set.rows[sample].split;
}

static int64_t one_item(const cleat_dataset *dataset, size_t sample) {
    (void)dataset;
    (void)sample;
    return 1;
}

static void fill_plain(const images *im, const cleat_picture *picture, float *values) {
    int64_t pixels = picture->height * picture->width, channels = picture->channels;
    const uint8_t *from = picture->pixels;
    for (int64_t i = 0; i < pixels; ++i)
        for (int64_t c = 0; c < channels; ++c) *values++ = im->table[c][*from++];
}

static cleat_status fill_image(const images *im, size_t sample, const cleat_rng_key *rng_key, float *values,
                               cleat_error *error) {
    int64_t size = im->pictures.info.size;
    cleat_picture picture;
    cleat_status status = borrow(im, sample, &picture, error);
    if (status != CLEAT_OK) return status;
    cleat_view view = rng_key && im->varies ? cleat_view_draw(&picture, true, size, &im->augment, rng_key, sample)
                                            : cleat_view_whole(&picture, true);
    if (cleat_view_is_plain(&picture, &view, size)) {
        fill_plain(im, &picture, values);
    } else {
        status = cleat_view_sample(&picture, &view, size, values, error);
        if (status == CLEAT_OK) cleat_picture_standardise(&im->learnt, size * size, values);
    }
    give_back(im, sample, &picture);
    return status;
}

/* [S, S, C] becomes the upper left corner of [L, L, C], which is 0 around it. */
static void spread(int64_t size, int64_t length, int64_t channels, float *values) {
    size_t row = (size_t)(size * channels), wide = (size_t)(length * channels);
    for (int64_t y = size - 1; y >= 0; --y) {
        memmove(values + (size_t)y * wide, values + (size_t)y * row, row * sizeof *values);
        memset(values + (size_t)y * wide + row, 0, (wide - row) * sizeof *values);
    }
}

static cleat_status images_fill(const cleat_dataset *dataset, size_t sample, int64_t length,
                                const cleat_rng_key *rng_key, void *const *slots, cleat_error *error) {
    const images *im = images_of(dataset);
    int64_t size = im->pictures.info.size;
    if (slots[LABEL]) *(int32_t *)slots[LABEL] = im->set.rows[sample].label;
    if (!slots[IMAGE]) return CLEAT_OK;
    cleat_status status = fill_image(im, sample, rng_key, slots[IMAGE], error);
    if (status == CLEAT_OK && length > size) spread(size, length, im->learnt.channels, slots[IMAGE]);
    return status;
}

static cleat_status images_save(const cleat_dataset *dataset, const char *folder, cleat_error *error) {
    return cleat_picture_learnt_write(folder, &images_of(dataset)->learnt, error);
}

static void images_destroy(cleat_dataset *dataset) {
    images *im = (images *)dataset;
    cleat_image_set_free(&im->set);
    cleat_picture_learnt_free(&im->learnt);
    cleat_picture_cache_destroy(im->cache);
    cleat_free(im->table);
    cleat_free(im);
}

static const cleat_dataset_class images_class = {
    .name = CLEAT_IMAGES_NAME,
    .n_fields = FIELDS,
    .id = images_id,
    .length = images_length,
    .split = images_split,
    .fill = images_fill,
    .items = one_item,
    .save = images_save,
    .destroy = images_destroy,
};

/* --- what the training part teaches --------------------------------------------------------------------------- */

typedef struct lesson {
    const images *im;
    const uint32_t *samples; /* training samples */
    size_t count, used;      /* `used` of them, spread evenly */
    pthread_mutex_t lock;
    cleat_picture_sums sums;
} lesson;

static cleat_status learn_from(void *user, size_t index, cleat_error *error) {
    lesson *l = user;
    cleat_picture picture;
    cleat_picture_sums sums = {0};
    size_t sample = l->samples[index * l->count / l->used];
    cleat_status status = borrow(l->im, sample, &picture, error);
    if (status != CLEAT_OK) return status;
    cleat_picture_sums_add(&sums, &picture);
    give_back(l->im, sample, &picture);
    pthread_mutex_lock(&l->lock);
    cleat_picture_sums_merge(&l->sums, &sums);
    pthread_mutex_unlock(&l->lock);
    return CLEAT_OK;
}

static cleat_status learn_means(images *im, cleat_error *error) {
    uint32_t *samples = NULL;
    lesson l = {.im = im};
    cleat_status status = cleat_dataset_samples(&im->pictures.base, CLEAT_SPLIT_TRAIN, &samples, &l.count, error);
    if (status != CLEAT_OK) return status;
    bool files = im->set.height == 0;
    l.samples = samples;
    l.used = files && l.count > MOST_LEARNT_FROM ? MOST_LEARNT_FROM : l.count;
    if (pthread_mutex_init(&l.lock, NULL) != 0) {
        cleat_samples_free(samples);
        return cleat_fail(error, CLEAT_ERR_MEMORY, "cannot make a lock");
    }
    status = cleat_parallel(l.used, learn_from, &l, error);
    if (status == CLEAT_OK) cleat_picture_learnt_set(&im->learnt, im->set.root, im->learnt.channels, &l.sums);
    pthread_mutex_destroy(&l.lock);
    cleat_samples_free(samples);
    return status;
}

/* Colour where any training picture is. */
static int64_t channels_of(const images *im) {
    int64_t channels = im->set.options->channels ? im->set.options->channels : im->set.channels;
    if (channels) return channels;
    channels = 1;
    for (size_t i = 0; i < im->set.n_rows && channels == 1; ++i)
        if (im->set.rows[i].split == CLEAT_SPLIT_TRAIN) channels = im->set.rows[i].channels;
    return channels;
}

static cleat_status check_channels(const images *im, cleat_error *error) {
    int64_t wanted = im->learnt.channels, own = im->set.channels;
    if (own ? wanted == own || (wanted == 1 && own == 3) || (wanted == 3 && own == 1) : wanted == 1 || wanted == 3)
        return CLEAT_OK;
    return cleat_fail(error, CLEAT_ERR_FORMAT,
                      "%s: the pictures have %lld channels, and %lld are wanted; only grey (1) and colour (3) are "
                      "made of each other",
                      im->set.root, (long long)(own ? own : 3), (long long)wanted);
}

static int64_t least_side(const cleat_picture_options *options) {
    double crop = options->augment.crop_min;
    /* the shorter side of the smallest crop, of 3/4 of the sides' ratio, is still the sample's size */
    return crop < 1 ? (int64_t)ceil((double)options->size / sqrt(crop * 0.75)) : options->size;
}

/* --- opening -------------------------------------------------------------------------------------------------- */

static cleat_status read_set(const char *path, cleat_image_set *set, cleat_error *error) {
    bool found = false;
    if (!cleat_folder_exists(path) && !cleat_file_exists(path))
        return cleat_fail(error, CLEAT_ERR_NOT_FOUND, "%s: no such file or folder (data.path)", path);
    if (!(set->root = cleat_strdup(path))) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a path");
    for (size_t end = strlen(set->root); end > 1 && set->root[end - 1] == '/';) set->root[--end] = 0;
    if (cleat_file_exists(path)) return cleat_image_folders_open(path, set, error);
    cleat_status status = cleat_idx_open(path, set, &found, error);
    if (status == CLEAT_OK && !found) status = cleat_cifar_open(path, set, &found, error);
    if (status == CLEAT_OK && !found) status = cleat_image_folders_open(path, set, error);
    return status;
}

/* Pictures in memory become what is wanted at once; those of files do as they are read. */
static cleat_status convert_memory(images *im, cleat_error *error) {
    cleat_image_set *set = &im->set;
    int64_t from = set->channels, to = im->learnt.channels, pixels = set->height * set->width;
    if (!from || from == to) return CLEAT_OK;
    uint8_t *block = cleat_alloc(set->n_rows, (size_t)(pixels * to));
    if (!block) return cleat_fail(error, CLEAT_ERR_MEMORY, "%s: no memory for %zu pictures", set->root, set->n_rows);
    cleat_status status = cleat_image_set_take_block(set, block, error);
    for (size_t i = 0; i < set->n_rows && status == CLEAT_OK; ++i, block += pixels * to) {
        if (to == 1)
            cleat_picture_to_grey(set->rows[i].pixels, pixels, block);
        else
            cleat_picture_to_colour(set->rows[i].pixels, pixels, block);
        set->rows[i].pixels = block;
    }
    if (status != CLEAT_OK) return status;
    for (size_t i = 0; i + 1 < set->n_blocks; ++i) cleat_free(set->blocks[i]);
    set->blocks[0] = set->blocks[set->n_blocks - 1];
    set->n_blocks = 1;
    set->channels = to;
    return CLEAT_OK;
}

static cleat_status make_table(images *im, cleat_error *error) {
    im->table = cleat_alloc((size_t)im->learnt.channels, sizeof *im->table);
    if (!im->table) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a table of colours");
    float pixel[CLEAT_PICTURE_PLANES];
    for (int value = 0; value < 256; ++value) {
        for (int64_t c = 0; c < im->learnt.channels; ++c) pixel[c] = (float)value * (1.0f / 255);
        cleat_picture_standardise(&im->learnt, 1, pixel);
        for (int64_t c = 0; c < im->learnt.channels; ++c) im->table[c][value] = pixel[c];
    }
    return CLEAT_OK;
}

static cleat_status count_samples(images *im, cleat_error *error) {
    cleat_picture_info *info = &im->pictures.info;
    bool told = im->learnt.samples != NULL;
    if (!told) im->learnt.samples = cleat_alloc(im->learnt.n_classes, sizeof *im->learnt.samples);
    if (!im->learnt.samples)
        return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %zu classes", im->learnt.n_classes);
    for (size_t i = 0; i < im->set.n_rows; ++i) {
        const cleat_image_row *row = &im->set.rows[i];
        ++info->samples[row->split];
        if (!told && row->split == CLEAT_SPLIT_TRAIN && row->label >= 0) ++im->learnt.samples[row->label];
    }
    return CLEAT_OK;
}

static void become_dataset(images *im) {
    const cleat_picture_options *options = im->set.options;
    cleat_pictures *p = &im->pictures;
    p->fields[IMAGE] =
        (cleat_field){.name = "image", .dtype = CLEAT_F32, .rank = 3, .shape = {-1, -1, im->learnt.channels}};
    p->fields[LABEL] = (cleat_field){.name = "label", .dtype = CLEAT_I32, .rank = 0, .pad = CLEAT_NO_CLASS};
    p->info = (cleat_picture_info){.size = options->size,
                                   .channels = im->learnt.channels,
                                   .classes = (int64_t)im->learnt.n_classes,
                                   .height = options->size,
                                   .width = options->size,
                                   .file_height = options->size,
                                   .file_width = options->size};
    p->base.count = im->set.n_rows;
    cleat_pictures_become_dataset(p, &images_class);
}

static cleat_status open_images(const char *path, images *im, cleat_error *error) {
    const cleat_picture_options *options = im->set.options;
    bool learnt = options->learnt && *options->learnt;
    im->augment = options->augment;
    im->least = least_side(options);
    im->varies = cleat_view_varies(&options->augment);
    cleat_status status = learnt ? cleat_picture_learnt_read(options->learnt, &im->learnt, error) : CLEAT_OK;
    if (status == CLEAT_OK && learnt && !im->learnt.n_classes)
        status = cleat_fail(error, CLEAT_ERR_FORMAT, "%s/pictures.json: no classes: the model was trained on masks",
                            options->learnt);
    if (status == CLEAT_OK && learnt && options->channels && options->channels != im->learnt.channels)
        status = cleat_fail(
            error, CLEAT_ERR_ARGUMENT,
            "%s: the model was trained with %lld channels, and %lld are asked for; leave data.channels as it "
            "was",
            options->learnt, (long long)im->learnt.channels, (long long)options->channels);
    if (status == CLEAT_OK) status = read_set(path, &im->set, error);
    if (status == CLEAT_OK) status = cleat_image_set_settle(&im->set, &im->learnt, error);
    if (status == CLEAT_OK && !learnt) im->learnt.channels = channels_of(im);
    if (status == CLEAT_OK) status = check_channels(im, error);
    if (status == CLEAT_OK) status = convert_memory(im, error);
    if (status == CLEAT_OK && !im->set.height)
        status = cleat_picture_cache_create(im->set.n_rows, options->cache_bytes, &im->cache, error);
    if (status != CLEAT_OK) return status;
    become_dataset(im);
    status = count_samples(im, error);
    if (status == CLEAT_OK && !learnt) status = learn_means(im, error);
    return status == CLEAT_OK ? make_table(im, error) : status;
}

cleat_status cleat_images_open(const char *path, const cleat_picture_options *options, cleat_dataset **dataset,
                               cleat_error *error) {
    cleat_picture_options defaults = cleat_picture_defaults();
    if (!options) options = &defaults;
    cleat_status status = cleat_picture_check_options(options, error);
    if (status != CLEAT_OK) return status;
    images *im = cleat_alloc(1, sizeof *im);
    if (!im) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a dataset");
    im->set.options = options;
    status = open_images(path, im, error);
    im->set.options = NULL; /* the caller's */
    if (status == CLEAT_OK)
        *dataset = &im->pictures.base;
    else
        images_destroy(&im->pictures.base);
    return status;
}

/* --- what there is to ask ------------------------------------------------------------------------------------- */

static const images *as_images(const cleat_dataset *dataset) {
    return dataset->type->destroy == images_destroy ? images_of(dataset) : NULL;
}

const char *cleat_images_class(const cleat_dataset *dataset, size_t index) {
    const images *im = as_images(dataset);
    return im && index < im->learnt.n_classes ? im->learnt.classes[index] : NULL;
}

int64_t cleat_images_class_samples(const cleat_dataset *dataset, size_t index) {
    const images *im = as_images(dataset);
    return im && index < im->learnt.n_classes ? im->learnt.samples[index] : 0;
}

cleat_picture_cache_stats cleat_images_cache_statistics(const cleat_dataset *dataset) {
    const images *im = as_images(dataset);
    return im && im->cache ? cleat_picture_cache_statistics(im->cache) : (cleat_picture_cache_stats){0};
}
