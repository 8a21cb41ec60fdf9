/* Members of config.json and of the other JSON files of published checkpoints. A member of an unexpected type is an
 * error: a guess would give another network. */
#ifndef CLEAT_SRC_WEIGHTS_CONFIG_H
#define CLEAT_SRC_WEIGHTS_CONFIG_H

#include "weights/weights.h"

/* Types of members, which can be combined. */
enum {
    CLEAT_JSON_INTEGER = 1, /* a whole number of at most 15 digits; 12.0 is one */
    CLEAT_JSON_NUMBER = 2,  /* a finite number */
    CLEAT_JSON_BOOL = 4,
    CLEAT_JSON_TEXT = 8,
    CLEAT_JSON_NUMBERS = 16, /* a list of numbers that is not empty */
    CLEAT_JSON_TEXTS = 32,   /* a list of texts */
    CLEAT_JSON_OBJECT = 64,
    CLEAT_JSON_NULL = 128, /* the same as no member */
};

/* The member `path` ("hidden_size", or "pretrained_cfg.mean" of an inner object) of the object in a JSON file
 * of the folder. *item, owned by the object, is NULL if there is none. CLEAT_ERR_FORMAT: it is not of one of
 * the `kinds`, or its parent is not an object; the message has the file, the member, its value and the
 * expected type. `object` may be NULL. */
cleat_status cleat_config_member(const char *folder, const char *file, const struct cJSON *object, const char *path,
                                 int kinds, const struct cJSON **item, cleat_error *error);
/* The same of config.json. */
cleat_status cleat_weights_member(const cleat_weights *weights, const char *path, int kinds, const struct cJSON **item,
                                  cleat_error *error);
/* A member of config.json that is a whole number; `fallback` if there is none. */
cleat_status cleat_weights_integer(const cleat_weights *weights, const char *path, int64_t fallback, int64_t *value,
                                   cleat_error *error);
/* CLEAT_ERR_FORMAT with the file, the member, its value, and the expected value, `wanted`. */
cleat_status cleat_config_refuse(const char *folder, const char *file, const char *path, const struct cJSON *item,
                                 const char *wanted, cleat_error *error);

/* Logs the members of config.json that are neither read, nor among `members` (between blanks, or NULL), nor known as
 * harmless; null and false mean the default. */
void cleat_weights_name_unread(const cleat_weights *weights, const char *members);

#endif
