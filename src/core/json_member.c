/* Members of JSON objects. */
#include "core/json_member.h"

#include <stddef.h>

const cJSON *cleat_json_member(const cJSON *object, const char *name) {
    const cJSON *member = cJSON_IsObject(object) ? cJSON_GetObjectItemCaseSensitive(object, name) : NULL;
    return member && !cJSON_IsNull(member) ? member : NULL;
}
