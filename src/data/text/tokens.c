/* Tokenizes the units of a set and composes the tokens of its rows. */
#include "data/text/set.h"

#include "core/files.h"
#include "core/memory.h"
#include "data/text/encode_cache.h"
#include "tokenizer/tokenizer.h"

#include <stdio.h>
#include <string.h>

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
        for (size_t i = row->first; i < row->first + row->units && cleat_text_fits(set, row); ++i)
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
    if (status) return status;
    status = cleat_tokenizer_train(views, count, &training, tokenizer, error);
    cleat_free(views);
    return status;
}

cleat_status cleat_text_open_fitted(const char *folder, bool lowercase, cleat_tokenizer **tokenizer,
                                    cleat_error *error) {
    char path[4096];
    cleat_status status = cleat_path_join(folder, "tokenizer.json", path, sizeof path, error);
    if (status) return status;
    if (cleat_file_exists(path)) return cleat_tokenizer_load(path, lowercase, tokenizer, error);
    status = cleat_path_join(folder, "vocab.txt", path, sizeof path, error);
    return status ? status : cleat_tokenizer_load_vocab(path, lowercase, tokenizer, error);
}

static cleat_status check_tokenizer(const cleat_text_options *options, const cleat_tokenizer *tokenizer,
                                    cleat_error *error) {
    const size_t specials = cleat_tokenizer_specials(tokenizer, cleat_text_has_pairs(options));
    if ((uint64_t)options->max_length <= specials)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                          "data.max_length = %lld: the tokenizer adds %zu special tokens, so no text fits",
                          (long long)options->max_length, specials);
    if (options->word_dropout > 0 && cleat_tokenizer_unk(tokenizer) < 0)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                          "data.word_dropout = %g: the tokenizer has no token for unknown words; set it to 0",
                          options->word_dropout);
    return CLEAT_OK;
}

cleat_status cleat_text_open_tokenizer(const cleat_text_set *set, cleat_tokenizer **tokenizer, cleat_error *error) {
    const cleat_text_options *options = set->options;
    const char *fitted = cleat_text_option(options->fitted), *vocabulary = cleat_text_option(options->vocabulary);
    cleat_tokenizer *made = NULL;
    cleat_status status = *fitted       ? cleat_text_open_fitted(fitted, options->lowercase, &made, error)
                          : *vocabulary ? cleat_tokenizer_load(vocabulary, options->lowercase, &made, error)
                                        : train_tokenizer(set, &made, error);
    if (!status) status = check_tokenizer(options, made, error);
    if (status) {
        cleat_tokenizer_destroy(made);
        return status;
    }
    *tokenizer = made;
    return CLEAT_OK;
}

typedef struct row_writer {
    cleat_text_set *set;
    const cleat_encoded_texts *in;
    const cleat_tokenizer *tokenizer;
    cleat_text_tokens *out;
    size_t at;      /* number of tokens written */
    int32_t *words; /* the tokens of a sentence; [capacity] */
    size_t capacity;
} row_writer;

static cleat_ids ids_of(const cleat_encoded_texts *in, size_t unit) {
    return (cleat_ids){in->ids + in->offsets[unit], (size_t)(in->offsets[unit + 1] - in->offsets[unit])};
}

static cleat_status frame_row(row_writer *w, const cleat_ids *first, const cleat_ids *second,
                              cleat_token_counts *framed, cleat_error *error) {
    cleat_status status =
        cleat_tokenizer_frame(w->tokenizer, first, second, (size_t)w->set->options->max_length, w->out->ids + w->at,
                              w->out->types ? w->out->types + w->at : NULL, framed, error);
    if (status) return status;
    w->at += framed->count;
    w->set->summary.cut += framed->cut;
    return CLEAT_OK;
}

static cleat_status write_text(row_writer *w, const cleat_text_row *row, cleat_error *error) {
    cleat_text_unit *unit = &w->set->units[row->first];
    const cleat_ids first = ids_of(w->in, row->first);
    cleat_token_counts framed;
    cleat_ids second = {0};
    if (row->units > 1) second = ids_of(w->in, row->first + 1);
    cleat_status status = frame_row(w, &first, row->units > 1 ? &second : NULL, &framed, error);
    if (!status && framed.first) unit->position = (int32_t)cleat_tokenizer_leading(w->tokenizer);
    return status;
}

static cleat_status reserve_words(row_writer *w, size_t count, cleat_error *error) {
    if (count <= w->capacity) return CLEAT_OK;
    cleat_free(w->words);
    w->capacity = 0;
    w->words = cleat_alloc(2 * count, sizeof *w->words);
    if (!w->words) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a sentence of %zu tokens", count);
    w->capacity = 2 * count;
    return CLEAT_OK;
}

