/* Parallel loop over items on a few threads. */
#ifndef CLEAT_SRC_PARALLEL_H
#define CLEAT_SRC_PARALLEL_H

#include "data/common/faults.h"

/* Calls work(user, i, ...) once for each i = 0 .. count - 1, on as many threads as there are processors (at
 * most 8). Local errors (data/common/faults.h) are collected by index and reported at the end, independent of
 * thread scheduling; any other error ends the loop. */
typedef cleat_status (*cleat_parallel_work)(void *user, size_t index, cleat_error *error);
cleat_status cleat_parallel(size_t count, cleat_parallel_work work, void *user, cleat_error *error);
/* The same, but appends the local errors to `faults`, which the caller reports. */
cleat_status cleat_parallel_collect(size_t count, cleat_parallel_work work, void *user, cleat_faults *faults,
                                    cleat_error *error);

#endif
