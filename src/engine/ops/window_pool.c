/* Max and average pooling of images. */
#include "cleat/ops.h"
#include "ops/lib/channels.h"
#include "ops/lib/define.h"
#include "ops/lib/rows.h"
#include "ops/lib/shared.h"

typedef struct window_attr {
    int32_t size, stride, padding;
    bool winner; /* max pooling: whether the position of the maximum is stored for backward */
    bool gap[3]; /* false */
} window_attr;

enum { MAX_SIZE = 16 };

static const window_attr *attr_of(const cleat_node *node) {
    return (const window_attr *)node->attr;
}

static int64_t windows(int64_t extent, const window_attr *attr) {
    return (extent + 2 * attr->padding - attr->size) / attr->stride + 1;
}

/* in = {x}, out = {y, winner i32 with the shape of y if max pooling requires a gradient} */
static cleat_status infer(cleat_node *node, cleat_error *error) {
    const cleat_tensor *x = node->in[0];
    const window_attr *attr = attr_of(node);
    if (!cleat_is_storage(x->dtype) || x->rank != 4 || cleat_rows(x) > CLEAT_MAX_ROWS ||
        cleat_width(x) > CLEAT_MAX_ROWS)
        return cleat_infer_fail(
            node, error, "x is %s, it must be f32, f16 or bf16 [B, H, W, C] with at most 2^30 pixels and channels",
            CLEAT_DESCRIBED(x));
    if (attr->size < 1 || attr->size > MAX_SIZE || attr->stride < 1 || attr->padding < 0 ||
        attr->padding > attr->size / 2)
        return cleat_infer_fail(node, error,
                                "size %d, stride %d, padding %d: the size must be 1 to %d, the stride at least 1, the "
                                "padding 0 to half the size",
                                (int)attr->size, (int)attr->stride, (int)attr->padding, (int)MAX_SIZE);
    for (int i = 1; i < 3; ++i)
        if (x->shape[i] + 2 * attr->padding < attr->size)
            return cleat_infer_fail(node, error, "x is %s, smaller than a window of %d with padding %d",
                                    CLEAT_DESCRIBED(x), (int)attr->size, (int)attr->padding);
    const int64_t shape[] = {x->shape[0], windows(x->shape[1], attr), windows(x->shape[2], attr), x->shape[3]};
    if (shape[0] * shape[1] * shape[2] > CLEAT_MAX_ROWS)
        return cleat_infer_fail(node, error, "x is %s: more than 2^30 windows", CLEAT_DESCRIBED(x));
    cleat_status status = cleat_set_output(node, 0, x->dtype, 4, shape, error);
    if (!status && attr->winner) status = cleat_set_output(node, 1, CLEAT_I32, 4, shape, error);
    return status;
}

static cleat_cost cost(const cleat_node *node) {
    const window_attr *attr = attr_of(node);
    return cleat_elementwise_cost(node, attr->size * attr->size);
}

/* The rows of `over` are distributed among the work-groups. */
static void launch(cleat_binder *binder, const cleat_node *node, const char *kernel, const cleat_tensor *const *tensors,
                   int count, const cleat_tensor *over, const cleat_tensor *x, const cleat_tensor *y) {
    cleat_channels cut = cleat_channels_of(over, binder->facts);
    const window_attr *attr = attr_of(node);
    cleat_launch_channel_kernel(binder, node, "window_pool.cl", kernel, over->dtype, &cut);
    CLEAT_LAUNCH_DEFINES(binder, {"SIZE", attr->size}, {"STRIDE", attr->stride}, {"PADDING", attr->padding});
    for (int i = 0; i < count; ++i) cleat_launch_tensor(binder, tensors[i]);
    CLEAT_LAUNCH_I32(binder, {"rows", cut.rows}, {"height", x->shape[1]}, {"width", x->shape[2]},
                     {"out_height", y->shape[1]}, {"out_width", y->shape[2]}, {"channels", cut.channels},
                     {"chunks", cut.chunks});
    cleat_launch_channel_groups(binder, &cut, cleat_channels_free_parts(&cut, binder->facts));
}

/* Maps values out of range for any image to -1, which infer rejects. */
static int32_t within_i32(int64_t value) {
    return value < -1 || value > CLEAT_MAX_ROWS ? -1 : (int32_t)value;
}

static cleat_tensor *emit(cleat_graph *graph, const cleat_op *op, cleat_tensor *x, const int64_t window[3],
                          bool winner) {
    const window_attr attr = {within_i32(window[0]), within_i32(window[1]), within_i32(window[2]), winner, {false}};
    return cleat_first_output(cleat_emit(graph, op, &attr, sizeof attr, &x, 1));
}

