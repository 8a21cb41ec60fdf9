/* GEMMs of the linear layer, its gradients, and the reduction of their partial sums.
 *
 * All three products have the form
 *
 *   C[m, n] = accum[m, n] + bias[n] + sum over k of A[m, k] B[k, n]
 *
 *   forward   C = y [rows, N]     A = x  [rows, K]             B = weight^T (stored [N, K])
 *   dx        C = dx [rows, K]    A = dy [rows, N]             B = weight
 *   dW        C = dW [N, K]       A = dy^T (stored [rows, N])  B = x              and db = row sums of A
 *
 * C and accum have the operands' type, or are f32 beside half operands (result.clh). bias, accum and sums are
 * optional. C may overwrite accum in place, because each element is read and written by the same work-item.
 * If the k range is split over groups, each group writes its own part of `partial` [splits, M, N], and the
 * last group of a tile or linear_reduce sums the parts in order; on GPUs the first tiles may be whole
 * (split.clh). A following activation, or its gradient, is applied when C is stored (epilogue.clh, with
 * `saved` [M, N]). A frozen weight may come in blocks (blocks.clh). */
#include "lib/common.clh"
#include "lib/blocks.clh"
#include "lib/epilogue.clh"

#if WG == 1 /* --- one work-item, wide vectors ------------------------------------------------------------ */

#include "lib/gemm_cpu.clh"

/* Prefetches what a tile is added and stored to; at: its first element. */
INLINED void results_prefetch(__global float *part, __global const TC *accum, __global T *saved, __global TC *c,
                              long at, int N) {
    if (accum && accum != c) tile_prefetch(accum + at, N);
    if (!part) tile_prefetch_write(c + at, N);
    if (EPILOGUE != EPILOGUE_NONE && saved) tile_prefetch((__global const TC *)(saved + at), N);
}

/* Stores the first `rows` rows and `cols` columns of a tile; n: its first column. */
INLINED void tile_store(const floatv *kept, __global float *part, __global const float *bias, __global const TC *accum,
                        __global T *saved, __global TC *c, long at, int n, int N, int rows, int cols) {
    if (cols == TILE_COLS) {
        /* Unrolled, a first start takes 0.3 s longer (5.2 instead of 4.9 s), and a step is at most 0.6 % faster. */
#pragma nounroll
        for (int i = 0; i < min(TILE_ROWS, rows); ++i) {
#pragma unroll
            for (int v = 0; v < TILE_VECS; ++v)
                write_sum(kept[i * TILE_VECS + v], part, bias, accum, saved, c, at + (long)i * N + v * VEC, n + v * VEC,
                          VEC);
        }
        return;
    }
#pragma nounroll
    for (int i = 0; i < min(TILE_ROWS, rows); ++i)
#pragma nounroll
        for (int v = 0; v * VEC < cols; ++v)
            write_sum(kept[i * TILE_VECS + v], part, bias, accum, saved, c, at + (long)i * N + v * VEC, n + v * VEC,
                      cols - v * VEC);
}

/* A work-item processes (split, row block, column block), column blocks innermost, so that neighbours read
 * the same rows of A. */
