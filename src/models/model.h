/* Interface of a model family: a file here (or several with a common name) with its settings, graph, loss,
 * data, metrics and predictions, and one line in list.c. */
#ifndef CLEAT_SRC_MODEL_H
#define CLEAT_SRC_MODEL_H

#include "cleat/models.h"
#include "data/synthetic.h"
#include "models/labels.h"
#include "models/settings.h"
#include "weights/architecture.h"

enum { CLEAT_MODEL_FIELDS = 8, CLEAT_MODEL_STAGES = 4, CLEAT_MODEL_LAYERS = 16 };

/* Sizes that a family's graphs take from the data, or without data from cleat_model_set_sizes; 0: a
 * default, or the profile's value. */
typedef struct cleat_model_sizes {
    int64_t vocabulary;      /* tokens of the vocabulary */
    int64_t classes;         /* classes of samples, word tags, or pixels */
    int64_t inputs, outputs; /* input and forecast columns of a series; channels of an image */
    /* Sizes of networks that profiles cannot describe, used by verification and benchmarks. */
    int64_t hidden[CLEAT_MODEL_LAYERS]; /* widths of a dense network's layers */
    int64_t blocks[CLEAT_MODEL_STAGES]; /* blocks of each stage of a residual network */
    int64_t stage_widths[CLEAT_MODEL_STAGES], stage_heads[CLEAT_MODEL_STAGES], stage_reductions[CLEAT_MODEL_STAGES],
        stage_depths[CLEAT_MODEL_STAGES]; /* SegFormer: all four arrays, and `decoder` */
    int64_t decoder;
    /* texts: 1 if the data have the field `types` although the profile names no column of second texts */
    int64_t pairs;
    double bond; /* Angstrom: target length of the bond term; 0: the range of the bond term is used */
} cleat_model_sizes;

/* A metric that run.metric can name, besides `loss`. */
typedef struct cleat_metric_info {
    const char *name;
    bool ascends; /* larger is better */
} cleat_metric_info;

/* How a family shows evaluations (models/examples.h). */
typedef struct cleat_model_examples cleat_model_examples;

/* A family from whose runs another one can start. */
typedef struct cleat_model_origin {
    const char *type; /* its name */
    /* Rows for the parameters that both have. Parameters without a row, and those of the head if their shapes
     * differ, are initialised randomly. NULL: both have all parameters except the head. */
    const cleat_architecture *shared;
} cleat_model_origin;

/* A setting of [data] that a dataset overrides with its own value. */
typedef struct cleat_data_override {
    const char *key, *value, *source; /* "lowercase", "true", "the file of the tokenizer" */
} cleat_data_override;

/* An export of a checkpoint at the time when a family adds its files. */
typedef struct cleat_model_export {
    const char *checkpoint, *out;           /* folders */
    const cleat_safetensors *tensors;       /* of the checkpoint */
    const cleat_architecture *architecture; /* of the network in the export */
    bool adapters;                          /* they are exported alone: there is no config.json */
} cleat_model_export;

