/* Memory accesses of a warp: locates, checks and counts the bytes of each lane. */
#ifndef VIRTUAL_CARD_ACCESS_H
#define VIRTUAL_CARD_ACCESS_H

#include "warp.h"

typedef enum ptx_use { PTX_LOAD, PTX_STORE, PTX_ATOMIC } ptx_use;

/* The 32 addresses of an operand. */
void ptx_addresses(const ptx_warp *warp, ptx_operand operand, uint64_t addresses[PTX_LANES]);

/* Writes the host address of each lane's `bytes` bytes, in the instruction's space, for the lanes in `mask`.
 * Returns the lanes whose access is allowed. The others are reported, and their loads read NaNs. Counts the
 * request. */
uint32_t ptx_locate(ptx_warp *warp, const ptx_instruction *now, uint32_t mask, const uint64_t addresses[PTX_LANES],
                    uint32_t bytes, ptx_use use, unsigned char *where[PTX_LANES]);

/* Whether [address, address + bytes) lies in one range of the launch, or in a variable of the module. */
bool ptx_inside(ptx_group *group, uint64_t address, uint32_t bytes, bool write, bool *read_only);

/* counters.c. Number of 32-byte sectors that a request touches, and the minimum for the same number of
 * distinct bytes. A lane accesses at most 32 bytes. */
uint32_t ptx_sectors(const uint64_t addresses[PTX_LANES], uint32_t mask, uint32_t bytes, uint32_t *least);

/* Wavefronts of a shared memory request: 32 banks of 4 bytes; accesses of 8 bytes per lane are served by half
 * warp, of 16 by quarter warp; lanes that read the same word share it. least: without conflicts. */
uint32_t ptx_waves(const uint64_t offsets[PTX_LANES], uint32_t mask, uint32_t bytes, uint32_t *least);

/* shared_memory.c. Races: two work-items access a byte, one of them writes, and no barrier lies between. The
 * offsets of the lanes in `mask` lie within the group's shared memory. */
void ptx_record_reads(ptx_warp *warp, uint32_t mask, const uint32_t offsets[PTX_LANES], uint32_t bytes);
void ptx_record_writes(ptx_warp *warp, uint32_t mask, const uint32_t offsets[PTX_LANES], uint32_t bytes);
void ptx_record_atomic(ptx_warp *warp, uint32_t offset, uint32_t bytes, uint32_t lane);
/* Records that a copy to these bytes is in flight, or has arrived. */
void ptx_record_copy(ptx_warp *warp, uint32_t offset, uint32_t bytes, uint32_t lane, bool arrived);

/* global_atomics.c. Detects loads of global words that another work-group accesses atomically in the same
 * launch. A group may load a word after its own atomic access and a fence. */
void ptx_note_atomic(ptx_warp *warp, uint64_t address, uint32_t bytes);
void ptx_note_fence(ptx_warp *warp);
void ptx_check_load(ptx_warp *warp, uint64_t address, uint32_t bytes, uint32_t lane);

#endif
