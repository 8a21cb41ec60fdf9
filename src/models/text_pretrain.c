/* Pretraining of a text encoder by predicting masked tokens (masked language model; Devlin et al. 2019). The
 * chosen tokens differ from epoch to epoch (Liu et al. 2019). The head is a layer with GELU and a norm, then
 * the table of word embeddings and a bias; only the chosen positions reach it. Loss: cross entropy, the mean
 * over the chosen tokens of a global batch. A checkpoint is a start (model.init) for text_classifier and
 * text_tagger of the same network. */
#include "cleat/ops.h"
#include "data/dataset.h"
#include "data/text/set.h"
#include "models/classes.h"
#include "models/masked_tokens.h"
#include "models/model.h"
#include "models/published/text.h"
#include "models/text_networks.h"
#include "models/text_tokenizer.h"
#include "models/token_guess.h"

#include <math.h>
#include <string.h>

static const char *const terms[] = {"cross_entropy"};

/* Indices of the dataset's fields. */
enum { TOKENS, LENGTHS, LABELS, TYPES };

typedef struct pretrain_settings { /* begins as a cleat_text_model_settings */
    cleat_data_settings common;
    cleat_encoder_settings encoder;
    cleat_text_network_settings network;
    cleat_text_options data;
    double mask_fraction;
} pretrain_settings;

#define RECORD pretrain_settings
#include "ini/rows.h"

static const char *const long_names[] = {"cut", "split", NULL};

static const cleat_key keys[] = {
    ENCODER_ROWS(encoder),
    TEXT_NETWORK_ROWS(network),
    TEXT_FILE_ROWS,
    TEXT_COLUMN_ROW,
    TEXT_ID_COLUMN_ROW,
    TEXT_VOCABULARY_ROWS,
    {FIELD(data, mask_fraction, mask_fraction), FLOAT(0.01, 1, "0.15"), COMPUTES,
     .help = "Fraction of a text's tokens to predict: 80 % of them masked, 10 % random, 10 % kept."},
    TEXT_EMPTY_ROW,
    {FIELD(data, long_texts, data.split_long), EITHER(long_names, "cut"), COMPUTES_LATER,
     .help = "Training texts of more than max_length tokens: cut them, or split them into several samples."},
    TEXT_INVALID_ROW,
    TEXT_CACHE_ROW,
    {.name = NULL},
};

static const pretrain_settings *settings_of(const cleat_model *model) {
    return model->settings;
}

static const cleat_metric_info metrics[] = {{"accuracy", true}, {"perplexity", false}, {NULL, false}};

enum { NAMED = 5 };

/* The predicted tokens are mask tokens of the texts themselves. */
static cleat_status check_masks(const char *path, const cleat_dataset *dataset, cleat_error *error) {
    const cleat_tokenizer *tokenizer = cleat_masked_tokenizer(dataset);
    const char *mask = cleat_tokenizer_piece(tokenizer, cleat_tokenizer_mask(tokenizer));
    const size_t count = cleat_dataset_count(dataset);
    size_t without = 0;
    cleat_string names = {0};
    for (size_t i = 0; i < count; ++i) {
        if (cleat_masked_count(dataset, i) > 0) continue;
        if (without++ < NAMED) cleat_string_add(&names, "%s%s", names.size ? ", " : "", cleat_dataset_id(dataset, i));
    }
    if (without > 0 && without < count)
        cleat_log(CLEAT_LOG_WARNING, "%s: %zu of %zu texts have no %s, and nothing is predicted for them: %s%s", path,
                  without, count, mask, names.data ? names.data : "", without > NAMED ? ", ..." : "");
    cleat_string_free(&names);
    if (without < count) return CLEAT_OK;
    return cleat_fail(error, CLEAT_ERR_FORMAT,
                      "%s: no text has the mask token %s: write it in place of each word to predict, as in "
                      "\"the flight was %s again\"; to predict classes or tags of texts, train a text_classifier or "
                      "text_tagger from this run (model.init)",
                      path, mask, mask);
}

