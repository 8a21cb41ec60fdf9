/* A temporary folder that replaces / for code that reads kernel files: a machine made of files. */
#ifndef CLEAT_TESTS_FILE_TREE_H
#define CLEAT_TESTS_FILE_TREE_H

#include "cleat/core.h"

/* The folder; paths below begin with /. */
extern char tree_root[64];

/* CMocka setup and teardown: an empty tree. */
int tree_make(void **state);
int tree_remove(void **state);

/* Writes a file below the tree, with its folders. */
void tree_put(const char *path, const char *format, ...) CLEAT_PRINTF(2, 3);
void tree_put_bytes(const char *path, const void *bytes, size_t size);
void tree_put_text(const char *path, const char *text);
void tree_folder(const char *path);
/* Creates a symbolic link. */
void tree_link(const char *path, const char *target);
/* Makes a file whose reads fail (a folder), as those of a driver do that returns an error number. */
void tree_put_unreadable(const char *path);
/* Removes a file, or a folder with its contents. */
void tree_drop(const char *path);

#endif
