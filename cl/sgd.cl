/* One step of stochastic gradient descent over flat f32 buffers, in place (PyTorch's torch.optim.SGD with
 * dampening 0):
 *
 *   g <- clip g / loss_scale + wd p;  m <- momentum m + g;  p <- p - lr (nesterov ? g + momentum m : m);  g <- 0
 *   copy <- p
 *
 * Without momentum the host passes no m: p <- p - lr g. m starts at 0. clip, norm, loss_scale, copy and n are
 * those of adamw.cl: clip = min(1, max_norm / (norm + 1e-6)), or 1 if max_norm is 0; if norm is not finite,
 * only g <- 0 is done. hyper f32 [8]: lr, momentum, nesterov (0 or 1), -, wd, max_norm, -, -. The factors are
 * those of lr and wd for this group of parameters. */
#include "lib/optimizer_step.clh"

__kernel void sgd_step(TENSOR(float, p), TENSOR(float, g), TENSOR(float, m), TENSOR(const float, hyper),
                       TENSOR(const float, norm), TENSOR(const float, loss_scale), TENSOR(T, copy),
                       const float rate_factor, const float decay_factor, const ulong n) {
    __global const float *h = AT(hyper);
    float length = AT(norm)[0];
    floatv zero = (floatv)(0.0f);
    if (!isfinite(length)) {
        FOR_VECTORS(s, n) STOREFV(zero, AT(g), s.at);
        return;
    }
    float lr = h[HYPER_RATE] * rate_factor, momentum = h[HYPER_MOMENTUM];
    float decay = h[HYPER_WEIGHT_DECAY] * decay_factor;
    float clip = gradient_factor(h, length, OR_NULL(loss_scale));
    FOR_VECTORS(s, n) {
        floatv from = LOADFV(AT(p), s.at), step = LOADFV(AT(g), s.at) * clip + decay * from;
        if (HAS(m)) {
            floatv velocity = momentum * LOADFV(AT(m), s.at) + step;
            STOREFV(velocity, AT(m), s.at);
            step = h[HYPER_NESTEROV] > 0.0f ? step + momentum * velocity : velocity;
        }
        floatv moved = from - lr * step;
        STOREFV(moved, AT(p), s.at);
        STORE_COPY(moved, s.at);
        STOREFV(zero, AT(g), s.at);
    }
}
