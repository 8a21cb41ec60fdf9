/* Time estimates, for made-up cards. */
/* ctest: quick */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cleat/ops.h"
#include "fit/estimate.h"
#include "fit/workload.h"
#include "graph/launch.h"

static const cleat_device_facts card = {.name = "Fake 9000",
                                        .kind = CLEAT_DEVICE_GPU,
                                        .vendor = CLEAT_VENDOR_NVIDIA,
                                        .memory_total = 1ll << 36,
                                        .max_allocation = 1ll << 34,
                                        .alignment = 256,
                                        .local_memory = 48 * 1024,
                                        .max_work_group = 1024,
                                        .compute_units = 40,
                                        .work_group = 256,
                                        .vector_width = 4};
static const cleat_device_facts cpu = {.name = "Fake CPU",
                                       .kind = CLEAT_DEVICE_CPU,
                                       .memory_total = 1ll << 36,
                                       .max_allocation = 1ll << 34,
                                       .alignment = 256,
                                       .local_memory = 1024 * 1024,
                                       .max_work_group = 4096,
                                       .compute_units = 2,
                                       .work_group = 1,
                                       .vector_width = 16};
static const cleat_device_facts *const both[] = {&card, &cpu};
static const cleat_rates rates = {.flops = 5e12, .bytes = 2e11, .launch_seconds = 5e-6, .source = "a test"};

static void ok(cleat_status status, const cleat_error *error) {
    if (status) fail_msg("%s", error->text);
}

/* --- a graph of few operations -------------------------------------------------------------------------------- */

typedef struct small {
    cleat_store *store;
    cleat_graph *graph;
    cleat_plan *plan;
} small;

static small small_create(void) {
    small s = {0};
    cleat_error error = {0};
    ok(cleat_store_create(&s.store, &error), &error);
    ok(cleat_graph_create(s.store, "small", &s.graph, &error), &error);
    return s;
}

static void small_plan(small *s, const cleat_device_facts *facts) {
    cleat_error error = {0};
    ok(cleat_graph_status(s->graph, &error), &error);
    ok(cleat_plan_create(&s->graph, 1, facts, &s->plan, &error), &error);
}

static double small_seconds(const small *s, const cleat_rates *with) {
    double seconds = NAN;
    cleat_error error = {0};
    ok(cleat_estimate_graph(s->plan, 0, with, &seconds, &error), &error);
    return seconds;
}

static cleat_node_estimate small_node(const small *s, size_t node) {
    cleat_node_estimate estimate;
    cleat_error error = {0};
    ok(cleat_estimate_node(s->plan, 0, node, &rates, &estimate, &error), &error);
    return estimate;
}

static void small_destroy(small *s) {
    cleat_plan_destroy(s->plan);
    cleat_graph_destroy(s->graph);
    cleat_store_destroy(s->store);
}

static small one_linear(const cleat_device_facts *facts, int64_t m, int64_t n, int64_t k) {
    small s = small_create();
    const int64_t x_shape[] = {m, k}, w_shape[] = {n, k};
    cleat_tensor *x = cleat_input(s.graph, "x", CLEAT_F32, 2, x_shape);
    cleat_tensor *w = cleat_param(s.graph, "w", 2, w_shape, (cleat_init){CLEAT_INIT_ZERO, 0});
    cleat_retain(s.graph, cleat_linear(s.graph, x, w, NULL, NULL));
    small_plan(&s, facts);
    return s;
}

static small one_add(const cleat_device_facts *facts, int64_t elements) {
    small s = small_create();
    cleat_tensor *x = cleat_input(s.graph, "x", CLEAT_F32, 1, &elements);
    cleat_retain(s.graph, cleat_add(s.graph, x, x));
    small_plan(&s, facts);
    return s;
}

static void assert_near(double value, double wanted, double part) {
    if (!(fabs(value - wanted) <= part * wanted)) fail_msg("%g, expected %g within %g", value, wanted, part);
}

