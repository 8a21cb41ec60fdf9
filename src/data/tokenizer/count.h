/* Word frequencies of a corpus. */
#ifndef CLEAT_SRC_COUNT_H
#define CLEAT_SRC_COUNT_H

#include "cleat/tokenizer.h"
#include "core/vocabulary.h"
#include "tokenizer/words.h"

typedef struct cleat_word_counts {
    cleat_vocabulary words; /* in arbitrary order */
    uint64_t *counts;       /* [words.count] */
    size_t capacity;
} cleat_word_counts;

enum { CLEAT_MAX_COUNT_WORKERS = 256 };

/* Counts the words of texts [n] on `workers` threads (0: the calling thread). Special tokens and words of
 * more than CLEAT_WORD_CHARACTERS characters are skipped. Release `counts` with cleat_word_counts_free. */
cleat_status cleat_words_count(const cleat_text_view *texts, size_t n, const cleat_word_rules *rules, int workers,
                               cleat_word_counts *counts, cleat_error *error);
void cleat_word_counts_free(cleat_word_counts *counts);

#endif
