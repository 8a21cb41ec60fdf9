/* Backward pass of attention with weights in registers (attention_mma_rows.clh); they are recomputed from the
 * log-sum-exps.
 *
 * The dQ kernel holds queries and streams keys; the dK and dV kernel holds keys and streams queries, so that
 * its scores are transposed. Both weights and their gradients are rounded to T for the products that follow.
 * There are two tiles of each streamed tensor: one arrives while the other one is multiplied, and a tile
 * needs one barrier. If there are too few keys to fill the GPU, several groups share a tile of keys and
 * process a part of the queries each, and attention_mma_sum_keys sums the parts, in order. Layout and
 * lengths: attention.clh; delta [B, heads, lq] comes from the dQ kernel, or without one from attention_delta.
 *
 * KEYS_KERNEL: 0 the kernel for dQ, 1 the one for dK and dV. */
#include "attention/attention_mma_rows.clh"

#if ROWS > 4 * COLS
#error the rows pass through the memory of the tiles
#endif
/* The two tiles of a stage: keys (or queries), and values (or output gradients). */
#define TILES(stage) (memory + (stage)*2 * TILE)

/* Two tensors whose same rows are streamed, a tile at a time. */
typedef struct streams {
    __global const T *first, *second; /* the next tile */
    int first_row, second_row;        /* elements from row to row */
    transit first_transit, second_transit;
} streams;

static inline void streams_begin(streams *s, __global const T *first, int first_row, __global const T *second,
                                 int second_row) {
    s->first = first, s->first_row = first_row, s->second = second, s->second_row = second_row;
}
/* n: number of remaining rows. */
static inline void streams_send(streams *s, __local ushort *tiles, int n) {
    tile_send(&s->first_transit, tiles, s->first, s->first_row, n);
    tile_send(&s->second_transit, tiles + TILE, s->second, s->second_row, n);
    s->first += (long)COLS * s->first_row, s->second += (long)COLS * s->second_row;
}
static inline void streams_receive(streams *s, __local ushort *tiles) {
    tile_receive(&s->first_transit, tiles);
    tile_receive(&s->second_transit, tiles + TILE);
}

#if KEYS_KERNEL == 0

#if TILE < ROWS * DELTA_LANES
#error the sums of delta pass through the memory of the second stage
#endif

/* The log-sum-exp in base 2 and delta of each row of this lane. */
typedef struct statistics {
    float log_sum[ROW_BLOCKS][SUM_ROWS], delta[ROW_BLOCKS][SUM_ROWS];
} statistics;

/* One of the lanes that hold a row also writes its delta to global memory. parts: the result of
 * delta_parts. */
static inline void load_statistics(statistics *s, __global const float *lse, __local const float *parts,
                                   __global float *delta, int n) {
    UNROLLED
    for (int block = 0; block < ROW_BLOCKS; ++block) {
        UNROLLED
        for (int row = 0; row < SUM_ROWS; ++row) {
            const int r = OWN_ROW(block, 2 * row);
            s->log_sum[block][row] = r < n ? lse[r] * LOG2E : 0.0f;
            s->delta[block][row] = r < n ? delta_of(parts, r) : 0.0f;
            if (r < n && C_COLUMN(2 * row) == 0) delta[r] = s->delta[block][row];
        }
    }
}

/* Replaces scores by their gradients. dweight: the gradients of the weights. */
static inline void dscores(matrix_c score[ROW_BLOCKS], const matrix_c dweight[ROW_BLOCKS], const statistics *s,
                           float scale) {
    UNROLLED
    for (int block = 0; block < ROW_BLOCKS; ++block) {
        UNROLLED
        for (int i = 0; i < C_COUNT; ++i) {
            const float weight = matrix_exp2(fma(score[block].x[i], scale, -s->log_sum[block][SUM_ROW(i)]));
            score[block].x[i] = weight * (dweight[block].x[i] - s->delta[block][SUM_ROW(i)]);
        }
    }
}

