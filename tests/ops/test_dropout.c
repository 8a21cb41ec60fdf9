/* Dropout: values and gradient against the mask of the host's Philox generator, and the statistics of the
 * mask. */
/* ctest: device oclgrind=1@12 oclgrind=9@11 */
#include "harness.h"

#include "cleat/ops.h"
#include "core/philox.h"

#include <math.h>
#include <stdlib.h>

/* dims: rows, width, rate in per cent, samples of the global batch in earlier micro-batches, whether the same
 * kernel adds a residual, whether all micro-batches share the mask. A row is a sample. */
static const uint32_t seed_and_step[3] = {12345, 678, 9};

static double rate_of(const op_case *c) {
    return (double)c->dims[2] / 100;
}

/* The stream of a mask is the number of dropouts before it in the graph, independent of other nodes. */
static uint32_t stream_of(const op_case *c) {
    return c->dims[4] ? 2 : 1;
}

static void build(op_case *c) {
    const int64_t shape[] = {c->dims[0], c->dims[1]};
    cleat_tensor *unused = cleat_input(c->graph, "unused", CLEAT_F32, 1, (int64_t[]){1});
    cleat_tensor *x = op_input(c, "x", c->storage, 2, shape, -2, 2);
    cleat_tensor *rng = op_constant(c, "rng", CLEAT_U32, 1, (int64_t[]){4}, 0, 1);
    for (uint32_t i = 0; i < stream_of(c); ++i) cleat_add(c->graph, unused, cleat_dropout(c->graph, unused, rng, 0.5f));
    cleat_tensor *residual = c->dims[4] ? op_input(c, "residual", c->storage, 2, shape, -2, 2) : NULL;
    cleat_tensor *y = c->dims[5] ? cleat_dropout_shared(c->graph, x, rng, (float)rate_of(c))
                                 : cleat_dropout(c->graph, x, rng, (float)rate_of(c));
    op_output(c, residual ? cleat_add(c->graph, residual, y) : y);
}

static void fill(const op_case *c, int tensor, double *values, int64_t count) {
    for (int64_t i = 0; tensor == 1 && i < count; ++i) values[i] = i < 3 ? seed_and_step[i] : (double)c->dims[3];
}

static double factor(const op_case *c, int64_t i) {
    const int64_t before = c->dims[5] ? 0 : c->dims[3] * ((c->dims[1] + 3) / 4 * 4);
    uint64_t at = (uint64_t)(i + before) / 4;
    uint32_t counter[4] = {(uint32_t)at, (uint32_t)(at >> 32), stream_of(c), seed_and_step[2]}, words[4];
    cleat_philox(counter, seed_and_step, words);
    float rate = (float)rate_of(c);
    return words[i % 4] >= (uint32_t)floor((double)rate * 0x1p32) ? 1.0 / (1.0 - (double)rate) : 0;
}

static void reference(const op_case *c, const double *const *in, double *const *out) {
    for (int64_t i = 0; i < c->dims[0] * c->dims[1]; ++i)
        out[0][i] = (c->dims[4] ? in[2][i] : 0) + in[0][i] * factor(c, i);
}

static void gradient(const op_case *c, const double *const *in, const double *const *dout, double *const *din) {
    (void)in;
    for (int64_t i = 0; i < c->dims[0] * c->dims[1]; ++i) {
        din[0][i] += dout[0][i] * factor(c, i);
        if (c->dims[4]) din[2][i] += dout[0][i];
    }
}

/* One product with a rounded factor of at most 10, and one sum. */
static compare_tolerance tolerance(const op_case *c, int tensor, bool is_gradient) {
    (void)tensor, (void)is_gradient;
    return (compare_tolerance){.scale = 2 + 2 / (1 - rate_of(c)), .length = 1, .f32_units = 2};
}

/* The last two rows have counters beyond 32 bits, and some that carry from one word to the next within a
 * vector. */
static const op_row rows[] = {{1, 1, 50},
                              {3, 17, 10},
                              {1, 64, 50},
                              {5, 401, 90},
                              {5, 401, 30, 3},
                              {5, 41, 30, 3, 0, 1},
                              {3, 17, 10, 11},
                              {2, 64, 50, 1},
                              {3, 68, 50, 4294967295},
                              {40, 4, 50, 4294967289},
                              {3, 37, 30, 0, 1}};

static const op_test test = {.op = "dropout",
                             .rows = rows,
                             .row_count = sizeof rows / sizeof rows[0],
                             .build = build,
                             .fill = fill,
                             .reference = reference,
                             .gradient = gradient,
                             .tolerance = tolerance,
                             .samples = 4};

/* For 400000 elements: the dropped fraction is right, backward drops the same elements, and another step or
 * node drops different ones. */
