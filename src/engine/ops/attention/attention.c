/* Multi-head, local, causal and cross-attention and their gradients, without an L x S tensor.
 * Kernels receive queries, keys and values as base, row length and number of rows; self-attention passes the
 * same tensor three times. */
#include "ops/attention/attention.h"
#include "cleat/ops.h"
#include "ops/lib/count.h"
#include "ops/lib/shared.h"

#include <math.h>

enum { HEAD_MAX = 128, CAUSAL_HEAD_MAX = 256, GPU_LOCAL_MEMORY = 32 * 1024 };

typedef struct attention_attr {
    int32_t heads;
    int32_t kv_heads; /* causal attention; 0: each query sees all keys */
    int32_t window;   /* 0: none */
    float scale;      /* 0: 1 / sqrt(D / H) */
    int32_t reach;    /* local attention, keys to each side; 0: all */
} attention_attr;

/* Inputs of all ops. Forward uses the first three and writes {y T [B, L, D], lse f32 [B, H, L]}; the
 * gradient writes {dq, dkv}. In self-attention, Q holds queries, keys and values [B, L, 3D], and KV is
 * NULL. In causal attention, LENGTHS holds the starts, and KV may be NULL. */
enum { Q, KV, LENGTHS, Y, LSE, DY, ACCUM_Q, ACCUM_KV };

typedef cleat_attention_operands operands;
typedef cleat_attention_problem problem;

problem cleat_attention_problem_of(const cleat_node *node) {
    const cleat_tensor *q = node->in[Q], *kv = node->in[KV];
    const attention_attr *attr = (const attention_attr *)node->attr;
    const bool causal = attr->kv_heads > 0, local = attr->reach > 0 && attr->reach < q->shape[1] - 1;
    const int64_t heads = attr->heads, kv_heads = causal ? attr->kv_heads : heads, parts = heads + 2 * kv_heads;
    const int64_t head = heads > 0 ? q->shape[2] / (kv ? heads : parts) : 0;
    return (problem){.in = {q, kv},
                     .lengths = node->in[LENGTHS],
                     .self = !kv,
                     .causal = causal,
                     .batch = q->shape[0],
                     .queries = q->shape[1],
                     .keys = kv ? kv->shape[1] : q->shape[1],
                     .width = heads * head,
                     .kv_width = kv_heads * head,
                     .heads = heads,
                     .kv_heads = kv_heads,
                     .head = head,
                     .window = attr->window > 0 && attr->window < q->shape[1] ? attr->window : q->shape[1],
                     .reach = local ? attr->reach : 0,
                     .scale = attr->scale != 0 ? (double)attr->scale : 1 / sqrt((double)head)};
}

/* --- launches: shared parts --------------------------------------------------------------------------------- */

static void begin(cleat_binder *binder, const cleat_node *node, const char *file, const char *kernel) {
    problem p = cleat_attention_problem_of(node);
    cleat_launch_kernel(binder, node, file, kernel, p.in.q->dtype);
    cleat_launch_define(binder, "DH", p.head);
    if (p.reach > 0) CLEAT_LAUNCH_DEFINES(binder, {"AHEAD", p.reach}, {"WINDOW", p.reach + 1});
    if (!p.causal) return;
    CLEAT_LAUNCH_DEFINES(binder, {"CAUSAL", 1}, {"SHARING", p.heads / p.kv_heads});
    if (p.window < p.keys) cleat_launch_define(binder, "WINDOW", p.window);
}

/* Adds keys, values. */
static void add_keys(cleat_binder *binder, const problem *p, operands x) {
    const cleat_tensor *tensor = p->self ? x.q : x.kv;
    int64_t first = p->self ? p->width : 0;
    cleat_launch_tensor_at(binder, tensor, first);
    cleat_launch_tensor_at(binder, tensor, first + p->kv_width);
}

/* Number of elements between consecutive rows of keys. */
static int32_t key_row(const problem *p) {
    return (int32_t)((p->self ? p->width : 0) + 2 * p->kv_width);
}

/* Adds the lengths of the queries (causal: the starts) and the lengths of the keys. */
static void add_lengths(cleat_binder *binder, const problem *p) {
    CLEAT_LAUNCH_TENSORS(binder, p->lengths, p->causal ? NULL : p->lengths);
}

/* Adds q, k, v, q_row, kv_row, q_lengths, k_lengths. */
static void add_operands(cleat_binder *binder, const problem *p) {
    cleat_launch_tensor(binder, p->in.q);
    add_keys(binder, p, p->in);
    CLEAT_LAUNCH_I32(binder, {"q_row", p->width + (p->self ? 2 * p->kv_width : 0)}, {"kv_row", key_row(p)});
    add_lengths(binder, p);
}

