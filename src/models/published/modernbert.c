/* ModernBERT as transformers has it. */
#include "core/string.h"
#include "models/published/text.h"
#include "weights/config.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

/* Relative to "model.". */
#define BACKBONE                                                                                                       \
    {.param = "emb.word", .sources = {"embeddings.tok_embeddings"}},                                                   \
        {.param = "emb.norm", .sources = {"embeddings.norm"}}, {.param = "norm", .sources = {"final_norm"}},           \
        {.param = "blocks.*.n1", .sources = {"layers.*.attn_norm"}},                                                   \
        {.param = "blocks.*.att.qkv", .sources = {"layers.*.attn.Wqkv"}},                                              \
        {.param = "blocks.*.att.out", .sources = {"layers.*.attn.Wo"}},                                                \
        {.param = "blocks.*.n2", .sources = {"layers.*.mlp_norm"}},                                                    \
        {.param = "blocks.*.f1", .sources = {"layers.*.mlp.Wi"}}, {                                                    \
        .param = "blocks.*.f2", .sources = { "layers.*.mlp.Wo" }                                                       \
    }
static const cleat_weight_row names[] = {BACKBONE,
                                         HEAD("head.dense", "head.dense"),
                                         HEAD("head.norm", "head.norm"),
                                         HEAD("head.out", "classifier"),
                                         {.param = NULL}};
static const cleat_weight_row masked_names[] = {BACKBONE,
                                                HEAD("mlm.dense", "head.dense"),
                                                HEAD("mlm.norm", "head.norm"),
                                                HEAD("mlm.bias", "decoder.bias"),
                                                {.param = NULL}};
/* Heads of other tasks. */
static const char *const ignored[] = {"decoder.*", "head.*", "classifier.*", NULL};

#define ONLY_FALSE(KEY)                                                                                                \
    { .key = KEY, .fallback = "false", .only = "false" }
#define ROWS                                                                                                           \
    {.key = "model_type", .setting = "model.network", .kind = CLEAT_JSON_TEXT},                                        \
        {.key = "vocab_size", .setting = "model.embedding_rows"}, {.key = "hidden_size", .setting = "model.d_model"},  \
        {.key = "num_attention_heads", .setting = "model.heads"},                                                      \
        {.key = "num_hidden_layers", .setting = "model.layers"},                                                       \
        {.key = "intermediate_size", .setting = "model.d_ff"},                                                         \
        {.key = "max_position_embeddings", .setting = "model.max_positions", .fallback = "8192"},                      \
        {.key = "local_attention", .setting = "model.local_window", .fallback = "128"},                                \
        {.key = "norm_eps", .setting = "model.norm_eps", .fallback = "1e-5", .kind = CLEAT_JSON_NUMBER},               \
        {.key = "mlp_dropout", .setting = "model.dropout", .fallback = "0", .kind = CLEAT_JSON_NUMBER},                \
        {.key = "hidden_activation", .fallback = "\"gelu\"", .only = "\"gelu\""},                                      \
        {.key = "classifier_activation", .fallback = "\"gelu\"", .only = "\"gelu\""}, ONLY_FALSE("norm_bias"),         \
        ONLY_FALSE("attention_bias"), ONLY_FALSE("mlp_bias"), ONLY_FALSE("classifier_bias")
static const cleat_config_row config_rows[] = {ROWS, {.key = NULL}};
/* The last layer of a masked language model is the table of word embeddings. */
static const cleat_config_row masked_config_rows[] = {
    ROWS,
    {.key = "tie_word_embeddings", .fallback = "true", .only = "true"},
    {.key = "decoder_bias", .fallback = "true", .only = "true"},
    {.key = NULL}};

