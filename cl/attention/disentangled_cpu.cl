/* Disentangled attention on a CPU: one work-item with wide vectors and no barriers.
 *
 * As in attention_cpu.cl, a group has two vectors of queries, one query per vector element. The scores of a
 * tile of keys read the tables by distance transposed, `columns` f32 [2, heads, DH, column_pitch]: for one
 * key and one element of a head, the distances of consecutive queries are consecutive.
 *
 * Sums over the pairs of a distance are matrix products whose left operand is dscore [KEYS, QUERIES] read
 * along its diagonals: `multiply` takes its scalars with any two steps. Zeros around dscore pad tiles of
 * diagonals that extend past the block. Layouts: disentangled.clh. */
#include "attention/attention_cpu.clh"
#include "attention/disentangled.clh"

#define COLUMNS_AT(which, h) (AT(columns) + ((ulong)(which)*heads + (h)) * DH * column_pitch)

/* columns = the transpose of pos_k, and of pos_q times query_scale, by distance; 0 if that tensor is absent.
 * A work-item transposes two vectors of distances of all heads. */
__kernel void disentangled_cpu_columns(TENSOR(const T, pos_k), TENSOR(const T, pos_q), TENSOR(float, columns),
                                       const int heads, const int lq, const int front, const int column_pitch,
                                       const int span, const int mid, const float slope, const float shift,
                                       const float query_scale) {
    const int blocks = (column_pitch + QUERIES - 1) / QUERIES;
    for (int at = get_global_id(0); at < 2 * blocks; at += get_global_size(0)) {
        const int row = at % blocks * QUERIES, which = at / blocks;
        __global const T *from = which == 0 ? OR_NULL(pos_k) : OR_NULL(pos_q);
        floatv packed[QUERIES * ROW_VECTORS], transposed[PITCH * 2];
        int bucket[QUERIES];
        for (int r = 0; r < QUERIES; ++r) bucket[r] = bucket_of(row + r - front - (lq - 1), span, mid, slope, shift);
        clear(packed, QUERIES * ROW_VECTORS);
        for (int h = 0; h < heads; ++h) {
            for (int r = 0; r < QUERIES && from; ++r)
                pack(packed + r * ROW_VECTORS, from + ((ulong)bucket[r] * heads + h) * DH, 0, 1, 1.0f);
            columns_of(transposed, packed, which == 0 ? 1.0f : query_scale);
            for (int d = 0; d < DH; ++d) {
                __global float *to = COLUMNS_AT(which, h) + (ulong)d * column_pitch + row;
                PUT(transposed[d * 2], to);
                if (row + VEC < column_pitch) PUT(transposed[d * 2 + 1], to + VEC);
            }
        }
    }
}

/* Adds the scores of TILE keys and QUERIES queries to c; a, b: columns of A and of C for the first key and query. */
static inline tile add_scores(tile c, const floatv *query, const floatv *packed_k, __global const float *a,
                              __global const float *b, int column_pitch) {
    const float *keys = (const float *)packed_k;
    for (int d = 0; d < DH; ++d, a += column_pitch, b += column_pitch) {
        const floatv q0 = query[d * 2], q1 = query[d * 2 + 1];
#pragma unroll
        for (int i = 0; i < TILE; ++i) {
            const floatv k = (floatv)(keys[i * PITCH + d]);
            c.at[i][0] = fma(q0, k + FETCH(a - i), c.at[i][0]);
            c.at[i][1] = fma(q1, k + FETCH(a - i + VEC), c.at[i][1]);
            c.at[i][0] = fma(k, FETCH(b - i), c.at[i][0]);
            c.at[i][1] = fma(k, FETCH(b - i + VEC), c.at[i][1]);
        }
    }
    return c;
}

/* --- forward -------------------------------------------------------------------------------------------- */

/* Raises `top` by high, and lowers the scores of m keys relative to it. */
static inline void raise_top(queries *g, floatv *score, int m, const floatv *high, bool first) {
    for (int j = 0; j < m; ++j) score[j * 2] -= high[0], score[j * 2 + 1] -= high[1];
    g->top[0] += high[0], g->top[1] += high[1];
    if (first) return; /* out and sum are 0, and high may be negative */
    shrink_sums(g, exp2v(-high[0]), exp2v(-high[1]));
}

