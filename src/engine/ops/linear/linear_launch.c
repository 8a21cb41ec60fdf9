/* Launches of the GEMMs of linear.c: CLBlast, register tiles for work-groups or for wide SIMD lanes, a kernel
 * for few columns, and a generic one. Kernels: cl/linear/linear.cl. */
#include "ops/linear/linear.h"

#include "ops/fusible.h"
#include "ops/lib/count.h"
#include "ops/lib/tiles.h"

enum {
    FLOAT_BYTES = 4,
    SPLIT_DEPTH_MIN = 512,   /* minimum depth of a part of a split k */
    NARROW_COLUMNS = 16,     /* up to this number of columns the narrow kernel is used */
    NARROW_ROWS = 32,        /* rows per work-item of the narrow kernel */
    ROW_COLUMNS = 4,         /* of a product with one row: columns that are summed at once */
    ROW_GROUP = 64,          /* work-items per group of its kernel, if not one */
    CLBLAST_EXTENT_MIN = 32, /* below it, padding costs more than CLBlast gains */
    CLBLAST_ROWS = 16384     /* rows of a batch per call: CLBlast copies them */
};

/* --- splitting k ---------------------------------------------------------------------------------------------- */

static cleat_k_split split_k(const cleat_gemm *p, int64_t tiles, int64_t wanted, int64_t step) {
    if (p->bias || tiles >= wanted || p->k < 2 * SPLIT_DEPTH_MIN) return (cleat_k_split){p->k, 1};
    int64_t count = min(min(ceil_div(wanted, tiles), p->k / SPLIT_DEPTH_MIN), CLEAT_SPLITS_MAX);
    int64_t depth = round_up(ceil_div(p->k, count), step);
    return (cleat_k_split){depth, ceil_div(p->k, depth)};
}

/* Workspace bytes of the parts of the last `rows` rows of C, and of the sums. */
static int64_t split_bytes(const cleat_gemm *p, cleat_k_split s, int64_t rows) {
    return s.count > 1 ? s.count * (rows * p->n + (p->sums ? p->m : 0)) * FLOAT_BYTES : 0;
}

void cleat_linear_begin(cleat_binder *binder, const cleat_node *node, const cleat_gemm *p, const char *file,
                        const char *kernel) {
    cleat_launch_kernel(binder, node, file, kernel, p->a->dtype);
    if (p->c->dtype != p->a->dtype) cleat_launch_define(binder, "C_F32", 1);
    if (p->epilogue) cleat_launch_define(binder, "EPILOGUE", p->epilogue);
    if (cleat_linear_blocks(p)) cleat_launch_define(binder, "BLOCKS", cleat_linear_blocks(p));
}

/* Adds the remaining arguments of a reduction whose kernel is already launched, and its size. */
static void launch_parts(cleat_binder *binder, int64_t workspace_offset, const cleat_tensor *accum,
                         const cleat_tensor *saved, const cleat_tensor *out, int64_t count) {
    int64_t elements = cleat_tensor_elements(out);
    cleat_launch_workspace(binder, workspace_offset, FLOAT_BYTES);
    CLEAT_LAUNCH_TENSORS(binder, accum, saved, out);
    cleat_launch_i64(binder, "n", elements);
    cleat_launch_i32(binder, "splits", (int32_t)count);
    cleat_launch_items(binder, ceil_div(elements, binder->facts->vector_width));
}

void cleat_launch_reduce(cleat_binder *binder, const cleat_node *node, int64_t workspace_offset,
                         const cleat_tensor *accum, const cleat_tensor *out, int64_t count) {
    cleat_launch_vector_kernel(binder, node, "linear/linear.cl", "linear_reduce", out->dtype,
                               cleat_tensor_elements(out));
    launch_parts(binder, workspace_offset, accum, NULL, out, count);
}

/* Adds tensors and sizes of a kernel that reads the operands and stores C. The results are C and sums, or
 * parts in the workspace if k is split, which the kernel itself adds up if `reduced`. */
