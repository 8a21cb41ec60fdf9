/* Outputs that are not finite: how many samples have them, and what helps. */
#ifndef CLEAT_SRC_OUTPUT_CHECK_H
#define CLEAT_SRC_OUTPUT_CHECK_H

#include "session/feed.h"

enum { CLEAT_OUTPUT_CHECK_TEXT = 384 };

typedef struct cleat_output_check {
    size_t samples; /* all that were looked at */
    size_t bad;     /* of them: with a value that is Inf or NaN, what pads a short sample left out */
    uint32_t first; /* the first of those */
} cleat_output_check;

/* Looks at the samples of a micro-batch: output f32 [B, ...] as the graph wrote it. */
void cleat_output_check_add(cleat_output_check *found, const cleat_session *session, const cleat_fed *fed,
                            const float *output);

/* Writes "2 of 7 outputs are not finite, the first is that of sample ID; what to do" to `text` [CLEAT_OUTPUT_CHECK_TEXT], "" where all are finite. */
void cleat_output_check_format(const cleat_output_check *found, const cleat_session *session,
                               const cleat_dataset *dataset, char *text);

#endif