static cleat_status check_data(const cleat_model *model, const char *path, cleat_error *error) {
    cleat_text_options options = cleat_text_model_options(model, CLEAT_TEXT_CLASSES, NULL);
    options.labelled = false;
    options.plain = true;
    return cleat_text_check_columns(path, &options, error);
}

static cleat_status open_data(cleat_model *model, const char *path, cleat_mode mode, const char *fitted,
                              cleat_dataset **dataset, cleat_error *error) {
    cleat_text_options options = cleat_text_model_options(model, CLEAT_TEXT_CLASSES, fitted);
    cleat_dataset *opened = NULL;
    const bool predicts = mode == CLEAT_MODE_PREDICT;
    options.labelled = false;
    options.plain = true;
    options.predicted = predicts;
    cleat_status status =
        cleat_masked_open(path, &options, predicts ? 0 : settings_of(model)->mask_fraction, &opened, error);
    if (!status && predicts) status = check_masks(path, opened, error);
    if (!status) status = cleat_text_model_set_vocabulary(model, path, cleat_masked_tokenizer(opened), error);
    if (status) {
        cleat_dataset_destroy(opened);
        return status;
    }
    *dataset = opened;
    return CLEAT_OK;
}

/* Maximum number of tokens chosen in a text of this length. */
static int64_t most_chosen(const cleat_model *model, int64_t length) {
    const int64_t chosen = llround(settings_of(model)->mask_fraction * (double)length);
    return chosen < 1 ? 1 : chosen;
}

/* Texts have no types; batches of reference trajectories may (cleat_model_sizes.pairs). */
static bool has_types(const cleat_model *model) {
    return model->sizes.pairs > 0 && cleat_text_network_has_types(&settings_of(model)->network);
}

static size_t fields(const cleat_model *model, cleat_synthetic_field *made) {
    const int64_t row[1] = {-1};
    made[TOKENS] = cleat_synthetic_integers("tokens", cleat_text_model_vocabulary(model), 1, row);
    made[LENGTHS] = cleat_synthetic_values("lengths", CLEAT_VALUES_LENGTH, 0, NULL);
    made[LABELS] = cleat_synthetic_integers("labels", cleat_text_model_vocabulary(model), 1, row);
    if (!has_types(model)) return LABELS + 1;
    made[TYPES] = cleat_synthetic_integers("types", 2, 1, row);
    return TYPES + 1;
}

/* sample_weight [B, chosen]: 1 / number of chosen tokens of the global batch. */
static void sample_weight(const cleat_model *model, const cleat_host_batch *batch,
                          const cleat_global_batch *global_batch, float *values) {
    const float weight = global_batch->items > 0 ? 1.0f / (float)global_batch->items : 0.0f;
    for (int64_t i = 0; i < batch->batch * most_chosen(model, batch->length); ++i) values[i] = weight;
}

enum { HEAD_LAYERS = 1 };

/* x T [B, M, D] -> logits T [B, M, V]. The decoder is the table of word embeddings [V, E]. */
static cleat_tensor *build_head(const cleat_model *model, cleat_graph *graph, cleat_tensor *x) {
    const cleat_text_network_settings s =
        cleat_text_network_resolve(&settings_of(model)->network, &settings_of(model)->encoder);
    const int64_t vocabulary = cleat_text_model_vocabulary(model), table[2] = {vocabulary, s.embedding_width};
    if (s.network == CLEAT_TEXT_MODERNBERT) {
        x = cleat_text_network_plain_head(graph, "mlm", x, &s);
    } else {
        x = cleat_nn_linear_normal(graph, "mlm.dense", x, s.embedding_width, 0.02f, NULL);
        x = cleat_nn_layer_norm_eps(graph, "mlm.norm", cleat_gelu(graph, x),
                                    (float)(s.network == CLEAT_TEXT_CLEAT ? 1e-5 : s.norm_eps));
    }
    /* Already declared by the embedding, with its initial values. */
    cleat_tensor *words = cleat_param(graph, cleat_text_network_words(&s), 2, table,
                                      (cleat_init){CLEAT_INIT_NORMAL, s.network == CLEAT_TEXT_CLEAT ? 1.0f : 0.02f});
    cleat_tensor *bias = cleat_param(graph, "mlm.bias", 1, &vocabulary, (cleat_init){CLEAT_INIT_ZERO, 0});
    return cleat_linear(graph, x, words, bias, NULL);
}

