/* The text of a piece of a vocabulary. */
#include "tokenizer/tokenizer.h"
#include "tokenizer/unicode.h"

#include <string.h>

static const cleat_splitter *find_splitter(const cleat_pipeline *pipeline, cleat_splitter_kind kind) {
    for (size_t i = 0; pipeline && i < pipeline->n_splitters; ++i)
        if (pipeline->splitters[i].kind == kind) return &pipeline->splitters[i];
    return NULL;
}

static bool has_bytes(const cleat_pipeline *pipeline) {
    for (size_t i = 0; pipeline && i < pipeline->n_normalisers; ++i)
        if (pipeline->normalisers[i].kind == CLEAT_NORMALISE_BYTES) return true;
    return find_splitter(pipeline, CLEAT_SPLIT_BYTE_LEVEL) != NULL;
}

static bool is_printable(const char *text) {
    for (size_t i = 0; text[i]; ++i)
        if ((unsigned char)text[i] < ' ' || text[i] == 0x7F) return false;
    return cleat_text_check(text, strlen(text), NULL);
}

/* Returns false if the bytes alone are not text. */
static bool decode_bytes(const char *piece, char *text, size_t size) {
    size_t used = 0;
    for (size_t left = strlen(piece), step; left > 0 && used + 1 < size; piece += step, left -= step) {
        int32_t character;
        step = cleat_utf8_decode(piece, left, &character);
        const int byte = step ? cleat_char_byte(character) : -1;
        if (byte <= 0) return false;
        text[used++] = (char)byte;
    }
    text[used] = 0;
    return used > 0 && is_printable(text);
}

static void replace_spaces(const char *piece, const char *mark, char *text, size_t size) {
    const size_t mark_size = strlen(mark);
    size_t used = 0;
    while (*piece && used + 1 < size) {
        const bool space = mark_size && strncmp(piece, mark, mark_size) == 0;
        text[used++] = space ? ' ' : *piece;
        piece += space ? mark_size : 1;
    }
    text[used] = 0;
}

/* The mark that stands for a blank; "": none. */
static const char *mark_of(const cleat_pipeline *pipeline) {
    const cleat_splitter *spaces = find_splitter(pipeline, CLEAT_SPLIT_METASPACE);
    for (size_t i = 0; pipeline && !spaces && i < pipeline->n_decoders; ++i) {
        const cleat_decoder *d = &pipeline->decoders[i];
        if (d->kind == CLEAT_DECODE_REPLACE && d->pattern.literal && strcmp(d->content, " ") == 0)
            return d->pattern.literal;
    }
    return spaces ? spaces->replacement : "";
}

bool cleat_tokenizer_piece_text(const cleat_tokenizer *tokenizer, int32_t id, char *text, size_t size) {
    const char *piece = cleat_tokenizer_piece(tokenizer, id);
    if (!piece || size == 0) return false;
    if (has_bytes(tokenizer->pipeline) && strlen(piece) < size && decode_bytes(piece, text, size)) return true;
    replace_spaces(piece, mark_of(tokenizer->pipeline), text, size);
    return true;
}
