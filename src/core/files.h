/* Files and folders: whole reads, atomic writes, listings, paths. */
#ifndef CLEAT_SRC_FILES_H
#define CLEAT_SRC_FILES_H

#include "core/text.h"

/* Reads the whole file and appends a zero byte that *size does not count. The caller frees *data
 * (cleat_free). */
cleat_status cleat_file_read(const char *path, char **data, size_t *size, cleat_error *error);
/* Writes atomically: to a temporary name beside `path`, then syncs file and folder and renames. */
cleat_status cleat_file_write(const char *path, const void *data, size_t size, cleat_error *error);
/* Writes a text in the same way and frees it in any case. Reports it if memory ran out while the text was
 * built. */
cleat_status cleat_file_write_text(const char *path, cleat_text *text, cleat_error *error);
/* Copies FROM/NAME to TO/NAME, which is written atomically. */
cleat_status cleat_file_copy(const char *from, const char *to, const char *name, cleat_error *error);
/* Creates a folder and its parents; it is not an error if the folder exists. */
cleat_status cleat_folder_make(const char *path, cleat_error *error);
/* Syncs the entries of a folder to the disk. */
cleat_status cleat_folder_sync(const char *path, cleat_error *error);
bool cleat_file_exists(const char *path);
bool cleat_folder_exists(const char *path);
/* Names in a folder, without hidden ones, sorted by bytes. */
typedef struct cleat_listing {
    char **names; /* [count] */
    size_t count, capacity;
} cleat_listing;
/* Lists the names that `accepts` accepts, or all if it is NULL. CLEAT_ERR_NOT_FOUND: the folder does not
 * exist. */
cleat_status cleat_listing_read(const char *folder, bool (*accepts)(const char *name), cleat_listing *listing,
                                cleat_error *error);
/* A zero-initialised listing is allowed. */
void cleat_listing_free(cleat_listing *listing);
/* The file name extension with its dot (".csv"); "" if there is no dot, or only a leading one. Points into
 * `name`. */
const char *cleat_name_ending(const char *name);
/* The user's cache folder for cleat: $CLEAT_CACHE_DIR, $XDG_CACHE_HOME/cleat or ~/.cache/cleat. Created if
 * needed, with access for the user only. If others may write to an existing folder, its subfolder cleat/ is
 * used instead. */
cleat_status cleat_cache_folder(char *path, size_t size, cleat_error *error);
/* Writes a 128-bit hash (XXH3) as 32 hexadecimal digits and a zero. */
void cleat_hash_text(const void *data, size_t size, char text[33]);

/* Writes FOLDER/NAME to path [size], without the slash if either is empty. CLEAT_ERR_ARGUMENT: it does not
 * fit. */
cleat_status cleat_path_join(const char *folder, const char *name, char *path, size_t size, cleat_error *error);

#endif
