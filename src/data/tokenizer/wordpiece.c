/* WordPiece of tokenizer.json: each piece is the longest one that matches where the previous one ended. */
#include "tokenizer/subwords.h"

#include <string.h>

cleat_status cleat_wordpiece_prepare(cleat_subwords *model, cleat_error *error) {
    cleat_status status = cleat_subwords_build_trie(model, error);
    if (!status) model->inside = cleat_trie_walk(&model->trie, 0, model->prefix, strlen(model->prefix));
    return status;
}

static size_t count_characters(const char *bytes, size_t size) {
    size_t count = 0;
    for (size_t i = 0; i < size; ++i) count += ((unsigned char)bytes[i] & 0xC0) != 0x80;
    return count;
}

bool cleat_wordpiece_emit(const cleat_subwords *model, const cleat_aligned_text *text, cleat_text_span word,
                          cleat_token_sink *sink) {
    const size_t before = sink->count, end = word.start + word.size;
    for (size_t at = word.start, length = 0; at < end; at += length) {
        int64_t node = at > word.start ? model->inside : 0;
        int32_t id = cleat_trie_longest(&model->trie, node, text->bytes + at, end - at, &length);
        if (id < 0) {
            sink->count = before;
            return false;
        }
        cleat_token_sink_add(sink, text, id, at, length);
    }
    return true;
}

cleat_status cleat_wordpiece_encode(const cleat_subwords *model, const cleat_aligned_text *text, cleat_text_span word,
                                    cleat_token_sink *sink, cleat_error *error) {
    bool fits = word.size <= model->max_characters ||
                count_characters(text->bytes + word.start, word.size) <= model->max_characters;
    if (fits && cleat_wordpiece_emit(model, text, word, sink)) return CLEAT_OK;
    if (model->unk < 0)
        return cleat_fail(error, CLEAT_ERR_FORMAT, "a word has no tokens, and the vocabulary no unk_token");
    cleat_token_sink_add(sink, text, model->unk, word.start, word.size);
    return CLEAT_OK;
}
