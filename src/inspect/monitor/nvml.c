/* Figures of NVIDIA's cards, from NVML. If a card or driver lacks one, the call fails and the figure stays unknown. */
#include "device/nvml.h"
#include "core/memory.h"
#include "monitor/kernel_files.h"
#include "monitor/route.h"

#include <math.h>
#include <stdlib.h>

/* NVML's numbers, and the largest number of processes that are examined. */
enum { SENSOR_GPU = 0, CLOCK_SM = 1, MAX_PROCESSES = 128 };
/* The version field of a struct: its size, and its version number in the highest byte. */
#define MEMORY_V2 (sizeof(nvml_memory_v2) | 2u << 24)
#define NOT_AVAILABLE (~0ULL)

typedef struct nvml_memory_v2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
} nvml_memory_v2;

typedef struct nvml_utilization {
    unsigned gpu, memory; /* percent */
} nvml_utilization;

typedef struct nvml_process_v1 {
    unsigned process;
    unsigned long long memory;
} nvml_process_v1;

typedef struct nvml_process {
    unsigned process;
    unsigned long long memory;
    unsigned gpu_instance, compute_instance;
} nvml_process;

typedef struct nvml_state {
    cleat_nvml nvml;
    int (*utilization)(void *card, nvml_utilization *utilization);
    int (*memory)(void *card, cleat_nvml_memory *memory);
    int (*memory_v2)(void *card, nvml_memory_v2 *memory);
    int (*power)(void *card, unsigned *milliwatts);
    int (*energy)(void *card, unsigned long long *millijoules);
    int (*temperature)(void *card, int sensor, unsigned *celsius);
    int (*clock)(void *card, int domain, unsigned *megahertz);
    int (*throttle)(void *card, unsigned long long *reasons);
    int (*processes)(void *card, unsigned *count, void *processes);
    bool processes_v1;
    long process; /* this one */
} nvml_state;

static double read_busy(const nvml_state *state) {
    nvml_utilization now = {0, 0};
    return state->utilization && state->utilization(state->nvml.card, &now) == 0 ? now.gpu / 100.0 : NAN;
}

static double read_power(const nvml_state *state) {
    unsigned now = 0;
    return state->power && state->power(state->nvml.card, &now) == 0 ? now / 1000.0 : NAN;
}

static double read_energy(const nvml_state *state) {
    unsigned long long now = 0;
    return state->energy && state->energy(state->nvml.card, &now) == 0 && now > 0 ? (double)now / 1000.0 : NAN;
}

static double read_temperature(const nvml_state *state) {
    unsigned now = 0;
    return state->temperature && state->temperature(state->nvml.card, SENSOR_GPU, &now) == 0 ? now : NAN;
}

static double read_clock(const nvml_state *state) {
    unsigned now = 0;
    return state->clock && state->clock(state->nvml.card, CLOCK_SM, &now) == 0 ? now : NAN;
}

/* Returns CLEAT_THROTTLE_ bits. An idle card and clocks set by a user do not count as throttling. */
static double read_throttle(const nvml_state *state) {
    enum { POWER_CAP = 0x4, SLOWDOWN = 0x8, SYNC = 0x10, THERMAL = 0x20, HARD_THERMAL = 0x40, POWER_BRAKE = 0x80 };
    unsigned long long now = 0;
    double bits = 0;
    if (!state->throttle || state->throttle(state->nvml.card, &now) != 0) return NAN;
    if (now & (THERMAL | HARD_THERMAL)) bits += CLEAT_THROTTLE_THERMAL;
    if (now & (POWER_CAP | POWER_BRAKE)) bits += CLEAT_THROTTLE_POWER;
    if (now & SYNC || (now & SLOWDOWN && !(now & (HARD_THERMAL | POWER_BRAKE)))) bits += CLEAT_THROTTLE_OTHER;
    return bits;
}

/* The first version counts the driver's reserved memory as used; the second, like nvidia-smi, does not. */
static bool read_memory(const nvml_state *state, double *used, double *total) {
    nvml_memory_v2 split = {.version = MEMORY_V2};
    cleat_nvml_memory memory = {0, 0, 0};
    if (state->memory_v2 && state->memory_v2(state->nvml.card, &split) == 0) {
        *used = (double)split.used;
        *total = (double)split.total;
        return true;
    }
    if (!state->memory || state->memory(state->nvml.card, &memory) != 0) return false;
    *used = (double)memory.used;
    *total = (double)memory.total;
    return true;
}

/* Not in the list: the process has no context yet. Windows does not report the memory of a process. */
static double read_own_memory(const nvml_state *state) {
    union {
        nvml_process now[MAX_PROCESSES];
        nvml_process_v1 old[MAX_PROCESSES];
        unsigned long long room[MAX_PROCESSES * 4]; /* some drivers of version 535 write 32 bytes per process */
    } list = {.room = {0}};
    unsigned count = MAX_PROCESSES;
    if (!state->processes || state->processes(state->nvml.card, &count, &list) != 0 || count > MAX_PROCESSES)
        return NAN;
    for (unsigned i = 0; i < count; ++i) {
        const long process = state->processes_v1 ? list.old[i].process : list.now[i].process;
        const unsigned long long memory = state->processes_v1 ? list.old[i].memory : list.now[i].memory;
        if (process == state->process) return memory == NOT_AVAILABLE || memory == 0 ? NAN : (double)memory;
    }
    return NAN;
}

