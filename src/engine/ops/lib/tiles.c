/* Selection of GEMM tiles: which tiles a device supports, their estimated time, and the best one. */
#include "ops/lib/tiles.h"
#include "core/kernel_shape.h"
#include "lib/shared_numbers.clh"
#include "ops/lib/count.h"

#include <math.h>

static const char *refuse_gpu(const cleat_device_facts *facts) {
    enum { LOCAL_BYTES = 18 * 1024 };
    if (facts->work_group < 32 || facts->work_group > 256) return "requires work-groups of 32 to 256";
    if (facts->vector_width != 4) return "requires a vector width of 4";
    if (facts->local_memory < LOCAL_BYTES) return "requires 18 KiB of local memory";
    return NULL;
}

static const char *refuse_device(const cleat_device_facts *facts) {
    enum { GROUP = 256, LOCAL_BYTES = 32 * 1024 };
    if (facts->work_group != GROUP || facts->vector_width != 4)
        return "requires work-groups of 256, and a vector width of 4";
    if (facts->local_memory < LOCAL_BYTES) return "requires 32 KiB of local memory";
    return NULL;
}

const char *cleat_matrix_refuse(const cleat_device_facts *facts, cleat_dtype dtype) {
    if (dtype == CLEAT_TF32 && facts->matrix_unit != CLEAT_MATRIX_NV80)
        return "only NVIDIA's matrix units from sm_80 on multiply TF32";
    if (facts->matrix_unit == CLEAT_MATRIX_NONE) return "no matrix unit of this device has passed its test";
    if (dtype != CLEAT_F16 && dtype != CLEAT_BF16 && dtype != CLEAT_TF32) return "matrix units multiply f16 and bf16";
    if (dtype == CLEAT_BF16 && !facts->matrix_bf16) return "this matrix unit does not multiply bf16";
    return refuse_device(facts);
}

/* The operands of a node have one type. */
static bool is_f32(const cleat_node *node) {
    return node->in[0]->dtype == CLEAT_F32;
}

int64_t cleat_matrix_products(const cleat_node *node) {
    return !is_f32(node) ? 1 : node->tf32 ? 2 : 6;
}

/* Work-items of a group. NVIDIA's units take their operands from local memory, whose bandwidth suffices only
 * if each subgroup computes 64 x 64 elements: the largest tile is for four subgroups. RDNA3's units issue
 * fewer instructions this way. The emulated unit follows NVIDIA's. */
static int64_t mma_work_group(const cleat_device_facts *facts) {
    const cleat_matrix_unit unit = facts->matrix_unit;
    bool four = unit == CLEAT_MATRIX_NV70 || unit == CLEAT_MATRIX_NV75 || unit == CLEAT_MATRIX_NV80 ||
                unit == CLEAT_MATRIX_AMD_WMMA || unit == CLEAT_MATRIX_EMULATED;
    return four ? 4 * cleat_matrix_subgroup_size(unit) : facts->work_group;
}

/* A tile for matrix units: `rows` x `columns` of C, divided among a group's subgroups in blocks as square as
 * possible. If there are more subgroups than fragments of 16 x 16, item_m or item_n is 0. */
static cleat_tile mma_tile(int64_t rows, int64_t columns, double speed, const cleat_device_facts *facts) {
    enum { FRAGMENT = 16 };
    int64_t work_group = mma_work_group(facts);
    int64_t subgroups = work_group / cleat_matrix_subgroup_size(facts->matrix_unit), across = 1;
    while (across * across * rows < subgroups * columns) across *= 2;
    /* With asynchronous copies a deeper step takes no registers, and halves the barriers. */
    const bool deep = rows + columns <= 128 || facts->matrix_unit == CLEAT_MATRIX_NV80;
    return (cleat_tile){.item_m = rows / FRAGMENT * across / (subgroups > 0 ? subgroups : 1),
                        .item_n = columns / FRAGMENT / across,
                        .items_n = across,
                        .rows = rows,
                        .columns = columns,
                        .step = deep ? 32 : 16,
                        .work_group = work_group,
                        .speed = speed};
}

/* AMD's dot instructions run on ordinary SIMD lanes and add two products each. Per product they read as many
 * bytes of local memory as f32 tiles with the same number of sums per work-item (64, 32, 16), so their speeds
 * are twice those. */
static cleat_tile dot_tile_of(cleat_tile_kind kind, const cleat_device_facts *facts) {
    if (kind == CLEAT_TILE_MMA_LARGE) return mma_tile(128, 128, 2, facts);
    if (kind == CLEAT_TILE_MMA_MEDIUM) return mma_tile(128, 64, 1.7, facts);
    return mma_tile(64, 64, 1.4, facts);
}