static void a_huge_product_runs_at_the_flop_rate(void **state) {
    (void)state;
    for (int i = 0; i < 2; ++i) {
        small s = one_linear(both[i], 16384, 4096, 4096);
        assert_near(small_seconds(&s, &rates), 2.0 * 16384 * 4096 * 4096 / rates.flops, 0.03);
        small_destroy(&s);
    }
}

static void a_long_addition_runs_at_the_byte_rate(void **state) {
    (void)state;
    for (int i = 0; i < 2; ++i) {
        small s = one_add(both[i], 1 << 28);
        double bytes = 3.0 * 4 * (1 << 28); /* x is an input twice */
        assert_near(small_seconds(&s, &rates), bytes / rates.bytes, 0.01);
        small_destroy(&s);
    }
}

static void a_tiny_operation_takes_a_launch(void **state) {
    (void)state;
    for (int i = 0; i < 2; ++i) {
        small s = one_add(both[i], 64);
        assert_near(small_seconds(&s, &rates), rates.launch_seconds, 0.05);
        small_destroy(&s);
    }
}

static void rates_scale_the_time(void **state) {
    (void)state;
    cleat_rates half = {.flops = rates.flops / 2, .bytes = rates.bytes / 2, .launch_seconds = rates.launch_seconds * 2};
    cleat_rates bytes = rates;
    bytes.bytes *= 1e9;
    small s = one_linear(&card, 1000, 300, 500);
    double seconds = small_seconds(&s, &rates);
    assert_true(small_seconds(&s, &half) == 2 * seconds);
    assert_true(small_seconds(&s, &bytes) == seconds); /* not the bottleneck */
    small_destroy(&s);
}

/* The remainder of an estimate without launches and idle units. */
static void the_roofline_is_the_least_time(void **state) {
    (void)state;
    for (int i = 0; i < 2; ++i) {
        cleat_roofline roofline;
        cleat_error error;
        small s = one_linear(both[i], 1000, 300, 500);
        ok(cleat_estimate_roofline(s.plan, 0, &rates, &roofline, &error), &error);
        assert_true(roofline.flops >= 2.0 * 1000 * 300 * 500 && roofline.bytes > 4.0 * (1000 * 300 + 1000 * 500));
        assert_true(roofline.seconds == fmax(roofline.flops / rates.flops, roofline.bytes / rates.bytes));
        assert_true(roofline.launches >= 1);
        assert_true(roofline.seconds + (double)roofline.launches * rates.launch_seconds <= small_seconds(&s, &rates));
        assert_int_equal(cleat_estimate_roofline(s.plan, 1, &rates, &roofline, &error), CLEAT_ERR_ARGUMENT);
        small_destroy(&s);
    }
}

/* --- utilisation ---------------------------------------------------------------------------------------------- */

static cleat_node_estimate sum_on(const cleat_device_facts *facts) {
    small s = small_create();
    const int64_t one = 1;
    cleat_tensor *x = cleat_input(s.graph, "x", CLEAT_F32, 1, &one), *terms[] = {x, x};
    cleat_retain(s.graph, cleat_sum(s.graph, terms, 2));
    small_plan(&s, facts);
    cleat_node_estimate estimate = small_node(&s, 0);
    small_destroy(&s);
    return estimate;
}

static void one_group_keeps_one_unit_busy(void **state) {
    (void)state;
    assert_true(sum_on(&card).busy == 1.0 / card.compute_units && sum_on(&card).reached == 1.0 / card.compute_units);
    assert_true(sum_on(&cpu).busy == 1.0 / cpu.compute_units);
    cleat_device_facts unknown = cpu;
    unknown.compute_units = 0;
    assert_true(sum_on(&unknown).busy == 1 && sum_on(&unknown).reached == 1);
}

static cleat_node_estimate addition_on(const cleat_device_facts *facts, int64_t elements) {
    small s = one_add(facts, elements);
    cleat_node_estimate estimate = small_node(&s, 0);
    small_destroy(&s);
    return estimate;
}

