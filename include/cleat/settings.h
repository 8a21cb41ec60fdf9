/* Values of settings, and the settings that models of every family have. */
#ifndef CLEAT_SETTINGS_H
#define CLEAT_SETTINGS_H

#include "cleat/core.h"

/* Values for keywords. `auto`: the run decides and logs the value. `none`: off. */
enum { CLEAT_AUTO = -1, CLEAT_NONE = 0 };

enum { CLEAT_PROFILE_TEXT = 1024, CLEAT_PROFILE_LIST = 16 };

typedef enum cleat_precision {
    CLEAT_PRECISION_AUTO,
    CLEAT_PRECISION_F32,
    CLEAT_PRECISION_F16,
    CLEAT_PRECISION_BF16,
    CLEAT_PRECISION_TF32,
} cleat_precision;

typedef struct cleat_int_list {
    int64_t count; /* CLEAT_AUTO: the run decides */
    int64_t values[CLEAT_PROFILE_LIST];
} cleat_int_list;

/* Data settings of every family; the settings struct of each family begins with it. */
typedef struct cleat_data_settings {
    char path[CLEAT_PROFILE_TEXT];
    int64_t limit; /* maximum number of training samples, the first ones; CLEAT_NONE: all */
    /* Families whose samples differ in length; all 0 in others. */
    int64_t max_length;
    /* max_length may be lowered to this if memory is short; CLEAT_NONE: never lowered */
    int64_t min_length;
    cleat_int_list buckets; /* padded lengths, ascending */
} cleat_data_settings;

#endif
