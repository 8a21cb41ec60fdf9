/* Dynamic loss scaling: the nodes before and after an AdamW step with a scaled gradient.
 *
 * The loss scale is state of the device (f16 only). Backward starts from it; the update divides by it,
 * halves it after an overflow (that step changes nothing) and doubles it after 2000 steps without one. It
 * is a power of two, so nothing is rounded. */
#include "lib/shared_numbers.clh"
#include "ops/lib/define.h"
#include "ops/lib/shared.h"
#include "ops/update.h"

static void launch(cleat_binder *binder, const cleat_node *node, const char *kernel) {
    cleat_launch_kernel(binder, node, "loss_scale.cl", kernel, CLEAT_F32);
    for (int i = 0; i < node->n_in; ++i) cleat_launch_tensor(binder, node->in[i]);
}

cleat_loss_scale cleat_loss_scale_states(cleat_graph *graph) {
    const int64_t one = 1;
    return (cleat_loss_scale){.loss_scale = cleat_loss_scale_state(graph),
                              .clean_steps = cleat_state(graph, "clean_steps", CLEAT_I32, 1, &one),
                              .updates = cleat_state(graph, "updates", CLEAT_I32, 1, &one)};
}

/* --- before AdamW --- */

/* out = {unscaled norm, corrected hyper} */
enum { NORM, LOSS_SCALE, HYPER, UPDATES, UNSCALE_IN };

static cleat_status infer_unscale(cleat_node *node, cleat_error *error) {
    const int64_t one = 1, eight = HYPER_COUNT;
    cleat_status status = cleat_expect(node, NORM, "norm", CLEAT_F32, 1, &one, error);
    if (!status) status = cleat_expect(node, LOSS_SCALE, "loss_scale", CLEAT_F32, 1, &one, error);
    if (!status) status = cleat_expect(node, HYPER, "hyper", CLEAT_F32, 1, &eight, error);
    if (!status) status = cleat_expect(node, UPDATES, "updates", CLEAT_I32, 1, &one, error);
    if (!status) status = cleat_set_output(node, 0, CLEAT_F32, 1, &one, error);
    return status ? status : cleat_set_output(node, 1, CLEAT_F32, 1, &eight, error);
}

static void bind_unscale(const cleat_node *node, cleat_binder *binder) {
    launch(binder, node, "loss_scale_unscale");
    for (int i = 0; i < node->n_out; ++i) cleat_launch_tensor(binder, node->out[i]);
    cleat_launch_groups(binder, 1);
}

cleat_expected_value cleat_define_unscaled(double norm, const cleat_host_values *values, int64_t element) {
    const double steps = (double)values->in[UPDATES].i[0] + 1,
                 unscaled = norm / cleat_host_value(values, LOSS_SCALE, 0);
    if (values->output == 0) return (cleat_expected_value){.value = unscaled, .size = fabs(unscaled)};
    if (element != HYPER_CORRECTION1 && element != HYPER_CORRECTION2) return cleat_define_begin(values, HYPER, element);
    const double beta = cleat_host_value(values, HYPER, element == HYPER_CORRECTION1 ? HYPER_BETA1 : HYPER_BETA2);
    const double correction = 1 - pow(beta, steps);
    return (cleat_expected_value){.value = correction, .size = correction};
}

static cleat_expected_value define_unscale(const cleat_node *node, cleat_host_values *values, int64_t element) {
    (void)node;
    return cleat_define_unscaled(cleat_host_value(values, NORM, 0), values, element);
}

static const cleat_variant unscale_variants[] = {{.name = "one item", .bind = bind_unscale}, {0}};
static const cleat_op unscale = {.name = "loss_scale_unscale",
                                 .infer = infer_unscale,
                                 .flops = 1,
                                 .variants = unscale_variants,
                                 .define = define_unscale};

