/* Frame-aligned point error of a C1' trace whose residues have frames (Jumper et al. 2021, supplement 1.9.2).
 *
 * It compares the positions of all residues as seen from the frame of each residue with those of the
 * reference. Unlike distances it distinguishes a trace from its mirror image.
 *
 *   reference frame F_i, from three neighbours: a = y_i - y_{i-1}, b = y_{i+1} - y_i, e1 = unit(a + b),
 *   e3 = unit(a x b), e2 = e3 x e1, F_i = [e1 e2 e3] C, with C such that F equals the chain's own frame on an
 *   ideal A-form helix; F_i exists where all three are known
 *   p = x_j - x_i,  u = R_i^T p - F_i^T (y_j - y_i),  q = sqrt(|u|^2 + 0.01),  w = 10 / (10 + |y_j - y_i|)
 *   mean of w q over residues i with a frame and known atoms j
 *
 * With a = w u / q: dx_j += R_i a, dx_i -= R_i a, dR_i += p a^T. A residue gathers both of its contributions,
 * as frame and as atom. structure_total (structure_loss.cl) computes the term from the rows. */
#include "lib/common.clh"
#include "lib/shared_numbers.clh"

/* Planes of a chain, each `stride` long, so that vectors run along residues. */
#define X 0      /* 3: x */
#define Y 3      /* 3: reference */
#define MASK 6   /* 1 where the reference is known */
#define FRAMED 7 /* 1 where F exists */
#define R 8      /* 9: R, row by row */
#define F 17     /* 9: F, row by row */

#define SOFT 0.01f
#define NEAR 10.0f

static float3 place_of_atom(__global const float *p, int i) {
    return (float3)(p[3 * i], p[3 * i + 1], p[3 * i + 2]);
}

/* F at residue i, whose neighbours are known, row by row. */
static void reference_frame(__global const float *y, int i, float out[9]) {
    float3 a = place_of_atom(y, i) - place_of_atom(y, i - 1), b = place_of_atom(y, i + 1) - place_of_atom(y, i);
    float3 along = a + b, across = cross(a, b);
    float3 e1 = along * rsqrt(dot(along, along) + 1e-12f), e3 = across * rsqrt(dot(across, across) + 1e-12f);
    float3 e2 = cross(e3, e1);
    /* [e1 e2 e3] C, column by column */
    float3 c0 = -e2, c1 = 0.86336813f * e1 - 0.50457454f * e3, c2 = 0.50457454f * e1 + 0.86336813f * e3;
    out[0] = c0.x, out[1] = c1.x, out[2] = c2.x;
    out[3] = c0.y, out[4] = c1.y, out[5] = c2.y;
    out[6] = c0.z, out[7] = c1.z, out[8] = c2.z;
}

__kernel void frame_loss_pack(TENSOR(const float, x), TENSOR(const float, frames), TENSOR(const float, ref),
                              TENSOR(const float, mask), TENSOR(const int, lengths), TENSOR(float, planes), const int L,
                              const int stride, const int n) {
    for (int at = get_global_id(0); at < n; at += get_global_size(0)) {
        int b = at / stride, i = at % stride, length = min(AT(lengths)[b], L);
        ulong first = (ulong)b * L;
        __global float *plane = AT(planes) + (ulong)b * FRAME_PLANES * stride + i;
        __global const float *known = AT(mask) + first, *y = AT(ref) + first * 3;
        int inside = i < length;
        int framed = i > 0 && i + 1 < length && known[i - 1] != 0.0f && known[i] != 0.0f && known[i + 1] != 0.0f;
        float f[9] = {0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f};
        if (framed) reference_frame(y, i, f);
#pragma unroll
        for (int c = 0; c < 3; ++c) {
            plane[(X + c) * stride] = inside ? AT(x)[(first + i) * 3 + c] : 0.0f;
            plane[(Y + c) * stride] = inside ? y[3 * i + c] : 0.0f;
        }
        plane[MASK * stride] = inside ? known[i] : 0.0f;
        plane[FRAMED * stride] = framed ? 1.0f : 0.0f;
#pragma unroll
        for (int c = 0; c < 9; ++c) {
            plane[(R + c) * stride] = inside ? AT(frames)[(first + i) * 9 + c] : 0.0f;
            plane[(F + c) * stride] = f[c];
        }
    }
}

