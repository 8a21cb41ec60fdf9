/* Bilinear interpolation between pixel centres, forward and backward.
 *
 * Row p of `out` rows is sampled at (p + 1/2) in / out - 1/2 = ((2 p + 1) in - out) / (2 out) of `in` rows,
 * but not above row 0; columns likewise. Positions are computed in integers (extents up to 16384), so that no
 * rounding decides between two rows.
 *
 * The backward pass gathers, first along the rows, then along the columns: with factor f that takes 2 f + 2
 * products for each pixel of dx and each of its f vertical neighbours, instead of 4 f f in one pass. */
#include "lib/common.clh"
#include "lib/runs.clh"

/* A position between rows `first` and `next`; `share` is the weight of `next`. */
typedef struct place {
    int first, next;
    float share;
} place;

/* per_whole = 1 / (2 out). The product with it may be off by one, which is corrected; an integer division
 * takes much longer. */
static inline place place_of(int p, int in, int out, float per_whole) {
    const int at = max((2 * p + 1) * in - out, 0), whole = 2 * out;
    int first = (int)((float)at * per_whole), rest = at - first * whole;
    if (rest < 0) {
        --first;
        rest += whole;
    } else if (rest >= whole) {
        ++first;
        rest -= whole;
    }
    place found = {first, min(first + 1, in - 1), (float)rest * per_whole};
    return found;
}

/* Lines of x above and below a line of y; `share` is the weight of the lower one. */
typedef struct lines {
    __global const T *upper, *lower;
    float share;
} lines;

/* The four corners around a pixel of y, upper ones first, and their weights. */
typedef struct corners {
    __global const T *a, *b, *c, *d;
} corners;
typedef struct weights {
    float a, b, c, d;
} weights;

static inline corners corners_of(lines x, place w, int C) {
    const ulong first = (ulong)w.first * C, next = (ulong)w.next * C;
    corners found = {x.upper + first, x.upper + next, x.lower + first, x.lower + next};
    return found;
}
static inline weights weights_of(lines x, place w) {
    weights found = {(1.0f - x.share) * (1.0f - w.share), (1.0f - x.share) * w.share, x.share * (1.0f - w.share),
                     x.share * w.share};
    return found;
}

/* Channels at .. end of one pixel. */
static inline void resize_pixel(corners x, weights w, __global T *to, int at, int end) {
    for (; at + VEC <= end; at += VEC) {
        floatv v = LOADV(x.a, at) * w.a;
        v = fma(LOADV(x.b, at), (floatv)(w.b), v);
        v = fma(LOADV(x.c, at), (floatv)(w.c), v);
        v = fma(LOADV(x.d, at), (floatv)(w.d), v);
        STOREV(v, to, at);
    }
    for (; at < end; ++at) {
        float v = LOAD(x.a, at) * w.a;
        v = fma(LOAD(x.b, at), w.b, v);
        v = fma(LOAD(x.c, at), w.c, v);
        v = fma(LOAD(x.d, at), w.d, v);
        STORE(v, to, at);
    }
}

#if WG == 1
/* A line of y with few channels: adjacent pixels between the same corners are computed together, so that the
 * corners are loaded (and halves converted to floats, one by one) once for all of them. */
#define GROUP 4
static inline void resize_narrow(lines x, __global T *to, int W, int Q, int C) {
    const float per_width = 0.5f / Q;
    for (int q = 0; q < Q;) {
        place w = place_of(q, W, Q, per_width);
        const int column = w.first;
        const corners from = corners_of(x, w, C);
        weights weight[GROUP];
        int count = 0;
        do {
            weight[count++] = weights_of(x, w);
            if (q + count == Q || count == GROUP) break;
            w = place_of(q + count, W, Q, per_width);
        } while (w.first == column);
        for (int at = 0; at < C; ++at) {
            const float a = LOAD(from.a, at), b = LOAD(from.b, at), c = LOAD(from.c, at), d = LOAD(from.d, at);
            for (int i = 0; i < count; ++i) {
                float v = a * weight[i].a;
                v = fma(b, weight[i].b, v);
                v = fma(c, weight[i].c, v);
                v = fma(d, weight[i].d, v);
                STORE(v, to, (ulong)(q + i) * C + at);
            }
        }
        q += count;
    }
}
#endif

/* x T [batch, H, W, C] -> y T [batch, P, Q, C]; rows = batch P Q. A work-item computes whole lines of y on a
 * CPU, else vectors of pixels. */
