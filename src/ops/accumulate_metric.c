/* Metric accumulation: adds a scalar to an element of a state. */
#include "cleat/ops.h"
#include "ops/lib/shared.h"

typedef struct record_attr {
    int32_t index;
} record_attr;

/* out = {state} */
enum { SCALAR, STATE, FORWARD_IN };

static cleat_status infer(cleat_node *node, cleat_error *error) {
    cleat_tensor *state = node->in[STATE];
    int32_t index = ((const record_attr *)node->attr)->index;
    cleat_status status = cleat_expect(node, SCALAR, "scalar", CLEAT_F32, 1, (int64_t[]){1}, error);
    if (status != CLEAT_OK) return status;
    if (state->role != CLEAT_ROLE_STATE || state->dtype != CLEAT_F32 || state->rank != 1 || index < 0 ||
        index >= state->shape[0]) {
        char what[96];
        cleat_tensor_describe(state, what, sizeof what);
        return cleat_infer_fail(node, error, "state is %s, it must be a state f32 [n] with n > index = %d", what,
                                index);
    }
    cleat_set_output_state(node, 0, state);
    return CLEAT_OK;
}

static cleat_cost cost(const cleat_node *node) {
    (void)node;
    return (cleat_cost){.flops = 1, .bytes = 12};
}

static void bind(const cleat_node *node, cleat_binder *binder) {
    cleat_launch_kernel(binder, node, "accumulate_metric.cl", "accumulate_metric_scalar", CLEAT_F32);
    cleat_launch_tensor(binder, node->in[SCALAR]);
    cleat_launch_tensor(binder, node->out[0]);
    cleat_launch_i32(binder, ((const record_attr *)node->attr)->index);
    cleat_launch_groups(binder, 1);
}

static const cleat_variant variants[] = {{.name = "one item", .bind = bind}, {0}};
static const cleat_op accumulate_metric = {
    .name = "accumulate_metric", .infer = infer, .cost = cost, .variants = variants};

void cleat_accumulate_metric(cleat_graph *graph, cleat_tensor *scalar, cleat_tensor *state, int index) {
    cleat_tensor *in[FORWARD_IN] = {[SCALAR] = scalar, [STATE] = state};
    record_attr attr = {index};
    cleat_emit(graph, &accumulate_metric, &attr, sizeof attr, in, FORWARD_IN);
}
