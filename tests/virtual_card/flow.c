/* Finds blocks, and the reconvergence point of each branch: its immediate post-dominator. */
#include "flow.h"

#include <stdlib.h>
#include <string.h>

static void *allocate(size_t count, size_t size) {
    void *memory = calloc(count + 1, size);
    if (!memory) abort();
    return memory;
}

static bool ends_block(const ptx_instruction *instruction) {
    return instruction->kind == PTX_BRANCH || instruction->kind == PTX_EXIT;
}

static void find_next(const ptx_kernel *kernel, ptx_block *block, const uint32_t *block_of, uint32_t n_blocks) {
    const ptx_instruction *last = &kernel->code[block->end - 1];
    const bool goes_on = !ends_block(last) || last->predicate != PTX_NOWHERE;
    if (last->kind == PTX_BRANCH) block->next[block->n_next++] = block_of[last->target];
    if (last->kind == PTX_EXIT) block->next[block->n_next++] = n_blocks;
    if (goes_on) block->next[block->n_next++] = block->end < kernel->n_code ? block_of[block->end] : n_blocks;
}

ptx_block *ptx_find_blocks(const ptx_kernel *kernel, uint32_t *n_blocks) {
    const size_t n = kernel->n_code;
    bool *begins = allocate(n, sizeof *begins);
    uint32_t *block_of = allocate(n, sizeof *block_of);
    begins[0] = true;
    for (size_t i = 0; i < n; ++i) {
        if (kernel->code[i].kind == PTX_BRANCH) begins[kernel->code[i].target] = true;
        if (ends_block(&kernel->code[i])) begins[i + 1] = true;
    }
    uint32_t count = 0;
    for (size_t i = 0; i < n; ++i) {
        count += begins[i];
        block_of[i] = count - 1;
    }
    ptx_block *blocks = allocate(count, sizeof *blocks);
    for (size_t i = 0; i < n; ++i) {
        if (begins[i]) blocks[block_of[i]].begin = (uint32_t)i;
        blocks[block_of[i]].end = (uint32_t)i + 1;
    }
    for (uint32_t b = 0; b < count; ++b) find_next(kernel, &blocks[b], block_of, count);
    free(begins), free(block_of);
    *n_blocks = count;
    return blocks;
}

/* Orders blocks from the end of the kernel backwards, so most come after their successors. `before` lists
 * predecessors. Returns the number of blocks that reach the end; rank[b] is the position of block b, or
 * UINT32_MAX. */
static uint32_t order_backwards(const ptx_block *blocks, uint32_t n, uint32_t *order, uint32_t *rank) {
    uint32_t *first = allocate(n + 2, sizeof *first), *before = allocate(2 * (size_t)n, sizeof *before);
    for (uint32_t b = 0; b < n; ++b)
        for (int k = 0; k < blocks[b].n_next; ++k) first[blocks[b].next[k] + 1]++;
    for (uint32_t b = 0; b <= n; ++b) first[b + 1] += first[b];
    uint32_t *fill = allocate(n + 2, sizeof *fill);
    memcpy(fill, first, (n + 2) * sizeof *fill);
    for (uint32_t b = 0; b < n; ++b)
        for (int k = 0; k < blocks[b].n_next; ++k) before[fill[blocks[b].next[k]]++] = b;

    /* depth first, with an explicit stack */
    uint32_t *stack = allocate(n + 1, sizeof *stack), *at = allocate(n + 1, sizeof *at);
    bool *seen = allocate(n + 1, sizeof *seen);
    uint32_t depth = 0, finished = 0;
    stack[depth++] = n, seen[n] = true, at[n] = first[n];
    while (depth) {
        const uint32_t b = stack[depth - 1];
        if (at[b] == first[b + 1]) {
            order[finished++] = b;
            depth--;
            continue;
        }
        const uint32_t p = before[at[b]++];
        if (seen[p]) continue;
        seen[p] = true, at[p] = first[p];
        stack[depth++] = p;
    }
    for (uint32_t b = 0; b <= n; ++b) rank[b] = UINT32_MAX;
    for (uint32_t i = 0; i < finished; ++i) rank[order[i]] = finished - 1 - i;
    for (uint32_t i = 0; i < finished / 2; ++i) {
        const uint32_t swapped = order[i];
        order[i] = order[finished - 1 - i], order[finished - 1 - i] = swapped;
    }
    free(first), free(before), free(fill), free(stack), free(at), free(seen);
    return finished;
}

static uint32_t common_post_dominator(const uint32_t *post, const uint32_t *rank, uint32_t a, uint32_t b) {
    while (a != b) {
        while (rank[a] > rank[b]) a = post[a];
        while (rank[b] > rank[a]) b = post[b];
    }
    return a;
}

/* The iterative algorithm of Cooper, Harvey and Kennedy (A Simple, Fast Dominance Algorithm) on the reversed
 * graph. */
static void find_post_dominators(const ptx_block *blocks, uint32_t n, uint32_t *post) {
    uint32_t *order = allocate(n + 1, sizeof *order), *rank = allocate(n + 1, sizeof *rank);
    const uint32_t reached = order_backwards(blocks, n, order, rank);
    for (uint32_t b = 0; b <= n; ++b) post[b] = PTX_NOWHERE;
    post[n] = n;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 1; i < reached; ++i) {
            const ptx_block *block = &blocks[order[i]];
            uint32_t meet = PTX_NOWHERE;
            for (int k = 0; k < block->n_next; ++k) {
                const uint32_t next = block->next[k];
                if (post[next] == PTX_NOWHERE) continue;
                meet = meet == PTX_NOWHERE ? next : common_post_dominator(post, rank, meet, next);
            }
            if (meet != post[order[i]]) post[order[i]] = meet, changed = true;
        }
    }
    free(order), free(rank);
}

void ptx_find_reconvergence(ptx_kernel *kernel) {
    uint32_t n;
    ptx_block *blocks = ptx_find_blocks(kernel, &n);
    uint32_t *post = allocate(n + 1, sizeof *post);
    find_post_dominators(blocks, n, post);
    for (uint32_t b = 0; b < n; ++b) {
        ptx_instruction *last = &kernel->code[blocks[b].end - 1];
        if (last->kind != PTX_BRANCH) continue;
        last->reconverge = post[b] == PTX_NOWHERE || post[b] == n ? PTX_NOWHERE : blocks[post[b]].begin;
    }
    free(blocks), free(post);
}
