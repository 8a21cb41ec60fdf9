/* Functions of one element against double precision: sigmoid, tanh, SiLU, GELU by tanh. */
/* ctest: device quick */
#include "harness.h"

#include "cleat/ops.h"

#include <math.h>
#include <stdlib.h>

typedef struct subject {
    const char *op;
    cleat_tensor *(*emit)(cleat_graph *graph, cleat_tensor *x);
    double (*value)(double x);
    double (*slope)(double x);
    /* Maximum error of the value in f32. */
    double (*bound)(double x, double value);
    double left, right; /* limits at -infinity and infinity */
} subject;

static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

static double sigmoid_slope(double x) {
    return sigmoid(x) * sigmoid(-x);
}

static double tanh_slope(double x) {
    return 1 / (cosh(x) * cosh(x));
}

static double silu(double x) {
    return x * sigmoid(x);
}

static double silu_slope(double x) {
    return sigmoid(x) * (1 + x * sigmoid(-x));
}

static double gelu_tanh(double x) {
    return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

static double gelu_tanh_slope(double x) {
    const double t = tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x));
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * sqrt(2 / M_PI) * (1 + 0.134145 * x * x);
}

/* Bounds stated in cl/lib/sigmoid.clh. */
static double sigmoid_bound(double x, double value) {
    return (x < 0 ? 1.2e-7 * (1 - x) + 1e-7 : 2e-7) * value + 0x1p-126;
}

static double tanh_bound(double x, double value) {
    (void)x;
    return 4e-7 * fabs(value);
}

static double silu_bound(double x, double value) {
    return sigmoid_bound(x, fabs(value)) + 0x1p-24 * fabs(value) + fabs(x) * 0x1p-126;
}

/* Exact values below 1e-30 are differences of 1 and tanh. */
static double gelu_tanh_bound(double x, double value) {
    const double u = 2 * sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
    return sigmoid_bound(u, fabs(value)) + 3e-7 * fabs(u * value) + fabs(x) * 0x1p-53;
}

static const subject subjects[] = {
    {"sigmoid", cleat_sigmoid, sigmoid, sigmoid_slope, sigmoid_bound, 0, 1},
    {"tanh", cleat_tanh, tanh, tanh_slope, tanh_bound, -1, 1},
    {"silu", cleat_silu, silu, silu_slope, silu_bound, 0, INFINITY},
    {"gelu_tanh", cleat_gelu_tanh, gelu_tanh, gelu_tanh_slope, gelu_tanh_bound, 0, INFINITY},
};

enum { SUBJECTS = sizeof subjects / sizeof *subjects };

/* dims: subject, rows, width, largest |x| */
static const subject *subject_of(const op_case *c) {
    return &subjects[c->dims[0]];
}

static void build(op_case *c) {
    const int64_t shape[] = {c->dims[1], c->dims[2]};
    double reach = (double)c->dims[3];
    op_output(c, subject_of(c)->emit(c->graph, op_input(c, "x", c->storage, 2, shape, -reach, reach)));
}

static void reference(const op_case *c, const double *const *in, double *const *out) {
    for (int64_t i = 0; i < c->dims[1] * c->dims[2]; ++i) out[0][i] = subject_of(c)->value(in[0][i]);
}

static void gradient(const op_case *c, const double *const *in, const double *const *dout, double *const *din) {
    for (int64_t i = 0; i < c->dims[1] * c->dims[2]; ++i) din[0][i] += dout[0][i] * subject_of(c)->slope(in[0][i]);
}

/* Values have an error of 4 units relative to the largest. A slope is at most 1.1; if it is computed from a
 * stored y, the rounding of y moves it by at most two units of storage. dout and the accum are below 1. */
static compare_tolerance tolerance(const op_case *c, int tensor, bool is_gradient) {
    (void)tensor;
    if (is_gradient) return (compare_tolerance){.scale = 2, .length = 1, .f32_units = 6, .storage_units = 1};
    return (compare_tolerance){.scale = subject_of(c)->right > 1 ? (double)c->dims[3] : 1, .length = 1, .f32_units = 6};
}

