/* JPEG decoding with libjpeg or libjpeg-turbo.
 *
 * The library reports errors by longjmp: each call is inside a function that calls setjmp. Conditions that
 * the library treats as warnings (premature end of file, invalid codes) would leave grey or shifted pixels;
 * here they are errors. */
#include "data/image/formats.h"

#include <setjmp.h>
#include <stdio.h>

#include <jpeglib.h>

/* After jpeglib.h, which defines JPEG_LIB_VERSION: codes of messages depend on it (Ubuntu has version 80). */
#include <jerror.h>

typedef struct reader {
    struct jpeg_error_mgr manager; /* first, because the library passes this pointer back */
    jmp_buf jump;
    const char *name;
    cleat_error *error;
    cleat_status status;
    struct jpeg_decompress_struct jpeg;
    struct jpeg_progress_mgr progress;
    cleat_image image;
} reader;

static void on_error(j_common_ptr jpeg) {
    reader *r = (reader *)jpeg->err;
    char text[JMSG_LENGTH_MAX];
    jpeg->err->format_message(jpeg, text);
    bool ended = jpeg->err->msg_code == JWRN_JPEG_EOF;
    if (jpeg->err->msg_code == JERR_OUT_OF_MEMORY) {
        r->status = cleat_fail(r->error, CLEAT_ERR_MEMORY, "%s: no memory for reading a JPEG file", r->name);
        longjmp(r->jump, 1);
    }
    r->status = cleat_fail(r->error, CLEAT_ERR_FORMAT, "%s: %s: %s; copy it again or remove it", r->name,
                           ended ? "truncated" : "damaged JPEG file", text);
    longjmp(r->jump, 1);
}

/* Warnings about unusual metadata, or about extra bytes before the end marker; the pixels are complete. */
static bool is_harmless(const struct jpeg_error_mgr *message) {
    bool behind_pixels = message->msg_code == JWRN_EXTRANEOUS_DATA && message->msg_parm.i[1] == JPEG_EOI;
    return behind_pixels || message->msg_code == JWRN_ADOBE_XFORM || message->msg_code == JWRN_JFIF_MAJOR;
}

static void on_message(j_common_ptr jpeg, int level) {
    if (level < 0 && !is_harmless(jpeg->err)) on_error(jpeg);
}

static void no_output(j_common_ptr jpeg) {
    (void)jpeg;
}

static bool fails(cleat_status status, reader *r) {
    r->status = status;
    return status != CLEAT_OK;
}

/* A scan of a progressive file may have only a few bytes, but all pixels are decoded for it. The library sets
 * no limit; its authors advise one. Encoders write 3 to 20 scans, or 192 with one per coefficient; an image
 * of 2^28 pixels may have 32. */
static void on_progress(j_common_ptr jpeg) {
    enum { MAX_SCANS = 500 };
    static const int64_t max_pixels = INT64_C(1) << 33; /* of all scans: seconds */
    reader *r = (reader *)jpeg->err;
    const int64_t scans = r->jpeg.input_scan_number, pixels = (int64_t)r->jpeg.image_height * r->jpeg.image_width;
    if (scans <= MAX_SCANS && scans * pixels <= max_pixels) return;
    r->status =
        cleat_fail(r->error, CLEAT_ERR_FORMAT,
                   "%s: more than %lld scans of %lld x %lld pixels, which no encoder writes; remove it, or write it "
                   "again, not interlaced",
                   r->name, (long long)scans - 1, (long long)r->image.width, (long long)r->image.height);
    longjmp(r->jump, 1);
}

static bool read_header(reader *r, const uint8_t *bytes, size_t size) {
    if (setjmp(r->jump)) return false;
    jpeg_create_decompress(&r->jpeg);
    r->jpeg.progress = &r->progress;
    jpeg_mem_src(&r->jpeg, bytes, (unsigned long)size);
    jpeg_read_header(&r->jpeg, TRUE);
    r->image.height = r->jpeg.image_height;
    r->image.width = r->jpeg.image_width;
    r->image.channels = r->jpeg.jpeg_color_space == JCS_GRAYSCALE ? 1 : 3;
    if (r->jpeg.jpeg_color_space == JCS_CMYK || r->jpeg.jpeg_color_space == JCS_YCCK)
        return !fails(cleat_fail(r->error, CLEAT_ERR_FORMAT,
                                 "%s: CMYK colours (for print) are not supported; convert it to RGB", r->name),
                      r);
    if (r->jpeg.num_components != r->image.channels)
        return !fails(cleat_fail(r->error, CLEAT_ERR_FORMAT,
                                 "%s: a JPEG file of %d channels; only grey and colour are supported: convert it",
                                 r->name, r->jpeg.num_components),
                      r);
    return !fails(cleat_image_check_size(r->name, r->image.height, r->image.width, r->error), r);
}

/* The largest of 1, 2, 4, 8 by which the shorter side can be divided and remain at least min_side. */
static unsigned reduction(const cleat_image *image, int64_t min_side) {
    int64_t side = image->height < image->width ? image->height : image->width;
    unsigned by = 1;
    while (by < 8 && min_side > 0 && side / (by * 2) >= min_side) by *= 2;
    return by;
}

static bool start_pixels(reader *r, int64_t channels, int64_t min_side) {
    if (setjmp(r->jump)) return false;
    r->image.channels = channels ? channels : r->image.channels;
    r->jpeg.out_color_space = r->image.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    r->jpeg.scale_num = 1;
    r->jpeg.scale_denom = reduction(&r->image, min_side);
    jpeg_start_decompress(&r->jpeg);
    r->image.height = r->jpeg.output_height;
    r->image.width = r->jpeg.output_width;
    return true;
}

static bool read_rows(reader *r) {
    if (setjmp(r->jump)) return false;
    size_t stride = (size_t)(r->image.width * r->image.channels);
    while (r->jpeg.output_scanline < r->jpeg.output_height) {
        JSAMPROW row = r->image.pixels + r->jpeg.output_scanline * stride;
        jpeg_read_scanlines(&r->jpeg, &row, 1);
    }
    jpeg_finish_decompress(&r->jpeg);
    return true;
}

static void begin(reader *r) {
    r->jpeg.err = jpeg_std_error(&r->manager);
    r->manager.error_exit = on_error;
    r->manager.emit_message = on_message;
    r->manager.output_message = no_output;
    r->progress.progress_monitor = on_progress;
}

cleat_status cleat_jpeg_decode(const char *name, const uint8_t *bytes, size_t size, int64_t channels, int64_t min_side,
                               cleat_image *image, cleat_error *error) {
    reader r = {.name = name, .error = error};
    begin(&r);
    bool done = read_header(&r, bytes, size) && !fails(cleat_image_check_contents(name, &r.image, size, error), &r) &&
                start_pixels(&r, channels, min_side) && !fails(cleat_image_alloc(name, &r.image, error), &r) &&
                read_rows(&r);
    jpeg_destroy_decompress(&r.jpeg);
    if (done)
        *image = r.image;
    else
        cleat_image_free(&r.image);
    return r.status;
}

cleat_status cleat_jpeg_probe(const char *name, const uint8_t *bytes, size_t size, cleat_image *image,
                              cleat_error *error) {
    reader r = {.name = name, .error = error};
    begin(&r);
    bool done = read_header(&r, bytes, size);
    jpeg_destroy_decompress(&r.jpeg);
    if (done) *image = r.image;
    return r.status;
}
