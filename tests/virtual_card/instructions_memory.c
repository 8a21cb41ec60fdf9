/* Loads, stores and address conversions. */
#include "access.h"

#include <string.h>

/* Copies the elements of all lanes into a register of the same or a larger width, zero- or sign-extended. */
typedef void fill_register(void *register_of_lanes, uint32_t mask, size_t at, unsigned char *const where[PTX_LANES]);
#define FILL(name, from_type, to_type)                                                                                 \
    static void name(void *register_of_lanes, uint32_t mask, size_t at, unsigned char *const where[PTX_LANES]) {       \
        to_type *to = register_of_lanes;                                                                               \
        for (int l = 0; l < PTX_LANES; ++l) {                                                                          \
            from_type element;                                                                                         \
            memcpy(&element, where[l] + at, sizeof element);                                                           \
            if (mask == PTX_ALL || mask >> l & 1) to[l] = (to_type)element;                                            \
        }                                                                                                              \
    }
FILL(fill_8_16, uint8_t, uint16_t)
FILL(fill_8_32, uint8_t, uint32_t)
FILL(fill_8_64, uint8_t, uint64_t)
FILL(fill_16_16, uint16_t, uint16_t)
FILL(fill_16_32, uint16_t, uint32_t)
FILL(fill_16_64, uint16_t, uint64_t)
FILL(fill_32_32, uint32_t, uint32_t)
FILL(fill_32_64, uint32_t, uint64_t)
FILL(fill_64_64, uint64_t, uint64_t)
FILL(fill_s8_16, int8_t, int16_t)
FILL(fill_s8_32, int8_t, int32_t)
FILL(fill_s8_64, int8_t, int64_t)
FILL(fill_s16_32, int16_t, int32_t)
FILL(fill_s16_64, int16_t, int64_t)
FILL(fill_s32_64, int32_t, int64_t)

/* Indexed by log2 of the element and register bytes; [1]: sign-extended. */
static fill_register *const fills[2][4][4] = {{{NULL, fill_8_16, fill_8_32, fill_8_64},
                                               {NULL, fill_16_16, fill_16_32, fill_16_64},
                                               {NULL, NULL, fill_32_32, fill_32_64},
                                               {NULL, NULL, NULL, fill_64_64}},
                                              {{NULL, fill_s8_16, fill_s8_32, fill_s8_64},
                                               {NULL, fill_16_16, fill_s16_32, fill_s16_64},
                                               {NULL, NULL, fill_32_32, fill_s32_64},
                                               {NULL, NULL, NULL, fill_64_64}}};

/* Copies the elements of all lanes from the low bytes of a register with `width` bytes per lane. */
typedef void spill_register(const unsigned char *from, size_t width, uint32_t mask, size_t at,
                            unsigned char *const where[PTX_LANES]);
#define SPILL(name, type)                                                                                              \
    static void name(const unsigned char *from, size_t width, uint32_t mask, size_t at,                                \
                     unsigned char *const where[PTX_LANES]) {                                                          \
        for (size_t l = 0; l < PTX_LANES; ++l)                                                                         \
            if (mask >> l & 1) memcpy(where[l] + at, from + l * width, sizeof(type));                                  \
    }
SPILL(spill_8, uint8_t)
SPILL(spill_16, uint16_t)
SPILL(spill_32, uint32_t)
SPILL(spill_64, uint64_t)
static spill_register *const spills[4] = {spill_8, spill_16, spill_32, spill_64};

static void load(ptx_warp *warp, const ptx_instruction *now, uint32_t mask) {
    uint64_t addresses[PTX_LANES];
    unsigned char *where[PTX_LANES];
    ptx_addresses(warp, now->from[0], addresses);
    ptx_locate(warp, now, mask, addresses, (uint32_t)now->element * now->vector, PTX_LOAD, where);
    for (size_t k = 0; k < now->vector; ++k) {
        const ptx_operand to = now->to[k];
        fills[now->code][__builtin_ctz(now->element)][__builtin_ctz(to.width)](ptx_at_operand(warp, to), mask,
                                                                               k * now->element, where);
    }
}

static void store(ptx_warp *warp, const ptx_instruction *now, uint32_t mask) {
    uint64_t addresses[PTX_LANES];
    unsigned char *where[PTX_LANES];
    ptx_addresses(warp, now->from[0], addresses);
    mask = ptx_locate(warp, now, mask, addresses, (uint32_t)now->element * now->vector, PTX_STORE, where);
    for (size_t k = 0; k < now->vector; ++k) {
        const ptx_operand from = now->from[1 + k];
        spills[__builtin_ctz(now->element)](ptx_at_operand(warp, from), from.width, mask, k * now->element, where);
    }
}

/* cvta: converts an address in a space to a generic one (code 0), or back (code 1). */
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
/* A lane moves up to 16 bytes, so vectors of four 64-bit elements do not exist. */
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
