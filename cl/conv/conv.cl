/* Plain convolution with zero padding, and its gradients: one work-item per element of the result.
 *
 *   y[b, p, q, n]  = bias[n] + sum over r, s, c of x[b, p stride + r - padding, q stride + s - padding, c]
 *                                                  weight[n, r, s, c]
 *   dx[b, h, w, c] = accum + sum over r, s, n of dy[b, p, q, n] weight[n, r, s, c],
 *                    where p stride + r - padding = h, q stride + s - padding = w
 *   dw[n, r, s, c] = accum + sum over b, p, q of dy[b, p, q, n]
 *                                                x[b, p stride + r - padding, q stride + s - padding, c]
 *   sums[n]        = accum + sum over b, p, q of dy[b, p, q, n]
 *
 * x [B, H, W, C], weight [N, R, S, C], y [B, P, Q, N]; bias and accums are optional. A result may overwrite
 * its accum in place, because each element is read and written by the same work-item. dw may be f32 whatever
 * T is (result.clh). */
#include "lib/common.clh"
#include "lib/result.clh"
#include "conv/conv.clh"

__kernel void conv_plain_forward(TENSOR(const T, x), TENSOR(const T, weight), TENSOR(const float, bias), TENSOR(T, y),
                                 GEOMETRY) {
    const long count = (long)B * P * Q * N;
    for (long at = get_global_id(0); at < count; at += get_global_size(0)) {
        const int n = at % N, q = at / N % Q, p = at / N / Q % P;
        const long b = at / N / Q / P;
        float sum = HAS(bias) ? AT(bias)[n] : 0.0f;
        for (int r = 0; r < R; ++r)
            for (int s = 0; s < S; ++s) {
                const int h = p * stride + r - padding, w = q * stride + s - padding;
                if (h < 0 || h >= H || w < 0 || w >= W) continue;
                const long x_at = ((b * H + h) * W + w) * C, weight_at = (((long)n * R + r) * S + s) * C;
                for (int c = 0; c < C; ++c) sum += LOAD(AT(x), x_at + c) * LOAD(AT(weight), weight_at + c);
            }
        STORE(sum, AT(y), at);
    }
}

__kernel void conv_plain_dx(TENSOR(const T, dy), TENSOR(const T, weight), TENSOR(const T, accum), TENSOR(T, dx),
                            GEOMETRY) {
    const long count = (long)B * H * W * C;
    for (long at = get_global_id(0); at < count; at += get_global_size(0)) {
        const int c = at % C, w = at / C % W, h = at / C / W % H;
        const long b = at / C / W / H;
        float sum = HAS(accum) ? LOAD(AT(accum), at) : 0.0f;
        for (int r = 0; r < R; ++r)
            for (int s = 0; s < S; ++s) {
                const int down = h + padding - r, along = w + padding - s, p = down / stride, q = along / stride;
                if (down < 0 || along < 0 || down % stride || along % stride || p >= P || q >= Q) continue;
                const long dy_at = ((b * P + p) * Q + q) * N, weight_at = (r * S + s) * C + c, step = (long)R * S * C;
                for (int n = 0; n < N; ++n) sum += LOAD(AT(dy), dy_at + n) * LOAD(AT(weight), weight_at + n * step);
            }
        STORE(sum, AT(dx), at);
    }
}

__kernel void conv_plain_dw(TENSOR(const T, dy), TENSOR(const T, x), TENSOR(const TC, accum), TENSOR(TC, dw),
                            GEOMETRY) {
    const long count = (long)N * R * S * C;
    for (long at = get_global_id(0); at < count; at += get_global_size(0)) {
        const int c = at % C, s = at / C % S, r = at / C / S % R;
        const long n = at / C / S / R;
        float sum = HAS(accum) ? LOADC(AT(accum), at) : 0.0f;
        for (long row = 0; row < (long)B * P; ++row)
            for (int q = 0; q < Q; ++q) {
                const int h = row % P * stride + r - padding, w = q * stride + s - padding;
                if (h < 0 || h >= H || w < 0 || w >= W) continue;
                sum += LOAD(AT(dy), (row * Q + q) * N + n) * LOAD(AT(x), ((row / P * H + h) * W + w) * C + c);
            }
        STOREC(sum, AT(dw), at);
    }
}

__kernel void conv_plain_sums(TENSOR(const T, dy), TENSOR(const float, accum), TENSOR(float, sums), GEOMETRY) {
    const long pixels = (long)B * P * Q;
    for (int n = get_global_id(0); n < N; n += get_global_size(0)) {
        float sum = HAS(accum) ? AT(accum)[n] : 0.0f;
        for (long m = 0; m < pixels; ++m) sum += LOAD(AT(dy), m * N + n);
        AT(sums)[n] = sum;
    }
}
