/* Launches of the nodes of lstm.c: a block of samples per work-item with wide vectors, a few samples per
 * work-group, or the generic form. Each iterates over all steps in one launch. */
#include "lib/shared_numbers.clh"
#include "ops/lstm/lstm.h"

#include "ops/lib/count.h"
#include "ops/lib/rows.h"
#include "ops/lib/tiles.h"

enum { FLOAT_BYTES = 4 };

static void begin(cleat_binder *binder, const cleat_node *node, const char *file, const char *kernel) {
    cleat_launch_kernel(binder, node, file, kernel, (node->in[0] ? node->in[0] : node->out[0])->dtype);
}

static void add_sizes(cleat_binder *binder, const cleat_lstm_size *s) {
    CLEAT_LAUNCH_I32(binder, {"batch", s->batch}, {"length", s->length});
}

/* Adds gates, h, cells. */
static void add_outputs(cleat_binder *binder, const cleat_node *node) {
    for (int i = 0; i < node->n_out; ++i) cleat_launch_tensor(binder, node->out[i]);
}

/* Parts of a gradient in the workspace, f32: `count` times [4, rows, pitch], the first at byte `offset`,
 * `part` elements apart; the sum is [4, height, width]. */
typedef struct weight_parts {
    int64_t offset, count, part, height, rows, width, pitch;
} weight_parts;

/* out[i] = accum + the sum of its parts, if it is requested. */
static void launch_total(cleat_binder *binder, const cleat_node *node, const cleat_tensor *accum, int i,
                         const weight_parts *p) {
    if (!node->out[i]) return;
    cleat_launch_vector_kernel(binder, node, "lstm/lstm_weight.cl", "lstm_weight_total", node->out[i]->dtype,
                               p->part | p->pitch | p->width);
    cleat_launch_workspace(binder, p->offset, FLOAT_BYTES);
    CLEAT_LAUNCH_TENSORS(binder, accum, node->out[i]);
    CLEAT_LAUNCH_I32(binder, {"count", p->count}, {"part", p->part}, {"height", p->height}, {"rows", p->rows},
                     {"width", p->width}, {"pitch", p->pitch});
    cleat_launch_runs(binder, 4 * p->height, p->width);
}

/* --- CPU: wide vectors ---------------------------------------------------------------------------------------- */

/* Whether the node computes the gradient of a whole layer's inputs. */
static bool has_dx(const cleat_node *node) {
    return node->n_out == CLEAT_LSTM_GRAD_OUT && node->out[CLEAT_LSTM_DX];
}

/* Columns of a register tile, in vectors: the number that leaves the last tile least empty; all columns, in
 * full tiles. */
typedef struct cpu_columns {
    int64_t tile, padded;
} cpu_columns;

/* Partition of the work; sizes are in vectors unless stated otherwise. The distance between samples is an odd
 * number of vectors, so that they do not map to the same cache set. */
typedef struct cpu_shape {
    int64_t units;                  /* vectors per row of units */
    int64_t inputs;                 /* vectors per row of a whole layer's inputs, else 0 */
    int64_t tile_rows;              /* samples of a register tile */
    cpu_columns back, weight;       /* of the gradients of units and inputs, and of weights */
    int64_t gate_rows, weight_rows; /* rows of the weights, padded; rounded up to full tiles */
    int64_t gate_pitch, unit_pitch; /* distance between samples, for gates and for units */
    int64_t operand_pitch;          /* distance between samples, for rows of inputs and units */
    int64_t chunk;                  /* depth of a panel of the forward pass, in elements */
    int64_t rows, items;            /* samples per block; work-items */
    int64_t forward_part, part;     /* scratch memory of a work-item: forward, backward */
    int64_t vector;                 /* bytes per vector */
} cpu_shape;

static cpu_columns columns_of(int64_t vectors) {
    const int64_t tile = vectors <= 4 ? vectors : round_up(vectors, 3) < round_up(vectors, 4) ? 3 : 4;
    return (cpu_columns){tile, round_up(vectors, tile)};
}

/* Panels of equal depth that leave room for other lines in a first-level cache of 48 KiB: 4 vectors of 64
 * bytes for each element. */