OUTLINED void linear_block(TENSOR(const T, a), TENSOR(const TB, b), TENSOR(const float, bias), TENSOR(const TC, accum),
                           TENSOR(T, saved), TENSOR(TC, c), TENSOR(const float, sums_accum), TENSOR(float, sums),
                           TENSOR(float, partial), const int M, const int N, const int K, const int block_rows,
                           const int block_panels, const int split_depth, const int group) {
    const int width = block_panels * TILE_COLS;
    const int across = (N + width - 1) / width, down = (M + block_rows - 1) / block_rows;
    const int split = group / (across * down);
    const int m0 = group / across % down * block_rows, n0 = group % across * width;
    const int rows = min(block_rows, M - m0), cols = min(width, N - n0);
    const int k_first = split * split_depth, k_end = min(K, k_first + split_depth);
    const long lda = TRANS_A ? M : K, ldb = TRANS_B ? K : N;
    const int row_tiles = (rows + TILE_ROWS - 1) / TILE_ROWS, panels = (cols + TILE_COLS - 1) / TILE_COLS;

    __global float *part = HAS(partial) ? AT(partial) + (long)split * M * N : 0;

    floatv panel_vectors[CHUNK * TILE_VECS], copy_vectors[COPY_FLOATS / VEC], row_sums[BLOCK_ROWS / VEC];
    float *panel = (float *)panel_vectors, *copy = (float *)copy_vectors;
    floatv block[BLOCK_PANELS * BLOCK_ROWS * TILE_VECS]; /* [panel][row][TILE_VECS]: C between chunks */
    if (cols % TILE_COLS) panel_clear(panel);
    for (int i = 0; i < BLOCK_ROWS / VEC; ++i) row_sums[i] = (floatv)(0.0f);

    for (int k0 = k_first; k0 < k_end; k0 += CHUNK) {
        const int depth = min(CHUNK, k_end - k0);
        const bool first = k0 == k_first, last = k0 + CHUNK >= k_end;
        __global const T *a_part = AT(a) + (TRANS_A ? k0 * lda + m0 : m0 * lda + k0);
        rows_load(a_part, lda, depth, rows, copy, row_sums);
        for (int p = 0; p * TILE_COLS < cols; ++p) {
            const int n = n0 + p * TILE_COLS, here = min(TILE_COLS, N - n);
            const bool more = (p + 1) * TILE_COLS < cols;
            /* The next panel: of this block, or the first one of the next block, which usually runs on the
             * same core. */
            const int next_n = more ? n + TILE_COLS : !last ? n0 : n0 + width < N ? n0 + width : 0;
            const int next_k = more ? k0 : last ? k_first : k0 + CHUNK;
            const b_pointer next =
                B_POINTER(AT(b), (ulong)N * K, TRANS_B ? next_n * ldb + next_k : next_k * ldb + next_n);
            panel_load(B_POINTER(AT(b), (ulong)N * K, TRANS_B ? n * ldb + k0 : k0 * ldb + n), ldb, depth, here, panel);
            for (int r = 0; r < rows; r += TILE_ROWS) {
                row_pointer row[TILE_ROWS];
                prefetch_list ahead[2];
                floatv *kept = block + (p * BLOCK_ROWS + r) * TILE_VECS;
                const long at = (long)(m0 + r) * N + n;
                const int next_depth = min(CHUNK, k_end - next_k), next_cols = min(TILE_COLS, N - next_n);
                tile_rows(ROWS_OF_A(copy, a_part), PACKS_A ? COPY_PITCH(depth) : lda, r, rows, row);
                if (TRANS_A) {
                    ahead[0] = prefetch_list_of(B_ADDRESS(next), ldb, next_depth, next_cols, r / TILE_ROWS, row_tiles);
                    ahead[1] = prefetch_list_of(a_part + CHUNK * lda, lda, min(CHUNK, k_end - k0 - CHUNK), rows,
                                                p * row_tiles + r / TILE_ROWS, panels * row_tiles);
                } else {
                    panel_prefetch(next, ldb, next_depth, next_cols, r / TILE_ROWS, row_tiles);
                    tile_rows_prefetch(a_part, lda, depth, r + TILE_ROWS, rows);
                }
                if (last) results_prefetch(part, OR_NULL(accum), OR_NULL(saved), AT(c), at, N);
                tile_add_prefetch(row, ROW_STEP(lda), panel, depth, first, kept, TRANS_A ? ahead : 0);
                if (last)
                    tile_store(kept, part, OR_NULL(bias), OR_NULL(accum), OR_NULL(saved), AT(c), at, n, N, rows - r,
                               here);
            }
        }
    }
    if (PACKS_A && HAS(sums) && n0 == 0)
        row_sums_store(row_sums, rows, HAS(sums_accum) ? AT(sums_accum) + m0 : 0, AT(sums) + (long)split * M + m0);
}

