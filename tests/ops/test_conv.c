/* Convolution and its gradients against plain double-precision loops: borders, strides, non-overlapping
 * patches, few and many channels, every variant; and the errors for invalid shapes. */
/* ctest: device slow cost=132 oclgrind=0@29 */
#include "harness.h"

#include "cleat/ops.h"

#include <math.h>
#include <string.h>

enum { B, H, W, C, N, R, S, STRIDE, PADDING, FLAGS }; /* dims of a row: x [B, H, W, C], weight [N, R, S, C] */
/* flags: with bias; weight is a parameter or a constant, otherwise an input */
enum { BIAS = 1, PARAM = 2, CONSTANT = 4 };

typedef struct extents {
    int64_t p, q;
} extents;

static extents output_of(const int64_t *d) {
    return (extents){(d[H] + 2 * d[PADDING] - d[R]) / d[STRIDE] + 1, (d[W] + 2 * d[PADDING] - d[S]) / d[STRIDE] + 1};
}

static void build(op_case *c) {
    const int64_t *d = c->dims;
    const int64_t x_shape[] = {d[B], d[H], d[W], d[C]}, w_shape[] = {d[N], d[R], d[S], d[C]};
    cleat_tensor *x = op_input(c, "x", c->storage, 4, x_shape, -1, 1), *weight;
    if (d[FLAGS] & PARAM)
        weight = op_weight(c, "weight", 4, w_shape, -1, 1);
    else if (d[FLAGS] & CONSTANT)
        weight = op_constant(c, "weight", c->storage, 4, w_shape, -1, 1);
    else
        weight = op_input(c, "weight", c->storage, 4, w_shape, -1, 1);
    cleat_tensor *bias = d[FLAGS] & BIAS ? op_param(c, "bias", 1, &d[N], -1, 1) : NULL;
    op_output(c, cleat_conv2d(c->graph, x, weight, bias, d[STRIDE], d[PADDING]));
}

/* Calls `visit` for every pair of runs of C elements that are multiplied, one of x and one of the weight, for
 * output (pixel, n). */
typedef void visit_taps(const op_case *c, const double *const *in, const double *const *dout, double *const *out,
                        int64_t y_at, int64_t x_at, int64_t weight_at);

static void for_taps(const op_case *c, visit_taps *visit, const double *const *in, const double *const *dout,
                     double *const *out) {
    const int64_t *d = c->dims;
    const extents e = output_of(d);
    for (int64_t m = 0; m < d[B] * e.p * e.q; ++m)
        for (int64_t r = 0; r < d[R]; ++r)
            for (int64_t s = 0; s < d[S]; ++s) {
                const int64_t b = m / (e.p * e.q), h = m / e.q % e.p * d[STRIDE] + r - d[PADDING],
                              w = m % e.q * d[STRIDE] + s - d[PADDING];
                if (h < 0 || h >= d[H] || w < 0 || w >= d[W]) continue;
                for (int64_t n = 0; n < d[N]; ++n)
                    visit(c, in, dout, out, m * d[N] + n, ((b * d[H] + h) * d[W] + w) * d[C],
                          ((n * d[R] + r) * d[S] + s) * d[C]);
            }
}

static void add_product(const op_case *c, const double *const *in, const double *const *dout, double *const *out,
                        int64_t y_at, int64_t x_at, int64_t weight_at) {
    (void)dout;
    for (int64_t i = 0; i < c->dims[C]; ++i)
        out[0][y_at] += op_operand(c, in[0][x_at + i]) * op_operand(c, in[1][weight_at + i]);
}

static void add_gradients(const op_case *c, const double *const *in, const double *const *dout, double *const *din,
                          int64_t y_at, int64_t x_at, int64_t weight_at) {
    const double dy = op_operand(c, dout[0][y_at]);
    for (int64_t i = 0; i < c->dims[C]; ++i) {
        din[0][x_at + i] += dy * op_operand(c, in[1][weight_at + i]);
        if (din[1]) din[1][weight_at + i] += dy * op_operand(c, in[0][x_at + i]);
    }
}

