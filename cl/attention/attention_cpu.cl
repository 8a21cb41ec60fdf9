/* Attention on a CPU: one work-item with wide vectors and no barriers.
 *
 * Queries are processed in groups of two vectors, one query per vector element, so that the softmax needs no
 * reduction across elements. Keys and values are packed to f32 rows and broadcast element by element, so that
 * every product is one register tile, `multiply`. Log-sum-exps are stored, probabilities never (Dao et al.
 * 2022, FlashAttention).
 *
 * A work-item holds several groups, so that a block of packed keys serves all of them. The backward pass
 * visits the queries of a head (or of a part of them) once: dQ is completed in that pass; dK and dV
 * accumulate in scratch memory, and a last kernel sums them over the parts, in order. Layout and lengths:
 * attention.clh. */
#include "attention/attention_cpu.clh"

/* Maximum number of groups per work-item, limited by private memory; the argument `groups` is the number in
 * use. Rows of keys and values are far apart, so packing them misses the caches; the more groups share a
 * packed block, the lower its cost per group. */
#ifndef FORWARD_GROUPS
#define FORWARD_GROUPS 1
#endif
#ifndef BACKWARD_GROUPS
#define BACKWARD_GROUPS 1
#endif

/* --- forward -------------------------------------------------------------------------------------------- */

/* Raises `top` to the maximum of itself and the scores of m keys from j0 on, rounded up to whole tiles. */
static inline void raise_top(queries *g, const seen_keys *seen, const floatv *packed_k, int j0, int m) {
    floatv top0 = g->top[0], top1 = g->top[1];
    for (int j = 0; j < m; j += TILE) {
        tile score =
            multiply(fill_tile(0.0f, 0.0f), 2, g->query, 2, (const float *)(packed_k + j * ROW_VECTORS), PITCH, 1, DH);
        score = hide(score, seen, j0 + j, -1e30f);
#pragma unroll
        for (int i = 0; i < TILE; ++i) {
            top0 = larger(top0, score.at[i][0]);
            top1 = larger(top1, score.at[i][1]);
        }
    }
    shrink_sums(g, exp2v(g->top[0] - top0), exp2v(g->top[1] - top1));
    g->top[0] = top0, g->top[1] = top1;
}

/* weight [KEYS, QUERIES] = 2^(score - top), limited to 2^most, for m keys from j0 on; 0 for the rest of the last
 * tile. sum = g->sum + the sum of these weights. Returns the largest score - top, at least 0. */
static inline float weigh(const queries *g, const seen_keys *seen, const floatv *packed_k, int j0, int m, float most,
                          floatv *weight, floatv *sum) {
    floatv high0 = 0.0f, high1 = 0.0f, sum0 = g->sum[0], sum1 = g->sum[1];
    for (int j = 0; j < m; j += TILE) {
        tile c = multiply(fill_tile(-g->top[0], -g->top[1]), 2, g->query, 2,
                          (const float *)(packed_k + j * ROW_VECTORS), PITCH, 1, DH);
        c = hide(c, seen, j0 + j, -1e30f);
#pragma unroll
        for (int i = 0; i < TILE; ++i) {
            high0 = larger(high0, c.at[i][0]);
            high1 = larger(high1, c.at[i][1]);
        }
        c = hide(exp2_tile(c, m - j, most), seen, j0 + j, 0.0f);
#pragma unroll
        for (int i = 0; i < TILE; ++i) {
            sum0 += c.at[i][0];
            sum1 += c.at[i][1];
        }
        store_tile(weight + j * 2, c);
    }
    sum[0] = sum0, sum[1] = sum1;
    return maxv(larger(high0, high1));
}

/* Online softmax over m <= KEYS more keys from j0 on. */
static inline void attend(queries *g, const seen_keys *seen, const floatv *packed_k, const floatv *packed_v, int j0,
                          int m) {
    floatv weight[KEYS * 2], sum[2]; /* [KEYS, QUERIES] */
    if (j0 == seen->group.begin) raise_top(g, seen, packed_k, j0, 1);
    if (weigh(g, seen, packed_k, j0, m, ANY, weight, sum) > HEADROOM) {
        raise_top(g, seen, packed_k, j0, m);
        /* scores of 1e9 still differ from `top` by rounding errors */
        weigh(g, seen, packed_k, j0, m, HEADROOM, weight, sum);
    }
    g->sum[0] = sum[0], g->sum[1] = sum[1];
    add_values(g, weight, packed_v, m);
}

