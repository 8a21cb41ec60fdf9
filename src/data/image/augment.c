/* Image augmentation: draws random parameters, and resamples images to the size of a sample.
 *
 * Resampling is separable. Each row and each column of the sample has TAPS: consecutive rows or columns of
 * the image, each with a weight; two neighbours if the crop is enlarged, the area of the pixel if it is
 * reduced. Rows come first: the rows of the taps are summed into one row of the image's width, from which the
 * columns are then gathered. */
#include "data/image/augment.h"

#include "core/memory.h"
#include "core/philox.h"

#include <math.h>
#include <string.h>

static const uint64_t AUGMENT_SEED = 0x76696577u; /* "view": a separate family of random streams */

cleat_augment_params cleat_augment_identity(const cleat_image *image, bool square) {
    double height = (double)image->height, width = (double)image->width;
    cleat_augment_params params = {.height = height, .width = width, .brightness = 1, .contrast = 1, .saturation = 1};
    if (square) {
        params.height = params.width = height < width ? height : width;
        params.top = floor((height - params.height) / 2);
        params.left = floor((width - params.width) / 2);
    }
    return params;
}

bool cleat_augment_enabled(const cleat_augment *augment) {
    return augment->crop_min < 1 || augment->shift > 0 || augment->flip || augment->flip_vertical || augment->turn ||
           augment->brightness > 0 || augment->contrast > 0 || augment->saturation > 0 ||
           cleat_effects_enabled(augment);
}

static double between(cleat_random *random, double low, double high) {
    return low + (high - low) * cleat_random_uniform(random);
}

/* Draws area and aspect ratio up to ten times until the crop fits into the image; otherwise its size remains
 * that of *params. All ten are always drawn, so that later random numbers do not depend on the image. */
static void draw_crop(cleat_random *random, const cleat_image *image, bool square, double least,
                      cleat_augment_params *params) {
    double height = (double)image->height, width = (double)image->width, side = sqrt(height * width);
    double unit_h = square ? side : height, unit_w = square ? side : width;
    double tall = 0, wide = 0;
    bool fits = false;
    for (int i = 0; i < 10; ++i) {
        double area = between(random, least, 1), ratio = exp(between(random, log(3.0 / 4), log(4.0 / 3)));
        if (fits) continue;
        tall = unit_h * sqrt(area / ratio);
        wide = unit_w * sqrt(area * ratio);
        fits = tall <= height && wide <= width;
    }
    if (fits) {
        params->height = tall;
        params->width = wide;
    }
    params->top = between(random, 0, height - params->height);
    params->left = between(random, 0, width - params->width);
}

static void draw_shift(cleat_random *random, int64_t shift, int64_t size, cleat_augment_params *params) {
    uint32_t places = (uint32_t)(2 * shift + 1);
    double down = (double)cleat_random_below(random, places) - (double)shift;
    double right = (double)cleat_random_below(random, places) - (double)shift;
    params->top += down * params->height / (double)size;
    params->left += right * params->width / (double)size;
}

static float draw_factor(cleat_random *random, double width) {
    return (float)between(random, 1 - width, 1 + width);
}

cleat_augment_params cleat_augment_random(const cleat_image *image, bool square, int64_t size,
                                          const cleat_augment *augment, const cleat_rng_key *rng_key, size_t sample) {
    cleat_augment_params params = cleat_augment_identity(image, square);
    cleat_random random = cleat_random_stream(rng_key->seed ^ AUGMENT_SEED, rng_key->epoch, (uint32_t)sample);
    if (augment->crop_min < 1) draw_crop(&random, image, square, augment->crop_min, &params);
    if (augment->shift > 0) draw_shift(&random, augment->shift, size, &params);
    if (augment->flip) params.flip_x = cleat_random_below(&random, 2);
    if (augment->flip_vertical) params.flip_y = cleat_random_below(&random, 2);
    if (augment->turn) { /* a quarter turn is a transposition and one mirroring */
        uint32_t quarters = cleat_random_below(&random, 4);
        params.transpose = quarters % 2;
        params.flip_x ^= quarters == 1 || quarters == 2;
        params.flip_y ^= quarters == 2 || quarters == 3;
    }
    if (augment->brightness > 0) params.brightness = draw_factor(&random, augment->brightness);
    if (augment->contrast > 0) params.contrast = draw_factor(&random, augment->contrast);
    if (augment->saturation > 0) params.saturation = draw_factor(&random, augment->saturation);
    params.effects = cleat_effects_enabled(augment) ? augment : NULL;
    params.random = random;
    return params;
}

static bool changes_colours(const cleat_augment_params *params) {
    return params->brightness != 1 || params->contrast != 1 || params->saturation != 1;
}

