/* Losses on C1' traces, each a weighted mean over the items of a chain (pairs, bonds, triples, ...):
 *
 *   term = sum_b sample_weight[b] * sum_items f / count_b
 *
 * All of them except COORDINATE are invariant to the position and orientation of the trace. All values are
 * f32. x [B, L, 3] predicted, ref [B, L, 3] reference, mask [B, L] 1 where the reference is known, lengths
 * [B], partner [B, L] or -1. Row kernels write sum and count of the items anchored at a residue to rows [2,
 * B, L]; structure_total sums them in a fixed order, or for chain items the last group (last_group.clh). The
 * gradient kernels gather, so that no two work-items write the same element. Up to four terms of chain items
 * are one launch (TERMS); each has its own rows and counts.
 *
 * Pair items, i < j, d = sqrt(|xi - xj|^2 + 1e-4), e = d - d_ref:
 *   DISTANCE    huber_1(e)                                              both known
 *   LDDT        1 - mean over c in 0.5, 1, 2, 4 of sigmoid(c - |e|)     both known, d_ref < p0
 *   CLASH       relu(p0 - d)^2 for j >= i + 2, divided by the number of residues
 * Chain items:
 *   COORDINATE  |xi - ref_i|^2 / 3
 *   BOND        relu(d - p1)^2 + relu(p0 - d)^2 of neighbours, d = sqrt(|.|^2 + eps)
 *   ANGLE       relu(p0 - cos)^2 of the angle between two adjacent bonds
 *   CHIRALITY   huber_0.2((det - det_ref) / (|a||b||c| of the reference)), where a, b, c are the steps
 *               between four residues 1, 2, 4, 8 or 16 apart
 *   BASE_PAIR   huber_1(d - p0) of paired residues */
#include "lib/common.clh"
#include "lib/last_group.clh"
#include "lib/relu.clh"
#include "lib/shared_numbers.clh"

#define PAIR_EPS 1e-4f

/* --- from rows to the term ------------------------------------------------------------------------------ */

/* Term t of the terms a to d of a launch. */
#define PICK(t, x) ((t) == 0 ? x##_a : (t) == 1 ? x##_b : (t) == 2 ? x##_c : x##_d)
#define PICK_AT(t, x) ((t) == 0 ? AT(x##_a) : (t) == 1 ? AT(x##_b) : (t) == 2 ? AT(x##_c) : AT(x##_d))
#define PICK_HAS(t, x) ((t) == 0 ? HAS(x##_a) : (t) == 1 ? HAS(x##_b) : (t) == 2 ? HAS(x##_c) : HAS(x##_d))
#define TENSORS(type, x) TENSOR(type, x##_a), TENSOR(type, x##_b), TENSOR(type, x##_c), TENSOR(type, x##_d)

/* term [1], and 1 / count of each chain (0 if it has no item) from rows [2, B, L], by one group. */
static inline void total_of_rows(__global const float *rows, __global const float *sample_weight, __global float *term,
                                 __global float *inverse, int B, int L, GROUP_SCRATCH_ARG scratch) {
    float total = 0.0f;
    for (int b = 0; b < B; ++b) {
        float sum = 0.0f, count = 0.0f;
        for (int i = get_local_id(0); i < L; i += WG) {
            sum += rows[b * L + i];
            count += rows[(B + b) * L + i];
        }
        sum = group_sum(sum, scratch);
        count = group_sum(count, scratch);
        float inverse_count = count > 0.0f ? 1.0f / count : 0.0f;
        total += sample_weight[b] * sum * inverse_count;
        if (get_local_id(0) == 0) inverse[b] = inverse_count;
    }
    if (get_local_id(0) == 0) *term = total;
}

/* Term t of a launch: rows [terms, 2, B, L], inverse [terms, B]; row `weight` of sample_weight [rows, B]. */
#define TOTAL_OF_TERM(t)                                                                                               \
    total_of_rows(AT(rows) + (ulong)(t)*2 * B * L, AT(sample_weight) + (ulong)PICK(t, weight) * B, PICK_AT(t, term),   \
                  AT(inverse) + (t)*B, B, L, scratch)

/* One group for each term. */
__kernel void structure_total(TENSOR(const float, rows), TENSOR(const float, sample_weight), TENSORS(float, term),
                              const int weight_a, const int weight_b, const int weight_c, const int weight_d,
                              TENSOR(float, inverse), const int B, const int L) {
    GROUP_SCRATCH(scratch);
    int t = get_group_id(0);
    TOTAL_OF_TERM(t);
}

