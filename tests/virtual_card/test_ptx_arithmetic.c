/* PTX arithmetic, instruction by instruction, against plain C. */
/* ctest: quick */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ptx_rig.h"

#pragma GCC diagnostic ignored "-Wmissing-field-initializers" /* rows */

/* --- references: bits of up to four operands -> bits of the result, written without the interpreter's helpers */

typedef uint64_t reference(uint64_t a, uint64_t b, uint64_t c, uint64_t d);

#define REFERENCE(name, value)                                                                                         \
    static uint64_t name(uint64_t a, uint64_t b, uint64_t c, uint64_t d) {                                             \
        (void)a, (void)b, (void)c, (void)d;                                                                            \
        return (uint64_t)(value);                                                                                      \
    }

static float f(uint64_t bits) {
    const uint32_t low = (uint32_t)bits;
    float x;
    memcpy(&x, &low, 4);
    return x;
}
static uint64_t fbits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, 4);
    return bits;
}
static double g(uint64_t bits) {
    double x;
    memcpy(&x, &bits, 8);
    return x;
}
static uint64_t gbits(double x) {
    uint64_t bits;
    memcpy(&bits, &x, 8);
    return bits;
}

/* Rounds to a half type with `fraction` bits and exponents from `min` on. */
static double half_value(uint64_t bits, int fraction, int min) {
    const int width = 15 - fraction;
    const int exponent = (int)(bits >> fraction) & ((1 << width) - 1), mantissa = (int)bits & ((1 << fraction) - 1);
    const double sign = bits & 0x8000 ? -1 : 1;
    if (exponent == (1 << width) - 1) return mantissa ? NAN : sign * INFINITY;
    if (!exponent) return sign * ldexp(mantissa, min - fraction);
    return sign * ldexp(mantissa + (1 << fraction), exponent - 1 + min - fraction);
}
static uint64_t half_bits(double x, int fraction, int min) {
    if (isnan(x)) return 0x7fff;
    const uint64_t sign = signbit(x) ? 0x8000 : 0, infinite = (UINT64_C(0x7fff) >> fraction) << fraction;
    if (isinf(x)) return sign | infinite;
    int exponent;
    frexp(x, &exponent);
    if (exponent - 1 < min || x == 0) exponent = min + 1;
    const double units = rint(ldexp(fabs(x), fraction - (exponent - 1))); /* may be 2^(fraction+1) */
    const uint64_t bits = (uint64_t)units + ((uint64_t)(exponent - 1 - min) << fraction);
    return sign | (bits > infinite ? infinite : bits);
}
#define F16 10, -14
#define BF16 7, -126

static uint64_t extract_bits(uint64_t x, unsigned position, unsigned length, int width, int is_signed) {
    uint64_t result = 0;
    const unsigned last = position + length - 1;
    const int sign = is_signed && length ? (int)(x >> (last < (unsigned)width ? last : (unsigned)width - 1) & 1) : 0;
    for (unsigned i = 0; i < (unsigned)width; ++i) {
        const uint64_t bit = i < length && position + i < (unsigned)width ? x >> (position + i) & 1 : (uint64_t)sign;
        result |= bit << i;
    }
    return result;
}
static uint64_t insert_bits(uint64_t field, uint64_t x, unsigned position, unsigned length, unsigned width) {
    for (unsigned i = 0; i < length && position + i < width; ++i) {
        const uint64_t one = UINT64_C(1) << (position + i);
        x = field >> i & 1 ? x | one : x & ~one;
    }
    return x;
}
static uint64_t permute_bytes(uint64_t a, uint64_t b, uint64_t selector) {
    unsigned char bytes[8], result[4];
    memcpy(bytes, &a, 4), memcpy(bytes + 4, &b, 4);
    for (int i = 0; i < 4; ++i) {
        const int nibble = (int)(selector >> 4 * i) & 15;
        result[i] = nibble < 8 ? bytes[nibble] : bytes[nibble - 8] >= 128 ? 255 : 0;
    }
    uint32_t word;
    memcpy(&word, result, 4);
    return word;
}
static uint64_t lookup_bits(uint64_t a, uint64_t b, uint64_t c, unsigned table) {
    uint64_t result = 0;
    for (int i = 0; i < 32; ++i) {
        const unsigned row = (unsigned)((a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1));
        result |= (uint64_t)(table >> row & 1) << i;
    }
    return result;
}
static uint64_t divide(__int128 a, __int128 b, int remainder) {
    if (!b) return remainder ? (uint64_t)a : UINT64_MAX;
    return (uint64_t)(remainder ? a % b : a / b);
}
static uint64_t zeros(uint64_t x, int width) {
    uint64_t n = 0;
    for (int i = width - 1; i >= 0 && !(x >> i & 1); --i) n++;
    return n;
}
static uint64_t ones(uint64_t x) {
    uint64_t n = 0;
    for (; x; x >>= 1) n += x & 1;
    return n;
}
static uint64_t mirror(uint64_t x, int width) {
    uint64_t result = 0;
    for (int i = 0; i < width; ++i) result |= (x >> i & 1) << (width - 1 - i);
    return result;
}
/* The nearest number to x in the integer type; rounding modes of cvt. */
static uint64_t to_integer(double x, char mode, double min, double max) {
    if (isnan(x)) return 0;
    x = mode == 'n' ? nearbyint(x) : mode == 'z' ? trunc(x) : mode == 'm' ? floor(x) : ceil(x);
    if (x <= min) return min < 0 ? (uint64_t)(int64_t)min : 0;
    if (x >= max) return max > 1e19 ? UINT64_MAX : max > 9e18 ? (uint64_t)INT64_MAX : (uint64_t)max;
    return x < 0 ? (uint64_t)(int64_t)x : (uint64_t)x;
}
static double less(double x, double y, int greater) {
    if (isnan(x)) return y;
    if (isnan(y)) return x;
    if (x == y) return (signbit(x) != 0) != greater ? x : y;
    return (x < y) != greater ? x : y;
}
static float flush(float x) {
    return fpclassify(x) == FP_SUBNORMAL ? copysignf(0, x) : x;
}

