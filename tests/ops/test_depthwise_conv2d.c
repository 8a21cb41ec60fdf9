/* Depth-wise convolution against a double-precision reference. */
/* ctest: device slow cost=13 */
#include "harness.h"

#include "cleat/ops.h"

#include <math.h>
#include <string.h>

/* dims: B, H, W, C, R, S, has a bias, the weight is an input */
enum { BATCH, HEIGHT, WIDTH, CHANNELS, KERNEL_ROWS, KERNEL_COLUMNS, HAS_BIAS, WEIGHT_IS_INPUT };

static void build(op_case *c) {
    const int64_t *d = c->dims, kernel[] = {d[KERNEL_ROWS], d[KERNEL_COLUMNS], d[CHANNELS]};
    cleat_tensor *x = op_input(c, "x", c->storage, 4, d, -2, 2);
    cleat_tensor *weight = d[WEIGHT_IS_INPUT] ? op_input(c, "weight", c->storage, 3, kernel, -1, 1)
                                              : op_weight(c, "weight", 3, kernel, -1, 1);
    cleat_tensor *bias = d[HAS_BIAS] ? op_param(c, "bias", 1, &d[CHANNELS], -1, 1) : NULL;
    op_output(c, cleat_depthwise_conv2d(c->graph, x, weight, bias));
}

typedef struct product {
    int64_t x, weight, y, channel;
} product;

/* The i-th of all products x * weight that contribute to the outputs; false if x lies outside the image. */
static bool product_at(const int64_t *d, int64_t i, product *p) {
    int64_t channel = i % d[CHANNELS], s = i / d[CHANNELS] % d[KERNEL_COLUMNS];
    int64_t r = i / d[CHANNELS] / d[KERNEL_COLUMNS] % d[KERNEL_ROWS];
    int64_t pixel = i / d[CHANNELS] / d[KERNEL_COLUMNS] / d[KERNEL_ROWS];
    int64_t w = pixel % d[WIDTH], h = pixel / d[WIDTH] % d[HEIGHT], b = pixel / d[WIDTH] / d[HEIGHT];
    int64_t from_h = h + r - d[KERNEL_ROWS] / 2, from_w = w + s - d[KERNEL_COLUMNS] / 2;
    *p = (product){.x = ((b * d[HEIGHT] + from_h) * d[WIDTH] + from_w) * d[CHANNELS] + channel,
                   .weight = (r * d[KERNEL_COLUMNS] + s) * d[CHANNELS] + channel,
                   .y = pixel * d[CHANNELS] + channel,
                   .channel = channel};
    return from_h >= 0 && from_h < d[HEIGHT] && from_w >= 0 && from_w < d[WIDTH];
}

static int64_t outputs(const int64_t *d) {
    return d[BATCH] * d[HEIGHT] * d[WIDTH] * d[CHANNELS];
}

static int64_t products(const int64_t *d) {
    return outputs(d) * d[KERNEL_ROWS] * d[KERNEL_COLUMNS];
}

static void reference(const op_case *c, const double *const *in, double *const *out) {
    const int64_t *d = c->dims;
    product p;
    for (int64_t i = 0; i < outputs(d); ++i) out[0][i] = d[HAS_BIAS] ? in[2][i % d[CHANNELS]] : 0;
    for (int64_t i = 0; i < products(d); ++i)
        if (product_at(d, i, &p)) out[0][p.y] += in[0][p.x] * in[1][p.weight];
}

static void gradient(const op_case *c, const double *const *in, const double *const *dout, double *const *din) {
    const int64_t *d = c->dims;
    product p;
    for (int64_t i = 0; i < products(d); ++i) {
        if (!product_at(d, i, &p)) continue;
        din[0][p.x] += dout[0][p.y] * in[1][p.weight];
        din[1][p.weight] += dout[0][p.y] * in[0][p.x];
    }
    for (int64_t i = 0; d[HAS_BIAS] && i < outputs(d); ++i) din[2][i % d[CHANNELS]] += dout[0][i];
}

/* Sums over the kernel (outputs), or over all pixels (gradients). */
static compare_tolerance tolerance(const op_case *c, int tensor, bool is_gradient) {
    const int64_t *d = c->dims;
    double length = is_gradient && tensor > 0 ? (double)(d[BATCH] * d[HEIGHT] * d[WIDTH])
                                              : (double)(d[KERNEL_ROWS] * d[KERNEL_COLUMNS]);
    return (compare_tolerance){.scale = 2 * sqrt(length), .length = length + 1, .f32_units = 2};
}

static const op_row rows[] = {
    {1, 4, 5, 5, 3, 3, 1},    {2, 2, 2, 64, 3, 3},     {1, 9, 17, 33, 3, 3, 1, 1}, {3, 7, 3, 16, 3, 3, 1},
    {2, 33, 20, 32, 3, 3, 1}, {1, 4, 4, 640, 3, 3, 1}, {2, 5, 4, 48, 3, 3, 0, 1},
};

/* Every other kernel size is a separate program and runs in only one storage type. */
static const op_row odd_rows[] = {{2, 5, 6, 20, 1, 5, 1}, {1, 6, 4, 8, 5, 1}, {1, 1, 1, 1, 3, 3, 1}};

#define TEST(rows_of, ...)                                                                                             \
    {                                                                                                                  \
        .op = "depthwise_conv2d", .rows = rows_of, .row_count = sizeof rows_of / sizeof rows_of[0], .build = build,    \
        .reference = reference, .gradient = gradient, .tolerance = tolerance, .samples = 4, __VA_ARGS__                \
    }

static const op_test tests[] = {TEST(rows, .title = "depthwise_conv2d"),
                                TEST(odd_rows, .title = "other kernels", .only = 1u << CLEAT_F32)};

static void rejects(void **state) {
    (void)state;
    static const struct {
        int rank, weight_rank;
        int64_t weight[3], bias;
        cleat_dtype dtype;
        const char *says;
    } misfits[] = {
        {3, 3, {3, 3, 4}, 4, CLEAT_F32, "[B, H, W, C]"},   {4, 2, {3, 3}, 4, CLEAT_F32, "weight is f32 [3, 3]"},
        {4, 3, {3, 2, 4}, 4, CLEAT_F32, "R and S odd"},    {4, 3, {17, 3, 4}, 4, CLEAT_F32, "at most 15"},
        {4, 3, {3, 3, 5}, 4, CLEAT_F32, "[R, S, 4]"},      {4, 3, {3, 3, 4}, 4, CLEAT_F16, "it must be f32"},
        {4, 3, {3, 3, 4}, 5, CLEAT_F32, "bias is f32 [5]"}};
    for (size_t i = 0; i < sizeof misfits / sizeof *misfits; ++i) {
        cleat_graph *graph = op_graph();
        cleat_tensor *x = cleat_input(graph, "x", CLEAT_F32, misfits[i].rank, (int64_t[]){1, 2, 3, 4});
        cleat_tensor *weight = cleat_input(graph, "w", misfits[i].dtype, misfits[i].weight_rank, misfits[i].weight);
        cleat_tensor *bias = cleat_input(graph, "b", CLEAT_F32, 1, &misfits[i].bias);
        assert_null(cleat_depthwise_conv2d(graph, x, weight, bias));
        op_graph_refused(graph, CLEAT_ERR_SHAPE, "depthwise_conv2d", misfits[i].says);
    }
}

int main(void) {
    const struct CMUnitTest extra[] = {cmocka_unit_test(rejects)};
    return op_main(tests, 2, extra, 1);
}
