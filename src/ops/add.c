/* y = a + b, and the sum of two gradients of one tensor. */
#include "cleat/ops.h"
#include "ops/fusible.h"
#include "ops/lib/shared.h"

static cleat_status infer(cleat_node *node, cleat_error *error) {
    const cleat_tensor *a = node->in[0], *b = node->in[1];
    if (!cleat_is_storage(a->dtype) || a->dtype != b->dtype || !cleat_same_shape(a, b)) {
        char text_a[96], text_b[96];
        cleat_tensor_describe(a, text_a, sizeof text_a);
        cleat_tensor_describe(b, text_b, sizeof text_b);
        return cleat_infer_fail(node, error, "%s + %s: both must have the same shape and the same type", text_a,
                                text_b);
    }
    return cleat_set_output(node, 0, a->dtype, a->rank, a->shape, error);
}

static cleat_cost cost(const cleat_node *node) {
    return cleat_elementwise_cost(node, 1);
}

static void bind(const cleat_node *node, cleat_binder *binder) {
    int64_t elements = cleat_tensor_elements(node->out[0]);
    cleat_launch_kernel(binder, node, "add.cl", "add_elements", node->out[0]->dtype);
    cleat_launch_tensor(binder, node->in[0]);
    cleat_launch_tensor(binder, node->in[1]);
    cleat_launch_tensor(binder, node->out[0]);
    cleat_launch_i64(binder, elements);
    cleat_launch_elementwise(binder, elements);
}

static const cleat_variant variants[] = {{.name = "elements", .bind = bind}, {0}};

/* in = {dy, accum}, out = {dx}: dx = accum + dy. */
static const cleat_op add_grad = {.name = "add_grad",
                                  .infer = cleat_infer_same_as_dout,
                                  .cost = cost,
                                  .variants = variants,
                                  .inplace_inputs = CLEAT_IN(0) | CLEAT_IN(1)};

void cleat_pass_grad(cleat_graph *graph, cleat_tensor *x, cleat_tensor *dy) {
    if (!cleat_requires_grad(x) || !dy) return;
    if (cleat_gradient(graph, x))
        cleat_emit_grads(graph,
                         &(cleat_grads_spec){.op = &add_grad, .in = &dy, .n_in = 1, .targets = &x, .n_targets = 1});
    else
        cleat_set_gradient(graph, x, dy);
}

static void backward(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    cleat_pass_grad(graph, node->in[0], dout[0]);
    cleat_pass_grad(graph, node->in[1], dout[0]);
}

const cleat_op cleat_add_op = {.name = "add",
                               .infer = infer,
                               .backward = backward,
                               .cost = cost,
                               .variants = variants,
                               .inplace_inputs = CLEAT_IN(0) | CLEAT_IN(1),
                               .autocast_inputs = CLEAT_IN(0) | CLEAT_IN(1)};

cleat_tensor *cleat_add(cleat_graph *graph, cleat_tensor *a, cleat_tensor *b) {
    if (!a || !b) return NULL;
    cleat_tensor *in[] = {a, b};
    cleat_node *node = cleat_emit(graph, &cleat_add_op, NULL, 0, in, 2);
    return node ? node->out[0] : NULL;
}
