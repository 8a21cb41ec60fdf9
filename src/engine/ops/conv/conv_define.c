/* Definitions of a convolution and its gradients: sums over the window, over the images, and over the features. */
#include "ops/conv/conv.h"
#include "ops/lib/define.h"

/* in = {x, weight, bias}, {dy, weight, accum} or {dy, x, accum of the weight, accum of the bias} */
enum { FIRST, SECOND, BIAS, ACCUM = BIAS, SUMS_ACCUM };

/* Row of x that row `row` of y reads at row `r` of the kernel; -1: it lies outside. Columns likewise. */
static int64_t source_of(const cleat_conv *c, int64_t row, int64_t r, int64_t extent) {
    const int64_t at = row * c->stride - c->padding + r;
    return at >= 0 && at < extent ? at : -1;
}

/* The opposite: the row of y that reads row `at` of x at row `r` of the kernel. */
static int64_t reader_of(const cleat_conv *c, int64_t at, int64_t r, int64_t extent) {
    const int64_t row = at + c->padding - r;
    return row >= 0 && row % c->stride == 0 && row / c->stride < extent ? row / c->stride : -1;
}

/* y[b, p, q, n] */
static cleat_expected_value define_forward(const cleat_conv *c, cleat_host_values *values, int64_t element) {
    const int64_t n = element % c->features, pixel = element / c->features, q = pixel % c->columns,
                  p = pixel / c->columns % c->rows, b = pixel / c->columns / c->rows;
    const float *x = values->in[FIRST].f, *weight = values->in[SECOND].f;
    cleat_expected_value sum = cleat_define_begin(values, BIAS, n);
    for (int64_t r = 0; r < c->kernel_rows; ++r)
        for (int64_t s = 0; s < c->kernel_columns; ++s) {
            const int64_t h = source_of(c, p, r, c->height), w = source_of(c, q, s, c->width);
            if (h < 0 || w < 0) continue;
            const float *from = x + ((b * c->height + h) * c->width + w) * c->channels;
            const float *tap = weight + ((n * c->kernel_rows + r) * c->kernel_columns + s) * c->channels;
            for (int64_t i = 0; i < c->channels; ++i) cleat_define_add(&sum, (double)from[i] * (double)tap[i]);
        }
    values->work += (double)(c->kernel_rows * c->kernel_columns * c->channels);
    return sum;
}

/* dx[b, h, w, i] */
static cleat_expected_value define_dx(const cleat_conv *c, cleat_host_values *values, int64_t element) {
    const int64_t i = element % c->channels, pixel = element / c->channels, w = pixel % c->width,
                  h = pixel / c->width % c->height, b = pixel / c->width / c->height;
    const float *dy = values->in[FIRST].f, *weight = values->in[SECOND].f;
    cleat_expected_value sum = cleat_define_begin(values, ACCUM, element);
    for (int64_t r = 0; r < c->kernel_rows; ++r)
        for (int64_t s = 0; s < c->kernel_columns; ++s) {
            const int64_t p = reader_of(c, h, r, c->rows), q = reader_of(c, w, s, c->columns);
            if (p < 0 || q < 0) continue;
            const float *from = dy + ((b * c->rows + p) * c->columns + q) * c->features;
            for (int64_t n = 0; n < c->features; ++n)
                cleat_define_add(
                    &sum, (double)from[n] *
                              (double)weight[((n * c->kernel_rows + r) * c->kernel_columns + s) * c->channels + i]);
        }
    values->work += (double)(c->kernel_rows * c->kernel_columns * c->features);
    return sum;
}

/* dweight[n, r, s, i] */
static cleat_expected_value define_dw(const cleat_conv *c, cleat_host_values *values, int64_t element) {
    const int64_t i = element % c->channels, tap = element / c->channels, s = tap % c->kernel_columns,
                  r = tap / c->kernel_columns % c->kernel_rows, n = tap / c->kernel_columns / c->kernel_rows;
    const float *dy = values->in[FIRST].f, *x = values->in[SECOND].f;
    cleat_expected_value sum = cleat_define_begin(values, ACCUM, element);
    for (int64_t line = 0; line < c->batch * c->rows; ++line) {
        const int64_t h = source_of(c, line % c->rows, r, c->height);
        if (h < 0) continue;
        const float *from = x + (line / c->rows * c->height + h) * c->width * c->channels + i;
        const float *with = dy + line * c->columns * c->features + n;
        for (int64_t q = 0; q < c->columns; ++q) {
            const int64_t w = source_of(c, q, s, c->width);
            if (w >= 0) cleat_define_add(&sum, (double)with[q * c->features] * (double)from[w * c->channels]);
        }
    }
    values->work += (double)(c->batch * c->rows * c->columns);
    return sum;
}

/* dbias[n] */
static cleat_expected_value define_sum(const cleat_conv *c, cleat_host_values *values, int64_t n) {
    const int64_t pixels = c->batch * c->rows * c->columns;
    cleat_expected_value sum = cleat_define_begin(values, SUMS_ACCUM, n);
    for (int64_t i = 0; i < pixels; ++i) cleat_define_add(&sum, (double)values->in[FIRST].f[i * c->features + n]);
    values->work += (double)pixels;
    return sum;
}

cleat_expected_value cleat_conv_define(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const cleat_conv c = cleat_conv_of(node);
    if (c.kind == CLEAT_CONV_FORWARD) return define_forward(&c, values, element);
    if (c.kind == CLEAT_CONV_DX) return define_dx(&c, values, element);
    return node->out[values->output] == c.sums ? define_sum(&c, values, element) : define_dw(&c, values, element);
}
