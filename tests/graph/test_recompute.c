/* Gradient checkpointing: the recomputed nodes, the memory saved, and bit-identical results, which an
 * interpreter checks by running planned graphs in host memory. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/memory.h"
#include "core/philox.h"
#include "fake_ops.h"
#include "graph/plan.h"
#include "graph/recompute.h"
#include "plan_check.h"

enum { E = 64, BLOCK = 4 * E, CHEAP = 1000 }; /* elements and bytes of a tensor; instead of segments: only cheap ops */

typedef struct world {
    cleat_store *store;
    cleat_graph *graph;
} world;

static world world_create(int recompute) {
    world w = {NULL, NULL};
    assert_int_equal(cleat_store_create(&w.store, NULL), CLEAT_OK);
    assert_int_equal(cleat_graph_create(w.store, "g", &w.graph, NULL), CLEAT_OK);
    if (recompute == CHEAP)
        cleat_graph_recompute_cheap(w.graph);
    else
        cleat_graph_set_recompute(w.graph, recompute);
    return w;
}

static void world_destroy(world *w) {
    cleat_graph_destroy(w->graph);
    cleat_store_destroy(w->store);
}

static cleat_plan *checked_plan(const world *w) {
    cleat_device_facts facts = {.alignment = BLOCK, .max_allocation = (int64_t)1 << 40};
    cleat_error error = {0};
    cleat_plan *plan = NULL;
    if (cleat_graph_status(w->graph, &error) != CLEAT_OK) fail_msg("%s", error.text);
    if (cleat_plan_create(&w->graph, 1, &facts, &plan, &error) != CLEAT_OK) fail_msg("%s", error.text);
    if (cleat_plan_check(plan, &error) != CLEAT_OK) fail_msg("%s", error.text);
    return plan;
}

/* --- operations on E numbers each --- */

typedef struct op_attr {
    uint32_t stream; /* stream of a mask */
    int32_t n_out;
    bool row; /* reshape to one row */
} op_attr;

static const op_attr *attr_of(const cleat_node *node) {
    return (const op_attr *)(const void *)node->attr;
}

static int64_t scratch(const cleat_node *node, const cleat_device_facts *facts) {
    (void)node, (void)facts;
    return BLOCK;
}

static void bind(const cleat_node *node, cleat_binder *binder) {
    (void)node, (void)binder;
}

static const cleat_variant plain[] = {{"plain", NULL, NULL, bind}, {NULL, NULL, NULL, NULL}};
static const cleat_variant with_scratch[] = {{"plain", NULL, scratch, bind}, {NULL, NULL, NULL, NULL}};

static cleat_status infer(cleat_node *node, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    for (int i = 0; i < attr_of(node)->n_out && !status; ++i)
        status = cleat_set_output(node, i, CLEAT_F32, 2, node->in[0]->shape, error);
    return status;
}

/* a, b, c (may be NULL) -> y, z; gradients need a, b and y */
static const cleat_op mix_grad = {
    .name = "mix_grad", .variants = with_scratch, .inplace_inputs = CLEAT_IN(5) | CLEAT_IN(0)};
static void mix_backward(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    cleat_emit_grads(
        graph, &(cleat_grads_spec){.op = &mix_grad,
                                   .in = (cleat_tensor *[]){dout[0], dout[1], node->in[0], node->in[1], node->out[0]},
                                   .n_in = 5,
                                   .targets = node->in,
                                   .n_targets = 3});
}
static const cleat_op mix = {.name = "mix",
                             .optional_inputs = CLEAT_EVERY_INPUT,
                             .infer = infer,
                             .backward = mix_backward,
                             .variants = with_scratch,
                             .inplace_inputs = CLEAT_IN(0) | CLEAT_IN(1) | CLEAT_IN(2)};

/* x -> y: elements selected by a stream become zero; the gradient needs no tensor */
static const cleat_op drop_grad = {.name = "drop_grad", .variants = plain, .inplace_inputs = CLEAT_IN(0) | CLEAT_IN(1)};
static void drop_backward(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    cleat_emit_grads(graph, &(cleat_grads_spec){.op = &drop_grad,
                                                .attr = node->attr,
                                                .attr_bytes = sizeof(op_attr),
                                                .in = dout,
                                                .n_in = 1,
                                                .targets = node->in,
                                                .n_targets = 1});
}
static const cleat_op drop = {.name = "drop",
                              .optional_inputs = CLEAT_EVERY_INPUT,
                              .infer = infer,
                              .backward = drop_backward,
                              .variants = plain,
                              .inplace_inputs = CLEAT_IN(0)};

