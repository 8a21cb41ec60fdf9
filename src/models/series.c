/* S2: forecasts of time series. Windows [T, C] of the past to the next H steps of K columns, by an LSTM, a transformer
 * encoder (both answer from their last step) or a dense network over the whole window. Loss: mean squared error of
 * standardised values. Persistence, and persistence of the last season, are measured beside it. */
#include "cleat/ops.h"
#include "core/files.h"
#include "core/memory.h"
#include "graph/recompute.h"
#include "models/model.h"
#include "models/series_forecast.h"
#include "nn/lstm.h"
#include "nn/transformer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const terms[] = {"squared_error"};

enum { TARGET = 1 }; /* of the dataset's fields */

/* Hidden layers of a reference's dense network, by width, and what it ends in. */
enum { MAX_LAYERS = 16 };
typedef struct dense_shape {
    int64_t layers, hidden[MAX_LAYERS];
    int64_t classes; /* of its cross entropy; 0: it forecasts, as those of profiles do */
} dense_shape;

/* --- data ----------------------------------------------------------------------------------------------------- */

static int64_t fixed_length(const cleat_model *model) {
    return model->profile.data.lookback;
}

static cleat_status open_data(cleat_model *model, const char *path, cleat_mode mode, const char *fitted,
                              cleat_dataset **dataset, cleat_error *error) {
    const cleat_profile *p = &model->profile;
    cleat_series_options options = cleat_series_defaults();
    options.time_column = p->data.time_column;
    options.features = p->data.features;
    options.targets = p->data.targets;
    options.lookback = p->data.lookback;
    options.horizon = p->data.horizon;
    options.stride = p->data.stride;
    options.eval_stride = p->data.eval_stride;
    options.season = p->data.season;
    options.val_fraction = p->data.val_fraction;
    options.test_fraction = p->data.test_fraction;
    options.train_rows = p->data.train_rows;
    options.val_rows = p->data.val_rows;
    options.test_rows = p->data.test_rows;
    options.gaps = (cleat_series_gaps)p->data.gaps;
    options.missing = (cleat_series_missing)p->data.missing;
    options.anchor = (cleat_series_anchor)p->data.anchor;
    options.fitted = fitted;
    options.evaluation = mode == CLEAT_MODE_EVALUATE && fitted;
    options.forecast = mode == CLEAT_MODE_PREDICT;
    if (p->data.frames.count > CLEAT_SERIES_MAX_RESAMPLES)
        return cleat_fail(error, CLEAT_ERR_PROFILE, "data.frames: %lld time frames, the maximum is %d",
                          (long long)p->data.frames.count, CLEAT_SERIES_MAX_RESAMPLES);
    for (int64_t i = 0; i < p->data.frames.count; ++i) options.resample_seconds[i] = 60 * p->data.frames.values[i];
    options.n_resamples = (size_t)p->data.frames.count;
    cleat_status status = cleat_series_open(path, &options, dataset, error);
    if (status != CLEAT_OK) return status;
    cleat_series_info info = cleat_series_describe(*dataset);
    model->sizes.inputs = info.channels;
    model->sizes.outputs = info.targets;
    return CLEAT_OK;
}

static int64_t count_names(const char *names) {
    int64_t count = *names != 0;
    for (; *names; ++names) count += *names == ',';
    return count;
}

/* Of a profile whose data are not there: as many columns as it names, or so many. */
enum { USUAL_COLUMNS = 8 };

static cleat_model_sizes sizes_of(const cleat_model *model) {
    const cleat_profile *p = &model->profile;
    cleat_model_sizes sizes = model->sizes;
    int64_t features = *p->data.features ? count_names(p->data.features) : USUAL_COLUMNS;
    if (sizes.inputs == 0) sizes.inputs = features * (1 + p->data.frames.count);
    if (sizes.outputs == 0) sizes.outputs = *p->data.targets ? count_names(p->data.targets) : features;
    return sizes;
}

/* --- the graph ------------------------------------------------------------------------------------------------ */

static cleat_tensor *build_lstm(const cleat_model *model, cleat_graph *graph, cleat_mode mode, cleat_tensor *x,
                                cleat_tensor *rng) {
    const cleat_profile *p = &model->profile;
    for (int64_t layer = 0; layer < p->model.layers; ++layer) {
        cleat_segment(graph);
        if (layer > 0 && mode == CLEAT_MODE_TRAIN && p->model.dropout > 0)
            x = cleat_dropout(graph, x, rng, (float)p->model.dropout);
        x = cleat_nn_lstm(graph, "rnn", layer, x, p->model.hidden); /* [B, T, hidden] */
    }
    cleat_segment(graph);
    return cleat_select_row(graph, x, NULL, CLEAT_ROW_LAST); /* [B, hidden] */
}

