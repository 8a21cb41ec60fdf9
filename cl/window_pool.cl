/* Max and average pooling of x [samples, height, width, channels], and their gradients.
 *
 *   SIZE, STRIDE, PADDING   of the windows; the window of output pixel (p, q) starts at
 *                           (p STRIDE - PADDING, q STRIDE - PADDING)
 *
 * The rows of cl/lib/channels.clh are pixels. The forward pass of max pooling stores the position of each maximum
 * within its sample. The backward pass gathers: each input pixel sums the dy of the windows that cover it (and have
 * their maximum there), in reading order, so that no two work-items add to the same element. */
#include "lib/common.clh"
#include "lib/channels.clh"

#ifndef SIZE
#define SIZE 3
#endif
#ifndef STRIDE
#define STRIDE 2
#endif
#ifndef PADDING
#define PADDING 1
#endif

typedef struct pixel {
    int sample, h, w;
} pixel;
static inline pixel pixel_of(int row, int height, int width) {
    int line = row / width;
    pixel p = {line / height, line % height, row % width};
    return p;
}
/* Advances by ROW_STEP pixels without divisions, which are slow. */
static inline void move_on(pixel *p, int height, int width) {
    p->w += ROW_STEP;
    while (p->w >= width) {
        p->w -= width;
        if (++p->h < height) continue;
        p->h = 0;
        ++p->sample;
    }
}

/* y [samples, out_height, out_width, channels]; winner i32, shaped like y (may be NULL): h * width + w of the
 * maximum. The maximum is the first value that is larger than all others, or the first NaN. rows: number of
 * output pixels. */
__kernel void max_pool_forward(TENSOR(const T, x), TENSOR(T, y), TENSOR(int, winner), const int rows, const int height,
                               const int width, const int out_height, const int out_width, const int channels,
                               const int chunks) {
    const int first = own_channel(chunks), spans = own_spans(first, channels);
    const row_span own = own_rows(rows, chunks);
    pixel out = pixel_of(own.at, out_height, out_width);
    for (int row = own.at; row < own.end; row += ROW_STEP, move_on(&out, out_height, out_width)) {
        const int top = out.h * STRIDE - PADDING, left = out.w * STRIDE - PADDING;
        const int h0 = max(top, 0), h1 = min(top + SIZE, height), w0 = max(left, 0), w1 = min(left + SIZE, width);
        __global const T *sample = AT(x) + (ulong)out.sample * height * width * channels;
        floatv most[ALL_VECTORS];
        intv at[ALL_VECTORS];
        FOR_VECTOR {
            most[v] = (floatv)(-INFINITY);
            at[v] = (intv)(h0 * width + w0);
        }
        for (int h = h0; h < h1; ++h)
            for (int w = w0; w < w1; ++w) {
                const int here = h * width + w;
                FOR_VECTOR {
                    floatv value = channels_load(sample + (ulong)here * channels, CHANNEL(v), channels);
                    intv wins = (most[v] == most[v]) & !(value <= most[v]);
                    most[v] = wins ? value : most[v];
                    at[v] = wins ? (intv)(here) : at[v];
                }
            }
        const ulong to = (ulong)row * channels;
        FOR_VECTOR {
            channels_store(most[v], AT(y) + to, CHANNEL(v), channels);
            if (HAS(winner)) channels_store_i32(at[v], AT(winner) + to, CHANNEL(v), channels);
        }
    }
}

/* The first window that covers coordinate `at`; the last one is (at + PADDING) / STRIDE, limited to the last
 * window. */
static inline int first_window(int at) {
    int beyond = at + PADDING - SIZE + 1;
    return beyond > 0 ? (beyond + STRIDE - 1) / STRIDE : 0;
}

