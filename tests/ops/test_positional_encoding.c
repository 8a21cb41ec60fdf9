/* Sinusoidal positional encoding, from the start or from both ends, including positions whose angles are
 * thousands of radians. */
/* ctest: device oclgrind=2 */
#include "harness.h"

#include "cleat/ops.h"

#include <math.h>

/* dims: batch, length, width, with lengths */
static void build(op_case *c) {
    const int64_t *d = c->dims, shape[] = {d[0], d[1], d[2]};
    cleat_tensor *x = op_input(c, "x", c->storage, 3, shape, -1, 1);
    cleat_tensor *lengths = d[3] ? op_constant(c, "lengths", CLEAT_I32, 1, d, 1, (double)d[1]) : NULL;
    op_output(c, cleat_positional_encoding(c->graph, x, lengths));
}

static double wave(int64_t position, int64_t column, int64_t width) {
    double angle = (double)position * pow(10000.0, -(double)(column / 2 * 2) / (double)width);
    return column % 2 ? cos(angle) : sin(angle);
}

static void reference(const op_case *c, const double *const *in, double *const *out) {
    int64_t length = c->dims[1], width = c->dims[2], half = c->dims[3] ? width / 2 : width;
    for (int64_t i = 0; i < c->dims[0] * length * width; ++i) {
        int64_t column = i % width, l = i / width % length, b = i / width / length;
        if (column >= half) l = in[1][b] - 1 - (double)l > 0 ? (int64_t)in[1][b] - 1 - l : 0;
        out[0][i] = in[0][i] + wave(l, column % half, half);
    }
}

static void gradient(const op_case *c, const double *const *in, const double *const *dout, double *const *din) {
    (void)in;
    for (int64_t i = 0; i < c->dims[0] * c->dims[1] * c->dims[2]; ++i) din[0][i] += dout[0][i];
}

/* The sine is accurate to 5 units of 1 (cl/positional_encoding.cl) at every position; one sum of numbers
 * below 1 follows. */
static compare_tolerance tolerance(const op_case *c, int tensor, bool is_gradient) {
    (void)c, (void)tensor, (void)is_gradient;
    return (compare_tolerance){.scale = 2, .length = 1, .f32_units = 3};
}

/* dims: as above, and the table's number of rows. The tokens -1 and that number have rows of zeros. */
static void build_embedded(op_case *c) {
    const int64_t *d = c->dims, shape[] = {d[0], d[1]}, table[] = {d[4], d[2]};
    cleat_tensor *tokens = op_constant(c, "tokens", CLEAT_I32, 2, shape, -1, (double)d[4]);
    cleat_tensor *rows = op_param(c, "table", 2, table, -1, 1);
    cleat_tensor *lengths = d[3] ? op_constant(c, "lengths", CLEAT_I32, 1, d, 1, (double)d[1]) : NULL;
    op_output(c, cleat_positional_encoding(c->graph, cleat_embedding(c->graph, tokens, rows, c->storage), lengths));
}

static void reference_embedded(const op_case *c, const double *const *in, double *const *out) {
    int64_t length = c->dims[1], width = c->dims[2], half = c->dims[3] ? width / 2 : width;
    for (int64_t i = 0; i < c->dims[0] * length * width; ++i) {
        int64_t column = i % width, l = i / width % length, b = i / width / length, token = (int64_t)in[0][i / width];
        if (column >= half) l = in[2][b] - 1 - (double)l > 0 ? (int64_t)in[2][b] - 1 - l : 0;
        double x = token >= 0 && token < c->dims[4] ? in[1][token * width + column] : 0;
        out[0][i] = x + wave(l, column % half, half);
    }
}

static void gradient_embedded(const op_case *c, const double *const *in, const double *const *dout,
                              double *const *din) {
    const int64_t width = c->dims[2];
    for (int64_t i = 0; i < c->dims[0] * c->dims[1] * width; ++i) {
        const int64_t token = (int64_t)in[0][i / width];
        if (token >= 0 && token < c->dims[4]) din[1][token * width + i % width] += dout[0][i];
    }
}

/* The gradient of a row of the table sums up to B L numbers of random sign below 1. */
static compare_tolerance tolerance_embedded(const op_case *c, int tensor, bool is_gradient) {
    const double terms = is_gradient ? (double)(c->dims[0] * c->dims[1]) : 1;
    (void)tensor;
    return (compare_tolerance){.scale = is_gradient ? sqrt(terms) : 2, .length = terms, .f32_units = 3};
}

static const op_row embedded_rows[] = {
    {1, 1, 2, 0, 3}, {2, 3, 18, 0, 5}, {3, 37, 64, 0, 9}, {2, 5, 4, 1, 4}, {3, 37, 20, 1, 30}};

static const op_row rows[] = {{1, 1, 2},     {2, 3, 18},   {3, 37, 64},    {1, 4096, 40},
                              {2, 130, 270}, {2, 5, 4, 1}, {3, 37, 20, 1}, {2, 1200, 64, 1}};

static const op_test tests[] = {{.op = "positional_encoding",
                                 .rows = rows,
                                 .row_count = sizeof rows / sizeof rows[0],
                                 .build = build,
                                 .reference = reference,
                                 .gradient = gradient,
                                 .tolerance = tolerance,
                                 .samples = 2},
                                {.op = "embedding_positional",
                                 .title = "positions of an embedding",
                                 .rows = embedded_rows,
                                 .row_count = sizeof embedded_rows / sizeof embedded_rows[0],
                                 .build = build_embedded,
                                 .reference = reference_embedded,
                                 .gradient = gradient_embedded,
                                 .tolerance = tolerance_embedded,
                                 .samples = 2}};

int main(void) {
    return op_main(tests, sizeof tests / sizeof *tests, NULL, 0);
}
