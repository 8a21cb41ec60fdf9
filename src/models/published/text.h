/* Published text encoders: names of their tensors and settings in files of transformers. */
#ifndef CLEAT_SRC_PUBLISHED_TEXT_H
#define CLEAT_SRC_PUBLISHED_TEXT_H

#include "models/model.h"
#include "models/text_networks.h"

/* Head on the encoder: a layer on the first token, one on each token, or the head of a masked language model, whose
 * last layer is the table of word embeddings. */
typedef enum cleat_text_head {
    CLEAT_HEAD_CLASSES,
    CLEAT_HEAD_TAGS,
    CLEAT_HEAD_MASKED,
    CLEAT_TOKENIZER_HEADS
} cleat_text_head;

/* The architectures of classifiers, taggers and masked language models; each list ends with NULL. */
extern const cleat_architecture *const cleat_published_classifiers[], *const cleat_published_taggers[],
                                                                          *const cleat_published_masked[];
/* The architecture of a cleat_text_network; NULL: cleat's own network. */
const cleat_architecture *cleat_published_text(int network, cleat_text_head head);

/* DeBERTa-v2 and v3 (deberta.c), ModernBERT (modernbert.c). */
extern const cleat_architecture cleat_published_deberta[CLEAT_TOKENIZER_HEADS],
    cleat_published_modernbert[CLEAT_TOKENIZER_HEADS];

/* Rows of weights and of config.json that BERT and its descendants share. */
#define HEAD(PARAM, SOURCE)                                                                                            \
    { .param = PARAM, .sources = {SOURCE}, .head = true }
#define BERT_LAYER_ROWS                                                                                                \
    {.param = "blocks.*.att.out", .sources = {"encoder.layer.*.attention.output.dense"}},                              \
        {.param = "blocks.*.n1", .sources = {"encoder.layer.*.attention.output.LayerNorm"}},                           \
        {.param = "blocks.*.f1", .sources = {"encoder.layer.*.intermediate.dense"}},                                   \
        {.param = "blocks.*.f2", .sources = {"encoder.layer.*.output.dense"}}, {                                       \
        .param = "blocks.*.n2", .sources = { "encoder.layer.*.output.LayerNorm" }                                      \
    }
#define BERT_MASKED_ROWS                                                                                               \
    HEAD("mlm.dense", "cls.predictions.transform.dense"), HEAD("mlm.norm", "cls.predictions.transform.LayerNorm"),     \
        HEAD("mlm.bias", "cls.predictions.bias")
#define BERT_CONFIG_ROWS(TYPES, EPS)                                                                                   \
    {.key = "model_type", .setting = "model.network", .kind = CLEAT_JSON_TEXT},                                        \
        {.key = "vocab_size", .setting = "model.embedding_rows"}, {.key = "hidden_size", .setting = "model.d_model"},  \
        {.key = "num_attention_heads", .setting = "model.heads"},                                                      \
        {.key = "num_hidden_layers", .setting = "model.layers"},                                                       \
        {.key = "intermediate_size", .setting = "model.d_ff"},                                                         \
        {.key = "max_position_embeddings", .setting = "model.max_positions", .fallback = "512"},                       \
        {.key = "type_vocab_size", .setting = "model.token_types", .fallback = TYPES},                                 \
        {.key = "layer_norm_eps", .setting = "model.norm_eps", .fallback = EPS, .kind = CLEAT_JSON_NUMBER}, {          \
        .key = "hidden_dropout_prob", .setting = "model.dropout", .fallback = "0.1", .kind = CLEAT_JSON_NUMBER         \
    }

/* Sets what follows from config.json besides its rows: positions, dropout of the head, the order of labels, and the
 * tokenizer of the folder. `positions_start` is the row of the first position. */
cleat_status cleat_published_set_texts(const cleat_weights *weights, const cleat_setting_sink *sink,
                                       int64_t positions_start, cleat_error *error);

/* pad_token_id of config.json; `usual` if it is null or missing. */
cleat_status cleat_published_padding(const cleat_weights *weights, int64_t usual, int64_t *padding, cleat_error *error);

/* An output layer for another list of labels in id2label is not read, even if their number is the same. */
bool cleat_published_keeps_text(const cleat_model *model, const cleat_weights *weights, const char *param);
/* Completes config.json beyond the rows of an architecture: cleat_published_add_class, and the padding
 * token. */
bool cleat_published_describe_text(const cleat_model *model, struct cJSON *config);
/* Adds the class of transformers that the network is, "BertForMaskedLM", and replaces values that settings
 * leave to the network or the data ("auto"); false: no memory. */
bool cleat_published_add_class(const cleat_model *model, int network, struct cJSON *config);

#endif
