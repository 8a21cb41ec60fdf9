/* The settings of fine-tuning: which parameters are trained, and how. */
#include "profile/schema.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_BLOCKS = 100000 };

/* Number of frozen depths (cleat_param_options); -1: the setting is invalid. */
static int64_t frozen_depths(const char *freeze) {
    if (strcmp(freeze, "none") == 0) return 0;
    if (strcmp(freeze, "embeddings") == 0) return 1;
    if (strcmp(freeze, "backbone") == 0) return CLEAT_FREEZE_BACKBONE;
    if (!*freeze || strspn(freeze, "0123456789") != strlen(freeze)) return -1;
    const long long blocks = strtoll(freeze, NULL, 10);
    return blocks <= MAX_BLOCKS ? 1 + blocks : -1;
}

cleat_status cleat_profile_check_finetune(const cleat_profile *p, const cleat_record *record, cleat_error *error) {
    if (frozen_depths(p->train.freeze) < 0)
        return cleat_record_refuse(record, error, "train", "freeze",
                                   "choose none, embeddings, backbone (all but the head), or a number of blocks, which "
                                   "freezes the embeddings and the first blocks");
    if (p->train.lora_rank != CLEAT_NONE && strcmp(p->train.freeze, "none") != 0)
        return cleat_record_contradict(record, error, (cleat_key_name){"train", "freeze"},
                                       (cleat_key_name){"train", "lora_rank"},
                                       "with adapters the whole backbone is frozen: set freeze = none");
    return CLEAT_OK;
}

cleat_param_options cleat_profile_params(const cleat_profile *p) {
    const double backbone = p->train.backbone_learning_rate;
    cleat_param_options options = {.backbone_rate = backbone > 0 ? backbone / p->train.learning_rate : 0,
                                   .layer_decay = p->train.layer_decay < 1 ? p->train.layer_decay : 0,
                                   .no_decay_norm_bias = !p->train.decay_norm_bias,
                                   .frozen_depths = frozen_depths(p->train.freeze)};
    if (p->train.lora_rank == CLEAT_NONE) return options;
    options.lora_rank = p->train.lora_rank;
    options.lora_alpha = p->train.lora_alpha;
    options.lora_dropout = p->train.lora_dropout;
    memcpy(options.lora_layers, p->train.lora_layers, sizeof options.lora_layers);
    return options;
}
