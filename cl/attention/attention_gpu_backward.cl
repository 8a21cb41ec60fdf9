/* Backward pass of attention on a GPU. Weights are recomputed from the log-sum-exps.
 *
 * The dQ kernel holds queries and streams keys; the dK and dV kernel holds keys and streams queries. If there
 * are too few keys to fill the GPU, several groups share a tile of keys and process a part of the queries
 * each, and a last kernel sums the parts, in order. Layout and lengths: attention.clh; tiles:
 * attention_gpu.clh; delta [B, heads, lq] comes from the dQ kernel, or without one
 * from attention_delta. attention_gpu_gradients does the work of both kernels in one launch. */

/* Intel's compiler estimates how many registers a kernel needs, and keeps arrays in memory if the estimate is
 * too high. As found with ocloc for head sizes 8 to 128 (acm-g10, pvc), half as many columns avoid that; for
 * heads of 32 elements the estimate is good. */
#if defined(SUB_GROUP) && DH != 32
#define FEW_COLS 1
#else
#define FEW_COLS 0
#endif

/* Rows of a tile. Local memory is at most 30 KiB with 32 of heads of up to 64 elements and with 16 of larger
 * heads. For larger heads, two streamed tiles with as many columns as rows would not fit: they take turns in
 * one buffer (TURNS), and a tile that is needed twice is loaded twice. Two tiles of half as many columns are
 * slower, because every float4 from local memory would serve half as many products. */
#ifndef ROWS
#define ROWS 16
#endif
#define TURNS (DH > 64 && !FEW_COLS)
#if DH <= 32
#define COLS (FEW_COLS ? 16 : 32)
#else
#define COLS (FEW_COLS ? 8 : 16)
#endif
#define HELD_STRIDE VEC4S
/* For heads of 32: without the loop ptxas 12.9 spills 24 bytes on sm_90 at 255 registers; with it, it takes
 * 168. */
#define IN_HALVES 1
#include "attention/attention_gpu.clh"

#if WEIGHT_STRIDE * 4 < DELTA_LANES
#error the sums of delta pass through the memory of the weights
#endif

/* The tiles of a group in local memory: rows that it holds, rows that it streams (two tiles, or the same one twice),
 * weights and their gradients. */
typedef struct tiles_of_group {
    __local float4 *held[2], *streamed[2], *weight, *dscore;
    __local float *parts; /* of delta, [COLS, TX] */
} tiles_of_group;
#define STREAMED (TURNS ? 1 : 2)
#define LOCAL_TILES(name)                                                                                              \
    __local float4 name##_held[2][ROWS * HELD_STRIDE], name##_streamed[STREAMED][COLS * STRIDE];                       \
    __local float4 name##_dscore[ROWS * WEIGHT_STRIDE]

/* A tensor as two arguments of a function whose parameter is TENSOR(). */
#define PASS(x) x##_slab, x##_offset
#define NO_TENSOR 0, 0

/* The parameters that both gradients have, and their arguments. */
#define INPUTS                                                                                                         \
    TENSOR(const T, q), TENSOR(const T, k), TENSOR(const T, v), const int q_row, const int kv_row,                     \
        TENSOR(const int, q_lengths), TENSOR(const int, k_lengths), TENSOR(const float, lse), TENSOR(const T, y),      \
        TENSOR(const T, dy)
#define PASS_INPUTS(y_pair)                                                                                            \
    PASS(q), PASS(k), PASS(v), q_row, kv_row, PASS(q_lengths), PASS(k_lengths), PASS(lse), y_pair, PASS(dy)

/* A work-group processes a tile of queries; its index `item` is (b * heads + h) * tiles + tile. delta: NULL
 * if no other group needs it. */