static cleat_tensor *build_transformer(const cleat_model *model, cleat_graph *graph, cleat_mode mode, cleat_tensor *x,
                                       cleat_tensor *rng) {
    const cleat_profile *p = &model->profile;
    cleat_transformer shape = {.d_model = p->model.d_model,
                               .heads = p->model.heads,
                               .layers = p->model.layers,
                               .d_ff = p->model.d_ff,
                               .dropout = mode == CLEAT_MODE_TRAIN ? (float)p->model.dropout : 0.0f};
    x = cleat_positional_encoding(graph, cleat_nn_linear(graph, "inp", x, shape.d_model, NULL), NULL); /* [B, T, D] */
    if (shape.dropout > 0) x = cleat_dropout(graph, x, rng, shape.dropout);
    x = cleat_nn_encoder(graph, x, NULL, rng, &shape);
    return cleat_select_row(graph, x, NULL, CLEAT_ROW_LAST); /* [B, D] */
}

/* What a reference says, or NULL: the profile does. */
static const dense_shape *reference_shape(const cleat_model *model) {
    return model->type == &cleat_series_dense ? model->own : NULL;
}

static int64_t classes_of(const cleat_model *model) {
    return reference_shape(model) ? reference_shape(model)->classes : 0;
}

/* Named as the layers of PyTorch's nn.Sequential, where each second one is the activation. x [B, C] */
static cleat_tensor *build_dense(const cleat_model *model, cleat_graph *graph, cleat_mode mode, cleat_tensor *x,
                                 int64_t outputs, cleat_tensor *rng) {
    const dense_shape *given = reference_shape(model);
    const int64_t layers = given ? given->layers : model->profile.model.layers;
    float rate = mode == CLEAT_MODE_TRAIN ? (float)model->profile.model.dropout : 0.0f;
    char prefix[16];
    for (int64_t i = 0; i < layers; ++i) {
        const int64_t width = given ? given->hidden[i] : model->profile.model.hidden;
        cleat_segment(graph);
        snprintf(prefix, sizeof prefix, "%d", (int)(2 * i));
        x = cleat_relu(graph, cleat_nn_linear(graph, prefix, x, width, NULL)); /* [B, hidden] */
        if (rate > 0) x = cleat_dropout(graph, x, rng, rate);
    }
    cleat_segment(graph);
    snprintf(prefix, sizeof prefix, "%d", (int)(2 * layers));
    cleat_model_begin_f32_head(graph);
    return cleat_nn_linear(graph, prefix, x, outputs, NULL);
}

static cleat_tensor *build_network(const cleat_model *model, cleat_graph *graph, cleat_mode mode, int64_t batch,
                                   cleat_tensor *x, int64_t outputs, cleat_tensor *rng) {
    if (model->type == &cleat_series_dense) {
        const int64_t flat[2] = {batch, model->profile.data.lookback * sizes_of(model).inputs};
        return build_dense(model, graph, mode, cleat_reshape(graph, x, 2, flat), outputs, rng);
    }
    x = model->type == &cleat_series_lstm ? build_lstm(model, graph, mode, x, rng)
                                          : build_transformer(model, graph, mode, x, rng);
    cleat_model_begin_f32_head(graph);
    return cleat_nn_linear(graph, "head", x, outputs, NULL);
}

