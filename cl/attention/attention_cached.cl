/* Attention of new queries to the keys and values of a cache, to which their own are appended first.
 *
 * q, y T [batch, length, heads, DH]; kv T [batch, length, 2, kv_heads, DH]: keys, then values; cache T [batch,
 * capacity, 2, kv_heads, DH]; positions i32 [batch, length]: the row of the cache of each query, which sees the keys
 * up to its own; below 0 or from `capacity` on: none, and its row of y is 0.
 *
 *   DH        elements of a head
 *   SHARING   heads of queries of a head of keys
 *   WINDOW    keys that a query sees at most; 0: all */
#include "lib/common.clh"

#ifndef DH
#define DH 64
#endif
#ifndef SHARING
#define SHARING 1
#endif
#ifndef WINDOW
#define WINDOW 0
#endif
#define FIRST_KEY(position) (WINDOW ? max(0, (position)-WINDOW + 1) : 0)

__kernel void attention_cache_append(TENSOR(const T, kv), TENSOR(const int, positions), TENSOR(T, cache),
                                     const int batch, const int length, const int capacity, const int width) {
    for (int i = get_global_id(0); i < batch * length * width; i += get_global_size(0)) {
        const int row = i / width, position = AT(positions)[row];
        if (position < 0 || position >= capacity) continue;
        STORE(LOAD(AT(kv), i), AT(cache), ((ulong)(row / length) * capacity + position) * width + i % width);
    }
}

/* The first key of a head of queries; its value is `values` elements behind it, the next key 2 * values. */
#define HEAD_KEYS(b, h) (AT(cache) + (ulong)(b)*capacity * 2 * values + (h) / SHARING * DH)

/* --- one work-item per query ---------------------------------------------------------------------------- */

#define PARTS ((DH + VEC - 1) / VEC)
#define IS_WHOLE(k) (DH % VEC == 0 || (k) + 1 < PARTS)

static inline floatv part_load(__global const T *head, int k) {
    return IS_WHOLE(k) ? LOADV(head, k * VEC) : LOADN(head, k * VEC, DH - k * VEC);
}

/* Scores of VEC keys at once lie in a vector. */
__kernel void attention_cached_items(TENSOR(const T, q), TENSOR(const T, cache), TENSOR(const int, positions),
                                     TENSOR(T, y), const int batch, const int length, const int heads,
                                     const int capacity, const int values, const float softmax_scale) {
    for (int at = get_global_id(0); at < batch * length * heads; at += get_global_size(0)) {
        const int h = at % heads, row = at / heads, position = AT(positions)[row];
        const int end = position < capacity ? position + 1 : 0;
        __global const T *keys = HEAD_KEYS(row / length, h);
        floatv query[PARTS], out[PARTS];
        float top = -INFINITY, sum = 0.0f;
        for (int k = 0; k < PARTS; ++k)
            query[k] = part_load(AT(q) + (ulong)at * DH, k) * softmax_scale, out[k] = (floatv)(0.0f);
        for (int j = FIRST_KEY(position); j < end; j += VEC) {
            const int some = min(VEC, end - j);
            float lane[VEC];
            for (int i = 0; i < VEC; ++i) lane[i] = -INFINITY;
            for (int i = 0; i < some; ++i) {
                __global const T *key = keys + (ulong)(j + i) * 2 * values;
                floatv score = query[0] * part_load(key, 0);
                for (int k = 1; k < PARTS; ++k) score += query[k] * part_load(key, k);
                lane[i] = sumv(score);
            }
            const floatv scores = vector_of(lane);
            const float higher = fmax(top, maxv(scores)), shrink = exp(top - higher);
            const floatv weights = exp(scores - higher);
            lanes_of(weights, lane);
            sum = sum * shrink + sumv(weights);
            for (int k = 0; k < PARTS; ++k) out[k] *= shrink;
            for (int i = 0; i < some; ++i) {
                __global const T *value = keys + (ulong)(j + i) * 2 * values + values;
                for (int k = 0; k < PARTS; ++k) out[k] += lane[i] * part_load(value, k);
            }
            top = higher;
        }
        __global T *to = AT(y) + (ulong)at * DH;
        for (int k = 0; k < PARTS; ++k) {
            const floatv result = end > 0 ? out[k] / sum : (floatv)(0.0f);
            if (IS_WHOLE(k))
                STOREV(result, to, k * VEC);
            else
                STOREN(result, to, k * VEC, DH - k * VEC);
        }
    }
}

