/* Time series forecasting. Maps windows [T, C] of the past to the next H steps of K columns, with an
 * LSTM or a transformer encoder (both read out at the last step), or a dense network over the whole
 * window. Loss: mean squared error of standardised values. Persistence, seasonal persistence and the mean of
 * both are evaluated as baselines. */
#include "data/series/series.h"
#include "cleat/ops.h"
#include "core/files.h"
#include "core/json.h"
#include "core/memory.h"
#include "graph/recompute.h"
#include "models/examples.h"
#include "models/series_forecast.h"
#include "nn/lstm.h"
#include "nn/transformer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct series_settings {
    cleat_data_settings common;
    cleat_encoder_settings network; /* only d_model, heads and d_ff of the transformer */
    int64_t hidden;                 /* layer width of an LSTM or a dense network */
    cleat_series_options data;
    /* resampling intervals in minutes; count CLEAT_NONE: only the file's own interval */
    cleat_int_list frames;
} series_settings;

#define RECORD series_settings
#include "ini/rows.h"

#define HIDDEN_ROW                                                                                                     \
    { FIELD(model, hidden, hidden), INT(1, 16384, "128"), SHAPES, .help = "Units per hidden layer." }
#define DATA_ROWS                                                                                                      \
    PATH_ROW(common), VAL_FRACTION_ROW(data.val_fraction), TEST_FRACTION_ROW(data.test_fraction), LIMIT_ROW(common),   \
        {AT(data, time_column), TEXT(0, 127, ""), COMPUTES,                                                            \
         .help = "Name of the time column; empty: the first column."},                                                 \
        {AT(data, series_column), TEXT(0, 127, ""), COMPUTES_LATER,                                                    \
         .help = "Column that names the series of each row, if the file holds several; empty: one series."},           \
        {AT(data, features), TEXT(0, 1023, ""), COMPUTES,                                                              \
         .help = "Input columns, separated by commas; empty: all except the time."},                                   \
        {AT(data, targets), TEXT(0, 1023, ""), COMPUTES,                                                               \
         .help = "Columns to forecast, separated by commas; empty: the features."},                                    \
        {FIELD(data, frames, frames), LIST(1, 525600, "none"), OR_NONE, COMPUTES,                                      \
         .help =                                                                                                       \
             "Additional time frames in minutes: the file averaged to each of them, as inputs besides its own step."}, \
        {AT(data, lookback), INT(1, 65536, "96"), OR_AUTO, SHAPES,                                                     \
         .help = "Input window length in steps of each time frame; auto: two seasons or four horizons."},              \
        {AT(data, horizon), INT(1, 65536, "24"), OR_AUTO, SHAPES,                                                      \
         .help = "Forecast length in time steps; auto: usual for the step, such as 12 months, 7 days or 24 hours."},   \
        {AT(data, stride), INT(1, 65536, "1"), COMPUTES, .help = "Stride between training windows in time steps."},    \
        {AT(data, eval_stride), INT(1, 65536, "1"), COMPUTES,                                                          \
         .help = "Stride between validation or test windows in time steps."},                                          \
        {AT(data, anchor), CHOICE(cleat_series_anchor_names, "none"), SHAPES,                                          \
         .help = "Subtracted from inputs and targets: nothing, the last known values, or (targets) those one season "  \
                 "earlier; auto: by their errors."},                                                                   \
        {AT(data, season), INT(1, 65536, "none"), OR_NONE_OR_AUTO, SHAPES,                                             \
         .help = "Season length in time steps, for anchor = season and the baselines; auto: by autocorrelation."},     \
        {AT(data, train_rows), INT(1, 1e9, "none"), OR_NONE, COMPUTES,                                                 \
         .help = "Number of training rows, from the start of the file; none: by val_fraction and test_fraction."},     \
        {AT(data, val_rows), INT(1, 1e9, "none"), OR_NONE, COMPUTES,                                                   \
         .help = "Number of validation rows, after the training rows."},                                               \
        {AT(data, test_rows), INT(1, 1e9, "none"), OR_NONE, COMPUTES,                                                  \
         .help = "Number of test rows, after the validation rows."},                                                   \
        {AT(data, gaps), CHOICE(cleat_series_gaps_names, "error"), COMPUTES,                                           \
         .help = "Missing time steps: report an error, fill with the last values, skip windows that contain them, or " \
                 "treat rows as consecutive."},                                                                        \
        {FIELD(data, step, data.rule), CHOICE(cleat_series_rule_names, "first"), COMPUTES_LATER,                       \
         .help =                                                                                                       \
             "Step between rows: that of the first two, or business days if only they fit; of most rows; or a unit."}, \
        {AT(data, missing), CHOICE(cleat_series_missing_names, "error"), COMPUTES,                                     \
         .help = "Empty cells: report an error, fill with the last value, or skip windows that contain them."},        \
    {                                                                                                                  \
        .name = NULL                                                                                                   \
    }