void cleat_attention_begin_forward(cleat_binder *binder, const cleat_node *node, const problem *p, const char *file,
                                   const char *kernel) {
    begin(binder, node, file, kernel);
    add_operands(binder, p);
    CLEAT_LAUNCH_TENSORS(binder, node->out[0], node->out[1]);
}

void cleat_attention_sizes(cleat_binder *binder, const problem *p) {
    CLEAT_LAUNCH_I32(binder, {"heads", p->heads}, {"lq", p->queries}, {"lk", p->keys});
    cleat_launch_f32(binder, "softmax_scale", (float)p->scale);
}

/* --- CPU ------------------------------------------------------------------------------------------------------ */

/* Split of a head's queries in the CPU kernels. A group has two vectors of queries; the groups of a block
 * share packed keys. */
typedef struct cpu_split {
    int64_t groups; /* per block */
    int64_t blocks;
} cpu_split;

/* Backward: each part of a head's queries, a multiple of a block, has separate dK and dV in scratch
 * memory. */
typedef struct cpu_parts {
    int64_t queries; /* per part */
    int64_t count;   /* per head */
    int64_t rows;    /* rows of dK and of dV: keys, rounded up to full tiles */
    int64_t floats;  /* size of dK and dV together, with rows padded to full vectors */
} cpu_parts;

/* Build options of the CPU kernels: rows of a register tile, floats of a packed row, and the maximum number
 * of groups per work-item, which are kept in private memory. */
typedef struct cpu_build {
    int64_t tile, pitch, forward_groups, backward_groups;
} cpu_build;

static cpu_build build_for(const problem *p, const cleat_device_facts *facts) {
    int64_t vector = facts->vector_width, pitch = p->head <= vector ? vector : round_up(p->head, 2 * vector);
    return (cpu_build){.tile = vector >= 16 ? 8 : 4,
                       .pitch = pitch,
                       .forward_groups = pitch <= 64 ? 16 : 8,
                       .backward_groups = pitch <= 32    ? 16
                                          : pitch <= 64  ? 8
                                          : pitch <= 128 ? 4
                                                         : 2};
}

/* All kernels of the file get the same options and so form one program. */
static void define_cpu(cleat_binder *binder, const problem *p) {
    cpu_build build = build_for(p, binder->facts);
    CLEAT_LAUNCH_DEFINES(binder, {"TILE", build.tile}, {"PITCH", build.pitch}, {"FORWARD_GROUPS", build.forward_groups},
                         {"BACKWARD_GROUPS", build.backward_groups});
}

/* Number of work-items to aim for: several per compute unit, which limits the time spent waiting for the last
 * one. */
static int64_t busy_for(const cleat_device_facts *facts) {
    return 4 * units_of(facts);
}

/* Chooses the largest number of groups per block that the kernel supports, or fewer if there would be too few
 * blocks; then equalizes the blocks. */
static cpu_split split_for(const problem *p, const cleat_device_facts *facts, int64_t groups) {
    int64_t all = ceil_div(p->queries, 2 * (int64_t)facts->vector_width), heads = p->batch * p->heads;
    while (groups > 1 && heads * ceil_div(all, groups) < busy_for(facts)) groups /= 2;
    int64_t blocks = ceil_div(all, groups);
    return (cpu_split){.groups = ceil_div(all, blocks), .blocks = blocks};
}

static cpu_split split_backward(const problem *p, const cleat_device_facts *facts) {
    return split_for(p, facts, build_for(p, facts).backward_groups);
}

static cpu_parts parts_for(const problem *p, const cleat_device_facts *facts) {
    cpu_build build = build_for(p, facts);
    cpu_split split = split_backward(p, facts);
    int64_t heads = p->batch * p->heads, busy = busy_for(facts), wanted = heads < busy ? ceil_div(busy, heads) : 1;
    int64_t part_blocks = ceil_div(split.blocks, wanted);
    cpu_parts parts = {.queries = part_blocks * split.groups * 2 * (int64_t)facts->vector_width,
                       .count = ceil_div(split.blocks, part_blocks),
                       .rows = round_up(p->keys, build.tile)};
    parts.floats = 2 * parts.rows * build.pitch;
    return parts;
}

const char *cleat_attention_cpu_refuse(const cleat_node *node, const cleat_device_facts *facts) {
    (void)node;
    if (facts->work_group != 1) return "requires work-groups of one work-item";
    if (facts->vector_width < 4) return "requires a vector width of at least 4";
    return NULL;
}

static void bind_cpu(const cleat_node *node, cleat_binder *binder) {
    problem p = cleat_attention_problem_of(node);
    cpu_split split = split_for(&p, binder->facts, build_for(&p, binder->facts).forward_groups);
    cleat_attention_begin_forward(binder, node, &p, "attention/attention_cpu.cl", "attention_cpu_forward");
    define_cpu(binder, &p);
    cleat_attention_sizes(binder, &p);
    cleat_launch_i32(binder, "groups", (int32_t)split.groups);
    cleat_launch_groups(binder, p.batch * p.heads * split.blocks);
}

