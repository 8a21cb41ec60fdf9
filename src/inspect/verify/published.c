/* Published checkpoints with expected results: everything is renamed, and laid out, as in a reference trajectory. */
#include "verify/published.h"

#include "cleat/profile.h"
#include "core/memory.h"
#include "core/string.h"
#include "graph/graph.h"
#include "graph/store.h"
#include "models/model.h"
#include "models/targets.h"
#include "profile/adopt.h"
#include "weights/layout.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct converter {
    cleat_weights *weights, *expected;
    const cleat_safetensors *results; /* expected.safetensors as a whole: the small arrays */
    const cleat_architecture *architecture;
    cleat_profile *profile;
    cleat_model *model;
    cleat_store *store;
    cleat_graph *graph;
    const cleat_st_tensor *labels, *output;
    int64_t batch, length, classes, channels;
    cleat_string sizes;
    cleat_st_tensor *tensors; /* [count] each owns its name and data */
    size_t count, capacity;
    const char *prefix; /* of the arrays being loaded: "param/", "grad/", "after/" */
    float *values;      /* of the array being loaded */
} converter;

/* --- arrays of the trajectory --------------------------------------------------------------------------------- */

/* Appends an array; *data [elements, zero] is for the caller to fill. */
static cleat_status add_array(converter *c, const char *prefix, const char *name, cleat_st_dtype dtype, int rank,
                              const int64_t *shape, void *data, cleat_error *error) {
    char full[CLEAT_NAME + 16];
    cleat_st_tensor made = {.dtype = dtype, .rank = rank};
    memcpy(made.shape, shape, (size_t)rank * sizeof *shape);
    snprintf(full, sizeof full, "%s%s", prefix, name);
    cleat_status status = cleat_grow(&c->tensors, c->count, &c->capacity, error);
    if (status) return status;
    char *copy = cleat_strdup(full);
    void *elements = cleat_alloc((size_t)cleat_st_elements(&made) + 1, cleat_st_dtype_size(dtype));
    if (!copy || !elements) {
        cleat_free(copy);
        cleat_free(elements);
        return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the array %s", full);
    }
    made.name = copy;
    made.data = elements;
    c->tensors[c->count++] = made;
    *(void **)data = elements;
    return CLEAT_OK;
}

/* --- what the folder is --------------------------------------------------------------------------------------- */

static cleat_status find_array(const converter *c, const char *name, int min_rank, int max_rank,
                               const cleat_st_tensor **found, cleat_error *error) {
    const cleat_st_tensor *array = cleat_safetensors_find(c->results, name);
    if (!array || array->rank < min_rank || array->rank > max_rank)
        return cleat_fail(error, CLEAT_ERR_FORMAT, "%s/expected.safetensors: has no array '%s' of rank %d to %d",
                          cleat_weights_folder(c->weights), name, min_rank, max_rank);
    const bool labels = strcmp(name, "labels") == 0, numbers = labels && array->dtype == CLEAT_ST_F32; /* targets */
    const bool integers = (labels && !numbers) || strstr(name, "ids") || strcmp(name, "attention_mask") == 0;
    if (integers ? array->dtype != CLEAT_ST_I64 && array->dtype != CLEAT_ST_I32 : array->dtype != CLEAT_ST_F32)
        return cleat_fail(error, CLEAT_ERR_FORMAT, "%s/expected.safetensors: %s must have %s",
                          cleat_weights_folder(c->weights), name,
                          integers ? "integers of 64 or 32 bits (I64, I32)" : "numbers of 32 bits (F32)");
    *found = array;
    return CLEAT_OK;
}

static cleat_status read_sizes(converter *c, cleat_error *error) {
    const cleat_st_tensor *input = NULL;
    const bool text = cleat_safetensors_find(c->results, "input_ids") != NULL;
    cleat_status status = find_array(c, text ? "input_ids" : "pixel_values", text ? 2 : 4, text ? 2 : 4, &input, error);
    if (!status) status = find_array(c, "labels", 1, 3, &c->labels, error);
    if (!status) status = find_array(c, "output", 2, 4, &c->output, error);
    if (status) return status;
    c->batch = input->shape[0];
    c->length = input->shape[text ? 1 : 2];
    c->channels = text ? 0 : input->shape[1];
    c->classes = c->output->shape[c->output->rank == 4 ? 1 : c->output->rank - 1];
    if (c->batch > 0 && c->labels->shape[0] == c->batch && c->output->shape[0] == c->batch &&
        (text || input->shape[3] == c->length))
        return CLEAT_OK;
    return cleat_fail(error, CLEAT_ERR_FORMAT,
                      "%s/expected.safetensors: inputs, labels and output are not of one batch",
                      cleat_weights_folder(c->weights));
}

