/* Attention on matrix units: tile sizes and launches. */
#include "core/kernel_shape.h"
#include "ops/attention/attention.h"
#include "ops/lib/count.h"
#include "ops/lib/tiles.h"

enum { FRAGMENT = 16, VEC8 = 8, HEAD_MAX = 128 };

typedef enum kernel_kind { FORWARD, DQ, DKV } kernel_kind;

/* Build options of attention_mma.clh. */
typedef struct tiles {
    int64_t rows, columns; /* ROWS, COLS */
    int64_t column_subgroups;
} tiles;

/* Tiles for heads of up to 32, 64 and 128 elements. They keep local memory within 32 KiB, a work-group within
 * 256 work-items, and the sums of a subgroup in its registers: one fragment of 16 x 16 takes an eighth of the
 * registers of Intel's smaller matrix unit (ocloc 22.43 spills with more than two such fragments beside two
 * of scores). */
typedef struct tiles_by_head {
    tiles forward[3], dq[3], dkv[3];
} tiles_by_head;

static const tiles_by_head subgroup_8 = {.forward = {{64, 32, 2}, {64, 32, 2}, {32, 32, 4}},
                                         .dq = {{64, 64, 2}, {32, 32, 2}, {16, 32, 4}},
                                         .dkv = {{64, 32, 2}, {32, 32, 4}, {16, 32, 8}}};
static const tiles_by_head subgroup_16 = {.forward = {{64, 32, 2}, {32, 64, 2}, {32, 32, 2}},
                                          .dq = {{64, 32, 2}, {32, 32, 2}, {16, 32, 2}},
                                          .dkv = {{64, 32, 2}, {32, 32, 2}, {16, 32, 4}}};
static const tiles_by_head subgroup_32 = {.forward = {{64, 32, 2}, {64, 32, 2}, {32, 32, 2}},
                                          .dq = {{64, 32, 2}, {32, 32, 2}, {16, 32, 2}},
                                          .dkv = {{64, 32, 2}, {32, 32, 2}, {16, 32, 4}}};
static const tiles_by_head subgroup_64 = {.forward = {{64, 32, 1}, {64, 32, 1}, {32, 32, 2}},
                                          .dq = {{32, 32, 2}, {32, 32, 2}, {16, 32, 2}},
                                          .dkv = {{32, 32, 2}, {32, 32, 2}, {16, 32, 2}}};

/* Units whose sums are operands: a subgroup computes everything of its rows (attention_mma_rows.clh). Such a
 * unit has subgroups of 32, or of 64. */
typedef struct row_tiles {
    int64_t rows, columns, blocks; /* ROWS, COLS, ROW_BLOCKS */
} row_tiles;

/* By head size as above. Local memory is at most 20 KiB. */
typedef struct row_tiles_by_head {
    row_tiles forward[3], dq[3], dkv[3];
} row_tiles_by_head;

/* One block of 16 rows per subgroup, or two, which read the streamed tiles half as often. ptxas 12.x: no
 * spills. */
static const row_tiles_by_head narrow = {.forward = {{64, 64, 1}, {64, 64, 1}, {64, 32, 1}},
                                         .dq = {{64, 64, 1}, {64, 32, 1}, {64, 16, 1}},
                                         .dkv = {{64, 64, 1}, {64, 32, 1}, {64, 16, 1}}};
static const row_tiles_by_head wide = {.forward = {{128, 64, 2}, {128, 64, 2}, {64, 32, 1}},
                                       .dq = {{128, 64, 2}, {64, 16, 2}, {64, 16, 1}},
                                       .dkv = {{128, 64, 2}, {64, 32, 1}, {64, 16, 1}}};

/* Units whose sums are columns of an operand: a work-item has one of the rows (attention_mma_columns.clh).
 * Sums of wider heads do not fit in registers (ocloc 22.43). Local memory is at most 18 KiB. */
enum { STREAMED = 32 /* COLS */, WIDEST_FORWARD = 96, WIDEST_BACKWARD = 64 };

static int size_class(const cleat_attention_problem *p) {
    return p->head <= 32 ? 0 : p->head <= 64 ? 1 : 2;
}

/* How a kernel divides its work. */
typedef enum work_form {
    SHARED_ROWS, /* subgroups share rows, and weights pass through local memory (attention_mma.clh) */
    OWN_ROWS,    /* a subgroup has blocks of 16 rows (attention_mma_rows.clh) */
    OWN_COLUMNS, /* a work-item has a row (attention_mma_columns.clh) */
} work_form;

