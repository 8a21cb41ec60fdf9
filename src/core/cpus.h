/* Number of CPUs available to this program's threads. */
#ifndef CLEAT_SRC_CPUS_H
#define CLEAT_SRC_CPUS_H

/* CPUs that the calling thread may run on, at least 1. This is what taskset, a cpuset or a batch system
 * grants, not the number of CPUs of the machine. */
int cleat_cpus(void);

#endif
