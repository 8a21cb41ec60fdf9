/* The networks of the text families. */
#include "models/text_networks.h"

#include "core/cpus.h"
#include "graph/graph.h"
#include "models/model.h"
#include "nn/bert.h"
#include "nn/deberta.h"
#include "nn/modernbert.h"

#include <stdio.h>

const char *const cleat_text_pooling_names[] = {"mean", "first", NULL};
const char *const cleat_text_encoding_names[] = {"error", "replace", NULL};
const char *const cleat_position_terms_names[] = {
    [CLEAT_BOTH_TERMS] = "both", [CLEAT_ONLY_C2P] = "c2p", [CLEAT_ONLY_P2C] = "p2c", NULL};

/* Standard deviation of initial weights (initializer_range in all published configurations). */
static const float INIT_STD = 0.02f;

typedef cleat_tensor *activation(cleat_graph *graph, cleat_tensor *x);

/* A network of BERT's family: the usual values of its settings, and the head of a classifier, which is a
 * hidden layer with this activation on the first token, and the output layer. */
typedef struct usual_network {
    int64_t first_position, token_types;
    double norm_eps;
    activation *head;
    bool early_dropout; /* also before the hidden layer of the head */
    bool plain_attention;
    bool projects;    /* the embeddings may differ in width from the blocks */
    bool normed_head; /* the hidden layer has no bias and a norm, tags have one too, and the mean may be its input */
} usual_network;

static const usual_network networks[CLEAT_TEXT_NETWORKS] = {
    [CLEAT_TEXT_BERT] = {.token_types = 2, .norm_eps = 1e-12, .head = cleat_tanh},
    [CLEAT_TEXT_ROBERTA] =
        {.first_position = 2, .token_types = 1, .norm_eps = 1e-5, .head = cleat_tanh, .early_dropout = true},
    [CLEAT_TEXT_XLM_ROBERTA] =
        {.first_position = 2, .token_types = 1, .norm_eps = 1e-5, .head = cleat_tanh, .early_dropout = true},
    [CLEAT_TEXT_DISTILBERT] = {.norm_eps = 1e-12, .head = cleat_relu, .plain_attention = true},
    [CLEAT_TEXT_ELECTRA] =
        {.token_types = 2, .norm_eps = 1e-12, .head = cleat_gelu, .early_dropout = true, .projects = true},
    [CLEAT_TEXT_DEBERTA] = {.norm_eps = 1e-7, .head = cleat_gelu},
    [CLEAT_TEXT_MODERNBERT] = {.norm_eps = 1e-5, .head = cleat_gelu, .normed_head = true},
};

const char *const cleat_text_network_names[] = {[CLEAT_TEXT_CLEAT] = "cleat",
                                                [CLEAT_TEXT_BERT] = "bert",
                                                [CLEAT_TEXT_ROBERTA] = "roberta",
                                                [CLEAT_TEXT_XLM_ROBERTA] = "xlm-roberta",
                                                [CLEAT_TEXT_DISTILBERT] = "distilbert",
                                                [CLEAT_TEXT_ELECTRA] = "electra",
                                                [CLEAT_TEXT_DEBERTA] = "deberta-v2",
                                                [CLEAT_TEXT_MODERNBERT] = "modernbert",
                                                [CLEAT_TEXT_NETWORKS] = NULL};

cleat_text_network_settings cleat_text_network_resolve(const cleat_text_network_settings *network,
                                                       const cleat_encoder_settings *encoder) {
    cleat_text_network_settings s = *network;
    const usual_network *usual = &networks[s.network];
    if (s.first_position == CLEAT_AUTO) s.first_position = usual->first_position;
    if (s.token_types == CLEAT_AUTO) s.token_types = usual->token_types;
    if (s.embedding_width == CLEAT_AUTO) s.embedding_width = encoder->d_model;
    if (s.relative_positions == CLEAT_AUTO) s.relative_positions = s.max_positions;
    if (s.norm_eps == CLEAT_AUTO) s.norm_eps = usual->norm_eps;
    if (s.head_dropout == CLEAT_AUTO) s.head_dropout = encoder->dropout;
    return s;
}

