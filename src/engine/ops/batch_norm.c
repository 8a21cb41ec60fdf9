/* Batch normalization, fused with an optional residual addition and ReLU. */
#include "cleat/ops.h"
#include "ops/lib/channels.h"
#include "ops/lib/define.h"
#include "ops/lib/rows.h"
#include "ops/lib/shared.h"

#include <math.h>

typedef struct batch_norm_attr {
    float eps;
    bool relu, statistics;
    bool gap[2];    /* false */
    float momentum; /* of batch_norm_following */
} batch_norm_attr;

/* in = {x, gamma, beta, samples, residual}, of which the last two may be NULL, out = {y, saved f32 [2, C]:
 * mean, biased variance; statistics f32 [2, C] if the attribute requests them} */
enum { X, GAMMA, BETA, SAMPLES, RESIDUAL, FORWARD_IN };
enum { Y, SAVED, STATISTICS };
/* in of batch_norm_inference: the mean replaces `samples`, the variance follows the other inputs. */
enum { RUNNING_MEAN = SAMPLES, RUNNING_VAR = FORWARD_IN, INFERENCE_IN };
/* in of batch_norm_following, after the other inputs, and out instead of the statistics: running averages. */
enum { AVERAGE_MEAN = FORWARD_IN, AVERAGE_VAR, FOLLOWING_IN };
enum { NEXT_MEAN = STATISTICS, NEXT_VAR, FOLLOWING_OUT };

static const batch_norm_attr *attr_of(const cleat_node *node) {
    return (const batch_norm_attr *)node->attr;
}

/* Rows per sample of x [B, ..., C]. */
static int64_t sample_rows(const cleat_tensor *x) {
    return x->rank > 1 ? cleat_rows(x) / x->shape[0] : 1;
}

/* Common part of infer for training and inference; sets y. */
static cleat_status infer_common(cleat_node *node, cleat_error *error) {
    const cleat_tensor *x = node->in[X];
    int64_t channels = cleat_width(x);
    float eps = attr_of(node)->eps;
    if (!cleat_is_storage(x->dtype) || x->rank < 2 || cleat_rows(x) > CLEAT_MAX_ROWS || channels > CLEAT_MAX_ROWS)
        return cleat_infer_fail(node, error,
                                "x is %s, it must be f32, f16 or bf16 [B, ..., C] with at most 2^30 rows and channels",
                                CLEAT_DESCRIBED(x));
    if (!(eps >= 0.0f && isfinite(eps)))
        return cleat_infer_fail(node, error, "eps is %g, it must be finite and not below 0", (double)eps);
    cleat_status status = cleat_expect(node, GAMMA, "gamma", CLEAT_F32, 1, &channels, error);
    if (!status) status = cleat_expect(node, BETA, "beta", CLEAT_F32, 1, &channels, error);
    if (!status && node->in[RESIDUAL])
        status = cleat_expect(node, RESIDUAL, "residual", x->dtype, x->rank, x->shape, error);
    return status ? status : cleat_set_output(node, Y, x->dtype, x->rank, x->shape, error);
}

static cleat_status infer(cleat_node *node, cleat_error *error) {
    cleat_status status = infer_common(node, error);
    const int64_t one = 1, both[] = {2, cleat_width(node->in[X])};
    if (!status && node->in[SAMPLES]) status = cleat_expect(node, SAMPLES, "samples", CLEAT_I32, 1, &one, error);
    if (!status) status = cleat_set_output(node, SAVED, CLEAT_F32, 2, both, error);
    if (!status && attr_of(node)->statistics) status = cleat_set_output(node, STATISTICS, CLEAT_F32, 2, both, error);
    return status;
}

/* x is read twice: for the statistics and for the normalization. */
static cleat_cost cost(const cleat_node *node) {
    cleat_cost cost = cleat_elementwise_cost(node, 10);
    cost.bytes += (double)cleat_tensor_bytes(node->in[X]);
    return cost;
}

/* f32 [parts, 2, C] */
static int64_t partial_bytes(const cleat_tensor *x, const cleat_device_facts *facts) {
    cleat_channels cut = cleat_channels_long_of(x, facts);
    return cleat_channels_joined_parts(&cut, facts) * 2 * cut.channels * (int64_t)sizeof(float);
}

