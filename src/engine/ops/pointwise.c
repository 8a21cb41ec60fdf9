/* Functions of one element: sigmoid, tanh, SiLU, ReLU, GELU (exact, with the error function, and by tanh).
 *
 * To add one: its number in cl/lib/shared_numbers.clh, value and slope in cl/pointwise.cl, a row of
 * `cleat_functions`, its name in ops.h, and a row of tests/ops/test_pointwise.c. */
#include "cleat/ops.h"
#include "ops/fusible.h"
#include "ops/lib/define.h"
#include "ops/lib/rows.h"
#include "ops/lib/shared.h"

#include <string.h>

/* The attribute of a node and of its gradient: a POINTWISE_ number. */
static int32_t number_of(const cleat_node *node) {
    return *(const int32_t *)node->attr;
}

static const cleat_function *function_of(const cleat_node *node) {
    return &cleat_functions[number_of(node)];
}

static cleat_status infer(cleat_node *node, cleat_error *error) {
    const cleat_tensor *x = node->in[0];
    if (!cleat_is_storage(x->dtype))
        return cleat_infer_fail(node, error, "x is %s, it must be f32, f16 or bf16", cleat_dtype_name(x->dtype));
    return cleat_set_output(node, 0, x->dtype, x->rank, x->shape, error);
}

static void launch(cleat_binder *binder, const cleat_node *node, const char *kernel, int32_t number,
                   const cleat_tensor *const *tensors, int count) {
    const cleat_tensor *result = tensors[count - 1];
    cleat_launch_vector_kernel(binder, node, "pointwise.cl", kernel, result->dtype, 0);
    cleat_launch_define(binder, "FUNCTION", number);
    for (int i = 0; i < count; ++i) cleat_launch_tensor(binder, tensors[i]);
    cleat_launch_i64(binder, "n", cleat_tensor_elements(result));
    cleat_launch_elementwise(binder, cleat_tensor_elements(result));
}

void cleat_launch_function(cleat_binder *binder, const cleat_node *node, int32_t number, const cleat_tensor *x,
                           const cleat_tensor *y) {
    launch(binder, node, "pointwise_forward", number, (const cleat_tensor *[]){x, y}, 2);
}

void cleat_launch_function_grad(cleat_binder *binder, const cleat_node *node, int32_t number, const cleat_tensor *dy,
                                const cleat_tensor *kept, const cleat_tensor *accum, const cleat_tensor *dx) {
    launch(binder, node, "pointwise_backward", number, (const cleat_tensor *[]){dy, kept, accum, dx}, 4);
}

static void bind(const cleat_node *node, cleat_binder *binder) {
    cleat_launch_function(binder, node, number_of(node), node->in[0], node->out[0]);
}

enum { DY = CLEAT_SLOPE_DY, KEPT = CLEAT_SLOPE_OF, GRAD_IN = CLEAT_SLOPE_IN };

static void bind_grad(const cleat_node *node, cleat_binder *binder) {
    cleat_launch_function_grad(binder, node, number_of(node), node->in[DY], node->in[KEPT],
                               cleat_accum(node, GRAD_IN, 0), node->out[0]);
}

static void backward(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    const cleat_function *f = function_of(node);
    cleat_tensor *in[GRAD_IN] = {[DY] = dout[0], [KEPT] = f->keeps_y ? node->out[0] : node->in[0]};
    cleat_emit_grads_of(graph, node, &f->grad, in, GRAD_IN, &node->in[0], 1);
}

