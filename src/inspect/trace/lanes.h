/* Lanes of a track: on each of them, any two intervals are apart or one contains the other, as trace viewers
 * require. */
#ifndef CLEAT_SRC_TRACE_LANES_H
#define CLEAT_SRC_TRACE_LANES_H

#include "cleat/core.h"

typedef struct cleat_interval {
    int64_t start, end; /* nanoseconds */
    size_t index;       /* the caller's */
    int lane;           /* result */
} cleat_interval;

typedef struct cleat_lanes {
    int count;      /* lanes in use */
    size_t clamped; /* intervals whose start was moved, by at most `resolution` */
} cleat_lanes;

/* Sorts `intervals` [count] by time, enclosing ones first, and assigns lanes. An overlap of at most
 * `resolution` nanoseconds is clamped: the later interval begins where the earlier one ends. One that
 * overlaps more goes to another lane. */
cleat_status cleat_lanes_assign(cleat_interval *intervals, size_t count, int64_t resolution, cleat_lanes *lanes,
                                cleat_error *error);

#endif
