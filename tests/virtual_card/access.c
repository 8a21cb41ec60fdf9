/* Memory accesses of a warp: locates, checks and counts the bytes of each lane. */
#include "access.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

/* What a forbidden load reads. */
static unsigned char nothing[16] = {255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255};

void ptx_addresses(const ptx_warp *warp, ptx_operand operand, uint64_t addresses[PTX_LANES]) {
    const uint64_t add = (uint64_t)(int64_t)operand.add;
    if (operand.width == 8) {
        const uint64_t *from = ptx_at_operand(warp, operand);
        for (int l = 0; l < PTX_LANES; ++l) addresses[l] = from[l] + add;
    } else {
        const uint32_t *from = ptx_at_operand(warp, operand);
        for (int l = 0; l < PTX_LANES; ++l) addresses[l] = from[l] + add;
    }
}

static bool in_range(const ptx_range *range, uint64_t address, uint32_t bytes) {
    return address >= range->begin && address <= range->end && range->end - address >= bytes;
}

bool ptx_inside(ptx_group *group, uint64_t address, uint32_t bytes, bool write, bool *read_only) {
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
    for (size_t i = 0; i < group->kernel->module->n_variables; ++i) {
        const ptx_variable *variable = &group->kernel->module->variables[i];
        if (!variable->bytes) continue;
        const uint64_t begin = (uint64_t)(uintptr_t)variable->bytes;
        const ptx_range range = {begin, begin + variable->size, variable->space == PTX_CONST};
        if (!in_range(&range, address, bytes)) continue;
        *read_only |= write && range.read_only;
        return !(write && range.read_only);
    }
    return false;
}

static const char *name_of(ptx_use use) {
    return use == PTX_LOAD ? "read" : use == PTX_STORE ? "write" : "atomic access";
}

static bool aligned(ptx_warp *warp, uint64_t address, uint32_t bytes, ptx_use use, int lane) {
    if ((address & (bytes - 1)) == 0) return true;
    ptx_report(warp, PTX_FAULT_ALIGNMENT, "misaligned %s of %u bytes at 0x%" PRIx64 " by work-item %u", name_of(use),
               bytes, address, warp->first + (uint32_t)lane);
    return false;
}

static unsigned char *locate_global(ptx_warp *warp, uint64_t address, uint32_t bytes, ptx_use use, int lane) {
    bool read_only;
    if (ptx_inside(warp->group, address, bytes, use != PTX_LOAD, &read_only)) {
        if (use == PTX_LOAD && atomic_load(warp->group->atomics)) ptx_check_load(warp, address, bytes, (uint32_t)lane);
        if (use == PTX_ATOMIC) ptx_note_atomic(warp, address, bytes);
        return aligned(warp, address, bytes, use, lane) ? (unsigned char *)(uintptr_t)address : NULL;
    }
    ptx_report(warp, read_only ? PTX_FAULT_READ_ONLY : PTX_FAULT_RANGE,
               "%s of %u bytes %s, at 0x%" PRIx64 " by work-item %u", name_of(use), bytes,
               read_only ? "in memory that is only read" : "outside the memory of the launch", address,
               warp->first + (uint32_t)lane);
    return NULL;
}

static unsigned char *locate_shared(ptx_warp *warp, uint64_t offset, uint32_t bytes, ptx_use use, int lane) {
    ptx_group *group = warp->group;
    if (offset > group->shared_bytes || group->shared_bytes - offset < bytes) {
        ptx_report(warp, PTX_FAULT_RANGE,
                   "%s of %u bytes at offset %" PRIu64 " of %u bytes of shared memory by work-item %u", name_of(use),
                   bytes, offset, group->shared_bytes, warp->first + (uint32_t)lane);
        return NULL;
    }
    return aligned(warp, offset, bytes, use, lane) ? group->shared + offset : NULL;
}

static unsigned char *locate_local(ptx_warp *warp, uint64_t offset, uint32_t bytes, ptx_use use, int lane) {
    const uint32_t size = warp->group->kernel->local_bytes;
    if (offset > size || size - offset < bytes) {
        ptx_report(warp, PTX_FAULT_RANGE,
                   "%s of %u bytes at offset %" PRIu64 " of %u bytes of local memory by work-item %u", name_of(use),
                   bytes, offset, size, warp->first + (uint32_t)lane);
        return NULL;
    }
    return aligned(warp, offset, bytes, use, lane) ? warp->local + (size_t)lane * size + offset : NULL;
}

