/* y or dx of a 3 x 3 convolution with stride 1 by Winograd's algorithm (winograd.clh), for one work-item with wide
 * vectors (WG == 1). dx is the convolution of dy with the kernel turned round.
 *
 *   conv_winograd_weights  the kernel's points, once a launch: U [panel of columns][36][pitch], a
 *                          point is [K][TILE_COLS], f32
 *   conv_winograd_pixels   a block of tiles and columns: the points of the patches V [36][tiles][CHUNK] are computed
 *                          and multiplied, chunk by chunk of the K channels, M [36][tiles][columns] += V U, and the
 *                          results interpolated. V and M are in private memory, which fits a second-level cache.
 *
 * Everything else is as in gemm_cpu.clh. BLOCK_ROWS and BLOCK_PANELS count tiles and panels of columns. */
#include "lib/shared_numbers.clh"
#define TRANS_A 0
#define TRANS_B (CONV_KIND == CONV_FORWARD)
#define PACKS_A 1
#include "lib/common.clh"
#include "lib/epilogue.clh"
#include "lib/gemm_cpu.clh"
#include "lib/moments.clh"
#include "conv/winograd.clh"

/* Pitches of the points, in floats. One vector of padding keeps the 36 points out of each other's cache sets; that of
 * U has it too. */
#define U_PITCH (CHUNK * TILE_COLS + VEC)
#define V_PITCH (BLOCK_ROWS * CHUNK + VEC)
#define M_PITCH (BLOCK_ROWS * TILE_COLS + VEC)

/* The kernel's points: U [36][pitch], a point is [rows][TILE_COLS]. */
#if GLOBAL_PANELS
typedef __global float *weight_points;
#else
typedef float *weight_points;
#endif

/* u = the points of rows [k0, k0 + rows) and columns [n0, n0 + cols) of weight [N, 3, 3, C]; rows is at most
 * WINOGRAD_WEIGHT_ROWS. Columns past `cols` are 0. */
#define TAPS 9
#define TAP_FLOATS (WINOGRAD_WEIGHT_ROWS * TILE_COLS)
static inline void points_of_weights(__global const T *weight, int C, int k0, int rows, int n0, int cols,
                                     weight_points u, long pitch) {
    floatv tap_vectors[TAPS * TAP_FLOATS / VEC];
    float *taps = (float *)tap_vectors;
    if (cols < TILE_COLS)
        for (int i = 0; i < TAPS * TAP_FLOATS; i += VEC) STOREFV((floatv)(0.0f), taps, i);
    for (int tap = 0; tap < TAPS; ++tap) {
#if CONV_KIND == CONV_FORWARD
        __global const T *from = weight + ((long)n0 * TAPS + tap) * C + k0;
#else
        __global const T *from = weight + ((long)k0 * TAPS + (TAPS - 1 - tap)) * C + n0;
#endif
        panel_load(from, (long)TAPS * C, rows, cols, taps + tap * TAP_FLOATS);
    }
    for (int at = 0; at < rows * TILE_COLS; at += VEC) {
#define TAP(i, j) LOADFV(taps, ((i)*3 + (j)) * TAP_FLOATS + at)
#define TO_U(i, j, value) STOREFV(value, u, ((i)*WINOGRAD_PATCH + (j)) * pitch + at)
        BOTH_DIMENSIONS(kernel_points, 3, WINOGRAD_PATCH, TAP, TO_U);
    }
}

/* Prefetches part `i` of `parts` of what points_of_weights reads: lines too far apart for the hardware to anticipate. */
static inline void weights_soon(__global const T *weight, int C, int k0, int rows, int n0, int cols, int i, int parts) {
    const bool forward = CONV_KIND == CONV_FORWARD;
    const int pieces = (forward ? cols : rows) * TAPS, length = forward ? rows : cols;
    __global const T *from = weight + (long)(forward ? n0 : k0) * TAPS * C + (forward ? k0 : n0);
    for (int n = pieces * i / parts, end = pieces * (i + 1) / parts; n < end; ++n)
        for (int at = 0; at < length; at += LINE) SOON(from + (long)n * C + at);
}