static const cleat_key recurrent_keys[] = {LAYERS_ROW(network.layers), HIDDEN_ROW, DROPOUT_ROW(network.dropout),
                                           DATA_ROWS}; /* LSTM and dense network */
static const cleat_key transformer_keys[] = {ENCODER_ROWS(network), DATA_ROWS};

static void defaults(void *settings) {
    ((series_settings *)settings)->data = cleat_series_defaults();
}

/* Split boundaries of a series: all given in rows, or all as fractions. */
static cleat_status check_rows(const cleat_series_options *data, const cleat_record *record, cleat_error *error) {
    const bool train = data->train_rows != CLEAT_NONE, val = data->val_rows != CLEAT_NONE;
    if (train == val && (train || data->test_rows == CLEAT_NONE)) return CLEAT_OK;
    return cleat_record_contradict(record, error, train ? "data.train_rows" : "data.val_rows",
                                   train ? "data.val_rows" : "data.train_rows",
                                   "set train_rows and val_rows (and test_rows), or none of them");
}

static cleat_status check(const void *settings, const cleat_record *record, cleat_error *error) {
    const cleat_series_options *data = &((const series_settings *)settings)->data;
    cleat_status status = cleat_fractions_check(data->val_fraction, data->test_fraction, record, error);
    if (!status) status = check_rows(data, record, error);
    if (status || data->anchor != CLEAT_SERIES_ANCHOR_SEASON || data->season != CLEAT_NONE) return status;
    /* Without a season, the last known values would be used instead. */
    return cleat_record_refuse(record, error, "data.anchor", "requires data.season: the steps of a season");
}

static cleat_status check_transformer(const void *settings, const cleat_record *record, cleat_error *error) {
    cleat_status status = cleat_encoder_check(&((const series_settings *)settings)->network, record, error);
    return status ? status : check(settings, record, error);
}

static const series_settings *settings_of(const cleat_model *model) {
    return model->settings;
}

static const cleat_metric_info metrics[] = {{"mse", false}, {"mae", false}, {NULL, false}};
static const char *const terms[] = {"squared_error"};

extern const cleat_model_class cleat_series_lstm, cleat_series_transformer, cleat_series_dense;

enum { TARGET = 1 }; /* index of the dataset's field */

/* A model without data has the defaults in place of automatic numbers. */
static int64_t lookback_of(const cleat_model *model) {
    const int64_t lookback = settings_of(model)->data.lookback;
    return lookback == CLEAT_AUTO ? cleat_series_defaults().lookback : lookback;
}

static int64_t horizon_of(const cleat_model *model) {
    const int64_t horizon = settings_of(model)->data.horizon;
    return horizon == CLEAT_AUTO ? cleat_series_defaults().horizon : horizon;
}

static int64_t fixed_length(const cleat_model *model) {
    return lookback_of(model);
}

static cleat_status check_data(const cleat_model *model, const char *path, cleat_error *error) {
    return cleat_series_check_columns(path, &settings_of(model)->data, error);
}

