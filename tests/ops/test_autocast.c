/* Autocast: which inputs are cast, the half-precision copies of parameters, and their appearance in the
 * memory plan. No device is used. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "graph/extract_node.h"
#include "graph/graph.h"
#include "graph/tuning.h"
#include "ops/update.h"
#include "plan_check.h"

enum { ROWS = 6, WIDTH = 24, OUT = 40, CLASSES = 5 };
static const cleat_init zero = {CLEAT_INIT_ZERO, 0};

typedef struct world {
    cleat_store *store;
    cleat_graph *graph;
} world;

static world begin(void) {
    world w;
    assert_int_equal(cleat_store_create(&w.store, NULL), CLEAT_OK);
    assert_int_equal(cleat_graph_create(w.store, "mixed", &w.graph, NULL), CLEAT_OK);
    return w;
}

static void end(world *w) {
    cleat_graph_destroy(w->graph);
    cleat_store_destroy(w->store);
}

static cleat_tensor *input(world *w, const char *name, int64_t width) {
    return cleat_input(w->graph, name, CLEAT_F32, 2, (int64_t[]){ROWS, width});
}

static cleat_tensor *weight(world *w, const char *name, int64_t fan_out, int64_t fan_in) {
    return cleat_param(w->graph, name, 2, (int64_t[]){fan_out, fan_in}, zero);
}

static size_t count(const world *w, const char *op) {
    size_t found = 0;
    for (size_t i = 0; i < w->graph->node_count; ++i) found += strcmp(w->graph->nodes[i]->op->name, op) == 0;
    return found;
}

static void must_be_well(const world *w) {
    cleat_error error;
    if (cleat_graph_status(w->graph, &error) != CLEAT_OK) fail_msg("%s", error.text);
}

/* x -> two linear layers that share it, layer norm, a head in f32, cross entropy */
static cleat_tensor *build(world *w, cleat_dtype storage) {
    const int64_t rows = ROWS, out = OUT, one = 1;
    cleat_autocast(w->graph, storage);
    cleat_tensor *x = input(w, "x", WIDTH);
    cleat_tensor *bias = cleat_param(w->graph, "bias", 1, &out, zero);
    cleat_tensor *gamma = cleat_param(w->graph, "gamma", 1, &out, zero);
    cleat_tensor *beta = cleat_param(w->graph, "beta", 1, &out, zero);
    cleat_tensor *y = cleat_linear(w->graph, x, weight(w, "a", OUT, WIDTH), bias, NULL);
    y = cleat_linear(w->graph, x, weight(w, "b", OUT, WIDTH), NULL, y);
    y = cleat_layer_norm(w->graph, y, gamma, beta, 1e-5f);
    assert_int_equal(cleat_tensor_dtype(y), storage == CLEAT_TF32 ? CLEAT_F32 : storage);
    cleat_autocast(w->graph, CLEAT_F32);
    cleat_tensor *logits = cleat_linear(w->graph, y, weight(w, "head", CLASSES, OUT), NULL, NULL);
    assert_int_equal(cleat_tensor_dtype(logits), CLEAT_F32);
    cleat_tensor *label = cleat_input(w->graph, "label", CLEAT_I32, 1, &rows);
    cleat_tensor *sample_weight = cleat_input(w->graph, "scale", CLEAT_F32, 1, &rows);
    cleat_tensor *loss = cleat_cross_entropy(w->graph, logits, label, sample_weight, 0);
    cleat_backward(w->graph, loss, cleat_input(w->graph, "seed", CLEAT_F32, 1, &one));
    return loss;
}

static void each_input_is_cast_once(void **state) {
    static const cleat_dtype halves[] = {CLEAT_F16, CLEAT_BF16};
    (void)state;
    for (int i = 0; i < 2; ++i) {
        world w = begin();
        build(&w, halves[i]);
        must_be_well(&w);
        assert_int_equal(count(&w, "cast"), 2); /* x for both layers, and the head's input */
        assert_int_equal(count(&w, "cast_grad"), 1);
        end(&w);
    }
}

static void single_precision_casts_nothing(void **state) {
    (void)state;
    world w = begin();
    build(&w, CLEAT_F32);
    must_be_well(&w);
    assert_int_equal(count(&w, "cast"), 0);
    assert_int_equal(w.store->flat[CLEAT_FLAT_HALF_WEIGHTS].shape[0], 0);
    end(&w);
}

