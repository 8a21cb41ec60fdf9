/* Rows of a sequence whose marks are not below 0, in their order, and the gradient. */
#include "lib/common.clh"
#include "lib/rows.clh"

/* Position of the mark number `wanted` (from 0) of a sample; -1: it has fewer. */
static inline int marked_position(__global const int *marks, int length, int wanted) {
    for (int l = 0; l < length; ++l)
        if (marks[l] >= 0 && wanted-- == 0) return l;
    return -1;
}

/* x T [batch, length, WIDTH], marks i32 [batch, length] -> y T [batch, count, WIDTH], chosen i32 [batch,
 * count]: the marks of these rows. If a sample has fewer marks, the other rows are 0 and their chosen is
 * -1. */
__kernel void select_marked_forward(TENSOR(const T, x), TENSOR(const int, marks), TENSOR(T, y), TENSOR(int, chosen),
                                    const int batch, const int length, const int count) {
    const int lane = get_local_id(0) % ROW_ITEMS, sub = get_local_id(0) / ROW_ITEMS, rows = batch * count;
    FOR_ROWS(rows) {
        const int row = base + sub, b = row / count;
        if (!OWNS(row, rows)) continue;
        __global const int *own = AT(marks) + (ulong)b * length;
        const int l = marked_position(own, length, row % count);
        for (int k = 0; k < PARTS; ++k) {
            floatv v = (floatv)(0.0f);
            if (l >= 0) v = row_load(AT(x) + ((ulong)b * length + l) * WIDTH, COLUMN(k));
            row_store(v, AT(y) + (ulong)row * WIDTH, COLUMN(k));
        }
        if (lane == 0) AT(chosen)[row] = l < 0 ? -1 : own[l];
    }
}

/* dx T [batch, length, WIDTH] = accum + the row of dy T [batch, count, WIDTH] that came from there. */
__kernel void select_marked_backward(TENSOR(const T, dy), TENSOR(const int, marks), TENSOR(const T, accum),
                                     TENSOR(T, dx), const int batch, const int length, const int count) {
    const int lane = get_local_id(0) % ROW_ITEMS, sub = get_local_id(0) / ROW_ITEMS, rows = batch * length;
    FOR_ROWS(rows) {
        const int row = base + sub, b = row / length, l = row % length;
        if (!OWNS(row, rows)) continue;
        __global const int *own = AT(marks) + (ulong)b * length;
        int before = 0;
        for (int i = 0; i < l; ++i) before += own[i] >= 0;
        const bool is_selected = own[l] >= 0 && before < count;
        for (int k = 0; k < PARTS; ++k) {
            floatv d = (floatv)(0.0f);
            if (is_selected) d = row_load(AT(dy) + ((ulong)b * count + before) * WIDTH, COLUMN(k));
            if (HAS(accum)) d += row_load(AT(accum) + (ulong)row * WIDTH, COLUMN(k));
            row_store(d, AT(dx) + (ulong)row * WIDTH, COLUMN(k));
        }
    }
}