static cleat_status open_data(cleat_model *model, const char *path, cleat_mode mode, const char *fitted,
                              cleat_dataset **dataset, cleat_error *error) {
    const cleat_int_list *frames = &settings_of(model)->frames;
    cleat_series_options options = settings_of(model)->data;
    options.fitted = fitted;
    options.evaluation = mode == CLEAT_MODE_EVALUATE && fitted;
    options.forecast = mode == CLEAT_MODE_PREDICT;
    options.next_only = options.forecast && model->options.next_only;
    if (frames->count > CLEAT_SERIES_MAX_RESAMPLES)
        return cleat_fail(error, CLEAT_ERR_PROFILE, "data.frames: %lld time frames, the maximum is %d",
                          (long long)frames->count, CLEAT_SERIES_MAX_RESAMPLES);
    for (int64_t i = 0; i < frames->count; ++i) options.resample_seconds[i] = 60 * frames->values[i];
    options.n_resamples = (size_t)frames->count;
    cleat_status status = cleat_series_open(path, &options, dataset, error);
    if (status) return status;
    cleat_series_info info = cleat_series_describe(*dataset);
    cleat_series_options *chosen = &((series_settings *)model->settings)->data;
    chosen->lookback = info.lookback;
    chosen->horizon = info.horizon;
    chosen->season = info.season;
    chosen->anchor = info.anchor;
    model->sizes.inputs = info.channels;
    model->sizes.outputs = info.targets;
    return CLEAT_OK;
}

static int64_t count_names(const char *names) {
    int64_t count = *names != 0;
    for (; *names; ++names) count += *names == ',';
    return count;
}

/* Number of columns of a profile without data: the columns it names, or USUAL_COLUMNS. */
enum { USUAL_COLUMNS = 8 };

static cleat_model_sizes sizes_of(const cleat_model *model) {
    const series_settings *s = settings_of(model);
    cleat_model_sizes sizes = model->sizes;
    int64_t features = *s->data.features ? count_names(s->data.features) : USUAL_COLUMNS;
    if (sizes.inputs == 0) sizes.inputs = features * (1 + s->frames.count);
    if (sizes.outputs == 0) sizes.outputs = *s->data.targets ? count_names(s->data.targets) : features;
    return sizes;
}

static cleat_tensor *build_lstm(const cleat_model *model, cleat_graph *graph, cleat_mode mode, cleat_tensor *x,
                                cleat_tensor *rng) {
    const cleat_encoder_settings *network = &settings_of(model)->network;
    for (int64_t layer = 0; layer < network->layers; ++layer) {
        cleat_segment(graph);
        if (layer > 0 && mode == CLEAT_MODE_TRAIN && network->dropout > 0)
            x = cleat_dropout(graph, x, rng, (float)network->dropout);
        x = cleat_nn_lstm(graph, "rnn", layer, x, settings_of(model)->hidden); /* [B, T, hidden] */
    }
    cleat_segment(graph);
    return cleat_select_row(graph, x, NULL, CLEAT_ROW_LAST); /* [B, hidden] */
}

static cleat_tensor *build_transformer(const cleat_model *model, cleat_graph *graph, cleat_mode mode, cleat_tensor *x,
                                       cleat_tensor *rng) {
    const cleat_transformer shape = cleat_encoder_shape(&settings_of(model)->network, mode);
    /* [B, T, D] */
    x = cleat_positional_encoding(graph, cleat_nn_linear(graph, "inp", x, shape.d_model, NULL), NULL);
    if (shape.dropout > 0) x = cleat_dropout(graph, x, rng, shape.dropout);
    const cleat_read_row last = {.row = CLEAT_ROW_LAST};
    return cleat_nn_encoder(graph, x, NULL, rng, &shape, &last); /* [B, D] */
}

/* Number of hidden layers; a classifier may have none. */
static int64_t dense_layers(const cleat_model *model) {
    const int64_t *hidden = model->sizes.hidden;
    int64_t layers = 0;
    while (layers < CLEAT_MODEL_LAYERS && hidden[layers] > 0) ++layers;
    return layers > 0 || model->sizes.classes > 0 ? layers : settings_of(model)->network.layers;
}

