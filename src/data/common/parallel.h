/* The same work for many items, on a few threads. */
#ifndef CLEAT_SRC_PARALLEL_H
#define CLEAT_SRC_PARALLEL_H

#include "cleat/core.h"

/* Calls work(user, i, ...) for i = 0 .. count - 1, each once, on as many threads as there are processors (8 at most), until
 * one fails. The error returned is that of the smallest index that fails, whatever the threads did. */
typedef cleat_status (*cleat_parallel_work)(void *user, size_t index, cleat_error *error);
cleat_status cleat_parallel(size_t count, cleat_parallel_work work, void *user, cleat_error *error);

#endif
