/* Bilinear resizing of images. */
#include "cleat/ops.h"
#include "ops/lib/define.h"
#include "ops/lib/rows.h"
#include "ops/lib/shared.h"

#include <math.h>

enum { MAX_EXTENT = 16384 };

typedef struct resize_attr {
    int64_t height, width;
} resize_attr;

static bool has_size(int64_t height, int64_t width) {
    return height >= 1 && width >= 1 && height <= MAX_EXTENT && width <= MAX_EXTENT;
}

static cleat_status infer(cleat_node *node, cleat_error *error) {
    const resize_attr *attr = (const resize_attr *)node->attr;
    const cleat_tensor *x = node->in[0];
    if (!cleat_is_storage(x->dtype) || x->rank != 4 || !has_size(x->shape[1], x->shape[2]))
        return cleat_infer_fail(node, error, "x is %s, it must be f32, f16 or bf16 [B, H, W, C], H and W at most %d",
                                CLEAT_DESCRIBED(x), MAX_EXTENT);
    const int64_t shape[] = {x->shape[0], attr->height, attr->width, x->shape[3]};
    const int64_t wider = x->shape[2] > attr->width ? x->shape[2] : attr->width;
    if (cleat_rows(x) > CLEAT_MAX_ROWS || x->shape[0] > CLEAT_MAX_ROWS / (attr->height * attr->width) ||
        x->shape[3] > CLEAT_MAX_ROWS / wider)
        return cleat_infer_fail(node, error, "%s to %lld x %lld: at most 2^30 pixels, and 2^30 elements per image row",
                                CLEAT_DESCRIBED(x), (long long)attr->height, (long long)attr->width);
    return cleat_set_output(node, 0, x->dtype, 4, shape, error);
}

static void bind(const cleat_node *node, cleat_binder *binder) {
    const cleat_tensor *x = node->in[0], *y = node->out[0];
    cleat_launch_vector_kernel(binder, node, "resize.cl", "resize_forward", x->dtype, cleat_width(x));
    CLEAT_LAUNCH_TENSORS(binder, x, y);
    CLEAT_LAUNCH_I32(binder, {"rows", cleat_rows(y)}, {"H", x->shape[1]}, {"W", x->shape[2]}, {"P", y->shape[1]},
                     {"Q", y->shape[2]}, {"C", y->shape[3]});
    cleat_launch_runs(binder, cleat_rows(y), cleat_width(y));
}

/* The weight that row (or column) `p` of `out` gives to row `i` of `in`. */
static double weight_of(int64_t p, int64_t out, int64_t i, int64_t in) {
    const double at = fmax(((double)p + 0.5) * (double)in / (double)out - 0.5, 0), first = floor(at);
    const double next = fmin(first + 1, (double)(in - 1)), share = at - first, row = (double)i;
    return (first == row ? 1 - share : 0) + (next == row ? share : 0);
}

/* The rows [begin, end) of `in` that row p of `out` reads. */
static void sources_of(int64_t p, int64_t out, int64_t in, int64_t *begin, int64_t *end) {
    const double at = fmax(((double)p + 0.5) * (double)in / (double)out - 0.5, 0);
    *begin = (int64_t)floor(at);
    *end = *begin + 2 < in ? *begin + 2 : in;
}

static cleat_expected_value define(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const int64_t *x = node->in[0]->shape, *y = node->out[0]->shape;
    const int64_t c = element % y[3], q = element / y[3] % y[2], p = element / y[3] / y[2] % y[1],
                  b = element / y[3] / y[2] / y[1];
    int64_t top, bottom, left, right;
    cleat_expected_value sum = {.value = 0};
    sources_of(p, y[1], x[1], &top, &bottom);
    sources_of(q, y[2], x[2], &left, &right);
    for (int64_t h = top; h < bottom; ++h)
        for (int64_t w = left; w < right; ++w)
            cleat_define_add(&sum, weight_of(p, y[1], h, x[1]) * weight_of(q, y[2], w, x[2]) *
                                       cleat_host_value(values, 0, ((b * x[1] + h) * x[2] + w) * x[3] + c));
    return sum;
}

/* --- gradient: in = {dy [B, P, Q, C], accum}, out = {dx [B, H, W, C]}, by way of f32 [B, H, Q, C] --------------- */

enum { DY, GRAD_IN };

