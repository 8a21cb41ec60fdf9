/* state.json: where training stands, and size and hash of the other files of a checkpoint. */
#ifndef CLEAT_SRC_CHECKPOINT_STATE_H
#define CLEAT_SRC_CHECKPOINT_STATE_H

#include "checkpoint/format.h"

enum { CLEAT_STATE_BUCKETS = 16 };

/* Where training stands. */
typedef struct cleat_train_state {
    int64_t epoch;      /* epochs completed */
    int64_t step;       /* optimizer steps done */
    int64_t position;   /* windows of the current epoch that are done, in its order */
    int64_t max_length; /* longer sequences are cut to it for want of memory; 0: to what the profile says */
    uint64_t seed;
    bool has_best;
    double best_metric;
    int64_t best_step;
    int64_t stale_evaluations; /* evaluations since the best one: the early-stopping counter */
    int64_t averaged_epochs;   /* epochs in the running average of the parameters, which then is the model */
    double time_used;          /* seconds of all processes of this run so far */
    double next_seconds;       /* stopped by the time budget: what the next step may need; else 0 */
    int64_t epochs;            /* of the schedule, which a time budget may have shortened; 0: not decided yet */
    int64_t metrics_records;   /* records of the metrics log that belong to it */
    double loss_scale;         /* f16: of the next step; 0: it was not trained in f16 */
    int64_t clean_steps;       /* f16: steps since it changed */
    int64_t skipped_steps;     /* f16: steps whose gradient overflowed: they moved no parameter */
    int64_t n_buckets;         /* length buckets, ... */
    int64_t micro_batch_sizes[CLEAT_STATE_BUCKETS]; /* ... and samples of a micro-batch of each; none: not known */
    char profile_hash[33];                          /* cleat_profile_hash, or empty */
} cleat_train_state;

/* state.json as text, which carries a hash of itself; the caller frees *text (cleat_free). */
cleat_status cleat_state_encode(const cleat_train_state *state, const cleat_checkpoint_files *files, char **text,
                                cleat_error *error);
/* And back. CLEAT_ERR_FORMAT: damaged, of another version, or the model's or the optimizer's file is not among the
 * files. `path` is for messages. */
cleat_status cleat_state_decode(const char *path, const char *text, size_t size, cleat_train_state *state,
                                cleat_checkpoint_files *files, cleat_error *error);

#endif
