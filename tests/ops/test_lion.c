/* Steps of Lion against double precision (make_optimizer_numbers.py) and with gradients that are not finite. */
/* ctest: device */
#include "harness.h"

#include "graph/store.h"
#include "ops/update.h"

#include <math.h>
#include <string.h>

enum { N = 331, SHOWN = 6, STEPS = 50 };

typedef struct fixture {
    cleat_store *store;
    cleat_graph *graph;
    cleat_tensor *hyper, *half;
    op_rig rig;
} fixture;

static void open_fixture(fixture *f, const op_shape *shape, cleat_dtype storage) {
    memset(f, 0, sizeof *f);
    assert_int_equal(cleat_store_create(&f->store, NULL), CLEAT_OK);
    assert_int_equal(cleat_graph_create(f->store, "optimizer", &f->graph, NULL), CLEAT_OK);
    cleat_tensor *p = cleat_param(f->graph, "p", 1, (int64_t[]){N}, (cleat_init){0});
    if (storage != CLEAT_F32) assert_int_equal(cleat_store_half_weight(f->store, p, storage, &f->half, NULL), CLEAT_OK);
    f->hyper = cleat_input(f->graph, "hyper", CLEAT_F32, 1, (int64_t[]){8});
    cleat_lion(f->graph, f->hyper, cleat_grad_norm(f->graph), NULL);
    assert_true(op_rig_open(&f->rig, f->graph, shape, NULL, 0));
}

static void close_fixture(fixture *f) {
    op_rig_close(&f->rig);
    cleat_graph_destroy(f->graph);
    cleat_store_destroy(f->store);
}

static const op_shape *const shapes[] = {&op_shape_cpu, &op_shape_gpu, &op_shape_gpu64};

static void fifty_steps_follow_the_paper(void **state) {
    (void)state;
    static const double hypers[][8] = {{1e-2, 0.9, 0.99, 0, 0.1}, {3e-3, 0.5, 0.9}};
    static const double wanted[][SHOWN] = {
        {0.4632619213, 0.5135768751, -0.4151637030, -0.9228703162, -0.5825440828, 0.2891063302},
        {0.8499999987, 0.5463022767, -0.4221468447, -0.9899924994, -0.6416436080, 0.2896622000}};
    for (int s = 0; s < 6; ++s) {
        const cleat_dtype storage = s < 4 ? CLEAT_F32 : s == 4 ? CLEAT_F16 : CLEAT_BF16;
        const int row = s % 2;
        fixture f;
        double p[N], g[N], h[8], half[N];
        open_fixture(&f, shapes[s / 2], storage);
        for (int i = 0; i < 8; ++i) h[i] = compare_round(CLEAT_F32, hypers[row][i]);
        for (int i = 0; i < N; ++i) p[i] = compare_round(CLEAT_F32, cos(i));
        op_rig_write(&f.rig, cleat_store_param(f.store, 0), p);
        op_rig_write(&f.rig, f.hyper, h);
        for (int t = 1; t <= STEPS; ++t) {
            for (int i = 0; i < N; ++i)
                g[i] = compare_round(CLEAT_F32, 0.02 * sin(0.7 * i + 1.3 * t) + (i % 7 == 0 ? 0.05 : 0));
            op_rig_write(&f.rig, cleat_store_grad(f.store, 0), g);
            op_rig_snapshot(&f.rig);
            op_rig_run(&f.rig, 0, -1);
            assert_true(op_rig_untouched(&f.rig));
        }
        op_rig_read(&f.rig, cleat_store_param(f.store, 0), p);
        for (int i = 0; i < SHOWN; ++i) /* 50 times the rounding of 1 - lr wd */
            if (!(fabs(p[i] - wanted[row][i]) < 2e-6))
                fail_msg("%d: p[%d] is %.9g, not %.9g", s, i, p[i], wanted[row][i]);
        if (f.half) op_rig_read(&f.rig, f.half, half);
        for (int i = 0; f.half && i < N; ++i) assert_true(half[i] == compare_round(storage, p[i]));
        op_rig_read(&f.rig, cleat_store_grad(f.store, 0), g);
        for (int i = 0; i < N; ++i) assert_true(g[i] == 0);
        assert_int_equal(cleat_plan_category_bytes(f.rig.plan, CLEAT_BYTES_OPTIMIZER),
                         cleat_plan_category_bytes(f.rig.plan, CLEAT_BYTES_GRADIENTS)); /* one moment */
        close_fixture(&f);
    }
}

static void a_bad_gradient_changes_nothing(void **state) {
    (void)state;
    for (int bad = 0; bad < 2; ++bad) {
        fixture f;
        double p[N], got[N], h[8] = {1e-2, 0.9, 0.99, 0, 0.1, 1};
        open_fixture(&f, shapes[bad], CLEAT_F32);
        for (int i = 0; i < N; ++i) p[i] = i;
        op_rig_write(&f.rig, f.hyper, h);
        op_rig_write(&f.rig, cleat_store_param(f.store, 0), p);
        op_rig_write(&f.rig, f.store->moments1[0], p);
        p[N - 1] = bad ? NAN : INFINITY;
        op_rig_write(&f.rig, cleat_store_grad(f.store, 0), p);
        p[N - 1] = N - 1;
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

int main(void) {
    const struct CMUnitTest extra[] = {cmocka_unit_test(fifty_steps_follow_the_paper),
                                       cmocka_unit_test(a_bad_gradient_changes_nothing)};
    return op_main(NULL, 0, extra, sizeof extra / sizeof *extra);
}