static int64_t workspace(const cleat_node *node, const cleat_device_facts *facts) {
    (void)facts;
    const cleat_tensor *dy = node->in[DY], *dx = node->out[0];
    return dx->shape[0] * dx->shape[1] * dy->shape[2] * dy->shape[3] * (int64_t)sizeof(float);
}

static cleat_cost cost_grad(const cleat_node *node) {
    const cleat_tensor *dy = node->in[DY];
    double half = (double)workspace(node, NULL), elements = (double)cleat_tensor_elements(dy);
    cleat_cost cost = cleat_elementwise_cost(node, 0);
    cost.flops = 4 * (elements + half / sizeof(float));
    cost.bytes += 2 * half;
    return cost;
}

/* Ends a launch that gathers, for each of `in` input rows of `width`, the `out` output rows that depend on
 * it. */
static void end_gather(cleat_binder *binder, int64_t outer, int64_t in, int64_t out, int64_t width) {
    CLEAT_LAUNCH_I32(binder, {"rows", outer * in}, {"in", in}, {"out", out}, {"width", width});
    cleat_launch_runs(binder, outer * in, width);
}

static void bind_grad(const cleat_node *node, cleat_binder *binder) {
    const cleat_tensor *dy = node->in[DY], *dx = node->out[0];
    const int64_t batch = dx->shape[0], height = dx->shape[1], channels = dx->shape[3];
    cleat_launch_vector_kernel(binder, node, "resize.cl", "resize_backward_rows", dx->dtype, channels);
    cleat_launch_tensor(binder, dy);
    cleat_launch_workspace(binder, 0, sizeof(float));
    end_gather(binder, batch, height, dy->shape[1], dy->shape[2] * channels);

    cleat_launch_vector_kernel(binder, node, "resize.cl", "resize_backward_columns", dx->dtype, channels);
    cleat_launch_workspace(binder, 0, sizeof(float));
    CLEAT_LAUNCH_TENSORS(binder, cleat_accum(node, GRAD_IN, 0), dx);
    end_gather(binder, batch * height, dx->shape[2], dy->shape[2], channels);
}

static cleat_expected_value define_grad(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const int64_t *x = node->out[0]->shape, *y = node->in[DY]->shape;
    const int64_t c = element % x[3], w = element / x[3] % x[2], h = element / x[3] / x[2] % x[1],
                  b = element / x[3] / x[2] / x[1];
    cleat_expected_value sum = cleat_define_begin(values, GRAD_IN + values->output, element);
    for (int64_t p = 0; p < y[1]; ++p) {
        const double weight = weight_of(p, y[1], h, x[1]);
        for (int64_t q = 0; weight > 0 && q < y[2]; ++q) {
            const double both = weight * weight_of(q, y[2], w, x[2]);
            if (both > 0)
                cleat_define_add(&sum, both * cleat_host_value(values, DY, ((b * y[1] + p) * y[2] + q) * y[3] + c));
        }
    }
    values->work += (double)(y[1] + 8 * y[2]);
    return sum;
}

static const cleat_variant variants[] = {{.name = "runs", .bind = bind}, {0}};
static const cleat_variant grad_variants[] = {{.name = "gather", .workspace = workspace, .bind = bind_grad}, {0}};

static const cleat_op resize_grad = {.name = "resize_grad",
                                     .cost = cost_grad,
                                     .variants = grad_variants,
                                     .define = define_grad,
                                     .inplace_inputs = CLEAT_IN(GRAD_IN)};

static void backward(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    cleat_emit_grads_of(graph, node, &resize_grad, &dout[0], GRAD_IN, &node->in[0], 1);
}

static const cleat_op resize = {.name = "resize",
                                .infer = infer,
                                .backward = backward,
                                .flops = 8,
                                .variants = variants,
                                .define = define,
                                .autocast_inputs = CLEAT_IN(0)};

cleat_tensor *cleat_resize(cleat_graph *graph, cleat_tensor *x, int64_t height, int64_t width) {
    if (!has_size(height, width)) {
        cleat_graph_fail(graph, CLEAT_ERR_ARGUMENT, "resize: %lld x %lld; the size must be 1 x 1 to %d x %d",
                         (long long)height, (long long)width, MAX_EXTENT, MAX_EXTENT);
        return NULL;
    }
    return cleat_first_output(cleat_emit(graph, &resize, &(resize_attr){height, width}, sizeof(resize_attr), &x, 1));
}