/* --- GPU, and the generic form -------------------------------------------------------------------------------- */

const char *cleat_attention_gpu_refuse(const cleat_node *node, const cleat_device_facts *facts) {
    (void)node;
    if (facts->work_group < 64) return "requires work-groups of at least 64 work-items";
    if (facts->local_memory < GPU_LOCAL_MEMORY) return "requires 32 KiB of local memory";
    return NULL;
}

static const char *refuse_gpu(const cleat_node *node, const cleat_device_facts *facts) {
    if (cleat_attention_problem_of(node).head > HEAD_MAX) return "requires heads of at most 128 elements";
    return cleat_attention_gpu_refuse(node, facts);
}

/* Build options of attention_gpu.clh. */
typedef struct gpu_tile {
    int64_t rows;    /* queries in the forward kernel; queries or keys in the gradient kernels */
    int64_t threads; /* work-items per work-group */
    int64_t unroll;
} gpu_tile;

/* A work-item computes four rows of a tile if registers and local memory suffice; two on Intel's GPUs, and in
 * gradients on all but NVIDIA's cards: 64 work-items may be a single wave, and local memory holds too few
 * such groups to fill a compute unit. */
static gpu_tile gpu_tile_for(const problem *p, const cleat_device_facts *facts, bool forward) {
    const bool intel = facts->sub_group > 0, nvidia = facts->vendor == CLEAT_VENDOR_NVIDIA;
    const bool large = facts->work_group >= 128;
    /* PoCL 3.1 moves barriers into unrolled loads of a part of the work-items: heads of 72 and 80 went wrong. */
    const int unroll = nvidia ? 8 : intel || facts->vendor == CLEAT_VENDOR_POCL ? 1 : 2;
    gpu_tile tile = {.rows = forward || p->head <= 64 ? 32 : 16, .unroll = unroll};
    if (forward && p->head <= 64 && large && !intel) tile.rows = 64;
    tile.threads = large && (!nvidia || tile.rows == 64) ? 128 : 64;
    return tile;
}

/* Adds the options of the tiles to the most recent launch. */
static void define_tile(cleat_binder *binder, gpu_tile tile) {
    CLEAT_LAUNCH_DEFINES(binder, {"THREADS", tile.threads}, {"ROWS", tile.rows}, {"UNROLL", tile.unroll});
}

/* Adds the options of the tiles, and `groups` work-groups. */
static void launch_tiles(cleat_binder *binder, gpu_tile tile, int64_t groups) {
    size_t local = (size_t)tile.threads;
    size_t global = local * (size_t)groups;
    define_tile(binder, tile);
    cleat_launch_range(binder, 1, &global, &local);
}

static void bind_gpu(const cleat_node *node, cleat_binder *binder) {
    problem p = cleat_attention_problem_of(node);
    gpu_tile tile = gpu_tile_for(&p, binder->facts, true);
    cleat_attention_begin_forward(binder, node, &p, "attention/attention_gpu_forward.cl", "attention_gpu_forward");
    cleat_attention_sizes(binder, &p);
    launch_tiles(binder, tile, p.batch * p.heads * ceil_div(p.queries, tile.rows));
}

static void bind_plain(const cleat_node *node, cleat_binder *binder) {
    problem p = cleat_attention_problem_of(node);
    cleat_attention_begin_forward(binder, node, &p, "attention/attention.cl", "attention_plain_forward");
    cleat_launch_i32(binder, "batch", (int32_t)p.batch);
    cleat_attention_sizes(binder, &p);
    cleat_launch_items(binder, p.batch * p.heads * p.queries);
}

static const cleat_variant variants[] = {
    {.name = "cpu", .refuse = cleat_attention_cpu_refuse, .bind = bind_cpu},
    {.name = "mma", .refuse = cleat_attention_mma_refuse, .bind = cleat_attention_mma_bind},
    {.name = "gpu", .refuse = refuse_gpu, .bind = bind_gpu},
    {.name = "plain", .bind = bind_plain},
    {0},
};

/* --- gradient ------------------------------------------------------------------------------------------------- */

static operands accums_of(const cleat_node *node) {
    return (operands){node->in[ACCUM_Q], node->in[ACCUM_KV]};
}

static operands gradients_of(const cleat_node *node) {
    return (operands){node->out[0], node->out[1]};
}

bool cleat_attention_needs_dq(const cleat_node *node) {
    return node->out[0];
}

bool cleat_attention_needs_dkv(const cleat_node *node) {
    return node->in[KV] ? node->out[1] : node->out[0];
}