cleat_text_network_settings cleat_text_network_of(const cleat_model *model) {
    const cleat_text_model_settings *s = model->settings;
    return cleat_text_network_resolve(&s->network, &s->encoder);
}

bool cleat_text_network_has_types(const cleat_text_network_settings *network) {
    const int64_t types = network->token_types;
    if (network->network == CLEAT_TEXT_CLEAT) return false;
    return (types == CLEAT_AUTO ? networks[network->network].token_types : types) > 1;
}

static cleat_bert bert_shape(const cleat_text_shape *shape, const cleat_text_network_settings *s, cleat_mode mode) {
    cleat_bert made = {.encoder = cleat_encoder_shape(shape->encoder, mode),
                       .vocabulary = shape->vocabulary,
                       .embedding_width = s->embedding_width,
                       /* DeBERTa's positions are relative only. */
                       .max_positions = s->network == CLEAT_TEXT_DEBERTA ? 0 : s->max_positions,
                       .first_position = s->first_position,
                       .token_types = s->token_types,
                       .padding = s->padding_row == CLEAT_AUTO ? -1 : s->padding_row,
                       .norm_eps = (float)s->norm_eps,
                       .plain_attention = networks[s->network].plain_attention};
    made.encoder.init_std = INIT_STD;
    return made;
}

static cleat_deberta deberta_shape(const cleat_bert *bert, const cleat_text_network_settings *s) {
    return (cleat_deberta){.bert = *bert,
                           .buckets = (int)s->position_buckets,
                           .max_relative_positions = (int)s->relative_positions,
                           .content_to_position = s->position_terms != CLEAT_ONLY_P2C,
                           .position_to_content = s->position_terms != CLEAT_ONLY_C2P,
                           .shared_keys = s->shared_positions,
                           .norm_positions = s->normed_positions};
}

static cleat_tensor *modernbert_features(cleat_graph *graph, const cleat_bert *bert,
                                         const cleat_text_network_settings *s, const cleat_text_inputs *inputs,
                                         const cleat_read_row *read) {
    cleat_modernbert shape = {.encoder = bert->encoder,
                              .vocabulary = bert->vocabulary,
                              .padding = bert->padding,
                              .global_every = s->global_every,
                              .window = (int)s->local_window,
                              .global_base = s->global_base,
                              .local_base = s->local_base};
    shape.encoder.norm_eps = bert->norm_eps;
    return cleat_nn_modernbert(graph, inputs->tokens, inputs->lengths, inputs->rng, &shape, read);
}

/* Embedding and pre-norm encoder of cleat's own. */
static cleat_tensor *cleat_features(cleat_graph *graph, const cleat_text_shape *shape, cleat_mode mode,
                                    const cleat_text_inputs *inputs, const cleat_read_row *read) {
    const cleat_transformer encoder = cleat_encoder_shape(shape->encoder, mode);
    cleat_tensor *x = cleat_nn_embedding(graph, "emb", inputs->tokens, shape->vocabulary, &encoder); /* [B, L, D] */
    x = cleat_positional_encoding(graph, x, NULL);
    if (encoder.dropout > 0) x = cleat_dropout(graph, x, inputs->rng, encoder.dropout);
    return cleat_nn_encoder(graph, x, inputs->lengths, inputs->rng, &encoder, read);
}

/* Its head is one layer. */
static cleat_tensor *cleat_head(cleat_graph *graph, const cleat_text_shape *shape, cleat_tensor *x,
                                const cleat_text_inputs *inputs) {
    if (!shape->tags && shape->pooling == CLEAT_POOLING_MEAN)
        x = cleat_mean_pool(graph, x, inputs->lengths); /* [B, D] */
    if (shape->numbers) cleat_model_begin_f32_head(graph);
    return cleat_nn_linear(graph, "head", x, shape->classes, NULL);
}

cleat_tensor *cleat_text_network_plain_head(cleat_graph *graph, const char *prefix, cleat_tensor *x,
                                            const cleat_text_network_settings *network) {
    char name[CLEAT_NAME];
    const double usual = networks[network->network].norm_eps, eps = network->norm_eps;
    if (!x) return NULL;
    snprintf(name, sizeof name, "%.50s.dense", prefix);
    x = cleat_gelu(graph, cleat_nn_linear_plain(graph, name, x, cleat_width(x), INIT_STD, NULL));
    snprintf(name, sizeof name, "%.50s.norm", prefix);
    return cleat_nn_layer_norm_plain(graph, name, x, (float)(eps == CLEAT_AUTO ? usual : eps));
}

