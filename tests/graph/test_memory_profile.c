/* Memory profiles of planned graphs: values counted by hand for small graphs, and invariants for any
 * graph. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/memory.h"
#include "fake_ops.h"
#include "graph/memory_profile.h"
#include "graph/recompute.h"

static const cleat_device_facts facts = {.name = "Fake 9000", .alignment = 256, .max_allocation = (int64_t)1 << 40};

typedef struct world {
    cleat_store *store;
    cleat_graph *graph;
    cleat_plan *plan;
} world;

static world world_create(void) {
    world w = {0};
    assert_int_equal(cleat_store_create(&w.store, NULL), CLEAT_OK);
    assert_int_equal(cleat_graph_create(w.store, "g", &w.graph, NULL), CLEAT_OK);
    return w;
}

static void world_plan(world *w) {
    cleat_error error;
    if (cleat_plan_create(&w->graph, 1, &facts, &w->plan, &error)) fail_msg("%s", error.text);
}

static void world_destroy(world *w) {
    cleat_plan_destroy(w->plan);
    cleat_graph_destroy(w->graph);
    cleat_store_destroy(w->store);
}

/* The live bytes while each node runs. */
static cleat_status find_live(const cleat_plan *plan, size_t graph, int64_t *live, cleat_error *error) {
    int64_t parts[1000][CLEAT_PEAK_PARTS_COUNT];
    cleat_status status = cleat_graph_live_parts(plan, graph, parts, error);
    for (size_t t = 0; !status && t < plan->layouts[graph].graph->node_count; ++t) {
        live[t] = 0;
        for (int i = 0; i < CLEAT_PEAK_PARTS_COUNT; ++i) live[t] += parts[t][i];
    }
    return status;
}

static cleat_memory_profile profile_of(const world *w) {
    cleat_memory_profile memory;
    cleat_error error;
    if (cleat_memory_profile_find(w->plan, 0, &memory, &error)) fail_msg("%s", error.text);
    return memory;
}

/* Checks the invariants of every plan of one graph. */
static cleat_memory_profile check(const world *w) {
    cleat_memory_profile f = profile_of(w);
    size_t nodes = w->graph->node_count;
    int64_t live[1000], sum = 0, most = 0;
    assert_true(nodes <= 1000);
    assert_int_equal(find_live(w->plan, 0, live, NULL), CLEAT_OK);
    for (size_t i = 0; i < nodes; ++i) most = live[i] > most ? live[i] : most;
    for (int i = 0; i < CLEAT_PEAK_PARTS_COUNT; ++i) {
        assert_true(f.parts[i] >= 0);
        sum += f.parts[i];
    }
    assert_int_equal(sum, f.training_peak);
    assert_int_equal(most, f.training_peak);
    assert_int_equal(f.training_peak, cleat_plan_lower_bound(w->plan));
    assert_string_equal(f.training_peak_node->name, cleat_plan_peak_node(w->plan));
    assert_int_equal(live[f.training_peak_node->index], f.training_peak);
    assert_int_equal(live[f.forward_peak_node->index], f.forward_peak);
    assert_true(f.forward_peak <= f.training_peak);
    if (!w->graph->gradients) assert_int_equal(f.forward_peak, f.training_peak);
    return f;
}

static void expect_parts(const cleat_memory_profile *f, int64_t stored, int64_t recomputed, int64_t gradients,
                         int64_t workspace) {
    const int64_t expected[] = {stored, recomputed, gradients, workspace};
    for (int i = 0; i < CLEAT_PEAK_PARTS_COUNT; ++i) assert_int_equal(f->parts[i], expected[i]);
}

/* --- counted by hand: a tensor [1, 64] has 256 bytes ------------------------------------------------------------ */

static cleat_tensor *input(cleat_graph *graph, const char *name) {
    return cleat_input(graph, name, CLEAT_F32, 2, (int64_t[]){1, 64});
}

/* A link of a chain: y = f(x), dx = g(dy, x). Its attribute is the workspace size of g. */
static cleat_status infer_link(cleat_node *node, cleat_error *error) {
    return cleat_set_output(node, 0, CLEAT_F32, 2, node->in[0]->shape, error);
}

static int64_t workspace(const cleat_node *node, const cleat_device_facts *unused) {
    (void)unused;
    return *(const int64_t *)(const void *)node->attr;
}

