/* Disentangled attention on a GPU: tiles of attention_gpu.clh, and windows of the tables by distance.
 *
 * A tile of ROWS by COLS pairs has ROWS + COLS - 1 distances. Their rows are in local memory like those of
 * keys and queries, and pair (r, c) uses row r - c + COLS - 1 of the window, or c - r + ROWS - 1 if distances
 * decrease along the rows. Weights are recomputed from the log-sum-exps in the backward kernels. They hold
 * queries (dq), keys (dk, dv) or distances (the gradients of the tables) and stream the rest. Layouts:
 * disentangled.clh. */

/* Rows and columns of a tile. Local memory is at most 30 KiB. */
#ifndef ROWS
#define ROWS 16
#endif
#define COLS ROWS
#define WEIGHT_OF(x) exp2(x)
#include "attention/attention_gpu.clh"
#include "attention/disentangled.clh"
#include "attention/online_softmax.clh"

#define WINDOW (ROWS + COLS - 1)
#define GROUP __attribute__((reqd_work_group_size(THREADS, 1, 1)))

/* Row of a window that pair (row, column) uses. */
static inline int window_row(int row, int column, bool rising) {
    return rising ? row - column + COLS - 1 : column - row + ROWS - 1;
}

/* tile[r, :] = scale * rows[r, :] of a table for r < count. */
static inline void load_table(__local float4 *tile, int count, __global const float *rows, int pitch, float scale) {
    for (int e = get_local_id(0); e < count * VEC4S; e += THREADS) {
        const int r = e / VEC4S, vec4 = e % VEC4S;
        tile[r * STRIDE + vec4] = vload4(0, rows + (ulong)r * pitch + vec4 * 4) * scale;
    }
}

/* tile[r, :] = row first + r of rows for r < count; 0 if that is not in [0, n). */
static inline void load_span(__local float4 *tile, int count, __global const T *rows, int row, int first, int n) {
    for (int e = get_local_id(0); e < count * VEC4S; e += THREADS) {
        const int r = e / VEC4S, vec4 = e % VEC4S, at = first + r;
        tile[r * STRIDE + vec4] = at >= 0 && at < n ? load_vec4(rows + (ulong)at * row, vec4) : (float4)(0.0f);
    }
}

/* s + the products of each pair's row of the window with x, whose rows are the tile's rows (by_row) or columns. */
static inline scores add_window(scores s, __local const float4 *x, bool by_row, __local const float4 *window,
                                bool rising) {
#pragma unroll 1
    for (int d = 0; d < VEC4S; ++d)
#pragma unroll
        for (int i = 0; i < OWN_ROWS; ++i)
#pragma unroll
            for (int j = 0; j < OWN_COLS; ++j) {
                const float4 a = x[(by_row ? own_row(i) : own_column(j)) * STRIDE + d];
                const float4 b = window[window_row(own_row(i), own_column(j), rising) * STRIDE + d];
                s.at[i][j] = fma(a.w, b.w, fma(a.z, b.z, fma(a.y, b.y, fma(a.x, b.x, s.at[i][j]))));
            }
    return s;
}

/* o += the sum over columns of weight [ROWS, COLS] * the pair's row of the window. */
static inline sums add_weighted_window(sums o, __local const float4 *weight, __local const float4 *window,
                                       bool rising) {
#pragma unroll 1
    for (int j = 0; j < COLS; ++j)
#pragma unroll
        for (int i = 0; i < OWN_ROWS; ++i) {
            const float w = ((__local const float *)weight)[own_row(i) * WEIGHT_STRIDE * 4 + j];
            __local const float4 *x = window + window_row(own_row(i), j, rising) * STRIDE;
#pragma unroll
            for (int c = 0; c < OWN_VEC4S; ++c)
                o.at[i][c] = fma((float4)(w), x[min(own_column(c), VEC4S - 1)], o.at[i][c]);
        }
    return o;
}

