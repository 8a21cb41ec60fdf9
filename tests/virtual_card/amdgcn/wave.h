/* Execution state: the waves of a work-group on one host thread. */
#ifndef VIRTUAL_CARD_GCN_WAVE_H
#define VIRTUAL_CARD_GCN_WAVE_H

#include "module.h"

#include <string.h>

typedef struct gcn_group gcn_group;

struct gcn_wave {
    uint32_t s[GCN_SCALARS];
    uint32_t (*v)[GCN_LANES]; /* [GCN_VECTORS][64] */
    bool scc;
    uint32_t pc;
    int lanes; /* 32 or 64 */
    gcn_group *group;
    const gcn_instruction *now; /* for faults and races */
    uint32_t first, index;      /* work-item of lane 0; index of the wave in its group */
    uint64_t begun;             /* existing lanes */
    bool ended;
    uint32_t steps;                 /* instructions executed */
    const gcn_instruction *barrier; /* where it waits */
    unsigned char *scratch;         /* [lanes][scratch_bytes] */
};

/* Last accesses to a cell of LDS: time and wave. */
typedef struct gcn_cell {
    uint32_t written, read;
    uint16_t writer, reader;
} gcn_cell;

typedef struct gcn_run_state gcn_run_state; /* of the launch */

struct gcn_group {
    const gcn_kernel *kernel;
    const ptx_launch *launch;
    gcn_run_state *run;
    ptx_counters counters;
    gcn_wave *waves;
    uint32_t n_waves;
    uint32_t index[3];
    unsigned char *lds, *kernarg;
    uint32_t lds_bytes, kernarg_bytes;
    uint32_t packet[16]; /* of the dispatch */
    gcn_cell *cells;     /* NULL: no race check */
    uint32_t time, begin, barrier;
    ptx_range range; /* of the last access to global memory */
};

typedef enum gcn_fault_kind {
    GCN_FAULT_RANGE,
    GCN_FAULT_ALIGNMENT,
    GCN_FAULT_READ_ONLY,
    GCN_FAULT_RACE,
    GCN_FAULT_UNWRITTEN,
    GCN_FAULT_BARRIER,
    GCN_FAULT_LANES,
    GCN_FAULT_ENDLESS
} gcn_fault_kind;
void gcn_report(gcn_wave *wave, gcn_fault_kind kind, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* wave.c: runs a wave to its next barrier or its end. False: the launch must stop. */
bool gcn_run_wave(gcn_wave *wave);

static inline uint64_t gcn_pair(const gcn_wave *wave, unsigned index) {
    return wave->s[index] | (uint64_t)wave->s[index + 1] << 32;
}
static inline uint64_t gcn_all(const gcn_wave *wave) {
    return wave->lanes == 64 ? UINT64_MAX : UINT32_MAX;
}
static inline uint64_t gcn_exec(const gcn_wave *wave) {
    return gcn_pair(wave, GCN_EXEC) & gcn_all(wave);
}
static inline uint64_t gcn_vcc(const gcn_wave *wave) {
    return gcn_pair(wave, GCN_VCC) & gcn_all(wave);
}

/* A scalar operand's value; both registers of 64 bits. */
static inline uint64_t gcn_scalar(const gcn_wave *wave, gcn_operand operand, bool wide) {
    if (operand.kind == GCN_CONSTANT) return operand.value;
    if (operand.kind == GCN_SCC) return wave->scc;
    if (operand.kind != GCN_SCALAR) return 0;
    return wide && operand.index != GCN_NULL ? gcn_pair(wave, operand.index) : wave->s[operand.index];
}
static inline void gcn_set_scalar(gcn_wave *wave, gcn_operand operand, uint64_t value, bool wide) {
    if (operand.kind != GCN_SCALAR || operand.index == GCN_NULL) return;
    wave->s[operand.index] = (uint32_t)value;
    if (wide) wave->s[operand.index + 1] = (uint32_t)(value >> 32);
}
static inline void gcn_set_mask(gcn_wave *wave, gcn_operand operand, uint64_t value) {
    gcn_set_scalar(wave, operand, value, wave->lanes == 64);
}

/* The operands of an instruction over the lanes, each as one or two rows. */
struct gcn_lanes {
    gcn_wave *wave;
    const gcn_instruction *now;
    uint32_t *to, *high, *mask; /* result, its second register, second result (0 or 1 per lane) */
    const uint32_t *a, *b, *c, *d, *a_high, *b_high, *c_high;
    int lanes;
};

/* vector.c and scalar.c: actions of forms that have only a function. */
void gcn_run_lanes(gcn_wave *wave, const gcn_instruction *now);
void gcn_run_scalar(gcn_wave *wave, const gcn_instruction *now);

/* vector.c: the rows of operand i with its modifiers applied; `room` holds computed rows. */
void gcn_fetch(gcn_wave *wave, const gcn_instruction *now, int i, uint32_t room[2][GCN_LANES], const uint32_t *rows[2]);

/* The row of an operand without modifiers; a scalar is copied to all lanes. */
static inline const uint32_t *gcn_row(gcn_wave *wave, gcn_operand operand, int word, uint32_t room[GCN_LANES]) {
    if (operand.kind == GCN_VECTOR) return wave->v[operand.index + word];
    const uint64_t value = gcn_scalar(wave, operand, word > 0);
    for (int l = 0; l < GCN_LANES; ++l) room[l] = (uint32_t)(value >> 32 * word);
    return room;
}

static inline unsigned gcn_count_bits(uint64_t x) {
    x -= x >> 1 & UINT64_C(0x5555555555555555);
    x = (x & UINT64_C(0x3333333333333333)) + (x >> 2 & UINT64_C(0x3333333333333333));
    return (unsigned)(((x + (x >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f)) * UINT64_C(0x0101010101010101) >> 56);
}

#endif