/* The field that has the labels. */
static const cleat_synthetic_field *label_field(const cleat_synthetic_field *fields, size_t count) {
    for (size_t i = 0; i < count; ++i)
        if (cleat_has_word("label labels mask", fields[i].field.name, ' ')) return &fields[i];
    return NULL;
}

/* Whether labels of the family have the rank of those expected. */
static cleat_status suits(const cleat_model_class *family, const converter *c, bool *suitable, cleat_error *error) {
    cleat_data_settings *settings = NULL;
    cleat_model *model = NULL;
    cleat_synthetic_field fields[CLEAT_MODEL_FIELDS];
    const cleat_model_options options = {.precision = CLEAT_PRECISION_F32};
    *suitable = family->problem != NULL;
    if (c->labels->dtype == CLEAT_ST_F32) return CLEAT_OK;
    cleat_status status = cleat_settings_create(family, &settings, error);
    if (!status) status = cleat_model_create(family, settings, &options, &model, error);
    if (!status) {
        const cleat_synthetic_field *field = label_field(fields, family->fields(model, fields));
        *suitable = field && field->field.rank + 1 == c->labels->rank;
    }
    cleat_model_destroy(model);
    cleat_settings_destroy(family, settings);
    return status;
}

/* Among the families that support the network with labels of this rank: the one whose head is in the file, else the
 * first, whose error names what is missing. */
static cleat_status find_family(const converter *c, const cleat_model_class **family, cleat_error *error) {
    const cleat_model_class *first = NULL;
    cleat_error why = {0};
    for (size_t i = 0; cleat_model_classes[i]; ++i) {
        const cleat_architecture *architecture;
        bool suitable = false;
        if (!cleat_model_classes[i]->architectures) continue;
        if (cleat_architecture_find(cleat_model_classes[i]->architectures, c->weights, &architecture, &why)) continue;
        cleat_status status = suits(cleat_model_classes[i], c, &suitable, error);
        if (status) return status;
        if (!suitable) continue;
        if (!first) first = cleat_model_classes[i];
        if (!cleat_architecture_has_head(architecture, c->weights)) continue;
        first = cleat_model_classes[i];
        break;
    }
    if (first) {
        *family = first;
        return CLEAT_OK;
    }
    const char *type = cleat_weights_config_text(c->weights, "model_type");
    if (!type) type = cleat_weights_config_text(c->weights, "architecture");
    return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED,
                      "%s: no model family can be a network of type '%.60s' with such labels",
                      cleat_weights_path(c->weights), type ? type : "");
}

/* --- the model ------------------------------------------------------------------------------------------------ */

static double number_in(const cJSON *object, const char *name, double fallback) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsNumber(item) ? item->valuedouble : fallback;
}

static void add_optimizer(const converter *c, cleat_string *text) {
    const char *metadata = cleat_safetensors_metadata(c->results, "optimizer");
    cJSON *settings = metadata ? cJSON_Parse(metadata) : NULL;
    const cJSON *betas = cJSON_GetObjectItemCaseSensitive(settings, "betas");
    const cJSON *beta1 = cJSON_GetArrayItem(betas, 0), *beta2 = cJSON_GetArrayItem(betas, 1);
    cleat_string_add(text, "[train]\nlearning_rate = %g\nweight_decay = %g\neps = %g\nbeta1 = %g\nbeta2 = %g\n",
                     number_in(settings, "lr", 1e-3), number_in(settings, "weight_decay", 0.01),
                     number_in(settings, "eps", 1e-8), cJSON_IsNumber(beta1) ? beta1->valuedouble : 0.9,
                     cJSON_IsNumber(beta2) ? beta2->valuedouble : 0.999);
    cleat_string_add(text, "max_grad_norm = none\n");
    cJSON_Delete(settings);
}

