/* relu and its gradient, which needs y only: y = max(x, 0); y may be x, dx may be any of its inputs. */
#include "lib/relu.clh"

__kernel void relu_forward(TENSOR(const T, x), TENSOR(T, y), const ulong n) {
    FOR_VECTORS(s, n) STOREV(relu_of(LOADV(AT(x), s.at)), AT(y), s.at);
    if (OWNS_TAIL(n)) {
        ulong i = TAIL_AT(n);
        int rest = (int)(n - i);
        STOREN(relu_of(LOADN(AT(x), i, rest)), AT(y), i, rest);
    }
}

/* dx = accum + dy where y > 0. */
__kernel void relu_backward(TENSOR(const T, dy), TENSOR(const T, y), TENSOR(const T, accum), TENSOR(T, dx),
                            const ulong n) {
    floatv zero = (floatv)(0.0f);
    FOR_VECTORS(s, n) {
        floatv before = HAS(accum) ? LOADV(AT(accum), s.at) : zero;
        STOREV(before + relu_pass(LOADV(AT(dy), s.at), LOADV(AT(y), s.at)), AT(dx), s.at);
    }
    if (OWNS_TAIL(n)) {
        ulong i = TAIL_AT(n);
        int rest = (int)(n - i);
        floatv before = HAS(accum) ? LOADN(AT(accum), i, rest) : zero;
        STOREN(before + relu_pass(LOADN(AT(dy), i, rest), LOADN(AT(y), i, rest)), AT(dx), i, rest);
    }
}
