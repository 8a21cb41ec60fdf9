/* The loss of a two-class mask. */
/* ctest: device */
#include "harness.h"

#include "cleat/ops.h"

#include <math.h>
#include <string.h>

/* dims: B, H, W; in tenths: positive_weight, focal_gamma and dice_weight; largest logit; the sample whose
 * pixels are all unknown (counted from 1) */
enum { BATCH, HEIGHT, WIDTH, POSITIVE, GAMMA, DICE, RANGE, UNKNOWN };
enum { X, MASK, SAMPLE_WEIGHT };

static cleat_mask_loss_spec spec_of(const int64_t *d) {
    return (cleat_mask_loss_spec){(float)d[POSITIVE] / 10, (float)d[GAMMA] / 10, (float)d[DICE] / 10};
}

static void build(op_case *c) {
    const int64_t *d = c->dims, flat[] = {d[BATCH], d[HEIGHT] * d[WIDTH]};
    cleat_tensor *x = op_input(c, "x", c->storage, 3, d, (double)-d[RANGE], (double)d[RANGE]);
    cleat_tensor *mask = op_constant(c, "mask", CLEAT_I32, 2, flat, -1, 2);
    cleat_mask_loss_spec spec = spec_of(d);
    op_output(c, cleat_mask_loss(c->graph, x, mask, op_constant(c, "scale", CLEAT_F32, 1, d, 0, 1), &spec));
}

static void fill(const op_case *c, int tensor, double *values, int64_t count) {
    int64_t pixels = c->dims[HEIGHT] * c->dims[WIDTH];
    for (int64_t i = 0; tensor == MASK && i < count; ++i)
        if (i / pixels == c->dims[UNKNOWN] - 1) values[i] = i % 2 ? -1 : 255;
}

/* 1 / (1 + e^-x), and log(1 + e^x) without overflow. */
static double sigmoid(double x) {
    return x > 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x));
}

static double softplus(double x) {
    return fmax(x, 0) + log1p(exp(-fabs(x)));
}

typedef struct sums {
    double cross, known, both, either;
} sums;

static sums sums_of(const op_case *c, const double *const *in, int64_t b) {
    const cleat_mask_loss_spec spec = spec_of(c->dims);
    int64_t pixels = c->dims[HEIGHT] * c->dims[WIDTH];
    sums s = {0};
    for (int64_t i = b * pixels; i < (b + 1) * pixels; ++i) {
        double x = in[X][i], t = in[MASK][i], z = t == 1 ? x : -x;
        if (t != 0 && t != 1) continue;
        s.cross += (t == 1 ? spec.positive_weight : 1) * pow(sigmoid(-z), spec.focal_gamma) * softplus(-z);
        s.known += 1;
        s.both += t * sigmoid(x);
        s.either += t + sigmoid(x);
    }
    return s;
}

static void reference(const op_case *c, const double *const *in, double *const *out) {
    out[0][0] = 0;
    for (int64_t b = 0; b < c->dims[BATCH]; ++b) {
        sums s = sums_of(c, in, b);
        double dice = spec_of(c->dims).dice_weight * (1 - (2 * s.both + 1) / (s.either + 1));
        if (s.known > 0) out[0][0] += in[SAMPLE_WEIGHT][b] * (s.cross / s.known + dice);
    }
}

static void gradient(const op_case *c, const double *const *in, const double *const *dout, double *const *din) {
    const cleat_mask_loss_spec spec = spec_of(c->dims);
    int64_t pixels = c->dims[HEIGHT] * c->dims[WIDTH];
    for (int64_t b = 0; b < c->dims[BATCH]; ++b) {
        sums s = sums_of(c, in, b);
        for (int64_t i = b * pixels; i < (b + 1) * pixels; ++i) {
            double x = in[X][i], t = in[MASK][i], z = t == 1 ? x : -x, q = sigmoid(-z);
            if (t != 0 && t != 1) continue;
            double cross = -pow(q, spec.focal_gamma) * (q + spec.focal_gamma * (1 - q) * softplus(-z));
            cross *= (t == 1 ? spec.positive_weight : -1) / s.known;
            double dice = (2 * s.both + 1 - 2 * t * (s.either + 1)) / (s.either + 1) / (s.either + 1);
            din[X][i] +=
                dout[0][0] * in[SAMPLE_WEIGHT][b] * (cross + spec.dice_weight * dice * sigmoid(x) * sigmoid(-x));
        }
    }
}