/* An addition of N elements has N / (256 * 4) groups, until the device is full. */
static void rounds_that_are_not_full_cost_as_much(void **state) {
    (void)state;
    assert_near(addition_on(&card, 10 * 1024).busy, 10.0 / 40, 1e-12);
    assert_near(addition_on(&card, 40 * 1024).busy, 1, 1e-12);
    assert_near(addition_on(&card, 41 * 1024).busy, 41.0 / 80, 1e-12);
    assert_near(addition_on(&card, 80 * 1024).busy, 1, 1e-12);
    assert_near(addition_on(&card, 100000 * 1024).busy, 1, 1e-12);
    assert_near(addition_on(&cpu, 3 * 16).busy, 3.0 / 4, 1e-12);
    assert_near(addition_on(&card, 10 * 1024).reached, 10.0 / 40, 1e-12);
    /* bandwidth is shared by the active units */
    assert_near(addition_on(&card, 41 * 1024).reached, 1, 1e-12);
}

/* One work-item per chain: 256 chains share a compute unit. */
static void small_groups_share_a_unit(void **state) {
    (void)state;
    const int64_t chains[] = {1, 5120, 10240};
    for (int i = 0; i < 3; ++i) {
        small s = small_create();
        const int64_t step_shape[] = {chains[i], 4, 6};
        cleat_tensor *steps = cleat_input(s.graph, "steps", CLEAT_F32, 3, step_shape);
        cleat_tensor *lengths = cleat_input(s.graph, "lengths", CLEAT_I32, 1, step_shape);
        cleat_retain(s.graph, cleat_rigid_chain(s.graph, steps, lengths, NULL));
        small_plan(&s, &card);
        assert_near(small_node(&s, 0).busy, (double)chains[i] / 10240, 1e-12);
        assert_near(small_node(&s, 0).reached, chains[i] < 40 ? (double)chains[i] / 40 : 1, 1e-12);
        small_destroy(&s);
    }
}

/* --- operations without a cost -------------------------------------------------------------------------------- */

static cleat_status infer_copy(cleat_node *node, cleat_error *error) {
    return cleat_set_output(node, 0, CLEAT_F32, node->in[0]->rank, node->in[0]->shape, error);
}

static void bind_copy(const cleat_node *node, cleat_binder *binder) {
    if (node->in[0]->shape[0] == 7) cleat_fail(&binder->error, CLEAT_ERR_ARGUMENT, "seven is not served");
    for (int i = 0; i < 3; ++i) {
        cleat_launch_kernel(binder, node, "copy.cl", "copy", CLEAT_F32);
        cleat_launch_groups(binder, i == 1 ? 80 : 1);
    }
}

static const cleat_variant copy_variants[] = {{.name = "three launches", .bind = bind_copy}, {0}};
static const cleat_op copy = {.name = "copy", .infer = infer_copy, .variants = copy_variants};
static const cleat_op view = {.name = "view", .infer = infer_copy};

static small one_node(const cleat_op *op, int64_t elements) {
    small s = small_create();
    cleat_tensor *x = cleat_input(s.graph, "x", CLEAT_F32, 1, &elements);
    cleat_node *node = cleat_emit(s.graph, op, NULL, 0, &x, 1);
    assert_non_null(node);
    cleat_retain(s.graph, node->out[0]);
    small_plan(&s, &card);
    return s;
}

static void without_a_cost_tensors_are_read_and_written_once(void **state) {
    (void)state;
    small s = one_node(&copy, 1000);
    cleat_node_estimate estimate = small_node(&s, 0);
    assert_true(estimate.cost.flops == 0 && estimate.cost.bytes == 8000);
    assert_int_equal(estimate.launches, 3);
    assert_true(estimate.busy == 1 && estimate.reached == 1); /* of the main launch */
    assert_near(estimate.seconds, 8000 / rates.bytes + 3 * rates.launch_seconds, 1e-12);
    small_destroy(&s);
}

static const cleat_variant mma_variants[] = {{.name = "mma_large", .bind = bind_copy}, {0}};
static const cleat_op on_unit = {.name = "on_unit", .infer = infer_copy, .variants = mma_variants};

