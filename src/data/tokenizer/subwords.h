/* Models of tokenizer.json, which divide a word into the pieces of a vocabulary: WordPiece, BPE, Unigram. */
#ifndef CLEAT_SRC_SUBWORDS_H
#define CLEAT_SRC_SUBWORDS_H

#include "cleat/tokenizer.h"
#include "core/vocabulary.h"
#include "tokenizer/aligned.h"
#include "tokenizer/trie.h"

enum { CLEAT_MAX_PIECE_ID = (1 << 24) - 1 };

/* Pieces with ids in any order, also with gaps. */
typedef struct cleat_piece_table {
    cleat_vocabulary names;
    int32_t *ids; /* [names.count] id of each name */
    size_t ids_capacity;
    uint32_t *name_of; /* [limit] index of the name + 1 of each id; 0: none */
    size_t limit, limit_capacity;
} cleat_piece_table;

/* Adds a piece. A piece that exists gets the new id; the old id keeps the name. CLEAT_ERR_FORMAT: an id outside 0 to
 * CLEAT_MAX_PIECE_ID. */
cleat_status cleat_piece_table_add(cleat_piece_table *table, const char *piece, int32_t id, cleat_error *error);
int32_t cleat_piece_table_find(const cleat_piece_table *table, const char *piece, size_t size); /* -1: none */
const char *cleat_piece_table_name(const cleat_piece_table *table, int32_t id);                 /* NULL: none */

typedef enum cleat_subwords_kind {
    CLEAT_SUBWORDS_WORDPIECE,
    CLEAT_SUBWORDS_BPE,
    CLEAT_SUBWORDS_UNIGRAM
} cleat_subwords_kind;

typedef struct cleat_subwords {
    cleat_subwords_kind kind;
    cleat_piece_table pieces;
    int32_t unk; /* id; -1: none */

    /* WordPiece, Unigram */
    cleat_trie trie;
    /* WordPiece, BPE: begins every piece but the first of a word; "" if there is none */
    char *prefix;
    /* WordPiece: a longer word is unknown; the node of the trie that `prefix` leads to */
    size_t max_characters;
    int64_t inside;

    /* BPE */
    char *suffix; /* ends the last piece of a word; "" if there is none */
    bool fuse_unk, ignore_merges;
    struct cleat_merge *merges; /* [n_slots] hash table; a power of two, at most half of it used */
    size_t n_slots, n_merges;

    /* BPE, Unigram */
    bool byte_fallback;
    int32_t byte_ids[256]; /* of "<0x00>" ...; -1: none */

    /* Unigram: log probability of each id, [pieces.limit]; of an unknown character */
    double *scores;
    double unk_score;
} cleat_subwords;

/* Completes the model after its pieces and settings are set. */
cleat_status cleat_wordpiece_prepare(cleat_subwords *model, cleat_error *error);
cleat_status cleat_unigram_prepare(cleat_subwords *model, cleat_error *error);
void cleat_find_byte_pieces(cleat_subwords *model);
/* The trie of all pieces; its values are their ids. */
cleat_status cleat_subwords_build_trie(cleat_subwords *model, cleat_error *error);

/* BPE: joins pieces `left` and `right`; an earlier merge goes first. CLEAT_ERR_FORMAT: one of them or their
 * union is not a piece. */
cleat_status cleat_bpe_add_merge(cleat_subwords *model, const char *left, const char *right, cleat_error *error);
void cleat_subwords_free(cleat_subwords *model);

/* Memory of a call that encodes words; zero-initialised. */
typedef struct cleat_subwords_memory {
    struct cleat_bpe_symbol *symbols;
    struct cleat_bpe_candidate *heap;
    struct cleat_unigram_node *nodes;
    size_t symbols_capacity, heap_size, heap_capacity, nodes_capacity;
} cleat_subwords_memory;
void cleat_subwords_memory_free(cleat_subwords_memory *memory);

/* Receives the tokens of a text. */
typedef struct cleat_token_sink {
    cleat_token *tokens; /* [capacity]; those beyond are counted only */
    size_t capacity, count;
    uint32_t words;
} cleat_token_sink;

/* Adds a token for bytes start .. start + size - 1 of `text`. */
void cleat_token_sink_add(cleat_token_sink *sink, const cleat_aligned_text *text, int32_t id, size_t start,
                          size_t size);

/* A zero byte is written as these two in names of pieces and in texts that models get: names end at a zero byte, and
 * UTF-8 has no such character. */
#define CLEAT_ZERO "\xC0\x80"
/* Number of bytes of the character at text [size > 0]. */
size_t cleat_subwords_char(const char *text, size_t size);
/* Returns the id of the piece for the byte at text[*at], or -1, and moves *at to the next byte. */
int32_t cleat_next_byte_piece(const cleat_subwords *model, const char *text, size_t *at);
/* Whether every byte of text [size > 0] has such a piece. */
bool cleat_has_byte_pieces(const cleat_subwords *model, const char *text, size_t size);

/* Encode a word, a part of `text`, of size > 0. CLEAT_ERR_FORMAT: an unknown character, if the model has no
 * token for it. */
cleat_status cleat_subwords_encode(const cleat_subwords *model, const cleat_aligned_text *text, cleat_text_span word,
                                   cleat_subwords_memory *memory, cleat_token_sink *sink, cleat_error *error);
cleat_status cleat_wordpiece_encode(const cleat_subwords *model, const cleat_aligned_text *text, cleat_text_span word,
                                    cleat_token_sink *sink, cleat_error *error);
/* Emits the pieces of a word. Returns false and emits nothing if it cannot be composed of pieces. */
bool cleat_wordpiece_emit(const cleat_subwords *model, const cleat_aligned_text *text, cleat_text_span word,
                          cleat_token_sink *sink);
cleat_status cleat_bpe_encode(const cleat_subwords *model, const cleat_aligned_text *text, cleat_text_span word,
                              cleat_subwords_memory *memory, cleat_token_sink *sink, cleat_error *error);
cleat_status cleat_unigram_encode(const cleat_subwords *model, const cleat_aligned_text *text, cleat_text_span word,
                                  cleat_subwords_memory *memory, cleat_token_sink *sink, cleat_error *error);

#endif
