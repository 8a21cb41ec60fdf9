/* LSTM layer as two nodes: `linear` multiplies the inputs of all steps at once, and `lstm` iterates over the
 * steps and adds the recurrent part. Launches: lstm_launch.c.
 *
 * Saved for backward are the activated gates, which overwrite the output of the linear node, and the cell
 * states: 5 H elements per step in addition to h. Backward overwrites the gates with the gradients of the
 * linear node's output, from which linear nodes compute those of x, weight_ih and the biases. The
 * gradient of weight_hh is a sum over the same steps in the same order, so the node that iterates backward
 * computes it too. */
#include "ops/lstm/lstm.h"

#include "cleat/ops.h"
#include "ops/fusible.h"
#include "ops/lib/count.h"
#include "ops/lib/shared.h"

cleat_lstm_size cleat_lstm_size_of(const cleat_node *node) {
    bool forward = node->n_in == CLEAT_LSTM_IN;
    const cleat_tensor *gates = node->in[forward ? CLEAT_LSTM_PRODUCTS : CLEAT_LSTM_GRAD_GATES];
    if (!gates) gates = node->out[CLEAT_LSTM_GATES];
    const bool layer = node->n_in == CLEAT_LSTM_LAYER_GRAD_IN + CLEAT_LSTM_GRAD_OUT;
    const cleat_tensor *x = forward ? node->in[CLEAT_LSTM_X] : layer ? node->in[CLEAT_LSTM_GRAD_X] : NULL;
    return (cleat_lstm_size){gates->shape[0], gates->shape[1], gates->shape[2] / 4, x ? x->shape[2] : 0,
                             ((const cleat_lstm_attr *)node->attr)->time_major};
}

/* --- cost and whole layers ---------------------------------------------------------------------------------------- */

/* A multiply-add of the recurrent product counts as two operations; a cell takes a few exponentials and
 * divisions. */
static cleat_cost cost_of(const cleat_node *node, int products, int input_products, double flops_per_cell) {
    cleat_lstm_size s = cleat_lstm_size_of(node);
    double cells = (double)s.batch * (double)s.length * (double)s.hidden;
    cleat_cost cost = cleat_elementwise_cost(node, 0);
    cost.work = CLEAT_WORK_RECURRENT;
    cost.flops = cells * (8.0 * (products * (double)s.hidden + input_products * (double)s.inputs) + flops_per_cell);
    return cost;
}

static cleat_cost cost(const cleat_node *node) {
    return cost_of(node, 1, 1, 100);
}

/* A whole layer: the product with the inputs is computed step by step, beside the recurrent one, so that 4 H
 * elements per step are neither written nor read again. */
static const cleat_op lstm_layer = {
    .name = "lstm_layer", .cost = cost, .variants = cleat_lstm_layer_variants, .define = cleat_lstm_define};

/* --- gradient ------------------------------------------------------------------------------------------------- */

static cleat_cost cost_grad(const cleat_node *node) {
    return cost_of(node, node->out[1] ? 2 : 1, 0, 60);
}

static cleat_status infer_grad(cleat_node *node, cleat_error *error) {
    if (!cleat_accum(node, CLEAT_LSTM_GRAD_IN, 0)) return CLEAT_OK;
    return cleat_infer_fail(node, error, "the matrix products have another consumer, whose gradient is not added");
}

static cleat_cost cost_layer_grad(const cleat_node *node) {
    return cost_of(node, node->out[CLEAT_LSTM_DWEIGHT_HH] ? 2 : 1, node->out[CLEAT_LSTM_DX] ? 2 : 1, 60);
}

/* The whole layer: the operands of the linear layer's gradients are multiplied while they are in the caches,
 * so the gradients of the products, 4 H elements per step, are never stored. dx may overwrite dh, whose step
 * t is read before. */
static const cleat_op lstm_layer_grad = {.name = "lstm_layer_grad",
                                         .cost = cost_layer_grad,
                                         .variants = cleat_lstm_layer_grad_variants,
                                         .define = cleat_lstm_define_layer_grad,
                                         .inplace_inputs = CLEAT_IN(CLEAT_LSTM_GRAD_DH) |
                                                           CLEAT_IN(CLEAT_LSTM_LAYER_GRAD_IN + CLEAT_LSTM_DX)};

