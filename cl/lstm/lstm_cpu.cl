/* An LSTM layer for one work-item with wide vectors (WG == 1).
 *
 * Samples are independent, so a work-item processes all steps of a block of samples alone. Its state and the
 * gates of the current step stay in its caches, and so does the recurrent weight, which is packed once into
 * the order in which the tiles read it.
 *
 * WIDTH (rows.clh) is the number of hidden units. In the scratch memory of a work-item a row of units is
 * UNITS vectors, the last one padded with zeros, and the four gates of a sample are four such rows. The
 * padding has no effect, because its weights are zero. */
#include "lib/common.clh"
#include "lib/prefetch.clh"
#include "lib/rows.clh"
#include "lstm/lstm.clh"

#define UNITS ((WIDTH + VEC - 1) / VEC)
#define GATE_ROWS (4 * UNITS * VEC) /* gates as rows of the weight, padded */
#define DEPTH (UNITS * VEC)

/* Inputs of a whole layer, whose products with weight_ih the kernels compute too; 0: only the recurrent part. */
#ifndef INPUTS
#define INPUTS 0
#endif
#define INPUT_VECS ((INPUTS + VEC - 1) / VEC)
#define INPUT_DEPTH (INPUT_VECS * VEC)

/* Tiles of the backward pass have COLUMNS or WEIGHT_COLUMNS vectors, 1 to 4: those of (dh[t - 1], dx[t]),
 * where the latter is left out if DX is 0, and those of the gradients of both weights, for which rows (h[t -
 * 1], x[t]) are multiplied. */
#ifndef DX
#define DX 0
#endif
#ifndef COLUMNS
#define COLUMNS 1
#endif
#ifndef WEIGHT_COLUMNS
#define WEIGHT_COLUMNS 1
#endif
#define PANELS ((UNITS + DX * INPUT_VECS + COLUMNS - 1) / COLUMNS)
#define WEIGHT_PANELS ((UNITS + INPUT_VECS + WEIGHT_COLUMNS - 1) / WEIGHT_COLUMNS)
#define WEIGHT_VECS (WEIGHT_PANELS * WEIGHT_COLUMNS)

/* 1: gates and cells are [length, batch, ...], so that what a step writes or reads is contiguous; 0: [batch,
 * length, ...]. */
#ifndef TIME_MAJOR
#define TIME_MAJOR 0
#endif

/* Distance between samples, in vectors, of units, of gates and of rows of both, each padded: (x[t], h[t - 1])
 * in the forward pass, (h[t - 1], x[t]) in the backward pass. The host passes odd numbers, so that samples do
 * not share a cache set. */
#ifndef UNIT_PITCH
#define UNIT_PITCH UNITS
#endif
#ifndef GATE_PITCH
#define GATE_PITCH (4 * UNITS)
#endif
#ifndef OPERAND_PITCH
#define OPERAND_PITCH (WEIGHT_VECS > PANELS * COLUMNS ? WEIGHT_VECS : PANELS * COLUMNS)
#endif
#if UNIT_PITCH < UNITS || GATE_PITCH < 4 * UNITS || OPERAND_PITCH < WEIGHT_VECS || OPERAND_PITCH < PANELS * COLUMNS
#error samples must not overlap
#endif

/* Depth of a panel of weights, a multiple of VEC. A panel must fit in the first-level cache. */
#ifndef CHUNK
#define CHUNK 128
#endif

typedef __global floatv *vectors;
typedef __global const floatv *const_vectors;
typedef __global const float *scalars;

/* --- register tiles ------------------------------------------------------------------------------------- */

/* Samples of a tile. */
#ifndef TILE
#define TILE 4
#endif
#if MANY_SUMS
#define UNROLL_STEPS
#else
#define UNROLL_STEPS _Pragma("unroll 4")
#endif
#define FOR_TILE(width)                                                                                                \
    _Pragma("unroll") for (int i = 0; i < TILE; ++i) _Pragma("unroll") for (int w = 0; w < 4; ++w) if (w < (width))

