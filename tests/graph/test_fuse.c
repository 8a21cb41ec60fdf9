/* Fusion of nodes: when a producer may be fused with its consumer, and the resulting graph. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "graph/plan.h"
#include "graph/recompute.h"
#include "plan_check.h"

enum { E = 64 }; /* elements of every tensor */

typedef struct world {
    cleat_store *store;
    cleat_graph *graph;
    cleat_tensor *x;
} world;

static world world_create(void) {
    world w = {NULL, NULL, NULL};
    assert_int_equal(cleat_store_create(&w.store, NULL), CLEAT_OK);
    assert_int_equal(cleat_graph_create(w.store, "g", &w.graph, NULL), CLEAT_OK);
    w.x = cleat_input(w.graph, "x", CLEAT_F32, 1, (int64_t[]){E});
    return w;
}

static void world_destroy(world *w) {
    cleat_graph_destroy(w->graph);
    cleat_store_destroy(w->store);
}

/* --- operations that compute nothing: `product` fuses `shape`, which can read another input --- */

static cleat_status infer(cleat_node *node, cleat_error *error) {
    return cleat_set_output(node, 0, CLEAT_F32, 1, (int64_t[]){E}, error);
}

static void bind(const cleat_node *node, cleat_binder *binder) {
    (void)node, (void)binder;
}

static const cleat_variant variants[] = {{.name = "none", .bind = bind}, {0}};
static const cleat_op both = {.name = "both", .infer = infer, .variants = variants};
static const cleat_op shape = {.name = "shape", .infer = infer, .variants = variants};
static const cleat_op other = {.name = "other", .infer = infer, .variants = variants};

static bool fuse(cleat_node *node, const cleat_node *consumer, bool sole_consumer) {
    cleat_tensor *result = node->out[0];
    if (consumer->op != &shape) return false;
    node->op = &both;
    if (!sole_consumer) node->out[node->n_out++] = result;
    node->out[0] = consumer->out[0];
    for (int i = 0; i < consumer->n_in; ++i)
        if (consumer->in[i] != result) node->in[node->n_in++] = consumer->in[i];
    return true;
}

/* `taker` absorbs the work of `other` in graphs for wide vectors. */
static const cleat_op taken = {.name = "taken", .infer = infer, .variants = variants};
static bool fuse_if_wide(cleat_node *node, const cleat_node *producer, bool wide) {
    if (!wide || producer->op != &other) return false;
    node->op = &taken;
    node->in[0] = producer->in[0];
    return true;
}
static const cleat_op taker = {
    .name = "taker", .infer = infer, .variants = variants, .fusion = &(const cleat_fusion){.producer = fuse_if_wide}};

static const cleat_op product = {
    .name = "product", .infer = infer, .variants = variants, .fusion = &(const cleat_fusion){.consumer = fuse}};

/* `reader` reads the first input of `other`. */
static bool fuse_producer(cleat_node *node, const cleat_node *producer, bool wide) {
    (void)wide;
    if (producer->op != &other || node->in[0] != producer->out[0]) return false;
    node->op = &both;
    node->in[0] = producer->in[0];
    return true;
}
static const cleat_op reader = {
    .name = "reader", .infer = infer, .variants = variants, .fusion = &(const cleat_fusion){.producer = fuse_producer}};

static cleat_tensor *emit(world *w, const cleat_op *op, cleat_tensor *a, cleat_tensor *b) {
    cleat_node *node = cleat_emit(w->graph, op, NULL, 0, (cleat_tensor *[]){a, b}, b ? 2 : 1);
    assert_non_null(node);
    return node->out[0];
}

static int count(const world *w, const cleat_op *op) {
    int found = 0;
    for (size_t i = 0; i < w->graph->node_count; ++i) {
        assert_int_equal(w->graph->nodes[i]->index, i);
        found += w->graph->nodes[i]->op == op;
    }
    return found;
}

static void expect_sound_plan(const world *w) {
    cleat_device_facts facts = {.alignment = 256, .max_allocation = 1 << 20};
    cleat_plan *plan = NULL;
    cleat_error error = {0};
    if (cleat_plan_create(&w->graph, 1, &facts, &plan, &error) != CLEAT_OK) fail_msg("%s", error.text);
    if (cleat_plan_check(plan, &error) != CLEAT_OK) fail_msg("%s", error.text);
    cleat_plan_destroy(plan);
}

