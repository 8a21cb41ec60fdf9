/* A growable list of names. */
#ifndef CLEAT_SRC_NAME_LIST_H
#define CLEAT_SRC_NAME_LIST_H

#include "cleat/core.h"

typedef struct cleat_name_list {
    char **names; /* [count], owned */
    size_t count, capacity;
} cleat_name_list;

cleat_status cleat_name_list_add(cleat_name_list *names, const char *name, cleat_error *error);
/* The same for a name of `size` bytes, which need not end with a zero. */
cleat_status cleat_name_list_add_part(cleat_name_list *names, const char *name, size_t size, cleat_error *error);
/* Index of `name`, or -1; linear search. */
int cleat_name_list_find(const cleat_name_list *names, const char *name);
void cleat_name_list_free(cleat_name_list *names);

#endif
