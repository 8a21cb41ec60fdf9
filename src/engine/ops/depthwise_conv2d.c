/* Depthwise convolution: each channel of an image is convolved separately. */
#include "cleat/ops.h"
#include "lib/shared_numbers.clh"
#include "ops/lib/count.h"
#include "ops/lib/define.h"
#include "ops/lib/rows.h"
#include "ops/lib/shared.h"

enum { MAX_KERNEL = 15, MAX_CHANNELS = 1 << 22 };
/* Number of pixels per CPU work-item, for which weights are read once (pass) or a partial sum is written once
 * (part). GPUs have many short work-items instead. */
enum { PIXELS_A_PASS = 32, PIXELS_A_PART = 128, GPU_STRIP = 8, CARD_ITEMS_PER_UNIT = 1024 };

/* in = {x, weight, bias} */
enum { X, WEIGHT, BIAS, FORWARD_IN };
/* in = {dy, x, weight, accums}, out = {dx, dweight, dbias} */
enum { DY, GRAD_X, GRAD_WEIGHT, GRAD_IN };
enum { DX, DWEIGHT, DBIAS };

static cleat_status infer(cleat_node *node, cleat_error *error) {
    const cleat_tensor *x = node->in[X], *weight = node->in[WEIGHT];
    if (!cleat_is_storage(x->dtype) || x->rank != 4 || cleat_rows(x) > CLEAT_MAX_ROWS || x->shape[3] > MAX_CHANNELS ||
        x->shape[3] > CLEAT_MAX_ROWS / x->shape[2])
        return cleat_infer_fail(node, error,
                                "x is %s, it must be f32, f16 or bf16 [B, H, W, C] of at most 2^30 pixels, 2^22 "
                                "channels, and 2^30 elements per image row",
                                CLEAT_DESCRIBED(x));
    if (weight->dtype != x->dtype || weight->rank != 3 || weight->shape[0] % 2 == 0 || weight->shape[1] % 2 == 0 ||
        weight->shape[0] > MAX_KERNEL || weight->shape[1] > MAX_KERNEL || weight->shape[2] != x->shape[3])
        return cleat_infer_fail(node, error, "weight is %s, it must be %s [R, S, %lld], R and S odd and at most %d",
                                CLEAT_DESCRIBED(weight), cleat_dtype_name(x->dtype), (long long)x->shape[3],
                                MAX_KERNEL);
    cleat_status status = CLEAT_OK;
    if (node->in[BIAS]) status = cleat_expect(node, BIAS, "bias", CLEAT_F32, 1, &x->shape[3], error);
    return status ? status : cleat_set_output(node, 0, x->dtype, 4, x->shape, error);
}

static double flops(const cleat_tensor *x, const cleat_tensor *weight) {
    return 2.0 * (double)(weight->shape[0] * weight->shape[1]) * (double)cleat_tensor_elements(x);
}

static cleat_cost cost(const cleat_node *node) {
    cleat_cost cost = cleat_elementwise_cost(node, 0);
    cost.flops = flops(node->in[X], node->in[WEIGHT]);
    return cost;
}

/* Number of image rows in the whole batch. */
static int64_t lines(const cleat_tensor *x) {
    return x->shape[0] * x->shape[1];
}

static void begin(cleat_binder *binder, const cleat_node *node, const char *kernel, const cleat_tensor *weight,
                  cleat_dtype storage) {
    cleat_launch_vector_kernel(binder, node, "depthwise_conv2d.cl", kernel, storage, weight->shape[2]);
    CLEAT_LAUNCH_DEFINES(binder, {"R", weight->shape[0]}, {"S", weight->shape[1]},
                         {"WHOLE", weight->shape[2] % binder->facts->vector_width == 0});
}

static void launch_extents(cleat_binder *binder, const cleat_tensor *x) {
    CLEAT_LAUNCH_I32(binder, {"rows", lines(x)}, {"H", x->shape[1]}, {"W", x->shape[2]}, {"C", x->shape[3]});
}

/* y = accum + bias + x * weight. For the gradient, x is dy, y is dx, and the kernel is rotated by 180
 * degrees. */
static void launch_apply(cleat_binder *binder, const cleat_node *node, const cleat_tensor *x,
                         const cleat_tensor *weight, const cleat_tensor *bias, const cleat_tensor *accum,
                         const cleat_tensor *y, bool turned) {
    bool gpu = binder->facts->work_group > 1;
    int64_t width = x->shape[2], strip = gpu ? min(GPU_STRIP, width) : width;
    int64_t deep = gpu ? 1 : min(ceil_div(PIXELS_A_PASS, width), lines(x));
    begin(binder, node, "depthwise_conv2d_apply", weight, x->dtype);
    CLEAT_LAUNCH_TENSORS(binder, x, weight, bias, accum, y);
    launch_extents(binder, x);
    CLEAT_LAUNCH_I32(binder, {"deep", deep}, {"strip", strip}, {"turned", turned});
    cleat_launch_runs(binder, ceil_div(lines(x), deep) * ceil_div(width, strip), x->shape[3]);
}

