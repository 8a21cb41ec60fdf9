/* The decoder with a cache, in chunks with padding and token by token, gives the logits of the whole text at once. */
/* ctest: device */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cleat/exec.h"
#include "nn/llama.h"
#include "platform/files.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH = 12, CHUNK = 5, CONTEXT = 14, VOCABULARY = 31 };

static const int32_t text[LENGTH] = {3, 30, 7, 7, 0, 12, 19, 5, 28, 1, 7, 22};

typedef struct network {
    cleat_store *store;
    cleat_graph *graphs[3]; /* the whole text, a chunk, one token */
    cleat_tensor *tokens[3], *positions[3], *logits[3];
    cleat_exec *exec;
} network;

static void build(network *n, int which, int64_t length, const cleat_llama *shape) {
    const int64_t row[] = {1, length};
    assert_int_equal(cleat_graph_create(n->store, "decoder", &n->graphs[which], NULL), CLEAT_OK);
    cleat_graph *graph = n->graphs[which];
    n->tokens[which] = cleat_input(graph, "tokens", CLEAT_I32, 2, row);
    if (which) n->positions[which] = cleat_input(graph, "positions", CLEAT_I32, 2, row);
    cleat_tensor *x = which ? cleat_nn_llama_cached(graph, n->tokens[which], n->positions[which], CONTEXT, shape)
                            : cleat_nn_llama(graph, n->tokens[which], NULL, NULL, shape);
    n->logits[which] = cleat_linear(graph, x, cleat_nn_llama_head(graph, shape), NULL, NULL);
    cleat_retain(graph, n->logits[which]);
    assert_int_equal(cleat_graph_status(graph, NULL), CLEAT_OK);
}

static void write_ints(network *n, int which, const cleat_tensor *to, const int32_t *values, int64_t count) {
    assert_int_equal(cleat_exec_write(n->exec, (size_t)which, to, values, (size_t)count * sizeof *values, NULL),
                     CLEAT_OK);
}

/* Runs tokens `from` to `to` - 1 in a graph with `places` places; the logits of the last one. */
static void run(network *n, int which, int64_t places, int64_t from, int64_t to, float *last) {
    int32_t tokens[LENGTH], positions[LENGTH];
    float logits[LENGTH * VOCABULARY];
    for (int64_t i = 0; i < places; ++i) {
        tokens[i] = from + i < to ? text[from + i] : -1;
        positions[i] = from + i < to ? (int32_t)(from + i) : -1;
    }
    write_ints(n, which, n->tokens[which], tokens, places);
    if (which) write_ints(n, which, n->positions[which], positions, places);
    assert_int_equal(cleat_exec_run(n->exec, (size_t)which, NULL), CLEAT_OK);
    assert_int_equal(cleat_exec_read(n->exec, (size_t)which, n->logits[which], logits,
                                     (size_t)(places * VOCABULARY) * sizeof *logits, NULL),
                     CLEAT_OK);
    memcpy(last, logits + (which ? to - from - 1 : 0) * VOCABULARY,
           (size_t)(which ? VOCABULARY : places * VOCABULARY) * sizeof *logits);
}

static void expect(const float *whole, int64_t at, const float *got) {
    for (int64_t v = 0; v < VOCABULARY; ++v) {
        const float want = whole[at * VOCABULARY + v];
        if (!(fabsf(got[v] - want) <= 1e-4f * (1 + fabsf(want))))
            fail_msg("logit %d behind token %d is %g, with the whole text %g", (int)v, (int)at, (double)got[v],
                     (double)want);
    }
}

static void check(cleat_device *device, const cleat_llama *shape) {
    network n = {.store = NULL};
    float whole[LENGTH * VOCABULARY], got[VOCABULARY];
    assert_int_equal(cleat_store_create(&n.store, NULL), CLEAT_OK);
    build(&n, 0, LENGTH, shape);
    build(&n, 1, CHUNK, shape);
    build(&n, 2, 1, shape);
    assert_int_equal(cleat_exec_open(device, n.graphs, 3, &n.exec, NULL), CLEAT_OK);
    assert_int_equal(cleat_exec_initialise(n.exec, 5, NULL), CLEAT_OK);
    run(&n, 0, LENGTH, 0, LENGTH, whole);
    assert_true(fabsf(whole[0] - whole[VOCABULARY]) > 1e-4f);
    for (int again = 0; again < 2; ++again) { /* the second text does not see the first one */
        run(&n, 1, CHUNK, 0, CHUNK, got);
        expect(whole, CHUNK - 1, got);
        run(&n, 1, CHUNK, CHUNK, CHUNK + 3, got);
        expect(whole, CHUNK + 2, got);
        for (int64_t at = CHUNK + 3; at < LENGTH; ++at) {
            run(&n, 2, 1, at, at + 1, got);
            expect(whole, at, got);
        }
    }
    cleat_exec_destroy(n.exec);
    for (int i = 0; i < 3; ++i) cleat_graph_destroy(n.graphs[i]);
    cleat_store_destroy(n.store);
}

static void cached_logits_are_those_of_the_whole_text(void **state) {
    cleat_device *device = *state;
    cleat_llama shape = {.vocabulary = VOCABULARY,
                         .d_model = 24,
                         .layers = 2,
                         .d_ff = 40,
                         .heads = 6,
                         .kv_heads = 2,
                         .head = 6,
                         .angles = {.width = 6, .base = 10000, .factor = 1},
                         .norm_eps = 1e-5f,
                         .gate = CLEAT_GATE_SILU,
                         .tied = true};
    check(device, &shape);
    shape.window = 4;
    shape.qkv_bias = true;
    shape.tied = false;
    check(device, &shape);
    shape.head_norms = true;
    check(device, &shape);
}

int main(void) {
    cleat_device *device = NULL;
    const char *selector = getenv("CLEAT_TEST_DEVICE");
    if (cleat_device_open(selector ? selector : "auto", &device, NULL)) return 77;
    const struct CMUnitTest tests[] = {cmocka_unit_test_prestate(cached_logits_are_those_of_the_whole_text, device)};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    cleat_device_close(device);
    return failed;
}
