/* Cross entropy of rows with class labels. */
#include "cleat/ops.h"
#include "graph/defer.h"
#include "ops/lib/define.h"
#include "ops/lib/row_loss.h"
#include "ops/lib/rows.h"
#include "ops/lib/shared.h"

#include <math.h>

enum { MAX_WIDTH = 1 << 20 };

/* The gradient additionally has the output saved by the forward node, dloss, and the accum. */
enum { X, LABELS, SAMPLE_WEIGHT, FORWARD_IN };
enum { STATISTICS = FORWARD_IN, DLOSS, GRAD_IN };

/* The rows of x are those from `first` on of the labels and sample weights. */
typedef struct entropy_attr {
    float smoothing;
    int32_t first;
    int32_t is_part; /* 1: there are more labels than rows */
    int32_t keeps;   /* 1: the losses of the rows are an output */
} entropy_attr;

static const entropy_attr *attr_of(const cleat_node *node) {
    return (const entropy_attr *)node->attr;
}

static float smoothing_of(const cleat_node *node) {
    return attr_of(node)->smoothing;
}

static cleat_status expect_rows(const cleat_node *node, int i, const char *what, cleat_dtype dtype,
                                cleat_error *error) {
    const cleat_tensor *got = node->in[i];
    const int64_t end = attr_of(node)->first + cleat_rows(node->in[X]);
    if (!attr_of(node)->is_part) return cleat_row_loss_expect(node, i, what, dtype, node->in[X], error);
    if (got->dtype == dtype && cleat_tensor_elements(got) >= end) return CLEAT_OK;
    return cleat_infer_fail(node, error, "%s is %s, it must be %s with at least %lld elements", what,
                            CLEAT_DESCRIBED(got), cleat_dtype_name(dtype), (long long)end);
}

/* out = {loss f32 [1], statistics f32 [2, rows], and if `keeps` the loss of each row f32 [rows]} */
static cleat_status infer(cleat_node *node, cleat_error *error) {
    const cleat_tensor *x = node->in[X];
    float smoothing = smoothing_of(node);
    if (!(smoothing >= 0.0f && smoothing < 1.0f))
        return cleat_infer_fail(node, error, "label smoothing %g is not in [0, 1)", (double)smoothing);
    cleat_status status = cleat_row_loss_infer(node, x, MAX_WIDTH, error);
    if (!status) status = expect_rows(node, LABELS, "labels", CLEAT_I32, error);
    if (!status) status = expect_rows(node, SAMPLE_WEIGHT, "scale", CLEAT_F32, error);
    int64_t statistics[] = {2, cleat_rows(x)};
    if (!status) status = cleat_set_output(node, 1, CLEAT_F32, 2, statistics, error);
    if (!status && attr_of(node)->keeps) status = cleat_set_output(node, 2, CLEAT_F32, 1, &statistics[1], error);
    return status;
}

static cleat_cost cost_of(const cleat_node *node, double flops_per_element) {
    cleat_cost cost = cleat_elementwise_cost(node, 0);
    cost.flops = flops_per_element * (double)cleat_tensor_elements(node->in[X]);
    return cost;
}

static cleat_cost cost(const cleat_node *node) {
    return cost_of(node, 25);
}

static cleat_cost cost_grad(const cleat_node *node) {
    return cost_of(node, 25);
}

/* Adds x, labels, sample_weight. */
static void begin(cleat_binder *binder, const cleat_node *node, const char *kernel) {
    cleat_launch_row_kernel(binder, node, "cross_entropy.cl", kernel, node->in[X]->dtype, cleat_width(node->in[X]));
    cleat_launch_tensor(binder, node->in[X]);
    cleat_launch_tensor_at(binder, node->in[LABELS], attr_of(node)->first);
    cleat_launch_tensor_at(binder, node->in[SAMPLE_WEIGHT], attr_of(node)->first);
}

