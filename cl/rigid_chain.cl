/* Trace of a chain from translations and rotations per residue, relative to an ideal A-form helix.
 *
 * It is a product of rigid motions along the chain:
 *
 *   t_i = t_A + o_i[0..2]          q_i = (1, 0.3 o_i[3..5]) / |.|, a rotation          (steps o [B, L, 6])
 *   x_i = x_{i-1} + R_{i-1} t_i    R_i = R_{i-1} Q_A Rot(q_i)        x_0 = 0, R_0 = 1; o_0 has no effect
 *
 * A-RNA turns 32.7 degrees and rises 2.81 Angstrom per residue (Arnott, Hukins, Dover 1972); its C1' atoms
 * are 8.9 Angstrom from the axis; R is the frame (radial, tangential, axial). Rotations are stored as 3 x 3,
 * row by row. One work-item per chain, because this takes a thousandth of a transformer's step. */
#include "lib/common.clh"

#define RADIUS 8.9f
#define RISE 2.81f
#define TWIST_COS 0.84151078f
#define TWIST_SIN 0.54024030f
#define TURN 0.3f

typedef struct {
    float3 r0, r1, r2; /* rows */
} matrix;

static float3 multiply(matrix m, float3 v) {
    return (float3)(dot(m.r0, v), dot(m.r1, v), dot(m.r2, v));
}

static float3 multiply_transposed(matrix m, float3 v) {
    return m.r0 * v.x + m.r1 * v.y + m.r2 * v.z;
}

static matrix product(matrix a, matrix b) {
    matrix c;
    c.r0 = multiply_transposed(b, a.r0);
    c.r1 = multiply_transposed(b, a.r1);
    c.r2 = multiply_transposed(b, a.r2);
    return c;
}

/* Q_A Rot(q) for the unnormalized quaternion (1, b). */
static matrix turn_of(float3 b) {
    float s = 2.0f / (1.0f + dot(b, b));
    matrix q;
    q.r0 = (float3)(1.0f - s * (b.y * b.y + b.z * b.z), s * (b.x * b.y - b.z), s * (b.x * b.z + b.y));
    q.r1 = (float3)(s * (b.x * b.y + b.z), 1.0f - s * (b.x * b.x + b.z * b.z), s * (b.y * b.z - b.x));
    q.r2 = (float3)(s * (b.x * b.z - b.y), s * (b.y * b.z + b.x), 1.0f - s * (b.x * b.x + b.y * b.y));
    matrix t;
    t.r0 = TWIST_COS * q.r0 - TWIST_SIN * q.r1;
    t.r1 = TWIST_SIN * q.r0 + TWIST_COS * q.r1;
    t.r2 = q.r2;
    return t;
}

static void store_frame(__global float *p, matrix m) {
    vstore3(m.r0, 0, p);
    vstore3(m.r1, 1, p);
    vstore3(m.r2, 2, p);
}

static matrix load_frame(__global const float *p) {
    matrix m;
    m.r0 = vload3(0, p);
    m.r1 = vload3(1, p);
    m.r2 = vload3(2, p);
    return m;
}

