/* Partition of a matrix product: on a GPU (cl/lib/gemm_gpu.clh, cl/lib/gemm_mma.clh) the tile of a work-group
 * and the split of k, on a CPU the tile and the blocks of a work-item. */
#ifndef CLEAT_SRC_OPS_TILES_H
#define CLEAT_SRC_OPS_TILES_H

#include "graph/launch.h"

/* Split of k: several groups share a tile, and each sums over a part of the k range. */
typedef struct cleat_k_split {
    int64_t depth, count;
} cleat_k_split;

enum { CLEAT_SPLITS_MAX = 64, CLEAT_SPLIT_STEP = 16 /* a multiple of TILE_K of every tile without matrix units */ };

/* Per step of k, a work-item performs 64 multiply-adds on 4 vec4s from local memory in a large, medium or
 * small tile, which differ in their work-items: 256, 128, 64. So it does in tall and wide tiles, of 128 x 32
 * and 32 x 128 elements for a C with few columns or rows; the thin ones, with 16 columns or rows, have 32
 * multiply-adds on 3 vec4s. On Intel GPUs, and where groups are smaller, all tiles have the same number of
 * work-items: 64, 32, 16 multiply-adds in large, medium and small ones, 16 in the others. Tiles for matrix
 * units have 128 x 128, 128 x 64 and 64 x 64 elements. */
typedef enum cleat_tile_kind {
    CLEAT_TILE_LARGE,
    CLEAT_TILE_MEDIUM,
    CLEAT_TILE_SMALL,
    CLEAT_TILE_TALL,
    CLEAT_TILE_WIDE,
    CLEAT_TILE_TALL_THIN,
    CLEAT_TILE_WIDE_THIN,
    CLEAT_TILE_KINDS, /* number of kinds without matrix units */
    CLEAT_TILE_MMA_LARGE = CLEAT_TILE_KINDS,
    CLEAT_TILE_MMA_MEDIUM,
    CLEAT_TILE_MMA_SMALL,
    CLEAT_TILE_MMA_END,
    CLEAT_TILE_BEST = CLEAT_TILE_MMA_END /* the kind with the shortest estimated time */
} cleat_tile_kind;

typedef struct cleat_tile {
    /* Passed to the kernels as -D: ITEM_M, ITEM_N, ITEMS_N (gemm_gpu.clh) or BLOCK_M, BLOCK_N, SUBGROUPS_N
     * (gemm_mma.clh). */
    int64_t item_m, item_n, items_n;
    int64_t rows, columns; /* size of the tile in C */
    int64_t step;          /* TILE_K */
    int64_t work_group;    /* WG of its kernels */
    double speed;          /* of the inner loop, relative to the large tile without matrix units */
} cleat_tile;

/* Input of the selection: `gemms` independent products, each with C [m, n] and sums over k. */
typedef struct cleat_tile_work {
    int64_t gemms, m, n, k;
    /* Largest number of sums per work-item that Intel's compiler keeps in registers. */
    int64_t intel_sums;
    int64_t products; /* time of a multiply-add, relative to one at the tile's speed; 0: 1 */
    bool bias;        /* C has one, which only the last group of a tile can add if k is split; otherwise k is whole */
    bool uneven;      /* its kernel can split the k of some tiles only, if a tile's last group adds up its parts */
} cleat_tile_work;

/* If C has too few tiles to fill the device, the k of all of them is split. If it has more, the last wave of
 * groups would leave units idle: the first tiles are then whole, as many as fill the device once or several
 * times, and the others split. */
typedef struct cleat_tiling {
    cleat_tile_kind kind;
    int64_t tiles;    /* of all GEMMs */
    int64_t whole;    /* the first ones, each computed by one group; all if k.count == 1 */
    int64_t part_row; /* the first row of C that has parts; 0 if k.count == 1 */
    cleat_k_split k;  /* of the others */
} cleat_tiling;

/* Number of groups. */
int64_t cleat_tiling_groups(cleat_tiling tiling);

/* Returns the reason why matrix units cannot multiply this type, or NULL. */
const char *cleat_matrix_refuse(const cleat_device_facts *facts, cleat_dtype dtype);
/* Time of a multiply-add of the node's operands on matrix units, relative to f16: TF32 has half the rate, and
 * f32 that is not rounded to TF32 takes three products. */
int64_t cleat_matrix_products(const cleat_node *node);
cleat_tile cleat_tile_of(cleat_tile_kind kind, const cleat_device_facts *facts);
/* Number of groups that a compute unit's registers hold at once: estimates from the registers that ptxas and
 * clang allocate to the tiles' kernels. 1 on Intel GPUs, because there a unit of the model runs one group. */
int64_t cleat_tile_resident(cleat_tile_kind kind, const cleat_device_facts *facts);
/* TILE_K of its kernels: `step`, or half of it for f32 on matrix units, where a value takes two halves. */
int64_t cleat_tile_step(cleat_tile_kind kind, cleat_dtype dtype, const cleat_device_facts *facts);
/* Adds the tile's defines to the most recent launch, whose operands are of this type. */
void cleat_launch_tile(cleat_binder *binder, cleat_tile_kind kind, cleat_dtype dtype);

