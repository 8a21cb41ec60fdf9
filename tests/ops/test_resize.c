/* Bilinear interpolation against a double-precision reference. */
/* ctest: device */
#include "harness.h"

#include "cleat/ops.h"

#include <math.h>
#include <string.h>

/* dims: B, H, W, C, P, Q */
enum { BATCH, HEIGHT, WIDTH, CHANNELS, TO_HEIGHT, TO_WIDTH };

static void build(op_case *c) {
    const int64_t *d = c->dims;
    op_output(c, cleat_resize(c->graph, op_input(c, "x", c->storage, 4, d, -2, 2), d[TO_HEIGHT], d[TO_WIDTH]));
}

/* Weight of input row i for output row p. */
static double weight(int64_t p, int64_t i, int64_t in, int64_t out) {
    double at = fmax(((double)p + 0.5) * (double)in / (double)out - 0.5, 0);
    int64_t first = (int64_t)floor(at + 1e-9), next = first + 1 < in ? first + 1 : in - 1;
    double share = fmax(at - (double)first, 0);
    return (i == first ? 1 - share : 0) + (i == next ? share : 0);
}

/* Calls back for every pair of an input and an output pixel with a nonzero weight. */
static void each_pair(const int64_t *d, const double *from, double *to, bool forward) {
    for (int64_t p = 0; p < d[TO_HEIGHT]; ++p)
        for (int64_t h = 0; h < d[HEIGHT]; ++h)
            for (int64_t q = 0; weight(p, h, d[HEIGHT], d[TO_HEIGHT]) != 0 && q < d[TO_WIDTH]; ++q)
                for (int64_t w = 0; w < d[WIDTH]; ++w) {
                    double both = weight(p, h, d[HEIGHT], d[TO_HEIGHT]) * weight(q, w, d[WIDTH], d[TO_WIDTH]);
                    if (both == 0) continue;
                    for (int64_t i = 0; i < d[BATCH] * d[CHANNELS]; ++i) {
                        int64_t b = i / d[CHANNELS], channel = i % d[CHANNELS];
                        int64_t x = ((b * d[HEIGHT] + h) * d[WIDTH] + w) * d[CHANNELS] + channel;
                        int64_t y = ((b * d[TO_HEIGHT] + p) * d[TO_WIDTH] + q) * d[CHANNELS] + channel;
                        if (forward)
                            to[y] += both * from[x];
                        else
                            to[x] += both * from[y];
                    }
                }
}

static void reference(const op_case *c, const double *const *in, double *const *out) {
    const int64_t *d = c->dims;
    memset(out[0], 0, (size_t)(d[BATCH] * d[TO_HEIGHT] * d[TO_WIDTH] * d[CHANNELS]) * sizeof *out[0]);
    each_pair(d, in[0], out[0], true);
}

static void gradient(const op_case *c, const double *const *in, const double *const *dout, double *const *din) {
    (void)in;
    each_pair(c->dims, dout[0], din[0], false);
}

/* The gradient of a pixel is a sum over the outputs that read it: a window of twice the scale factors. */
static compare_tolerance tolerance(const op_case *c, int tensor, bool is_gradient) {
    (void)tensor;
    const int64_t *d = c->dims;
    double rows = 2 * ceil((double)d[TO_HEIGHT] / (double)d[HEIGHT]),
           columns = 2 * ceil((double)d[TO_WIDTH] / (double)d[WIDTH]);
    return (compare_tolerance){.scale = 2, .length = is_gradient ? rows * columns + 1 : 4, .f32_units = 4};
}

static const op_row rows[] = {
    {1, 3, 2, 5, 6, 5},     {1, 1, 1, 1, 1, 1},    {2, 4, 5, 17, 4, 5},     {1, 1, 1, 3, 7, 4},
    {2, 7, 5, 4, 3, 2},     {1, 9, 11, 3, 68, 84}, {1, 2, 3, 64, 16, 24},   {1, 2, 3, 1, 64, 96},
    {3, 17, 21, 2, 34, 42}, {1, 16, 16, 8, 1, 1},  {1, 33, 20, 16, 10, 61},
};

static const op_test test = {.op = "resize",
                             .rows = rows,
                             .row_count = sizeof rows / sizeof rows[0],
                             .build = build,
                             .reference = reference,
                             .gradient = gradient,
                             .tolerance = tolerance,
                             .samples = 2};

/* PyTorch 1.13.0a0's torch.nn.functional.interpolate(x, (3, 5), mode="bilinear", align_corners=False) of
 * x = [[0, 1, 4], [9, 16, 25]]. */
static void follows_pytorch(void **state) {
    (void)state;
    static const double x[] = {0, 1, 4, 9, 16, 25};
    static const double expected[] = {0, 0.4, 1, 2.8, 4, 4.5, 6.1, 8.5, 12.1, 14.5, 9, 11.8, 16, 21.4, 25};
    op_rig rig = {0};
    double got[15];
    cleat_graph *graph = op_graph();
    cleat_tensor *input = cleat_input(graph, "x", CLEAT_F32, 4, (int64_t[]){1, 2, 3, 1});
    cleat_tensor *y = cleat_resize(graph, input, 3, 5);
    cleat_retain(graph, y);
    assert_true(op_rig_open(&rig, graph, &op_shape_cpu, NULL, 0));
    op_rig_write(&rig, input, x);
    op_rig_run(&rig, 0, -1);
    op_rig_read(&rig, y, got);
    assert_int_equal(compare_arrays(got, expected, 15, (compare_tolerance){25, 4, 4, 0}, CLEAT_F32, CLEAT_F32, NULL),
                     -1);
    op_rig_close(&rig);
    op_graph_end(graph);
}

static void rejects(void **state) {
    (void)state;
    static const struct {
        int rank;
        int64_t wide, height;
        cleat_dtype dtype;
        cleat_status status;
        const char *says;
    } misfits[] = {{3, 3, 4, CLEAT_F32, CLEAT_ERR_SHAPE, "[B, H, W, C]"},
                   {4, 3, 4, CLEAT_U32, CLEAT_ERR_SHAPE, "f32, f16 or bf16"},
                   {4, 20000, 4, CLEAT_F32, CLEAT_ERR_SHAPE, "at most 16384"},
                   {4, 3, 0, CLEAT_F32, CLEAT_ERR_ARGUMENT, "0 x 7"},
                   {4, 3, 20000, CLEAT_F32, CLEAT_ERR_ARGUMENT, "20000 x 7"}};
    for (size_t i = 0; i < sizeof misfits / sizeof *misfits; ++i) {
        cleat_graph *graph = op_graph();
        cleat_tensor *x =
            cleat_input(graph, "x", misfits[i].dtype, misfits[i].rank, (int64_t[]){1, 2, misfits[i].wide, 4});
        assert_null(cleat_resize(graph, x, misfits[i].height, 7));
        op_graph_refused(graph, misfits[i].status, "resize", misfits[i].says);
    }
}

int main(void) {
    const struct CMUnitTest extra[] = {cmocka_unit_test(follows_pytorch), cmocka_unit_test(rejects)};
    return op_main(&test, 1, extra, 2);
}
