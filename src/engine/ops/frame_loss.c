/* Frame-aligned point error (formulas in cl/frame_loss.cl). */
#include "cleat/ops.h"
#include "lib/shared_numbers.clh"
#include "ops/lib/define.h"
#include "ops/lib/shared.h"
#include "ops/lib/trace_loss.h"

#include <string.h>

/* x, frames, reference, mask, lengths, sample_weight. The gradient additionally has the output saved by the
 * forward node, dterm, and two accums. */
enum { X, RIGID_FRAMES, REFERENCE, MASK, LENGTHS, SAMPLE_WEIGHT, FORWARD_IN };
enum { INVERSE = FORWARD_IN, DTERM, GRAD_IN };

static int32_t term_of(const cleat_node *node) {
    int32_t term;
    memcpy(&term, node->attr, sizeof term);
    return term;
}

static cleat_status infer(cleat_node *node, cleat_error *error) {
    const cleat_tensor *x = node->in[X], *sample_weight = node->in[SAMPLE_WEIGHT];
    int64_t one = 1;
    if (x->rank != 3 || x->shape[2] != 3 || x->dtype != CLEAT_F32)
        return cleat_infer_fail(node, error, "coordinates are %s; they must be f32 [B, L, 3]", CLEAT_DESCRIBED(x));
    int64_t rigid_frames[3] = {x->shape[0], x->shape[1], 9};
    cleat_status status = cleat_expect(node, RIGID_FRAMES, "frames", CLEAT_F32, 3, rigid_frames, error);
    if (!status) status = cleat_expect(node, REFERENCE, "reference", CLEAT_F32, 3, x->shape, error);
    if (!status) status = cleat_expect(node, MASK, "mask", CLEAT_F32, 2, x->shape, error);
    if (!status) status = cleat_expect(node, LENGTHS, "lengths", CLEAT_I32, 1, x->shape, error);
    if (status) return status;
    status = cleat_trace_check(node, x, sample_weight, term_of(node), error);
    if (status) return status;
    status = cleat_set_output(node, 0, CLEAT_F32, 1, &one, error);
    return status ? status : cleat_set_output(node, 1, CLEAT_F32, 1, x->shape, error);
}

static cleat_cost cost(const cleat_node *node) {
    const cleat_tensor *x = node->in[X];
    double rows = (double)(x->shape[0] * x->shape[1]);
    return (cleat_cost){.flops = rows * (double)x->shape[1] * 100.0, .bytes = rows * FRAME_PLANES * 8};
}

static cleat_cost cost_grad(const cleat_node *node) {
    cleat_cost forward = cost(node);
    return (cleat_cost){.flops = 3 * forward.flops, .bytes = forward.bytes};
}

static int64_t planes_bytes(const cleat_node *node) {
    return cleat_trace_planes_bytes(node->in[X], FRAME_PLANES);
}

static int64_t workspace(const cleat_node *node, const cleat_device_facts *facts) {
    (void)facts;
    return planes_bytes(node) + cleat_trace_rows_bytes(node->in[X]);
}

static int64_t workspace_grad(const cleat_node *node, const cleat_device_facts *facts) {
    (void)facts;
    return planes_bytes(node);
}

static void launch_pack(cleat_binder *binder, const cleat_node *node) {
    int64_t items = node->in[X]->shape[0] * cleat_trace_stride(node->in[X]);
    cleat_launch_kernel(binder, node, "frame_loss.cl", "frame_loss_pack", CLEAT_F32);
    for (int i = X; i <= LENGTHS; ++i) cleat_launch_tensor(binder, node->in[i]);
    cleat_launch_workspace(binder, 0, 4);
    CLEAT_LAUNCH_I32(binder, {"L", node->in[X]->shape[1]}, {"stride", cleat_trace_stride(node->in[X])}, {"n", items});
    cleat_launch_items(binder, items);
}

static void bind(const cleat_node *node, cleat_binder *binder) {
    int64_t batch = node->in[X]->shape[0], length = node->in[X]->shape[1];
    launch_pack(binder, node);
    cleat_launch_kernel(binder, node, "frame_loss.cl", "frame_loss_rows", CLEAT_F32);
    cleat_launch_workspace(binder, 0, 4);
    cleat_launch_tensor(binder, node->in[LENGTHS]);
    cleat_launch_workspace(binder, planes_bytes(node), 4);
    CLEAT_LAUNCH_I32(binder, {"L", length}, {"stride", cleat_trace_stride(node->in[X])}, {"n", batch * length});
    cleat_launch_groups(binder, batch * length);
    const int32_t term = term_of(node);
    cleat_trace_launch_total(binder, node, node->in[X], node->in[SAMPLE_WEIGHT], &term, 1, planes_bytes(node));
}

