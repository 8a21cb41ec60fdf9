/* Encodes texts in blocks that threads claim in order; the results are concatenated in that order. */
#include "data/text/encode.h"

#include "core/memory.h"
#include "data/loader.h"
#include "platform/threads.h"

#include <stdatomic.h>
#include <string.h>

enum { TEXTS_A_BLOCK = 256, TOKENS_AT_ONCE = 1024 };

typedef struct block {
    int32_t *ids;    /* [size] */
    uint8_t *starts; /* [size]; NULL: not wanted */
    size_t size, capacity;
    uint32_t counts[TEXTS_A_BLOCK]; /* number of tokens of each text */
    cleat_status status;
} block;

typedef struct job {
    const cleat_encode_setup *setup;
    block *blocks; /* [n_blocks] */
    size_t n_blocks;
    atomic_size_t next; /* the first unclaimed block */
    cleat_pinning *pinning;
    atomic_bool said_unpinned;

    pthread_mutex_t lock; /* protects everything below */
    pthread_cond_t moved;
    size_t done;         /* number of encoded texts */
    int running;         /* number of running threads */
    size_t failed_block; /* the first one that failed, or n_blocks */
    cleat_error failure;
} job;

static bool has_marks(const cleat_encode_setup *setup) {
    return setup->word_starts || setup->first_spans;
}

/* Ensures room for `more` tokens. */
static cleat_status reserve(block *b, bool word_starts, size_t more, cleat_error *error) {
    if (b->size + more <= b->capacity) return CLEAT_OK;
    size_t capacity = b->capacity * 2 + more + TOKENS_AT_ONCE;
    int32_t *ids = cleat_alloc(capacity, sizeof *ids);
    uint8_t *starts = word_starts ? cleat_alloc(capacity, sizeof *starts) : NULL;
    if (!ids || (word_starts && !starts)) {
        cleat_free(ids);
        cleat_free(starts);
        return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %zu tokens", capacity);
    }
    if (b->size) memcpy(ids, b->ids, b->size * sizeof *ids);
    if (b->size && starts) memcpy(starts, b->starts, b->size);
    cleat_free(b->ids);
    cleat_free(b->starts);
    b->ids = ids;
    b->starts = starts;
    b->capacity = capacity;
    return CLEAT_OK;
}

/* The tokens of a text, in `few`, or, if there are more, in an allocation that the caller frees. */
static cleat_status get_tokens(const cleat_encode_setup *setup, cleat_text_view text, cleat_token *few,
                               cleat_token **tokens, size_t *count, cleat_error *error) {
    const cleat_tokenizer *tokenizer = setup->tokenizer;
    cleat_status (*encode)(const cleat_tokenizer *, const char *, size_t, cleat_token *, size_t, size_t *,
                           cleat_error *) = setup->in_sentence ? cleat_tokenizer_encode_word : cleat_tokenizer_encode;
    *tokens = few;
    cleat_status status = encode(tokenizer, text.data, text.size, few, TOKENS_AT_ONCE, count, error);
    if (status || *count <= TOKENS_AT_ONCE) return status;
    *tokens = cleat_alloc(*count, sizeof **tokens);
    if (!*tokens) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %zu tokens", *count);
    return encode(tokenizer, text.data, text.size, *tokens, *count, count, error);
}

/* A token without bytes is in the span that its place is in. */
static void mark_spans(const cleat_encode_setup *setup, size_t index, const cleat_token *tokens, size_t count,
                       uint8_t *marks) {
    size_t span = setup->first_spans[index];
    const size_t last = setup->first_spans[index + 1]; /* spans is NULL if no text has one */
    for (size_t i = 0; i < count; ++i) {
        const size_t begin = tokens[i].begin, end = tokens[i].end > begin ? tokens[i].end : begin + 1;
        while (span < last && setup->spans[span].end <= begin) ++span;
        marks[i] = span < last && setup->spans[span].begin < end;
    }
}

