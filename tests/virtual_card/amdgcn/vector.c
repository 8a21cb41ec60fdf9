/* Vector instructions: fetch operands with their modifiers, store results. */
#include "wave.h"

#include "../lanes.h"

/* --- operands */

/* The register bits that SDWA selects. */
static uint32_t part_of(uint32_t value, uint8_t part, bool sign) {
    if (part == GCN_DWORD) return value;
    if (part >= GCN_WORD0) {
        const uint32_t word = value >> 16 * (part - GCN_WORD0) & 0xffffu;
        return sign ? (uint32_t)(int32_t)(int16_t)word : word;
    }
    const uint32_t byte = value >> 8 * (part - GCN_BYTE0) & 0xffu;
    return sign ? (uint32_t)(int32_t)(int8_t)byte : byte;
}

static uint32_t swap_halves(uint32_t value, bool low, bool high) {
    const uint32_t first = low ? value >> 16 : value & 0xffffu, second = high ? value >> 16 : value & 0xffffu;
    return first | second << 16;
}

/* Applies neg and abs to a float with this sign bit. */
static uint32_t signed_as(uint32_t value, const gcn_operand *operand, uint32_t bit) {
    if (operand->absolute) value &= ~bit;
    return operand->negate ? value ^ bit : value;
}

/* One register of an operand with its modifiers applied. */
static uint32_t modified(uint32_t value, const gcn_instruction *now, int i) {
    const gcn_operand *operand = &now->from[i];
    const bool low = now->op_sel >> i & 1, high = now->op_sel_hi >> i & 1;
    value = part_of(value, operand->part, operand->sign);
    switch (operand->type) {
    case 'f':
        return signed_as(value, operand, 0x80000000u);
    case 'h':
        return signed_as(low ? value >> 16 : value, operand, 0x8000u) & 0xffffu;
    case 'w':
        return low ? value >> 16 : value;
    case 'x':
        if (high) value = ptx_float_bits(ptx_from_f16((uint16_t)(low ? value >> 16 : value)));
        return signed_as(value, operand, 0x80000000u);
    case 'P':
        value = swap_halves(value, low, high);
        if (now->negate_low >> i & 1) value ^= 0x8000u;
        if (now->negate_high >> i & 1) value ^= 0x80000000u;
        return value;
    case 'I':
        return swap_halves(value, low, high);
    default:
        return value;
    }
}

static bool needs_copy(const gcn_wave *wave, const gcn_instruction *now, int i) {
    const gcn_operand *operand = &now->from[i];
    const bool low = now->op_sel >> i & 1, high = now->op_sel_hi >> i & 1;
    (void)wave;
    if (operand->part || operand->negate || operand->absolute) return true;
    switch (operand->type) {
    case 'h':
    case 'w':
        return true; /* the upper half is unused */
    case 'P':
    case 'I':
        return low || !high || ((now->negate_low | now->negate_high) >> i & 1);
    case 'x':
        return high;
    default:
        return false;
    }
}

/* The lane that lane l reads under DPP; -1: none. */
static int dpp_lane(const gcn_instruction *now, int l) {
    const int row = l & ~15, in_row = l & 15, value = now->dpp_value;
    switch (now->dpp) {
    case GCN_QUAD_PERM:
        return (l & ~3) + (value >> 2 * (l & 3) & 3);
    case GCN_ROW_SHL:
        return in_row + value < 16 ? l + value : -1;
    case GCN_ROW_SHR:
        return in_row >= value ? l - value : -1;
    case GCN_ROW_ROR:
        return row + ((in_row - value) & 15);
    case GCN_WAVE_SHL:
        return l < GCN_LANES - 1 ? l + 1 : -1;
    case GCN_WAVE_SHR:
        return l - 1;
    case GCN_ROW_MIRROR:
        return row + 15 - in_row;
    case GCN_ROW_HALF_MIRROR:
        return (l & ~7) + 7 - (l & 7);
    case GCN_ROW_BCAST15:
        return row - 1;
    case GCN_ROW_BCAST31:
        return (l & ~31) - 1;
    case GCN_ROW_SHARE:
        return row + value;
    case GCN_ROW_XMASK:
        return row + (in_row ^ value);
    default:
        return l;
    }
}

