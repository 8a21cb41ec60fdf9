/* Members of JSON objects with checked types. */
#include "tokenizer/json_read.h"

#include "core/memory.h"
#include "core/string.h"

#include <string.h>

cleat_status cleat_member_bool(const cJSON *object, const char *name, bool absent, bool *value, cleat_error *error) {
    const cJSON *member = cleat_json_member(object, name);
    if (member && !cJSON_IsBool(member)) return cleat_fail(error, CLEAT_ERR_FORMAT, "'%s' must be true or false", name);
    *value = member ? cJSON_IsTrue(member) : absent;
    return CLEAT_OK;
}

cleat_status cleat_member_string(const cJSON *object, const char *name, const char *absent, const char **value,
                                 cleat_error *error) {
    const cJSON *member = cleat_json_member(object, name);
    if (member && !cJSON_IsString(member)) return cleat_fail(error, CLEAT_ERR_FORMAT, "'%s' must be a string", name);
    *value = member ? member->valuestring : absent;
    return CLEAT_OK;
}

cleat_status cleat_member_copy(const cJSON *object, const char *name, const char *absent, char **copy,
                               cleat_error *error) {
    const char *text = absent;
    cleat_status status = cleat_member_string(object, name, absent, &text, error);
    if (!status && !text) status = cleat_fail(error, CLEAT_ERR_FORMAT, "'%s' is missing", name);
    if (status) return status;
    *copy = cleat_strdup(text);
    return *copy ? CLEAT_OK : cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for '%s'", name);
}

cleat_status cleat_member_count(const cJSON *object, const char *name, int64_t absent, int64_t limit, int64_t *value,
                                cleat_error *error) {
    const cJSON *member = cleat_json_member(object, name);
    double number = member && cJSON_IsNumber(member) ? member->valuedouble : -1;
    if (member && !(number >= 0 && number <= (double)limit && number == (double)(int64_t)number))
        return cleat_fail(error, CLEAT_ERR_FORMAT, "'%s' must be a whole number of 0 to %lld", name, (long long)limit);
    *value = member ? (int64_t)number : absent;
    return CLEAT_OK;
}

cleat_status cleat_member_choice(const cJSON *object, const char *name, const char *const *names, int absent,
                                 int *value, cleat_error *error) {
    const char *text = NULL;
    cleat_string known = {0};
    cleat_status status = cleat_member_string(object, name, NULL, &text, error);
    if (status) return status;
    *value = absent;
    if (!text) return CLEAT_OK;
    for (int i = 0; names[i]; ++i) {
        *value = i;
        if (strcmp(text, names[i]) == 0) return CLEAT_OK;
    }
    for (int i = 0; names[i]; ++i) cleat_string_add(&known, "%s%s", i ? ", " : "", names[i]);
    status = cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED, "unknown %s '%.60s'; known are: %s", name, text,
                        known.data ? known.data : "");
    cleat_string_free(&known);
    return status;
}

cleat_status cleat_read_pattern(const cJSON *object, cleat_pattern *pattern, cleat_error *error) {
    const cJSON *member = cleat_json_member(object, "pattern");
    const char *literal = NULL, *regex = NULL;
    if (cJSON_IsString(member)) return cleat_pattern_literal(member->valuestring, pattern, error);
    cleat_status status = cleat_member_string(member, "String", NULL, &literal, error);
    if (!status) status = cleat_member_string(member, "Regex", NULL, &regex, error);
    if (status) return status;
    if (literal) return cleat_pattern_literal(literal, pattern, error);
    if (regex) return cleat_pattern_regex(regex, pattern, error);
    return cleat_fail(error, CLEAT_ERR_FORMAT, "'pattern' must be {\"String\": text} or {\"Regex\": expression}");
}
