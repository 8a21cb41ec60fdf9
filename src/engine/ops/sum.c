/* Sum of scalars, for a loss with several terms. */
#include "cleat/ops.h"
#include "ops/lib/define.h"
#include "ops/lib/shared.h"

enum { MAX_TERMS = 8 };

static cleat_status infer(cleat_node *node, cleat_error *error) {
    int64_t one[] = {1};
    for (int i = 0; i < node->n_in; ++i) {
        cleat_status status = cleat_expect(node, i, "a term", CLEAT_F32, 1, one, error);
        if (status) return status;
    }
    return cleat_set_output(node, 0, CLEAT_F32, 1, one, error);
}

static cleat_cost cost(const cleat_node *node) {
    return cleat_elementwise_cost(node, node->n_in);
}

static void bind(const cleat_node *node, cleat_binder *binder) {
    cleat_launch_kernel(binder, node, "sum.cl", "sum_scalars", CLEAT_F32);
    for (int i = 0; i < MAX_TERMS; ++i) cleat_launch_tensor(binder, i < node->n_in ? node->in[i] : NULL);
    cleat_launch_tensor(binder, node->out[0]);
    cleat_launch_groups(binder, 1);
}

static void backward(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    for (int i = 0; i < node->n_in; ++i) cleat_pass_grad(graph, node->in[i], dout[0]);
}

static cleat_expected_value define(const cleat_node *node, cleat_host_values *values, int64_t element) {
    cleat_expected_value total = {.value = 0};
    (void)values->output, (void)element;
    for (int i = 0; i < node->n_in; ++i) cleat_define_add(&total, cleat_host_value(values, i, 0));
    return total;
}

static const cleat_variant variants[] = {{.name = "one item", .bind = bind}, {0}};
static const cleat_op sum = {
    .name = "sum", .infer = infer, .backward = backward, .cost = cost, .variants = variants, .define = define};

cleat_tensor *cleat_sum(cleat_graph *graph, cleat_tensor *const *scalars, int n) {
    if (n < 1 || n > MAX_TERMS) {
        cleat_graph_fail(graph, CLEAT_ERR_ARGUMENT, "op 'sum': %d terms; the number must be 1 to %d", n, MAX_TERMS);
        return NULL;
    }
    return cleat_first_output(cleat_emit(graph, &sum, NULL, 0, scalars, n));
}