#define S32(x) ((int64_t)(int32_t)(x))
#define U32(x) ((uint64_t)(uint32_t)(x))
#define S16(x) ((int64_t)(int16_t)(x))
#define U16(x) ((uint64_t)(uint16_t)(x))
#define S64(x) ((__int128)(int64_t)(x))
#define U64(x) ((unsigned __int128)(uint64_t)(x))

REFERENCE(add, a + b)
REFERENCE(sub, a - b)
REFERENCE(mul, a *b)
REFERENCE(mad, a *b + c)
REFERENCE(div_s32, divide(S32(a), S32(b), 0))
REFERENCE(div_u32, divide((__int128)U32(a), (__int128)U32(b), 0))
REFERENCE(div_s64, divide(S64(a), S64(b), 0))
REFERENCE(div_u64, divide((__int128)U64(a), (__int128)U64(b), 0))
REFERENCE(rem_s32, divide(S32(a), S32(b), 1))
REFERENCE(rem_u32, divide((__int128)U32(a), (__int128)U32(b), 1))
REFERENCE(rem_s64, divide(S64(a), S64(b), 1))
REFERENCE(rem_u64, divide((__int128)U64(a), (__int128)U64(b), 1))
REFERENCE(hi_s32, (S32(a) * S32(b)) >> 32)
REFERENCE(hi_u32, (U32(a) * U32(b)) >> 32)
REFERENCE(hi_s64, (S64(a) * S64(b)) >> 64)
REFERENCE(hi_u64, (U64(a) * U64(b)) >> 64)
REFERENCE(mad_hi_u32, ((U32(a) * U32(b)) >> 32) + c)
REFERENCE(mad_hi_s32, (uint64_t)((S32(a) * S32(b)) >> 32) + c)
REFERENCE(wide_s16, S16(a) * S16(b))
REFERENCE(wide_u16, U16(a) * U16(b))
REFERENCE(wide_s32, S32(a) * S32(b))
REFERENCE(wide_u32, U32(a) * U32(b))
REFERENCE(mad_wide_s32, (uint64_t)(S32(a) * S32(b)) + c)
REFERENCE(mad_wide_u32, U32(a) * U32(b) + c)
REFERENCE(min_s32, S32(a) < S32(b) ? a : b)
REFERENCE(max_s32, S32(a) > S32(b) ? a : b)
REFERENCE(min_u32, U32(a) < U32(b) ? a : b)
REFERENCE(max_u32, U32(a) > U32(b) ? a : b)
REFERENCE(min_s64, (int64_t)a < (int64_t)b ? a : b)
REFERENCE(max_u64, a > b ? a : b)
REFERENCE(and, a &b)
REFERENCE(or, a | b)
REFERENCE(xor, a ^ b)
REFERENCE(not, ~a)
REFERENCE(neg, 0 - a)
REFERENCE(abs_s32, llabs(S32(a)))
REFERENCE(shl_32, U32(b) > 31 ? 0 : a << (b & 31))
REFERENCE(shl_64, U32(b) > 63 ? 0 : a << (b & 63))
REFERENCE(shl_16, U32(b) > 15 ? 0 : a << (b & 15))
REFERENCE(shr_u32, U32(b) > 31 ? 0 : U32(a) >> (b & 31))
REFERENCE(shr_s32, S32(a) >> (U32(b) > 31 ? 31 : b & 31))
REFERENCE(shr_u64, U32(b) > 63 ? 0 : a >> (b & 63))
REFERENCE(shr_s64, (int64_t)a >> (U32(b) > 63 ? 63 : b & 63))
REFERENCE(shr_s16, S16(a) >> (U32(b) > 15 ? 15 : b & 15))
REFERENCE(shf_l, (U32(b) << (c & 31)) | (c & 31 ? U32(a) >> (32 - (c & 31)) : 0))
REFERENCE(shf_r, (U32(a) >> (c & 31)) | (c & 31 ? U32(b) << (32 - (c & 31)) : 0))
REFERENCE(bfe_u32, extract_bits(U32(a), b & 255, c & 255, 32, 0))
REFERENCE(bfe_s32, extract_bits(U32(a), b & 255, c & 255, 32, 1))
REFERENCE(bfe_u64, extract_bits(a, b & 255, c & 255, 64, 0))
REFERENCE(bfe_s64, extract_bits(a, b & 255, c & 255, 64, 1))
REFERENCE(bfi_32, insert_bits(U32(a), U32(b), c & 255, d & 255, 32))
REFERENCE(bfi_64, insert_bits(a, b, c & 255, d & 255, 64))
REFERENCE(prmt, permute_bytes(U32(a), U32(b), c))
REFERENCE(lop3, lookup_bits(a, b, c, 0xd8))
REFERENCE(clz_32, zeros(a, 32))
REFERENCE(clz_64, zeros(a, 64))
REFERENCE(popc_32, ones(U32(a)))
REFERENCE(popc_64, ones(a))
REFERENCE(brev_32, mirror(a, 32))
REFERENCE(brev_64, mirror(a, 64))
REFERENCE(mov, a)
REFERENCE(pack_32, U16(a) | U16(b) << 16)
REFERENCE(pack_64, U32(a) | U32(b) << 32)
REFERENCE(selp, c & 1 ? a : b)

