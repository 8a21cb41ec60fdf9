/* Embedding: rows of a table, and the table's gradient.
 *
 * dtable[v] += the sum of dy[i] over the positions i with tokens[i] = v, in ascending order of i and without
 * float atomics, except for v = padding (-1: none), whose gradient is 0. A position is one of n = B L tokens;
 * rows have `width` elements.
 *
 *   embedding_forward       one vector of a row per iteration
 *   embedding_chain         a single work-item links the positions of each token: head[v] is the first,
 *                           next[i] the following position, or -1
 *   embedding_walk          dtable from these lists; for CPUs, where both kernels are fast for any vocabulary
 *   embedding_gather        one work-group per position: the first position of a token scans the others
 *                           and sums; for GPUs, any vocabulary
 *   embedding_few_partial   small vocabularies: a range of positions is summed into VOCABULARY private
 *                           accumulators
 *   embedding_few_total     sums the ranges, in order, unless the last group has done so (last_group.clh) */
#include "lib/common.clh"
#include "lib/column_sum.clh"
#include "lib/last_group.clh"
#include "lib/table_rows.clh"

/* This work-item's part of the units 0 .. units (begin, end, step): a contiguous range on a CPU, strided by
 * get_global_size on a GPU. */
static inline uint3 own_units(uint units) {
    uint item = get_global_id(0), items = get_global_size(0);
#if WG == 1
    uint each = (units + items - 1) / items;
    return (uint3)(min(item * each, units), min(item * each + each, units), 1);
#else
    return (uint3)(item, units, items);
#endif
}

/* tokens i32 [n], table [vocabulary, width], y T [n, width]. */
__kernel void embedding_forward(TENSOR(const int, tokens), TABLE, TENSOR(T, y), const uint n, const uint width,
                                const int vocabulary) {
    uint vectors = (width + VEC - 1) / VEC;
    uint3 own = own_units(n * vectors);
    for (uint unit = own.x; unit < own.y; unit += own.z) {
        uint i = unit / vectors, at = (unit - i * vectors) * VEC;
        const floatv v = table_vector(table_slab, table_offset, AT(tokens)[i], vocabulary, at, width);
        run_store(v, AT(y) + (ulong)i * width, at, width);
    }
}

/* head i32 [vocabulary], next i32 [n]. Only one work-item works; GPUs use embedding_gather instead. */
__kernel void embedding_chain(TENSOR(const int, tokens), TENSOR(int, head), TENSOR(int, next), const int n,
                              const int vocabulary, const int padding) {
    if (get_global_id(0) != 0) return;
    for (int v = 0; v < vocabulary; ++v) AT(head)[v] = -1;
    for (int i = n - 1; i >= 0; --i) {
        int token = AT(tokens)[i];
        if (token < 0 || token >= vocabulary || token == padding) continue;
        AT(next)[i] = AT(head)[token];
        AT(head)[token] = i;
    }
}

/* dy T [n, width], dtable f32 [vocabulary, width]. A unit is STRIPE vectors of a table row, summed in
 * registers along the list. */
#define STRIPE EMBEDDING_STRIPE
__kernel void embedding_walk(TENSOR(const int, head), TENSOR(const int, next), TENSOR(const T, dy),
                             TENSOR(float, dtable), const uint width, const int vocabulary) {
    uint stripes = (width + STRIPE * VEC - 1) / (STRIPE * VEC);
    uint units = (uint)vocabulary * stripes;
    /* Strided even on a CPU: tokens of one kind (letters, padding) have adjacent numbers, and their lists are
     * the long ones. */
    for (uint unit = get_global_id(0); unit < units; unit += get_global_size(0)) {
        uint token = unit / stripes, first = (unit - token * stripes) * STRIPE * VEC;
        int i = AT(head)[token];
        if (i < 0) continue;
        floatv sum[STRIPE];
#pragma unroll
        for (int k = 0; k < STRIPE; ++k) sum[k] = (floatv)(0.0f);
        for (; i >= 0; i = AT(next)[i]) {
            __global const T *row = AT(dy) + (ulong)i * width;
#pragma unroll
            for (int k = 0; k < STRIPE; ++k)
                if (first + k * VEC < width) sum[k] += run_load(row, first + k * VEC, width);
        }
        __global float *to = AT(dtable) + (ulong)token * width;
#pragma unroll
        for (int k = 0; k < STRIPE; ++k) {
            uint at = first + k * VEC;
            if (at < width) run_store_f32(run_load_f32(to, at, width) + sum[k], to, at, width);
        }
    }
}