static void find_functions(nvml_state *state) {
    const cleat_nvml *nvml = &state->nvml;
    cleat_nvml_find(nvml, "nvmlDeviceGetUtilizationRates", &state->utilization);
    cleat_nvml_find(nvml, "nvmlDeviceGetMemoryInfo", &state->memory);
    cleat_nvml_find(nvml, "nvmlDeviceGetMemoryInfo_v2", &state->memory_v2);
    cleat_nvml_find(nvml, "nvmlDeviceGetPowerUsage", &state->power);
    cleat_nvml_find(nvml, "nvmlDeviceGetTotalEnergyConsumption", &state->energy);
    cleat_nvml_find(nvml, "nvmlDeviceGetTemperature", &state->temperature);
    cleat_nvml_find(nvml, "nvmlDeviceGetClockInfo", &state->clock);
    if (!cleat_nvml_find(nvml, "nvmlDeviceGetCurrentClocksEventReasons", &state->throttle))
        cleat_nvml_find(nvml, "nvmlDeviceGetCurrentClocksThrottleReasons", &state->throttle);
    if (!cleat_nvml_find(nvml, "nvmlDeviceGetComputeRunningProcesses_v3", &state->processes) &&
        !cleat_nvml_find(nvml, "nvmlDeviceGetComputeRunningProcesses_v2", &state->processes))
        state->processes_v1 = cleat_nvml_find(nvml, "nvmlDeviceGetComputeRunningProcesses", &state->processes);
}

static void offer_all(const nvml_state *state, cleat_route_sources sources) {
    nvml_memory_v2 split = {.version = MEMORY_V2};
    double used = 0, total = 0;
    if (!isnan(read_busy(state)))
        cleat_route_offer(sources, CLEAT_FIGURE_BUSY_DEVICE, "NVML nvmlDeviceGetUtilizationRates");
    if (read_memory(state, &used, &total)) {
        const bool v2 = state->memory_v2 && state->memory_v2(state->nvml.card, &split) == 0;
        const char *name = v2 ? "NVML nvmlDeviceGetMemoryInfo_v2" : "NVML nvmlDeviceGetMemoryInfo";
        cleat_route_offer(sources, CLEAT_FIGURE_MEMORY_DEVICE, "%s", name);
        cleat_route_offer(sources, CLEAT_FIGURE_MEMORY_DEVICE_TOTAL, "%s", name);
    }
    if (state->process && state->processes)
        cleat_route_offer(sources, CLEAT_FIGURE_MEMORY_OWN, "NVML nvmlDeviceGetComputeRunningProcesses");
    if (!isnan(read_power(state))) cleat_route_offer(sources, CLEAT_FIGURE_POWER, "NVML nvmlDeviceGetPowerUsage");
    if (!isnan(read_energy(state)))
        cleat_route_offer(sources, CLEAT_FIGURE_ENERGY, "NVML nvmlDeviceGetTotalEnergyConsumption");
    if (!isnan(read_temperature(state)))
        cleat_route_offer(sources, CLEAT_FIGURE_TEMPERATURE, "NVML nvmlDeviceGetTemperature");
    if (!isnan(read_clock(state)))
        cleat_route_offer(sources, CLEAT_FIGURE_CLOCK, "NVML nvmlDeviceGetClockInfo, streaming multiprocessors");
    if (!isnan(read_throttle(state)))
        cleat_route_offer(sources, CLEAT_FIGURE_THROTTLE_REASON, "NVML nvmlDeviceGetCurrentClocksThrottleReasons");
}

static void *open_nvml(const cleat_route_place *place, cleat_route_sources sources) {
    if (place->facts.vendor != CLEAT_VENDOR_NVIDIA) return NULL;
    nvml_state *state = cleat_alloc(1, sizeof *state);
    if (!state) return NULL;
    if (!cleat_nvml_open(&state->nvml, &place->facts)) {
        cleat_free(state);
        return NULL;
    }
    find_functions(state);
    if (!cleat_kernel_process(place->root, &state->process)) state->process = 0;
    offer_all(state, sources);
    return state;
}

static void read_nvml(void *opened, double now, double values[CLEAT_ROUTE_FIGURES]) {
    const nvml_state *state = opened;
    (void)now;
    values[CLEAT_FIGURE_BUSY_DEVICE] = read_busy(state);
    read_memory(state, &values[CLEAT_FIGURE_MEMORY_DEVICE], &values[CLEAT_FIGURE_MEMORY_DEVICE_TOTAL]);
    if (state->process) values[CLEAT_FIGURE_MEMORY_OWN] = read_own_memory(state);
    values[CLEAT_FIGURE_POWER] = read_power(state);
    values[CLEAT_FIGURE_ENERGY] = read_energy(state);
    values[CLEAT_FIGURE_TEMPERATURE] = read_temperature(state);
    values[CLEAT_FIGURE_CLOCK] = read_clock(state);
    values[CLEAT_FIGURE_THROTTLE_REASON] = read_throttle(state);
}

static void close_nvml(void *opened) {
    nvml_state *state = opened;
    cleat_nvml_close(&state->nvml);
    cleat_free(state);
}

const cleat_route cleat_route_nvml = {"nvml", open_nvml, read_nvml, close_nvml};