/* --- one work-group per query ---------------------------------------------------------------------------- */

#if WG >= 64
/* The columns of a head, rounded up to a power of two, so that they divide the work-items or are a multiple of them. */
#define COLUMNS (DH <= 8 ? 8 : DH <= 16 ? 16 : DH <= 32 ? 32 : DH <= 64 ? 64 : DH <= 128 ? 128 : 256)
#define OWN (COLUMNS > WG ? COLUMNS / WG : 1)
#define SHARES (COLUMNS > WG ? 1 : WG / COLUMNS)

static inline float group_max(float x, __local float *scratch) {
    const int i = get_local_id(0);
    scratch[i] = x;
    for (int n = WG / 2; n > 0; n /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (i < n) scratch[i] = fmax(scratch[i], scratch[i + n]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    x = scratch[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    return x;
}

/* A work-item has the score of a key of each WG keys, then a column of a share of their values. */
__kernel void attention_cached_groups(TENSOR(const T, q), TENSOR(const T, cache), TENSOR(const int, positions),
                                      TENSOR(T, y), const int length, const int heads, const int capacity,
                                      const int values, const float softmax_scale) {
    __local float scratch[WG], weights[WG], query[DH];
    const int at = get_group_id(0), item = get_local_id(0), h = at % heads, row = at / heads;
    const int position = AT(positions)[row], end = position < capacity ? position + 1 : 0;
    const int column = item % COLUMNS, share = item / COLUMNS;
    __global const T *keys = HEAD_KEYS(row / length, h);
    float out[OWN], top = -INFINITY, sum = 0.0f;
    for (int c = 0; c < OWN; ++c) out[c] = 0.0f;
    for (int d = item; d < DH; d += WG) query[d] = LOAD(AT(q), (ulong)at * DH + d) * softmax_scale;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int first = FIRST_KEY(position); first < end; first += WG) {
        const int some = min(WG, end - first);
        float score = -INFINITY;
        if (item < some) {
            __global const T *key = keys + (ulong)(first + item) * 2 * values;
            score = 0.0f;
            for (int d = 0; d < DH; ++d) score = fma(query[d], LOAD(key, d), score);
        }
        const float higher = fmax(top, group_max(score, scratch)), shrink = exp(top - higher);
        const float weight = exp(score - higher);
        weights[item] = weight;
        sum = sum * shrink + group_sum(weight, scratch);
        for (int c = 0; c < OWN; ++c) {
            const int d = column + c * WG;
            out[c] *= shrink;
            if (d >= DH) continue;
            __global const T *value = keys + (ulong)first * 2 * values + values + d;
            for (int k = share; k < some; k += SHARES)
                out[c] = fma(weights[k], LOAD(value, (ulong)k * 2 * values), out[c]);
        }
        top = higher; /* group_max waits before the weights are overwritten */
    }
    for (int c = 0; c < OWN; ++c) {
        const int d = column + c * WG;
        scratch[item] = out[c];
        barrier(CLK_LOCAL_MEM_FENCE);
        float total = 0.0f;
        for (int s = 0; s < SHARES; ++s) total += scratch[item % COLUMNS + s * COLUMNS];
        if (share == 0 && d < DH) STORE(end > 0 ? total / sum : 0.0f, AT(y), (ulong)at * DH + d);
        barrier(CLK_LOCAL_MEM_FENCE); /* the scratch may be overwritten */
    }
}
#endif