static void build(const cleat_model *model, cleat_graph *graph, cleat_mode mode, int64_t batch, int64_t length,
                  cleat_model_graph *built) {
    const int64_t row[2] = {batch, length}, few[2] = {batch, most_chosen(model, length)};
    const cleat_text_shape shape = {.encoder = &settings_of(model)->encoder,
                                    .network = &settings_of(model)->network,
                                    .vocabulary = cleat_text_model_vocabulary(model),
                                    .tags = true};
    cleat_text_inputs texts = {.tokens = cleat_input(graph, "tokens", CLEAT_I32, 2, row),
                               .lengths = cleat_input(graph, "lengths", CLEAT_I32, 1, &batch)};
    cleat_tensor *labels = NULL;
    if (mode != CLEAT_MODE_PREDICT) labels = cleat_input(graph, "labels", CLEAT_I32, 2, row);
    if (has_types(model)) texts.types = cleat_input(graph, "types", CLEAT_I32, 2, row);
    cleat_model_inputs inputs = cleat_model_add_inputs(graph, mode, 2, few);
    texts.rng = inputs.rng;
    cleat_tensor *x = cleat_text_network_features(graph, &shape, mode, &texts, NULL); /* [B, L, D] */
    cleat_tensor *chosen = labels;
    if (labels && few[1] < length) x = cleat_select_marked(graph, x, labels, few[1], &chosen); /* [B, M, D] */
    cleat_tensor *logits = cleat_model_output(graph, build_head(model, graph, x), built);
    if (mode == CLEAT_MODE_PREDICT) return;
    cleat_tensor *loss = cleat_cross_entropy(graph, logits, chosen, inputs.sample_weight, 0);
    cleat_model_add_loss(graph, mode, &inputs, loss, built);
}

static int64_t layer_of(const cleat_model *model, const char *param) {
    if (strncmp(param, "mlm.", 4) == 0) return cleat_text_model_layers(model) + HEAD_LAYERS;
    return cleat_nn_encoder_layer_of(param, cleat_text_model_layers(model));
}

enum { COUNT, RIGHT, NEGATIVE_LOG, STATE };

static size_t metric_state_size(const cleat_model *model) {
    (void)model;
    return STATE;
}

static cleat_status metric_update(const cleat_model *model, const cleat_host_batch *batch, const float *output,
                                  double *metric_state, cleat_error *error) {
    const int64_t vocabulary = cleat_text_model_vocabulary(model), rows = most_chosen(model, batch->length);
    const int32_t *labels = batch->fields[LABELS];
    (void)error;
    for (int64_t b = 0; b < batch->count; ++b) {
        int64_t row = b * rows;
        double sum = 0, count = 0;
        for (int64_t l = 0; l < batch->length && row < (b + 1) * rows; ++l) {
            const int32_t label = labels[b * batch->length + l];
            if (rows == batch->length) row = b * rows + l; /* no position is left out */
            if (label < 0) continue;
            const float *logits = output + row++ * vocabulary;
            const double negative_log = cleat_class_negative_log(logits, vocabulary, label);
            metric_state[COUNT] += 1;
            metric_state[RIGHT] += cleat_class_argmax(logits, vocabulary) == label;
            metric_state[NEGATIVE_LOG] += negative_log;
            sum += negative_log;
            count += 1;
        }
        if (batch->badness) batch->badness[b] = sum / count; /* NaN if no token is masked */
    }
    return CLEAT_OK;
}

