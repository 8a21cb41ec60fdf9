/* The three products of a convolution (conv.cl) for one work-item with wide vectors (WG == 1).
 *
 * No tensor of patches is materialized: the patches that a work-item multiplies next are copied to private
 * memory (patches_load), with zeros for pixels outside the image.
 *
 *   BY_POSITION   1: for small images, whose patches lie largely outside: pixels are ordered by position, so
 *                 that all pixels of a tile reach the same taps, and other taps are skipped. CHUNK divides
 *                 the source's channels.
 *
 *   CONV_FORWARD   C = y [pixels, N]     A = patches of x    B = weight^T (stored [N, R S C])
 *   CONV_DX        C = dx [pixels, C]    A = patches of dy   B = weight, its taps reversed
 *   CONV_DW        C = dw [N, R S C]     A = dy^T            B = patches of x; sums = row sums of A
 *
 * Everything else is as in gemm_cpu.clh. */
#include "lib/shared_numbers.clh"
#ifndef BY_POSITION
#define BY_POSITION 0
#endif
#define TRANS_A (CONV_KIND == CONV_DW)
#define TRANS_B (CONV_KIND == CONV_FORWARD)
#define PACKS_A 1
#if TRANS_A /* panels side by side; a vector of padding keeps their rows out of each other's cache sets */
#define PANEL_PITCH (BLOCK_PANELS * TILE_VECS * VEC + VEC)
#endif
#include "lib/common.clh"
#include "conv/conv.clh"
#include "lib/epilogue.clh"
#include "lib/gemm_cpu.clh"

/* 1: final sums are stored directly from the registers, which must hold a whole tile. If pixels are rounded
 * to halves first, the additional registers make PoCL 3.1 keep the sums of the innermost loop in memory. */
#if !MANY_SUMS || (!TRANS_A && (defined(STORAGE_F16) || defined(STORAGE_BF16)))
#define FROM_REGISTERS 0
#else
#define FROM_REGISTERS 1
#endif

/* --- patches -------------------------------------------------------------------------------------------- */

/* The patch on which a result depends: its corner (top, left) in the source; the index of the source pixel at
 * the corner, counted over all images (the pixel may not exist); and the index of the result's own pixel. */
typedef struct patch {
    int top, left, corner, to;
} patch;

static inline patch patch_at(grid g, int b, int u, int v) {
    const int top = g.top + u * g.step, left = g.left + v * g.step;
    const patch p = {top, left, (b * g.height + top) * g.width + left,
                     (b * g.to_height + g.to_top + u * g.to_step) * g.to_width + g.to_left + v * g.to_step};
    return p;
}

/* Finds the patches of results m .. m + count of a grid: numbered image by image, or position by position
 * across all images. */
static inline void patches_find(grid g, int images, int m, int count, patch *found) {
    for (int i = 0; BY_POSITION && i < count; ++i)
        found[i] = patch_at(g, (m + i) % images, (m + i) / images / g.columns, (m + i) / images % g.columns);
    if (BY_POSITION) return;
    int v = m % g.columns, u = m / g.columns % g.rows, b = m / g.columns / g.rows;
    for (int i = 0; i < count; ++i) {
        found[i] = patch_at(g, b, u, v);
        if (++v < g.columns) continue;
        v = 0;
        if (++u < g.rows) continue;
        u = 0;
        ++b;
    }
}

/* Whether the pixel of a patch that tap `tap` reads lies in the image. */
static inline bool is_inside(grid g, int tap, patch p) {
    const int row = p.top + tap / g.taps_along, column = p.left + tap % g.taps_along;
    return row >= 0 && row < g.height && column >= 0 && column < g.width;
}

/* depths[i] = depth, or 0 if the tap reads no pixel of the patches of tile i. */
static inline void depths_find(grid g, int tap, int depth, const patch *patches, int count, int *depths) {
    for (int i = 0; i < count; ++i) {
        const bool before = i % TILE_ROWS && depths[i / TILE_ROWS];
        depths[i / TILE_ROWS] = depth && (before || is_inside(g, tap, patches[i])) ? depth : 0;
    }
}

