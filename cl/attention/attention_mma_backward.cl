/* Backward pass of attention on matrix units. Weights are recomputed from the log-sum-exps.
 *
 * The weights and their gradients are rounded to T for the products that follow. The dQ kernel holds queries
 * and streams keys; the dK and dV kernel holds keys and streams queries. If there are too few keys to fill
 * the GPU, several groups share a tile of keys and process a part of the queries each, and
 * attention_mma_sum_keys sums the parts, in order. Layout and lengths: attention.clh; tiles:
 * attention_mma.clh; delta [B, heads, lq] comes from the dQ kernel, or without one from attention_delta.
 *
 * SUM_KINDS is 1 for dQ, and 2 for dK and dV, which are computed by different subgroups. */
#include "attention/attention_mma.clh"

#if SUM_KINDS == 1

#if WEIGHT_STRIDE < 2 * DELTA_LANES
#error the sums of delta pass through the memory of the weights
#endif

/* dscore of the subgroup's rows (queries) and fragment `fragment` of m keys. */
static inline void dscore_fragment(__local ushort *dscore, __local const ushort *queries, __local const ushort *keys,
                                   __local const ushort *douts, __local const ushort *values, __local const float *logs,
                                   __local const float *deltas, int m, int fragment, float softmax_scale,
                                   MATRIX_SCRATCH_ARG scratch) {
    const int rows = SUBGROUP_ROW * STRIDE, columns = min(fragment, SCORE_FRAGMENTS - 1) * 16 * STRIDE;
    const bool there = fragment < SCORE_FRAGMENTS;
    matrix_c p = multiply(queries + rows, keys + columns, scratch);
#define WEIGHT(i)                                                                                                      \
    {                                                                                                                  \
        const int r = SUBGROUP_ROW + C_ROW(i), c = fragment * 16 + C_COLUMN(i);                                        \
        const float weight = WEIGHT_EXP2(fma(p.x[i], softmax_scale * LOG2E, -logs[r]));                                \
        p.x[i] = c < m ? weight : 0.0f;                                                                                \
    }
    ELEMENTS(WEIGHT)
#undef WEIGHT
    const matrix_c ds = multiply(douts + rows, values + columns, scratch);
#define DSCORE(i)                                                                                                      \
    {                                                                                                                  \
        const int r = SUBGROUP_ROW + C_ROW(i), c = fragment * 16 + C_COLUMN(i);                                        \
        if (there) store_weight(dscore, r, c, p.x[i] * (ds.x[i] - deltas[r]));                                         \
    }
    ELEMENTS(DSCORE)
#undef DSCORE
}

/* A work-group processes a tile of queries; its index is (b * heads + h) * tiles + tile. */
MANY_REGISTERS __attribute__((reqd_work_group_size(THREADS, 1, 1))) __kernel void
attention_mma_dq(TENSOR(const T, q), TENSOR(const T, k), TENSOR(const T, v), const int q_row, const int kv_row,
                 TENSOR(const int, q_lengths), TENSOR(const int, k_lengths), TENSOR(const float, lse),
                 TENSOR(const T, y), TENSOR(const T, dy), TENSOR(float, delta), TENSOR(const T, accum), TENSOR(T, dq),
                 const int heads, const int lq, const int lk, const float softmax_scale) {
    MATRIX_SCRATCH(scratch);
    LOCAL_ROWS(queries, ROWS, STRIDE);
    LOCAL_ROWS(douts, ROWS, STRIDE);
    LOCAL_ROWS(keys, COLS, STRIDE);
    LOCAL_ROWS(values, COLS, STRIDE);
    LOCAL_ROWS(dscore, ROWS, WEIGHT_STRIDE);
    __local float logs[ROWS], deltas[ROWS];
    const int tiles = (lq + ROWS - 1) / ROWS, item = get_group_id(0);
    const int i0 = item % tiles * ROWS, h = item / tiles % heads, b = item / tiles / heads;
    const int in_tile = min(ROWS, lq - i0), n = clamp(LENGTH(q_lengths, b, lq) - i0, 0, in_tile);
    const int length = n > 0 ? LENGTH(k_lengths, b, lk) : 0;

    sums out;
    zero_sums(&out);
    __local float *const parts = (__local float *)dscore;
    delta_parts(parts, Y_AT(y, b, i0, h), Y_AT(dy, b, i0, h), heads * DH, n, THREADS);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int r = get_local_id(0); r < ROWS; r += THREADS) {
        logs[r] = r < n ? LSE_AT(lse, b, i0, h)[r] * LOG2E : 0.0f;
        deltas[r] = r < n ? delta_of(parts, r) : 0.0f;
        if (r < n) LSE_AT(delta, b, i0, h)[r] = deltas[r];
    }
    copy_rows(queries, ROWS, Q_AT(q, b, i0, h), q_row, n);
    copy_rows(douts, ROWS, Y_AT(dy, b, i0, h), heads * DH, n);

    for (int j0 = 0; j0 < length; j0 += COLS) {
        const int m = min(COLS, length - j0);
        barrier(CLK_LOCAL_MEM_FENCE); /* the previous tile may be overwritten */
        copy_rows(keys, COLS, KV_AT(k, b, j0, h), kv_row, m);
        copy_rows(values, COLS, KV_AT(v, b, j0, h), kv_row, m);
        barrier(CLK_LOCAL_MEM_FENCE);
#define FRAGMENT(f)                                                                                                    \
    dscore_fragment(dscore, queries, keys, douts, values, logs, deltas, m, SUBGROUP_COLUMN + (f)*COLUMN_SUBGROUPS,     \
                    softmax_scale, scratch);
        STEPS(OWN_SCORES, FRAGMENT)
#undef FRAGMENT
        barrier(CLK_LOCAL_MEM_FENCE);
        add_weighted(&out, dscore + SUBGROUP_ROW * WEIGHT_STRIDE, keys, SUBGROUP_COLUMN, scratch);
    }
    store_sums(&out, Q_AT(dq, b, i0, h), HAS(accum) ? Q_AT(accum, b, i0, h) : 0, q_row, in_tile, SUBGROUP_COLUMN,
               softmax_scale);
}

