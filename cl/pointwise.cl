/* Functions of one element, y = f(x), and their gradients, dx = accum + dy f'(x).
 *
 *   FUNCTION   which one: a POINTWISE_ number of lib/shared_numbers.clh
 *
 * A function is defined by value_of(x) and slope_of(kept), its derivative as a function of x or of y: whichever
 * src/engine/ops/pointwise.c keeps for the gradient. y may be x, dx may be any of its inputs. */
#include "lib/gelu.clh"
#include "lib/relu.clh"
#include "lib/runs.clh"
#include "lib/shared_numbers.clh"
#include "lib/sigmoid.clh"

#ifndef FUNCTION
#define FUNCTION POINTWISE_SIGMOID
#endif

#if FUNCTION == POINTWISE_SIGMOID
static inline floatv value_of(floatv x) {
    return sigmoid_of(x);
}
static inline floatv slope_of(floatv y) {
    return fma(-y, y, y);
}
#elif FUNCTION == POINTWISE_TANH
static inline floatv value_of(floatv x) {
    return tanh_of(x);
}
static inline floatv slope_of(floatv y) {
    return fma(-y, y, (floatv)(1.0f));
}
#elif FUNCTION == POINTWISE_SILU
static inline floatv value_of(floatv x) {
    return x * sigmoid_of(x);
}
static inline floatv slope_of(floatv x) {
    const floatv s = sigmoid_of(x);
    return s * fma(x, 1.0f - s, (floatv)(1.0f));
}
#elif FUNCTION == POINTWISE_GELU_TANH /* x (1 + tanh(u / 2)) / 2 = x sigmoid(u); at 16, u is 318 */
#define U1 1.5957691f                 /* 2 sqrt(2 / pi) */
#define U3 0.07135481f                /* 0.044715 U1 */
static inline floatv within_16(floatv x) {
    return fmin(fmax(x, (floatv)(-16.0f)), (floatv)(16.0f));
}
static inline floatv value_of(floatv x) {
    const floatv z = within_16(x);
    return x * sigmoid_of(z * fma(z * z, (floatv)(U3), (floatv)(U1)));
}
static inline floatv slope_of(floatv x) {
    const floatv z = within_16(x), u = z * fma(z * z, (floatv)(U3), (floatv)(U1));
    const floatv rest = z * sigmoid_of(-u) * fma(z * z, (floatv)(3.0f * U3), (floatv)(U1)); /* 1 - s cancels */
    return sigmoid_of(u) * (1.0f + rest);
}
#elif FUNCTION == POINTWISE_RELU
#define value_of relu_of
#elif FUNCTION == POINTWISE_GELU
#define value_of gelu_of
#define slope_of gelu_slope
#endif

/* before + dy f'. A dy that ReLU blocks may be infinite. */
static inline floatv add_grad(floatv before, floatv dy, floatv kept) {
#if FUNCTION == POINTWISE_RELU
    return before + relu_pass(dy, kept);
#else
    return fma(dy, slope_of(kept), before);
#endif
}

__kernel void pointwise_forward(TENSOR(const T, x), TENSOR(T, y), const ulong n) {
    FOR_VECTORS(s, n) STOREV(value_of(LOADV(AT(x), s.at)), AT(y), s.at);
    if (OWNS_TAIL(n)) {
        ulong i = TAIL_AT(n);
        int rest = (int)(n - i);
        STOREN(value_of(LOADN(AT(x), i, rest)), AT(y), i, rest);
    }
}

/* kept: x or y */
__kernel void pointwise_backward(TENSOR(const T, dy), TENSOR(const T, kept), TENSOR(const T, accum), TENSOR(T, dx),
                                 const ulong n) {
    FOR_VECTORS(s, n) {
        floatv before = HAS(accum) ? LOADV(AT(accum), s.at) : (floatv)(0.0f);
        STOREV(add_grad(before, LOADV(AT(dy), s.at), LOADV(AT(kept), s.at)), AT(dx), s.at);
    }
    if (OWNS_TAIL(n)) {
        ulong i = TAIL_AT(n);
        int rest = (int)(n - i);
        floatv before = HAS(accum) ? LOADN(AT(accum), i, rest) : (floatv)(0.0f);
        STOREN(add_grad(before, LOADN(AT(dy), i, rest), LOADN(AT(kept), i, rest)), AT(dx), i, rest);
    }
}

#if FUNCTION != POINTWISE_RELU
/* Gated products, y = f(gate) up. x T [rows, 2 width]: gate, up; y T [rows, width]. */
__kernel void gated_forward(TENSOR(const T, x), TENSOR(T, y), const int rows, const int width) {
    FOR_RUNS(r, rows, width) {
        __global const T *gate = AT(x) + (ulong)r.row * (2 * width);
        const floatv v = value_of(run_load(gate, r.at, width)) * run_load(gate + width, r.at, width);
        run_store(v, AT(y) + (ulong)r.row * width, r.at, width);
    }
}

/* dx = accum + (dy up f'(gate), dy f(gate)). dx may be x or accum. */
__kernel void gated_backward(TENSOR(const T, dy), TENSOR(const T, x), TENSOR(const T, accum), TENSOR(T, dx),
                             const int rows, const int width) {
    FOR_RUNS(r, rows, width) {
        const ulong at = (ulong)r.row * (2 * width);
        const floatv gate = run_load(AT(x) + at, r.at, width), up = run_load(AT(x) + at + width, r.at, width);
        const floatv arriving = run_load(AT(dy) + (ulong)r.row * width, r.at, width), zero = (floatv)(0.0f);
        const floatv before = HAS(accum) ? run_load(AT(accum) + at, r.at, width) : zero;
        const floatv before_up = HAS(accum) ? run_load(AT(accum) + at + width, r.at, width) : zero;
        run_store(fma(arriving * up, slope_of(gate), before), AT(dx) + at, r.at, width);
        run_store(fma(arriving, value_of(gate), before_up), AT(dx) + at + width, r.at, width);
    }
}
#endif
