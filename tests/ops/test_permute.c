/* Permutations of the dimensions of a tensor. */
/* ctest: device oclgrind=0 oclgrind=1 */
#include "harness.h"

#include "cleat/ops.h"

/* dims: rank, the axes as decimal digits in the order of the output (1 in front), shape [rank] */
enum { RANK, AXES, SHAPE };

static void axes_of(const op_case *c, int axes[CLEAT_MAX_RANK]) {
    int64_t digits = c->dims[AXES];
    for (int i = (int)c->dims[RANK] - 1; i >= 0; --i, digits /= 10) axes[i] = (int)(digits % 10);
}

static void build(op_case *c) {
    int axes[CLEAT_MAX_RANK];
    axes_of(c, axes);
    cleat_tensor *x = op_input(c, "x", c->storage, (int)c->dims[RANK], c->dims + SHAPE, -2, 2);
    op_output(c, cleat_permute(c->graph, x, axes));
}

static int64_t count_of(const op_case *c) {
    int64_t count = 1;
    for (int i = 0; i < c->dims[RANK]; ++i) count *= c->dims[SHAPE + i];
    return count;
}

/* Index in x of element i of the output. */
static int64_t source_of(const op_case *c, int64_t i) {
    int axes[CLEAT_MAX_RANK];
    int64_t at = 0, strides[CLEAT_MAX_RANK], stride = 1;
    axes_of(c, axes);
    for (int k = (int)c->dims[RANK] - 1; k >= 0; --k) {
        strides[k] = stride;
        stride *= c->dims[SHAPE + k];
    }
    for (int k = (int)c->dims[RANK] - 1; k >= 0; --k) {
        at += i % c->dims[SHAPE + axes[k]] * strides[axes[k]];
        i /= c->dims[SHAPE + axes[k]];
    }
    return at;
}

static void reference(const op_case *c, const double *const *in, double *const *out) {
    for (int64_t i = 0; i < count_of(c); ++i) out[0][i] = in[0][source_of(c, i)];
}

static void gradient(const op_case *c, const double *const *in, const double *const *dout, double *const *din) {
    (void)in;
    for (int64_t i = 0; i < count_of(c); ++i) din[0][source_of(c, i)] += dout[0][i];
}

/* A copy is exact; a gradient is one sum with the accum. */
static compare_tolerance tolerance(const op_case *c, int tensor, bool is_gradient) {
    (void)c, (void)tensor;
    return (compare_tolerance){.scale = is_gradient ? 2 : 0, .length = 1, .f32_units = is_gradient};
}

static const op_row rows[] = {
    {2, 110, 5, 7},
    {4, 10213, 2, 3, 5, 17},
    {3, 1021, 2, 33, 70},
    {1, 10, 9},
    {4, 13210, 3, 5, 7, 11},
    {4, 10231, 2, 17, 3, 37},
    {4, 10312, 1, 6, 40, 5},
    {4, 11302, 7, 1, 16, 32},
    {5, 104132, 2, 3, 4, 5, 18},
    {5, 121043, 2, 3, 4, 3, 33},
    {5, 112304, 2, 3, 2, 5, 20},
    {2, 101, 6, 20},
    {2, 110, 129, 257},
    {3, 1210, 1, 1, 1},
};

static const op_test test = {.op = "permute",
                             .rows = rows,
                             .row_count = sizeof rows / sizeof rows[0],
                             .build = build,
                             .reference = reference,
                             .gradient = gradient,
                             .tolerance = tolerance,
                             .samples = 4};

static void bad_axes_are_refused(void **state) {
    (void)state;
    static const struct {
        cleat_dtype dtype;
        int axes[3];
        const char *says;
    } misfits[] = {{CLEAT_I32, {0, 1, 2}, "must be f32, f16 or bf16"},
                   {CLEAT_F32, {0, 2, 2}, "axis 2 of x, f32 [2, 3, 4], as dimension 2"},
                   {CLEAT_F32, {0, 3, 1}, "axis 3"},
                   {CLEAT_F32, {-1, 0, 1}, "each of 0 to 2 must occur once"}};
    for (size_t i = 0; i < sizeof misfits / sizeof *misfits; ++i) {
        cleat_graph *graph = op_graph();
        cleat_tensor *x = cleat_input(graph, "x", misfits[i].dtype, 3, (int64_t[]){2, 3, 4});
        assert_null(cleat_permute(graph, x, misfits[i].axes));
        op_graph_refused(graph, CLEAT_ERR_SHAPE, "permute", misfits[i].says);
    }
}

int main(void) {
    const struct CMUnitTest extra[] = {cmocka_unit_test(bad_axes_are_refused)};
    return op_main(&test, 1, extra, 1);
}
