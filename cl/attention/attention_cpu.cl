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
#include "attention/attention.clh"
#include "lib/exp2.clh"

/* Rows of a register tile, which has TILE * 2 accumulators of VEC elements. */
#ifndef TILE
#define TILE 4
#endif
#define QUERIES (2 * VEC) /* queries per group: two vectors */
/* Keys per block, a multiple of TILE. The queries, keys, values and probabilities of one group fit in the
 * first-level cache. */
#if DH <= 32
#define KEYS 64
#else
#define KEYS 32
#endif
/* Floats per packed row, DH or more: one vector, or an even number of vectors. */
#ifndef PITCH
#define PITCH 128
#endif
#if PITCH < DH || PITCH % VEC != 0
#error a packed row must hold a row of a head in whole vectors
#endif
#define ROW_VECTORS (PITCH / VEC)
#define ROW_WIDTH (ROW_VECTORS == 1 ? 1 : 2)
/* Maximum number of groups per work-item, limited by the private memory they take; an argument says how many
 * are used. Rows of keys and values are far apart, so that packing them misses the caches; the more groups
 * share a packed block, the lower its cost per group. */
#ifndef FORWARD_GROUPS
#define FORWARD_GROUPS 1
#endif
#ifndef BACKWARD_GROUPS
#define BACKWARD_GROUPS 1
#endif
/* Columns of a row that tiles compute: DH, rounded up to whole tiles. */
#define DEPTH ((DH + TILE - 1) / TILE * TILE)
/* Number of keys that sums over keys cover: multiply is unrolled by four, and rounding up further, to whole
 * tiles, would waste work. The weights of the additional keys are 0. */
#define IN_FOURS(keys) (((keys) + 3) / 4 * 4)

/* --- register tiles ------------------------------------------------------------------------------------- */

typedef struct tile {
    floatv at[TILE][2];
} tile;

/* c[i][w] += sum over k < depth of scalars[i * row + k * step] * columns[k * pitch + w] for w < width (1 or
 * 2). */
static inline tile multiply(tile c, int width, const floatv *columns, int pitch, const float *scalars, int row,
                            int step, int depth) {
#pragma unroll 4
    for (int k = 0; k < depth; ++k) {
        floatv a = columns[k * pitch], b = width == 2 ? columns[k * pitch + 1] : a;
#pragma unroll
        for (int i = 0; i < TILE; ++i) {
            floatv s = (floatv)(scalars[i * row + k * step]);
            c.at[i][0] = fma(s, a, c.at[i][0]);
            if (width == 2) c.at[i][1] = fma(s, b, c.at[i][1]);
        }
    }
    return c;
}

static inline tile fill_tile(floatv a, floatv b) {
    tile c;
#pragma unroll
    for (int i = 0; i < TILE; ++i) c.at[i][0] = a, c.at[i][1] = b;
    return c;
}
static inline tile load_tile(const floatv *x) {
    tile c;
#pragma unroll
    for (int i = 0; i < TILE; ++i) c.at[i][0] = x[i * 2], c.at[i][1] = x[i * 2 + 1];
    return c;
}
static inline void store_tile(floatv *x, tile c) {
#pragma unroll
    for (int i = 0; i < TILE; ++i) x[i * 2] = c.at[i][0], x[i * 2 + 1] = c.at[i][1];
}

/* 2^c limited to 2^most (ANY: not limited, undefined from 128 on); 0 in rows n and later. */
#define ANY INFINITY
static inline tile exp2_tile(tile c, int n, float most) {
#pragma unroll
    for (int i = 0; i < TILE; ++i) {
        c.at[i][0] = most < ANY ? exp2_most(c.at[i][0], most) : exp2v(c.at[i][0]);
        c.at[i][1] = most < ANY ? exp2_most(c.at[i][1], most) : exp2v(c.at[i][1]);
    }
    if (n < TILE)
#pragma unroll
        for (int i = 0; i < TILE; ++i)
            if (i >= n) c.at[i][0] = c.at[i][1] = 0.0f;
    return c;
}

/* --- rows ----------------------------------------------------------------------------------------------- */

