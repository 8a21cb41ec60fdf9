/* What a model family provides: a file here (or a few of one name) with its settings, graph, loss, data, metrics and
 * predictions, and one line in list.c. */
#ifndef CLEAT_SRC_MODEL_H
#define CLEAT_SRC_MODEL_H

#include "cleat/models.h"
#include "data/synthetic.h"
#include "models/settings.h"

enum { CLEAT_MODEL_FIELDS = 8, CLEAT_MODEL_STAGES = 4, CLEAT_MODEL_LAYERS = 16 };

/* What a family's graphs take from its data, or where there are none from cleat_model_set_sizes; 0: a
 * usual number, or the profile's. */
typedef struct cleat_model_sizes {
    int64_t vocabulary;      /* pieces of text */
    int64_t classes;         /* of samples, tags of words, or pixels */
    int64_t inputs, outputs; /* columns of a series, seen and forecast; channels of an image */
    /* Networks that no profile describes, and that verification and benchmarks train. */
    int64_t hidden[CLEAT_MODEL_LAYERS]; /* widths of a dense network's layers */
    int64_t blocks[CLEAT_MODEL_STAGES]; /* of each stage of a residual network */
    int64_t stage_widths[CLEAT_MODEL_STAGES], stage_heads[CLEAT_MODEL_STAGES], stage_reductions[CLEAT_MODEL_STAGES],
        stage_depths[CLEAT_MODEL_STAGES]; /* of a SegFormer: all four, and `decoder` */
    int64_t decoder;
    double bond; /* Angstrom: the length that bonds are drawn to; 0: the range of the bond term */
} cleat_model_sizes;

/* A metric that run.metric can name, besides `loss`. */
typedef struct cleat_metric_info {
    const char *name;
    bool ascends; /* larger is better */
} cleat_metric_info;

struct cleat_model_class {
    const char *name; /* profile: model.type */
    /* Settings: a struct that begins with cleat_data_settings, and its keys of [model], [data] and [loss] in this order,
     * ended by one without a name; resolved.ini lists them so. `defaults` (or NULL) sets fields that no key sets. */
    const cleat_key *keys;
    size_t settings_size;
    void (*defaults)(void *settings);
    /* Settings that are wrong together; NULL: there are none. */
    cleat_status (*check)(const void *settings, const cleat_record *record, cleat_error *error);
    const cleat_metric_info *metrics; /* ends in a NULL name */
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
    /* Writes the fields of the data that the graphs read, in the order of the dataset's own, with what
     * stands for their values where there are no data, to `fields` [CLEAT_MODEL_FIELDS]; returns how many. */
    size_t (*fields)(const cleat_model *model, cleat_synthetic_field *fields);
    bool writes_each; /* files of its own for each sample: write may be called for some of them at a time */
};

struct cleat_model {
    const cleat_model_class *type;
    void *settings; /* the family's struct, the model's own */
    cleat_model_options options;
    cleat_model_sizes sizes;
    void *own; /* the family's, from one allocation; NULL: it needs nothing */
};

/* Sets model->sizes from a JSON object: a number above 0, or a list of such, for each member of
 * cleat_model_sizes that it names; a number in place of a list of stages stands for all four. For models
 * that no data are opened for. CLEAT_ERR_FORMAT leaves the sizes as they are. */
cleat_status cleat_model_set_sizes(cleat_model *model, const char *json, cleat_error *error);
/* `count` made-up samples of `length` (cleat_synthetic_open) for a model whose data are not there. */
cleat_status cleat_model_open_synthetic(const cleat_model *model, int64_t count, int64_t length,
                                        cleat_dataset **dataset, cleat_error *error);

/* What models with a loss of one term have in common. */
typedef struct cleat_model_inputs {
    cleat_tensor *sample_weight, *rng, *seed; /* all NULL when predicting */
    cleat_tensor *samples;                    /* NULL when predicting, and where the family does not add it */
} cleat_model_inputs;
/* What cleat_backward starts from: the input `seed`, or in f16 the loss scale. Call it before
 * cleat_model_begin_f32_head. */
cleat_tensor *cleat_model_add_seed(cleat_graph *graph);
/* The input `name` of a sample's own values (images, series), in the storage type of autocast: a batch
 * comes to the device in it. */
cleat_tensor *cleat_model_add_values(cleat_graph *graph, const char *name, int rank, const int64_t *shape);
/* Appends the runtime's inputs; scale of shape [rank]. */
cleat_model_inputs cleat_model_add_inputs(cleat_graph *graph, cleat_mode mode, int rank,
                                          const int64_t *sample_weight_shape);
/* Appends the input `samples` i32 [1], for models in which samples of a batch mix (batch normalisation):
 * empty slots must not count there. NULL when predicting. */
cleat_tensor *cleat_model_add_samples(cleat_graph *graph, cleat_mode mode);
/* Before the layer whose results are quantities (forecasts, coordinates): from here on all is computed in
 * f32, because a result that is stored in half is off by up to 2^-9 of itself. Logits can do without. */
void cleat_model_begin_f32_head(cleat_graph *graph);
/* Keeps y as the model's output, f32 whatever y is stored as, begins *built with it, and returns it. */
cleat_tensor *cleat_model_output(cleat_graph *graph, cleat_tensor *y, cleat_model_graph *built);
/* Keeps and records `loss` as term 0 and as the whole, and in training mode appends its gradients. */
void cleat_model_add_loss(cleat_graph *graph, cleat_mode mode, const cleat_model_inputs *inputs, cleat_tensor *loss,
                          cleat_model_graph *built);

extern const cleat_model_class *const cleat_model_classes[]; /* list.c; ends in NULL */

#endif
