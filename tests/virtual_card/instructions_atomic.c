/* Atomic instructions, on global and shared memory. */
#include "access.h"

#include <string.h>

enum {
    ADD,
    MIN,
    MAX,
    MIN_SIGNED,
    MAX_SIGNED,
    AND,
    OR,
    XOR,
    EXCHANGE,
    COMPARE_AND_SWAP,
    INCREMENT,
    DECREMENT,
    ADD_FLOAT
};

static uint32_t add_floats(uint32_t a, uint32_t b) {
    float x, y;
    memcpy(&x, &a, sizeof x), memcpy(&y, &b, sizeof y);
    x += y;
    memcpy(&a, &x, sizeof a);
    return a;
}

/* The new memory value; `swap` is the second operand of cas. 32-bit operands are sign-extended, which
 * preserves their signed and unsigned order; their result is the lower half. */
static uint64_t after(int operation, uint64_t old, uint64_t value, uint64_t swap) {
    switch (operation) {
    case ADD:
        return old + value;
    case MIN:
        return old < value ? old : value;
    case MAX:
        return old > value ? old : value;
    case MIN_SIGNED:
        return (int64_t)old < (int64_t)value ? old : value;
    case MAX_SIGNED:
        return (int64_t)old > (int64_t)value ? old : value;
    case AND:
        return old & value;
    case OR:
        return old | value;
    case XOR:
        return old ^ value;
    case COMPARE_AND_SWAP:
        return old == value ? swap : old;
    case INCREMENT:
        return old >= value ? 0 : old + 1;
    case DECREMENT:
        return old == 0 || old > value ? value : old - 1;
    case ADD_FLOAT:
        return add_floats((uint32_t)old, (uint32_t)value);
    default:
        return value;
    }
}

static uint64_t extended_32(uint32_t x) {
    return (uint64_t)(int64_t)(int32_t)x;
}
static uint64_t extended_64(uint64_t x) {
    return x;
}

/* One lane after the other. Host atomics are needed because other threads run groups on the same memory. */
#define UPDATE(name, type, extended)                                                                                   \
    static void name(ptx_warp *warp, const ptx_instruction *now, uint32_t mask) {                                      \
        uint64_t addresses[PTX_LANES];                                                                                 \
        unsigned char *where[PTX_LANES];                                                                               \
        ptx_addresses(warp, now->from[0], addresses);                                                                  \
        mask = ptx_locate(warp, now, mask, addresses, sizeof(type), PTX_ATOMIC, where);                                \
        type value[PTX_LANES], swap[PTX_LANES], *to = now->n_to ? ptx_at_operand(warp, now->to[0]) : NULL;             \
        memcpy(value, ptx_at_operand(warp, now->from[1]), sizeof value);                                               \
        memcpy(swap, ptx_at_operand(warp, now->from[now->n_from - 1]), sizeof swap);                                   \
        for (int l = 0; l < PTX_LANES; ++l) {                                                                          \
            if (!(mask >> l & 1)) continue;                                                                            \
            type *at = (type *)(void *)where[l], old = __atomic_load_n(at, __ATOMIC_SEQ_CST);                          \
            type next;                                                                                                 \
            do {                                                                                                       \
                next = (type)after(now->code, extended(old), extended(value[l]), extended(swap[l]));                   \
            } while (!__atomic_compare_exchange_n(at, &old, next, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));         \
            if (to) to[l] = old;                                                                                       \
        }                                                                                                              \
    }
UPDATE(update_32, uint32_t, extended_32)
UPDATE(update_64, uint64_t, extended_64)

#define SCOPES "[.relaxed|.acquire|.release|.acq_rel][.cta|.gpu|.sys][.global|.shared|.shared::cta]"
#define BOTH(name, types, letter, action, operation, size)                                                             \
    {"atom" SCOPES name types, letter "=m" letter, action, operation, size, 1}, {                                      \
        "red" SCOPES name types, "=m" letter, action, operation, size, 1                                               \
    }
/* clang-format off: a row a line */
static const ptx_form forms[] = {
    BOTH(".add", "(.u32|.s32)", "w", update_32, ADD, 4),
    BOTH(".min", ".u32", "w", update_32, MIN, 4),
    BOTH(".max", ".u32", "w", update_32, MAX, 4),
    BOTH(".min", ".s32", "w", update_32, MIN_SIGNED, 4),
    BOTH(".max", ".s32", "w", update_32, MAX_SIGNED, 4),
    BOTH(".and", ".b32", "w", update_32, AND, 4),
    BOTH(".or", ".b32", "w", update_32, OR, 4),
    BOTH(".xor", ".b32", "w", update_32, XOR, 4),
    BOTH(".inc", ".u32", "w", update_32, INCREMENT, 4),
    BOTH(".dec", ".u32", "w", update_32, DECREMENT, 4),
    BOTH(".add", ".f32", "w", update_32, ADD_FLOAT, 4),
    BOTH(".add", "(.u64|.s64)", "l", update_64, ADD, 8),
    BOTH(".min", ".u64", "l", update_64, MIN, 8),
    BOTH(".max", ".u64", "l", update_64, MAX, 8),
    BOTH(".min", ".s64", "l", update_64, MIN_SIGNED, 8),
    BOTH(".max", ".s64", "l", update_64, MAX_SIGNED, 8),
    BOTH(".and", ".b64", "l", update_64, AND, 8),
    BOTH(".or", ".b64", "l", update_64, OR, 8),
    BOTH(".xor", ".b64", "l", update_64, XOR, 8),
    {"atom" SCOPES ".exch.b32", "w=mw", update_32, EXCHANGE, 4, 1},
    {"atom" SCOPES ".exch.b64", "l=ml", update_64, EXCHANGE, 8, 1},
    {"atom" SCOPES ".cas.b32", "w=mww", update_32, COMPARE_AND_SWAP, 4, 1},
    {"atom" SCOPES ".cas.b64", "l=mll", update_64, COMPARE_AND_SWAP, 8, 1},
};
/* clang-format on */

const ptx_table ptx_atomic_table = PTX_TABLE(forms);
