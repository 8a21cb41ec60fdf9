/* Which source gives which figure on this device, and the checks that every reading passes. */
#include "monitor/routes.h"

#include "core/clock.h"
#include "core/memory.h"
#include "monitor/route.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* In order of preference: for each figure, the first source that gives it is used. Sources for this process come
 * before those for the whole card. */
static const cleat_route *const all_routes[] = {
    &cleat_route_nvml,   &cleat_route_kfd,   &cleat_route_drm_fdinfo,
    &cleat_route_amdgpu, &cleat_route_intel, &cleat_route_host,
};
enum { N_ROUTES = sizeof all_routes / sizeof all_routes[0] };

/* Drivers report unknown readings as values outside the range: 0xFFFF, 0 W, -1 MHz. */
typedef struct figure_row {
    cleat_figure_info info;
    double least, most;
} figure_row;

#define SHARE 0, 1
#define BYTES 0, 1e15
static const figure_row rows[CLEAT_ROUTE_FIGURES] = {
    [CLEAT_FIGURE_BUSY_DEVICE] = {{"busy_device", "", "share of time in which the device did any work at all"}, SHARE},
    [CLEAT_FIGURE_BUSY_OWN] = {{"busy_own", "", "share of time in which the device worked for this process"}, SHARE},
    [CLEAT_FIGURE_MEMORY_DEVICE] = {{"memory_device", "bytes", "memory in use on the device by all processes"}, BYTES},
    [CLEAT_FIGURE_MEMORY_DEVICE_TOTAL] = {{"memory_device_total", "bytes", "memory of the device"}, 1, 1e15},
    [CLEAT_FIGURE_MEMORY_OWN] = {{"memory_own", "bytes", "memory in use on the device by this process"}, BYTES},
    [CLEAT_FIGURE_MEMORY_GTT] = {{"memory_gtt", "bytes", "system memory that is mapped to the card"}, BYTES},
    [CLEAT_FIGURE_POWER] = {{"power", "W", "electrical power of the device"}, 0.01, 10000},
    [CLEAT_FIGURE_ENERGY] = {{"energy", "J", "energy used by the device since the start of the run"}, 0, 1e15},
    [CLEAT_FIGURE_TEMPERATURE] = {{"temperature", "Celsius", "temperature of the device"}, 1, 150},
    [CLEAT_FIGURE_CLOCK] = {{"clock", "MHz", "clock of the device's compute units"}, 1, 20000},
    [CLEAT_FIGURE_THROTTLED] = {{"throttled", "", "1 while a limit holds the clock down, else 0"}, 0, 1},
    [CLEAT_FIGURE_THROTTLE_REASON] = {{"throttle_reason", "", "sum of 1 thermal, 2 power, 4 other; 0 none"}, 0, 7},
    [CLEAT_FIGURE_HOST_CPU] = {{"host_cpu", "CPUs", "CPU seconds of this process per second"}, 0, 1e5},
    [CLEAT_FIGURE_HOST_MEMORY] = {{"host_memory", "bytes", "resident memory of this process"}, 1, 1e15},
    [CLEAT_FIGURE_HOST_MEMORY_AVAILABLE] = {{"host_memory_available", "bytes",
                                             "host memory that this process may still take"},
                                            BYTES},
    [CLEAT_FIGURE_HOST_MEMORY_LIMIT] = {{"host_memory_limit", "bytes", "memory limit of the control group"}, 1, 1e15},
    [CLEAT_FIGURE_CPU_QUOTA_THROTTLED] = {{"cpu_quota_throttled", "",
                                           "share of scheduling periods in which the CPU quota was used up"},
                                          SHARE},
};

typedef struct opened {
    const cleat_route *route;
    void *state;
    bool gives[CLEAT_ROUTE_FIGURES]; /* is the source of this figure */
} opened;

