/* Byte-pair encoding: characters are joined in the order of the merges.
 *
 * A heap holds the pairs of neighbours that can be joined, the earliest merge first, and among equal ones the
 * leftmost. A join makes at most two new pairs, so a word of n characters takes O(n log n). Stale entries,
 * whose pieces were joined with others, are recognised by their merge. */
#include "tokenizer/subwords.h"

#include "core/memory.h"

#include <string.h>

struct cleat_merge {
    int32_t left, right; /* left -1: free */
    uint32_t rank;
    int32_t id;
};

/* A piece of the word, in a doubly linked list. */
struct cleat_bpe_symbol {
    int32_t id;
    int32_t previous, next; /* -1: none */
    bool joined;            /* into the symbol before it */
    size_t start, size;     /* in the text */
};

struct cleat_bpe_candidate {
    uint32_t rank;
    int32_t at; /* the left symbol */
    int32_t id; /* of the union */
};

enum { MIN_SLOTS = 256, FEW_BYTES = 256 };

static size_t home(int32_t left, int32_t right, size_t n_slots) {
    uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    key *= 0x9E3779B97F4A7C15u;
    return (size_t)(key ^ key >> 32) & (n_slots - 1);
}

static struct cleat_merge *slot_of(struct cleat_merge *merges, size_t n_slots, int32_t left, int32_t right) {
    size_t at = home(left, right, n_slots);
    while (merges[at].left >= 0 && (merges[at].left != left || merges[at].right != right))
        at = (at + 1) & (n_slots - 1);
    return &merges[at];
}

static const struct cleat_merge *find_merge(const cleat_subwords *model, int32_t left, int32_t right) {
    if (!model->n_slots) return NULL;
    const struct cleat_merge *slot = slot_of(model->merges, model->n_slots, left, right);
    return slot->left < 0 ? NULL : slot;
}

static cleat_status enlarge(cleat_subwords *model, cleat_error *error) {
    size_t n_slots = model->n_slots ? model->n_slots * 2 : MIN_SLOTS;
    struct cleat_merge *merges = cleat_alloc(n_slots, sizeof *merges);
    if (!merges) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %zu merges", model->n_merges);
    for (size_t i = 0; i < n_slots; ++i) merges[i].left = -1;
    for (size_t i = 0; i < model->n_slots; ++i) {
        const struct cleat_merge *old = &model->merges[i];
        if (old->left >= 0) *slot_of(merges, n_slots, old->left, old->right) = *old;
    }
    cleat_free(model->merges);
    model->merges = merges;
    model->n_slots = n_slots;
    return CLEAT_OK;
}

/* The id of the union of two pieces, without the prefix of the right one. -1: not a piece. */
static cleat_status find_union(const cleat_subwords *model, const char *left, const char *right, int32_t *id,
                               cleat_error *error) {
    size_t prefix = strlen(model->prefix), a = strlen(left), b = strlen(right);
    char few[FEW_BYTES], *joined = few;
    *id = -1;
    if (b < prefix) return CLEAT_OK;
    b -= prefix;
    if (a + b > sizeof few) joined = cleat_alloc(a + b, 1);
    if (!joined) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a merge");
    memcpy(joined, left, a);
    memcpy(joined + a, right + prefix, b);
    *id = cleat_piece_table_find(&model->pieces, joined, a + b);
    if (joined != few) cleat_free(joined);
    return CLEAT_OK;
}

cleat_status cleat_bpe_add_merge(cleat_subwords *model, const char *left, const char *right, cleat_error *error) {
    int32_t a = cleat_piece_table_find(&model->pieces, left, strlen(left)),
            b = cleat_piece_table_find(&model->pieces, right, strlen(right)), joined = -1;
    cleat_status status = CLEAT_OK;
    if (a >= 0 && b >= 0) status = find_union(model, left, right, &joined, error);
    if (!status && joined < 0)
        return cleat_fail(error, CLEAT_ERR_FORMAT,
                          "merge %zu of '%.40s' and '%.40s': %s is not in the vocabulary; the file is damaged",
                          model->n_merges + 1, left, right,
                          a < 0   ? "the first"
                          : b < 0 ? "the second"
                                  : "their union");
    if (!status && model->n_merges * 2 >= model->n_slots) status = enlarge(model, error);
    if (status) return status;
    *slot_of(model->merges, model->n_slots, a, b) =
        (struct cleat_merge){.left = a, .right = b, .rank = (uint32_t)model->n_merges++, .id = joined};
    return CLEAT_OK;
}