static void operands(cleat_binder *binder, const cleat_gemm *p, cleat_k_split s, bool reduced) {
    const bool whole = s.count == 1 || reduced;
    CLEAT_LAUNCH_TENSORS(binder, p->a, p->b, p->bias, whole ? p->accum : NULL, p->saved, p->c,
                         whole ? p->sums_accum : NULL);
    cleat_launch_floats_or(binder, !whole && p->sums, s.count * p->m * p->n * FLOAT_BYTES, p->sums);
    cleat_launch_floats_or(binder, s.count > 1, 0, NULL);
    CLEAT_LAUNCH_I32(binder, {"M", p->m}, {"N", p->n}, {"K", p->k});
}

/* Launches the kernels that add up the parts if k is split. */
static void launch_reduces(cleat_binder *binder, const cleat_node *node, const cleat_gemm *p, cleat_k_split s) {
    if (s.count == 1) return;
    cleat_launch_vector_kernel(binder, node, "linear/linear.cl", "linear_reduce", p->c->dtype,
                               cleat_tensor_elements(p->c));
    if (p->epilogue) cleat_launch_define(binder, "EPILOGUE", p->epilogue);
    launch_parts(binder, 0, p->accum, p->saved, p->c, s.count);
    if (p->sums)
        cleat_launch_reduce(binder, node, s.count * p->m * p->n * FLOAT_BYTES, p->sums_accum, p->sums, s.count);
}

/* --- sums only ------------------------------------------------------------------------------------------------ */

static cleat_k_split split_sums(const cleat_gemm *p) {
    int64_t depth = ceil_div(p->k, min(CLEAT_SPLITS_MAX, ceil_div(p->k, CLEAT_SPLITS_MAX)));
    return (cleat_k_split){depth, ceil_div(p->k, depth)};
}

/* `workspace_offset` < 0: one launch, with each column summed in one part. */
static void launch_sums(cleat_binder *binder, const cleat_node *node, const cleat_gemm *p, int64_t workspace_offset) {
    cleat_k_split s = workspace_offset < 0 ? (cleat_k_split){p->k, 1} : split_sums(p);
    cleat_launch_vector_kernel(binder, node, "linear/linear.cl", "linear_sums", p->a->dtype, p->m);
    CLEAT_LAUNCH_TENSORS(binder, p->a, s.count > 1 ? NULL : p->sums_accum);
    cleat_launch_floats_or(binder, s.count > 1, workspace_offset, p->sums);
    CLEAT_LAUNCH_I32(binder, {"rows", p->k}, {"N", p->m}, {"depth", s.depth});
    cleat_launch_items(binder, s.count * ceil_div(p->m, binder->facts->vector_width));
    if (s.count > 1) cleat_launch_reduce(binder, node, workspace_offset, p->sums_accum, p->sums, s.count);
}

static int64_t sums_workspace(const cleat_node *node, const cleat_device_facts *facts) {
    (void)facts;
    cleat_gemm p = cleat_linear_gemm(node);
    return p.sums ? split_sums(&p).count * p.m * FLOAT_BYTES : 0;
}

static void bind_sums(const cleat_node *node, cleat_binder *binder) {
    cleat_gemm p = cleat_linear_gemm(node);
    launch_sums(binder, node, &p, 0);
}

static void bind_sums_plain(const cleat_node *node, cleat_binder *binder) {
    cleat_gemm p = cleat_linear_gemm(node);
    launch_sums(binder, node, &p, -1);
}

/* --- CLBlast -------------------------------------------------------------------------------------------------- */

/* The rows of the batch (m of A, or k of a transposed A) are passed to CLBlast in equal pieces, so that its
 * copies of them do not grow with the batch. The pieces are multiples of a tile, so that their starts are
 * aligned and copies may be avoided. */
static cleat_k_split split_rows(const cleat_gemm *p) {
    int64_t rows = p->trans_a ? p->k : p->m;
    int64_t depth = round_up(ceil_div(rows, ceil_div(rows, CLBLAST_ROWS)), 128);
    return (cleat_k_split){depth, ceil_div(rows, depth)};
}