static void add_weight_grad(cleat_node *node, const cleat_node *dw) {
    node->in[CLEAT_LSTM_GRAD_X] = dw->in[CLEAT_LINEAR_DW_X];
    for (int i = 0; i < 2; ++i) {
        node->out[CLEAT_LSTM_DWEIGHT_IH + i] = dw->out[CLEAT_LINEAR_DW_WEIGHT + i];
        node->in[CLEAT_LSTM_LAYER_GRAD_IN + CLEAT_LSTM_DWEIGHT_IH + i] = cleat_accum(dw, CLEAT_LINEAR_DW_IN, i);
    }
}

/* Changes the order of gates and cells that a whole layer writes and only this node reads. */
static void order_by_time(cleat_node *node) {
    cleat_node *layer = node->in[CLEAT_LSTM_GRAD_GATES]->producer;
    if (!layer || layer->op != &lstm_layer || layer->out[CLEAT_LSTM_GATES]->retain ||
        layer->out[CLEAT_LSTM_CELLS]->retain)
        return;
    ((cleat_lstm_attr *)layer->attr)->time_major = true;
    ((cleat_lstm_attr *)node->attr)->time_major = true;
}

static bool fuse_consumers(cleat_node *node, cleat_node *const *consumers, int count, bool wide) {
    enum { WEIGHTS_MAX = 1 << 18 }; /* 1 MiB, and as much for their gradients: they stay in a second-level cache */
    const cleat_node *dw = NULL, *dx = NULL;
    for (int i = 0; i < count; ++i) {
        if (consumers[i]->op == &cleat_linear_dw_op) dw = consumers[i];
        if (consumers[i]->op == &cleat_linear_dx_op) dx = consumers[i];
    }
    if (!wide || !dw || count != (dx ? 2 : 1)) return false;
    const int64_t hidden = cleat_lstm_size_of(node).hidden, inputs = cleat_width(dw->in[CLEAT_LINEAR_DW_X]);
    if (hidden + inputs > WEIGHTS_MAX / (4 * hidden)) return false;
    cleat_tensor *accum = cleat_accum(node, CLEAT_LSTM_GRAD_IN, CLEAT_LSTM_DWEIGHT_HH);
    for (int i = CLEAT_LSTM_GRAD_IN; i < CLEAT_LSTM_LAYER_GRAD_IN + CLEAT_LSTM_GRAD_OUT; ++i) node->in[i] = NULL;
    node->op = &lstm_layer_grad;
    node->n_in = CLEAT_LSTM_LAYER_GRAD_IN + CLEAT_LSTM_GRAD_OUT;
    node->n_out = CLEAT_LSTM_GRAD_OUT;
    node->in[CLEAT_LSTM_LAYER_GRAD_IN + CLEAT_LSTM_DWEIGHT_HH] = accum;
    node->out[CLEAT_LSTM_DX] = NULL;
    add_weight_grad(node, dw);
    if (dx) {
        node->in[CLEAT_LSTM_GRAD_WEIGHT_IH] = dx->in[CLEAT_LINEAR_DX_WEIGHT];
        node->out[CLEAT_LSTM_DX] = dx->out[0];
        node->in[CLEAT_LSTM_LAYER_GRAD_IN + CLEAT_LSTM_DX] = cleat_accum(dx, CLEAT_LINEAR_DX_IN, 0);
    }
    order_by_time(node);
    return true;
}

/* The gradients of the products may overwrite the gates. */
static const cleat_op lstm_grad = {.name = "lstm_grad",
                                   .infer = infer_grad,
                                   .cost = cost_grad,
                                   .variants = cleat_lstm_grad_variants,
                                   .define = cleat_lstm_define_grad,
                                   .fusion = &(const cleat_fusion){.consumers = fuse_consumers},
                                   .inplace_inputs = CLEAT_IN(CLEAT_LSTM_GRAD_GATES)};

static void backward(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    cleat_tensor *in[CLEAT_LSTM_GRAD_IN] = {[CLEAT_LSTM_GRAD_DH] = dout[CLEAT_LSTM_H],
                                            [CLEAT_LSTM_GRAD_GATES] = node->out[CLEAT_LSTM_GATES],
                                            [CLEAT_LSTM_GRAD_H] = node->out[CLEAT_LSTM_H],
                                            [CLEAT_LSTM_GRAD_CELLS] = node->out[CLEAT_LSTM_CELLS],
                                            [CLEAT_LSTM_GRAD_WEIGHT] = node->in[CLEAT_LSTM_WEIGHT]};
    bool wanted =
        cleat_requires_grad(node->in[CLEAT_LSTM_PRODUCTS]) || cleat_requires_grad(node->in[CLEAT_LSTM_WEIGHT]);
    if (wanted && dout[CLEAT_LSTM_H])
        cleat_emit_grads_of(graph, node, &lstm_grad, in, CLEAT_LSTM_GRAD_IN, node->in, CLEAT_LSTM_TARGETS);
}

