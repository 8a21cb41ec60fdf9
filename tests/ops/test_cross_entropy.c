/* Cross entropy of rows with class labels. */
/* ctest: device */
#include "harness.h"

#include "cleat/ops.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LOGITS, LABELS, SAMPLE_WEIGHT };

/* dims: rows, width, offset of the logits, smoothing in percent, rows per sample (0: labels [rows]) */
static void build(op_case *c) {
    int64_t rows = c->dims[0], each = c->dims[4];
    const int64_t shape[] = {rows, c->dims[1]}, split[] = {each ? rows / each : 0, each, c->dims[1]};
    double offset = (double)c->dims[2];
    cleat_tensor *x = op_input(c, "x", c->storage, each ? 3 : 2, each ? split : shape, offset - 3, offset + 3);
    cleat_tensor *labels = op_constant(c, "labels", CLEAT_I32, each ? 2 : 1, each ? split : shape, 0, 0);
    cleat_tensor *sample_weight = op_constant(c, "scale", CLEAT_F32, 1, shape, 0.2, 1);
    op_output(c, cleat_cross_entropy(c->graph, x, labels, sample_weight, (float)c->dims[3] / 100));
}

/* Every valid label, the last column among them, and some invalid ones. */
static void fill(const op_case *c, int tensor, double *values, int64_t count) {
    if (tensor != LABELS) return;
    for (int64_t i = 0; i < count; ++i) {
        values[i] = (double)((i * 7 + c->dims[1] - 1) % c->dims[1]);
        if (i % 5 == 3) values[i] = -100;
        if (i % 11 == 6) values[i] = (double)c->dims[1];
        if (i % 13 == 9) values[i] = -1;
    }
}

static double smoothing_of(const op_case *c) {
    return (double)((float)c->dims[3] / 100);
}

static double wanted(const op_case *c, double label, int64_t column) {
    double e = smoothing_of(c);
    return (label == (double)column ? 1 - e : 0) + e / (double)c->dims[1];
}

static bool counts(const op_case *c, double label) {
    return label >= 0 && label < (double)c->dims[1];
}

static double log_sum(const double *x, int64_t width) {
    double top = x[0], sum = 0;
    for (int64_t i = 0; i < width; ++i) top = fmax(top, x[i]);
    for (int64_t i = 0; i < width; ++i) sum += exp(x[i] - top);
    return top + log(sum);
}

static void reference(const op_case *c, const double *const *in, double *const *out) {
    int64_t width = c->dims[1];
    out[0][0] = 0;
    for (int64_t row = 0; row < c->dims[0]; ++row) {
        const double *x = in[LOGITS] + row * width;
        double label = in[LABELS][row], all = log_sum(x, width);
        for (int64_t i = 0; i < width && counts(c, label); ++i)
            out[0][0] += in[SAMPLE_WEIGHT][row] * wanted(c, label, i) * (all - x[i]);
    }
}

static void gradient(const op_case *c, const double *const *in, const double *const *dout, double *const *din) {
    int64_t width = c->dims[1];
    for (int64_t row = 0; row < c->dims[0]; ++row) {
        const double *x = in[LOGITS] + row * width;
        double label = in[LABELS][row], all = log_sum(x, width);
        for (int64_t i = 0; i < width && counts(c, label); ++i)
            din[LOGITS][row * width + i] +=
                dout[0][0] * in[SAMPLE_WEIGHT][row] * (exp(x[i] - all) - wanted(c, label, i));
    }
}

/* The loss of a row is at most log width + 6, with an error of a few units of that; all have one sign and a
 * mean below a quarter of that. A gradient is a difference of two numbers below 1; with an accum it is of
 * size 2. */
static compare_tolerance tolerance(const op_case *c, int tensor, bool is_gradient) {
    (void)tensor;
    double rows = (double)c->dims[0], size = log((double)c->dims[1]) + 6;
    if (is_gradient) return (compare_tolerance){.scale = 2, .length = 1, .f32_units = 6};
    return (compare_tolerance){.scale = size * (1 + rows / 8), .length = rows, .f32_units = 4};
}

static const op_row rows[] = {{5, 17, 0, 10},      {1, 1},           {96, 16, -30, 20, 12}, {1500, 3, 0, 10},
                              {70, 256, 20, 0, 7}, {3, 20011, 0, 10}};