__kernel void resize_forward(TENSOR(const T, x), TENSOR(T, y), const int rows, const int H, const int W, const int P,
                             const int Q, const int C) {
    const float per_height = 0.5f / P, per_width = 0.5f / Q;
#if WG == 1
    FOR_RUNS(r, rows / Q, 1) {
        const int line = r.row, begin = 0, end = Q, channels = C;
#else
    FOR_RUNS(r, rows, C) {
        const int line = r.row / Q, begin = r.row - line * Q, end = begin + 1, channels = min(r.at + VEC, C);
#endif
        const place h = place_of(line % P, H, P, per_height);
        __global const T *sample = AT(x) + (ulong)(line / P) * H * W * C;
        const lines x_lines = {sample + (ulong)h.first * W * C, sample + (ulong)h.next * W * C, h.share};
        __global T *to = AT(y) + (ulong)line * Q * C;
#if WG == 1
        if (C < VEC) {
            resize_narrow(x_lines, to, W, Q, C);
            continue;
        }
#endif
        for (int q = begin; q < end; ++q) {
            const place w = place_of(q, W, Q, per_width);
            resize_pixel(corners_of(x_lines, w, C), weights_of(x_lines, w), to + (ulong)q * C, r.at, channels);
        }
    }
}

/* The rows [begin, end) of `out` that depend on row `i` of `in`. Row p has the weight 1 - |at| / (2 out),
 * where `at` is the member for the first row and grows by `step`; the weight is 1 before the first and past
 * the last row of `in`. */
typedef struct readers {
    int begin, end, at, step;
} readers;

static inline readers readers_of(int i, int in, int out) {
    readers found;
    found.step = 2 * in;
    found.begin = i > 0 ? max((2 * i - 1) * out + in - 1, 0) / found.step : 0;
    found.end = min(((2 * i + 3) * out + in - 1) / found.step, out);
    found.at = (2 * found.begin + 1) * in - out - 2 * out * i;
    return found;
}
static inline float reader_weight(int at, float per_whole, bool first, bool last) {
    return (first && at < 0) || (last && at > 0) ? 1.0f : 1.0f - fabs((float)at) * per_whole;
}

/* Vectors that a work-item processes together, so that the weights are computed once for all of them. */
#if WG == 1
#define BLOCK 4
#else
#define BLOCK 1
#endif

/* sum[o, i, :] = sum over p of weight(p, i) dy[o, p, :]; dy T [outer, out, width], sum f32
 * [outer, in, width]; rows = outer in. */
__kernel void resize_backward_rows(TENSOR(const T, dy), TENSOR(float, sum), const int rows, const int in, const int out,
                                   const int width) {
    const float per_whole = 0.5f / out;
    FOR_RUNS(r, rows, (width + BLOCK - 1) / BLOCK) {
        const int i = r.row % in, at = r.at * BLOCK;
        const bool whole = at + BLOCK * VEC <= width;
        readers p = readers_of(i, in, out);
        __global const T *from = AT(dy) + ((ulong)(r.row / in) * out + p.begin) * width;
        __global float *to = AT(sum) + (ulong)r.row * width;
        floatv v[BLOCK];
#pragma unroll
        for (int k = 0; k < BLOCK; ++k) v[k] = (floatv)(0.0f);
        for (int left = p.end - p.begin; left > 0; --left, from += width, p.at += p.step) {
            const floatv weight = (floatv)(reader_weight(p.at, per_whole, i == 0, i == in - 1));
            if (whole)
#pragma unroll
                for (int k = 0; k < BLOCK; ++k) v[k] = fma(LOADV(from, at + k * VEC), weight, v[k]);
            else
                for (int k = 0; k < BLOCK; ++k) v[k] = fma(run_load(from, at + k * VEC, width), weight, v[k]);
        }
        for (int k = 0; k < BLOCK; ++k) run_store_f32(v[k], to, at + k * VEC, width);
    }
}

/* dx[o, i, :] = accum[o, i, :] + sum over p of weight(p, i) sum[o, p, :]; dx may be accum. */
__kernel void resize_backward_columns(TENSOR(const float, sum), TENSOR(const T, accum), TENSOR(T, dx), const int rows,
                                      const int in, const int out, const int width) {
    const float per_whole = 0.5f / out;
    FOR_RUNS(r, rows, width) {
        const int i = r.row % in;
        const readers p = readers_of(i, in, out);
        __global const float *from = AT(sum) + ((ulong)(r.row / in) * out + p.begin) * width;
        const ulong row = (ulong)r.row * width;
        if (r.at + VEC <= width) {
            floatv v = HAS(accum) ? LOADV(AT(accum) + row, r.at) : (floatv)(0.0f);
            for (int k = 0; k < p.end - p.begin; ++k) {
                const float weight = reader_weight(p.at + k * p.step, per_whole, i == 0, i == in - 1);
                v = fma(LOADFV(from + (ulong)k * width, r.at), (floatv)(weight), v);
            }
            STOREV(v, AT(dx) + row, r.at);
        } else { /* narrow rows have only this part */
            for (int c = r.at; c < width; ++c) {
                float v = HAS(accum) ? LOAD(AT(accum) + row, c) : 0.0f;
                for (int k = 0; k < p.end - p.begin; ++k)
                    v = fma(from[(ulong)k * width + c],
                            reader_weight(p.at + k * p.step, per_whole, i == 0, i == in - 1), v);
                STORE(v, AT(dx) + row, c);
            }
        }
    }
}