static unsigned char *locate_parameter(ptx_warp *warp, uint64_t offset, uint32_t bytes, int lane) {
    const uint32_t size = warp->group->kernel->param_bytes;
    if (offset > size || size - offset < bytes) {
        ptx_report(warp, PTX_FAULT_RANGE, "read of %u bytes at offset %" PRIu64 " of %u bytes of parameters", bytes,
                   offset, size);
        return NULL;
    }
    if (!aligned(warp, offset, bytes, PTX_LOAD, lane)) return NULL;
    return (unsigned char *)(uintptr_t)warp->group->launch->params + offset;
}

static unsigned char *locate_lane(ptx_warp *warp, ptx_space space, uint64_t address, uint32_t bytes, ptx_use use,
                                  int lane) {
    if (space == PTX_GENERIC) {
        const uint64_t window = address & UINT64_C(0xff) << 56, offset = address & ~(UINT64_C(0xff) << 56);
        if (window == PTX_SHARED_WINDOW) return locate_shared(warp, offset, bytes, use, lane);
        if (window == PTX_LOCAL_WINDOW) return locate_local(warp, offset, bytes, use, lane);
    }
    switch (space) {
    case PTX_SHARED:
        return locate_shared(warp, address, bytes, use, lane);
    case PTX_LOCAL:
        return locate_local(warp, address, bytes, use, lane);
    case PTX_PARAMETER:
        return locate_parameter(warp, address, bytes, lane);
    default:
        return locate_global(warp, address, bytes, use, lane);
    }
}

static void count_global(ptx_counters *counters, const uint64_t *addresses, uint32_t mask, uint32_t bytes,
                         ptx_use use) {
    uint32_t least;
    const uint32_t sectors = ptx_sectors(addresses, mask, bytes, &least);
    if (use == PTX_LOAD)
        counters->global_loads++, counters->global_load_sectors += sectors, counters->global_load_least += least;
    else
        counters->global_stores++, counters->global_store_sectors += sectors, counters->global_store_least += least;
}

static void count_shared(ptx_counters *counters, const uint64_t *offsets, uint32_t mask, uint32_t bytes, ptx_use use) {
    uint32_t least;
    const uint32_t waves = ptx_waves(offsets, mask, bytes, &least);
    if (use == PTX_LOAD)
        counters->shared_loads++, counters->shared_load_waves += waves, counters->shared_load_least += least,
            counters->shared_wide_loads += bytes >= 16;
    else
        counters->shared_stores++, counters->shared_store_waves += waves, counters->shared_store_least += least;
}

/* The space that all lanes of a generic access share; PTX_GENERIC if they differ. */
static ptx_space common_space(const uint64_t *addresses, uint32_t mask) {
    const uint64_t first = addresses[__builtin_ctz(mask)] >> 56;
    for (int l = 0; l < PTX_LANES; ++l)
        if (mask >> l & 1 && addresses[l] >> 56 != first) return PTX_GENERIC;
    return first == PTX_SHARED_WINDOW >> 56 ? PTX_SHARED : first == PTX_LOCAL_WINDOW >> 56 ? PTX_LOCAL : PTX_GLOBAL;
}

static void count_request(ptx_warp *warp, ptx_space space, uint32_t mask, const uint64_t *addresses, uint32_t bytes,
                          ptx_use use) {
    ptx_counters *counters = &warp->group->counters;
    if (space == PTX_GENERIC) space = common_space(addresses, mask);
    if (space == PTX_GLOBAL)
        count_global(counters, addresses, mask, bytes, use);
    else if (space == PTX_SHARED)
        count_shared(counters, addresses, mask, bytes, use);
    else if (space == PTX_LOCAL || space == PTX_GENERIC)
        counters->local_accesses++;
}

/* Whether all lanes are aligned and within `size` bytes from `begin`. The highest bit of a difference below
 * 2^63 shows the larger side without a branch. */
