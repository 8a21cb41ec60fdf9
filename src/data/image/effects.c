/* Image augmentation on samples: rotation by angles, elastic deformation, intensity, RandAugment; mixing of two. */
#include "data/image/effects.h"

#include "core/memory.h"
#include "data/image/augment.h"

#include <math.h>
#include <string.h>

static const double DEGREE = 3.14159265358979323846 / 180;

static double between(cleat_random *random, double low, double high) {
    return low + (high - low) * cleat_random_uniform(random);
}

bool cleat_effects_enabled(const cleat_augment *augment) {
    return augment->rotate > 0 || augment->elastic > 0 || augment->randaugment_count > 0 || augment->blur > 0 ||
           augment->gamma > 0 || augment->noise > 0;
}

/* --- geometry ------------------------------------------------------------------------------------------------- */

static cleat_warp rotation(double degrees) {
    const double c = cos(degrees * DEGREE), s = sin(degrees * DEGREE);
    return (cleat_warp){.yy = c, .yx = s, .xy = -s, .xx = c};
}

void cleat_warp_place(const cleat_warp *w, int64_t size, int64_t i, int64_t j, double *y, double *x) {
    const float *moved = w->displacements ? w->displacements + 2 * (i * size + j) : (const float[2]){0};
    const double centre = (double)size / 2, down = (double)i + 0.5 + (double)moved[0] - centre,
                 right = (double)j + 0.5 + (double)moved[1] - centre;
    *y = w->yy * down + w->yx * right + w->ty + centre;
    *x = w->xy * down + w->xx * right + w->tx + centre;
}

/* Index of a pixel beyond the border: wrapped around, or reflected (... 1 0 | 0 1 ... n-1 | n-1 ...). */
static int64_t inside(int64_t i, int64_t n, bool wrap) {
    if (i >= 0 && i < n) return i;
    const int64_t period = wrap ? n : 2 * n, at = (i % period + period) % period;
    return at < n ? at : 2 * n - 1 - at;
}

static cleat_status warp(const cleat_warp *w, int64_t size, int64_t channels, float *values, cleat_error *error) {
    const size_t count = (size_t)(size * size * channels);
    float *from = cleat_alloc(count, sizeof *from);
    if (!from) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for augmenting an image");
    memcpy(from, values, count * sizeof *from);
    for (int64_t i = 0; i < size * size; ++i, values += channels) {
        double y, x;
        cleat_warp_place(w, size, i / size, i % size, &y, &x);
        const int64_t top = (int64_t)floor(y - 0.5), left = (int64_t)floor(x - 0.5);
        const float dy = (float)(y - 0.5 - (double)top), dx = (float)(x - 0.5 - (double)left);
        const float *upper = from + inside(top, size, false) * size * channels,
                    *lower = from + inside(top + 1, size, false) * size * channels;
        const int64_t a = inside(left, size, false) * channels, b = inside(left + 1, size, false) * channels;
        for (int64_t c = 0; c < channels; ++c)
            values[c] = (1 - dy) * ((1 - dx) * upper[a + c] + dx * upper[b + c]) +
                        dy * ((1 - dx) * lower[a + c] + dx * lower[b + c]);
    }
    cleat_free(from);
    return CLEAT_OK;
}

/* Convolves values [size, size, C] with a Gaussian of deviation sigma, cut off after 3 deviations, or half the image.
 * *squares: the sum of its squared weights. */
static cleat_status smooth(double sigma, bool wrap, int64_t size, int64_t channels, float *values, double *squares,
                           cleat_error *error) {
    const int64_t radius = (int64_t)fmin(ceil(3 * sigma), (double)((size - 1) / 2)),
                  steps[2] = {channels, size * channels};
    double *weights = cleat_alloc((size_t)(size + 4 * radius + 1), sizeof *weights), sum = 0, sum2 = 0;
    if (!weights) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for augmenting an image");
    double *line = weights + 2 * radius + 1;
    for (int64_t k = 0; k <= 2 * radius; ++k) {
        weights[k] = exp(-(double)((k - radius) * (k - radius)) / (2 * sigma * sigma));
        sum += weights[k];
        sum2 += weights[k] * weights[k];
    }
    *squares = sum2 * sum2 / (sum * sum * sum * sum);
    for (int64_t l = 0; l < 2 * size * channels; ++l) { /* rows, then columns */
        const int64_t step = steps[l / (size * channels)], at = l % (size * channels);
        float *first = values + at / channels * (steps[0] + steps[1] - step) + at % channels;
        for (int64_t i = -radius; i < size + radius; ++i)
            line[i + radius] = (double)first[inside(i, size, wrap) * step];
        for (int64_t i = 0; i < size; ++i) {
            double mean = 0;
            for (int64_t k = 0; k <= 2 * radius; ++k) mean += weights[k] * line[i + k];
            first[i * step] = (float)(mean / sum);
        }
    }
    cleat_free(weights);
    return CLEAT_OK;
}

