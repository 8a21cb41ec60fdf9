/* The GEMMs of linear.c on matrix units, in f16 and bf16, and in f32 as one product of TF32 or three. Kernel:
 * cl/linear/linear_mma.cl. */
#include "ops/linear/linear.h"

enum { VEC8 = 8, VEC4 = 4 };

/* Returns whether the stored rows of A and B, and each part of k, consist of whole vec8s of halves, which are
 * vec4s of f32. */
static bool aligned8(const cleat_gemm *p) {
    const int64_t vec = p->a->dtype == CLEAT_F32 ? VEC4 : VEC8;
    return (p->trans_a ? p->m : p->k) % vec == 0 && (p->trans_b ? p->k : p->n) % vec == 0;
}

static void launch(cleat_binder *binder, const cleat_node *node, cleat_tiling s) {
    cleat_gemm p = cleat_linear_gemm(node);
    cleat_linear_begin(binder, node, &p, "linear/linear_mma.cl", "linear_mma");
    CLEAT_LAUNCH_DEFINES(binder, {"TRANS_A", p.trans_a}, {"TRANS_B", p.trans_b});
    cleat_launch_tile(binder, s.kind, p.a->dtype);
    cleat_launch_define(binder, "ALIGNED8", aligned8(&p));
    if (node->tf32) cleat_launch_define(binder, "TF32_PRODUCTS", 1);
    cleat_launch_define(binder, "ALIGNED", p.n % VEC4 == 0);
    cleat_linear_tiles(binder, node, &p, s);
}

static const char *refuse(const cleat_node *node) {
    const cleat_gemm p = cleat_linear_gemm(node);
    return p.a->dtype != CLEAT_F32 || aligned8(&p) ? NULL : "the rows of both operands must be multiples of 4";
}

static cleat_tile_work tile_work(const cleat_node *node) {
    cleat_gemm p = cleat_linear_gemm(node);
    return (cleat_tile_work){.gemms = 1,
                             .m = p.m,
                             .n = p.n,
                             .k = p.k,
                             .products = cleat_matrix_products(node),
                             .bias = p.bias != NULL,
                             .uneven = true};
}

CLEAT_MMA_VARIANTS(linear, .refuse = refuse, .work = tile_work, .workspace = cleat_linear_tiled_workspace,
                   .launch = launch)
