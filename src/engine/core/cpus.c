/* Number of CPUs that this program may use. */
#include "core/cpus.h"

#include "core/cgroup.h"
#include "core/memory.h"
#include "platform/files.h"
#include "platform/processes.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>

/* Smallest and largest number of CPUs for which an affinity mask is allocated. */
enum { FEWEST = 1024, MOST = 1 << 20 };

/* Number of CPUs in the affinity mask; 0: unknown. *too_small: the kernel's mask is larger than `room`
 * CPUs. */
static int count_allowed(int room, bool *too_small) {
    const size_t size = CPU_ALLOC_SIZE((size_t)room);
    cpu_set_t *set = cleat_alloc(1, size);
    int count = 0;
    *too_small = false;
    if (!set) return 0;
    if (sched_getaffinity(0, size, set) == 0)
        count = CPU_COUNT_S(size, set);
    else
        *too_small = errno == EINVAL;
    cleat_free(set);
    return count;
}

int cleat_cpus_within(int allowed, const char *root) {
    char source[16];
    double quota = 0.0;
    if (allowed < 1) allowed = 1;
    if (!cleat_cgroup_cpus(root, &quota, source, sizeof source) || quota > allowed - 1) return allowed;
    return quota > 1.0 ? (int)ceil(quota) : 1;
}

int cleat_cpus(void) {
    bool too_small = true;
    int count = 0;
    for (int room = FEWEST; too_small && room <= MOST; room *= 2) count = count_allowed(room, &too_small);
    if (count <= 0) count = (int)sysconf(_SC_NPROCESSORS_ONLN);
    return cleat_cpus_within(count, "");
}
