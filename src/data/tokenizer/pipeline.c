/* Encodes texts with a pipeline.
 *
 * Added tokens that are searched for in the original text divide it into parts. Each part is normalised and
 * divided again by the added tokens that are searched for in normalised text. The rest is split into words,
 * and each word into pieces. */
#include "tokenizer/pipeline.h"

#include "core/memory.h"
#include "tokenizer/unicode.h"

#include <string.h>

typedef struct encoding {
    const cleat_pipeline *pipeline;
    const char *text; /* [size] UTF-8 */
    size_t size;
    cleat_aligned_text repaired; /* the text with U+FFFD for bytes that are not UTF-8; else empty */
    cleat_aligned_text part, spare;
    cleat_split_state split;
    cleat_subwords_memory memory;
    cleat_token_sink *sink;
} encoding;

static cleat_status check_memory(const encoding *e, cleat_error *error) {
    bool failed = e->repaired.failed || e->part.failed || e->spare.failed || e->split.text.failed ||
                  e->split.spare.failed || e->split.words.failed || e->split.spare_words.failed;
    if (e->part.too_long || e->spare.too_long || e->split.text.too_long || e->split.spare.too_long)
        return cleat_fail(error, CLEAT_ERR_FORMAT,
                          "the tokenizer's steps lengthen a text of %zu bytes to more than %zu", e->size,
                          cleat_aligned_text_most(e->size));
    return failed ? cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a text of %zu bytes", e->size) : CLEAT_OK;
}

/* Writes the zero bytes of the words in the form that models expect. */
static void rewrite_zeros(cleat_split_state *s) {
    cleat_aligned_text text = s->text;
    s->spare.size = 0;
    for (size_t w = 0; w < s->words.count; ++w) {
        cleat_text_span *word = &s->words.items[w];
        const size_t start = s->spare.size;
        for (size_t at = word->start; at < word->start + word->size; ++at)
            if (text.bytes[at])
                cleat_aligned_text_copy(&s->spare, &text, at, 1);
            else
                cleat_aligned_text_add(&s->spare, CLEAT_ZERO, 2, text.begin[at], text.end[at]);
        *word = (cleat_text_span){start, s->spare.size - start};
    }
    s->text = s->spare;
    s->spare = text;
}

/* Splits part[start, end) into words and encodes them. */
static cleat_status encode_words(encoding *e, size_t start, size_t end, cleat_error *error) {
    const cleat_pipeline *p = e->pipeline;
    cleat_split_state *s = &e->split;
    cleat_status status = CLEAT_OK;
    if (start == end) return CLEAT_OK;
    s->text.size = s->words.count = 0;
    if (start == 0 && end == e->part.size) { /* the usual case needs no copy */
        cleat_aligned_text whole = e->part;
        e->part = s->text;
        s->text = whole;
    } else {
        cleat_aligned_text_copy(&s->text, &e->part, start, end - start);
    }
    cleat_spans_add(&s->words, 0, s->text.size);
    for (size_t i = 0; i < p->n_splitters && !status; ++i) status = cleat_split_words(&p->splitters[i], s, error);
    if (!status && s->text.size && memchr(s->text.bytes, 0, s->text.size)) rewrite_zeros(s);
    if (!status) status = check_memory(e, error);
    for (size_t i = 0; i < s->words.count && !status; ++i) {
        size_t before = e->sink->count;
        status = cleat_subwords_encode(&p->model, &s->text, s->words.items[i], &e->memory, e->sink, error);
        e->sink->words += e->sink->count > before;
    }
    return status;
}

static void add_token(encoding *e, int32_t id, uint32_t begin, uint32_t end) {
    cleat_token_sink *sink = e->sink;
    if (sink->count < sink->capacity) sink->tokens[sink->count] = (cleat_token){id, begin, end, sink->words};
    ++sink->count;
    ++sink->words;
}