INLINED void dq_of_tile(const tiles_of_group *t, int item, INPUTS, TENSOR(float, delta), TENSOR(const T, accum),
                        TENSOR(T, dq), int heads, int lq, int lk, float softmax_scale) {
    __local float4 *const queries = t->held[0], *const douts = t->held[1];
    __local float4 *const keys = t->streamed[0], *const values = t->streamed[1], *const dscore = t->dscore;
    const int tiles = (lq + ROWS - 1) / ROWS;
    const int i0 = item % tiles * ROWS, h = item / tiles % heads, b = item / tiles / heads;
    const int in_tile = min(ROWS, lq - i0), n = clamp(LENGTH(q_lengths, b, lq) - i0, 0, in_tile);
    const int length = n > 0 ? LENGTH(k_lengths, b, lk) : 0;
    const sight seen = sight_of(STARTS(b), i0, n, length);
    int first[OWN_ROWS];
    find_first_keys(first, STARTS(b), i0, n);

    sums out = zero_sums();
    float logs[OWN_ROWS], deltas[OWN_ROWS];
#pragma unroll
    for (int i = 0; i < OWN_ROWS; ++i) {
        const int r = own_row(i);
        logs[i] = r < n ? LSE_AT(lse, b, i0, h)[r] * LOG2E : 0.0f;
    }
    load_held(queries, ROWS, Q_AT(q, b, i0, h), q_row, n, softmax_scale * LOG2E);
    load_held(douts, ROWS, Y_AT(dy, b, i0, h), heads * DH, n, 1.0f);
    delta_parts((__local float *)dscore, Y_AT(y, b, i0, h), Y_AT(dy, b, i0, h), heads * DH, n, THREADS);
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (int i = 0; i < OWN_ROWS; ++i) {
        const int r = own_row(i);
        deltas[i] = r < n ? delta_of((__local const float *)dscore, r) : 0.0f;
        if (HAS(delta) && r < n && own_column(0) == 0) LSE_AT(delta, b, i0, h)[r] = deltas[i];
    }

    for (int j0 = seen.begin; j0 < seen.end; j0 += COLS) {
        const int m = min(COLS, seen.end - j0);
        barrier(CLK_LOCAL_MEM_FENCE); /* the previous tile may be overwritten */
        load_rows(values, COLS, KV_AT(v, b, j0, h / SHARING), kv_row, m, 1.0f);
        if (!TURNS) load_rows(keys, COLS, KV_AT(k, b, j0, h / SHARING), kv_row, m, 1.0f);
        barrier(CLK_LOCAL_MEM_FENCE);
        const scores ds = multiply(douts, values);
#if TURNS
        barrier(CLK_LOCAL_MEM_FENCE); /* the values may be overwritten */
        load_rows(keys, COLS, KV_AT(k, b, j0, h / SHARING), kv_row, m, 1.0f);
        barrier(CLK_LOCAL_MEM_FENCE);
#endif
        scores s = multiply(queries, keys);
        if (RANGED)
            hide_keys(&s, &seen, first, i0, j0);
        else if (m < COLS)
            mask_columns(&s, m);
#pragma unroll
        for (int i = 0; i < OWN_ROWS; ++i)
#pragma unroll
            for (int j = 0; j < OWN_COLS; ++j) {
                const float p = WEIGHT_OF(s.at[i][j] - logs[i]);
                store_weight(dscore, i, j, p * (ds.at[i][j] - deltas[i]));
            }
        barrier(CLK_LOCAL_MEM_FENCE);
        out = add_weighted(out, dscore, keys);
    }
    store_sums(out, Q_AT(dq, b, i0, h), HAS(accum) ? Q_AT(accum, b, i0, h) : 0, q_row, in_tile, softmax_scale);
}

MANY_REGISTERS __attribute__((reqd_work_group_size(THREADS, 1, 1))) __kernel void
attention_gpu_dq(INPUTS, TENSOR(float, delta), TENSOR(const T, accum), TENSOR(T, dq), const int heads, const int lq,
                 const int lk, const float softmax_scale) {
    LOCAL_TILES(tile);
    const tiles_of_group t = {.held = {tile_held[0], tile_held[1]},
                              .streamed = {tile_streamed[0], tile_streamed[STREAMED - 1]},
                              .dscore = tile_dscore};
    dq_of_tile(&t, get_group_id(0), PASS_INPUTS(PASS(y)), PASS(delta), PASS(accum), PASS(dq), heads, lq, lk,
               softmax_scale);
}

