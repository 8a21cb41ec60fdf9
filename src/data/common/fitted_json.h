/* Reads and writes fitted preprocessing state as a JSON object in a folder. */
#ifndef CLEAT_SRC_FITTED_JSON_H
#define CLEAT_SRC_FITTED_JSON_H

#include "core/string.h"

#include <cjson/cJSON.h>

/* Append a number with full precision, a list of numbers, a quoted string. */
void cleat_fitted_json_add_number(cleat_string *text, double number);
void cleat_fitted_json_add_numbers(cleat_string *text, const double *numbers, size_t count);
void cleat_fitted_json_add_string(cleat_string *text, const char *string);
/* Writes the text to FOLDER/NAME atomically, and frees it. */
cleat_status cleat_fitted_json_write(const char *folder, const char *name, cleat_string *text, cleat_error *error);

/* Parses FOLDER/NAME; the caller frees *object (cJSON_Delete). */
cleat_status cleat_fitted_json_read(const char *folder, const char *name, cJSON **object, cleat_error *error);
/* Sets the error that is common to all invalid files of this kind; `what` is the cause. */
cleat_status cleat_fitted_json_fail(const char *folder, const char *name, const char *what, cleat_error *error);
/* Return true if `key` is a list of `count` finite numbers, or one finite number. */
bool cleat_fitted_json_get_numbers(const cJSON *object, const char *key, double *numbers, size_t count);
bool cleat_fitted_json_get_number(const cJSON *object, const char *key, double *number);

#endif
