/* Learned position embeddings, added to x. The gradient of x is dy; that of the table is summed over the samples in
 * their order. */
#include "cleat/ops.h"
#include "ops/lib/shared.h"

typedef struct position_attr {
    int64_t first; /* row of the table that position 0 gets */
} position_attr;

enum { MAX_SAMPLE = 1 << 30 };

enum { X, TABLE, FORWARD_IN };

static int64_t first_of(const cleat_node *node) {
    return ((const position_attr *)node->attr)->first;
}

/* Elements of a sample [L, D]. */
static int64_t sample_of(const cleat_tensor *x) {
    return x->shape[x->rank - 2] * cleat_width(x);
}

static cleat_status infer(cleat_node *node, cleat_error *error) {
    const cleat_tensor *x = node->in[X], *table = node->in[TABLE];
    const int64_t first = first_of(node);
    char what[96], rows[96];
    cleat_tensor_describe(x, what, sizeof what);
    cleat_tensor_describe(table, rows, sizeof rows);
    if (!cleat_is_storage(x->dtype) || x->rank < 2)
        return cleat_infer_fail(node, error, "x is %s, it must be f32, f16 or bf16 [..., L, D]", what);
    if (table->dtype != CLEAT_F32 || table->rank != 2 || cleat_width(table) != cleat_width(x))
        return cleat_infer_fail(node, error, "the table is %s, it must be f32 [P, %lld] as x is %s", rows,
                                (long long)cleat_width(x), what);
    if (first < 0 || x->shape[x->rank - 2] > table->shape[0] - first)
        return cleat_infer_fail(node, error, "x is %s: rows %lld to %lld of the table, which is %s", what,
                                (long long)first, (long long)(first + x->shape[x->rank - 2] - 1), rows);
    if (sample_of(x) > MAX_SAMPLE || cleat_rows(x) > MAX_SAMPLE)
        return cleat_infer_fail(node, error, "x is %s: at most 2^30 elements of a sample, and 2^30 rows", what);
    return cleat_set_output(node, 0, x->dtype, x->rank, x->shape, error);
}

static cleat_cost cost(const cleat_node *node) {
    return (cleat_cost){.flops = (double)cleat_tensor_elements(node->in[X]),
                        .bytes = 2.0 * (double)cleat_tensor_bytes(node->in[X]) + 4.0 * (double)sample_of(node->in[X])};
}

/* Sizes, and one work-item for each vector of a sample. `dy_or_x` is [..., L, D]. */
static void launch_sizes(cleat_binder *binder, const cleat_tensor *dy_or_x) {
    const int64_t sample = sample_of(dy_or_x), vector_width = binder->facts->vector_width;
    cleat_launch_i32(binder, (int32_t)(cleat_tensor_elements(dy_or_x) / sample));
    cleat_launch_i32(binder, (int32_t)sample);
    cleat_launch_items(binder, (sample + vector_width - 1) / vector_width);
}

static void bind(const cleat_node *node, cleat_binder *binder) {
    const cleat_tensor *x = node->in[X];
    cleat_launch_kernel(binder, node, "position_embedding.cl", "position_embedding_forward", x->dtype);
    cleat_launch_tensor(binder, x);
    cleat_launch_tensor_at(binder, node->in[TABLE], first_of(node) * cleat_width(x));
    cleat_launch_tensor(binder, node->out[0]);
    launch_sizes(binder, x);
}

static const cleat_variant variants[] = {{.name = "rows", .bind = bind}, {0}};

/* --- gradient of the table: in = {dy, dtable}, out = {dtable} ------------------------------------------------- */

enum { G_DY, GRAD_IN };

/* Rows that no position has must keep what they hold, so that the gradient is written where it accumulates. */
static cleat_status infer_grad(cleat_node *node, cleat_error *error) {
    const cleat_tensor *dy = node->in[G_DY], *dtable = node->out[0];
    if (cleat_accum(node, GRAD_IN, 0) == dtable && cleat_width(dy) == cleat_width(dtable)) return CLEAT_OK;
    return cleat_infer_fail(node, error, "the table must be a parameter (its gradient accumulates in place)");
}

static cleat_cost grad_cost(const cleat_node *node) {
    const cleat_tensor *dy = node->in[G_DY];
    return (cleat_cost){.flops = (double)cleat_tensor_elements(dy),
                        .bytes = (double)cleat_tensor_bytes(dy) + 8.0 * (double)sample_of(dy)};
}

static void bind_grad(const cleat_node *node, cleat_binder *binder) {
    const cleat_tensor *dy = node->in[G_DY];
    cleat_launch_kernel(binder, node, "position_embedding.cl", "position_embedding_backward", dy->dtype);
    cleat_launch_tensor(binder, dy);
    cleat_launch_tensor_at(binder, node->out[0], first_of(node) * cleat_width(dy));
    launch_sizes(binder, dy);
}

static const cleat_variant grad_variants[] = {{.name = "rows", .bind = bind_grad}, {0}};

static const cleat_op position_embedding_grad = {
    .name = "position_embedding_grad", .infer = infer_grad, .cost = grad_cost, .variants = grad_variants};

static void backward(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    cleat_pass_grad(graph, node->in[X], dout[0]);
    if (!cleat_requires_grad(node->in[TABLE])) return;
    cleat_tensor *in[GRAD_IN] = {[G_DY] = dout[0]};
    cleat_emit_grads(graph, &(cleat_grads_spec){.op = &position_embedding_grad,
                                                .attr = node->attr,
                                                .attr_bytes = sizeof(position_attr),
                                                .in = in,
                                                .n_in = GRAD_IN,
                                                .targets = &node->in[TABLE],
                                                .n_targets = 1});
}

static const cleat_op position_embedding = {.name = "position_embedding",
                                            .infer = infer,
                                            .backward = backward,
                                            .cost = cost,
                                            .variants = variants,
                                            .inplace_inputs = CLEAT_IN(X),
                                            .autocast_inputs = CLEAT_IN(X)};

cleat_tensor *cleat_position_embedding(cleat_graph *graph, cleat_tensor *x, cleat_tensor *table, int64_t first) {
    cleat_tensor *in[FORWARD_IN] = {[X] = x, [TABLE] = table};
    const position_attr attr = {first};
    cleat_node *node = cleat_emit(graph, &position_embedding, &attr, sizeof attr, in, FORWARD_IN);
    return node ? node->out[0] : NULL;
}
