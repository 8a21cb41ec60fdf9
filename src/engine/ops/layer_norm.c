/* Layer normalization over the last dimension, and RMS normalization, which has neither a mean nor beta. */
#include "cleat/ops.h"
#include "lib/shared_numbers.clh"
#include "ops/fusible.h"
#include "ops/lib/count.h"
#include "ops/lib/define.h"
#include "ops/lib/rows.h"
#include "ops/lib/shared.h"

#include <math.h>

typedef struct layer_norm_attr {
    float eps;
    int32_t rms;
} layer_norm_attr;

/* out = {y T [..., D], mean f32 [rows], rstd f32 [rows]}; beta may be NULL; RMS normalization: beta and mean are. */
enum { X, GAMMA, BETA, FORWARD_IN };
enum { Y, MEAN, RSTD, FORWARD_OUT };

static cleat_status infer(cleat_node *node, cleat_error *error) {
    const cleat_tensor *x = node->in[X];
    int64_t width[] = {cleat_width(x)}, rows[] = {cleat_rows(x)};
    if (!cleat_is_storage(x->dtype))
        return cleat_infer_fail(node, error, "x is %s, it must be f32, f16 or bf16", cleat_dtype_name(x->dtype));
    const float eps = ((const layer_norm_attr *)node->attr)->eps;
    if (!(eps >= 0.0f && isfinite(eps)))
        return cleat_infer_fail(node, error, "eps is %g, it must be finite and not below 0", (double)eps);
    const bool has_mean = !((const layer_norm_attr *)node->attr)->rms;
    cleat_status status = cleat_expect(node, GAMMA, "gamma", CLEAT_F32, 1, width, error);
    if (!status && node->in[BETA]) status = cleat_expect(node, BETA, "beta", CLEAT_F32, 1, width, error);
    if (!status) status = cleat_set_output(node, Y, x->dtype, x->rank, x->shape, error);
    if (!status && has_mean) status = cleat_set_output(node, MEAN, CLEAT_F32, 1, rows, error);
    if (!status) status = cleat_set_output(node, RSTD, CLEAT_F32, 1, rows, error);
    return status;
}

static void begin(cleat_binder *binder, const cleat_node *node, const char *kernel, const cleat_tensor *x,
                  bool has_mean) {
    cleat_launch_row_kernel(binder, node, "layer_norm.cl", kernel, x->dtype, cleat_width(x));
    if (!has_mean) cleat_launch_define(binder, "RMS_NORM", 1);
}

static void bind(const cleat_node *node, cleat_binder *binder) {
    const cleat_tensor *x = node->in[X];
    int64_t rows = cleat_rows(x), width = cleat_width(x);
    begin(binder, node, "layer_norm_forward", x, node->out[MEAN] != NULL);
    if (node->out[MEAN] && !node->in[BETA]) cleat_launch_define(binder, "NO_BETA", 1);
    if (node->out[Y]->dtype != x->dtype) cleat_launch_define(binder, "Y_F32", 1);
    for (int i = 0; i < FORWARD_IN; ++i) cleat_launch_tensor(binder, node->in[i]);
    for (int i = 0; i < FORWARD_OUT; ++i) cleat_launch_tensor(binder, node->out[i]);
    cleat_launch_i32(binder, "rows", (int32_t)rows);
    cleat_launch_f32(binder, "eps", ((const layer_norm_attr *)node->attr)->eps);
    cleat_launch_rows(binder, rows, width);
}

/* Sums of a row of x: mean, which is 0 in RMS normalization, and 1 / sqrt(variance + eps). */
static void define_statistics(const cleat_node *node, cleat_host_values *values, int64_t row, double *mean,
                              double *rstd) {
    const int64_t width = cleat_width(node->in[X]);
    const float *x = values->in[X].f + row * width;
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < width && node->out[MEAN]; ++i) sum += (double)x[i];
    *mean = sum / (double)width;
    for (int64_t i = 0; i < width; ++i) squares += ((double)x[i] - *mean) * ((double)x[i] - *mean);
    *rstd = 1 / sqrt(squares / (double)width + (double)((const layer_norm_attr *)node->attr)->eps);
    values->work += 2.0 * (double)width;
}