/* Copies whole vectors: up to VEC - 1 floats past `count` are also written. `end` is the end of the source;
 * nothing is read past it. */
static inline void floats_copy(__global const T *from, __global const T *end, int count, float *to) {
    int i = 0;
    for (; i < count && end - (from + i) >= VEC; i += VEC) STOREFV(LOADV(from, i), to, i);
    for (; i < count; ++i) to[i] = LOAD(from, i);
}
static inline void floats_clear(int count, float *to) {
    for (int i = 0; i < count; i += VEC) STOREFV((floatv)(0.0f), to, i);
}

/* to[i, 0 .. depth) = elements [k, k + depth) of patch i; rows are `ld` apart. Each row of a patch is
 * contiguous in the source. Up to VEC - 1 floats past a run are written and then overwritten by the next run,
 * so the runs must be copied in the order of `to`, and the buffer must end with one spare vector. */
static inline void patches_load(__global const T *source, grid g, int images, const patch *patches, int count, int k,
                                int depth, float *to, int ld) {
    if (depth == 0) return;
    const int run = g.taps_along * g.channels, pitch = g.width * g.channels, k_down = k / run, k_first = k % run;
    __global const T *end = source + (long)images * g.height * pitch;
    for (int i = 0; i < count; ++i) {
        const patch p = patches[i];
        const int inside_begin = max(-p.left * g.channels, 0), inside_end = min((g.width - p.left) * g.channels, run);
        const bool within = p.left >= 0 && p.left + g.taps_along <= g.width;
        int down = p.top + k_down, first = k_first;
        __global const T *from = source + (long)(p.corner + k_down * g.width) * g.channels;
        for (int done = 0; done < depth;) {
            const int here = min(run - first, depth - done);
            const int inside = max(inside_begin - first, 0), outside = min(inside_end - first, here);
            float *row = to + i * ld + done;
            if (down < 0 || down >= g.height || inside >= outside) {
                floats_clear(here, row);
            } else if (within) {
                floats_copy(from + first, end, here, row);
            } else {
                if (inside > 0) floats_clear(inside, row);
                floats_copy(from + first + inside, end, outside - inside, row + inside);
                if (outside < here) floats_clear(here - outside, row + outside);
            }
            done += here;
            first = 0;
            from += pitch;
            ++down;
        }
    }
}

/* --- tiles ---------------------------------------------------------------------------------------------- */

/* Where the results of a tile are stored (write_sum), and how many of its rows and columns exist. Row i
 * begins at pixel `to` of its patch (y, dx) or at element `at` + i * ld (dw), where ld is the length of the
 * result's rows; n: column of the bias. */
typedef struct tile_results {
    __global float *part;
    __global const float *bias;
    __global const TC *accum;
    __global TC *result;
    const patch *patches;
    long at, ld;
    int n, rows, cols;
} tile_results;

INLINED void result_write(const tile_results *t, floatv sum, int i, int v, int cols) {
    const long at = TRANS_A ? t->at + i * t->ld : t->patches[i].to * t->ld + t->n;
    write_sum(sum, t->part, t->bias, t->accum, 0, t->result, at + v * VEC, t->n + v * VEC, cols);
}
INLINED void results_write(const tile_results *t, const floatv *kept) {
    for (int i = 0; i < min(TILE_ROWS, t->rows); ++i)
        for (int v = 0; v * VEC < t->cols; ++v) result_write(t, kept[i * TILE_VECS + v], i, v, t->cols - v * VEC);
}

