/* Finding profiles by name: in the profile folders of the user, of the installation, and of the source tree. */
#include "cleat/profile.h"
#include "platform/files.h"

#include "core/files.h"
#include "core/memory.h"
#include "core/own_file.h"
#include "core/string.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#ifndef CLEAT_INSTALLED_PROFILES /* set by CMakeLists.txt, as the two folders of a development build are */
#error "CLEAT_INSTALLED_PROFILES is not set"
#endif

enum { MAX_FOLDERS = 5 };

typedef struct folders {
    char items[MAX_FOLDERS][PATH_MAX];
    size_t count;
} folders;

/* --- the folders ---------------------------------------------------------------------------------------------- */

static void add_folder(folders *all, const char *path) {
    struct stat about, known;
    if (all->count == MAX_FOLDERS || !cleat_folder_exists(path) || stat(path, &about) != 0) return;
    for (size_t i = 0; i < all->count; ++i)
        if (stat(all->items[i], &known) == 0 && known.st_dev == about.st_dev && known.st_ino == about.st_ino) return;
    snprintf(all->items[all->count++], PATH_MAX, "%s", path);
}

/* Adds `below` of the folder `up` levels above that of `file`. */
static void add_beside(folders *all, const char *file, int up, const char *below) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", file);
    for (int i = 0; i <= up; ++i) {
        char *slash = strrchr(path, '/');
        if (!slash) return;
        *slash = 0;
    }
    size_t used = strlen(path);
    if ((size_t)snprintf(path + used, sizeof path - used, "/%s", below) < sizeof path - used) add_folder(all, path);
}

static void find_folders(folders *all) {
    char own[PATH_MAX];
    all->count = 0;
    add_folder(all, "profiles");
    bool found = cleat_own_file(own);
    if (found) {
        add_beside(all, own, 0, "profiles"); /* the archive for Windows */
        add_beside(all, own, 1, "share/cleat/profiles");
        add_beside(all, own, 2, "share/cleat/profiles"); /* lib/x86_64-linux-gnu */
    }
    add_folder(all, CLEAT_INSTALLED_PROFILES);
    if (found && strncmp(own, CLEAT_BUILD_FOLDER "/", sizeof CLEAT_BUILD_FOLDER) == 0)
        add_folder(all, CLEAT_SOURCE_PROFILES);
}

/* --- the list ------------------------------------------------------------------------------------------------- */

static bool is_profile_name(const char *name) {
    return strcmp(cleat_name_ending(name), ".ini") == 0;
}

/* The first line of a file without its "# "; "" unless it is a comment. */
static void read_about(const char *path, char *about, size_t size) {
    char line[320] = "";
    FILE *file = fopen(path, "r");
    about[0] = 0;
    if (!file) return;
    if (fgets(line, sizeof line, file) && (line[0] == '#' || line[0] == ';')) {
        line[strcspn(line, "\r\n")] = 0;
        snprintf(about, size, "%.*s", (int)size - 1, line + 1 + strspn(line + 1, " "));
    }
    fclose(file);
}

typedef struct entries {
    cleat_profile_entry *items;
    size_t count, capacity;
} entries;

static cleat_status add_entry(entries *all, const char *folder, const char *file, cleat_error *error) {
    cleat_profile_entry entry;
    const int length = (int)(cleat_name_ending(file) - file);
    if ((size_t)length >= sizeof entry.name) return CLEAT_OK;
    snprintf(entry.name, sizeof entry.name, "%.*s", length, file);
    for (size_t i = 0; i < all->count; ++i)
        if (strcmp(all->items[i].name, entry.name) == 0) return CLEAT_OK;
    if (cleat_path_join(folder, file, entry.path, sizeof entry.path, NULL)) return CLEAT_OK;
    if (!cleat_file_exists(entry.path)) return CLEAT_OK;
    cleat_status status = cleat_grow(&all->items, all->count, &all->capacity, error);
    if (status) return status;
    read_about(entry.path, entry.about, sizeof entry.about);
    all->items[all->count++] = entry;
    return CLEAT_OK;
}

