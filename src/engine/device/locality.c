/* Locality of a device: its PCI address, and the CPUs near it that this process may use. */
#include "device/probe.h"

#include <hwloc.h>
#include <stdio.h>
#include <string.h>

/* Vendor queries; a driver that does not support one returns CL_INVALID_VALUE. */
enum {
    PCI_BUS_INFO_KHR = 0x410F, /* cl_uint domain, bus, device, function */
    TOPOLOGY_AMD = 0x4037,     /* cl_uint type (1: PCIe), then 17 unused bytes, bus, device, function */
    PCI_BUS_NV = 0x4008,
    PCI_SLOT_NV = 0x4009, /* device * 8 + function */
    PCI_DOMAIN_NV = 0x400A,
};

static bool query(cl_device_id id, cl_device_info what, void *value, size_t size) {
    return clGetDeviceInfo(id, what, size, value, NULL) == CL_SUCCESS;
}

static void set_place(cleat_device_facts *facts, cl_uint domain, cl_uint bus, cl_uint device, cl_uint function) {
    facts->pci_domain = (int32_t)domain;
    facts->pci_bus = (int32_t)bus;
    facts->pci_device = (int32_t)device;
    facts->pci_function = (int32_t)function;
}

static void read_pci(cl_device_id id, cleat_device_facts *facts) {
    cl_uint khr[4], bus = 0, slot = 0, domain = 0;
    unsigned char amd[24] = {0};
    facts->pci_bus = -1;
    /* PoCL 7.1 does not list the extension, but answers for the CPU, with zeros. */
    if (cleat_has_extension(id, "cl_khr_pci_bus_info") && query(id, PCI_BUS_INFO_KHR, khr, sizeof khr)) {
        set_place(facts, khr[0], khr[1], khr[2], khr[3]);
    } else if (query(id, PCI_BUS_NV, &bus, sizeof bus) && query(id, PCI_SLOT_NV, &slot, sizeof slot)) {
        if (!query(id, PCI_DOMAIN_NV, &domain, sizeof domain)) domain = 0;
        set_place(facts, domain, bus, slot >> 3, slot & 7);
    } else if (query(id, TOPOLOGY_AMD, amd, sizeof amd)) {
        cl_uint type;
        memcpy(&type, amd, sizeof type);
        if (type == 1) set_place(facts, 0, amd[21], amd[22], amd[23]);
    }
}

void cleat_print_cpus(hwloc_const_bitmap_t set, char text[CLEAT_CPU_LIST]) {
    int length = hwloc_bitmap_list_snprintf(text, CLEAT_CPU_LIST, set);
    if (length >= 0 && length < CLEAT_CPU_LIST) return;
    cleat_log(CLEAT_LOG_INFO, "the list of CPUs near the card is too long (%d characters): using any CPU", length);
    snprintf(text, CLEAT_CPU_LIST, "any");
}

static bool load_topology(hwloc_topology_t *topology) {
    if (hwloc_topology_init(topology) != 0) return false;
    hwloc_topology_set_type_filter(*topology, HWLOC_OBJ_PCI_DEVICE, HWLOC_TYPE_FILTER_KEEP_ALL);
    hwloc_topology_set_type_filter(*topology, HWLOC_OBJ_BRIDGE, HWLOC_TYPE_FILTER_KEEP_ALL);
    if (hwloc_topology_load(*topology) == 0) return true;
    hwloc_topology_destroy(*topology);
    return false;
}

/* Writes the CPUs that share the card's bus and on which this process may run; writes nothing if that is all
 * of them or none. */
static void name_near_cpus(hwloc_topology_t topology, cleat_device_facts *facts) {
    hwloc_obj_t card = hwloc_get_pcidev_by_busid(topology, (unsigned)facts->pci_domain, (unsigned)facts->pci_bus,
                                                 (unsigned)facts->pci_device, (unsigned)facts->pci_function);
    hwloc_obj_t nearby = card ? hwloc_get_non_io_ancestor_obj(topology, card) : NULL;
    hwloc_const_cpuset_t allowed = hwloc_topology_get_allowed_cpuset(topology);
    hwloc_cpuset_t set = nearby && nearby->cpuset ? hwloc_bitmap_dup(nearby->cpuset) : NULL;
    if (!set) return;
    hwloc_bitmap_and(set, set, allowed);
    if (!hwloc_bitmap_iszero(set) && !hwloc_bitmap_isequal(set, allowed)) cleat_print_cpus(set, facts->pinning);
    hwloc_bitmap_free(set);
}

void cleat_read_locality(cl_device_id id, cleat_device_facts *facts) {
    hwloc_topology_t topology;
    snprintf(facts->pinning, sizeof facts->pinning, "any");
    read_pci(id, facts);
    if (facts->pci_bus < 0 || !load_topology(&topology)) return;
    name_near_cpus(topology, facts);
    hwloc_topology_destroy(topology);
}
