/* Permutation of the dimensions of a tensor, plus what accumulated: to = accum + permuted(from).
 *
 * `to` has four dimensions in front of its last one, some of them merged or padded by the host; `from` is
 * described by its strides in the order of the dimensions of `to`. If the last dimensions of both are one
 * dimension, rows are copied (permute_rows), else tiles are transposed (permute_tiles), so that both sides
 * are read and written in runs. accum may be NULL, or `to`. */
#include "lib/common.clh"
#include "lib/runs.clh"

/* Side of a tile. */
#if WG == 1
#define TILE VEC
#else
#define TILE 32
#endif

/* Row r of `to` [n0, n1, n2, n3, width] is the row of `from` at the sum of index times stride. rows: n0 n1 n2 n3. */
__kernel void permute_rows(TENSOR(const T, from), TENSOR(const T, accum), TENSOR(T, to), const int rows,
                           const int width, const int n1, const int n2, const int n3, const long s0, const long s1,
                           const long s2, const long s3) {
    int known = -1;
    __global const T *source = 0;
    FOR_RUNS(r, rows, width) {
        if (r.row != known) {
            const int line = r.row / n3, plane = line / n2, block = plane / n1;
            source =
                AT(from) + block * s0 + (plane - block * n1) * s1 + (line - plane * n2) * s2 + (r.row - line * n3) * s3;
            known = r.row;
        }
        floatv v = run_load(source, r.at, width);
        const ulong row = (ulong)r.row * width;
        if (HAS(accum)) v += run_load(AT(accum) + row, r.at, width);
        run_store(v, AT(to) + row, r.at, width);
    }
}

/* Matrices [n0, n1, n2] of `height` x `width`: rows of `from` (stride 1 along `width`) are `pitch` apart, columns of
 * `to` (stride 1 along `height`) are to_pitch apart; s and t are the strides of the three dimensions in `from` and
 * `to`. tiles: their number in all matrices. */
__kernel void permute_tiles(TENSOR(const T, from), TENSOR(const T, accum), TENSOR(T, to), const ulong tiles,
                            const int height, const int width, const int n1, const int n2, const long s0, const long s1,
                            const long s2, const long t0, const long t1, const long t2, const long pitch,
                            const long to_pitch) {
#if WG > 1
    __local float tile[TILE][TILE + 1];
    const int item = get_local_id(0);
#endif
    const int across = (width + TILE - 1) / TILE, down = (height + TILE - 1) / TILE;
    for (ulong t = get_group_id(0); t < tiles; t += get_num_groups(0)) {
        const ulong matrix = t / ((ulong)across * down);
        const int place = (int)(t - matrix * across * down), h0 = place / across * TILE, w0 = place % across * TILE;
        const long line = (long)matrix / n2, i2 = (long)matrix - line * n2, i0 = line / n1, i1 = line - i0 * n1;
        __global const T *source = AT(from) + i0 * s0 + i1 * s1 + i2 * s2 + h0 * pitch + w0;
        const long target = i0 * t0 + i1 * t1 + i2 * t2 + w0 * to_pitch + h0;
        const int rows = min(height - h0, TILE), columns = min(width - w0, TILE);
#if WG == 1
        floatv tile[TILE];
        for (int r = 0; r < rows; ++r) tile[r] = run_load(source + r * pitch, 0, columns);
        for (int c = 0; c < columns; ++c) {
            floatv v = (floatv)(0.0f);
            for (int r = 0; r < rows; ++r) ((float *)&v)[r] = ((const float *)&tile[r])[c];
            if (HAS(accum)) v += run_load(AT(accum) + target + c * to_pitch, 0, rows);
            run_store(v, AT(to) + target + c * to_pitch, 0, rows);
        }
#else
        for (int k = item; k < TILE * TILE; k += WG) {
            const int r = k / TILE, c = k % TILE;
            if (r < rows && c < columns) tile[r][c] = LOAD(source, r * pitch + c);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = item; k < TILE * TILE; k += WG) {
            const int c = k / TILE, r = k % TILE;
            if (r >= rows || c >= columns) continue;
            const long at = target + c * to_pitch + r;
            STORE((HAS(accum) ? LOAD(AT(accum), at) : 0.0f) + tile[r][c], AT(to), at);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
#endif
    }
}