REFERENCE(single_add, fbits(f(a) + f(b)))
REFERENCE(single_sub, fbits(f(a) - f(b)))
REFERENCE(single_mul, fbits(f(a) * f(b)))
REFERENCE(single_div, fbits(f(a) / f(b)))
REFERENCE(single_fma, fbits(fmaf(f(a), f(b), f(c))))
REFERENCE(single_min, fbits((float)less(f(a), f(b), 0)))
REFERENCE(single_max, fbits((float)less(f(a), f(b), 1)))
REFERENCE(single_neg, fbits(-f(a)))
REFERENCE(single_abs, fbits(fabsf(f(a))))
REFERENCE(single_sqrt, fbits(sqrtf(f(a))))
REFERENCE(single_rcp, fbits(1 / f(a)))
REFERENCE(single_rsqrt, fbits((float)(1 / sqrt((double)f(a)))))
REFERENCE(single_ex2, fbits((float)exp2(f(a))))
REFERENCE(single_lg2, fbits((float)log2(f(a))))
REFERENCE(single_sin, fbits((float)sin(f(a))))
REFERENCE(single_cos, fbits((float)cos(f(a))))
REFERENCE(single_copysign, fbits(copysignf(f(b), f(a))))
REFERENCE(single_add_ftz, fbits(flush(flush(f(a)) + flush(f(b)))))
REFERENCE(single_mul_ftz, fbits(flush(flush(f(a)) * flush(f(b)))))
REFERENCE(single_fma_ftz, fbits(flush(fmaf(flush(f(a)), flush(f(b)), flush(f(c))))))
REFERENCE(gadd, gbits(g(a) + g(b)))
REFERENCE(gfma, gbits(fma(g(a), g(b), g(c))))
REFERENCE(gdiv, gbits(g(a) / g(b)))
REFERENCE(gsqrt, gbits(sqrt(g(a))))
REFERENCE(hadd, half_bits((float)half_value(a, F16) + (float)half_value(b, F16), F16))
REFERENCE(hmul, half_bits((float)half_value(a, F16) * (float)half_value(b, F16), F16))