static int64_t workspace(const cleat_node *node, const cleat_device_facts *facts) {
    return partial_bytes(node->in[X], facts);
}

static void launch(cleat_binder *binder, const cleat_node *node, const char *kernel, const cleat_channels *cut) {
    cleat_launch_channel_kernel(binder, node, "batch_norm.cl", kernel, node->in[X]->dtype, cut);
}

static void rows_and_channels(cleat_binder *binder, const cleat_node *node, const cleat_channels *cut) {
    CLEAT_LAUNCH_I32(binder, {"rows", cut->rows}, {"sample_rows", sample_rows(node->in[X])},
                     {"channels", cut->channels}, {"chunks", cut->chunks});
}

/* The target of a kernel's moments: the running averages, which follow them, or the statistics, unchanged. */
static void launch_averages(cleat_binder *binder, const cleat_node *node) {
    const bool follows = node->n_in == FOLLOWING_IN;
    cleat_launch_tensor(binder, node->out[STATISTICS]);
    if (follows)
        cleat_launch_tensor(binder, node->out[NEXT_VAR]);
    else
        cleat_launch_tensor_at(binder, node->out[STATISTICS], cleat_width(node->in[X]));
    cleat_launch_f32(binder, "momentum", follows ? attr_of(node)->momentum : -1.0f);
}

static void bind_statistics(const cleat_node *node, const cleat_channels *cut, cleat_binder *binder) {
    const int64_t parts = cleat_channels_joined_parts(cut, binder->facts);
    const bool one_launch = cleat_has_counters(binder->facts, cut->chunks);
    launch(binder, node, "batch_norm_part", cut);
    CLEAT_LAUNCH_TENSORS(binder, node->in[X], node->in[SAMPLES]);
    cleat_launch_workspace(binder, 0, sizeof(float));
    rows_and_channels(binder, node, cut);
    cleat_launch_tensor(binder, node->out[SAVED]);
    launch_averages(binder, node);
    cleat_launch_counters(binder, one_launch);
    cleat_launch_channel_groups(binder, cut, parts);
    if (one_launch) return;
    launch(binder, node, "batch_norm_join", cut);
    cleat_launch_workspace(binder, 0, sizeof(float));
    CLEAT_LAUNCH_TENSORS(binder, node->in[SAMPLES], node->out[SAVED]);
    launch_averages(binder, node);
    rows_and_channels(binder, node, cut);
    cleat_launch_i32(binder, "parts", (int32_t)parts);
    cleat_launch_channel_groups(binder, cut, 1);
}

/* The variance of channel c is element `at` + c of `var`. */
static void bind_apply(const cleat_node *node, const cleat_channels *cut, const cleat_tensor *mean,
                       const cleat_tensor *var, int64_t at, cleat_binder *binder) {
    launch(binder, node, "batch_norm_apply", cut);
    CLEAT_LAUNCH_TENSORS(binder, node->in[X], mean);
    cleat_launch_tensor_at(binder, var, at);
    CLEAT_LAUNCH_TENSORS(binder, node->in[GAMMA], node->in[BETA], node->in[RESIDUAL], node->out[Y]);
    CLEAT_LAUNCH_I32(binder, {"rows", cut->rows}, {"channels", cut->channels}, {"chunks", cut->chunks},
                     {"relu", attr_of(node)->relu}, {"stream", cleat_channels_stream(node->out[Y], binder->facts)});
    cleat_launch_f32(binder, "eps", attr_of(node)->eps);
    cleat_launch_channel_groups(binder, cut, cleat_channels_free_parts(cut, binder->facts));
}

static void bind(const cleat_node *node, cleat_binder *binder) {
    cleat_channels cut = cleat_channels_long_of(node->in[X], binder->facts);
    bind_statistics(node, &cut, binder);
    bind_apply(node, &cut, node->out[SAVED], node->out[SAVED], cut.channels, binder);
}

