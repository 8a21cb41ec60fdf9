/* The networks of the text families (model.network): cleat's own encoder, and those of published checkpoints.
 * Here are their settings, their graphs, and the depth of their parameters. */
#ifndef CLEAT_SRC_TEXT_NETWORKS_H
#define CLEAT_SRC_TEXT_NETWORKS_H

#include "models/settings.h"
#include "nn/rows.h"

typedef enum cleat_text_network {
    CLEAT_TEXT_CLEAT,
    CLEAT_TEXT_BERT,
    CLEAT_TEXT_ROBERTA,
    CLEAT_TEXT_XLM_ROBERTA,
    CLEAT_TEXT_DISTILBERT,
    CLEAT_TEXT_ELECTRA,
    CLEAT_TEXT_DEBERTA,
    CLEAT_TEXT_MODERNBERT,
    CLEAT_TEXT_NETWORKS
} cleat_text_network;

/* In settings: by cleat_text_network; ends with NULL. */
extern const char *const cleat_text_network_names[];

typedef enum cleat_text_pooling { CLEAT_POOLING_MEAN, CLEAT_POOLING_FIRST } cleat_text_pooling;
extern const char *const cleat_text_pooling_names[];  /* ends with NULL */
extern const char *const cleat_text_encoding_names[]; /* by replace_invalid of cleat_text_options; ends with NULL */

/* Terms of the attention scores of DeBERTa: queries meet position keys (c2p), keys meet position queries (p2c). */
typedef enum cleat_position_terms { CLEAT_BOTH_TERMS, CLEAT_ONLY_C2P, CLEAT_ONLY_P2C } cleat_position_terms;
extern const char *const cleat_position_terms_names[]; /* ends with NULL */

/* Settings that distinguish the networks, besides the sizes of cleat_encoder_settings. CLEAT_AUTO (-1) in all
 * but the first: the network's usual value. */
typedef struct cleat_text_network_settings {
    int network; /* a cleat_text_network */
    int64_t max_positions, first_position, token_types, embedding_width, embedding_rows;
    int64_t padding_row; /* CLEAT_AUTO: none */
    double norm_eps, head_dropout;
    /* Of deberta-v2. */
    int64_t position_buckets, relative_positions;
    int position_terms; /* a cleat_position_terms */
    bool shared_positions, normed_positions;
    /* Of modernbert. */
    int64_t local_window, global_every;
    double global_base, local_base;
    cleat_text_pooling pooling; /* of classifiers: of cleat and modernbert */
} cleat_text_network_settings;

/* Start of the settings of every text family. */
typedef struct cleat_text_model_settings {
    cleat_data_settings common;
    cleat_encoder_settings encoder;
    cleat_text_network_settings network;
    cleat_text_options data;
} cleat_text_model_settings;

