/* Multi-head self-attention and its gradient, without an L x L tensor. The kernels know queries, keys and values by
 * base, row length and count of rows, so that cross-attention needs no other kernels. */
#include "cleat/ops.h"
#include "ops/shared.h"

#include <math.h>

enum { HEAD_MOST = 128, CARD_LOCAL_MEMORY = 32 * 1024 };

typedef struct attention_attr {
    int32_t heads;
} attention_attr;

/* What both ops are about. */
typedef struct problem {
    const cleat_tensor *qkv, *lengths; /* T [B, L, 3D]; i32 [B] or NULL */
    int64_t batch, length, width;      /* B, L, D */
    int64_t heads, head;               /* H, D / H */
} problem;

static problem problem_of(const cleat_node *node) {
    const cleat_tensor *qkv = node->in[0];
    int64_t heads = ((const attention_attr *)node->attr)->heads, width = qkv->shape[2] / 3;
    return (problem){.qkv = qkv,
                     .lengths = node->in[1],
                     .batch = qkv->shape[0],
                     .length = qkv->shape[1],
                     .width = width,
                     .heads = heads,
                     .head = heads > 0 ? width / heads : 0};
}

static int64_t round_up(int64_t n, int64_t unit) {
    return (n + unit - 1) / unit * unit;
}

/* --- launches: what they share -------------------------------------------------------------------------------- */

static void begin(cleat_binder *binder, const cleat_node *node, const char *file, const char *kernel) {
    problem p = problem_of(node);
    cleat_launch_kernel(binder, node, file, kernel, p.qkv->dtype);
    cleat_launch_define(binder, "DH", p.head);
}

/* One of the three parts of qkv, or of a tensor of its shape (which may be NULL). */
static void add_part(cleat_binder *binder, const cleat_tensor *tensor, int part, const problem *p) {
    cleat_launch_tensor_at(binder, tensor, part * p->width);
}

/* lengths of the queries, lengths of the keys */
static void add_lengths(cleat_binder *binder, const problem *p) {
    cleat_launch_tensor(binder, p->lengths);
    cleat_launch_tensor(binder, p->lengths);
}

/* q, k, v, q_row, kv_row, q_lengths, k_lengths */
static void add_operands(cleat_binder *binder, const problem *p) {
    for (int part = 0; part < 3; ++part) add_part(binder, p->qkv, part, p);
    cleat_launch_i32(binder, (int32_t)(3 * p->width));
    cleat_launch_i32(binder, (int32_t)(3 * p->width));
    add_lengths(binder, p);
}

/* heads, lq, lk, scale */
static void add_sizes(cleat_binder *binder, const problem *p) {
    cleat_launch_i32(binder, (int32_t)p->heads);
    cleat_launch_i32(binder, (int32_t)p->length);
    cleat_launch_i32(binder, (int32_t)p->length);
    cleat_launch_f32(binder, (float)(1 / sqrt((double)p->head)));
}

/* --- on a CPU ------------------------------------------------------------------------------------------------- */

/* How the CPU kernels split the queries of a head. Groups are of two vectors of queries; a block of them shares packed
 * keys. */
typedef struct cpu_split {
    int64_t groups; /* of a block */
    int64_t blocks;
} cpu_split;

/* Backward: a part of a head's queries, whole blocks, has its own dK and dV in scratch memory. */
typedef struct cpu_parts {
    int64_t queries; /* of a part */
    int64_t count;   /* of a head */
    int64_t rows;    /* of dK and of dV: keys in whole tiles */
    int64_t floats;  /* of dK and dV together, rows in whole vectors */
} cpu_parts;

static int64_t ceil_div(int64_t n, int64_t by) {
    return (n + by - 1) / by;
}

/* PITCH of attention_cpu.cl */
static int64_t pitch_of(const problem *p, const cleat_device_facts *facts) {
    return p->head <= facts->lanes ? facts->lanes : round_up(p->head, 2 * (int64_t)facts->lanes);
}