/* Online softmax over m <= KEYS more keys. */
static inline void attend(queries *g, const floatv *packed_k, const floatv *packed_v, __global const float *a,
                          __global const float *b, int column_pitch, int m, bool first) {
    floatv weight[KEYS * 2], high[2]; /* [KEYS, QUERIES] */
    high[0] = high[1] = first ? -INFINITY : 0.0f;
    for (int j = 0; j < m; j += TILE) {
        const tile c = add_scores(fill_tile(-g->top[0], -g->top[1]), g->query, packed_k + j * ROW_VECTORS, a - j, b - j,
                                  column_pitch);
#pragma unroll
        for (int i = 0; i < TILE; ++i)
            if (j + i < m) high[0] = larger(high[0], c.at[i][0]), high[1] = larger(high[1], c.at[i][1]);
        store_tile(weight + j * 2, c);
    }
    if (first || maxv(larger(high[0], high[1])) > HEADROOM) raise_top(g, weight, m, high, first);
    floatv sum0 = g->sum[0], sum1 = g->sum[1];
    for (int j = 0; j < m; j += TILE) {
        const tile c = exp2_tile(load_tile(weight + j * 2), m - j, HEADROOM);
#pragma unroll
        for (int i = 0; i < TILE; ++i) {
            sum0 += c.at[i][0];
            sum1 += c.at[i][1];
        }
        store_tile(weight + j * 2, c);
    }
    g->sum[0] = sum0, g->sum[1] = sum1;
    add_values(g, weight, packed_v, m);
}

/* A work-item processes one group of queries; its index is (b * heads + h) * groups + group. */
OUTLINED void disentangled_block(TENSOR(const T, q), TENSOR(const T, k), TENSOR(const T, v), const int q_row,
                                 TENSOR(const int, lengths), TENSOR(const float, columns), TENSOR(T, y),
                                 TENSOR(float, lse), const int heads, const int lq, const float softmax_scale,
                                 const int front, const int column_pitch, const int item) {
    const int groups = (lq + QUERIES - 1) / QUERIES, lk = lq, kv_row = q_row;
    const int i0 = item % groups * QUERIES, h = item / groups % heads, b = item / groups / heads;
    const int keys = LENGTH(lengths, b, lq), in_group = min(QUERIES, lq - i0), n = clamp(keys - i0, 0, in_group);
    const int y_row = heads * DH;

    queries g;
    floatv packed_k[KEYS * ROW_VECTORS], packed_v[KEYS * ROW_VECTORS];
    if (n > 0) begin_queries(&g, Q_AT(q, b, i0, h), q_row, n, softmax_scale * LOG2E, 0.0f);
    for (int j0 = 0; j0 < (n > 0 ? keys : 0); j0 += KEYS) {
        const int m = min(KEYS, keys - j0);
        pack(packed_k, KV_AT(k, b, j0, h), kv_row, m, 1.0f);
        pack(packed_v, KV_AT(v, b, j0, h), kv_row, m, 1.0f);
        repeat_last(packed_k, m);
        repeat_last(packed_v, m);
        attend(&g, packed_k, packed_v, COLUMNS_AT(0, h) + ROW_OF(i0 - j0), COLUMNS_AT(1, h) + ROW_OF(i0 - j0),
               column_pitch, m, j0 == 0);
    }
    if (n > 0) finish_queries(&g, Y_AT(y, b, i0, h), y_row, LSE_AT(lse, b, i0, h), n);
    unpack_nothing(Y_AT(y, b, i0 + n, h), 0, y_row, in_group - n);
    for (int r = n; r < in_group; ++r) LSE_AT(lse, b, i0, h)[r] = 0.0f;
}

__kernel void disentangled_cpu_forward(TENSOR(const T, q), TENSOR(const T, k), TENSOR(const T, v), const int q_row,
                                       TENSOR(const int, lengths), TENSOR(const float, columns), TENSOR(T, y),
                                       TENSOR(float, lse), const int heads, const int lq, const float softmax_scale,
                                       const int front, const int column_pitch) {
    disentangled_block(PASS(q), PASS(k), PASS(v), q_row, PASS(lengths), PASS(columns), PASS(y), PASS(lse), heads, lq,
                       softmax_scale, front, column_pitch, get_global_id(0));
}

/* --- backward ------------------------------------------------------------------------------------------- */

/* dscore [KEYS, QUERIES] with TILE rows of zeros before and after, and at least TILE zeros between rows. */
#define SCORE_VECTORS 3
#define SCORE_PITCH (SCORE_VECTORS * VEC)
#if TILE > VEC
#error the zeros between rows of dscore must cover a tile
#endif

