/* DeBERTa-v2 and v3 as transformers has them. */
#include "models/published/text.h"
#include "weights/config.h"

#include <cjson/cJSON.h>
#include <string.h>

/* Relative to "deberta.". */
#define BACKBONE                                                                                                       \
    {.param = "emb.word", .sources = {"embeddings.word_embeddings"}},                                                  \
        {.param = "emb.type", .sources = {"embeddings.token_type_embeddings"}},                                        \
        {.param = "emb.norm", .sources = {"embeddings.LayerNorm"}},                                                    \
        {.param = "rel.weight", .sources = {"encoder.rel_embeddings.weight"}},                                         \
        {.param = "rel.norm", .sources = {"encoder.LayerNorm"}},                                                       \
        {.param = "blocks.*.att.qkv",                                                                                  \
         .sources = {"encoder.layer.*.attention.self.query_proj", "encoder.layer.*.attention.self.key_proj",           \
                     "encoder.layer.*.attention.self.value_proj"}},                                                    \
        {.param = "blocks.*.att.pos_key", .sources = {"encoder.layer.*.attention.self.pos_key_proj"}},                 \
        {.param = "blocks.*.att.pos_query", .sources = {"encoder.layer.*.attention.self.pos_query_proj"}},             \
        BERT_LAYER_ROWS
static const cleat_weight_row classifier_names[] = {
    BACKBONE, HEAD("head.dense", "pooler.dense"), HEAD("head.out", "classifier"), {.param = NULL}};
static const cleat_weight_row tagger_names[] = {BACKBONE, HEAD("head.out", "classifier"), {.param = NULL}};
/* transformers has two heads ("legacy" of config.json), which compute the same: its usual one, and that of
 * the files of the authors. */
static const cleat_weight_row masked_names[] = {BACKBONE, BERT_MASKED_ROWS, {.param = NULL}};
static const cleat_weight_row masked_other_names[] = {HEAD("mlm.dense", "lm_predictions.lm_head.dense"),
                                                      HEAD("mlm.norm", "lm_predictions.lm_head.LayerNorm"),
                                                      HEAD("mlm.bias", "lm_predictions.lm_head.bias"),
                                                      {.param = NULL}};

/* Heads of other tasks, buffers, and absolute positions, which no published network of this type uses. */
static const char *const ignored[] = {"*position_ids",    "*position_embeddings.weight",
                                      "pooler.dense.*",   "cls.*",
                                      "lm_predictions.*", "mask_predictions.*",
                                      "qa_outputs.*",     "classifier.*",
                                      "deberta.z_steps",  NULL};

#define ROWS                                                                                                           \
    BERT_CONFIG_ROWS("0", "1e-7"),                                                                                     \
        {.key = "share_att_key", .setting = "model.shared_positions", .fallback = "false", .kind = CLEAT_JSON_BOOL},   \
        {.key = "hidden_act", .fallback = "\"gelu\"", .only = "\"gelu\""},                                             \
        {.key = "pooler_hidden_act", .fallback = "\"gelu\"", .only = "\"gelu\""},                                      \
        {.key = "pooler_dropout", .fallback = "0", .only = "0"},                                                       \
        {.key = "relative_attention", .fallback = "false", .only = "true"},                                            \
        {.key = "position_biased_input", .fallback = "true", .only = "false"}, {                                       \
        .key = "conv_kernel_size", .fallback = "0", .only = "0"                                                        \
    }

static const cleat_config_row config_rows[] = {ROWS, {.key = NULL}};
/* The last layer of a masked language model is the table of word embeddings. */
static const cleat_config_row masked_config_rows[] = {
    ROWS, {.key = "tie_word_embeddings", .fallback = "true", .only = "true"}, {.key = NULL}};

/* Whether a member names each of `words` [count]: a list of words, or words with | between them. */
static cleat_status find_words(const cleat_weights *weights, const char *key, const char *const *words, int count,
                               bool *found, cleat_error *error) {
    const cJSON *member, *item;
    cleat_status status =
        cleat_weights_member(weights, key, CLEAT_JSON_TEXT | CLEAT_JSON_TEXTS | CLEAT_JSON_NULL, &member, error);
    for (int i = 0; i < count; ++i) {
        found[i] = cJSON_IsString(member) && strstr(member->valuestring, words[i]);
        cJSON_ArrayForEach(item, member) {
            if (cJSON_IsString(item) && strcmp(item->valuestring, words[i]) == 0) found[i] = true;
        }
    }
    return status;
}

static cleat_status set_terms(const cleat_weights *weights, const cleat_setting_sink *sink, cleat_error *error) {
    static const char key[] = "pos_att_type", *const words[] = {"c2p", "p2c"};
    bool found[2];
    cleat_status status = find_words(weights, key, words, 2, found, error);
    if (status) return status;
    if (!found[0] && !found[1])
        return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED, "%s/config.json: %s names neither c2p nor p2c",
                          cleat_weights_folder(weights), key);
    const int terms = found[0] && found[1] ? CLEAT_BOTH_TERMS : found[0] ? CLEAT_ONLY_C2P : CLEAT_ONLY_P2C;
    return sink->set(sink->user, "model.position_terms", cleat_position_terms_names[terms], key, error);
}

