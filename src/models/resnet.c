/* S3: images to classes, by a residual network. Loss: cross entropy, a mean over the images of a window, with label
 * smoothing and class weights. */
#include "nn/resnet.h"
#include "cleat/ops.h"
#include "core/memory.h"
#include "models/classes.h"
#include "models/image_models.h"
#include "nn/transformer.h"

#include <stdio.h>
#include <string.h>

static const char *const terms[] = {"cross_entropy"};

enum { LABEL = 1 }; /* of the dataset's fields */
enum { USUAL_CLASSES = 10, USUAL_CHANNELS = 3 };

/* model->own */
typedef struct resnet_own {
    cleat_resnet shape; /* of a reference; stages 0: the profile's */
    cleat_class classes[];
} resnet_own;

/* --- data ----------------------------------------------------------------------------------------------------- */

static int64_t fixed_length(const cleat_model *model) {
    return model->profile.data.image_size;
}

static const cleat_class_source class_source = {.name = cleat_images_class, .samples = cleat_images_class_samples};

static cleat_status make_own(cleat_model *model, int64_t classes, cleat_error *error) {
    resnet_own *own = cleat_alloc(1, sizeof *own + (size_t)classes * sizeof own->classes[0]);
    if (!own) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %lld classes", (long long)classes);
    cleat_free(model->own);
    model->own = own;
    return CLEAT_OK;
}

static cleat_status open_data(cleat_model *model, const char *path, cleat_mode mode, const char *fitted,
                              cleat_dataset **dataset, cleat_error *error) {
    cleat_image_options options = cleat_model_image_options(model, mode, fitted);
    cleat_dataset *opened = NULL;
    options.classes = model->profile.data.labels;
    cleat_status status = cleat_images_open(path, &options, &opened, error);
    if (status != CLEAT_OK) return status;
    cleat_image_info info = cleat_image_describe(opened);
    status = make_own(model, info.classes, error);
    if (status != CLEAT_OK) {
        cleat_dataset_destroy(opened);
        return status;
    }
    model->sizes.inputs = info.channels;
    model->sizes.classes = info.classes;
    resnet_own *own = model->own;
    cleat_classes_read(&class_source, opened, model->profile.loss.class_weights, info.classes, own->classes);
    *dataset = opened;
    return CLEAT_OK;
}

static int64_t count_words(const char *text) {
    int64_t words = 0;
    for (; *text; ++text) words += *text != ' ' && (text[1] == ' ' || text[1] == 0);
    return words;
}

/* Of a profile whose data are not there: what it says, or so many. */
static cleat_model_sizes sizes_of(const cleat_model *model) {
    const cleat_profile *p = &model->profile;
    cleat_model_sizes sizes = model->sizes;
    if (sizes.classes == 0) sizes.classes = *p->data.labels ? count_words(p->data.labels) : USUAL_CLASSES;
    if (sizes.inputs == 0) sizes.inputs = p->data.channels == CLEAT_AUTO ? USUAL_CHANNELS : p->data.channels;
    return sizes;
}

/* --- the graph ------------------------------------------------------------------------------------------------ */

static cleat_resnet shape_of(const cleat_model *model) {
    const cleat_profile *p = &model->profile;
    const resnet_own *own = model->own;
    if (own && own->shape.stages > 0) return own->shape;
    cleat_resnet shape = {.width = p->model.width,
                          .stages = CLEAT_RESNET_STAGES,
                          .blocks = {2, 2, 2, 2},
                          .large_stem = p->model.stem == CLEAT_STEM_LARGE};
    static const int64_t blocks_of_34[CLEAT_RESNET_STAGES] = {3, 4, 6, 3};
    if (p->model.depth == CLEAT_RESNET_34) memcpy(shape.blocks, blocks_of_34, sizeof blocks_of_34);
    return shape;
}

static void build(const cleat_model *model, cleat_graph *graph, cleat_mode mode, int64_t batch, int64_t length,
                  cleat_model_graph *built) {
    const cleat_model_sizes sizes = sizes_of(model);
    const cleat_profile *p = &model->profile;
    const cleat_resnet shape = shape_of(model);
    const int64_t image[4] = {batch, length, length, sizes.inputs};
    cleat_tensor *x = cleat_model_add_values(graph, "image", 4, image), *label = NULL;
    if (mode != CLEAT_MODE_PREDICT) label = cleat_input(graph, "label", CLEAT_I32, 1, &batch);
    cleat_model_inputs inputs = cleat_model_add_inputs(graph, mode, 1, &batch);
    const cleat_norm_mode norm = cleat_model_norm_mode(graph, mode, &inputs);
    x = cleat_nn_resnet(graph, x, &shape, &norm); /* [B, h, w, D] */
    x = cleat_model_global_avg_pool(graph, x);    /* [B, D] */
    if (mode == CLEAT_MODE_TRAIN && p->model.dropout > 0)
        x = cleat_dropout(graph, x, inputs.rng, (float)p->model.dropout);
    cleat_tensor *logits = cleat_nn_linear(graph, "fc", x, sizes.classes, NULL); /* [B, classes] */
    logits = cleat_model_output(graph, logits, built);
    if (mode == CLEAT_MODE_PREDICT) return;
    cleat_tensor *loss =
        cleat_cross_entropy(graph, logits, label, inputs.sample_weight, (float)p->loss.label_smoothing);
    cleat_model_add_loss(graph, mode, &inputs, loss, built);
}