/* c[i][w] += sum over k < depth of a[i * row + k * step] * b[k * pitch + w] for w < width <= 4. */
static inline void multiply_columns(floatv c[TILE][4], int width, scalars a, int row, int step, const_vectors b,
                                    int pitch, int depth) {
    UNROLL_STEPS for (int k = 0; k < depth; ++k) {
        floatv x[4];
#pragma unroll
        for (int w = 0; w < 4; ++w)
            if (w < width) x[w] = b[k * pitch + w];
#pragma unroll
        for (int i = 0; i < TILE; ++i) {
            const floatv s = (floatv)(a[i * row + k * step]);
#pragma unroll
            for (int w = 0; w < 4; ++w)
                if (w < width) c[i][w] = fma(s, x[w], c[i][w]);
        }
    }
}

/* The same with all sums in registers (gemm_cpu.clh): the whole tile, or one column after the other. */
static inline void multiply(floatv c[TILE][4], int width, scalars a, int row, int step, const_vectors b, int pitch,
                            int depth) {
#if MANY_SUMS
    multiply_columns(c, width, a, row, step, b, pitch, depth);
#else
#pragma nounroll
    for (int w = 0; w < width; ++w) {
        floatv sum[TILE][4];
#pragma unroll
        for (int i = 0; i < TILE; ++i) sum[i][0] = c[i][w];
        multiply_columns(sum, 1, a, row, step, b + w, pitch, depth);
#pragma unroll
        for (int i = 0; i < TILE; ++i) c[i][w] = sum[i][0];
    }
#endif
}

/* Element (i, w) of the tile is at from[i * pitch + w * step]; all elements are zero if `from` is NULL. */
static inline void tile_load(floatv c[TILE][4], int width, const_vectors from, int pitch, int step) {
    FOR_TILE(width) c[i][w] = from ? from[i * pitch + w * step] : (floatv)(0.0f);
}
static inline void tile_store(floatv c[TILE][4], int width, vectors to, int pitch, int step) {
    FOR_TILE(width) to[i * pitch + w * step] = c[i][w];
}

/* Stores that bypass the caches if the compiler can: the results of a step are not read before all steps are
 * done, and their lines need not be read to be overwritten. */
static inline void stream(floatv v, __global T *row, int at) {
#if STREAMS && WHOLE && defined(STORAGE_F32) && __clang_major__ >= 13
    __builtin_nontemporal_store(v, (__global floatv *)(row + at));
#else
    row_store(v, row, at);
#endif
}

/* VEC inputs of a row from number `at` on. */
static inline floatv input_load(__global const T *row, int at) {
    return at + VEC <= INPUTS ? LOADV(row, at) : LOADN(row, at, INPUTS - at);
}

static inline void clear(vectors x, int count) {
    for (int i = 0; i < count; ++i) x[i] = (floatv)(0.0f);
}

/* --- the weight, packed --------------------------------------------------------------------------------- */

/* A vector of units of one gate in row k of weight^T; weight T [4 WIDTH, width]. */
static inline floatv gate_column(__global const T *weight, int gate, int unit, int k, int width) {
    float lane[VEC];
    for (int j = 0; j < VEC; ++j)
        lane[j] = unit + j < WIDTH && k < width ? LOAD(weight, (long)(gate * WIDTH + unit + j) * width + k) : 0.0f;
    return vector_of(lane);
}

/* packed [UNITS][DEPTH][4]: the weights of the four gates for each vector of units and each k. weight T
 * [4 WIDTH, WIDTH]. */
__kernel void lstm_cpu_pack_gates(TENSOR(const T, weight), TENSOR(float, packed)) {
    for (int i = get_global_id(0); i < UNITS * DEPTH * 4; i += get_global_size(0)) {
        const int gate = i % 4, k = i / 4 % DEPTH, unit = i / 4 / DEPTH * VEC;
        STOREFV(gate_column(AT(weight), gate, unit, k, WIDTH), AT(packed), (long)i * VEC);
    }
}

