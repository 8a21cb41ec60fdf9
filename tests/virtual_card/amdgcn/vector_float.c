/* Vector arithmetic on f32 and f64. */
#include "lanes.h"

GCN_FLOAT(add, a + b)
GCN_FLOAT(sub, a - b)
GCN_FLOAT(subrev, b - a)
GCN_FLOAT(mul, a *b)
GCN_FLOAT(mul_legacy, a == 0 || b == 0 ? 0 : a * b)
GCN_FLOAT(multiply_add, fmaf(a, b, c))
/* v_mac and v_mad round twice and flush subnormal numbers. */
GCN_FLOAT(multiply_then_add, ptx_flush(ptx_flush(ptx_flush(a) * ptx_flush(b)) + ptx_flush(c)))
GCN_FLOAT(least, ptx_min(a, b))
GCN_FLOAT(greatest, ptx_max(a, b))
GCN_FLOAT(least3, ptx_min(ptx_min(a, b), c))
GCN_FLOAT(greatest3, ptx_max(ptx_max(a, b), c))
GCN_FLOAT(least_greatest, ptx_max(ptx_min(a, b), c))
GCN_FLOAT(greatest_least, ptx_min(ptx_max(a, b), c))
GCN_FLOAT(middle,
          a != a || b != b || c != c ? ptx_min(ptx_min(a, b), c) : ptx_max(ptx_min(a, b), ptx_min(ptx_max(a, b), c)))
GCN_FLOAT(fraction, ptx_min(a - floorf(a), 0x1.fffffep-1f))
GCN_FLOAT(down, floorf(a))
GCN_FLOAT(up, ceilf(a))
GCN_FLOAT(to_zero, truncf(a))
GCN_FLOAT(to_even, rintf(a))

GCN_FLOAT_PAIR(add_pair, a + b)
GCN_FLOAT_PAIR(mul_pair, a *b)
GCN_FLOAT_PAIR(multiply_add_pair, fmaf(a, b, c))

/* The special-function unit flushes subnormal inputs and results. */
GCN_FLOAT(reciprocal, ptx_flush(1.0f / ptx_flush(a)))
GCN_FLOAT(root, ptx_flush(sqrtf(ptx_flush(a))))
GCN_FLOAT(reciprocal_root, ptx_flush(1.0f / sqrtf(ptx_flush(a))))
GCN_FLOAT(power2, ptx_flush(exp2f(ptx_flush(a))))
GCN_FLOAT(logarithm2, log2f(ptx_flush(a)))
/* The argument is in turns; beyond 256 turns the results are 0 and 1. */
GCN_FLOAT(sine, fabsf(a) <= 256.0f ? (float)sin((double)a * 6.283185307179586) : 0.0f)
GCN_FLOAT(cosine, fabsf(a) <= 256.0f ? (float)cos((double)a * 6.283185307179586) : 1.0f)

/* --- parts of floats */

static bool is_finite(float x) {
    return (ptx_float_bits(x) & 0x7f800000u) != 0x7f800000u;
}

static float mantissa_of(float x) {
    int exponent;
    return is_finite(x) ? frexpf(x, &exponent) : x;
}

static int32_t exponent_of(float x) {
    int exponent = 0;
    if (is_finite(x) && x != 0) (void)frexpf(x, &exponent);
    return exponent;
}

static float scale(float x, int32_t exponent) {
    return ldexpf(x, exponent < -500 ? -500 : exponent > 500 ? 500 : exponent);
}

GCN_FLOAT(mantissa, mantissa_of(a))
static void exponent(const gcn_lanes *x) {
    for (int l = 0; l < x->lanes; ++l) x->to[l] = (uint32_t)exponent_of(ptx_bits_float(x->a[l]));
}
static void load_exponent(const gcn_lanes *x) {
    for (int l = 0; l < x->lanes; ++l) x->to[l] = ptx_float_bits(scale(ptx_bits_float(x->a[l]), (int32_t)x->b[l]));
}

/* --- division: div_scale, div_fmas and div_fixup as in the instruction set manual */