#if GLOBAL_PANELS
/* result = U of all rows and columns. A work-item computes some rows of one panel. */
__kernel void conv_winograd_weights(TENSOR(const T, weight), TENSOR(float, result), const int N, const int C,
                                    const long pitch) {
    const int K = CONV_KIND == CONV_FORWARD ? C : N, to_channels = CONV_KIND == CONV_FORWARD ? N : C;
    const int steps = (K + WINOGRAD_WEIGHT_ROWS - 1) / WINOGRAD_WEIGHT_ROWS, p = get_group_id(0) / steps;
    const int k0 = get_group_id(0) % steps * WINOGRAD_WEIGHT_ROWS, n0 = p * TILE_COLS;
    points_of_weights(AT(weight), C, k0, min(WINOGRAD_WEIGHT_ROWS, K - k0), n0, min(TILE_COLS, to_channels - n0),
                      AT(result) + (long)p * WINOGRAD_POINTS * pitch + (long)k0 * TILE_COLS, pitch);
}
#endif

/* Prefetches part `i` of `parts` of the results of `tiles` tiles that will be stored, columns [n, n + cols): all of them are
 * stored at once, after the products. */
static inline void results_soon(__global T *result, int rows, int columns, int features, const tile_place *places,
                                int tiles, int n, int cols, int i, int parts) {
    const int pixels = tiles * (WINOGRAD_SIDE * WINOGRAD_SIDE);
    for (int j = pixels * i / parts, end = pixels * (i + 1) / parts; j < end; ++j) {
        const tile_place place = places[j / (WINOGRAD_SIDE * WINOGRAD_SIDE)];
        const int h = place.top + j / WINOGRAD_SIDE % WINOGRAD_SIDE, w = place.left + j % WINOGRAD_SIDE;
        __global T *pixel = result + (((long)place.image * rows + h) * columns + w) * features + n;
        for (int c = 0; c < cols && h < rows && w < columns; c += LINE) SOON_STORED(pixel + c);
    }
}

/* result = accum + bias + the convolution of source with the kernel of U. A work-item processes (block of tiles,
 * block of columns), columns innermost, so that neighbours read the same patches. */
