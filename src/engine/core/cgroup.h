/* Limits of the control groups of this process (containers, batch systems, systemd), and the host memory
 * available within them. */
#ifndef CLEAT_SRC_CGROUP_H
#define CLEAT_SRC_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads up to two numbers from the start of a file; returns how many there are ("max" is none). */
int cleat_read_numbers(const char *path, int64_t numbers[2]);

/* All others read files below `root` ("" outside tests): /proc/self/cgroup and /sys/fs/cgroup, version 1 and 2.
 * A group obeys the limits of the groups above it as well, so the tightest one counts. Outputs are written only on
 * success; `source` [size] becomes "cgroup v1" or "cgroup v2". Callable from any thread; no memory is allocated. */

/* CPU time that may be used, in CPUs (quota / period; 1.5 is possible). False: there is no quota. */
bool cleat_cgroup_cpus(const char *root, double *cpus, char *source, size_t size);
/* Bytes of the memory limit that leaves the least free, and bytes in use below it. Cached file pages are reclaimed
 * on demand, so they do not count as used. False: there is no limit. */
bool cleat_cgroup_memory(const char *root, int64_t *limit, int64_t *used, char *source, size_t size);
/* Periods of the tightest CPU quota so far, and those in which the quota was used up and threads had to wait.
 * False: there is no quota, or it is not counted. */
bool cleat_cgroup_throttled(const char *root, uint64_t *periods, uint64_t *throttled);

/* Bytes of host memory that are free for this process: the smaller of MemAvailable in /proc/meminfo and the
 * rest of the memory limit. 0 if unknown. `source` names what determined the result. */
int64_t cleat_host_memory_free(const char *root, char *source, size_t size);

#endif