/* Work-items wanted: some for every compute unit, so that none waits long for the others. */
static int64_t busy_for(const cleat_device_facts *facts) {
    return 4 * (int64_t)(facts->compute_units > 0 ? facts->compute_units : 1);
}

/* As many groups a block as the kernel serves, fewer where that leaves too few blocks; then blocks of like size. */
static cpu_split split_for(const problem *p, const cleat_device_facts *facts, int64_t groups) {
    int64_t all = ceil_div(p->length, 2 * (int64_t)facts->lanes), heads = p->batch * p->heads;
    while (groups > 1 && heads * ceil_div(all, groups) < busy_for(facts)) groups /= 2;
    int64_t blocks = ceil_div(all, groups);
    return (cpu_split){.groups = ceil_div(all, blocks), .blocks = blocks};
}

static cpu_split split_forward(const problem *p, const cleat_device_facts *facts) {
    return split_for(p, facts, pitch_of(p, facts) <= 64 ? 16 : 8); /* FORWARD_GROUPS */
}

static cpu_split split_backward(const problem *p, const cleat_device_facts *facts) {
    int64_t pitch = pitch_of(p, facts);
    return split_for(p, facts, pitch <= 32 ? 16 : pitch <= 64 ? 8 : 4); /* BACKWARD_GROUPS */
}

static cpu_parts parts_for(const problem *p, const cleat_device_facts *facts) {
    enum { TILE_MOST = 8 };
    cpu_split split = split_backward(p, facts);
    int64_t heads = p->batch * p->heads, busy = busy_for(facts), wanted = heads < busy ? ceil_div(busy, heads) : 1;
    int64_t part_blocks = ceil_div(split.blocks, wanted);
    cpu_parts parts = {.queries = part_blocks * split.groups * 2 * (int64_t)facts->lanes,
                       .count = ceil_div(split.blocks, part_blocks),
                       .rows = round_up(p->length, TILE_MOST)};
    parts.floats = 2 * parts.rows * pitch_of(p, facts);
    return parts;
}

static const char *refuse_cpu(const cleat_node *node, const cleat_device_facts *facts) {
    (void)node;
    if (facts->work_group != 1) return "made for one work-item a group";
    if (facts->lanes < 4) return "made for 4 lanes or more";
    return NULL;
}

static cleat_status bind_cpu(const cleat_node *node, const cleat_device_facts *facts, cleat_binder *binder,
                             cleat_error *error) {
    (void)error;
    problem p = problem_of(node);
    cpu_split split = split_forward(&p, facts);
    begin(binder, node, "attention_cpu.cl", "attention_cpu_forward");
    add_operands(binder, &p);
    cleat_launch_tensor(binder, node->out[0]);
    cleat_launch_tensor(binder, node->out[1]);
    add_sizes(binder, &p);
    cleat_launch_i32(binder, (int32_t)split.groups);
    cleat_launch_groups(binder, p.batch * p.heads * split.blocks);
    return CLEAT_OK;
}

/* --- on a card, and the plain way ----------------------------------------------------------------------------- */

/* Work-items of a group of attention_gpu.clh. */
static size_t card_group(const cleat_device_facts *facts) {
    return facts->work_group >= 128 ? 128 : 64;
}

static const char *refuse_card(const cleat_node *node, const cleat_device_facts *facts) {
    (void)node;
    if (facts->work_group < 64) return "made for groups of 64 work-items or more";
    if (facts->local_memory < CARD_LOCAL_MEMORY) return "needs 32 KiB of local memory";
    return NULL;
}

static void launch_tiles(cleat_binder *binder, const problem *p, int64_t rows) {
    size_t local = card_group(binder->facts);
    size_t global = local * (size_t)(p->batch * p->heads * (round_up(p->length, rows) / rows));
    cleat_launch_range(binder, 1, &global, &local);
}

