/* Accesses of a warp to memory: where each lane's bytes are, checked and counted. */
#ifndef VIRTUAL_CARD_ACCESS_H
#define VIRTUAL_CARD_ACCESS_H

#include "warp.h"

typedef enum ptx_use { PTX_LOAD, PTX_STORE, PTX_ATOMIC } ptx_use;

/* The 32 addresses of an operand. */
void ptx_addresses(const ptx_warp *warp, ptx_operand operand, uint64_t addresses[PTX_LANES]);

/* Host addresses of the `bytes` bytes of each lane in `mask`, in the space of the instruction. Returns the
 * lanes whose access is allowed; the others were reported, and where[] of a load then has NaNs to read.
 * Counts the request. */
uint32_t ptx_locate(ptx_warp *warp, const ptx_instruction *now, uint32_t mask, const uint64_t addresses[PTX_LANES],
                    uint32_t bytes, ptx_use use, unsigned char *where[PTX_LANES]);

/* Whether [address, address + bytes) lies in one range of the launch, or in a variable of the module. */
bool ptx_inside(ptx_group *group, uint64_t address, uint32_t bytes, bool write, bool *read_only);

/* counters.c. Sectors of 32 bytes that a request touches, and the fewest that could hold as many different
 * bytes. A lane accesses 32 bytes at most. */
uint32_t ptx_sectors(const uint64_t addresses[PTX_LANES], uint32_t mask, uint32_t bytes, uint32_t *least);

/* Wavefronts of a request to shared memory: 32 banks of 4 bytes; 8 bytes a lane go by halves of the warp, 16 by
 * quarters; lanes that read the same word share it. least: without conflicts. */
uint32_t ptx_waves(const uint64_t offsets[PTX_LANES], uint32_t mask, uint32_t bytes, uint32_t *least);

/* shared_memory.c. Races: two work-items access a byte, one of them writes, and no barrier lies between. The
 * offsets of the lanes in `mask` lie within the group's shared memory. */
void ptx_record_reads(ptx_warp *warp, uint32_t mask, const uint32_t offsets[PTX_LANES], uint32_t bytes);
void ptx_record_writes(ptx_warp *warp, uint32_t mask, const uint32_t offsets[PTX_LANES], uint32_t bytes);
void ptx_record_atomic(ptx_warp *warp, uint32_t offset, uint32_t bytes, uint32_t lane);
/* A copy to these bytes is under way; it has arrived. */
void ptx_record_copy(ptx_warp *warp, uint32_t offset, uint32_t bytes, uint32_t lane, bool arrived);

/* global_atomics.c. Loads of words of global memory that another work-group accesses atomically in the same
 * launch: a group may load what it has published itself by an atomic access and a fence behind it. */
void ptx_note_atomic(ptx_warp *warp, uint64_t address, uint32_t bytes);
void ptx_note_fence(ptx_warp *warp);
void ptx_check_load(ptx_warp *warp, uint64_t address, uint32_t bytes, uint32_t lane);

#endif
