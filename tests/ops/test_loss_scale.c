/* The optimizer graph of half-precision training: the loss scale against the rules of GradScaler, and the
 * half-precision copies of parameters. */
/* ctest: device */
#include "harness.h"

#include "graph/store.h"
#include "ops/update.h"

#include <math.h>
#include <string.h>

enum { A = 331, B = 70, N = A + B, STEPS = 24, INTERVAL = 3, ROWS = 4 };

typedef struct fixture {
    cleat_store *store;
    cleat_graph *graph;
    cleat_tensor *params[2], *half_weights[2], *hyper, *norm, *corrected;
    cleat_tensor *terms, *slot, *ring; /* NULL: nothing is logged */
    cleat_loss_scale states;
    op_rig rig;
} fixture;

/* The norm, the step, and optionally the log. joined: in the fewest possible nodes. */
static void build_step(fixture *f, bool joined) {
    f->states = cleat_loss_scale_states(f->graph);
    f->norm = joined ? cleat_unscaled_grad_norm(f->graph, &f->states, &f->corrected) : cleat_grad_norm(f->graph);
    if (!joined) cleat_loss_scale_unscale(f->graph, &f->states, &f->norm, &f->corrected);
    cleat_retain(f->graph, f->norm);
    cleat_retain(f->graph, f->corrected);
    cleat_adamw(f->graph, f->corrected, f->norm, f->states.loss_scale);
    f->terms = f->slot = f->ring = NULL;
    if (!joined) {
        cleat_loss_scale_update(f->graph, &f->states, f->norm, INTERVAL);
        return;
    }
    f->terms = cleat_state(f->graph, "terms", CLEAT_F32, 1, (int64_t[]){1});
    f->ring = cleat_state(f->graph, "ring", CLEAT_F32, 2, (int64_t[]){ROWS, 3});
    f->slot = cleat_input(f->graph, "slot", CLEAT_I32, 1, (int64_t[]){1});
    cleat_log_step(f->graph, f->terms, f->norm, &f->states, INTERVAL, f->slot, f->ring);
}

static void open_fixture(fixture *f, const op_shape *shape, cleat_dtype dtype, bool joined) {
    cleat_error error;
    assert_int_equal(cleat_store_create(&f->store, NULL), CLEAT_OK);
    assert_int_equal(cleat_graph_create(f->store, "optimizer", &f->graph, NULL), CLEAT_OK);
    f->params[0] = cleat_param(f->graph, "a", 1, (int64_t[]){A}, (cleat_init){0});
    f->params[1] = cleat_param(f->graph, "b", 2, (int64_t[]){10, 7}, (cleat_init){0});
    for (int i = 0; i < 2; ++i)
        assert_int_equal(cleat_store_half_weight(f->store, f->params[i], dtype, &f->half_weights[i], &error), CLEAT_OK);
    f->hyper = f->corrected = cleat_input(f->graph, "hyper", CLEAT_F32, 1, (int64_t[]){8});
    build_step(f, joined);
    assert_true(op_rig_open(&f->rig, f->graph, shape, NULL, 0));
}

static void close_fixture(fixture *f) {
    op_rig_close(&f->rig);
    cleat_graph_destroy(f->graph);
    cleat_store_destroy(f->store);
}

static void write_both(fixture *f, cleat_tensor *const *both, const double *values) {
    op_rig_write(&f->rig, both[0], values);
    op_rig_write(&f->rig, both[1], values + A);
}

static void read_both(fixture *f, cleat_tensor *const *both, double *values) {
    op_rig_read(&f->rig, both[0], values);
    op_rig_read(&f->rig, both[1], values + A);
}

static double read_one(fixture *f, const cleat_tensor *tensor) {
    double value;
    op_rig_read(&f->rig, tensor, &value);
    return value;
}

/* Expected device state. */
typedef struct model {
    double p[N], m[N], v[N], loss_scale;
    int clean, updates;
} model;

static void adjust(model *want, bool finite) {
    if (!finite) {
        want->loss_scale = fmax(want->loss_scale / 2, 1);
        want->clean = 0;
        return;
    }
    ++want->updates;
    if (++want->clean < INTERVAL) return;
    want->loss_scale = fmin(want->loss_scale * 2, 0x1p40);
    want->clean = 0;
}