/* Returns the tensor that receives the sum before the epilogue. */
static const cleat_tensor *sum_of(const cleat_gemm *p) {
    bool keeps_sum = p->epilogue == CLEAT_EPILOGUE_RELU || p->epilogue == CLEAT_EPILOGUE_GELU;
    return keeps_sum && p->saved ? p->saved : p->c;
}

/* Returns piece `i` of the GEMM. The workspace of the first piece suffices for all: the last one is the
 * smallest. */
static cleat_sgemm piece(const cleat_gemm *p, int64_t i) {
    cleat_k_split s = split_rows(p);
    int64_t begin = i * s.depth, rows = min(s.depth, (p->trans_a ? p->k : p->m) - begin);
    cleat_sgemm g = {.a = p->a,
                     .b = p->b,
                     .c = sum_of(p),
                     .m = p->m,
                     .n = p->n,
                     .k = p->k,
                     .trans_a = p->trans_a,
                     .trans_b = p->trans_b,
                     .beta = p->bias || p->accum ? 1.0f : 0.0f};
    if (p->trans_a) { /* part of the sum: A [k, m], B [k, n] */
        g.k = rows;
        g.a_at = begin * p->m;
        g.b_at = begin * p->n;
        if (i > 0) g.beta = 1.0f;
    } else { /* range of rows of C */
        g.m = rows;
        g.a_at = begin * p->k;
        g.c_at = begin * p->n;
    }
    g.workspace = cleat_sgemm_workspace(g.m, g.n, g.k);
    return g;
}

/* The sums are computed after the GEMM and may use the same bytes. */
static int64_t clblast_workspace(const cleat_node *node, const cleat_device_facts *facts) {
    cleat_gemm p = cleat_linear_gemm(node);
    int64_t gemm = piece(&p, 0).workspace, sums = sums_workspace(node, facts);
    return gemm > sums ? gemm : sums;
}

static const char *refuse_clblast(const cleat_node *node, const cleat_device_facts *facts) {
    cleat_gemm p = cleat_linear_gemm(node);
    if (facts->work_group == 1) return "CLBlast with its CPU parameters is slower than register tiles";
    if (cleat_linear_blocks(&p)) return "CLBlast does not unpack blocks";
    if (p.a->dtype != CLEAT_F32) return "CLBlast accumulates half precision products in half precision";
    if (min(p.m, min(p.n, p.k)) < CLBLAST_EXTENT_MIN) return "too small for CLBlast";
    if (p.trans_a && p.trans_b) return "no op requires both operands transposed";
    int64_t tiles = ceil_div(p.m, 64) * ceil_div(p.n, 64);
    if (p.k >= 2 * SPLIT_DEPTH_MIN && tiles < units_of(facts))
        return "too few tiles to fill the device, and CLBlast does not split k";
    int64_t workspace = clblast_workspace(node, facts);
    if (workspace / FLOAT_BYTES > INT32_MAX) return "CLBlast uses 32-bit element counts";
    if (workspace > facts->max_allocation) return "CLBlast's copies of the matrices exceed the largest buffer";
    return NULL;
}

/* On NVIDIA's cards a larger share of the instructions of cleat's tiles are multiply-adds, and a smaller
 * share accesses local memory (cl/counts/tables.md); CLBlast follows them, for the tuner. */
static bool tiles_first(const cleat_device_facts *facts) {
    return facts->vendor == CLEAT_VENDOR_NVIDIA;
}

static const char *refuse_clblast_first(const cleat_node *node, const cleat_device_facts *facts) {
    return tiles_first(facts) ? "cleat's tiles are the default here" : refuse_clblast(node, facts);
}

static const char *refuse_clblast_later(const cleat_node *node, const cleat_device_facts *facts) {
    return tiles_first(facts) ? refuse_clblast(node, facts) : "CLBlast comes first here";
}

/* Launches the activation, or its gradient, with the kernel of the separate op, on the sum in C or in
 * `saved`. */