static void parameters_are_read_as_half_weights(void **state) {
    (void)state;
    world w = begin();
    build(&w, CLEAT_BF16);
    must_be_well(&w);
    for (size_t i = 0; i < w.store->count; ++i) {
        const cleat_tensor *param = w.store->params[i], *copy = w.store->half_weights[i];
        const bool multiplied = strcmp(param->name, "a") == 0 || strcmp(param->name, "b") == 0;
        assert_int_equal(copy != NULL, multiplied);
        if (!copy) continue;
        assert_int_equal(copy->dtype, CLEAT_BF16);
        assert_int_equal(copy->role, CLEAT_ROLE_HALF_WEIGHT);
        assert_int_equal(copy->flat_offset, param->flat_offset);
        assert_ptr_equal(cleat_gradient(w.graph, copy), w.store->grads[i]);
    }
    for (size_t i = 0; i < w.graph->node_count; ++i) {
        const cleat_node *node = w.graph->nodes[i];
        if (strcmp(node->op->name, "linear_dw") != 0) continue;
        assert_int_equal(node->out[0]->dtype, CLEAT_F32);
        assert_int_equal(node->out[0]->role, CLEAT_ROLE_GRADIENT);
    }
    end(&w);
}

static void the_plan_has_the_half_weights(void **state) {
    const cleat_device_facts facts = {
        .alignment = 256, .max_allocation = 1 << 30, .work_group = 1, .vector_width = 16, .compute_units = 2};
    cleat_plan *plan;
    cleat_error error;
    int64_t arena[2];
    (void)state;
    for (int half = 0; half < 2; ++half) {
        world w = begin();
        cleat_tensor *loss = build(&w, half ? CLEAT_F16 : CLEAT_F32);
        assert_non_null(loss);
        must_be_well(&w);
        if (cleat_plan_create(&w.graph, 1, &facts, &plan, &error) != CLEAT_OK) fail_msg("%s", error.text);
        if (cleat_plan_check(plan, &error) != CLEAT_OK) fail_msg("%s", error.text);
        assert_int_equal(cleat_plan_category_bytes(plan, CLEAT_BYTES_HALF_WEIGHTS),
                         half ? 2 * w.store->flat_elements : 0);
        arena[half] = cleat_plan_category_bytes(plan, CLEAT_BYTES_ARENA);
        cleat_plan_destroy(plan);
        end(&w);
    }
    assert_true(arena[1] < arena[0]);
}

static void half_weights_have_one_type(void **state) {
    cleat_graph *other;
    cleat_error error;
    (void)state;
    world w = begin();
    build(&w, CLEAT_F16);
    assert_int_equal(cleat_graph_create(w.store, "other", &other, NULL), CLEAT_OK);
    cleat_autocast(other, CLEAT_BF16);
    cleat_tensor *x = cleat_input(other, "x", CLEAT_F32, 2, (int64_t[]){ROWS, WIDTH});
    assert_null(cleat_linear(other, x, cleat_param(other, "a", 2, (int64_t[]){OUT, WIDTH}, zero), NULL, NULL));
    assert_int_not_equal(cleat_graph_status(other, &error), CLEAT_OK);
    assert_non_null(strstr(error.text, "'a' in bf16"));
    cleat_graph_destroy(other);
    end(&w);
}

static void only_storage_types_are_possible(void **state) {
    cleat_error error;
    (void)state;
    world w = begin();
    cleat_autocast(w.graph, CLEAT_I32);
    assert_int_equal(cleat_graph_status(w.graph, &error), CLEAT_ERR_ARGUMENT);
    end(&w);
}

/* Linear layers before the head, their repetitions and gradients multiply in TF32 on a unit that supports it;
 * the head is in f32. No tensor changes its type. */
static void tf32_is_of_products(void **state) {
    const cleat_device_facts card = {.work_group = 256, .vector_width = 4, .local_memory = 49152, .compute_units = 4};
    int marked = 0;
    (void)state;
    world w = begin();
    build(&w, CLEAT_TF32);
    must_be_well(&w);
    assert_int_equal(cleat_autocast_storage(w.graph), CLEAT_F32);
    assert_int_equal(count(&w, "cast"), 0);
    assert_false(cleat_has_half_weights(w.store));
    for (size_t i = 0; i < w.graph->node_count; ++i) {
        const cleat_node *node = w.graph->nodes[i];
        cleat_device_facts t4 = card, a100 = card;
        t4.matrix_unit = CLEAT_MATRIX_NV75;
        a100.matrix_unit = CLEAT_MATRIX_NV80;
        char key[CLEAT_TUNING_KEY];
        const bool product = strncmp(node->op->name, "linear", 6) == 0,
                   head = product && cleat_width(node->in[1]) == OUT;
        assert_int_equal(node->tf32, product && !head);
        cleat_tuning_key(node, key);
        assert_int_equal(strstr(key, " tf32 ") != NULL, node->tf32);
        if (product) {
            assert_int_equal(strcmp(cleat_choose_first(NULL, node, &a100)->name, "mma") == 0, node->tf32);
            assert_string_equal(cleat_choose_first(NULL, node, &t4)->name, "gpu");
        }
        marked += node->tf32;
    }
    assert_int_equal(marked, 4); /* two layers and the gradients of their weights */
    cleat_graph *apart;
    assert_int_equal(cleat_graph_create(w.store, "apart", &apart, NULL), CLEAT_OK);
    assert_true(cleat_extract_node(apart, w.graph->nodes[0])->tf32);
    assert_true(cleat_emit_recomputed(w.graph, w.graph->nodes[0])->tf32);
    cleat_graph_destroy(apart);
    end(&w);
}

