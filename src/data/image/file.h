/* Decoding of image files (PNG, JPEG, TIFF), and encoding of PNG. */
#ifndef CLEAT_SRC_IMAGE_FILE_H
#define CLEAT_SRC_IMAGE_FILE_H

#include "core/string.h"

/* 8 bits per channel, channels last, rows from the top. Freed by cleat_image_free. */
typedef struct cleat_image {
    /* 1 grey, 3 colour (RGB); images that do not come from files may have others */
    int64_t height, width, channels;
    uint8_t *pixels; /* [H, W, C] */
    bool alpha;      /* the file has transparency, which is dropped */
    int peak;        /* of 16 bits per channel: the largest value in the file, which pixels[peak_at] had; else 0 */
    int64_t peak_at;
} cleat_image;

enum { CLEAT_IMAGE_MAX_PIXELS = 1 << 28 }; /* maximum of height x width */

/* Whether the name has the ending of an image file. */
bool cleat_image_is_name(const char *name);
/* Reads a PNG, JPEG or TIFF file, recognized by its first bytes. All kinds of PNG are supported: palettes, 1 to 16
 * bits (16 are rounded to 8), interlaced; transparent pixels keep the colours beneath. JPEG and TIFF: grey and colour;
 * TIFF of one page, 1 to 16 bits. CMYK is rejected with a hint on converting it. The EXIF orientation is ignored.
 * `channels`: 1 or 3 converts (grey = 0.299 R + 0.587 G + 0.114 B), 0 keeps those of the file. CLEAT_ERR_FORMAT names
 * the file, the cause (truncated, not an image, too large) and the remedy; nothing of a truncated file is used. The
 * caller frees *image. Thread-safe. */
cleat_status cleat_image_read(const char *path, int64_t channels, cleat_image *image, cleat_error *error);
/* The same, but a JPEG is decoded at 1/2, 1/4 or 1/8 of its size if both sides keep at least `min_side`
 * pixels: much faster, and antialiased. */
cleat_status cleat_image_read_min_side(const char *path, int64_t channels, int64_t min_side, cleat_image *image,
                                       cleat_error *error);
/* Reads a PNG or TIFF file of ids: greys and indices of a palette stay as they are stored; of 16 bits the lower byte,
 * valid if image->peak is below 256. *image has 1 channel, or 3 of colours. Otherwise as cleat_image_read. */
cleat_status cleat_image_read_ids(const char *path, cleat_image *image, cleat_error *error);
/* Convert from [pixels, 3] to [pixels, 1], and from [pixels, 1] to [pixels, 3]. */
void cleat_image_to_grey(const uint8_t *from, int64_t pixels, uint8_t *to);
void cleat_image_to_colour(const uint8_t *from, int64_t pixels, uint8_t *to);
/* Size and channels (1 or 3) without decoding; usually reads only the beginning of the file. */
cleat_status cleat_image_probe(const char *path, cleat_image *image, cleat_error *error);
/* Encodes an 8-bit PNG; channels must be 1 or 3. `name` is used in messages; *bytes is new, and the caller
 * frees it (cleat_string_free). */
cleat_status cleat_image_encode_png(const char *name, const cleat_image *image, cleat_string *bytes,
                                    cleat_error *error);
/* The same to a file, atomically. */
cleat_status cleat_image_write_png(const char *path, const cleat_image *image, cleat_error *error);
/* Writes ids [H, W, 1] with the palette [256, 3] of their colours; NULL: as cleat_image_write_png. */
cleat_status cleat_image_write_png_ids(const char *path, const cleat_image *image, const uint8_t *palette,
                                       cleat_error *error);
/* Accepts an image without pixels. */
void cleat_image_free(cleat_image *image);

#endif
