/* Reader of IDX files, the format of MNIST (as described by LeCun), plain or compressed by gzip.
 *
 * Header: 0, 0, type (8: bytes), rank, then each size as 4 bytes, most significant first; the elements
 * follow. */
#include "data/image/images.h"
#include "platform/files.h"
#include "platform/text.h"

#include "core/files.h"
#include "core/memory.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

enum { MAX_RANK = 4, BYTES_TYPE = 8, GZIP_RATIO = 1032 };
enum { ROW_BYTES = sizeof(cleat_image_row) + 40 }; /* of an image in memory, with its name, without its pixels */

typedef struct idx {
    int rank;
    int64_t sizes[MAX_RANK]; /* [rank] */
    uint8_t *bytes;          /* as many as the product of the sizes */
} idx;

static cleat_status truncated(const char *path, cleat_error *error) {
    return cleat_fail(error, CLEAT_ERR_FORMAT, "%s: truncated: fewer bytes than its header declares; copy it again",
                      path);
}

/* Reads exactly `size` bytes. */
static cleat_status read_bytes(gzFile file, const char *path, uint8_t *bytes, int64_t size, cleat_error *error) {
    for (int64_t used = 0; used < size;) {
        int64_t left = size - used;
        int got = gzread(file, bytes + used, left < (1 << 24) ? (unsigned)left : 1u << 24), code = Z_OK;
        const char *text = gzerror(file, &code);
        if (got > 0) {
            used += got;
            continue;
        }
        if (got == 0 || code == Z_BUF_ERROR) return truncated(path, error);
        return cleat_fail(error, CLEAT_ERR_FORMAT, "%s: damaged: %s; copy it again", path, text);
    }
    return CLEAT_OK;
}

static cleat_status read_head(gzFile file, const char *path, int min_rank, int max_rank, idx *found,
                              cleat_error *error) {
    uint8_t head[4], size[4];
    cleat_status status = read_bytes(file, path, head, 4, error);
    if (status) return status;
    if (head[0] || head[1])
        return cleat_fail(error, CLEAT_ERR_FORMAT,
                          "%s: not an IDX file: it begins with %02x %02x instead of two zero bytes", path, head[0],
                          head[1]);
    if (head[2] != BYTES_TYPE)
        return cleat_fail(
            error, CLEAT_ERR_FORMAT,
            "%s: elements of type 0x%02x are not supported, only unsigned bytes, 0x08: write it again as bytes", path,
            head[2]);
    if (head[3] < min_rank || head[3] > max_rank)
        return cleat_fail(error, CLEAT_ERR_FORMAT, "%s: rank %d; labels have rank 1, grey images 3, colour images 4",
                          path, head[3]);
    found->rank = head[3];
    for (int i = 0; i < found->rank; ++i) {
        status = read_bytes(file, path, size, 4, error);
        if (status) return status;
        found->sizes[i] = (int64_t)size[0] << 24 | (int64_t)size[1] << 16 | (int64_t)size[2] << 8 | size[3];
    }
    return CLEAT_OK;
}

/* Upper bound for the number of bytes in a file: gzip compresses to no less than 1/1032. A header that
 * declares more is rejected before memory is allocated, including the memory of each image besides its pixels. */
static int64_t max_bytes(const char *path) {
    struct stat about;
    return stat(path, &about) == 0 ? (int64_t)about.st_size * GZIP_RATIO : 0;
}

