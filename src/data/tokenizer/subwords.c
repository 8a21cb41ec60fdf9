/* Shared by the models of tokenizer.json: the table of pieces, and the sink of tokens. */
#include "tokenizer/subwords.h"

#include "core/memory.h"

#include <stdio.h>
#include <string.h>

/* Ensures that ids up to `id` have a place. */
static cleat_status reserve_id(cleat_piece_table *table, size_t id, cleat_error *error) {
    if (id >= table->limit_capacity) {
        size_t capacity = id + id / 2 + 1024;
        uint32_t *grown = cleat_alloc(capacity, sizeof *grown);
        if (!grown) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a vocabulary of %zu tokens", id + 1);
        if (table->limit) memcpy(grown, table->name_of, table->limit * sizeof *grown);
        cleat_free(table->name_of);
        table->name_of = grown;
        table->limit_capacity = capacity;
    }
    if (id >= table->limit) table->limit = id + 1;
    return CLEAT_OK;
}

cleat_status cleat_piece_table_add(cleat_piece_table *table, const char *piece, int32_t id, cleat_error *error) {
    int32_t index;
    size_t before = table->names.count;
    if (id < 0 || id > CLEAT_MAX_PIECE_ID)
        return cleat_fail(error, CLEAT_ERR_FORMAT, "the id %d of '%.40s' is not 0 to %d", (int)id, piece,
                          (int)CLEAT_MAX_PIECE_ID);
    cleat_status status = reserve_id(table, (size_t)id, error);
    if (!status) status = cleat_grow(&table->ids, before, &table->ids_capacity, error);
    if (!status) status = cleat_vocabulary_add(&table->names, piece, strlen(piece), &index, error);
    if (status) return status;
    table->ids[index] = id;
    table->name_of[id] = (uint32_t)index + 1;
    return CLEAT_OK;
}

int32_t cleat_piece_table_find(const cleat_piece_table *table, const char *piece, size_t size) {
    int32_t index = cleat_vocabulary_find(&table->names, piece, size);
    return index < 0 ? -1 : table->ids[index];
}

const char *cleat_piece_table_name(const cleat_piece_table *table, int32_t id) {
    if (id < 0 || (size_t)id >= table->limit || !table->name_of[id]) return NULL;
    return cleat_vocabulary_piece(&table->names, (int32_t)(table->name_of[id] - 1));
}

static void free_table(cleat_piece_table *table) {
    cleat_vocabulary_free(&table->names);
    cleat_free(table->ids);
    cleat_free(table->name_of);
    *table = (cleat_piece_table){0};
}

cleat_status cleat_subwords_build_trie(cleat_subwords *model, cleat_error *error) {
    const cleat_piece_table *pieces = &model->pieces;
    cleat_trie_key *keys = cleat_alloc(pieces->names.count, sizeof *keys);
    if (!keys) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %zu tokens", pieces->names.count);
    for (size_t i = 0; i < pieces->names.count; ++i) {
        const char *piece = cleat_vocabulary_piece(&pieces->names, (int32_t)i);
        keys[i] = (cleat_trie_key){piece, strlen(piece), pieces->ids[i]};
    }
    cleat_status status = cleat_trie_build(&model->trie, keys, pieces->names.count, error);
    cleat_free(keys);
    return status;
}

void cleat_find_byte_pieces(cleat_subwords *model) {
    for (int byte = 0; byte < 256; ++byte) {
        char name[8];
        int size = snprintf(name, sizeof name, "<0x%02X>", (unsigned)byte);
        model->byte_ids[byte] = cleat_piece_table_find(&model->pieces, name, (size_t)size);
    }
}

int32_t cleat_next_byte_piece(const cleat_subwords *model, const char *text, size_t *at) {
    bool zero = memcmp(text + *at, CLEAT_ZERO, 1) == 0; /* no other text has this byte */
    int32_t id = model->byte_ids[zero ? 0 : (unsigned char)text[*at]];
    *at += zero ? 2 : 1;
    return id;
}

bool cleat_has_byte_pieces(const cleat_subwords *model, const char *text, size_t size) {
    bool all = model->byte_fallback && size;
    for (size_t at = 0; at < size && all;) all = cleat_next_byte_piece(model, text, &at) >= 0;
    return all;
}

size_t cleat_subwords_char(const char *text, size_t size) {
    const unsigned char first = (unsigned char)*text;
    size_t length = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    return length < size ? length : size;
}

void cleat_token_sink_add(cleat_token_sink *sink, const cleat_aligned_text *text, int32_t id, size_t start,
                          size_t size) {
    if (sink->count < sink->capacity) {
        cleat_token token = {id, text->begin[start], text->end[start], sink->words};
        for (size_t i = start + 1; i < start + size; ++i)
            if (text->end[i] > token.end) token.end = text->end[i];
        sink->tokens[sink->count] = token;
    }
    ++sink->count;
}

cleat_status cleat_subwords_encode(const cleat_subwords *model, const cleat_aligned_text *text, cleat_text_span word,
                                   cleat_subwords_memory *memory, cleat_token_sink *sink, cleat_error *error) {
    switch (model->kind) {
    case CLEAT_SUBWORDS_WORDPIECE:
        return cleat_wordpiece_encode(model, text, word, sink, error);
    case CLEAT_SUBWORDS_BPE:
        return cleat_bpe_encode(model, text, word, memory, sink, error);
    case CLEAT_SUBWORDS_UNIGRAM:
        break;
    }
    return cleat_unigram_encode(model, text, word, memory, sink, error);
}

void cleat_subwords_free(cleat_subwords *model) {
    free_table(&model->pieces);
    cleat_trie_free(&model->trie);
    cleat_free(model->prefix);
    cleat_free(model->suffix);
    cleat_free(model->merges);
    cleat_free(model->scores);
    *model = (cleat_subwords){0};
}

void cleat_subwords_memory_free(cleat_subwords_memory *memory) {
    cleat_free(memory->symbols);
    cleat_free(memory->heap);
    cleat_free(memory->nodes);
    *memory = (cleat_subwords_memory){0};
}
