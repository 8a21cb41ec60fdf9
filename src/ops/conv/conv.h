/* Between conv.c (what the ops compute) and conv_launch.c, conv_gpu.c, conv_mma.c (how they run). */
#ifndef CLEAT_SRC_OPS_CONV_H
#define CLEAT_SRC_OPS_CONV_H

#include "lib/shared_numbers.clh"
#include "ops/lib/tiles.h"

typedef enum cleat_conv_kind {
    CLEAT_CONV_FORWARD = CONV_FORWARD, /* out = y: in = {x, weight} */
    CLEAT_CONV_DX = CONV_DX,           /* out = dx: in = {dy, weight} */
    CLEAT_CONV_DW = CONV_DW,           /* out = dweight (of dy's type, or f32): in = {dy, x} */
} cleat_conv_kind;

/* One of a convolution's three products, out = accum + bias + product; sums = sums_accum + the sums of dy over all
 * pixels (with DW only: the bias's gradient). x [B, H, W, C], weight [N, R, S, C], y [B, P, Q, N]. */
typedef struct cleat_conv {
    cleat_conv_kind kind;
    const cleat_tensor *x, *weight, *y;                   /* or their gradients; of each kind one is the result */
    const cleat_tensor *bias, *accum, *sums_accum, *sums; /* any may be NULL */
    int64_t batch, height, width, channels;               /* B, H, W, C */
    int64_t rows, columns, features;                      /* P, Q, N */
    int64_t kernel_rows, kernel_columns;                  /* R, S */
    int64_t stride, padding;
} cleat_conv;

/* The product a node of one of the conv ops stands for. */
cleat_conv cleat_conv_of(const cleat_node *node);

extern const cleat_variant cleat_conv_variants[]; /* conv_launch.c */

/* Appends the eleven numbers that kernels know as GEOMETRY (cl/conv/conv.clh). */
void cleat_conv_launch_geometry(cleat_binder *binder, const cleat_conv *conv);

/* Tells the kernel that is being launched where its result is f32 and its operands are not (cl/lib/result.clh). */
void cleat_conv_launch_result(cleat_binder *binder, const cleat_conv *conv);

/* --- products for cards (cl/conv/conv_gemm.clh): what conv_gpu.c and conv_mma.c share --- */

/* The work as the kernels count it: each run of k is rounded up to whole steps of this many, each run of n to whole vec4s. */
cleat_tile_work cleat_conv_tile_work(const cleat_conv *conv, int64_t step);
/* Workspace of a split k, all f32: the parts of the result, then those of the sums. */
int64_t cleat_conv_tiled_workspace(const cleat_node *node, cleat_tiling tiling);
/* Begins the launch of a product: the defines that both kernels know. */
void cleat_conv_gemm_begin(cleat_binder *binder, const cleat_node *node, const cleat_conv *conv, cleat_tiling tiling,
                           const char *file, const char *kernel);
/* Ends it, and adds up the parts where k is split. */
void cleat_conv_gemm_end(cleat_binder *binder, const cleat_node *node, const cleat_conv *conv, cleat_tiling tiling);

CLEAT_DECLARE_VARIANT(conv_gpu)
CLEAT_DECLARE_VARIANT(conv_mma)
CLEAT_DECLARE_VARIANT(conv_mma_large)
CLEAT_DECLARE_VARIANT(conv_mma_medium)
CLEAT_DECLARE_VARIANT(conv_mma_small)

#endif
