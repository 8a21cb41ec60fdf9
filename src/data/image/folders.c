/* Reader of folders of image files: class folders; train, val and test folders that contain class folders;
 * for prediction any folder, or one file. */
#include "data/image/images.h"
#include "platform/files.h"
#include "platform/text.h"

#include "core/files.h"
#include "core/memory.h"
#include "data/common/faults.h"
#include "data/common/parallel.h"

#include <stdio.h>
#include <string.h>

enum { DEEPEST = 16 };

/* A folder that is being read; linked to its parents. */
typedef struct place {
    const struct place *above;
    dev_t device;
    ino_t number;
    int depth;
    char path[CLEAT_FILE_PATH]; /* relative to the root; "" is the root */
} place;

typedef struct walk {
    cleat_image_set *set;
    size_t skipped;                 /* number of files without an image extension */
    char first[CLEAT_FILE_PATH];    /* the first of them */
    size_t outside;                 /* number of images outside of class folders */
    char outsider[CLEAT_FILE_PATH]; /* the first of them */
    cleat_faults faults;            /* class folders without images */
} walk;

cleat_split cleat_image_part_called(const char *name) {
    static const char *const words[CLEAT_SPLITS][4] = {
        {"train", "training"}, {"val", "valid", "validation", "dev"}, {"test", "testing"}};
    for (int split = 0; split < CLEAT_SPLITS; ++split)
        for (int i = 0; i < 4 && words[split][i]; ++i)
            if (strcasecmp(name, words[split][i]) == 0) return (cleat_split)split;
    return CLEAT_SPLITS;
}

static bool is_folder(const walk *w, const place *at, const char *name) {
    char below[CLEAT_FILE_PATH], path[CLEAT_FILE_PATH];
    return cleat_path_join(at->path, name, below, CLEAT_FILE_PATH, NULL) == CLEAT_OK &&
           cleat_path_join(w->set->root, below, path, CLEAT_FILE_PATH, NULL) == CLEAT_OK && cleat_folder_exists(path);
}

/* Enters a folder. A folder that contains the current one, reached through a link, is an error. */
static cleat_status enter(const walk *w, const place *above, const char *name, place *at, cleat_name_list *listing,
                          cleat_error *error) {
    char path[CLEAT_FILE_PATH];
    struct stat about;
    cleat_status status = cleat_path_join(above ? above->path : "", name, at->path, CLEAT_FILE_PATH, error);
    if (!status) status = cleat_path_join(w->set->root, at->path, path, CLEAT_FILE_PATH, error);
    if (status) return status;
    at->above = above;
    at->depth = above ? above->depth + 1 : 0;
    if (stat(path, &about) != 0) return cleat_fail(error, CLEAT_ERR_IO, "%s: cannot read the folder", path);
    at->device = about.st_dev;
    at->number = about.st_ino;
    for (const place *p = above; p; p = p->above)
        if (p->device == at->device && p->number == at->number)
            return cleat_fail(error, CLEAT_ERR_FORMAT, "%s: is a link to a parent folder; remove it", path);
    if (at->depth > DEEPEST)
        return cleat_fail(error, CLEAT_ERR_FORMAT, "%s: folders nested more than %d deep", path, DEEPEST);
    return cleat_listing_read(path, NULL, listing, error);
}

static cleat_status walk_folder(walk *w, const place *above, const char *name, int32_t label, cleat_split split,
                                cleat_error *error);

static cleat_status walk_class(walk *w, const place *above, const char *name, cleat_split split, cleat_error *error) {
    const cleat_image_options *options = w->set->options;
    char path[CLEAT_FILE_PATH], below[CLEAT_FILE_PATH];
    size_t before = w->set->n_rows;
    int32_t label;
    cleat_status status = cleat_path_join(above->path, name, below, CLEAT_FILE_PATH, error);
    if (!status) status = cleat_path_join(w->set->root, below, path, CLEAT_FILE_PATH, error);
    if (!status) status = cleat_image_set_name(w->set, name, path, &label, error);
    if (!status) status = walk_folder(w, above, name, label, split, error);
    if (status || w->set->n_rows > before) return status;
    if (split == CLEAT_SPLIT_TRAIN && !(options->fitted && *options->fitted)) {
        cleat_error why;
        (void)cleat_fail(&why, CLEAT_ERR_FORMAT,
                         "%s: no images in this class folder; add PNG, JPEG or TIFF files (convert others: "
                         "ImageMagick's mogrify -format png FILES), or remove the folder",
                         path);
        return cleat_faults_add(&w->faults, &why, error);
    }
    cleat_log(CLEAT_LOG_WARNING, "%s: no images in this class folder", path);
    return CLEAT_OK;
}