/* --- conditions --- */

static void sole_consumer_leaves_nothing_behind(void **state) {
    (void)state;
    world w = world_create();
    cleat_tensor *u = emit(&w, &product, w.x, NULL), *y = emit(&w, &shape, u, NULL);
    cleat_retain(w.graph, emit(&w, &other, y, NULL));
    cleat_graph_fuse(w.graph);
    assert_int_equal(w.graph->node_count, 2);
    assert_int_equal(count(&w, &both), 1);
    assert_ptr_equal(y->producer, w.graph->nodes[0]);
    assert_null(u->producer);
    expect_sound_plan(&w);
    cleat_graph_fuse(w.graph);
    assert_int_equal(w.graph->node_count, 2);
    world_destroy(&w);
}

static void kept_or_read_results_stay(void **state) {
    (void)state;
    for (int keep = 0; keep < 2; ++keep) {
        world w = world_create();
        cleat_tensor *u = emit(&w, &product, w.x, NULL), *y = emit(&w, &shape, u, NULL);
        cleat_retain(w.graph, y);
        if (keep)
            cleat_retain(w.graph, u);
        else
            cleat_retain(w.graph, emit(&w, &other, u, NULL));
        cleat_graph_fuse(w.graph);
        assert_int_equal(count(&w, &both), 1);
        assert_int_equal(count(&w, &shape), 0);
        assert_int_equal(w.graph->nodes[0]->n_out, 2);
        assert_ptr_equal(u->producer, w.graph->nodes[0]);
        expect_sound_plan(&w);
        world_destroy(&w);
    }
}

/* A producer is fused in a graph for wide vectors only, and only if no other node reads its result. */
static void some_producers_are_fused_for_wide_vectors_only(void **state) {
    (void)state;
    enum { ALLOWED, NOT_WIDE, RETAINED, READ_TWICE, ANOTHER_OP, CASES };
    for (int i = 0; i < CASES; ++i) {
        world w = world_create();
        cleat_tensor *u = emit(&w, i == ANOTHER_OP ? &shape : &other, w.x, NULL), *y = emit(&w, &taker, u, NULL);
        cleat_retain(w.graph, y);
        if (i == RETAINED) cleat_retain(w.graph, u);
        if (i == READ_TWICE) cleat_retain(w.graph, emit(&w, &shape, u, NULL));
        cleat_graph_set_wide(w.graph, i != NOT_WIDE);
        cleat_graph_fuse(w.graph);
        assert_int_equal(count(&w, &taken), i == ALLOWED);
        if (i == ALLOWED) {
            assert_int_equal(w.graph->node_count, 1);
            assert_ptr_equal(w.graph->nodes[0]->in[0], w.x);
            assert_null(u->producer);
        }
        expect_sound_plan(&w);
        world_destroy(&w);
    }
}

/* The other inputs of the consumer must be available when the producer runs. */
static void late_inputs_forbid_it(void **state) {
    (void)state;
    for (int late = 0; late < 2; ++late) {
        world w = world_create();
        cleat_tensor *early = emit(&w, &other, w.x, NULL), *u = emit(&w, &product, w.x, NULL),
                     *after = emit(&w, &other, w.x, NULL), *y = emit(&w, &shape, u, late ? after : early);
        cleat_retain(w.graph, emit(&w, &other, y, after));
        cleat_graph_fuse(w.graph);
        assert_int_equal(count(&w, &both), late ? 0 : 1);
        assert_int_equal(count(&w, &shape), late ? 1 : 0);
        expect_sound_plan(&w);
        world_destroy(&w);
    }
}

static void other_consumers_come_first(void **state) {
    (void)state;
    world w = world_create();
    cleat_tensor *u = emit(&w, &product, w.x, NULL), *z = emit(&w, &other, u, NULL);
    cleat_retain(w.graph, emit(&w, &shape, u, NULL));
    cleat_retain(w.graph, z);
    cleat_graph_fuse(w.graph);
    assert_int_equal(count(&w, &both), 0);
    expect_sound_plan(&w);
    world_destroy(&w);
}

static void reading_twice_is_not_fused(void **state) {
    (void)state;
    world w = world_create();
    cleat_tensor *u = emit(&w, &product, w.x, NULL);
    cleat_retain(w.graph, emit(&w, &shape, u, u));
    cleat_graph_fuse(w.graph);
    assert_int_equal(count(&w, &both), 0);
    world_destroy(&w);
}