static int64_t chunk_of(int64_t depth, int64_t vector_width) {
    enum { CHUNK_MAX = 144 };
    return round_up(ceil_div(depth, ceil_div(depth, CHUNK_MAX)), vector_width);
}

static cpu_shape shape_cpu(const cleat_node *node, const cleat_device_facts *facts) {
    enum { ROWS_MAX = 66 }; /* with more, the rows of a block do not fit in the L2 cache */
    cleat_lstm_size size = cleat_lstm_size_of(node);
    int64_t busy = 2 * units_of(facts);
    cpu_shape s = {.units = ceil_div(size.hidden, facts->vector_width),
                   .inputs = ceil_div(size.inputs, facts->vector_width),
                   .tile_rows = size.inputs && facts->vector_width >= 16 ? 6 : 4,
                   .vector = facts->vector_width * FLOAT_BYTES};
    s.back = columns_of(s.units + (has_dx(node) ? s.inputs : 0));
    s.weight = columns_of(s.units + s.inputs);
    s.gate_rows = 4 * s.units * facts->vector_width;
    s.weight_rows = round_up(s.gate_rows, s.tile_rows);
    s.gate_pitch = 4 * s.units + 1;
    s.unit_pitch = s.units / 2 * 2 + 1;
    s.operand_pitch = max(s.back.padded, s.weight.padded) / 2 * 2 + 1;
    s.chunk = chunk_of((s.inputs + s.units) * facts->vector_width, facts->vector_width);
    s.rows = min(round_up(ceil_div(size.batch, busy), s.tile_rows), ROWS_MAX / s.tile_rows * s.tile_rows);
    s.items = min(ceil_div(size.batch, s.rows), 2 * busy);
    s.forward_part = s.rows * (4 + s.unit_pitch + 2 * s.operand_pitch);
    s.part = (s.rows + s.tile_rows) * (s.gate_pitch + s.operand_pitch) + s.rows * (s.unit_pitch + s.operand_pitch);
    return s;
}

/* Workspace layout: the packed weight, the work-items' scratch memory, their parts of the weight's
 * gradient. */
static int64_t cpu_packed(const cpu_shape *s, bool forward) {
    if (!forward) return s->gate_rows * s->back.padded * s->vector;
    return (s->gate_rows / s->units * (s->inputs + s->units) + (s->inputs ? 4 : 0)) * s->units * s->vector;
}
static int64_t cpu_scratch(const cpu_shape *s, bool forward) {
    return s->items * (forward ? s->forward_part : s->part) * s->vector;
}

static int64_t cpu_workspace(const cleat_node *node, const cleat_device_facts *facts) {
    cpu_shape s = shape_cpu(node, facts);
    return cpu_packed(&s, true) + cpu_scratch(&s, true);
}

/* Bytes of a work-item's part of the gradients: those of the weights, then those of the biases. */
static int64_t cpu_part(const cpu_shape *s) {
    return (s->weight_rows * s->weight.padded + 4 * s->units) * s->vector;
}

/* Whether the node computes the gradient of a weight or of the biases. */
static bool has_parts(const cleat_node *node) {
    bool any = false;
    for (int i = CLEAT_LSTM_DWEIGHT_HH; i < node->n_out; ++i) any = any || node->out[i];
    return any;
}

static int64_t cpu_grad_workspace(const cleat_node *node, const cleat_device_facts *facts) {
    cpu_shape s = shape_cpu(node, facts);
    return cpu_packed(&s, false) + cpu_scratch(&s, false) + (has_parts(node) ? s.items * cpu_part(&s) : 0);
}

static void begin_cpu(cleat_binder *binder, const cleat_node *node, const cpu_shape *s, const char *kernel) {
    begin(binder, node, "lstm/lstm_cpu.cl", kernel);
    CLEAT_LAUNCH_DEFINES(binder, {"WIDTH", cleat_lstm_size_of(node).hidden}, {"TILE", s->tile_rows},
                         {"COLUMNS", s->back.tile}, {"WEIGHT_COLUMNS", s->weight.tile}, {"DX", has_dx(node)},
                         {"GATE_PITCH", s->gate_pitch}, {"UNIT_PITCH", s->unit_pitch}, {"CHUNK", s->chunk});
    if (s->inputs) {
        CLEAT_LAUNCH_DEFINES(binder, {"INPUTS", cleat_lstm_size_of(node).inputs}, {"OPERAND_PITCH", s->operand_pitch},
                             {"TIME_MAJOR", cleat_lstm_size_of(node).time_major});
    }
    if (binder->facts->vendor == CLEAT_VENDOR_POCL)
        CLEAT_LAUNCH_DEFINES(binder, {"BUILTIN_PREFETCH", 1}, {"STREAMS", 1});
}

