/* The sum of up to eight scalars, in their order. */
#include "lib/common.clh"

#define ADD(x)                                                                                                         \
    if (HAS(x)) sum += AT(x)[0]

__kernel void sum_scalars(TENSOR(const float, a), TENSOR(const float, b), TENSOR(const float, c),
                          TENSOR(const float, d), TENSOR(const float, e), TENSOR(const float, f),
                          TENSOR(const float, g), TENSOR(const float, h), TENSOR(float, y)) {
    if (get_global_id(0) != 0) return;
    float sum = 0.0f;
    ADD(a);
    ADD(b);
    ADD(c);
    ADD(d);
    ADD(e);
    ADD(f);
    ADD(g);
    ADD(h);
    AT(y)[0] = sum;
}
