/* Launches of disentangled attention: with tables of position keys and queries by distance (disentangled.clh). */
#include "ops/attention/attention.h"
#include "ops/attention/disentangled.h"
#include "ops/lib/count.h"

#include <math.h>

typedef cleat_disentangled_problem problem;

/* Tables by distance, f32 [2, H, rows, pitch]; `front` rows of padding before the first distance. */
typedef struct tables {
    int64_t front, rows, pitch;
} tables;

static int64_t table_floats(const problem *p, tables t) {
    return 2 * p->heads * t.rows * t.pitch;
}

/* Offsets in bytes into the workspace, each a multiple of 64. */
typedef struct layout {
    tables tables;
    int64_t by_distance; /* the tables */
    int64_t columns;     /* CPU: transposed tables */
    int64_t delta;       /* f32 [B, H, L] */
    int64_t dtables;     /* f32 [parts, 2, H, rows, pitch] */
    int64_t keys;        /* CPU: dK and dV of each work-item */
    int64_t bytes;
} layout;

/* Reserves `floats` and returns their offset. */
static int64_t reserve(layout *l, int64_t floats) {
    const int64_t at = l->bytes;
    l->bytes += round_up(floats * (int64_t)sizeof(float), 64);
    return at;
}

/* --- launches: shared parts --------------------------------------------------------------------------------- */

static void begin(cleat_binder *binder, const cleat_node *node, const char *file, const char *kernel) {
    const problem p = cleat_disentangled_problem_of(node);
    cleat_launch_kernel(binder, node, file, kernel, node->in[CLEAT_DIS_QKV]->dtype);
    cleat_launch_define(binder, "DH", p.head);
}

/* Adds queries, keys and values of `qkv` [B, L, 3D] (or a gradient or accum of it; may be NULL) from part `first`
 * on. */
static void add_parts(cleat_binder *binder, const problem *p, const cleat_tensor *qkv, int first, int last) {
    for (int part = first; part <= last; ++part) cleat_launch_tensor_at(binder, qkv, part * p->width);
}

/* Adds q, k, v, q_row, lengths. */
static void add_operands(cleat_binder *binder, const cleat_node *node, const problem *p) {
    add_parts(binder, p, node->in[CLEAT_DIS_QKV], 0, 2);
    cleat_launch_i32(binder, "q_row", (int32_t)(3 * p->width));
    cleat_launch_tensor(binder, node->in[CLEAT_DIS_LENGTHS]);
}

/* Adds front, rows, pitch. */
static void add_tables(cleat_binder *binder, tables t) {
    CLEAT_LAUNCH_I32(binder, {"front", t.front}, {"rows", t.rows}, {"pitch", t.pitch});
}

/* Adds span, mid, slope, shift. */
static void add_buckets(cleat_binder *binder, const cleat_node *node, const problem *p) {
    const cleat_disentangled_buckets buckets =
        cleat_disentangled_buckets_for((const cleat_disentangled_attr *)node->attr, p->length);
    CLEAT_LAUNCH_I32(binder, {"span", p->span}, {"mid", buckets.mid});
    cleat_launch_f32(binder, "slope", buckets.slope);
    cleat_launch_f32(binder, "shift", buckets.shift);
}

/* Fills the tables; rows of position queries are multiplied by query_scale. */
static void launch_expand(cleat_binder *binder, const cleat_node *node, const problem *p, const layout *l,
                          double query_scale) {
    begin(binder, node, "attention/disentangled.cl", "disentangled_expand");
    CLEAT_LAUNCH_TENSORS(binder, node->in[CLEAT_DIS_POS_KEYS], node->in[CLEAT_DIS_POS_QUERIES]);
    cleat_launch_workspace(binder, l->by_distance, sizeof(float));
    CLEAT_LAUNCH_I32(binder, {"heads", p->heads}, {"lq", p->length});
    add_tables(binder, l->tables);
    add_buckets(binder, node, p);
    cleat_launch_f32(binder, "query_scale", (float)query_scale);
    cleat_launch_items(binder, 2 * p->heads * l->tables.rows);
}

static bool is_gradient(const cleat_node *node) {
    return node->n_in > CLEAT_DIS_DY;
}

static bool needs_positions(const cleat_node *node) {
    return node->out[1] || node->out[2];
}