static const op_test test = {.op = "cross_entropy",
                             .rows = rows,
                             .row_count = sizeof rows / sizeof rows[0],
                             .build = build,
                             .fill = fill,
                             .reference = reference,
                             .gradient = gradient,
                             .tolerance = tolerance,
                             .samples = 4};

/* --- with the linear layer in front of it; dims: rows, fan_in, classes, rows at once ----------------------------- */

enum { IN_X, IN_WEIGHT, IN_LABELS, IN_SAMPLE_WEIGHT };

static cleat_tensor *linear_loss(op_case *c, cleat_tensor **each) {
    const int64_t *d = c->dims, shape[] = {d[0], d[1]}, weight[] = {d[2], d[1]};
    cleat_tensor *x = op_input(c, "x", c->storage, 2, shape, -1, 1);
    cleat_tensor *w = op_input(c, "weight", c->storage, 2, weight, -1, 1);
    cleat_tensor *labels = op_constant(c, "labels", CLEAT_I32, 1, shape, -1, (double)d[2]);
    cleat_tensor *sample_weight = op_constant(c, "scale", CLEAT_F32, 1, shape, 0.2, 1);
    return cleat_linear_cross_entropy(c->graph, x, w, labels, sample_weight, 0.1f, d[3], each);
}

static void build_linear(op_case *c) {
    op_output(c, linear_loss(c, NULL));
}

static void build_each(op_case *c) {
    cleat_tensor *each = NULL;
    linear_loss(c, &each);
    op_output(c, each);
}

/* The logits of a row; returns the logarithm of the sum of their exponentials. */
static double logits_of(const op_case *c, const double *const *in, int64_t row, double *logits) {
    const int64_t width = c->dims[1], classes = c->dims[2];
    for (int64_t i = 0; i < classes; ++i) {
        double sum = 0;
        for (int64_t k = 0; k < width; ++k) sum += in[IN_X][row * width + k] * in[IN_WEIGHT][i * width + k];
        logits[i] = sum;
    }
    return log_sum(logits, classes);
}

static double share(double label, int64_t column, int64_t classes) {
    const double e = (double)0.1f;
    return (label == (double)column ? 1 - e : 0) + e / (double)classes;
}

static void each_reference(const op_case *c, const double *const *in, double *const *out) {
    double logits[2048];
    for (int64_t row = 0; row < c->dims[0]; ++row) {
        const double label = in[IN_LABELS][row], all = logits_of(c, in, row, logits);
        out[0][row] = 0;
        for (int64_t i = 0; i < c->dims[2] && label >= 0 && label < (double)c->dims[2]; ++i)
            out[0][row] += share(label, i, c->dims[2]) * (all - logits[i]);
    }
}

static void linear_reference(const op_case *c, const double *const *in, double *const *out) {
    double losses[96], *const each[] = {losses};
    each_reference(c, in, each);
    out[0][0] = 0;
    for (int64_t row = 0; row < c->dims[0]; ++row)
        if (losses[row] != 0) out[0][0] += in[IN_SAMPLE_WEIGHT][row] * losses[row]; /* 0: no label */
}

static void linear_gradient(const op_case *c, const double *const *in, const double *const *dout, double *const *din) {
    const int64_t width = c->dims[1], classes = c->dims[2];
    double logits[2048];
    for (int64_t row = 0; row < c->dims[0]; ++row) {
        const double label = in[IN_LABELS][row], all = logits_of(c, in, row, logits);
        for (int64_t i = 0; i < classes && label >= 0 && label < (double)classes; ++i) {
            const double d = dout[0][0] * in[IN_SAMPLE_WEIGHT][row] * (exp(logits[i] - all) - share(label, i, classes));
            for (int64_t k = 0; k < width; ++k) {
                din[IN_X][row * width + k] += d * in[IN_WEIGHT][i * width + k];
                din[IN_WEIGHT][i * width + k] += d * in[IN_X][row * width + k];
            }
        }
    }
}

/* A loss as above with logits of the size sqrt(fan_in) / 3; a gradient adds `classes` terms of which few are not small,
 * or `rows` terms. Halves round the logits and their gradients. */