bool cleat_augment_is_identity(const cleat_image *image, const cleat_augment_params *params, int64_t size) {
    return image->height == size && image->width == size && params->top == 0 && params->left == 0 &&
           params->height == (double)size && params->width == (double)size && !params->flip_x && !params->flip_y &&
           !params->transpose && !changes_colours(params) && !params->effects;
}

/* For one axis: pixel i of the sample is the sum over k < count of weights[i * count + k] * source[first[i] +
 * k]. */
typedef struct taps {
    int64_t *first; /* [size], may be outside the image */
    float *weights; /* [size, count] */
    int64_t count;
    int64_t low, high; /* range of all source indices */
} taps;

static void free_taps(taps *t) {
    cleat_free(t->first);
    cleat_free(t->weights);
}

/* For a pixel that covers [from, to) of the source. A range narrower than a source pixel is widened to one:
 * the mean over that width is the linear interpolation between two neighbours. */
static void set_tap(taps *t, int64_t i, double from, double to) {
    double middle = (from + to) / 2, width = to - from > 1 ? to - from : 1;
    from = middle - width / 2;
    to = middle + width / 2;
    t->first[i] = (int64_t)floor(from + 1e-9);
    for (int64_t k = 0; k < t->count; ++k) {
        double left = (double)(t->first[i] + k), right = left + 1;
        double covered = (right < to ? right : to) - (left > from ? left : from);
        t->weights[i * t->count + k] = covered > 0 ? (float)(covered / width) : 0;
    }
}

/* Drops the last tap if no pixel uses it, as when each pixel covers a whole number of whole source pixels. */
static void drop_empty(taps *t, int64_t size) {
    for (int64_t i = 0; i < size; ++i)
        if (t->weights[i * t->count + t->count - 1] > 1e-7f) return;
    if (t->count == 1) return;
    for (int64_t i = 1; i < size; ++i)
        memmove(t->weights + i * (t->count - 1), t->weights + i * t->count, (size_t)(t->count - 1) * sizeof(float));
    --t->count;
}

static bool make_taps(double start, double extent, int64_t size, bool flip, taps *t) {
    double step = extent / (double)size;
    t->count = (int64_t)ceil(step > 1 ? step : 1) + 1;
    t->first = cleat_alloc((size_t)size, sizeof *t->first);
    t->weights = cleat_alloc((size_t)(size * t->count), sizeof *t->weights);
    if (!t->first || !t->weights) return false;
    for (int64_t i = 0; i < size; ++i) {
        int64_t at = flip ? size - 1 - i : i;
        set_tap(t, i, start + (double)at * step, start + (double)(at + 1) * step);
    }
    drop_empty(t, size);
    drop_empty(t, size);
    t->low = INT64_MAX;
    t->high = INT64_MIN;
    for (int64_t i = 0; i < size; ++i) {
        t->low = t->first[i] < t->low ? t->first[i] : t->low;
        t->high = t->first[i] + t->count - 1 > t->high ? t->first[i] + t->count - 1 : t->high;
    }
    return true;
}

/* ... 1 0 | 0 1 2 ... n-1 | n-1 n-2 ... */
static int64_t reflect(int64_t i, int64_t n) {
    int64_t at = i % (2 * n);
    if (at < 0) at += 2 * n;
    return at < n ? at : 2 * n - 1 - at;
}

typedef struct resampling {
    const cleat_image *image;
    taps rows, columns;
    int64_t size;
    float *line; /* [columns.low .. columns.high, C]: weighted sum of rows of the image */
    float *out;  /* [size, C] a row of the crop that becomes a column of the sample */
} resampling;

/* Tap k of a row of the crop: its weight, for bytes, and the row of the image. */
static float weight_of(const resampling *r, int64_t row, int64_t k) {
    return r->rows.weights[row * r->rows.count + k] * (1.0f / 255);
}

static const uint8_t *source_of(const resampling *r, int64_t row, int64_t k) {
    const cleat_image *p = r->image;
    return p->pixels + reflect(r->rows.first[row] + k, p->height) * p->width * p->channels;
}