static cleat_status set_norm(const cleat_weights *weights, const cleat_setting_sink *sink, cleat_error *error) {
    static const char key[] = "norm_rel_ebd", *const word[] = {"layer_norm"};
    bool normed;
    cleat_status status = find_words(weights, key, word, 1, &normed, error);
    return status ? status : sink->set(sink->user, "model.normed_positions", normed ? "true" : "false", key, error);
}

static cleat_status set_positions(const cleat_weights *weights, const cleat_setting_sink *sink, cleat_error *error) {
    int64_t buckets = -1, distances = -1, padding = -1;
    cleat_status status = cleat_weights_integer(weights, "position_buckets", -1, &buckets, error);
    if (!status) status = cleat_weights_integer(weights, "max_relative_positions", -1, &distances, error);
    if (!status) status = cleat_published_padding(weights, 0, &padding, error);
    if (!status)
        status =
            cleat_set_integer(sink, "model.position_buckets", buckets > 0 ? buckets : 0, "position_buckets", error);
    if (!status && distances > 0)
        status = cleat_set_integer(sink, "model.relative_positions", distances, "max_relative_positions", error);
    if (!status) status = set_norm(weights, sink, error);
    if (!status && padding >= 0) status = cleat_set_integer(sink, "model.padding_row", padding, "pad_token_id", error);
    return status ? status : set_terms(weights, sink, error);
}

/* Widths that may differ from hidden_size in transformers, but do so in no published network. */
static cleat_status check_widths(const cleat_weights *weights, cleat_error *error) {
    static const char *const keys[] = {"embedding_size", "pooler_hidden_size"};
    int64_t width, other;
    cleat_status status = cleat_weights_integer(weights, "hidden_size", 0, &width, error);
    for (size_t i = 0; i < sizeof keys / sizeof *keys && !status; ++i) {
        status = cleat_weights_integer(weights, keys[i], width, &other, error);
        if (!status && other != width)
            return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED,
                              "%s/config.json: %s is %lld; only the value of hidden_size, %lld, is supported",
                              cleat_weights_folder(weights), keys[i], (long long)other, (long long)width);
    }
    return status;
}

static cleat_status configure(const cleat_weights *weights, const cleat_setting_sink *sink, cleat_error *error) {
    cleat_status status = check_widths(weights, error);
    if (!status) status = set_positions(weights, sink, error);
    return status ? status : cleat_published_set_texts(weights, sink, 0, error);
}
/* Members that are lists, or that are omitted if they have no value. */
static bool describe(const cleat_model *model, cJSON *config) {
    const cleat_text_network_settings s = cleat_text_network_of(model);
    static const char *const words[] = {"p2c", "c2p"};
    const int first = s.position_terms == CLEAT_ONLY_C2P, last = s.position_terms != CLEAT_ONLY_P2C;
    cJSON *terms = cJSON_CreateStringArray(words + first, last - first + 1);
    const double distances = s.relative_positions == CLEAT_AUTO ? -1 : (double)s.relative_positions,
                 width = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(config, "hidden_size"));
    bool done = cleat_published_add_class(model, s.network, config) && terms &&
                cJSON_AddItemToObject(config, "pos_att_type", terms);
    if (!done) cJSON_Delete(terms);
    done = done &&
           cJSON_AddNumberToObject(config, "position_buckets", s.position_buckets ? (double)s.position_buckets : -1) &&
           cJSON_AddNumberToObject(config, "max_relative_positions", distances) &&
           cJSON_AddStringToObject(config, "norm_rel_ebd", s.normed_positions ? "layer_norm" : "none") &&
           cJSON_AddNumberToObject(config, "pooler_hidden_size", width);
    if (s.padding_row != CLEAT_AUTO)
        done = done && cJSON_AddNumberToObject(config, "pad_token_id", (double)s.padding_row);
    return done;
}

/* Selects the head with the names of `masked_names`. */
static bool describe_masked(const cleat_model *model, cJSON *config) {
    return cJSON_AddTrueToObject(config, "legacy") && describe(model, config);
}

#define ARCHITECTURE(HEAD, NAMES, CONFIG, DESCRIBE)                                                                    \
    .name = "deberta-v2", .base = "deberta.", .names = NAMES, .ignored = ignored, .config = CONFIG, .head = HEAD,      \
    .configure = configure, .describe = DESCRIBE, .keeps = cleat_published_keeps_text
const cleat_architecture cleat_published_deberta[CLEAT_TOKENIZER_HEADS] = {
    [CLEAT_HEAD_CLASSES] = {ARCHITECTURE(CLEAT_HEAD_CLASSES, classifier_names, config_rows, describe)},
    [CLEAT_HEAD_TAGS] = {ARCHITECTURE(CLEAT_HEAD_TAGS, tagger_names, config_rows, describe)},
    [CLEAT_HEAD_MASKED] = {ARCHITECTURE(CLEAT_HEAD_MASKED, masked_names, masked_config_rows, describe_masked),
                           .other_names = masked_other_names, .tied = true}};