/* One group per position. `mark` has one bit for each token of the current block of WG. */
__kernel void embedding_gather(TENSOR(const int, tokens), TENSOR(const T, dy), TENSOR(float, dtable), const int n,
                               const uint width, const int vocabulary, const int padding) {
    __local uint mark[(WG + 31) / 32];
    __local int earlier;
    int lane = get_local_id(0), self = get_group_id(0);
    int token = AT(tokens)[self];
    if (token < 0 || token >= vocabulary || token == padding) return; /* uniform across the group */
    for (int block = 0; block < self; block += WG) {
        if (lane == 0) earlier = 0;
        GROUP_BARRIER();
        if (block + lane < self && AT(tokens)[block + lane] == token) atomic_or(&earlier, 1);
        GROUP_BARRIER();
        int found = earlier;
        GROUP_BARRIER();
        if (found) return; /* uniform across the group: an earlier position sums this token */
    }
    __global float *to = AT(dtable) + (ulong)token * width;
    for (uint column = 0; column < width; column += WG) {
        uint c = column + lane;
        float sum = c < width ? LOAD(AT(dy) + (ulong)self * width, c) : 0.0f;
        for (int block = self + 1; block < n; block += WG) {
            if (lane < (WG + 31) / 32) mark[lane] = 0;
            GROUP_BARRIER();
            if (block + lane < n && AT(tokens)[block + lane] == token) atomic_or(&mark[lane / 32], 1u << (lane % 32));
            GROUP_BARRIER();
            for (int w = 0; w < (WG + 31) / 32; ++w) {
                for (uint bits = mark[w]; bits != 0; bits &= bits - 1) {
                    int bit = 31 - (int)clz(bits & (0u - bits));
                    ulong i = (ulong)(block + 32 * w + bit);
                    if (c < width) sum += LOAD(AT(dy) + i * width, c);
                }
            }
            GROUP_BARRIER();
        }
        if (c < width) to[c] += sum;
    }
}

#ifndef VOCABULARY
#define VOCABULARY 4
#endif
/* dtable [VOCABULARY, width] += the sum of partial [parts, VOCABULARY, width] over the parts, in order;
 * units: vectors of dtable. */
static inline void add_parts(__global const float *partial, __global float *dtable, uint parts, uint width, uint3 own) {
    uint vectors = (width + VEC - 1) / VEC;
    for (uint unit = own.x; unit < own.y; unit += own.z) {
        uint v = unit / vectors, at = (unit - v * vectors) * VEC;
        floatv sum = (floatv)(0.0f);
        for (uint p = 0; p < parts; ++p) sum += run_load_f32(partial + (ulong)(p * VOCABULARY + v) * width, at, width);
        __global float *to = dtable + (ulong)v * width;
        run_store_f32(run_load_f32(to, at, width) + sum, to, at, width);
    }
}

/* partial f32 [parts, VOCABULARY, width]: part p sums positions p `length` .. (p + 1) `length`. A unit is one
 * vector of a part. */
__kernel void embedding_few_partial(TENSOR(const int, tokens), TENSOR(const T, dy), TENSOR(float, partial),
                                    const uint n, const uint width, const uint parts, const uint length,
                                    const int padding, TENSOR(float, dtable), TENSOR(int, counters)) {
    LAST_GROUP_SCRATCH(before);
    uint vectors = (width + VEC - 1) / VEC;
    uint3 own = own_units(parts * vectors);
    for (uint unit = own.x; unit < own.y; unit += own.z) {
        uint part = unit / vectors, at = (unit - part * vectors) * VEC;
        uint end = min(part * length + length, n);
        floatv sum[VOCABULARY];
#pragma unroll
        for (int v = 0; v < VOCABULARY; ++v) sum[v] = (floatv)(0.0f);
        for (uint i = part * length; i < end; ++i) {
            floatv row = run_load(AT(dy) + (ulong)i * width, at, width);
            int token = AT(tokens)[i];
#pragma unroll
            for (int v = 0; v < VOCABULARY; ++v) sum[v] += token == v && token != padding ? row : (floatv)(0.0f);
        }
#pragma unroll
        for (int v = 0; v < VOCABULARY; ++v)
            run_store_f32(sum[v], AT(partial) + (ulong)(part * VOCABULARY + v) * width, at, width);
    }
    if (HAS(counters) && is_last_group(AT(counters), get_num_groups(0), before))
        add_parts(AT(partial), AT(dtable), parts, width, (uint3)(get_local_id(0), VOCABULARY * vectors, WG));
}

__kernel void embedding_few_total(TENSOR(const float, partial), TENSOR(float, dtable), const uint parts,
                                  const uint width) {
#if WG == 1
    add_parts(AT(partial), AT(dtable), parts, width, own_units(VOCABULARY * ((width + VEC - 1) / VEC)));
#else
    __local float scratch[WG];
    const uint item = get_local_id(0), c = get_group_id(0) * COLUMNS + item % COLUMNS, n = VOCABULARY * width;
    const float sum = column_sum(AT(partial) + c, c < n ? parts : 0, n, scratch);
    if (item < COLUMNS && c < n) AT(dtable)[c] += sum;
#endif
}
