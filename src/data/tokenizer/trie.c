/* A trie, built from sorted keys level by level. */
#include "tokenizer/trie.h"

#include "core/memory.h"

#include <stdlib.h>
#include <string.h>

/* The sorted keys that begin with the path to a node. */
typedef struct key_range {
    uint32_t low, high;
} key_range;

static int by_bytes(const void *left, const void *right) {
    const cleat_trie_key *a = left, *b = right;
    int order = memcmp(a->bytes, b->bytes, a->size < b->size ? a->size : b->size);
    return order ? order : (a->size > b->size) - (a->size < b->size);
}

static bool same(const cleat_trie_key *a, const cleat_trie_key *b) {
    return a->size == b->size && memcmp(a->bytes, b->bytes, a->size) == 0;
}

/* Sorts keys, drops empty ones and all but the last of equal ones. The values hold the order of insertion
 * during the sort. */
static size_t sort_keys(cleat_trie_key *keys, size_t n, int32_t *values) {
    size_t kept = 0;
    for (size_t i = 0; i < n; ++i) {
        values[i] = keys[i].value;
        keys[i].value = (int32_t)i;
    }
    qsort(keys, n, sizeof *keys, by_bytes);
    for (size_t i = 0; i < n; ++i) {
        if (!keys[i].size) continue;
        if (kept && same(&keys[kept - 1], &keys[i])) {
            if (keys[i].value > keys[kept - 1].value) keys[kept - 1].value = keys[i].value;
        } else {
            keys[kept++] = keys[i];
        }
    }
    for (size_t i = 0; i < kept; ++i) keys[i].value = values[keys[i].value];
    return kept;
}

/* Number of nodes: one for the root, and one for each byte of a key that it does not share with the key before. */
static size_t count_nodes(const cleat_trie_key *keys, size_t n) {
    size_t nodes = 1;
    for (size_t i = 0; i < n; ++i) {
        size_t shared = 0;
        if (i)
            while (shared < keys[i - 1].size && shared < keys[i].size &&
                   keys[i - 1].bytes[shared] == keys[i].bytes[shared])
                ++shared;
        nodes += keys[i].size - shared;
    }
    return nodes;
}

/* Appends the children of `node`, whose path has `depth` bytes. */
static void add_children(cleat_trie *trie, const cleat_trie_key *keys, key_range *ranges, size_t node, size_t depth) {
    key_range range = ranges[node];
    trie->first[node] = (uint32_t)trie->count;
    if (range.low < range.high && keys[range.low].size == depth) trie->values[node] = keys[range.low++].value;
    while (range.low < range.high) {
        const unsigned char label = (unsigned char)keys[range.low].bytes[depth];
        uint32_t high = range.low;
        while (high < range.high && (unsigned char)keys[high].bytes[depth] == label) ++high;
        trie->labels[trie->count] = label;
        trie->values[trie->count] = -1;
        ranges[trie->count++] = (key_range){range.low, high};
        range.low = high;
    }
}

static void add_levels(cleat_trie *trie, const cleat_trie_key *keys, size_t n, key_range *ranges) {
    trie->values[0] = -1;
    trie->count = 1;
    ranges[0] = (key_range){0, (uint32_t)n};
    for (size_t node = 0, depth = 0; node < trie->count; ++depth)
        for (size_t level = trie->count; node < level; ++node) add_children(trie, keys, ranges, node, depth);
    trie->first[trie->count] = (uint32_t)trie->count;
    for (uint32_t child = trie->first[0]; child < trie->first[1]; ++child) trie->root[trie->labels[child]] = child;
}

cleat_status cleat_trie_build(cleat_trie *trie, cleat_trie_key *keys, size_t n, cleat_error *error) {
    for (size_t i = 0; i < n; ++i)
        if (keys[i].size > CLEAT_TRIE_LONGEST)
            return cleat_fail(error, CLEAT_ERR_FORMAT, "the token '%.40s...' has %zu bytes; the maximum is %d",
                              keys[i].bytes, keys[i].size, CLEAT_TRIE_LONGEST);
    int32_t *values = cleat_alloc(n, sizeof *values);
    key_range *ranges = NULL;
    cleat_trie made = {0};
    cleat_status status = CLEAT_ERR_MEMORY;
    if (!values) goto done;
    n = sort_keys(keys, n, values);
    size_t nodes = count_nodes(keys, n);
    if (nodes >= INT32_MAX) goto done;
    ranges = cleat_alloc(nodes, sizeof *ranges);
    made.first = cleat_alloc(nodes + 1, sizeof *made.first);
    made.labels = cleat_alloc(nodes, sizeof *made.labels);
    made.values = cleat_alloc(nodes, sizeof *made.values);
    if (!ranges || !made.first || !made.labels || !made.values) goto done;
    add_levels(&made, keys, n, ranges);
    *trie = made;
    made = (cleat_trie){0};
    status = CLEAT_OK;
done:
    if (status) cleat_fail(error, status, "no memory for the search tree of %zu tokens", n);
    cleat_trie_free(&made);
    cleat_free(ranges);
    cleat_free(values);
    return status;
}

void cleat_trie_free(cleat_trie *trie) {
    cleat_free(trie->first);
    cleat_free(trie->labels);
    cleat_free(trie->values);
    *trie = (cleat_trie){0};
}

int64_t cleat_trie_child(const cleat_trie *trie, int64_t node, unsigned char label) {
    if (node == 0) return trie->root[label] ? (int64_t)trie->root[label] : CLEAT_TRIE_NONE;
    uint32_t low = trie->first[node], high = trie->first[node + 1];
    while (high - low > 8) {
        uint32_t middle = low + (high - low) / 2;
        if (trie->labels[middle] <= label)
            low = middle;
        else
            high = middle;
    }
    for (; low < high; ++low)
        if (trie->labels[low] == label) return low;
    return CLEAT_TRIE_NONE;
}

int64_t cleat_trie_walk(const cleat_trie *trie, int64_t node, const char *bytes, size_t size) {
    for (size_t i = 0; i < size && node >= 0; ++i) node = cleat_trie_child(trie, node, (unsigned char)bytes[i]);
    return node;
}

int32_t cleat_trie_longest(const cleat_trie *trie, int64_t node, const char *text, size_t size, size_t *length) {
    int32_t found = -1;
    for (size_t i = 0; i < size && node >= 0; ++i) {
        node = cleat_trie_child(trie, node, (unsigned char)text[i]);
        if (node < 0 || trie->values[node] < 0) continue;
        found = trie->values[node];
        *length = i + 1;
    }
    return found;
}
