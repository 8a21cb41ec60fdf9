/* An LSTM layer for work-groups (WG > 1, VEC == 4).
 *
 * A group processes all steps of a few samples. Its work-items synchronize with a barrier between steps and
 * exchange h through local memory. The weight is streamed from global memory and stays in the GPU's cache.
 *
 *   HIDDEN   hidden units
 *   LANES    work-items along units, a power of two; each computes the units lane, lane + LANES, ...
 *
 * A work-item processes VEC4 samples, and WG / LANES work-items share a unit: SAMPLES per group. */
#include "lib/common.clh"
#include "lib/shared_numbers.clh"
#include "lstm/lstm.clh"

#ifndef HIDDEN
#define HIDDEN 32
#endif
#ifndef LANES
#define LANES 32
#endif
#define VEC4 4
#define VEC4S_PER_GROUP (WG / LANES)
#define SAMPLES (VEC4S_PER_GROUP * VEC4)
#define BLOCKS ((HIDDEN + LANES - 1) / LANES)
#define PADDED (BLOCKS * LANES)
#define GROUP __attribute__((reqd_work_group_size(WG, 1, 1)))

/* packed f32 [HIDDEN (a)][PADDED (b)][4 gates]. own_first: weight[gate, b, a] for the forward pass, where b
 * is the work-item's own unit and the sum is over a. Otherwise weight[gate, a, b] for the backward pass.
 * weight T [4 HIDDEN, HIDDEN]. */
__kernel GROUP void lstm_gpu_pack(TENSOR(const T, weight), TENSOR(float, packed), const int own_first) {
    for (int i = get_global_id(0); i < HIDDEN * PADDED * 4; i += get_global_size(0)) {
        const int gate = i % 4, b = i / 4 % PADDED, a = i / 4 / PADDED;
        const int row = own_first ? b : a, column = own_first ? a : b;
        AT(packed)[i] = b < HIDDEN ? LOAD(AT(weight), (long)(gate * HIDDEN + row) * HIDDEN + column) : 0.0f;
    }
}

/* The gates (i, f, g, o) of one cell. */
static inline float4 gates_of(float4 x) {
    float4 s = 1.0f / one_and_decay(x * (float4)(1.0f, 1.0f, 2.0f, 1.0f));
    s.z = tanh_with(x, s).z;
    return s;
}
/* Loads or stores four T that are HIDDEN apart. */
static inline float4 load_gates(__global const T *p) {
    return (float4)(LOAD(p, 0), LOAD(p, HIDDEN), LOAD(p, 2 * HIDDEN), LOAD(p, 3 * HIDDEN));
}
static inline void store_gates(float4 v, __global T *p) {
    STORE(v.x, p, 0);
    STORE(v.y, p, HIDDEN);
    STORE(v.z, p, 2 * HIDDEN);
    STORE(v.w, p, 3 * HIDDEN);
}
/* Element i of a vec4 of samples; i is a constant. */
#define SAMPLE(v, i) ((i) == 0 ? (v).x : (i) == 1 ? (v).y : (i) == 2 ? (v).z : (v).w)

/* products T [batch, length, 4 HIDDEN]; gates may overwrite it in place. h, cells T
 * [batch, length, HIDDEN]. */
