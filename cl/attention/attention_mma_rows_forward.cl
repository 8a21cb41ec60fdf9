/* Forward pass of attention with the softmax in registers (attention_mma_rows.clh).
 *
 * A work-group holds ROWS queries. Keys and values have one tile each: the values arrive while the scores are
 * computed, the next keys while the values are multiplied. Scores and sums are f32; weights are rounded to T
 * for their product with the values. Layout and lengths: attention.clh. */
#include "attention/attention_mma_rows.clh"

/* For each row of this lane: the largest score, the same in base 2 and scaled, and the sum of this lane's
 * weights. */
typedef struct softmax_rows {
    float top[ROW_BLOCKS][SUM_ROWS], bias[ROW_BLOCKS][SUM_ROWS], sum[ROW_BLOCKS][SUM_ROWS];
} softmax_rows;

typedef struct scores {
    matrix_c at[COL_FRAGMENTS][ROW_BLOCKS];
} scores;

/* A weight is 2^(score * scale - bias) in one fused operation, exact up to the rounding of a small result, if
 * the bias is at most this large. With a larger bias the difference is taken before it is scaled. */
#define PRECISE_BIAS 65536.0f

/* Subtracts the largest score of a row from its scores, for rows with a large bias. */
static inline void subtract_top(scores *s, int block, int row, float top) {
    UNROLLED
    for (int f = 0; f < COL_FRAGMENTS; ++f) {
        UNROLLED
        for (int i = 0; i < C_COUNT; ++i)
            if (SUM_ROW(i) == row) s->at[f][block].x[i] -= top;
    }
}

/* Replaces the scores of a row by its weights, and rescales the earlier sums to the new largest score. */
static inline void row_weights(scores *s, softmax_rows *softmax, rows_c *out, int block, int row, float scale,
                               MATRIX_SCRATCH_ARG scratch) {
    float highest = softmax->top[block][row];
    UNROLLED
    for (int f = 0; f < COL_FRAGMENTS; ++f) {
        UNROLLED
        for (int i = 0; i < C_COUNT; ++i)
            if (SUM_ROW(i) == row) highest = fmax(highest, s->at[f][block].x[i]);
    }
    highest = matrix_row_max(highest, scratch);
    float bias = highest * scale;
    const float shrink = matrix_exp2(softmax->bias[block][row] - bias);
    float sum = softmax->sum[block][row] * shrink;
    softmax->top[block][row] = highest, softmax->bias[block][row] = bias;
    if (fabs(bias) > PRECISE_BIAS) subtract_top(s, block, row, highest), bias = 0.0f;
    UNROLLED
    for (int f = 0; f < COL_FRAGMENTS; ++f) {
        UNROLLED
        for (int i = 0; i < C_COUNT; ++i)
            if (SUM_ROW(i) == row) {
                const float weight = matrix_exp2(fma(s->at[f][block].x[i], scale, -bias));
                s->at[f][block].x[i] = weight;
                sum += weight;
            }
    }
    softmax->sum[block][row] = sum;
    UNROLLED
    for (int f = 0; f < FRAGMENTS; ++f) {
        UNROLLED
        for (int i = 0; i < C_COUNT; ++i)
            if (SUM_ROW(i) == row) out->at[block][f].x[i] *= shrink;
    }
}

static inline void weights(scores *s, softmax_rows *softmax, rows_c *out, float scale, MATRIX_SCRATCH_ARG scratch) {
    UNROLLED
    for (int block = 0; block < ROW_BLOCKS; ++block) {
        UNROLLED
        for (int row = 0; row < SUM_ROWS; ++row) row_weights(s, softmax, out, block, row, scale, scratch);
    }
}

/* Divides the rows by the sums of their weights, and writes lse[r] for r < in_tile; 0 from n on. */
static inline void finish_rows(rows_c *out, const softmax_rows *softmax, __global float *lse, int n, int in_tile,
                               MATRIX_SCRATCH_ARG scratch) {
    UNROLLED
    for (int block = 0; block < ROW_BLOCKS; ++block) {
        UNROLLED
        for (int row = 0; row < SUM_ROWS; ++row) {
            const float sum = matrix_row_sum(softmax->sum[block][row], scratch);
            const bool none = CAUSAL && sum == 0.0f; /* padding sees no key */
            const float by = none ? 0.0f : 1.0f / sum;
            const int r = OWN_ROW(block, 2 * row);
            UNROLLED
            for (int f = 0; f < FRAGMENTS; ++f) {
                UNROLLED
                for (int i = 0; i < C_COUNT; ++i)
                    if (SUM_ROW(i) == row) out->at[block][f].x[i] *= by;
            }
            if (C_COLUMN(0) == 0 && r < in_tile)
                lse[r] = r < n && !none ? (softmax->bias[block][row] + log2(sum)) * LN2 : 0.0f;
        }
    }
}

