/* GELU against erf in double precision. */
/* ctest: device oclgrind=2 */
#include "harness.h"

#include "cleat/ops.h"

#include <math.h>
#include <stdlib.h>

static void build(op_case *c) {
    const int64_t shape[] = {c->dims[0], c->dims[1]};
    double reach = (double)c->dims[2];
    op_output(c, cleat_gelu(c->graph, op_input(c, "x", c->storage, 2, shape, -reach, reach)));
}

static void reference(const op_case *c, const double *const *in, double *const *out) {
    for (int64_t i = 0; i < c->dims[0] * c->dims[1]; ++i) out[0][i] = 0.5 * in[0][i] * erfc(-in[0][i] * M_SQRT1_2);
}

static void gradient(const op_case *c, const double *const *in, const double *const *dout, double *const *din) {
    for (int64_t i = 0; i < c->dims[0] * c->dims[1]; ++i) {
        double x = in[0][i], density = exp(-0.5 * x * x) * M_SQRT1_2 * 0.5 * M_2_SQRTPI;
        din[0][i] += dout[0][i] * (0.5 * erfc(-x * M_SQRT1_2) + x * density);
    }
}

/* Forward: the error is 2 units relative to |x| (cl/lib/gelu.clh), including the rounding of the result.
 * Backward: Phi is accurate to 2 units, and the density term (below 0.25) adds 2 more; dout is below 1; the
 * sum with the accum is of size 2. */
static compare_tolerance tolerance(const op_case *c, int tensor, bool is_gradient) {
    (void)tensor;
    return (compare_tolerance){
        .scale = is_gradient ? 2 : (double)c->dims[2], .length = 1, .f32_units = is_gradient ? 3 : 2};
}

/* rows, width, largest |x| */
static const op_row rows[] = {{1, 1, 1}, {1, 15, 1}, {3, 17, 8}, {5, 1000, 3}, {40, 400, 6}, {1, 64, 60}};

static const op_test test = {.op = "gelu",
                             .rows = rows,
                             .row_count = sizeof rows / sizeof rows[0],
                             .build = build,
                             .reference = reference,
                             .gradient = gradient,
                             .tolerance = tolerance,
                             .samples = 6};

/* The bound stated in cl/lib/gelu.clh, on a fine grid: |error| <= 2e-7 |x|; and the results for values that
 * are not finite. */
static void test_error_on_a_grid(void **state) {
    (void)state;
    enum { N = 120000 };
    const int64_t shape[] = {N + 4};
    cleat_graph *graph = op_graph();
    cleat_tensor *x = cleat_input(graph, "x", CLEAT_F32, 1, shape), *y = cleat_gelu(graph, x);
    cleat_retain(graph, y);
    double *in = calloc(N + 4, sizeof *in), *out = calloc(N + 4, sizeof *out), worst = 0;
    for (int i = 0; i < N; ++i) in[i] = compare_round(CLEAT_F32, (i - N / 2) * (8.0 / N));
    in[N] = NAN;
    in[N + 1] = INFINITY;
    in[N + 2] = -0x1p99;
    in[N + 3] = 0x1p99;
    op_rig rig;
    assert_true(op_rig_open(&rig, graph, &op_shape_cpu, NULL, 0));
    op_rig_write(&rig, x, in);
    op_rig_run(&rig, 0, -1);
    op_rig_read(&rig, y, out);
    for (int i = 0; i < N; ++i) {
        double error = fabs(out[i] - 0.5 * in[i] * erfc(-in[i] * M_SQRT1_2));
        if (in[i] != 0) worst = fmax(worst, error / fabs(in[i]));
        if (!(error <= 2e-7 * fabs(in[i]))) fail_msg("gelu(%.9g) is off by %.3g |x|", in[i], error / fabs(in[i]));
    }
    print_message("largest error of gelu(x): %.3g |x|\n", worst);
    assert_true(isnan(out[N]));
    assert_true(out[N + 1] == INFINITY);
    assert_true(out[N + 2] == 0);
    assert_true(out[N + 3] == in[N + 3]);
    op_rig_close(&rig);
    free(in);
    free(out);
    op_graph_end(graph);
}

int main(void) {
    const struct CMUnitTest extra[] = {cmocka_unit_test(test_error_on_a_grid)};
    return op_main(&test, 1, extra, 1);
}
