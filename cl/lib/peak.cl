/* Measures launch overhead and f32 throughput (session/peaks.c) with an empty kernel and multiply-adds in
 * registers. */
#include "lib/common.clh"
#include "lib/shared_numbers.clh"

__kernel void peak_launch(void) {
}

/* Independent sums, vectors of VEC floats: more than the latency of the units requires. */
#define SIX(f) f(0) f(1) f(2) f(3) f(4) f(5)
#if MANY_SUMS
#define SUMS(f) SIX(f) f(6) f(7) f(8) f(9) f(10) f(11)
#define SUM_COUNT 12
#else
#define SUMS(f) SIX(f)
#define SUM_COUNT 6
#endif

/* A multiply-add that cannot be taken out of the loop. GPUs add a product to the sum, as their matrix
 * products do, because RDNA3 issues two such instructions at once. On CPUs `fma` may be a function call, so
 * the compiler contracts the expression, and the sum is a factor. */
#define BEGIN(i) floatv x##i = (floatv)(0.001f * (i));
#if WG == 1
#define STEP(i) x##i = x##i * a + b;
#else
#define STEP(i) x##i = fma(a, b, x##i);
#endif
#define ADD(i) +x##i

/* rounds[0] rounds of PEAK_PRODUCTS multiply-adds of VEC floats in each work-item; out [work-items]: their sums. */
__kernel void peak_f32(TENSOR(const int, rounds), TENSOR(float, out)) {
    const int count = AT(rounds)[0];
    const float item = (float)get_local_id(0);
    const floatv a = (floatv)(0.99f - 0.0001f * item), b = (floatv)(0.51f + 0.001f * item);
    SUMS(BEGIN)
    for (int i = 0; i < count; ++i) {
#pragma unroll
        for (int j = 0; j < PEAK_PRODUCTS / SUM_COUNT; ++j) {
            SUMS(STEP)
        }
    }
    AT(out)[get_global_id(0)] = sumv((floatv)(0.0f)SUMS(ADD));
}
