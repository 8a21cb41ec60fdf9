/* A range of indices of one axis. */
#include "cleat/ops.h"
#include "ops/lib/columns.h"
#include "ops/lib/count.h"
#include "ops/lib/define.h"
#include "ops/lib/shared.h"

#include <string.h>

typedef struct slice_attr {
    int64_t axis, start, stop;
} slice_attr;

static const slice_attr *attr_of(const cleat_node *node) {
    return (const slice_attr *)node->attr;
}

/* x as a matrix whose columns are the axis and all dimensions behind it: an index of the axis is `inner` columns. */
typedef struct layout {
    int64_t rows, inner, columns;
} layout;

static layout layout_of(const cleat_tensor *x, int64_t axis) {
    layout l = {.rows = 1, .inner = 1};
    for (int i = 0; i < axis; ++i) l.rows *= x->shape[i];
    for (int i = (int)axis + 1; i < x->rank; ++i) l.inner *= x->shape[i];
    l.columns = l.inner * x->shape[axis];
    return l;
}

static cleat_status infer(cleat_node *node, cleat_error *error) {
    const cleat_tensor *x = node->in[0];
    const slice_attr *attr = attr_of(node);
    if (!cleat_is_storage(x->dtype))
        return cleat_infer_fail(node, error, "x is %s, it must be f32, f16 or bf16", CLEAT_DESCRIBED(x));
    if (attr->axis < 0 || attr->axis >= x->rank)
        return cleat_infer_fail(node, error, "axis %lld of x, %s: it must be 0 to %d", (long long)attr->axis,
                                CLEAT_DESCRIBED(x), x->rank - 1);
    if (attr->start < 0 || attr->start >= attr->stop || attr->stop > x->shape[attr->axis])
        return cleat_infer_fail(node, error,
                                "indices %lld to %lld, excluded, of axis %lld of x, %s: at least one index, and none "
                                "beyond the axis",
                                (long long)attr->start, (long long)attr->stop, (long long)attr->axis,
                                CLEAT_DESCRIBED(x));
    const layout l = layout_of(x, attr->axis);
    if (l.rows > CLEAT_MAX_ROWS || l.columns > CLEAT_MAX_ROWS)
        return cleat_infer_fail(node, error,
                                "x is %s: at most 2^30 elements from axis %lld on, and 2^30 in front of it",
                                CLEAT_DESCRIBED(x), (long long)attr->axis);
    int64_t shape[CLEAT_MAX_RANK];
    memcpy(shape, x->shape, sizeof shape);
    shape[attr->axis] = attr->stop - attr->start;
    return cleat_set_output(node, 0, x->dtype, x->rank, shape, error);
}

/* Only the range is read. */
static cleat_cost cost(const cleat_node *node) {
    return (cleat_cost){.bytes = 2 * (double)cleat_tensor_bytes(node->out[0])};
}

static void bind(const cleat_node *node, cleat_binder *binder) {
    const slice_attr *attr = attr_of(node);
    const layout l = layout_of(node->in[0], attr->axis);
    const int64_t width = (attr->stop - attr->start) * l.inner;
    const cleat_columns from = {node->in[0], attr->start * l.inner, l.columns}, to = {node->out[0], 0, width};
    cleat_launch_columns(binder, node, from, NULL, to, l.rows, width);
}

static cleat_expected_value define(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const slice_attr *attr = attr_of(node);
    const layout l = layout_of(node->in[0], attr->axis);
    const int64_t width = (attr->stop - attr->start) * l.inner;
    return (cleat_expected_value){
        .value = cleat_host_value(values, 0, element / width * l.columns + attr->start * l.inner + element % width)};
}

/* in = {dy, accum}, out = {dx}: dx = accum, + dy within the range. */
enum { DY, GRAD_IN };

static void bind_grad(const cleat_node *node, cleat_binder *binder) {
    const slice_attr *attr = attr_of(node);
    const cleat_tensor *dx = node->out[0], *accum = cleat_accum(node, GRAD_IN, 0);
    const layout l = layout_of(dx, attr->axis);
    const int64_t bounds[] = {0, attr->start * l.inner, attr->stop * l.inner, l.columns};
    for (int part = 0; part < 3; ++part) {
        const int64_t at = bounds[part], width = bounds[part + 1] - at;
        const cleat_columns dy = {part == 1 ? node->in[DY] : NULL, 0, (attr->stop - attr->start) * l.inner};
        if (width > 0) cleat_launch_columns(binder, node, dy, accum, (cleat_columns){dx, at, l.columns}, l.rows, width);
    }
}

static cleat_expected_value define_grad(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const slice_attr *attr = attr_of(node);
    const layout l = layout_of(node->out[0], attr->axis);
    const int64_t width = (attr->stop - attr->start) * l.inner;
    const int64_t column = element % l.columns - attr->start * l.inner;
    cleat_expected_value sum = cleat_define_begin(values, GRAD_IN + values->output, element);
    if (column >= 0 && column < width)
        cleat_define_add(&sum, cleat_host_value(values, DY, element / l.columns * width + column));
    return sum;
}

static const cleat_variant variants[] = {{.name = "runs", .bind = bind}, {0}};
static const cleat_variant grad_variants[] = {{.name = "runs", .bind = bind_grad}, {0}};

static const cleat_op slice_grad = {.name = "slice_grad",
                                    .flops = 1,
                                    .variants = grad_variants,
                                    .define = define_grad,
                                    .inplace_inputs = CLEAT_IN(GRAD_IN)};

static void backward(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    cleat_emit_grads_of(graph, node, &slice_grad, &dout[0], GRAD_IN, &node->in[0], 1);
}

static const cleat_attribute attributes[] = {CLEAT_ATTRIBUTE(slice_attr, axis, CLEAT_ATTRIBUTE_I64),
                                             CLEAT_ATTRIBUTE(slice_attr, start, CLEAT_ATTRIBUTE_I64),
                                             CLEAT_ATTRIBUTE(slice_attr, stop, CLEAT_ATTRIBUTE_I64),
                                             {.name = NULL}};

static const cleat_op slice = {.name = "slice",
                               .infer = infer,
                               .backward = backward,
                               .cost = cost,
                               .variants = variants,
                               .define = define,
                               .no_autocast = true,
                               .attributes = attributes};

cleat_tensor *cleat_slice(cleat_graph *graph, cleat_tensor *x, int axis, int64_t start, int64_t stop) {
    const slice_attr attr = {.axis = axis, .start = start, .stop = stop};
    return cleat_first_output(cleat_emit(graph, &slice, &attr, sizeof attr, &x, 1));
}
