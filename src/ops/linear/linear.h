/* Between linear.c (what the ops compute) and linear_launch.c (how it runs). */
#ifndef CLEAT_SRC_OPS_LINEAR_H
#define CLEAT_SRC_OPS_LINEAR_H

#include "graph/launch.h"
#include "lib/shared_numbers.clh"
#include "ops/lib/tiles.h"

/* What becomes of a sum before it is stored (cl/lib/epilogue.clh). */
typedef enum cleat_epilogue {
    CLEAT_EPILOGUE_NONE = EPILOGUE_NONE,
    CLEAT_EPILOGUE_RELU = EPILOGUE_RELU, /* C = f(sum); saved, where there is one: the sum */
    CLEAT_EPILOGUE_GELU = EPILOGUE_GELU,
    CLEAT_EPILOGUE_RELU_GRAD = EPILOGUE_RELU_GRAD, /* C = sum f'; saved: what f' is computed of, relu's result */
    CLEAT_EPILOGUE_GELU_GRAD = EPILOGUE_GELU_GRAD, /* ... gelu's argument */
} cleat_epilogue;

/* C[m, n] = accum + bias[n] + sum over k of A[m, k] B[k, n], or the epilogue of that, and sums[m] = sums_accum[m] + sum over
 * k of A[m, k]. A is stored [k, m] where trans_a is set, B [n, k] where trans_b is. All but `a` may be NULL; sums
 * come with trans_a only, an epilogue with trans_a never. */
typedef struct cleat_gemm {
    const cleat_tensor *a, *b, *bias, *accum, *c, *saved, *sums_accum, *sums;
    int64_t m, n, k;
    bool trans_a, trans_b;
    cleat_epilogue epilogue;
} cleat_gemm;

/* The product a node of one of the linear ops stands for. */
cleat_gemm cleat_linear_gemm(const cleat_node *node);

/* Emits the gradient of a bias that was added to every row of what dy [..., N] is the gradient of. */
void cleat_emit_bias_grad(cleat_graph *graph, cleat_tensor *dy, cleat_tensor *bias);

/* out = accum + the `count` parts that lie in the node's workspace from byte `workspace_offset` on, f32 [count, elements of out], added in
 * order. accum may be NULL. */
void cleat_launch_reduce(cleat_binder *binder, const cleat_node *node, int64_t workspace_offset,
                         const cleat_tensor *accum, const cleat_tensor *out, int64_t count);

/* --- what the files that launch products share --- */

/* Workspace of a product whose k is split: the parts of C [count, m, n], then those of the sums [count, m], all f32. */
int64_t cleat_linear_split_bytes(const cleat_gemm *p, cleat_k_split s);
int64_t cleat_linear_tiled_workspace(const cleat_node *node, cleat_tiling tiling);
/* Begins a launch of a kernel that reads the operands and stores C. */
void cleat_linear_begin(cleat_binder *binder, const cleat_node *node, const cleat_gemm *p, const char *file,
                        const char *kernel);
/* The tensors and sizes of such a kernel: results go to C and sums, or to the workspace where k is split. */
void cleat_linear_operands(cleat_binder *binder, const cleat_gemm *p, cleat_k_split s);
/* The launches that add up the parts, where k is split. */
void cleat_linear_reduces(cleat_binder *binder, const cleat_node *node, const cleat_gemm *p, cleat_k_split s);

/* Variants of linear_mma.c: f16 and bf16 on matrix units. */
CLEAT_DECLARE_VARIANT(linear_mma)
CLEAT_DECLARE_VARIANT(linear_mma_large)
CLEAT_DECLARE_VARIANT(linear_mma_medium)
CLEAT_DECLARE_VARIANT(linear_mma_small)

extern const cleat_variant cleat_linear_variants[];      /* products with a C */
extern const cleat_variant cleat_linear_sums_variants[]; /* the sums alone */

#endif
