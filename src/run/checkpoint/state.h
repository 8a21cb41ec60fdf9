/* state.json: the training state, and size and hash of the other files of a checkpoint. */
#ifndef CLEAT_SRC_CHECKPOINT_STATE_H
#define CLEAT_SRC_CHECKPOINT_STATE_H

#include "checkpoint/format.h"
#include "data/fingerprint.h"

enum { CLEAT_STATE_BUCKETS = 16 };

/* The training state between two optimizer steps. */
typedef struct cleat_train_state {
    int64_t epoch;    /* epochs completed */
    int64_t step;     /* optimizer steps done */
    int64_t position; /* completed global batches of the current epoch, in its order */
    /* the evaluation after the last epoch was interrupted: it comes before the next step */
    bool evaluation_is_due;
    /* sequences are cut to this length because memory was short; 0: the profile's maximum length applies */
    int64_t max_length;
    uint64_t seed;
    bool has_best;
    double best_metric;
    int64_t best_step;
    int64_t stale_evaluations; /* evaluations since the best one (early-stopping counter) */
    /* epochs in the running average of the parameters; if > 0, the average is the model */
    int64_t averaged_epochs;
    double time_used;    /* seconds used by all processes of this run so far */
    double next_seconds; /* if stopped by the time budget: seconds that the next step may need; else 0 */
    /* length of the schedule, which a time budget may have shortened; 0: not decided yet */
    int64_t epochs;
    int64_t metrics_records; /* records of the metrics log up to this state */
    double loss_scale;       /* f16: loss scale of the next step; 0: not trained in f16 */
    int64_t clean_steps;     /* f16: steps since the loss scale changed */
    int64_t skipped_steps;   /* f16: steps whose gradient overflowed; they did not update the parameters */
    int64_t n_buckets;       /* number of length buckets; 0: not recorded */
    int64_t micro_batch_sizes[CLEAT_STATE_BUCKETS]; /* micro-batch size of each bucket, in samples */
    char profile_hash[33];                          /* cleat_profile_hash, or empty */
    cleat_data_fingerprint data; /* of the data that the run was trained on; counts 0: not recorded */
} cleat_train_state;

/* Encodes state.json as text that contains its own hash; the caller frees *text (cleat_free). */
cleat_status cleat_state_encode(const cleat_train_state *state, const cleat_checkpoint_files *files, char **text,
                                cleat_error *error);
/* Inverse of cleat_state_encode. CLEAT_ERR_NOT_SUPPORTED: the text is of another version.
 * CLEAT_ERR_FORMAT: it is damaged, or the file of the model or of the optimizer is not in the list. `path`
 * is used in messages only. */
cleat_status cleat_state_decode(const char *path, const char *text, size_t size, cleat_train_state *state,
                                cleat_checkpoint_files *files, cleat_error *error);

#endif
