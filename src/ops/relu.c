/* ReLU: rectified linear unit. */
#include "cleat/ops.h"
#include "ops/fusible.h"
#include "ops/lib/define.h"
#include "ops/lib/shared.h"

static cleat_status infer(cleat_node *node, cleat_error *error) {
    const cleat_tensor *x = node->in[0];
    if (!cleat_is_storage(x->dtype))
        return cleat_infer_fail(node, error, "x is %s, it must be f32, f16 or bf16", cleat_dtype_name(x->dtype));
    return cleat_set_output(node, 0, x->dtype, x->rank, x->shape, error);
}

static cleat_cost cost(const cleat_node *node) {
    return cleat_elementwise_cost(node, CLEAT_RELU_FLOPS);
}

void cleat_launch_relu(cleat_binder *binder, const cleat_node *node, const cleat_tensor *x, const cleat_tensor *y) {
    cleat_launch_elements(binder, node, "relu.cl", "relu_forward", (const cleat_tensor *[]){x, y}, 2);
}

void cleat_launch_relu_grad(cleat_binder *binder, const cleat_node *node, const cleat_tensor *dy, const cleat_tensor *y,
                            const cleat_tensor *accum, const cleat_tensor *dx) {
    cleat_launch_elements(binder, node, "relu.cl", "relu_backward", (const cleat_tensor *[]){dy, y, accum, dx}, 4);
}

static void bind_forward(const cleat_node *node, cleat_binder *binder) {
    cleat_launch_relu(binder, node, node->in[0], node->out[0]);
}

static void bind_backward(const cleat_node *node, cleat_binder *binder) {
    cleat_launch_relu_grad(binder, node, node->in[CLEAT_SLOPE_DY], node->in[CLEAT_SLOPE_OF],
                           cleat_accum(node, CLEAT_SLOPE_IN, 0), node->out[0]);
}

static cleat_defined define(const cleat_node *node, cleat_host_values *values, int output, int64_t element) {
    (void)node, (void)output;
    return (cleat_defined){.value = fmax(cleat_host_value(values, 0, element), 0)};
}

static cleat_defined define_grad(const cleat_node *node, cleat_host_values *values, int output, int64_t element) {
    (void)node, (void)output;
    cleat_defined dx = cleat_define_begin(values, CLEAT_SLOPE_IN, element);
    if (cleat_host_value(values, CLEAT_SLOPE_OF, element) > 0)
        cleat_define_add(&dx, cleat_host_value(values, CLEAT_SLOPE_DY, element));
    return dx;
}

static const cleat_variant forward_variants[] = {{.name = "elements", .bind = bind_forward}, {0}};
static const cleat_variant backward_variants[] = {{.name = "elements", .bind = bind_backward}, {0}};

const cleat_op cleat_relu_grad_op = {.name = "relu_grad",
                                     .discontinuous = true,
                                     .infer = cleat_infer_same_as_dout,
                                     .cost = cost,
                                     .variants = backward_variants,
                                     .define = define_grad,
                                     .inplace_inputs = CLEAT_IN(CLEAT_SLOPE_DY) | CLEAT_IN(CLEAT_SLOPE_OF) |
                                                       CLEAT_IN(CLEAT_SLOPE_IN)};

static void backward(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    if (!cleat_requires_grad(node->in[0])) return;
    cleat_tensor *in[CLEAT_SLOPE_IN] = {[CLEAT_SLOPE_DY] = dout[0], [CLEAT_SLOPE_OF] = node->out[0]};
    cleat_emit_grads(
        graph,
        &(cleat_grads_spec){
            .op = &cleat_relu_grad_op, .in = in, .n_in = CLEAT_SLOPE_IN, .targets = &node->in[0], .n_targets = 1});
}

const cleat_op cleat_relu_op = {.name = "relu",
                                .discontinuous = true,
                                .infer = infer,
                                .backward = backward,
                                .cost = cost,
                                .variants = forward_variants,
                                .define = define,
                                .inplace_inputs = CLEAT_IN(0),
                                .autocast_inputs = CLEAT_IN(0)};

cleat_tensor *cleat_relu(cleat_graph *graph, cleat_tensor *x) {
    cleat_node *node = cleat_emit(graph, &cleat_relu_op, NULL, 0, &x, 1);
    return node ? node->out[0] : NULL;
}
