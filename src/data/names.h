/* A table from texts to numbers. */
#ifndef CLEAT_SRC_NAMES_H
#define CLEAT_SRC_NAMES_H

#include "cleat/core.h"

typedef struct cleat_names {
    struct cleat_names_slot {
        char *name; /* owned; NULL: free */
        uint32_t value;
    } * slots; /* [capacity], a power of two, at most half full */
    size_t count, capacity;
} cleat_names;

/* True and *value set when `name` is there. */
bool cleat_names_find(const cleat_names *names, const char *name, uint32_t *value);
/* Adds a name that is not there yet; the text is copied. */
cleat_status cleat_names_add(cleat_names *names, const char *name, uint32_t value, cleat_error *error);
void cleat_names_free(cleat_names *names);

#endif