static cleat_tile mma_tile_of(cleat_tile_kind kind, const cleat_device_facts *facts) {
    if (facts->matrix_unit == CLEAT_MATRIX_AMD_DOT) return dot_tile_of(kind, facts);
    const double unit = facts->matrix_unit == CLEAT_MATRIX_NV80
                            ? 2
                            : 1; /* an A100's is twice a T4's; an RTX 3090's is not, and its k is split too rarely */
    if (kind == CLEAT_TILE_MMA_LARGE) return mma_tile(128, 128, unit * 6, facts);
    if (kind == CLEAT_TILE_MMA_MEDIUM) return mma_tile(128, 64, unit * 5, facts);
    return mma_tile(64, 64, unit * 3.5, facts);
}

/* Tiles with 8 x 8 sums per work-item: 64 multiply-adds on 4 vec4s from local memory. The smaller ones have
 * fewer work-items, and more groups share a compute unit. The thin ones have half as many sums. */
static cleat_tile items_tile(cleat_tile_kind kind) {
    static const cleat_tile t[] = {
        [CLEAT_TILE_LARGE] = {.item_m = 8, .item_n = 8, .items_n = 16, .work_group = 256, .speed = 1},
        [CLEAT_TILE_MEDIUM] = {.item_m = 8, .item_n = 8, .items_n = 8, .work_group = 128, .speed = 0.97},
        [CLEAT_TILE_SMALL] = {.item_m = 8, .item_n = 8, .items_n = 8, .work_group = 64, .speed = 0.93},
        [CLEAT_TILE_TALL] = {.item_m = 8, .item_n = 8, .items_n = 4, .work_group = 64, .speed = 0.9},
        [CLEAT_TILE_WIDE] = {.item_m = 8, .item_n = 8, .items_n = 16, .work_group = 64, .speed = 0.9},
        [CLEAT_TILE_TALL_THIN] = {.item_m = 8, .item_n = 4, .items_n = 4, .work_group = 64, .speed = 0.75},
        [CLEAT_TILE_WIDE_THIN] = {.item_m = 4, .item_n = 8, .items_n = 16, .work_group = 64, .speed = 0.75},
    };
    return t[kind];
}

/* Groups of the device's size in every tile: smaller ones have fewer sums per work-item. */
static cleat_tile group_tile(cleat_tile_kind kind, int64_t work_group) {
    enum { EDGE_ITEMS = 4 /* work-items along the short side of a tall or wide tile */ };
    int64_t square = work_group >= 128 ? 16 : 8;
    cleat_tile tall = {.item_m = 4, .item_n = 4, .items_n = EDGE_ITEMS, .speed = 0.6};
    cleat_tile wide = {.item_m = 4, .item_n = 4, .items_n = work_group / EDGE_ITEMS, .speed = 0.6};
    cleat_tile t[CLEAT_TILE_KINDS] = {
        [CLEAT_TILE_LARGE] = {.item_m = 8, .item_n = 8, .items_n = square, .speed = 1},
        [CLEAT_TILE_MEDIUM] = {.item_m = 8, .item_n = 4, .items_n = square, .speed = 0.85},
        [CLEAT_TILE_SMALL] = {.item_m = 4, .item_n = 4, .items_n = square, .speed = 0.7},
        [CLEAT_TILE_TALL] = tall,
        [CLEAT_TILE_WIDE] = wide,
        [CLEAT_TILE_TALL_THIN] = tall,
        [CLEAT_TILE_WIDE_THIN] = wide,
    };
    t[kind].work_group = work_group;
    return t[kind];
}

/* The speeds are estimates; cleat tune measures them. Intel's compiler spills 64 sums in most cases, and keeps tiles
 * with fewer. */
cleat_tile cleat_tile_of(cleat_tile_kind kind, const cleat_device_facts *facts) {
    enum { MAX_ITEMS = 256 };
    if (kind >= CLEAT_TILE_KINDS) return mma_tile_of(kind, facts);
    bool few_items = facts->vendor != CLEAT_VENDOR_INTEL && facts->work_group == MAX_ITEMS;
    cleat_tile t = few_items ? items_tile(kind) : group_tile(kind, facts->work_group);
    t.rows = t.work_group / t.items_n * t.item_m;
    t.columns = t.items_n * t.item_n;
    t.step = few_items || t.rows + t.columns > 128 ? 8 : 16;
    return t;
}

