/* The graph builder and autodiff: sticky errors, shared parameters, and gradients. A small graph interpreter
 * compares the gradients with finite differences. */
/* ctest: quick */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/memory.h"
#include "core/philox.h"
#include "fake_ops.h"
#include "graph/plan.h"
#include "graph/store.h"

typedef struct world {
    cleat_store *store;
    cleat_graph *graph;
} world;

static world world_create(const char *name) {
    world w = {NULL, NULL};
    assert_int_equal(cleat_store_create(&w.store, NULL), CLEAT_OK);
    assert_int_equal(cleat_graph_create(w.store, name, &w.graph, NULL), CLEAT_OK);
    return w;
}

static void world_destroy(world *w) {
    cleat_graph_destroy(w->graph);
    cleat_store_destroy(w->store);
}

static const cleat_init zero = {CLEAT_INIT_ZERO, 0};

static void assert_failed(const cleat_graph *graph, cleat_status status, const char *const *words) {
    cleat_error error = {0};
    assert_int_equal(cleat_graph_status(graph, &error), status);
    for (; *words; ++words)
        if (!strstr(error.text, *words)) fail_msg("'%s' lacks '%s'", error.text, *words);
}
#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* --- errors --- */

static cleat_status refuse_all(cleat_node *node, cleat_error *error) {
    char shape[96];
    cleat_tensor_describe(node->in[0], shape, sizeof shape);
    return cleat_infer_fail(node, error, "%s does not please", shape);
}

static const cleat_op picky = {.name = "picky", .infer = refuse_all};

static void first_error_is_kept_and_named(void **state) {
    (void)state;
    world w = world_create("nursery");
    cleat_tensor *x = cleat_input(w.graph, "x", CLEAT_F16, 2, (int64_t[]){3, 17});
    cleat_scope(w.graph, "blocks.%d.", 4);
    assert_null(cleat_emit(w.graph, &picky, NULL, 0, &x, 1));
    assert_failed(w.graph, CLEAT_ERR_SHAPE, WORDS("nursery", "picky", "blocks.4.picky", "f16 [3, 17]"));
    assert_null(cleat_input(w.graph, "y", CLEAT_F32, 0, NULL));
    cleat_graph_fail(w.graph, CLEAT_ERR_IO, "a later one");
    assert_failed(w.graph, CLEAT_ERR_SHAPE, WORDS("does not please"));
    world_destroy(&w);
}

static void nothing_is_built_after_an_error(void **state) {
    (void)state;
    world w = world_create("g");
    cleat_tensor *x = cleat_input(w.graph, "x", CLEAT_F32, 2, (int64_t[]){2, 2});
    cleat_graph_fail(w.graph, CLEAT_ERR_ARGUMENT, "enough");
    size_t nodes = cleat_graph_nodes(w.graph);
    assert_null(cleat_param(w.graph, "p", 1, (int64_t[]){4}, zero));
    assert_null(cleat_state(w.graph, "s", CLEAT_F32, 1, (int64_t[]){4}));
    assert_null(fake_unary(w.graph, &fake_op, x));
    assert_null(fake_unary(w.graph, &fake_op, NULL));
    cleat_retain(w.graph, NULL);
    cleat_require_grad(w.graph, NULL);
    assert_false(cleat_requires_grad(NULL));
    cleat_backward(w.graph, NULL, NULL);
    assert_int_equal(cleat_graph_nodes(w.graph), nodes);
    assert_int_equal(cleat_store_count(w.store), 0);
    assert_failed(w.graph, CLEAT_ERR_ARGUMENT, WORDS("enough"));
    world_destroy(&w);
}

static void impossible_shapes_are_refused(void **state) {
    (void)state;
    static const struct {
        int rank;
        int64_t shape[2];
    } rows[] = {{0, {0}}, {CLEAT_MAX_RANK + 1, {1, 1}}, {1, {0}}, {2, {4, -1}}, {2, {INT64_MAX / 8, 9}}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i)
        for (int kind = 0; kind < 4; ++kind) {
            world w = world_create("g");
            if (kind == 3) assert_null(cleat_buffer(w.graph, "odd", rows[i].rank, rows[i].shape, 1));
            if (kind == 0) assert_null(cleat_input(w.graph, "odd", CLEAT_F32, rows[i].rank, rows[i].shape));
            if (kind == 1) assert_null(cleat_param(w.graph, "odd", rows[i].rank, rows[i].shape, zero));
            if (kind == 2) assert_null(cleat_state(w.graph, "odd", CLEAT_F32, rows[i].rank, rows[i].shape));
            assert_failed(w.graph, CLEAT_ERR_SHAPE, WORDS("odd"));
            world_destroy(&w);
        }
}

