/* Memory of this process on an AMD card, as ROCm's kernel driver counts it: /sys/class/kfd/kfd/proc/PID/vram_GPU. */
#include "core/files.h"
#include "core/memory.h"
#include "monitor/kernel_files.h"
#include "monitor/route.h"

#include <stdio.h>

enum { PATH = CLEAT_ROUTE_ROOT + 128 };

typedef struct kfd_state {
    char path[PATH];
} kfd_state;

/* Finds the driver's number of the card by its PCI address. */
static bool find_gpu(const cleat_route_place *place, double *gpu) {
    const cleat_device_facts *facts = &place->facts;
    const int location = facts->pci_bus << 8 | facts->pci_device << 3 | facts->pci_function;
    char folder[PATH], text[4096];
    cleat_name_list listing = {0};
    bool found = false;
    snprintf(folder, sizeof folder, "%s/sys/class/kfd/kfd/topology/nodes", place->root);
    if (cleat_listing_read(folder, NULL, &listing, NULL)) return false;
    for (size_t i = 0; i < listing.count && !found; ++i) {
        double here = 0, domain = 0;
        found = cleat_kernel_text(text, sizeof text, "%s/%s/properties", folder, listing.names[i]) &&
                cleat_kernel_field(text, "location_id ", &here) && here == location &&
                (!cleat_kernel_field(text, "domain ", &domain) || domain == facts->pci_domain) &&
                cleat_kernel_number(gpu, "%s/%s/gpu_id", folder, listing.names[i]) && *gpu > 0;
    }
    cleat_name_list_free(&listing);
    return found;
}

static void *open_kfd(const cleat_route_place *place, cleat_route_sources sources) {
    double gpu = 0, now = 0;
    long process = 0;
    if (!place->pci[0] || !cleat_kernel_process(place->root, &process) || !find_gpu(place, &gpu)) return NULL;
    kfd_state *state = cleat_alloc(1, sizeof *state);
    if (!state) return NULL;
    snprintf(state->path, sizeof state->path, "%s/sys/class/kfd/kfd/proc/%ld/vram_%.0f", place->root, process, gpu);
    if (!cleat_kernel_number(&now, "%s", state->path)) {
        cleat_free(state);
        return NULL;
    }
    cleat_route_offer(sources, CLEAT_FIGURE_MEMORY_OWN, "/sys/class/kfd/kfd/proc/PID/vram_%.0f", gpu);
    return state;
}

/* 0 is ignored: some kernels never count (ROCm/rocm_smi_lib#165). */
static void read_kfd(void *opened, double now, double values[CLEAT_ROUTE_FIGURES]) {
    const kfd_state *state = opened;
    double bytes = 0;
    (void)now;
    if (cleat_kernel_number(&bytes, "%s", state->path) && bytes > 0) values[CLEAT_FIGURE_MEMORY_OWN] = bytes;
}

const cleat_route cleat_route_kfd = {"kfd", open_kfd, read_kfd, cleat_free};
