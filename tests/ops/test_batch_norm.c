/* Batch normalisation: training, running statistics, inference with given statistics. */
/* ctest: device slow cost=29 */
#include "harness.h"

#include "cleat/ops.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const float eps = 1e-5f;

/* dims: B, rows per sample, C, residual, relu, number of valid samples (0: no such input), with statistics */
enum { BATCH, SAMPLE_ROWS, CHANNELS, RESIDUAL, RELU, SAMPLES, STATISTICS };
enum { NO_RESIDUAL, HAS_RESIDUAL, RESIDUAL_IS_X };

/* Inputs in order of declaration; `samples` and the residual exist only in some rows. */
enum { X, GAMMA, BETA, THIRD };

static int64_t all_rows(const op_case *c) {
    return c->dims[BATCH] * c->dims[SAMPLE_ROWS];
}

static int64_t counted_rows(const op_case *c) {
    int64_t samples = c->dims[SAMPLES];
    return (samples && samples < c->dims[BATCH] ? samples : c->dims[BATCH]) * c->dims[SAMPLE_ROWS];
}

static int residual_index(const op_case *c) {
    if (c->dims[RESIDUAL] == RESIDUAL_IS_X) return X;
    return c->dims[RESIDUAL] ? THIRD + (c->dims[SAMPLES] != 0) : -1;
}

/* --- reference --- */

/* Mean and biased variance of channel `ch`. */
static void moments(const op_case *c, const double *x, int64_t ch, double *mean, double *variance) {
    int64_t n = counted_rows(c), width = c->dims[CHANNELS];
    double sum = 0, squares = 0;
    for (int64_t r = 0; r < n; ++r) sum += x[r * width + ch];
    *mean = sum / (double)n;
    for (int64_t r = 0; r < n; ++r) squares += pow(x[r * width + ch] - *mean, 2);
    *variance = squares / (double)n;
}

static double rstd_of(double variance) {
    return 1 / sqrt(variance + (double)eps);
}

static void reference(const op_case *c, const double *const *in, double *const *out) {
    int64_t width = c->dims[CHANNELS], n = counted_rows(c);
    const double *residual = residual_index(c) >= 0 ? in[residual_index(c)] : NULL;
    for (int64_t ch = 0; ch < width; ++ch) {
        double mean, variance;
        moments(c, in[X], ch, &mean, &variance);
        for (int64_t i = ch; i < all_rows(c) * width; i += width) {
            double y = (in[X][i] - mean) * rstd_of(variance) * in[GAMMA][ch] + in[BETA][ch];
            if (residual) y += residual[i];
            out[0][i] = c->dims[RELU] && y < 0 ? 0 : y;
        }
        if (!c->dims[STATISTICS]) continue;
        out[1][ch] = mean;
        out[1][width + ch] = n > 1 ? variance * (double)n / (double)(n - 1) : variance;
    }
}

static void gradient(const op_case *c, const double *const *in, const double *const *dout, double *const *din) {
    int64_t width = c->dims[CHANNELS], n = counted_rows(c), elements = all_rows(c) * width;
    double *y = calloc((size_t)elements, sizeof *y), *unused = calloc((size_t)(2 * width), sizeof *unused);
    reference(c, in, (double *[]){y, unused});
    for (int64_t ch = 0; ch < width; ++ch) {
        double mean, variance, sum = 0, product = 0;
        moments(c, in[X], ch, &mean, &variance);
        double rstd = rstd_of(variance);
        for (int64_t i = ch; i < n * width; i += width) {
            double d = c->dims[RELU] && y[i] <= 0 ? 0 : dout[0][i];
            sum += d;
            product += d * (in[X][i] - mean) * rstd;
            if (residual_index(c) >= 0) din[residual_index(c)][i] += d;
        }
        din[GAMMA][ch] += product;
        din[BETA][ch] += sum;
        for (int64_t i = ch; i < n * width; i += width) {
            double d = c->dims[RELU] && y[i] <= 0 ? 0 : dout[0][i], xhat = (in[X][i] - mean) * rstd;
            din[X][i] += rstd * in[GAMMA][ch] * (d - (sum + xhat * product) / (double)n);
        }
    }
    free(y);
    free(unused);
}

/* --- cases --- */

/* Zeroes gradients that must not contribute: of rows after the valid samples, and of statistics. */
static void silence(op_tensor *output, int64_t from) {
    for (int64_t i = from; i < output->count; ++i) output->dvalues[i] = 0;
}

