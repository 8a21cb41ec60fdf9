/* Settings and normalisation of image models. */
#include "models/image_models.h"

#include "cleat/ops.h"
#include "graph/graph.h"

cleat_image_options cleat_image_settings_options(const cleat_image_settings *settings, cleat_mode mode,
                                                 const char *fitted) {
    cleat_image_options options = settings->options;
    options.cache_bytes = settings->cache_mb << 20;
    options.fitted = fitted ? fitted : "";
    options.predict = mode == CLEAT_MODE_PREDICT;
    return options;
}

cleat_norm_mode cleat_model_norm_mode(cleat_graph *graph, cleat_mode mode, cleat_model_inputs *inputs) {
    const float momentum = 0.1f; /* as torch.nn.BatchNorm2d */
    if (mode != CLEAT_MODE_TRAIN) return (cleat_norm_mode){.training = false};
    inputs->samples = cleat_model_add_samples(graph, mode);
    return (cleat_norm_mode){.training = true, .samples = inputs->samples, .momentum = momentum};
}

cleat_tensor *cleat_model_global_avg_pool(cleat_graph *graph, cleat_tensor *x) {
    if (!x) return NULL;
    const int64_t rows[3] = {x->shape[0], x->shape[1] * x->shape[2], x->shape[3]};
    return cleat_mean_pool(graph, cleat_reshape(graph, x, 3, rows), NULL);
}