/* Copies text[start, end), each character with its range. */
static void read_part(encoding *e, size_t start, size_t end) {
    cleat_aligned_text *part = &e->part;
    part->size = 0;
    part->most = e->spare.most = e->split.text.most = e->split.spare.most = cleat_aligned_text_most(end - start);
    if (e->repaired.size) {
        cleat_aligned_text_copy(part, &e->repaired, start, end - start);
        return;
    }
    if (!cleat_aligned_text_reserve(part, end - start)) return;
    memcpy(part->bytes, e->text + start, end - start);
    for (size_t at = start, length; at < end; at += length) {
        const unsigned char first = (unsigned char)e->text[at];
        length = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
        for (size_t i = 0; i < length; ++i, ++part->size) {
            part->begin[part->size] = (uint32_t)at;
            part->end[part->size] = (uint32_t)(at + length);
        }
    }
}

typedef struct bert_words {
    const cleat_pipeline *pipeline;
    cleat_token_sink *sink;
} bert_words;

static void encode_bert_word(void *user, const cleat_word *word) {
    const bert_words *b = user;
    /* an unknown word has the range of all its characters, including those that `bytes` omits */
    const cleat_aligned_text text = {
        .bytes = (char *)word->bytes, .begin = (uint32_t *)word->begin, .end = (uint32_t *)word->end};
    const cleat_subwords *model = &b->pipeline->model;
    cleat_token_sink *sink = b->sink;
    if (word->characters > CLEAT_WORD_CHARACTERS ||
        !cleat_wordpiece_emit(model, &text, (cleat_text_span){0, word->size}, sink)) {
        if (sink->count < sink->capacity)
            sink->tokens[sink->count] = (cleat_token){model->unk, word->text_begin, word->text_end, sink->words};
        ++sink->count;
    }
    ++sink->words;
}

/* Encodes text[start, end) for BERT; words.c normalises and splits it in one pass. */
static cleat_status encode_bert_part(encoding *e, size_t start, size_t end, cleat_error *error) {
    bert_words b = {e->pipeline, e->sink};
    const size_t before = e->sink->count;
    cleat_status status =
        cleat_words_split(e->text + start, end - start, &e->pipeline->rules, encode_bert_word, &b, error);
    for (size_t i = before; start && i < e->sink->count && i < e->sink->capacity; ++i) {
        e->sink->tokens[i].begin += (uint32_t)start;
        e->sink->tokens[i].end += (uint32_t)start;
    }
    return status;
}

/* Encodes text[start, end), which contains no added token literally. */
static cleat_status encode_part(encoding *e, size_t start, size_t end, cleat_error *error) {
    const cleat_added_tokens *added = &e->pipeline->added;
    cleat_added_match match = {0};
    size_t at = 0;
    if (start == end) return CLEAT_OK;
    if (e->pipeline->bert) return encode_bert_part(e, start, end, error);
    read_part(e, start, end);
    cleat_status status = cleat_pipeline_normalise(e->pipeline, &e->part, &e->spare, &e->split.work, error);
    if (!status) status = check_memory(e, error);
    while (!status &&
           cleat_added_tokens_find(added, &added->normalised, e->part.bytes, e->part.size, match.next, at, &match)) {
        if (at < match.start) status = encode_words(e, at, match.start, error);
        if (!status) add_token(e, match.token->id, e->part.begin[match.start], e->part.end[match.end - 1]);
        at = match.end;
    }
    return status ? status : encode_words(e, at, e->part.size, error);
}

cleat_status cleat_pipeline_normalise(const cleat_pipeline *pipeline, cleat_aligned_text *text,
                                      cleat_aligned_text *spare, cleat_pattern_work *work, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; i < pipeline->n_normalisers && !status; ++i)
        status = cleat_normalise(&pipeline->normalisers[i], text, spare, work, error);
    return status;
}