/* Sums the gradients of the tables into those of the position keys and queries. */
static void launch_reduce(cleat_binder *binder, const cleat_node *node, const problem *p, const layout *l,
                          int64_t parts, double key_scale) {
    /* Finding the rows of a bucket takes a CPU as long as summing them. */
    const int64_t pieces = binder->facts->work_group == 1 ? 1 : ceil_div(p->head, 4);
    begin(binder, node, "attention/disentangled.cl", "disentangled_reduce");
    cleat_launch_workspace(binder, l->dtables, sizeof(float));
    CLEAT_LAUNCH_TENSORS(binder, cleat_accum(node, CLEAT_DIS_ACCUMS, 1), cleat_accum(node, CLEAT_DIS_ACCUMS, 2),
                         node->out[1], node->out[2]);
    CLEAT_LAUNCH_I32(binder, {"heads", p->heads}, {"lq", p->length});
    add_tables(binder, l->tables);
    add_buckets(binder, node, p);
    CLEAT_LAUNCH_I32(binder, {"parts", parts}, {"pieces", pieces});
    cleat_launch_f32(binder, "key_scale", (float)key_scale);
    cleat_launch_f32(binder, "query_scale", (float)p->softmax_scale);
    cleat_launch_items(binder, 2 * p->span * p->heads * pieces);
}

/* Launches delta f32 [B, H, L] = sum of dy * y over the elements of a head. */
static void launch_delta(cleat_binder *binder, const cleat_node *node, const problem *p, const layout *l) {
    begin(binder, node, "attention/attention.cl", "attention_delta");
    CLEAT_LAUNCH_TENSORS(binder, node->in[CLEAT_DIS_Y], node->in[CLEAT_DIS_DY], node->in[CLEAT_DIS_LENGTHS]);
    cleat_launch_workspace(binder, l->delta, sizeof(float));
    CLEAT_LAUNCH_I32(binder, {"batch", p->batch}, {"heads", p->heads}, {"lq", p->length});
    cleat_launch_items(binder, p->batch * p->length * p->heads);
}

/* Begins a launch with q, k, v, q_row, lengths, tables, and in a gradient lse, delta, dy. */
static void begin_form(cleat_binder *binder, const cleat_node *node, const problem *p, const layout *l,
                       const char *file, const char *kernel) {
    begin(binder, node, file, kernel);
    add_operands(binder, node, p);
    cleat_launch_workspace(binder, l->by_distance, sizeof(float));
    if (!is_gradient(node)) return;
    cleat_launch_tensor(binder, node->in[CLEAT_DIS_LSE]);
    cleat_launch_workspace(binder, l->delta, sizeof(float));
    cleat_launch_tensor(binder, node->in[CLEAT_DIS_DY]);
}

/* Adds batch, heads, lq, softmax_scale, front, rows, pitch. */
static void add_sizes(cleat_binder *binder, const problem *p, const layout *l) {
    CLEAT_LAUNCH_I32(binder, {"batch", p->batch}, {"heads", p->heads}, {"lq", p->length});
    cleat_launch_f32(binder, "softmax_scale", (float)p->softmax_scale);
    add_tables(binder, l->tables);
}

/* Adds the accum and the gradient of queries (first 0, last 0) or of keys and values (1, 2). */
static void add_gradients(cleat_binder *binder, const cleat_node *node, const problem *p, int first, int last) {
    add_parts(binder, p, cleat_accum(node, CLEAT_DIS_ACCUMS, 0), first, last);
    add_parts(binder, p, node->out[0], first, last);
}

/* --- generic form --------------------------------------------------------------------------------------------- */

/* `margin`: rows of padding before the first distance, and after the last. */
static layout layout_for(const cleat_node *node, const problem *p, int64_t parts, int64_t margin) {
    layout l = {.tables = {.front = margin, .rows = 2 * p->length - 1 + 2 * margin, .pitch = round_up(p->head, 4)}};
    l.by_distance = reserve(&l, table_floats(p, l.tables));
    if (!is_gradient(node)) return l;
    l.delta = reserve(&l, p->batch * p->heads * p->length);
    l.dtables = reserve(&l, parts * table_floats(p, l.tables));
    return l;
}

static int64_t workspace_plain(const cleat_node *node, const cleat_device_facts *facts) {
    (void)facts;
    const problem p = cleat_disentangled_problem_of(node);
    return layout_for(node, &p, needs_positions(node), 0).bytes;
}