#if INPUTS
#define LAYER_DEPTH (INPUT_DEPTH + DEPTH)
/* packed [UNITS][LAYER_DEPTH][4]: the same for the rows of weight_ih^T, then those of weight_hh^T; behind it the
 * biases [UNITS][4]. weight_ih T [4 WIDTH, INPUTS], bias [4 WIDTH] (may be NULL). */
__kernel void lstm_cpu_pack_layer(TENSOR(const T, weight_ih), TENSOR(const T, weight_hh), TENSOR(const float, bias),
                                  TENSOR(float, packed)) {
    const int count = UNITS * LAYER_DEPTH * 4;
    for (int i = get_global_id(0); i < count + UNITS * 4; i += get_global_size(0)) {
        floatv x = (floatv)(0.0f);
        if (i < count) {
            const int gate = i % 4, k = i / 4 % LAYER_DEPTH, unit = i / 4 / LAYER_DEPTH * VEC;
            x = k < INPUT_DEPTH ? gate_column(AT(weight_ih), gate, unit, k, INPUTS)
                                : gate_column(AT(weight_hh), gate, unit, k - INPUT_DEPTH, WIDTH);
        } else if (HAS(bias))
            x = row_load_f32(AT(bias) + i % 4 * WIDTH, (i - count) / 4 * VEC);
        STOREFV(x, AT(packed), (long)i * VEC);
    }
}
#endif

/* packed [PANELS][GATE_ROWS][COLUMNS]: the rows of (weight_hh, weight_ih), padded, for each panel of columns.
 * weight_hh T [4 WIDTH, WIDTH], weight_ih T [4 WIDTH, INPUTS] (not read without DX). */
__kernel void lstm_cpu_pack_rows(TENSOR(const T, weight_hh), TENSOR(const T, weight_ih), TENSOR(float, packed)) {
    for (int i = get_global_id(0); i < PANELS * GATE_ROWS * COLUMNS; i += get_global_size(0)) {
        const int column = (i / COLUMNS / GATE_ROWS * COLUMNS + i % COLUMNS) * VEC, row = i / COLUMNS % GATE_ROWS;
        const int gate = row / DEPTH, unit = row % DEPTH;
        floatv w = (floatv)(0.0f);
        if (unit < WIDTH && column < DEPTH)
            w = row_load(AT(weight_hh) + (long)(gate * WIDTH + unit) * WIDTH, column);
        else if (unit < WIDTH && column >= DEPTH && column - DEPTH < DX * INPUTS)
            w = input_load(AT(weight_ih) + (long)(gate * WIDTH + unit) * INPUTS, column - DEPTH);
        STOREFV(w, AT(packed), (long)i * VEC);
    }
}

/* --- forward -------------------------------------------------------------------------------------------- */

/* The cells of TILE samples and one vector of units. z holds the pre-activations of the gates and receives
 * the gates; c and h point to the first sample's vector. */
static inline void cells_of(floatv z[TILE][4], vectors c, vectors h) {
    floatv cell[TILE], decay[TILE];
#pragma unroll
    for (int i = 0; i < TILE; ++i) {
        /* 1 / a = b (1 / (a b)): one division for two reciprocals. */
        const floatv in = one_and_decay(z[i][0]), forget = one_and_decay(z[i][1]);
        const floatv fresh = one_and_decay(2.0f * z[i][2]), out = one_and_decay(z[i][3]);
        const floatv r = 1.0f / (in * forget), s = 1.0f / (fresh * out);
        z[i][0] = r * forget;
        z[i][1] = r * in;
        z[i][2] = tanh_with(z[i][2], s * out);
        z[i][3] = s * fresh;
        cell[i] = fma(z[i][1], c[i * UNIT_PITCH], z[i][0] * z[i][2]);
        decay[i] = one_and_decay(2.0f * cell[i]);
        c[i * UNIT_PITCH] = cell[i];
    }
#pragma unroll
    for (int i = 0; i < TILE; i += 2) {
        const floatv r = 1.0f / (decay[i] * decay[i + 1]);
        h[i * OPERAND_PITCH] = z[i][3] * tanh_with(cell[i], r * decay[i + 1]);
        h[(i + 1) * OPERAND_PITCH] = z[i + 1][3] * tanh_with(cell[i + 1], r * decay[i]);
    }
}