/* sample_weight [B]: the weight of each image's class over the images of the window. */
static void sample_weight(const cleat_model *model, const cleat_host_batch *batch,
                          const cleat_global_batch *global_batch, float *values) {
    const int32_t *labels = batch->fields[LABEL];
    const resnet_own *own = model->own;
    for (int64_t b = 0; b < batch->batch; ++b)
        values[b] = labels[b] >= 0 ? own->classes[labels[b]].weight / (float)global_batch->samples : 0.0f;
}

/* --- metrics and predictions ---------------------------------------------------------------------------------- */

static size_t metric_state_size(const cleat_model *model) {
    return cleat_classes_metric_state_size(model->sizes.classes);
}

static cleat_status metric_update(const cleat_model *model, const cleat_host_batch *batch, const float *output,
                                  double *metric_state, cleat_error *error) {
    (void)error;
    cleat_classes_metric_update(batch->fields[LABEL], output, batch->count, model->sizes.classes, metric_state);
    return CLEAT_OK;
}

static void metric_compute(const cleat_model *model, const double *metric_state, cleat_metrics *found) {
    const resnet_own *own = model->own;
    cleat_classes_metric_compute(own->classes, model->sizes.classes, metric_state, found);
}

static cleat_status write(const cleat_model *model, const cleat_prediction *predictions, size_t count,
                          const char *folder, cleat_error *error) {
    return cleat_classes_write(&class_source, model->sizes.classes, predictions, count, folder, error);
}

/* --- reference trajectories ----------------------------------------------------------------------------------- */

/* Whether the trajectory has this block, or "blocks" of the config, [stages], says so; its stride from its shortcut. */
static bool read_blocks(const cleat_reference_config *config, cleat_resnet *shape) {
    const cJSON *blocks = cJSON_GetObjectItemCaseSensitive(config->json, "blocks"), *count;
    char name[CLEAT_NAME];
    int64_t width = shape->width;
    cJSON_ArrayForEach(count, blocks) {
        if (shape->stages == CLEAT_RESNET_STAGES || !cJSON_IsNumber(count) || count->valuedouble < 1) return false;
        shape->blocks[shape->stages++] = (int64_t)count->valuedouble;
    }
    if (blocks || !config->extent) return shape->stages > 0;
    for (int number = 1;; ++number) {
        snprintf(name, sizeof name, "b%d.c1.weight", number);
        int64_t features = config->extent(config->user, name, 0);
        if (features == 0) return shape->stages > 0;
        if (shape->stages == 0 || features == 2 * width) {
            if (shape->stages == CLEAT_RESNET_STAGES) return false;
            ++shape->stages;
        } else if (features != width) {
            return false;
        }
        width = features;
        ++shape->blocks[shape->stages - 1];
    }
}

/* "cross entropy; batch norm in training mode", with the first stage's "channels" and the images' size "px" */
static cleat_status from_reference(const cleat_reference_config *config, cleat_model *model, cleat_error *error) {
    cleat_resnet shape = {.last_gamma = 1};
    if (!cleat_reference_loss_says(config, "cross entropy; batch norm")) return CLEAT_ERR_NOT_SUPPORTED;
    shape.width = cleat_reference_size(config, "channels", "stem.weight", 0);
    shape.large_stem = cleat_reference_size(config, "stem", "stem.weight", 2) == 7;
    model->profile.model.dropout = 0;
    model->profile.data.image_size = cleat_reference_size(config, "px", NULL, 0);
    model->sizes.inputs = cleat_reference_size(config, "inputs", "stem.weight", 1);
    model->sizes.classes = cleat_reference_size(config, "classes", "fc.weight", 0);
    if (shape.width < 1 || model->profile.data.image_size < 1 || model->sizes.inputs < 1 || model->sizes.classes < 1 ||
        !read_blocks(config, &shape))
        return CLEAT_ERR_NOT_SUPPORTED;
    cleat_status status = make_own(model, 0, error);
    if (status == CLEAT_OK) ((resnet_own *)model->own)->shape = shape;
    return status;
}

/* input f32 [B, C, H, W] as PyTorch has it, target i64 [B] */
static void reference_arrays(const cleat_model *model, cleat_reference *r) {
    const int64_t size = model->profile.data.image_size;
    r->input = (cleat_reference_array){.rank = 4, .shape = {r->batch, sizes_of(model).inputs, size, size}};
    r->target =
        (cleat_reference_array){.integers = true, .below = sizes_of(model).classes, .rank = 1, .shape = {r->batch}};
}

static void reference_input(const cleat_model *model, const cleat_reference *r, const char *name, void *values) {
    (void)model;
    if (strcmp(name, "image") == 0) cleat_reference_channels_last(&r->input, values);
    if (strcmp(name, "label") == 0) cleat_reference_integers(&r->target, values);
    if (strcmp(name, "scale") == 0)
        for (int64_t b = 0; b < r->batch; ++b) ((float *)values)[b] = 1.0f / (float)r->batch;
}

const cleat_model_class cleat_image_resnet = {.name = "image_resnet",
                                              .terms = terms,
                                              .n_terms = 1,
                                              .open_data = open_data,
                                              .fixed_length = fixed_length,
                                              .build = build,
                                              .sample_weight = sample_weight,
                                              .metric_state_size = metric_state_size,
                                              .metric_update = metric_update,
                                              .metric_compute = metric_compute,
                                              .write = write,
                                              .from_reference = from_reference,
                                              .reference_arrays = reference_arrays,
                                              .reference_input = reference_input};
