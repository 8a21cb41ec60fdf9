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

#define CHUNK 128 /* depth of a panel of weights, which then fits in the first-level cache */

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

static inline void clear(vectors x, int count) {
    for (int i = 0; i < count; ++i) x[i] = (floatv)(0.0f);
}

/* --- the weight, packed --------------------------------------------------------------------------------- */

/* packed [UNITS][DEPTH][4]: the weights of the four gates for each vector of units and each k. weight T
 * [4 WIDTH, WIDTH]. */
__kernel void lstm_cpu_pack_gates(TENSOR(const T, weight), TENSOR(float, packed)) {
    for (int i = get_global_id(0); i < UNITS * DEPTH * 4; i += get_global_size(0)) {
        const int gate = i % 4, k = i / 4 % DEPTH, unit = i / 4 / DEPTH * VEC;
        float lane[VEC];
        for (int j = 0; j < VEC; ++j)
            lane[j] =
                unit + j < WIDTH && k < WIDTH ? LOAD(AT(weight), (long)(gate * WIDTH + unit + j) * WIDTH + k) : 0.0f;
        STOREFV(vector_of(lane), AT(packed), (long)i * VEC);
    }
}

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
        h[i * UNIT_PITCH] = z[i][3] * tanh_with(cell[i], r * decay[i + 1]);
        h[(i + 1) * UNIT_PITCH] = z[i + 1][3] * tanh_with(cell[i + 1], r * decay[i]);
    }
}

/* One step of `rows` samples (whole tiles): replaces products by gates in place, updates c in place, and
 * computes `next` from `now` (h). */
static inline void step_forward(const_vectors packed, vectors gates, vectors c, const_vectors now, vectors next,
                                int rows, int depth) {
    for (int u = 0; u < UNITS; ++u)
        for (int k = 0; k == 0 || k < depth; k += CHUNK) {
            const bool last = k + CHUNK >= depth;
            const_vectors panel = packed + (u * DEPTH + k) * 4;
            for (int r = 0; r < rows; r += TILE) {
                vectors at = gates + r * GATE_PITCH + u;
                floatv z[TILE][4];
                tile_load(z, 4, at, GATE_PITCH, UNITS);
                multiply(z, 4, (scalars)(now + r * UNIT_PITCH) + k, UNIT_PITCH * VEC, 1, panel, 4,
                         min(CHUNK, depth - k));
                if (last) cells_of(z, c + r * UNIT_PITCH + u, next + r * UNIT_PITCH + u);
                tile_store(z, 4, at, GATE_PITCH, UNITS);
            }
        }
}

/* Loads or stores `count` rows of units in T from or to UNITS vectors each. */
static inline void units_load(__global const T *from, int count, vectors to) {
    for (int g = 0; g < count; ++g)
        for (int u = 0; u < UNITS; ++u) to[g * UNITS + u] = row_load(from + g * WIDTH, u * VEC);
}
static inline void units_store(const_vectors from, int count, __global T *to) {
    for (int g = 0; g < count; ++g)
        for (int u = 0; u < UNITS; ++u) row_store(from[g * UNITS + u], to + g * WIDTH, u * VEC);
}

/* products T [batch, length, 4 WIDTH]: x W_ih^T + biases; gates may overwrite it in place. h, cells T
 * [batch, length, WIDTH]. A work-item processes blocks of `rows` samples (whole tiles), strided by the number
 * of work-items. scratch per work-item: gates, c and two buffers for h. */
__kernel void lstm_cpu_forward(TENSOR(const T, products), TENSOR(const float, packed), TENSOR(T, gates), TENSOR(T, h),
                               TENSOR(T, cells), TENSOR(float, scratch), const int batch, const int length,
                               const int rows) {
    vectors gate = (vectors)AT(scratch) + (long)get_group_id(0) * rows * (GATE_PITCH + 3 * UNIT_PITCH);
    vectors c = gate + rows * GATE_PITCH, now = c + rows * UNIT_PITCH, next = now + rows * UNIT_PITCH;
    for (int first = get_group_id(0) * rows; first < batch; first += get_num_groups(0) * rows) {
        const int n = min(rows, batch - first), tiles = (n + TILE - 1) / TILE * TILE;
        clear(gate, rows * (GATE_PITCH + 3 * UNIT_PITCH));
        for (int t = 0; t < length; ++t) {
            for (int r = 0; r < n; ++r)
                units_load(AT(products) + ((long)(first + r) * length + t) * 4 * WIDTH, 4, gate + r * GATE_PITCH);
            step_forward((const_vectors)AT(packed), gate, c, now, next, tiles, t ? DEPTH : 0);
            for (int r = 0; r < n; ++r) {
                const long at = ((long)(first + r) * length + t) * WIDTH;
                units_store(gate + r * GATE_PITCH, 4, AT(gates) + 4 * at);
                units_store(c + r * UNIT_PITCH, 1, AT(cells) + at);
                units_store(next + r * UNIT_PITCH, 1, AT(h) + at);
            }
            vectors before = now;
            now = next;
            next = before;
        }
    }
}

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
            if (store) row_store(slope[k], store + k * WIDTH, at);
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
                const long at = (long)(first + r) * length + t;
                cell_backward(AT(dy) + at * WIDTH, AT(gates) + at * 4 * WIDTH, AT(cells) + at * WIDTH, t == 0,
                              dh + r * UNIT_PITCH, dc + r * UNIT_PITCH, d + r * GATE_PITCH,
                              HAS(dproducts) ? AT(dproducts) + at * 4 * WIDTH : 0);
            }
            if (t == 0) break;
            step_backward((const_vectors)AT(packed), d, dh, tiles);
            if (!HAS(dweights)) continue;
            for (int r = 0; r < n; ++r)
                units_load(AT(h) + ((long)(first + r) * length + t - 1) * WIDTH, 1, before + r * UNIT_PITCH);
            add_weight(dweight, d, before, n);
        }
    }
}
