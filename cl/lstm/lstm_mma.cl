/* The recurrent part of an LSTM layer on matrix units whose products can have eight columns (HAS_HALVES), f16
 * and bf16.
 *
 *   HIDDEN    units, a multiple of 16, at most 128
 *   SAMPLES   samples per group: 8, or 4 with two of the eight columns each
 *   WG        2 HIDDEN: a subgroup has 16 units
 *
 * A group processes all steps of its samples. It reads the weight once, as operands A that stay in registers: HIDDEN
 * registers of a work-item. Only the operand B, which is h in the forward pass and the gradients of the gates'
 * pre-activations in the backward pass, goes through local memory, rounded to T as it is in its tensor. It has two
 * buffers, so that a step has one barrier. c, its gradient and all sums are f32.
 *
 * A lane has the sums of all gates of the same cells, so that cells need no exchange: a product has the rows
 * of one gate. Rows r and r + 8 of a product, both held by one lane, are units 2 r and 2 r + 1 of the
 * subgroup's 16: a pair that is loaded and stored as a uint. The inputs of a step are loaded one step
 * ahead. */
#include "lib/common.clh"
#include "lib/mma.clh"
#include "lib/mma_rows.clh"
#include "lstm/lstm.clh"

#if !HAS_HALVES(MATRIX_UNIT)
#error products of this unit cannot have eight columns
#endif
#ifndef HIDDEN
#define HIDDEN 32
#endif
#ifndef SAMPLES
#define SAMPLES 8
#endif
#define BLOCKS (HIDDEN / 16)
#define COLUMNS (8 / SAMPLES) /* of a sample */
#define OWN (2 / COLUMNS)     /* samples of a lane; sums s and s + 2 are those of sample s */

/* A lane's sample s, and the first of its two units. */
#define SAMPLE(s) ((int)get_group_id(0) * SAMPLES + (C_COLUMN(0) + (s)) / COLUMNS)
#define UNIT (16 * MMA_SUBGROUP + 2 * C_ROW(0))
#define FIRST_STEP(s) ((long)SAMPLE(s) * length)
#define UNITS_OF(c, s) ((float2)((c).x[s], (c).x[(s) + 2]))

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

/* A pair of a tensor; 0 if it is not there. */
static inline uint load_pair(__global const T *p, long at, bool there) {
    return there ? *(__global const uint *)(p + at) : 0;
}
static inline void store_pair(uint bits, __global T *p, long at) {
    *(__global uint *)(p + at) = bits;
}
/* The pairs of four gates at step `at`, counted over all samples. */
INLINED void load_gates(uint *x, __global const T *p, long at, bool there) {
#pragma unroll
    for (int gate = 0; gate < 4; ++gate) x[gate] = load_pair(p, (at * 4 + gate) * HIDDEN + UNIT, there);
}
INLINED void store_gates(const uint *x, __global T *p, long at) {
#pragma unroll
    for (int gate = 0; gate < 4; ++gate) store_pair(x[gate], p, (at * 4 + gate) * HIDDEN + UNIT);
}

/* Rows of a panel: of 16 columns of all units, padded. Where units are rows or columns of a product they are
 * in its order. */
#define LINE (HIDDEN + 8)
#define IN_ORDER(unit) ((unit) / 16 * 16 + (unit) % 16 / 2 + (unit) % 2 * 8)

/* The weight [4 HIDDEN, HIDDEN] as operands A: w[gate][block] has the subgroup's units of the gate as rows,
 * and the units of the block as columns; if `across`, the subgroup's units of h as rows, and the block's
 * units of the gate as columns. */
