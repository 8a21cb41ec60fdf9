/* Functions shared by the image classifiers. Loss: cross entropy, the mean over the images of a global batch,
 * with label smoothing and class weights. */
#include "models/image_classifier.h"

#include "cleat/ops.h"
#include "core/memory.h"
#include "data/image/common.h"
#include "models/baselines.h"

enum { LABEL = 1, LABELS, MIX }; /* indices of the dataset's fields; the last two only of mixed images */
enum { USUAL_CLASSES = 10, USUAL_CHANNELS = 3 };

const char *const cleat_image_classifier_terms[1] = {"cross_entropy"};

static const cleat_image_classifier_settings *settings_of(const cleat_model *model) {
    return model->settings;
}

void cleat_image_classifier_defaults(void *settings) {
    ((cleat_image_classifier_settings *)settings)->data.options = cleat_image_defaults();
}

cleat_problem cleat_image_classifier_problem(const void *settings) {
    return ((const cleat_image_classifier_settings *)settings)->data.options.targets.problem;
}

cleat_status cleat_image_classifier_check(const cleat_image_classifier_settings *settings, const cleat_record *record,
                                          cleat_error *error) {
    const cleat_image_options *data = &settings->data.options;
    const bool mixes = data->augment.mixup > 0 || data->augment.cutmix > 0;
    cleat_status status = cleat_image_settings_check(&settings->data, record, error);
    if (!status) status = cleat_problem_check(&data->targets, &settings->loss, data->classes, record, error);
    if (status || !mixes || !data->targets.problem || settings->loss.class_weights == CLEAT_WEIGHTING_NONE)
        return status;
    return cleat_record_contradict(record, error, "loss.class_weights",
                                   data->augment.mixup > 0 ? "data.mixup" : "data.cutmix",
                                   "the labels of mixed images have no weights: set loss.class_weights=none");
}

int64_t cleat_image_classifier_length(const cleat_model *model) {
    return settings_of(model)->data.options.size;
}

static const cleat_class_source class_source = {
    .name = cleat_images_class, .samples = cleat_images_class_samples, .label = cleat_images_label};

const cleat_label_source cleat_image_classifier_labels = {"pictures.json", "classes", cleat_images_class};

cleat_status cleat_image_classifier_open(cleat_model *model, const char *path, cleat_mode mode, const char *fitted,
                                         cleat_dataset **dataset, cleat_error *error) {
    cleat_image_options options = cleat_image_settings_options(&settings_of(model)->data, mode, fitted);
    options.partners = settings_of(model)->common.limit;
    cleat_dataset *opened = NULL;
    cleat_status status = cleat_images_open(path, &options, &opened, error);
    if (status) return status;
    cleat_image_info info = cleat_image_describe(opened);
    model->sizes.inputs = info.channels;
    model->sizes.classes = info.classes;
    status = cleat_classifier_open(model, &class_source, opened, settings_of(model)->loss.class_weights, mode, error);
    if (!status && mode == CLEAT_MODE_TRAIN && !(fitted && *fitted))
        status = cleat_classes_warn(&class_source, opened, path, settings_of(model)->loss.class_weights, info.classes,
                                    model->own, error);
    if (status) {
        cleat_dataset_destroy(opened);
        return status;
    }
    *dataset = opened;
    return CLEAT_OK;
}

static bool is_mixed(const cleat_model *model) {
    const cleat_augment *augment = &settings_of(model)->data.options.augment;
    return !cleat_model_has_targets(model) && (augment->mixup > 0 || augment->cutmix > 0);
}

static int64_t count_words(const char *text) {
    int64_t words = 0;
    for (; *text; ++text) words += *text != ' ' && (text[1] == ' ' || text[1] == 0);
    return words;
}

cleat_model_sizes cleat_image_classifier_sizes(const cleat_model *model) {
    const cleat_image_options *data = &settings_of(model)->data.options;
    cleat_model_sizes sizes = model->sizes;
    if (sizes.classes == 0 && data->targets.problem == CLEAT_REGRESSION) sizes.classes = 1;
    if (sizes.classes == 0) sizes.classes = *data->classes ? count_words(data->classes) : USUAL_CLASSES;
    if (sizes.inputs == 0) sizes.inputs = data->channels ? data->channels : USUAL_CHANNELS;
    return sizes;
}

