/* Host memory. All allocations of the library use these functions, so that a test can make the n-th one
 * fail. */
#ifndef CLEAT_SRC_MEMORY_H
#define CLEAT_SRC_MEMORY_H

#include "cleat/core.h"

/* Zeroed memory for count * size bytes, or NULL (also on overflow). Free it with cleat_free, which accepts
 * NULL. */
void *cleat_alloc(size_t count, size_t size);
void cleat_free(void *memory);
char *cleat_strdup(const char *text);

/* Reserves space for one more element in a growable array: *array [capacity]. New elements are zero. */
#define cleat_grow(array, count, capacity, error) cleat_grow_array(array, count, capacity, sizeof **(array), error)
cleat_status cleat_grow_array(void *array, size_t count, size_t *capacity, size_t size, cleat_error *error);

/* Returns unused memory to the system after kernels were compiled: free parts of the heap, of which compilers
 * leave tens of MB in each thread's arena, and pages of compilers' libraries, which come back from the file
 * when they are needed (trim.c). Takes milliseconds. Thread-safe. Does nothing if the C library is not glibc. */
void cleat_trim_memory(void);

/* Makes the n-th allocation from now on fail, once (n = 1: the next); 0 turns this off. For tests. */
void cleat_fail_allocation(long n);

#endif