/* Joins the tokens of a sentence's words. A word without tokens is omitted for a published network, which was
 * trained without such words ([UNK] would be a different token); with a vocabulary trained by cleat it is
 * unknown. */
static cleat_status write_sentence(row_writer *w, const cleat_text_row *row, cleat_error *error) {
    const int32_t unknown = cleat_tokenizer_is_published(w->tokenizer) ? -1 : cleat_tokenizer_unk(w->tokenizer);
    const size_t end = row->first + row->units, leading = cleat_tokenizer_leading(w->tokenizer);
    cleat_text_unit *units = w->set->units;
    cleat_token_counts framed;
    size_t count = 0;
    cleat_status status =
        reserve_words(w, (size_t)(w->in->offsets[end] - w->in->offsets[row->first]) + row->units, error);
    for (size_t u = row->first; u < end && !status; ++u) {
        cleat_ids word = ids_of(w->in, u);
        if (!word.count && unknown >= 0) word = (cleat_ids){&unknown, 1};
        units[u].position = word.count ? (int32_t)(leading + count) : CLEAT_TEXT_NO_TOKEN;
        if (word.count) memcpy(w->words + count, word.ids, word.count * sizeof *word.ids);
        count += word.count;
    }
    const cleat_ids all = {w->words, count};
    if (!status) status = frame_row(w, &all, NULL, &framed, error);
    for (size_t u = row->first; u < end && !status; ++u) {
        if (units[u].position < 0 || (size_t)units[u].position - leading < framed.first) continue;
        units[u].position = CLEAT_TEXT_CUT;
        ++w->set->summary.cut_words;
    }
    return status;
}

static size_t max_tokens(const cleat_text_set *set, const cleat_encoded_texts *in, const cleat_tokenizer *tokenizer) {
    /* special tokens of each row, and [UNK] for words without tokens */
    return (size_t)in->offsets[set->n_units] +
           cleat_tokenizer_specials(tokenizer, cleat_text_has_pairs(set->options)) * set->n_rows +
           (set->options->task == CLEAT_TEXT_TAGS ? set->n_units : 0);
}

static cleat_status write_rows(cleat_text_set *set, const cleat_encoded_texts *in, const cleat_tokenizer *tokenizer,
                               cleat_text_tokens *tokens, cleat_error *error) {
    const bool pairs = cleat_text_has_pairs(set->options), tags = set->options->task == CLEAT_TEXT_TAGS;
    const size_t capacity = max_tokens(set, in, tokenizer);
    cleat_text_tokens made = {0};
    row_writer w = {.set = set, .in = in, .tokenizer = tokenizer, .out = &made};
    cleat_status status = CLEAT_OK;
    made.ids = cleat_alloc(capacity, sizeof *made.ids);
    made.starts = cleat_alloc(set->n_rows + 1, sizeof *made.starts);
    if (pairs) made.types = cleat_alloc(capacity, sizeof *made.types);
    if (!made.ids || !made.starts || (pairs && !made.types))
        status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the tokens of %zu texts", set->n_rows);
    for (size_t r = 0; r < set->n_rows && !status; ++r) {
        status = tags ? write_sentence(&w, &set->rows[r], error) : write_text(&w, &set->rows[r], error);
        made.starts[r + 1] = w.at;
    }
    cleat_free(w.words);
    if (status) {
        cleat_text_tokens_free(&made);
        return status;
    }
    set->summary.tokens = w.at;
    for (size_t i = 0; i < w.at; ++i) set->summary.unknown += made.ids[i] == cleat_tokenizer_unk(tokenizer);
    *tokens = made;
    return CLEAT_OK;
}

void cleat_text_tokens_free(cleat_text_tokens *tokens) {
    cleat_free(tokens->ids);
    cleat_free(tokens->types);
    cleat_free(tokens->starts);
    *tokens = (cleat_text_tokens){0};
}

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
                           cleat_encoded_texts *encoded, cleat_error *error) {
    const cleat_text_options *options = set->options;
    cleat_text_view *views = NULL;
    progress said = {.path = path};
    cleat_status status = all_views(set, &views, error);
    if (status) return status;
    cleat_encode_setup setup = {.tokenizer = tokenizer,
                                .texts = views,
                                .n = set->n_units,
                                .in_sentence = options->task == CLEAT_TEXT_TAGS,
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
    cleat_encoded_texts encoded = {0};
    cleat_status status = encode(set, path, tokenizer, &encoded, error);
    if (status) return cleat_fail_in(error, status, "%s", path);
    status = write_rows(set, &encoded, tokenizer, tokens, error);
    cleat_encoded_texts_free(&encoded);
    return status;
}