/* --- pairs ---------------------------------------------------------------------------------------------- */

/* The traces as seven planes per chain: x, y, z, reference x, y, z, mask; each padded to `stride`, so that
 * vectors run along residues. */
__kernel void structure_pack(TENSOR(const float, x), TENSOR(const float, ref), TENSOR(const float, mask),
                             TENSOR(const int, lengths), TENSOR(float, planes), const int L, const int stride,
                             const int n) {
    for (int at = get_global_id(0); at < n; at += get_global_size(0)) {
        int b = at / stride, i = at % stride;
        int inside = i < min(AT(lengths)[b], L);
        __global float *plane = AT(planes) + (ulong)b * TRACE_PLANES * stride + i;
        ulong from = ((ulong)b * L + i) * 3;
        for (int c = 0; c < 3; ++c) {
            plane[c * stride] = inside ? AT(x)[from + c] : 0.0f;
            plane[(3 + c) * stride] = inside && HAS(ref) ? AT(ref)[from + c] : 0.0f;
        }
        plane[6 * stride] = inside && HAS(mask) ? AT(mask)[(ulong)b * L + i] : 0.0f;
    }
}

#if VEC == 16
#define IOTA (intv)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
#elif VEC == 8
#define IOTA (intv)(0, 1, 2, 3, 4, 5, 6, 7)
#elif VEC == 4
#define IOTA (intv)(0, 1, 2, 3)
#else
#define IOTA 0
#endif

typedef struct {
    floatv dx, dy, dz, d, e, reference, weight;
} pair_block;

/* Residue i with residues j .. j + VEC; the weight is 1 for pairs that count. */
static pair_block pair_load(__global const float *plane, int stride, int i, int j, int length, int kind, float p0) {
    pair_block p;
    p.dx = plane[i] - LOADFV(plane, j);
    p.dy = plane[stride + i] - LOADFV(plane, stride + j);
    p.dz = plane[2 * stride + i] - LOADFV(plane, 2 * stride + j);
    floatv rx = plane[3 * stride + i] - LOADFV(plane, 3 * stride + j);
    floatv ry = plane[4 * stride + i] - LOADFV(plane, 4 * stride + j);
    floatv rz = plane[5 * stride + i] - LOADFV(plane, 5 * stride + j);
    p.d = sqrt(p.dx * p.dx + p.dy * p.dy + p.dz * p.dz + PAIR_EPS);
    p.reference = sqrt(rx * rx + ry * ry + rz * rz);
    p.e = p.d - p.reference;
    intv other = (intv)(j) + IOTA;
    floatv zero = (floatv)(0.0f), one = (floatv)(1.0f);
    floatv known = plane[6 * stride + i] * LOADFV(plane, 6 * stride + j);
    intv apart = abs_diff(other, (intv)(i)) >= (uintv)(kind == LOSS_CLASH ? 2 : 1);
    if (kind == LOSS_CLASH) known = select(zero, one, other < (intv)(length));
    if (kind == LOSS_LDDT) known = select(zero, known, p.reference < (floatv)(p0));
    p.weight = select(zero, known, apart);
    return p;
}

static floatv logistic(floatv z) {
    return 1.0f / (1.0f + exp(-z));
}

static floatv pair_value(pair_block p, int kind, float p0) {
    floatv a = fabs(p.e);
    if (kind == LOSS_DISTANCE) return select(a - 0.5f, 0.5f * p.e * p.e, a < (floatv)(1.0f));
    if (kind == LOSS_LDDT)
        return 1.0f - 0.25f * (logistic(0.5f - a) + logistic(1.0f - a) + logistic(2.0f - a) + logistic(4.0f - a));
    floatv overlap = relu_of(p0 - p.d);
    return 0.5f * overlap * overlap; /* every pair occurs twice */
}

static floatv logistic_slope(floatv z) {
    floatv s = logistic(z);
    return s * (1.0f - s);
}

