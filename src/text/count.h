/* Word frequencies of a corpus. */
#ifndef CLEAT_SRC_COUNT_H
#define CLEAT_SRC_COUNT_H

#include "cleat/text.h"
#include "text/words.h"

typedef struct cleat_counted {
    uint32_t start, size; /* place of its bytes in `text` */
    uint64_t count;
} cleat_counted;

typedef struct cleat_word_counts {
    char *text;
    size_t text_size, text_capacity;
    cleat_counted *words; /* [count] in arbitrary order */
    size_t count, capacity;
    /* [n_slots] index of a word + 1, 0: free. n_slots is a power of two; at most half of them are used. */
    uint32_t *slots;
    size_t n_slots;
} cleat_word_counts;

enum { CLEAT_MAX_COUNT_WORKERS = 256 };

/* Counts the words of texts [n] on `workers` threads (0: the calling thread). Special tokens and words of
 * more than CLEAT_WORD_CHARACTERS characters are skipped. Release `counts` with cleat_word_counts_free. */
cleat_status cleat_words_count(const cleat_text_view *texts, size_t n, const cleat_word_rules *rules, int workers,
                               cleat_word_counts *counts, cleat_error *error);
void cleat_word_counts_free(cleat_word_counts *counts);

#endif
