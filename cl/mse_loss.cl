/* Squared error of rows, forward and backward.
 *
 *   loss = mean over the row of (x - target)^2,   dx = accum + dloss sample_weight 2 (x - target) / WIDTH */
#include "lib/common.clh"
#include "lib/rows.clh"

/* x T, target f32 [rows, WIDTH], sample_weight f32 [rows]; losses f32 [rows]: sample_weight * loss. */
WIDE_ROWS __kernel void mse_loss_rows(TENSOR(const T, x), TENSOR(const float, target),
                                      TENSOR(const float, sample_weight), TENSOR(float, losses), const int rows) {
    GROUP_SCRATCH(scratch_a);
    GROUP_SCRATCH(scratch_b);
    int lane = get_local_id(0) % ROW_ITEMS, sub = get_local_id(0) / ROW_ITEMS;
    FOR_ROWS(rows) {
        int row = min(base + sub, rows - 1);
        ulong at = (ulong)row * WIDTH;
        floatv squares = (floatv)(0.0f);
#pragma unroll UNROLL
        for (int k = 0; k < PARTS; ++k) {
            floatv d = row_load(AT(x) + at, COLUMN(k)) - row_load_f32(AT(target) + at, COLUMN(k));
            squares = fma(d, d, squares);
        }
        float sum = row_sum((float2)(sumv(squares), 0.0f), scratch_a, scratch_b).x;
        if (OWNS(base + sub, rows) && lane == 0) AT(losses)[row] = AT(sample_weight)[row] * sum * (1.0f / WIDTH);
    }
}

/* dx may be x or accum. */
WIDE_ROWS __kernel void mse_loss_grad(TENSOR(const T, x), TENSOR(const float, target),
                                      TENSOR(const float, sample_weight), TENSOR(const float, dloss),
                                      TENSOR(const T, accum), TENSOR(T, dx), const int rows) {
    int lane = get_local_id(0) % ROW_ITEMS, sub = get_local_id(0) / ROW_ITEMS;
    FOR_ROWS(rows) {
        int row = base + sub;
        if (!OWNS(row, rows)) break;
        ulong at = (ulong)row * WIDTH;
        float weight = AT(dloss)[0] * AT(sample_weight)[row] * (2.0f / WIDTH);
#pragma unroll UNROLL
        for (int k = 0; k < PARTS; ++k) {
            floatv d = row_load(AT(x) + at, COLUMN(k)) - row_load_f32(AT(target) + at, COLUMN(k));
            floatv before = HAS(accum) ? row_load(AT(accum) + at, COLUMN(k)) : (floatv)(0.0f);
            row_store(fma(d, (floatv)(weight), before), AT(dx) + at, COLUMN(k));
        }
    }
}
