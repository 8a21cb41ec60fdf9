/* The RNA model: its graphs are valid and fit their plans, it has the configured size, and it learns. */
/* ctest: device */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cleat/models.h"
#include "cleat/profile.h"
#include "core/memory.h"
#include "exec/copy.h"
#include "graph/graph.h"
#include "graph/store.h"
#include "ops/update.h"
#include "plan_check.h"
#include "platform/files.h"
#include "source_path.h"

static cleat_device *open_device(void) {
    cleat_device *device = NULL;
    cleat_error error;
    const char *selector = getenv("CLEAT_TEST_DEVICE");
    cleat_status status = cleat_device_open(selector ? selector : "auto", &device, &error);
    if (!status) return device;
    fprintf(stderr, "%s\n", error.text);
    exit(status == CLEAT_ERR_NO_DEVICE ? 77 : 1);
}

static cleat_model *model_of(cleat_profile *profile) {
    cleat_model *model = NULL;
    cleat_error error;
    if (cleat_profile_create_model(profile, &model, &error) != CLEAT_OK) fail_msg("%s", error.text);
    cleat_profile_destroy(profile);
    return model;
}

static cleat_model *model_in(const char *file) {
    cleat_profile *profile = NULL;
    cleat_error error;
    char path[512];
    snprintf(path, sizeof path, "%s/%s", source_path("profiles"), file);
    if (cleat_profile_load(path, NULL, 0, &profile, &error) != CLEAT_OK) fail_msg("%s", error.text);
    return model_of(profile);
}

/* Creates a small model with `settings` ("section.key=value", NULL-terminated). */
static cleat_model *small_model(const char *const *settings) {
    static const char *const sizes[] = {"model.d_model=16", "model.heads=2", "model.layers=1", "model.d_ff=24",
                                        "model.dropout=0"};
    cleat_profile *profile = NULL;
    assert_int_equal(cleat_profile_create(&profile, NULL), CLEAT_OK);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i)
        assert_int_equal(cleat_profile_set(profile, sizes[i], NULL), CLEAT_OK);
    for (; *settings; ++settings) assert_int_equal(cleat_profile_set(profile, *settings, NULL), CLEAT_OK);
    return model_of(profile);
}
#define SET(...) ((const char *const[]){__VA_ARGS__, NULL})

static cleat_graph *graph_in(cleat_store *store, const char *name) {
    cleat_graph *graph = NULL;
    assert_int_equal(cleat_graph_create(store, name, &graph, NULL), CLEAT_OK);
    return graph;
}

static cleat_plan *checked_plan(cleat_graph *const *graphs, size_t count, const cleat_device_facts *facts) {
    cleat_plan *plan = NULL;
    cleat_error error;
    for (size_t i = 0; i < count; ++i)
        if (cleat_graph_status(graphs[i], &error) != CLEAT_OK) fail_msg("%s", error.text);
    if (cleat_plan_create(graphs, count, facts, &plan, &error) != CLEAT_OK) fail_msg("%s", error.text);
    if (cleat_plan_check(plan, &error) != CLEAT_OK) fail_msg("%s", error.text);
    return plan;
}

/* --- sizes --- */

/* d_model 256, d_ff 1024, 5 blocks: 5 * 256 + 5 * 789760 + 512, and a head of 6 * 256 + 6. */
static void production_model_has_4_million_parameters(void **state) {
    (void)state;
    cleat_model *model = model_in("rna.ini");
    cleat_model_graph built;
    cleat_store *store = NULL;
    assert_int_equal(cleat_store_create(&store, NULL), CLEAT_OK);
    cleat_graph *graph = graph_in(store, "predict");
    cleat_model_build(model, graph, CLEAT_MODE_PREDICT, 1, 32, &built);
    assert_int_equal(cleat_graph_status(graph, NULL), CLEAT_OK);
    print_message("%lld parameters in %zu tensors\n", (long long)cleat_store_elements(store), cleat_store_count(store));
    assert_int_equal(cleat_store_elements(store), 3952134);
    assert_null(built.loss);
    assert_null(cleat_graph_find(graph, "coords"));
    cleat_graph_destroy(graph);
    cleat_store_destroy(store);
    cleat_model_destroy(model);
}