/* --- parameters and states --- */

static void parameter_is_shared_by_name(void **state) {
    (void)state;
    world w = world_create("one");
    cleat_graph *other = NULL;
    assert_int_equal(cleat_graph_create(w.store, "two", &other, NULL), CLEAT_OK);
    cleat_tensor *p = cleat_param(w.graph, "w", 2, (int64_t[]){3, 5}, zero);
    cleat_tensor *q = cleat_param(w.graph, "b", 1, (int64_t[]){7}, zero);
    assert_ptr_equal(cleat_param(other, "w", 2, (int64_t[]){3, 5}, zero), p);
    assert_ptr_equal(cleat_store_find(w.store, "w"), p);
    assert_null(cleat_store_find(w.store, "ww"));
    assert_int_equal(cleat_store_count(w.store), 2);
    assert_int_equal(cleat_store_elements(w.store), 15 + 7);
    assert_string_equal(cleat_tensor_name(cleat_store_grad(w.store, 0)), "w");
    assert_true(p->flat_offset % 64 == 0 && q->flat_offset % 64 == 0 && q->flat_offset >= p->flat_offset + 15);
    assert_null(cleat_param(other, "w", 2, (int64_t[]){5, 3}, zero));
    assert_failed(other, CLEAT_ERR_SHAPE, WORDS("two", "'w'", "f32 [3, 5]", "f32 [5, 3]"));
    assert_int_equal(cleat_graph_status(w.graph, NULL), CLEAT_OK);
    cleat_graph_destroy(other);
    world_destroy(&w);
}

static void state_has_one_shape_and_type(void **state) {
    (void)state;
    world w = world_create("g");
    cleat_tensor *s = cleat_state(w.graph, "ring", CLEAT_F32, 1, (int64_t[]){6});
    assert_ptr_equal(cleat_state(w.graph, "ring", CLEAT_F32, 1, (int64_t[]){6}), s);
    assert_null(cleat_state(w.graph, "ring", CLEAT_I32, 1, (int64_t[]){6}));
    assert_failed(w.graph, CLEAT_ERR_SHAPE, WORDS("ring"));
    world_destroy(&w);
}

static void buffer_is_shared_by_name(void **state) {
    (void)state;
    float values[6];
    world w = world_create("one");
    cleat_graph *other = NULL;
    assert_int_equal(cleat_graph_create(w.store, "two", &other, NULL), CLEAT_OK);
    cleat_state(w.graph, "terms", CLEAT_F32, 1, (int64_t[]){6});
    cleat_tensor *odd = cleat_buffer(w.graph, "odd", 1, (int64_t[]){3}, 0.5f);
    cleat_running_stats running = cleat_running_statistics(w.graph, "running", 3);
    assert_ptr_equal(cleat_buffer(other, "odd", 1, (int64_t[]){3}, 0.5f), odd);
    assert_ptr_equal(cleat_running_statistics(other, "running", 3).mean, running.mean);
    assert_ptr_equal(cleat_running_statistics(other, "running", 3).var, running.var);
    assert_string_equal(cleat_tensor_name(running.var), "running_var");
    assert_ptr_equal(cleat_store_buffer(w.store, 0), odd);
    assert_ptr_equal(cleat_store_buffer(w.store, 1), running.mean);
    assert_ptr_equal(cleat_store_buffer(w.store, 2), running.var);
    assert_null(cleat_store_buffer(w.store, 3));
    assert_int_equal(running.mean->flat_offset, 3);
    assert_int_equal(running.var->flat_offset, 6);
    assert_int_equal(cleat_store_count(w.store), 0);
    assert_false(cleat_requires_grad(odd));
    cleat_buffer_initialise(odd, values);
    for (int i = 0; i < 3; ++i) assert_true(values[i] == 0.5f);
    cleat_buffer_initialise(running.mean, values);
    cleat_buffer_initialise(running.var, values + 3);
    for (int i = 0; i < 6; ++i) assert_true(values[i] == (float)(i / 3));
    assert_int_equal(cleat_graph_status(other, NULL), CLEAT_OK);
    cleat_graph_destroy(other);
    world_destroy(&w);
}

