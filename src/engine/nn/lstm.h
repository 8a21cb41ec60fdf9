/* LSTM layers (long short-term memory), with parameters named as in PyTorch. */
#ifndef CLEAT_SRC_NN_LSTM_H
#define CLEAT_SRC_NN_LSTM_H

#include "cleat/ops.h"

/* Layer `layer_index` (0, 1, ...) with `hidden` units: cleat_lstm with the parameters PREFIX.weight_ih_lN
 * [4 hidden, I], PREFIX.weight_hh_lN [4 hidden, hidden], PREFIX.bias_ih_lN and PREFIX.bias_hh_lN [4 hidden]
 * (N: layer_index), all initialised uniformly in +-1/sqrt(hidden), as in torch.nn.LSTM.
 * x T [B, L, I] -> [B, L, hidden] */
cleat_tensor *cleat_nn_lstm(cleat_graph *graph, const char *prefix, int layer_index, cleat_tensor *x, int64_t hidden);

#endif
