/* Convolution and its gradients (conv.cl says what they are) as products of matrices, for work-groups with local memory (WG > 1, VEC == 4):
 *
 *   C[m, n] = addend[m, n] + bias[n] + sum over k of A[m, k] B[k, n]
 *
 *   PRODUCT      C    m          n            k            A                B
 *   FORWARD 0    y    pixel      feature      (r, s, c)    patches of x     weight
 *   DX      1    dx   pixel      channel      (r, s, n)    patches of dy    weight
 *   DW      2    dw   feature    (r, s, c)    pixel of y   dy^T             patches of x    and sums[m] = sum over k of A[m, k]
 *
 * Patches are gathered on their way to local memory; no tensor of them exists. What lies in one piece in memory is a run: all (s, c) of one
 * row of the kernel in x, all features of one pixel in dy. FORWARD and DX walk k run by run, each rounded up to whole steps, so that nothing is
 * divided on the way; of DW's n each run is rounded up to whole quads.
 *
 * With a stride the pixels of dx see different taps of the kernel, by (h + padding) % stride and (w + padding) % stride: their phase. A tile
 * belongs to one phase and sums its taps only.
 *
 * Where k is split over groups, each writes its own part of `partial` [splits, elements of C] (the first with the bias) and linear_reduce adds
 * them up in order. C may take addend's bytes: each element is read and written by one work-item.
 *
 *   QUADS    1: C of x, and for DX and DW N, are multiples of 4
 *   PHASES   0: the stride is known to be 1 (DX) */
#include "common.clh"
#include "result.clh"

#define FORWARD 0
#define DX 1
#define DW 2
#ifndef PRODUCT
#define PRODUCT FORWARD
#endif
#ifndef PHASES
#define PHASES 1
#endif
#define TRANS_A (PRODUCT == DW)
#define TRANS_B (PRODUCT == FORWARD)
#include "gemm_groups.clh"

#define QUAD_EXISTS(q, tile) (STEP_QUADS(tile) % WG == 0 || (q) < STEP_QUADS(tile))
#define DIVIDE_UP(a, b) (((a) + (b)-1) / (b))

/* x [B, H, W, C], weight [N, R, S, C], y [B, P, Q, N] */
typedef struct geometry {
    int B, H, W, C, P, Q, N, R, S, stride, padding;
} geometry;

/* The quad from x[at] on, the elements j to j + 3 of a run, zero where they are outside [begin, end) of it. */
static inline float4 run_quad(__global const T *x, long at, int j, int begin, int end) {
    float4 quad = (float4)(0.0f);
#if QUADS
    if (j >= begin && j < end) quad = LOAD_QUAD(x, at);
#else
    if (j >= begin && j + 4 <= end) {
        quad = LOADV(x, at);
    } else {
        if (j >= begin && j < end) quad.x = LOAD(x, at);
        if (j + 1 >= begin && j + 1 < end) quad.y = LOAD(x, at + 1);
        if (j + 2 >= begin && j + 2 < end) quad.z = LOAD(x, at + 2);
        if (j + 3 >= begin && j + 3 < end) quad.w = LOAD(x, at + 3);
    }
#endif
    return quad;
}

/* The pixel where a line's patch begins, and its first element. It may lie outside the picture. */
typedef struct patch {
    long at;
    int row, column;
} patch;
#define NO_ROW (-(1 << 30)) /* of a line that does not exist: never in the picture */
#define NOWHERE ((patch){0, NO_ROW, 0})

#if PRODUCT == FORWARD /* ----------------------------------------------------------------------------------------- */

struct operands {
    __global const T *x, *weight;
    geometry g;
    int n0;
    patch patch[QUADS_AN_ITEM(TILE_M)];
    int r, j; /* the next step: row of the kernel, element of its run */
};

static inline patch patch_of(const geometry *g, int m) {
    const int row = m / g->Q % g->P * g->stride - g->padding, column = m % g->Q * g->stride - g->padding;
    return (patch){((long)(m / g->Q / g->P * g->H + row) * g->W + column) * g->C, row, column};
}

static inline void operands_begin(struct operands *o, int m0, int step) {
    const geometry *g = &o->g;
    const int steps = DIVIDE_UP(g->S * g->C, TILE_K), lines = g->B * g->P * g->Q;
#pragma unroll
    for (int i = 0; i < QUADS_AN_ITEM(TILE_M); ++i) {
        const int q = get_local_id(0) + i * WG, m = m0 + LINE_OF(q, TILE_M, 1);
        o->patch[i] = m < lines && QUAD_EXISTS(q, TILE_M) ? patch_of(g, m) : NOWHERE;
    }
    o->r = step / steps;
    o->j = step % steps * TILE_K;
}

