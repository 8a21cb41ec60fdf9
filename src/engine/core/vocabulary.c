/* A vocabulary as a hash table of pieces. The hash is computed byte by byte, so that one pass over a word
 * gives the hashes of all its prefixes. */
#include "core/vocabulary.h"

#include "core/memory.h"

#include <string.h>

struct cleat_vocabulary_slot {
    uint32_t tag; /* upper half of the hash: rejects most wrong pieces without comparing them */
    int32_t id;   /* -1: free */
};

enum { MIN_SLOTS = 64, MAX_PIECES = 1 << 28 };

/* FNV-1a (Fowler, Noll, Vo). */
static const uint64_t start_hash = 14695981039346656037u;

static uint64_t hash_on(uint64_t hash, char byte) {
    return (hash ^ (unsigned char)byte) * 1099511628211u;
}

static uint64_t hash_bytes(const char *bytes, size_t size) {
    uint64_t hash = start_hash;
    for (size_t i = 0; i < size; ++i) hash = hash_on(hash, bytes[i]);
    return hash;
}

static size_t home(uint64_t hash, size_t n_slots) {
    return (size_t)(hash ^ (hash >> 32)) & (n_slots - 1);
}

const char *cleat_vocabulary_piece(const cleat_vocabulary *vocabulary, int32_t id) {
    return vocabulary->text + vocabulary->starts[id];
}

/* Whether piece `id` equals bytes [size], preceded by "##" if `inside` (a word). */
static bool is_piece(const cleat_vocabulary *v, int32_t id, const char *bytes, size_t size, bool inside) {
    const char *piece = cleat_vocabulary_piece(v, id);
    if (inside) {
        if (piece[0] != '#' || piece[1] != '#') return false;
        piece += 2;
    }
    return strncmp(piece, bytes, size) == 0 && piece[size] == 0;
}

static int32_t look_up(const cleat_vocabulary *v, uint64_t hash, const char *bytes, size_t size, bool inside) {
    uint32_t tag = (uint32_t)(hash >> 32);
    for (size_t at = home(hash, v->n_slots);; at = (at + 1) & (v->n_slots - 1)) {
        const struct cleat_vocabulary_slot *slot = &v->slots[at];
        if (slot->id < 0) return -1;
        if (slot->tag == tag && is_piece(v, slot->id, bytes, size, inside)) return slot->id;
    }
}

static void put(struct cleat_vocabulary_slot *slots, size_t n_slots, uint64_t hash, int32_t id) {
    size_t at = home(hash, n_slots);
    while (slots[at].id >= 0) at = (at + 1) & (n_slots - 1);
    slots[at] = (struct cleat_vocabulary_slot){(uint32_t)(hash >> 32), id};
}

static cleat_status enlarge(cleat_vocabulary *v, cleat_error *error) {
    size_t n_slots = v->n_slots ? v->n_slots * 2 : MIN_SLOTS;
    struct cleat_vocabulary_slot *slots = cleat_alloc(n_slots, sizeof *slots);
    if (!slots) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a table of %zu names", v->count);
    for (size_t i = 0; i < n_slots; ++i) slots[i].id = -1;
    for (size_t id = 0; id < v->count; ++id) {
        const char *piece = cleat_vocabulary_piece(v, (int32_t)id);
        put(slots, n_slots, hash_bytes(piece, strlen(piece)), (int32_t)id);
    }
    cleat_free(v->slots);
    v->slots = slots;
    v->n_slots = n_slots;
    return CLEAT_OK;
}

cleat_status cleat_vocabulary_add(cleat_vocabulary *v, const char *piece, size_t size, int32_t *id,
                                  cleat_error *error) {
    int32_t known = cleat_vocabulary_find(v, piece, size);
    if (known >= 0) {
        *id = known;
        return CLEAT_OK;
    }
    if (v->count >= MAX_PIECES)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "more than %d tokens or names", (int)MAX_PIECES);
    cleat_status status = CLEAT_OK;
    if (v->count * 2 >= v->n_slots) status = enlarge(v, error);
    while (!status && v->text_capacity <= v->text_size + size)
        status = cleat_grow(&v->text, v->text_capacity, &v->text_capacity, error);
    if (!status) status = cleat_grow(&v->starts, v->count, &v->capacity, error);
    if (status) return status;
    memcpy(v->text + v->text_size, piece, size);
    v->text[v->text_size + size] = 0;
    v->starts[v->count] = v->text_size;
    v->text_size += size + 1;
    put(v->slots, v->n_slots, hash_bytes(piece, size), (int32_t)v->count);
    if (size > v->longest) v->longest = size;
    *id = (int32_t)v->count++;
    return CLEAT_OK;
}

int32_t cleat_vocabulary_find(const cleat_vocabulary *v, const char *piece, size_t size) {
    return v->n_slots ? look_up(v, hash_bytes(piece, size), piece, size, false) : -1;
}

int32_t cleat_vocabulary_longest(const cleat_vocabulary *v, const char *word, size_t size, bool inside,
                                 size_t *length) {
    uint64_t hashes[CLEAT_WORD_BYTES + 1];
    size_t most = size < v->longest ? size : v->longest;
    hashes[0] = inside ? hash_on(hash_on(start_hash, '#'), '#') : start_hash;
    for (size_t i = 0; i < most; ++i) hashes[i + 1] = hash_on(hashes[i], word[i]);
    for (size_t tried = most; tried > 0; --tried) {
        int32_t id = look_up(v, hashes[tried], word, tried, inside);
        if (id < 0) continue;
        *length = tried;
        return id;
    }
    return -1;
}

void cleat_vocabulary_free(cleat_vocabulary *v) {
    cleat_free(v->text);
    cleat_free(v->starts);
    cleat_free(v->slots);
    *v = (cleat_vocabulary){0};
}