static compare_tolerance linear_tolerance(const op_case *c, int tensor, bool is_gradient) {
    const double count = (double)c->dims[0], size = log((double)c->dims[2]) + 6;
    if (!is_gradient)
        return (compare_tolerance){
            .scale = size * (1 + count / 8), .length = count, .f32_units = 4, .storage_units = 1};
    return (compare_tolerance){.scale = 2 + (tensor == IN_WEIGHT ? sqrt(count) : 0),
                               .length = tensor == IN_WEIGHT ? count : (double)c->dims[2],
                               .f32_units = 6,
                               .storage_units = 2};
}

static const op_row linear_rows[] = {{1, 1, 2, 0}, {23, 17, 40, 5}, {96, 16, 2000, 32}, {9, 64, 300, 0}};

static const op_test linear_test = {.op = "cross_entropy",
                                    .title = "cross_entropy of a linear layer",
                                    .rows = linear_rows,
                                    .row_count = sizeof linear_rows / sizeof linear_rows[0],
                                    .build = build_linear,
                                    .reference = linear_reference,
                                    .gradient = linear_gradient,
                                    .tolerance = linear_tolerance,
                                    .samples = 4};

static const op_test each_test = {.op = "cross_entropy",
                                  .title = "cross_entropy of a linear layer, row by row",
                                  .rows = linear_rows,
                                  .row_count = sizeof linear_rows / sizeof linear_rows[0],
                                  .build = build_each,
                                  .reference = each_reference,
                                  .tolerance = linear_tolerance,
                                  .no_backward = true,
                                  .samples = 4};

/* Bytes of the plan of a loss over tokens and 8192 classes, whose logits take 32 KiB a token. */
static int64_t planned(int64_t tokens, int64_t rows_at_once) {
    const int64_t shape[] = {tokens, 32}, weight[] = {8192, 32};
    cleat_graph *graph = op_graph();
    cleat_tensor *x = cleat_input(graph, "x", CLEAT_F32, 2, shape);
    cleat_require_grad(graph, x);
    cleat_tensor *loss = cleat_linear_cross_entropy(
        graph, x, cleat_param(graph, "weight", 2, weight, (cleat_init){.kind = CLEAT_INIT_ZERO}),
        cleat_input(graph, "labels", CLEAT_I32, 1, shape), cleat_input(graph, "scale", CLEAT_F32, 1, shape), 0,
        rows_at_once, NULL);
    cleat_backward(graph, loss, NULL);
    cleat_retain(graph, cleat_gradient(graph, x));
    op_rig rig;
    assert_true(op_rig_open(&rig, graph, &op_shape_cpu, NULL, 0));
    const int64_t bytes = rig.plan->category_bytes[CLEAT_BYTES_ARENA];
    op_rig_close(&rig);
    op_graph_end(graph);
    return bytes;
}

static void logits_are_not_stored(void **state) {
    (void)state;
    const int64_t whole = planned(512, 512), parts = planned(512, 32), automatic = planned(3000, 0);
    print_message("plan of 512 x 8192 logits: %lld bytes at once, %lld in parts of 32 rows; of 3000: %lld\n",
                  (long long)whole, (long long)parts, (long long)automatic);
    assert_true(whole >= 16 << 20);
    assert_true(parts <= 3 << 20);
    assert_in_range(automatic, 32 << 20, 34 << 20); /* 2^23 logits; all would take 94 MiB */
}

enum { ROWS = 6, WIDTH = 35 };

typedef struct own {
    cleat_store *store;
    cleat_graph *graph;
    cleat_tensor *x, *labels, *sample_weight, *seed, *loss, *dx;
} own;

static own own_graph(int64_t count) {
    own o = {0};
    assert_int_equal(cleat_store_create(&o.store, NULL), CLEAT_OK);
    assert_int_equal(cleat_graph_create(o.store, "g", &o.graph, NULL), CLEAT_OK);
    o.x = cleat_input(o.graph, "x", CLEAT_F32, 2, (int64_t[]){count, WIDTH});
    o.labels = cleat_input(o.graph, "labels", CLEAT_I32, 1, (int64_t[]){count});
    o.sample_weight = cleat_input(o.graph, "scale", CLEAT_F32, 1, (int64_t[]){count});
    o.seed = cleat_input(o.graph, "seed", CLEAT_F32, 1, (int64_t[]){1});
    cleat_require_grad(o.graph, o.x);
    o.loss = cleat_cross_entropy(o.graph, o.x, o.labels, o.sample_weight, 0);
    cleat_retain(o.graph, o.loss);
    cleat_backward(o.graph, o.loss, o.seed);
    o.dx = cleat_gradient(o.graph, o.x);
    cleat_retain(o.graph, o.dx);
    return o;
}

