/* y or dx of a convolution by Winograd's algorithm (winograd.clh), for one work-item with wide vectors (WG ==
 * 1). dx is the convolution of dy with the kernel rotated by 180 degrees. With stride 2, x is an image of
 * blocks: for y, K is four times its channels; for dx, N is.
 *
 *   conv_winograd_weights  the kernel's points, once a launch: U [panel of columns][points][pitch], a
 *                          point is [K][TILE_COLS], f32
 *   conv_winograd_pixels   a block of tiles and columns: the points of the patches V [points][tiles][CHUNK] are computed
 *                          and multiplied, chunk by chunk of the K channels, M [points][tiles][columns] += V U, and the
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
#include "conv/winograd.clh"

/* Pitches of the points, in floats. One vector of padding keeps the points out of each other's cache sets; that of
 * U has it too. */
#define U_PITCH (CHUNK * TILE_COLS + VEC)
#define V_PITCH (BLOCK_ROWS * CHUNK + VEC)
#define M_PITCH (BLOCK_ROWS * TILE_COLS + VEC)

/* The kernel's points: U [points][pitch], a point is [rows][TILE_COLS]. */
#if GLOBAL_PANELS
typedef __global float *weight_points;
#else
typedef float *weight_points;
#endif

#define TURNED (CONV_KIND == CONV_DX)
#define SOURCE_STRIDE (TURNED ? 1 : WINOGRAD_STRIDE)
#define RESULT_STRIDE (TURNED ? WINOGRAD_STRIDE : 1)

/* u = the points of rows [k0, k0 + rows) and columns [n0, n0 + cols) of weight [N, side, side, C], within a
 * phase; rows is at most WINOGRAD_WEIGHT_ROWS. Columns past `cols` are 0. */
#define KERNEL_PIXELS (KERNEL_SIDE * KERNEL_SIDE)
#define TAP_FLOATS (WINOGRAD_WEIGHT_ROWS * TILE_COLS)
static inline void points_of_weights(__global const T *weight, int C, int k0, int rows, int n0, int cols,
                                     weight_points u, long pitch) {
    floatv tap_vectors[WINOGRAD_TAPS * WINOGRAD_TAPS * TAP_FLOATS / VEC];
    float *taps = (float *)tap_vectors;
    const int phase = WINOGRAD_STRIDE == 1 ? 0 : (TURNED ? n0 : k0) / C, c0 = (TURNED ? n0 : k0) - phase * C;
    for (int i = 0; i < WINOGRAD_TAPS; ++i)
        for (int j = 0; j < WINOGRAD_TAPS; ++j) {
            float *tap = taps + (i * WINOGRAD_TAPS + j) * TAP_FLOATS;
            const int r = place_of_tap(i, phase / WINOGRAD_STRIDE, TURNED);
            const int s = place_of_tap(j, phase % WINOGRAD_STRIDE, TURNED);
            const long pixel = (long)(TURNED ? k0 : n0) * KERNEL_PIXELS + r * KERNEL_SIDE + s;
            if (cols < TILE_COLS || r < 0 || s < 0)
                for (int at = 0; at < TAP_FLOATS; at += VEC) STOREFV((floatv)(0.0f), tap, at);
            if (r >= 0 && s >= 0) panel_load(weight + pixel * C + c0, (long)KERNEL_PIXELS * C, rows, cols, tap);
        }
    for (int at = 0; at < rows * TILE_COLS; at += VEC) {
#define TAP(i, j) LOADFV(taps, ((i)*WINOGRAD_TAPS + (j)) * TAP_FLOATS + at)
#define TO_U(i, j, value) STOREFV(value, u, ((i)*WINOGRAD_PATCH + (j)) * pitch + at)
        BOTH_DIMENSIONS(kernel_points, WINOGRAD_TAPS, WINOGRAD_PATCH, TAP, TO_U);
    }
}

/* Number of rows from k on, of K, whose points are computed at once: those of one phase. */
static inline int weight_rows(int C, int k, int K) {
    const int left = TURNED || WINOGRAD_STRIDE == 1 ? K - k : C - k % C;
    return min(min(WINOGRAD_WEIGHT_ROWS, K - k), left);
}

/* Prefetches part `i` of `parts` of what points_of_weights reads: lines too far apart for the hardware to
 * anticipate. */