/* A name identifies one object, because checkpoints address objects by name. */
static void buffer_has_a_name_of_its_own(void **state) {
    (void)state;
    for (int kind = 0; kind < 6; ++kind) {
        world w = world_create("g");
        const int64_t shape[1] = {6}, other[1] = {7};
        bool first = kind == 4 || kind == 5; /* the buffer is declared second */
        if (!first) cleat_buffer(w.graph, "seen", 1, shape, 1);
        if (kind == 0) assert_null(cleat_buffer(w.graph, "seen", 1, other, 1));
        if (kind == 1) assert_null(cleat_buffer(w.graph, "seen", 1, shape, 2));
        if (kind == 2) assert_null(cleat_state(w.graph, "seen", CLEAT_F32, 1, shape));
        if (kind == 3) assert_null(cleat_param(w.graph, "seen", 1, shape, zero));
        if (kind == 4) cleat_state(w.graph, "seen", CLEAT_F32, 1, shape);
        if (kind == 5) cleat_param(w.graph, "seen", 1, shape, zero);
        if (first) assert_null(cleat_buffer(w.graph, "seen", 1, shape, 0));
        cleat_status expected = kind == 3 || kind == 5 ? CLEAT_ERR_ARGUMENT : CLEAT_ERR_SHAPE;
        assert_failed(w.graph, expected, WORDS("'seen'", "buffer"));
        world_destroy(&w);
    }
}

/* The initial values of a parameter depend on seed and name, not on other declarations. */
static void starting_values_depend_on_seed_and_name(void **state) {
    (void)state;
    float alone[6], later[6], seeded[6];
    cleat_init uniform = {CLEAT_INIT_UNIFORM, 0.5f};
    world a = world_create("g"), b = world_create("g");
    cleat_tensor *p = cleat_param(a.graph, "w", 1, (int64_t[]){6}, uniform);
    cleat_param(b.graph, "first", 1, (int64_t[]){9}, uniform);
    cleat_tensor *q = cleat_param(b.graph, "w", 1, (int64_t[]){6}, uniform);
    cleat_param_initialise(p, 1, alone);
    cleat_param_initialise(q, 1, later);
    cleat_param_initialise(p, 2, seeded);
    assert_memory_equal(alone, later, sizeof alone);
    assert_memory_not_equal(alone, seeded, sizeof alone);
    for (int i = 0; i < 6; ++i) assert_true(alone[i] >= -0.5f && alone[i] < 0.5f);
    world_destroy(&a);
    world_destroy(&b);
}

/* --- operations on single numbers, with gradients according to graph.h --- */

static cleat_status infer_number(cleat_node *node, cleat_error *error) {
    int outputs = (int)node->attr[0];
    cleat_status status = CLEAT_OK;
    for (int i = 0; i < outputs && !status; ++i)
        status = cleat_set_output(node, i, CLEAT_F32, 1, (int64_t[]){1}, error);
    return status;
}

static const cleat_op plus_grad = {.name = "plus_grad"}, times_grad = {.name = "times_grad"},
                      mix_grad = {.name = "mix_grad"};

/* in: dy -> out: dx = accum + dy; no node if dy is the first gradient to arrive */
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

/* in: dy, factor of each target -> one gradient per node, because x * x has one target twice */
static void times_backward(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    for (int i = 0; i < 2; ++i)
        if (cleat_requires_grad(node->in[i]))
            cleat_emit_grads(graph, &(cleat_grads_spec){.op = &times_grad,
                                                        .in = (cleat_tensor *[]){dout[0], node->in[1 - i]},
                                                        .n_in = 2,
                                                        .targets = &node->in[i],
                                                        .n_targets = 1});
}

