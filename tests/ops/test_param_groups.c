/* Optimizer steps over groups of parameters with their own learning rate and weight decay, and frozen parameters,
 * against double precision. */
/* ctest: device */
#include "harness.h"

#include "graph/store.h"
#include "ops/update.h"

#include <math.h>
#include <string.h>

enum { MOST = 400, STEPS = 6 };

typedef struct param_case {
    const char *name;
    int64_t shape[2];
    int rank;
} param_case;

/* The groups alternate and must be gathered. */
static const param_case params[] = {
    {"early.weight", {10, 7}, 2}, {"early.bias", {331, 0}, 1}, {"frozen.weight", {33, 5}, 2},
    {"late.weight", {130, 3}, 2}, {"late.bias", {5, 0}, 1},    {"early.second", {8, 8}, 2},
    {"frozen.bias", {65, 0}, 1},
};
enum { PARAMS = sizeof params / sizeof *params };

static cleat_param_rule rule_for(const char *name, int rank) {
    const bool early = strncmp(name, "early", 5) == 0;
    return (cleat_param_rule){
        .rate = early ? 0.3f : 1.0f, .decay = rank < 2 ? 0.0f : 1.0f, .frozen = strncmp(name, "frozen", 6) == 0};
}

static void choose(void *user, const char *name, int rank, cleat_param_rule *rule) {
    (void)user;
    assert_true(rule->rate == 1 && rule->decay == 1 && !rule->frozen);
    *rule = rule_for(name, rank);
}

typedef struct fixture {
    cleat_store *store;
    cleat_graph *graph;
    cleat_tensor *param[PARAMS], *half[PARAMS], *hyper, *norm;
    op_rig rig;
} fixture;

static int64_t elements_of(int i) {
    return params[i].shape[0] * (params[i].rank > 1 ? params[i].shape[1] : 1);
}

static bool is_frozen(int i) {
    return rule_for(params[i].name, params[i].rank).frozen;
}

static void open_fixture(fixture *f, const op_shape *shape, bool sgd, cleat_dtype storage) {
    memset(f, 0, sizeof *f);
    assert_int_equal(cleat_store_create(&f->store, NULL), CLEAT_OK);
    cleat_store_set_rules(f->store, choose, NULL);
    assert_int_equal(cleat_graph_create(f->store, "optimizer", &f->graph, NULL), CLEAT_OK);
    for (int i = 0; i < PARAMS; ++i) {
        f->param[i] = cleat_param(f->graph, params[i].name, params[i].rank, params[i].shape, (cleat_init){0});
        /* some node reads the vectors in f32 */
        f->param[i]->read_in_f32 = params[i].rank < 2;
        if (storage != CLEAT_F32 && params[i].rank > 1)
            assert_int_equal(cleat_store_half_weight(f->store, f->param[i], storage, &f->half[i], NULL), CLEAT_OK);
    }
    assert_int_equal(cleat_store_arrange(f->store, NULL), CLEAT_OK);
    f->hyper = cleat_input(f->graph, "hyper", CLEAT_F32, 1, (int64_t[]){8});
    f->norm = cleat_grad_norm(f->graph);
    cleat_retain(f->graph, f->norm);
    if (sgd)
        cleat_sgd(f->graph, true, f->hyper, f->norm, NULL);
    else
        cleat_adamw(f->graph, f->hyper, f->norm, NULL);
    assert_int_equal(cleat_graph_status(f->graph, NULL), CLEAT_OK);
    assert_true(op_rig_open(&f->rig, f->graph, shape, NULL, 0));
}

static void close_fixture(fixture *f) {
    op_rig_close(&f->rig);
    cleat_graph_destroy(f->graph);
    cleat_store_destroy(f->store);
}

static double gradient_at(int step, int param, int64_t k) {
    return compare_round(CLEAT_F32, 0.02 * sin(0.7 * (double)k + 1.3 * step + param));
}

/* Hyper-parameters of a step, as cleat_adamw_hyper and cleat_sgd_hyper fill them. */
static void hyper_of(bool sgd, int step, double *h) {
    const double adamw[8] = {1e-2, 0.9, 0.999, 1e-8, 0.1, 0.2, 1 - pow(0.9, step), 1 - pow(0.999, step)};
    const double plain[8] = {1e-1, 0.8, 1, 0, 0.1, 0.2, 0, 0};
    for (int i = 0; i < 8; ++i) h[i] = compare_round(CLEAT_F32, sgd ? plain[i] : adamw[i]);
}

static void reference(bool sgd, const double *h, cleat_param_rule rule, double g, double *p, double *m, double *v) {
    const double rate = h[0] * (double)rule.rate, decay = h[4] * (double)rule.decay;
    if (sgd) {
        g += decay * *p;
        *m = h[1] * *m + g;
        *p -= rate * (g + h[1] * *m);
        return;
    }
    *p *= 1 - rate * decay;
    *m = h[1] * *m + (1 - h[1]) * g;
    *v = h[2] * *v + (1 - h[2]) * g * g;
    *p -= rate / h[6] * *m / (sqrt(*v) / sqrt(h[7]) + h[3]);
}