static void terms_and_metrics_have_names(void **state) {
    (void)state;
    cleat_model *model = model_in("rna.ini");
    assert_string_equal(cleat_model_name(model), "rna_transformer");
    for (int i = 0; i < cleat_model_terms(model); ++i) assert_true(strlen(cleat_model_term(model, i)) > 0);
    static const char *const names[] = {"pair_mae", "pair_mae_local", "lddt", "rmsd", "tm"};
    double metric_state[12] = {6, 4, 0, 2, 0.5, 3, 2, 0, 1, 1}; /* no chain has an lDDT */
    cleat_metrics metrics = {0};
    assert_int_equal(cleat_model_metric_state_size(model), 12);
    cleat_model_metric_compute(model, metric_state, &metrics);
    assert_int_equal(metrics.count, 5);
    for (size_t i = 0; i < 5; ++i) {
        assert_string_equal(metrics.items[i].name, names[i]);
        if (i != 2) assert_true(metrics.items[i].value == (i == 4 ? 0.5 : 2));
    }
    assert_true(isnan(cleat_metrics_get(&metrics, "lddt")));
    cleat_model_destroy(model);
}

/* --- plans --- */

/* One plan of training, evaluation and prediction, for two lengths each. */
enum { GRAPHS = 6 };

static void assert_plan_is_sound(const cleat_model *model, cleat_device *device, bool allocate) {
    static const cleat_mode modes[] = {CLEAT_MODE_TRAIN, CLEAT_MODE_EVALUATE, CLEAT_MODE_PREDICT};
    static const int64_t shapes[2][2] = {{3, 17}, {1, 200}};
    cleat_graph *graphs[GRAPHS];
    cleat_store *store = NULL;
    cleat_model_graph built;
    assert_int_equal(cleat_store_create(&store, NULL), CLEAT_OK);
    for (int i = 0; i < GRAPHS; ++i) {
        graphs[i] = graph_in(store, "graph");
        cleat_model_build(model, graphs[i], modes[i % 3], shapes[i / 3][0], shapes[i / 3][1], &built);
        assert_non_null(built.output);
    }
    cleat_plan *plan = checked_plan(graphs, GRAPHS, cleat_device_get_facts(device));
    int64_t bound = cleat_plan_lower_bound(plan), arena = cleat_plan_category_bytes(plan, CLEAT_BYTES_ARENA);
    print_message("%.2f MiB, arena %.4f of its bound\n", (double)cleat_plan_bytes(plan) / 1048576.0,
                  (double)arena / (double)bound);
    assert_true(arena >= bound && arena <= bound + bound / 10);
    if (allocate) {
        cleat_exec *exec = NULL;
        cleat_error error;
        assert_int_equal(cleat_device_allocated(device), 0);
        if (cleat_exec_create(device, plan, &exec, &error) != CLEAT_OK) fail_msg("%s", error.text);
        assert_int_equal(cleat_device_allocated(device), cleat_plan_bytes(plan));
        cleat_exec_destroy(exec);
        assert_int_equal(cleat_device_allocated(device), 0);
    }
    cleat_plan_destroy(plan);
    for (int i = 0; i < GRAPHS; ++i) cleat_graph_destroy(graphs[i]);
    cleat_store_destroy(store);
}

static void plans_of_profiles_are_sound(void **state) {
    static const char *const files[] = {"rna.ini", "rna_small.ini", "rna_memorise.ini"};
    for (size_t i = 0; i < sizeof files / sizeof *files; ++i) {
        cleat_model *model = model_in(files[i]);
        assert_plan_is_sound(model, *state, false);
        cleat_model_destroy(model);
    }
}

