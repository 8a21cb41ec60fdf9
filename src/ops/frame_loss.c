/* Frame-aligned point error (formulas in cl/frame_loss.cl). */
#include "cleat/ops.h"
#include "lib/shared_numbers.clh"
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
    if (x->rank != 3 || x->shape[2] != 3 || x->dtype != CLEAT_F32) {
        char text[96];
        cleat_tensor_describe(x, text, sizeof text);
        return cleat_infer_fail(node, error, "coordinates are %s; they must be f32 [B, L, 3]", text);
    }
    int64_t rigid_frames[3] = {x->shape[0], x->shape[1], 9};
    cleat_status status = cleat_expect(node, RIGID_FRAMES, "frames", CLEAT_F32, 3, rigid_frames, error);
    if (status == CLEAT_OK) status = cleat_expect(node, REFERENCE, "reference", CLEAT_F32, 3, x->shape, error);
    if (status == CLEAT_OK) status = cleat_expect(node, MASK, "mask", CLEAT_F32, 2, x->shape, error);
    if (status == CLEAT_OK) status = cleat_expect(node, LENGTHS, "lengths", CLEAT_I32, 1, x->shape, error);
    if (status != CLEAT_OK) return status;
    status = cleat_trace_check(node, x, sample_weight, term_of(node), error);
    if (status != CLEAT_OK) return status;
    status = cleat_set_output(node, 0, CLEAT_F32, 1, &one, error);
    return status == CLEAT_OK ? cleat_set_output(node, 1, CLEAT_F32, 1, x->shape, error) : status;
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
    cleat_launch_i32(binder, (int32_t)node->in[X]->shape[1]);
    cleat_launch_i32(binder, (int32_t)cleat_trace_stride(node->in[X]));
    cleat_launch_i32(binder, (int32_t)items);
    cleat_launch_items(binder, items);
}

static void bind(const cleat_node *node, cleat_binder *binder) {
    int64_t batch = node->in[X]->shape[0], length = node->in[X]->shape[1];
    launch_pack(binder, node);
    cleat_launch_kernel(binder, node, "frame_loss.cl", "frame_loss_rows", CLEAT_F32);
    cleat_launch_workspace(binder, 0, 4);
    cleat_launch_tensor(binder, node->in[LENGTHS]);
    cleat_launch_workspace(binder, planes_bytes(node), 4);
    cleat_launch_i32(binder, (int32_t)length);
    cleat_launch_i32(binder, (int32_t)cleat_trace_stride(node->in[X]));
    cleat_launch_i32(binder, (int32_t)(batch * length));
    cleat_launch_groups(binder, batch * length);
    cleat_trace_launch_total(binder, node, node->in[X], node->in[SAMPLE_WEIGHT], term_of(node), planes_bytes(node));
}

static void bind_grad(const cleat_node *node, cleat_binder *binder) {
    launch_pack(binder, node);
    cleat_launch_kernel(binder, node, "frame_loss.cl", "frame_loss_grad", CLEAT_F32);
    cleat_launch_workspace(binder, 0, 4);
    cleat_launch_tensor(binder, node->in[LENGTHS]);
    cleat_trace_launch_sample_weight(binder, node->in[X], node->in[SAMPLE_WEIGHT], term_of(node));
    cleat_launch_tensor(binder, node->in[INVERSE]);
    cleat_launch_tensor(binder, node->in[DTERM]);
    for (int i = 0; i < 2; ++i) cleat_launch_tensor(binder, cleat_accum(node, GRAD_IN, i));
    for (int i = 0; i < 2; ++i) cleat_launch_tensor(binder, node->out[i]);
    cleat_launch_i32(binder, (int32_t)node->in[X]->shape[1]);
    cleat_launch_i32(binder, (int32_t)cleat_trace_stride(node->in[X]));
    cleat_launch_groups(binder, node->in[X]->shape[0] * node->in[X]->shape[1]);
}

static const cleat_variant variants[] = {{.name = "rows", .workspace = workspace, .bind = bind}, {0}};
static const cleat_variant grad_variants[] = {{.name = "rows", .workspace = workspace_grad, .bind = bind_grad}, {0}};

static const cleat_op frame_loss_grad = {
    .name = "frame_loss_grad", .cost = cost_grad, .variants = grad_variants, .inplace_inputs = CLEAT_IN(GRAD_IN)};

static void backward(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    cleat_tensor *in[GRAD_IN];
    memcpy(in, node->in, FORWARD_IN * sizeof *in);
    in[INVERSE] = node->out[1];
    in[DTERM] = dout[0];
    cleat_tensor *targets[2] = {node->in[X], node->in[RIGID_FRAMES]};
    cleat_emit_grads(graph, &(cleat_grads_spec){.op = &frame_loss_grad,
                                                .attr = node->attr,
                                                .attr_bytes = sizeof(int32_t),
                                                .in = in,
                                                .n_in = GRAD_IN,
                                                .targets = targets,
                                                .n_targets = 2});
}

static const cleat_op frame_loss = {
    .name = "frame_loss", .infer = infer, .backward = backward, .cost = cost, .variants = variants};

cleat_tensor *cleat_frame_loss(cleat_graph *graph, cleat_tensor *x, cleat_tensor *rigid_frames,
                               const cleat_structure *target, cleat_tensor *sample_weight, int term) {
    if (!target->coords || !target->mask || !target->lengths) {
        cleat_graph_fail(graph, CLEAT_ERR_ARGUMENT, "op 'frame_loss' requires coords, mask and lengths");
        return NULL;
    }
    int32_t attribute = term;
    cleat_tensor *in[FORWARD_IN] = {x, rigid_frames, target->coords, target->mask, target->lengths, sample_weight};
    cleat_node *node = cleat_emit(graph, &frame_loss, &attribute, sizeof attribute, in, FORWARD_IN);
    return node ? node->out[0] : NULL;
}
