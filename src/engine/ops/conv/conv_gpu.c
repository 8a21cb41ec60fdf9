/* Convolutions on GPUs as implicit GEMMs by work-groups with local memory, and the code shared with matrix
 * units (conv_mma.c). Kernel: cl/conv/conv_gpu.cl. */
#include "ops/conv/conv.h"

#include "ops/lib/count.h"
#include "ops/linear/linear.h"

enum { FLOAT_BYTES = 4, VEC4 = 4 };

/* --- common to all GEMMs ----------------------------------------------------------------------------------------- */

cleat_tile_work cleat_conv_tile_work(const cleat_conv *c, int64_t step) {
    cleat_tile_work work = {.gemms = 1};
    int64_t pixels = c->batch * c->rows * c->columns, run = c->kernel_columns * c->channels;
    switch (c->kind) {
    case CLEAT_CONV_FORWARD:
        work.m = pixels;
        work.n = c->features;
        work.k = c->kernel_rows * round_up(run, step);
        break;
    case CLEAT_CONV_DX: /* one GEMM per phase, each as large as the largest */
        work.gemms = c->stride * c->stride;
        work.m = c->batch * ceil_div(c->height, c->stride) * ceil_div(c->width, c->stride);
        work.n = c->channels;
        work.k =
            ceil_div(c->kernel_rows, c->stride) * ceil_div(c->kernel_columns, c->stride) * round_up(c->features, step);
        break;
    case CLEAT_CONV_DW:
        work.m = c->features;
        work.n = c->kernel_rows * round_up(run, VEC4);
        work.k = pixels;
        break;
    }
    return work;
}

static const cleat_tensor *result_of(const cleat_conv *c) {
    return c->kind == CLEAT_CONV_FORWARD ? c->y : c->kind == CLEAT_CONV_DX ? c->x : c->weight;
}

static int64_t parts_bytes(const cleat_conv *c, cleat_tiling tiling) {
    return tiling.k.count * cleat_tensor_elements(result_of(c)) * FLOAT_BYTES;
}

int64_t cleat_conv_tiled_workspace(const cleat_node *node, cleat_tiling tiling) {
    cleat_conv c = cleat_conv_of(node);
    if (tiling.k.count == 1) return 0;
    return parts_bytes(&c, tiling) + (c.sums ? tiling.k.count * c.features * FLOAT_BYTES : 0);
}

/* Adds the result tensors, or the workspace without the accums if k is split; both if the kernel adds up the
 * parts itself (`reduced`). */
static void launch_tensors(cleat_binder *binder, const cleat_conv *c, cleat_tiling tiling, bool reduced) {
    const bool whole = tiling.k.count == 1 || reduced;
    CLEAT_LAUNCH_TENSORS(binder, c->kind == CLEAT_CONV_FORWARD ? c->x : c->y,
                         c->kind == CLEAT_CONV_DW ? c->x : c->weight, c->bias, whole ? c->accum : NULL, result_of(c),
                         whole ? c->sums_accum : NULL);
    cleat_launch_floats_or(binder, !whole && c->sums, parts_bytes(c, tiling), c->sums);
    cleat_launch_floats_or(binder, tiling.k.count > 1, 0, NULL);
}

void cleat_conv_gemm_begin(cleat_binder *binder, const cleat_node *node, const cleat_conv *c, cleat_tiling tiling,
                           const char *file, const char *kernel) {
    cleat_launch_kernel(binder, node, file, kernel, c->x->dtype);
    cleat_conv_launch_result(binder, c);
    cleat_launch_define(binder, "CONV_KIND", c->kind);
    if (c->kind == CLEAT_CONV_DX) cleat_launch_define(binder, "PHASES", c->stride > 1);
    cleat_launch_tile(binder, tiling.kind, c->x->dtype);
}

void cleat_conv_gemm_end(cleat_binder *binder, const cleat_node *node, const cleat_conv *c, cleat_tiling tiling) {
    const bool reduced = tiling.k.count > 1 && cleat_has_counters(binder->facts, tiling.tiles);
    launch_tensors(binder, c, tiling, reduced);
    cleat_conv_launch_geometry(binder, c);
    const int64_t step = cleat_tile_step(tiling.kind, c->x->dtype, binder->facts);
    cleat_launch_i32(binder, "split_steps", (int32_t)ceil_div(tiling.k.depth, step));
    cleat_launch_counters(binder, reduced);
    cleat_launch_groups(binder, tiling.tiles * tiling.k.count);
    if (tiling.k.count == 1 || reduced) return;
    cleat_launch_reduce(binder, node, 0, c->accum, result_of(c), tiling.k.count);
    if (c->sums) cleat_launch_reduce(binder, node, parts_bytes(c, tiling), c->sums_accum, c->sums, tiling.k.count);
}

/* --- without matrix units ---------------------------------------------------------------------------------------- */

/* ALIGNED4 of the kernel. */
static bool aligned4(const cleat_conv *c) {
    return c->channels % VEC4 == 0 && (c->kind == CLEAT_CONV_FORWARD || c->features % VEC4 == 0);
}

/* Address computation for the patches takes registers: ocloc 22.43 spills 64 sums, and also 32 if the
 * computation is long. */
static int64_t intel_sums(const cleat_conv *c) {
    bool short_way = c->kind == CLEAT_CONV_FORWARD || (c->kind == CLEAT_CONV_DW && aligned4(c));
    return c->x->dtype == CLEAT_F32 && short_way ? 32 : 16;
}

static cleat_tile_work tile_work(const cleat_node *node) {
    cleat_conv c = cleat_conv_of(node);
    cleat_tile_work work = cleat_conv_tile_work(&c, CLEAT_SPLIT_STEP);
    work.intel_sums = intel_sums(&c);
    return work;
}

static void launch(cleat_binder *binder, const cleat_node *node, cleat_tiling tiling) {
    cleat_conv c = cleat_conv_of(node);
    cleat_conv_gemm_begin(binder, node, &c, tiling, "conv/conv_gpu.cl", "conv_gpu");
    cleat_launch_define(binder, "ALIGNED4", aligned4(&c));
    if (aligned4(&c) && c.features % VEC4 == 0) cleat_launch_define(binder, "ALIGNED", 1);
    cleat_conv_gemm_end(binder, node, &c, tiling);
}

static const cleat_tile_variant tiled = {.work = tile_work, .workspace = cleat_conv_tiled_workspace, .launch = launch};
CLEAT_TILED_VARIANT(conv_gpu, tiled, CLEAT_TILE_BEST)