/* Rows of a table for the window of a tile whose lowest distance is `lowest`. */
#define WINDOW_AT(which, lowest) (TABLE_AT(tables, which, h) + (ulong)ROW_OF(lowest) * pitch)

/* A work-group processes a tile of queries; its index is (b * heads + h) * tiles + tile. */
MANY_REGISTERS GROUP __kernel void disentangled_gpu_forward(TENSOR(const T, q), TENSOR(const T, k), TENSOR(const T, v),
                                                            const int q_row, TENSOR(const int, lengths),
                                                            TENSOR(const float, tables), TENSOR(T, y),
                                                            TENSOR(float, lse), const int batch, const int heads,
                                                            const int lq, const float softmax_scale, const int front,
                                                            const int rows, const int pitch) {
    __local float4 queries[ROWS * STRIDE], streamed[COLS * STRIDE], weight[ROWS * WEIGHT_STRIDE];
    __local float4 window_a[WINDOW * STRIDE], window_c[WINDOW * STRIDE];
    __local float4 shared[ROWS * TX / 4]; /* one float per work-item of a row */
    const int tiles = (lq + ROWS - 1) / ROWS, item = get_group_id(0), lk = lq, kv_row = q_row;
    const int i0 = item % tiles * ROWS, h = item / tiles % heads, b = item / tiles / heads;
    const int in_tile = min(ROWS, lq - i0), length = LENGTH(lengths, b, lq);
    const int n = clamp(length - i0, 0, in_tile), keys = n > 0 ? length : 0;

    online_softmax softmax = softmax_begin();
    load_rows(queries, ROWS, Q_AT(q, b, i0, h), q_row, n, softmax_scale * LOG2E);

    for (int j0 = 0; j0 < keys; j0 += COLS) {
        const int m = min(COLS, keys - j0);
        barrier(CLK_LOCAL_MEM_FENCE); /* the previous tile may be overwritten */
        load_rows(streamed, COLS, KV_AT(k, b, j0, h), kv_row, m, 1.0f);
        load_table(window_a, WINDOW, WINDOW_AT(0, i0 - j0 - (COLS - 1)), pitch, 1.0f);
        load_table(window_c, WINDOW, WINDOW_AT(1, i0 - j0 - (COLS - 1)), pitch, softmax_scale * LOG2E);
        barrier(CLK_LOCAL_MEM_FENCE);
        scores s = multiply(queries, streamed);
        s = add_window(s, queries, true, window_a, true);
        s = add_window(s, streamed, false, window_c, true);
        mask_columns(&s, m);
        share_maxima(&s, shared);
        barrier(CLK_LOCAL_MEM_FENCE); /* the keys may be overwritten */
        load_rows(streamed, COLS, KV_AT(v, b, j0, h), kv_row, m, 1.0f);
        softmax_weights(&softmax, &s, shared, weight);
        barrier(CLK_LOCAL_MEM_FENCE);
        softmax.out = add_weighted(softmax.out, weight, streamed);
    }

    softmax_end(&softmax, shared, n, in_tile, LSE_AT(lse, b, i0, h));
    store_sums(softmax.out, Y_AT(y, b, i0, h), 0, heads * DH, in_tile, 1.0f);
}

