/* Texts for a causal language model, which predicts each token from those before it: conversations, prompts with
 * completions, and plain texts. */
#ifndef CLEAT_CAUSAL_TEXTS_H
#define CLEAT_CAUSAL_TEXTS_H

#include "cleat/dataset.h"
#include "cleat/tokenizer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The fields are, in this order:
 *   tokens  i32 [L]  token ids; padded with -1
 *   labels  i32 [L]  the token to predict at this place, which is the next one of the sample; -1: nothing is learned;
 *                    with `predicted` 0 at the last place, whose next token continues the prompt
 *   starts  i32 [L]  index of the first place of the sample that the place belongs to; padded with INT32_MAX, which is
 *                    greater than every index
 *   positions i32 [L]  with the option of this name: the place in its sample; padded with -1
 * One slot is a row: one sample, or with `pack` as many as fit; the length of packed rows is that of the fullest one. A
 * sample of n tokens takes at most n - 1 places: the last one is never an input, and places behind the last learned
 * token are left out.
 * cleat_dataset_items is the number of labels that are not -1.
 *
 * A text is encoded as a whole, and a token is learned if it has a byte of a completion: also one that spans the end of
 * the prompt (as in transformers' return_assistant_tokens_mask). The token that ends an answer is learned, and so is
 * the end-of-text token (EOS) behind a completion or text without a template. Special tokens in texts are tokens. */

/* What is learned: answers and completions, or every token. Of plain texts, every token in any case. */
typedef enum cleat_train_on { CLEAT_ON_COMPLETIONS, CLEAT_ON_ALL } cleat_train_on;

/* Options. A NULL string means "". */
typedef struct cleat_causal_options {
    /* Columns of tables and members of JSON lines. A table without the first two is one of plain texts. */
    const char *prompt_column, *completion_column, *text_column;
    /* File names in the folder; "": found by name. */
    const char *train_file, *val_file, *test_file;
    /* Path of the tokenizer (cleat_tokenizer_load), or the tokenizer itself, which must outlive the dataset. */
    const char *vocabulary;
    const cleat_tokenizer *tokenizer;
    /* "auto": the chat template that the tokenizer's files have (chat_template.jinja, tokenizer_config.json, a GGUF
     * file), if there is one; a name of cleat_chat_template_name; or "none": prompt and completion are texts that follow
     * each other. */
    const char *chat_name;
    const char *system; /* for conversations without a system message; "": that of the template */
    const char *date;   /* in the system message of Llama 3.1 and later; "": 26 Jul 2024, as its template has it */
    cleat_train_on train_on;
    bool pack;
    int64_t max_length; /* places of a row. Longer plain texts are divided, other samples lose their end */
    /* As in cleat_text_options; equal prompts are in one split. */
    double val_fraction, test_fraction;
    uint64_t split_seed;
    cleat_fold fold;
    bool positions;     /* a fourth field */
    bool predicted;     /* prompts: a row each, in file order, with the start of the answer; no token is learned */
    const char *fitted; /* folder with the tokenizer of an earlier set, which replaces `vocabulary` */
    int workers;        /* as in cleat_text_options */
    const char *cpus;
    bool cache;
} cleat_causal_options;

/* Columns prompt, completion, text; template auto; completions only, packed, max_length 512, val_fraction 0.1. */
CLEAT_API cleat_causal_options cleat_causal_defaults(void);
/* Name of the template of that index, from 0: "auto", "none", "chatml", ...; NULL behind the last one. */
CLEAT_API const char *cleat_chat_template_name(size_t index);

/* Opens a dataset. `path` is one of
 *   JSON lines (.jsonl, .ndjson, .json), each an object with "messages", a list of {"role", "content"} (roles system,
 *     user, assistant; "weight": 0 excludes an answer from the loss; "reasoning_content" for Qwen3); or "prompt" and
 *     "completion"; or "text"
 *   a table (.csv, .tsv, .tab) with the columns prompt and completion, or text
 *   any other file: plain texts separated by blank lines; with `predicted`, a prompt each line
 *   a folder with train.*, val.* (valid, validation, dev) and test.* of these
 * With a template, a prompt is a message of the user and a completion the answer. With `predicted` the completion is
 * optional, and a last message of the assistant is the truth. CLEAT_ERR_FORMAT: bad rows, with file, line, cause and
 * remedy; no rows. CLEAT_ERR_NOT_SUPPORTED: an unknown chat template. What was cut, divided or left out is logged. */
CLEAT_API cleat_status cleat_causal_open(const char *path, const cleat_causal_options *options, cleat_dataset **dataset,
                                         cleat_error *error);

typedef struct cleat_causal_summary {
    size_t samples[CLEAT_SPLITS], rows[CLEAT_SPLITS];
    size_t places, learned; /* of all rows */
    size_t cut;             /* samples that lost their end */
    size_t divided;         /* plain texts of several parts */
    size_t dropped;         /* samples with nothing to learn */
} cleat_causal_summary;
/* The functions below return 0 or NULL for a dataset of another kind; pointers are borrowed. */
CLEAT_API cleat_causal_summary cleat_causal_summarise(const cleat_dataset *dataset);
CLEAT_API const cleat_tokenizer *cleat_causal_tokenizer(const cleat_dataset *dataset);
/* Id of the token that ends an answer: of the template, else EOS. */
CLEAT_API int32_t cleat_causal_end(const cleat_dataset *dataset);
/* Name of the chat template, `auto` resolved; "none". */
CLEAT_API const char *cleat_causal_template(const cleat_dataset *dataset);
/* With `predicted`: the text of a prompt, whose tokens cleat_dataset_fill gives, and that of the right answer; NULL: it
 * is not known. */
CLEAT_API const char *cleat_causal_prompt(const cleat_dataset *dataset, size_t sample);
CLEAT_API const char *cleat_causal_truth(const cleat_dataset *dataset, size_t sample);

#ifdef __cplusplus
}
#endif
#endif
