/* Plain LSTM layer: one work-item processes all time steps of a sample. Formulas: lstm.clh.
 *
 * h, c and the gradients carried between steps are in global memory. Any device, any size. products, gates,
 * dproducts T [batch, length, 4 hidden], where gates may overwrite products in place, and dproducts may
 * overwrite gates; h, cells, dy T [batch, length, hidden]; weight T [4 hidden, hidden]. */
#include "lib/common.clh"
#include "lib/result.clh"
#include "lib/shared_numbers.clh"

static inline float sigmoid_of(float x) {
    return 1.0f / (1.0f + exp(-x));
}

/* scratch f32 [batch, 3, hidden]: h of the previous step, h of this step, c. */
__kernel void lstm_plain_forward(TENSOR(const T, products), TENSOR(const T, weight), TENSOR(T, gates), TENSOR(T, h),
                                 TENSOR(T, cells), TENSOR(float, scratch), const int batch, const int length,
                                 const int hidden) {
    for (int b = get_global_id(0); b < batch; b += get_global_size(0)) {
        __global float *now = AT(scratch) + (long)b * LSTM_FORWARD_ROWS * hidden, *next = now + hidden,
                       *c = next + hidden;
        for (int t = 0; t < length; ++t) {
            const long at = (long)b * length + t;
            for (int j = 0; j < hidden; ++j) {
                float x[4];
                for (int g = 0; g < 4; ++g) {
                    __global const T *row = AT(weight) + (long)(g * hidden + j) * hidden;
                    x[g] = LOAD(AT(products), (at * 4 + g) * hidden + j);
                    for (int k = 0; t && k < hidden; ++k) x[g] = fma(LOAD(row, k), now[k], x[g]);
                    x[g] = g == 2 ? tanh(x[g]) : sigmoid_of(x[g]);
                    STORE(x[g], AT(gates), (at * 4 + g) * hidden + j);
                }
                c[j] = fma(x[0], x[2], t ? x[1] * c[j] : 0.0f);
                next[j] = x[3] * tanh(c[j]);
                STORE(c[j], AT(cells), at * hidden + j);
                STORE(next[j], AT(h), at * hidden + j);
            }
            __global float *last = now;
            now = next;
            next = last;
        }
    }
}

/* scratch f32 [batch, 6, hidden]: dc, dh, and the gradients of a step's products. */
__kernel void lstm_plain_backward(TENSOR(const T, dy), TENSOR(const T, gates), TENSOR(const T, cells),
                                  TENSOR(const T, weight), TENSOR(T, dproducts), TENSOR(float, scratch),
                                  const int batch, const int length, const int hidden) {
    for (int b = get_global_id(0); b < batch; b += get_global_size(0)) {
        __global float *dc = AT(scratch) + (long)b * LSTM_BACKWARD_ROWS * hidden, *dh = dc + hidden, *d = dh + hidden;
        for (int j = 0; j < hidden; ++j) dc[j] = dh[j] = 0.0f;
        for (int t = length - 1; t >= 0; --t) {
            const long at = (long)b * length + t;
            for (int j = 0; j < hidden; ++j) {
                float x[4];
                for (int g = 0; g < 4; ++g) x[g] = LOAD(AT(gates), (at * 4 + g) * hidden + j);
                const float c = tanh(LOAD(AT(cells), at * hidden + j));
                const float c_prev = t ? LOAD(AT(cells), (at - 1) * hidden + j) : 0.0f;
                const float dh_t = dh[j] + LOAD(AT(dy), at * hidden + j);
                const float dc_t = dc[j] + dh_t * x[3] * (1.0f - c * c);
                d[j] = dc_t * x[2] * x[0] * (1.0f - x[0]);
                d[hidden + j] = dc_t * c_prev * x[1] * (1.0f - x[1]);
                d[2 * hidden + j] = dc_t * x[0] * (1.0f - x[2] * x[2]);
                d[3 * hidden + j] = dh_t * c * x[3] * (1.0f - x[3]);
                dc[j] = dc_t * x[1];
                for (int g = 0; g < 4; ++g) STORE(d[g * hidden + j], AT(dproducts), (at * 4 + g) * hidden + j);
            }
            for (int j = 0; t && j < hidden; ++j) {
                float sum = 0.0f;
                for (int n = 0; n < 4 * hidden; ++n) sum = fma(d[n], LOAD(AT(weight), (long)n * hidden + j), sum);
                dh[j] = sum;
            }
        }
    }
}

/* dweight TC (result.clh) [4 hidden, hidden] = accum + sum over samples and steps of the outer products of
 * dproducts[b, t] and h[b, t - 1]. */
__kernel void lstm_plain_weight(TENSOR(const T, dproducts), TENSOR(const T, h), TENSOR(const TC, accum),
                                TENSOR(TC, dweight), const int batch, const int length, const int hidden) {
    for (long i = get_global_id(0); i < 4L * hidden * hidden; i += get_global_size(0)) {
        const long m = i / hidden, n = i % hidden;
        float sum = HAS(accum) ? LOADC(AT(accum), i) : 0.0f;
        for (int b = 0; b < batch; ++b)
            for (int t = 1; t < length; ++t) {
                const long at = (long)b * length + t;
                sum = fma(LOAD(AT(dproducts), at * 4 * hidden + m), LOAD(AT(h), (at - 1) * hidden + n), sum);
            }
        STOREC(sum, AT(dweight), i);
    }
}
