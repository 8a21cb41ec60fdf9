/* Tensors side by side in the last extent. */
#include "cleat/ops.h"
#include "ops/rows.h"
#include "ops/shared.h"

#include <string.h>

enum { MOST_PARTS = 8 };

_Static_assert(MOST_PARTS <= (int)CLEAT_MAX_IN, "every part is an input");

/* Of the gradient of one part. */
typedef struct slice_attr {
    int64_t at; /* its first column */
} slice_attr;

/* Same type, and same extents but for the last. */
static bool fits_beside(const cleat_tensor *a, const cleat_tensor *b) {
    return a->dtype == b->dtype && a->rank == b->rank &&
           memcmp(a->shape, b->shape, (size_t)(a->rank - 1) * sizeof *a->shape) == 0;
}

static cleat_status infer(cleat_node *node, cleat_error *error) {
    const cleat_tensor *first = node->in[0];
    int64_t shape[CLEAT_MAX_RANK], width = 0;
    for (int i = 0; i < node->n_in; ++i) {
        const cleat_tensor *part = node->in[i];
        if (!cleat_is_storage(part->dtype) || part->rank < 1 || !fits_beside(first, part)) {
            char text[96], beside[96];
            cleat_tensor_describe(part, text, sizeof text);
            cleat_tensor_describe(first, beside, sizeof beside);
            return cleat_infer_fail(
                node, error,
                "part %d is %s beside %s: all must be f32, f16 or bf16 of one type, with the same extents but the last",
                i, text, beside);
        }
        width += cleat_width(part);
    }
    if (cleat_rows(first) > CLEAT_MOST_ROWS || width > CLEAT_MOST_ROWS)
        return cleat_infer_fail(node, error, "%lld rows of %lld columns: at most 2^30 of either",
                                (long long)cleat_rows(first), (long long)width);
    memcpy(shape, first->shape, sizeof shape);
    shape[first->rank - 1] = width;
    return cleat_set_output(node, 0, first->dtype, first->rank, shape, error);
}

static cleat_cost cost(const cleat_node *node) {
    return cleat_elementwise_cost(node, 0);
}

/* A part alone is read of what arrives. */
static cleat_cost cost_grad(const cleat_node *node) {
    double part = (double)cleat_tensor_bytes(node->out[0]);
    return (cleat_cost){.flops = (double)cleat_tensor_elements(node->out[0]),
                        .bytes = part * (cleat_addend(node, 1, 0) ? 3 : 2)};
}

/* to = addend + from, as many columns as the narrower of the two has. */
static void launch(cleat_binder *binder, const cleat_node *node, const cleat_tensor *from, int64_t from_at,
                   const cleat_tensor *addend, const cleat_tensor *to, int64_t to_at) {
    int64_t from_width = cleat_width(from), to_width = cleat_width(to);
    int64_t rows = cleat_rows(to), width = from_width < to_width ? from_width : to_width;
    cleat_launch_kernel(binder, node, "concat.cl", "concat_columns", to->dtype);
    cleat_launch_tensor_at(binder, from, from_at);
    cleat_launch_tensor(binder, addend);
    cleat_launch_tensor_at(binder, to, to_at);
    cleat_launch_i32(binder, (int32_t)rows);
    cleat_launch_i32(binder, (int32_t)width);
    cleat_launch_i32(binder, (int32_t)from_width);
    cleat_launch_i32(binder, (int32_t)to_width);
    cleat_launch_runs(binder, rows, width);
}

static cleat_status bind(const cleat_node *node, const cleat_device_facts *facts, cleat_binder *binder,
                         cleat_error *error) {
    (void)facts, (void)error;
    int64_t at = 0;
    for (int i = 0; i < node->n_in; at += cleat_width(node->in[i]), ++i)
        launch(binder, node, node->in[i], 0, NULL, node->out[0], at);
    return CLEAT_OK;
}

/* in = {dy, addend}, out = {a part's gradient} */
static cleat_status bind_grad(const cleat_node *node, const cleat_device_facts *facts, cleat_binder *binder,
                              cleat_error *error) {
    (void)facts, (void)error;
    const slice_attr *attr = (const slice_attr *)node->attr;
    launch(binder, node, node->in[0], attr->at, cleat_addend(node, 1, 0), node->out[0], 0);
    return CLEAT_OK;
}

static cleat_status infer_grad(cleat_node *node, cleat_error *error) {
    const slice_attr *attr = (const slice_attr *)node->attr;
    if (fits_beside(node->in[0], node->out[0]) && attr->at + cleat_width(node->out[0]) <= cleat_width(node->in[0]))
        return CLEAT_OK;
    return cleat_infer_fail(node, error, "the gradient that arrives does not have the shape and type of the output");
}

static const cleat_variant variants[] = {{.name = "runs", .bind = bind}, {0}};
static const cleat_variant grad_variants[] = {{.name = "runs", .bind = bind_grad}, {0}};

static const cleat_op concat_grad = {
    .name = "concat_grad", .infer = infer_grad, .cost = cost_grad, .variants = grad_variants, .share = 2};

static void backward(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    int64_t at = 0;
    for (int i = 0; i < node->n_in; at += cleat_width(node->in[i]), ++i)
        if (cleat_wants_grad(node->in[i]))
            cleat_emit_grads(graph, &concat_grad, &(slice_attr){at}, sizeof(slice_attr), &dout[0], 1, &node->in[i], 1);
}

static const cleat_op concat = {
    .name = "concat", .infer = infer, .backward = backward, .cost = cost, .variants = variants};

cleat_tensor *cleat_concat(cleat_graph *graph, cleat_tensor *const *parts, int n) {
    if (n < 1 || n > MOST_PARTS) {
        cleat_graph_fail(graph, CLEAT_ERR_ARGUMENT, "concat: %d parts are not 1 to %d", n, MOST_PARTS);
        return NULL;
    }
    for (int i = 0; i < n; ++i)
        if (!parts[i]) return NULL;
    cleat_node *node = cleat_emit(graph, &concat, NULL, 0, parts, n);
    return node ? node->out[0] : NULL;
}
