/* Backward pass of attention with a row of a head in each work-item (attention_mma_columns.clh); weights are
 * recomputed from the log-sum-exps.
 *
 * The dQ kernel holds queries and streams keys; the dK and dV kernel holds keys and streams queries. Both
 * weights and their gradients are rounded to T for the products that follow. If there are too few keys to
 * fill the GPU, several groups share a tile of keys and process a part of the queries each, and
 * attention_mma_sum_keys sums the parts, in order. Layout and lengths: attention.clh; delta [B, heads, lq]
 * comes from the dQ kernel, or without one from attention_delta.
 *
 * KEYS_KERNEL: 0 the kernel for dQ, 1 the one for dK and dV. */
#include "attention/attention_mma_columns.clh"

#if KEYS_KERNEL == 0

/* delta = sum over d of y * dy, for a row in each lane. */
static inline float delta_of_row(__global const T *y, __global const T *dy) {
    chunk sum = 0.0f;
    for (int d = 0; d < DH; d += CHUNK) sum += load_aligned_chunk(y + d) * load_aligned_chunk(dy + d);
    return sum_chunk(sum);
}

/* Log-sum-exp and delta of this lane's row. */
typedef struct statistics {
    float log_sum, delta;
} statistics;

/* The gradients of the scores of eight keys of the tiles. */
static inline columns_c dscores(__local const ushort *keys, __local const ushort *values, const row_b *query,
                                const row_b *dout, statistics s, float scale, columns_c mask,
                                MATRIX_SCRATCH_ARG scratch) {
    const columns_c score = multiply_rows(keys, query, scratch);
    const columns_c dweight = multiply_rows(values, dout, scratch);
    return columns_exp2(score * scale + mask - s.log_sum) * (dweight - s.delta);
}

/* A work-group processes a tile of queries; its index is (b * heads + h) * tiles + tile. */
MANY_REGISTERS __attribute__((reqd_work_group_size(THREADS, 1, 1))) __kernel void
attention_mma_columns_dq(TENSOR(const T, q), TENSOR(const T, k), TENSOR(const T, v), const int q_row, const int kv_row,
                         TENSOR(const int, q_lengths), TENSOR(const int, k_lengths), TENSOR(const float, lse),
                         TENSOR(const T, y), TENSOR(const T, dy), TENSOR(float, delta), TENSOR(const T, accum),
                         TENSOR(T, dq), const int heads, const int lq, const int lk, const float softmax_scale) {
    MATRIX_SCRATCH(scratch);
    LOCAL_TILES(keys, TILE);
    LOCAL_TILES(transposed_keys, TRANSPOSED_TILE);
    LOCAL_TILES(values, TILE);
    __local float masks[COLS] __attribute__((aligned(64)));
    const int tiles = (lq + ROWS - 1) / ROWS, item = get_group_id(0), own = OWN_ROW;
    const int i0 = item % tiles * ROWS, h = item / tiles % heads, b = item / tiles / heads;
    const int in_tile = min(ROWS, lq - i0), n = clamp(LENGTH(q_lengths, b, lq) - i0, 0, in_tile);
    const int length = n > 0 ? LENGTH(k_lengths, b, lk) : 0;

    row_b query, dout;
    row_c out;
    statistics statistics = {.log_sum = 0.0f, .delta = 0.0f};
    const float scale = softmax_scale * LOG2E;
    streams streams = {
        .first = KV_AT(k, b, 0, h), .second = KV_AT(v, b, 0, h), .first_row = kv_row, .second_row = kv_row};
    load_row(&query, Q_AT(q, b, i0 + own, h), own < n);
    load_row(&dout, Y_AT(dy, b, i0 + own, h), own < n);
    if (own < n) {
        statistics.log_sum = LSE_AT(lse, b, i0, h)[own] * LOG2E;
        statistics.delta = delta_of_row(Y_AT(y, b, i0 + own, h), Y_AT(dy, b, i0 + own, h));
        LSE_AT(delta, b, i0, h)[own] = statistics.delta;
    }
    zero_row(&out);

    if (AHEAD && length > 0) streams_send(&streams, length);
    for (int left = length; left > 0; left -= COLS) {
        if (!AHEAD) streams_send(&streams, left);
        barrier(CLK_LOCAL_MEM_FENCE); /* the previous tiles may be overwritten */
        tile_receive(&streams.first_transit, keys);
        tile_receive_transposed(&streams.first_transit, transposed_keys);
        tile_receive(&streams.second_transit, values);
        if (own < COLS) masks[own] = MASK_OF(own, left);
        barrier(CLK_LOCAL_MEM_FENCE); /* the tiles are complete */
        if (AHEAD && left > COLS) streams_send(&streams, left - COLS);
#define DSCORES(eight)                                                                                                 \
    dscores(keys + (eight)*128, values + (eight)*128, &query, &dout, statistics, scale, TABLE_ROWS(masks, eight),      \
            scratch)
#define ADD(f)                                                                                                         \
    {                                                                                                                  \
        const columns_c top = DSCORES(2 * (f)), bottom = DSCORES(2 * (f) + 1);                                         \
        add_weighted(&out, columns_pack(top, bottom), transposed_keys + (f)*TRANSPOSED_SLAB, scratch);                 \
    }
        STEPS(COLS / 16, ADD)
#undef ADD
#undef DSCORES
    }
    if (own < in_tile)
        store_row(&out, Q_AT(dq, b, i0 + own, h), HAS(accum) ? Q_AT(accum, b, i0 + own, h) : 0, own < n, softmax_scale);
}