/* line = the weighted sum of the taps' rows of the image, scaled to 0 .. 1. */
static void add_rows(const resampling *r, int64_t row) {
    const cleat_image *p = r->image;
    int64_t channels = p->channels, low = r->columns.low, high = r->columns.high;
    int64_t from = low > 0 ? low : 0, to = high < p->width - 1 ? high : p->width - 1;
    float *inside = r->line + (from - low) * channels;
    int64_t count = (to - from + 1) * channels;
    for (int64_t k = 0; k < r->rows.count; ++k) {
        const float weight = weight_of(r, row, k);
        const uint8_t *source = source_of(r, row, k) + from * channels;
        if (k == 0 && r->rows.count > 1) { /* the first two at once */
            const float other_weight = weight_of(r, row, ++k);
            const uint8_t *other = source_of(r, row, k) + from * channels;
            for (int64_t i = 0; i < count; ++i) inside[i] = weight * (float)source[i] + other_weight * (float)other[i];
        } else if (k == 0) {
            for (int64_t i = 0; i < count; ++i) inside[i] = weight * (float)source[i];
        } else if (weight != 0) {
            for (int64_t i = 0; i < count; ++i) inside[i] += weight * (float)source[i];
        }
    }
    for (int64_t x = low; x <= high; ++x)
        if (x < from || x > to)
            memcpy(r->line + (x - low) * channels, r->line + (reflect(x, p->width) - low) * channels,
                   (size_t)channels * sizeof(float));
}

static inline void gather(const resampling *r, int64_t channels, int64_t count, float *out) {
    const taps *t = &r->columns;
    for (int64_t i = 0; i < r->size; ++i, out += channels) {
        const float *source = r->line + (t->first[i] - t->low) * channels, *weights = t->weights + i * count;
        for (int64_t c = 0; c < channels; ++c) {
            float sum = weights[0] * source[c];
            for (int64_t k = 1; k < count; ++k) sum += weights[k] * source[k * channels + c];
            out[c] = sum;
        }
    }
}

/* Constant numbers of channels and taps for the usual images: colour, enlarged or of nearly the same size. */
static void gather_columns(const resampling *r, float *out) {
    const int64_t channels = r->image->channels, count = r->columns.count;
    if (channels == 3 && count == 2)
        gather(r, 3, 2, out);
    else if (channels == 3)
        gather(r, 3, count, out);
    else
        gather(r, channels, count, out);
}

/* Stores row i of the crop as column i of the sample. */
static inline void place_column(const resampling *r, int64_t channels, int64_t i, float *values) {
    for (int64_t j = 0; j < r->size; ++j)
        memcpy(values + (j * r->size + i) * channels, r->out + j * channels, (size_t)channels * sizeof(float));
}

static inline float grey_of(float red, float green, float blue) {
    return 0.299f * red + 0.587f * green + 0.114f * blue;
}

static float mean_grey(int64_t pixels, int64_t channels, const float *values) {
    double sum = 0;
    if (channels == 3)
        for (int64_t i = 0; i < pixels; ++i) sum += grey_of(values[3 * i], values[3 * i + 1], values[3 * i + 2]);
    else
        for (int64_t i = 0; i < pixels; ++i) sum += values[i * channels];
    return (float)(sum / (double)pixels);
}

/* Selects values instead of branching: clamped values are as random as the image. */
static inline float clamp(float value) {
    value = value < 0 ? 0 : value;
    return value > 1 ? 1 : value;
}

/* New value of a channel: clamp((old * factor + add) * saturation + (1 - saturation) * grey), standardized.
 * The grey is that of the pixel before saturation. */
typedef struct colour_change {
    float factor, add, saturation;
    float mean[CLEAT_IMAGE_MAX_CHANNELS], scale[CLEAT_IMAGE_MAX_CHANNELS]; /* standardized = (value - mean) * scale */
} colour_change;

enum { BLOCK = 64 };

/* A block of pixels in planes: loops that the compiler vectorizes. */
static void change_block(const colour_change *change, float planes[3][BLOCK]) {
    float grey[BLOCK];
    for (int c = 0; c < 3; ++c)
        for (int i = 0; i < BLOCK; ++i) planes[c][i] = planes[c][i] * change->factor + change->add;
    for (int i = 0; i < BLOCK; ++i)
        grey[i] = grey_of(planes[0][i], planes[1][i], planes[2][i]) * (1 - change->saturation);
    for (int c = 0; c < 3; ++c)
        for (int i = 0; i < BLOCK; ++i)
            planes[c][i] = (clamp(planes[c][i] * change->saturation + grey[i]) - change->mean[c]) * change->scale[c];
}

static void change_three(const colour_change *change, int64_t pixels, float *values) {
    float planes[3][BLOCK] = {{0}};
    for (int64_t at = 0; at < pixels; at += BLOCK, values += 3 * BLOCK) {
        const int64_t n = pixels - at < BLOCK ? pixels - at : BLOCK;
        for (int64_t i = 0; i < n; ++i)
            for (int c = 0; c < 3; ++c) planes[c][i] = values[3 * i + c];
        change_block(change, planes);
        for (int64_t i = 0; i < n; ++i)
            for (int c = 0; c < 3; ++c) values[3 * i + c] = planes[c][i];
    }
}