/* a, b -> a + b: the gradient is passed on unchanged */
static const cleat_op plus_grad = {.name = "plus_grad", .variants = plain, .inplace_inputs = CLEAT_IN(0) | CLEAT_IN(1)};
static void pass(cleat_graph *graph, cleat_tensor *x, cleat_tensor *dy) {
    if (!cleat_requires_grad(x)) return;
    if (cleat_gradient(graph, x))
        cleat_emit_grads(graph,
                         &(cleat_grads_spec){.op = &plus_grad, .in = &dy, .n_in = 1, .targets = &x, .n_targets = 1});
    else
        cleat_set_gradient(graph, x, dy);
}
static void plus_backward(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    pass(graph, node->in[0], dout[0]);
    pass(graph, node->in[1], dout[0]);
}
static const cleat_op plus = {.name = "plus",
                              .optional_inputs = CLEAT_EVERY_INPUT,
                              .infer = infer,
                              .backward = plus_backward,
                              .variants = plain,
                              .inplace_inputs = CLEAT_IN(0) | CLEAT_IN(1)};

/* x -> x / 2, no gradient */
static const cleat_op stop = {.name = "stop", .optional_inputs = CLEAT_EVERY_INPUT, .infer = infer, .variants = plain};

/* x -> y; the gradient needs x; never in place */
static const cleat_op unit_grad = {.name = "unit_grad", .variants = plain};
static void unit_backward(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    cleat_emit_grads(graph, &(cleat_grads_spec){.op = &unit_grad,
                                                .in = (cleat_tensor *[]){dout[0], node->in[0]},
                                                .n_in = 2,
                                                .targets = node->in,
                                                .n_targets = 1});
}
static const cleat_op unit = {
    .name = "unit", .optional_inputs = CLEAT_EVERY_INPUT, .infer = infer, .backward = unit_backward, .variants = plain};

/* The same op, cheap enough to be repeated alone. */
static bool is_cheap(const cleat_node *node) {
    (void)node;
    return true;
}
static const cleat_op soft = {.name = "soft",
                              .optional_inputs = CLEAT_EVERY_INPUT,
                              .infer = infer,
                              .backward = unit_backward,
                              .variants = plain,
                              .cheap = is_cheap};

/* A reshape between [2, E / 2] and [1, E]; its gradient is also a reshape. */
static cleat_tensor *view(cleat_graph *graph, cleat_tensor *x, bool row);
static void view_backward(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    pass(graph, node->in[0], view(graph, dout[0], node->in[0]->shape[0] == 1));
}
static cleat_status infer_view(cleat_node *node, cleat_error *error) {
    int64_t rows = attr_of(node)->row ? 1 : 2, shape[] = {rows, E / rows};
    cleat_status status = cleat_set_output(node, 0, CLEAT_F32, 2, shape, error);
    if (!status) node->out[0]->base = (cleat_tensor *)cleat_root(node->in[0]);
    return status;
}
static const cleat_op view_op = {
    .name = "view", .optional_inputs = CLEAT_EVERY_INPUT, .infer = infer_view, .backward = view_backward};

/* x, p, state -> y, and the state changes: y depends on its previous value. */
static const cleat_op running_grad = {.name = "running_grad", .variants = plain, .inplace_inputs = CLEAT_IN(0)};
static void running_backward(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    cleat_emit_grads(graph, &(cleat_grads_spec){.op = &running_grad,
                                                .in = (cleat_tensor *[]){dout[0], node->in[0], node->out[0]},
                                                .n_in = 3,
                                                .targets = node->in,
                                                .n_targets = 2});
}
static cleat_status infer_running(cleat_node *node, cleat_error *error) {
    cleat_status status = cleat_set_output(node, 0, CLEAT_F32, 2, node->in[0]->shape, error);
    if (!status) cleat_set_output_state(node, 1, node->in[2]);
    return status;
}
static const cleat_op running = {.name = "running",
                                 .optional_inputs = CLEAT_EVERY_INPUT,
                                 .infer = infer_running,
                                 .backward = running_backward,
                                 .variants = plain};

/* x, state: state += x */
static cleat_status infer_tally(cleat_node *node, cleat_error *error) {
    (void)error;
    cleat_set_output_state(node, 0, node->in[1]);
    return CLEAT_OK;
}
static const cleat_op tally = {
    .name = "tally", .optional_inputs = CLEAT_EVERY_INPUT, .infer = infer_tally, .variants = plain};

static cleat_node *emit(cleat_graph *graph, const cleat_op *op, op_attr attr, cleat_tensor *a, cleat_tensor *b,
                        cleat_tensor *c) {
    return a ? cleat_emit(graph, op, &attr, sizeof attr, (cleat_tensor *[]){a, b, c}, 3) : NULL;
}

static cleat_tensor *first(const cleat_node *node) {
    return node ? node->out[0] : NULL;
}

static cleat_tensor *view(cleat_graph *graph, cleat_tensor *x, bool row) {
    return first(emit(graph, &view_op, (op_attr){.row = row, .n_out = 1}, x, NULL, NULL));
}

