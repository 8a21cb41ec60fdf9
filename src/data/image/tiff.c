/* TIFF decoding with libtiff: grey and RGB of 1 to 16 bits, in strips or tiles, of any compression.
 *
 * Warnings of the decoders (a code that ends early, a line too short) leave pixels undefined; here they are errors. */
#include "data/image/formats.h"

#include "core/memory.h"

#include <stdio.h>
#include <string.h>
#include <tiffio.h>

typedef struct reader {
    const char *name;
    TIFF *tiff;
    bool ids, decodes; /* decodes: warnings are errors */
    char why[200];     /* the first message of the library */
    uint16_t bits, samples, photometric, planar, flip, factor;
    uint32_t rows, columns; /* of a strip or tile, with the bytes of a row of it */
    int64_t stride;
    uint8_t *chunk;
    uint16_t *wide; /* [H, W, C] */
    cleat_image image;
    cleat_error *error;
} reader;

#if TIFFLIB_VERSION >= 20221213
static int on_error(TIFF *tiff, void *user, const char *module, const char *format, va_list arguments) {
    reader *r = user;
    (void)tiff, (void)module;
    if (!*r->why) vsnprintf(r->why, sizeof r->why, format, arguments);
    return 1;
}

static int on_warning(TIFF *tiff, void *user, const char *module, const char *format, va_list arguments) {
    return ((reader *)user)->decodes ? on_error(tiff, user, module, format, arguments) : 1;
}

static void open_file(reader *r) {
    TIFFOpenOptions *options = TIFFOpenOptionsAlloc();
    if (!options) return;
    TIFFOpenOptionsSetErrorHandlerExtR(options, on_error, r);
    TIFFOpenOptionsSetWarningHandlerExtR(options, on_warning, r);
    r->tiff = TIFFOpenExt(r->name, "rm", options);
    TIFFOpenOptionsFree(options);
}
#else /* before 4.5 only the process has handlers: errors are known by their results, warnings are not */
static void open_file(reader *r) {
    TIFFSetErrorHandler(NULL);
    TIFFSetWarningHandler(NULL);
    r->tiff = TIFFOpen(r->name, "rm");
}
#endif

static cleat_status refuse(const reader *r, int number, const char *what) {
    return cleat_fail(r->error, CLEAT_ERR_FORMAT,
                      "%s: a TIFF file of %d %s is not read; write it as one page, grey or RGB (and alpha), of 8 or 16 "
                      "bits without sign (tifffile, ImageMagick)",
                      r->name, number, what);
}

static cleat_status damaged(const reader *r) {
    return cleat_fail(r->error, CLEAT_ERR_FORMAT, "%s: damaged or truncated TIFF file: %s; copy it again or remove it",
                      r->name, *r->why && !strstr(r->why, "4294967295") ? r->why : "its data end early");
}

/* Opens the first page that is no preview or mask of transparency. ImageJ writes a large stack as one page. */
static cleat_status select_page(reader *r) {
    const char *description = NULL;
    tdir_t first = 0;
    int pages = 0;
    do {
        uint32_t kind = 0;
        TIFFGetField(r->tiff, TIFFTAG_SUBFILETYPE, &kind);
        if (!(kind & (FILETYPE_REDUCEDIMAGE | FILETYPE_MASK)) && !pages++) first = TIFFCurrentDirectory(r->tiff);
    } while (TIFFReadDirectory(r->tiff));
    if (*r->why || TIFFCurrentDirOffset(r->tiff) || !TIFFSetDirectory(r->tiff, first)) return damaged(r);
    if (pages == 1 && TIFFGetField(r->tiff, TIFFTAG_IMAGEDESCRIPTION, &description) &&
        strncmp(description, "ImageJ=", 7) == 0 && (description = strstr(description, "images=")))
        sscanf(description, "images=%d", &pages);
    return pages > 1 ? refuse(r, pages, "pages (a stack)") : CLEAT_OK;
}

static cleat_status read_header(reader *r) {
    uint16_t compression = 0, format = SAMPLEFORMAT_UINT, extra = 0, *kinds = NULL;
    cleat_status status = select_page(r);
    if (status) return status;
    TIFFGetField(r->tiff, TIFFTAG_IMAGEWIDTH, &r->columns);
    TIFFGetField(r->tiff, TIFFTAG_IMAGELENGTH, &r->rows);
    TIFFGetFieldDefaulted(r->tiff, TIFFTAG_BITSPERSAMPLE, &r->bits);
    TIFFGetFieldDefaulted(r->tiff, TIFFTAG_SAMPLESPERPIXEL, &r->samples);
    TIFFGetFieldDefaulted(r->tiff, TIFFTAG_PLANARCONFIG, &r->planar);
    TIFFGetFieldDefaulted(r->tiff, TIFFTAG_COMPRESSION, &compression);
    TIFFGetField(r->tiff, TIFFTAG_SAMPLEFORMAT, &format);
    TIFFGetFieldDefaulted(r->tiff, TIFFTAG_EXTRASAMPLES, &extra, &kinds);
    if (!TIFFGetField(r->tiff, TIFFTAG_PHOTOMETRIC, &r->photometric)) r->photometric = PHOTOMETRIC_MINISBLACK;
    if (r->photometric == PHOTOMETRIC_YCBCR && compression == COMPRESSION_JPEG &&
        TIFFSetField(r->tiff, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB))
        r->photometric = PHOTOMETRIC_RGB;
    const int channels = r->photometric == PHOTOMETRIC_RGB ? 3 : 1, alpha = extra == 1 && *kinds;
    r->image = (cleat_image){.height = r->rows, .width = r->columns, .channels = channels, .alpha = alpha};
    if (format == SAMPLEFORMAT_IEEEFP) return refuse(r, r->bits, "bits, floating-point");
    if (format == SAMPLEFORMAT_INT) return refuse(r, r->bits, "bits, signed");
    if (r->photometric == PHOTOMETRIC_PALETTE) return refuse(r, r->bits, "bits with a palette");
    if (r->photometric > PHOTOMETRIC_RGB) return refuse(r, r->samples, "channels, CMYK or another kind of colours");
    if (!r->bits || r->bits > 16 || 16 % r->bits || format > SAMPLEFORMAT_VOID) return refuse(r, r->bits, "bits");
    if (r->samples != channels + alpha) return refuse(r, r->samples, "channels");
    if (r->ids && compression == COMPRESSION_JPEG) return refuse(r, r->bits, "bits, masks blurred by JPEG,");
    r->flip = r->photometric == PHOTOMETRIC_MINISWHITE && !r->ids ? (uint16_t)((1 << r->bits) - 1) : 0;
    r->factor = r->bits < 8 && !r->ids ? (uint16_t)(UINT8_MAX / ((1 << r->bits) - 1)) : 1;
    return cleat_image_check_size(r->name, r->rows, r->columns, r->error);
}

