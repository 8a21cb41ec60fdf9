/* Predictions for texts and for words, as files. A file is written completely or not at all. */
#ifndef CLEAT_SRC_TEXT_WRITE_H
#define CLEAT_SRC_TEXT_WRITE_H

#include "cleat/core.h"

typedef struct cleat_text_prediction {
    const char *id;
    int32_t label;              /* 0 .. classes - 1 */
    const float *probabilities; /* [classes], 0 to 1; a value that is not finite is written as nan */
} cleat_text_prediction;

/* Columns: id,label,probability, and one with the probability of every class, headed by the name of the
 * class. RFC 4180, with a line feed after each row. names [classes]. */
cleat_status cleat_text_write_classes(const char *path, const char *const *names, size_t classes,
                                      const cleat_text_prediction *predictions, size_t count, cleat_error *error);

enum { CLEAT_TOKENS_FOUND = 5 };

/* The predictions of a language model for one mask token, or for the token behind a prompt. */
typedef struct cleat_found_tokens {
    const char *id;                          /* of the text */
    size_t mask;                             /* number of the mask token in the text, from 1 */
    const char *prompt;                      /* the prompt, of all rows or none; NULL: a mask token's */
    const char *tokens[CLEAT_TOKENS_FOUND];  /* the most probable one first; NULL: there are no more */
    float probabilities[CLEAT_TOKENS_FOUND]; /* as above */
} cleat_found_tokens;

/* Columns: id,mask (or id,prompt),token_1,probability_1, and so on; fields without a token are empty. RFC 4180. */
cleat_status cleat_text_write_found(const char *path, const cleat_found_tokens *found, size_t count,
                                    cleat_error *error);

typedef struct cleat_tagged_sentence {
    const char *const *words; /* [count] */
    const int32_t *labels;    /* [count], 0 .. labels - 1 */
    size_t count;
} cleat_tagged_sentence;

/* Format: word, tab, tag; an empty line after every sentence. names [labels]. CLEAT_ERR_ARGUMENT: a word
 * is empty or contains a tab or a line break. */
cleat_status cleat_text_write_tags(const char *path, const char *const *names, size_t labels,
                                   const cleat_tagged_sentence *sentences, size_t count, cleat_error *error);

#endif