static void a_matrix_unit_has_its_own_rate(void **state) {
    (void)state;
    cleat_rates with = rates;
    cleat_node_estimate estimate;
    cleat_error error = {0};
    small s = one_node(&on_unit, 1000), plain = one_node(&copy, 1000);
    assert_true(small_node(&s, 0).flops_rate == rates.flops); /* the operation has no cost */
    with.matrix_flops = 7 * rates.flops;
    cleat_node *node = s.graph->nodes[0];
    for (int i = 0; i < 3; ++i) { /* three products of TF32, one of them, one of f16 */
        const double products[] = {6, 2, 1};
        node->tf32 = i == 1;
        node->in[0]->dtype = i == 2 ? CLEAT_F16 : CLEAT_F32;
        ok(cleat_estimate_node(s.plan, 0, 0, &with, &estimate, &error), &error);
        assert_near(estimate.flops_rate, with.matrix_flops / products[i], 1e-12);
    }
    ok(cleat_estimate_node(plain.plan, 0, 0, &with, &estimate, &error), &error);
    assert_true(estimate.flops_rate == with.flops);
    small_destroy(&plain);
    small_destroy(&s);
}

static void what_launches_nothing_takes_no_time(void **state) {
    (void)state;
    small s = one_node(&view, 1000);
    cleat_node_estimate estimate = small_node(&s, 0);
    assert_int_equal(estimate.launches, 0);
    assert_true(estimate.seconds == 0 && small_seconds(&s, &rates) == 0);
    small_destroy(&s);
}

/* --- errors --------------------------------------------------------------------------------------------------- */

static void wrong_questions_are_refused(void **state) {
    (void)state;
    const cleat_rates wrong[] = {{0},
                                 {.flops = 1e9},
                                 {.flops = NAN, .bytes = 1e9},
                                 {.flops = 1e9, .bytes = 1e9, .launch_seconds = -1},
                                 {.flops = 1e9, .bytes = 1e9, .launch_seconds = NAN}};
    small s = one_add(&card, 100), seven = one_node(&copy, 7);
    double seconds = 42;
    cleat_node_estimate estimate;
    cleat_error error;
    assert_int_equal(cleat_estimate_graph(s.plan, 1, &rates, &seconds, &error), CLEAT_ERR_ARGUMENT);
    assert_int_equal(cleat_estimate_node(s.plan, 1, 0, &rates, &estimate, &error), CLEAT_ERR_ARGUMENT);
    assert_int_equal(cleat_estimate_node(s.plan, 0, 1, &rates, &estimate, &error), CLEAT_ERR_ARGUMENT);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
        assert_int_equal(cleat_estimate_graph(s.plan, 0, &wrong[i], &seconds, &error), CLEAT_ERR_ARGUMENT);
        assert_int_equal(cleat_estimate_node(s.plan, 0, 0, &wrong[i], &estimate, NULL), CLEAT_ERR_ARGUMENT);
    }
    assert_int_equal(cleat_estimate_graph(seven.plan, 0, &rates, &seconds, &error), CLEAT_ERR_ARGUMENT);
    assert_non_null(strstr(error.text, "seven"));
    assert_true(seconds == 42);
    small_destroy(&s);
    small_destroy(&seven);
}

/* --- a model -------------------------------------------------------------------------------------------------- */

static const char profile_text[] =
    "[model]\ntype = rna_transformer\nd_model = 64\nheads = 4\nd_ff = 128\ndropout = 0.1\n"
    "[data]\npath = /nonexistent\n";

typedef struct shape {
    int64_t batch, length, layers;
    int recompute;
} shape;

