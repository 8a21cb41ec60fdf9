/* The host's figures, from getrusage, /proc, /sys and control groups. On a CPU device they are the device's as well. */
#include "core/cgroup.h"
#include "core/cpus.h"
#include "core/files.h"
#include "core/memory.h"
#include "monitor/kernel_files.h"
#include "monitor/route.h"
#include "platform/files.h"
#include "platform/processes.h"
#include "platform/system.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CPUS = 4096, MAX_PACKAGES = 8, LINE = 1024, STATUS = 8192, PATH = CLEAT_ROUTE_ROOT + 128 };
#define KIB 1024.0

/* An energy counter of a processor, which starts again at zero after `range` microjoules. */
typedef struct rapl_package {
    int number;
    double range, last, joules;
} rapl_package;

typedef struct host_state {
    const cleat_route_place *place;
    double time, cpus;                    /* of the previous read; CPUs that this process may use */
    cleat_kernel_counter own;             /* CPU seconds */
    cleat_kernel_counter busy, all;       /* clock ticks of the allowed CPUs, of all processes */
    cleat_kernel_counter periods, waited; /* of the CPU quota */
    cleat_kernel_counter hot;             /* thermal throttling of the first package */
    bool allowed[MAX_CPUS];
    bool group_memory; /* the control group allows less than the host has */
    char temperature[PATH];
    rapl_package packages[MAX_PACKAGES];
    size_t package_count;
} host_state;

static double own_seconds(void) {
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) != 0) return NAN;
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/* Reads "0-3,8" into allowed[]. */
static void parse_cpus(const char *list, bool allowed[MAX_CPUS]) {
    int first = 0, last = 0, used = 0;
    while (sscanf(list, "%d%n", &first, &used) == 1) {
        list += used;
        last = first;
        if (sscanf(list, "-%d%n", &last, &used) == 1) list += used;
        for (int cpu = first; cpu <= last && cpu >= 0 && cpu < MAX_CPUS; ++cpu) allowed[cpu] = true;
        if (*list++ != ',') return;
    }
}

/* Ticks of the allowed CPUs from the lines "cpu3 user nice system idle iowait irq softirq ..." of /proc/stat. */
static bool read_ticks(const host_state *host, double *busy, double *all) {
    char line[LINE];
    bool any = false;
    snprintf(line, sizeof line, "%s/proc/stat", host->place->root);
    FILE *file = fopen(line, "r");
    if (!file) return false;
    *busy = *all = 0;
    while (fgets(line, sizeof line, file) && strncmp(line, "cpu", 3) == 0) {
        double user, nice, system, idle, wait, irq, soft;
        int cpu;
        if (sscanf(line, "cpu%d %lf %lf %lf %lf %lf %lf %lf", &cpu, &user, &nice, &system, &idle, &wait, &irq, &soft) !=
                8 ||
            cpu < 0 || cpu >= MAX_CPUS || !host->allowed[cpu])
            continue;
        *busy += user + nice + system + irq + soft;
        *all += user + nice + system + irq + soft + idle + wait;
        any = true;
    }
    fclose(file);
    return any && *all > 0; /* sandboxes show a file of zeros */
}

static void read_cpu_time(host_state *host, double now, double values[CLEAT_ROUTE_FIGURES]) {
    const double seconds = now - host->time;
    const double own = cleat_kernel_growth(&host->own, own_seconds());
    uint64_t periods = 0, waited = 0;
    double busy = 0, all = 0;
    host->time = now;
    if (seconds > 0) {
        values[CLEAT_FIGURE_HOST_CPU] = own / seconds;
        /* The clocks of the two tick differently: a little more than all of the CPUs is all of them. */
        const double share = own / seconds / host->cpus;
        values[CLEAT_FIGURE_BUSY_OWN] = share > 1 && share < 1.1 ? 1 : share;
    }
    if (read_ticks(host, &busy, &all)) {
        const double more = cleat_kernel_growth(&host->busy, busy), of = cleat_kernel_growth(&host->all, all);
        if (of > 0) values[CLEAT_FIGURE_BUSY_DEVICE] = more / of;
    }
    if (cleat_cgroup_throttled(host->place->root, &periods, &waited)) {
        const double more = cleat_kernel_growth(&host->waited, (double)waited);
        const double of = cleat_kernel_growth(&host->periods, (double)periods);
        if (of > 0) values[CLEAT_FIGURE_CPU_QUOTA_THROTTLED] = more / of;
    }
}