/* The smallest tile in which no subgroup is idle. */
static cleat_tile_kind sure_mma_tile(const cleat_device_facts *facts) {
    return cleat_matrix_subgroup_size(facts->matrix_unit) == 8 ? CLEAT_TILE_MMA_MEDIUM : CLEAT_TILE_MMA_SMALL;
}

/* Returns the reason why the tile is unsuitable for this work, or NULL. */
static const char *refuse_tile(const cleat_tile_work *work, cleat_tile_kind kind, const cleat_device_facts *facts) {
    cleat_tile t = cleat_tile_of(kind, facts);
    if (kind >= CLEAT_TILE_KINDS) return t.item_m * t.item_n == 0 ? "some of the sub-groups would be idle" : NULL;
    if (facts->vendor != CLEAT_VENDOR_INTEL || kind >= CLEAT_TILE_SMALL) return NULL;
    if (facts->sub_group == 0) return "the driver does not support a selectable sub-group size";
    return t.item_m * t.item_n > work->intel_sums ? "the accumulators would not fit in registers" : NULL;
}

/* Compute units of Intel GPUs are vector engines, each with 8 threads of one sub-group, or half as many for
 * kernels on matrix units, which use twice the registers: several of them run a group. */
static int64_t units_for(cleat_tile_kind kind, const cleat_device_facts *facts) {
    enum { ENGINE_THREADS = 8 };
    if (facts->vendor != CLEAT_VENDOR_INTEL) return units_of(facts);
    int64_t together = facts->sub_group > 0 ? facts->sub_group : 16;
    int64_t threads = kind < CLEAT_TILE_KINDS ? ENGINE_THREADS : ENGINE_THREADS / 2;
    int64_t groups = units_of(facts) * threads * together / facts->work_group;
    return groups > 0 ? groups : 1;
}

int64_t cleat_tile_resident(cleat_tile_kind kind, const cleat_device_facts *facts) {
    enum { REGISTERS_NVIDIA = 65536, REGISTERS_AMD = 131072 };
    if (facts->vendor == CLEAT_VENDOR_INTEL) return 1;
    const cleat_tile t = cleat_tile_of(kind, facts);
    const int64_t sums = t.rows * t.columns / t.work_group;
    const int64_t of_mma = sums >= 128 ? 256 : sums >= 64 ? 168 : 128, of_items = t.work_group == 256 ? 128 : 144;
    const int64_t all = facts->vendor == CLEAT_VENDOR_AMD ? REGISTERS_AMD : REGISTERS_NVIDIA;
    const int64_t groups = all / ((kind >= CLEAT_TILE_KINDS ? of_mma : of_items) * t.work_group);
    return groups > 0 ? groups : 1;
}

int64_t cleat_tiling_groups(cleat_tiling tiling) {
    return tiling.whole + (tiling.tiles - tiling.whole) * tiling.k.count;
}

/* Times are in clocks of a compute unit. A large tile without matrix units does 64 multiply-adds a clock. */
enum { MULTIPLY_ADDS = 64 };

/* Clocks for which a group's products keep the unit's schedulers busy. */
static double busy_time(const cleat_tile_work *work, const cleat_tile *t, int64_t depth) {
    return (double)(t->rows * t->columns * depth * max(work->products, 1)) / (MULTIPLY_ADDS * t->speed);
}
/* Clocks to store its sums, at 32 bytes per clock. */
static double store_time(const cleat_tile *t) {
    return (double)(t->rows * t->columns) / 8;
}

/* Clocks of a group that has its unit to itself. It waits for barriers, local memory and the first operands
 * half as long as it computes (H200, f32: 1700 clocks for a step of 1144 instructions), and longer if it does
 * not fill the four schedulers. */
static double group_time(const cleat_tile_work *work, const cleat_tile *t, int64_t depth,
                         const cleat_device_facts *facts) {
    enum { FILLING_ITEMS = 128, PROLOGUE = 2000 };
    const double waits = facts->vendor == CLEAT_VENDOR_INTEL ? 1 : 1.5;
    const double fills = (double)min(t->work_group, FILLING_ITEMS) / FILLING_ITEMS;
    return PROLOGUE + waits * busy_time(work, t, depth) / fills + store_time(t);
}

/* Estimated time of adding up the parts of a split k. A further launch reads them from memory: 100
 * multiply-adds per element at a T4's bandwidth. The last group of a tile, after waiting for the fences and
 * the counter, reads the parts from the L2 cache, LAST_GROUP_VECTORS vec4s per work-item at a time, each at
 * the cache's latency (fitted to an H200). */
