/* One step of an optimizer, AdamW, SGD or Lion, over the store's flat buffers. */
#include "graph/launch.h"
#include "graph/store.h"
#include "lib/shared_numbers.clh"
#include "ops/lib/define.h"
#include "ops/lib/shared.h"
#include "ops/update.h"

#include <math.h>
#include <string.h>

/* Indices in `in`. Moments that the optimizer lacks, loss_scale and half_weights may be NULL. out = the first
 * four, and half_weights if present. */
enum { PARAMETERS, GRADIENTS, MOMENT1, MOMENT2, HYPER, NORM, LOSS_SCALE, HALF_WEIGHTS, INPUTS };

/* Factors of the learning rate and the weight decay in `hyper`, for the parameters of the node. */
typedef struct step_attr {
    float rate, decay;
} step_attr;

static cleat_status infer(cleat_node *node, cleat_error *error) {
    const int64_t one = 1;
    if (node->in[0]->shape[0] < 1) return cleat_infer_fail(node, error, "the store has no parameters");
    cleat_status status = cleat_expect(node, HYPER, "hyper", CLEAT_F32, 1, (int64_t[]){HYPER_COUNT}, error);
    if (!status) status = cleat_expect(node, NORM, "norm", CLEAT_F32, 1, &one, error);
    if (!status && node->in[LOSS_SCALE])
        status = cleat_expect(node, LOSS_SCALE, "loss_scale", CLEAT_F32, 1, &one, error);
    if (status) return status;
    for (int i = PARAMETERS; i <= MOMENT2; ++i)
        if (node->in[i]) cleat_set_output_state(node, i, node->in[i]);
    if (node->in[HALF_WEIGHTS]) cleat_set_output_state(node, MOMENT2 + 1, node->in[HALF_WEIGHTS]);
    return CLEAT_OK;
}

/* Parameters, gradients and moments are read and written. */
static cleat_cost cost_of(const cleat_node *node, double flops, int buffers) {
    double elements = (double)cleat_tensor_elements(node->in[0]);
    double half_weights = node->in[HALF_WEIGHTS] ? (double)cleat_tensor_bytes(node->in[HALF_WEIGHTS]) : 0;
    return (cleat_cost){.flops = flops * elements, .bytes = 2 * buffers * 4 * elements + half_weights};
}

static cleat_cost cost_adamw(const cleat_node *node) {
    return cost_of(node, 15, 4);
}

static cleat_cost cost_sgd(const cleat_node *node) {
    return cost_of(node, 7, node->in[MOMENT1] ? 3 : 2);
}

static void launch(cleat_binder *binder, const cleat_node *node, const char *file, const char *kernel,
                   int missing_input) {
    int64_t elements = cleat_tensor_elements(node->in[0]);
    if (elements % binder->facts->vector_width)
        cleat_bind_fail(binder, node, "%lld elements are not a multiple of the vector width %d", (long long)elements,
                        binder->facts->vector_width);
    const cleat_tensor *half_weights = node->in[HALF_WEIGHTS];
    cleat_launch_vector_kernel(binder, node, file, kernel, half_weights ? half_weights->dtype : CLEAT_F32, 0);
    cleat_launch_round_correctly(binder); /* all devices of a run must make bit-identical steps */
    for (int i = 0; i < node->n_in; ++i)
        if (i != missing_input) cleat_launch_tensor(binder, node->in[i]);
    const step_attr *attr = (const void *)node->attr;
    cleat_launch_f32(binder, "rate_factor", attr->rate);
    cleat_launch_f32(binder, "decay_factor", attr->decay);
    cleat_launch_i64(binder, "n", elements);
    cleat_launch_elementwise(binder, elements);
}

/* The gradient in the formulas: clipped, without the loss scale. */
static double define_gradient(const cleat_node *node, const cleat_host_values *values, int64_t element) {
    const double most = cleat_host_value(values, HYPER, HYPER_MAX_NORM), norm = cleat_host_value(values, NORM, 0);
    const double scale = node->in[LOSS_SCALE] ? cleat_host_value(values, LOSS_SCALE, 0) : 1;
    const double clip = most > 0 ? fmin(1, most / (norm + 1e-6)) : 1;
    return cleat_host_value(values, GRADIENTS, element) * clip / scale;
}

/* If the norm is not finite, only the gradient changes. */
static bool define_unchanged(const cleat_host_values *values, int64_t element, cleat_expected_value *same) {
    *same = (cleat_expected_value){.value = 0};
    if (values->output == GRADIENTS) return true;
    if (isfinite(cleat_host_value(values, NORM, 0))) return false;
    *same = cleat_define_begin(values, values->output > MOMENT2 ? HALF_WEIGHTS : values->output, element);
    return true;
}