/* kept (first: 0) + the product of a tile to kept, or (last) to the result. */
#if FROM_REGISTERS
INLINED void tile_finish(const row_pointer row[TILE_ROWS], long step, const float *panel, int depth, bool first,
                         bool last, floatv *kept, const tile_results *t) {
    floatv sum[TILE_ROWS][TILE_VECS];
    piece_begin(first ? 0 : kept, sum);
    piece_multiply(row, step, panel, depth, sum);
    if (last && t->cols == TILE_COLS && t->rows >= TILE_ROWS) {
#pragma unroll
        for (int i = 0; i < TILE_ROWS; ++i) {
#pragma unroll
            for (int v = 0; v < TILE_VECS; ++v) result_write(t, sum[i][v], i, v, VEC);
        }
        return;
    }
    piece_keep(sum, kept);
    if (last) results_write(t, kept);
}
#else
INLINED void tile_finish(const row_pointer row[TILE_ROWS], long step, const float *panel, int depth, bool first,
                         bool last, floatv *kept, const tile_results *t) {
    tile_add(row, step, panel, depth, first, kept);
    if (last) results_write(t, kept);
}
#endif

#if !TRANS_A /* --- y and dx: results are pixels ---------------------------------------------------------- */

/* Row (tap, n) of B: the weight of filter n for tap `tap` of a phase, in the order of the patches of dy. */
static inline __global const T *filter_row(__global const T *weight, grid g, int down, int along, GEOMETRY, int tap,
                                           int n) {
    const int r = down + stride * (g.taps_down - 1 - tap / g.taps_along);
    const int s = along + stride * (g.taps_along - 1 - tap % g.taps_along);
    return weight + (((long)n * R + r) * S + s) * C;
}

/* panel = rows [k, k + depth) and columns [n, n + cols) of B. */
static inline void filters_load(__global const T *weight, grid g, int down, int along, GEOMETRY, int k, int depth,
                                int n, int cols, float *panel) {
    if (CONV_KIND == CONV_FORWARD) {
        panel_load(weight + (long)n * R * S * C + k, (long)R * S * C, depth, cols, panel);
        return;
    }
    for (int done = 0; done < depth;) {
        const int tap = (k + done) / N, first = (k + done) % N, here = min(N - first, depth - done);
        panel_load(filter_row(weight, g, down, along, B, H, W, C, P, Q, N, R, S, stride, padding, tap, first) + n,
                   (long)R * S * C, here, cols, panel + done * TILE_COLS);
        done += here;
    }
}

/* Prefetches part `i` of `parts` of what filters_load loads next; its pieces are too short for the hardware
 * prefetcher. */
static inline void filters_prefetch(__global const T *weight, grid g, int down, int along, GEOMETRY, int k, int depth,
                                    int n, int cols, int i, int parts) {
    if (CONV_KIND == CONV_FORWARD) {
        __global const T *from = weight + (long)n * R * S * C + k;
        for (int row = cols * i / parts; row < cols * (i + 1) / parts; ++row)
            for (int at = 0; at < depth; at += LINE) PREFETCH(from + (long)row * R * S * C + at);
        return;
    }
    for (int row = k + depth * i / parts, row_end = k + depth * (i + 1) / parts; row < row_end;) {
        const int tap = row / N, first = row % N, here = min(N - first, row_end - row);
        __global const T *from =
            filter_row(weight, g, down, along, B, H, W, C, P, Q, N, R, S, stride, padding, tap, first) + n;
        for (int j = 0; j < here; ++j)
            for (int at = 0; at < cols; at += LINE) PREFETCH(from + (long)j * R * S * C + at);
        row += here;
    }
}

/* A work-item processes (block of pixels, block of columns, phase of dx). Phases are innermost, the one with
 * most taps last: their work is unequal (a 1 x 1 kernel has one phase with taps), and a thread takes half of
 * the remaining work-items at once, so each gets its share of all phases. Columns come next, so that
 * neighbours read the same patches. */
