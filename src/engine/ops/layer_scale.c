/* Layer scale: a factor for each channel of a residual branch, and the sum with the residual. */
#include "cleat/ops.h"
#include "lib/shared_numbers.clh"
#include "ops/lib/count.h"
#include "ops/lib/define.h"
#include "ops/lib/rows.h"
#include "ops/lib/shared.h"

/* in = {x, scale, residual} */
enum { X, SCALE, RESIDUAL, FORWARD_IN };

static cleat_status infer(cleat_node *node, cleat_error *error) {
    const cleat_tensor *x = node->in[X], *residual = node->in[RESIDUAL];
    const int64_t width[] = {cleat_width(x)};
    if (!cleat_is_storage(x->dtype))
        return cleat_infer_fail(node, error, "x is %s, it must be f32, f16 or bf16", cleat_dtype_name(x->dtype));
    cleat_status status = cleat_expect(node, SCALE, "scale", CLEAT_F32, 1, width, error);
    if (!status && residual) status = cleat_expect(node, RESIDUAL, "residual", x->dtype, x->rank, x->shape, error);
    return status ? status : cleat_set_output(node, 0, x->dtype, x->rank, x->shape, error);
}

static void bind(const cleat_node *node, cleat_binder *binder) {
    const cleat_tensor *x = node->in[X];
    cleat_launch_vector_kernel(binder, node, "layer_scale.cl", "layer_scale_forward", x->dtype, cleat_width(x));
    for (int i = 0; i < FORWARD_IN; ++i) cleat_launch_tensor(binder, node->in[i]);
    cleat_launch_tensor(binder, node->out[0]);
    CLEAT_LAUNCH_I32(binder, {"rows", cleat_rows(x)}, {"width", cleat_width(x)});
    cleat_launch_runs(binder, cleat_rows(x), cleat_width(x));
}

static cleat_expected_value define(const cleat_node *node, cleat_host_values *values, int64_t element) {
    cleat_expected_value sum = cleat_define_begin(values, RESIDUAL, element);
    cleat_define_add(&sum, cleat_host_value(values, X, element) *
                               cleat_host_value(values, SCALE, element % cleat_width(node->in[X])));
    return sum;
}

/* --- gradients: in = {dy, x, scale, accums}, out = {dx, dscale} ----------------------------------------------- */

enum { G_DY, G_X, G_SCALE, GRAD_IN };
enum { DX, DSCALE, TARGETS };

static int64_t workspace(const cleat_node *node, const cleat_device_facts *facts) {
    if (!node->out[DSCALE]) return 0;
    return cleat_row_parts(node->in[0], facts) * cleat_width(node->in[0]) * (int64_t)sizeof(float);
}

static cleat_cost grad_cost(const cleat_node *node) {
    const double bytes = (double)cleat_tensor_bytes(node->in[0]);
    const int tensors =
        1 + (node->out[DSCALE] != NULL) + (node->out[DX] != NULL) + (cleat_accum(node, GRAD_IN, DX) != NULL);
    return (cleat_cost){.flops = 4.0 * (double)cleat_tensor_elements(node->in[0]), .bytes = bytes * tensors};
}

/* dx alone: the forward kernel, with dy and the accumulator in place of x and the residual. */
static void bind_dx(const cleat_node *node, cleat_binder *binder) {
    const cleat_tensor *dy = node->in[G_DY];
    cleat_launch_vector_kernel(binder, node, "layer_scale.cl", "layer_scale_forward", dy->dtype, cleat_width(dy));
    CLEAT_LAUNCH_TENSORS(binder, dy, node->in[G_SCALE], cleat_accum(node, GRAD_IN, DX), node->out[DX]);
    CLEAT_LAUNCH_I32(binder, {"rows", cleat_rows(dy)}, {"width", cleat_width(dy)});
    cleat_launch_runs(binder, cleat_rows(dy), cleat_width(dy));
}

