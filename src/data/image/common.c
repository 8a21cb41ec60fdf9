/* Options of image datasets, and means and standard deviations of channels. */
#include "data/image/common.h"

#include "core/string.h"
#include "data/common/faults.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

cleat_image_options cleat_image_defaults(void) {
    return (cleat_image_options){.size = 224,
                                 .augment = {.crop_min = 1},
                                 .val_fraction = 0.1,
                                 .cache_bytes = INT64_C(256) << 20,
                                 .targets.standardise = true};
}

void cleat_image_log_alpha(const char *path, size_t transparent, size_t count) {
    if (transparent)
        cleat_log(
            CLEAT_LOG_INFO,
            "%s: %zu of %zu images have transparency, which is dropped: the colours beneath are used, as by timm, "
            "torchvision and transformers",
            path, transparent, count);
}

enum { LARGEST_SIDE = 16384 };

static bool is_factor(double width) {
    return width >= 0 && width <= 1;
}

static cleat_status check_augment(const cleat_augment *augment, int64_t size, cleat_error *error) {
    if (!(augment->crop_min >= 0.05 && augment->crop_min <= 1))
        return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                          "crop_min = %g: must be a fraction of the area, 0.05 to 1 (1: no crop)", augment->crop_min);
    if (augment->shift < 0 || augment->shift >= size)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "shift = %lld: must be at least 0 and less than the size, %lld",
                          (long long)augment->shift, (long long)size);
    if (!is_factor(augment->brightness) || !is_factor(augment->contrast) || !is_factor(augment->saturation))
        return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                          "brightness %g, contrast %g, saturation %g: each must be 0 to 1 (0: no change)",
                          augment->brightness, augment->contrast, augment->saturation);
    if (!(augment->rotate >= 0 && augment->elastic >= 0 && augment->gamma >= 0 && augment->noise >= 0 &&
          augment->blur >= 0 && augment->mixup >= 0 && augment->cutmix >= 0 && augment->randaugment_count >= 0 &&
          (augment->elastic == 0 || augment->elastic_sigma > 0) && augment->randaugment_magnitude <= 30 &&
          augment->randaugment_magnitude >= 0))
        return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                          "an augmentation is below 0, not a number, or RandAugment's magnitude above 30: 0 is off");
    return CLEAT_OK;
}

/* Reads numbers separated by blanks; returns their number, or -1 for any other text. NULL is empty. */
static int read_numbers(const char *text, double numbers[CLEAT_IMAGE_MAX_CHANNELS]) {
    char word[32];
    int count = 0;
    for (; text && *(text += strspn(text, " ")); text += strcspn(text, " "), ++count) {
        const size_t size = strcspn(text, " ");
        if (count == CLEAT_IMAGE_MAX_CHANNELS || size >= sizeof word) return -1;
        snprintf(word, sizeof word, "%.*s", (int)size, text);
        if (!cleat_number_parse(word, &numbers[count])) return -1;
    }
    return count;
}

const char *cleat_image_normalisation_fault(const char *mean, const char *std) {
    double means[CLEAT_IMAGE_MAX_CHANNELS], stds[CLEAT_IMAGE_MAX_CHANNELS];
    const int n_means = read_numbers(mean, means), n_stds = read_numbers(std, stds);
    if (n_means < 0 || n_stds < 0) return "must be numbers separated by blanks, one for each channel or one for all";
    if (!n_means != !n_stds) return "mean and std must be given together, or neither";
    for (int i = 0; i < n_stds; ++i)
        if (!(stds[i] > 0)) return "standard deviations must be above 0";
    return NULL;
}

cleat_status cleat_image_check_options(const cleat_image_options *options, cleat_error *error) {
    double val = options->val_fraction, test = options->test_fraction;
    const char *fault = cleat_image_normalisation_fault(options->mean, options->std);
    if (fault)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "data.mean = %.100s, data.std = %.100s: %s",
                          options->mean ? options->mean : "", options->std ? options->std : "", fault);
    if (options->size < 1 || options->size > LARGEST_SIDE)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "image size %lld: must be 1 to %d", (long long)options->size,
                          LARGEST_SIDE);
    if (options->channels < 0 || options->channels > CLEAT_IMAGE_MAX_CHANNELS)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                          "%lld channels: must be 1 (grey), 3 (colour) or 0 (as in the training split)",
                          (long long)options->channels);
    if (!(val >= 0 && test >= 0 && val + test < 1))
        return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                          "data.val_fraction = %g, data.test_fraction = %g: must be at least 0, and their sum below 1",
                          val, test);
    if (options->cache_bytes < 0)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "image cache of %lld bytes: must be 0 or more",
                          (long long)options->cache_bytes);
    if (options->predict && !(options->fitted && *options->fitted))
        return cleat_fail(
            error, CLEAT_ERR_ARGUMENT,
            "images without targets cannot be used for training: prediction requires the folder of a trained model");
    return check_augment(&options->augment, options->size, error);
}

