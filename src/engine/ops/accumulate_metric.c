/* Metric accumulation: adds scalars, and their sum if they are the terms of a loss, to elements of a state. */
#include "cleat/ops.h"
#include "ops/lib/define.h"
#include "ops/lib/shared.h"

enum { MAX_SCALARS = 10 };

typedef struct record_attr {
    int32_t index[MAX_SCALARS]; /* of the state, for each scalar */
    int32_t total;              /* of the sum; -1: none */
} record_attr;

/* in = {state, scalars ...}, out = {state}, or {sum, state} */
enum { STATE, SCALARS };

static bool has_total(const cleat_node *node) {
    return ((const record_attr *)node->attr)->total >= 0;
}

static bool is_place(const cleat_tensor *state, int32_t index) {
    return state->role == CLEAT_ROLE_STATE && state->dtype == CLEAT_F32 && state->rank == 1 && index >= 0 &&
           index < state->shape[0];
}

static cleat_status refuse_state(const cleat_node *node, int32_t index, cleat_error *error) {
    return cleat_infer_fail(node, error, "state is %s, it must be a state f32 [n] with n > index = %d",
                            CLEAT_DESCRIBED(node->in[STATE]), index);
}

static cleat_status infer(cleat_node *node, cleat_error *error) {
    cleat_tensor *state = node->in[STATE];
    const record_attr *attr = (const record_attr *)node->attr;
    for (int i = 0; i < node->n_in - SCALARS; ++i) {
        const int32_t index = attr->index[i];
        cleat_status status = cleat_expect(node, SCALARS + i, "scalar", CLEAT_F32, 1, (int64_t[]){1}, error);
        if (status) return status;
        if (!is_place(state, index)) return refuse_state(node, index, error);
    }
    if (has_total(node) && !is_place(state, attr->total)) return refuse_state(node, attr->total, error);
    cleat_set_output_state(node, has_total(node) ? 1 : 0, state);
    return has_total(node) ? cleat_set_output(node, 0, CLEAT_F32, 1, (int64_t[]){1}, error) : CLEAT_OK;
}

static cleat_cost cost(const cleat_node *node) {
    return (cleat_cost){.flops = node->n_in - SCALARS, .bytes = 12.0 * (node->n_in - SCALARS)};
}

static void bind(const cleat_node *node, cleat_binder *binder) {
    static const char *const places[MAX_SCALARS] = {"a_at", "b_at", "c_at", "d_at", "e_at",
                                                    "f_at", "g_at", "h_at", "i_at", "j_at"};
    cleat_launch_kernel(binder, node, "accumulate_metric.cl", "accumulate_metric_scalars", CLEAT_F32);
    cleat_launch_tensor(binder, node->in[STATE]);
    for (int i = 0; i < MAX_SCALARS; ++i) {
        cleat_launch_tensor(binder, SCALARS + i < node->n_in ? node->in[SCALARS + i] : NULL);
        cleat_launch_i32(binder, places[i], ((const record_attr *)node->attr)->index[i]);
    }
    cleat_launch_tensor(binder, has_total(node) ? node->out[0] : NULL);
    cleat_launch_i32(binder, "total_at", ((const record_attr *)node->attr)->total);
    cleat_launch_groups(binder, 1);
}

static cleat_expected_value define(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const record_attr *attr = (const record_attr *)node->attr;
    const bool is_sum = has_total(node) && values->output == 0, adds_all = is_sum || attr->total == element;
    cleat_expected_value sum = {.value = 0};
    if (!is_sum) sum = cleat_define_begin(values, STATE, element);
    for (int i = SCALARS; i < node->n_in; ++i)
        if (adds_all || attr->index[i - SCALARS] == element) cleat_define_add(&sum, cleat_host_value(values, i, 0));
    return sum;
}

static const cleat_variant variants[] = {{.name = "one item", .bind = bind}, {0}};
static const cleat_op accumulate_metric = {
    .name = "accumulate_metric", .infer = infer, .cost = cost, .variants = variants, .define = define};

/* Passes the gradient of the sum to all scalars. */
static void backward(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    for (int i = SCALARS; i < node->n_in; ++i) cleat_pass_grad(graph, node->in[i], dout[0]);
}

static const cleat_op sum_metrics = {
    .name = "sum_metrics", .infer = infer, .backward = backward, .cost = cost, .variants = variants, .define = define};

/* total: index of the sum in the state, or -1. */
static cleat_node *emit(cleat_graph *graph, cleat_tensor *const *scalars, const int *indices, int count, int total,
                        cleat_tensor *state) {
    const cleat_op *op = total < 0 ? &accumulate_metric : &sum_metrics;
    cleat_tensor *in[SCALARS + MAX_SCALARS] = {[STATE] = state};
    record_attr attr = {.total = total};
    if (count < 1 || count > MAX_SCALARS) {
        cleat_graph_fail(graph, CLEAT_ERR_ARGUMENT, "op '%s': %d scalars; the number must be 1 to %d", op->name, count,
                         MAX_SCALARS);
        return NULL;
    }
    for (int i = 0; i < count; ++i) {
        in[SCALARS + i] = scalars[i];
        attr.index[i] = indices[i];
    }
    return cleat_emit(graph, op, &attr, sizeof attr, in, SCALARS + count);
}

void cleat_accumulate_metrics(cleat_graph *graph, cleat_tensor *const *scalars, const int *indices, int count,
                              cleat_tensor *state) {
    emit(graph, scalars, indices, count, -1, state);
}

cleat_tensor *cleat_sum_metrics(cleat_graph *graph, cleat_tensor *const *scalars, const int *indices, int count,
                                int total, cleat_tensor *state) {
    if (total < 0) {
        cleat_graph_fail(graph, CLEAT_ERR_ARGUMENT, "op 'sum_metrics': the sum has index %d", total);
        return NULL;
    }
    return cleat_first_output(emit(graph, scalars, indices, count, total, state));
}

void cleat_accumulate_metric(cleat_graph *graph, cleat_tensor *scalar, cleat_tensor *state, int index) {
    cleat_accumulate_metrics(graph, &scalar, &index, 1, state);
}