#define ROWS(i)                                                                                                        \
    {i, 3, 17, 8}, {i, 1, 1, 1}, {i, 1, 15, 1}, {i, 5, 1000, 3}, {i, 40, 400, 6}, {                                    \
        i, 1, 64, 60                                                                                                   \
    }
#define ROW_COUNT 6
static const op_row rows[SUBJECTS * ROW_COUNT] = {ROWS(0), ROWS(1), ROWS(2), ROWS(3)};

#define TEST(i, name)                                                                                                  \
    {                                                                                                                  \
        .op = name, .rows = rows + (i)*ROW_COUNT, .row_count = ROW_COUNT, .build = build, .reference = reference,      \
        .gradient = gradient, .tolerance = tolerance, .samples = 6                                                     \
    }

/* The bounds on a fine grid, and values that are not finite. */
static void errors_on_a_grid(void **state) {
    (void)state;
    enum { N = 60000, ALL = N + 6 };
    double *in = calloc(ALL, sizeof *in), *out = calloc(ALL, sizeof *out);
    for (int i = 0; i < N; ++i) in[i] = compare_round(CLEAT_F32, pow((i - N / 2) * (4.0 / N), 3) * 10);
    in[N] = NAN, in[N + 1] = -INFINITY, in[N + 2] = INFINITY, in[N + 3] = -0x1p99, in[N + 4] = 0x1p99, in[N + 5] = 0;
    for (int s = 0; s < SUBJECTS; ++s) {
        const subject *f = &subjects[s];
        double worst = 0;
        cleat_graph *graph = op_graph();
        cleat_tensor *x = cleat_input(graph, "x", CLEAT_F32, 1, (int64_t[]){ALL}), *y = f->emit(graph, x);
        cleat_retain(graph, y);
        op_rig rig;
        assert_true(op_rig_open(&rig, graph, &op_shape_cpu, NULL, 0));
        op_rig_write(&rig, x, in);
        op_rig_run(&rig, 0, -1);
        op_rig_read(&rig, y, out);
        for (int i = 0; i < N; ++i) {
            const double want = f->value(in[i]), error = fabs(out[i] - want), bound = f->bound(in[i], want);
            worst = fmax(worst, error / bound);
            if (!(error <= bound))
                fail_msg("%s(%.9g) is %.9g, not %.9g: off by %.3g bounds", f->op, in[i], out[i], want, error / bound);
        }
        print_message("largest error of %s: %.3g of its bound\n", f->op, worst);
        assert_true(isnan(out[N]));
        if (f->right <= 1) { /* SiLU's limit at -infinity is the product of infinity and 0 */
            assert_true(fabs(out[N + 1] - f->left) <= 0x1p-126 && out[N + 2] == f->right);
            assert_true(fabs(out[N + 3] - f->left) <= 0x1p-126);
        }
        assert_true(out[N + 4] == fmin(f->right, 0x1p99));
        assert_true(out[N + 5] == f->value(0));
        op_rig_close(&rig);
        op_graph_end(graph);
    }
    free(in);
    free(out);
}

static void integers_are_refused(void **state) {
    (void)state;
    for (int s = 0; s < SUBJECTS; ++s) {
        cleat_graph *graph = op_graph();
        assert_null(subjects[s].emit(graph, cleat_input(graph, "x", CLEAT_I32, 1, (int64_t[]){3})));
        op_graph_refused(graph, CLEAT_ERR_SHAPE, subjects[s].op, "x is i32, it must be f32, f16 or bf16");
    }
}

int main(void) {
    const struct CMUnitTest extra[] = {cmocka_unit_test(errors_on_a_grid), cmocka_unit_test(integers_are_refused)};
    const op_test tests[SUBJECTS] = {TEST(0, "sigmoid"), TEST(1, "tanh"), TEST(2, "silu"), TEST(3, "gelu_tanh")};
    return op_main(tests, SUBJECTS, extra, 2);
}
