/* The recurrent part of an LSTM layer on matrix units whose products can have eight columns (HAS_HALVES), f16 and bf16.
 *
 *   HIDDEN    units, a multiple of 16, at most LSTM_MMA_UNITS
 *   SAMPLES   samples of a group: 8, or 4, of which each has two of the eight columns
 *   WG        2 HIDDEN: a subgroup has 16 units
 *
 * A group processes all steps of its samples. It reads the weight once: as operands A, which stay in registers, HIDDEN of
 * them a work-item. Only the operand B, which is h in the forward pass and the gradients of the gates' pre-activations in
 * the backward pass, goes through local memory; it has two buffers, so that a step has one barrier. h and the gradients are
 * rounded to T there, as they are in their tensors. c, its gradient and all sums are f32.
 *
 * A lane has the sums of all gates of the same cells, so that cells need no exchange: a product has the rows of one gate.
 * Row r of a product is unit 2 r of its subgroup's for r < 8, and unit 2 (r - 8) + 1 from there on: the two rows of a lane
 * are neighbours in memory, a pair that is loaded and stored as a uint. What a step reads is loaded one step ahead. */
#include "lib/common.clh"
#include "lib/mma.clh"
#include "lib/mma_rows.clh"
#include "lstm/lstm.clh"

#ifndef HIDDEN
#define HIDDEN 32
#endif
#ifndef SAMPLES
#define SAMPLES 8
#endif
#define BLOCKS (HIDDEN / 16)
#define OWN (SAMPLES / 4)     /* samples of a lane: sums s and s + 2 are those of sample s */
#define COLUMNS (8 / SAMPLES) /* of a sample */
#define ROW_OF(unit) ((unit) / 16 * 16 + (unit) % 2 * 8 + (unit) % 16 / 2)

/* A pair of T as floats. */
static inline float2 pair_of(uint bits) {
#ifdef STORAGE_F16
    return vload_half2(0, (const half *)&bits);
#else
    return (float2)(as_float(bits << 16), as_float(bits & 0xffff0000u));
#endif
}
static inline uint bits_of_pair(float2 x) {
    return matrix_pack(x.x, x.y);
}
static inline float2 sigmoid_of_pair(float2 x) {
    x *= -0x1.715476p+0f;
    return (float2)(matrix_recip(1.0f + matrix_exp2(x.x)), matrix_recip(1.0f + matrix_exp2(x.y)));
}
static inline float2 tanh_of_pair(float2 x) {
    const float2 s = sigmoid_of_pair(2.0f * x);
    return tanh_with((float4)(x, x), (float4)(s, s)).lo;
}

/* The first of a lane's two units, and its sample s. */
#define UNIT (16 * MMA_SUBGROUP + 2 * C_ROW(0))
#define SAMPLE(s) ((int)get_group_id(0) * SAMPLES + (C_COLUMN(0) + (s)) / COLUMNS)
#define PAIR(p, i) (*(__global uint *)((p) + (i)))
#define CONST_PAIR(p, i) (*(__global const uint *)((p) + (i)))

/* The operand B in local memory: rows are columns, and columns are k. A block of 16 k is in rows 0 to 7 or, the other half of
 * the operand that a load brings, in rows 8 to 15. */
#define OPERAND(pairs) (16 * LINE(pairs))
#define LINE(pairs) (16 * (pairs) + 8)
/* Stores the pair of own sample s, which are k of the block `half_of_b` of pair `pair`. */
INLINED void store_operand(__local ushort *b, int line, int pair, int half_of_b, int s, uint bits) {
#pragma unroll
    for (int column = 0; column < COLUMNS; ++column)
        *(__local ushort2 *)(b + (C_COLUMN(0) + s + column + 8 * half_of_b) * line + 16 * pair + UNIT % 16) =
            as_ushort2(bits);
}

/* --- forward: products A B with A = rows of the weight, B = h of the step before ------------------------------- */

#define UNIT_PAIRS ((BLOCKS + 1) / 2)
#define A_LINE 24
#define FORWARD_PANEL (4 * HIDDEN * A_LINE)

/* Products of a step of the lane's cells; zeros from the last step, and the last sample, on: other work-items may be
 * overwriting other products. */