static void what_is_planned_is_allocated(void **state) {
    cleat_model *model = small_model(SET("model.dropout=0.2"));
    assert_plan_is_sound(model, *state, true);
    cleat_model_destroy(model);
    model = small_model(SET("model.head=absolute", "loss.coordinate=1", "model.positions=start"));
    assert_plan_is_sound(model, *state, true);
    cleat_model_destroy(model);
}

/* --- errors --- */

static const char *const no_loss[] = {
    "loss.pair_distance=0", "loss.lddt=0",  "loss.frame=0",     "loss.handedness=0", "loss.bond_length=0",
    "loss.bond_angle=0",    "loss.clash=0", "loss.base_pair=0", "loss.coordinate=0", NULL};

static void assert_nothing_to_train(const char *const *settings) {
    cleat_model *model = small_model(settings);
    cleat_store *store = NULL;
    cleat_model_graph built;
    cleat_error error = {0};
    assert_int_equal(cleat_store_create(&store, NULL), CLEAT_OK);
    cleat_graph *graph = graph_in(store, "train");
    cleat_model_build(model, graph, CLEAT_MODE_TRAIN, 2, 8, &built);
    assert_int_equal(cleat_graph_status(graph, &error), CLEAT_ERR_PROFILE);
    assert_non_null(strstr(error.text, "[loss]"));
    cleat_graph_destroy(graph);
    cleat_store_destroy(store);
    cleat_model_destroy(model);
}

/* A head without frames has no frame term, regardless of its weight. */
static void loss_without_a_term_is_an_error(void **state) {
    (void)state;
    const char *settings[16];
    size_t count = 0;
    assert_nothing_to_train(no_loss);
    for (; no_loss[count]; ++count) settings[count] = no_loss[count];
    settings[count++] = "model.head=absolute";
    settings[count++] = "loss.frame=1";
    settings[count] = NULL;
    assert_nothing_to_train(settings);
}

static void heads_that_do_not_divide_are_an_error(void **state) {
    (void)state;
    cleat_model *model = small_model(SET("model.heads=3"));
    cleat_store *store = NULL;
    cleat_model_graph built;
    cleat_error error = {0};
    assert_int_equal(cleat_store_create(&store, NULL), CLEAT_OK);
    cleat_graph *graph = graph_in(store, "train");
    cleat_model_build(model, graph, CLEAT_MODE_TRAIN, 2, 8, &built);
    assert_int_equal(cleat_graph_status(graph, &error), CLEAT_ERR_SHAPE);
    assert_non_null(strstr(error.text, "attention"));
    cleat_graph_destroy(graph);
    cleat_store_destroy(store);
    cleat_model_destroy(model);
}

/* --- learning --- */

enum { B = 2, L = 12, MAX_TERMS = 16 };

/* Two chains of 12 and 9 residues on helices of two kinds; the ends are paired. */
typedef struct batch {
    int32_t tokens[B * L], lengths[B], partner[B * L];
    float coords[B * L * 3], mask[B * L];
    const void *fields[5];
    cleat_host_batch host;
} batch;

static void batch_make(batch *b) {
    memset(b, 0, sizeof *b);
    b->lengths[0] = L;
    b->lengths[1] = 9;
    for (int s = 0; s < B; ++s)
        for (int i = 0; i < L; ++i) {
            int at = s * L + i;
            bool there = i < b->lengths[s];
            double turn = (s ? 0.9 : 0.571) * i, radius = s ? 6 : 8.9, rise = s ? 4 : 2.81;
            b->tokens[at] = there ? (i * 7 + s * 3) % 4 : CLEAT_RNA_PADDING;
            b->partner[at] = there && (i < 2 || i >= b->lengths[s] - 2) ? b->lengths[s] - 1 - i : -1;
            b->mask[at] = there && i != 5 ? 1.0f : 0.0f; /* one residue is unknown */
            if (b->mask[at] == 0) continue;
            b->coords[3 * at] = (float)(radius * cos(turn));
            b->coords[3 * at + 1] = (float)(radius * sin(turn));
            b->coords[3 * at + 2] = (float)(rise * i);
        }
    b->fields[0] = b->tokens;
    b->fields[1] = b->lengths;
    b->fields[2] = b->coords;
    b->fields[3] = b->mask;
    b->fields[4] = b->partner;
    b->host = (cleat_host_batch){.batch = B, .length = L, .fields = b->fields};
}