static inline void weights_prefetch(__global const T *weight, int C, int k0, int rows, int n0, int cols, int i,
                                    int parts) {
    const int kernels = TURNED ? rows : cols, length = TURNED ? cols : rows, taps = WINOGRAD_TAPS * WINOGRAD_TAPS;
    const int phase = WINOGRAD_STRIDE == 1 ? 0 : (TURNED ? n0 : k0) / C, c0 = (TURNED ? n0 : k0) - phase * C;
    for (int n = kernels * taps * i / parts, end = kernels * taps * (i + 1) / parts; n < end; ++n) {
        const int r = place_of_tap(n % taps / WINOGRAD_TAPS, phase / WINOGRAD_STRIDE, TURNED);
        const int s = place_of_tap(n % WINOGRAD_TAPS, phase % WINOGRAD_STRIDE, TURNED);
        const long pixel = (long)((TURNED ? k0 : n0) + n / taps) * KERNEL_PIXELS + r * KERNEL_SIDE + s;
        for (int at = 0; at < length && r >= 0 && s >= 0; at += LINE) PREFETCH(weight + pixel * C + c0 + at);
    }
}

#if GLOBAL_PANELS
/* result = U of all K rows and all columns. A work-item computes some rows of one panel, all of a phase. */
__kernel void conv_winograd_weights(TENSOR(const T, weight), TENSOR(float, result), const int N, const int C,
                                    const long pitch) {
    const int of_phase = TURNED ? N : C, K = TURNED ? N : PHASES * C, columns = TURNED ? PHASES * C : N;
    const int steps = (of_phase + WINOGRAD_WEIGHT_ROWS - 1) / WINOGRAD_WEIGHT_ROWS, all_steps = K / of_phase * steps;
    const int p = get_group_id(0) / all_steps, step = get_group_id(0) % all_steps, n0 = p * TILE_COLS;
    const int k0 = step / steps * of_phase + step % steps * WINOGRAD_WEIGHT_ROWS;
    points_of_weights(AT(weight), C, k0, weight_rows(C, k0, K), n0, min(TILE_COLS, columns - n0),
                      AT(result) + (long)p * WINOGRAD_POINTS * pitch + (long)k0 * TILE_COLS, pitch);
}
#endif

/* Column n of the result at a tile's corner: its pixel (within its block, if results are blocks), and its
 * index in the tensor. */
typedef struct result_corner {
    int h, w;
    long at;
} result_corner;
static inline result_corner corner_of(const tile_place place, int n, int rows, int columns, int features, int origin) {
    const int phase = RESULT_STRIDE == 1 ? 0 : n / features;
    result_corner corner = {RESULT_STRIDE * place.top + phase / RESULT_STRIDE - origin,
                            RESULT_STRIDE * place.left + phase % RESULT_STRIDE - origin};
    corner.at = (((long)place.image * rows + corner.h) * columns + corner.w) * features + n - phase * features;
    return corner;
}
/* Whether result (i, j) of the tile exists, and its distance from the corner. */
static inline bool result_exists(const result_corner corner, int i, int j, int rows, int columns) {
    const int h = corner.h + RESULT_STRIDE * i, w = corner.w + RESULT_STRIDE * j;
    return (RESULT_STRIDE == 1 || (h >= 0 && w >= 0)) && h < rows && w < columns;
}
#define RESULT_AT(i, j) (((long)(i)*columns + (j)) * (RESULT_STRIDE * features))

/* Prefetches part `i` of `parts` of the results of `tiles` tiles that will be stored, columns [n, n + cols):
 * all of them are stored at once, after the products. */
static inline void results_prefetch(__global T *result, int rows, int columns, int features, int origin,
                                    const tile_place *places, int tiles, int n, int cols, int i, int parts) {
    const int blocks = tiles * (WINOGRAD_SIDE * WINOGRAD_SIDE);
    for (int b = blocks * i / parts, end = blocks * (i + 1) / parts; b < end; ++b)
        for (int c = 0; c < cols; c += LINE) {
            const tile_place place = places[b / (WINOGRAD_SIDE * WINOGRAD_SIDE)];
            const int h = b / WINOGRAD_SIDE % WINOGRAD_SIDE, w = b % WINOGRAD_SIDE;
            const result_corner corner = corner_of(place, n + c, rows, columns, features, origin);
            if (result_exists(corner, h, w, rows, columns)) PREFETCH_WRITE(result + corner.at + RESULT_AT(h, w));
        }
}

/* A work-item's block of tiles and columns; next: the tiles of the next block if it reads other patches;
 * origin: that of the result's blocks. */
typedef struct block {
    block_images x;
    __global const T *weight;
    __global const float *points, *bias;
    __global const T *accum;
    __global T *result;
    long points_pitch;
    int to, rows, columns, features, origin, K, kernel_channels, n0, cols, tiles, next_tiles;
    const tile_place *places, *next_places;
} block;