/* A uniform number in [-1, 1) has the variance 1/3, of which a convolution leaves the sum of its squared weights. */
cleat_status cleat_warp_draw(const cleat_augment *augment, cleat_random *random, int64_t size, cleat_warp *made,
                             cleat_error *error) {
    const int64_t count = 2 * size * size;
    double squares = 0;
    *made = rotation(augment->rotate > 0 ? between(random, -augment->rotate, augment->rotate) : 0);
    if (augment->elastic <= 0) return CLEAT_OK;
    float *d = made->displacements = cleat_alloc((size_t)count, sizeof *d);
    if (!d) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for augmenting an image");
    for (int64_t i = 0; i < count; ++i) d[i] = (float)between(random, -1, 1);
    cleat_status status = smooth(augment->elastic_sigma, true, size, 2, d, &squares, error);
    for (int64_t i = 0; i < count; ++i) d[i] *= (float)(augment->elastic * sqrt(3 / squares));
    return status;
}

/* --- RandAugment ---------------------------------------------------------------------------------------------- */

enum { SAME, SHEAR_X, SHEAR_Y, SHIFT_X, SHIFT_Y, ROTATE, BRIGHTNESS, CONTRAST, SATURATION, BYTES };
enum { POSTERIZE = BYTES, SOLARIZE, AUTOCONTRAST, EQUALIZE, OPERATIONS };

static int byte_of(float value) {
    return (int)lrintf(fminf(fmaxf(value, 0), 1) * 255);
}

/* The tables of Pillow's autocontrast, equalize, posterize and solarize for a channel with this histogram. */
static void make_table(int chosen, double m, int64_t pixels, const int64_t histogram[256], float table[256]) {
    const int mask = 0xff & ~((1 << (int)lrint(4 * m)) - 1);
    int low = 0, high = 255;
    while (!histogram[low]) ++low;
    while (!histogram[high]) --high;
    const int64_t step = (pixels - histogram[high]) / 255;
    int64_t passed = step / 2;
    for (int i = 0; i < 256; ++i) {
        int to = i;
        if (chosen == POSTERIZE) to = i & mask;
        if (chosen == SOLARIZE) to = (double)i >= 255 * (1 - m) ? 255 - i : i;
        if (chosen == EQUALIZE && step) to = (int)(passed / step < 255 ? passed / step : 255);
        table[i] = (float)to / 255;
        if (chosen == AUTOCONTRAST && high > low) table[i] = fminf(fmaxf((float)(i - low) / (float)(high - low), 0), 1);
        passed += histogram[i];
    }
}

static void map_bytes(int chosen, double m, int64_t pixels, int64_t channels, float *values) {
    for (int64_t c = 0; c < channels; ++c) {
        int64_t histogram[256] = {0};
        float table[256];
        for (int64_t i = 0; i < pixels; ++i) ++histogram[byte_of(values[i * channels + c])];
        make_table(chosen, m, pixels, histogram, table);
        for (int64_t i = 0; i < pixels; ++i) values[i * channels + c] = table[byte_of(values[i * channels + c])];
    }
}

static cleat_status operate(int chosen, double magnitude, cleat_random *random, int64_t size, int64_t channels,
                            float *values, cleat_error *error) {
    const double m = cleat_random_below(random, 2) ? -magnitude : magnitude, shift = 150.0 / 331 * m * (double)size;
    const float factor = (float)(1 + 0.9 * m);
    const cleat_augment_params colours = {.brightness = chosen == BRIGHTNESS ? factor : 1,
                                          .contrast = chosen == CONTRAST ? factor : 1,
                                          .saturation = chosen == SATURATION ? factor : 1};
    cleat_warp w = rotation(chosen == ROTATE ? 30 * m : 0);
    if (chosen == SHEAR_X) w.xy = 0.3 * m;
    if (chosen == SHEAR_Y) w.yx = 0.3 * m;
    if (chosen == SHIFT_X) w.tx = shift;
    if (chosen == SHIFT_Y) w.ty = shift;
    if (chosen >= SHEAR_X && chosen <= ROTATE) return warp(&w, size, channels, values, error);
    if (chosen >= BRIGHTNESS && chosen < BYTES)
        cleat_augment_change_colours(&colours, NULL, size * size, channels, values);
    if (chosen >= BYTES) map_bytes(chosen, magnitude, size * size, channels, values);
    return CLEAT_OK;
}