#else

/* logs and deltas [count] of the queries i0, i0 + 1, ...; logs in base 2; 0 from n on. */
static inline void load_statistics(__local float *logs, __local float *deltas, int count, __global const float *lse,
                                   __global const float *delta, int n) {
    for (int r = get_local_id(0); r < count; r += THREADS) {
        logs[r] = r < n ? lse[r] * LOG2E : 0.0f;
        deltas[r] = r < n ? delta[r] : 0.0f;
    }
}

/* Weights and dscores, transposed, of the subgroup's rows (n keys) and fragment `fragment` of m queries. */
static inline void weight_fragment(__local ushort *weight, __local ushort *dscore, __local const ushort *keys,
                                   __local const ushort *queries, __local const ushort *values,
                                   __local const ushort *douts, __local const float *logs, __local const float *deltas,
                                   int n, int m, int fragment, float softmax_scale, MATRIX_SCRATCH_ARG scratch) {
    const int nearest = min(fragment, SCORE_FRAGMENTS - 1) * 16;
    const int rows = SUBGROUP_ROW * STRIDE, columns = nearest * STRIDE;
    const bool there = fragment < SCORE_FRAGMENTS;
    matrix_c p = multiply(keys + rows, queries + columns, scratch);
#define WEIGHT(i)                                                                                                      \
    {                                                                                                                  \
        const int r = SUBGROUP_ROW + C_ROW(i), c = fragment * 16 + C_COLUMN(i);                                        \
        const float known = WEIGHT_EXP2(fma(p.x[i], softmax_scale * LOG2E, -logs[nearest + C_COLUMN(i)]));             \
        p.x[i] = r < n && c < m ? known : 0.0f;                                                                        \
        if (there) store_weight(weight, r, c, p.x[i]);                                                                 \
    }
    ELEMENTS(WEIGHT)
#undef WEIGHT
    const matrix_c ds = multiply(values + rows, douts + columns, scratch);
#define DSCORE(i)                                                                                                      \
    {                                                                                                                  \
        const int r = SUBGROUP_ROW + C_ROW(i), c = fragment * 16 + C_COLUMN(i);                                        \
        if (there) store_weight(dscore, r, c, p.x[i] * (ds.x[i] - deltas[c]));                                         \
    }
    ELEMENTS(DSCORE)
#undef DSCORE
}

/* share[r * row : + DH] = softmax_scale * o for the subgroup's rows r < n. */
static inline void share_fragment(const matrix_c *c, __global float *share, int row, int n, int first_column,
                                  float softmax_scale) {
#define STORE_ONE(i)                                                                                                   \
    {                                                                                                                  \
        const int r = SUBGROUP_ROW + C_ROW(i), d = first_column + C_COLUMN(i);                                         \
        if (r < n && d < DH) share[(ulong)r * row + d] = softmax_scale * c->x[i];                                      \
    }
    ELEMENTS(STORE_ONE)
#undef STORE_ONE
}
static inline void store_share(const sums *o, __global float *share, int row, int n, int first, float softmax_scale) {
#define STORE_FRAGMENT(f) share_fragment(&o->at[f], share, row, n, (first + (f)*SUM_SUBGROUPS) * 16, softmax_scale);
    STEPS(OWN_FRAGMENTS, STORE_FRAGMENT)
#undef STORE_FRAGMENT
}