/* Assigns a setting if the family has it. */
static cleat_status assign(cleat_profile *profile, const char *setting, const char *value, cleat_error *error) {
    char assignment[160];
    if (!cleat_profile_key_help(profile, setting)) return CLEAT_OK;
    snprintf(assignment, sizeof assignment, "%s=%s", setting, value);
    return cleat_profile_set(profile, assignment, error);
}

static cleat_status make_profile(converter *c, cleat_error *error) {
    const cleat_model_class *family = NULL;
    cleat_string text = {0};
    char size[32];
    cleat_status status = find_family(c, &family, error);
    if (!status) status = cleat_architecture_find(family->architectures, c->weights, &c->architecture, error);
    if (!status) status = cleat_profile_create(&c->profile, error);
    if (status) return status;
    cleat_string_add(&text, "[model]\ntype = %s\n", family->name);
    add_optimizer(c, &text);
    if (text.failed) status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a profile");
    if (!status) status = cleat_profile_read_text(c->profile, "expected.safetensors", text.data, text.size, error);
    cleat_string_free(&text);
    snprintf(size, sizeof size, "%lld", (long long)c->length);
    if (!status) status = assign(c->profile, "model.dropout", "0", error);
    /* All positions of a masked language model are compared, whichever have a label. */
    if (!status) status = assign(c->profile, "data.mask_fraction", "1", error);
    if (!status) status = assign(c->profile, c->channels ? "data.image_size" : "data.max_length", size, error);
    snprintf(size, sizeof size, "%lld", (long long)c->channels);
    if (!status && c->channels) status = assign(c->profile, "data.channels", size, error);
    return status ? status : cleat_profile_adopt(c->profile, c->weights, error);
}

static cleat_status make_model(converter *c, cleat_error *error) {
    cleat_model_graph built;
    cleat_status status = cleat_profile_create_model(c->profile, &c->model, error);
    if (status) return status;
    cleat_string_add(&c->sizes, "{\"classes\": %lld", (long long)c->classes);
    if (c->channels) cleat_string_add(&c->sizes, ", \"inputs\": %lld", (long long)c->channels);
    if (cleat_safetensors_find(c->results, "token_type_ids")) cleat_string_add(&c->sizes, ", \"pairs\": 1");
    cleat_string_add(&c->sizes, "}");
    if (c->sizes.failed) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a profile");
    status = cleat_model_set_sizes(c->model, c->sizes.data, error);
    if (!status) status = cleat_store_create(&c->store, error);
    if (!status) status = cleat_graph_create(c->store, "published", &c->graph, error);
    if (status) return status;
    cleat_model_build(c->model, c->graph, CLEAT_MODE_TRAIN, c->batch, c->length, &built);
    return cleat_graph_status(c->graph, error);
}

/* --- parameters ----------------------------------------------------------------------------------------------- */

static cleat_status write(void *user, cleat_tensor *tensor, int64_t first, int64_t count, const float *values,
                          cleat_error *error) {
    converter *c = user;
    int64_t shape[CLEAT_MAX_RANK];
    const int rank = cleat_torch_shape(tensor, tensor->rank, shape);
    cleat_status status =
        first == 0 ? add_array(c, c->prefix, tensor->name, CLEAT_ST_F32, rank, shape, &c->values, error) : CLEAT_OK;
    if (!status) cleat_to_torch_part(tensor, rank, count, values, c->values + first);
    return status;
}

static cleat_status refuse_missing(void *user, cleat_tensor *tensor, cleat_error *error) {
    const converter *c = user;
    if (tensor->is_buffer) return CLEAT_OK;
    return cleat_fail(error, CLEAT_ERR_FORMAT,
                      "%s: has no %s values of the network's parameter %s, or of another shape",
                      cleat_weights_folder(c->weights), *c->prefix ? c->prefix : "", tensor->name);
}