REFERENCE(s64_s32, S32(a))
REFERENCE(u64_u32, U32(a))
REFERENCE(u16_u32, U16(a))
REFERENCE(s32_s16, S16(a))
REFERENCE(s32_s8, (int64_t)(int8_t)a)
REFERENCE(u32_u8, (uint8_t)a)
REFERENCE(f32_s32, fbits((float)(int32_t)a))
REFERENCE(f32_u32, fbits((float)(uint32_t)a))
REFERENCE(f32_s64, fbits((float)(int64_t)a))
REFERENCE(f32_u64, fbits((float)a))
REFERENCE(f64_s32, gbits((int32_t)a))
REFERENCE(s32_rzi, to_integer(f(a), 'z', INT32_MIN, INT32_MAX))
REFERENCE(s32_rni, to_integer(f(a), 'n', INT32_MIN, INT32_MAX))
REFERENCE(s32_rmi, to_integer(f(a), 'm', INT32_MIN, INT32_MAX))
REFERENCE(s32_rpi, to_integer(f(a), 'p', INT32_MIN, INT32_MAX))
REFERENCE(u32_rzi, to_integer(f(a), 'z', 0, UINT32_MAX))
REFERENCE(s64_rzi, to_integer(f(a), 'z', -0x1p63, 0x1p63))
REFERENCE(u64_rzi, to_integer(f(a), 'z', 0, 0x1p64))
REFERENCE(u8_rzi, to_integer(f(a), 'z', 0, 255))
REFERENCE(f32_rni, fbits(nearbyintf(f(a))))
REFERENCE(f32_rzi, fbits(truncf(f(a))))
REFERENCE(f32_rmi, fbits(floorf(f(a))))
REFERENCE(f32_rpi, fbits(ceilf(f(a))))
REFERENCE(f16_f32, half_bits(f(a), F16))
REFERENCE(bf16_f32, half_bits(f(a), BF16))
REFERENCE(f16_f64, half_bits(g(a), F16))
REFERENCE(f32_f16, fbits((float)half_value(a, F16)))
REFERENCE(f32_bf16, fbits((float)half_value(a, BF16)))
REFERENCE(f32_f64, fbits((float)g(a)))
REFERENCE(f64_f32, gbits(f(a)))
REFERENCE(f16x2, half_bits(f(a), F16) << 16 | half_bits(f(b), F16))
REFERENCE(bf16x2, half_bits(f(a), BF16) << 16 | half_bits(f(b), BF16))
REFERENCE(f32_sat, fbits(f(a) > 0 ? fminf(f(a), 1) : 0))
REFERENCE(s32_sat, S64(a) > INT32_MAX ? INT32_MAX : S64(a) < INT32_MIN ? INT32_MIN : (int64_t)a)

REFERENCE(eq_s32, U32(a) == U32(b))
REFERENCE(ne_u64, a != b)
REFERENCE(lt_s32, S32(a) < S32(b))
REFERENCE(le_u32, U32(a) <= U32(b))
REFERENCE(gt_s64, (int64_t)a > (int64_t)b)
REFERENCE(hs_u16, U16(a) >= U16(b))
REFERENCE(lt_s16, S16(a) < S16(b))
REFERENCE(lt_and, S32(a) < S32(b) && c & 1)
REFERENCE(ge_or_not, S32(a) >= S32(b) || !(c & 1))
REFERENCE(lt_f32, f(a) < f(b))
REFERENCE(ne_f32, f(a) < f(b) || f(a) > f(b))
REFERENCE(neu_f32, f(a) != f(b))
REFERENCE(leu_f32, !(f(a) > f(b)))
REFERENCE(nan_f32, isnan(f(a)) || isnan(f(b)))
REFERENCE(num_f64, !isnan(g(a)) && !isnan(g(b)))
REFERENCE(gtu_f64, !(g(a) <= g(b)))
REFERENCE(and_pred, a &b & 1)
REFERENCE(xor_pred, (a ^ b) & 1)
REFERENCE(not_pred, ~a & 1)

/* --- rows: the instruction with operands D (result), A, B, C, E; their letters (kernel.h); range of the
 * inputs */

typedef enum input_kind { INTEGERS, SMALL, FLOATS, DOUBLES, HALVES, ANGLES } input_kind;
typedef struct arithmetic_row {
    const char *text, *letters; /* result first */
    reference *reference;
    input_kind inputs;
    float tolerance; /* relative, for floats; 0: identical bits */
} arithmetic_row;

