/* Finds the tables of a folder of images, the column that names the files, and the file of each row. */
#include "data/image/table.h"

#include "core/files.h"
#include "core/memory.h"
#include "core/name_table.h"
#include "data/common/csv_stream.h"
#include "data/image/images.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { PATH_BYTES = CLEAT_IMAGE_TABLE_PATH, FIRST_ROWS = 20, MAX_FOLDERS = 64 };

bool cleat_image_is_table(const char *path) {
    const char *ending = cleat_name_ending(path);
    return strcasecmp(ending, ".csv") == 0 || strcasecmp(ending, ".tsv") == 0 || strcasecmp(ending, ".tab") == 0;
}

/* Appends the folders in a folder. */
static cleat_status list_folders(const char *folder, cleat_listing *folders, cleat_error *error) {
    cleat_listing all = {0};
    char path[PATH_BYTES];
    cleat_status status = cleat_listing_read(folder, NULL, &all, error);
    for (size_t i = 0; i < all.count && !status && folders->count < MAX_FOLDERS; ++i) {
        status = cleat_path_join(folder, all.names[i], path, sizeof path, error);
        if (!status && cleat_folder_exists(path))
            status = cleat_grow_names(&folders->names, &folders->count, &folders->capacity, all.names[i], error);
    }
    cleat_listing_free(&all);
    return status;
}

/* The split after which a table is called, or CLEAT_SPLITS. */
static cleat_split split_of(const char *path) {
    char stem[256];
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    snprintf(stem, sizeof stem, "%.*s", (int)(strlen(name) - strlen(cleat_name_ending(name))), name);
    return cleat_image_part_called(stem);
}

/* Whether there is a folder train/CLASS, or two that are not called like stores of images: train, png, test_images. */
static bool has_class_folders(const char *root) {
    static const char *const stores[] = {"train", "val", "test", "image", "img", "jpg", "jpeg", "png", "tif"};
    cleat_listing folders = {0}, below = {0};
    char path[PATH_BYTES];
    size_t classes = 0;
    (void)!list_folders(root, &folders, NULL);
    for (size_t i = 0; i < folders.count && !below.count; ++i) {
        bool store = false;
        for (size_t k = 0; k < sizeof stores / sizeof *stores; ++k)
            store |= strcasestr(folders.names[i], stores[k]) != 0;
        classes += !store;
        if (cleat_image_part_called(folders.names[i]) != CLEAT_SPLITS &&
            cleat_path_join(root, folders.names[i], path, sizeof path, NULL) == CLEAT_OK)
            (void)!list_folders(path, &below, NULL);
    }
    classes += 2 * below.count;
    cleat_listing_free(&folders);
    cleat_listing_free(&below);
    return classes >= 2;
}

cleat_status cleat_image_tables_find(const char *path, cleat_image_tables *tables, bool *found, cleat_error *error) {
    cleat_listing listing = {0};
    *tables = (cleat_image_tables){.guessed = cleat_folder_exists(path)};
    cleat_status status = cleat_path_join("", path, tables->folder, PATH_BYTES, error);
    if (!status && tables->guessed) status = cleat_listing_read(path, cleat_image_is_table, &listing, error);
    for (size_t i = 0; i < listing.count && !status; ++i) {
        const cleat_split split = split_of(listing.names[i]);
        if (split == CLEAT_SPLITS) continue;
        if (*tables->paths[split])
            status = cleat_fail(error, CLEAT_ERR_ARGUMENT,
                                "%s: both it and %s may be the table of the %s split; remove "
                                "one",
                                tables->paths[split], listing.names[i], cleat_split_name(split));
        else
            status = cleat_path_join(path, listing.names[i], tables->paths[split], PATH_BYTES, error);
    }
    if (!status && !tables->guessed) {
        char *slash = strrchr(tables->folder, '/');
        strcpy(tables->paths[CLEAT_SPLIT_TRAIN], tables->folder);
        strcpy(slash ? slash + (slash == tables->folder) : tables->folder, slash ? "" : ".");
    }
    if (!status) *found = *tables->paths[CLEAT_SPLIT_TRAIN] && !(tables->guessed && has_class_folders(path));
    cleat_listing_free(&listing);
    return status;
}