static void launch_epilogue(cleat_binder *binder, const cleat_node *node, const cleat_gemm *p) {
    const cleat_epilogue e = p->epilogue;
    const int32_t number = e == CLEAT_EPILOGUE_RELU || e == CLEAT_EPILOGUE_RELU_GRAD ? POINTWISE_RELU : POINTWISE_GELU;
    if (e == CLEAT_EPILOGUE_RELU || e == CLEAT_EPILOGUE_GELU)
        cleat_launch_function(binder, node, number, sum_of(p), p->c);
    else if (e != CLEAT_EPILOGUE_NONE)
        cleat_launch_function_grad(binder, node, number, p->c, p->saved, NULL, p->c);
}

/* C is initialized to bias + accum (which may already be in C), and the GEMM adds to it. */
static void bind_clblast(const cleat_node *node, cleat_binder *binder) {
    cleat_gemm p = cleat_linear_gemm(node);
    if (p.bias || (p.accum && p.accum != p.c)) {
        cleat_launch_vector_kernel(binder, node, "linear/linear.cl", "linear_prepare", p.c->dtype, p.n);
        CLEAT_LAUNCH_TENSORS(binder, p.bias, p.accum, sum_of(&p));
        cleat_launch_i64(binder, "M", p.m);
        cleat_launch_i32(binder, "N", (int32_t)p.n);
        cleat_launch_items(binder, p.m * ceil_div(p.n, binder->facts->vector_width));
    }
    for (int64_t i = 0; i < split_rows(&p).count; ++i) {
        cleat_sgemm sgemm = piece(&p, i);
        cleat_launch_sgemm(binder, node, &sgemm);
    }
    launch_epilogue(binder, node, &p);
    if (p.sums) launch_sums(binder, node, &p, 0);
}

/* --- GPU: register tiles over local memory -------------------------------------------------------------------- */

/* Intel's compiler spills the sums of a work-item if there are more than 16 of them, unless it is given a
 * small sub-group size; then it spills 64 (272 bytes of scratch, acm-g10). With half storage it spills more
 * than 16 in any case (ocloc 22.43). */
static cleat_tile_work tile_work(const cleat_node *node) {
    cleat_gemm p = cleat_linear_gemm(node);
    return (cleat_tile_work){.gemms = 1,
                             .m = p.m,
                             .n = p.n,
                             .k = p.k,
                             .intel_sums = p.a->dtype == CLEAT_F32 ? 32 : 16,
                             .bias = p.bias != NULL,
                             .uneven = true};
}

/* Returns whether the stored rows of A and B, and each part of k, consist of whole vec4s. */
static bool aligned4(const cleat_gemm *p) {
    return (p->trans_a ? p->m : p->k) % 4 == 0 && (p->trans_b ? p->k : p->n) % 4 == 0;
}

void cleat_linear_tiles(cleat_binder *binder, const cleat_node *node, const cleat_gemm *p, cleat_tiling s) {
    const bool reduced = s.k.count > 1 && cleat_has_counters(binder->facts, s.tiles - s.whole);
    operands(binder, p, s.k, reduced);
    CLEAT_LAUNCH_I32(binder, {"split_depth", s.k.depth}, {"whole", s.whole});
    cleat_launch_counters(binder, reduced);
    cleat_launch_groups(binder, cleat_tiling_groups(s));
    if (!reduced) launch_reduces(binder, node, p, s.k);
}

static void launch_gpu(cleat_binder *binder, const cleat_node *node, cleat_tiling s) {
    cleat_gemm p = cleat_linear_gemm(node);
    cleat_linear_begin(binder, node, &p, "linear/linear.cl", "linear_gpu");
    CLEAT_LAUNCH_DEFINES(binder, {"TRANS_A", p.trans_a}, {"TRANS_B", p.trans_b});
    cleat_launch_tile(binder, s.kind, p.a->dtype);
    cleat_launch_define(binder, "ALIGNED4", aligned4(&p));
    if (aligned4(&p) && p.n % 4 == 0) cleat_launch_define(binder, "ALIGNED", 1);
    cleat_linear_tiles(binder, node, &p, s);
}

