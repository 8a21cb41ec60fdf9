/* An LSTM layer for one work-item with wide vectors (WG == 1).
 *
 * Samples are independent, so that a work-item processes all steps of a block of samples alone. Its state and
 * the gates of the current step stay in its caches, and so does the recurrent weight, which is packed once
 * into the order in which the tiles read it.
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

/* Columns of a tile over units, in vectors, 1 to 4. */
#ifndef COLUMNS
#define COLUMNS 1
#endif
#define PANELS ((UNITS + COLUMNS - 1) / COLUMNS)

/* Distance between samples, in vectors, of units and of gates. The host passes odd numbers, so that samples do
 * not share a cache set. */
#ifndef UNIT_PITCH
#define UNIT_PITCH (PANELS * COLUMNS)
#endif
#ifndef GATE_PITCH
#define GATE_PITCH (4 * UNITS)
#endif
#if COLUMNS < 1 || COLUMNS > 4 || UNIT_PITCH < PANELS * COLUMNS || GATE_PITCH < 4 * UNITS
#error samples must not overlap
#endif

/* Inputs of the layer, whose product with weight_ih lstm_cpu_layer computes too; 0 for the other kernels. */
#ifndef INPUTS
#define INPUTS 0
#endif
#define INPUT_VECS ((INPUTS + VEC - 1) / VEC)
#define INPUT_DEPTH (INPUT_VECS * VEC)

/* The forward pass multiplies rows (x[t], h[t - 1]), each part padded, this many vectors apart; odd, too. */
#ifndef OPERAND_PITCH
#define OPERAND_PITCH UNIT_PITCH
#endif
#if OPERAND_PITCH < INPUT_VECS + UNITS
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
#define FOR_TILE(width)                                                                                                \
    _Pragma("unroll") for (int i = 0; i < TILE; ++i) _Pragma("unroll") for (int w = 0; w < 4; ++w) if (w < (width))