static int64_t workspace_cpu(const cleat_node *node, const cleat_device_facts *facts) {
    problem p = cleat_attention_problem_of(node);
    cpu_parts parts = parts_for(&p, facts);
    return p.batch * p.heads * parts.count * parts.floats * (int64_t)sizeof(float);
}

static void bind_grad_cpu(const cleat_node *node, cleat_binder *binder) {
    problem p = cleat_attention_problem_of(node);
    cpu_parts parts = parts_for(&p, binder->facts);
    begin(binder, node, "attention/attention_cpu.cl", "attention_cpu_backward");
    define_cpu(binder, &p);
    add_operands(binder, &p);
    CLEAT_LAUNCH_TENSORS(binder, node->in[Y], node->in[LSE], node->in[DY]);
    CLEAT_LAUNCH_TENSORS(binder, node->in[ACCUM_Q], node->out[0]);
    cleat_launch_workspace(binder, 0, sizeof(float));
    cleat_attention_sizes(binder, &p);
    CLEAT_LAUNCH_I32(binder, {"parts", parts.count}, {"part_queries", parts.queries},
                     {"groups", split_backward(&p, binder->facts).groups}, {"rows", parts.rows});
    cleat_launch_groups(binder, p.batch * p.heads * parts.count);
    if (!cleat_attention_needs_dkv(node)) return;

    begin(binder, node, "attention/attention_cpu.cl", "attention_cpu_keys");
    define_cpu(binder, &p);
    cleat_launch_workspace(binder, 0, sizeof(float));
    add_lengths(binder, &p);
    add_keys(binder, &p, accums_of(node));
    add_keys(binder, &p, gradients_of(node));
    CLEAT_LAUNCH_I32(binder, {"kv_row", key_row(&p)}, {"batch", p.batch}, {"heads", p.heads}, {"lq", p.queries},
                     {"lk", p.keys}, {"parts", parts.count}, {"part_queries", parts.queries}, {"rows", parts.rows});
    cleat_launch_items(binder, p.batch * p.keys);
}

int64_t cleat_attention_delta_bytes(const cleat_node *node, const cleat_device_facts *facts) {
    (void)facts;
    problem p = cleat_attention_problem_of(node);
    return p.batch * p.heads * p.queries * (int64_t)sizeof(float);
}

cleat_attention_parts cleat_attention_parts_for(const problem *p, const cleat_device_facts *facts, int64_t rows) {
    enum { GROUPS_A_UNIT = 2, QUERIES_MIN = 128 };
    int64_t tiles = p->batch * p->kv_heads * ceil_div(p->keys, rows);
    int64_t idle = GROUPS_A_UNIT * (int64_t)facts->compute_units / tiles;
    int64_t wanted = min(idle, ceil_div(p->queries, QUERIES_MIN));
    int64_t queries = wanted > 1 ? round_up(ceil_div(p->queries, wanted), rows) : p->queries;
    return (cleat_attention_parts){
        .rows = rows, .tiles = tiles, .queries = queries, .count = ceil_div(p->queries, queries)};
}

static cleat_attention_parts gpu_parts_for(const problem *p, const cleat_device_facts *facts) {
    return cleat_attention_parts_for(p, facts, gpu_tile_for(p, facts, false).rows);
}

/* delta, then the partial sums of the parts: f32 [tiles, parts, 2, rows, D / H]. */
static int64_t workspace_gpu(const cleat_node *node, const cleat_device_facts *facts) {
    problem p = cleat_attention_problem_of(node);
    cleat_attention_parts parts = gpu_parts_for(&p, facts);
    int64_t shares = parts.count > 1 ? parts.tiles * parts.count * 2 * parts.rows * p.head : 0;
    return cleat_attention_delta_bytes(node, facts) + shares * (int64_t)sizeof(float);
}

void cleat_attention_prepare_delta(cleat_binder *binder, const cleat_node *node, const problem *p) {
    if (cleat_attention_needs_dq(node)) return;
    begin(binder, node, "attention/attention.cl", "attention_delta");
    CLEAT_LAUNCH_TENSORS(binder, node->in[Y], node->in[DY], p->lengths);
    cleat_launch_workspace(binder, 0, sizeof(float));
    CLEAT_LAUNCH_I32(binder, {"batch", p->batch}, {"heads", p->heads}, {"lq", p->queries});
    cleat_launch_items(binder, p->batch * p->queries * p->heads);
}

void cleat_attention_begin_dq(cleat_binder *binder, const cleat_node *node, const problem *p, const char *file,
                              const char *kernel) {
    begin(binder, node, file, kernel);
    add_operands(binder, p);
    CLEAT_LAUNCH_TENSORS(binder, node->in[LSE], node->in[Y], node->in[DY]);
    cleat_launch_workspace(binder, 0, sizeof(float));
    CLEAT_LAUNCH_TENSORS(binder, node->in[ACCUM_Q], node->out[0]);
}

