/* What a model family provides: one file here (or a few of one name), one line in models.c. */
#ifndef CLEAT_SRC_MODEL_H
#define CLEAT_SRC_MODEL_H

#include <cjson/cJSON.h>

#include "cleat/models.h"

/* An array of a reference trajectory. */
typedef struct cleat_reference_array {
    const void *data;
    bool integers; /* int64_t, else float */
    int64_t below; /* integers: they lie in [0, below), for those that are made up */
    int rank;
    int64_t shape[CLEAT_MAX_RANK];
} cleat_reference_array;

/* The arrays of a reference trajectory (or of a benchmark): input [B, ...] and target [B, ...] as the family understands
 * them. */
typedef struct cleat_reference {
    int64_t batch, length; /* of `input`; length 1 where it is [B, C] */
    cleat_reference_array input, target;
    const int64_t *lengths; /* [B]; NULL: all full */
} cleat_reference;

/* What a reference trajectory says of its model. */
typedef struct cleat_reference_config {
    const cJSON *json; /* "config" */
    /* Extent `axis` of the trajectory's parameter `name`, 0 where there is none such. NULL: no parameters are known. */
    int64_t (*extent)(void *user, const char *name, int axis);
    void *user;
} cleat_reference_config;

/* What a family's graphs take from its data; 0 where they do not. */
typedef struct cleat_model_sizes {
    int64_t vocabulary;      /* pieces of text */
    int64_t classes;         /* of samples, or tags of words */
    int64_t inputs, outputs; /* columns of a series, seen and forecast */
} cleat_model_sizes;

typedef struct cleat_model_class {
    const char *name; /* profile: model.type */
    const char *const *terms;
    int n_terms;
    /* Sets model->sizes too. */
    cleat_status (*open_data)(cleat_model *model, const char *path, cleat_mode mode, const char *fitted,
                              cleat_dataset **dataset, cleat_error *error);
    int64_t (*fixed_length)(const cleat_model *model); /* NULL: samples differ in length */
    void (*build)(const cleat_model *model, cleat_graph *graph, cleat_mode mode, int64_t batch, int64_t length,
                  cleat_model_graph *built);
    void (*sample_weight)(const cleat_model *model, const cleat_host_batch *batch,
                          const cleat_global_batch *global_batch, float *sample_weight);
    size_t (*metric_state_size)(const cleat_model *model);
    cleat_status (*metric_update)(const cleat_model *model, const cleat_host_batch *batch, const float *output,
                                  double *metric_state, cleat_error *error);
    void (*metric_compute)(const cleat_model *model, const double *metric_state, cleat_metrics *metrics);
    cleat_status (*write)(const cleat_model *model, const cleat_prediction *predictions, size_t count,
                          const char *folder, cleat_error *error);
    bool writes_each; /* files of its own for each sample: write may be called for some of them at a time */
    /* Reference trajectories and benchmarks. Where `config` describes this family, sets the sizes and the loss of `model`,
     * whose profile holds the defaults; CLEAT_ERR_NOT_SUPPORTED, without a text, where it does not. */
    cleat_status (*from_reference)(const cleat_reference_config *config, cleat_model *model, cleat_error *error);
    /* Says what arrays a trajectory of batches [B, L] has: type and shape of reference->input and target. */
    void (*reference_arrays)(const cleat_model *model, cleat_reference *reference);
    /* Writes the graph's input called `name` from the trajectory's arrays. */
    void (*reference_input)(const cleat_model *model, const cleat_reference *reference, const char *name, void *values);
} cleat_model_class;

struct cleat_model {
    const cleat_model_class *type;
    cleat_profile profile;
    cleat_model_sizes sizes;
    void *own;           /* the family's, from one allocation; NULL: it needs nothing */
    bool reference_loss; /* the loss of reference trajectories */
};

/* The model a trajectory's `config` (JSON) describes, with what its parameters tell (config->json is not looked at);
 * CLEAT_ERR_NOT_SUPPORTED where no family knows it. `parameters` NULL: the JSON says it all. */
cleat_status cleat_model_from_reference(const char *json, const cleat_reference_config *parameters, cleat_model **model,
                                        cleat_error *error);
/* The number `key` of the JSON, or where it has none the extent `axis` of parameter `param` (NULL: of none); 0 where
 * neither is there. */
int64_t cleat_reference_size(const cleat_reference_config *config, const char *key, const char *param, int axis);
/* Whether the loss that the JSON states in words contains `words`. */
bool cleat_reference_loss_says(const cleat_reference_config *config, const char *words);

/* What models with a loss of one term have in common. */
typedef struct cleat_model_inputs {
    cleat_tensor *sample_weight, *rng, *seed; /* all NULL when predicting */
    cleat_tensor *samples;                    /* NULL when predicting, and where the family does not add it */
} cleat_model_inputs;
/* What cleat_backward starts from: the input `seed`, or in f16 the loss scale. Call it before cleat_model_begin_f32_head. */
cleat_tensor *cleat_model_add_seed(cleat_graph *graph);
/* The input `name` of a sample's own values (images, series), in the storage type of autocast: a batch comes to the device in it. */
cleat_tensor *cleat_model_add_values(cleat_graph *graph, const char *name, int rank, const int64_t *shape);
/* Appends the runtime's inputs; scale of shape [rank]. */
cleat_model_inputs cleat_model_add_inputs(cleat_graph *graph, cleat_mode mode, int rank,
                                          const int64_t *sample_weight_shape);
/* Appends the input `samples` i32 [1], for models in which samples of a batch mix (batch normalisation): empty slots must not
 * count there. NULL when predicting. */
cleat_tensor *cleat_model_add_samples(cleat_graph *graph, cleat_mode mode);
/* Before the layer whose results are quantities (forecasts, coordinates): from here on all is computed in f32, because a result that is
 * stored in half is off by up to 2^-9 of itself. Logits can do without. */
void cleat_model_begin_f32_head(cleat_graph *graph);
/* Keeps y as the model's output, f32 whatever y is stored as, begins *built with it, and returns it. */
cleat_tensor *cleat_model_output(cleat_graph *graph, cleat_tensor *y, cleat_model_graph *built);
/* Keeps and records `loss` as term 0 and as the whole, and in training mode appends its gradients. */
void cleat_model_add_loss(cleat_graph *graph, cleat_mode mode, const cleat_model_inputs *inputs, cleat_tensor *loss,
                          cleat_model_graph *built);

/* A reference of the family with made-up arrays, for measurements: random numbers, samples of full length. The caller
 * frees it. */
cleat_status cleat_reference_make(const cleat_model *model, int64_t batch, int64_t length, cleat_reference *reference,
                                  cleat_error *error);
void cleat_reference_free(cleat_reference *reference);

/* Writes a graph's input from a trajectory's arrays, in its storage type; inputs the family does not know stay as they are, or
 * are 0 where they are halves. */
cleat_status cleat_model_reference_input(const cleat_model *model, const cleat_reference *reference,
                                         const cleat_tensor *input, void *values, cleat_error *error);

extern const cleat_model_class cleat_rna_transformer, cleat_text_classifier, cleat_text_tagger, cleat_series_lstm,
    cleat_series_transformer, cleat_series_dense, cleat_image_resnet, cleat_mask_segformer, cleat_emberformer;

#endif