static double time_of_parts(const cleat_tile_work *work, const cleat_tiling *s, const cleat_tile *t, double units,
                            const cleat_device_facts *facts) {
    const double launch = 8000, from_memory = 100.0 / MULTIPLY_ADDS, fences = 3500, latency = 650;
    const double count = (double)s->k.count;
    if (s->k.count == 1) return 0;
    if (!cleat_has_counters(facts, s->tiles - s->whole))
        return launch + from_memory * count * (double)(work->gemms * work->m * work->n) / units;
    return fences + latency * count * (double)ceil_div(t->rows * t->columns / 4, t->work_group * LAST_GROUP_VECTORS);
}

/* Estimated time of a tiling. A unit computes its share of the whole tiles and of the parts, as many at once
 * as fit in its registers. Its time is that of all their products, or of its consecutive groups, whichever is
 * longer. */
static double estimate(const cleat_tile_work *work, const cleat_tiling *s, const cleat_device_facts *facts) {
    const cleat_tile t = cleat_tile_of(s->kind, facts);
    const int64_t units = units_for(s->kind, facts), resident = cleat_tile_resident(s->kind, facts);
    const int64_t whole = ceil_div(s->whole, units), parts = ceil_div((s->tiles - s->whole) * s->k.count, units);
    const int64_t rounds = ceil_div(whole, resident), further = ceil_div(whole + parts, resident) - rounds;
    const double busy = (double)whole * (busy_time(work, &t, work->k) + store_time(&t)) +
                        (double)parts * (busy_time(work, &t, s->k.depth) + store_time(&t));
    const double waits = (double)rounds * group_time(work, &t, work->k, facts) +
                         (double)further * group_time(work, &t, s->k.depth, facts);
    return fmax(busy, waits) + time_of_parts(work, s, &t, (double)units, facts);
}

/* Splits the k of all tiles but the first `whole` into the number of parts with the shortest estimated time,
 * if that is shorter than the time of `best`. */
static void split_tiles(const cleat_tile_work *work, int64_t whole, const cleat_device_facts *facts,
                        cleat_tiling *best) {
    enum { DEPTH_MIN = 256, DEPTH_MIN_LAST_GROUP = 64 }; /* of a part */
    const cleat_tile t = cleat_tile_of(best->kind, facts);
    const bool last_group = cleat_has_counters(facts, best->tiles - whole);
    const int64_t depth_min = last_group ? DEPTH_MIN_LAST_GROUP : DEPTH_MIN;
    if ((work->bias || whole > 0) && !(work->uneven && last_group)) return;
    double least = estimate(work, best, facts);
    for (int64_t count = 2; count <= min(work->k / depth_min, CLEAT_SPLITS_MAX); ++count) {
        cleat_tiling next = *best;
        next.whole = whole;
        next.part_row = whole / ceil_div(work->n, t.columns) * t.rows;
        next.k.depth = round_up(ceil_div(work->k, count), max(t.step, CLEAT_SPLIT_STEP));
        next.k.count = ceil_div(work->k, next.k.depth);
        const double time = estimate(work, &next, facts);
        if (time < least) *best = next, least = time;
    }
}

/* The tiles in parts are all of them, those of the last wave of groups, or those of the last two waves. */
static cleat_tiling tiling_with(const cleat_tile_work *work, cleat_tile_kind kind, const cleat_device_facts *facts) {
    const cleat_tile t = cleat_tile_of(kind, facts);
    const int64_t tiles = work->gemms * ceil_div(work->m, t.rows) * ceil_div(work->n, t.columns);
    const int64_t units = units_for(kind, facts), waves = tiles / units;
    cleat_tiling best = {.kind = kind, .tiles = tiles, .whole = tiles, .k = {work->k, 1}};
    split_tiles(work, 0, facts, &best);
    if (waves >= 1 && tiles % units > 0) split_tiles(work, waves * units, facts, &best);
    if (waves >= 2) split_tiles(work, (waves - 1) * units, facts, &best);
    return best;
}

/* `sure`: a kind that every supported device can run */
static cleat_tiling best_of(const cleat_tile_work *work, cleat_tile_kind first, cleat_tile_kind end,
                            cleat_tile_kind sure, const cleat_device_facts *facts) {
    cleat_tiling best = tiling_with(work, sure, facts);
    for (cleat_tile_kind kind = first; kind < end; ++kind) {
        if (kind == sure || refuse_tile(work, kind, facts)) continue;
        const cleat_tiling next = tiling_with(work, kind, facts);
        if (estimate(work, &next, facts) < estimate(work, &best, facts)) best = next;
    }
    return best;
}

