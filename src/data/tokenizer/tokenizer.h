/* Internal definition of a tokenizer. */
#ifndef CLEAT_SRC_TOKENIZER_H
#define CLEAT_SRC_TOKENIZER_H

#include "cleat/tokenizer.h"
#include "core/string.h"
#include "core/vocabulary.h"
#include "tokenizer/pipeline.h"
#include "tokenizer/words.h"
#include "json/member.h"

enum { CLEAT_TOKENIZER_ENDS = 16 };

/* Two kinds: a vocab.txt with the rules of BERT's basic tokenizer (words.h), or the pipeline of a tokenizer.json. */
struct cleat_tokenizer {
    cleat_vocabulary vocabulary; /* of a vocab.txt */
    cleat_word_rules rules;
    cleat_pipeline *pipeline;           /* of a tokenizer.json; NULL: a vocab.txt */
    int32_t specials[CLEAT_SPECIALS];   /* ids; -1: none; a vocab.txt may lack only [MASK] */
    int32_t bos, eos;                   /* ids; -1: none */
    int32_t ends[CLEAT_TOKENIZER_ENDS]; /* [n_ends] ids of a generation_config.json that also end a text */
    size_t n_ends;
    cleat_template templates[2]; /* for one text, for two */
};

/* Creates a tokenizer of these pieces; on success it takes ownership of the vocabulary. `place` is the prefix
 * of the error message if a special token is missing. */
cleat_status cleat_tokenizer_create(cleat_vocabulary *vocabulary, bool lowercase, const char *place,
                                    cleat_tokenizer **tokenizer, cleat_error *error);
/* Reads a vocab.txt. */
cleat_status cleat_vocabulary_read(const char *path, cleat_vocabulary *vocabulary, cleat_error *error);

/* Reads a vocab.txt and encodes by the rules of words.h, regardless of other files in the folder. */
cleat_status cleat_tokenizer_load_vocab(const char *path, bool lowercase, cleat_tokenizer **tokenizer,
                                        cleat_error *error);

/* The tokenizer of a language model as the metadata of GGUF files describe it (the members tokenizer.ggml.*); arrays
 * and texts are borrowed. -1: the file does not say. */
typedef struct cleat_tokenizer_metadata {
    bool is_sentencepiece;         /* `model` is "llama": SentencePiece's BPE; false: "gpt2", byte-level BPE */
    const char *pre;               /* how a byte-level tokenizer splits texts: "llama-bpe", "qwen2"; NULL: default */
    const char *chat_template;     /* kept in tokenizer_config.json; NULL: none */
    const cleat_text_view *pieces; /* [count] tokens, each zero-terminated */
    const float *scores;           /* [count] of SentencePiece: higher ones are joined first; NULL: all equal */
    const int32_t *types; /* [count] 1 normal, 2 unknown, 3 control, 4 user defined, 5 unused, 6 byte; NULL: normal */
    size_t count;
    const cleat_text_view *merges; /* [n_merges] "a b", zero-terminated, of a byte-level tokenizer */
    size_t n_merges;
    int32_t bos, eos, unk, pad; /* ids */
    int32_t eot;                /* of a token that ends an answer, beside eos; also 0: none */
    int add_bos, add_eos;       /* to a text: 1, 0 or -1 */
    int add_space_prefix;       /* SentencePiece: a text begins with a blank: 1, 0 or -1, which means 1 */
} cleat_tokenizer_metadata;

/* Makes the tokenizer; it is that of an equivalent tokenizer.json, which cleat_tokenizer_save writes. `place` is the
 * prefix of messages. The caller owns *tokenizer. CLEAT_ERR_FORMAT: ids out of range, tokens that are not text, merges
 * of unknown tokens; CLEAT_ERR_NOT_SUPPORTED: another `pre`; the message lists the known ones. */
cleat_status cleat_tokenizer_from_metadata(const cleat_tokenizer_metadata *metadata, const char *place,
                                           cleat_tokenizer **tokenizer, cleat_error *error);

/* By gguf.c: the tokenizer in the metadata of a GGUF file. */
cleat_status cleat_tokenizer_open_gguf(const char *path, cleat_tokenizer **tokenizer, cleat_error *error);

/* By published.c: whether the path is that of a folder, of a .json or .model file, or of a vocab.txt beside
 * the files of a published checkpoint. */
bool cleat_tokenizer_is_published_path(const char *path);
/* Opens a folder, a tokenizer.json, a vocab.txt, a vocab.json with the merges.txt beside it, or a
 * .model file of SentencePiece. `lowercase` applies to a folder with only a vocab.txt that does not specify it. */
cleat_status cleat_tokenizer_open_published(const char *path, bool lowercase, cleat_tokenizer **tokenizer,
                                            cleat_error *error);

/* CLEAT_ERR_NOT_SUPPORTED unless the class is "" (not known) or one of the names. `what` describes how the
 * files are read. */
cleat_status cleat_tokenizer_expect(const char *class, const char *names, const char *what, cleat_error *error);
/* Members of tokenizer_config.json with the only values that cleat supports; the last has no key. */
extern const cleat_json_rule cleat_tokenizer_rules[];
/* Sets add_prefix_space of the byte-level steps of a pre-tokenizer. *found: there is one; *changed: it had
 * another value; otherwise both keep their value. */
cleat_status cleat_set_prefix_space(cJSON *step, bool value, bool *found, bool *changed, cleat_error *error);
/* By save_folder.c: sets tokenizer_class of a tokenizer_config.json so that AutoTokenizer uses tokenizer.json
 * unchanged, and adds the missing names of special tokens. */
cleat_status cleat_tokenizer_describe(const cleat_tokenizer *tokenizer, cJSON *config, cleat_error *error);

/* By published_json.c: appends an entry of "added_tokens". */
void cleat_json_add_token(cleat_string *json, const cleat_added_token *token);

/* By published_json.c: the text of a tokenizer.json. */
typedef struct cleat_bert_rules {
    bool lowercase, accents, ideographs; /* accents: strip them */
    bool basic;                          /* the rules of words.h: without unassigned characters; NFC for cased text */
} cleat_bert_rules;
cleat_status cleat_wordpiece_json(const cleat_vocabulary *vocabulary, const cleat_bert_rules *rules, cleat_string *json,
                                  cleat_error *error);
/* By sentencepiece.c: from a model file of SentencePiece, with the settings of a tokenizer_config.json (data
 * NULL: none). CLEAT_ERR_NOT_SUPPORTED: not the model of an XLM-RoBERTa or a DeBERTa, or of another `class`
 * (cleat_tokenizer_expect). */
cleat_status cleat_sentencepiece_json(const cleat_tokenizer_file *file, const cleat_tokenizer_file *config,
                                      const char *class, const char *place, cleat_string *json, cleat_error *error);
/* By published_json.c: the name that llama.cpp gives to the pre_tokenizer of a byte-level tokenizer.json; "": none. */
enum { CLEAT_PRE_TOKENIZER = 32 };
const char *cleat_pre_tokenizer_name(const cJSON *step, char name[CLEAT_PRE_TOKENIZER]);
/* By published_json.c: from metadata; the tokenizer_config.json with the names of special tokens. */
cleat_status cleat_language_json(const cleat_tokenizer_metadata *metadata, cleat_string *json, cleat_error *error);
cleat_status cleat_language_config(const cleat_tokenizer_metadata *metadata, cleat_string *json, cleat_error *error);
/* From the texts of RoBERTa's vocab.json and merges.txt. */
cleat_status cleat_byte_bpe_json(const char *vocab, const char *merges, const char *place, cleat_string *json,
                                 cleat_error *error);

#endif