static void bind_plain(const cleat_node *node, cleat_binder *binder) {
    const problem p = cleat_disentangled_problem_of(node);
    const layout l = layout_for(node, &p, 0, 0);
    launch_expand(binder, node, &p, &l, 1);
    begin_form(binder, node, &p, &l, "attention/disentangled.cl", "disentangled_plain_forward");
    CLEAT_LAUNCH_TENSORS(binder, node->out[0], node->out[1]);
    add_sizes(binder, &p, &l);
    cleat_launch_items(binder, p.batch * p.heads * p.length);
}

static void bind_grad_plain(const cleat_node *node, cleat_binder *binder) {
    static const char file[] = "attention/disentangled.cl";
    const problem p = cleat_disentangled_problem_of(node);
    const layout l = layout_for(node, &p, needs_positions(node), 0);
    launch_expand(binder, node, &p, &l, 1);
    launch_delta(binder, node, &p, &l);
    if (node->out[0]) {
        begin_form(binder, node, &p, &l, file, "disentangled_plain_dq");
        add_gradients(binder, node, &p, 0, 0);
        add_sizes(binder, &p, &l);
        cleat_launch_items(binder, p.batch * p.heads * p.length);
        begin_form(binder, node, &p, &l, file, "disentangled_plain_keys");
        add_gradients(binder, node, &p, 1, 2);
        add_sizes(binder, &p, &l);
        cleat_launch_items(binder, p.batch * p.heads * p.length);
    }
    if (!needs_positions(node)) return;
    begin_form(binder, node, &p, &l, file, "disentangled_plain_positions");
    cleat_launch_workspace(binder, l.dtables, sizeof(float));
    add_sizes(binder, &p, &l);
    cleat_launch_items(binder, p.heads * (2 * p.length - 1));
    launch_reduce(binder, node, &p, &l, 1, p.softmax_scale);
}

/* --- CPU ------------------------------------------------------------------------------------------------------ */

/* Build options of the CPU kernels: rows of a register tile, floats of a packed row. */
typedef struct cpu_build {
    int64_t tile, pitch;
} cpu_build;

typedef struct cpu_layout {
    layout l;
    cpu_build build;
    int64_t column_pitch, key_rows, part_samples, parts;
} cpu_layout;

static cpu_layout cpu_layout_for(const cleat_node *node, const problem *p, const cleat_device_facts *facts) {
    const int64_t vector = facts->vector_width, queries = 2 * vector, front = 16;
    cpu_layout c = {
        .build = {.tile = vector >= 16 ? 8 : 4, .pitch = p->head <= vector ? vector : round_up(p->head, 2 * vector)}};
    layout *l = &c.l;
    l->tables = (tables){.front = front, .rows = front + 2 * p->length + queries, .pitch = c.build.pitch};
    /* Rows of columns an odd number of cache lines apart, so that the caches hold the same part of all of them. */
    c.column_pitch = round_up(round_up(l->tables.rows, vector), 16);
    if (c.column_pitch / 16 % 2 == 0) c.column_pitch += 16;
    l->columns = reserve(l, 2 * p->width * c.column_pitch);
    if (!is_gradient(node)) return c;
    c.key_rows = round_up(p->length, c.build.tile);
    /* Samples of a head that one work-item processes: all, or fewer if there would be too few work-items. Each part
     * has tables of gradients. */
    c.part_samples = ceil_div(p->batch, min(p->batch, ceil_div(4 * units_of(facts), p->heads)));
    c.parts = ceil_div(p->batch, c.part_samples);
    l->by_distance = reserve(l, table_floats(p, l->tables));
    l->dtables = reserve(l, c.parts * table_floats(p, l->tables));
    l->keys = reserve(l, c.parts * p->heads * 2 * c.key_rows * c.build.pitch);
    return c;
}

/* All kernels of the file get the same options and so form one program. */
static void begin_cpu(cleat_binder *binder, const cleat_node *node, const cpu_layout *c, const char *kernel) {
    begin(binder, node, "attention/disentangled_cpu.cl", kernel);
    CLEAT_LAUNCH_DEFINES(binder, {"TILE", c->build.tile}, {"PITCH", c->build.pitch});
}

