/* Races in shared memory: two work-items access a cell, one of them writes, and nothing orders the accesses. */
#include "access.h"

/* In ptx_cell.writer: a copy in flight; atomic accesses by several lanes of a warp, by several warps. In
 * ptx_cell.reader: several lanes of one warp, or of several warps. */
enum { IN_FLIGHT = 0x8000, ATOMIC = 0x4000, LANES = 0x2000, ALL_WARPS = 0x1000, ITEM = 0xfff };
enum { SEVERAL = 0x8000, WARPS = 0xffff };

/* Accesses since this time are not ordered before the current one of `warp`; bar.warp.sync orders those of
 * the warp's own lanes. */
static uint32_t unordered_since(const ptx_warp *warp, uint32_t other_warp) {
    const uint32_t barrier = warp->group->barrier;
    return other_warp == warp->first / PTX_LANES && warp->sync_time > barrier ? warp->sync_time : barrier;
}

static bool writes_unordered(const ptx_warp *warp, const ptx_cell *cell, uint32_t item) {
    const uint32_t writer = cell->writer & ~(uint32_t)(IN_FLIGHT | ATOMIC);
    if (cell->written < warp->group->barrier || writer == item) return false;
    return writer & ALL_WARPS || cell->written >= unordered_since(warp, (writer & ITEM) / PTX_LANES);
}

static inline bool reads_unordered(const ptx_warp *warp, const ptx_cell *cell, uint32_t item, uint32_t barrier) {
    if (cell->read < barrier || cell->reader == item) return false;
    if (cell->reader == WARPS) return true;
    const uint32_t reader = cell->reader & SEVERAL ? cell->reader & ~(uint32_t)SEVERAL : cell->reader / PTX_LANES;
    return cell->read >= unordered_since(warp, reader);
}

static void report_in_flight(ptx_warp *warp, const ptx_cell *cell, uint32_t offset, uint32_t item, const char *use) {
    ptx_report(warp, PTX_FAULT_IN_FLIGHT,
               "work-item %u %s offset %u of shared memory while a copy of work-item %u to it is under way", item, use,
               offset, cell->writer & ~(unsigned)IN_FLIGHT);
}

/* `barrier` and `time` are copies from the group, because a compiler must assume that cells alias them. */
static inline void record_read(const ptx_warp *warp, ptx_cell *cell, uint32_t item, uint32_t barrier, uint32_t time) {
    const uint32_t own = warp->first / PTX_LANES;
    if (cell->read == time && cell->reader == (SEVERAL | own)) return; /* would change nothing */
    if (!reads_unordered(warp, cell, item, barrier)) {
        cell->reader = (uint16_t)item; /* earlier reads are ordered, or are this item's own */
    } else if (cell->reader != WARPS) {
        const uint32_t reader = cell->reader & SEVERAL ? cell->reader & ~(uint32_t)SEVERAL : cell->reader / PTX_LANES;
        cell->reader = (uint16_t)(reader == own ? SEVERAL | own : WARPS);
    }
    cell->read = time;
}

static void check_read(ptx_warp *warp, const ptx_cell *cell, uint32_t offset, uint32_t item) {
    if (cell->written < warp->group->begin)
        ptx_report(warp, PTX_FAULT_UNWRITTEN,
                   "work-item %u reads offset %u of shared memory, which its group never wrote", item, offset);
    else if (cell->writer & IN_FLIGHT)
        report_in_flight(warp, cell, offset, item, "reads");
    else if (writes_unordered(warp, cell, item))
        ptx_report(warp, PTX_FAULT_RACE,
                   "race: work-item %u reads offset %u of shared memory, which work-item %u wrote without a "
                   "barrier between",
                   item, offset, cell->writer & ITEM);
}

/* The lanes with this offset. */
static inline uint32_t lanes_at(uint32_t offset, const uint32_t offsets[PTX_LANES]) {
    uint32_t lanes = 0;
    for (uint32_t l = 0; l < PTX_LANES; ++l) lanes |= offsets[l] == offset ? 1u << l : 0;
    return lanes;
}

