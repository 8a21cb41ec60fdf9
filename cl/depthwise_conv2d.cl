/* Depthwise convolution R x S (both odd) with zero padding: forward, and the gradients of x, weight and bias.
 *
 * The gradient of x is the same convolution with the kernel rotated by 180 degrees.
 *
 * A work-item processes VEC channels and advances along rows of pixels. It keeps the weights of its channels,
 * and one sum for each of the S output columns to which the current input column contributes, so that each
 * pixel is loaded once per row of the kernel. */
#include "lib/common.clh"
#include "lib/column_sum.clh"
#include "lib/runs.clh"

#ifndef R
#define R 3
#endif
#ifndef S
#define S 3
#endif
#ifndef WHOLE /* 1: channels are a multiple of VEC */
#define WHOLE 0
#endif

/* The first n <= VEC channels, followed by zeros. */
static inline floatv load_channels(__global const T *p, int n) {
    return WHOLE || n == VEC ? LOADV(p, 0) : LOADN(p, 0, n);
}
static inline void store_channels(floatv v, __global T *p, int n) {
    if (WHOLE || n == VEC)
        STOREV(v, p, 0);
    else
        STOREN(v, p, 0, n);
}

/* The part of the output that a work-item computes. */
typedef struct area {
    int row, H, W;  /* rows of all images, numbered consecutively */
    int begin, end; /* columns of the output */
    int C, n;
} area;

/* One row of the output, columns [begin, end). x, y and accum (may be NULL) start at the work-item's first
 * channel of the row. */
static inline void convolve(__global const T *x, __global const T *accum, __global T *y, const floatv *k, floatv bias,
                            area a) {
    const int h = a.row % a.H, line = a.W * a.C;
    floatv sum[S];
#pragma unroll
    for (int s = 0; s < S; ++s) sum[s] = bias;
    for (int w = a.begin - S / 2; w < a.end + S / 2; ++w) {
        if (w >= 0 && w < a.W)
#pragma unroll
            for (int r = 0; r < R; ++r)
                if (h + r >= R / 2 && h + r < a.H + R / 2) {
                    floatv v = load_channels(x + (long)(r - R / 2) * line + (long)w * a.C, a.n);
#pragma unroll
                    for (int s = 0; s < S; ++s) sum[s] = fma(v, k[r * S + s], sum[s]);
                }
        const int done = w - S / 2; /* output column that is now complete */
        if (done >= a.begin) {
            floatv v = sum[S - 1];
            if (accum) v += load_channels(accum + (long)done * a.C, a.n);
            store_channels(v, y + (long)done * a.C, a.n);
        }
#pragma unroll
        for (int s = S - 1; s > 0; --s) sum[s] = sum[s - 1];
        sum[0] = bias;
    }
}

/* y = accum + bias + x * weight, with the weight rotated if `turned`; y may be accum. x, y T [rows, W, C],
 * rows = batch H; weight T [R, S, C]; bias f32 [C]. A work-item computes `deep` rows of `strip` columns. */
MANY_REGISTERS __kernel void depthwise_conv2d_apply(TENSOR(const T, x), TENSOR(const T, weight),
                                                    TENSOR(const float, bias), TENSOR(const T, accum), TENSOR(T, y),
                                                    const int rows, const int H, const int W, const int C,
                                                    const int deep, const int strip, const int turned) {
    const int strips = (W + strip - 1) / strip, blocks = (rows + deep - 1) / deep;
    FOR_RUNS(r, blocks * strips, C) {
        const int first = r.row / strips * deep, begin = r.row % strips * strip;
        area a = {first, H, W, begin, min(begin + strip, W), C, min(C - r.at, VEC)};
        floatv k[R * S], start = (floatv)(0.0f);
#pragma unroll
        for (int i = 0; i < R * S; ++i)
            k[i] = load_channels(AT(weight) + (long)(turned ? R * S - 1 - i : i) * C + r.at, a.n);
        if (HAS(bias)) start = run_load_f32(AT(bias), r.at, C);
        for (; a.row < min(first + deep, rows); ++a.row) {
            const ulong at = (ulong)a.row * W * C + r.at;
            __global const T *before = HAS(accum) ? AT(accum) + at : 0;
            convolve(AT(x) + at, before, AT(y) + at, k, start, a);
        }
    }
}

