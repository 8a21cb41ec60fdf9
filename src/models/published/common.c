/* Reading the files of published image classifiers. */
#include "core/text.h"
#include "models/image_classifier.h"
#include "models/published/images.h"

#include <cjson/cJSON.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { SENTENCE = 512 };

static const cleat_st_tensor *find(const cleat_weights *weights, const char *format, va_list arguments) {
    char name[CLEAT_WEIGHT_NAME];
    vsnprintf(name, sizeof name, format, arguments);
    return cleat_weights_find(weights, name);
}

const cleat_st_tensor *cleat_published_find(const cleat_weights *weights, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const cleat_st_tensor *found = find(weights, format, arguments);
    va_end(arguments);
    return found;
}

int64_t cleat_published_extent(const cleat_weights *weights, int axis, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const cleat_st_tensor *found = find(weights, format, arguments);
    va_end(arguments);
    return found && axis < found->rank ? found->shape[axis] : 0;
}

bool cleat_published_is(const cleat_weights *weights, const char *const *names) {
    const char *own = cleat_weights_config_text(weights, "architecture");
    for (; own && *names; ++names) {
        const size_t size = strlen(*names);
        const char next = strncmp(own, *names, size) == 0 ? own[size] : 'x';
        if (next == 0 || next == '.' || next == '_' || (next >= '0' && next <= '9')) return true;
    }
    return false;
}

cleat_status cleat_published_refuse(const cleat_weights *weights, cleat_error *error, const char *format, ...) {
    char sentence[SENTENCE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED, "%s: this network is not supported: %s",
                      cleat_weights_path(weights), sentence);
}

/* --- settings ------------------------------------------------------------------------------------------------- */

cleat_status cleat_published_set_list(const cleat_setting_sink *sink, const char *setting, const int64_t *values,
                                      int64_t count, const char *source, cleat_error *error) {
    char text[SENTENCE];
    size_t used = 0;
    for (int64_t i = 0; i < count && used < sizeof text; ++i)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%lld", i ? " " : "", (long long)values[i]);
    return sink->set(sink->user, setting, text, source, error);
}

cleat_status cleat_published_set_eps(const cleat_weights *weights, const cleat_setting_sink *sink, const char *setting,
                                     double usual, cleat_error *error) {
    const cJSON *config = cleat_weights_config(weights);
    const cJSON *item = config ? cJSON_GetObjectItemCaseSensitive(config, "layer_norm_eps") : NULL;
    char number[32];
    cleat_number_print(cJSON_IsNumber(item) ? item->valuedouble : usual, number);
    return sink->set(sink->user, setting, number, "layer_norm_eps", error);
}

/* A list of numbers in the syntax of a profile; false: the item is none. */
static bool print_numbers(const cJSON *list, char text[SENTENCE]) {
    const cJSON *item;
    char number[32];
    size_t used = 0;
    cJSON_ArrayForEach(item, list) {
        if (!cJSON_IsNumber(item) || used + sizeof number > SENTENCE) return false;
        cleat_number_print(item->valuedouble, number);
        used += (size_t)snprintf(text + used, SENTENCE - used, "%s%s", used ? " " : "", number);
    }
    return used > 0;
}

typedef struct image_source {
    const cJSON *object;    /* NULL: none */
    const char *mean, *std; /* its members */
    const char *mean_source, *std_source;
} image_source;

/* ImageNet's, which nearly all checkpoints were trained with. */
static cleat_status set_normalisation(const image_source *from, const cleat_setting_sink *sink, cleat_error *error) {
    char mean[SENTENCE], std[SENTENCE];
    if (from->object && print_numbers(cJSON_GetObjectItemCaseSensitive(from->object, from->mean), mean) &&
        print_numbers(cJSON_GetObjectItemCaseSensitive(from->object, from->std), std)) {
        cleat_status status = sink->set(sink->user, "data.mean", mean, from->mean_source, error);
        return status ? status : sink->set(sink->user, "data.std", std, from->std_source, error);
    }
    cleat_status status = sink->set(sink->user, "data.mean", "0.485 0.456 0.406", "ImageNet's mean", error);
    return status ? status : sink->set(sink->user, "data.std", "0.229 0.224 0.225", "ImageNet's std", error);
}

