/* PNG decoding and encoding with libpng.
 *
 * The library reports errors by longjmp: each call is inside a function that calls setjmp, and whatever must
 * be freed is in a struct outside of it. */
#include "data/image/formats.h"

#include "cleat/images.h"
#include "core/files.h"
#include "core/memory.h"
#include "core/string.h"

#include <png.h>
#include <setjmp.h>
#include <string.h>

typedef struct reader {
    const char *name;
    const uint8_t *bytes;
    size_t size, at;
    png_structp png;
    png_infop info;
    bool ids;      /* values as stored; for a palette, its indices */
    size_t stored; /* bytes of a row in the file, before compression */
    size_t stride; /* bytes of a row in memory */
    uint8_t *rows;
    uint16_t *wide; /* the rows, if the file has 16 bits */
    cleat_image image;
    cleat_error *error;
    cleat_status status;
} reader;

static void on_error(png_structp png, png_const_charp text) {
    reader *r = png_get_error_ptr(png);
    if (!r->status) /* else our own error, which is more specific */
        r->status =
            cleat_fail(r->error, CLEAT_ERR_FORMAT, "%s: damaged PNG file: %s; replace it or remove it", r->name, text);
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp text) {
    (void)png;
    (void)text; /* warnings concern chunks without pixels */
}

static void supply_bytes(png_structp png, png_bytep to, size_t wanted) {
    reader *r = png_get_io_ptr(png);
    if (wanted > r->size - r->at) {
        r->status = cleat_fail(r->error, CLEAT_ERR_FORMAT,
                               "%s: truncated: the PNG file ends after %zu bytes; copy it again or remove it", r->name,
                               r->size);
        png_error(png, "truncated");
    }
    memcpy(to, r->bytes + r->at, wanted);
    r->at += wanted;
}

static bool start(reader *r) {
    r->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, r, on_error, on_warning);
    r->info = r->png ? png_create_info_struct(r->png) : NULL;
    if (r->info) return true;
    r->status = cleat_fail(r->error, CLEAT_ERR_MEMORY, "%s: no memory for reading a PNG file", r->name);
    return false;
}

static void end(reader *r) {
    cleat_free(r->wide);
    png_destroy_read_struct(&r->png, &r->info, NULL);
}

static bool fails(cleat_status status, reader *r) {
    r->status = status;
    return status != CLEAT_OK;
}

/* Reads everything before the first pixel. */
static bool read_header(reader *r) {
    if (setjmp(png_jmpbuf(r->png))) return false;
    png_set_read_fn(r->png, r, supply_bytes);
    png_set_user_limits(r->png, PNG_UINT_31_MAX, PNG_UINT_31_MAX); /* only the area is limited, see below */
    png_read_info(r->png, r->info);
    const int type = png_get_color_type(r->png, r->info);
    const bool colours = type & PNG_COLOR_MASK_COLOR && !(r->ids && type == PNG_COLOR_TYPE_PALETTE);
    r->image.height = png_get_image_height(r->png, r->info);
    r->image.width = png_get_image_width(r->png, r->info);
    r->image.channels = colours ? 3 : 1;
    r->image.alpha = type & PNG_COLOR_MASK_ALPHA || png_get_valid(r->png, r->info, PNG_INFO_tRNS);
    r->stored = png_get_rowbytes(r->png, r->info);
    return !fails(cleat_image_check_size(r->name, r->image.height, r->image.width, r->error), r);
}

enum { DEFLATE_RATIO = 1032 }; /* the most that compression by deflate can reach */

/* Whether the file can hold the pixels that its header declares, before memory is reserved for them. */
static bool is_possible(reader *r) {
    if ((int64_t)r->stored * r->image.height / DEFLATE_RATIO > (int64_t)r->size)
        return !fails(
            cleat_fail(r->error, CLEAT_ERR_FORMAT,
                       "%s: damaged or truncated PNG file: %zu bytes cannot hold %lld x %lld pixels; replace it "
                       "or remove it",
                       r->name, r->size, (long long)r->image.width, (long long)r->image.height),
            r);
    return !fails(cleat_image_check_contents(r->name, &r->image, r->size, r->error), r);
}

/* Converts every kind of PNG to 8 or 16 bits per channel. Transparent pixels keep the colours beneath, as with
 * Pillow's convert('RGB'), which timm, torchvision and transformers use. */
static bool set_conversions(reader *r) {
    if (setjmp(png_jmpbuf(r->png))) return false;
    if (r->ids)
        png_set_packing(r->png);
    else
        png_set_expand(r->png);
    png_set_strip_alpha(r->png);
    if (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) png_set_swap(r->png);
    png_set_interlace_handling(r->png);
    png_read_update_info(r->png, r->info);
    return true;
}

static bool reserve(reader *r) {
    const size_t values = (size_t)(r->image.width * r->image.channels);
    if (fails(cleat_image_alloc(r->name, &r->image, r->error), r)) return false;
    const bool wide = png_get_bit_depth(r->png, r->info) == 16;
    r->stride = wide ? 2 * values : values;
    if (wide) r->wide = cleat_alloc((size_t)r->image.height, r->stride);
    r->rows = wide ? (uint8_t *)r->wide : r->image.pixels;
    return r->rows || !fails(cleat_fail(r->error, CLEAT_ERR_MEMORY, "%s: no memory for 16 bits", r->name), r);
}

static bool read_rows(reader *r) {
    if (setjmp(png_jmpbuf(r->png))) return false;
    int passes = png_set_interlace_handling(r->png);
    for (int pass = 0; pass < passes; ++pass)
        for (int64_t y = 0; y < r->image.height; ++y) png_read_row(r->png, r->rows + (size_t)y * r->stride, NULL);
    png_read_end(r->png, NULL);
    if (r->wide) cleat_image_narrow(r->wide, r->ids, &r->image);
    return true;
}

