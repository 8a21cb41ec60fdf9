/* Tokenizes the units of a set and composes the tokens of its rows. */
#include "data/text/set.h"

#include "core/files.h"
#include "core/memory.h"
#include "data/text/encode_cache.h"

#include <stdio.h>
#include <string.h>

/* --- the tokenizer -------------------------------------------------------------------------------------------- */

static cleat_text_view view_of(const cleat_text_set *set, size_t unit) {
    return (cleat_text_view){.data = set->bytes.data + set->units[unit].start, .size = set->units[unit].size};
}

/* The units of the training split. */
static cleat_status training_views(const cleat_text_set *set, cleat_text_view **views, size_t *count,
                                   cleat_error *error) {
    cleat_text_view *made = cleat_alloc(set->n_units, sizeof *made);
    size_t used = 0;
    if (!made) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %zu texts", set->n_units);
    for (size_t r = 0; r < set->n_rows; ++r) {
        const cleat_text_row *row = &set->rows[r];
        for (size_t i = row->first; i < row->first + row->units && row->split == CLEAT_SPLIT_TRAIN; ++i)
            made[used++] = view_of(set, i);
    }
    *views = made;
    *count = used;
    return CLEAT_OK;
}

static cleat_status train_tokenizer(const cleat_text_set *set, cleat_tokenizer **tokenizer, cleat_error *error) {
    const cleat_text_options *options = set->options;
    cleat_tokenizer_training training = {.vocabulary_size = (size_t)options->vocabulary_size,
                                         .lowercase = options->lowercase,
                                         .workers = options->workers};
    cleat_text_view *views = NULL;
    size_t count = 0;
    cleat_status status = training_views(set, &views, &count, error);
    if (status != CLEAT_OK) return status;
    status = cleat_tokenizer_train(views, count, &training, tokenizer, error);
    cleat_free(views);
    return status;
}

cleat_status cleat_text_open_tokenizer(const cleat_text_set *set, cleat_tokenizer **tokenizer, cleat_error *error) {
    const cleat_text_options *options = set->options;
    const char *fitted = cleat_text_option(options->fitted), *vocabulary = cleat_text_option(options->vocabulary);
    char path[4096];
    if (!*fitted && !*vocabulary) return train_tokenizer(set, tokenizer, error);
    if (!*fitted) return cleat_tokenizer_load(vocabulary, options->lowercase, tokenizer, error);
    cleat_status status = cleat_path_join(fitted, "vocab.txt", path, sizeof path, error);
    return status == CLEAT_OK ? cleat_tokenizer_load(path, options->lowercase, tokenizer, error) : status;
}

/* --- rows of tokens ------------------------------------------------------------------------------------------- */

/* Writes a row at index `at` and returns the index after it. */
static size_t write_row(cleat_text_set *set, const cleat_text_row *row, const cleat_encoded *in,
                        const cleat_tokenizer *tokenizer, int32_t *ids, size_t at) {
    size_t start = at, most = (size_t)set->options->max_length - 1; /* one is reserved for [SEP] */
    size_t lost_words = 0, wanted = 1;
    bool tags = set->options->task == CLEAT_TEXT_TAGS;
    ids[at++] = cleat_tokenizer_cls(tokenizer);
    for (size_t u = row->first; u < row->first + row->units; ++u) {
        size_t count = (size_t)(in->offsets[u + 1] - in->offsets[u]), room = most - (at - start);
        const int32_t *from = in->ids + in->offsets[u];
        int32_t unknown = cleat_tokenizer_unk(tokenizer);
        if (tags && !count) { /* every word needs a first subword */
            from = &unknown;
            count = 1;
        }
        wanted += count;
        if (count && room) set->units[u].position = (int32_t)(at - start);
        lost_words += !room;
        if (count > room) count = room;
        if (count) memcpy(ids + at, from, count * sizeof *ids);
        at += count;
    }
    ids[at++] = cleat_tokenizer_sep(tokenizer);
    set->summary.cut += wanted > most;
    if (tags) set->summary.cut_words += lost_words;
    return at;
}

