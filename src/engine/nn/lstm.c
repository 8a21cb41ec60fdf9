/* LSTM layers: the parameters of each layer, named as in PyTorch, and the op. */
#include "nn/lstm.h"

#include "graph/graph.h"

#include <math.h>
#include <stdio.h>

typedef struct layer {
    const char *prefix;
    int index;
    cleat_init init;
} layer;

static cleat_tensor *parameter(cleat_graph *graph, const layer *its, const char *part, int rank, const int64_t *shape) {
    char name[CLEAT_NAME];
    snprintf(name, sizeof name, "%.40s.%s_l%d", its->prefix, part, its->index);
    return cleat_param(graph, name, rank, shape, its->init);
}

cleat_tensor *cleat_nn_lstm(cleat_graph *graph, const char *prefix, int layer_index, cleat_tensor *x, int64_t hidden) {
    if (!x) return NULL;
    const layer its = {prefix, layer_index, {CLEAT_INIT_UNIFORM, 1.0f / sqrtf((float)hidden)}};
    const int64_t gates = 4 * hidden, ih_shape[] = {gates, cleat_width(x)}, hh_shape[] = {gates, hidden};
    cleat_tensor *weight_ih = parameter(graph, &its, "weight_ih", 2, ih_shape);
    cleat_tensor *weight_hh = parameter(graph, &its, "weight_hh", 2, hh_shape);
    cleat_tensor *bias_ih = parameter(graph, &its, "bias_ih", 1, &gates);
    cleat_tensor *bias_hh = parameter(graph, &its, "bias_hh", 1, &gates);
    cleat_scope(graph, "%s.l%d/", prefix, layer_index);
    return cleat_lstm(graph, x, weight_ih, weight_hh, bias_ih, bias_hh);
}
