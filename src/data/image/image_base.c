/* What the datasets of images with classes and of images with masks share. */
#include "data/image/image_base.h"

#include "core/memory.h"
#include "data/common/parallel.h"
#include "data/common/targets.h"
#include "data/image/formats.h"
#include "platform/threads.h"

#include <math.h>
#include <string.h>

static const cleat_image_base *base_of(const cleat_dataset *dataset) {
    return (const cleat_image_base *)dataset;
}

void cleat_image_base_init(cleat_image_base *p, const cleat_image_options *options, const cleat_dataset_class *type) {
    p->augment = options->augment;
    p->augments = cleat_augment_enabled(&options->augment);
    p->predicts = options->predict;
    cleat_image_dataset_init(&p->common, type);
}

cleat_status cleat_image_base_read_fitted(cleat_image_base *p, const cleat_image_options *options, cleat_error *error) {
    cleat_status status = cleat_image_preprocessor_read(options->fitted, &p->fitted, error);
    if (!status && options->channels && options->channels != p->fitted.channels)
        status = cleat_fail(error, CLEAT_ERR_ARGUMENT,
                            "%s: the model was trained with %lld channels, but %lld are requested; use the "
                            "data.channels of the training",
                            options->fitted, (long long)p->fitted.channels, (long long)options->channels);
    return status;
}

void cleat_image_base_describe(cleat_image_base *p, const cleat_image_options *options, int64_t classes) {
    const int64_t size = options->size, channels = p->fitted.channels;
    p->common.fields[CLEAT_IMAGE] =
        (cleat_field){.name = "image", .dtype = CLEAT_F32, .rank = 3, .shape = {-1, -1, channels}};
    p->common.info = (cleat_image_info){.size = size,
                                        .channels = channels,
                                        .classes = classes,
                                        .positive = p->fitted.positive,
                                        .height = size,
                                        .width = size,
                                        .file_height = size,
                                        .file_width = size};
    p->common.mean = p->fitted.mean;
    p->common.std = p->fitted.std;
}

void cleat_image_base_pad(int64_t rows, size_t width, size_t wide, int pad, void *values) {
    char *bytes = values;
    for (int64_t y = rows - 1; y >= 0 && wide > width; --y) {
        memmove(bytes + (size_t)y * wide, bytes + (size_t)y * width, width);
        memset(bytes + (size_t)y * wide + width, pad, wide - width);
    }
}

int64_t cleat_image_base_length(const cleat_dataset *dataset, size_t sample) {
    (void)sample;
    return base_of(dataset)->common.info.size;
}

cleat_status cleat_image_base_save(const cleat_dataset *dataset, const char *folder, cleat_error *error) {
    const cleat_status status = cleat_image_preprocessor_write(folder, &base_of(dataset)->fitted, error);
    return status || !dataset->targets ? status : cleat_targets_save(dataset->targets, folder, error);
}

cleat_status cleat_image_base_check_saved(const cleat_dataset *dataset, const char *folder, cleat_error *error) {
    cleat_image_preprocessor read = {0};
    cleat_targets targets = {0};
    cleat_status status = cleat_image_preprocessor_read(folder, &read, error);
    if (!status && dataset->targets) status = cleat_targets_read(folder, &targets, error);
    cleat_image_preprocessor_free(&read);
    cleat_targets_free(&targets);
    return status;
}

/* --- fitting to the training split ---------------------------------------------------------------------------- */

void cleat_channel_sums_add(cleat_channel_sums *sums, const cleat_image *image) {
    int64_t channels = image->channels, pixels = image->height * image->width;
    for (int64_t c = 0; c < channels; ++c) {
        uint64_t values = 0, squares = 0;
        for (int64_t i = 0; i < pixels; ++i) {
            uint32_t value = image->pixels[i * channels + c];
            values += value;
            squares += value * value;
        }
        sums->values[c] += values;
        sums->squares[c] += squares;
    }
    sums->pixels += (uint64_t)pixels;
    if (image->peak > sums->peak) sums->peak = image->peak;
}

static void merge_sums(cleat_channel_sums *sums, const cleat_channel_sums *others) {
    sums->pixels += others->pixels;
    if (others->peak > sums->peak) sums->peak = others->peak;
    for (int c = 0; c < CLEAT_IMAGE_MAX_CHANNELS; ++c) {
        sums->values[c] += others->values[c];
        sums->squares[c] += others->squares[c];
    }
}

typedef struct fit_job {
    cleat_image_add add;
    void *user;
    uint32_t *samples;  /* training samples */
    size_t count, used; /* `used` of them, evenly spaced */
    pthread_mutex_t lock;
    cleat_channel_sums sums;
} fit_job;

static cleat_status accumulate_sample(void *user, size_t index, cleat_error *error) {
    fit_job *l = user;
    cleat_channel_sums sums = {0};
    cleat_status status = l->add(l->user, l->samples[index * l->count / l->used], &sums, error);
    if (status) return status;
    pthread_mutex_lock(&l->lock);
    merge_sums(&l->sums, &sums);
    pthread_mutex_unlock(&l->lock);
    return CLEAT_OK;
}

cleat_status cleat_image_base_fit(cleat_image_base *p, const char *path, size_t most, cleat_image_add add, void *user,
                                  size_t *used, cleat_error *error) {
    fit_job l = {.add = add, .user = user};
    cleat_status status = cleat_dataset_samples(&p->common.base, CLEAT_SPLIT_TRAIN, &l.samples, &l.count, error);
    if (status) return status;
    l.used = l.count > most ? most : l.count;
    if (pthread_mutex_init(&l.lock, NULL) != 0) {
        cleat_samples_free(l.samples);
        return cleat_fail(error, CLEAT_ERR_MEMORY, "cannot create a lock");
    }
    status = cleat_parallel(l.used, accumulate_sample, &l, error);
    if (!status) cleat_image_preprocessor_fit(&p->fitted, path, p->fitted.channels, &l.sums);
    *used = l.used;
    pthread_mutex_destroy(&l.lock);
    cleat_samples_free(l.samples);
    return status;
}

/* --- the pixels of a sample, for people to look at: standardising is undone ----------------------------------- */

static uint8_t byte_of(double value) {
    double byte = round(255 * value);
    return byte < 0 || isnan(byte) ? 0 : byte > 255 ? 255 : (uint8_t)byte;
}

cleat_status cleat_image_of_sample(const cleat_dataset *dataset, size_t sample, cleat_image *image,
                                   cleat_error *error) {
    const cleat_image_dataset *common = (const cleat_image_dataset *)dataset;
    const int64_t size = common->info.size, channels = common->info.channels, values = size * size * channels;
    cleat_image made = {.height = size, .width = size, .channels = channels};
    float *standardised = cleat_alloc((size_t)values, sizeof *standardised);
    void *slots[CLEAT_IMAGE_MAX_FIELDS] = {[CLEAT_IMAGE] = standardised};
    if (!standardised) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for an image");
    cleat_status status = cleat_dataset_fill(dataset, sample, size, NULL, slots, error);
    if (!status) status = cleat_image_alloc(cleat_dataset_id(dataset, sample), &made, error);
    for (int64_t i = 0; !status && i < values; ++i)
        made.pixels[i] = byte_of((double)standardised[i] * common->std[i % channels] + common->mean[i % channels]);
    cleat_free(standardised);
    if (!status) *image = made;
    return status;
}
