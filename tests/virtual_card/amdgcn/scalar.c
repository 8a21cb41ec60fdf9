/* Scalar instructions: integers of 32 and 64 bits, compares, masks of lanes. */
#include "wave.h"

typedef uint32_t u32;
typedef int32_t i32;
typedef uint64_t u64;
typedef int64_t i64;
typedef int16_t i16;

/* Returns a result and sets scc. */
#define FUNCTION(name, result, condition)                                                                              \
    static u64 name(u64 a, u64 b, bool *scc) {                                                                         \
        (void)a, (void)b;                                                                                              \
        const u64 value = (result);                                                                                    \
        *scc = (condition);                                                                                            \
        return value;                                                                                                  \
    }
#define KEEPS *scc

FUNCTION(move, a, KEEPS)
FUNCTION(move_signed, (u64)(i64)(i16)a, KEEPS)
FUNCTION(select, *scc ? a : b, KEEPS)
FUNCTION(not32, (u32)~a, value != 0)
FUNCTION(not64, ~a, value != 0)
FUNCTION(and_ab, a &b, value != 0)
FUNCTION(or_ab, a | b, value != 0)
FUNCTION(xor_ab, a ^ b, value != 0)
FUNCTION(and_not, a & ~b, value != 0)
FUNCTION(or_not32, (u32)(a | ~b), value != 0)
FUNCTION(or_not64, a | ~b, value != 0)
FUNCTION(not_and32, (u32) ~(a &b), value != 0)
FUNCTION(not_and64, ~(a &b), value != 0)
FUNCTION(nor32, (u32) ~(a | b), value != 0)
FUNCTION(nor64, ~(a | b), value != 0)
FUNCTION(xnor32, (u32) ~(a ^ b), value != 0)
FUNCTION(xnor64, ~(a ^ b), value != 0)

FUNCTION(add, (u32)a + (u64)(u32)b, value >> 32)
FUNCTION(add_carry, (u32)a + (u64)(u32)b + *scc, value >> 32)
FUNCTION(sub, (u64)(u32)a - (u32)b, value >> 32 != 0)
FUNCTION(sub_borrow, (u64)(u32)a - (u32)b - *scc, value >> 32 != 0)
static bool overflows(i64 exact) {
    return exact != (i32)exact;
}
FUNCTION(add_signed, (u32)a + (u32)b, overflows((i64)(i32)a + (i32)b))
FUNCTION(sub_signed, (u32)a - (u32)b, overflows((i64)(i32)a - (i32)b))
FUNCTION(add_word, (u32)a + (u32)(i32)(i16)b, overflows((i64)(i32)a + (i16)b))
FUNCTION(multiply_word, (u32)a *(u32)(i32)(i16)b, KEEPS)
FUNCTION(multiply, (u32)a *(u32)b, KEEPS)
FUNCTION(multiply_high, (u64)(u32)a *(u32)b >> 32, KEEPS)
FUNCTION(multiply_high_signed, (u64)((i64)(i32)a *(i32)b) >> 32, KEEPS)
FUNCTION(least, (u32)a < (u32)b ? a : b, (u32)a < (u32)b)
FUNCTION(greatest, (u32)a > (u32)b ? a : b, (u32)a > (u32)b)
FUNCTION(least_signed, (i32)a < (i32)b ? a : b, (i32)a < (i32)b)
FUNCTION(greatest_signed, (i32)a > (i32)b ? a : b, (i32)a > (i32)b)
FUNCTION(absolute, (i32)a < 0 ? (u32)0 - (u32)a : (u32)a, (u32)value != 0)
FUNCTION(absolute_difference, (i32)((u32)a - (u32)b) < 0 ? (u32)b - (u32)a : (u32)a - (u32)b, (u32)value != 0)

