/* Figures of AMD's cards, from the files of the amdgpu driver in the card's folder of sysfs. */
#include "core/memory.h"
#include "monitor/kernel_files.h"
#include "monitor/route.h"
#include "platform/files.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>

typedef struct amdgpu_state {
    const char *folder;
    bool own_memory; /* of the card, not of the host */
    char hwmon[CLEAT_ROUTE_ROOT + 128];
    const char *power; /* file of hwmon; NULL: none */
} amdgpu_state;

static double read_file(const char *folder, const char *name) {
    double number = 0;
    return *folder && cleat_kernel_number(&number, "%s/%s", folder, name) ? number : NAN;
}

/* Reads the throttling of gpu_metrics, a struct in binary form. Only version 1.3 (RX 5000 to 7000, MI200) has
 * a separate field for it, whose bits mean the same on all cards. Returns CLEAT_THROTTLE_ bits. */
static double read_throttle(const amdgpu_state *state) {
    enum { SIZE = 120, STATUS_AT = 112, FORMAT = 1, CONTENT = 3 };
    const uint64_t power = 0x00ffffffULL, thermal = 0xffffULL << 32; /* power and current limits; temperatures */
    unsigned char bytes[SIZE];
    char path[CLEAT_ROUTE_ROOT + 128];
    uint64_t status = 0;
    double bits = 0;
    snprintf(path, sizeof path, "%s/gpu_metrics", state->folder);
    FILE *file = fopen(path, "rb");
    if (!file) return NAN;
    const size_t got = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    if (got != SIZE || bytes[2] != FORMAT || bytes[3] != CONTENT) return NAN;
    for (int i = 7; i >= 0; --i) status = status << 8 | bytes[STATUS_AT + i];
    if (status == UINT64_MAX) return NAN; /* not reported */
    if (status & thermal) bits += CLEAT_THROTTLE_THERMAL;
    if (status & power) bits += CLEAT_THROTTLE_POWER;
    if (status & ~(thermal | power)) bits += CLEAT_THROTTLE_OTHER;
    return bits;
}

static void offer_all(amdgpu_state *state, cleat_route_sources sources) {
    static const char *const power_files[] = {"power1_average", "power1_input"};
    const char *const folder = state->folder;
    if (!isnan(read_file(folder, "gpu_busy_percent")))
        cleat_route_offer(sources, CLEAT_FIGURE_BUSY_DEVICE, "amdgpu gpu_busy_percent");
    if (state->own_memory) {
        cleat_route_offer(sources, CLEAT_FIGURE_MEMORY_DEVICE_TOTAL, "amdgpu mem_info_vram_total");
        if (!isnan(read_file(folder, "mem_info_vram_used")))
            cleat_route_offer(sources, CLEAT_FIGURE_MEMORY_DEVICE, "amdgpu mem_info_vram_used");
        if (!isnan(read_file(folder, "mem_info_gtt_used")))
            cleat_route_offer(sources, CLEAT_FIGURE_MEMORY_GTT, "amdgpu mem_info_gtt_used, all processes");
    }
    if (!isnan(read_throttle(state)))
        cleat_route_offer(sources, CLEAT_FIGURE_THROTTLE_REASON, "amdgpu gpu_metrics 1.3");
    for (int i = 0; i < 2 && !state->power; ++i)
        if (read_file(state->hwmon, power_files[i]) > 0) state->power = power_files[i];
    if (state->power) cleat_route_offer(sources, CLEAT_FIGURE_POWER, "amdgpu hwmon %s", state->power);
    if (!isnan(read_file(state->hwmon, "temp1_input")))
        cleat_route_offer(sources, CLEAT_FIGURE_TEMPERATURE, "amdgpu hwmon temp1_input");
    if (!isnan(read_file(state->hwmon, "freq1_input")))
        cleat_route_offer(sources, CLEAT_FIGURE_CLOCK, "amdgpu hwmon freq1_input");
}

static void *open_amdgpu(const cleat_route_place *place, cleat_route_sources sources) {
    if (isnan(read_file(place->folder, "mem_info_vram_total"))) return NULL; /* only amdgpu has it */
    amdgpu_state *state = cleat_alloc(1, sizeof *state);
    if (!state) return NULL;
    state->folder = place->folder;
    state->own_memory = !place->facts.unified_memory;
    if (!cleat_kernel_hwmon(place->folder, state->hwmon, sizeof state->hwmon)) state->hwmon[0] = 0;
    offer_all(state, sources);
    return state;
}

static void read_amdgpu(void *opened, double now, double values[CLEAT_ROUTE_FIGURES]) {
    const amdgpu_state *state = opened;
    (void)now;
    values[CLEAT_FIGURE_BUSY_DEVICE] = read_file(state->folder, "gpu_busy_percent") / 100;
    values[CLEAT_FIGURE_MEMORY_DEVICE] = read_file(state->folder, "mem_info_vram_used");
    values[CLEAT_FIGURE_MEMORY_DEVICE_TOTAL] = read_file(state->folder, "mem_info_vram_total");
    values[CLEAT_FIGURE_MEMORY_GTT] = read_file(state->folder, "mem_info_gtt_used");
    if (state->power) values[CLEAT_FIGURE_POWER] = read_file(state->hwmon, state->power) * 1e-6;
    values[CLEAT_FIGURE_TEMPERATURE] = read_file(state->hwmon, "temp1_input") * 1e-3;
    values[CLEAT_FIGURE_CLOCK] = read_file(state->hwmon, "freq1_input") * 1e-6;
    values[CLEAT_FIGURE_THROTTLE_REASON] = read_throttle(state);
}

const cleat_route cleat_route_amdgpu = {"amdgpu", open_amdgpu, read_amdgpu, cleat_free};