/* Fills the columns, in which position queries are in base 2. */
static void launch_columns(cleat_binder *binder, const cleat_node *node, const problem *p, const cpu_layout *c) {
    const double log2_e = 1.4426950408889634;
    begin_cpu(binder, node, c, "disentangled_cpu_columns");
    CLEAT_LAUNCH_TENSORS(binder, node->in[CLEAT_DIS_POS_KEYS], node->in[CLEAT_DIS_POS_QUERIES]);
    cleat_launch_workspace(binder, c->l.columns, sizeof(float));
    CLEAT_LAUNCH_I32(binder, {"heads", p->heads}, {"lq", p->length}, {"front", c->l.tables.front},
                     {"column_pitch", c->column_pitch});
    add_buckets(binder, node, p);
    cleat_launch_f32(binder, "query_scale", (float)(p->softmax_scale * log2_e));
    cleat_launch_items(binder, 2 * ceil_div(c->column_pitch, 2 * (int64_t)binder->facts->vector_width));
}

static int64_t workspace_cpu(const cleat_node *node, const cleat_device_facts *facts) {
    const problem p = cleat_disentangled_problem_of(node);
    return cpu_layout_for(node, &p, facts).l.bytes;
}

static void bind_cpu(const cleat_node *node, cleat_binder *binder) {
    const problem p = cleat_disentangled_problem_of(node);
    const cpu_layout c = cpu_layout_for(node, &p, binder->facts);
    launch_columns(binder, node, &p, &c);
    begin_cpu(binder, node, &c, "disentangled_cpu_forward");
    add_operands(binder, node, &p);
    cleat_launch_workspace(binder, c.l.columns, sizeof(float));
    CLEAT_LAUNCH_TENSORS(binder, node->out[0], node->out[1]);
    CLEAT_LAUNCH_I32(binder, {"heads", p.heads}, {"lq", p.length});
    cleat_launch_f32(binder, "softmax_scale", (float)p.softmax_scale);
    CLEAT_LAUNCH_I32(binder, {"front", c.l.tables.front}, {"column_pitch", c.column_pitch});
    cleat_launch_groups(binder, p.batch * p.heads * ceil_div(p.length, 2 * (int64_t)binder->facts->vector_width));
}

static void bind_grad_cpu(const cleat_node *node, cleat_binder *binder) {
    const problem p = cleat_disentangled_problem_of(node);
    const cpu_layout c = cpu_layout_for(node, &p, binder->facts);
    launch_columns(binder, node, &p, &c);
    launch_expand(binder, node, &p, &c.l, p.softmax_scale);
    begin_cpu(binder, node, &c, "disentangled_cpu_backward");
    add_operands(binder, node, &p);
    cleat_launch_workspace(binder, c.l.columns, sizeof(float));
    cleat_launch_workspace(binder, c.l.by_distance, sizeof(float));
    CLEAT_LAUNCH_TENSORS(binder, node->in[CLEAT_DIS_Y], node->in[CLEAT_DIS_LSE], node->in[CLEAT_DIS_DY]);
    add_gradients(binder, node, &p, 0, 0);
    add_gradients(binder, node, &p, 1, 2);
    cleat_launch_workspace(binder, c.l.dtables, sizeof(float));
    cleat_launch_workspace(binder, c.l.keys, sizeof(float));
    add_sizes(binder, &p, &c.l);
    CLEAT_LAUNCH_I32(binder, {"column_pitch", c.column_pitch}, {"key_rows", c.key_rows},
                     {"part_samples", c.part_samples});
    cleat_launch_groups(binder, c.parts * p.heads);
    /* The kernel has multiplied the queries by softmax_scale. */
    if (needs_positions(node)) launch_reduce(binder, node, &p, &c.l, c.parts, 1);
}

/* --- GPU ------------------------------------------------------------------------------------------------------ */

enum { GPU_GROUP = 64 };

/* Rows and columns of a tile: queries, keys or distances. */
static int64_t gpu_rows(const problem *p) {
    return p->head <= 64 ? 16 : 8;
}

static int64_t distance_tiles(const problem *p) {
    return ceil_div(2 * p->length - 1, gpu_rows(p));
}

/* Samples that one work-group of the gradient of the tables processes: all, unless the distances alone would leave
 * half of the GPU idle. Each part has tables of gradients. */
static int64_t gpu_part_samples(const problem *p, const cleat_device_facts *facts) {
    enum { GROUPS_A_UNIT = 4 };
    const int64_t groups = p->heads * distance_tiles(p);
    const int64_t parts = min(p->batch, ceil_div(GROUPS_A_UNIT * units_of(facts), groups));
    return ceil_div(p->batch, parts);
}