/* A work-group processes a tile of queries; its index is (b * heads + h) * tiles + tile. */
__attribute__((reqd_work_group_size(THREADS, 1, 1))) __kernel void
attention_mma_rows_dq(TENSOR(const T, q), TENSOR(const T, k), TENSOR(const T, v), const int q_row, const int kv_row,
                      TENSOR(const int, q_lengths), TENSOR(const int, k_lengths), TENSOR(const float, lse),
                      TENSOR(const T, y), TENSOR(const T, dy), TENSOR(float, delta), TENSOR(const T, accum),
                      TENSOR(T, dq), const int heads, const int lq, const int lk, const float softmax_scale) {
    MATRIX_SCRATCH(scratch);
    LOCAL_TILES(memory, 4);
    const int tiles = (lq + ROWS - 1) / ROWS, item = get_group_id(0);
    const int i0 = item % tiles * ROWS, h = item / tiles % heads, b = item / tiles / heads;
    const int in_tile = min(ROWS, lq - i0), n = clamp(LENGTH(q_lengths, b, lq) - i0, 0, in_tile);
    const sight seen = sight_of(STARTS(b), i0, n, n > 0 ? LENGTH(k_lengths, b, lk) : 0);
    const first_keys first = find_first_keys(STARTS(b), i0, n);
    const int length = seen.end - seen.begin;
    __local float *const parts = (__local float *)TILES(1); /* free until the first tile is complete */

    rows_a queries, douts;
    rows_c out;
    statistics statistics;
    streams streams = {0};
    streams_begin(&streams, KV_AT(k, b, seen.begin, h / SHARING), kv_row, KV_AT(v, b, seen.begin, h / SHARING), kv_row);
    load_rows_a(&queries, memory, Q_AT(q, b, i0, h), q_row, n);
    load_rows_a(&douts, memory, Y_AT(dy, b, i0, h), heads * DH, n);
    delta_parts(parts, Y_AT(y, b, i0, h), Y_AT(dy, b, i0, h), heads * DH, n, THREADS);
    barrier(CLK_LOCAL_MEM_FENCE);
    load_statistics(&statistics, LSE_AT(lse, b, i0, h), parts, LSE_AT(delta, b, i0, h), n);
    zero_rows(&out);

    streams_send(&streams, memory, length);
    for (int left = length, stage = 0; left > 0; left -= COLS, stage ^= 1) {
        __local ushort *const keys = TILES(stage), *const values = keys + TILE;
        const int j0 = seen.end - left;
        const bool partly = CAUSAL && (j0 < seen.all_begin || j0 + COLS > seen.all_end);
        streams_receive(&streams, keys);
        barrier(CLK_LOCAL_MEM_FENCE); /* this tile is complete; the previous one may be overwritten */
        if (left > COLS) streams_send(&streams, TILES(stage ^ 1), left - COLS);
        UNROLLED
        for (int f = 0; f < COL_FRAGMENTS; ++f) {
            matrix_c score[ROW_BLOCKS], dweight[ROW_BLOCKS];
            multiply_rows(score, &queries, keys + f * 16 * STRIDE, scratch);
            multiply_rows(dweight, &douts, values + f * 16 * STRIDE, scratch);
            if (partly)
                hide_keys(score, &first, i0, j0 + f * 16);
            else if (left < (f + 1) * 16)
                mask_columns(score, f * 16, left);
            dscores(score, dweight, &statistics, softmax_scale * LOG2E);
            add_weighted(&out, score, keys + f * 16 * STRIDE, scratch);
        }
    }
    store_rows(&out, Q_AT(dq, b, i0, h), HAS(accum) ? Q_AT(accum, b, i0, h) : 0, q_row, n, in_tile, softmax_scale);
}

#else

#include "attention/attention_statistics.clh"

/* Transposed scores [16, 16] of keys from `key` on and of n queries from i0 on whose query does not see the key
 * become -INFINITY. */
static inline void hide_queries(matrix_c score[ROW_BLOCKS], __global const int *starts, int key, int i0, int n) {
    UNROLLED
    for (int i = 0; i < C_COUNT; ++i) {
        const int c = C_COLUMN(i), first = c < n ? first_key(starts, i0 + c) : 0;
        UNROLLED
        for (int block = 0; block < ROW_BLOCKS; ++block) {
            const int at = key + OWN_ROW(block, i);
            if (at < first || at > i0 + c) score[block].x[i] = -INFINITY;
        }
    }
}

/* Replaces transposed scores by weights, and dweight by the gradients of the scores. statistics: from this
 * fragment's first query on. */