cleat_status cleat_profile_list(cleat_profile_entry **list, size_t *count, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    entries all = {.items = NULL};
    folders *where = cleat_alloc(1, sizeof *where);
    if (!where) return cleat_fail(error, CLEAT_ERR_MEMORY, "out of memory listing profiles");
    find_folders(where);
    for (size_t i = 0; i < where->count && !status; ++i) {
        cleat_name_list files = {0};
        if (cleat_listing_read(where->items[i], is_profile_name, &files, NULL)) continue; /* unreadable */
        for (size_t k = 0; k < files.count && !status; ++k)
            status = add_entry(&all, where->items[i], files.names[k], error);
        cleat_name_list_free(&files);
    }
    cleat_free(where);
    if (status) {
        cleat_free(all.items);
        return status;
    }
    *list = all.items;
    *count = all.count;
    return CLEAT_OK;
}

/* --- one profile ---------------------------------------------------------------------------------------------- */

/* Whether `path` can be read as a profile: a file or a pipe such as <(...), not a folder. True after an
 * I/O error: reading then reports it, instead of silently taking another folder's profile of that name. */
static bool is_readable(const char *path) {
    struct stat about;
    if (stat(path, &about) == 0) return !S_ISDIR(about.st_mode);
    return errno != ENOENT && errno != ENOTDIR && errno != EACCES && errno != ENAMETOOLONG;
}

/* Looks for NAME and NAME.ini in `folder`; "": the current one. */
static bool look_in(const char *folder, const char *name, char path[PATH_MAX]) {
    if (cleat_path_join(folder, name, path, PATH_MAX, NULL) == CLEAT_OK && is_readable(path)) return true;
    size_t used = strlen(path);
    if (is_profile_name(name) || (size_t)snprintf(path + used, PATH_MAX - used, ".ini") >= PATH_MAX - used)
        return false;
    return is_readable(path);
}

static bool look_everywhere(const folders *where, const char *name, char path[PATH_MAX]) {
    const char *below = strncmp(name, "profiles/", 9) == 0 ? name + 9 : name;
    if (look_in("", name, path)) return true;
    for (size_t i = 0; i < where->count && !strchr(below, '/'); ++i)
        if (look_in(where->items[i], below, path)) return true;
    return false;
}

/* Appends the names of all profiles, and "; did you mean 'rna'?". */
static void add_known(const char *name, cleat_string *text) {
    cleat_profile_entry *known = NULL;
    size_t count = 0;
    if (cleat_profile_list(&known, &count, NULL) || count == 0) return;
    const char **names = cleat_alloc(count, sizeof *names);
    const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name;
    char stem[64];
    snprintf(stem, sizeof stem, "%.*s", (int)(strlen(base) - (is_profile_name(base) ? 4 : 0)), base);
    for (size_t i = 0; names && i < count; ++i) names[i] = known[i].name;
    const char *near = names ? cleat_nearest_name(stem, names, count) : NULL;
    for (size_t i = 0; i < count; ++i) cleat_string_add(text, "%s%s", i ? ", " : "; the profiles are ", known[i].name);
    if (near) cleat_string_add(text, "; did you mean '%s'?", near);
    cleat_free(names);
    cleat_free(known);
}

static cleat_status not_found(const folders *where, const char *name, cleat_error *error) {
    cleat_string text = {0};
    for (size_t i = 0; i < where->count; ++i)
        cleat_string_add(&text, "%s%s", i ? ", " : "; looked also in ", where->items[i]);
    add_known(name, &text);
    cleat_fail(error, CLEAT_ERR_NOT_FOUND, "%.500s: %s%s", name,
               cleat_folder_exists(name) ? "is a folder, not a profile; name a file such as one of its *.ini"
                                         : "no such profile",
               text.data ? text.data : "");
    cleat_string_free(&text);
    return CLEAT_ERR_NOT_FOUND;
}

cleat_status cleat_profile_find(const char *name, char *path, size_t size, cleat_error *error) {
    struct {
        folders where;
        char path[PATH_MAX];
    } *found = cleat_alloc(1, sizeof *found);
    if (!found) return cleat_fail(error, CLEAT_ERR_MEMORY, "out of memory finding a profile");
    cleat_status status = CLEAT_OK;
    find_folders(&found->where);
    if (!*name || !look_everywhere(&found->where, name, found->path))
        status = not_found(&found->where, name, error);
    else if (strlen(found->path) >= size)
        status = cleat_fail(error, CLEAT_ERR_ARGUMENT, "%.500s: the path of the profile is too long", found->path);
    else
        memcpy(path, found->path, strlen(found->path) + 1);
    cleat_free(found);
    return status;
}