/* Records lanes that read the same place together: after two readers, a third one changes nothing. */
void ptx_record_reads(ptx_warp *warp, uint32_t mask, const uint32_t offsets[PTX_LANES], uint32_t bytes) {
    const ptx_group *group = warp->group;
    const uint32_t shift = group->kernel->cell_shift, barrier = group->barrier, time = group->time;
    const uint32_t begin = group->begin, since = barrier - begin;
    ptx_cell *cells = group->cells;
    bool may_share = true;
    while (mask) {
        const uint32_t first = (uint32_t)__builtin_ctz(mask), offset = offsets[first], item = warp->first + first;
        const uint32_t lanes = may_share ? lanes_at(offset, offsets) & mask : 1u << first, others = lanes & (lanes - 1);
        const uint32_t second = others ? warp->first + (uint32_t)__builtin_ctz(others) : item;
        for (uint32_t c = offset >> shift; c <= (offset + bytes - 1) >> shift; ++c) {
            /* Fast path: most cells were written between the group's begin and its last barrier. */
            if (cells[c].written - begin >= since || cells[c].writer & IN_FLIGHT)
                for (uint32_t left = lanes; left; left &= left - 1)
                    check_read(warp, &cells[c], c << shift, warp->first + (uint32_t)__builtin_ctz(left));
            record_read(warp, &cells[c], item, barrier, time);
            if (others) record_read(warp, &cells[c], second, barrier, time);
        }
        mask &= ~lanes;
        may_share = others != 0; /* otherwise the next ones probably fail as well, which only costs time */
    }
}

static void write_cells(ptx_warp *warp, uint32_t offset, uint32_t bytes, uint32_t lane, uint16_t writer) {
    const ptx_group *group = warp->group;
    const uint32_t shift = group->kernel->cell_shift, item = warp->first + lane;
    for (uint32_t c = offset >> shift; c <= (offset + bytes - 1) >> shift; ++c) {
        ptx_cell *cell = &group->cells[c];
        if (cell->written >= group->begin && cell->writer & IN_FLIGHT)
            report_in_flight(warp, cell, c << shift, item, "writes");
        else if (cell->written >= group->begin && writes_unordered(warp, cell, item))
            ptx_report(warp, PTX_FAULT_RACE,
                       "race: work-items %u and %u write offset %u of shared memory without a barrier between",
                       cell->writer & ITEM, item, c << shift);
        else if (reads_unordered(warp, cell, item, group->barrier))
            ptx_report(warp, PTX_FAULT_RACE,
                       "race: work-item %u writes offset %u of shared memory, which another one read without a barrier "
                       "between",
                       item, c << shift);
        cell->writer = writer, cell->written = group->time;
    }
}

void ptx_record_writes(ptx_warp *warp, uint32_t mask, const uint32_t offsets[PTX_LANES], uint32_t bytes) {
    for (uint32_t l = 0; l < PTX_LANES; ++l)
        if (mask >> l & 1) write_cells(warp, offsets[l], bytes, l, (uint16_t)(warp->first + l));
}

/* The accessors of the cell after this atomic access of an item. */
static uint16_t accessed_by(const ptx_warp *warp, const ptx_cell *cell, uint32_t item) {
    const uint32_t before = cell->writer & ITEM;
    if (!(cell->writer & ATOMIC) || !writes_unordered(warp, cell, item)) return (uint16_t)(item | ATOMIC);
    return (uint16_t)(item | ATOMIC | LANES | (cell->writer & ALL_WARPS) |
                      (before / PTX_LANES == item / PTX_LANES ? 0 : ALL_WARPS));
}

/* Atomic accesses race with loads and stores, not with each other. */
void ptx_record_atomic(ptx_warp *warp, uint32_t offset, uint32_t bytes, uint32_t lane) {
    const ptx_group *group = warp->group;
    const uint32_t shift = group->kernel->cell_shift, item = warp->first + lane;
    for (uint32_t c = offset >> shift; c <= (offset + bytes - 1) >> shift; ++c) {
        ptx_cell *cell = &group->cells[c];
        const bool written = cell->written >= group->begin;
        if (!written)
            ptx_report(warp, PTX_FAULT_UNWRITTEN,
                       "work-item %u accesses offset %u of shared memory, which its group never wrote", item,
                       c << shift);
        else if (cell->writer & IN_FLIGHT)
            report_in_flight(warp, cell, c << shift, item, "accesses");
        else if ((!(cell->writer & ATOMIC) && writes_unordered(warp, cell, item)) ||
                 reads_unordered(warp, cell, item, group->barrier))
            ptx_report(
                warp, PTX_FAULT_RACE,
                "race: an atomic access of work-item %u to offset %u of shared memory, which another one read or "
                "wrote without a barrier between",
                item, c << shift);
        cell->writer = written ? accessed_by(warp, cell, item) : (uint16_t)(item | ATOMIC), cell->written = group->time;
    }
}

void ptx_record_copy(ptx_warp *warp, uint32_t offset, uint32_t bytes, uint32_t lane, bool arrived) {
    const ptx_group *group = warp->group;
    if (!group->cells) return;
    const uint32_t shift = group->kernel->cell_shift;
    if (!arrived) {
        write_cells(warp, offset, bytes, lane, (uint16_t)((warp->first + lane) | IN_FLIGHT));
        return;
    }
    for (uint32_t c = offset >> shift; c <= (offset + bytes - 1) >> shift; ++c) {
        group->cells[c].writer = (uint16_t)(warp->first + lane);
        group->cells[c].written = group->time;
    }
}
