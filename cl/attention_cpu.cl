/* Attention for the CPU shape: one work-item, wide vectors, no barriers. Queries go in groups of two vectors, one query
 * a lane, so that the softmax never crosses lanes; keys and values are broadcast element by element from rows packed to
 * f32. Every product is then one register tile, `multiply`. Log-sum-exps are kept, probabilities never (Dao et al.
 * 2022, FlashAttention).
 *
 * A work-item holds several groups, so that a block of packed keys serves them all. Backward walks the queries of a
 * head (or of a part of them) once: dQ is finished as it goes, dK and dV grow in scratch memory and are summed over
 * the parts, in order, by a last kernel. Layout and lengths: attention.clh. */
#include "attention.clh"
#include "exp2.clh"

/* Rows of a register tile: TILE * 2 accumulators of VEC lanes. */
#if VEC >= 16
#define TILE 8
#else
#define TILE 4
#endif
#define QUERIES (2 * VEC) /* a group; two vectors */
/* The most groups of a work-item; the host says how many it uses. */
#ifndef GROUPS
#define GROUPS 4
#endif
/* Keys a block: queries, keys, values and probabilities of one group stay in the first-level cache. */
#if DH <= 32
#define KEYS 64
#else
#define KEYS 32
#endif
/* Floats of a packed row: whole vectors, an even number of them beyond one. */
#if DH <= VEC
#define PITCH VEC
#else
#define PITCH ((DH + 2 * VEC - 1) / (2 * VEC) * (2 * VEC))
#endif
#define ROW_VECTORS (PITCH / VEC)
#define ROW_WIDTH (ROW_VECTORS == 1 ? 1 : 2)
/* Rows of a transposed block: DH, and what the last tile needs. */
#define DEPTH ((DH + TILE - 1) / TILE * TILE)

typedef struct tile {
    floatv at[TILE][2];
} tile;

