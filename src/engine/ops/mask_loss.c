/* Loss of a two-class mask: cross entropy, focal and Dice terms. */
#include "cleat/ops.h"
#include "lib/shared_numbers.clh"
#include "ops/lib/define.h"
#include "ops/lib/rows.h"
#include "ops/lib/shared.h"

#include <math.h>
#include <string.h>

enum { PIXELS_A_PART = 4096, MAX_PARTS = 64 };

/* The gradient additionally has the saved sums, dloss and the accum. out = {loss, sums} or {dx} */
enum { X, MASK, SAMPLE_WEIGHT, FORWARD_IN };
enum { SAVED = FORWARD_IN, DLOSS, GRAD_IN };

_Static_assert(sizeof(cleat_mask_loss_spec) <= CLEAT_ATTR_BYTES, "the spec must fit a node's attributes");

static const cleat_mask_loss_spec *spec_of(const cleat_node *node) {
    return (const cleat_mask_loss_spec *)node->attr;
}

static int64_t batch_of(const cleat_node *node) {
    return node->in[X]->shape[0];
}

static int64_t pixels_of(const cleat_node *node) {
    return cleat_tensor_elements(node->in[X]) / batch_of(node);
}

static cleat_status infer(cleat_node *node, cleat_error *error) {
    const cleat_tensor *x = node->in[X], *mask = node->in[MASK];
    if (!cleat_is_storage(x->dtype) || x->rank < 1 || pixels_of(node) > CLEAT_MAX_ROWS ||
        batch_of(node) > CLEAT_MAX_ROWS / MAX_PARTS)
        return cleat_infer_fail(
            node, error, "logits are %s, they must be f32, f16 or bf16 [B, ...] of at most 2^30 pixels per sample",
            CLEAT_DESCRIBED(x));
    if (mask->dtype != CLEAT_I32 || cleat_tensor_elements(mask) != cleat_tensor_elements(x))
        return cleat_infer_fail(node, error, "the mask is %s, it must be i32 with as many elements as the logits, %s",
                                CLEAT_DESCRIBED(mask), CLEAT_DESCRIBED(x));
    const int64_t one = 1, sums[] = {batch_of(node), MASK_SUMS};
    cleat_status status = cleat_expect(node, SAMPLE_WEIGHT, "scale", CLEAT_F32, 1, sums, error);
    if (!status) status = cleat_set_output(node, 0, CLEAT_F32, 1, &one, error);
    return status ? status : cleat_set_output(node, 1, CLEAT_F32, 2, sums, error);
}

static cleat_cost cost(const cleat_node *node) {
    cleat_cost cost = cleat_elementwise_cost(node, 0);
    cost.flops = (spec_of(node)->focal_gamma > 0 ? 65 : 45) * (double)cleat_tensor_elements(node->in[X]);
    return cost;
}

/* Number of parts per sample, whose sums are added in a fixed order. */
static int64_t parts_of(const cleat_node *node) {
    return min(ceil_div(pixels_of(node), PIXELS_A_PART), MAX_PARTS);
}

static int64_t workspace(const cleat_node *node, const cleat_device_facts *facts) {
    (void)facts;
    return batch_of(node) * parts_of(node) * MASK_SUMS * (int64_t)sizeof(float);
}

static void launch_parts(cleat_binder *binder, const cleat_node *node, const cleat_device_facts *facts) {
    int64_t units = batch_of(node) * parts_of(node);
    cleat_launch_vector_kernel(binder, node, "mask_loss.cl", "mask_loss_parts", node->in[X]->dtype, pixels_of(node));
    CLEAT_LAUNCH_TENSORS(binder, node->in[X], node->in[MASK]);
    cleat_launch_workspace(binder, 0, sizeof(float));
    CLEAT_LAUNCH_I32(binder, {"batch", batch_of(node)}, {"n", pixels_of(node)}, {"parts", parts_of(node)});
    /* pixels per part, a multiple of the vector width */
    cleat_launch_i32(binder, "each", (int32_t)round_up(ceil_div(pixels_of(node), parts_of(node)), facts->vector_width));
    cleat_launch_f32(binder, "positive", spec_of(node)->positive_weight);
    cleat_launch_f32(binder, "gamma", spec_of(node)->focal_gamma);
    cleat_launch_items(binder, units * facts->work_group);
}