/* Rows of x [B, ..., C] that belong to samples. */
static int64_t counted_rows(const cleat_tensor *x, const cleat_host_values *values, int samples) {
    return cleat_define_length(values, samples, 0, x->shape[0]) * (cleat_rows(x) / x->shape[0]);
}

typedef struct moments {
    double mean, squares; /* squares: of the deviations, added up */
} moments;

static moments moments_of(cleat_host_values *values, int64_t c, int64_t channels, int64_t rows) {
    moments of = {0};
    const float *x = values->in[X].f + c;
    for (int64_t i = 0; i < rows; ++i) of.mean += (double)x[i * channels];
    of.mean /= rows > 0 ? (double)rows : 1;
    for (int64_t i = 0; i < rows; ++i) {
        const double apart = (double)x[i * channels] - of.mean;
        of.squares += apart * apart;
    }
    values->work += 2 * (double)rows;
    return of;
}

/* A mean that is off by a rounding, of values far from 0, shifts all of them. */
static cleat_expected_value define_moment(const moments *of, bool variance, double count) {
    const double value = of->squares / fmax(count, 1);
    if (variance) return (cleat_expected_value){.value = value, .size = value + fabs(of->mean) * sqrt(value)};
    return (cleat_expected_value){.value = of->mean, .size = fabs(of->mean) + sqrt(value)};
}

static cleat_expected_value define_normalized(const cleat_node *node, cleat_host_values *values, const moments *of,
                                              int64_t rows, int64_t element) {
    const int64_t c = element % cleat_width(node->in[X]);
    const double variance = of->squares / fmax((double)rows, 1), beta = cleat_host_value(values, BETA, c),
                 residual = cleat_host_value(values, RESIDUAL, element), x = cleat_host_value(values, X, element);
    const double scale = cleat_host_value(values, GAMMA, c) / sqrt(variance + (double)attr_of(node)->eps);
    const double value = (x - of->mean) * scale + beta + residual;
    return (cleat_expected_value){.value = attr_of(node)->relu ? fmax(value, 0) : value,
                                  .size = 2 * (fabs(x) + fabs(of->mean)) * fabs(scale) + fabs(beta) + fabs(residual)};
}

static cleat_expected_value define_output(const cleat_node *node, cleat_host_values *values, int output,
                                          int64_t element) {
    const cleat_tensor *x = node->in[X];
    const int64_t channels = cleat_width(x), rows = counted_rows(x, values, SAMPLES);
    const moments of = moments_of(values, element % channels, channels, rows);
    if (output == Y) return define_normalized(node, values, &of, rows, element);
    return define_moment(&of, element >= channels, (double)(output == STATISTICS ? rows - 1 : rows));
}

static cleat_expected_value define(const cleat_node *node, cleat_host_values *values, int64_t element) {
    return define_output(node, values, values->output, element);
}

static const cleat_variant variants[] = {{.name = "parts", .workspace = workspace, .bind = bind}, {0}};

/* --- gradient: in = {dy, x, y, saved, gamma, beta, samples, accums}, targets x, residual, gamma, beta ---------- */

/* y is present if relu follows a residual. Without a residual, the elements that relu passed are recomputed
 * from x, gamma and beta; beta is absent if neither is needed. */
enum { G_DY, G_X, G_Y, G_SAVED, G_GAMMA, G_BETA, G_SAMPLES, GRAD_IN };
enum { DX, DRESIDUAL, DGAMMA, DBETA, TARGETS };

/* If the residual's gradient is d itself, the second pass reads it instead of dy and y. */
static bool reads_dresidual(const cleat_node *node) {
    return node->out[DRESIDUAL] && !cleat_accum(node, GRAD_IN, DRESIDUAL);
}

static cleat_cost cost_grad(const cleat_node *node) {
    int masked = node->in[G_Y] != NULL, tensors = 2 + masked;
    if (node->out[DRESIDUAL]) tensors += 1 + (cleat_accum(node, GRAD_IN, DRESIDUAL) != NULL);
    if (node->out[DX]) tensors += 3 + (masked && !reads_dresidual(node)) + (cleat_accum(node, GRAD_IN, DX) != NULL);
    return (cleat_cost){.flops = 15.0 * (double)cleat_tensor_elements(node->in[G_X]),
                        .bytes = (double)cleat_tensor_bytes(node->in[G_X]) * tensors};
}