/* c[i][w] += sum over k < depth of a[i * row + k * step] * b[k * pitch + w] for w < width <= 4. */
static inline void multiply(floatv c[TILE][4], int width, scalars a, int row, int step, const_vectors b, int pitch,
                            int depth) {
    for (int k = 0; k < depth; ++k) {
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

/* Element (i, w) of the tile is at from[i * pitch + w * step]; all elements are zero if `from` is NULL. */
static inline void tile_load(floatv c[TILE][4], int width, const_vectors from, int pitch, int step) {
    FOR_TILE(width) c[i][w] = from ? from[i * pitch + w * step] : (floatv)(0.0f);
}
static inline void tile_store(floatv c[TILE][4], int width, vectors to, int pitch, int step) {
    FOR_TILE(width) to[i * pitch + w * step] = c[i][w];
}

/* Stores past the caches where the compiler can: what a step writes is not read before all steps are done, and its lines
 * need not be read to be overwritten. */
static inline void stream(floatv v, __global T *row, int at) {
#if STREAMS && WHOLE && defined(STORAGE_F32) && __clang_major__ >= 13
    __builtin_nontemporal_store(v, (__global floatv *)(row + at));
#else
    row_store(v, row, at);
#endif
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

/* packed [PANELS][GATE_ROWS][COLUMNS]: the rows of the weight for each panel of units. */
__kernel void lstm_cpu_pack_units(TENSOR(const T, weight), TENSOR(float, packed)) {
    for (int i = get_global_id(0); i < PANELS * GATE_ROWS * COLUMNS; i += get_global_size(0)) {
        const int column = (i / COLUMNS / GATE_ROWS * COLUMNS + i % COLUMNS) * VEC, row = i / COLUMNS % GATE_ROWS;
        const int gate = row / DEPTH, unit = row % DEPTH;
        floatv w = (floatv)(0.0f);
        if (unit < WIDTH && column < WIDTH) w = row_load(AT(weight) + (long)(gate * WIDTH + unit) * WIDTH, column);
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
    long gate_row, unit_row;
} step_rows;

/* Prefetches the products of the tile that begins with sample `first` and unit `unit`. Samples are far apart, at
 * distances that may be multiples of a power of two, so that the caches hold one tile of lines, but not those of a
 * block. */
static inline void products_soon(const step_rows *s, int first, int unit, int n) {
    for (int i = 0; i < TILE; ++i)
        for (int w = 0; w < 4; ++w) SOON(s->products + min(first + i, n - 1) * s->gate_row + w * WIDTH + unit);
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
        stream(c[i * UNIT_PITCH], s->cells + (first + i) * s->unit_row, unit);
        stream(h[i * OPERAND_PITCH], s->h + (first + i) * s->unit_row, unit);
    }
}

/* The pre-activations of a tile before the product: those of the other kernel that has multiplied the inputs, while the
 * next tile's are prefetched; or the biases. */
static inline void tile_begin(floatv z[TILE][4], const step_rows *s, const_vectors bias, int first, int u, int n) {
    if (bias) {
        FOR_TILE(4) z[i][w] = bias[u * 4 + w];
        return;
    }
    products_load(z, s, first, u * VEC, n);
    if (first + TILE < n)
        products_soon(s, first + TILE, u * VEC, n);
    else if (u + 1 < UNITS)
        products_soon(s, 0, (u + 1) * VEC, n);
}

/* One step of n samples: updates c in place, and computes h in `next` from the first `depth` elements of each row of
 * `now`. Gates are written tile by tile, so that memory is busy while the next tile is multiplied. sums: 4 vectors for
 * each sample. bias [UNITS][4] or NULL. */
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
                                int first, int t, int length) {
    const long at = ((long)first * length + t) * WIDTH;
    return (step_rows){.products = products ? products + 4 * at : 0,
                       .gates = gates + 4 * at,
                       .cells = cells + at,
                       .h = h + at,
                       .gate_row = 4L * length * WIDTH,
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
            const step_rows s = step_of(AT(products), AT(gates), AT(h), AT(cells), first, t, length);
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
        for (int i = 0; i < INPUT_VECS; ++i)
            to[r * OPERAND_PITCH + i] =
                (i + 1) * VEC <= INPUTS ? LOADV(x + r * row, i * VEC) : LOADN(x + r * row, i * VEC, INPUTS - i * VEC);
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
            const step_rows s = step_of(0, AT(gates), AT(h), AT(cells), first, t, length);
            inputs_load(AT(x) + ((long)first * length + t) * INPUTS, (long)length * INPUTS, y.now, n);
            step_forward(weights, bias, &s, y.sums, y.c, y.now, y.next, n, t ? LAYER_DEPTH : INPUT_DEPTH);
            forward_swap(&y);
        }
    }
}
#endif

/* --- backward ------------------------------------------------------------------------------------------- */

/* One step of one sample: the gradients of the gates' pre-activations, stored to `store` (may be NULL) and to
 * d [4][UNITS]. dh holds the gradient from the next step; dc is updated for the previous step. */
static inline void cell_backward(__global const T *dy, __global const T *gates, __global const T *cells, bool first,
                                 const_vectors dh, vectors dc, vectors d, __global T *store) {
    for (int u = 0; u < UNITS; ++u) {
        const int at = u * VEC;
        const floatv i = row_load(gates, at), f = row_load(gates + WIDTH, at);
        const floatv g = row_load(gates + 2 * WIDTH, at), o = row_load(gates + 3 * WIDTH, at);
        const floatv before = first ? (floatv)(0.0f) : row_load(cells - WIDTH, at);
        const floatv c = tanh_of(row_load(cells, at)), arrives = dh[u] + row_load(dy, at);
        const floatv down = fma(arrives * o, fma(-c, c, (floatv)(1.0f)), dc[u]);
        floatv slope[4];
        slope[0] = down * g * i * (1.0f - i);
        slope[1] = down * before * f * (1.0f - f);
        slope[2] = down * i * fma(-g, g, (floatv)(1.0f));
        slope[3] = arrives * c * o * (1.0f - o);
        dc[u] = down * f;
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            d[k * UNITS + u] = slope[k];
            if (store) stream(slope[k], store + k * WIDTH, at);
        }
    }
}

/* dh = d W. */
static inline void step_backward(const_vectors packed, const_vectors d, vectors dh, int rows) {
    for (int p = 0; p < PANELS; ++p)
        for (int k = 0; k < GATE_ROWS; k += CHUNK) {
            const_vectors panel = packed + (p * GATE_ROWS + k) * COLUMNS;
            for (int r = 0; r < rows; r += TILE) {
                vectors at = dh + r * UNIT_PITCH + p * COLUMNS;
                floatv sum[TILE][4];
                tile_load(sum, COLUMNS, k ? at : 0, UNIT_PITCH, 1);
                multiply(sum, COLUMNS, (scalars)(d + r * GATE_PITCH) + k, GATE_PITCH * VEC, 1, panel, COLUMNS,
                         min(CHUNK, GATE_ROWS - k));
                tile_store(sum, COLUMNS, at, UNIT_PITCH, 1);
            }
        }
}

