/* The cache file of encoded texts: a header, offsets [n + 1], ids [total], and starts [total] if requested.
 *
 * Numbers are in the byte order of this machine; on a machine with the other order the header's format does
 * not match. */
#include "data/text/encode_cache.h"

#include "core/files.h"
#include "core/memory.h"

#include <stdio.h>
#include <string.h>

/* FORMAT also identifies the tokenization: increment it when the tokenizer produces different tokens than
 * before. */
enum { FORMAT = 1, HASH = 33, PATH = 1024 };

static const char magic[8] = "CLEATTOK";

typedef struct header {
    char magic[8];
    uint64_t format;
    uint64_t n, total;
    uint64_t starts; /* 1: the file has `starts` */
    char key[40];    /* hash of the inputs */
    char hash[40];   /* of everything that follows */
} header;

/* key = hash(key, hash(text)) from one text to the next, so that the boundaries between texts matter as well
 * as their bytes. */
static void make_key(const cleat_encode_setup *setup, char key[HASH]) {
    char chain[2 * HASH] = {0};
    cleat_tokenizer_hash(setup->tokenizer, chain);
    bool words = setup->in_sentence && cleat_tokenizer_is_published(setup->tokenizer); /* others encode both alike */
    snprintf(chain + HASH, HASH, "%d %d%s", (int)FORMAT, (int)setup->word_starts, words ? " words" : "");
    cleat_hash_text(chain, sizeof chain, key);
    for (size_t i = 0; i < setup->n; ++i) {
        memcpy(chain, key, HASH);
        cleat_hash_text(setup->texts[i].size ? setup->texts[i].data : "", setup->texts[i].size, chain + HASH);
        cleat_hash_text(chain, sizeof chain, key);
    }
    if (!setup->first_spans) return;
    memcpy(chain, key, HASH);
    cleat_hash_text(setup->first_spans, (setup->n + 1) * sizeof *setup->first_spans, chain + HASH);
    cleat_hash_text(chain, sizeof chain, key);
    memcpy(chain, key, HASH);
    cleat_hash_text(setup->first_spans[setup->n] ? (const void *)setup->spans : "",
                    setup->first_spans[setup->n] * sizeof *setup->spans, chain + HASH);
    cleat_hash_text(chain, sizeof chain, key);
}

cleat_status cleat_encode_cache_path(const char *name, char *path, size_t size, cleat_error *error) {
    char hash[HASH];
    cleat_hash_text(name, strlen(name), hash);
    return cleat_cache_path("", hash, ".tokens", path, size, error);
}

static size_t body_bytes(uint64_t n, uint64_t total, bool starts) {
    return (size_t)((n + 1) * sizeof(uint64_t) + total * (sizeof(int32_t) + (starts ? 1 : 0)));
}

/* Returns NULL if the file is complete and consistent, else what is wrong with it. */
static const char *check_file(const char *data, size_t size, header *head) {
    char hash[HASH];
    if (size < sizeof *head) return "the file is truncated";
    memcpy(head, data, sizeof *head);
    if (memcmp(head->magic, magic, sizeof magic) != 0) return "it is not a token file";
    if (head->format != FORMAT) return "it was written by another version";
    if (head->starts > 1 || head->n >= size || head->total >= size) return "its header is damaged";
    if (size - sizeof *head != body_bytes(head->n, head->total, head->starts)) return "its size is wrong";
    cleat_hash_text(data + sizeof *head, size - sizeof *head, hash);
    return memcmp(hash, head->hash, HASH) == 0 ? NULL : "its checksum is wrong";
}

/* Returns false if the numbers cannot be a result of encoding: the checksum is then correct, but the writer
 * was faulty. */
static bool are_tokens(const cleat_encoded_texts *encoded, uint64_t total, size_t vocabulary_size) {
    if (encoded->offsets[0] != 0 || encoded->offsets[encoded->n] != total) return false;
    for (size_t i = 0; i < encoded->n; ++i)
        if (encoded->offsets[i] > encoded->offsets[i + 1]) return false;
    for (uint64_t i = 0; i < total; ++i)
        if (encoded->ids[i] < 0 || (size_t)encoded->ids[i] >= vocabulary_size) return false;
    return true;
}

