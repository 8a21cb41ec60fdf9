/* Offsets for blocks of memory with known lifetimes: the offline form of dynamic storage allocation (Wilson
 * et al. 1995; for neural networks Pisarchyk & Lee 2020). A pure function of sizes and times that depends on
 * neither tensors nor devices. */
#ifndef CLEAT_SRC_ARENA_H
#define CLEAT_SRC_ARENA_H

#include "graph/plan.h"

typedef struct cleat_block {
    int64_t bytes;       /* 0: the block needs no place */
    int32_t first, last; /* live at the times first..last inclusive; 0 <= first <= last */
} cleat_block;

/* The slabs that one or several sets of blocks share, one set at a time. Zero-initialise it; release it with
 * cleat_arena_clear. */
typedef struct cleat_arena {
    int64_t *slabs; /* [count] bytes, multiples of the alignment */
    size_t count;
} cleat_arena;

void cleat_arena_clear(cleat_arena *arena);
int64_t cleat_arena_bytes(const cleat_arena *arena);

/* `bytes` rounded up to a multiple of `alignment` (> 0). */
int64_t cleat_align_up(int64_t bytes, int64_t alignment);

/* Fills live [times] with the bytes (aligned sizes) in use at each time. Every block must end before
 * `times`. */
void cleat_arena_live(const cleat_block *blocks, size_t count, int64_t alignment, int32_t times, int64_t *live);

/* The lower bound for any layout of `blocks` [count]: the largest sum of aligned sizes that are live at the
 * same time. *time (may be NULL) is the first time at which it is reached. */
cleat_status cleat_arena_bound(const cleat_block *blocks, size_t count, int64_t alignment, int64_t *bytes,
                               int32_t *time, cleat_error *error);

/* Places `blocks` [count] in the slabs of `arena`; existing slabs grow or new ones are added if they do not
 * suffice. Two blocks that are live at the same time never overlap; each block lies within one slab of at
 * most `max_slab` bytes, at a multiple of `alignment`. places[i].slab counts the slabs of the arena from 0.
 * Deterministic.
 *
 * Tries several greedy orders until the bound is reached or a fixed number of steps is spent. One order costs O(n^2)
 * comparisons at worst (n blocks); the step limit bounds the whole call to a few milliseconds. Memory plans of the
 * profiles stay within 2 % of the bound.
 *
 * CLEAT_ERR_FIT: a block is larger than a slab may be. On failure, `arena` and `places` are unchanged. */
cleat_status cleat_arena_assign(cleat_arena *arena, const cleat_block *blocks, size_t count, int64_t alignment,
                                int64_t max_slab, cleat_slab_place *places, cleat_error *error);

#endif
