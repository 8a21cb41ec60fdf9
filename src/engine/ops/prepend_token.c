/* A learned token in front of the sequence of each sample. */
#include "cleat/ops.h"
#include "ops/lib/columns.h"
#include "ops/lib/define.h"
#include "ops/lib/rows.h"
#include "ops/lib/shared.h"

/* in = {x, token} */
enum { X, TOKEN, FORWARD_IN };

static cleat_status infer(cleat_node *node, cleat_error *error) {
    const cleat_tensor *x = node->in[X];
    if (!cleat_is_storage(x->dtype) || x->rank != 3 || x->shape[0] > CLEAT_MAX_ROWS ||
        x->shape[1] + 1 > CLEAT_MAX_ROWS / x->shape[2])
        return cleat_infer_fail(
            node, error, "x is %s, it must be f32, f16 or bf16 [B, L, D] with less than 2^30 elements of a sample",
            CLEAT_DESCRIBED(x));
    const int64_t shape[3] = {x->shape[0], x->shape[1] + 1, x->shape[2]};
    cleat_status status = cleat_expect(node, TOKEN, "the token", CLEAT_F32, 1, &x->shape[2], error);
    return status ? status : cleat_set_output(node, 0, x->dtype, 3, shape, error);
}

static cleat_cost cost(const cleat_node *node) {
    return (cleat_cost){.bytes = 2.0 * (double)cleat_tensor_bytes(node->out[0])};
}

/* The rows of x within a tensor [B, L + 1, D], and those of x [B, L, D], as columns of a matrix [B, ...]. */
static cleat_columns behind_token(const cleat_tensor *whole) {
    return (cleat_columns){whole, whole->shape[2], whole->shape[1] * whole->shape[2]};
}
static cleat_columns all_of(const cleat_tensor *x) {
    return (cleat_columns){x, 0, x->shape[1] * x->shape[2]};
}

/* Sizes of a kernel that handles the first row of each sample of `whole` [B, L + 1, D]. */
static void launch_sizes(cleat_binder *binder, const cleat_tensor *whole) {
    CLEAT_LAUNCH_I32(binder, {"batch", whole->shape[0]}, {"width", whole->shape[2]},
                     {"sample", whole->shape[1] * whole->shape[2]});
}

static void bind(const cleat_node *node, cleat_binder *binder) {
    const cleat_tensor *x = node->in[X], *y = node->out[0];
    cleat_launch_columns(binder, node, all_of(x), NULL, behind_token(y), x->shape[0], x->shape[1] * x->shape[2]);
    cleat_launch_vector_kernel(binder, node, "prepend_token.cl", "prepend_token_write", y->dtype, y->shape[2]);
    CLEAT_LAUNCH_TENSORS(binder, node->in[TOKEN], y);
    launch_sizes(binder, y);
    cleat_launch_runs(binder, y->shape[0], y->shape[2]);
}

static cleat_expected_value define(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const cleat_tensor *y = node->out[0];
    const int64_t width = y->shape[2], sample = y->shape[1] * width, column = element % sample;
    if (column < width) return (cleat_expected_value){.value = cleat_host_value(values, TOKEN, column)};
    return (cleat_expected_value){
        .value = cleat_host_value(values, X, element / sample * (sample - width) + column - width)};
}

/* --- gradients: in = {dy, accums}, out = {dx, dtoken} --------------------------------------------------------- */

enum { DY, GRAD_IN };
enum { DX, DTOKEN };

static cleat_cost cost_grad(const cleat_node *node) {
    const double bytes = node->out[DX] ? (double)cleat_tensor_bytes(node->out[DX]) : 0;
    return (cleat_cost){.bytes = bytes * (cleat_accum(node, GRAD_IN, DX) ? 3 : 2)};
}

static void bind_grad(const cleat_node *node, cleat_binder *binder) {
    const cleat_tensor *dy = node->in[DY], *dx = node->out[DX];
    if (dx)
        cleat_launch_columns(binder, node, behind_token(dy), cleat_accum(node, GRAD_IN, DX), all_of(dx), dx->shape[0],
                             dx->shape[1] * dx->shape[2]);
    if (!node->out[DTOKEN]) return;
    cleat_launch_vector_kernel(binder, node, "prepend_token.cl", "prepend_token_sum", dy->dtype, dy->shape[2]);
    CLEAT_LAUNCH_TENSORS(binder, dy, cleat_accum(node, GRAD_IN, DTOKEN), node->out[DTOKEN]);
    launch_sizes(binder, dy);
    cleat_launch_runs(binder, 1, dy->shape[2]);
}

static cleat_expected_value define_grad(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const cleat_tensor *dy = node->in[DY];
    const int64_t width = dy->shape[2], sample = dy->shape[1] * width, rest = sample - width;
    cleat_expected_value sum = cleat_define_begin(values, GRAD_IN + values->output, element);
    if (values->output == DX) {
        cleat_define_add(&sum, cleat_host_value(values, DY, element / rest * sample + width + element % rest));
        return sum;
    }
    for (int64_t b = 0; b < dy->shape[0]; ++b)
        cleat_define_add(&sum, cleat_host_value(values, DY, b * sample + element));
    values->work += (double)dy->shape[0];
    return sum;
}

static const cleat_variant variants[] = {{.name = "runs", .bind = bind}, {0}};
static const cleat_variant grad_variants[] = {{.name = "runs", .bind = bind_grad}, {0}};

/* dx may overwrite its accum. */
static const cleat_op prepend_token_grad = {.name = "prepend_token_grad",
                                            .cost = cost_grad,
                                            .variants = grad_variants,
                                            .define = define_grad,
                                            .inplace_inputs = CLEAT_IN(GRAD_IN)};

static void backward(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    cleat_tensor *in[GRAD_IN] = {[DY] = dout[0]};
    cleat_emit_grads_of(graph, node, &prepend_token_grad, in, GRAD_IN, node->in, FORWARD_IN);
}

static const cleat_op prepend_token = {.name = "prepend_token",
                                       .infer = infer,
                                       .backward = backward,
                                       .cost = cost,
                                       .variants = variants,
                                       .define = define,
                                       .autocast_inputs = CLEAT_IN(X)};

cleat_tensor *cleat_prepend_token(cleat_graph *graph, cleat_tensor *x, cleat_tensor *token) {
    cleat_tensor *in[FORWARD_IN] = {[X] = x, [TOKEN] = token};
    return cleat_first_output(cleat_emit(graph, &prepend_token, NULL, 0, in, FORWARD_IN));
}