/* In half storage, a fused GELU is computed from the unrounded sum of the linear layer, which is not stored. */
static bool is_cheap(const cleat_node *node) {
    return number_of(node) == POINTWISE_GELU && node->in[0]->dtype == CLEAT_F32;
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

static double gelu_tanh(double x) {
    return 0.5 * x * (1 + tanh(M_2_SQRTPI * M_SQRT1_2 * (x + 0.044715 * x * x * x)));
}

static double gelu_tanh_slope(double x) {
    const double t = tanh(M_2_SQRTPI * M_SQRT1_2 * (x + 0.044715 * x * x * x));
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * M_2_SQRTPI * M_SQRT1_2 * (1 + 3 * 0.044715 * x * x);
}

static double relu(double x) {
    return x <= 0 ? 0 : x; /* NaN stays */
}

static double relu_slope(double y) {
    return y > 0;
}

/* ReLU is exact; the error of an exponent is relative in the exponential; for GELU see cl/lib/gelu.clh. */
static double size_of(int32_t number, double x, double y) {
    if (number == POINTWISE_RELU) return 0;
    return number == POINTWISE_GELU ? fabs(x) : fabs(y) * (1 + fabs(x));
}

static cleat_expected_value define(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const double x = cleat_host_value(values, 0, element), y = function_of(node)->value(x);
    return (cleat_expected_value){.value = y, .size = size_of(number_of(node), x, y)};
}

static cleat_expected_value define_grad(const cleat_node *node, cleat_host_values *values, int64_t element) {
    cleat_expected_value dx = cleat_define_begin(values, GRAD_IN + values->output, element);
    const double dy = cleat_host_value(values, DY, element);
    const double slope = function_of(node)->slope_at(cleat_host_value(values, KEPT, element));
    if (slope != 0) dx.value += dy * slope; /* dy may be infinite */
    dx.size += fabs(dy) * (number_of(node) == POINTWISE_RELU ? slope : 2);
    return dx;
}

static const cleat_variant variants[] = {{.name = "elements", .bind = bind}, {0}};
static const cleat_variant grad_variants[] = {{.name = "elements", .bind = bind_grad}, {0}};

#define OPS(text, jumps, operations, grad_operations)                                                                  \
    .op = {.name = text,                                                                                               \
           .discontinuous = jumps,                                                                                     \
           .infer = infer,                                                                                             \
           .backward = backward,                                                                                       \
           .flops = operations,                                                                                        \
           .variants = variants,                                                                                       \
           .define = define,                                                                                           \
           .inplace_inputs = CLEAT_IN(0),                                                                              \
           .autocast_inputs = CLEAT_IN(0),                                                                             \
           .cheap = is_cheap},                                                                                         \
    .grad = {.name = text "_grad",                                                                                     \
             .discontinuous = jumps,                                                                                   \
             .flops = grad_operations,                                                                                 \
             .variants = grad_variants,                                                                                \
             .define = define_grad,                                                                                    \
             .inplace_inputs = CLEAT_IN(DY) | CLEAT_IN(KEPT) | CLEAT_IN(GRAD_IN)}

/* keeps_y, value, slope */
const cleat_function cleat_functions[POINTWISE_END] = {
    [POINTWISE_SIGMOID] = {OPS("sigmoid", false, 20, 4), true, sigmoid, sigmoid_slope},
    [POINTWISE_TANH] = {OPS("tanh", false, 30, 4), true, tanh, tanh_slope},
    [POINTWISE_SILU] = {OPS("silu", false, 21, 26), false, silu, silu_slope},
    [POINTWISE_RELU] = {OPS("relu", true, 1, 1), true, relu, relu_slope},
    [POINTWISE_GELU_TANH] = {OPS("gelu_tanh", false, 25, 35), false, gelu_tanh, gelu_tanh_slope},
    [POINTWISE_GELU] = {OPS("gelu", false, 40, 70), false, cleat_define_gelu, cleat_define_gelu_slope},
};

static cleat_tensor *emit(cleat_graph *graph, cleat_tensor *x, int32_t number) {
    return cleat_first_output(cleat_emit(graph, &cleat_functions[number].op, &number, sizeof number, &x, 1));
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

cleat_tensor *cleat_relu(cleat_graph *graph, cleat_tensor *x) {
    return emit(graph, x, POINTWISE_RELU);
}

cleat_tensor *cleat_gelu(cleat_graph *graph, cleat_tensor *x) {
    return emit(graph, x, POINTWISE_GELU);
}

cleat_tensor *cleat_gelu_tanh(cleat_graph *graph, cleat_tensor *x) {
    return emit(graph, x, POINTWISE_GELU_TANH);
}

/* --- gated products --------------------------------------------------------------------------------------------- */

static cleat_status infer_gated(cleat_node *node, cleat_error *error) {
    const cleat_tensor *x = node->in[0];
    int64_t shape[CLEAT_MAX_RANK];
    if (!cleat_is_storage(x->dtype) || cleat_width(x) % 2)
        return cleat_infer_fail(node, error, "x is %s, it must be f32, f16 or bf16 [..., 2 D]", CLEAT_DESCRIBED(x));
    memcpy(shape, x->shape, sizeof shape);
    shape[x->rank - 1] /= 2;
    return cleat_set_output(node, 0, x->dtype, x->rank, shape, error);
}

static void launch_gated(cleat_binder *binder, const cleat_node *node, const char *kernel,
                         const cleat_tensor *const *tensors, int count, const cleat_tensor *y) {
    cleat_launch_vector_kernel(binder, node, "pointwise.cl", kernel, y->dtype, cleat_width(y));
    cleat_launch_define(binder, "FUNCTION", number_of(node));
    for (int i = 0; i < count; ++i) cleat_launch_tensor(binder, tensors[i]);
    CLEAT_LAUNCH_I32(binder, {"rows", cleat_rows(y)}, {"width", cleat_width(y)});
    cleat_launch_runs(binder, cleat_rows(y), cleat_width(y));
}

static void bind_gated(const cleat_node *node, cleat_binder *binder) {
    launch_gated(binder, node, "gated_forward", (const cleat_tensor *[]){node->in[0], node->out[0]}, 2, node->out[0]);
}

static void bind_gated_grad(const cleat_node *node, cleat_binder *binder) {
    const cleat_tensor *tensors[] = {node->in[DY], node->in[KEPT], cleat_accum(node, GRAD_IN, 0), node->out[0]};
    launch_gated(binder, node, "gated_backward", tensors, 4, node->in[DY]);
}

static cleat_expected_value define_gated(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const int64_t width = cleat_width(node->out[0]), at = element / width * 2 * width + element % width;
    const double gate = cleat_host_value(values, 0, at), up = cleat_host_value(values, 0, at + width);
    const double f = function_of(node)->value(gate);
    return (cleat_expected_value){.value = f * up, .size = size_of(number_of(node), gate, f) * fabs(up)};
}

static cleat_expected_value define_gated_grad(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const int64_t width = cleat_width(node->in[DY]), row = element / (2 * width), column = element % width;
    const bool is_up = element % (2 * width) >= width;
    const double gate = cleat_host_value(values, KEPT, row * 2 * width + column);
    const double up = cleat_host_value(values, KEPT, row * 2 * width + width + column);
    const double dy = cleat_host_value(values, DY, row * width + column), f = function_of(node)->value(gate);
    cleat_expected_value dx = cleat_define_begin(values, GRAD_IN + values->output, element);
    dx.value += dy * (is_up ? f : up * function_of(node)->slope_at(gate));
    dx.size += fabs(dy) * (is_up ? size_of(number_of(node), gate, f) : 2 * fabs(up));
    return dx;
}

static const cleat_variant gated_variants[] = {{.name = "rows", .bind = bind_gated}, {0}};
static const cleat_variant gated_grad_variants[] = {{.name = "rows", .bind = bind_gated_grad}, {0}};
static const cleat_op gated_grad = {.name = "gated_grad",
                                    .flops = 35,
                                    .variants = gated_grad_variants,
                                    .define = define_gated_grad,
                                    .inplace_inputs = CLEAT_IN(KEPT) | CLEAT_IN(GRAD_IN)};

static void backward_gated(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    cleat_tensor *in[GRAD_IN] = {[DY] = dout[0], [KEPT] = node->in[0]};
    cleat_emit_grads_of(graph, node, &gated_grad, in, GRAD_IN, &node->in[0], 1);
}

static bool gated_is_cheap(const cleat_node *node) {
    (void)node;
    return true;
}

/* A POINTWISE_... */
static const cleat_attribute gated_attributes[] = {
    {.name = "function", .type = CLEAT_ATTRIBUTE_I32, .offset = 0, .count = 1}, {.name = NULL}};
static const cleat_op gated = {.name = "gated",
                               .infer = infer_gated,
                               .backward = backward_gated,
                               .flops = 25,
                               .variants = gated_variants,
                               .define = define_gated,
                               .autocast_inputs = CLEAT_IN(0),
                               .attributes = gated_attributes,
                               .cheap = gated_is_cheap};

cleat_tensor *cleat_gated(cleat_graph *graph, cleat_tensor *x, cleat_gate gate) {
    static const int32_t numbers[] = {[CLEAT_GATE_SILU] = POINTWISE_SILU,
                                      [CLEAT_GATE_GELU] = POINTWISE_GELU,
                                      [CLEAT_GATE_GELU_TANH] = POINTWISE_GELU_TANH};
    return cleat_first_output(cleat_emit(graph, &gated, &numbers[gate], sizeof *numbers, &x, 1));
}