static const arithmetic_row rows[] = {
    {"add.s16 D, A, B", "hhh", add},
    {"add.s32 D, A, B", "www", add},
    {"add.u64 D, A, B", "lll", add},
    {"sub.s32 D, A, B", "www", sub},
    {"sub.s64 D, A, B", "lll", sub},
    {"mul.lo.s32 D, A, B", "www", mul},
    {"mul.lo.u16 D, A, B", "hhh", mul},
    {"mul.lo.s64 D, A, B", "lll", mul},
    {"mad.lo.s32 D, A, B, C", "wwww", mad},
    {"mad.lo.u64 D, A, B, C", "llll", mad},
    {"div.s32 D, A, B", "www", div_s32, SMALL},
    {"div.u32 D, A, B", "www", div_u32, SMALL},
    {"div.s64 D, A, B", "lll", div_s64, SMALL},
    {"div.u64 D, A, B", "lll", div_u64},
    {"rem.s32 D, A, B", "www", rem_s32, SMALL},
    {"rem.u32 D, A, B", "www", rem_u32, SMALL},
    {"rem.s64 D, A, B", "lll", rem_s64, SMALL},
    {"rem.u64 D, A, B", "lll", rem_u64, SMALL},
    {"mul.hi.s32 D, A, B", "www", hi_s32},
    {"mul.hi.u32 D, A, B", "www", hi_u32},
    {"mul.hi.s64 D, A, B", "lll", hi_s64},
    {"mul.hi.u64 D, A, B", "lll", hi_u64},
    {"mad.hi.u32 D, A, B, C", "wwww", mad_hi_u32},
    {"mad.hi.s32 D, A, B, C", "wwww", mad_hi_s32},
    {"mul.wide.s16 D, A, B", "whh", wide_s16},
    {"mul.wide.u16 D, A, B", "whh", wide_u16},
    {"mul.wide.s32 D, A, B", "lww", wide_s32},
    {"mul.wide.u32 D, A, B", "lww", wide_u32},
    {"mad.wide.s32 D, A, B, C", "lwwl", mad_wide_s32},
    {"mad.wide.u32 D, A, B, C", "lwwl", mad_wide_u32},
    {"min.s32 D, A, B", "www", min_s32},
    {"max.s32 D, A, B", "www", max_s32},
    {"min.u32 D, A, B", "www", min_u32},
    {"max.u32 D, A, B", "www", max_u32},
    {"min.s64 D, A, B", "lll", min_s64},
    {"max.u64 D, A, B", "lll", max_u64},
    {"and.b16 D, A, B", "hhh", and},
    {"and.b32 D, A, B", "www", and},
    {"or.b64 D, A, B", "lll", or },
    {"xor.b32 D, A, B", "www", xor},
    {"not.b32 D, A", "ww", not },
    {"not.b64 D, A", "ll", not },
    {"neg.s32 D, A", "ww", neg},
    {"neg.s64 D, A", "ll", neg},
    {"neg.s16 D, A", "hh", neg},
    {"abs.s32 D, A", "ww", abs_s32},
    {"shl.b32 D, A, B", "www", shl_32, SMALL},
    {"shl.b64 D, A, B", "llw", shl_64, SMALL},
    {"shl.b16 D, A, B", "hhw", shl_16, SMALL},
    {"shr.u32 D, A, B", "www", shr_u32, SMALL},
    {"shr.s32 D, A, B", "www", shr_s32, SMALL},
    {"shr.u64 D, A, B", "llw", shr_u64, SMALL},
    {"shr.s64 D, A, B", "llw", shr_s64, SMALL},
    {"shr.s16 D, A, B", "hhw", shr_s16, SMALL},
    {"shr.u32 D, A, B", "www", shr_u32},
    {"shf.l.wrap.b32 D, A, B, C", "wwww", shf_l},
    {"shf.r.wrap.b32 D, A, B, C", "wwww", shf_r},
    {"bfe.u32 D, A, B, C", "wwww", bfe_u32, SMALL},
    {"bfe.s32 D, A, B, C", "wwww", bfe_s32, SMALL},
    {"bfe.u64 D, A, B, C", "llww", bfe_u64, SMALL},
    {"bfe.s64 D, A, B, C", "llww", bfe_s64, SMALL},
    {"bfe.u32 D, A, B, C", "wwww", bfe_u32},
    {"bfi.b32 D, A, B, C, E", "wwwww", bfi_32, SMALL},
    {"bfi.b64 D, A, B, C, E", "lllww", bfi_64, SMALL},
    {"prmt.b32 D, A, B, C", "wwww", prmt},
    {"lop3.b32 D, A, B, C, 0xd8", "wwww", lop3},
    {"clz.b32 D, A", "ww", clz_32},
    {"clz.b64 D, A", "wl", clz_64},
    {"popc.b32 D, A", "ww", popc_32},
    {"popc.b64 D, A", "wl", popc_64},
    {"brev.b32 D, A", "ww", brev_32},
    {"brev.b64 D, A", "ll", brev_64},
    {"mov.b16 D, A", "hh", mov},
    {"mov.u32 D, A", "ww", mov},
    {"mov.b64 D, A", "ll", mov},
    {"mov.b32 D, {A, B}", "whh", pack_32},
    {"mov.b64 D, {A, B}", "lww", pack_64},
    {"selp.b32 D, A, B, C", "wwwp", selp},
    {"selp.b64 D, A, B, C", "lllp", selp},
    {"selp.b16 D, A, B, C", "hhhp", selp},

    {"add.rn.f32 D, A, B", "www", single_add, FLOATS},
    {"add.f32 D, A, B", "www", single_add, FLOATS},
    {"sub.f32 D, A, B", "www", single_sub, FLOATS},
    {"mul.rn.f32 D, A, B", "www", single_mul, FLOATS},
    {"div.rn.f32 D, A, B", "www", single_div, FLOATS},
    {"fma.rn.f32 D, A, B, C", "wwww", single_fma, FLOATS},
    {"min.f32 D, A, B", "www", single_min, FLOATS},
    {"max.f32 D, A, B", "www", single_max, FLOATS},
    {"neg.f32 D, A", "ww", single_neg, FLOATS},
    {"abs.f32 D, A", "ww", single_abs, FLOATS},
    {"sqrt.rn.f32 D, A", "ww", single_sqrt, FLOATS},
    {"rcp.rn.f32 D, A", "ww", single_rcp, FLOATS},
    {"rsqrt.approx.f32 D, A", "ww", single_rsqrt, FLOATS, 3e-7f},
    {"ex2.approx.f32 D, A", "ww", single_ex2, ANGLES, 3e-7f},
    {"lg2.approx.f32 D, A", "ww", single_lg2, FLOATS, 3e-7f},
    {"sin.approx.f32 D, A", "ww", single_sin, ANGLES, 3e-7f},
    {"cos.approx.f32 D, A", "ww", single_cos, ANGLES, 3e-7f},
    {"copysign.f32 D, A, B", "www", single_copysign, FLOATS},
    {"add.rn.ftz.f32 D, A, B", "www", single_add_ftz, FLOATS},
    {"mul.ftz.f32 D, A, B", "www", single_mul_ftz, FLOATS},
    {"fma.rn.ftz.f32 D, A, B, C", "wwww", single_fma_ftz, FLOATS},
    {"add.f64 D, A, B", "lll", gadd, DOUBLES},
    {"fma.rn.f64 D, A, B, C", "llll", gfma, DOUBLES},
    {"div.rn.f64 D, A, B", "lll", gdiv, DOUBLES},
    {"sqrt.rn.f64 D, A", "ll", gsqrt, DOUBLES},
    {"add.rn.f16 D, A, B", "hhh", hadd, HALVES},
    {"mul.rn.f16 D, A, B", "hhh", hmul, HALVES},

    {"cvt.s64.s32 D, A", "lw", s64_s32},
    {"cvt.u64.u32 D, A", "lw", u64_u32},
    {"cvt.u16.u32 D, A", "hw", u16_u32},
    {"cvt.u32.u64 D, A", "wl", mov},
    {"cvt.s32.s16 D, A", "wh", s32_s16},
    {"cvt.s32.s16 D, A", "ww", s32_s16},
    {"cvt.s32.s8 D, A", "wh", s32_s8},
    {"cvt.s16.s8 D, A", "hh", s32_s8},
    {"cvt.u32.u8 D, A", "ww", u32_u8},
    {"cvt.s8.s32 D, A", "hw", s32_s8},
    {"cvt.rn.f32.s32 D, A", "ww", f32_s32},
    {"cvt.rn.f32.u32 D, A", "ww", f32_u32},
    {"cvt.rn.f32.s64 D, A", "wl", f32_s64},
    {"cvt.rn.f32.u64 D, A", "wl", f32_u64},
    {"cvt.rn.f64.s32 D, A", "lw", f64_s32},
    {"cvt.rzi.s32.f32 D, A", "ww", s32_rzi, FLOATS},
    {"cvt.rni.s32.f32 D, A", "ww", s32_rni, FLOATS},
    {"cvt.rmi.s32.f32 D, A", "ww", s32_rmi, FLOATS},
    {"cvt.rpi.s32.f32 D, A", "ww", s32_rpi, FLOATS},
    {"cvt.rzi.u32.f32 D, A", "ww", u32_rzi, FLOATS},
    {"cvt.rzi.s64.f32 D, A", "lw", s64_rzi, FLOATS},
    {"cvt.rzi.u64.f32 D, A", "lw", u64_rzi, FLOATS},
    {"cvt.rzi.u8.f32 D, A", "hw", u8_rzi, FLOATS},
    {"cvt.rni.f32.f32 D, A", "ww", f32_rni, FLOATS},
    {"cvt.rzi.f32.f32 D, A", "ww", f32_rzi, FLOATS},
    {"cvt.rmi.f32.f32 D, A", "ww", f32_rmi, FLOATS},
    {"cvt.rpi.f32.f32 D, A", "ww", f32_rpi, FLOATS},
    {"cvt.rn.f16.f32 D, A", "hw", f16_f32, FLOATS},
    {"cvt.rn.bf16.f32 D, A", "hw", bf16_f32, FLOATS},
    {"cvt.rn.f16.f64 D, A", "hl", f16_f64, DOUBLES},
    {"cvt.f32.f16 D, A", "wh", f32_f16, HALVES},
    {"cvt.f32.bf16 D, A", "wh", f32_bf16, HALVES},
    {"cvt.rn.f32.f64 D, A", "wl", f32_f64, DOUBLES},
    {"cvt.f64.f32 D, A", "lw", f64_f32, FLOATS},
    {"cvt.rn.f16x2.f32 D, A, B", "www", f16x2, FLOATS},
    {"cvt.rn.bf16x2.f32 D, A, B", "www", bf16x2, FLOATS},
    {"cvt.sat.f32.f32 D, A", "ww", f32_sat, FLOATS},
    {"cvt.sat.s32.s64 D, A", "wl", s32_sat},
    {"cvt.sat.s32.s64 D, A", "wl", s32_sat, SMALL},

    {"setp.eq.s32 D, A, B", "pww", eq_s32, SMALL},
    {"setp.ne.u64 D, A, B", "pll", ne_u64, SMALL},
    {"setp.lt.s32 D, A, B", "pww", lt_s32},
    {"setp.le.u32 D, A, B", "pww", le_u32},
    {"setp.gt.s64 D, A, B", "pll", gt_s64},
    {"setp.hs.u16 D, A, B", "phh", hs_u16},
    {"setp.lt.s16 D, A, B", "phh", lt_s16},
    {"setp.lt.and.s32 D, A, B, C", "pwwp", lt_and},
    {"setp.ge.or.s32 D, A, B, !C", "pwwp", ge_or_not},
    {"setp.lt.f32 D, A, B", "pww", lt_f32, FLOATS},
    {"setp.ne.f32 D, A, B", "pww", ne_f32, FLOATS},
    {"setp.neu.f32 D, A, B", "pww", neu_f32, FLOATS},
    {"setp.leu.f32 D, A, B", "pww", leu_f32, FLOATS},
    {"setp.nan.f32 D, A, B", "pww", nan_f32, FLOATS},
    {"setp.num.f64 D, A, B", "pll", num_f64, DOUBLES},
    {"setp.gtu.f64 D, A, B", "pll", gtu_f64, DOUBLES},
    {"and.pred D, A, B", "ppp", and_pred},
    {"xor.pred D, A, B", "ppp", xor_pred},
    {"not.pred D, A", "pp", not_pred},
};

