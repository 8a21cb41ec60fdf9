/* Reading the files of published image classifiers. */
#include "core/string.h"
#include "models/image_classifier.h"
#include "models/published/images.h"
#include "models/published/labels.h"
#include "weights/config.h"
#include "json/member.h"

#include <cjson/cJSON.h>
#include <math.h>
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

cleat_status cleat_published_pooling(const cleat_weights *weights, const char *head, const char *usual,
                                     const char **pooling, cleat_error *error) {
    static const char *const paths[] = {"model_args.global_pool", "global_pool"};
    const cJSON *said = NULL;
    cleat_status status = CLEAT_OK;
    for (int i = 0; i < 2 && !said && !status; ++i)
        status = cleat_weights_member(weights, paths[i], CLEAT_JSON_TEXT | CLEAT_JSON_NULL, &said, error);
    if (status) return status;
    *pooling = said && cleat_weights_find(weights, head) ? said->valuestring : usual;
    if (strcmp(*pooling, "avg") == 0 || strcmp(*pooling, usual) == 0) return CLEAT_OK;
    return cleat_published_refuse(weights, error, "global_pool of config.json is '%.40s'; %s is supported", *pooling,
                                  usual);
}

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
    const cJSON *eps;
    char number[32];
    cleat_status status = cleat_weights_member(weights, "layer_norm_eps", CLEAT_JSON_NUMBER, &eps, error);
    if (status) return status;
    cleat_number_print(eps ? eps->valuedouble : usual, number);
    return sink->set(sink->user, setting, number, "layer_norm_eps", error);
}

/* The source of the images' mean and deviation. */
typedef struct image_source {
    const char *file;
    const cJSON *object;    /* NULL: no such file */
    const char *mean, *std; /* paths of its members */
    double scale;           /* the network's pixels are 0 to `scale` before that; cleat's are 0 to 1 */
} image_source;

static cleat_status member_of(const cleat_weights *weights, const image_source *from, const char *path, int kinds,
                              const cJSON **item, cleat_error *error) {
    return cleat_config_member(cleat_weights_folder(weights), from->file, from->object, path, kinds | CLEAT_JSON_NULL,
                               item, error);
}

/* A list of numbers for pixels of 0 to 1 in the syntax of a profile; "": there is none. */
static cleat_status print_numbers(const cleat_weights *weights, const image_source *from, const char *path,
                                  char text[SENTENCE], cleat_error *error) {
    const cJSON *list, *item;
    char number[32];
    size_t used = 0;
    cleat_status status = member_of(weights, from, path, CLEAT_JSON_NUMBERS, &list, error);
    *text = 0;
    cJSON_ArrayForEach(item, list) {
        if (used + sizeof number > SENTENCE) break;
        cleat_number_print(item->valuedouble / from->scale, number);
        used += (size_t)snprintf(text + used, SENTENCE - used, "%s%s", used ? " " : "", number);
    }
    return status;
}

/* ImageNet's, which nearly all checkpoints were trained with. */
static cleat_status set_normalisation(const cleat_weights *weights, const image_source *from,
                                      const cleat_setting_sink *sink, cleat_error *error) {
    char mean[SENTENCE], std[SENTENCE], place[SENTENCE];
    cleat_status status = print_numbers(weights, from, from->mean, mean, error);
    if (!status) status = print_numbers(weights, from, from->std, std, error);
    if (!status && *mean && *std) {
        snprintf(place, sizeof place, "%s of %s", from->mean, from->file);
        status = sink->set(sink->user, "data.mean", mean, place, error);
        snprintf(place, sizeof place, "%s of %s", from->std, from->file);
        return status ? status : sink->set(sink->user, "data.std", std, place, error);
    }
    if (!status) status = sink->set(sink->user, "data.mean", "0.485 0.456 0.406", "ImageNet's mean", error);
    return status ? status : sink->set(sink->user, "data.std", "0.229 0.224 0.225", "ImageNet's std", error);
}

/* The size in timm is [channels, height, width]; in transformers a number, [height, width] or an object, for
 * the crop, or for the whole image if do_center_crop is false. */
