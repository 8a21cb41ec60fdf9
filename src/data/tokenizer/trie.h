/* A trie of byte strings: the values of all keys that are prefixes of a text, in one walk. */
#ifndef CLEAT_SRC_TRIE_H
#define CLEAT_SRC_TRIE_H

#include "cleat/core.h"

/* Nodes are in breadth-first order, so that the children of node n are the nodes first[n] .. first[n + 1] - 1, in
 * order of their labels. Node 0 is the root. */
typedef struct cleat_trie {
    uint32_t *first;       /* [count + 1] */
    unsigned char *labels; /* [count] */
    int32_t *values;       /* [count] -1: no key ends here */
    size_t count;
    uint32_t root[256]; /* the children of the root by their labels; 0: none */
} cleat_trie;

typedef struct cleat_trie_key {
    const char *bytes; /* [size] borrowed */
    size_t size;
    int32_t value; /* not negative */
} cleat_trie_key;

enum { CLEAT_TRIE_NONE = -1 };

enum { CLEAT_TRIE_LONGEST = 1024 };

/* Builds the trie of keys [n], which it reorders. The last of equal keys counts; empty keys are ignored.
 * CLEAT_ERR_FORMAT: a key of more than CLEAT_TRIE_LONGEST bytes, which could start at every byte of a text. */
cleat_status cleat_trie_build(cleat_trie *trie, cleat_trie_key *keys, size_t n, cleat_error *error);
void cleat_trie_free(cleat_trie *trie);
/* The child of a node by its label; CLEAT_TRIE_NONE if it has none. */
int64_t cleat_trie_child(const cleat_trie *trie, int64_t node, unsigned char label);
/* The node that `bytes` lead to from a node. */
int64_t cleat_trie_walk(const cleat_trie *trie, int64_t node, const char *bytes, size_t size);
/* Finds the longest key that is a prefix of text, read from a node. Returns its value and sets *length, or returns
 * -1. */
int32_t cleat_trie_longest(const cleat_trie *trie, int64_t node, const char *text, size_t size, size_t *length);

#endif
