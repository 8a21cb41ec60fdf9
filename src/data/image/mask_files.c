/* Finds images and masks in a folder, pairs them, and reads masks. */
#include "data/image/masks.h"
#include "platform/text.h"

#include "core/files.h"
#include "core/memory.h"
#include "data/common/faults.h"
#include "data/common/parallel.h"
#include "data/common/split_files.h"
#include "data/image/formats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WHITE = 128 };

void cleat_mask_set_free(cleat_mask_set *set) {
    for (size_t i = 0; i < set->count; ++i) {
        cleat_free(set->samples[i].name);
        cleat_free(set->samples[i].image);
        cleat_free(set->samples[i].mask);
    }
    cleat_free(set->samples);
    *set = (cleat_mask_set){0};
}

/* Converts [H, W, 3] to [H, W] if all colours are greys. */
cleat_status cleat_mask_to_grey(const char *path, cleat_image *mask, cleat_error *error) {
    uint8_t *p = mask->pixels;
    for (int64_t i = 0; i < mask->height * mask->width; ++i) {
        if (p[3 * i] != p[3 * i + 1] || p[3 * i] != p[3 * i + 2])
            return cleat_fail(error, CLEAT_ERR_FORMAT,
                              "%s: the mask has colours (%d %d %d at row %lld, column %lld); a mask must be grey (0 "
                              "for background, 255 for the mask) or, with data.classes, have a palette",
                              path, p[3 * i], p[3 * i + 1], p[3 * i + 2], (long long)(i / mask->width),
                              (long long)(i % mask->width));
    }
    cleat_image grey = {
        .height = mask->height, .width = mask->width, .channels = 1, .alpha = mask->alpha, .peak = mask->peak};
    cleat_status status = cleat_image_alloc(path, &grey, error);
    if (status) return status;
    for (int64_t i = 0; i < grey.height * grey.width; ++i) grey.pixels[i] = p[3 * i];
    cleat_image_free(mask);
    *mask = grey;
    return CLEAT_OK;
}

static cleat_status to_binary(const char *path, cleat_image *mask, cleat_error *error) {
    int64_t pixels = mask->height * mask->width, ones = 0;
    int most = mask->peak;
    for (int64_t i = 0; i < pixels; ++i) {
        if (!mask->peak) most = mask->pixels[i] > most ? mask->pixels[i] : most;
        mask->pixels[i] = mask->pixels[i] >= WHITE;
        ones += mask->pixels[i];
    }
    const int white = mask->peak ? UINT16_MAX : UINT8_MAX;
    if (mask->peak ? most == white : ones || !most) return CLEAT_OK; /* numbers of objects in 16 bits are not greys */
    return cleat_fail(
        error, CLEAT_ERR_FORMAT,
        "%s: the brightest pixel of the mask is %d, but white is %d, and the mask starts at half of that; "
        "if all above 0 is mask, rescale it (ImageMagick: " CLEAT_CONVERT " FILE -threshold 0 -depth 8 FILE); if "
        "the values are classes, set data.classes",
        path, most, white);
}

cleat_status cleat_mask_read(const char *path, cleat_image *mask, cleat_error *error) {
    cleat_image read = {0};
    cleat_status status = cleat_image_read(path, 0, &read, error);
    if (!status && read.channels == 3) status = cleat_mask_to_grey(path, &read, error);
    if (!status) status = to_binary(path, &read, error);
    if (!status)
        *mask = read;
    else
        cleat_image_free(&read);
    return status;
}

/* Length of the name without the suffix and the extension; 0: it has another suffix. */
static size_t stem_size(const char *name, const char *suffix) {
    const size_t size = strlen(name) - strlen(cleat_name_ending(name)), cut = strlen(suffix);
    return size > cut && strncmp(name + size - cut, suffix, cut) == 0 ? size - cut : 0;
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const cleat_mask_sample *)a)->name, ((const cleat_mask_sample *)b)->name);
}

static cleat_mask_sample *find(const cleat_mask_set *set, const char *name, size_t size) {
    char wanted[CLEAT_FILE_PATH];
    snprintf(wanted, sizeof wanted, "%.*s", (int)size, name);
    cleat_mask_sample key = {.name = wanted};
    return set->count ? bsearch(&key, set->samples, set->count, sizeof key, by_name) : NULL;
}

