/* Concatenation of tensors along the last dimension, and its inverse. */
#include "cleat/ops.h"
#include "ops/lib/columns.h"
#include "ops/lib/count.h"
#include "ops/lib/define.h"
#include "ops/lib/shared.h"

#include <string.h>

enum { MAX_PARTS = 8 };

_Static_assert(MAX_PARTS <= (int)CLEAT_MAX_IN, "every part is an input");

/* --- concat --------------------------------------------------------------------------------------------------- */

/* Attribute of the gradient of one part; 0 in the forward node. */
typedef struct slice_attr {
    int64_t at; /* first column of the part */
} slice_attr;

/* Returns whether types and all dimensions but the last are equal. */
static bool fits_beside(const cleat_tensor *a, const cleat_tensor *b) {
    return a->dtype == b->dtype && a->rank == b->rank &&
           memcmp(a->shape, b->shape, (size_t)(a->rank - 1) * sizeof *a->shape) == 0;
}

static cleat_status infer(cleat_node *node, cleat_error *error) {
    const cleat_tensor *first = node->in[0];
    int64_t shape[CLEAT_MAX_RANK], width = 0;
    for (int i = 0; i < node->n_in; ++i) {
        const cleat_tensor *part = node->in[i];
        if (!cleat_is_storage(part->dtype) || part->rank < 1 || !fits_beside(first, part))
            return cleat_infer_fail(node, error,
                                    "part %d is %s, but another is %s: all must be f32, f16 or bf16 of the same type, "
                                    "with the same dimensions except the last",
                                    i, CLEAT_DESCRIBED(part), CLEAT_DESCRIBED(first));
        width += cleat_width(part);
    }
    if (cleat_rows(first) > CLEAT_MAX_ROWS || width > CLEAT_MAX_ROWS)
        return cleat_infer_fail(node, error, "%lld rows of %lld columns: at most 2^30 of either",
                                (long long)cleat_rows(first), (long long)width);
    memcpy(shape, first->shape, sizeof shape);
    shape[first->rank - 1] = width;
    return cleat_set_output(node, 0, first->dtype, first->rank, shape, error);
}

/* Only one part of dy is read. */
static cleat_cost cost_grad(const cleat_node *node) {
    double part = (double)cleat_tensor_bytes(node->out[0]);
    return (cleat_cost){.flops = (double)cleat_tensor_elements(node->out[0]),
                        .bytes = part * (cleat_accum(node, 1, 0) ? 3 : 2)};
}

static void launch(cleat_binder *binder, const cleat_node *node, cleat_columns from, const cleat_tensor *accum,
                   cleat_columns to, int64_t width) {
    cleat_launch_columns(binder, node, from, accum, to, cleat_rows(to.tensor), width);
}

static void bind(const cleat_node *node, cleat_binder *binder) {
    int64_t at = 0;
    for (int i = 0; i < node->n_in; at += cleat_width(node->in[i]), ++i)
        launch(binder, node, cleat_columns_of(node->in[i], 0), NULL, cleat_columns_of(node->out[0], at),
               cleat_width(node->in[i]));
}

static cleat_expected_value define(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const int64_t width = cleat_width(node->out[0]), row = element / width;
    int64_t column = element % width;
    int part = 0;
    while (column >= cleat_width(node->in[part])) column -= cleat_width(node->in[part++]);
    return (cleat_expected_value){.value = cleat_host_value(values, part, row * cleat_width(node->in[part]) + column)};
}

/* in = {dy, accum}, out = {gradient of one part} */
enum { DY, GRAD_IN };

static void bind_grad(const cleat_node *node, cleat_binder *binder) {
    const slice_attr *attr = (const slice_attr *)node->attr;
    launch(binder, node, cleat_columns_of(node->in[DY], attr->at), cleat_accum(node, GRAD_IN, 0),
           cleat_columns_of(node->out[0], 0), cleat_width(node->out[0]));
}

static cleat_expected_value define_grad(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const slice_attr *attr = (const slice_attr *)node->attr;
    const int64_t width = cleat_width(node->out[0]);
    cleat_expected_value sum = cleat_define_begin(values, GRAD_IN + values->output, element);
    cleat_define_add(
        &sum, cleat_host_value(values, DY, element / width * cleat_width(node->in[DY]) + attr->at + element % width));
    return sum;
}

static const cleat_variant variants[] = {{.name = "runs", .bind = bind}, {0}};
static const cleat_variant grad_variants[] = {{.name = "runs", .bind = bind_grad}, {0}};

static const cleat_op concat_grad = {.name = "concat_grad",
                                     .cost = cost_grad,
                                     .variants = grad_variants,
                                     .define = define_grad,
                                     .inplace_inputs = CLEAT_IN(GRAD_IN)};

static void backward(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    int64_t *at = &((slice_attr *)node->attr)->at;
    for (int i = 0; i < node->n_in; *at += cleat_width(node->in[i]), ++i)
        cleat_emit_grads_of(graph, node, &concat_grad, &dout[0], GRAD_IN, &node->in[i], 1);
}

