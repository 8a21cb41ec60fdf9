/* Selection of the marked rows of each sample, for a loss of a few positions only. */
#include "cleat/ops.h"
#include "ops/lib/define.h"
#include "ops/lib/rows.h"
#include "ops/lib/shared.h"

typedef struct marked_attr {
    int64_t count;
} marked_attr;

/* in = {x, marks}, out = {y, chosen} */
enum { X, MARKS, FORWARD_IN };
/* in = {dy, marks, accum} */
enum { DY, GRAD_IN = FORWARD_IN };

static int64_t count_of(const cleat_node *node) {
    return ((const marked_attr *)node->attr)->count;
}

static cleat_status infer(cleat_node *node, cleat_error *error) {
    const cleat_tensor *x = node->in[X];
    const int64_t count = count_of(node);
    if (!cleat_is_storage(x->dtype) || x->rank != 3 || cleat_rows(x) > CLEAT_MAX_ROWS)
        return cleat_infer_fail(node, error, "x is %s, it must be f32, f16 or bf16 [B, L, D] of at most 2^30 rows",
                                CLEAT_DESCRIBED(x));
    if (count < 1 || count > x->shape[1])
        return cleat_infer_fail(node, error, "%lld rows of each sample of x, %s", (long long)count, CLEAT_DESCRIBED(x));
    cleat_status status = cleat_expect(node, MARKS, "marks", CLEAT_I32, 2, x->shape, error);
    const int64_t shape[] = {x->shape[0], count, x->shape[2]};
    if (!status) status = cleat_set_output(node, 0, x->dtype, 3, shape, error);
    return status ? status : cleat_set_output(node, 1, CLEAT_I32, 2, shape, error);
}

/* Only the marked rows are read. */
static cleat_cost cost(const cleat_node *node) {
    return (cleat_cost){.bytes =
                            2 * (double)cleat_tensor_bytes(node->out[0]) + (double)cleat_tensor_bytes(node->in[MARKS])};
}

/* x is the tensor [B, L, D] or its gradient. */
static void launch(const cleat_node *node, cleat_binder *binder, const char *kernel, const cleat_tensor *x,
                   int64_t rows) {
    cleat_launch_row_kernel(binder, node, "select_marked.cl", kernel, x->dtype, x->shape[2]);
    for (int i = 0; i < node->n_in; ++i) cleat_launch_tensor(binder, node->in[i]);
    for (int i = 0; i < node->n_out; ++i) cleat_launch_tensor(binder, node->out[i]);
    CLEAT_LAUNCH_I32(binder, {"batch", x->shape[0]}, {"length", x->shape[1]}, {"count", count_of(node)});
    cleat_launch_rows(binder, rows, x->shape[2]);
}

static void bind(const cleat_node *node, cleat_binder *binder) {
    launch(node, binder, "select_marked_forward", node->in[X], node->in[X]->shape[0] * count_of(node));
}

static void bind_grad(const cleat_node *node, cleat_binder *binder) {
    launch(node, binder, "select_marked_backward", node->out[0], cleat_rows(node->out[0]));
}

static cleat_expected_value define(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const int64_t length = node->in[X]->shape[1], width = values->output == 0 ? cleat_width(node->in[X]) : 1;
    const int64_t row = element / width, b = row / count_of(node);
    int64_t left = row % count_of(node);
    values->work += (double)length;
    for (int64_t l = b * length; l < (b + 1) * length; ++l) {
        if (values->in[MARKS].i[l] < 0 || left-- > 0) continue;
        return (cleat_expected_value){.value = values->output == 0
                                                   ? cleat_host_value(values, X, l * width + element % width)
                                                   : (double)values->in[MARKS].i[l]};
    }
    return (cleat_expected_value){.value = values->output == 0 ? 0 : -1};
}

static cleat_expected_value define_grad(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const int64_t length = node->out[0]->shape[1], width = node->out[0]->shape[2], row = element / width;
    const int64_t b = row / length;
    int64_t before = 0;
    cleat_expected_value dx = cleat_define_begin(values, GRAD_IN + values->output, element);
    for (int64_t l = b * length; l < row; ++l) before += values->in[MARKS].i[l] >= 0;
    if (values->in[MARKS].i[row] >= 0 && before < count_of(node))
        cleat_define_add(&dx, cleat_host_value(values, DY, (b * count_of(node) + before) * width + element % width));
    values->work += (double)length;
    return dx;
}

static const cleat_variant variants[] = {{.name = "rows", .bind = bind}, {0}};
static const cleat_variant grad_variants[] = {{.name = "rows", .bind = bind_grad}, {0}};

static const cleat_op select_marked_grad = {.name = "select_marked_grad",
                                            .flops = 1,
                                            .variants = grad_variants,
                                            .define = define_grad,
                                            .inplace_inputs = CLEAT_IN(GRAD_IN)};

static void backward(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    if (!dout[0] || !cleat_requires_grad(node->in[X])) return;
    cleat_tensor *in[] = {[DY] = dout[0], [MARKS] = node->in[MARKS]};
    cleat_emit_grads_of(graph, node, &select_marked_grad, in, GRAD_IN, &node->in[X], 1);
}

static const cleat_attribute attributes[] = {CLEAT_ATTRIBUTE(marked_attr, count, CLEAT_ATTRIBUTE_I64), {.name = NULL}};

static const cleat_op select_marked = {.name = "select_marked",
                                       .infer = infer,
                                       .backward = backward,
                                       .cost = cost,
                                       .variants = variants,
                                       .define = define,
                                       .autocast_inputs = CLEAT_IN(X),
                                       .attributes = attributes};

cleat_tensor *cleat_select_marked(cleat_graph *graph, cleat_tensor *x, cleat_tensor *marks, int64_t count,
                                  cleat_tensor **chosen) {
    cleat_tensor *in[] = {[X] = x, [MARKS] = marks};
    const marked_attr attr = {count};
    cleat_node *node = cleat_emit(graph, &select_marked, &attr, sizeof attr, in, FORWARD_IN);
    if (chosen) *chosen = node ? node->out[1] : NULL;
    return node ? node->out[0] : NULL;
}