INLINED void load_products(uint *x, __global const T *products, int sample, int batch, int t, int length, int unit) {
    products += ((long)sample * length + t) * 4 * HIDDEN + unit;
#pragma unroll
    for (int gate = 0; gate < 4; ++gate)
        x[gate] = sample < batch && t < length ? CONST_PAIR(products, gate * HIDDEN) : 0;
}
/* Gates, c and h of step `at`. */
INLINED void store_cells(const uint *x, __global T *gates, __global T *cells, __global T *h, long at, int unit) {
#pragma unroll
    for (int gate = 0; gate < 4; ++gate) PAIR(gates, at * 4 * HIDDEN + gate * HIDDEN + unit) = x[gate];
    PAIR(cells, at * HIDDEN + unit) = x[4];
    PAIR(h, at * HIDDEN + unit) = x[5];
}

/* products T [batch, length, 4 HIDDEN]; gates may overwrite it in place. weight T [4 HIDDEN, HIDDEN]. h, cells T
 * [batch, length, HIDDEN]. */
MATRIX_KERNEL __kernel void lstm_mma_forward(TENSOR(const T, products), TENSOR(const T, weight), TENSOR(T, gates),
                                             TENSOR(T, h), TENSOR(T, cells), const int batch, const int length) {
    MATRIX_SCRATCH(scratch);
    __local ushort panel_memory[FORWARD_PANEL] __attribute__((aligned(16)));
    __local ushort state_memory[2 * OPERAND(UNIT_PAIRS)] __attribute__((aligned(16)));
    __local ushort *panel = HIDDEN_LOCAL(panel_memory), *state = HIDDEN_LOCAL(state_memory);
    const int lid = get_local_id(0), unit = UNIT;
#if BLOCKS % 2 /* the last half of the operand is read, and not used */
    for (int i = lid; i < 2 * OPERAND(UNIT_PAIRS); i += WG) state[i] = 0;
#endif

    matrix_a w[4][BLOCKS];
    UNROLLED
    for (int block = 0; block < BLOCKS; ++block) {
#pragma unroll
        for (int i = lid; i < 8 * HIDDEN; i += WG)
            *(__local ushort8 *)(panel + ROW_OF(i / 2) * A_LINE + i % 2 * 8) =
                *(__global const ushort8 *)(AT(weight) + i / 2 * HIDDEN + block * 16 + i % 2 * 8);
        barrier(CLK_LOCAL_MEM_FENCE); /* the block is complete */
        UNROLLED
        for (int gate = 0; gate < 4; ++gate)
            matrix_load_a(w[gate][block], panel + (gate * HIDDEN + 16 * MMA_SUBGROUP) * A_LINE, A_LINE);
        barrier(CLK_LOCAL_MEM_FENCE); /* the block is no longer read */
    }

    float2 c[OWN] = {(float2)(0.0f)};
    uint ahead[OWN][4], out[OWN][6];
#pragma unroll
    for (int s = 0; s < OWN; ++s) load_products(ahead[s], AT(products), SAMPLE(s), batch, 0, length, unit);
    for (int t = 0; t < length; ++t) {
        __local const ushort *before = state + (t & 1) * OPERAND(UNIT_PAIRS);
        __local ushort *after = state + (1 - (t & 1)) * OPERAND(UNIT_PAIRS);
        matrix_c sum[4];
#pragma unroll
        for (int gate = 0; gate < 4; ++gate) matrix_zero(sum[gate]);
        if (t > 0) {
            UNROLLED
            for (int block = 0; block < BLOCKS; block += 2) {
                matrix_b b;
                matrix_load_bt(b, before + block * 8, LINE(UNIT_PAIRS));
                UNROLLED
                for (int gate = 0; gate < 4; ++gate) matrix_mad_half(sum[gate], w[gate][block], b, 0, scratch);
                if (block + 1 < BLOCKS) {
                    UNROLLED
                    for (int gate = 0; gate < 4; ++gate) matrix_mad_half(sum[gate], w[gate][block + 1], b, 1, scratch);
                }
            }
        }
#pragma unroll
        for (int s = 0; s < OWN; ++s) {
            float2 x[4];
#pragma unroll
            for (int gate = 0; gate < 4; ++gate)
                x[gate] = pair_of(ahead[s][gate]) + (float2)(sum[gate].x[s], sum[gate].x[s + 2]);
            if (t > 0 && SAMPLE(s) < batch)
                store_cells(out[s], AT(gates), AT(cells), AT(h), (long)SAMPLE(s) * length + t - 1, unit);
            load_products(ahead[s], AT(products), SAMPLE(s), batch, t + 1, length, unit);
#pragma unroll
            for (int gate = 0; gate < 4; ++gate) {
                x[gate] = gate == 2 ? tanh_of_pair(x[gate]) : sigmoid_of_pair(x[gate]);
                out[s][gate] = bits_of_pair(x[gate]);
            }
            c[s] = fma(x[1], c[s], x[0] * x[2]);
            out[s][4] = bits_of_pair(c[s]);
            out[s][5] = bits_of_pair(x[3] * tanh_of_pair(c[s]));
            store_operand(after, LINE(UNIT_PAIRS), MMA_SUBGROUP / 2, MMA_SUBGROUP % 2, s, out[s][5]);
        }
        barrier(CLK_LOCAL_MEM_FENCE); /* h of this step is complete, and the one before no longer read */
    }
#pragma unroll
    for (int s = 0; s < OWN; ++s)
        if (SAMPLE(s) < batch)
            store_cells(out[s], AT(gates), AT(cells), AT(h), (long)SAMPLE(s) * length + length - 1, unit);
}