typedef struct learner {
    cleat_model *model;
    cleat_store *store;
    cleat_graph *graphs[2]; /* train, update */
    cleat_model_graph built;
    cleat_tensor *hyper;
    cleat_plan *plan;
    cleat_exec *exec;
} learner;

static void put(learner *l, size_t graph, const char *name, const void *values) {
    const cleat_tensor *tensor = cleat_graph_find(l->graphs[graph], name);
    cleat_error error;
    if (!tensor) fail_msg("no input '%s'", name);
    if (cleat_exec_write_unchecked(l->exec, graph, tensor, values, &error) != CLEAT_OK) fail_msg("%s", error.text);
}

static void learner_open(learner *l, cleat_model *model, cleat_device *device) {
    int64_t eight = 8;
    cleat_error error;
    *l = (learner){.model = model};
    assert_int_equal(cleat_store_create(&l->store, NULL), CLEAT_OK);
    l->graphs[0] = graph_in(l->store, "train");
    cleat_model_build(model, l->graphs[0], CLEAT_MODE_TRAIN, B, L, &l->built);
    l->graphs[1] = graph_in(l->store, "update");
    l->hyper = cleat_input(l->graphs[1], "hyper", CLEAT_F32, 1, &eight);
    cleat_adamw(l->graphs[1], l->hyper, cleat_grad_norm(l->graphs[1]), NULL);
    l->plan = checked_plan(l->graphs, 2, cleat_device_get_facts(device));
    if (cleat_exec_create(device, l->plan, &l->exec, &error) != CLEAT_OK) fail_msg("%s", error.text);
    for (size_t i = 0; i < cleat_store_count(l->store); ++i) {
        cleat_tensor *param = cleat_store_param(l->store, i);
        float *values = cleat_alloc((size_t)cleat_tensor_elements(param), sizeof *values);
        assert_non_null(values);
        cleat_param_initialise(param, 1, values);
        assert_int_equal(cleat_exec_write_unchecked(l->exec, 0, param, values, NULL), CLEAT_OK);
        cleat_free(values);
    }
}

static void learner_close(learner *l) {
    cleat_exec_destroy(l->exec);
    cleat_plan_destroy(l->plan);
    for (int i = 0; i < 2; ++i) cleat_graph_destroy(l->graphs[i]);
    cleat_store_destroy(l->store);
    cleat_model_destroy(l->model);
}

static void put_batch(learner *l, const batch *b) {
    static const char *const names[] = {"tokens", "lengths", "coords", "mask", "partner"};
    float sample_weight[MAX_TERMS * B], one = 1;
    uint32_t rng[4] = {1, 0, 0, 0};
    assert_true(cleat_model_terms(l->model) <= MAX_TERMS);
    for (int i = 0; i < 5; ++i) put(l, 0, names[i], b->fields[i]);
    cleat_model_sample_weight(l->model, &b->host, &(cleat_global_batch){.samples = B}, sample_weight);
    put(l, 0, "scale", sample_weight);
    put(l, 0, "rng", rng);
    put(l, 0, "seed", &one);
}

static float step(learner *l, int64_t t) {
    float loss, hyper[8] = {1e-2f,
                            0.9f,
                            0.99f,
                            1e-8f,
                            0,
                            1,
                            (float)(1 - pow(0.9, (double)t + 1)),
                            (float)(1 - pow(0.99, (double)t + 1))};
    cleat_error error;
    put(l, 1, "hyper", hyper);
    if (cleat_exec_run(l->exec, 0, &error) != CLEAT_OK) fail_msg("%s", error.text);
    if (cleat_exec_read_unchecked(l->exec, 0, l->built.loss, &loss, &error) != CLEAT_OK) fail_msg("%s", error.text);
    if (cleat_exec_run(l->exec, 1, &error) != CLEAT_OK) fail_msg("%s", error.text);
    return loss;
}

