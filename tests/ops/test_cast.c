/* Casts between f32 and the storage types, in both directions. */
/* ctest: device oclgrind=2 oclgrind=3 */
#include "harness.h"

#include "cleat/ops.h"

/* dims[2]: 0 storage -> f32, 1 f32 -> storage, 2 f16 <-> bf16 */
static cleat_dtype other(const op_case *c) {
    if (c->storage == CLEAT_F32) return CLEAT_F16;
    return c->storage == CLEAT_F16 ? CLEAT_BF16 : CLEAT_F16;
}

static void build(op_case *c) {
    const int64_t shape[] = {c->dims[0], c->dims[1]};
    cleat_dtype from = c->dims[2] == 1 ? CLEAT_F32 : c->storage;
    cleat_dtype to = c->dims[2] == 0 ? CLEAT_F32 : c->dims[2] == 1 ? c->storage : other(c);
    if (from == to) to = other(c);
    cleat_tensor *x = c->dims[3] ? op_param(c, "x", 2, shape, -3, 3) : op_input(c, "x", from, 2, shape, -3, 3);
    op_output(c, cleat_cast(c->graph, x, to));
}

static void reference(const op_case *c, const double *const *in, double *const *out) {
    for (int64_t i = 0; i < c->dims[0] * c->dims[1]; ++i) out[0][i] = in[0][i];
}

static void gradient(const op_case *c, const double *const *in, const double *const *dout, double *const *din) {
    (void)in;
    for (int64_t i = 0; i < c->dims[0] * c->dims[1]; ++i) din[0][i] += dout[0][i];
}

/* Exact except for the one rounding of the result, and the f32 sum of the accum. */
static compare_tolerance tolerance(const op_case *c, int tensor, bool is_gradient) {
    (void)c, (void)tensor;
    return (compare_tolerance){.scale = 2, .length = 1, .f32_units = is_gradient ? 1 : 0};
}

/* rows, width, kind, x is a parameter */
static const op_row rows[] = {{1, 1, 0},   {1, 1, 1},   {3, 17, 0}, {3, 17, 1},
                              {7, 331, 0}, {7, 331, 1}, {2, 40, 2}, {3, 21, 1, 1}};

static const op_test test = {.op = "cast",
                             .rows = rows,
                             .row_count = sizeof rows / sizeof rows[0],
                             .build = build,
                             .reference = reference,
                             .gradient = gradient,
                             .tolerance = tolerance,
                             .samples = 4};

int main(void) {
    return op_main(&test, 1, NULL, 0);
}
