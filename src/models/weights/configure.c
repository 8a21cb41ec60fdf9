/* The settings of a network, from the config.json of a published checkpoint. */
#include "core/string.h"
#include "weights/architecture.h"
#include "weights/config.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

cleat_status cleat_architecture_find(const cleat_architecture *const *architectures, const cleat_weights *weights,
                                     const cleat_architecture **architecture, cleat_error *error) {
    const int text = CLEAT_JSON_TEXT | CLEAT_JSON_NULL;
    const cJSON *item;
    cleat_string known = {0};
    cleat_status status = cleat_weights_member(weights, "architecture", text, &item, error);
    if (!status) status = cleat_weights_member(weights, "model_type", text, &item, error);
    if (status) return status;
    const char *type = item ? item->valuestring : NULL;
    for (; *architectures; ++architectures) {
        const cleat_architecture *one = *architectures;
        if (one->matches ? one->matches(weights) : type && strcmp(type, one->name) == 0) {
            *architecture = one;
            cleat_string_free(&known);
            return CLEAT_OK;
        }
        cleat_string_add(&known, "%s%s", known.size ? ", " : "", one->name);
    }
    if (!type) type = cleat_weights_config_text(weights, "architecture");
    status = cleat_fail(
        error, CLEAT_ERR_NOT_SUPPORTED, "%s: %s%.60s%s; this model.type can start from: %s",
        cleat_weights_path(weights), type ? "is a network of type '" : "its network is not known: config.json",
        type ? type : " with a model_type is missing", type ? "'" : "", known.data ? known.data : "none");
    cleat_string_free(&known);
    return status;
}

cleat_status cleat_set_integer(const cleat_setting_sink *sink, const char *setting, int64_t value, const char *key,
                               cleat_error *error) {
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)value);
    return sink->set(sink->user, setting, text, key, error);
}

static cleat_status out_of_memory(const cleat_weights *weights, cleat_error *error) {
    return cleat_fail(error, CLEAT_ERR_MEMORY, "%s: out of memory", cleat_weights_path(weights));
}

static cleat_status expect_only(const cleat_weights *weights, const cleat_config_row *row, const cJSON *item,
                                cleat_error *error) {
    cJSON *only = cJSON_Parse(row->only);
    char *found = only ? cJSON_PrintUnformatted(item) : NULL;
    cleat_status status = CLEAT_OK;
    if (!found)
        status = out_of_memory(weights, error);
    else if (!cJSON_Compare(item, only, true))
        status = cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED, "%s/config.json: %s is %.60s; only %s is supported; %s",
                            cleat_weights_folder(weights), row->key, found, row->only,
                            row->remedy ? row->remedy : "use other weights");
    cJSON_free(found);
    cJSON_Delete(only);
    return status;
}

/* Passes the value in the syntax of a profile. */
static cleat_status set_value(const cleat_config_row *row, const cJSON *item, const cleat_setting_sink *sink,
                              cleat_error *error) {
    char number[32];
    const char *value = number;
    if (row->kind == 0 || row->kind == CLEAT_JSON_INTEGER)
        snprintf(number, sizeof number, "%.0f", item->valuedouble);
    else if (cJSON_IsNumber(item))
        cleat_number_print(item->valuedouble, number);
    else
        value = cJSON_IsString(item) ? item->valuestring : cJSON_IsTrue(item) ? "true" : "false";
    return sink->set(sink->user, row->setting, value, row->key, error);
}

static cleat_status apply_row(const cleat_weights *weights, const cleat_config_row *row, const cleat_setting_sink *sink,
                              cleat_error *error) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(cleat_weights_config(weights), row->key);
    const int kinds = row->kind ? row->kind : CLEAT_JSON_INTEGER;
    cJSON *fallback = NULL;
    cleat_status status = CLEAT_OK;
    if (!row->only) status = cleat_weights_member(weights, row->key, kinds, &item, error);
    if (status) return status;
    if (!item && !row->fallback)
        return cleat_fail(error, CLEAT_ERR_FORMAT, "%s/config.json: has no '%s'", cleat_weights_folder(weights),
                          row->key);
    if (!item) item = fallback = cJSON_Parse(row->fallback);
    if (!item) return out_of_memory(weights, error);
    if (row->only) status = expect_only(weights, row, item, error);
    if (!status && row->setting) status = set_value(row, item, sink, error);
    cJSON_Delete(fallback);
    return status;
}

cleat_status cleat_architecture_configure(const cleat_architecture *architecture, const cleat_weights *weights,
                                          const cleat_setting_sink *sink, cleat_error *error) {
    const cleat_setting_sink own = {.set = sink->set, .user = sink->user, .head = architecture->head};
    cleat_status status = CLEAT_OK;
    for (const cleat_config_row *row = architecture->config; row && row->key && !status; ++row)
        status = apply_row(weights, row, &own, error);
    if (!status && architecture->configure) status = architecture->configure(weights, &own, error);
    if (!status) cleat_weights_name_unread(weights, architecture->members);
    return status;
}