/* d value / d d. */
static floatv pair_slope(pair_block p, int kind, float p0) {
    floatv a = fabs(p.e);
    if (kind == LOSS_DISTANCE) return select(p.e, copysign((floatv)(1.0f), p.e), a >= (floatv)(1.0f));
    if (kind == LOSS_LDDT) {
        floatv slope = 0.25f * (logistic_slope(0.5f - a) + logistic_slope(1.0f - a) + logistic_slope(2.0f - a) +
                                logistic_slope(4.0f - a));
        return copysign(slope, p.e);
    }
    return -relu_of(p0 - p.d);
}

/* One group per residue. */
__kernel void structure_pair_rows(TENSOR(const float, planes), TENSOR(const int, lengths), TENSOR(float, rows),
                                  const int L, const int stride, const int n, const int kind, const float p0) {
    GROUP_SCRATCH(scratch);
    int row = get_group_id(0), b = row / L, i = row % L;
    int length = min(AT(lengths)[b], L);
    floatv sum = (floatv)(0.0f), count = (floatv)(0.0f);
    if (i < length) {
        __global const float *plane = AT(planes) + (ulong)b * TRACE_PLANES * stride;
        for (int j = get_local_id(0) * VEC; j < length; j += WG * VEC) {
            pair_block p = pair_load(plane, stride, i, j, length, kind, p0);
            sum += p.weight * pair_value(p, kind, p0);
            count += p.weight;
        }
    }
    float total = group_sum(sumv(sum), scratch), items = group_sum(sumv(count), scratch);
    if (get_local_id(0) == 0) {
        AT(rows)[row] = total;
        AT(rows)[n + row] = kind == LOSS_CLASH ? (i < length ? 1.0f : 0.0f) : items;
    }
}

/* dx = accum + the gradient of the term. One group per residue. */
__kernel void structure_pair_grad(TENSOR(const float, planes), TENSOR(const int, lengths),
                                  TENSOR(const float, sample_weight), TENSOR(const float, inverse),
                                  TENSOR(const float, dterm), TENSOR(const float, accum), TENSOR(float, dx),
                                  const int L, const int stride, const int kind, const float p0) {
    GROUP_SCRATCH(scratch);
    int row = get_group_id(0), b = row / L, i = row % L;
    int length = min(AT(lengths)[b], L);
    floatv gx = (floatv)(0.0f), gy = (floatv)(0.0f), gz = (floatv)(0.0f);
    if (i < length) {
        __global const float *plane = AT(planes) + (ulong)b * TRACE_PLANES * stride;
        for (int j = get_local_id(0) * VEC; j < length; j += WG * VEC) {
            pair_block p = pair_load(plane, stride, i, j, length, kind, p0);
            floatv pull = p.weight * pair_slope(p, kind, p0) / p.d;
            gx += pull * p.dx;
            gy += pull * p.dy;
            gz += pull * p.dz;
        }
    }
    float sx = group_sum(sumv(gx), scratch), sy = group_sum(sumv(gy), scratch), sz = group_sum(sumv(gz), scratch);
    if (get_local_id(0) == 0) {
        /* Factor 2, because the mean counts a pair from both ends. */
        float factor = 2.0f * AT(dterm)[0] * AT(sample_weight)[b] * AT(inverse)[b];
        ulong to = (ulong)row * 3;
        AT(dx)[to] = (HAS(accum) ? AT(accum)[to] : 0.0f) + factor * sx;
        AT(dx)[to + 1] = (HAS(accum) ? AT(accum)[to + 1] : 0.0f) + factor * sy;
        AT(dx)[to + 2] = (HAS(accum) ? AT(accum)[to + 2] : 0.0f) + factor * sz;
    }
}

/* --- neighbours along the chain ------------------------------------------------------------------------- */

typedef struct {
    __global const float *x, *ref, *mask; /* of one chain */
    __global const int *partner;
    int length, kind;
    float p0, p1, eps;
} chain;

static float3 place(__global const float *p, int i) {
    return (float3)(p[3 * i], p[3 * i + 1], p[3 * i + 2]);
}

static float huber(float e, float k) {
    float a = fabs(e);
    return a < k ? e * e / (2.0f * k) : a - 0.5f * k;
}

static float huber_slope(float e, float k) {
    return fabs(e) >= k ? copysign(1.0f, e) : e / k;
}

/* max(x, 0); NaN stays NaN. */
static float above(float x) {
    return x <= 0.0f ? 0.0f : x;
}

/* An item has `members` residues, `step` apart, from i on; a base pair is anchored at its first residue. The
 * functions return whether the item exists, and set *value and *gradient, the gradient with respect to member
 * `m`. */
