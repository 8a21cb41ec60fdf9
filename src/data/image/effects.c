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

static bool warps(const cleat_augment *augment) {
    return augment->rotate > 0 || augment->elastic > 0;
}

bool cleat_effects_enabled(const cleat_augment *augment) {
    return warps(augment) || augment->randaugment_count > 0 || augment->blur > 0 || augment->gamma > 0 ||
           augment->noise > 0;
}

/* --- geometry ------------------------------------------------------------------------------------------------- */

/* Source of a pixel relative to the centre: y' = yy y + yx x + ty, x' = xy y + xx x + tx. */
typedef struct affine {
    double yy, yx, ty, xy, xx, tx;
} affine;

static affine rotation(double degrees) {
    const double c = cos(degrees * DEGREE), s = sin(degrees * DEGREE);
    return (affine){.yy = c, .yx = s, .xy = -s, .xx = c};
}

/* Adds the affine map to `map` [size, size, 2], which holds displacements of the pixels. */
static void place(const affine *a, int64_t size, float *map) {
    const double centre = (double)size / 2;
    for (int64_t i = 0; i < size; ++i)
        for (int64_t j = 0; j < size; ++j, map += 2) {
            const double y = (double)i + 0.5 + (double)map[0] - centre, x = (double)j + 0.5 + (double)map[1] - centre;
            map[0] = (float)(a->yy * y + a->yx * x + a->ty + centre);
            map[1] = (float)(a->xy * y + a->xx * x + a->tx + centre);
        }
}

/* Index of a pixel beyond the border: wrapped around, or reflected (... 1 0 | 0 1 ... n-1 | n-1 ...). */
static int64_t inside(int64_t i, int64_t n, bool wrap) {
    if (i >= 0 && i < n) return i;
    const int64_t period = wrap ? n : 2 * n, at = (i % period + period) % period;
    return at < n ? at : 2 * n - 1 - at;
}