/* Returns the lanes that write, and replaces the first operand's rows with those that DPP reads. */
static uint64_t apply_dpp(const gcn_wave *wave, const gcn_instruction *now, uint64_t exec, const uint32_t *from,
                          uint32_t to[GCN_LANES]) {
    uint64_t writes = exec;
    for (int l = 0; l < wave->lanes; ++l) {
        const int other = dpp_lane(now, l);
        const bool valid = other >= 0 && (exec >> other & 1);
        const bool enabled = (now->row_mask >> (l >> 4) & 1) && (now->bank_mask >> (l >> 2 & 3) & 1);
        to[l] = valid ? from[other] : 0;
        if (!enabled || (!valid && !now->bound_zero)) writes &= ~(UINT64_C(1) << l);
    }
    return writes;
}

static void fill(uint32_t row[GCN_LANES], uint32_t value) {
    for (int l = 0; l < GCN_LANES; ++l) row[l] = value;
}

static void fetch_mask(gcn_wave *wave, gcn_operand operand, uint32_t row[GCN_LANES]) {
    const uint64_t bits = gcn_scalar(wave, operand, wave->lanes == 64);
    for (int l = 0; l < GCN_LANES; ++l) row[l] = bits >> l & 1;
}

/* Two f32 in two registers; each half of the result can read either. */
static void fetch_floats(gcn_wave *wave, const gcn_instruction *now, int i, uint32_t room[2][GCN_LANES],
                         const uint32_t *rows[2]) {
    const gcn_operand *operand = &now->from[i];
    const bool sel[2] = {now->op_sel >> i & 1, now->op_sel_hi >> i & 1};
    const bool negate[2] = {now->negate_low >> i & 1, now->negate_high >> i & 1};
    for (int k = 0; k < 2; ++k) {
        rows[k] = gcn_row(wave, *operand, sel[k], room[k]);
        if (!negate[k]) continue;
        for (int l = 0; l < GCN_LANES; ++l) room[k][l] = rows[k][l] ^ 0x80000000u;
        rows[k] = room[k];
    }
}

void gcn_fetch(gcn_wave *wave, const gcn_instruction *now, int i, uint32_t room[2][GCN_LANES],
               const uint32_t *rows[2]) {
    const gcn_operand *operand = &now->from[i];
    const bool wide = operand->type == 'q' || operand->type == 'd';
    rows[0] = rows[1] = room[0];
    if (operand->type == 'm') {
        fetch_mask(wave, *operand, room[0]);
    } else if (operand->type == 'F') {
        fetch_floats(wave, now, i, room, rows);
    } else if (operand->kind != GCN_VECTOR) {
        const uint64_t value = gcn_scalar(wave, *operand, wide);
        fill(room[0], modified((uint32_t)value, now, i));
        if (wide) {
            const uint32_t high = (uint32_t)(value >> 32);
            fill(room[1], operand->type == 'd' ? signed_as(high, operand, 0x80000000u) : high);
            rows[1] = room[1];
        }
    } else {
        rows[0] = wave->v[operand->index];
        if (wide) rows[1] = wave->v[operand->index + 1];
        if (!needs_copy(wave, now, i)) return;
        for (int l = 0; l < wave->lanes; ++l) room[0][l] = modified(rows[0][l], now, i);
        rows[0] = room[0];
        if (!wide) return;
        for (int l = 0; l < wave->lanes; ++l) room[1][l] = signed_as(rows[1][l], operand, 0x80000000u);
        rows[1] = room[1];
    }
}

/* --- results */

static uint64_t bits_of_row(const uint32_t *row, int lanes) {
    uint64_t bits = 0;
    for (int l = 0; l < lanes; ++l) bits |= (uint64_t)(row[l] & 1) << l;
    return bits;
}

/* The register part that a result fills, and the treatment of the rest. */
static void choose_part(const gcn_wave *wave, const gcn_instruction *now, uint8_t *part, uint8_t *unused) {
    const bool half = now->to[0].type == 'h' || now->to[0].type == 'w';
    *part = now->part, *unused = now->unused;
    if (!half || now->sdwa) return;
    const bool high = now->op_sel >> 3 & 1;
    *part = high ? GCN_WORD1 : GCN_WORD0;
    *unused = high || wave->group->kernel->module->generation > 9 ? 2 : 0;
}

/* The register after a result was written to a part of it. */
static uint32_t insert(uint32_t old, uint32_t value, uint8_t part, uint8_t unused) {
    if (part == GCN_DWORD) return value;
    const unsigned bits = part >= GCN_WORD0 ? 16 : 8;
    const unsigned shift = part >= GCN_WORD0 ? 16u * (part - GCN_WORD0) : 8u * (part - GCN_BYTE0);
    const uint32_t mask = ((1u << bits) - 1) << shift, placed = value << shift & mask;
    if (unused == 2) return (old & ~mask) | placed;
    if (unused == 1 && placed >> (shift + bits - 1) & 1) return placed | ~(mask | ((1u << shift) - 1));
    return placed;
}