OUTLINED void pixels_block(TENSOR(const T, source), TENSOR(const T, weight), TENSOR(const float, bias),
                           TENSOR(const T, accum), TENSOR(T, result), GEOMETRY, const int block_rows,
                           const int block_panels, const int group) {
    const int to_channels = CONV_KIND == CONV_FORWARD ? N : C;
    const int width = block_panels * TILE_COLS, across = (to_channels + width - 1) / width;
    const int phases = CONV_KIND == CONV_FORWARD ? 1 : stride * stride;
    const int phase = phases - 1 - group % phases, item = group / phases;
    const int n0 = item % across * width, cols = min(width, to_channels - n0), block = item / across;
    const grid g = CONV_KIND == CONV_FORWARD
                       ? grid_forward(B, H, W, C, P, Q, N, R, S, stride, padding)
                       : grid_phase(phase / stride, phase % stride, B, H, W, C, P, Q, N, R, S, stride, padding);
    const int rows = min(block_rows, B * g.rows * g.columns - block * block_rows);
    if (rows <= 0) return;
    const int K = g.taps_down * g.taps_along * g.channels;

    patch patches[BLOCK_ROWS];
    floatv panel_vectors[CHUNK * TILE_VECS], copy_vectors[COPY_FLOATS / VEC + 1];
    floatv sums[BLOCK_PANELS * BLOCK_ROWS * TILE_VECS]; /* [panel][row][TILE_VECS], between chunks */
    float *panel = (float *)panel_vectors, *copy = (float *)copy_vectors;
    if (cols % TILE_COLS) panel_clear(panel);
    int depths[(BLOCK_ROWS + TILE_ROWS - 1) / TILE_ROWS];
    patches_find(g, B, block * block_rows, rows, patches);

    int k = 0;
    do { /* at least once, because pixels that no tap reaches receive their accum */
        const int depth = min(CHUNK, K - k);
        const bool first = k == 0, last = k + CHUNK >= K;
        patches_load(AT(source), g, B, patches, rows, k, depth, copy, CHUNK);
        if (BY_POSITION) /* a chunk has channels of one tap */
            depths_find(g, K ? k / g.channels : 0, depth, patches, rows, depths);
        for (int p = 0; p * TILE_COLS < cols; ++p) {
            const int n = n0 + p * TILE_COLS, here = min(TILE_COLS, to_channels - n);
            const bool more = (p + 1) * TILE_COLS < cols;
            const int next_n = more ? n + TILE_COLS : n0, next_k = more ? k : k + CHUNK;
            filters_load(AT(weight), g, phase / stride, phase % stride, B, H, W, C, P, Q, N, R, S, stride, padding, k,
                         depth, n, here, panel);
            for (int m = 0; m < rows; m += TILE_ROWS) {
                row_pointer row[TILE_ROWS];
                const tile_results to = {
                    0, OR_NULL(bias), OR_NULL(accum), AT(result), patches + m, 0, to_channels, n, rows - m, here};
                tile_rows(copy, CHUNK, m, rows, row);
                filters_prefetch(AT(weight), g, phase / stride, phase % stride, B, H, W, C, P, Q, N, R, S, stride,
                                 padding, next_k, min(CHUNK, K - next_k), next_n, min(TILE_COLS, to_channels - next_n),
                                 m / TILE_ROWS, (rows + TILE_ROWS - 1) / TILE_ROWS);
                tile_finish(row, 1, panel, BY_POSITION ? depths[m / TILE_ROWS] : depth, first, last,
                            sums + (p * BLOCK_ROWS + m) * TILE_VECS, &to);
            }
        }
        k += CHUNK;
    } while (k < K);
}

__kernel void conv_cpu_pixels(TENSOR(const T, source), TENSOR(const T, weight), TENSOR(const float, bias),
                              TENSOR(const T, accum), TENSOR(T, result), GEOMETRY, const int block_rows,
                              const int block_panels) {
    pixels_block(PASS(source), PASS(weight), PASS(bias), PASS(accum), PASS(result), B, H, W, C, P, Q, N, R, S, stride,
                 padding, block_rows, block_panels, get_group_id(0));
}

#else /* --- dw: results are filters ---------------------------------------------------------------------- */

/* A work-item processes (split of the pixels, block of filters, block of their elements), elements innermost.
 * If there are splits, each writes its own part of `partial` [splits, N, R S C] and of `sums` [splits, N]. */