static inline void weights_and_dscores(matrix_c score[ROW_BLOCKS], matrix_c dweight[ROW_BLOCKS],
                                       __local const float *statistics, float scale) {
    UNROLLED
    for (int pair = 0; pair < C_COUNT / 2; pair += SUM_ROWS) { /* both rows have these columns */
        const int c = C_COLUMN(2 * pair);
        const float2 log_sum = *(__local const float2 *)(statistics + c);
        const float2 delta = *(__local const float2 *)(statistics + COLS + c);
        UNROLLED
        for (int block = 0; block < ROW_BLOCKS; ++block) {
            UNROLLED
            for (int i = 2 * pair; i < 2 * (pair + SUM_ROWS); ++i) {
                const float weight = matrix_exp2(fma(score[block].x[i], scale, -(i % 2 ? log_sum.y : log_sum.x)));
                score[block].x[i] = weight;
                dweight[block].x[i] = weight * (dweight[block].x[i] - (i % 2 ? delta.y : delta.x));
            }
        }
    }
}

/* share[r * row : + DH] = scale * sums for the subgroup's rows r < in_tile; 0 from n on. */
__attribute__((always_inline)) static inline void store_share(const rows_c *sums, __global float *share, int row, int n,
                                                              int in_tile, float scale) {
#define STORE_PAIR(block, fragment, pair, r, d)                                                                        \
    {                                                                                                                  \
        const float low = scale * sums->at[block][fragment].x[2 * (pair)];                                             \
        const float high = scale * sums->at[block][fragment].x[2 * (pair) + 1];                                        \
        *(__global float2 *)(share + (ulong)(r)*row + (d)) = (r) < n ? (float2)(low, high) : (float2)(0.0f);           \
    }
    FOR_PAIRS(in_tile, STORE_PAIR)
#undef STORE_PAIR
}

/* A work-group's share: a tile of keys (in_tile exist, n are valid) and a part of the queries. */
typedef struct own_keys {
    int b, h, part, j0, in_tile, n;
} own_keys;
static inline void own_keys_of(own_keys *own, int group, __global const int *k_lengths, int k_heads, int lk,
                               int parts) {
    const int tiles = (lk + ROWS - 1) / ROWS, item = group / parts;
    own->part = group % parts;
    own->j0 = item % tiles * ROWS;
    own->h = item / tiles % k_heads;
    own->b = item / tiles / k_heads;
    own->in_tile = min(ROWS, lk - own->j0);
    own->n = clamp((k_lengths ? k_lengths[own->b] : lk) - own->j0, 0, own->in_tile);
}

/* The end of the queries in [begin, end) that see one of the keys. last: local memory. */
static inline int end_of_queries(__global const int *starts, const own_keys *own, int begin, int end,
                                 __local int *last) {
    if (WINDOW > 0) end = min(end, own->j0 + own->n + WINDOW - 1);
    if (!CAUSAL || !starts) return end;
    if (get_local_id(0) == 0) *last = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = begin + (int)get_local_id(0); i < end; i += THREADS)
        if (starts[i] < own->j0 + own->n && starts[i] <= i) atomic_max(last, i + 1);
    barrier(CLK_LOCAL_MEM_FENCE);
    return *last;
}

/* A work-group processes a tile of keys and a part of the queries; its index is ((b * heads + h) * tiles +
 * tile) * parts + part. A part has part_queries queries. Writes dK and dV if there is one part, else the
 * part's shares of them, without accums. */