/* For cleat_variant.refuse: refuses devices with work-groups of several work-items. */
const char *cleat_refuse_groups(const cleat_node *node, const cleat_device_facts *facts);

/* Partition of a product on a CPU (cl/lib/gemm_cpu.clh): members are the -D of the kernels, by their names. */
typedef struct cleat_cpu_tile {
    int64_t tile_rows, tile_vecs, chunk, block_rows, block_panels;
} cleat_cpu_tile;

/* Adds them to the most recent launch. */
void cleat_launch_cpu_tile(cleat_binder *binder, const cleat_cpu_tile *tile);

/* --- variants: a kernel with the best tile by estimate, and for the tuner with each single tile --- */

typedef struct cleat_tile_variant {
    bool mma; /* use the tiles for matrix units; f32 operands are rounded to TF32, and refused if they must not be */
    /* The same for f32 operands as three products of TF32 (mma_nvidia.clh). Such variants are for the tuner:
     * on a card whose f32 lanes are as fast as a third of its TF32, such as an RTX 3090, they gain nothing.
     * The largest tile would spill across k. */
    bool tf32x3;
    const char *(*refuse)(const cleat_node *node); /* requirements of every tile on the shapes; NULL: none */
    cleat_tile_work (*work)(const cleat_node *node);
    int64_t (*workspace)(const cleat_node *node, cleat_tiling tiling);
    void (*launch)(cleat_binder *binder, const cleat_node *node, cleat_tiling tiling);
} cleat_tile_variant;

const char *cleat_tile_variant_refuse(const cleat_tile_variant *tiled, cleat_tile_kind kind, const cleat_node *node,
                                      const cleat_device_facts *facts);
int64_t cleat_tile_variant_workspace(const cleat_tile_variant *tiled, cleat_tile_kind kind, const cleat_node *node,
                                     const cleat_device_facts *facts);
void cleat_tile_variant_bind(const cleat_tile_variant *tiled, cleat_tile_kind kind, const cleat_node *node,
                             cleat_binder *binder);

/* The functions of a variant: their declaration for use in another file; their definition for a cleat_tile_variant
 * with one kind of tile; and the variant as a table row. */
#define CLEAT_DECLARE_VARIANT(id)                                                                                      \
    const char *cleat_refuse_##id(const cleat_node *node, const cleat_device_facts *facts);                            \
    int64_t cleat_workspace_##id(const cleat_node *node, const cleat_device_facts *facts);                             \
    void cleat_bind_##id(const cleat_node *node, cleat_binder *binder);
#define CLEAT_TILED_VARIANT(id, tiled, kind)                                                                           \
    CLEAT_DECLARE_VARIANT(id)                                                                                          \
    const char *cleat_refuse_##id(const cleat_node *node, const cleat_device_facts *facts) {                           \
        return cleat_tile_variant_refuse(&(tiled), kind, node, facts);                                                 \
    }                                                                                                                  \
    int64_t cleat_workspace_##id(const cleat_node *node, const cleat_device_facts *facts) {                            \
        return cleat_tile_variant_workspace(&(tiled), kind, node, facts);                                              \
    }                                                                                                                  \
    void cleat_bind_##id(const cleat_node *node, cleat_binder *binder) {                                               \
        cleat_tile_variant_bind(&(tiled), kind, node, binder);                                                         \
    }
/* The variants of a kernel for matrix units: for each tile, and as three products of TF32. */
#define CLEAT_MMA_VARIANTS(id, ...)                                                                                    \
    static const cleat_tile_variant mma = {.mma = true, __VA_ARGS__},                                                  \
                                    tf32x3 = {.mma = true, .tf32x3 = true, __VA_ARGS__};                               \
    CLEAT_TILED_VARIANT(id##_mma, mma, CLEAT_TILE_BEST)                                                                \
    CLEAT_TILED_VARIANT(id##_mma_large, mma, CLEAT_TILE_MMA_LARGE)                                                     \
    CLEAT_TILED_VARIANT(id##_mma_medium, mma, CLEAT_TILE_MMA_MEDIUM)                                                   \
    CLEAT_TILED_VARIANT(id##_mma_small, mma, CLEAT_TILE_MMA_SMALL)                                                     \
    CLEAT_TILED_VARIANT(id##_tf32_medium, tf32x3, CLEAT_TILE_MMA_MEDIUM)                                               \
    CLEAT_TILED_VARIANT(id##_tf32_small, tf32x3, CLEAT_TILE_MMA_SMALL)
#define CLEAT_DECLARE_MMA_VARIANTS(id)                                                                                 \
    CLEAT_DECLARE_VARIANT(id##_mma)                                                                                    \
    CLEAT_DECLARE_VARIANT(id##_mma_large)                                                                              \
    CLEAT_DECLARE_VARIANT(id##_mma_medium)                                                                             \
    CLEAT_DECLARE_VARIANT(id##_mma_small)                                                                              \
    CLEAT_DECLARE_VARIANT(id##_tf32_medium)                                                                            \
    CLEAT_DECLARE_VARIANT(id##_tf32_small)
#define CLEAT_VARIANT_ROW(text, id)                                                                                    \
    { .name = text, .refuse = cleat_refuse_##id, .workspace = cleat_workspace_##id, .bind = cleat_bind_##id }

#endif