/* Loads a row of units in T to UNITS vectors. */
static inline void units_load(__global const T *from, vectors to) {
    for (int u = 0; u < UNITS; ++u) to[u] = row_load(from, u * VEC);
}

/* dweight [GATE_ROWS][PANELS * COLUMNS] += d^T h over n samples. */
static inline void add_weight(vectors dweight, const_vectors d, const_vectors h, int n) {
    for (int p = 0; p < PANELS; ++p)
        for (int row = 0; row < GATE_ROWS; row += TILE) {
            vectors at = dweight + (row * PANELS + p) * COLUMNS;
            floatv sum[TILE][4];
            tile_load(sum, COLUMNS, at, PANELS * COLUMNS, 1);
            multiply(sum, COLUMNS, (scalars)d + row, 1, GATE_PITCH * VEC, h + p * COLUMNS, UNIT_PITCH, n);
            tile_store(sum, COLUMNS, at, PANELS * COLUMNS, 1);
        }
}

#if defined(STORAGE_F32)
#define LINE 16 /* elements of 64 bytes */
#else
#define LINE 32
#endif

/* Prefetches what cell_backward reads of a sample, while it computes the sample before: the hardware does not know where the
 * next row is. */
static inline void sample_soon(__global const T *dy, __global const T *gates, __global const T *cells, int first) {
    for (int at = 0; at < WIDTH; at += LINE) {
        SOON(dy + at);
        SOON(cells + (first ? 0 : -WIDTH) + at);
        SOON(cells + at);
        for (int k = 0; k < 4; ++k) SOON(gates + k * WIDTH + at);
    }
}

/* dproducts T [batch, length, 4 WIDTH] (may be NULL) may overwrite gates in place. dweights (may be NULL)
 * receives one part of the weight's gradient per work-item, summed while d and h are in the caches. A
 * work-item processes blocks of `rows` samples, strided by the number of work-items. */
__kernel void lstm_cpu_backward(TENSOR(const T, dy), TENSOR(const T, gates), TENSOR(const T, h), TENSOR(const T, cells),
                                TENSOR(const float, packed), TENSOR(T, dproducts), TENSOR(float, scratch),
                                TENSOR(float, dweights), const int batch, const int length, const int rows) {
    const int item = get_group_id(0);
    vectors d = (vectors)AT(scratch) + (long)item * rows * (GATE_PITCH + 3 * UNIT_PITCH);
    vectors dc = d + rows * GATE_PITCH, dh = dc + rows * UNIT_PITCH, before = dh + rows * UNIT_PITCH;
    vectors dweight = HAS(dweights) ? (vectors)AT(dweights) + (long)item * GATE_ROWS * PANELS * COLUMNS : 0;
    if (HAS(dweights)) clear(dweight, GATE_ROWS * PANELS * COLUMNS);
    for (int first = item * rows; first < batch; first += get_num_groups(0) * rows) {
        const int n = min(rows, batch - first), tiles = (n + TILE - 1) / TILE * TILE;
        clear(d, rows * (GATE_PITCH + 3 * UNIT_PITCH));
        for (int t = length - 1; t >= 0; --t) {
            for (int r = 0; r < n; ++r) {
                const long at = (long)(first + r) * length + t, soon = (long)(first + min(r + 1, n - 1)) * length + t;
                sample_soon(AT(dy) + soon * WIDTH, AT(gates) + soon * 4 * WIDTH, AT(cells) + soon * WIDTH, t == 0);
                cell_backward(AT(dy) + at * WIDTH, AT(gates) + at * 4 * WIDTH, AT(cells) + at * WIDTH, t == 0,
                              dh + r * UNIT_PITCH, dc + r * UNIT_PITCH, d + r * GATE_PITCH,
                              HAS(dproducts) ? AT(dproducts) + at * 4 * WIDTH : 0);
            }
            if (t == 0) break;
            step_backward((const_vectors)AT(packed), d, dh, tiles);
            if (!HAS(dweights)) continue;
            for (int r = 0; r < n; ++r)
                units_load(AT(h) + ((long)(first + r) * length + t - 1) * WIDTH, before + r * UNIT_PITCH);
            add_weight(dweight, d, before, n);
        }
    }
}