typedef struct table {
    const char *path, *root, *wanted; /* the column that the options name, or "" */
    const cleat_image_table_reader *reader;
    cleat_split split;
    bool predict;
    cleat_csv csv;
    cleat_listing folders;   /* of root; the first name is "" */
    size_t folder;           /* in which most images are */
    int column;              /* which names them */
    cleat_name_table *named; /* the files of all tables, with their lines */
} table;

/* Writes the path below the root of the image called `name` in a folder. */
static bool find_file(const table *t, size_t folder, const char *name, char file[PATH_BYTES]) {
    static const char *const endings[] = {"", ".jpg", ".jpeg", ".png", ".tif", ".tiff", ".JPG", ".PNG", ".TIF"};
    char below[PATH_BYTES], path[PATH_BYTES];
    if (!*name || cleat_path_join(t->folders.names[folder], name, below, sizeof below, NULL) != CLEAT_OK) return false;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; ++i)
        if ((size_t)snprintf(file, PATH_BYTES, "%s%s", below, endings[i]) < PATH_BYTES &&
            cleat_path_join(t->root, file, path, sizeof path, NULL) == CLEAT_OK && cleat_file_exists(path))
            return true;
    return false;
}

/* The table's own folder comes before one with the name of its split, and that before others: of test.csv, test_images
 * before train_images. */
static int rank_of(const table *t, size_t folder) {
    const cleat_split called = split_of(t->path);
    const char *word = cleat_split_name(called == CLEAT_SPLITS ? t->split : called);
    return folder == 0 ? 2 : strncasecmp(t->folders.names[folder], word, strlen(word)) == 0;
}

/* counts [folders, columns]: the first rows that name a file. */
static cleat_status choose(table *t, const uint8_t *counts, size_t columns, cleat_error *error) {
    int best = 0;
    size_t rival = 0;
    for (size_t i = 0; i < t->folders.count * columns; ++i) {
        const int score = counts[i] ? 4 * counts[i] + rank_of(t, i / columns) : 0;
        if (score == best && i / columns != t->folder) rival = i / columns;
        if (score <= best) continue;
        best = score;
        rival = 0;
        t->folder = i / columns;
        t->column = (int)(i % columns);
    }
    if (!best)
        return cleat_fail(
            error, CLEAT_ERR_NOT_FOUND,
            "%s: no %s of its first %d rows names files in %s or its folders (also with .jpg, .jpeg, .png, "
            ".tif, .tiff); set data.image_column to the column of file names, and data.image_folder to the "
            "folder of the images",
            t->path, *t->wanted ? "value of data.image_column" : "column", FIRST_ROWS, t->root);
    if (!rival) return CLEAT_OK;
    return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                      "%s: %s/%s and %s/%s both have the images that its first rows name; set data.image_folder to the "
                      "right one",
                      t->path, t->root, t->folders.names[t->folder], t->root, t->folders.names[rival]);
}

/* Reads the first rows; the second pass reports bad ones. */
static cleat_status find_column(table *t, cleat_error *error) {
    cleat_csv_stream stream;
    char file[PATH_BYTES];
    int only = -1;
    cleat_status status = cleat_csv_stream_open(t->path, &stream, error);
    if (status) return status;
    const size_t columns = stream.csv.expected;
    uint8_t *counts = cleat_alloc(t->folders.count * columns, 1);
    if (!counts) status = cleat_fail(error, CLEAT_ERR_MEMORY, "%s: no memory for its columns", t->path);
    if (!status && *t->wanted) status = cleat_csv_need_column(&stream.csv, t->wanted, &only, error);
    if (status && counts) status = cleat_fail_in(error, status, "data.image_column");
    bool more = !status;
    for (int row = 0; row < FIRST_ROWS && more; ++row) {
        more = cleat_csv_stream_next(&stream, &more, NULL) == CLEAT_OK && more;
        for (size_t i = 0; more && i < t->folders.count * columns; ++i)
            if (only < 0 || (size_t)only == i % columns)
                counts[i] += find_file(t, i / columns, stream.csv.fields[i % columns], file);
    }
    if (!status) status = choose(t, counts, columns, error);
    cleat_free(counts);
    cleat_csv_stream_close(&stream);
    return status;
}

