/* Stores with parameter groups and frozen parameters: places in the flat buffers, gradients, and memory saved
 * by a plan. */
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
#include "graph/store.h"
#include "plan_check.h"

static const cleat_device_facts facts = {.alignment = 256, .max_allocation = (int64_t)1 << 40};

typedef struct names {
    const char *frozen; /* parameters whose names begin with this prefix */
    const char *slow;   /* trained at a quarter of the learning rate */
    const char *below;  /* parameters whose names sort before it are also frozen */
} names;

static void choose(void *user, const char *name, int rank, cleat_param_rule *rule) {
    const names *n = user;
    (void)rank;
    rule->frozen =
        (n->frozen && strncmp(name, n->frozen, strlen(n->frozen)) == 0) || (n->below && strcmp(name, n->below) < 0);
    if (n->slow && strncmp(name, n->slow, strlen(n->slow)) == 0) rule->rate = 0.25f;
}

static cleat_tensor *param(cleat_graph *graph, const char *name, int64_t elements) {
    return cleat_param(graph, name, 1, &elements, (cleat_init){0});
}

static void one_rule_moves_nothing(void **state) {
    (void)state;
    names none = {NULL, NULL, NULL};
    cleat_store *stores[2];
    cleat_graph *graphs[2];
    for (int i = 0; i < 2; ++i) {
        assert_int_equal(cleat_store_create(&stores[i], NULL), CLEAT_OK);
        if (i) cleat_store_set_rules(stores[i], choose, &none);
        assert_int_equal(cleat_graph_create(stores[i], "g", &graphs[i], NULL), CLEAT_OK);
        param(graphs[i], "a", 65);
        param(graphs[i], "b", 1);
        param(graphs[i], "c", 640);
        assert_int_equal(cleat_store_arrange(stores[i], NULL), CLEAT_OK);
    }
    for (size_t p = 0; p < 3; ++p) {
        assert_int_equal(cleat_store_param(stores[0], p)->flat_offset, cleat_store_param(stores[1], p)->flat_offset);
        assert_int_equal(cleat_store_grad(stores[0], p)->flat_offset, cleat_store_grad(stores[1], p)->flat_offset);
    }
    assert_int_equal(stores[0]->flat_elements, stores[1]->flat_elements);
    assert_int_equal(stores[0]->trained_elements, stores[1]->trained_elements);
    for (int i = 0; i < 2; ++i) {
        cleat_graph_destroy(graphs[i]);
        cleat_store_destroy(stores[i]);
    }
}

/* Trained groups, then frozen parameters: with a half weight, without one, and with only a half weight. */
static void parameters_lie_by_rule(void **state) {
    (void)state;
    names n = {"frozen", "slow", NULL};
    cleat_store *store;
    cleat_graph *graph;
    cleat_tensor *half[5];
    size_t groups;
    assert_int_equal(cleat_store_create(&store, NULL), CLEAT_OK);
    cleat_store_set_rules(store, choose, &n);
    assert_int_equal(cleat_graph_create(store, "g", &graph, NULL), CLEAT_OK);
    cleat_tensor *only_half = param(graph, "frozen.1", 100), *slow = param(graph, "slow.1", 64);
    cleat_tensor *fast = param(graph, "fast", 70), *both = param(graph, "frozen.2", 64);
    cleat_tensor *single = param(graph, "frozen.3", 10), *second = param(graph, "slow.2", 1);
    cleat_tensor *in_half[] = {only_half, slow, fast, both};
    for (int i = 0; i < 4; ++i)
        assert_int_equal(cleat_store_half_weight(store, in_half[i], CLEAT_BF16, &half[i], NULL), CLEAT_OK);
    both->read_in_f32 = single->read_in_f32 = true;
    assert_int_equal(cleat_store_arrange(store, NULL), CLEAT_OK);
    const cleat_param_group *group = cleat_store_groups(store, &groups);
    assert_int_equal(groups, 2);
    assert_true(group[0].rule.rate == 0.25f && group[0].first == 0 && group[0].elements == 128);
    assert_true(group[1].rule.rate == 1 && group[1].first == 128 && group[1].elements == 128);
    assert_int_equal(slow->flat_offset, 0);
    assert_int_equal(second->flat_offset, 64);
    assert_int_equal(fast->flat_offset, 128);
    assert_int_equal(both->flat_offset, 256);
    assert_int_equal(single->flat_offset, 320);
    assert_int_equal(only_half->flat_offset, 384); /* in host copies */
    assert_true(only_half->half_only && !both->half_only && !single->half_only);
    assert_int_equal(half[0]->flat_offset, 320);
    assert_int_equal(half[2]->flat_offset, 128);
    assert_int_equal(half[3]->flat_offset, 256);
    assert_int_equal(store->trained_elements, 256);
    assert_int_equal(store->shared_elements, 320);
    assert_int_equal(store->flat_elements, 512);
    assert_int_equal(store->flat[CLEAT_FLAT_PARAMETERS].shape[0], 384);
    assert_int_equal(store->flat[CLEAT_FLAT_HALF_WEIGHTS].shape[0], 448);
    assert_int_equal(store->flat[CLEAT_FLAT_MOMENTS2].shape[0], 256);
    for (size_t i = 0; i < cleat_store_count(store); ++i) {
        const bool frozen = cleat_store_param(store, i)->rule.frozen;
        assert_int_equal(cleat_store_grad(store, i) == NULL, frozen);
        assert_int_equal(store->moments2[i] == NULL, frozen);
    }
    /* nothing follows */
    assert_null(param(graph, "late", 5));
    assert_int_not_equal(cleat_graph_status(graph, NULL), CLEAT_OK);
    cleat_graph_destroy(graph);
    cleat_store_destroy(store);
}