OUTLINED void filters_block(TENSOR(const T, dy), TENSOR(const T, x), TENSOR(const TC, accum), TENSOR(TC, dw),
                            TENSOR(const float, sums_accum), TENSOR(float, sums), TENSOR(float, partial), GEOMETRY,
                            const int block_rows, const int block_panels, const int split_depth, const int group) {
    const grid g = grid_forward(B, H, W, C, P, Q, N, R, S, stride, padding);
    const int pixels = B * P * Q, elements = R * S * C, width = block_panels * TILE_COLS;
    const int across = (elements + width - 1) / width, down = (N + block_rows - 1) / block_rows;
    const int split = group / (across * down);
    const int n0 = group / across % down * block_rows, e0 = group % across * width;
    const int rows = min(block_rows, N - n0), cols = min(width, elements - e0);
    const int m_first = split * split_depth, m_end = min(pixels, m_first + split_depth);
    const int row_tiles = (rows + TILE_ROWS - 1) / TILE_ROWS;
    __global float *part = HAS(partial) ? AT(partial) + (long)split * N * elements : 0;

    patch patches[CHUNK];
    floatv panel_vectors[CHUNK * PANEL_PITCH / VEC + 1], copy_vectors[COPY_FLOATS / VEC], row_sums[BLOCK_ROWS / VEC];
    floatv kept_sums[BLOCK_PANELS * BLOCK_ROWS * TILE_VECS]; /* [panel][row][TILE_VECS], between chunks */
    float *panels = (float *)panel_vectors, *copy = (float *)copy_vectors;
    if (cols % TILE_COLS)
        for (int i = 0; i < CHUNK * PANEL_PITCH / VEC + 1; ++i) panel_vectors[i] = (floatv)(0.0f);
    for (int i = 0; i < BLOCK_ROWS / VEC; ++i) row_sums[i] = (floatv)(0.0f);

    for (int m = m_first; m < m_end; m += CHUNK) {
        const int depth = min(CHUNK, m_end - m);
        const bool first = m == m_first, last = m + CHUNK >= m_end;
        rows_load(AT(dy) + (long)m * N + n0, N, depth, rows, copy, row_sums);
        patches_find(g, B, m, depth, patches);
        patches_load(AT(x), g, B, patches, depth, e0, cols, panels, PANEL_PITCH);
        for (int p = 0; p * TILE_COLS < cols; ++p) {
            const int e = e0 + p * TILE_COLS, here = min(TILE_COLS, elements - e);
            const float *panel = panels + p * TILE_COLS;
            for (int r = 0; r < rows; r += TILE_ROWS) {
                row_pointer row[TILE_ROWS];
                const long at = (long)(n0 + r) * elements + e;
                const tile_results to = {part, 0, OR_NULL(accum), AT(dw), 0, at, elements, 0, rows - r, here};
                tile_rows(copy, 0, r, rows, row);
                rows_prefetch(AT(dy) + (long)(m + CHUNK) * N + n0, N, min(CHUNK, m_end - m - CHUNK), rows,
                              p * row_tiles + r / TILE_ROWS, (cols + TILE_COLS - 1) / TILE_COLS * row_tiles);
                if (last && !part && HAS(accum)) tile_prefetch(AT(accum) + at, elements);
                tile_finish(row, VEC, panel, depth, first, last, kept_sums + (p * BLOCK_ROWS + r) * TILE_VECS, &to);
            }
        }
    }
    if (HAS(sums) && e0 == 0)
        row_sums_store(row_sums, rows, HAS(sums_accum) ? AT(sums_accum) + n0 : 0, AT(sums) + (long)split * N + n0);
}

__kernel void conv_cpu_filters(TENSOR(const T, dy), TENSOR(const T, x), TENSOR(const TC, accum), TENSOR(TC, dw),
                               TENSOR(const float, sums_accum), TENSOR(float, sums), TENSOR(float, partial), GEOMETRY,
                               const int block_rows, const int block_panels, const int split_depth) {
    filters_block(PASS(dy), PASS(x), PASS(accum), PASS(dw), PASS(sums_accum), PASS(sums), PASS(partial), B, H, W, C, P,
                  Q, N, R, S, stride, padding, block_rows, block_panels, split_depth, get_group_id(0));
}

#endif