static cleat_status count_bytes(const char *path, const idx *found, int64_t *bytes, cleat_error *error) {
    int64_t product = 1, most = max_bytes(path);
    for (int i = 0; i < found->rank; ++i) {
        if (found->sizes[i] == 0)
            return cleat_fail(error, CLEAT_ERR_FORMAT, "%s: size %d of %d is 0: the file is empty", path, i + 1,
                              found->rank);
        if (product > most / found->sizes[i]) return truncated(path, error);
        product *= found->sizes[i];
    }
    if (found->rank > 1 && found->sizes[0] > most / ROW_BYTES)
        return cleat_fail(
            error, CLEAT_ERR_FORMAT,
            "%s: %lld images, which take %lld MiB without their pixels, in a file of %lld KiB: it is nearly "
            "empty; is it the right file?",
            path, (long long)found->sizes[0], (long long)(found->sizes[0] * ROW_BYTES >> 20),
            (long long)(most / GZIP_RATIO >> 10));
    *bytes = product;
    return CLEAT_OK;
}

static cleat_status read_idx(const char *path, int min_rank, int max_rank, idx *out, cleat_error *error) {
    idx found = {0};
    int64_t bytes = 0;
    uint8_t more;
    gzFile file = gzopen(path, "rb");
    if (!file) return cleat_fail(error, CLEAT_ERR_IO, "%s: cannot open: %s", path, strerror(errno));
    gzbuffer(file, 1 << 17);
    cleat_status status = read_head(file, path, min_rank, max_rank, &found, error);
    if (!status) status = count_bytes(path, &found, &bytes, error);
    if (!status && !(found.bytes = cleat_alloc((size_t)bytes, 1)))
        status = cleat_fail(error, CLEAT_ERR_MEMORY, "%s: no memory for %lld bytes", path, (long long)bytes);
    if (!status) status = read_bytes(file, path, found.bytes, bytes, error);
    if (!status && gzread(file, &more, 1) > 0)
        status =
            cleat_fail(error, CLEAT_ERR_FORMAT, "%s: more bytes than the %lld its header declares; its sizes are wrong",
                       path, (long long)bytes);
    int code = Z_OK; /* the last read has also verified the checksum of a compressed file */
    const char *text = gzerror(file, &code);
    if (!status && code != Z_OK)
        status = code == Z_BUF_ERROR
                     ? truncated(path, error)
                     : cleat_fail(error, CLEAT_ERR_FORMAT, "%s: damaged: %s; copy it again", path, text);
    gzclose(file);
    if (!status)
        *out = found;
    else
        cleat_free(found.bytes);
    return status;
}

typedef struct part {
    const char *prefix;
    cleat_split split;
} part;

static const part parts[] = {
    {"train", CLEAT_SPLIT_TRAIN}, {"val", CLEAT_SPLIT_VAL}, {"t10k", CLEAT_SPLIT_TEST}, {"test", CLEAT_SPLIT_TEST}};

/* The only file whose name begins with PREFIX-KIND, or NULL. */
static cleat_status find_file(const char *folder, const cleat_name_list *listing, const char *prefix, const char *kind,
                              const char **name, cleat_error *error) {
    char start[32];
    int size = snprintf(start, sizeof start, "%s-%s", prefix, kind);
    *name = NULL;
    for (size_t i = 0; i < listing->count; ++i) {
        if (strncasecmp(listing->names[i], start, (size_t)size) != 0) continue;
        if (*name)
            return cleat_fail(error, CLEAT_ERR_ARGUMENT, "%s: both %s and %s may be the %s of the %s split; remove one",
                              folder, *name, listing->names[i], kind, prefix);
        *name = listing->names[i];
    }
    return CLEAT_OK;
}

static cleat_status same_sizes(const char *path, const idx *images, cleat_image_set *set, cleat_error *error) {
    int64_t height = images->sizes[1], width = images->sizes[2], channels = images->rank == 4 ? images->sizes[3] : 1;
    if (channels > CLEAT_IMAGE_MAX_CHANNELS)
        return cleat_fail(error, CLEAT_ERR_FORMAT,
                          "%s: %lld channels, the maximum is %d; rank 4 means count, rows, columns, channels", path,
                          (long long)channels, CLEAT_IMAGE_MAX_CHANNELS);
    if (height * width > CLEAT_IMAGE_MAX_PIXELS)
        return cleat_fail(error, CLEAT_ERR_FORMAT, "%s: images of %lld x %lld pixels are too large", path,
                          (long long)width, (long long)height);
    if (set->height && (set->height != height || set->width != width || set->channels != channels))
        return cleat_fail(error, CLEAT_ERR_FORMAT,
                          "%s: images of %lld x %lld x %lld, but those of the previous split have %lld x %lld x %lld; "
                          "all must have the same size",
                          path, (long long)height, (long long)width, (long long)channels, (long long)set->height,
                          (long long)set->width, (long long)set->channels);
    set->height = height;
    set->width = width;
    set->channels = channels;
    return CLEAT_OK;
}

