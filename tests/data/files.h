/* Files and folders of the data tests, under a temporary folder of the process. */
#ifndef CLEAT_TESTS_DATA_FILES_H
#define CLEAT_TESTS_DATA_FILES_H

#include "cleat/core.h"

/* "TEMPORARY/name"; in one of four buffers in turn. */
const char *test_path(const char *name);
/* Makes the folder TEMPORARY/name and returns its path. */
const char *test_folder(const char *name);
void test_write(const char *path, const void *data, size_t size);
void test_write_text(const char *path, const char *text);
/* The whole file; the caller frees it. */
char *test_read(const char *path, size_t *size);
/* Removes the temporary folder. A CMocka group teardown. */
int test_remove_all(void **state);
/* The shared RNA set, or NULL where the checkout stands alone. */
const char *test_shared_rna(void);

#endif
