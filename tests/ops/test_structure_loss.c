/* The structure losses against their formulas. */
/* ctest: device oclgrind=2 oclgrind=5 oclgrind=7 oclgrind=10 oclgrind=11 oclgrind=13 oclgrind=15 */
/* ctest: oclgrind=17 oclgrind=19 */
#include "harness.h"

#include "cleat/ops.h"

#include <math.h>
#include <string.h>

/* EMPTY: the last chain has no residue. TERMS: number of kinds at once, from KIND on; 0: one. */
enum { B, L, KIND, EMPTY, TERMS };

static const cleat_structure_loss_spec specs[] = {
    {.kind = CLEAT_LOSS_DISTANCE},
    {.kind = CLEAT_LOSS_LDDT, .lower = 15},
    {.kind = CLEAT_LOSS_CLASH, .lower = 4.5f},
    {.kind = CLEAT_LOSS_COORDINATE},
    {.kind = CLEAT_LOSS_BOND, .lower = 5, .upper = 7, .eps = 1e-4f},
    {.kind = CLEAT_LOSS_ANGLE, .lower = -0.2f, .eps = 1e-4f},
    {.kind = CLEAT_LOSS_CHIRALITY},
    {.kind = CLEAT_LOSS_BASE_PAIR, .lower = 10.4f},
};

enum { X, REFERENCE, MASK, LENGTHS, PARTNER, SAMPLE_WEIGHT, SPECS = sizeof specs / sizeof specs[0] };

static int terms_of(const op_case *c) {
    return c->dims[TERMS] ? (int)c->dims[TERMS] : 1;
}

/* The weights row of term i; the order differs from the terms. */
static int term_of(const op_case *c, int i) {
    return (int)(c->dims[KIND] + i + 1) % SPECS;
}

static void build(op_case *c) {
    const int64_t coords[] = {c->dims[B], c->dims[L], 3}, sample_weight_shape[] = {SPECS, c->dims[B]};
    cleat_structure_loss_spec chosen[SPECS];
    cleat_tensor *values[SPECS];
    for (int i = 0; i < terms_of(c); ++i) {
        chosen[i] = specs[c->dims[KIND] + i];
        chosen[i].term = term_of(c, i);
    }
    cleat_tensor *x = op_input(c, "x", CLEAT_F32, 3, coords, -8, 8);
    cleat_structure target = {.coords = op_constant(c, "coords", CLEAT_F32, 3, coords, -8, 8),
                              .mask = op_constant(c, "mask", CLEAT_F32, 2, coords, 0, 1),
                              .lengths = op_constant(c, "lengths", CLEAT_I32, 1, coords, 0, 0),
                              .partner = op_constant(c, "partner", CLEAT_I32, 2, coords, 0, 0)};
    cleat_tensor *sample_weight = op_constant(c, "scale", CLEAT_F32, 2, sample_weight_shape, 0.5, 1.5);
    cleat_structure_losses(c->graph, chosen, terms_of(c), x, &target, sample_weight, values);
    for (int i = 0; i < terms_of(c); ++i) op_output(c, values[i]);
}

/* Four of five residues are known; i pairs with length - 1 - i, except for every third. */
static void fill(const op_case *c, int tensor, double *values, int64_t count) {
    int64_t length = c->dims[L];
    for (int64_t i = 0; i < count; ++i) {
        if (tensor == MASK) values[i] = values[i] < 0.8;
        if (tensor == LENGTHS)
            values[i] = (double)(i + 1 == count && c->dims[EMPTY] ? 0 : length - i % 3 > 0 ? length - i % 3 : 1);
    }
    for (int64_t i = 0; tensor == PARTNER && i < count; ++i) {
        int64_t own = length - (i / length) % 3 > 0 ? length - (i / length) % 3 : 1, at = i % length;
        int64_t other = own - 1 - at;
        values[i] = at < own && other != at && (at < other ? at : other) % 3 ? (double)other : -1;
    }
}

static double distance(const double *x, int64_t i, int64_t j, double eps) {
    double sum = eps;
    for (int k = 0; k < 3; ++k) sum += (x[3 * i + k] - x[3 * j + k]) * (x[3 * i + k] - x[3 * j + k]);
    return sqrt(sum);
}