static cleat_status copy_body(const header *head, const char *body, cleat_encoded_texts *encoded) {
    cleat_encoded_texts made = {.n = (size_t)head->n};
    size_t total = (size_t)head->total;
    made.offsets = cleat_alloc(made.n + 1, sizeof *made.offsets);
    made.ids = cleat_alloc(total, sizeof *made.ids);
    if (head->starts) made.starts = cleat_alloc(total, sizeof *made.starts);
    if (!made.offsets || !made.ids || (head->starts && !made.starts)) {
        cleat_encoded_texts_free(&made);
        return CLEAT_ERR_MEMORY;
    }
    memcpy(made.offsets, body, (made.n + 1) * sizeof *made.offsets);
    body += (made.n + 1) * sizeof *made.offsets;
    memcpy(made.ids, body, total * sizeof *made.ids);
    if (made.starts) memcpy(made.starts, body + total * sizeof *made.ids, total);
    *encoded = made;
    return CLEAT_OK;
}

/* Returns true if the file has the requested result. */
static bool read_file(const char *path, const cleat_encode_setup *setup, const char *key,
                      cleat_encoded_texts *encoded) {
    char *data = NULL;
    size_t size = 0;
    header head;
    cleat_error error = {0};
    const char *wrong = NULL;
    cleat_encoded_texts found = {0};
    if (!cleat_file_exists(path)) return false;
    if (cleat_file_read(path, &data, &size, &error) != CLEAT_OK)
        wrong = error.text;
    else
        wrong = check_file(data, size, &head);
    bool same = !wrong && memcmp(head.key, key, HASH) == 0;
    if (same && copy_body(&head, data + sizeof head, &found) != CLEAT_OK)
        wrong = "there is not enough memory to read it";
    if (same && !wrong &&
        (found.n != setup->n || !are_tokens(&found, head.total, cleat_tokenizer_size(setup->tokenizer))))
        wrong = "it contains invalid tokens";
    if (wrong) {
        cleat_log(CLEAT_LOG_WARNING, "tokens: cached file %s is not used: %s; encoding again", path, wrong);
        cleat_encoded_texts_free(&found);
    } else if (!same) {
        cleat_log(CLEAT_LOG_INFO, "tokens: texts, vocabulary or settings have changed since %s; encoding again", path);
    }
    cleat_free(data);
    if (wrong || !same) return false;
    *encoded = found;
    return true;
}

static cleat_status write_file(const char *path, const char *key, const cleat_encoded_texts *encoded,
                               cleat_error *error) {
    header head = {.format = FORMAT, .n = encoded->n, .total = encoded->offsets[encoded->n]};
    size_t total = (size_t)head.total;
    head.starts = encoded->starts != NULL;
    size_t size = sizeof head + body_bytes(head.n, head.total, head.starts);
    char *data = cleat_alloc(size, 1);
    if (!data) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a file of %zu bytes", size);
    char *at = data + sizeof head;
    memcpy(at, encoded->offsets, (encoded->n + 1) * sizeof *encoded->offsets);
    at += (encoded->n + 1) * sizeof *encoded->offsets;
    memcpy(at, encoded->ids, total * sizeof *encoded->ids);
    if (encoded->starts) memcpy(at + total * sizeof *encoded->ids, encoded->starts, total);
    memcpy(head.magic, magic, sizeof magic);
    memcpy(head.key, key, HASH);
    cleat_hash_text(data + sizeof head, size - sizeof head, head.hash);
    memcpy(data, &head, sizeof head);
    cleat_status status = cleat_file_write(path, data, size, error);
    cleat_free(data);
    return status;
}

cleat_status cleat_encode_cached(const cleat_encode_setup *setup, const char *name, bool *reused,
                                 cleat_encoded_texts *encoded, cleat_error *error) {
    char path[PATH], key[HASH];
    cleat_error trouble = {0};
    if (!setup || !setup->tokenizer || !name || (setup->n && !setup->texts))
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "encoding requires a tokenizer, texts, and a name for the cache");
    bool kept = cleat_encode_cache_path(name, path, sizeof path, &trouble) == CLEAT_OK;
    make_key(setup, key);
    bool found = kept && read_file(path, setup, key, encoded);
    if (!found) {
        cleat_status status = cleat_encode_texts(setup, encoded, error);
        if (status) return status;
        if (!kept || write_file(path, key, encoded, &trouble) != CLEAT_OK)
            cleat_log(CLEAT_LOG_WARNING, "tokens: not saved in the cache: %s", trouble.text);
    } else if (setup->progress) {
        setup->progress(setup->user, setup->n, setup->n);
    }
    if (reused) *reused = found;
    return CLEAT_OK;
}