static void end_cpu(cleat_binder *binder, const cleat_node *node, const cpu_shape *s) {
    cleat_lstm_size size = cleat_lstm_size_of(node);
    add_sizes(binder, &size);
    cleat_launch_i32(binder, "rows", (int32_t)s->rows);
    cleat_launch_groups(binder, s->items);
}

static void bind_layer(const cleat_node *node, cleat_binder *binder) {
    cpu_shape s = shape_cpu(node, binder->facts);
    begin_cpu(binder, node, &s, "lstm_cpu_pack_layer");
    CLEAT_LAUNCH_TENSORS(binder, node->in[CLEAT_LSTM_WEIGHT_IH], node->in[CLEAT_LSTM_WEIGHT],
                         node->in[CLEAT_LSTM_BIAS]);
    cleat_launch_workspace(binder, 0, FLOAT_BYTES);
    cleat_launch_items(binder, cpu_packed(&s, true) / s.vector);
    begin_cpu(binder, node, &s, "lstm_cpu_layer");
    cleat_launch_tensor(binder, node->in[CLEAT_LSTM_X]);
    cleat_launch_workspace(binder, 0, FLOAT_BYTES);
    add_outputs(binder, node);
    cleat_launch_workspace(binder, cpu_packed(&s, true), FLOAT_BYTES);
    end_cpu(binder, node, &s);
}

static void bind_cpu(const cleat_node *node, cleat_binder *binder) {
    cpu_shape s = shape_cpu(node, binder->facts);
    begin_cpu(binder, node, &s, "lstm_cpu_pack_gates");
    cleat_launch_tensor(binder, node->in[CLEAT_LSTM_WEIGHT]);
    cleat_launch_workspace(binder, 0, FLOAT_BYTES);
    cleat_launch_items(binder, cpu_packed(&s, true) / s.vector);
    begin_cpu(binder, node, &s, "lstm_cpu_forward");
    cleat_launch_tensor(binder, node->in[CLEAT_LSTM_PRODUCTS]);
    cleat_launch_workspace(binder, 0, FLOAT_BYTES);
    add_outputs(binder, node);
    cleat_launch_workspace(binder, cpu_packed(&s, true), FLOAT_BYTES);
    end_cpu(binder, node, &s);
}

static void launch_cpu_totals(cleat_binder *binder, const cleat_node *node, const cpu_shape *s) {
    const cleat_lstm_size size = cleat_lstm_size_of(node);
    const int n_in = s->inputs ? CLEAT_LSTM_LAYER_GRAD_IN : CLEAT_LSTM_GRAD_IN;
    const int64_t units = s->gate_rows / 4, offset = cpu_packed(s, false) + cpu_scratch(s, false);
    weight_parts parts = {.offset = offset,
                          .count = s->items,
                          .part = cpu_part(s) / FLOAT_BYTES,
                          .height = size.hidden,
                          .rows = units,
                          .width = size.hidden,
                          .pitch = s->weight.padded * s->vector / FLOAT_BYTES};
    launch_total(binder, node, cleat_accum(node, n_in, CLEAT_LSTM_DWEIGHT_HH), CLEAT_LSTM_DWEIGHT_HH, &parts);
    if (!s->inputs) return;
    parts.offset = offset + units * FLOAT_BYTES, parts.width = size.inputs;
    launch_total(binder, node, cleat_accum(node, n_in, CLEAT_LSTM_DWEIGHT_IH), CLEAT_LSTM_DWEIGHT_IH, &parts);
    parts.offset = offset + s->weight_rows * s->weight.padded * s->vector;
    parts.height = parts.rows = 1, parts.width = size.hidden, parts.pitch = units;
    launch_total(binder, node, cleat_accum(node, n_in, CLEAT_LSTM_DBIAS), CLEAT_LSTM_DBIAS, &parts);
}

