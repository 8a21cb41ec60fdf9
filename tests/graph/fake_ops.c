/* Operations that compute nothing; see fake_ops.h. */
#include "fake_ops.h"

#include <stdio.h>
#include <string.h>

#include "graph/launch.h"
#include "graph/recompute.h"

typedef struct fake_attr {
    int64_t rows, columns, workspace;
    int32_t n_out; /* norm, attention: columns of the second output */
} fake_attr;

static const fake_attr *attr_of(const cleat_node *node) {
    return (const fake_attr *)(const void *)node->attr;
}

static cleat_status infer(cleat_node *node, cleat_error *error) {
    const fake_attr *attr = attr_of(node);
    int64_t shape[] = {attr->rows, attr->columns};
    cleat_status status = CLEAT_OK;
    for (int i = 0; i < attr->n_out && !status; ++i) status = cleat_set_output(node, i, CLEAT_F32, 2, shape, error);
    return status;
}

static int64_t workspace(const cleat_node *node, const cleat_device_facts *facts) {
    (void)facts;
    return attr_of(node)->workspace;
}

static void bind(const cleat_node *node, cleat_binder *binder) {
    (void)node, (void)binder;
}

static const char *refuse(const cleat_node *node, const cleat_device_facts *facts) {
    (void)node, (void)facts;
    return "it is Sunday";
}

static const cleat_variant plain[] = {{"plain", NULL, workspace, bind}, {NULL, NULL, NULL, NULL}};
static const cleat_variant refusing[] = {
    {"fast", refuse, NULL, bind}, {"slow", refuse, NULL, bind}, {NULL, NULL, NULL, NULL}};

const cleat_op fake_op = {.name = "fake", .infer = infer, .variants = plain};
const cleat_op fake_op_in_place = {
    .name = "fake_in_place", .infer = infer, .variants = plain, .inplace_inputs = CLEAT_IN(0)};
const cleat_op fake_op_in_place_both = {
    .name = "fake_in_place_both", .infer = infer, .variants = plain, .inplace_inputs = CLEAT_IN(0) | CLEAT_IN(1)};
const cleat_op fake_op_refused = {.name = "fake_refused", .infer = infer, .variants = refusing};

cleat_node *fake_emit(cleat_graph *graph, const cleat_op *op, cleat_tensor *const *in, int n_in, int n_out,
                      int64_t rows, int64_t columns, int64_t bytes) {
    fake_attr attr = {rows, columns, bytes, n_out};
    return cleat_emit(graph, op, &attr, sizeof attr, in, n_in);
}

cleat_tensor *fake_unary(cleat_graph *graph, const cleat_op *op, cleat_tensor *x) {
    cleat_node *node = x ? fake_emit(graph, op, &x, 1, 1, x->shape[0], x->shape[1], 0) : NULL;
    return node ? node->out[0] : NULL;
}

static cleat_status infer_update(cleat_node *node, cleat_error *error) {
    (void)error;
    cleat_set_output_state(node, 0, node->in[node->n_in - 1]);
    return CLEAT_OK;
}

void fake_update(cleat_graph *graph, cleat_tensor *const *in, int n_in, cleat_tensor *persistent) {
    static const cleat_op op = {
        .name = "fake_update", .infer = infer_update, .variants = plain, .inplace_inputs = CLEAT_IN(0)};
    fake_attr attr = {0};
    cleat_tensor *all[CLEAT_MAX_IN];
    for (int i = 0; i < n_in; ++i) all[i] = in[i];
    all[n_in] = persistent;
    cleat_emit(graph, &op, &attr, sizeof attr, all, n_in + 1);
}

static cleat_status infer_view(cleat_node *node, cleat_error *error) {
    int64_t shape[] = {1, cleat_tensor_elements(node->in[0])};
    cleat_status status = cleat_set_output(node, 0, node->in[0]->dtype, 2, shape, error);
    if (!status) node->out[0]->base = (cleat_tensor *)cleat_root(node->in[0]);
    return status;
}

cleat_tensor *fake_view(cleat_graph *graph, cleat_tensor *x) {
    static const cleat_op op = {.name = "fake_view", .infer = infer_view};
    cleat_node *node = x ? cleat_emit(graph, &op, NULL, 0, &x, 1) : NULL;
    return node ? node->out[0] : NULL;
}

/* --- a transformer --- */