/* A step of a block's samples in the tensors: the first sample's row of each, and the distances between samples. */
typedef struct step_rows {
    __global const T *products;
    __global T *gates, *cells, *h;
    long gate_row, cell_row, unit_row;
} step_rows;

/* Prefetches the products of the tile that begins with sample `first` and unit `unit`. Samples are far apart, at
 * distances that may be multiples of a power of two, so that the caches hold one tile of lines, but not those of a
 * block. */
static inline void products_prefetch(const step_rows *s, int first, int unit, int n) {
    for (int i = 0; i < TILE; ++i)
        for (int w = 0; w < 4; ++w) PREFETCH(s->products + min(first + i, n - 1) * s->gate_row + w * WIDTH + unit);
}

/* The pre-activations of a tile, without the recurrent part. Samples past the last one repeat it. */
static inline void products_load(floatv z[TILE][4], const step_rows *s, int first, int unit, int n) {
    FOR_TILE(4) z[i][w] = row_load(s->products + min(first + i, n - 1) * s->gate_row + w * WIDTH, unit);
}

static inline void cells_store(floatv z[TILE][4], const_vectors c, const_vectors h, const step_rows *s, int first,
                               int unit, int n) {
#pragma unroll
    for (int i = 0; i < TILE; ++i) {
        if (first + i >= n) break;
#pragma unroll
        for (int w = 0; w < 4; ++w) stream(z[i][w], s->gates + (first + i) * s->gate_row + w * WIDTH, unit);
        stream(c[i * UNIT_PITCH], s->cells + (first + i) * s->cell_row, unit);
        stream(h[i * OPERAND_PITCH], s->h + (first + i) * s->unit_row, unit);
    }
}

/* The pre-activations of a tile before the product: from the kernel that multiplied the inputs, while the
 * next tile's are prefetched; or the biases. */
static inline void tile_begin(floatv z[TILE][4], const step_rows *s, const_vectors bias, int first, int u, int n) {
    if (bias) {
        FOR_TILE(4) z[i][w] = bias[u * 4 + w];
        return;
    }
    products_load(z, s, first, u * VEC, n);
    if (first + TILE < n)
        products_prefetch(s, first + TILE, u * VEC, n);
    else if (u + 1 < UNITS)
        products_prefetch(s, 0, (u + 1) * VEC, n);
}

/* One step of n samples: updates c in place, and computes h in `next` from the first `depth` elements of each
 * row of `now`. Gates are written tile by tile, so that memory is busy while the next tile is multiplied.
 * sums: 4 vectors for each sample. bias [UNITS][4] or NULL. */
static inline void step_forward(const_vectors packed, const_vectors bias, const step_rows *s, vectors sums, vectors c,
                                const_vectors now, vectors next, int n, int depth) {
    for (int u = 0; u < UNITS; ++u)
        for (int k = 0; k == 0 || k < depth; k += CHUNK) {
            const_vectors panel = packed + (u * (INPUT_DEPTH + DEPTH) + k) * 4;
            for (int r = 0; r < n; r += TILE) {
                floatv z[TILE][4];
                if (k == 0)
                    tile_begin(z, s, bias, r, u, n);
                else
                    tile_load(z, 4, sums + r * 4, 4, 1);
                multiply(z, 4, (scalars)(now + r * OPERAND_PITCH) + k, OPERAND_PITCH * VEC, 1, panel, 4,
                         min(CHUNK, depth - k));
                if (k + CHUNK < depth) {
                    tile_store(z, 4, sums + r * 4, 4, 1);
                    continue;
                }
                vectors cell = c + r * UNIT_PITCH + u, h = next + r * OPERAND_PITCH + INPUT_VECS + u;
                cells_of(z, cell, h);
                cells_store(z, cell, h, s, r, u * VEC, n);
            }
        }
}