static cleat_status bind_card(const cleat_node *node, const cleat_device_facts *facts, cleat_binder *binder,
                              cleat_error *error) {
    (void)facts, (void)error;
    problem p = problem_of(node);
    begin(binder, node, "attention_gpu_forward.cl", "attention_gpu_forward");
    add_operands(binder, &p);
    cleat_launch_tensor(binder, node->out[0]);
    cleat_launch_tensor(binder, node->out[1]);
    add_sizes(binder, &p);
    launch_tiles(binder, &p, 32); /* ROWS of the kernel */
    return CLEAT_OK;
}

static cleat_status bind_plain(const cleat_node *node, const cleat_device_facts *facts, cleat_binder *binder,
                               cleat_error *error) {
    (void)facts, (void)error;
    problem p = problem_of(node);
    begin(binder, node, "attention.cl", "attention_plain_forward");
    add_operands(binder, &p);
    cleat_launch_tensor(binder, node->out[0]);
    cleat_launch_tensor(binder, node->out[1]);
    cleat_launch_i32(binder, (int32_t)p.batch);
    add_sizes(binder, &p);
    cleat_launch_items(binder, p.batch * p.heads * p.length);
    return CLEAT_OK;
}

static const cleat_variant variants[] = {
    {.name = "cpu", .refuse = refuse_cpu, .bind = bind_cpu},
    {.name = "gpu", .refuse = refuse_card, .bind = bind_card},
    {.name = "plain", .bind = bind_plain},
    {0},
};

/* --- gradient ------------------------------------------------------------------------------------------------- */

/* in = {qkv, lengths, y, lse, dy, addend}, out = {dqkv} */
enum { QKV, LENGTHS, Y, LSE, DY, ADDEND };

static int64_t workspace_cpu(const cleat_node *node, const cleat_device_facts *facts) {
    problem p = problem_of(node);
    cpu_parts parts = parts_for(&p, facts);
    return p.batch * p.heads * parts.count * parts.floats * (int64_t)sizeof(float);
}

static cleat_status bind_grad_cpu(const cleat_node *node, const cleat_device_facts *facts, cleat_binder *binder,
                                  cleat_error *error) {
    (void)error;
    problem p = problem_of(node);
    cpu_parts parts = parts_for(&p, facts);
    begin(binder, node, "attention_cpu.cl", "attention_cpu_backward");
    add_operands(binder, &p);
    cleat_launch_tensor(binder, node->in[Y]);
    cleat_launch_tensor(binder, node->in[LSE]);
    cleat_launch_tensor(binder, node->in[DY]);
    add_part(binder, node->in[ADDEND], 0, &p);
    add_part(binder, node->out[0], 0, &p);
    cleat_launch_workspace(binder, 0, sizeof(float));
    add_sizes(binder, &p);
    cleat_launch_i32(binder, (int32_t)parts.count);
    cleat_launch_i32(binder, (int32_t)parts.queries);
    cleat_launch_i32(binder, (int32_t)split_backward(&p, facts).groups);
    cleat_launch_i32(binder, (int32_t)parts.rows);
    cleat_launch_groups(binder, p.batch * p.heads * parts.count);

    begin(binder, node, "attention_cpu.cl", "attention_cpu_keys");
    cleat_launch_workspace(binder, 0, sizeof(float));
    add_lengths(binder, &p);
    add_part(binder, node->in[ADDEND], 1, &p);
    add_part(binder, node->in[ADDEND], 2, &p);
    add_part(binder, node->out[0], 1, &p);
    add_part(binder, node->out[0], 2, &p);
    cleat_launch_i32(binder, (int32_t)(3 * p.width));
    cleat_launch_i32(binder, (int32_t)p.batch);
    cleat_launch_i32(binder, (int32_t)p.heads);
    cleat_launch_i32(binder, (int32_t)p.length);
    cleat_launch_i32(binder, (int32_t)p.length);
    cleat_launch_i32(binder, (int32_t)parts.count);
    cleat_launch_i32(binder, (int32_t)parts.queries);
    cleat_launch_i32(binder, (int32_t)parts.rows);
    cleat_launch_items(binder, p.batch * p.length);
    return CLEAT_OK;
}