/* AdamW in double precision, on the unscaled gradient. */
static void move(model *want, const double *h, const double *g, double norm) {
    int t = want->updates + 1;
    double clip = fmin(1, h[5] / (norm + 1e-6)), c1 = 1 - pow(h[1], t), c2 = 1 - pow(h[2], t);
    for (int i = 0; i < N; ++i) {
        want->p[i] *= 1 - h[0] * h[4];
        want->m[i] = h[1] * want->m[i] + (1 - h[1]) * clip * g[i];
        want->v[i] = h[2] * want->v[i] + (1 - h[2]) * clip * g[i] * clip * g[i];
        want->p[i] -= h[0] / c1 * want->m[i] / (sqrt(want->v[i] / c2) + h[3]);
    }
}

static void expect_close(const char *what, int step, const double *got, const double *want, double units) {
    compare_tolerance tolerance = {.scale = 1, .length = 1, .f32_units = units};
    int64_t i = compare_arrays(got, want, N, tolerance, CLEAT_F32, CLEAT_F32, NULL);
    if (i >= 0) fail_msg("%s[%lld] after step %d is %.9g, should be %.9g", what, (long long)i, step, got[i], want[i]);
}

/* A bad element, infinite or NaN, every fifth step and twice in a row. */
static double bad_at(int step) {
    if (step % 5 == 3) return INFINITY;
    return step == 9 ? NAN : 0;
}

/* Loss 3 t, and the row for it. */
static void write_log(fixture *f, int t) {
    const double loss = 3 * t, slot = t;
    if (!f->terms) return;
    op_rig_write(&f->rig, f->terms, &loss);
    op_rig_write(&f->rig, f->slot, &slot);
}

/* The row has the loss scale of this step, not of the next one. */
static void expect_log(fixture *f, int t, double norm, double loss_scale) {
    double rows[ROWS][3];
    if (!f->terms) return;
    op_rig_read(&f->rig, f->ring, rows[0]);
    const double *row = rows[t % ROWS];
    assert_true(row[0] == 3 * t && row[2] == loss_scale && read_one(f, f->terms) == 0);
    assert_true(isfinite(norm) ? row[1] == norm : !isfinite(row[1]));
}

/* Skipping, growth and back-off over many steps; parameters and copies stay unchanged in the skipped steps,
 * and only in these. */
static void run_steps(const op_shape *shape, cleat_dtype dtype, double first, bool joined) {
    fixture f;
    static model want;
    double before[N], got[N], scaled[N], g[N], half_weights[N], corrected[8];
    want = (model){.loss_scale = first};
    open_fixture(&f, shape, dtype, joined);
    cleat_tensor *grads[2] = {cleat_store_grad(f.store, 0), cleat_store_grad(f.store, 1)};
    op_rig_write(&f.rig, f.states.loss_scale, &first);
    for (int i = 0; i < N; ++i) want.p[i] = compare_round(CLEAT_F32, cos(i));
    write_both(&f, f.params, want.p);
    for (int t = 0; t < STEPS; ++t) {
        double h[8] = {0.01, 0.9, 0.999, 1e-8, 0.1, 0.5, 0, 0}, sum = 0;
        for (int i = 0; i < 6; ++i) h[i] = compare_round(CLEAT_F32, h[i]);
        for (int i = 0; i < N; ++i) g[i] = compare_round(CLEAT_F32, 0.05 * sin(0.7 * i + 1.3 * t));
        for (int i = 0; i < N; ++i) sum += g[i] * g[i], scaled[i] = g[i] * want.loss_scale;
        bool finite = !(bad_at(t) != 0);
        if (!finite) scaled[(37 * t) % N] = bad_at(t);
        read_both(&f, f.params, before);
        read_both(&f, f.half_weights, half_weights);
        op_rig_write(&f.rig, f.hyper, h);
        write_both(&f, grads, scaled);
        write_log(&f, t);
        op_rig_snapshot(&f.rig);
        op_rig_run(&f.rig, 0, -1);
        assert_true(op_rig_untouched(&f.rig));
        double norm = read_one(&f, f.norm);
        expect_log(&f, t, norm, want.loss_scale);
        assert_true(finite ? fabs(norm / sqrt(sum) - 1) < 6e-7 : !isfinite(norm));
        op_rig_read(&f.rig, f.corrected, corrected);
        for (int k = 0; k < 2; ++k)
            assert_true(fabs(corrected[6 + k] / (1 - pow(h[1 + k], want.updates + 1)) - 1) < 2e-6);
        if (finite) move(&want, h, g, sqrt(sum));
        adjust(&want, finite);
        read_both(&f, f.params, got);
        expect_close("p", t, got, want.p, 4.0 * (t + 1));
        if (!finite) assert_memory_equal(got, before, sizeof got);
        for (int i = 0; i < N; ++i) before[i] = finite ? compare_round(dtype, got[i]) : half_weights[i];
        read_both(&f, f.half_weights, half_weights);
        assert_memory_equal(half_weights, before, sizeof half_weights);
        assert_true(read_one(&f, f.states.loss_scale) == want.loss_scale);
        assert_int_equal((int)read_one(&f, f.states.clean_steps), want.clean);
        assert_int_equal((int)read_one(&f, f.states.updates), want.updates);
        read_both(&f, grads, got);
        for (int i = 0; i < N; ++i) assert_true(got[i] == 0);
    }
    assert_true(want.updates > STEPS / 2 && want.updates < STEPS);
    close_fixture(&f);
}

