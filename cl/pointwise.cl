/* Functions of one element, y = f(x), and their gradients, dx = accum + dy f'(x).
 *
 *   FUNCTION   which one: a POINTWISE_ number of lib/shared_numbers.clh
 *
 * A function is defined by value_of(x) and slope_of(kept), its derivative as a function of x or of y: whichever
 * src/engine/ops/pointwise.c keeps for the gradient. y may be x, dx may be any of its inputs. */
#include "lib/gelu.clh"
#include "lib/relu.clh"
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
