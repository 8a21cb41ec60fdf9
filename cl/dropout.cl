/* Dropout: y = x keep(i) scale, where keep(i) = random(i) >= threshold.
 *
 * random(i) is word i % 4 of Philox at counter (c in two words, stream, step), where c = i / 4 + first *
 * per_sample and `first` is the number of samples of the global batch in earlier micro-batches. The backward
 * pass draws the same numbers. A work-item processes CHUNK = 4 VEC elements with VEC counters: on a CPU
 * adjacent ones, on a GPU four vectors that are SIDE vectors apart, so that neighbouring work-items have
 * neighbouring vectors. */
#include "lib/common.clh"

#define CHUNK (4 * VEC)
#if WG > 1 && VEC % 4 == 0
#define SIDE WG
#else
#define SIDE 1
#endif

/* Both halves of c x. CPUs multiply 32 bits to 64 in every second vector element only; mul_hi would be split
 * into scalar operations. */
static inline void multiply_halves(uint c, uintv x, uintv *hi, uintv *lo) {
#if WG == 1 && VEC == 16
    ulong8 pairs = as_ulong8(x), even = (pairs & 0xffffffffUL) * (ulong)c, odd = (pairs >> 32) * (ulong)c;
    *hi = as_uint16((even >> 32) | (odd & 0xffffffff00000000UL));
    *lo = as_uint16((even & 0xffffffffUL) | (odd << 32));
#else
    *hi = mul_hi((uintv)(c), x);
    *lo = c * x;
#endif
}

/* Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3; SC 2011) on VEC
 * counters at once. The CPU implementation is src/engine/core/philox.c. Element k of words[j] is word j of counter
 * `first` + COUNTER(k). */
#if SIDE == 1
#define COUNTER(k) (k)
#else
#define COUNTER(k) ((k) / (VEC / 4) * (SIDE * VEC / 4) + (k) % (VEC / 4))
#endif
static inline void philox_lanes(ulong first, uint stream, uint step, uint2 key, uintv words[4]) {
    uintv low = (uintv)((uint)first), x = low;
#if VEC > 1
    uint lane[VEC];
#pragma unroll
    for (int k = 0; k < VEC; ++k) lane[k] = COUNTER(k);
    x += CAT(vload, VEC)(0, lane);
#endif
    uintv y = (uintv)((uint)(first >> 32)) + ((low & ~x) >> 31); /* the carry */
    uintv z = (uintv)(stream), w = (uintv)(step);
#pragma unroll
    for (int round = 0; round < 10; ++round) {
        uintv hi0, lo0, hi1, lo1;
        multiply_halves(0xD2511F53u, x, &hi0, &lo0);
        multiply_halves(0xCD9E8D57u, z, &hi1, &lo1);
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

/* factor: 0 or `scale` for each of CHUNK elements, in four vectors. Element 4 k + j uses word j of the
 * counter that is COUNTER(k) after `counter`. */
static inline void dropout_factors(ulong counter, uint stream, __global const uint *rng, uint threshold, float scale,
                                   floatv factor[4]) {
    uintv words[4];
    floatv f[4];
    philox_lanes(counter, stream, rng[2], (uint2)(rng[0], rng[1]), words);
#pragma unroll
    for (int j = 0; j < 4; ++j) f[j] = words[j] >= (uintv)(threshold) ? (floatv)(scale) : (floatv)(0.0f);
#define VEC4(k) f[0].s##k, f[1].s##k, f[2].s##k, f[3].s##k
#if VEC == 16
    factor[0] = (float16)(VEC4(0), VEC4(1), VEC4(2), VEC4(3));
    factor[1] = (float16)(VEC4(4), VEC4(5), VEC4(6), VEC4(7));
    factor[2] = (float16)(VEC4(8), VEC4(9), VEC4(a), VEC4(b));
    factor[3] = (float16)(VEC4(c), VEC4(d), VEC4(e), VEC4(f));
#elif VEC == 8
    factor[0] = (float8)(VEC4(0), VEC4(1));
    factor[1] = (float8)(VEC4(2), VEC4(3));
    factor[2] = (float8)(VEC4(4), VEC4(5));
    factor[3] = (float8)(VEC4(6), VEC4(7));
#elif VEC == 4
    factor[0] = (float4)(VEC4(0));
    factor[1] = (float4)(VEC4(1));
    factor[2] = (float4)(VEC4(2));
    factor[3] = (float4)(VEC4(3));
#else
    for (int j = 0; j < 4; ++j) factor[j] = f[j];
#endif
#undef VEC4
}

/* Forward (accum NULL) and backward: y = accum + x keep scale. y may be x or accum. */
__kernel void dropout_elements(TENSOR(const T, x), TENSOR(const uint, rng), TENSOR(const T, accum), TENSOR(T, y),
                               const uint stream, const uint threshold, const float scale, const ulong per_sample,
                               const ulong n) {
    const ulong start = AT(rng)[3] * per_sample;
    ulong chunks = (n + SIDE * CHUNK - 1) / (SIDE * CHUNK) * SIDE, item = get_global_id(0), items = get_global_size(0);
    ulong each = (chunks + items - 1) / items; /* on a CPU, of consecutive chunks */
    ulong begin = WG == 1 ? min(item * each, chunks) : item, step = WG == 1 ? 1 : items;
    ulong end = WG == 1 ? min(item * each + each, chunks) : chunks;
    for (ulong chunk = begin; chunk < end; chunk += step) {
        ulong at = chunk / SIDE * (SIDE * CHUNK) + chunk % SIDE * VEC;
        floatv factor[4];
        dropout_factors(start + at / 4, stream, AT(rng), threshold, scale, factor);
#pragma unroll
        for (int v = 0; v < 4; ++v) {
            ulong i = at + v * (SIDE * VEC);
            if (i + VEC <= n) {
                floatv before = HAS(accum) ? LOADV(AT(accum), i) : (floatv)(0.0f);
                STOREV(fma(LOADV(AT(x), i), factor[v], before), AT(y), i);
            } else if (i < n) {
                int rest = (int)(n - i);
                floatv before = HAS(accum) ? LOADN(AT(accum), i, rest) : (floatv)(0.0f);
                STOREN(fma(LOADN(AT(x), i, rest), factor[v], before), AT(y), i, rest);
            }
        }
    }
}
