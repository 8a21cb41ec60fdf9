/* Frozen weights in blocks on the host: sizes, quantisation, and values. Layouts: cl/lib/blocks.clh. */
#ifndef CLEAT_SRC_BLOCKS_H
#define CLEAT_SRC_BLOCKS_H

#include "cleat/graph.h"

/* Values of a block; 0: the type has no blocks. */
static inline int64_t cleat_block_elements(cleat_dtype dtype) {
    return dtype == CLEAT_Q8 ? 32 : dtype == CLEAT_NF4 ? 64 : 0;
}

/* Bytes of `elements` values, a multiple of a block. */
int64_t cleat_block_bytes(cleat_dtype dtype, int64_t elements);

/* Quantises a matrix whose rows are whole blocks, of `elements` values, to bytes [cleat_block_bytes]. Q8 as GGUF's
 * reference does, NF4 as bitsandbytes does with double quantisation. CLEAT_ERR_ARGUMENT: a value is not finite, or its
 * scale is beyond f16 (Q8). CLEAT_ERR_MEMORY. */
cleat_status cleat_blocks_quantise(cleat_dtype dtype, const float *values, int64_t elements, void *bytes,
                                   cleat_error *error);
/* The values of blocks; kernels may round a scale of NF4 once less. */
void cleat_blocks_values(cleat_dtype dtype, const void *bytes, int64_t elements, float *values);

#endif