/* --- running a row */

/* Operand i (0: the result) of a kind: registers 10 + i. */
static const char *operand_name(char letter, int i) {
    static char names[5][16];
    const char bank = letter == 'w' ? 'r' : letter == 'l' ? 'd' : letter;
    snprintf(names[i], sizeof names[i], "%%%c%d", bank, (letter == 'p' ? 1 : 10) + i);
    return names[i];
}

/* Each item reads its operands from 32 bytes and writes its result to 8 bytes; 0 if the predicate is off. */
static void make_body(const arithmetic_row *row, const char *predicate, char *body, size_t size) {
    body[0] = 0;
    rig_append(body, size,
               "    mul.wide.u32 %%d2, %%r0, 32;\n    add.s64 %%d2, %%d2, %%d0;\n    mul.wide.u32 %%d3, %%r0, 8;\n"
               "    add.s64 %%d3, %%d3, %%d1;\n    and.b32 %%r4, %%r0, 1;\n    setp.eq.u32 %%p9, %%r4, 1;\n"
               "    mov.u64 %%d10, 0;\n    mov.u32 %%r10, 0;\n    mov.u16 %%h10, 0;\n    mov.pred %%p1, 0;\n");
    for (int i = 1; row->letters[i]; ++i) {
        const char letter = row->letters[i];
        const char *name = operand_name(letter, i);
        if (letter == 'p')
            rig_append(body, size,
                       "    ld.global.u32 %%r5, [%%d2+%d];\n    and.b32 %%r5, %%r5, 1;\n    setp.ne.u32 %s, %%r5, 0;\n",
                       8 * (i - 1), name);
        else
            rig_append(body, size, "    ld.global.%s %s, [%%d2+%d];\n",
                       letter == 'h'   ? "u16"
                       : letter == 'w' ? "u32"
                                       : "u64",
                       name, 8 * (i - 1));
    }
    rig_append(body, size, "    %s", predicate);
    for (const char *s = row->text; *s; ++s) {
        static const char order[] = "DABCE";
        const char *place = s > row->text && strchr(" {!", s[-1]) ? strchr(order, *s) : NULL;
        if (place && (!s[1] || strchr(",}", s[1])))
            rig_append(body, size, "%s", operand_name(row->letters[place - order], (int)(place - order)));
        else
            rig_append(body, size, "%c", *s);
    }
    const char result = row->letters[0];
    rig_append(body, size, ";\n");
    if (result == 'p')
        rig_append(body, size, "    selp.b64 %%d10, 1, 0, %%p1;\n");
    else if (result != 'l')
        rig_append(body, size, "    cvt.u64.u%d %%d10, %s;\n", result == 'h' ? 16 : 32, operand_name(result, 0));
    rig_append(body, size, "    st.global.b64 [%%d3], %%d10;\n");
}