/* Buffers have neither gradients nor values after the steps. */
static cleat_status load(converter *c, const cleat_weights *from, const char *prefix, const char *prefix_there,
                         cleat_error *error) {
    const size_t buffers = c->store->buffer_count;
    cleat_weight_report report = {0};
    const cleat_weight_target target = {.architecture = c->architecture,
                                        .model = c->model,
                                        .store = c->store,
                                        .prefix = prefix_there,
                                        .write = write,
                                        .draw = refuse_missing,
                                        .user = c};
    c->prefix = prefix;
    if (*prefix_there) c->store->buffer_count = 0;
    cleat_status status = cleat_weights_load(from, &target, &report, error);
    c->store->buffer_count = buffers;
    cleat_weight_report_free(&report);
    return status;
}

/* --- the batch ------------------------------------------------------------------------------------------------ */

static int64_t integer_at(const cleat_st_tensor *array, int64_t i) {
    return array->dtype == CLEAT_ST_I32 ? ((const int32_t *)array->data)[i] : ((const int64_t *)array->data)[i];
}

static cleat_status not_this(const converter *c, const cleat_st_tensor *array, int64_t i, const char *range,
                             cleat_error *error) {
    return cleat_fail(error, CLEAT_ERR_FORMAT, "%s/expected.safetensors: %s: value %lld is %lld; it must be %s",
                      cleat_weights_folder(c->weights), array->name, (long long)i, (long long)integer_at(array, i),
                      range);
}

/* Ids [B, L] as integers of 32 bits; whether they are in the vocabulary is checked with the trajectory. */
static cleat_status copy_ids(const converter *c, const cleat_st_tensor *ids, int32_t *to, cleat_error *error) {
    for (int64_t i = 0; i < c->batch * c->length; ++i) {
        const int64_t id = integer_at(ids, i);
        if (id < INT32_MIN || id > INT32_MAX) return not_this(c, ids, i, "an id of the vocabulary", error);
        to[i] = (int32_t)id;
    }
    return CLEAT_OK;
}

/* Tokens behind the end of a text are -1 here; `lengths` counts the others. */
static cleat_status add_texts(converter *c, cleat_error *error) {
    const int64_t shape[2] = {c->batch, c->length};
    const cleat_st_tensor *ids = NULL, *mask = NULL, *types = NULL;
    int32_t *tokens = NULL, *lengths = NULL, *copies = NULL;
    cleat_status status = find_array(c, "input_ids", 2, 2, &ids, error);
    if (!status) status = find_array(c, "attention_mask", 2, 2, &mask, error);
    if (!status && cleat_safetensors_find(c->results, "token_type_ids"))
        status = find_array(c, "token_type_ids", 2, 2, &types, error);
    if (!status && (cleat_st_elements(mask) != cleat_st_elements(ids) ||
                    (types && cleat_st_elements(types) != cleat_st_elements(ids))))
        status =
            cleat_fail(error, CLEAT_ERR_FORMAT, "%s/expected.safetensors: input_ids and attention_mask differ in shape",
                       cleat_weights_folder(c->weights));
    if (!status) status = add_array(c, "", "tokens", CLEAT_ST_I32, 2, shape, &tokens, error);
    if (!status) status = add_array(c, "", "lengths", CLEAT_ST_I32, 1, shape, &lengths, error);
    if (!status) status = copy_ids(c, ids, tokens, error);
    for (int64_t i = 0; i < c->batch * c->length && !status; ++i) {
        const bool real = integer_at(mask, i) != 0;
        if (real && lengths[i / c->length] < i % c->length)
            status = not_this(c, mask, i, "0 behind the end of a text", error);
        if (!real) tokens[i] = -1;
        lengths[i / c->length] += real;
    }
    if (status || !types) return status;
    status = add_array(c, "", "types", CLEAT_ST_I32, 2, shape, &copies, error);
    return status ? status : copy_ids(c, types, copies, error);
}

/* [B, C, H, W] -> [B, H, W, C] */
static cleat_status add_images(converter *c, cleat_error *error) {
    const int64_t size = c->length, channels = c->channels, shape[4] = {c->batch, size, size, channels};
    const cleat_st_tensor *pixels = NULL;
    float *image = NULL;
    cleat_status status = find_array(c, "pixel_values", 4, 4, &pixels, error);
    if (!status) status = add_array(c, "", "image", CLEAT_ST_F32, 4, shape, &image, error);
    if (status) return status;
    for (int64_t b = 0; b < c->batch; ++b)
        for (int64_t k = 0; k < channels; ++k)
            for (int64_t i = 0; i < size * size; ++i)
                image[(b * size * size + i) * channels + k] =
                    ((const float *)pixels->data)[(b * channels + k) * size * size + i];
    return CLEAT_OK;
}