/* c[i][w] += sum over k < depth of scalars[i * row + k * step] * columns[k * pitch + w], w < width (1 or 2). */
static inline tile multiply(tile c, int width, const floatv *columns, int pitch, const float *scalars, int row,
                            int step, int depth) {
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

static inline tile zero_tile(void) {
    tile c;
#pragma unroll
    for (int i = 0; i < TILE; ++i) c.at[i][0] = c.at[i][1] = 0.0f;
    return c;
}

/* packed[r, :] = scale * rows[r * row : + DH] for r < n, 0 beyond DH. */
static inline void pack(float *packed, __global const T *rows, int row, int n, float scale) {
    for (int r = 0; r < n; ++r) {
        float *to = packed + r * PITCH;
        __global const T *from = rows + (ulong)r * row;
        for (int d = 0; d < DH; d += CHUNK) {
            chunk x = LOADC(from, d) * scale;
            STOREFC(x, to, d);
        }
        for (int d = DH; d < PITCH; ++d) to[d] = 0.0f;
    }
}

/* The rows a tile reads past the last key repeat it: they change no maximum, and their results are left out. */
static inline void repeat_last(float *packed, int n) {
    for (int r = n; r % TILE != 0; ++r)
        for (int d = 0; d < PITCH; ++d) packed[r * PITCH + d] = packed[(n - 1) * PITCH + d];
}

/* columns[d][r] = packed[r][d]; lanes from n on are 0. */
static inline void transpose(float *columns, const float *packed, int n) {
    for (int d = 0; d < DH; ++d) {
        for (int r = 0; r < n; ++r) columns[d * QUERIES + r] = packed[r * PITCH + d];
        for (int r = n; r < QUERIES; ++r) columns[d * QUERIES + r] = 0.0f;
    }
}

/* rows[r * row : + DH] = addend (where there is one) + columns[:][r] for r < n. */
static inline void store_columns(__global T *rows, __global const T *addend, int row, const float *columns, int n) {
    float out[DH];
    for (int r = 0; r < n; ++r) {
        for (int d = 0; d < DH; ++d) out[d] = columns[d * QUERIES + r];
        for (int d = 0; d < DH; d += CHUNK) {
            chunk x = LOADFC(out, d);
            if (addend) x += LOADC(addend + (ulong)r * row, d);
            STOREC(x, rows + (ulong)r * row, d);
        }
    }
}

/* rows[r * row : + DH] = addend or 0 for r < n. */
static inline void store_nothing(__global T *rows, __global const T *addend, int row, int n) {
    for (int r = 0; r < n; ++r)
        for (int d = 0; d < DH; d += CHUNK) {
            chunk x = 0.0f;
            if (addend) x = LOADC(addend + (ulong)r * row, d);
            STOREC(x, rows + (ulong)r * row, d);
        }
}

static inline floatv larger(floatv a, floatv b) {
    return b > a ? b : a;
}

/* c[i][w] = x[i * row + w], w < width, and back. */
static inline tile load_tile(const floatv *x, int row, int width) {
    tile c = zero_tile();
#pragma unroll
    for (int i = 0; i < TILE; ++i) {
        c.at[i][0] = x[i * row];
        if (width == 2) c.at[i][1] = x[i * row + 1];
    }
    return c;
}
static inline void store_tile(floatv *x, int row, tile c, int width) {
#pragma unroll
    for (int i = 0; i < TILE; ++i) {
        x[i * row] = c.at[i][0];
        if (width == 2) x[i * row + 1] = c.at[i][1];
    }
}

static inline void clear(floatv *x, int n) {
    for (int i = 0; i < n; ++i) x[i] = 0.0f;
}

/* --- forward ----------------------------------------------------------------------------------------------------- */

/* Up to QUERIES queries, which carry scale * log2(e) so that scores are in base 2, and their outputs so far. */
typedef struct queries {
    floatv query[DH * 2];  /* [DH, QUERIES] */
    floatv out[DEPTH * 2]; /* [DH, QUERIES] */
    floatv top[2], sum[2]; /* the largest score, and the sum of 2^(score - top) */
} queries;

/* Online softmax over m <= KEYS more keys. */
static inline void attend(queries *g, const float *packed_k, const float *packed_v, int m) {
    floatv weight[KEYS * 2]; /* [KEYS, QUERIES] */
    floatv top0 = g->top[0], top1 = g->top[1];
    for (int j = 0; j < m; j += TILE) {
        tile score = multiply(zero_tile(), 2, g->query, 2, packed_k + j * PITCH, PITCH, 1, DH);
        store_tile(weight + j * 2, 2, score, 2);
#pragma unroll
        for (int i = 0; i < TILE; ++i) {
            top0 = larger(top0, score.at[i][0]);
            top1 = larger(top1, score.at[i][1]);
        }
    }
    const floatv shrink0 = exp2v(g->top[0] - top0), shrink1 = exp2v(g->top[1] - top1);
    floatv sum0 = g->sum[0] * shrink0, sum1 = g->sum[1] * shrink1;
    for (int j = 0; j < m; ++j) {
        sum0 += weight[j * 2] = exp2v(weight[j * 2] - top0);
        sum1 += weight[j * 2 + 1] = exp2v(weight[j * 2 + 1] - top1);
    }
    for (int d = 0; d < DEPTH; d += TILE) {
        tile c = load_tile(g->out + d * 2, 2, 2);
#pragma unroll
        for (int i = 0; i < TILE; ++i) {
            c.at[i][0] *= shrink0;
            c.at[i][1] *= shrink1;
        }
        store_tile(g->out + d * 2, 2, multiply(c, 2, weight, 2, packed_v + d, 1, PITCH, m), 2);
    }
    g->top[0] = top0, g->top[1] = top1;
    g->sum[0] = sum0, g->sum[1] = sum1;
}

/* A work-item is `groups` groups of queries: (b * heads + h) * blocks + block. */
__kernel void attention_cpu_forward(TENSOR(const T, q), TENSOR(const T, k), TENSOR(const T, v), const int q_row,
                                    const int kv_row, TENSOR(const int, q_lengths), TENSOR(const int, k_lengths),
                                    TENSOR(T, y), TENSOR(float, lse), const int heads, const int lq, const int lk,
                                    const float scale, const int groups) {
    const int block = groups * QUERIES, blocks = (lq + block - 1) / block, item = get_global_id(0);
    const int i0 = item % blocks * block, h = item / blocks % heads, b = item / blocks / heads;
    const int keys = LENGTH(k_lengths, b, lk), in_block = min(block, lq - i0), y_row = heads * DH;
    const int n = keys > 0 ? clamp(LENGTH(q_lengths, b, lq) - i0, 0, in_block) : 0;

    queries group[GROUPS];
    float packed_k[KEYS * PITCH], packed_v[KEYS * PITCH];
    for (int i = 0, g = 0; i < n; i += QUERIES, ++g) {
        float rows[QUERIES * PITCH];
        pack(rows, Q_AT(q, b, i0 + i, h), q_row, min(QUERIES, n - i), scale * LOG2E);
        transpose((float *)group[g].query, rows, min(QUERIES, n - i));
        clear(group[g].out, DEPTH * 2);
        group[g].top[0] = group[g].top[1] = -1e30f;
        group[g].sum[0] = group[g].sum[1] = 0.0f;
    }
    for (int j0 = 0; j0 < (n > 0 ? keys : 0); j0 += KEYS) {
        const int m = min(KEYS, keys - j0);
        pack(packed_k, KV_AT(k, b, j0, h), kv_row, m, 1.0f);
        pack(packed_v, KV_AT(v, b, j0, h), kv_row, m, 1.0f);
        repeat_last(packed_k, m);
        for (int g = 0; g * QUERIES < n; ++g) attend(group + g, packed_k, packed_v, m);
    }
    for (int i = 0, g = 0; i < n; i += QUERIES, ++g) {
        queries *s = group + g;
        for (int d = 0; d < DH; ++d) {
            s->out[d * 2] /= s->sum[0];
            s->out[d * 2 + 1] /= s->sum[1];
        }
        store_columns(Y_AT(y, b, i0 + i, h), 0, y_row, (float *)s->out, min(QUERIES, n - i));
        const floatv logs[2] = {(s->top[0] + log2(s->sum[0])) * LN2, (s->top[1] + log2(s->sum[1])) * LN2};
        for (int r = 0; r < min(QUERIES, n - i); ++r) LSE_AT(lse, b, i0 + i, h)[r] = ((const float *)logs)[r];
    }
    store_nothing(Y_AT(y, b, i0 + n, h), 0, y_row, in_block - n);
    for (int r = n; r < in_block; ++r) LSE_AT(lse, b, i0, h)[r] = 0.0f;
}

/* --- backward ---------------------------------------------------------------------------------------------------- */

/* Up to QUERIES queries: all that backward knows of them, by rows [QUERIES, PITCH] and transposed [DH, QUERIES]. */
typedef struct known {
    floatv q[QUERIES * ROW_VECTORS], dy[QUERIES * ROW_VECTORS];
    floatv query[DH * 2], dout[DH * 2], dquery[DEPTH * 2];
    floatv logs[2], delta[2]; /* log-sum-exp in base 2; sum of dy * y */
    int n;
} known;

static inline void know(known *g, __global const T *q, int q_row, __global const T *y, __global const T *dy, int y_row,
                        __global const float *lse, int n, float scale) {
    g->n = n;
    pack((float *)g->q, q, q_row, n, scale);
    pack((float *)g->dy, dy, y_row, n, 1.0f);
    transpose((float *)g->query, (float *)g->q, n);
    transpose((float *)g->dout, (float *)g->dy, n);
    clear(g->dquery, DEPTH * 2);
    float *delta = (float *)g->delta, *logs = (float *)g->logs;
    for (int r = 0; r < n; ++r) {
        floatv row[ROW_VECTORS], dot = 0.0f;
        pack((float *)row, y + (ulong)r * y_row, 0, 1, 1.0f);
        for (int w = 0; w < ROW_VECTORS; ++w) dot = fma(row[w], g->dy[r * ROW_VECTORS + w], dot);
        delta[r] = sumv(dot);
        logs[r] = lse[r] * LOG2E;
    }
    /* Lanes without a query get a weight of 2^-126, which meets a dout of 0. */
    for (int r = n; r < QUERIES; ++r) delta[r] = 0.0f, logs[r] = 1e30f;
}

/* grown[i, :] += sum over r < n of weight[i, r] * rows[r, :] for TILE keys i. */
static inline void grow(floatv *grown, const floatv *weight, const floatv *rows, int n) {
    for (int w = 0; w < ROW_VECTORS; w += ROW_WIDTH) {
        tile c = load_tile(grown + w, ROW_VECTORS, ROW_WIDTH);
        c = multiply(c, ROW_WIDTH, rows + w, ROW_VECTORS, (const float *)weight, QUERIES, 1, n);
        store_tile(grown + w, ROW_VECTORS, c, ROW_WIDTH);
    }
}

/* Adds what m <= KEYS keys give to dquery, and what the queries give to dk and dv [KEYS, PITCH]. */
static inline void differentiate(known *g, const float *packed_k, const float *packed_v, floatv *dk, floatv *dv,
                                 int m) {
    floatv weight[KEYS * 2], dscore[KEYS * 2]; /* [KEYS, QUERIES] */
    const floatv logs0 = g->logs[0], logs1 = g->logs[1], delta0 = g->delta[0], delta1 = g->delta[1];
    for (int j = 0; j < m; j += TILE) {
        tile p = multiply(zero_tile(), 2, g->query, 2, packed_k + j * PITCH, PITCH, 1, DH);
#pragma unroll
        for (int i = 0; i < TILE; ++i) {
            p.at[i][0] = exp2v(fma(p.at[i][0], (floatv)LOG2E, -logs0));
            p.at[i][1] = exp2v(fma(p.at[i][1], (floatv)LOG2E, -logs1));
        }
        store_tile(weight + j * 2, 2, p, 2);
    }
    for (int j = 0; j < m; j += TILE) {
        tile ds = multiply(zero_tile(), 2, g->dout, 2, packed_v + j * PITCH, PITCH, 1, DH);
#pragma unroll
        for (int i = 0; i < TILE; ++i) {
            ds.at[i][0] = weight[(j + i) * 2] * (ds.at[i][0] - delta0);
            ds.at[i][1] = weight[(j + i) * 2 + 1] * (ds.at[i][1] - delta1);
        }
        store_tile(dscore + j * 2, 2, ds, 2);
    }
    for (int d = 0; d < DEPTH; d += TILE) {
        tile c = load_tile(g->dquery + d * 2, 2, 2);
        store_tile(g->dquery + d * 2, 2, multiply(c, 2, dscore, 2, packed_k + d, 1, PITCH, m), 2);
    }
    for (int j = 0; j < m; j += TILE) {
        grow(dv + j * ROW_VECTORS, weight + j * 2, g->dy, g->n);
        grow(dk + j * ROW_VECTORS, dscore + j * 2, g->q, g->n);
    }
}

/* The first floats of dK and dV of one part: [rows, PITCH] each, one behind the other. */
#define SCRATCH_K(part) (AT(scratch) + (ulong)(part)*2 * rows * PITCH)
#define SCRATCH_V(part) (SCRATCH_K(part) + (ulong)rows * PITCH)

/* A block of dK or dV from scratch or, the first time, zeros; and back. */
static inline void fetch(floatv *block, __global const float *scratch, int n, bool first) {
    for (int i = 0; i < n; ++i) block[i] = first ? (floatv)(0.0f) : LOADFV(scratch, i * VEC);
}
static inline void put(__global float *scratch, const floatv *block, int n) {
    for (int i = 0; i < n; ++i) STOREFV(block[i], scratch, i * VEC);
}

/* A work-item is a part of a head's queries: (b * heads + h) * parts + part. A part has part_queries of them, a multiple
 * of groups * QUERIES. Writes dQ, and the part's share of dK and dV to scratch, which is
 * f32 [B, heads, parts, 2, rows, PITCH] with rows >= lk. A part without queries leaves its scratch alone. */
__kernel void attention_cpu_backward(TENSOR(const T, q), TENSOR(const T, k), TENSOR(const T, v), const int q_row,
                                     const int kv_row, TENSOR(const int, q_lengths), TENSOR(const int, k_lengths),
                                     TENSOR(const T, y), TENSOR(const float, lse), TENSOR(const T, dy),
                                     TENSOR(const T, addend), TENSOR(T, dq), TENSOR(float, scratch), const int heads,
                                     const int lq, const int lk, const float scale, const int parts,
                                     const int part_queries, const int groups, const int rows) {
    const int item = get_global_id(0), part = item % parts, h = item / parts % heads, b = item / parts / heads;
    const int keys = LENGTH(k_lengths, b, lk), y_row = heads * DH, block = groups * QUERIES;
    const int start = part * part_queries, end = min(start + part_queries, lq);
    const int filled = keys > 0 ? clamp(LENGTH(q_lengths, b, lq), start, max(start, end)) : start;

    for (int i0 = start; i0 < filled; i0 += block) {
        known group[GROUPS];
        float packed_k[KEYS * PITCH], packed_v[KEYS * PITCH];
        floatv dk[KEYS * ROW_VECTORS], dv[KEYS * ROW_VECTORS];
        const int n = min(block, filled - i0);
        for (int i = 0, g = 0; i < n; i += QUERIES, ++g)
            know(group + g, Q_AT(q, b, i0 + i, h), q_row, Y_AT(y, b, i0 + i, h), Y_AT(dy, b, i0 + i, h), y_row,
                 LSE_AT(lse, b, i0 + i, h), min(QUERIES, n - i), scale);
        for (int j0 = 0; j0 < keys; j0 += KEYS) {
            const int m = min(KEYS, keys - j0);
            pack(packed_k, KV_AT(k, b, j0, h), kv_row, m, 1.0f);
            pack(packed_v, KV_AT(v, b, j0, h), kv_row, m, 1.0f);
            repeat_last(packed_k, m);
            repeat_last(packed_v, m);
            fetch(dk, SCRATCH_K(item) + j0 * PITCH, m * ROW_VECTORS, i0 == start);
            fetch(dv, SCRATCH_V(item) + j0 * PITCH, m * ROW_VECTORS, i0 == start);
            for (int g = 0; g * QUERIES < n; ++g) differentiate(group + g, packed_k, packed_v, dk, dv, m);
            put(SCRATCH_K(item) + j0 * PITCH, dk, m * ROW_VECTORS);
            put(SCRATCH_V(item) + j0 * PITCH, dv, m * ROW_VECTORS);
        }
        for (int i = 0, g = 0; i < n; i += QUERIES, ++g) {
            for (int d = 0; d < DH * 2; ++d) group[g].dquery[d] *= scale;
            store_columns(Q_AT(dq, b, i0 + i, h), HAS(addend) ? Q_AT(addend, b, i0 + i, h) : 0, q_row,
                          (float *)group[g].dquery, min(QUERIES, n - i));
        }
    }
    store_nothing(Q_AT(dq, b, filled, h), HAS(addend) ? Q_AT(addend, b, filled, h) : 0, q_row, end - filled);
}

/* dK and dV = addend + the sum of the parts, in order, for key rows b * lk + j. */
__kernel void attention_cpu_keys(TENSOR(const float, scratch), TENSOR(const int, q_lengths),
                                 TENSOR(const int, k_lengths), TENSOR(const T, addend_k), TENSOR(const T, addend_v),
                                 TENSOR(T, dk), TENSOR(T, dv), const int kv_row, const int batch, const int heads,
                                 const int lq, const int lk, const int parts, const int part_queries, const int rows) {
    for (int at = get_global_id(0); at < batch * lk; at += get_global_size(0)) {
        const int b = at / lk, j = at % lk;
        const int queries = j < LENGTH(k_lengths, b, lk) ? LENGTH(q_lengths, b, lq) : 0;
        const int used = (queries + part_queries - 1) / part_queries; /* parts that have queries */
        for (int h = 0; h < heads; ++h)
            for (int d = 0; d < DH; d += CHUNK) {
                chunk sum_k = 0.0f, sum_v = 0.0f;
                if (HAS(addend_k))
                    sum_k = LOADC(KV_AT(addend_k, b, j, h), d), sum_v = LOADC(KV_AT(addend_v, b, j, h), d);
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
