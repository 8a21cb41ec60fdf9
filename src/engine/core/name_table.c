/* A table from strings to numbers: a vocabulary, whose id of a name is the index of its number. */
#include "core/name_table.h"

#include "core/memory.h"

#include <string.h>

bool cleat_name_table_find(const cleat_name_table *table, const char *name, uint32_t *value) {
    const int32_t id = cleat_vocabulary_find(&table->names, name, strlen(name));
    if (id >= 0) *value = table->values[id];
    return id >= 0;
}

cleat_status cleat_name_table_add(cleat_name_table *table, const char *name, uint32_t value, cleat_error *error) {
    int32_t id;
    cleat_status status = cleat_grow(&table->values, table->names.count, &table->capacity, error);
    if (!status) status = cleat_vocabulary_add(&table->names, name, strlen(name), &id, error);
    if (!status) table->values[id] = value;
    return status;
}

void cleat_name_table_free(cleat_name_table *table) {
    cleat_vocabulary_free(&table->names);
    cleat_free(table->values);
    *table = (cleat_name_table){0};
}