/* mix: (a, b) -> (a - 2 b, 3 b); a gradient may arrive at either output or both */
static void mix_backward(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    cleat_emit_grads(graph,
                     &(cleat_grads_spec){.op = &mix_grad, .in = dout, .n_in = 2, .targets = node->in, .n_targets = 2});
}

static const cleat_op plus = {.name = "plus", .infer = infer_number, .backward = plus_backward},
                      times = {.name = "times", .infer = infer_number, .backward = times_backward},
                      mix = {.name = "mix", .infer = infer_number, .backward = mix_backward},
                      stop = {.name = "stop", .infer = infer_number};

static cleat_node *emit(cleat_graph *graph, const cleat_op *op, cleat_tensor *a, cleat_tensor *b) {
    unsigned char outputs = op == &mix ? 2 : 1;
    return cleat_emit(graph, op, &outputs, 1, (cleat_tensor *[]){a, b}, b ? 2 : 1);
}

static cleat_tensor *number(cleat_graph *graph, const char *name) {
    return cleat_input(graph, name, CLEAT_F32, 1, (int64_t[]){1});
}

static cleat_tensor *add(cleat_graph *graph, cleat_tensor *a, cleat_tensor *b) {
    return emit(graph, &plus, a, b)->out[0];
}

static cleat_tensor *multiply(cleat_graph *graph, cleat_tensor *a, cleat_tensor *b) {
    return emit(graph, &times, a, b)->out[0];
}

/* --- the interpreter --- */

enum { MOST = 512 };

typedef struct values {
    double tensors[MOST], params[MOST], grads[MOST];
} values;

static double *value_of(values *v, const cleat_tensor *tensor) {
    double *list = tensor->role == CLEAT_ROLE_PARAMETER  ? v->params
                   : tensor->role == CLEAT_ROLE_GRADIENT ? v->grads
                                                         : v->tensors;
    assert_in_range(tensor->index, 0, MOST - 1);
    return &list[tensor->index];
}

static double read_value(values *v, const cleat_tensor *tensor) {
    return tensor ? *value_of(v, tensor) : 0;
}

static void run_node(values *v, const cleat_node *node) {
    double in[CLEAT_MAX_IN], out[CLEAT_MAX_OUT] = {0};
    for (int i = 0; i < node->n_in; ++i) in[i] = read_value(v, node->in[i]);
    if (node->op == &plus) out[0] = in[0] + in[1];
    if (node->op == &times) out[0] = in[0] * in[1];
    if (node->op == &stop) out[0] = in[0];
    if (node->op == &mix) out[0] = in[0] - 2 * in[1], out[1] = 3 * in[1];
    if (node->op == &plus_grad) out[0] = in[1] + in[0];
    if (node->op == &times_grad) out[0] = in[2] + in[0] * in[1];
    if (node->op == &mix_grad) out[0] = in[2] + in[0], out[1] = in[3] - 2 * in[0] + 3 * in[1];
    for (int i = 0; i < node->n_out; ++i)
        if (node->out[i]) *value_of(v, node->out[i]) = out[i];
}

static void run(values *v, const cleat_graph *graph, size_t nodes) {
    for (size_t i = 0; i < nodes; ++i) run_node(v, graph->nodes[i]);
}

/* The gradient of a tensor as computed by the graph; 0 if none arrives. */
static double gradient(values *v, const cleat_graph *graph, const cleat_tensor *x) {
    return read_value(v, cleat_gradient(graph, x));
}

/* --- gradients --- */

static void fan_out_accumulates(void **state) {
    (void)state;
    world w = world_create("g");
    cleat_tensor *x = number(w.graph, "x"), *a = number(w.graph, "a"), *seed = number(w.graph, "seed");
    cleat_require_grad(w.graph, x);
    cleat_tensor *loss = add(w.graph, multiply(w.graph, x, a), add(w.graph, multiply(w.graph, x, x), x));
    cleat_backward(w.graph, loss, seed);
    assert_int_equal(cleat_graph_status(w.graph, NULL), CLEAT_OK);
    values v = {.tensors = {[0] = 5, [1] = 7, [2] = 0.5}};
    run(&v, w.graph, w.graph->node_count);
    assert_true(gradient(&v, w.graph, x) == 0.5 * (7 + 2 * 5 + 1));
    assert_null(cleat_gradient(w.graph, a));
    world_destroy(&w);
}

