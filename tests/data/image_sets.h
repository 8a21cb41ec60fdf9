/* Helpers of the image set tests: small options, opening, filling, and expected refusals. */
#ifndef CLEAT_TESTS_DATA_IMAGE_SETS_H
#define CLEAT_TESTS_DATA_IMAGE_SETS_H

#include "data/image/images.h"

/* The warnings since the last images_open_ok or images_expect_failure, one per line. */
extern char images_warnings[8192];

/* CMocka group setup: captures warnings. */
int images_set_up(void **state);
/* Copies a path, because test_path soon reuses its buffers. */
const char *images_lasting(const char *path);
/* Images of 12 x 12 pixels, all in the training split. */
cleat_image_options images_small_options(void);
cleat_dataset *images_open_ok(const char *path, const cleat_image_options *options);
/* Expects that opening fails with a message that contains all of `words`, separated by bars. */
void images_expect_failure(const char *path, const cleat_image_options *options, const char *words);
/* Fills an image and returns its label. */
int32_t images_fill(const cleat_dataset *dataset, size_t sample, const cleat_rng_key *rng_key, float *image);
size_t images_sample_called(const cleat_dataset *dataset, const char *id);
/* Opens the set repeatedly, with one allocation after another failing. */
void images_expect_memory_errors(const char *path, const cleat_image_options *options);

#endif
