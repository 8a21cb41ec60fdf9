/* Metrics of C1' traces against cases of obvious value, and against rna_metrics.py. */
/* ctest: device */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/memory.h"
#include "core/philox.h"
#include "models/rna_metrics.h"

enum { MOST = 64 };

typedef struct chain {
    int64_t n;
    float x[3 * MOST], reference[3 * MOST], mask[MOST];
} chain;

static void put(float *x, int64_t i, double a, double b, double c) {
    x[3 * i] = (float)a;
    x[3 * i + 1] = (float)b;
    x[3 * i + 2] = (float)c;
}

static void helix(float *x, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
        double turn = 32.7 * 3.14159265358979323846 / 180 * (double)i;
        put(x, i, 8.9 * cos(turn), 8.9 * sin(turn), 2.81 * (double)i);
    }
}

static chain chain_of(int64_t n) {
    chain c = {.n = n};
    helix(c.reference, n);
    helix(c.x, n);
    for (int64_t i = 0; i < n; ++i) c.mask[i] = 1;
    return c;
}

/* The shapes of rna_metrics.py. */
static void wobble(chain *c, double size) {
    for (int64_t i = 0; i < c->n; ++i) {
        double t = (double)i, by[3] = {sin(1.3 * t), cos(0.7 * t), sin(2.1 * t + 1)};
        for (int k = 0; k < 3; ++k) c->x[3 * i + k] += (float)(size * by[k]);
    }
}

static void mirror(chain *c) {
    for (int64_t i = 0; i < c->n; ++i) c->x[3 * i + 2] *= -1;
}

static void hinge(chain *c) {
    int64_t half = c->n / 2;
    double at[3] = {c->x[3 * half], c->x[3 * half + 1], c->x[3 * half + 2]};
    for (int64_t i = half; i < c->n; ++i) {
        double a = c->x[3 * i] - at[0], b = c->x[3 * i + 1] - at[1], z = c->x[3 * i + 2] - at[2];
        put(c->x, i, at[0] + a + 4, at[1] - z, at[2] + b);
    }
}

static void hide_some(chain *c) {
    for (int64_t i = 3; i < c->n; i += 7) {
        c->mask[i] = 0;
        put(c->reference, i, 0, 0, 0);
    }
}

static cleat_rna_metrics rna_metrics(const chain *c) {
    cleat_rna_metrics metrics = {0};
    cleat_error error = {0};
    if (cleat_rna_metrics_compute(c->x, c->reference, c->mask, c->n, &metrics, &error) != CLEAT_OK)
        fail_msg("%s", error.text);
    return metrics;
}

static void assert_near(double found, double expected, double tolerance, const char *what) {
    if (!(fabs(found - expected) <= tolerance)) fail_msg("%s: %.9g, expected %.9g", what, found, expected);
}

/* --- plain cases --- */

static void rotate(float *x, int64_t n, cleat_random *random) {
    double q[4], length = 0, by[3];
    for (int k = 0; k < 4; ++k) q[k] = cleat_random_normal(random);
    for (int k = 0; k < 3; ++k) by[k] = 50 * cleat_random_normal(random);
    for (int k = 0; k < 4; ++k) length += q[k] * q[k];
    for (int k = 0; k < 4; ++k) q[k] /= sqrt(length);
    for (int64_t i = 0; i < n; ++i) {
        /* v + 2 u x (u x v + w v) */
        double *u = q + 1, v[3] = {x[3 * i], x[3 * i + 1], x[3 * i + 2]}, c[3], d[3];
        for (int k = 0; k < 3; ++k)
            c[k] = u[(k + 1) % 3] * v[(k + 2) % 3] - u[(k + 2) % 3] * v[(k + 1) % 3] + q[0] * v[k];
        for (int k = 0; k < 3; ++k) d[k] = u[(k + 1) % 3] * c[(k + 2) % 3] - u[(k + 2) % 3] * c[(k + 1) % 3];
        put(x, i, v[0] + 2 * d[0] + by[0], v[1] + 2 * d[1] + by[1], v[2] + 2 * d[2] + by[2]);
    }
}

