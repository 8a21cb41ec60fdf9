/* Predictions of language models at masked tokens and behind prompts; examples of masked ones. */
#ifndef CLEAT_SRC_MASKED_TOKENS_H
#define CLEAT_SRC_MASKED_TOKENS_H

#include "models/examples.h"
#include "models/text_write.h"

/* Logits and their positions. */
typedef struct cleat_masked_logits {
    const float *logits;   /* [rows, vocabulary] */
    int64_t rows;          /* length: one for each position; else one for each label that is not -1, in order */
    int64_t vocabulary;    /* the tokenizer's tokens, or more */
    const int32_t *tokens; /* [length] input of the network */
    const int32_t *labels; /* [length] tokens to predict (or any, at their places), -1: none; NULL: at mask tokens */
    int64_t length;
    const cleat_tokenizer *tokenizer;
} cleat_masked_logits;

/* Keeps the most probable tokens of each place. The caller frees *kept, which the functions below read as
 * cleat_prediction.output. */
cleat_status cleat_masked_condense(const cleat_masked_logits *from, float **kept, cleat_error *error);
/* Number of values in `kept`. */
int64_t cleat_masked_kept_values(const float *kept);

/* Writes FOLDER/predictions.csv: a row for each mask token, or for each prompt of a causal language model. */
cleat_status cleat_masked_write(const cleat_model *model, const cleat_prediction *predictions, size_t count,
                                const char *folder, cleat_error *error);

/* Appends an example of the kind "tokens": words, and truth, prediction and confidence, which are null where
 * nothing is predicted. */
cleat_status cleat_masked_add_example(const cleat_prediction *prediction, cleat_string *json, cleat_error *error);

#endif
