/* Free memory of a device. OpenCL has no query for it; each vendor's own interface is tried, and the result
 * names its source. */
#include "core/files.h"
#include "core/memory.h"
#include "device/probe.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* CL_DEVICE_GLOBAL_FREE_MEMORY_AMD: size_t[2] in KiB, total free memory and largest free block. */
enum { AMD_FREE_MEMORY = 0x4039, KIB = 1024, PATH = 512, LINE = 512 };

static int64_t amd_query(cl_device_id id) {
    size_t kib[2] = {0, 0};
    if (clGetDeviceInfo(id, AMD_FREE_MEMORY, sizeof kib, kib, NULL) != CL_SUCCESS) return 0;
    return (int64_t)kib[0] * KIB;
}

/* --- NVML --- */

typedef struct nvml_memory {
    unsigned long long total, free, used;
} nvml_memory;

typedef struct nvml_library {
    void *handle;
    int (*init)(void);
    int (*shutdown)(void);
    int (*by_pci)(const char *pci, void **device);
    int (*memory)(void *device, nvml_memory *memory);
} nvml_library;

/* Finds a function of a shared object. ISO C has no cast from an object pointer to a function pointer, so the
 * bytes are copied. */
static bool find_function(void *library, const char *name, void *function) {
    void *address = dlsym(library, name);
    memcpy(function, &address, sizeof address);
    return address != NULL;
}

static bool open_nvml(nvml_library *nvml) {
    nvml->handle = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!nvml->handle) return false;
    if (find_function(nvml->handle, "nvmlInit_v2", &nvml->init) &&
        find_function(nvml->handle, "nvmlShutdown", &nvml->shutdown) &&
        find_function(nvml->handle, "nvmlDeviceGetHandleByPciBusId_v2", &nvml->by_pci) &&
        find_function(nvml->handle, "nvmlDeviceGetMemoryInfo", &nvml->memory) && nvml->init() == 0)
        return true;
    dlclose(nvml->handle);
    return false;
}

static int64_t nvml_free(const cleat_device_facts *facts) {
    nvml_library nvml;
    nvml_memory memory = {0, 0, 0};
    void *device = NULL;
    char pci[64];
    if (facts->pci_bus < 0 || !open_nvml(&nvml)) return 0;
    snprintf(pci, sizeof pci, "%08x:%02x:%02x.%x", (unsigned)facts->pci_domain, (unsigned)facts->pci_bus,
             (unsigned)facts->pci_device, (unsigned)facts->pci_function);
    bool known = nvml.by_pci(pci, &device) == 0 && nvml.memory(device, &memory) == 0;
    nvml.shutdown();
    dlclose(nvml.handle);
    return known ? (int64_t)memory.free : 0;
}

/* --- files of the Linux kernel --- */

/* Reads the first number of a file; false if there is none ("max" is not a number). */
static bool read_number_file(const char *path, int64_t *number) {
    FILE *file = fopen(path, "r");
    if (!file) return false;
    bool read = fscanf(file, "%" SCNd64, number) == 1;
    fclose(file);
    return read;
}

/* Reads the number after `word` at the start of a line ("MemAvailable:   123 kB"). */
static bool read_field(const char *path, const char *word, int64_t *number) {
    char line[LINE];
    bool found = false;
    FILE *file = fopen(path, "r");
    if (!file) return false;
    while (!found && fgets(line, sizeof line, file))
        found = strncmp(line, word, strlen(word)) == 0 && sscanf(line + strlen(word), " %" SCNd64, number) == 1;
    fclose(file);
    return found;
}

int64_t cleat_amdgpu_memory_free(const char *root, const cleat_device_facts *facts) {
    char path[PATH];
    int64_t total = 0, used = 0;
    if (facts->pci_bus < 0) return 0;
    int length =
        snprintf(path, sizeof path, "%s/sys/bus/pci/devices/%04x:%02x:%02x.%x/", root, (unsigned)facts->pci_domain,
                 (unsigned)facts->pci_bus, (unsigned)facts->pci_device, (unsigned)facts->pci_function);
    if (length < 0 || (size_t)length >= sizeof path - 32) return 0;
    strcpy(path + length, "mem_info_vram_total");
    if (!read_number_file(path, &total)) return 0;
    strcpy(path + length, "mem_info_vram_used");
    if (!read_number_file(path, &used)) return 0;
    return total > used ? total - used : 0;
}

