/* A table from texts to numbers. */
#ifndef CLEAT_SRC_NAME_TABLE_H
#define CLEAT_SRC_NAME_TABLE_H

#include "cleat/core.h"

typedef struct cleat_name_table {
    struct cleat_name_table_slot {
        char *name; /* owned; NULL: free */
        uint32_t value;
    } * slots; /* [capacity], a power of two, at most half full */
    size_t count, capacity;
} cleat_name_table;

/* True and *value set when `name` is there. */
bool cleat_name_table_find(const cleat_name_table *names, const char *name, uint32_t *value);
/* Adds a name that is not there yet; the text is copied. */
cleat_status cleat_name_table_add(cleat_name_table *names, const char *name, uint32_t value, cleat_error *error);
void cleat_name_table_free(cleat_name_table *names);

#endif