static cleat_tensor *next(cleat_graph *graph, const cleat_op *op, cleat_tensor *x) {
    return first(emit(graph, op, (op_attr){.n_out = 1}, x, NULL, NULL));
}

static cleat_tensor *input(cleat_graph *graph, const char *name) {
    return cleat_input(graph, name, CLEAT_F32, 2, (int64_t[]){2, E / 2});
}

static cleat_tensor *wanted_input(cleat_graph *graph, const char *name) {
    cleat_tensor *x = input(graph, name);
    cleat_require_grad(graph, x);
    return x;
}

static void differentiate(cleat_graph *graph, cleat_tensor *y) {
    cleat_tensor *seed = input(graph, "seed");
    cleat_backward_from(graph, &y, &seed, 1);
}

/* --- the interpreter: runs graphs in the memory layout of their plan --- */

typedef struct machine {
    const world *w;
    cleat_plan *plan;
    unsigned char **slabs; /* [plan->slab_count] */
} machine;

static float *at(const machine *m, const cleat_tensor *tensor) {
    cleat_slab_place place = cleat_plan_place(m->plan, &m->plan->layouts[0], tensor);
    assert_true(place.slab >= 0);
    return (float *)(void *)(m->slabs[place.slab] + place.offset);
}

static void put(const machine *m, const cleat_tensor *tensor, uint32_t stream) {
    cleat_random random = cleat_random_stream(7, stream, 0);
    for (int e = 0; e < E; ++e) at(m, tensor)[e] = (float)(2 * cleat_random_uniform(&random) - 1);
}

/* Everything except inputs, parameters and states is initially NaN. */
static machine machine_open(const world *w) {
    machine m = {.w = w, .plan = checked_plan(w)};
    m.slabs = calloc(m.plan->slab_count, sizeof *m.slabs);
    for (size_t s = 0; s < m.plan->slab_count; ++s) {
        size_t bytes = (size_t)m.plan->slabs[s].bytes;
        m.slabs[s] = malloc(bytes);
        memset(m.slabs[s], m.plan->slabs[s].category == CLEAT_BYTES_ARENA ? 0xff : 0, bytes);
    }
    for (size_t i = 0; i < w->graph->tensor_count; ++i)
        if (w->graph->tensors[i]->role == CLEAT_ROLE_INPUT) put(&m, w->graph->tensors[i], (uint32_t)i);
    for (size_t i = 0; i < w->store->count && m.plan->flat[CLEAT_FLAT_PARAMETERS].slab >= 0; ++i)
        put(&m, w->store->params[i], 1000 + (uint32_t)i);
    return m;
}

static void machine_close(machine *m) {
    for (size_t s = 0; s < m->plan->slab_count; ++s) free(m->slabs[s]);
    free(m->slabs);
    cleat_plan_destroy(m->plan);
}

static bool dropped(uint32_t stream, int e) {
    return (stream * 2654435761u + (uint32_t)e * 40503u) >> 13 & 1;
}

/* Computes one element. `in` holds 0 for an absent tensor. Gradients need not be correct, only sensitive to
 * every input and to the order of additions. */
static void compute(const cleat_node *node, int e, const float *in, float *out) {
    const cleat_op *op = node->op;
    if (op == &mix) out[0] = in[0] * in[1] / (1 + in[0] * in[0]) + 0.5f * in[2], out[1] = 0.6f * in[0] - 0.3f * in[1];
    if (op == &mix_grad) {
        out[0] = in[5] + (in[0] * in[3] + 0.6f * in[1]);
        out[1] = in[6] + (in[0] * in[2] - 0.3f * in[1]);
        out[2] = in[7] + (0.5f * in[0] + 0.01f * in[4]);
    }
    if (op == &drop) out[0] = dropped(attr_of(node)->stream, e) ? 0 : 1.3f * in[0];
    if (op == &drop_grad) out[0] = in[1] + (dropped(attr_of(node)->stream, e) ? 0 : 1.3f * in[0]);
    if (op == &plus || op == &plus_grad) out[0] = in[0] + in[1];
    if (op == &stop) out[0] = 0.5f * in[0];
    if (op == &unit || op == &soft) out[0] = in[0] / (1.1f + in[0] * in[0]);
    if (op == &unit_grad) out[0] = in[2] + in[0] * in[1];
    if (op == &running) out[0] = in[0] * in[1] - 0.2f * in[2], out[1] = 0.9f * in[2] + 0.1f * in[0];
    if (op == &running_grad) out[0] = in[3] + in[0] * in[2], out[1] = in[4] + in[0] * in[1];
    if (op == &tally) out[0] = in[0] + in[1];
}