/* The loss of a sample is a mean of terms of at most weight x logit, plus a Dice loss below 1; the terms of
 * the pixels have one sign, and so do those of the samples. The derivative of a pixel is below (1 + gamma)
 * weight over the number of known pixels, half of all pixels; an accum is of size 1. */
static compare_tolerance tolerance(const op_case *c, int tensor, bool is_gradient) {
    const cleat_mask_loss_spec spec = spec_of(c->dims);
    double weight = fmax(1, spec.positive_weight), pixels = (double)(c->dims[HEIGHT] * c->dims[WIDTH]);
    (void)tensor;
    double scale = is_gradient ? 2 * (weight * (1 + spec.focal_gamma) + spec.dice_weight) * fmin(1, 4 / pixels) + 1
                               : (double)c->dims[BATCH] * (weight * ((double)c->dims[RANGE] + 1) + spec.dice_weight);
    const double terms = is_gradient ? 0 : pixels + (double)c->dims[BATCH];
    return (compare_tolerance){.scale = scale, .length = 64 + terms, .f32_units = 1};
}

static const op_row rows[] = {
    {2, 3, 7, 25, 20, 10, 4},    {1, 1, 1, 10, 0, 0, 3},       {3, 5, 5, 25, 20, 5, 6, 2},
    {2, 8, 8, 10, 0, 0, 4},      {2, 11, 13, 30, 15, 20, 100}, {1, 2, 2, 10, 5, 0, 4, 1},
    {2, 90, 101, 20, 20, 10, 8}, {1, 300, 1000, 10, 0, 10, 5}, {300, 2, 3, 40, 20, 10, 10, 7},
};

static const op_test test = {.op = "mask_loss",
                             .rows = rows,
                             .row_count = sizeof rows / sizeof rows[0],
                             .build = build,
                             .fill = fill,
                             .reference = reference,
                             .gradient = gradient,
                             .tolerance = tolerance,
                             .samples = 3};

/* A graph with the loss of one sample, and its gradient. */
typedef struct lone_loss {
    cleat_store *store;
    cleat_graph *graph;
    cleat_tensor *x, *mask, *sample_weight, *seed, *loss;
    op_rig rig;
} lone_loss;

static void lone_open(lone_loss *lone, int64_t pixels, cleat_mask_loss_spec spec) {
    const int64_t shape[] = {1, pixels}, one = 1;
    *lone = (lone_loss){0};
    assert_int_equal(cleat_store_create(&lone->store, NULL), CLEAT_OK);
    assert_int_equal(cleat_graph_create(lone->store, "lone", &lone->graph, NULL), CLEAT_OK);
    lone->x = cleat_input(lone->graph, "x", CLEAT_F32, 2, shape);
    cleat_require_grad(lone->graph, lone->x);
    lone->mask = cleat_input(lone->graph, "mask", CLEAT_I32, 2, shape);
    lone->sample_weight = cleat_input(lone->graph, "scale", CLEAT_F32, 1, &one);
    lone->seed = cleat_input(lone->graph, "seed", CLEAT_F32, 1, &one);
    lone->loss = cleat_mask_loss(lone->graph, lone->x, lone->mask, lone->sample_weight, &spec);
    cleat_retain(lone->graph, lone->loss);
    cleat_backward(lone->graph, lone->loss, lone->seed);
    cleat_retain(lone->graph, cleat_gradient(lone->graph, lone->x));
    assert_true(op_rig_open(&lone->rig, lone->graph, &op_shape_cpu, NULL, 0));
}

static double lone_run(lone_loss *lone, const double *x, const double *mask, double *dx) {
    const double one = 1;
    double loss;
    op_rig_write(&lone->rig, lone->x, x);
    op_rig_write(&lone->rig, lone->mask, mask);
    op_rig_write(&lone->rig, lone->sample_weight, &one);
    op_rig_write(&lone->rig, lone->seed, &one);
    op_rig_run(&lone->rig, 0, -1);
    op_rig_read(&lone->rig, lone->loss, &loss);
    op_rig_read(&lone->rig, cleat_gradient(lone->graph, lone->x), dx);
    return loss;
}

static void lone_close(lone_loss *lone) {
    op_rig_close(&lone->rig);
    cleat_graph_destroy(lone->graph);
    cleat_store_destroy(lone->store);
}

