/* The product of one row with a weight [N, K], which is read once, as memory delivers it: c[n] = accum[n] + bias[n] +
 * sum over k of a[k] B[n, k]. For generation, token by token. A group has `columns` columns n, a multiple of COLUMNS,
 * and adds up COLUMNS of them at once: a work-item of a CPU with vectors along k, a group of a GPU with WG / COLUMNS
 * work-items for each. */
#include "lib/common.clh"
#include "lib/blocks.clh"
#include "lib/prefetch.clh"

#define COLUMNS 4

#if BLOCKS
#define WEIGHTS(at) unpackv(AT(b), (ulong)N *K, at)
#define SOME_WEIGHTS(at, n) (floatv)(0.0f) /* rows are whole blocks */
#else
#define WEIGHTS(at) LOADV(AT(b), at)
#define SOME_WEIGHTS(at, n) LOADN(AT(b), at, n)
#endif

/* Adds what is not a product, and stores a column. */
static inline void column_store(float y, TENSOR(const float, bias), TENSOR(const T, accum), TENSOR(T, c), const int n) {
    if (HAS(bias)) y += AT(bias)[n];
    if (HAS(accum)) y += LOAD(AT(accum), n);
    STORE(y, AT(c), n);
}

#if WG == 1
#if BLOCKS
#define STEP BLOCK
#else
#define STEP VEC
#endif
/* Adds to sums [COLUMNS] the products of x [STEP] with the weights k .. k + STEP - 1 of rows that begin at weights at
 * [COLUMNS]; those of a row have one scale. Rows are too short for the hardware prefetcher. */
static inline void step_add(floatv *sum, const floatv *x, TENSOR(const TB, b), const ulong count, const ulong *at,
                            const int k, const int K) {
#if BLOCKS
    float4 least = (float4)(0.0f);
    const float4 scales = block_scales(AT(b), count, at, k, &least);
    const float scale[COLUMNS] = {scales.x, scales.y, scales.z, scales.w};
    const float lowest[COLUMNS] = {least.x, least.y, least.z, least.w};
    floatv all = x[0];
#pragma unroll
    for (int j = 1; j < STEP / VEC; ++j) all += x[j];
#pragma unroll
    for (int i = 0; i < COLUMNS; ++i) {
        /* As one sum, the compiler would keep the four positions in a vector. */
        __global const uchar *row = AT(b) + at[i] * CODE_BITS / 8, *codes = row + k * CODE_BITS / 8;
        PREFETCH(codes + COLUMNS * K * CODE_BITS / 8);
        floatv y = x[0] * block_values(codes, 0);
#pragma unroll
        for (int j = 1; j < STEP / VEC; ++j) y += x[j] * block_values(codes, j * VEC);
        sum[i] += y * scale[i];
        if (BLOCKS == BLOCKS_Q4) sum[i] += all * lowest[i];
    }
#else
#pragma unroll
    for (int i = 0; i < COLUMNS; ++i) {
        PREFETCH(AT(b) + at[i] + k + COLUMNS * K);
        sum[i] += x[0] * LOADV(AT(b), at[i] + k);
    }
#endif
}

INLINED void row_columns(TENSOR(const T, a), TENSOR(const TB, b), TENSOR(const float, bias), TENSOR(const T, accum),
                         TENSOR(T, c), const int N, const int K, const int first, const int end,
                         GROUP_SCRATCH_ARG sums) {
    const int whole = K / STEP * STEP;
    for (int n = first; n < end; n += COLUMNS) {
        floatv sum[COLUMNS], x[STEP / VEC];
        ulong at[COLUMNS];
#pragma unroll
        for (int i = 0; i < COLUMNS; ++i) at[i] = (ulong)min(n + i, N - 1) * K, sum[i] = (floatv)(0.0f);
        for (int k = 0; k < whole; k += STEP) {
#pragma unroll
            for (int j = 0; j < STEP / VEC; ++j) x[j] = LOADV(AT(a), k + j * VEC);
            step_add(sum, x, PASS(b), (ulong)N * K, at, k, K);
        }
        if (whole < K) {
            x[0] = LOADN(AT(a), whole, K - whole);
#pragma unroll
            for (int i = 0; i < COLUMNS; ++i) sum[i] += x[0] * SOME_WEIGHTS(at[i] + whole, K - whole);
        }
#pragma unroll
        for (int i = 0; i < COLUMNS; ++i)
            if (n + i < end) column_store(sumv(sum[i]), PASS(bias), PASS(accum), PASS(c), n + i);
    }
}
#else
#define LANES (WG / COLUMNS)
INLINED void row_columns(TENSOR(const T, a), TENSOR(const TB, b), TENSOR(const float, bias), TENSOR(const T, accum),
                         TENSOR(T, c), const int N, const int K, const int first, const int end,
                         GROUP_SCRATCH_ARG sums) {
    const int item = get_local_id(0), lane = item % LANES, whole = K / VEC * VEC;
    for (int start = first; start < end; start += COLUMNS) {
        const int n = start + item / LANES;
        const ulong at = (ulong)min(n, N - 1) * K;
        floatv sum = (floatv)(0.0f);
        for (int k = lane * VEC; k < whole; k += LANES * VEC) sum += LOADV(AT(a), k) * WEIGHTS(at + k);
        if (whole < K && lane == 0) sum += LOADN(AT(a), whole, K - whole) * SOME_WEIGHTS(at + whole, K - whole);
        sums[item] = sumv(sum);
        barrier(CLK_LOCAL_MEM_FENCE);
        float y = 0.0f;
        for (int i = 0; i < LANES; ++i) y += sums[item - lane + i];
        if (lane == 0 && n < end) column_store(y, PASS(bias), PASS(accum), PASS(c), n);
        barrier(CLK_LOCAL_MEM_FENCE); /* the sums may be overwritten */
    }
}
#endif

__kernel void linear_row(TENSOR(const T, a), TENSOR(const TB, b), TENSOR(const float, bias), TENSOR(const T, accum),
                         TENSOR(T, c), const int N, const int K, const int columns) {
    GROUP_SCRATCH(sums);
    const int first = get_group_id(0) * columns;
    row_columns(PASS(a), PASS(b), PASS(bias), PASS(accum), PASS(c), N, K, first, min(N, first + columns), sums);
}