#define ONE(c) ((floatv)(plane[(c)*stride + i]))
#define MANY(c) LOADFV(plane, (c)*stride + j)

typedef struct {
    floatv px, py, pz; /* p */
    floatv ax, ay, az; /* a = w u / q, or 0 where the pair does not count */
    floatv value;      /* w q */
} frame_block;

/* Computes u from the rows of R and F, p and the reference's v; then a and the value. */
#define FRAME_BLOCK(block, FRAME, weight)                                                                              \
    do {                                                                                                               \
        floatv ux = FRAME(R) * block.px + FRAME(R + 3) * block.py + FRAME(R + 6) * block.pz -                          \
                    (FRAME(F) * vx + FRAME(F + 3) * vy + FRAME(F + 6) * vz);                                           \
        floatv uy = FRAME(R + 1) * block.px + FRAME(R + 4) * block.py + FRAME(R + 7) * block.pz -                      \
                    (FRAME(F + 1) * vx + FRAME(F + 4) * vy + FRAME(F + 7) * vz);                                       \
        floatv uz = FRAME(R + 2) * block.px + FRAME(R + 5) * block.py + FRAME(R + 8) * block.pz -                      \
                    (FRAME(F + 2) * vx + FRAME(F + 5) * vy + FRAME(F + 8) * vz);                                       \
        floatv q = sqrt(ux * ux + uy * uy + uz * uz + SOFT);                                                           \
        floatv w = (weight)*NEAR / (NEAR + sqrt(vx * vx + vy * vy + vz * vz));                                         \
        block.value = w * q;                                                                                           \
        w /= q;                                                                                                        \
        block.ax = w * ux;                                                                                             \
        block.ay = w * uy;                                                                                             \
        block.az = w * uz;                                                                                             \
    } while (0)

/* Atoms j .. j + VEC as seen from residue i's frame. */
static frame_block seen_from(__global const float *plane, int stride, int i, int j) {
    frame_block s;
    s.px = MANY(X) - ONE(X), s.py = MANY(X + 1) - ONE(X + 1), s.pz = MANY(X + 2) - ONE(X + 2);
    floatv vx = MANY(Y) - ONE(Y), vy = MANY(Y + 1) - ONE(Y + 1), vz = MANY(Y + 2) - ONE(Y + 2);
    FRAME_BLOCK(s, ONE, ONE(FRAMED) * MANY(MASK));
    return s;
}

/* Atom i as seen from frames j .. j + VEC. */
static frame_block seen_by(__global const float *plane, int stride, int i, int j) {
    frame_block s;
    s.px = ONE(X) - MANY(X), s.py = ONE(X + 1) - MANY(X + 1), s.pz = ONE(X + 2) - MANY(X + 2);
    floatv vx = ONE(Y) - MANY(Y), vy = ONE(Y + 1) - MANY(Y + 1), vz = ONE(Y + 2) - MANY(Y + 2);
    FRAME_BLOCK(s, MANY, MANY(FRAMED) * ONE(MASK));
    return s;
}