/* --- backward: products A B with A = columns of the weight, B = gradients of the step after ---------------------- */

#define BACKWARD_PANEL (64 * (HIDDEN + 8))
#define BACKWARD_MEMORY (BACKWARD_PANEL > 2 * OPERAND(2 * BLOCKS) ? BACKWARD_PANEL : 2 * OPERAND(2 * BLOCKS))

/* What a step reads of the lane's cells: the gates, the gradient that arrives, c of the step before. Zeros before the first step. */
INLINED void load_step(uint *x, __global const T *gates, __global const T *dy, __global const T *cells, int sample,
                       int batch, int t, int length, int unit) {
    const long at = (long)sample * length + t;
    const bool there = sample < batch && t >= 0;
#pragma unroll
    for (int gate = 0; gate < 4; ++gate)
        x[gate] = there ? CONST_PAIR(gates, at * 4 * HIDDEN + gate * HIDDEN + unit) : 0;
    x[4] = there ? CONST_PAIR(dy, at * HIDDEN + unit) : 0;
    x[5] = there && t > 0 ? CONST_PAIR(cells, (at - 1) * HIDDEN + unit) : 0;
}
INLINED void store_slopes(const uint *x, __global T *dproducts, long at, int unit) {
#pragma unroll
    for (int gate = 0; gate < 4; ++gate) PAIR(dproducts, at * 4 * HIDDEN + gate * HIDDEN + unit) = x[gate];
}

