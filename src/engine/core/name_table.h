/* A hash table from strings to numbers. */
#ifndef CLEAT_SRC_NAME_TABLE_H
#define CLEAT_SRC_NAME_TABLE_H

#include "cleat/core.h"

typedef struct cleat_name_table {
    struct cleat_name_table_slot {
        char *name; /* owned; NULL: the slot is free */
        uint32_t value;
    } * slots; /* [capacity] a power of two; at most half of the slots are used */
    size_t count, capacity;
} cleat_name_table;

/* Returns true and sets *value if the table contains `name`. */
bool cleat_name_table_find(const cleat_name_table *names, const char *name, uint32_t *value);
/* Adds a name that the table does not contain yet; the string is copied. */
cleat_status cleat_name_table_add(cleat_name_table *names, const char *name, uint32_t value, cleat_error *error);
void cleat_name_table_free(cleat_name_table *names);

#endif
