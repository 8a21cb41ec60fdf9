/* Words of a command line, and the options of clBuildProgram. */
#ifndef VIRTUAL_CARD_OPTIONS_H
#define VIRTUAL_CARD_OPTIONS_H

#include "objects.h"

/* Owned words with a NULL behind them; begins as zeros. `failed`: there was no memory for some. */
typedef struct vc_words {
    char **words;
    size_t count;
    bool failed;
} vc_words;

/* Adds copies of the words up to NULL. */
void vc_words_add(vc_words *words, ...) __attribute__((sentinel));
void vc_words_free(vc_words *words);

/* The compiler's words for the options of clBuildProgram. CL_INVALID_BUILD_OPTIONS: one is unknown to the driver. */
cl_int vc_options_read(const char *options, vc_words *words);

#endif