/* A work-group processes a tile of keys and a part of the queries; its index is ((b * heads + h) * tiles +
 * tile) * parts + part. A part has part_queries queries. Writes dK and dV if there is one part, else the
 * part's shares of them, without accums. */
MANY_REGISTERS __attribute__((reqd_work_group_size(THREADS, 1, 1))) __kernel void
attention_mma_keys(TENSOR(const T, q), TENSOR(const T, k), TENSOR(const T, v), const int q_row, const int kv_row,
                   TENSOR(const int, q_lengths), TENSOR(const int, k_lengths), TENSOR(const float, lse),
                   TENSOR(const float, delta), TENSOR(const T, dy), TENSOR(const T, accum_k), TENSOR(const T, accum_v),
                   TENSOR(T, dk), TENSOR(T, dv), const int heads, const int lq, const int lk, const float softmax_scale,
                   TENSOR(float, shares), const int parts, const int part_queries) {
    MATRIX_SCRATCH(scratch);
    LOCAL_ROWS(keys, ROWS, STRIDE);
    LOCAL_ROWS(values, ROWS, STRIDE);
    LOCAL_ROWS(queries, COLS, STRIDE);
    LOCAL_ROWS(douts, COLS, STRIDE);
    LOCAL_ROWS(weight, ROWS, WEIGHT_STRIDE);
    LOCAL_ROWS(dscore, ROWS, WEIGHT_STRIDE);
    __local float logs[COLS], deltas[COLS];
    const int tiles = (lk + ROWS - 1) / ROWS, part = get_group_id(0) % parts, item = get_group_id(0) / parts;
    const int j0 = item % tiles * ROWS, h = item / tiles % heads, b = item / tiles / heads;
    const int in_tile = min(ROWS, lk - j0), n = clamp(LENGTH(k_lengths, b, lk) - j0, 0, in_tile);
    const int start = part * part_queries, length = n > 0 ? min(LENGTH(q_lengths, b, lq), start + part_queries) : 0;
    const int kind = SUBGROUP_COLUMN / SUM_SUBGROUPS, first = SUBGROUP_COLUMN % SUM_SUBGROUPS;

    sums sum; /* dK in the subgroups of kind 0, dV in the others */
    zero_sums(&sum);
    copy_rows(keys, ROWS, KV_AT(k, b, j0, h), kv_row, n);
    copy_rows(values, ROWS, KV_AT(v, b, j0, h), kv_row, n);

    for (int i0 = start; i0 < length; i0 += COLS) {
        const int m = min(COLS, length - i0);
        barrier(CLK_LOCAL_MEM_FENCE); /* the previous tile may be overwritten */
        load_statistics(logs, deltas, COLS, LSE_AT(lse, b, i0, h), LSE_AT(delta, b, i0, h), m);
        copy_rows(queries, COLS, Q_AT(q, b, i0, h), q_row, m);
        copy_rows(douts, COLS, Y_AT(dy, b, i0, h), heads * DH, m);
        barrier(CLK_LOCAL_MEM_FENCE);
#define FRAGMENT(f)                                                                                                    \
    weight_fragment(weight, dscore, keys, queries, values, douts, logs, deltas, n, m,                                  \
                    SUBGROUP_COLUMN + (f)*COLUMN_SUBGROUPS, softmax_scale, scratch);
        STEPS(OWN_SCORES, FRAGMENT)
#undef FRAGMENT
        barrier(CLK_LOCAL_MEM_FENCE);
        add_weighted(&sum, (kind == 0 ? dscore : weight) + SUBGROUP_ROW * WEIGHT_STRIDE, kind == 0 ? queries : douts,
                     first, scratch);
    }

    /* A single call of store_sums for both, so that it is inlined. */
    const float by = kind == 0 ? softmax_scale : 1.0f;
    __global const T *before = 0;
    if (HAS(accum_k)) before = kind == 0 ? KV_AT(accum_k, b, j0, h) : KV_AT(accum_v, b, j0, h);
    if (parts > 1)
        store_share(&sum, SHARE_AT(b, part, kind, j0, h), heads * DH, in_tile, first, by);
    else
        store_sums(&sum, kind == 0 ? KV_AT(dk, b, j0, h) : KV_AT(dv, b, j0, h), before, kv_row, in_tile, first, by);
}
#endif
