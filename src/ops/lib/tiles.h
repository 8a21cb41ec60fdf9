/* How a matrix product of cl/lib/gemm_gpu.clh or cl/lib/gemm_mma.clh is cut for a card: the tile of a work-group, and the parts of k. */
#ifndef CLEAT_SRC_OPS_TILES_H
#define CLEAT_SRC_OPS_TILES_H

#include "graph/launch.h"

/* Where C has too few tiles to fill the device, groups share a tile and each sums a part of the k range. */
typedef struct cleat_k_split {
    int64_t depth, count;
} cleat_k_split;

enum { CLEAT_SPLITS_MAX = 64, CLEAT_SPLIT_STEP = 16 /* a multiple of TILE_K of every tile without matrix units */ };

/* A large tile makes 64 multiply-adds of 4 vec4s of local memory, a medium one 32 of 3, a small one 16 of 2; tall and wide ones are small
 * tiles for a C of few columns or rows. Those of matrix units are 128 x 128, 128 x 64 and 64 x 64. */
typedef enum cleat_tile_kind {
    CLEAT_TILE_LARGE,
    CLEAT_TILE_MEDIUM,
    CLEAT_TILE_SMALL,
    CLEAT_TILE_TALL,
    CLEAT_TILE_WIDE,
    CLEAT_TILE_KINDS, /* without matrix units */
    CLEAT_TILE_MMA_LARGE = CLEAT_TILE_KINDS,
    CLEAT_TILE_MMA_MEDIUM,
    CLEAT_TILE_MMA_SMALL,
    CLEAT_TILE_MMA_END,
    CLEAT_TILE_BEST = CLEAT_TILE_MMA_END /* the one that an estimate likes best */
} cleat_tile_kind;

typedef struct cleat_tile {
    /* Without matrix units what a work-item has, ITEM_M x ITEM_N elements, and ITEMS_N, the work-items side by side; with
     * them what a subgroup has, BLOCK_M x BLOCK_N products of 16 x 16, and SUBGROUPS_N. */
    int64_t item_m, item_n, items_n;
    int64_t rows, columns;    /* of C */
    int64_t step;             /* of k: TILE_K */
    double speed;             /* of the inner loop, beside the large tile's without matrix units */
    double prologue_epilogue; /* the way to the first step and from the last takes as long as so much depth */
} cleat_tile;

/* What the choice depends on: `products` products side by side, C [m, n] each, sums over k. */
typedef struct cleat_tile_work {
    int64_t gemms, m, n, k;
    int64_t intel_sums; /* so many sums of a work-item and no more stay in registers with Intel's compiler */
    bool whole;         /* k is not to be split */
} cleat_tile_work;

typedef struct cleat_tiling {
    cleat_tile_kind kind;
    int64_t tiles; /* of all products */
    cleat_k_split k;
} cleat_tiling;

/* Why such kernels cannot run at all, or NULL. */
const char *cleat_tiles_refuse(const cleat_device_facts *facts);
/* Why kernels on matrix units cannot multiply this type, or NULL. */
const char *cleat_matrix_refuse(const cleat_device_facts *facts, cleat_dtype dtype);
cleat_tile cleat_tile_of(cleat_tile_kind kind, const cleat_device_facts *facts);
/* Adds the tile's defines to the launch begun last. */
void cleat_launch_tile(cleat_binder *binder, cleat_tile_kind kind);

/* --- variants: a kernel with the tile that an estimate likes best, and for the tuner with each single one --- */

typedef struct cleat_tiled {
    bool mma; /* the tiles of matrix units, or those without */
    const char *(*refuse)(const cleat_node *node, const cleat_device_facts *facts); /* whatever the tile */
    cleat_tile_work (*work)(const cleat_node *node);
    int64_t (*workspace)(const cleat_node *node, cleat_tiling tiling);
    void (*launch)(cleat_binder *binder, const cleat_node *node, cleat_tiling tiling);
} cleat_tiled;

const char *cleat_tiled_refuse(const cleat_tiled *tiled, cleat_tile_kind kind, const cleat_node *node,
                               const cleat_device_facts *facts);
int64_t cleat_tiled_workspace(const cleat_tiled *tiled, cleat_tile_kind kind, const cleat_node *node,
                              const cleat_device_facts *facts);
void cleat_tiled_bind(const cleat_tiled *tiled, cleat_tile_kind kind, const cleat_node *node, cleat_binder *binder);

/* A variant's functions: declared for another file's list; made for a cleat_tiled with one kind of tile; and as a row of the list. */
#define CLEAT_DECLARE_VARIANT(id)                                                                                      \
    const char *cleat_refuse_##id(const cleat_node *node, const cleat_device_facts *facts);                            \
    int64_t cleat_workspace_##id(const cleat_node *node, const cleat_device_facts *facts);                             \
    void cleat_bind_##id(const cleat_node *node, cleat_binder *binder);
#define CLEAT_TILED_VARIANT(id, tiled, kind)                                                                           \
    CLEAT_DECLARE_VARIANT(id)                                                                                          \
    const char *cleat_refuse_##id(const cleat_node *node, const cleat_device_facts *facts) {                           \
        return cleat_tiled_refuse(&(tiled), kind, node, facts);                                                        \
    }                                                                                                                  \
    int64_t cleat_workspace_##id(const cleat_node *node, const cleat_device_facts *facts) {                            \
        return cleat_tiled_workspace(&(tiled), kind, node, facts);                                                     \
    }                                                                                                                  \
    void cleat_bind_##id(const cleat_node *node, cleat_binder *binder) {                                               \
        cleat_tiled_bind(&(tiled), kind, node, binder);                                                                \
    }
#define CLEAT_VARIANT_ROW(text, id)                                                                                    \
    { .name = text, .refuse = cleat_refuse_##id, .workspace = cleat_workspace_##id, .bind = cleat_bind_##id }

#endif