/* y = x + f(x): the gradient of y passes to both summands unchanged. */
static void residual_passes_the_gradient_through(void **state) {
    (void)state;
    world w = world_create("g");
    cleat_tensor *x = number(w.graph, "x"), *z = number(w.graph, "z"), *seed = number(w.graph, "seed");
    cleat_require_grad(w.graph, x);
    cleat_require_grad(w.graph, z);
    cleat_tensor *loss = add(w.graph, x, z);
    cleat_backward(w.graph, loss, seed);
    assert_int_equal(cleat_graph_nodes(w.graph), 1); /* no node is added */
    assert_ptr_equal(cleat_gradient(w.graph, x), seed);
    assert_ptr_equal(cleat_gradient(w.graph, z), seed);
    world_destroy(&w);
}

static void unused_branches_cost_nothing(void **state) {
    (void)state;
    world w = world_create("g");
    cleat_tensor *x = number(w.graph, "x"), *seed = number(w.graph, "seed");
    cleat_tensor *p = cleat_param(w.graph, "p", 1, (int64_t[]){1}, zero);
    cleat_tensor *unused = multiply(w.graph, x, p), *used = multiply(w.graph, x, p);
    multiply(w.graph, unused, p);
    cleat_tensor *constant = multiply(w.graph, x, x);
    cleat_backward(w.graph, add(w.graph, used, constant), seed);
    assert_null(cleat_gradient(w.graph, unused));
    assert_false(cleat_requires_grad(constant));
    /* the gradient of p, through `used` */
    assert_int_equal(cleat_graph_nodes(w.graph), w.graph->forward_nodes + 1);
    world_destroy(&w);
}

static void op_without_gradient_blocks_it(void **state) {
    (void)state;
    world w = world_create("g");
    cleat_tensor *p = cleat_param(w.graph, "p", 1, (int64_t[]){1}, zero), *seed = number(w.graph, "seed");
    cleat_tensor *q = cleat_param(w.graph, "q", 1, (int64_t[]){1}, zero);
    cleat_tensor *blocked = emit(w.graph, &stop, p, NULL)->out[0];
    cleat_backward(w.graph, multiply(w.graph, blocked, q), seed);
    assert_int_equal(cleat_graph_status(w.graph, NULL), CLEAT_OK);
    assert_int_equal(cleat_graph_nodes(w.graph), w.graph->forward_nodes + 1); /* the gradient of q; p has none */
    world_destroy(&w);
}

/* A gradient node has the scope of its forward node. */
static void gradient_nodes_are_named_like_their_node(void **state) {
    (void)state;
    world w = world_create("g");
    cleat_tensor *p = cleat_param(w.graph, "p", 1, (int64_t[]){1}, zero), *seed = number(w.graph, "seed");
    cleat_scope(w.graph, "blocks.2/");
    cleat_tensor *y = multiply(w.graph, p, p);
    cleat_scope(w.graph, NULL);
    cleat_backward(w.graph, y, seed);
    assert_string_equal(w.graph->nodes[w.graph->forward_nodes]->name, "blocks.2/times_grad");
    world_destroy(&w);
}

static void graph_is_differentiated_once(void **state) {
    (void)state;
    world w = world_create("g");
    cleat_tensor *p = cleat_param(w.graph, "p", 1, (int64_t[]){1}, zero), *seed = number(w.graph, "seed");
    cleat_tensor *loss = multiply(w.graph, p, p);
    cleat_backward(w.graph, loss, seed);
    assert_int_equal(cleat_graph_status(w.graph, NULL), CLEAT_OK);
    cleat_backward(w.graph, loss, seed);
    assert_failed(w.graph, CLEAT_ERR_ARGUMENT, WORDS("differentiated twice"));
    world_destroy(&w);
}

static void seed_has_the_shape_of_the_loss(void **state) {
    (void)state;
    world w = world_create("g");
    cleat_tensor *p = cleat_param(w.graph, "p", 1, (int64_t[]){1}, zero);
    cleat_tensor *seed = cleat_input(w.graph, "seed", CLEAT_F32, 1, (int64_t[]){2});
    cleat_backward(w.graph, multiply(w.graph, p, p), seed);
    assert_failed(w.graph, CLEAT_ERR_SHAPE, WORDS("does not have its shape and type", "f32 [2]", "f32 [1]"));
    world_destroy(&w);
}