cleat_image_classifier_graph cleat_image_classifier_begin(const cleat_model *model, cleat_graph *graph, cleat_mode mode,
                                                          int64_t batch, int64_t length, cleat_model_graph *built) {
    const int64_t image[4] = {batch, length, length, cleat_image_classifier_sizes(model).inputs};
    cleat_image_classifier_graph g = {.model = model, .graph = graph, .mode = mode, .batch = batch, .built = built};
    g.image = cleat_model_add_values(graph, "image", 4, image);
    const bool mixes = mode != CLEAT_MODE_PREDICT && is_mixed(model);
    const bool has_targets = cleat_model_has_targets(model);
    const int64_t pairs[3] = {batch, has_targets ? cleat_image_classifier_sizes(model).classes : 2, 1};
    if (mode != CLEAT_MODE_PREDICT)
        g.label = has_targets ? cleat_input(graph, "target", CLEAT_F32, 3, pairs)
                              : cleat_input(graph, "label", CLEAT_I32, 1, &batch);
    if (mixes) { /* also in evaluation, whose inputs have the places of those of training */
        g.label = cleat_input(graph, "labels", CLEAT_I32, 2, pairs);
        g.mix = cleat_input(graph, "mix", CLEAT_F32, 2, pairs);
    }
    g.inputs = cleat_model_add_inputs(graph, mode, mixes || has_targets ? 2 : 1, pairs);
    return g;
}

cleat_tensor *cleat_image_classifier_head(const cleat_image_classifier_graph *g, cleat_tensor *x) {
    const cleat_image_classifier_settings *s = settings_of(g->model);
    if (g->mode == CLEAT_MODE_TRAIN && s->dropout > 0) x = cleat_dropout(g->graph, x, g->inputs.rng, (float)s->dropout);
    if (s->data.options.targets.problem == CLEAT_REGRESSION) cleat_model_begin_f32_head(g->graph);
    return x;
}

void cleat_image_classifier_end(cleat_image_classifier_graph *g, cleat_tensor *logits) {
    const float smoothing = (float)settings_of(g->model)->loss.label_smoothing;
    logits = cleat_model_output(g->graph, logits, g->built);
    if (cleat_model_has_targets(g->model))
        cleat_targets_loss(g->model, g->graph, g->mode, logits, g->label, &g->inputs, g->built);
    if (g->mode == CLEAT_MODE_PREDICT || cleat_model_has_targets(g->model)) return;
    cleat_tensor *weight = g->inputs.sample_weight;
    if (g->mix) { /* each row of logits twice, with one of the two classes each */
        cleat_model_begin_f32_head(g->graph);
        weight = cleat_multiply(g->graph, weight, g->mix);
        logits = cleat_concat(g->graph, (cleat_tensor *[]){logits, logits}, 2);
        const int64_t rows = 2 * g->batch, classes = cleat_image_classifier_sizes(g->model).classes;
        logits = cleat_reshape(g->graph, logits, 2, (int64_t[]){rows, classes});
        weight = cleat_reshape(g->graph, weight, 1, &rows);
        g->label = cleat_reshape(g->graph, g->label, 1, &rows);
    }
    cleat_tensor *loss = cleat_cross_entropy(g->graph, logits, g->label, weight, smoothing);
    cleat_model_add_loss(g->graph, g->mode, &g->inputs, loss, g->built);
}

size_t cleat_image_classifier_fields(const cleat_model *model, cleat_synthetic_field *made) {
    const cleat_model_sizes sizes = cleat_image_classifier_sizes(model);
    const int64_t image[3] = {-1, -1, sizes.inputs}, target[2] = {sizes.classes, 1};
    made[0] = cleat_synthetic_floats("image", 3, image);
    made[LABEL] = cleat_model_has_targets(model) ? cleat_synthetic_floats("target", 2, target)
                                                 : cleat_synthetic_integers("label", sizes.classes, 0, NULL);
    if (!is_mixed(model)) return LABEL + 1;
    const int64_t two = 2;
    made[LABELS] = cleat_synthetic_integers("labels", sizes.classes, 1, &two);
    made[MIX] = cleat_synthetic_floats("mix", 1, &two);
    return MIX + 1;
}

