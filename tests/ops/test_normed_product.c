/* A convolution or linear layer and the batch normalisation of its result as one node, on CPUs: blocks with several parts,
 * partial tiles and panels, samples that do not count, residuals, values far from 0; which graphs are fused. The harness
 * also compares every output with its definition, so the product and what is saved for the gradient. */
#include "harness.h"

#include "cleat/ops.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* x [BATCH, SIDE, SIDE, CHANNELS], weight [FEATURES, KERNEL, KERNEL, CHANNELS]; KERNEL 0: a linear layer with weight
 * [FEATURES, CHANNELS]; SAMPLES: that count, 0: all; OFFSET: of the bias */
enum { BATCH, SIDE, CHANNELS, FEATURES, KERNEL, STRIDE, SAMPLES, RESIDUAL, RELU, OFFSET };
enum { X, WEIGHT, BIAS, GAMMA, BETA, SAMPLES_IN };
static const float eps = 1e-5f;

static int64_t padding_of(const op_case *c) {
    return c->dims[KERNEL] / 2;
}

static int64_t side_of(const op_case *c) {
    const int64_t kernel = c->dims[KERNEL] ? c->dims[KERNEL] : 1;
    return (c->dims[SIDE] + 2 * padding_of(c) - kernel) / c->dims[STRIDE] + 1;
}

static int64_t counted_rows(const op_case *c) {
    return (c->dims[SAMPLES] ? c->dims[SAMPLES] : c->dims[BATCH]) * side_of(c) * side_of(c);
}

static void build(op_case *c) {
    const int64_t *d = c->dims, kernel = d[KERNEL], x_shape[] = {d[BATCH], d[SIDE], d[SIDE], d[CHANNELS]}, one = 1;
    const int64_t y_shape[] = {d[BATCH], side_of(c), side_of(c), d[FEATURES]};
    const int64_t filter[] = {d[FEATURES], kernel, kernel, d[CHANNELS]}, matrix[] = {d[FEATURES], d[CHANNELS]};
    const double offset = (double)d[OFFSET];
    cleat_tensor *x = op_input(c, "x", c->storage, 4, x_shape, -1, 1), *statistics = NULL;
    cleat_tensor *weight = op_input(c, "weight", c->storage, kernel ? 4 : 2, kernel ? filter : matrix, -1, 1);
    cleat_tensor *bias = op_param(c, "bias", 1, &d[FEATURES], offset - 1, offset + 1);
    cleat_tensor *gamma = op_param(c, "gamma", 1, &d[FEATURES], 0.5, 1.5);
    cleat_tensor *beta = op_param(c, "beta", 1, &d[FEATURES], -1, 1);
    cleat_tensor *samples =
        d[SAMPLES] ? op_constant(c, "samples", CLEAT_I32, 1, &one, (double)d[SAMPLES], (double)d[SAMPLES]) : NULL;
    cleat_tensor *residual = d[RESIDUAL] ? op_input(c, "residual", c->storage, 4, y_shape, -1, 1) : NULL;
    cleat_tensor *product = kernel ? cleat_conv2d(c->graph, x, weight, bias, d[STRIDE], padding_of(c))
                                   : cleat_linear(c->graph, x, weight, bias, NULL);
    const cleat_batch_norm_spec spec = {
        .gamma = gamma, .beta = beta, .samples = samples, .residual = residual, .relu = d[RELU], .eps = eps};
    op_output(c, cleat_batch_norm(c->graph, product, &spec, &statistics));
    op_output(c, statistics);
}

/* The product at a row (a pixel) and feature. */
static double product_at(const op_case *c, const double *const *in, int64_t row, int64_t n) {
    const int64_t *d = c->dims, side = side_of(c), kernel = d[KERNEL] ? d[KERNEL] : 1, b = row / side / side;
    double sum = in[BIAS][n];
    for (int64_t r = 0; r < kernel; ++r)
        for (int64_t s = 0; s < kernel; ++s) {
            const int64_t h = row / side % side * d[STRIDE] - padding_of(c) + r,
                          w = row % side * d[STRIDE] - padding_of(c) + s;
            if (h < 0 || w < 0 || h >= d[SIDE] || w >= d[SIDE]) continue;
            for (int64_t i = 0; i < d[CHANNELS]; ++i)
                sum += in[X][((b * d[SIDE] + h) * d[SIDE] + w) * d[CHANNELS] + i] *
                       in[WEIGHT][((n * kernel + r) * kernel + s) * d[CHANNELS] + i];
        }
    return sum;
}

static void reference(const op_case *c, const double *const *in, double *const *out) {
    const int64_t *d = c->dims, rows = d[BATCH] * side_of(c) * side_of(c), counted = counted_rows(c),
                  width = d[FEATURES];
    const double *residual = d[RESIDUAL] ? in[SAMPLES_IN + (d[SAMPLES] > 0)] : NULL;
    double *column = malloc((size_t)rows * sizeof *column);
    for (int64_t n = 0; n < width; ++n) {
        double mean = 0, squares = 0;
        for (int64_t r = 0; r < rows; ++r) column[r] = compare_round(c->storage, product_at(c, in, r, n));
        for (int64_t r = 0; r < counted; ++r) mean += column[r] / (double)counted;
        for (int64_t r = 0; r < counted; ++r) squares += (column[r] - mean) * (column[r] - mean);
        for (int64_t r = 0; r < rows; ++r) {
            double y = (column[r] - mean) / sqrt(squares / (double)counted + (double)eps) * in[GAMMA][n] + in[BETA][n];
            if (residual) y += residual[r * width + n];
            out[0][r * width + n] = d[RELU] && y <= 0 ? 0 : y;
        }
        out[1][n] = mean;
        out[1][width + n] = squares / (double)(counted - 1);
    }
    free(column);
}

