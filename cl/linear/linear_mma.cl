/* GEMMs of the linear layer (linear.cl) in f16 or bf16 on matrix units, and in f32 as products of TF32
 * (TF32_PRODUCTS).
 *
 * Sums, bias, activation and their gradients are f32. If the k range is split over groups, the last group of
 * a tile, or linear_reduce of linear.cl, sums the parts (split.clh). */
#include "lib/common.clh"
#include "lib/blocks.clh"
#include "lib/epilogue.clh"
#include "lib/mma.clh"
#include "lib/gemm_mma.clh"
#include "linear/split.clh"

/* Where this work-item's vec8s of the next step are, and the distance to the following one. */
struct operands {
    __global const T *a[VEC8S_AN_ITEM(TILE_M)];
#if BLOCKS
    __global const uchar *b_bytes;
    ulong b[VEC8S_AN_ITEM(TILE_N)], b_elements; /* numbers of values */
#else
    __global const T *b[VEC8S_AN_ITEM(TILE_N)];
#endif
    long a_stride, b_stride;
    int m0, n0, M, N;
    int depth; /* of this part, from the next step on */
};

/* Element at which vec8 i of a step begins; the matrix is stored [lines, ld] if along_k, else [depth, ld].
 * The last line is read in place of lines past it, whose results are not stored. */
static inline long vec8_begin(int i, int tile, int along_k, int line0, int lines, int k0, long ld) {
    const int q = VEC8_NUMBER(i), k = k0 + DEPTH_OF(q, tile, along_k);
    int line = line0 + LINE_OF(q, tile, along_k);
    if (along_k || ALIGNED8) line = min(line, along_k ? lines - 1 : lines - VALUES);
    return along_k ? line * ld + k : k * ld + line;
}
/* Number of its elements that exist. */
static inline int vec8_there(int i, int tile, int along_k, int line0, int lines, int depth) {
    const int q = VEC8_NUMBER(i), left = depth - DEPTH_OF(q, tile, along_k);
    if (along_k) return left;
    if (ALIGNED8) return left > 0 ? VALUES : 0;
    return left > 0 ? lines - line0 - LINE_OF(q, tile, along_k) : 0;
}

#if BLOCKS
/* Stored across k, the width of B is a multiple of a vec8. */
static inline void blocks_begin(struct operands *o, __global const uchar *b, int K, int k0) {
    o->b_bytes = b;
    o->b_elements = (ulong)o->N * K;
    UNROLLED
    for (int i = 0; i < VEC8S_AN_ITEM(TILE_N); ++i) {
        const int q = VEC8_NUMBER(i);
        const ulong k = k0 + DEPTH_OF(q, TILE_N, TRANS_B);
        const ulong line = min(o->n0 + LINE_OF(q, TILE_N, TRANS_B), o->N - (TRANS_B ? 1 : VALUES));
        o->b[i] = TRANS_B ? line * K + k : k * o->N + line;
    }
}
static inline ushort8 b_unpacked(struct operands *o, int i) {
    if (!VEC8_EXISTS(i, TILE_N) || o->depth <= DEPTH_OF(VEC8_NUMBER(i), TILE_N, TRANS_B)) return (ushort8)(0);
    const float4 first = unpackv(o->b_bytes, o->b_elements, o->b[i]);
#if VALUE == 2
    return as_ushort8(first);
#else
    const float4 second = unpackv(o->b_bytes, o->b_elements, o->b[i] + 4);
    ushort8 bits;
#ifdef STORAGE_F16
    vstore_half4_rte(first, 0, (half *)&bits);
    vstore_half4_rte(second, 1, (half *)&bits);
#else
    bits.lo = (ushort4)(bf16_of(first.x), bf16_of(first.y), bf16_of(first.z), bf16_of(first.w));
    bits.hi = (ushort4)(bf16_of(second.x), bf16_of(second.y), bf16_of(second.z), bf16_of(second.w));
#endif
    return bits;
#endif
}
#endif

