/* Rotary positions against a double-precision reference. */
/* ctest: device oclgrind=1 */
#include "harness.h"

#include "cleat/ops.h"

#include <math.h>

enum { BATCH, LENGTH, HEADS, TURNING, HEAD, WIDTH, FORM }; /* the dims of a row */
enum { NEIGHBOURS = 1, PLACES = 2, LLAMA3 = 4, LINEAR = 8 };

static cleat_rotary_angles angles_of(const op_case *c) {
    cleat_rotary_angles angles = {.width = c->dims[WIDTH], .base = 10000, .factor = 1};
    if (c->dims[FORM] & (LLAMA3 | LINEAR)) angles.factor = 8;
    if (c->dims[FORM] & LLAMA3) {
        angles.base = 500000;
        angles.low_turns = 1;
        angles.high_turns = 4;
        angles.old_length = 256;
    }
    return angles;
}

static void build(op_case *c) {
    const int64_t *d = c->dims, shape[] = {d[BATCH], d[LENGTH], d[HEADS] * d[HEAD]};
    const cleat_rotary_angles angles = angles_of(c);
    cleat_tensor *x = op_input(c, "x", c->storage, 3, shape, -2, 2), *table, *positions = NULL;
    if (d[FORM] & PLACES) positions = op_constant(c, "positions", CLEAT_I32, 2, shape, -2, (double)d[LENGTH] + 1);
    table = cleat_rotary_table(c->graph, d[LENGTH], &angles);
    op_output(c, cleat_rotary(c->graph, x, table, positions, (int)d[HEADS], (int)d[TURNING], d[FORM] & NEIGHBOURS));
}

/* From the formulas of Su et al. and of Hugging Face's modeling_rope_utils. */
static double angle(const op_case *c, double position, int64_t pair) {
    const cleat_rotary_angles a = angles_of(c);
    double frequency = 1 / pow(a.base, 2 * (double)pair / (double)a.width);
    if (c->dims[FORM] & LINEAR) frequency /= a.factor;
    if (c->dims[FORM] & LLAMA3) {
        const double wave = 2 * M_PI / frequency, old = (double)a.old_length, smooth = (old / wave - 1) / (4 - 1);
        if (wave > old / 1)
            frequency /= a.factor;
        else if (wave > old / 4)
            frequency = (1 - smooth) * frequency / a.factor + smooth * frequency;
    }
    return position * frequency;
}

/* y = x turned forward, or back; a position outside of the table is its nearest (padding has -1). */
static void turn(const op_case *c, const double *positions, const double *x, double direction, double *y) {
    const int64_t *d = c->dims, pairs = d[WIDTH] / 2, apart = d[FORM] & NEIGHBOURS ? 1 : pairs;
    for (int64_t h = 0; h < d[BATCH] * d[LENGTH] * d[HEADS]; ++h) {
        const int64_t row = h / d[HEADS], turned = h % d[HEADS] < d[TURNING] ? d[WIDTH] : 0;
        const double given = positions ? positions[row] : (double)(row % d[LENGTH]);
        const double position = fmin(fmax(given, 0), (double)d[LENGTH] - 1);
        for (int64_t i = turned; i < d[HEAD]; ++i) y[h * d[HEAD] + i] += x[h * d[HEAD] + i];
        for (int64_t p = 0; p < turned / 2; ++p) {
            const int64_t a = h * d[HEAD] + (d[FORM] & NEIGHBOURS ? 2 * p : p), b = a + apart;
            const double s = direction * sin(angle(c, position, p)), k = cos(angle(c, position, p));
            y[a] += x[a] * k - x[b] * s;
            y[b] += x[b] * k + x[a] * s;
        }
    }
}

static void reference(const op_case *c, const double *const *in, double *const *out) {
    const int64_t *d = c->dims;
    for (int64_t i = 0; i < d[BATCH] * d[LENGTH] * d[HEADS] * d[HEAD]; ++i) out[0][i] = 0;
    turn(c, d[FORM] & PLACES ? in[1] : NULL, in[0], 1, out[0]);
}

static void gradient(const op_case *c, const double *const *in, const double *const *dout, double *const *din) {
    turn(c, c->dims[FORM] & PLACES ? in[1] : NULL, dout[0], -1, din[0]);
}

/* Two products below 2; sine and cosine have an error of 3e-7. */
static compare_tolerance tolerance(const op_case *c, int tensor, bool is_gradient) {
    (void)c, (void)tensor, (void)is_gradient;
    return (compare_tolerance){.scale = 4, .length = 2, .f32_units = 4};
}

static const op_row rows[] = {{1, 1, 1, 1, 2, 2},        {2, 5, 3, 2, 8, 8},         {3, 33, 4, 4, 10, 6},
                              {2, 7, 5, 3, 64, 64, 1},   {2, 40, 3, 2, 64, 32, 3},   {1, 300, 2, 1, 80, 80, 2},
                              {1, 300, 3, 2, 64, 64, 4}, {2, 17, 3, 2, 128, 128, 6}, {1, 40, 2, 2, 16, 16, 8}};

static const op_test test = {.op = "rotary",
                             .rows = rows,
                             .row_count = sizeof rows / sizeof rows[0],
                             .build = build,
                             .reference = reference,
                             .gradient = gradient,
                             .tolerance = tolerance,
                             .samples = 4};

static void wrong_shapes_are_refused(void **state) {
    (void)state;
    const int64_t shape[] = {2, 3, 12}, few[] = {2, 4}, table[] = {3, 4}, wide[] = {3, 6};
    const struct {
        int heads, turning;
        const int64_t *table;
        const char *text;
    } cases[] = {{3, 3, few, "2 places for 3 positions"},
                 {4, 2, table, "heads must be of even width"},
                 {0, 0, table, "heads must be of even width"},
                 {2, 3, table, "heads must be of even width"},
                 {3, 2, wide, "at most 4"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        cleat_graph *graph = op_graph();
        cleat_tensor *x = cleat_input(graph, "x", CLEAT_F32, 3, shape);
        cleat_tensor *angles = cleat_input(graph, "angles", CLEAT_F32, 2, cases[i].table);
        cleat_rotary(graph, x, angles, NULL, cases[i].heads, cases[i].turning, false);
        op_graph_refused(graph, CLEAT_ERR_SHAPE, "rotary", cases[i].text);
    }
}

int main(void) {
    const struct CMUnitTest extra[] = {cmocka_unit_test(wrong_shapes_are_refused)};
    return op_main(&test, 1, extra, 1);
}