static cleat_status set_size(const cleat_weights *weights, const image_source *from, bool timm,
                             const cleat_setting_sink *sink, cleat_error *error) {
    static const char *const paths[] = {"crop_size", "size"};
    const int kinds = CLEAT_JSON_NUMBERS | (timm ? 0 : CLEAT_JSON_INTEGER | CLEAT_JSON_OBJECT);
    const cJSON *size = NULL, *side, *cropped = NULL;
    const char *path = "pretrained_cfg.input_size";
    cleat_status status = timm ? member_of(weights, from, path, kinds, &size, error)
                               : member_of(weights, from, "do_center_crop", CLEAT_JSON_BOOL, &cropped, error);
    for (int i = cJSON_IsFalse(cropped) ? 1 : 0; i < 2 && !timm && !size && !status; ++i)
        status = member_of(weights, from, path = paths[i], kinds, &size, error);
    side = cJSON_IsArray(size) ? cJSON_GetArrayItem(size, timm ? 2 : 0) : size;
    if (cJSON_IsObject(size)) side = cJSON_GetObjectItemCaseSensitive(size, "height");
    if (cJSON_IsObject(size) && !side) side = cJSON_GetObjectItemCaseSensitive(size, "shortest_edge");
    if (status || !cJSON_IsNumber(side) || !(side->valuedouble >= 1 && side->valuedouble <= 8192)) return status;
    return cleat_set_integer(sink, "data.image_size", (int64_t)side->valuedouble, path, error);
}

static const char preprocessor_file[] = "preprocessor_config.json";

/* Members that are read here, or given by data.image_size and data.channels; then names. */
static const char known_members[] = " crop_size do_convert_rgb do_normalize do_rescale image_mean image_std "
                                    "rescale_factor size "
                                    "_valid_processor_keys data_format default_to_square device disable_grouping "
                                    "feature_extractor_type image_processor_type image_seq_length input_data_format "
                                    "processor_class return_tensors ";
static const cleat_json_rule rules[] = {
    {"do_resize", "true", "cleat resizes images to data.image_size"},
    {"resample", "2", "cleat reduces images by the mean of an area and enlarges them linearly"},
    {"do_center_crop", "false", "cleat does not crop borders"},
    {"crop_pct", "1", "cleat does not crop borders"},
    {"do_pad", "false", "cleat does not pad images"},
    {"do_flip_channel_order", "false", "cleat's channels are red, green, blue"},
    {"do_reduce_labels", "false", "a value v of a mask is class v"},
    {"reduce_labels", "false", "a value v of a mask is class v"},
    {"offset", "false", "cleat subtracts data.mean only"},
    {0},
};

/* transformers multiplies bytes by rescale_factor unless do_rescale is false, then normalises (*normalise) unless
 * do_normalize is false. */
static cleat_status read_scale(const cleat_weights *weights, image_source *from, bool *normalise, cleat_error *error) {
    const cJSON *rescale, *factor, *told;
    cleat_status status = member_of(weights, from, "do_rescale", CLEAT_JSON_BOOL, &rescale, error);
    if (!status) status = member_of(weights, from, "rescale_factor", CLEAT_JSON_NUMBER, &factor, error);
    if (!status) status = member_of(weights, from, "do_normalize", CLEAT_JSON_BOOL, &told, error);
    if (status) return status;
    if (factor && !(factor->valuedouble > 0))
        return cleat_config_refuse(cleat_weights_folder(weights), from->file, "rescale_factor", factor, "more than 0",
                                   error);
    const double scale = cJSON_IsFalse(rescale) ? 255 : factor ? 255 * factor->valuedouble : 1;
    from->scale = fabs(scale - 1) < 1e-9 ? 1 : scale; /* 1 / 255 has been rounded */
    *normalise = !cJSON_IsFalse(told);
    return CLEAT_OK;
}

/* Mean 0, and the deviation that scales pixels of 0 to 1 to 0 to `scale`. */
static cleat_status set_scale_only(const cleat_setting_sink *sink, double scale, int64_t channels, cleat_error *error) {
    char number[32];
    cleat_string mean = {0}, std = {0};
    cleat_number_print(1 / scale, number);
    for (int64_t c = 0; c < channels; ++c) {
        cleat_string_add(&mean, "%s0", c ? " " : "");
        cleat_string_add(&std, "%s%s", c ? " " : "", number);
    }
    cleat_status status = CLEAT_OK;
    if (mean.failed || std.failed || !channels)
        status = cleat_fail(error, CLEAT_ERR_MEMORY, "%s: out of memory", preprocessor_file);
    if (!status) status = sink->set(sink->user, "data.mean", mean.data, "do_normalize", error);
    if (!status) status = sink->set(sink->user, "data.std", std.data, "do_normalize", error);
    cleat_string_free(&mean);
    cleat_string_free(&std);
    return status;
}