void cleat_attention_begin_keys(cleat_binder *binder, const cleat_node *node, const problem *p, const char *file,
                                const char *kernel) {
    begin(binder, node, file, kernel);
    add_operands(binder, p);
    cleat_launch_tensor(binder, node->in[LSE]);
    cleat_launch_workspace(binder, 0, sizeof(float));
    cleat_launch_tensor(binder, node->in[DY]);
    add_keys(binder, p, accums_of(node));
    add_keys(binder, p, gradients_of(node));
}

void cleat_attention_shares(cleat_binder *binder, const cleat_node *node, const cleat_attention_parts *parts) {
    cleat_launch_floats_or(binder, parts->count > 1, cleat_attention_delta_bytes(node, binder->facts), NULL);
}

void cleat_attention_launch_sum(cleat_binder *binder, const cleat_node *node, const problem *p, const char *file,
                                const char *kernel, const cleat_attention_parts *parts) {
    begin(binder, node, file, kernel);
    cleat_attention_shares(binder, node, parts);
    add_keys(binder, p, accums_of(node));
    add_keys(binder, p, gradients_of(node));
    CLEAT_LAUNCH_I32(binder, {"kv_row", key_row(p)}, {"batch", p->batch}, {"heads", p->heads}, {"lk", p->keys},
                     {"parts", parts->count});
    cleat_launch_items(binder, p->batch * p->keys * p->kv_width);
}

static const char gpu_backward[] = "attention/attention_gpu_backward.cl";

/* dQ, dK and dV in one launch, with the registers of the larger kernel. If rows are not whole vec4s, ptxas
 * 12.9 spills many of them (sm_75); else at most 8 bytes (heads of 68 and 116). Not tried on other vendors'
 * cards. */
static bool is_one_launch(const cleat_node *node, const cleat_device_facts *facts) {
    enum { VEC4 = 4 };
    return facts->vendor == CLEAT_VENDOR_NVIDIA && cleat_attention_problem_of(node).head % VEC4 == 0 &&
           cleat_attention_needs_dq(node) && cleat_attention_needs_dkv(node);
}

static void launch_gradients(cleat_binder *binder, const cleat_node *node, const problem *p,
                             const cleat_attention_parts *parts) {
    const gpu_tile tile = gpu_tile_for(p, binder->facts, false);
    const int64_t dq_groups = p->batch * p->heads * ceil_div(p->queries, tile.rows);
    begin(binder, node, gpu_backward, "attention_gpu_gradients");
    add_operands(binder, p);
    CLEAT_LAUNCH_TENSORS(binder, node->in[LSE], node->in[Y], node->in[DY]);
    cleat_launch_tensor(binder, node->in[ACCUM_Q]);
    add_keys(binder, p, accums_of(node));
    cleat_launch_tensor(binder, node->out[0]);
    add_keys(binder, p, gradients_of(node));
    cleat_attention_sizes(binder, p);
    cleat_attention_shares(binder, node, parts);
    CLEAT_LAUNCH_I32(binder, {"parts", parts->count}, {"part_queries", parts->queries}, {"dq_groups", dq_groups});
    launch_tiles(binder, tile, dq_groups + parts->tiles * parts->count);
}

/* dQ, then dK and dV. */
static void launch_each_gradient(cleat_binder *binder, const cleat_node *node, const problem *p,
                                 const cleat_attention_parts *parts) {
    const gpu_tile tile = gpu_tile_for(p, binder->facts, false);
    cleat_attention_prepare_delta(binder, node, p);
    if (cleat_attention_needs_dq(node)) {
        cleat_attention_begin_dq(binder, node, p, gpu_backward, "attention_gpu_dq");
        cleat_attention_sizes(binder, p);
        launch_tiles(binder, tile, p->batch * p->heads * ceil_div(p->queries, tile.rows));
    }
    if (!cleat_attention_needs_dkv(node)) return;
    cleat_attention_begin_keys(binder, node, p, gpu_backward, "attention_gpu_keys");
    cleat_attention_sizes(binder, p);
    cleat_attention_shares(binder, node, parts);
    CLEAT_LAUNCH_I32(binder, {"parts", parts->count}, {"part_queries", parts->queries});
    launch_tiles(binder, tile, parts->tiles * parts->count);
}

static void bind_grad_gpu(const cleat_node *node, cleat_binder *binder) {
    problem p = cleat_attention_problem_of(node);
    cleat_attention_parts parts = gpu_parts_for(&p, binder->facts);
    if (is_one_launch(node, binder->facts))
        launch_gradients(binder, node, &p, &parts);
    else
        launch_each_gradient(binder, node, &p, &parts);
    if (parts.count == 1 || !cleat_attention_needs_dkv(node)) return;
    cleat_attention_launch_sum(binder, node, &p, gpu_backward, "attention_gpu_sum_keys", &parts);
    define_tile(binder, gpu_tile_for(&p, binder->facts, false));
}