/* The partial sums, then the total sums [2, C]. */
static int64_t workspace_grad(const cleat_node *node, const cleat_device_facts *facts) {
    return partial_bytes(node->in[G_X], facts) + 2 * cleat_width(node->in[G_X]) * (int64_t)sizeof(float);
}

static void bind_totals(const cleat_node *node, cleat_binder *binder) {
    cleat_launch_workspace(binder, partial_bytes(node->in[G_X], binder->facts), sizeof(float));
    for (int i = DGAMMA; i <= DBETA; ++i) {
        CLEAT_LAUNCH_TENSORS(binder, cleat_accum(node, GRAD_IN, i), node->out[i]);
    }
}

static void bind_sums(const cleat_node *node, const cleat_channels *cut, cleat_binder *binder) {
    const int64_t parts = cleat_channels_joined_parts(cut, binder->facts);
    const bool one_launch = cleat_has_counters(binder->facts, cut->chunks);
    launch(binder, node, "batch_norm_sum_part", cut);
    for (int i = G_DY; i <= G_SAMPLES; ++i) cleat_launch_tensor(binder, node->in[i]);
    CLEAT_LAUNCH_TENSORS(binder, cleat_accum(node, GRAD_IN, DRESIDUAL), node->out[DRESIDUAL]);
    cleat_launch_workspace(binder, 0, sizeof(float));
    rows_and_channels(binder, node, cut);
    cleat_launch_i32(binder, "stream", cleat_channels_stream(node->in[G_X], binder->facts));
    cleat_launch_f32(binder, "eps", attr_of(node)->eps);
    bind_totals(node, binder);
    cleat_launch_counters(binder, one_launch);
    cleat_launch_channel_groups(binder, cut, parts);
    if (one_launch) return;
    launch(binder, node, "batch_norm_sum_join", cut);
    cleat_launch_workspace(binder, 0, sizeof(float));
    CLEAT_LAUNCH_I32(binder, {"channels", cut->channels}, {"chunks", cut->chunks}, {"parts", parts});
    bind_totals(node, binder);
    cleat_launch_channel_groups(binder, cut, 1);
}

static void bind_dx(const cleat_node *node, const cleat_channels *cut, cleat_binder *binder) {
    bool masked = reads_dresidual(node);
    launch(binder, node, "batch_norm_grad_apply", cut);
    CLEAT_LAUNCH_TENSORS(binder, masked ? node->out[DRESIDUAL] : node->in[G_DY], node->in[G_X],
                         masked ? NULL : node->in[G_Y]);
    for (int i = G_SAVED; i <= G_BETA; ++i) cleat_launch_tensor(binder, node->in[i]);
    cleat_launch_workspace(binder, partial_bytes(node->in[G_X], binder->facts), sizeof(float));
    CLEAT_LAUNCH_TENSORS(binder, node->in[G_SAMPLES], cleat_accum(node, GRAD_IN, DX), node->out[DX]);
    rows_and_channels(binder, node, cut);
    cleat_launch_i32(binder, "stream", cleat_channels_stream(node->in[G_X], binder->facts));
    cleat_launch_f32(binder, "eps", attr_of(node)->eps);
    cleat_launch_channel_groups(binder, cut, cleat_channels_free_parts(cut, binder->facts));
}

static void bind_grad(const cleat_node *node, cleat_binder *binder) {
    cleat_channels cut = cleat_channels_long_of(node->in[G_X], binder->facts);
    bind_sums(node, &cut, binder);
    if (node->out[DX]) bind_dx(node, &cut, binder);
}

/* Whether relu cuts off a result this close to 0 depends on rounding. */
static const double near = 0x1p-20, uncertain = 0x1p20;

typedef struct channel {
    double mean, rstd, scale, beta;
    bool relu; /* the elements that pass are recomputed */
} channel;