/* A block of keys with everything that the gradients of its pairs read. */
typedef struct block {
    floatv k[KEYS * ROW_VECTORS], v[KEYS * ROW_VECTORS];
    /* Rows of the tables for the distances of the block, the lowest, - (m rounded up to tiles), first. */
    floatv a[(QUERIES + KEYS) * ROW_VECTORS], c[(QUERIES + KEYS) * ROW_VECTORS];
    floatv weight[KEYS * 2], padded[(KEYS + 2 * TILE) * SCORE_VECTORS];
} block;

/* sums[i, :] += sum over k < depth of scalars[i * row + k * step] * rows[k, :] for TILE rows i; [TILE, PITCH]. */
static inline void add_product(floatv *sums, const floatv *rows, const float *scalars, int row, int step, int depth) {
    for (int w = 0; w < ROW_VECTORS; w += ROW_WIDTH) {
        tile c = fill_tile(0.0f, 0.0f);
#pragma unroll
        for (int i = 0; i < TILE; ++i) {
            c.at[i][0] = sums[i * ROW_VECTORS + w];
            if (ROW_WIDTH == 2) c.at[i][1] = sums[i * ROW_VECTORS + w + 1];
        }
        c = multiply(c, ROW_WIDTH, rows + w, ROW_VECTORS, scalars, row, step, depth);
#pragma unroll
        for (int i = 0; i < TILE; ++i) {
            sums[i * ROW_VECTORS + w] = c.at[i][0];
            if (ROW_WIDTH == 2) sums[i * ROW_VECTORS + w + 1] = c.at[i][1];
        }
    }
}
/* The same for sums in global memory. */
static inline void add_outer_products(__global float *sums, const floatv *rows, const float *scalars, int row, int step,
                                      int depth) {
    for (int w = 0; w < ROW_VECTORS; w += ROW_WIDTH) {
        __global float *at = sums + w * VEC;
        tile c = fill_tile(0.0f, 0.0f);
#pragma unroll
        for (int i = 0; i < TILE; ++i) {
            c.at[i][0] = FETCH(at + i * PITCH);
            if (ROW_WIDTH == 2) c.at[i][1] = FETCH(at + i * PITCH + VEC);
        }
        c = multiply(c, ROW_WIDTH, rows + w, ROW_VECTORS, scalars, row, step, depth);
#pragma unroll
        for (int i = 0; i < TILE; ++i) {
            PUT(c.at[i][0], at + i * PITCH);
            if (ROW_WIDTH == 2) PUT(c.at[i][1], at + i * PITCH + VEC);
        }
    }
}

static inline void fetch_rows(floatv *to, __global const float *from, int n) {
    for (int i = 0; i < n * ROW_VECTORS; ++i) to[i] = FETCH(from + i * VEC);
}

/* weight and dscore of the pairs of a group and a block of m keys; 0 past m. */
static inline void differentiate(const known *g, block *s, __global const float *a, __global const float *c,
                                 int column_pitch, int m) {
    floatv *dscore = s->padded + TILE * SCORE_VECTORS;
    for (int j = 0; j < m; j += TILE) {
        tile p = add_scores(fill_tile(-g->logs[0], -g->logs[1]), g->query, s->k + j * ROW_VECTORS, a - j, c - j,
                            column_pitch);
        p = exp2_tile(p, m - j, 1.0f); /* weights exceed 1 only by rounding */
        store_tile(s->weight + j * 2, p);
        const tile ds = multiply(fill_tile(-g->delta[0], -g->delta[1]), 2, g->dout, 2,
                                 (const float *)(s->v + j * ROW_VECTORS), PITCH, 1, DH);
#pragma unroll
        for (int i = 0; i < TILE; ++i) {
            dscore[(j + i) * SCORE_VECTORS] = ds.at[i][0] * p.at[i][0];
            dscore[(j + i) * SCORE_VECTORS + 1] = ds.at[i][1] * p.at[i][1];
        }
    }
    clear(dscore + (m + TILE - 1) / TILE * TILE * SCORE_VECTORS, TILE * SCORE_VECTORS);
}

/* Adds the pairs of the block to dq [QUERIES, PITCH], and to dk and dv [m, PITCH] of its keys; `whole` is m
 * rounded up to tiles. */
