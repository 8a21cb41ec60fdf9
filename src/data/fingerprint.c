/* The fingerprint of a dataset: counts, and hashes of names, splits, lengths, integer fields, and of a single file. */
#include "data/fingerprint.h"

#include "core/files.h"
#include "core/memory.h"
#include "core/string.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Samples whose integer fields (tokens, labels, masks) are hashed, evenly spaced: some formats decode a file
 * for each. */
enum { FILLED = 128, FIELDS = 16, FOLD = 1 << 16 };

/* A hash of a stream of bytes: the bytes collect in `pending`, which is folded into `hash` whenever it is large. */
typedef struct stream {
    cleat_string pending;
    char hash[33];
} stream;

static void fold(stream *s) {
    if (s->pending.failed) return;
    cleat_string_add(&s->pending, "%s", s->hash);
    if (!s->pending.failed) cleat_hash_text(s->pending.data, s->pending.size, s->hash);
    s->pending.size = 0;
}

static void fold_when_large(stream *s) {
    if (s->pending.size >= FOLD) fold(s);
}

static cleat_status finish(stream *s, char hash[33], cleat_error *error) {
    fold(s);
    const bool failed = s->pending.failed;
    cleat_string_free(&s->pending);
    if (failed) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the fingerprint of the data");
    memcpy(hash, s->hash, sizeof s->hash);
    return CLEAT_OK;
}

static cleat_status hash_names(const cleat_dataset *dataset, cleat_data_fingerprint *fingerprint, cleat_error *error) {
    stream s = {.hash = ""};
    for (size_t i = 0; i < cleat_dataset_count(dataset); ++i) {
        const cleat_split split = cleat_dataset_split(dataset, i);
        if ((unsigned)split < CLEAT_SPLITS) ++fingerprint->counts[split];
        cleat_string_add(&s.pending, "%s\n%d\n", cleat_dataset_id(dataset, i), (int)split);
        fold_when_large(&s);
    }
    return finish(&s, fingerprint->names, error);
}

/* Room for the integer fields of a sample; the slots of the others stay NULL. */
static cleat_status make_slots(const cleat_dataset *dataset, int64_t length, void *slots[FIELDS], cleat_error *error) {
    for (size_t f = 0; f < cleat_dataset_fields(dataset) && f < FIELDS; ++f) {
        const cleat_field *field = cleat_dataset_field(dataset, f);
        if (field->dtype != CLEAT_I32) continue;
        slots[f] = cleat_alloc((size_t)cleat_field_bytes(field, length), 1);
        if (!slots[f]) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the fingerprint of the data");
    }
    return CLEAT_OK;
}

/* The loader reports a sample that cannot be read; here its status is part of the content. */
static cleat_status hash_sample(const cleat_dataset *dataset, size_t sample, stream *s, cleat_error *error) {
    void *slots[FIELDS] = {NULL};
    const int64_t length = cleat_dataset_length(dataset, sample);
    cleat_status status = make_slots(dataset, length, slots, error);
    if (!status) {
        const cleat_status filled = cleat_dataset_fill(dataset, sample, length, NULL, slots, NULL);
        cleat_string_add(&s->pending, "%d\n", (int)filled);
        for (size_t f = 0; f < FIELDS && !filled; ++f)
            if (slots[f])
                cleat_string_add_bytes(&s->pending, slots[f],
                                       (size_t)cleat_field_bytes(cleat_dataset_field(dataset, f), length));
        fold_when_large(s);
    }
    for (size_t f = 0; f < FIELDS; ++f) cleat_free(slots[f]);
    return status;
}

static cleat_status hash_content(const cleat_dataset *dataset, char hash[33], cleat_error *error) {
    stream s = {.hash = ""};
    const size_t count = cleat_dataset_count(dataset), filled = count < FILLED ? count : FILLED;
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; i < count; ++i) {
        cleat_string_add(&s.pending, "%" PRId64 "\n", cleat_dataset_length(dataset, i));
        fold_when_large(&s);
    }
    for (size_t i = 0; i < filled && !status; ++i) status = hash_sample(dataset, i * count / filled, &s, error);
    cleat_status finished = finish(&s, hash, error);
    return status ? status : finished;
}

cleat_status cleat_data_fingerprint_take(const cleat_dataset *dataset, const char *path,
                                         cleat_data_fingerprint *fingerprint, cleat_error *error) {
    size_t size;
    *fingerprint = (cleat_data_fingerprint){.names = ""};
    cleat_status status = hash_names(dataset, fingerprint, error);
    if (!status) status = hash_content(dataset, fingerprint->content, error);
    if (!status && cleat_file_exists(path)) status = cleat_file_hash(path, &size, fingerprint->file, error);
    return status;
}

bool cleat_data_fingerprint_differs(const cleat_data_fingerprint *then, const cleat_data_fingerprint *now,
                                    bool only_names, char *text, size_t size) {
    size_t used = 0;
    int64_t known = 0;
    *text = 0;
    for (int s = 0; s < CLEAT_SPLITS; ++s) known += then->counts[s];
    if (known == 0) return false;
    for (int s = 0; s < CLEAT_SPLITS; ++s)
        if (then->counts[s] != now->counts[s] && used < size)
            used +=
                (size_t)snprintf(text + used, size - used, "%s%" PRId64 " samples of split '%s' then, %" PRId64 " now",
                                 used ? "; " : "", then->counts[s], cleat_split_name((cleat_split)s), now->counts[s]);
    if (used) return true;
    if (strcmp(then->names, now->names) != 0)
        snprintf(text, size, "the same number of samples, but other names, order or splits");
    else if (!only_names && strcmp(then->content, now->content) != 0)
        snprintf(text, size, "the same names, but other lengths, tokens or labels");
    else if (*then->file && *now->file && strcmp(then->file, now->file) != 0)
        snprintf(text, size, "the same names, but other bytes in the file");
    return *text != 0;
}