/* Step t of the samples from `first` on. products may be NULL. */
static inline step_rows step_of(__global const T *products, __global T *gates, __global T *h, __global T *cells,
                                int first, int t, int batch, int length) {
    const long at = ((long)first * length + t) * WIDTH;
    const long saved = TIME_MAJOR ? ((long)t * batch + first) * WIDTH : at;
    return (step_rows){.products = products ? products + 4 * at : 0,
                       .gates = gates + 4 * saved,
                       .cells = cells + saved,
                       .h = h + at,
                       .gate_row = 4L * (TIME_MAJOR ? 1 : length) * WIDTH,
                       .cell_row = (long)(TIME_MAJOR ? 1 : length) * WIDTH,
                       .unit_row = (long)length * WIDTH};
}

/* scratch of a work-item: partial sums, c, and two buffers for rows. */
typedef struct forward_state {
    vectors sums, c, now, next;
} forward_state;
#define FORWARD_ROW (4 + UNIT_PITCH + 2 * OPERAND_PITCH)

static inline forward_state forward_begin(vectors scratch, int rows) {
    forward_state y = {.sums = scratch, .c = scratch + rows * 4};
    y.now = y.c + rows * UNIT_PITCH, y.next = y.now + rows * OPERAND_PITCH;
    clear(scratch, rows * FORWARD_ROW);
    return y;
}
static inline void forward_swap(forward_state *y) {
    vectors before = y->now;
    y->now = y->next;
    y->next = before;
}

#if INPUTS == 0
/* products T [batch, length, 4 WIDTH]: x W_ih^T + biases; gates may overwrite it in place. h, cells T
 * [batch, length, WIDTH]. A work-item processes blocks of `rows` samples (whole tiles), strided by the number
 * of work-items. */
__kernel void lstm_cpu_forward(TENSOR(const T, products), TENSOR(const float, packed), TENSOR(T, gates), TENSOR(T, h),
                               TENSOR(T, cells), TENSOR(float, scratch), const int batch, const int length,
                               const int rows) {
    for (int first = get_group_id(0) * rows; first < batch; first += get_num_groups(0) * rows) {
        forward_state y = forward_begin((vectors)AT(scratch) + (long)get_group_id(0) * rows * FORWARD_ROW, rows);
        for (int t = 0; t < length; ++t) {
            const step_rows s = step_of(AT(products), AT(gates), AT(h), AT(cells), first, t, batch, length);
            step_forward((const_vectors)AT(packed), 0, &s, y.sums, y.c, y.now, y.next, min(rows, batch - first),
                         t ? DEPTH : 0);
            forward_swap(&y);
        }
    }
}

#else
/* Copies step t of n samples to the first part of their rows. */
static inline void inputs_load(__global const T *x, long row, vectors to, int n) {
    for (int r = 0; r < n; ++r)
        for (int i = 0; i < INPUT_VECS; ++i) to[r * OPERAND_PITCH + i] = input_load(x + r * row, i * VEC);
}

/* A whole layer: x T [batch, length, INPUTS], all else as for lstm_cpu_forward. */
__kernel void lstm_cpu_layer(TENSOR(const T, x), TENSOR(const float, packed), TENSOR(T, gates), TENSOR(T, h),
                             TENSOR(T, cells), TENSOR(float, scratch), const int batch, const int length,
                             const int rows) {
    const_vectors weights = (const_vectors)AT(packed), bias = weights + UNITS * LAYER_DEPTH * 4;
    for (int first = get_group_id(0) * rows; first < batch; first += get_num_groups(0) * rows) {
        const int n = min(rows, batch - first);
        forward_state y = forward_begin((vectors)AT(scratch) + (long)get_group_id(0) * rows * FORWARD_ROW, rows);
        for (int t = 0; t < length; ++t) {
            const step_rows s = step_of(0, AT(gates), AT(h), AT(cells), first, t, batch, length);
            inputs_load(AT(x) + ((long)first * length + t) * INPUTS, (long)length * INPUTS, y.now, n);
            step_forward(weights, bias, &s, y.sums, y.c, y.now, y.next, n, t ? LAYER_DEPTH : INPUT_DEPTH);
            forward_swap(&y);
        }
    }
}
#endif

