/* Execution state: the warps of a work-group on one host thread. */
#ifndef VIRTUAL_CARD_WARP_H
#define VIRTUAL_CARD_WARP_H

#include "kernel.h"

#include <stdatomic.h>

typedef struct ptx_group ptx_group;

/* Lanes on one path, up to the instruction `until`, where another path of the stack takes over. */
typedef struct ptx_path {
    uint32_t pc, until, mask;
} ptx_path;

/* A copy to shared memory in flight (cp.async). */
typedef struct ptx_copy {
    uint64_t from;
    uint32_t to, group;  /* group: number among the lane's groups */
    uint8_t bytes, read; /* bytes written; bytes read, the rest is 0 */
    uint8_t lane;
} ptx_copy;

struct ptx_warp {
    unsigned char *base[PTX_BASES];
    ptx_group *group;
    const ptx_instruction *now; /* for faults and races */
    uint32_t first;             /* index of lane 0 among the work-items */
    uint32_t begun, live;       /* existing lanes; lanes that have not ended */
    ptx_path *paths;
    size_t n_paths, path_capacity;
    bool ended;
    uint32_t steps;                 /* instructions issued */
    const ptx_instruction *barrier; /* where it waits */
    uint32_t sync_time;             /* of the last bar.warp.sync */
    uint32_t committed[PTX_LANES];  /* groups of copies */
    ptx_copy *copies;
    size_t n_copies, copy_capacity;
    unsigned char *local;   /* [32][local_bytes] */
    unsigned char *written; /* lanes that wrote each register, same layout; NULL: not recorded */
};

/* Last accesses to a cell of shared memory. */
typedef struct ptx_cell {
    uint32_t written, read; /* times */
    uint16_t writer, reader;
} ptx_cell;

typedef struct ptx_run_state ptx_run_state; /* of the launch */

/* A global word that the group accessed atomically, and whether the group has issued a fence since. */
enum { PTX_OWN_ATOMICS = 64 };
typedef struct ptx_own_atomic {
    uint64_t word;
    bool fenced;
} ptx_own_atomic;

/* run.c: records that a group accesses a word (address / 4) atomically; returns whether another group does. */
void ptx_share_atomic(ptx_run_state *run, uint64_t word, uint64_t group);
bool ptx_others_access(ptx_run_state *run, uint64_t word, uint64_t group);

struct ptx_group {
    const ptx_kernel *kernel;
    const ptx_launch *launch;
    ptx_run_state *run;
    ptx_counters counters;
    ptx_warp *warps;
    uint32_t n_warps;
    unsigned char *shared;
    uint32_t shared_bytes;
    ptx_cell *cells;               /* NULL: no race check */
    uint32_t time, begin, barrier; /* advances at each barrier; at group start; at the last barrier */
    ptx_range range;               /* of the last access to global memory */
    uint64_t index;                /* of the group in the launch */
    atomic_uint *atomics;          /* words that the launch accesses atomically */
    ptx_own_atomic own_atomics[PTX_OWN_ATOMICS];
    uint32_t n_own_atomics;
};

/* Faults. Each kind is reported once per instruction. */
typedef enum ptx_fault_kind {
    PTX_FAULT_RANGE,
    PTX_FAULT_ALIGNMENT,
    PTX_FAULT_READ_ONLY,
    PTX_FAULT_RACE,
    PTX_FAULT_UNWRITTEN,
    PTX_FAULT_IN_FLIGHT,
    PTX_FAULT_BARRIER,
    PTX_FAULT_LANES, /* a whole-warp instruction without all its lanes */
    PTX_FAULT_ENDLESS,
    PTX_FAULT_REGISTER /* read, but never written */
} ptx_fault_kind;
void ptx_report(ptx_warp *warp, ptx_fault_kind kind, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* unwritten.c: detects registers that lanes of the mask read before they are written, and records writes. */
void ptx_forget_registers(ptx_warp *warp);
void ptx_check_predicate(ptx_warp *warp, const ptx_instruction *now, uint32_t mask);
void ptx_check_registers(ptx_warp *warp, const ptx_instruction *now, uint32_t mask);

/* warp.c: runs a warp to its next barrier or its end. False: the launch must stop. */
bool ptx_run_warp(ptx_warp *warp);

/* The 32 values of an operand. */
static inline void *ptx_at_operand(const ptx_warp *warp, ptx_operand operand) {
    return warp->base[operand.base] + operand.offset;
}
static inline uint32_t ptx_predicate(const ptx_warp *warp, ptx_operand operand) {
    const uint32_t bits = *(const uint32_t *)ptx_at_operand(warp, operand);
    return operand.negate ? ~bits : bits;
}
static inline void ptx_set_predicate(const ptx_warp *warp, ptx_operand operand, uint32_t mask, uint32_t bits) {
    uint32_t *to = ptx_at_operand(warp, operand);
    *to = (*to & ~mask) | (bits & mask);
}

static inline unsigned ptx_count_bits(uint32_t x) {
    x -= x >> 1 & 0x55555555u;
    x = (x & 0x33333333u) + (x >> 2 & 0x33333333u);
    return ((x + (x >> 4)) & 0x0f0f0f0fu) * 0x01010101u >> 24;
}

/* Lanes are independent: an output coincides with an input or does not overlap it. */
#if defined(__clang__)
#define PTX_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define PTX_INDEPENDENT _Pragma("GCC ivdep")
#endif

/* to[l] = value for the lanes of the mask; `value` may use l. Lanes outside the mask are computed and
 * discarded, which keeps the loop vectorised. */
#define PTX_EACH_LANE(type, to, mask, value)                                                                           \
    do {                                                                                                               \
        if ((mask) == PTX_ALL) {                                                                                       \
            PTX_INDEPENDENT for (int l = 0; l < PTX_LANES; ++l)(to)[l] = (value);                                      \
        } else {                                                                                                       \
            type kept[PTX_LANES];                                                                                      \
            PTX_INDEPENDENT for (int l = 0; l < PTX_LANES; ++l) kept[l] = (value);                                     \
            for (int l = 0; l < PTX_LANES; ++l)                                                                        \
                if ((mask) >> l & 1) (to)[l] = kept[l];                                                                \
        }                                                                                                              \
    } while (0)

#endif