static inline void operands_begin(struct operands *o, __global const T *a, __global const TB *b, int K, int k) {
    UNROLLED
    for (int i = 0; i < VEC8S_AN_ITEM(TILE_M); ++i)
        o->a[i] = a + vec8_begin(i, TILE_M, !TRANS_A, o->m0, o->M, k, TRANS_A ? o->M : K);
#if BLOCKS
    blocks_begin(o, b, K, k);
#else
    UNROLLED
    for (int i = 0; i < VEC8S_AN_ITEM(TILE_N); ++i)
        o->b[i] = b + vec8_begin(i, TILE_N, TRANS_B, o->n0, o->N, k, TRANS_B ? K : o->N);
#endif
    o->a_stride = TRANS_A ? (long)TILE_K * o->M : TILE_K;
    o->b_stride = TRANS_B ? TILE_K : (long)TILE_K * o->N;
}
/* If a matrix is stored across k, consecutive vec8s of a work-item are this many depths apart. */
#define DEPTHS_APART(tile) (WG / ((tile) / VALUES))
static inline void a_source(struct operands *o, int i, vec8_source *source) {
    source->p = (__global const ushort *)(TRANS_A ? o->a[0] + i * DEPTHS_APART(TILE_M) * (long)o->M : o->a[i]);
    source->n = vec8_there(i, TILE_M, !TRANS_A, o->m0, o->M, o->depth);
}
#if !BLOCKS
static inline void b_source(struct operands *o, int i, vec8_source *source) {
    source->p = (__global const ushort *)(TRANS_B ? o->b[i] : o->b[0] + i * DEPTHS_APART(TILE_N) * (long)o->N);
    source->n = vec8_there(i, TILE_N, TRANS_B, o->n0, o->N, o->depth);
}
#endif
static inline void operands_advance(struct operands *o) {
    UNROLLED
    for (int i = 0; i < (TRANS_A ? 1 : VEC8S_AN_ITEM(TILE_M)); ++i) o->a[i] += TRANS_A ? o->a_stride : TILE_K;
    UNROLLED
    for (int i = 0; i < (TRANS_B || BLOCKS ? VEC8S_AN_ITEM(TILE_N) : 1); ++i) o->b[i] += TRANS_B ? TILE_K : o->b_stride;
    o->depth -= TILE_K;
}

/* Local memory holds the steps and, once they are read, slices of sums, followed by a word for
 * is_last_group. */
#define MEMORY (STEPS_MEMORY > SLICE + 8 ? STEPS_MEMORY : SLICE + 8)

/* A group processes a tile or a part of one (split.clh). */
MATRIX_KERNEL __kernel void linear_mma(TENSOR(const T, a), TENSOR(const TB, b), TENSOR(const float, bias),
                                       TENSOR(const TC, accum), TENSOR(T, saved), TENSOR(TC, c),
                                       TENSOR(const float, sums_accum), TENSOR(float, sums), TENSOR(float, partial),
                                       const int M, const int N, const int K, const int split_depth, const int whole,
                                       TENSOR(int, counters)) {
    MATRIX_SCRATCH(scratch);
    __local ushort8 memory[MEMORY / 8];
    __local ushort *steps = (__local ushort *)memory;
    const share place = share_of(get_group_id(0), M, N, whole);
    const int k_first = place.split * split_depth, k_end = place.in_parts ? min(K, k_first + split_depth) : K;
    const bool sums_here = TRANS_A && HAS(sums) && place.n0 == 0;

    matrix_c sum[BLOCK_M][BLOCK_N];
    line_sums line_sum = 0.0f;
    struct operands operands = {.m0 = place.m0, .n0 = place.n0, .M = M, .N = N, .depth = k_end - k_first};
    operands_begin(&operands, AT(a), AT(b), K, k_first);
    tile_clear(sum);
    tile_sum(&operands, (k_end - k_first + TILE_K - 1) / TILE_K, steps, steps + STAGES * A_STEP, sum, sums_here,
             &line_sum, scratch);
#if LAST_GROUP
    __local int *before = (__local int *)(steps + SLICE);
    if (get_local_id(0) == 0) *before = 0; /* a 0 unknown to the compiler (is_last_group) */
    barrier(CLK_LOCAL_MEM_FENCE);          /* the word of the last group is written */
    const int zero = *before;
#else
    const int zero = 0;
#endif
    const share own = share_of(get_group_id(0) + zero, M, N, whole);
    const int m0 = own.m0, n0 = own.n0, split = own.split, lid = get_local_id(0) + zero;
    const int splits =
        HAS(counters) && own.in_parts ? (K + split_depth - 1) / split_depth : 0; /* 0: nothing to add up here */
    const long part_size = part_elements(M, N, whole);
    __global float *part = own.in_parts ? AT(partial) + split * part_size - part_begin(N, whole) : 0;
    __global float *line_parts = splits ? AT(partial) + splits * part_size : OR_NULL(sums);
    const float own_sum = line_sum_of(line_sum, steps);
    if (sums_here && lid < TILE_M && m0 + lid < M)
        line_parts[(long)split * M + m0 + lid] =
            (HAS(sums_accum) && !splits ? AT(sums_accum)[m0 + lid] : 0.0f) + own_sum;

    for (int s = 0; s < SLICES; ++s) {
        slice_place(sum, s, steps);
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int q = lid; q < SLICE_VEC4S; q += WG) {
            const int m = m0 + SLICE_ROW(q, s), n = n0 + SLICE_COLUMN(q);
            if (m < M && n < N)
                write_sum(slice_vec4(steps, q), part, OR_NULL(bias), OR_NULL(accum), OR_NULL(saved), AT(c),
                          (long)m * N + n, n, LEFT(n, N));
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
#if LAST_GROUP
    if (!splits || !is_last_group(AT(counters) + own.tile - whole, splits, before)) return;
    tile_of_parts(AT(partial) - part_begin(N, whole), part_size, splits, lid, m0, n0, M, N, OR_NULL(bias),
                  OR_NULL(accum), OR_NULL(saved), AT(c));
    if (sums_here) line_sums_of_parts(line_parts, splits, lid, m0, M, OR_NULL(sums_accum), AT(sums));
#endif
}
