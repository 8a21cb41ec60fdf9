/* A model family in one file, as an example: lines "x y" of a text file, and a small network that learns y
 * from x.
 *
 * Besides this file, a family needs a line in the list (list.c here, src/models/list.c in the library), a
 * profile (toy.ini), and a row in a test (test_toy.c). */
#include "cleat/ops.h"
#include "core/files.h"
#include "core/memory.h"
#include "core/string.h"
#include "data/dataset.h"
#include "models/model.h"
#include "nn/transformer.h"
#include "platform/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- settings: a struct, a table of keys, checks -------------------------------------------------------------- */

typedef struct toy_settings {
    cleat_data_settings common; /* first in every family */
    int64_t hidden;
    double dropout;
    double val_fraction;
    double scale; /* divisor of y */
} toy_settings;

#define RECORD toy_settings
#include "ini/rows.h"

/* Keys that other families share are rows of models/settings.h. `hidden` is specific to this family, with its
 * own default. */
static const cleat_key keys[] = {
    {FIELD(model, hidden, hidden), INT(1, 64, "12"), SHAPES, .help = "Units of the hidden layer."},
    DROPOUT_ROW(dropout),
    PATH_ROW(common),
    VAL_FRACTION_ROW(val_fraction),
    LIMIT_ROW(common),
    {FIELD(data, scale, scale), FLOAT(1e-6, 1e6, "1"), SHAPES, .help = "Divisor of the second number of a line."},
    {.name = NULL},
};

static cleat_status check(const void *settings, const cleat_record *record, cleat_error *error) {
    const toy_settings *s = settings;
    if (s->dropout == 0 || s->hidden > 1) return CLEAT_OK;
    return cleat_record_contradict(record, error, "model.dropout", "model.hidden", "a single unit cannot be dropped");
}

static const toy_settings *settings_of(const cleat_model *model) {
    return model->settings;
}

/* --- data: a dataset class ------------------------------------------------------------------------------------ */

enum { X, TARGET, FIELDS };
static const cleat_field fields[FIELDS] = {
    [X] = {.name = "x", .dtype = CLEAT_F32, .rank = 1, .shape = {1}},
    [TARGET] = {.name = "target", .dtype = CLEAT_F32, .rank = 1, .shape = {1}},
};

typedef struct toy_dataset {
    cleat_dataset common; /* first */
    double val_fraction;
    float (*values)[FIELDS]; /* [count] */
} toy_dataset;

static const char *id_of(const cleat_dataset *dataset, size_t sample) {
    (void)dataset;
    return sample % 2 ? "odd" : "even";
}

static int64_t length_of(const cleat_dataset *dataset, size_t sample) {
    (void)dataset;
    (void)sample;
    return 1;
}

static cleat_split split_of(const cleat_dataset *dataset, size_t sample) {
    const double place = cleat_hashed_place(&sample, sizeof sample);
    return place < ((const toy_dataset *)dataset)->val_fraction ? CLEAT_SPLIT_VAL : CLEAT_SPLIT_TRAIN;
}

static cleat_status fill(const cleat_dataset *dataset, size_t sample, int64_t length, const cleat_rng_key *rng_key,
                         void *const *slots, cleat_error *error) {
    (void)length;
    (void)rng_key;
    (void)error;
    for (int f = 0; f < FIELDS; ++f)
        if (slots[f]) memcpy(slots[f], &((const toy_dataset *)dataset)->values[sample][f], sizeof(float));
    return CLEAT_OK;
}

static void destroy(cleat_dataset *dataset) {
    cleat_free(((toy_dataset *)dataset)->values);
    cleat_free(dataset);
}

static const cleat_dataset_class dataset_class = {.name = "toy",
                                                  .fields = fields,
                                                  .n_fields = FIELDS,
                                                  .id = id_of,
                                                  .length = length_of,
                                                  .split = split_of,
                                                  .fill = fill,
                                                  .destroy = destroy};

static cleat_status read_lines(const char *path, char *text, double scale, toy_dataset *toy, cleat_error *error) {
    size_t capacity = 0, line = 0;
    for (char *next = text, *end; next; next = end ? end + 1 : NULL, ++line) {
        float x, y;
        if ((end = strchr(next, '\n'))) *end = 0;
        if (!*next) continue;
        if (sscanf(next, "%f %f", &x, &y) != 2)
            return cleat_fail(error, CLEAT_ERR_FORMAT, "%s:%zu: '%.60s' is not two numbers", path, line + 1, next);
        cleat_status status = cleat_grow(&toy->values, toy->common.count, &capacity, error);
        if (status) return status;
        toy->values[toy->common.count][X] = x;
        toy->values[toy->common.count++][TARGET] = (float)(y / scale);
    }
    return CLEAT_OK;
}

static cleat_status open_data(cleat_model *model, const char *path, cleat_mode mode, const char *fitted,
                              cleat_dataset **dataset, cleat_error *error) {
    char *text = NULL;
    size_t size;
    (void)mode;
    (void)fitted;
    cleat_status status = cleat_file_read(path, &text, &size, error);
    if (status) return status;
    toy_dataset *toy = cleat_alloc(1, sizeof *toy);
    if (!toy) status = cleat_fail(error, CLEAT_ERR_MEMORY, "%s: no memory for the dataset", path);
    if (!status) {
        toy->common.type = &dataset_class;
        toy->val_fraction = settings_of(model)->val_fraction;
        status = read_lines(path, text, settings_of(model)->scale, toy, error);
    }
    cleat_free(text);
    if (status) {
        if (toy) destroy(&toy->common);
        return status;
    }
    *dataset = &toy->common;
    return CLEAT_OK;
}

