/* Interface between linear.c (definition of the ops) and linear_launch.c (their launches). */
#ifndef CLEAT_SRC_OPS_LINEAR_H
#define CLEAT_SRC_OPS_LINEAR_H

#include "graph/launch.h"
#include "lib/shared_numbers.clh"
#include "ops/lib/shared.h"
#include "ops/lib/tiles.h"

/* Epilogue applied to a sum before it is stored (cl/lib/epilogue.clh). */
typedef enum cleat_epilogue {
    CLEAT_EPILOGUE_NONE = EPILOGUE_NONE,
    CLEAT_EPILOGUE_RELU = EPILOGUE_RELU, /* C = f(sum); saved (optional): the sum */
    CLEAT_EPILOGUE_GELU = EPILOGUE_GELU,
    CLEAT_EPILOGUE_RELU_GRAD = EPILOGUE_RELU_GRAD, /* C = sum f'; saved: argument of f', here relu's result */
    CLEAT_EPILOGUE_GELU_GRAD = EPILOGUE_GELU_GRAD, /* saved: gelu's argument */
} cleat_epilogue;

/* C[m, n] = accum + bias[n] + sum over k of A[m, k] B[k, n], possibly with an epilogue, and sums[m] =
 * sums_accum[m] + sum over k of A[m, k]. A is stored as [k, m] if trans_a, B as [n, k] if trans_b. All
 * tensors but `a` may be NULL. Sums occur only with trans_a, epilogues only without it. C has the operands' type, but
 * the gradient of a half weight is f32. */
typedef struct cleat_gemm {
    const cleat_tensor *a, *b, *bias, *accum, *c, *saved, *sums_accum, *sums;
    int64_t m, n, k;
    bool trans_a, trans_b;
    cleat_epilogue epilogue;
} cleat_gemm;

/* BLOCKS of the GEMM's B. */
static inline int32_t cleat_linear_blocks(const cleat_gemm *p) {
    return p->b ? cleat_blocks_option(p->b) : BLOCKS_NONE;
}

/* Returns the GEMM computed by a node of one of the linear ops. */
cleat_gemm cleat_linear_gemm(const cleat_node *node);

/* Definition of the linear ops (linear_define.c). */
cleat_expected_value cleat_linear_define(const cleat_node *node, cleat_host_values *values, int64_t element);

/* Emits the gradient of `bias`, which was added to every row of the tensor whose gradient is dy [..., N]. */
void cleat_emit_bias_grad(cleat_graph *graph, cleat_tensor *dy, cleat_tensor *bias);

/* out = accum + the sum, in order, of `count` parts, f32 [count, elements of out], which start at byte
 * `workspace_offset` of the node's workspace. accum may be NULL. */
void cleat_launch_reduce(cleat_binder *binder, const cleat_node *node, int64_t workspace_offset,
                         const cleat_tensor *accum, const cleat_tensor *out, int64_t count);

/* --- shared by linear_launch.c and linear_mma.c --- */

/* Workspace bytes of a GEMM with split k: the parts of C [count, m - part_row, n], then those of the sums
 * [count, m], all f32. */
int64_t cleat_linear_tiled_workspace(const cleat_node *node, cleat_tiling tiling);
/* Begins the launch of a kernel that reads the operands and stores C. */
void cleat_linear_begin(cleat_binder *binder, const cleat_node *node, const cleat_gemm *p, const char *file,
                        const char *kernel);
/* Ends the launch of such a kernel, one group for each whole tile and for each part of the others. If k is
 * split, the last group of a tile adds up its parts, or further launches do (cl/linear/split.clh). */
void cleat_linear_tiles(cleat_binder *binder, const cleat_node *node, const cleat_gemm *p, cleat_tiling s);

/* Variants of linear_mma.c: on matrix units. */
CLEAT_DECLARE_MMA_VARIANTS(linear)

extern const cleat_variant cleat_linear_variants[];      /* GEMMs with a C */
extern const cleat_variant cleat_linear_sums_variants[]; /* the sums only */

#endif
