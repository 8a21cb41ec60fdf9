/* Device discovery: finding devices, reading their facts, and the sources of those facts. The pure parts
 * receive their sources as arguments, so that tests can pass their own folders and lists. */
#ifndef CLEAT_SRC_PROBE_H
#define CLEAT_SRC_PROBE_H

#include "device/device.h"

typedef struct cleat_found_device {
    cl_platform_id platform;
    cl_device_id id;
    cleat_device_facts facts;
} cleat_found_device;

/* All usable devices of all platforms, in the order of cleat_device_list. The caller frees *found
 * (cleat_free). */
cleat_status cleat_find_devices(cleat_found_device **found, size_t *count, cleat_error *error);

/* Finds the index of the device that `selector` denotes (see cleat_device_open). */
cleat_status cleat_select_device(const cleat_device_facts *const *facts, size_t count, const char *selector,
                                 size_t *index, cleat_error *error);

/* Reads all facts from OpenCL except free memory and locality. CLEAT_ERR_NOT_SUPPORTED: cleat cannot use the
 * device. */
cleat_status cleat_read_facts(cl_platform_id platform, cl_device_id id, cleat_device_facts *facts, cleat_error *error);

/* True if `word` is one of the blank-separated words of the device's extension list. */
bool cleat_has_extension(cl_device_id id, const char *word);

/* Sets memory_free and memory_source. */
void cleat_read_free_memory(cl_device_id id, cleat_device_facts *facts);
/* Bytes of free video memory of an amdgpu card from /sys below `root`; 0 if unknown. */
int64_t cleat_amdgpu_memory_free(const char *root, const cleat_device_facts *facts);

/* Sets the PCI address and the CPUs near the device. */
void cleat_read_locality(cl_device_id id, cleat_device_facts *facts);
struct hwloc_bitmap_s;
/* Writes the set as a list ("0-7,16") if it fits completely, else "any". `set` belongs to hwloc. */
void cleat_print_cpus(const struct hwloc_bitmap_s *set, char text[CLEAT_CPU_LIST]);

/* Differences between drivers that cleat must handle; quirks.c sets them and gives the reason for each. */
typedef enum cleat_quirk {
    CLEAT_QUIRK_NO_BINARY_CACHE = 1u << 0,
    CLEAT_QUIRK_HOST_MEMORY = 1u << 1,
    CLEAT_QUIRK_ONE_BUILD_THREAD = 1u << 2,
} cleat_quirk;

uint32_t cleat_device_quirks(const cleat_device_facts *facts);

/* The number of bytes to which CLEAT_DEVICE_MEMORY_LIMIT restricts the device; 0 if it is not set. */
int64_t cleat_device_memory_limit(void);

#endif