static int64_t pixels_of(const int64_t *d) {
    return d[B] * output_of(d).p * output_of(d).q;
}

static void reference(const op_case *c, const double *const *in, double *const *out) {
    const int64_t n = c->dims[N];
    for (int64_t i = 0; i < pixels_of(c->dims) * n; ++i) out[0][i] = c->dims[FLAGS] & BIAS ? in[2][i % n] : 0;
    for_taps(c, add_product, in, NULL, out);
}

static void gradient(const op_case *c, const double *const *in, const double *const *dout, double *const *din) {
    const int64_t n = c->dims[N];
    for_taps(c, add_gradients, in, dout, din);
    for (int64_t i = 0; c->dims[FLAGS] & BIAS && i < pixels_of(c->dims) * n; ++i) din[2][i % n] += dout[0][i];
}

/* Whether Winograd's algorithm computes the node of this op in the case's graph. */
static bool by_winograd(const op_case *c, const char *op) {
    const cleat_device_facts facts = op_facts(c->shape);
    for (size_t i = 0; i < c->graph->node_count; ++i) {
        const cleat_node *node = c->graph->nodes[i];
        if (strcmp(node->op->name, op) != 0) continue;
        const cleat_variant *variant = op_variant(c->test->op, c->variant, node, &facts);
        return variant && strcmp(variant->name, "winograd") == 0;
    }
    return false;
}

/* Terms are at most 1. The running sum grows with the square root of its length, and so do its rounding errors.
 *
 * Winograd's algorithm has sums at 25 or 36 points; the root mean square of their terms is `growth` times as
 * large (cl/conv/winograd.clh), but the sums are shorter: 9 or 16 products at once. The transforms before and
 * after add 5 roundings, as the root of 24. */
static compare_tolerance tolerance(const op_case *c, int tensor, bool of_gradient) {
    static const double growth_of_y[] = {[2] = 9.5, [3] = 7.2, [4] = 6}, growth_of_dw[] = {[2] = 6, [3] = 6, [4] = 7.2};
    const int64_t *d = c->dims;
    const extents e = output_of(d);
    const char *op = !of_gradient ? "conv2d" : tensor == 0 ? "conv2d_dx" : "conv2d_dw";
    int64_t length = d[R] * d[S] * d[C];
    if (of_gradient) length = tensor == 0 ? d[R] * d[S] * d[N] : pixels_of(d);
    if ((of_gradient && tensor >= 2) || !by_winograd(c, op))
        return (compare_tolerance){.scale = 1, .length = (double)length, .f32_units = 3 + 2 * sqrt((double)length)};

    const int64_t taps = d[STRIDE] == 1 ? d[R] : (d[R] + 1) / 2, side = taps == 4 ? 3 : 4;
    const bool dw = of_gradient && tensor == 1;
    int64_t sums = d[C] * d[STRIDE] * d[STRIDE];
    if (of_gradient) sums = dw ? d[B] * ((e.p + side - 1) / side) * ((e.q + side - 1) / side) : d[N];
    return (compare_tolerance){.scale = dw ? growth_of_dw[taps] : growth_of_y[taps],
                               .length = (double)length,
                               .f32_units = 8 + 2 * sqrt((double)sums)};
}

