/* Sums, differences and products of n elements; y may be any of the operands. */
#include "lib/common.clh"

/* y = a + b */
__kernel void add_elements(TENSOR(const T, a), TENSOR(const T, b), TENSOR(T, y), const ulong n) {
    FOR_VECTORS(s, n) STOREV(LOADV(AT(a), s.at) + LOADV(AT(b), s.at), AT(y), s.at);
    if (OWNS_TAIL(n)) {
        ulong i = TAIL_AT(n);
        int rest = (int)(n - i);
        floatv sum = LOADN(AT(a), i, rest) + LOADN(AT(b), i, rest);
        STOREN(sum, AT(y), i, rest);
    }
}

/* y = a - b; a is 0 where the host passed no tensor. */
__kernel void subtract_elements(TENSOR(const T, a), TENSOR(const T, b), TENSOR(T, y), const ulong n) {
    FOR_VECTORS(s, n) {
        floatv from = HAS(a) ? LOADV(AT(a), s.at) : (floatv)(0.0f);
        STOREV(from - LOADV(AT(b), s.at), AT(y), s.at);
    }
    if (OWNS_TAIL(n)) {
        ulong i = TAIL_AT(n);
        int rest = (int)(n - i);
        floatv from = HAS(a) ? LOADN(AT(a), i, rest) : (floatv)(0.0f);
        STOREN(from - LOADN(AT(b), i, rest), AT(y), i, rest);
    }
}

/* y = accum + a b */
__kernel void multiply_elements(TENSOR(const T, a), TENSOR(const T, b), TENSOR(const T, accum), TENSOR(T, y),
                                const ulong n) {
    FOR_VECTORS(s, n) {
        floatv before = HAS(accum) ? LOADV(AT(accum), s.at) : (floatv)(0.0f);
        STOREV(fma(LOADV(AT(a), s.at), LOADV(AT(b), s.at), before), AT(y), s.at);
    }
    if (OWNS_TAIL(n)) {
        ulong i = TAIL_AT(n);
        int rest = (int)(n - i);
        floatv before = HAS(accum) ? LOADN(AT(accum), i, rest) : (floatv)(0.0f);
        STOREN(fma(LOADN(AT(a), i, rest), LOADN(AT(b), i, rest), before), AT(y), i, rest);
    }
}