FUNCTION(shift_left32, (u32)a << (b & 31), value != 0)
FUNCTION(shift_left64, a << (b & 63), value != 0)
FUNCTION(shift_right32, (u32)a >> (b & 31), value != 0)
FUNCTION(shift_right64, a >> (b & 63), value != 0)
FUNCTION(shift_right32_signed, (u32)((i32)a >> (b & 31)), value != 0)
FUNCTION(shift_right64_signed, (u64)((i64)a >> (b & 63)), value != 0)
#define SHIFTED_SUM(n) ((u64)(u32)a << n) + (u32)b
FUNCTION(shift1_add, SHIFTED_SUM(1), value >> 32)
FUNCTION(shift2_add, SHIFTED_SUM(2), value >> 32)
FUNCTION(shift3_add, SHIFTED_SUM(3), value >> 32)
FUNCTION(shift4_add, SHIFTED_SUM(4), value >> 32)

/* Bit fields: b holds the first bit, and from bit 16 on the number of bits. */
static u64 field(u64 a, u64 b, unsigned width, bool sign) {
    const unsigned from = (unsigned)b & (width - 1), bits = (unsigned)(b >> 16) & 127;
    if (!bits) return 0;
    if (bits >= width) return sign && width == 32 ? (u64)(i64)((i32)a >> from) : a >> from;
    const u64 value = a >> from & ((UINT64_C(1) << bits) - 1), top = UINT64_C(1) << (bits - 1);
    return sign ? (value ^ top) - top : value;
}
FUNCTION(extract32, field((u32)a, b, 32, false), value != 0)
FUNCTION(extract32_signed, (u32)field((u32)a, b, 32, true), value != 0)
FUNCTION(extract64, field(a, b, 64, false), value != 0)
FUNCTION(extract64_signed, field(a, b, 64, true), value != 0)
FUNCTION(mask32, (u32)(((UINT64_C(1) << (a & 31)) - 1) << (b & 31)), KEEPS)
FUNCTION(mask64, ((UINT64_C(1) << (a & 63)) - 1) << (b & 63), KEEPS)
FUNCTION(pack_low_low, (a & 0xffff) | (b & 0xffff) << 16, KEEPS)
FUNCTION(pack_low_high, (a & 0xffff) | (b & 0xffff0000), KEEPS)
FUNCTION(pack_high_high, (u32)a >> 16 | (b & 0xffff0000), KEEPS)
FUNCTION(pack_high_low, (u32)a >> 16 | (b & 0xffff) << 16, KEEPS)

static u64 reversed(u64 x, int bits) {
    u64 y = 0;
    for (int i = 0; i < bits; ++i) y |= (x >> i & 1) << (bits - 1 - i);
    return y;
}
FUNCTION(reverse32, reversed((u32)a, 32), KEEPS)
FUNCTION(reverse64, reversed(a, 64), KEEPS)
FUNCTION(count32, gcn_count_bits((u32)a), value != 0)
FUNCTION(count64, gcn_count_bits(a), value != 0)
FUNCTION(find_low32, (u32)a ? (u32)__builtin_ctz((u32)a) : UINT32_MAX, KEEPS)
FUNCTION(find_low64, a ? (u32)__builtin_ctzll(a) : UINT32_MAX, KEEPS)
FUNCTION(find_high32, (u32)a ? (u32)__builtin_clz((u32)a) : UINT32_MAX, KEEPS)
FUNCTION(find_high64, a ? (u32)__builtin_clzll(a) : UINT32_MAX, KEEPS)
static u32 first_change(i32 x) {
    const u32 y = (u32)(x < 0 ? ~x : x);
    return y ? (u32)__builtin_clz(y) : UINT32_MAX;
}
FUNCTION(find_change, first_change((i32)a), KEEPS)
FUNCTION(extend8, (u32)(i32)(int8_t)a, KEEPS)
FUNCTION(extend16, (u32)(i32)(i16)a, KEEPS)