/* MEMBER: a cleat_text_network_settings. */
#define TEXT_NETWORK_ROWS(MEMBER)                                                                                      \
    {FIELD(model, network, MEMBER.network), CHOICE(cleat_text_network_names, "cleat"), SHAPES_LATER,                   \
     .help = "Network: cleat's pre-norm encoder, or the network of published checkpoints; model.init sets it."},       \
        {FIELD(model, max_positions, MEMBER.max_positions), INT(1, 65536, "512"), SHAPES_LATER,                        \
         .help = "Rows of the position embeddings; network = cleat: not used (sinusoids)."},                           \
        {FIELD(model, first_position, MEMBER.first_position), INT(0, 1024, "auto"), OR_AUTO, SHAPES_LATER,             \
         .help = "Row of the first token's position; auto: 2 in RoBERTa and XLM-RoBERTa, else 0."},                    \
        {FIELD(model, token_types, MEMBER.token_types), INT(0, 64, "auto"), OR_AUTO, SHAPES_LATER,                     \
         .help = "Rows of the token type embeddings; 0: none; auto: 2 in BERT and ELECTRA, 1 in RoBERTa, else 0."},    \
        {FIELD(model, embedding_width, MEMBER.embedding_width), INT(8, 16384, "auto"), OR_AUTO, SHAPES_LATER,          \
         .help = "Width of the embeddings, which a layer projects to d_model; auto: d_model, no layer."},              \
        {FIELD(model, embedding_rows, MEMBER.embedding_rows), INT(1, 1e7, "auto"), OR_AUTO, SHAPES_LATER,              \
         .help = "Rows of the word embeddings, at least the vocabulary size; auto: the vocabulary size."},             \
        {FIELD(model, norm_eps, MEMBER.norm_eps), FLOAT(0, 1, "auto"), OR_AUTO, SHAPES_LATER,                          \
         .help = "Added to the variance in layer norms; auto: 1e-12 in BERT, DistilBERT and ELECTRA, 1e-7 in "         \
                 "DeBERTa, else 1e-5."},                                                                               \
        {FIELD(model, padding_row, MEMBER.padding_row), INT(0, 1e7, "auto"), OR_AUTO, COMPUTES_LATER,                  \
         .help = "Row of the word embeddings that is not trained, as pad_token_id of transformers; auto: none."},      \
        {FIELD(model, position_buckets, MEMBER.position_buckets), INT(0, 65536, "256"), SHAPES_LATER,                  \
         .help = "deberta-v2: rows for distances to either side, long ones on a logarithmic scale; 0: one each."},     \
        {FIELD(model, relative_positions, MEMBER.relative_positions), INT(1, 65536, "auto"), OR_AUTO, SHAPES_LATER,    \
         .help = "deberta-v2: longer distances count as this one; auto: max_positions."},                              \
        {FIELD(model, position_terms, MEMBER.position_terms), CHOICE(cleat_position_terms_names, "both"),              \
         SHAPES_LATER,                                                                                                 \
         .help = "deberta-v2: scores of queries with position keys (c2p), of keys with position queries (p2c)."},      \
        {FIELD(model, shared_positions, MEMBER.shared_positions), BOOL("true"), SHAPES_LATER,                          \
         .help = "deberta-v2: compute position keys and queries with the layers of keys and queries."},                \
        {FIELD(model, normed_positions, MEMBER.normed_positions), BOOL("true"), SHAPES_LATER,                          \
         .help = "deberta-v2: apply layer norm to the position embeddings."},                                          \
        {FIELD(model, local_window, MEMBER.local_window), INT(2, 1e6, "128"), COMPUTES_LATER,                          \
         .help = "modernbert: local attention reaches half of this many tokens to either side."},                      \
        {FIELD(model, global_every, MEMBER.global_every), INT(1, 1024, "3"), COMPUTES_LATER,                           \
         .help = "modernbert: blocks 0, n, 2 n, ... attend to all tokens, the others locally."},                       \
        {FIELD(model, global_base, MEMBER.global_base), FLOAT(1.001, 1e9, "160000"), COMPUTES_LATER,                   \
         .help = "modernbert: base of the rotary positions of global attention (global_rope_theta)."},                 \
        {FIELD(model, local_base, MEMBER.local_base), FLOAT(1.001, 1e9, "10000"), COMPUTES_LATER,                      \
         .help = "modernbert: base of the rotary positions of local attention (local_rope_theta)."},                   \
    {                                                                                                                  \
        FIELD(model, head_dropout, MEMBER.head_dropout), FLOAT(0, 0.95, "auto"), OR_AUTO, COMPUTES_LATER,              \
            .help = "Dropout probability of the head; auto: as model.dropout; network = cleat: not used."              \
    }

/* Rows of texts in files, of settings with members `common` and `data` (train_file, val_file, test_file, fractions and
 * fold). */
#define TEXT_SPLIT_ROWS                                                                                                \
    VAL_FRACTION_ROW(data.val_fraction), TEST_FRACTION_ROW(data.test_fraction), FOLD_ROWS(data.fold),                  \
        BUCKETS_ROW(common), LIMIT_ROW(common), MIN_LENGTH_ROW(common),                                                \
        {AT(data, train_file), TEXT(0, 255, ""), A_PATH, COMPUTES,                                                     \
         .help = "Training file in data.path; empty: the file with train in its name."},                               \
        {AT(data, val_file), TEXT(0, 255, ""), A_PATH, COMPUTES,                                                       \
         .help = "Validation file; empty: the file with val or dev in its name, or part of the training file."},       \
    {                                                                                                                  \
        AT(data, test_file), TEXT(0, 255, ""), A_PATH, COMPUTES,                                                       \
            .help = "Test file; empty: the file with test in its name, if any."                                        \
    }
/* Rows that the families of encoders share; `data` is a cleat_text_options. */
#define TEXT_FILE_ROWS PATH_ROW(common), MAX_LENGTH_ROW(common), TEXT_SPLIT_ROWS
#define TEXT_ID_COLUMN_ROW                                                                                             \
    {                                                                                                                  \
        AT(data, id_column), TEXT(0, 127, ""),                                                                         \
            .help = "Column that identifies rows in predictions; empty, or not in the file: the row number."           \
    }
#define TEXT_EMPTY_ROW                                                                                                 \
    {                                                                                                                  \
        FIELD(data, empty_texts, data.empty), CHOICE(cleat_text_empty_names, "error"), COMPUTES,                       \
            .help = "Rows with an empty text: report an error, skip the row, or keep it as a sample."                  \
    }