static cleat_expected_value define_adamw(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const step_attr *attr = (const void *)node->attr;
    cleat_expected_value same;
    if (define_unchanged(values, element, &same)) return same;
    const double g = define_gradient(node, values, element), b1 = cleat_host_value(values, HYPER, HYPER_BETA1),
                 b2 = cleat_host_value(values, HYPER, HYPER_BETA2),
                 rate = cleat_host_value(values, HYPER, HYPER_RATE) * (double)attr->rate,
                 decay = cleat_host_value(values, HYPER, HYPER_WEIGHT_DECAY) * (double)attr->decay;
    const double old_m = cleat_host_value(values, MOMENT1, element), old_v = cleat_host_value(values, MOMENT2, element);
    const double m = b1 * old_m + (1 - b1) * g, v = b2 * old_v + (1 - b2) * g * g;
    const double m_size = fabs(b1 * old_m) + fabs((1 - b1) * g);
    if (values->output == MOMENT1) return (cleat_expected_value){.value = m, .size = m_size};
    if (values->output == MOMENT2) return (cleat_expected_value){.value = v, .size = v};
    const double p = cleat_host_value(values, PARAMETERS, element),
                 step = rate / cleat_host_value(values, HYPER, HYPER_CORRECTION1),
                 root = sqrt(v / cleat_host_value(values, HYPER, HYPER_CORRECTION2)),
                 below = root + cleat_host_value(values, HYPER, HYPER_EPS);
    return (cleat_expected_value){.value = p * (1 - rate * decay) - step * m / below,
                                  .size = fabs(p) + fabs(step) * m_size / below};
}

static cleat_expected_value define_sgd(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const step_attr *attr = (const void *)node->attr;
    cleat_expected_value same;
    if (define_unchanged(values, element, &same)) return same;
    const double p = cleat_host_value(values, PARAMETERS, element), m = cleat_host_value(values, MOMENT1, element),
                 g = define_gradient(node, values, element), momentum = cleat_host_value(values, HYPER, HYPER_MOMENTUM),
                 rate = cleat_host_value(values, HYPER, HYPER_RATE) * (double)attr->rate,
                 decay = cleat_host_value(values, HYPER, HYPER_WEIGHT_DECAY) * (double)attr->decay;
    const double step = g + decay * p, velocity = momentum * m + step;
    const double size = fabs(g) + fabs(decay * p) + fabs(momentum * m);
    if (values->output == MOMENT1) return (cleat_expected_value){.value = velocity, .size = size};
    const bool nesterov = cleat_host_value(values, HYPER, HYPER_NESTEROV) > 0;
    const double along = node->in[MOMENT1] && nesterov ? step + momentum * velocity
                         : node->in[MOMENT1]           ? velocity
                                                       : step;
    return (cleat_expected_value){.value = p - rate * along, .size = fabs(p) + 2 * fabs(rate) * size};
}

/* Where the sum is nearly zero, a kernel may give it the other sign. */
static cleat_expected_value define_lion(const cleat_node *node, cleat_host_values *values, int64_t element) {
    static const double near = 0x1p-20, uncertain = 0x1p20;
    const step_attr *attr = (const void *)node->attr;
    cleat_expected_value same;
    if (define_unchanged(values, element, &same)) return same;
    const double g = define_gradient(node, values, element), m = cleat_host_value(values, MOMENT1, element),
                 beta = cleat_host_value(values, HYPER, values->output == MOMENT1 ? HYPER_BETA2 : HYPER_BETA1),
                 rate = cleat_host_value(values, HYPER, HYPER_RATE) * (double)attr->rate,
                 decay = cleat_host_value(values, HYPER, HYPER_WEIGHT_DECAY) * (double)attr->decay;
    const double sum = beta * m + (1 - beta) * g, size = fabs(beta * m) + fabs((1 - beta) * g);
    if (values->output == MOMENT1) return (cleat_expected_value){.value = sum, .size = size};
    const double p = cleat_host_value(values, PARAMETERS, element);
    return (cleat_expected_value){.value = p * (1 - rate * decay) - rate * ((sum > 0) - (sum < 0)),
                                  .size = fabs(p) + fabs(rate) * (fabs(sum) < near * size ? uncertain : 1)};
}

/* LACKING: the moments that the optimizer may lack; KERNEL_LACKS: the input that its kernel does not have. */
#define STEP(NAME, COST, LACKING, KERNEL_LACKS)                                                                        \
    static void bind_##NAME(const cleat_node *node, cleat_binder *binder) {                                            \
        launch(binder, node, #NAME ".cl", #NAME "_step", KERNEL_LACKS);                                                \
    }                                                                                                                  \
    static const cleat_variant NAME##_variants[] = {{.name = "one pass", .bind = bind_##NAME}, {0}};                   \
    static const cleat_op NAME = {.name = #NAME,                                                                       \
                                  .optional_inputs = (LACKING) | CLEAT_IN(LOSS_SCALE) | CLEAT_IN(HALF_WEIGHTS),        \
                                  .infer = infer,                                                                      \
                                  .cost = COST,                                                                        \
                                  .variants = NAME##_variants,                                                         \
                                  .define = define_##NAME,                                                             \
                                  .no_autocast = true}
