/* y = x keep(i) scale, keep(i) = random(i) >= threshold. random(i) is word i % 4 of Philox at counter (i / 4 in two words, stream,
 * step): backward draws the same. A work-item does CHUNK = 4 VEC elements: VEC counters side by side. */
#include "common.clh"

#define CHUNK (4 * VEC)

/* Philox on VEC counters at once: words[j] lane k is word j of counter `first` + k. */
static inline void philox_lanes(ulong first, uint stream, uint step, uint2 key, uintv words[4]) {
    uint lane[VEC];
#pragma unroll
    for (int k = 0; k < VEC; ++k) lane[k] = (uint)k;
#if VEC == 1
    uintv x = (uint)first;
#else
    uintv x = (uint)first + CAT(vload, VEC)(0, lane); /* `first` is a multiple of VEC: no carry */
#endif
    uintv y = (uintv)((uint)(first >> 32)), z = (uintv)(stream), w = (uintv)(step);
#pragma unroll
    for (int round = 0; round < 10; ++round) {
        uintv hi0 = mul_hi((uintv)(0xD2511F53u), x), lo0 = 0xD2511F53u * x;
        uintv hi1 = mul_hi((uintv)(0xCD9E8D57u), z), lo1 = 0xCD9E8D57u * z;
        x = hi1 ^ y ^ key.x;
        y = lo1;
        z = hi0 ^ w ^ key.y;
        w = lo0;
        key += (uint2)(0x9E3779B9u, 0xBB67AE85u);
    }
    words[0] = x;
    words[1] = y;
    words[2] = z;
    words[3] = w;
}

/* 0 or `scale` for each of CHUNK elements from `at` on (a multiple of CHUNK). */
static inline void dropout_factors(ulong at, uint stream, __global const uint *rng, uint threshold, float scale, float *factor) {
    uintv words[4];
    philox_lanes(at / 4, stream, rng[2], (uint2)(rng[0], rng[1]), words);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        floatv f = words[j] >= (uintv)(threshold) ? (floatv)(scale) : (floatv)(0.0f);
        float lane[VEC];
#if VEC == 1
        lane[0] = f;
#else
        CAT(vstore, VEC)(f, 0, lane);
#endif
#pragma unroll
        for (int k = 0; k < VEC; ++k) factor[4 * k + j] = lane[k];
    }
}

#if VEC == 1
#define FACTOR(v) factor[v]
#else
#define FACTOR(v) CAT(vload, VEC)(0, factor + (v) * VEC)
#endif

/* Forward (addend NULL) and backward: y = addend + x keep scale. y may be x or addend. */
__kernel void dropout_elements(TENSOR(const T, x), TENSOR(const uint, rng), TENSOR(const T, addend), TENSOR(T, y),
                               const uint stream, const uint threshold, const float scale, const ulong n) {
    ulong chunks = (n + CHUNK - 1) / CHUNK, item = get_global_id(0), items = get_global_size(0);
#if WG == 1
    ulong each = (chunks + items - 1) / items, step = 1;
    ulong chunk = min(item * each, chunks), end = min(item * each + each, chunks);
#else
    ulong chunk = item, end = chunks, step = items;
#endif
    for (; chunk < end; chunk += step) {
        ulong at = chunk * CHUNK;
        float factor[CHUNK];
        dropout_factors(at, stream, AT(rng), threshold, scale, factor);
#pragma unroll
        for (int v = 0; v < 4; ++v) {
            ulong i = at + v * VEC;
            if (i + VEC <= n) {
                floatv before = HAS(addend) ? LOADV(AT(addend), i) : (floatv)(0.0f);
                STOREV(fma(LOADV(AT(x), i), FACTOR(v), before), AT(y), i);
            } else if (i < n) {
                int rest = (int)(n - i);
                floatv before = HAS(addend) ? LOADN(AT(addend), i, rest) : (floatv)(0.0f);
                STOREN(fma(LOADN(AT(x), i, rest), FACTOR(v), before), AT(y), i, rest);
            }
        }
    }
}