/* x [B, D] or [B, L, D] -> [B, classes], or [B, L, D] -> [B, L, classes] */
static cleat_tensor *build_head(cleat_graph *graph, const cleat_text_shape *shape, cleat_tensor *x, float rate,
                                const cleat_text_inputs *inputs) {
    const usual_network *own = &networks[shape->network->network];
    if (own->normed_head) {
        if (!shape->tags && shape->pooling == CLEAT_POOLING_MEAN) x = cleat_mean_pool(graph, x, inputs->lengths);
        x = cleat_text_network_plain_head(graph, "head", x, shape->network);
    } else if (!shape->tags) {
        if (own->early_dropout && rate > 0) x = cleat_dropout(graph, x, inputs->rng, rate);
        x = cleat_nn_linear_normal(graph, "head.dense", x, shape->encoder->d_model, INIT_STD, NULL);
        x = own->head(graph, x);
    }
    if (rate > 0) x = cleat_dropout(graph, x, inputs->rng, rate);
    if (shape->numbers) cleat_model_begin_f32_head(graph);
    return cleat_nn_linear_normal(graph, "head.out", x, shape->classes, INIT_STD, NULL);
}

cleat_tensor *cleat_text_network_features(cleat_graph *graph, const cleat_text_shape *shape, cleat_mode mode,
                                          const cleat_text_inputs *inputs, const cleat_read_row *read) {
    if (shape->network->network == CLEAT_TEXT_CLEAT) return cleat_features(graph, shape, mode, inputs, read);
    const cleat_text_network_settings s = cleat_text_network_resolve(shape->network, shape->encoder);
    const cleat_bert bert = bert_shape(shape, &s, mode);
    const cleat_deberta deberta = deberta_shape(&bert, &s);
    if (s.network == CLEAT_TEXT_MODERNBERT) return modernbert_features(graph, &bert, &s, inputs, read);
    cleat_tensor *x = cleat_nn_bert_embeddings(graph, inputs->tokens, inputs->types, inputs->rng, &bert);
    if (s.network == CLEAT_TEXT_DEBERTA)
        return cleat_nn_deberta_encoder(graph, x, inputs->lengths, inputs->rng, &deberta, read);
    return cleat_nn_bert_encoder(graph, x, inputs->lengths, inputs->rng, &bert, read);
}

const char *cleat_text_network_words(const cleat_text_network_settings *network) {
    return network->network == CLEAT_TEXT_CLEAT ? "emb.weight" : "emb.word.weight";
}

cleat_tensor *cleat_text_network_build(cleat_graph *graph, const cleat_text_shape *shape, cleat_mode mode,
                                       const cleat_text_inputs *inputs) {
    const cleat_text_network_settings s = cleat_text_network_resolve(shape->network, shape->encoder);
    const bool pools = s.network == CLEAT_TEXT_CLEAT || networks[s.network].normed_head;
    const bool first = !shape->tags && (!pools || shape->pooling == CLEAT_POOLING_FIRST);
    const cleat_read_row read = {.row = CLEAT_ROW_FIRST, .lengths = inputs->lengths};
    cleat_tensor *x = cleat_text_network_features(graph, shape, mode, inputs, first ? &read : NULL);
    if (s.network == CLEAT_TEXT_CLEAT) return cleat_head(graph, shape, x, inputs);
    return build_head(graph, shape, x, mode == CLEAT_MODE_TRAIN ? (float)s.head_dropout : 0, inputs);
}

/* The logarithmic scale needs room beyond the distances that have a bucket each. */
static cleat_status check_distances(const cleat_text_network_settings *network, const cleat_encoder_settings *encoder,
                                    const cleat_record *record, cleat_error *error) {
    const int64_t buckets = network->position_buckets,
                  distances = cleat_text_network_resolve(network, encoder).relative_positions;
    if (buckets == 0 || (buckets > 1 && distances - 1 > buckets / 2)) return CLEAT_OK;
    return cleat_record_contradict(
        record, error, "model.position_buckets", "model.relative_positions",
        "there are %lld buckets for %lld distances; there must be at least 2, and half of them "
        "must be less than the distances minus one",
        (long long)buckets, (long long)distances);
}

