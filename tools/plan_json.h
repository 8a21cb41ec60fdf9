/* Members of JSON objects, for the files that print plans as JSON. */
#ifndef CLEAT_TOOLS_PLAN_JSON_H
#define CLEAT_TOOLS_PLAN_JSON_H

#include <cjson/cJSON.h>
#include <stdint.h>

void plan_add_count(cJSON *object, const char *name, int64_t value);
/* Null if the value is the one that marks it as unknown (0 or -1), or is not finite. */
void plan_add_known_count(cJSON *object, const char *name, int64_t value, int64_t unknown);
void plan_add_known(cJSON *object, const char *name, double value, double unknown);
/* Null if the text is empty. */
void plan_add_text(cJSON *object, const char *name, const char *text);

#endif