struct cleat_routes {
    cleat_route_place place;
    opened open[N_ROUTES];
    size_t count;
    cleat_route_sources sources; /* "": none */
    bool distrusted[CLEAT_ROUTE_FIGURES];
    bool power_integrated;  /* ENERGY is the integral of POWER */
    bool energy_divided;    /* POWER is the difference of ENERGY */
    double last, last_time; /* the previous known reading of the one that is read */
    bool known;             /* there is a previous reading */
    double first, energy;   /* counter when opened; joules since then */
    bool energy_lost;       /* the counter went backwards: the sum is unknown from then on */
};

void cleat_route_offer(cleat_route_sources sources, cleat_figure figure, const char *format, ...) {
    va_list rest;
    va_start(rest, format);
    vsnprintf(sources[figure], CLEAT_ROUTE_SOURCE, format, rest);
    va_end(rest);
}

const cleat_figure_info *cleat_figure_describe(cleat_figure figure) {
    return &rows[figure].info;
}

static cleat_status find_place(cleat_route_place *place, const cleat_device_facts *facts, const char *root,
                               cleat_error *error) {
    place->facts = *facts;
    if ((size_t)snprintf(place->root, sizeof place->root, "%s", root) >= sizeof place->root)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "path too long: %.100s...", root);
    if (facts->kind == CLEAT_DEVICE_CPU || facts->pci_bus < 0) return CLEAT_OK;
    snprintf(place->pci, sizeof place->pci, "%04x:%02x:%02x.%x", (unsigned)facts->pci_domain & 0xffff,
             (unsigned)facts->pci_bus & 0xff, (unsigned)facts->pci_device & 0xff, (unsigned)facts->pci_function & 0xf);
    snprintf(place->folder, sizeof place->folder, "%s/sys/bus/pci/devices/%s", root, place->pci);
    return CLEAT_OK;
}

/* Opens one route; it becomes the source of those of its figures that have none yet. */
static void add_route(cleat_routes *routes, const cleat_route *route) {
    cleat_route_sources sources;
    opened *added = &routes->open[routes->count];
    bool any = false;
    memset(sources, 0, sizeof sources);
    void *state = route->open(&routes->place, sources);
    if (!state) return;
    memcpy(sources[CLEAT_FIGURE_THROTTLED], sources[CLEAT_FIGURE_THROTTLE_REASON], CLEAT_ROUTE_SOURCE);
    for (int i = 0; i < CLEAT_ROUTE_FIGURES; ++i) {
        if (!sources[i][0] || routes->sources[i][0]) continue;
        memcpy(routes->sources[i], sources[i], CLEAT_ROUTE_SOURCE);
        added->gives[i] = any = true;
    }
    if (!any) {
        route->close(state);
        return;
    }
    added->route = route;
    added->state = state;
    ++routes->count;
}

/* Derives energy from power, or power from energy, if only one is available. */
static void add_derived(cleat_routes *routes) {
    char *power = routes->sources[CLEAT_FIGURE_POWER], *energy = routes->sources[CLEAT_FIGURE_ENERGY];
    routes->power_integrated = *power && !*energy;
    routes->energy_divided = *energy && !*power;
    if (routes->power_integrated) snprintf(energy, CLEAT_ROUTE_SOURCE, "%.120s, integrated over the reads", power);
    if (routes->energy_divided) snprintf(power, CLEAT_ROUTE_SOURCE, "%.120s, difference per second", energy);
}

static double in_range(int figure, double value) {
    return value >= rows[figure].least && value <= rows[figure].most ? value : NAN;
}

static void read_routes(cleat_routes *routes, double now, double values[CLEAT_ROUTE_FIGURES]) {
    for (int i = 0; i < CLEAT_ROUTE_FIGURES; ++i) values[i] = NAN;
    for (size_t r = 0; r < routes->count; ++r) {
        double read[CLEAT_ROUTE_FIGURES];
        const opened *open = &routes->open[r];
        for (int i = 0; i < CLEAT_ROUTE_FIGURES; ++i) read[i] = NAN;
        open->route->read(open->state, now, read);
        if (isfinite(read[CLEAT_FIGURE_THROTTLE_REASON]))
            read[CLEAT_FIGURE_THROTTLED] = read[CLEAT_FIGURE_THROTTLE_REASON] > 0;
        for (int i = 0; i < CLEAT_ROUTE_FIGURES; ++i)
            if (open->gives[i]) values[i] = in_range(i, read[i]);
    }
}

