/* Command-line arguments, and the options of clBuildProgram. */
#ifndef VIRTUAL_CARD_OPTIONS_H
#define VIRTUAL_CARD_OPTIONS_H

#include "objects.h"

/* Owned words, terminated by NULL; zero-initialised. `failed`: out of memory. */
typedef struct vc_words {
    char **words;
    size_t count;
    bool failed;
} vc_words;

/* Adds copies of the words; the list ends with NULL. */
void vc_words_add(vc_words *words, ...) __attribute__((sentinel));
void vc_words_free(vc_words *words);

/* Adds the compiler's arguments for the options of clBuildProgram. Returns CL_INVALID_BUILD_OPTIONS for an
 * unknown option. */
cl_int vc_options_read(const char *options, vc_words *words);

#endif