static work_form form_of(kernel_kind kind, const cleat_attention_problem *p, const cleat_device_facts *facts) {
    const int unit = (int)facts->matrix_unit;
    if (SUMS_ARE_OPERANDS(unit)) return OWN_ROWS;
    const int64_t widest = kind == FORWARD ? WIDEST_FORWARD : WIDEST_BACKWARD;
    return SUMS_ARE_COLUMNS(unit) && p->head <= widest ? OWN_COLUMNS : SHARED_ROWS;
}

static const row_tiles *row_tiles_of(const row_tiles_by_head *all, kernel_kind kind, const cleat_attention_problem *p) {
    return (kind == FORWARD ? all->forward : kind == DQ ? all->dq : all->dkv) + size_class(p);
}

/* The larger tiles if they are full, and fill the device twice. */
static row_tiles choose_row_tiles(kernel_kind kind, const cleat_attention_problem *p, const cleat_device_facts *facts) {
    enum { GROUPS_A_UNIT = 2 };
    const row_tiles *large = row_tiles_of(&wide, kind, p);
    int64_t lines = kind == DKV ? p->keys : p->queries, heads = kind == DKV ? p->kv_heads : p->heads;
    int64_t groups = p->batch * heads * ceil_div(lines, large->rows);
    bool full = lines > large->rows / 2 && groups >= GROUPS_A_UNIT * (int64_t)facts->compute_units;
    return full ? *large : *row_tiles_of(&narrow, kind, p);
}

/* More rows share a streamed tile if there is a group for every four compute units, which are one core of
 * Intel's. */
static int64_t column_rows(kernel_kind kind, const cleat_attention_problem *p, const cleat_device_facts *facts) {
    enum { FEW = 64, MANY = 128, UNITS_A_GROUP = 4 };
    int64_t lines = kind == DKV ? p->keys : p->queries;
    bool many = lines > FEW && p->batch * p->heads * ceil_div(lines, MANY) * UNITS_A_GROUP >= facts->compute_units;
    return many ? MANY : FEW;
}

static tiles tiles_of(kernel_kind kind, const cleat_attention_problem *p, const cleat_device_facts *facts) {
    int subgroup_size = cleat_matrix_subgroup_size(facts->matrix_unit);
    const tiles_by_head *all = subgroup_size == 8    ? &subgroup_8
                               : subgroup_size == 16 ? &subgroup_16
                               : subgroup_size == 32 ? &subgroup_32
                                                     : &subgroup_64;
    return (kind == FORWARD ? all->forward : kind == DQ ? all->dq : all->dkv)[size_class(p)];
}

/* Rows of a work-group's tile. */
static int64_t rows_of(kernel_kind kind, const cleat_attention_problem *p, const cleat_device_facts *facts) {
    switch (form_of(kind, p, facts)) {
    case OWN_ROWS:
        return choose_row_tiles(kind, p, facts).rows;
    case OWN_COLUMNS:
        return column_rows(kind, p, facts);
    default:
        return tiles_of(kind, p, facts).rows;
    }
}

const char *cleat_attention_mma_refuse(const cleat_node *node, const cleat_device_facts *facts) {
    cleat_attention_problem p = cleat_attention_problem_of(node);
    const char *why = cleat_matrix_refuse(facts, p.in.q->dtype);
    if (why) return why;
    if (p.causal && !SUMS_ARE_OPERANDS((int)facts->matrix_unit))
        return "the kernels for this matrix unit do not skip the keys that causal attention hides";
    if (p.reach > 0) return "the kernels for matrix units do not skip the keys that local attention hides";
    if (p.head > HEAD_MAX) return "requires heads of at most 128 elements";
    if (p.head % VEC8 != 0) return "requires a head size that is a multiple of 8";
    if (facts->sub_group > 0 && facts->sub_group != cleat_matrix_subgroup_size(facts->matrix_unit))
        return "the sub-groups of the matrix unit differ from those of the device";
    return NULL;
}

/* The file and the kernel of each form. */
typedef struct source {
    const char *file, *kernel;
} source;

