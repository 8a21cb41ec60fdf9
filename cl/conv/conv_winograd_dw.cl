/* dw of a 3 x 3 convolution with stride 1 by Winograd's algorithm (winograd.clh), for one work-item with wide
 * vectors (WG == 1): a sum over tiles of 4 x 4 pixels of dy and their patches of x.
 *
 * A work-item processes a split of the tiles, CHUNK tiles at a time: the points of dy Y [36][tiles][N] and of x
 * X [36][tiles][C] are multiplied, M [36][N][C] += Y^T X; at the end the results are interpolated. All are in private
 * memory, which fits a second-level cache.
 *
 * Everything else is as in gemm_cpu.clh. */
#define TRANS_A 1
#define PACKS_A 1
#define BLOCK_COLS (BLOCK_PANELS * TILE_VECS * VEC)
#define PANEL_PITCH (BLOCK_COLS + VEC) /* panels side by side; the padding is for the cache sets */
#include "lib/common.clh"
#include "lib/epilogue.clh"
#include "lib/gemm_cpu.clh"
#include "conv/winograd.clh"

/* Pitches of the points. */
#define Y_PITCH COPY_FLOATS
#define X_PITCH (CHUNK * PANEL_PITCH)
#define M_PITCH (BLOCK_PANELS * BLOCK_ROWS * TILE_VECS + 1) /* in vectors */

/* y = the points of features [n0, n0 + rows) of `tiles` tiles of dy, as strips (rows_load); sums += their sums over
 * pixels. */
static inline void points_of_gradients(__global const T *dy, int P, int Q, int N, const tile_place *places, int tiles,
                                       int n0, int rows, float *y, floatv *sums) {
    for (int t = 0; t < tiles; ++t) {
        const int top = places[t].top, left = places[t].left;
        __global const T *image = dy + (long)places[t].image * P * Q * N;
        for (int n = 0; n < rows; n += VEC) {
            float *point = y + n / VEC * STRIP + t * VEC;
            floatv pixels[WINOGRAD_SIDE * WINOGRAD_SIDE], total = (floatv)(0.0f);
            if (patch_is_whole(P, Q, N, top, left, n0 + n, WINOGRAD_SIDE)) {
                __global const T *from = image + ((long)top * Q + left) * N + n0 + n;
#pragma unroll
                for (int i = 0; i < WINOGRAD_SIDE * WINOGRAD_SIDE; ++i)
                    pixels[i] = LOADV(from, ((long)(i / WINOGRAD_SIDE) * Q + i % WINOGRAD_SIDE) * N);
            } else {
                patch_load(image, P, Q, N, top, left, n0 + n, WINOGRAD_SIDE, pixels);
            }
#pragma unroll
            for (int i = 0; i < WINOGRAD_SIDE * WINOGRAD_SIDE; ++i) total += pixels[i];
            sums[n / VEC] += total;
#define GRADIENT(i, j) pixels[(i)*WINOGRAD_SIDE + (j)]
#define TO_STRIP(i, j, value) STOREFV(value, point, ((i)*WINOGRAD_PATCH + (j)) * Y_PITCH)
            BOTH_DIMENSIONS(gradient_points, WINOGRAD_SIDE, WINOGRAD_PATCH, GRADIENT, TO_STRIP);
        }
    }
}

/* A work-item processes (split of the tiles, block of filters, block of channels), channels innermost. If there are
 * splits, each writes its own part of `partial` [splits, N, 3, 3, C] and of `sums` [splits, N]. */