static inline void fetch_next(struct operands *o, float4 a_quad[QUADS_AN_ITEM(TILE_M)],
                              float4 b_quad[QUADS_AN_ITEM(TILE_N)]) {
    const geometry *g = &o->g;
    const int run = g->S * g->C;
    const long down = (long)o->r * g->W * g->C;
#pragma unroll
    for (int i = 0; i < QUADS_AN_ITEM(TILE_M); ++i) {
        const int q = get_local_id(0) + i * WG, j = o->j + DEPTH_OF(q, TILE_M, 1);
        const int row = o->patch[i].row + o->r, column = o->patch[i].column;
        a_quad[i] = (float4)(0.0f);
        if (row >= 0 && row < g->H)
            a_quad[i] =
                run_quad(o->x, o->patch[i].at + down + j, j, -column * g->C, min(g->S, g->W - column) * g->C);
    }
#pragma unroll
    for (int i = 0; i < QUADS_AN_ITEM(TILE_N); ++i) {
        const int q = get_local_id(0) + i * WG, j = o->j + DEPTH_OF(q, TILE_N, 1);
        const int n = o->n0 + LINE_OF(q, TILE_N, 1);
        b_quad[i] = (float4)(0.0f);
        if (n < g->N && QUAD_EXISTS(q, TILE_N))
            b_quad[i] = run_quad(o->weight, ((long)n * g->R + o->r) * run + j, j, 0, run);
    }
    o->j += TILE_K;
    if (o->j >= run) {
        o->j = 0;
        ++o->r;
    }
}

#elif PRODUCT == DX /* -------------------------------------------------------------------------------------------- */

/* A phase along rows or along columns: it sees the taps tap, tap + stride, ... and has the `count` pixels first, first + 1, ...;
 * pixel u is at u * stride + tap - padding in dx, and its i-th tap at u - i in dy. */
typedef struct phase {
    int tap, taps, first, count;
} phase;

static inline phase phase_of(int tap, int extent, int kernel_extent, const geometry *g) {
    phase p = {tap, DIVIDE_UP(kernel_extent - tap, g->stride), DIVIDE_UP(g->padding - tap, g->stride), 0};
    p.count = DIVIDE_UP(extent + g->padding - tap, g->stride) - p.first;
    return p;
}

struct operands {
    __global const T *dy, *weight;
    geometry g;
    int n0;
    phase rows, columns;
    patch patch[QUADS_AN_ITEM(TILE_M)];
    int row_tap, column_tap, j; /* the next step: tap of the phase, feature */
};

static inline patch patch_of(const geometry *g, const phase *rows, const phase *columns, int m) {
    const int row = m / columns->count % rows->count + rows->first, column = m % columns->count + columns->first;
    return (patch){((long)(m / columns->count / rows->count * g->P + row) * g->Q + column) * g->N, row, column};
}

/* The pixel of dx whose line is m. */
static inline long pixel_of(const struct operands *o, int m) {
    const geometry *g = &o->g;
    if (g->stride == 1) return m;
    const int down = m / o->columns.count, u = down % o->rows.count, v = m % o->columns.count;
    const int row = (u + o->rows.first) * g->stride + o->rows.tap - g->padding;
    return (long)(down / o->rows.count * g->H + row) * g->W + (v + o->columns.first) * g->stride + o->columns.tap -
           g->padding;
}

static inline void operands_begin(struct operands *o, int m0, int step) {
    const geometry *g = &o->g;
    const int steps = DIVIDE_UP(g->N, TILE_K), lines = g->B * o->rows.count * o->columns.count;
    const int tap = step / steps, across = max(o->columns.taps, 1);
#pragma unroll
    for (int i = 0; i < QUADS_AN_ITEM(TILE_M); ++i) {
        const int q = get_local_id(0) + i * WG, m = m0 + LINE_OF(q, TILE_M, 1);
        o->patch[i] = m < lines && QUAD_EXISTS(q, TILE_M) ? patch_of(g, &o->rows, &o->columns, m) : NOWHERE;
    }
    o->row_tap = tap / across;
    o->column_tap = tap % across;
    o->j = step % steps * TILE_K;
}

