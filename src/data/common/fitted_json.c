/* JSON objects that hold fitted preprocessing state. */
#include "data/common/fitted_json.h"

#include "core/files.h"
#include "core/memory.h"

#include <math.h>

void cleat_fitted_json_add_number(cleat_string *text, double number) {
    char digits[32];
    cleat_number_print(number, digits);
    cleat_string_add(text, "%s", digits);
}

void cleat_fitted_json_add_numbers(cleat_string *text, const double *numbers, size_t count) {
    for (size_t i = 0; i < count; ++i) {
        cleat_string_add(text, i ? ", " : "[");
        cleat_fitted_json_add_number(text, numbers[i]);
    }
    cleat_string_add(text, count ? "]" : "[]");
}

void cleat_fitted_json_add_string(cleat_string *text, const char *string) {
    cJSON *item = cJSON_CreateStringReference(string);
    char *quoted = item ? cJSON_PrintUnformatted(item) : NULL;
    if (quoted)
        cleat_string_add(text, "%s", quoted);
    else
        text->failed = true;
    cJSON_free(quoted);
    cJSON_Delete(item);
}

cleat_status cleat_fitted_json_write(const char *folder, const char *name, cleat_string *text, cleat_error *error) {
    cleat_status status = cleat_folder_make(folder, error);
    if (!status) return cleat_file_write_in(folder, name, text, error);
    cleat_string_free(text);
    return status;
}

cleat_status cleat_fitted_json_fail(const char *folder, const char *name, const char *what, cleat_error *error) {
    return cleat_fail(
        error, CLEAT_ERR_FORMAT,
        "%s/%s: %s; the file is written by training and must not be edited: copy it from the run folder again", folder,
        name, what);
}

cleat_status cleat_fitted_json_read(const char *folder, const char *name, cJSON **object, cleat_error *error) {
    char path[CLEAT_FILE_PATH], *data = NULL;
    size_t size = 0;
    cleat_status status = cleat_path_join(folder, name, path, CLEAT_FILE_PATH, error);
    if (!status) status = cleat_file_read_text(path, &data, &size, error);
    if (status) return status;
    cJSON *root = cJSON_ParseWithLength(data, size);
    cleat_free(data);
    if (!cJSON_IsObject(root)) {
        cJSON_Delete(root);
        return cleat_fitted_json_fail(folder, name, "not a JSON object", error);
    }
    *object = root;
    return CLEAT_OK;
}

static bool is_finite_number(const cJSON *item, double *number) {
    if (!cJSON_IsNumber(item) || !isfinite(item->valuedouble)) return false;
    *number = item->valuedouble;
    return true;
}

bool cleat_fitted_json_get_number(const cJSON *object, const char *key, double *number) {
    return is_finite_number(cJSON_GetObjectItemCaseSensitive(object, key), number);
}

bool cleat_fitted_json_get_numbers(const cJSON *object, const char *key, double *numbers, size_t count) {
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(object, key), *item;
    size_t used = 0;
    if (!cJSON_IsArray(list) || (size_t)cJSON_GetArraySize(list) != count) return false;
    cJSON_ArrayForEach(item, list) {
        if (!is_finite_number(item, &numbers[used++])) return false;
    }
    return true;
}
