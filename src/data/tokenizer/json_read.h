/* Reading a tokenizer.json: members of objects with checked types, and the parts of a pipeline. */
#ifndef CLEAT_SRC_JSON_READ_H
#define CLEAT_SRC_JSON_READ_H

#include "tokenizer/pipeline.h"
#include "json/member.h"

/* Each writes the member's value, or `absent` if there is none. CLEAT_ERR_FORMAT: another type. Strings are
 * borrowed. */
cleat_status cleat_member_bool(const cJSON *object, const char *name, bool absent, bool *value, cleat_error *error);
cleat_status cleat_member_string(const cJSON *object, const char *name, const char *absent, const char **value,
                                 cleat_error *error);
/* The same, as a copy that the caller frees; `absent` may be NULL: CLEAT_ERR_FORMAT if there is none. */
cleat_status cleat_member_copy(const cJSON *object, const char *name, const char *absent, char **copy,
                               cleat_error *error);
/* A whole number of 0 to `limit`. */
cleat_status cleat_member_count(const cJSON *object, const char *name, int64_t absent, int64_t limit, int64_t *value,
                                cleat_error *error);
/* The index of the member in names (ends in NULL). CLEAT_ERR_NOT_SUPPORTED: another value; the message lists
 * the names. */
cleat_status cleat_member_choice(const cJSON *object, const char *name, const char *const *names, int absent,
                                 int *value, cleat_error *error);

/* The sections of tokenizer.json; a section may be NULL. */
cleat_status cleat_read_normalisers(const cJSON *section, cleat_pipeline *pipeline, cleat_error *error);
cleat_status cleat_read_splitters(const cJSON *section, cleat_pipeline *pipeline, cleat_error *error);
cleat_status cleat_read_subwords(const cJSON *section, cleat_subwords *model, cleat_error *error);
cleat_status cleat_read_templates(const cJSON *section, cleat_pipeline *pipeline, cleat_error *error);
/* A decoder that cleat does not know sets decoder_fault. */
cleat_status cleat_read_decoders(const cJSON *section, cleat_pipeline *pipeline, cleat_error *error);
/* {"String": text} or {"Regex": expression}. */
cleat_status cleat_read_pattern(const cJSON *object, cleat_pattern *pattern, cleat_error *error);

#endif
