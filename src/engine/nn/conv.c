/* Convolutions and batch normalisation as layers. */
#include "nn/conv.h"

#include "graph/graph.h"

#include <math.h>
#include <stdio.h>

static const float EPS = 1e-5f;

static const char *join(char *name, const char *prefix, const char *part) {
    snprintf(name, CLEAT_NAME, "%.50s.%s", prefix, part);
    return name;
}

static cleat_init start_of(const cleat_conv_layer *layer, int64_t channels) {
    double taps = (double)(layer->kernel * layer->kernel);
    if (layer->bias) return (cleat_init){CLEAT_INIT_UNIFORM, (float)(1 / sqrt(taps * (double)channels))};
    return (cleat_init){CLEAT_INIT_NORMAL, (float)sqrt(2 / (taps * (double)layer->features))};
}

cleat_tensor *cleat_nn_conv(cleat_graph *graph, const char *prefix, cleat_tensor *x, const cleat_conv_layer *layer) {
    if (!x) return NULL;
    char name[CLEAT_NAME];
    const int64_t channels = cleat_width(x), kernel = layer->kernel;
    const int64_t shape[4] = {layer->features, kernel, kernel, channels}, matrix[2] = {layer->features, channels};
    const bool linear = kernel == 1 && layer->stride == 1;
    cleat_tensor *weight = cleat_param(graph, join(name, prefix, "weight"), linear ? 2 : 4, linear ? matrix : shape,
                                       start_of(layer, channels));
    cleat_tensor *bias = NULL;
    if (layer->bias)
        bias = cleat_param(graph, join(name, prefix, "bias"), 1, &layer->features, start_of(layer, channels));
    cleat_scope(graph, "%s/", prefix);
    return linear ? cleat_linear(graph, x, weight, bias, NULL)
                  : cleat_conv2d(graph, x, weight, bias, layer->stride, layer->padding);
}

cleat_tensor *cleat_nn_depthwise_conv2d(cleat_graph *graph, const char *prefix, cleat_tensor *x, int64_t kernel) {
    if (!x) return NULL;
    char name[CLEAT_NAME];
    const int64_t channels = cleat_width(x), shape[3] = {kernel, kernel, channels};
    const cleat_init init = {CLEAT_INIT_UNIFORM, 1.0f / (float)kernel}; /* fan_in kernel^2 */
    cleat_tensor *weight = cleat_param(graph, join(name, prefix, "weight"), 3, shape, init);
    cleat_tensor *bias = cleat_param(graph, join(name, prefix, "bias"), 1, &channels, init);
    cleat_scope(graph, "%s/", prefix);
    return cleat_depthwise_conv2d(graph, x, weight, bias);
}

cleat_tensor *cleat_nn_batch_norm(cleat_graph *graph, const char *prefix, cleat_tensor *x, cleat_tensor *residual,
                                  bool relu, float gamma, const cleat_norm_mode *mode) {
    if (!x) return NULL;
    char name[CLEAT_NAME];
    const int64_t channels = cleat_width(x);
    cleat_tensor *weight =
        cleat_param(graph, join(name, prefix, "weight"), 1, &channels, (cleat_init){CLEAT_INIT_CONSTANT, gamma});
    cleat_tensor *bias = cleat_param(graph, join(name, prefix, "bias"), 1, &channels, (cleat_init){CLEAT_INIT_ZERO, 0});
    cleat_running_stats running = cleat_running_statistics(graph, join(name, prefix, "running"), channels);
    cleat_tensor *statistics = NULL;
    cleat_scope(graph, "%s/", prefix);
    const cleat_batch_norm_spec spec = {
        .gamma = weight, .beta = bias, .samples = mode->samples, .residual = residual, .relu = relu, .eps = EPS};
    const bool frozen = weight && weight->rule.frozen;
    if (mode->training && frozen && x->requires_grad)
        cleat_graph_fail(graph, CLEAT_ERR_NOT_SUPPORTED,
                         "'%s' is frozen, but something before it is trained: batch normalisation with running "
                         "statistics has no gradient; freeze the layers before it as well",
                         prefix);
    if (!mode->training || frozen) return cleat_batch_norm_inference(graph, x, &spec, running);
    cleat_tensor *y = cleat_batch_norm(graph, x, &spec, &statistics);
    cleat_batch_norm_update_running_stats(graph, statistics, running, mode->momentum);
    return y;
}