static uint64_t input(input_kind inputs, int i, uint64_t *state) {
    static const uint64_t edges[] = {0,      1,      UINT64_MAX, 0x80000000, 0x7fffffff, 0xffffffff, UINT64_C(1) << 63,
                                     0x8000, 0x7fff, 31,         32,         33,         63,         64};
    static const float floats[] = {0,        -0.0f, 1,     -1,   INFINITY, -INFINITY,       NAN,  1e-40f, -1e-42f,
                                   65504,    65519, 65520, 2.5f, -0.5f,    1.17549435e-38f, 3e9f, -3e9f,  6e-8f,
                                   2.98e-8f, 3e-8f, 1e19f, 2e19f};
    const uint64_t random = rig_random(state);
    const bool edge = random >> 60 == 0 || i < 64;
    switch (inputs) {
    case SMALL:
        return (random >> 8) % 70 - (random >> 40 & 1 ? 35 : 0);
    case FLOATS: {
        const float x = edge ? floats[(random >> 20) % (sizeof floats / sizeof *floats)]
                             : ldexpf((float)(int32_t)random, (int)(random >> 40) % 60 - 60);
        return fbits(x);
    }
    case ANGLES:
        return fbits((float)(int32_t)random * 0x1p-29f);
    case DOUBLES:
        return gbits(edge ? floats[(random >> 20) % (sizeof floats / sizeof *floats)]
                          : ldexp((double)(int64_t)random, (int)(random >> 40 & 63) - 90));
    case HALVES:
        return random & 0xffff;
    default:
        return edge ? edges[(random >> 20) % (sizeof edges / sizeof *edges)] : random;
    }
}

