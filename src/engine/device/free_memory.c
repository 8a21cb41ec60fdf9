/* Free memory of a device. OpenCL has no query for it; each vendor's own interface is tried, and the result
 * names its source. */
#include "core/cgroup.h"
#include "core/memory.h"
#include "device/nvml.h"
#include "device/probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* CL_DEVICE_GLOBAL_FREE_MEMORY_AMD: size_t[2] in KiB, total free memory and largest free block. */
enum { AMD_FREE_MEMORY = 0x4039, KIB = 1024, PATH = 512 };

static int64_t amd_query(cl_device_id id) {
    size_t kib[2] = {0, 0};
    if (clGetDeviceInfo(id, AMD_FREE_MEMORY, sizeof kib, kib, NULL) != CL_SUCCESS) return 0;
    return (int64_t)kib[0] * KIB;
}

static int64_t nvml_free(const cleat_device_facts *facts) {
    cleat_nvml nvml;
    cleat_nvml_memory memory = {0, 0, 0};
    int (*read_memory)(void *card, cleat_nvml_memory *memory) = NULL;
    if (!cleat_nvml_open(&nvml, facts)) return 0;
    bool known =
        cleat_nvml_find(&nvml, "nvmlDeviceGetMemoryInfo", &read_memory) && read_memory(nvml.card, &memory) == 0;
    cleat_nvml_close(&nvml);
    return known ? (int64_t)memory.free : 0;
}

/* --- files of the Linux kernel --- */

int64_t cleat_amdgpu_memory_free(const char *root, const cleat_device_facts *facts) {
    char path[PATH];
    int64_t total[2], used[2];
    if (facts->pci_bus < 0) return 0;
    int length =
        snprintf(path, sizeof path, "%s/sys/bus/pci/devices/%04x:%02x:%02x.%x/", root, (unsigned)facts->pci_domain,
                 (unsigned)facts->pci_bus, (unsigned)facts->pci_device, (unsigned)facts->pci_function);
    if (length < 0 || (size_t)length >= sizeof path - 32) return 0;
    strcpy(path + length, "mem_info_vram_total");
    if (cleat_read_numbers(path, total) < 1) return 0;
    strcpy(path + length, "mem_info_vram_used");
    if (cleat_read_numbers(path, used) < 1) return 0;
    return total[0] > used[0] ? total[0] - used[0] : 0;
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
