/* A decoded image, and the files it may come from. */
#ifndef CLEAT_SRC_IMAGE_FILE_H
#define CLEAT_SRC_IMAGE_FILE_H

#include "cleat/core.h"

/* 8 bits a channel, channels last, rows from the top. Freed by cleat_image_free. */
typedef struct cleat_image {
    int64_t height, width, channels; /* 1 grey, 3 red green blue; other numbers of planes: not from files */
    uint8_t *pixels;                 /* [H, W, C] */
    int bits;                        /* a channel of a PNG file; 0: of another one */
} cleat_image;

enum { CLEAT_IMAGE_MAX_PIXELS = 1 << 28 }; /* height x width at most */

/* Reads a PNG or JPEG file, told by its first bytes. PNG of every kind the format has: palettes, 1 to 16 bits (16 are
 * rounded to 8), interlaced; transparency is laid over black. JPEG: grey and colour; CMYK is refused with the way to
 * convert it. A turn that EXIF data ask for is not made. `channels`: 1 or 3 converts (grey = 0.299 R + 0.587 G + 0.114 B), 0 keeps what the file has.
 * CLEAT_ERR_FORMAT names the file, the cause (truncated, not an image, too large) and the mend; nothing of a truncated
 * file is used. Thread-safe. */
cleat_status cleat_image_read(const char *path, int64_t channels, cleat_image *image, cleat_error *error);
/* The same, but a JPEG is decoded at 1/2, 1/4 or 1/8 of its size where both sides stay `least` pixels or more: much
 * faster, and antialiased. */
cleat_status cleat_image_read_min_side(const char *path, int64_t channels, int64_t min_side, cleat_image *image,
                                       cleat_error *error);
/* from [pixels, 3] or [pixels, 1], to [pixels, 1] or [pixels, 3]: the other of the two. */
void cleat_image_to_grey(const uint8_t *from, int64_t pixels, uint8_t *to);
void cleat_image_to_colour(const uint8_t *from, int64_t pixels, uint8_t *to);
/* Size and channels (1 or 3) without decoding: only the beginning of the file is read. */
cleat_status cleat_image_probe(const char *path, cleat_image *image, cleat_error *error);
/* Writes an 8-bit PNG, atomically. channels 1 or 3. */
cleat_status cleat_image_write_png(const char *path, const cleat_image *image, cleat_error *error);
/* Takes an image without pixels. */
void cleat_image_free(cleat_image *image);

#endif
