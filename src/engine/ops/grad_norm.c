/* Norm of the store's whole gradient. */
#include "lib/shared_numbers.clh"
#include "ops/lib/count.h"
#include "ops/lib/define.h"
#include "ops/lib/shared.h"
#include "ops/update.h"

enum { GROUPS_PER_UNIT = 8 };

/* Without a loss scale: in = {gradient}, out = {norm}; with one: all inputs, out = {unscaled norm, corrected
 * hyper} */
enum { GRADIENT, LOSS_SCALE, HYPER, UPDATES, SCALED_IN };

static cleat_status infer(cleat_node *node, cleat_error *error) {
    if (node->in[0]->shape[0] < 1) return cleat_infer_fail(node, error, "the store has no parameters");
    const int64_t one = 1, eight = HYPER_COUNT;
    cleat_status status = cleat_set_output(node, 0, CLEAT_F32, 1, &one, error);
    if (node->n_in < SCALED_IN || status) return status;
    status = cleat_expect(node, LOSS_SCALE, "loss_scale", CLEAT_F32, 1, &one, error);
    if (!status) status = cleat_expect(node, HYPER, "hyper", CLEAT_F32, 1, &eight, error);
    if (!status) status = cleat_expect(node, UPDATES, "updates", CLEAT_I32, 1, &one, error);
    return status ? status : cleat_set_output(node, 1, CLEAT_F32, 1, &eight, error);
}

static cleat_cost cost(const cleat_node *node) {
    return (cleat_cost){.flops = 2.0 * (double)cleat_tensor_elements(node->in[0]),
                        .bytes = (double)cleat_tensor_bytes(node->in[0])};
}

static int64_t groups_for(const cleat_node *node, const cleat_device_facts *facts) {
    int64_t useful = GROUPS_PER_UNIT * units_of(facts);
    int64_t each = (int64_t)facts->vector_width * facts->work_group;
    int64_t groups = (cleat_tensor_elements(node->in[0]) + each - 1) / each;
    return min(groups, useful);
}

static int64_t workspace(const cleat_node *node, const cleat_device_facts *facts) {
    return groups_for(node, facts) * (int64_t)sizeof(float);
}

/* Adds the norm, and with a loss scale the steps that follow it. */
static void add_results(const cleat_node *node, cleat_binder *binder) {
    const bool scaled = node->n_in == SCALED_IN;
    cleat_launch_tensor(binder, node->out[0]);
    for (int i = LOSS_SCALE; i < SCALED_IN; ++i) cleat_launch_tensor(binder, scaled ? node->in[i] : NULL);
    cleat_launch_tensor(binder, scaled ? node->out[1] : NULL);
}

static void bind(const cleat_node *node, cleat_binder *binder) {
    int64_t groups = groups_for(node, binder->facts);
    const bool one_launch = cleat_has_counters(binder->facts, 1);
    cleat_launch_vector_kernel(binder, node, "grad_norm.cl", "grad_norm_partial", CLEAT_F32, 0);
    cleat_launch_tensor(binder, node->in[0]);
    cleat_launch_workspace(binder, 0, sizeof(float));
    add_results(node, binder);
    cleat_launch_i64(binder, "n", cleat_tensor_elements(node->in[0]));
    cleat_launch_counters(binder, one_launch);
    cleat_launch_groups(binder, groups);
    if (one_launch) return;
    cleat_launch_vector_kernel(binder, node, "grad_norm.cl", "grad_norm_total", CLEAT_F32, 0);
    cleat_launch_workspace(binder, 0, sizeof(float));
    add_results(node, binder);
    cleat_launch_i32(binder, "parts", (int32_t)groups);
    cleat_launch_groups(binder, 1);
}

/* The root halves the relative error of the sum. */
static cleat_expected_value define(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const int64_t count = cleat_tensor_elements(node->in[0]);
    double sum = 0;
    for (int64_t i = 0; i < count; ++i) sum += (double)values->in[0].f[i] * (double)values->in[0].f[i];
    values->work += (double)count;
    if (node->n_in == SCALED_IN) return cleat_define_unscaled(sqrt(sum), values, element);
    return (cleat_expected_value){.value = sqrt(sum), .size = sqrt(sum)};
}

static const cleat_variant variants[] = {{.name = "partial sums", .workspace = workspace, .bind = bind}, {0}};
static const cleat_op grad_norm = {
    .name = "grad_norm", .infer = infer, .cost = cost, .variants = variants, .define = define};

cleat_tensor *cleat_unscaled_grad_norm(cleat_graph *graph, const cleat_loss_scale *states, cleat_tensor **hyper) {
    cleat_tensor *in[SCALED_IN] = {[GRADIENT] = &graph->store->flat[CLEAT_FLAT_GRADIENTS],
                                   [LOSS_SCALE] = states->loss_scale,
                                   [HYPER] = *hyper,
                                   [UPDATES] = states->updates};
    cleat_node *node = cleat_emit(graph, &grad_norm, NULL, 0, in, SCALED_IN);
    if (!node) return NULL;
    *hyper = node->out[1];
    return node->out[0];
}

cleat_tensor *cleat_grad_norm(cleat_graph *graph) {
    cleat_tensor *gradient = &graph->store->flat[CLEAT_FLAT_GRADIENTS];
    return cleat_first_output(cleat_emit(graph, &grad_norm, NULL, 0, &gradient, 1));
}