/* dproducts T [batch, length, 4 HIDDEN] may overwrite gates in place. */
MATRIX_KERNEL __kernel void lstm_mma_backward(TENSOR(const T, dy), TENSOR(const T, gates), TENSOR(const T, cells),
                                              TENSOR(const T, weight), TENSOR(T, dproducts), const int batch,
                                              const int length) {
    MATRIX_SCRATCH(scratch);
    __local ushort memory[BACKWARD_MEMORY] __attribute__((aligned(16))); /* of the panel, then of the operand */
    __local ushort *panel = HIDDEN_LOCAL(memory);
    const int lid = get_local_id(0), unit = UNIT;

    matrix_a w[4][BLOCKS];
    UNROLLED
    for (int block = 0; block < BLOCKS; ++block) {
#pragma unroll
        for (int i = lid; i < 8 * HIDDEN; i += WG) {
            const int row = i / (HIDDEN / 8), column = i % (HIDDEN / 8) * 8;
            const ushort8 v =
                *(__global const ushort8 *)(AT(weight) + (row / 16 * HIDDEN + block * 16 + row % 16) * HIDDEN + column);
            __local ushort *to = panel + row * (HIDDEN + 8) + ROW_OF(column);
            *(__local ushort4 *)to = v.even;
            *(__local ushort4 *)(to + 8) = v.odd;
        }
        barrier(CLK_LOCAL_MEM_FENCE); /* the block is complete */
        UNROLLED
        for (int gate = 0; gate < 4; ++gate)
            matrix_load_at(w[gate][block], panel + gate * 16 * (HIDDEN + 8) + 16 * MMA_SUBGROUP, HIDDEN + 8);
        barrier(CLK_LOCAL_MEM_FENCE); /* the block is no longer read */
    }

    float dc[OWN][2] = {{0.0f}};
    uint ahead[OWN][6], out[OWN][4], cell[OWN];
#pragma unroll
    for (int s = 0; s < OWN; ++s) {
        load_step(ahead[s], AT(gates), AT(dy), AT(cells), SAMPLE(s), batch, length - 1, length, unit);
        cell[s] =
            SAMPLE(s) < batch ? CONST_PAIR(AT(cells), ((long)SAMPLE(s) * length + length - 1) * HIDDEN + unit) : 0;
    }
    for (int t = length - 1; t >= 0; --t) {
        __local ushort *own = panel + (t & 1) * OPERAND(2 * BLOCKS);
        __local const ushort *after = panel + (1 - (t & 1)) * OPERAND(2 * BLOCKS);
        matrix_c sum[4]; /* of the blocks of each gate */
#pragma unroll
        for (int gate = 0; gate < 4; ++gate) matrix_zero(sum[gate]);
        if (t < length - 1) {
            UNROLLED
            for (int block = 0; block < BLOCKS; ++block) {
                UNROLLED
                for (int pair = 0; pair < 2; ++pair) {
                    matrix_b b;
                    matrix_load_bt(b, after + (2 * block + pair) * 16, LINE(2 * BLOCKS));
                    matrix_mad_half(sum[2 * pair], w[2 * pair][block], b, 0, scratch);
                    matrix_mad_half(sum[2 * pair + 1], w[2 * pair + 1][block], b, 1, scratch);
                }
            }
        }
#pragma unroll
        for (int s = 0; s < OWN; ++s) {
            float2 x[6];
            float4 slope[2];
#pragma unroll
            for (int i = 0; i < 6; ++i) x[i] = pair_of(ahead[s][i]);
            const float2 c = tanh_of_pair(pair_of(cell[s]));
            cell[s] = ahead[s][5];
            if (t < length - 1 && SAMPLE(s) < batch)
                store_slopes(out[s], AT(dproducts), (long)SAMPLE(s) * length + t + 1, unit);
            load_step(ahead[s], AT(gates), AT(dy), AT(cells), SAMPLE(s), batch, t - 1, length, unit);
            x[4] += (float2)(sum[0].x[s], sum[0].x[s + 2]) + (float2)(sum[1].x[s], sum[1].x[s + 2]) +
                    ((float2)(sum[2].x[s], sum[2].x[s + 2]) + (float2)(sum[3].x[s], sum[3].x[s + 2]));
            slope[0] = cell_backward((float4)(x[0].x, x[1].x, x[2].x, x[3].x), c.x, x[5].x, x[4].x, &dc[s][0]);
            slope[1] = cell_backward((float4)(x[0].y, x[1].y, x[2].y, x[3].y), c.y, x[5].y, x[4].y, &dc[s][1]);
            out[s][0] = matrix_pack(slope[0].x, slope[1].x), out[s][1] = matrix_pack(slope[0].y, slope[1].y);
            out[s][2] = matrix_pack(slope[0].z, slope[1].z), out[s][3] = matrix_pack(slope[0].w, slope[1].w);
#pragma unroll
            for (int gate = 0; gate < 4; ++gate)
                store_operand(own, LINE(2 * BLOCKS), 2 * MMA_SUBGROUP + gate / 2, gate % 2, s, out[s][gate]);
        }
        barrier(
            CLK_LOCAL_MEM_FENCE); /* the gradients of this step are complete, and those of the step after no longer read */
    }
#pragma unroll
    for (int s = 0; s < OWN; ++s)
        if (SAMPLE(s) < batch) store_slopes(out[s], AT(dproducts), (long)SAMPLE(s) * length, unit);
}

/* --- the weight's gradient --------------------------------------------------------------------------------------- */

