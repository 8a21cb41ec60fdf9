/* The choice of the next token. */
#ifndef CLEAT_SRC_GENERATE_SAMPLE_H
#define CLEAT_SRC_GENERATE_SAMPLE_H

#include "cleat/generate.h"

/* A token and its logit, later its probability. */
typedef struct cleat_candidate {
    double weight;
    int32_t token;
} cleat_candidate;

/* Chooses a token by logits [count], which are finite. `text` and `token` count from 0. room [count] is memory. */
int32_t cleat_sample_token(const cleat_sampling *sampling, const float *logits, int64_t count, uint32_t text,
                           uint32_t token, cleat_candidate *room);

#endif