static cleat_status add_images(const char *prefix, cleat_split split, const idx *images, const idx *labels,
                               cleat_image_set *set, cleat_error *error) {
    size_t bytes = (size_t)(set->height * set->width * set->channels);
    cleat_status status = CLEAT_OK;
    char id[64];
    for (int64_t i = 0; i < images->sizes[0] && !status; ++i) {
        snprintf(id, sizeof id, "%s-%05lld", prefix, (long long)i);
        status = cleat_image_set_add(set, id, images->bytes + (size_t)i * bytes,
                                     labels->bytes ? labels->bytes[i] : CLEAT_NO_CLASS, split, error);
    }
    return status;
}

static cleat_status read_part(const char *folder, const part *p, const char *image_name, const char *label_name,
                              cleat_image_set *set, cleat_error *error) {
    char image_path[CLEAT_FILE_PATH], label_path[CLEAT_FILE_PATH];
    idx images = {0}, labels = {0};
    if (!label_name && !set->options->predict)
        return cleat_fail(error, CLEAT_ERR_NOT_FOUND, "%s: %s has no label file %s-labels*", folder, image_name,
                          p->prefix);
    cleat_status status = cleat_path_join(folder, image_name, image_path, CLEAT_FILE_PATH, error);
    if (!status && label_name) status = cleat_path_join(folder, label_name, label_path, CLEAT_FILE_PATH, error);
    if (!status && label_name) status = read_idx(label_path, 1, 1, &labels, error);
    if (!status) status = read_idx(image_path, 3, 4, &images, error);
    if (!status) status = same_sizes(image_path, &images, set, error);
    if (!status && labels.bytes && labels.sizes[0] != images.sizes[0])
        status = cleat_fail(
            error, CLEAT_ERR_FORMAT,
            "%s has %lld images, but %s has %lld labels; the files do not belong together, or one is truncated",
            image_path, (long long)images.sizes[0], label_path, (long long)labels.sizes[0]);
    if (!status)
        status = cleat_image_set_add_block(set, images.bytes, error);
    else
        cleat_free(images.bytes);
    if (!status) status = add_images(p->prefix, p->split, &images, &labels, set, error);
    cleat_free(labels.bytes);
    return status;
}

cleat_status cleat_idx_open(const char *folder, cleat_image_set *set, bool *found, cleat_error *error) {
    cleat_name_list listing = {0};
    *found = false;
    cleat_status status = cleat_listing_read(folder, NULL, &listing, error);
    for (size_t i = 0; i < sizeof parts / sizeof *parts && !status; ++i) {
        const char *images = NULL, *labels = NULL;
        status = find_file(folder, &listing, parts[i].prefix, "images", &images, error);
        if (!status) status = find_file(folder, &listing, parts[i].prefix, "labels", &labels, error);
        if (status || !images) continue;
        if (set->parts[parts[i].split])
            status = cleat_fail(error, CLEAT_ERR_ARGUMENT, "%s: both t10k-images* and test-images* exist; remove one",
                                folder);
        if (!status) status = read_part(folder, &parts[i], images, labels, set, error);
        set->parts[parts[i].split] = *found = true;
    }
    cleat_name_list_free(&listing);
    if (status || !*found) return status;
    set->official_test = set->ordered = true;
    return cleat_image_set_number(set, error);
}