/* --- backward ------------------------------------------------------------------------------------------- */

/* Rows of the gradient of the weights: whole tiles. */
#define WEIGHT_ROWS ((GATE_ROWS + TILE - 1) / TILE * TILE)

/* Step t of a block's samples: the first sample's row of each tensor, and the distances between samples.
 * `before`: step t - 1, or step 0 again if `first`. dproducts, x and dx may be NULL. */
typedef struct back_rows {
    __global const T *dy, *gates, *cells, *cells_before, *h_before, *x, *accum;
    __global T *dproducts, *dx;
    long unit_row, cell_row, input_row;
    bool first;
} back_rows;

/* One step of sample r: the gradients of the gates' pre-activations, stored to dproducts and to d [4][UNITS].
 * dh holds the gradient from the next step; dc is updated for the previous step. bias [4][UNITS] sums d. */
static inline void cell_backward(const back_rows *s, int r, const_vectors dh, vectors dc, vectors d, vectors bias) {
    __global const T *gates = s->gates + 4 * r * s->cell_row;
    for (int u = 0; u < UNITS; ++u) {
        const int at = u * VEC;
        const floatv i = row_load(gates, at), f = row_load(gates + WIDTH, at);
        const floatv g = row_load(gates + 2 * WIDTH, at), o = row_load(gates + 3 * WIDTH, at);
        const floatv c_prev = s->first ? (floatv)(0.0f) : row_load(s->cells_before + r * s->cell_row, at);
        const floatv c = tanh_of(row_load(s->cells + r * s->cell_row, at));
        const floatv dh_t = dh[u] + row_load(s->dy + r * s->unit_row, at);
        const floatv dc_t = fma(dh_t * o, fma(-c, c, (floatv)(1.0f)), dc[u]);
        floatv slope[4];
        slope[0] = dc_t * g * i * (1.0f - i);
        slope[1] = dc_t * c_prev * f * (1.0f - f);
        slope[2] = dc_t * i * fma(-g, g, (floatv)(1.0f));
        slope[3] = dh_t * c * o * (1.0f - o);
        dc[u] = dc_t * f;
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            d[k * UNITS + u] = slope[k];
            if (bias) bias[k * UNITS + u] += slope[k];
            if (s->dproducts) stream(slope[k], s->dproducts + 4 * r * s->cell_row + k * WIDTH, at);
        }
    }
}

#if defined(STORAGE_F32)
#define LINE 16 /* elements of 64 bytes */
#else
#define LINE 32
#endif
static inline void row_prefetch(__global const T *row, int width) {
    for (int at = 0; at < width; at += LINE) PREFETCH_L2(row + at);
}

/* Prefetches part `i` of `parts` of what a step of n samples reads. A quarter of a sample's rows at a time,
 * so that memory is busy all the time while another step is multiplied, and never too busy for the
 * multiplication. */
static inline void step_prefetch(const back_rows *s, int n, int i, int parts) {
    for (int q = 4 * n * i / parts; q < 4 * n * (i + 1) / parts; ++q) {
        const long row = q / 4 * s->unit_row, saved = q / 4 * s->cell_row;
        row_prefetch(s->gates + 4 * saved + q % 4 * WIDTH, WIDTH);
        if (q % 4 == 0) row_prefetch(s->dy + row, WIDTH);
        if (q % 4 == 1) row_prefetch(s->cells_before + saved, WIDTH);
        if (q % 4 == 2) row_prefetch(s->h_before + row, WIDTH);
        if (q % 4 == 3 && s->x) row_prefetch(s->x + q / 4 * s->input_row, INPUTS);
    }
}

/* (dh, dx) = d (weight_hh, weight_ih): the panels from `from` on, while the rows of the next step arrive
 * (NULL: none). */