static void bind_grad(const cleat_node *node, cleat_binder *binder) {
    launch_pack(binder, node);
    cleat_launch_kernel(binder, node, "frame_loss.cl", "frame_loss_grad", CLEAT_F32);
    cleat_launch_workspace(binder, 0, 4);
    cleat_launch_tensor(binder, node->in[LENGTHS]);
    cleat_trace_launch_sample_weight(binder, node->in[X], node->in[SAMPLE_WEIGHT], term_of(node));
    CLEAT_LAUNCH_TENSORS(binder, node->in[INVERSE], node->in[DTERM]);
    for (int i = 0; i < 2; ++i) cleat_launch_tensor(binder, cleat_accum(node, GRAD_IN, i));
    for (int i = 0; i < 2; ++i) cleat_launch_tensor(binder, node->out[i]);
    CLEAT_LAUNCH_I32(binder, {"L", node->in[X]->shape[1]}, {"stride", cleat_trace_stride(node->in[X])});
    cleat_launch_groups(binder, node->in[X]->shape[0] * node->in[X]->shape[1]);
}

/* --- definition ----------------------------------------------------------------------------------------------- */

/* A chain on the host; element `part` of residue `residue` of `moved`, X or RIGID_FRAMES, is moved. */
typedef struct host_chain {
    const float *x, *frames, *y, *mask;
    int64_t length;
    int moved, part;
    int64_t residue;
    double move;
} host_chain;

static host_chain define_chain(const cleat_node *node, const cleat_host_values *values, int64_t b) {
    const int64_t all = node->in[X]->shape[1];
    return (host_chain){.x = values->in[X].f + b * all * 3,
                        .frames = values->in[RIGID_FRAMES].f + b * all * 9,
                        .y = values->in[REFERENCE].f + b * all * 3,
                        .mask = values->in[MASK].f + b * all,
                        .length = cleat_define_length(values, LENGTHS, b, all),
                        .moved = -1};
}

static double define_value(const host_chain *c, int which, int64_t residue, int part) {
    const double value = (double)(which == X ? c->x[residue * 3 + part] : c->frames[residue * 9 + part]);
    return which == c->moved && residue == c->residue && part == c->part ? value + c->move : value;
}

static void define_cross(const double a[3], const double b[3], double out[3]) {
    for (int k = 0; k < 3; ++k) out[k] = a[(k + 1) % 3] * b[(k + 2) % 3] - a[(k + 2) % 3] * b[(k + 1) % 3];
}

static void define_unit(double a[3]) {
    const double length = sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2] + 1e-12);
    for (int k = 0; k < 3; ++k) a[k] /= length;
}

static bool define_has_frame(const host_chain *c, int64_t i) {
    return i > 0 && i + 1 < c->length && c->mask[i - 1] != 0 && c->mask[i] != 0 && c->mask[i + 1] != 0;
}

/* The frame of residue i in the reference, from its neighbours: columns in the order (radial, tangential, axial). */
static void define_frame(const host_chain *c, int64_t i, double frame[3][3]) {
    double a[3], b[3], along[3], across[3], third[3];
    for (int k = 0; k < 3; ++k) {
        a[k] = (double)c->y[3 * i + k] - (double)c->y[3 * (i - 1) + k];
        b[k] = (double)c->y[3 * (i + 1) + k] - (double)c->y[3 * i + k];
        along[k] = a[k] + b[k];
    }
    define_cross(a, b, across);
    define_unit(along);
    define_unit(across);
    define_cross(across, along, third);
    for (int k = 0; k < 3; ++k) {
        frame[k][0] = -third[k];
        frame[k][1] = 0.86336813 * along[k] - 0.50457454 * across[k];
        frame[k][2] = 0.50457454 * along[k] + 0.86336813 * across[k];
    }
}

/* The error of atom j as seen from residue i, whose reference frame is given; *far: |x_j - x_i|. */
static double define_pair(const host_chain *c, double frame[3][3], int64_t i, int64_t j, double *far) {
    double square = 0.01, near = 0, own = 0;
    for (int column = 0; column < 3; ++column) {
        double u = 0;
        for (int row = 0; row < 3; ++row) {
            const double v = (double)c->y[3 * j + row] - (double)c->y[3 * i + row];
            const double p = define_value(c, X, j, row) - define_value(c, X, i, row);
            u += define_value(c, RIGID_FRAMES, i, 3 * row + column) * p - frame[row][column] * v;
            if (column == 0) near += v * v, own += p * p;
        }
        square += u * u;
    }
    *far = sqrt(own);
    return 10 / (10 + sqrt(near)) * sqrt(square);
}