static void run_node(const machine *m, const cleat_node *node) {
    const cleat_slab_place scratch_place = m->plan->layouts[0].workspaces[node->index];
    if (scratch_place.slab >= 0) memset(m->slabs[scratch_place.slab] + scratch_place.offset, 0xff, BLOCK);
    for (int e = 0; e < E; ++e) {
        float in[CLEAT_MAX_IN] = {0}, out[CLEAT_MAX_OUT] = {0};
        for (int i = 0; i < node->n_in; ++i) in[i] = node->in[i] ? at(m, node->in[i])[e] : 0;
        compute(node, e, in, out);
        for (int i = 0; i < node->n_out; ++i)
            if (node->out[i]) at(m, node->out[i])[e] = out[i];
    }
}

static machine run(const world *w) {
    machine m = machine_open(w);
    for (size_t i = 0; i < w->graph->node_count; ++i)
        if (w->graph->nodes[i]->op->variants) run_node(&m, w->graph->nodes[i]);
    return m;
}

/* --- segments and groups --- */

static void segments_are_counted(void **state) {
    (void)state;
    world w = world_create(1);
    cleat_tensor *x = wanted_input(w.graph, "x");
    assert_int_equal(cleat_graph_segments(w.graph), 0);
    cleat_segment(w.graph);
    cleat_segment(w.graph);
    assert_int_equal(cleat_graph_segments(w.graph), 0);
    for (size_t i = 1; i <= 20; ++i) {
        x = next(w.graph, &unit, next(w.graph, &unit, x));
        cleat_segment(w.graph);
        cleat_segment(w.graph);
        assert_int_equal(cleat_graph_segments(w.graph), i);
    }
    differentiate(w.graph, x);
    cleat_segment(w.graph);
    assert_int_equal(cleat_graph_segments(w.graph), 20);
    world_destroy(&w);
}

static void wrong_calls_are_refused(void **state) {
    (void)state;
    world w = world_create(-1), late = world_create(0);
    assert_int_equal(cleat_graph_status(w.graph, NULL), CLEAT_ERR_ARGUMENT);
    cleat_segment(w.graph);
    assert_int_equal(cleat_graph_segments(w.graph), 0);
    differentiate(late.graph, next(late.graph, &unit, wanted_input(late.graph, "x")));
    assert_int_equal(cleat_graph_status(late.graph, NULL), CLEAT_OK);
    cleat_graph_set_recompute(late.graph, 2);
    assert_int_equal(cleat_graph_status(late.graph, NULL), CLEAT_ERR_ARGUMENT);
    world_destroy(&w);
    world_destroy(&late);
}

/* `segments` of `length` nodes, one node before and one after. */
static world chain_with_ends(int segments, int length, int recompute) {
    world w = world_create(recompute);
    cleat_scope(w.graph, "before/");
    cleat_tensor *x = next(w.graph, &unit, wanted_input(w.graph, "x"));
    for (int s = 0; s < segments; ++s) {
        cleat_segment(w.graph);
        for (int i = 0; i < length; ++i) {
            cleat_scope(w.graph, "s%d.%d/", s, i);
            x = next(w.graph, &unit, x);
        }
    }
    cleat_segment(w.graph);
    cleat_scope(w.graph, "after/");
    differentiate(w.graph, next(w.graph, &unit, x));
    return w;
}

static void copies_are_marked_and_in_place(void **state) {
    (void)state;
    static const char *const expected[] = {
        "after/unit_grad",   "s4.1/unit_grad",    "s4.0/unit_grad", /* the last group is still in memory */
        "s2.0/unit (again)", "s2.1/unit (again)", "s3.0/unit (again)", "s3.1/unit_grad",    "s3.0/unit_grad",
        "s2.1/unit_grad",    "s2.0/unit_grad",    "s0.0/unit (again)", "s0.1/unit (again)", "s1.0/unit (again)",
        "s1.1/unit_grad",    "s1.0/unit_grad",    "s0.1/unit_grad",    "s0.0/unit_grad",    "before/unit_grad"};
    world w = chain_with_ends(5, 2, 2);
    assert_int_equal(w.graph->forward_nodes, 12);
    assert_int_equal(w.graph->node_count, 12 + sizeof expected / sizeof *expected);
    for (size_t i = 0; i < w.graph->node_count; ++i) {
        const cleat_node *node = w.graph->nodes[i];
        assert_int_equal(node->index, i);
        assert_int_equal(node->recomputed, strstr(node->name, "(again)") != NULL);
        if (i >= 12) assert_string_equal(node->name, expected[i - 12]);
    }
    const cleat_tensor *original = cleat_graph_find(w.graph, "s2.0/unit");
    const cleat_tensor *copy = cleat_graph_find(w.graph, "s2.0/unit (again)");
    assert_true(original && original->index < 13 && original->recomputed == copy);
    assert_true(copy && copy->recompute_of == original && copy->producer->recomputed);
    assert_ptr_equal(cleat_gradient(w.graph, copy), cleat_gradient(w.graph, original));
    assert_string_equal(cleat_gradient(w.graph, copy)->name, "ds2.0/unit");
    assert_null(cleat_graph_find(w.graph, "s3.1/unit (again)")); /* it would have no consumer */
    for (size_t i = 0; i < w.graph->tensor_count; ++i) assert_int_equal(w.graph->tensors[i]->index, i);
    world_destroy(&w);
}