static uint16_t number_at(int bits, const void *row, int64_t i) {
    if (bits == 16) return ((const uint16_t *)row)[i];
    return (uint16_t)(((const uint8_t *)row)[i * bits / 8] >> (8 - bits - i * bits % 8) & ((1 << bits) - 1));
}

/* Reads the strip or tile at a place of the image. plane -1: its samples are those of all channels. */
static cleat_status read_chunk(reader *r, int64_t top, int64_t left, int plane) {
    const bool tiled = TIFFIsTiled(r->tiff);
    const int64_t height = r->image.height - top, rows = r->rows < height ? r->rows : height;
    const int64_t samples = plane < 0 ? r->samples : 1, channels = plane < 0 ? r->image.channels : 1;
    const uint16_t sample = (uint16_t)(plane < 0 ? 0 : plane);
    const tmsize_t got =
        tiled ? TIFFReadTile(r->tiff, r->chunk, (uint32_t)left, (uint32_t)top, 0, sample)
              : TIFFReadEncodedStrip(r->tiff, TIFFComputeStrip(r->tiff, (uint32_t)top, sample), r->chunk, -1);
    if (got < rows * r->stride || *r->why) return damaged(r);
    for (int64_t y = 0; y < rows; ++y)
        for (int64_t x = 0; x < r->columns && left + x < r->image.width; ++x)
            for (int64_t c = 0; c < channels; ++c)
                r->wide[((top + y) * r->image.width + left + x) * r->image.channels + sample + c] =
                    (uint16_t)((number_at(r->bits, r->chunk + y * r->stride, x * samples + c) ^ r->flip) * r->factor);
    return CLEAT_OK;
}

static cleat_status read_pixels(reader *r) {
    const bool tiled = TIFFIsTiled(r->tiff), apart = r->planar == PLANARCONFIG_SEPARATE;
    const int64_t height = r->image.height, width = r->image.width, most = height * width * 64 + (1 << 24);
    const int64_t size = tiled ? TIFFTileSize(r->tiff) : TIFFStripSize(r->tiff);
    cleat_status status = cleat_image_alloc(r->name, &r->image, r->error);
    if (status) return status;
    r->decodes = true;
    r->stride = tiled ? TIFFTileRowSize(r->tiff) : TIFFScanlineSize(r->tiff);
    TIFFGetField(r->tiff, tiled ? TIFFTAG_TILELENGTH : TIFFTAG_ROWSPERSTRIP, &r->rows);
    if (tiled) TIFFGetField(r->tiff, TIFFTAG_TILEWIDTH, &r->columns);
    if (size <= 0 || size > most || r->stride <= 0 || !r->rows || !r->columns) return damaged(r);
    r->chunk = cleat_alloc((size_t)size, 1);
    r->wide = cleat_alloc((size_t)(height * width), (size_t)r->image.channels * sizeof *r->wide);
    if (!r->chunk || !r->wide)
        return cleat_fail(r->error, CLEAT_ERR_MEMORY, "%s: no memory for reading a TIFF file", r->name);
    for (int plane = apart ? 0 : -1; plane < (apart ? r->image.channels : 0) && !status; ++plane)
        for (int64_t y = 0; y < height && !status; y += r->rows)
            for (int64_t x = 0; x < width && !status; x += r->columns) status = read_chunk(r, y, x, plane);
    if (!status) cleat_image_narrow(r->wide, r->ids || r->bits < 16, &r->image);
    if (r->bits < 16) r->image.peak = 0;
    return status;
}

cleat_status cleat_tiff_read(const char *path, size_t size, bool ids, cleat_image *image, cleat_error *error) {
    reader r = {.name = path, .ids = ids, .error = error};
    open_file(&r);
    cleat_status status = r.tiff ? read_header(&r) : damaged(&r);
    if (!status && size) status = cleat_image_check_contents(path, &r.image, size, error);
    if (!status && size) status = read_pixels(&r);
    if (r.tiff) TIFFClose(r.tiff);
    cleat_free(r.chunk);
    cleat_free(r.wide);
    if (status) cleat_image_free(&r.image);
    if (!status) *image = r.image;
    return status;
}