static cleat_status add_image(cleat_mask_set *set, const char *path, cleat_error *error) {
    cleat_status status = cleat_grow(&set->samples, set->count, &set->capacity, error);
    if (status) return status;
    const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
    cleat_mask_sample *sample = &set->samples[set->count++];
    *sample = (cleat_mask_sample){.name = cleat_strdup(file), .image = cleat_strdup(path), .split = CLEAT_SPLIT_TEST};
    if (!sample->name || !sample->image)
        return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the name %.40s", file);
    sample->name[strlen(file) - strlen(cleat_name_ending(file))] = 0;
    return CLEAT_OK;
}

/* Files with the suffix, unless it is "", are masks. */
static cleat_status add_images(const char *folder, const char *suffix, cleat_mask_set *set, cleat_error *error) {
    char path[CLEAT_FILE_PATH];
    cleat_name_list listing = {0};
    size_t skipped = 0;
    const char *first = NULL;
    cleat_status status = cleat_listing_read(folder, NULL, &listing, error);
    for (size_t i = 0; i < listing.count && !status; ++i) {
        const char *name = listing.names[i];
        if (*suffix && stem_size(name, suffix)) continue;
        if (!cleat_image_is_name(name)) {
            if (!skipped++) first = name;
            continue;
        }
        status = cleat_path_join(folder, name, path, CLEAT_FILE_PATH, error);
        if (!status) status = add_image(set, path, error);
    }
    if (!status && skipped)
        cleat_log(CLEAT_LOG_WARNING,
                  "%s: %zu files without the extension .png, .jpg, .jpeg, .tif or .tiff are ignored, the first is %s",
                  folder, skipped, first);
    cleat_name_list_free(&listing);
    if (!status && !set->count)
        status = cleat_fail(error, CLEAT_ERR_NOT_FOUND,
                            "%s: no images (.png, .jpg, .jpeg, .tif, .tiff) in this folder; convert others "
                            "(ImageMagick's mogrify -format png FILES)",
                            folder);
    return status;
}

/* Sorts by name; two images may not differ in their extensions only. */
static cleat_status sort_images(cleat_mask_set *set, cleat_error *error) {
    qsort(set->samples, set->count, sizeof *set->samples, by_name);
    for (size_t i = 1; i < set->count; ++i)
        if (by_name(&set->samples[i - 1], &set->samples[i]) == 0)
            return cleat_fail(error, CLEAT_ERR_FORMAT, "%s and %s: two images with the same name; delete or rename one",
                              set->samples[i - 1].image, set->samples[i].image);
    return CLEAT_OK;
}

/* The image whose name begins the name of a mask: "x" of "x_mask.png". NULL: none. */
static cleat_mask_sample *find_beginning(const cleat_mask_set *set, const char *name) {
    for (size_t size = strlen(name); size-- > 1;) {
        cleat_mask_sample *sample = strchr("_-. ", name[size]) ? find(set, name, size) : NULL;
        if (sample) return sample;
    }
    return NULL;
}

static cleat_status add_mask(const char *folder, const char *suffix, const char *name, cleat_mask_set *set,
                             cleat_error *error) {
    char path[CLEAT_FILE_PATH];
    cleat_status status = cleat_path_join(folder, name, path, CLEAT_FILE_PATH, error);
    if (status) return status;
    if (cleat_ends_in(name, ".jpg .jpeg"))
        return cleat_fail(error, CLEAT_ERR_FORMAT,
                          "%s: a JPEG mask has blurred edges; export it again as PNG or TIFF, or convert it", path);
    if (cleat_ends_in(name, ".gif"))
        return cleat_fail(error, CLEAT_ERR_FORMAT,
                          "%s: GIF masks are not read; convert them (ImageMagick's mogrify -format png *.gif)", path);
    cleat_mask_sample *sample = find(set, name, stem_size(name, suffix));
    if (!sample && (sample = find_beginning(set, name)))
        return cleat_fail(error, CLEAT_ERR_FORMAT, "%s: a mask has the name of its image: rename it to %s%s.png", path,
                          sample->name, suffix);
    if (!sample)
        return cleat_fail(error, CLEAT_ERR_FORMAT,
                          "%s: a mask without its image; add the image to images/, or delete the mask", path);
    if (sample->mask)
        return cleat_fail(error, CLEAT_ERR_FORMAT, "%s and %s: two masks with the same name; delete one", sample->mask,
                          path);
    sample->mask = cleat_strdup(path);
    return sample->mask ? CLEAT_OK : cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the name %.40s", name);
}

