/* The basic blocks of a kernel and their successors. */
#ifndef VIRTUAL_CARD_FLOW_H
#define VIRTUAL_CARD_FLOW_H

#include "kernel.h"

/* Instructions [begin, end) run in sequence. `next` holds the possible successors; the number of blocks
 * stands for the end of the kernel. */
typedef struct ptx_block {
    uint32_t begin, end;
    uint32_t next[2];
    int n_next;
} ptx_block;

/* The blocks in code order, released with free. */
ptx_block *ptx_find_blocks(const ptx_kernel *kernel, uint32_t *n_blocks);

#endif