/* The gradient of the recurrent part, or of a whole layer. */
static void bind_grad_cpu(const cleat_node *node, cleat_binder *binder) {
    cpu_shape s = shape_cpu(node, binder->facts);
    begin_cpu(binder, node, &s, "lstm_cpu_pack_rows");
    CLEAT_LAUNCH_TENSORS(binder, node->in[CLEAT_LSTM_GRAD_WEIGHT],
                         s.inputs ? node->in[CLEAT_LSTM_GRAD_WEIGHT_IH] : NULL);
    cleat_launch_workspace(binder, 0, FLOAT_BYTES);
    cleat_launch_items(binder, cpu_packed(&s, false) / s.vector);
    begin_cpu(binder, node, &s, "lstm_cpu_backward");
    for (int i = 0; i < CLEAT_LSTM_GRAD_WEIGHT; ++i) cleat_launch_tensor(binder, node->in[i]);
    cleat_launch_workspace(binder, 0, FLOAT_BYTES);
    cleat_launch_tensor(binder, s.inputs ? NULL : node->out[0]);
    cleat_launch_workspace(binder, cpu_packed(&s, false), FLOAT_BYTES);
    cleat_launch_floats_or(binder, has_parts(node), cpu_packed(&s, false) + cpu_scratch(&s, false), NULL);
    if (s.inputs) {
        CLEAT_LAUNCH_TENSORS(binder, node->in[CLEAT_LSTM_GRAD_X],
                             cleat_accum(node, CLEAT_LSTM_LAYER_GRAD_IN, CLEAT_LSTM_DX), node->out[CLEAT_LSTM_DX]);
    }
    end_cpu(binder, node, &s);
    if (has_parts(node)) launch_cpu_totals(binder, node, &s);
}

/* --- gradients of the products in the workspace, if not required: the weight's gradient needs them ------------- */

static int64_t spare_bytes(const cleat_node *node) {
    return node->out[0] ? 0 : round_up(cleat_tensor_bytes(node->in[CLEAT_LSTM_GRAD_GATES]), 256);
}

/* Adds the products' gradients: the output, or the start of the workspace. */
static void add_dproducts(cleat_binder *binder, const cleat_node *node) {
    if (node->out[0])
        cleat_launch_tensor(binder, node->out[0]);
    else
        cleat_launch_workspace(binder, 0, cleat_dtype_size(node->in[0]->dtype));
}

/* --- GPU: work-groups with local memory ----------------------------------------------------------------------- */

typedef struct gpu_shape {
    /* Work-items along the units of a sample; units per work-item; samples per work-group. */
    int64_t lanes, blocks, samples;
    int64_t packed;               /* bytes of the packed weight */
    int64_t tiles, splits, depth; /* of the weight's gradient */
} gpu_shape;

/* Splits the steps of the weight's gradient, which has `tiles` tiles, for about `groups` groups. */
static void split_steps(gpu_shape *s, const cleat_node *node, int64_t tiles, int64_t groups) {
    enum { DEPTH_MIN = 256, SPLITS_MAX = 64 };
    cleat_lstm_size size = cleat_lstm_size_of(node);
    int64_t steps = size.batch * size.length;
    s->tiles = tiles;
    s->splits = min(min(ceil_div(groups, tiles), ceil_div(steps, DEPTH_MIN)), SPLITS_MAX);
    s->depth = round_up(ceil_div(steps, s->splits), LSTM_WEIGHT_SIDE);
    s->splits = ceil_div(steps, s->depth);
}

static gpu_shape shape_gpu(const cleat_node *node, const cleat_device_facts *facts) {
    enum { LANES_MIN = 16, VEC4 = 4 };
    cleat_lstm_size size = cleat_lstm_size_of(node);
    gpu_shape s = {.lanes = LANES_MIN};
    while (s.lanes < size.hidden && s.lanes < facts->work_group) s.lanes *= 2;
    s.blocks = ceil_div(size.hidden, s.lanes);
    s.samples = facts->work_group / s.lanes * VEC4;
    s.packed = size.hidden * s.blocks * s.lanes * 4 * FLOAT_BYTES;
    split_steps(&s, node, ceil_div(4 * size.hidden, LSTM_WEIGHT_SIDE) * ceil_div(size.hidden, LSTM_WEIGHT_SIDE),
                8 * units_of(facts));
    return s;
}