/* The product may be rounded to either side, which its normalisation divides by its deviation. */
static compare_tolerance tolerance(const op_case *c, int tensor, bool is_gradient) {
    (void)is_gradient;
    const int64_t kernel = c->dims[KERNEL] ? c->dims[KERNEL] : 1;
    const double terms = (double)(kernel * kernel * c->dims[CHANNELS]),
                 most = 4 * sqrt(terms) + (double)c->dims[OFFSET];
    if (tensor == 0)
        return (compare_tolerance){.scale = 3 + most, .length = terms, .f32_units = 30, .storage_units = 4};
    return (compare_tolerance){.scale = most * sqrt(terms) + 4, .length = terms, .f32_units = 30, .storage_units = 2};
}

static const op_row rows[] = {
    {2, 9, 16, 33, 3, 1, 0, 0, 0},      {3, 8, 17, 64, 3, 1, 2, 1, 0}, {2, 23, 16, 64, 3, 1, 0, 0, 1},
    {2, 11, 5, 19, 3, 2, 1, 0, 0},      {2, 30, 3, 64, 7, 1, 0, 0, 1}, {3, 16, 24, 130, 1, 2, 0, 1, 1},
    {9, 2, 64, 48, 3, 1, 5, 1, 1},      {3, 7, 20, 70, 0, 1, 2, 1, 0}, {2, 25, 64, 64, 0, 1, 0, 0, 1},
    {1, 3, 4, 5, 0, 1, 0, 0, 0},        {4, 24, 8, 48, 0, 1, 3, 1, 1}, {2, 20, 16, 64, 0, 1, 0, 0, 0, 40},
    {2, 12, 16, 32, 3, 1, 0, 0, 0, 40},
};

static const op_test tests[] = {{.op = "conv2d_batch_norm",
                                 .title = "conv2d and batch_norm",
                                 .rows = rows,
                                 .row_count = 7,
                                 .build = build,
                                 .reference = reference,
                                 .tolerance = tolerance,
                                 .no_backward = true,
                                 .wide = true},
                                {.op = "linear_batch_norm",
                                 .title = "linear and batch_norm",
                                 .rows = rows + 7,
                                 .row_count = 5,
                                 .build = build,
                                 .reference = reference,
                                 .tolerance = tolerance,
                                 .no_backward = true,
                                 .wide = true},
                                {.op = "conv2d_batch_norm",
                                 .title = "conv2d and batch_norm, far from 0",
                                 .rows = rows + 12,
                                 .row_count = 1,
                                 .build = build,
                                 .reference = reference,
                                 .tolerance = tolerance,
                                 .no_backward = true,
                                 .wide = true,
                                 .only = 1u << CLEAT_F32}};

/* --- which graphs are fused ----------------------------------------------------------------------------------- */

/* x -> conv -> batch_norm; later: the residual is computed between them. */
static void check_fused(bool wide, bool later, const char *first) {
    cleat_store *store = NULL;
    cleat_graph *graph = NULL;
    assert_int_equal(cleat_store_create(&store, NULL), CLEAT_OK);
    assert_int_equal(cleat_graph_create(store, "g", &graph, NULL), CLEAT_OK);
    const int64_t features = 32;
    const cleat_init init = {CLEAT_INIT_UNIFORM, 0.3f};
    cleat_tensor *x = cleat_input(graph, "x", CLEAT_F32, 4, (int64_t[]){2, 8, 8, 16}), *statistics = NULL;
    cleat_tensor *weight = cleat_param(graph, "weight", 4, (int64_t[]){32, 3, 3, 16}, init);
    cleat_tensor *matrix = cleat_param(graph, "matrix", 2, (int64_t[]){32, 16}, init);
    cleat_tensor *gamma = cleat_param(graph, "gamma", 1, &features, init),
                 *beta = cleat_param(graph, "beta", 1, &features, init);
    cleat_tensor *u = cleat_conv2d(graph, x, weight, NULL, 1, 1);
    cleat_tensor *residual = later ? cleat_linear(graph, x, matrix, NULL, NULL) : NULL;
    cleat_tensor *y = cleat_batch_norm(
        graph, u, &(cleat_batch_norm_spec){.gamma = gamma, .beta = beta, .residual = residual, .eps = eps},
        &statistics);
    cleat_graph_set_wide(graph, wide);
    cleat_graph_fuse(graph);
    assert_int_equal(graph->error.status, CLEAT_OK);
    assert_string_equal(y->producer->op->name, first);
    assert_ptr_equal(u->producer, wide ? y->producer : u->producer);
    for (size_t n = 0; n < graph->node_count; ++n) assert_int_equal(graph->nodes[n]->index, n);
    if (later) assert_true(residual->producer->index < y->producer->index);
    cleat_graph_destroy(graph);
    cleat_store_destroy(store);
}

static void fuses_for_wide_devices(void **state) {
    (void)state;
    check_fused(true, false, "conv2d_batch_norm");
    check_fused(true, true, "conv2d_batch_norm");
    check_fused(false, false, "batch_norm");
}

int main(void) {
    const struct CMUnitTest extra[] = {cmocka_unit_test(fuses_for_wide_devices)};
    return op_main(tests, sizeof tests / sizeof *tests, extra, 1);
}
