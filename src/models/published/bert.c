/* BERT, RoBERTa, XLM-RoBERTa, DistilBERT and ELECTRA as transformers has them. */
#include "models/published/text.h"
#include "weights/config.h"

/* Relative to "bert.", "roberta." or "electra.". */
#define BACKBONE                                                                                                       \
    {.param = "emb.word", .sources = {"embeddings.word_embeddings"}},                                                  \
        {.param = "emb.position", .sources = {"embeddings.position_embeddings"}},                                      \
        {.param = "emb.type", .sources = {"embeddings.token_type_embeddings"}},                                        \
        {.param = "emb.norm", .sources = {"embeddings.LayerNorm"}},                                                    \
        {.param = "emb.project", .sources = {"embeddings_project"}},                                                   \
        {.param = "blocks.*.att.qkv",                                                                                  \
         .sources = {"encoder.layer.*.attention.self.query", "encoder.layer.*.attention.self.key",                     \
                     "encoder.layer.*.attention.self.value"}},                                                         \
        BERT_LAYER_ROWS
#define DISTILBERT_BACKBONE                                                                                            \
    {.param = "emb.word", .sources = {"embeddings.word_embeddings"}},                                                  \
        {.param = "emb.position", .sources = {"embeddings.position_embeddings"}},                                      \
        {.param = "emb.norm", .sources = {"embeddings.LayerNorm"}},                                                    \
        {.param = "blocks.*.att.qkv",                                                                                  \
         .sources = {"transformer.layer.*.attention.q_lin", "transformer.layer.*.attention.k_lin",                     \
                     "transformer.layer.*.attention.v_lin"}},                                                          \
        {.param = "blocks.*.att.out", .sources = {"transformer.layer.*.attention.out_lin"}},                           \
        {.param = "blocks.*.n1", .sources = {"transformer.layer.*.sa_layer_norm"}},                                    \
        {.param = "blocks.*.f1", .sources = {"transformer.layer.*.ffn.lin1"}},                                         \
        {.param = "blocks.*.f2", .sources = {"transformer.layer.*.ffn.lin2"}}, {                                       \
        .param = "blocks.*.n2", .sources = { "transformer.layer.*.output_layer_norm" }                                 \
    }
static const cleat_weight_row bert_classifier_names[] = {
    BACKBONE, HEAD("head.dense", "bert.pooler.dense"), HEAD("head.out", "classifier"), {.param = NULL}};
/* RoBERTa and ELECTRA */
static const cleat_weight_row two_layers_names[] = {
    BACKBONE, HEAD("head.dense", "classifier.dense"), HEAD("head.out", "classifier.out_proj"), {.param = NULL}};
static const cleat_weight_row distilbert_classifier_names[] = {
    DISTILBERT_BACKBONE, HEAD("head.dense", "pre_classifier"), HEAD("head.out", "classifier"), {.param = NULL}};
static const cleat_weight_row tagger_names[] = {BACKBONE, HEAD("head.out", "classifier"), {.param = NULL}};
static const cleat_weight_row distilbert_tagger_names[] = {
    DISTILBERT_BACKBONE, HEAD("head.out", "classifier"), {.param = NULL}};

/* Masked language models: the last layer is the table of word embeddings, and a bias, which some files have
 * under the name of that layer only. */
static const cleat_weight_row bert_masked_names[] = {BACKBONE, BERT_MASKED_ROWS, {.param = NULL}};
static const cleat_weight_row bert_masked_other_names[] = {HEAD("mlm.bias", "cls.predictions.decoder.bias"),
                                                           {.param = NULL}};
static const cleat_weight_row roberta_masked_names[] = {BACKBONE,
                                                        HEAD("mlm.dense", "lm_head.dense"),
                                                        HEAD("mlm.norm", "lm_head.layer_norm"),
                                                        HEAD("mlm.bias", "lm_head.bias"),
                                                        {.param = NULL}};
static const cleat_weight_row roberta_masked_other_names[] = {HEAD("mlm.bias", "lm_head.decoder.bias"),
                                                              {.param = NULL}};
