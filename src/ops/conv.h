/* Between conv.c (what the ops compute) and conv_launch.c, conv_groups.c (how they run). */
#ifndef CLEAT_SRC_OPS_CONV_H
#define CLEAT_SRC_OPS_CONV_H

#include "graph/launch.h"

typedef enum cleat_conv_kind {
    CLEAT_CONV_FORWARD, /* out = y: in = {x, weight} */
    CLEAT_CONV_DX,      /* out = dx: in = {dy, weight} */
    CLEAT_CONV_DW,      /* out = dweight (of dy's type, or f32): in = {dy, x} */
} cleat_conv_kind;

/* One of a convolution's three products, out = addend + bias + product; sums = sums_addend + the sums of dy over all
 * pixels (with DW only: the bias's gradient). x [B, H, W, C], weight [N, R, S, C], y [B, P, Q, N]. */
typedef struct cleat_conv {
    cleat_conv_kind kind;
    const cleat_tensor *x, *weight, *y;                     /* or their gradients; of each kind one is the result */
    const cleat_tensor *bias, *addend, *sums_addend, *sums; /* any may be NULL */
    int64_t batch, height, width, channels;                 /* B, H, W, C */
    int64_t rows, columns, features;                        /* P, Q, N */
    int64_t kernel_rows, kernel_columns;                    /* R, S */
    int64_t stride, padding;
} cleat_conv;

/* The product a node of one of the conv ops stands for. */
cleat_conv cleat_conv_of(const cleat_node *node);

extern const cleat_variant cleat_conv_variants[]; /* conv_launch.c */

/* Appends the eleven numbers that kernels know as GEOMETRY (cl/conv.clh). */
void cleat_conv_launch_geometry(cleat_binder *binder, const cleat_conv *conv);

/* Tells the kernel that is being launched where its result is f32 and its operands are not (cl/result.clh). */
void cleat_conv_launch_result(cleat_binder *binder, const cleat_conv *conv);

/* For cards (conv_groups.c): work-groups with local memory. A row of each op's list of variants. */
const char *cleat_conv_groups_refuse(const cleat_node *node, const cleat_device_facts *facts);
int64_t cleat_conv_groups_workspace(const cleat_node *node, const cleat_device_facts *facts);
cleat_status cleat_conv_groups_bind(const cleat_node *node, const cleat_device_facts *facts, cleat_binder *binder,
                                    cleat_error *error);

#endif