static int biased(float x) {
    return (int)(ptx_float_bits(x) >> 23 & 255);
}
static bool is_subnormal(float x) {
    return biased(x) == 0 && x != 0;
}

/* a is the denominator or the numerator (c). It is scaled if the steps of the division would leave the normal
 * range. */
static float scaled_for_division(float a, float b, float c, bool *scaled) {
    *scaled = false;
    const bool is_denominator = ptx_float_bits(a) == ptx_float_bits(b);
    if (b == 0 || c == 0) return (float)NAN;
    if (biased(c) - biased(b) >= 96) {
        *scaled = true;
        return is_denominator ? ldexpf(a, 64) : a;
    }
    if (is_subnormal(b)) return ldexpf(a, 64);
    const bool small_reciprocal = is_subnormal((float)(1.0 / (double)b)),
               small = is_subnormal((float)((double)c / (double)b));
    if (small_reciprocal && small) {
        *scaled = true;
        return is_denominator ? ldexpf(a, 64) : a;
    }
    if (small_reciprocal) return ldexpf(a, -64);
    if (small) {
        *scaled = true;
        return is_denominator ? a : ldexpf(a, 64);
    }
    return biased(c) <= 23 ? ldexpf(a, 64) : a;
}

static void division_scale(const gcn_lanes *x) {
    for (int l = 0; l < x->lanes; ++l) {
        bool scaled;
        const float result =
            scaled_for_division(ptx_bits_float(x->a[l]), ptx_bits_float(x->b[l]), ptx_bits_float(x->c[l]), &scaled);
        x->to[l] = ptx_float_bits(result);
        x->mask[l] = scaled;
    }
}

/* Rounds once, possibly to a subnormal number. */
static void division_steps(const gcn_lanes *x) {
    const uint64_t vcc = gcn_vcc(x->wave);
    for (int l = 0; l < x->lanes; ++l) {
        const float c = ptx_bits_float(x->c[l]);
        const double sum = fma(ptx_bits_float(x->a[l]), ptx_bits_float(x->b[l]), c);
        const int up = biased(c) > 127 ? 64 : -64;
        x->to[l] = ptx_float_bits((float)(vcc >> l & 1 ? ldexp(sum, up) : sum));
    }
}

static float fixed_quotient(float quotient, float denominator, float numerator) {
    const uint32_t sign = (ptx_float_bits(denominator) ^ ptx_float_bits(numerator)) & 0x80000000u;
    if (numerator != numerator) return numerator;
    if (denominator != denominator) return denominator;
    if ((denominator == 0 && numerator == 0) || (!is_finite(denominator) && !is_finite(numerator))) return (float)NAN;
    if (denominator == 0 || !is_finite(numerator)) return ptx_bits_float(sign | 0x7f800000u);
    if (numerator == 0 || !is_finite(denominator)) return ptx_bits_float(sign);
    return ptx_bits_float((ptx_float_bits(quotient) & 0x7fffffffu) | sign);
}
GCN_FLOAT(division_end, fixed_quotient(a, b, c))

/* --- conversions */

static int32_t to_integer(float x) {
    return x != x ? 0 : x >= 0x1p31f ? INT32_MAX : x <= -0x1p31f ? INT32_MIN : (int32_t)x;
}
static uint32_t to_unsigned(float x) {
    return x != x || x <= 0 ? 0 : x >= 0x1p32f ? UINT32_MAX : (uint32_t)x;
}
#define CONVERT(name, value)                                                                                           \
    static void name(const gcn_lanes *x) {                                                                             \
        for (int l = 0; l < x->lanes; ++l) {                                                                           \
            const uint32_t bits = x->a[l];                                                                             \
            const float a = ptx_bits_float(bits);                                                                      \
            (void)a;                                                                                                   \
            x->to[l] = (uint32_t)(value);                                                                              \
        }                                                                                                              \
    }
