/* Tokenizers: encode a text by a vocabulary and BERT's rules, or by a pipeline; read and write vocab.txt.
 * Encoding does not modify the tokenizer. */
#include "tokenizer/tokenizer.h"

#include "core/files.h"
#include "core/memory.h"
#include "core/string.h"
#include "tokenizer/unicode.h"

#include <stdio.h>
#include <string.h>

/* [CLS] A [SEP], or [CLS] A [SEP] B [SEP]. */
static cleat_status add_templates(cleat_tokenizer *tokenizer, cleat_error *error) {
    const int32_t cls = tokenizer->specials[CLEAT_SPECIAL_CLS], sep = tokenizer->specials[CLEAT_SPECIAL_SEP];
    cleat_status status = CLEAT_OK;
    for (int pair = 0; pair < 2 && !status; ++pair) {
        cleat_template *t = &tokenizer->templates[pair];
        status = cleat_template_add(t, CLEAT_TEMPLATE_TOKEN, cls, 0, error);
        if (!status) status = cleat_template_add(t, CLEAT_TEMPLATE_FIRST, -1, 0, error);
        if (!status) status = cleat_template_add(t, CLEAT_TEMPLATE_TOKEN, sep, 0, error);
        if (!status && pair) status = cleat_template_add(t, CLEAT_TEMPLATE_SECOND, -1, 1, error);
        if (!status && pair) status = cleat_template_add(t, CLEAT_TEMPLATE_TOKEN, sep, 1, error);
    }
    return status;
}

cleat_status cleat_tokenizer_create(cleat_vocabulary *vocabulary, bool lowercase, const char *place,
                                    cleat_tokenizer **tokenizer, cleat_error *error) {
    cleat_tokenizer *made = cleat_alloc(1, sizeof *made);
    if (!made) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a tokenizer");
    made->rules.lowercase = lowercase;
    made->bos = made->eos = -1;
    for (int i = 0; i < CLEAT_SPECIALS; ++i) {
        const char *name = cleat_special_token_name((cleat_special_token)i);
        int32_t id = cleat_vocabulary_find(vocabulary, name, strlen(name));
        if (id < 0 && i != CLEAT_SPECIAL_MASK) {
            cleat_free(made);
            return cleat_fail(error, CLEAT_ERR_FORMAT,
                              "%s: the vocabulary has no %s; a BERT vocabulary requires a line with it", place, name);
        }
        made->specials[i] = id;
        made->rules.special[i] = id >= 0;
    }
    cleat_status status = add_templates(made, error);
    if (status) {
        cleat_tokenizer_destroy(made);
        return status;
    }
    made->vocabulary = *vocabulary;
    *vocabulary = (cleat_vocabulary){0};
    *tokenizer = made;
    return CLEAT_OK;
}

void cleat_tokenizer_destroy(cleat_tokenizer *tokenizer) {
    if (!tokenizer) return;
    cleat_vocabulary_free(&tokenizer->vocabulary);
    cleat_pipeline_destroy(tokenizer->pipeline);
    for (int pair = 0; pair < 2; ++pair) cleat_template_free(&tokenizer->templates[pair]);
    cleat_free(tokenizer);
}

static cleat_status add_line(cleat_vocabulary *vocabulary, const char *path, const char *line, size_t size,
                             cleat_error *error) {
    size_t number = vocabulary->count + 1, bad = 0;
    int32_t id = -1;
    if (size && line[size - 1] == '\r') --size;
    if (!size)
        return cleat_fail(error, CLEAT_ERR_FORMAT, "%s:%zu: the line is empty; every line must be the token of an id",
                          path, number);
    if (line[size - 1] == '\r')
        return cleat_fail(
            error, CLEAT_ERR_FORMAT,
            "%s:%zu: the token ends in a carriage return, which would be read as part of the line end; remove it", path,
            number);
    if (memchr(line, 0, size) || !cleat_text_check(line, size, &bad))
        return cleat_fail(error, CLEAT_ERR_FORMAT, "%s:%zu: not UTF-8 text (byte %zu of the line)", path, number,
                          bad + 1);
    cleat_status status = cleat_vocabulary_add(vocabulary, line, size, &id, error);
    if (!status && (size_t)id + 1 != number)
        return cleat_fail(error, CLEAT_ERR_FORMAT, "%s:%zu: duplicate token '%.*s'; it is already in line %d", path,
                          number, size < 100 ? (int)size : 100, line, (int)id + 1);
    return status;
}