/* Compares only set scc. */
#define COMPARE(name, type, operator) FUNCTION(name, 0, (type)a operator(type) b)
COMPARE(equal32, u32, ==)
COMPARE(differs32, u32, !=)
COMPARE(equal64, u64, ==)
COMPARE(differs64, u64, !=)
COMPARE(greater, u32, >)
COMPARE(greater_equal, u32, >=)
COMPARE(less, u32, <)
COMPARE(less_equal, u32, <=)
COMPARE(greater_signed, i32, >)
COMPARE(greater_equal_signed, i32, >=)
COMPARE(less_signed, i32, <)
COMPARE(less_equal_signed, i32, <=)
FUNCTION(bit_is_0, 0, !(a >> (b & 31) & 1))
FUNCTION(bit_is_1, 0, a >> (b & 31) & 1)
FUNCTION(bit64_is_0, 0, !(a >> (b & 63) & 1))
FUNCTION(bit64_is_1, 0, a >> (b & 63) & 1)
/* The second operand is a 16-bit immediate. */
#define COMPARE_WORD(name, type, extended, operator) FUNCTION(name, 0, (type)a operator(type)(extended) b)
COMPARE_WORD(word_equal, u32, i16, ==)
COMPARE_WORD(word_differs, u32, i16, !=)
COMPARE_WORD(word_greater_signed, i32, i16, >)
COMPARE_WORD(word_greater_equal_signed, i32, i16, >=)
COMPARE_WORD(word_less_signed, i32, i16, <)
COMPARE_WORD(word_less_equal_signed, i32, i16, <=)
COMPARE_WORD(uword_equal, u32, uint16_t, ==)
COMPARE_WORD(uword_differs, u32, uint16_t, !=)
COMPARE_WORD(uword_greater, u32, uint16_t, >)
COMPARE_WORD(uword_greater_equal, u32, uint16_t, >=)
COMPARE_WORD(uword_less, u32, uint16_t, <)
COMPARE_WORD(uword_less_equal, u32, uint16_t, <=)

void gcn_run_scalar(gcn_wave *wave, const gcn_instruction *now) {
    u64 values[2] = {0, 0};
    for (int i = 0; i < now->n_from && i < 2; ++i) values[i] = gcn_scalar(wave, now->from[i], now->from[i].type == 'q');
    const u64 result = now->form->scalar(values[0], values[1], &wave->scc);
    if (now->n_to) gcn_set_scalar(wave, now->to[0], result, now->to[0].type == 'q');
}

/* --- exec, the program counter */

enum { AND, OR, XOR, AND_NOT, OR_NOT, NAND, NOR, XNOR, NOT_AND };

/* The result is the old exec. */
static void save_exec(gcn_wave *wave, const gcn_instruction *now) {
    const bool wide = now->to[0].type == 'q';
    const u64 a = gcn_scalar(wave, now->from[0], wide), exec = gcn_exec(wave);
    u64 value = exec;
    switch (now->form->code) {
    case AND:
        value = a & exec;
        break;
    case OR:
        value = a | exec;
        break;
    case XOR:
        value = a ^ exec;
        break;
    case AND_NOT:
        value = a & ~exec;
        break;
    case OR_NOT:
        value = a | ~exec;
        break;
    case NAND:
        value = ~(a & exec);
        break;
    case NOR:
        value = ~(a | exec);
        break;
    case XNOR:
        value = ~(a ^ exec);
        break;
    default:
        value = ~a & exec;
    }
    value &= gcn_all(wave);
    gcn_set_scalar(wave, now->to[0], exec, wide);
    wave->s[GCN_EXEC] = (u32)value;
    if (wide) wave->s[GCN_EXEC + 1] = (u32)(value >> 32);
    wave->scc = value != 0;
}

static void move_where_scc(gcn_wave *wave, const gcn_instruction *now) {
    const bool wide = now->to[0].type == 'q';
    if (wave->scc) gcn_set_scalar(wave, now->to[0], gcn_scalar(wave, now->from[0], wide), wide);
}

static void set_bit(gcn_wave *wave, const gcn_instruction *now) {
    const bool wide = now->to[0].type == 'q';
    const u64 bit = UINT64_C(1) << (gcn_scalar(wave, now->from[0], false) & (wide ? 63 : 31));
    const u64 old = gcn_scalar(wave, now->to[0], wide);
    gcn_set_scalar(wave, now->to[0], now->form->code ? old | bit : old & ~bit, wide);
}

