/* The products of linear.c in f16 and bf16 on matrix units. Kernel: cl/linear_matrix.cl. */
#include "ops/linear.h"

enum { OCTET = 8, QUAD = 4 };

static cleat_tile_work tile_work(const cleat_product *p) {
    return (cleat_tile_work){.products = 1, .m = p->m, .n = p->n, .k = p->k, .whole = p->bias != NULL};
}

static cleat_tiling best_tiling(const cleat_product *p, const cleat_device_facts *facts) {
    cleat_tile_work work = tile_work(p);
    return cleat_tile_best_matrix(&work, facts);
}

static cleat_tiling tiling_with(const cleat_product *p, cleat_tile_kind kind, const cleat_device_facts *facts) {
    cleat_tile_work work = tile_work(p);
    return cleat_tile_with(&work, kind, facts);
}

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

const char *cleat_refuse_linear_matrix(const cleat_node *node, const cleat_device_facts *facts) {
    return cleat_matrix_refuse(facts, cleat_linear_product(node).a->dtype);
}
int64_t cleat_workspace_linear_matrix(const cleat_node *node, const cleat_device_facts *facts) {
    cleat_product p = cleat_linear_product(node);
    return cleat_linear_split_bytes(&p, best_tiling(&p, facts).k);
}
cleat_status cleat_bind_linear_matrix(const cleat_node *node, const cleat_device_facts *facts, cleat_binder *binder,
                                      cleat_error *error) {
    (void)error;
    cleat_product p = cleat_linear_product(node);
    launch(binder, node, best_tiling(&p, facts));
    return CLEAT_OK;
}

/* The same with one tile, for the tuner. */
static const char *refuse_kind(const cleat_node *node, cleat_tile_kind kind, const cleat_device_facts *facts) {
    const char *why = cleat_refuse_linear_matrix(node, facts);
    if (why) return why;
    cleat_product p = cleat_linear_product(node);
    cleat_tile_work work = tile_work(&p);
    cleat_tile t = cleat_tile_of(kind, facts);
    if (2 * p.m <= t.rows || 2 * p.n <= t.columns) return "most of such a tile would be empty";
    return best_tiling(&p, facts).kind == kind ? "the same as matrix" : cleat_tile_refuse(&work, kind, facts);
}

#define TILE_VARIANT(name, kind)                                                                                       \
    const char *cleat_refuse_##name(const cleat_node *node, const cleat_device_facts *facts) {                         \
        return refuse_kind(node, kind, facts);                                                                         \
    }                                                                                                                  \
    int64_t cleat_workspace_##name(const cleat_node *node, const cleat_device_facts *facts) {                          \
        cleat_product p = cleat_linear_product(node);                                                                  \
        return cleat_linear_split_bytes(&p, tiling_with(&p, kind, facts).k);                                           \
    }                                                                                                                  \
    cleat_status cleat_bind_##name(const cleat_node *node, const cleat_device_facts *facts, cleat_binder *binder,      \
                                   cleat_error *error) {                                                               \
        (void)error;                                                                                                   \
        cleat_product p = cleat_linear_product(node);                                                                  \
        launch(binder, node, tiling_with(&p, kind, facts));                                                            \
        return CLEAT_OK;                                                                                               \
    }
TILE_VARIANT(linear_matrix_large, CLEAT_TILE_MATRIX_LARGE)
TILE_VARIANT(linear_matrix_medium, CLEAT_TILE_MATRIX_MEDIUM)
TILE_VARIANT(linear_matrix_small, CLEAT_TILE_MATRIX_SMALL)