/* A group that covers all segments is the last one, which is never recomputed. */
static void groups_as_large_as_the_model_change_nothing(void **state) {
    (void)state;
    world stored = chain_with_ends(3, 2, 0);
    for (int recompute = 3; recompute < 6; ++recompute) {
        world w = chain_with_ends(3, 2, recompute);
        assert_int_equal(w.graph->node_count, stored.graph->node_count);
        assert_int_equal(w.graph->tensor_count, stored.graph->tensor_count);
        world_destroy(&w);
    }
    world_destroy(&stored);
}

/* A group without gradients is not recomputed. */
static void groups_without_gradient_cost_nothing(void **state) {
    (void)state;
    world w = world_create(1);
    cleat_tensor *x = input(w.graph, "x"); /* its gradient is not required */
    for (int s = 0; s < 4; ++s) {
        cleat_segment(w.graph);
        x = next(w.graph, &unit, next(w.graph, &unit, x));
    }
    cleat_segment(w.graph);
    cleat_tensor *p = cleat_param(w.graph, "p", 2, (int64_t[]){2, E / 2}, (cleat_init){CLEAT_INIT_ZERO, 0});
    differentiate(w.graph, first(emit(w.graph, &plus, (op_attr){.n_out = 1}, next(w.graph, &unit, p), x, NULL)));
    assert_int_equal(w.graph->node_count, w.graph->forward_nodes + 1);
    world_destroy(&w);
}

/* A recomputed copy that is itself a gradient remains readable by the host. */
static void own_backward(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    (void)dout;
    cleat_set_gradient(graph, node->in[0], node->out[0]);
}

static void copies_that_are_gradients_stay(void **state) {
    (void)state;
    static const cleat_op own = {.name = "own",
                                 .optional_inputs = CLEAT_EVERY_INPUT,
                                 .infer = infer,
                                 .backward = own_backward,
                                 .variants = plain};
    world w = world_create(1);
    cleat_tensor *x = wanted_input(w.graph, "x");
    cleat_segment(w.graph);
    cleat_tensor *y = next(w.graph, &own, x);
    cleat_segment(w.graph);
    cleat_tensor *z = next(w.graph, &unit, y);
    cleat_segment(w.graph);
    differentiate(w.graph, z);
    const cleat_tensor *gradient = cleat_gradient(w.graph, x);
    assert_ptr_equal(gradient, y->recomputed);
    assert_ptr_equal(w.graph->nodes[gradient->producer->index], gradient->producer);
    world_destroy(&w);
}

/* --- memory saved --- */

/* A chain of S segments of k nodes whose gradients need the node's input. With G groups of m = n k nodes, the
 * first G - 1 groups leave a checkpoint each; m activations of a group are alive, or m - 1 and a gradient:
 *     bound = (G - 1 + m) blocks,   G = ceil(S / n);  G = 1 and m = S k without recomputation,
 * the minimum of which is near 2 sqrt(S k) (Chen et al. 2016). */
static void bound_of_a_chain_is_checkpoints_and_one_group(void **state) {
    (void)state;
    for (int segments = 1; segments <= 12; ++segments)
        for (int length = 1; length <= 4; ++length)
            for (int n = 0; n <= segments + 1; ++n) {
                int groups = n ? (segments + n - 1) / n : 1, nodes = groups > 1 ? n * length : segments * length;
                world w = world_create(n);
                cleat_tensor *x = wanted_input(w.graph, "x");
                for (int i = 0; i < segments * length; ++i) {
                    if (i % length == 0) cleat_segment(w.graph);
                    x = next(w.graph, &unit, x);
                }
                cleat_segment(w.graph);
                differentiate(w.graph, x);
                assert_int_equal(w.graph->node_count, 2 * segments * length + (groups - 1) * (nodes - 1));
                cleat_plan *plan = checked_plan(&w);
                if (cleat_plan_lower_bound(plan) != (int64_t)(groups - 1 + nodes) * BLOCK)
                    fail_msg("%d segments of %d, groups of %d: %lld blocks, not %d", segments, length, n,
                             (long long)cleat_plan_lower_bound(plan) / BLOCK, groups - 1 + nodes);
                cleat_plan_destroy(plan);
                world_destroy(&w);
            }
}

