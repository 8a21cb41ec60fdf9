/* Conversion of all parameters to half weights. */
#include "graph/store.h"
#include "ops/lib/define.h"
#include "ops/lib/shared.h"
#include "ops/update.h"

/* in = {parameters}, out = {half weights}: the elements that both flat buffers have at the same place */
static cleat_status infer(cleat_node *node, cleat_error *error) {
    cleat_store *store = node->graph->store;
    cleat_tensor *half_weights = NULL;
    if (!cleat_has_half_weights(store)) return cleat_infer_fail(node, error, "the store has no compute copies");
    cleat_status status =
        cleat_store_view(store, CLEAT_FLAT_HALF_WEIGHTS, 0, store->shared_elements, &half_weights, error);
    if (status) return status;
    cleat_set_output_state(node, 0, half_weights);
    return CLEAT_OK;
}

static void bind(const cleat_node *node, cleat_binder *binder) {
    const cleat_tensor *no_accum = NULL, *tensors[] = {node->in[0], no_accum, node->out[0]};
    cleat_launch_elements(binder, node, "cast.cl", "cast_narrow", tensors, 3);
}

static cleat_expected_value define(const cleat_node *node, cleat_host_values *values, int64_t element) {
    (void)node, (void)values->output;
    return (cleat_expected_value){.value = cleat_host_value(values, 0, element)};
}

static const cleat_variant variants[] = {{.name = "elements", .bind = bind}, {0}};
static const cleat_op half_weights = {
    .name = "half_weights", .infer = infer, .flops = 1, .variants = variants, .define = define};

void cleat_refresh_half_weights(cleat_graph *graph) {
    cleat_store *store = graph->store;
    cleat_tensor *parameters = NULL;
    if (graph->error.status ||
        cleat_store_view(store, CLEAT_FLAT_PARAMETERS, 0, store->shared_elements, &parameters, &graph->error))
        return;
    cleat_emit(graph, &half_weights, NULL, 0, &parameters, 1);
}
