/* Generation of texts by a trained causal language model, token by token, with the keys and values of earlier tokens
 * kept on the device.
 *
 * Threads: a generator is used by one thread at a time. */
#ifndef CLEAT_GENERATE_H
#define CLEAT_GENERATE_H

#include "cleat/profile.h"
#include "cleat/tokenizer.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cleat_generator cleat_generator;

/* How the next token is chosen. Of the softmax of logits / temperature, the top_k likeliest tokens remain, of these the
 * fewest likeliest whose probabilities add up to at least top_p (Holtzman et al. 2020), and one is drawn. */
typedef struct cleat_sampling {
    double temperature; /* 0: the likeliest token, the first of equal ones */
    int64_t top_k;      /* 0: all */
    double top_p;       /* 1: all */
    uint64_t seed;      /* with the number of the text and of the token it determines each draw */
} cleat_sampling;

typedef struct cleat_generate_options {
    const char *checkpoint; /* as for cleat_evaluate; NULL: the weights of the profile's model.init */
    cleat_sampling sampling;
    int64_t max_tokens; /* of an answer, at least 1 */
    int64_t context;    /* most tokens of a prompt with its answer; 0: what the first prompts need */
} cleat_generate_options;

/* Why an answer ended. */
typedef enum cleat_answer_end {
    CLEAT_ANSWER_GOES_ON,
    CLEAT_ANSWER_COMPLETE,   /* its end token, or that of a text */
    CLEAT_ANSWER_MAX_TOKENS, /* max_tokens */
    CLEAT_ANSWER_CONTEXT     /* context, or model.max_positions */
} cleat_answer_end;

/* An answer so far. All texts are borrowed for the time of a call. */
typedef struct cleat_answer {
    const char *id, *prompt;
    const char *truth;              /* NULL: the data have none */
    cleat_text_view text, new_text; /* whole characters, without special tokens: all, and since the last call */
    int64_t prompt_tokens, tokens;  /* the token that ended the answer included */
    double prompt_seconds, seconds; /* of the prompt, and of the answer */
    cleat_answer_end end;
} cleat_answer;

/* Called after each token, also if it adds no whole character. false: no further tokens and prompts. */
typedef bool (*cleat_answer_callback)(void *user, const cleat_answer *answer);

/* Opens a generator. `profile` must outlive it; model.type must be causal_lm. Nothing is loaded before the first call of
 * cleat_generate. CLEAT_ERR_ARGUMENT: options out of range. The caller owns *generator. */
CLEAT_API cleat_status cleat_generator_open(const cleat_profile *profile, const cleat_generate_options *options,
                                            cleat_generator **generator, cleat_error *error);
CLEAT_API void cleat_generator_close(cleat_generator *generator); /* accepts NULL */

/* Answers the prompts of a file, as cleat_causal_open reads it with `predicted`. The first call opens the device and
 * loads the weights. CLEAT_ERR_FORMAT: bad prompts, or one that leaves no room for an answer; CLEAT_ERR_NAN: logits are
 * not finite. */
CLEAT_API cleat_status cleat_generate(cleat_generator *generator, const char *path, cleat_answer_callback callback,
                                      void *user, cleat_error *error);
/* Tokens of a prompt with its answer that the generator has room for; 0 before the first call of cleat_generate. */
CLEAT_API int64_t cleat_generator_context(const cleat_generator *generator);

#ifdef __cplusplus
}
#endif
#endif
