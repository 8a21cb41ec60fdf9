/* The CPUs of a rank that shares its machine with others. */
#ifndef CLEAT_SRC_RANKS_CPUS_H
#define CLEAT_SRC_RANKS_CPUS_H

#include "cleat/core.h"

enum { CLEAT_CPU_WORDS = 32 };

/* A set of CPUs: bit c % 64 of word c / 64 is CPU c. */
typedef struct cleat_cpu_set {
    uint64_t words[CLEAT_CPU_WORDS];
} cleat_cpu_set;

/* The CPUs that the calling thread may use, as far as they fit. */
void cleat_cpu_set_allowed(cleat_cpu_set *set);
/* Part `part` of `parts` (from 0) of `whole`: parts are disjoint where there are enough CPUs, follow the caches of the machine,
 * and differ by one core at most. False if the machine cannot be described. */
bool cleat_cpu_set_part(const cleat_cpu_set *whole, int part, int parts, cleat_cpu_set *set);
int cleat_cpu_set_count(const cleat_cpu_set *set);
/* Binds the calling thread, and all threads that it starts later, to `set`; says in the environment how many threads
 * PoCL may start (POCL_MAX_PTHREAD_COUNT, POCL_CPU_MAX_CU_COUNT), unless the user has. False: the system refuses. */
bool cleat_cpu_set_bind(const cleat_cpu_set *set);
/* Asks for short turns of the calling thread, which works for moments only: it is then let in when it wakes, also where kernels of a
 * CPU device keep the core busy. Linux 6.12 and later; else nothing changes. */
void cleat_cpu_take_short_turns(void);

#endif