/* dx = accum + the sum of dy over all windows whose maximum is this pixel. rows: number of input pixels. */
__kernel void max_pool_backward(TENSOR(const T, dy), TENSOR(const int, winner), TENSOR(const T, accum), TENSOR(T, dx),
                                const int rows, const int height, const int width, const int out_height,
                                const int out_width, const int channels, const int chunks) {
    const int first = own_channel(chunks), spans = own_spans(first, channels);
    const row_span own = own_rows(rows, chunks);
    pixel in = pixel_of(own.at, height, width);
    for (int row = own.at; row < own.end; row += ROW_STEP, move_on(&in, height, width)) {
        const int here = in.h * width + in.w;
        const int p0 = first_window(in.h), p1 = min((in.h + PADDING) / STRIDE + 1, out_height);
        const int q0 = first_window(in.w), q1 = min((in.w + PADDING) / STRIDE + 1, out_width);
        const ulong to = (ulong)row * channels;
        floatv sum[ALL_VECTORS];
        FOR_VECTOR sum[v] = HAS(accum) ? channels_load(AT(accum) + to, CHANNEL(v), channels) : (floatv)(0.0f);
        for (int p = p0; p < p1; ++p)
            for (int q = q0; q < q1; ++q) {
                const ulong from = (((ulong)in.sample * out_height + p) * out_width + q) * channels;
                FOR_VECTOR {
                    intv won = channels_load_i32(AT(winner) + from, CHANNEL(v), channels) == (intv)(here);
                    floatv d = channels_load(AT(dy) + from, CHANNEL(v), channels);
                    sum[v] += won ? d : (floatv)(0.0f);
                }
            }
        FOR_VECTOR channels_store(sum[v], AT(dx) + to, CHANNEL(v), channels);
    }
}

/* y: the mean of a window, whose positions outside the image count as zeros. rows: number of output pixels. */
__kernel void average_pool_forward(TENSOR(const T, x), TENSOR(T, y), const int rows, const int height, const int width,
                                   const int out_height, const int out_width, const int channels, const int chunks) {
    const int first = own_channel(chunks), spans = own_spans(first, channels);
    const row_span own = own_rows(rows, chunks);
    pixel out = pixel_of(own.at, out_height, out_width);
    for (int row = own.at; row < own.end; row += ROW_STEP, move_on(&out, out_height, out_width)) {
        const int top = out.h * STRIDE - PADDING, left = out.w * STRIDE - PADDING;
        const int h0 = max(top, 0), h1 = min(top + SIZE, height), w0 = max(left, 0), w1 = min(left + SIZE, width);
        __global const T *sample = AT(x) + (ulong)out.sample * height * width * channels;
        floatv sum[ALL_VECTORS];
        FOR_VECTOR sum[v] = (floatv)(0.0f);
        for (int h = h0; h < h1; ++h)
            for (int w = w0; w < w1; ++w)
                FOR_VECTOR sum[v] += channels_load(sample + (ulong)(h * width + w) * channels, CHANNEL(v), channels);
        const ulong to = (ulong)row * channels;
        FOR_VECTOR channels_store(sum[v] * (1.0f / (SIZE * SIZE)), AT(y) + to, CHANNEL(v), channels);
    }
}

/* dx = accum + the mean's part of dy of all windows that cover this pixel. rows: number of input pixels. */
__kernel void average_pool_backward(TENSOR(const T, dy), TENSOR(const T, accum), TENSOR(T, dx), const int rows,
                                    const int height, const int width, const int out_height, const int out_width,
                                    const int channels, const int chunks) {
    const int first = own_channel(chunks), spans = own_spans(first, channels);
    const row_span own = own_rows(rows, chunks);
    pixel in = pixel_of(own.at, height, width);
    for (int row = own.at; row < own.end; row += ROW_STEP, move_on(&in, height, width)) {
        const int p0 = first_window(in.h), p1 = min((in.h + PADDING) / STRIDE + 1, out_height);
        const int q0 = first_window(in.w), q1 = min((in.w + PADDING) / STRIDE + 1, out_width);
        const ulong to = (ulong)row * channels;
        floatv sum[ALL_VECTORS];
        FOR_VECTOR sum[v] = (floatv)(0.0f);
        for (int p = p0; p < p1; ++p)
            for (int q = q0; q < q1; ++q) {
                const ulong from = (((ulong)in.sample * out_height + p) * out_width + q) * channels;
                FOR_VECTOR sum[v] += channels_load(AT(dy) + from, CHANNEL(v), channels);
            }
        FOR_VECTOR {
            floatv d = sum[v] * (1.0f / (SIZE * SIZE));
            if (HAS(accum)) d += channels_load(AT(accum) + to, CHANNEL(v), channels);
            channels_store(d, AT(dx) + to, CHANNEL(v), channels);
        }
    }
}