static const cleat_variant forward_variants[] = {{.name = "plain"}, {0}};
static const cleat_variant backward_variants[] = {{.name = "plain", .workspace = workspace}, {0}};
static const cleat_op link_grad = {.name = "link_grad", .variants = backward_variants};
static const cleat_op link_grad_in_place = {
    .name = "link_grad", .variants = backward_variants, .inplace_inputs = CLEAT_IN(1)};

static void link_backward_by(cleat_graph *graph, const cleat_op *op, cleat_node *node, cleat_tensor *dy) {
    cleat_tensor *in[] = {dy, node->in[0]};
    cleat_emit_grads(graph, &(cleat_grads_spec){.op = op,
                                                .attr = node->attr,
                                                .attr_bytes = sizeof(int64_t),
                                                .in = in,
                                                .n_in = 2,
                                                .targets = node->in,
                                                .n_targets = 1});
}
static void link_backward(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    link_backward_by(graph, &link_grad, node, dout[0]);
}
static void link_backward_in_place(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    link_backward_by(graph, &link_grad_in_place, node, dout[0]);
}

static const cleat_op chain_link = {
    .name = "link", .infer = infer_link, .backward = link_backward, .variants = forward_variants};
static const cleat_op link_in_place = {
    .name = "link", .infer = infer_link, .backward = link_backward_in_place, .variants = forward_variants};

/* x -> y1 -> ... -> yn and back; workspaces [n] in bytes; a segment begins before every `segment`-th link. */
static world chain(const cleat_op *op, const int64_t *workspaces, int n, int segment, int recompute) {
    world w = world_create();
    cleat_tensor *x = input(w.graph, "x"), *dy = input(w.graph, "dy");
    cleat_graph_set_recompute(w.graph, recompute);
    cleat_require_grad(w.graph, x);
    for (int i = 0; i < n; ++i) {
        if (segment && i % segment == 0) cleat_segment(w.graph);
        x = cleat_emit(w.graph, op, &workspaces[i], sizeof *workspaces, &x, 1)->out[0];
    }
    if (segment) cleat_segment(w.graph);
    cleat_backward_from(w.graph, &x, &dy, 1);
    world_plan(&w);
    return w;
}

static void test_forward_only(void **state) {
    (void)state;
    world w = world_create();
    cleat_tensor *in = input(w.graph, "x"), *a = fake_unary(w.graph, &fake_op, in);
    cleat_scope(w.graph, "wide.");
    cleat_node *wide = fake_emit(w.graph, &fake_op, &a, 1, 2, 3, 64, 100);
    cleat_scope(w.graph, "last.");
    fake_unary(w.graph, &fake_op, wide->out[0]);
    world_plan(&w);
    cleat_memory_profile f = check(&w);
    assert_int_equal(f.training_peak, (1 + 3 + 3 + 1) * 256);
    assert_string_equal(f.training_peak_node->name, "wide.fake");
    expect_parts(&f, 7 * 256, 0, 0, 256);
    int64_t live[3];
    assert_int_equal(find_live(w.plan, 0, live, NULL), CLEAT_OK);
    assert_int_equal(live[0], 256);
    assert_int_equal(live[1], 2048);
    assert_int_equal(live[2], 6 * 256);
    world_destroy(&w);
}

/* Nodes 0, 1, 2 write y1, y2, y3; nodes 3, 4, 5 dy2, dy1, dx. */
static void test_backward(void **state) {
    (void)state;
    world w = chain(&chain_link, (int64_t[]){0, 0, 1000}, 3, 0, 0);
    cleat_memory_profile f = check(&w);
    assert_int_equal(f.forward_peak, 3 * 256);
    assert_int_equal(f.forward_peak_node->index, 2);
    assert_int_equal(f.training_peak_node->index, 3);
    expect_parts(&f, 2 * 256, 0, 256, 1024); /* y1, y2; dy2 */
    world_destroy(&w);

    w = chain(&link_in_place, (int64_t[]){0, 0, 1000}, 3, 0, 0);
    f = check(&w);
    assert_int_equal(f.training_peak_node->index, 3);
    expect_parts(&f, 256, 0, 256, 1024); /* dy2 in the memory of y2 */
    world_destroy(&w);
}

