/* Vector arithmetic on integers. */
#include "lanes.h"

static uint32_t bits_in(uint32_t x) {
    return ptx_count_bits(x);
}
/* Index of the lowest set bit; number of zeros above the highest one. */
static uint32_t first_low(uint32_t x) {
    return x ? (uint32_t)__builtin_ctz(x) : UINT32_MAX;
}
static uint32_t first_high(uint32_t x) {
    return x ? (uint32_t)__builtin_clz(x) : UINT32_MAX;
}
static uint32_t first_change(uint32_t x) {
    return first_high((int32_t)x < 0 ? ~x : x);
}
static uint32_t reversed(uint32_t x) {
    uint32_t y = 0;
    for (int i = 0; i < 32; ++i) y |= (x >> i & 1) << (31 - i);
    return y;
}
static int32_t signed24(uint32_t x) {
    return (int32_t)(x << 8) >> 8;
}
static uint32_t field(uint32_t x, uint32_t from, uint32_t bits) {
    return bits ? x >> (from & 31) & ((1u << bits) - 1) : 0;
}
static uint32_t signed_field(uint32_t x, uint32_t from, uint32_t bits) {
    if (!bits) return 0;
    const uint32_t value = x >> (from & 31) & ((1u << bits) - 1), top = 1u << (bits - 1);
    return (value ^ top) - top;
}
/* Bytes of two registers and constants, selected by the bytes of `which`. */
static uint32_t permute(uint32_t high, uint32_t low, uint32_t which) {
    const uint64_t both = (uint64_t)high << 32 | low;
    uint32_t result = 0;
    for (int i = 0; i < 4; ++i) {
        const uint32_t k = which >> 8 * i & 0xff;
        const uint32_t sign = k >= 8 && k < 12 && both >> (16 * (k - 8) + 15) & 1 ? 0xff : 0;
        const uint32_t byte = k < 8 ? (uint32_t)(both >> 8 * k & 0xff) : k > 12 ? 0xff : sign;
        result |= byte << 8 * i;
    }
    return result;
}

