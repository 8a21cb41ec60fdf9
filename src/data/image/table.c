/* Finds the tables of a folder of images, the column that names the files, and the file of each row. */
#include "data/image/images.h"

#include "core/files.h"
#include "core/memory.h"
#include "core/name_table.h"
#include "data/common/csv_stream.h"
#include "platform/text.h"

#include <stdio.h>
#include <string.h>

enum { FIRST_ROWS = 20, MAX_FOLDERS = 64 };

bool cleat_image_is_table(const char *path) {
    return cleat_ends_in(path, ".csv .tsv .tab");
}

/* Appends the folders in a folder. */
static cleat_status list_folders(const char *folder, cleat_name_list *folders, cleat_error *error) {
    cleat_name_list all = {0};
    char path[CLEAT_FILE_PATH];
    cleat_status status = cleat_listing_read(folder, NULL, &all, error);
    for (size_t i = 0; i < all.count && !status && folders->count < MAX_FOLDERS; ++i) {
        status = cleat_path_join(folder, all.names[i], path, sizeof path, error);
        if (!status && cleat_folder_exists(path)) status = cleat_name_list_add(folders, all.names[i], error);
    }
    cleat_name_list_free(&all);
    return status;
}

/* The split after which a table is called, or CLEAT_SPLITS. */
static cleat_split split_of(const char *path) {
    char stem[256];
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    snprintf(stem, sizeof stem, "%.*s", (int)(strlen(name) - strlen(cleat_name_ending(name))), name);
    return cleat_image_part_called(stem);
}

/* Two folders that are not called like stores of images (train, png, test_images), or a folder in a store. */
static bool has_class_folders(const char *root) {
    static const char *const stores[] = {"train", "val", "test", "image", "img", "jpg", "jpeg", "png", "tif"};
    cleat_name_list folders = {0};
    char path[CLEAT_FILE_PATH];
    size_t classes = 0;
    (void)!list_folders(root, &folders, NULL);
    for (size_t i = 0; i < folders.count; ++i) {
        cleat_name_list below = {0};
        bool store = false;
        for (size_t k = 0; k < sizeof stores / sizeof *stores; ++k) store |= !!strcasestr(folders.names[i], stores[k]);
        if (store && cleat_path_join(root, folders.names[i], path, sizeof path, NULL) == CLEAT_OK)
            (void)!list_folders(path, &below, NULL);
        classes += store ? 2 * below.count : 1;
        cleat_name_list_free(&below);
    }
    cleat_name_list_free(&folders);
    return classes >= 2;
}

typedef struct image_tables {
    char folder[CLEAT_FILE_PATH], paths[CLEAT_SPLITS][CLEAT_FILE_PATH]; /* "": none */
    bool guessed;                                                       /* by their names in a folder */
} image_tables;

/* `path` is the training table, or a folder of tables called train, val (valid, validation, dev) and test. *found:
 * there is a train table, and there are no folders of classes. */
static cleat_status find_tables(const char *path, image_tables *tables, bool *found, cleat_error *error) {
    cleat_name_list listing = {0};
    *tables = (image_tables){.guessed = cleat_folder_exists(path)};
    cleat_status status = cleat_path_join("", path, tables->folder, CLEAT_FILE_PATH, error);
    if (!status && tables->guessed) status = cleat_listing_read(path, cleat_image_is_table, &listing, error);
    for (size_t i = 0; i < listing.count && !status; ++i) {
        const cleat_split split = split_of(listing.names[i]);
        if (split == CLEAT_SPLITS) continue;
        if (*tables->paths[split])
            status = cleat_fail(error, CLEAT_ERR_ARGUMENT, "%s and %s: two %s tables; remove one", tables->paths[split],
                                listing.names[i], cleat_split_name(split));
        else
            status = cleat_path_join(path, listing.names[i], tables->paths[split], CLEAT_FILE_PATH, error);
    }
    if (!status && !tables->guessed) {
        strcpy(tables->paths[CLEAT_SPLIT_TRAIN], tables->folder);
        cleat_path_split(path, tables->folder, CLEAT_FILE_PATH);
    }
    if (!status) *found = *tables->paths[CLEAT_SPLIT_TRAIN] && !(tables->guessed && has_class_folders(path));
    cleat_name_list_free(&listing);
    return status;
}