static bool comes_before(const struct cleat_bpe_candidate *a, const struct cleat_bpe_candidate *b) {
    return a->rank != b->rank ? a->rank < b->rank : a->at < b->at;
}

static cleat_status push(cleat_subwords_memory *m, struct cleat_bpe_candidate added, cleat_error *error) {
    cleat_status status = cleat_grow(&m->heap, m->heap_size, &m->heap_capacity, error);
    if (status) return status;
    size_t at = m->heap_size++;
    for (size_t up = (at - 1) / 2; at && comes_before(&added, &m->heap[up]); at = up, up = (at - 1) / 2)
        m->heap[at] = m->heap[up];
    m->heap[at] = added;
    return CLEAT_OK;
}

static struct cleat_bpe_candidate pop(cleat_subwords_memory *m) {
    struct cleat_bpe_candidate first = m->heap[0], last = m->heap[--m->heap_size];
    size_t at = 0;
    for (size_t down; (down = 2 * at + 1) < m->heap_size; at = down) {
        if (down + 1 < m->heap_size && comes_before(&m->heap[down + 1], &m->heap[down])) ++down;
        if (!comes_before(&m->heap[down], &last)) break;
        m->heap[at] = m->heap[down];
    }
    m->heap[at] = last;
    return first;
}

typedef struct bpe_word {
    const cleat_subwords *model;
    const cleat_aligned_text *text;
    cleat_text_span span;
    cleat_subwords_memory *memory;
    size_t count;               /* number of symbols */
    size_t unk_start, unk_size; /* an unknown part that is not added yet; size 0: none */
} bpe_word;

static cleat_status add_symbol(bpe_word *w, int32_t id, size_t start, size_t size, cleat_error *error) {
    cleat_subwords_memory *m = w->memory;
    cleat_status status = cleat_grow(&m->symbols, w->count, &m->symbols_capacity, error);
    if (status) return status;
    int32_t at = (int32_t)w->count++;
    m->symbols[at] =
        (struct cleat_bpe_symbol){.id = id, .previous = at - 1, .next = at + 1, .start = start, .size = size};
    return CLEAT_OK;
}

static cleat_status flush_unknown(bpe_word *w, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    if (w->unk_size) status = add_symbol(w, w->model->unk, w->unk_start, w->unk_size, error);
    w->unk_size = 0;
    return status;
}

/* The id of the character at text[start, size], with prefix and suffix as its place in the word requires; else the
 * bytes that were looked up, in `key` [*key_size]. */
static int32_t find_character(const bpe_word *w, size_t start, size_t size, char *key, size_t *key_size) {
    const cleat_subwords *model = w->model;
    size_t used = 0, prefix = start > w->span.start ? strlen(model->prefix) : 0;
    size_t suffix = start + size == w->span.start + w->span.size ? strlen(model->suffix) : 0;
    *key_size = 0;
    if (prefix + size + suffix > FEW_BYTES) return -1;
    memcpy(key, model->prefix, prefix);
    used += prefix;
    memcpy(key + used, w->text->bytes + start, size);
    used += size;
    memcpy(key + used, model->suffix, suffix);
    *key_size = used + suffix;
    return cleat_piece_table_find(&model->pieces, key, *key_size);
}

/* Adds a character without a piece. As in the reference, pieces of bytes go before an unknown part that was
 * not added yet. */
