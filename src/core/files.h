/* Files and folders: whole reads, writes that are there completely or not at all, listings, paths. */
#ifndef CLEAT_SRC_FILES_H
#define CLEAT_SRC_FILES_H

#include "core/text.h"

/* The whole file, with a zero byte after it that does not count. The caller frees it (cleat_free). */
cleat_status cleat_file_read(const char *path, char **data, size_t *size, cleat_error *error);
/* Writes to a temporary name beside `path`, syncs file and folder, renames. */
cleat_status cleat_file_write(const char *path, const void *data, size_t size, cleat_error *error);
/* Writes a text in the same way and frees it, written or not; or says that memory ran out while it was made. */
cleat_status cleat_file_write_text(const char *path, cleat_text *text, cleat_error *error);
/* Makes a folder and its parents; an existing folder is fine. */
cleat_status cleat_folder_make(const char *path, cleat_error *error);
/* Syncs a folder's entries to the disk. */
cleat_status cleat_folder_sync(const char *path, cleat_error *error);
bool cleat_file_exists(const char *path);
bool cleat_folder_exists(const char *path);
/* Names in a folder but hidden ones, sorted by bytes. */
typedef struct cleat_listing {
    char **names; /* [count] */
    size_t count, capacity;
} cleat_listing;
/* Those that `accepts` takes, all where it is NULL. CLEAT_ERR_NOT_FOUND: there is no such folder. */
cleat_status cleat_listing_read(const char *folder, bool (*accepts)(const char *name), cleat_listing *listing,
                                cleat_error *error);
/* One of zeros is fine too. */
void cleat_listing_free(cleat_listing *listing);
/* What a name ends in, from its last dot on (".csv"); "" where there is none but one it begins with. */
const char *cleat_name_ending(const char *name);
/* The user's cache folder for cleat: $CLEAT_CACHE_DIR, $XDG_CACHE_HOME/cleat or ~/.cache/cleat. Made if needed, for the user alone; in a folder
 * that others may write to, a folder cleat/ of its own. */
cleat_status cleat_cache_folder(char *path, size_t size, cleat_error *error);
/* A 128-bit hash as 32 hexadecimal digits and a zero. */
void cleat_hash_text(const void *data, size_t size, char text[33]);

/* FOLDER/NAME in path [size]; either may be empty, and then there is no slash. CLEAT_ERR_ARGUMENT where it does not fit. */
cleat_status cleat_path_join(const char *folder, const char *name, char *path, size_t size, cleat_error *error);

#endif