struct cleat_model_class {
    const char *name; /* model.type in the profile */
    /* Settings: a struct that begins with cleat_data_settings, and its keys of [model], [data] and [loss]
     * in the order of resolved.ini, terminated by a key without a name. `defaults` (or NULL) sets fields
     * that no key sets. */
    const cleat_key *keys;
    size_t settings_size;
    void (*defaults)(void *settings);
    /* Checks for conflicting settings; NULL: there are no such conflicts. */
    cleat_status (*check)(const void *settings, const cleat_record *record, cleat_error *error);
    const cleat_metric_info *metrics; /* terminated by a NULL name */
    /* What samples have besides one class (models/targets.h); NULL: nothing. */
    cleat_problem (*problem)(const void *settings);
    const char *const *terms;
    int n_terms;
    /* Quick check before a training that the files of the data exist and have the columns of the settings.
     * NULL: open_data reports it. */
    cleat_status (*check_data)(const cleat_model *model, const char *path, cleat_error *error);
    /* Opens the dataset and sets model->sizes. */
    cleat_status (*open_data)(cleat_model *model, const char *path, cleat_mode mode, const char *fitted,
                              cleat_dataset **dataset, cleat_error *error);
    int64_t (*fixed_length)(const cleat_model *model); /* NULL: samples differ in length */
    void (*build)(const cleat_model *model, cleat_graph *graph, cleat_mode mode, int64_t batch, int64_t length,
                  cleat_model_graph *built);
    /* Depth of a parameter, for train.layer_decay and train.freeze: 0 embeddings or stem, 1 .. `layers` blocks,
     * layers + 1 the head. NULL: the family's parameters are one group. */
    int64_t (*layer_of)(const cleat_model *model, const char *param);
    int64_t (*layers)(const cleat_model *model);
    void (*sample_weight)(const cleat_model *model, const cleat_host_batch *batch,
                          const cleat_global_batch *global_batch, float *sample_weight);
    size_t (*metric_state_size)(const cleat_model *model);
    cleat_status (*metric_update)(const cleat_model *model, const cleat_host_batch *batch, const float *output,
                                  double *metric_state, cleat_error *error);
    void (*metric_compute)(const cleat_model *model, const double *metric_state, cleat_metrics *metrics);
    /* After an evaluation of a training, before its metrics: takes from the state what predictions need, for the model
     * and for checkpoints of the dataset (thresholds). NULL: nothing. */
    cleat_status (*fit_outputs)(cleat_model *model, const double *metric_state, const cleat_dataset *dataset,
                                cleat_error *error);
    cleat_status (*write)(const cleat_model *model, const cleat_prediction *predictions, size_t count,
                          const char *folder, cleat_error *error);
    /* Condenses the output [each] of a sample, slot b of the batch, to what `write` and `examples` read, for
     * outputs that are too large to be kept for thousands of samples. The caller frees *kept [*values]. NULL:
     * they read the output itself (cleat_model_keep). */
    cleat_status (*condense)(const cleat_model *model, const cleat_host_batch *batch, int64_t b, const float *output,
                             int64_t each, float **kept, int64_t *values, cleat_error *error);
    /* One output for a sample of several models' outputs [n], each [values], in their form: probabilities and
     * quantities are averaged, of structures one is chosen. NULL: predictions of several models cannot be combined. */
    cleat_status (*combine)(const cleat_model *model, const float *const *outputs, size_t n, int64_t values,
                            float *combined, cleat_error *error);
    /* The meaning of an output depends on the fitted preprocessing (units of a series, tokens of words): only models
     * with the same are combined. Otherwise each reads the samples in its own way. */
    bool combines_same_fit;
    /* Writes FOLDER/submission.csv, the file of a competition, of structures [members, samples].
     * NULL: the family has no such file. */
    cleat_status (*write_submission)(const cleat_model *model, const cleat_prediction *structures, size_t members,
                                     size_t samples, const char *folder, cleat_error *error);
    /* Metrics of sample b of a batch that need the outputs [n] of several models, such as the best of them; NULL:
     * there are none. */
    cleat_status (*metric_update_members)(const cleat_model *model, const cleat_host_batch *batch, int64_t b,
                                          const float *const *outputs, size_t n, double *metric_state,
                                          cleat_error *error);
    /* Writes the data fields that the graphs read to `fields` [CLEAT_MODEL_FIELDS], in the order of the
     * dataset, with the kind of synthetic values to use without data; returns their number. */
    size_t (*fields)(const cleat_model *model, cleat_synthetic_field *fields);
    /* each sample gets separate files: `write` may be called with a part of the samples */
    bool writes_each;
    /* The data whose size determines the graph but is not in a checkpoint ("the maps"); NULL: none. */
    const char *sized_by;
    const cleat_label_source *labels; /* NULL: the outputs have no names */
    /* Whether a dataset overrides a setting; NULL: none does. */
    bool (*overrides)(const cleat_dataset *dataset, cleat_data_override *setting);
    /* export_files adds files about the data that transformers or timm need beside config.json; NULL: none.
     * It is called before config.json is written, whose model_type changes how a tokenizer is read, unless it
     * completes that file. */
    bool completes_config;
    cleat_status (*export_files)(const cleat_model *model, const cleat_model_export *spec, cleat_error *error);
    const cleat_model_examples *examples; /* NULL: a run of the family has no examples */
    /* The published networks that the family's settings can describe, terminated by NULL; NULL: there are none. */
    const cleat_architecture *const *architectures;
    /* The one that the model's settings describe, of timm or of transformers, as requested, if both libraries
     * have it; NULL, as a result or member: only cleat has the network. */
    const cleat_architecture *(*architecture)(const cleat_model *model, bool timm);
    const cleat_model_origin *origins; /* other families for model.init, terminated by a NULL type; NULL: none */
    /* The formats of `cleat export` to use where ONNX has no translation of the family; NULL: it has one. */
    const char *instead_of_onnx;
    /* A profile of the project that gives no sizes of the network, for a start from weights; NULL: none. */
    const char *init_profile;
    const char *peft_task; /* task_type of a PEFT adapter; NULL: none */
};