static void assert_learns(cleat_device *device, cleat_model *model, double mae_wanted) {
    enum { STEPS = 300 };
    learner l;
    batch b;
    float first = 0, last = 0;
    batch_make(&b);
    learner_open(&l, model, device);
    put_batch(&l, &b);
    for (int t = 0; t < STEPS; ++t) {
        last = step(&l, t);
        if (t == 0) first = last;
        if (!isfinite(last)) fail_msg("loss %g at step %d", (double)last, t);
    }
    float output[B * L * 3];
    double metric_state[10] = {0}, *counts = metric_state + 5;
    assert_int_equal(cleat_exec_read_unchecked(l.exec, 0, l.built.output, output, NULL), CLEAT_OK);
    assert_int_equal(cleat_model_metric_update(model, &b.host, output, metric_state, NULL), CLEAT_OK);
    print_message("loss %.4g -> %.4g, rmsd %.3f, pair_mae %.3f\n", (double)first, (double)last,
                  metric_state[3] / counts[3], metric_state[0] / counts[0]);
    assert_true(last < 0.2f * first);
    assert_true(counts[3] == B && counts[2] == 0); /* chains of fewer than 20 residues have no lDDT */
    assert_true(metric_state[0] / counts[0] < mae_wanted);
    learner_close(&l);
}

static void frames_head_memorises(void **state) {
    assert_learns(*state, small_model(SET("loss.base_pair=0")), 0.5);
}

static void absolute_head_memorises(void **state) {
    assert_learns(*state, small_model(SET("model.head=absolute", "loss.base_pair=0")), 0.5);
}

static void absolute_head_memorises_coordinates(void **state) {
    assert_learns(
        *state,
        small_model(SET("model.head=absolute", "loss.coordinate=1", "model.positions=start", "loss.base_pair=0")), 0.5);
}

/* An empty slot, and a chain without known residues, have weight zero and no NaN gradient. */
static void empty_slots_are_harmless(void **state) {
    learner l;
    batch b;
    batch_make(&b);
    learner_open(&l, small_model(SET("model.dropout=0.1")), *state);
    b.lengths[1] = 0;
    for (int i = L; i < B * L; ++i) b.tokens[i] = CLEAT_RNA_PADDING, b.mask[i] = 0, b.partner[i] = -1;
    put_batch(&l, &b);
    for (int t = 0; t < 3; ++t) assert_true(isfinite(step(&l, t)));
    memset(b.mask, 0, sizeof b.mask);
    put_batch(&l, &b);
    for (int t = 3; t < 6; ++t) assert_true(isfinite(step(&l, t)));
    float *values = cleat_alloc((size_t)l.store->flat_elements, sizeof *values);
    assert_non_null(values);
    assert_int_equal(cleat_exec_read_unchecked(l.exec, 0, &l.store->flat[CLEAT_FLAT_PARAMETERS], values, NULL),
                     CLEAT_OK);
    for (int64_t i = 0; i < l.store->flat_elements; ++i) assert_true(isfinite(values[i]));
    cleat_free(values);
    learner_close(&l);
}

static int open_shared_device(void **state) {
    *state = open_device();
    return 0;
}

static int close_shared_device(void **state) {
    cleat_device_close(*state);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(production_model_has_4_million_parameters),
        cmocka_unit_test(terms_and_metrics_have_names),
        cmocka_unit_test(plans_of_profiles_are_sound),
        cmocka_unit_test(what_is_planned_is_allocated),
        cmocka_unit_test(loss_without_a_term_is_an_error),
        cmocka_unit_test(heads_that_do_not_divide_are_an_error),
        cmocka_unit_test(frames_head_memorises),
        cmocka_unit_test(absolute_head_memorises),
        cmocka_unit_test(absolute_head_memorises_coordinates),
        cmocka_unit_test(empty_slots_are_harmless),
    };
    return cmocka_run_group_tests(tests, open_shared_device, close_shared_device);
}
