/* Pooling of sequences to one row per sample: the mean of the rows, the first, or the last. */
#include "cleat/ops.h"
#include "lib/shared_numbers.clh"
#include "ops/lib/define.h"
#include "ops/lib/rows.h"
#include "ops/lib/shared.h"

typedef enum pool_mode { MEAN = POOL_MEAN, FIRST = POOL_FIRST, LAST = POOL_LAST } pool_mode;

typedef struct pool_attr {
    pool_mode mode;
} pool_attr;

/* Work-items of a GPU that add neighbouring columns of a sample; those of a group share its positions. */
enum { COLUMN_ITEMS = 32 };

/* in = {x, lengths} */
enum { X, LENGTHS, FORWARD_IN };
/* in = {dy, lengths, accum} */
enum { DY, GRAD_IN = FORWARD_IN };

static cleat_status infer(cleat_node *node, cleat_error *error) {
    const cleat_tensor *x = node->in[X];
    if (!cleat_is_storage(x->dtype) || x->rank != 3 || cleat_rows(x) > CLEAT_MAX_ROWS)
        return cleat_infer_fail(node, error, "x is %s, it must be f32, f16 or bf16 [B, L, D] of at most 2^30 rows",
                                CLEAT_DESCRIBED(x));
    cleat_status status = CLEAT_OK;
    if (node->in[LENGTHS]) status = cleat_expect(node, LENGTHS, "lengths", CLEAT_I32, 1, x->shape, error);
    const int64_t shape[] = {x->shape[0], x->shape[2]};
    return status ? status : cleat_set_output(node, 0, x->dtype, 2, shape, error);
}

/* Only one row is read if the first or the last is selected. */
static cleat_cost cost(const cleat_node *node) {
    const cleat_tensor *x = node->in[X], *y = node->out[0];
    bool all = ((const pool_attr *)node->attr)->mode == MEAN;
    return (cleat_cost){.flops = (double)cleat_tensor_elements(all ? x : y),
                        .bytes = (double)(cleat_tensor_bytes(all ? x : y) + cleat_tensor_bytes(y))};
}

/* x is the tensor [B, L, D] or its gradient. */
static void launch(const cleat_node *node, cleat_binder *binder, const cleat_tensor *x) {
    cleat_launch_define(binder, "MODE", ((const pool_attr *)node->attr)->mode);
    for (int i = 0; i < node->n_in; ++i) cleat_launch_tensor(binder, node->in[i]);
    cleat_launch_tensor(binder, node->out[0]);
    CLEAT_LAUNCH_I32(binder, {"batch", x->shape[0]}, {"length", x->shape[1]});
}

/* The rows [begin, end) of sample b that the mode selects, and their weight. */
static double define_rows(const cleat_node *node, cleat_host_values *values, int64_t b, int64_t length, int64_t *begin,
                          int64_t *end) {
    const pool_mode mode = ((const pool_attr *)node->attr)->mode;
    const int64_t n = cleat_define_length(values, LENGTHS, b, length);
    *begin = mode == LAST && n > 0 ? n - 1 : 0;
    *end = mode == FIRST && n > 1 ? 1 : n;
    return mode == MEAN && n > 0 ? 1 / (double)n : 1;
}

static cleat_expected_value define(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const int64_t width = node->in[X]->shape[2], length = node->in[X]->shape[1], b = element / width;
    int64_t begin, end;
    const double weight = define_rows(node, values, b, length, &begin, &end);
    cleat_expected_value sum = {.value = 0};
    for (int64_t l = begin; l < end; ++l)
        cleat_define_add(&sum, weight * cleat_host_value(values, X, (b * length + l) * width + element % width));
    values->work += (double)length;
    return sum;
}

static cleat_expected_value define_grad(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const int64_t width = node->out[0]->shape[2], length = node->out[0]->shape[1], row = element / width;
    int64_t begin, end;
    const double weight = define_rows(node, values, row / length, length, &begin, &end);
    cleat_expected_value dx = cleat_define_begin(values, GRAD_IN + values->output, element);
    if (row % length >= begin && row % length < end)
        cleat_define_add(&dx, weight * cleat_host_value(values, DY, row / length * width + element % width));
    return dx;
}

static void bind(const cleat_node *node, cleat_binder *binder) {
    const cleat_tensor *x = node->in[X];
    const int64_t width = x->shape[2], items = min(cleat_row_items(width, binder->facts), COLUMN_ITEMS);
    cleat_launch_vector_kernel(binder, node, "pool.cl", "pool_forward", x->dtype, width);
    CLEAT_LAUNCH_DEFINES(binder, {"WIDTH", width}, {"ROW_ITEMS", items});
    launch(node, binder, x);
    if (binder->facts->work_group > 1)
        cleat_launch_groups(binder, x->shape[0] * ceil_div(width, items * binder->facts->vector_width));
    else
        cleat_launch_rows(binder, x->shape[0], width);
}

static void bind_grad(const cleat_node *node, cleat_binder *binder) {
    const cleat_tensor *dx = node->out[0];
    cleat_launch_row_kernel(binder, node, "pool.cl", "pool_backward", dx->dtype, dx->shape[2]);
    launch(node, binder, dx);
    cleat_launch_rows(binder, cleat_rows(dx), dx->shape[2]);
}

static const cleat_variant variants[] = {{.name = "rows", .bind = bind}, {0}};
static const cleat_variant grad_variants[] = {{.name = "rows", .bind = bind_grad}, {0}};

static const cleat_op pool_grad = {.name = "pool_grad",
                                   .flops = 1,
                                   .variants = grad_variants,
                                   .define = define_grad,
                                   .inplace_inputs = CLEAT_IN(GRAD_IN)};

static void backward(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    cleat_tensor *in[] = {[DY] = dout[0], [LENGTHS] = node->in[LENGTHS]};
    cleat_emit_grads_of(graph, node, &pool_grad, in, GRAD_IN, &node->in[X], 1);
}

static const cleat_attribute attributes[] = {CLEAT_ATTRIBUTE(pool_attr, mode, CLEAT_ATTRIBUTE_I32), {.name = NULL}};

static const cleat_op pool = {.name = "pool",
                              .optional_inputs = CLEAT_IN(LENGTHS),
                              .infer = infer,
                              .backward = backward,
                              .cost = cost,
                              .variants = variants,
                              .define = define,
                              .autocast_inputs = CLEAT_IN(X),
                              .attributes = attributes};

static cleat_tensor *emit(cleat_graph *graph, cleat_tensor *x, cleat_tensor *lengths, pool_mode mode) {
    cleat_tensor *in[] = {[X] = x, [LENGTHS] = lengths};
    return cleat_first_output(cleat_emit(graph, &pool, &(pool_attr){mode}, sizeof(pool_attr), in, FORWARD_IN));
}

cleat_tensor *cleat_mean_pool(cleat_graph *graph, cleat_tensor *x, cleat_tensor *lengths) {
    return emit(graph, x, lengths, MEAN);
}

cleat_tensor *cleat_select_row(cleat_graph *graph, cleat_tensor *x, cleat_tensor *lengths, cleat_end_row which) {
    return emit(graph, x, lengths, which == CLEAT_ROW_FIRST ? FIRST : LAST);
}
