/* Operations of the optimizer graph: gradient norm, AdamW steps against double precision, and the report
 * ring. */
/* ctest: device */
#include "harness.h"

#include "graph/store.h"
#include "ops/update.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { A = 331, B = 70, N = A + B, STEPS = 12 };

typedef struct fixture {
    cleat_store *store;
    cleat_graph *graph;
    cleat_tensor *a, *b, *hyper, *norm;
    op_rig rig;
} fixture;

static void open_fixture(fixture *f, const op_shape *shape) {
    assert_int_equal(cleat_store_create(&f->store, NULL), CLEAT_OK);
    assert_int_equal(cleat_graph_create(f->store, "optimizer", &f->graph, NULL), CLEAT_OK);
    f->a = cleat_param(f->graph, "a", 1, (int64_t[]){A}, (cleat_init){0});
    f->b = cleat_param(f->graph, "b", 2, (int64_t[]){10, 7}, (cleat_init){0});
    f->hyper = cleat_input(f->graph, "hyper", CLEAT_F32, 1, (int64_t[]){8});
    f->norm = cleat_grad_norm(f->graph);
    cleat_retain(f->graph, f->norm);
    cleat_adamw(f->graph, f->hyper, f->norm, NULL);
    assert_true(op_rig_open(&f->rig, f->graph, shape, NULL, 0));
}

static void close_fixture(fixture *f) {
    op_rig_close(&f->rig);
    cleat_graph_destroy(f->graph);
    cleat_store_destroy(f->store);
}

static double gradient_at(int step, int i) {
    return compare_round(CLEAT_F32, 0.02 * sin(0.7 * i + 1.3 * step) + (i % 7 == 0 ? 0.05 : 0));
}

/* One step in double precision. g [N] is clipped in place; p, m, v [N] are updated. */
static void reference_step(const double *h, double norm, const double *g, double *p, double *m, double *v) {
    double clip = h[5] > 0 ? fmin(1, h[5] / (norm + 1e-6)) : 1;
    for (int i = 0; i < N; ++i) {
        double gradient = g[i] * clip;
        p[i] *= 1 - h[0] * h[4];
        m[i] = h[1] * m[i] + (1 - h[1]) * gradient;
        v[i] = h[2] * v[i] + (1 - h[2]) * gradient * gradient;
        p[i] -= h[0] / h[6] * m[i] / (sqrt(v[i]) / sqrt(h[7]) + h[3]);
    }
}

static void write_both(fixture *f, cleat_tensor *(*which)(fixture *, int), const double *values) {
    op_rig_write(&f->rig, which(f, 0), values);
    op_rig_write(&f->rig, which(f, 1), values + A);
}
static void read_both(fixture *f, cleat_tensor *(*which)(fixture *, int), double *values) {
    op_rig_read(&f->rig, which(f, 0), values);
    op_rig_read(&f->rig, which(f, 1), values + A);
}
static cleat_tensor *param(fixture *f, int i) {
    return cleat_store_param(f->store, (size_t)i);
}
static cleat_tensor *grad(fixture *f, int i) {
    return cleat_store_grad(f->store, (size_t)i);
}
static cleat_tensor *moment1(fixture *f, int i) {
    return f->store->moments1[i];
}
static cleat_tensor *moment2(fixture *f, int i) {
    return f->store->moments2[i];
}

static void expect_close(const char *what, int step, const double *got, const double *want, double scale,
                         double units) {
    compare_tolerance tolerance = {.scale = scale, .length = 1, .f32_units = units};
    int64_t i = compare_arrays(got, want, N, tolerance, CLEAT_F32, CLEAT_F32, NULL);
    if (i >= 0) fail_msg("%s[%lld] after step %d is %.9g, should be %.9g", what, (long long)i, step, got[i], want[i]);
}

/* Twelve steps with warm-up, clipping on and off, and decay. Tolerance: a step loses a few roundings of p
 * (size 1), m and v. */