/* The same fields with random numbers, for benchmarks and the tuner. */
static size_t synthetic_fields(const cleat_model *model, cleat_synthetic_field *made) {
    (void)model;
    for (int f = 0; f < FIELDS; ++f) made[f] = cleat_synthetic_floats(fields[f].name, 1, fields[f].shape);
    return FIELDS;
}

static int64_t fixed_length(const cleat_model *model) {
    (void)model;
    return 1;
}

/* --- the graph and the loss ----------------------------------------------------------------------------------- */

static const char *const terms[] = {"squared_error"};

static void build(const cleat_model *model, cleat_graph *graph, cleat_mode mode, int64_t batch, int64_t length,
                  cleat_model_graph *built) {
    const toy_settings *s = settings_of(model);
    const int64_t shape[2] = {batch, 1};
    (void)length;
    cleat_tensor *x = cleat_model_add_values(graph, "x", 2, shape), *target = NULL; /* [B, 1] */
    if (mode != CLEAT_MODE_PREDICT) target = cleat_input(graph, "target", CLEAT_F32, 2, shape);
    cleat_model_inputs inputs = cleat_model_add_inputs(graph, mode, 1, &batch);
    x = cleat_relu(graph, cleat_nn_linear(graph, "hidden", x, s->hidden, NULL)); /* [B, hidden] */
    if (mode == CLEAT_MODE_TRAIN && s->dropout > 0) x = cleat_dropout(graph, x, inputs.rng, (float)s->dropout);
    cleat_model_begin_f32_head(graph);
    cleat_tensor *y = cleat_nn_linear(graph, "head", x, 1, NULL); /* [B, 1] */
    y = cleat_model_output(graph, y, built);
    if (mode == CLEAT_MODE_PREDICT) return;
    cleat_model_add_loss(graph, mode, &inputs, cleat_mse_loss(graph, y, target, inputs.sample_weight), built);
}

/* sample_weight [B]: one over the samples of the global batch. */
static void sample_weight(const cleat_model *model, const cleat_host_batch *batch,
                          const cleat_global_batch *global_batch, float *values) {
    (void)model;
    for (int64_t b = 0; b < batch->batch; ++b)
        values[b] = b < batch->count ? 1.0f / (float)global_batch->samples : 0.0f;
}

/* --- metrics and predictions ---------------------------------------------------------------------------------- */

static const cleat_metric_info metrics[] = {{"mae", false}, {"within_tenth", true}, {NULL, false}};

enum { SAMPLES, ERRORS, WITHIN, METRIC_STATE };

static size_t metric_state_size(const cleat_model *model) {
    (void)model;
    return METRIC_STATE;
}

static cleat_status metric_update(const cleat_model *model, const cleat_host_batch *batch, const float *output,
                                  double *metric_state, cleat_error *error) {
    const float *target = batch->fields[TARGET];
    (void)model;
    (void)error;
    for (int64_t b = 0; b < batch->count; ++b) {
        const double off = fabs((double)output[b] - (double)target[b]);
        metric_state[SAMPLES] += 1;
        metric_state[ERRORS] += off;
        metric_state[WITHIN] += off < 0.1;
    }
    return CLEAT_OK;
}

static void metric_compute(const cleat_model *model, const double *metric_state, cleat_metrics *found) {
    (void)model;
    cleat_metrics_add(found, "mae", metric_state[ERRORS] / metric_state[SAMPLES]);
    cleat_metrics_add(found, "within_tenth", metric_state[WITHIN] / metric_state[SAMPLES]);
}

/* FOLDER/predictions.txt: one number per line, in the file's order. */
static cleat_status write_labels(const cleat_model *model, const cleat_prediction *predictions, size_t count,
                                 const char *folder, cleat_error *error) {
    char path[4096];
    cleat_string text = {0};
    cleat_status status = cleat_path_join(folder, "predictions.txt", path, sizeof path, error);
    for (size_t i = 0; i < count; ++i)
        cleat_string_add(&text, "%.6g\n", (double)predictions[i].output[0] * settings_of(model)->scale);
    if (!status && text.failed) status = cleat_fail(error, CLEAT_ERR_MEMORY, "%s: out of memory", path);
    if (!status) status = cleat_file_write(path, text.data, text.size, error);
    cleat_string_free(&text);
    return status;
}

const cleat_model_class cleat_toy = {
    .name = "toy",
    .keys = keys,
    .settings_size = sizeof(toy_settings),
    .check = check,
    .metrics = metrics,
    .terms = terms,
    .n_terms = 1,
    .open_data = open_data,
    .fields = synthetic_fields,
    .fixed_length = fixed_length,
    .build = build,
    .sample_weight = sample_weight,
    .metric_state_size = metric_state_size,
    .metric_update = metric_update,
    .metric_compute = metric_compute,
    .write = write_labels,
};
