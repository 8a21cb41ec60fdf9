/* Many texts as token ids, on threads. */
#ifndef CLEAT_SRC_ENCODE_H
#define CLEAT_SRC_ENCODE_H

#include "cleat/text.h"

typedef struct cleat_encode_setup {
    const cleat_tokenizer *tokenizer;
    const cleat_text_view *texts; /* [n] */
    size_t n;
    bool word_starts; /* also say which tokens begin a word */
    int workers;      /* threads, at most CLEAT_MAX_WORKERS; 0: the calling thread does it */
    const char *cpus; /* where the threads run, as in cleat_loader_setup */
    /* Called now and then, by the calling thread, and at last with done == total == n. NULL: not. */
    void (*progress)(void *user, size_t done, size_t total);
    void *user;
} cleat_encode_setup;

typedef struct cleat_encoded {
    size_t n;          /* texts */
    uint64_t *offsets; /* [n + 1] text i has ids[offsets[i]] .. ids[offsets[i + 1] - 1] */
    int32_t *ids;      /* [offsets[n]] without [CLS] and [SEP] */
    uint8_t *starts;   /* [offsets[n]] 1 where a token begins a word; NULL where that was not asked for */
} cleat_encoded;

/* Encodes all texts. The result does not depend on the number of threads. An error is that of the first text that has one, and
 * names it by its index. cleat_encoded_free takes the result. */
cleat_status cleat_encode_texts(const cleat_encode_setup *setup, cleat_encoded *encoded, cleat_error *error);
void cleat_encoded_free(cleat_encoded *encoded);

#endif