static void moved_copy_is_perfect(void **state) {
    (void)state;
    for (uint32_t round = 0; round < 50; ++round) {
        cleat_random random = cleat_random_stream(5, round, 0);
        chain c = chain_of(4 + round);
        rotate(c.x, c.n, &random);
        cleat_rna_metrics f = rna_metrics(&c);
        assert_near(f.rmsd, 0, 1e-4, "rmsd");
        assert_near(f.pair_mae, 0, 1e-4, "pair_mae");
        assert_near(f.pair_mae_local, 0, 1e-4, "pair_mae_local");
        assert_near(f.lddt, 1, 0, "lddt");
        assert_near(f.tm, 1, 1e-5, "tm");
    }
}

/* The metrics are invariant to the position and orientation of the trace. */
static void metrics_are_invariant_to_motion(void **state) {
    (void)state;
    chain c = chain_of(30);
    wobble(&c, 2);
    cleat_rna_metrics still = rna_metrics(&c);
    for (uint32_t round = 0; round < 10; ++round) {
        cleat_random random = cleat_random_stream(6, round, 0);
        rotate(c.x, c.n, &random);
        cleat_rna_metrics moved = rna_metrics(&c);
        assert_near(moved.rmsd, still.rmsd, 1e-4, "rmsd");
        assert_near(moved.tm, still.tm, 1e-3, "tm");
        assert_near(moved.pair_mae, still.pair_mae, 1e-4, "pair_mae");
    }
}

/* Two points 3 apart, predicted 5 apart: each end is off by 1. */
static void two_residues(void **state) {
    (void)state;
    chain c = {.n = 2, .mask = {1, 1}};
    put(c.reference, 1, 3, 0, 0);
    put(c.x, 1, 0, 5, 0);
    cleat_rna_metrics f = rna_metrics(&c);
    assert_near(f.rmsd, 1, 1e-6, "rmsd");
    assert_near(f.pair_mae, 2, 1e-6, "pair_mae");
    assert_near(f.pair_mae_local, 2, 1e-6, "pair_mae_local");
    assert_near(f.lddt, 0.25, 1e-9, "lddt"); /* 2 is not below 2, it is below 4 */
    /* d0 = 0.3; at least the value of the best fit of both */
    assert_near(f.tm, 1 / (1 + 1 / 0.09), 1e-3, "tm");
}

static void one_residue_has_no_pairs(void **state) {
    (void)state;
    chain c = chain_of(1);
    put(c.x, 0, 9, 9, 9);
    cleat_rna_metrics f = rna_metrics(&c);
    assert_false(f.has_pairs || f.has_local_pairs);
    assert_near(f.rmsd, 0, 1e-9, "rmsd");
    assert_near(f.tm, 1, 1e-9, "tm");
}

/* Pairs of residues 13 apart count as pairs, but not as local ones; the distance counts all residues of the
 * chain, not only known ones. */
static void local_pairs_count_along_the_chain(void **state) {
    (void)state;
    chain c = chain_of(14);
    for (int i = 1; i < 13; ++i) c.mask[i] = 0;
    cleat_rna_metrics f = rna_metrics(&c);
    assert_true(f.has_pairs);
    assert_false(f.has_local_pairs);
}

static void points_on_one_line_are_measured(void **state) {
    (void)state;
    chain c = {.n = 20};
    for (int i = 0; i < 20; ++i) {
        c.mask[i] = 1;
        put(c.reference, i, 5.0 * i, 0, 0);
        put(c.x, i, 0, 0, -5.0 * i);
    }
    cleat_rna_metrics f = rna_metrics(&c);
    assert_near(f.rmsd, 0, 1e-4, "rmsd");
    assert_near(f.tm, 1, 1e-5, "tm");
    memset(c.x, 0, sizeof c.x);
    f = rna_metrics(&c);
    assert_near(f.rmsd, 5 * sqrt((20 * 20 - 1) / 12.0), 1e-3, "rmsd of one point");
}

/* --- traces that cannot be measured --- */

static void no_known_residue_is_an_error(void **state) {
    (void)state;
    chain c = chain_of(5);
    cleat_rna_metrics metrics;
    cleat_error error;
    memset(c.mask, 0, sizeof c.mask);
    assert_int_equal(cleat_rna_metrics_compute(c.x, c.reference, c.mask, c.n, &metrics, &error), CLEAT_ERR_ARGUMENT);
    assert_non_null(strstr(error.text, "known"));
}

