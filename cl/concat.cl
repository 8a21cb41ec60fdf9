/* Copies columns of one matrix to columns of another: a part into the whole, or out of it. */
#include "lib/common.clh"
#include "lib/runs.clh"

/* to[row, c] = accum[row, c] + from[row, c] for c < width; an absent operand counts as 0. Rows of `from` are
 * from_width apart, those of `to` and of accum, which may be `to`, to_width; the tensors start at their first
 * column. */
__kernel void concat_columns(TENSOR(const T, from), TENSOR(const T, accum), TENSOR(T, to), const int rows,
                             const int width, const int from_width, const int to_width) {
    FOR_RUNS(r, rows, width) {
        floatv v = HAS(from) ? run_load(AT(from) + (ulong)r.row * from_width, r.at, width) : (floatv)(0.0f);
        const ulong row = (ulong)r.row * to_width;
        if (HAS(accum)) v += run_load(AT(accum) + row, r.at, width);
        run_store(v, AT(to) + row, r.at, width);
    }
}
