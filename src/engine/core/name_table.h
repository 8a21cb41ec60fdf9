/* A table from strings to numbers. */
#ifndef CLEAT_SRC_NAME_TABLE_H
#define CLEAT_SRC_NAME_TABLE_H

#include "core/vocabulary.h"

typedef struct cleat_name_table {
    cleat_vocabulary names;
    uint32_t *values; /* [names.count] */
    size_t capacity;
} cleat_name_table;

/* Returns true and sets *value if the table contains `name`. */
bool cleat_name_table_find(const cleat_name_table *table, const char *name, uint32_t *value);
/* Adds a name that the table does not contain yet; the string is copied. */
cleat_status cleat_name_table_add(cleat_name_table *table, const char *name, uint32_t value, cleat_error *error);
void cleat_name_table_free(cleat_name_table *table);

#endif