/* delta f32 [B, H, L] = sum of dy * y over a head's elements */
static int64_t workspace_delta(const cleat_node *node, const cleat_device_facts *facts) {
    (void)facts;
    problem p = problem_of(node);
    return p.batch * p.heads * p.length * (int64_t)sizeof(float);
}

static void launch_delta(cleat_binder *binder, const cleat_node *node, const problem *p) {
    begin(binder, node, "attention.cl", "attention_delta");
    cleat_launch_tensor(binder, node->in[Y]);
    cleat_launch_tensor(binder, node->in[DY]);
    cleat_launch_tensor(binder, p->lengths);
    cleat_launch_workspace(binder, 0, sizeof(float));
    cleat_launch_i32(binder, (int32_t)p->batch);
    cleat_launch_i32(binder, (int32_t)p->heads);
    cleat_launch_i32(binder, (int32_t)p->length);
    cleat_launch_items(binder, p->batch * p->length * p->heads);
}

/* All arguments of the kernels of dQ (first part 0, one) and of dK and dV (first part 1, two) up to the sizes. */
static void begin_grad(cleat_binder *binder, const cleat_node *node, const problem *p, const char *file,
                       const char *kernel, int part, int parts) {
    begin(binder, node, file, kernel);
    add_operands(binder, p);
    cleat_launch_tensor(binder, node->in[LSE]);
    cleat_launch_workspace(binder, 0, sizeof(float));
    cleat_launch_tensor(binder, node->in[DY]);
    for (int i = 0; i < parts; ++i) add_part(binder, node->in[ADDEND], part + i, p);
    for (int i = 0; i < parts; ++i) add_part(binder, node->out[0], part + i, p);
}

static cleat_status bind_grad_card(const cleat_node *node, const cleat_device_facts *facts, cleat_binder *binder,
                                   cleat_error *error) {
    (void)facts, (void)error;
    problem p = problem_of(node);
    int64_t rows = p.head <= 64 ? 32 : 16; /* ROWS of the kernels */
    launch_delta(binder, node, &p);
    begin_grad(binder, node, &p, "attention_gpu_backward.cl", "attention_gpu_dq", 0, 1);
    add_sizes(binder, &p);
    launch_tiles(binder, &p, rows);
    begin_grad(binder, node, &p, "attention_gpu_backward.cl", "attention_gpu_keys", 1, 2);
    add_sizes(binder, &p);
    launch_tiles(binder, &p, rows);
    return CLEAT_OK;
}

static cleat_status bind_grad_plain(const cleat_node *node, const cleat_device_facts *facts, cleat_binder *binder,
                                    cleat_error *error) {
    (void)facts, (void)error;
    problem p = problem_of(node);
    launch_delta(binder, node, &p);
    begin_grad(binder, node, &p, "attention.cl", "attention_plain_dq", 0, 1);
    cleat_launch_i32(binder, (int32_t)p.batch);
    add_sizes(binder, &p);
    cleat_launch_items(binder, p.batch * p.heads * p.length);
    begin_grad(binder, node, &p, "attention.cl", "attention_plain_keys", 1, 2);
    cleat_launch_i32(binder, (int32_t)p.batch);
    add_sizes(binder, &p);
    cleat_launch_items(binder, p.batch * p.heads * p.length);
    return CLEAT_OK;
}

static const cleat_variant grad_variants[] = {
    {.name = "cpu", .refuse = refuse_cpu, .workspace = workspace_cpu, .bind = bind_grad_cpu},
    {.name = "gpu", .refuse = refuse_card, .workspace = workspace_delta, .bind = bind_grad_card},
    {.name = "plain", .workspace = workspace_delta, .bind = bind_grad_plain},
    {0},
};

static cleat_status infer_grad(cleat_node *node, cleat_error *error) {
    problem p = problem_of(node);
    const int64_t shape[] = {p.batch, p.length, p.width};
    return cleat_expect(node, DY, "dy", p.qkv->dtype, 3, shape, error);
}

/* Every pair of a query and a key costs so many multiply-adds an element of a head: 2 forward; 5 backward, one of
 * them again. And an exponential a head. */
