/* Models: a family is its graph, its loss terms, its metrics, and how its predictions are written.
 *
 * Letters: B slots of a batch, L padded length, K loss terms.
 *
 * Threads: a model is used by one thread at a time. */
#ifndef CLEAT_MODELS_H
#define CLEAT_MODELS_H

#include "cleat/data.h"
#include "cleat/graph.h"
#include "cleat/settings.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cleat_model cleat_model;
typedef struct cleat_model_class cleat_model_class; /* a family */

typedef enum cleat_mode {
    CLEAT_MODE_TRAIN,    /* dropout, loss, gradients */
    CLEAT_MODE_EVALUATE, /* loss and output */
    CLEAT_MODE_PREDICT,  /* output only: needs no reference */
} cleat_mode;

/* Options of a run for its model, besides the settings of the family. */
typedef struct cleat_model_options {
    int workers; /* threads that may prepare data when they are opened; CLEAT_AUTO: one a CPU */
    cleat_precision precision;
    int64_t loss_scale_growth_interval; /* f16: steps after which the loss scale is doubled */
} cleat_model_options;

/* A model of `family`; `settings`, a struct of that family, is copied. */
CLEAT_API cleat_status cleat_model_create(const cleat_model_class *family, const cleat_data_settings *settings,
                                          const cleat_model_options *options, cleat_model **model, cleat_error *error);
CLEAT_API void cleat_model_destroy(cleat_model *model);
CLEAT_API const char *cleat_model_name(const cleat_model *model);

/* The terms of the loss and their weights; each is a line in the log. */
CLEAT_API int cleat_model_terms(const cleat_model *model);
CLEAT_API const char *cleat_model_term(const cleat_model *model, int term);

/* Opens the data for training, evaluation or prediction (with the additions of the profile). The model
 * takes from them what its graphs depend on: vocabulary size, number of classes or columns. `fitted`:
 * folder of cleat_dataset_save (a checkpoint) with the preprocessing fitted to the training data; NULL:
 * fitted to the training part of these data. The caller owns *dataset. */
CLEAT_API cleat_status cleat_model_open_data(cleat_model *model, const char *path, cleat_mode mode, const char *fitted,
                                             cleat_dataset **dataset, cleat_error *error);
/* The length of all samples if the profile fixes it; 0: samples differ. */
CLEAT_API int64_t cleat_model_fixed_length(const cleat_model *model);

/* What a built graph offers. Inputs carry the names of the dataset's fields, and besides
 *   scale  f32         the weights of samples in the loss terms (cleat_model_sample_weight), in a shape
 *                      of the family's choice
 *   rng    u32 [4]     dropout: seed low, seed high, optimizer step, samples of the global batch before
 *                      this micro-batch
 *   seed   f32 [1]     the gradient that arrives at the loss: 1; under f16 autocast it is the state of
 *                      cleat_loss_scale_states instead
 *   samples i32 [1]    number of leading slots of the micro-batch that hold a sample; only for
 *                      families that request it */
typedef struct cleat_model_graph {
    cleat_tensor *output; /* kept */
    cleat_tensor *loss;   /* f32 [1], kept; NULL when predicting */
    cleat_tensor *terms;  /* f32 [K] state: every run adds its weighted terms; NULL when predicting */
} cleat_model_graph;

/* Appends the model for batches [B, L] to an empty graph, gradients included in training mode. Errors are
 * kept by the graph (cleat_graph_status). */
CLEAT_API void cleat_model_build(const cleat_model *model, cleat_graph *graph, cleat_mode mode, int64_t batch,
                                 int64_t length, cleat_model_graph *built);

/* A batch on the host, as the loader filled it. All pointers are borrowed. */
typedef struct cleat_host_batch {
    int64_t batch, length; /* B, L */
    /* by the dataset's field index, each [B, shape...]; NULL: not an input of the graph */
    const void *const *fields;
    const cleat_dataset *dataset;
    const uint32_t *samples; /* [count] of the dataset; slots from there on are empty */
    int64_t count;
} cleat_host_batch;

/* Writes the graph input `scale`: the weight of each sample (or item) of a micro-batch in the loss of its
 * global batch. The loss is a mean over the samples of the global batch, or over its items, depending on
 * the family. Weights are divided by the count of the whole global batch, so the losses and gradients of
 * its micro-batches add up to those of one large batch. */
CLEAT_API void cleat_model_sample_weight(const cleat_model *model, const cleat_host_batch *batch,
                                         const cleat_global_batch *global_batch, float *sample_weight);

enum { CLEAT_MAX_METRICS = 48 };

/* Named numbers: loss terms and metrics. */
typedef struct cleat_metric {
    char name[48];
    double value;
} cleat_metric;

typedef struct cleat_metrics {
    size_t count;
    cleat_metric items[CLEAT_MAX_METRICS];
} cleat_metrics;

/* The value of a metric; NaN if there is none of that name. */
CLEAT_API double cleat_metrics_get(const cleat_metrics *metrics, const char *name);
/* Appends a metric; metrics beyond CLEAT_MAX_METRICS are dropped. */
CLEAT_API void cleat_metrics_add(cleat_metrics *metrics, const char *name, double value);

/* Metrics of an evaluation, besides the loss terms. `metric_state` [cleat_model_metric_state_size] holds
 * the running sums they are made of, zero at first. Adds those of a batch: output [B, ...] f32 as the
 * graph wrote it. */
CLEAT_API size_t cleat_model_metric_state_size(const cleat_model *model);
CLEAT_API cleat_status cleat_model_metric_update(const cleat_model *model, const cleat_host_batch *batch,
                                                 const float *output, double *metric_state, cleat_error *error);
/* Appends the metrics computed from metric_state; NaN where nothing was measured. */
CLEAT_API void cleat_model_metric_compute(const cleat_model *model, const double *metric_state, cleat_metrics *metrics);

/* One prediction for cleat_model_write. All pointers are borrowed. */
typedef struct cleat_prediction {
    const cleat_dataset *dataset;
    size_t sample;
    const float *output; /* this sample's part, [L, ...] */
    int64_t length;      /* L it was padded to */
} cleat_prediction;
/* True if each prediction is written to separate files, so that predictions can be written in groups. */
CLEAT_API bool cleat_model_writes_each(const cleat_model *model);
CLEAT_API cleat_status cleat_model_write(const cleat_model *model, const cleat_prediction *predictions, size_t count,
                                         const char *folder, cleat_error *error);

#ifdef __cplusplus
}
#endif
#endif