/* Gradient nodes. The accum of the single target of the second kind is its in[1]. */
static const cleat_op fake_grad = {.name = "fake_grad", .variants = plain};
static const cleat_op fake_grad_in_place = {
    .name = "fake_grad_in_place", .variants = plain, .inplace_inputs = CLEAT_IN(0) | CLEAT_IN(1)};

static void emit_grads(cleat_graph *graph, const cleat_op *op, cleat_tensor *const *in, int n_in,
                       cleat_tensor *const *targets, int n_targets, int64_t bytes) {
    fake_attr attr = {.workspace = bytes};
    cleat_emit_grads(graph, &(cleat_grads_spec){.op = op,
                                                .attr = &attr,
                                                .attr_bytes = sizeof attr,
                                                .in = in,
                                                .n_in = n_in,
                                                .targets = targets,
                                                .n_targets = n_targets});
}

/* in: x, weight, residual or NULL */
static void linear_backward(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    cleat_tensor *x = node->in[0], *weight = node->in[1];
    emit_grads(graph, &fake_grad, (cleat_tensor *[]){dout[0], x, weight}, 3, (cleat_tensor *[]){x, weight}, 2,
               cleat_tensor_bytes(weight) / 3);
    if (node->in[2]) emit_grads(graph, &fake_grad_in_place, &dout[0], 1, &node->in[2], 1, 0);
}

/* in: x, gamma; out: y, row statistics */
static void norm_backward(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    emit_grads(graph, &fake_grad, (cleat_tensor *[]){dout[0], node->in[0], node->in[1], node->out[1]}, 4, node->in, 2,
               cleat_tensor_bytes(node->in[1]) * 64);
}

static void gelu_backward(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    emit_grads(graph, &fake_grad_in_place, (cleat_tensor *[]){dout[0], node->in[0]}, 2, node->in, 1, 0);
}

/* in: qkv; out: y, log-sum-exp */
static void attention_backward(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    emit_grads(graph, &fake_grad, (cleat_tensor *[]){dout[0], node->in[0], node->out[0], node->out[1]}, 4, node->in, 1,
               cleat_tensor_bytes(node->out[1]));
}

static cleat_status infer_with_rows(cleat_node *node, cleat_error *error) {
    const fake_attr *attr = attr_of(node);
    int64_t shape[] = {attr->rows, attr->columns}, statistics[] = {attr->rows, attr->n_out};
    cleat_status status = cleat_set_output(node, 0, CLEAT_F32, 2, shape, error);
    return status ? status : cleat_set_output(node, 1, CLEAT_F32, 2, statistics, error);
}

static bool is_cheap(const cleat_node *node) {
    (void)node;
    return true;
}

static const cleat_op linear_op = {
    .name = "linear", .optional_inputs = CLEAT_IN(2), .infer = infer, .backward = linear_backward, .variants = plain};
static const cleat_op norm_op = {
    .name = "norm", .infer = infer_with_rows, .backward = norm_backward, .variants = plain, .cheap = is_cheap};
static const cleat_op gelu_op = {
    .name = "gelu", .infer = infer, .backward = gelu_backward, .variants = plain, .cheap = is_cheap};
static const cleat_op attention_op = {
    .name = "attention", .infer = infer_with_rows, .backward = attention_backward, .variants = plain};

static cleat_tensor *param(cleat_graph *graph, const char *name, int layer, int64_t rows, int64_t columns) {
    char full[CLEAT_NAME];
    int64_t shape[] = {rows, columns};
    snprintf(full, sizeof full, "blocks.%d.%s", layer, name);
    return cleat_param(graph, full, 2, shape, (cleat_init){CLEAT_INIT_ZERO, 0});
}

static cleat_tensor *first(const cleat_node *node) {
    return node ? node->out[0] : NULL;
}

static cleat_tensor *linear(cleat_graph *graph, const char *name, int layer, cleat_tensor *x, int64_t columns,
                            cleat_tensor *residual) {
    if (!x) return NULL;
    cleat_tensor *in[] = {x, param(graph, name, layer, columns, x->shape[1]), residual};
    return first(fake_emit(graph, &linear_op, in, 3, 1, x->shape[0], columns, 0));
}

static cleat_tensor *norm(cleat_graph *graph, const char *name, int layer, cleat_tensor *x) {
    if (!x) return NULL;
    cleat_tensor *in[] = {x, param(graph, name, layer, 1, x->shape[1])};
    return first(fake_emit(graph, &norm_op, in, 2, 2, x->shape[0], x->shape[1], 0));
}

