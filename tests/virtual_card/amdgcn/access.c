/* Memory accesses of a wave: locates, checks and counts the bytes of each lane. */
#include "access.h"

#include "../access.h"

#include <inttypes.h>

static bool in_range(const ptx_range *range, uint64_t address, uint32_t bytes) {
    return address >= range->begin && address <= range->end && range->end - address >= bytes;
}

/* Memory that the driver adds to the buffers: arguments, dispatch packet, program constants. */
static bool is_of_driver(const gcn_group *group, uint64_t address, uint32_t bytes) {
    const gcn_module *module = group->kernel->module;
    const struct {
        const void *at;
        size_t bytes;
    } own[] = {{group->kernarg, group->kernarg_bytes},
               {group->packet, sizeof group->packet},
               {module->data, module->data_bytes}};
    for (size_t i = 0; i < sizeof own / sizeof *own; ++i) {
        const uint64_t begin = (uint64_t)(uintptr_t)own[i].at;
        const ptx_range range = {begin, begin + own[i].bytes, true};
        if (in_range(&range, address, bytes)) return true;
    }
    return false;
}

static bool is_inside(gcn_group *group, uint64_t address, uint32_t bytes, bool write, bool *read_only) {
    *read_only = false;
    if (in_range(&group->range, address, bytes) && !(write && group->range.read_only)) return true;
    for (size_t i = 0; i < group->launch->n_ranges; ++i) {
        const ptx_range *range = &group->launch->ranges[i];
        if (!in_range(range, address, bytes)) continue;
        if (write && range->read_only) {
            *read_only = true;
            continue; /* a buffer may be bound twice */
        }
        group->range = *range;
        return true;
    }
    if (!is_of_driver(group, address, bytes)) return false;
    *read_only |= write;
    return !write;
}

static const char *name_of(gcn_use use) {
    return use == GCN_LOAD ? "read" : use == GCN_STORE ? "write" : "atomic access";
}

/* The card reads and writes vectors at any address; only atomic operations require alignment. */
static bool is_aligned(gcn_wave *wave, uint64_t address, uint32_t bytes, gcn_use use, int lane) {
    if (use != GCN_ATOMIC || (address & (bytes - 1)) == 0) return true;
    gcn_report(wave, GCN_FAULT_ALIGNMENT, "misaligned atomic access of %u bytes at 0x%" PRIx64 " by work-item %u",
               bytes, address, wave->first + (uint32_t)lane);
    return false;
}

static unsigned char *locate_global(gcn_wave *wave, uint64_t address, uint32_t bytes, gcn_use use, int lane) {
    bool read_only;
    if (is_inside(wave->group, address, bytes, use != GCN_LOAD, &read_only))
        return is_aligned(wave, address, bytes, use, lane) ? (unsigned char *)(uintptr_t)address : NULL;
    gcn_report(wave, read_only ? GCN_FAULT_READ_ONLY : GCN_FAULT_RANGE,
               "%s of %u bytes %s, at 0x%" PRIx64 " by work-item %u", name_of(use), bytes,
               read_only ? "in memory that is only read" : "outside the memory of the launch", address,
               wave->first + (uint32_t)lane);
    return NULL;
}

static unsigned char *locate_lds(gcn_wave *wave, uint64_t offset, uint32_t bytes, gcn_use use, int lane) {
    gcn_group *group = wave->group;
    if (offset > group->lds_bytes || group->lds_bytes - offset < bytes) {
        gcn_report(wave, GCN_FAULT_RANGE, "%s of %u bytes at offset %" PRIu64 " of %u bytes of LDS by work-item %u",
                   name_of(use), bytes, offset, group->lds_bytes, wave->first + (uint32_t)lane);
        return NULL;
    }
    if (!is_aligned(wave, offset, bytes, use, lane)) return NULL;
    if (group->cells) gcn_record(wave, (uint32_t)offset, bytes, lane, use);
    return group->lds + offset;
}

static unsigned char *locate_scratch(gcn_wave *wave, uint64_t offset, uint32_t bytes, gcn_use use, int lane) {
    const uint32_t size = wave->group->kernel->scratch_bytes;
    if (offset <= size && size - offset >= bytes) return wave->scratch + (size_t)lane * size + offset;
    gcn_report(wave, GCN_FAULT_RANGE, "%s of %u bytes at offset %" PRIu64 " of %u bytes of scratch by work-item %u",
               name_of(use), bytes, offset, size, wave->first + (uint32_t)lane);
    return NULL;
}

