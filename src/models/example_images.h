/* Images of examples: small PNG files in data URIs. */
#ifndef CLEAT_SRC_EXAMPLE_IMAGES_H
#define CLEAT_SRC_EXAMPLE_IMAGES_H

#include "core/string.h"
#include "data/image/file.h"

enum {
    CLEAT_EXAMPLE_SIDE = 128, /* longest side of an image, in pixels */
    CLEAT_FIGURE_SIDE = 384,  /* of figures */
    CLEAT_FIGURE_BYTES = 150000,
    CLEAT_EXAMPLE_IMAGE_BYTES = 7500, /* of a photograph's PNG */
    CLEAT_EXAMPLE_MASK_BYTES = 2200,  /* of a mask's */
};

typedef enum cleat_resize_kind {
    CLEAT_SHRINK_MEAN,   /* each pixel is the mean of those it covers */
    CLEAT_SHRINK_NEAREST /* the pixel at its centre: a mask stays a mask */
} cleat_resize_kind;

/* Appends the member `name` with the image (NULL: null) as a string data:image/png;base64,...: at most
 * CLEAT_EXAMPLE_SIDE pixels a side, and smaller until the PNG has at most `most` bytes. With CLEAT_FIGURE_BYTES it is
 * larger, and a dark image is brightened. An image without colours becomes grey; an image with neither 1 nor 3 channels
 * shows only the first. */
cleat_status cleat_examples_add_image(cleat_string *json, const char *name, const cleat_image *image,
                                      cleat_resize_kind shrinking, size_t most, cleat_error *error);
/* Spreads what lies between the percentiles 1 and 99 of a dark image, such as fluorescence, over all brightnesses. */
void cleat_examples_brighten(cleat_image *image);

#endif
