/* Copies the metrics of a step to a ring buffer that the host reads every few steps. */
#include "ops/lib/define.h"
#include "ops/lib/shared.h"
#include "ops/update.h"

typedef struct log_attr {
    int32_t interval; /* finite steps until the scale doubles */
} log_attr;

/* out = {terms, ring}. With a loss scale and its counts, which may be NULL, the node also updates them, and out has
 * {loss_scale, clean_steps, updates} in addition. */
enum { TERMS, NORM, LOSS_SCALE, SLOT, RING, CLEAN_STEPS, UPDATES, FORWARD_IN };

static cleat_status infer_scale(cleat_node *node, cleat_error *error) {
    const int64_t one = 1;
    const int32_t interval = ((const log_attr *)node->attr)->interval;
    if (interval < 1) return cleat_infer_fail(node, error, "invalid growth interval of %d steps", (int)interval);
    cleat_status status = cleat_expect(node, CLEAN_STEPS, "clean_steps", CLEAT_I32, 1, &one, error);
    if (!status) status = cleat_expect(node, UPDATES, "updates", CLEAT_I32, 1, &one, error);
    if (status) return status;
    cleat_set_output_state(node, 2, node->in[LOSS_SCALE]);
    cleat_set_output_state(node, 3, node->in[CLEAN_STEPS]);
    cleat_set_output_state(node, 4, node->in[UPDATES]);
    return CLEAT_OK;
}

static cleat_status infer(cleat_node *node, cleat_error *error) {
    cleat_tensor *terms = node->in[TERMS], *loss_scale = node->in[LOSS_SCALE], *ring = node->in[RING];
    cleat_status status = cleat_expect(node, NORM, "norm", CLEAT_F32, 1, (int64_t[]){1}, error);
    if (!status && loss_scale)
        status = cleat_expect(node, LOSS_SCALE, "loss_scale", CLEAT_F32, 1, (int64_t[]){1}, error);
    if (!status) status = cleat_expect(node, SLOT, "slot", CLEAT_I32, 1, (int64_t[]){1}, error);
    if (status) return status;
    if (terms->role != CLEAT_ROLE_STATE || terms->dtype != CLEAT_F32 || terms->rank != 1 ||
        ring->role != CLEAT_ROLE_STATE || ring->dtype != CLEAT_F32 || ring->rank != 2 ||
        ring->shape[1] != terms->shape[0] + (loss_scale ? 2 : 1))
        return cleat_infer_fail(node, error,
                                "terms are %s, ring is %s: they must be states f32 [n] and f32 [R, n + %d]",
                                CLEAT_DESCRIBED(terms), CLEAT_DESCRIBED(ring), loss_scale ? 2 : 1);
    cleat_set_output_state(node, 0, terms);
    cleat_set_output_state(node, 1, ring);
    return loss_scale ? infer_scale(node, error) : CLEAT_OK;
}

static cleat_cost cost(const cleat_node *node) {
    return (cleat_cost){.bytes = 3.0 * (double)cleat_tensor_bytes(node->in[TERMS])};
}

static void bind(const cleat_node *node, cleat_binder *binder) {
    cleat_launch_kernel(binder, node, "log_step.cl", "log_step_row", CLEAT_F32);
    for (int i = 0; i < FORWARD_IN; ++i) cleat_launch_tensor(binder, node->in[i]);
    CLEAT_LAUNCH_I32(binder, {"n", node->in[TERMS]->shape[0]}, {"rows", node->in[RING]->shape[0]},
                     {"interval", ((const log_attr *)node->attr)->interval});
    cleat_launch_groups(binder, 1);
}

static cleat_expected_value define(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const int64_t terms = node->in[TERMS]->shape[0], rows = node->in[RING]->shape[0], width = node->in[RING]->shape[1];
    if (values->output == 0) return (cleat_expected_value){.value = 0};
    if (values->output >= 2)
        return cleat_define_scale(&(cleat_scale_inputs){.is_finite = isfinite(cleat_host_value(values, NORM, 0)),
                                                        .scale = cleat_host_value(values, LOSS_SCALE, 0),
                                                        .clean_steps = values->in[CLEAN_STEPS].i[0],
                                                        .updates = values->in[UPDATES].i[0],
                                                        .interval = ((const log_attr *)node->attr)->interval},
                                  values->output - 2);
    const int64_t column = element % width;
    if (element / width != values->in[SLOT].u[0] % (uint32_t)rows) return cleat_define_begin(values, RING, element);
    if (column < terms) return cleat_define_begin(values, TERMS, column);
    return cleat_define_begin(values, column == terms ? NORM : LOSS_SCALE, 0);
}

static const cleat_variant variants[] = {{.name = "one item", .bind = bind}, {0}};
static const cleat_op log_step = {.name = "log_step",
                                  .optional_inputs = CLEAT_IN(LOSS_SCALE) | CLEAT_IN(CLEAN_STEPS) | CLEAT_IN(UPDATES),
                                  .infer = infer,
                                  .cost = cost,
                                  .variants = variants,
                                  .define = define};

void cleat_log_step(cleat_graph *graph, cleat_tensor *terms, cleat_tensor *norm, const cleat_loss_scale *states,
                    int interval, cleat_tensor *slot, cleat_tensor *ring) {
    cleat_tensor *in[FORWARD_IN] = {[TERMS] = terms,
                                    [NORM] = norm,
                                    [LOSS_SCALE] = states ? states->loss_scale : NULL,
                                    [SLOT] = slot,
                                    [RING] = ring,
                                    [CLEAN_STEPS] = states ? states->clean_steps : NULL,
                                    [UPDATES] = states ? states->updates : NULL};
    cleat_emit(graph, &log_step, &(log_attr){.interval = interval}, sizeof(log_attr), in, FORWARD_IN);
}
