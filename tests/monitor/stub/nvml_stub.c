/* A stand-in for libnvidia-ml.so.1 with one card at 0000:0b:00.0. CLEAT_STUB_NVML selects its behaviour. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STUB __attribute__((visibility("default")))

enum { OK = 0, INVALID = 2, NOT_SUPPORTED = 3, LOST = 15, MISMATCH = 18, UNKNOWN = 999 };

static int is(const char *kind) {
    const char *now = getenv("CLEAT_STUB_NVML");
    return now && strcmp(now, kind) == 0;
}

/* "none": a card without sensors; "lost": a card that falls off the bus after it is opened. */
static int answer(void) {
    return is("none") ? NOT_SUPPORTED : is("lost") ? LOST : OK;
}

STUB int nvmlInit_v2(void);
STUB int nvmlInit_v2(void) {
    return is("mismatch") ? MISMATCH : OK;
}

STUB int nvmlShutdown(void);
STUB int nvmlShutdown(void) {
    return OK;
}

STUB int nvmlDeviceGetHandleByPciBusId_v2(const char *pci, void **card);
STUB int nvmlDeviceGetHandleByPciBusId_v2(const char *pci, void **card) {
    static int the_card;
    if (strcmp(pci, "00000000:0b:00.0") != 0) return 6;
    *card = &the_card;
    return OK;
}

STUB int nvmlDeviceGetUtilizationRates(void *card, unsigned percent[2]);
STUB int nvmlDeviceGetUtilizationRates(void *card, unsigned percent[2]) {
    (void)card;
    percent[0] = is("impossible") ? 0xffff : 93;
    percent[1] = 41;
    return answer();
}

STUB int nvmlDeviceGetMemoryInfo(void *card, unsigned long long bytes[3]);
STUB int nvmlDeviceGetMemoryInfo(void *card, unsigned long long bytes[3]) {
    (void)card;
    bytes[0] = 16000000000ULL;
    bytes[1] = 11000000000ULL;
    bytes[2] = is("impossible") ? 17000000000ULL : 5000000000ULL;
    return answer();
}

struct memory_v2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
};

STUB int nvmlDeviceGetMemoryInfo_v2(void *card, struct memory_v2 *memory);
STUB int nvmlDeviceGetMemoryInfo_v2(void *card, struct memory_v2 *memory) {
    (void)card;
    if (memory->version != (sizeof *memory | 2u << 24)) return 25;
    if (!is("good") && !is("moved")) return NOT_SUPPORTED;
    *memory = (struct memory_v2){memory->version, 16000000000ULL, 500000000ULL, 11000000000ULL, 4500000000ULL};
    return answer();
}

STUB int nvmlDeviceGetPowerUsage(void *card, unsigned *milliwatts);
STUB int nvmlDeviceGetPowerUsage(void *card, unsigned *milliwatts) {
    (void)card;
    *milliwatts = is("impossible") ? 0 : is("moved") ? 250000 : 150500;
    return answer();
}

STUB int nvmlDeviceGetTotalEnergyConsumption(void *card, unsigned long long *millijoules);
STUB int nvmlDeviceGetTotalEnergyConsumption(void *card, unsigned long long *millijoules) {
    (void)card;
    *millijoules = is("old") ? 0 : is("moved") ? 1000300500ULL : 1000000000ULL;
    return is("old") ? NOT_SUPPORTED : answer();
}

STUB int nvmlDeviceGetTemperature(void *card, int sensor, unsigned *celsius);
STUB int nvmlDeviceGetTemperature(void *card, int sensor, unsigned *celsius) {
    (void)card;
    if (sensor != 0) return INVALID;
    *celsius = is("impossible") ? 255 : 71;
    return answer();
}

STUB int nvmlDeviceGetClockInfo(void *card, int domain, unsigned *megahertz);
STUB int nvmlDeviceGetClockInfo(void *card, int domain, unsigned *megahertz) {
    (void)card;
    if (domain != 1) return INVALID;
    *megahertz = is("impossible") ? 0xffffffffu : 1590;
    return answer();
}

STUB int nvmlDeviceGetCurrentClocksThrottleReasons(void *card, unsigned long long *reasons);
STUB int nvmlDeviceGetCurrentClocksThrottleReasons(void *card, unsigned long long *reasons) {
    const char *bits = getenv("CLEAT_STUB_THROTTLE");
    (void)card;
    *reasons = bits ? strtoull(bits, NULL, 0) : 0;
    return answer();
}

struct process {
    unsigned process;
    unsigned long long memory;
    unsigned gpu_instance, compute_instance;
};

STUB int nvmlDeviceGetComputeRunningProcesses_v3(void *card, unsigned *count, struct process *processes);
STUB int nvmlDeviceGetComputeRunningProcesses_v3(void *card, unsigned *count, struct process *processes) {
    (void)card;
    if (*count < 3) return 7;
    *count = 3;
    processes[0] = (struct process){1, 77, 0, 0};
    processes[1] = (struct process){4242, is("windows") ? ~0ULL : 734003200ULL, 0, 0};
    processes[2] = (struct process){4243, 88, 0, 0};
    return answer();
}
