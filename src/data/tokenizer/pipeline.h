/* Tokenizers of tokenizer.json: added tokens, normalisers, splitters, a model, templates of special tokens. */
#ifndef CLEAT_SRC_PIPELINE_H
#define CLEAT_SRC_PIPELINE_H

#include "tokenizer/added.h"
#include "tokenizer/decode.h"
#include "tokenizer/normalise.h"
#include "tokenizer/split.h"
#include "tokenizer/subwords.h"
#include "tokenizer/template.h"
#include "tokenizer/words.h"

/* A file that belongs to the tokenizer and is kept as it was. */
typedef struct cleat_tokenizer_file {
    const char *name; /* static: "tokenizer_config.json" */
    char *data;       /* [size], zero-terminated; NULL: there is none */
    size_t size;
} cleat_tokenizer_file;

enum { CLEAT_TOKENIZER_FILES = 13 };

typedef struct cleat_pipeline {
    cleat_normaliser *normalisers;
    size_t n_normalisers, normalisers_capacity;
    cleat_splitter *splitters;
    size_t n_splitters, splitters_capacity;
    cleat_subwords model;
    cleat_added_tokens added;
    cleat_template templates[2]; /* for one text, for two */
    cleat_decoder *decoders;     /* see json_decoder.c */
    size_t n_decoders, decoders_capacity;
    char *decoder_fault; /* why there are no decoders; NULL: there are */
    bool lowercase;      /* a normaliser lower-cases */
    bool bert;           /* words.h normalises and splits in one pass, by `rules` */
    cleat_word_rules rules;
    size_t limit;       /* highest id + 1 */
    uint32_t *added_of; /* [limit] index of the added token of an id, + 1; 0: none */
    /* files[0] is tokenizer.json: the text that was read. */
    cleat_tokenizer_file files[CLEAT_TOKENIZER_FILES];
} cleat_pipeline;

/* Builds the pipeline of the text of a tokenizer.json. `place` is the prefix of messages. The caller owns
 * *pipeline. CLEAT_ERR_FORMAT: not JSON, or not a tokenizer; CLEAT_ERR_NOT_SUPPORTED: a component of an
 * unknown type, which the message names. */
cleat_status cleat_pipeline_parse(const char *json, size_t size, const char *place, cleat_pipeline **pipeline,
                                  cleat_error *error);
void cleat_pipeline_destroy(cleat_pipeline *pipeline);

/* The id of an added token or of a piece; -1: none. */
int32_t cleat_pipeline_id(const cleat_pipeline *pipeline, const char *piece);
const char *cleat_pipeline_piece(const cleat_pipeline *pipeline, int32_t id);

/* Encodes a text without special tokens. `in_sentence`: it is one word of a sentence (see split.h). */
cleat_status cleat_pipeline_encode(const cleat_pipeline *pipeline, const char *text, size_t size, bool in_sentence,
                                   cleat_token_sink *sink, cleat_error *error);
/* Applies the normalisers to the text; `work` as for cleat_pattern_find. */
cleat_status cleat_pipeline_normalise(const cleat_pipeline *pipeline, cleat_aligned_text *text,
                                      cleat_aligned_text *spare, cleat_pattern_work *work, cleat_error *error);

#endif
