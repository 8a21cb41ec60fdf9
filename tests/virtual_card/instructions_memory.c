/* Loads and stores, and conversions of addresses. */
#include "access.h"

#include <string.h>

/* Elements of all lanes into a register. A wider one is filled with zeros, or with the sign (code 1). */
static void fill_register(ptx_warp *warp, const ptx_instruction *now, ptx_operand operand, uint32_t mask, size_t at,
                          unsigned char *const where[PTX_LANES]) {
    unsigned char *to = ptx_at_operand(warp, operand);
    const int shift = 64 - 8 * now->element;
    for (size_t l = 0; l < PTX_LANES; ++l) {
        if (!(mask >> l & 1)) continue;
        uint64_t bits = 0;
        memcpy(&bits, where[l] + at, now->element);
        if (now->code) bits = (uint64_t)((int64_t)(bits << shift) >> shift);
        memcpy(to + l * operand.width, &bits, operand.width);
    }
}

/* Registers of the element's width. */
#define FILL(name, type)                                                                                               \
    static void name(ptx_warp *warp, ptx_operand operand, uint32_t mask, size_t at,                                    \
                     unsigned char *const where[PTX_LANES]) {                                                          \
        type *to = ptx_at_operand(warp, operand);                                                                      \
        for (int l = 0; l < PTX_LANES; ++l)                                                                            \
            if (mask >> l & 1) memcpy(&to[l], where[l] + at, sizeof(type));                                            \
    }
FILL(fill_16, uint16_t)
FILL(fill_32, uint32_t)
FILL(fill_64, uint64_t)

static void load(ptx_warp *warp, const ptx_instruction *now, uint32_t mask) {
    uint64_t addresses[PTX_LANES];
    unsigned char *where[PTX_LANES];
    ptx_addresses(warp, now->from[0], addresses);
    ptx_locate(warp, now, mask, addresses, (uint32_t)now->element * now->vector, PTX_LOAD, where);
    for (size_t k = 0; k < now->vector; ++k) {
        const ptx_operand to = now->to[k];
        const size_t at = k * now->element;
        if (to.width != now->element)
            fill_register(warp, now, to, mask, at, where);
        else if (to.width == 4)
            fill_32(warp, to, mask, at, where);
        else if (to.width == 2)
            fill_16(warp, to, mask, at, where);
        else
            fill_64(warp, to, mask, at, where);
    }
}

static void store(ptx_warp *warp, const ptx_instruction *now, uint32_t mask) {
    uint64_t addresses[PTX_LANES];
    unsigned char *where[PTX_LANES];
    ptx_addresses(warp, now->from[0], addresses);
    mask = ptx_locate(warp, now, mask, addresses, (uint32_t)now->element * now->vector, PTX_STORE, where);
    for (size_t k = 0; k < now->vector; ++k) {
        const ptx_operand operand = now->from[1 + k];
        const unsigned char *from = ptx_at_operand(warp, operand);
        for (size_t l = 0; l < PTX_LANES; ++l)
            if (mask >> l & 1) memcpy(where[l] + k * now->element, from + l * operand.width, now->element);
    }
}

/* cvta: from an address of a space to one without (code 0), and back (code 1). */
static void convert_address(ptx_warp *warp, const ptx_instruction *now, uint32_t mask) {
    const uint64_t window = now->space == PTX_SHARED  ? PTX_SHARED_WINDOW
                            : now->space == PTX_LOCAL ? PTX_LOCAL_WINDOW
                                                      : 0;
    uint64_t *to = ptx_at_operand(warp, now->to[0]);
    const uint64_t *from = ptx_at_operand(warp, now->from[0]);
    const uint64_t add = now->code ? 0 - window : window;
    PTX_EACH_LANE(uint64_t, to, mask, from[l] + add);
}

/* --- the table: types of 1, 2, 4 and 8 bytes, vectors of 1, 2 and 4 */

#define LOAD                                                                                                           \
    "ld[.volatile|.weak|.relaxed|.acquire][.cta|.gpu|.sys][.global|.shared|.shared::cta|.local|.param|.const][.nc]"    \
    "[.ca|.cg|.cs|.cv|.lu]"
#define STORE                                                                                                          \
    "st[.volatile|.weak|.relaxed|.release][.cta|.gpu|.sys][.global|.shared|.shared::cta|.local]"                       \
    "[.wb|.cg|.cs|.wt]"
/* A lane moves up to 16 bytes: there are no vectors of four 64-bit elements. */
#define PAIRS(types, size, is_signed)                                                                                  \
    {LOAD types, "x=m", load, is_signed, size, 1}, {LOAD ".v2" types, "{xx}=m", load, is_signed, size, 2},             \
        {STORE types, "=mx", store, 0, size, 1}, {STORE ".v2" types, "=m{xx}", store, 0, size, 2},
#define VECTORS(types, size, is_signed)                                                                                \
    PAIRS(types, size, is_signed){LOAD ".v4" types, "{xxxx}=m", load, is_signed, size, 4},                             \
        {STORE ".v4" types, "=m{xxxx}", store, 0, size, 4},

static const ptx_form forms[] = {
    VECTORS("(.b32|.u32|.f32)", 4, 0) VECTORS("(.b16|.u16|.f16|.bf16)", 2, 0) PAIRS("(.b64|.u64|.s64|.f64)", 8, 0)
        VECTORS("(.b8|.u8)", 1, 0) VECTORS(".s32", 4, 1) VECTORS(".s16", 2, 1)
            VECTORS(".s8", 1, 1){"cvta(.global|.shared|.local|.const|.param).u64", "l=l", convert_address, 0},
    {"cvta.to(.global|.shared|.local|.const|.param).u64", "l=l", convert_address, 1},
};
const ptx_table ptx_memory_table = PTX_TABLE(forms);
