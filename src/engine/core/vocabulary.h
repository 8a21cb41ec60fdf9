/* The pieces of a vocabulary, or the names of a table: ids in order of insertion, and the longest piece that is a
 * prefix of a word. */
#ifndef CLEAT_SRC_VOCABULARY_H
#define CLEAT_SRC_VOCABULARY_H

#include "cleat/core.h"

typedef struct cleat_vocabulary {
    char *text; /* all pieces, each zero-terminated, one after the other */
    size_t text_size, text_capacity;
    size_t *starts; /* [count] offset of each piece in `text` */
    size_t count, capacity;
    struct cleat_vocabulary_slot *slots; /* [n_slots] a power of two; at most half are used */
    size_t n_slots;
    size_t longest; /* length of the longest piece in bytes */
} cleat_vocabulary;

enum { CLEAT_WORD_BYTES = 400 }; /* the longest word of cleat_vocabulary_longest */

void cleat_vocabulary_free(cleat_vocabulary *vocabulary);
/* Adds a piece, which must not contain a zero byte, with the next id. A piece that exists already keeps its
 * id. *id is the id in both cases. */
cleat_status cleat_vocabulary_add(cleat_vocabulary *vocabulary, const char *piece, size_t size, int32_t *id,
                                  cleat_error *error);
/* The id of a piece, or -1. */
int32_t cleat_vocabulary_find(const cleat_vocabulary *vocabulary, const char *piece, size_t size);
const char *cleat_vocabulary_piece(const cleat_vocabulary *vocabulary, int32_t id);
/* Finds the longest piece that is a prefix of word [size], or of "##" and word if `inside`. Returns its id
 * and sets *length (without "##"), or returns -1. */
int32_t cleat_vocabulary_longest(const cleat_vocabulary *vocabulary, const char *word, size_t size, bool inside,
                                 size_t *length);

#endif
