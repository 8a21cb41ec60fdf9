/* Interface between file.c and the image formats.
 *
 * `name` is used in messages; bytes [size] are the file, or for the probe its beginning. An image has the
 * channels of the file, or `channels` if given. On failure nothing remains allocated. */
#ifndef CLEAT_SRC_IMAGE_FORMATS_H
#define CLEAT_SRC_IMAGE_FORMATS_H

#include "data/image/file.h"

cleat_status cleat_png_decode(const char *name, const uint8_t *bytes, size_t size, cleat_image *image,
                              cleat_error *error);
/* Values without conversion: palette indices, or numbers of 1 to 16 bits; without alpha. */
cleat_status cleat_png_decode_ids(const char *name, const uint8_t *bytes, size_t size, cleat_image *image,
                                  cleat_error *error);
cleat_status cleat_png_probe(const char *name, const uint8_t *bytes, size_t size, cleat_image *image,
                             cleat_error *error);
cleat_status cleat_jpeg_decode(const char *name, const uint8_t *bytes, size_t size, int64_t channels, int64_t min_side,
                               cleat_image *image, cleat_error *error);
cleat_status cleat_jpeg_probe(const char *name, const uint8_t *bytes, size_t size, cleat_image *image,
                              cleat_error *error);

/* Reads a file that may be large; size 0: only its header, else the bytes of the file. */
cleat_status cleat_tiff_read(const char *path, size_t size, bool ids, cleat_image *image, cleat_error *error);

/* Rejects images without pixels and those of more than CLEAT_IMAGE_MAX_PIXELS. */
cleat_status cleat_image_check_size(const char *name, int64_t height, int64_t width, cleat_error *error);
/* Rejects a small file that would take much memory. Files of up to CLEAT_IMAGE_FREE_BYTES of decoded pixels
 * are accepted; larger images must have 1 / CLEAT_IMAGE_MAX_RATIO of that in the file, which has `size`
 * bytes. Photographs have 1 / 3 to 1 / 30; PNG can reach 1 / 1032, with one colour. `image`: height, width,
 * channels. */
enum { CLEAT_IMAGE_FREE_BYTES = 256 << 20, CLEAT_IMAGE_MAX_RATIO = 200 };
cleat_status cleat_image_check_contents(const char *name, const cleat_image *image, size_t size, cleat_error *error);
/* Allocates the pixels of an image whose sizes are set. */
cleat_status cleat_image_alloc(const char *name, cleat_image *image, cleat_error *error);
/* Sets pixels and peak from values `wide` [H, W, C] of 16 bits: rounded to 8 bits as libpng does, or cut. */
void cleat_image_narrow(const uint16_t *wide, bool ids, cleat_image *image);

#endif