/* A work-group processes a tile of queries; its index is (b * heads + h) * tiles + tile. */
MANY_REGISTERS GROUP __kernel void disentangled_gpu_dq(TENSOR(const T, q), TENSOR(const T, k), TENSOR(const T, v),
                                                       const int q_row, TENSOR(const int, lengths),
                                                       TENSOR(const float, tables), TENSOR(const float, lse),
                                                       TENSOR(const float, delta), TENSOR(const T, dy),
                                                       TENSOR(const T, accum), TENSOR(T, dq), const int batch,
                                                       const int heads, const int lq, const float softmax_scale,
                                                       const int front, const int rows, const int pitch) {
    __local float4 queries[ROWS * STRIDE], douts[ROWS * STRIDE], keys[COLS * STRIDE], values[COLS * STRIDE];
    __local float4 window[WINDOW * STRIDE], dscore[ROWS * WEIGHT_STRIDE];
    const int tiles = (lq + ROWS - 1) / ROWS, item = get_group_id(0), lk = lq, kv_row = q_row;
    const int i0 = item % tiles * ROWS, h = item / tiles % heads, b = item / tiles / heads;
    const int in_tile = min(ROWS, lq - i0), all = LENGTH(lengths, b, lq), n = clamp(all - i0, 0, in_tile);
    const int length = n > 0 ? all : 0;

    sums out = zero_sums();
    float logs[OWN_ROWS], deltas[OWN_ROWS];
#pragma unroll
    for (int i = 0; i < OWN_ROWS; ++i) {
        const int r = own_row(i);
        logs[i] = r < n ? LSE_AT(lse, b, i0, h)[r] * LOG2E : 0.0f;
        deltas[i] = r < n ? LSE_AT(delta, b, i0, h)[r] : 0.0f;
    }
    load_rows(queries, ROWS, Q_AT(q, b, i0, h), q_row, n, softmax_scale * LOG2E);
    load_rows(douts, ROWS, Y_AT(dy, b, i0, h), heads * DH, n, 1.0f);

    for (int j0 = 0; j0 < length; j0 += COLS) {
        const int m = min(COLS, length - j0);
        barrier(CLK_LOCAL_MEM_FENCE); /* the previous tile may be overwritten */
        load_rows(keys, COLS, KV_AT(k, b, j0, h), kv_row, m, 1.0f);
        load_rows(values, COLS, KV_AT(v, b, j0, h), kv_row, m, 1.0f);
        load_table(window, WINDOW, WINDOW_AT(1, i0 - j0 - (COLS - 1)), pitch, softmax_scale * LOG2E);
        barrier(CLK_LOCAL_MEM_FENCE);
        const scores ds = multiply(douts, values);
        scores s = add_window(multiply(queries, keys), keys, false, window, true);
        barrier(CLK_LOCAL_MEM_FENCE); /* the window may be overwritten */
        load_table(window, WINDOW, WINDOW_AT(0, i0 - j0 - (COLS - 1)), pitch, 1.0f);
        barrier(CLK_LOCAL_MEM_FENCE);
        s = add_window(s, queries, true, window, true);
#pragma unroll
        for (int i = 0; i < OWN_ROWS; ++i)
#pragma unroll
            for (int j = 0; j < OWN_COLS; ++j) {
                const float p = own_column(j) < m ? exp2(s.at[i][j] - logs[i]) : 0.0f;
                store_weight(dscore, i, j, p * (ds.at[i][j] - deltas[i]));
            }
        barrier(CLK_LOCAL_MEM_FENCE);
        out = add_weighted(out, dscore, keys);
        out = add_weighted_window(out, dscore, window, true);
    }
    store_sums(out, Q_AT(dq, b, i0, h), HAS(accum) ? Q_AT(accum, b, i0, h) : 0, q_row, in_tile, softmax_scale);
}