static cleat_tiling best_tiling(const cleat_tile_work *work, bool mma, const cleat_device_facts *facts) {
    if (mma) return best_of(work, CLEAT_TILE_MMA_LARGE, CLEAT_TILE_MMA_END, sure_mma_tile(facts), facts);
    return best_of(work, 0, CLEAT_TILE_KINDS, CLEAT_TILE_SMALL, facts);
}

/* --- variants ------------------------------------------------------------------------------------------------- */

static const char *refuse_operands(const cleat_tile_variant *tiled, const cleat_node *node,
                                   const cleat_device_facts *facts) {
    const bool rounds = is_f32(node) && node->tf32;
    if (tiled->tf32x3 && (!is_f32(node) || rounds)) return "only for f32 that is not rounded to TF32";
    return cleat_matrix_refuse(facts, tiled->tf32x3 || rounds ? CLEAT_TF32 : node->in[0]->dtype);
}

const char *cleat_tile_variant_refuse(const cleat_tile_variant *tiled, cleat_tile_kind kind, const cleat_node *node,
                                      const cleat_device_facts *facts) {
    const char *why = tiled->mma ? refuse_operands(tiled, node, facts) : refuse_gpu(facts);
    if (!why && tiled->refuse) why = tiled->refuse(node);
    if (why || kind == CLEAT_TILE_BEST) return why;
    cleat_tile_work work = tiled->work(node);
    cleat_tile t = cleat_tile_of(kind, facts);
    if (2 * work.m <= t.rows || 2 * work.n <= t.columns) return "most of such a tile would be empty";
    if (!tiled->tf32x3 && best_tiling(&work, tiled->mma, facts).kind == kind)
        return "the best tile according to the estimate";
    return refuse_tile(&work, kind, facts);
}

static cleat_tiling tiling_of(const cleat_tile_variant *tiled, cleat_tile_kind kind, const cleat_node *node,
                              const cleat_device_facts *facts) {
    cleat_tile_work work = tiled->work(node);
    return kind == CLEAT_TILE_BEST ? best_tiling(&work, tiled->mma, facts) : tiling_with(&work, kind, facts);
}

int64_t cleat_tile_variant_workspace(const cleat_tile_variant *tiled, cleat_tile_kind kind, const cleat_node *node,
                                     const cleat_device_facts *facts) {
    return tiled->workspace(node, tiling_of(tiled, kind, node, facts));
}

void cleat_tile_variant_bind(const cleat_tile_variant *tiled, cleat_tile_kind kind, const cleat_node *node,
                             cleat_binder *binder) {
    tiled->launch(binder, node, tiling_of(tiled, kind, node, binder->facts));
}

int64_t cleat_tile_step(cleat_tile_kind kind, cleat_dtype dtype, const cleat_device_facts *facts) {
    const int64_t step = cleat_tile_of(kind, facts).step;
    return kind >= CLEAT_TILE_KINDS && dtype == CLEAT_F32 ? step / 2 : step;
}

void cleat_launch_tile(cleat_binder *binder, cleat_tile_kind kind, cleat_dtype dtype) {
    cleat_tile t = cleat_tile_of(kind, binder->facts);
    cleat_launch_work_group(binder, t.work_group);
    cleat_launch_define(binder, "TILE_K", cleat_tile_step(kind, dtype, binder->facts));
    if (kind >= CLEAT_TILE_KINDS) {
        cleat_launch_matrix_unit(binder);
        CLEAT_LAUNCH_DEFINES(binder, {"BLOCK_M", t.item_m}, {"BLOCK_N", t.item_n}, {"SUBGROUPS_N", t.items_n});
        return;
    }
    CLEAT_LAUNCH_DEFINES(binder, {"ITEM_M", t.item_m}, {"ITEM_N", t.item_n}, {"ITEMS_N", t.items_n});
}

const char *cleat_refuse_groups(const cleat_node *node, const cleat_device_facts *facts) {
    (void)node;
    return facts->work_group == 1 ? NULL : "only for devices with work-groups of one work-item";
}

void cleat_launch_cpu_tile(cleat_binder *binder, const cleat_cpu_tile *tile) {
    CLEAT_LAUNCH_DEFINES(binder, {"TILE_ROWS", tile->tile_rows}, {"TILE_VECS", tile->tile_vecs}, {"CHUNK", tile->chunk},
                         {"BLOCK_ROWS", tile->block_rows}, {"BLOCK_PANELS", tile->block_panels});
    if (binder->facts->vendor == CLEAT_VENDOR_POCL) cleat_launch_define(binder, "BUILTIN_PREFETCH", 1);
}