/* --- control groups --- */

typedef struct group_files {
    const char *source, *mount, *limit, *usage, *cache_field;
} group_files;

static const group_files group_v2 = {"cgroup v2", "/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file "};
static const group_files group_v1 = {"cgroup v1", "/sys/fs/cgroup/memory", "memory.limit_in_bytes",
                                     "memory.usage_in_bytes", "total_inactive_file "};

/* Free bytes under the limit of one control group; INT64_MAX if it has no limit. Cached file pages are
 * reclaimed on demand, so they count as free. */
static int64_t group_free(const char *root, const group_files *files, const char *group) {
    char path[3 * PATH];
    int64_t limit = 0, usage = 0, cache = 0;
    snprintf(path, sizeof path, "%s%s%s/%s", root, files->mount, group, files->limit);
    if (!read_number_file(path, &limit)) return INT64_MAX;
    snprintf(path, sizeof path, "%s%s%s/%s", root, files->mount, group, files->usage);
    if (!read_number_file(path, &usage)) return INT64_MAX;
    snprintf(path, sizeof path, "%s%s%s/memory.stat", root, files->mount, group);
    if (!read_field(path, files->cache_field, &cache) || cache > usage) cache = 0;
    return limit > usage - cache ? limit - (usage - cache) : 1;
}

/* The tightest limit of a group and its ancestors. Inside a container the path may be that of the host, so
 * the root of the mount is always checked as well. */
static int64_t groups_free(const char *root, const group_files *files, char *group) {
    int64_t least = group_free(root, files, "");
    while (group[0] == '/' && group[1]) {
        int64_t here = group_free(root, files, group);
        if (here < least) least = here;
        *strrchr(group, '/') = 0;
    }
    return least;
}

/* Splits a line of /proc/self/cgroup, "4:memory:/a/b" or "0::/a/b". Returns the file names of its hierarchy;
 * NULL if it does not control memory. */
static const group_files *parse_group(char *line, char **group) {
    line[strcspn(line, "\n")] = 0;
    char *controllers = strchr(line, ':');
    char *path = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!path) return NULL;
    *path = 0;
    *group = path + 1;
    if (strcmp(controllers, ":") == 0) return &group_v2;
    for (char *word = strtok(controllers + 1, ","); word; word = strtok(NULL, ","))
        if (strcmp(word, "memory") == 0) return &group_v1;
    return NULL;
}

int64_t cleat_host_memory_free(const char *root, char *source, size_t size) {
    char path[PATH], line[LINE];
    int64_t available = 0;
    snprintf(path, sizeof path, "%s/proc/meminfo", root);
    if (!read_field(path, "MemAvailable:", &available)) return 0;
    available *= KIB;
    snprintf(source, size, "/proc/meminfo");

    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) {
        char *group = NULL;
        const group_files *files = parse_group(line, &group);
        int64_t here = files ? groups_free(root, files, group) : INT64_MAX;
        if (here >= available) continue;
        available = here;
        snprintf(source, size, "%s", files->source);
    }
    if (file) fclose(file);
    return available;
}

/* --- all sources --- */

static void set_free(cleat_device_facts *facts, int64_t bytes, const char *source) {
    facts->memory_free = bytes < facts->memory_total ? bytes : facts->memory_total;
    snprintf(facts->memory_source, sizeof facts->memory_source, "%s", source);
}

void cleat_read_free_memory(cl_device_id id, cleat_device_facts *facts) {
    char source[sizeof facts->memory_source] = "";
    int64_t bytes = 0;
    facts->memory_free = 0;
    snprintf(facts->memory_source, sizeof facts->memory_source, "unknown");
    if (facts->kind != CLEAT_DEVICE_CPU) {
        if ((bytes = amd_query(id)) > 0) return set_free(facts, bytes, "AMD query");
        if (facts->vendor == CLEAT_VENDOR_NVIDIA && (bytes = nvml_free(facts)) > 0)
            return set_free(facts, bytes, "NVML");
        if (facts->vendor == CLEAT_VENDOR_AMD && (bytes = cleat_amdgpu_memory_free("", facts)) > 0)
            return set_free(facts, bytes, "sysfs");
    }
    if (facts->kind == CLEAT_DEVICE_CPU || facts->unified_memory)
        if ((bytes = cleat_host_memory_free("", source, sizeof source)) > 0) set_free(facts, bytes, source);
}
