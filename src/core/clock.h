/* The clock that durations are measured with. */
#ifndef CLEAT_SRC_CLOCK_H
#define CLEAT_SRC_CLOCK_H

/* Seconds of a steady clock, from an origin of its own. */
double cleat_seconds(void);

#endif