static void open_cpu_time(host_state *host, cleat_route_sources sources) {
    const char *root = host->place->root;
    const bool is_device = host->place->facts.kind == CLEAT_DEVICE_CPU;
    char status[STATUS], group[32] = "";
    double busy, all, quota = 0;
    uint64_t periods, waited;
    host->cpus = cleat_cpus();
    const bool limited = cleat_cgroup_cpus(root, &quota, group, sizeof group) && quota <= host->cpus;
    if (limited) host->cpus = quota;
    cleat_route_offer(sources, CLEAT_FIGURE_HOST_CPU, "getrusage");
    if (cleat_cgroup_throttled(root, &periods, &waited))
        cleat_route_offer(sources, CLEAT_FIGURE_CPU_QUOTA_THROTTLED, "cpu.stat of the control group");
    if (!is_device) return;
    cleat_route_offer(sources, CLEAT_FIGURE_BUSY_OWN, "getrusage / %.6g CPUs (%s)", host->cpus,
                      limited ? group : "affinity mask");
    if (!cleat_kernel_text(status, sizeof status, "%s/proc/self/status", root)) return;
    const char *list = strstr(status, "\nCpus_allowed_list:");
    if (list) parse_cpus(list + strlen("\nCpus_allowed_list:"), host->allowed);
    if (read_ticks(host, &busy, &all))
        cleat_route_offer(sources, CLEAT_FIGURE_BUSY_DEVICE, "/proc/stat, the CPUs of the affinity mask");
}

/* Whether host memory is the device's. */
static bool is_host_memory(const cleat_route_place *place) {
    return place->facts.kind == CLEAT_DEVICE_CPU || place->facts.unified_memory;
}

static void read_device_memory(const host_state *host, const char *meminfo, double values[CLEAT_ROUTE_FIGURES]) {
    char group[32];
    int64_t limit = 0, used = 0;
    double total = 0, available = 0;
    if (host->group_memory) {
        if (!cleat_cgroup_memory(host->place->root, &limit, &used, group, sizeof group)) return;
        values[CLEAT_FIGURE_MEMORY_DEVICE] = (double)used;
        values[CLEAT_FIGURE_MEMORY_DEVICE_TOTAL] = (double)limit;
        return;
    }
    if (!cleat_kernel_field(meminfo, "MemTotal:", &total)) return;
    values[CLEAT_FIGURE_MEMORY_DEVICE_TOTAL] = total * KIB;
    if (cleat_kernel_field(meminfo, "MemAvailable:", &available))
        values[CLEAT_FIGURE_MEMORY_DEVICE] = (total - available) * KIB;
}

static void read_memory(host_state *host, double values[CLEAT_ROUTE_FIGURES]) {
    const char *root = host->place->root;
    char text[STATUS], source[64];
    int64_t limit = 0, used = 0;
    double kib = 0;
    if (cleat_kernel_text(text, sizeof text, "%s/proc/self/status", root) && cleat_kernel_field(text, "VmRSS:", &kib))
        values[CLEAT_FIGURE_HOST_MEMORY] = values[CLEAT_FIGURE_MEMORY_OWN] = kib * KIB;
    const int64_t available = cleat_host_memory_free(root, source, sizeof source);
    if (available > 0) values[CLEAT_FIGURE_HOST_MEMORY_AVAILABLE] = (double)available;
    if (cleat_cgroup_memory(root, &limit, &used, source, sizeof source))
        values[CLEAT_FIGURE_HOST_MEMORY_LIMIT] = (double)limit;
    if (is_host_memory(host->place) && cleat_kernel_text(text, sizeof text, "%s/proc/meminfo", root))
        read_device_memory(host, text, values);
}

static void open_memory(host_state *host, cleat_route_sources sources) {
    const char *root = host->place->root, *memory = cleat_system_source("/proc/meminfo");
    const char *process = cleat_system_source("/proc/self/status");
    char text[STATUS] = "", source[64] = "";
    int64_t limit = 0, used = 0;
    double kib = 0;
    if (cleat_kernel_text(text, sizeof text, "%s/proc/self/status", root) && cleat_kernel_field(text, "VmRSS:", &kib)) {
        cleat_route_offer(sources, CLEAT_FIGURE_HOST_MEMORY, "resident memory, %s", process);
        if (host->place->facts.kind == CLEAT_DEVICE_CPU)
            cleat_route_offer(sources, CLEAT_FIGURE_MEMORY_OWN, "resident memory, %s", process);
    }
    if (cleat_host_memory_free(root, source, sizeof source) > 0)
        cleat_route_offer(sources, CLEAT_FIGURE_HOST_MEMORY_AVAILABLE, "%s", source);
    const bool limited = cleat_cgroup_memory(root, &limit, &used, source, sizeof source);
    if (limited) cleat_route_offer(sources, CLEAT_FIGURE_HOST_MEMORY_LIMIT, "memory limit, %s", source);
    if (!is_host_memory(host->place)) return;
    if (!cleat_kernel_text(text, sizeof text, "%s/proc/meminfo", root) || !cleat_kernel_field(text, "MemTotal:", &kib))
        return;
    host->group_memory = limited && (double)limit < kib * KIB;
    if (host->group_memory) {
        cleat_route_offer(sources, CLEAT_FIGURE_MEMORY_DEVICE, "memory in use, %s", source);
        cleat_route_offer(sources, CLEAT_FIGURE_MEMORY_DEVICE_TOTAL, "memory limit, %s", source);
        return;
    }
    cleat_route_offer(sources, CLEAT_FIGURE_MEMORY_DEVICE_TOTAL, "total memory, %s", memory);
    if (cleat_kernel_field(text, "MemAvailable:", &kib))
        cleat_route_offer(sources, CLEAT_FIGURE_MEMORY_DEVICE, "total - available memory, %s", memory);
}