static void end(cleat_binder *binder, const cleat_node *node) {
    int64_t rows = cleat_rows(node->in[X]);
    cleat_launch_i32(binder, "rows", (int32_t)rows);
    cleat_launch_f32(binder, "smoothing", smoothing_of(node));
    cleat_launch_rows(binder, rows, cleat_width(node->in[X]));
}

static void bind(const cleat_node *node, cleat_binder *binder) {
    begin(binder, node, "cross_entropy_rows");
    CLEAT_LAUNCH_TENSORS(binder, node->out[1], node->out[2]);
    cleat_launch_workspace(binder, 0, sizeof(float));
    end(binder, node);
    const bool one_launch = cleat_has_counters(binder->facts, 1);
    cleat_launch_tensor(binder, node->out[0]);
    cleat_launch_counters(binder, one_launch);
    if (!one_launch) cleat_launch_row_loss_total(binder, node, cleat_rows(node->in[X]));
}

static void bind_grad(const cleat_node *node, cleat_binder *binder) {
    begin(binder, node, "cross_entropy_grad");
    CLEAT_LAUNCH_TENSORS(binder, node->in[STATISTICS], node->in[DLOSS], cleat_accum(node, GRAD_IN, 0), node->out[0]);
    end(binder, node);
}

/* The largest logit of a row, and the sum of exp(x - largest). */
static double define_statistics(const cleat_node *node, cleat_host_values *values, int64_t row, double *sum) {
    const int64_t width = cleat_width(node->in[X]);
    const float *x = values->in[X].f + row * width;
    double top = (double)x[0];
    *sum = 0;
    for (int64_t c = 1; c < width; ++c) top = fmax(top, (double)x[c]);
    for (int64_t c = 0; c < width; ++c) *sum += exp((double)x[c] - top);
    values->work += 8.0 * (double)width;
    return top;
}

/* Adds the loss of a row, times `weight`. */
static void define_row_loss(const cleat_node *node, cleat_host_values *values, int64_t row, double weight,
                            cleat_expected_value *loss) {
    const int64_t width = cleat_width(node->in[X]), label_row = attr_of(node)->first + row,
                  label = values->in[LABELS].i[label_row];
    const double smoothing = (double)smoothing_of(node);
    double sum, distances = 0, sizes = 0;
    if (label < 0 || label >= width) return;
    const double top = define_statistics(node, values, row, &sum);
    for (int64_t c = 0; c < width; ++c) {
        const double share = (c == label ? 1 - smoothing : 0) + smoothing / (double)width;
        distances += share * (cleat_host_value(values, X, row * width + c) - top);
        sizes += share * (fabs(cleat_host_value(values, X, row * width + c)) + fabs(top));
    }
    loss->value += weight * (log(sum) - distances);
    loss->size += fabs(weight) * (1 + fabs(log(sum)) + sizes);
}

static cleat_expected_value define(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const int64_t rows = cleat_rows(node->in[X]);
    cleat_expected_value loss = {.value = 0};
    double sum;
    for (int64_t row = 0; values->output == 0 && row < rows; ++row)
        define_row_loss(node, values, row, cleat_host_value(values, SAMPLE_WEIGHT, attr_of(node)->first + row), &loss);
    if (values->output == 2) define_row_loss(node, values, element, 1, &loss);
    if (values->output != 1) return loss;
    const double top = define_statistics(node, values, element % rows, &sum);
    if (element < rows) return (cleat_expected_value){.value = top, .size = fabs(top)};
    return (cleat_expected_value){.value = 1 / sum, .size = (1 + fabs(top)) / sum};
}

static cleat_expected_value define_grad(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const int64_t width = cleat_width(node->in[X]), row = element / width, label_row = attr_of(node)->first + row;
    const int64_t label = values->in[LABELS].i[label_row];
    const double smoothing = (double)smoothing_of(node);
    const double weight = cleat_host_value(values, DLOSS, 0) * cleat_host_value(values, SAMPLE_WEIGHT, label_row);
    cleat_expected_value dx = cleat_define_begin(values, GRAD_IN + values->output, element);
    double sum;
    if (label < 0 || label >= width) return dx;
    const double top = define_statistics(node, values, row, &sum), x = cleat_host_value(values, X, element);
    const double p = exp(x - top) / sum;
    dx.value += weight * (p - smoothing / (double)width - (element % width == label ? 1 - smoothing : 0));
    dx.size += fabs(weight) * (p * (1 + fabs(x) + fabs(top)) + (element % width == label) + smoothing);
    return dx;
}

