/* Layer scale, y = residual + scale x, and its gradients. Rows [rows, width]; scale f32 [width]. */
#include "lib/common.clh"
#include "lib/column_sum.clh"
#include "lib/rows.clh"
#include "lib/runs.clh"

/* y = residual + scale x; residual may be absent, and y may be x or the residual. */
__kernel void layer_scale_forward(TENSOR(const T, x), TENSOR(const float, scale), TENSOR(const T, residual),
                                  TENSOR(T, y), const int rows, const int width) {
    FOR_RUNS(r, rows, width) {
        const ulong row = (ulong)r.row * width;
        floatv past = HAS(residual) ? run_load(AT(residual) + row, r.at, width) : (floatv)(0.0f);
        floatv v = fma(run_load(AT(x) + row, r.at, width), run_load_f32(AT(scale), r.at, width), past);
        run_store(v, AT(y) + row, r.at, width);
    }
}

/* dx = accum + scale dy (dx may be absent), and partial f32 [groups, WIDTH]: sums of dy x over the rows of
 * each group. */
WIDE_ROWS __kernel void layer_scale_backward(TENSOR(const T, dy), TENSOR(const T, x), TENSOR(const float, scale),
                                             TENSOR(const T, accum), TENSOR(T, dx), TENSOR(float, partial),
                                             const int rows) {
    VECTOR_SCRATCH(room);
    int lane = get_local_id(0) % ROW_ITEMS, sub = get_local_id(0) / ROW_ITEMS;
    floatv sums[PARTS];
#pragma unroll UNROLL
    for (int k = 0; k < PARTS; ++k) sums[k] = (floatv)(0.0f);
    FOR_ROWS(rows) {
        if (!OWNS(base + sub, rows)) continue;
        const ulong at = (ulong)(base + sub) * WIDTH;
#pragma unroll UNROLL
        for (int k = 0; k < PARTS; ++k) {
            floatv arriving = row_load(AT(dy) + at, COLUMN(k));
            sums[k] = fma(arriving, row_load(AT(x) + at, COLUMN(k)), sums[k]);
            if (!HAS(dx)) continue;
            floatv before = HAS(accum) ? row_load(AT(accum) + at, COLUMN(k)) : (floatv)(0.0f);
            row_store(fma(arriving, row_load_f32(AT(scale), COLUMN(k)), before), AT(dx) + at, COLUMN(k));
        }
    }
    __global float *mine = AT(partial) + (ulong)get_group_id(0) * WIDTH;
#pragma unroll UNROLL
    for (int k = 0; k < PARTS; ++k) {
        const floatv sum = SUM_OF_ROWS(sums[k], room);
        if (sub == 0) row_store_f32(sum, mine, COLUMN(k));
    }
}

/* dscale[c] = accum[c] + the sum over p of partial[p, c], in a fixed order. */
__kernel void layer_scale_total(TENSOR(const float, partial), TENSOR(const float, accum), TENSOR(float, dscale),
                                const int parts) {
#if WG == 1
    for (int c = (int)get_global_id(0) * VEC; c < WIDTH; c += (int)get_global_size(0) * VEC) {
        floatv sum = (floatv)(0.0f);
        for (int p = 0; p < parts; ++p) sum += row_load_f32(AT(partial) + (ulong)p * WIDTH, c);
        if (HAS(accum)) sum += row_load_f32(AT(accum), c);
        row_store_f32(sum, AT(dscale), c);
    }
#else
    __local float scratch[WG];
    int item = get_local_id(0), c = get_group_id(0) * COLUMNS + item % COLUMNS;
    const float sum = column_sum(AT(partial) + c, c < WIDTH ? parts : 0, WIDTH, scratch);
    if (item < COLUMNS && c < WIDTH) AT(dscale)[c] = sum + (HAS(accum) ? AT(accum)[c] : 0.0f);
#endif
}
