/* The products of linear.c in f16 and bf16 on matrix units. Kernel: cl/linear_matrix.cl. */
#include "ops/linear.h"

enum { OCTET = 8, QUAD = 4 };

/* Rows of A and B as stored are whole octets, and so is each part of k. */
static bool whole_octets(const cleat_product *p) {
    return (p->trans_a ? p->m : p->k) % OCTET == 0 && (p->trans_b ? p->k : p->n) % OCTET == 0;
}

static void launch(cleat_binder *binder, const cleat_node *node, cleat_tiling s) {
    cleat_product p = cleat_linear_product(node);
    cleat_linear_begin(binder, node, &p, "linear_matrix.cl", "linear_matrix_product");
    cleat_launch_define(binder, "TRANS_A", p.trans_a);
    cleat_launch_define(binder, "TRANS_B", p.trans_b);
    cleat_launch_tile(binder, s.kind);
    cleat_launch_define(binder, "OCTETS", whole_octets(&p));
    cleat_launch_define(binder, "ALIGNED", p.n % QUAD == 0);
    cleat_linear_operands(binder, &p, s.k);
    cleat_launch_i32(binder, (int32_t)s.k.depth);
    cleat_launch_groups(binder, s.tiles * s.k.count);
    cleat_linear_reduces(binder, node, &p, s.k);
}

static const char *refuse(const cleat_node *node, const cleat_device_facts *facts) {
    return cleat_matrix_refuse(facts, cleat_linear_product(node).a->dtype);
}

static cleat_tile_work tile_work(const cleat_node *node) {
    cleat_product p = cleat_linear_product(node);
    return (cleat_tile_work){.products = 1, .m = p.m, .n = p.n, .k = p.k, .whole = p.bias != NULL};
}

static const cleat_tiled tiled = {
    .matrix = true, .refuse = refuse, .work = tile_work, .workspace = cleat_linear_tiled_workspace, .launch = launch};
CLEAT_TILED_VARIANT(linear_matrix, tiled, CLEAT_TILE_BEST)
CLEAT_TILED_VARIANT(linear_matrix_large, tiled, CLEAT_TILE_MATRIX_LARGE)
CLEAT_TILED_VARIANT(linear_matrix_medium, tiled, CLEAT_TILE_MATRIX_MEDIUM)
CLEAT_TILED_VARIANT(linear_matrix_small, tiled, CLEAT_TILE_MATRIX_SMALL)
