/* A minimal test file to copy: GELU of x [rows, width]. See harness.h. */
/* ctest: device */
#include "harness.h"

#include "cleat/ops.h"

#include <math.h>

enum { ROWS, WIDTH }; /* the dims of a row */

static void build(op_case *c) {
    const int64_t shape[] = {c->dims[ROWS], c->dims[WIDTH]};
    op_output(c, cleat_gelu(c->graph, op_input(c, "x", c->storage, 2, shape, -4, 4)));
}

static void reference(const op_case *c, const double *const *in, double *const *out) {
    for (int64_t i = 0; i < c->dims[ROWS] * c->dims[WIDTH]; ++i)
        out[0][i] = 0.5 * in[0][i] * (1 + erf(in[0][i] * M_SQRT1_2));
}

static compare_tolerance tolerance(const op_case *c, int tensor, bool gradient) {
    (void)c, (void)tensor, (void)gradient; /* the same for y and dx: |x| < 4, and no sum is longer than 1 */
    return (compare_tolerance){.scale = 4, .length = 1, .f32_units = 4};
}

static const op_row rows[] = {{1, 1}, {3, 17}, {5, 1200}};

static const op_test gelu = {.op = "gelu",
                             .rows = rows,
                             .row_count = sizeof rows / sizeof rows[0],
                             .build = build,
                             .reference = reference,
                             .tolerance = tolerance};

int main(void) {
    return op_main(&gelu, 1, NULL, 0);
}
