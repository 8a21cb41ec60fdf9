/* Max pooling and its gradient. */
/* ctest: device */
#include "harness.h"

#include "cleat/ops.h"

#include <math.h>
#include <string.h>

/* dims: B, H, W, C, size, stride, padding, x is a constant */
enum { BATCH, HEIGHT, WIDTH, CHANNELS, SIZE, STRIDE, PADDING, CONSTANT };

static void build(op_case *c) {
    const int64_t *d = c->dims;
    cleat_tensor *x =
        d[CONSTANT] ? op_constant(c, "x", c->storage, 4, d, -2, 2) : op_input(c, "x", c->storage, 4, d, -2, 2);
    op_output(c, cleat_max_pool(c->graph, x, d[SIZE], d[STRIDE], d[PADDING]));
}

/* Values whose distances exceed the rounding of any storage type and the steps of the finite differences:
 * multiples of 1/16, all distinct within 17 x 15 neighbours of a channel. */
static void fill(const op_case *c, int tensor, double *values, int64_t count) {
    (void)tensor;
    for (int64_t i = 0; i < count; ++i) {
        int64_t ch = i % c->dims[CHANNELS], pixel = i / c->dims[CHANNELS];
        values[i] = (double)((pixel * 97 + ch * 31) % 256 - 128) / 16;
    }
}

static int64_t outputs(const op_case *c, int extent) {
    return (c->dims[extent] + 2 * c->dims[PADDING] - c->dims[SIZE]) / c->dims[STRIDE] + 1;
}

/* Index in x of the maximum of output i. */
static int64_t winner(const op_case *c, const double *x, int64_t i) {
    const int64_t *d = c->dims, rows = outputs(c, HEIGHT), columns = outputs(c, WIDTH);
    int64_t ch = i % d[CHANNELS], q = i / d[CHANNELS] % columns, p = i / d[CHANNELS] / columns % rows;
    int64_t b = i / d[CHANNELS] / columns / rows, best = -1;
    for (int64_t r = 0; r < d[SIZE]; ++r)
        for (int64_t s = 0; s < d[SIZE]; ++s) {
            int64_t h = p * d[STRIDE] + r - d[PADDING], w = q * d[STRIDE] + s - d[PADDING];
            if (h < 0 || w < 0 || h >= d[HEIGHT] || w >= d[WIDTH]) continue;
            int64_t here = ((b * d[HEIGHT] + h) * d[WIDTH] + w) * d[CHANNELS] + ch;
            if (best < 0 || x[here] > x[best] || (isnan(x[here]) && !isnan(x[best]))) best = here;
        }
    return best;
}

static int64_t all_outputs(const op_case *c) {
    return c->dims[BATCH] * outputs(c, HEIGHT) * outputs(c, WIDTH) * c->dims[CHANNELS];
}

static void reference(const op_case *c, const double *const *in, double *const *out) {
    for (int64_t i = 0; i < all_outputs(c); ++i) out[0][i] = in[0][winner(c, in[0], i)];
}

static void gradient(const op_case *c, const double *const *in, const double *const *dout, double *const *din) {
    for (int64_t i = 0; i < all_outputs(c) && din[0]; ++i) din[0][winner(c, in[0], i)] += dout[0][i];
}

/* A pixel is the maximum of at most this number of windows. */
static compare_tolerance tolerance(const op_case *c, int tensor, bool is_gradient) {
    (void)tensor;
    double across = (double)((c->dims[SIZE] + c->dims[STRIDE] - 1) / c->dims[STRIDE]);
    return (compare_tolerance){.scale = is_gradient ? across : 0, .length = across * across, .f32_units = 1};
}

static const op_row rows[] = {
    {2, 5, 7, 17, 3, 2, 1}, {1, 4, 4, 3, 2, 2, 0}, {3, 9, 6, 64, 3, 2, 1},   {2, 13, 11, 130, 3, 2, 1},
    {1, 7, 5, 3, 2, 3, 0},  {2, 6, 5, 1, 3, 1, 1}, {1, 5, 5, 3, 4, 2, 2, 1},
};

static const op_test test = {.op = "max_pool",
                             .rows = rows,
                             .row_count = sizeof rows / sizeof rows[0],
                             .build = build,
                             .fill = fill,
                             .reference = reference,
                             .gradient = gradient,
                             .tolerance = tolerance,
                             .samples = 4};

/* --- ties, infinities and NaN --- */

enum { SIDE = 4, WIDE = 17, IN = SIDE * SIDE * WIDE, OUT = 4 * WIDE };