/* --- forward -------------------------------------------------------------------------------------------------- */

static cleat_status infer(cleat_node *node, cleat_error *error) {
    const cleat_tensor *products = node->in[CLEAT_LSTM_PRODUCTS], *weight = node->in[CLEAT_LSTM_WEIGHT];
    if (products->rank != 3 || weight->rank != 2 || weight->dtype != products->dtype ||
        weight->shape[0] != 4 * weight->shape[1] || products->shape[2] != weight->shape[0])
        return cleat_infer_fail(node, error,
                                "x weight_ih^T is %s, weight_hh %s: x must be [B, L, I], weight_ih [4H, I] and "
                                "weight_hh [4H, H], all of the same type",
                                CLEAT_DESCRIBED(products), CLEAT_DESCRIBED(weight));
    cleat_lstm_size s = cleat_lstm_size_of(node);
    if (s.batch > CLEAT_MAX_ROWS / s.length || s.hidden > 1 << 14)
        return cleat_infer_fail(node, error, "more than 2^30 steps, or more than 2^14 units");
    const int64_t shape[] = {s.batch, s.length, s.hidden};
    cleat_status status = cleat_set_output(node, CLEAT_LSTM_GATES, products->dtype, 3, products->shape, error);
    if (!status) status = cleat_set_output(node, CLEAT_LSTM_H, products->dtype, 3, shape, error);
    return status ? status : cleat_set_output(node, CLEAT_LSTM_CELLS, products->dtype, 3, shape, error);
}

static bool fuse_producer(cleat_node *node, const cleat_node *producer, bool wide) {
    if (!wide || producer->op != &cleat_linear_op || producer->in[CLEAT_LINEAR_RESIDUAL] ||
        node->in[CLEAT_LSTM_PRODUCTS] != producer->out[0])
        return false;
    node->op = &lstm_layer;
    node->in[CLEAT_LSTM_PRODUCTS] = NULL;
    node->in[CLEAT_LSTM_X] = producer->in[CLEAT_LINEAR_X];
    node->in[CLEAT_LSTM_WEIGHT_IH] = producer->in[CLEAT_LINEAR_WEIGHT];
    node->in[CLEAT_LSTM_BIAS] = producer->in[CLEAT_LINEAR_BIAS];
    return true;
}

/* The gates may overwrite the products. */
static const cleat_op lstm = {.name = "lstm",
                              .optional_inputs =
                                  CLEAT_IN(CLEAT_LSTM_X) | CLEAT_IN(CLEAT_LSTM_WEIGHT_IH) | CLEAT_IN(CLEAT_LSTM_BIAS),
                              .infer = infer,
                              .backward = backward,
                              .cost = cost,
                              .variants = cleat_lstm_variants,
                              .define = cleat_lstm_define,
                              .inplace_inputs = CLEAT_IN(CLEAT_LSTM_PRODUCTS),
                              .fusion = &(const cleat_fusion){.producer = fuse_producer},
                              .autocast_inputs = CLEAT_IN(CLEAT_LSTM_PRODUCTS) | CLEAT_IN(CLEAT_LSTM_WEIGHT),
                              .weight_inputs = CLEAT_IN(CLEAT_LSTM_WEIGHT)};

/* The linear node adds its bias in f32 in every autocast mode. */
static cleat_tensor *add_biases(cleat_graph *graph, cleat_tensor *bias_ih, cleat_tensor *bias_hh) {
    cleat_tensor *(*cast)(cleat_graph *, cleat_tensor *, cleat_dtype) = graph->cast;
    graph->cast = NULL;
    cleat_tensor *sum = cleat_add(graph, bias_ih, bias_hh);
    graph->cast = cast;
    return sum;
}

cleat_tensor *cleat_lstm(cleat_graph *graph, cleat_tensor *x, cleat_tensor *weight_ih, cleat_tensor *weight_hh,
                         cleat_tensor *bias_ih, cleat_tensor *bias_hh) {
    cleat_tensor *products = cleat_linear(graph, x, weight_ih, add_biases(graph, bias_ih, bias_hh), NULL);
    cleat_tensor *in[CLEAT_LSTM_IN] = {[CLEAT_LSTM_PRODUCTS] = products, [CLEAT_LSTM_WEIGHT] = weight_hh};
    cleat_node *node = cleat_emit(graph, &lstm, NULL, 0, in, CLEAT_LSTM_IN);
    return node ? node->out[CLEAT_LSTM_H] : NULL;
}
