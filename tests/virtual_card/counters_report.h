/* What kernels issued, kept until the process ends. */
#ifndef VIRTUAL_CARD_COUNTERS_REPORT_H
#define VIRTUAL_CARD_COUNTERS_REPORT_H

#include "ptx.h"

/* Adds the counters of a launch to those of its kernel, which name and build options tell apart. */
void vc_count(const char *kernel, const char *options, const ptx_counters *counters, double seconds);

#endif