cleat_status cleat_published_set_images(const cleat_weights *weights, const cleat_setting_sink *sink, const char *stem,
                                        bool classifies, cleat_error *error) {
    const int64_t channels = cleat_published_extent(weights, 1, "%s", stem);
    const cJSON *timm = NULL;
    cJSON *preprocessor = NULL;
    bool normalise = true;
    char place[4200];
    cleat_status status = cleat_set_integer(sink, "data.channels", channels, stem, error);
    if (!status && classifies) status = cleat_published_set_targets(weights, sink, error);
    if (!status)
        status = cleat_weights_member(weights, "pretrained_cfg", CLEAT_JSON_OBJECT | CLEAT_JSON_NULL, &timm, error);
    if (!status) status = cleat_weights_read_json(weights, preprocessor_file, &preprocessor, error);
    image_source from = {preprocessor_file, preprocessor, "image_mean", "image_std", 1};
    if (timm)
        from = (image_source){"config.json", cleat_weights_config(weights), "pretrained_cfg.mean", "pretrained_cfg.std",
                              1};
    else if (!status && preprocessor)
        status = read_scale(weights, &from, &normalise, error);
    /* ImageNet's normalisation is for colour images. */
    if (!status && !normalise)
        status = set_scale_only(sink, from.scale, channels, error);
    else if (!status && (channels == 3 || from.object))
        status = set_normalisation(weights, &from, sink, error);
    if (!status) status = set_size(weights, &from, timm != NULL, sink, error);
    snprintf(place, sizeof place, "%s/%s", cleat_weights_folder(weights), preprocessor_file);
    if (!status && !timm) cleat_json_name_unread(preprocessor, place, known_members, rules, CLEAT_LOG_INFO);
    cJSON_Delete(preprocessor);
    return status;
}

bool cleat_published_add_list(cJSON *object, const char *key, const int64_t *values, int64_t count) {
    cJSON *list = cJSON_AddArrayToObject(object, key);
    for (int64_t i = 0; list && i < count; ++i)
        if (!cJSON_AddItemToArray(list, cJSON_CreateNumber((double)values[i]))) return false;
    return list;
}

/* Numbers separated by blanks, as in a profile. */
static bool add_numbers(cJSON *object, const char *key, const char *text) {
    char word[32];
    double number;
    if (!text || !*text) return true;
    cJSON *list = cJSON_AddArrayToObject(object, key);
    for (; list && *(text += strspn(text, " ")); text += strcspn(text, " ")) {
        const size_t size = strcspn(text, " ");
        if (size >= sizeof word) continue;
        memcpy(word, text, size);
        word[size] = 0;
        if (cleat_number_parse(word, &number) && !cJSON_AddItemToArray(list, cJSON_CreateNumber(number))) return false;
    }
    return list;
}

cJSON *cleat_published_add_timm(const cleat_model *model, cJSON *config, const char *name) {
    const cleat_image_classifier_settings *settings = model->settings;
    const cleat_image_options *images = &settings->data.options;
    const cleat_model_sizes sizes = cleat_image_classifier_sizes(model);
    const int64_t input[3] = {sizes.inputs, images->size, images->size};
    const bool named = cJSON_AddStringToObject(config, "architecture", name) &&
                       cJSON_AddNumberToObject(config, "num_classes", (double)sizes.classes);
    cJSON *prepared = named ? cJSON_AddObjectToObject(config, "pretrained_cfg") : NULL;
    bool done = prepared && cleat_published_add_list(prepared, "input_size", input, 3) &&
                add_numbers(prepared, "mean", images->mean) && add_numbers(prepared, "std", images->std) &&
                cJSON_AddNumberToObject(prepared, "num_classes", (double)sizes.classes);
    cJSON *arguments = done ? cJSON_AddObjectToObject(config, "model_args") : NULL;
    if (sizes.inputs != 3) done = arguments && cJSON_AddNumberToObject(arguments, "in_chans", (double)sizes.inputs);
    return done ? arguments : NULL;
}

bool cleat_published_add_transformers(const cleat_model *model, cJSON *config, const char *type, const char *holder) {
    const cleat_image_classifier_settings *settings = model->settings;
    cJSON *holders = cJSON_AddArrayToObject(config, "architectures");
    return holders && cleat_published_add_problem(model, config) &&
           cJSON_AddItemToArray(holders, cJSON_CreateString(holder)) &&
           cJSON_AddStringToObject(config, "model_type", type) &&
           cJSON_AddNumberToObject(config, "image_size", (double)settings->data.options.size) &&
           cJSON_AddNumberToObject(config, "num_channels", (double)cleat_image_classifier_sizes(model).inputs);
}