GCN_INTEGER(move, a)
GCN_INTEGER(not_a, ~a)
GCN_INTEGER(and_ab, a &b)
GCN_INTEGER(or_ab, a | b)
GCN_INTEGER(xor_ab, a ^ b)
GCN_INTEGER(xnor_ab, ~(a ^ b))
GCN_INTEGER(or3, a | b | c)
GCN_INTEGER(xor3, a ^ b ^ c)
GCN_INTEGER(and_or, (a & b) | c)
GCN_INTEGER(shift_left_or, (a << (b & 31)) | c)
GCN_INTEGER(shift_left_add, (a << (b & 31)) + c)
GCN_INTEGER(add_shift_left, (a + b) << (c & 31))
GCN_INTEGER(xor_add, (a ^ b) + c)
GCN_INTEGER(add3, a + b + c)
GCN_INTEGER(shift_left_reversed, b << (a & 31))
GCN_INTEGER(shift_right_reversed, b >> (a & 31))
GCN_SIGNED(shift_right_signed_reversed, b >> (a & 31))
GCN_INTEGER(select, c ? b : a)
GCN_INTEGER(least, a < b ? a : b)
GCN_INTEGER(greatest, a > b ? a : b)
GCN_SIGNED(least_signed, a < b ? a : b)
GCN_SIGNED(greatest_signed, a > b ? a : b)
GCN_INTEGER(least3, a < b ? (a < c ? a : c) : (b < c ? b : c))
GCN_INTEGER(greatest3, a > b ? (a > c ? a : c) : (b > c ? b : c))
GCN_SIGNED(least3_signed, a < b ? (a < c ? a : c) : (b < c ? b : c))
GCN_SIGNED(greatest3_signed, a > b ? (a > c ? a : c) : (b > c ? b : c))
static int32_t lesser(int32_t a, int32_t b) {
    return a < b ? a : b;
}
static int32_t larger(int32_t a, int32_t b) {
    return a > b ? a : b;
}
GCN_SIGNED(least_greatest_signed, larger(lesser(a, b), c))
GCN_SIGNED(greatest_least_signed, lesser(larger(a, b), c))
GCN_INTEGER(least_greatest, (a < b ? a : b) > c ? (a < b ? a : b) : c)
GCN_INTEGER(greatest_least, (a > b ? a : b) < c ? (a > b ? a : b) : c)
GCN_INTEGER(middle, a < b ? (b < c ? b : a < c ? c : a) : (a < c ? a : b < c ? c : b))
GCN_SIGNED(middle_signed, a < b ? (b < c ? b : a < c ? c : a) : (a < c ? a : b < c ? c : b))
GCN_INTEGER(multiply, a *b)
GCN_INTEGER(multiply_high, (uint64_t)a *b >> 32)
GCN_SIGNED(multiply_high_signed, (int64_t)a *b >> 32)
GCN_INTEGER(multiply24, (a & 0xffffff) * (b & 0xffffff))
GCN_INTEGER(multiply24_high, (uint64_t)(a & 0xffffff) * (b & 0xffffff) >> 32)
GCN_INTEGER(multiply24_signed, (uint32_t)signed24(a) * (uint32_t)signed24(b))
GCN_INTEGER(multiply24_add, (a & 0xffffff) * (b & 0xffffff) + c)
GCN_INTEGER(multiply24_signed_add, (uint32_t)signed24(a) * (uint32_t)signed24(b) + c)
GCN_INTEGER(multiply16_add, (a & 0xffff) * (b & 0xffff) + c)
GCN_INTEGER(multiply16_signed_add, (uint32_t)((int32_t)(int16_t)a *(int16_t)b) + c)
GCN_INTEGER(extract, field(a, b & 31, c & 31))
GCN_INTEGER(extract_signed, signed_field(a, b & 31, c & 31))
GCN_INTEGER(insert, (a & b) | (~a & c))
GCN_INTEGER(mask_of, ((1u << (a & 31)) - 1) << (b & 31))
GCN_INTEGER(align_bits, ((uint64_t)a << 32 | b) >> (c & 31))
GCN_INTEGER(align_bytes, ((uint64_t)a << 32 | b) >> 8 * (c & 3))
GCN_INTEGER(permute_bytes, permute(a, b, c))
GCN_INTEGER(count, bits_in(a) + b)
GCN_INTEGER(find_low, first_low(a))
GCN_INTEGER(find_high, first_high(a))
GCN_INTEGER(find_change, first_change(a))
GCN_INTEGER(reverse, reversed(a))
GCN_INTEGER(pack_words, (a & 0xffff) | b << 16)

static void lanes_below_low(const gcn_lanes *x) {
    for (int l = 0; l < x->lanes; ++l) x->to[l] = bits_in(x->a[l] & (l < 32 ? (1u << l) - 1 : UINT32_MAX)) + x->b[l];
}
static void lanes_below_high(const gcn_lanes *x) {
    for (int l = 0; l < x->lanes; ++l) x->to[l] = bits_in(l < 32 ? 0 : x->a[l] & ((1u << (l - 32)) - 1)) + x->b[l];
}

/* --- sums: the carry is a second result, and clamp saturates */

static uint32_t limited(const gcn_lanes *x, int64_t exact, int64_t least_value, int64_t most) {
    if (!x->now->clamp) return (uint32_t)exact;
    return (uint32_t)(exact < least_value ? least_value : exact > most ? most : exact);
}
#define SUM(name, value)                                                                                               \
    static void name(const gcn_lanes *x) {                                                                             \
        for (int l = 0; l < x->lanes; ++l) {                                                                           \
            const int64_t a = x->a[l], b = x->b[l];                                                                    \
            x->to[l] = limited(x, value, 0, UINT32_MAX);                                                               \
        }                                                                                                              \
    }
SUM(add, a + b)
SUM(sub, a - b)
SUM(subrev, b - a)
#define SIGNED_SUM(name, value)                                                                                        \
    static void name(const gcn_lanes *x) {                                                                             \
        for (int l = 0; l < x->lanes; ++l) {                                                                           \
            const int64_t a = (int32_t)x->a[l], b = (int32_t)x->b[l];                                                  \
            x->to[l] = limited(x, value, INT32_MIN, INT32_MAX);                                                        \
        }                                                                                                              \
    }
