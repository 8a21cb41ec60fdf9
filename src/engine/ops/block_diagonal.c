/* Blocks of a matrix on the diagonal of another, times a constant: B of the adapters of a stacked linear layer. */
#include "cleat/ops.h"
#include "ops/lib/count.h"
#include "ops/lib/define.h"
#include "ops/lib/shared.h"

enum { MAX_PLACES = 7, PLACE_BITS = 4 };

typedef struct block_attr {
    float factor;
    int32_t parts, places;
    int32_t where; /* PLACE_BITS bits of each block: block q lies in place where >> 4 q & 15 */
    cleat_dtype storage;
} block_attr;

static const block_attr *attr_of(const cleat_node *node) {
    return (const block_attr *)node->attr;
}

static cleat_status infer(cleat_node *node, cleat_error *error) {
    const cleat_tensor *x = node->in[0];
    const block_attr *attr = attr_of(node);
    if (x->dtype != CLEAT_F32 || x->rank != 2 || x->shape[0] % attr->parts != 0 ||
        x->shape[0] > CLEAT_MAX_ROWS / MAX_PLACES || x->shape[1] > CLEAT_MAX_ROWS / MAX_PLACES)
        return cleat_infer_fail(node, error, "the blocks are %s: they must be f32 [%d * side, rank], at most 2^27 rows",
                                CLEAT_DESCRIBED(x), attr->parts);
    const int64_t shape[2] = {x->shape[0] / attr->parts * attr->places, x->shape[1] * attr->parts};
    return cleat_set_output(node, 0, attr->storage, 2, shape, error);
}

/* `blocks`: the tensor with the shape of x; rows: of the result. */
static void launch_sizes(cleat_binder *binder, const cleat_node *node, const cleat_tensor *blocks,
                         const cleat_tensor *result) {
    const block_attr *attr = attr_of(node);
    cleat_launch_f32(binder, "factor", attr->factor);
    CLEAT_LAUNCH_I32(binder, {"where", attr->where}, {"parts", attr->parts}, {"side", blocks->shape[0] / attr->parts},
                     {"rank", blocks->shape[1]}, {"rows", result->shape[0]});
    cleat_launch_items(binder, result->shape[0]);
}

static void bind(const cleat_node *node, cleat_binder *binder) {
    cleat_launch_kernel(binder, node, "block_diagonal.cl", "block_diagonal_spread", node->out[0]->dtype);
    CLEAT_LAUNCH_TENSORS(binder, node->in[0], node->out[0]);
    launch_sizes(binder, node, node->in[0], node->out[0]);
}

/* The place of block q. */
static int64_t place_of(const block_attr *attr, int64_t q) {
    return attr->where >> PLACE_BITS * q & ((1 << PLACE_BITS) - 1);
}

static cleat_expected_value define(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const block_attr *attr = attr_of(node);
    const int64_t rank = node->in[0]->shape[1], side = node->in[0]->shape[0] / attr->parts;
    const int64_t row = element / (rank * attr->parts), column = element % (rank * attr->parts), q = column / rank;
    if (place_of(attr, q) != row / side) return (cleat_expected_value){.value = 0};
    const int64_t at = (q * side + row % side) * rank + column % rank;
    const double value = (double)attr->factor * cleat_host_value(values, 0, at);
    return (cleat_expected_value){.value = value, .size = fabs(value)};
}

/* in = {dy, accum}, out = {dx} */
enum { DY, GRAD_IN };

static void bind_grad(const cleat_node *node, cleat_binder *binder) {
    cleat_launch_kernel(binder, node, "block_diagonal.cl", "block_diagonal_collect", node->in[DY]->dtype);
    CLEAT_LAUNCH_TENSORS(binder, node->in[DY], cleat_accum(node, GRAD_IN, 0), node->out[0]);
    launch_sizes(binder, node, node->out[0], node->out[0]);
}

static cleat_expected_value define_grad(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const block_attr *attr = attr_of(node);
    const int64_t rank = node->out[0]->shape[1], side = node->out[0]->shape[0] / attr->parts;
    const int64_t q = element / (side * rank), row = element / rank % side, column = element % rank;
    const int64_t at = (place_of(attr, q) * side + row) * rank * attr->parts + q * rank + column;
    cleat_expected_value sum = cleat_define_begin(values, GRAD_IN + values->output, element);
    cleat_define_add(&sum, (double)attr->factor * cleat_host_value(values, DY, at));
    return sum;
}

static const cleat_variant variants[] = {{.name = "rows", .bind = bind}, {0}};
static const cleat_variant grad_variants[] = {{.name = "rows", .bind = bind_grad}, {0}};

static const cleat_op block_diagonal_grad = {.name = "block_diagonal_grad",
                                             .flops = 1,
                                             .variants = grad_variants,
                                             .define = define_grad,
                                             .inplace_inputs = CLEAT_IN(GRAD_IN)};

static void backward(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    cleat_emit_grads_of(graph, node, &block_diagonal_grad, &dout[0], GRAD_IN, &node->in[0], 1);
}

static const cleat_attribute attributes[] = {CLEAT_ATTRIBUTE(block_attr, factor, CLEAT_ATTRIBUTE_F32),
                                             CLEAT_ATTRIBUTE(block_attr, parts, CLEAT_ATTRIBUTE_I32),
                                             CLEAT_ATTRIBUTE(block_attr, places, CLEAT_ATTRIBUTE_I32),
                                             CLEAT_ATTRIBUTE(block_attr, where, CLEAT_ATTRIBUTE_I32),
                                             {.name = NULL}};

static const cleat_op block_diagonal = {.name = "block_diagonal",
                                        .infer = infer,
                                        .backward = backward,
                                        .flops = 1,
                                        .variants = variants,
                                        .define = define,
                                        .attributes = attributes};

cleat_tensor *cleat_block_diagonal(cleat_graph *graph, cleat_tensor *x, const cleat_block_diagonal_spec *spec) {
    const int places = spec->places;
    int parts = 0;
    block_attr attr = {.factor = spec->factor, .places = places, .storage = spec->storage};
    bool good = places >= 1 && places <= MAX_PLACES && cleat_is_storage(spec->storage);
    for (int s = 0; good && s < places; ++s)
        if (spec->used & 1u << s) attr.where |= s << PLACE_BITS * parts++;
    attr.parts = parts;
    if (!good || parts == 0 || spec->used >> places) {
        cleat_graph_fail(graph, CLEAT_ERR_ARGUMENT,
                         "block_diagonal: places %x of %d, or the type: there must be 1 to %d places, some used",
                         spec->used, places, MAX_PLACES);
        return NULL;
    }
    return cleat_first_output(cleat_emit(graph, &block_diagonal, &attr, sizeof attr, &x, 1));
}