/* Rows for any storage type. */
static const op_row rows[] = {
    {1, 4, 5, 3, 5, 3, 3, 1, 1, BIAS},     /* the common case, small */
    {2, 5, 3, 2, 3, 3, 2, 2, 1, BIAS},     /* stride: pixels with 1, 2 and 4 taps */
    {1, 2, 3, 1, 17, 3, 3, 1, 1},          /* an image smaller than the kernel */
    {2, 7, 8, 3, 5, 2, 3, 3, 1, CONSTANT}, /* pixels outside every patch */
    {1, 11, 12, 3, 33, 7, 7, 2, 3, BIAS},  /* a stem convolution */
    {1, 6, 7, 17, 19, 3, 3, 1, 2, BIAS},   /* output larger than the image */
    {1, 4, 5, 64, 62, 3, 3, 1, 1, BIAS},   /* inner dimension larger than a panel */
    {1, 5, 4, 36, 126, 3, 3, 2, 1},        /* the same with phases */
    {2, 9, 13, 35, 50, 3, 3, 1, 1, BIAS},  /* Winograd's tiles: partial, and several vectors of channels */
    {11, 2, 2, 64, 96, 3, 3, 1, 1, BIAS},  /* on CPUs ordered by position: five ninths of the taps are outside */
    {9, 4, 3, 64, 64, 3, 3, 2, 1, BIAS},   /* the same, with phases */
    {2, 15, 18, 32, 50, 3, 3, 2, 1, BIAS}, /* Winograd's blocks of pixels: partial tiles and blocks */
    {1, 16, 17, 48, 32, 3, 3, 2, 2},       /* the same with even padding: the blocks of dx begin before the image */
    {1, 14, 16, 16, 48, 5, 5, 2, 2, BIAS}, /* 3 taps per phase */
    {1, 13, 15, 32, 20, 7, 7, 2, 3},       /* 4 taps per phase */
};

/* Gradients of parameters accumulate in place, in f32 whatever the operands. */
static const op_row param_rows[] = {
    {1, 5, 6, 3, 4, 3, 3, 1, 1, BIAS | PARAM},     {1, 4, 5, 8, 20, 3, 3, 2, 1, PARAM}, /* whole vec4s */
    {2, 26, 25, 3, 10, 3, 3, 1, 1, BIAS | PARAM},  /* the sum over pixels is split */
    {1, 2, 3, 5, 270, 2, 2, 1, 1, BIAS | PARAM},   /* several blocks of filters */
    {9, 16, 17, 16, 80, 3, 3, 1, 2, BIAS | PARAM}, /* Winograd: several splits, tiles and filters; no padding of dx */
    {6, 37, 36, 3, 80, 7, 7, 2, 3, BIAS | PARAM},  /* the same of a stem: a vector has both pixels of a block's row */
};

/* Channels and features are multiples of 8, as matrix units require. */
static const op_row vec8_rows[] = {
    {1, 5, 4, 8, 24, 1, 1, 1, 0, BIAS | PARAM},   /* 1 x 1 kernel */
    {2, 7, 5, 8, 16, 3, 3, 2, 1, BIAS | PARAM},   /* phases */
    {1, 5, 6, 24, 8, 3, 3, 1, 1, PARAM},          /* a row of the kernel is not a whole number of steps */
    {1, 7, 8, 16, 8, 2, 2, 3, 1},                 /* pixels outside every patch: phases without taps */
    {2, 26, 25, 8, 16, 3, 2, 1, 1, BIAS | PARAM}, /* the sum over pixels is split */
    {1, 9, 8, 16, 72, 3, 3, 1, 1, BIAS},          /* several tiles, full and partial */
};

/* Rows for f32 only. */
static const op_row f32_rows[] = {
    {1, 1, 1, 1, 1, 1, 1, 1, 0},                    /* one element */
    {1, 9, 5, 16, 3, 1, 1, 2, 0, BIAS},             /* every second pixel */
    {1, 8, 8, 4, 40, 4, 4, 4, 0},                   /* non-overlapping patches */
    {1, 5, 6, 64, 64, 1, 1, 1, 0, CONSTANT | BIAS}, /* only the gradient of the bias */
    {1, 41, 40, 3, 16, 5, 3, 2, 2, PARAM},          /* the sum over pixels is split, with a stride */
    {3, 6, 8, 3, 126, 3, 3, 1, 1, BIAS | PARAM},    /* several panels per block */
    {1, 3, 3, 64, 160, 3, 3, 1, 1, BIAS | PARAM},   /* few pixels, large weight */
    {1, 29, 30, 80, 65, 3, 3, 1, 0, PARAM},         /* Winograd: several chunks and blocks of channels, no padding */
    {9, 35, 32, 80, 70, 3, 3, 2, 0, PARAM},         /* the same of blocks */
    {1, 29, 29, 64, 128, 3, 3, 2, 1, BIAS},         /* a chunk has only one phase, whose points are omitted */
};

