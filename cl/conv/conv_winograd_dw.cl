/* dw of a convolution by Winograd's algorithm (winograd.clh), for one work-item with wide vectors (WG == 1):
 * a sum over tiles of dy and their patches of x. With stride 2, x is an image of blocks, which have K = 4 C
 * channels; with stride 1, K = C.
 *
 * A work-item processes a split of the tiles, CHUNK tiles at a time: the points of dy Y [points][tiles][N]
 * and of x X [points][tiles][K] are multiplied, M [points][N][K] += Y^T X; at the end the results are
 * interpolated. All are in private memory, which fits a second-level cache.
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
static inline void points_of_gradients(const block_images dy, const tile_place *places, int tiles, int n0, int rows,
                                       float *y, floatv *sums) {
    for (int t = 0; t < tiles; ++t)
        for (int n = 0; n < rows; n += VEC) {
            const patch_run p = patch_run_of(dy, places[t], 0, 0, n0 + n, min(VEC, rows - n), WINOGRAD_SIDE);
            float *point = y + n / VEC * STRIP + t * VEC;
            floatv pixels[WINOGRAD_SIDE * WINOGRAD_SIDE], total = (floatv)(0.0f);
            if (p.inside) {
                __global const T *from = PATCH_BEGIN(dy, p);
#pragma unroll
                for (int i = 0; i < WINOGRAD_SIDE * WINOGRAD_SIDE; ++i)
                    pixels[i] = LOADV(from, PATCH_AT(dy, i / WINOGRAD_SIDE, i % WINOGRAD_SIDE));
            } else {
                patch_load(dy, p, WINOGRAD_SIDE, pixels);
            }
#pragma unroll
            for (int i = 0; i < WINOGRAD_SIDE * WINOGRAD_SIDE; ++i) total += pixels[i];
            sums[n / VEC] += total;
#define GRADIENT(i, j) pixels[(i)*WINOGRAD_SIDE + (j)]
#define TO_STRIP(i, j, value) STOREFV(value, point, ((i)*WINOGRAD_PATCH + (j)) * Y_PITCH)
            BOTH_DIMENSIONS(gradient_points, WINOGRAD_SIDE, WINOGRAD_PATCH, GRADIENT, TO_STRIP);
        }
}

/* A work-item processes (split of the tiles, block of filters, block of K), K innermost. If there are splits,
 * each writes its own part of `partial` [splits, N, side, side, C] and of `sums` [splits, N]. The patch of a
 * tile begins `to` blocks from it; `origin`: of the blocks of x. */
OUTLINED void filters_block(TENSOR(const T, dy), TENSOR(const T, x), TENSOR(const TC, accum), TENSOR(TC, dw),
                            TENSOR(const float, sums_accum), TENSOR(float, sums), TENSOR(float, partial), const int B,
                            const int H, const int W, const int C, const int P, const int Q, const int N, const int to,
                            const int origin, const int block_rows, const int split_tiles, const int group) {
    const block_images gradients = {AT(dy), P, Q, N, 1, 0}, source = {AT(x), H, W, C, WINOGRAD_STRIDE, origin};
    const int K = PHASES * C, across = (K + BLOCK_COLS - 1) / BLOCK_COLS, down = (N + block_rows - 1) / block_rows;
    const int split = group / (across * down);
    const int n0 = group / across % down * block_rows, k0 = group % across * BLOCK_COLS;
    const int rows = min(block_rows, N - n0), cols = min(BLOCK_COLS, K - k0);
    const int calls = WINOGRAD_POINTS * ((cols + TILE_COLS - 1) / TILE_COLS) * ((rows + TILE_ROWS - 1) / TILE_ROWS);
    const int all_tiles = B * TILES_ALONG(P) * TILES_ALONG(Q);
    const int first = split * split_tiles, end = min(all_tiles, first + split_tiles);
    __global float *part = HAS(partial) ? AT(partial) + (long)split * N * KERNEL_SIDE * KERNEL_SIDE * C : 0;

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
        points_of_gradients(gradients, places, tiles, n0, rows, y_points, row_sums);
        points_of_patches(source, to, places, tiles, k0, cols, x_points, PANEL_PITCH, X_PITCH);
        for (int point = 0; point < WINOGRAD_POINTS; ++point)
            for (int p = 0; p * TILE_COLS < cols; ++p) {
                const int of_panel = min(TILE_COLS, cols - p * TILE_COLS);
                const nonzero_points nonzero = nonzero_points_of(C, k0 + p * TILE_COLS, of_panel, false);
                for (int r = 0; r < rows; r += TILE_ROWS) {
                    row_pointer row[TILE_ROWS];
                    floatv *kept = m_vectors + point * M_PITCH + (p * BLOCK_ROWS + r) * TILE_VECS;
                    tile_rows(y_points + point * Y_PITCH, 0, r, rows, row);
                    patches_prefetch(gradients, 0, next_places, next_tiles, n0, rows, call, calls);
                    patches_prefetch(source, to, next_places, next_tiles, k0, cols, call++, calls);
                    if (!point_is_nonzero(nonzero, point)) continue;
                    tile_add(row, VEC, x_points + point * X_PITCH + p * TILE_COLS, tiles, t == first, kept);
                }
            }
    }

    for (int n = 0; n < rows; ++n)
        for (int k = 0, here; k < cols; k += here) {
            const int phase = WINOGRAD_STRIDE == 1 ? 0 : (k0 + k) / C, c = k0 + k - phase * C;
            const float *m = (const float *)m_vectors + (k / TILE_COLS * BLOCK_ROWS + n) * TILE_COLS + k % TILE_COLS;
            here = min(min(VEC, C - c), cols - k);
#define PRODUCT(i, j) LOADFV(m, ((i)*WINOGRAD_PATCH + (j)) * M_PITCH * VEC)
            floatv taps[WINOGRAD_TAPS * WINOGRAD_TAPS];
#define TO_DW(i, j, value) taps[(i)*WINOGRAD_TAPS + (j)] = value
            BOTH_DIMENSIONS(kernel_results, WINOGRAD_PATCH, WINOGRAD_TAPS, PRODUCT, TO_DW);
#pragma nounroll
            for (int i = 0; i < WINOGRAD_TAPS * WINOGRAD_TAPS; ++i) {
                const int r = place_of_tap(i / WINOGRAD_TAPS, phase / WINOGRAD_STRIDE, false);
                const int s = place_of_tap(i % WINOGRAD_TAPS, phase % WINOGRAD_STRIDE, false);
                const long at = (((long)(n0 + n) * KERNEL_SIDE + r) * KERNEL_SIDE + s) * C + c;
                if (r >= 0 && s >= 0) write_sum(taps[i], part, 0, OR_NULL(accum), 0, AT(dw), at, 0, here);
            }
        }
    if (HAS(sums) && k0 == 0)
        row_sums_store(row_sums, rows, HAS(sums_accum) ? AT(sums_accum) + n0 : 0, AT(sums) + (long)split * N + n0);
}

__kernel void conv_winograd_filters(TENSOR(const T, dy), TENSOR(const T, x), TENSOR(const TC, accum), TENSOR(TC, dw),
                                    TENSOR(const float, sums_accum), TENSOR(float, sums), TENSOR(float, partial),
                                    const int B, const int H, const int W, const int C, const int P, const int Q,
                                    const int N, const int to, const int origin, const int block_rows,
                                    const int split_tiles) {
    filters_block(PASS(dy), PASS(x), PASS(accum), PASS(dw), PASS(sums_accum), PASS(sums), PASS(partial), B, H, W, C, P,
                  Q, N, to, origin, block_rows, split_tiles, get_group_id(0));
}