static int coordinate_item(chain c, int i, float *value, float3 *gradient) {
    if (c.mask[i] == 0.0f) return 0;
    float3 e = place(c.x, i) - place(c.ref, i);
    *value = dot(e, e) / 3.0f;
    *gradient = e * (2.0f / 3.0f);
    return 1;
}

static int bond_item(chain c, int i, int m, float *value, float3 *gradient) {
    if (i + 1 >= c.length) return 0;
    float3 a = place(c.x, i + 1) - place(c.x, i);
    float d = sqrt(dot(a, a) + c.eps);
    float over = above(d - c.p1), under = above(c.p0 - d);
    *value = over * over + under * under;
    *gradient = a * ((m ? 2.0f : -2.0f) * (over - under) / d);
    return 1;
}

static int angle_item(chain c, int i, int m, float *value, float3 *gradient) {
    if (i + 2 >= c.length) return 0;
    float3 a = place(c.x, i + 1) - place(c.x, i), b = place(c.x, i + 2) - place(c.x, i + 1);
    float la = sqrt(dot(a, a) + c.eps), lb = sqrt(dot(b, b) + c.eps);
    float cosine = dot(a, b) / (la * lb);
    float over = above(c.p0 - cosine);
    float3 da = (b / (la * lb) - a * (cosine / (la * la))) * (-2.0f * over);
    float3 db = (a / (la * lb) - b * (cosine / (lb * lb))) * (-2.0f * over);
    *value = over * over;
    *gradient = m == 0 ? -da : m == 1 ? da - db : db;
    return 1;
}

static float volume(__global const float *p, int i, int step, float3 *a, float3 *b, float3 *c) {
    *a = place(p, i + step) - place(p, i);
    *b = place(p, i + 2 * step) - place(p, i + step);
    *c = place(p, i + 3 * step) - place(p, i + 2 * step);
    return dot(cross(*a, *b), *c);
}

static int chirality_item(chain ch, int i, int step, int m, float *value, float3 *gradient) {
    if (i + 3 * step >= ch.length) return 0;
    if (ch.mask[i] * ch.mask[i + step] * ch.mask[i + 2 * step] * ch.mask[i + 3 * step] == 0.0f) return 0;
    float3 a, b, c;
    float reference = volume(ch.ref, i, step, &a, &b, &c);
    float size = fmax(sqrt(dot(a, a) + 1e-4f) * sqrt(dot(b, b) + 1e-4f) * sqrt(dot(c, c) + 1e-4f), 1.0f);
    float e = (volume(ch.x, i, step, &a, &b, &c) - reference) / size;
    float slope = huber_slope(e, 0.2f) / size;
    float3 da = cross(b, c), db = cross(c, a), dc = cross(a, b);
    *value = huber(e, 0.2f);
    *gradient = (m == 0 ? -da : m == 1 ? da - db : m == 2 ? db - dc : dc) * slope;
    return 1;
}

static int base_pair_item(chain c, int i, float *value, float3 *gradient) {
    int j = c.partner[i];
    if (j < 0 || j >= c.length) return 0;
    float3 a = place(c.x, i) - place(c.x, j);
    float d = sqrt(dot(a, a) + PAIR_EPS), e = d - c.p0;
    *value = 0.5f * huber(e, 1.0f); /* occurs from both ends */
    *gradient = a * (huber_slope(e, 1.0f) / d);
    return 1;
}

static chain chain_of(TENSOR(const float, x), TENSOR(const float, ref), TENSOR(const float, mask),
                      TENSOR(const int, lengths), TENSOR(const int, partner), int b, int L, int kind, float p0,
                      float p1, float eps) {
    chain c = {AT(x) + (ulong)b * L * 3,
               AT(ref) + (HAS(ref) ? (ulong)b * L * 3 : 0),
               AT(mask) + (HAS(mask) ? (ulong)b * L : 0),
               AT(partner) + (HAS(partner) ? (ulong)b * L : 0),
               min(AT(lengths)[b], L),
               kind,
               p0,
               p1,
               eps};
    return c;
}