#define TEXT_COLUMN_ROW                                                                                                \
    { AT(data, text_column), TEXT(1, 127, "text"), COMPUTES, .help = "Name of the text column." }
#define TEXT_VOCABULARY_ROWS                                                                                           \
    {AT(data, vocabulary), TEXT(0, 1023, ""), A_PATH, COMPUTES,                                                        \
     .help = "Tokenizer: a folder of a published model, tokenizer.json, or vocab.txt; empty: learned from the "        \
             "training texts."},                                                                                       \
        {AT(data, vocabulary_size), INT(64, 1e6, "8000"), COMPUTES,                                                    \
         .help = "Number of tokens in a learned vocabulary."},                                                         \
    {                                                                                                                  \
        AT(data, lowercase), BOOL("true"), SHAPES,                                                                     \
            .help = "Convert text to lower case and strip accents; ignored with a tokenizer.json."                     \
    }
#define TEXT_INVALID_ROW                                                                                               \
    {                                                                                                                  \
        FIELD(data, invalid_utf8, data.replace_invalid), EITHER(cleat_text_encoding_names, "error"), COMPUTES,         \
            .help = "Invalid UTF-8 bytes: report an error, or drop them."                                              \
    }
#define TEXT_CACHE_ROW                                                                                                 \
    { AT(data, cache), BOOL("true"), .help = "Cache tokenized texts in the cache folder." }

/* A network of a text family: settings, which are borrowed, and sizes. */
typedef struct cleat_text_shape {
    const cleat_encoder_settings *encoder;
    const cleat_text_network_settings *network;
    cleat_text_pooling pooling; /* of cleat and modernbert; the others read the first token */
    int64_t vocabulary;         /* rows of the word embeddings */
    int64_t classes;            /* logits of a text or token */
    bool tags;                  /* logits of every token, not of the text */
    bool numbers;               /* the last layer is computed in f32 */
} cleat_text_shape;

/* Inputs of the graph. types i32 [B, L]: NULL if all are 0; rng: NULL when predicting. */
typedef struct cleat_text_inputs {
    cleat_tensor *tokens, *lengths, *types, *rng; /* tokens i32 [B, L], lengths i32 [B] */
} cleat_text_inputs;

/* The logits: [B, classes], or for tags [B, L, classes]. */
cleat_tensor *cleat_text_network_build(cleat_graph *graph, const cleat_text_shape *shape, cleat_mode mode,
                                       const cleat_text_inputs *inputs);
/* The features of the tokens, without a head: [B, L, D], or the row to read. */
cleat_tensor *cleat_text_network_features(cleat_graph *graph, const cleat_text_shape *shape, cleat_mode mode,
                                          const cleat_text_inputs *inputs, const cleat_read_row *read);
/* The head of modernbert: PREFIX.norm(gelu(PREFIX.dense(x))), without biases. x T [..., D] -> T [..., D] */
cleat_tensor *cleat_text_network_plain_head(cleat_graph *graph, const char *prefix, cleat_tensor *x,
                                            const cleat_text_network_settings *network);
/* Name of the table of word embeddings. */
const char *cleat_text_network_words(const cleat_text_network_settings *network);
/* Whether the graph reads the types of tokens. */
bool cleat_text_network_has_types(const cleat_text_network_settings *network);
/* The settings with the network's usual values in place of CLEAT_AUTO; embedding_rows stays as it is. */
cleat_text_network_settings cleat_text_network_resolve(const cleat_text_network_settings *network,
                                                       const cleat_encoder_settings *encoder);
/* The resolved settings of a model of a text family. */
cleat_text_network_settings cleat_text_network_of(const cleat_model *model);
/* Functions of every text family: members of cleat_model_class, the options of its dataset (`labelled` and
 * what only some families set is the caller's), and the rows of the word embeddings, which
 * cleat_text_model_set_vocabulary takes from the tokenizer or the settings. */
void cleat_text_model_defaults(void *settings);
cleat_status cleat_text_model_check(const void *settings, const cleat_record *record, cleat_error *error);
int64_t cleat_text_model_layers(const cleat_model *model);
cleat_text_options cleat_text_model_options(const cleat_model *model, cleat_text_task task, const char *fitted);
int64_t cleat_text_model_vocabulary(const cleat_model *model);
cleat_status cleat_text_model_set_vocabulary(cleat_model *model, const char *path, const cleat_tokenizer *tokenizer,
                                             cleat_error *error);

#endif
