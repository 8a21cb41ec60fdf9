/* Number of CPUs available to this program's threads. */
#ifndef CLEAT_SRC_CPUS_H
#define CLEAT_SRC_CPUS_H

/* CPUs that the calling thread may use, at least 1: those it may run on (taskset, a cpuset, a batch system), and at
 * most the CPU quota of its control groups, rounded up (docker --cpus). Not the number of CPUs of the machine. */
int cleat_cpus(void);
/* The same if the thread may run on `allowed` CPUs, with the control groups below `root`. For tests. */
int cleat_cpus_within(int allowed, const char *root);

#endif
