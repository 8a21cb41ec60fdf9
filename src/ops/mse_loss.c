/* Squared error per row. */
#include "cleat/ops.h"
#include "ops/lib/row_loss.h"
#include "ops/lib/rows.h"
#include "ops/lib/shared.h"

#include <string.h>

enum { MAX_WIDTH = 1 << 20 };

/* The gradient additionally has dloss and the accum. */
enum { X, TARGET, SAMPLE_WEIGHT, FORWARD_IN };
enum { DLOSS = FORWARD_IN, GRAD_IN };

static cleat_status infer(cleat_node *node, cleat_error *error) {
    const cleat_tensor *x = node->in[X];
    cleat_status status = cleat_row_loss_infer(node, x, MAX_WIDTH, error);
    if (status == CLEAT_OK) status = cleat_expect(node, TARGET, "target", CLEAT_F32, x->rank, x->shape, error);
    return status == CLEAT_OK ? cleat_row_loss_expect(node, SAMPLE_WEIGHT, "scale", CLEAT_F32, x, error) : status;
}

static cleat_cost cost(const cleat_node *node) {
    cleat_cost cost = cleat_elementwise_cost(node, 0);
    cost.flops = 3 * (double)cleat_tensor_elements(node->in[X]);
    return cost;
}

static int64_t workspace(const cleat_node *node, const cleat_device_facts *facts) {
    (void)facts;
    return cleat_rows(node->in[X]) * (int64_t)sizeof(float);
}

static void begin(cleat_binder *binder, const cleat_node *node, const char *kernel, int n_in) {
    cleat_launch_row_kernel(binder, node, "mse_loss.cl", kernel, node->in[X]->dtype, cleat_width(node->in[X]));
    for (int i = 0; i < n_in; ++i) cleat_launch_tensor(binder, node->in[i]);
}

static void end(cleat_binder *binder, const cleat_node *node) {
    int64_t rows = cleat_rows(node->in[X]);
    cleat_launch_i32(binder, (int32_t)rows);
    cleat_launch_rows(binder, rows, cleat_width(node->in[X]));
}

static void bind(const cleat_node *node, cleat_binder *binder) {
    begin(binder, node, "mse_loss_rows", FORWARD_IN);
    cleat_launch_workspace(binder, 0, sizeof(float));
    end(binder, node);
    cleat_launch_row_loss_total(binder, node, cleat_rows(node->in[X]));
}

static void bind_grad(const cleat_node *node, cleat_binder *binder) {
    begin(binder, node, "mse_loss_grad", GRAD_IN);
    cleat_launch_tensor(binder, cleat_accum(node, GRAD_IN, 0));
    cleat_launch_tensor(binder, node->out[0]);
    end(binder, node);
}

static const cleat_variant variants[] = {{.name = "rows", .workspace = workspace, .bind = bind}, {0}};
static const cleat_variant grad_variants[] = {{.name = "rows", .bind = bind_grad}, {0}};

static const cleat_op mse_loss_grad = {.name = "mse_loss_grad",
                                       .cost = cost,
                                       .variants = grad_variants,
                                       .inplace_inputs = CLEAT_IN(X) | CLEAT_IN(GRAD_IN)};

static void backward(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    if (!cleat_requires_grad(node->in[X])) return;
    cleat_tensor *in[GRAD_IN];
    memcpy(in, node->in, FORWARD_IN * sizeof *in);
    in[DLOSS] = dout[0];
    cleat_emit_grads(
        graph,
        &(cleat_grads_spec){.op = &mse_loss_grad, .in = in, .n_in = GRAD_IN, .targets = &node->in[X], .n_targets = 1});
}

static const cleat_op mse_loss = {
    .name = "mse_loss", .infer = infer, .backward = backward, .cost = cost, .variants = variants};

cleat_tensor *cleat_mse_loss(cleat_graph *graph, cleat_tensor *x, cleat_tensor *target, cleat_tensor *sample_weight) {
    cleat_tensor *in[FORWARD_IN] = {x, target, sample_weight};
    cleat_node *node = cleat_emit(graph, &mse_loss, NULL, 0, in, FORWARD_IN);
    return node ? node->out[0] : NULL;
}