/* A correct prediction of any confidence has a finite loss near 0; a wrong one costs as much as its logit. */
static void survives_large_logits(void **state) {
    (void)state;
    static const double x[] = {100, -100, 100, -100, 3e38, -3e38, 88, -104}, mask[] = {1, 0, 0, 1, 1, 0, 1, 0};
    double dx[8];
    lone_loss lone;
    lone_open(&lone, 8, (cleat_mask_loss_spec){1, 2, 1});
    double loss = lone_run(&lone, x, mask, dx);
    lone_close(&lone);
    /* Two of eight are wrong, by 100; three of four true pixels are found, plus one false positive. */
    assert_true(fabs(loss - (200.0 / 8 + 1 - 7.0 / 9)) < 1e-4);
    for (int i = 0; i < 8; ++i) {
        double expected = i == 2 ? 1.0 / 8 : i == 3 ? -1.0 / 8 : 0;
        assert_true(fabs(dx[i] - expected) < 1e-6);
    }
}

/* Small losses keep their precision: log(1 + e^-x) of a large x is e^-x, not 0. */
static void keeps_small_losses(void **state) {
    (void)state;
    static const double x[] = {20, -25, 16, -18}, mask[] = {1, 0, 1, 0};
    double dx[4], expected = 0;
    lone_loss lone;
    lone_open(&lone, 4, (cleat_mask_loss_spec){1, 0, 0});
    double loss = lone_run(&lone, x, mask, dx);
    lone_close(&lone);
    for (int i = 0; i < 4; ++i) expected += log1p(exp(-fabs(x[i]))) / 4;
    assert_true(fabs(loss - expected) < 1e-5 * expected);
    for (int i = 0; i < 4; ++i) assert_true(fabs(fabs(dx[i]) - sigmoid(-fabs(x[i])) / 4) < 1e-5 * fabs(dx[i]));
}

/* NaN must propagate to the loss to stop the training. */
static void shows_nan(void **state) {
    (void)state;
    static const double mask[] = {1, 0, 1, 0};
    const double x[] = {1, NAN, 1, 1};
    double dx[4];
    lone_loss lone;
    lone_open(&lone, 4, (cleat_mask_loss_spec){1, 2, 0});
    assert_true(isnan(lone_run(&lone, x, mask, dx)));
    assert_true(isnan(dx[1]));
    lone_close(&lone);
}

static void rejects(void **state) {
    (void)state;
    static const struct {
        cleat_dtype x, mask;
        int64_t pixels, sample_weight;
        cleat_mask_loss_spec spec;
        cleat_status status;
        const char *says;
    } misfits[] = {{CLEAT_I32, CLEAT_I32, 6, 2, {1, 0, 0}, CLEAT_ERR_SHAPE, "logits are i32"},
                   {CLEAT_F32, CLEAT_F32, 6, 2, {1, 0, 0}, CLEAT_ERR_SHAPE, "the mask is f32"},
                   {CLEAT_F32, CLEAT_I32, 5, 2, {1, 0, 0}, CLEAT_ERR_SHAPE, "as many elements"},
                   {CLEAT_F32, CLEAT_I32, 6, 3, {1, 0, 0}, CLEAT_ERR_SHAPE, "scale is f32 [3]"},
                   {CLEAT_F32, CLEAT_I32, 6, 2, {0, 0, 0}, CLEAT_ERR_ARGUMENT, "positive_weight 0"},
                   {CLEAT_F32, CLEAT_I32, 6, 2, {1, -1, 0}, CLEAT_ERR_ARGUMENT, "focal_gamma -1"},
                   {CLEAT_F32, CLEAT_I32, 6, 2, {1, 0, NAN}, CLEAT_ERR_ARGUMENT, "dice_weight nan"}};
    for (size_t i = 0; i < sizeof misfits / sizeof *misfits; ++i) {
        cleat_graph *graph = op_graph();
        cleat_tensor *x = cleat_input(graph, "x", misfits[i].x, 3, (int64_t[]){2, 3, 2});
        cleat_tensor *mask = cleat_input(graph, "m", misfits[i].mask, 2, (int64_t[]){2, misfits[i].pixels});
        cleat_tensor *sample_weight = cleat_input(graph, "s", CLEAT_F32, 1, &misfits[i].sample_weight);
        assert_null(cleat_mask_loss(graph, x, mask, sample_weight, &misfits[i].spec));
        op_graph_refused(graph, misfits[i].status, "mask_loss", misfits[i].says);
    }
}

int main(void) {
    const struct CMUnitTest extra[] = {cmocka_unit_test(survives_large_logits), cmocka_unit_test(keeps_small_losses),
                                       cmocka_unit_test(shows_nan), cmocka_unit_test(rejects)};
    return op_main(&test, 1, extra, 4);
}