/* The base of the rotary positions of one kind of attention: transformers 5 has it in rope_parameters. */
static cleat_status set_base(const cleat_weights *weights, const char *object, const char *old_key, double usual,
                             const char *setting, const cleat_setting_sink *sink, cleat_error *error) {
    char path[80], text[32];
    const cJSON *type = NULL, *base = NULL, *parameters;
    cleat_status status =
        cleat_weights_member(weights, "rope_parameters", CLEAT_JSON_OBJECT | CLEAT_JSON_NULL, &parameters, error);
    if (status) return status;
    if (parameters) {
        snprintf(path, sizeof path, "rope_parameters.%s.rope_type", object);
        status = cleat_weights_member(weights, path, CLEAT_JSON_TEXT | CLEAT_JSON_NULL, &type, error);
        if (!status && type && strcmp(type->valuestring, "default") != 0)
            return cleat_config_refuse(cleat_weights_folder(weights), "config.json", path, type, "\"default\"", error);
        snprintf(path, sizeof path, "rope_parameters.%s.rope_theta", object);
        if (!status) status = cleat_weights_member(weights, path, CLEAT_JSON_NUMBER | CLEAT_JSON_NULL, &base, error);
    }
    if (!status && !base) {
        snprintf(path, sizeof path, "%s", old_key);
        status = cleat_weights_member(weights, path, CLEAT_JSON_NUMBER | CLEAT_JSON_NULL, &base, error);
    }
    if (status) return status;
    cleat_number_print(base ? base->valuedouble : usual, text);
    return sink->set(sink->user, setting, text, path, error);
}

/* Number of blocks from one with global attention to the next: a number, or in transformers 5 the list layer_types, in
 * which such blocks follow each other at equal distances from the first on. */
static cleat_status set_global_blocks(const cleat_weights *weights, const cleat_setting_sink *sink,
                                      cleat_error *error) {
    static const char number[] = "global_attn_every_n_layers", list[] = "layer_types";
    const cJSON *types, *item;
    int64_t every;
    cleat_status status = cleat_weights_integer(weights, number, 3, &every, error);
    if (!status) status = cleat_weights_member(weights, list, CLEAT_JSON_TEXTS | CLEAT_JSON_NULL, &types, error);
    if (status) return status;
    if (!types) return cleat_set_integer(sink, "model.global_every", every, number, error);
    int layer = 0;
    every = cJSON_GetArraySize(types);
    cJSON_ArrayForEach(item, types) {
        if (layer > 0 && every > layer && strcmp(item->valuestring, "full_attention") == 0) every = layer;
        const char *wanted = layer % every == 0 ? "full_attention" : "sliding_attention";
        if (strcmp(item->valuestring, wanted) != 0)
            return cleat_config_refuse(cleat_weights_folder(weights), "config.json", list, types,
                                       "full_attention at equal distances from the first block on, sliding_attention "
                                       "for the others",
                                       error);
        ++layer;
    }
    return cleat_set_integer(sink, "model.global_every", every > 0 ? every : 1, list, error);
}

static cleat_status set_pooling(const cleat_weights *weights, const cleat_setting_sink *sink, cleat_error *error) {
    static const char key[] = "classifier_pooling";
    const cJSON *item;
    cleat_status status = cleat_weights_member(weights, key, CLEAT_JSON_TEXT | CLEAT_JSON_NULL, &item, error);
    if (status) return status;
    const bool mean = item && strcmp(item->valuestring, "mean") == 0;
    if (item && !mean && strcmp(item->valuestring, "cls") != 0)
        return cleat_config_refuse(cleat_weights_folder(weights), "config.json", key, item, "\"cls\" or \"mean\"",
                                   error);
    return sink->set(sink->user, "model.pooling",
                     cleat_text_pooling_names[mean ? CLEAT_POOLING_MEAN : CLEAT_POOLING_FIRST], key, error);
}