SIGNED_SUM(add_signed, a + b)
SIGNED_SUM(sub_signed, a - b)

#define CARRY(name, value)                                                                                             \
    static void name(const gcn_lanes *x) {                                                                             \
        PTX_INDEPENDENT for (int l = 0; l < x->lanes; ++l) {                                                           \
            const uint64_t a = x->a[l], b = x->b[l], c = x->c[l];                                                      \
            (void)c;                                                                                                   \
            const uint64_t sum = (value);                                                                              \
            x->mask[l] = (uint32_t)(sum >> 32) & 1;                                                                    \
            x->to[l] = (uint32_t)sum;                                                                                  \
        }                                                                                                              \
    }
CARRY(add_carry, a + b)
CARRY(sub_carry, a - b)
CARRY(subrev_carry, b - a)
CARRY(add_with_carry, a + b + c)
CARRY(sub_with_carry, a - b - c)
CARRY(subrev_with_carry, b - a - c)

/* --- 64 bits */

GCN_LONG(shift_left_long, b << (a32 & 63))
GCN_LONG(shift_right_long, b >> (a32 & 63))
GCN_LONG(shift_right_signed_long, (uint64_t)((int64_t)b >> (a32 & 63)))
GCN_LONG(multiply_add_signed_long, (uint64_t)((int64_t)(int32_t)a32 *(int32_t)b32) + c)
GCN_LONG(shift_left_add_long, (a << (b32 & 7)) + c)
GCN_LONG(move_long, a)
static void multiply_add_long(const gcn_lanes *x) {
    PTX_INDEPENDENT for (int l = 0; l < x->lanes; ++l) {
        const uint64_t product = (uint64_t)x->a[l] * x->b[l], c = x->c[l] | (uint64_t)x->c_high[l] << 32;
        const uint64_t sum = product + c;
        x->mask[l] = sum < product;
        x->to[l] = (uint32_t)sum;
        x->high[l] = (uint32_t)(sum >> 32);
    }
}
/* The low register of two; op_sel has been applied. */
static void move_pair(const gcn_lanes *x) {
    for (int l = 0; l < x->lanes; ++l) {
        const uint32_t a = x->a[l], b = x->b[l];
        x->to[l] = a, x->high[l] = b;
    }
}

/* --- 16 bits */

#define SHORT(name, value)                                                                                             \
    static void name(const gcn_lanes *x) {                                                                             \
        for (int l = 0; l < x->lanes; ++l) {                                                                           \
            const uint16_t a = (uint16_t)x->a[l], b = (uint16_t)x->b[l], c = (uint16_t)x->c[l];                        \
            (void)a, (void)b, (void)c;                                                                                 \
            x->to[l] = (uint16_t)(value);                                                                              \
        }                                                                                                              \
    }
static uint16_t limited16(const gcn_lanes *x, int32_t exact, int32_t least_value, int32_t most) {
    if (!x->now->clamp) return (uint16_t)exact;
    return (uint16_t)(exact < least_value ? least_value : exact > most ? most : exact);
}
SHORT(move16, a)
SHORT(not16, ~a)
SHORT(and16, a &b)
SHORT(or16, a | b)
SHORT(xor16, a ^ b)
SHORT(add16, limited16(x, a + b, 0, UINT16_MAX))
SHORT(sub16, limited16(x, a - b, 0, UINT16_MAX))
SHORT(subrev16, limited16(x, b - a, 0, UINT16_MAX))
SHORT(add16_signed, limited16(x, (int16_t)a + (int16_t)b, INT16_MIN, INT16_MAX))
SHORT(sub16_signed, limited16(x, (int16_t)a - (int16_t)b, INT16_MIN, INT16_MAX))
SHORT(multiply16, (uint32_t)a *b)
SHORT(multiply_add16, (uint32_t)a *b + c)
SHORT(shift_left16, b << (a & 15))
SHORT(shift_right16, b >> (a & 15))
SHORT(shift_right16_signed, (int16_t)b >> (a & 15))
SHORT(least16, a < b ? a : b)
SHORT(greatest16, a > b ? a : b)
SHORT(least16_signed, (int16_t)a < (int16_t)b ? a : b)
SHORT(greatest16_signed, (int16_t)a > (int16_t)b ? a : b)
GCN_INTEGER(widen16, a & 0xffff)
GCN_INTEGER(widen16_signed, (uint32_t)(int32_t)(int16_t)a)

