/* Tolerance checks, and rounding to the storage types on the host. Rounding works in double precision,
 * independently of the kernels' implementation. */
#include "compare.h"

#include <math.h>
#include <string.h>

double compare_roundoff(cleat_dtype dtype) {
    switch (dtype) {
    case CLEAT_F32:
        return 0x1p-24;
    case CLEAT_F16:
    case CLEAT_TF32:
        return 0x1p-11;
    case CLEAT_BF16:
        return 0x1p-8;
    default:
        return 0;
    }
}

/* Rounds x to `bits` significant bits, with a spacing never finer than `finest`. */
static double round_to(double x, int bits, double finest) {
    if (!isfinite(x) || x == 0) return x;
    int exponent;
    frexp(x, &exponent);
    double spacing = ldexp(1.0, exponent - bits);
    if (spacing < finest) spacing = finest;
    return nearbyint(x / spacing) * spacing;
}

double compare_round(cleat_dtype dtype, double x) {
    double y;
    switch (dtype) {
    case CLEAT_F32:
        return (double)(float)x;
    case CLEAT_F16:
        y = round_to(x, 11, 0x1p-24);
        return fabs(y) > 65504.0 ? copysign(INFINITY, x) : y;
    case CLEAT_BF16:
        y = round_to(x, 8, 0x1p-133);
        return fabs(y) > 0x1.fep127 ? copysign(INFINITY, x) : y;
    case CLEAT_TF32: /* ties go away from zero: slightly more than x is not a tie */
        return round_to(x * (1 + 0x1p-26), 11, 0x1p-149);
    default:
        return nearbyint(x);
    }
}

static double decode_half(uint16_t h) {
    int exponent = (h >> 10) & 31;
    double fraction = h & 1023, magnitude;
    if (exponent == 31)
        magnitude = fraction != 0 ? NAN : INFINITY;
    else if (exponent == 0)
        magnitude = ldexp(fraction, -24);
    else
        magnitude = ldexp(fraction + 1024, exponent - 25);
    return h & 0x8000 ? -magnitude : magnitude;
}

static uint16_t encode_half(double x) {
    uint16_t sign = signbit(x) ? 0x8000 : 0;
    if (isnan(x)) return sign | 0x7e00;
    double y = fabs(compare_round(CLEAT_F16, x));
    if (isinf(y)) return sign | 0x7c00;
    if (y < 0x1p-14) return sign | (uint16_t)(y * 0x1p24);
    int exponent;
    double fraction = frexp(y, &exponent); /* [0.5, 1) */
    return sign | (uint16_t)(((exponent + 14) << 10) + (int)(fraction * 2048) - 1024);
}

static double decode_bfloat(uint16_t b) {
    uint32_t bits = (uint32_t)b << 16;
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

static uint16_t encode_bfloat(double x) {
    float value = (float)compare_round(CLEAT_BF16, x); /* exact */
    uint32_t bits;
    memcpy(&bits, &value, 4);
    return isnan(x) ? 0x7fc0 : (uint16_t)(bits >> 16);
}

void compare_decode(cleat_dtype dtype, const void *bytes, int64_t count, double *values) {
    for (int64_t i = 0; i < count; ++i) {
        switch (dtype) {
        case CLEAT_F32:
            values[i] = ((const float *)bytes)[i];
            break;
        case CLEAT_F16:
            values[i] = decode_half(((const uint16_t *)bytes)[i]);
            break;
        case CLEAT_BF16:
            values[i] = decode_bfloat(((const uint16_t *)bytes)[i]);
            break;
        case CLEAT_I32:
            values[i] = ((const int32_t *)bytes)[i];
            break;
        case CLEAT_U32:
            values[i] = ((const uint32_t *)bytes)[i];
            break;
        case CLEAT_TF32: /* no tensor */
        case CLEAT_U8:
        case CLEAT_Q8: /* cleat_blocks_values */
        case CLEAT_NF4:
        case CLEAT_Q4:
        case CLEAT_HALF:
            break;
        }
    }
}

void compare_encode(cleat_dtype dtype, const double *values, int64_t count, void *bytes) {
    for (int64_t i = 0; i < count; ++i) {
        switch (dtype) {
        case CLEAT_F32:
            ((float *)bytes)[i] = (float)values[i];
            break;
        case CLEAT_F16:
            ((uint16_t *)bytes)[i] = encode_half(values[i]);
            break;
        case CLEAT_BF16:
            ((uint16_t *)bytes)[i] = encode_bfloat(values[i]);
            break;
        case CLEAT_I32:
            ((int32_t *)bytes)[i] = (int32_t)values[i];
            break;
        case CLEAT_U32:
            ((uint32_t *)bytes)[i] = (uint32_t)values[i];
            break;
        case CLEAT_TF32: /* no tensor */
        case CLEAT_U8:
        case CLEAT_Q8: /* cleat_blocks_values */
        case CLEAT_NF4:
        case CLEAT_Q4:
        case CLEAT_HALF:
            break;
        }
    }
}

double compare_bound(compare_tolerance t, cleat_dtype dtype, cleat_dtype storage, double want) {
    double tiny = dtype == CLEAT_F16 ? 0x1p-25 : 0x1p-126;
    double sum =
        t.storage_units * compare_roundoff(storage) + t.f32_units * compare_roundoff(CLEAT_F32) * sqrt(t.length);
    return compare_roundoff(dtype) * fabs(want) + sum * t.scale + tiny;
}

bool compare_close(double got, double want, double bound) {
    if (got == want) return true;
    if (!(isfinite(got) && isfinite(want))) return false;
    if (!(bound >= 0 && isfinite(bound))) return false;
    return fabs(got - want) <= bound;
}

int64_t compare_arrays(const double *got, const double *want, int64_t count, compare_tolerance tolerance,
                       cleat_dtype dtype, cleat_dtype storage, int64_t *failures) {
    int64_t first = -1, failed = 0;
    for (int64_t i = 0; i < count; ++i) {
        if (compare_close(got[i], want[i], compare_bound(tolerance, dtype, storage, want[i]))) continue;
        if (first < 0) first = i;
        ++failed;
    }
    if (failures) *failures = failed;
    return first;
}