__kernel void conv_winograd_filters(TENSOR(const T, dy), TENSOR(const T, x), TENSOR(const TC, accum), TENSOR(TC, dw),
                                    TENSOR(const float, sums_accum), TENSOR(float, sums), TENSOR(float, partial),
                                    const int B, const int H, const int W, const int C, const int P, const int Q,
                                    const int N, const int padding, const int block_rows, const int split_tiles) {
    const int across = (C + BLOCK_COLS - 1) / BLOCK_COLS, down = (N + block_rows - 1) / block_rows;
    const int group = get_group_id(0), split = group / (across * down);
    const int n0 = group / across % down * block_rows, c0 = group % across * BLOCK_COLS;
    const int rows = min(block_rows, N - n0), cols = min(BLOCK_COLS, C - c0);
    const int calls = WINOGRAD_POINTS * ((cols + TILE_COLS - 1) / TILE_COLS) * ((rows + TILE_ROWS - 1) / TILE_ROWS);
    const int all_tiles = B * TILES_ALONG(P) * TILES_ALONG(Q);
    const int first = split * split_tiles, end = min(all_tiles, first + split_tiles);
    __global float *part = HAS(partial) ? AT(partial) + (long)split * N * 9 * C : 0;

    tile_place places[CHUNK], next_places[CHUNK];
    floatv y_vectors[WINOGRAD_POINTS * Y_PITCH / VEC], x_vectors[WINOGRAD_POINTS * X_PITCH / VEC];
    floatv m_vectors[WINOGRAD_POINTS * M_PITCH], row_sums[BLOCK_ROWS / VEC];
    float *y_points = (float *)y_vectors, *x_points = (float *)x_vectors;
    for (int i = 0; i < BLOCK_ROWS / VEC; ++i) row_sums[i] = (floatv)(0.0f);
    if (cols < BLOCK_COLS)
        for (int i = 0; i < WINOGRAD_POINTS * X_PITCH / VEC; ++i) x_vectors[i] = (floatv)(0.0f);

    for (int t = first; t < end; t += CHUNK) {
        const int tiles = min(CHUNK, end - t), next_tiles = clamp(end - t - CHUNK, 0, CHUNK);
        int call = 0;
        tiles_find(P, Q, t, tiles, places);
        tiles_find(P, Q, t + CHUNK, next_tiles, next_places);
        points_of_gradients(AT(dy), P, Q, N, places, tiles, n0, rows, y_points, row_sums);
        points_of_patches(AT(x), H, W, C, -padding, places, tiles, c0, cols, x_points, PANEL_PITCH, X_PITCH);
        for (int point = 0; point < WINOGRAD_POINTS; ++point)
            for (int p = 0; p * TILE_COLS < cols; ++p)
                for (int r = 0; r < rows; r += TILE_ROWS) {
                    row_pointer row[TILE_ROWS];
                    floatv sum[TILE_ROWS][TILE_VECS];
                    floatv *kept = m_vectors + point * M_PITCH + (p * BLOCK_ROWS + r) * TILE_VECS;
#pragma unroll
                    for (int i = 0; i < TILE_ROWS; ++i) row[i] = ROW_AT(y_points + point * Y_PITCH, 0, r, i, rows);
                    patches_soon(AT(dy), P, Q, N, 0, next_places, next_tiles, n0, rows, call, calls);
                    patches_soon(AT(x), H, W, C, -padding, next_places, next_tiles, c0, cols, call++, calls);
                    tile_begin(t == first ? 0 : kept, sum);
                    tile_multiply(row, VEC, x_points + point * X_PITCH + p * TILE_COLS, tiles, sum);
                    tile_keep(sum, kept);
                }
    }

    for (int n = 0; n < rows; ++n)
        for (int c = 0; c < cols; c += VEC) {
            const int here = cols - c;
            const floatv *m = m_vectors + (c / TILE_COLS * BLOCK_ROWS + n) * TILE_VECS + c % TILE_COLS / VEC;
            const long at = (long)(n0 + n) * 9 * C + c0 + c;
#define PRODUCT(i, j) m[((i)*WINOGRAD_PATCH + (j)) * M_PITCH]
#define TO_DW(i, j, value) write_sum(value, part, 0, OR_NULL(accum), 0, AT(dw), at + (long)((i)*3 + (j)) * C, 0, here)
            BOTH_DIMENSIONS(kernel_results, WINOGRAD_PATCH, 3, PRODUCT, TO_DW);
        }
    if (HAS(sums) && c0 == 0)
        for (int n = 0; n < rows; ++n)
            STOREF((HAS(sums_accum) ? AT(sums_accum)[n0 + n] : 0.0f) + ((const float *)row_sums)[n], AT(sums),
                   (long)split * N + n0 + n);
}
