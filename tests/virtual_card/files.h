/* Small files, and the cache folder of compiled programs. */
#ifndef VIRTUAL_CARD_FILES_H
#define VIRTUAL_CARD_FILES_H

#include <stdbool.h>
#include <stddef.h>

/* The text of a file, freed by the caller. NULL if it cannot be read. */
char *vc_file_read(const char *path);

/* Writes the file atomically. */
bool vc_file_write(const char *path, const char *text);

/* CLEAT_VIRTUAL_CARD_CACHE, or a per-user folder in TMPDIR. Creates it. */
bool vc_cache_folder(char *path, size_t size);

#endif
