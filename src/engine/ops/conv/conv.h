/* Interface between conv.c (definition of the ops) and conv_launch.c, conv_winograd.c, conv_gpu.c, conv_mma.c
 * (their launches). */
#ifndef CLEAT_SRC_OPS_CONV_H
#define CLEAT_SRC_OPS_CONV_H

#include "lib/shared_numbers.clh"
#include "ops/lib/tiles.h"

typedef enum cleat_conv_kind {
    CLEAT_CONV_FORWARD = CONV_FORWARD, /* out = y: in = {x, weight} */
    CLEAT_CONV_DX = CONV_DX,           /* out = dx: in = {dy, weight} */
    CLEAT_CONV_DW = CONV_DW,           /* out = dweight (of dy's type, or f32): in = {dy, x} */
} cleat_conv_kind;

/* One of a convolution's three products: out = accum + bias + product, and sums = sums_accum + sums of dy
 * over all pixels (the gradient of the bias; with DW only). x [B, H, W, C], weight [N, R, S, C], y [B, P, Q,
 * N]. */
typedef struct cleat_conv {
    cleat_conv_kind kind;
    const cleat_tensor *x, *weight, *y;                   /* or their gradients; the result is one of them */
    const cleat_tensor *bias, *accum, *sums_accum, *sums; /* any may be NULL */
    int64_t batch, height, width, channels;               /* B, H, W, C */
    int64_t rows, columns, features;                      /* P, Q, N */
    int64_t kernel_rows, kernel_columns;                  /* R, S */
    int64_t stride, padding;
} cleat_conv;

/* Returns the product computed by a node of one of the conv ops. */
cleat_conv cleat_conv_of(const cleat_node *node);

extern const cleat_variant cleat_conv_variants[]; /* conv_launch.c */

/* The definition of the three ops (cleat_op.define); conv_define.c. */
cleat_expected_value cleat_conv_define(const cleat_node *node, cleat_host_values *values, int64_t element);

/* Appends the seven integers of the convolution's tensors: B, H, W, C, P, Q, N. */
void cleat_conv_launch_extents(cleat_binder *binder, const cleat_conv *conv);
/* Appends the eleven integers of the kernels' GEOMETRY (cl/conv/conv.clh): the extents, R, S, stride, padding. */
void cleat_conv_launch_geometry(cleat_binder *binder, const cleat_conv *conv);

/* Adds the define for an f32 result of half operands to the current launch, if it applies
 * (cl/lib/result.clh). */
void cleat_conv_launch_result(cleat_binder *binder, const cleat_conv *conv);

/* --- dw on CPUs, with the sum over pixels in `splits` parts, shared by conv_launch.c and conv_winograd.c --- */

/* Workspace bytes: the partial results of dw, then the partial sums, all f32. */
int64_t cleat_conv_filters_workspace(const cleat_conv *conv, int64_t splits);
/* Adds the tensors of such a kernel: dy, x, accum, dw, sums_accum, sums, partial. */
void cleat_conv_launch_filters(cleat_binder *binder, const cleat_conv *conv, int64_t splits);
/* Adds up the parts if there are several. */
void cleat_conv_launch_reduces(cleat_binder *binder, const cleat_node *node, const cleat_conv *conv, int64_t splits);

/* --- GEMMs for GPUs (cl/conv/conv_gemm.clh), shared by conv_gpu.c and conv_mma.c --- */

/* Returns the work as counted by the kernels: each contiguous range of k is rounded up to multiples of
 * `step`, each range of n to multiples of a vec4. */
cleat_tile_work cleat_conv_tile_work(const cleat_conv *conv, int64_t step);
/* Workspace bytes of a split k, all f32: the partial results, then the partial sums. */
int64_t cleat_conv_tiled_workspace(const cleat_node *node, cleat_tiling tiling);
/* Begins the launch of a GEMM with the defines common to both kernels. */
void cleat_conv_gemm_begin(cleat_binder *binder, const cleat_node *node, const cleat_conv *conv, cleat_tiling tiling,
                           const char *file, const char *kernel);
/* Ends the launch and, if k is split, adds up the parts. */
void cleat_conv_gemm_end(cleat_binder *binder, const cleat_node *node, const cleat_conv *conv, cleat_tiling tiling);

CLEAT_DECLARE_VARIANT(conv_gpu)
CLEAT_DECLARE_MMA_VARIANTS(conv)
CLEAT_DECLARE_VARIANT(conv_winograd) /* conv_winograd.c */

#endif