static inline void add_to_rows(const known *g, const block *s, floatv *dq, __global float *dk, __global float *dv,
                               int m, int whole) {
    const float *dscore = (const float *)(s->padded + TILE * SCORE_VECTORS);
    for (int i = 0; i < QUERIES; i += TILE) {
        add_product(dq + i * ROW_VECTORS, s->k, dscore + i, 1, SCORE_PITCH, IN_FOURS(m));
        add_product(dq + i * ROW_VECTORS, s->a + (i + 1) * ROW_VECTORS, dscore + (whole - 1) * SCORE_PITCH + i,
                    SCORE_PITCH + 1, -SCORE_PITCH, whole + TILE - 1);
    }
    for (int j = 0; j < whole; j += TILE) {
        add_outer_products(dk + j * PITCH, g->q, dscore + j * SCORE_PITCH, SCORE_PITCH, 1, QUERIES);
        add_outer_products(dk + j * PITCH, s->c + (whole - j - TILE + 1) * ROW_VECTORS,
                           dscore + j * SCORE_PITCH - (TILE - 1), SCORE_PITCH + 1, 1, QUERIES + TILE - 1);
        add_outer_products(dv + j * PITCH, g->dy, (const float *)(s->weight + j * 2), QUERIES, 1, QUERIES);
    }
}

/* Adds the pairs of the block to the gradients of the tables; da, dc: rows of the lowest distance, -whole. */
static inline void add_to_tables(const known *g, const block *s, __global float *da, __global float *dc, int whole) {
    const float *dscore = (const float *)(s->padded + TILE * SCORE_VECTORS);
    for (int t = -whole; t < QUERIES; t += TILE) {
        const int i = max(0, t), last_i = min(QUERIES, whole + t + TILE - 1);
        const int j = max(0, 1 - t - TILE), last_j = min(whole, QUERIES - t);
        add_outer_products(da + (t + whole) * PITCH, g->q + i * ROW_VECTORS, dscore + (i - t) * SCORE_PITCH + i,
                           -SCORE_PITCH, SCORE_PITCH + 1, last_i - i);
        add_outer_products(dc + (t + whole) * PITCH, s->k + j * ROW_VECTORS, dscore + j * SCORE_PITCH + j + t, 1,
                           SCORE_PITCH + 1, last_j - j);
    }
}

static inline void clear_floats(__global float *x, ulong vectors) {
    for (ulong i = 0; i < vectors; ++i) PUT((floatv)(0.0f), x + i * VEC);
}

/* rows[r * row : + DH] = accum (if not NULL) + from[r, :] for r < n, accum or 0 for n <= r < all. */
static inline void write_rows(__global T *rows, __global const T *accum, int row, __global const float *from, int n,
                              int all) {
    for (int r = 0; r < n; ++r) {
        floatv packed[ROW_VECTORS];
        fetch_rows(packed, from + r * PITCH, 1);
        unpack(rows + (ulong)r * row, accum ? accum + (ulong)r * row : 0, 0, packed, 1);
    }
    unpack_nothing(rows + (ulong)n * row, accum ? accum + (ulong)n * row : 0, row, all - n);
}

/* A work-item processes one head of part_samples samples, one after the other; its index is part * heads + h.
 * Writes dq, dk and dv (if requested), and the part's sums of the gradients of the tables, f32 [parts, 2,
 * heads, rows, pitch], without softmax_scale for the position queries. scratch f32 [items, 2, key_rows,
 * PITCH]: dk and dv of a sample. The rows of C in `tables` are multiplied by softmax_scale. */