/* Estimated seconds of the training graph and the evaluation graph. */
static void model_seconds(shape want, const cleat_device_facts *facts, double *train, double *evaluate) {
    cleat_profile *profile = NULL;
    cleat_model *model = NULL;
    cleat_workload *work = NULL;
    cleat_error error = {0};
    char layers[64];
    cleat_bucket bucket = {.length = want.length, .global_batch_size = want.batch, .micro_batch_size = want.batch};
    snprintf(layers, sizeof layers, "model.layers=%lld", (long long)want.layers);
    ok(cleat_profile_create(&profile, &error), &error);
    ok(cleat_profile_read_text(profile, "test", profile_text, strlen(profile_text), &error), &error);
    ok(cleat_profile_set(profile, layers, &error), &error);
    ok(cleat_profile_create_model(profile, &model, &error), &error);
    const cleat_workload_spec spec = {.facts = facts,
                                      .model = model,
                                      .purpose = CLEAT_FOR_TRAINING,
                                      .buckets = &bucket,
                                      .n_buckets = 1,
                                      .recompute = want.recompute};
    ok(cleat_workload_create(&spec, &work, &error), &error);
    ok(cleat_estimate_graph(work->plan, work->train[0].index, &rates, train, &error), &error);
    ok(cleat_estimate_graph(work->plan, work->evaluate[0].index, &rates, evaluate, &error), &error);

    double sum = 0;
    for (size_t i = 0; i < cleat_graph_nodes(work->train[0].graph); ++i) {
        cleat_node_estimate estimate;
        ok(cleat_estimate_node(work->plan, work->train[0].index, i, &rates, &estimate, &error), &error);
        bool launched = estimate.launches > 0;
        if (!(launched == (estimate.seconds > 0) && launched == (estimate.busy > 0) && estimate.busy <= 1 &&
              launched == (estimate.reached > 0) && estimate.reached <= 1))
            fail_msg("node %zu: busy %g, reached %g, %g s", i, estimate.busy, estimate.reached, estimate.seconds);
        sum += estimate.seconds;
    }
    assert_near(*train, sum, 1e-12);
    cleat_workload_destroy(work);
    cleat_model_destroy(model);
    cleat_profile_destroy(profile);
}

static double train_seconds(shape want, const cleat_device_facts *facts) {
    double train = NAN, evaluate = NAN;
    model_seconds(want, facts, &train, &evaluate);
    assert_true(evaluate > 0 && evaluate < train);
    return train;
}

static void more_work_takes_longer(void **state) {
    (void)state;
    for (int i = 0; i < 2; ++i) {
        shape base = {4, 256, 2, 0}, batch = base, length = base, layers = base;
        batch.batch = 8;
        length.length = 512;
        layers.layers = 4;
        double seconds = train_seconds(base, both[i]);
        assert_true(train_seconds(batch, both[i]) > seconds);
        assert_true(train_seconds(length, both[i]) > seconds);
        assert_true(train_seconds(layers, both[i]) > seconds);
    }
}

/* Above the size that fills the device, time is proportional to work. */
static void full_devices_are_proportional(void **state) {
    (void)state;
    double few = train_seconds((shape){32, 512, 2, 0}, &card), many = train_seconds((shape){64, 512, 2, 0}, &card);
    assert_near(many, 2 * few, 0.15);
}

/* Recomputation costs at most one more forward pass. */
static void recomputing_takes_longer(void **state) {
    (void)state;
    for (int i = 0; i < 2; ++i) {
        double stored = NAN, recomputed = NAN, forward = NAN;
        model_seconds((shape){4, 256, 4, 0}, both[i], &stored, &forward);
        model_seconds((shape){4, 256, 4, 1}, both[i], &recomputed, &forward);
        if (!(recomputed > stored && recomputed < stored + 1.1 * forward))
            fail_msg("stored %g, recomputed %g, forward %g", stored, recomputed, forward);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_huge_product_runs_at_the_flop_rate),
        cmocka_unit_test(a_long_addition_runs_at_the_byte_rate),
        cmocka_unit_test(a_tiny_operation_takes_a_launch),
        cmocka_unit_test(rates_scale_the_time),
        cmocka_unit_test(the_roofline_is_the_least_time),
        cmocka_unit_test(one_group_keeps_one_unit_busy),
        cmocka_unit_test(rounds_that_are_not_full_cost_as_much),
        cmocka_unit_test(small_groups_share_a_unit),
        cmocka_unit_test(without_a_cost_tensors_are_read_and_written_once),
        cmocka_unit_test(a_matrix_unit_has_its_own_rate),
        cmocka_unit_test(what_launches_nothing_takes_no_time),
        cmocka_unit_test(wrong_questions_are_refused),
        cmocka_unit_test(more_work_takes_longer),
        cmocka_unit_test(full_devices_are_proportional),
        cmocka_unit_test(recomputing_takes_longer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
