/* The linear layer and its gradients against plain double-precision loops: tile edges, primes, few columns,
 * long sums, every variant; and the errors for invalid shapes. */
/* ctest: device slow cost=137 oclgrind=2@12 oclgrind=3@14 */
#include "harness.h"

#include "cleat/ops.h"

#include <math.h>
#include <string.h>

enum { B, L, K, N, BIAS, RESIDUAL, WEIGHT }; /* dims of a row: x [B, L, K], y [B, L, N] */
enum { WEIGHT_INPUT, WEIGHT_CONSTANT, WEIGHT_PARAM };

static void build(op_case *c) {
    const int64_t *d = c->dims;
    const int64_t x_shape[] = {d[B], d[L], d[K]}, w_shape[] = {d[N], d[K]}, y_shape[] = {d[B], d[L], d[N]};
    cleat_tensor *x = op_input(c, "x", c->storage, 3, x_shape, -1, 1), *weight;
    if (d[WEIGHT] == WEIGHT_PARAM)
        weight = op_weight(c, "weight", 2, w_shape, -1, 1);
    else if (d[WEIGHT] == WEIGHT_CONSTANT)
        weight = op_constant(c, "weight", c->storage, 2, w_shape, -1, 1);
    else
        weight = op_input(c, "weight", c->storage, 2, w_shape, -1, 1);
    cleat_tensor *bias = d[BIAS] ? op_param(c, "bias", 1, &d[N], -1, 1) : NULL;
    cleat_tensor *residual = d[RESIDUAL] ? op_input(c, "residual", c->storage, 3, y_shape, -1, 1) : NULL;
    op_output(c, cleat_linear(c->graph, x, weight, bias, residual));
}

static int residual_index(const op_case *c) {
    return c->dims[BIAS] ? 3 : 2;
}

static void reference(const op_case *c, const double *const *in, double *const *out) {
    const int64_t rows = c->dims[B] * c->dims[L], k = c->dims[K], n = c->dims[N];
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t j = 0; j < n; ++j) {
            double y = c->dims[BIAS] ? in[2][j] : 0;
            if (c->dims[RESIDUAL]) y += in[residual_index(c)][r * n + j];
            for (int64_t i = 0; i < k; ++i) y += op_operand(c, in[0][r * k + i]) * op_operand(c, in[1][j * k + i]);
            out[0][r * n + j] = y;
        }
}

static void gradient(const op_case *c, const double *const *in, const double *const *dout, double *const *din) {
    const int64_t rows = c->dims[B] * c->dims[L], k = c->dims[K], n = c->dims[N];
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t j = 0; j < n; ++j) {
            const double dy = dout[0][r * n + j];
            for (int64_t i = 0; i < k; ++i) {
                din[0][r * k + i] += op_operand(c, dy) * op_operand(c, in[1][j * k + i]);
                if (din[1]) din[1][j * k + i] += op_operand(c, dy) * op_operand(c, in[0][r * k + i]);
            }
            if (c->dims[BIAS]) din[2][j] += dy;
            if (c->dims[RESIDUAL]) din[residual_index(c)][r * n + j] += dy;
        }
}

/* Terms are at most 1. The running sum grows with the square root of its length, and so do its rounding
 * errors. */
static compare_tolerance tolerance(const op_case *c, int tensor, bool of_gradient) {
    const int64_t *d = c->dims;
    int64_t length = d[K];
    if (of_gradient) length = tensor == 0 ? d[N] : tensor == residual_index(c) ? 1 : d[B] * d[L];
    return (compare_tolerance){.scale = 1, .length = (double)length, .f32_units = 3 + 2 * sqrt((double)length)};
}

