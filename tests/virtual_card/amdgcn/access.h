/* Memory accesses of a wave: locates, checks and counts the bytes of each lane. */
#ifndef VIRTUAL_CARD_GCN_ACCESS_H
#define VIRTUAL_CARD_GCN_ACCESS_H

#include "wave.h"

typedef enum gcn_use { GCN_LOAD, GCN_STORE, GCN_ATOMIC } gcn_use;

/* Writes the host address of each lane's `bytes` bytes for the lanes in `mask`; LDS and scratch addresses are
 * offsets. Returns the lanes whose access is allowed; the others are reported. Counts the request. */
uint64_t gcn_locate(gcn_wave *wave, gcn_space space, uint64_t mask, const uint64_t addresses[GCN_LANES], uint32_t bytes,
                    gcn_use use, unsigned char *where[GCN_LANES]);

/* The host address of a scalar load: in buffers, arguments or constants. NULL after a reported fault. */
const unsigned char *gcn_locate_scalar(gcn_wave *wave, uint64_t address, uint32_t bytes);

/* lds.c. A race: two waves access a byte, one of them writes, and no barrier separates them. */
void gcn_record(gcn_wave *wave, uint32_t offset, uint32_t bytes, int lane, gcn_use use);

#endif
