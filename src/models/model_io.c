/* Inputs and outputs common to model graphs: inputs from the runtime, heads, outputs, and a loss of one
 * term. */
#include "models/model.h"
#include "ops/update.h"

cleat_tensor *cleat_model_add_seed(cleat_graph *graph) {
    const int64_t one = 1;
    if (cleat_autocast_storage(graph) == CLEAT_F16) return cleat_loss_scale_states(graph).loss_scale;
    return cleat_input(graph, "seed", CLEAT_F32, 1, &one);
}

cleat_tensor *cleat_model_add_values(cleat_graph *graph, const char *name, int rank, const int64_t *shape) {
    return cleat_input(graph, name, cleat_autocast_storage(graph), rank, shape);
}

cleat_model_inputs cleat_model_add_inputs(cleat_graph *graph, cleat_mode mode, int rank,
                                          const int64_t *sample_weight_shape) {
    const int64_t four = 4;
    cleat_model_inputs inputs = {.sample_weight = NULL};
    if (mode == CLEAT_MODE_PREDICT) return inputs;
    inputs.sample_weight = cleat_input(graph, "scale", CLEAT_F32, rank, sample_weight_shape);
    inputs.rng = cleat_input(graph, "rng", CLEAT_U32, 1, &four);
    inputs.seed = cleat_model_add_seed(graph);
    return inputs;
}

cleat_tensor *cleat_model_add_samples(cleat_graph *graph, cleat_mode mode) {
    const int64_t one = 1;
    return mode == CLEAT_MODE_PREDICT ? NULL : cleat_input(graph, "samples", CLEAT_I32, 1, &one);
}

void cleat_model_begin_f32_head(cleat_graph *graph) {
    cleat_autocast(graph, CLEAT_F32);
}

cleat_tensor *cleat_model_output(cleat_graph *graph, cleat_tensor *y, cleat_model_graph *built) {
    y = cleat_cast(graph, y, CLEAT_F32);
    cleat_retain(graph, y);
    *built = (cleat_model_graph){.output = y};
    return y;
}

void cleat_model_add_loss(cleat_graph *graph, cleat_mode mode, const cleat_model_inputs *inputs, cleat_tensor *loss,
                          cleat_model_graph *built) {
    const int64_t two = 2; /* the term, and the total loss */
    built->loss = loss;
    built->terms = cleat_state(graph, "terms", CLEAT_F32, 1, &two);
    if (!loss) return;
    cleat_accumulate_metrics(graph, (cleat_tensor *[]){loss, loss}, (int[]){0, 1}, 2, built->terms);
    cleat_retain(graph, loss);
    if (mode == CLEAT_MODE_TRAIN) cleat_backward(graph, loss, inputs->seed);
}

void cleat_model_mean_weight(const cleat_model *model, const cleat_host_batch *batch,
                             const cleat_global_batch *global_batch, float *values) {
    (void)model;
    for (int64_t b = 0; b < batch->batch; ++b)
        values[b] = b < batch->count ? 1.0f / (float)global_batch->samples : 0.0f;
}
