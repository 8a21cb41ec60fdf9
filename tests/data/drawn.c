/* Synthetic images of the data tests, and their PNG and JPEG files. */
#include "drawn.h"

#include "platform/files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

cleat_image drawn_image(int64_t height, int64_t width, int64_t channels, int kind) {
    cleat_image p = {.height = height, .width = width, .channels = channels};
    p.pixels = malloc((size_t)(height * width * channels));
    assert_non_null(p.pixels);
    for (int64_t y = 0; y < height; ++y)
        for (int64_t x = 0; x < width; ++x)
            for (int64_t c = 0; c < channels; ++c)
                p.pixels[(y * width + x) * channels + c] =
                    (uint8_t)(128 + 100 * sin(0.11 * (double)x * (double)(kind + 1) + 0.07 * (double)y + (double)c) *
                                        cos(0.05 * (double)(y - c * x / 4 + kind)));
    return p;
}

int drawn_difference(const cleat_image *a, const cleat_image *b) {
    int most = 0;
    assert_int_equal(a->height, b->height);
    assert_int_equal(a->width, b->width);
    assert_int_equal(a->channels, b->channels);
    for (int64_t i = 0; i < a->height * a->width * a->channels; ++i) {
        int difference = abs(a->pixels[i] - b->pixels[i]);
        most = difference > most ? difference : most;
    }
    return most;
}

/* --- PNG ------------------------------------------------------------------------------------------------------ */

/* Sample c of a pixel, in the bit depth of the file. */
static unsigned sample_at(int64_t x, int64_t y, int c, int bits) {
    return (unsigned)(x * 7919 + y * 104729 + c * 1299709 + x * y * 31) % (1u << bits);
}

static int planes_of(int colour) {
    return colour == PNG_COLOR_TYPE_GRAY || colour == PNG_COLOR_TYPE_PALETTE ? 1
           : colour == PNG_COLOR_TYPE_GRAY_ALPHA                             ? 2
           : colour == PNG_COLOR_TYPE_RGB                                    ? 3
                                                                             : 4;
}

static unsigned to_8_bits(unsigned value, int bits) {
    return (unsigned)floor((double)value * 255 / ((1u << bits) - 1) + 0.5);
}

/* Palette entry i is (3 i, 255 - 2 i, i); the first four entries are partly transparent, which readers
 * ignore. */
static unsigned entry(unsigned i, int c) {
    return (c == 0 ? 3 * i : c == 1 ? 255 - 2 * i : i) & 255;
}

static void expect_pixel(const drawn_png *kind, int64_t x, int64_t y, uint8_t *pixel) {
    int planes = planes_of(kind->colour);
    if (kind->colour == PNG_COLOR_TYPE_PALETTE) {
        for (int c = 0; c < 3; ++c) pixel[c] = (uint8_t)entry(sample_at(x, y, 0, kind->bits), c);
        return;
    }
    bool has_alpha = planes % 2 == 0;
    int colours = has_alpha ? planes - 1 : planes;
    for (int c = 0; c < colours; ++c) pixel[c] = (uint8_t)to_8_bits(sample_at(x, y, c, kind->bits), kind->bits);
}

static void pack_row(const drawn_png *kind, int64_t y, int64_t width, uint8_t *row) {
    int planes = planes_of(kind->colour), bits = kind->bits;
    for (int64_t x = 0; x < width; ++x)
        for (int c = 0; c < planes; ++c) {
            unsigned value = sample_at(x, y, c, bits);
            int64_t at = x * planes + c;
            if (bits == 16) {
                row[2 * at] = (uint8_t)(value >> 8);
                row[2 * at + 1] = (uint8_t)value;
            } else {
                int64_t bit = at * bits;
                row[bit / 8] = (uint8_t)(row[bit / 8] | value << (8 - bits - bit % 8));
            }
        }
}

void drawn_write_png(const char *path, int64_t height, int64_t width, const drawn_png *kind, cleat_image *expected) {
    int64_t bytes = (width * planes_of(kind->colour) * kind->bits + 7) / 8;
    uint8_t *pixels = calloc((size_t)height, (size_t)bytes);
    png_bytep *rows = calloc((size_t)height, sizeof *rows);
    FILE *file = fopen(path, "wb");
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    assert_true(pixels && rows && file && png && info);
    png_init_io(png, file);
    png_set_IHDR(png, info, (png_uint_32)width, (png_uint_32)height, kind->bits, kind->colour,
                 kind->interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    if (kind->colour == PNG_COLOR_TYPE_PALETTE) {
        png_color palette[256];
        png_byte alpha[4] = {0, 60, 120, 180};
        for (unsigned i = 0; i < 256; ++i)
            palette[i] = (png_color){(png_byte)entry(i, 0), (png_byte)entry(i, 1), (png_byte)entry(i, 2)};
        png_set_PLTE(png, info, palette, 1 << kind->bits);
        png_set_tRNS(png, info, alpha, kind->bits == 1 ? 2 : 4, NULL);
    }
    *expected = (cleat_image){.height = height, .width = width};
    expected->channels = kind->colour & PNG_COLOR_MASK_COLOR ? 3 : 1;
    expected->pixels = malloc((size_t)(height * width * expected->channels));
    for (int64_t y = 0; y < height; ++y) {
        rows[y] = pixels + y * bytes;
        pack_row(kind, y, width, rows[y]);
        for (int64_t x = 0; x < width; ++x)
            expect_pixel(kind, x, y, expected->pixels + (y * width + x) * expected->channels);
    }
    png_set_rows(png, info, rows);
    png_write_png(png, info, PNG_TRANSFORM_IDENTITY, NULL);
    png_destroy_write_struct(&png, &info);
    assert_int_equal(fclose(file), 0);
    free(rows);
    free(pixels);
}

/* --- JPEG ----------------------------------------------------------------------------------------------------- */

void drawn_write_jpeg(const char *path, const cleat_image *image, drawn_jpeg kind) {
    struct jpeg_compress_struct jpeg = {0};
    struct jpeg_error_mgr manager;
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    jpeg.err = jpeg_std_error(&manager);
    jpeg_create_compress(&jpeg);
    jpeg_stdio_dest(&jpeg, file);
    jpeg.image_height = (JDIMENSION)image->height;
    jpeg.image_width = (JDIMENSION)image->width;
    jpeg.input_components = (int)image->channels;
    jpeg.in_color_space = kind == DRAWN_JPEG_CMYK ? JCS_CMYK : image->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&jpeg);
    jpeg_set_quality(&jpeg, 95, TRUE);
    if (kind == DRAWN_JPEG_PROGRESSIVE) jpeg_simple_progression(&jpeg);
    jpeg_scan_info scans[64] = {{.comps_in_scan = 1}}; /* one per coefficient */
    for (int i = 1; i < 64; ++i) scans[i] = (jpeg_scan_info){.comps_in_scan = 1, .Ss = i, .Se = i};
    if (kind == DRAWN_JPEG_SCANS) {
        jpeg.scan_info = scans;
        jpeg.num_scans = 64;
    }
    jpeg_start_compress(&jpeg, TRUE);
    while (jpeg.next_scanline < jpeg.image_height) {
        JSAMPROW row = image->pixels + (int64_t)jpeg.next_scanline * image->width * image->channels;
        jpeg_write_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_compress(&jpeg);
    jpeg_destroy_compress(&jpeg);
    assert_int_equal(fclose(file), 0);
}
