/* Evaluation of a session's parameters on a list of samples. */
#ifndef CLEAT_SRC_EVALUATE_H
#define CLEAT_SRC_EVALUATE_H

#include "cleat/train.h"
#include "session/feed.h"
#include "train/members.h"
#include "train/output_check.h"
#include "train/run_examples.h"
#include "verify/program_check.h"

/* Borrows everything. */
typedef struct cleat_evaluation_setup {
    cleat_session *session;
    cleat_feed *feed;
    const cleat_dataset *dataset;
    const cleat_data_parallel *parallel; /* NULL: alone */
    cleat_program_check *check;
    const volatile int *stop; /* NULL: it cannot be interrupted */
    /* One of several models, of which number 0 comes last, with the metrics of the combination; NULL: alone. */
    struct cleat_members *members;
    const cleat_loaded_model *loaded;
    size_t member;
    bool fits; /* of a training: chooses what checkpoints keep for predictions (thresholds) */
} cleat_evaluation_setup;

/* metrics: the mean loss over the samples ("loss"), its terms, and the metrics of the model. bad
 * [CLEAT_OUTPUT_CHECK_TEXT]: describes outputs or a loss that are not finite, with a remedy; "" if all are
 * finite. examples (may be NULL): keeps what cleat_run_examples_write needs. Ranks evaluate parts; all
 * have the same results, but the examples are complete on rank 0 only. CLEAT_ERR_INTERRUPTED: *stop was
 * not zero between two micro-batches; the session remains usable. */
cleat_status cleat_evaluate_samples(const cleat_evaluation_setup *setup, const uint32_t *samples, size_t count,
                                    cleat_run_examples *examples, cleat_metrics *metrics, char *bad,
                                    cleat_error *error);

#endif
