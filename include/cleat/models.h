/* Models: a model family defines a graph, loss terms, metrics, and the format of its predictions.
 *
 * Letters: B slots of a batch, L padded length, K loss terms.
 *
 * Threads: only one thread at a time may use a model. */
#ifndef CLEAT_MODELS_H
#define CLEAT_MODELS_H

#include "cleat/data.h"
#include "cleat/graph.h"
#include "cleat/settings.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cleat_model cleat_model;
typedef struct cleat_model_class cleat_model_class; /* a model family */

typedef enum cleat_mode {
    CLEAT_MODE_TRAIN,    /* dropout, loss, gradients */
    CLEAT_MODE_EVALUATE, /* loss and output */
    CLEAT_MODE_PREDICT,  /* output only; needs no targets */
    CLEAT_MODE_GENERATE, /* logits of the next token, with a cache of keys and values; causal_lm only */
} cleat_mode;

enum { CLEAT_LORA_LAYERS = 64 };

enum { CLEAT_FROZEN_TEXT = 1024 };

/* How parameters are trained: settings of [train] in a profile. A parameter has a depth in its network: 0 the
 * embeddings or the stem, 1 to n the blocks, n + 1 the head; all but the head is the backbone. All zero: all
 * are trained alike, without decay_norm_bias. */
typedef struct cleat_param_options {
    double learning_rate;          /* the run's, for backbone_learning_rate */
    double backbone_learning_rate; /* of the backbone; 0: learning_rate */
    /* The learning rate of depth d is that of the backbone times layer_decay^(n + 1 - d); 0 or 1: no decay. */
    double layer_decay;
    bool decay_norm_bias; /* biases, norms and other vectors have weight decay */
    char freeze
        [32]; /* not trained: "none" or "", "embeddings", "backbone", or a number of blocks, with the embeddings */
    /* Low-rank adapters (LoRA) of linear layers of the backbone, which is otherwise frozen. */
    int64_t lora_rank; /* 0: no adapters */
    double lora_alpha; /* the adapters' results are multiplied by lora_alpha / lora_rank */
    double lora_dropout;
    char lora_layers[CLEAT_LORA_LAYERS]; /* which layers */
    /* How frozen weights of linear layers are stored on the device, where their rows are whole blocks and no other layer
     * reads them: float, q8, nf4, q4 or f16, then exceptions: "q4 emb=q8 blocks.*.att.kv=float". With nf4 and q4 the
     * embeddings are q8, unless they are an exception. auto or "": float. */
    char frozen_weights[CLEAT_FROZEN_TEXT];
} cleat_param_options;

/* Options of a model that belong to the run, not to the settings of the family. */
typedef struct cleat_model_options {
    int workers; /* threads that may prepare data while they are opened; CLEAT_AUTO: one per CPU */
    cleat_precision precision;
    int64_t loss_scale_growth_interval; /* f16: steps after which the loss scale is doubled */
    int optimizer;                      /* cleat_optimizer_kind */
    bool has_momentum;                  /* SGD: keeps a moment */
    cleat_param_options params;
    /* Graphs of CLEAT_MODE_PREDICT keep dropout, with the input `rng` if its rate is not 0; only rna_transformer. */
    bool dropout_in_prediction;
    bool next_only;       /* CLEAT_MODE_PREDICT of a series: cleat_series_options.next_only */
    int64_t context;      /* CLEAT_MODE_GENERATE: most tokens of a text */
    const char *drawings; /* folder for images with the outlines of predicted masks, borrowed; NULL: none */
} cleat_model_options;

/* Creates a model of `family`. `settings`, the settings struct of that family, is copied. The caller destroys
 * the model. */
CLEAT_API cleat_status cleat_model_create(const cleat_model_class *family, const cleat_data_settings *settings,
                                          const cleat_model_options *options, cleat_model **model, cleat_error *error);
CLEAT_API void cleat_model_destroy(cleat_model *model);
CLEAT_API const char *cleat_model_name(const cleat_model *model);

/* Number and names of the loss terms; the log has a line for each of them. */
CLEAT_API int cleat_model_terms(const cleat_model *model);
CLEAT_API const char *cleat_model_term(const cleat_model *model, int term);

