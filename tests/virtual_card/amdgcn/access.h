/* Accesses of a wave to memory: where each lane's bytes are, checked and counted. */
#ifndef VIRTUAL_CARD_GCN_ACCESS_H
#define VIRTUAL_CARD_GCN_ACCESS_H

#include "wave.h"

typedef enum gcn_use { GCN_LOAD, GCN_STORE, GCN_ATOMIC } gcn_use;

/* Host addresses of the `bytes` bytes of each lane in `mask`; addresses of LDS and scratch are offsets. Returns the
 * lanes whose access is allowed; the others were reported. Counts the request. */
uint64_t gcn_locate(gcn_wave *wave, gcn_space space, uint64_t mask, const uint64_t addresses[GCN_LANES], uint32_t bytes,
                    gcn_use use, unsigned char *where[GCN_LANES]);

/* Where a scalar load may read: buffers, arguments, constants. NULL: nowhere, which was reported. */
const unsigned char *gcn_locate_scalar(gcn_wave *wave, uint64_t address, uint32_t bytes);

/* lds.c. Races: two waves access a byte, one of them writes, and no barrier lies between. */
void gcn_record(gcn_wave *wave, uint32_t offset, uint32_t bytes, int lane, gcn_use use);

#endif
