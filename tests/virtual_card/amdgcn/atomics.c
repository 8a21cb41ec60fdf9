/* 32-bit atomic instructions on global memory and LDS. */
#include "access.h"

enum { ADD, SUB, MIN_SIGNED, MIN, MAX_SIGNED, MAX, AND, OR, XOR, EXCHANGE, COMPARE_AND_SWAP };

static uint32_t after(int operation, uint32_t old, uint32_t value, uint32_t expected) {
    switch (operation) {
    case ADD:
        return old + value;
    case SUB:
        return old - value;
    case MIN_SIGNED:
        return (int32_t)old < (int32_t)value ? old : value;
    case MIN:
        return old < value ? old : value;
    case MAX_SIGNED:
        return (int32_t)old > (int32_t)value ? old : value;
    case MAX:
        return old > value ? old : value;
    case AND:
        return old & value;
    case OR:
        return old | value;
    case XOR:
        return old ^ value;
    case COMPARE_AND_SWAP:
        return old == expected ? value : old;
    default:
        return value;
    }
}

/* Atomic on the host, because work-groups run on several threads. */
static uint32_t change(unsigned char *where, int operation, uint32_t value, uint32_t expected) {
    uint32_t *cell = (uint32_t *)(void *)where;
    uint32_t old = __atomic_load_n(cell, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(cell, &old, after(operation, old, value, expected), false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {
    }
    return old;
}

/* compare-and-swap: the new and the expected value are a register pair on global memory and two operands on
 * LDS, where gfx9 has the expected value first. */
static void run(gcn_wave *wave, const gcn_instruction *now, const uint64_t addresses[GCN_LANES], const uint32_t *value,
                const uint32_t *expected) {
    unsigned char *where[GCN_LANES];
    const uint64_t allowed =
        gcn_locate(wave, (gcn_space)now->form->space, gcn_exec(wave), addresses, 4, GCN_ATOMIC, where);
    for (int l = 0; l < wave->lanes; ++l) {
        if (!(allowed >> l & 1)) continue;
        const uint32_t old = change(where[l], now->form->code, value[l], expected[l]);
        if (now->returns) wave->v[now->to[0].index][l] = old;
    }
}

/* global_atomic_add [v,] vaddr, vdata, saddr. */
static void atomic_global(gcn_wave *wave, const gcn_instruction *now) {
    const gcn_operand *lane = &now->from[0], *data = &now->from[1], *base = &now->from[2];
    const uint64_t offset = (uint64_t)(int64_t)now->offset;
    uint64_t addresses[GCN_LANES];
    for (int l = 0; l < wave->lanes; ++l)
        addresses[l] =
            offset + wave->v[lane->index][l] +
            (base->kind == GCN_SCALAR ? gcn_scalar(wave, *base, true) : (uint64_t)wave->v[lane->index + 1][l] << 32);
    run(wave, now, addresses, wave->v[data->index], wave->v[data->index + 1]);
}

static void atomic_lds(gcn_wave *wave, const gcn_instruction *now) {
    uint64_t addresses[GCN_LANES];
    for (int l = 0; l < wave->lanes; ++l) addresses[l] = wave->v[now->from[0].index][l] + (uint32_t)now->offset;
    const bool swaps = now->form->code == COMPARE_AND_SWAP;
    const bool first = swaps && wave->group->kernel->module->generation == 9;
    run(wave, now, addresses, wave->v[now->from[first ? 2 : 1].index],
        wave->v[now->from[swaps && !first ? 2 : 1].index]);
}

#define GLOBAL(name, operation)                                                                                        \
    { "global_atomic_" name, "V=VVV", atomic_global, .space = GCN_GLOBAL, .element = 4, .code = operation }
#define LDS(name, type, operation)                                                                                     \
    {"ds_" name "_" type, "=VV", atomic_lds, .space = GCN_LDS, .element = 4, .code = operation}, {                     \
        "ds_" name "_rtn_" type, "V=VV", atomic_lds, .space = GCN_LDS, .element = 4, .code = operation                 \
    }

static const gcn_form forms[] = {
    GLOBAL("add", ADD),
    GLOBAL("add_u32", ADD),
    GLOBAL("sub", SUB),
    GLOBAL("sub_u32", SUB),
    GLOBAL("smin", MIN_SIGNED),
    GLOBAL("min_i32", MIN_SIGNED),
    GLOBAL("umin", MIN),
    GLOBAL("min_u32", MIN),
    GLOBAL("smax", MAX_SIGNED),
    GLOBAL("max_i32", MAX_SIGNED),
    GLOBAL("umax", MAX),
    GLOBAL("max_u32", MAX),
    GLOBAL("and", AND),
    GLOBAL("and_b32", AND),
    GLOBAL("or", OR),
    GLOBAL("or_b32", OR),
    GLOBAL("xor", XOR),
    GLOBAL("xor_b32", XOR),
    GLOBAL("swap", EXCHANGE),
    GLOBAL("swap_b32", EXCHANGE),
    GLOBAL("cmpswap", COMPARE_AND_SWAP),
    GLOBAL("cmpswap_b32", COMPARE_AND_SWAP),
    LDS("add", "u32", ADD),
    LDS("sub", "u32", SUB),
    LDS("min", "i32", MIN_SIGNED),
    LDS("min", "u32", MIN),
    LDS("max", "i32", MAX_SIGNED),
    LDS("max", "u32", MAX),
    LDS("and", "b32", AND),
    LDS("or", "b32", OR),
    LDS("xor", "b32", XOR),
    {"ds_wrxchg_rtn_b32", "V=VV", atomic_lds, .space = GCN_LDS, .element = 4, .code = EXCHANGE},
    {"ds_storexchg_rtn_b32", "V=VV", atomic_lds, .space = GCN_LDS, .element = 4, .code = EXCHANGE},
    {"ds_cmpst_b32", "=VVV", atomic_lds, .space = GCN_LDS, .element = 4, .code = COMPARE_AND_SWAP},
    {"ds_cmpst_rtn_b32", "V=VVV", atomic_lds, .space = GCN_LDS, .element = 4, .code = COMPARE_AND_SWAP},
    {"ds_cmpstore_b32", "=VVV", atomic_lds, .space = GCN_LDS, .element = 4, .code = COMPARE_AND_SWAP},
    {"ds_cmpstore_rtn_b32", "V=VVV", atomic_lds, .space = GCN_LDS, .element = 4, .code = COMPARE_AND_SWAP},
};

const gcn_table gcn_atomic_table = GCN_TABLE(forms);