/* The item anchored at i. */
static int chain_item(chain c, int i, int step, int m, float *value, float3 *gradient) {
    if (i < 0 || i >= c.length) return 0;
    if (c.kind == LOSS_COORDINATE) return coordinate_item(c, i, value, gradient);
    if (c.kind == LOSS_BOND) return bond_item(c, i, m, value, gradient);
    if (c.kind == LOSS_ANGLE) return angle_item(c, i, m, value, gradient);
    if (c.kind == LOSS_CHIRALITY) return chirality_item(c, i, step, m, value, gradient);
    return base_pair_item(c, i, value, gradient);
}

static int members_of(int kind) {
    return kind == LOSS_BOND ? 2 : kind == LOSS_ANGLE ? 3 : kind == LOSS_CHIRALITY ? 4 : 1;
}

#define CHAIN_ARGUMENTS                                                                                                \
    TENSOR(const float, x), TENSOR(const float, ref), TENSOR(const float, mask), TENSOR(const int, lengths),           \
        TENSOR(const int, partner)
#define TERM(t) const int weight_##t, const int kind_##t, const float p0_##t, const float p1_##t, const float eps_##t
#define TERMS const int terms, TERM(a), TERM(b), TERM(c), TERM(d), const int B, const int L
#define CHAIN_OF(b, t)                                                                                                 \
    chain_of(x_slab, x_offset, ref_slab, ref_offset, mask_slab, mask_offset, lengths_slab, lengths_offset,             \
             partner_slab, partner_offset, b, L, PICK(t, kind), PICK(t, p0), PICK(t, p1), PICK(t, eps))

static int last_step_of(int kind) {
    return kind == LOSS_CHIRALITY ? 16 : 1;
}

__kernel void structure_chain_rows(CHAIN_ARGUMENTS, TERMS, TENSOR(float, rows), TENSOR(const float, sample_weight),
                                   TENSORS(float, term), TENSOR(float, inverse), TENSOR(int, counters)) {
#if LAST_GROUP
    GROUP_SCRATCH(scratch);
    __local int before;
#endif
    int n = B * L;
    for (int at = get_global_id(0); at < terms * n; at += get_global_size(0)) {
        int t = at / n, row = at - t * n;
        chain c = CHAIN_OF(row / L, t);
        float sum = 0.0f, count = 0.0f;
        for (int step = 1; step <= last_step_of(c.kind); step *= 2) {
            float value;
            float3 gradient;
            if (!chain_item(c, row % L, step, 0, &value, &gradient)) continue;
            sum += value;
            count += c.kind == LOSS_BASE_PAIR ? 0.5f : 1.0f;
        }
        __global float *to = AT(rows) + (ulong)t * 2 * n;
        to[row] = sum;
        to[n + row] = count;
    }
#if LAST_GROUP
    if (HAS(counters) && is_last_group(AT(counters), get_num_groups(0), &before))
        for (int t = 0; t < terms; ++t) TOTAL_OF_TERM(t);
#endif
}

/* The gradient of one term: residue i is member m of the item anchored at i - m * step. */
static float3 chain_gradient(chain c, int i) {
    float3 sum = (float3)(0.0f);
    for (int step = 1; step <= last_step_of(c.kind) && i < c.length; step *= 2)
        for (int m = 0; m < members_of(c.kind); ++m) {
            float value;
            float3 gradient;
            if (chain_item(c, i - m * step, step, m, &value, &gradient)) sum += gradient;
        }
    return sum;
}

/* dx = accum + the gradients of the terms. inverse [terms, B]. */
__kernel void structure_chain_grad(CHAIN_ARGUMENTS, TERMS, TENSOR(const float, sample_weight),
                                   TENSOR(const float, inverse), TENSORS(const float, dterm),
                                   TENSOR(const float, accum), TENSOR(float, dx)) {
    for (int row = get_global_id(0); row < B * L; row += get_global_size(0)) {
        int b = row / L, i = row % L;
        ulong to = (ulong)row * 3;
        float3 sum = HAS(accum) ? place(AT(accum) + to, 0) : (float3)(0.0f);
        for (int t = 0; t < terms; ++t) {
            if (!PICK_HAS(t, dterm)) continue;
            float factor = PICK_AT(t, dterm)[0] * AT(sample_weight)[PICK(t, weight) * B + b] * AT(inverse)[t * B + b];
            sum += factor * chain_gradient(CHAIN_OF(b, t), i);
        }
        AT(dx)[to] = sum.x;
        AT(dx)[to + 1] = sum.y;
        AT(dx)[to + 2] = sum.z;
    }
}