static void metric_compute(const cleat_model *model, const double *metric_state, cleat_metrics *found) {
    (void)model;
    cleat_metrics_add(found, "accuracy", metric_state[RIGHT] / metric_state[COUNT]);
    cleat_metrics_add(found, "perplexity", exp(metric_state[NEGATIVE_LOG] / metric_state[COUNT]));
}

static const cleat_architecture *architecture(const cleat_model *model, bool timm) {
    (void)timm;
    return cleat_published_text(settings_of(model)->network.network, CLEAT_HEAD_MASKED);
}

static cleat_status condense(const cleat_model *model, const cleat_host_batch *batch, int64_t b, const float *output,
                             int64_t each, float **kept, int64_t *values, cleat_error *error) {
    const int32_t *tokens = batch->fields[TOKENS], *labels = batch->fields[LABELS];
    const cleat_masked_logits from = {.logits = output,
                                      .rows = each / cleat_text_model_vocabulary(model),
                                      .vocabulary = cleat_text_model_vocabulary(model),
                                      .tokens = tokens + b * batch->length,
                                      .labels = labels ? labels + b * batch->length : NULL,
                                      .length = batch->length,
                                      .tokenizer = cleat_masked_tokenizer(batch->dataset)};
    cleat_status status = cleat_masked_condense(&from, kept, error);
    if (!status) *values = cleat_masked_kept_values(*kept);
    return status;
}

static const cleat_model_origin origins[] = {{"text_classifier", NULL}, {"text_tagger", NULL}, {NULL, NULL}};
static cleat_status add_example(const cleat_model *model, const cleat_evaluation *evaluated, size_t index,
                                cleat_string *json, cleat_error *error) {
    (void)model;
    return cleat_masked_add_example(&evaluated->predictions[index], json, error);
}

static cleat_status baseline(const cleat_model *model, const cleat_evaluation *evaluated, double *metric_state,
                             char *text, cleat_error *error) {
    cleat_token_guess guess = {.count = 0};
    const cleat_status status =
        cleat_guess_tokens(evaluated, LABELS, cleat_text_model_vocabulary(model), &guess, text, error);
    metric_state[COUNT] = guess.count;
    metric_state[RIGHT] = guess.right;
    metric_state[NEGATIVE_LOG] = guess.negative_log;
    return status;
}

static const cleat_model_examples examples = {.add = add_example, .baseline = baseline};

static cleat_status export_files(const cleat_model *model, const cleat_model_export *spec, cleat_error *error) {
    const pretrain_settings *s = settings_of(model);
    return cleat_text_export(spec, s->data.lowercase, s->common.max_length, false, error);
}

const cleat_model_class cleat_text_pretrain = {.name = "text_pretrain",
                                               .keys = keys,
                                               .settings_size = sizeof(pretrain_settings),
                                               .defaults = cleat_text_model_defaults,
                                               .check = cleat_text_model_check,
                                               .metrics = metrics,
                                               .terms = terms,
                                               .n_terms = 1,
                                               .check_data = check_data,
                                               .open_data = open_data,
                                               .fields = fields,
                                               .build = build,
                                               .layer_of = layer_of,
                                               .layers = cleat_text_model_layers,
                                               .sample_weight = sample_weight,
                                               .metric_state_size = metric_state_size,
                                               .metric_update = metric_update,
                                               .metric_compute = metric_compute,
                                               .write = cleat_masked_write,
                                               .overrides = cleat_text_overrides,
                                               .export_files = export_files,
                                               .origins = origins,
                                               .condense = condense,
                                               .examples = &examples,
                                               .architectures = cleat_published_masked,
                                               .architecture = architecture,
                                               .init_profile = "text_adapt"};
