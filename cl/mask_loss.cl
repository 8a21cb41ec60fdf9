/* Loss of a binary segmentation mask: weighted binary cross entropy, focal if gamma is not 0, and Dice.
 *
 * A pixel has the logit x and the target t, 0 or 1 (any other value: unknown, contributes nothing). z = x if
 * t is 1, else -x; p = 1 / (1 + e^-z) is the probability of the target, q = 1 - p:
 *
 *   cross   = weight(t) q^gamma log(1 + e^-z),  d cross / dz = -weight(t) q^gamma (q + gamma p log(1 + e^-z))
 *   dice    = 1 - (2 sum P t + 1) / (sum P + sum t + 1),   P = 1 / (1 + e^-x)
 *
 * All terms are computed from e = exp(-|z|), which does not overflow: log(1 + e^-z) = max(-z, 0) +
 * log(1 + e), and q^gamma = exp(-gamma (max(z, 0) + log(1 + e))). */
#include "lib/common.clh"
#include "lib/runs.clh"
#include "lib/shared_numbers.clh"
#include "lib/softmax.clh"

enum { CROSS, KNOWN, BOTH, EITHER }; /* sums of cross; of known pixels; of P t; of P + t */

/* VEC of the `width` pixels of a mask; those past the end are unknown. */
static inline intv load_mask(__global const int *mask, int at, int width) {
    if (at + VEC <= width) return LOADIV(mask, at);
    int lane[VEC];
    for (int j = 0; j < VEC; ++j) lane[j] = at + j < width ? mask[at + j] : -1;
#if VEC == 1
    return lane[0];
#else
    return CAT(vload, VEC)(0, lane);
#endif
}

typedef struct pixels {
    floatv known, target;        /* 0 or 1 */
    floatv p, q, entropy, focus; /* of the target: probability, 1 - probability, log(1 + e^-z), q^gamma */
    floatv both;                 /* p q */
} pixels;

static inline pixels pixels_of(floatv x, intv mask, float gamma) {
    const floatv zero = (floatv)(0.0f), one = (floatv)(1.0f);
    pixels at;
    at.target = mask == (intv)(1) ? one : zero;
    at.known = mask == (intv)(0) ? one : at.target;
    /* An unknown pixel must not contribute, not even NaN. */
    const floatv z = mask == (intv)(1) ? x : mask == (intv)(0) ? -x : zero;
    const floatv e = exp_below(-fabs(z)), rest = log_one_plus(e), share = one / (one + e);
    const floatv less = e * share;
    at.p = z < zero ? less : share;
    at.q = z < zero ? share : less;
    at.both = less * share;
    at.entropy = larger(zero, -z) + rest;
    at.focus = gamma > 0.0f ? exp_below(-gamma * (larger(zero, z) + rest)) : one;
    return at;
}

/* partial f32 [batch, parts, MASK_SUMS]: the sums over each part of a sample's pixels. x T, mask i32 [batch, n]; a
 * part has `each` pixels, a multiple of VEC. */
MANY_REGISTERS __kernel void mask_loss_parts(TENSOR(const T, x), TENSOR(const int, mask), TENSOR(float, partial),
                                             const int batch, const int n, const int parts, const int each,
                                             const float positive, const float gamma) {
    GROUP_SCRATCH(scratch);
    for (int unit = get_group_id(0); unit < batch * parts; unit += get_num_groups(0)) {
        const ulong sample = (ulong)(unit / parts) * n;
        const int begin = unit % parts * each, end = min(begin + each, n);
        floatv sum[MASK_SUMS];
#pragma unroll
        for (int i = 0; i < MASK_SUMS; ++i) sum[i] = (floatv)(0.0f);
        for (int at = begin + (int)get_local_id(0) * VEC; at < end; at += WG * VEC) {
            const pixels here = pixels_of(run_load(AT(x) + sample, at, n), load_mask(AT(mask) + sample, at, n), gamma);
            const floatv weight = here.known * fma(here.target, (floatv)(positive - 1.0f), (floatv)(1.0f));
            const floatv chance = here.target > (floatv)(0.0f) ? here.p : here.q * here.known;
            sum[CROSS] = fma(weight * here.focus, here.entropy, sum[CROSS]);
            sum[KNOWN] += here.known;
            sum[BOTH] = fma(chance, here.target, sum[BOTH]);
            sum[EITHER] += chance + here.target;
        }
#pragma unroll
        for (int i = 0; i < MASK_SUMS; ++i) {
            const float total = group_sum(sumv(sum[i]), scratch);
            if (get_local_id(0) == 0) AT(partial)[(ulong)unit * MASK_SUMS + i] = total;
        }
    }
}

