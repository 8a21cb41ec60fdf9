/* Kernels of the exec tests; see tests/exec/tiny.c. */
#include "lib/common.clh"

/* y[i] = x[i] * factor + bias[i % n_bias], after `delay` rounds of work that the compiler cannot remove. */
__kernel void tiny_affine(TENSOR(const float, x), TENSOR(const float, bias), TENSOR(float, y), float factor, int delay,
                          ulong n, ulong n_bias) {
    for (ulong i = get_global_id(0); i < n; i += get_global_size(0)) {
        float v = AT(x)[i] * factor + (HAS(bias) ? AT(bias)[i % n_bias] : 0.0f);
        float waste = v;
        for (int j = 0; j < delay; ++j) waste = sin(waste) + 1e-3f;
        AT(y)[i] = waste == 12345.678f ? waste : v;
    }
}

/* total[i] += x[i], through a temporary copy in the workspace. */
__kernel void tiny_copy(TENSOR(const float, x), TENSOR(float, copy), ulong n) {
    for (ulong i = get_global_id(0); i < n; i += get_global_size(0)) AT(copy)[i] = AT(x)[i];
}

__kernel void tiny_add(TENSOR(const float, copy), TENSOR(float, total), ulong n) {
    for (ulong i = get_global_id(0); i < n; i += get_global_size(0)) AT(total)[i] += AT(copy)[i];
}