/* The suffix with which more names are those of images. */
static const char *find_suffix(const cleat_name_list *listing, const cleat_mask_set *set) {
    static const char usual[] = "_mask";
    size_t plain = 0, marked = 0;
    for (size_t i = 0; i < listing->count; ++i) {
        plain += find(set, listing->names[i], stem_size(listing->names[i], "")) != NULL;
        marked += find(set, listing->names[i], stem_size(listing->names[i], usual)) != NULL;
    }
    return marked > plain ? usual : "";
}

/* mixed: images are in the same folder; masks are the files with the suffix. */
static cleat_status add_masks(const char *folder, const char *suffix, bool mixed, cleat_mask_set *set,
                              cleat_faults *faults, cleat_error *error) {
    cleat_name_list listing = {0};
    size_t skipped = 0;
    cleat_error why;
    cleat_status status = cleat_listing_read(folder, NULL, &listing, error);
    if (!*suffix) suffix = find_suffix(&listing, set);
    if (!status && *suffix) cleat_log(CLEAT_LOG_INFO, "%s: the masks are NAME%s.png", folder, suffix);
    for (size_t i = 0; i < listing.count && !status; ++i) {
        const char *name = listing.names[i];
        if (mixed && !stem_size(name, suffix)) continue;
        if (!cleat_image_is_name(name) && !cleat_ends_in(name, ".gif"))
            ++skipped;
        else if (add_mask(folder, suffix, name, set, &why) != CLEAT_OK)
            status = cleat_faults_add(faults, &why, error);
    }
    cleat_name_list_free(&listing);
    if (!status && skipped)
        cleat_log(CLEAT_LOG_WARNING, "%s: %zu files without the extension .png, .tif or .tiff are ignored", folder,
                  skipped);
    for (size_t i = 0; i < set->count && !status; ++i) {
        if (set->samples[i].mask) continue;
        (void)cleat_fail(&why, CLEAT_ERR_FORMAT,
                         "%s: an image without its mask %s/%s%s.png; add the mask, or delete the image",
                         set->samples[i].image, folder, set->samples[i].name, suffix);
        status = cleat_faults_add(faults, &why, error);
    }
    return status;
}

/* Reads the sample's size and channels from the headers of its files. */
static cleat_status probe_sample(cleat_mask_sample *sample, cleat_error *error) {
    cleat_image image = {0}, mask = {0};
    cleat_status status = cleat_image_probe(sample->image, &image, error);
    if (!status && sample->mask) status = cleat_image_probe(sample->mask, &mask, error);
    if (status) return status;
    if (sample->mask && (mask.height != image.height || mask.width != image.width))
        return cleat_fail(error, CLEAT_ERR_FORMAT,
                          "%s: the mask has %lld x %lld pixels, but its image %s has %lld x %lld; export the mask "
                          "again at the size of the image",
                          sample->mask, (long long)mask.width, (long long)mask.height, sample->image,
                          (long long)image.width, (long long)image.height);
    sample->height = image.height;
    sample->width = image.width;
    sample->channels = image.channels;
    sample->alpha = image.alpha;
    return CLEAT_OK;
}

static cleat_status probe(void *user, size_t index, cleat_error *error) {
    return probe_sample(&((cleat_mask_set *)user)->samples[index], error);
}

/* For prediction: images that cannot be read are left out, unless there is only one. */
static cleat_status probe_or_skip(void *user, size_t index, cleat_error *error) {
    cleat_mask_set *set = user;
    cleat_mask_sample *sample = &set->samples[index];
    cleat_error why = {0};
    cleat_status status = probe_sample(sample, &why);
    sample->unreadable = set->count > 1 && cleat_image_skips(&why);
    return !status || sample->unreadable ? CLEAT_OK : cleat_fail(error, status, "%s", why.text);
}