static channel channel_of(const cleat_node *node, const cleat_host_values *values, int64_t c, int64_t channels) {
    channel of = {.mean = cleat_host_value(values, G_SAVED, c), .relu = node->in[G_BETA] != NULL};
    of.rstd = 1 / sqrt(cleat_host_value(values, G_SAVED, channels + c) + (double)attr_of(node)->eps);
    of.scale = cleat_host_value(values, G_GAMMA, c) * of.rstd;
    of.beta = cleat_host_value(values, G_BETA, c);
    return of;
}

/* d: dy at element i if relu passes it, else 0. */
static cleat_expected_value passed(const cleat_host_values *values, const channel *of, int64_t i) {
    const double dy = (double)values->in[G_DY].f[i];
    const cleat_expected_value all = {.value = dy, .size = fabs(dy)};
    if (values->in[G_Y].f) return values->in[G_Y].f[i] <= 0 ? (cleat_expected_value){.value = 0} : all;
    if (!of->relu) return all;
    const double moved = ((double)values->in[G_X].f[i] - of->mean) * of->scale, y = moved + of->beta;
    const double size = fabs(y) < near * (fabs(moved) + fabs(of->beta)) ? uncertain * fabs(dy) : 0;
    return y <= 0 ? (cleat_expected_value){.size = size} : (cleat_expected_value){.value = dy, .size = fabs(dy) + size};
}

/* Sums over the rows: of d, and of d xhat. */
static void sums_of(cleat_host_values *values, const channel *of, int64_t c, int64_t channels, int64_t rows,
                    cleat_expected_value *sum, cleat_expected_value *product) {
    *sum = *product = (cleat_expected_value){.value = 0};
    for (int64_t i = c; i < rows * channels; i += channels) {
        const cleat_expected_value d = passed(values, of, i);
        const double xhat = ((double)values->in[G_X].f[i] - of->mean) * of->rstd;
        sum->value += d.value;
        sum->size += d.size;
        product->value += d.value * xhat;
        product->size += d.size * fabs(xhat);
    }
    values->work += 3 * (double)rows;
}

/* dx[i] without its accumulator */
static cleat_expected_value define_dx(cleat_host_values *values, const channel *of, int64_t i, int64_t channels,
                                      int64_t rows) {
    cleat_expected_value sum, product;
    sums_of(values, of, i % channels, channels, rows, &sum, &product);
    const cleat_expected_value d = passed(values, of, i);
    const double x = (double)values->in[G_X].f[i], xhat = (x - of->mean) * of->rstd, n = (double)rows;
    const double size = d.size + sum.size / n + (fabs(x) + fabs(of->mean)) * of->rstd * product.size / n;
    return (cleat_expected_value){.value = of->scale * (d.value - sum.value / n - xhat * product.value / n),
                                  .size = 2 * fabs(of->scale) * size,
                                  .rounded = fabs(of->scale * d.value)}; /* dresidual may take the place of d */
}

static cleat_expected_value plus(cleat_expected_value a, cleat_expected_value b) {
    return (cleat_expected_value){
        .value = a.value + b.value, .size = a.size + b.size, .rounded = a.rounded + b.rounded};
}

static cleat_expected_value define_grad(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const cleat_tensor *x = node->in[G_X];
    const int64_t channels = cleat_width(x), c = element % channels, rows = counted_rows(x, values, G_SAMPLES);
    const channel of = channel_of(node, values, c, channels);
    const cleat_expected_value accum = cleat_define_begin(values, GRAD_IN + values->output, element);
    cleat_expected_value sum, product;
    if (values->output == DX || values->output == DRESIDUAL) {
        if (element >= rows * channels) return accum;
        return plus(accum, values->output == DX ? define_dx(values, &of, element, channels, rows)
                                                : passed(values, &of, element));
    }
    sums_of(values, &of, c, channels, rows, &sum, &product);
    return plus(accum, values->output == DGAMMA ? product : sum);
}

static const cleat_variant grad_variants[] = {{.name = "parts", .workspace = workspace_grad, .bind = bind_grad}, {0}};

/* dx may overwrite dy, x, y, or its accum. */
static const cleat_op batch_norm_grad = {.name = "batch_norm_grad",
                                         .discontinuous = true,
                                         .cost = cost_grad,
                                         .variants = grad_variants,
                                         .define = define_grad,
                                         .inplace_inputs =
                                             CLEAT_IN(G_DY) | CLEAT_IN(G_X) | CLEAT_IN(G_Y) | CLEAT_IN(GRAD_IN)};