static cleat_status read_pieces(const char *path, const char *data, size_t size, cleat_vocabulary *vocabulary,
                                cleat_error *error) {
    cleat_status status = CLEAT_OK;
    for (size_t at = 0; at < size && !status;) {
        const char *end = memchr(data + at, '\n', size - at);
        size_t length = end ? (size_t)(end - (data + at)) : size - at;
        status = add_line(vocabulary, path, data + at, length, error);
        at += length + 1;
    }
    return status;
}

cleat_status cleat_vocabulary_read(const char *path, cleat_vocabulary *vocabulary, cleat_error *error) {
    char *data = NULL;
    size_t size = 0;
    cleat_status status = cleat_file_read_text(path, &data, &size, error);
    if (!status) status = read_pieces(path, data, size, vocabulary, error);
    cleat_free(data);
    return status;
}

cleat_status cleat_tokenizer_load_vocab(const char *path, bool lowercase, cleat_tokenizer **tokenizer,
                                        cleat_error *error) {
    cleat_vocabulary vocabulary = {0};
    cleat_status status = cleat_vocabulary_read(path, &vocabulary, error);
    if (!status) status = cleat_tokenizer_create(&vocabulary, lowercase, path, tokenizer, error);
    cleat_vocabulary_free(&vocabulary);
    return status;
}

cleat_status cleat_tokenizer_load(const char *path, bool lowercase, cleat_tokenizer **tokenizer, cleat_error *error) {
    if (!path || !tokenizer)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                          "a tokenizer requires the path of a folder, a tokenizer.json or a vocab.txt");
    if (cleat_ends_in(path, ".gguf")) return cleat_tokenizer_open_gguf(path, tokenizer, error);
    return cleat_tokenizer_is_published_path(path) ? cleat_tokenizer_open_published(path, lowercase, tokenizer, error)
                                                   : cleat_tokenizer_load_vocab(path, lowercase, tokenizer, error);
}

/* Writes the pieces as in vocab.txt, one per line. */
static cleat_status print_pieces(const cleat_tokenizer *tokenizer, cleat_string *text) {
    for (size_t id = 0; id < tokenizer->vocabulary.count; ++id) {
        const char *piece = cleat_vocabulary_piece(&tokenizer->vocabulary, (int32_t)id);
        cleat_string_add_bytes(text, piece, strlen(piece));
        cleat_string_add_bytes(text, "\n", 1);
    }
    return text->failed ? CLEAT_ERR_MEMORY : CLEAT_OK;
}

cleat_status cleat_tokenizer_save(const cleat_tokenizer *tokenizer, const char *path, cleat_error *error) {
    cleat_string text = {0};
    if (tokenizer->pipeline)
        return cleat_file_write(path, tokenizer->pipeline->files[0].data, tokenizer->pipeline->files[0].size, error);
    cleat_status status = print_pieces(tokenizer, &text);
    if (!status)
        status = cleat_file_write(path, text.data, text.size, error);
    else
        cleat_fail(error, status, "%s: no memory to write the vocabulary", path);
    cleat_string_free(&text);
    return status;
}

typedef struct encoder {
    const cleat_tokenizer *tokenizer;
    cleat_token *tokens; /* [capacity] */
    size_t capacity, count;
    uint32_t words;
} encoder;

static void emit(encoder *e, int32_t id, uint32_t begin, uint32_t end) {
    if (e->count < e->capacity) e->tokens[e->count] = (cleat_token){id, begin, end, e->words};
    ++e->count;
}

/* Emits the pieces of a word. Returns false and emits no token if the word cannot be composed of pieces. */
static bool emit_pieces(encoder *e, const cleat_word *word) {
    size_t before = e->count;
    for (size_t from = 0, length = 0; from < word->size; from += length) {
        int32_t id = cleat_vocabulary_longest(&e->tokenizer->vocabulary, word->bytes + from, word->size - from,
                                              from > 0, &length);
        if (id < 0) {
            e->count = before;
            return false;
        }
        uint32_t end = word->end[from];
        for (size_t i = from; i < from + length; ++i)
            if (word->end[i] > end) end = word->end[i];
        emit(e, id, word->begin[from], end);
    }
    return true;
}

static void encode_word(void *user, const cleat_word *word) {
    encoder *e = user;
    const int32_t *specials = e->tokenizer->specials;
    if (word->special >= 0)
        emit(e, specials[word->special], word->text_begin, word->text_end);
    else if (word->characters > CLEAT_WORD_CHARACTERS || !emit_pieces(e, word))
        emit(e, specials[CLEAT_SPECIAL_UNK], word->text_begin, word->text_end);
    ++e->words;
}

