/* Lanes: for each lane a stack of the intervals that are open at the current time. */
#include "trace/lanes.h"

#include "core/memory.h"

#include <stdlib.h>

typedef struct lane_stack {
    cleat_interval *open; /* [depth] each within the one before; copies */
    size_t depth, capacity;
} lane_stack;

static int compare(const void *a, const void *b) {
    const cleat_interval *x = a, *y = b;
    if (x->start != y->start) return x->start < y->start ? -1 : 1;
    if (x->end != y->end) return x->end > y->end ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

/* The start with which `interval` fits into the lane; closes what has ended. Moves past every open interval
 * that ends within the interval. */
static int64_t fitting_start(lane_stack *lane, const cleat_interval *interval) {
    int64_t start = interval->start;
    while (lane->depth > 0) {
        const cleat_interval *top = &lane->open[lane->depth - 1];
        if (top->start > start) start = top->start;
        if (interval->end <= top->end && start < top->end) break; /* within it */
        if (top->end > start) start = top->end;
        --lane->depth;
    }
    return start;
}

static cleat_status try_lane(lane_stack *lane, cleat_interval *interval, int64_t resolution, bool *fits, bool *clamped,
                             cleat_error *error) {
    const size_t depth = lane->depth;
    cleat_status status = cleat_grow(&lane->open, depth, &lane->capacity, error);
    if (status) return status;
    int64_t start = fitting_start(lane, interval);
    *fits = start - interval->start <= resolution && start <= interval->end;
    if (!*fits) {
        lane->depth = depth; /* what was closed is still in its place */
        return CLEAT_OK;
    }
    *clamped = start != interval->start;
    interval->start = start;
    lane->open[lane->depth++] = *interval;
    return CLEAT_OK;
}

cleat_status cleat_lanes_assign(cleat_interval *intervals, size_t count, int64_t resolution, cleat_lanes *lanes,
                                cleat_error *error) {
    lane_stack *made = NULL;
    size_t n = 0, capacity = 0;
    cleat_status status = CLEAT_OK;
    cleat_lanes found = {0};
    if (count > 1) qsort(intervals, count, sizeof *intervals, compare);
    for (size_t i = 0; i < count && !status; ++i) {
        bool fits = false, clamped = false;
        for (size_t l = 0; !fits && !status; ++l) {
            if (l == n) {
                status = cleat_grow(&made, n, &capacity, error);
                if (status) break;
                made[n++] = (lane_stack){0};
            }
            status = try_lane(&made[l], &intervals[i], resolution, &fits, &clamped, error);
            intervals[i].lane = (int)l;
        }
        found.clamped += clamped;
    }
    found.count = (int)n;
    for (size_t l = 0; l < n; ++l) cleat_free(made[l].open);
    cleat_free(made);
    if (!status) *lanes = found;
    return status;
}