/* A work-group processes a tile of queries; its index is (b * heads + h) * tiles + tile. */
__attribute__((reqd_work_group_size(THREADS, 1, 1))) __kernel void
attention_mma_rows_forward(TENSOR(const T, q), TENSOR(const T, k), TENSOR(const T, v), const int q_row,
                           const int kv_row, TENSOR(const int, q_lengths), TENSOR(const int, k_lengths), TENSOR(T, y),
                           TENSOR(float, lse), const int heads, const int lq, const int lk, const float softmax_scale) {
    MATRIX_SCRATCH(scratch);
    LOCAL_TILES(memory, 2);
#if ROWS > 2 * COLS
#error the queries pass through the memory of the tiles
#endif
    __local ushort *const keys = memory, *const values = memory + TILE;
    const int tiles = (lq + ROWS - 1) / ROWS, item = get_group_id(0);
    const int i0 = item % tiles * ROWS, h = item / tiles % heads, b = item / tiles / heads;
    const int in_tile = min(ROWS, lq - i0), length = LENGTH(k_lengths, b, lk);
    const int n = length > 0 ? clamp(LENGTH(q_lengths, b, lq) - i0, 0, in_tile) : 0, last = n > 0 ? length : 0;
    const float scale = softmax_scale * LOG2E, no_score = CAUSAL ? -1e30f : -INFINITY;
    const sight seen = sight_of(STARTS(b), i0, n, last);
    const first_keys first = find_first_keys(STARTS(b), i0, n);
    __global const T *next_keys = KV_AT(k, b, seen.begin, h / SHARING);
    __global const T *next_values = KV_AT(v, b, seen.begin, h / SHARING);

    rows_a queries;
    rows_c out;
    softmax_rows softmax;
    transit transit = {0};
    load_rows_a(&queries, memory, Q_AT(q, b, i0, h), q_row, n);
    zero_rows(&out);
    UNROLLED
    for (int block = 0; block < ROW_BLOCKS; ++block) {
        UNROLLED
        for (int row = 0; row < SUM_ROWS; ++row)
            softmax.top[block][row] = no_score, softmax.bias[block][row] = no_score * scale,
            softmax.sum[block][row] = 0.0f;
    }

    tile_send(&transit, keys, next_keys, kv_row, seen.end - seen.begin);
    for (int left = seen.end - seen.begin; left > 0; left -= COLS) {
        const int j0 = seen.end - left;
        tile_receive(&transit, keys);
        barrier(CLK_LOCAL_MEM_FENCE); /* the keys are complete; the previous values may be overwritten */
        tile_send(&transit, values, next_values, kv_row, left);
        scores s;
        UNROLLED
        for (int f = 0; f < COL_FRAGMENTS; ++f) multiply_rows(s.at[f], &queries, keys + f * 16 * STRIDE, scratch);
        if (CAUSAL && (j0 < seen.all_begin || j0 + COLS > seen.all_end)) {
            UNROLLED
            for (int f = 0; f < COL_FRAGMENTS; ++f) hide_keys(s.at[f], &first, i0, j0 + f * 16);
        } else if (left < COLS) {
            UNROLLED
            for (int f = 0; f < COL_FRAGMENTS; ++f) mask_columns(s.at[f], f * 16, left);
        }
        tile_receive(&transit, values);
        barrier(CLK_LOCAL_MEM_FENCE); /* the values are complete; the keys may be overwritten */
        next_keys += (long)COLS * kv_row, next_values += (long)COLS * kv_row;
        if (left > COLS) tile_send(&transit, keys, next_keys, kv_row, left - COLS);
        weights(&s, &softmax, &out, scale, scratch);
        UNROLLED
        for (int f = 0; f < COL_FRAGMENTS; ++f) add_weighted(&out, s.at[f], values + f * 16 * STRIDE, scratch);
    }
    finish_rows(&out, &softmax, LSE_AT(lse, b, i0, h), n, in_tile, scratch);
    store_rows(&out, Y_AT(y, b, i0, h), 0, heads * DH, n, in_tile, 1.0f);
}
