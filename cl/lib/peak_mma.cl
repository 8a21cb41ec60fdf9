/* Measures the throughput of the matrix unit (session/peaks.c) with products of tiles in registers
 * (lib/mma.clh). */
#include "lib/common.clh"
#include "lib/mma.clh"

#if PEAK_MATRIX_PRODUCTS != 4
#error the number of products below
#endif

/* A product of 16 x 16 x 16. A unit whose products are 8 deep multiplies the first half of the tiles twice. */
#define MULTIPLY(c, a, b)                                                                                              \
    _Pragma("unroll") for (int k = 0; k < 16; k += MATRIX_DEPTH) {                                                     \
        matrix_mad(c, a, b, scratch);                                                                                  \
    }

static inline float matrix_total(const matrix_c *c) {
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < C_COUNT; ++i) sum += c->x[i];
    return sum;
}

/* rounds[0] rounds of PEAK_MATRIX_PRODUCTS products, two tiles A by two tiles B, in each subgroup. The tiles
 * are full of numbers from 0.25 to 0.5 of both signs, f16: zeros would draw less power than the values of a
 * training step. out [work-items]: the sum of all elements that the lane has. */
MATRIX_KERNEL __kernel void peak_matrix(TENSOR(const int, rounds), TENSOR(float, out)) {
    __local ushort __attribute__((aligned(16))) tiles[4][256];
    MATRIX_SCRATCH(scratch);
    const int count = AT(rounds)[0];
    /* A loop from get_local_id(0) in steps of WG is miscompiled: clang 19's code for RDNA writes nothing (it
     * compares a counter with 7 by v_cmpx_ge with exchanged operands), as the virtual cards show. */
#pragma unroll
    for (int k = 0; k < 4 * 256 / WG; ++k) {
        const int i = k * WG + get_local_id(0);
        tiles[i / 256][i % 256] = (ushort)(0x3400 | i * 389 % 1024 | (i * 7919 / 8 % 2) << 15);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    matrix_a a0, a1;
    matrix_b b0, b1;
    matrix_c c00, c01, c10, c11;
    matrix_load_a(a0, tiles[0], 16);
    matrix_load_a(a1, tiles[1], 16);
    matrix_load_b(b0, tiles[2], 16);
    matrix_load_b(b1, tiles[3], 16);
    matrix_zero(c00);
    matrix_zero(c01);
    matrix_zero(c10);
    matrix_zero(c11);
    for (int i = 0; i < count; ++i) {
        MULTIPLY(c00, a0, b0)
        MULTIPLY(c01, a0, b1)
        MULTIPLY(c10, a1, b0)
        MULTIPLY(c11, a1, b1)
    }
    AT(out)[get_global_id(0)] = matrix_total(&c00) + matrix_total(&c01) + matrix_total(&c10) + matrix_total(&c11);
}
