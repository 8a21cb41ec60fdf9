/* The settings of a network, from the config.json of a published checkpoint. */
#include "core/text.h"
#include "weights/architecture.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

cleat_status cleat_architecture_find(const cleat_architecture *const *architectures, const cleat_weights *weights,
                                     const cleat_architecture **architecture, cleat_error *error) {
    const char *type = cleat_weights_config_text(weights, "model_type");
    cleat_text known = {0};
    for (; *architectures; ++architectures) {
        const cleat_architecture *one = *architectures;
        if (one->matches ? one->matches(weights) : type && strcmp(type, one->name) == 0) {
            *architecture = one;
            cleat_text_free(&known);
            return CLEAT_OK;
        }
        cleat_text_add(&known, "%s%s", known.size ? ", " : "", one->name);
    }
    if (!type) type = cleat_weights_config_text(weights, "architecture");
    cleat_status status = cleat_fail(
        error, CLEAT_ERR_NOT_SUPPORTED, "%s: %s%.60s%s; this model.type can start from: %s",
        cleat_weights_path(weights), type ? "is a network of type '" : "its network is not known: config.json",
        type ? type : " with a model_type is missing", type ? "'" : "", known.data ? known.data : "none");
    cleat_text_free(&known);
    return status;
}

cleat_status cleat_set_integer(const cleat_setting_sink *sink, const char *setting, int64_t value, const char *key,
                               cleat_error *error) {
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)value);
    return sink->set(sink->user, setting, text, key, error);
}

/* The value of a JSON item in the syntax of a profile. */
static void add_value(const cJSON *item, cleat_text *text) {
    char number[32];
    if (cJSON_IsBool(item)) {
        cleat_text_add(text, "%s", cJSON_IsTrue(item) ? "true" : "false");
    } else if (cJSON_IsNumber(item)) {
        cleat_number_print(item->valuedouble, number);
        cleat_text_add(text, "%s", number);
    } else if (cJSON_IsString(item)) {
        cleat_text_add(text, "%s", item->valuestring);
    } else if (cJSON_IsNull(item)) {
        cleat_text_add(text, "null");
    } else {
        const cJSON *element;
        cJSON_ArrayForEach(element, item) {
            if (text->size) cleat_text_add(text, " ");
            add_value(element, text);
        }
    }
}

static cleat_status missing(const cleat_weights *weights, const char *key, cleat_error *error) {
    return cleat_fail(error, CLEAT_ERR_FORMAT, "%s/config.json: has no '%s'", cleat_weights_folder(weights), key);
}

static cleat_status apply(const cleat_weights *weights, const cleat_config_row *row, const cJSON *item,
                          const cleat_setting_sink *sink, cleat_error *error) {
    cJSON *only = row->only ? cJSON_Parse(row->only) : NULL;
    cleat_text value = {0};
    cleat_status status = CLEAT_OK;
    add_value(item, &value);
    if (value.failed)
        status = cleat_fail(error, CLEAT_ERR_MEMORY, "%s: out of memory", cleat_weights_path(weights));
    else if (only && !cJSON_Compare(item, only, true))
        status = cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED, "%s/config.json: %s is %.60s; only %s is supported",
                            cleat_weights_folder(weights), row->key, value.data ? value.data : "", row->only);
    else if (row->setting)
        status = sink->set(sink->user, row->setting, value.data ? value.data : "", row->key, error);
    cleat_text_free(&value);
    cJSON_Delete(only);
    return status;
}

static cleat_status apply_row(const cleat_weights *weights, const cleat_config_row *row, const cleat_setting_sink *sink,
                              cleat_error *error) {
    const cJSON *config = cleat_weights_config(weights);
    const cJSON *item = config ? cJSON_GetObjectItemCaseSensitive(config, row->key) : NULL;
    if (item && !cJSON_IsObject(item)) return apply(weights, row, item, sink, error);
    if (!row->fallback) return missing(weights, row->key, error);
    cJSON *fallback = cJSON_Parse(row->fallback);
    if (!fallback) return cleat_fail(error, CLEAT_ERR_MEMORY, "%s: out of memory", cleat_weights_path(weights));
    cleat_status status = apply(weights, row, fallback, sink, error);
    cJSON_Delete(fallback);
    return status;
}

cleat_status cleat_architecture_configure(const cleat_architecture *architecture, const cleat_weights *weights,
                                          const cleat_setting_sink *sink, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    for (const cleat_config_row *row = architecture->config; row && row->key && !status; ++row)
        status = apply_row(weights, row, sink, error);
    if (!status && architecture->configure) status = architecture->configure(weights, sink, error);
    return status;
}