#define SHORT_PAIR(name, value)                                                                                        \
    static uint16_t name##_half(uint16_t a, uint16_t b, uint16_t c) {                                                  \
        (void)a, (void)b, (void)c;                                                                                     \
        return (uint16_t)(value);                                                                                      \
    }                                                                                                                  \
    static void name(const gcn_lanes *x) {                                                                             \
        for (int l = 0; l < x->lanes; ++l) {                                                                           \
            const uint32_t a = x->a[l], b = x->b[l], c = x->c[l];                                                      \
            x->to[l] = name##_half((uint16_t)a, (uint16_t)b, (uint16_t)c) |                                            \
                       (uint32_t)name##_half((uint16_t)(a >> 16), (uint16_t)(b >> 16), (uint16_t)(c >> 16)) << 16;     \
        }                                                                                                              \
    }
SHORT_PAIR(add_shorts, a + b)
SHORT_PAIR(sub_shorts, a - b)
SHORT_PAIR(multiply_shorts, (uint32_t)a *b)
SHORT_PAIR(multiply_add_shorts, (uint32_t)a *b + c)
SHORT_PAIR(shift_left_shorts, b << (a & 15))
SHORT_PAIR(shift_right_shorts, b >> (a & 15))
SHORT_PAIR(shift_right_signed_shorts, (int16_t)b >> (a & 15))
SHORT_PAIR(least_shorts, a < b ? a : b)
SHORT_PAIR(greatest_shorts, a > b ? a : b)
SHORT_PAIR(least_signed_shorts, (int16_t)a < (int16_t)b ? a : b)
SHORT_PAIR(greatest_signed_shorts, (int16_t)a > (int16_t)b ? a : b)