/* --- definitions ---------------------------------------------------------------------------------------------- */

/* An element of a tensor [B, H, W, C]. */
typedef struct place {
    int64_t sample, row, column, channel;
} place;

static place place_of(const cleat_tensor *tensor, int64_t element) {
    const int64_t pixel = element / tensor->shape[3], line = pixel / tensor->shape[2];
    return (place){line / tensor->shape[1], line % tensor->shape[1], pixel % tensor->shape[2],
                   element % tensor->shape[3]};
}

static int64_t element_of(const cleat_tensor *tensor, place at) {
    return ((at.sample * tensor->shape[1] + at.row) * tensor->shape[2] + at.column) * tensor->shape[3] + at.channel;
}

/* The place of x that the window of `y` has at (r, s); false: it lies outside. */
static bool source_of(const cleat_node *node, const cleat_tensor *x, place y, int64_t r, int64_t s, place *at) {
    const window_attr *attr = attr_of(node);
    *at = (place){y.sample, y.row * attr->stride - attr->padding + r, y.column * attr->stride - attr->padding + s,
                  y.channel};
    return at->row >= 0 && at->row < x->shape[1] && at->column >= 0 && at->column < x->shape[2];
}

/* The opposite: the window of y that has the place of x at (r, s); false: there is none. */
static bool window_of(const cleat_node *node, const cleat_tensor *y, place x, int64_t r, int64_t s, place *at) {
    const window_attr *attr = attr_of(node);
    const int64_t row = x.row + attr->padding - r, column = x.column + attr->padding - s;
    *at = (place){x.sample, row / attr->stride, column / attr->stride, x.channel};
    return row >= 0 && column >= 0 && row % attr->stride == 0 && column % attr->stride == 0 && at->row < y->shape[1] &&
           at->column < y->shape[2];
}

/* The first of the largest values, and its position within the sample. */
static cleat_expected_value define_max(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const cleat_tensor *x = node->in[0];
    const int64_t size = attr_of(node)->size;
    const place y = place_of(node->out[0], element);
    double most = -INFINITY;
    int64_t winner = -1;
    place at;
    for (int64_t i = 0; i < size * size; ++i) {
        if (!source_of(node, x, y, i / size, i % size, &at)) continue;
        const double value = cleat_host_value(values, 0, element_of(x, at));
        if (winner >= 0 && value <= most) continue;
        most = value;
        winner = at.row * x->shape[2] + at.column;
    }
    return (cleat_expected_value){.value = values->output == 0 ? most : (double)winner};
}

static cleat_expected_value define_average(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const cleat_tensor *x = node->in[0];
    const int64_t size = attr_of(node)->size;
    const place y = place_of(node->out[0], element);
    cleat_expected_value sum = {.value = 0};
    place at;
    for (int64_t i = 0; i < size * size; ++i)
        if (source_of(node, x, y, i / size, i % size, &at))
            cleat_define_add(&sum, cleat_host_value(values, 0, element_of(x, at)) / (double)(size * size));
    return sum;
}

/* --- max pooling ---------------------------------------------------------------------------------------------- */

static void bind_max(const cleat_node *node, cleat_binder *binder) {
    const cleat_tensor *x = node->in[0], *y = node->out[0];
    launch(binder, node, "max_pool_forward", (const cleat_tensor *[]){x, y, node->out[1]}, 3, y, x, y);
}

static const cleat_variant max_variants[] = {{.name = "windows", .bind = bind_max}, {0}};

/* The gradient: in = {dy, winner, accum}, out = {dx} */
enum { DY, WINNER, MAX_GRAD_IN };

static void bind_max_grad(const cleat_node *node, cleat_binder *binder) {
    const cleat_tensor *dy = node->in[DY], *dx = node->out[0];
    const cleat_tensor *tensors[] = {dy, node->in[WINNER], cleat_accum(node, MAX_GRAD_IN, 0), dx};
    launch(binder, node, "max_pool_backward", tensors, 4, dx, dx, dy);
}

static cleat_expected_value define_max_grad(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const cleat_tensor *dy = node->in[DY], *dx = node->out[0];
    const int64_t size = attr_of(node)->size;
    const place x = place_of(dx, element);
    cleat_expected_value sum = cleat_define_begin(values, MAX_GRAD_IN + values->output, element);
    place at;
    for (int64_t i = 0; i < size * size; ++i) {
        if (!window_of(node, dy, x, i / size, i % size, &at)) continue;
        const int64_t from = element_of(dy, at);
        if (values->in[WINNER].i[from] == x.row * dx->shape[2] + x.column)
            cleat_define_add(&sum, cleat_host_value(values, DY, from));
    }
    return sum;
}