static cleat_expected_value define(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const int64_t width = cleat_width(node->in[X]), column = element % width;
    double mean, rstd;
    define_statistics(node, values, values->output == Y ? element / width : element, &mean, &rstd);
    if (values->output == MEAN) return (cleat_expected_value){.value = mean, .size = fabs(mean) + 1 / rstd};
    if (values->output == RSTD) return (cleat_expected_value){.value = rstd, .size = rstd * (1 + fabs(mean) * rstd)};
    const double x = cleat_host_value(values, X, element), gamma = cleat_host_value(values, GAMMA, column);
    cleat_expected_value y = cleat_define_begin(values, BETA, column); /* 0 without beta */
    y.value += (x - mean) * rstd * gamma;
    y.size += (fabs(x) + fabs(mean)) * rstd * fabs(gamma) * (1 + fabs(mean) * rstd);
    return y;
}

static const cleat_variant variants[] = {{.name = "rows", .refuse = cleat_rows_refuse, .bind = bind}, {0}};

/* --- gradient: in = {dy, x, mean, rstd, gamma, accums of x, gamma, beta}, out = {dx, dgamma, dbeta} ---------- */

enum { G_DY, G_X, G_MEAN, G_RSTD, G_GAMMA, GRAD_IN };
enum { DX, DGAMMA, DBETA, TARGETS };

/* gamma and beta, or gamma alone. */
static int64_t parameters_of(const cleat_node *node) {
    return node->in[G_MEAN] ? 2 : 1;
}

static int64_t workspace(const cleat_node *node, const cleat_device_facts *facts) {
    return cleat_row_parts(node->in[0], facts) * parameters_of(node) * cleat_width(node->in[0]) *
           (int64_t)sizeof(float);
}

static cleat_cost grad_cost(const cleat_node *node) {
    double bytes = (double)cleat_tensor_bytes(node->in[0]);
    int tensors = 2 + (node->out[DX] != NULL) + (cleat_accum(node, GRAD_IN, DX) != NULL);
    return (cleat_cost){.flops = 30.0 * (double)cleat_tensor_elements(node->in[0]), .bytes = bytes * tensors};
}

/* Adds the accums and gradients of gamma and beta. */
static void add_parameters(const cleat_node *node, cleat_binder *binder) {
    for (int i = DGAMMA; i <= DBETA; ++i) {
        CLEAT_LAUNCH_TENSORS(binder, cleat_accum(node, GRAD_IN, i), node->out[i]);
    }
}

/* Computes DGAMMA and DBETA, if required, from the partial sums. */
static void bind_parameters(const cleat_node *node, cleat_binder *binder) {
    const cleat_device_facts *facts = binder->facts;
    int64_t width = cleat_width(node->in[0]), columns = facts->work_group == 1 ? facts->vector_width : TOTAL_COLUMNS;
    begin(binder, node, "layer_norm_parameters", node->in[G_X], node->in[G_MEAN] != NULL);
    cleat_launch_workspace(binder, 0, sizeof(float));
    add_parameters(node, binder);
    cleat_launch_i32(binder, "parts", (int32_t)cleat_row_parts(node->in[0], facts));
    cleat_launch_groups(binder, parameters_of(node) * ((width + columns - 1) / columns));
}

static void bind_grad(const cleat_node *node, cleat_binder *binder) {
    const cleat_tensor *dy = node->in[G_DY], *x = node->in[G_X];
    const bool has_parameters = node->out[DGAMMA] || node->out[DBETA];
    const int64_t groups = cleat_row_parts(dy, binder->facts);
    const bool one_launch = cleat_has_counters(binder->facts, 1 + ceil_div(groups, LAYER_NORM_SET));
    begin(binder, node, "layer_norm_backward", x, node->in[G_MEAN] != NULL);
    if (dy->dtype != x->dtype) cleat_launch_define(binder, "DY_F32", 1);
    for (int i = 0; i < GRAD_IN; ++i) cleat_launch_tensor(binder, node->in[i]);
    CLEAT_LAUNCH_TENSORS(binder, cleat_accum(node, GRAD_IN, DX), node->out[DX]);
    cleat_launch_floats_or(binder, has_parameters, 0, NULL);
    cleat_launch_i32(binder, "rows", (int32_t)cleat_rows(dy));
    add_parameters(node, binder);
    cleat_launch_counters(binder, has_parameters && one_launch);
    cleat_launch_groups(binder, groups);
    if (has_parameters && !one_launch) bind_parameters(node, binder);
}

