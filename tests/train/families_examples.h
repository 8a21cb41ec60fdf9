/* Checks examples.json of the runs of test_families.c. */
#ifndef CLEAT_TESTS_FAMILIES_EXAMPLES_H
#define CLEAT_TESTS_FAMILIES_EXAMPLES_H

#include "tiny.h"

/* Reads FOLDER/run/examples.json of a family that was trained on FOLDER/data. Fails unless the truth equals
 * the files, matrix and scores give the metrics of the best evaluation, and the baseline's value equals a
 * separate computation. */
void assert_shows_examples(const tiny *t, const char *family, const char *data, const char *run,
                           const cleat_metrics *best);

#endif
