/* Members of JSON objects that were parsed with cJSON. */
#ifndef CLEAT_SRC_JSON_MEMBER_H
#define CLEAT_SRC_JSON_MEMBER_H

#include <cjson/cJSON.h>

/* Member of an object; NULL if there is none, it is null, or `object` is no object. */
const cJSON *cleat_json_member(const cJSON *object, const char *name);

#endif
