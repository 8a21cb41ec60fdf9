/* Loads and stores: scalar, global, flat, scratch. */
#include "access.h"

/* --- scalar loads */

static void load_scalar(gcn_wave *wave, const gcn_instruction *now) {
    const uint32_t bytes = 4u * now->form->count;
    const uint32_t added = (uint32_t)gcn_scalar(wave, now->from[1], false);
    const bool is_signed = now->from[1].kind == GCN_CONSTANT;
    const uint64_t address = gcn_scalar(wave, now->from[0], true) + (uint64_t)(int64_t)now->offset +
                             (is_signed ? (uint64_t)(int64_t)(int32_t)added : added);
    const unsigned char *from = gcn_locate_scalar(wave, address & ~UINT64_C(3), bytes);
    if (from && now->to[0].index + now->form->count <= GCN_SCALARS) memcpy(&wave->s[now->to[0].index], from, bytes);
}

/* --- addresses */

/* Global addresses: 64 bits per lane, or a scalar base and 32 bits per lane. */
static void global_addresses(gcn_wave *wave, const gcn_instruction *now, const gcn_operand *lane,
                             const gcn_operand *base, uint64_t addresses[GCN_LANES]) {
    const uint64_t offset = (uint64_t)(int64_t)now->offset;
    const uint32_t(*v)[GCN_LANES] = (const uint32_t(*)[GCN_LANES])wave->v + lane->index;
    if (base && base->kind == GCN_SCALAR) {
        const uint64_t start = gcn_scalar(wave, *base, true) + offset;
        for (int l = 0; l < wave->lanes; ++l) addresses[l] = start + v[0][l];
    } else {
        for (int l = 0; l < wave->lanes; ++l) addresses[l] = (v[0][l] | (uint64_t)v[1][l] << 32) + offset;
    }
}

/* Offsets in a lane's scratch. Loads and stores both omit the resource and the wave's offset. */
static void scratch_addresses(gcn_wave *wave, const gcn_instruction *now, const gcn_operand *lane,
                              const gcn_operand *base, uint64_t addresses[GCN_LANES]) {
    const uint32_t start = (uint32_t)gcn_scalar(wave, *base, false) + (uint32_t)now->offset;
    for (int l = 0; l < wave->lanes; ++l)
        addresses[l] = start + (lane->kind == GCN_VECTOR ? wave->v[lane->index][l] : 0);
}

/* --- loads and stores at host addresses */

static uint32_t extended(uint32_t value, uint32_t old, const gcn_form *form) {
    const bool byte = form->element == 1;
    switch (form->extend) {
    case GCN_SIGNS:
        return (uint32_t)(byte ? (int32_t)(int8_t)value : (int32_t)(int16_t)value);
    case GCN_LOW_HALF:
        return (old & 0xffff0000u) | value;
    case GCN_HIGH_HALF:
        return (old & 0xffffu) | value << 16;
    default:
        return value;
    }
}

static void load(gcn_wave *wave, const gcn_instruction *now, const uint64_t addresses[GCN_LANES]) {
    const gcn_form *form = now->form;
    unsigned char *where[GCN_LANES];
    uint32_t(*to)[GCN_LANES] = &wave->v[now->to[0].index];
    const uint64_t allowed =
        gcn_locate(wave, (gcn_space)form->space, gcn_exec(wave), addresses, form->element, GCN_LOAD, where);
    for (int l = 0; l < wave->lanes; ++l) {
        uint32_t words[4] = {0};
        if (!(allowed >> l & 1)) continue;
        memcpy(words, where[l], form->element);
        if (form->element < 4) words[0] = extended(words[0], to[0][l], form);
        for (int k = 0; k < form->count; ++k) to[k][l] = words[k];
    }
}

static void store(gcn_wave *wave, const gcn_instruction *now, const gcn_operand *data,
                  const uint64_t addresses[GCN_LANES]) {
    const gcn_form *form = now->form;
    unsigned char *where[GCN_LANES];
    const uint32_t(*from)[GCN_LANES] = (const uint32_t(*)[GCN_LANES])wave->v + data->index;
    const uint64_t allowed =
        gcn_locate(wave, (gcn_space)form->space, gcn_exec(wave), addresses, form->element, GCN_STORE, where);
    for (int l = 0; l < wave->lanes; ++l) {
        uint32_t words[4];
        if (!(allowed >> l & 1)) continue;
        for (int k = 0; k < form->count; ++k) words[k] = from[k][l];
        if (form->extend == GCN_HIGH_HALF) words[0] >>= 16;
        memcpy(where[l], words, form->element);
    }
}