/* dscale from the partial sums. */
static void bind_total(const cleat_node *node, cleat_binder *binder) {
    const cleat_device_facts *facts = binder->facts;
    const int64_t width = cleat_width(node->in[0]);
    const int64_t columns = facts->work_group == 1 ? facts->vector_width : TOTAL_COLUMNS;
    cleat_launch_row_kernel(binder, node, "layer_scale.cl", "layer_scale_total", node->in[0]->dtype, width);
    cleat_launch_workspace(binder, 0, sizeof(float));
    CLEAT_LAUNCH_TENSORS(binder, cleat_accum(node, GRAD_IN, DSCALE), node->out[DSCALE]);
    cleat_launch_i32(binder, "parts", (int32_t)cleat_row_parts(node->in[0], facts));
    cleat_launch_groups(binder, ceil_div(width, columns));
}

static void bind_grad(const cleat_node *node, cleat_binder *binder) {
    const cleat_tensor *dy = node->in[G_DY];
    if (!node->out[DSCALE]) {
        bind_dx(node, binder);
        return;
    }
    cleat_launch_row_kernel(binder, node, "layer_scale.cl", "layer_scale_backward", dy->dtype, cleat_width(dy));
    for (int i = 0; i < GRAD_IN; ++i) cleat_launch_tensor(binder, node->in[i]);
    CLEAT_LAUNCH_TENSORS(binder, cleat_accum(node, GRAD_IN, DX), node->out[DX]);
    cleat_launch_workspace(binder, 0, sizeof(float));
    cleat_launch_i32(binder, "rows", (int32_t)cleat_rows(dy));
    cleat_launch_groups(binder, cleat_row_parts(dy, binder->facts));
    bind_total(node, binder);
}

static cleat_expected_value define_grad(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const int64_t width = cleat_width(node->in[G_DY]), elements = cleat_tensor_elements(node->in[G_DY]);
    cleat_expected_value sum = cleat_define_begin(values, GRAD_IN + values->output, element);
    if (values->output == DX) {
        cleat_define_add(&sum,
                         cleat_host_value(values, G_DY, element) * cleat_host_value(values, G_SCALE, element % width));
        return sum;
    }
    for (int64_t i = element; i < elements; i += width)
        cleat_define_add(&sum, cleat_host_value(values, G_DY, i) * cleat_host_value(values, G_X, i));
    values->work += (double)(elements / width);
    return sum;
}

static const cleat_variant variants[] = {{.name = "rows", .refuse = cleat_rows_refuse, .bind = bind}, {0}};
static const cleat_variant grad_variants[] = {
    {.name = "rows", .refuse = cleat_rows_refuse_grad, .workspace = workspace, .bind = bind_grad}, {0}};

/* dx may overwrite dy, x, or its accum. */
static const cleat_op layer_scale_grad = {.name = "layer_scale_grad",
                                          .cost = grad_cost,
                                          .variants = grad_variants,
                                          .define = define_grad,
                                          .inplace_inputs = CLEAT_IN(G_DY) | CLEAT_IN(G_X) | CLEAT_IN(GRAD_IN)};

static void backward(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    cleat_pass_grad(graph, node->in[RESIDUAL], dout[0]);
    cleat_tensor *in[GRAD_IN] = {[G_DY] = dout[0], [G_X] = node->in[X], [G_SCALE] = node->in[SCALE]};
    cleat_emit_grads_of(graph, node, &layer_scale_grad, in, GRAD_IN, node->in, TARGETS);
}

static const cleat_op layer_scale = {.name = "layer_scale",
                                     .optional_inputs = CLEAT_IN(RESIDUAL),
                                     .infer = infer,
                                     .backward = backward,
                                     .flops = 2,
                                     .variants = variants,
                                     .define = define,
                                     .inplace_inputs = CLEAT_IN(X) | CLEAT_IN(RESIDUAL),
                                     .autocast_inputs = CLEAT_IN(X) | CLEAT_IN(RESIDUAL)};

cleat_tensor *cleat_layer_scale(cleat_graph *graph, cleat_tensor *x, cleat_tensor *scale, cleat_tensor *residual) {
    cleat_tensor *in[FORWARD_IN] = {[X] = x, [SCALE] = scale, [RESIDUAL] = residual};
    return cleat_first_output(cleat_emit(graph, &layer_scale, NULL, 0, in, FORWARD_IN));
}