static const char *refuse_gpu(const cleat_node *node, const cleat_device_facts *facts) {
    enum { BLOCKS_MAX = 4, GROUP_MAX = 256, LOCAL_MAX = 32 * 1024 };
    if (facts->work_group < 32 || facts->work_group > GROUP_MAX) return "requires work-groups of 32 to 256";
    if (facts->vector_width != 4) return "requires a vector width of 4";
    if (shape_gpu(node, facts).blocks > BLOCKS_MAX) return "more than 4 units per work-item";
    return facts->local_memory < LOCAL_MAX ? "requires 32 KiB of local memory" : NULL;
}

static int64_t gpu_workspace(const cleat_node *node, const cleat_device_facts *facts) {
    return shape_gpu(node, facts).packed;
}

static int64_t gpu_parts(const cleat_node *node, const gpu_shape *s) {
    int64_t hidden = cleat_lstm_size_of(node).hidden;
    return node->out[1] ? s->splits * 4 * hidden * hidden * FLOAT_BYTES : 0;
}

/* The products' gradients, then the packed weight, which is later overwritten by the parts of its
 * gradient. */
static int64_t gpu_grad_workspace(const cleat_node *node, const cleat_device_facts *facts) {
    gpu_shape s = shape_gpu(node, facts);
    int64_t parts = gpu_parts(node, &s);
    return spare_bytes(node) + (s.packed > parts ? s.packed : parts);
}

static void begin_gpu(cleat_binder *binder, const cleat_node *node, const gpu_shape *s, const char *kernel) {
    begin(binder, node, "lstm/lstm_gpu.cl", kernel);
    CLEAT_LAUNCH_DEFINES(binder, {"HIDDEN", cleat_lstm_size_of(node).hidden}, {"LANES", s->lanes});
}

static void launch_gpu_pack(cleat_binder *binder, const cleat_node *node, const gpu_shape *s, bool forward) {
    begin_gpu(binder, node, s, "lstm_gpu_pack");
    cleat_launch_tensor(binder, node->in[forward ? CLEAT_LSTM_WEIGHT : CLEAT_LSTM_GRAD_WEIGHT]);
    cleat_launch_workspace(binder, forward ? 0 : spare_bytes(node), FLOAT_BYTES);
    cleat_launch_i32(binder, "own_first", forward);
    cleat_launch_items(binder, s->packed / FLOAT_BYTES);
}

static void bind_gpu(const cleat_node *node, cleat_binder *binder) {
    cleat_lstm_size size = cleat_lstm_size_of(node);
    gpu_shape s = shape_gpu(node, binder->facts);
    launch_gpu_pack(binder, node, &s, true);
    begin_gpu(binder, node, &s, "lstm_gpu_forward");
    cleat_launch_tensor(binder, node->in[CLEAT_LSTM_PRODUCTS]);
    cleat_launch_workspace(binder, 0, FLOAT_BYTES);
    add_outputs(binder, node);
    add_sizes(binder, &size);
    cleat_launch_groups(binder, ceil_div(size.batch, s.samples));
}

/* The weight's gradient by the kernel that was begun. */
static void launch_weight(cleat_binder *binder, const cleat_node *node, const gpu_shape *s) {
    cleat_lstm_size size = cleat_lstm_size_of(node);
    add_dproducts(binder, node);
    cleat_launch_tensor(binder, node->in[CLEAT_LSTM_GRAD_H]);
    cleat_launch_workspace(binder, spare_bytes(node), FLOAT_BYTES);
    CLEAT_LAUNCH_I32(binder, {"steps", size.batch * size.length}, {"length", size.length}, {"split_steps", s->depth});
    cleat_launch_groups(binder, s->tiles * s->splits);
    launch_total(binder, node, cleat_accum(node, CLEAT_LSTM_GRAD_IN, CLEAT_LSTM_DWEIGHT_HH), CLEAT_LSTM_DWEIGHT_HH,
                 &(weight_parts){.offset = spare_bytes(node),
                                 .count = s->splits,
                                 .part = 4 * size.hidden * size.hidden,
                                 .height = size.hidden,
                                 .rows = size.hidden,
                                 .width = size.hidden,
                                 .pitch = size.hidden});
}

