/* Sinusoidal positional encoding, added to x. The gradient is dy. */
#include "cleat/ops.h"
#include "ops/fusible.h"
#include "ops/lib/count.h"
#include "ops/lib/define.h"
#include "ops/lib/shared.h"

#include <math.h>

/* Samples for which a work-item of a GPU computes an encoding, if fewer would be enough to keep all busy. */
enum { SHARE = 8 };

enum { X = CLEAT_POSITIONAL_X, LENGTHS = CLEAT_POSITIONAL_LENGTHS, FORWARD_IN };

static cleat_status infer(cleat_node *node, cleat_error *error) {
    const cleat_tensor *x = node->in[X];
    if (!cleat_is_storage(x->dtype) || x->rank < 2)
        return cleat_infer_fail(node, error, "x is %s, it must be f32, f16 or bf16 [..., L, D]", CLEAT_DESCRIBED(x));
    if (x->shape[x->rank - 2] > 1 << 20 || x->shape[x->rank - 1] > 1 << 20)
        return cleat_infer_fail(node, error,
                                "positions are sufficiently accurate only up to a length and width of 2^20");
    int64_t batch[] = {cleat_rows(x) / x->shape[x->rank - 2]}, width = cleat_width(x);
    cleat_status status =
        node->in[LENGTHS] ? cleat_expect(node, LENGTHS, "lengths", CLEAT_I32, 1, batch, error) : CLEAT_OK;
    if (status) return status;
    if (width % (node->in[LENGTHS] ? 4 : 2))
        return cleat_infer_fail(node, error, "%lld columns; sine and cosine alternate%s: it must be a multiple of %d",
                                (long long)width, node->in[LENGTHS] ? " in each half" : "", node->in[LENGTHS] ? 4 : 2);
    return cleat_set_output(node, 0, x->dtype, x->rank, x->shape, error);
}

static cleat_cost cost(const cleat_node *node) {
    return cleat_elementwise_cost(node, node->in[LENGTHS] ? 400 : 1); /* computed per sample, or read from one table */
}

const char *cleat_positional_refuse(const cleat_node *node, const cleat_device_facts *facts) {
    (void)node;
    return facts->vector_width % 2 ? "sine and cosine alternate: the vector width must be even" : NULL;
}

static void start(cleat_binder *binder, const cleat_node *node) {
    cleat_launch_vector_kernel(binder, node, "positional_encoding.cl", "positional_encoding_add", node->out[0]->dtype,
                               cleat_width(node->out[0]));
}

/* The arguments after x. */
static void finish(cleat_binder *binder, const cleat_tensor *lengths, const cleat_tensor *y) {
    int64_t width = cleat_width(y), length = y->shape[y->rank - 2], batch = cleat_rows(y) / length;
    int64_t half_width = lengths ? width / 2 : width;
    double ratio = pow(10000.0, -2.0 / (double)half_width);
    float ratio_hi = (float)ratio;
    CLEAT_LAUNCH_TENSORS(binder, lengths, y);
    CLEAT_LAUNCH_I32(binder, {"batch", batch}, {"length", length}, {"width", width}, {"half_width", half_width});
    cleat_launch_f32(binder, "ratio_hi", ratio_hi);
    cleat_launch_f32(binder, "ratio_lo", (float)(ratio - (double)ratio_hi));
    if (binder->facts->work_group == 1)
        cleat_launch_items(binder, length);
    else
        cleat_launch_items(binder, length * ceil_div(width, binder->facts->vector_width) * ceil_div(batch, SHARE));
}

static void bind(const cleat_node *node, cleat_binder *binder) {
    start(binder, node);
    cleat_launch_tensor(binder, node->in[X]);
    finish(binder, node->in[LENGTHS], node->out[0]);
}

void cleat_launch_embedded_positions(cleat_binder *binder, const cleat_node *node, const cleat_tensor *tokens,
                                     const cleat_tensor *table, const cleat_tensor *lengths) {
    start(binder, node);
    cleat_launch_define(binder, "EMBEDDED", 1);
    cleat_launch_table(binder, table);
    CLEAT_LAUNCH_TENSORS(binder, tokens, table);
    cleat_launch_i32(binder, "vocabulary", (int32_t)table->shape[0]);
    finish(binder, lengths, node->out[0]);
}

double cleat_positional_value(const cleat_tensor *y, const int32_t *lengths, int64_t element) {
    const int64_t width = cleat_width(y), length = y->shape[y->rank - 2], row = element / width;
    const int64_t half = lengths ? width / 2 : width;
    int64_t column = element % width, position = row % length;
    if (column >= half) {
        const int64_t back = lengths[row / length] - 1 - position;
        column -= half;
        position = back > 0 ? back : 0;
    }
    const double angle = (double)position * pow(10000.0, -2.0 * (double)(column / 2) / (double)half);
    return column % 2 ? cos(angle) : sin(angle);
}

static cleat_expected_value define(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const double x = cleat_host_value(values, X, element);
    return (cleat_expected_value){.value = x + cleat_positional_value(node->out[0], values->in[LENGTHS].i, element),
                                  .size = fabs(x) + 1};
}

static const cleat_variant variants[] = {{.name = "waves", .refuse = cleat_positional_refuse, .bind = bind}, {0}};

static void backward(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    cleat_pass_grad(graph, node->in[X], dout[0]);
}

const cleat_op cleat_positional_encoding_op = {.name = "positional_encoding",
                                               .optional_inputs = CLEAT_IN(LENGTHS),
                                               .infer = infer,
                                               .backward = backward,
                                               .cost = cost,
                                               .variants = variants,
                                               .define = define,
                                               .inplace_inputs = CLEAT_IN(X),
                                               .autocast_inputs = CLEAT_IN(X)};

cleat_tensor *cleat_positional_encoding(cleat_graph *graph, cleat_tensor *x, cleat_tensor *lengths) {
    cleat_tensor *in[FORWARD_IN] = {[X] = x, [LENGTHS] = lengths};
    return cleat_first_output(cleat_emit(graph, &cleat_positional_encoding_op, NULL, 0, in, FORWARD_IN));
}