int64_t cleat_linear_tiled_workspace(const cleat_node *node, cleat_tiling tiling) {
    cleat_gemm p = cleat_linear_gemm(node);
    return split_bytes(&p, tiling.k, p.m - tiling.part_row);
}

static const cleat_tile_variant gpu = {
    .work = tile_work, .workspace = cleat_linear_tiled_workspace, .launch = launch_gpu};
CLEAT_TILED_VARIANT(linear_gpu, gpu, CLEAT_TILE_BEST)
CLEAT_TILED_VARIANT(linear_gpu_large, gpu, CLEAT_TILE_LARGE)
CLEAT_TILED_VARIANT(linear_gpu_medium, gpu, CLEAT_TILE_MEDIUM)
CLEAT_TILED_VARIANT(linear_gpu_small, gpu, CLEAT_TILE_SMALL)

/* --- CPU: register tiles of one work-item --------------------------------------------------------------------- */

typedef struct cpu_shape {
    int64_t tile_rows, tile_vecs, chunk; /* TILE_ROWS, TILE_VECS, CHUNK */
    int64_t rows_max, panels_max;
    int64_t rows, panels; /* per work-item */
    int64_t items;
    cleat_k_split k;
} cpu_shape;

static int64_t count_items(const cleat_gemm *p, const cpu_shape *s, int64_t vector_width) {
    return ceil_div(p->m, s->rows) * ceil_div(p->n, s->panels * s->tile_vecs * vector_width);
}

/* 24 sums in 6 rows read less per multiply-add than 16 in 8. They need 32 registers of 16 lanes, as with
 * AVX-512; on other CPUs kernels multiply a tile in pieces (gemm_cpu.clh). The wide tile is not used if it
 * leaves more columns empty. */
static bool uses_wide_tile(const cleat_gemm *p, int64_t vector_width) {
    return vector_width >= 16 && p->m > 4 && round_up(p->n, 4 * vector_width) == round_up(p->n, 2 * vector_width);
}

/* The packed columns of A^T come in strips of a vector, which 6 rows do not divide: 24 sums in 8 rows. */
static bool uses_strip_tile(const cleat_gemm *p, int64_t vector_width) {
    return vector_width >= 16 && p->m > 4 && round_up(p->n, 3 * vector_width) <= round_up(p->n, 2 * vector_width);
}

/* Tile and largest block. If the rows of a block must be packed, this is done once, so several panels should
 * use them. Otherwise one panel is used for many rows, and long rows are summed in one pass: a panel streams
 * from the L2 cache as fast as from the L1 cache. */
static cpu_shape largest_shape_cpu(const cleat_gemm *p, bool packs_a, int64_t vector_width) {
    cpu_shape s = {.tile_rows = p->m <= 4 ? 4 : 8,
                   .tile_vecs = p->n <= vector_width ? 1 : 2,
                   .chunk = packs_a ? 128 : 1024,
                   .rows_max = packs_a ? 256 : 512,
                   .panels_max = packs_a ? 8 : 1};
    if (p->trans_a && uses_strip_tile(p, vector_width)) {
        s.tile_vecs = 3, s.rows_max = 384;
    } else if (!p->trans_a && uses_wide_tile(p, vector_width)) {
        s.tile_rows = 6, s.tile_vecs = 4;
        s.rows_max = packs_a ? 384 : 516;
        if (packs_a) s.panels_max = 4;
    }
    return s;
}

/* Blocks are equal, as large as the caches allow, and smaller if otherwise some compute units would be idle.
 * 4 items per unit balance uneven cores; with packed rows this costs more than it gains. A deep k of a
 * product with A^T is split instead, so that blocks stay large: smaller ones read A or B several times, and
 * such products are bound by what they read. */