__kernel void linear_cpu(TENSOR(const T, a), TENSOR(const TB, b), TENSOR(const float, bias), TENSOR(const TC, accum),
                         TENSOR(T, saved), TENSOR(TC, c), TENSOR(const float, sums_accum), TENSOR(float, sums),
                         TENSOR(float, partial), const int M, const int N, const int K, const int block_rows,
                         const int block_panels, const int split_depth) {
    linear_block(PASS(a), PASS(b), PASS(bias), PASS(accum), PASS(saved), PASS(c), PASS(sums_accum), PASS(sums),
                 PASS(partial), M, N, K, block_rows, block_panels, split_depth, get_group_id(0));
}

#if !BLOCKS
/* For few columns: vectors extend along k (both operands are stored that way), and each is reduced to one sum
 * at the end. A work-item processes `block_rows` rows. */
#define NARROW 4
OUTLINED void narrow_rows(TENSOR(const T, a), TENSOR(const T, b), TENSOR(const float, bias), TENSOR(const T, accum),
                          TENSOR(T, c), const int M, const int N, const int K, const int block_rows, const int group) {
    const int m0 = group * block_rows, m_end = min(M, m0 + block_rows);
    const int whole = K / VEC * VEC;
    for (int m = m0; m < m_end; m += NARROW)
        for (int n = 0; n < N; n += NARROW) {
            __global const T *row[NARROW], *column[NARROW];
            floatv sum[NARROW][NARROW];
#pragma unroll
            for (int i = 0; i < NARROW; ++i) {
                row[i] = AT(a) + (long)min(m + i, M - 1) * K;
                column[i] = AT(b) + (long)min(n + i, N - 1) * K;
#pragma unroll
                for (int j = 0; j < NARROW; ++j) sum[i][j] = (floatv)(0.0f);
            }
            for (int k = 0; k < K; k += VEC) {
                floatv x[NARROW], w[NARROW];
#pragma unroll
                for (int i = 0; i < NARROW; ++i) {
                    x[i] = k < whole ? LOADV(row[i], k) : LOADN(row[i], k, K - k);
                    w[i] = k < whole ? LOADV(column[i], k) : LOADN(column[i], k, K - k);
                }
#pragma unroll
                for (int i = 0; i < NARROW; ++i) {
#pragma unroll
                    for (int j = 0; j < NARROW; ++j) sum[i][j] += x[i] * w[j];
                }
            }
#pragma unroll
            for (int i = 0; i < NARROW; ++i) {
#pragma unroll
                for (int j = 0; j < NARROW; ++j) {
                    if (m + i >= m_end || n + j >= N) continue;
                    const long at = (long)(m + i) * N + n + j;
                    float y = sumv(sum[i][j]);
                    if (HAS(bias)) y += AT(bias)[n + j];
                    if (HAS(accum)) y += LOAD(AT(accum), at);
                    STORE(y, AT(c), at);
                }
            }
        }
}

__kernel void linear_narrow(TENSOR(const T, a), TENSOR(const T, b), TENSOR(const float, bias), TENSOR(const T, accum),
                            TENSOR(T, c), const int M, const int N, const int K, const int block_rows) {
    narrow_rows(PASS(a), PASS(b), PASS(bias), PASS(accum), PASS(c), M, N, K, block_rows, get_group_id(0));
}
#endif

#elif VEC == 4 /* --- groups with local memory ------------------------------------------------------------ */

#include "lib/gemm_gpu.clh"

/* Number of a work-item's vec4s of sums that await their epilogue at once. */
#if EPILOGUE == EPILOGUE_GELU || EPILOGUE == EPILOGUE_GELU_GRAD
#define SUMS_WAIT 2
#define PART_LEFT(n, N) LEFT(n, N)
#else
#define SUMS_WAIT 0
#endif
#include "linear/split.clh"

struct operands {
    /* this work-item's vec4s of the next step */
    __global const T *a_at[VEC4S_PER_ITEM(TILE_M)];
#if BLOCKS
    ulong b_at[VEC4S_PER_ITEM(TILE_N)], b_elements;
    __global const uchar *b;
#else
    __global const T *b_at[VEC4S_PER_ITEM(TILE_N)];
#endif
    long lda, ldb;
    int m0, n0, M, N, depth; /* depth: of the part of k */
};

