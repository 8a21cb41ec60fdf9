/* A range of indices of one axis. */
/* ctest: device */
#include "harness.h"

#include "cleat/ops.h"

/* dims: shape [4], axis, start, stop, whether a second range (from 0 to stop - start) of the same tensor is taken */
enum { RANK = 4, AXIS = 4, START, STOP, TWICE };

static void build(op_case *c) {
    const int64_t *d = c->dims;
    cleat_tensor *x = op_input(c, "x", c->storage, RANK, d, -2, 2);
    op_output(c, cleat_slice(c->graph, x, (int)d[AXIS], d[START], d[STOP]));
    if (d[TWICE]) op_output(c, cleat_slice(c->graph, x, (int)d[AXIS], 0, d[STOP] - d[START]));
}

/* Index in x of element i of the range that begins at `start`. */
static int64_t source_of(const op_case *c, int64_t i, int64_t start) {
    const int64_t *d = c->dims;
    int64_t at = 0, stride = 1;
    for (int axis = RANK - 1; axis >= 0; --axis) {
        const int64_t extent = axis == d[AXIS] ? d[STOP] - d[START] : d[axis];
        at += (i % extent + (axis == d[AXIS] ? start : 0)) * stride;
        i /= extent;
        stride *= d[axis];
    }
    return at;
}

static int64_t count_of(const op_case *c) {
    const int64_t *d = c->dims;
    return d[0] * d[1] * d[2] * d[3] / d[d[AXIS]] * (d[STOP] - d[START]);
}

static void reference(const op_case *c, const double *const *in, double *const *out) {
    for (int64_t i = 0; i < count_of(c); ++i) {
        out[0][i] = in[0][source_of(c, i, c->dims[START])];
        if (c->dims[TWICE]) out[1][i] = in[0][source_of(c, i, 0)];
    }
}

static void gradient(const op_case *c, const double *const *in, const double *const *dout, double *const *din) {
    (void)in;
    for (int64_t i = 0; i < count_of(c); ++i) {
        din[0][source_of(c, i, c->dims[START])] += dout[0][i];
        if (c->dims[TWICE]) din[0][source_of(c, i, 0)] += dout[1][i];
    }
}

/* A copy is exact. Up to three gradients are added, and each sum is stored. */
static compare_tolerance tolerance(const op_case *c, int tensor, bool is_gradient) {
    (void)tensor;
    return (compare_tolerance){.scale = is_gradient ? 3 : 0,
                               .length = 1,
                               .f32_units = is_gradient ? 2 : 0,
                               .storage_units = is_gradient && c->dims[TWICE]};
}

static const op_row rows[] = {
    {2, 3, 5, 7, 1, 1, 3, 1},  {1, 1, 1, 1, 0, 0, 1},      {4, 3, 2, 5, 0, 1, 3},   {3, 5, 4, 33, 3, 16, 33, 1},
    {2, 3, 17, 9, 2, 0, 5, 1}, {8, 3, 16, 64, 2, 3, 4, 1}, {2, 2, 3, 40, 3, 0, 40}, {2, 2, 3, 12, 3, 1, 9, 1},
    {2, 2, 3, 10, 3, 0, 8}, /* whole vectors at odd places because of the start or the width */
};

static const op_test test = {.op = "slice",
                             .rows = rows,
                             .row_count = sizeof rows / sizeof rows[0],
                             .build = build,
                             .reference = reference,
                             .gradient = gradient,
                             .tolerance = tolerance,
                             .samples = 4};

static void bad_ranges_are_refused(void **state) {
    (void)state;
    static const struct {
        cleat_dtype dtype;
        int axis;
        int64_t start, stop;
        const char *says;
    } misfits[] = {
        {CLEAT_I32, 0, 0, 1, "must be f32, f16 or bf16"}, {CLEAT_F32, 2, 0, 1, "axis 2 of x, f32 [3, 4]"},
        {CLEAT_F32, -1, 0, 1, "it must be 0 to 1"},       {CLEAT_F32, 1, 2, 2, "at least one index"},
        {CLEAT_F32, 1, 3, 2, "indices 3 to 2, excluded"}, {CLEAT_F32, 1, -1, 2, "of axis 1"},
        {CLEAT_F32, 0, 0, 4, "none beyond the axis"},     {CLEAT_F32, 0, INT64_MIN, INT64_MAX, "beyond"},
    };
    for (size_t i = 0; i < sizeof misfits / sizeof *misfits; ++i) {
        cleat_graph *graph = op_graph();
        cleat_tensor *x = cleat_input(graph, "x", misfits[i].dtype, 2, (int64_t[]){3, 4});
        assert_null(cleat_slice(graph, x, misfits[i].axis, misfits[i].start, misfits[i].stop));
        op_graph_refused(graph, CLEAT_ERR_SHAPE, "slice", misfits[i].says);
    }
}

int main(void) {
    const struct CMUnitTest extra[] = {cmocka_unit_test(bad_ranges_are_refused)};
    return op_main(&test, 1, extra, 1);
}
