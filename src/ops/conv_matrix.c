/* Convolutions in f16 and bf16 on matrix units. Kernel: cl/conv_matrix.cl. */
#include "ops/conv.h"

enum { OCTET = 8, QUAD = 4, STEP = 32 /* a multiple of every TILE_K */ };

/* Rows of what is read: channels of x and of the weight, features of dy. */
static bool whole_octets(const cleat_conv *c) {
    return c->channels % OCTET == 0 && (c->kind == CLEAT_CONV_FORWARD || c->features % OCTET == 0);
}

static const char *refuse(const cleat_node *node, const cleat_device_facts *facts) {
    cleat_conv c = cleat_conv_of(node);
    const char *why = cleat_matrix_refuse(facts, c.x->dtype);
    if (why) return why;
    return whole_octets(&c) ? NULL : "channels must be multiples of 8, and for gradients features";
}

static cleat_tile_work tile_work(const cleat_node *node) {
    cleat_conv c = cleat_conv_of(node);
    return cleat_conv_tile_work(&c, STEP);
}

static void launch(cleat_binder *binder, const cleat_node *node, cleat_tiling tiling) {
    cleat_conv c = cleat_conv_of(node);
    cleat_conv_product_begin(binder, node, &c, tiling, "conv_matrix.cl", "conv_matrix_product");
    cleat_launch_define(binder, "ALIGNED", c.kind != CLEAT_CONV_FORWARD || c.features % QUAD == 0);
    cleat_conv_product_end(binder, node, &c, tiling);
}

static const cleat_tiled tiled = {
    .matrix = true, .refuse = refuse, .work = tile_work, .workspace = cleat_conv_tiled_workspace, .launch = launch};
CLEAT_TILED_VARIANT(conv_matrix, tiled, CLEAT_TILE_BEST)
CLEAT_TILED_VARIANT(conv_matrix_large, tiled, CLEAT_TILE_MATRIX_LARGE)
CLEAT_TILED_VARIANT(conv_matrix_medium, tiled, CLEAT_TILE_MATRIX_MEDIUM)
CLEAT_TILED_VARIANT(conv_matrix_small, tiled, CLEAT_TILE_MATRIX_SMALL)
