/* Average pooling and its gradient. */
/* ctest: device cost=15 */
#include "harness.h"

#include "cleat/ops.h"

/* dims: B, H, W, C, size, stride, padding */
enum { BATCH, HEIGHT, WIDTH, CHANNELS, SIZE, STRIDE, PADDING };

static void build(op_case *c) {
    const int64_t *d = c->dims;
    op_output(c,
              cleat_average_pool(c->graph, op_input(c, "x", c->storage, 4, d, -2, 2), d[SIZE], d[STRIDE], d[PADDING]));
}

static int64_t outputs(const op_case *c, int extent) {
    return (c->dims[extent] + 2 * c->dims[PADDING] - c->dims[SIZE]) / c->dims[STRIDE] + 1;
}

/* Index in x of position (r, s) of the window of output i; -1 outside the image. */
static int64_t position(const op_case *c, int64_t i, int64_t r, int64_t s) {
    const int64_t *d = c->dims, rows = outputs(c, HEIGHT), columns = outputs(c, WIDTH);
    const int64_t ch = i % d[CHANNELS], q = i / d[CHANNELS] % columns, p = i / d[CHANNELS] / columns % rows;
    const int64_t h = p * d[STRIDE] + r - d[PADDING], w = q * d[STRIDE] + s - d[PADDING];
    if (h < 0 || w < 0 || h >= d[HEIGHT] || w >= d[WIDTH]) return -1;
    return ((i / d[CHANNELS] / columns / rows * d[HEIGHT] + h) * d[WIDTH] + w) * d[CHANNELS] + ch;
}

static int64_t all_outputs(const op_case *c) {
    return c->dims[BATCH] * outputs(c, HEIGHT) * outputs(c, WIDTH) * c->dims[CHANNELS];
}

static void reference(const op_case *c, const double *const *in, double *const *out) {
    const int64_t size = c->dims[SIZE];
    for (int64_t i = 0; i < all_outputs(c); ++i) {
        out[0][i] = 0;
        for (int64_t k = 0; k < size * size; ++k) {
            const int64_t at = position(c, i, k / size, k % size);
            if (at >= 0) out[0][i] += in[0][at] / (double)(size * size);
        }
    }
}

static void gradient(const op_case *c, const double *const *in, const double *const *dout, double *const *din) {
    const int64_t size = c->dims[SIZE];
    (void)in;
    for (int64_t i = 0; i < all_outputs(c); ++i)
        for (int64_t k = 0; k < size * size; ++k) {
            const int64_t at = position(c, i, k / size, k % size);
            if (at >= 0) din[0][at] += dout[0][i] / (double)(size * size);
        }
}

/* A mean of size^2 values below 2. A gradient sums at most size^2 values below 1 / size^2, and an accum below 1. */
static compare_tolerance tolerance(const op_case *c, int tensor, bool is_gradient) {
    (void)tensor, (void)is_gradient;
    return (compare_tolerance){.scale = 2, .length = (double)(c->dims[SIZE] * c->dims[SIZE]), .f32_units = 2};
}

static const op_row rows[] = {
    {2, 5, 7, 17, 3, 2, 1},    {1, 4, 4, 3, 2, 2, 0},  {3, 9, 6, 64, 3, 2, 1},
    {2, 13, 11, 130, 3, 2, 1}, {1, 7, 5, 3, 2, 3, 0},  {2, 6, 5, 1, 3, 1, 1},
    {1, 5, 5, 3, 4, 2, 2},     {3, 7, 7, 33, 7, 1, 0}, {1, 16, 18, 2, 16, 1, 8},
};

static const op_test test = {.op = "average_pool",
                             .rows = rows,
                             .row_count = sizeof rows / sizeof rows[0],
                             .build = build,
                             .reference = reference,
                             .gradient = gradient,
                             .tolerance = tolerance,
                             .samples = 4};

static void bad_windows_are_refused(void **state) {
    (void)state;
    static const struct {
        int rank;
        int64_t size, stride, padding;
        const char *says;
    } misfits[] = {
        {3, 2, 2, 0, "[B, H, W, C]"}, {4, 0, 2, 0, "size 0"},  {4, 2, 0, 0, "stride 0"},
        {4, 2, 1, 2, "padding 2"},    {4, 5, 1, 0, "smaller"},
    };
    for (size_t i = 0; i < sizeof misfits / sizeof *misfits; ++i) {
        cleat_graph *graph = op_graph();
        cleat_tensor *x = cleat_input(graph, "x", CLEAT_F32, misfits[i].rank, (int64_t[]){2, 4, 4, 3});
        assert_null(cleat_average_pool(graph, x, misfits[i].size, misfits[i].stride, misfits[i].padding));
        op_graph_refused(graph, CLEAT_ERR_SHAPE, "average_pool", misfits[i].says);
    }
}

int main(void) {
    const struct CMUnitTest extra[] = {cmocka_unit_test(bad_windows_are_refused)};
    return op_main(&test, 1, extra, 1);
}
