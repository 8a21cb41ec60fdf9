/* One AdamW step over flat f32 buffers, in place (Loshchilov & Hutter 2019, algorithm 2; PyTorch's order of
 * operations):
 *
 *   g <- clip g / loss_scale;  p <- p (1 - lr wd);  m <- b1 m + (1 - b1) g;  v <- b2 v + (1 - b2) g^2
 *   p <- p - lr / (1 - b1^t) * m / (sqrt(v) / sqrt(1 - b2^t) + eps);  g <- 0;  copy <- p
 *
 * clip = min(1, max_norm / (norm + 1e-6)), or 1 if max_norm is 0; norm is the norm of g / loss_scale. If norm
 * is not finite, only g <- 0 is done. hyper f32 [8]: lr, b1, b2, eps, wd, max_norm, 1 - b1^t, 1 - b2^t. The
 * factors are those of lr and wd for this group of parameters: 1 changes no bit.
 * loss_scale is optional and defaults to 1. copy: half-precision weights (T) for kernels that read halves;
 * not used if T is f32. n is a multiple of VEC, which the store ensures. */
#include "lib/optimizer_step.clh"

__kernel void adamw_step(TENSOR(float, p), TENSOR(float, g), TENSOR(float, m), TENSOR(float, v),
                         TENSOR(const float, hyper), TENSOR(const float, norm), TENSOR(const float, loss_scale),
                         TENSOR(T, copy), const float rate_factor, const float decay_factor, const ulong n) {
    __global const float *h = AT(hyper);
    float length = AT(norm)[0];
    floatv zero = (floatv)(0.0f);
    if (!isfinite(length)) {
        FOR_VECTORS(s, n) STOREFV(zero, AT(g), s.at);
        return;
    }
    float lr = h[HYPER_RATE] * rate_factor, b1 = h[HYPER_BETA1], b2 = h[HYPER_BETA2], eps = h[HYPER_EPS];
    float keep = 1.0f - lr * (h[HYPER_WEIGHT_DECAY] * decay_factor);
    float clip = gradient_factor(h, length, OR_NULL(loss_scale));
    float step = lr / h[HYPER_CORRECTION1], root = 1.0f / sqrt(h[HYPER_CORRECTION2]);
    FOR_VECTORS(s, n) {
        floatv grad = LOADFV(AT(g), s.at) * clip;
        floatv first = b1 * LOADFV(AT(m), s.at) + (1.0f - b1) * grad;
        floatv second = b2 * LOADFV(AT(v), s.at) + (1.0f - b2) * grad * grad;
        floatv denominator = sqrt(second) * root + eps;
        floatv moved = LOADFV(AT(p), s.at) * keep - step * first / denominator;
        STOREFV(moved, AT(p), s.at);
        STORE_COPY(moved, s.at);
        STOREFV(first, AT(m), s.at);
        STOREFV(second, AT(v), s.at);
        STOREFV(zero, AT(g), s.at);
    }
}
