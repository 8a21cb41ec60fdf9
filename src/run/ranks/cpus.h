/* The CPUs of a rank that shares its machine with others. */
#ifndef CLEAT_SRC_RANKS_CPUS_H
#define CLEAT_SRC_RANKS_CPUS_H

#include "cleat/core.h"

enum { CLEAT_CPU_WORDS = 32 };

/* A set of CPUs: bit c % 64 of word c / 64 is CPU c, as in the masks of the system. */
typedef struct cleat_cpu_set {
    uint64_t words[CLEAT_CPU_WORDS];
} cleat_cpu_set;

/* The CPUs that the calling thread may use, as far as they fit. */
void cleat_cpu_set_allowed(cleat_cpu_set *set);
/* Part `part` (from 0) of the `parts` parts of `whole`. Parts are disjoint if there are enough CPUs,
 * follow the caches of the machine, and differ by at most one core. False if hwloc cannot describe the
 * machine. */
bool cleat_cpu_set_part(const cleat_cpu_set *whole, int part, int parts, cleat_cpu_set *set);
int cleat_cpu_set_count(const cleat_cpu_set *set);
/* Binds the calling thread, and all threads that it starts later, to `set`; limits PoCL's threads by
 * environment variables (POCL_MAX_PTHREAD_COUNT, POCL_CPU_MAX_CU_COUNT) that the user has not set. False:
 * the system refuses. */
bool cleat_cpu_set_bind(const cleat_cpu_set *set);
/* Requests short time slices for the calling thread, which runs only briefly: it is then scheduled as soon
 * as it wakes, even if kernels of a CPU device keep the core busy. No effect before Linux 6.12. */
void cleat_cpu_take_short_turns(void);

#endif
