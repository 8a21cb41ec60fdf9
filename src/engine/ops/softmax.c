/* Softmax over the last dimension. */
#include "cleat/ops.h"
#include "ops/lib/define.h"
#include "ops/lib/rows.h"
#include "ops/lib/shared.h"

enum { MAX_WIDTH = 65536 };

static cleat_status infer(cleat_node *node, cleat_error *error) {
    const cleat_tensor *x = node->in[0];
    if (!cleat_is_storage(x->dtype))
        return cleat_infer_fail(node, error, "x is %s, it must be f32, f16 or bf16", cleat_dtype_name(x->dtype));
    if (x->rank < 1 || cleat_width(x) > MAX_WIDTH || cleat_rows(x) > CLEAT_MAX_ROWS)
        return cleat_infer_fail(node, error, "x is %s; it must have rows of 1 to %d elements, at most 2^30 rows",
                                CLEAT_DESCRIBED(x), MAX_WIDTH);
    return cleat_set_output(node, 0, x->dtype, x->rank, x->shape, error);
}

/* in = {x}, or {dy, y, accum}; out = {y}, or {dx} */
enum { DY, Y, GRAD_IN };

static void bind(const cleat_node *node, cleat_binder *binder) {
    const cleat_tensor *out = node->out[0];
    const char *kernel = node->n_in > GRAD_IN ? "softmax_backward" : "softmax_forward";
    cleat_launch_row_kernel(binder, node, "softmax.cl", kernel, out->dtype, cleat_width(out));
    for (int i = 0; i < node->n_in; ++i) cleat_launch_tensor(binder, node->in[i]);
    cleat_launch_tensor(binder, out);
    cleat_launch_i32(binder, "rows", (int32_t)cleat_rows(out));
    cleat_launch_rows(binder, cleat_rows(out), cleat_width(out));
}

/* The exponent is rounded in proportion to its size. */
static cleat_expected_value define(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const int64_t width = cleat_width(node->out[0]), first = element / width * width;
    double largest = -INFINITY, sum = 0;
    for (int64_t i = 0; i < width; ++i) largest = fmax(largest, cleat_host_value(values, 0, first + i));
    for (int64_t i = 0; i < width; ++i) sum += exp(cleat_host_value(values, 0, first + i) - largest);
    const double below = cleat_host_value(values, 0, element) - largest, value = exp(below) / sum;
    values->work += 8.0 * (double)width;
    return (cleat_expected_value){.value = value, .size = value * (1 - below)};
}

static cleat_expected_value define_grad(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const int64_t width = cleat_width(node->out[0]), first = element / width * width;
    const double y = cleat_host_value(values, Y, element);
    cleat_expected_value sum = cleat_define_begin(values, GRAD_IN + values->output, element);
    cleat_define_add(&sum, y * cleat_host_value(values, DY, element));
    for (int64_t i = first; i < first + width; ++i)
        cleat_define_add(&sum, -y * cleat_host_value(values, DY, i) * cleat_host_value(values, Y, i));
    values->work += 3.0 * (double)width;
    return sum;
}

static const cleat_variant variants[] = {{.name = "rows", .bind = bind}, {0}};

static const cleat_op softmax_grad = {.name = "softmax_grad",
                                      .flops = 6,
                                      .variants = variants,
                                      .define = define_grad,
                                      .inplace_inputs = CLEAT_IN(DY) | CLEAT_IN(Y) | CLEAT_IN(GRAD_IN)};

static void backward(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    cleat_tensor *in[GRAD_IN] = {[DY] = dout[0], [Y] = node->out[0]};
    cleat_emit_grads_of(graph, node, &softmax_grad, in, GRAD_IN, &node->in[0], 1);
}

static const cleat_op softmax = {.name = "softmax",
                                 .infer = infer,
                                 .backward = backward,
                                 .flops = 25,
                                 .variants = variants,
                                 .define = define,
                                 .inplace_inputs = CLEAT_IN(0),
                                 .autocast_inputs = CLEAT_IN(0)};

cleat_tensor *cleat_softmax(cleat_graph *graph, cleat_tensor *x) {
    return cleat_first_output(cleat_emit(graph, &softmax, NULL, 0, &x, 1));
}