static void run_steps(const op_shape *shape) {
    fixture f;
    open_fixture(&f, shape);
    double p[N], g[N], m[N] = {0}, v[N] = {0}, got[N], norm;
    for (int i = 0; i < N; ++i) p[i] = compare_round(CLEAT_F32, cos(i));
    write_both(&f, param, p);
    for (int t = 1; t <= STEPS; ++t) {
        double h[8] = {1e-2 * t / STEPS, 0.9, 0.999, 1e-8, 0.1, t % 3 ? 0.3 : 0, 1 - pow(0.9, t), 1 - pow(0.999, t)},
               sum = 0;
        for (int i = 0; i < 8; ++i) h[i] = compare_round(CLEAT_F32, h[i]);
        for (int i = 0; i < N; ++i) g[i] = gradient_at(t, i);
        for (int i = 0; i < N; ++i) sum += g[i] * g[i];
        op_rig_write(&f.rig, f.hyper, h);
        write_both(&f, grad, g);
        op_rig_snapshot(&f.rig);
        op_rig_run(&f.rig, 0, -1);
        assert_true(op_rig_untouched(&f.rig));
        op_rig_read(&f.rig, f.norm, &norm);
        assert_true(fabs(norm / sqrt(sum) - 1) < 2e-7 * 3);
        reference_step(h, sqrt(sum), g, p, m, v);
        read_both(&f, param, got);
        expect_close("p", t, got, p, 1, 2.0 * t);
        read_both(&f, moment1, got);
        expect_close("m", t, got, m, 0.07, 2.0 * t);
        read_both(&f, moment2, got);
        expect_close("v", t, got, v, 0.005, 2.0 * t);
        read_both(&f, grad, got);
        for (int i = 0; i < N; ++i) assert_true(got[i] == 0);
    }
    close_fixture(&f);
}

static void test_steps(void **state) {
    (void)state;
    run_steps(&op_shape_cpu);
    run_steps(&op_shape_gpu);
    run_steps(&op_shape_gpu64);
}

/* Only the product: a volatile value keeps the host's compiler from fusing it with an addition. */
static float times(float a, float b) {
    volatile float product = a * b;
    return product;
}

/* Devices that round division and square root correctly produce the bits of IEEE 754, operation by operation,
 * so devices of several vendors can train one network. Without clipping the norm does not affect the result. */
static void run_exactly(const op_shape *shape) {
    fixture f;
    const cleat_device_facts facts = op_facts(shape);
    if (!facts.rounds_correctly) return;
    open_fixture(&f, shape);
    float p[N], m[N] = {0}, v[N] = {0};
    double wide[N], g[N], found[N];
    for (int i = 0; i < N; ++i) p[i] = cosf((float)i);
    for (int i = 0; i < N; ++i) wide[i] = (double)p[i];
    write_both(&f, param, wide);
    for (int t = 1; t <= STEPS; ++t) {
        const float h[8] = {3e-3f, 0.9f, 0.999f, 1e-8f, 0.1f, 0, (float)(1 - pow(0.9, t)), (float)(1 - pow(0.999, t))};
        const float keep = 1 - times(h[0], h[4]), step = h[0] / h[6], root = 1 / sqrtf(h[7]);
        for (int i = 0; i < 8; ++i) wide[i] = (double)h[i];
        op_rig_write(&f.rig, f.hyper, wide);
        for (int i = 0; i < N; ++i) g[i] = gradient_at(t, i);
        write_both(&f, grad, g);
        op_rig_run(&f.rig, 0, -1);
        read_both(&f, param, found);
        for (int i = 0; i < N; ++i) {
            const float gradient = (float)g[i];
            m[i] = times(h[1], m[i]) + times(1 - h[1], gradient);
            v[i] = times(h[2], v[i]) + times(times(1 - h[2], gradient), gradient);
            p[i] = times(p[i], keep) - times(step, m[i]) / (times(sqrtf(v[i]), root) + h[3]);
            if (found[i] != (double)p[i])
                fail_msg("p[%d] after step %d is %a, should be %a", i, t, found[i], (double)p[i]);
        }
    }
    close_fixture(&f);
}

static void test_bits(void **state) {
    (void)state;
    run_exactly(&op_shape_cpu);
    run_exactly(&op_shape_gpu);
}