/* The output is [B, H K], or of a classifying reference [B, classes]. */
static void build(const cleat_model *model, cleat_graph *graph, cleat_mode mode, int64_t batch, int64_t length,
                  cleat_model_graph *built) {
    const cleat_model_sizes sizes = sizes_of(model);
    const int64_t steps = model->profile.data.lookback, horizon = model->profile.data.horizon;
    const int64_t classes = classes_of(model);
    const int64_t outputs = classes ? classes : horizon * sizes.outputs;
    const int64_t x_shape[3] = {batch, steps, sizes.inputs}, target_shape[3] = {batch, horizon, sizes.outputs};
    (void)length; /* all windows are of one length */
    cleat_tensor *x = cleat_model_add_values(graph, "x", 3, x_shape), *target = NULL;
    if (mode != CLEAT_MODE_PREDICT)
        target = classes ? cleat_input(graph, "target", CLEAT_I32, 1, &batch)
                         : cleat_input(graph, "target", CLEAT_F32, 3, target_shape);
    cleat_model_inputs inputs = cleat_model_add_inputs(graph, mode, 1, &batch);
    cleat_tensor *y = build_network(model, graph, mode, batch, x, outputs, inputs.rng);
    y = cleat_model_output(graph, y, built);
    if (mode == CLEAT_MODE_PREDICT) return;
    cleat_tensor *loss = classes
                             ? cleat_cross_entropy(graph, y, target, inputs.sample_weight, 0)
                             : cleat_mse_loss(graph, y, cleat_reshape(graph, target, 2, (int64_t[]){batch, outputs}),
                                              inputs.sample_weight);
    cleat_model_add_loss(graph, mode, &inputs, loss, built);
}

static void sample_weight(const cleat_model *model, const cleat_host_batch *batch,
                          const cleat_global_batch *global_batch, float *values) {
    (void)model;
    for (int64_t b = 0; b < batch->batch; ++b)
        values[b] = b < batch->count ? 1.0f / (float)global_batch->samples : 0.0f;
}

/* --- metrics -------------------------------------------------------------------------------------------------- */

/* Totals: windows; then for the model, persistence and seasonal persistence, of each step ahead, the squared and the
 * absolute errors. */
enum { MODEL, PERSISTENCE, SEASONAL, FORECASTS };
static const char *const prefixes[FORECASTS] = {"", "persistence_", "seasonal_"};

static size_t metric_state_size(const cleat_model *model) {
    return 1 + (size_t)(FORECASTS * 2 * model->profile.data.horizon);
}

static double *errors_of(const cleat_model *model, double *metric_state, int forecast) {
    return metric_state + 1 + forecast * 2 * model->profile.data.horizon;
}

/* found, target [H, K]; errors [H, 2] */
static void add_errors(const float *found, const float *target, int64_t horizon, int64_t columns, double *errors) {
    for (int64_t i = 0; i < horizon * columns; ++i) {
        double difference = (double)found[i] - (double)target[i];
        errors[2 * (i / columns)] += difference * difference;
        errors[2 * (i / columns) + 1] += fabs(difference);
    }
}

static cleat_status metric_update(const cleat_model *model, const cleat_host_batch *batch, const float *output,
                                  double *metric_state, cleat_error *error) {
    const int64_t horizon = model->profile.data.horizon, columns = model->sizes.outputs, each = horizon * columns;
    const float *targets = batch->fields[TARGET];
    cleat_forecast known = {0};
    cleat_status status = cleat_forecast_create(each, &known, error);
    for (int64_t b = 0; b < batch->count && status == CLEAT_OK; ++b) {
        status = cleat_forecast_fill(batch->dataset, batch->samples[b], horizon, columns,
                                     (cleat_series_anchor)model->profile.data.anchor, &known, error);
        if (status != CLEAT_OK) break;
        const float *target = targets + b * each;
        for (int64_t i = 0; i < each; ++i) { /* as the target: differences from the anchor */
            known.last[i] -= known.anchor[i];
            known.season[i] -= known.anchor[i];
        }
        add_errors(output + b * each, target, horizon, columns, errors_of(model, metric_state, MODEL));
        add_errors(known.last, target, horizon, columns, errors_of(model, metric_state, PERSISTENCE));
        add_errors(known.season, target, horizon, columns, errors_of(model, metric_state, SEASONAL));
        metric_state[0] += 1;
    }
    cleat_forecast_free(&known);
    return status;
}

static double mean_error(const cleat_model *model, const double *metric_state, const double *errors, int kind,
                         int64_t first, int64_t end) {
    double sum = 0;
    for (int64_t h = first; h < end; ++h) sum += errors[2 * h + kind];
    return sum / (metric_state[0] * (double)(model->sizes.outputs * (end - first)));
}

