/* The driver for CPUs that some archives of cleat bring along: PoCL in lib/cleat. */
#ifndef CLEAT_SRC_CPU_DRIVER_H
#define CLEAT_SRC_CPU_DRIVER_H

/* Makes the OpenCL loader use the CPU driver beside this library or program: lib/cleat/cpu_driver. Does
 * nothing if there is none, if a driver is installed (a file in /etc/OpenCL/vendors), or if the environment
 * selects one. It sets OCL_ICD_VENDORS, and POCL_CACHE_DIR if the user's cache folder cannot be written; it
 * must come before the first OpenCL call of the process. Threads: one. */
void cleat_use_own_cpu_driver(void);

#endif