static void seed_has_the_type_of_the_loss(void **state) {
    (void)state;
    world w = world_create("g");
    cleat_tensor *p = cleat_param(w.graph, "p", 1, (int64_t[]){1}, zero);
    cleat_tensor *seed = cleat_input(w.graph, "seed", CLEAT_F16, 1, (int64_t[]){1});
    cleat_backward(w.graph, multiply(w.graph, p, p), seed);
    assert_failed(w.graph, CLEAT_ERR_SHAPE, WORDS("does not have its shape and type", "f16 [1]", "f32 [1]"));
    world_destroy(&w);
}

/* A node cannot have its own output as an accum. */
static void twice_emit_backward(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    cleat_emit_grads(graph, &(cleat_grads_spec){.op = &mix_grad,
                                                .in = (cleat_tensor *[]){dout[0], NULL},
                                                .n_in = 2,
                                                .targets = (cleat_tensor *[]){node->in[0], node->in[0]},
                                                .n_targets = 2});
}

static void one_node_gives_one_gradient_a_tensor(void **state) {
    (void)state;
    static const cleat_op twice = {.name = "twice", .infer = infer_number, .backward = twice_emit_backward};
    world w = world_create("g");
    cleat_tensor *x = number(w.graph, "x"), *seed = number(w.graph, "seed");
    cleat_require_grad(w.graph, x);
    cleat_backward(w.graph, emit(w.graph, &twice, x, NULL)->out[0], seed);
    assert_failed(w.graph, CLEAT_ERR_ARGUMENT, WORDS("mix_grad", "'x'"));
    world_destroy(&w);
}

static double loss_at(const cleat_graph *graph, const cleat_tensor *loss, const values *start,
                      const cleat_tensor *moved, double by) {
    values v = *start;
    *value_of(&v, moved) += by;
    run(&v, graph, graph->forward_nodes);
    return read_value(&v, loss);
}

/* Losses are polynomials of degree at most 2^4 in numbers of size 1. */
static void assert_gradient(world *w, values *done, const values *start, const cleat_tensor *loss,
                            const cleat_tensor *x) {
    const double h = 1e-5;
    double expected = (loss_at(w->graph, loss, start, x, h) - loss_at(w->graph, loss, start, x, -h)) / (2 * h);
    double found = gradient(done, w->graph, x);
    if (!(fabs(found - expected) <= 1e-5 * fmax(1, fabs(expected))))
        fail_msg("gradient of %s: %.10g, by differences %.10g", x->name, found, expected);
}

enum { LEAVES = 4, NODES = 14 };

/* Random graphs: each node reads any two earlier tensors, which gives fan-outs, residuals, unused branches
 * and squares. */
static void random_graphs_agree_with_differences(void **state) {
    (void)state;
    static const cleat_op *const ops[] = {&plus, &times, &mix, &plus};
    for (uint32_t round = 0; round < 200; ++round) {
        cleat_random random = cleat_random_stream(1, round, 0);
        world w = world_create("random");
        cleat_tensor *made[LEAVES + 2 * NODES], *leaves[LEAVES];
        int depth[LEAVES + 2 * NODES] = {0}, count = 0;
        values start = {0};
        for (int i = 0; i < LEAVES; ++i) {
            char name[8];
            snprintf(name, sizeof name, "leaf%d", i);
            leaves[i] = i < 2 ? number(w.graph, name) : cleat_param(w.graph, name, 1, (int64_t[]){1}, zero);
            if (i < 2) cleat_require_grad(w.graph, leaves[i]);
            *value_of(&start, leaves[i]) = 2 * cleat_random_uniform(&random) - 1;
            made[count++] = leaves[i];
        }
        cleat_tensor *seed = number(w.graph, "seed"), *loss = NULL;
        *value_of(&start, seed) = 1;
        for (int i = 0; i < NODES; ++i) {
            int a = (int)cleat_random_below(&random, (uint32_t)count),
                b = (int)cleat_random_below(&random, (uint32_t)count);
            int deepest = depth[a] > depth[b] ? depth[a] : depth[b];
            const cleat_op *op = ops[cleat_random_below(&random, 4)];
            if ((op == &times && deepest == 4) || (op == &mix && a == b)) op = &plus;
            cleat_node *node = emit(w.graph, op, made[a], made[b]);
            for (int k = 0; k < node->n_out; ++k, ++count) {
                made[count] = node->out[k];
                depth[count] = deepest + (op == &times);
            }
        }
        loss = multiply(w.graph, made[count - 1], made[count - 2]);
        cleat_backward(w.graph, loss, seed);
        cleat_error error = {0};
        if (cleat_graph_status(w.graph, &error) != CLEAT_OK) fail_msg("%s", error.text);
        values done = start;
        run(&done, w.graph, w.graph->node_count);
        for (int i = 0; i < LEAVES; ++i) assert_gradient(&w, &done, &start, loss, leaves[i]);
        world_destroy(&w);
    }
}