enum { NO_CLASS = 255 }; /* of masks: the label that transformers' segmentation losses leave out */

/* Targets, each a label (0 or 1) or a number; NaN is unknown. */
static cleat_status add_targets(converter *c, cleat_error *error) {
    const int64_t shape[3] = {c->batch, c->classes, 1}, elements = c->batch * c->classes;
    const float *labels = c->labels->data;
    float *targets = NULL, *weights = NULL;
    int64_t counted = 0;
    if (!cleat_model_has_targets(c->model) || cleat_st_elements(c->labels) != elements)
        return cleat_fail(error, CLEAT_ERR_FORMAT,
                          "%s/expected.safetensors: labels that are numbers need a problem_type in config.json that is "
                          "regression or multi_label_classification, and the shape of the output",
                          cleat_weights_folder(c->weights));
    cleat_status status = add_array(c, "", "target", CLEAT_ST_F32, 3, shape, &targets, error);
    if (!status) status = add_array(c, "", "scale", CLEAT_ST_F32, 2, shape, &weights, error);
    if (status) return status;
    for (int64_t i = 0; i < elements; ++i) counted += !isnan(labels[i]);
    for (int64_t i = 0; i < elements; ++i) {
        targets[i] = isnan(labels[i]) ? 0 : labels[i];
        weights[i] = isnan(labels[i]) ? 0 : 1 / (float)counted;
    }
    return CLEAT_OK;
}

/* The loss is the mean over all labels that count: each has the weight 1 / their number. */
static cleat_status add_labels(converter *c, cleat_error *error) {
    const int64_t elements = cleat_st_elements(c->labels);
    cleat_synthetic_field fields[CLEAT_MODEL_FIELDS];
    const cleat_synthetic_field *field = label_field(fields, c->model->type->fields(c->model, fields));
    int32_t *labels = NULL;
    float *weights = NULL;
    int64_t counted = 0;
    if (c->labels->dtype == CLEAT_ST_F32) return add_targets(c, error);
    if (!field)
        return cleat_fail(error, CLEAT_ERR_FORMAT,
                          "%s/expected.safetensors: labels must be numbers (F32) for this "
                          "problem_type",
                          cleat_weights_folder(c->weights));
    cleat_status status =
        add_array(c, "", field->field.name, CLEAT_ST_I32, c->labels->rank, c->labels->shape, &labels, error);
    if (!status) status = add_array(c, "", "scale", CLEAT_ST_F32, c->labels->rank, c->labels->shape, &weights, error);
    if (status) return status;
    for (int64_t i = 0; i < elements; ++i) {
        const int64_t label = integer_at(c->labels, i);
        if (label >= c->classes && !(label == NO_CLASS && c->labels->rank == 3)) {
            char range[64];
            snprintf(range, sizeof range, "below %lld, or negative without a label", (long long)c->classes);
            return not_this(c, c->labels, i, range, error);
        }
        labels[i] = label >= 0 && label < c->classes ? (int32_t)label : field->field.pad;
        counted += label >= 0 && label < c->classes;
    }
    for (int64_t i = 0; i < elements; ++i) weights[i] = labels[i] == field->field.pad ? 0 : 1 / (float)counted;
    return CLEAT_OK;
}

/* --- results -------------------------------------------------------------------------------------------------- */

/* Bilinear, with pixel-centre alignment, as cleat_resize. */
static float sample(const float *map, int64_t height, int64_t width, double y, double x) {
    y = fmax(y, 0);
    x = fmax(x, 0);
    const int64_t top = (int64_t)y, left = (int64_t)x;
    const int64_t bottom = top + 1 < height ? top + 1 : top, right = left + 1 < width ? left + 1 : left;
    const double down = y - (double)top, over = x - (double)left;
    return (float)((1 - down) * ((1 - over) * map[top * width + left] + over * map[top * width + right]) +
                   down * ((1 - over) * map[bottom * width + left] + over * map[bottom * width + right]));
}

