/* The monotonic clock and the wall clock. */
#include "core/clock.h"

#include "platform/processes.h"

#include <time.h>

static double read_clock(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double cleat_seconds(void) {
    return read_clock(CLOCK_MONOTONIC);
}

double cleat_wall_seconds(void) {
    return read_clock(CLOCK_REALTIME);
}