#define RAPL "%s/sys/class/powercap/intel-rapl:%d/"

/* Energy of all packages in joules. */
static void read_energy(host_state *host, double values[CLEAT_ROUTE_FIGURES]) {
    double sum = 0;
    for (size_t i = 0; i < host->package_count; ++i) {
        rapl_package *package = &host->packages[i];
        double now = 0;
        if (!cleat_kernel_number(&now, RAPL "energy_uj", host->place->root, package->number)) return;
        package->joules += 1e-6 * (now >= package->last ? now - package->last : now + package->range - package->last);
        package->last = now;
        sum += package->joules;
    }
    if (host->package_count) values[CLEAT_FIGURE_ENERGY] = sum;
}

/* The counters are readable by root only on most systems. */
static void open_energy(host_state *host, cleat_route_sources sources) {
    const char *root = host->place->root;
    char name[64];
    for (int i = 0; i < MAX_PACKAGES; ++i) {
        rapl_package *package = &host->packages[host->package_count];
        if (!cleat_kernel_text(name, sizeof name, RAPL "name", root, i) || strncmp(name, "package", 7) != 0) continue;
        if (!cleat_kernel_number(&package->range, RAPL "max_energy_range_uj", root, i) ||
            !cleat_kernel_number(&package->last, RAPL "energy_uj", root, i)) {
            host->package_count = 0; /* a sum over some of the processors would be wrong */
            return;
        }
        package->number = i;
        ++host->package_count;
    }
    if (host->package_count)
        cleat_route_offer(sources, CLEAT_FIGURE_ENERGY, "energy_uj of /sys/class/powercap/intel-rapl:*, %zu processors",
                          host->package_count);
}

static void open_temperature(host_state *host, cleat_route_sources sources) {
    cleat_name_list listing = {0};
    char folder[PATH], name[64];
    snprintf(folder, sizeof folder, "%s/sys/class/hwmon", host->place->root);
    if (cleat_listing_read(folder, NULL, &listing, NULL)) return;
    for (size_t i = 0; i < listing.count && !host->temperature[0]; ++i) {
        if (!cleat_kernel_text(name, sizeof name, "%s/%s/name", folder, listing.names[i])) continue;
        name[strcspn(name, "\n")] = 0;
        if (!cleat_has_word("coretemp k10temp zenpower cpu_thermal", name, ' ')) continue;
        snprintf(host->temperature, sizeof host->temperature, "%.320s/%.40s/temp1_input", folder, listing.names[i]);
        cleat_route_offer(sources, CLEAT_FIGURE_TEMPERATURE, "hwmon %s temp1_input", name);
    }
    cleat_name_list_free(&listing);
}

#define THROTTLE_COUNT "/sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_count"

static void read_sensors(host_state *host, double values[CLEAT_ROUTE_FIGURES]) {
    double number = 0;
    read_energy(host, values);
    if (host->temperature[0] && cleat_kernel_number(&number, "%s", host->temperature))
        values[CLEAT_FIGURE_TEMPERATURE] = number / 1000;
    if (!cleat_kernel_number(&number, "%s" THROTTLE_COUNT, host->place->root)) return;
    const double more = cleat_kernel_growth(&host->hot, number);
    if (!isnan(more)) values[CLEAT_FIGURE_THROTTLE_REASON] = more > 0 ? CLEAT_THROTTLE_THERMAL : 0;
}

static void open_sensors(host_state *host, cleat_route_sources sources) {
    double number = 0;
    open_energy(host, sources);
    open_temperature(host, sources);
    if (cleat_kernel_number(&number, "%s" THROTTLE_COUNT, host->place->root))
        cleat_route_offer(sources, CLEAT_FIGURE_THROTTLE_REASON, THROTTLE_COUNT);
}

static void *open_host(const cleat_route_place *place, cleat_route_sources sources) {
    host_state *made = cleat_alloc(1, sizeof *made);
    if (!made) return NULL;
    made->place = place;
    open_cpu_time(made, sources);
    open_memory(made, sources);
    if (place->facts.kind == CLEAT_DEVICE_CPU) open_sensors(made, sources);
    return made;
}

static void read_host(void *state, double now, double values[CLEAT_ROUTE_FIGURES]) {
    read_cpu_time(state, now, values);
    read_memory(state, values);
    read_sensors(state, values);
}

const cleat_route cleat_route_host = {"host", open_host, read_host, cleat_free};