/* global_load v, vaddr, saddr; global_store vaddr, v, saddr; flat_ without saddr. */
static void load_global(gcn_wave *wave, const gcn_instruction *now) {
    uint64_t addresses[GCN_LANES];
    global_addresses(wave, now, &now->from[0], now->n_from > 1 ? &now->from[1] : NULL, addresses);
    load(wave, now, addresses);
}
static void store_global(gcn_wave *wave, const gcn_instruction *now) {
    uint64_t addresses[GCN_LANES];
    global_addresses(wave, now, &now->from[0], now->n_from > 2 ? &now->from[2] : NULL, addresses);
    store(wave, now, &now->from[1], addresses);
}
/* scratch_load v, vaddr, saddr; buffer_load v, vaddr, resource, soffset. */
static void load_scratch(gcn_wave *wave, const gcn_instruction *now) {
    uint64_t addresses[GCN_LANES];
    scratch_addresses(wave, now, &now->from[0], &now->from[1], addresses);
    load(wave, now, addresses);
}
static void store_scratch(gcn_wave *wave, const gcn_instruction *now) {
    uint64_t addresses[GCN_LANES];
    scratch_addresses(wave, now, &now->from[0], &now->from[2], addresses);
    store(wave, now, &now->from[1], addresses);
}
static void load_buffer(gcn_wave *wave, const gcn_instruction *now) {
    uint64_t addresses[GCN_LANES];
    scratch_addresses(wave, now, &now->from[0], &now->from[2], addresses);
    load(wave, now, addresses);
}
static void store_buffer(gcn_wave *wave, const gcn_instruction *now) {
    uint64_t addresses[GCN_LANES];
    scratch_addresses(wave, now, &now->from[1], &now->from[3], addresses);
    store(wave, now, &now->from[0], addresses);
}

#define MEMORY(name, letters, action, where, bytes, words, how)                                                        \
    { name, letters, action, .space = where, .element = bytes, .count = words, .extend = how }
/* gfx9 and gfx11 names. */
#define LOADS(prefix, letters, action, where)                                                                          \
    MEMORY(prefix "_load_ubyte", letters, action, where, 1, 1, GCN_ZEROS),                                             \
        MEMORY(prefix "_load_u8", letters, action, where, 1, 1, GCN_ZEROS),                                            \
        MEMORY(prefix "_load_sbyte", letters, action, where, 1, 1, GCN_SIGNS),                                         \
        MEMORY(prefix "_load_i8", letters, action, where, 1, 1, GCN_SIGNS),                                            \
        MEMORY(prefix "_load_ushort", letters, action, where, 2, 1, GCN_ZEROS),                                        \
        MEMORY(prefix "_load_u16", letters, action, where, 2, 1, GCN_ZEROS),                                           \
        MEMORY(prefix "_load_sshort", letters, action, where, 2, 1, GCN_SIGNS),                                        \
        MEMORY(prefix "_load_i16", letters, action, where, 2, 1, GCN_SIGNS),                                           \
        MEMORY(prefix "_load_ubyte_d16", letters, action, where, 1, 1, GCN_LOW_HALF),                                  \
        MEMORY(prefix "_load_d16_u8", letters, action, where, 1, 1, GCN_LOW_HALF),                                     \
        MEMORY(prefix "_load_ubyte_d16_hi", letters, action, where, 1, 1, GCN_HIGH_HALF),                              \
        MEMORY(prefix "_load_d16_hi_u8", letters, action, where, 1, 1, GCN_HIGH_HALF),                                 \
        MEMORY(prefix "_load_short_d16", letters, action, where, 2, 1, GCN_LOW_HALF),                                  \
        MEMORY(prefix "_load_d16_b16", letters, action, where, 2, 1, GCN_LOW_HALF),                                    \
        MEMORY(prefix "_load_short_d16_hi", letters, action, where, 2, 1, GCN_HIGH_HALF),                              \
        MEMORY(prefix "_load_d16_hi_b16", letters, action, where, 2, 1, GCN_HIGH_HALF),                                \
        MEMORY(prefix "_load_dword", letters, action, where, 4, 1, GCN_ZEROS),                                         \
        MEMORY(prefix "_load_b32", letters, action, where, 4, 1, GCN_ZEROS),                                           \
        MEMORY(prefix "_load_dwordx2", letters, action, where, 8, 2, GCN_ZEROS),                                       \
        MEMORY(prefix "_load_b64", letters, action, where, 8, 2, GCN_ZEROS),                                           \
        MEMORY(prefix "_load_dwordx3", letters, action, where, 12, 3, GCN_ZEROS),                                      \
        MEMORY(prefix "_load_b96", letters, action, where, 12, 3, GCN_ZEROS),                                          \
        MEMORY(prefix "_load_dwordx4", letters, action, where, 16, 4, GCN_ZEROS),                                      \
        MEMORY(prefix "_load_b128", letters, action, where, 16, 4, GCN_ZEROS)
