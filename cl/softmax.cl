/* Softmax of rows, forward and backward: y = exp(x - max x) / sum of exp(x - max x).
 *
 * Rows of up to MAX_KEPT vectors per work-item stay in registers (on a CPU: in its caches) between the
 * passes; wider rows are read again. y may be x, dx may be any of its inputs, because a work-item reads an
 * element before it writes it. */
#include "lib/common.clh"
#include "lib/rows.clh"
#include "lib/softmax.clh"

#if WG == 1
#define MAX_KEPT 1024
#else
#define MAX_KEPT 16
#endif
#define KEPT (PARTS <= MAX_KEPT)

/* x, y T [rows, WIDTH]. */
WIDE_ROWS __kernel void softmax_forward(TENSOR(const T, x), TENSOR(T, y), const int rows) {
    GROUP_SCRATCH(scratch_a);
    GROUP_SCRATCH(scratch_b);
    int lane = get_local_id(0) % ROW_ITEMS, sub = get_local_id(0) / ROW_ITEMS;
    FOR_ROWS(rows) {
        int row = min(base + sub, rows - 1);
        bool owns = OWNS(base + sub, rows);
        __global const T *from = AT(x) + (ulong)row * WIDTH;
        __global T *to = AT(y) + (ulong)row * WIDTH;
        floatv part[KEPT ? PARTS : 1], most = (floatv)(-INFINITY), sum = (floatv)(0.0f);
#pragma unroll UNROLL
        for (int k = 0; k < PARTS; ++k) {
            floatv v = owns ? row_load(from, COLUMN(k)) : (floatv)(0.0f);
            if (KEPT) part[k] = v;
            most = larger(most, row_part(v, COLUMN(k), -INFINITY));
        }
        float top = row_max(maxv(most), scratch_a);
#pragma unroll UNROLL
        for (int k = 0; k < PARTS; ++k) {
            floatv v = KEPT ? part[k] : owns ? row_load(from, COLUMN(k)) : (floatv)(0.0f);
            v = exp_below(v - top);
            if (KEPT) part[k] = v;
            sum += row_part(v, COLUMN(k), 0.0f);
        }
        float inverse = 1.0f / row_sum((float2)(sumv(sum), 0.0f), scratch_a, scratch_b).x;
        if (owns) {
#pragma unroll UNROLL
            for (int k = 0; k < PARTS; ++k) {
                floatv v = KEPT ? part[k] : exp_below(row_load(from, COLUMN(k)) - top);
                row_store(v * inverse, to, COLUMN(k));
            }
        }
    }
}

/* dx = accum + y (dy - sum of y dy). */
WIDE_ROWS __kernel void softmax_backward(TENSOR(const T, dy), TENSOR(const T, y), TENSOR(const T, accum), TENSOR(T, dx),
                                         const int rows) {
    GROUP_SCRATCH(scratch_a);
    GROUP_SCRATCH(scratch_b);
    int lane = get_local_id(0) % ROW_ITEMS, sub = get_local_id(0) / ROW_ITEMS;
    FOR_ROWS(rows) {
        int row = min(base + sub, rows - 1);
        bool owns = OWNS(base + sub, rows);
        ulong at = (ulong)row * WIDTH;
        floatv sum = (floatv)(0.0f);
#pragma unroll UNROLL
        for (int k = 0; k < PARTS && owns; ++k)
            sum = fma(row_load(AT(y) + at, COLUMN(k)), row_load(AT(dy) + at, COLUMN(k)), sum);
        float dot_product = row_sum((float2)(sumv(sum), 0.0f), scratch_a, scratch_b).x;
        if (owns) {
#pragma unroll UNROLL
            for (int k = 0; k < PARTS; ++k) {
                floatv d = row_load(AT(dy) + at, COLUMN(k)) - dot_product, p = row_load(AT(y) + at, COLUMN(k));
                floatv before = HAS(accum) ? row_load(AT(accum) + at, COLUMN(k)) : (floatv)(0.0f);
                row_store(fma(p, d, before), AT(dx) + at, COLUMN(k));
            }
        }
    }
}