static cleat_status set_size(const cJSON *timm, const cleat_setting_sink *sink, cleat_error *error) {
    const cJSON *side = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(timm, "input_size"), 2);
    if (!cJSON_IsNumber(side) || !(side->valuedouble >= 1 && side->valuedouble <= 8192)) return CLEAT_OK;
    return cleat_set_integer(sink, "data.image_size", (int64_t)side->valuedouble, "pretrained_cfg.input_size", error);
}

cleat_status cleat_published_set_images(const cleat_weights *weights, const cleat_setting_sink *sink, const char *stem,
                                        cleat_error *error) {
    const cJSON *config = cleat_weights_config(weights);
    const cJSON *timm = config ? cJSON_GetObjectItemCaseSensitive(config, "pretrained_cfg") : NULL;
    const int64_t channels = cleat_published_extent(weights, 1, "%s", stem);
    cJSON *preprocessor = NULL;
    cleat_status status = cleat_set_integer(sink, "data.channels", channels, stem, error);
    if (!status) status = cleat_weights_read_json(weights, "preprocessor_config.json", &preprocessor, error);
    image_source from = {preprocessor, "image_mean", "image_std", "image_mean of preprocessor_config.json",
                         "image_std of preprocessor_config.json"};
    if (timm) from = (image_source){timm, "mean", "std", "pretrained_cfg.mean", "pretrained_cfg.std"};
    /* ImageNet's is for colours. */
    if (!status && (channels == 3 || from.object)) status = set_normalisation(&from, sink, error);
    if (!status && timm) status = set_size(timm, sink, error);
    cJSON_Delete(preprocessor);
    return status;
}

/* --- writing -------------------------------------------------------------------------------------------------- */

void cleat_published_add_list(cJSON *object, const char *key, const int64_t *values, int64_t count) {
    cJSON *list = cJSON_AddArrayToObject(object, key);
    for (int64_t i = 0; list && i < count; ++i) cJSON_AddItemToArray(list, cJSON_CreateNumber((double)values[i]));
}

/* Numbers separated by blanks, as in a profile. */
static void add_numbers(cJSON *object, const char *key, const char *text) {
    char word[32];
    double number;
    cJSON *list = text && *text ? cJSON_AddArrayToObject(object, key) : NULL;
    for (; list && *(text += strspn(text, " ")); text += strcspn(text, " ")) {
        snprintf(word, sizeof word, "%.*s", (int)strcspn(text, " "), text);
        if (cleat_number_parse(word, &number)) cJSON_AddItemToArray(list, cJSON_CreateNumber(number));
    }
}

cJSON *cleat_published_add_timm(const cleat_model *model, cJSON *config, const char *name) {
    const cleat_image_classifier_settings *settings = model->settings;
    const cleat_image_options *images = &settings->data.options;
    const cleat_model_sizes sizes = cleat_image_classifier_sizes(model);
    const int64_t input[3] = {sizes.inputs, images->size, images->size};
    cJSON_AddStringToObject(config, "architecture", name);
    cJSON_AddNumberToObject(config, "num_classes", (double)sizes.classes);
    cJSON *prepared = cJSON_AddObjectToObject(config, "pretrained_cfg");
    if (prepared) {
        cleat_published_add_list(prepared, "input_size", input, 3);
        add_numbers(prepared, "mean", images->mean);
        add_numbers(prepared, "std", images->std);
        cJSON_AddNumberToObject(prepared, "num_classes", (double)sizes.classes);
    }
    cJSON *arguments = cJSON_AddObjectToObject(config, "model_args");
    if (arguments && sizes.inputs != 3) cJSON_AddNumberToObject(arguments, "in_chans", (double)sizes.inputs);
    return arguments;
}

void cleat_published_add_transformers(const cleat_model *model, cJSON *config, const char *type, const char *holder) {
    const cleat_image_classifier_settings *settings = model->settings;
    cJSON *holders = cJSON_AddArrayToObject(config, "architectures");
    if (holders) cJSON_AddItemToArray(holders, cJSON_CreateString(holder));
    cJSON_AddStringToObject(config, "model_type", type);
    cJSON_AddStringToObject(config, "hidden_act", "gelu");
    cJSON_AddNumberToObject(config, "image_size", (double)settings->data.options.size);
    cJSON_AddNumberToObject(config, "num_channels", (double)cleat_image_classifier_sizes(model).inputs);
}