static void launch_total(cleat_binder *binder, const cleat_node *node) {
    cleat_launch_vector_kernel(binder, node, "mask_loss.cl", "mask_loss_total", node->in[X]->dtype, pixels_of(node));
    cleat_launch_workspace(binder, 0, sizeof(float));
    CLEAT_LAUNCH_TENSORS(binder, node->in[SAMPLE_WEIGHT], node->out[1], node->out[0]);
    CLEAT_LAUNCH_I32(binder, {"batch", batch_of(node)}, {"parts", parts_of(node)});
    cleat_launch_f32(binder, "dice_weight", spec_of(node)->dice_weight);
    cleat_launch_groups(binder, 1);
}

static void bind(const cleat_node *node, cleat_binder *binder) {
    launch_parts(binder, node, binder->facts);
    launch_total(binder, node);
}

static void bind_grad(const cleat_node *node, cleat_binder *binder) {
    const cleat_mask_loss_spec *spec = spec_of(node);
    cleat_launch_vector_kernel(binder, node, "mask_loss.cl", "mask_loss_grad", node->in[X]->dtype, pixels_of(node));
    for (int i = 0; i < GRAD_IN; ++i) cleat_launch_tensor(binder, node->in[i]);
    CLEAT_LAUNCH_TENSORS(binder, cleat_accum(node, GRAD_IN, 0), node->out[0]);
    CLEAT_LAUNCH_I32(binder, {"batch", batch_of(node)}, {"n", pixels_of(node)});
    cleat_launch_f32(binder, "positive", spec->positive_weight);
    cleat_launch_f32(binder, "gamma", spec->focal_gamma);
    cleat_launch_f32(binder, "dice_weight", spec->dice_weight);
    cleat_launch_runs(binder, batch_of(node), pixels_of(node));
}

/* --- definitions ---------------------------------------------------------------------------------------------- */

enum { CROSS, KNOWN, BOTH, EITHER }; /* columns of the sums: cross entropy; known pixels; P t; P + t */

/* A pixel of a known target: z is the logit of the target, p its probability. */
typedef struct pixel {
    double target, weight, p, q, entropy, focus, chance;
} pixel;

static bool pixel_of(const cleat_node *node, const cleat_host_values *values, int64_t i, pixel *at) {
    const int32_t mask = values->in[MASK].i[i];
    if (mask != 0 && mask != 1) return false;
    const double x = cleat_host_value(values, X, i), z = mask ? x : -x;
    at->target = mask;
    at->weight = mask ? (double)spec_of(node)->positive_weight : 1;
    at->p = 1 / (1 + exp(-z));
    at->q = 1 / (1 + exp(z));
    at->entropy = fmax(-z, 0) + log1p(exp(-fabs(z)));
    at->focus = pow(at->q, (double)spec_of(node)->focal_gamma);
    at->chance = mask ? at->p : at->q;
    return true;
}

/* The sums of sample b, whose terms are all at least 0. */
static void define_sums(const cleat_node *node, cleat_host_values *values, int64_t b, double sums[MASK_SUMS]) {
    const int64_t pixels = pixels_of(node);
    pixel at;
    memset(sums, 0, MASK_SUMS * sizeof *sums);
    for (int64_t i = b * pixels; i < (b + 1) * pixels; ++i) {
        if (!pixel_of(node, values, i, &at)) continue;
        sums[CROSS] += at.weight * at.focus * at.entropy;
        sums[KNOWN] += 1;
        sums[BOTH] += at.chance * at.target;
        sums[EITHER] += at.chance + at.target;
    }
    values->work += 20 * (double)pixels;
}