/* The entry of `origins` for a family; NULL: none. */
const cleat_model_origin *cleat_model_origin_of(const cleat_model_class *type, const char *family);

struct cleat_model {
    const cleat_model_class *type;
    void *settings; /* the family's struct, owned by the model */
    cleat_model_options options;
    cleat_model_sizes sizes;
    size_t evaluated; /* most samples of an evaluation, for metrics of kept predictions */
    void *own;        /* data of the family in one allocation, freed with the model; NULL: none */
};

/* check_data of the model's family. */
cleat_status cleat_model_check_data(const cleat_model *model, const char *path, cleat_error *error);
/* The same for a family whose data have no columns with names in settings: only checks that the path exists. */
cleat_status cleat_model_check_path(const cleat_model *model, const char *path, cleat_error *error);
/* Sets model->sizes from a JSON object. Each member names a member of cleat_model_sizes, with a number
 * above 0 or a list of such numbers; a number in place of a list of stages applies to all four. For models
 * without data. CLEAT_ERR_FORMAT leaves the sizes unchanged. */
cleat_status cleat_model_set_sizes(cleat_model *model, const char *json, cleat_error *error);
/* Opens `count` synthetic samples of `length` (cleat_synthetic_open) for a model without data. */
cleat_status cleat_model_open_synthetic(const cleat_model *model, int64_t count, int64_t length,
                                        cleat_dataset **dataset, cleat_error *error);

/* Inputs of models whose loss has one term. */
typedef struct cleat_model_inputs {
    cleat_tensor *sample_weight, *rng, *seed; /* all NULL when predicting */
    cleat_tensor *samples;                    /* NULL when predicting, and if the family does not add it */
} cleat_model_inputs;
/* Starting gradient of cleat_backward: the input `seed`, or in f16 the loss scale. Call it before
 * cleat_model_begin_f32_head. */
cleat_tensor *cleat_model_add_seed(cleat_graph *graph);
/* Appends the input `name` for the values of the samples (images, series). It has the storage type of
 * autocast, in which batches are uploaded to the device. */
cleat_tensor *cleat_model_add_values(cleat_graph *graph, const char *name, int rank, const int64_t *shape);
/* Appends the inputs supplied by the runtime; sample_weight has shape [rank]. */
cleat_model_inputs cleat_model_add_inputs(cleat_graph *graph, cleat_mode mode, int rank,
                                          const int64_t *sample_weight_shape);
/* Appends the input `samples` i32 [1], the number of samples in the batch, for models whose samples
 * interact (batch normalisation): empty slots must not contribute to the statistics. NULL when predicting. */
cleat_tensor *cleat_model_add_samples(cleat_graph *graph, cleat_mode mode);
/* Sample weights [B] of a mean over the global batch: 1 / number of its samples. */
void cleat_model_mean_weight(const cleat_model *model, const cleat_host_batch *batch,
                             const cleat_global_batch *global_batch, float *values);
/* Call before the layer whose results are quantities (forecasts, coordinates): everything after it is
 * computed in f32, because rounding to half precision changes a value by up to 2^-9 of itself. Logits do
 * not need this. */
void cleat_model_begin_f32_head(cleat_graph *graph);
/* Retains y as the model's output, converted to f32 from any storage type, starts *built with it, and
 * returns it. */
cleat_tensor *cleat_model_output(cleat_graph *graph, cleat_tensor *y, cleat_model_graph *built);
/* Logits of the classes of a sample, of each token or pixel -> logits whose softmax is the mean of the softmaxes; of
 * masks in black and white, whose sigmoid is the mean of the sigmoids. Equal rows are copied: they keep their bits. */
cleat_status cleat_combine_classes(const cleat_model *model, const float *const *outputs, size_t n, int64_t values,
                                   float *combined, cleat_error *error);
/* The mean of each value. */
cleat_status cleat_combine_mean(const cleat_model *model, const float *const *outputs, size_t n, int64_t values,
                                float *combined, cleat_error *error);
/* Retains and records `loss` as term 0 and as the total loss, and in training mode appends its gradients. */
void cleat_model_add_loss(cleat_graph *graph, cleat_mode mode, const cleat_model_inputs *inputs, cleat_tensor *loss,
                          cleat_model_graph *built);

extern const cleat_model_class *const cleat_model_classes[]; /* list.c; terminated by NULL */

#endif
