/* Image files: recognizes the format and converts to the requested channels. */
#include "data/image/file.h"

#include "core/files.h"
#include "core/memory.h"
#include "data/image/formats.h"
#include "platform/files.h"
#include "platform/text.h"

#include <errno.h>
#include <string.h>

enum { PROBE_BYTES = 16384 };

bool cleat_image_is_name(const char *name) {
    return cleat_ends_in(name, ".png .jpg .jpeg .tif .tiff");
}

void cleat_image_free(cleat_image *image) {
    cleat_free(image->pixels);
    *image = (cleat_image){0};
}

cleat_status cleat_image_check_size(const char *name, int64_t height, int64_t width, cleat_error *error) {
    if (height < 1 || width < 1)
        return cleat_fail(error, CLEAT_ERR_FORMAT, "%s: an image of %lld x %lld pixels; remove it", name,
                          (long long)width, (long long)height);
    if (height > CLEAT_IMAGE_MAX_PIXELS / width)
        return cleat_fail(error, CLEAT_ERR_FORMAT, "%s: %lld x %lld pixels, the maximum is %d; reduce the image", name,
                          (long long)width, (long long)height, CLEAT_IMAGE_MAX_PIXELS);
    return CLEAT_OK;
}

cleat_status cleat_image_check_contents(const char *name, const cleat_image *image, size_t size, cleat_error *error) {
    const int64_t decoded = image->height * image->width * image->channels;
    if (decoded <= CLEAT_IMAGE_FREE_BYTES || decoded / CLEAT_IMAGE_MAX_RATIO <= (int64_t)size) return CLEAT_OK;
    return cleat_fail(
        error, CLEAT_ERR_FORMAT,
        "%s: %lld x %lld pixels of %lld bytes take %lld MiB, but the file has %zu KiB; above %d MiB a file "
        "must have at least 1/%d of that; reduce the image",
        name, (long long)image->width, (long long)image->height, (long long)image->channels, (long long)(decoded >> 20),
        size >> 10, CLEAT_IMAGE_FREE_BYTES >> 20, CLEAT_IMAGE_MAX_RATIO);
}

cleat_status cleat_image_alloc(const char *name, cleat_image *image, cleat_error *error) {
    image->pixels = cleat_alloc((size_t)(image->height * image->width), (size_t)image->channels);
    if (image->pixels) return CLEAT_OK;
    return cleat_fail(error, CLEAT_ERR_MEMORY, "%s: no memory for %lld x %lld pixels", name, (long long)image->width,
                      (long long)image->height);
}

void cleat_image_narrow(const uint16_t *wide, bool ids, cleat_image *image) {
    for (int64_t i = 0; i < image->height * image->width * image->channels; ++i) {
        if (wide[i] > image->peak) image->peak = wide[i], image->peak_at = i;
        image->pixels[i] = (uint8_t)(ids ? wide[i] : (wide[i] * 255u + 32895) >> 16);
    }
}

typedef enum image_format { PNG, JPEG, TIFF, OTHER } image_format;

typedef struct signature {
    const char *bytes;
    size_t size, at;
    image_format format;
    const char *name;
} signature;

static const signature signatures[] = {
    {"\x89PNG\r\n\x1a\n", 8, 0, PNG, "PNG"},
    {"\xff\xd8\xff", 3, 0, JPEG, "JPEG"},
    {"GIF8", 4, 0, OTHER, "GIF"},
    {"BM", 2, 0, OTHER, "BMP"},
    {"WEBP", 4, 8, OTHER, "WebP"},
    {"II*\0", 4, 0, TIFF, "TIFF"},
    {"MM\0*", 4, 0, TIFF, "TIFF"},
    {"II+\0", 4, 0, TIFF, "TIFF"},
    {"MM\0+", 4, 0, TIFF, "TIFF"},
    {"ftyp", 4, 4, OTHER, "HEIF"},
};

static cleat_status find_format(const char *path, const uint8_t *bytes, size_t size, image_format *found,
                                cleat_error *error) {
    if (!size) return cleat_fail(error, CLEAT_ERR_FORMAT, "%s: the file is empty; remove it", path);
    for (size_t i = 0; i < sizeof signatures / sizeof *signatures; ++i) {
        const signature *known = &signatures[i];
        if (size < known->at + known->size || memcmp(bytes + known->at, known->bytes, known->size) != 0) continue;
        if (known->format == OTHER)
            return cleat_fail(error, CLEAT_ERR_FORMAT,
                              "%s: %s files are not supported, only PNG, JPEG and TIFF: save it as one of them", path,
                              known->name);
        *found = known->format;
        return CLEAT_OK;
    }
    return cleat_fail(error, CLEAT_ERR_FORMAT, "%s: not an image: neither PNG nor JPEG nor TIFF; remove it", path);
}

static cleat_status probe_bytes(const char *path, const uint8_t *bytes, size_t size, cleat_image *image,
                                cleat_error *error) {
    image_format format = OTHER;
    cleat_status status = find_format(path, bytes, size, &format, error);
    if (status) return status;
    if (format == TIFF) return cleat_tiff_read(path, 0, false, image, error);
    return format == PNG ? cleat_png_probe(path, bytes, size, image, error)
                         : cleat_jpeg_probe(path, bytes, size, image, error);
}