static void build(op_case *c) {
    const int64_t *d = c->dims, shape[] = {d[BATCH], d[SAMPLE_ROWS], d[CHANNELS]}, one = 1;
    cleat_tensor *x = op_input(c, "x", c->storage, 3, shape, -2, 2), *statistics = NULL;
    cleat_tensor *gamma = op_param(c, "gamma", 1, &d[CHANNELS], 0.5, 1.5);
    cleat_tensor *beta = op_param(c, "beta", 1, &d[CHANNELS], -1, 1);
    cleat_tensor *samples =
        d[SAMPLES] ? op_constant(c, "samples", CLEAT_I32, 1, &one, (double)d[SAMPLES], (double)d[SAMPLES]) : NULL;
    cleat_tensor *residual = d[RESIDUAL] == RESIDUAL_IS_X ? x : NULL;
    if (d[RESIDUAL] == HAS_RESIDUAL) residual = op_input(c, "residual", c->storage, 3, shape, -1, 1);
    const cleat_batch_norm_spec spec = {
        .gamma = gamma, .beta = beta, .samples = samples, .residual = residual, .relu = d[RELU], .eps = eps};
    op_output(c, cleat_batch_norm(c->graph, x, &spec, d[STATISTICS] ? &statistics : NULL));
    silence(&c->outputs[0], counted_rows(c) * d[CHANNELS]);
    if (!d[STATISTICS]) return;
    op_output(c, statistics);
    silence(&c->outputs[1], 0);
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* A value of beta that places 0 in the middle of the widest gap between the normalised values of the
 * channel. */
static double beta_in_a_gap(const op_case *c, int64_t ch) {
    const double *x = c->inputs[X].values;
    int64_t rows = all_rows(c), width = c->dims[CHANNELS], widest = 0;
    double mean, variance, *values = calloc((size_t)rows, sizeof *values);
    moments(c, x, ch, &mean, &variance);
    for (int64_t r = 0; r < rows; ++r)
        values[r] = (x[r * width + ch] - mean) * rstd_of(variance) * c->inputs[GAMMA].values[ch];
    qsort(values, (size_t)rows, sizeof *values, ascending);
    for (int64_t r = 0; r + 1 < rows; ++r)
        if (values[r + 1] - values[r] > values[widest + 1] - values[widest]) widest = r;
    double beta = rows > 1 ? -(values[widest] + values[widest + 1]) / 2 : 0.5;
    free(values);
    return beta;
}

/* Keeps every value far enough from the kink of relu that a small step does not cross it. */
static void fill(const op_case *c, int tensor, double *values, int64_t count) {
    if (!c->dims[RELU]) return;
    if (tensor == BETA && c->dims[RESIDUAL] != HAS_RESIDUAL)
        for (int64_t ch = 0; ch < count; ++ch) values[ch] = beta_in_a_gap(c, ch);
    if (c->dims[RESIDUAL] != HAS_RESIDUAL || tensor != residual_index(c)) return;
    int64_t width = c->dims[CHANNELS];
    const double *x = c->inputs[X].values;
    for (int64_t ch = 0; ch < width; ++ch) {
        double mean, variance;
        moments(c, x, ch, &mean, &variance);
        for (int64_t i = ch; i < count; i += width) {
            double y = (x[i] - mean) * rstd_of(variance) * c->inputs[GAMMA].values[ch] + c->inputs[BETA].values[ch] +
                       values[i];
            if (fabs(y) < 0.25) values[i] += y < 0 ? -0.5 : 0.5;
        }
    }
}

/* rstd is about 0.9 for x in +-2, larger if only few rows are valid, and 316 = 1 / sqrt(eps) for one row,
 * where xhat is 0. If the residual is x, y is rounded before the sum, and so are the two gradients. Those
 * of gamma and beta are sums of n terms of random sign below 2. */
static compare_tolerance tolerance(const op_case *c, int tensor, bool is_gradient) {
    double n = (double)counted_rows(c), rstd = n < 2 ? 317 : n < 8 ? 30 : 1.5;
    compare_tolerance t = {.scale = 3 * rstd, .length = 1, .f32_units = 6};
    if (c->dims[RESIDUAL] == RESIDUAL_IS_X) t.storage_units = 1;
    if (!is_gradient && tensor == 1) return (compare_tolerance){.scale = 4, .length = 1, .f32_units = 6};
    if (!is_gradient || tensor == X) return t;
    t.scale = tensor == GAMMA || tensor == BETA ? 2 + 2 * sqrt(n) : 1;
    t.length = tensor == GAMMA || tensor == BETA ? n : 1;
    return t;
}

static const op_row rows[] = {
    {3, 2, 3, NO_RESIDUAL, 1, 2, 1},     {2, 3, 17, HAS_RESIDUAL, 1, 0, 0},  {3, 3, 3, HAS_RESIDUAL, 0, 2, 1},
    {1, 1, 1, NO_RESIDUAL, 0, 9, 1},     {3, 5, 17, NO_RESIDUAL, 1, 0, 1},   {3, 101, 17, HAS_RESIDUAL, 1, 2},
    {5, 3, 130, HAS_RESIDUAL, 1, 4, 1},  {2, 7, 17, RESIDUAL_IS_X, 0, 0, 1}, {2, 301, 64, HAS_RESIDUAL, 0},
    {2, 3, 1045, HAS_RESIDUAL, 1, 0, 1}, {3, 2, 1040, NO_RESIDUAL, 1, 2, 0},
};

/* --- numbers far from 0 --- */

enum { FAR = 1000 };

static void build_far(op_case *c) {
    const int64_t *d = c->dims, shape[] = {d[BATCH], d[SAMPLE_ROWS], d[CHANNELS]};
    cleat_tensor *statistics = NULL, *x = op_input(c, "x", c->storage, 3, shape, FAR - 1.7, FAR + 1.7);
    cleat_tensor *gamma = op_param(c, "gamma", 1, &d[CHANNELS], 0.5, 1.5);
    cleat_tensor *beta = op_param(c, "beta", 1, &d[CHANNELS], -1, 1);
    const cleat_batch_norm_spec spec = {.gamma = gamma, .beta = beta, .eps = eps};
    op_output(c, cleat_batch_norm(c->graph, x, &spec, &statistics));
    op_output(c, statistics);
}

/* In every other channel, the first row and one in the middle lie far from the others. */
static void fill_far(const op_case *c, int tensor, double *values, int64_t count) {
    int64_t width = c->dims[CHANNELS];
    for (int64_t i = 0; tensor == X && i < count; ++i)
        if ((i < width || i / width == count / width / 2) && i % width % 2) values[i] = 0;
}

/* The mean is rounded to f32: error u 1000. Sums of squares have terms of up to 1e6 if a row lies far from
 * the others. */
static compare_tolerance tolerance_far(const op_case *c, int tensor, bool is_gradient) {
    (void)is_gradient;
    if (tensor == 0) return (compare_tolerance){.scale = 1.5 * FAR, .length = 1, .f32_units = 3};
    double n = (double)all_rows(c);
    return (compare_tolerance){.scale = (double)FAR * FAR * 2 / n, .length = n, .f32_units = 3};
}

static const op_row far_rows[] = {{3, 100, 3, NO_RESIDUAL, 0, 0, 1}, {2, 700, 17, NO_RESIDUAL, 0, 0, 1}};

/* Checks the variance separately, by relative error: the harness has one tolerance for a whole tensor. */
static void keeps_the_variance(void **state) {
    (void)state;
    static const op_shape *const shapes[] = {&op_shape_cpu, &op_shape_gpu};
    enum { ROWS = 2500, WIDTH = 3 };
    static double x[ROWS * WIDTH];
    uint32_t bits = 12345;
    for (int i = 0; i < ROWS * WIDTH; ++i) {
        bits = bits * 1664525u + 1013904223u;
        x[i] = compare_round(CLEAT_F32, FAR + ((double)(bits >> 8) / 0x1p24 - 0.5) * 3.4641016);
    }
    for (size_t s = 0; s < 2; ++s) {
        cleat_store *store = NULL;
        cleat_graph *graph = NULL;
        cleat_tensor *statistics = NULL;
        op_rig rig;
        double got[2 * WIDTH];
        assert_int_equal(cleat_store_create(&store, NULL), CLEAT_OK);
        assert_int_equal(cleat_graph_create(store, "far", &graph, NULL), CLEAT_OK);
        cleat_tensor *in = cleat_input(graph, "x", CLEAT_F32, 2, (int64_t[]){ROWS, WIDTH});
        cleat_tensor *factor = cleat_input(graph, "factor", CLEAT_F32, 1, (int64_t[]){WIDTH});
        cleat_batch_norm(graph, in, &(cleat_batch_norm_spec){.gamma = factor, .beta = factor, .eps = eps}, &statistics);
        cleat_retain(graph, statistics);
        assert_true(op_rig_open(&rig, graph, shapes[s], NULL, 0));
        op_rig_write(&rig, in, x);
        op_rig_write(&rig, factor, (double[WIDTH]){1, 1, 1});
        op_rig_run(&rig, 0, -1);
        op_rig_read(&rig, statistics, got);
        for (int ch = 0; ch < WIDTH; ++ch) {
            double sum = 0, squares = 0;
            for (int r = 0; r < ROWS; ++r) sum += x[r * WIDTH + ch];
            for (int r = 0; r < ROWS; ++r) squares += pow(x[r * WIDTH + ch] - sum / ROWS, 2);
            double variance = squares / (ROWS - 1);
            assert_true(fabs(got[WIDTH + ch] - variance) <= 1e-5 * variance);
        }
        op_rig_close(&rig);
        cleat_graph_destroy(graph);
        cleat_store_destroy(store);
    }
}

/* --- results larger than caches --- */

enum { LARGE_SAMPLES = 2, LARGE_ROWS = 8200, LARGE_WIDTH = 64, LARGE = LARGE_SAMPLES * LARGE_ROWS * LARGE_WIDTH };

static void assert_close(const char *what, const double *got, const double *expected, int64_t count, double tolerance) {
    for (int64_t i = 0; i < count; ++i)
        if (!(fabs(got[i] - expected[i]) <= tolerance))
            fail_msg("%s[%lld] is %.9g, not %.9g", what, (long long)i, got[i], expected[i]);
}

/* Results of more than 4 MiB, which kernels for CPUs write past the caches. */
static void computes_large_results(void **state) {
    (void)state;
    const int64_t full[] = {LARGE_SAMPLES, LARGE_ROWS, LARGE_WIDTH}, width = LARGE_WIDTH;
    op_case c = {.dims = (const int64_t[]){LARGE_SAMPLES, LARGE_ROWS, LARGE_WIDTH, HAS_RESIDUAL, 1, 0, 0}};
    double *values = calloc(8 * (size_t)LARGE, sizeof *values), *at[8], gamma[LARGE_WIDTH], beta[LARGE_WIDTH];
    assert_non_null(values);
    for (int i = 0; i < 8; ++i) at[i] = values + i * (size_t)LARGE;
    for (int64_t i = 0; i < 3 * (int64_t)LARGE; ++i)
        values[i] = compare_round(CLEAT_F32, sin(0.7 * (double)i) + 0.3 * cos(0.013 * (double)(i % LARGE)));
    for (int i = 0; i < LARGE_WIDTH; ++i) {
        gamma[i] = compare_round(CLEAT_F32, 0.5 + 0.01 * i);
        beta[i] = compare_round(CLEAT_F32, 0.2 - 0.007 * i);
    }
    const double *in[] = {[X] = at[0], [GAMMA] = gamma, [BETA] = beta, [THIRD] = at[1]};
    double *expected_y = at[3], *expected_dx = at[4], *expected_dresidual = at[5], *got = at[6];
    double sums[2][LARGE_WIDTH] = {{0}};
    reference(&c, in, (double *[]){expected_y});
    /* a gradient of 0 if rounding could decide the sign for relu */
    for (int64_t i = 0; i < LARGE; ++i)
        if (fabs(expected_y[i]) < 1e-4) at[2][i] = 0;
    gradient(&c, in, (const double *[]){at[2]}, (double *[]){expected_dx, sums[0], sums[1], expected_dresidual});

    cleat_store *store = NULL;
    cleat_graph *graph = NULL;
    op_rig rig;
    assert_int_equal(cleat_store_create(&store, NULL), CLEAT_OK);
    assert_int_equal(cleat_graph_create(store, "large", &graph, NULL), CLEAT_OK);
    cleat_tensor *inputs[3], *scale = cleat_input(graph, "gamma", CLEAT_F32, 1, &width);
    cleat_tensor *bias = cleat_input(graph, "beta", CLEAT_F32, 1, &width);
    for (int i = 0; i < 3; ++i)
        inputs[i] = cleat_input(graph, (const char *[]){"x", "residual", "dy"}[i], CLEAT_F32, 3, full);
    cleat_require_grad(graph, inputs[0]);
    cleat_require_grad(graph, inputs[1]);
    const cleat_batch_norm_spec spec = {.gamma = scale, .beta = bias, .residual = inputs[1], .relu = true, .eps = eps};
    cleat_tensor *y = cleat_batch_norm(graph, inputs[0], &spec, NULL);
    cleat_backward_from(graph, &y, &inputs[2], 1);
    cleat_tensor *made[] = {y, cleat_gradient(graph, inputs[0]), cleat_gradient(graph, inputs[1])};
    for (int i = 0; i < 3; ++i) cleat_retain(graph, made[i]);
    assert_true(op_rig_open(&rig, graph, &op_shape_cpu, NULL, 0));
    for (int i = 0; i < 3; ++i) op_rig_write(&rig, inputs[i], at[i]);
    op_rig_write(&rig, scale, gamma);
    op_rig_write(&rig, bias, beta);
    op_rig_run(&rig, 0, -1);
    for (int i = 0; i < 3; ++i) {
        op_rig_read(&rig, made[i], got);
        assert_close((const char *[]){"y", "dx", "dresidual"}[i], got, at[3 + i], LARGE, 2e-5);
    }
    op_rig_close(&rig);
    cleat_graph_destroy(graph);
    cleat_store_destroy(store);
    free(values);
}

/* --- empty slots --- */

enum { SLOTS = 3, USED = 2, SLOT_ROWS = 5, WIDE = 20, COUNT = SLOTS * SLOT_ROWS * WIDE };
typedef struct slot_results {
    double y[COUNT], dx[COUNT], dresidual[COUNT], dgamma[WIDE], dbeta[WIDE];
} slot_results;

/* `filler` is the value of x, the residual and dy in the unused slot. */
static void run_slots(const op_shape *shape, bool relu, double filler, slot_results *results) {
    cleat_store *store = NULL;
    cleat_graph *graph = NULL;
    op_rig rig;
    double values[3][COUNT];
    const int64_t full[] = {SLOTS, SLOT_ROWS, WIDE}, width = WIDE, one = 1;
    for (int i = 0; i < 3 * COUNT; ++i)
        values[i / COUNT][i % COUNT] = i % COUNT < USED * SLOT_ROWS * WIDE ? sin(0.37 * i * i) : filler;
    assert_int_equal(cleat_store_create(&store, NULL), CLEAT_OK);
    assert_int_equal(cleat_graph_create(store, "slots", &graph, NULL), CLEAT_OK);
    cleat_tensor *in[3], *gamma = cleat_param(graph, "gamma", 1, &width, (cleat_init){0});
    for (int i = 0; i < 3; ++i)
        in[i] = cleat_input(graph, (const char *[]){"x", "residual", "dy"}[i], CLEAT_F32, 3, full);
    cleat_require_grad(graph, in[0]);
    cleat_require_grad(graph, in[1]);
    cleat_tensor *beta = cleat_param(graph, "beta", 1, &width, (cleat_init){0});
    cleat_tensor *samples = cleat_input(graph, "samples", CLEAT_I32, 1, &one);
    const cleat_batch_norm_spec spec = {
        .gamma = gamma, .beta = beta, .samples = samples, .residual = in[1], .relu = relu, .eps = eps};
    cleat_tensor *y = cleat_batch_norm(graph, in[0], &spec, NULL);
    cleat_backward_from(graph, &y, &in[2], 1);
    cleat_tensor *made[] = {y, cleat_gradient(graph, in[0]), cleat_gradient(graph, in[1]), cleat_gradient(graph, gamma),
                            cleat_gradient(graph, beta)};
    double *const to[] = {results->y, results->dx, results->dresidual, results->dgamma, results->dbeta};
    for (int i = 0; i < 3; ++i) cleat_retain(graph, made[i]);
    assert_true(op_rig_open(&rig, graph, shape, NULL, 0));
    double factors[WIDE], zeros[WIDE] = {0};
    for (int i = 0; i < WIDE; ++i) factors[i] = 0.5 + 0.1 * i;
    for (int i = 0; i < 3; ++i) op_rig_write(&rig, in[i], values[i]);
    op_rig_write(&rig, gamma, factors);
    op_rig_write(&rig, beta, factors);
    op_rig_write(&rig, samples, (double[]){USED});
    for (int i = 3; i < 5; ++i) op_rig_write(&rig, made[i], zeros);
    op_rig_run(&rig, 0, -1);
    for (int i = 0; i < 5; ++i) op_rig_read(&rig, made[i], to[i]);
    op_rig_close(&rig);
    cleat_graph_destroy(graph);
    cleat_store_destroy(store);
}

static void ignores_empty_slots(void **state) {
    (void)state;
    static const op_shape *const shapes[] = {&op_shape_cpu, &op_shape_gpu, &op_shape_gpu64};
    static slot_results plain, odd;
    const size_t used = USED * SLOT_ROWS * WIDE, bytes = used * sizeof(double);
    for (int i = 0; i < 6; ++i) {
        run_slots(shapes[i / 2], i % 2, 0, &plain);
        run_slots(shapes[i / 2], i % 2, NAN, &odd);
        assert_memory_equal(plain.y, odd.y, bytes);
        assert_memory_equal(plain.dx, odd.dx, sizeof plain.dx);
        assert_memory_equal(plain.dresidual, odd.dresidual, sizeof plain.dresidual);
        assert_memory_equal(plain.dgamma, odd.dgamma, sizeof plain.dgamma);
        assert_memory_equal(plain.dbeta, odd.dbeta, sizeof plain.dbeta);
        double sum = 0;
        for (size_t k = 0; k < used; ++k) sum += fabs(plain.dx[k]) + fabs(plain.dresidual[k]);
        assert_true(sum > 1);
        for (size_t k = used; k < COUNT; ++k) {
            assert_true(plain.dx[k] == 0 && plain.dresidual[k] == 0);
            assert_true(isfinite(plain.y[k]) && isnan(odd.y[k]));
        }
    }
}

/* --- known and running statistics --- */

static void build_fixed(op_case *c) {
    const int64_t *d = c->dims, shape[] = {d[BATCH], d[SAMPLE_ROWS], d[CHANNELS]};
    cleat_tensor *x = op_input(c, "x", c->storage, 3, shape, -2, 2);
    cleat_tensor *gamma = op_param(c, "gamma", 1, &d[CHANNELS], 0.5, 1.5);
    cleat_tensor *beta = op_param(c, "beta", 1, &d[CHANNELS], -1, 1);
    cleat_running_stats running = {.mean = op_constant(c, "mean", CLEAT_F32, 1, &d[CHANNELS], 0.5, 2)};
    running.var = op_constant(c, "variance", CLEAT_F32, 1, &d[CHANNELS], 0.5, 2);
    cleat_tensor *residual = d[RESIDUAL] ? op_input(c, "residual", c->storage, 3, shape, -1, 1) : NULL;
    const cleat_batch_norm_spec spec = {
        .gamma = gamma, .beta = beta, .residual = residual, .relu = d[RELU], .eps = eps};
    op_output(c, cleat_batch_norm_inference(c->graph, x, &spec, running));
}

static void reference_fixed(const op_case *c, const double *const *in, double *const *out) {
    int64_t width = c->dims[CHANNELS];
    for (int64_t i = 0; i < all_rows(c) * width; ++i) {
        int64_t ch = i % width;
        double y = (in[X][i] - in[THIRD][ch]) * rstd_of(in[THIRD + 1][ch]) * in[GAMMA][ch] + in[BETA][ch];
        if (c->dims[RESIDUAL]) y += in[THIRD + 2][i];
        out[0][i] = c->dims[RELU] && y < 0 ? 0 : y;
    }
}

static compare_tolerance tolerance_fixed(const op_case *c, int tensor, bool is_gradient) {
    (void)c, (void)tensor, (void)is_gradient;
    return (compare_tolerance){.scale = 8, .length = 1, .f32_units = 4};
}

static const op_row fixed_rows[] = {
    {2, 3, 17, HAS_RESIDUAL, 1}, {3, 37, 64, NO_RESIDUAL, 0}, {1, 2, 130, NO_RESIDUAL, 1}};

static void follows_statistics(void **state) {
    (void)state;
    enum { WIDTH = 37 };
    cleat_store *store = NULL;
    cleat_graph *graph = NULL;
    op_rig rig;
    double now[2 * WIDTH], before[2 * WIDTH], after[2 * WIDTH];
    const int64_t both[] = {2, WIDTH}, width = WIDTH;
    assert_int_equal(cleat_store_create(&store, NULL), CLEAT_OK);
    assert_int_equal(cleat_graph_create(store, "track", &graph, NULL), CLEAT_OK);
    cleat_tensor *statistics = cleat_input(graph, "statistics", CLEAT_F32, 2, both);
    const cleat_running_stats running = {.mean = cleat_state(graph, "mean", CLEAT_F32, 1, &width),
                                         .var = cleat_state(graph, "variance", CLEAT_F32, 1, &width)};
    cleat_batch_norm_update_running_stats(graph, statistics, running, 0.25f);
    assert_true(op_rig_open(&rig, graph, &op_shape_gpu, NULL, 0));
    for (int i = 0; i < 2 * WIDTH; ++i) {
        now[i] = i - 8;
        before[i] = 1 + i % 5;
    }
    op_rig_write(&rig, statistics, now);
    op_rig_write(&rig, running.mean, before);
    op_rig_write(&rig, running.var, before + WIDTH);
    op_rig_run(&rig, 0, -1);
    op_rig_run(&rig, 0, -1);
    op_rig_read(&rig, running.mean, after);
    op_rig_read(&rig, running.var, after + WIDTH);
    for (int i = 0; i < 2 * WIDTH; ++i) assert_true(fabs(after[i] - (0.5625 * before[i] + 0.4375 * now[i])) <= 1e-5);
    now[3] = NAN;
    now[WIDTH] = INFINITY;
    op_rig_write(&rig, statistics, now);
    op_rig_run(&rig, 0, -1);
    op_rig_read(&rig, running.mean, before);
    op_rig_read(&rig, running.var, before + WIDTH);
    for (int i = 0; i < 2 * WIDTH; ++i) /* values that are not finite do not update the running statistics */
        assert_true(fabs(before[i] - (i == 3 || i == WIDTH ? after[i] : 0.75 * after[i] + 0.25 * now[i])) <= 1e-5);
    op_rig_close(&rig);
    cleat_graph_destroy(graph);
    cleat_store_destroy(store);
}

/* Results of three steps, the last with a NaN: y, running mean and variance. */
enum { STEP_ROWS = 300, STEP_WIDTH = 38, LEFT = (STEP_ROWS + 2) * STEP_WIDTH };
static void run_steps(const op_shape *shape, bool fused, double *left) {
    static double x[STEP_ROWS * STEP_WIDTH];
    const int64_t width = STEP_WIDTH;
    cleat_graph *graph = op_graph();
    op_rig rig;
    cleat_tensor *in = cleat_input(graph, "x", CLEAT_F32, 2, (int64_t[]){STEP_ROWS, STEP_WIDTH}), *statistics = NULL;
    cleat_tensor *factor = cleat_input(graph, "factor", CLEAT_F32, 1, &width);
    const cleat_running_stats running = {.mean = cleat_state(graph, "mean", CLEAT_F32, 1, &width),
                                         .var = cleat_state(graph, "variance", CLEAT_F32, 1, &width)};
    const cleat_batch_norm_spec spec = {.gamma = factor, .beta = factor, .eps = 1e-5f};
    cleat_tensor *y = cleat_batch_norm(graph, in, &spec, &statistics);
    cleat_retain(graph, y);
    cleat_batch_norm_update_running_stats(graph, statistics, running, 0.3f);
    if (fused) cleat_graph_fuse(graph);
    assert_int_equal(cleat_graph_nodes(graph), fused ? 1 : 2);
    assert_true(op_rig_open(&rig, graph, shape, NULL, 0));
    for (int i = 0; i < STEP_WIDTH; ++i) left[i] = 0.5 + i;
    op_rig_write(&rig, factor, left);
    op_rig_write(&rig, running.mean, left);
    op_rig_write(&rig, running.var, left);
    for (int step = 0; step < 3; ++step) {
        for (int i = 0; i < STEP_ROWS * STEP_WIDTH; ++i) x[i] = (i * 37 + step * 11) % 101 / 7.0 - i % STEP_WIDTH;
        if (step == 2) x[STEP_WIDTH + 5] = NAN;
        op_rig_write(&rig, in, x);
        op_rig_run(&rig, 0, -1);
    }
    op_rig_read(&rig, y, left);
    op_rig_read(&rig, running.mean, left + STEP_ROWS * STEP_WIDTH);
    op_rig_read(&rig, running.var, left + (STEP_ROWS + 1) * STEP_WIDTH);
    op_rig_close(&rig);
    op_graph_end(graph);
}

/* The kernel that computes the moments updates the running statistics with the same bits as the separate
 * kernel. */
static void follows_in_one_node(void **state) {
    (void)state;
    static const op_shape *const shapes[] = {&op_shape_cpu, &op_shape_gpu};
    static double apart[LEFT], fused[LEFT];
    for (size_t s = 0; s < 2; ++s) {
        if (!op_shape_is_tested(shapes[s])) continue;
        run_steps(shapes[s], false, apart);
        run_steps(shapes[s], true, fused);
        for (int i = 0; i < LEFT; ++i) /* a column of y is NaN; no running statistic is */
            assert_true(fused[i] == apart[i] || (i < STEP_ROWS * STEP_WIDTH && isnan(fused[i]) && isnan(apart[i])));
    }
}

/* --- misuse --- */

typedef struct misfit {
    cleat_dtype x, samples;
    int64_t gamma, residual;
    float eps;
    const char *says;
} misfit;

static void rejects(void **state) {
    (void)state;
    static const misfit misfits[] = {
        {CLEAT_I32, CLEAT_I32, 4, 4, 1e-5f, "f32, f16 or bf16"},
        {CLEAT_F32, CLEAT_I32, 5, 4, 1e-5f, "gamma"},
        {CLEAT_F32, CLEAT_F32, 4, 4, 1e-5f, "samples"},
        {CLEAT_F32, CLEAT_I32, 4, 3, 1e-5f, "residual"},
        {CLEAT_F32, CLEAT_I32, 4, 4, -1.0f, "eps"},
    };
    for (size_t i = 0; i < sizeof misfits / sizeof *misfits; ++i) {
        const misfit *m = &misfits[i];
        cleat_error error = {0};
        cleat_graph *graph = op_graph();
        cleat_tensor *x = cleat_input(graph, "x", m->x, 3, (int64_t[]){2, 3, 4});
        cleat_tensor *gamma = cleat_input(graph, "gamma", CLEAT_F32, 1, &m->gamma);
        cleat_tensor *samples = cleat_input(graph, "n", m->samples, 1, (int64_t[]){1});
        cleat_tensor *residual = cleat_input(graph, "r", m->x, 3, (int64_t[]){2, 3, m->residual}), *statistics = x;
        const cleat_batch_norm_spec spec = {
            .gamma = gamma, .beta = gamma, .samples = samples, .residual = residual, .relu = true, .eps = m->eps};
        assert_null(cleat_batch_norm(graph, x, &spec, &statistics));
        assert_null(statistics);
        assert_int_equal(cleat_graph_status(graph, &error), CLEAT_ERR_SHAPE);
        assert_non_null(strstr(error.text, m->says));
        op_graph_end(graph);
    }
}

static void rejects_tracking(void **state) {
    (void)state;
    static const struct {
        int64_t mean, var; /* widths */
        bool input;
        float momentum;
        const char *says;
    } misfits[] = {{3, 4, false, 0.1f, "running mean"},
                   {4, 3, false, 0.1f, "running variance"},
                   {4, 4, true, 0.1f, "cleat_buffer"},
                   {4, 4, false, 1.5f, "momentum"}};
    for (size_t i = 0; i < sizeof misfits / sizeof *misfits; ++i) {
        const int64_t both[] = {2, 4};
        cleat_graph *graph = op_graph();
        const cleat_running_stats running = {.mean = cleat_state(graph, "m", CLEAT_F32, 1, &misfits[i].mean),
                                             .var = misfits[i].input
                                                        ? cleat_input(graph, "v", CLEAT_F32, 1, &misfits[i].var)
                                                        : cleat_state(graph, "v", CLEAT_F32, 1, &misfits[i].var)};
        cleat_batch_norm_update_running_stats(graph, cleat_input(graph, "s", CLEAT_F32, 2, both), running,
                                              misfits[i].momentum);
        op_graph_refused(graph, CLEAT_ERR_SHAPE, "batch_norm", misfits[i].says);
    }
}

#define ROWS(list) .rows = list, .row_count = sizeof list / sizeof list[0]
static const op_test tests[] = {
    {.op = "batch_norm",
     ROWS(rows),
     .build = build,
     .fill = fill,
     .reference = reference,
     .gradient = gradient,
     .tolerance = tolerance,
     .samples = 3},
    {.op = "batch_norm",
     .title = "batch_norm far from 0",
     ROWS(far_rows),
     .build = build_far,
     .fill = fill_far,
     .reference = reference,
     .tolerance = tolerance_far,
     .no_backward = true,
     .only = 1u << CLEAT_F32},
    {.op = "batch_norm_inference",
     ROWS(fixed_rows),
     .build = build_fixed,
     .reference = reference_fixed,
     .tolerance = tolerance_fixed,
     .no_backward = true},
};

int main(void) {
    const struct CMUnitTest extra[] = {cmocka_unit_test(keeps_the_variance),  cmocka_unit_test(computes_large_results),
                                       cmocka_unit_test(ignores_empty_slots), cmocka_unit_test(follows_statistics),
                                       cmocka_unit_test(follows_in_one_node), cmocka_unit_test(rejects),
                                       cmocka_unit_test(rejects_tracking)};
    return op_main(tests, sizeof tests / sizeof *tests, extra, sizeof extra / sizeof *extra);
}
