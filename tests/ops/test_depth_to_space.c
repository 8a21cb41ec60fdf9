/* Rearranges patches into an image. */
/* ctest: device */
#include "harness.h"

#include "cleat/ops.h"

#include <string.h>

/* dims: B, H, W, C, patch */
enum { BATCH, HEIGHT, WIDTH, CHANNELS, PATCH };

static void build(op_case *c) {
    const int64_t *d = c->dims;
    const int64_t shape[] = {d[BATCH], d[HEIGHT], d[WIDTH], d[PATCH] * d[PATCH] * d[CHANNELS]};
    op_output(c, cleat_depth_to_space(c->graph, op_input(c, "x", c->storage, 4, shape, -2, 2), d[PATCH]));
}

/* Offset in the image of element i of the patches. */
static int64_t place(const int64_t *d, int64_t i) {
    int64_t channel = i % d[CHANNELS], s = i / d[CHANNELS] % d[PATCH], r = i / d[CHANNELS] / d[PATCH] % d[PATCH];
    int64_t pixel = i / d[CHANNELS] / d[PATCH] / d[PATCH];
    int64_t w = pixel % d[WIDTH], h = pixel / d[WIDTH] % d[HEIGHT], b = pixel / d[WIDTH] / d[HEIGHT];
    int64_t row = (b * d[HEIGHT] + h) * d[PATCH] + r;
    return (row * d[WIDTH] * d[PATCH] + w * d[PATCH] + s) * d[CHANNELS] + channel;
}

static int64_t elements(const int64_t *d) {
    return d[BATCH] * d[HEIGHT] * d[WIDTH] * d[CHANNELS] * d[PATCH] * d[PATCH];
}

static void reference(const op_case *c, const double *const *in, double *const *out) {
    for (int64_t i = 0; i < elements(c->dims); ++i) out[0][place(c->dims, i)] = in[0][i];
}

static void gradient(const op_case *c, const double *const *in, const double *const *dout, double *const *din) {
    (void)in;
    for (int64_t i = 0; i < elements(c->dims); ++i) din[0][i] += dout[0][place(c->dims, i)];
}

static compare_tolerance tolerance(const op_case *c, int tensor, bool is_gradient) {
    (void)c, (void)tensor;
    return (compare_tolerance){.scale = 3, .length = 1, .f32_units = is_gradient ? 2 : 0};
}

static const op_row rows[] = {
    {2, 3, 2, 5, 2},  {1, 1, 1, 1, 1},   {1, 4, 3, 1, 4},  {2, 1, 5, 3, 3},
    {3, 5, 7, 64, 2}, {2, 17, 21, 2, 4}, {1, 2, 2, 3, 16},
};

static const op_test test = {.op = "depth_to_space",
                             .rows = rows,
                             .row_count = sizeof rows / sizeof rows[0],
                             .build = build,
                             .reference = reference,
                             .gradient = gradient,
                             .tolerance = tolerance,
                             .samples = 4};

static void rejects(void **state) {
    (void)state;
    static const struct {
        int rank;
        int64_t patch;
        cleat_dtype dtype;
        cleat_status status;
        const char *says;
    } misfits[] = {{3, 2, CLEAT_F32, CLEAT_ERR_SHAPE, "[B, H, W, C]"},
                   {4, 3, CLEAT_F32, CLEAT_ERR_SHAPE, "multiple of 3 x 3"},
                   {4, 2, CLEAT_I32, CLEAT_ERR_SHAPE, "f32, f16 or bf16"},
                   {4, 0, CLEAT_F32, CLEAT_ERR_ARGUMENT, "patch size 0"}};
    for (size_t i = 0; i < sizeof misfits / sizeof *misfits; ++i) {
        cleat_graph *graph = op_graph();
        cleat_tensor *x = cleat_input(graph, "x", misfits[i].dtype, misfits[i].rank, (int64_t[]){1, 2, 3, 4});
        assert_null(cleat_depth_to_space(graph, x, misfits[i].patch));
        op_graph_refused(graph, misfits[i].status, "depth_to_space", misfits[i].says);
    }
}

int main(void) {
    const struct CMUnitTest extra[] = {cmocka_unit_test(rejects)};
    return op_main(&test, 1, extra, 1);
}
