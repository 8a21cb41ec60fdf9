/* How many CPUs there are for this program's threads. */
#ifndef CLEAT_SRC_CPUS_H
#define CLEAT_SRC_CPUS_H

/* CPUs that the calling thread may run on, at least 1: those that taskset, a cpuset or a batch system has left it, not all of the machine's. */
int cleat_cpus(void);

#endif