static const cleat_op concat = {.name = "concat",
                                .infer = infer,
                                .backward = backward,
                                .variants = variants,
                                .define = define,
                                .autocast_inputs = CLEAT_EVERY_INPUT};

cleat_tensor *cleat_concat(cleat_graph *graph, cleat_tensor *const *parts, int n) {
    if (n < 1 || n > MAX_PARTS) {
        cleat_graph_fail(graph, CLEAT_ERR_ARGUMENT, "concat: %d parts; the number must be 1 to %d", n, MAX_PARTS);
        return NULL;
    }
    return cleat_first_output(cleat_emit(graph, &concat, NULL, 0, parts, n));
}

/* --- chunk ---------------------------------------------------------------------------------------------------- */

typedef struct chunk_attr {
    int64_t parts;
} chunk_attr;

static int64_t parts_of(const cleat_node *node) {
    return ((const chunk_attr *)node->attr)->parts;
}

static cleat_status infer_chunk(cleat_node *node, cleat_error *error) {
    const cleat_tensor *x = node->in[0];
    const int64_t parts = parts_of(node);
    int64_t shape[CLEAT_MAX_RANK];
    cleat_status status = CLEAT_OK;
    if (!cleat_is_storage(x->dtype) || x->rank < 1 || cleat_width(x) % parts != 0 || cleat_rows(x) > CLEAT_MAX_ROWS ||
        cleat_width(x) > CLEAT_MAX_ROWS)
        return cleat_infer_fail(node, error,
                                "x is %s: it must be f32, f16 or bf16, at most 2^30 rows and columns, and its last "
                                "dimension a multiple of the %lld parts",
                                CLEAT_DESCRIBED(x), (long long)parts);
    memcpy(shape, x->shape, sizeof shape);
    shape[x->rank - 1] = cleat_width(x) / parts;
    for (int i = 0; i < parts && !status; ++i) status = cleat_set_output(node, i, x->dtype, x->rank, shape, error);
    return status;
}

static void bind_chunk(const cleat_node *node, cleat_binder *binder) {
    for (int i = 0; i < parts_of(node); ++i) {
        int64_t width = cleat_width(node->out[i]);
        launch(binder, node, cleat_columns_of(node->in[0], i * width), NULL, cleat_columns_of(node->out[i], 0), width);
    }
}

/* in = {gradients of the parts (NULL: zeros), accum}, out = {dx} */
static void bind_chunk_grad(const cleat_node *node, cleat_binder *binder) {
    const int parts = (int)parts_of(node);
    const int64_t width = cleat_width(node->out[0]) / parts;
    for (int i = 0; i < parts; ++i)
        launch(binder, node, cleat_columns_of(node->in[i], 0), cleat_accum(node, parts, 0),
               cleat_columns_of(node->out[0], i * width), width);
}

static cleat_expected_value define_chunk(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const int64_t width = cleat_width(node->out[values->output]);
    const int64_t at = element / width * cleat_width(node->in[0]) + values->output * width + element % width;
    return (cleat_expected_value){.value = cleat_host_value(values, 0, at)};
}

static cleat_expected_value define_chunk_grad(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const int parts = (int)parts_of(node);
    const int64_t all = cleat_width(node->out[0]), width = all / parts, column = element % all;
    cleat_expected_value sum = cleat_define_begin(values, parts + values->output, element);
    cleat_define_add(&sum, cleat_host_value(values, (int)(column / width), element / all * width + column % width));
    return sum;
}

static const cleat_variant chunk_variants[] = {{.name = "runs", .bind = bind_chunk}, {0}};
static const cleat_variant chunk_grad_variants[] = {{.name = "runs", .bind = bind_chunk_grad}, {0}};

static const cleat_op chunk_grad = {.name = "chunk_grad", .variants = chunk_grad_variants, .define = define_chunk_grad};

static void backward_chunk(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    cleat_emit_grads_of(graph, node, &chunk_grad, dout, (int)parts_of(node), &node->in[0], 1);
}

static const cleat_op chunk = {.name = "chunk",
                               .infer = infer_chunk,
                               .backward = backward_chunk,
                               .variants = chunk_variants,
                               .define = define_chunk,
                               .no_autocast = true};

bool cleat_chunk(cleat_graph *graph, cleat_tensor *x, int n, cleat_tensor **parts) {
    if (n < 1 || n > CLEAT_MAX_OUT) {
        cleat_graph_fail(graph, CLEAT_ERR_ARGUMENT, "chunk: %d parts; the number must be 1 to %d", n, CLEAT_MAX_OUT);
        return false;
    }
    cleat_node *node = cleat_emit(graph, &chunk, &(chunk_attr){n}, sizeof(chunk_attr), &x, 1);
    for (int i = 0; node && i < n; ++i) parts[i] = node->out[i];
    return node != NULL;
}
