/* Pooling of a sequence to one row: y[b, :] = scale * sum of the rows [begin, end) of x[b], and its gradient.
 *
 * The rows depend on MODE and on n, the sample's length (all L rows if there are no lengths):
 *
 *   0   mean of the n rows       1   the first of them       2   the last of them
 *
 * A sample without rows gives zeros and receives no gradient. */
#include "lib/common.clh"
#include "lib/rows.clh"
#include "lib/shared_numbers.clh"

#ifndef MODE
#define MODE POOL_MEAN
#endif

typedef struct pooled {
    int begin, end;
    float scale;
} pooled;

static inline pooled pooled_rows(__global const int *lengths, int b, int length) {
    const int n = lengths ? clamp(lengths[b], 0, length) : length;
    pooled p = {MODE == POOL_LAST ? max(n - 1, 0) : 0, MODE == POOL_FIRST ? min(n, 1) : n,
                MODE == POOL_MEAN && n > 0 ? 1.0f / n : 1.0f};
    return p;
}
#define LENGTHS (HAS(lengths) ? AT(lengths) : 0)

/* x T [batch, length, WIDTH], lengths i32 [batch] (may be NULL) -> y T [batch, WIDTH]. */
__kernel void pool_forward(TENSOR(const T, x), TENSOR(const int, lengths), TENSOR(T, y), const int batch,
                           const int length) {
#if WG > 1 /* a group adds ROW_ITEMS columns of vectors, ROWS_AT_ONCE positions at a time */
    VECTOR_SCRATCH(room);
    const int lane = get_local_id(0) % ROW_ITEMS, sub = get_local_id(0) / ROW_ITEMS;
    for (int unit = get_group_id(0); unit < batch * PARTS; unit += (int)get_num_groups(0)) {
        const int b = unit / PARTS, c = COLUMN(unit % PARTS);
        const pooled p = pooled_rows(LENGTHS, b, length);
        __global const T *sample = AT(x) + (ulong)b * length * WIDTH;
        floatv sum = (floatv)(0.0f);
        for (int l = p.begin + sub; l < p.end; l += ROWS_AT_ONCE) sum += row_load(sample + (ulong)l * WIDTH, c);
        sum = SUM_OF_ROWS(sum, room);
        if (sub == 0) row_store(sum * p.scale, AT(y) + (ulong)b * WIDTH, c);
    }
#else
    const int lane = get_local_id(0) % ROW_ITEMS, sub = get_local_id(0) / ROW_ITEMS;
    FOR_ROWS(batch) {
        const int b = base + sub;
        if (!OWNS(b, batch)) continue;
        const pooled p = pooled_rows(LENGTHS, b, length);
        __global const T *sample = AT(x) + (ulong)b * length * WIDTH;
        for (int k = 0; k < PARTS; ++k) {
            floatv sum = (floatv)(0.0f);
            for (int l = p.begin; l < p.end; ++l) sum += row_load(sample + (ulong)l * WIDTH, COLUMN(k));
            row_store(sum * p.scale, AT(y) + (ulong)b * WIDTH, COLUMN(k));
        }
    }
#endif
}

/* dx = accum + the row's part of dy. */
__kernel void pool_backward(TENSOR(const T, dy), TENSOR(const int, lengths), TENSOR(const T, accum), TENSOR(T, dx),
                            const int batch, const int length) {
    const int lane = get_local_id(0) % ROW_ITEMS, sub = get_local_id(0) / ROW_ITEMS, rows = batch * length;
    FOR_ROWS(rows) {
        const int row = base + sub, b = row / length, l = row % length;
        if (!OWNS(row, rows)) continue;
        const pooled p = pooled_rows(LENGTHS, b, length);
        const bool is_pooled = l >= p.begin && l < p.end;
        const ulong at = (ulong)row * WIDTH;
        for (int k = 0; k < PARTS; ++k) {
            floatv d = is_pooled ? row_load(AT(dy) + (ulong)b * WIDTH, COLUMN(k)) * p.scale : (floatv)(0.0f);
            if (HAS(accum)) d += row_load(AT(accum) + at, COLUMN(k));
            row_store(d, AT(dx) + at, COLUMN(k));
        }
    }
}