static void bind_grad_gpu(const cleat_node *node, cleat_binder *binder) {
    cleat_lstm_size size = cleat_lstm_size_of(node);
    gpu_shape s = shape_gpu(node, binder->facts);
    launch_gpu_pack(binder, node, &s, false);
    begin_gpu(binder, node, &s, "lstm_gpu_backward");
    CLEAT_LAUNCH_TENSORS(binder, node->in[CLEAT_LSTM_GRAD_DH], node->in[CLEAT_LSTM_GRAD_GATES],
                         node->in[CLEAT_LSTM_GRAD_CELLS]);
    cleat_launch_workspace(binder, spare_bytes(node), FLOAT_BYTES);
    add_dproducts(binder, node);
    add_sizes(binder, &size);
    cleat_launch_groups(binder, ceil_div(size.batch, s.samples));
    if (!node->out[1]) return;
    begin_gpu(binder, node, &s, "lstm_gpu_weight");
    launch_weight(binder, node, &s);
}

/* --- matrix units: the weight stays in registers --------------------------------------------------------------- */

/* A tile of the weight's gradient is a gate. A group has 4 samples, whose steps take less time than those of
 * 8, unless there are more groups than compute units. */
static gpu_shape shape_mma(const cleat_node *node, const cleat_device_facts *facts) {
    enum { GATES = 4 };
    gpu_shape s = {.samples = ceil_div(cleat_lstm_size_of(node).batch, 4) > units_of(facts) ? 8 : 4};
    split_steps(&s, node, GATES, units_of(facts));
    return s;
}

static const char *refuse_mma(const cleat_node *node, const cleat_device_facts *facts) {
    enum { FRAGMENT = 16, UNITS_MAX = 128 /* whose weight fits in a group's registers */ };
    const int64_t hidden = cleat_lstm_size_of(node).hidden;
    const char *why = cleat_matrix_refuse(facts, node->in[0]->dtype);
    if (why) return why;
    if (!HAS_HALVES((int)facts->matrix_unit)) return "this matrix unit has no products of eight columns";
    return hidden % FRAGMENT != 0 || hidden > UNITS_MAX ? "requires a multiple of 16 units, at most 128" : NULL;
}

/* The products' gradients, then the parts of the weight's. */
static int64_t mma_grad_workspace(const cleat_node *node, const cleat_device_facts *facts) {
    gpu_shape s = shape_mma(node, facts);
    return spare_bytes(node) + gpu_parts(node, &s);
}

static void begin_mma(cleat_binder *binder, const cleat_node *node, const char *kernel) {
    cleat_lstm_size size = cleat_lstm_size_of(node);
    begin(binder, node, "lstm/lstm_mma.cl", kernel);
    CLEAT_LAUNCH_DEFINES(binder, {"HIDDEN", size.hidden}, {"SAMPLES", shape_mma(node, binder->facts).samples});
    cleat_launch_matrix_unit(binder);
    cleat_launch_work_group(binder, 2 * size.hidden);
}

static void end_mma(cleat_binder *binder, const cleat_node *node) {
    cleat_lstm_size size = cleat_lstm_size_of(node);
    add_sizes(binder, &size);
    cleat_launch_groups(binder, ceil_div(size.batch, shape_mma(node, binder->facts).samples));
}

static void bind_mma(const cleat_node *node, cleat_binder *binder) {
    begin_mma(binder, node, "lstm_mma_forward");
    for (int i = 0; i < CLEAT_LSTM_TARGETS; ++i) cleat_launch_tensor(binder, node->in[i]);
    add_outputs(binder, node);
    end_mma(binder, node);
}

static void bind_grad_mma(const cleat_node *node, cleat_binder *binder) {
    gpu_shape s = shape_mma(node, binder->facts);
    begin_mma(binder, node, "lstm_mma_backward");
    CLEAT_LAUNCH_TENSORS(binder, node->in[CLEAT_LSTM_GRAD_DH], node->in[CLEAT_LSTM_GRAD_GATES],
                         node->in[CLEAT_LSTM_GRAD_CELLS], node->in[CLEAT_LSTM_GRAD_WEIGHT]);
    add_dproducts(binder, node);
    end_mma(binder, node);
    if (!node->out[1]) return;
    begin_mma(binder, node, "lstm_mma_weight");
    launch_weight(binder, node, &s);
}