static inline void fetch_next(struct operands *o, float4 a_quad[QUADS_AN_ITEM(TILE_M)],
                              float4 b_quad[QUADS_AN_ITEM(TILE_N)]) {
    const geometry *g = &o->g;
    const long back = ((long)o->row_tap * g->Q + o->column_tap) * g->N;
    const int r = o->rows.tap + o->row_tap * g->stride, s = o->columns.tap + o->column_tap * g->stride;
#pragma unroll
    for (int i = 0; i < QUADS_AN_ITEM(TILE_M); ++i) {
        const int q = get_local_id(0) + i * WG, j = o->j + DEPTH_OF(q, TILE_M, 1);
        const int row = o->patch[i].row - o->row_tap, column = o->patch[i].column - o->column_tap;
        a_quad[i] = (float4)(0.0f);
        if (row >= 0 && row < g->P && column >= 0 && column < g->Q)
            a_quad[i] = run_quad(o->dy, o->patch[i].at - back + j, j, 0, g->N);
    }
#pragma unroll
    for (int i = 0; i < QUADS_AN_ITEM(TILE_N); ++i) {
        const int q = get_local_id(0) + i * WG, j = o->j + DEPTH_OF(q, TILE_N, 0);
        const int c = o->n0 + LINE_OF(q, TILE_N, 0);
        b_quad[i] = (float4)(0.0f);
        if (j < g->N && QUAD_EXISTS(q, TILE_N))
            b_quad[i] = run_quad(o->weight, (((long)j * g->R + r) * g->S + s) * g->C + c, c, 0, g->C);
    }
    o->j += TILE_K;
    if (o->j >= g->N) {
        o->j = 0;
        if (++o->column_tap == o->columns.taps) {
            o->column_tap = 0;
            ++o->row_tap;
        }
    }
}

#else /* DW ------------------------------------------------------------------------------------------------------- */

/* A pixel of y, of image b. */
typedef struct pixel {
    int b, p, q;
} pixel;

static inline pixel pixel_at(const geometry *g, int m) {
    return (pixel){m / g->Q / g->P, m / g->Q % g->P, m % g->Q};
}

/* The pixel that comes `by` later: digits are added, nothing is divided. */
static inline pixel pixel_after(const geometry *g, pixel at, pixel by) {
    const int q = at.q + by.q, carry = q >= g->Q, p = at.p + by.p + carry, carry_p = p >= g->P;
    return (pixel){at.b + by.b + carry_p, carry_p ? p - g->P : p, carry ? q - g->Q : q};
}

struct operands {
    __global const T *dy, *x;
    geometry g;
    int m0;
    int r[QUADS_AN_ITEM(TILE_N)], j[QUADS_AN_ITEM(TILE_N)]; /* of B: row of the kernel and element of its run */
    pixel pixel[QUADS_AN_ITEM(TILE_N)], step;               /* of the next step, and how far it is to the one after it */
    int k, k_end;                                           /* the next step's first, and the end of this part */
};

static inline void operands_begin(struct operands *o, int n0, int step) {
    const geometry *g = &o->g;
    const int run = DIVIDE_UP(g->S * g->C, 4) * 4;
    o->k = step * TILE_K;
    o->step = pixel_at(g, TILE_K);
#pragma unroll
    for (int i = 0; i < QUADS_AN_ITEM(TILE_N); ++i) {
        const int q = get_local_id(0) + i * WG, n = n0 + LINE_OF(q, TILE_N, 0);
        o->r[i] = n < g->R * run && QUAD_EXISTS(q, TILE_N) ? n / run : NO_ROW;
        o->j[i] = n % run;
        o->pixel[i] = pixel_at(g, o->k + DEPTH_OF(q, TILE_N, 0));
    }
}

static inline void fetch_next(struct operands *o, float4 a_quad[QUADS_AN_ITEM(TILE_M)],
                              float4 b_quad[QUADS_AN_ITEM(TILE_N)]) {
    const geometry *g = &o->g;
    step_fetch(o->dy, g->N, 0, TILE_M, o->m0, g->N, o->k, o->k_end, a_quad);
#pragma unroll
    for (int i = 0; i < QUADS_AN_ITEM(TILE_N); ++i) {
        const int q = get_local_id(0) + i * WG, j = o->j[i];
        const int row = o->pixel[i].p * g->stride - g->padding + o->r[i];
        const int column = o->pixel[i].q * g->stride - g->padding;
        b_quad[i] = (float4)(0.0f);
        if (o->k + DEPTH_OF(q, TILE_N, 0) < o->k_end && row >= 0 && row < g->H)
            b_quad[i] = run_quad(o->x, ((long)(o->pixel[i].b * g->H + row) * g->W + column) * g->C + j, j,
                                 -column * g->C, min(g->S, g->W - column) * g->C);
        o->pixel[i] = pixel_after(g, o->pixel[i], o->step);
    }
    o->k += TILE_K;
}

#endif /* ---------------------------------------------------------------------------------------------------------- */

/* C[at ..], of which `cols` columns from n on exist, or the part of it. */
static inline void store_quad(float4 sum, __global const float *bias, __global const TC *addend,
                              __global float *part, __global TC *c, long at, int n, int cols) {
    if (bias) sum += cols >= 4 ? LOADFV(bias, n) : LOADFN(bias, n, cols);
    if (part && cols >= 4) {
        STOREFV(sum, part, at);
    } else if (part) {
        STOREFN(sum, part, at, cols);
    } else if (cols >= 4) {
        if (addend) sum += LOADCV(addend, at);
        STORECV(sum, c, at);
    } else {
        if (addend) sum += LOADCN(addend, at, cols);
        STORECN(sum, c, at, cols);
    }
}
#define OR_NULL(x) (HAS(x) ? AT(x) : 0)