/* --- allocation failures --- */

static cleat_status build_and_plan(cleat_error *error) {
    const fake_transformer shape = {.layers = 2, .rows = 24, .width = 16, .hidden = 32, .heads = 2, .train = true};
    cleat_device_facts facts = {.alignment = 256, .max_allocation = (int64_t)1 << 30};
    cleat_store *store = NULL;
    cleat_graph *graph = NULL;
    cleat_plan *plan = NULL;
    cleat_status status = cleat_store_create(&store, error);
    if (!status) status = cleat_graph_create(store, "train", &graph, error);
    if (!status) {
        fake_transformer_build(graph, &shape);
        cleat_state(graph, "terms", CLEAT_F32, 1, (int64_t[]){4});
        cleat_running_statistics(graph, "running", 4);
        status = cleat_graph_status(graph, error);
    }
    if (!status) status = cleat_plan_create(&graph, 1, &facts, &plan, error);
    cleat_plan_destroy(plan);
    cleat_graph_destroy(graph);
    cleat_store_destroy(store);
    return status;
}

/* Returns whether the requested allocation failure is still pending, and cancels it. */
static bool still_to_come(long n) {
    bool found = false;
    for (long i = 0; i < n && !found; ++i) {
        void *memory = cleat_alloc(1, 1);
        found = !memory;
        cleat_free(memory);
    }
    cleat_fail_allocation(0);
    return found;
}

static void every_failed_allocation_is_reported(void **state) {
    (void)state;
    long n = 1;
    for (;; ++n) {
        cleat_error error = {0};
        cleat_fail_allocation(n);
        cleat_status status = build_and_plan(&error);
        if (!status) {
            assert_true(still_to_come(n));
            break;
        }
        cleat_fail_allocation(0);
        if (status != CLEAT_ERR_MEMORY || !error.text[0]) fail_msg("allocation %ld: %d '%s'", n, status, error.text);
    }
    assert_true(n > 100);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_error_is_kept_and_named),
        cmocka_unit_test(nothing_is_built_after_an_error),
        cmocka_unit_test(impossible_shapes_are_refused),
        cmocka_unit_test(parameter_is_shared_by_name),
        cmocka_unit_test(state_has_one_shape_and_type),
        cmocka_unit_test(buffer_is_shared_by_name),
        cmocka_unit_test(buffer_has_a_name_of_its_own),
        cmocka_unit_test(starting_values_depend_on_seed_and_name),
        cmocka_unit_test(fan_out_accumulates),
        cmocka_unit_test(residual_passes_the_gradient_through),
        cmocka_unit_test(unused_branches_cost_nothing),
        cmocka_unit_test(op_without_gradient_blocks_it),
        cmocka_unit_test(gradient_nodes_are_named_like_their_node),
        cmocka_unit_test(graph_is_differentiated_once),
        cmocka_unit_test(seed_has_the_shape_of_the_loss),
        cmocka_unit_test(seed_has_the_type_of_the_loss),
        cmocka_unit_test(one_node_gives_one_gradient_a_tensor),
        cmocka_unit_test(random_graphs_agree_with_differences),
        cmocka_unit_test(every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
