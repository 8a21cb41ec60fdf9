/* Convolution and its gradients as GEMMs (conv_gemm.clh) with sums in the registers of work-items.
 *
 *   ALIGNED4    1: C of x, and for DX and DW also N, are multiples of 4 */
#include "lib/common.clh"
#include "conv/conv.clh"
#include "lib/result.clh"
#define TRANS_A (CONV_KIND == CONV_DW)
#define TRANS_B (CONV_KIND == CONV_FORWARD)
#include "lib/gemm_gpu.clh"
#define CHUNK 4
#include "conv/conv_gemm.clh"

static inline float4 stretch_vec4(const stretch *s) {
    float4 vec4 = (float4)(0.0f);
#if ALIGNED4
    if (EXISTS(s, 0)) vec4 = LOAD_VEC4(s->p, 0);
#else
    if (EXISTS(s, 0) && EXISTS(s, 3)) {
        vec4 = LOADV(s->p, 0);
    } else {
        if (EXISTS(s, 0)) vec4.x = LOAD(s->p, 0);
        if (EXISTS(s, 1)) vec4.y = LOAD(s->p, 1);
        if (EXISTS(s, 2)) vec4.z = LOAD(s->p, 2);
        if (EXISTS(s, 3)) vec4.w = LOAD(s->p, 3);
    }
#endif
    return vec4;
}

INLINED void fetch_next(struct operands *o, float4 a_vec4[VEC4S_PER_ITEM(TILE_M)],
                        float4 b_vec4[VEC4S_PER_ITEM(TILE_N)]) {
    stretch chunk;
#pragma unroll
    for (int i = 0; i < VEC4S_PER_ITEM(TILE_M); ++i) {
        a_chunk(o, i, &chunk);
        a_vec4[i] = stretch_vec4(&chunk);
    }
#pragma unroll
    for (int i = 0; i < VEC4S_PER_ITEM(TILE_N); ++i) {
        b_chunk(o, i, &chunk);
        b_vec4[i] = stretch_vec4(&chunk);
    }
    operands_advance(o);
}

INLINED void fetch_first(struct operands *o, float4 a_vec4[VEC4S_PER_ITEM(TILE_M)],
                         float4 b_vec4[VEC4S_PER_ITEM(TILE_N)]) {
    fetch_next(o, a_vec4, b_vec4);
}

MANY_REGISTERS __kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void
conv_gpu(TENSOR(const T, a), TENSOR(const T, b), TENSOR(const float, bias), TENSOR(const TC, accum), TENSOR(TC, c),
         TENSOR(const float, sums_accum), TENSOR(float, sums), TENSOR(float, partial), GEOMETRY, const int split_steps,
         TENSOR(int, counters)) {
    __local float4 steps[2 * STEPS];
    LINE_MEMORY float4 lines[LINE_SUMS];
#if LAST_GROUP
    __local int before;
#endif
    struct operands operands = {AT(a), AT(b), GEOMETRY_GIVEN};
#if CONV_KIND == CONV_FORWARD && KEPT_LOCAL
    __local int kept_numbers[RUN_NUMBERS * WG];
    operands.kept = kept_numbers + get_local_id(0);
#endif
    own_tile tile;
    tile_begin(&operands, split_steps, &tile);
    if (CONV_KIND == CONV_DX && tile.m0 >= tile.M) return;
    const bool sums_here = CONV_KIND == CONV_DW && HAS(sums) && tile.n0 == 0;
    /* Values needed after the sum are kept in local memory, which saves registers during it. */
    __local own_tile kept;
    if (get_local_id(0) == 0) kept = tile;
#if CONV_KIND == CONV_DX
    __local phase kept_rows, kept_columns;
    if (get_local_id(0) == 0) kept_rows = operands.rows, kept_columns = operands.columns;
#endif

    float4 sum[ITEM_M][ITEM_N / 4];
    if (sums_here) *OWN_LINES(lines) = (float4)(0.0f);
    tile_clear(sum);
    if (tile.steps > 0)
        tile_sum(&operands, tile.steps, steps, sum, sums_here, OWN_LINES(lines));
    else
        barrier(CLK_LOCAL_MEM_FENCE); /* makes the kept values visible */
    tile = kept;
#if CONV_KIND == CONV_DX
    operands.rows = kept_rows, operands.columns = kept_columns;
#endif

    const int lid = (int)get_local_id(0) + tile.zero, m_first = tile.m0 + OWN_M(lid) * 4,
              n_first = tile.n0 + OWN_N(lid) * 4;
    __global float *part = HAS(partial) ? AT(partial) + tile.split * tile.elements : 0;
#pragma unroll
    for (int i = 0; i < ITEM_M; ++i) {
        const int m = m_first + ROW_STEP(i);
        if (m >= tile.M) continue;
        const long line = line_of(&operands, m);
#pragma unroll
        for (int j = 0; j < ITEM_N / 4; ++j) {
            const int n = n_first + COLUMN_STEP(j);
            if (n >= tile.columns) continue;
            int cols;
            const int at = column_place(&operands, &tile, n, &cols);
            store_vec4(sum[i][j], tile.split == 0 ? OR_NULL(bias) : 0, OR_NULL(accum), part, AT(c), line + at, at,
                       cols);
        }
    }
    if (sums_here) {
        const float4 line_sum = line_sums(lid, *OWN_LINES(lines), steps);
        const float parts[4] = {line_sum.x, line_sum.y, line_sum.z, line_sum.w};
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int m = tile.m0 + lid * 4 + i;
            if (lid < TILE_M / 4 && m < tile.M)
                OWN_SUMS(&tile)[m] = (HAS(sums_accum) && !HAS(counters) ? AT(sums_accum)[m] : 0.0f) + parts[i];
        }
    }
#if LAST_GROUP
    if (HAS(counters) && is_last_group(AT(counters) + tile.number, get_num_groups(0) / tile.count, &before))
        tile_of_parts(&operands, &tile, AT(partial), OR_NULL(accum), AT(c), OR_NULL(sums_accum),
                      sums_here ? AT(sums) : 0);
#endif
}
