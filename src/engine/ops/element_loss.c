/* Losses of elements, averaged over rows: mean squared error, binary cross entropy.
 *
 * To add one: its number in cl/lib/shared_numbers.clh, its formula and slope in cl/element_loss.cl, a row of
 * `losses`, and its name in ops.h. */
#include "cleat/ops.h"
#include "lib/shared_numbers.clh"
#include "ops/lib/define.h"
#include "ops/lib/row_loss.h"
#include "ops/lib/rows.h"
#include "ops/lib/shared.h"

#include <math.h>
#include <string.h>

enum { MAX_WIDTH = 1 << 20 };

/* The gradient additionally has dloss and the accum. */
enum { X, TARGET, SAMPLE_WEIGHT, FORWARD_IN };
enum { DLOSS = FORWARD_IN, GRAD_IN };

typedef struct loss_attr {
    int32_t loss;          /* ELEMENT_LOSS_... */
    float positive_weight; /* of BCE */
} loss_attr;

typedef struct element_loss {
    cleat_op op, grad;
    int flops; /* per element */
} element_loss;

enum { LOSSES = ELEMENT_LOSS_BCE + 1 };

static const element_loss losses[LOSSES]; /* [ELEMENT_LOSS_...]; see below */

static const loss_attr *attr_of(const cleat_node *node) {
    return (const loss_attr *)node->attr;
}

static cleat_status infer(cleat_node *node, cleat_error *error) {
    const cleat_tensor *x = node->in[X];
    const float weight = attr_of(node)->positive_weight;
    if (!(weight > 0) || !isfinite(weight))
        return cleat_infer_fail(node, error, "the weight of positive targets is %g, it must be above 0 and finite",
                                (double)weight);
    cleat_status status = cleat_row_loss_infer(node, x, MAX_WIDTH, error);
    if (!status) status = cleat_expect(node, TARGET, "target", CLEAT_F32, x->rank, x->shape, error);
    return status ? status : cleat_row_loss_expect(node, SAMPLE_WEIGHT, "scale", CLEAT_F32, x, error);
}

static cleat_cost cost(const cleat_node *node) {
    cleat_cost cost = cleat_elementwise_cost(node, 0);
    cost.flops = losses[attr_of(node)->loss].flops * (double)cleat_tensor_elements(node->in[X]);
    return cost;
}

static void begin(cleat_binder *binder, const cleat_node *node, const char *kernel, int n_in) {
    cleat_launch_row_kernel(binder, node, "element_loss.cl", kernel, node->in[X]->dtype, cleat_width(node->in[X]));
    cleat_launch_define(binder, "LOSS", attr_of(node)->loss);
    for (int i = 0; i < n_in; ++i) cleat_launch_tensor(binder, node->in[i]);
}

static void end(cleat_binder *binder, const cleat_node *node) {
    int64_t rows = cleat_rows(node->in[X]);
    cleat_launch_i32(binder, "rows", (int32_t)rows);
    cleat_launch_f32(binder, "positive_weight", attr_of(node)->positive_weight);
    cleat_launch_rows(binder, rows, cleat_width(node->in[X]));
}

static void bind(const cleat_node *node, cleat_binder *binder) {
    begin(binder, node, "element_loss_rows", FORWARD_IN);
    cleat_launch_workspace(binder, 0, sizeof(float));
    end(binder, node);
    cleat_launch_row_loss_total(binder, node, cleat_rows(node->in[X]));
}

static void bind_grad(const cleat_node *node, cleat_binder *binder) {
    begin(binder, node, "element_loss_grad", GRAD_IN);
    CLEAT_LAUNCH_TENSORS(binder, cleat_accum(node, GRAD_IN, 0), node->out[0]);
    end(binder, node);
}

/* The logarithm of 1 + e^x. */
static double soft_plus(double x) {
    return fmax(x, 0) + log1p(exp(-fabs(x)));
}

/* f(x, t), whose terms are not below 0. */
static double define_loss(const cleat_node *node, double x, double t) {
    if (attr_of(node)->loss == ELEMENT_LOSS_MSE) return (x - t) * (x - t);
    if (!(t >= 0 && t <= 1)) return 0;
    return (1 - t) * soft_plus(x) + (double)attr_of(node)->positive_weight * t * soft_plus(-x);
}