static const cleat_weight_row distilbert_masked_names[] = {DISTILBERT_BACKBONE,
                                                           HEAD("mlm.dense", "vocab_transform"),
                                                           HEAD("mlm.norm", "vocab_layer_norm"),
                                                           HEAD("mlm.bias", "vocab_projector.bias"),
                                                           {.param = NULL}};
/* ELECTRA's generator; files of its discriminator have no such head. */
static const cleat_weight_row electra_masked_names[] = {BACKBONE,
                                                        HEAD("mlm.dense", "generator_predictions.dense"),
                                                        HEAD("mlm.norm", "generator_predictions.LayerNorm"),
                                                        HEAD("mlm.bias", "generator_lm_head.bias"),
                                                        {.param = NULL}};

/* Heads of other tasks, and buffers. */
static const char *const ignored[] = {"*position_ids",
                                      "*token_type_ids",
                                      "*pooler.dense.*",
                                      "cls.*",
                                      "lm_head.*",
                                      "vocab_transform.*",
                                      "vocab_layer_norm.*",
                                      "vocab_projector.*",
                                      "discriminator_predictions.*",
                                      "generator_predictions.*",
                                      "generator_lm_head.*",
                                      "qa_outputs.*",
                                      "classifier.*",
                                      "pre_classifier.*",
                                      NULL};

/* Members without a setting must have their usual value. */
#define BERT_ROWS(TYPES, EPS)                                                                                          \
    BERT_CONFIG_ROWS(TYPES, EPS), {.key = "hidden_act", .fallback = "\"gelu\"", .only = "\"gelu\""},                   \
        {.key = "position_embedding_type", .fallback = "\"absolute\"", .only = "\"absolute\""}, {                      \
        .key = "is_decoder", .fallback = "false", .only = "false"                                                      \
    }

#define ELECTRA_ROWS                                                                                                   \
    BERT_ROWS("2", "1e-12"), {                                                                                         \
        .key = "embedding_size", .setting = "model.embedding_width", .fallback = "128"                                 \
    }
#define DISTILBERT_ROWS                                                                                                \
    {.key = "model_type", .setting = "model.network", .kind = CLEAT_JSON_TEXT},                                        \
        {.key = "vocab_size", .setting = "model.embedding_rows"}, {.key = "dim", .setting = "model.d_model"},          \
        {.key = "n_heads", .setting = "model.heads"}, {.key = "n_layers", .setting = "model.layers"},                  \
        {.key = "hidden_dim", .setting = "model.d_ff"},                                                                \
        {.key = "max_position_embeddings", .setting = "model.max_positions", .fallback = "512"},                       \
        {.key = "dropout", .setting = "model.dropout", .fallback = "0.1", .kind = CLEAT_JSON_NUMBER}, {                \
        .key = "activation", .fallback = "\"gelu\"", .only = "\"gelu\""                                                \
    }
/* Masked language models: the last layer is the table of word embeddings. */
#define TIED                                                                                                           \
    { .key = "tie_word_embeddings", .fallback = "true", .only = "true" }

static const cleat_config_row bert_config[] = {BERT_ROWS("2", "1e-12"), {.key = NULL}};
static const cleat_config_row electra_config[] = {ELECTRA_ROWS, {.key = NULL}};
static const cleat_config_row distilbert_config[] = {DISTILBERT_ROWS, {.key = NULL}};
static const cleat_config_row bert_masked_config[] = {BERT_ROWS("2", "1e-12"), TIED, {.key = NULL}};
static const cleat_config_row electra_masked_config[] = {ELECTRA_ROWS, TIED, {.key = NULL}};
static const cleat_config_row distilbert_masked_config[] = {DISTILBERT_ROWS, TIED, {.key = NULL}};

static cleat_status configure(const cleat_weights *weights, const cleat_setting_sink *sink, cleat_error *error) {
    return cleat_published_set_texts(weights, sink, 0, error);
}

/* RoBERTa counts positions from the one after that of padding. */
static cleat_status configure_roberta(const cleat_weights *weights, const cleat_setting_sink *sink,
                                      cleat_error *error) {
    int64_t padding;
    cleat_status status = cleat_published_padding(weights, 1, &padding, error);
    return status ? status : cleat_published_set_texts(weights, sink, padding >= 0 ? padding + 1 : 2, error);
}

