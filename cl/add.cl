/* Elementwise sum of n elements: y = a + b; y may be a or b. */
#include "lib/common.clh"

__kernel void add_elements(TENSOR(const T, a), TENSOR(const T, b), TENSOR(T, y), const ulong n) {
    FOR_VECTORS(s, n) STOREV(LOADV(AT(a), s.at) + LOADV(AT(b), s.at), AT(y), s.at);
    if (OWNS_TAIL(n)) {
        ulong i = TAIL_AT(n);
        int rest = (int)(n - i);
        floatv sum = LOADN(AT(a), i, rest) + LOADN(AT(b), i, rest);
        STOREN(sum, AT(y), i, rest);
    }
}
