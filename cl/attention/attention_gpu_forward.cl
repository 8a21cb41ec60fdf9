/* Forward pass of attention on a GPU (Dao et al. 2022, FlashAttention).
 *
 * A work-group holds ROWS queries; keys and values stream through local memory, COLS at a time. Layout and
 * lengths: attention.clh; tiles: attention_gpu.clh. */

/* Rows of a tile: 32 on Intel's GPUs, which lack registers for more; else half of THREADS, so that a
 * work-item has four rows and computes three or four columns of them at a time. */
#ifndef ROWS
#define ROWS 32
#endif
/* The largest tiles for which local memory is at most 32 KiB. With 32 columns at these head sizes Intel's
 * compiler keeps the sums in memory (ocloc 22.43, pvc). */
#if DH > 64 || (defined(SUB_GROUP) && DH % 4 != 0)
#define COLS 16
#elif DH > 32 && ROWS > 32
#define COLS 24
#else
#define COLS 32
#endif
#define HELD_STRIDE VEC4S
#include "attention/attention_gpu.clh"
#include "attention/online_softmax.clh"

/* A work-group processes a tile of queries; its index is (b * heads + h) * tiles + tile. */
MANY_REGISTERS __attribute__((reqd_work_group_size(THREADS, 1, 1))) __kernel void
attention_gpu_forward(TENSOR(const T, q), TENSOR(const T, k), TENSOR(const T, v), const int q_row, const int kv_row,
                      TENSOR(const int, q_lengths), TENSOR(const int, k_lengths), TENSOR(T, y), TENSOR(float, lse),
                      const int heads, const int lq, const int lk, const float softmax_scale) {
    __local float4 queries[ROWS * HELD_STRIDE], streamed[COLS * STRIDE], weight[ROWS * WEIGHT_STRIDE];
    __local float4 shared[ROWS * TX / 4]; /* one float per work-item of a row */
    const int tiles = (lq + ROWS - 1) / ROWS, item = get_group_id(0);
    const int i0 = item % tiles * ROWS, h = item / tiles % heads, b = item / tiles / heads;
    const int in_tile = min(ROWS, lq - i0), length = LENGTH(k_lengths, b, lk);
    const int n = length > 0 ? clamp(LENGTH(q_lengths, b, lq) - i0, 0, in_tile) : 0, keys = n > 0 ? length : 0;
    const sight seen = sight_of(STARTS(b), i0, n, keys);
    int first[OWN_ROWS];
    find_first_keys(first, STARTS(b), i0, n);

    online_softmax softmax = softmax_begin();
    load_held(queries, ROWS, Q_AT(q, b, i0, h), q_row, n, softmax_scale * LOG2E);

    for (int j0 = seen.begin; j0 < seen.end; j0 += COLS) {
        const int m = min(COLS, seen.end - j0);
        barrier(CLK_LOCAL_MEM_FENCE); /* the previous tile may be overwritten */
        load_rows(streamed, COLS, KV_AT(k, b, j0, h / SHARING), kv_row, m, 1.0f);
        barrier(CLK_LOCAL_MEM_FENCE);
        scores s = multiply(queries, streamed);
        if (RANGED)
            hide_keys(&s, &seen, first, i0, j0);
        else if (m < COLS)
            mask_columns(&s, m);
        share_maxima(&s, shared);
        barrier(CLK_LOCAL_MEM_FENCE); /* the keys may be overwritten */
        load_rows(streamed, COLS, KV_AT(v, b, j0, h / SHARING), kv_row, m, 1.0f);
        softmax_weights(&softmax, &s, shared, weight);
        barrier(CLK_LOCAL_MEM_FENCE);
        softmax.out = add_weighted(softmax.out, weight, streamed);
    }

    softmax_end(&softmax, shared, n, in_tile, LSE_AT(lse, b, i0, h));
    store_sums(softmax.out, Y_AT(y, b, i0, h), 0, heads * DH, in_tile, 1.0f);
}
