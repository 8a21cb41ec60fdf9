/* Forward pass of attention with a query, and its softmax, in each work-item (attention_mma_columns.clh).
 *
 * A work-group holds ROWS queries; keys and values stream through local memory. Scores and sums are f32; weights are
 * rounded to T for their product with the values. Layout and lengths: attention.clh. */
#include "attention/attention_mma_columns.clh"

/* The largest score of this lane's row, and the sum of the weights relative to it. */
typedef struct softmax_row {
    float top, sum;
} softmax_row;

typedef struct scores {
    columns_c at[COL_EIGHTS];
} scores;

/* Scores += 16 elements of each key times those of the query. */
static inline void add_scores(scores *s, __local const ushort *slab, columns_b query, MATRIX_SCRATCH_ARG scratch) {
#define ADD(eight) s->at[eight] = columns_mad(s->at[eight], columns_load(slab + (eight)*128), query, scratch);
    STEPS(COL_EIGHTS, ADD)
#undef ADD
}

/* Replaces the scores by their weights, and rescales the earlier sums to the new largest score. */
static inline void weights(scores *s, softmax_row *softmax, row_c *out, float scale, __local const float *masks) {
    columns_c largest = s->at[0], sum = 0.0f;
#define COMPARE(eight) largest = fmax(largest, s->at[eight]);
    STEPS(COL_EIGHTS, COMPARE)
#undef COMPARE
    const float top = fmax(softmax->top, columns_max(largest)), shrink = columns_exp2((softmax->top - top) * scale);
#define WEIGHT(eight)                                                                                                  \
    {                                                                                                                  \
        s->at[eight] = columns_exp2((s->at[eight] - top) * scale + TABLE_ROWS(masks, eight));                          \
        sum += s->at[eight];                                                                                           \
    }
    STEPS(COL_EIGHTS, WEIGHT)
#undef WEIGHT
    softmax->top = top;
    softmax->sum = softmax->sum * shrink + columns_sum(sum);
#define SHRINK(eight) out->at[eight] *= shrink;
    STEPS(EIGHTS, SHRINK)
#undef SHRINK
}

/* A work-group processes a tile of queries; its index is (b * heads + h) * tiles + tile. */
MANY_REGISTERS __attribute__((reqd_work_group_size(THREADS, 1, 1))) __kernel void
attention_mma_columns_forward(TENSOR(const T, q), TENSOR(const T, k), TENSOR(const T, v), const int q_row,
                              const int kv_row, TENSOR(const int, q_lengths), TENSOR(const int, k_lengths),
                              TENSOR(T, y), TENSOR(float, lse), const int heads, const int lq, const int lk,
                              const float softmax_scale) {
    MATRIX_SCRATCH(scratch);
    LOCAL_TILES(keys, TILE);
    LOCAL_TILES(values, TRANSPOSED_TILE);
    __local float masks[COLS] __attribute__((aligned(64)));
    const int tiles = (lq + ROWS - 1) / ROWS, item = get_group_id(0), own = OWN_ROW;
    const int i0 = item % tiles * ROWS, h = item / tiles % heads, b = item / tiles / heads;
    const int in_tile = min(ROWS, lq - i0), length = LENGTH(k_lengths, b, lk);
    const int n = length > 0 ? clamp(LENGTH(q_lengths, b, lq) - i0, 0, in_tile) : 0, last = n > 0 ? length : 0;
    const float scale = softmax_scale * LOG2E;

    __global const T *const row = Q_AT(q, b, i0 + own, h);
#if DH > 64 /* the sums of wider heads leave no registers for the query, which is read again for each tile */
#define QUERY(k) row_column(row, (k), own < n)
#else
#define QUERY(k) query.at[k]
    row_b query;
    load_row(&query, row, own < n);
#endif
    row_c out;
    softmax_row softmax = {.top = -INFINITY, .sum = 0.0f};
    streams streams = {
        .first = KV_AT(k, b, 0, h), .second = KV_AT(v, b, 0, h), .first_row = kv_row, .second_row = kv_row};
    zero_row(&out);

    if (AHEAD && last > 0) streams_send(&streams, last);
    for (int left = last; left > 0; left -= COLS) {
        if (!AHEAD) streams_send(&streams, left);
        barrier(CLK_LOCAL_MEM_FENCE); /* the previous tiles may be overwritten */
        tile_receive(&streams.first_transit, keys);
        tile_receive_transposed(&streams.second_transit, values);
        if (own < COLS) masks[own] = MASK_OF(own, left);
        barrier(CLK_LOCAL_MEM_FENCE); /* the tiles are complete */
        if (AHEAD && left > COLS) streams_send(&streams, left - COLS);
        scores s;
#define ZERO(eight) s.at[eight] = 0.0f;
        STEPS(COL_EIGHTS, ZERO)
#undef ZERO
#define ADD(k) add_scores(&s, keys + (k)*SLAB, QUERY(k), scratch);
        STEPS(FRAGMENTS, ADD)
#undef ADD
        weights(&s, &softmax, &out, scale, masks);
#define ADD(f)                                                                                                         \
    add_weighted(&out, columns_pack(s.at[2 * (f)], s.at[2 * (f) + 1]), values + (f)*TRANSPOSED_SLAB, scratch);
        STEPS(COLS / 16, ADD)
#undef ADD
    }
    if (own >= in_tile) return;
    store_row(&out, Y_AT(y, b, i0 + own, h), 0, own < n, 1.0f / softmax.sum);
    LSE_AT(lse, b, i0, h)[own] = own < n ? (softmax.top * scale + log2(softmax.sum)) * LN2 : 0.0f;
}