static inline void step_backward(const_vectors packed, const_vectors d, vectors drows, int n, int from,
                                 const back_rows *next) {
    const int tiles = (n + TILE - 1) / TILE, chunks = (GATE_ROWS + CHUNK - 1) / CHUNK;
    for (int p = from; p < PANELS; ++p)
        for (int c = 0; c < chunks; ++c) {
            const_vectors panel = packed + (p * GATE_ROWS + c * CHUNK) * COLUMNS;
            for (int i = 0; i < tiles; ++i) {
                vectors at = drows + i * TILE * OPERAND_PITCH + p * COLUMNS;
                floatv sum[TILE][4];
                if (next)
                    step_prefetch(next, n, ((p - from) * chunks + c) * tiles + i, (PANELS - from) * chunks * tiles);
                tile_load(sum, COLUMNS, c ? at : 0, OPERAND_PITCH, 1);
                multiply(sum, COLUMNS, (scalars)(d + i * TILE * GATE_PITCH) + c * CHUNK, GATE_PITCH * VEC, 1, panel,
                         COLUMNS, min(CHUNK, GATE_ROWS - c * CHUNK));
                tile_store(sum, COLUMNS, at, OPERAND_PITCH, 1);
            }
        }
}

/* The rows (h[t - 1], x[t]) of n samples; h[-1] is zero. */
static inline void operands_load(const back_rows *s, vectors to, int n) {
    for (int r = 0; r < n; ++r, to += OPERAND_PITCH) {
        for (int u = 0; u < UNITS; ++u)
            to[u] = s->first ? (floatv)(0.0f) : row_load(s->h_before + r * s->unit_row, u * VEC);
        for (int i = 0; i < INPUT_VECS; ++i) to[UNITS + i] = input_load(s->x + r * s->input_row, i * VEC);
    }
}

/* dweight [WEIGHT_ROWS][WEIGHT_VECS] += d^T rows over n rows. */
static inline void add_weight(vectors dweight, const_vectors d, const_vectors rows, int n) {
    for (int p = 0; p < WEIGHT_PANELS; ++p)
        for (int row = 0; row < WEIGHT_ROWS; row += TILE) {
            vectors at = dweight + row * WEIGHT_VECS + p * WEIGHT_COLUMNS;
            floatv sum[TILE][4];
            tile_load(sum, WEIGHT_COLUMNS, at, WEIGHT_VECS, 1);
            multiply(sum, WEIGHT_COLUMNS, (scalars)d + row, 1, GATE_PITCH * VEC, rows + p * WEIGHT_COLUMNS,
                     OPERAND_PITCH, n);
            tile_store(sum, WEIGHT_COLUMNS, at, WEIGHT_VECS, 1);
        }
}

#if INPUTS
/* dx of n samples = accum + their part of (dh, dx). */
static inline void inputs_store(const back_rows *s, const_vectors drows, int n) {
    for (int r = 0; r < n; ++r)
        for (int i = 0; i < INPUT_VECS; ++i) {
            floatv v = drows[r * OPERAND_PITCH + UNITS + i];
            if (s->accum) v += input_load(s->accum + r * s->input_row, i * VEC);
            if ((i + 1) * VEC <= INPUTS)
                STOREV(v, s->dx + r * s->input_row, i * VEC);
            else
                STOREN(v, s->dx + r * s->input_row, i * VEC, INPUTS - i * VEC);
        }
}
#endif

/* scratch of a work-item: d and rows (h[t - 1], x[t]) of the step, dc, and rows (dh, dx). */
typedef struct backward_state {
    vectors d, operands, dc, drows;
} backward_state;
#define TILED_ROWS(rows) ((rows) + TILE) /* the last tile may extend past the rows */
#define BACKWARD_VECS(rows) (TILED_ROWS(rows) * (GATE_PITCH + OPERAND_PITCH) + (rows) * (UNIT_PITCH + OPERAND_PITCH))