static layout gpu_layout(const cleat_node *node, const problem *p, const cleat_device_facts *facts) {
    const int64_t parts =
        is_gradient(node) && needs_positions(node) ? ceil_div(p->batch, gpu_part_samples(p, facts)) : 0;
    return layout_for(node, p, parts, 2 * gpu_rows(p));
}

static void define_gpu(cleat_binder *binder, const problem *p) {
    CLEAT_LAUNCH_DEFINES(binder, {"THREADS", GPU_GROUP}, {"ROWS", gpu_rows(p)});
}

static void launch_tiles(cleat_binder *binder, int64_t groups) {
    const size_t local = GPU_GROUP, global = local * (size_t)groups;
    cleat_launch_range(binder, 1, &global, &local);
}

static int64_t workspace_gpu(const cleat_node *node, const cleat_device_facts *facts) {
    const problem p = cleat_disentangled_problem_of(node);
    return gpu_layout(node, &p, facts).bytes;
}

static void bind_gpu(const cleat_node *node, cleat_binder *binder) {
    const problem p = cleat_disentangled_problem_of(node);
    const layout l = gpu_layout(node, &p, binder->facts);
    launch_expand(binder, node, &p, &l, 1);
    begin_form(binder, node, &p, &l, "attention/disentangled_gpu.cl", "disentangled_gpu_forward");
    define_gpu(binder, &p);
    CLEAT_LAUNCH_TENSORS(binder, node->out[0], node->out[1]);
    add_sizes(binder, &p, &l);
    launch_tiles(binder, p.batch * p.heads * ceil_div(p.length, gpu_rows(&p)));
}

static void bind_grad_gpu(const cleat_node *node, cleat_binder *binder) {
    static const char file[] = "attention/disentangled_gpu.cl";
    const problem p = cleat_disentangled_problem_of(node);
    const layout l = gpu_layout(node, &p, binder->facts);
    const int64_t tiles = p.batch * p.heads * ceil_div(p.length, gpu_rows(&p));
    launch_expand(binder, node, &p, &l, 1);
    launch_delta(binder, node, &p, &l);
    if (node->out[0]) {
        begin_form(binder, node, &p, &l, file, "disentangled_gpu_dq");
        define_gpu(binder, &p);
        add_gradients(binder, node, &p, 0, 0);
        add_sizes(binder, &p, &l);
        launch_tiles(binder, tiles);
        begin_form(binder, node, &p, &l, file, "disentangled_gpu_keys");
        define_gpu(binder, &p);
        add_gradients(binder, node, &p, 1, 2);
        add_sizes(binder, &p, &l);
        launch_tiles(binder, tiles);
    }
    if (!needs_positions(node)) return;
    const int64_t part_samples = gpu_part_samples(&p, binder->facts), parts = ceil_div(p.batch, part_samples);
    begin_form(binder, node, &p, &l, file, "disentangled_gpu_positions");
    define_gpu(binder, &p);
    cleat_launch_workspace(binder, l.dtables, sizeof(float));
    add_sizes(binder, &p, &l);
    cleat_launch_i32(binder, "part_samples", (int32_t)part_samples);
    launch_tiles(binder, parts * p.heads * distance_tiles(&p));
    launch_reduce(binder, node, &p, &l, parts, p.softmax_scale);
}

const cleat_variant cleat_disentangled_variants[] = {
    {.name = "cpu", .refuse = cleat_attention_cpu_refuse, .workspace = workspace_cpu, .bind = bind_cpu},
    {.name = "gpu", .refuse = cleat_attention_gpu_refuse, .workspace = workspace_gpu, .bind = bind_gpu},
    {.name = "plain", .workspace = workspace_plain, .bind = bind_plain},
    {0},
};

const cleat_variant cleat_disentangled_grad_variants[] = {
    {.name = "cpu", .refuse = cleat_attention_cpu_refuse, .workspace = workspace_cpu, .bind = bind_grad_cpu},
    {.name = "gpu", .refuse = cleat_attention_gpu_refuse, .workspace = workspace_gpu, .bind = bind_grad_gpu},
    {.name = "plain", .workspace = workspace_plain, .bind = bind_grad_plain},
    {0},
};
