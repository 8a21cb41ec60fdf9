/* Learned position embeddings: rows of a table, from one on, added to the positions of every sample; and the table's
 * gradient, the sum over the samples in a fixed order.
 *
 * The rows that are used have the layout of one sample: `sample` = L D elements, of which the first `used`
 * have a row in the table. */
#include "lib/common.clh"
#include "lib/column_sum.clh"
#include "lib/runs.clh"

/* Samples lie far apart in memory. On a CPU a work-item reads a longer piece of each before the next one. */
#if WG == 1
#define PIECE 4
#else
#define PIECE 1
#endif

/* This work-item's pieces of `elements` (begin, end, step); with several parts, pieces of all parts, one part
 * after the other. */
static inline uint3 own_pieces(uint elements, uint parts) {
    const uint size = PIECE * VEC, pieces = (elements + size - 1) / size * parts;
    const uint item = get_global_id(0), items = get_global_size(0);
#if WG == 1
    const uint each = (pieces + items - 1) / items;
    return (uint3)(min(item * each, pieces), min(item * each + each, pieces), 1);
#else
    return (uint3)(item, pieces, items);
#endif
}

/* x, y T [batch, sample], table f32 [used]. */
__kernel void position_embedding_forward(TENSOR(const T, x), TENSOR(const float, table), TENSOR(T, y), const uint batch,
                                         const uint sample, const uint used) {
#if WG > 1
    FOR_RUNS(r, batch, sample) {
        const ulong start = (ulong)r.row * sample;
        floatv sum = run_load(AT(x) + start, r.at, sample);
        if (r.at < used) sum += run_load_f32(AT(table), r.at, used);
        run_store(sum, AT(y) + start, r.at, sample);
    }
#else
    const uint3 own = own_pieces(sample, 1);
    for (uint piece = own.x; piece < own.y; piece += own.z) {
        const uint at = piece * (PIECE * VEC);
        floatv rows[PIECE];
#pragma unroll
        for (int k = 0; k < PIECE; ++k) {
            const uint column = at + k * VEC;
            rows[k] = column < used ? run_load_f32(AT(table), column, used) : (floatv)(0.0f);
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
#endif
}

/* dy T [batch, sample]. Part p sums `each` samples from p * each on: sums f32 [parts, used] = accum + these,
 * where accum f32 [used], or none, is for one part only. */
__kernel void position_embedding_backward(TENSOR(const T, dy), TENSOR(const float, accum), TENSOR(float, sums),
                                          const uint batch, const uint sample, const uint used, const uint parts,
                                          const uint each) {
    const uint3 own = own_pieces(used, parts);
    const uint pieces = (used + PIECE * VEC - 1) / (PIECE * VEC);
    for (uint piece = own.x; piece < own.y; piece += own.z) {
        const uint part = piece / pieces, at = (piece - part * pieces) * (PIECE * VEC);
        const uint end = min(part * each + each, batch);
        floatv sum[PIECE];
#pragma unroll
        for (int k = 0; k < PIECE; ++k) sum[k] = (floatv)(0.0f);
        for (uint b = part * each; b < end; ++b) {
            __global const T *from = AT(dy) + (ulong)b * sample;
#pragma unroll
            for (int k = 0; k < PIECE; ++k) {
                const uint column = at + k * VEC;
                if (column < used) sum[k] += run_load(from, column, used);
            }
        }
        __global float *to = AT(sums) + (ulong)part * used;
#pragma unroll
        for (int k = 0; k < PIECE; ++k) {
            const uint column = at + k * VEC;
            if (column >= used) continue;
            if (HAS(accum)) sum[k] += run_load_f32(AT(accum), column, used);
            run_store_f32(sum[k], to, column, used);
        }
    }
}

/* dtable f32 [used] = accum + the sum of the parts. */
__kernel void position_embedding_total(TENSOR(const float, sums), TENSOR(const float, accum), TENSOR(float, dtable),
                                       const uint used, const uint parts) {
#if WG > 1
    __local float scratch[WG];
    const uint item = get_local_id(0), c = get_group_id(0) * COLUMNS + item % COLUMNS;
    const float sum = column_sum(AT(sums) + c, c < used ? parts : 0, used, scratch);
    if (item < COLUMNS && c < used) AT(dtable)[c] = sum + (HAS(accum) ? AT(accum)[c] : 0.0f);
#else
    const uint3 own = own_pieces(used, 1);
    for (uint piece = own.x; piece < own.y; piece += own.z) {
#pragma unroll
        for (int k = 0; k < PIECE; ++k) {
            const uint column = (piece * PIECE + k) * VEC;
            if (column >= used) continue;
            floatv sum = HAS(accum) ? run_load_f32(AT(accum), column, used) : (floatv)(0.0f);
            for (uint p = 0; p < parts; ++p) sum += run_load_f32(AT(sums) + (ulong)p * used, column, used);
            run_store_f32(sum, AT(dtable), column, used);
        }
    }
#endif
}