__attribute__((reqd_work_group_size(THREADS, 1, 1))) __kernel void
attention_mma_rows_keys(TENSOR(const T, q), TENSOR(const T, k), TENSOR(const T, v), const int q_row, const int kv_row,
                        TENSOR(const int, q_lengths), TENSOR(const int, k_lengths), TENSOR(const float, lse),
                        TENSOR(const float, delta), TENSOR(const T, dy), TENSOR(const T, accum_k),
                        TENSOR(const T, accum_v), TENSOR(T, dk), TENSOR(T, dv), const int heads, const int lq,
                        const int lk, const float softmax_scale, TENSOR(float, shares), const int parts,
                        const int part_queries) {
    MATRIX_SCRATCH(scratch);
    LOCAL_TILES(memory, 4);
    __local float statistics[2][STATISTICS] __attribute__((aligned(8)));
    __local int last;
    const int lid = get_local_id(0), k_heads = heads / SHARING;
    own_keys own;
    own_keys_of(&own, get_group_id(0), OR_NULL(k_lengths), k_heads, lk, parts);
    const int b = own.b, first = own.h * SHARING, j0 = own.j0, from = own.part * part_queries;
    const int begin = CAUSAL ? max(from, j0) : from;
    const int end = end_of_queries(STARTS(b), &own, begin, min(LENGTH(q_lengths, b, lq), from + part_queries), &last);
    const int length = own.n > 0 ? max(end - begin, 0) : 0;

    rows_a keys, values;
    rows_c sum_k, sum_v;
    streams streams = {0};
    load_rows_a(&keys, memory, KV_AT(k, b, j0, own.h), kv_row, own.n);
    load_rows_a(&values, memory, KV_AT(v, b, j0, own.h), kv_row, own.n);
    zero_rows(&sum_k);
    zero_rows(&sum_v);

    for (int h = first; h < first + SHARING && (!CAUSAL || length > 0); ++h) {
        const ulong statistics_at = ((ulong)b * heads + h) * lq + begin; /* of the first query */
        streams_begin(&streams, Q_AT(q, b, begin, h), q_row, Y_AT(dy, b, begin, h), heads * DH);
        if (h > first) barrier(CLK_LOCAL_MEM_FENCE); /* the last tiles of a head may be overwritten */
        streams_send(&streams, memory, length);
        float statistic = fetch_statistic(AT(lse), AT(delta), statistics_at, length);
        for (int left = length, stage = 0; left > 0; left -= COLS, stage ^= 1) {
            __local ushort *const queries = TILES(stage), *const douts = queries + TILE;
            const bool partly = CAUSAL && (WINDOW > 0 || HAS(q_lengths) || end - left < j0 + ROWS);
            if (lid < STATISTICS) statistics[stage][lid] = statistic;
            streams_receive(&streams, queries);
            barrier(CLK_LOCAL_MEM_FENCE); /* this tile is complete; the previous one may be overwritten */
            if (left > COLS) {
                streams_send(&streams, TILES(stage ^ 1), left - COLS);
                statistic = fetch_statistic(AT(lse), AT(delta), statistics_at + (length - left + COLS), left - COLS);
            }
            UNROLLED
            for (int f = 0; f < COL_FRAGMENTS; ++f) {
                matrix_c score[ROW_BLOCKS], dweight[ROW_BLOCKS];
                multiply_rows(score, &keys, queries + f * 16 * STRIDE, scratch);
                MATRIX_IN_ORDER;
                multiply_rows(dweight, &values, douts + f * 16 * STRIDE, scratch);
                if (partly) hide_queries(score, STARTS(b), j0, end - left + f * 16, left - f * 16);
                weights_and_dscores(score, dweight, statistics[stage] + f * 16, softmax_scale * LOG2E);
                MATRIX_IN_ORDER;
                add_weighted(&sum_v, score, douts + f * 16 * STRIDE, scratch);
                MATRIX_IN_ORDER;
                add_weighted(&sum_k, dweight, queries + f * 16 * STRIDE, scratch);
            }
        }
    }
    own_keys_of(&own, matrix_group_id(), OR_NULL(k_lengths), k_heads, lk, parts);
    if (parts > 1) {
        store_share(&sum_k, SHARE_AT(own.b, own.part, 0, own.j0, own.h), k_heads * DH, own.n, own.in_tile,
                    softmax_scale);
        store_share(&sum_v, SHARE_AT(own.b, own.part, 1, own.j0, own.h), k_heads * DH, own.n, own.in_tile, 1.0f);
        return;
    }
    store_rows(&sum_k, KV_AT(dk, own.b, own.j0, own.h), HAS(accum_k) ? KV_AT(accum_k, own.b, own.j0, own.h) : 0, kv_row,
               own.n, own.in_tile, softmax_scale);
    store_rows(&sum_v, KV_AT(dv, own.b, own.j0, own.h), HAS(accum_v) ? KV_AT(accum_v, own.b, own.j0, own.h) : 0, kv_row,
               own.n, own.in_tile, 1.0f);
}
#endif
