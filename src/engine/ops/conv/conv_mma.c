/* Convolutions on matrix units, in f16 and bf16, and in f32 as one product of TF32 or three. Kernel:
 * cl/conv/conv_mma.cl. */
#include "ops/conv/conv.h"

enum { VEC8 = 8, VEC4 = 4, STEP = 32 /* multiple of every TILE_K */ };

/* Returns whether the rows that are read (channels of x and of the weight, features of dy) consist of whole
 * vectors. */
static bool aligned(const cleat_conv *c, int64_t vec) {
    return c->channels % vec == 0 && (c->kind == CLEAT_CONV_FORWARD || c->features % vec == 0);
}

static const char *refuse(const cleat_node *node) {
    const cleat_conv c = cleat_conv_of(node);
    const bool f32 = c.x->dtype == CLEAT_F32;
    if (aligned(&c, f32 ? VEC4 : VEC8)) return NULL;
    return f32 ? "the numbers of input channels, and for gradients output channels, must be multiples of 4"
               : "the numbers of input channels, and for gradients output channels, must be multiples of 8";
}

static cleat_tile_work tile_work(const cleat_node *node) {
    cleat_conv c = cleat_conv_of(node);
    cleat_tile_work work = cleat_conv_tile_work(&c, STEP);
    work.products = cleat_matrix_products(node);
    return work;
}

static void launch(cleat_binder *binder, const cleat_node *node, cleat_tiling tiling) {
    cleat_conv c = cleat_conv_of(node);
    cleat_conv_gemm_begin(binder, node, &c, tiling, "conv/conv_mma.cl", "conv_mma");
    if (node->tf32) cleat_launch_define(binder, "TF32_PRODUCTS", 1);
    cleat_launch_define(binder, "ALIGNED", c.kind != CLEAT_CONV_FORWARD || c.features % VEC4 == 0);
    cleat_conv_gemm_end(binder, node, &c, tiling);
}

CLEAT_MMA_VARIANTS(conv, .refuse = refuse, .work = tile_work, .workspace = cleat_conv_tiled_workspace, .launch = launch)
