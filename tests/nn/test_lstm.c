/* LSTM layers: parameters have the names, shapes and initial values of torch.nn.LSTM. */
/* ctest: quick */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cleat/ops.h"
#include "graph/graph.h"
#include "graph/store.h"
#include "nn/lstm.h"

enum { B = 3, L = 4, INPUTS = 5, HIDDEN = 24, LAYERS = 2 };

static cleat_tensor *build(cleat_graph *graph, cleat_dtype storage) {
    cleat_tensor *x = cleat_input(graph, "x", storage, 3, (int64_t[]){B, L, INPUTS});
    cleat_autocast(graph, storage);
    for (int i = 0; i < LAYERS; ++i) x = cleat_nn_lstm(graph, "rnn", i, x, HIDDEN);
    return x;
}

static void expect_parameter(const cleat_store *store, const char *part, int layer, int64_t columns) {
    char name[CLEAT_NAME];
    snprintf(name, sizeof name, "rnn.%s_l%d", part, layer);
    const cleat_tensor *tensor = cleat_store_find(store, name);
    assert_non_null(tensor);
    assert_int_equal(tensor->rank, columns ? 2 : 1);
    assert_int_equal(tensor->shape[0], 4 * HIDDEN);
    if (columns) assert_int_equal(tensor->shape[1], columns);
    const size_t count = (size_t)cleat_tensor_elements(tensor);
    const double bound = 1 / sqrt(HIDDEN);
    float *values = calloc(count, sizeof *values);
    double most = 0, sum = 0;
    cleat_param_initialise(tensor, 1, values);
    for (size_t i = 0; i < count; ++i) {
        most = fmax(most, fabs((double)values[i]));
        sum += (double)values[i];
    }
    free(values);
    assert_true(most <= bound && most > 0.9 * bound);
    assert_true(fabs(sum) / (double)count < 5 * bound / sqrt(3 * (double)count));
}

static void names_shapes_and_starts(void **state) {
    (void)state;
    for (cleat_dtype storage = CLEAT_F32; storage <= CLEAT_BF16; ++storage) {
        cleat_store *store = NULL;
        cleat_graph *graph = NULL;
        cleat_error error = {0};
        assert_int_equal(cleat_store_create(&store, &error), CLEAT_OK);
        assert_int_equal(cleat_graph_create(store, "lstm", &graph, &error), CLEAT_OK);
        const cleat_tensor *h = build(graph, storage);
        assert_int_equal(cleat_graph_status(graph, &error), CLEAT_OK);
        assert_int_equal(h->dtype, storage);
        const int64_t shape[] = {B, L, HIDDEN};
        assert_int_equal(h->rank, 3);
        assert_memory_equal(h->shape, shape, sizeof shape);
        assert_int_equal(store->count, 4 * LAYERS);
        for (int i = 0; i < LAYERS; ++i) {
            expect_parameter(store, "weight_ih", i, i ? HIDDEN : INPUTS);
            expect_parameter(store, "weight_hh", i, HIDDEN);
            expect_parameter(store, "bias_ih", i, 0);
            expect_parameter(store, "bias_hh", i, 0);
        }
        cleat_graph_destroy(graph);
        cleat_store_destroy(store);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(names_shapes_and_starts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