/* Clears the rows of a tile from n on: their weights were computed from keys of zeros. */
static inline void clear_rows(sums *o, int n) {
#pragma unroll
    for (int i = 0; i < OWN_ROWS; ++i)
#pragma unroll
        for (int c = 0; c < OWN_VEC4S; ++c)
            if (own_row(i) >= n) o->at[i][c] = (float4)(0.0f);
}

/* Like load_rows, for dy. Also computes parts of delta = dy * y: each of the TX work-items of a row sums the
 * elements that it loads. */
static inline void load_douts_and_parts(const tiles_of_group *t, __global const T *y, __global const T *dy, int row,
                                        int n, bool whole) {
    const int lane = own_column(0);
    LOADS_UNROLLED
    for (int first = 0; first < COLS; first += TY) {
        const int r = first + own_row(0);
        if (COLS % TY != 0 && r >= COLS) continue;
        const bool there = whole || r < n;
        float part = 0.0f;
        LOADS_UNROLLED
        for (int c = 0; c < OWN_VEC4S; ++c) {
            const int vec4 = own_column(c);
            if (VEC4S % TX != 0 && vec4 >= VEC4S) continue;
            const float4 d = there ? load_vec4(dy + (ulong)r * row, vec4) : (float4)(0.0f);
            t->streamed[1][r * STRIDE + vec4] = d;
            if (there) part += dot(d, load_vec4(y + (ulong)r * row, vec4));
        }
        t->parts[r * TX + lane] = part;
    }
}
/* y: NULL if delta is known. */
static inline void load_douts(const tiles_of_group *t, __global const T *y, __global const T *dy, int row, int n) {
    if (!y)
        load_rows(t->streamed[1], COLS, dy, row, n, 1.0f);
    else if (UNROLL == 8 && n >= COLS)
        load_douts_and_parts(t, y, dy, row, n, true);
    else
        load_douts_and_parts(t, y, dy, row, n, false);
}
static inline float delta_of_column(const tiles_of_group *t, int c) {
    float sum = 0.0f;
#pragma unroll
    for (int lane = 0; lane < TX; ++lane) sum += t->parts[c * TX + lane];
    return sum;
}

/* Start of dK and of dV of one work-group of attention_gpu_keys: consecutive blocks of [ROWS, DH] floats. */
#define SHARE_K(group) (AT(shares) + (ulong)(group)*2 * ROWS * DH)
#define SHARE_V(group) (SHARE_K(group) + ROWS * DH)

/* A work-group processes a tile of keys and a part of the queries; its index `group` is ((b * heads + h) * tiles +
 * tile) * parts + part. A part has part_queries queries. Writes dK and dV if there is one part, else the
 * part's shares of them, without accums. If y is not NULL, delta is computed from it. */
