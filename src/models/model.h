/* What a model family provides: one file here (or a few of one name), one line in models.c. */
#ifndef CLEAT_SRC_MODEL_H
#define CLEAT_SRC_MODEL_H

#include <cjson/cJSON.h>

#include "cleat/models.h"

typedef struct cleat_metric_info {
    const char *name;
    bool rises; /* higher is better */
} cleat_metric_info;

/* The arrays of a reference trajectory (or of a benchmark): input and target as the family understands them. */
typedef struct cleat_reference {
    int64_t batch, length;
    const void *input;      /* tokens i64 [B, L], or f32 values */
    const void *target;     /* f32 or i64 */
    const int64_t *lengths; /* [B]; NULL: all full */
} cleat_reference;

typedef struct cleat_model_class {
    const char *name; /* profile: model.type */
    const char *const *terms;
    int n_terms;
    const cleat_metric_info *metrics;
    int n_metrics;
    cleat_status (*open_data)(const cleat_model *model, const char *path, cleat_mode mode, cleat_dataset **dataset,
                              cleat_error *error);
    void (*build)(const cleat_model *model, cleat_graph *graph, cleat_mode mode, int64_t batch, int64_t length,
                  cleat_model_graph *built);
    void (*scale)(const cleat_model *model, const cleat_host_batch *batch, const cleat_window *window, float *scale);
    cleat_status (*measure)(const cleat_model *model, const cleat_host_batch *batch, const float *output, double *sums,
                            double *counts, cleat_error *error);
    cleat_status (*write)(const cleat_model *model, const cleat_prediction *predictions, size_t count,
                          const char *folder, cleat_error *error);
    /* Reference trajectories and benchmarks. Whether `config` describes this family; if so sets the sizes and
     * the loss of `model`, whose profile holds the defaults. */
    bool (*from_reference)(const cJSON *config, cleat_model *model);
    /* Writes the graph's input called `name` from the trajectory's arrays. */
    void (*reference_input)(const cleat_model *model, const cleat_reference *reference, const char *name, void *values);
} cleat_model_class;

struct cleat_model {
    const cleat_model_class *type;
    cleat_profile profile;
    int64_t vocabulary;  /* of a reference trajectory; 0: the family's own */
    bool reference_loss; /* the loss of reference trajectories */
};

/* The model a trajectory's `config` (JSON) describes; CLEAT_ERR_NOT_SUPPORTED where no family knows it. */
cleat_status cleat_model_from_reference(const char *config, cleat_model **model, cleat_error *error);

/* Writes the graph's input `name` from a trajectory's arrays; inputs the family does not know stay as they are. */
void cleat_model_reference_input(const cleat_model *model, const cleat_reference *reference, const char *name,
                                 void *values);

extern const cleat_model_class cleat_rna_transformer;

#endif