/* The errors over all steps; those of persistence; then the model's squared error at some single steps ahead. */
static void metric_compute(const cleat_model *model, const double *metric_state, cleat_metrics *found) {
    const int64_t horizon = model->profile.data.horizon;
    char name[48];
    for (int f = 0; f < FORECASTS; ++f) {
        const double *errors = errors_of(model, (double *)metric_state, f);
        if (f == SEASONAL && model->profile.data.season == CLEAT_NONE) continue;
        for (int kind = 0; kind < 2; ++kind) {
            snprintf(name, sizeof name, "%s%s", prefixes[f], kind ? "mae" : "mse");
            cleat_metrics_add(found, name, mean_error(model, metric_state, errors, kind, 0, horizon));
        }
    }
    for (int64_t step = 1; step <= horizon && horizon > 1;
         step = step < horizon && 2 * step > horizon ? horizon : 2 * step) {
        snprintf(name, sizeof name, "mse_step_%lld", (long long)step);
        cleat_metrics_add(
            found, name,
            mean_error(model, metric_state, errors_of(model, (double *)metric_state, MODEL), 0, step - 1, step));
    }
}

/* FOLDER/predictions.csv */
static cleat_status write(const cleat_model *model, const cleat_prediction *predictions, size_t count,
                          const char *folder, cleat_error *error) {
    char path[4096];
    cleat_status status = cleat_path_join(folder, "predictions.csv", path, sizeof path, error);
    if (status != CLEAT_OK) return status;
    return cleat_series_write(path, (cleat_series_anchor)model->profile.data.anchor, predictions, count, error);
}

/* --- reference trajectories ----------------------------------------------------------------------------------- */

/* "mse of the last step's output", with "inputs" and "hidden" */
static cleat_status lstm_from_reference(const cleat_reference_config *config, cleat_model *model, cleat_error *error) {
    (void)error;
    cleat_profile *p = &model->profile;
    if (!cleat_reference_loss_says(config, "mse of the last step") ||
        !cJSON_GetObjectItemCaseSensitive(config->json, "hidden"))
        return CLEAT_ERR_NOT_SUPPORTED;
    p->model.hidden = cleat_reference_size(config, "hidden", NULL, 0);
    p->model.layers = cleat_reference_size(config, "layers", NULL, 0);
    p->model.dropout = 0;
    p->data.lookback = cleat_reference_size(config, "T", NULL, 0);
    p->data.horizon = 1;
    model->sizes.inputs = cleat_reference_size(config, "inputs", "rnn.weight_ih_l0", 1);
    model->sizes.outputs = config->extent ? cleat_reference_size(config, "outputs", "head.weight", 0) : 1;
    bool complete = p->model.hidden > 0 && p->model.layers > 0 && p->data.lookback > 0 && model->sizes.inputs > 0 &&
                    model->sizes.outputs > 0;
    return complete ? CLEAT_OK : CLEAT_ERR_NOT_SUPPORTED;
}

/* "mse of the last step's output", with "patches". Trajectories do not tell the number of heads: 4. */
static cleat_status transformer_from_reference(const cleat_reference_config *config, cleat_model *model,
                                               cleat_error *error) {
    (void)error;
    cleat_profile *p = &model->profile;
    char name[CLEAT_NAME];
    if (!cleat_reference_loss_says(config, "mse of the last step") ||
        !cJSON_GetObjectItemCaseSensitive(config->json, "patches"))
        return CLEAT_ERR_NOT_SUPPORTED;
    p->model.d_model = cleat_reference_size(config, "d_model", "inp.weight", 0);
    p->model.d_ff = cleat_reference_size(config, "d_ff", "blocks.0.f1.weight", 0);
    p->model.heads = cleat_reference_size(config, "heads", NULL, 0);
    p->model.layers = cleat_reference_size(config, "layers", NULL, 0);
    if (p->model.heads == 0) p->model.heads = 4;
    for (bool there = p->model.layers == 0; there; p->model.layers += there) {
        snprintf(name, sizeof name, "blocks.%lld.f1.weight", (long long)p->model.layers);
        there = cleat_reference_size(config, "", name, 0) > 0;
    }
    p->model.dropout = 0;
    p->data.lookback = cleat_reference_size(config, "T", NULL, 0);
    p->data.horizon = 1;
    model->sizes.inputs = cleat_reference_size(config, "inputs", "inp.weight", 1);
    model->sizes.outputs = config->extent ? cleat_reference_size(config, "outputs", "head.weight", 0) : 1;
    bool complete = p->model.d_model > 0 && p->model.d_ff > 0 && p->model.layers > 0 && p->data.lookback > 0 &&
                    p->model.d_model % p->model.heads == 0 && model->sizes.inputs > 0 && model->sizes.outputs > 0;
    return complete ? CLEAT_OK : CLEAT_ERR_NOT_SUPPORTED;
}