static cleat_status configure(const cleat_weights *weights, const cleat_setting_sink *sink, cleat_error *error) {
    int64_t padding = -1;
    const cJSON *scaling;
    cleat_status status =
        cleat_weights_member(weights, "rope_scaling", CLEAT_JSON_OBJECT | CLEAT_JSON_NULL, &scaling, error);
    if (!status && scaling)
        status =
            cleat_config_refuse(cleat_weights_folder(weights), "config.json", "rope_scaling", scaling, "null", error);
    if (!status)
        status = set_base(weights, "full_attention", "global_rope_theta", 160000, "model.global_base", sink, error);
    if (!status)
        status = set_base(weights, "sliding_attention", "local_rope_theta", 10000, "model.local_base", sink, error);
    if (!status) status = set_global_blocks(weights, sink, error);
    if (!status && sink->head == CLEAT_HEAD_CLASSES) status = set_pooling(weights, sink, error);
    if (!status) status = cleat_published_padding(weights, 50283, &padding, error);
    if (!status && padding >= 0) status = cleat_set_integer(sink, "model.padding_row", padding, "pad_token_id", error);
    return status ? status : cleat_published_set_texts(weights, sink, 0, error);
}

/* Members that transformers 4 and 5 both read. */
static bool describe(const cleat_model *model, cJSON *config) {
    const cleat_text_network_settings s = cleat_text_network_of(model);
    const double dropout = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(config, "mlp_dropout"));
    bool done = cleat_published_add_class(model, s.network, config) &&
                cJSON_AddNumberToObject(config, "embedding_dropout", dropout) &&
                cJSON_AddNumberToObject(config, "classifier_dropout", s.head_dropout) &&
                cJSON_AddNumberToObject(config, "global_rope_theta", s.global_base) &&
                cJSON_AddNumberToObject(config, "local_rope_theta", s.local_base) &&
                cJSON_AddNumberToObject(config, "global_attn_every_n_layers", (double)s.global_every);
    if (model->type->architectures == cleat_published_classifiers)
        done = done &&
               cJSON_AddStringToObject(config, "classifier_pooling", s.pooling == CLEAT_POOLING_MEAN ? "mean" : "cls");
    /* Else transformers warns of its default ids, beyond the vocabulary. */
    static const char *const tokens[] = {"bos_token_id", "cls_token_id", "eos_token_id", "sep_token_id"};
    for (int i = 0; i < 4; ++i) done = done && cJSON_AddNullToObject(config, tokens[i]);
    if (s.padding_row == CLEAT_AUTO)
        done = done && cJSON_AddNullToObject(config, "pad_token_id");
    else
        done = done && cJSON_AddNumberToObject(config, "pad_token_id", (double)s.padding_row);
    return done;
}

static const char members[] =
    " layer_types classifier_activation classifier_bias classifier_pooling decoder_bias deterministic_flash_attn "
    "embedding_dropout global_attn_every_n_layers global_rope_theta hidden_activation initializer_cutoff_factor "
    "local_attention local_rope_theta mlp_dropout norm_bias norm_eps attention_bias mlp_bias reference_compile "
    "repad_logits_with_grad rope_parameters rope_scaling sparse_pred_ignore_index sparse_prediction ";

#define ARCHITECTURE(HEAD, NAMES, CONFIG)                                                                              \
    .name = "modernbert", .base = "model.", .names = NAMES, .ignored = ignored, .config = CONFIG, .head = HEAD,        \
    .members = members, .configure = configure, .describe = describe, .keeps = cleat_published_keeps_text
const cleat_architecture cleat_published_modernbert[CLEAT_TOKENIZER_HEADS] = {
    [CLEAT_HEAD_CLASSES] = {ARCHITECTURE(CLEAT_HEAD_CLASSES, names, config_rows)},
    [CLEAT_HEAD_TAGS] = {ARCHITECTURE(CLEAT_HEAD_TAGS, names, config_rows)},
    [CLEAT_HEAD_MASKED] = {ARCHITECTURE(CLEAT_HEAD_MASKED, masked_names, masked_config_rows), .tied = true}};