OUTLINED void disentangled_part(TENSOR(const T, q), TENSOR(const T, k), TENSOR(const T, v), const int q_row,
                                TENSOR(const int, lengths), TENSOR(const float, columns), TENSOR(const float, tables),
                                TENSOR(const T, y), TENSOR(const float, lse), TENSOR(const T, dy),
                                TENSOR(const T, accum_q), TENSOR(T, dq), TENSOR(const T, accum_k),
                                TENSOR(const T, accum_v), TENSOR(T, dk), TENSOR(T, dv), TENSOR(float, dtables),
                                TENSOR(float, scratch), const int batch, const int heads, const int lq,
                                const float softmax_scale, const int front, const int rows, const int pitch,
                                const int column_pitch, const int key_rows, const int part_samples, const int item) {
    const int h = item % heads, part = item / heads, y_row = heads * DH;
    const int lk = lq, kv_row = q_row;
    __global float *scratch_k = AT(scratch) + (ulong)item * 2 * key_rows * PITCH;
    __global float *scratch_v = scratch_k + (ulong)key_rows * PITCH;
    __global float *da = TABLE_AT(dtables, 2 * part, h), *dc = TABLE_AT(dtables, 2 * part + 1, h);
    known g;
    block s;
    clear(s.padded, (KEYS + 2 * TILE) * SCORE_VECTORS);
    clear_floats(da, (ulong)rows * ROW_VECTORS);
    clear_floats(dc, (ulong)rows * ROW_VECTORS);

    for (int b = part * part_samples; b < min(batch, (part + 1) * part_samples); ++b) {
        const int length = LENGTH(lengths, b, lq);
        clear_floats(scratch_k, (ulong)2 * key_rows * ROW_VECTORS);
        for (int i0 = 0; i0 < length; i0 += QUERIES) {
            const int n = min(QUERIES, length - i0);
            floatv sum_q[QUERIES * ROW_VECTORS];
            clear(sum_q, QUERIES * ROW_VECTORS);
            know(&g, Q_AT(q, b, i0, h), q_row, Y_AT(y, b, i0, h), Y_AT(dy, b, i0, h), y_row, LSE_AT(lse, b, i0, h), n,
                 softmax_scale);
            for (int j0 = 0; j0 < length; j0 += KEYS) {
                const int m = min(KEYS, length - j0), whole = (m + TILE - 1) / TILE * TILE;
                const ulong lowest = (ulong)ROW_OF(i0 - j0 - whole) * PITCH;
                pack(s.k, KV_AT(k, b, j0, h), kv_row, m, 1.0f);
                pack(s.v, KV_AT(v, b, j0, h), kv_row, m, 1.0f);
                repeat_last(s.k, m);
                repeat_last(s.v, m);
                fetch_rows(s.a, TABLE_AT(tables, 0, h) + lowest, QUERIES + whole);
                fetch_rows(s.c, TABLE_AT(tables, 1, h) + lowest, QUERIES + whole);
                differentiate(&g, &s, COLUMNS_AT(0, h) + ROW_OF(i0 - j0), COLUMNS_AT(1, h) + ROW_OF(i0 - j0),
                              column_pitch, m);
                add_to_rows(&g, &s, sum_q, scratch_k + j0 * PITCH, scratch_v + j0 * PITCH, m, whole);
                add_to_tables(&g, &s, da + lowest, dc + lowest, whole);
            }
            for (int i = 0; i < QUERIES * ROW_VECTORS; ++i) sum_q[i] *= softmax_scale;
            if (HAS(dq)) unpack(Q_AT(dq, b, i0, h), HAS(accum_q) ? Q_AT(accum_q, b, i0, h) : 0, q_row, sum_q, n);
        }
        if (!HAS(dq)) continue;
        unpack_nothing(Q_AT(dq, b, length, h), HAS(accum_q) ? Q_AT(accum_q, b, length, h) : 0, q_row, lq - length);
        write_rows(KV_AT(dk, b, 0, h), HAS(accum_k) ? KV_AT(accum_k, b, 0, h) : 0, kv_row, scratch_k, length, lq);
        write_rows(KV_AT(dv, b, 0, h), HAS(accum_v) ? KV_AT(accum_v, b, 0, h) : 0, kv_row, scratch_v, length, lq);
    }
}

__kernel void disentangled_cpu_backward(TENSOR(const T, q), TENSOR(const T, k), TENSOR(const T, v), const int q_row,
                                        TENSOR(const int, lengths), TENSOR(const float, columns),
                                        TENSOR(const float, tables), TENSOR(const T, y), TENSOR(const float, lse),
                                        TENSOR(const T, dy), TENSOR(const T, accum_q), TENSOR(T, dq),
                                        TENSOR(const T, accum_k), TENSOR(const T, accum_v), TENSOR(T, dk),
                                        TENSOR(T, dv), TENSOR(float, dtables), TENSOR(float, scratch), const int batch,
                                        const int heads, const int lq, const float softmax_scale, const int front,
                                        const int rows, const int pitch, const int column_pitch, const int key_rows,
                                        const int part_samples) {
    disentangled_part(PASS(q), PASS(k), PASS(v), q_row, PASS(lengths), PASS(columns), PASS(tables), PASS(y), PASS(lse),
                      PASS(dy), PASS(accum_q), PASS(dq), PASS(accum_k), PASS(accum_v), PASS(dk), PASS(dv),
                      PASS(dtables), PASS(scratch), batch, heads, lq, softmax_scale, front, rows, pitch, column_pitch,
                      key_rows, part_samples, get_global_id(0));
}
