/* Evaluation of a session's parameters over some samples. */
#ifndef CLEAT_SRC_EVALUATE_H
#define CLEAT_SRC_EVALUATE_H

#include "cleat/train.h"
#include "session/feed.h"
#include "train/output_check.h"

/* The loss as a mean over the samples ("loss"), its terms, and the model's metrics. bad [CLEAT_OUTPUT_CHECK_TEXT]: which outputs, or that the
 * loss, are not finite, and what helps; "" where all are. */
cleat_status cleat_evaluate_samples(cleat_session *session, cleat_feed *feed, const cleat_dataset *dataset,
                                    const uint32_t *samples, size_t count, cleat_metrics *metrics, char *bad,
                                    cleat_error *error);

#endif