bool cleat_image_skips(const cleat_error *why) {
    const bool skips = cleat_fault_is_local(why);
    if (skips) cleat_log(CLEAT_LOG_WARNING, "%s", why->text);
    return skips;
}

void cleat_image_preprocessor_fit(cleat_image_preprocessor *fitted, const char *path, int64_t channels,
                                  const cleat_channel_sums *sums) {
    long double pixels = sums->pixels ? (long double)sums->pixels : 1;
    fitted->channels = channels;
    if (sums->peak && sums->peak < 1 << 14)
        cleat_log(
            CLEAT_LOG_WARNING,
            "%s: images of 16 bits have values up to %d, which leaves %d levels of 8 bits; scale them to 65535 first",
            path, sums->peak, sums->peak / 257 + 1);
    for (int64_t c = 0; c < channels; ++c) {
        long double mean = (long double)sums->values[c] / pixels;
        long double variance = (long double)sums->squares[c] / pixels - mean * mean;
        /* the number of values times the sum of squares equals the square of the sum only if all values are
         * equal */
        bool constant =
            (unsigned __int128)sums->squares[c] * sums->pixels == (unsigned __int128)sums->values[c] * sums->values[c];
        fitted->mean[c] = (double)(mean / 255);
        fitted->std[c] = constant ? 1 : sqrt((double)variance) / 255;
        if (constant)
            cleat_log(CLEAT_LOG_WARNING,
                      "%s: channel %lld is constant (%g) in all training images; its standard deviation is set to 1",
                      path, (long long)c, fitted->mean[c]);
    }
}

bool cleat_image_normalisation_given(const cleat_image_options *options) {
    double numbers[CLEAT_IMAGE_MAX_CHANNELS];
    return read_numbers(options->mean, numbers) > 0;
}

static cleat_status give(const char *name, const char *text, int64_t channels, double *values, cleat_error *error) {
    double numbers[CLEAT_IMAGE_MAX_CHANNELS];
    const int count = read_numbers(text, numbers);
    if (count != 1 && count != channels)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                          "data.%s = %.100s: has %d numbers, but the images have %lld channels; give one for each "
                          "channel, or one for all",
                          name, text, count, (long long)channels);
    for (int64_t c = 0; c < channels; ++c) values[c] = numbers[count == 1 ? 0 : c];
    return CLEAT_OK;
}

cleat_status cleat_image_preprocessor_give(cleat_image_preprocessor *fitted, const cleat_image_options *options,
                                           cleat_error *error) {
    cleat_status status = give("mean", options->mean, fitted->channels, fitted->mean, error);
    return status ? status : give("std", options->std, fitted->channels, fitted->std, error);
}

/* Means and factors are repeated, so that the inner loop is the same for any number of channels, and vectorized. */
void cleat_image_standardise(const cleat_image_preprocessor *fitted, int64_t pixels, float *values) {
    enum { REPEATED = 16 }; /* pixels */
    float mean[CLEAT_IMAGE_MAX_CHANNELS * REPEATED], factor[CLEAT_IMAGE_MAX_CHANNELS * REPEATED];
    const int64_t channels = fitted->channels, period = channels * REPEATED;
    for (int64_t i = 0; i < period; ++i) {
        mean[i] = (float)fitted->mean[i % channels];
        factor[i] = (float)(1 / fitted->std[i % channels]);
    }
    for (int64_t left = pixels * channels; left > 0; left -= period, values += period) {
        const int64_t n = left < period ? left : period;
        for (int64_t i = 0; i < n; ++i) values[i] = (values[i] - mean[i]) * factor[i];
    }
}