/* Group (split, phase, tile row, tile column), columns innermost. A split is `split_steps` steps of k. */
MANY_REGISTERS __kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void
conv_groups_product(TENSOR(const T, a), TENSOR(const T, b), TENSOR(const float, bias), TENSOR(const TC, addend),
                    TENSOR(TC, c), TENSOR(const float, sums_addend), TENSOR(float, sums), TENSOR(float, partial),
                    const int B, const int H, const int W, const int C, const int P, const int Q, const int N,
                    const int R, const int S, const int stride, const int padding, const int split_steps) {
    __local float4 a_steps[2 * STEP(TILE_M)], b_steps[2 * STEP(TILE_N)];
    struct operands operands = {AT(a), AT(b), {B, H, W, C, P, Q, N, R, S, PHASES ? stride : 1, padding}};
#if PRODUCT == FORWARD
    const int M = B * P * Q, columns = N, most = M, phases = 1, steps = R * DIVIDE_UP(S * C, TILE_K);
    const long elements = (long)M * N;
#elif PRODUCT == DX
    const int each = operands.g.stride, phases = each * each;
    const int most = B * DIVIDE_UP(H, each) * DIVIDE_UP(W, each), columns = C;
    const long elements = (long)B * H * W * C;
#else
    const int run = S * C, padded_run = DIVIDE_UP(run, 4) * 4;
    const int M = N, columns = R * padded_run, most = M, phases = 1, steps = DIVIDE_UP(B * P * Q, TILE_K);
    const long elements = (long)N * R * run;
#endif
    const int across = DIVIDE_UP(columns, TILE_N), down = DIVIDE_UP(most, TILE_M);
    const int group = get_group_id(0), split = group / (across * down * phases), lid = get_local_id(0);
    const int m0 = group / across % down * TILE_M, n0 = group % across * TILE_N, first = split * split_steps;
#if PRODUCT == DX
    const int phase_at = group / (across * down) % phases;
    operands.rows = phase_of(phase_at / each, H, R, &operands.g);
    operands.columns = phase_of(phase_at % each, W, S, &operands.g);
    const int M = B * operands.rows.count * operands.columns.count;
    const int steps = operands.rows.taps * operands.columns.taps * DIVIDE_UP(N, TILE_K);
    if (m0 >= M) return; /* of a phase with fewer pixels than the largest */
#endif
#if PRODUCT == DW
    const bool sums_here = HAS(sums) && n0 == 0;
    operands.m0 = m0;
    operands.k_end = min(B * P * Q, (first + split_steps) * TILE_K);
    operands_begin(&operands, n0, first);
#else
    const bool sums_here = false;
    operands.n0 = n0;
    operands_begin(&operands, m0, first);
#endif

    float4 sum[ITEM_M][ITEM_N / 4];
    float line_sum[LINES_AN_ITEM];
    const int here = min(steps - first, split_steps); /* none in a phase without taps, or past its end */
    tile_clear(sum, line_sum);
    if (here > 0) tile_sum(&operands, here, a_steps, b_steps, sum, sums_here, line_sum);

    __global float *part = HAS(partial) ? AT(partial) + split * elements : 0;
#pragma unroll
    for (int i = 0; i < ITEM_M; ++i) {
        const int m = m0 + ITEM_ROW(i);
        if (m >= M) continue;
#if PRODUCT == DX
        const long line = pixel_of(&operands, m) * C;
#elif PRODUCT == DW
        const long line = (long)m * R * run;
#else
        const long line = (long)m * N;
#endif
#pragma unroll
        for (int j = 0; j < ITEM_N / 4; ++j) {
            const int n = n0 + ITEM_COLUMN(j);
            if (n >= columns) continue;
#if PRODUCT == DW && !QUADS
            const int r = n / padded_run, at = r * run + n % padded_run, cols = (r + 1) * run - at;
#else
            const int at = n, cols = columns - n;
#endif
            store_quad(sum[i][j], split == 0 ? OR_NULL(bias) : 0, OR_NULL(addend), part, AT(c), line + at, at, cols);
        }
    }
    if (sums_here) {
#pragma unroll
        for (int i = 0; i < LINES_AN_ITEM; ++i) {
            const int line = lid + i * WG, m = m0 + line;
            if (line < TILE_M && m < M)
                AT(sums)[(long)split * M + m] = (HAS(sums_addend) ? AT(sums_addend)[m] : 0.0f) + line_sum[i];
        }
    }
}
