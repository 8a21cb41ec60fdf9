/* Products of one row with the weights of a graph that generates texts, in f32, halves and blocks, against loops in
 * double precision; other graphs keep their kernels. */
/* ctest: device */
#include "harness.h"

#include "cleat/ops.h"
#include "exec/copy.h"
#include "graph/store.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct layer {
    int64_t k, n;
    bool bias, residual;
    cleat_dtype blocks; /* F32: none */
} layer;

static const layer layers[] = {
    {67, 37, true, true, CLEAT_F32},     /* no multiples of a vector */
    {3, 1, false, false, CLEAT_F32},     /* less than one */
    {1216, 131, false, true, CLEAT_F32}, /* several groups */
    {192, 70, true, true, CLEAT_Q8},     {1216, 9, false, false, CLEAT_NF4},
    {96, 70, true, false, CLEAT_Q4},     {1216, 9, false, true, CLEAT_HALF},
};
static const layer *current;
static bool streams;

static void choose(void *user, const char *name, int rank, cleat_param_rule *rule) {
    (void)user, (void)rank;
    rule->frozen = strcmp(name, "trained") != 0;
    rule->streamed = streams;
    rule->blocks = current->blocks;
}

static double draw(cleat_dtype dtype, double *state) {
    *state = fmod(*state * 997.0 + 0.3819, 1.0);
    return compare_round(dtype, *state * 2 - 1);
}

static double *fill(op_rig *rig, cleat_tensor *tensor, cleat_dtype dtype, double seed) {
    if (!tensor) return NULL;
    const int64_t count = cleat_tensor_elements(tensor);
    double *values = malloc((size_t)count * sizeof *values);
    for (int64_t i = 0; i < count; ++i) values[i] = draw(dtype, &seed);
    op_rig_write(rig, tensor, values);
    return values;
}

/* Writes the weight; *w is then what the device has. */
static void write_weight(op_rig *rig, cleat_tensor *weight, float *w) {
    double state = 0.7;
    for (int64_t i = 0; i < cleat_tensor_elements(weight); ++i) w[i] = (float)draw(CLEAT_F32, &state);
    assert_int_equal(cleat_exec_write_unchecked(rig->exec, 0, weight, w, NULL), CLEAT_OK);
    assert_int_equal(cleat_exec_read_unchecked(rig->exec, 0, weight, w, NULL), CLEAT_OK);
}

static void check(const op_shape *shape, cleat_dtype storage) {
    const int64_t k = current->k, n = current->n, x_shape[] = {1, k}, y_shape[] = {1, n}, w_shape[] = {n, k};
    const cleat_device_facts facts = op_facts(shape);
    cleat_store *store = NULL;
    cleat_graph *graph = NULL;
    op_rig rig;
    assert_int_equal(cleat_store_create(&store, NULL), CLEAT_OK);
    cleat_store_set_rules(store, choose, NULL);
    assert_int_equal(cleat_graph_create(store, "row", &graph, NULL), CLEAT_OK);
    if (storage != CLEAT_F32) cleat_autocast(graph, storage);
    cleat_tensor *x = cleat_input(graph, "x", storage, 2, x_shape);
    cleat_tensor *weight = cleat_param(graph, "weight", 2, w_shape, (cleat_init){0});
    cleat_tensor *bias = current->bias ? cleat_input(graph, "bias", CLEAT_F32, 1, &n) : NULL;
    cleat_tensor *residual = current->residual ? cleat_input(graph, "residual", storage, 2, y_shape) : NULL;
    cleat_tensor *y = cleat_linear(graph, x, weight, bias, residual);
    cleat_retain(graph, y);
    assert_int_equal(cleat_store_arrange(store, NULL), CLEAT_OK);
    assert_string_equal(op_variant("linear", 0, y->producer, &facts)->name, "row");
    assert_true(op_rig_open(&rig, graph, shape, "linear", 0));
    float *w = malloc((size_t)(k * n) * sizeof *w);
    double *got = malloc((size_t)n * sizeof *got), *want = malloc((size_t)n * sizeof *want);
    write_weight(&rig, weight, w);
    double *xs = fill(&rig, x, storage, 0.1), *bs = fill(&rig, bias, CLEAT_F32, 0.2),
           *rs = fill(&rig, residual, storage, 0.3);
    op_rig_run(&rig, 0, -1);
    op_rig_read(&rig, y, got);
    for (int64_t i = 0; i < n; ++i) {
        want[i] = (bs ? bs[i] : 0) + (rs ? rs[i] : 0);
        for (int64_t j = 0; j < k; ++j) want[i] += xs[j] * (double)w[i * k + j];
    }
    const compare_tolerance tolerance = {
        .scale = 2, .length = (double)k, .f32_units = 4 + 2 * sqrt((double)k), .storage_units = 0};
    const int64_t bad = compare_arrays(got, want, n, tolerance, storage, storage, NULL);
    if (bad >= 0)
        fail_msg("%s, %s, %s, %lld x %lld: y[%lld] is %g instead of %g", shape->name, cleat_dtype_name(storage),
                 cleat_dtype_name(current->blocks), (long long)k, (long long)n, (long long)bad, got[bad], want[bad]);
    free(xs), free(bs), free(rs), free(w), free(got), free(want);
    op_rig_close(&rig);
    cleat_graph_destroy(graph);
    cleat_store_destroy(store);
}

static void rows_are_right(void **state) {
    static const cleat_dtype storages[] = {CLEAT_F32, CLEAT_F16, CLEAT_BF16};
    const op_shape *const shapes[] = {&op_shape_cpu, &op_shape_gpu, &op_shape_gpu64};
    (void)state;
    streams = true;
    for (size_t i = 0; i < sizeof layers / sizeof *layers; ++i)
        for (int s = 0; s < 9; ++s) {
            current = &layers[i];
            if (op_shape_is_tested(shapes[s / 3]) && (s + i) % 2 == 0) check(shapes[s / 3], storages[s % 3]);
        }
}

/* Without the rule of generation, frozen or not, one row has the kernels of any other number of rows. */
static void other_graphs_keep_their_kernels(void **state) {
    const int64_t shape[] = {1, 64};
    (void)state;
    current = &layers[0];
    streams = false;
    for (int trained = 0; trained < 2; ++trained) {
        cleat_store *store = NULL;
        cleat_graph *graph = NULL;
        const cleat_device_facts facts = op_facts(&op_shape_cpu);
        assert_int_equal(cleat_store_create(&store, NULL), CLEAT_OK);
        cleat_store_set_rules(store, choose, NULL);
        assert_int_equal(cleat_graph_create(store, "row", &graph, NULL), CLEAT_OK);
        cleat_tensor *x = cleat_input(graph, "x", CLEAT_F32, 2, shape);
        cleat_tensor *weight = cleat_param(graph, trained ? "trained" : "weight", 2, shape, (cleat_init){0});
        cleat_tensor *y = cleat_linear(graph, x, weight, NULL, NULL);
        assert_string_not_equal(op_variant("linear", 0, y->producer, &facts)->name, "row");
        cleat_graph_destroy(graph);
        cleat_store_destroy(store);
    }
}

int main(void) {
    const struct CMUnitTest extra[] = {cmocka_unit_test(rows_are_right),
                                       cmocka_unit_test(other_graphs_keep_their_kernels)};
    return op_main(NULL, 0, extra, sizeof extra / sizeof *extra);
}
