/* The baseline of language models: without its context, a token can only be guessed by its frequency. */
#ifndef CLEAT_SRC_TOKEN_GUESS_H
#define CLEAT_SRC_TOKEN_GUESS_H

#include "models/examples.h"

typedef struct cleat_token_guess {
    double count;        /* tokens to predict in the evaluated samples */
    double right;        /* those that are the most frequent token */
    double negative_log; /* the sum of - log of the frequency, with 1 added to each count */
} cleat_token_guess;

/* Guesses the labels i32 [L] (-1: none) of the evaluated samples by their frequency in evenly spaced training samples;
 * `field`: index of the labels in the dataset. NaN if there are no training samples. Writes a description to text
 * [CLEAT_BASELINE_TEXT]. */
cleat_status cleat_guess_tokens(const cleat_evaluation *evaluated, size_t field, int64_t vocabulary,
                                cleat_token_guess *guess, char *text, cleat_error *error);

#endif
