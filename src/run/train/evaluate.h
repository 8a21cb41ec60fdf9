/* Evaluation of a session's parameters on a list of samples. */
#ifndef CLEAT_SRC_EVALUATE_H
#define CLEAT_SRC_EVALUATE_H

#include "cleat/train.h"
#include "session/feed.h"
#include "train/data_parallel.h"
#include "train/output_check.h"
#include "train/run_examples.h"

/* metrics: the mean loss over the samples ("loss"), its terms, and the metrics of the model. bad
 * [CLEAT_OUTPUT_CHECK_TEXT]: describes outputs or a loss that are not finite, with a remedy; "" if all are
 * finite. examples (may be NULL): keeps what cleat_run_examples_write needs. Ranks of `parallel` (NULL: alone) evaluate
 * parts; all have the same results, but the examples are complete on rank 0 only. CLEAT_ERR_INTERRUPTED: *stop (may be
 * NULL) was not zero between two micro-batches; the session can go on. */
cleat_status cleat_evaluate_samples(cleat_session *session, cleat_feed *feed, const cleat_dataset *dataset,
                                    const uint32_t *samples, size_t count, const cleat_data_parallel *parallel,
                                    const volatile int *stop, cleat_run_examples *examples, cleat_metrics *metrics,
                                    char *bad, cleat_error *error);

#endif
