/* What training has taught as a JSON object in a folder: the pieces of reading and writing one. */
#ifndef CLEAT_SRC_FITTED_JSON_H
#define CLEAT_SRC_FITTED_JSON_H

#include "core/text.h"

#include <cjson/cJSON.h>

/* Appends a number with all its bits, a list of them, a text in quotes. */
void cleat_fitted_json_add_number(cleat_text *text, double number);
void cleat_fitted_json_add_numbers(cleat_text *text, const double *numbers, size_t count);
void cleat_fitted_json_add_string(cleat_text *text, const char *string);
/* Writes the text as FOLDER/NAME, atomically, and frees it. */
cleat_status cleat_fitted_json_write(const char *folder, const char *name, cleat_text *text, cleat_error *error);

/* The object in FOLDER/NAME (cJSON_Delete). */
cleat_status cleat_fitted_json_read(const char *folder, const char *name, cJSON **object, cleat_error *error);
/* What all complaints about such a file say. */
cleat_status cleat_fitted_json_fail(const char *folder, const char *name, const char *what, cleat_error *error);
/* True when `key` is a list of `count` numbers, or one number. */
bool cleat_fitted_json_get_numbers(const cJSON *object, const char *key, double *numbers, size_t count);
bool cleat_fitted_json_get_number(const cJSON *object, const char *key, double *number);

#endif
