/* Host memory. All allocations of the library go through here, so that a test can fail the n-th one. */
#ifndef CLEAT_SRC_MEMORY_H
#define CLEAT_SRC_MEMORY_H

#include "cleat/core.h"

/* Zeroed memory for count * size bytes, or NULL (also on overflow). cleat_free takes NULL. */
void *cleat_alloc(size_t count, size_t size);
void cleat_free(void *memory);
char *cleat_strdup(const char *text);

/* Makes room for one more element in a growable array: *array [capacity] of elements of `size` bytes. */
cleat_status cleat_grow(void *array, size_t count, size_t *capacity, size_t size, cleat_error *error);
/* Appends a copy of `name` to a growable list of texts [count]; the list owns it. */
cleat_status cleat_grow_names(char ***names, size_t *count, size_t *capacity, const char *name, cleat_error *error);

/* Makes the n-th allocation from here on fail, once (n = 1: the next); 0 turns it off. For tests. */
void cleat_fail_allocation(long n);

#endif