static cpu_shape shape_cpu(const cleat_gemm *p, const cleat_device_facts *facts) {
    enum { ROWS_MIN = 32, SPLIT_STEP = 256 };
    bool packs_a = p->trans_a || p->a->dtype != CLEAT_F32;
    int64_t vector_width = facts->vector_width, wanted = (packs_a ? 2 : 4) * units_of(facts);
    cpu_shape s = largest_shape_cpu(p, packs_a, vector_width);
    int64_t step = p->trans_a ? 16 : s.tile_rows; /* columns are packed in strips */
    s.rows = round_up(ceil_div(p->m, ceil_div(p->m, s.rows_max)), step);
    s.panels = s.panels_max;
    const bool splits = p->trans_a && !p->bias && p->k >= wanted * SPLIT_DEPTH_MIN;
    while (!splits && count_items(p, &s, vector_width) < wanted && (s.rows > ROWS_MIN || s.panels > 1)) {
        if (s.panels > 1 && (s.rows <= ROWS_MIN || s.panels * s.tile_vecs * vector_width >= s.rows))
            s.panels /= 2;
        else
            s.rows = round_up(s.rows / 2, step);
    }
    s.items = count_items(p, &s, vector_width);
    s.k = split_k(p, s.items, wanted, min(s.chunk, SPLIT_STEP));
    return s;
}

static int64_t cpu_workspace(const cleat_node *node, const cleat_device_facts *facts) {
    cleat_gemm p = cleat_linear_gemm(node);
    return split_bytes(&p, shape_cpu(&p, facts).k, p.m);
}

static void bind_cpu(const cleat_node *node, cleat_binder *binder) {
    cleat_gemm p = cleat_linear_gemm(node);
    cpu_shape s = shape_cpu(&p, binder->facts);
    cleat_linear_begin(binder, node, &p, "linear/linear.cl", "linear_cpu");
    CLEAT_LAUNCH_DEFINES(binder, {"TRANS_A", p.trans_a}, {"TRANS_B", p.trans_b});
    cleat_launch_cpu_tile(binder, &(cleat_cpu_tile){s.tile_rows, s.tile_vecs, s.chunk, s.rows_max, s.panels_max});
    operands(binder, &p, s.k, false);
    CLEAT_LAUNCH_I32(binder, {"block_rows", s.rows}, {"block_panels", s.panels}, {"split_depth", s.k.depth});
    cleat_launch_groups(binder, s.items * s.k.count);
    launch_reduces(binder, node, &p, s.k);
}

/* --- narrow: few columns -------------------------------------------------------------------------------------- */

static const char *refuse_narrow(const cleat_node *node, const cleat_device_facts *facts) {
    cleat_gemm p = cleat_linear_gemm(node);
    if (facts->work_group != 1) return "only for devices with work-groups of one work-item";
    if (cleat_linear_blocks(&p)) return "it does not unpack blocks";
    if (p.trans_a || !p.trans_b) return "both operands must be stored along k";
    if (p.epilogue) return "it stores scalars, but the epilogue requires vectors";
    return p.n <= NARROW_COLUMNS ? NULL : "only for 16 columns or fewer";
}

static void bind_narrow(const cleat_node *node, cleat_binder *binder) {
    cleat_gemm p = cleat_linear_gemm(node);
    cleat_launch_kernel(binder, node, "linear/linear.cl", "linear_narrow", p.c->dtype);
    CLEAT_LAUNCH_TENSORS(binder, p.a, p.b, p.bias, p.accum, p.c);
    CLEAT_LAUNCH_I32(binder, {"M", p.m}, {"N", p.n}, {"K", p.k}, {"block_rows", NARROW_ROWS});
    cleat_launch_groups(binder, ceil_div(p.m, NARROW_ROWS));
}

/* --- one row -------------------------------------------------------------------------------------------------- */

/* Training keeps the kernels, and so the bits, that it had before this one. */
static const char *refuse_row(const cleat_node *node, const cleat_device_facts *facts) {
    cleat_gemm p = cleat_linear_gemm(node);
    if (!p.b || !p.b->rule.streamed || p.c->dtype != p.a->dtype)
        return "only for the weights of a graph that generates texts";
    if (p.m != 1 || p.trans_a || !p.trans_b || p.epilogue) return "only for one row without an activation";
    if (facts->work_group != 1 && facts->work_group < ROW_GROUP) return "requires work-groups of 64 work-items";
    return NULL;
}

