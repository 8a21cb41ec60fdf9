/* A growable list of names. */
#include "data/common/name_list.h"

#include "core/memory.h"

#include <string.h>

cleat_status cleat_name_list_add(cleat_name_list *names, const char *name, cleat_error *error) {
    return cleat_grow_names(&names->names, &names->count, &names->capacity, name, error);
}

int cleat_name_list_find(const cleat_name_list *names, const char *name) {
    for (size_t i = 0; i < names->count; ++i)
        if (strcmp(names->names[i], name) == 0) return (int)i;
    return -1;
}

void cleat_name_list_free(cleat_name_list *names) {
    for (size_t i = 0; i < names->count; ++i) cleat_free(names->names[i]);
    cleat_free(names->names);
    *names = (cleat_name_list){0};
}