/* Without saturation, which requires colours. */
static void change_others(const colour_change *change, int64_t pixels, int64_t channels, float *values) {
    for (int64_t i = 0; i < pixels; ++i)
        for (int64_t c = 0; c < channels; ++c, ++values)
            *values = (clamp(*values * change->factor + change->add) - change->mean[c]) * change->scale[c];
}

void cleat_augment_change_colours(const cleat_augment_params *params, const cleat_image_preprocessor *fitted,
                                  int64_t pixels, int64_t channels, float *values) {
    colour_change change = {
        .factor = params->brightness * params->contrast,
        .add = mean_grey(pixels, channels, values) * params->brightness * (1 - params->contrast),
        .saturation = params->saturation,
    };
    for (int64_t c = 0; c < channels; ++c) {
        change.mean[c] = fitted ? (float)fitted->mean[c] : 0;
        change.scale[c] = fitted ? (float)(1 / fitted->std[c]) : 1;
    }
    if (channels == 3)
        change_three(&change, pixels, values);
    else
        change_others(&change, pixels, channels, values);
}

cleat_status cleat_augment_apply(const cleat_image *image, const cleat_augment_params *params,
                                 const cleat_image_preprocessor *fitted, int64_t size, float *values,
                                 cleat_error *error) {
    resampling r = {.image = image, .size = size};
    int64_t channels = image->channels;
    cleat_status status = CLEAT_OK;
    if (cleat_augment_is_identity(image, params, size)) {
        for (int64_t i = 0; i < size * size * channels; ++i) values[i] = (float)image->pixels[i] * (1.0f / 255);
        if (fitted) cleat_image_standardise(fitted, size * size, values);
        return CLEAT_OK;
    }
    /* mirroring follows the transposition, which makes the crop's columns the sample's rows */
    bool flip_rows = params->transpose ? params->flip_x : params->flip_y;
    bool flip_columns = params->transpose ? params->flip_y : params->flip_x;
    bool made = make_taps(params->top, params->height, size, flip_rows, &r.rows) &&
                make_taps(params->left, params->width, size, flip_columns, &r.columns);
    /* reflections may need the whole row */
    if (made && (r.columns.low < 0 || r.columns.high >= image->width)) {
        r.columns.low = r.columns.low < 0 ? r.columns.low : 0;
        r.columns.high = r.columns.high >= image->width ? r.columns.high : image->width - 1;
    }
    int64_t width = made ? r.columns.high - r.columns.low + 1 : 0;
    if (made) r.line = cleat_alloc((size_t)(width * channels), sizeof *r.line);
    r.out = cleat_alloc((size_t)(size * channels), sizeof *r.out);
    if (!r.line || !r.out) {
        status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for scaling an image");
        goto done;
    }
    for (int64_t i = 0; i < size; ++i) {
        add_rows(&r, i);
        gather_columns(&r, params->transpose ? r.out : values + i * size * channels);
        if (!params->transpose) continue;
        if (channels == 3) /* a constant, so that a pixel is copied without a call */
            place_column(&r, 3, i, values);
        else
            place_column(&r, channels, i, values);
    }
    if (params->effects) {
        cleat_random random = params->random;
        status = cleat_effects_apply(params->effects, &random, size, channels, values, error);
    }
    if (changes_colours(params))
        cleat_augment_change_colours(params, fitted, size * size, channels, values);
    else if (fitted)
        cleat_image_standardise(fitted, size * size, values);
done:
    free_taps(&r.rows);
    free_taps(&r.columns);
    cleat_free(r.line);
    cleat_free(r.out);
    return status;
}

cleat_status cleat_augment_apply_labels(const cleat_image *mask, const cleat_augment_params *params, int64_t size,
                                        int32_t *labels, cleat_error *error) {
    const double side = (double)size, tall = params->height / side, wide = params->width / side;
    cleat_random random = params->random;
    cleat_warp warp = {.yy = 1, .xx = 1};
    cleat_status status = params->effects ? cleat_warp_draw(params->effects, &random, size, &warp, error) : CLEAT_OK;
    for (int64_t i = 0; i < size * size && !status; ++i) {
        double down, right;
        cleat_warp_place(&warp, size, i / size, i % size, &down, &right);
        const double a = params->flip_y ? side - down : down, b = params->flip_x ? side - right : right;
        const int64_t y = (int64_t)floor(params->top + (params->transpose ? b : a) * tall),
                      x = (int64_t)floor(params->left + (params->transpose ? a : b) * wide);
        const bool inside = down >= 0 && down < side && right >= 0 && right < side && y >= 0 && y < mask->height &&
                            x >= 0 && x < mask->width;
        *labels++ = inside ? mask->pixels[y * mask->width + x] : -1;
    }
    cleat_free(warp.displacements);
    return status;
}
