/* NVML, NVIDIA's management library: loaded at run time, since only its driver brings it. */
#ifndef CLEAT_SRC_NVML_H
#define CLEAT_SRC_NVML_H

#include "cleat/device.h"

typedef struct cleat_nvml {
    void *library;
    void *card; /* its handle of the device */
    int (*shutdown)(void);
} cleat_nvml;

typedef struct cleat_nvml_memory {
    unsigned long long total, free, used;
} cleat_nvml_memory;

/* Loads the library and finds the device by its PCI address. False: no library, no such card, or the library does
 * not fit the driver, as after an update and in containers. On success the caller closes it. */
bool cleat_nvml_open(cleat_nvml *nvml, const cleat_device_facts *facts);
/* Sets *function, a pointer to a function, to the function `name`; NULL and false if the library has none. */
bool cleat_nvml_find(const cleat_nvml *nvml, const char *name, void *function);
void cleat_nvml_close(cleat_nvml *nvml);

#endif