/* Opens the data for training, evaluation or prediction with the data settings of the profile; generated
 * samples are added for training only. The model takes the sizes that its graphs depend on from the data:
 * vocabulary size, number of classes or columns. `fitted`: folder written by cleat_dataset_save (a
 * checkpoint) with the preprocessing fitted to the training data; NULL: it is fitted to the training part of
 * these data. The caller owns *dataset. */
CLEAT_API cleat_status cleat_model_open_data(cleat_model *model, const char *path, cleat_mode mode, const char *fitted,
                                             cleat_dataset **dataset, cleat_error *error);
/* Length of all samples if the profile fixes it; 0: lengths differ. */
CLEAT_API int64_t cleat_model_fixed_length(const cleat_model *model);

/* Outputs of a built graph. Its inputs have the names of the dataset's fields, and in addition
 *   scale  f32         sample weights of the loss terms (cleat_model_sample_weight), in a shape that the
 *                      family chooses
 *   rng    u32 [4]     for dropout: seed low, seed high, optimizer step, samples of the global batch before
 *                      this micro-batch
 *   seed   f32 [1]     gradient of the loss: 1; under f16 autocast it is the state of
 *                      cleat_loss_scale_states instead
 *   samples i32 [1]    number of leading slots of the micro-batch that hold a sample; only for families
 *                      that request it */
typedef struct cleat_model_graph {
    cleat_tensor *output; /* retained */
    cleat_tensor *loss;   /* f32 [1], retained; NULL in prediction */
    cleat_tensor *terms;  /* f32 [K] state to which every run adds its weighted terms; NULL in prediction */
} cleat_model_graph;

/* Appends the model for batches [B, L] to an empty graph, with gradients in training mode. `batch` is B. The
 * graph keeps errors (cleat_graph_status). */
CLEAT_API void cleat_model_build(const cleat_model *model, cleat_graph *graph, cleat_mode mode, int64_t batch,
                                 int64_t length, cleat_model_graph *built);

/* A micro-batch in host memory, as filled by the loader. All pointers are borrowed. */
typedef struct cleat_host_batch {
    int64_t batch, length; /* B, L */
    /* By field index of the dataset, each [B, shape...]; NULL: not an input of the graph. */
    const void *const *fields;
    const cleat_dataset *dataset;
    const uint32_t *samples; /* [count] indices into the dataset; slots from `count` on are empty */
    int64_t count;
    /* [batch] or NULL. cleat_model_metric_update replaces the values of samples that have a truth by how wrong their
     * outputs are, in the family's measure: the larger, the worse; at least 0. */
    double *badness;
} cleat_host_batch;

/* Writes the graph input `scale`: the weight of each sample (or item) of a micro-batch in the loss of its
 * global batch. The loss is a mean over the samples or over the items of the global batch, depending on the
 * family. The weights are divided by the count of the whole global batch, so the losses and gradients of its
 * micro-batches add up to those of one large batch. */
CLEAT_API void cleat_model_sample_weight(const cleat_model *model, const cleat_host_batch *batch,
                                         const cleat_global_batch *global_batch, float *sample_weight);

enum { CLEAT_MAX_METRICS = 48 };

/* A named number: a loss term or a metric. */
typedef struct cleat_metric {
    char name[48];
    double value;
} cleat_metric;

typedef struct cleat_metrics {
    size_t count;
    cleat_metric items[CLEAT_MAX_METRICS];
} cleat_metrics;

/* Value of a metric; NaN if no metric has this name. */
CLEAT_API double cleat_metrics_get(const cleat_metrics *metrics, const char *name);
/* Appends a metric; metrics beyond CLEAT_MAX_METRICS are dropped. */
CLEAT_API void cleat_metrics_add(cleat_metrics *metrics, const char *name, double value);

/* Metrics of an evaluation in addition to the loss terms. `metric_state` [cleat_model_metric_state_size]
 * holds the running sums from which they are computed; the caller sets it to zero first.
 * cleat_model_metric_update adds the sums of a batch, with output [B, ...] f32 as the graph wrote it. */