/* Label addresses in operand.c are absolute, so s_getpc_b64 returns 0. */
static void program_counter(gcn_wave *wave, const gcn_instruction *now) {
    gcn_set_scalar(wave, now->to[0], 0, true);
}

static void nothing(gcn_wave *wave, const gcn_instruction *now) {
    (void)wave, (void)now;
}

#define BOTH_WIDTHS(name, f32, f64)                                                                                    \
    {name "_b32", "i=ii", .scalar = f32}, {                                                                            \
        name "_b64", "q=qq", .scalar = f64                                                                             \
    }
static const gcn_form forms[] = {
    {"s_mov_b32", "i=i", .scalar = move},
    {"s_mov_b64", "q=q", .scalar = move},
    {"s_movk_i32", "i=i", .scalar = move_signed},
    {"s_cselect_b32", "i=ii", .scalar = select},
    {"s_cselect_b64", "q=qq", .scalar = select},
    {"s_not_b32", "i=i", .scalar = not32},
    {"s_not_b64", "q=q", .scalar = not64},
    BOTH_WIDTHS("s_and", and_ab, and_ab),
    BOTH_WIDTHS("s_or", or_ab, or_ab),
    BOTH_WIDTHS("s_xor", xor_ab, xor_ab),
    BOTH_WIDTHS("s_andn2", and_not, and_not),
    BOTH_WIDTHS("s_and_not1", and_not, and_not),
    BOTH_WIDTHS("s_orn2", or_not32, or_not64),
    BOTH_WIDTHS("s_or_not1", or_not32, or_not64),
    BOTH_WIDTHS("s_nand", not_and32, not_and64),
    BOTH_WIDTHS("s_nor", nor32, nor64),
    BOTH_WIDTHS("s_xnor", xnor32, xnor64),
    {"s_add_u32", "i=ii", .scalar = add},
    {"s_addc_u32", "i=ii", .scalar = add_carry},
    {"s_sub_u32", "i=ii", .scalar = sub},
    {"s_subb_u32", "i=ii", .scalar = sub_borrow},
    {"s_add_i32", "i=ii", .scalar = add_signed},
    {"s_sub_i32", "i=ii", .scalar = sub_signed},
    {"s_addk_i32", "i=+i", .scalar = add_word},
    {"s_mulk_i32", "i=+i", .scalar = multiply_word},
    {"s_mul_i32", "i=ii", .scalar = multiply},
    {"s_mul_hi_u32", "i=ii", .scalar = multiply_high},
    {"s_mul_hi_i32", "i=ii", .scalar = multiply_high_signed},
    {"s_min_u32", "i=ii", .scalar = least},
    {"s_max_u32", "i=ii", .scalar = greatest},
    {"s_min_i32", "i=ii", .scalar = least_signed},
    {"s_max_i32", "i=ii", .scalar = greatest_signed},
    {"s_abs_i32", "i=i", .scalar = absolute},
    {"s_absdiff_i32", "i=ii", .scalar = absolute_difference},
    {"s_lshl_b32", "i=ii", .scalar = shift_left32},
    {"s_lshl_b64", "q=qi", .scalar = shift_left64},
    {"s_lshr_b32", "i=ii", .scalar = shift_right32},
    {"s_lshr_b64", "q=qi", .scalar = shift_right64},
    {"s_ashr_i32", "i=ii", .scalar = shift_right32_signed},
    {"s_ashr_i64", "q=qi", .scalar = shift_right64_signed},
    {"s_lshl1_add_u32", "i=ii", .scalar = shift1_add},
    {"s_lshl2_add_u32", "i=ii", .scalar = shift2_add},
    {"s_lshl3_add_u32", "i=ii", .scalar = shift3_add},
    {"s_lshl4_add_u32", "i=ii", .scalar = shift4_add},
    {"s_bfe_u32", "i=ii", .scalar = extract32},
    {"s_bfe_i32", "i=ii", .scalar = extract32_signed},
    {"s_bfe_u64", "q=qi", .scalar = extract64},
    {"s_bfe_i64", "q=qi", .scalar = extract64_signed},
    {"s_bfm_b32", "i=ii", .scalar = mask32},
    {"s_bfm_b64", "q=ii", .scalar = mask64},
    {"s_pack_ll_b32_b16", "i=ii", .scalar = pack_low_low},
    {"s_pack_lh_b32_b16", "i=ii", .scalar = pack_low_high},
    {"s_pack_hh_b32_b16", "i=ii", .scalar = pack_high_high},
    {"s_pack_hl_b32_b16", "i=ii", .scalar = pack_high_low},
    {"s_brev_b32", "i=i", .scalar = reverse32},
    {"s_brev_b64", "q=q", .scalar = reverse64},
    {"s_bcnt1_i32_b32", "i=i", .scalar = count32},
    {"s_bcnt1_i32_b64", "i=q", .scalar = count64},
    {"s_ff1_i32_b32", "i=i", .scalar = find_low32},
    {"s_ff1_i32_b64", "i=q", .scalar = find_low64},
    {"s_ctz_i32_b32", "i=i", .scalar = find_low32},
    {"s_ctz_i32_b64", "i=q", .scalar = find_low64},
    {"s_flbit_i32_b32", "i=i", .scalar = find_high32},
    {"s_flbit_i32_b64", "i=q", .scalar = find_high64},
    {"s_clz_i32_u32", "i=i", .scalar = find_high32},
    {"s_clz_i32_u64", "i=q", .scalar = find_high64},
    {"s_flbit_i32", "i=i", .scalar = find_change},
    {"s_cls_i32", "i=i", .scalar = find_change},
    {"s_sext_i32_i8", "i=i", .scalar = extend8},
    {"s_sext_i32_i16", "i=i", .scalar = extend16},
    {"s_cmp_eq_i32", "=ii", .scalar = equal32},
    {"s_cmp_eq_u32", "=ii", .scalar = equal32},
    {"s_cmp_eq_u64", "=qq", .scalar = equal64},
    {"s_cmp_lg_i32", "=ii", .scalar = differs32},
    {"s_cmp_lg_u32", "=ii", .scalar = differs32},
    {"s_cmp_lg_u64", "=qq", .scalar = differs64},
    {"s_cmp_gt_u32", "=ii", .scalar = greater},
    {"s_cmp_ge_u32", "=ii", .scalar = greater_equal},
    {"s_cmp_lt_u32", "=ii", .scalar = less},
    {"s_cmp_le_u32", "=ii", .scalar = less_equal},
    {"s_cmp_gt_i32", "=ii", .scalar = greater_signed},
    {"s_cmp_ge_i32", "=ii", .scalar = greater_equal_signed},
    {"s_cmp_lt_i32", "=ii", .scalar = less_signed},
    {"s_cmp_le_i32", "=ii", .scalar = less_equal_signed},
    {"s_cmpk_eq_i32", "=ii", .scalar = word_equal},
    {"s_cmpk_lg_i32", "=ii", .scalar = word_differs},
    {"s_cmpk_gt_i32", "=ii", .scalar = word_greater_signed},
    {"s_cmpk_ge_i32", "=ii", .scalar = word_greater_equal_signed},
    {"s_cmpk_lt_i32", "=ii", .scalar = word_less_signed},
    {"s_cmpk_le_i32", "=ii", .scalar = word_less_equal_signed},
    {"s_cmpk_eq_u32", "=ii", .scalar = uword_equal},
    {"s_cmpk_lg_u32", "=ii", .scalar = uword_differs},
    {"s_cmpk_gt_u32", "=ii", .scalar = uword_greater},
    {"s_cmpk_ge_u32", "=ii", .scalar = uword_greater_equal},
    {"s_cmpk_lt_u32", "=ii", .scalar = uword_less},
    {"s_cmpk_le_u32", "=ii", .scalar = uword_less_equal},
    {"s_bitcmp0_b32", "=ii", .scalar = bit_is_0},
    {"s_bitcmp1_b32", "=ii", .scalar = bit_is_1},
    {"s_bitcmp0_b64", "=qi", .scalar = bit64_is_0},
    {"s_bitcmp1_b64", "=qi", .scalar = bit64_is_1},
};
const gcn_table gcn_scalar_table = GCN_TABLE(forms);

