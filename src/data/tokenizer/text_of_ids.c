/* From ids back to text: all at once, or token by token as a model generates them. */
#include "core/memory.h"
#include "tokenizer/tokenizer.h"

#include <string.h>

/* The decoders of a tokenizer, of which a vocab.txt has BERT's. */
static const cleat_decoder *decoders_of(const cleat_tokenizer *tokenizer, size_t *count) {
    static const cleat_decoder bert = {.kind = CLEAT_DECODE_WORDPIECE, .content = "##", .cleanup = true};
    *count = tokenizer->pipeline ? tokenizer->pipeline->n_decoders : 1;
    return tokenizer->pipeline ? tokenizer->pipeline->decoders : &bert;
}

bool cleat_tokenizer_is_special(const cleat_tokenizer *tokenizer, int32_t id) {
    const cleat_pipeline *p = tokenizer->pipeline;
    if (id < 0 || (size_t)id >= cleat_tokenizer_size(tokenizer)) return false;
    if (p) return p->added_of[id] && p->added.tokens[p->added_of[id] - 1].special;
    for (int i = 0; i < CLEAT_SPECIALS; ++i)
        if (tokenizer->specials[i] == id) return true;
    return false;
}

/* The text of a token before decoders change it: that of an added token is normalised if its search is. */
static const char *shown_piece(const cleat_tokenizer *tokenizer, int32_t id) {
    const char *piece = cleat_tokenizer_piece(tokenizer, id);
    const cleat_pipeline *p = tokenizer->pipeline;
    const cleat_added_token *added = piece && p && p->added_of[id] ? &p->added.tokens[p->added_of[id] - 1] : NULL;
    return added && added->shown ? added->shown : piece;
}

static void add_piece(cleat_token_texts *texts, const char *piece) {
    for (const char *zero; (zero = strstr(piece, CLEAT_ZERO)) != NULL; piece = zero + strlen(CLEAT_ZERO)) {
        cleat_string_add_bytes(&texts->bytes, piece, (size_t)(zero - piece));
        cleat_string_add_bytes(&texts->bytes, "", 1);
    }
    cleat_token_texts_add(texts, piece, strlen(piece));
}

static cleat_status check_decoders(const cleat_tokenizer *tokenizer, cleat_error *error) {
    if (!tokenizer->pipeline || !tokenizer->pipeline->decoder_fault) return CLEAT_OK;
    return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED,
                      "the decoder of tokenizer.json: %s; ids of this tokenizer cannot be turned into text",
                      tokenizer->pipeline->decoder_fault);
}

/* Writes the text of ids to `text`. */
static cleat_status decode(const cleat_tokenizer *tokenizer, const int32_t *ids, size_t count, bool skip_special,
                           cleat_string *text, cleat_error *error) {
    cleat_token_texts texts = {0}, spare = {0};
    cleat_pattern_work work = {0};
    size_t n = 0;
    const cleat_decoder *decoders = decoders_of(tokenizer, &n);
    cleat_status status = check_decoders(tokenizer, error);
    for (size_t i = 0; i < count && !status; ++i) {
        const char *piece = shown_piece(tokenizer, ids[i]);
        if (piece && !(skip_special && cleat_tokenizer_is_special(tokenizer, ids[i]))) add_piece(&texts, piece);
    }
    work.steps = cleat_pattern_steps(texts.bytes.size);
    for (size_t i = 0; i < n && !status; ++i) status = cleat_decode_step(&decoders[i], &texts, &spare, &work, error);
    if (!status && texts.bytes.failed)
        status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the text of %zu tokens", count);
    if (!status) {
        cleat_string_free(text);
        *text = texts.bytes;
        texts.bytes = (cleat_string){0};
    }
    cleat_token_texts_free(&texts);
    cleat_token_texts_free(&spare);
    cleat_pattern_work_free(&work);
    return status;
}

cleat_status cleat_tokenizer_decode(const cleat_tokenizer *tokenizer, const int32_t *ids, size_t count,
                                    bool skip_special, char *text, size_t capacity, size_t *size, cleat_error *error) {
    cleat_string decoded = {0};
    if (!tokenizer || !size || (count && !ids) || (capacity && !text))
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "decoding requires a tokenizer, ids, and a result");
    cleat_status status = decode(tokenizer, ids, count, skip_special, &decoded, error);
    if (!status) *size = decoded.size;
    if (!status && decoded.size && capacity)
        memcpy(text, decoded.data, decoded.size < capacity ? decoded.size : capacity);
    cleat_string_free(&decoded);
    return status;
}

