/* Figures of Intel's cards, from the files of the i915 and xe drivers in the card's folder of sysfs. */
#include "core/files.h"
#include "core/memory.h"
#include "monitor/kernel_files.h"
#include "monitor/route.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PATH = CLEAT_ROUTE_ROOT + 192 };

typedef struct intel_state {
    char energy[PATH], temperature[PATH], clock[PATH];
    char throttle[PATH]; /* path up to the name of a reason */
} intel_state;

static double read_file(const char *path) {
    double number = 0;
    return *path && cleat_kernel_number(&number, "%s", path) ? number : NAN;
}

static const struct {
    const char *name;
    int bit;
} reasons[] = {
    {"thermal", CLEAT_THROTTLE_THERMAL}, {"prochot", CLEAT_THROTTLE_THERMAL},
    {"ratl", CLEAT_THROTTLE_THERMAL},    {"vr_thermalert", CLEAT_THROTTLE_THERMAL},
    {"pl1", CLEAT_THROTTLE_POWER},       {"pl2", CLEAT_THROTTLE_POWER},
    {"pl4", CLEAT_THROTTLE_POWER},       {"vr_tdc", CLEAT_THROTTLE_POWER},
};

/* Returns CLEAT_THROTTLE_ bits. */
static double read_throttle(const intel_state *state) {
    char path[PATH + 32];
    double status = 0, on = 0;
    int bits = 0;
    if (!state->throttle[0] || !cleat_kernel_number(&status, "%sstatus", state->throttle)) return NAN;
    if (status == 0) return 0;
    /* xe: throttle/status beside throttle/reason_pl1; i915: throttle_reason_status beside throttle_reason_pl1 */
    const char *infix = strstr(state->throttle, "throttle_reason_") ? "" : "reason_";
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; ++i) {
        snprintf(path, sizeof path, "%s%s%s", state->throttle, infix, reasons[i].name);
        if (cleat_kernel_number(&on, "%s", path) && on > 0) bits |= reasons[i].bit;
    }
    return bits ? bits : CLEAT_THROTTLE_OTHER;
}

/* Keeps the first of several paths whose file holds a number; `path` becomes "" if none does. */
static bool choose(char path[PATH], const char *folder, const char *const *names, const char **chosen) {
    for (; *names; ++names) {
        if (snprintf(path, PATH, "%s/%s", folder, *names) < PATH && !isnan(read_file(path))) {
            *chosen = *names;
            return true;
        }
    }
    path[0] = 0;
    return false;
}

/* The driver's own name of its sensors; false: neither of Intel's. */
static bool find_driver(const char *hwmon, char driver[16]) {
    if (!cleat_kernel_text(driver, 16, "%s/name", hwmon)) return false;
    driver[strcspn(driver, "\n")] = 0;
    return strcmp(driver, "i915") == 0 || strcmp(driver, "xe") == 0;
}

static void open_sensors(intel_state *state, const char *folder, cleat_route_sources sources) {
    static const char *const energies[] = {"energy1_input", "energy2_input", NULL};
    static const char *const temperatures[] = {"temp1_input", "temp2_input", NULL};
    char hwmon[CLEAT_ROUTE_ROOT + 128], driver[16];
    const char *name = NULL;
    if (!cleat_kernel_hwmon(folder, hwmon, sizeof hwmon) || !find_driver(hwmon, driver)) return;
    if (choose(state->energy, hwmon, energies, &name))
        cleat_route_offer(sources, CLEAT_FIGURE_ENERGY, "%s hwmon %s", driver, name);
    if (choose(state->temperature, hwmon, temperatures, &name))
        cleat_route_offer(sources, CLEAT_FIGURE_TEMPERATURE, "%s hwmon %s", driver, name);
}

static bool is_card(const char *name) {
    return strncmp(name, "card", 4) == 0;
}

static void open_clock(intel_state *state, const char *folder, cleat_route_sources sources) {
    static const char *const xe[] = {"tile0/gt0/freq0/act_freq", NULL};
    static const char *const i915[] = {"gt/gt0/rps_act_freq_mhz", "gt_act_freq_mhz", NULL};
    static const char *const xe_throttle[] = {"tile0/gt0/freq0/throttle/status", NULL};
    static const char *const i915_throttle[] = {"gt/gt0/throttle_reason_status", NULL};
    char drm[PATH], card[PATH] = "";
    const char *clock = NULL, *throttle = NULL;
    cleat_name_list listing = {0};
    snprintf(drm, sizeof drm, "%.300s/drm", folder);
    if (!cleat_listing_read(drm, is_card, &listing, NULL) && listing.count)
        snprintf(card, sizeof card, "%.310s/%.32s", drm, listing.names[0]);
    cleat_name_list_free(&listing);
    if (choose(state->clock, folder, xe, &clock) || (*card && choose(state->clock, card, i915, &clock)))
        cleat_route_offer(sources, CLEAT_FIGURE_CLOCK, "%s of the card in sysfs", clock);
    if (choose(state->throttle, folder, xe_throttle, &throttle) ||
        (*card && choose(state->throttle, card, i915_throttle, &throttle))) {
        state->throttle[strlen(state->throttle) - strlen("status")] = 0;
        cleat_route_offer(sources, CLEAT_FIGURE_THROTTLE_REASON, "%s of the card in sysfs", throttle);
    }
}

static void *open_intel(const cleat_route_place *place, cleat_route_sources sources) {
    if (!place->folder[0]) return NULL;
    intel_state *state = cleat_alloc(1, sizeof *state);
    if (!state) return NULL;
    open_sensors(state, place->folder, sources);
    open_clock(state, place->folder, sources);
    return state;
}

static void read_intel(void *opened, double now, double values[CLEAT_ROUTE_FIGURES]) {
    const intel_state *state = opened;
    (void)now;
    values[CLEAT_FIGURE_ENERGY] = read_file(state->energy) * 1e-6;
    values[CLEAT_FIGURE_TEMPERATURE] = read_file(state->temperature) * 1e-3;
    values[CLEAT_FIGURE_CLOCK] = read_file(state->clock); /* 0 while the card sleeps: no clock */
    values[CLEAT_FIGURE_THROTTLE_REASON] = read_throttle(state);
}

const cleat_route cleat_route_intel = {"intel", open_intel, read_intel, cleat_free};
