/* A training run that takes a moment: generated molecules, a profile of one small block, and what it leaves behind. */
#ifndef CLEAT_TESTS_TINY_H
#define CLEAT_TESTS_TINY_H

#include <stddef.h>

#include "cleat/train.h"

enum { TINY_PATH = 512 };

typedef struct tiny {
    char folder[64]; /* fresh, under /tmp */
    char data[96];   /* FOLDER/data: sequences.csv, labels.csv */
} tiny;

/* Ends the program with 77 where there is no device. */
void tiny_require_device(void);

/* CMocka group fixtures: *state is a tiny. */
int tiny_setup(void **state);
int tiny_teardown(void **state);

/* FOLDER/NAME, in `path` [TINY_PATH]. */
const char *tiny_path(const tiny *t, const char *name, char *path);

/* d_model 16, 2 heads, 1 block, dropout, 2 epochs of 2 x 4 samples a step; `set` (NULL-ended, or NULL) over it. */
cleat_profile *tiny_profile(const tiny *t, const char *const *set);
#define SET(...) ((const char *const[]){__VA_ARGS__, NULL})

typedef struct tiny_result {
    cleat_status status;
    cleat_train_report report;
    cleat_error error;
} tiny_result;

/* Trains into FOLDER/run. `stop` non-zero: ends after one step. */
tiny_result tiny_train(const tiny *t, const char *run, const char *const *set, bool resume, int stop);
/* The same, which must end with this status. */
tiny_result tiny_train_to(cleat_status wanted, const tiny *t, const char *run, const char *const *set, bool resume,
                          int stop);

/* Parameters, moments and metrics of the runs' last checkpoints are the same bytes. */
void tiny_assert_same_run(const tiny *t, const char *a, const char *b);
/* FOLDER/run/CHECKPOINT/file of the last checkpoint. */
const char *tiny_last_file(const tiny *t, const char *run, const char *file, char *path);

/* All parameters of the run's last checkpoint [count] (free with cleat_free); the largest difference between those of two
 * runs (NaN where one is not a number). */
float *tiny_parameters(const tiny *t, const char *run, size_t *count);
double tiny_distance(const tiny *t, const char *a, const char *b);

/* A whole file, with a zero behind it (free with cleat_free); it must be there. */
char *tiny_read(const char *path, size_t *size);
void tiny_write(const char *path, const char *text, size_t size);

#endif