/* Segments of two links; the last one is not recomputed. Node 8 recomputes y3 for node 9, which writes
 * dy3. */
static void test_recomputed(void **state) {
    static const int64_t workspaces[] = {0, 0, 0, 1000, 0, 0};
    (void)state;
    world w = chain(&chain_link, workspaces, 6, 2, 1);
    cleat_memory_profile f = check(&w);
    assert_int_equal(f.training_peak_node->index, 9);
    expect_parts(&f, 256, 256, 2 * 256, 1024); /* y2; y3; dy4, dy3 */
    assert_int_equal(f.forward_peak, 4 * 256); /* y2, y4, y5, y6 */
    world_destroy(&w);

    w = chain(&chain_link, workspaces, 6, 2, 0);
    f = check(&w);
    assert_int_equal(f.parts[CLEAT_PEAK_RECOMPUTED], 0);
    assert_int_equal(f.forward_peak, 6 * 256);
    world_destroy(&w);
}

/* --- any graph -------------------------------------------------------------------------------------------------- */

static void test_random_graphs(void **state) {
    cleat_random random = cleat_random_stream(21, 0, 0);
    (void)state;
    for (int round = 0; round < 60; ++round) {
        world w = world_create();
        fake_random_build(w.graph, &random, 5 + (int)cleat_random_below(&random, 150));
        world_plan(&w);
        cleat_memory_profile f = check(&w);
        assert_int_equal(f.parts[CLEAT_PEAK_RECOMPUTED] + f.parts[CLEAT_PEAK_GRADIENTS], 0);
        world_destroy(&w);
    }
}

static void test_transformers(void **state) {
    (void)state;
    for (int layers = 2; layers <= 12; layers += 5)
        for (int recompute = 0; recompute <= 3; ++recompute) {
            world w = world_create();
            cleat_graph_set_recompute(w.graph, recompute);
            assert_non_null(
                fake_transformer_build(w.graph, &(fake_transformer){layers, 1024, 128, 512, 8, .train = true}));
            world_plan(&w);
            cleat_memory_profile f = check(&w);
            assert_true(f.parts[CLEAT_PEAK_STORED] > 0 && f.parts[CLEAT_PEAK_GRADIENTS] > 0);
            if (recompute == 0) assert_int_equal(f.parts[CLEAT_PEAK_RECOMPUTED], 0);
            world_destroy(&w);
        }
}

/* --- faults ----------------------------------------------------------------------------------------------------- */

static void test_wrong_graph(void **state) {
    cleat_memory_profile memory;
    cleat_error error;
    int64_t live[4];
    (void)state;
    world w = chain(&chain_link, (int64_t[]){0, 0}, 2, 0, 0);
    assert_int_equal(cleat_memory_profile_find(w.plan, 1, &memory, &error), CLEAT_ERR_ARGUMENT);
    assert_int_equal(find_live(w.plan, 7, live, &error), CLEAT_ERR_ARGUMENT);
    world_destroy(&w);
}

static void test_empty_graph(void **state) {
    (void)state;
    world w = world_create();
    world_plan(&w);
    cleat_memory_profile f = profile_of(&w);
    assert_int_equal(f.forward_peak + f.training_peak, 0);
    assert_null(f.training_peak_node);
    assert_null(f.forward_peak_node);
    world_destroy(&w);
}

static void test_failed_allocations(void **state) {
    cleat_memory_profile memory;
    int64_t live[6];
    (void)state;
    world w = chain(&chain_link, (int64_t[]){0, 0, 1000}, 3, 0, 0);
    cleat_status status = CLEAT_ERR_MEMORY;
    long n = 1;
    for (; status; ++n) {
        cleat_fail_allocation(n);
        status = cleat_memory_profile_find(w.plan, 0, &memory, NULL);
        if (!status) status = find_live(w.plan, 0, live, NULL);
        cleat_fail_allocation(0);
        assert_true(!status || status == CLEAT_ERR_MEMORY);
    }
    assert_true(n > 8);
    world_destroy(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forward_only), cmocka_unit_test(test_backward),
        cmocka_unit_test(test_recomputed),   cmocka_unit_test(test_random_graphs),
        cmocka_unit_test(test_transformers), cmocka_unit_test(test_wrong_graph),
        cmocka_unit_test(test_empty_graph),  cmocka_unit_test(test_failed_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