typedef struct classes {
    cleat_image_set *set;
    image_tables tables;
    cleat_faults faults;
    char root[CLEAT_FILE_PATH], place[CLEAT_FILE_PATH + 32];
    int column;             /* -1: no classes, or targets */
    int group;              /* column; -1: none */
    cleat_name_table known; /* names of classes and their indices */
} classes;

static const char *class_column(const cleat_image_options *options) {
    return options->label_column && *options->label_column ? options->label_column : "label";
}

/* Finds the columns of the targets in the header, the current record. A competition's test table has no classes: *skip
 * ignores it. */
static cleat_status find_class_column(classes *c, const cleat_csv *csv, cleat_split split, bool *skip,
                                      cleat_error *error) {
    const cleat_image_options *options = c->set->options;
    const char *name = class_column(options);
    cleat_targets *targets = &c->set->targets;
    c->column = -1;
    cleat_status status = targets->options.problem ? cleat_targets_find(targets, csv, name, error)
                                                   : cleat_csv_need_column(csv, name, &c->column, error);
    const bool lacks = status && cleat_csv_column(csv, name) < 0;
    if (status) targets->n_columns = 0;
    *skip = lacks && !options->predict && c->tables.guessed && split == CLEAT_SPLIT_TEST;
    if (*skip) cleat_log(CLEAT_LOG_WARNING, "%s: has no column '%s' and is ignored", csv->source.path, name);
    c->set->parts[split] = !*skip;
    const bool groups = options->fold.count && options->fold_column && *options->fold_column && !*skip;
    const bool is_new = split != CLEAT_SPLIT_TEST && !(options->fitted && *options->fitted); /* may lack the column */
    c->group = groups ? cleat_csv_column(csv, options->fold_column) : -1;
    if (groups && is_new && cleat_csv_need_column(csv, options->fold_column, &c->group, error) != CLEAT_OK)
        return cleat_fail_in(error, CLEAT_ERR_FORMAT, "data.fold_column");
    if (*skip || (lacks && options->predict)) return CLEAT_OK;
    return status ? cleat_fail_in(error, status, "data.label_column") : CLEAT_OK;
}

/* id: the image's name in the table; file: its path below c->root, NULL: missing (prediction). */
static cleat_status add_class(classes *c, const cleat_csv *csv, const char *id, const char *file, cleat_split split,
                              cleat_error *error) {
    const char *name = c->column < 0 ? "" : csv->fields[c->column];
    const bool has_targets = c->set->targets.options.problem != CLEAT_SINGLE_LABEL;
    const bool blank = !name[strspn(name, " \t")];
    int32_t label = CLEAT_NO_CLASS;
    uint32_t index = 0;
    cleat_status status = CLEAT_OK;
    if (has_targets && !c->set->options->predict) status = cleat_targets_add(&c->set->targets, csv, error);
    if (blank && !has_targets && !c->set->options->predict)
        return cleat_csv_fail(csv, error, "the class is empty; fill it in, or remove the row");
    if (!blank && cleat_name_table_find(&c->known, name, &index)) {
        label = (int32_t)index;
    } else if (!blank) {
        snprintf(c->place, sizeof c->place, "%s:%zu", csv->source.path, csv->line);
        status = cleat_image_set_name(c->set, name, c->place, &label, error);
        if (!status) status = cleat_name_table_add(&c->known, name, (uint32_t)label, error);
    }
    if (!status) status = cleat_image_set_add(c->set, id, NULL, label, split, error);
    if (status) return status;
    cleat_image_row *added = &c->set->rows[c->set->n_rows - 1];
    added->unreadable = !file;
    if ((file && strcmp(file, id) != 0 && !(added->file = cleat_strdup(file))) ||
        (c->group >= 0 && !(added->group = cleat_strdup(csv->fields[c->group]))))
        status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the name %.60s", id);
    return status;
}