static double huber(double e, double k) {
    return fabs(e) < k ? e * e / (2 * k) : fabs(e) - k / 2;
}

static double relu(double x) {
    return x <= 0 ? 0 : x;
}

static double volume(const double *x, int64_t i, int64_t s, double *size) {
    double a[3][3], lengths = 1;
    for (int m = 0; m < 3; ++m) {
        double square = 1e-4;
        for (int k = 0; k < 3; ++k) {
            a[m][k] = x[3 * (i + (m + 1) * s) + k] - x[3 * (i + m * s) + k];
            square += a[m][k] * a[m][k];
        }
        lengths *= sqrt(square);
    }
    *size = lengths;
    return a[0][0] * (a[1][1] * a[2][2] - a[1][2] * a[2][1]) - a[0][1] * (a[1][0] * a[2][2] - a[1][2] * a[2][0]) +
           a[0][2] * (a[1][0] * a[2][1] - a[1][1] * a[2][0]);
}

typedef struct mean {
    double sum, count;
} mean;

static void pairs(int kind, const double *x, const double *ref, const double *mask, int64_t n, mean *m) {
    for (int64_t i = 0; i < n; ++i)
        for (int64_t j = i + 1; j < n; ++j) {
            double d = distance(x, i, j, (double)1e-4f);
            if (kind == CLEAT_LOSS_CLASH) {
                if (j >= i + 2) m->sum += pow(relu(4.5 - d), 2);
                continue;
            }
            double reference = distance(ref, i, j, 0), e = fabs(d - reference), kept = 0;
            if (!mask[i] || !mask[j]) continue;
            if (kind == CLEAT_LOSS_LDDT && reference >= 15) continue;
            for (double c = 0.5; c < 5; c *= 2) kept += 0.25 / (1 + exp(e - c));
            m->sum += kind == CLEAT_LOSS_LDDT ? 1 - kept : huber(e, 1);
            m->count += 1;
        }
    if (kind == CLEAT_LOSS_CLASH) m->count = (double)n;
}

static void steps(const double *x, const double *ref, const double *mask, int64_t n, mean *m) {
    for (int64_t s = 1; s <= 16; s *= 2)
        for (int64_t i = 0; i + 3 * s < n; ++i) {
            double size, own_size;
            if (!mask[i] || !mask[i + s] || !mask[i + 2 * s] || !mask[i + 3 * s]) continue;
            double reference = volume(ref, i, s, &size);
            m->sum += huber((volume(x, i, s, &own_size) - reference) / fmax(size, 1), 0.2);
            m->count += 1;
        }
}

static double turn(const double *x, int64_t i) {
    double sum = 0;
    for (int k = 0; k < 3; ++k) sum += (x[3 * i + 3 + k] - x[3 * i + k]) * (x[3 * i + 6 + k] - x[3 * i + 3 + k]);
    return sum / (distance(x, i, i + 1, 1e-4) * distance(x, i + 1, i + 2, 1e-4));
}

static mean chain(int kind, const double *x, const double *ref, const double *mask, const double *partner, int64_t n) {
    mean m = {0, 0};
    if (kind <= CLEAT_LOSS_CLASH) pairs(kind, x, ref, mask, n, &m);
    if (kind == CLEAT_LOSS_CHIRALITY) steps(x, ref, mask, n, &m);
    for (int64_t i = 0; i < n; ++i) {
        if (kind == CLEAT_LOSS_COORDINATE && mask[i]) {
            for (int k = 0; k < 3; ++k) m.sum += pow(x[3 * i + k] - ref[3 * i + k], 2) / 3;
            m.count += 1;
        }
        if (kind == CLEAT_LOSS_BOND && i + 1 < n) {
            double d = distance(x, i, i + 1, 1e-4);
            m.sum += pow(relu(d - 7), 2) + pow(relu(5 - d), 2);
            m.count += 1;
        }
        if (kind == CLEAT_LOSS_ANGLE && i + 2 < n) {
            m.sum += pow(relu(-0.2 - turn(x, i)), 2);
            m.count += 1;
        }
        if (kind == CLEAT_LOSS_BASE_PAIR && partner[i] > (double)i) {
            m.sum += huber(distance(x, i, (int64_t)partner[i], 1e-4) - 10.4, 1);
            m.count += 1;
        }
    }
    return m;
}

