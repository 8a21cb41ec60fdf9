/* What a card is: finding it, its facts, and the routes by which they are known. The pure parts take their
 * sources as arguments, so that tests can hand them folders and lists of their own. */
#ifndef CLEAT_SRC_PROBE_H
#define CLEAT_SRC_PROBE_H

#include "device/device.h"

typedef struct cleat_found {
    cl_platform_id platform;
    cl_device_id id;
    cleat_device_facts facts;
} cleat_found;

/* All usable devices of all platforms, in cleat's order. The caller frees *found (cleat_free). */
cleat_status cleat_find_devices(cleat_found **found, size_t *count, cleat_error *error);

/* The index of the device `selector` means (see cleat_device_open). */
cleat_status cleat_select_device(const cleat_device_facts *const *facts, size_t count, const char *selector,
                                 size_t *index, cleat_error *error);

/* Everything but the free memory and the locality is asked of OpenCL. CLEAT_ERR_NOT_SUPPORTED: not a device
 * cleat can use. */
cleat_status cleat_read_facts(cl_platform_id platform, cl_device_id id, cleat_device_facts *facts, cleat_error *error);

/* True when `word` is one of the blank-separated words of the device's extension list. */
bool cleat_has_extension(cl_device_id id, const char *word);

/* Fills memory_free and memory_source. */
void cleat_read_free_memory(cl_device_id id, cleat_device_facts *facts);
/* Free memory of this process on the host, from files below `root` ("" outside tests): /proc/meminfo, and the
 * memory limits of its control groups. 0 where nobody tells. `source` names what decided. */
int64_t cleat_host_memory_free(const char *root, char *source, size_t size);
/* Free video memory of an amdgpu card from /sys below `root`; 0 where it is not there. */
int64_t cleat_amdgpu_memory_free(const char *root, const cleat_device_facts *facts);

/* Fills the PCI place and the CPUs near it. */
void cleat_read_locality(cl_device_id id, cleat_device_facts *facts);
struct hwloc_bitmap_s;
/* The set as a list ("0-7,16"), whole or not at all: "any" where it does not fit. `set` is hwloc's. */
void cleat_print_cpus(const struct hwloc_bitmap_s *set, char text[CLEAT_CPU_LIST]);

/* What a driver does differently. Set in quirks.c, where each has its reason. */
typedef enum cleat_quirk {
    CLEAT_QUIRK_NO_BINARY_CACHE = 1u << 0,
    CLEAT_QUIRK_HOST_MEMORY = 1u << 1,
    CLEAT_QUIRK_ONE_BUILD_THREAD = 1u << 2,
} cleat_quirk;

uint32_t cleat_device_quirks(const cleat_device_facts *facts);

/* The bytes CLEAT_DEVICE_MEMORY_LIMIT pretends the card has; 0 without it. */
int64_t cleat_device_memory_limit(void);

#endif