static size_t most_tokens(const cleat_text_set *set, const cleat_encoded *in) {
    /* two special tokens per row, and [UNK] for words without tokens */
    return (size_t)in->offsets[set->n_units] + 2 * set->n_rows +
           (set->options->task == CLEAT_TEXT_TAGS ? set->n_units : 0);
}

static cleat_status write_rows(cleat_text_set *set, const cleat_encoded *in, const cleat_tokenizer *tokenizer,
                               cleat_text_tokens *tokens, cleat_error *error) {
    cleat_text_tokens made = {0};
    size_t at = 0;
    made.ids = cleat_alloc(most_tokens(set, in), sizeof *made.ids);
    made.starts = cleat_alloc(set->n_rows + 1, sizeof *made.starts);
    if (!made.ids || !made.starts) {
        cleat_text_tokens_free(&made);
        return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the tokens of %zu texts", set->n_rows);
    }
    for (size_t r = 0; r < set->n_rows; ++r) {
        at = write_row(set, &set->rows[r], in, tokenizer, made.ids, at);
        made.starts[r + 1] = at;
    }
    set->summary.tokens = at;
    for (size_t i = 0; i < at; ++i) set->summary.unknown += made.ids[i] == cleat_tokenizer_unk(tokenizer);
    *tokens = made;
    return CLEAT_OK;
}

void cleat_text_tokens_free(cleat_text_tokens *tokens) {
    cleat_free(tokens->ids);
    cleat_free(tokens->starts);
    *tokens = (cleat_text_tokens){0};
}

/* --- encoding ------------------------------------------------------------------------------------------------- */

enum { MIN_LOGGED_TEXTS = 200000 }; /* fewer texts are encoded within seconds */

typedef struct progress {
    const char *path;
    size_t tenths; /* logged so far */
} progress;

static void log_progress(void *user, size_t done, size_t total) {
    progress *said = user;
    size_t tenths = total ? done * 10 / total : 0;
    if (total < MIN_LOGGED_TEXTS || tenths == said->tenths) return;
    said->tenths = tenths;
    cleat_log(CLEAT_LOG_INFO, "%s: %zu of %zu texts encoded", said->path, done, total);
}

static cleat_status all_views(const cleat_text_set *set, cleat_text_view **views, cleat_error *error) {
    cleat_text_view *made = cleat_alloc(set->n_units, sizeof *made);
    if (!made) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %zu texts", set->n_units);
    for (size_t u = 0; u < set->n_units; ++u) made[u] = view_of(set, u);
    *views = made;
    return CLEAT_OK;
}

static cleat_status encode(const cleat_text_set *set, const char *path, const cleat_tokenizer *tokenizer,
                           cleat_encoded *encoded, cleat_error *error) {
    const cleat_text_options *options = set->options;
    cleat_text_view *views = NULL;
    progress said = {.path = path};
    cleat_status status = all_views(set, &views, error);
    if (status != CLEAT_OK) return status;
    cleat_encode_setup setup = {.tokenizer = tokenizer,
                                .texts = views,
                                .n = set->n_units,
                                .workers = options->workers,
                                .cpus = options->cpus && *options->cpus ? options->cpus : NULL,
                                .progress = log_progress,
                                .user = &said};
    char name[4200];
    snprintf(name, sizeof name, "%s, %s%s", path, options->task == CLEAT_TEXT_TAGS ? "words" : "column ",
             options->task == CLEAT_TEXT_TAGS ? "" : cleat_text_option(options->text_column));
    status = options->cache ? cleat_encode_cached(&setup, name, NULL, encoded, error)
                            : cleat_encode_texts(&setup, encoded, error);
    cleat_free(views);
    return status;
}

cleat_status cleat_text_tokenize(cleat_text_set *set, const char *path, const cleat_tokenizer *tokenizer,
                                 cleat_text_tokens *tokens, cleat_error *error) {
    cleat_encoded encoded = {0};
    cleat_status status = encode(set, path, tokenizer, &encoded, error);
    if (status == CLEAT_OK) status = write_rows(set, &encoded, tokenizer, tokens, error);
    cleat_encoded_free(&encoded);
    return status;
}