/* --- generic -------------------------------------------------------------------------------------------------- */

static int64_t plain_workspace(const cleat_node *node, const cleat_device_facts *facts) {
    (void)facts;
    cleat_lstm_size s = cleat_lstm_size_of(node);
    return s.batch * LSTM_FORWARD_ROWS * s.hidden * FLOAT_BYTES;
}

static int64_t plain_grad_workspace(const cleat_node *node, const cleat_device_facts *facts) {
    (void)facts;
    cleat_lstm_size s = cleat_lstm_size_of(node);
    return spare_bytes(node) + s.batch * LSTM_BACKWARD_ROWS * s.hidden * FLOAT_BYTES;
}

static void end_plain(cleat_binder *binder, const cleat_lstm_size *s, int64_t items) {
    add_sizes(binder, s);
    cleat_launch_i32(binder, "hidden", (int32_t)s->hidden);
    cleat_launch_items(binder, items);
}

static void bind_plain(const cleat_node *node, cleat_binder *binder) {
    cleat_lstm_size s = cleat_lstm_size_of(node);
    begin(binder, node, "lstm/lstm.cl", "lstm_plain_forward");
    for (int i = 0; i < CLEAT_LSTM_TARGETS; ++i) cleat_launch_tensor(binder, node->in[i]);
    add_outputs(binder, node);
    cleat_launch_workspace(binder, 0, FLOAT_BYTES);
    end_plain(binder, &s, s.batch);
}

static void bind_grad_plain(const cleat_node *node, cleat_binder *binder) {
    cleat_lstm_size s = cleat_lstm_size_of(node);
    begin(binder, node, "lstm/lstm.cl", "lstm_plain_backward");
    CLEAT_LAUNCH_TENSORS(binder, node->in[CLEAT_LSTM_GRAD_DH], node->in[CLEAT_LSTM_GRAD_GATES],
                         node->in[CLEAT_LSTM_GRAD_CELLS], node->in[CLEAT_LSTM_GRAD_WEIGHT]);
    add_dproducts(binder, node);
    cleat_launch_workspace(binder, spare_bytes(node), FLOAT_BYTES);
    end_plain(binder, &s, s.batch);
    if (!node->out[1]) return;
    begin(binder, node, "lstm/lstm.cl", "lstm_plain_weight");
    if (node->out[1]->dtype != node->in[0]->dtype) cleat_launch_define(binder, "C_F32", 1);
    add_dproducts(binder, node);
    CLEAT_LAUNCH_TENSORS(binder, node->in[CLEAT_LSTM_GRAD_H], cleat_accum(node, CLEAT_LSTM_GRAD_IN, 1), node->out[1]);
    end_plain(binder, &s, 4 * s.hidden * s.hidden);
}

const cleat_variant cleat_lstm_variants[] = {
    {.name = "cpu", .refuse = cleat_refuse_groups, .workspace = cpu_workspace, .bind = bind_cpu},
    {.name = "mma", .refuse = refuse_mma, .bind = bind_mma},
    {.name = "gpu", .refuse = refuse_gpu, .workspace = gpu_workspace, .bind = bind_gpu},
    {.name = "plain", .workspace = plain_workspace, .bind = bind_plain},
    {0}};

const cleat_variant cleat_lstm_layer_variants[] = {
    {.name = "cpu", .refuse = cleat_refuse_groups, .workspace = cpu_workspace, .bind = bind_layer}, {0}};

const cleat_variant cleat_lstm_layer_grad_variants[] = {
    {.name = "cpu", .refuse = cleat_refuse_groups, .workspace = cpu_grad_workspace, .bind = bind_grad_cpu}, {0}};

const cleat_variant cleat_lstm_grad_variants[] = {
    {.name = "cpu", .refuse = cleat_refuse_groups, .workspace = cpu_grad_workspace, .bind = bind_grad_cpu},
    {.name = "mma", .refuse = refuse_mma, .workspace = mma_grad_workspace, .bind = bind_grad_mma},
    {.name = "gpu", .refuse = refuse_gpu, .workspace = gpu_grad_workspace, .bind = bind_grad_gpu},
    {.name = "plain", .workspace = plain_grad_workspace, .bind = bind_grad_plain},
    {0}};
