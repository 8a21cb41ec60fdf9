/* Examples of an evaluation: keeps the outputs of a few samples while it runs, and writes examples.json. */
#ifndef CLEAT_SRC_RUN_EXAMPLES_H
#define CLEAT_SRC_RUN_EXAMPLES_H

#include "models/examples.h"
#include "session/feed.h"
#include "train/parallel_pass.h"

/* badness below 0: none; of equal ones, the sample with the lower index is worse. */
typedef struct cleat_bad_sample {
    double badness, sample;
} cleat_bad_sample;

typedef struct cleat_run_examples {
    const cleat_dataset *dataset; /* borrowed, with `samples`, from begin on */
    const uint32_t *samples;      /* [n_samples] that are evaluated */
    size_t n_samples, n_chosen;
    uint32_t chosen[CLEAT_EXAMPLES]; /* samples at even distances, in the order of `samples` */
    /* Of the chosen, and from CLEAT_EXAMPLES on of the worst so far; output NULL: not evaluated yet. */
    cleat_prediction predictions[CLEAT_EXAMPLES + CLEAT_WORST];
    cleat_bad_sample worst[CLEAT_WORST]; /* the worst first */
    double *metric_state;                /* after the last batch; NULL before */
    bool has_baseline;                   /* computed once: it depends on the samples alone */
    cleat_baseline baseline;
} cleat_run_examples;

/* Chooses the samples of an evaluation that begins: all of up to CLEAT_EXAMPLES, else some at even distances, the same
 * ones each time, besides the worst. Nothing is chosen for a family without examples. */
void cleat_run_examples_begin(cleat_run_examples *examples, const cleat_model *model, const cleat_dataset *dataset,
                              const uint32_t *samples, size_t count);
/* Keeps the outputs of the chosen and of the worst samples of a batch, whose badness is known; `each` values a sample.
 * Without memory, they are not shown. */
void cleat_run_examples_keep(cleat_run_examples *examples, const cleat_model *model, const cleat_host_batch *batch,
                             const float *output, int64_t each);
/* Brings the outputs of all ranks to rank 0: the worst of a rank become the worst of all. */
cleat_status cleat_run_examples_collect(cleat_run_examples *examples, const cleat_data_parallel *parallel,
                                        cleat_error *error);
/* Takes over the state of the metrics. */
void cleat_run_examples_end(cleat_run_examples *examples, double *metric_state);
/* Frees everything, including the baseline. */
void cleat_run_examples_free(cleat_run_examples *examples);

/* Where an evaluation stands; step and epoch below 0: unknown. */
typedef struct cleat_run_examples_place {
    const char *metric, *split; /* metric: NULL, the family's first */
    int64_t step, epoch;
} cleat_run_examples_place;

/* Writes the file atomically after an evaluation. Nothing is written for a family without examples. */
cleat_status cleat_run_examples_write(cleat_run_examples *examples, const cleat_model *model, const char *path,
                                      const cleat_run_examples_place *place, cleat_error *error);

#endif