/* sum[r, s] += the products of row a.row of dy with x; sum[R S] += the sum of that row. */
static inline void correlate(__global const T *dy, __global const T *x, floatv *sum, area a) {
    const int h = a.row % a.H, line = a.W * a.C;
    floatv d[S]; /* dy of the columns that depend on column w of x: w + S / 2 - s */
#pragma unroll
    for (int s = 0; s < S; ++s) d[s] = (floatv)(0.0f);
    for (int w = -(S / 2); w < a.W; ++w) {
#pragma unroll
        for (int s = S - 1; s > 0; --s) d[s] = d[s - 1];
        d[0] = w + S / 2 < a.W ? load_channels(dy + (long)(w + S / 2) * a.C, a.n) : (floatv)(0.0f);
        sum[R * S] += d[0];
        if (w >= 0)
#pragma unroll
            for (int r = 0; r < R; ++r)
                if (h + r >= R / 2 && h + r < a.H + R / 2) {
                    floatv v = load_channels(x + (long)(r - R / 2) * line + (long)w * a.C, a.n);
#pragma unroll
                    for (int s = 0; s < S; ++s) sum[r * S + s] = fma(v, d[s], sum[r * S + s]);
                }
    }
}

/* partial f32 [ceil(rows / deep), R S + 1, C]: the gradients of weight and, after them, of the bias, over
 * `deep` rows each. */
MANY_REGISTERS __kernel void depthwise_conv2d_weight_parts(TENSOR(const T, dy), TENSOR(const T, x),
                                                           TENSOR(float, partial), const int rows, const int H,
                                                           const int W, const int C, const int deep) {
    FOR_RUNS(r, (rows + deep - 1) / deep, C) {
        const int first = r.row * deep;
        area a = {first, H, W, 0, W, C, min(C - r.at, VEC)};
        floatv sum[R * S + 1];
#pragma unroll
        for (int i = 0; i <= R * S; ++i) sum[i] = (floatv)(0.0f);
        for (; a.row < min(first + deep, rows); ++a.row) {
            const ulong at = (ulong)a.row * W * C + r.at;
            correlate(AT(dy) + at, AT(x) + at, sum, a);
        }
#pragma unroll
        for (int i = 0; i <= R * S; ++i)
            run_store_f32(sum[i], AT(partial) + ((ulong)r.row * (R * S + 1) + i) * C, r.at, C);
    }
}

/* out[i] = accum[i] + sum over p of partial[p, i] for i < n, in a fixed order; parts are `apart` elements
 * apart. */
__kernel void depthwise_conv2d_weight_total(TENSOR(const float, partial), TENSOR(const T, accum), TENSOR(T, out),
                                            const int parts, const int apart, const int n) {
#if WG == 1
    FOR_RUNS(r, 1, n) {
        floatv sum = (floatv)(0.0f);
        for (int p = 0; p < parts; ++p) sum += run_load_f32(AT(partial) + (ulong)p * apart, r.at, n);
        if (HAS(accum)) sum += run_load(AT(accum), r.at, n);
        run_store(sum, AT(out), r.at, n);
    }
#else
    __local float scratch[WG];
    const int item = get_local_id(0), i = get_group_id(0) * COLUMNS + item % COLUMNS;
    const float sum = column_sum(AT(partial) + i, i < n ? parts : 0, apart, scratch);
    if (item < COLUMNS && i < n) STORE(sum + (HAS(accum) ? LOAD(AT(accum), i) : 0.0f), AT(out), i);
#endif
}
