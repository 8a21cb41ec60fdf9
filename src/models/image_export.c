/* Normalisation of images in exports for timm and transformers. */
#include "core/files.h"
#include "core/memory.h"
#include "models/image_models.h"
#include "json/member.h"

#include <string.h>

enum { LONGEST_PATH = 1400 };

static cleat_status read_json(const char *folder, const char *name, cJSON **object, cleat_error *error) {
    char path[LONGEST_PATH], *text;
    size_t size;
    *object = NULL;
    cleat_status status = cleat_path_join(folder, name, path, sizeof path, error);
    if (status || !cleat_file_exists(path)) return status;
    status = cleat_file_read(path, &text, &size, error);
    if (status) return status;
    *object = cJSON_ParseWithLength(text, size);
    cleat_free(text);
    return *object ? CLEAT_OK : cleat_fail(error, CLEAT_ERR_FORMAT, "%s: is not valid JSON", path);
}

static cleat_status write_json(const char *folder, const char *name, const cJSON *object, cleat_error *error) {
    char path[LONGEST_PATH];
    cleat_status status = cleat_path_join(folder, name, path, sizeof path, error);
    char *text = status ? NULL : cJSON_Print(object);
    if (!status && !text) status = cleat_fail(error, CLEAT_ERR_MEMORY, "%s: out of memory", path);
    if (!status) status = cleat_file_write(path, text, strlen(text), error);
    cJSON_free(text);
    return status;
}

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

static cleat_status write_if(bool complete, const char *folder, const char *name, const cJSON *object,
                             cleat_error *error) {
    return complete ? write_json(folder, name, object, error)
                    : cleat_fail(error, CLEAT_ERR_MEMORY, "%s/%s: out of memory", folder, name);
}

static cleat_status complete_timm(const cJSON *fitted, const char *out, cleat_error *error) {
    cJSON *config = NULL;
    cleat_status status = read_json(out, "config.json", &config, error);
    if (!config) return status;
    cJSON *prepared = cJSON_GetObjectItemCaseSensitive(config, "pretrained_cfg");
    if (!prepared) prepared = cJSON_AddObjectToObject(config, "pretrained_cfg");
    const bool done =
        prepared && add_list(prepared, "mean", fitted, "means") && add_list(prepared, "std", fitted, "deviations");
    status = write_if(done, out, "config.json", config, error);
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
    const cleat_status status = write_if(done, spec->out, "preprocessor_config.json", made, error);
    cJSON_Delete(made);
    return status;
}

cleat_status cleat_image_export(const cleat_model *model, const cleat_model_export *spec, cleat_error *error) {
    cJSON *fitted = NULL;
    if (spec->adapters) return CLEAT_OK;
    cleat_status status = read_json(spec->checkpoint, "pictures.json", &fitted, error);
    if (!fitted) return status;
    status = spec->architecture->timm ? complete_timm(fitted, spec->out, error)
                                      : write_transformers(fitted, spec, cleat_model_fixed_length(model), error);
    cJSON_Delete(fitted);
    return status;
}