/* PoCL 3.1 splits a vload16 or vstore16 of floats into scalar accesses; a packed structure is accessed whole
 * at any alignment. */
typedef struct __attribute__((packed)) packed_vector {
    floatv v;
} packed_vector;
#define FETCH(p) (((__global const packed_vector *)(p))->v)
#define PUT(x, p) (((__global packed_vector *)(p))->v = (x))
#if defined(STORAGE_F16) || defined(STORAGE_BF16)
#define FETCH_T(p) LOADV(p, 0)
#define PUT_T(x, p) STOREV(x, p, 0)
#else
#define FETCH_T(p) FETCH(p)
#define PUT_T(x, p) PUT(x, p)
#endif

/* packed[r, :] = softmax_scale * rows[r * row : + DH] for r < n; 0 past DH. */
static inline void pack(floatv *packed, __global const T *rows, int row, int n, float softmax_scale) {
    for (int r = 0; r < n; ++r) {
        __global const T *from = rows + (ulong)r * row;
#if DH % PITCH == 0
        for (int w = 0; w < ROW_VECTORS; ++w) packed[r * ROW_VECTORS + w] = FETCH_T(from + w * VEC) * softmax_scale;
#else
        float *to = (float *)(packed + r * ROW_VECTORS);
        for (int d = 0; d < DH; d += CHUNK) {
            chunk x = LOADC(from, d) * softmax_scale;
            STOREFC(x, to, d);
        }
        for (int d = DH; d < PITCH; ++d) to[d] = 0.0f;
#endif
    }
}

/* rows[r * row : + DH] = accum (if not NULL) + packed[r, :] for r < n. */
static inline void unpack(__global T *rows, __global const T *accum, int row, const floatv *packed, int n) {
    for (int r = 0; r < n; ++r) {
        const ulong at = (ulong)r * row;
#if DH % PITCH == 0
        for (int w = 0; w < ROW_VECTORS; ++w) {
            floatv x = packed[r * ROW_VECTORS + w];
            if (accum) x += FETCH_T(accum + at + w * VEC);
            PUT_T(x, rows + at + w * VEC);
        }
#else
        const float *from = (const float *)(packed + r * ROW_VECTORS);
        for (int d = 0; d < DH; d += CHUNK) {
            chunk x = LOADFC(from, d);
            if (accum) x += LOADC(accum + at, d);
            STOREC(x, rows + at, d);
        }
#endif
    }
}

/* rows[r * row : + DH] = accum, or 0 if accum is NULL, for r < n. */
static inline void unpack_nothing(__global T *rows, __global const T *accum, int row, int n) {
    floatv zeros[ROW_VECTORS];
    for (int w = 0; w < ROW_VECTORS; ++w) zeros[w] = 0.0f;
    for (int r = 0; r < n; ++r) unpack(rows + (ulong)r * row, accum ? accum + (ulong)r * row : 0, 0, zeros, 1);
}

/* Pads to whole tiles, which are read to their end, by repeating the last row: the padding is multiplied by
 * weights of 0 and must therefore hold finite numbers. */
static inline void repeat_last(floatv *packed, int n) {
    for (int r = n; r % TILE != 0; ++r)
        for (int w = 0; w < ROW_VECTORS; ++w) packed[r * ROW_VECTORS + w] = packed[(n - 1) * ROW_VECTORS + w];
}

static inline void clear(floatv *x, int n) {
    for (int i = 0; i < n; ++i) x[i] = 0.0f;
}

/* to = softmax_scale * the transpose of a VEC x VEC square. Interleaving row i with row i + VEC / 2,
 * log2(VEC) times, transposes it. */
static inline void transpose_square(floatv *to, int to_step, const floatv *from, int from_step, float softmax_scale) {
    floatv row[VEC], zipped[VEC];
#pragma unroll
    for (int i = 0; i < VEC; ++i) row[i] = from[i * from_step];
#pragma unroll
    for (int round = 1; round < VEC; round *= 2) {
#pragma unroll
        for (int i = 0; i < VEC / 2; ++i) {
            zipped[2 * i].even = row[i].lo;
            zipped[2 * i].odd = row[i + VEC / 2].lo;
            zipped[2 * i + 1].even = row[i].hi;
            zipped[2 * i + 1].odd = row[i + VEC / 2].hi;
        }
#pragma unroll
        for (int i = 0; i < VEC; ++i) row[i] = zipped[i];
    }
#pragma unroll
    for (int i = 0; i < VEC; ++i) to[i * to_step] = row[i] * softmax_scale;
}

