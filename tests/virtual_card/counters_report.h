/* Counters of kernels, kept until the process ends. */
#ifndef VIRTUAL_CARD_COUNTERS_REPORT_H
#define VIRTUAL_CARD_COUNTERS_REPORT_H

#include "ptx.h"

/* A finished launch. */
typedef struct vc_counted {
    const char *kernel, *options, *ptx; /* name; build options and assembly of its program */
    uint32_t work_items;                /* per work-group */
    double seconds;
} vc_counted;

/* Adds the counters of a launch to those of its kernel, identified by name and build options. */
void vc_count(const vc_counted *launch, const ptx_counters *counters);

#endif
