/* Functions of one element: sigmoid, tanh, SiLU. (ReLU and GELU have files of their own: linear layers fuse them.)
 *
 * To add one: its number in cl/lib/shared_numbers.clh, value and slope in cl/pointwise.cl, a row of `functions`, its
 * name in ops.h, and a row of tests/ops/test_pointwise.c. */
#include "cleat/ops.h"
#include "lib/shared_numbers.clh"
#include "ops/lib/define.h"
#include "ops/lib/shared.h"

typedef struct function {
    cleat_op op, grad;
    bool keeps_y;     /* the slope is computed from y; else from x */
    int flops, slope; /* operations per element of the value and of the slope */
    double (*value)(double x);
    double (*slope_at)(double kept); /* x or y */
} function;

enum { FUNCTIONS = POINTWISE_SILU + 1 };

static const function functions[FUNCTIONS]; /* [POINTWISE_...]; see below */

/* The attribute of a node and of its gradient: a POINTWISE_ number. */
static int32_t number_of(const cleat_node *node) {
    return *(const int32_t *)node->attr;
}

static const function *function_of(const cleat_node *node) {
    return &functions[number_of(node)];
}

static cleat_status infer(cleat_node *node, cleat_error *error) {
    const cleat_tensor *x = node->in[0];
    if (!cleat_is_storage(x->dtype))
        return cleat_infer_fail(node, error, "x is %s, it must be f32, f16 or bf16", cleat_dtype_name(x->dtype));
    return cleat_set_output(node, 0, x->dtype, x->rank, x->shape, error);
}

static cleat_cost cost(const cleat_node *node) {
    return cleat_elementwise_cost(node, function_of(node)->flops);
}

static cleat_cost cost_grad(const cleat_node *node) {
    return cleat_elementwise_cost(node, function_of(node)->slope + 2);
}

static void launch(cleat_binder *binder, const cleat_node *node, const char *kernel, const cleat_tensor *const *tensors,
                   int count) {
    const int64_t elements = cleat_tensor_elements(node->out[0]);
    cleat_launch_vector_kernel(binder, node, "pointwise.cl", kernel, node->out[0]->dtype, 0);
    cleat_launch_define(binder, "FUNCTION", number_of(node));
    for (int i = 0; i < count; ++i) cleat_launch_tensor(binder, tensors[i]);
    cleat_launch_i64(binder, elements);
    cleat_launch_elementwise(binder, elements);
}

static void bind(const cleat_node *node, cleat_binder *binder) {
    launch(binder, node, "pointwise_forward", (const cleat_tensor *[]){node->in[0], node->out[0]}, 2);
}

/* in = {dy, x or y, accum}, out = {dx} */
enum { DY, KEPT, GRAD_IN };

static void bind_grad(const cleat_node *node, cleat_binder *binder) {
    const cleat_tensor *tensors[] = {node->in[DY], node->in[KEPT], cleat_accum(node, GRAD_IN, 0), node->out[0]};
    launch(binder, node, "pointwise_backward", tensors, 4);
}

static void backward(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    if (!cleat_requires_grad(node->in[0])) return;
    const function *f = function_of(node);
    cleat_tensor *in[GRAD_IN] = {[DY] = dout[0], [KEPT] = f->keeps_y ? node->out[0] : node->in[0]};
    cleat_emit_grads(graph, &(cleat_grads_spec){.op = &f->grad,
                                                .attr = node->attr,
                                                .attr_bytes = sizeof(int32_t),
                                                .in = in,
                                                .n_in = GRAD_IN,
                                                .targets = &node->in[0],
                                                .n_targets = 1});
}

/* --- definitions ---------------------------------------------------------------------------------------------- */

static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

static double sigmoid_slope(double y) {
    return y * (1 - y);
}

static double tanh_slope(double y) {
    return 1 - y * y;
}

static double silu(double x) {
    return x * sigmoid(x);
}

static double silu_slope(double x) {
    return sigmoid(x) * (1 + x * sigmoid(-x));
}

/* The error of an exponent is relative in the exponential. */
static cleat_defined define(const cleat_node *node, cleat_host_values *values, int output, int64_t element) {
    (void)output;
    const double x = cleat_host_value(values, 0, element), y = function_of(node)->value(x);
    return (cleat_defined){.value = y, .size = fabs(y) * (1 + fabs(x))};
}

static cleat_defined define_grad(const cleat_node *node, cleat_host_values *values, int output, int64_t element) {
    (void)output;
    cleat_defined dx = cleat_define_begin(values, GRAD_IN, element);
    const double dy = cleat_host_value(values, DY, element);
    dx.value += dy * function_of(node)->slope_at(cleat_host_value(values, KEPT, element));
    dx.size += 2 * fabs(dy);
    return dx;
}

static const cleat_variant variants[] = {{.name = "elements", .bind = bind}, {0}};
static const cleat_variant grad_variants[] = {{.name = "elements", .bind = bind_grad}, {0}};

#define OPS(text)                                                                                                      \
    .op = {.name = text,                                                                                               \
           .infer = infer,                                                                                             \
           .backward = backward,                                                                                       \
           .cost = cost,                                                                                               \
           .variants = variants,                                                                                       \
           .define = define,                                                                                           \
           .inplace_inputs = CLEAT_IN(0),                                                                              \
           .autocast_inputs = CLEAT_IN(0)},                                                                            \
    .grad = {.name = text "_grad",                                                                                     \
             .infer = cleat_infer_same_as_dout,                                                                        \
             .cost = cost_grad,                                                                                        \
             .variants = grad_variants,                                                                                \
             .define = define_grad,                                                                                    \
             .inplace_inputs = CLEAT_IN(DY) | CLEAT_IN(KEPT) | CLEAT_IN(GRAD_IN)}

static const function functions[FUNCTIONS] = {
    [POINTWISE_SIGMOID] = {OPS("sigmoid"), .keeps_y = true, .flops = 20, .slope = 2, .value = sigmoid,
                           .slope_at = sigmoid_slope},
    [POINTWISE_TANH] = {OPS("tanh"), .keeps_y = true, .flops = 30, .slope = 2, .value = tanh, .slope_at = tanh_slope},
    [POINTWISE_SILU] = {OPS("silu"), .flops = 21, .slope = 24, .value = silu, .slope_at = silu_slope},
};

static cleat_tensor *emit(cleat_graph *graph, cleat_tensor *x, int32_t number) {
    cleat_node *node = cleat_emit(graph, &functions[number].op, &number, sizeof number, &x, 1);
    return node ? node->out[0] : NULL;
}

cleat_tensor *cleat_sigmoid(cleat_graph *graph, cleat_tensor *x) {
    return emit(graph, x, POINTWISE_SIGMOID);
}

cleat_tensor *cleat_tanh(cleat_graph *graph, cleat_tensor *x) {
    return emit(graph, x, POINTWISE_TANH);
}

cleat_tensor *cleat_silu(cleat_graph *graph, cleat_tensor *x) {
    return emit(graph, x, POINTWISE_SILU);
}
