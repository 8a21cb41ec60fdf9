/* Evaluation of a session's parameters on a list of samples. */
#ifndef CLEAT_SRC_EVALUATE_H
#define CLEAT_SRC_EVALUATE_H

#include "cleat/train.h"
#include "session/feed.h"
#include "train/output_check.h"

/* metrics: the mean loss over the samples ("loss"), its terms, and the metrics of the model. bad
 * [CLEAT_OUTPUT_CHECK_TEXT]: describes outputs or a loss that are not finite, with a remedy; "" if all are
 * finite. */
cleat_status cleat_evaluate_samples(cleat_session *session, cleat_feed *feed, const cleat_dataset *dataset,
                                    const uint32_t *samples, size_t count, cleat_metrics *metrics, char *bad,
                                    cleat_error *error);

#endif
