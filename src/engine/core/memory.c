/* Host memory, with a switch that makes the n-th allocation fail. */
#include "core/memory.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static atomic_long allocations_until_failure; /* 0: off; for tests only */

void cleat_fail_allocation(long n) {
    atomic_store(&allocations_until_failure, n);
}

static bool fails_on_purpose(void) {
    if (atomic_load_explicit(&allocations_until_failure, memory_order_relaxed) <= 0) return false;
    return atomic_fetch_sub(&allocations_until_failure, 1) == 1;
}

void *cleat_alloc(size_t count, size_t size) {
    if (fails_on_purpose() || (size && count > SIZE_MAX / size)) return NULL;
    return calloc(count ? count : 1, size ? size : 1);
}

void cleat_free(void *memory) {
    free(memory);
}

char *cleat_strdup(const char *text) {
    size_t size = strlen(text) + 1;
    char *copy = cleat_alloc(size, 1);
    return copy ? memcpy(copy, text, size) : NULL;
}

cleat_status cleat_grow_array(void *array, size_t count, size_t *capacity, size_t size, cleat_error *error) {
    if (count < *capacity) return CLEAT_OK;
    size_t wanted = *capacity ? *capacity * 2 : 16;
    void *old;
    memcpy(&old, array, sizeof old);
    void *grown = fails_on_purpose() || wanted > SIZE_MAX / size ? NULL : realloc(old, wanted * size);
    if (!grown) return cleat_fail(error, CLEAT_ERR_MEMORY, "out of memory resizing an array to %zu elements", wanted);
    memset((char *)grown + *capacity * size, 0, (wanted - *capacity) * size);
    memcpy(array, &grown, sizeof grown);
    *capacity = wanted;
    return CLEAT_OK;
}