/* --- token by token ------------------------------------------------------------------------------------------- */

/* The text of new tokens is what they add to the text of the tokens before them, the context: a first token may lose
 * its blank, and a character or a run of bytes may consist of several tokens. */
struct cleat_token_stream {
    const cleat_tokenizer *tokenizer;
    bool skip_special;
    bool whole;   /* a decoder reads the text of all tokens: it is given at the end */
    bool bytes;   /* pieces such as <0x0A> are the bytes of one text */
    int32_t *ids; /* [count] the context, and tokens whose text is not given yet */
    size_t count, capacity, context;
    size_t context_size; /* bytes of its text */
    cleat_string text;
};

cleat_status cleat_token_stream_create(const cleat_tokenizer *tokenizer, bool skip_special, cleat_token_stream **stream,
                                       cleat_error *error) {
    size_t n = 0;
    if (!tokenizer || !stream)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "a stream of tokens requires a tokenizer and a result");
    cleat_status status = check_decoders(tokenizer, error);
    cleat_token_stream *made = status ? NULL : cleat_alloc(1, sizeof *made);
    if (!made) return status ? status : cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a stream of tokens");
    const cleat_decoder *decoders = decoders_of(tokenizer, &n);
    *made = (cleat_token_stream){.tokenizer = tokenizer, .skip_special = skip_special};
    bool joined = false;
    for (size_t i = 0; i < n; ++i) {
        const cleat_decoder *d = &decoders[i];
        if (joined && (d->kind != CLEAT_DECODE_STRIP || d->start > 1)) made->whole = true;
        joined = joined || d->kind == CLEAT_DECODE_FUSE || d->kind == CLEAT_DECODE_BYTE_LEVEL;
        made->bytes = made->bytes || d->kind == CLEAT_DECODE_BYTE_FALLBACK;
    }
    *stream = made;
    return CLEAT_OK;
}

/* Gives the text of the tokens after the context, unless it may change. */
static cleat_status give(cleat_token_stream *s, bool last, cleat_text_view *text, cleat_error *error) {
    const char *piece = s->count ? cleat_tokenizer_piece(s->tokenizer, s->ids[s->count - 1]) : "";
    if (!last && (s->whole || (s->bytes && cleat_fallback_byte(piece, strlen(piece)) >= 0))) return CLEAT_OK;
    cleat_status status = decode(s->tokenizer, s->ids, s->count, false, &s->text, error);
    const size_t size = s->text.size;
    if (status || (!last && size >= 3 && memcmp(s->text.data + size - 3, "\xEF\xBF\xBD", 3) == 0)) return status;
    if (size > s->context_size) *text = (cleat_text_view){s->text.data + s->context_size, size - s->context_size};
    if (!text->size || last) { /* a first token without text, such as a blank, remains the first one */
        s->context = s->count;
        s->context_size = size;
        return CLEAT_OK;
    }
    cleat_string context = {0};
    s->count -= s->context;
    memmove(s->ids, s->ids + s->context, s->count * sizeof *s->ids);
    status = decode(s->tokenizer, s->ids, s->count, false, &context, error);
    s->context = s->count;
    s->context_size = context.size;
    cleat_string_free(&context);
    return status;
}

cleat_status cleat_token_stream_add(cleat_token_stream *stream, int32_t id, cleat_text_view *text, cleat_error *error) {
    cleat_text_view given = {"", 0};
    const cleat_tokenizer *tokenizer = stream->tokenizer;
    cleat_status status = CLEAT_OK;
    if (cleat_tokenizer_piece(tokenizer, id) && !(stream->skip_special && cleat_tokenizer_is_special(tokenizer, id))) {
        status = cleat_grow(&stream->ids, stream->count, &stream->capacity, error);
        if (!status) stream->ids[stream->count++] = id;
        if (!status) status = give(stream, false, &given, error);
    }
    if (!status) *text = given;
    return status;
}

cleat_status cleat_token_stream_end(cleat_token_stream *stream, cleat_text_view *text, cleat_error *error) {
    cleat_text_view given = {"", 0};
    cleat_status status = give(stream, true, &given, error);
    if (!status) *text = given;
    stream->count = stream->context = stream->context_size = 0;
    return status;
}

void cleat_token_stream_destroy(cleat_token_stream *stream) {
    if (!stream) return;
    cleat_free(stream->ids);
    cleat_string_free(&stream->text);
    cleat_free(stream);
}