#if BLOCKS
/* As matrix_begin and matrix_fetch_part, for a weight in blocks. Stored across k, its width is a multiple of 4. */
static inline void blocks_begin(struct operands *o, __global const uchar *b, int K, int k0) {
    o->b = b;
    o->b_elements = (ulong)o->N * K;
#pragma unroll
    for (int i = 0; i < VEC4S_PER_ITEM(TILE_N); ++i) {
        const ulong k = k0 + OWN_DEPTH(i, TILE_N, TRANS_B);
        const ulong line = min(o->n0 + OWN_LINE(i, TILE_N, TRANS_B), o->N - (TRANS_B ? 1 : 4));
        o->b_at[i] = TRANS_B ? line * o->ldb + k : k * o->ldb + line;
    }
}
static inline void blocks_fetch(struct operands *o, int depth, float4 *vec4) {
#pragma unroll
    for (int i = 0; i < VEC4S_PER_ITEM(TILE_N); ++i) {
        vec4[i] = (float4)(0.0f);
        if (VEC4_EXISTS(i, TILE_N) && depth - OWN_DEPTH(i, TILE_N, TRANS_B) >= (TRANS_B ? 4 : 1))
            vec4[i] = unpackv(o->b, o->b_elements, o->b_at[i]);
        o->b_at[i] += TRANS_B ? depth : depth * o->ldb;
    }
}
#endif

static inline void operands_begin(struct operands *o, __global const T *a, __global const TB *b, int K, int k) {
    matrix_begin(a, o->lda, !TRANS_A, TILE_M, o->m0, o->M, k, o->a_at);
#if BLOCKS
    blocks_begin(o, b, K, k);
#else
    matrix_begin(b, o->ldb, TRANS_B, TILE_N, o->n0, o->N, k, o->b_at);
#endif
}

INLINED void fetch_first(struct operands *o, float4 a_vec4[VEC4S_PER_ITEM(TILE_M)],
                         float4 b_vec4[VEC4S_PER_ITEM(TILE_N)]) {
    const int depth = (o->depth - 1) % TILE_K + 1;
    matrix_fetch_part(o->a_at, o->lda, depth, !TRANS_A, TILE_M, o->m0, o->M, a_vec4);
#if BLOCKS
    blocks_fetch(o, depth, b_vec4);
#else
    matrix_fetch_part(o->b_at, o->ldb, depth, TRANS_B, TILE_N, o->n0, o->N, b_vec4);
#endif
}

INLINED void fetch_next(struct operands *o, float4 a_vec4[VEC4S_PER_ITEM(TILE_M)],
                        float4 b_vec4[VEC4S_PER_ITEM(TILE_N)]) {
    matrix_fetch(o->a_at, TRANS_A ? TILE_K * o->lda : TILE_K, !TRANS_A, TILE_M, o->m0, o->M, a_vec4);
#if BLOCKS
    blocks_fetch(o, TILE_K, b_vec4);
#else
    matrix_fetch(o->b_at, TRANS_B ? TILE_K : TILE_K * o->ldb, TRANS_B, TILE_N, o->n0, o->N, b_vec4);
#endif
}

