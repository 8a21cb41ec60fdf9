/* The rigid chain against its definition by matrix products. */
/* ctest: device oclgrind=2 */
#include "harness.h"

#include "cleat/ops.h"

#include <math.h>
#include <string.h>

enum { B, L, SHORT }; /* SHORT: the number of residues missing in the last chain */

static void build(op_case *c) {
    const int64_t steps[] = {c->dims[B], c->dims[L], 6};
    cleat_tensor *o = op_input(c, "steps", c->storage, 3, steps, -1, 1);
    cleat_tensor *lengths = op_constant(c, "lengths", CLEAT_I32, 1, &c->dims[B], 0, 0);
    cleat_tensor *rigid_frames;
    op_output(c, cleat_rigid_chain(c->graph, o, lengths, &rigid_frames));
    op_output(c, rigid_frames);
}

static void fill(const op_case *c, int tensor, double *values, int64_t count) {
    if (tensor != 1) return;
    for (int64_t b = 0; b < count; ++b) values[b] = (double)c->dims[L];
    values[count - 1] -= (double)c->dims[SHORT];
}

static void multiply(double a[3][3], double b[3][3], double out[3][3]) {
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) out[i][j] = a[i][0] * b[0][j] + a[i][1] * b[1][j] + a[i][2] * b[2][j];
}

/* A rotation from the quaternion (1, x, y, z), normalised. */
static void rotation(double x, double y, double z, double out[3][3]) {
    double n = 1 + x * x + y * y + z * z;
    double q[3][3] = {{1 + x * x - y * y - z * z, 2 * (x * y - z), 2 * (x * z + y)},
                      {2 * (x * y + z), 1 - x * x + y * y - z * z, 2 * (y * z - x)},
                      {2 * (x * z - y), 2 * (y * z + x), 1 - x * x - y * y + z * z}};
    for (int i = 0; i < 9; ++i) out[i / 3][i % 3] = q[i / 3][i % 3] / n;
}

static void chain(const double *o, int64_t length, double *x, double *rigid_frames) {
    double twist = 32.7 * M_PI / 180, r[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    double helix[3][3] = {{cos(twist), -sin(twist), 0}, {sin(twist), cos(twist), 0}, {0, 0, 1}};
    double step[3] = {8.9 * (cos(twist) - 1), 8.9 * sin(twist), 2.81};
    if (length > 0) memcpy(rigid_frames, r, sizeof r);
    for (int64_t i = 1; i < length; ++i) {
        double q[3][3], turn[3][3], next[3][3];
        for (int k = 0; k < 3; ++k) {
            x[3 * i + k] = x[3 * (i - 1) + k];
            for (int j = 0; j < 3; ++j) x[3 * i + k] += r[k][j] * (step[j] + o[6 * i + j]);
        }
        rotation(0.3 * o[6 * i + 3], 0.3 * o[6 * i + 4], 0.3 * o[6 * i + 5], q);
        multiply(helix, q, turn);
        multiply(r, turn, next);
        memcpy(r, next, sizeof r);
        memcpy(rigid_frames + 9 * i, r, sizeof r);
    }
}

static void reference(const op_case *c, const double *const *in, double *const *out) {
    int64_t length = c->dims[L];
    memset(out[0], 0, (size_t)(c->dims[B] * length * 3) * sizeof *out[0]);
    memset(out[1], 0, (size_t)(c->dims[B] * length * 9) * sizeof *out[1]);
    for (int64_t b = 0; b < c->dims[B]; ++b)
        chain(in[0] + b * length * 6, (int64_t)in[1][b], out[0] + b * length * 3, out[1] + b * length * 9);
}

/* Coordinates grow by about 6 A per residue, and the rounding of every rotation affects all later residues; a
 * gradient sums the lever arms of all later residues. */
static compare_tolerance tolerance(const op_case *c, int tensor, bool gradient) {
    (void)tensor;
    double length = (double)c->dims[L];
    if (!gradient) /* computed in f32 whatever the storage of the steps */
        return (compare_tolerance){.scale = 6 * length, .length = c->dims[L], .f32_units = 16};
    return (compare_tolerance){.scale = 3 * length * length, .length = c->dims[L], .f32_units = 16};
}

static const op_row rows[] = {{1, 1, 0}, {2, 2, 0}, {3, 17, 5}, {2, 40, 40}, {1, 130, 3}};

static const op_test tests[] = {{.op = "rigid_chain",
                                 .rows = rows,
                                 .row_count = sizeof rows / sizeof rows[0],
                                 .build = build,
                                 .fill = fill,
                                 .reference = reference,
                                 .tolerance = tolerance}};

int main(void) {
    return op_main(tests, sizeof tests / sizeof tests[0], NULL, 0);
}