static void test_steps(void **state) {
    (void)state;
    for (int joined = 0; joined < 2; ++joined) {
        run_steps(&op_shape_cpu, CLEAT_F16, 65536, joined);
        run_steps(&op_shape_cpu, CLEAT_BF16, 1, joined);
        run_steps(&op_shape_gpu, CLEAT_F16, 0x1p40, joined);
        run_steps(&op_shape_gpu64, CLEAT_BF16, 1024, joined);
    }
}

/* Without a loss scale the step is bit-identical whatever the storage type of the copies, because the f32
 * computation does not depend on them. Nor does a loss scale change any bit, unless something overflows. */
static void run_variant(cleat_dtype dtype, double loss_scale, double *p) {
    cleat_store *store;
    cleat_graph *graph;
    cleat_tensor *copy;
    op_rig rig;
    double g[N], h[8] = {0.01, 0.9, 0.999, 1e-8, 0.1, 0.5, 0.1, 0.001};
    assert_int_equal(cleat_store_create(&store, NULL), CLEAT_OK);
    assert_int_equal(cleat_graph_create(store, "g", &graph, NULL), CLEAT_OK);
    cleat_tensor *param = cleat_param(graph, "p", 1, (int64_t[]){N}, (cleat_init){0});
    if (dtype != CLEAT_F32) assert_int_equal(cleat_store_half_weight(store, param, dtype, &copy, NULL), CLEAT_OK);
    cleat_tensor *hyper = cleat_input(graph, "hyper", CLEAT_F32, 1, (int64_t[]){8});
    cleat_tensor *norm = cleat_input(graph, "norm", CLEAT_F32, 1, (int64_t[]){1});
    cleat_loss_scale states = cleat_loss_scale_states(graph);
    cleat_adamw(graph, hyper, norm, loss_scale > 0 ? states.loss_scale : NULL);
    assert_true(op_rig_open(&rig, graph, &op_shape_cpu, NULL, 0));
    double length = 0.7, factor = loss_scale > 0 ? loss_scale : 1;
    for (int i = 0; i < N; ++i) p[i] = cos(i);
    op_rig_write(&rig, param, p);
    if (loss_scale > 0) op_rig_write(&rig, states.loss_scale, &loss_scale);
    for (int t = 0; t < 3; ++t) {
        for (int i = 0; i < N; ++i) g[i] = compare_round(CLEAT_F32, 0.05 * sin(0.7 * i + t)) * factor;
        op_rig_write(&rig, cleat_store_grad(store, 0), g);
        op_rig_write(&rig, hyper, h);
        op_rig_write(&rig, norm, &length);
        op_rig_run(&rig, 0, -1);
    }
    op_rig_read(&rig, param, p);
    op_rig_close(&rig);
    cleat_graph_destroy(graph);
    cleat_store_destroy(store);
}