static const gcn_form forms[] = {
    {"v_mov_b32", "i=i", .lanes = move},
    {"v_accvgpr_read_b32", "i=i", .lanes = move},
    {"v_accvgpr_write_b32", "i=i", .lanes = move},
    {"v_accvgpr_mov_b32", "i=i", .lanes = move},
    {"v_mov_b64", "q=q", .lanes = move_long},
    {"v_pk_mov_b32", "F=FF", .lanes = move_pair},
    {"v_cndmask_b32", "f=ffm", .lanes = select}, /* with float sign modifiers */
    {"v_not_b32", "i=i", .lanes = not_a},
    {"v_and_b32", "i=ii", .lanes = and_ab},
    {"v_or_b32", "i=ii", .lanes = or_ab},
    {"v_xor_b32", "i=ii", .lanes = xor_ab},
    {"v_xnor_b32", "i=ii", .lanes = xnor_ab},
    {"v_or3_b32", "i=iii", .lanes = or3},
    {"v_xor3_b32", "i=iii", .lanes = xor3},
    {"v_and_or_b32", "i=iii", .lanes = and_or},
    {"v_lshl_or_b32", "i=iii", .lanes = shift_left_or},
    {"v_lshl_add_u32", "i=iii", .lanes = shift_left_add},
    {"v_add_lshl_u32", "i=iii", .lanes = add_shift_left},
    {"v_xad_u32", "i=iii", .lanes = xor_add},
    {"v_add3_u32", "i=iii", .lanes = add3},
    {"v_lshlrev_b32", "i=ii", .lanes = shift_left_reversed},
    {"v_lshrrev_b32", "i=ii", .lanes = shift_right_reversed},
    {"v_ashrrev_i32", "i=ii", .lanes = shift_right_signed_reversed},
    {"v_min_u32", "i=ii", .lanes = least},
    {"v_max_u32", "i=ii", .lanes = greatest},
    {"v_min_i32", "i=ii", .lanes = least_signed},
    {"v_max_i32", "i=ii", .lanes = greatest_signed},
    {"v_min3_u32", "i=iii", .lanes = least3},
    {"v_max3_u32", "i=iii", .lanes = greatest3},
    {"v_min3_i32", "i=iii", .lanes = least3_signed},
    {"v_max3_i32", "i=iii", .lanes = greatest3_signed},
    {"v_med3_u32", "i=iii", .lanes = middle},
    {"v_med3_i32", "i=iii", .lanes = middle_signed},
    {"v_minmax_u32", "i=iii", .lanes = least_greatest},
    {"v_maxmin_u32", "i=iii", .lanes = greatest_least},
    {"v_minmax_i32", "i=iii", .lanes = least_greatest_signed},
    {"v_maxmin_i32", "i=iii", .lanes = greatest_least_signed},
    {"v_mul_lo_u32", "i=ii", .lanes = multiply},
    {"v_mul_hi_u32", "i=ii", .lanes = multiply_high},
    {"v_mul_hi_i32", "i=ii", .lanes = multiply_high_signed},
    {"v_mul_u32_u24", "i=ii", .lanes = multiply24},
    {"v_mul_hi_u32_u24", "i=ii", .lanes = multiply24_high},
    {"v_mul_i32_i24", "i=ii", .lanes = multiply24_signed},
    {"v_mad_u32_u24", "i=iii", .lanes = multiply24_add},
    {"v_mad_i32_i24", "i=iii", .lanes = multiply24_signed_add},
    {"v_mad_u32_u16", "i=wwi", .lanes = multiply16_add},
    {"v_mad_i32_i16", "i=wwi", .lanes = multiply16_signed_add},
    {"v_bfe_u32", "i=iii", .lanes = extract},
    {"v_bfe_i32", "i=iii", .lanes = extract_signed},
    {"v_bfi_b32", "i=iii", .lanes = insert},
    {"v_bfm_b32", "i=ii", .lanes = mask_of},
    {"v_alignbit_b32", "i=iii", .lanes = align_bits},
    {"v_alignbyte_b32", "i=iii", .lanes = align_bytes},
    {"v_perm_b32", "i=iii", .lanes = permute_bytes},
    {"v_bcnt_u32_b32", "i=ii", .lanes = count},
    {"v_ffbl_b32", "i=i", .lanes = find_low},
    {"v_ctz_i32_b32", "i=i", .lanes = find_low},
    {"v_ffbh_u32", "i=i", .lanes = find_high},
    {"v_clz_i32_u32", "i=i", .lanes = find_high},
    {"v_ffbh_i32", "i=i", .lanes = find_change},
    {"v_cls_i32", "i=i", .lanes = find_change},
    {"v_bfrev_b32", "i=i", .lanes = reverse},
    {"v_pack_b32_f16", "i=hh", .lanes = pack_words},
    {"v_mbcnt_lo_u32_b32", "i=ii", .lanes = lanes_below_low},
    {"v_mbcnt_hi_u32_b32", "i=ii", .lanes = lanes_below_high},
    {"v_add_u32", "i=ii", .lanes = add},
    {"v_add_nc_u32", "i=ii", .lanes = add},
    {"v_sub_u32", "i=ii", .lanes = sub},
    {"v_sub_nc_u32", "i=ii", .lanes = sub},
    {"v_subrev_u32", "i=ii", .lanes = subrev},
    {"v_subrev_nc_u32", "i=ii", .lanes = subrev},
    {"v_add_i32", "i=ii", .lanes = add_signed},
    {"v_add_nc_i32", "i=ii", .lanes = add_signed},
    {"v_sub_i32", "i=ii", .lanes = sub_signed},
    {"v_sub_nc_i32", "i=ii", .lanes = sub_signed},
    {"v_add_co_u32", "im=ii", .lanes = add_carry},
    {"v_sub_co_u32", "im=ii", .lanes = sub_carry},
    {"v_subrev_co_u32", "im=ii", .lanes = subrev_carry},
    {"v_addc_co_u32", "im=iim", .lanes = add_with_carry},
    {"v_add_co_ci_u32", "im=iim", .lanes = add_with_carry},
    {"v_subb_co_u32", "im=iim", .lanes = sub_with_carry},
    {"v_sub_co_ci_u32", "im=iim", .lanes = sub_with_carry},
    {"v_subbrev_co_u32", "im=iim", .lanes = subrev_with_carry},
    {"v_subrev_co_ci_u32", "im=iim", .lanes = subrev_with_carry},
    {"v_lshlrev_b64", "q=iq", .lanes = shift_left_long},
    {"v_lshrrev_b64", "q=iq", .lanes = shift_right_long},
    {"v_ashrrev_i64", "q=iq", .lanes = shift_right_signed_long},
    {"v_lshl_add_u64", "q=qiq", .lanes = shift_left_add_long},
    {"v_mad_u64_u32", "qm=iiq", .lanes = multiply_add_long},
    {"v_mad_i64_i32", "qm=iiq", .lanes = multiply_add_signed_long},
    {"v_mov_b16", "w=w", .lanes = move16},
    {"v_not_b16", "w=w", .lanes = not16},
    {"v_and_b16", "w=ww", .lanes = and16},
    {"v_or_b16", "w=ww", .lanes = or16},
    {"v_xor_b16", "w=ww", .lanes = xor16},
    {"v_add_u16", "w=ww", .lanes = add16},
    {"v_add_nc_u16", "w=ww", .lanes = add16},
    {"v_sub_u16", "w=ww", .lanes = sub16},
    {"v_sub_nc_u16", "w=ww", .lanes = sub16},
    {"v_subrev_u16", "w=ww", .lanes = subrev16},
    {"v_add_i16", "w=ww", .lanes = add16_signed},
    {"v_add_nc_i16", "w=ww", .lanes = add16_signed},
    {"v_sub_i16", "w=ww", .lanes = sub16_signed},
    {"v_sub_nc_i16", "w=ww", .lanes = sub16_signed},
    {"v_mul_lo_u16", "w=ww", .lanes = multiply16},
    {"v_mad_u16", "w=www", .lanes = multiply_add16},
    {"v_mad_legacy_u16", "w=www", .lanes = multiply_add16},
    {"v_lshlrev_b16", "w=ww", .lanes = shift_left16},
    {"v_lshrrev_b16", "w=ww", .lanes = shift_right16},
    {"v_ashrrev_i16", "w=ww", .lanes = shift_right16_signed},
    {"v_min_u16", "w=ww", .lanes = least16},
    {"v_max_u16", "w=ww", .lanes = greatest16},
    {"v_min_i16", "w=ww", .lanes = least16_signed},
    {"v_max_i16", "w=ww", .lanes = greatest16_signed},
    {"v_cvt_u32_u16", "i=w", .lanes = widen16},
    {"v_cvt_i32_i16", "i=w", .lanes = widen16_signed},
    {"v_pk_add_u16", "I=II", .lanes = add_shorts},
    {"v_pk_add_i16", "I=II", .lanes = add_shorts},
    {"v_pk_sub_u16", "I=II", .lanes = sub_shorts},
    {"v_pk_sub_i16", "I=II", .lanes = sub_shorts},
    {"v_pk_mul_lo_u16", "I=II", .lanes = multiply_shorts},
    {"v_pk_mad_u16", "I=III", .lanes = multiply_add_shorts},
    {"v_pk_lshlrev_b16", "I=II", .lanes = shift_left_shorts},
    {"v_pk_lshrrev_b16", "I=II", .lanes = shift_right_shorts},
    {"v_pk_ashrrev_i16", "I=II", .lanes = shift_right_signed_shorts},
    {"v_pk_min_u16", "I=II", .lanes = least_shorts},
    {"v_pk_max_u16", "I=II", .lanes = greatest_shorts},
    {"v_pk_min_i16", "I=II", .lanes = least_signed_shorts},
    {"v_pk_max_i16", "I=II", .lanes = greatest_signed_shorts},
};

const gcn_table GCN_VARIANT(gcn_integer_table) = GCN_TABLE(forms);
