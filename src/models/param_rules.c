/* Learning rates and weight decay by depth, and frozen parameters: the rules that a store gets from a model. */
#include "models/param_rules.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static bool needs_depths(const cleat_param_options *options) {
    return options->backbone_rate > 0 || options->layer_decay > 0 || options->frozen_depths > 0;
}

bool cleat_model_has_rules(const cleat_model *model) {
    const cleat_param_options *options = &model->options.params;
    return needs_depths(options) || options->no_decay_norm_bias;
}

static int64_t layers_of(const cleat_model *model) {
    return model->type->layers(model);
}

cleat_status cleat_model_check_rules(const cleat_model *model, cleat_error *error) {
    const cleat_param_options *options = &model->options.params;
    if (!needs_depths(options)) return CLEAT_OK;
    if (!model->type->layer_of || !model->type->layers)
        return cleat_fail(error, CLEAT_ERR_PROFILE,
                          "model.type %s is no backbone with a head: remove train.freeze, train.layer_decay and "
                          "train.backbone_learning_rate",
                          model->type->name);
    const int64_t blocks = options->frozen_depths - 1, layers = layers_of(model);
    if (options->frozen_depths != CLEAT_FREEZE_BACKBONE && blocks > layers)
        return cleat_fail(error, CLEAT_ERR_PROFILE,
                          "train.freeze = %" PRId64 ": the network has %" PRId64
                          " blocks; freeze at most these, or the backbone",
                          blocks, layers);
    return CLEAT_OK;
}

static bool ends_with(const char *name, const char *tail) {
    const size_t length = strlen(name), size = strlen(tail);
    return length >= size && strcmp(name + length - size, tail) == 0;
}

/* Norms, biases and other vectors: the parameters that usually have no weight decay. */
static bool is_vector(const char *param, int rank) {
    return rank < 2 || ends_with(param, ".bias");
}

/* The learning rate of depth d is that of the backbone times decay^(layers + 1 - d). */
static double rate_of(const cleat_param_options *options, int64_t depth, int64_t layers) {
    if (depth > layers) return 1;
    const double backbone = options->backbone_rate > 0 ? options->backbone_rate : 1;
    const double decay = options->layer_decay > 0 ? options->layer_decay : 1;
    return backbone * pow(decay, (double)(layers + 1 - depth));
}

void cleat_model_choose_rule(void *model, const char *param, int rank, cleat_param_rule *rule) {
    const cleat_model *m = model;
    const cleat_param_options *options = &m->options.params;
    if (options->no_decay_norm_bias && is_vector(param, rank)) rule->decay = 0;
    if (!needs_depths(options)) return;
    const int64_t layers = layers_of(m), depth = m->type->layer_of(m, param);
    rule->rate = (float)rate_of(options, depth, layers);
    rule->frozen = depth <= layers && depth < options->frozen_depths;
}
