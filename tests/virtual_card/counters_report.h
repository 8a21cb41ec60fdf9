/* What kernels issued, kept until the process ends. */
#ifndef VIRTUAL_CARD_COUNTERS_REPORT_H
#define VIRTUAL_CARD_COUNTERS_REPORT_H

#include "ptx.h"

/* A launch that is over. */
typedef struct vc_counted {
    const char *kernel, *options, *ptx; /* name, build options and PTX of its program */
    uint32_t work_items;                /* of a work-group */
    double seconds;
} vc_counted;

/* Adds the counters of a launch to those of its kernel, which name and build options tell apart. */
void vc_count(const vc_counted *launch, const ptx_counters *counters);

#endif
