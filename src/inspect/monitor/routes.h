/* Figures of a device at work from the driver, the kernel and the host: load, memory, power, temperature,
 * throttling. Unknown is NaN, never 0. */
#ifndef CLEAT_SRC_ROUTES_H
#define CLEAT_SRC_ROUTES_H

#include "cleat/device.h"

typedef enum cleat_figure {
    CLEAT_FIGURE_BUSY_DEVICE,
    CLEAT_FIGURE_BUSY_OWN,
    CLEAT_FIGURE_MEMORY_DEVICE,
    CLEAT_FIGURE_MEMORY_DEVICE_TOTAL,
    CLEAT_FIGURE_MEMORY_OWN,
    CLEAT_FIGURE_MEMORY_GTT,
    CLEAT_FIGURE_POWER,
    CLEAT_FIGURE_ENERGY,
    CLEAT_FIGURE_TEMPERATURE,
    CLEAT_FIGURE_CLOCK,
    CLEAT_FIGURE_THROTTLED,
    CLEAT_FIGURE_THROTTLE_REASON,
    CLEAT_FIGURE_HOST_CPU,
    CLEAT_FIGURE_HOST_MEMORY,
    CLEAT_FIGURE_HOST_MEMORY_AVAILABLE,
    CLEAT_FIGURE_HOST_MEMORY_LIMIT,
    CLEAT_FIGURE_CPU_QUOTA_THROTTLED,
    CLEAT_ROUTE_FIGURES
} cleat_figure;

/* Bits of CLEAT_FIGURE_THROTTLE_REASON. */
enum { CLEAT_THROTTLE_THERMAL = 1, CLEAT_THROTTLE_POWER = 2, CLEAT_THROTTLE_OTHER = 4 };

typedef struct cleat_figure_info {
    const char *name;    /* "busy_device" */
    const char *unit;    /* "bytes", "W"; "" for shares from 0 to 1, flags and bit sets */
    const char *meaning; /* for a reader who sees the name for the first time */
} cleat_figure_info;

typedef struct cleat_routes cleat_routes;

/* Static strings. */
const cleat_figure_info *cleat_figure_describe(cleat_figure figure);

/* Finds for each figure the first source that gives it on this device. Every file is read below `root`: "" or
 * a fixture tree that replaces / (at most 255 bytes). Nothing of `facts` is kept. A device without any source
 * is not an error. The caller closes *routes. CLEAT_ERR_MEMORY, CLEAT_ERR_ARGUMENT (root too long). */
cleat_status cleat_routes_open(const cleat_device_facts *facts, const char *root, cleat_routes **routes,
                               cleat_error *error);
/* The file or function that gives a figure; NULL: none on this device. Valid until closed. */
const char *cleat_routes_source(const cleat_routes *routes, cleat_figure figure);
/* Reads all figures; NaN: unknown now. Shares and rates are those since the previous read (since opening, at
 * first); energy is that since opening. Takes less than 2 ms. One thread at a time. */
void cleat_routes_read(cleat_routes *routes, double values[CLEAT_ROUTE_FIGURES]);
/* Makes a figure NaN from now on: the driver's number contradicts cleat's own. */
void cleat_routes_distrust(cleat_routes *routes, cleat_figure figure);
/* NULL is allowed. */
void cleat_routes_close(cleat_routes *routes);

#endif
