/* GELU, forward and backward; see gelu.clh. y may be x, dx may be any of its inputs. */
#include "lib/gelu.clh"

__kernel void gelu_forward(TENSOR(const T, x), TENSOR(T, y), const ulong n) {
    FOR_VECTORS(s, n) STOREV(gelu_of(LOADV(AT(x), s.at)), AT(y), s.at);
    if (OWNS_TAIL(n)) {
        ulong i = TAIL_AT(n);
        int rest = (int)(n - i);
        STOREN(gelu_of(LOADN(AT(x), i, rest)), AT(y), i, rest);
    }
}

/* dx = accum + dy gelu'(x). */
__kernel void gelu_backward(TENSOR(const T, dy), TENSOR(const T, x), TENSOR(const T, accum), TENSOR(T, dx),
                            const ulong n) {
    FOR_VECTORS(s, n) {
        floatv before = HAS(accum) ? LOADV(AT(accum), s.at) : (floatv)(0.0f);
        STOREV(fma(LOADV(AT(dy), s.at), gelu_slope(LOADV(AT(x), s.at)), before), AT(dx), s.at);
    }
    if (OWNS_TAIL(n)) {
        ulong i = TAIL_AT(n);
        int rest = (int)(n - i);
        floatv before = HAS(accum) ? LOADN(AT(accum), i, rest) : (floatv)(0.0f);
        floatv slope = gelu_slope(LOADN(AT(x), i, rest));
        STOREN(fma(LOADN(AT(dy), i, rest), slope, before), AT(dx), i, rest);
    }
}
