/* Macros of the arithmetic tables: actions over 32 lanes as expressions, and conversions of half types. */
#ifndef VIRTUAL_CARD_LANES_H
#define VIRTUAL_CARD_LANES_H

#include "warp.h"

#include <math.h>
#include <string.h>

/* Defines actions. The expression of a lane's result uses a[l], b[l], c[l] and the type `lane`. */
#define PTX_UNARY(name, type, value)                                                                                   \
    static void name(ptx_warp *warp, const ptx_instruction *now, uint32_t mask) {                                      \
        typedef type lane;                                                                                             \
        lane *to = ptx_at_operand(warp, now->to[0]);                                                                   \
        const lane *a = ptx_at_operand(warp, now->from[0]);                                                            \
        PTX_EACH_LANE(lane, to, mask, (lane)(value));                                                                  \
    }
#define PTX_BINARY(name, type, value)                                                                                  \
    static void name(ptx_warp *warp, const ptx_instruction *now, uint32_t mask) {                                      \
        typedef type lane;                                                                                             \
        lane *to = ptx_at_operand(warp, now->to[0]);                                                                   \
        const lane *a = ptx_at_operand(warp, now->from[0]), *b = ptx_at_operand(warp, now->from[1]);                   \
        PTX_EACH_LANE(lane, to, mask, (lane)(value));                                                                  \
    }
#define PTX_TERNARY(name, type, value)                                                                                 \
    static void name(ptx_warp *warp, const ptx_instruction *now, uint32_t mask) {                                      \
        typedef type lane;                                                                                             \
        lane *to = ptx_at_operand(warp, now->to[0]);                                                                   \
        const lane *a = ptx_at_operand(warp, now->from[0]), *b = ptx_at_operand(warp, now->from[1]),                   \
                   *c = ptx_at_operand(warp, now->from[2]);                                                            \
        PTX_EACH_LANE(lane, to, mask, (lane)(value));                                                                  \
    }
/* Actions with mixed types: of the result and of up to four inputs. */
#define PTX_MIXED(name, type, type_a, type_b, type_c, type_d, value)                                                   \
    static void name(ptx_warp *warp, const ptx_instruction *now, uint32_t mask) {                                      \
        typedef type lane;                                                                                             \
        const ptx_operand *from = now->from;                                                                           \
        const int last = now->n_from - 1;                                                                              \
        lane *to = ptx_at_operand(warp, now->to[0]);                                                                   \
        const type_a *a = ptx_at_operand(warp, from[0]);                                                               \
        const type_b *b = ptx_at_operand(warp, from[last < 1 ? last : 1]);                                             \
        const type_c *c = ptx_at_operand(warp, from[last < 2 ? last : 2]);                                             \
        const type_d *d = ptx_at_operand(warp, from[last < 3 ? last : 3]);                                             \
        (void)b, (void)c, (void)d;                                                                                     \
        PTX_EACH_LANE(lane, to, mask, (lane)(value));                                                                  \
    }

static inline uint32_t ptx_float_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
static inline float ptx_bits_float(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* The card writes a NaN result with these bits, whatever the payloads of its operands (PTX ISA, "Floating
 * Point Comparisons": canonical NaN; seen on an H200). */
#define PTX_NAN 0x7fffffffu
static inline float ptx_result(float x) {
    return x == x ? x : ptx_bits_float(PTX_NAN);
}

/* .ftz: flushes a denormal number to a zero of the same sign. */
static inline float ptx_flush(float x) {
    const uint32_t bits = ptx_float_bits(x);
    return ptx_bits_float(bits & 0x7f800000u ? bits : bits & 0x80000000u);
}

static inline float ptx_from_f16(uint16_t half) {
    const uint32_t magnitude = half & 0x7fffu;
    const uint32_t normal = (magnitude << 13) + (magnitude >= 0x7c00 ? 224u << 23 : 112u << 23);
    const uint32_t denormal = ptx_float_bits((float)(int32_t)magnitude * 0x1p-24f);
    return ptx_bits_float((magnitude < 0x400 ? denormal : normal) | (uint32_t)(half & 0x8000u) << 16);
}
/* Rounds to nearest, ties to even; a NaN becomes 0x7fff, as on the card. */
static inline uint16_t ptx_to_f16(float x) {
    const uint32_t bits = ptx_float_bits(x), magnitude = bits & 0x7fffffffu;
    const uint32_t normal = (magnitude + 0xfff + (magnitude >> 13 & 1) - (112u << 23)) >> 13;
    const uint32_t denormal = ptx_float_bits(ptx_bits_float(magnitude) + 0.5f) - 0x3f000000u; /* ulp of 0.5: 2^-24 */
    const uint32_t finite = magnitude < 0x38800000u ? denormal : magnitude >= 0x477ff000u ? 0x7c00 : normal;
    return (uint16_t)(magnitude > 0x7f800000u ? 0x7fff : finite | (bits >> 16 & 0x8000u));
}
static inline float ptx_from_bf16(uint16_t half) {
    return ptx_bits_float((uint32_t)half << 16);
}
static inline uint16_t ptx_to_bf16(float x) {
    const uint32_t bits = ptx_float_bits(x);
    return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? 0x7fff : (bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
/* Rounds to odd: rounding the float to a half type then equals rounding the double. */
static inline float ptx_round_to_odd(double x) {
    const float near = (float)x;
    if ((double)near == x || x != x) return near;
    const uint32_t bits = ptx_float_bits(near);
    const bool beyond = fabs((double)near) > fabs(x);
    return ptx_bits_float((beyond ? bits - 1 : bits) | 1);
}

/* PTX's minimum: a number wins over a NaN, and -0 is less than 0. */
static inline float ptx_min(float a, float b) {
    const bool less = a < b || (a == b && ptx_float_bits(a) >> 31);
    return a != a ? b : b != b ? a : less ? a : b;
}
static inline float ptx_max(float a, float b) {
    const bool less = a < b || (a == b && ptx_float_bits(a) >> 31);
    return a != a ? b : b != b ? a : less ? b : a;
}

#endif