/* x [B, L, 3], frames [B, L, 9]; both are 0 past the end of a chain. */
__kernel void rigid_chain_forward(TENSOR(const T, steps), TENSOR(const int, lengths), TENSOR(float, x),
                                  TENSOR(float, frames), const int L) {
    int b = get_global_id(0), length = min(AT(lengths)[b], L);
    __global const T *o = AT(steps) + (ulong)b * L * 6;
    __global float *xs = AT(x) + (ulong)b * L * 3, *rs = AT(frames) + (ulong)b * L * 9;
    const float3 helix = (float3)(RADIUS * (TWIST_COS - 1.0f), RADIUS * TWIST_SIN, RISE);
    float3 at = (float3)(0.0f);
    matrix frame = {(float3)(1.0f, 0.0f, 0.0f), (float3)(0.0f, 1.0f, 0.0f), (float3)(0.0f, 0.0f, 1.0f)};
    for (int i = 0; i < length; ++i) {
        if (i) {
            float3 t = (float3)(LOAD(o, 6 * i), LOAD(o, 6 * i + 1), LOAD(o, 6 * i + 2));
            float3 turn = (float3)(LOAD(o, 6 * i + 3), LOAD(o, 6 * i + 4), LOAD(o, 6 * i + 5));
            at += multiply(frame, helix + t);
            frame = product(frame, turn_of(TURN * turn));
        }
        vstore3(at, i, xs);
        store_frame(rs + 9 * i, frame);
    }
    for (int i = length > 0 ? length : 0; i < L; ++i) {
        vstore3((float3)(0.0f), i, xs);
        for (int k = 0; k < 9; ++k) rs[9 * i + k] = 0.0f;
    }
}

/* The moment that a gradient dR exerts on a frame: the sum over columns of R[c] x dR[c]. */
static float3 moment_of(matrix frame, matrix dframe) {
    float3 m = cross((float3)(frame.r0.x, frame.r1.x, frame.r2.x), (float3)(dframe.r0.x, dframe.r1.x, dframe.r2.x));
    m += cross((float3)(frame.r0.y, frame.r1.y, frame.r2.y), (float3)(dframe.r0.y, dframe.r1.y, dframe.r2.y));
    return m + cross((float3)(frame.r0.z, frame.r1.z, frame.r2.z), (float3)(dframe.r0.z, dframe.r1.z, dframe.r2.z));
}

/* dsteps = accum + gradient, from dx [B, L, 3] and dframes [B, L, 9] (either may be absent). S_i is the sum
 * of dx from i on; M_i is the sum from i on of (x_{j+1} - x_j) x S_{j+1} and of the moments of the frames:
 *   dt_i = R_{i-1}^T S_i      db_i = 2 / (1 + |b|^2) (m + b x m),  m = R_i^T M_i */
__kernel void rigid_chain_backward(TENSOR(const T, steps), TENSOR(const int, lengths), TENSOR(const float, x),
                                   TENSOR(const float, frames), TENSOR(const float, dx), TENSOR(const float, dframes),
                                   TENSOR(const T, accum), TENSOR(T, dsteps), const int L) {
    int b = get_global_id(0), length = min(AT(lengths)[b], L);
    ulong first = (ulong)b * L;
    __global const T *o = AT(steps) + first * 6;
    __global const float *xs = AT(x) + first * 3, *rs = AT(frames) + first * 9;
    float3 force = (float3)(0.0f), moment = (float3)(0.0f);
    for (int i = L - 1; i >= 0; --i) {
        float3 dt = (float3)(0.0f), db = (float3)(0.0f);
        if (i < length) {
            if (i + 1 < length) moment += cross(vload3(i + 1, xs) - vload3(i, xs), force);
            if (HAS(dx)) force += vload3(i, AT(dx) + first * 3);
            if (HAS(dframes)) moment += moment_of(load_frame(rs + 9 * i), load_frame(AT(dframes) + (first + i) * 9));
            if (i) {
                float3 turn = TURN * (float3)(LOAD(o, 6 * i + 3), LOAD(o, 6 * i + 4), LOAD(o, 6 * i + 5));
                float3 m = multiply_transposed(load_frame(rs + 9 * i), moment);
                dt = multiply_transposed(load_frame(rs + 9 * (i - 1)), force);
                db = (m + cross(turn, m)) * (TURN * 2.0f / (1.0f + dot(turn, turn)));
            }
        }
        float out[6] = {dt.x, dt.y, dt.z, db.x, db.y, db.z};
#pragma unroll
        for (int k = 0; k < 6; ++k) {
            ulong to = (first + i) * 6 + k;
            STORE(out[k] + (HAS(accum) ? LOAD(AT(accum), to) : 0.0f), AT(dsteps), to);
        }
    }
}