__kernel void conv_winograd_pixels(TENSOR(const T, source), TENSOR(const T, weight), TENSOR(const float, points),
                                   TENSOR(const float, bias), TENSOR(const T, accum), TENSOR(T, result),
                                   const int images, const int height, const int width, const int channels,
                                   const int rows, const int columns, const int features, const int to,
                                   const int block_tiles, const int block_panels,
                                   const long points_pitch MOMENTS_TENSORS) {
    const int block_columns = block_panels * TILE_COLS, across = (features + block_columns - 1) / block_columns;
    const int n0 = get_group_id(0) % across * block_columns, cols = min(block_columns, features - n0);
    const int first_tile = get_group_id(0) / across * block_tiles;
    const int all_tiles = images * TILES_ALONG(rows) * TILES_ALONG(columns);
    const int tiles = min(block_tiles, all_tiles - first_tile), row_tiles = (tiles + TILE_ROWS - 1) / TILE_ROWS;
    const int panels = (cols + TILE_COLS - 1) / TILE_COLS, calls = panels * WINOGRAD_POINTS * row_tiles;
    /* The next work-item reads other patches if this one has the last columns. */
    const int next_tile = first_tile + block_tiles,
              next_tiles = n0 + block_columns < features ? 0 : clamp(all_tiles - next_tile, 0, block_tiles);
    tile_place places[BLOCK_ROWS], next_places[BLOCK_ROWS];
    floatv v_vectors[WINOGRAD_POINTS * V_PITCH / VEC], m_vectors[BLOCK_PANELS * WINOGRAD_POINTS * M_PITCH / VEC];
    float *v = (float *)v_vectors;
#if !GLOBAL_PANELS
    floatv u_vectors[WINOGRAD_POINTS * U_PITCH / VEC];
#endif
    tiles_find(rows, columns, first_tile, tiles, places);
    tiles_find(rows, columns, next_tile, next_tiles, next_places);

    for (int k = 0; k < channels; k += CHUNK) {
        const int depth = min(CHUNK, channels - k), next_k = k + CHUNK < channels ? k + CHUNK : 0;
        int call = 0;
        points_of_patches(AT(source), height, width, channels, to, places, tiles, k, depth, v, CHUNK, V_PITCH);
        for (int p = 0; p * TILE_COLS < cols; ++p) {
#if GLOBAL_PANELS
            const long pitch = points_pitch;
            panel_pointer u = AT(points) + ((long)n0 / TILE_COLS + p) * WINOGRAD_POINTS * pitch + (long)k * TILE_COLS;
#else
            const long pitch = U_PITCH;
            const int n = n0 + p * TILE_COLS;
            float *u = (float *)u_vectors;
            for (int i = 0; i < depth; i += WINOGRAD_WEIGHT_ROWS)
                points_of_weights(AT(weight), CONV_KIND == CONV_FORWARD ? channels : features, k + i,
                                  min(WINOGRAD_WEIGHT_ROWS, depth - i), n, min(TILE_COLS, features - n),
                                  u + i * TILE_COLS, pitch);
            const bool more = p + 1 < panels;
            const int weights_n = more ? n + TILE_COLS : n0, weights_k = more ? k : k + CHUNK;
            const int weights_rows = clamp(channels - weights_k, 0, CHUNK);
#endif
            for (int point = 0; point < WINOGRAD_POINTS; ++point)
                for (int m = 0; m < tiles; m += TILE_ROWS) {
                    row_pointer row[TILE_ROWS];
                    floatv sum[TILE_ROWS][TILE_VECS];
                    floatv *kept = m_vectors + (p * WINOGRAD_POINTS + point) * (M_PITCH / VEC) + m * TILE_VECS;
#pragma unroll
                    for (int i = 0; i < TILE_ROWS; ++i) row[i] = ROW_AT(v + point * V_PITCH, CHUNK, m, i, tiles);
                    patches_soon(AT(source), height, width, channels, to, next_k ? places : next_places,
                                 next_k ? tiles : next_tiles, next_k, min(CHUNK, channels - next_k), call, calls);
                    if (!next_k)
                        results_soon(AT(result), rows, columns, features, places, tiles, n0, cols, call, calls);
                    ++call;
#if !GLOBAL_PANELS
                    weights_soon(AT(weight), CONV_KIND == CONV_FORWARD ? channels : features, weights_k, weights_rows,
                                 weights_n, min(TILE_COLS, features - weights_n), point * row_tiles + m / TILE_ROWS,
                                 WINOGRAD_POINTS * row_tiles);
#endif
                    tile_begin(k == 0 ? 0 : kept, sum);
                    tile_multiply(row, 1, u + point * pitch, depth, sum);
                    tile_keep(sum, kept);
                }
        }
    }

#if MOMENTS
    int counted = 0;
    column_sums column[BLOCK_PANELS * TILE_VECS];
    for (int v = 0; v < BLOCK_PANELS * TILE_VECS; ++v) column_begin(column + v);
#endif
    for (int t = 0; t < tiles; ++t) {
        for (int n = 0; n < cols; n += VEC) {
            const int p = n / TILE_COLS, here = cols - n;
            const floatv *m = m_vectors + p * WINOGRAD_POINTS * (M_PITCH / VEC) + t * TILE_VECS + n % TILE_COLS / VEC;
            const int top = places[t].top, left = places[t].left;
            const long at = (((long)places[t].image * rows + top) * columns + left) * features + n0 + n;
#define PRODUCT(i, j) m[((i)*WINOGRAD_PATCH + (j)) * (M_PITCH / VEC)]
#define TO_RESULT(i, j, value)                                                                                         \
    if (top + (i) < rows && left + (j) < columns)                                                                      \
    write_row(value, OR_NULL(bias), OR_NULL(accum), 0, AT(result), at + ((long)(i)*columns + (j)) * features, n0 + n,  \
              here)
            BOTH_DIMENSIONS(tile_results, WINOGRAD_PATCH, WINOGRAD_SIDE, PRODUCT, TO_RESULT);
#if MOMENTS
            for (int i = 0; places[t].image < COUNTED_IMAGES(batch) && i < min(WINOGRAD_SIDE, rows - top); ++i)
                column_add(column + n / VEC, AT(result) + (at - n0 - n) + (long)i * columns * features, features,
                           min(WINOGRAD_SIDE, columns - left), n0 + n, here, t == 0 && i == 0);
#endif
        }
#if MOMENTS
        if (places[t].image < COUNTED_IMAGES(batch))
            counted += min(WINOGRAD_SIDE, rows - places[t].top) * min(WINOGRAD_SIDE, columns - places[t].left);
#endif
    }
#if MOMENTS
    const int part = first_tile / block_tiles;
    if (n0 == 0) AT(counts)[part] = (float)counted;
    for (int n = 0; n < cols; n += VEC)
        column_store(column + n / VEC, counted, AT(moments) + (long)part * 2 * features, features, n0 + n, cols - n);
#endif
}