static void test_mask(void **state) {
    (void)state;
    enum { N = 400000 };
    const double rate = 0.1, sigma = sqrt(rate * (1 - rate) / N);
    cleat_graph *graph = op_graph();
    cleat_tensor *x = cleat_input(graph, "x", CLEAT_F32, 1, (int64_t[]){N});
    cleat_tensor *rng = cleat_input(graph, "rng", CLEAT_U32, 1, (int64_t[]){4});
    cleat_require_grad(graph, x);
    cleat_tensor *y = cleat_dropout(graph, x, rng, (float)rate), *z = cleat_dropout(graph, y, rng, (float)rate);
    cleat_backward_from(graph, &y, &x, 1); /* dy = x */
    cleat_tensor *dx = cleat_gradient(graph, x);
    cleat_retain(graph, y);
    cleat_retain(graph, z);
    cleat_retain(graph, dx);
    double *ones = calloc(N, sizeof *ones), *a = calloc(N, sizeof *a), *b = calloc(N, sizeof *b),
           *d = calloc(N, sizeof *d);
    double draws[4] = {1, 2, 3, 0}, dropped = 0, both = 0, next = 0, pairs = 0;
    for (int i = 0; i < N; ++i) ones[i] = 1;
    op_rig rig;
    assert_true(op_rig_open(&rig, graph, &op_shape_cpu, NULL, 0));
    op_rig_write(&rig, x, ones);
    op_rig_write(&rig, rng, draws);
    op_rig_run(&rig, 0, -1);
    op_rig_read(&rig, y, a);
    op_rig_read(&rig, z, b);
    op_rig_read(&rig, dx, d);
    for (int i = 0; i < N; ++i) {
        assert_true(a[i] == 0 || fabs(a[i] * (1 - rate) - 1) < 1e-6);
        assert_true(d[i] == a[i]);
        dropped += a[i] == 0;
        both += a[i] != 0 && b[i] == 0; /* elements kept by the first node and dropped by the second */
        pairs += i && a[i] == 0 && a[i - 1] == 0;
    }
    print_message("dropped %.5f, of the rest %.5f, neighbours %.5f\n", dropped / N, both / (N - dropped), pairs / N);
    assert_true(fabs(dropped / N - rate) < 5 * sigma);
    assert_true(fabs(both / (N - dropped) - rate) < 5 * sigma);
    assert_true(fabs(pairs / N - rate * rate) < 5 * rate * sqrt(1.0 / N));
    draws[2] = 4;
    op_rig_write(&rig, rng, draws);
    op_rig_run(&rig, 0, -1);
    op_rig_read(&rig, y, b);
    for (int i = 0; i < N; ++i) next += a[i] == 0 && b[i] == 0;
    assert_true(fabs(next / N - rate * rate) < 5 * rate * sqrt(1.0 / N));
    op_rig_close(&rig);
    free(ones);
    free(a);
    free(b);
    free(d);
    op_graph_end(graph);
}

/* Row 9 of the table is computed by a single node. */
static void test_residual_is_fused(void **state) {
    (void)state;
    cleat_graph *graph = op_graph();
    cleat_tensor *x = cleat_input(graph, "x", CLEAT_F32, 1, (int64_t[]){4});
    cleat_tensor *rng = cleat_input(graph, "rng", CLEAT_U32, 1, (int64_t[]){4});
    cleat_tensor *y = cleat_add(graph, x, cleat_dropout(graph, x, rng, 0.5f));
    cleat_graph_fuse(graph);
    assert_int_equal(cleat_graph_nodes(graph), 1);
    assert_string_equal(graph->nodes[0]->op->name, "dropout_add");
    assert_ptr_equal(graph->nodes[0]->out[0], y);
    op_graph_end(graph);
}

static void test_rates(void **state) {
    (void)state;
    cleat_graph *graph = op_graph();
    cleat_tensor *x = cleat_input(graph, "x", CLEAT_F32, 1, (int64_t[]){4});
    cleat_tensor *rng = cleat_input(graph, "rng", CLEAT_U32, 1, (int64_t[]){4});
    assert_ptr_equal(cleat_dropout(graph, x, rng, 0.0f), x);
    assert_int_equal(cleat_graph_status(graph, NULL), CLEAT_OK);
    assert_null(cleat_dropout(graph, x, rng, 1.0f));
    assert_int_equal(cleat_graph_status(graph, NULL), CLEAT_ERR_SHAPE);
    op_graph_end(graph);
}

int main(void) {
    const struct CMUnitTest extra[] = {cmocka_unit_test(test_mask), cmocka_unit_test(test_residual_is_fused),
                                       cmocka_unit_test(test_rates)};
    return op_main(&test, 1, extra, 3);
}