cleat_tensor *fake_transformer_build(cleat_graph *graph, const fake_transformer *shape) {
    int64_t one = 1;
    cleat_tensor *tokens = cleat_input(graph, "tokens", CLEAT_I32, 1, &shape->rows);
    cleat_tensor *seed = cleat_input(graph, "seed", CLEAT_F32, 2, (int64_t[]){one, one});
    cleat_tensor *embedding[] = {tokens, param(graph, "table", 0, 64, shape->width)};
    cleat_tensor *x = first(fake_emit(graph, &linear_op, embedding, 2, 1, shape->rows, shape->width, 0));
    for (int l = 0; l < shape->layers && x; ++l) {
        cleat_segment(graph);
        cleat_scope(graph, "blocks.%d.", l);
        cleat_tensor *qkv = linear(graph, "qkv", l, norm(graph, "n1", l, x), 3 * shape->width, NULL);
        cleat_tensor *heads =
            qkv ? first(fake_emit(graph, &attention_op, &qkv, 1, (int)shape->heads, shape->rows, shape->width, 0))
                : NULL;
        x = linear(graph, "proj", l, heads, shape->width, x);
        cleat_tensor *hidden = linear(graph, "up", l, norm(graph, "n2", l, x), shape->hidden, NULL);
        x = linear(graph, "down", l, fake_unary(graph, &gelu_op, hidden), shape->width, x);
    }
    cleat_segment(graph);
    cleat_scope(graph, NULL);
    cleat_tensor *logits = linear(graph, "head", 0, norm(graph, "final", 0, x), 12, NULL);
    cleat_tensor *loss_in[] = {logits, NULL};
    cleat_tensor *loss = logits ? first(fake_emit(graph, &gelu_op, loss_in, 1, 1, 1, 1, 0)) : NULL;
    cleat_retain(graph, loss);
    if (shape->train && loss) cleat_backward(graph, loss, seed);
    return loss;
}

/* --- random graphs --- */

static cleat_tensor *draw_tensor(cleat_random *random, cleat_tensor **pool, int count) {
    int span = count < 6 || cleat_random_below(random, 5) == 0 ? count : 6; /* mostly recent tensors */
    return pool[count - 1 - (int)cleat_random_below(random, (uint32_t)span)];
}

void fake_random_build(cleat_graph *g, cleat_random *random, int nodes) {
    cleat_tensor *pool[400];
    int count = 0;
    const cleat_op *const ops[] = {&fake_op, &fake_op_in_place, &fake_op_in_place_both};
    int64_t width = 32 + cleat_random_below(random, 200);
    for (int i = 0; i < 2; ++i)
        pool[count++] =
            cleat_input(g, i ? "in1" : "in0", CLEAT_F32, 2, (int64_t[]){1 + cleat_random_below(random, 8), width});
    pool[count++] = cleat_param(g, "p", 1, (int64_t[]){100}, (cleat_init){CLEAT_INIT_ZERO, 0});
    pool[count++] = cleat_state(g, "s", CLEAT_F32, 1, (int64_t[]){100});
    for (int n = 0; n < nodes && count < 390; ++n) {
        if (cleat_random_below(random, 8) == 0) {
            pool[count] = fake_view(g, draw_tensor(random, pool, count));
            ++count;
            continue;
        }
        cleat_tensor *in[4];
        int n_in = 1 + (int)cleat_random_below(random, 4);
        for (int i = 0; i < n_in; ++i) in[i] = draw_tensor(random, pool, count);
        int64_t rows = 1 + cleat_random_below(random, 8), scratch = cleat_random_below(random, 3) ? 0 : 5000;
        int n_out = 1 + (int)cleat_random_below(random, 5) / 3;
        bool alike = cleat_random_below(random, 2) && in[0]->dtype == CLEAT_F32;
        cleat_node *node = fake_emit(g, ops[cleat_random_below(random, 3)], in, n_in, n_out, alike ? 1 : rows,
                                     alike ? cleat_tensor_elements(in[0]) : width, scratch);
        if (!node) return; /* the graph holds the error */
        for (int i = 0; i < n_out; ++i) {
            if (cleat_random_below(random, 12) == 0) cleat_retain(g, node->out[i]);
            pool[count++] = node->out[i];
        }
        if (cleat_random_below(random, 10) == 0) fake_update(g, in, n_in, pool[3]);
    }
}
