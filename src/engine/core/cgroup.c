/* Limits of the control groups of this process. */
#include "core/cgroup.h"

#include "core/files.h"
#include "platform/files.h"
#include "platform/system.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { PATH = 4096, LINE = 4096, KIB = 1024 };
/* Version 1 represents "no limit" by a number close to the largest one. */
#define NO_LIMIT (INT64_MAX / 2)

/* --- files ---------------------------------------------------------------------------------------------------- */

int cleat_read_numbers(const char *path, int64_t numbers[2]) {
    FILE *file = fopen(path, "r");
    if (!file) return 0;
    int count = fscanf(file, "%" SCNd64 " %" SCNd64, &numbers[0], &numbers[1]);
    fclose(file);
    return count > 0 ? count : 0;
}

/* Reads the number after `word` at the start of a line ("MemAvailable:   123 kB"). */
static bool read_field(const char *path, const char *word, int64_t *number) {
    char value[64];
    return cleat_file_field(path, word, value, sizeof value) && sscanf(value, "%" SCNd64, number) == 1;
}

/* --- walking the groups --------------------------------------------------------------------------------------- */

/* Paths at which one version of control groups describes the limits of a controller. */
typedef struct hierarchy {
    int version;
    const char *controller; /* in /proc/self/cgroup; "": version 2, which has one line for all controllers */
    const char *mount;      /* below /sys/fs/cgroup */
} hierarchy;

/* Called for each group, with its folder. */
typedef void (*visitor)(const char *folder, int version, void *user);

/* Visits a group and the groups above it. Inside a container the path may be the host's, so the root of the
 * mount is always visited as well. `group` is shortened in place. */
static void visit_ancestors(const char *root, const hierarchy *of, char *group, visitor visit, void *user) {
    char folder[2 * PATH + 64];
    for (;;) {
        const bool is_root = group[0] != '/' || !group[1];
        snprintf(folder, sizeof folder, "%s/sys/fs/cgroup%s%s", root, of->mount, is_root ? "" : group);
        visit(folder, of->version, user);
        if (is_root) return;
        *strrchr(group, '/') = 0;
    }
}

/* Visits the groups of this process that `hierarchies` (up to a zero version) name. A line of /proc/self/cgroup
 * is "4:cpu,cpuacct:/a/b" or "0::/a/b". */
static void visit_groups(const char *root, const hierarchy *hierarchies, visitor visit, void *user) {
    char line[LINE];
    snprintf(line, sizeof line, "%s/proc/self/cgroup", root);
    FILE *file = fopen(line, "r");
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group) continue;
        ++controllers;
        *group++ = 0;
        for (const hierarchy *of = hierarchies; of->version; ++of) {
            char path[LINE];
            if (of->version == 2 ? *controllers != 0 : !cleat_has_word(controllers, of->controller, ',')) continue;
            snprintf(path, sizeof path, "%s", group);
            visit_ancestors(root, of, path, visit, user);
        }
    }
    if (file) fclose(file);
}

static void name_source(int version, char *source, size_t size) {
    snprintf(source, size, "cgroup v%d", version);
}

/* --- CPUs ----------------------------------------------------------------------------------------------------- */

/* Version 1 mounts both controllers in one folder, and links to it from "cpu" on most systems. */
static const hierarchy cpu_groups[] = {
    {2, "", ""}, {1, "cpu", "/cpu"}, {1, "cpu", "/cpu,cpuacct"}, {1, "cpu", "/cpuacct,cpu"}, {0, NULL, NULL}};

typedef struct cpu_quota {
    double cpus;
    int version; /* 0: none found */
    char folder[2 * PATH + 64];
} cpu_quota;