static void transformers_need_less(void **state) {
    (void)state;
    fake_transformer model = {.layers = 12, .rows = 1024, .width = 256, .hidden = 1024, .heads = 8, .train = true};
    int64_t stored = 0;
    for (int i = 0; i <= model.layers + 1; ++i) {
        const int n = i <= model.layers ? i : CHEAP;
        world w = world_create(n);
        assert_non_null(fake_transformer_build(w.graph, &model));
        assert_int_equal(cleat_graph_segments(w.graph), model.layers);
        cleat_plan *plan = checked_plan(&w);
        int64_t bound = cleat_plan_lower_bound(plan), arena = cleat_plan_category_bytes(plan, CLEAT_BYTES_ARENA);
        if (n == 0) stored = bound;
        print_message("12 blocks, groups of %2d: %6.1f MiB, arena %.4f of it, peak at %s\n", n,
                      (double)bound / 1048576.0, (double)arena / (double)bound, cleat_plan_peak_node(plan));
        assert_true(arena <= bound + bound / 20);
        if (n == model.layers) assert_true(bound == stored);
        if (n > 0 && n <= 4) assert_true(bound < stored / 2);
        if (n == CHEAP) assert_true(bound < stored * 3 / 4);
        cleat_plan_destroy(plan);
        world_destroy(&w);
    }
}

/* --- single outputs --- */

static size_t copies_of(const cleat_graph *graph, const cleat_op *op) {
    size_t count = 0;
    for (size_t n = 0; n < graph->node_count; ++n)
        count += graph->nodes[n]->recomputed && (!op || graph->nodes[n]->op == op);
    return count;
}

/* A cheap output that a gradient reads, even through a reshape, is repeated once, whatever else reads it. */
static void cheap_outputs_are_repeated_alone(void **state) {
    (void)state;
    world w = world_create(CHEAP);
    cleat_tensor *x = next(w.graph, &unit, wanted_input(w.graph, "x")), *y = next(w.graph, &soft, x);
    cleat_tensor *row = view(w.graph, y, true), *z = next(w.graph, &unit, row);
    cleat_tensor *other = next(w.graph, &unit, y);
    cleat_node *sum = emit(w.graph, &plus, (op_attr){.n_out = 1}, view(w.graph, z, false), other, NULL);
    differentiate(w.graph, first(sum));
    cleat_plan_destroy(checked_plan(&w));
    assert_int_equal(copies_of(w.graph, &soft), 1);
    assert_int_equal(copies_of(w.graph, &view_op), 1);
    assert_int_equal(copies_of(w.graph, NULL), 2);
    assert_non_null(y->recomputed);
    assert_null(x->recomputed);
    world_destroy(&w);
}

/* Not repeated: outputs that no gradient reads, that need none, or that need another repetition first. */
static void nothing_else_is_repeated(void **state) {
    (void)state;
    world unread = world_create(CHEAP), frozen = world_create(CHEAP), chain = world_create(CHEAP),
          late = world_create(0);
    cleat_tensor *x = next(unread.graph, &soft, wanted_input(unread.graph, "x"));
    differentiate(unread.graph, next(unread.graph, &drop, x));
    assert_int_equal(copies_of(unread.graph, NULL), 0);
    x = next(frozen.graph, &soft, input(frozen.graph, "x"));
    cleat_node *both = emit(frozen.graph, &mix, (op_attr){.n_out = 1}, x, wanted_input(frozen.graph, "y"), NULL);
    differentiate(frozen.graph, first(both));
    assert_int_equal(copies_of(frozen.graph, NULL), 0);
    x = next(chain.graph, &soft, next(chain.graph, &soft, wanted_input(chain.graph, "x")));
    differentiate(chain.graph, next(chain.graph, &unit, x));
    assert_int_equal(copies_of(chain.graph, NULL), 1); /* the first, for the gradient of the second */
    assert_null(x->recomputed);
    differentiate(late.graph, next(late.graph, &unit, wanted_input(late.graph, "x")));
    cleat_graph_recompute_cheap(late.graph);
    assert_int_equal(cleat_graph_status(late.graph, NULL), CLEAT_ERR_ARGUMENT);
    world_destroy(&unread);
    world_destroy(&frozen);
    world_destroy(&chain);
    world_destroy(&late);
}

/* --- bit-identical results --- */

enum { MOST = 256 };

typedef struct builder {
    cleat_graph *graph;
    cleat_random random;
    cleat_tensor *made[MOST];
    uint32_t count;
    cleat_tensor *param, *state;
} builder;

static uint32_t below(builder *b, uint32_t n) {
    return cleat_random_below(&b->random, n);
}

/* Mostly one of the last few tensors, occasionally any: residuals and reads across segments. */
static cleat_tensor *any(builder *b) {
    uint32_t recent = b->count < 5 || below(b, 5) == 0 ? b->count : 5;
    return b->made[b->count - 1 - below(b, recent)];
}

static void made(builder *b, const cleat_node *node) {
    for (int i = 0; node && i < node->n_out; ++i) {
        if (!node->out[i] || node->out[i]->role != CLEAT_ROLE_ACTIVATION) continue;
        assert_in_range(b->count, 0, MOST - 1);
        b->made[b->count++] = node->out[i];
        if (below(b, 12) == 0) cleat_retain(b->graph, node->out[i]);
    }
}