/* Plans a transformer of four blocks whose parameters before `below` are frozen; returns the bytes of
 * activations and gradients. Block 0 contains the embeddings and the head. */
static int64_t plan_transformer(const char *below, bool arrange, cleat_status wanted, size_t *nodes) {
    const fake_transformer shape = {4, 256, 64, 256, 4, true};
    names n = {NULL, NULL, below};
    cleat_store *store;
    cleat_graph *graph;
    cleat_plan *plan = NULL;
    cleat_error error = {0};
    int64_t bytes = 0;
    assert_int_equal(cleat_store_create(&store, NULL), CLEAT_OK);
    if (below) cleat_store_set_rules(store, choose, &n);
    assert_int_equal(cleat_graph_create(store, "g", &graph, NULL), CLEAT_OK);
    fake_transformer_build(graph, &shape);
    cleat_status status = cleat_graph_status(graph, &error);
    if (!status && arrange) status = cleat_store_arrange(store, &error);
    if (!status) status = cleat_plan_create(&graph, 1, &facts, &plan, &error);
    if (status != wanted) fail_msg("%s", error.text);
    if (!status) {
        assert_int_equal(cleat_plan_check(plan, &error), CLEAT_OK);
        bytes =
            cleat_plan_category_bytes(plan, CLEAT_BYTES_ARENA) + cleat_plan_category_bytes(plan, CLEAT_BYTES_GRADIENTS);
    }
    *nodes = cleat_graph_nodes(graph);
    for (size_t i = 0; i < graph->node_count; ++i)
        for (int k = 0; k < graph->nodes[i]->n_out; ++k) {
            const cleat_tensor *out = graph->nodes[i]->out[k];
            if (out && out->role == CLEAT_ROLE_GRADIENT) assert_false(store->params[out->index]->rule.frozen);
        }
    cleat_plan_destroy(plan);
    cleat_graph_destroy(graph);
    cleat_store_destroy(store);
    return bytes;
}

static void frozen_parameters_need_no_gradient(void **state) {
    (void)state;
    size_t all, some, fewer;
    const int64_t full = plan_transformer(NULL, true, CLEAT_OK, &all);
    const int64_t less = plan_transformer("blocks.1", true, CLEAT_OK, &some);
    const int64_t least = plan_transformer("blocks.3", true, CLEAT_OK, &fewer);
    print_message("%lld, %lld, %lld bytes; %zu, %zu, %zu nodes\n", (long long)full, (long long)less, (long long)least,
                  all, some, fewer);
    assert_true(least < less && less < full);
    assert_true(fewer < some && some < all);
}

static void impossible_stores_are_refused(void **state) {
    (void)state;
    size_t nodes;
    plan_transformer("c", true, CLEAT_ERR_ARGUMENT, &nodes); /* the loss depends on no parameter */
    plan_transformer("blocks.1", false, CLEAT_ERR_ARGUMENT, &nodes);
}

static void memory_shortages_leave_no_leak(void **state) {
    (void)state;
    for (long n = 1; n < 40; ++n) {
        names rules = {"b", "c", NULL};
        cleat_store *store;
        cleat_graph *graph;
        assert_int_equal(cleat_store_create(&store, NULL), CLEAT_OK);
        cleat_store_set_rules(store, choose, &rules);
        assert_int_equal(cleat_graph_create(store, "g", &graph, NULL), CLEAT_OK);
        cleat_fail_allocation(n);
        param(graph, "a", 65);
        param(graph, "b", 65);
        param(graph, "c", 65);
        cleat_tensor *view = NULL;
        if (!cleat_graph_status(graph, NULL) && !cleat_store_arrange(store, NULL))
            cleat_store_view(store, CLEAT_FLAT_GRADIENTS, 0, 128, &view, NULL);
        cleat_fail_allocation(0);
        assert_true(!view || cleat_store_owns(store, view));
        cleat_graph_destroy(graph);
        cleat_store_destroy(store);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_rule_moves_nothing),
        cmocka_unit_test(parameters_lie_by_rule),
        cmocka_unit_test(frozen_parameters_need_no_gradient),
        cmocka_unit_test(impossible_stores_are_refused),
        cmocka_unit_test(memory_shortages_leave_no_leak),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
