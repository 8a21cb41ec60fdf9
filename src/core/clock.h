/* The clock for measuring durations. */
#ifndef CLEAT_SRC_CLOCK_H
#define CLEAT_SRC_CLOCK_H

/* Seconds of a monotonic clock with an arbitrary origin. */
double cleat_seconds(void);

#endif