static void bind_row(const cleat_node *node, cleat_binder *binder) {
    const cleat_gemm p = cleat_linear_gemm(node);
    const bool wide = binder->facts->work_group == 1;
    const int64_t items = wide ? 4 * units_of(binder->facts) : ceil_div(p.n, ROW_COLUMNS);
    const int64_t columns = round_up(ceil_div(p.n, items), ROW_COLUMNS);
    cleat_linear_begin(binder, node, &p, "linear/linear_row.cl", "linear_row");
    if (!wide) cleat_launch_work_group(binder, ROW_GROUP);
    if (binder->facts->vendor == CLEAT_VENDOR_POCL) cleat_launch_define(binder, "BUILTIN_PREFETCH", 1);
    CLEAT_LAUNCH_TENSORS(binder, p.a, p.b, p.bias, p.accum, p.c);
    CLEAT_LAUNCH_I32(binder, {"N", p.n}, {"K", p.k}, {"columns", columns});
    cleat_launch_groups(binder, ceil_div(p.n, columns));
}

/* --- generic -------------------------------------------------------------------------------------------------- */

static void bind_plain(const cleat_node *node, cleat_binder *binder) {
    cleat_gemm p = cleat_linear_gemm(node);
    cleat_linear_begin(binder, node, &p, "linear/linear.cl", "linear_plain");
    CLEAT_LAUNCH_TENSORS(binder, p.a, p.b, p.bias, p.accum, p.saved, p.c);
    cleat_launch_i64(binder, "M", p.m);
    CLEAT_LAUNCH_I32(binder, {"N", p.n}, {"K", p.k});
    cleat_launch_i64(binder, "a_m", p.trans_a ? 1 : p.k);
    cleat_launch_i64(binder, "a_k", p.trans_a ? p.m : 1);
    cleat_launch_i64(binder, "b_n", p.trans_b ? p.k : 1);
    cleat_launch_i64(binder, "b_k", p.trans_b ? 1 : p.n);
    cleat_launch_items(binder, p.m * p.n);
    if (p.sums) launch_sums(binder, node, &p, -1);
}

const cleat_variant cleat_linear_variants[] = {
    {.name = "row", .refuse = refuse_row, .bind = bind_row},
    {.name = "clblast", .refuse = refuse_clblast_first, .workspace = clblast_workspace, .bind = bind_clblast},
    CLEAT_VARIANT_ROW("mma", linear_mma),
    CLEAT_VARIANT_ROW("mma_large", linear_mma_large),
    CLEAT_VARIANT_ROW("mma_medium", linear_mma_medium),
    CLEAT_VARIANT_ROW("mma_small", linear_mma_small),
    CLEAT_VARIANT_ROW("gpu", linear_gpu),
    CLEAT_VARIANT_ROW("gpu_large", linear_gpu_large),
    CLEAT_VARIANT_ROW("gpu_medium", linear_gpu_medium),
    CLEAT_VARIANT_ROW("gpu_small", linear_gpu_small),
    CLEAT_VARIANT_ROW("tf32x3_medium", linear_tf32_medium),
    CLEAT_VARIANT_ROW("tf32x3_small", linear_tf32_small),
    {.name = "clblast", .refuse = refuse_clblast_later, .workspace = clblast_workspace, .bind = bind_clblast},
    {.name = "narrow", .refuse = refuse_narrow, .bind = bind_narrow},
    {.name = "cpu", .refuse = cleat_refuse_groups, .workspace = cpu_workspace, .bind = bind_cpu},
    {.name = "plain", .bind = bind_plain},
    {0}};

const cleat_variant cleat_linear_sums_variants[] = {
    {.name = "split", .workspace = sums_workspace, .bind = bind_sums}, {.name = "plain", .bind = bind_sums_plain}, {0}};