static cleat_status set_splits(const char *folder, const cleat_image_options *options, cleat_mask_set *set,
                               cleat_faults *faults, cleat_error *error) {
    cleat_split *splits = cleat_alloc(set->count, sizeof *splits);
    const char **names = cleat_alloc(set->count, sizeof *names);
    cleat_status status =
        splits && names ? CLEAT_OK : cleat_fail(error, CLEAT_ERR_MEMORY, "%s: no memory for the samples", folder);
    for (size_t i = 0; i < set->count && names; ++i) names[i] = set->samples[i].name;
    if (!status)
        status = cleat_split_files_read(folder, names, set->count, options->val_fraction, options->test_fraction,
                                        &options->fold, splits, faults, error);
    for (size_t i = 0; i < set->count && !status; ++i) set->samples[i].split = splits[i];
    cleat_free(splits);
    cleat_free(names);
    return status;
}

static cleat_status find_pairs(const char *path, const char *suffix, const cleat_image_options *options,
                               cleat_mask_set *set, cleat_faults *faults, cleat_error *error) {
    char images[CLEAT_FILE_PATH], masks[CLEAT_FILE_PATH];
    if (!cleat_folder_exists(path))
        return cleat_fail(error, CLEAT_ERR_NOT_FOUND, "%s: the folder does not exist (data.path)", path);
    cleat_status status = cleat_path_join(path, "images", images, CLEAT_FILE_PATH, error);
    if (!status) status = cleat_path_join(path, "masks", masks, CLEAT_FILE_PATH, error);
    if (status) return status;
    const bool mixed = !cleat_folder_exists(masks), has_images = cleat_folder_exists(images);
    bool masked = false;
    if (mixed && !*suffix) suffix = "_mask";
    if (mixed) strcpy(masks, has_images ? images : path);
    if (mixed) strcpy(images, masks);
    if (mixed || has_images) status = add_images(images, mixed ? suffix : "", set, error);
    if (!status) status = sort_images(set, error);
    if (!status) status = add_masks(masks, suffix, mixed, set, faults, error);
    for (size_t i = 0; i < set->count; ++i) masked |= set->samples[i].mask != NULL;
    if ((!status || status == CLEAT_ERR_NOT_FOUND) && !masked && (mixed || !has_images))
        return cleat_fail(error, CLEAT_ERR_NOT_FOUND,
                          "%s: the folder %s is missing; images with masks are images/NAME.png (or .jpg, .tif) and "
                          "masks/NAME.png, masks/NAME_mask.png or images/NAME_mask.png (data.path, data.mask_suffix)",
                          path, has_images ? "masks/" : "images/");
    return status ? status : set_splits(path, options, set, faults, error);
}

/* One image, a folder of images, or a folder that contains images/. */
static cleat_status find_images(const char *path, const char *suffix, cleat_mask_set *set, cleat_error *error) {
    char images[CLEAT_FILE_PATH];
    cleat_status status = cleat_path_join(path, "images", images, CLEAT_FILE_PATH, error);
    if (status) return status;
    if (!cleat_folder_exists(path) && !cleat_file_exists(path))
        return cleat_fail(error, CLEAT_ERR_NOT_FOUND, "%s: no such file or folder (data.path)", path);
    if (cleat_file_exists(path)) return add_image(set, path, error);
    status = add_images(cleat_folder_exists(images) ? images : path, suffix, set, error);
    return status ? status : sort_images(set, error);
}

cleat_status cleat_mask_set_find(const char *path, const cleat_image_options *options, cleat_mask_set *set,
                                 cleat_error *error) {
    cleat_mask_set found = {0};
    cleat_faults faults = {0};
    const char *suffix = options->mask_suffix ? options->mask_suffix : "";
    cleat_status status = options->predict ? find_images(path, suffix, &found, error)
                                           : find_pairs(path, suffix, options, &found, &faults, error);
    if (!status)
        status = cleat_parallel_collect(found.count, options->predict ? probe_or_skip : probe, &found, &faults, error);
    if (!status) status = cleat_faults_report(&faults, error);
    size_t transparent = 0;
    for (size_t i = 0; i < found.count; ++i) transparent += found.samples[i].alpha;
    if (!status) cleat_image_log_alpha(path, transparent, found.count);
    if (!status)
        *set = found;
    else
        cleat_mask_set_free(&found);
    return status;
}