static void bind(const cleat_node *node, cleat_binder *binder) {
    launch_apply(binder, node, node->in[X], node->in[WEIGHT], node->in[BIAS], NULL, node->out[0], false);
}

/* sum over the window of from[b, h + r, w + s, c] weight[r, s, c], where r and s count from the middle. `turned`: of
 * from[b, h - r, w - s, c]. `element` is one of a tensor [B, H, W, C] like x. */
static void define_window(const cleat_tensor *x, const cleat_tensor *weight, const float *from, const float *taps,
                          bool turned, int64_t element, cleat_expected_value *sum) {
    const int64_t channels = x->shape[3], pixel = element / channels, column = pixel % x->shape[2];
    const int64_t line = pixel / x->shape[2], row = line % x->shape[1], rows = weight->shape[0],
                  columns = weight->shape[1];
    for (int64_t i = 0; i < rows * columns; ++i) {
        const int64_t r = i / columns - rows / 2, s = i % columns - columns / 2;
        const int64_t down = turned ? -r : r, right = turned ? -s : s;
        if (row + down < 0 || row + down >= x->shape[1] || column + right < 0 || column + right >= x->shape[2])
            continue;
        cleat_define_add(sum, (double)from[element + (down * x->shape[2] + right) * channels] *
                                  (double)taps[i * channels + element % channels]);
    }
}

static cleat_expected_value define(const cleat_node *node, cleat_host_values *values, int64_t element) {
    cleat_expected_value sum = cleat_define_begin(values, BIAS, element % cleat_width(node->in[X]));
    define_window(node->in[X], node->in[WEIGHT], values->in[X].f, values->in[WEIGHT].f, false, element, &sum);
    return sum;
}

/* --- gradients --------------------------------------------------------------------------------------------------- */

static cleat_cost cost_grad(const cleat_node *node) {
    bool parameters = node->out[DWEIGHT] || node->out[DBIAS];
    cleat_cost cost = cleat_elementwise_cost(
        &(cleat_node){.n_in = 1, .in = {node->in[DY]}, .n_out = 1, .out = {node->in[GRAD_X]}}, 0);
    cost.bytes *= (node->out[DX] != NULL) + parameters;
    cost.flops = flops(node->in[GRAD_X], node->in[GRAD_WEIGHT]) * ((node->out[DX] != NULL) + parameters);
    return cost;
}

/* Number of image rows per partial sum of the weight's gradient. */
static int64_t part_lines(const cleat_tensor *x, const cleat_device_facts *facts) {
    if (facts->work_group == 1) return min(ceil_div(PIXELS_A_PART, x->shape[2]), lines(x));
    int64_t units = units_of(facts);
    int64_t parts = ceil_div(units * CARD_ITEMS_PER_UNIT, ceil_div(x->shape[3], facts->vector_width));
    return ceil_div(lines(x), min(parts, lines(x)));
}

static int64_t part_count(const cleat_tensor *x, const cleat_device_facts *facts) {
    return ceil_div(lines(x), part_lines(x, facts));
}

/* Elements per part: gradients of weight and bias. */
static int64_t part_elements(const cleat_node *node) {
    const cleat_tensor *weight = node->in[GRAD_WEIGHT];
    return (weight->shape[0] * weight->shape[1] + 1) * weight->shape[2];
}

static int64_t workspace(const cleat_node *node, const cleat_device_facts *facts) {
    if (!node->out[DWEIGHT] && !node->out[DBIAS]) return 0;
    return part_count(node->in[GRAD_X], facts) * part_elements(node) * (int64_t)sizeof(float);
}

static void launch_parts(cleat_binder *binder, const cleat_node *node, const cleat_device_facts *facts) {
    const cleat_tensor *x = node->in[GRAD_X];
    begin(binder, node, "depthwise_conv2d_weight_parts", node->in[GRAD_WEIGHT], x->dtype);
    CLEAT_LAUNCH_TENSORS(binder, node->in[DY], x);
    cleat_launch_workspace(binder, 0, sizeof(float));
    launch_extents(binder, x);
    cleat_launch_i32(binder, "deep", (int32_t)part_lines(x, facts));
    cleat_launch_runs(binder, part_count(x, facts), x->shape[3]);
}

