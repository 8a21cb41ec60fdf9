/* A growable list of names. */
#include "core/name_list.h"

#include "core/memory.h"

#include <string.h>

cleat_status cleat_name_list_add_part(cleat_name_list *names, const char *name, size_t size, cleat_error *error) {
    cleat_status status = cleat_grow(&names->names, names->count, &names->capacity, error);
    if (status) return status;
    char *copy = cleat_alloc(size + 1, 1);
    if (!copy) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a name of %zu bytes", size);
    memcpy(copy, name, size);
    names->names[names->count++] = copy;
    return CLEAT_OK;
}

cleat_status cleat_name_list_add(cleat_name_list *names, const char *name, cleat_error *error) {
    return cleat_name_list_add_part(names, name, strlen(name), error);
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