/* A group processes a tile or a part of one (split.clh). */
MANY_REGISTERS __kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void
linear_gpu(TENSOR(const T, a), TENSOR(const TB, b), TENSOR(const float, bias), TENSOR(const TC, accum),
           TENSOR(T, saved), TENSOR(TC, c), TENSOR(const float, sums_accum), TENSOR(float, sums),
           TENSOR(float, partial), const int M, const int N, const int K, const int split_depth, const int whole,
           TENSOR(int, counters)) {
    __local float4 steps[2 * STEPS];
    LINE_MEMORY float4 lines[LINE_SUMS];
#if LAST_GROUP
    __local int before;
#endif
    const share own = share_of(get_group_id(0), M, N, whole);
    const int m0 = own.m0, n0 = own.n0, split = own.split;
    const int k_first = split * split_depth, k_end = own.in_parts ? min(K, k_first + split_depth) : K;
    const bool sums_here = TRANS_A && HAS(sums) && n0 == 0;

    /* Values needed after the sum are kept in local memory, which saves registers during it. */
    __local share place;
    __local parts_of_c parts;
    if (get_local_id(0) == 0) {
        place = own;
        parts = parts_of(M, N, whole, HAS(counters) && own.in_parts ? (K + split_depth - 1) / split_depth : 0);
    }

    float4 sum[ITEM_M][ITEM_N / 4];
    if (sums_here) *OWN_LINES(lines) = (float4)(0.0f);
    struct operands operands = {
        .lda = TRANS_A ? M : K, .ldb = TRANS_B ? K : N, .m0 = m0, .n0 = n0, .M = M, .N = N, .depth = k_end - k_first};
    operands_begin(&operands, AT(a), AT(b), K, k_first);
    tile_clear(sum);
    tile_sum(&operands, (k_end - k_first + TILE_K - 1) / TILE_K, steps, sum, sums_here, OWN_LINES(lines));

    const int in_parts = place.in_parts;
    const int lid = (int)get_local_id(0) + parts.zero;
    const int m_first = place.m0 + OWN_M(lid) * 4, n_first = place.n0 + OWN_N(lid) * 4;
    const int splits = parts.splits; /* 0: nothing to add up here */
    __global float *part = in_parts ? AT(partial) + place.split * parts.size - parts.begin : 0;
    __global float *line_parts = splits ? AT(partial) + splits * parts.size : OR_NULL(sums);
#if SUMS_WAIT
    /* One copy of the epilogue for each SUMS_WAIT vec4s, which wait in local memory: 16 copies would not be
     * unrolled, so that all sums would be in memory (clang 19, f16), or would take 130 to 145 registers. */
    barrier(CLK_LOCAL_MEM_FENCE);
    __local float4 *own_sums = steps + lid;
#pragma unroll
    for (int first = 0; first < ITEM_M * ITEM_N / 4; first += SUMS_WAIT) {
#pragma unroll
        for (int v = 0; v < SUMS_WAIT; ++v)
            own_sums[v * WG] = sum[(first + v) / (ITEM_N / 4)][(first + v) % (ITEM_N / 4)];
#pragma unroll 1
        for (int v = 0; v < SUMS_WAIT; ++v) {
            const int i = (first + v) / (ITEM_N / 4), j = (first + v) % (ITEM_N / 4);
            const int m = m_first + ROW_STEP(i), n = n_first + COLUMN_STEP(j);
            if (m < M && n < N)
                write_sum(own_sums[v * WG], part, OR_NULL(bias), OR_NULL(accum), OR_NULL(saved), AT(c), (long)m * N + n,
                          n, LEFT(n, N));
        }
    }
#else
#pragma unroll
    for (int i = 0; i < ITEM_M; ++i) {
#pragma unroll
        for (int j = 0; j < ITEM_N / 4; ++j) {
            const int m = m_first + ROW_STEP(i), n = n_first + COLUMN_STEP(j);
            const long at = (long)m * N + n;
            if (m >= M || n >= N) continue;
            write_sum(sum[i][j], part, OR_NULL(bias), OR_NULL(accum), OR_NULL(saved), AT(c), at, n, N - n);
        }
    }
#endif
    if (sums_here) {
        const float4 line_sum = line_sums(lid, *OWN_LINES(lines), steps);
        const float four[4] = {line_sum.x, line_sum.y, line_sum.z, line_sum.w};
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int m = place.m0 + lid * 4 + i;
            if (lid < TILE_M / 4 && m < M)
                line_parts[(long)place.split * M + m] =
                    (HAS(sums_accum) && !splits ? AT(sums_accum)[m] : 0.0f) + four[i];
        }
    }
#if LAST_GROUP
    if (!splits || !is_last_group(AT(counters) + place.tile - whole, splits, &before)) return;
    tile_of_parts(AT(partial) - parts.begin, parts.size, splits, lid, place.m0, place.n0, M, N, OR_NULL(bias),
                  OR_NULL(accum), OR_NULL(saved), AT(c));
    if (sums_here) line_sums_of_parts(line_parts, splits, lid, place.m0, M, OR_NULL(sums_accum), AT(sums));
#endif
}