static void bind_grad_plain(const cleat_node *node, cleat_binder *binder) {
    problem p = cleat_attention_problem_of(node);
    cleat_attention_prepare_delta(binder, node, &p);
    if (cleat_attention_needs_dq(node)) {
        cleat_attention_begin_dq(binder, node, &p, "attention/attention.cl", "attention_plain_dq");
        cleat_launch_i32(binder, "batch", (int32_t)p.batch);
        cleat_attention_sizes(binder, &p);
        cleat_launch_items(binder, p.batch * p.heads * p.queries);
    }
    if (cleat_attention_needs_dkv(node)) {
        cleat_attention_begin_keys(binder, node, &p, "attention/attention.cl", "attention_plain_keys");
        cleat_launch_i32(binder, "batch", (int32_t)p.batch);
        cleat_attention_sizes(binder, &p);
        cleat_launch_items(binder, p.batch * p.kv_heads * p.keys);
    }
}

static const cleat_variant grad_variants[] = {
    {.name = "cpu", .refuse = cleat_attention_cpu_refuse, .workspace = workspace_cpu, .bind = bind_grad_cpu},
    {.name = "mma",
     .refuse = cleat_attention_mma_refuse,
     .workspace = cleat_attention_mma_grad_workspace,
     .bind = cleat_attention_mma_grad_bind},
    {.name = "gpu", .refuse = refuse_gpu, .workspace = workspace_gpu, .bind = bind_grad_gpu},
    {.name = "plain", .workspace = cleat_attention_delta_bytes, .bind = bind_grad_plain},
    {0},
};

/* Multiply-adds per pair of a query and a key and per element of a head: 2 forward; 5 backward, one of which
 * recomputes the scores. In addition, one exponential per pair and head. */
static cleat_cost cost_of(const cleat_node *node, int products) {
    enum { EXPONENTIAL = 40 };
    problem p = cleat_attention_problem_of(node);
    cleat_cost cost = cleat_elementwise_cost(node, 0);
    double pairs = (double)p.batch * (double)p.queries * (double)p.keys;
    if (p.causal) pairs = (double)p.batch * (double)p.window * ((double)p.queries - ((double)p.window - 1) / 2);
    if (p.reach > 0) /* without the corners of a square */
        pairs = (double)p.batch *
                ((double)p.queries * (2.0 * (double)p.reach + 1) - (double)p.reach * ((double)p.reach + 1));
    cost.work = CLEAT_WORK_PRODUCT;
    cost.flops = pairs * (2.0 * products * (double)p.width + EXPONENTIAL * (double)p.heads);
    return cost;
}

static cleat_cost cost_grad(const cleat_node *node) {
    return cost_of(node, 5);
}

static const cleat_op attention_grad = {.name = "attention_grad",
                                        .cost = cost_grad,
                                        .variants = grad_variants,
                                        .define = cleat_attention_define_grad,
                                        .inplace_inputs = CLEAT_IN(ACCUM_Q)};
static const cleat_op causal_attention_grad = {.name = "causal_attention_grad",
                                               .cost = cost_grad,
                                               .variants = grad_variants,
                                               .define = cleat_attention_define_grad,
                                               .inplace_inputs = CLEAT_IN(ACCUM_Q)};

static const cleat_op local_attention_grad = {.name = "local_attention_grad",
                                              .cost = cost_grad,
                                              .variants = grad_variants,
                                              .define = cleat_attention_define_grad,
                                              .inplace_inputs = CLEAT_IN(ACCUM_Q)};

static void backward(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    cleat_tensor *const targets[] = {node->in[Q], node->in[KV]};
    if (!dout[0] || !(cleat_requires_grad(targets[0]) || cleat_requires_grad(targets[1]))) return;
    cleat_tensor *in[] = {[Q] = node->in[Q],  [KV] = node->in[KV],  [LENGTHS] = node->in[LENGTHS],
                          [Y] = node->out[0], [LSE] = node->out[1], [DY] = dout[0]};
    const attention_attr *attr = (const attention_attr *)node->attr;
    const cleat_op *op = attr->kv_heads > 0 ? &causal_attention_grad
                         : attr->reach > 0  ? &local_attention_grad
                                            : &attention_grad;
    cleat_emit_grads_of(graph, node, op, in, ACCUM_Q, targets, targets[1] ? 2 : 1);
}

/* --- forward -------------------------------------------------------------------------------------------------- */

static cleat_cost cost(const cleat_node *node) {
    return cost_of(node, 2);
}

