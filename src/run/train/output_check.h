/* Outputs that are not finite: the number of samples that have them, and a remedy. */
#ifndef CLEAT_SRC_OUTPUT_CHECK_H
#define CLEAT_SRC_OUTPUT_CHECK_H

#include "session/feed.h"

enum { CLEAT_OUTPUT_CHECK_TEXT = 384 };

typedef struct cleat_output_check {
    size_t samples; /* samples checked */
    size_t bad;     /* of these, samples with Inf or NaN; padding of short samples is ignored */
    uint32_t first; /* the lowest index among the bad samples */
} cleat_output_check;

/* Number of meaningful values of a sample in a batch, of `each` values. If the output has a row per sequence position,
 * the rows after the end of the sample are padding. */
int64_t cleat_output_own_values(const cleat_session *session, const cleat_fed_batch *fed, uint32_t sample,
                                int64_t each);

/* Checks the samples of a micro-batch: output f32 [B, ...] as written by the graph. */
void cleat_output_check_add(cleat_output_check *found, const cleat_session *session, const cleat_fed_batch *fed,
                            const float *output);

/* Writes "2 of 7 outputs are not finite, the first that of sample ID; REMEDY" to `text`
 * [CLEAT_OUTPUT_CHECK_TEXT], or "" if all are finite. */
void cleat_output_check_format(const cleat_output_check *found, const cleat_session *session,
                               const cleat_dataset *dataset, char *text);

#endif