typedef struct table {
    classes *of;
    const char *path, *root;
    const cleat_image_options *options;
    cleat_split split;
    cleat_csv csv;
    cleat_name_list folders; /* of root; the first name is "" */
    size_t folder;           /* in which most images are */
    int column;              /* which names them */
    cleat_name_table *named; /* the files of all tables, with their lines */
} table;

/* Writes the path below the root of the image called `name` in a folder. */
static bool find_file(const table *t, size_t folder, const char *name, char file[CLEAT_FILE_PATH]) {
    static const char *const endings[] = {"", ".jpg", ".jpeg", ".png", ".tif", ".tiff", ".JPG", ".PNG", ".TIF"};
    char below[CLEAT_FILE_PATH], path[CLEAT_FILE_PATH];
    if (!*name || cleat_path_join(t->folders.names[folder], name, below, sizeof below, NULL) != CLEAT_OK) return false;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; ++i)
        if ((size_t)snprintf(file, CLEAT_FILE_PATH, "%s%s", below, endings[i]) < CLEAT_FILE_PATH &&
            cleat_path_join(t->root, file, path, sizeof path, NULL) == CLEAT_OK && cleat_file_exists(path))
            return true;
    return false;
}

/* The table's own folder comes first, then one with the name of its split: of test.csv, test_images. */
static int rank_of(const table *t, size_t folder) {
    const cleat_split called = split_of(t->path);
    const char *word = cleat_split_name(called == CLEAT_SPLITS ? t->split : called);
    return folder == 0 ? 2 : strncasecmp(t->folders.names[folder], word, strlen(word)) == 0;
}

static bool is_target(const table *t, int column) {
    const cleat_targets *targets = &t->of->set->targets;
    for (size_t k = 0; k < targets->n_columns; ++k)
        if (targets->columns[k] == column) return true;
    return false;
}

/* By the first row that names a file; the columns of classes and numbers may hold numbers that are names of files. */
static cleat_status find_column(table *t, cleat_error *error) {
    const char *wanted = t->options->image_column ? t->options->image_column : "";
    char file[CLEAT_FILE_PATH];
    cleat_csv_stream stream;
    int only = -1, best = -1;
    size_t second = 0, rows = 0;
    cleat_status status = cleat_csv_stream_open(t->path, &stream, error);
    if (status) return status;
    const size_t columns = stream.csv.expected;
    const int label = cleat_csv_column(&stream.csv, class_column(t->options));
    if (*wanted) status = cleat_csv_need_column(&stream.csv, wanted, &only, error);
    if (status) (void)cleat_fail_in(error, status, "data.image_column");
    bool more = !status;
    for (int row = 0; row < FIRST_ROWS && more && best < 0; ++row) { /* the second pass reports bad rows */
        const bool is_good = cleat_csv_stream_next(&stream, &more, NULL) == CLEAT_OK;
        rows += more;
        more = more && is_good;
        for (size_t i = 0; more && i < t->folders.count * columns; ++i) {
            const size_t folder = i / columns;
            const int column = (int)(i % columns), rank = rank_of(t, folder);
            if ((only < 0 ? column == label || is_target(t, column) : column != only) || rank < best ||
                !find_file(t, folder, stream.csv.fields[column], file))
                continue;
            if (rank > best) second = 0, t->folder = folder, t->column = column;
            if (folder != t->folder) second = folder;
            best = rank;
        }
    }
    cleat_csv_stream_close(&stream);
    if (status) return status;
    if (!rows)
        return cleat_fail(error, CLEAT_ERR_FORMAT, "%s: a header without rows; add a row for each image", t->path);
    if (best < 0)
        return cleat_fail(
            error, CLEAT_ERR_NOT_FOUND,
            "%s: no %s of its first %d rows names files in %s or its folders (also with .jpg, .jpeg, .png, "
            ".tif, .tiff); set data.image_column to the column of file names, and data.image_folder to the "
            "folder of the images, below which these paths begin (/ if they begin with /), divided by /, not \\",
            t->path, *wanted ? "value of data.image_column" : "column", FIRST_ROWS, t->root);
    if (!second) return CLEAT_OK;
    return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                      "%s: %s/%s and %s/%s both have the images that its first rows name; set data.image_folder to the "
                      "right one",
                      t->path, t->root, t->folders.names[t->folder], t->root, t->folders.names[second]);
}