/* Copies a text that is not UTF-8 and repairs it. */
static void repair(encoding *e, const char *text, size_t size) {
    for (size_t at = 0, length; at < size; at += length) {
        int32_t character;
        length = cleat_utf8_decode(text + at, size - at, &character);
        if (length)
            cleat_aligned_text_add(&e->repaired, text + at, length, (uint32_t)at, (uint32_t)(at + length));
        else
            cleat_aligned_text_add(&e->repaired, "\xEF\xBF\xBD", 3, (uint32_t)at, (uint32_t)(at + 1));
        length += !length;
    }
    e->text = e->repaired.bytes;
    e->size = e->repaired.size;
}

/* Byte range in the source of text[start, end). */
static uint32_t source_begin(const encoding *e, size_t start) {
    return e->repaired.size ? e->repaired.begin[start] : (uint32_t)start;
}
static uint32_t source_end(const encoding *e, size_t end) {
    return e->repaired.size ? e->repaired.end[end - 1] : (uint32_t)end;
}

cleat_status cleat_pipeline_encode(const cleat_pipeline *pipeline, const char *text, size_t size, bool in_sentence,
                                   cleat_token_sink *sink, cleat_error *error) {
    encoding e = {.pipeline = pipeline, .sink = sink, .text = text, .size = size, .split.in_sentence = in_sentence};
    const cleat_added_tokens *added = &pipeline->added;
    cleat_added_match match = {0};
    size_t at = 0;
    e.split.work.steps = cleat_pattern_steps(size);
    /* words.c removes bytes that are not UTF-8, as BERT removes U+FFFD */
    if (!pipeline->bert && !cleat_text_check(text, size, NULL)) repair(&e, text, size);
    cleat_status status = check_memory(&e, error);
    while (!status && cleat_added_tokens_find(added, &added->raw, e.text, e.size, match.next, at, &match)) {
        if (at < match.start) status = encode_part(&e, at, match.start, error);
        if (!status) add_token(&e, match.token->id, source_begin(&e, match.start), source_end(&e, match.end));
        at = match.end;
    }
    if (!status) status = encode_part(&e, at, e.size, error);
    cleat_aligned_text_free(&e.repaired);
    cleat_aligned_text_free(&e.part);
    cleat_aligned_text_free(&e.spare);
    cleat_split_state_free(&e.split);
    cleat_subwords_memory_free(&e.memory);
    return status;
}

int32_t cleat_pipeline_id(const cleat_pipeline *pipeline, const char *piece) {
    const cleat_added_token *added = cleat_added_tokens_get(&pipeline->added, piece);
    if (added) return added->id;
    return cleat_piece_table_find(&pipeline->model.pieces, piece, strlen(piece));
}

const char *cleat_pipeline_piece(const cleat_pipeline *pipeline, int32_t id) {
    if (id < 0 || (size_t)id >= pipeline->limit) return NULL;
    const uint32_t added = pipeline->added_of[id];
    return added ? pipeline->added.tokens[added - 1].content : cleat_piece_table_name(&pipeline->model.pieces, id);
}

void cleat_pipeline_destroy(cleat_pipeline *pipeline) {
    if (!pipeline) return;
    for (size_t i = 0; i < pipeline->n_normalisers; ++i) cleat_normaliser_free(&pipeline->normalisers[i]);
    for (size_t i = 0; i < pipeline->n_splitters; ++i) cleat_pattern_free(&pipeline->splitters[i].pattern);
    for (size_t i = 0; i < pipeline->n_decoders; ++i) cleat_decoder_free(&pipeline->decoders[i]);
    cleat_free(pipeline->decoders);
    cleat_free(pipeline->decoder_fault);
    cleat_free(pipeline->normalisers);
    cleat_free(pipeline->splitters);
    cleat_subwords_free(&pipeline->model);
    cleat_added_tokens_free(&pipeline->added);
    cleat_free(pipeline->added_of);
    for (int i = 0; i < 2; ++i) cleat_template_free(&pipeline->templates[i]);
    for (size_t i = 0; i < CLEAT_TOKENIZER_FILES; ++i) cleat_free(pipeline->files[i].data);
    cleat_free(pipeline);
}
