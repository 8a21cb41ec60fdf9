/* Convolution and its gradients as GEMMs (conv_gemm.clh) on matrix units, of f16 or bf16, or of f32 as
 * products of TF32.
 *
 * C of x, and for DX and DW also N, are multiples of 8 (f32: 4), so that a vec8 of halves is within one
 * pixel: it is one load, or zeros. */
#include "lib/common.clh"
#include "conv/conv.clh"
#include "lib/result.clh"
#include "lib/mma.clh"
#define TRANS_A (CONV_KIND == CONV_DW)
#define TRANS_B (CONV_KIND == CONV_FORWARD)
#define ALIGNED8 1
#define ALIGNED4 1
/* The addresses of patches take registers, and so do copies that are not asynchronous: ptxas 12.9 would spill. */
#if MATRIX_UNIT == MATRIX_NV75
#define AHEAD 0
#endif
#include "lib/gemm_mma.clh"
#define CHUNK VALUES
#include "conv/conv_gemm.clh"

/* If pixels are found by division, the division is done once for each line of the tile. */
#define LINES_KEPT (CONV_KIND == CONV_DX && PHASES)

static inline void stretch_vec8(const stretch *s, vec8_source *source) {
    source->p = (__global const ushort *)s->p;
    source->n = EXISTS(s, 0) ? 8 : 0;
}

static inline void a_source(struct operands *o, int i, vec8_source *source) {
    stretch chunk;
    a_chunk(o, i, &chunk);
    stretch_vec8(&chunk, source);
}
static inline void b_source(struct operands *o, int i, vec8_source *source) {
    stretch chunk;
    b_chunk(o, i, &chunk);
    stretch_vec8(&chunk, source);
}

/* Local memory holds the steps and, once they are read, slices of sums, followed by a word for is_last_group
 * and the pixels of the lines. With pixels, memory below 32 KiB is padded by 16 bytes, so that four groups do
 * not fit an SM of 64 KiB: if they fit, ptxas 13.0 aims at 128 registers, and spills. */
#define BEHIND (8 + 2 * TILE_M)
#define NEEDED (STEPS_MEMORY > SLICE + BEHIND ? STEPS_MEMORY : SLICE + BEHIND)
#define MEMORY (NEEDED + (NEEDED < 16384 ? 8 * LINES_KEPT : 0))

MATRIX_KERNEL __kernel void conv_mma(TENSOR(const T, a), TENSOR(const T, b), TENSOR(const float, bias),
                                     TENSOR(const TC, accum), TENSOR(TC, c), TENSOR(const float, sums_accum),
                                     TENSOR(float, sums), TENSOR(float, partial), GEOMETRY, const int split_steps,
                                     TENSOR(int, counters)) {
    MATRIX_SCRATCH(scratch);
    __local ushort8 memory[MEMORY / 8];
    __local ushort *steps = (__local ushort *)memory;
    const int lid = get_local_id(0);
    struct operands operands = {AT(a), AT(b), GEOMETRY_GIVEN};
    own_tile tile;
    tile_begin(&operands, split_steps, &tile);
    if (CONV_KIND == CONV_DX && tile.m0 >= tile.M) return;
    const bool sums_here = CONV_KIND == CONV_DW && HAS(sums) && tile.n0 == 0;

    matrix_c sum[BLOCK_M][BLOCK_N];
    line_sums line_sum = 0.0f;
    tile_clear(sum);
    if (tile.steps > 0)
        tile_sum(&operands, tile.steps, steps, steps + STAGES * A_STEP, sum, sums_here, &line_sum, scratch);
#if LAST_GROUP
    __local int *before = (__local int *)(steps + SLICE);
    if (lid == 0) *before = 0;    /* a 0 unknown to the compiler (is_last_group) */
    barrier(CLK_LOCAL_MEM_FENCE); /* the word of the last group is written */
    tile_of_group(&operands, get_group_id(0) + *before, split_steps, &tile);
#endif
    const float own_sum = line_sum_of(line_sum, steps);
    if (sums_here && lid < TILE_M && tile.m0 + lid < tile.M)
        STOREF((HAS(sums_accum) && !HAS(counters) ? AT(sums_accum)[tile.m0 + lid] : 0.0f) + own_sum, OWN_SUMS(&tile),
               tile.m0 + lid);
#if LINES_KEPT
    __local int *pixels = (__local int *)(steps + SLICE + 8);
    if (lid < TILE_M) pixels[lid] = pixel_of(&operands, tile.m0 + lid);
#endif

    __global float *part = HAS(partial) ? AT(partial) + tile.split * tile.elements : 0;
    for (int s = 0; s < SLICES; ++s) {
        slice_place(sum, s, steps);
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int q = lid; q < SLICE_VEC4S; q += WG) {
            const int m = tile.m0 + SLICE_ROW(q, s), n = tile.n0 + SLICE_COLUMN(q);
            if (m >= tile.M || n >= tile.columns) continue;
#if LINES_KEPT
            const long line = (long)pixels[SLICE_ROW(q, s)] * C;
#else
            const long line = line_of(&operands, m);
#endif
            store_vec4(slice_vec4(steps, q), tile.split == 0 ? OR_NULL(bias) : 0, OR_NULL(accum), part, AT(c), line + n,
                       n, tile.columns - n);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
#if LAST_GROUP
    if (HAS(counters) && is_last_group(AT(counters) + tile.number, get_num_groups(0) / tile.count, before))
        tile_of_parts(&operands, &tile, AT(partial), OR_NULL(accum), AT(c), OR_NULL(sums_accum),
                      sums_here ? AT(sums) : 0);
#endif
}
