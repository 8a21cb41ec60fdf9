/* Small images as data URIs. */
#include "models/example_images.h"

#include "core/json.h"

#include "core/memory.h"

#include <math.h>

enum { MIN_SIDE = 16, DARK = 96 };

/* The pixels of `all` that pixel `i` of `count` covers: at least one. */
typedef struct span {
    int64_t from, to;
} span;

static span covered(int64_t i, int64_t count, int64_t all) {
    span s = {.from = i * all / count, .to = (i + 1) * all / count};
    if (s.to == s.from) ++s.to;
    return s;
}

static uint8_t mean_of(const cleat_image *image, span rows, span columns, int64_t channel) {
    int64_t sum = 0, count = (rows.to - rows.from) * (columns.to - columns.from);
    for (int64_t y = rows.from; y < rows.to; ++y)
        for (int64_t x = columns.from; x < columns.to; ++x)
            sum += image->pixels[(y * image->width + x) * image->channels + channel];
    return (uint8_t)((sum + count / 2) / count);
}

static uint8_t centre_of(const cleat_image *image, span rows, span columns, int64_t channel) {
    const int64_t y = (rows.from + rows.to) / 2, x = (columns.from + columns.to) / 2;
    return image->pixels[(y * image->width + x) * image->channels + channel];
}

/* Whether an image has no colours, as photographs from a grey camera in colour files. */
static bool is_grey(const cleat_image *image) {
    const uint8_t *pixel = image->pixels;
    for (int64_t i = 0; image->channels == 3 && i < image->height * image->width; ++i, pixel += 3)
        if (pixel[0] != pixel[1] || pixel[0] != pixel[2]) return false;
    return true;
}

static int64_t scaled(int64_t side, double factor) {
    const int64_t pixels = (int64_t)lround((double)side * factor);
    return pixels > 0 ? pixels : 1;
}

/* The image with its longer side at most `side`; the caller frees it. */
static cleat_status shrink(const cleat_image *image, int64_t side, cleat_resize_kind shrinking, cleat_image *made,
                           cleat_error *error) {
    const int64_t longer = image->height > image->width ? image->height : image->width;
    const double factor = longer > side ? (double)side / (double)longer : 1;
    cleat_image small = {.height = scaled(image->height, factor),
                         .width = scaled(image->width, factor),
                         .channels = image->channels == 3 && !is_grey(image) ? 3 : 1};
    small.pixels = cleat_alloc((size_t)(small.height * small.width), (size_t)small.channels);
    if (!small.pixels) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for an example's image");
    uint8_t *to = small.pixels;
    for (int64_t y = 0; y < small.height; ++y)
        for (int64_t x = 0; x < small.width; ++x)
            for (int64_t c = 0; c < small.channels; ++c)
                *to++ = (shrinking == CLEAT_SHRINK_MEAN ? mean_of : centre_of)(
                    image, covered(y, small.height, image->height), covered(x, small.width, image->width), c);
    *made = small;
    return CLEAT_OK;
}

void cleat_examples_brighten(cleat_image *image) {
    const int64_t values = image->height * image->width * image->channels;
    int64_t counts[256] = {0};
    int low = 0, high = 255;
    for (int64_t i = 0; i < values; ++i) ++counts[image->pixels[i]];
    for (int64_t sum = counts[low]; sum <= values / 100; sum += counts[low]) ++low;
    for (int64_t sum = counts[high]; sum <= values / 100; sum += counts[high]) --high;
    for (int64_t i = 0; i < values && high < DARK && high > low; ++i) {
        const int value = 255 * (image->pixels[i] - low) / (high - low);
        image->pixels[i] = (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
    }
}

cleat_status cleat_examples_add_image(cleat_string *json, const char *name, const cleat_image *image,
                                      cleat_resize_kind shrinking, size_t most, cleat_error *error) {
    cleat_string png = {0};
    cleat_status status = CLEAT_OK;
    if (!image) json_add(json, json_text(name, NULL));
    const bool figure = most == CLEAT_FIGURE_BYTES;
    for (int64_t side = figure ? CLEAT_FIGURE_SIDE : CLEAT_EXAMPLE_SIDE;
         image && !status && (png.size == 0 || png.size > most); side = side * 3 / 4) {
        cleat_image small = {0};
        cleat_string_free(&png);
        status = shrink(image, side, shrinking, &small, error);
        if (!status && figure) cleat_examples_brighten(&small);
        if (!status) status = cleat_image_encode_png("an example", &small, &png, error);
        cleat_image_free(&small);
        if (side <= MIN_SIDE) break;
    }
    if (image && !status) {
        cleat_json_add_name(json, name);
        cleat_string_add(json, "\"data:image/png;base64,");
        cleat_string_add_base64(json, (const uint8_t *)png.data, png.size);
        cleat_string_add(json, "\"");
    }
    cleat_string_free(&png);
    return status;
}