/* One group: sums f32 [batch, MASK_SUMS], and loss[0] = sum over samples of sample_weight (cross / known +
 * dice_weight dice). */
__kernel void mask_loss_total(TENSOR(const float, partial), TENSOR(const float, sample_weight), TENSOR(float, sums),
                              TENSOR(float, loss), const int batch, const int parts, const float dice_weight) {
    GROUP_SCRATCH(scratch);
    float mine = 0.0f;
    for (int b = get_local_id(0); b < batch; b += WG) {
        float sum[MASK_SUMS];
        for (int i = 0; i < MASK_SUMS; ++i) {
            sum[i] = 0.0f;
            for (int p = 0; p < parts; ++p) sum[i] += AT(partial)[((ulong)b * parts + p) * MASK_SUMS + i];
            AT(sums)[(ulong)b * MASK_SUMS + i] = sum[i];
        }
        const float dice = 1.0f - fma(2.0f, sum[BOTH], 1.0f) / (sum[EITHER] + 1.0f);
        if (sum[KNOWN] > 0.0f) mine += AT(sample_weight)[b] * fma(dice_weight, dice, sum[CROSS] / sum[KNOWN]);
    }
    mine = group_sum(mine, scratch);
    if (get_local_id(0) == 0) AT(loss)[0] = mine;
}

/* dx = accum + dloss sample_weight (dcross / known + dice_weight ddice); dx may be x or accum. */
__kernel void mask_loss_grad(TENSOR(const T, x), TENSOR(const int, mask), TENSOR(const float, sample_weight),
                             TENSOR(const float, sums), TENSOR(const float, dloss), TENSOR(const T, accum),
                             TENSOR(T, dx), const int batch, const int n, const float positive, const float gamma,
                             const float dice_weight) {
    int row = -1;
    float cross = 0.0f, inside = 0.0f, outside = 0.0f; /* factors of the pixels' own derivatives */
    FOR_RUNS(r, batch, n) {
        const ulong sample = (ulong)r.row * n;
        if (r.row != row) {
            row = r.row;
            __global const float *sum = AT(sums) + (ulong)row * MASK_SUMS;
            const float factor = AT(dloss)[0] * AT(sample_weight)[row], either = sum[EITHER] + 1.0f;
            cross = sum[KNOWN] > 0.0f ? factor / sum[KNOWN] : 0.0f;
            outside = factor * dice_weight * fma(2.0f, sum[BOTH], 1.0f) / (either * either);
            inside = outside - factor * dice_weight * 2.0f / either;
        }
        const pixels here = pixels_of(run_load(AT(x) + sample, r.at, n), load_mask(AT(mask) + sample, r.at, n), gamma);
        const floatv target = here.target, sign = fma(target, (floatv)(2.0f), (floatv)(-1.0f));
        const floatv weight = fma(target, (floatv)(positive - 1.0f), (floatv)(1.0f)) * sign;
        const floatv slope = here.focus * fma(gamma * here.p, here.entropy, here.q);
        floatv d = target > (floatv)(0.0f) ? (floatv)(inside) : (floatv)(outside);
        d = d * here.both - cross * weight * slope;
        d = here.known > (floatv)(0.0f) ? d : (floatv)(0.0f);
        if (HAS(accum)) d += run_load(AT(accum) + sample, r.at, n);
        run_store(d, AT(dx) + sample, r.at, n);
    }
}