static void backward(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    cleat_tensor *dy = dout[Y], *residual = node->in[RESIDUAL];
    bool relu = attr_of(node)->relu;
    if (!dy) return;
    if (!relu && !node->in[SAMPLES]) { /* d equals dy */
        cleat_pass_grad(graph, residual, dy);
        residual = NULL;
    }
    cleat_tensor *in[GRAD_IN] = {[G_DY] = dy,
                                 [G_X] = node->in[X],
                                 [G_Y] = relu && node->in[RESIDUAL] ? node->out[Y] : NULL,
                                 [G_SAVED] = node->out[SAVED],
                                 [G_GAMMA] = node->in[GAMMA],
                                 [G_BETA] = relu && !node->in[RESIDUAL] ? node->in[BETA] : NULL,
                                 [G_SAMPLES] = node->in[SAMPLES]};
    cleat_tensor *targets[TARGETS] = {
        [DX] = node->in[X], [DRESIDUAL] = residual, [DGAMMA] = node->in[GAMMA], [DBETA] = node->in[BETA]};
    cleat_emit_grads_of(graph, node, &batch_norm_grad, in, GRAD_IN, targets, TARGETS);
}

static bool fuse_average(cleat_node *node, cleat_node *const *consumers, int count, bool wide);

static const cleat_op batch_norm = {.name = "batch_norm",
                                    .optional_inputs = CLEAT_IN(SAMPLES) | CLEAT_IN(RESIDUAL),
                                    .discontinuous = true,
                                    .infer = infer,
                                    .backward = backward,
                                    .cost = cost,
                                    .variants = variants,
                                    .define = define,
                                    .inplace_inputs = CLEAT_IN(X) | CLEAT_IN(RESIDUAL),
                                    .autocast_inputs = CLEAT_IN(X) | CLEAT_IN(RESIDUAL),
                                    .fusion = &(const cleat_fusion){.consumers = fuse_average, .output = STATISTICS}};

cleat_tensor *cleat_batch_norm(cleat_graph *graph, cleat_tensor *x, const cleat_batch_norm_spec *spec,
                               cleat_tensor **statistics) {
    if (statistics) *statistics = NULL;
    /* A node cannot compute two gradients of one tensor. */
    bool apart = x && spec->residual == x;
    if (apart && spec->samples) {
        cleat_graph_fail(graph, CLEAT_ERR_ARGUMENT,
                         "op 'batch_norm': x cannot be its own residual with batch statistics");
        return NULL;
    }
    cleat_tensor *in[] = {[X] = x,
                          [GAMMA] = spec->gamma,
                          [BETA] = spec->beta,
                          [SAMPLES] = spec->samples,
                          [RESIDUAL] = apart ? NULL : spec->residual};
    batch_norm_attr attr = {.eps = spec->eps, .relu = spec->relu && !apart, .statistics = statistics != NULL};
    cleat_node *node = cleat_emit(graph, &batch_norm, &attr, sizeof attr, in, FORWARD_IN);
    if (!node) return NULL;
    if (statistics) *statistics = node->out[STATISTICS];
    if (!apart) return node->out[Y];
    cleat_tensor *sum = cleat_add(graph, node->out[Y], x);
    return spec->relu ? cleat_relu(graph, sum) : sum;
}

/* --- inference ------------------------------------------------------------------------------------------------ */

static cleat_status infer_inference(cleat_node *node, cleat_error *error) {
    cleat_status status = infer_common(node, error);
    const int64_t channels = cleat_width(node->in[X]);
    if (!status) status = cleat_expect(node, RUNNING_MEAN, "running mean", CLEAT_F32, 1, &channels, error);
    if (!status) status = cleat_expect(node, RUNNING_VAR, "running variance", CLEAT_F32, 1, &channels, error);
    return status;
}