/* f'(x, t), and the magnitudes of its terms. */
static cleat_expected_value define_slope(const cleat_node *node, double x, double t) {
    if (attr_of(node)->loss == ELEMENT_LOSS_MSE)
        return (cleat_expected_value){.value = 2 * (x - t), .size = 2 * (fabs(x) + fabs(t))};
    if (!(t >= 0 && t <= 1)) return (cleat_expected_value){.value = 0};
    const double up = (1 - t) / (1 + exp(-x)), down = (double)attr_of(node)->positive_weight * t / (1 + exp(x));
    return (cleat_expected_value){.value = up - down, .size = up + down};
}

static cleat_expected_value define(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const int64_t width = cleat_width(node->in[X]), count = cleat_tensor_elements(node->in[X]);
    cleat_expected_value sum = {.value = 0};
    (void)values->output, (void)element;
    for (int64_t i = 0; i < count; ++i) {
        const double x = cleat_host_value(values, X, i), t = cleat_host_value(values, TARGET, i),
                     weight = cleat_host_value(values, SAMPLE_WEIGHT, i / width) / (double)width;
        cleat_define_add(&sum, weight * define_loss(node, x, t));
        if (attr_of(node)->loss == ELEMENT_LOSS_MSE) /* a difference that cancels is squared */
            sum.size += fabs(weight) * 2 * fabs(x - t) * (fabs(x) + fabs(t));
    }
    values->work += 2 * (double)count;
    return sum;
}

static cleat_expected_value define_grad(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const int64_t width = cleat_width(node->in[X]);
    const cleat_expected_value slope =
        define_slope(node, cleat_host_value(values, X, element), cleat_host_value(values, TARGET, element));
    const double weight =
        cleat_host_value(values, DLOSS, 0) * cleat_host_value(values, SAMPLE_WEIGHT, element / width) / (double)width;
    cleat_expected_value dx = cleat_define_begin(values, GRAD_IN + values->output, element);
    dx.value += weight * slope.value;
    dx.size += fabs(weight) * slope.size;
    return dx;
}

static const cleat_variant variants[] = {{.name = "rows", .workspace = cleat_row_loss_workspace, .bind = bind}, {0}};
static const cleat_variant grad_variants[] = {{.name = "rows", .bind = bind_grad}, {0}};

static void backward(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    cleat_tensor *in[GRAD_IN];
    memcpy(in, node->in, FORWARD_IN * sizeof *in);
    in[DLOSS] = dout[0];
    cleat_emit_grads_of(graph, node, &losses[attr_of(node)->loss].grad, in, GRAD_IN, &node->in[X], 1);
}

#define OPS(text)                                                                                                      \
    .op = {.name = text, .infer = infer, .backward = backward, .cost = cost, .variants = variants, .define = define},  \
    .grad = {.name = text "_grad",                                                                                     \
             .cost = cost,                                                                                             \
             .variants = grad_variants,                                                                                \
             .define = define_grad,                                                                                    \
             .inplace_inputs = CLEAT_IN(X) | CLEAT_IN(GRAD_IN)}

static const element_loss losses[LOSSES] = {
    [ELEMENT_LOSS_MSE] = {OPS("mse_loss"), .flops = 3},
    [ELEMENT_LOSS_BCE] = {OPS("binary_cross_entropy"), .flops = 40},
};

static cleat_tensor *emit(cleat_graph *graph, cleat_tensor *x, cleat_tensor *target, cleat_tensor *sample_weight,
                          loss_attr attr) {
    cleat_tensor *in[FORWARD_IN] = {x, target, sample_weight};
    return cleat_first_output(cleat_emit(graph, &losses[attr.loss].op, &attr, sizeof attr, in, FORWARD_IN));
}

cleat_tensor *cleat_mse_loss(cleat_graph *graph, cleat_tensor *x, cleat_tensor *target, cleat_tensor *sample_weight) {
    return emit(graph, x, target, sample_weight, (loss_attr){.loss = ELEMENT_LOSS_MSE, .positive_weight = 1});
}

cleat_tensor *cleat_binary_cross_entropy(cleat_graph *graph, cleat_tensor *logits, cleat_tensor *target,
                                         cleat_tensor *sample_weight, float positive_weight) {
    const loss_attr attr = {.loss = ELEMENT_LOSS_BCE, .positive_weight = positive_weight};
    return emit(graph, logits, target, sample_weight, attr);
}
