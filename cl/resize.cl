/* Bilinear interpolation between the centres of pixels, forward and backward.
 *
 * Row p of `out` rows looks at (p + 1/2) in / out - 1/2 = ((2 p + 1) in - out) / (2 out) of `in` rows, not above row 0; columns likewise. In
 * whole numbers (extents up to 16384), so that no rounding decides between two rows.
 *
 * Backward gathers, first along the rows, then along the columns: with factor f that is 2 f + 2 products for each pixel of dx and f of its
 * neighbours above one another instead of 4 f f at once. */
#include "common.clh"
#include "runs.clh"

/* Between rows `first` and `next`; `share` is the weight of `next`. */
typedef struct place {
    int first, next;
    float share;
} place;

/* per_whole = 1 / (2 out): its product may be one off, a division of integers takes much longer. */
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

/* x T [batch, H, W, C] -> y T [batch, P, Q, C]; rows = batch P Q */
__kernel void resize_forward(TENSOR(const T, x), TENSOR(T, y), const int rows, const int H, const int W, const int P,
                             const int Q, const int C) {
    const float per_height = 0.5f / P, per_width = 0.5f / Q;
    __global const T *upper = 0, *lower = 0; /* lines of x */
    __global const T *corner[4];
    float weight[4], share = 0.0f;
    int pixel = -1, line = -Q; /* the first pixel of the line at hand */
    FOR_RUNS(r, rows, C) {
        if (r.row != pixel) {
            pixel = r.row;
            if (pixel - line >= Q) {
                const int p = pixel / Q;
                const place h = place_of(p % P, H, P, per_height);
                __global const T *sample = AT(x) + (ulong)(p / P) * H * W * C;
                upper = sample + (ulong)h.first * W * C;
                lower = sample + (ulong)h.next * W * C;
                share = h.share;
                line = p * Q;
            }
            const place w = place_of(pixel - line, W, Q, per_width);
            corner[0] = upper + (ulong)w.first * C;
            corner[1] = upper + (ulong)w.next * C;
            corner[2] = lower + (ulong)w.first * C;
            corner[3] = lower + (ulong)w.next * C;
            weight[0] = (1.0f - share) * (1.0f - w.share);
            weight[1] = (1.0f - share) * w.share;
            weight[2] = share * (1.0f - w.share);
            weight[3] = share * w.share;
        }
        __global T *to = AT(y) + (ulong)r.row * C;
        if (r.at + VEC <= C) {
            floatv v = LOADV(corner[0], r.at) * weight[0];
            v = fma(LOADV(corner[1], r.at), (floatv)(weight[1]), v);
            v = fma(LOADV(corner[2], r.at), (floatv)(weight[2]), v);
            v = fma(LOADV(corner[3], r.at), (floatv)(weight[3]), v);
            STOREV(v, to, r.at);
        } else { /* narrow rows are nothing else */
            for (int c = r.at; c < C; ++c) {
                float v = LOAD(corner[0], c) * weight[0];
                v = fma(LOAD(corner[1], c), weight[1], v);
                v = fma(LOAD(corner[2], c), weight[2], v);
                v = fma(LOAD(corner[3], c), weight[3], v);
                STORE(v, to, c);
            }
        }
    }
}

/* The rows of `out` that look at row `i` of `in`: [begin, end). Row p has weight 1 - |at| / (2 out), where at begins with `at` and grows by
 * `step`; but 1 in front of the first row and behind the last. */
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

/* Vectors that a work-item does at once: what a row weighs is computed once for all of them. */
#if WG == 1
#define BLOCK 4
#else
#define BLOCK 1
#endif

/* sum[o, i, :] = sum over p of weight(p, i) dy[o, p, :], dy T [outer, out, width], sum f32 [outer, in, width]; rows = outer in */
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

/* dx[o, i, :] = addend[o, i, :] + sum over p of weight(p, i) sum[o, p, :]; dx may be the addend. */
__kernel void resize_backward_columns(TENSOR(const float, sum), TENSOR(const T, addend), TENSOR(T, dx), const int rows,
                                      const int in, const int out, const int width) {
    const float per_whole = 0.5f / out;
    FOR_RUNS(r, rows, width) {
        const int i = r.row % in;
        const readers p = readers_of(i, in, out);
        __global const float *from = AT(sum) + ((ulong)(r.row / in) * out + p.begin) * width;
        const ulong row = (ulong)r.row * width;
        if (r.at + VEC <= width) {
            floatv v = HAS(addend) ? LOADV(AT(addend) + row, r.at) : (floatv)(0.0f);
            for (int k = 0; k < p.end - p.begin; ++k) {
                const float weight = reader_weight(p.at + k * p.step, per_whole, i == 0, i == in - 1);
                v = fma(LOADFV(from + (ulong)k * width, r.at), (floatv)(weight), v);
            }
            STOREV(v, AT(dx) + row, r.at);
        } else { /* narrow rows are nothing else */
            for (int c = r.at; c < width; ++c) {
                float v = HAS(addend) ? LOAD(AT(addend) + row, c) : 0.0f;
                for (int k = 0; k < p.end - p.begin; ++k)
                    v = fma(from[(ulong)k * width + c],
                            reader_weight(p.at + k * p.step, per_whole, i == 0, i == in - 1), v);
                STORE(v, AT(dx) + row, c);
            }
        }
    }
}