enum {
    ROWS = sizeof rows / sizeof *rows,
    PARAM_ROWS = sizeof param_rows / sizeof *param_rows,
    VEC8_ROWS = sizeof vec8_rows / sizeof *vec8_rows,
    F32_ROWS = sizeof f32_rows / sizeof *f32_rows
};

static const op_test tests[] = {
    {.op = "conv2d",
     .title = "conv2d",
     .rows = rows,
     .row_count = ROWS,
     .build = build,
     .reference = reference,
     .gradient = gradient,
     .tolerance = tolerance,
     .samples = 3},
    {.op = "conv2d",
     .title = "conv2d, parameters",
     .rows = param_rows,
     .row_count = PARAM_ROWS,
     .build = build,
     .reference = reference,
     .gradient = gradient,
     .tolerance = tolerance,
     .samples = 3},
    {.op = "conv2d",
     .title = "conv2d, vec8s",
     .rows = vec8_rows,
     .row_count = VEC8_ROWS,
     .build = build,
     .reference = reference,
     .gradient = gradient,
     .tolerance = tolerance,
     .samples = 3},
    {.op = "conv2d",
     .title = "conv2d, f32",
     .rows = f32_rows,
     .row_count = F32_ROWS,
     .build = build,
     .reference = reference,
     .gradient = gradient,
     .tolerance = tolerance,
     .samples = 3,
     .only = 1u << CLEAT_F32},
};

/* --- shapes that do not fit ----------------------------------------------------------------------------------- */

typedef struct misfit {
    int64_t x[4], weight[4], bias, stride, padding;
    cleat_dtype weight_dtype;
    const char *says; /* expected part of the message */
} misfit;

static void rejects_misfits(void **state) {
    (void)state;
    static const misfit misfits[] = {
        {{1, 8, 8, 4}, {3, 3, 3, 5}, 3, 1, 1, CLEAT_F32, "[N, R, S, C]"},
        {{1, 8, 8, 4}, {3, 3, 3, 4}, 3, 1, 1, CLEAT_F16, "type"},
        {{1, 8, 8, 4}, {3, 3, 3, 4}, 4, 1, 1, CLEAT_F32, "bias"},
        {{1, 8, 8, 4}, {3, 3, 3, 4}, 3, 0, 1, CLEAT_F32, "stride 0"},
        {{1, 8, 8, 4}, {3, 3, 3, 4}, 3, 33, 1, CLEAT_F32, "stride 33"},
        {{1, 40, 40, 1}, {1, 33, 1, 1}, 1, 1, 0, CLEAT_F32, "kernel 33 x 1"},
        {{1, 8, 8, 4}, {3, 3, 3, 4}, 3, 1, -1, CLEAT_F32, "padding -1"},
        {{1, 8, 8, 4}, {3, 3, 2, 4}, 3, 1, 2, CLEAT_F32, "padding 2"},
        {{1, 8, 2, 4}, {3, 3, 3, 4}, 3, 1, 0, CLEAT_F32, "8 x 2 with padding 0 is smaller"},
        {{1 << 12, 1 << 10, 1 << 10, 1}, {1, 1, 1, 1}, 1, 1, 0, CLEAT_F32, "pixels"},
    };
    for (size_t i = 0; i < sizeof misfits / sizeof *misfits; ++i) {
        const misfit *m = &misfits[i];
        cleat_graph *graph = op_graph();
        cleat_tensor *x = cleat_input(graph, "x", CLEAT_F32, 4, m->x);
        cleat_tensor *weight = cleat_input(graph, "w", m->weight_dtype, 4, m->weight);
        cleat_tensor *bias = cleat_input(graph, "b", CLEAT_F32, 1, &m->bias);
        assert_null(cleat_conv2d(graph, x, weight, bias, m->stride, m->padding));
        op_graph_refused(graph, CLEAT_ERR_SHAPE, "conv2d", m->says);
    }
}

int main(void) {
    const struct CMUnitTest extra[] = {cmocka_unit_test(rejects_misfits)};
    return op_main(tests, sizeof tests / sizeof *tests, extra, sizeof extra / sizeof *extra);
}
