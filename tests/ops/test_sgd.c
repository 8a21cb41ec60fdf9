/* Steps of stochastic gradient descent against double precision. */
/* ctest: device */
#include "harness.h"

#include "graph/store.h"
#include "ops/update.h"

#include <math.h>
#include <string.h>

enum { N = 331, STEPS = 8 };

/* `storage` f16 or bf16: the parameter also has a half weight; `half` is its value as an activation. */
typedef struct fixture {
    cleat_store *store;
    cleat_graph *graph;
    cleat_tensor *hyper, *norm, *half;
    op_rig rig;
} fixture;

static void open_fixture(fixture *f, const op_shape *shape, bool momentum, cleat_dtype storage) {
    memset(f, 0, sizeof *f);
    assert_int_equal(cleat_store_create(&f->store, NULL), CLEAT_OK);
    assert_int_equal(cleat_graph_create(f->store, "optimizer", &f->graph, NULL), CLEAT_OK);
    cleat_tensor *p = cleat_param(f->graph, "p", 1, (int64_t[]){N}, (cleat_init){0});
    if (storage != CLEAT_F32) assert_int_equal(cleat_store_half_weight(f->store, p, storage, &f->half, NULL), CLEAT_OK);
    f->hyper = cleat_input(f->graph, "hyper", CLEAT_F32, 1, (int64_t[]){8});
    f->norm = cleat_grad_norm(f->graph);
    cleat_retain(f->graph, f->norm);
    cleat_sgd(f->graph, momentum, f->hyper, f->norm, NULL);
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

/* The formulas of torch.optim.SGD; p and m [N] are updated. */
static void reference_step(const cleat_sgd_spec *spec, double rate, double norm, const double *g, double *p,
                           double *m) {
    const double clip = spec->max_norm > 0 ? fmin(1, (double)spec->max_norm / (norm + 1e-6)) : 1;
    for (int i = 0; i < N; ++i) {
        const double gradient = g[i] * clip + (double)spec->weight_decay * p[i];
        m[i] = (double)spec->momentum * m[i] + gradient;
        p[i] -= rate * (spec->nesterov ? gradient + (double)spec->momentum * m[i] : m[i]);
    }
}

static void expect_close(const char *what, int step, const double *got, const double *want, double scale,
                         double units) {
    const compare_tolerance tolerance = {.scale = scale, .length = 1, .f32_units = units};
    const int64_t i = compare_arrays(got, want, N, tolerance, CLEAT_F32, CLEAT_F32, NULL);
    if (i >= 0) fail_msg("%s[%lld] after step %d is %.9g, not %.9g", what, (long long)i, step, got[i], want[i]);
}

static void run_steps(const op_shape *shape, const cleat_sgd_spec *spec, cleat_dtype storage) {
    fixture f;
    double p[N], g[N], m[N] = {0}, got[N], h[8];
    float hyper[8];
    open_fixture(&f, shape, spec->momentum > 0, storage);
    for (int i = 0; i < N; ++i) p[i] = compare_round(CLEAT_F32, cos(i));
    op_rig_write(&f.rig, cleat_store_param(f.store, 0), p);
    for (int t = 1; t <= STEPS; ++t) {
        double sum = 0;
        cleat_sgd_hyper(spec, 0.1 * t, hyper);
        for (int i = 0; i < 8; ++i) h[i] = (double)hyper[i];
        for (int i = 0; i < N; ++i) g[i] = gradient_at(t, i), sum += g[i] * g[i];
        op_rig_write(&f.rig, f.hyper, h);
        op_rig_write(&f.rig, cleat_store_grad(f.store, 0), g);
        op_rig_snapshot(&f.rig);
        op_rig_run(&f.rig, 0, -1);
        assert_true(op_rig_untouched(&f.rig));
        reference_step(spec, h[0], sqrt(sum), g, p, m);
        op_rig_read(&f.rig, cleat_store_param(f.store, 0), got);
        expect_close("p", t, got, p, 1, 4.0 * t);
        if (f.half) {
            double half[N];
            op_rig_read(&f.rig, f.half, half);
            for (int i = 0; i < N; ++i) assert_true(half[i] == compare_round(storage, got[i]));
        }
        if (spec->momentum > 0) {
            op_rig_read(&f.rig, f.store->moments1[0], got);
            expect_close("m", t, got, m, 1, 4.0 * t);
        }
        op_rig_read(&f.rig, cleat_store_grad(f.store, 0), got);
        for (int i = 0; i < N; ++i) assert_true(got[i] == 0);
    }
    close_fixture(&f);
}

static const op_shape *const shapes[] = {&op_shape_cpu, &op_shape_gpu, &op_shape_gpu64};

static void steps_follow_the_formulas(void **state) {
    (void)state;
    static const cleat_sgd_spec specs[] = {
        {0},
        {.weight_decay = 0.1f, .max_norm = 0.3f},
        {.momentum = 0.9f},
        {.momentum = 0.8f, .weight_decay = 0.01f, .max_norm = 0.3f},
        {.momentum = 0.9f, .nesterov = true, .weight_decay = 0.05f},
    };
    for (int s = 0; s < 3; ++s)
        for (size_t i = 0; i < sizeof specs / sizeof *specs; ++i) run_steps(shapes[s], &specs[i], CLEAT_F32);
}

/* The first parameters after 50 steps of torch.optim.SGD in double precision (make_optimizer_numbers.py). */
static void fifty_steps_are_those_of_torch(void **state) {
    (void)state;
    enum { SHOWN = 6, MANY = 50 };
    static const cleat_sgd_spec specs[] = {
        {0}, {.momentum = 0.9f, .weight_decay = 0.01f}, {.momentum = 0.9f, .nesterov = true, .weight_decay = 0.01f}};
    static const double torch[][SHOWN] = {
        {0.7471178600, 0.5384037803, -0.4161688079, -0.9881276004, -0.6507689375, 0.2861946388},
        {-1.1467167173, 0.3441039780, -0.2638540423, -0.6273914540, -0.4096074445, 0.1898178153},
        {-1.1729976306, 0.3404891906, -0.2628573715, -0.6230280996, -0.4057756849, 0.1900969382}};
    for (size_t s = 0; s < sizeof specs / sizeof *specs; ++s) {
        fixture f;
        double p[N], g[N], h[8];
        float hyper[8];
        open_fixture(&f, &op_shape_cpu, specs[s].momentum > 0, CLEAT_F32);
        for (int i = 0; i < N; ++i) p[i] = compare_round(CLEAT_F32, cos(i));
        op_rig_write(&f.rig, cleat_store_param(f.store, 0), p);
        cleat_sgd_hyper(&specs[s], 0.1, hyper);
        for (int i = 0; i < 8; ++i) h[i] = (double)hyper[i];
        op_rig_write(&f.rig, f.hyper, h);
        for (int t = 1; t <= MANY; ++t) {
            for (int i = 0; i < N; ++i) g[i] = gradient_at(t, i);
            op_rig_write(&f.rig, cleat_store_grad(f.store, 0), g);
            op_rig_run(&f.rig, 0, -1);
        }
        op_rig_read(&f.rig, cleat_store_param(f.store, 0), p);
        for (int i = 0; i < SHOWN; ++i)
            if (!(fabs(p[i] - torch[s][i]) < 1e-6)) fail_msg("%zu: p[%d] is %.9g, not %.9g", s, i, p[i], torch[s][i]);
        close_fixture(&f);
    }
}

static void half_weights_follow(void **state) {
    (void)state;
    static const cleat_sgd_spec spec = {.momentum = 0.9f, .weight_decay = 0.01f};
    for (int s = 0; s < 2; ++s) {
        run_steps(shapes[s], &spec, CLEAT_F16);
        run_steps(shapes[s], &spec, CLEAT_BF16);
    }
}

/* A gradient that is not finite: only the gradient is cleared. */
static void a_bad_gradient_changes_nothing(void **state) {
    (void)state;
    for (int bad = 0; bad < 2; ++bad) {
        fixture f;
        open_fixture(&f, shapes[bad], true, CLEAT_F32);
        double p[N], g[N], got[N], h[8] = {1e-2, 0.9, 1, 0, 0.1, 1};
        for (int i = 0; i < N; ++i) p[i] = i;
        for (int i = 0; i < N; ++i) g[i] = gradient_at(1, i);
        g[bad ? N - 1 : 5] = bad ? NAN : INFINITY;
        op_rig_write(&f.rig, f.hyper, h);
        op_rig_write(&f.rig, cleat_store_param(f.store, 0), p);
        op_rig_write(&f.rig, f.store->moments1[0], p);
        op_rig_write(&f.rig, cleat_store_grad(f.store, 0), g);
        op_rig_run(&f.rig, 0, -1);
        op_rig_read(&f.rig, cleat_store_param(f.store, 0), got);
        assert_memory_equal(got, p, sizeof p);
        op_rig_read(&f.rig, f.store->moments1[0], got);
        assert_memory_equal(got, p, sizeof p);
        op_rig_read(&f.rig, cleat_store_grad(f.store, 0), got);
        for (int i = 0; i < N; ++i) assert_true(got[i] == 0);
        close_fixture(&f);
    }
}

/* Optimizer memory: one moment with momentum, none without. */
static void state_is_as_large_as_needed(void **state) {
    (void)state;
    for (int momentum = 0; momentum < 2; ++momentum) {
        fixture f;
        open_fixture(&f, &op_shape_cpu, momentum, CLEAT_F32);
        const int64_t bytes = cleat_plan_category_bytes(f.rig.plan, CLEAT_BYTES_OPTIMIZER);
        assert_int_equal(bytes, momentum ? cleat_plan_category_bytes(f.rig.plan, CLEAT_BYTES_GRADIENTS) : 0);
        close_fixture(&f);
    }
}

int main(void) {
    const struct CMUnitTest extra[] = {
        cmocka_unit_test(steps_follow_the_formulas), cmocka_unit_test(fifty_steps_are_those_of_torch),
        cmocka_unit_test(half_weights_follow), cmocka_unit_test(a_bad_gradient_changes_nothing),
        cmocka_unit_test(state_is_as_large_as_needed)};
    return op_main(NULL, 0, extra, sizeof extra / sizeof *extra);
}