static uint64_t width_mask(char letter) {
    return letter == 'h' ? 0xffff : letter == 'w' ? 0xffffffff : letter == 'p' ? 1 : UINT64_MAX;
}

static bool same(const arithmetic_row *row, uint64_t result, uint64_t expected) {
    if (result == expected) return true;
    if (row->inputs == INTEGERS || row->inputs == SMALL || row->letters[0] == 'p') return false;
    if (row->letters[0] == 'l' && strstr(row->text, ".f64")) return isnan(g(result)) && isnan(g(expected));
    if (row->letters[0] == 'h' && row->inputs == HALVES)
        return isnan(half_value(result, F16)) && isnan(half_value(expected, F16));
    if (row->letters[0] != 'w' || strstr(row->text, "x2")) return false;
    /* the card's NaN, whatever the operands' NaN; bf16 is shifted */
    if (isnan(f(expected))) return strstr(row->text, ".f32.bf16") ? isnan(f(result)) : result == 0x7fffffff;
    return row->tolerance > 0 && fabsf(f(result) - f(expected)) <= row->tolerance * fmaxf(fabsf(f(expected)), 0.1f);
}

static void check_row(const arithmetic_row *row, const char *predicate, uint32_t lanes) {
    rig r;
    rig_init(&r);
    r.items = RIG_ITEMS - 3; /* the last warp is not full */
    uint64_t state = 88172645463325252u, in[RIG_ITEMS][4], out[RIG_ITEMS];
    for (int i = 0; i < RIG_ITEMS; ++i)
        for (int k = 0; k < 4; ++k) in[i][k] = input(row->inputs, i, &state);
    memcpy(r.in, in, sizeof in);
    char body[4096];
    make_body(row, predicate, body, sizeof body);
    rig_run(&r, body);
    rig_expect_fault(&r, NULL);
    memcpy(out, r.out, sizeof out);
    for (uint32_t i = 0; i < r.items; ++i) {
        uint64_t v[4] = {0};
        for (int k = 0; row->letters[k] && row->letters[k + 1]; ++k) v[k] = in[i][k] & width_mask(row->letters[k + 1]);
        const uint64_t expected =
            lanes >> (i & 1) & 1 ? row->reference(v[0], v[1], v[2], v[3]) & width_mask(row->letters[0]) : 0;
        if (!same(row, out[i], expected))
            fail_msg("%s%s: A %llx B %llx C %llx: %llx instead of %llx", predicate, row->text, (unsigned long long)v[0],
                     (unsigned long long)v[1], (unsigned long long)v[2], (unsigned long long)out[i],
                     (unsigned long long)expected);
    }
}

static void every_instruction_gives_what_c_gives(void **unused) {
    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) check_row(&rows[i], "", 3);
}

static void lanes_that_are_off_keep_their_registers(void **unused) {
    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        check_row(&rows[i], "@%p9 ", 2);
        check_row(&rows[i], "@!%p9 ", 1);
    }
}

/* Converts all values of a half type in both directions. */
static void half_types_convert_exactly(void **unused) {
    (void)unused;
    rig r;
    rig_init(&r);
    r.items = RIG_ITEMS, r.groups = 256, r.threads = 2;
    rig_run(&r, "    cvt.u16.u32 %h1, %r1;\n    cvt.f32.f16 %f1, %h1;\n    cvt.rn.f16.f32 %h2, %f1;\n"
                "    setp.ne.s16 %p1, %h1, %h2;\n    cvt.f32.bf16 %f2, %h1;\n    cvt.rn.bf16.f32 %h3, %f2;\n"
                "    setp.ne.s16 %p2, %h1, %h3;\n    selp.b32 %r5, 1, 0, %p1;\n    selp.b32 %r6, 1, 0, %p2;\n"
                "    atom.global.add.u32 %r7, [%d1], %r5;\n    red.global.add.u32 [%d1+4], %r6;\n");
    rig_expect_fault(&r, NULL);
    uint32_t changed[2];
    memcpy(changed, r.out, sizeof changed);
    /* all NaNs become the card's NaN, so 2 * 1023 - 1 values of f16 and 2 * 127 - 1 of bf16 change */
    assert_int_equal(changed[0], 2045);
    assert_int_equal(changed[1], 253);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_instruction_gives_what_c_gives),
        cmocka_unit_test(lanes_that_are_off_keep_their_registers),
        cmocka_unit_test(half_types_convert_exactly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
