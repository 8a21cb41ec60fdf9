/* Encodes many texts as token ids, on several threads. */
#ifndef CLEAT_SRC_ENCODE_H
#define CLEAT_SRC_ENCODE_H

#include "cleat/tokenizer.h"

/* Bytes [begin, end) of a text. */
typedef struct cleat_byte_span {
    size_t begin, end;
} cleat_byte_span;

typedef struct cleat_encode_setup {
    const cleat_tokenizer *tokenizer;
    const cleat_text_view *texts; /* [n] */
    size_t n;
    bool word_starts; /* also determine which tokens begin a word */
    /* In place of word_starts, unless NULL: determine which tokens have a byte of the text's spans,
     * spans[first_spans[i]] .. spans[first_spans[i + 1] - 1], in order. */
    const size_t *first_spans; /* [n + 1] */
    const cleat_byte_span *spans;
    bool in_sentence; /* the texts are words of sentences (cleat_tokenizer_encode_word) */
    int workers;      /* number of threads, at most CLEAT_MAX_WORKERS; 0: the calling thread encodes */
    const char *cpus; /* CPUs on which the threads run, as in cleat_loader_setup */
    /* Called from time to time by the calling thread, and finally with done == total == n. NULL: not
     * called. */
    void (*progress)(void *user, size_t done, size_t total);
    void *user;
} cleat_encode_setup;

typedef struct cleat_encoded_texts {
    size_t n;          /* number of texts */
    uint64_t *offsets; /* [n + 1]; text i has ids[offsets[i]] .. ids[offsets[i + 1] - 1] */
    int32_t *ids;      /* [offsets[n]], without special tokens around the texts */
    uint8_t *starts;   /* [offsets[n]] 1 where a token begins a word, or is in a span; NULL unless requested */
} cleat_encoded_texts;

/* Encodes all texts. The result does not depend on the number of threads. If texts have errors, the error is
 * that of the first of them and gives its index. The caller frees *encoded (cleat_encoded_texts_free). */
cleat_status cleat_encode_texts(const cleat_encode_setup *setup, cleat_encoded_texts *encoded, cleat_error *error);
void cleat_encoded_texts_free(cleat_encoded_texts *encoded);

#endif