/* Layer names as in PyTorch's nn.Sequential, where every second layer is the activation. x [B, C] */
static cleat_tensor *build_dense(const cleat_model *model, cleat_graph *graph, cleat_mode mode, cleat_tensor *x,
                                 int64_t outputs, cleat_tensor *rng) {
    const int64_t layers = dense_layers(model), *hidden = model->sizes.hidden;
    float rate = mode == CLEAT_MODE_TRAIN ? (float)settings_of(model)->network.dropout : 0.0f;
    char prefix[16];
    for (int64_t i = 0; i < layers; ++i) {
        const int64_t width = hidden[0] > 0 ? hidden[i] : settings_of(model)->hidden;
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
        const int64_t flat[2] = {batch, lookback_of(model) * sizes_of(model).inputs};
        return build_dense(model, graph, mode, cleat_reshape(graph, x, 2, flat), outputs, rng);
    }
    x = model->type == &cleat_series_lstm ? build_lstm(model, graph, mode, x, rng)
                                          : build_transformer(model, graph, mode, x, rng);
    cleat_model_begin_f32_head(graph);
    return cleat_nn_linear(graph, "head", x, outputs, NULL);
}

static int64_t layers(const cleat_model *model) {
    return model->type == &cleat_series_dense ? dense_layers(model) : settings_of(model)->network.layers;
}

/* Names: "2.weight" is the second layer of a dense network, "rnn.weight_ih_l1" that of an LSTM. */
static int64_t layer_of(const cleat_model *model, const char *param) {
    if (model->type == &cleat_series_dense) return 1 + strtoll(param, NULL, 10) / 2;
    const char *number = model->type == &cleat_series_lstm ? strstr(param, "_l") : NULL;
    return number ? 1 + strtoll(number + 2, NULL, 10) : cleat_nn_encoder_layer_of(param, layers(model));
}