/* The image is in the usual folder, or in exactly one other. */
static cleat_status add_row(void *user, cleat_error *error) {
    table *t = user;
    char file[CLEAT_FILE_PATH], other[CLEAT_FILE_PATH];
    const char *name = t->csv.fields[t->column];
    const bool usual = find_file(t, t->folder, name, file);
    bool found = usual;
    uint32_t before = 0;
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; i < t->folders.count && !usual; ++i) {
        if (!find_file(t, i, name, found ? other : file)) continue;
        if (found)
            return cleat_csv_fail(&t->csv, error, "both %s and %s in %s may be '%.60s'; write the folder in the table",
                                  file, other, t->root, name);
        found = true;
    }
    if (found && cleat_name_table_find(t->named, file, &before))
        return cleat_csv_fail(&t->csv, error, "%s is named a second time, first in line %u%s; remove one of the rows",
                              file, (unsigned)(before >> 2), (before & 3) == t->split ? "" : " of another table");
    if (found)
        status = cleat_name_table_add(t->named, file, (uint32_t)t->csv.line << 2 | t->split, error);
    else
        status = cleat_csv_fail(&t->csv, error, "no image '%.100s' in %s and its folders; add it, or remove the row",
                                name, t->root);
    if (status && !(t->options->predict && cleat_image_skips(error))) return status;
    return add_class(t->of, &t->csv, name, found ? file : NULL, t->split, error);
}

static cleat_status read_table(table *t, cleat_error *error) {
    bool skip = false;
    cleat_status status = cleat_csv_open(t->path, &t->csv, error);
    if (status) return status;
    status = find_class_column(t->of, &t->csv, t->split, &skip, error);
    if (!status && !skip) status = find_column(t, error);
    if (!status && !skip) {
        cleat_log(CLEAT_LOG_INFO, "%s: the column '%s' names the images, in %s%s%s", t->path, t->csv.fields[t->column],
                  t->root, t->folder ? "/" : "", t->folders.names[t->folder]);
        status = cleat_csv_each(&t->csv, add_row, t, &t->of->faults, error);
    }
    cleat_csv_close(&t->csv);
    return status;
}

/* Finds c->root, data.image_folder or the tables' folder, and reads each table. A missing image, one named twice and
 * errors of a row are added to c->faults; other errors are returned. */
static cleat_status read_tables(classes *c, cleat_error *error) {
    const cleat_image_options *options = c->set->options;
    const bool given = options->image_folder && *options->image_folder;
    cleat_name_table named = {0};
    cleat_name_list folders = {0};
    cleat_status status =
        cleat_path_join("", given ? options->image_folder : c->tables.folder, c->root, CLEAT_FILE_PATH, error);
    if (!status) status = cleat_name_list_add(&folders, "", error);
    if (!status) status = list_folders(c->root, &folders, error);
    if (status && given) (void)cleat_fail_in(error, status, "data.image_folder");
    for (int split = 0; split < CLEAT_SPLITS && !status; ++split) {
        table t = {.of = c, .path = c->tables.paths[split], .root = c->root, .options = options, .named = &named};
        t.split = (cleat_split)split;
        t.folders = folders;
        if (*t.path) status = read_table(&t, error);
    }
    cleat_name_list_free(&folders);
    cleat_name_table_free(&named);
    return status;
}

cleat_status cleat_image_table_open(const char *path, cleat_image_set *set, bool *found, cleat_error *error) {
    classes *c = cleat_alloc(1, sizeof *c);
    if (!c) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for reading a table");
    c->set = set;
    cleat_status status = find_tables(path, &c->tables, found, error);
    if (status || !*found) goto done;
    status = read_tables(c, error);
    cleat_free(set->root);
    set->root = cleat_strdup(c->root);
    if (!status && !set->root) status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a path");
    if (!status) status = cleat_image_set_probe(set, &c->faults, error);
done:
    cleat_name_table_free(&c->known);
    cleat_free(c);
    return status;
}
