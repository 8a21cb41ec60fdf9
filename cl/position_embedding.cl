/* Learned position embeddings: rows `first` to `first` + L - 1 of a table, added to every sample; and the table's
 * gradient, the sum over the samples in their order.
 *
 * The rows of the table that are used have the layout of one sample: `sample` = L D elements. */
#include "lib/common.clh"

#include "lib/runs.clh"

/* Samples lie far apart in memory. On a CPU a work-item reads a longer piece of each before the next one. */
#if WG == 1
#define PIECE 4
#else
#define PIECE 1
#endif

/* This work-item's pieces of a sample (begin, end, step), in elements. */
static inline uint3 own_pieces(uint sample) {
    const uint size = PIECE * VEC, pieces = (sample + size - 1) / size;
    const uint item = get_global_id(0), items = get_global_size(0);
#if WG == 1
    const uint each = (pieces + items - 1) / items;
    return (uint3)(min(item * each, pieces) * size, min(item * each + each, pieces) * size, size);
#else
    return (uint3)(item * size, pieces * size, items * size);
#endif
}

/* x, y T [batch, sample], table f32 [sample]: the rows that are used. */
__kernel void position_embedding_forward(TENSOR(const T, x), TENSOR(const float, table), TENSOR(T, y), const uint batch,
                                         const uint sample) {
    const uint3 own = own_pieces(sample);
    for (uint at = own.x; at < own.y; at += own.z) {
        floatv rows[PIECE];
#pragma unroll
        for (int k = 0; k < PIECE; ++k) {
            const uint column = at + k * VEC;
            rows[k] = column < sample ? run_load_f32(AT(table), column, sample) : (floatv)(0.0f);
        }
        for (uint b = 0; b < batch; ++b) {
            const ulong start = (ulong)b * sample;
#pragma unroll
            for (int k = 0; k < PIECE; ++k) {
                const uint column = at + k * VEC;
                if (column < sample)
                    run_store(run_load(AT(x) + start, column, sample) + rows[k], AT(y) + start, column, sample);
            }
        }
    }
}

/* dy T [batch, sample], dtable f32 [sample]: += the sum over the samples. */
__kernel void position_embedding_backward(TENSOR(const T, dy), TENSOR(float, dtable), const uint batch,
                                          const uint sample) {
    const uint3 own = own_pieces(sample);
    for (uint at = own.x; at < own.y; at += own.z) {
        floatv sum[PIECE];
#pragma unroll
        for (int k = 0; k < PIECE; ++k) sum[k] = (floatv)(0.0f);
        for (uint b = 0; b < batch; ++b) {
            __global const T *from = AT(dy) + (ulong)b * sample;
#pragma unroll
            for (int k = 0; k < PIECE; ++k) {
                const uint column = at + k * VEC;
                if (column < sample) sum[k] += run_load(from, column, sample);
            }
        }
#pragma unroll
        for (int k = 0; k < PIECE; ++k) {
            const uint column = at + k * VEC;
            if (column < sample)
                run_store_f32(run_load_f32(AT(dtable), column, sample) + sum[k], AT(dtable), column, sample);
        }
    }
}
