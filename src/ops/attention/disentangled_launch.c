/* Launches of disentangled attention: with tables of position keys and queries by distance (disentangled.clh). */
#include "ops/attention/disentangled.h"
#include "ops/lib/count.h"

#include <math.h>

enum { GPU_LOCAL_MEMORY = 32 * 1024 };

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

/* Reserves `floats` and returns where they begin. */
static int64_t reserve(layout *l, int64_t floats) {
    const int64_t at = l->bytes;
    l->bytes += round_up(floats * (int64_t)sizeof(float), 64);
    return at;
}

/* --- launches: what they share -------------------------------------------------------------------------------- */

static void begin(cleat_binder *binder, const cleat_node *node, const char *file, const char *kernel) {
    const problem p = cleat_disentangled_problem_of(node);
    cleat_launch_kernel(binder, node, file, kernel, node->in[CLEAT_DIS_QKV]->dtype);
    cleat_launch_define(binder, "DH", p.head);
}

/* Adds queries, keys and values of `qkv` [B, L, 3D] (or a gradient or accum of it; may be NULL) from part `first` on. */
static void add_parts(cleat_binder *binder, const problem *p, const cleat_tensor *qkv, int first, int last) {
    for (int part = first; part <= last; ++part) cleat_launch_tensor_at(binder, qkv, part * p->width);
}

/* Adds q, k, v, q_row, lengths. */
static void add_operands(cleat_binder *binder, const cleat_node *node, const problem *p) {
    add_parts(binder, p, node->in[CLEAT_DIS_QKV], 0, 2);
    cleat_launch_i32(binder, (int32_t)(3 * p->width));
    cleat_launch_tensor(binder, node->in[CLEAT_DIS_LENGTHS]);
}

/* Adds front, rows, pitch. */
static void add_tables(cleat_binder *binder, tables t) {
    cleat_launch_i32(binder, (int32_t)t.front);
    cleat_launch_i32(binder, (int32_t)t.rows);
    cleat_launch_i32(binder, (int32_t)t.pitch);
}

/* Adds span, mid, slope, shift. */
static void add_buckets(cleat_binder *binder, const cleat_node *node, const problem *p) {
    const cleat_disentangled_buckets buckets =
        cleat_disentangled_buckets_for((const cleat_disentangled_attr *)node->attr, p->length);
    cleat_launch_i32(binder, (int32_t)p->span);
    cleat_launch_i32(binder, buckets.mid);
    cleat_launch_f32(binder, buckets.slope);
    cleat_launch_f32(binder, buckets.shift);
}

/* Fills the tables; rows of position queries are multiplied by query_scale. */
static void launch_expand(cleat_binder *binder, const cleat_node *node, const problem *p, const layout *l,
                          double query_scale) {
    begin(binder, node, "attention/disentangled.cl", "disentangled_expand");
    cleat_launch_tensor(binder, node->in[CLEAT_DIS_POS_KEYS]);
    cleat_launch_tensor(binder, node->in[CLEAT_DIS_POS_QUERIES]);
    cleat_launch_workspace(binder, l->by_distance, sizeof(float));
    cleat_launch_i32(binder, (int32_t)p->heads);
    cleat_launch_i32(binder, (int32_t)p->length);
    add_tables(binder, l->tables);
    add_buckets(binder, node, p);
    cleat_launch_f32(binder, (float)query_scale);
    cleat_launch_items(binder, 2 * p->heads * l->tables.rows);
}

static bool needs_positions(const cleat_node *node) {
    return node->out[1] || node->out[2];
}

/* Sums the gradients of the tables into those of the position keys and queries. */
static void launch_reduce(cleat_binder *binder, const cleat_node *node, const problem *p, const layout *l,
                          int64_t parts, double key_scale) {
    begin(binder, node, "attention/disentangled.cl", "disentangled_reduce");
    cleat_launch_workspace(binder, l->dtables, sizeof(float));
    cleat_launch_tensor(binder, cleat_accum(node, CLEAT_DIS_ACCUMS, 1));
    cleat_launch_tensor(binder, cleat_accum(node, CLEAT_DIS_ACCUMS, 2));
    cleat_launch_tensor(binder, node->out[1]);
    cleat_launch_tensor(binder, node->out[2]);
    cleat_launch_i32(binder, (int32_t)p->heads);
    cleat_launch_i32(binder, (int32_t)p->length);
    add_tables(binder, l->tables);
    add_buckets(binder, node, p);
    cleat_launch_i32(binder, (int32_t)parts);
    cleat_launch_f32(binder, (float)key_scale);
    cleat_launch_f32(binder, (float)p->softmax_scale);
    cleat_launch_items(binder, 2 * p->span * p->width);
}

/* Launches delta f32 [B, H, L] = sum of dy * y over the elements of a head. */
static void launch_delta(cleat_binder *binder, const cleat_node *node, const problem *p, const layout *l) {
    begin(binder, node, "attention/attention.cl", "attention_delta");
    cleat_launch_tensor(binder, node->in[CLEAT_DIS_Y]);
    cleat_launch_tensor(binder, node->in[CLEAT_DIS_DY]);
    cleat_launch_tensor(binder, node->in[CLEAT_DIS_LENGTHS]);
    cleat_launch_workspace(binder, l->delta, sizeof(float));
    cleat_launch_i32(binder, (int32_t)p->batch);
    cleat_launch_i32(binder, (int32_t)p->heads);
    cleat_launch_i32(binder, (int32_t)p->length);
    cleat_launch_items(binder, p->batch * p->length * p->heads);
}

