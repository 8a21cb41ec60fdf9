/* Sum, difference and product of two tensors, and the sum of two gradients of one tensor. */
#include "cleat/ops.h"
#include "ops/fusible.h"
#include "ops/lib/define.h"
#include "ops/lib/shared.h"

static cleat_status infer(cleat_node *node, cleat_error *error) {
    const cleat_tensor *a = node->in[0], *b = node->in[1];
    if (!cleat_is_storage(a->dtype) || a->dtype != b->dtype || !cleat_same_shape(a, b))
        return cleat_infer_fail(node, error,
                                "the operands are %s and %s: both must be f32, f16 or bf16, of the same shape and type",
                                CLEAT_DESCRIBED(a), CLEAT_DESCRIBED(b));
    return cleat_set_output(node, 0, a->dtype, a->rank, a->shape, error);
}

static cleat_tensor *emit(cleat_graph *graph, const cleat_op *op, cleat_tensor *a, cleat_tensor *b) {
    cleat_tensor *in[] = {a, b};
    return cleat_first_output(cleat_emit(graph, op, NULL, 0, in, 2));
}

/* --- a + b ---------------------------------------------------------------------------------------------------- */

static void bind_sum(const cleat_node *node, cleat_binder *binder) {
    const cleat_tensor *tensors[] = {node->in[0], node->in[1], node->out[0]};
    cleat_launch_elements(binder, node, "arithmetic.cl", "add_elements", tensors, 3);
}

static cleat_expected_value define_sum(const cleat_node *node, cleat_host_values *values, int64_t element) {
    (void)node, (void)values->output;
    cleat_expected_value sum = cleat_define_begin(values, 0, element);
    cleat_define_add(&sum, cleat_host_value(values, 1, element));
    return sum;
}

static const cleat_variant sum_variants[] = {{.name = "elements", .bind = bind_sum}, {0}};

/* in = {dy, accum}, out = {dx}: dx = accum + dy. */
static cleat_status infer_sum_grad(cleat_node *node, cleat_error *error) {
    const cleat_tensor *dx = node->out[0];
    return cleat_expect(node, 0, "the incoming gradient", dx->dtype, dx->rank, dx->shape, error);
}

static const cleat_op add_grad = {.name = "add_grad",
                                  .infer = infer_sum_grad,
                                  .flops = 1,
                                  .variants = sum_variants,
                                  .define = define_sum,
                                  .inplace_inputs = CLEAT_IN(0) | CLEAT_IN(1)};

void cleat_pass_grad(cleat_graph *graph, cleat_tensor *x, cleat_tensor *dy) {
    if (!cleat_requires_grad(x) || !dy) return;
    if (cleat_gradient(graph, x))
        cleat_emit_grads(graph,
                         &(cleat_grads_spec){.op = &add_grad, .in = &dy, .n_in = 1, .targets = &x, .n_targets = 1});
    else
        cleat_set_gradient(graph, x, dy);
}

static void backward_sum(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    cleat_pass_grad(graph, node->in[0], dout[0]);
    cleat_pass_grad(graph, node->in[1], dout[0]);
}

const cleat_op cleat_add_op = {.name = "add",
                               .infer = infer,
                               .backward = backward_sum,
                               .flops = 1,
                               .variants = sum_variants,
                               .define = define_sum,
                               .inplace_inputs = CLEAT_IN(0) | CLEAT_IN(1),
                               .autocast_inputs = CLEAT_IN(0) | CLEAT_IN(1)};

cleat_tensor *cleat_add(cleat_graph *graph, cleat_tensor *a, cleat_tensor *b) {
    return emit(graph, &cleat_add_op, a, b);
}

/* --- a - b ---------------------------------------------------------------------------------------------------- */

static void bind_difference(const cleat_node *node, cleat_binder *binder) {
    const cleat_tensor *tensors[] = {node->in[0], node->in[1], node->out[0]};
    cleat_launch_elements(binder, node, "arithmetic.cl", "subtract_elements", tensors, 3);
}

/* in = {dy, accum}, out = {db}: db = accum - dy. */
static void bind_difference_grad(const cleat_node *node, cleat_binder *binder) {
    const cleat_tensor *tensors[] = {cleat_accum(node, 1, 0), node->in[0], node->out[0]};
    cleat_launch_elements(binder, node, "arithmetic.cl", "subtract_elements", tensors, 3);
}

