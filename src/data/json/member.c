/* Files of JSON objects, their members, and unused members. */
#include "json/member.h"

#include "core/files.h"
#include "core/memory.h"
#include "core/string.h"

#include <stdio.h>
#include <string.h>

enum { LONGEST_KEY = 64 };

cleat_status cleat_json_read_file(const char *folder, const char *name, cJSON **object, cleat_error *error) {
    char path[CLEAT_FILE_PATH], *text;
    size_t size;
    *object = NULL;
    cleat_status status = cleat_path_join(folder, name, path, sizeof path, error);
    if (status || !cleat_file_exists(path)) return status;
    status = cleat_file_read_text(path, &text, &size, error);
    if (status) return status;
    *object = cJSON_ParseWithLength(text, size);
    cleat_free(text);
    return *object ? CLEAT_OK : cleat_fail(error, CLEAT_ERR_FORMAT, "%s: not JSON; the file is damaged", path);
}

cleat_status cleat_json_write_file(const char *folder, const char *name, const cJSON *object, cleat_error *error) {
    char path[CLEAT_FILE_PATH];
    cleat_status status = cleat_path_join(folder, name, path, sizeof path, error);
    char *text = status || !object ? NULL : cJSON_Print(object);
    if (!status && !text) status = cleat_fail(error, CLEAT_ERR_MEMORY, "%s: out of memory", path);
    if (!status) status = cleat_file_write(path, text, strlen(text), error);
    cJSON_free(text);
    return status;
}

const cJSON *cleat_json_member(const cJSON *object, const char *name) {
    const cJSON *member = cJSON_IsObject(object) ? cJSON_GetObjectItemCaseSensitive(object, name) : NULL;
    return member && !cJSON_IsNull(member) ? member : NULL;
}

const char *cleat_json_text(const cJSON *object, const char *name) {
    return cJSON_GetStringValue(cleat_json_member(object, name));
}

double cleat_json_number(const cJSON *object, const char *name) {
    return cJSON_GetNumberValue(cleat_json_member(object, name));
}

static bool is_default(const cJSON *value) {
    const bool container = cJSON_IsArray(value) || cJSON_IsObject(value);
    return cJSON_IsNull(value) || cJSON_IsFalse(value) || (container && !value->child) ||
           (cJSON_IsString(value) && !*value->valuestring);
}

/* An absent or null member satisfies the rule. */
static void apply_rule(const cJSON *object, const char *place, const cleat_json_rule *rule, cleat_log_level level) {
    const cJSON *value = cleat_json_member(object, rule->key);
    cJSON *only = value ? cJSON_Parse(rule->only) : NULL;
    char *found = only && !cJSON_Compare(value, only, true) ? cJSON_PrintUnformatted(value) : NULL;
    if (found) cleat_log(level, "%s: %s is %.60s; %s", place, rule->key, found, rule->instead);
    cJSON_free(found);
    cJSON_Delete(only);
}

void cleat_json_name_unread(const cJSON *object, const char *place, const char *known, const cleat_json_rule *rules,
                            cleat_log_level level) {
    cleat_string names = {0};
    const cJSON *member;
    if (!cJSON_IsObject(object)) return;
    for (const cleat_json_rule *rule = rules; rule && rule->key; ++rule) apply_rule(object, place, rule, level);
    cJSON_ArrayForEach(member, object) {
        char key[LONGEST_KEY + 2];
        const cleat_json_rule *rule = rules;
        snprintf(key, sizeof key, " %.*s ", LONGEST_KEY - 1, member->string);
        while (rule && rule->key && strcmp(rule->key, member->string) != 0) ++rule;
        if (!(rule && rule->key) && !strstr(known, key) && !is_default(member))
            cleat_string_add(&names, "%s%.60s", names.size ? ", " : "", member->string);
    }
    if (names.data && !names.failed)
        cleat_log(CLEAT_LOG_INFO, "%s: not used: %.400s; they may change what the network computes", place, names.data);
    cleat_string_free(&names);
}