/* A work-group processes a tile of keys; its index is (b * heads + h) * tiles + tile. */
MANY_REGISTERS GROUP __kernel void
disentangled_gpu_keys(TENSOR(const T, q), TENSOR(const T, k), TENSOR(const T, v), const int q_row,
                      TENSOR(const int, lengths), TENSOR(const float, tables), TENSOR(const float, lse),
                      TENSOR(const float, delta), TENSOR(const T, dy), TENSOR(const T, accum_k),
                      TENSOR(const T, accum_v), TENSOR(T, dk), TENSOR(T, dv), const int batch, const int heads,
                      const int lq, const float softmax_scale, const int front, const int rows, const int pitch) {
    __local float4 keys[ROWS * STRIDE], values[ROWS * STRIDE], queries[COLS * STRIDE], douts[COLS * STRIDE];
    __local float4 window[WINDOW * STRIDE], weight[ROWS * WEIGHT_STRIDE], dscore[ROWS * WEIGHT_STRIDE];
    const int tiles = (lq + ROWS - 1) / ROWS, item = get_group_id(0), lk = lq, kv_row = q_row;
    const int j0 = item % tiles * ROWS, h = item / tiles % heads, b = item / tiles / heads;
    const int in_tile = min(ROWS, lq - j0), all = LENGTH(lengths, b, lq), n = clamp(all - j0, 0, in_tile);
    const int length = n > 0 ? all : 0;

    sums sum_k = zero_sums(), sum_v = zero_sums();
    load_rows(keys, ROWS, KV_AT(k, b, j0, h), kv_row, n, softmax_scale * LOG2E);
    load_rows(values, ROWS, KV_AT(v, b, j0, h), kv_row, n, 1.0f);

    for (int i0 = 0; i0 < length; i0 += COLS) {
        const int m = min(COLS, length - i0);
        barrier(CLK_LOCAL_MEM_FENCE); /* the previous tile may be overwritten */
        load_rows(queries, COLS, Q_AT(q, b, i0, h), q_row, m, 1.0f);
        load_rows(douts, COLS, Y_AT(dy, b, i0, h), heads * DH, m, 1.0f);
        load_table(window, WINDOW, WINDOW_AT(0, i0 - j0 - (ROWS - 1)), pitch, softmax_scale * LOG2E);
        barrier(CLK_LOCAL_MEM_FENCE);
        const scores ds = multiply(values, douts);
        scores s = add_window(multiply(keys, queries), queries, false, window, false);
        barrier(CLK_LOCAL_MEM_FENCE); /* the window may be overwritten */
        load_table(window, WINDOW, WINDOW_AT(1, i0 - j0 - (ROWS - 1)), pitch, 1.0f);
        barrier(CLK_LOCAL_MEM_FENCE);
        s = add_window(s, keys, true, window, false);
#pragma unroll
        for (int j = 0; j < OWN_COLS; ++j) {
            const int c = own_column(j);
            const float log_sum = c < m ? LSE_AT(lse, b, i0, h)[c] * LOG2E : 0.0f;
            const float d = c < m ? LSE_AT(delta, b, i0, h)[c] : 0.0f;
#pragma unroll
            for (int i = 0; i < OWN_ROWS; ++i) {
                const float p = c < m && own_row(i) < n ? exp2(s.at[i][j] - log_sum) : 0.0f;
                store_weight(weight, i, j, p);
                store_weight(dscore, i, j, p * (ds.at[i][j] - d));
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        sum_v = add_weighted(sum_v, weight, douts);
        sum_k = add_weighted(sum_k, dscore, queries);
        sum_k = add_weighted_window(sum_k, dscore, window, false);
    }
    store_sums(sum_k, KV_AT(dk, b, j0, h), HAS(accum_k) ? KV_AT(accum_k, b, j0, h) : 0, kv_row, in_tile, softmax_scale);
    store_sums(sum_v, KV_AT(dv, b, j0, h), HAS(accum_v) ? KV_AT(accum_v, b, j0, h) : 0, kv_row, in_tile, 1.0f);
}

/* rows[r, :] of a table = o for this work-item's rows r < n. */
static inline void store_table(sums o, __global float *rows, int pitch, int n) {
#pragma unroll
    for (int i = 0; i < OWN_ROWS; ++i)
#pragma unroll
        for (int c = 0; c < OWN_VEC4S; ++c)
            if (own_row(i) < n && own_column(c) < VEC4S)
                vstore4(o.at[i][c], 0, rows + (ulong)own_row(i) * pitch + own_column(c) * 4);
}

/* The gradients of the tables without softmax_scale, f32 [parts, 2, heads, rows, pitch]. A work-group
 * processes a tile of distances in part_samples samples; its index is (part * heads + h) * tiles + tile. */
MANY_REGISTERS GROUP __kernel void
disentangled_gpu_positions(TENSOR(const T, q), TENSOR(const T, k), TENSOR(const T, v), const int q_row,
                           TENSOR(const int, lengths), TENSOR(const float, tables), TENSOR(const float, lse),
                           TENSOR(const float, delta), TENSOR(const T, dy), TENSOR(float, dtables), const int batch,
                           const int heads, const int lq, const float softmax_scale, const int front, const int rows,
                           const int pitch, const int part_samples) {
    __local float4 keys[ROWS * STRIDE], others[ROWS * STRIDE], queries[COLS * STRIDE], douts[COLS * STRIDE];
    __local float4 window[WINDOW * STRIDE], dscore[ROWS * WEIGHT_STRIDE];
    const int tiles = (2 * lq - 1 + ROWS - 1) / ROWS, item = get_group_id(0), lk = lq, kv_row = q_row;
    const int lowest = item % tiles * ROWS - (lq - 1), h = item / tiles % heads, part = item / tiles / heads;

    sums sum_a = zero_sums(), sum_c = zero_sums();
    load_table(keys, ROWS, WINDOW_AT(0, lowest), pitch, 1.0f);
    load_table(others, ROWS, WINDOW_AT(1, lowest), pitch, 1.0f);

    for (int b = part * part_samples; b < min(batch, (part + 1) * part_samples); ++b) {
        const int length = LENGTH(lengths, b, lq), last = min(length, length + lowest + ROWS - 1);
        for (int i0 = max(0, lowest); i0 < last; i0 += COLS) {
            const int m = min(COLS, length - i0), first = i0 - (lowest + ROWS - 1); /* key of the window's first row */
            barrier(CLK_LOCAL_MEM_FENCE);                                           /* tiles may be overwritten */
            load_rows(queries, COLS, Q_AT(q, b, i0, h), q_row, m, 1.0f);
            load_rows(douts, COLS, Y_AT(dy, b, i0, h), heads * DH, m, 1.0f);
            load_span(window, WINDOW, KV_AT(v, b, 0, h), kv_row, first, length);
            barrier(CLK_LOCAL_MEM_FENCE);
            scores s = multiply(keys, queries), ds;
#pragma unroll
            for (int i = 0; i < OWN_ROWS; ++i)
#pragma unroll
                for (int j = 0; j < OWN_COLS; ++j) ds.at[i][j] = 0.0f;
            ds = add_window(ds, douts, false, window, false);
            barrier(CLK_LOCAL_MEM_FENCE); /* the window may be overwritten */
            load_span(window, WINDOW, KV_AT(k, b, 0, h), kv_row, first, length);
            barrier(CLK_LOCAL_MEM_FENCE);
            s = add_window(s, queries, false, window, false);
            s = add_window(s, others, true, window, false);
#pragma unroll
            for (int j = 0; j < OWN_COLS; ++j) {
                const int c = own_column(j);
                const float log_sum = c < m ? LSE_AT(lse, b, i0, h)[c] * LOG2E : 0.0f;
                const float d = c < m ? LSE_AT(delta, b, i0, h)[c] : 0.0f;
#pragma unroll
                for (int i = 0; i < OWN_ROWS; ++i) {
                    const int key = first + window_row(own_row(i), c, false);
                    const bool valid = c < m && key >= 0 && key < length;
                    const float p = valid ? exp2(fma(s.at[i][j], softmax_scale * LOG2E, -log_sum)) : 0.0f;
                    store_weight(dscore, i, j, p * (ds.at[i][j] - d));
                }
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            sum_a = add_weighted(sum_a, dscore, queries);
            sum_c = add_weighted_window(sum_c, dscore, window, false);
        }
    }
    const int n = min(ROWS, lq - lowest);
    store_table(sum_a, TABLE_AT(dtables, 2 * part, h) + (ulong)ROW_OF(lowest) * pitch, pitch, n);
    store_table(sum_c, TABLE_AT(dtables, 2 * part + 1, h) + (ulong)ROW_OF(lowest) * pitch, pitch, n);
}