static void bind_inference(const cleat_node *node, cleat_binder *binder) {
    cleat_channels cut = cleat_channels_long_of(node->in[X], binder->facts);
    bind_apply(node, &cut, node->in[RUNNING_MEAN], node->in[RUNNING_VAR], 0, binder);
}

static cleat_expected_value define_inference(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const int64_t c = element % cleat_width(node->in[X]);
    const moments of = {.mean = cleat_host_value(values, RUNNING_MEAN, c),
                        .squares = cleat_host_value(values, RUNNING_VAR, c)};
    return define_normalized(node, values, &of, 1, element);
}

static const cleat_variant inference_variants[] = {{.name = "elements", .bind = bind_inference}, {0}};
static const cleat_attribute attributes[] = {CLEAT_ATTRIBUTE(batch_norm_attr, eps, CLEAT_ATTRIBUTE_F32),
                                             CLEAT_ATTRIBUTE(batch_norm_attr, relu, CLEAT_ATTRIBUTE_BOOL),
                                             {.name = NULL}};

static const cleat_op batch_norm_inference = {.name = "batch_norm_inference",
                                              .optional_inputs = CLEAT_IN(RESIDUAL),
                                              .discontinuous = true,
                                              .infer = infer_inference,
                                              .flops = 5,
                                              .variants = inference_variants,
                                              .define = define_inference,
                                              .inplace_inputs = CLEAT_IN(X) | CLEAT_IN(RESIDUAL),
                                              .autocast_inputs = CLEAT_IN(X) | CLEAT_IN(RESIDUAL),
                                              .attributes = attributes};

cleat_tensor *cleat_batch_norm_inference(cleat_graph *graph, cleat_tensor *x, const cleat_batch_norm_spec *spec,
                                         cleat_running_stats running) {
    cleat_tensor *in[] = {[X] = x,
                          [GAMMA] = spec->gamma,
                          [BETA] = spec->beta,
                          [RUNNING_MEAN] = running.mean,
                          [RESIDUAL] = spec->residual,
                          [RUNNING_VAR] = running.var};
    batch_norm_attr attr = {.eps = spec->eps, .relu = spec->relu};
    return cleat_first_output(cleat_emit(graph, &batch_norm_inference, &attr, sizeof attr, in, INFERENCE_IN));
}

/* --- running statistics --------------------------------------------------------------------------------------- */

typedef struct running_attr {
    float momentum;
} running_attr;

/* in = {statistics f32 [2, C], mean, variance f32 [C]}, out = {mean, variance} */
enum { F_STATISTICS, F_MEAN, F_VAR, FOLLOW_IN };
enum { MEAN, VAR };

static cleat_status infer_running(cleat_node *node, cleat_error *error) {
    cleat_tensor *statistics = node->in[F_STATISTICS];
    float momentum = ((const running_attr *)node->attr)->momentum;
    if (statistics->rank != 2 || statistics->shape[0] != 2 || statistics->dtype != CLEAT_F32 ||
        cleat_tensor_elements(statistics) > CLEAT_MAX_ROWS)
        return cleat_infer_fail(node, error, "statistics are %s, they must be f32 [2, C]", CLEAT_DESCRIBED(statistics));
    cleat_status status = cleat_expect(node, F_MEAN, "running mean", CLEAT_F32, 1, &statistics->shape[1], error);
    if (!status) status = cleat_expect(node, F_VAR, "running variance", CLEAT_F32, 1, &statistics->shape[1], error);
    if (status) return status;
    for (int i = F_MEAN; i <= F_VAR; ++i)
        if (!cleat_is_persistent(node->in[i]))
            return cleat_infer_fail(node, error, "running is '%s', it must be a persistent tensor (cleat_buffer)",
                                    node->in[i]->name);
    if (!(momentum >= 0.0f && momentum <= 1.0f))
        return cleat_infer_fail(node, error, "momentum %g is not in [0, 1]", (double)momentum);
    cleat_set_output_state(node, MEAN, node->in[F_MEAN]);
    cleat_set_output_state(node, VAR, node->in[F_VAR]);
    return CLEAT_OK;
}