static void own_destroy(own *o) {
    cleat_graph_destroy(o->graph);
    cleat_store_destroy(o->store);
}

/* Runs rows [first, first + count) of the arrays; adds to the loss. */
static void run_rows(const op_shape *shape, int64_t first, int64_t count, const double *x, const double *labels,
                     const double *sample_weight, double *loss, double *dx) {
    own o = own_graph(count);
    op_rig rig;
    double seed = 1, part;
    assert_true(op_rig_open(&rig, o.graph, shape, NULL, 0));
    op_rig_write(&rig, o.x, x + first * WIDTH);
    op_rig_write(&rig, o.labels, labels + first);
    op_rig_write(&rig, o.sample_weight, sample_weight + first);
    op_rig_write(&rig, o.seed, &seed);
    op_rig_run(&rig, 0, -1);
    op_rig_read(&rig, o.loss, &part);
    op_rig_read(&rig, o.dx, dx + first * WIDTH);
    *loss += part;
    op_rig_close(&rig);
    own_destroy(&o);
}

/* The micro-batches of a global batch add up to the same bits of every gradient. Rows without a label may
 * hold any value, and logits of -infinity exclude classes. */
static void test_micro_batches(void **state) {
    (void)state;
    double x[ROWS * WIDTH], labels[ROWS] = {3, -1, 34, 0, 35, 7}, sample_weight[ROWS];
    for (int i = 0; i < ROWS * WIDTH; ++i) x[i] = compare_round(CLEAT_F32, 3 * sin(i * 0.7));
    for (int i = 0; i < ROWS; ++i) sample_weight[i] = 0.25 * (i + 1);
    x[WIDTH + 4] = NAN;
    x[4 * WIDTH + 4] = INFINITY;
    x[2 * WIDTH + 11] = -INFINITY;
    const op_shape *shapes[] = {&op_shape_cpu, &op_shape_gpu};
    for (int s = 0; s < 2; ++s) {
        double whole = 0, parts = 0, dx_whole[ROWS * WIDTH], dx_parts[ROWS * WIDTH];
        run_rows(shapes[s], 0, ROWS, x, labels, sample_weight, &whole, dx_whole);
        for (int i = 0; i < ROWS; i += 2) run_rows(shapes[s], i, 2, x, labels, sample_weight, &parts, dx_parts);
        assert_true(isfinite(whole) && whole > 0);
        assert_true(fabs(whole - parts) <= 1e-6 * whole);
        assert_memory_equal(dx_whole, dx_parts, sizeof dx_whole);
        for (int i = 0; i < WIDTH; ++i) assert_true(dx_whole[WIDTH + i] == 0 && dx_whole[4 * WIDTH + i] == 0);
        assert_true(dx_whole[2 * WIDTH + 11] == 0);
        assert_true(dx_whole[2 * WIDTH + 34] < 0);
    }
}

static void refuse(int64_t labels, cleat_dtype dtype, int64_t sample_weight, float smoothing) {
    cleat_graph *graph = op_graph();
    assert_null(cleat_cross_entropy(graph, cleat_input(graph, "x", CLEAT_F32, 2, (int64_t[]){ROWS, WIDTH}),
                                    cleat_input(graph, "labels", dtype, 1, &labels),
                                    cleat_input(graph, "scale", CLEAT_F32, 1, &sample_weight), smoothing));
    op_graph_refused(graph, CLEAT_ERR_SHAPE, "cross_entropy", "");
}

static void test_refused(void **state) {
    (void)state;
    refuse(ROWS + 1, CLEAT_I32, ROWS, 0);
    refuse(ROWS, CLEAT_F32, ROWS, 0);
    refuse(ROWS, CLEAT_I32, 1, 0);
    refuse(ROWS, CLEAT_I32, ROWS, 1);
    refuse(ROWS, CLEAT_I32, ROWS, NAN);
}

int main(void) {
    const op_test tests[] = {test, linear_test, each_test};
    const struct CMUnitTest extra[] = {cmocka_unit_test(test_micro_batches), cmocka_unit_test(test_refused),
                                       cmocka_unit_test(logits_are_not_stored)};
    return op_main(tests, 3, extra, 3);
}
