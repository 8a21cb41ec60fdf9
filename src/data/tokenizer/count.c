/* Word counts by several threads, each with a separate table. The sums do not depend on which thread counted
 * which text. */
#include "tokenizer/count.h"

#include "core/memory.h"
#include "platform/threads.h"

#include <stdatomic.h>
#include <string.h>

enum { TEXTS_AT_ONCE = 64 };

static cleat_status add(cleat_word_counts *counts, const char *bytes, size_t size, uint64_t count, cleat_error *error) {
    const size_t known = counts->words.count;
    int32_t id;
    cleat_status status = cleat_grow(&counts->counts, known, &counts->capacity, error);
    if (!status) status = cleat_vocabulary_add(&counts->words, bytes, size, &id, error);
    if (status) return status;
    counts->counts[id] = count + (counts->words.count == known ? counts->counts[id] : 0);
    return CLEAT_OK;
}

void cleat_word_counts_free(cleat_word_counts *counts) {
    cleat_vocabulary_free(&counts->words);
    cleat_free(counts->counts);
    *counts = (cleat_word_counts){0};
}

typedef struct corpus {
    const cleat_text_view *texts; /* [n] */
    size_t n;
    const cleat_word_rules *rules;
    atomic_size_t next; /* index of the first text that no thread has claimed */
} corpus;

typedef struct counter {
    corpus *corpus;
    pthread_t thread;
    cleat_word_counts counts;
    cleat_status status;
    cleat_error error;
} counter;

static void count_word(void *user, const cleat_word *word) {
    counter *c = user;
    if (c->status || word->special >= 0 || word->characters > CLEAT_WORD_CHARACTERS) return;
    c->status = add(&c->counts, word->bytes, word->size, 1, &c->error);
}

static void *count_texts(void *argument) {
    counter *c = argument;
    const corpus *all = c->corpus;
    while (!c->status) {
        size_t first = atomic_fetch_add(&c->corpus->next, TEXTS_AT_ONCE);
        for (size_t i = first; i < all->n && i < first + TEXTS_AT_ONCE && !c->status; ++i) {
            cleat_status status =
                cleat_words_split(all->texts[i].data, all->texts[i].size, all->rules, count_word, c, &c->error);
            if (!c->status) c->status = status;
        }
        if (first >= all->n) break;
    }
    return NULL;
}

static cleat_status start_and_join(counter *counters, int workers, cleat_error *error) {
    int started = 0, code = 0;
    if (workers == 0) count_texts(&counters[0]);
    while (started < workers && code == 0) {
        code = pthread_create(&counters[started].thread, NULL, count_texts, &counters[started]);
        if (code == 0) ++started;
    }
    for (int i = 0; i < started; ++i) pthread_join(counters[i].thread, NULL);
    if (code == 0) return CLEAT_OK;
    return cleat_fail(error, CLEAT_ERR_MEMORY, "only %d of %d threads could be started (error %d); use fewer", started,
                      workers, code);
}

/* Adds the counts of one thread to `counts`. */
static cleat_status merge(cleat_word_counts *counts, const counter *from, cleat_error *error) {
    if (from->status) return cleat_fail(error, from->status, "%s", from->error.text);
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; i < from->counts.words.count && !status; ++i) {
        const char *word = cleat_vocabulary_piece(&from->counts.words, (int32_t)i);
        status = add(counts, word, strlen(word), from->counts.counts[i], error);
    }
    return status;
}

cleat_status cleat_words_count(const cleat_text_view *texts, size_t n, const cleat_word_rules *rules, int workers,
                               cleat_word_counts *counts, cleat_error *error) {
    corpus all = {.texts = texts, .n = n, .rules = rules};
    size_t n_counters = workers > 0 ? (size_t)workers : 1;
    cleat_word_counts sum = {0};
    counter *counters = cleat_alloc(n_counters, sizeof *counters);
    if (!counters) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %d threads", workers);
    for (size_t i = 0; i < n_counters; ++i) counters[i].corpus = &all;
    cleat_status status = start_and_join(counters, workers, error);
    for (size_t i = 0; i < n_counters && !status; ++i) {
        status = merge(&sum, &counters[i], error);
        cleat_word_counts_free(&counters[i].counts);
    }
    for (size_t i = 0; i < n_counters; ++i) cleat_word_counts_free(&counters[i].counts);
    cleat_free(counters);
    if (!status)
        *counts = sum;
    else
        cleat_word_counts_free(&sum);
    return status;
}