STEP(adamw, cost_adamw, 0, -1);
STEP(sgd, cost_sgd, CLEAT_IN(MOMENT1) | CLEAT_IN(MOMENT2), MOMENT2);
STEP(lion, cost_sgd, CLEAT_IN(MOMENT2), MOMENT2);

/* Returns 1 - beta^t for the kernel's f32 beta: 1 - 0.999 in single precision has an error of 1e-5, which
 * must cancel. */
static float bias_correction(float beta, int64_t steps) {
    return (float)(1.0 - pow((double)beta, (double)(steps + 1)));
}

void cleat_adamw_hyper(const cleat_adamw_spec *spec, double learning_rate, int64_t steps, float *hyper) {
    const float values[HYPER_COUNT] = {[HYPER_RATE] = (float)learning_rate,
                                       [HYPER_BETA1] = spec->beta1,
                                       [HYPER_BETA2] = spec->beta2,
                                       [HYPER_EPS] = spec->eps,
                                       [HYPER_WEIGHT_DECAY] = spec->weight_decay,
                                       [HYPER_MAX_NORM] = spec->max_norm,
                                       [HYPER_CORRECTION1] = bias_correction(spec->beta1, steps),
                                       [HYPER_CORRECTION2] = bias_correction(spec->beta2, steps)};
    memcpy(hyper, values, sizeof values);
}

void cleat_sgd_hyper(const cleat_sgd_spec *spec, double learning_rate, float *hyper) {
    const float values[HYPER_COUNT] = {[HYPER_RATE] = (float)learning_rate,
                                       [HYPER_MOMENTUM] = spec->momentum,
                                       [HYPER_NESTEROV] = spec->nesterov,
                                       [HYPER_WEIGHT_DECAY] = spec->weight_decay,
                                       [HYPER_MAX_NORM] = spec->max_norm};
    memcpy(hyper, values, sizeof values);
}

/* The parts of the flat buffers from `first` on; moments that the optimizer lacks are NULL. */
static cleat_status find_parts(cleat_store *store, int moments, int64_t first, int64_t elements, cleat_tensor **in,
                               cleat_error *error) {
    static const cleat_flat_buffer flats[] = {[PARAMETERS] = CLEAT_FLAT_PARAMETERS,
                                              [GRADIENTS] = CLEAT_FLAT_GRADIENTS,
                                              [MOMENT1] = CLEAT_FLAT_MOMENTS1,
                                              [MOMENT2] = CLEAT_FLAT_MOMENTS2};
    cleat_status status = CLEAT_OK;
    for (int i = PARAMETERS; i < MOMENT1 + moments && !status; ++i)
        status = cleat_store_view(store, flats[i], first, elements, &in[i], error);
    if (!status && cleat_has_half_weights(store))
        status = cleat_store_view(store, CLEAT_FLAT_HALF_WEIGHTS, first, elements, &in[HALF_WEIGHTS], error);
    return status;
}

/* One node for each group of parameters. `moments`: how many of them the optimizer has. */
static void emit(cleat_graph *graph, const cleat_op *op, int moments, cleat_tensor *hyper, cleat_tensor *norm,
                 cleat_tensor *loss_scale) {
    const cleat_param_group all = {.rule = {.rate = 1, .decay = 1}, .elements = graph->store->trained_elements};
    size_t count;
    const cleat_param_group *groups = cleat_store_groups(graph->store, &count);
    if (count == 0) {
        groups = &all;
        count = 1;
    }
    for (size_t g = 0; g < count && !graph->error.status; ++g) {
        const step_attr attr = {.rate = groups[g].rule.rate, .decay = groups[g].rule.decay};
        cleat_tensor *in[INPUTS] = {[HYPER] = hyper, [NORM] = norm, [LOSS_SCALE] = loss_scale};
        find_parts(graph->store, moments, groups[g].first, groups[g].elements, in, &graph->error);
        if (count > 1) cleat_scope(graph, "group%zu/", g);
        cleat_emit(graph, op, &attr, sizeof attr, in, INPUTS);
    }
    cleat_scope(graph, NULL);
}

void cleat_adamw(cleat_graph *graph, cleat_tensor *hyper, cleat_tensor *norm, cleat_tensor *loss_scale) {
    emit(graph, &adamw, 2, hyper, norm, loss_scale);
}

void cleat_sgd(cleat_graph *graph, bool momentum, cleat_tensor *hyper, cleat_tensor *norm, cleat_tensor *loss_scale) {
    emit(graph, &sgd, momentum ? 1 : 0, hyper, norm, loss_scale);
}

void cleat_lion(cleat_graph *graph, cleat_tensor *hyper, cleat_tensor *norm, cleat_tensor *loss_scale) {
    emit(graph, &lion, 1, hyper, norm, loss_scale);
}