/* A work-item processes `groups` groups of queries; its index is (b * heads + h) * blocks + block. */
OUTLINED void attention_block(TENSOR(const T, q), TENSOR(const T, k), TENSOR(const T, v), const int q_row,
                              const int kv_row, TENSOR(const int, q_lengths), TENSOR(const int, k_lengths),
                              TENSOR(T, y), TENSOR(float, lse), const int heads, const int lq, const int lk,
                              const float softmax_scale, const int groups, const int item) {
    const int block = groups * QUERIES, blocks = (lq + block - 1) / block;
    const int i0 = item % blocks * block, h = item / blocks % heads, b = item / blocks / heads;
    const int keys = LENGTH(k_lengths, b, lk), in_block = min(block, lq - i0), y_row = heads * DH;
    const int n = keys > 0 ? clamp(LENGTH(q_lengths, b, lq) - i0, 0, in_block) : 0;

    __global const int *starts = STARTS(b);

    queries group[FORWARD_GROUPS];
    seen_keys seen[FORWARD_GROUPS];
    int begin = keys, end = 0;
    floatv packed_k[KEYS * ROW_VECTORS], packed_v[KEYS * ROW_VECTORS];
    for (int i = 0, g = 0; i < n; i += QUERIES, ++g) {
        begin_queries(group + g, Q_AT(q, b, i0 + i, h), q_row, min(QUERIES, n - i), softmax_scale * LOG2E, -1e30f);
        find_keys(seen + g, starts, i0 + i, min(QUERIES, n - i), keys);
        begin = min(begin, seen[g].group.begin), end = max(end, seen[g].group.end);
    }
    for (int j0 = begin; j0 < end; j0 += KEYS) {
        const int m = min(KEYS, end - j0);
        pack(packed_k, KV_AT(k, b, j0, h / SHARING), kv_row, m, 1.0f);
        pack(packed_v, KV_AT(v, b, j0, h / SHARING), kv_row, m, 1.0f);
        repeat_last(packed_k, m);
        repeat_last(packed_v, m);
        for (int g = 0; g * QUERIES < n; ++g) {
            const int from = max(j0, seen[g].group.begin), to = min(j0 + m, seen[g].group.end);
            const int skipped = (from - j0) * ROW_VECTORS;
            if (from < to) attend(group + g, seen + g, packed_k + skipped, packed_v + skipped, from, to - from);
        }
    }
    for (int i = 0, g = 0; i < n; i += QUERIES, ++g)
        finish_queries(group + g, Y_AT(y, b, i0 + i, h), y_row, LSE_AT(lse, b, i0 + i, h), min(QUERIES, n - i));
    for (int r = CAUSAL && starts ? 0 : n; r < in_block; ++r) {
        if (r < n && starts[i0 + r] <= i0 + r) continue;
        unpack_nothing(Y_AT(y, b, i0 + r, h), 0, 0, 1);
        LSE_AT(lse, b, i0, h)[r] = 0.0f;
    }
}

__kernel void attention_cpu_forward(TENSOR(const T, q), TENSOR(const T, k), TENSOR(const T, v), const int q_row,
                                    const int kv_row, TENSOR(const int, q_lengths), TENSOR(const int, k_lengths),
                                    TENSOR(T, y), TENSOR(float, lse), const int heads, const int lq, const int lk,
                                    const float softmax_scale, const int groups) {
    attention_block(PASS(q), PASS(k), PASS(v), q_row, kv_row, PASS(q_lengths), PASS(k_lengths), PASS(y), PASS(lse),
                    heads, lq, lk, softmax_scale, groups, get_global_id(0));
}

/* --- backward ------------------------------------------------------------------------------------------- */

/* sums[i, :] (+)= sum over r of weight[i, r] * rows[r, :] for TILE keys i: [KEYS, QUERIES] by [QUERIES,
 * PITCH]. */
static inline void add_outer_products(__global float *sums, const floatv *weight, const floatv *rows, bool first) {
    for (int w = 0; w < ROW_VECTORS; w += ROW_WIDTH) {
        __global float *at = sums + w * VEC;
        tile c = fill_tile(0.0f, 0.0f);
        if (!first)
#pragma unroll
            for (int i = 0; i < TILE; ++i) {
                c.at[i][0] = FETCH(at + i * PITCH);
                if (ROW_WIDTH == 2) c.at[i][1] = FETCH(at + i * PITCH + VEC);
            }
        c = multiply(c, ROW_WIDTH, rows + w, ROW_VECTORS, (const float *)weight, QUERIES, 1, QUERIES);
#pragma unroll
        for (int i = 0; i < TILE; ++i) {
            PUT(c.at[i][0], at + i * PITCH);
            if (ROW_WIDTH == 2) PUT(c.at[i][1], at + i * PITCH + VEC);
        }
    }
}

