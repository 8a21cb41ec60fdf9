/* Rectified linear unit. */
#include "cleat/ops.h"
#include "ops/shared.h"

static cleat_status infer(cleat_node *node, cleat_error *error) {
    const cleat_tensor *x = node->in[0];
    if (!cleat_is_storage(x->dtype))
        return cleat_infer_fail(node, error, "x is %s, it must be f32, f16 or bf16", cleat_dtype_name(x->dtype));
    return cleat_set_output(node, 0, x->dtype, x->rank, x->shape, error);
}

static cleat_cost cost(const cleat_node *node) {
    return cleat_elementwise_cost(node, 1);
}

/* in = {x}, or {dy, y, addend}; out = {y}, or {dx} */
static void bind_elements(const cleat_node *node, cleat_binder *binder, const char *kernel) {
    int64_t elements = cleat_tensor_elements(node->out[0]);
    cleat_launch_kernel(binder, node, "relu.cl", kernel, node->out[0]->dtype);
    for (int i = 0; i < node->n_in; ++i) cleat_launch_tensor(binder, node->in[i]);
    cleat_launch_tensor(binder, node->out[0]);
    cleat_launch_i64(binder, elements);
    cleat_launch_elementwise(binder, elements);
}

static cleat_status bind_forward(const cleat_node *node, const cleat_device_facts *facts, cleat_binder *binder,
                                 cleat_error *error) {
    (void)facts, (void)error;
    bind_elements(node, binder, "relu_forward");
    return CLEAT_OK;
}

static cleat_status bind_backward(const cleat_node *node, const cleat_device_facts *facts, cleat_binder *binder,
                                  cleat_error *error) {
    (void)facts, (void)error;
    bind_elements(node, binder, "relu_backward");
    return CLEAT_OK;
}

static const cleat_variant forward_variants[] = {{.name = "elements", .bind = bind_forward}, {0}};
static const cleat_variant backward_variants[] = {{.name = "elements", .bind = bind_backward}, {0}};

static const cleat_op relu_grad = {
    .name = "relu_grad", .infer = cleat_infer_same_as_dout, .cost = cost, .variants = backward_variants, .share = 7};

static void backward(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    if (!cleat_wants_grad(node->in[0])) return;
    cleat_tensor *in[] = {dout[0], node->out[0]};
    cleat_emit_grads(graph, &relu_grad, NULL, 0, in, 2, &node->in[0], 1);
}

static const cleat_op relu = {
    .name = "relu", .infer = infer, .backward = backward, .cost = cost, .variants = forward_variants, .share = 1};

cleat_tensor *cleat_relu(cleat_graph *graph, cleat_tensor *x) {
    if (!x) return NULL;
    cleat_node *node = cleat_emit(graph, &relu, NULL, 0, &x, 1);
    return node ? node->out[0] : NULL;
}