/* Fails unless the queries can be split into heads. */
static cleat_status check_queries(const cleat_node *node, cleat_error *error) {
    const cleat_tensor *q = node->in[Q];
    const bool self = !node->in[KV];
    const char *what = self ? "qkv" : "q";
    int64_t heads = ((const attention_attr *)node->attr)->heads;
    if (!cleat_is_storage(q->dtype) || q->rank != 3)
        return cleat_infer_fail(node, error, "%s is %s, it must be [B, L, %s] of f32, f16 or bf16", what,
                                CLEAT_DESCRIBED(q), self ? "3D" : "D");
    if (heads < 1 || q->shape[2] % ((self ? 3 : 1) * heads) != 0)
        return cleat_infer_fail(node, error, "%s is %s: its last dimension must be a multiple of %s%lld heads", what,
                                CLEAT_DESCRIBED(q), self ? "3 times " : "", (long long)heads);
    int64_t head = q->shape[2] / ((self ? 3 : 1) * heads);
    if (head < 1 || head > HEAD_MAX)
        return cleat_infer_fail(node, error,
                                "%s is %s with %lld heads: a head has %lld elements, 1 to %d are supported", what,
                                CLEAT_DESCRIBED(q), (long long)heads, (long long)head, HEAD_MAX);
    return CLEAT_OK;
}

static cleat_status check_keys(const cleat_node *node, cleat_error *error) {
    const cleat_tensor *q = node->in[Q], *kv = node->in[KV];
    if (!kv) return CLEAT_OK;
    if (kv->rank == 3 && kv->dtype == q->dtype && kv->shape[0] == q->shape[0] && kv->shape[2] == 2 * q->shape[2])
        return CLEAT_OK;
    return cleat_infer_fail(node, error, "kv is %s, it must be %s [%lld, S, %lld] to match q, which is %s",
                            CLEAT_DESCRIBED(kv), cleat_dtype_name(q->dtype), (long long)q->shape[0],
                            (long long)(2 * q->shape[2]), CLEAT_DESCRIBED(q));
}

/* Kernels count rows of heads, and elements of a sequence, in int. */
static cleat_status check_size(const cleat_node *node, cleat_error *error) {
    problem p = cleat_attention_problem_of(node);
    int64_t longer = p.queries > p.keys ? p.queries : p.keys;
    if (p.batch * longer <= CLEAT_MAX_ROWS / p.heads && longer <= INT32_MAX / (4 * HEAD_MAX)) return CLEAT_OK;
    return cleat_infer_fail(node, error, "%lld samples of %lld rows with %lld heads: more than 2^30 rows",
                            (long long)p.batch, (long long)longer, (long long)p.heads);
}

/* Fails unless q and kv, or qkv, can be split into heads of queries, keys and values. */
static cleat_status check_causal(const cleat_node *node, cleat_error *error) {
    const cleat_tensor *q = node->in[Q], *kv = node->in[KV];
    const attention_attr *attr = (const attention_attr *)node->attr;
    const int64_t heads = attr->heads, kv_heads = attr->kv_heads, parts = heads + (kv ? 0 : 2 * kv_heads);
    const char *what = kv ? "q" : "qkv";
    if (heads < 1 || heads % kv_heads != 0)
        return cleat_infer_fail(node, error, "%lld heads of queries and %lld of keys: not a multiple", (long long)heads,
                                (long long)kv_heads);
    if (attr->window < 0 || !(attr->scale >= 0 && isfinite(attr->scale)))
        return cleat_infer_fail(node, error, "window is %d and scale %g: both must be finite, and 0 or more",
                                (int)attr->window, (double)attr->scale);
    if (!cleat_is_storage(q->dtype) || q->rank != 3 || q->shape[2] % parts != 0)
        return cleat_infer_fail(node, error, "%s is %s, it must be [B, L, %lld D/H] of f32, f16 or bf16", what,
                                CLEAT_DESCRIBED(q), (long long)parts);
    if (q->shape[2] / parts < 1 || q->shape[2] / parts > CAUSAL_HEAD_MAX)
        return cleat_infer_fail(node, error, "%s is %s: a head has %lld elements, 1 to %d are supported", what,
                                CLEAT_DESCRIBED(q), (long long)(q->shape[2] / parts), CAUSAL_HEAD_MAX);
    const int64_t kv_shape[] = {q->shape[0], q->shape[1], q->shape[2] / parts * 2 * kv_heads};
    return kv ? cleat_expect(node, KV, "kv", q->dtype, 3, kv_shape, error) : CLEAT_OK;
}