/* Adds all images in and below a folder with the label. CLEAT_NO_CLASS: it has class folders, and images beside them,
 * which are used for prediction only. */
static cleat_status walk_folder(walk *w, const place *above, const char *name, int32_t label, cleat_split split,
                                cleat_error *error) {
    const bool has_classes = label == CLEAT_NO_CLASS;
    place at;
    cleat_name_list listing = {0};
    char below[CLEAT_FILE_PATH];
    cleat_status status = enter(w, above, name, &at, &listing, error);
    for (size_t i = 0; i < listing.count && !status; ++i) {
        if (is_folder(w, &at, listing.names[i])) {
            status = has_classes ? walk_class(w, &at, listing.names[i], split, error)
                                 : walk_folder(w, &at, listing.names[i], label, split, error);
            continue;
        }
        status = cleat_path_join(at.path, listing.names[i], below, CLEAT_FILE_PATH, error);
        if (status) break;
        const bool is_image = cleat_image_is_name(listing.names[i]);
        if (!is_image && !w->skipped++) snprintf(w->first, sizeof w->first, "%s", below);
        if (!is_image) continue;
        if (!has_classes || w->set->options->predict)
            status = cleat_image_set_add(w->set, below, NULL, label, split, error);
        else if (!w->outside++)
            snprintf(w->outsider, sizeof w->outsider, "%s", below);
    }
    cleat_name_list_free(&listing);
    return status;
}

/* Whether a folder named like a split holds folders; one that holds only images may be a class of that
 * name. */
static bool holds_folders(const walk *w, const place *root, const char *name) {
    place at;
    cleat_name_list listing = {0};
    bool found = false;
    /* the walk will report the error */
    if (enter(w, root, name, &at, &listing, NULL) != CLEAT_OK) return true;
    for (size_t i = 0; i < listing.count && !found; ++i) found = is_folder(w, &at, listing.names[i]);
    cleat_name_list_free(&listing);
    return found;
}

static cleat_status find_parts(const walk *w, const place *root, const cleat_name_list *listing,
                               const char *parts[CLEAT_SPLITS], cleat_error *error) {
    bool any = false;
    for (size_t i = 0; i < listing->count; ++i)
        any |= cleat_image_part_called(listing->names[i]) != CLEAT_SPLITS && is_folder(w, root, listing->names[i]) &&
               holds_folders(w, root, listing->names[i]);
    for (size_t i = 0; any && i < listing->count; ++i) {
        cleat_split split = cleat_image_part_called(listing->names[i]);
        if (!is_folder(w, root, listing->names[i])) continue;
        if (split == CLEAT_SPLITS) {
            cleat_log(CLEAT_LOG_WARNING, "%s/%s: not a train, val or test folder; it is ignored", w->set->root,
                      listing->names[i]);
            continue;
        }
        if (parts[split])
            return cleat_fail(error, CLEAT_ERR_ARGUMENT, "%s: both %s and %s may be the %s split; remove one",
                              w->set->root, parts[split], listing->names[i], cleat_split_name(split));
        parts[split] = listing->names[i];
    }
    return CLEAT_OK;
}

static cleat_status walk_parts(walk *w, const place *root, const char *const parts[CLEAT_SPLITS], cleat_error *error) {
    const cleat_image_options *options = w->set->options;
    cleat_status status = CLEAT_OK;
    if (!parts[CLEAT_SPLIT_TRAIN] && !(options->fitted && *options->fitted))
        return cleat_fail(error, CLEAT_ERR_NOT_FOUND, "%s: no train folder besides %s; training is impossible",
                          w->set->root, parts[CLEAT_SPLIT_VAL] ? parts[CLEAT_SPLIT_VAL] : parts[CLEAT_SPLIT_TEST]);
    for (int split = 0; split < CLEAT_SPLITS && !status; ++split) {
        if (!parts[split]) continue;
        size_t before = w->set->n_rows;
        status = walk_folder(w, root, parts[split], CLEAT_NO_CLASS, (cleat_split)split, error);
        w->set->parts[split] = w->set->n_rows > before;
    }
    return status;
}