#else

#include "attention/attention_statistics.clh"

/* Where 16 queries, which contribute to the gradients of keys and values, begin in the tiles. */
typedef struct stretch {
    __local const ushort *queries, *douts, *transposed_queries, *transposed_douts;
    __local const float *statistics;
} stretch;

static inline columns_c weights_of(stretch at, int eight, const row_b *key, float scale, MATRIX_SCRATCH_ARG scratch) {
    const columns_c score = multiply_rows(at.queries + eight * 128, key, scratch);
    return columns_exp2(score * scale - TABLE_ROWS(at.statistics, eight));
}
static inline columns_c dscores_of(stretch at, int eight, columns_c weight, const row_b *value,
                                   MATRIX_SCRATCH_ARG scratch) {
    const columns_c dweight = multiply_rows(at.douts + eight * 128, value, scratch);
    return weight * (dweight - TABLE_ROWS(at.statistics + COLS, eight));
}
/* This order keeps few registers in use at once. */
static inline void add_queries(row_c *sum_k, row_c *sum_v, stretch at, const row_b *key, const row_b *value,
                               float scale, MATRIX_SCRATCH_ARG scratch) {
    const columns_c top = weights_of(at, 0, key, scale, scratch), bottom = weights_of(at, 1, key, scale, scratch);
    add_weighted(sum_v, columns_pack(top, bottom), at.transposed_douts, scratch);
    const columns_c dtop = dscores_of(at, 0, top, value, scratch), dbottom = dscores_of(at, 1, bottom, value, scratch);
    add_weighted(sum_k, columns_pack(dtop, dbottom), at.transposed_queries, scratch);
}

/* share [DH] = scale * sums; 0 unless they are valid. */
static inline void store_share(const row_c *sums, __global float *share, bool valid, float scale) {
#define STORE_VEC8(vec8)                                                                                               \
    if ((vec8) < DH / 8) vstore8(valid ? scale * sums->at[vec8] : (columns_c)(0.0f), (vec8), share);
    STEPS(EIGHTS, STORE_VEC8)
#undef STORE_VEC8
}

/* A work-group processes a tile of keys and a part of the queries; its index is ((b * heads + h) * tiles +
 * tile) * parts + part. A part has part_queries queries. Writes dK and dV if there is one part, else the
 * part's shares of them, without accums. */
