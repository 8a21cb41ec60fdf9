/* Accumulates up to ten metrics: state[x_at] += x, in their order. If there is a total, it becomes their sum, and
 * state[total_at] += total. */
#include "lib/common.clh"

#define ADD(x)                                                                                                         \
    if (HAS(x)) AT(state)[x##_at] += AT(x)[0], sum += AT(x)[0]

__kernel void accumulate_metric_scalars(TENSOR(float, state), TENSOR(const float, a), const int a_at,
                                        TENSOR(const float, b), const int b_at, TENSOR(const float, c), const int c_at,
                                        TENSOR(const float, d), const int d_at, TENSOR(const float, e), const int e_at,
                                        TENSOR(const float, f), const int f_at, TENSOR(const float, g), const int g_at,
                                        TENSOR(const float, h), const int h_at, TENSOR(const float, i), const int i_at,
                                        TENSOR(const float, j), const int j_at, TENSOR(float, total),
                                        const int total_at) {
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
    ADD(i);
    ADD(j);
    if (HAS(total)) AT(total)[0] = sum, AT(state)[total_at] += sum;
}