MANY_REGISTERS __kernel GROUP void lstm_gpu_forward(TENSOR(const T, products), TENSOR(const float, packed),
                                                    TENSOR(T, gates), TENSOR(T, h), TENSOR(T, cells), const int batch,
                                                    const int length) {
    /* h of vec4s of samples, of the previous and of this step */
    __local float4 state[2][PADDED * VEC4S_PER_GROUP];
    const int lane = get_local_id(0) % LANES, vec4 = get_local_id(0) / LANES;
    const int first = get_group_id(0) * SAMPLES + vec4 * VEC4;
    __global const float4 *w = (__global const float4 *)AT(packed) + lane;
    float4 c[BLOCKS];
#pragma unroll
    for (int block = 0; block < BLOCKS; ++block) c[block] = (float4)(0.0f);

    for (int t = 0; t < length; ++t) {
        __local const float4 *now = state[t & 1] + vec4;
#pragma unroll
        for (int block = 0; block < BLOCKS; ++block) {
            const int unit = block * LANES + lane;
            float4 x[VEC4], sum[VEC4];
#pragma unroll
            for (int i = 0; i < VEC4; ++i) {
                x[i] = sum[i] = (float4)(0.0f);
                /* other work-items may be overwriting other products */
                if (first + i < batch && unit < HIDDEN)
                    x[i] = load_gates(AT(products) + ((long)(first + i) * length + t) * 4 * HIDDEN + unit);
            }
            for (int k = 0; k < (t ? HIDDEN : 0); ++k) {
                const float4 weight = w[k * PADDED + block * LANES], before = now[k * VEC4S_PER_GROUP];
#pragma unroll
                for (int i = 0; i < VEC4; ++i) sum[i] = fma((float4)(SAMPLE(before, i)), weight, sum[i]);
            }
            float4 out;
#pragma unroll
            for (int i = 0; i < VEC4; ++i) x[i] = gates_of(x[i] + sum[i]);
            c[block] = fma((float4)(x[0].y, x[1].y, x[2].y, x[3].y), c[block],
                           (float4)(x[0].x, x[1].x, x[2].x, x[3].x) * (float4)(x[0].z, x[1].z, x[2].z, x[3].z));
            out = (float4)(x[0].w, x[1].w, x[2].w, x[3].w) * tanh_of(c[block]);
            state[1 - (t & 1)][unit * VEC4S_PER_GROUP + vec4] = out;
#pragma unroll
            for (int i = 0; i < VEC4; ++i) {
                const long at = (long)(first + i) * length + t;
                if (first + i >= batch || unit >= HIDDEN) continue;
                store_gates(x[i], AT(gates) + at * 4 * HIDDEN + unit);
                STORE(SAMPLE(c[block], i), AT(cells), at * HIDDEN + unit);
                STORE(SAMPLE(out, i), AT(h), at * HIDDEN + unit);
            }
        }
        /* h of this step is complete; the previous h may be overwritten */
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

/* dproducts T [batch, length, 4 HIDDEN] may overwrite gates in place. */
MANY_REGISTERS __kernel GROUP void lstm_gpu_backward(TENSOR(const T, dy), TENSOR(const T, gates),
                                                     TENSOR(const T, cells), TENSOR(const float, packed),
                                                     TENSOR(T, dproducts), const int batch, const int length) {
    __local float4 slopes[LANES * SAMPLES]; /* of a block of units: [unit][sample] */
    const int lane = get_local_id(0) % LANES, vec4 = get_local_id(0) / LANES;
    const int first = get_group_id(0) * SAMPLES + vec4 * VEC4;
    __global const float4 *w = (__global const float4 *)AT(packed) + lane;
    float4 dc[BLOCKS], dh[BLOCKS];
#pragma unroll
    for (int block = 0; block < BLOCKS; ++block) dc[block] = dh[block] = (float4)(0.0f);

    for (int t = length - 1; t >= 0; --t) {
        float4 sum[BLOCKS];
#pragma unroll
        for (int block = 0; block < BLOCKS; ++block) sum[block] = (float4)(0.0f);
#pragma unroll
        for (int block = 0; block < BLOCKS; ++block) {
            const int unit = block * LANES + lane;
            float carried[VEC4];
#pragma unroll
            for (int i = 0; i < VEC4; ++i) {
                const long at = (long)(first + i) * length + t;
                float4 slope = (float4)(0.0f);
                carried[i] = SAMPLE(dc[block], i);
                if (first + i < batch && unit < HIDDEN) {
                    const float c = LOAD(AT(cells), at * HIDDEN + unit);
                    const float c_prev = t ? LOAD(AT(cells), (at - 1) * HIDDEN + unit) : 0.0f;
                    slope = cell_backward(load_gates(AT(gates) + at * 4 * HIDDEN + unit), tanh_of((float4)(c)).x,
                                          c_prev, SAMPLE(dh[block], i) + LOAD(AT(dy), at * HIDDEN + unit), &carried[i]);
                    store_gates(slope, AT(dproducts) + at * 4 * HIDDEN + unit);
                }
                slopes[lane * SAMPLES + vec4 * VEC4 + i] = slope;
            }
            dc[block] = (float4)(carried[0], carried[1], carried[2], carried[3]);
            barrier(CLK_LOCAL_MEM_FENCE);
            const int units = t ? min(LANES, HIDDEN - block * LANES) : 0;
            for (int u = 0; u < units; ++u) {
                float4 slope[VEC4];
#pragma unroll
                for (int i = 0; i < VEC4; ++i) slope[i] = slopes[u * SAMPLES + vec4 * VEC4 + i];
#pragma unroll
                for (int own = 0; own < BLOCKS; ++own) {
                    const float4 weight = w[(block * LANES + u) * PADDED + own * LANES];
                    sum[own] += (float4)(dot(slope[0], weight), dot(slope[1], weight), dot(slope[2], weight),
                                         dot(slope[3], weight));
                }
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
#pragma unroll
        for (int block = 0; block < BLOCKS; ++block) dh[block] = sum[block];
    }
}

/* The weight's gradient: partial f32 [splits, 4 HIDDEN, HIDDEN]. Part s is the sum over its steps r = b *
 * length + t of dproducts[r, m] h[r - 1, n]; steps with t = 0 have no predecessor and are skipped. A group
 * computes a tile of EDGE x EDGE, a work-item EDGE^2 / WG elements of it, EDGE steps at a time. */
#define EDGE LSTM_WEIGHT_SIDE
#define OWN (EDGE * EDGE / WG)
__kernel GROUP void lstm_gpu_weight(TENSOR(const T, dproducts), TENSOR(const T, h), TENSOR(float, partial),
                                    const int steps, const int length, const int split_steps) {
    __local float left[EDGE][EDGE + 1], right[EDGE][EDGE + 1];
    const int across = (HIDDEN + EDGE - 1) / EDGE, down = (4 * HIDDEN + EDGE - 1) / EDGE;
    const int group = get_group_id(0), split = group / (across * down), lid = get_local_id(0);
    const int m0 = group / across % down * EDGE, n0 = group % across * EDGE;
    const int begin = split * split_steps, end = min(steps, begin + split_steps);
    const int column = lid % EDGE, row = lid / EDGE; /* and every WG / EDGE rows from there */
    float sum[OWN];
#pragma unroll
    for (int i = 0; i < OWN; ++i) sum[i] = 0.0f;
    for (int r0 = begin; r0 < end; r0 += EDGE) {
#pragma unroll
        for (int i = 0; i < OWN; ++i) {
            const int k = row + i * (WG / EDGE), r = r0 + k;
            const bool there = r < end && r % length != 0;
            left[k][column] =
                there && m0 + column < 4 * HIDDEN ? LOAD(AT(dproducts), (long)r * 4 * HIDDEN + m0 + column) : 0.0f;
            right[k][column] = there && n0 + column < HIDDEN ? LOAD(AT(h), (long)(r - 1) * HIDDEN + n0 + column) : 0.0f;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < EDGE; ++k) {
            const float x = right[k][column];
#pragma unroll
            for (int i = 0; i < OWN; ++i) sum[i] = fma(left[k][row + i * (WG / EDGE)], x, sum[i]);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
#pragma unroll
    for (int i = 0; i < OWN; ++i) {
        const int m = m0 + row + i * (WG / EDGE), n = n0 + column;
        if (m < 4 * HIDDEN && n < HIDDEN) AT(partial)[((long)split * 4 * HIDDEN + m) * HIDDEN + n] = sum[i];
    }
}