/* Adds the contribution of m <= KEYS keys from j0 on to dquery, and that of the queries to dk and dv
 * [KEYS, PITCH], in whole tiles. first: dk and dv are not initialized yet and are overwritten. */
static inline void differentiate(known *g, const seen_keys *seen, const floatv *packed_k, const floatv *packed_v,
                                 __global float *dk, __global float *dv, int j0, int m, bool first) {
    floatv weight[KEYS * 2], dscore[KEYS * 2]; /* [KEYS, QUERIES] */
    for (int j = 0; j < m; j += TILE) {
        tile p = multiply(fill_tile(-g->logs[0], -g->logs[1]), 2, g->query, 2,
                          (const float *)(packed_k + j * ROW_VECTORS), PITCH, 1, DH);
        p = exp2_tile(p, m - j, 1.0f); /* weights exceed 1 only by rounding */
        store_tile(weight + j * 2, hide(p, seen, j0 + j, 0.0f));
    }
    for (int j = 0; j < m; j += TILE) {
        tile ds = multiply(fill_tile(-g->delta[0], -g->delta[1]), 2, g->dout, 2,
                           (const float *)(packed_v + j * ROW_VECTORS), PITCH, 1, DH);
#pragma unroll
        for (int i = 0; i < TILE; ++i) {
            ds.at[i][0] *= weight[(j + i) * 2];
            ds.at[i][1] *= weight[(j + i) * 2 + 1];
        }
        store_tile(dscore + j * 2, ds);
    }
    for (int d = 0; d < DEPTH; d += TILE) {
        tile c = load_tile(g->dquery + d * 2);
        c = multiply(c, 2, dscore, 2, (const float *)packed_k + d, 1, PITCH, IN_FOURS(m));
        store_tile(g->dquery + d * 2, c);
    }
    for (int j = 0; j < m; j += TILE) {
        add_outer_products(dv + j * PITCH, weight + j * 2, g->dy, first);
        add_outer_products(dk + j * PITCH, dscore + j * 2, g->q, first);
    }
}

/* Start of dK and of dV of one part: consecutive blocks of [rows, PITCH] floats. */
#define SCRATCH_K(part) (AT(scratch) + (ulong)(part)*2 * rows * PITCH)
#define SCRATCH_V(part) (SCRATCH_K(part) + (ulong)rows * PITCH)

/* A work-item processes a part of a head's queries; its index is (b * heads + h) * parts + part. A part has
 * part_queries queries, a multiple of groups * QUERIES. Writes dQ (if requested), and the part's sums of dK
 * and dV to scratch, f32 [B, heads, parts, 2, rows, PITCH], where rows is lk rounded up to whole tiles. A
 * part without queries does not write to its scratch. */