static void bind_running(const cleat_node *node, cleat_binder *binder) {
    cleat_channels cut = cleat_channels_long_of(node->in[F_STATISTICS], binder->facts);
    int64_t channels = cleat_tensor_elements(node->out[MEAN]);
    cleat_launch_channel_kernel(binder, node, "batch_norm.cl", "batch_norm_follow", CLEAT_F32, &cut);
    CLEAT_LAUNCH_TENSORS(binder, node->in[F_STATISTICS], node->out[MEAN], node->out[VAR]);
    cleat_launch_f32(binder, "momentum", ((const running_attr *)node->attr)->momentum);
    cleat_launch_i32(binder, "channels", (int32_t)channels);
    cleat_launch_items(binder, 2 * channels);
}

static cleat_expected_value define_average(float momentum, double old, cleat_expected_value found) {
    const double share = (double)momentum;
    if (!isfinite(found.value)) return (cleat_expected_value){.value = old};
    return (cleat_expected_value){.value = (1 - share) * old + share * found.value, .size = fabs(old) + found.size};
}

static cleat_expected_value define_running(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const double old = cleat_host_value(values, values->output == MEAN ? F_MEAN : F_VAR, element),
                 found =
                     cleat_host_value(values, F_STATISTICS,
                                      element + (values->output == MEAN ? 0 : cleat_tensor_elements(node->out[MEAN])));
    return define_average(((const running_attr *)node->attr)->momentum, old,
                          (cleat_expected_value){.value = found, .size = fabs(found)});
}

static const cleat_variant running_variants[] = {{.name = "elements", .bind = bind_running}, {0}};
static const cleat_op batch_norm_update_running_stats = {.name = "batch_norm_update_running_stats",
                                                         .discontinuous = true,
                                                         .infer = infer_running,
                                                         .flops = 6, /* 3 per element of mean and of variance */
                                                         .variants = running_variants,
                                                         .define = define_running};

void cleat_batch_norm_update_running_stats(cleat_graph *graph, cleat_tensor *statistics, cleat_running_stats running,
                                           float momentum) {
    cleat_tensor *in[] = {[F_STATISTICS] = statistics, [F_MEAN] = running.mean, [F_VAR] = running.var};
    cleat_emit(graph, &batch_norm_update_running_stats, &(running_attr){momentum}, sizeof(running_attr), in, FOLLOW_IN);
}

/* --- running statistics in the kernels that have the moments ------------------------------------------------ */

static cleat_expected_value define_following(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const int64_t channels = cleat_width(node->in[X]);
    if (values->output < NEXT_MEAN) return define(node, values, element);
    const cleat_expected_value found =
        define_output(node, values, STATISTICS, element + (values->output == NEXT_VAR ? channels : 0));
    return define_average(attr_of(node)->momentum,
                          cleat_host_value(values, values->output == NEXT_MEAN ? AVERAGE_MEAN : AVERAGE_VAR, element),
                          found);
}

static const cleat_op batch_norm_following = {.name = "batch_norm_and_running_stats",
                                              .optional_inputs = CLEAT_IN(SAMPLES) | CLEAT_IN(RESIDUAL),
                                              .discontinuous = true,
                                              .cost = cost,
                                              .variants = variants,
                                              .define = define_following,
                                              .inplace_inputs = CLEAT_IN(X) | CLEAT_IN(RESIDUAL)};

/* The kernel that computes the moments writes the running averages. A recomputed pass has no averages. */
static bool fuse_average(cleat_node *node, cleat_node *const *consumers, int count, bool wide) {
    (void)wide;
    if (count != 1 || consumers[0]->op != &batch_norm_update_running_stats) return false;
    ((batch_norm_attr *)node->attr)->momentum = ((const running_attr *)consumers[0]->attr)->momentum;
    node->op = &batch_norm_following;
    node->in[AVERAGE_MEAN] = consumers[0]->in[F_MEAN];
    node->in[AVERAGE_VAR] = consumers[0]->in[F_VAR];
    node->n_in = FOLLOWING_IN;
    node->out[NEXT_MEAN] = consumers[0]->out[MEAN];
    node->out[NEXT_VAR] = consumers[0]->out[VAR];
    node->n_out = FOLLOWING_OUT;
    return true;
}