INLINED void keys_of_tile(const tiles_of_group *t, int group, INPUTS, TENSOR(const float, delta),
                          TENSOR(const T, accum_k), TENSOR(const T, accum_v), TENSOR(T, dk), TENSOR(T, dv), int heads,
                          int lq, int lk, float softmax_scale, TENSOR(float, shares), int parts, int part_queries) {
    __local float4 *const keys = t->held[0], *const values = t->held[1];
    __local float4 *const queries = t->streamed[0], *const douts = t->streamed[1];
    __local float4 *const weight = t->weight, *const dscore = t->dscore;
    const int tiles = (lk + ROWS - 1) / ROWS, part = group % parts, item = group / parts, k_heads = heads / SHARING;
    const int j0 = item % tiles * ROWS, k_head = item / tiles % k_heads, b = item / tiles / k_heads;
    const int in_tile = min(ROWS, lk - j0), n = clamp(LENGTH(k_lengths, b, lk) - j0, 0, in_tile);
    const int start = part * part_queries, length = n > 0 ? min(LENGTH(q_lengths, b, lq), start + part_queries) : 0;

    sums sum_k = zero_sums(), sum_v = zero_sums();
    load_held(keys, ROWS, KV_AT(k, b, j0, k_head), kv_row, n, softmax_scale * LOG2E);
    load_held(values, ROWS, KV_AT(v, b, j0, k_head), kv_row, n, 1.0f);

    const int first_query = RANGED ? max(start, j0 - AHEAD) : start;
    const int end = WINDOW > 0 ? min(length, j0 + n + WINDOW - 1) : length;
    for (int h = k_head * SHARING; h < (k_head + 1) * SHARING; ++h)
        for (int i0 = first_query; i0 < end; i0 += COLS) {
            const int m = min(COLS, end - i0);
            if (CAUSAL && !is_seen(j0, n, sight_of(STARTS(b), i0, m, 0))) continue;
            barrier(CLK_LOCAL_MEM_FENCE); /* the previous tile may be overwritten */
            load_rows(queries, COLS, Q_AT(q, b, i0, h), q_row, m, 1.0f);
            if (!TURNS) load_douts(t, HAS(y) ? Y_AT(y, b, i0, h) : 0, Y_AT(dy, b, i0, h), heads * DH, m);
            barrier(CLK_LOCAL_MEM_FENCE);
            const scores s = multiply(keys, queries);
#if TURNS
            barrier(CLK_LOCAL_MEM_FENCE); /* the queries may be overwritten */
            load_douts(t, HAS(y) ? Y_AT(y, b, i0, h) : 0, Y_AT(dy, b, i0, h), heads * DH, m);
            barrier(CLK_LOCAL_MEM_FENCE);
#endif
            const scores ds = multiply(values, douts);
#pragma unroll
            for (int j = 0; j < OWN_COLS; ++j) {
                const int c = own_column(j);
                const float log_sum = c < m ? LSE_AT(lse, b, i0, h)[c] * LOG2E : INFINITY; /* weight 0 */
                const int first = c < m ? FIRST_KEY(b, i0 + c) : 0;
                float d = HAS(y) ? delta_of_column(t, c) : 0.0f;
                if (!HAS(y) && c < m) d = LSE_AT(delta, b, i0, h)[c];
#pragma unroll
                for (int i = 0; i < OWN_ROWS; ++i) {
                    const int key = j0 + own_row(i);
                    const bool hidden = RANGED && (key < first || key >= end_key(i0 + c, lk));
                    const float p = hidden ? 0.0f : WEIGHT_OF(s.at[i][j] - log_sum);
                    store_weight(weight, i, j, p);
                    store_weight(dscore, i, j, p * (ds.at[i][j] - d));
                }
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            sum_v = add_weighted(sum_v, weight, douts);
#if TURNS
            barrier(CLK_LOCAL_MEM_FENCE); /* the gradients of y may be overwritten */
            load_rows(queries, COLS, Q_AT(q, b, i0, h), q_row, m, 1.0f);
            barrier(CLK_LOCAL_MEM_FENCE);
#endif
            sum_k = add_weighted(sum_k, dscore, queries);
        }
    clear_rows(&sum_k, n), clear_rows(&sum_v, n);
    if (parts > 1) {
        store_share(sum_k, SHARE_K(group), softmax_scale);
        store_share(sum_v, SHARE_V(group), 1.0f);
        return;
    }
    store_sums(sum_k, KV_AT(dk, b, j0, k_head), HAS(accum_k) ? KV_AT(accum_k, b, j0, k_head) : 0, kv_row, in_tile,
               softmax_scale);
    store_sums(sum_v, KV_AT(dv, b, j0, k_head), HAS(accum_v) ? KV_AT(accum_v, b, j0, k_head) : 0, kv_row, in_tile,
               1.0f);
}

MANY_REGISTERS __attribute__((reqd_work_group_size(THREADS, 1, 1))) __kernel void
attention_gpu_keys(TENSOR(const T, q), TENSOR(const T, k), TENSOR(const T, v), const int q_row, const int kv_row,
                   TENSOR(const int, q_lengths), TENSOR(const int, k_lengths), TENSOR(const float, lse),
                   TENSOR(const float, delta), TENSOR(const T, dy), TENSOR(const T, accum_k), TENSOR(const T, accum_v),
                   TENSOR(T, dk), TENSOR(T, dv), const int heads, const int lq, const int lk, const float softmax_scale,
                   TENSOR(float, shares), const int parts, const int part_queries) {
    LOCAL_TILES(tile);
    __local float4 tile_weight[ROWS * WEIGHT_STRIDE];
    const tiles_of_group t = {.held = {tile_held[0], tile_held[1]},
                              .streamed = {tile_streamed[0], tile_streamed[STREAMED - 1]},
                              .weight = tile_weight,
                              .dscore = tile_dscore};
    keys_of_tile(&t, get_group_id(0), PASS_INPUTS(NO_TENSOR), PASS(delta), PASS(accum_k), PASS(accum_v), PASS(dk),
                 PASS(dv), heads, lq, lk, softmax_scale, PASS(shares), parts, part_queries);
}

/* Both in one launch: the first dq_groups groups compute dQ. The others compute dK and dV, and recompute
 * delta from y, so that they need not wait for dQ. */
MANY_REGISTERS __attribute__((reqd_work_group_size(THREADS, 1, 1))) __kernel void
attention_gpu_gradients(INPUTS, TENSOR(const T, accum), TENSOR(const T, accum_k), TENSOR(const T, accum_v),
                        TENSOR(T, dq), TENSOR(T, dk), TENSOR(T, dv), const int heads, const int lq, const int lk,
                        const float softmax_scale, TENSOR(float, shares), const int parts, const int part_queries,
                        const int dq_groups) {
    LOCAL_TILES(tile);
    __local float4 tile_weight[ROWS * WEIGHT_STRIDE];
    __local float parts_of_delta[COLS * TX];
    const tiles_of_group t = {.held = {tile_held[0], tile_held[1]},
                              .streamed = {tile_streamed[0], tile_streamed[STREAMED - 1]},
                              .weight = tile_weight,
                              .dscore = tile_dscore,
                              .parts = parts_of_delta};
    const int group = get_group_id(0);
    if (group < dq_groups)
        dq_of_tile(&t, group, PASS_INPUTS(PASS(y)), NO_TENSOR, PASS(accum), PASS(dq), heads, lq, lk, softmax_scale);
    else
        keys_of_tile(&t, group - dq_groups, PASS_INPUTS(PASS(y)), NO_TENSOR, PASS(accum_k), PASS(accum_v), PASS(dk),
                     PASS(dv), heads, lq, lk, softmax_scale, PASS(shares), parts, part_queries);
}

/* dK and dV = accum + the sum of the parts' shares, in order. A work-item computes one element of both; there
 * are few elements, because otherwise the queries would not be split into parts. */
__kernel void attention_gpu_sum_keys(TENSOR(const float, shares), TENSOR(const T, accum_k), TENSOR(const T, accum_v),
                                     TENSOR(T, dk), TENSOR(T, dv), const int kv_row, const int batch, const int heads,
                                     const int lk, const int parts) {
    const int tiles = (lk + ROWS - 1) / ROWS, k_heads = heads / SHARING, width = k_heads * DH;
    for (int at = get_global_id(0); at < batch * lk * width; at += get_global_size(0)) {
        const int e = at % width, h = e / DH, d = e % DH, j = at / width % lk, b = at / width / lk;
        const int first = ((b * k_heads + h) * tiles + j / ROWS) * parts, in_share = j % ROWS * DH + d;
        float sum_k = 0.0f, sum_v = 0.0f;
        if (HAS(accum_k)) sum_k = LOAD(KV_AT(accum_k, b, j, h), d), sum_v = LOAD(KV_AT(accum_v, b, j, h), d);
        for (int part = 0; part < parts; ++part) {
            sum_k += SHARE_K(first + part)[in_share];
            sum_v += SHARE_V(first + part)[in_share];
        }
        STORE(sum_k, KV_AT(dk, b, j, h), d);
        STORE(sum_v, KV_AT(dv, b, j, h), d);
    }
}
