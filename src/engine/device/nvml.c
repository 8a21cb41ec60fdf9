/* NVML, NVIDIA's management library: loaded at run time, since only its driver brings it. */
#include "device/nvml.h"

#include "platform/system.h"

#include <stdio.h>
#include <string.h>

/* ISO C has no cast from an object pointer to a function pointer, so the bytes are copied. */
bool cleat_nvml_find(const cleat_nvml *nvml, const char *name, void *function) {
    void *address = dlsym(nvml->library, name);
    memcpy(function, &address, sizeof address);
    return address != NULL;
}

static bool find_card(cleat_nvml *nvml, const cleat_device_facts *facts) {
    int (*by_pci)(const char *pci, void **card) = NULL;
    char pci[64];
    snprintf(pci, sizeof pci, "%08x:%02x:%02x.%x", (unsigned)facts->pci_domain, (unsigned)facts->pci_bus,
             (unsigned)facts->pci_device, (unsigned)facts->pci_function);
    return cleat_nvml_find(nvml, "nvmlDeviceGetHandleByPciBusId_v2", &by_pci) && by_pci(pci, &nvml->card) == 0;
}

bool cleat_nvml_open(cleat_nvml *nvml, const cleat_device_facts *facts) {
    int (*init)(void) = NULL;
    cleat_nvml made = {0};
    if (facts->pci_bus < 0) return false;
    made.library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!made.library) return false;
    if (!cleat_nvml_find(&made, "nvmlInit_v2", &init) || !cleat_nvml_find(&made, "nvmlShutdown", &made.shutdown) ||
        init() != 0) {
        dlclose(made.library);
        return false;
    }
    if (!find_card(&made, facts)) {
        cleat_nvml_close(&made);
        return false;
    }
    *nvml = made;
    return true;
}

void cleat_nvml_close(cleat_nvml *nvml) {
    nvml->shutdown();
    dlclose(nvml->library);
}
