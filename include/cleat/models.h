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

/* Opens the data the model learns from (with what the profile adds to them), is evaluated on, or predicts
 * for. The model takes from them what its graphs depend on: sizes of a vocabulary, numbers of classes or
 * columns. `fitted`: the folder where cleat_dataset_save kept what the data it was trained on taught (a
 * checkpoint); NULL: the training part of these data teaches it. */
CLEAT_API cleat_status cleat_model_open_data(cleat_model *model, const char *path, cleat_mode mode, const char *fitted,
                                             cleat_dataset **dataset, cleat_error *error);
/* The length of every sample, where the profile says it; 0: samples differ. */
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

/* Appends the model for batches [B, L] to an empty graph, gradients included in training mode. Errors stay
 * with the graph. */
CLEAT_API void cleat_model_build(const cleat_model *model, cleat_graph *graph, cleat_mode mode, int64_t batch,
                                 int64_t length, cleat_model_graph *built);

/* A batch on the host: what the loader filled. */
typedef struct cleat_host_batch {
    int64_t batch, length; /* B, L */
    /* by the dataset's field index, each [B, shape...]; NULL: not an input of the graph */
    const void *const *fields;
    const cleat_dataset *dataset;
    const uint32_t *samples; /* [count] of the dataset; slots from there on are empty */
    int64_t count;
} cleat_host_batch;

/* Writes the graph's input `scale`, the weight of each sample (or item) of a micro-batch in the loss of
 * its window: a mean over the window's samples, or over its items, as the family will. Divided by what the
 * whole window holds, the losses and the gradients of its micro-batches add up to those of one large
 * batch. */
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

/* The value of a metric; NaN where there is none of that name. */
CLEAT_API double cleat_metrics_get(const cleat_metrics *metrics, const char *name);
/* Appends a metric; one more than CLEAT_MAX_METRICS is dropped. */
CLEAT_API void cleat_metrics_add(cleat_metrics *metrics, const char *name, double value);

/* Metrics of an evaluation, besides the loss terms. `metric_state` [cleat_model_metric_state_size] holds
 * the running sums they are made of, zero at first. Adds those of a batch: output [B, ...] f32 as the
 * graph wrote it. */
CLEAT_API size_t cleat_model_metric_state_size(const cleat_model *model);
CLEAT_API cleat_status cleat_model_metric_update(const cleat_model *model, const cleat_host_batch *batch,
                                                 const float *output, double *metric_state, cleat_error *error);
/* Appends the metrics that the metric_state gives; NaN where there was nothing to measure. */
CLEAT_API void cleat_model_metric_compute(const cleat_model *model, const double *metric_state, cleat_metrics *metrics);

/* Collects predictions and writes them into a folder. */
typedef struct cleat_prediction {
    const cleat_dataset *dataset;
    size_t sample;
    const float *output; /* this sample's part, [L, ...] */
    int64_t length;      /* L it was padded to */
} cleat_prediction;
/* Whether each prediction becomes files of its own, so that they may be written some at a time. */
CLEAT_API bool cleat_model_writes_each(const cleat_model *model);
CLEAT_API cleat_status cleat_model_write(const cleat_model *model, const cleat_prediction *predictions, size_t count,
                                         const char *folder, cleat_error *error);

#ifdef __cplusplus
}
#endif
#endif