void cleat_loss_scale_unscale(cleat_graph *graph, const cleat_loss_scale *states, cleat_tensor **norm,
                              cleat_tensor **hyper) {
    cleat_tensor *in[UNSCALE_IN] = {
        [NORM] = *norm, [LOSS_SCALE] = states->loss_scale, [HYPER] = *hyper, [UPDATES] = states->updates};
    cleat_node *node = cleat_emit(graph, &unscale, NULL, 0, in, UNSCALE_IN);
    if (!node) return;
    *norm = node->out[0];
    *hyper = node->out[1];
}

/* --- after AdamW --- */

typedef struct update_attr {
    int32_t interval;
} update_attr;

/* Inputs as for unscale, with CLEAN_STEPS instead of HYPER; out = the last three */
enum { CLEAN_STEPS = HYPER };

static cleat_status infer_update(cleat_node *node, cleat_error *error) {
    const int64_t one = 1;
    int32_t interval = ((const update_attr *)node->attr)->interval;
    if (interval < 1) return cleat_infer_fail(node, error, "invalid growth interval of %d steps", (int)interval);
    cleat_status status = cleat_expect(node, NORM, "norm", CLEAT_F32, 1, &one, error);
    if (!status) status = cleat_expect(node, LOSS_SCALE, "loss_scale", CLEAT_F32, 1, &one, error);
    if (!status) status = cleat_expect(node, CLEAN_STEPS, "clean_steps", CLEAT_I32, 1, &one, error);
    if (!status) status = cleat_expect(node, UPDATES, "updates", CLEAT_I32, 1, &one, error);
    for (int i = LOSS_SCALE; !status && i <= UPDATES; ++i) cleat_set_output_state(node, i - LOSS_SCALE, node->in[i]);
    return status;
}

static void bind_update(const cleat_node *node, cleat_binder *binder) {
    launch(binder, node, "loss_scale_update");
    cleat_launch_i32(binder, "interval", ((const update_attr *)node->attr)->interval);
    cleat_launch_groups(binder, 1);
}

cleat_expected_value cleat_define_scale(const cleat_scale_inputs *in, int output) {
    const int32_t clean = in->clean_steps + 1;
    if (output == UPDATES - LOSS_SCALE) return (cleat_expected_value){.value = in->updates + (in->is_finite ? 1 : 0)};
    if (output == CLEAN_STEPS - LOSS_SCALE)
        return (cleat_expected_value){.value = in->is_finite && clean < in->interval ? clean : 0};
    if (!in->is_finite) return (cleat_expected_value){.value = fmax(in->scale / 2, 1)};
    return (cleat_expected_value){.value = clean >= in->interval ? fmin(in->scale * 2, 0x1p40) : in->scale};
}

static cleat_expected_value define_update(const cleat_node *node, cleat_host_values *values, int64_t element) {
    (void)element;
    return cleat_define_scale(&(cleat_scale_inputs){.is_finite = isfinite(cleat_host_value(values, NORM, 0)),
                                                    .scale = cleat_host_value(values, LOSS_SCALE, 0),
                                                    .clean_steps = values->in[CLEAN_STEPS].i[0],
                                                    .updates = values->in[UPDATES].i[0],
                                                    .interval = ((const update_attr *)node->attr)->interval},
                              values->output);
}

static const cleat_variant update_variants[] = {{.name = "one item", .bind = bind_update}, {0}};
static const cleat_op update = {.name = "loss_scale_update",
                                .infer = infer_update,
                                .flops = 1,
                                .variants = update_variants,
                                .define = define_update};

void cleat_loss_scale_update(cleat_graph *graph, const cleat_loss_scale *states, cleat_tensor *norm, int interval) {
    cleat_tensor *in[UNSCALE_IN] = {[NORM] = norm,
                                    [LOSS_SCALE] = states->loss_scale,
                                    [CLEAN_STEPS] = states->clean_steps,
                                    [UPDATES] = states->updates};
    update_attr attr = {interval};
    cleat_emit(graph, &update, &attr, sizeof attr, in, UNSCALE_IN);
}