static cleat_status encode_text(const cleat_encode_setup *setup, size_t index, block *b, cleat_error *error) {
    cleat_token few[TOKENS_AT_ONCE], *tokens;
    size_t count = 0;
    cleat_status status = get_tokens(setup, setup->texts[index], few, &tokens, &count, error);
    if (!status) status = reserve(b, has_marks(setup), count, error);
    if (!status) {
        for (size_t i = 0; i < count; ++i) {
            b->ids[b->size + i] = tokens[i].id;
            if (setup->word_starts) b->starts[b->size + i] = i == 0 || tokens[i].word != tokens[i - 1].word;
        }
        if (setup->first_spans && count) mark_spans(setup, index, tokens, count, b->starts + b->size);
        b->size += count;
        b->counts[index % TEXTS_A_BLOCK] = (uint32_t)count;
    }
    if (tokens != few) cleat_free(tokens);
    return status ? cleat_fail_in(error, status, "text %zu", index) : CLEAT_OK;
}

static void encode_block(job *j, size_t index) {
    cleat_error error = {0};
    block *b = &j->blocks[index];
    size_t first = index * TEXTS_A_BLOCK, end = first + TEXTS_A_BLOCK;
    if (end > j->setup->n) end = j->setup->n;
    for (size_t i = first; i < end && !b->status; ++i) b->status = encode_text(j->setup, i, b, &error);
    pthread_mutex_lock(&j->lock);
    j->done += end - first;
    if (b->status && index < j->failed_block) {
        j->failed_block = index;
        j->failure = error;
    }
    pthread_cond_signal(&j->moved);
    pthread_mutex_unlock(&j->lock);
}

/* Claims the next block. Returns false if there is none, or if an earlier one has failed already. */
static bool claim(job *j, size_t *index) {
    *index = atomic_fetch_add(&j->next, 1);
    if (*index >= j->n_blocks) return false;
    pthread_mutex_lock(&j->lock);
    bool wanted = *index < j->failed_block;
    pthread_mutex_unlock(&j->lock);
    return wanted;
}

static void report(const job *j, size_t done) {
    if (j->setup->progress) j->setup->progress(j->setup->user, done, j->setup->n);
}

static void encode_here(job *j) {
    for (size_t index; claim(j, &index);) {
        encode_block(j, index);
        if (j->done < j->setup->n) report(j, j->done);
    }
}

static void *worker(void *argument) {
    job *j = argument;
    if (!cleat_pinning_apply(j->pinning) && !atomic_exchange(&j->said_unpinned, true))
        cleat_log(CLEAT_LOG_INFO, "encoding: threads cannot be bound to CPUs on this system");
    for (size_t index; claim(j, &index);) encode_block(j, index);
    pthread_mutex_lock(&j->lock);
    --j->running;
    pthread_cond_signal(&j->moved);
    pthread_mutex_unlock(&j->lock);
    return NULL;
}

/* Reports progress until no thread is running. */
static void watch(job *j) {
    size_t reported = 0;
    pthread_mutex_lock(&j->lock);
    while (j->running) {
        pthread_cond_wait(&j->moved, &j->lock);
        size_t done = j->done;
        if (done == reported || done == j->setup->n) continue;
        pthread_mutex_unlock(&j->lock);
        report(j, reported = done);
        pthread_mutex_lock(&j->lock);
    }
    pthread_mutex_unlock(&j->lock);
}

static cleat_status encode_on_threads(job *j, cleat_error *error) {
    int started = 0, code = 0, wanted = j->setup->workers;
    pthread_t *threads = cleat_alloc((size_t)wanted, sizeof *threads);
    if (!threads) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %d threads", wanted);
    cleat_status status = cleat_pinning_create(j->setup->cpus, &j->pinning, error);
    while (!status && started < wanted && code == 0) {
        pthread_mutex_lock(&j->lock);
        code = pthread_create(&threads[started], NULL, worker, j);
        if (code == 0) {
            ++j->running;
            ++started;
        }
        pthread_mutex_unlock(&j->lock);
    }
    if (code != 0) {
        atomic_store(&j->next, j->n_blocks);
        status =
            cleat_fail(error, CLEAT_ERR_MEMORY, "only %d of %d threads could be started (error %d); reduce num_workers",
                       started, wanted, code);
    }
    if (!status) watch(j);
    for (int i = 0; i < started; ++i) pthread_join(threads[i], NULL);
    cleat_pinning_destroy(j->pinning);
    cleat_free(threads);
    return status;
}

