/* Between f32 and the storage type T, with an optional addend of the result's type: y = addend + x. */
#include "common.clh"

__kernel void cast_widen(TENSOR(const T, x), TENSOR(const float, addend), TENSOR(float, y), const ulong n) {
    FOR_VECTORS(s, n) {
        floatv before = HAS(addend) ? LOADFV(AT(addend), s.at) : (floatv)(0.0f);
        STOREFV(before + LOADV(AT(x), s.at), AT(y), s.at);
    }
    if (OWNS_TAIL(n)) {
        ulong i = TAIL_AT(n);
        int rest = (int)(n - i);
        floatv before = HAS(addend) ? LOADFN(AT(addend), i, rest) : (floatv)(0.0f);
        STOREFN(before + LOADN(AT(x), i, rest), AT(y), i, rest);
    }
}

__kernel void cast_narrow(TENSOR(const float, x), TENSOR(const T, addend), TENSOR(T, y), const ulong n) {
    FOR_VECTORS(s, n) {
        floatv before = HAS(addend) ? LOADV(AT(addend), s.at) : (floatv)(0.0f);
        STOREV(before + LOADFV(AT(x), s.at), AT(y), s.at);
    }
    if (OWNS_TAIL(n)) {
        ulong i = TAIL_AT(n);
        int rest = (int)(n - i);
        floatv before = HAS(addend) ? LOADN(AT(addend), i, rest) : (floatv)(0.0f);
        STOREN(before + LOADFN(AT(x), i, rest), AT(y), i, rest);
    }
}