OUTLINED void attention_part(TENSOR(const T, q), TENSOR(const T, k), TENSOR(const T, v), const int q_row,
                             const int kv_row, TENSOR(const int, q_lengths), TENSOR(const int, k_lengths),
                             TENSOR(const T, y), TENSOR(const float, lse), TENSOR(const T, dy), TENSOR(const T, accum),
                             TENSOR(T, dq), TENSOR(float, scratch), const int heads, const int lq, const int lk,
                             const float softmax_scale, const int parts, const int part_queries, const int groups,
                             const int rows, const int item) {
    const int part = item % parts, h = item / parts % heads, b = item / parts / heads;
    const int keys = LENGTH(k_lengths, b, lk), y_row = heads * DH, block = groups * QUERIES;
    const int start = part * part_queries, end = min(start + part_queries, lq);
    const int filled = keys > 0 ? clamp(LENGTH(q_lengths, b, lq), start, max(start, end)) : start;
    __global const int *starts = STARTS(b);

    for (int r = 0; RANGED && r < 2 * rows; ++r)
        for (int w = 0; w < ROW_VECTORS; ++w) PUT((floatv)(0.0f), SCRATCH_K(item) + (ulong)r * PITCH + w * VEC);
    for (int i0 = start; i0 < filled; i0 += block) {
        known group[BACKWARD_GROUPS];
        seen_keys seen[BACKWARD_GROUPS];
        int first_key = keys, end_key = 0;
        floatv packed_k[KEYS * ROW_VECTORS], packed_v[KEYS * ROW_VECTORS];
        const int n = min(block, filled - i0);
        for (int i = 0, g = 0; i < n; i += QUERIES, ++g) {
            know(group + g, Q_AT(q, b, i0 + i, h), q_row, Y_AT(y, b, i0 + i, h), Y_AT(dy, b, i0 + i, h), y_row,
                 LSE_AT(lse, b, i0 + i, h), min(QUERIES, n - i), softmax_scale);
            find_keys(seen + g, starts, i0 + i, min(QUERIES, n - i), keys);
            first_key = min(first_key, seen[g].group.begin), end_key = max(end_key, seen[g].group.end);
        }
        for (int j0 = first_key; j0 < end_key; j0 += KEYS) {
            const int m = min(KEYS, end_key - j0);
            pack(packed_k, KV_AT(k, b, j0, h / SHARING), kv_row, m, 1.0f);
            pack(packed_v, KV_AT(v, b, j0, h / SHARING), kv_row, m, 1.0f);
            repeat_last(packed_k, m);
            repeat_last(packed_v, m);
            for (int g = 0; g * QUERIES < n; ++g) {
                const int from = max(j0, seen[g].group.begin), to = min(j0 + m, seen[g].group.end);
                const int skipped = (from - j0) * ROW_VECTORS;
                if (from < to)
                    differentiate(group + g, seen + g, packed_k + skipped, packed_v + skipped,
                                  SCRATCH_K(item) + from * PITCH, SCRATCH_V(item) + from * PITCH, from, to - from,
                                  !RANGED && i0 == start && g == 0);
            }
        }
        for (int i = 0, g = 0; i < n && HAS(dq); i += QUERIES, ++g) {
            floatv packed[QUERIES * ROW_VECTORS];
            rows_of(packed, group[g].dquery, softmax_scale);
            unpack(Q_AT(dq, b, i0 + i, h), HAS(accum) ? Q_AT(accum, b, i0 + i, h) : 0, q_row, packed,
                   min(QUERIES, n - i));
        }
    }
    if (HAS(dq))
        unpack_nothing(Q_AT(dq, b, filled, h), HAS(accum) ? Q_AT(accum, b, filled, h) : 0, q_row, end - filled);
}

__kernel void attention_cpu_backward(TENSOR(const T, q), TENSOR(const T, k), TENSOR(const T, v), const int q_row,
                                     const int kv_row, TENSOR(const int, q_lengths), TENSOR(const int, k_lengths),
                                     TENSOR(const T, y), TENSOR(const float, lse), TENSOR(const T, dy),
                                     TENSOR(const T, accum), TENSOR(T, dq), TENSOR(float, scratch), const int heads,
                                     const int lq, const int lk, const float softmax_scale, const int parts,
                                     const int part_queries, const int groups, const int rows) {
    attention_part(PASS(q), PASS(k), PASS(v), q_row, kv_row, PASS(q_lengths), PASS(k_lengths), PASS(y), PASS(lse),
                   PASS(dy), PASS(accum), PASS(dq), PASS(scratch), heads, lq, lk, softmax_scale, parts, part_queries,
                   groups, rows, get_global_id(0));
}

/* dK and dV = accum + the sum of the parts, in order, for key rows b * lk + j. */
__kernel void attention_cpu_keys(TENSOR(const float, scratch), TENSOR(const int, q_lengths),
                                 TENSOR(const int, k_lengths), TENSOR(const T, accum_k), TENSOR(const T, accum_v),
                                 TENSOR(T, dk), TENSOR(T, dv), const int kv_row, const int batch, const int heads,
                                 const int lq, const int lk, const int parts, const int part_queries, const int rows) {
    const int k_heads = heads / SHARING;
    for (int at = get_global_id(0); at < batch * lk; at += get_global_size(0)) {
        const int b = at / lk, j = at % lk;
        const int queries = j < LENGTH(k_lengths, b, lk) ? LENGTH(q_lengths, b, lq) : 0;
        const int used = (queries + part_queries - 1) / part_queries; /* parts that have queries */
        for (int h = 0; h < k_heads; ++h)
            for (int d = 0; d < DH; d += CHUNK) {
                chunk sum_k = 0.0f, sum_v = 0.0f;
                if (HAS(accum_k)) sum_k = LOADC(KV_AT(accum_k, b, j, h), d), sum_v = LOADC(KV_AT(accum_v, b, j, h), d);
                for (int p = 0; p < used * SHARING; ++p) {
                    const int part = (b * heads + h * SHARING + p / used) * parts + p % used;
                    sum_k += LOADFC(SCRATCH_K(part), j * PITCH + d);
                    sum_v += LOADFC(SCRATCH_V(part), j * PITCH + d);
                }
                STOREC(sum_k, KV_AT(dk, b, j, h), d);
                STOREC(sum_v, KV_AT(dv, b, j, h), d);
            }
    }
}
