/* One source of figures, such as NVML or the files of amdgpu. A source is a file NAME.c and a line in the table of
 * routes.c. */
#ifndef CLEAT_SRC_ROUTE_H
#define CLEAT_SRC_ROUTE_H

#include "monitor/routes.h"

enum { CLEAT_ROUTE_ROOT = 256, CLEAT_ROUTE_SOURCE = 160 };

/* Where to look. */
typedef struct cleat_route_place {
    cleat_device_facts facts;
    char root[CLEAT_ROUTE_ROOT];        /* replaces "/" of every path */
    char pci[16];                       /* "0000:0b:00.0"; "" if unknown */
    char folder[CLEAT_ROUTE_ROOT + 64]; /* the card's folder in sysfs, root included; "" if unknown */
} cleat_route_place;

/* The exact file or function that gives each figure; "": not this figure. */
typedef char cleat_route_sources[CLEAT_ROUTE_FIGURES][CLEAT_ROUTE_SOURCE];

typedef struct cleat_route {
    const char *name;
    /* Probes: fills `sources` with what it will read, and returns its state; NULL: nothing here. `place` outlives
     * the state. */
    void *(*open)(const cleat_route_place *place, cleat_route_sources sources);
    /* Writes the figures known at `now` (seconds of any steady clock) into `values`, which holds NaN.
     * Called once right after open, so that differences have a beginning. ENERGY is the reading of the counter,
     * whatever it began with. */
    void (*read)(void *state, double now, double values[CLEAT_ROUTE_FIGURES]);
    void (*close)(void *state);
} cleat_route;

extern const cleat_route cleat_route_nvml, cleat_route_kfd, cleat_route_drm_fdinfo, cleat_route_amdgpu,
    cleat_route_intel, cleat_route_host;

/* Sets the source of a figure (printf). */
void cleat_route_offer(cleat_route_sources sources, cleat_figure figure, const char *format, ...) CLEAT_PRINTF(3, 4);

/* cleat_routes_read at a given time, for tests: differences become exact. */
void cleat_routes_read_at(cleat_routes *routes, double now, double values[CLEAT_ROUTE_FIGURES]);
/* cleat_routes_open at a given time. */
cleat_status cleat_routes_open_at(const cleat_device_facts *facts, const char *root, double now, cleat_routes **routes,
                                  cleat_error *error);

#endif
