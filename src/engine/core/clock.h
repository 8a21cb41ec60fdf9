/* The clocks: for durations, and for points in time. */
#ifndef CLEAT_SRC_CLOCK_H
#define CLEAT_SRC_CLOCK_H

/* Seconds of a monotonic clock with an arbitrary origin. */
double cleat_seconds(void);
/* Seconds since 1970, for records that people read; may be set back. */
double cleat_wall_seconds(void);

#endif