/* Sum and number of the pairs; if a residue is moved, only of the pairs with that residue. */
static void define_sum(const host_chain *c, cleat_host_values *values, double *sum, double *size, double *count) {
    for (int64_t i = 0; i < c->length; ++i) {
        double frame[3][3], far;
        if (!define_has_frame(c, i)) continue;
        define_frame(c, i, frame);
        const bool all = c->moved < 0 || i == c->residue;
        for (int64_t j = all ? 0 : c->residue; j < (all ? c->length : c->residue + 1); ++j) {
            if (c->mask[j] == 0) continue;
            *sum += define_pair(c, frame, i, j, &far);
            *size += 1 + 10 / (10 + far) * far * (c->moved == RIGID_FRAMES ? far : 1);
            *count += 1;
        }
        values->work += 40.0 * (double)(all ? c->length : 1);
    }
}

static cleat_expected_value define(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const int64_t batch = node->in[X]->shape[0];
    cleat_expected_value term = {.value = 0};
    for (int64_t b = values->output ? element : 0; b < (values->output ? element + 1 : batch); ++b) {
        const host_chain chain = define_chain(node, values, b);
        const double weight = cleat_host_value(values, SAMPLE_WEIGHT, term_of(node) * batch + b);
        double sum = 0, size = 0, count = 0;
        define_sum(&chain, values, &sum, &size, &count);
        if (count == 0) continue;
        if (values->output) return (cleat_expected_value){.value = 1 / count, .size = 1 / count};
        term.value += weight * sum / count;
        term.size += fabs(weight) * (sum + size) / count;
    }
    return term;
}

/* The derivative of the sum, by central differences. */
static cleat_expected_value define_grad(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const int64_t batch = node->in[X]->shape[0], all = node->in[X]->shape[1], width = values->output ? 9 : 3;
    const int64_t b = element / width / all;
    cleat_expected_value gradient = cleat_define_begin(values, GRAD_IN + values->output, element);
    host_chain chain = define_chain(node, values, b);
    chain.moved = values->output ? RIGID_FRAMES : X;
    chain.residue = element / width % all;
    chain.part = (int)(element % width);
    if (chain.residue >= chain.length) return gradient;
    const double factor = cleat_host_value(values, SAMPLE_WEIGHT, term_of(node) * batch + b) *
                          cleat_host_value(values, INVERSE, b) * cleat_host_value(values, DTERM, 0);
    double after = 0, before = 0, size = 0, count = 0;
    chain.move = 1e-4;
    define_sum(&chain, values, &after, &size, &count);
    chain.move = -chain.move;
    define_sum(&chain, values, &before, &size, &count);
    gradient.value += factor * (after - before) / 2e-4;
    gradient.size += fabs(factor) * size;
    return gradient;
}

static const cleat_variant variants[] = {{.name = "rows", .workspace = workspace, .bind = bind}, {0}};
static const cleat_variant grad_variants[] = {{.name = "rows", .workspace = workspace_grad, .bind = bind_grad}, {0}};

static const cleat_op frame_loss_grad = {.name = "frame_loss_grad",
                                         .cost = cost_grad,
                                         .variants = grad_variants,
                                         .define = define_grad,
                                         .inplace_inputs = CLEAT_IN(GRAD_IN)};

static void backward(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    cleat_tensor *in[GRAD_IN];
    memcpy(in, node->in, FORWARD_IN * sizeof *in);
    in[INVERSE] = node->out[1];
    in[DTERM] = dout[0];
    cleat_tensor *targets[2] = {node->in[X], node->in[RIGID_FRAMES]};
    cleat_emit_grads_of(graph, node, &frame_loss_grad, in, GRAD_IN, targets, 2);
}

static const cleat_op frame_loss = {
    .name = "frame_loss", .infer = infer, .backward = backward, .cost = cost, .variants = variants, .define = define};

cleat_tensor *cleat_frame_loss(cleat_graph *graph, cleat_tensor *x, cleat_tensor *rigid_frames,
                               const cleat_structure *target, cleat_tensor *sample_weight, int term) {
    if (!target->coords || !target->mask || !target->lengths) {
        cleat_graph_fail(graph, CLEAT_ERR_ARGUMENT, "op 'frame_loss' requires coords, mask and lengths");
        return NULL;
    }
    int32_t attribute = term;
    cleat_tensor *in[FORWARD_IN] = {x, rigid_frames, target->coords, target->mask, target->lengths, sample_weight};
    return cleat_first_output(cleat_emit(graph, &frame_loss, &attribute, sizeof attribute, in, FORWARD_IN));
}