/* dgamma or dbeta: a sum over all rows. */
static cleat_expected_value define_parameter(const cleat_node *node, cleat_host_values *values, int64_t column) {
    const int64_t width = cleat_width(node->in[G_X]), rows = cleat_rows(node->in[G_X]);
    cleat_expected_value sum = cleat_define_begin(values, GRAD_IN + values->output, column);
    for (int64_t row = 0; row < rows; ++row) {
        const double dy = cleat_host_value(values, G_DY, row * width + column);
        const double x = cleat_host_value(values, G_X, row * width + column);
        const double mean = cleat_host_value(values, G_MEAN, row), rstd = cleat_host_value(values, G_RSTD, row);
        sum.value += values->output == DGAMMA ? dy * (x - mean) * rstd : dy;
        sum.size += fabs(dy) * (values->output == DGAMMA ? (fabs(x) + fabs(mean)) * rstd : 1);
    }
    values->work += 2.0 * (double)rows;
    return sum;
}

/* dx = accum + rstd (g - mean(g) - n mean(g n)), g = dy gamma, n = (x - mean) rstd */
static cleat_expected_value define_grad(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const int64_t width = cleat_width(node->in[G_X]), row = element / width, column = element % width;
    if (values->output != DX) return define_parameter(node, values, element);
    const double mean = cleat_host_value(values, G_MEAN, row), rstd = cleat_host_value(values, G_RSTD, row);
    double sum = 0, products = 0, sizes = 0, own = 0, own_n = 0;
    for (int64_t i = 0; i < width; ++i) {
        const double x = cleat_host_value(values, G_X, row * width + i), n = (x - mean) * rstd;
        const double g = cleat_host_value(values, G_DY, row * width + i) * cleat_host_value(values, G_GAMMA, i);
        sum += node->in[G_MEAN] ? g / (double)width : 0;
        products += g * n / (double)width;
        sizes += fabs(g) * (1 + (fabs(x) + fabs(mean)) * rstd) / (double)width;
        if (i == column) own = g, own_n = n;
    }
    values->work += 3.0 * (double)width;
    cleat_expected_value dx = cleat_define_begin(values, GRAD_IN + DX, element);
    dx.value += rstd * (own - sum - own_n * products);
    dx.size += rstd * (fabs(own) + sizes * (1 + fabs(own_n) + fabs(mean) * rstd));
    return dx;
}

static const cleat_variant grad_variants[] = {
    {.name = "rows", .refuse = cleat_rows_refuse_grad, .workspace = workspace, .bind = bind_grad}, {0}};

/* As below, but dx cannot overwrite dy, which has another type. */
static const cleat_op layer_norm_grad_f32 = {.name = "layer_norm_grad_f32",
                                             .cost = grad_cost,
                                             .variants = grad_variants,
                                             .define = define_grad,
                                             .inplace_inputs = CLEAT_IN(G_X) | CLEAT_IN(GRAD_IN)};

/* Reads the f32 gradient that a cast has only rounded. */
static bool fuse_producer(cleat_node *node, const cleat_node *producer, bool wide) {
    (void)wide;
    if (producer->op != &cleat_cast_grad_op || cleat_accum(producer, 1, 0) || producer->in[0]->dtype != CLEAT_F32 ||
        node->in[G_DY] != producer->out[0])
        return false;
    node->op = &layer_norm_grad_f32;
    node->in[G_DY] = producer->in[0];
    return true;
}