static unsigned char *locate_lane(gcn_wave *wave, gcn_space space, uint64_t address, uint32_t bytes, gcn_use use,
                                  int lane) {
    if (space == GCN_FLAT) {
        const uint64_t window = address & UINT64_C(0xff) << 56, offset = (uint32_t)address;
        if (window == GCN_LDS_WINDOW) return locate_lds(wave, offset, bytes, use, lane);
        if (window == GCN_SCRATCH_WINDOW) return locate_scratch(wave, offset, bytes, use, lane);
    }
    switch (space) {
    case GCN_LDS:
        return locate_lds(wave, address, bytes, use, lane);
    case GCN_SCRATCH:
        return locate_scratch(wave, address, bytes, use, lane);
    default:
        return locate_global(wave, address, bytes, use, lane);
    }
}

/* Per half wave, because NVIDIA's counters cover 32 lanes. */
static void count_request(gcn_wave *wave, gcn_space space, uint64_t mask, const uint64_t *addresses, uint32_t bytes,
                          gcn_use use) {
    ptx_counters *counters = &wave->group->counters;
    const bool load = use == GCN_LOAD, shared = space == GCN_LDS;
    uint32_t parts = 0, least = 0;
    if (space == GCN_SCRATCH) {
        counters->local_accesses++;
        return;
    }
    for (int first = 0; first < wave->lanes; first += PTX_LANES) {
        const uint32_t half = (uint32_t)(mask >> first);
        uint32_t least_of_half = 0;
        if (!half) continue;
        parts += shared ? ptx_waves(addresses + first, half, bytes, &least_of_half)
                        : ptx_sectors(addresses + first, half, bytes, &least_of_half);
        least += least_of_half;
    }
    if (shared && load)
        counters->shared_loads++, counters->shared_load_waves += parts, counters->shared_load_least += least;
    if (shared && !load)
        counters->shared_stores++, counters->shared_store_waves += parts, counters->shared_store_least += least;
    if (!shared && load)
        counters->global_loads++, counters->global_load_sectors += parts, counters->global_load_least += least;
    if (!shared && !load)
        counters->global_stores++, counters->global_store_sectors += parts, counters->global_store_least += least;
}

/* Fast path: all lanes are in the range of the last access. */
static bool all_in_last_range(const gcn_wave *wave, uint64_t mask, const uint64_t *addresses, uint32_t bytes,
                              gcn_use use) {
    const ptx_range *range = &wave->group->range;
    if (use == GCN_ATOMIC || range->end - range->begin < bytes || (use == GCN_STORE && range->read_only)) return false;
    const uint64_t last = range->end - range->begin - bytes;
    bool outside = false;
    for (int l = 0; l < wave->lanes; ++l) outside |= (mask >> l & 1) && addresses[l] - range->begin > last;
    return !outside;
}

uint64_t gcn_locate(gcn_wave *wave, gcn_space space, uint64_t mask, const uint64_t addresses[GCN_LANES], uint32_t bytes,
                    gcn_use use, unsigned char *where[GCN_LANES]) {
    uint64_t allowed = mask;
    if (!mask) return 0;
    count_request(wave, space, mask, addresses, bytes, use);
    if ((space == GCN_GLOBAL || space == GCN_FLAT) && all_in_last_range(wave, mask, addresses, bytes, use)) {
        for (int l = 0; l < wave->lanes; ++l) where[l] = (unsigned char *)(uintptr_t)addresses[l];
        return mask;
    }
    for (int l = 0; l < wave->lanes; ++l) {
        if (!(mask >> l & 1)) continue;
        where[l] = locate_lane(wave, space, addresses[l], bytes, use, l);
        if (!where[l]) allowed &= ~(UINT64_C(1) << l);
    }
    return allowed;
}

const unsigned char *gcn_locate_scalar(gcn_wave *wave, uint64_t address, uint32_t bytes) {
    bool read_only;
    /* The compiler reads three words as four if they stay within sixteen aligned bytes. */
    const uint32_t least = (address + bytes) % 16 == 0 && bytes > 4 ? bytes - 4 : bytes;
    if (is_inside(wave->group, address, least, false, &read_only)) return (const unsigned char *)(uintptr_t)address;
    gcn_report(wave, GCN_FAULT_RANGE, "scalar read of %u bytes outside the memory of the launch, at 0x%" PRIx64, bytes,
               address);
    return NULL;
}