/* The points of the kernel's rows [k, k + depth) and columns [n, n + cols): from conv_winograd_weights, or
 * computed here, to u. */
#if GLOBAL_PANELS
#define U_FLOATS VEC
INLINED panel_pointer panel_points(const block *b, int k, int depth, int n, int cols, float *u) {
    return b->points + (long)(n / TILE_COLS) * WINOGRAD_POINTS * b->points_pitch + (long)k * TILE_COLS;
}
#else
#define U_FLOATS (WINOGRAD_POINTS * U_PITCH)
INLINED panel_pointer panel_points(const block *b, int k, int depth, int n, int cols, float *u) {
    for (int i = 0, some; i < depth; i += some) {
        some = weight_rows(b->kernel_channels, k + i, k + depth);
        points_of_weights(b->weight, b->kernel_channels, k + i, some, n, cols, u + i * TILE_COLS, U_PITCH);
    }
    return u;
}
#endif

/* Prefetches part `call` of `calls` of the patches from next_k on, or of the next block and of the results. */
INLINED void next_prefetch(const block *b, int next_k, int call, int calls) {
    patches_prefetch(b->x, b->to, next_k ? b->places : b->next_places, next_k ? b->tiles : b->next_tiles, next_k,
                     min(CHUNK, b->K - next_k), call, calls);
    if (!next_k)
        results_prefetch(b->result, b->rows, b->columns, b->features, b->origin, b->places, b->tiles, b->n0, b->cols,
                         call, calls);
}

/* m [points][tiles] (+)= v u for rows [k, k + depth) of panel p of the columns. */
INLINED void panel_multiply(const block *b, int k, int depth, int p, float *v, float *u_floats, floatv *m_vectors) {
    const int N = RESULT_STRIDE * RESULT_STRIDE * b->features, n = b->n0 + p * TILE_COLS;
    const int cols = min(TILE_COLS, N - n), next_k = k + CHUNK < b->K ? k + CHUNK : 0;
    const int row_tiles = (b->tiles + TILE_ROWS - 1) / TILE_ROWS, panels = (b->cols + TILE_COLS - 1) / TILE_COLS;
    const nonzero_points nonzero =
        TURNED ? nonzero_points_of(b->features, n, cols, true) : nonzero_points_of(b->x.channels, k, depth, false);
    const bool more = p + 1 < panels;
    const int weights_n = more ? n + TILE_COLS : b->n0, weights_k = more ? k : k + CHUNK;
    const int weights_rows = clamp(b->K - weights_k, 0, CHUNK), weights_cols = min(TILE_COLS, N - weights_n);
    const long pitch = GLOBAL_PANELS ? b->points_pitch : U_PITCH;
    panel_pointer u = panel_points(b, k, depth, n, cols, u_floats);
    int call = p * WINOGRAD_POINTS * row_tiles;
    for (int point = 0, part = 0; point < WINOGRAD_POINTS; ++point)
        for (int t = 0; t < b->tiles; t += TILE_ROWS) {
            row_pointer row[TILE_ROWS];
            floatv *kept = m_vectors + (p * WINOGRAD_POINTS + point) * (M_PITCH / VEC) + t * TILE_VECS;
            tile_rows(v + point * V_PITCH, CHUNK, t, b->tiles, row);
            next_prefetch(b, next_k, call++, panels * WINOGRAD_POINTS * row_tiles);
            if (!GLOBAL_PANELS)
                weights_prefetch(b->weight, b->kernel_channels, weights_k, weights_rows, weights_n, weights_cols,
                                 part++, WINOGRAD_POINTS * row_tiles);
            if (k > 0 && !point_is_nonzero(nonzero, point)) continue;
            tile_add(row, 1, u + point * pitch, point_is_nonzero(nonzero, point) ? depth : 0, k == 0, kept);
        }
}

/* The results of tile t, columns [n, n + VEC) of the block. */
INLINED void results_store(const block *b, int t, int n, const floatv *m_vectors) {
    const int p = n / TILE_COLS;
    const floatv *m = m_vectors + p * WINOGRAD_POINTS * (M_PITCH / VEC) + t * TILE_VECS + n % TILE_COLS / VEC;
#define PRODUCT(i, j) m[((i)*WINOGRAD_PATCH + (j)) * (M_PITCH / VEC)]
    const int rows = b->rows, columns = b->columns, features = b->features;
    const result_corner corner = corner_of(b->places[t], b->n0 + n, rows, columns, features, b->origin);
    floatv tile[WINOGRAD_SIDE * WINOGRAD_SIDE];
#define TO_RESULT(i, j, value) tile[(i)*WINOGRAD_SIDE + (j)] = value
    BOTH_DIMENSIONS(tile_results, WINOGRAD_PATCH, WINOGRAD_SIDE, PRODUCT, TO_RESULT);
#pragma nounroll
    for (int r = 0; r < WINOGRAD_SIDE * WINOGRAD_SIDE; ++r) { /* unrolled, it takes a third longer to compile */
        const int i = r / WINOGRAD_SIDE, j = r % WINOGRAD_SIDE;
        if (result_exists(corner, i, j, rows, columns))
            write_row(tile[r], b->bias, b->accum, 0, b->result, corner.at + RESULT_AT(i, j), b->n0 + n, b->cols - n);
    }
}