static void remember(cleat_routes *routes, double now, double reading) {
    routes->last = reading;
    routes->last_time = now;
    routes->known = true;
}

/* The mean of two readings counts for the time between them, also over a gap. */
static void integrate_power(cleat_routes *routes, double now, double power, double *energy) {
    if (isnan(power)) return;
    if (routes->known) *energy = routes->energy += 0.5 * (power + routes->last) * (now - routes->last_time);
    remember(routes, now, power);
}

static void count_energy(cleat_routes *routes, double now, double counter, double *energy, double *power) {
    *energy = NAN;
    if (isnan(counter)) return;
    if (!routes->known)
        routes->first = counter;
    else if (counter < routes->last)
        routes->energy_lost = true;
    else if (routes->energy_divided && now > routes->last_time)
        *power = in_range(CLEAT_FIGURE_POWER, (counter - routes->last) / (now - routes->last_time));
    if (!routes->energy_lost) *energy = counter - routes->first;
    remember(routes, now, counter);
}

cleat_status cleat_routes_open_at(const cleat_device_facts *facts, const char *root, double now, cleat_routes **routes,
                                  cleat_error *error) {
    double values[CLEAT_ROUTE_FIGURES];
    cleat_routes *made = cleat_alloc(1, sizeof *made);
    if (!made) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %zu bytes", sizeof *made);
    cleat_status status = find_place(&made->place, facts, root, error);
    if (status) {
        cleat_routes_close(made);
        return status;
    }
    for (size_t i = 0; i < N_ROUTES; ++i) add_route(made, all_routes[i]);
    add_derived(made);
    cleat_routes_read_at(made, now, values);
    *routes = made;
    return CLEAT_OK;
}

cleat_status cleat_routes_open(const cleat_device_facts *facts, const char *root, cleat_routes **routes,
                               cleat_error *error) {
    return cleat_routes_open_at(facts, root, cleat_seconds(), routes, error);
}

const char *cleat_routes_source(const cleat_routes *routes, cleat_figure figure) {
    return routes->sources[figure][0] ? routes->sources[figure] : NULL;
}

void cleat_routes_read_at(cleat_routes *routes, double now, double values[CLEAT_ROUTE_FIGURES]) {
    read_routes(routes, now, values);
    double *energy = &values[CLEAT_FIGURE_ENERGY], *power = &values[CLEAT_FIGURE_POWER];
    if (routes->power_integrated)
        integrate_power(routes, now, *power, energy);
    else
        count_energy(routes, now, *energy, energy, power);
    if (values[CLEAT_FIGURE_MEMORY_DEVICE] > values[CLEAT_FIGURE_MEMORY_DEVICE_TOTAL])
        values[CLEAT_FIGURE_MEMORY_DEVICE] = NAN; /* one of the two is wrong */
    for (int i = 0; i < CLEAT_ROUTE_FIGURES; ++i)
        if (routes->distrusted[i]) values[i] = NAN;
}

void cleat_routes_read(cleat_routes *routes, double values[CLEAT_ROUTE_FIGURES]) {
    cleat_routes_read_at(routes, cleat_seconds(), values);
}

void cleat_routes_distrust(cleat_routes *routes, cleat_figure figure) {
    routes->distrusted[figure] = true;
}

void cleat_routes_close(cleat_routes *routes) {
    if (!routes) return;
    for (size_t i = 0; i < routes->count; ++i) routes->open[i].route->close(routes->open[i].state);
    cleat_free(routes);
}
