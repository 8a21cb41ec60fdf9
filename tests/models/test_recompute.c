/* Gradient checkpointing on a device: a model with recomputed activations gives the same bits in less memory. */
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
#include "graph/recompute.h"
#include "graph/store.h"
#include "plan_check.h"
#include "platform/files.h"

static cleat_device *open_device(void) {
    cleat_device *device = NULL;
    cleat_error error;
    const char *selector = getenv("CLEAT_TEST_DEVICE");
    cleat_status status = cleat_device_open(selector ? selector : "auto", &device, &error);
    if (!status) return device;
    fprintf(stderr, "%s\n", error.text);
    exit(status == CLEAT_ERR_NO_DEVICE ? 77 : 1);
}

static cleat_model *small_model(void) {
    static const char *const settings[] = {"model.d_model=32", "model.heads=2", "model.layers=4", "model.d_ff=64",
                                           "model.dropout=0.2"};
    cleat_profile *profile = NULL;
    cleat_model *model = NULL;
    assert_int_equal(cleat_profile_create(&profile, NULL), CLEAT_OK);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; ++i)
        assert_int_equal(cleat_profile_set(profile, settings[i], NULL), CLEAT_OK);
    assert_int_equal(cleat_profile_create_model(profile, &model, NULL), CLEAT_OK);
    cleat_profile_destroy(profile);
    return model;
}

enum { B = 2, L = 80, MAX_TERMS = 16 };

/* Chains of 80 and 61 residues on helices, without pairs. */
typedef struct batch {
    int32_t tokens[B * L], lengths[B], partner[B * L];
    float coords[B * L * 3], mask[B * L];
    const void *fields[5];
    cleat_host_batch host;
} batch;

static void batch_make(batch *b) {
    memset(b, 0, sizeof *b);
    b->lengths[0] = L;
    b->lengths[1] = 61;
    for (int i = 0; i < B * L; ++i) {
        int s = i / L, residue = i % L;
        bool there = residue < b->lengths[s];
        double turn = (s ? 0.9 : 0.571) * residue;
        b->tokens[i] = there ? (residue * 7 + s * 3) % 4 : CLEAT_RNA_PADDING;
        b->partner[i] = -1;
        b->mask[i] = there ? 1.0f : 0.0f;
        b->coords[3 * i] = (float)(8.9 * cos(turn));
        b->coords[3 * i + 1] = (float)(8.9 * sin(turn));
        b->coords[3 * i + 2] = (float)(2.81 * residue);
    }
    const void *fields[5] = {b->tokens, b->lengths, b->coords, b->mask, b->partner};
    memcpy(b->fields, fields, sizeof fields);
    b->host = (cleat_host_batch){.batch = B, .length = L, .fields = b->fields};
}

/* Results of two passes: gradients are summed, all else is from the second. */
typedef struct results {
    float loss, output[B * L * 3];
    float *gradients; /* [elements] the flat buffer */
    size_t elements;
    int64_t arena;
    size_t nodes, recomputed;
} results;

typedef struct session {
    cleat_store *store;
    cleat_graph *graph;
    cleat_model_graph built;
    cleat_plan *plan;
    cleat_exec *exec;
} session;

static void must(cleat_status status, const cleat_error *error) {
    if (status) fail_msg("%s", error->text);
}

static void session_open(session *s, cleat_device *device, const cleat_model *model, int recompute) {
    cleat_error error;
    *s = (session){0};
    must(cleat_store_create(&s->store, &error), &error);
    must(cleat_graph_create(s->store, "train", &s->graph, &error), &error);
    cleat_graph_set_recompute(s->graph, recompute);
    cleat_model_build(model, s->graph, CLEAT_MODE_TRAIN, B, L, &s->built);
    cleat_graph_fuse(s->graph);
    must(cleat_graph_status(s->graph, &error), &error);
    must(cleat_plan_create(&s->graph, 1, cleat_device_get_facts(device), &s->plan, &error), &error);
    must(cleat_plan_check(s->plan, &error), &error);
    must(cleat_exec_create(device, s->plan, &s->exec, &error), &error);
}

static void session_close(session *s) {
    cleat_exec_destroy(s->exec);
    cleat_plan_destroy(s->plan);
    cleat_graph_destroy(s->graph);
    cleat_store_destroy(s->store);
}

static void put(session *s, const char *name, const void *values) {
    cleat_error error;
    const cleat_tensor *tensor = cleat_graph_find(s->graph, name);
    if (!tensor) fail_msg("no input '%s'", name);
    must(cleat_exec_write_unchecked(s->exec, 0, tensor, values, &error), &error);
}