/* Begins a launch with q, k, v, q_row, lengths, tables, and in a gradient lse, delta, dy. */
static void begin_form(cleat_binder *binder, const cleat_node *node, const problem *p, const layout *l,
                       const char *file, const char *kernel, bool is_gradient) {
    begin(binder, node, file, kernel);
    add_operands(binder, node, p);
    cleat_launch_workspace(binder, l->by_distance, sizeof(float));
    if (!is_gradient) return;
    cleat_launch_tensor(binder, node->in[CLEAT_DIS_LSE]);
    cleat_launch_workspace(binder, l->delta, sizeof(float));
    cleat_launch_tensor(binder, node->in[CLEAT_DIS_DY]);
}

/* Adds batch, heads, lq, softmax_scale, front, rows, pitch. */
static void add_sizes(cleat_binder *binder, const problem *p, const layout *l) {
    cleat_launch_i32(binder, (int32_t)p->batch);
    cleat_launch_i32(binder, (int32_t)p->heads);
    cleat_launch_i32(binder, (int32_t)p->length);
    cleat_launch_f32(binder, (float)p->softmax_scale);
    add_tables(binder, l->tables);
}

/* Adds the accum and the gradient of queries (first 0, last 0) or of keys and values (1, 2). */
static void add_gradients(cleat_binder *binder, const cleat_node *node, const problem *p, int first, int last) {
    add_parts(binder, p, cleat_accum(node, CLEAT_DIS_ACCUMS, 0), first, last);
    add_parts(binder, p, node->out[0], first, last);
}

/* --- generic form --------------------------------------------------------------------------------------------- */

static layout plain_layout(const problem *p, bool is_gradient, int64_t parts) {
    layout l = {.tables = {.front = 0, .rows = 2 * p->length - 1, .pitch = p->head}};
    l.by_distance = reserve(&l, table_floats(p, l.tables));
    if (!is_gradient) return l;
    l.delta = reserve(&l, p->batch * p->heads * p->length);
    l.dtables = reserve(&l, parts * table_floats(p, l.tables));
    return l;
}

static int64_t workspace_plain(const cleat_node *node, const cleat_device_facts *facts) {
    (void)facts;
    const problem p = cleat_disentangled_problem_of(node);
    return plain_layout(&p, false, 0).bytes;
}

static void bind_plain(const cleat_node *node, cleat_binder *binder) {
    const problem p = cleat_disentangled_problem_of(node);
    const layout l = plain_layout(&p, false, 0);
    launch_expand(binder, node, &p, &l, 1);
    begin_form(binder, node, &p, &l, "attention/disentangled.cl", "disentangled_plain_forward", false);
    cleat_launch_tensor(binder, node->out[0]);
    cleat_launch_tensor(binder, node->out[1]);
    add_sizes(binder, &p, &l);
    cleat_launch_items(binder, p.batch * p.heads * p.length);
}

static int64_t grad_workspace_plain(const cleat_node *node, const cleat_device_facts *facts) {
    (void)facts;
    const problem p = cleat_disentangled_problem_of(node);
    return plain_layout(&p, true, needs_positions(node)).bytes;
}

static void bind_grad_plain(const cleat_node *node, cleat_binder *binder) {
    static const char file[] = "attention/disentangled.cl";
    const problem p = cleat_disentangled_problem_of(node);
    const layout l = plain_layout(&p, true, needs_positions(node));
    launch_expand(binder, node, &p, &l, 1);
    launch_delta(binder, node, &p, &l);
    if (node->out[0]) {
        begin_form(binder, node, &p, &l, file, "disentangled_plain_dq", true);
        add_gradients(binder, node, &p, 0, 0);
        add_sizes(binder, &p, &l);
        cleat_launch_items(binder, p.batch * p.heads * p.length);
        begin_form(binder, node, &p, &l, file, "disentangled_plain_keys", true);
        add_gradients(binder, node, &p, 1, 2);
        add_sizes(binder, &p, &l);
        cleat_launch_items(binder, p.batch * p.heads * p.length);
    }
    if (!needs_positions(node)) return;
    begin_form(binder, node, &p, &l, file, "disentangled_plain_positions", true);
    cleat_launch_workspace(binder, l.dtables, sizeof(float));
    add_sizes(binder, &p, &l);
    cleat_launch_items(binder, p.heads * (2 * p.length - 1));
    launch_reduce(binder, node, &p, &l, 1, p.softmax_scale);
}

const cleat_variant cleat_disentangled_variants[] = {
    {.name = "plain", .workspace = workspace_plain, .bind = bind_plain},
    {0},
};

const cleat_variant cleat_disentangled_grad_variants[] = {
    {.name = "plain", .workspace = grad_workspace_plain, .bind = bind_grad_plain},
    {0},
};