MANY_REGISTERS __attribute__((reqd_work_group_size(THREADS, 1, 1))) __kernel void
attention_mma_columns_keys(TENSOR(const T, q), TENSOR(const T, k), TENSOR(const T, v), const int q_row,
                           const int kv_row, TENSOR(const int, q_lengths), TENSOR(const int, k_lengths),
                           TENSOR(const float, lse), TENSOR(const float, delta), TENSOR(const T, dy),
                           TENSOR(const T, accum_k), TENSOR(const T, accum_v), TENSOR(T, dk), TENSOR(T, dv),
                           const int heads, const int lq, const int lk, const float softmax_scale,
                           TENSOR(float, shares), const int parts, const int part_queries) {
    MATRIX_SCRATCH(scratch);
    LOCAL_TILES(queries, TILE);
    LOCAL_TILES(douts, TILE);
    LOCAL_TILES(transposed_queries, TRANSPOSED_TILE);
    LOCAL_TILES(transposed_douts, TRANSPOSED_TILE);
    __local float statistics[STATISTICS] __attribute__((aligned(64)));
    const int tiles = (lk + ROWS - 1) / ROWS, part = get_group_id(0) % parts, item = get_group_id(0) / parts;
    const int j0 = item % tiles * ROWS, h = item / tiles % heads, b = item / tiles / heads, own = OWN_ROW;
    const int in_tile = min(ROWS, lk - j0), n = clamp(LENGTH(k_lengths, b, lk) - j0, 0, in_tile);
    const int start = part * part_queries, end = min(LENGTH(q_lengths, b, lq), start + part_queries);
    const int length = n > 0 ? max(end - start, 0) : 0;
    const ulong statistics_at = ((ulong)b * heads + h) * lq + start; /* of the part's first query */

    row_b key, value;
    row_c sum_k, sum_v;
    streams streams = {
        .first = Q_AT(q, b, start, h), .second = Y_AT(dy, b, start, h), .first_row = q_row, .second_row = heads * DH};
    load_row(&key, KV_AT(k, b, j0 + own, h), own < n);
    load_row(&value, KV_AT(v, b, j0 + own, h), own < n);
    zero_row(&sum_k);
    zero_row(&sum_v);

    for (int left = length; left > 0; left -= COLS) {
        /* Not sent ahead, because no registers are free. */
        streams_send(&streams, left);
        const float statistic = fetch_statistic(AT(lse), AT(delta), statistics_at + (length - left), left);
        barrier(CLK_LOCAL_MEM_FENCE); /* the previous tiles may be overwritten */
        if (own < STATISTICS) statistics[own] = statistic;
        tile_receive(&streams.first_transit, queries);
        tile_receive_transposed(&streams.first_transit, transposed_queries);
        tile_receive(&streams.second_transit, douts);
        tile_receive_transposed(&streams.second_transit, transposed_douts);
        barrier(CLK_LOCAL_MEM_FENCE); /* the tiles are complete */
#define ADD(f)                                                                                                         \
    {                                                                                                                  \
        const stretch at = {queries + (f)*256, douts + (f)*256, transposed_queries + (f)*TRANSPOSED_SLAB,              \
                            transposed_douts + (f)*TRANSPOSED_SLAB, statistics + (f)*16};                              \
        add_queries(&sum_k, &sum_v, at, &key, &value, softmax_scale *LOG2E, scratch);                                  \
    }
        STEPS(COLS / 16, ADD)
#undef ADD
    }
    if (own >= in_tile) return;
    const bool valid = own < n;
    if (parts > 1) {
        store_share(&sum_k, SHARE_AT(b, part, 0, j0 + own, h), valid, softmax_scale);
        store_share(&sum_v, SHARE_AT(b, part, 1, j0 + own, h), valid, 1.0f);
        return;
    }
    store_row(&sum_k, KV_AT(dk, b, j0 + own, h), HAS(accum_k) ? KV_AT(accum_k, b, j0 + own, h) : 0, valid,
              softmax_scale);
    store_row(&sum_v, KV_AT(dv, b, j0 + own, h), HAS(accum_v) ? KV_AT(accum_v, b, j0 + own, h) : 0, valid, 1.0f);
}
#endif
