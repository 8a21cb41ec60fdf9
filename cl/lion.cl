/* One step of Lion over flat f32 buffers, in place (Chen et al., "Symbolic Discovery of Optimization Algorithms",
 * NeurIPS 2023, algorithm 2):
 *
 *   g <- clip g / loss_scale;  p <- p (1 - lr wd) - lr sign(b1 m + (1 - b1) g);  m <- b2 m + (1 - b2) g;  g <- 0
 *   copy <- p
 *
 * m starts at 0. clip, norm, loss_scale, copy and n are those of adamw.cl: if norm is not finite, only g <- 0 is
 * done. hyper f32 [8]: lr, b1, b2, -, wd, max_norm, -, -. The factors are those of lr and wd for this group of
 * parameters. */
#include "lib/optimizer_step.clh"

__kernel void lion_step(TENSOR(float, p), TENSOR(float, g), TENSOR(float, m), TENSOR(const float, hyper),
                        TENSOR(const float, norm), TENSOR(const float, loss_scale), TENSOR(T, copy),
                        const float rate_factor, const float decay_factor, const ulong n) {
    __global const float *h = AT(hyper);
    float length = AT(norm)[0];
    floatv zero = (floatv)(0.0f);
    if (!isfinite(length)) {
        FOR_VECTORS(s, n) STOREFV(zero, AT(g), s.at);
        return;
    }
    float lr = h[HYPER_RATE] * rate_factor, b1 = h[HYPER_BETA1], b2 = h[HYPER_BETA2];
    float keep = 1.0f - lr * (h[HYPER_WEIGHT_DECAY] * decay_factor);
    float clip = gradient_factor(h, length, OR_NULL(loss_scale));
    FOR_VECTORS(s, n) {
        floatv grad = LOADFV(AT(g), s.at) * clip, before = LOADFV(AT(m), s.at);
        floatv moved = LOADFV(AT(p), s.at) * keep - lr * sign(b1 * before + (1.0f - b1) * grad);
        STOREFV(moved, AT(p), s.at);
        STORE_COPY(moved, s.at);
        STOREFV(b2 * before + (1.0f - b2) * grad, AT(m), s.at);
        STOREFV(zero, AT(g), s.at);
    }
}