/* "cross entropy" or "mse of the outputs", with "widths" from the input to the classes or outputs */
static cleat_status dense_from_reference(const cleat_reference_config *config, cleat_model *model, cleat_error *error) {
    const cJSON *widths = cJSON_GetObjectItemCaseSensitive(config->json, "widths"), *width;
    dense_shape shape = {.layers = cJSON_GetArraySize(widths) - 2};
    int i = 0;
    const bool classifies = cleat_reference_loss_says(config, "cross entropy");
    if (!cJSON_IsArray(widths) || !(classifies || cleat_reference_loss_says(config, "mse of the outputs")) ||
        shape.layers < 0 || shape.layers > MAX_LAYERS)
        return CLEAT_ERR_NOT_SUPPORTED;
    model->profile.model.dropout = 0;
    model->profile.data.lookback = model->profile.data.horizon = 1;
    model->sizes.outputs = 1;
    cJSON_ArrayForEach(width, widths) {
        if (!cJSON_IsNumber(width) || width->valuedouble < 1 || width->valuedouble > INT32_MAX)
            return CLEAT_ERR_NOT_SUPPORTED;
        int64_t size = (int64_t)width->valuedouble;
        if (i == 0)
            model->sizes.inputs = size;
        else if (i <= shape.layers)
            shape.hidden[i - 1] = size;
        else
            *(classifies ? &shape.classes : &model->sizes.outputs) = size;
        ++i;
    }
    model->own = cleat_alloc(1, sizeof shape);
    if (!model->own) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the widths of a network");
    memcpy(model->own, &shape, sizeof shape);
    return CLEAT_OK;
}

/* input f32 [B, T, C], or of a dense network [B, C]; target f32 [B, K], or the class i64 [B] */
static void reference_arrays(const cleat_model *model, cleat_reference *r) {
    const cleat_model_sizes sizes = sizes_of(model);
    const int64_t steps = model->profile.data.lookback, outputs = model->profile.data.horizon * sizes.outputs;
    const int64_t classes = classes_of(model);
    r->input = (cleat_reference_array){.rank = 3, .shape = {r->batch, steps, sizes.inputs}};
    r->target = (cleat_reference_array){.rank = 2, .shape = {r->batch, outputs}};
    if (!classes) return;
    r->input = (cleat_reference_array){.rank = 2, .shape = {r->batch, sizes.inputs}};
    r->target = (cleat_reference_array){.integers = true, .below = classes, .rank = 1, .shape = {r->batch}};
}

static void reference_input(const cleat_model *model, const cleat_reference *r, const char *name, void *values) {
    const cleat_model_sizes sizes = sizes_of(model);
    const int64_t steps = model->profile.data.lookback, outputs = model->profile.data.horizon * sizes.outputs;
    float *floats = values;
    if (strcmp(name, "x") == 0)
        memcpy(floats, r->input.data, (size_t)(r->batch * steps * sizes.inputs) * sizeof *floats);
    if (strcmp(name, "target") == 0 && r->target.integers)
        for (int64_t b = 0; b < r->batch; ++b) ((int32_t *)values)[b] = (int32_t)((const int64_t *)r->target.data)[b];
    if (strcmp(name, "target") == 0 && !r->target.integers)
        memcpy(floats, r->target.data, (size_t)(r->batch * outputs) * sizeof *floats);
    if (strcmp(name, "scale") == 0)
        for (int64_t b = 0; b < r->batch; ++b) floats[b] = 1.0f / (float)r->batch;
}

#define SERIES_CLASS(NAME, FROM_REFERENCE)                                                                             \
    {                                                                                                                  \
        .name = NAME, .terms = terms, .n_terms = 1, .open_data = open_data, .fixed_length = fixed_length,              \
        .build = build, .sample_weight = sample_weight, .metric_state_size = metric_state_size,                        \
        .metric_update = metric_update, .metric_compute = metric_compute, .write = write,                              \
        .from_reference = FROM_REFERENCE, .reference_arrays = reference_arrays, .reference_input = reference_input     \
    }

const cleat_model_class cleat_series_lstm = SERIES_CLASS("series_lstm", lstm_from_reference);
const cleat_model_class cleat_series_transformer = SERIES_CLASS("series_transformer", transformer_from_reference);
const cleat_model_class cleat_series_dense = SERIES_CLASS("series_dense", dense_from_reference);
