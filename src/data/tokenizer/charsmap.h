/* The normalisation table of SentencePiece ("precompiled_charsmap"): a double-array trie of character sequences and
 * the texts that replace them. */
#ifndef CLEAT_SRC_CHARSMAP_H
#define CLEAT_SRC_CHARSMAP_H

#include "tokenizer/aligned.h"

typedef struct cleat_charsmap {
    uint32_t *units; /* [n_units] of the double-array trie (Darts-clone) */
    size_t n_units;
    char *texts; /* [size] replacements, each zero-terminated */
    size_t size;
} cleat_charsmap;

/* Reads the table from its base64 text. CLEAT_ERR_FORMAT: not base64, or sizes that contradict each other. */
cleat_status cleat_charsmap_read(const char *base64, cleat_charsmap *map, cleat_error *error);
void cleat_charsmap_free(cleat_charsmap *map);
/* Appends the normalised text of `from` to `to`. Invalid units of the trie match nothing. */
void cleat_charsmap_apply(const cleat_charsmap *map, const cleat_aligned_text *from, cleat_aligned_text *to);

#endif
