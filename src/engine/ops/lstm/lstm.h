/* Interface between lstm.c (definition of the ops) and lstm_launch.c (their launches). */
#ifndef CLEAT_SRC_OPS_LSTM_H
#define CLEAT_SRC_OPS_LSTM_H

#include "graph/launch.h"

/* Recurrent part of a layer: in = {products, weight_hh, x, weight_ih, bias}, out = {gates, h, cells}. The
 * last three are NULL, or products is: the node of a whole layer (cleat_fusion.producer), whose bias may be
 * NULL. Its gradient: in = {dh, gates, h, cells, weight_hh, accums of products, weight_hh}, out = {dproducts,
 * dweight_hh}. That of a whole layer: in = {dh, gates, h, cells, weight_hh, x, weight_ih, accums}, out = {dx,
 * dweight_hh, dweight_ih, dbias}, each of which may be NULL; weight_ih is NULL without dx. */
enum {
    CLEAT_LSTM_PRODUCTS,
    CLEAT_LSTM_WEIGHT,
    CLEAT_LSTM_X,
    CLEAT_LSTM_WEIGHT_IH,
    CLEAT_LSTM_BIAS,
    CLEAT_LSTM_IN,
    CLEAT_LSTM_TARGETS = CLEAT_LSTM_X /* of the gradient */
};
enum { CLEAT_LSTM_GATES, CLEAT_LSTM_H, CLEAT_LSTM_CELLS };
enum {
    CLEAT_LSTM_GRAD_DH,
    CLEAT_LSTM_GRAD_GATES,
    CLEAT_LSTM_GRAD_H,
    CLEAT_LSTM_GRAD_CELLS,
    CLEAT_LSTM_GRAD_WEIGHT,
    CLEAT_LSTM_GRAD_IN,
    CLEAT_LSTM_GRAD_X = CLEAT_LSTM_GRAD_IN,
    CLEAT_LSTM_GRAD_WEIGHT_IH,
    CLEAT_LSTM_LAYER_GRAD_IN
};
enum { CLEAT_LSTM_DX, CLEAT_LSTM_DWEIGHT_HH, CLEAT_LSTM_DWEIGHT_IH, CLEAT_LSTM_DBIAS, CLEAT_LSTM_GRAD_OUT };

/* Attributes of a whole layer and of its gradient. */
typedef struct cleat_lstm_attr {
    bool time_major; /* gates and cells are stored as [L, B, ...]: a step's reads and writes are contiguous */
} cleat_lstm_attr;

typedef struct cleat_lstm_size {
    int64_t batch, length, hidden;
    int64_t inputs;  /* of a whole layer, else 0 */
    bool time_major; /* of its gates and cells: cleat_lstm_attr */
} cleat_lstm_size;

/* Returns the sizes for a node of one of these ops. */
cleat_lstm_size cleat_lstm_size_of(const cleat_node *node);

/* Definitions (cleat_op.define); lstm_define.c. */
cleat_expected_value cleat_lstm_define(const cleat_node *node, cleat_host_values *values, int64_t element);
cleat_expected_value cleat_lstm_define_grad(const cleat_node *node, cleat_host_values *values, int64_t element);
cleat_expected_value cleat_lstm_define_layer_grad(const cleat_node *node, cleat_host_values *values, int64_t element);

extern const cleat_variant cleat_lstm_variants[], cleat_lstm_layer_variants[], cleat_lstm_grad_variants[],
    cleat_lstm_layer_grad_variants[];

#endif