static void reference(const op_case *c, const double *const *in, double *const *out) {
    int64_t length = c->dims[L];
    for (int i = 0; i < terms_of(c); ++i) {
        out[i][0] = 0;
        for (int64_t b = 0; b < c->dims[B]; ++b) {
            mean m = chain(specs[c->dims[KIND] + i].kind, in[X] + b * length * 3, in[REFERENCE] + b * length * 3,
                           in[MASK] + b * length, in[PARTNER] + b * length, (int64_t)in[LENGTHS][b]);
            if (m.count > 0) out[i][0] += in[SAMPLE_WEIGHT][term_of(c, i) * c->dims[B] + b] * m.sum / m.count;
        }
    }
}

/* The value is a mean of items of size 1 (distances in Angstrom: 10; squares: 100) over each of B chains; the
 * contribution of one item to a gradient is smaller. */
static compare_tolerance tolerance(const op_case *c, int tensor, bool gradient) {
    double size = 0;
    for (int i = 0; i < terms_of(c); ++i) {
        int kind = specs[c->dims[KIND] + i].kind;
        if (gradient || i == tensor)
            size += kind == CLEAT_LOSS_COORDINATE || kind == CLEAT_LOSS_BOND ? 150 : kind == CLEAT_LOSS_LDDT ? 2 : 20;
    }
    return (compare_tolerance){
        .scale = gradient ? size : size * (double)c->dims[B], .length = c->dims[L], .f32_units = 16};
}

static const op_row rows[] = {
    {1, 1, 0, 0},  {2, 2, 0, 0},    {3, 17, 0, 1},    {2, 66, 0, 0},    {1, 1, 1, 0},  {3, 17, 1, 1},
    {2, 66, 1, 0}, {2, 3, 2, 0},    {3, 35, 2, 1},    {2, 2, 3, 0},     {3, 17, 3, 1}, {2, 2, 4, 0},
    {3, 35, 4, 1}, {2, 3, 5, 0},    {3, 35, 5, 1},    {2, 4, 6, 0},     {3, 70, 6, 1}, {2, 5, 7, 0},
    {3, 35, 7, 1}, {2, 5, 3, 0, 2}, {3, 35, 4, 1, 4}, {3, 35, 1, 1, 7}, /* the last three sum kinds */
};

static const op_test tests[] = {{.op = "structure_loss",
                                 .rows = rows,
                                 .row_count = sizeof rows / sizeof rows[0],
                                 .build = build,
                                 .fill = fill,
                                 .reference = reference,
                                 .tolerance = tolerance,
                                 .only = 1u << CLEAT_F32}};

/* Kernels count residues with 32 bits. */
static void refuses_what_has_too_many_residues(void **state) {
    static const int64_t sizes[][2] = {{1 << 20, 1 << 11}, {1, (1 << 25) + 1}};
    (void)state;
    for (int i = 0; i < 2; ++i) {
        const int64_t batch = sizes[i][0], length = sizes[i][1];
        cleat_graph *graph = op_graph();
        const cleat_structure target = {.lengths = cleat_input(graph, "lengths", CLEAT_I32, 1, &batch)};
        const cleat_structure_loss_spec spec = {.kind = CLEAT_LOSS_BOND, .lower = 1, .upper = 2};
        cleat_structure_loss(graph, &spec, cleat_input(graph, "x", CLEAT_F32, 3, (int64_t[]){batch, length, 3}),
                             &target, cleat_input(graph, "weight", CLEAT_F32, 2, (int64_t[]){1, batch}));
        op_graph_refused(graph, CLEAT_ERR_SHAPE, "structure_loss", "at most 2^30 residues");
    }
}

int main(void) {
    const struct CMUnitTest more[] = {cmocka_unit_test(refuses_what_has_too_many_residues)};
    return op_main(tests, sizeof tests / sizeof tests[0], more, 1);
}