static void random_node(builder *b) {
    cleat_tensor *x = any(b), *y = any(b), *z = below(b, 2) ? any(b) : NULL;
    switch (below(b, 10)) {
    case 0:
        made(b, emit(b->graph, &drop, (op_attr){.stream = below(b, 1u << 31), .n_out = 1}, x, NULL, NULL));
        return;
    case 1:
        made(b, emit(b->graph, &view_op, (op_attr){.row = x->shape[0] != 1, .n_out = 1}, x, NULL, NULL));
        return;
    case 2:
        made(b, emit(b->graph, &stop, (op_attr){.n_out = 1}, x, NULL, NULL));
        return;
    case 3:
        emit(b->graph, &tally, (op_attr){0}, x, b->state, NULL);
        return;
    case 4:
        if (x != b->param) made(b, emit(b->graph, &running, (op_attr){0}, x, b->param, b->state));
        return;
    case 5:
        made(b, emit(b->graph, &soft, (op_attr){.n_out = 1}, x, NULL, NULL));
        return;
    case 6:
        if (cleat_same_shape(x, y)) made(b, emit(b->graph, &plus, (op_attr){.n_out = 1}, x, y, NULL));
        return;
    default:
        if (x != y && x != z && y != z)
            made(b, emit(b->graph, &mix, (op_attr){.n_out = 1 + (int)below(b, 2)}, x, y, z));
    }
}

/* Builds the same graph for every value of `recompute`. */
static world random_world(uint32_t round, int recompute) {
    world w = world_create(recompute);
    builder b = {.graph = w.graph, .random = cleat_random_stream(3, round, 0)};
    int64_t shape[] = {2, E / 2};
    b.state = cleat_state(w.graph, "state", CLEAT_F32, 2, shape);
    for (int i = 0; i < 4; ++i) {
        char name[8];
        snprintf(name, sizeof name, "leaf%d", i);
        b.made[b.count++] = i < 2 ? wanted_input(w.graph, name)
                                  : cleat_param(w.graph, name, 2, shape, (cleat_init){CLEAT_INIT_ZERO, 0});
    }
    b.param = b.made[3];
    uint32_t segments = below(&b, 9), most = 3 + below(&b, 9);
    for (uint32_t s = 0; s < segments + 2; ++s) { /* the first before all marks, the last after */
        for (uint32_t i = below(&b, most + 1); i > 0; --i) random_node(&b);
        cleat_segment(w.graph);
    }
    uint32_t n = b.count;
    cleat_node *last = emit(w.graph, &mix, (op_attr){.n_out = 1}, b.made[n - 1], b.made[n - 2], b.made[n - 3]);
    cleat_tensor *y = view(w.graph, first(last), false);
    cleat_retain(w.graph, y);
    differentiate(w.graph, y);
    for (size_t i = 0; i < w.graph->gradient_count; ++i)
        if (round % 2 || b.made[0]->index == (int)i || b.made[1]->index == (int)i)
            cleat_retain(w.graph, w.graph->gradients[i]);
    return w;
}

/* Numbers of cases that a test of many graphs covers. */
typedef struct tally_of_copies {
    int nodes, views, stateful, across;
} tally_of_copies;

static void assert_not_replaced(const cleat_node *consumer, const cleat_tensor *x) {
    if (x && x->recomputed)
        assert_true(x->recomputed->producer->recomputed && x->recomputed->producer->index >= consumer->index);
}

/* After a tensor has been recomputed, no node reads the original. */
static void assert_copies_replace_originals(const cleat_graph *graph) {
    for (size_t n = graph->forward_nodes; n < graph->node_count; ++n) {
        const cleat_node *node = graph->nodes[n];
        assert_int_equal(node->index, n);
        for (int i = 0; i < node->n_in; ++i) {
            const cleat_tensor *x = node->in[i];
            assert_not_replaced(node, x);
            if (x) assert_not_replaced(node, x->base);
        }
    }
}

static void count_copies(const cleat_graph *graph, tally_of_copies *found) {
    for (size_t n = 0; n < graph->node_count; ++n) {
        const cleat_node *node = graph->nodes[n];
        found->nodes += node->recomputed;
        found->views += node->recomputed && node->op == &view_op;
        for (int i = 0; i < node->n_in && node->op == &running_grad; ++i)
            found->stateful += node->in[i] && node->in[i]->recompute_of;
        for (int i = 0; i < node->n_in && node->recomputed; ++i)
            found->across += node->in[i] && node->in[i]->producer && !node->in[i]->recompute_of;
        for (int i = 0; i < node->n_out && node->recomputed; ++i)
            assert_int_equal(node->out[i]->role, CLEAT_ROLE_ACTIVATION);
    }
}