/* dx may overwrite dy, x, or its accum. */
static const cleat_op layer_norm_grad = {.name = "layer_norm_grad",
                                         .cost = grad_cost,
                                         .variants = grad_variants,
                                         .define = define_grad,
                                         .inplace_inputs = CLEAT_IN(G_DY) | CLEAT_IN(G_X) | CLEAT_IN(GRAD_IN),
                                         .fusion = &(const cleat_fusion){.producer = fuse_producer}};

static const cleat_op rms_norm_grad = {.name = "rms_norm_grad",
                                       .cost = grad_cost,
                                       .variants = grad_variants,
                                       .define = define_grad,
                                       .inplace_inputs = CLEAT_IN(G_DY) | CLEAT_IN(G_X) | CLEAT_IN(GRAD_IN)};

static void backward(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    if (!dout[Y]) return;
    cleat_tensor *in[GRAD_IN] = {[G_DY] = dout[Y],
                                 [G_X] = node->in[X],
                                 [G_MEAN] = node->out[MEAN],
                                 [G_RSTD] = node->out[RSTD],
                                 [G_GAMMA] = node->in[GAMMA]};
    cleat_emit_grads_of(graph, node, node->out[MEAN] ? &layer_norm_grad : &rms_norm_grad, in, GRAD_IN, node->in,
                        TARGETS);
}

static const cleat_attribute attributes[] = {CLEAT_ATTRIBUTE(layer_norm_attr, eps, CLEAT_ATTRIBUTE_F32),
                                             {.name = NULL}};

static bool is_cheap(const cleat_node *node) {
    (void)node;
    return true;
}

/* With an f32 result, which cannot overwrite x. */
static const cleat_op layer_norm_f32 = {.name = "layer_norm_f32",
                                        .flops = 30,
                                        .variants = variants,
                                        .define = define,
                                        .attributes = attributes,
                                        .cheap = is_cheap};

static bool fuse_cast(cleat_node *node, const cleat_node *consumer, bool sole_consumer) {
    if (consumer->op != &cleat_cast_op || !sole_consumer || consumer->out[0]->dtype != CLEAT_F32) return false;
    node->op = &layer_norm_f32;
    node->out[Y] = consumer->out[0];
    return true;
}

static const cleat_op layer_norm = {.name = "layer_norm",
                                    .optional_inputs = CLEAT_IN(BETA),
                                    .infer = infer,
                                    .backward = backward,
                                    .flops = 30,
                                    .variants = variants,
                                    .define = define,
                                    .inplace_inputs = CLEAT_IN(X),
                                    .autocast_inputs = CLEAT_IN(X),
                                    .attributes = attributes,
                                    .cheap = is_cheap,
                                    .fusion = &(const cleat_fusion){.consumer = fuse_cast}};

cleat_tensor *cleat_layer_norm(cleat_graph *graph, cleat_tensor *x, cleat_tensor *gamma, cleat_tensor *beta,
                               float eps) {
    cleat_tensor *in[FORWARD_IN] = {[X] = x, [GAMMA] = gamma, [BETA] = beta};
    layer_norm_attr attr = {.eps = eps};
    return cleat_first_output(cleat_emit(graph, &layer_norm, &attr, sizeof attr, in, FORWARD_IN));
}

static const cleat_op rms_norm = {.name = "rms_norm",
                                  .infer = infer,
                                  .backward = backward,
                                  .flops = 20,
                                  .variants = variants,
                                  .define = define,
                                  .inplace_inputs = CLEAT_IN(X),
                                  .optional_inputs = CLEAT_IN(BETA),
                                  .autocast_inputs = CLEAT_IN(X),
                                  .attributes = attributes,
                                  .cheap = is_cheap};

cleat_tensor *cleat_rms_norm(cleat_graph *graph, cleat_tensor *x, cleat_tensor *gamma, float eps) {
    cleat_tensor *in[FORWARD_IN] = {[X] = x, [GAMMA] = gamma};
    layer_norm_attr attr = {.eps = eps, .rms = 1};
    return cleat_first_output(cleat_emit(graph, &rms_norm, &attr, sizeof attr, in, FORWARD_IN));
}
