/* The frame-aligned point error against its definition. */
/* ctest: device oclgrind=3@14 */
#include "harness.h"

#include "cleat/ops.h"

#include <math.h>
#include <string.h>

enum { B, L, EMPTY }; /* EMPTY: the last chain has no residue */
enum { X, RIGID_FRAMES, REFERENCE, MASK, LENGTHS, SAMPLE_WEIGHT };

static void build(op_case *c) {
    const int64_t coords[] = {c->dims[B], c->dims[L], 3}, rigid_frames[] = {c->dims[B], c->dims[L], 9};
    const int64_t sample_weight_shape[] = {3, c->dims[B]};
    cleat_tensor *x = op_input(c, "x", CLEAT_F32, 3, coords, -8, 8);
    cleat_tensor *r = op_input(c, "frames", CLEAT_F32, 3, rigid_frames, -1, 1); /* any matrix will do */
    cleat_structure target = {.coords = op_constant(c, "coords", CLEAT_F32, 3, coords, -8, 8),
                              .mask = op_constant(c, "mask", CLEAT_F32, 2, coords, 0, 1),
                              .lengths = op_constant(c, "lengths", CLEAT_I32, 1, coords, 0, 0)};
    cleat_tensor *sample_weight = op_constant(c, "scale", CLEAT_F32, 2, sample_weight_shape, 0.5, 1.5);
    op_output(c, cleat_frame_loss(c->graph, x, r, &target, sample_weight, 2));
}

static void fill(const op_case *c, int tensor, double *values, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
        if (tensor == MASK) values[i] = values[i] < 0.8;
        if (tensor == LENGTHS) values[i] = i + 1 == count && c->dims[EMPTY] ? 0 : (double)c->dims[L] - (double)(i % 2);
    }
}

static void subtract(const double *a, const double *b, double *out) {
    for (int k = 0; k < 3; ++k) out[k] = a[k] - b[k];
}

static void cross(const double *a, const double *b, double *out) {
    for (int k = 0; k < 3; ++k) out[k] = a[(k + 1) % 3] * b[(k + 2) % 3] - a[(k + 2) % 3] * b[(k + 1) % 3];
}

static double norm(const double *a) {
    return sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2]);
}

static void scale_to_unit(double *a) {
    double length = norm(a);
    for (int k = 0; k < 3; ++k) a[k] /= length;
}

/* frame[row][column] of residue i. */
static void reference_frame(const double *y, int64_t i, double frame[3][3]) {
    static const double c[3][3] = {{0, 0.86336813, 0.50457454}, {-1, 0, 0}, {0, -0.50457454, 0.86336813}};
    double a[3], b[3], e[3][3]; /* e[k]: axis k */
    subtract(y + 3 * i, y + 3 * (i - 1), a);
    subtract(y + 3 * (i + 1), y + 3 * i, b);
    for (int k = 0; k < 3; ++k) e[0][k] = a[k] + b[k];
    cross(a, b, e[2]);
    scale_to_unit(e[0]);
    scale_to_unit(e[2]);
    cross(e[2], e[0], e[1]);
    for (int row = 0; row < 3; ++row)
        for (int column = 0; column < 3; ++column) {
            frame[row][column] = 0;
            for (int k = 0; k < 3; ++k) frame[row][column] += e[k][row] * c[k][column];
        }
}

static double pair_error(const double *x, const double *r, const double *y, double f[3][3], int64_t i, int64_t j) {
    double p[3], v[3], square = 0.01;
    subtract(x + 3 * j, x + 3 * i, p);
    subtract(y + 3 * j, y + 3 * i, v);
    for (int column = 0; column < 3; ++column) {
        double u = 0;
        for (int row = 0; row < 3; ++row) u += r[9 * i + 3 * row + column] * p[row] - f[row][column] * v[row];
        square += u * u;
    }
    return 10 / (10 + norm(v)) * sqrt(square);
}

static void reference(const op_case *c, const double *const *in, double *const *out) {
    int64_t length = c->dims[L];
    out[0][0] = 0;
    for (int64_t b = 0; b < c->dims[B]; ++b) {
        const double *x = in[X] + b * length * 3, *r = in[RIGID_FRAMES] + b * length * 9,
                     *y = in[REFERENCE] + b * length * 3;
        const double *mask = in[MASK] + b * length;
        int64_t n = (int64_t)in[LENGTHS][b];
        double sum = 0, count = 0;
        for (int64_t i = 1; i + 1 < n; ++i) {
            double frame[3][3];
            if (!mask[i - 1] || !mask[i] || !mask[i + 1]) continue;
            reference_frame(y, i, frame);
            for (int64_t j = 0; j < n; ++j) {
                if (!mask[j]) continue;
                sum += pair_error(x, r, y, frame, i, j);
                count += 1;
            }
        }
        if (count > 0) out[0][0] += in[SAMPLE_WEIGHT][2 * c->dims[B] + b] * sum / count;
    }
}

/* Errors are at most 10 Angstrom, averaged; the gradient of a frame is weighted by distances of up to 30. */
static compare_tolerance tolerance(const op_case *c, int tensor, bool gradient) {
    double size = gradient ? (tensor == RIGID_FRAMES ? 30 : 3) : 20;
    return (compare_tolerance){.scale = size * (double)c->dims[B], .length = c->dims[L], .f32_units = 16};
}

static const op_row rows[] = {{1, 1, 0}, {2, 2, 0}, {2, 3, 0}, {3, 17, 1}, {2, 66, 0}};

static const op_test tests[] = {{.op = "frame_loss",
                                 .rows = rows,
                                 .row_count = sizeof rows / sizeof rows[0],
                                 .build = build,
                                 .fill = fill,
                                 .reference = reference,
                                 .tolerance = tolerance,
                                 .only = 1u << CLEAT_F32}};

int main(void) {
    return op_main(tests, sizeof tests / sizeof tests[0], NULL, 0);
}
