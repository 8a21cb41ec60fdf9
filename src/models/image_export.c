/* Normalisation of images in exports for timm and transformers. */
#include "models/image_models.h"
#include "json/member.h"

#include <string.h>

/* Copies a list of the fitted file, unless the object has the member. False: no memory. */
static bool add_list(cJSON *object, const char *name, const cJSON *fitted, const char *member) {
    const cJSON *list = cleat_json_member(fitted, member);
    if (!cJSON_IsArray(list) || cleat_json_member(object, name)) return true;
    cJSON_DeleteItemFromObjectCaseSensitive(object, name); /* null */
    cJSON *copy = cJSON_Duplicate(list, true);
    if (copy && cJSON_AddItemToObject(object, name, copy)) return true;
    cJSON_Delete(copy);
    return false;
}

static cleat_status complete_timm(const cJSON *fitted, const char *out, cleat_error *error) {
    cJSON *config = NULL;
    cleat_status status = cleat_json_read_file(out, "config.json", &config, error);
    if (!config) return status;
    cJSON *prepared = cJSON_GetObjectItemCaseSensitive(config, "pretrained_cfg");
    if (!prepared) prepared = cJSON_AddObjectToObject(config, "pretrained_cfg");
    const bool done =
        prepared && add_list(prepared, "mean", fitted, "means") && add_list(prepared, "std", fitted, "deviations");
    status = cleat_json_write_file(out, "config.json", done ? config : NULL, error);
    cJSON_Delete(config);
    return status;
}

static cleat_status write_transformers(const cJSON *fitted, const cleat_model_export *spec, int64_t size,
                                       cleat_error *error) {
    cJSON *made = cJSON_CreateObject();
    const bool segformer = strcmp(spec->architecture->name, "segformer") == 0;
    const char *processor = segformer ? "SegformerImageProcessor" : "ViTImageProcessor";
    bool done = cJSON_AddStringToObject(made, "image_processor_type", processor) &&
                cJSON_AddBoolToObject(made, "do_resize", true);
    cJSON *sides = done ? cJSON_AddObjectToObject(made, "size") : NULL;
    done = sides && cJSON_AddNumberToObject(sides, "height", (double)size) &&
           cJSON_AddNumberToObject(sides, "width", (double)size) &&
           cJSON_AddNumberToObject(made, "resample", 2) && /* bilinear */
           cJSON_AddBoolToObject(made, "do_rescale", true) &&
           cJSON_AddNumberToObject(made, "rescale_factor", 1.0 / 255) &&
           cJSON_AddBoolToObject(made, "do_normalize", true) && add_list(made, "image_mean", fitted, "means") &&
           add_list(made, "image_std", fitted, "deviations");
    const cleat_status status = cleat_json_write_file(spec->out, "preprocessor_config.json", done ? made : NULL, error);
    cJSON_Delete(made);
    return status;
}

cleat_status cleat_image_export(const cleat_model *model, const cleat_model_export *spec, cleat_error *error) {
    cJSON *fitted = NULL;
    if (spec->adapters) return CLEAT_OK;
    cleat_status status = cleat_json_read_file(spec->checkpoint, "pictures.json", &fitted, error);
    if (!fitted) return status;
    status = spec->architecture->timm ? complete_timm(fitted, spec->out, error)
                                      : write_transformers(fitted, spec, cleat_model_fixed_length(model), error);
    cJSON_Delete(fitted);
    return status;
}