void cleat_image_to_grey(const uint8_t *from, int64_t pixels, uint8_t *to) {
    for (int64_t i = 0; i < pixels; ++i, from += 3)
        to[i] = (uint8_t)((299u * from[0] + 587u * from[1] + 114u * from[2] + 500u) / 1000u);
}

void cleat_image_to_colour(const uint8_t *from, int64_t pixels, uint8_t *to) {
    for (int64_t i = 0; i < pixels; ++i, to += 3) to[0] = to[1] = to[2] = from[i];
}

static cleat_status convert(const char *path, int64_t channels, cleat_image *image, cleat_error *error) {
    if (channels == 0 || channels == image->channels) return CLEAT_OK;
    cleat_image other = {.height = image->height, .width = image->width, .channels = channels};
    cleat_status status = cleat_image_alloc(path, &other, error);
    if (status) return status;
    if (channels == 1)
        cleat_image_to_grey(image->pixels, image->height * image->width, other.pixels);
    else
        cleat_image_to_colour(image->pixels, image->height * image->width, other.pixels);
    cleat_image_free(image);
    *image = other;
    return CLEAT_OK;
}

cleat_status cleat_image_read_min_side(const char *path, int64_t channels, int64_t min_side, cleat_image *image,
                                       cleat_error *error) {
    image_format format = OTHER;
    char *data = NULL;
    size_t size = 0;
    cleat_image made = {0};
    if (channels != 0 && channels != 1 && channels != 3)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "%s: %lld channels; an image file has 1 (grey) or 3 (colour)",
                          path, (long long)channels);
    cleat_status status = cleat_file_read(path, &data, &size, error);
    if (status) return status;
    const uint8_t *bytes = (const uint8_t *)data;
    status = find_format(path, bytes, size, &format, error);
    if (!status)
        status = format == PNG    ? cleat_png_decode(path, bytes, size, &made, error)
                 : format == TIFF ? cleat_tiff_read(path, size, false, &made, error)
                                  : cleat_jpeg_decode(path, bytes, size, channels, min_side, &made, error);
    cleat_free(data);
    if (!status) status = convert(path, channels, &made, error);
    if (!status)
        *image = made;
    else
        cleat_image_free(&made);
    return status;
}

cleat_status cleat_image_read(const char *path, int64_t channels, cleat_image *image, cleat_error *error) {
    return cleat_image_read_min_side(path, channels, INT64_MAX, image, error);
}

cleat_status cleat_image_read_ids(const char *path, cleat_image *image, cleat_error *error) {
    image_format format = OTHER;
    char *data = NULL;
    size_t size = 0;
    cleat_status status = cleat_file_read(path, &data, &size, error);
    if (status) return status;
    status = find_format(path, (const uint8_t *)data, size, &format, error);
    if (!status && format == JPEG)
        status = cleat_fail(error, CLEAT_ERR_FORMAT,
                            "%s: not a PNG or TIFF file, whose values would be exact; export it again", path);
    if (!status)
        status = format == TIFF ? cleat_tiff_read(path, size, true, image, error)
                                : cleat_png_decode_ids(path, (const uint8_t *)data, size, image, error);
    cleat_free(data);
    return status;
}

/* Reads the first `size` bytes of the file, or fewer if it is shorter; their number is *used. */
static cleat_status read_beginning(const char *path, uint8_t *bytes, size_t size, size_t *used, cleat_error *error) {
    struct stat about;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* O_NONBLOCK, because a pipe would block */
    bool usable = file >= 0 && fstat(file, &about) == 0;
    if (!usable || !S_ISREG(about.st_mode)) {
        cleat_status status = !usable ? cleat_fail(error, errno == ENOENT ? CLEAT_ERR_NOT_FOUND : CLEAT_ERR_IO,
                                                   "%s: cannot open: %s", path, strerror(errno))
                                      : cleat_fail(error, CLEAT_ERR_IO, "%s: is not a regular file", path);
        if (file >= 0) close(file);
        return status;
    }
    ssize_t got = 1;
    for (*used = 0; *used < size && got > 0;) {
        got = read(file, bytes + *used, size - *used);
        if (got < 0 && errno == EINTR)
            got = 1;
        else if (got > 0)
            *used += (size_t)got;
    }
    cleat_status status =
        got < 0 ? cleat_fail(error, CLEAT_ERR_IO, "%s: cannot read: %s", path, strerror(errno)) : CLEAT_OK;
    close(file);
    return status;
}

cleat_status cleat_image_probe(const char *path, cleat_image *image, cleat_error *error) {
    uint8_t bytes[PROBE_BYTES];
    char *data = NULL;
    size_t size = 0;
    cleat_image made = {0};
    cleat_status status = read_beginning(path, bytes, sizeof bytes, &size, error);
    if (status) return status;
    status = probe_bytes(path, bytes, size, &made, error);
    if (status == CLEAT_ERR_FORMAT && size == sizeof bytes) { /* the sizes may be after a long comment */
        status = cleat_file_read(path, &data, &size, error);
        if (!status) status = probe_bytes(path, (const uint8_t *)data, size, &made, error);
        cleat_free(data);
    }
    if (!status) *image = made;
    return status;
}