#define STEPS 32 /* that are summed at a time */
#define STEP_LINE (HIDDEN + 8)
#define STEP_VECTORS (STEPS * HIDDEN / 8 / WG)

typedef struct step_vectors {
    ushort8 left[STEP_VECTORS], right[STEP_VECTORS];
} step_vectors;

/* This work-item's vectors of the steps from `first` on: the gradients of a gate, and h of the steps before. The first step of
 * a sample has none; it and the steps from `end` on are zeros. */
INLINED void load_steps(step_vectors *v, __global const ushort *dproducts, __global const ushort *h, int first, int end,
                        int length) {
    const int column = (int)get_local_id(0) % (HIDDEN / 8) * 8;
#pragma unroll
    for (int i = 0; i < STEP_VECTORS; ++i) {
        const int r = first + (int)get_local_id(0) / (HIDDEN / 8) + i * (STEPS / STEP_VECTORS);
        const bool there = r < end && r % length != 0;
        v->left[i] = there ? *(__global const ushort8 *)(dproducts + (long)r * 4 * HIDDEN + column) : (ushort8)(0);
        v->right[i] = there ? *(__global const ushort8 *)(h + (long)(r - 1) * HIDDEN + column) : (ushort8)(0);
    }
}

/* partial as that of lstm_gpu_weight. A group computes the rows of one gate, of which a subgroup has 16. */
MATRIX_KERNEL __kernel void lstm_mma_weight(TENSOR(const T, dproducts), TENSOR(const T, h), TENSOR(float, partial),
                                            const int steps, const int length, const int split_steps) {
    MATRIX_SCRATCH(scratch);
    __local ushort memory[2 * STEPS * STEP_LINE] __attribute__((aligned(16)));
    __local ushort *left = HIDDEN_LOCAL(memory), *right = left + STEPS * STEP_LINE;
    const int lid = get_local_id(0), gate = get_group_id(0) % 4, split = get_group_id(0) / 4;
    const int begin = split * split_steps, end = min(steps, begin + split_steps);
    __global const ushort *rows = (__global const ushort *)AT(dproducts) + gate * HIDDEN;
    __global const ushort *columns = (__global const ushort *)AT(h);
    matrix_c sum[BLOCKS];
    step_vectors ahead;
    UNROLLED
    for (int block = 0; block < BLOCKS; ++block) matrix_zero(sum[block]);
    load_steps(&ahead, rows, columns, begin, end, length);
    for (int first = begin; first < end; first += STEPS) {
        barrier(CLK_LOCAL_MEM_FENCE); /* the steps before are no longer read */
#pragma unroll
        for (int i = 0; i < STEP_VECTORS; ++i) {
            const int at = (lid / (HIDDEN / 8) + i * (STEPS / STEP_VECTORS)) * STEP_LINE + lid % (HIDDEN / 8) * 8;
            *(__local ushort8 *)(left + at) = ahead.left[i];
            *(__local ushort8 *)(right + at) = ahead.right[i];
        }
        barrier(CLK_LOCAL_MEM_FENCE); /* the steps are complete */
        load_steps(&ahead, rows, columns, first + STEPS, end, length);
        UNROLLED
        for (int k = 0; k < STEPS; k += MATRIX_DEPTH) {
            matrix_a a;
            matrix_load_at(a, left + k * STEP_LINE + 16 * MMA_SUBGROUP, STEP_LINE);
            UNROLLED
            for (int block = 0; block < BLOCKS; ++block) {
                matrix_b b;
                matrix_load_b(b, right + k * STEP_LINE + 16 * block, STEP_LINE);
                matrix_mad(sum[block], a, b, scratch);
            }
        }
    }
    __global float *to = AT(partial) + ((long)(split * 4 + gate) * HIDDEN + 16 * MMA_SUBGROUP) * HIDDEN;
    UNROLLED
    for (int block = 0; block < BLOCKS; ++block) {
        UNROLLED
        for (int i = 0; i < C_COUNT; i += 2)
            *(__global float2 *)(to + C_ROW(i) * HIDDEN + 16 * block + C_COLUMN(i)) =
                (float2)(sum[block].x[i], sum[block].x[i + 1]);
    }
}