/* Sums the parts of output i, which starts at element `at` of every part. */
static void launch_total(cleat_binder *binder, const cleat_node *node, const cleat_device_facts *facts, int i,
                         int64_t at) {
    const cleat_tensor *out = node->out[i];
    int64_t n = cleat_tensor_elements(out), columns = TOTAL_COLUMNS;
    if (facts->work_group < TOTAL_COLUMNS) columns = facts->work_group == 1 ? facts->vector_width : facts->work_group;
    begin(binder, node, "depthwise_conv2d_weight_total", node->in[GRAD_WEIGHT], out->dtype);
    cleat_launch_workspace(binder, at * (int64_t)sizeof(float), sizeof(float));
    CLEAT_LAUNCH_TENSORS(binder, cleat_accum(node, GRAD_IN, i), out);
    CLEAT_LAUNCH_I32(binder, {"parts", part_count(node->in[GRAD_X], facts)}, {"apart", part_elements(node)}, {"n", n});
    cleat_launch_groups(binder, ceil_div(n, columns));
}

static void bind_grad(const cleat_node *node, cleat_binder *binder) {
    const cleat_tensor *weight = node->in[GRAD_WEIGHT];
    if (node->out[DX])
        launch_apply(binder, node, node->in[DY], weight, NULL, cleat_accum(node, GRAD_IN, DX), node->out[DX], true);
    if (node->out[DWEIGHT] || node->out[DBIAS]) launch_parts(binder, node, binder->facts);
    if (node->out[DWEIGHT]) launch_total(binder, node, binder->facts, DWEIGHT, 0);
    if (node->out[DBIAS]) launch_total(binder, node, binder->facts, DBIAS, cleat_tensor_elements(weight));
}

/* dweight[r, s, c]: a sum over all pixels. */
static void define_dweight(const cleat_node *node, cleat_host_values *values, int64_t element,
                           cleat_expected_value *sum) {
    const cleat_tensor *x = node->in[GRAD_X], *weight = node->in[GRAD_WEIGHT];
    const int64_t channels = x->shape[3], c = element % channels, tap = element / channels,
                  down = tap / weight->shape[1] - weight->shape[0] / 2,
                  right = tap % weight->shape[1] - weight->shape[1] / 2;
    for (int64_t line = 0; line < lines(x); ++line) {
        const int64_t row = line % x->shape[1] + down;
        if (row < 0 || row >= x->shape[1]) continue;
        for (int64_t w = 0; w < x->shape[2]; ++w) {
            const int64_t at = (line * x->shape[2] + w) * channels + c;
            if (w + right < 0 || w + right >= x->shape[2]) continue;
            cleat_define_add(sum, cleat_host_value(values, DY, at) *
                                      cleat_host_value(values, GRAD_X, at + (down * x->shape[2] + right) * channels));
        }
    }
    values->work += (double)cleat_rows(x);
}

static cleat_expected_value define_grad(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const cleat_tensor *x = node->in[GRAD_X];
    cleat_expected_value sum = cleat_define_begin(values, GRAD_IN + values->output, element);
    if (values->output == DX)
        define_window(x, node->in[GRAD_WEIGHT], values->in[DY].f, values->in[GRAD_WEIGHT].f, true, element, &sum);
    else if (values->output == DWEIGHT)
        define_dweight(node, values, element, &sum);
    for (int64_t i = element; values->output == DBIAS && i < cleat_tensor_elements(x); i += x->shape[3])
        cleat_define_add(&sum, cleat_host_value(values, DY, i));
    values->work += values->output == DBIAS ? (double)cleat_rows(x) : 0;
    return sum;
}

static const cleat_variant variants[] = {{.name = "runs", .bind = bind}, {0}};
static const cleat_variant grad_variants[] = {{.name = "runs", .workspace = workspace, .bind = bind_grad}, {0}};

/* dx may overwrite its accum. */
static const cleat_op depthwise_conv2d_grad = {.name = "depthwise_conv2d_grad",
                                               .cost = cost_grad,
                                               .variants = grad_variants,
                                               .define = define_grad,
                                               .inplace_inputs = CLEAT_IN(GRAD_IN)};

static void backward(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    cleat_tensor *in[GRAD_IN] = {[DY] = dout[0], [GRAD_X] = node->in[X], [GRAD_WEIGHT] = node->in[WEIGHT]};
    cleat_emit_grads_of(graph, node, &depthwise_conv2d_grad, in, GRAD_IN, node->in, FORWARD_IN);
}

static const cleat_op depthwise_conv2d = {.name = "depthwise_conv2d",
                                          .optional_inputs = CLEAT_IN(BIAS),
                                          .infer = infer,
                                          .backward = backward,
                                          .cost = cost,
                                          .variants = variants,
                                          .define = define,
                                          .autocast_inputs = CLEAT_IN(X) | CLEAT_IN(WEIGHT),
                                          .weight_inputs = CLEAT_IN(WEIGHT)};

cleat_tensor *cleat_depthwise_conv2d(cleat_graph *graph, cleat_tensor *x, cleat_tensor *weight, cleat_tensor *bias) {
    cleat_tensor *in[] = {[X] = x, [WEIGHT] = weight, [BIAS] = bias};
    return cleat_first_output(cleat_emit(graph, &depthwise_conv2d, NULL, 0, in, FORWARD_IN));
}