static cleat_expected_value define_difference(const cleat_node *node, cleat_host_values *values, int64_t element) {
    (void)node, (void)values->output;
    cleat_expected_value difference = cleat_define_begin(values, 0, element);
    cleat_define_add(&difference, -cleat_host_value(values, 1, element));
    return difference;
}

static cleat_expected_value define_difference_grad(const cleat_node *node, cleat_host_values *values, int64_t element) {
    (void)node, (void)values->output;
    cleat_expected_value db = cleat_define_begin(values, 1, element);
    cleat_define_add(&db, -cleat_host_value(values, 0, element));
    return db;
}

static const cleat_variant difference_variants[] = {{.name = "elements", .bind = bind_difference}, {0}};
static const cleat_variant difference_grad_variants[] = {{.name = "elements", .bind = bind_difference_grad}, {0}};

static const cleat_op subtract_grad = {.name = "subtract_grad",
                                       .flops = 1,
                                       .variants = difference_grad_variants,
                                       .define = define_difference_grad,
                                       .inplace_inputs = CLEAT_IN(0) | CLEAT_IN(1)};

static void backward_difference(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    cleat_pass_grad(graph, node->in[0], dout[0]);
    cleat_emit_grads_of(graph, node, &subtract_grad, &dout[0], 1, &node->in[1], 1);
}

static const cleat_op subtract = {.name = "subtract",
                                  .infer = infer,
                                  .backward = backward_difference,
                                  .flops = 1,
                                  .variants = difference_variants,
                                  .define = define_difference,
                                  .inplace_inputs = CLEAT_IN(0) | CLEAT_IN(1),
                                  .autocast_inputs = CLEAT_IN(0) | CLEAT_IN(1)};

cleat_tensor *cleat_subtract(cleat_graph *graph, cleat_tensor *a, cleat_tensor *b) {
    return emit(graph, &subtract, a, b);
}

/* --- a b ------------------------------------------------------------------------------------------------------ */

/* A gradient: in = {dy, the other factor, accum}, out = {gradient of a factor} */
enum { PRODUCT_GRAD_IN = 2 };

static void bind_product(const cleat_node *node, cleat_binder *binder) {
    const cleat_tensor *accum = node->n_in > PRODUCT_GRAD_IN ? cleat_accum(node, PRODUCT_GRAD_IN, 0) : NULL;
    const cleat_tensor *tensors[] = {node->in[0], node->in[1], accum, node->out[0]};
    cleat_launch_elements(binder, node, "arithmetic.cl", "multiply_elements", tensors, 4);
}

static cleat_expected_value define_product(const cleat_node *node, cleat_host_values *values, int64_t element) {
    cleat_expected_value product = {.value = 0};
    if (node->n_in > PRODUCT_GRAD_IN) product = cleat_define_begin(values, PRODUCT_GRAD_IN + values->output, element);
    cleat_define_add(&product, cleat_host_value(values, 0, element) * cleat_host_value(values, 1, element));
    return product;
}

static const cleat_variant product_variants[] = {{.name = "elements", .bind = bind_product}, {0}};

static const cleat_op multiply_grad = {.name = "multiply_grad",
                                       .flops = 2,
                                       .variants = product_variants,
                                       .define = define_product,
                                       .inplace_inputs = CLEAT_IN(0) | CLEAT_IN(1) | CLEAT_IN(PRODUCT_GRAD_IN)};

static void backward_product(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    for (int i = 0; i < 2; ++i) {
        cleat_tensor *in[PRODUCT_GRAD_IN] = {dout[0], node->in[1 - i]};
        cleat_emit_grads_of(graph, node, &multiply_grad, in, PRODUCT_GRAD_IN, &node->in[i], 1);
    }
}

static const cleat_op multiply = {.name = "multiply",
                                  .infer = infer,
                                  .backward = backward_product,
                                  .flops = 1,
                                  .variants = product_variants,
                                  .define = define_product,
                                  .inplace_inputs = CLEAT_IN(0) | CLEAT_IN(1),
                                  .autocast_inputs = CLEAT_IN(0) | CLEAT_IN(1)};

cleat_tensor *cleat_multiply(cleat_graph *graph, cleat_tensor *a, cleat_tensor *b) {
    return emit(graph, &multiply, a, b);
}