/* Without autocast the op tests themselves set the required type of each tensor. */
static void without_autocast_nothing_is_cast(void **state) {
    (void)state;
    world w = begin();
    cleat_tensor *x = cleat_input(w.graph, "x", CLEAT_F16, 2, (int64_t[]){ROWS, WIDTH});
    assert_int_equal(cleat_tensor_dtype(cleat_gelu(w.graph, x)), CLEAT_F16);
    assert_int_equal(cleat_autocast_storage(w.graph), CLEAT_F32);
    assert_int_equal(count(&w, "cast"), 0);
    end(&w);
}

/* A parameter that is not a weight has no half-precision copy: its gradient passes back through the cast. */
static void parameters_elsewhere_are_cast(void **state) {
    const int64_t out = OUT, one = 1, rows = ROWS;
    (void)state;
    world w = begin();
    cleat_autocast(w.graph, CLEAT_F16);
    cleat_tensor *table = weight(&w, "table", ROWS, OUT);
    cleat_tensor *gamma = cleat_param(w.graph, "gamma", 1, &out, zero);
    cleat_tensor *beta = cleat_param(w.graph, "beta", 1, &out, zero);
    cleat_tensor *y = cleat_layer_norm(w.graph, table, gamma, beta, 1e-5f);
    y = cleat_add(w.graph, cleat_gelu(w.graph, y), table);
    cleat_tensor *logits = cleat_linear(w.graph, y, weight(&w, "head", CLASSES, OUT), NULL, NULL);
    cleat_tensor *label = cleat_input(w.graph, "label", CLEAT_I32, 1, &rows);
    cleat_tensor *sample_weight = cleat_input(w.graph, "scale", CLEAT_F32, 1, &rows);
    cleat_autocast(w.graph, CLEAT_F32);
    cleat_tensor *loss = cleat_cross_entropy(w.graph, logits, label, sample_weight, 0);
    cleat_backward(w.graph, loss, cleat_input(w.graph, "seed", CLEAT_F32, 1, &one));
    must_be_well(&w);
    assert_null(w.store->half_weights[0]);
    for (size_t i = 0; i < w.graph->node_count; ++i) {
        const cleat_node *node = w.graph->nodes[i];
        if (strcmp(node->op->name, "layer_norm_grad") == 0) assert_int_equal(node->out[0]->dtype, CLEAT_F16);
    }
    assert_int_equal(cleat_gradient(w.graph, table)->dtype, CLEAT_F32);
    end(&w);
}

/* The optimizer writes the half-precision copies itself, whatever the storage type of the graph. */
static void the_optimizer_is_not_cast(void **state) {
    cleat_graph *update;
    const int64_t eight = 8, one = 1;
    (void)state;
    world w = begin();
    build(&w, CLEAT_F16);
    assert_int_equal(cleat_graph_create(w.store, "update", &update, NULL), CLEAT_OK);
    cleat_autocast(update, CLEAT_F16);
    cleat_adamw(update, cleat_input(update, "hyper", CLEAT_F32, 1, &eight),
                cleat_input(update, "norm", CLEAT_F32, 1, &one), NULL);
    assert_int_equal(cleat_graph_status(update, NULL), CLEAT_OK);
    assert_int_equal(update->node_count, 1);
    const cleat_node *node = update->nodes[0];
    bool writes_half_weights = false;
    for (int i = 0; i < node->n_out; ++i)
        writes_half_weights = writes_half_weights || node->out[i] == &w.store->flat[CLEAT_FLAT_HALF_WEIGHTS];
    assert_true(writes_half_weights);
    cleat_graph_destroy(update);
    end(&w);
}

static void long_names_are_refused(void **state) {
    char name[CLEAT_NAME + 1];
    cleat_error error;
    (void)state;
    world w = begin();
    memset(name, 'a', CLEAT_NAME);
    name[CLEAT_NAME] = 0;
    assert_null(weight(&w, name, OUT, WIDTH));
    assert_int_equal(cleat_graph_status(w.graph, &error), CLEAT_ERR_ARGUMENT);
    assert_non_null(strstr(error.text, "at most 63 characters"));
    end(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_input_is_cast_once),
        cmocka_unit_test(single_precision_casts_nothing),
        cmocka_unit_test(parameters_are_read_as_half_weights),
        cmocka_unit_test(the_plan_has_the_half_weights),
        cmocka_unit_test(half_weights_have_one_type),
        cmocka_unit_test(only_storage_types_are_possible),
        cmocka_unit_test(tf32_is_of_products),
        cmocka_unit_test(without_autocast_nothing_is_cast),
        cmocka_unit_test(parameters_elsewhere_are_cast),
        cmocka_unit_test(the_optimizer_is_not_cast),
        cmocka_unit_test(long_names_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