static cleat_status warp(const float *map, int64_t size, int64_t channels, float *values, cleat_error *error) {
    const size_t count = (size_t)(size * size * channels);
    float *from = cleat_alloc(count, sizeof *from);
    if (!from) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for augmenting an image");
    memcpy(from, values, count * sizeof *from);
    for (int64_t i = 0; i < size * size; ++i, map += 2, values += channels) {
        const float y = map[0] - 0.5f, x = map[1] - 0.5f, dy = y - floorf(y), dx = x - floorf(x);
        const int64_t top = (int64_t)floorf(y), left = (int64_t)floorf(x);
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

/* Convolves values [size, size, C] with a Gaussian of deviation sigma along rows or columns. *squares is the sum of the
 * squared weights. */
static cleat_status smooth(double sigma, bool along_rows, bool wrap, int64_t size, int64_t channels, float *values,
                           double *squares, cleat_error *error) {
    const int64_t radius = (int64_t)ceil(3 * sigma), step = along_rows ? channels : size * channels;
    const int64_t next = along_rows ? size * channels : channels;
    double *line = cleat_alloc((size_t)(size + 2 * radius), sizeof *line),
           *weights = cleat_alloc((size_t)(2 * radius + 1), sizeof *weights), sum = 0;
    cleat_status status = CLEAT_OK;
    if (!line || !weights) {
        status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for augmenting an image");
        goto done;
    }
    for (int64_t k = -radius; k <= radius; ++k)
        sum += weights[k + radius] = exp(-(double)(k * k) / (2 * sigma * sigma));
    *squares = 0;
    for (int64_t k = 0; k <= 2 * radius; ++k) {
        weights[k] /= sum;
        *squares += weights[k] * weights[k];
    }
    for (int64_t l = 0; l < size * channels; ++l) {
        float *at = values + l / channels * next + l % channels;
        for (int64_t i = -radius; i < size + radius; ++i) line[i + radius] = (double)at[inside(i, size, wrap) * step];
        for (int64_t i = 0; i < size; ++i) {
            double mean = 0;
            for (int64_t k = 0; k <= 2 * radius; ++k) mean += weights[k] * line[i + k];
            at[i * step] = (float)mean;
        }
    }
done:
    cleat_free(weights);
    cleat_free(line);
    return status;
}

/* Displacements [size, size, 2]. A uniform number in [-1, 1) has the variance 1/3, of which a convolution leaves the
 * sum of its squared weights. */
static cleat_status deform(const cleat_augment *augment, cleat_random *random, int64_t size, float *map,
                           cleat_error *error) {
    double rows, columns;
    for (int64_t i = 0; i < 2 * size * size; ++i) map[i] = (float)between(random, -1, 1);
    cleat_status status = smooth(augment->elastic_sigma, true, true, size, 2, map, &rows, error);
    if (!status) status = smooth(augment->elastic_sigma, false, true, size, 2, map, &columns, error);
    for (int64_t i = 0; !status && i < 2 * size * size; ++i)
        map[i] *= (float)(augment->elastic * sqrt(3 / (rows * columns)));
    return status;
}

cleat_status cleat_effects_map(const cleat_augment *augment, cleat_random *random, int64_t size, float **map,
                               cleat_error *error) {
    *map = NULL;
    if (!warps(augment)) return CLEAT_OK;
    const affine turned = rotation(augment->rotate > 0 ? between(random, -augment->rotate, augment->rotate) : 0);
    float *made = cleat_alloc((size_t)(2 * size * size), sizeof *made);
    if (!made) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for augmenting an image");
    cleat_status status = augment->elastic > 0 ? deform(augment, random, size, made, error) : CLEAT_OK;
    if (status) {
        cleat_free(made);
        return status;
    }
    place(&turned, size, made);
    *map = made;
    return CLEAT_OK;
}

/* --- RandAugment ---------------------------------------------------------------------------------------------- */

typedef enum operation {
    IDENTITY,
    SHEAR_X,
    SHEAR_Y,
    TRANSLATE_X,
    TRANSLATE_Y,
    ROTATE,
    BRIGHTNESS,
    CONTRAST,
    SATURATION,
    POSTERIZE,
    SOLARIZE,
    AUTOCONTRAST,
    EQUALIZE,
    OPERATIONS
} operation;

static cleat_status transform(operation chosen, double m, int64_t size, int64_t channels, float *values,
                              cleat_error *error) {
    affine a = {.yy = 1, .xx = 1};
    if (chosen == SHEAR_X) a.xy = 0.3 * m;
    if (chosen == SHEAR_Y) a.yx = 0.3 * m;
    if (chosen == TRANSLATE_X) a.tx = 150.0 / 331 * m * (double)size;
    if (chosen == TRANSLATE_Y) a.ty = 150.0 / 331 * m * (double)size;
    if (chosen == ROTATE) a = rotation(30 * m);
    float *map = cleat_alloc((size_t)(2 * size * size), sizeof *map);
    if (!map) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for augmenting an image");
    place(&a, size, map);
    cleat_status status = warp(map, size, channels, values, error);
    cleat_free(map);
    return status;
}

static int byte_of(float value) {
    return (int)lrintf(fminf(fmaxf(value, 0), 1) * 255);
}

/* The tables of Pillow's ImageOps.autocontrast, equalize, posterize and solarize, for one channel with this histogram. */
static void make_table(operation chosen, double m, const int64_t histogram[256], float table[256]) {
    const int mask = 0xff & ~((1 << (int)lrint(4 * m)) - 1);
    int64_t all = 0, passed;
    int low = 255, high = 0;
    for (int i = 0; i < 256; ++i) {
        all += histogram[i];
        if (!histogram[i]) continue;
        low = i < low ? i : low;
        high = i;
    }
    const int64_t step = (all - histogram[high]) / 255;
    passed = step / 2;
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

static void map_bytes(operation chosen, double m, int64_t pixels, int64_t channels, float *values) {
    for (int64_t c = 0; c < channels; ++c) {
        int64_t histogram[256] = {0};
        float table[256];
        for (int64_t i = 0; i < pixels; ++i) ++histogram[byte_of(values[i * channels + c])];
        make_table(chosen, m, histogram, table);
        for (int64_t i = 0; i < pixels; ++i) values[i * channels + c] = table[byte_of(values[i * channels + c])];
    }
}

static cleat_status operate(operation chosen, double magnitude, cleat_random *random, int64_t size, int64_t channels,
                            float *values, cleat_error *error) {
    const double m = cleat_random_below(random, 2) ? -magnitude : magnitude;
    const float factor = (float)(1 + 0.9 * m);
    if (chosen == IDENTITY) return CLEAT_OK;
    if (chosen <= ROTATE) return transform(chosen, m, size, channels, values, error);
    if (chosen > SATURATION) {
        map_bytes(chosen, magnitude, size * size, channels, values);
        return CLEAT_OK;
    }
    const cleat_augment_params colours = {.brightness = chosen == BRIGHTNESS ? factor : 1,
                                          .contrast = chosen == CONTRAST ? factor : 1,
                                          .saturation = chosen == SATURATION ? factor : 1};
    cleat_augment_change_colours(&colours, NULL, size * size, channels, values);
    return CLEAT_OK;
}

/* --- all of them ---------------------------------------------------------------------------------------------- */

static void change_intensity(const cleat_augment *augment, cleat_random *random, int64_t count, float *values) {
    if (augment->gamma > 0) {
        const double most = log(1 + augment->gamma);
        const float exponent = (float)exp(between(random, -most, most));
        for (int64_t i = 0; i < count; ++i) values[i] = powf(fmaxf(values[i], 0), exponent);
    }
    if (augment->noise <= 0) return;
    const double deviation = between(random, 0, augment->noise);
    for (int64_t i = 0; i < count; ++i)
        values[i] = fminf(fmaxf(values[i] + (float)(deviation * cleat_random_normal(random)), 0), 1);
}

cleat_status cleat_effects_apply(const cleat_augment *augment, cleat_random *random, int64_t size, int64_t channels,
                                 float *values, cleat_error *error) {
    float *map = NULL;
    double squares;
    cleat_status status = cleat_effects_map(augment, random, size, &map, error);
    if (map) status = warp(map, size, channels, values, error);
    cleat_free(map);
    for (int64_t i = 0; i < augment->randaugment_count && !status; ++i)
        status = operate((operation)cleat_random_below(random, OPERATIONS), (double)augment->randaugment_magnitude / 30,
                         random, size, channels, values, error);
    const double sigma = augment->blur > 0 ? between(random, 0, augment->blur) : 0;
    if (!status && sigma > 0.1) status = smooth(sigma, true, false, size, channels, values, &squares, error);
    if (!status && sigma > 0.1) status = smooth(sigma, false, false, size, channels, values, &squares, error);
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

static double draw_beta(cleat_random *random, double a) {
    const double x = draw_gamma(random, a), y = draw_gamma(random, a);
    return x + y > 0 ? x / (x + y) : 0.5; /* both may underflow for a tiny a */
}

cleat_mix cleat_mix_draw(const cleat_augment *augment, cleat_random *random, int64_t size) {
    const bool both = augment->mixup > 0 && augment->cutmix > 0;
    cleat_mix mix = {.cut = both ? cleat_random_below(random, 2) : augment->cutmix > 0};
    const double weight = draw_beta(random, mix.cut ? augment->cutmix : augment->mixup);
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