/* columns [PITCH, QUERIES] = softmax_scale * the transpose of packed [QUERIES, PITCH]; rows_of is the
 * inverse. */
static inline void columns_of(floatv *columns, const floatv *packed, float softmax_scale) {
    for (int side = 0; side < 2; ++side)
        for (int w = 0; w < ROW_VECTORS; ++w)
            transpose_square(columns + w * VEC * 2 + side, 2, packed + side * VEC * ROW_VECTORS + w, ROW_VECTORS,
                             softmax_scale);
}
static inline void rows_of(floatv *packed, const floatv *columns, float softmax_scale) {
    for (int side = 0; side < 2; ++side)
        for (int w = 0; w < ROW_VECTORS; ++w)
            transpose_square(packed + side * VEC * ROW_VECTORS + w, ROW_VECTORS, columns + w * VEC * 2 + side, 2,
                             softmax_scale);
}

static inline floatv larger(floatv a, floatv b) {
    return b > a ? b : a;
}

/* --- forward -------------------------------------------------------------------------------------------- */

/* Up to QUERIES queries and their outputs so far. Queries are multiplied by softmax_scale * log2(e), so that
 * scores are in base 2. */
typedef struct queries {
    floatv query[PITCH * 2], out[PITCH * 2]; /* [PITCH, QUERIES] */
    floatv top[2], sum[2];                   /* weights are 2^(score - top); sum of the weights */
} queries;

/* How far (in base 2) a score may exceed `top` before it replaces it. Weights, their sum over 2^20 keys and
 * the outputs stay far from overflow, and no significant weight is lost to underflow. */
#define HEADROOM 32.0f

static inline void begin_queries(queries *g, __global const T *q, int q_row, int n, float softmax_scale) {
    floatv packed[QUERIES * ROW_VECTORS];
    pack(packed, q, q_row, n, 1.0f);
    clear(packed + n * ROW_VECTORS, (QUERIES - n) * ROW_VECTORS);
    columns_of(g->query, packed, softmax_scale);
    clear(g->out, PITCH * 2);
    g->top[0] = g->top[1] = -1e30f;
    g->sum[0] = g->sum[1] = 0.0f;
}

/* Raises `top` to the maximum of itself and the scores of m keys, rounded up to whole tiles. */
static inline void raise_top(queries *g, const floatv *packed_k, int m) {
    floatv top0 = g->top[0], top1 = g->top[1];
    for (int j = 0; j < m; j += TILE) {
        tile score =
            multiply(fill_tile(0.0f, 0.0f), 2, g->query, 2, (const float *)(packed_k + j * ROW_VECTORS), PITCH, 1, DH);
#pragma unroll
        for (int i = 0; i < TILE; ++i) {
            top0 = larger(top0, score.at[i][0]);
            top1 = larger(top1, score.at[i][1]);
        }
    }
    const floatv shrink0 = exp2v(g->top[0] - top0), shrink1 = exp2v(g->top[1] - top1);
    for (int d = 0; d < DEPTH; ++d) g->out[d * 2] *= shrink0, g->out[d * 2 + 1] *= shrink1;
    g->sum[0] *= shrink0, g->sum[1] *= shrink1;
    g->top[0] = top0, g->top[1] = top1;
}

/* weight [KEYS, QUERIES] = 2^(score - top), limited to 2^most, for m keys; 0 for the rest of the last tile.
 * sum = g->sum + the sum of these weights. Returns the largest score - top, at least 0. */
