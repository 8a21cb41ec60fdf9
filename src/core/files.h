/* Files: whole reads, and writes that are there completely or not at all. */
#ifndef CLEAT_SRC_FILES_H
#define CLEAT_SRC_FILES_H

#include "cleat/core.h"

/* The whole file, with a zero byte after it that does not count. The caller frees it (cleat_free). */
cleat_status cleat_file_read(const char *path, char **data, size_t *size, cleat_error *error);
/* Writes to a temporary name beside `path`, syncs file and folder, renames. */
cleat_status cleat_file_write(const char *path, const void *data, size_t size, cleat_error *error);
/* Makes a folder and its parents; an existing folder is fine. */
cleat_status cleat_folder_make(const char *path, cleat_error *error);
/* Syncs a folder's entries to the disk. */
cleat_status cleat_folder_sync(const char *path, cleat_error *error);
bool cleat_file_exists(const char *path);
bool cleat_folder_exists(const char *path);
/* The user's cache folder for cleat, made if needed and private: $CLEAT_CACHE_DIR, $XDG_CACHE_HOME/cleat or
 * ~/.cache/cleat. */
cleat_status cleat_cache_folder(char *path, size_t size, cleat_error *error);
/* A 128-bit hash as 32 hexadecimal digits and a zero. */
void cleat_hash_text(const void *data, size_t size, char text[33]);

/* FOLDER/NAME in path [size]; either may be empty, and then there is no slash. CLEAT_ERR_ARGUMENT where it does not fit. */
cleat_status cleat_path_join(const char *folder, const char *name, char *path, size_t size, cleat_error *error);

#endif
