/* Vector arithmetic on halves: single, packed, mixed with f32, and dot products. */
#include "lanes.h"

GCN_HALF(add, a + b)
GCN_HALF(sub, a - b)
GCN_HALF(subrev, b - a)
GCN_HALF(mul, a *b)
GCN_HALF(multiply_add, ptx_round_to_odd((double)a *b + c))
GCN_HALF(least, ptx_min(a, b))
GCN_HALF(greatest, ptx_max(a, b))
GCN_HALF(middle, ptx_max(ptx_min(a, b), ptx_min(ptx_max(a, b), c)))
GCN_HALF(reciprocal, 1.0f / a)
GCN_HALF(root, sqrtf(a))
GCN_HALF(reciprocal_root, 1.0f / sqrtf(a))
GCN_HALF(power2, exp2f(a))
GCN_HALF(logarithm2, log2f(a))
GCN_HALF(down, floorf(a))
GCN_HALF(up, ceilf(a))
GCN_HALF(to_zero, truncf(a))
GCN_HALF(to_even, rintf(a))

GCN_HALF_PAIR(add_pair, a + b)
GCN_HALF_PAIR(mul_pair, a *b)
GCN_HALF_PAIR(multiply_add_pair, ptx_round_to_odd((double)a *b + c))
GCN_HALF_PAIR(least_pair, ptx_min(a, b))
GCN_HALF_PAIR(greatest_pair, ptx_max(a, b))

static void load_exponent(const gcn_lanes *x) {
    for (int l = 0; l < x->lanes; ++l) {
        const int exponent = (int16_t)x->b[l];
        x->to[l] = ptx_to_f16(ldexpf(ptx_from_f16((uint16_t)x->a[l]), exponent < -60  ? -60
                                                                      : exponent > 60 ? 60
                                                                                      : exponent));
    }
}
static void from_unsigned(const gcn_lanes *x) {
    for (int l = 0; l < x->lanes; ++l) x->to[l] = ptx_to_f16((float)(uint16_t)x->a[l]);
}
static void from_integer(const gcn_lanes *x) {
    for (int l = 0; l < x->lanes; ++l) x->to[l] = ptx_to_f16((float)(int16_t)x->a[l]);
}

/* Rounds towards zero. */
static uint16_t chopped(float x) {
    const uint16_t near = ptx_to_f16(x);
    const float back = ptx_from_f16(near);
    return fabsf(back) > fabsf(x) && fabsf(x) < INFINITY ? (uint16_t)(near - 1) : near;
}
static void pack_chopped(const gcn_lanes *x) {
    for (int l = 0; l < x->lanes; ++l)
        x->to[l] = chopped(ptx_bits_float(x->a[l])) | (uint32_t)chopped(ptx_bits_float(x->b[l])) << 16;
}

/* --- fma_mix: the operands are f32 already */

GCN_FLOAT(mix, fmaf(a, b, c))
static void mix_low(const gcn_lanes *x) {
    for (int l = 0; l < x->lanes; ++l) {
        const float rounded = fmaf(ptx_bits_float(x->a[l]), ptx_bits_float(x->b[l]), ptx_bits_float(x->c[l]));
        x->to[l] = (x->d[l] & 0xffff0000u) | ptx_to_f16(rounded);
    }
}
static void mix_high(const gcn_lanes *x) {
    for (int l = 0; l < x->lanes; ++l) {
        const float rounded = fmaf(ptx_bits_float(x->a[l]), ptx_bits_float(x->b[l]), ptx_bits_float(x->c[l]));
        x->to[l] = (x->d[l] & 0xffffu) | (uint32_t)ptx_to_f16(rounded) << 16;
    }
}

/* Two products of halves and an f32. */
static void dot(const gcn_lanes *x) {
    for (int l = 0; l < x->lanes; ++l) {
        const uint32_t a = x->a[l], b = x->b[l];
        const float low = ptx_from_f16((uint16_t)a) * ptx_from_f16((uint16_t)b);
        const float high = ptx_from_f16((uint16_t)(a >> 16)) * ptx_from_f16((uint16_t)(b >> 16));
        x->to[l] = ptx_float_bits((float)((double)low + high + ptx_bits_float(x->c[l])));
    }
}

static const gcn_form forms[] = {
    {"v_add_f16", "h=hh", .lanes = add},
    {"v_sub_f16", "h=hh", .lanes = sub},
    {"v_subrev_f16", "h=hh", .lanes = subrev},
    {"v_mul_f16", "h=hh", .lanes = mul},
    {"v_fma_f16", "h=hhh", .lanes = multiply_add},
    {"v_fmac_f16", "h=hh+", .lanes = multiply_add},
    {"v_min_f16", "h=hh", .lanes = least},
    {"v_max_f16", "h=hh", .lanes = greatest},
    {"v_med3_f16", "h=hhh", .lanes = middle},
    {"v_rcp_f16", "h=h", .lanes = reciprocal, .counts = GCN_COUNTS_SPECIAL},
    {"v_sqrt_f16", "h=h", .lanes = root, .counts = GCN_COUNTS_SPECIAL},
    {"v_rsq_f16", "h=h", .lanes = reciprocal_root, .counts = GCN_COUNTS_SPECIAL},
    {"v_exp_f16", "h=h", .lanes = power2, .counts = GCN_COUNTS_SPECIAL},
    {"v_log_f16", "h=h", .lanes = logarithm2, .counts = GCN_COUNTS_SPECIAL},
    {"v_floor_f16", "h=h", .lanes = down},
    {"v_ceil_f16", "h=h", .lanes = up},
    {"v_trunc_f16", "h=h", .lanes = to_zero},
    {"v_rndne_f16", "h=h", .lanes = to_even},
    {"v_ldexp_f16", "h=hw", .lanes = load_exponent},
    {"v_cvt_f16_u16", "h=w", .lanes = from_unsigned},
    {"v_cvt_f16_i16", "h=w", .lanes = from_integer},
    {"v_cvt_pkrtz_f16_f32", "i=ff", .lanes = pack_chopped},
    {"v_cvt_pk_rtz_f16_f32", "i=ff", .lanes = pack_chopped},
    {"v_pk_add_f16", "P=PP", .lanes = add_pair},
    {"v_pk_mul_f16", "P=PP", .lanes = mul_pair},
    {"v_pk_fma_f16", "P=PPP", .lanes = multiply_add_pair},
    {"v_pk_min_f16", "P=PP", .lanes = least_pair},
    {"v_pk_max_f16", "P=PP", .lanes = greatest_pair},
    {"v_fma_mix_f32", "f=xxx", .lanes = mix, .counts = GCN_COUNTS_FMA},
    {"v_fma_mixlo_f16", "i=xxx+", .lanes = mix_low, .counts = GCN_COUNTS_FMA},
    {"v_fma_mixhi_f16", "i=xxx+", .lanes = mix_high, .counts = GCN_COUNTS_FMA},
    {"v_dot2_f32_f16", "f=PPf", .lanes = dot, .counts = GCN_COUNTS_FMA},
    {"v_dot2c_f32_f16", "f=PP+", .lanes = dot, .counts = GCN_COUNTS_FMA},
    {"v_dot2acc_f32_f16", "f=PP+", .lanes = dot, .counts = GCN_COUNTS_FMA},
};

const gcn_table GCN_VARIANT(gcn_half_table) = GCN_TABLE(forms);