/* Non-overlapping windows of 2 x 2, [1, 4, 4, 17] -> [1, 2, 2, 17]; all channels hold the same values. */
static void run_special(const op_shape *shape, const double *plane, double *y, double *dx) {
    op_rig rig;
    double x[IN], dy[OUT];
    cleat_graph *graph = op_graph();
    cleat_tensor *in = cleat_input(graph, "x", CLEAT_F32, 4, (int64_t[]){1, SIDE, SIDE, WIDE});
    cleat_require_grad(graph, in);
    cleat_tensor *out = cleat_max_pool(graph, in, 2, 2, 0);
    cleat_tensor *arriving = cleat_input(graph, "dy", CLEAT_F32, 4, (int64_t[]){1, 2, 2, WIDE});
    cleat_backward_from(graph, &out, &arriving, 1);
    cleat_retain(graph, out);
    cleat_retain(graph, cleat_gradient(graph, in));
    assert_true(op_rig_open(&rig, graph, shape, NULL, 0));
    for (int i = 0; i < IN; ++i) x[i] = plane[i / WIDE];
    for (int i = 0; i < OUT; ++i) dy[i] = 1 + i / WIDE;
    op_rig_write(&rig, in, x);
    op_rig_write(&rig, arriving, dy);
    op_rig_run(&rig, 0, -1);
    op_rig_read(&rig, out, y);
    op_rig_read(&rig, cleat_gradient(graph, in), dx);
    op_rig_close(&rig);
    op_graph_end(graph);
}

static void first_largest_wins(void **state) {
    (void)state;
    static const op_shape *const shapes[] = {&op_shape_cpu, &op_shape_gpu, &op_shape_gpu64};
    const double plane[] = {7,         7,         1, NAN, /**/ 7,         7,         NAN,      9, /**/
                            -INFINITY, -INFINITY, 3, 4,   /**/ -INFINITY, -INFINITY, INFINITY, 4};
    const int winners[] = {0, 3, 8, 14};
    const double largest[] = {7, NAN, -INFINITY, INFINITY};
    for (size_t s = 0; s < 3; ++s) {
        double y[OUT], dx[IN];
        run_special(shapes[s], plane, y, dx);
        for (int i = 0; i < OUT; ++i) {
            double want = largest[i / WIDE];
            assert_true(isnan(want) ? isnan(y[i]) : y[i] == want);
        }
        for (int i = 0; i < IN; ++i) {
            double want = 0;
            for (int k = 0; k < 4; ++k)
                if (winners[k] == i / WIDE) want = k + 1;
            assert_true(dx[i] == want);
        }
    }
}

/* --- indices stored for backward only; misuse --- */

static void notes_winners_for_backward_only(void **state) {
    (void)state;
    for (int wanted = 0; wanted < 2; ++wanted) {
        cleat_graph *graph = op_graph();
        cleat_tensor *x = cleat_input(graph, "x", CLEAT_F32, 4, (int64_t[]){1, 4, 4, 3});
        if (wanted) cleat_require_grad(graph, x);
        assert_int_equal(cleat_max_pool(graph, x, 2, 2, 0)->producer->n_out, 1 + wanted);
        op_graph_end(graph);
    }
}

static void rejects(void **state) {
    (void)state;
    static const struct {
        cleat_dtype dtype;
        int rank;
        int64_t size, stride, padding;
        const char *says;
    } misfits[] = {
        {CLEAT_F32, 3, 2, 2, 0, "[B, H, W, C]"}, {CLEAT_I32, 4, 2, 2, 0, "f32, f16 or bf16"},
        {CLEAT_F32, 4, 0, 2, 0, "size"},         {CLEAT_F32, 4, 17, 1, 8, "size"},
        {CLEAT_F32, 4, 2, 0, 0, "stride"},       {CLEAT_F32, 4, 2, 1, 2, "padding"},
        {CLEAT_F32, 4, 2, 1, -1, "padding"},     {CLEAT_F32, 4, 2, 1LL << 40, 0, "stride"},
        {CLEAT_F32, 4, 5, 1, 0, "smaller"},
    };
    for (size_t i = 0; i < sizeof misfits / sizeof *misfits; ++i) {
        cleat_error error = {0};
        cleat_graph *graph = op_graph();
        cleat_tensor *x = cleat_input(graph, "x", misfits[i].dtype, misfits[i].rank, (int64_t[]){2, 4, 4, 3});
        assert_null(cleat_max_pool(graph, x, misfits[i].size, misfits[i].stride, misfits[i].padding));
        assert_int_equal(cleat_graph_status(graph, &error), CLEAT_ERR_SHAPE);
        assert_non_null(strstr(error.text, misfits[i].says));
        op_graph_end(graph);
    }
}

int main(void) {
    const struct CMUnitTest extra[] = {cmocka_unit_test(first_largest_wins),
                                       cmocka_unit_test(notes_winners_for_backward_only), cmocka_unit_test(rejects)};
    return op_main(&test, 1, extra, sizeof extra / sizeof *extra);
}