/* --- all of them ---------------------------------------------------------------------------------------------- */

static void change_intensity(const cleat_augment *augment, cleat_random *random, int64_t count, float *values) {
    if (augment->gamma > 0) {
        const double most = log(1 + augment->gamma);
        const double exponent = exp(between(random, -most, most));
        for (int64_t i = 0; i < count; ++i) values[i] = (float)pow(fmaxf(values[i], 0), exponent);
    }
    if (augment->noise <= 0) return;
    const double scale = between(random, 0, augment->noise);
    for (int64_t i = 0; i < count; ++i)
        values[i] = fminf(fmaxf(values[i] + (float)(scale * cleat_random_normal(random)), 0), 1);
}

cleat_status cleat_effects_apply(const cleat_augment *augment, cleat_random *random, int64_t size, int64_t channels,
                                 float *values, cleat_error *error) {
    cleat_warp w;
    double squares;
    cleat_status status = cleat_warp_draw(augment, random, size, &w, error);
    if (!status && (augment->rotate > 0 || augment->elastic > 0)) status = warp(&w, size, channels, values, error);
    cleat_free(w.displacements);
    for (int64_t i = 0; i < augment->randaugment_count && !status; ++i)
        status = operate((int)cleat_random_below(random, OPERATIONS), (double)augment->randaugment_magnitude / 30,
                         random, size, channels, values, error);
    const double sigma = augment->blur > 0 ? between(random, 0, augment->blur) : 0;
    if (!status && sigma > 0.1) status = smooth(sigma, false, size, channels, values, &squares, error);
    if (!status) change_intensity(augment, random, size * size * channels, values);
    return status;
}

/* --- mixing --------------------------------------------------------------------------------------------------- */

/* Marsaglia & Tsang, "A simple method for generating gamma variables", ACM TOMS 2000, with their step for a < 1. */
static double draw_gamma(cleat_random *random, double a) {
    const double boost = a < 1 ? pow(1 - cleat_random_uniform(random), 1 / a) : 1, d = (a < 1 ? a + 1 : a) - 1.0 / 3;
    for (;;) {
        const double x = cleat_random_normal(random), u = 1 - cleat_random_uniform(random);
        const double root = 1 + x / sqrt(9 * d), v = root * root * root;
        if (root > 0 && log(u) < x * x / 2 + d - d * v + d * log(v)) return boost * d * v;
    }
}

cleat_mix cleat_mix_draw(const cleat_augment *augment, cleat_random *random, int64_t size) {
    const bool both = augment->mixup > 0 && augment->cutmix > 0;
    cleat_mix mix = {.cut = both ? cleat_random_below(random, 2) : augment->cutmix > 0};
    const double alpha = mix.cut ? augment->cutmix : augment->mixup, first = draw_gamma(random, alpha),
                 sum = first + draw_gamma(random, alpha), weight = sum > 0 ? first / sum : 0.5; /* of Beta */
    mix.weight = (float)weight;
    if (!mix.cut) return mix;
    const int64_t half = (int64_t)((double)size * sqrt(1 - weight)) / 2;
    const int64_t y = cleat_random_below(random, (uint32_t)size), x = cleat_random_below(random, (uint32_t)size);
    mix.top = y > half ? y - half : 0;
    mix.left = x > half ? x - half : 0;
    mix.bottom = y + half < size ? y + half : size;
    mix.right = x + half < size ? x + half : size;
    mix.weight = 1 - (float)((mix.bottom - mix.top) * (mix.right - mix.left)) / (float)(size * size);
    return mix;
}

void cleat_mix_apply(const cleat_mix *mix, int64_t size, int64_t channels, const float *other, float *values) {
    if (!mix->cut)
        for (int64_t i = 0; i < size * size * channels; ++i)
            values[i] = mix->weight * values[i] + (1 - mix->weight) * other[i];
    const size_t row = (size_t)((mix->right - mix->left) * channels);
    for (int64_t y = mix->top; mix->cut && y < mix->bottom; ++y) {
        const int64_t at = (y * size + mix->left) * channels;
        memcpy(values + at, other + at, row * sizeof *values);
    }
}