#define ARCHITECTURE(HEAD, NAME, NAMES, CONFIG, CONFIGURE)                                                             \
    .name = NAME, .names = NAMES, .ignored = ignored, .config = CONFIG, .head = HEAD, .configure = CONFIGURE,          \
    .describe = cleat_published_describe_text, .keeps = cleat_published_keeps_text
/* OTHER: other names of the head of a masked language model. */
#define NETWORK(NAME, BASE, CLASSIFIER, TAGGER, MASKED, OTHER, CONFIG, MASKED_CONFIG, CONFIGURE)                       \
    {                                                                                                                  \
        [CLEAT_HEAD_CLASSES] = {ARCHITECTURE(CLEAT_HEAD_CLASSES, NAME, CLASSIFIER, CONFIG, CONFIGURE), .base = BASE},  \
        [CLEAT_HEAD_TAGS] = {ARCHITECTURE(CLEAT_HEAD_TAGS, NAME, TAGGER, CONFIG, CONFIGURE), .base = BASE},            \
        [CLEAT_HEAD_MASKED] = {ARCHITECTURE(CLEAT_HEAD_MASKED, NAME, MASKED, MASKED_CONFIG, CONFIGURE), .base = BASE,  \
                               .other_names = OTHER, .tied = true},                                                    \
    }
/* By cleat_text_network. */
static const cleat_architecture architectures[][CLEAT_TOKENIZER_HEADS] = {
    [CLEAT_TEXT_BERT] = NETWORK("bert", "bert.", bert_classifier_names, tagger_names, bert_masked_names,
                                bert_masked_other_names, bert_config, bert_masked_config, configure),
    [CLEAT_TEXT_ROBERTA] = NETWORK("roberta", "roberta.", two_layers_names, tagger_names, roberta_masked_names,
                                   roberta_masked_other_names, bert_config, bert_masked_config, configure_roberta),
    [CLEAT_TEXT_XLM_ROBERTA] = NETWORK("xlm-roberta", "roberta.", two_layers_names, tagger_names, roberta_masked_names,
                                       roberta_masked_other_names, bert_config, bert_masked_config, configure_roberta),
    [CLEAT_TEXT_DISTILBERT] =
        NETWORK("distilbert", "distilbert.", distilbert_classifier_names, distilbert_tagger_names,
                distilbert_masked_names, NULL, distilbert_config, distilbert_masked_config, configure),
    [CLEAT_TEXT_ELECTRA] = NETWORK("electra", "electra.", two_layers_names, tagger_names, electra_masked_names, NULL,
                                   electra_config, electra_masked_config, configure),
};

#define LIST(HEAD_OF)                                                                                                  \
    {                                                                                                                  \
        &architectures[CLEAT_TEXT_BERT][HEAD_OF], &architectures[CLEAT_TEXT_ROBERTA][HEAD_OF],                         \
            &architectures[CLEAT_TEXT_XLM_ROBERTA][HEAD_OF], &architectures[CLEAT_TEXT_DISTILBERT][HEAD_OF],           \
            &architectures[CLEAT_TEXT_ELECTRA][HEAD_OF], &cleat_published_deberta[HEAD_OF],                            \
            &cleat_published_modernbert[HEAD_OF], NULL                                                                 \
    }
const cleat_architecture *const cleat_published_classifiers[] = LIST(CLEAT_HEAD_CLASSES),
                                *const cleat_published_taggers[] = LIST(CLEAT_HEAD_TAGS),
                                *const cleat_published_masked[] = LIST(CLEAT_HEAD_MASKED);

const cleat_architecture *cleat_published_text(int network, cleat_text_head head) {
    if (network == CLEAT_TEXT_CLEAT) return NULL;
    if (network == CLEAT_TEXT_MODERNBERT) return &cleat_published_modernbert[head];
    return network == CLEAT_TEXT_DEBERTA ? &cleat_published_deberta[head] : &architectures[network][head];
}