/* result = accum + bias + the convolution of source with the kernel of U. A work-item processes (block of tiles,
 * block of columns), columns innermost, so that neighbours read the same patches. `origin`: of the blocks of x. */
OUTLINED void pixels_block(TENSOR(const T, source), TENSOR(const T, weight), TENSOR(const float, points),
                           TENSOR(const float, bias), TENSOR(const T, accum), TENSOR(T, result), const int images,
                           const int height, const int width, const int channels, const int rows, const int columns,
                           const int features, const int to, const int origin, const int block_tiles,
                           const int block_panels, const long points_pitch, const int group) {
    const int N = RESULT_STRIDE * RESULT_STRIDE * features, result_origin = TURNED ? origin : 0;
    const int block_columns = block_panels * TILE_COLS, across = (N + block_columns - 1) / block_columns;
    const int n0 = group % across * block_columns, first_tile = group / across * block_tiles;
    const int down = BLOCKS_ALONG(rows, RESULT_STRIDE, result_origin);
    const int along = BLOCKS_ALONG(columns, RESULT_STRIDE, result_origin);
    const int all_tiles = images * TILES_ALONG(down) * TILES_ALONG(along), next_tile = first_tile + block_tiles;
    tile_place places[BLOCK_ROWS], next_places[BLOCK_ROWS];
    const block b = {.x = {AT(source), height, width, channels, SOURCE_STRIDE, TURNED ? 0 : origin},
                     .weight = AT(weight),
                     .points = OR_NULL(points),
                     .bias = OR_NULL(bias),
                     .accum = OR_NULL(accum),
                     .result = AT(result),
                     .points_pitch = points_pitch,
                     .to = to,
                     .rows = rows,
                     .columns = columns,
                     .features = features,
                     .origin = result_origin,
                     .K = SOURCE_STRIDE * SOURCE_STRIDE * channels,
                     .kernel_channels = TURNED ? features : channels,
                     .n0 = n0,
                     .cols = min(block_columns, N - n0),
                     .tiles = min(block_tiles, all_tiles - first_tile),
                     .next_tiles = n0 + block_columns < N ? 0 : clamp(all_tiles - next_tile, 0, block_tiles),
                     .places = places,
                     .next_places = next_places};
    floatv v_vectors[WINOGRAD_POINTS * V_PITCH / VEC], m_vectors[BLOCK_PANELS * WINOGRAD_POINTS * M_PITCH / VEC];
    floatv u_vectors[U_FLOATS / VEC];
    tiles_find(down, along, first_tile, b.tiles, places);
    tiles_find(down, along, next_tile, b.next_tiles, next_places);
    for (int k = 0; k < b.K; k += CHUNK) {
        const int depth = min(CHUNK, b.K - k);
        points_of_patches(b.x, to, places, b.tiles, k, depth, (float *)v_vectors, CHUNK, V_PITCH);
        for (int p = 0; p * TILE_COLS < b.cols; ++p)
            panel_multiply(&b, k, depth, p, (float *)v_vectors, (float *)u_vectors, m_vectors);
    }
    for (int t = 0; t < b.tiles; ++t)
        for (int n = 0; n < b.cols; n += VEC) results_store(&b, t, n, m_vectors);
}

__kernel void conv_winograd_pixels(TENSOR(const T, source), TENSOR(const T, weight), TENSOR(const float, points),
                                   TENSOR(const float, bias), TENSOR(const T, accum), TENSOR(T, result),
                                   const int images, const int height, const int width, const int channels,
                                   const int rows, const int columns, const int features, const int to,
                                   const int origin, const int block_tiles, const int block_panels,
                                   const long points_pitch) {
    pixels_block(PASS(source), PASS(weight), PASS(points), PASS(bias), PASS(accum), PASS(result), images, height, width,
                 channels, rows, columns, features, to, origin, block_tiles, block_panels, points_pitch,
                 get_group_id(0));
}
