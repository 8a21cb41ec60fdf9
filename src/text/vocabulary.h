/* The pieces of a vocabulary: ids in order, and the longest one a word goes on with. */
#ifndef CLEAT_SRC_VOCABULARY_H
#define CLEAT_SRC_VOCABULARY_H

#include "cleat/core.h"

typedef struct cleat_vocabulary {
    char *text; /* all pieces, zero-terminated, one behind the other */
    size_t text_size, text_capacity;
    size_t *starts; /* [count] of each piece in `text` */
    size_t count, capacity;
    struct cleat_vocabulary_slot *slots; /* [n_slots], a power of two, at most half full */
    size_t n_slots;
    size_t longest; /* bytes of the longest piece */
} cleat_vocabulary;

void cleat_vocabulary_free(cleat_vocabulary *vocabulary);
/* Adds a piece (no zero byte in it) with the next id, which is *id; one that is there already keeps its own. */
cleat_status cleat_vocabulary_add(cleat_vocabulary *vocabulary, const char *piece, size_t size, int32_t *id,
                                  cleat_error *error);
/* The id, or -1. */
int32_t cleat_vocabulary_find(const cleat_vocabulary *vocabulary, const char *piece, size_t size);
const char *cleat_vocabulary_piece(const cleat_vocabulary *vocabulary, int32_t id);
/* The longest piece that is a beginning of word [size]; `inside` a word with "##" before it. Its id and *length, or -1. */
int32_t cleat_vocabulary_longest(const cleat_vocabulary *vocabulary, const char *word, size_t size, bool inside,
                                 size_t *length);

#endif