#endif /* --- any shape ----------------------------------------------------------------------------------- */

/* C = accum + the sum of the parts of n elements each, with the epilogue applied. */
__kernel void linear_reduce(TENSOR(const float, partial), TENSOR(const T, accum), TENSOR(T, saved), TENSOR(T, c),
                            const ulong n, const int splits) {
    FOR_VECTORS(s, n) {
        floatv sum = HAS(accum) ? LOADV(AT(accum), s.at) : (floatv)(0.0f);
        for (int i = 0; i < splits; ++i) sum += LOADFV(AT(partial) + i * n, s.at);
        STOREV(finish(sum, OR_NULL(saved), s.at, VEC), AT(c), s.at);
    }
    if (OWNS_TAIL(n)) {
        const ulong at = TAIL_AT(n);
        const int rest = (int)(n - at);
        floatv sum = HAS(accum) ? LOADN(AT(accum), at, rest) : (floatv)(0.0f);
        for (int i = 0; i < splits; ++i) sum += LOADFN(AT(partial) + i * n, at, rest);
        STOREN(finish(sum, OR_NULL(saved), at, rest), AT(c), at, rest);
    }
}

/* C = bias + accum: initializes C for a product that can only add to C. */
__kernel void linear_prepare(TENSOR(const float, bias), TENSOR(const TC, accum), TENSOR(TC, c), const long M,
                             const int N) {
    const int vectors = (N + VEC - 1) / VEC;
    for (long i = get_global_id(0); i < M * vectors; i += get_global_size(0)) {
        const long m = i / vectors;
        const int n = i % vectors * VEC;
        write_row((floatv)(0.0f), OR_NULL(bias), OR_NULL(accum), 0, AT(c), m * N + n, n, N - n);
    }
}

/* sums[split, n] = accum[n] + the sum over the split's `depth` rows of x [rows, N]. */
__kernel void linear_sums(TENSOR(const T, x), TENSOR(const float, accum), TENSOR(float, sums), const int rows,
                          const int N, const int depth) {
    const int vectors = (N + VEC - 1) / VEC, splits = (rows + depth - 1) / depth;
    for (long i = get_global_id(0); i < (long)splits * vectors; i += get_global_size(0)) {
        const int split = i / vectors, n = i % vectors * VEC, end = min(rows, (split + 1) * depth);
        floatv sum = (floatv)(0.0f);
        if (n + VEC <= N) {
            for (int m = split * depth; m < end; ++m) sum += LOADV(AT(x), (long)m * N + n);
            if (HAS(accum)) sum += LOADFV(AT(accum), n);
            STOREFV(sum, AT(sums), (long)split * N + n);
        } else {
            for (int m = split * depth; m < end; ++m) sum += LOADN(AT(x), (long)m * N + n, N - n);
            if (HAS(accum)) sum += LOADFN(AT(accum), n, N - n);
            STOREFN(sum, AT(sums), (long)split * N + n, N - n);
        }
    }
}

#if BLOCKS
#define WEIGHT(b, elements, i) unpack(b, elements, i)
#else
#define WEIGHT(b, elements, i) LOAD(b, i)
#endif
/* Plain form, one work-item per element. Element (m, k) of A is a[m * a_m + k * a_k]; (k, n) of B is
 * b[n * b_n + k * b_k]. */
__kernel void linear_plain(TENSOR(const T, a), TENSOR(const TB, b), TENSOR(const float, bias), TENSOR(const TC, accum),
                           TENSOR(T, saved), TENSOR(TC, c), const long M, const int N, const int K, const long a_m,
                           const long a_k, const long b_n, const long b_k) {
    for (long at = get_global_id(0); at < M * N; at += get_global_size(0)) {
        const long m = at / N, n = at % N;
        float sum = 0.0f;
        for (int k = 0; k < K; ++k)
            sum += LOAD(AT(a), m * a_m + k * a_k) * WEIGHT(AT(b), (ulong)N * K, n * b_n + k * b_k);
        write_row((floatv)(sum), OR_NULL(bias), OR_NULL(accum), OR_NULL(saved), AT(c), at, n, 1);
    }
}
