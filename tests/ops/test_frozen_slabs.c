/* Frozen weights on a device whose largest buffer is smaller than all of them: several slabs, the same bits. */
/* ctest: device quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cleat/ops.h"
#include "exec/copy.h"
#include "exec/exec.h"
#include "graph/store.h"
#include "plan_check.h"
#include "platform/files.h"

enum { ROWS = 6, WIDTH = 64, LAYERS = 5 };

static cleat_device *device;
static cleat_dtype blocks;

/* The bias is trained, so that the flat buffers begin with what must stay in one slab. */
static void choose(void *user, const char *name, int rank, cleat_param_rule *rule) {
    (void)user, (void)rank;
    rule->frozen = strcmp(name, "bias") != 0;
    rule->blocks = blocks;
}

typedef struct network {
    cleat_store *store;
    cleat_graph *graph;
    cleat_tensor *x, *y;
    cleat_plan *plan;
    cleat_exec *exec;
} network;

static void ok(cleat_status status, const cleat_error *error) {
    if (status) fail_msg("%s", error->text);
}

static void open_network(network *n, cleat_dtype storage, int64_t largest) {
    cleat_error error = {0};
    cleat_device_facts facts = *cleat_device_get_facts(device);
    const int64_t width = WIDTH, shape[] = {ROWS, WIDTH}, square[] = {WIDTH, WIDTH};
    ok(cleat_store_create(&n->store, &error), &error);
    cleat_store_set_rules(n->store, choose, NULL);
    ok(cleat_graph_create(n->store, "frozen", &n->graph, &error), &error);
    if (storage != CLEAT_F32) cleat_autocast(n->graph, storage);
    n->y = n->x = cleat_input(n->graph, "x", storage, 2, shape);
    cleat_tensor *bias = cleat_param(n->graph, "bias", 1, &width, (cleat_init){CLEAT_INIT_NORMAL, 0.1f});
    for (int i = 0; i < LAYERS; ++i) {
        const char name[] = {'l', 'a', 'y', 'e', 'r', (char)('0' + i), 0};
        cleat_tensor *weight = cleat_param(n->graph, name, 2, square, (cleat_init){CLEAT_INIT_NORMAL, 0.1f});
        n->y = cleat_linear(n->graph, n->y, weight, i ? NULL : bias, NULL);
    }
    cleat_retain(n->graph, n->y);
    ok(cleat_store_arrange(n->store, &error), &error);
    if (largest) facts.max_allocation = largest;
    ok(cleat_plan_create(&n->graph, 1, &facts, &n->plan, &error), &error);
    ok(cleat_plan_check(n->plan, &error), &error);
    ok(cleat_exec_create(device, n->plan, &n->exec, &error), &error);
    ok(cleat_exec_initialise(n->exec, 7, &error), &error);
}

static void run_network(network *n, void *y) {
    unsigned char x[ROWS * WIDTH * sizeof(float)];
    cleat_error error = {0};
    for (size_t i = 0; i < sizeof x; ++i) x[i] = 0x3c; /* 0.0115 in f32, 1.06 in f16 */
    ok(cleat_exec_write_unchecked(n->exec, 0, n->x, x, &error), &error);
    ok(cleat_exec_run(n->exec, 0, &error), &error);
    ok(cleat_exec_read_unchecked(n->exec, 0, n->y, y, &error), &error);
}

static void close_network(network *n) {
    cleat_exec_destroy(n->exec);
    cleat_plan_destroy(n->plan);
    cleat_graph_destroy(n->graph);
    cleat_store_destroy(n->store);
}

static void assert_same_flats(const network *a, const network *b) {
    for (int k = 0; k < CLEAT_FLATS; ++k) {
        const size_t bytes = (size_t)cleat_tensor_bytes(&a->store->flat[k]);
        char *in_one = calloc(2, bytes + 1), *in_several = in_one + bytes;
        cleat_error error = {0};
        if (a->plan->flat[k].slab >= 0) {
            ok(cleat_exec_read_unchecked(a->exec, 0, &a->store->flat[k], in_one, &error), &error);
            ok(cleat_exec_read_unchecked(b->exec, 0, &b->store->flat[k], in_several, &error), &error);
            assert_memory_equal(in_one, in_several, bytes);
            memset(in_several, 0, bytes);
            ok(cleat_exec_write_unchecked(b->exec, 0, &b->store->flat[k], in_one, &error), &error);
            ok(cleat_exec_read_unchecked(b->exec, 0, &b->store->flat[k], in_several, &error), &error);
            assert_memory_equal(in_one, in_several, bytes);
        }
        free(in_one);
    }
}

/* `largest`: bytes of a slab */
static void compare(cleat_dtype form, cleat_dtype storage, int64_t largest, size_t further) {
    static unsigned char one[ROWS * WIDTH * sizeof(float)], several[sizeof one];
    network a = {0}, b = {0};
    blocks = form;
    memset(one, 0, sizeof one);
    memset(several, 1, sizeof several);
    open_network(&a, storage, 0);
    open_network(&b, storage, largest);
    assert_int_equal(a.plan->further_count, 0);
    assert_int_equal(b.plan->further_count, further);
    for (size_t i = 0; i < b.plan->slab_count; ++i) assert_true(b.plan->slabs[i].bytes <= largest);
    assert_int_equal(cleat_plan_bytes(a.plan), cleat_plan_bytes(b.plan));
    assert_same_flats(&a, &b);
    run_network(&a, one);
    run_network(&b, several);
    assert_memory_equal(one, several, (size_t)cleat_tensor_bytes(a.y));
    assert_true(one[0] || one[1] || one[2] || one[3]);
    close_network(&a);
    close_network(&b);
}

static void f32_weights(void **state) {
    (void)state;
    compare(CLEAT_F32, CLEAT_F32, 2 * WIDTH * WIDTH * 4, 2);
}

static void half_weights(void **state) {
    (void)state;
    compare(CLEAT_F32, CLEAT_F16, 2 * WIDTH * WIDTH * 2, 2);
    compare(CLEAT_F32, CLEAT_BF16, 3 * WIDTH * WIDTH * 2, 1);
}

static void blocks_of_weights(void **state) {
    (void)state;
    compare(CLEAT_Q8, CLEAT_F32, 2 * (WIDTH * WIDTH + WIDTH * WIDTH / 16), 2);
}

int main(void) {
    const char *selected = getenv("CLEAT_TEST_DEVICE");
    cleat_error error = {0};
    if (cleat_device_open(selected ? selected : "auto", &device, &error)) {
        fprintf(stderr, "skipped: %s\n", error.text);
        return 77;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(f32_weights), cmocka_unit_test(half_weights),
                                       cmocka_unit_test(blocks_of_weights)};
    const int failed = cmocka_run_group_tests_name("frozen weights in several slabs", tests, NULL, NULL);
    cleat_device_close(device);
    return failed;
}
