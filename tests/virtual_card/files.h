/* Small files, and the folder of compiled programs. */
#ifndef VIRTUAL_CARD_FILES_H
#define VIRTUAL_CARD_FILES_H

#include <stdbool.h>
#include <stddef.h>

/* The text of a file; the caller frees it. NULL: it cannot be read. */
char *vc_file_read(const char *path);

/* Writes the file whole or not at all. */
bool vc_file_write(const char *path, const char *text);

/* CLEAT_VIRTUAL_CARD_CACHE, else a folder of this user in TMPDIR; it is made. */
bool vc_cache_folder(char *path, size_t size);

#endif
