/* Synthetic images for the data tests, and files of them in every format. */
#ifndef CLEAT_TESTS_DATA_DRAWN_H
#define CLEAT_TESTS_DATA_DRAWN_H

#include "data/image/file.h"

/* Returns a smooth pattern that depends on `kind`. The caller frees it with cleat_image_free. */
cleat_image drawn_image(int64_t height, int64_t width, int64_t channels, int kind);

typedef struct drawn_png {
    int colour, bits; /* PNG_COLOR_TYPE_..., 1 to 16 */
    bool interlaced;
} drawn_png;
/* Writes a PNG of that kind; `expected` receives the image a reader must return (without alpha, 16 bits
 * rounded). */
void drawn_write_png(const char *path, int64_t height, int64_t width, const drawn_png *kind, cleat_image *expected);

typedef enum drawn_jpeg { DRAWN_JPEG, DRAWN_JPEG_PROGRESSIVE, DRAWN_JPEG_SCANS, DRAWN_JPEG_CMYK } drawn_jpeg;
void drawn_write_jpeg(const char *path, const cleat_image *image, drawn_jpeg kind);
/* Returns the largest difference between two images of the same size. */
int drawn_difference(const cleat_image *a, const cleat_image *b);

#endif