static void expect_close(const char *what, int step, int64_t n, const double *got, const double *want, double units) {
    const compare_tolerance tolerance = {.scale = 1, .length = 1, .f32_units = units};
    const int64_t i = compare_arrays(got, want, n, tolerance, CLEAT_F32, CLEAT_F32, NULL);
    if (i >= 0) fail_msg("%s[%lld] after step %d is %.9g, not %.9g", what, (long long)i, step, got[i], want[i]);
}

/* The half weight of every trained weight is its rounded value. */
static void expect_half_weights(fixture *f, cleat_dtype storage) {
    double p[MOST], half[MOST];
    for (int i = 0; i < PARAMS; ++i) {
        if (!f->half[i] || is_frozen(i)) continue;
        op_rig_read(&f->rig, f->param[i], p);
        op_rig_read(&f->rig, f->half[i], half);
        for (int64_t k = 0; k < elements_of(i); ++k)
            if (half[k] != compare_round(storage, p[k]))
                fail_msg("half weight %s[%lld] is %g, not %g", params[i].name, (long long)k, half[k],
                         compare_round(storage, p[k]));
    }
}

static void run_steps(const op_shape *shape, bool sgd, cleat_dtype storage) {
    static double p[PARAMS][MOST], m[PARAMS][MOST], v[PARAMS][MOST], before[PARAMS][MOST];
    fixture f;
    open_fixture(&f, shape, sgd, storage);
    memset(m, 0, sizeof m);
    memset(v, 0, sizeof v);
    for (int i = 0; i < PARAMS; ++i) {
        for (int64_t k = 0; k < elements_of(i); ++k)
            p[i][k] = before[i][k] = compare_round(is_frozen(i) ? storage : CLEAT_F32, cos((double)k + i));
        op_rig_write(&f.rig, f.param[i]->half_only ? f.half[i] : f.param[i], p[i]);
    }
    for (int t = 1; t <= STEPS; ++t) {
        double h[8], sum = 0, got[MOST], g[MOST];
        hyper_of(sgd, t, h);
        op_rig_write(&f.rig, f.hyper, h);
        for (int i = 0; i < PARAMS; ++i) {
            if (is_frozen(i)) continue;
            for (int64_t k = 0; k < elements_of(i); ++k) g[k] = gradient_at(t, i, k);
            for (int64_t k = 0; k < elements_of(i); ++k) sum += g[k] * g[k];
            op_rig_write(&f.rig, cleat_store_grad(f.store, (size_t)i), g);
        }
        op_rig_snapshot(&f.rig);
        op_rig_run(&f.rig, 0, -1);
        assert_true(op_rig_untouched(&f.rig));
        op_rig_read(&f.rig, f.norm, got);
        assert_true(fabs(got[0] / sqrt(sum) - 1) < 1e-6); /* without frozen parameters */
        const double clip = fmin(1, h[5] / (sqrt(sum) + 1e-6));
        for (int i = 0; i < PARAMS; ++i) {
            const int64_t n = elements_of(i);
            if (is_frozen(i)) continue;
            for (int64_t k = 0; k < n; ++k)
                reference(sgd, h, rule_for(params[i].name, params[i].rank), clip * gradient_at(t, i, k), &p[i][k],
                          &m[i][k], &v[i][k]);
            op_rig_read(&f.rig, f.param[i], got);
            expect_close(params[i].name, t, n, got, p[i], 3.0 * t);
            op_rig_read(&f.rig, f.store->moments1[i], got);
            expect_close("m", t, n, got, m[i], 3.0 * t);
            op_rig_read(&f.rig, cleat_store_grad(f.store, (size_t)i), got);
            for (int64_t k = 0; k < n; ++k) assert_true(got[k] == 0);
        }
        if (storage != CLEAT_F32) expect_half_weights(&f, storage);
        for (int i = 0; i < PARAMS; ++i) {
            if (!is_frozen(i)) continue;
            op_rig_read(&f.rig, f.param[i]->half_only ? f.half[i] : f.param[i], got);
            for (int64_t k = 0; k < elements_of(i); ++k) assert_true(got[k] == before[i][k]);
        }
    }
    close_fixture(&f);
}

static void groups_have_their_rate_and_decay(void **state) {
    (void)state;
    for (int sgd = 0; sgd < 2; ++sgd) {
        run_steps(&op_shape_cpu, sgd, CLEAT_F32);
        run_steps(&op_shape_gpu, sgd, CLEAT_F32);
        run_steps(&op_shape_gpu64, sgd, CLEAT_F32);
        run_steps(&op_shape_cpu, sgd, CLEAT_F16);
        run_steps(&op_shape_gpu, sgd, CLEAT_BF16);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(groups_have_their_rate_and_decay)};
    return op_main(NULL, 0, tests, sizeof tests / sizeof *tests);
}