static const cleat_variant max_grad_variants[] = {{.name = "pixels", .bind = bind_max_grad}, {0}};

/* dx may overwrite the accum. */
static const cleat_op max_pool_grad = {.name = "max_pool_grad",
                                       .discontinuous = true,
                                       .flops = 8,
                                       .variants = max_grad_variants,
                                       .define = define_max_grad,
                                       .inplace_inputs = CLEAT_IN(MAX_GRAD_IN)};

static void backward_max(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    if (!dout[0] || !cleat_requires_grad(node->in[0])) return;
    cleat_tensor *in[MAX_GRAD_IN] = {[DY] = dout[0], [WINNER] = node->out[1]};
    cleat_emit_grads_of(graph, node, &max_pool_grad, in, MAX_GRAD_IN, &node->in[0], 1);
}

static const cleat_attribute attributes[] = {CLEAT_ATTRIBUTE(window_attr, size, CLEAT_ATTRIBUTE_I32),
                                             CLEAT_ATTRIBUTE(window_attr, stride, CLEAT_ATTRIBUTE_I32),
                                             CLEAT_ATTRIBUTE(window_attr, padding, CLEAT_ATTRIBUTE_I32),
                                             {.name = NULL}};

static const cleat_op max_pool = {.name = "max_pool",
                                  .discontinuous = true,
                                  .infer = infer,
                                  .backward = backward_max,
                                  .cost = cost,
                                  .variants = max_variants,
                                  .define = define_max,
                                  .autocast_inputs = CLEAT_IN(0),
                                  .attributes = attributes};

cleat_tensor *cleat_max_pool(cleat_graph *graph, cleat_tensor *x, int64_t size, int64_t stride, int64_t padding) {
    return emit(graph, &max_pool, x, (int64_t[]){size, stride, padding}, cleat_requires_grad(x));
}

/* --- average pooling ------------------------------------------------------------------------------------------ */

static void bind_average(const cleat_node *node, cleat_binder *binder) {
    const cleat_tensor *x = node->in[0], *y = node->out[0];
    launch(binder, node, "average_pool_forward", (const cleat_tensor *[]){x, y}, 2, y, x, y);
}

static const cleat_variant average_variants[] = {{.name = "windows", .bind = bind_average}, {0}};

/* The gradient: in = {dy, accum}, out = {dx} */
enum { AVERAGE_GRAD_IN = DY + 1 };

static void bind_average_grad(const cleat_node *node, cleat_binder *binder) {
    const cleat_tensor *dy = node->in[DY], *dx = node->out[0];
    const cleat_tensor *tensors[] = {dy, cleat_accum(node, AVERAGE_GRAD_IN, 0), dx};
    launch(binder, node, "average_pool_backward", tensors, 3, dx, dx, dy);
}

static cleat_expected_value define_average_grad(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const cleat_tensor *dy = node->in[DY];
    const int64_t size = attr_of(node)->size;
    const place x = place_of(node->out[0], element);
    cleat_expected_value sum = cleat_define_begin(values, AVERAGE_GRAD_IN + values->output, element);
    place at;
    for (int64_t i = 0; i < size * size; ++i)
        if (window_of(node, dy, x, i / size, i % size, &at))
            cleat_define_add(&sum, cleat_host_value(values, DY, element_of(dy, at)) / (double)(size * size));
    return sum;
}

static const cleat_variant average_grad_variants[] = {{.name = "pixels", .bind = bind_average_grad}, {0}};

static const cleat_op average_pool_grad = {.name = "average_pool_grad",
                                           .flops = 8,
                                           .variants = average_grad_variants,
                                           .define = define_average_grad,
                                           .inplace_inputs = CLEAT_IN(AVERAGE_GRAD_IN)};

static void backward_average(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    cleat_emit_grads_of(graph, node, &average_pool_grad, &dout[0], AVERAGE_GRAD_IN, &node->in[0], 1);
}

static const cleat_op average_pool = {.name = "average_pool",
                                      .infer = infer,
                                      .backward = backward_average,
                                      .cost = cost,
                                      .variants = average_variants,
                                      .define = define_average,
                                      .autocast_inputs = CLEAT_IN(0),
                                      .attributes = attributes};

cleat_tensor *cleat_average_pool(cleat_graph *graph, cleat_tensor *x, int64_t size, int64_t stride, int64_t padding) {
    return emit(graph, &average_pool, x, (int64_t[]){size, stride, padding}, false);
}