static cleat_status join(const job *j, cleat_encoded_texts *encoded, cleat_error *error) {
    size_t total = 0, n = j->setup->n, at = 0;
    for (size_t i = 0; i < j->n_blocks; ++i) total += j->blocks[i].size;
    cleat_encoded_texts made = {.n = n};
    made.offsets = cleat_alloc(n + 1, sizeof *made.offsets);
    made.ids = cleat_alloc(total, sizeof *made.ids);
    if (has_marks(j->setup)) made.starts = cleat_alloc(total, sizeof *made.starts);
    if (!made.offsets || !made.ids || (has_marks(j->setup) && !made.starts)) {
        cleat_encoded_texts_free(&made);
        return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %zu tokens of %zu texts", total, n);
    }
    for (size_t i = 0; i < n; ++i)
        made.offsets[i + 1] = made.offsets[i] + j->blocks[i / TEXTS_A_BLOCK].counts[i % TEXTS_A_BLOCK];
    for (size_t i = 0; i < j->n_blocks; at += j->blocks[i++].size) {
        block *b = &j->blocks[i];
        if (b->size) memcpy(made.ids + at, b->ids, b->size * sizeof *b->ids);
        if (b->size && made.starts) memcpy(made.starts + at, b->starts, b->size);
        cleat_free(b->ids); /* avoids a second copy of all tokens, which may take gigabytes */
        b->ids = NULL;
    }
    *encoded = made;
    return CLEAT_OK;
}

static cleat_status check(const cleat_encode_setup *setup, cleat_error *error) {
    if (!setup || !setup->tokenizer || (setup->n && !setup->texts))
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "encoding requires a tokenizer and texts");
    if (setup->workers < 0 || setup->workers > CLEAT_MAX_WORKERS)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "num_workers is %d; it must be 0 to %d", setup->workers,
                          CLEAT_MAX_WORKERS);
    return CLEAT_OK;
}

cleat_status cleat_encode_texts(const cleat_encode_setup *setup, cleat_encoded_texts *encoded, cleat_error *error) {
    cleat_status status = check(setup, error);
    if (status) return status;
    job j = {.setup = setup, .n_blocks = (setup->n + TEXTS_A_BLOCK - 1) / TEXTS_A_BLOCK};
    j.failed_block = j.n_blocks;
    j.blocks = cleat_alloc(j.n_blocks, sizeof *j.blocks);
    if (!j.blocks) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory to encode %zu texts", setup->n);
    pthread_mutex_init(&j.lock, NULL);
    pthread_cond_init(&j.moved, NULL);
    if (setup->workers > 0)
        status = encode_on_threads(&j, error);
    else
        encode_here(&j);
    if (!status && j.failed_block < j.n_blocks) status = cleat_fail(error, j.failure.status, "%s", j.failure.text);
    if (!status) status = join(&j, encoded, error);
    if (!status) report(&j, setup->n);
    for (size_t i = 0; i < j.n_blocks; ++i) {
        cleat_free(j.blocks[i].ids);
        cleat_free(j.blocks[i].starts);
    }
    pthread_cond_destroy(&j.moved);
    pthread_mutex_destroy(&j.lock);
    cleat_free(j.blocks);
    return status;
}

void cleat_encoded_texts_free(cleat_encoded_texts *encoded) {
    cleat_free(encoded->offsets);
    cleat_free(encoded->ids);
    cleat_free(encoded->starts);
    *encoded = (cleat_encoded_texts){0};
}
