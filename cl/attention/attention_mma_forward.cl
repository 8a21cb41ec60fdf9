/* Forward pass of attention on matrix units (Dao et al. 2022, FlashAttention).
 *
 * A work-group holds ROWS queries; keys and values stream through local memory, COLS at a time. Scores and
 * sums are f32; weights are rounded to T for their product with the values. Layout and lengths:
 * attention.clh; tiles: attention_mma.clh. */
#define SUM_KINDS 1
#include "attention/attention_mma.clh"

/* The softmax is computed by rows, with PER_ROW adjacent work-items per row. */
#define PER_ROW (THREADS / ROWS)
#define SCORE_STRIDE (COLS + 4)
#define VEC4S (COLS / 4)

/* Scores of the subgroup's rows and fragment `fragment`. A subgroup without a fragment repeats the last one
 * and does not store it. */
static inline void score_fragment(__local float *scores, __local const ushort *queries, __local const ushort *keys,
                                  int fragment, MATRIX_SCRATCH_ARG scratch) {
    const matrix_c s =
        multiply(queries + SUBGROUP_ROW * STRIDE, keys + min(fragment, SCORE_FRAGMENTS - 1) * 16 * STRIDE, scratch);
    if (fragment >= SCORE_FRAGMENTS) return;
#define PUT(i) scores[(SUBGROUP_ROW + C_ROW(i)) * SCORE_STRIDE + fragment * 16 + C_COLUMN(i)] = s.x[i];
    ELEMENTS(PUT)
#undef PUT
}

static inline void scale_fragment(matrix_c *c, __local const float *by) {
#define SCALE(i) c->x[i] *= by[SUBGROUP_ROW + C_ROW(i)];
    ELEMENTS(SCALE)
#undef SCALE
}

/* Multiplies row r of the sums by by[r]. */
static inline void scale_sums(sums *o, __local const float *by) {
#define SCALE(f) scale_fragment(&o->at[f], by);
    STEPS(OWN_FRAGMENTS, SCALE)
#undef SCALE
}

/* A vec4 of scores in base 2; those of columns m and later, which are in the last tile only, are -INFINITY. */
static inline float4 load_scores(__local const float *scores, int vec4, int m, float softmax_scale) {
    const float4 s = *(__local const float4 *)(scores + vec4 * 4) * softmax_scale;
    const int left = m - vec4 * 4;
    if (m == COLS) return s;
    return (float4)(left > 0 ? s.x : -INFINITY, left > 1 ? s.y : -INFINITY, left > 2 ? s.z : -INFINITY,
                    left > 3 ? s.w : -INFINITY);
}

/* A work-group processes a tile of queries; its index is (b * heads + h) * tiles + tile. */
MANY_REGISTERS __attribute__((reqd_work_group_size(THREADS, 1, 1))) __kernel void
attention_mma_forward(TENSOR(const T, q), TENSOR(const T, k), TENSOR(const T, v), const int q_row, const int kv_row,
                      TENSOR(const int, q_lengths), TENSOR(const int, k_lengths), TENSOR(T, y), TENSOR(float, lse),
                      const int heads, const int lq, const int lk, const float softmax_scale) {
    MATRIX_SCRATCH(scratch);
    LOCAL_ROWS(queries, ROWS, STRIDE);
    LOCAL_ROWS(streamed, COLS, STRIDE);
    LOCAL_ROWS(weight, ROWS, WEIGHT_STRIDE);
    __local float scores[ROWS * SCORE_STRIDE] __attribute__((aligned(16)));
    __local float shared[ROWS * PER_ROW]; /* one float per work-item of a row */
    __local float of_row[ROWS];
    const int tiles = (lq + ROWS - 1) / ROWS, item = get_group_id(0);
    const int i0 = item % tiles * ROWS, h = item / tiles % heads, b = item / tiles / heads;
    const int in_tile = min(ROWS, lq - i0), length = LENGTH(k_lengths, b, lk);
    const int n = length > 0 ? clamp(LENGTH(q_lengths, b, lq) - i0, 0, in_tile) : 0, keys = n > 0 ? length : 0;
    const int own = get_local_id(0) / PER_ROW, part = get_local_id(0) % PER_ROW;

    sums out;
    zero_sums(&out);
    /* maximum of the row's scores in base 2; sum over this work-item's columns */
    float top = -1e30f, sum = 0.0f;
    copy_rows(queries, ROWS, Q_AT(q, b, i0, h), q_row, n);

    for (int j0 = 0; j0 < keys; j0 += COLS) {
        const int m = min(COLS, keys - j0);
        barrier(CLK_LOCAL_MEM_FENCE); /* the previous values may be overwritten */
        copy_rows(streamed, COLS, KV_AT(k, b, j0, h), kv_row, m);
        barrier(CLK_LOCAL_MEM_FENCE);
#define SCORE(f) score_fragment(scores, queries, streamed, SUBGROUP_COLUMN + (f)*COLUMN_SUBGROUPS, scratch);
        STEPS(OWN_SCORES, SCORE)
#undef SCORE
        barrier(CLK_LOCAL_MEM_FENCE); /* the keys may be overwritten */
        copy_rows(streamed, COLS, KV_AT(v, b, j0, h), kv_row, m);
        __local float *row = scores + own * SCORE_STRIDE;
        float highest = -INFINITY;
        for (int c = part; c < VEC4S; c += PER_ROW) {
            const float4 s = load_scores(row, c, m, softmax_scale * LOG2E);
            highest = fmax(highest, fmax(fmax(s.x, s.y), fmax(s.z, s.w)));
        }
        shared[own * PER_ROW + part] = highest;
        barrier(CLK_LOCAL_MEM_FENCE); /* the maxima of a row are complete */
        float higher = top;
        for (int c = 0; c < PER_ROW; ++c) higher = fmax(higher, shared[own * PER_ROW + c]);
        const float shrink = WEIGHT_EXP2(top - higher);
        top = higher;
        sum *= shrink;
        for (int c = part; c < VEC4S; c += PER_ROW) {
            const float4 p = weight_exp2_4(load_scores(row, c, m, softmax_scale * LOG2E) - higher);
            sum += (p.x + p.z) + (p.y + p.w);
            store_weight(weight, own, c * 4, p.x);
            store_weight(weight, own, c * 4 + 1, p.y);
            store_weight(weight, own, c * 4 + 2, p.z);
            store_weight(weight, own, c * 4 + 3, p.w);
        }
        if (part == 0) of_row[own] = shrink;
        barrier(CLK_LOCAL_MEM_FENCE);
        scale_sums(&out, of_row);
        add_weighted(&out, weight + SUBGROUP_ROW * WEIGHT_STRIDE, streamed, SUBGROUP_COLUMN, scratch);
    }

    shared[own * PER_ROW + part] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (part == 0) {
        float whole = 0.0f;
        for (int c = 0; c < PER_ROW; ++c) whole += shared[own * PER_ROW + c];
        of_row[own] = own < n ? 1.0f / whole : 0.0f;
        if (own < in_tile) LSE_AT(lse, b, i0, h)[own] = own < n ? (top + log2(whole)) * LN2 : 0.0f;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    scale_sums(&out, of_row);
    store_sums(&out, Y_AT(y, b, i0, h), 0, heads * DH, in_tile, SUBGROUP_COLUMN, 1.0f);
}