/* sample_weight [B], or [B, 2] of mixed images: the class weight of each image (1 without data), divided by the number
 * of images in the global batch. */
void cleat_image_classifier_sample_weight(const cleat_model *model, const cleat_host_batch *batch,
                                          const cleat_global_batch *global_batch, float *values) {
    if (cleat_model_has_targets(model)) {
        cleat_targets_weight(model, cleat_image_classifier_sizes(model).classes, batch, global_batch, values);
        return;
    }
    const bool pairs = is_mixed(model) && batch->fields[LABELS];
    const int32_t *labels = batch->fields[pairs ? LABELS : LABEL];
    const cleat_class_info *known = model->own;
    for (int64_t b = 0; b < batch->batch * (pairs ? 2 : 1); ++b)
        values[b] = labels[b] < 0 ? 0.0f : (known ? known[labels[b]].weight : 1.0f) / (float)global_batch->samples;
}

cleat_status cleat_image_classifier_write(const cleat_model *model, const cleat_prediction *predictions, size_t count,
                                          const char *folder, cleat_error *error) {
    return cleat_classes_write(&class_source, model->sizes.classes, predictions, count, folder, error);
}

static cleat_status add_example(const cleat_model *model, const cleat_evaluation *evaluated, size_t index,
                                cleat_string *json, cleat_error *error) {
    const cleat_prediction *prediction = &evaluated->predictions[index];
    cleat_image image;
    cleat_status status = cleat_image_of_sample(prediction->dataset, prediction->sample, &image, error);
    if (status) return status;
    const cleat_class_example example = {.image = &image,
                                         .label = cleat_images_label(prediction->dataset, prediction->sample),
                                         .figure = evaluated->drawings};
    status = cleat_classes_add_example(model->own, model->sizes.classes, prediction, &example, json, error);
    cleat_image_free(&image);
    return status;
}

/* A small image has at most SMALL x SMALL pixels, each the mean of a block. */
enum { SMALL = 32 };

/* The standardised pixels of the small image. */
static cleat_status read_pixels(const cleat_dataset *dataset, size_t sample, cleat_scorer *scorer, cleat_error *error) {
    const cleat_image_info info = cleat_image_describe(dataset);
    const int64_t block = 1 + (info.size - 1) / SMALL, side = info.size / block, row = info.size * info.channels;
    float *pixels = cleat_alloc((size_t)(info.size * row), sizeof *pixels);
    if (!pixels) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for an image");
    cleat_status status = cleat_dataset_fill(dataset, sample, info.size, NULL, (void * [MIX + 1]){pixels}, error);
    for (int64_t i = 0; i < side * side * info.channels && !status; ++i) {
        const int64_t c = i % info.channels, x = i / info.channels % side * block, y = i / info.channels / side * block;
        double sum = 0;
        for (int64_t k = 0; k < block * block; ++k)
            sum += (double)pixels[(y + k / block) * row + (x + k % block) * info.channels + c];
        cleat_scorer_add(scorer, i, sum / (double)(block * block));
    }
    cleat_free(pixels);
    return status;
}

static cleat_status fitted_baseline(const cleat_model *model, const cleat_evaluation *evaluated, double *metric_state,
                                    char *text, cleat_error *error) {
    const cleat_image_info info = cleat_image_describe(evaluated->dataset);
    const int64_t side = info.size / (1 + (info.size - 1) / SMALL), features = side * side * info.channels;
    const cleat_scorer_source source = {.text = "the class with the nearest mean image of at most 32 x 32 pixels",
                                        .features = features,
                                        .cost = 10 * info.size * info.size + features * info.classes,
                                        .label = cleat_images_label,
                                        .read = read_pixels};
    return cleat_scorer_baseline(model, evaluated, &source, metric_state, text, error);
}

const cleat_model_examples cleat_image_classifier_examples = {.add = add_example,
                                                              .classes = cleat_classifier_table,
                                                              .baseline = cleat_classifier_baseline,
                                                              .fitted = fitted_baseline};