static cleat_status decode(const char *name, const uint8_t *bytes, size_t size, bool ids, cleat_image *image,
                           cleat_error *error) {
    reader r = {.name = name, .bytes = bytes, .size = size, .ids = ids, .error = error};
    bool done = start(&r) && read_header(&r) && set_conversions(&r) && is_possible(&r) && reserve(&r) && read_rows(&r);
    end(&r);
    if (done)
        *image = r.image;
    else
        cleat_image_free(&r.image);
    return r.status;
}

cleat_status cleat_png_decode(const char *name, const uint8_t *bytes, size_t size, cleat_image *image,
                              cleat_error *error) {
    return decode(name, bytes, size, false, image, error);
}

cleat_status cleat_png_decode_ids(const char *name, const uint8_t *bytes, size_t size, cleat_image *image,
                                  cleat_error *error) {
    return decode(name, bytes, size, true, image, error);
}

cleat_status cleat_png_probe(const char *name, const uint8_t *bytes, size_t size, cleat_image *image,
                             cleat_error *error) {
    reader r = {.name = name, .bytes = bytes, .size = size, .error = error};
    bool done = start(&r) && read_header(&r);
    end(&r);
    if (done) *image = r.image;
    return r.status;
}

typedef struct writer {
    const char *path;
    const uint8_t *palette; /* [256, 3]; NULL: grey or colour */
    png_structp png;
    png_infop info;
    cleat_string bytes;
    cleat_error *error;
    cleat_status status;
} writer;

static void on_write_error(png_structp png, png_const_charp text) {
    writer *w = png_get_error_ptr(png);
    w->status = cleat_fail(w->error, CLEAT_ERR_ARGUMENT, "%s: cannot write a PNG file: %s", w->path, text);
    png_longjmp(png, 1);
}

static void append_bytes(png_structp png, png_bytep bytes, size_t size) {
    writer *w = png_get_io_ptr(png);
    cleat_string_add_bytes(&w->bytes, (const char *)bytes, size);
}

static void flush(png_structp png) {
    (void)png;
}

enum { COLOURS = 256 };

static void encode(writer *w, const cleat_image *image) {
    png_color colours[COLOURS];
    if (setjmp(png_jmpbuf(w->png))) return;
    png_set_write_fn(w->png, w, append_bytes, flush);
    png_set_IHDR(w->png, w->info, (png_uint_32)image->width, (png_uint_32)image->height, 8,
                 w->palette             ? PNG_COLOR_TYPE_PALETTE
                 : image->channels == 1 ? PNG_COLOR_TYPE_GRAY
                                        : PNG_COLOR_TYPE_RGB,
                 PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    for (int i = 0; w->palette && i < COLOURS; ++i)
        colours[i] = (png_color){w->palette[3 * i], w->palette[3 * i + 1], w->palette[3 * i + 2]};
    if (w->palette) png_set_PLTE(w->png, w->info, colours, COLOURS);
    png_write_info(w->png, w->info);
    for (int64_t y = 0; y < image->height; ++y)
        png_write_row(w->png, image->pixels + y * image->width * image->channels);
    png_write_end(w->png, NULL);
}

static cleat_status encode_png(const char *name, const cleat_image *image, const uint8_t *palette, cleat_string *bytes,
                               cleat_error *error) {
    writer w = {.path = name, .palette = palette, .error = error};
    if (image->channels != 1 && image->channels != 3)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "%s: an image of %lld channels; a PNG file has 1 or 3", name,
                          (long long)image->channels);
    cleat_status status = cleat_image_check_size(name, image->height, image->width, error);
    if (status) return status;
    w.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &w, on_write_error, on_warning);
    w.info = w.png ? png_create_info_struct(w.png) : NULL;
    if (w.info)
        encode(&w, image);
    else
        w.status = cleat_fail(error, CLEAT_ERR_MEMORY, "%s: no memory for writing a PNG file", name);
    png_destroy_write_struct(&w.png, &w.info);
    if (!w.status && w.bytes.failed)
        w.status = cleat_fail(error, CLEAT_ERR_MEMORY, "%s: no memory for writing a PNG file", name);
    if (!w.status)
        *bytes = w.bytes;
    else
        cleat_string_free(&w.bytes);
    return w.status;
}

cleat_status cleat_image_encode_png(const char *name, const cleat_image *image, cleat_string *bytes,
                                    cleat_error *error) {
    return encode_png(name, image, NULL, bytes, error);
}

cleat_status cleat_image_write_png(const char *path, const cleat_image *image, cleat_error *error) {
    return cleat_image_write_png_ids(path, image, NULL, error);
}

cleat_status cleat_image_write_png_ids(const char *path, const cleat_image *image, const uint8_t *palette,
                                       cleat_error *error) {
    cleat_string bytes = {0};
    cleat_status status = encode_png(path, image, palette, &bytes, error);
    return status ? status : cleat_file_write_text(path, &bytes, error);
}

cleat_status cleat_png_write(const char *path, const uint8_t *pixels, int64_t height, int64_t width,
                             cleat_error *error) {
    if (!path || !pixels || height < 1 || width < 1 || height > CLEAT_IMAGE_MAX_PIXELS / width)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "a PNG file of %lld x %lld pixels; the maximum is %d",
                          (long long)height, (long long)width, CLEAT_IMAGE_MAX_PIXELS);
    cleat_image image = {.height = height, .width = width, .channels = 1, .pixels = (uint8_t *)pixels};
    return cleat_image_write_png(path, &image, error);
}
