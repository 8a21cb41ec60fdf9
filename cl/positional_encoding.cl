/* Sinusoidal positional encoding: y = x + encoding. EMBEDDED 1: x are rows of a table (table_rows.clh), which
 * an embedding would only copy.
 *
 * Column c of position l gets sin(l w) for even c and cos(l w) for odd c, w = 10000^(-2 (c/2) / D). With
 * lengths each half of the columns is such a table; the second one counts positions from the sample's end.
 *
 * l w reaches thousands of radians, where one ulp of a float is a hundredth of a per cent of a turn.
 * Therefore w / 2 pi is kept as a pair of floats (hi + lo, relative error 2^-44), the product with l is split
 * exactly into whole turns and a remainder, and only the remainder is the argument of a polynomial. The
 * absolute error is below 3e-7 for l up to 2^20. */
#include "lib/common.clh"
#include "lib/table_rows.clh"

#ifndef EMBEDDED
#define EMBEDDED 0
#endif

/* No contraction: products must be rounded before they are added, except in explicit fma calls, because the
 * low parts of the pairs are the rounding errors. */
#pragma OPENCL FP_CONTRACT OFF

/* Product of two pairs (Dekker 1971, with fma). */
static inline void pair_multiply(floatv *hi, floatv *lo, floatv b_hi, floatv b_lo) {
    floatv p = *hi * b_hi;
    floatv e = fma(*hi, b_hi, -p);
    e = fma(*hi, b_lo, e);
    e = fma(*lo, b_hi, e);
    floatv sum = p + e;
    *lo = e - (sum - p);
    *hi = sum;
}

/* Turns per position of VEC columns from `at` on: ratio^(c / 2) / 2 pi, by repeated squaring; ratio =
 * 10000^(-2/half_width). Columns from `half_width` on start again at 0. */
static inline void frequencies(uint at, uint half_width, float ratio_hi, float ratio_lo, floatv *hi, floatv *lo) {
    uint lane[VEC];
#pragma unroll
    for (int k = 0; k < VEC; ++k) lane[k] = (at + k < half_width ? at + k : at + k - half_width) / 2;
#if VEC == 1
    uintv power = lane[0];
#else
    uintv power = CAT(vload, VEC)(0, lane);
#endif
    floatv square_hi = (floatv)(ratio_hi), square_lo = (floatv)(ratio_lo), one = (floatv)(1.0f), zero = (floatv)(0.0f);
    *hi = (floatv)(0x1.45f306p-3f); /* 1 / 2 pi */
    *lo = (floatv)(0x1.b9391p-28f);
    for (uint most = half_width / 2; most != 0; most >>= 1) {
#if VEC == 1
        int odd = (power & 1u) != 0;
#else
        intv odd = (power & 1u) != 0u;
#endif
        pair_multiply(hi, lo, odd ? square_hi : one, odd ? square_lo : zero);
        pair_multiply(&square_hi, &square_lo, square_hi, square_lo);
        power >>= 1;
    }
}

/* sin(2 pi l (hi + lo)) in even elements, cos in odd ones. */
static inline floatv sinusoid(floatv l, floatv hi, floatv lo) {
    float quarter[VEC];
#pragma unroll
    for (int k = 0; k < VEC; ++k) quarter[k] = k % 2 ? 0.25f : 0.0f;
    floatv p = l * hi;
    floatv e = fma(l, lo, fma(l, hi, -p));
    floatv r = (p - rint(p)) + e + vector_of(quarter);
    r = r - rint(r);
    r = fabs(r) > (floatv)(0.25f) ? copysign((floatv)(0.5f), r) - r : r;
    floatv s = r * r, y = (floatv)(-0x1.cc9b60p+3f);
    y = fma(y, s, (floatv)(0x1.501408p+5f));
    y = fma(y, s, (floatv)(-0x1.32d12ep+6f));
    y = fma(y, s, (floatv)(0x1.466bc0p+6f));
    y = fma(y, s, (floatv)(-0x1.4abbcep+5f));
    y = fma(y, s, (floatv)(0x1.921fb6p+2f));
    return y * r;
}

