/* Probe of a matrix unit: one product of 16 x 16 x 16 through each load function.
 *
 * The host compares the results before anything relies on the unit. One group; each of its subgroups computes
 * all forms. */
#include "lib/common.clh"
#include "lib/mma.clh"

enum { LD = 24 }; /* not 16, to detect a load that ignores ld */
#define SLAB (16 * MATRIX_SLAB)
#define SLAB_AT(row, column) ((column) / MATRIX_SLAB * SLAB + (row)*MATRIX_SLAB + (column) % MATRIX_SLAB)

/* One combination of loads, MATRIX_DEPTH of the depth at a time. It is a macro expanded for each combination,
 * because a run-time choice between loads would take the operands out of the registers. */
#define TRY(form, load_x, load_y)                                                                                      \
    do {                                                                                                               \
        matrix_a x;                                                                                                    \
        matrix_b y;                                                                                                    \
        matrix_c z;                                                                                                    \
        _Pragma("unroll") for (int i = 0; i < C_COUNT; ++i) z.x[i] = start[C_ROW(i) * 16 + C_COLUMN(i)];               \
        _Pragma("unroll") for (int k = 0; k < 16; k += MATRIX_DEPTH) {                                                 \
            load_x;                                                                                                    \
            load_y;                                                                                                    \
            matrix_mad(z, x, y, scratch);                                                                              \
        }                                                                                                              \
        _Pragma("unroll") for (int i = 0; i < C_COUNT; ++i)                                                            \
            out[((MMA_SUBGROUP * MATRIX_PROBE_FORMS + form) * 16 + C_ROW(i)) * 16 + C_COLUMN(i)] = z.x[i];             \
    } while (0)

/* C = C0 + A B in five ways: A and B loaded as they are, A from its transpose, B from its transpose, both,
 * and A and B as slabs. a [16 (m), 16 (k)], b [16 (k), 16 (n)]: bits of f16 or bf16; start: C0 [16, 16]; out
 * [subgroups, 5, 16, 16]. */
MATRIX_KERNEL __kernel void mma_probe(__global const ushort *a, __global const ushort *b, __global const float *start,
                                      __global float *out) {
    __local ushort __attribute__((aligned(16))) tiles[4][16 * LD]; /* A, its transpose, B, its transpose */
    __local ushort __attribute__((aligned(16))) slabs[2][16 * 16];
    MATRIX_SCRATCH(scratch);
    for (int i = get_local_id(0); i < 256; i += WG) {
        int row = i / 16, column = i % 16;
        slabs[0][SLAB_AT(row, column)] = a[i];
        slabs[1][MATRIX_BLOCKS ? i : SLAB_AT(column, row)] = b[i];
        tiles[0][row * LD + column] = a[i];
        tiles[1][column * LD + row] = a[i];
        tiles[2][row * LD + column] = b[i];
        tiles[3][column * LD + row] = b[i];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    TRY(0, matrix_load_a(x, tiles[0] + k, LD), matrix_load_b(y, tiles[2] + k * LD, LD));
    TRY(1, matrix_load_at(x, tiles[1] + k * LD, LD), matrix_load_b(y, tiles[2] + k * LD, LD));
    TRY(2, matrix_load_a(x, tiles[0] + k, LD), matrix_load_bt(y, tiles[3] + k, LD));
    TRY(3, matrix_load_at(x, tiles[1] + k * LD, LD), matrix_load_bt(y, tiles[3] + k, LD));
#if MATRIX_SLABS
    TRY(4, matrix_load_a_slab(x, slabs[0], SLAB, 0, k), matrix_load_b_slab(y, slabs[1], SLAB, k, 0));
#else
    TRY(4, matrix_load_a(x, tiles[0] + k, LD), matrix_load_b(y, tiles[2] + k * LD, LD));
#endif
}
