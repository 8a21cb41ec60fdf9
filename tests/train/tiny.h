/* A training run of a few seconds: generated molecules, a profile of one small block, and its output
 * files. */
#ifndef CLEAT_TESTS_TINY_H
#define CLEAT_TESTS_TINY_H

#include <stddef.h>

#include "cleat/train.h"

enum { TINY_PATH = 512 };

typedef struct tiny {
    char folder[64]; /* a new folder under /tmp */
    char data[96];   /* FOLDER/data: sequences.csv, labels.csv */
} tiny;

/* Exits with 77 if there is no device. */
void tiny_require_device(void);

/* CMocka group fixtures: *state is a tiny. */
int tiny_setup(void **state);
int tiny_teardown(void **state);

/* FOLDER/NAME, in `path` [TINY_PATH]. */
const char *tiny_path(const tiny *t, const char *name, char *path);

/* d_model 16, 2 heads, 1 block, dropout, 2 epochs, 2 x 4 samples per step, with the settings `set`
 * (NULL-terminated, or NULL). */
cleat_profile *tiny_profile(const tiny *t, const char *const *set);
#define SET(...) ((const char *const[]){__VA_ARGS__, NULL})

typedef struct tiny_result {
    cleat_status status;
    cleat_train_report report;
    cleat_error error;
} tiny_result;

/* Sets a volatile int, which options.stop points to: options.began of a run that ends after its first step. */
void tiny_stop(void *flag);
/* Trains into FOLDER/run. If `stop` is nonzero, ends after one step. */
tiny_result tiny_train(const tiny *t, const char *run, const char *const *set, bool resume, int stop);
/* Like tiny_train, but asserts that the run ends with this status. */
tiny_result tiny_train_to(cleat_status wanted, const tiny *t, const char *run, const char *const *set, bool resume,
                          int stop);

/* Asserts that parameters, moments and metrics of both runs' last checkpoints are identical bytes. */
void tiny_assert_same_run(const tiny *t, const char *a, const char *b);
/* FOLDER/run/CHECKPOINT/file of the last checkpoint. */
const char *tiny_last_file(const tiny *t, const char *run, const char *file, char *path);

/* tiny_parameters: all parameters of the last checkpoint of the run [count]; the caller frees them with
 * cleat_free. tiny_distance: the largest difference between two runs' parameters (NaN if one is NaN). */
float *tiny_parameters(const tiny *t, const char *run, size_t *count);
double tiny_distance(const tiny *t, const char *a, const char *b);

/* Reads a whole file, zero-terminated. The file must exist. The caller frees it with cleat_free. */
char *tiny_read(const char *path, size_t *size);
void tiny_write(const char *path, const char *text, size_t size);

#endif