/* l in columns before `half_width`, `back` in the others. */
static inline floatv column_position(uint at, uint half_width, float l, float back) {
    float lane[VEC];
#pragma unroll
    for (int k = 0; k < VEC; ++k) lane[k] = at + k < half_width ? l : back;
    return vector_of(lane);
}

/* VEC elements of x at position `position` of the batch from column `at` on. */
#if EMBEDDED
#define SOURCE TENSOR(const int, tokens), TABLE, const int vocabulary
#define SOURCE_VECTOR(position, at) table_vector(table_slab, table_offset, AT(tokens)[position], vocabulary, at, width)
#else
#define SOURCE TENSOR(const T, x)
#define SOURCE_VECTOR(position, at) run_load(AT(x) + (ulong)(position)*width, at, width)
#endif

/* x, y T [batch, length, width], or tokens i32 [batch, length]; lengths i32 [batch] or NULL. half_width:
 * width without lengths, else width / 2; columns from there on count l from the end of their sample. Values
 * that depend on l alone are computed once for the whole batch, on a GPU for a share of it. TILE vectors of a
 * row are processed together: long contiguous ranges for a CPU, one vector per work-item on a GPU. VEC is
 * even. */
#if WG == 1
#define TILE 16
#else
#define TILE 1
#endif
__kernel void positional_encoding_add(SOURCE, TENSOR(const int, lengths), TENSOR(T, y), const uint batch,
                                      const uint length, const uint width, const uint half_width, const float ratio_hi,
                                      const float ratio_lo) {
    const uint tiles = (width + TILE * VEC - 1) / (TILE * VEC);
    const uint item = get_global_id(0), items = get_global_size(0);
#if WG == 1
    const uint share = 0, shares = 1, each = (length + items - 1) / items;
    uint first = min(item * each, length), end = min(item * each + each, length);
    for (uint tile = 0; tile < tiles; ++tile) {
#else
    const uint vectors = tiles * length, shares = max(items / vectors, 1u);
    for (uint unit = item; unit < vectors * shares; unit += items) {
        const uint share = unit / vectors, first = unit / tiles % length, end = first + 1, tile = unit % tiles;
#endif
        floatv hi[TILE], lo[TILE], wave[TILE];
        uint at = tile * TILE * VEC;
        for (int k = 0; k < TILE; ++k) frequencies(at + k * VEC, half_width, ratio_hi, ratio_lo, &hi[k], &lo[k]);
        for (uint l = first; l < end; ++l) {
            for (int k = 0; k < TILE; ++k) wave[k] = sinusoid((floatv)((float)l), hi[k], lo[k]);
            for (uint b = share; b < batch; b += shares) {
                const ulong position = (ulong)b * length + l;
                float back = HAS(lengths) ? (float)max(AT(lengths)[b] - 1 - (int)l, 0) : 0.0f;
                for (int k = 0; k < TILE; ++k) {
                    uint column = at + k * VEC;
                    floatv own = wave[k];
                    if (HAS(lengths) && column + VEC > half_width)
                        own = sinusoid(column_position(column, half_width, (float)l, back), hi[k], lo[k]);
                    if (column < width)
                        run_store(SOURCE_VECTOR(position, column) + own, AT(y) + position * width, column, width);
                }
            }
        }
    }
}

/* table f32 [length, width]: sines and cosines of rotary positions (cleat_rotary_table), sin and cos of l w
 * alternating as above, without x. Frequencies w of at most `low` turns in `old` positions are multiplied by `slow`,
 * those of at least `high` turns are kept, those between interpolate. */
__kernel void rotary_table(TENSOR(float, table), const uint length, const uint width, const float ratio_hi,
                           const float ratio_lo, const float slow, const float old, const float low, const float high) {
    FOR_RUNS(r, (int)length, (int)width) {
        floatv hi, lo;
        frequencies(r.at, width, ratio_hi, ratio_lo, &hi, &lo);
        const floatv kept = clamp((hi * old - low) / (high - low), 0.0f, 1.0f);
        pair_multiply(&hi, &lo, slow + (1.0f - slow) * kept, (floatv)(0.0f));
        run_store_f32(sinusoid((floatv)((float)r.row), hi, lo), AT(table) + (ulong)r.row * width, r.at, (int)width);
    }
}