static void visit_quota(const char *folder, int version, void *user) {
    cpu_quota *quota = user;
    char path[2 * PATH + 96];
    int64_t numbers[2] = {0, 0}, period[2] = {0, 0};
    if (version == 2) {
        snprintf(path, sizeof path, "%s/cpu.max", folder);
        if (cleat_read_numbers(path, numbers) != 2) return;
    } else {
        snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder);
        if (cleat_read_numbers(path, numbers) < 1) return;
        snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
        if (cleat_read_numbers(path, period) < 1) return;
        numbers[1] = period[0];
    }
    if (numbers[0] <= 0 || numbers[1] <= 0) return; /* -1: no quota */
    const double cpus = (double)numbers[0] / (double)numbers[1];
    if (quota->version && cpus >= quota->cpus) return;
    quota->cpus = cpus;
    quota->version = version;
    snprintf(quota->folder, sizeof quota->folder, "%s", folder);
}

bool cleat_cgroup_cpus(const char *root, double *cpus, char *source, size_t size) {
    cpu_quota quota = {.version = 0};
    visit_groups(root, cpu_groups, visit_quota, &quota);
    if (!quota.version) return false;
    *cpus = quota.cpus;
    name_source(quota.version, source, size);
    return true;
}

bool cleat_cgroup_throttled(const char *root, uint64_t *periods, uint64_t *throttled) {
    cpu_quota quota = {.version = 0};
    char path[2 * PATH + 96];
    int64_t all = 0, waited = 0;
    visit_groups(root, cpu_groups, visit_quota, &quota);
    if (!quota.version) return false;
    snprintf(path, sizeof path, "%s/cpu.stat", quota.folder);
    if (!read_field(path, "nr_periods ", &all) || !read_field(path, "nr_throttled ", &waited)) return false;
    if (all < 0 || waited < 0) return false;
    *periods = (uint64_t)all;
    *throttled = (uint64_t)waited;
    return true;
}

/* --- memory --------------------------------------------------------------------------------------------------- */

static const hierarchy memory_groups[] = {{2, "", ""}, {1, "memory", "/memory"}, {0, NULL, NULL}};

typedef struct memory_limit {
    int64_t limit, used;
    int version; /* 0: none found */
} memory_limit;

static void visit_memory(const char *folder, int version, void *user) {
    memory_limit *tightest = user;
    char path[2 * PATH + 96];
    int64_t limit[2], used[2], cache = 0;
    snprintf(path, sizeof path, "%s/%s", folder, version == 2 ? "memory.max" : "memory.limit_in_bytes");
    if (cleat_read_numbers(path, limit) < 1 || limit[0] <= 0 || limit[0] >= NO_LIMIT) return;
    snprintf(path, sizeof path, "%s/%s", folder, version == 2 ? "memory.current" : "memory.usage_in_bytes");
    if (cleat_read_numbers(path, used) < 1 || used[0] < 0) return;
    snprintf(path, sizeof path, "%s/memory.stat", folder);
    if (read_field(path, version == 2 ? "inactive_file " : "total_inactive_file ", &cache) && cache > 0)
        used[0] = cache < used[0] ? used[0] - cache : 0;
    if (tightest->version && limit[0] - used[0] >= tightest->limit - tightest->used) return;
    *tightest = (memory_limit){.limit = limit[0], .used = used[0], .version = version};
}

bool cleat_cgroup_memory(const char *root, int64_t *limit, int64_t *used, char *source, size_t size) {
    memory_limit tightest = {.version = 0};
    visit_groups(root, memory_groups, visit_memory, &tightest);
    if (!tightest.version) return false;
    *limit = tightest.limit;
    *used = tightest.used;
    name_source(tightest.version, source, size);
    return true;
}

int64_t cleat_host_memory_free(const char *root, char *source, size_t size) {
    char path[PATH], group[16] = "";
    int64_t available = 0, limit = 0, used = 0;
    snprintf(path, sizeof path, "%s/proc/meminfo", root);
    if (!read_field(path, "MemAvailable:", &available) || available <= 0) return 0;
    available *= KIB;
    snprintf(source, size, "%s", cleat_system_source("/proc/meminfo"));
    if (!cleat_cgroup_memory(root, &limit, &used, group, sizeof group) || limit - used >= available) return available;
    snprintf(source, size, "%s", group);
    return limit > used ? limit - used : 1; /* 0 would mean unknown */
}
