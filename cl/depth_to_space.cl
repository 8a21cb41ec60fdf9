/* Swaps two inner dimensions: [outer, a, b, width] -> [outer, b, a, width].
 *
 * Depth to space and its inverse: rows of pixels of a patch, adjacent in its channels, become parts of rows
 * of the image. */
#include "lib/common.clh"
#include "lib/runs.clh"

/* to[o, j, i, :] = accum[o, j, i, :] + from[o, i, j, :] for i < a, j < b; accum may be `to`. */
__kernel void depth_to_space_swap(TENSOR(const T, from), TENSOR(const T, accum), TENSOR(T, to), const int outer,
                                  const int a, const int b, const int width) {
    int known = -1;
    __global const T *source = 0;
    FOR_RUNS(r, outer * a * b, width) {
        if (r.row != known) {
            const int line = r.row / a, i = r.row - line * a, o = line / b, j = line - o * b;
            source = AT(from) + ((ulong)(o * a + i) * b + j) * width;
            known = r.row;
        }
        floatv v = run_load(source, r.at, width);
        const ulong row = (ulong)r.row * width;
        if (HAS(accum)) v += run_load(AT(accum) + row, r.at, width);
        run_store(v, AT(to) + row, r.at, width);
    }
}