static cleat_status infer(cleat_node *node, cleat_error *error) {
    const bool causal = ((const attention_attr *)node->attr)->kv_heads > 0;
    cleat_status status = causal ? check_causal(node, error) : check_queries(node, error);
    if (!status && !causal) status = check_keys(node, error);
    if (!status) status = check_size(node, error);
    if (status) return status;
    problem p = cleat_attention_problem_of(node);
    const int64_t y_shape[] = {p.batch, p.queries, p.width}, lse_shape[] = {p.batch, p.heads, p.queries};
    if (p.lengths && causal) status = cleat_expect(node, LENGTHS, "starts", CLEAT_I32, 2, y_shape, error);
    if (p.lengths && !causal) status = cleat_expect(node, LENGTHS, "lengths", CLEAT_I32, 1, &p.batch, error);
    if (!status) status = cleat_set_output(node, 0, p.in.q->dtype, 3, y_shape, error);
    if (!status) status = cleat_set_output(node, 1, CLEAT_F32, 3, lse_shape, error);
    return status;
}

#define ATTENTION(op_name, op_attributes)                                                                              \
    {                                                                                                                  \
        .name = op_name, .optional_inputs = CLEAT_IN(KV) | CLEAT_IN(LENGTHS), .infer = infer, .backward = backward,    \
        .cost = cost, .variants = variants, .define = cleat_attention_define,                                          \
        .autocast_inputs = CLEAT_IN(Q) | CLEAT_IN(KV), .attributes = op_attributes                                     \
    }

static const cleat_attribute attributes[] = {CLEAT_ATTRIBUTE(attention_attr, heads, CLEAT_ATTRIBUTE_I32),
                                             {.name = NULL}};
static const cleat_op attention = ATTENTION("attention", attributes);

static const cleat_attribute causal_attributes[] = {CLEAT_ATTRIBUTE(attention_attr, heads, CLEAT_ATTRIBUTE_I32),
                                                    CLEAT_ATTRIBUTE(attention_attr, kv_heads, CLEAT_ATTRIBUTE_I32),
                                                    CLEAT_ATTRIBUTE(attention_attr, window, CLEAT_ATTRIBUTE_I32),
                                                    CLEAT_ATTRIBUTE(attention_attr, scale, CLEAT_ATTRIBUTE_F32),
                                                    {.name = NULL}};
static const cleat_op causal_attention = ATTENTION("causal_attention", causal_attributes);

static const cleat_attribute local_attributes[] = {CLEAT_ATTRIBUTE(attention_attr, heads, CLEAT_ATTRIBUTE_I32),
                                                   CLEAT_ATTRIBUTE(attention_attr, reach, CLEAT_ATTRIBUTE_I32),
                                                   {.name = NULL}};
static const cleat_op local_attention = ATTENTION("local_attention", local_attributes);

static cleat_tensor *emit(cleat_graph *graph, cleat_tensor *q, cleat_tensor *kv, cleat_tensor *lengths,
                          attention_attr attr) {
    cleat_tensor *in[] = {[Q] = q, [KV] = kv, [LENGTHS] = lengths};
    const cleat_op *op = attr.kv_heads > 0 ? &causal_attention : attr.reach > 0 ? &local_attention : &attention;
    return cleat_first_output(cleat_emit(graph, op, &attr, sizeof attr, in, 3));
}

cleat_tensor *cleat_attention(cleat_graph *graph, cleat_tensor *qkv, cleat_tensor *lengths, int heads) {
    return emit(graph, qkv, NULL, lengths, (attention_attr){.heads = heads});
}

cleat_tensor *cleat_local_attention(cleat_graph *graph, cleat_tensor *qkv, cleat_tensor *lengths, int heads,
                                    int window) {
    if (window < 2)
        cleat_graph_fail(graph, CLEAT_ERR_ARGUMENT, "op 'local_attention': window is %d, at least 2 is needed", window);
    return emit(graph, qkv, NULL, lengths, (attention_attr){.heads = heads, .reach = window / 2});
}

cleat_tensor *cleat_causal_attention(cleat_graph *graph, cleat_tensor *q, cleat_tensor *kv, cleat_tensor *starts,
                                     int heads, int kv_heads, int window, float scale) {
    const attention_attr attr = {.heads = heads, .kv_heads = kv_heads, .window = window, .scale = scale};
    if (kv_heads < 1)
        cleat_graph_fail(graph, CLEAT_ERR_ARGUMENT, "op 'causal_attention': %d heads of keys, at least 1 is needed",
                         kv_heads);
    return emit(graph, q, kv, starts, attr);
}

cleat_tensor *cleat_cross_attention(cleat_graph *graph, cleat_tensor *q, cleat_tensor *kv, int heads) {
    if (!kv) cleat_graph_fail(graph, CLEAT_ERR_ARGUMENT, "op 'attention': kv is NULL, but it is not optional");
    return emit(graph, q, kv, NULL, (attention_attr){.heads = heads});
}
