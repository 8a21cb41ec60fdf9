/* Forward pass of attention on a GPU (Dao et al. 2022, FlashAttention).
 *
 * A work-group holds ROWS queries; keys and values stream through local memory, COLS at a time. Layout and
 * lengths: attention.clh; tiles: attention_gpu.clh. */

/* Rows of a tile. On Intel's GPUs 32, whose registers do not suffice for more; else half of THREADS, so that a work-item
 * has four, of which it computes three or four columns at a time. */
#ifndef ROWS
#define ROWS 32
#endif
/* The largest tiles for which local memory is at most 32 KiB. With 32 columns and such head sizes Intel's compiler keeps
 * the sums in memory (ocloc 22.43, pvc). */
#if DH > 64 || (defined(SUB_GROUP) && DH % 4 != 0)
#define COLS 16
#elif DH > 32 && ROWS > 32
#define COLS 24
#else
#define COLS 32
#endif
#define HELD_STRIDE VEC4S
#include "attention/attention_gpu.clh"

/* A work-group processes a tile of queries; its index is (b * heads + h) * tiles + tile. */
MANY_REGISTERS __attribute__((reqd_work_group_size(THREADS, 1, 1))) __kernel void
attention_gpu_forward(TENSOR(const T, q), TENSOR(const T, k), TENSOR(const T, v), const int q_row, const int kv_row,
                      TENSOR(const int, q_lengths), TENSOR(const int, k_lengths), TENSOR(T, y), TENSOR(float, lse),
                      const int heads, const int lq, const int lk, const float softmax_scale) {
    __local float4 queries[ROWS * HELD_STRIDE], streamed[COLS * STRIDE], weight[ROWS * WEIGHT_STRIDE];
    __local float4 shared[ROWS * TX / 4]; /* one float per work-item of a row */
    const int tiles = (lq + ROWS - 1) / ROWS, item = get_group_id(0), tx = own_column(0);
    const int i0 = item % tiles * ROWS, h = item / tiles % heads, b = item / tiles / heads;
    const int in_tile = min(ROWS, lq - i0), length = LENGTH(k_lengths, b, lk);
    const int n = length > 0 ? clamp(LENGTH(q_lengths, b, lq) - i0, 0, in_tile) : 0, keys = n > 0 ? length : 0;

    sums out = zero_sums();
    /* maximum of the scores in base 2; sum over this work-item's columns */
    float top[OWN_ROWS], sum[OWN_ROWS];
#pragma unroll
    for (int i = 0; i < OWN_ROWS; ++i) top[i] = -1e30f, sum[i] = 0.0f;
    load_held(queries, ROWS, Q_AT(q, b, i0, h), q_row, n, softmax_scale * LOG2E);

    for (int j0 = 0; j0 < keys; j0 += COLS) {
        const int m = min(COLS, keys - j0);
        barrier(CLK_LOCAL_MEM_FENCE); /* the previous tile may be overwritten */
        load_rows(streamed, COLS, KV_AT(k, b, j0, h), kv_row, m, 1.0f);
        barrier(CLK_LOCAL_MEM_FENCE);
        scores s = multiply(queries, streamed);
        if (m < COLS) mask_columns(&s, m);
#pragma unroll
        for (int i = 0; i < OWN_ROWS; ++i) {
            float own = -INFINITY;
#pragma unroll
            for (int j = 0; j < OWN_COLS; ++j) own = fmax(own, s.at[i][j]);
            ((__local float *)shared)[own_row(i) * TX + tx] = own;
        }
        barrier(CLK_LOCAL_MEM_FENCE); /* the keys may be overwritten */
        load_rows(streamed, COLS, KV_AT(v, b, j0, h), kv_row, m, 1.0f);
#pragma unroll
        for (int i = 0; i < OWN_ROWS; ++i) {
            const float4 tops = fmax(shared[own_row(i) * 2], shared[own_row(i) * 2 + 1]);
            const float higher = fmax(fmax(top[i], fmax(tops.x, tops.y)), fmax(tops.z, tops.w));
            const float shrink = weight_of(top[i] - higher);
            top[i] = higher;
            sum[i] *= shrink;
#pragma unroll
            for (int j = 0; j < OWN_COLS; ++j) {
                const float p = weight_of(s.at[i][j] - higher);
                sum[i] += p;
                store_weight(weight, i, j, p);
            }
#pragma unroll
            for (int c = 0; c < OWN_VEC4S; ++c) out.at[i][c] *= shrink;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        out = add_weighted(out, weight, streamed);
    }

#pragma unroll
    for (int i = 0; i < OWN_ROWS; ++i) ((__local float *)shared)[own_row(i) * TX + tx] = sum[i];
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (int i = 0; i < OWN_ROWS; ++i) {
        const int r = own_row(i);
        const float4 wholes = shared[r * 2] + shared[r * 2 + 1];
        const float whole = (wholes.x + wholes.z) + (wholes.y + wholes.w);
#pragma unroll
        for (int c = 0; c < OWN_VEC4S; ++c) out.at[i][c] = r < n ? out.at[i][c] / whole : (float4)(0.0f);
        if (tx == 0 && r < in_tile) LSE_AT(lse, b, i0, h)[r] = r < n ? (top[i] + log2(whole)) * LN2 : 0.0f;
    }
    store_sums(out, Y_AT(y, b, i0, h), 0, heads * DH, in_tile, 1.0f);
}