static void producers_are_fused(void **state) {
    (void)state;
    for (int keep = 0; keep < 4; ++keep) {
        world w = world_create();
        cleat_tensor *first = emit(&w, &shape, w.x, NULL), *u = emit(&w, &other, first, NULL);
        cleat_tensor *y = emit(&w, &reader, u, keep == 1 ? u : NULL);
        cleat_retain(w.graph, y);
        if (keep == 2) cleat_retain(w.graph, u);
        if (keep == 3) cleat_retain(w.graph, emit(&w, &shape, u, NULL));
        const size_t nodes = w.graph->node_count;
        cleat_graph_fuse(w.graph);
        assert_int_equal(count(&w, &both), keep ? 0 : 1);
        assert_int_equal(w.graph->node_count, keep ? nodes : nodes - 1);
        assert_ptr_equal(y->producer->in[0], keep ? u : first);
        if (!keep) assert_null(u->producer);
        expect_sound_plan(&w);
        world_destroy(&w);
    }
}

/* A fused producer may have been the first consumer of a tensor. */
static void fusion_goes_on_after_a_producer(void **state) {
    (void)state;
    world w = world_create();
    cleat_tensor *u = emit(&w, &product, w.x, NULL), *y = emit(&w, &reader, emit(&w, &other, u, NULL), NULL);
    cleat_tensor *z = emit(&w, &shape, y, NULL);
    cleat_retain(w.graph, z);
    cleat_graph_fuse(w.graph);
    assert_int_equal(w.graph->node_count, 3);
    assert_int_equal(count(&w, &both), 1);
    expect_sound_plan(&w);
    world_destroy(&w);
}

/* States, unlike activations, change. */
static void states_forbid_it(void **state) {
    (void)state;
    world w = world_create();
    cleat_tensor *s = cleat_state(w.graph, "s", CLEAT_F32, 1, (int64_t[]){E});
    cleat_retain(w.graph, emit(&w, &reader, emit(&w, &other, s, NULL), NULL));
    cleat_graph_fuse(w.graph);
    assert_int_equal(count(&w, &both), 0);
    world_destroy(&w);
}

/* --- the resulting graph --- */

static void marks_and_parts_move_along(void **state) {
    (void)state;
    world w = world_create();
    cleat_segment(w.graph);
    cleat_tensor *y = emit(&w, &shape, emit(&w, &product, w.x, NULL), NULL);
    cleat_segment(w.graph);
    y = emit(&w, &shape, emit(&w, &product, y, NULL), NULL);
    cleat_segment(w.graph);
    cleat_retain(w.graph, y);
    cleat_backward_from(w.graph, &y, &w.x, 1);
    assert_int_equal(w.graph->forward_nodes, 4);
    cleat_graph_fuse(w.graph);
    assert_int_equal(w.graph->node_count, 2);
    assert_int_equal(w.graph->forward_nodes, 2);
    for (size_t i = 0; i < 3; ++i) assert_int_equal(w.graph->marks[i], i);
    assert_int_equal(cleat_graph_segments(w.graph), 2);
    world_destroy(&w);
}

static void comes_last(void **state) {
    (void)state;
    world w = world_create();
    cleat_error error = {0};
    cleat_tensor *y = emit(&w, &shape, emit(&w, &product, w.x, NULL), NULL);
    cleat_retain(w.graph, y);
    cleat_graph_fuse(w.graph);
    cleat_backward_from(w.graph, &y, &w.x, 1);
    assert_int_equal(cleat_graph_status(w.graph, &error), CLEAT_ERR_ARGUMENT);
    assert_non_null(strstr(error.text, "cleat_graph_fuse"));
    world_destroy(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sole_consumer_leaves_nothing_behind),
        cmocka_unit_test(kept_or_read_results_stay),
        cmocka_unit_test(some_producers_are_fused_for_wide_vectors_only),
        cmocka_unit_test(late_inputs_forbid_it),
        cmocka_unit_test(other_consumers_come_first),
        cmocka_unit_test(reading_twice_is_not_fused),
        cmocka_unit_test(producers_are_fused),
        cmocka_unit_test(fusion_goes_on_after_a_producer),
        cmocka_unit_test(states_forbid_it),
        cmocka_unit_test(marks_and_parts_move_along),
        cmocka_unit_test(comes_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
