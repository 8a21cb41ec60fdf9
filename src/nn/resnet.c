/* ResNet-18, ResNet-34 and similar networks. */
#include "nn/resnet.h"

#include "graph/graph.h"
#include "graph/recompute.h"

#include <stdio.h>

static cleat_tensor *convolve(cleat_graph *graph, const char *prefix, cleat_tensor *x, int64_t features, int64_t kernel,
                              int64_t stride) {
    const cleat_conv_layer layer = {.features = features, .kernel = kernel, .stride = stride, .padding = kernel / 2};
    return cleat_nn_conv(graph, prefix, x, &layer);
}

/* y = relu(b2(c2(relu(b1(c1(x))))) + x); x passes through sc if the shapes differ.
 * [B, H, W, C] -> [B, H/stride, W/stride, N] */
static cleat_tensor *basic_block(cleat_graph *graph, int64_t number, cleat_tensor *x, int64_t features, int64_t stride,
                                 const cleat_resnet *shape, const cleat_norm_mode *mode) {
    char prefix[CLEAT_NAME];
#define PART(part) (snprintf(prefix, sizeof prefix, "b%lld.%s", (long long)number, part), prefix)
    cleat_tensor *y = convolve(graph, PART("c1"), x, features, 3, stride), *shortcut = x;
    y = cleat_nn_batch_norm(graph, PART("b1"), y, NULL, true, 1, mode);
    y = convolve(graph, PART("c2"), y, features, 3, 1);
    if (x && (stride > 1 || cleat_width(x) != features)) {
        shortcut = convolve(graph, PART("sc.0"), x, features, 1, stride);
        shortcut = cleat_nn_batch_norm(graph, PART("sc.1"), shortcut, NULL, false, 1, mode);
    }
    return cleat_nn_batch_norm(graph, PART("b2"), y, shortcut, true, shape->last_gamma, mode);
#undef PART
}

cleat_tensor *cleat_nn_resnet(cleat_graph *graph, cleat_tensor *x, const cleat_resnet *shape,
                              const cleat_norm_mode *mode) {
    int64_t number = 0;
    cleat_segment(graph);
    x = convolve(graph, "stem", x, shape->width, shape->large_stem ? 7 : 3, shape->large_stem ? 2 : 1);
    x = cleat_nn_batch_norm(graph, "bn", x, NULL, true, 1, mode);
    if (shape->large_stem) x = cleat_max_pool(graph, x, 3, 2, 1);
    for (int64_t stage = 0; stage < shape->stages; ++stage)
        for (int64_t block = 0; block < shape->blocks[stage]; ++block) {
            cleat_segment(graph);
            x = basic_block(graph, ++number, x, shape->width << stage, stage > 0 && block == 0 ? 2 : 1, shape, mode);
        }
    cleat_segment(graph);
    return x;
}