static source source_of(kernel_kind kind, const cleat_attention_problem *p, const cleat_device_facts *facts) {
#define SOURCES(name)                                                                                                  \
    {                                                                                                                  \
        {"attention/attention_" #name "_forward.cl", "attention_" #name "_forward"},                                   \
            {"attention/attention_" #name "_backward.cl", "attention_" #name "_dq"},                                   \
            {"attention/attention_" #name "_backward.cl", "attention_" #name "_keys"},                                 \
    }
    static const source sources[][3] = {
        [SHARED_ROWS] = SOURCES(mma), [OWN_ROWS] = SOURCES(mma_rows), [OWN_COLUMNS] = SOURCES(mma_columns)};
#undef SOURCES
    return sources[form_of(kind, p, facts)][kind];
}

/* Adds the options of the tiles, and the range of `groups` work-groups. */
static void launch_tiles(cleat_binder *binder, const cleat_attention_problem *p, kernel_kind kind, int64_t groups) {
    size_t local = (size_t)cleat_matrix_subgroup_size(binder->facts->matrix_unit);
    const work_form form = form_of(kind, p, binder->facts);
    cleat_launch_matrix_unit(binder);
    if (form == OWN_COLUMNS) {
        int64_t rows = column_rows(kind, p, binder->facts);
        CLEAT_LAUNCH_DEFINES(binder, {"ROWS", rows}, {"COLS", STREAMED});
        if (kind != FORWARD) cleat_launch_define(binder, "KEYS_KERNEL", kind == DKV);
        local = (size_t)rows;
    } else if (form == OWN_ROWS) {
        row_tiles t = choose_row_tiles(kind, p, binder->facts);
        CLEAT_LAUNCH_DEFINES(binder, {"ROWS", t.rows}, {"COLS", t.columns}, {"ROW_BLOCKS", t.blocks});
        if (kind != FORWARD) cleat_launch_define(binder, "KEYS_KERNEL", kind == DKV);
        local *= (size_t)(t.rows / (FRAGMENT * t.blocks));
    } else {
        tiles t = tiles_of(kind, p, binder->facts);
        CLEAT_LAUNCH_DEFINES(binder, {"ROWS", t.rows}, {"COLS", t.columns}, {"COLUMN_SUBGROUPS", t.column_subgroups});
        if (kind != FORWARD) cleat_launch_define(binder, "SUM_KINDS", kind == DQ ? 1 : 2);
        local *= (size_t)(t.rows / FRAGMENT * t.column_subgroups);
    }
    size_t global = local * (size_t)groups;
    cleat_launch_range(binder, 1, &global, &local);
}

void cleat_attention_mma_bind(const cleat_node *node, cleat_binder *binder) {
    cleat_attention_problem p = cleat_attention_problem_of(node);
    source from = source_of(FORWARD, &p, binder->facts);
    cleat_attention_begin_forward(binder, node, &p, from.file, from.kernel);
    cleat_attention_sizes(binder, &p);
    launch_tiles(binder, &p, FORWARD, p.batch * p.heads * ceil_div(p.queries, rows_of(FORWARD, &p, binder->facts)));
}

/* delta, then the partial sums of the parts: f32 [B, parts, 2, S, D]. */
int64_t cleat_attention_mma_grad_workspace(const cleat_node *node, const cleat_device_facts *facts) {
    cleat_attention_problem p = cleat_attention_problem_of(node);
    cleat_attention_parts parts = cleat_attention_parts_for(&p, facts, rows_of(DKV, &p, facts));
    int64_t shares = parts.count > 1 ? p.batch * parts.count * 2 * p.keys * p.kv_width : 0;
    return cleat_attention_delta_bytes(node, facts) + shares * (int64_t)sizeof(float);
}

static void launch_dq(cleat_binder *binder, const cleat_node *node, const cleat_attention_problem *p) {
    source from = source_of(DQ, p, binder->facts);
    cleat_attention_begin_dq(binder, node, p, from.file, from.kernel);
    cleat_attention_sizes(binder, p);
    launch_tiles(binder, p, DQ, p->batch * p->heads * ceil_div(p->queries, rows_of(DQ, p, binder->facts)));
}

static void launch_keys(cleat_binder *binder, const cleat_node *node, const cleat_attention_problem *p) {
    cleat_attention_parts parts = cleat_attention_parts_for(p, binder->facts, rows_of(DKV, p, binder->facts));
    source from = source_of(DKV, p, binder->facts);
    cleat_attention_begin_keys(binder, node, p, from.file, from.kernel);
    cleat_attention_sizes(binder, p);
    cleat_attention_shares(binder, node, &parts);
    CLEAT_LAUNCH_I32(binder, {"parts", parts.count}, {"part_queries", parts.queries});
    launch_tiles(binder, p, DKV, parts.tiles * parts.count);
    if (parts.count == 1) return;
    cleat_attention_launch_sum(binder, node, p, "attention/attention_mma_sum.cl", "attention_mma_sum_keys", &parts);
}

void cleat_attention_mma_grad_bind(const cleat_node *node, cleat_binder *binder) {
    cleat_attention_problem p = cleat_attention_problem_of(node);
    cleat_attention_prepare_delta(binder, node, &p);
    if (cleat_attention_needs_dq(node)) launch_dq(binder, node, &p);
    if (cleat_attention_needs_dkv(node)) launch_keys(binder, node, &p);
}