/* Checks the settings of [model], and that texts of `max_length` tokens have positions. */
static cleat_status check_network(const cleat_text_network_settings *network, const cleat_encoder_settings *encoder,
                                  int64_t max_length, const cleat_record *record, cleat_error *error) {
    cleat_status status = cleat_encoder_check(encoder, record, error);
    if (status || network->network == CLEAT_TEXT_CLEAT) return status;
    if (network->network == CLEAT_TEXT_DEBERTA) status = check_distances(network, encoder, record, error);
    if (status) return status;
    const cleat_text_network_settings s = cleat_text_network_resolve(network, encoder);
    const int64_t first = s.first_position, usable = s.max_positions - first;
    if (s.embedding_width != encoder->d_model && !networks[s.network].projects)
        return cleat_record_contradict(record, error, "model.embedding_width", "model.network",
                                       "the embeddings of this network have the width d_model = %lld",
                                       (long long)encoder->d_model);
    if (s.network == CLEAT_TEXT_MODERNBERT && encoder->d_model / encoder->heads % 2 != 0)
        return cleat_record_contradict(record, error, "model.heads", "model.d_model",
                                       "a head has %lld elements; rotary positions need an even number",
                                       (long long)(encoder->d_model / encoder->heads));
    if (usable < 1)
        return cleat_record_contradict(record, error, "model.first_position", "model.max_positions",
                                       "the first token has row %lld of %lld", (long long)first,
                                       (long long)s.max_positions);
    if (max_length > usable)
        return cleat_record_contradict(record, error, "data.max_length", "model.max_positions",
                                       "there are positions for %lld tokens%s; set data.max_length to at most that",
                                       (long long)usable, first ? " (the first rows are not used)" : "");
    return CLEAT_OK;
}

cleat_status cleat_text_model_check(const void *settings, const cleat_record *record, cleat_error *error) {
    const cleat_text_model_settings *s = settings;
    cleat_status status = check_network(&s->network, &s->encoder, s->common.max_length, record, error);
    return status ? status : cleat_fractions_check(s->data.val_fraction, s->data.test_fraction, record, error);
}

void cleat_text_model_defaults(void *settings) {
    ((cleat_text_model_settings *)settings)->data = cleat_text_defaults();
}

static const cleat_text_model_settings *settings_of(const cleat_model *model) {
    return model->settings;
}

int64_t cleat_text_model_layers(const cleat_model *model) {
    return settings_of(model)->encoder.layers;
}

cleat_text_options cleat_text_model_options(const cleat_model *model, cleat_text_task task, const char *fitted) {
    const int most = 16, cpus = cleat_cpus();
    cleat_text_options options = settings_of(model)->data;
    options.task = task;
    options.max_length = settings_of(model)->common.max_length;
    options.fitted = fitted ? fitted : "";
    options.workers = model->options.workers != CLEAT_AUTO ? (int)model->options.workers : cpus > most ? most : cpus;
    return options;
}

int64_t cleat_text_model_vocabulary(const cleat_model *model) {
    const int64_t rows = settings_of(model)->network.embedding_rows;
    if (model->sizes.vocabulary) return model->sizes.vocabulary;
    return rows == CLEAT_AUTO ? settings_of(model)->data.vocabulary_size : rows;
}

cleat_status cleat_text_model_set_vocabulary(cleat_model *model, const char *path, const cleat_tokenizer *tokenizer,
                                             cleat_error *error) {
    const int64_t tokens = (int64_t)cleat_tokenizer_size(tokenizer), rows = settings_of(model)->network.embedding_rows;
    if (rows != CLEAT_AUTO && tokens > rows)
        return cleat_fail(error, CLEAT_ERR_PROFILE,
                          "%s: the vocabulary has %lld tokens, and the word embeddings have model.embedding_rows = "
                          "%lld: the tokenizer and the network do not belong together",
                          path, (long long)tokens, (long long)rows);
    model->sizes.vocabulary = rows == CLEAT_AUTO ? tokens : rows;
    return CLEAT_OK;
}