static const cleat_variant variants[] = {{.name = "rows", .workspace = cleat_row_loss_workspace, .bind = bind}, {0}};
static const cleat_variant grad_variants[] = {{.name = "rows", .bind = bind_grad}, {0}};

static const cleat_op cross_entropy_grad = {.name = "cross_entropy_grad",
                                            .cost = cost_grad,
                                            .variants = grad_variants,
                                            .define = define_grad,
                                            .inplace_inputs = CLEAT_IN(X) | CLEAT_IN(GRAD_IN)};

static void backward(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    if (!dout[0] || !cleat_requires_grad(node->in[X])) return;
    cleat_tensor *in[GRAD_IN] = {node->in[X], node->in[LABELS], node->in[SAMPLE_WEIGHT], node->out[1], dout[0]};
    cleat_emit_grads_of(graph, node, &cross_entropy_grad, in, GRAD_IN, &node->in[X], 1);
}

static const cleat_op cross_entropy = {.name = "cross_entropy",
                                       .infer = infer,
                                       .backward = backward,
                                       .cost = cost,
                                       .variants = variants,
                                       .define = define};

static cleat_node *emit(cleat_graph *graph, cleat_tensor *logits, cleat_tensor *labels, cleat_tensor *sample_weight,
                        entropy_attr attr) {
    cleat_tensor *in[FORWARD_IN] = {logits, labels, sample_weight};
    return cleat_emit(graph, &cross_entropy, &attr, sizeof attr, in, FORWARD_IN);
}

cleat_tensor *cleat_cross_entropy(cleat_graph *graph, cleat_tensor *logits, cleat_tensor *labels,
                                  cleat_tensor *sample_weight, float label_smoothing) {
    return cleat_first_output(emit(graph, logits, labels, sample_weight, (entropy_attr){.smoothing = label_smoothing}));
}

cleat_tensor *cleat_linear_cross_entropy(cleat_graph *graph, cleat_tensor *x, cleat_tensor *weight,
                                         cleat_tensor *labels, cleat_tensor *sample_weight, float label_smoothing,
                                         int64_t rows_at_once, cleat_tensor **each) {
    enum { PART_ELEMENTS = 1 << 23, MIN_ROWS = 64 };
    if (!x || !weight) return NULL;
    const int64_t rows = cleat_rows(x), most = PART_ELEMENTS / weight->shape[0];
    const int64_t part = rows_at_once > 0 ? rows_at_once : most > MIN_ROWS ? most : MIN_ROWS;
    cleat_tensor *flat = cleat_reshape(graph, x, 2, (const int64_t[]){rows, cleat_width(x)}), *loss = NULL;
    cleat_tensor *losses = NULL;
    for (int64_t first = 0; first < rows; first += part) {
        const int64_t stop = rows - first < part ? rows : first + part;
        cleat_tensor *some = part < rows ? cleat_defer(cleat_slice(graph, flat, 0, first, stop)) : flat;
        cleat_tensor *logits = cleat_defer(cleat_linear(graph, some, weight, NULL, NULL));
        const entropy_attr attr = {label_smoothing, (int32_t)first, part < rows, each != NULL};
        cleat_node *node = emit(graph, logits, labels, sample_weight, attr);
        if (!node) return NULL;
        node->deferred = true;
        loss = loss ? cleat_sum(graph, (cleat_tensor *[]){loss, node->out[0]}, 2) : node->out[0];
        losses = losses ? cleat_concat(graph, (cleat_tensor *[]){losses, node->out[2]}, 2) : node->out[2];
    }
    if (each) *each = losses;
    return loss;
}