static cleat_status no_images(const char *root, cleat_error *error) {
    return cleat_fail(
        error, CLEAT_ERR_NOT_FOUND,
        "%s: no images with classes in this folder. Supported layouts: CLASS/NAME.png (or .jpg, .tif); "
        "train/CLASS/NAME.png "
        "with optional val/ and test/; train.csv with names and classes; IDX files train-images*, train-labels*; "
        "data_batch_*.bin of CIFAR-10",
        root);
}

/* Faults of class folders are reported with those of files. */
static cleat_status walk_root(walk *w, cleat_error *error) {
    const char *parts[CLEAT_SPLITS] = {NULL};
    place root;
    cleat_name_list listing = {0};
    cleat_status status = enter(w, NULL, "", &root, &listing, error);
    if (!status) status = find_parts(w, &root, &listing, parts, error);
    if (!status)
        status = parts[0] || parts[1] || parts[2] ? walk_parts(w, &root, parts, error)
                                                  : walk_folder(w, NULL, "", CLEAT_NO_CLASS, CLEAT_SPLIT_TRAIN, error);
    cleat_name_list_free(&listing);
    if (status) return status;
    if (!w->set->n_rows && !w->faults.count) return no_images(w->set->root, error);
    if (w->skipped)
        cleat_log(CLEAT_LOG_WARNING,
                  "%s: %zu files without the extension .png, .jpg, .jpeg, .tif or .tiff are ignored, the first is %s",
                  w->set->root, w->skipped, w->first);
    if (w->outside)
        cleat_log(CLEAT_LOG_WARNING, "%s: %zu images outside of class folders are ignored, the first is %s",
                  w->set->root, w->outside, w->outsider);
    return CLEAT_OK;
}

static cleat_status probe(void *user, size_t index, cleat_error *error) {
    cleat_image_set *set = user;
    cleat_image_row *row = &set->rows[index];
    if (row->unreadable) return CLEAT_OK;
    char path[CLEAT_FILE_PATH];
    cleat_image image = {0};
    cleat_error why = {0};
    cleat_status status = cleat_path_join(set->root, row->file ? row->file : row->id, path, CLEAT_FILE_PATH, &why);
    if (!status) status = cleat_image_probe(path, &image, &why);
    if (!status) row->channels = (uint8_t)image.channels;
    row->alpha = image.alpha;
    row->unreadable = set->options->predict && set->n_rows > 1 && cleat_image_skips(&why);
    if (!status || row->unreadable) return CLEAT_OK;
    return cleat_fail(error, status, "%s", why.text);
}

static void log_alpha(const cleat_image_set *set) {
    size_t transparent = 0;
    for (size_t i = 0; i < set->n_rows; ++i) transparent += set->rows[i].alpha;
    cleat_image_log_alpha(set->root, transparent, set->n_rows);
}

/* Adds one file; its folder becomes the root, its name the id. */
static cleat_status add_one(cleat_image_set *set, cleat_error *error) {
    char *slash = strrchr(set->root, '/');
    const char *name = slash ? slash + 1 : set->root;
    cleat_status status = cleat_image_set_add(set, name, NULL, CLEAT_NO_CLASS, CLEAT_SPLIT_TEST, error);
    if (status) return status;
    if (!slash)
        strcpy(set->root, ".");
    else
        slash[slash == set->root] = 0;
    return CLEAT_OK;
}

cleat_status cleat_image_set_probe(cleat_image_set *set, cleat_faults *faults, cleat_error *error) {
    cleat_status status = cleat_parallel_collect(set->n_rows, probe, set, faults, error);
    if (!status) status = cleat_faults_report(faults, error);
    if (!status) log_alpha(set);
    return status;
}

static cleat_status read_folder(cleat_image_set *set, cleat_error *error) {
    walk *w = cleat_alloc(1, sizeof *w);
    if (!w) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for reading a folder");
    w->set = set;
    cleat_status status = walk_root(w, error);
    if (!status) status = cleat_image_set_probe(set, &w->faults, error);
    cleat_free(w);
    return status;
}

cleat_status cleat_image_folders_open(const char *path, cleat_image_set *set, cleat_error *error) {
    if (!cleat_file_exists(path)) return read_folder(set, error);
    if (!set->options->predict)
        return cleat_fail(
            error, CLEAT_ERR_ARGUMENT,
            "%s: is a file; set data.path to the folder that contains it, or to a table of names and classes (.csv)",
            path);
    cleat_status status = add_one(set, error);
    if (!status) status = cleat_parallel(set->n_rows, probe, set, error);
    if (!status) log_alpha(set);
    return status;
}
