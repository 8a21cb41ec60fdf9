/* Settings and normalisation of image models. */
#include "models/image_models.h"

#include "cleat/ops.h"
#include "data/image/common.h"

cleat_image_options cleat_image_settings_options(const cleat_image_settings *settings, cleat_mode mode,
                                                 const char *fitted) {
    cleat_image_options options = settings->options;
    options.cache_bytes = settings->cache_mb << 20;
    if (settings->randaugment.count == 2) {
        options.augment.randaugment_count = settings->randaugment.values[0];
        options.augment.randaugment_magnitude = settings->randaugment.values[1];
    }
    options.fitted = fitted ? fitted : "";
    options.predict = mode == CLEAT_MODE_PREDICT;
    return options;
}

cleat_status cleat_image_settings_check(const cleat_image_settings *settings, const cleat_record *record,
                                        cleat_error *error) {
    const cleat_image_options *options = &settings->options;
    const char *fault = cleat_image_normalisation_fault(options->mean, options->std);
    if (fault) return cleat_record_contradict(record, error, "data.mean", "data.std", "%s", fault);
    if (settings->randaugment.count && settings->randaugment.count != 2)
        return cleat_record_refuse(record, error, "data.randaugment",
                                   "takes two numbers: operations for each image, and their magnitude, e.g. 2,9");
    return cleat_fractions_check(options->val_fraction, options->test_fraction, record, error);
}

cleat_status cleat_stages_check(const cleat_int_list *blocks, const cleat_int_list *widths, const cleat_record *record,
                                cleat_error *error) {
    if (blocks->count > CLEAT_MODEL_STAGES)
        return cleat_record_refuse(record, error, "model.blocks", "a network has at most %d stages",
                                   CLEAT_MODEL_STAGES);
    const int64_t stages = blocks->count > 0 ? blocks->count : CLEAT_MODEL_STAGES;
    if (widths->count <= 0 || widths->count == stages) return CLEAT_OK;
    return cleat_record_contradict(record, error, "model.widths", "model.blocks",
                                   "there must be a width for each of the %lld stages", (long long)stages);
}

int64_t cleat_stages_of(const cleat_int_list *setting, const int64_t *sizes, int64_t *counts) {
    const int64_t *given = setting->count > 0 ? setting->values : sizes[0] > 0 ? sizes : NULL;
    int64_t stages = 0;
    while (given && stages < CLEAT_MODEL_STAGES && given[stages] > 0 && (given == sizes || stages < setting->count)) {
        counts[stages] = given[stages];
        ++stages;
    }
    return given ? stages : CLEAT_MODEL_STAGES;
}

cleat_norm_mode cleat_model_norm_mode(cleat_graph *graph, cleat_mode mode, cleat_model_inputs *inputs) {
    const float momentum = 0.1f; /* as torch.nn.BatchNorm2d */
    if (mode != CLEAT_MODE_TRAIN) return (cleat_norm_mode){.training = false};
    inputs->samples = cleat_model_add_samples(graph, mode);
    return (cleat_norm_mode){.training = true, .samples = inputs->samples, .momentum = momentum};
}
