/* Finds kernels for matrix units whose operands NVIDIA's compiler left in memory: the binaries of its driver
 * are PTX. */
#include "device/programs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* LLVM's name for the arrays of a work-item in memory. An array of up to
 * VECTOR bytes is a vector whose parts are addressed. */
static const char depot[] = "__local_depot";
enum { VECTOR = 16, NAME = 64 };

/* The first of both, or NULL. */
static const char *first_of(const char *a, const char *b) {
    return !a || (b && b < a) ? b : a;
}

bool cleat_ptx_finds_array(const char *ptx, char kernel[64], int *bytes) {
    char name[NAME];
    for (const char *entry = strstr(ptx, ".entry "); entry; entry = strstr(entry + 1, ".entry ")) {
        const char *end = first_of(strstr(entry + 1, ".entry "), strstr(entry, ".func ")), *at = strstr(entry, depot);
        if (sscanf(entry, ".entry %63[A-Za-z0-9_]", name) != 1 || !strstr(name, "_mma")) continue;
        if (!at || (end && at > end) || !(at = strchr(at, '['))) continue;
        const int size = atoi(at + 1);
        if (size <= VECTOR) continue;
        memcpy(kernel, name, sizeof name);
        *bytes = size;
        return true;
    }
    return false;
}