static void test_same_bits(void **state) {
    (void)state;
    static double plain[N], other[N];
    run_variant(CLEAT_F32, 0, plain);
    run_variant(CLEAT_F16, 0, other);
    assert_memory_equal(plain, other, sizeof plain);
    run_variant(CLEAT_BF16, 4096, other);
    assert_memory_equal(plain, other, sizeof plain);
    run_variant(CLEAT_F32, 0x1p20, other);
    assert_memory_equal(plain, other, sizeof plain);
}

/* Copies of the values the host wrote, for every parameter. */
static void test_refresh(void **state) {
    (void)state;
    const cleat_dtype types[] = {CLEAT_F16, CLEAT_BF16};
    const op_shape *shapes[] = {&op_shape_cpu, &op_shape_gpu};
    for (int k = 0; k < 2; ++k) {
        cleat_store *store;
        cleat_graph *graph;
        cleat_tensor *copy;
        op_rig rig;
        double p[N], got[N];
        assert_int_equal(cleat_store_create(&store, NULL), CLEAT_OK);
        assert_int_equal(cleat_graph_create(store, "copies", &graph, NULL), CLEAT_OK);
        cleat_tensor *param = cleat_param(graph, "p", 1, (int64_t[]){N}, (cleat_init){0});
        assert_int_equal(cleat_store_half_weight(store, param, types[k], &copy, NULL), CLEAT_OK);
        cleat_refresh_half_weights(graph);
        assert_true(op_rig_open(&rig, graph, shapes[k], NULL, 0));
        for (int i = 0; i < N; ++i) p[i] = compare_round(CLEAT_F32, exp(0.02 * i) * sin(i));
        p[3] = 1e30;
        op_rig_write(&rig, param, p);
        op_rig_run(&rig, 0, -1);
        op_rig_read(&rig, copy, got);
        for (int i = 0; i < N; ++i) assert_true(got[i] == compare_round(types[k], p[i]));
        op_rig_close(&rig);
        cleat_graph_destroy(graph);
        cleat_store_destroy(store);
    }
}

static void log_without_interval(cleat_graph *graph, const cleat_loss_scale *states) {
    const int64_t one = 1;
    cleat_tensor *terms = cleat_state(graph, "terms", CLEAT_F32, 1, &one);
    cleat_tensor *ring = cleat_state(graph, "ring", CLEAT_F32, 2, (int64_t[]){ROWS, 3});
    cleat_tensor *slot = cleat_input(graph, "slot", CLEAT_I32, 1, &one);
    cleat_log_step(graph, terms, cleat_grad_norm(graph), states, 0, slot, ring);
}

/* Refused: a refresh without copies, and an interval of no steps. */
static void test_refused(void **state) {
    (void)state;
    cleat_store *store;
    cleat_graph *graph;
    cleat_error error;
    assert_int_equal(cleat_store_create(&store, NULL), CLEAT_OK);
    for (int k = 0; k < 3; ++k) {
        assert_int_equal(cleat_graph_create(store, "g", &graph, NULL), CLEAT_OK);
        cleat_param(graph, "p", 1, (int64_t[]){N}, (cleat_init){0});
        cleat_loss_scale states = cleat_loss_scale_states(graph);
        if (k == 2)
            log_without_interval(graph, &states);
        else if (k)
            cleat_loss_scale_update(graph, &states, cleat_grad_norm(graph), 0);
        else
            cleat_refresh_half_weights(graph);
        assert_int_not_equal(cleat_graph_status(graph, &error), CLEAT_OK);
        assert_non_null(strstr(error.text, k ? "interval" : "compute copies"));
        cleat_graph_destroy(graph);
    }
    cleat_store_destroy(store);
}

int main(void) {
    const struct CMUnitTest extra[] = {cmocka_unit_test(test_steps), cmocka_unit_test(test_same_bits),
                                       cmocka_unit_test(test_refresh), cmocka_unit_test(test_refused)};
    return op_main(NULL, 0, extra, sizeof extra / sizeof *extra);
}
