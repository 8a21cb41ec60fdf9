/* CPU affinity of the loader's threads. */
#ifndef CLEAT_SRC_PIN_H
#define CLEAT_SRC_PIN_H

#include "cleat/core.h"

typedef struct cleat_pinning cleat_pinning;

/* Finds the CPUs that this process may use: hwloc's allowed set, intersected with the affinity of the calling
 * thread and with the list `near` ("0-7,16"; NULL or "any": no restriction). If the list would leave none, it
 * is ignored, with a warning in the log. The caller owns *pinning. */
cleat_status cleat_pinning_create(const char *near, cleat_pinning **pinning, cleat_error *error);
void cleat_pinning_destroy(cleat_pinning *pinning);
/* Binds the calling thread to the whole set. Returns false if the system does not support it. */
bool cleat_pinning_apply(const cleat_pinning *pinning);
/* The set as a list, such as "0-1"; valid as long as `pinning`. */
const char *cleat_pinning_list(const cleat_pinning *pinning);

#endif
