/* File helpers of the data tests, under a temporary folder of the process. */
#ifndef CLEAT_TESTS_DATA_FILES_H
#define CLEAT_TESTS_DATA_FILES_H

#include "cleat/core.h"

/* Returns "TEMPORARY/name" in one of four buffers, used in rotation. */
const char *test_path(const char *name);
/* Creates the folder TEMPORARY/name and returns its path. */
const char *test_folder(const char *name);
void test_write(const char *path, const void *data, size_t size);
void test_write_text(const char *path, const char *text);
/* Reads a whole file. The caller frees the result. */
char *test_read(const char *path, size_t *size);
/* CMocka group teardown: removes the temporary folder. */
int test_remove_all(void **state);
/* Starts to capture log output instead of printing it; discards earlier captures. */
void test_keep_log(void);
/* Ends the capture and returns its lines: warnings begin with "warning: ". */
const char *test_logged(void);
/* Returns the path of the shared RNA set, or NULL if the checkout lacks it. */
const char *test_shared_rna(void);

#endif