/* *found: in the folder of most images, or in one other. */
static cleat_status find_image(const table *t, const char *name, char file[PATH_BYTES], bool *found,
                               cleat_error *error) {
    char other[PATH_BYTES];
    const bool usual = find_file(t, t->folder, name, file);
    *found = usual;
    for (size_t i = 0; i < t->folders.count && !usual; ++i) {
        if (!find_file(t, i, name, *found ? other : file)) continue;
        if (*found)
            return cleat_csv_fail(&t->csv, error, "both %s and %s in %s may be '%.60s'; write the folder in the table",
                                  file, other, t->root, name);
        *found = true;
    }
    return CLEAT_OK;
}

static cleat_status add_row(void *user, cleat_error *error) {
    table *t = user;
    char file[PATH_BYTES];
    const char *name = t->csv.fields[t->column];
    bool found = false;
    uint32_t before = 0;
    cleat_status status = find_image(t, name, file, &found, error);
    if (status) return status;
    if (found && cleat_name_table_find(t->named, file, &before))
        return cleat_csv_fail(&t->csv, error, "%s is named a second time, first in line %u%s; remove one of the rows",
                              file, (unsigned)(before >> 2), (before & 3) == t->split ? "" : " of another table");
    if (found) status = cleat_name_table_add(t->named, file, (uint32_t)t->csv.line << 2 | t->split, error);
    if (!found)
        status = cleat_csv_fail(&t->csv, error, "no image '%.100s' in %s and its folders; add it, or remove the row",
                                name, t->root);
    if (status && !(t->predict && cleat_image_skips(error))) return status;
    return t->reader->row(t->reader->user, &t->csv, name, found ? file : NULL, t->split, error);
}

static cleat_status read_table(table *t, cleat_faults *faults, cleat_error *error) {
    bool skip = false;
    cleat_status status = cleat_csv_open(t->path, &t->csv, error);
    if (status) return status;
    status = t->reader->begin(t->reader->user, &t->csv, t->split, &skip, error);
    if (!status && !skip) status = find_column(t, error);
    if (!status && !skip) {
        cleat_log(CLEAT_LOG_INFO, "%s: the column '%s' names the images, in %s%s%s", t->path, t->csv.fields[t->column],
                  t->root, t->folder ? "/" : "", t->folders.names[t->folder]);
        status = cleat_csv_each(&t->csv, add_row, t, faults, error);
    }
    cleat_csv_close(&t->csv);
    return status;
}

cleat_status cleat_image_tables_read(const cleat_image_tables *tables, const cleat_image_options *options,
                                     const cleat_image_table_reader *reader, char root[PATH_BYTES],
                                     cleat_faults *faults, cleat_error *error) {
    const char *wanted = options->image_folder ? options->image_folder : "";
    cleat_name_table named = {0};
    cleat_listing folders = {0};
    cleat_status status = cleat_path_join(tables->folder, wanted, root, PATH_BYTES, error);
    if (!status && !cleat_folder_exists(root) && !cleat_folder_exists(wanted))
        status = cleat_fail(error, CLEAT_ERR_NOT_FOUND,
                            "data.image_folder = %.200s: no such folder in %s or in the current folder", wanted,
                            tables->folder);
    if (!status && !cleat_folder_exists(root)) status = cleat_path_join("", wanted, root, PATH_BYTES, error);
    if (!status) status = cleat_grow_names(&folders.names, &folders.count, &folders.capacity, "", error);
    if (!status) status = list_folders(root, &folders, error);
    for (int split = 0; split < CLEAT_SPLITS && !status; ++split) {
        table t = {.path = tables->paths[split], .root = root, .reader = reader, .split = (cleat_split)split};
        t.wanted = options->image_column ? options->image_column : "";
        t.predict = options->predict;
        t.folders = folders;
        t.named = &named;
        if (*t.path) status = read_table(&t, faults, error);
    }
    cleat_listing_free(&folders);
    cleat_name_table_free(&named);
    return status;
}
