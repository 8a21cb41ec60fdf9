/* A hash table from strings to numbers, with open addressing and linear probing. */
#include "core/name_table.h"

#include "core/memory.h"

#include <string.h>

/* FNV-1a (Fowler, Noll, Vo). */
static size_t hash(const char *name) {
    uint64_t h = 14695981039346656037u;
    for (const char *p = name; *p; ++p) h = (h ^ (unsigned char)*p) * 1099511628211u;
    return (size_t)(h ^ (h >> 32));
}

/* The slot of `name`, or the free slot where it belongs. */
static struct cleat_name_table_slot *slot_of(const cleat_name_table *names, const char *name) {
    size_t mask = names->capacity - 1, at = hash(name) & mask;
    while (names->slots[at].name && strcmp(names->slots[at].name, name) != 0) at = (at + 1) & mask;
    return &names->slots[at];
}

bool cleat_name_table_find(const cleat_name_table *names, const char *name, uint32_t *value) {
    if (!names->capacity) return false;
    const struct cleat_name_table_slot *slot = slot_of(names, name);
    if (!slot->name) return false;
    *value = slot->value;
    return true;
}

static cleat_status enlarge(cleat_name_table *names, cleat_error *error) {
    cleat_name_table larger = {.count = names->count, .capacity = names->capacity ? names->capacity * 2 : 64};
    larger.slots = cleat_alloc(larger.capacity, sizeof *larger.slots);
    if (!larger.slots) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %zu names", larger.capacity);
    for (size_t i = 0; i < names->capacity; ++i)
        if (names->slots[i].name) *slot_of(&larger, names->slots[i].name) = names->slots[i];
    cleat_free(names->slots);
    *names = larger;
    return CLEAT_OK;
}

cleat_status cleat_name_table_add(cleat_name_table *names, const char *name, uint32_t value, cleat_error *error) {
    if (names->count * 2 >= names->capacity) {
        cleat_status status = enlarge(names, error);
        if (status) return status;
    }
    char *copy = cleat_strdup(name);
    if (!copy) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the name %.40s", name);
    *slot_of(names, name) = (struct cleat_name_table_slot){.name = copy, .value = value};
    ++names->count;
    return CLEAT_OK;
}

void cleat_name_table_free(cleat_name_table *names) {
    for (size_t i = 0; i < names->capacity; ++i) cleat_free(names->slots[i].name);
    cleat_free(names->slots);
    *names = (cleat_name_table){0};
}