static void assert_same(const machine *a, const cleat_tensor *x, const machine *b, const cleat_tensor *y) {
    assert_int_equal(x == NULL, y == NULL);
    if (!x) return;
    assert_string_equal(x->name, y->name);
    if (memcmp(at(a, x), at(b, y), BLOCK) != 0) fail_msg("'%s': %g and %g", x->name, at(a, x)[0], at(b, y)[0]);
}

static bool is_kept(const cleat_tensor *tensor) {
    return tensor && cleat_root(tensor)->retain;
}

static void assert_same_results(const machine *a, const machine *b) {
    const cleat_graph *x = a->w->graph, *y = b->w->graph;
    assert_int_equal(x->gradient_count, y->gradient_count);
    for (size_t i = 0; i < x->gradient_count; ++i) {
        if (is_kept(x->tensors[i])) assert_same(a, x->tensors[i], b, y->tensors[i]);
        if (is_kept(x->gradients[i])) assert_same(a, x->gradients[i], b, y->gradients[i]);
        assert_int_equal(x->gradients[i] == NULL, y->gradients[i] == NULL);
    }
    assert_int_equal(a->plan->flat[CLEAT_FLAT_GRADIENTS].slab, b->plan->flat[CLEAT_FLAT_GRADIENTS].slab);
    for (size_t i = 0; i < a->w->store->count && a->plan->flat[CLEAT_FLAT_GRADIENTS].slab >= 0; ++i)
        assert_same(a, a->w->store->grads[i], b, b->w->store->grads[i]);
    assert_same(a, a->w->store->states[0], b, b->w->store->states[0]);
}

static void random_graphs_give_the_same_bits(void **state) {
    (void)state;
    static const int ways[] = {1, 2, 3, 4, CHEAP};
    tally_of_copies found = {0};
    int less = 0, more = 0;
    for (uint32_t round = 0; round < 300; ++round) {
        world stored = random_world(round, 0);
        machine expected = run(&stored);
        for (size_t i = 0; i < sizeof ways / sizeof *ways; ++i) {
            world w = random_world(round, ways[i]);
            machine got = run(&w);
            assert_copies_replace_originals(w.graph);
            assert_same_results(&expected, &got);
            count_copies(w.graph, &found);
            int64_t saved = cleat_plan_lower_bound(expected.plan) - cleat_plan_lower_bound(got.plan);
            less += saved > 0;
            more += saved < 0;
            machine_close(&got);
            world_destroy(&w);
        }
        machine_close(&expected);
        world_destroy(&stored);
    }
    print_message("1500 graphs: %d copies, %d of them views, %d read from other groups, %d read for a node with a "
                  "state; less memory in %d, more in %d\n",
                  found.nodes, found.views, found.across, found.stateful, less, more);
    assert_true(found.nodes > 1000 && found.views > 100 && found.across > 100 && found.stateful > 10 && less > 100);
}

/* --- allocation failures --- */

static cleat_status build(cleat_error *error) {
    const fake_transformer shape = {.layers = 4, .rows = 24, .width = 16, .hidden = 32, .heads = 2, .train = true};
    world w = {NULL, NULL};
    cleat_status status = cleat_store_create(&w.store, error);
    if (!status) status = cleat_graph_create(w.store, "train", &w.graph, error);
    if (!status) {
        cleat_graph_set_recompute(w.graph, 2);
        fake_transformer_build(w.graph, &shape);
        status = cleat_graph_status(w.graph, error);
    }
    world_destroy(&w);
    return status;
}

static void failed_allocations_are_reported(void **state) {
    (void)state;
    cleat_status status = CLEAT_ERR_MEMORY;
    long n = 0;
    while (status) {
        cleat_error error = {0};
        cleat_fail_allocation(++n);
        status = build(&error);
        cleat_fail_allocation(0);
        if (status && (status != CLEAT_ERR_MEMORY || !error.text[0]))
            fail_msg("allocation %ld: %d '%s'", n, status, error.text);
        assert_in_range(n, 1, 5000);
    }
    assert_true(n > 100);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(segments_are_counted),
        cmocka_unit_test(wrong_calls_are_refused),
        cmocka_unit_test(copies_are_marked_and_in_place),
        cmocka_unit_test(groups_as_large_as_the_model_change_nothing),
        cmocka_unit_test(groups_without_gradient_cost_nothing),
        cmocka_unit_test(copies_that_are_gradients_stay),
        cmocka_unit_test(bound_of_a_chain_is_checkpoints_and_one_group),
        cmocka_unit_test(transformers_need_less),
        cmocka_unit_test(cheap_outputs_are_repeated_alone),
        cmocka_unit_test(nothing_else_is_repeated),
        cmocka_unit_test(random_graphs_give_the_same_bits),
        cmocka_unit_test(failed_allocations_are_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