/* A NaN trace does not get a good score. */
static void not_a_number_is_no_success(void **state) {
    (void)state;
    static const double bad[] = {NAN, INFINITY};
    for (int k = 0; k < 2; ++k) {
        chain c = chain_of(20);
        c.x[31] = (float)bad[k];
        cleat_rna_metrics f = rna_metrics(&c);
        assert_false(isfinite(f.rmsd));
        assert_false(isfinite(f.pair_mae));
        assert_true(f.lddt < 1);
        assert_false(f.tm > 0.99);
    }
}

static void failed_allocation_is_reported(void **state) {
    (void)state;
    chain c = chain_of(9);
    cleat_rna_metrics metrics;
    for (long n = 1; n <= 4; ++n) {
        cleat_fail_allocation(n);
        assert_int_equal(cleat_rna_metrics_compute(c.x, c.reference, c.mask, c.n, &metrics, NULL), CLEAT_ERR_MEMORY);
    }
    cleat_fail_allocation(0);
}

/* --- against numpy --- */

typedef struct expected_row {
    const char *name;
    int64_t n;
    double wobble;
    bool mirrored, hinged, hidden;
    double pair_mae, pair_mae_local, lddt, rmsd, tm;
} expected_row;

/* /usr/bin/python3 tests/models/rna_metrics.py */
static const expected_row rows[] = {
    {"wobbled", 24, 1.5, false, false, false, 1.3149075, 1.2889298, 0.6093750, 1.8357749, 0.2173520},
    {"some unknown", 24, 1.5, false, false, true, 1.3162955, 1.3047443, 0.6309524, 1.8550167, 0.2078036},
    {"mirrored", 24, 0, true, false, false, 0, 0, 1, 11.5697346, 0.2106868},
    {"hinged", 24, 0, false, true, false, 6.7271515, 3.3053269, 0.9739583, 11.8425207, 0.5021265},
    {"wobbled", 40, 1.5, false, false, false, 1.2486870, 1.2389673, 0.5812500, 1.8262828, 0.3797435},
    {"some unknown", 40, 1.5, false, false, true, 1.2586023, 1.2419526, 0.5925245, 1.8535925, 0.2858535},
    {"mirrored", 40, 0, true, false, false, 0, 0, 1, 12.2835868, 0.2101583},
    {"hinged", 40, 0, false, true, false, 3.6231009, 1.1306710, 0.9718750, 13.4656604, 0.5036825},
};

/* Coordinates are rounded to single precision. The TM-score is the best one found: it never exceeds the true
 * maximum, and is close to it (mirror images have many partial fits). */
static void metrics_agree_with_numpy(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        const expected_row *row = &rows[i];
        chain c = chain_of(row->n);
        wobble(&c, row->wobble);
        if (row->mirrored) mirror(&c);
        if (row->hinged) hinge(&c);
        if (row->hidden) hide_some(&c);
        cleat_rna_metrics f = rna_metrics(&c);
        print_message("%s, %d: rmsd %.6f  tm %.4f (best %.4f)\n", row->name, (int)row->n, f.rmsd, f.tm, row->tm);
        assert_near(f.pair_mae, row->pair_mae, 2e-6, "pair_mae");
        assert_near(f.pair_mae_local, row->pair_mae_local, 2e-6, "pair_mae_local");
        assert_near(f.lddt, row->lddt, 1e-6, "lddt");
        assert_near(f.rmsd, row->rmsd, 1e-5, "rmsd");
        assert_true(f.tm <= row->tm + 1e-4);
        assert_true(f.tm >= (row->mirrored ? 0.65 : 0.9) * row->tm);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moved_copy_is_perfect),
        cmocka_unit_test(metrics_are_invariant_to_motion),
        cmocka_unit_test(two_residues),
        cmocka_unit_test(one_residue_has_no_pairs),
        cmocka_unit_test(local_pairs_count_along_the_chain),
        cmocka_unit_test(points_on_one_line_are_measured),
        cmocka_unit_test(no_known_residue_is_an_error),
        cmocka_unit_test(not_a_number_is_no_success),
        cmocka_unit_test(failed_allocation_is_reported),
        cmocka_unit_test(metrics_agree_with_numpy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