static inline float weigh(const queries *g, const floatv *packed_k, int m, float most, floatv *weight, floatv *sum) {
    floatv high0 = 0.0f, high1 = 0.0f, sum0 = g->sum[0], sum1 = g->sum[1];
    for (int j = 0; j < m; j += TILE) {
        tile c = multiply(fill_tile(-g->top[0], -g->top[1]), 2, g->query, 2,
                          (const float *)(packed_k + j * ROW_VECTORS), PITCH, 1, DH);
#pragma unroll
        for (int i = 0; i < TILE; ++i) {
            high0 = larger(high0, c.at[i][0]);
            high1 = larger(high1, c.at[i][1]);
        }
        c = exp2_tile(c, m - j, most);
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

/* Online softmax over m <= KEYS more keys. */
static inline void attend(queries *g, const floatv *packed_k, const floatv *packed_v, int m, bool first) {
    floatv weight[KEYS * 2], sum[2]; /* [KEYS, QUERIES] */
    if (first) raise_top(g, packed_k, 1);
    if (weigh(g, packed_k, m, ANY, weight, sum) > HEADROOM) {
        raise_top(g, packed_k, m);
        /* scores of 1e9 still differ from `top` by rounding errors */
        weigh(g, packed_k, m, HEADROOM, weight, sum);
    }
    g->sum[0] = sum[0], g->sum[1] = sum[1];
    for (int d = 0; d < DEPTH; d += TILE) {
        tile c = load_tile(g->out + d * 2);
        c = multiply(c, 2, weight, 2, (const float *)packed_v + d, 1, PITCH, IN_FOURS(m));
        store_tile(g->out + d * 2, c);
    }
}

static inline void finish_queries(queries *g, __global T *y, int y_row, __global float *lse, int n) {
    floatv packed[QUERIES * ROW_VECTORS];
    const floatv share0 = 1.0f / g->sum[0], share1 = 1.0f / g->sum[1];
    for (int d = 0; d < DH; ++d) g->out[d * 2] *= share0, g->out[d * 2 + 1] *= share1;
    rows_of(packed, g->out, 1.0f);
    unpack(y, 0, y_row, packed, n);
    const floatv logs[2] = {(g->top[0] + log2(g->sum[0])) * LN2, (g->top[1] + log2(g->sum[1])) * LN2};
    for (int r = 0; r < n; ++r) lse[r] = ((const float *)logs)[r];
}

/* A work-item processes `groups` groups of queries; its index is (b * heads + h) * blocks + block. */
__kernel void attention_cpu_forward(TENSOR(const T, q), TENSOR(const T, k), TENSOR(const T, v), const int q_row,
                                    const int kv_row, TENSOR(const int, q_lengths), TENSOR(const int, k_lengths),
                                    TENSOR(T, y), TENSOR(float, lse), const int heads, const int lq, const int lk,
                                    const float softmax_scale, const int groups) {
    const int block = groups * QUERIES, blocks = (lq + block - 1) / block, item = get_global_id(0);
    const int i0 = item % blocks * block, h = item / blocks % heads, b = item / blocks / heads;
    const int keys = LENGTH(k_lengths, b, lk), in_block = min(block, lq - i0), y_row = heads * DH;
    const int n = keys > 0 ? clamp(LENGTH(q_lengths, b, lq) - i0, 0, in_block) : 0;

    queries group[FORWARD_GROUPS];
    floatv packed_k[KEYS * ROW_VECTORS], packed_v[KEYS * ROW_VECTORS];
    for (int i = 0, g = 0; i < n; i += QUERIES, ++g)
        begin_queries(group + g, Q_AT(q, b, i0 + i, h), q_row, min(QUERIES, n - i), softmax_scale * LOG2E);
    for (int j0 = 0; j0 < (n > 0 ? keys : 0); j0 += KEYS) {
        const int m = min(KEYS, keys - j0);
        pack(packed_k, KV_AT(k, b, j0, h), kv_row, m, 1.0f);
        pack(packed_v, KV_AT(v, b, j0, h), kv_row, m, 1.0f);
        repeat_last(packed_k, m);
        repeat_last(packed_v, m);
        for (int g = 0; g * QUERIES < n; ++g) attend(group + g, packed_k, packed_v, m, j0 == 0);
    }
    for (int i = 0, g = 0; i < n; i += QUERIES, ++g)
        finish_queries(group + g, Y_AT(y, b, i0 + i, h), y_row, LSE_AT(lse, b, i0 + i, h), min(QUERIES, n - i));
    unpack_nothing(Y_AT(y, b, i0 + n, h), 0, y_row, in_block - n);
    for (int r = n; r < in_block; ++r) LSE_AT(lse, b, i0, h)[r] = 0.0f;
}

/* --- backward ------------------------------------------------------------------------------------------- */

/* Up to QUERIES queries with all inputs of the backward pass, by rows [QUERIES, PITCH] and transposed [PITCH,
 * QUERIES]. As in the forward pass, query and logs are in base 2; q is multiplied by softmax_scale only. */
typedef struct known {
    floatv q[QUERIES * ROW_VECTORS], dy[QUERIES * ROW_VECTORS];
    floatv query[PITCH * 2], dout[PITCH * 2], dquery[PITCH * 2];
    floatv logs[2], delta[2]; /* log-sum-exp; sum of dy * y */
} known;

static inline void know(known *g, __global const T *q, int q_row, __global const T *y, __global const T *dy, int y_row,
                        __global const float *lse, int n, float softmax_scale) {
    pack(g->q, q, q_row, n, softmax_scale);
    pack(g->dy, dy, y_row, n, 1.0f);
    clear(g->q + n * ROW_VECTORS, (QUERIES - n) * ROW_VECTORS);
    clear(g->dy + n * ROW_VECTORS, (QUERIES - n) * ROW_VECTORS);
    columns_of(g->query, g->q, LOG2E);
    columns_of(g->dout, g->dy, 1.0f);
    clear(g->dquery, PITCH * 2);
    float *delta = (float *)g->delta, *logs = (float *)g->logs;
    for (int r = 0; r < n; ++r) {
        floatv row[ROW_VECTORS], dot = 0.0f;
        pack(row, y + (ulong)r * y_row, 0, 1, 1.0f);
        for (int w = 0; w < ROW_VECTORS; ++w) dot = fma(row[w], g->dy[r * ROW_VECTORS + w], dot);
        delta[r] = sumv(dot);
        logs[r] = lse[r] * LOG2E;
    }
    /* Elements without a query get a weight of 2^-126, which is multiplied by a dout of 0. */
    for (int r = n; r < QUERIES; ++r) delta[r] = 0.0f, logs[r] = 1e30f;
}

/* grown[i, :] (+)= sum over r of weight[i, r] * rows[r, :] for TILE keys i: [KEYS, QUERIES] by [QUERIES,
 * PITCH]. */
static inline void grow(__global float *grown, const floatv *weight, const floatv *rows, bool first) {
    for (int w = 0; w < ROW_VECTORS; w += ROW_WIDTH) {
        __global float *at = grown + w * VEC;
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

/* Adds the contribution of m <= KEYS keys to dquery, and that of the queries to dk and dv [KEYS, PITCH], in
 * whole tiles. first: dk and dv are not initialized yet and are overwritten. */
static inline void differentiate(known *g, const floatv *packed_k, const floatv *packed_v, __global float *dk,
                                 __global float *dv, int m, bool first) {
    floatv weight[KEYS * 2], dscore[KEYS * 2]; /* [KEYS, QUERIES] */
    for (int j = 0; j < m; j += TILE) {
        tile p = multiply(fill_tile(-g->logs[0], -g->logs[1]), 2, g->query, 2,
                          (const float *)(packed_k + j * ROW_VECTORS), PITCH, 1, DH);
        store_tile(weight + j * 2, exp2_tile(p, m - j, 1.0f)); /* weights exceed 1 only by rounding */
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
        grow(dv + j * PITCH, weight + j * 2, g->dy, first);
        grow(dk + j * PITCH, dscore + j * 2, g->q, first);
    }
}

/* Start of dK and of dV of one part: consecutive blocks of [rows, PITCH] floats. */
#define SCRATCH_K(part) (AT(scratch) + (ulong)(part)*2 * rows * PITCH)
#define SCRATCH_V(part) (SCRATCH_K(part) + (ulong)rows * PITCH)

/* A work-item processes a part of a head's queries; its index is (b * heads + h) * parts + part. A part has
 * part_queries queries, a multiple of groups * QUERIES. Writes dQ (if requested), and the part's sums of dK
 * and dV to scratch, f32 [B, heads, parts, 2, rows, PITCH], where rows is lk rounded up to whole tiles. A
 * part without queries does not write to its scratch. */
__kernel void attention_cpu_backward(TENSOR(const T, q), TENSOR(const T, k), TENSOR(const T, v), const int q_row,
                                     const int kv_row, TENSOR(const int, q_lengths), TENSOR(const int, k_lengths),
                                     TENSOR(const T, y), TENSOR(const float, lse), TENSOR(const T, dy),
                                     TENSOR(const T, accum), TENSOR(T, dq), TENSOR(float, scratch), const int heads,
                                     const int lq, const int lk, const float softmax_scale, const int parts,
                                     const int part_queries, const int groups, const int rows) {
    const int item = get_global_id(0), part = item % parts, h = item / parts % heads, b = item / parts / heads;
    const int keys = LENGTH(k_lengths, b, lk), y_row = heads * DH, block = groups * QUERIES;
    const int start = part * part_queries, end = min(start + part_queries, lq);
    const int filled = keys > 0 ? clamp(LENGTH(q_lengths, b, lq), start, max(start, end)) : start;

    for (int i0 = start; i0 < filled; i0 += block) {
        known group[BACKWARD_GROUPS];
        floatv packed_k[KEYS * ROW_VECTORS], packed_v[KEYS * ROW_VECTORS];
        const int n = min(block, filled - i0);
        for (int i = 0, g = 0; i < n; i += QUERIES, ++g)
            know(group + g, Q_AT(q, b, i0 + i, h), q_row, Y_AT(y, b, i0 + i, h), Y_AT(dy, b, i0 + i, h), y_row,
                 LSE_AT(lse, b, i0 + i, h), min(QUERIES, n - i), softmax_scale);
        for (int j0 = 0; j0 < keys; j0 += KEYS) {
            const int m = min(KEYS, keys - j0);
            pack(packed_k, KV_AT(k, b, j0, h), kv_row, m, 1.0f);
            pack(packed_v, KV_AT(v, b, j0, h), kv_row, m, 1.0f);
            repeat_last(packed_k, m);
            repeat_last(packed_v, m);
            for (int g = 0; g * QUERIES < n; ++g)
                differentiate(group + g, packed_k, packed_v, SCRATCH_K(item) + j0 * PITCH, SCRATCH_V(item) + j0 * PITCH,
                              m, i0 == start && g == 0);
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

/* dK and dV = accum + the sum of the parts, in order, for key rows b * lk + j. */
__kernel void attention_cpu_keys(TENSOR(const float, scratch), TENSOR(const int, q_lengths),
                                 TENSOR(const int, k_lengths), TENSOR(const T, accum_k), TENSOR(const T, accum_v),
                                 TENSOR(T, dk), TENSOR(T, dv), const int kv_row, const int batch, const int heads,
                                 const int lq, const int lk, const int parts, const int part_queries, const int rows) {
    for (int at = get_global_id(0); at < batch * lk; at += get_global_size(0)) {
        const int b = at / lk, j = at % lk;
        const int queries = j < LENGTH(k_lengths, b, lk) ? LENGTH(q_lengths, b, lq) : 0;
        const int used = (queries + part_queries - 1) / part_queries; /* parts that have queries */
        for (int h = 0; h < heads; ++h)
            for (int d = 0; d < DH; d += CHUNK) {
                chunk sum_k = 0.0f, sum_v = 0.0f;
                if (HAS(accum_k)) sum_k = LOADC(KV_AT(accum_k, b, j, h), d), sum_v = LOADC(KV_AT(accum_v, b, j, h), d);
                for (int p = 0; p < used; ++p) {
                    const int part = (b * heads + h) * parts + p;
                    sum_k += LOADFC(SCRATCH_K(part), j * PITCH + d);
                    sum_v += LOADFC(SCRATCH_V(part), j * PITCH + d);
                }
                STOREC(sum_k, KV_AT(dk, b, j, h), d);
                STOREC(sum_v, KV_AT(dv, b, j, h), d);
            }
    }
}
