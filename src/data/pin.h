/* Which CPUs the loader's threads may run on. */
#ifndef CLEAT_SRC_PIN_H
#define CLEAT_SRC_PIN_H

#include "cleat/core.h"

typedef struct cleat_pinning cleat_pinning;

/* The CPUs of the list `near` ("0-7,16"; NULL or "any": all) that this process may use: hwloc's allowed set,
 * cut by the affinity of the calling thread. Where the list leaves none, all that are allowed (logged). */
cleat_status cleat_pinning_create(const char *near, cleat_pinning **pinning, cleat_error *error);
void cleat_pinning_destroy(cleat_pinning *pinning);
/* Binds the calling thread to the whole set. False where the system cannot. */
bool cleat_pinning_apply(const cleat_pinning *pinning);
/* The set as a list, "0-1". */
const char *cleat_pinning_list(const cleat_pinning *pinning);

#endif