CLEAT_API size_t cleat_model_metric_state_size(const cleat_model *model);
CLEAT_API cleat_status cleat_model_metric_update(const cleat_model *model, const cleat_host_batch *batch,
                                                 const float *output, double *metric_state, cleat_error *error);
/* Appends the metrics computed from metric_state; NaN for those without data. */
CLEAT_API void cleat_model_metric_compute(const cleat_model *model, const double *metric_state, cleat_metrics *metrics);

/* Most labels of a confusion matrix; of more, the rarer ones share the last row and column, "other". */
enum { CLEAT_CONFUSION_LABELS = 64, CLEAT_CLASS_NAME = 40 };

/* Counts of true and predicted labels. */
typedef struct cleat_confusion {
    size_t labels; /* 0: there is no matrix */
    char names[CLEAT_CONFUSION_LABELS][CLEAT_CLASS_NAME];
    double counts[CLEAT_CONFUSION_LABELS * CLEAT_CONFUSION_LABELS]; /* [labels, labels]; rows: truth */
} cleat_confusion;

/* Scores of a class, a label, or a type of entities (which count as in conlleval: first word, last word and type).
 * precision = right / predicted, recall = right / support, f1 = 2 right / (predicted + support); 0 if the divisor is
 * 0. */
typedef struct cleat_class_row {
    char name[CLEAT_CLASS_NAME];
    double precision, recall, f1;
    double support; /* samples, entities or pixels of the class in the truth */
    double iou;     /* of pixels: right / (predicted + support - right); NaN if the class occurs nowhere */
} cleat_class_row;

/* What an evaluation found for each class. */
typedef struct cleat_class_table {
    size_t count; /* 0: the model has no classes */
    cleat_class_row *rows;
    bool has_iou;
    cleat_confusion confusion;
} cleat_class_table;
CLEAT_API void cleat_class_table_free(cleat_class_table *table); /* what it holds */
/* Whether a row is among the `most` with the largest support, the first of equal ones. */
CLEAT_API bool cleat_class_table_shows(const cleat_class_table *table, size_t row, size_t most);
/* Returns {"loss": 0.4, ..., "confusion": {"labels": [...], "counts": [[...], ...]} or null, "classes": [{"name":
 * "...", "precision": 0.9, ...}, ...]}, the last two only if there are classes. The caller frees *json with free(). */
CLEAT_API cleat_status cleat_class_table_json(const cleat_class_table *table, const cleat_metrics *metrics, char **json,
                                              cleat_error *error);

enum { CLEAT_BASELINE_TEXT = 160 };

/* A metric of a prediction without a model. */
typedef struct cleat_baseline {
    bool known;                     /* false: the family has none, or it could not be computed */
    char text[CLEAT_BASELINE_TEXT]; /* description of the prediction */
    char metric[48];
    double value;
    bool ascends; /* larger is better */
} cleat_baseline;

/* One prediction for cleat_model_write. The dataset is borrowed. */
typedef struct cleat_prediction {
    const cleat_dataset *dataset;
    size_t sample;
    const float *output; /* part of the sample's output that cleat_model_keep kept */
    int64_t length;      /* padded length L */
    int64_t values;      /* number of values in `output` */
} cleat_prediction;
/* Keeps the output of slot b of a batch in *prediction: a copy of its part [each] of `output` [B, each], or
 * only the part that the family needs, if that is much smaller. The caller frees it with
 * cleat_prediction_free. */
CLEAT_API cleat_status cleat_model_keep(const cleat_model *model, const cleat_host_batch *batch, int64_t b,
                                        const float *output, int64_t each, cleat_prediction *prediction,
                                        cleat_error *error);
CLEAT_API void cleat_prediction_free(cleat_prediction *prediction); /* sets output to NULL; NULL is accepted */
/* Writes predictions into `folder`. cleat_model_writes_each is true if the family writes each prediction to
 * separate files, so that predictions may be written in several calls. */
CLEAT_API bool cleat_model_writes_each(const cleat_model *model);
CLEAT_API cleat_status cleat_model_write(const cleat_model *model, const cleat_prediction *predictions, size_t count,
                                         const char *folder, cleat_error *error);

#ifdef __cplusplus
}
#endif
#endif
