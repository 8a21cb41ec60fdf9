/* Coordinates of a chain from the step and rotation of each residue: a scan of rigid motions (formulas in
 * cl/rigid_chain.cl). */
#include "cleat/ops.h"
#include "ops/lib/shared.h"

/* Values per residue: three for the step, three for the rotation. */
enum { STEP_WIDTH = 6 };

enum { STEPS, LENGTHS, FORWARD_IN };
enum { COORDINATES, FRAMES };

static cleat_status infer(cleat_node *node, cleat_error *error) {
    const cleat_tensor *steps = node->in[STEPS];
    if (steps->rank != 3 || steps->shape[2] != STEP_WIDTH || !cleat_is_storage(steps->dtype)) {
        char text[96];
        cleat_tensor_describe(steps, text, sizeof text);
        return cleat_infer_fail(node, error, "steps are %s; they must be [B, L, %d]", text, STEP_WIDTH);
    }
    cleat_status status = cleat_expect(node, LENGTHS, "lengths", CLEAT_I32, 1, steps->shape, error);
    if (status != CLEAT_OK) return status;
    int64_t coords[3] = {steps->shape[0], steps->shape[1], 3}, rigid_frames[3] = {steps->shape[0], steps->shape[1], 9};
    status = cleat_set_output(node, COORDINATES, CLEAT_F32, 3, coords, error);
    return status == CLEAT_OK ? cleat_set_output(node, FRAMES, CLEAT_F32, 3, rigid_frames, error) : status;
}

/* About 150 operations per residue: two matrix products and a rotation matrix from a quaternion. */
static cleat_cost cost(const cleat_node *node) {
    return cleat_elementwise_cost(node, 50);
}

static void one_item_a_chain(cleat_binder *binder, int64_t batch) {
    size_t global = (size_t)batch, local = 1;
    cleat_launch_range(binder, 1, &global, &local);
}

static void bind(const cleat_node *node, cleat_binder *binder) {
    const cleat_tensor *steps = node->in[STEPS];
    cleat_launch_kernel(binder, node, "rigid_chain.cl", "rigid_chain_forward", steps->dtype);
    cleat_launch_tensor(binder, steps);
    cleat_launch_tensor(binder, node->in[LENGTHS]);
    cleat_launch_tensor(binder, node->out[COORDINATES]);
    cleat_launch_tensor(binder, node->out[FRAMES]);
    cleat_launch_i32(binder, (int32_t)steps->shape[1]);
    one_item_a_chain(binder, steps->shape[0]);
}

static const cleat_variant variants[] = {{.name = "scan", .bind = bind}, {0}};

/* The gradient's inputs follow the forward inputs; either of the last two may be absent; then the accum. out
 * = {dsteps} */
enum { G_COORDINATES = FORWARD_IN, G_FRAMES, DCOORDINATES, DFRAMES, GRAD_IN };

static void bind_grad(const cleat_node *node, cleat_binder *binder) {
    const cleat_tensor *steps = node->in[STEPS];
    cleat_launch_kernel(binder, node, "rigid_chain.cl", "rigid_chain_backward", steps->dtype);
    for (int i = 0; i < GRAD_IN; ++i) cleat_launch_tensor(binder, node->in[i]);
    cleat_launch_tensor(binder, cleat_accum(node, GRAD_IN, 0));
    cleat_launch_tensor(binder, node->out[0]);
    cleat_launch_i32(binder, (int32_t)steps->shape[1]);
    one_item_a_chain(binder, steps->shape[0]);
}

static const cleat_variant grad_variants[] = {{.name = "scan", .bind = bind_grad}, {0}};

static const cleat_op rigid_chain_grad = {
    .name = "rigid_chain_grad", .cost = cost, .variants = grad_variants, .inplace_inputs = CLEAT_IN(GRAD_IN)};

static void backward(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    cleat_tensor *in[GRAD_IN] = {
        [STEPS] = node->in[STEPS],      [LENGTHS] = node->in[LENGTHS],      [G_COORDINATES] = node->out[COORDINATES],
        [G_FRAMES] = node->out[FRAMES], [DCOORDINATES] = dout[COORDINATES], [DFRAMES] = dout[FRAMES]};
    cleat_emit_grads(
        graph, &(cleat_grads_spec){
                   .op = &rigid_chain_grad, .in = in, .n_in = GRAD_IN, .targets = &node->in[STEPS], .n_targets = 1});
}

static const cleat_op rigid_chain = {
    .name = "rigid_chain", .infer = infer, .backward = backward, .cost = cost, .variants = variants};

cleat_tensor *cleat_rigid_chain(cleat_graph *graph, cleat_tensor *steps, cleat_tensor *lengths,
                                cleat_tensor **rigid_frames) {
    if (rigid_frames) *rigid_frames = NULL;
    cleat_tensor *in[FORWARD_IN] = {[STEPS] = steps, [LENGTHS] = lengths};
    cleat_node *node = cleat_emit(graph, &rigid_chain, NULL, 0, in, FORWARD_IN);
    if (node && rigid_frames) *rigid_frames = node->out[FRAMES];
    return node ? node->out[COORDINATES] : NULL;
}