/* Adds noise to every parameter: the head starts at zero, which would block all gradients before the encoder. */
static void put_parameters(session *s) {
    cleat_error error;
    for (size_t i = 0; i < cleat_store_count(s->store); ++i) {
        cleat_tensor noisy = *cleat_store_param(s->store, i);
        cleat_tensor *param = cleat_store_param(s->store, i);
        if (noisy.init.kind == CLEAT_INIT_ZERO) noisy.init = (cleat_init){CLEAT_INIT_UNIFORM, 0.02f};
        float *values = cleat_alloc((size_t)cleat_tensor_elements(param), sizeof *values);
        assert_non_null(values);
        cleat_param_initialise(&noisy, 1, values);
        must(cleat_exec_write_unchecked(s->exec, 0, param, values, &error), &error);
        cleat_free(values);
    }
}

static void put_batch(session *s, const cleat_model *model) {
    static const char *const names[] = {"tokens", "lengths", "coords", "mask", "partner"};
    static batch b;
    float sample_weight[MAX_TERMS * B], one = 1;
    batch_make(&b);
    assert_true(cleat_model_terms(model) <= MAX_TERMS);
    for (int i = 0; i < 5; ++i) put(s, names[i], b.fields[i]);
    cleat_model_sample_weight(model, &b.host, &(cleat_global_batch){.samples = B}, sample_weight);
    put(s, "scale", sample_weight);
    put(s, "seed", &one);
}

static void put_random(session *s, uint32_t pass) {
    const cleat_tensor *rng = cleat_graph_find(s->graph, "rng");
    uint32_t words[64] = {17, 4, pass};
    assert_true(rng && cleat_tensor_bytes(rng) <= (int64_t)sizeof words);
    put(s, "rng", words);
}

static results train_twice(cleat_device *device, const cleat_model *model, int recompute) {
    session s;
    results r = {0};
    cleat_error error;
    session_open(&s, device, model, recompute);
    put_parameters(&s);
    put_batch(&s, model);
    for (uint32_t pass = 0; pass < 2; ++pass) {
        put_random(&s, pass);
        must(cleat_exec_run(s.exec, 0, &error), &error);
    }
    r.elements = (size_t)s.store->flat_elements;
    r.gradients = cleat_alloc(r.elements, sizeof *r.gradients);
    assert_non_null(r.gradients);
    must(cleat_exec_read_unchecked(s.exec, 0, s.built.loss, &r.loss, &error), &error);
    must(cleat_exec_read_unchecked(s.exec, 0, s.built.output, r.output, &error), &error);
    must(cleat_exec_read_unchecked(s.exec, 0, &s.store->flat[CLEAT_FLAT_GRADIENTS], r.gradients, &error), &error);
    r.arena = cleat_plan_category_bytes(s.plan, CLEAT_BYTES_ARENA);
    r.nodes = s.graph->node_count;
    for (size_t i = 0; i < r.nodes; ++i) r.recomputed += s.graph->nodes[i]->recomputed;
    for (size_t i = 0; i < cleat_store_count(s.store); ++i) { /* every parameter has a gradient to compare */
        const cleat_tensor *gradient = cleat_store_grad(s.store, i);
        bool any = false;
        for (int64_t e = 0; e < cleat_tensor_elements(gradient); ++e)
            any = any || r.gradients[gradient->flat_offset + e] != 0;
        if (!any) fail_msg("the gradient of '%s' is zero", gradient->name);
    }
    session_close(&s);
    return r;
}

static void same_bits_in_less_memory(void **state) {
    cleat_model *model = small_model();
    results stored = train_twice(*state, model, 0);
    assert_true(isfinite(stored.loss));
    assert_int_equal(stored.recomputed, 0);
    for (int recompute = 1; recompute <= 3; ++recompute) {
        results r = train_twice(*state, model, recompute);
        print_message("groups of %d: arena %.1f KiB of %.1f, %zu of %zu nodes are copies\n", recompute,
                      (double)r.arena / 1024, (double)stored.arena / 1024, r.recomputed, r.nodes);
        assert_true(r.recomputed > 0 && r.nodes == stored.nodes + r.recomputed);
        assert_memory_equal(&r.loss, &stored.loss, sizeof r.loss);
        assert_memory_equal(r.output, stored.output, sizeof r.output);
        assert_int_equal(r.elements, stored.elements);
        assert_memory_equal(r.gradients, stored.gradients, r.elements * sizeof *r.gradients);
        assert_true(r.arena < stored.arena);
        cleat_free(r.gradients);
    }
    cleat_free(stored.gradients);
    cleat_model_destroy(model);
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_bits_in_less_memory)};
    return cmocka_run_group_tests(tests, open_shared_device, close_shared_device);
}
