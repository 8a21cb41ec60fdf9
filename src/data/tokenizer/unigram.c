/* Unigram language model (SentencePiece): finds the division of a word into pieces with the largest sum of
 * log probabilities, by dynamic programming over its bytes. */
#include "tokenizer/subwords.h"

#include "core/memory.h"

#include <string.h>

/* The best division of the word up to a byte. */
struct cleat_unigram_node {
    double score;
    uint32_t size;  /* of its last piece; 0: not reached */
    uint32_t ahead; /* size of the next piece of the best division of the whole word, at the nodes that it passes */
    int32_t id;     /* of its last piece */
};

static const double UNK_PENALTY = 10;

cleat_status cleat_unigram_prepare(cleat_subwords *model, cleat_error *error) {
    double least = 0;
    for (size_t id = 0; id < model->pieces.limit; ++id)
        if (id == 0 || model->scores[id] < least) least = model->scores[id];
    model->unk_score = least - UNK_PENALTY;
    return cleat_subwords_build_trie(model, error);
}

static cleat_status reserve(cleat_subwords_memory *memory, size_t count, cleat_error *error) {
    if (count > memory->nodes_capacity) {
        cleat_free(memory->nodes);
        memory->nodes_capacity = 0;
        memory->nodes = cleat_alloc(count * 2, sizeof *memory->nodes);
        if (!memory->nodes) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a word of %zu bytes", count);
        memory->nodes_capacity = count * 2;
    }
    memset(memory->nodes, 0, count * sizeof *memory->nodes);
    return CLEAT_OK;
}

static void improve(struct cleat_unigram_node *node, double score, size_t size, int32_t id) {
    if (node->size && !(score > node->score)) return;
    *node = (struct cleat_unigram_node){.score = score, .size = (uint32_t)size, .id = id};
}

static cleat_status find_best(const cleat_subwords *model, const char *word, size_t size,
                              struct cleat_unigram_node *nodes, cleat_error *error) {
    for (size_t at = 0, length; at < size; at += length) {
        int64_t node = 0;
        bool single = false;
        length = cleat_subwords_char(word + at, size - at);
        for (size_t i = at; i < size; ++i) {
            node = cleat_trie_child(&model->trie, node, (unsigned char)word[i]);
            if (node < 0) break;
            int32_t id = model->trie.values[node];
            if (id < 0) continue;
            improve(&nodes[i + 1], nodes[at].score + model->scores[id], i + 1 - at, id);
            single = single || i + 1 - at == length;
        }
        if (single) continue;
        if (model->unk < 0)
            return cleat_fail(error, CLEAT_ERR_FORMAT, "an unknown character, and the model has no unk_id");
        improve(&nodes[at + length], nodes[at].score + model->unk_score, length, model->unk);
    }
    return CLEAT_OK;
}

/* Converts the backward links from the end of the word into forward links. */
static void link_forward(struct cleat_unigram_node *nodes, size_t size) {
    for (size_t at = size; at > 0;) {
        uint32_t last = nodes[at].size;
        at -= last;
        nodes[at].ahead = last;
    }
}

/* Emits the token of an unknown part, or those of its bytes. */
static void emit_unknown(const cleat_subwords *model, const cleat_aligned_text *text, size_t start, size_t size,
                         cleat_token_sink *sink) {
    const char *bytes = text->bytes + start;
    int32_t id = cleat_piece_table_find(&model->pieces, bytes, size);
    if (id >= 0 || !cleat_has_byte_pieces(model, bytes, size)) {
        cleat_token_sink_add(sink, text, id < 0 ? model->unk : id, start, size);
        return;
    }
    for (size_t at = 0; at < size;) {
        size_t byte = at;
        id = cleat_next_byte_piece(model, bytes, &at);
        cleat_token_sink_add(sink, text, id, start + byte, 1);
    }
}

cleat_status cleat_unigram_encode(const cleat_subwords *model, const cleat_aligned_text *text, cleat_text_span word,
                                  cleat_subwords_memory *memory, cleat_token_sink *sink, cleat_error *error) {
    if (word.size >= UINT32_MAX) return cleat_fail(error, CLEAT_ERR_ARGUMENT, "a word of %zu bytes", word.size);
    cleat_status status = reserve(memory, word.size + 1, error);
    struct cleat_unigram_node *nodes = memory->nodes;
    if (!status) status = find_best(model, text->bytes + word.start, word.size, nodes, error);
    if (status) return status;
    link_forward(nodes, word.size);
    for (size_t at = 0; at < word.size;) {
        size_t size = nodes[at].ahead;
        const int32_t id = nodes[at + size].id;
        if (id != model->unk) {
            cleat_token_sink_add(sink, text, id, word.start + at, size);
        } else { /* unknown neighbours are one token */
            while (at + size < word.size && nodes[at + size + nodes[at + size].ahead].id == model->unk)
                size += nodes[at + size].ahead;
            emit_unknown(model, text, word.start + at, size, sink);
        }
        at += size;
    }
    return CLEAT_OK;
}
