/* Frozen weights in blocks on the host: sizes, quantisation, and values. Layouts: cl/lib/blocks.clh. */
#ifndef CLEAT_SRC_BLOCKS_H
#define CLEAT_SRC_BLOCKS_H

#include "cleat/graph.h"
#include "core/gguf.h"

/* Values of a block; 0: the type has no blocks. */
static inline int64_t cleat_block_elements(cleat_dtype dtype) {
    return dtype == CLEAT_NF4 ? 64 : dtype >= CLEAT_Q8 ? 32 : 0;
}

/* Bytes of `elements` values, a multiple of a block. */
int64_t cleat_block_bytes(cleat_dtype dtype, int64_t elements);
/* Bytes of the codes of `elements` values, which come first. Blocks of all types but NF4 are independent: code and
 * scales of a part of a matrix lie behind those of the values before it. */
int64_t cleat_block_codes(cleat_dtype dtype, int64_t elements);

/* "q8", "nf4", "q4", "half"; the type of a name, CLEAT_F32 if it is none of these. */
const char *cleat_block_name(cleat_dtype dtype);
cleat_dtype cleat_block_find(const char *name);

/* Where the blocks of values first .. first + count - 1 of `elements` are: pieces that together are the blocks of a
 * matrix of `count` values. first: a multiple of CLEAT_BLOCK_SPAN (of a block for other types than NF4); count too,
 * unless these are the last. Returns the number of pieces. */
enum { CLEAT_BLOCK_SPAN = 1 << 14, CLEAT_BLOCK_PIECES = 4 };
typedef struct cleat_block_piece {
    int64_t offset, bytes;
} cleat_block_piece;
int cleat_block_pieces(cleat_dtype dtype, int64_t elements, int64_t first, int64_t count,
                       cleat_block_piece pieces[CLEAT_BLOCK_PIECES]);

/* Quantises a matrix whose rows are whole blocks, of `elements` values, to bytes [cleat_block_bytes]. Q8 as GGUF's
 * reference does, Q4 as its Q4_1, NF4 as bitsandbytes does with double quantisation. CLEAT_ERR_ARGUMENT: a value is not
 * finite, or beyond f16 (its scale of Q8, Q4). CLEAT_ERR_MEMORY. */
cleat_status cleat_blocks_quantise(cleat_dtype dtype, const float *values, int64_t elements, void *bytes,
                                   cleat_error *error);
/* The values of blocks; kernels may round a scale of NF4 once less. */
void cleat_blocks_values(cleat_dtype dtype, const void *bytes, int64_t elements, float *values);
/* The same bytes from stored blocks of a GGUF file, with the file's values: Q8 from Q8_0, Q4 from Q4_0 and Q4_1, HALF
 * from F16. From Q4_K, whose scales have 17 significant bits, Q4 gets them rounded to f16, which changes values by
 * up to 0.0014 of the largest of their 32 (half a step is 0.033 or more). False: it must be quantised, or is not
 * finite. */
bool cleat_blocks_take(cleat_dtype dtype, cleat_gguf_type type, const void *stored, int64_t elements, void *bytes);

#endif