static uint32_t clamped(uint32_t bits, uint8_t type) {
    if (type == 'f') {
        const float x = ptx_bits_float(bits);
        return x > 0 ? x < 1 ? bits : 0x3f800000u : 0;
    }
    if (type == 'h') {
        const float x = ptx_from_f16((uint16_t)bits);
        return x > 0 ? x < 1 ? bits : 0x3c00u : 0;
    }
    return bits; /* integer functions clamp themselves */
}

static void store(gcn_wave *wave, const gcn_instruction *now, uint64_t writes, const uint32_t *from, int word) {
    uint32_t *to = wave->v[now->to[0].index + word];
    uint8_t part, unused;
    choose_part(wave, now, &part, &unused);
    for (int l = 0; l < wave->lanes; ++l) {
        const uint32_t value = now->clamp ? clamped(from[l], now->to[0].type) : from[l];
        if (writes >> l & 1) to[l] = insert(to[l], value, part, unused);
    }
}

static void store_plain(const gcn_wave *wave, uint64_t writes, const uint32_t *from, uint32_t *to) {
    for (int l = 0; l < wave->lanes; ++l) to[l] = writes >> l & 1 ? from[l] : to[l];
}

static bool is_plain(const gcn_instruction *now) {
    return !now->clamp && !now->sdwa && now->to[0].type != 'h' && now->to[0].type != 'w';
}

static bool is_wide(const gcn_instruction *now) {
    return now->to[0].type == 'q' || now->to[0].type == 'd' || now->to[0].type == 'F';
}

/* A compare writes its mask to a scalar; v_cmpx writes exec as well. */
static void store_compare(gcn_wave *wave, const gcn_instruction *now, uint64_t writes, const uint32_t *row) {
    const uint64_t bits = bits_of_row(row, wave->lanes) & writes;
    if (now->n_to) gcn_set_mask(wave, now->to[0], bits);
    if (!(now->form->code & GCN_SETS_EXEC)) return;
    wave->s[GCN_EXEC] = (uint32_t)bits, wave->s[GCN_EXEC + 1] = (uint32_t)(bits >> 32);
}

void gcn_run_lanes(gcn_wave *wave, const gcn_instruction *now) {
    uint32_t room[4][2][GCN_LANES], results[3][GCN_LANES], permuted[GCN_LANES];
    const uint32_t *rows[4][2];
    const uint64_t exec = gcn_exec(wave);
    uint64_t writes = exec;
    const bool compares = now->form->operands[0] == 'm';
    if (!exec && !compares && now->n_to < 2) return;
    for (int i = 0; i < 4; ++i) {
        if (i < now->n_from)
            gcn_fetch(wave, now, i, room[i], rows[i]);
        else
            rows[i][0] = rows[i][1] = wave->v[GCN_SPARE];
    }
    if (now->dpp) {
        writes = apply_dpp(wave, now, exec, rows[0][0], permuted);
        rows[0][0] = permuted;
    }
    /* Each half of a float pair may read the register that the other half writes. */
    const bool direct = !compares && writes == gcn_all(wave) && is_plain(now) && now->to[0].type != 'F';
    uint32_t(*to)[GCN_LANES] = direct ? &wave->v[now->to[0].index] : results;
    const bool wide = !compares && is_wide(now);
    const gcn_lanes x = {.wave = wave,
                         .now = now,
                         .to = to[0],
                         .high = wide ? to[1] : results[1],
                         .mask = results[2],
                         .a = rows[0][0],
                         .b = rows[1][0],
                         .c = rows[2][0],
                         .d = rows[3][0],
                         .a_high = rows[0][1],
                         .b_high = rows[1][1],
                         .c_high = rows[2][1],
                         .lanes = wave->lanes};
    now->form->lanes(&x);
    if (compares) {
        store_compare(wave, now, writes, results[0]);
        return;
    }
    if (!direct && is_plain(now)) {
        store_plain(wave, writes, results[0], wave->v[now->to[0].index]);
        if (wide) store_plain(wave, writes, results[1], wave->v[now->to[0].index + 1]);
    } else if (!direct) {
        store(wave, now, writes, results[0], 0);
        if (wide) store(wave, now, writes, results[1], 1);
    }
    if (now->n_to > 1) gcn_set_mask(wave, now->to[1], bits_of_row(results[2], wave->lanes) & writes);
}
