/* GEMMs of the linear layer (linear.cl) in f16 or bf16 on matrix units.
 *
 * Sums, bias, activation and their gradients are f32. If the k range is split over groups, linear_reduce of
 * linear.cl sums the parts. */
#include "lib/common.clh"
#include "lib/epilogue.clh"
#include "lib/mma.clh"
#include "lib/gemm_mma.clh"

struct operands {
    __global const ushort *a, *b; /* bits of T */
    int m0, n0, M, N, K;
    int k, k_end; /* first k of the next step, and the end of this part */
};

static inline void next_step(struct operands *o, vec8_source *a, vec8_source *b) {
    *a = matrix_source(o->a, TRANS_A ? o->M : o->K, !TRANS_A, TILE_M, o->m0, o->M, o->k, o->k_end);
    *b = matrix_source(o->b, TRANS_B ? o->K : o->N, TRANS_B, TILE_N, o->n0, o->N, o->k, o->k_end);
    o->k += TILE_K;
}

/* A group processes (split, tile row, tile column), columns innermost. */
MATRIX_KERNEL __kernel void linear_mma(TENSOR(const T, a), TENSOR(const T, b), TENSOR(const float, bias),
                                       TENSOR(const TC, accum), TENSOR(T, saved), TENSOR(TC, c),
                                       TENSOR(const float, sums_accum), TENSOR(float, sums), TENSOR(float, partial),
                                       const int M, const int N, const int K, const int split_depth) {
    MATRIX_SCRATCH(scratch);
    __local ushort8 memory[STEPS_MEMORY / 8];
    __local ushort *steps = (__local ushort *)memory;
    const int across = (N + TILE_N - 1) / TILE_N, down = (M + TILE_M - 1) / TILE_M;
    const int group = get_group_id(0), split = group / (across * down), lid = get_local_id(0);
    const int m0 = group / across % down * TILE_M, n0 = group % across * TILE_N;
    const int k_first = split * split_depth, k_end = min(K, k_first + split_depth);
    const bool sums_here = TRANS_A && HAS(sums) && n0 == 0;
    __global float *part = HAS(partial) ? AT(partial) + (long)split * M * N : 0;

    matrix_c sum[BLOCK_M][BLOCK_N];
    float line_sum = 0.0f;
    struct operands operands = {
        (__global const ushort *)AT(a), (__global const ushort *)AT(b), m0, n0, M, N, K, k_first, k_end};
    tile_clear(sum);
    tile_sum(&operands, (k_end - k_first + TILE_K - 1) / TILE_K, steps, steps + STAGES * A_STEP, sum, sums_here,
             &line_sum, scratch);
    if (sums_here && lid < TILE_M && m0 + lid < M)
        AT(sums)[(long)split * M + m0 + lid] = (HAS(sums_accum) ? AT(sums_accum)[m0 + lid] : 0.0f) + line_sum;

    for (int s = 0; s < SLICES; ++s) {
        slice_place(sum, s, steps);
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int q = lid; q < SLICE_VEC4S; q += WG) {
            const int m = m0 + SLICE_ROW(q, s), n = n0 + SLICE_COLUMN(q);
            if (m < M && n < N)
                write_sum(slice_vec4(steps, q), part, OR_NULL(bias), OR_NULL(accum), OR_NULL(saved), AT(c),
                          (long)m * N + n, n, N - n);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