INLINED void load_weight(matrix_a (*w)[BLOCKS], __global const ushort *weight, __local ushort *panel, bool across) {
    UNROLLED
    for (int block = 0; block < BLOCKS; ++block) {
#pragma unroll
        for (int gate = 0; gate < 4; ++gate) { /* the rows of 16 units of a gate: a vector of 8 elements a work-item */
            const int unit = (int)get_local_id(0) / (HIDDEN / 8), column = (int)get_local_id(0) % (HIDDEN / 8) * 8;
            const ushort8 v =
                *(__global const ushort8 *)(weight + (gate * HIDDEN + 16 * block + unit) * HIDDEN + column);
            __local ushort *rows = panel + 16 * gate * LINE;
            if (across) {
                *(__local ushort4 *)(rows + unit * LINE + IN_ORDER(column)) = v.even;
                *(__local ushort4 *)(rows + unit * LINE + IN_ORDER(column) + 8) = v.odd;
            } else {
                *(__local ushort8 *)(rows + IN_ORDER(unit) * LINE + column) = v;
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE); /* the block is complete */
        UNROLLED
        for (int gate = 0; gate < 4; ++gate) {
            if (across) matrix_load_at(w[gate][block], panel + 16 * gate * LINE + 16 * MMA_SUBGROUP, LINE);
            if (across || MMA_SUBGROUP != block) continue;
            UNROLLED
            for (int k = 0; k < BLOCKS; ++k) matrix_load_a(w[gate][k], panel + 16 * gate * LINE + 16 * k, LINE);
        }
        barrier(CLK_LOCAL_MEM_FENCE); /* the block is no longer read */
    }
}

/* The operand B of a step in local memory: columns are rows. Two blocks of 16 k, which a load brings
 * together, are rows 0 to 7 and 8 to 15 of the same places. */
#define B_LINE(pairs) (16 * (pairs) + 8)
#define OPERAND(pairs) (16 * B_LINE(pairs))

/* Stores the units of own sample s in the block `half_of_b` of a pair. */
INLINED void store_operand(__local ushort *b, int line, int pair, int half_of_b, int s, uint bits) {
#pragma unroll
    for (int column = s; column < s + COLUMNS; ++column)
        *(__local ushort2 *)(b + (C_COLUMN(0) + column + 8 * half_of_b) * line + 16 * pair + UNIT % 16) =
            as_ushort2(bits);
}

#define LARGER(a, b) ((a) > (b) ? (a) : (b))
#define H_PAIRS ((BLOCKS + 1) / 2)
#define GATE_PAIRS (2 * BLOCKS)

/* Gates, c and h of a step, as it stores them; gates, dy, and c of the step before, as its gradient loads them. */
INLINED void store_cells(const uint *x, __global T *gates, __global T *cells, __global T *h, long at) {
    store_gates(x, gates, at);
    store_pair(x[4], cells, at * HIDDEN + UNIT);
    store_pair(x[5], h, at * HIDDEN + UNIT);
}
INLINED void load_cells(uint *x, __global const T *gates, __global const T *dy, __global const T *cells, long at,
                        bool there, bool has_before) {
    load_gates(x, gates, at, there);
    x[4] = load_pair(dy, at * HIDDEN + UNIT, there);
    x[5] = load_pair(cells, (at - 1) * HIDDEN + UNIT, there && has_before);
}

/* products T [batch, length, 4 HIDDEN]; gates may overwrite it in place. weight T [4 HIDDEN, HIDDEN]. h, cells T
 * [batch, length, HIDDEN]. */
MATRIX_KERNEL __kernel void lstm_mma_forward(TENSOR(const T, products), TENSOR(const T, weight), TENSOR(T, gates),
                                             TENSOR(T, h), TENSOR(T, cells), const int batch, const int length) {
    MATRIX_SCRATCH(scratch);
    __local ushort memory[LARGER(64 * LINE, 2 * OPERAND(H_PAIRS))] __attribute__((aligned(16)));
    __local ushort *panel = HIDDEN_LOCAL(memory); /* of the weight, then of h */
    matrix_a w[4][BLOCKS];
    load_weight(w, (__global const ushort *)AT(weight), panel, false);
    float2 c[OWN];
    uint ahead[OWN][4], out[OWN][6]; /* products; results of the previous step, still to be stored */
#pragma unroll
    for (int s = 0; s < OWN; ++s) {
        c[s] = (float2)(0.0f);
        load_gates(ahead[s], AT(products), FIRST_STEP(s), SAMPLE(s) < batch);
        if (BLOCKS % 2 == 0 || MMA_SUBGROUP < BLOCKS - 1) continue;
        for (int i = 0; i < 2; ++i) /* the last block is loaded in a pair with one that does not exist */
            store_operand(panel + i * OPERAND(H_PAIRS), B_LINE(H_PAIRS), H_PAIRS - 1, 1, s, 0);
    }
    for (int t = 0; t < length; ++t) {
        __local const ushort *before = panel + (t & 1) * OPERAND(H_PAIRS);
        __local ushort *after = panel + (1 - (t & 1)) * OPERAND(H_PAIRS);
        matrix_c sum[4];
#pragma unroll
        for (int gate = 0; gate < 4; ++gate) matrix_zero(sum[gate]);
        if (t > 0) {
            matrix_b b; /* of two blocks */
            UNROLLED
            for (int block = 0; block < BLOCKS; ++block) {
                if (block % 2 == 0) matrix_load_bt(b, before + block * 8, B_LINE(H_PAIRS));
                UNROLLED
                for (int gate = 0; gate < 4; ++gate) matrix_mad_half(sum[gate], w[gate][block], b, block % 2, scratch);
            }
        }
        MATRIX_BEHIND;
#pragma unroll
        for (int s = 0; s < OWN; ++s) {
            const long at = FIRST_STEP(s) + t;
            float2 x[4];
#pragma unroll
            for (int gate = 0; gate < 4; ++gate) x[gate] = pair_of(ahead[s][gate]) + UNITS_OF(sum[gate], s);
            if (t > 0 && SAMPLE(s) < batch) store_cells(out[s], AT(gates), AT(cells), AT(h), at - 1);
            /* other work-items may be overwriting other products */
            load_gates(ahead[s], AT(products), at + 1, SAMPLE(s) < batch && t + 1 < length);
#pragma unroll
            for (int gate = 0; gate < 4; ++gate) {
                x[gate] = gate == 2 ? tanh_of_pair(x[gate]) : sigmoid_of_pair(x[gate]);
                out[s][gate] = bits_of_pair(x[gate]);
            }
            c[s] = fma(x[1], c[s], x[0] * x[2]);
            out[s][4] = bits_of_pair(c[s]);
            out[s][5] = bits_of_pair(x[3] * tanh_of_pair(c[s]));
            store_operand(after, B_LINE(H_PAIRS), MMA_SUBGROUP / 2, MMA_SUBGROUP % 2, s, out[s][5]);
        }
        barrier(CLK_LOCAL_MEM_FENCE); /* h of this step is complete, that of the step before no longer read */
    }
#pragma unroll
    for (int s = 0; s < OWN; ++s)
        if (SAMPLE(s) < batch) store_cells(out[s], AT(gates), AT(cells), AT(h), FIRST_STEP(s) + length - 1);
}

/* dproducts T [batch, length, 4 HIDDEN] may overwrite gates in place. */
MATRIX_KERNEL __kernel void lstm_mma_backward(TENSOR(const T, dy), TENSOR(const T, gates), TENSOR(const T, cells),
                                              TENSOR(const T, weight), TENSOR(T, dproducts), const int batch,
                                              const int length) {
    MATRIX_SCRATCH(scratch);
    __local ushort memory[LARGER(64 * LINE, 2 * OPERAND(GATE_PAIRS))] __attribute__((aligned(16)));
    __local ushort *panel = HIDDEN_LOCAL(memory); /* of the weight, then of gradients */
    matrix_a w[4][BLOCKS];
    load_weight(w, (__global const ushort *)AT(weight), panel, true);
    float dc[OWN][2];
    uint ahead[OWN][6], c[OWN], out[OWN][4]; /* gates, dy, c of the step before; gradients of the step after */
#pragma unroll
    for (int s = 0; s < OWN; ++s) {
        const long at = FIRST_STEP(s) + length - 1;
        dc[s][0] = dc[s][1] = 0.0f;
        c[s] = load_pair(AT(cells), at * HIDDEN + UNIT, SAMPLE(s) < batch);
        load_cells(ahead[s], AT(gates), AT(dy), AT(cells), at, SAMPLE(s) < batch, length > 1);
    }
    for (int t = length - 1; t >= 0; --t) {
        __local ushort *own = panel + (t & 1) * OPERAND(GATE_PAIRS);
        __local const ushort *after = panel + (1 - (t & 1)) * OPERAND(GATE_PAIRS);
        matrix_c sum[4]; /* of the blocks of each gate */
#pragma unroll
        for (int gate = 0; gate < 4; ++gate) matrix_zero(sum[gate]);
        if (t < length - 1) {
            matrix_b b; /* of two gates of a block */
            UNROLLED
            for (int i = 0; i < 4 * BLOCKS; ++i) {
                if (i % 2 == 0) matrix_load_bt(b, after + i * 8, B_LINE(GATE_PAIRS));
                matrix_mad_half(sum[i % 4], w[i % 4][i / 4], b, i % 2, scratch);
            }
        }
        MATRIX_BEHIND;
#pragma unroll
        for (int s = 0; s < OWN; ++s) {
            const long at = FIRST_STEP(s) + t;
            float2 x[6];
            float4 slope[2];
#pragma unroll
            for (int i = 0; i < 6; ++i) x[i] = pair_of(ahead[s][i]);
            const float2 tanh_c = tanh_of_pair(pair_of(c[s]));
            c[s] = ahead[s][5];
            if (t < length - 1 && SAMPLE(s) < batch) store_gates(out[s], AT(dproducts), at + 1);
            load_cells(ahead[s], AT(gates), AT(dy), AT(cells), at - 1, SAMPLE(s) < batch && t > 0, t > 1);
            x[4] += UNITS_OF(sum[0], s) + UNITS_OF(sum[1], s) + (UNITS_OF(sum[2], s) + UNITS_OF(sum[3], s));
            slope[0] = cell_backward((float4)(x[0].x, x[1].x, x[2].x, x[3].x), tanh_c.x, x[5].x, x[4].x, &dc[s][0]);
            slope[1] = cell_backward((float4)(x[0].y, x[1].y, x[2].y, x[3].y), tanh_c.y, x[5].y, x[4].y, &dc[s][1]);
            out[s][0] = matrix_pack(slope[0].x, slope[1].x), out[s][1] = matrix_pack(slope[0].y, slope[1].y);
            out[s][2] = matrix_pack(slope[0].z, slope[1].z), out[s][3] = matrix_pack(slope[0].w, slope[1].w);
#pragma unroll
            for (int gate = 0; gate < 4; ++gate)
                store_operand(own, B_LINE(GATE_PAIRS), 2 * MMA_SUBGROUP + gate / 2, gate % 2, s, out[s][gate]);
        }
        barrier(CLK_LOCAL_MEM_FENCE); /* this step is complete, the step after no longer read */
    }
#pragma unroll
    for (int s = 0; s < OWN; ++s)
        if (SAMPLE(s) < batch) store_gates(out[s], AT(dproducts), FIRST_STEP(s));
}

/* A vector of a step's row; the first step of a sample has no h before it, and steps from `end` on are not summed. */
static inline ushort8 load_row(__global const T *p, long row, int width, int end, int length, int r) {
    const bool there = r < end && r % length != 0;
    p += row * width + (int)get_local_id(0) % (HIDDEN / 8) * 8;
    return there ? *(__global const ushort8 *)p : (ushort8)(0);
}

/* The weight's gradient: partial as that of lstm_gpu_weight. A group computes the rows of one gate, 16 per
 * subgroup, and sums 16 steps at a time. */
MATRIX_KERNEL __kernel void lstm_mma_weight(TENSOR(const T, dproducts), TENSOR(const T, h), TENSOR(float, partial),
                                            const int steps, const int length, const int split_steps) {
    MATRIX_SCRATCH(scratch);
    __local ushort memory[4 * 16 * LINE] __attribute__((aligned(16))); /* two buffers of gradients and h */
    __local ushort *panel = HIDDEN_LOCAL(memory);
    const int gate = get_group_id(0) % 4, split = get_group_id(0) / 4;
    const int begin = split * split_steps, end = min(steps, begin + split_steps);
    const int row = get_local_id(0) / (HIDDEN / 8), place = row * LINE + (int)get_local_id(0) % (HIDDEN / 8) * 8;
    __global const T *slopes = AT(dproducts) + gate * HIDDEN;
    ushort8 left = load_row(slopes, begin + row, 4 * HIDDEN, end, length, begin + row);
    ushort8 right = load_row(AT(h), begin + row - 1, HIDDEN, end, length, begin + row);
    matrix_c sum[BLOCKS];
    UNROLLED
    for (int block = 0; block < BLOCKS; ++block) matrix_zero(sum[block]);
    for (int r = begin; r < end; r += 16) {
        __local ushort *now = panel + r / 16 % 2 * 32 * LINE;
        matrix_a a;
        *(__local ushort8 *)(now + place) = left;
        *(__local ushort8 *)(now + 16 * LINE + place) = right;
        barrier(CLK_LOCAL_MEM_FENCE); /* the steps are complete, those before the last no longer read */
        left = load_row(slopes, r + 16 + row, 4 * HIDDEN, end, length, r + 16 + row);
        right = load_row(AT(h), r + 15 + row, HIDDEN, end, length, r + 16 + row);
        matrix_load_at(a, now + 16 * MMA_SUBGROUP, LINE);
        UNROLLED
        for (int block = 0; block < BLOCKS; ++block) {
            matrix_b b;
            matrix_load_b(b, now + 16 * LINE + 16 * block, LINE);
            matrix_mad(sum[block], a, b, scratch);
        }
    }
    __global float *to = AT(partial) + ((long)(split * 4 + gate) * HIDDEN + 16 * MMA_SUBGROUP) * HIDDEN;
    UNROLLED
    for (int i = 0; i < BLOCKS * C_COUNT; i += 2) {
        const matrix_c c = sum[i / C_COUNT];
        *(__global float2 *)(to + C_ROW(i % C_COUNT) * HIDDEN + i / C_COUNT * 16 + C_COLUMN(i % C_COUNT)) =
            (float2)(c.x[i % C_COUNT], c.x[i % C_COUNT + 1]);
    }
}