/* The network resizes its logits to the size of the image. */
static cleat_status add_map_output(converter *c, cleat_error *error) {
    const int64_t size = c->length, height = c->output->shape[2], width = c->output->shape[3];
    const int64_t shape[4] = {c->batch, c->classes, size, size};
    float *output = NULL;
    cleat_status status = add_array(c, "", "output", CLEAT_ST_F32, 4, shape, &output, error);
    for (int64_t m = 0; m < c->batch * c->classes && !status; ++m)
        for (int64_t i = 0; i < size * size; ++i) {
            const double y = ((double)(i / size) + 0.5) * (double)height / (double)size - 0.5,
                         x = ((double)(i % size) + 0.5) * (double)width / (double)size - 0.5;
            output[m * size * size + i] =
                sample((const float *)c->output->data + m * height * width, height, width, y, x);
        }
    return status;
}

static cleat_status copy_array(converter *c, const cleat_st_tensor *array, const char *name, cleat_error *error) {
    float *copy = NULL;
    cleat_status status = add_array(c, "", name, CLEAT_ST_F32, array->rank, array->shape, &copy, error);
    if (!status) memcpy(copy, array->data, cleat_st_bytes(array));
    return status;
}

static cleat_status add_results(converter *c, cleat_error *error) {
    const cleat_st_tensor *loss = NULL;
    cleat_status status = find_array(c, "loss", 1, 1, &loss, error);
    if (!status) status = copy_array(c, loss, "loss", error);
    if (status) return status;
    return c->output->rank == 4 ? add_map_output(c, error) : copy_array(c, c->output, "output", error);
}

/* --- all of it ------------------------------------------------------------------------------------------------ */

static cleat_status encode(converter *c, const char *folder, cleat_safetensors **file, cleat_error *error) {
    char *profile = NULL, *bytes = NULL;
    size_t size = 0;
    cleat_status status = cleat_profile_dump(c->profile, &profile, error);
    const cleat_st_metadata metadata[] = {{"profile", profile}, {"sizes", c->sizes.data}, {"output", "evaluation"}};
    if (!status) status = cleat_safetensors_encode(c->tensors, c->count, metadata, 3, &bytes, &size, error);
    if (!status) {
        status = cleat_safetensors_adopt(folder, bytes, size, file, error);
        if (status) cleat_free(bytes);
    }
    cleat_free(profile);
    return status;
}

static void close_all(converter *c) {
    for (size_t i = 0; i < c->count; ++i) {
        cleat_free((void *)c->tensors[i].name);
        cleat_free((void *)c->tensors[i].data);
    }
    cleat_free(c->tensors);
    cleat_string_free(&c->sizes);
    cleat_graph_destroy(c->graph);
    cleat_store_destroy(c->store);
    cleat_model_destroy(c->model);
    cleat_profile_destroy(c->profile);
    cleat_weights_close(c->expected);
    cleat_weights_close(c->weights);
}

cleat_status cleat_published_golden(const char *folder, cleat_safetensors **file, cleat_error *error) {
    converter c = {.prefix = ""};
    cleat_safetensors *results = NULL;
    char path[1280];
    snprintf(path, sizeof path, "%.1200s/expected.safetensors", folder);
    cleat_status status = cleat_weights_open(folder, &c.weights, error);
    if (!status) status = cleat_weights_open_file(folder, "expected.safetensors", &c.expected, error);
    if (!status) status = cleat_safetensors_open(path, &results, error);
    c.results = results;
    if (!status) status = read_sizes(&c, error);
    if (!status) status = make_profile(&c, error);
    if (!status) status = make_model(&c, error);
    if (!status) status = load(&c, c.weights, "param/", "", error);
    if (!status) status = load(&c, c.expected, "grad/", "grad/", error);
    if (!status) status = load(&c, c.expected, "after/", "after/", error);
    if (!status) status = c.channels ? add_images(&c, error) : add_texts(&c, error);
    if (!status) status = add_labels(&c, error);
    if (!status) status = add_results(&c, error);
    if (!status) status = encode(&c, folder, file, error);
    cleat_safetensors_close(results);
    close_all(&c);
    return status;
}