static cleat_status add_unknown(bpe_word *w, size_t start, size_t size, const char *key, size_t key_size,
                                cleat_error *error) {
    cleat_status status = CLEAT_OK;
    if (cleat_has_byte_pieces(w->model, key, key_size)) {
        for (size_t i = 0; i < key_size && !status;)
            status = add_symbol(w, cleat_next_byte_piece(w->model, key, &i), start, size, error);
        return status;
    }
    if (w->model->unk < 0) return CLEAT_OK; /* dropped */
    if (!w->model->fuse_unk) status = flush_unknown(w, error);
    if (!w->unk_size) w->unk_start = start;
    w->unk_size += size;
    return status;
}

static cleat_status add_characters(bpe_word *w, cleat_error *error) {
    char key[FEW_BYTES];
    const size_t end = w->span.start + w->span.size;
    cleat_status status = CLEAT_OK;
    for (size_t at = w->span.start, size, key_size; at < end && !status; at += size) {
        size = cleat_subwords_char(w->text->bytes + at, end - at);
        int32_t id = find_character(w, at, size, key, &key_size);
        if (id < 0) {
            status = add_unknown(w, at, size, key, key_size, error);
            continue;
        }
        status = flush_unknown(w, error);
        if (!status) status = add_symbol(w, id, at, size, error);
    }
    if (!status) status = flush_unknown(w, error);
    if (w->count) w->memory->symbols[w->count - 1].next = -1;
    return status;
}

/* Pushes the merge of symbol `at` and the next one, if there is one. */
static cleat_status push_pair(bpe_word *w, int32_t at, cleat_error *error) {
    const struct cleat_bpe_symbol *symbols = w->memory->symbols;
    if (at < 0 || symbols[at].next < 0) return CLEAT_OK;
    const struct cleat_merge *merge = find_merge(w->model, symbols[at].id, symbols[symbols[at].next].id);
    if (!merge) return CLEAT_OK;
    return push(w->memory, (struct cleat_bpe_candidate){merge->rank, at, merge->id}, error);
}

static cleat_status join_symbols(bpe_word *w, cleat_error *error) {
    struct cleat_bpe_symbol *symbols = w->memory->symbols;
    cleat_status status = CLEAT_OK;
    w->memory->heap_size = 0;
    for (size_t i = 0; i + 1 < w->count && !status; ++i) status = push_pair(w, (int32_t)i, error);
    while (w->memory->heap_size && !status) {
        const struct cleat_bpe_candidate top = pop(w->memory);
        struct cleat_bpe_symbol *left = &symbols[top.at];
        if (left->joined || left->next < 0) continue;
        struct cleat_bpe_symbol *right = &symbols[left->next];
        const struct cleat_merge *merge = find_merge(w->model, left->id, right->id);
        if (!merge || merge->id != top.id) continue;
        left->id = top.id;
        left->size = right->start + right->size - left->start;
        right->joined = true;
        left->next = right->next;
        if (left->next >= 0) symbols[left->next].previous = top.at;
        status = push_pair(w, left->previous, error);
        if (!status) status = push_pair(w, top.at, error);
    }
    return status;
}

cleat_status cleat_bpe_encode(const cleat_subwords *model, const cleat_aligned_text *text, cleat_text_span word,
                              cleat_subwords_memory *memory, cleat_token_sink *sink, cleat_error *error) {
    bpe_word w = {.model = model, .text = text, .span = word, .memory = memory};
    if (word.size >= INT32_MAX) return cleat_fail(error, CLEAT_ERR_ARGUMENT, "a word of %zu bytes", word.size);
    if (model->ignore_merges) {
        int32_t id = cleat_piece_table_find(&model->pieces, text->bytes + word.start, word.size);
        if (id >= 0) {
            cleat_token_sink_add(sink, text, id, word.start, word.size);
            return CLEAT_OK;
        }
    }
    cleat_status status = add_characters(&w, error);
    if (!status) status = join_symbols(&w, error);
    for (size_t i = 0; i < w.count && !status; ++i)
        if (!memory->symbols[i].joined)
            cleat_token_sink_add(sink, text, memory->symbols[i].id, memory->symbols[i].start, memory->symbols[i].size);
    return status;
}