#define STORES(prefix, letters, action, where)                                                                         \
    MEMORY(prefix "_store_byte", letters, action, where, 1, 1, GCN_ZEROS),                                             \
        MEMORY(prefix "_store_b8", letters, action, where, 1, 1, GCN_ZEROS),                                           \
        MEMORY(prefix "_store_byte_d16_hi", letters, action, where, 1, 1, GCN_HIGH_HALF),                              \
        MEMORY(prefix "_store_d16_hi_b8", letters, action, where, 1, 1, GCN_HIGH_HALF),                                \
        MEMORY(prefix "_store_short", letters, action, where, 2, 1, GCN_ZEROS),                                        \
        MEMORY(prefix "_store_b16", letters, action, where, 2, 1, GCN_ZEROS),                                          \
        MEMORY(prefix "_store_short_d16_hi", letters, action, where, 2, 1, GCN_HIGH_HALF),                             \
        MEMORY(prefix "_store_d16_hi_b16", letters, action, where, 2, 1, GCN_HIGH_HALF),                               \
        MEMORY(prefix "_store_dword", letters, action, where, 4, 1, GCN_ZEROS),                                        \
        MEMORY(prefix "_store_b32", letters, action, where, 4, 1, GCN_ZEROS),                                          \
        MEMORY(prefix "_store_dwordx2", letters, action, where, 8, 2, GCN_ZEROS),                                      \
        MEMORY(prefix "_store_b64", letters, action, where, 8, 2, GCN_ZEROS),                                          \
        MEMORY(prefix "_store_dwordx3", letters, action, where, 12, 3, GCN_ZEROS),                                     \
        MEMORY(prefix "_store_b96", letters, action, where, 12, 3, GCN_ZEROS),                                         \
        MEMORY(prefix "_store_dwordx4", letters, action, where, 16, 4, GCN_ZEROS),                                     \
        MEMORY(prefix "_store_b128", letters, action, where, 16, 4, GCN_ZEROS)

static const gcn_form forms[] = {
    {"s_load_dword", "V=VV", load_scalar, .count = 1},     {"s_load_b32", "V=VV", load_scalar, .count = 1},
    {"s_load_dwordx2", "V=VV", load_scalar, .count = 2},   {"s_load_b64", "V=VV", load_scalar, .count = 2},
    {"s_load_dwordx4", "V=VV", load_scalar, .count = 4},   {"s_load_b128", "V=VV", load_scalar, .count = 4},
    {"s_load_dwordx8", "V=VV", load_scalar, .count = 8},   {"s_load_b256", "V=VV", load_scalar, .count = 8},
    {"s_load_dwordx16", "V=VV", load_scalar, .count = 16}, {"s_load_b512", "V=VV", load_scalar, .count = 16},
    LOADS("global", "V=VV", load_global, GCN_GLOBAL),      STORES("global", "=VVV", store_global, GCN_GLOBAL),
    LOADS("flat", "V=V", load_global, GCN_FLAT),           STORES("flat", "=VV", store_global, GCN_FLAT),
    LOADS("buffer", "V=VVV", load_buffer, GCN_SCRATCH),    STORES("buffer", "=VVVV", store_buffer, GCN_SCRATCH),
    LOADS("scratch", "V=VV", load_scratch, GCN_SCRATCH),   STORES("scratch", "=VVV", store_scratch, GCN_SCRATCH),
};

const gcn_table gcn_global_table = GCN_TABLE(forms);
