/* JSON objects of cJSON: their files and members. */
#ifndef CLEAT_SRC_JSON_MEMBER_H
#define CLEAT_SRC_JSON_MEMBER_H

#include "cleat/core.h"

#include <cjson/cJSON.h>

/* Reads FOLDER/NAME; the caller deletes *object, which is NULL if there is no such file. CLEAT_ERR_FORMAT: it
 * is not JSON. */
cleat_status cleat_json_read_file(const char *folder, const char *name, cJSON **object, cleat_error *error);
/* Writes FOLDER/NAME. CLEAT_ERR_MEMORY also if `object` is NULL. */
cleat_status cleat_json_write_file(const char *folder, const char *name, const cJSON *object, cleat_error *error);

/* Member of an object; NULL if there is none, it is null, or `object` is not an object. */
const cJSON *cleat_json_member(const cJSON *object, const char *name);
/* The text of a member; NULL if it is not a text. */
const char *cleat_json_text(const cJSON *object, const char *name);
/* The number of a member; NaN if it is not a number. */
double cleat_json_number(const cJSON *object, const char *name);

/* A member of a published configuration: its only supported value, as JSON, and what cleat does regardless of
 * the value. */
typedef struct cleat_json_rule {
    const char *key, *only, *instead; /* key NULL: the last rule */
} cleat_json_rule;

/* Logs the unused members of an object of a published configuration, in the file `place`: at `level` those
 * with another value than their rule's, and as information those that are neither in a rule nor in `known`
 * (names, each between two blanks). Null, false, empty texts, lists and objects mean the default. `object`
 * and `rules` may be NULL. */
void cleat_json_name_unread(const cJSON *object, const char *place, const char *known, const cleat_json_rule *rules,
                            cleat_log_level level);

#endif