/* Sum and number of the pairs seen from each residue. One group per residue. */
__kernel void frame_loss_rows(TENSOR(const float, planes), TENSOR(const int, lengths), TENSOR(float, rows), const int L,
                              const int stride, const int n) {
    GROUP_SCRATCH(scratch);
    int row = get_group_id(0), b = row / L, i = row % L, length = min(AT(lengths)[b], L);
    __global const float *plane = AT(planes) + (ulong)b * FRAME_PLANES * stride;
    floatv sum = (floatv)(0.0f), count = (floatv)(0.0f);
    if (i < length && plane[FRAMED * stride + i] != 0.0f)
        for (int j = get_local_id(0) * VEC; j < length; j += WG * VEC) {
            frame_block s = seen_from(plane, stride, i, j);
            sum += s.value;
            count += MANY(MASK);
        }
    float total = group_sum(sumv(sum), scratch), items = group_sum(sumv(count), scratch);
    if (get_local_id(0) == 0) {
        AT(rows)[row] = total;
        AT(rows)[n + row] = items;
    }
}

/* dx = accum + gradient, dframes = rigid_frames_accum + gradient; either may be absent. One group per
 * residue. */
__kernel void frame_loss_grad(TENSOR(const float, planes), TENSOR(const int, lengths),
                              TENSOR(const float, sample_weight), TENSOR(const float, inverse),
                              TENSOR(const float, dterm), TENSOR(const float, accum),
                              TENSOR(const float, rigid_frames_accum), TENSOR(float, dx), TENSOR(float, dframes),
                              const int L, const int stride) {
    GROUP_SCRATCH(scratch);
    int row = get_group_id(0), b = row / L, i = row % L, length = min(AT(lengths)[b], L);
    __global const float *plane = AT(planes) + (ulong)b * FRAME_PLANES * stride;
    floatv turn[9], look[3], pull[3];
#pragma unroll
    for (int k = 0; k < 9; ++k) turn[k] = (floatv)(0.0f);
#pragma unroll
    for (int k = 0; k < 3; ++k) look[k] = pull[k] = (floatv)(0.0f);
    if (i < length)
        for (int j = get_local_id(0) * VEC; j < length; j += WG * VEC) {
            frame_block s = seen_from(plane, stride, i, j);
            look[0] += s.ax, look[1] += s.ay, look[2] += s.az;
            turn[0] += s.px * s.ax, turn[1] += s.px * s.ay, turn[2] += s.px * s.az;
            turn[3] += s.py * s.ax, turn[4] += s.py * s.ay, turn[5] += s.py * s.az;
            turn[6] += s.pz * s.ax, turn[7] += s.pz * s.ay, turn[8] += s.pz * s.az;
            s = seen_by(plane, stride, i, j);
            pull[0] += MANY(R) * s.ax + MANY(R + 1) * s.ay + MANY(R + 2) * s.az;
            pull[1] += MANY(R + 3) * s.ax + MANY(R + 4) * s.ay + MANY(R + 5) * s.az;
            pull[2] += MANY(R + 6) * s.ax + MANY(R + 7) * s.ay + MANY(R + 8) * s.az;
        }
    float factor = AT(dterm)[0] * AT(sample_weight)[b] * AT(inverse)[b], a[3];
#pragma unroll
    for (int k = 0; k < 3; ++k) a[k] = group_sum(sumv(look[k]), scratch);
#pragma unroll
    for (int k = 0; k < 3; ++k) {
        float own = plane[(R + 3 * k) * stride + i] * a[0] + plane[(R + 3 * k + 1) * stride + i] * a[1] +
                    plane[(R + 3 * k + 2) * stride + i] * a[2];
        float sum = group_sum(sumv(pull[k]), scratch) - own;
        ulong to = (ulong)row * 3 + k;
        if (get_local_id(0) == 0 && HAS(dx)) AT(dx)[to] = (HAS(accum) ? AT(accum)[to] : 0.0f) + factor * sum;
    }
#pragma unroll
    for (int k = 0; k < 9; ++k) {
        float sum = group_sum(sumv(turn[k]), scratch);
        ulong to = (ulong)row * 9 + k;
        if (get_local_id(0) == 0 && HAS(dframes))
            AT(dframes)[to] = (HAS(rigid_frames_accum) ? AT(rigid_frames_accum)[to] : 0.0f) + factor * sum;
    }
}