static bool all_within(uint32_t mask, const uint64_t *addresses, uint32_t bytes, uint64_t begin, uint64_t size) {
    if (size < bytes) return false;
    const uint64_t last = size - bytes;
    uint64_t beyond = 0, bits = 0;
    if (mask == PTX_ALL) {
        for (int l = 0; l < PTX_LANES; ++l) {
            const uint64_t offset = addresses[l] - begin;
            beyond |= offset | (last - offset), bits |= addresses[l];
        }
    } else {
        for (uint32_t left = mask; left; left &= left - 1) {
            const uint64_t address = addresses[__builtin_ctz(left)], offset = address - begin;
            beyond |= offset | (last - offset), bits |= address;
        }
    }
    return !(beyond >> 63) && !(bits & (bytes - 1));
}

/* The lanes' host addresses relative to `base`. */
static void place_lanes(uint32_t mask, const uint64_t *addresses, uintptr_t base, unsigned char *where[PTX_LANES]) {
    if (mask == PTX_ALL)
        for (int l = 0; l < PTX_LANES; ++l) where[l] = (unsigned char *)(uintptr_t)(base + addresses[l]);
    else
        for (int l = 0; l < PTX_LANES; ++l)
            where[l] = mask >> l & 1 ? (unsigned char *)(uintptr_t)(base + addresses[l]) : nothing;
}

/* Fast path: all lanes are in the range of the last access. */
static bool all_in_last_range(const ptx_warp *warp, uint32_t mask, const uint64_t *addresses, uint32_t bytes,
                              bool write) {
    const ptx_range *range = &warp->group->range;
    if (write && range->read_only) return false;
    return all_within(mask, addresses, bytes, range->begin, range->end - range->begin);
}

/* Records the lanes' accesses to shared memory for the race check. */
static void record_shared(ptx_warp *warp, ptx_space space, uint32_t mask, const uint64_t *addresses, uint32_t bytes,
                          ptx_use use) {
    if (!warp->group->cells || (space != PTX_SHARED && space != PTX_GENERIC)) return;
    uint32_t offsets[PTX_LANES], outside = 0;
    for (uint32_t l = 0; l < PTX_LANES; ++l) offsets[l] = (uint32_t)addresses[l];
    for (uint32_t l = 0; space == PTX_GENERIC && l < PTX_LANES; ++l)
        outside |= (uint32_t)(addresses[l] >> 56 != PTX_SHARED_WINDOW >> 56) << l;
    mask &= ~outside;
    if (use == PTX_LOAD) ptx_record_reads(warp, mask, offsets, bytes);
    if (use == PTX_STORE) ptx_record_writes(warp, mask, offsets, bytes);
    for (uint32_t l = 0; use == PTX_ATOMIC && l < PTX_LANES; ++l)
        if (mask >> l & 1) ptx_record_atomic(warp, offsets[l], bytes, l);
}

uint32_t ptx_locate(ptx_warp *warp, const ptx_instruction *now, uint32_t mask, const uint64_t addresses[PTX_LANES],
                    uint32_t bytes, ptx_use use, unsigned char *where[PTX_LANES]) {
    const ptx_space space = now->space;
    count_request(warp, space, mask, addresses, bytes, use);
    const bool plain = use == PTX_STORE || (use == PTX_LOAD && !atomic_load(warp->group->atomics));
    if (plain && space == PTX_GLOBAL && all_in_last_range(warp, mask, addresses, bytes, use != PTX_LOAD)) {
        place_lanes(mask, addresses, 0, where);
        return mask;
    }
    if (space == PTX_SHARED && all_within(mask, addresses, bytes, 0, warp->group->shared_bytes)) {
        place_lanes(mask, addresses, (uintptr_t)warp->group->shared, where);
        record_shared(warp, space, mask, addresses, bytes, use);
        return mask;
    }
    uint32_t allowed = mask;
    for (int l = 0; l < PTX_LANES; ++l) {
        where[l] = nothing;
        if (!(mask >> l & 1)) continue;
        unsigned char *at = locate_lane(warp, space, addresses[l], bytes, use, l);
        if (at)
            where[l] = at;
        else
            allowed &= ~(1u << l);
    }
    record_shared(warp, space, allowed, addresses, bytes, use);
    return allowed;
}