/* Rows for any storage type. */
static const op_row rows[] = {
    {1, 1, 1, 1},
    {1, 3, 1, 5, 1, 1},
    {1, 17, 17, 17, 1, 1},
    {1, 7, 31, 33, 0, 1, WEIGHT_CONSTANT},
    {3, 43, 100, 9, 1, 1},                   /* few columns, several blocks */
    {1, 65, 64, 64, 1, 1},                   /* one row more than a tile */
    {1, 150, 300, 140, 0, 1},                /* inner dimension larger than a panel */
    {1, 400, 150, 60, 1},                    /* the same in wide tiles, several blocks of rows */
    {1, 9, 1100, 35, 1, 1},                  /* the longest sums, with a bias: k is not split */
    {1, 9, 35, 1100, 0, 1},                  /* the same in the gradient of x */
    {5, 53, 131, 257, 1, 1},                 /* several blocks in both dimensions, primes */
    {1, 1300, 6, 18, 1},                     /* the gradient of the weight is a long sum: k is split */
    {1, 1027, 19, 3, 1, 0, WEIGHT_CONSTANT}, /* only the gradient of the bias */
    /* multiples of 8, several tiles, many steps: asynchronous copies */
    {2, 85, 200, 136, 1, 1},
    {1, 130, 720, 40, 1, 1}, /* with 2 compute units: two whole tiles, and one in parts */
};

/* Gradients of parameters accumulate in place, in f32 whatever the operands. */
static const op_row param_rows[] = {
    {1, 33, 34, 35, 1, 1, WEIGHT_PARAM},
    {1, 1100, 8, 40, 1, 1, WEIGHT_PARAM}, /* k is split, all extents multiples of 4 */
    {1, 5, 6, 7, 1, 1, WEIGHT_PARAM},
    {2, 9, 20, 33, 0, 0, WEIGHT_PARAM},
    {1, 150, 140, 90, 1, 0, WEIGHT_PARAM}, /* inner dimension larger than a panel, several tiles */
};

/* Rows for f32 only. */
static const op_row many_rows[] = {
    {3, 5500, 33, 65, 1, 0}, /* more rows than one call of CLBlast receives; no accum */
};

enum {
    ROWS = sizeof rows / sizeof *rows,
    PARAM_ROWS = sizeof param_rows / sizeof *param_rows,
    MANY_ROWS = sizeof many_rows / sizeof *many_rows
};

static const op_test tests[] = {
    {.op = "linear",
     .title = "linear",
     .rows = rows,
     .row_count = ROWS,
     .build = build,
     .reference = reference,
     .gradient = gradient,
     .tolerance = tolerance,
     .samples = 3},
    {.op = "linear",
     .title = "linear, parameters",
     .rows = param_rows,
     .row_count = PARAM_ROWS,
     .build = build,
     .reference = reference,
     .gradient = gradient,
     .tolerance = tolerance,
     .samples = 3},
    {.op = "linear",
     .title = "linear, many rows",
     .rows = many_rows,
     .row_count = MANY_ROWS,
     .build = build,
     .reference = reference,
     .gradient = gradient,
     .tolerance = tolerance,
     .samples = 3,
     .only = 1u << CLEAT_F32},
};

/* --- shapes that do not fit ----------------------------------------------------------------------------------- */

typedef struct misfit {
    int64_t weight_columns, bias_extent, residual_columns;
    cleat_dtype weight_dtype;
    const char *says; /* expected part of the message */
} misfit;

static void rejects_misfits(void **state) {
    (void)state;
    static const misfit misfits[] = {
        {5, 3, 3, CLEAT_F32, "fan_in"},
        {4, 3, 3, CLEAT_F16, "type"},
        {4, 2, 3, CLEAT_F32, "bias"},
        {4, 3, 4, CLEAT_F32, "residual"},
    };
    for (size_t i = 0; i < sizeof misfits / sizeof *misfits; ++i) {
        const misfit *m = &misfits[i];
        cleat_graph *graph = op_graph();
        cleat_tensor *x = cleat_input(graph, "x", CLEAT_F32, 2, (int64_t[]){2, 4});
        cleat_tensor *weight = cleat_input(graph, "w", m->weight_dtype, 2, (int64_t[]){3, m->weight_columns});
        cleat_tensor *bias = cleat_input(graph, "b", CLEAT_F32, 1, (int64_t[]){m->bias_extent});
        cleat_tensor *residual = cleat_input(graph, "r", CLEAT_F32, 2, (int64_t[]){2, m->residual_columns});
        assert_null(cleat_linear(graph, x, weight, bias, residual));
        op_graph_refused(graph, CLEAT_ERR_SHAPE, "linear", m->says);
    }
}

int main(void) {
    const struct CMUnitTest extra[] = {cmocka_unit_test(rejects_misfits)};
    return op_main(tests, sizeof tests / sizeof *tests, extra, sizeof extra / sizeof *extra);
}
