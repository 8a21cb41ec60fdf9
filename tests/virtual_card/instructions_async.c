/* cp.async: copies from global to shared memory. They arrive as late as allowed, at the wait. */
#include "access.h"

#include <inttypes.h>
#include <string.h>

static void add_copy(ptx_warp *warp, ptx_copy copy) {
    warp->copies = ptx_grow(warp->copies, warp->n_copies, &warp->copy_capacity, sizeof copy);
    warp->copies[warp->n_copies++] = copy;
}

static bool may_copy(ptx_warp *warp, const ptx_copy *copy) {
    const ptx_group *group = warp->group;
    const uint32_t item = warp->first + copy->lane;
    if (copy->to > group->shared_bytes || group->shared_bytes - copy->to < copy->bytes)
        ptx_report(warp, PTX_FAULT_RANGE, "cp.async of work-item %u to offset %u of %u bytes of shared memory", item,
                   copy->to, group->shared_bytes);
    else if (copy->to % copy->bytes || (copy->read && copy->from % copy->bytes))
        ptx_report(warp, PTX_FAULT_ALIGNMENT, "misaligned cp.async of %u bytes by work-item %u", copy->bytes, item);
    else
        return true;
    return false;
}

/* Operands: to, from, bytes, and optionally the number of bytes read (the rest becomes 0). 4, 8 or 16 bytes
 * are allowed; with .cg, which bypasses level 1, only 16. */
enum { ANY_SIZE, LARGE_ONLY };
static void copy_async(ptx_warp *warp, const ptx_instruction *now, uint32_t mask) {
    ptx_group *group = warp->group;
    uint64_t to[PTX_LANES], from[PTX_LANES];
    ptx_addresses(warp, now->from[0], to);
    ptx_addresses(warp, now->from[1], from);
    const uint32_t bytes = *(const uint32_t *)ptx_at_operand(warp, now->from[2]);
    if (bytes != 16 && (now->code == LARGE_ONLY || (bytes != 4 && bytes != 8))) {
        ptx_report(warp, PTX_FAULT_ALIGNMENT, "cp.async of %u bytes", bytes);
        return;
    }
    const uint32_t *read = now->n_from > 3 ? ptx_at_operand(warp, now->from[3]) : NULL;
    uint32_t reading = 0;
    for (uint32_t l = 0; l < PTX_LANES; ++l) {
        if (!(mask >> l & 1)) continue;
        ptx_copy copy = {.from = from[l],
                         .to = (uint32_t)to[l],
                         .group = warp->committed[l],
                         .bytes = (uint8_t)bytes,
                         .lane = (uint8_t)l};
        copy.read = (uint8_t)(read && read[l] < bytes ? read[l] : bytes);
        if (!may_copy(warp, &copy)) continue;
        bool read_only;
        if (copy.read && !ptx_inside(group, copy.from, copy.read, false, &read_only)) {
            ptx_report(warp, PTX_FAULT_RANGE,
                       "cp.async of %u bytes outside the memory of the launch, at 0x%" PRIx64 " by work-item %u",
                       copy.read, copy.from, warp->first + l);
            continue;
        }
        if (copy.read) reading |= 1u << l;
        memset(group->shared + copy.to, 0xff, bytes);
        ptx_record_copy(warp, copy.to, bytes, l, false);
        add_copy(warp, copy);
    }
    uint32_t least;
    group->counters.async_copies++;
    group->counters.async_copy_sectors += ptx_sectors(from, reading, bytes, &least);
}

static void commit(ptx_warp *warp, const ptx_instruction *now, uint32_t mask) {
    (void)now;
    for (uint32_t l = 0; l < PTX_LANES; ++l) warp->committed[l] += mask >> l & 1;
}

static void arrive(ptx_warp *warp, const ptx_copy *copy) {
    unsigned char *to = warp->group->shared + copy->to;
    memset(to, 0, copy->bytes);
    if (copy->read) memcpy(to, (const void *)(uintptr_t)copy->from, copy->read);
    ptx_record_copy(warp, copy->to, copy->bytes, copy->lane, true);
}

/* Completes all but the newest `newest` groups of each lane; with `all`, uncommitted copies as well. */
static void wait(ptx_warp *warp, uint32_t mask, uint32_t newest, bool all) {
    size_t kept = 0;
    for (size_t i = 0; i < warp->n_copies; ++i) {
        const ptx_copy copy = warp->copies[i];
        if (mask >> copy.lane & 1 && (all || copy.group + newest < warp->committed[copy.lane]))
            arrive(warp, &copy);
        else
            warp->copies[kept++] = copy;
    }
    warp->n_copies = kept;
}
static void wait_group(ptx_warp *warp, const ptx_instruction *now, uint32_t mask) {
    wait(warp, mask, *(const uint32_t *)ptx_at_operand(warp, now->from[0]), false);
}
static void wait_all(ptx_warp *warp, const ptx_instruction *now, uint32_t mask) {
    (void)now;
    wait(warp, mask, 0, true);
}

#define COPY(cache) "cp.async" cache "(.shared|.shared::cta).global[.L2::64B|.L2::128B|.L2::256B]"
static const ptx_form forms[] = {
    {COPY(".ca"), "=mmn", copy_async, ANY_SIZE, 0, 0},   {COPY(".ca"), "=mmnw", copy_async, ANY_SIZE, 0, 0},
    {COPY(".cg"), "=mmn", copy_async, LARGE_ONLY, 0, 0}, {COPY(".cg"), "=mmnw", copy_async, LARGE_ONLY, 0, 0},
    {"cp.async.commit_group", "=", commit, 0, 0, 0},     {"cp.async.wait_group", "=n", wait_group, 0, 0, 0},
    {"cp.async.wait_all", "=", wait_all, 0, 0, 0},
};
const ptx_table ptx_async_table = PTX_TABLE(forms);
