/* The CPUs of a rank: assigned along the caches of the machine (hwloc), and a limit for PoCL's threads. */
#include "ranks/cpus.h"

#include "platform/processes.h"

#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>

enum { CPUS = 64 * CLEAT_CPU_WORDS };

static bool has(const cleat_cpu_set *set, int cpu) {
    return set->words[cpu / 64] >> (cpu % 64) & 1;
}

static void add(cleat_cpu_set *set, int cpu) {
    set->words[cpu / 64] |= (uint64_t)1 << (cpu % 64);
}

int cleat_cpu_set_count(const cleat_cpu_set *set) {
    int count = 0;
    for (int w = 0; w < CLEAT_CPU_WORDS; ++w) count += __builtin_popcountll(set->words[w]);
    return count;
}

void cleat_cpu_set_allowed(cleat_cpu_set *set) {
    *set = (cleat_cpu_set){{0}};
    (void)sched_getaffinity(0, sizeof set->words, (cpu_set_t *)set->words);
}

/* Orders the CPUs of `whole` so that those of a core, a cache and a package are neighbours. */
static bool deal(hwloc_topology_t topology, const cleat_cpu_set *whole, int part, int parts, cleat_cpu_set *set) {
    const int cores = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE);
    int usable = 0, seen = 0;
    *set = (cleat_cpu_set){{0}};
    for (int pass = 0; pass < 2; ++pass)
        for (int c = 0; c < cores; ++c) {
            const hwloc_obj_t core = hwloc_get_obj_by_type(topology, HWLOC_OBJ_CORE, (unsigned)c);
            bool is_usable = false;
            for (int cpu = 0; cpu < CPUS; ++cpu)
                is_usable = is_usable || (has(whole, cpu) && hwloc_bitmap_isset(core->cpuset, (unsigned)cpu));
            if (!is_usable) continue;
            if (pass == 0) {
                ++usable;
                continue;
            }
            const int index = seen++;
            const int first = part * usable / parts, last = (part + 1) * usable / parts; /* its cores */
            const bool mine = usable >= parts ? index >= first && index < last : index == part % usable;
            for (int cpu = 0; mine && cpu < CPUS; ++cpu)
                if (has(whole, cpu) && hwloc_bitmap_isset(core->cpuset, (unsigned)cpu)) add(set, cpu);
        }
    return usable > 0 && cleat_cpu_set_count(set) > 0;
}

bool cleat_cpu_set_part(const cleat_cpu_set *whole, int part, int parts, cleat_cpu_set *set) {
    hwloc_topology_t topology;
    if (hwloc_topology_init(&topology) != 0) return false;
    bool good = hwloc_topology_load(topology) == 0;
    if (good) good = deal(topology, whole, part, parts, set);
    hwloc_topology_destroy(topology);
    return good;
}

bool cleat_cpu_set_bind(const cleat_cpu_set *set) {
    static const char *const limits[] = {"POCL_MAX_PTHREAD_COUNT", "POCL_CPU_MAX_CU_COUNT"};
    char count[16];
    const bool good = sched_setaffinity(0, sizeof set->words, (const cpu_set_t *)set->words) == 0;
    snprintf(count, sizeof count, "%d", cleat_cpu_set_count(set));
    for (size_t i = 0; good && i < sizeof limits / sizeof *limits; ++i) setenv(limits[i], count, 0);
    return good;
}

/* The first version of the kernel's struct sched_attr: glibc lacks it before 2.41, and the kernel's header
 * conflicts with sched.h. */
typedef struct scheduling {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period; /* ns */
} scheduling;

void cleat_cpu_take_short_turns(void) {
    scheduling own = {.size = sizeof own};
    if (syscall(SYS_sched_getattr, 0, &own, (unsigned)sizeof own, 0) != 0 || own.policy != SCHED_OTHER) return;
    own.runtime = 100000; /* the kernel's minimum */
    syscall(SYS_sched_setattr, 0, &own, 0);
}
