/* Casts between f32 and the storage type T, with an optional accum of the result's type: y = accum + x. */
#include "lib/common.clh"

__kernel void cast_widen(TENSOR(const T, x), TENSOR(const float, accum), TENSOR(float, y), const ulong n) {
    FOR_VECTORS(s, n) {
        floatv before = HAS(accum) ? LOADFV(AT(accum), s.at) : (floatv)(0.0f);
        STOREFV(before + LOADV(AT(x), s.at), AT(y), s.at);
    }
    if (OWNS_TAIL(n)) {
        ulong i = TAIL_AT(n);
        int rest = (int)(n - i);
        floatv before = HAS(accum) ? LOADFN(AT(accum), i, rest) : (floatv)(0.0f);
        STOREFN(before + LOADN(AT(x), i, rest), AT(y), i, rest);
    }
}

__kernel void cast_narrow(TENSOR(const float, x), TENSOR(const T, accum), TENSOR(T, y), const ulong n) {
    FOR_VECTORS(s, n) {
        floatv before = HAS(accum) ? LOADV(AT(accum), s.at) : (floatv)(0.0f);
        STOREV(before + LOADFV(AT(x), s.at), AT(y), s.at);
    }
    if (OWNS_TAIL(n)) {
        ulong i = TAIL_AT(n);
        int rest = (int)(n - i);
        floatv before = HAS(accum) ? LOADN(AT(accum), i, rest) : (floatv)(0.0f);
        STOREN(before + LOADFN(AT(x), i, rest), AT(y), i, rest);
    }
}