/* The output is [B, H K], or for a classifier [B, classes]. */
static void build(const cleat_model *model, cleat_graph *graph, cleat_mode mode, int64_t batch, int64_t length,
                  cleat_model_graph *built) {
    const cleat_model_sizes sizes = sizes_of(model);
    const int64_t steps = lookback_of(model), horizon = horizon_of(model);
    const int64_t classes = model->sizes.classes;
    const int64_t outputs = classes ? classes : horizon * sizes.outputs;
    const int64_t x_shape[3] = {batch, steps, sizes.inputs}, target_shape[3] = {batch, horizon, sizes.outputs};
    (void)length; /* all windows have the same length */
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

static size_t fields(const cleat_model *model, cleat_synthetic_field *made) {
    const cleat_model_sizes sizes = sizes_of(model);
    const int64_t x[2] = {lookback_of(model), sizes.inputs};
    const int64_t target[2] = {horizon_of(model), sizes.outputs};
    made[0] = cleat_synthetic_floats("x", 2, x);
    made[TARGET] = model->sizes.classes ? cleat_synthetic_integers("target", model->sizes.classes, 0, NULL)
                                        : cleat_synthetic_floats("target", 2, target);
    return TARGET + 1;
}

/* Metric state: number of windows; then the squared and the absolute error of each step ahead, for the
 * model, persistence, seasonal persistence and the mean of these two; then the model's squared errors [H, K]. */
enum { MODEL, PERSISTENCE, SEASONAL, BLEND, FORECASTS };
static const char *const prefixes[FORECASTS] = {"", "persistence_", "seasonal_", "blend_"};
static const char *const baseline_texts[FORECASTS] = {NULL, "persistence: the last known values",
                                                      "seasonal persistence: the values one season earlier",
                                                      "the mean of the last known values and those one season earlier"};

static size_t metric_state_size(const cleat_model *model) {
    return 1 + (size_t)(horizon_of(model) * (FORECASTS * 2 + model->sizes.outputs));
}

static double *errors_of(const cleat_model *model, double *metric_state, int forecast) {
    return metric_state + 1 + forecast * 2 * horizon_of(model);
}

/* found, target [H, K]; errors [H, 2]; squares [H, K], or NULL */
static void add_errors(const float *found, const float *target, int64_t horizon, int64_t columns, double *errors,
                       double *squares) {
    for (int64_t i = 0; i < horizon * columns; ++i) {
        double difference = (double)found[i] - (double)target[i];
        errors[2 * (i / columns)] += difference * difference;
        errors[2 * (i / columns) + 1] += fabs(difference);
        if (squares) squares[i] += difference * difference;
    }
}

static cleat_status metric_update(const cleat_model *model, const cleat_host_batch *batch, const float *output,
                                  double *metric_state, cleat_error *error) {
    const int64_t horizon = horizon_of(model), columns = model->sizes.outputs, each = horizon * columns;
    const float *targets = batch->fields[TARGET];
    cleat_forecast known = {0};
    cleat_status status = cleat_forecast_create(each, &known, error);
    for (int64_t b = 0; b < batch->count && !status; ++b) {
        status = cleat_forecast_fill(batch->dataset, batch->samples[b], horizon, columns,
                                     settings_of(model)->data.anchor, &known, error);
        if (status) break;
        const float *target = targets + b * each;
        for (int64_t i = 0; i < each; ++i) { /* like the target: differences from the anchor */
            known.last[i] -= known.anchor[i];
            known.season[i] -= known.anchor[i];
            known.anchor[i] = (known.last[i] + known.season[i]) / 2; /* no longer the anchor */
        }
        const float *found[FORECASTS] = {output + b * each, known.last, known.season, known.anchor};
        for (int f = 0; f < FORECASTS; ++f)
            add_errors(found[f], target, horizon, columns, errors_of(model, metric_state, f),
                       f == MODEL ? errors_of(model, metric_state, FORECASTS) : NULL);
        if (batch->badness) batch->badness[b] = 0;
        for (int64_t i = 0; i < each && batch->badness; ++i)
            batch->badness[b] += pow((double)output[b * each + i] - (double)target[i], 2) / (double)each;
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

/* Computes the errors over all steps, those of the baselines, and the model's squared error at some single
 * steps ahead. */
static void metric_compute(const cleat_model *model, const double *metric_state, cleat_metrics *found) {
    const int64_t horizon = horizon_of(model);
    char name[48];
    for (int f = 0; f < FORECASTS; ++f) {
        const double *errors = errors_of(model, (double *)metric_state, f);
        if (f >= SEASONAL && settings_of(model)->data.season == CLEAT_NONE) continue;
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

/* Keeps the root mean square error of each step and target for the bands of figures. */
static cleat_status fit_outputs(cleat_model *model, const double *metric_state, const cleat_dataset *dataset,
                                cleat_error *error) {
    const double *squares = errors_of(model, (double *)metric_state, FORECASTS);
    double *errors = cleat_series_errors(dataset);
    (void)error;
    for (int64_t i = 0; errors && i < horizon_of(model) * model->sizes.outputs; ++i)
        errors[i] = sqrt(squares[i] / metric_state[0]);
    return CLEAT_OK;
}

/* Writes FOLDER/predictions.csv. */
static cleat_status write(const cleat_model *model, const cleat_prediction *predictions, size_t count,
                          const char *folder, cleat_error *error) {
    char path[4096];
    cleat_status status = cleat_path_join(folder, "predictions.csv", path, sizeof path, error);
    if (status) return status;
    return cleat_series_write(path, settings_of(model)->data.anchor, predictions, count, error);
}

/* The best of persistence and, with data.season, seasonal persistence and the mean, by the squared error. */
static int baseline_forecast(const cleat_model *model, const double *metric_state) {
    const int64_t horizon = horizon_of(model);
    double *state = (double *)metric_state, least = 0;
    int best = PERSISTENCE;
    for (int f = PERSISTENCE; f < (settings_of(model)->data.season != CLEAT_NONE ? FORECASTS : SEASONAL); ++f) {
        const double found = mean_error(model, state, errors_of(model, state, f), 0, 0, horizon);
        if (f > PERSISTENCE && !(found < least)) continue;
        best = f;
        least = found;
    }
    return best;
}

static cleat_status baseline_of(const cleat_model *model, const cleat_evaluation *evaluated, double *metric_state,
                                char *text, cleat_error *error) {
    const int forecast = baseline_forecast(model, evaluated->metric_state);
    const size_t values = 2 * (size_t)horizon_of(model);
    (void)error;
    metric_state[0] = evaluated->metric_state[0];
    memcpy(errors_of(model, metric_state, MODEL), errors_of(model, (double *)evaluated->metric_state, forecast),
           values * sizeof *metric_state);
    snprintf(text, CLEAT_BASELINE_TEXT, "%s", baseline_texts[forecast]);
    return CLEAT_OK;
}

enum { PAST_HORIZONS = 4, PAST_STEPS = 400, SERIES_DIGITS = 6, COLUMN_CHARACTERS = 80 };

/* Values are single-precision numbers times std: what is far below std is rounding, not data. */
static void add_values(cleat_string *json, const char *member, const double *values, int64_t count, double std) {
    const double unit = pow(10, floor(log10(std)) - SERIES_DIGITS + 1);
    json_add(json, json_open(member, '['));
    for (int64_t i = 0; i < count; ++i)
        json_add(json, json_digits(NULL, round(values[i] / unit) * unit + 0.0, SERIES_DIGITS));
    json_add(json, json_close(']'));
}

/* One column k of standardised values [H, K], plus an offset of the same shape (NULL: none), in the file's
 * units. */
static void add_column(cleat_string *json, const char *member, const cleat_dataset *dataset, size_t sample, size_t k,
                       const float *values, const float *offset, double *room) {
    const cleat_series_info info = cleat_series_describe(dataset);
    double mean, std;
    cleat_series_scale(dataset, sample, k, &mean, &std);
    for (int64_t h = 0; h < info.horizon; ++h) {
        const int64_t i = h * info.targets + (int64_t)k;
        room[h] = ((double)values[i] + (offset ? (double)offset[i] : 0)) * std + mean;
    }
    add_values(json, member, room, info.horizon, std);
}

/* The forecast of column k: `target` and `known` [H, K]; room for `past` values or H. */
static void add_target(const cleat_model *model, const cleat_evaluation *evaluated, const cleat_prediction *prediction,
                       size_t k, const float *target, const cleat_forecast *known, int64_t past, double *room,
                       cleat_string *json) {
    const cleat_dataset *dataset = prediction->dataset;
    const cleat_series_info info = cleat_series_describe(dataset);
    const char *series = cleat_series_name(dataset, prediction->sample);
    const double *errors = cleat_series_errors(dataset);
    char column[2 * COLUMN_CHARACTERS];
    double mean, std;
    cleat_series_scale(dataset, prediction->sample, k, &mean, &std);
    cleat_examples_begin(json, "series", prediction);
    snprintf(column, sizeof column, "%s%s%s", series ? series : "", series ? ": " : "",
             cleat_series_target(dataset, k));
    cleat_examples_add_string(json, "column", column, COLUMN_CHARACTERS);
    cleat_series_past(dataset, prediction->sample, k, past, room);
    add_values(json, "past", room, past, std);
    add_column(json, "truth", dataset, prediction->sample, k, target, known->anchor, room);
    add_column(json, "prediction", dataset, prediction->sample, k, prediction->output, known->anchor, room);
    if (!evaluated->drawings) {
        const int best = baseline_forecast(model, evaluated->metric_state);
        for (int64_t i = 0; best == BLEND && i < info.horizon * info.targets; ++i)
            known->last[i] = (known->last[i] + known->season[i]) / 2;
        add_column(json, "baseline", dataset, prediction->sample, k, best == SEASONAL ? known->season : known->last,
                   NULL, room);
    }
    for (int64_t h = 0; h < info.horizon; ++h) room[h] = errors[h * info.targets + (int64_t)k] * std;
    if (isfinite(errors[0])) add_values(json, "error", room, info.horizon, std);
    if (evaluated->drawings) json_add(json, json_open("times", '['));
    for (int64_t i = 1 - past; i <= info.horizon && evaluated->drawings; ++i) {
        const int64_t time = cleat_series_time(dataset, prediction->sample, i);
        json_add(json, json_number(NULL, time == INT64_MIN ? NAN : (double)time));
    }
    if (evaluated->drawings) json_add(json, json_close(']'));
    json_add(json, json_close('}'));
}

/* Successive examples show successive forecast columns; figures show all of them. */
static cleat_status add_example(const cleat_model *model, const cleat_evaluation *evaluated, size_t index,
                                cleat_string *json, cleat_error *error) {
    const cleat_prediction *prediction = &evaluated->predictions[index];
    const cleat_dataset *dataset = prediction->dataset;
    const cleat_series_info info = cleat_series_describe(dataset);
    const size_t targets = (size_t)info.targets, first = evaluated->drawings ? 0 : index % targets;
    const size_t end = !evaluated->drawings ? first + 1 : targets < CLEAT_DRAWINGS ? targets : CLEAT_DRAWINGS;
    int64_t past = info.lookback < PAST_HORIZONS * info.horizon ? info.lookback : PAST_HORIZONS * info.horizon;
    if (past > PAST_STEPS) past = PAST_STEPS;
    cleat_forecast known = {0};
    double *room = cleat_alloc((size_t)(past > info.horizon ? past : info.horizon), sizeof *room);
    float *target = cleat_alloc((size_t)(info.horizon * info.targets), sizeof *target);
    void *slots[CLEAT_SERIES_FIELDS] = {[TARGET] = target};
    cleat_status status = CLEAT_OK;
    if (!room || !target) status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a forecast");
    if (!status) status = cleat_dataset_fill(dataset, prediction->sample, prediction->length, NULL, slots, error);
    if (!status) status = cleat_forecast_create(info.horizon * info.targets, &known, error);
    if (!status)
        status = cleat_forecast_fill(dataset, prediction->sample, info.horizon, info.targets,
                                     settings_of(model)->data.anchor, &known, error);
    for (int64_t i = cleat_series_known(dataset, prediction->sample) * info.targets; i < info.horizon * info.targets;
         ++i)
        if (!status) target[i] = NAN;
    for (size_t k = first; k < end && !status; ++k) {
        if (k > first) cleat_string_add(json, ",\n");
        add_target(model, evaluated, prediction, k, target, &known, past, room, json);
    }
    if (evaluated->drawings && prediction->sample == 0 && !isfinite(cleat_series_errors(dataset)[0]))
        cleat_log(CLEAT_LOG_INFO, "figures: no error bands: the checkpoint knows no errors of its validation; it is of "
                                  "an earlier version, or was written before the first evaluation");
    cleat_forecast_free(&known);
    cleat_free(target);
    cleat_free(room);
    return status;
}

static const cleat_model_examples examples = {.add = add_example, .baseline = baseline_of};

#define SERIES_CLASS(NAME, KEYS, CHECK)                                                                                \
    {                                                                                                                  \
        .name = NAME, .keys = KEYS, .settings_size = sizeof(series_settings), .defaults = defaults, .check = CHECK,    \
        .metrics = metrics, .terms = terms, .n_terms = 1, .check_data = check_data, .open_data = open_data,            \
        .fields = fields, .fixed_length = fixed_length, .build = build, .layer_of = layer_of, .layers = layers,        \
        .sample_weight = cleat_model_mean_weight, .metric_state_size = metric_state_size,                              \
        .metric_update = metric_update, .metric_compute = metric_compute, .write = write, .fit_outputs = fit_outputs,  \
        .combine = cleat_combine_mean, .combines_same_fit = true, .examples = &examples                                \
    }

const cleat_model_class cleat_series_lstm = SERIES_CLASS("series_lstm", recurrent_keys, check);
const cleat_model_class cleat_series_transformer =
    SERIES_CLASS("series_transformer", transformer_keys, check_transformer);
const cleat_model_class cleat_series_dense = SERIES_CLASS("series_dense", recurrent_keys, check);