static inline backward_state backward_begin(vectors scratch, int rows) {
    backward_state y = {.d = scratch, .operands = scratch + TILED_ROWS(rows) * GATE_PITCH};
    y.dc = y.operands + TILED_ROWS(rows) * OPERAND_PITCH, y.drows = y.dc + rows * UNIT_PITCH;
    clear(scratch, BACKWARD_VECS(rows));
    return y;
}

/* dproducts T [batch, length, 4 WIDTH] (may be NULL) may overwrite gates in place. parts (may be NULL)
 * receives, for each work-item, its part of the gradients of the weights and the biases,
 * [WEIGHT_ROWS][WEIGHT_VECS] and [4][UNITS], summed while d and the rows are in the caches. For a whole
 * layer: x, accum, dx T [batch, length, INPUTS] (the last two may be NULL, dx if DX is 0). A work-item
 * processes blocks of `rows` samples, strided by the number of work-items. */
__kernel void lstm_cpu_backward(TENSOR(const T, dy), TENSOR(const T, gates), TENSOR(const T, h), TENSOR(const T, cells),
                                TENSOR(const float, packed), TENSOR(T, dproducts), TENSOR(float, scratch),
                                TENSOR(float, parts),
#if INPUTS
                                TENSOR(const T, x), TENSOR(const T, accum), TENSOR(T, dx),
#endif
                                const int batch, const int length, const int rows) {
    const int item = get_group_id(0);
    vectors dweight = HAS(parts) ? (vectors)AT(parts) + (long)item * (WEIGHT_ROWS * WEIGHT_VECS + 4 * UNITS) : 0;
    vectors bias = HAS(parts) ? dweight + WEIGHT_ROWS * WEIGHT_VECS : 0;
    if (HAS(parts)) clear(dweight, WEIGHT_ROWS * WEIGHT_VECS + 4 * UNITS);
    for (int first = item * rows; first < batch; first += get_num_groups(0) * rows) {
        const int n = min(rows, batch - first);
        backward_state y = backward_begin((vectors)AT(scratch) + (long)item * BACKWARD_VECS(rows), rows);
        for (int t = length - 1; t >= 0; --t) {
            back_rows s[2]; /* this step, the one before */
            for (int i = 0; i < 2; ++i) {
                const int now = max(t - i, 0), last = max(now - 1, 0);
                const long step = (long)first * length + now, before = (long)first * length + last;
                const long saved = TIME_MAJOR ? (long)now * batch + first : step;
                const long saved_before = TIME_MAJOR ? (long)last * batch + first : before;
                s[i] = (back_rows) {
                    .dy = AT(dy) + step * WIDTH, .gates = AT(gates) + saved * 4 * WIDTH,
                    .cells = AT(cells) + saved * WIDTH, .cells_before = AT(cells) + saved_before * WIDTH,
                    .h_before = AT(h) + before * WIDTH,
                    .dproducts = HAS(dproducts) ? AT(dproducts) + step * 4 * WIDTH : 0,
#if INPUTS
                    .x = AT(x) + step * INPUTS, .accum = HAS(accum) ? AT(accum) + step * INPUTS : 0,
                    .dx = DX ? AT(dx) + step * INPUTS : 0,
#endif
                    .unit_row = (long)length * WIDTH, .cell_row = (long)(TIME_MAJOR ? 1 : length) * WIDTH,
                    .input_row = (long)length * INPUTS, .first = t - i <= 0
                };
            }
            for (int r = 0; r < n; ++r)
                cell_backward(&s[0], r, y.drows + r * OPERAND_PITCH, y.dc + r * UNIT_PITCH, y.d + r * GATE_PITCH, bias);
            if (HAS(parts)) {
                operands_load(&s[0], y.operands, n);
                add_weight(dweight, y.d, y.operands, n);
            }
            /* The first step has no predecessor, so only the panels with inputs are needed. */
            if (t || DX)
                step_backward((const_vectors)AT(packed), y.d, y.drows, n, t ? 0 : UNITS / COLUMNS, t ? &s[1] : 0);
#if INPUTS
            if (s[0].dx) inputs_store(&s[0], y.drows, n);
#endif
        }
    }
}