CONVERT(float_to_integer, to_integer(a))
CONVERT(float_to_unsigned, to_unsigned(a))
CONVERT(float_to_integer_down, to_integer(floorf(a)))
CONVERT(float_to_integer_nearest, to_integer(floorf(a + 0.5f)))
CONVERT(integer_to_float, ptx_float_bits((float)(int32_t)bits))
CONVERT(unsigned_to_float, ptx_float_bits((float)bits))
CONVERT(byte0_to_float, ptx_float_bits((float)(bits & 255)))
CONVERT(byte1_to_float, ptx_float_bits((float)(bits >> 8 & 255)))
CONVERT(byte2_to_float, ptx_float_bits((float)(bits >> 16 & 255)))
CONVERT(byte3_to_float, ptx_float_bits((float)(bits >> 24)))
CONVERT(float_to_half, ptx_to_f16(a))
CONVERT(half_to_float, ptx_float_bits(ptx_from_f16((uint16_t)bits)))

/* --- f64 */

static double wide_of(const uint32_t *low, const uint32_t *high, int l) {
    const uint64_t bits = low[l] | (uint64_t)high[l] << 32;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
#define DOUBLE(name, value)                                                                                            \
    static void name(const gcn_lanes *x) {                                                                             \
        for (int l = 0; l < x->lanes; ++l) {                                                                           \
            const double a = wide_of(x->a, x->a_high, l), b = wide_of(x->b, x->b_high, l),                             \
                         c = wide_of(x->c, x->c_high, l);                                                              \
            (void)a, (void)b, (void)c;                                                                                 \
            const double result = (value);                                                                             \
            uint64_t bits;                                                                                             \
            memcpy(&bits, &result, sizeof bits);                                                                       \
            x->to[l] = (uint32_t)bits;                                                                                 \
            x->high[l] = (uint32_t)(bits >> 32);                                                                       \
        }                                                                                                              \
    }
DOUBLE(add_wide, a + b)
DOUBLE(mul_wide, a *b)
DOUBLE(multiply_add_wide, fma(a, b, c))
DOUBLE(float_to_wide, (double)ptx_bits_float(x->a[l]))
DOUBLE(integer_to_wide, (double)(int32_t)x->a[l])
DOUBLE(unsigned_to_wide, (double)x->a[l])
DOUBLE(load_exponent_wide, ldexp(a, (int32_t)x->b[l]))
static void wide_to_float(const gcn_lanes *x) {
    for (int l = 0; l < x->lanes; ++l) x->to[l] = ptx_float_bits((float)wide_of(x->a, x->a_high, l));
}

#define FMA .counts = GCN_COUNTS_FMA
#define SPECIAL .counts = GCN_COUNTS_SPECIAL
static const gcn_form forms[] = {
    {"v_add_f32", "f=ff", .lanes = add},
    {"v_sub_f32", "f=ff", .lanes = sub},
    {"v_subrev_f32", "f=ff", .lanes = subrev},
    {"v_mul_f32", "f=ff", .lanes = mul},
    {"v_mul_legacy_f32", "f=ff", .lanes = mul_legacy},
    {"v_mul_dx9_zero_f32", "f=ff", .lanes = mul_legacy},
    {"v_fma_f32", "f=fff", .lanes = multiply_add, FMA},
    {"v_fmaak_f32", "f=fff", .lanes = multiply_add, FMA},
    {"v_fmamk_f32", "f=fff", .lanes = multiply_add, FMA},
    {"v_fmac_f32", "f=ff+", .lanes = multiply_add, FMA},
    {"v_mad_f32", "f=fff", .lanes = multiply_then_add, FMA},
    {"v_madak_f32", "f=fff", .lanes = multiply_then_add, FMA},
    {"v_madmk_f32", "f=fff", .lanes = multiply_then_add, FMA},
    {"v_mac_f32", "f=ff+", .lanes = multiply_then_add, FMA},
    {"v_pk_add_f32", "F=FF", .lanes = add_pair},
    {"v_pk_mul_f32", "F=FF", .lanes = mul_pair},
    {"v_pk_fma_f32", "F=FFF", .lanes = multiply_add_pair, .counts = GCN_COUNTS_TWO_FMA},
    {"v_min_f32", "f=ff", .lanes = least},
    {"v_max_f32", "f=ff", .lanes = greatest},
    {"v_min3_f32", "f=fff", .lanes = least3},
    {"v_max3_f32", "f=fff", .lanes = greatest3},
    {"v_minmax_f32", "f=fff", .lanes = least_greatest},
    {"v_maxmin_f32", "f=fff", .lanes = greatest_least},
    {"v_med3_f32", "f=fff", .lanes = middle},
    {"v_fract_f32", "f=f", .lanes = fraction},
    {"v_floor_f32", "f=f", .lanes = down},
    {"v_ceil_f32", "f=f", .lanes = up},
    {"v_trunc_f32", "f=f", .lanes = to_zero},
    {"v_rndne_f32", "f=f", .lanes = to_even},
    {"v_rcp_f32", "f=f", .lanes = reciprocal, SPECIAL},
    {"v_rcp_iflag_f32", "f=f", .lanes = reciprocal, SPECIAL},
    {"v_sqrt_f32", "f=f", .lanes = root, SPECIAL},
    {"v_rsq_f32", "f=f", .lanes = reciprocal_root, SPECIAL},
    {"v_exp_f32", "f=f", .lanes = power2, SPECIAL},
    {"v_log_f32", "f=f", .lanes = logarithm2, SPECIAL},
    {"v_sin_f32", "f=f", .lanes = sine, SPECIAL},
    {"v_cos_f32", "f=f", .lanes = cosine, SPECIAL},
    {"v_frexp_mant_f32", "f=f", .lanes = mantissa},
    {"v_frexp_exp_i32_f32", "i=f", .lanes = exponent},
    {"v_ldexp_f32", "f=fi", .lanes = load_exponent},
    {"v_div_scale_f32", "fm=fff", .lanes = division_scale},
    {"v_div_fmas_f32", "f=fff", .lanes = division_steps, FMA},
    {"v_div_fixup_f32", "f=fff", .lanes = division_end},
    {"v_cvt_i32_f32", "i=f", .lanes = float_to_integer},
    {"v_cvt_u32_f32", "i=f", .lanes = float_to_unsigned},
    {"v_cvt_flr_i32_f32", "i=f", .lanes = float_to_integer_down},
    {"v_cvt_floor_i32_f32", "i=f", .lanes = float_to_integer_down},
    {"v_cvt_rpi_i32_f32", "i=f", .lanes = float_to_integer_nearest},
    {"v_cvt_nearest_i32_f32", "i=f", .lanes = float_to_integer_nearest},
    {"v_cvt_f32_i32", "f=i", .lanes = integer_to_float},
    {"v_cvt_f32_u32", "f=i", .lanes = unsigned_to_float},
    {"v_cvt_f32_ubyte0", "f=i", .lanes = byte0_to_float},
    {"v_cvt_f32_ubyte1", "f=i", .lanes = byte1_to_float},
    {"v_cvt_f32_ubyte2", "f=i", .lanes = byte2_to_float},
    {"v_cvt_f32_ubyte3", "f=i", .lanes = byte3_to_float},
    {"v_cvt_f16_f32", "h=f", .lanes = float_to_half},
    {"v_cvt_f32_f16", "f=h", .lanes = half_to_float},
    {"v_add_f64", "d=dd", .lanes = add_wide},
    {"v_mul_f64", "d=dd", .lanes = mul_wide},
    {"v_fma_f64", "d=ddd", .lanes = multiply_add_wide},
    {"v_cvt_f64_f32", "d=f", .lanes = float_to_wide},
    {"v_cvt_f64_i32", "d=i", .lanes = integer_to_wide},
    {"v_cvt_f64_u32", "d=i", .lanes = unsigned_to_wide},
    {"v_cvt_f32_f64", "f=d", .lanes = wide_to_float},
    {"v_ldexp_f64", "d=di", .lanes = load_exponent_wide},
};

const gcn_table GCN_VARIANT(gcn_float_table) = GCN_TABLE(forms);