#define SAVES(name, operation)                                                                                         \
    {name "_b32", "i=i", save_exec, .code = operation}, {                                                              \
        name "_b64", "q=q", save_exec, .code = operation                                                               \
    }
static const gcn_form control[] = {
    SAVES("s_and_saveexec", AND),
    SAVES("s_or_saveexec", OR),
    SAVES("s_xor_saveexec", XOR),
    SAVES("s_andn2_saveexec", AND_NOT),
    SAVES("s_and_not1_saveexec", AND_NOT),
    SAVES("s_orn2_saveexec", OR_NOT),
    SAVES("s_or_not1_saveexec", OR_NOT),
    SAVES("s_nand_saveexec", NAND),
    SAVES("s_nor_saveexec", NOR),
    SAVES("s_xnor_saveexec", XNOR),
    SAVES("s_andn1_saveexec", NOT_AND),
    SAVES("s_and_not0_saveexec", NOT_AND),
    {"s_cmov_b32", "i=i", move_where_scc},
    {"s_cmov_b64", "q=q", move_where_scc},
    {"s_bitset0_b32", "i=i", set_bit, .code = 0},
    {"s_bitset1_b32", "i=i", set_bit, .code = 1},
    {"s_getpc_b64", "q=", program_counter},
    {"s_branch", NULL, nothing, .kind = GCN_BRANCH, .code = GCN_ALWAYS},
    {"s_cbranch_scc0", NULL, nothing, .kind = GCN_BRANCH, .code = GCN_SCC0},
    {"s_cbranch_scc1", NULL, nothing, .kind = GCN_BRANCH, .code = GCN_SCC1},
    {"s_cbranch_vccz", NULL, nothing, .kind = GCN_BRANCH, .code = GCN_VCCZ},
    {"s_cbranch_vccnz", NULL, nothing, .kind = GCN_BRANCH, .code = GCN_VCCNZ},
    {"s_cbranch_execz", NULL, nothing, .kind = GCN_BRANCH, .code = GCN_EXECZ},
    {"s_cbranch_execnz", NULL, nothing, .kind = GCN_BRANCH, .code = GCN_EXECNZ},
    {"s_swappc_b64", "q=q", nothing, .kind = GCN_CALL},
    {"s_setpc_b64", "=q", nothing, .kind = GCN_RETURN},
    {"s_barrier", NULL, nothing, .kind = GCN_BARRIER},
    {"s_endpgm", NULL, nothing, .kind = GCN_END},
    {"s_waitcnt", NULL, nothing},
    {"s_waitcnt_vscnt", NULL, nothing},
    {"s_waitcnt_depctr", NULL, nothing},
    {"s_nop", NULL, nothing},
    {"s_setreg_b32", NULL, nothing}, /* denormal mode during division; denormals are always honoured here */
    {"s_sleep", NULL, nothing},
    {"s_setprio", NULL, nothing},
    {"s_clause", NULL, nothing},
    {"s_delay_alu", NULL, nothing},
    {"s_sendmsg", NULL, nothing},
    {"s_inst_prefetch", NULL, nothing},
    {"s_set_inst_prefetch_distance", NULL, nothing},
    {"s_code_end", NULL, nothing},
    {"s_dcache_wb", NULL, nothing},
    {"buffer_wbinvl1", NULL, nothing},
    {"buffer_wbinvl1_vol", NULL, nothing},
    {"buffer_gl0_inv", NULL, nothing},
    {"buffer_gl1_inv", NULL, nothing},
    {"buffer_invl2", NULL, nothing},
    {"buffer_wbl2", NULL, nothing},
    {"v_nop", NULL, nothing},
};
const gcn_table gcn_control_table = GCN_TABLE(control);
