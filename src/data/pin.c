/* CPU affinity of threads, through hwloc.
 *
 * A thread is bound to the whole set of CPUs near the device, not to a single one: a thread bound to one CPU
 * stalls whenever a compute thread (PoCL's, or the caller's) occupies that CPU. */
#include "data/pin.h"

#include "core/memory.h"

#include <hwloc.h>
#include <string.h>

struct cleat_pinning {
    hwloc_topology_t topology;
    hwloc_cpuset_t set;
    char list[256];
};

/* Restricts `set` to the CPUs of the list, if they intersect. */
static void restrict_to_list(hwloc_cpuset_t set, const char *nearby) {
    hwloc_bitmap_t wanted = hwloc_bitmap_alloc();
    if (wanted && hwloc_bitmap_list_sscanf(wanted, nearby) == 0 && hwloc_bitmap_intersects(wanted, set))
        hwloc_bitmap_and(set, set, wanted);
    else
        cleat_log(CLEAT_LOG_WARNING,
                  "loader: none of the CPUs '%.64s' is allowed to this process; using all allowed CPUs", nearby);
    hwloc_bitmap_free(wanted);
}

cleat_status cleat_pinning_create(const char *nearby, cleat_pinning **pinning, cleat_error *error) {
    cleat_pinning *made = cleat_alloc(1, sizeof *made);
    hwloc_cpuset_t affinity = hwloc_bitmap_alloc();
    cleat_status status = CLEAT_OK;
    if (!made || !affinity || hwloc_topology_init(&made->topology) != 0) {
        status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the list of CPUs");
        goto done;
    }
    /* CPUs only, without caches, groups and devices; loading then takes a few milliseconds. */
    hwloc_topology_set_all_types_filter(made->topology, HWLOC_TYPE_FILTER_KEEP_NONE);
    if (hwloc_topology_load(made->topology) != 0) {
        status = cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED, "hwloc cannot read the machine's topology");
        goto done;
    }
    made->set = hwloc_bitmap_dup(hwloc_topology_get_allowed_cpuset(made->topology));
    if (!made->set) {
        status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the list of CPUs");
        goto done;
    }
    if ((hwloc_get_cpubind(made->topology, affinity, HWLOC_CPUBIND_THREAD) == 0 ||
         hwloc_get_cpubind(made->topology, affinity, HWLOC_CPUBIND_PROCESS) == 0) && /* all that Windows tells */
        hwloc_bitmap_intersects(affinity, made->set))
        hwloc_bitmap_and(made->set, made->set, affinity);
    if (nearby && *nearby && strcmp(nearby, "any") != 0) restrict_to_list(made->set, nearby);
    hwloc_bitmap_list_snprintf(made->list, sizeof made->list, made->set);
    *pinning = made;
    made = NULL;
done:
    hwloc_bitmap_free(affinity);
    cleat_pinning_destroy(made);
    return status;
}

void cleat_pinning_destroy(cleat_pinning *pinning) {
    if (!pinning) return;
    hwloc_bitmap_free(pinning->set);
    if (pinning->topology) hwloc_topology_destroy(pinning->topology);
    cleat_free(pinning);
}

bool cleat_pinning_apply(const cleat_pinning *pinning) {
    return hwloc_set_cpubind(pinning->topology, pinning->set, HWLOC_CPUBIND_THREAD) == 0;
}

const char *cleat_pinning_list(const cleat_pinning *pinning) {
    return pinning->list;
}