static cleat_cost cost_of(const cleat_node *node, int products) {
    enum { EXPONENTIAL = 40 };
    problem p = problem_of(node);
    cleat_cost cost = cleat_elementwise_cost(node, 0);
    double pairs = (double)p.batch * (double)p.length * (double)p.length;
    cost.flops = pairs * (2.0 * products * (double)p.width + EXPONENTIAL * (double)p.heads);
    return cost;
}

static cleat_cost cost_grad(const cleat_node *node) {
    return cost_of(node, 5);
}

static const cleat_op attention_grad = {
    .name = "attention_grad", .infer = infer_grad, .cost = cost_grad, .variants = grad_variants, .share = 1u << ADDEND};

static void backward(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    if (!dout[0] || !cleat_wants_grad(node->in[0])) return;
    cleat_tensor *in[] = {
        [QKV] = node->in[0], [LENGTHS] = node->in[1], [Y] = node->out[0], [LSE] = node->out[1], [DY] = dout[0]};
    cleat_emit_grads(graph, &attention_grad, node->attr, sizeof(attention_attr), in, ADDEND, &node->in[0], 1);
}

/* --- forward -------------------------------------------------------------------------------------------------- */

static cleat_cost cost(const cleat_node *node) {
    return cost_of(node, 2);
}

/* in = {qkv, lengths}, out = {y, lse f32 [B, H, L]} */
static cleat_status infer(cleat_node *node, cleat_error *error) {
    const cleat_tensor *qkv = node->in[0], *lengths = node->in[1];
    int64_t heads = ((const attention_attr *)node->attr)->heads;
    char text[96];
    cleat_tensor_describe(qkv, text, sizeof text);
    if (!cleat_is_storage(qkv->dtype) || qkv->rank != 3)
        return cleat_infer_fail(node, error, "qkv is %s, it must be [B, L, 3D] of f32, f16 or bf16", text);
    if (heads < 1 || qkv->shape[2] % (3 * heads) != 0)
        return cleat_infer_fail(node, error, "qkv is %s: its last extent must be a multiple of 3 times %lld heads",
                                text, (long long)heads);
    problem p = problem_of(node);
    if (p.head < 1 || p.head > HEAD_MOST)
        return cleat_infer_fail(node, error, "qkv is %s with %lld heads: a head has %lld elements, 1 to %d are served",
                                text, (long long)heads, (long long)p.head, HEAD_MOST);
    if (p.batch * p.length > INT32_MAX / heads || p.length > INT32_MAX / (4 * HEAD_MOST))
        return cleat_infer_fail(node, error, "qkv is %s with %lld heads: more than 2^31 rows", text, (long long)heads);
    if (lengths) {
        cleat_status status = cleat_expect(node, 1, "lengths", CLEAT_I32, 1, &p.batch, error);
        if (status) return status;
    }
    const int64_t y_shape[] = {p.batch, p.length, p.width}, lse_shape[] = {p.batch, p.heads, p.length};
    cleat_status status = cleat_set_output(node, 0, qkv->dtype, 3, y_shape, error);
    if (status) return status;
    return cleat_set_output(node, 1, CLEAT_F32, 3, lse_shape, error);
}

/* The probabilities: T [B, H, L, L]. */
static int64_t fused_bytes(const cleat_node *node) {
    problem p = problem_of(node);
    return p.batch * p.heads * p.length * p.length * cleat_dtype_size(p.qkv->dtype);
}

static const cleat_op attention = {.name = "attention",
                                   .infer = infer,
                                   .backward = backward,
                                   .cost = cost,
                                   .variants = variants,
                                   .fused_bytes = fused_bytes};

cleat_tensor *cleat_attention(cleat_graph *graph, cleat_tensor *qkv, cleat_tensor *lengths, int heads) {
    if (!qkv) return NULL;
    cleat_tensor *in[] = {qkv, lengths};
    attention_attr attr = {.heads = heads};
    cleat_node *node = cleat_emit(graph, &attention, &attr, sizeof attr, in, 2);
    return node ? node->out[0] : NULL;
}