static cleat_expected_value define(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const double dice_weight = (double)spec_of(node)->dice_weight;
    cleat_expected_value loss = {.value = 0};
    double sums[MASK_SUMS];
    if (values->output == 1) {
        define_sums(node, values, element / MASK_SUMS, sums);
        return (cleat_expected_value){.value = sums[element % MASK_SUMS], .size = sums[element % MASK_SUMS]};
    }
    for (int64_t b = 0; b < batch_of(node); ++b) {
        const double weight = cleat_host_value(values, SAMPLE_WEIGHT, b);
        define_sums(node, values, b, sums);
        if (sums[KNOWN] == 0) continue;
        cleat_define_add(&loss, weight * sums[CROSS] / sums[KNOWN]);
        cleat_define_add(&loss, weight * dice_weight);
        cleat_define_add(&loss, -weight * dice_weight * (2 * sums[BOTH] + 1) / (sums[EITHER] + 1));
    }
    return loss;
}

static cleat_expected_value define_grad(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const int64_t b = element / pixels_of(node);
    const double gamma = (double)spec_of(node)->focal_gamma, dice_weight = (double)spec_of(node)->dice_weight,
                 factor = cleat_host_value(values, DLOSS, 0) * cleat_host_value(values, SAMPLE_WEIGHT, b);
    const float *sums = values->in[SAVED].f + b * MASK_SUMS;
    cleat_expected_value dx = cleat_define_begin(values, GRAD_IN + values->output, element);
    pixel at;
    if (!pixel_of(node, values, element, &at)) return dx;
    const double sign = at.target > 0 ? 1 : -1, either = (double)sums[EITHER] + 1, both = 2 * (double)sums[BOTH] + 1;
    const double slope = at.focus * (at.q + gamma * at.p * at.entropy); /* of the cross entropy, by -z */
    cleat_define_add(&dx, -sign * factor * at.weight * slope / (double)sums[KNOWN]);
    cleat_define_add(&dx, factor * dice_weight * at.p * at.q * both / (either * either));
    cleat_define_add(&dx, -factor * dice_weight * at.p * at.q * 2 * at.target / either);
    return dx;
}

static const cleat_variant variants[] = {{.name = "parts", .workspace = workspace, .bind = bind}, {0}};
static const cleat_variant grad_variants[] = {{.name = "runs", .bind = bind_grad}, {0}};

static const cleat_op mask_loss_grad = {.name = "mask_loss_grad",
                                        .cost = cost,
                                        .variants = grad_variants,
                                        .define = define_grad,
                                        .inplace_inputs = CLEAT_IN(X) | CLEAT_IN(GRAD_IN)};

static void backward(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    if (!dout[0] || !cleat_requires_grad(node->in[X])) return;
    cleat_tensor *in[GRAD_IN];
    memcpy(in, node->in, FORWARD_IN * sizeof *in);
    in[SAVED] = node->out[1];
    in[DLOSS] = dout[0];
    cleat_emit_grads_of(graph, node, &mask_loss_grad, in, GRAD_IN, &node->in[X], 1);
}

static const cleat_op mask_loss = {
    .name = "mask_loss", .infer = infer, .backward = backward, .cost = cost, .variants = variants, .define = define};

cleat_tensor *cleat_mask_loss(cleat_graph *graph, cleat_tensor *logits, cleat_tensor *mask, cleat_tensor *sample_weight,
                              const cleat_mask_loss_spec *spec) {
    if (!spec) {
        cleat_graph_fail(graph, CLEAT_ERR_ARGUMENT, "mask_loss: no spec");
        return NULL;
    }
    if (!isfinite(spec->positive_weight) || spec->positive_weight <= 0 || !isfinite(spec->focal_gamma) ||
        spec->focal_gamma < 0 || !isfinite(spec->dice_weight) || spec->dice_weight < 0) {
        cleat_graph_fail(graph, CLEAT_ERR_ARGUMENT,
                         "mask_loss: positive_weight %g must be greater than 0, focal_gamma %g and dice_weight %g must "
                         "not be negative",
                         (double)spec->positive_weight, (double)spec->focal_gamma, (double)spec->dice_weight);
        return NULL;
    }
    cleat_tensor *in[FORWARD_IN] = {logits, mask, sample_weight};
    return cleat_first_output(cleat_emit(graph, &mask_loss, spec, sizeof *spec, in, FORWARD_IN));
}