/* A gradient that is not finite: only the gradient is cleared. */
static void test_not_finite(void **state) {
    (void)state;
    for (int bad = 0; bad < 2; ++bad) {
        fixture f;
        open_fixture(&f, bad ? &op_shape_cpu : &op_shape_gpu);
        double p[N], g[N], got[N], h[8] = {1e-2, 0.9, 0.999, 1e-8, 0.1, 1, 0.1, 0.001}, norm;
        for (int i = 0; i < N; ++i) p[i] = i;
        for (int i = 0; i < N; ++i) g[i] = gradient_at(1, i);
        g[bad ? N - 1 : 5] = bad ? NAN : INFINITY;
        op_rig_write(&f.rig, f.hyper, h);
        write_both(&f, param, p);
        write_both(&f, moment1, p);
        write_both(&f, moment2, p);
        write_both(&f, grad, g);
        op_rig_run(&f.rig, 0, -1);
        op_rig_read(&f.rig, f.norm, &norm);
        assert_false(isfinite(norm));
        read_both(&f, param, got);
        assert_memory_equal(got, p, sizeof p);
        read_both(&f, moment1, got);
        assert_memory_equal(got, p, sizeof p);
        read_both(&f, moment2, got);
        assert_memory_equal(got, p, sizeof p);
        read_both(&f, grad, got);
        for (int i = 0; i < N; ++i) assert_true(got[i] == 0);
        close_fixture(&f);
    }
}

/* 300000 elements: the error of the norm does not grow with the number of elements, and two runs are
 * bit-identical. */
static void test_long_norm(void **state) {
    (void)state;
    enum { LONG = 300001 };
    const op_shape *shapes[] = {&op_shape_cpu, &op_shape_gpu};
    double *g = calloc(LONG, sizeof *g), sum = 0, norm, again;
    for (int i = 0; i < LONG; ++i) g[i] = compare_round(CLEAT_F32, 1e-3 * (1 + i % 13));
    for (int i = 0; i < LONG; ++i) sum += g[i] * g[i];
    for (int s = 0; s < 2; ++s) {
        cleat_store *store;
        cleat_graph *graph;
        op_rig rig;
        assert_int_equal(cleat_store_create(&store, NULL), CLEAT_OK);
        assert_int_equal(cleat_graph_create(store, "g", &graph, NULL), CLEAT_OK);
        cleat_param(graph, "p", 1, (int64_t[]){LONG}, (cleat_init){0});
        cleat_tensor *out = cleat_grad_norm(graph);
        cleat_retain(graph, out);
        assert_true(op_rig_open(&rig, graph, shapes[s], NULL, 0));
        op_rig_write(&rig, cleat_store_grad(store, 0), g);
        op_rig_run(&rig, 0, -1);
        op_rig_read(&rig, out, &norm);
        op_rig_run(&rig, 0, -1);
        op_rig_read(&rig, out, &again);
        if (!(fabs(norm / sqrt(sum) - 1) < 1e-6)) fail_msg("norm %.9g, should be %.9g", norm, sqrt(sum));
        assert_true(norm == again);
        op_rig_close(&rig);
        cleat_graph_destroy(graph);
        cleat_store_destroy(store);
    }
    free(g);
}

static void test_report(void **state) {
    (void)state;
    op_rig rig;
    cleat_graph *graph = op_graph();
    cleat_tensor *terms = cleat_state(graph, "terms", CLEAT_F32, 1, (int64_t[]){2});
    cleat_tensor *ring = cleat_state(graph, "ring", CLEAT_F32, 2, (int64_t[]){4, 3});
    cleat_tensor *norm = cleat_input(graph, "norm", CLEAT_F32, 1, (int64_t[]){1});
    cleat_tensor *slot = cleat_input(graph, "slot", CLEAT_I32, 1, (int64_t[]){1});
    cleat_log_step(graph, terms, norm, NULL, 0, slot, ring);
    assert_true(op_rig_open(&rig, graph, &op_shape_cpu, NULL, 0));
    double got[12], left[2];
    for (int t = 0; t < 6; ++t) {
        double at = t, length = 10 + t, step_terms[2] = {t, -t};
        op_rig_write(&rig, terms, step_terms);
        op_rig_write(&rig, norm, &length);
        op_rig_write(&rig, slot, &at);
        op_rig_run(&rig, 0, -1);
        op_rig_read(&rig, terms, left);
        assert_true(left[0] == 0 && left[1] == 0);
    }
    const double want[12] = {4, -4, 14, 5, -5, 15, 2, -2, 12, 3, -3, 13};
    op_rig_read(&rig, ring, got);
    assert_memory_equal(got, want, sizeof want);
    op_rig_close(&rig);
    op_graph_end(graph);
}

int main(void) {
    const struct CMUnitTest extra[] = {cmocka_unit_test(test_steps), cmocka_unit_test(test_bits),
                                       cmocka_unit_test(test_not_finite), cmocka_unit_test(test_long_norm),
                                       cmocka_unit_test(test_report)};
    return op_main(NULL, 0, extra, 5);
}