static cleat_status encode(const cleat_tokenizer *tokenizer, const char *text, size_t size, bool in_sentence,
                           cleat_token *tokens, size_t capacity, size_t *count, cleat_error *error) {
    if (!tokenizer || !count || (size && !text) || (capacity && !tokens))
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "encoding requires a tokenizer, a text, and a result");
    if (size >= UINT32_MAX)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "a text of %zu bytes; a text must have less than 4 GiB: split it",
                          size);
    if (tokenizer->pipeline) {
        cleat_token_sink sink = {.tokens = tokens, .capacity = capacity};
        cleat_status status = cleat_pipeline_encode(tokenizer->pipeline, text, size, in_sentence, &sink, error);
        if (!status) *count = sink.count;
        return status;
    }
    encoder e = {.tokenizer = tokenizer, .tokens = tokens, .capacity = capacity};
    cleat_status status = cleat_words_split(text, size, &tokenizer->rules, encode_word, &e, error);
    if (!status) *count = e.count;
    return status;
}

cleat_status cleat_tokenizer_encode(const cleat_tokenizer *tokenizer, const char *text, size_t size,
                                    cleat_token *tokens, size_t capacity, size_t *count, cleat_error *error) {
    return encode(tokenizer, text, size, false, tokens, capacity, count, error);
}

cleat_status cleat_tokenizer_encode_word(const cleat_tokenizer *tokenizer, const char *word, size_t size,
                                         cleat_token *tokens, size_t capacity, size_t *count, cleat_error *error) {
    return encode(tokenizer, word, size, true, tokens, capacity, count, error);
}

size_t cleat_tokenizer_size(const cleat_tokenizer *tokenizer) {
    return tokenizer->pipeline ? tokenizer->pipeline->limit : tokenizer->vocabulary.count;
}

bool cleat_tokenizer_lowercase(const cleat_tokenizer *tokenizer) {
    return tokenizer->pipeline ? tokenizer->pipeline->lowercase : tokenizer->rules.lowercase;
}

bool cleat_tokenizer_is_published(const cleat_tokenizer *tokenizer) {
    return tokenizer->pipeline != NULL;
}

int32_t cleat_tokenizer_id(const cleat_tokenizer *tokenizer, const char *piece) {
    return tokenizer->pipeline ? cleat_pipeline_id(tokenizer->pipeline, piece)
                               : cleat_vocabulary_find(&tokenizer->vocabulary, piece, strlen(piece));
}

const char *cleat_tokenizer_piece(const cleat_tokenizer *tokenizer, int32_t id) {
    if (tokenizer->pipeline) return cleat_pipeline_piece(tokenizer->pipeline, id);
    bool known = id >= 0 && (size_t)id < tokenizer->vocabulary.count;
    return known ? cleat_vocabulary_piece(&tokenizer->vocabulary, id) : NULL;
}

int32_t cleat_tokenizer_pad(const cleat_tokenizer *tokenizer) {
    return tokenizer->specials[CLEAT_SPECIAL_PAD];
}

int32_t cleat_tokenizer_unk(const cleat_tokenizer *tokenizer) {
    return tokenizer->specials[CLEAT_SPECIAL_UNK];
}

int32_t cleat_tokenizer_cls(const cleat_tokenizer *tokenizer) {
    return tokenizer->specials[CLEAT_SPECIAL_CLS];
}

int32_t cleat_tokenizer_sep(const cleat_tokenizer *tokenizer) {
    return tokenizer->specials[CLEAT_SPECIAL_SEP];
}

int32_t cleat_tokenizer_mask(const cleat_tokenizer *tokenizer) {
    return tokenizer->specials[CLEAT_SPECIAL_MASK];
}

int32_t cleat_tokenizer_bos(const cleat_tokenizer *tokenizer) {
    return tokenizer->bos;
}

int32_t cleat_tokenizer_eos(const cleat_tokenizer *tokenizer) {
    return tokenizer->eos;
}

bool cleat_tokenizer_ends(const cleat_tokenizer *tokenizer, int32_t id) {
    bool ends = id == tokenizer->eos;
    for (size_t i = 0; i < tokenizer->n_ends; ++i) ends |= id == tokenizer->ends[i];
    return ends;
}

void cleat_tokenizer_hash(const cleat_tokenizer *tokenizer, char hash[33]) {
    char parts[66], rules[64];
    const cleat_tokenizer_file *json = tokenizer->pipeline ? &tokenizer->pipeline->files[0] : NULL;
    snprintf(rules, sizeof rules, "%s, utf8proc %s",
             json                         ? "tokenizer.json"
             : tokenizer->rules.lowercase ? "lower-cased"
                                          : "cased",
             cleat_unicode_version());
    cleat_hash_text(json ? json->data : tokenizer->vocabulary.text, json ? json->size : tokenizer->vocabulary.text_size,
                    parts);
    cleat_hash_text(rules, strlen(rules), parts + 33);
    cleat_hash_text(parts, sizeof parts, hash);
}
