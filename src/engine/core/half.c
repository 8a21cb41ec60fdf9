/* Rounding to half types, and back. The code has no branches, so that compilers vectorize its loops. */
#include "core/half.h"

#include <string.h>

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Rounds to nearest, ties to even, and drops the last `places` bits: adds half a unit of the last remaining
 * place, less one bit if that place is even. */
static uint32_t round_off(uint32_t bits, int places) {
    return (bits + (1u << (places - 1)) - 1 + (bits >> places & 1)) >> places;
}

void cleat_to_f16(const float *values, size_t count, uint16_t *bits) {
    const uint32_t infinity = 0x7f800000, overflow = 0x477ff000 /* 65520 */, least_normal = 0x38800000 /* 2^-14 */;
    for (size_t i = 0; i < count; ++i) {
        uint32_t x = bits_of(values[i]), size = x & 0x7fffffff;
        uint32_t normal = round_off(size - 0x38000000 /* exponents 127 and 15 */, 13);
        /* The last place of 0.5f equals that of f16's subnormals, so the addition rounds. */
        uint32_t subnormal = bits_of(float_of(size) + 0.5f) - 0x3f000000;
        uint32_t half = size < least_normal ? subnormal : normal;
        half = size >= overflow ? 0x7c00 : half;
        half = size > infinity ? 0x7e00 : half;
        bits[i] = (uint16_t)(x >> 16 & 0x8000) | (uint16_t)half;
    }
}

void cleat_to_bf16(const float *values, size_t count, uint16_t *bits) {
    for (size_t i = 0; i < count; ++i) {
        uint32_t x = bits_of(values[i]);
        bits[i] = (uint16_t)((x & 0x7fffffff) > 0x7f800000 ? x >> 16 | 0x40 : round_off(x, 16));
    }
}

void cleat_from_f16(const uint16_t *bits, size_t count, float *values) {
    const uint32_t infinity = 0x7c00;
    for (size_t i = 0; i < count; ++i) {
        uint32_t size = bits[i] & 0x7fffu, sign = (uint32_t)(bits[i] & 0x8000u) << 16;
        /* As a float, these bits are the value times 2^-112; the product is exact, for subnormals too. */
        float value = float_of(size << 13) * 0x1p112f;
        uint32_t wide = size >= infinity ? 0x7f800000 | size << 13 : bits_of(value);
        values[i] = float_of(wide | sign);
    }
}

void cleat_from_bf16(const uint16_t *bits, size_t count, float *values) {
    for (size_t i = 0; i < count; ++i) values[i] = float_of((uint32_t)bits[i] << 16);
}
