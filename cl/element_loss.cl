/* Losses of elements x with targets t, averaged over rows, forward and backward.
 *
 *   loss = mean over the row of f(x, t),   dx = accum + dloss sample_weight f'(x, t) / WIDTH
 *
 *   LOSS   which f: an ELEMENT_LOSS_ number of lib/shared_numbers.clh
 *
 *   MSE    (x - t)^2
 *   BCE    (1 - t) log(1 + e^x) + positive_weight t log(1 + e^-x) for logits x; 0 where t is not in [0, 1] */
#include "lib/common.clh"
#include "lib/rows.clh"
#include "lib/shared_numbers.clh"
#include "lib/softmax.clh"

#ifndef LOSS
#define LOSS ELEMENT_LOSS_MSE
#endif

/* plus_loss: sum + f(x, t); slope_of: f'(x, t). TARGET_PAST_END: the target of elements past the end of a
 * row, whose x is 0, for which both are 0. */
#if LOSS == ELEMENT_LOSS_MSE
#define TARGET_PAST_END 0.0f
static inline floatv plus_loss(floatv x, floatv t, float positive_weight, floatv sum) {
    const floatv d = x - t;
    return fma(d, d, sum);
}
static inline floatv slope_of(floatv x, floatv t, float positive_weight) {
    return 2.0f * (x - t);
}
#elif LOSS == ELEMENT_LOSS_BCE
#define TARGET_PAST_END -1.0f
static inline intv is_known(floatv t) {
    return (t >= (floatv)(0.0f)) & (t <= (floatv)(1.0f));
}
/* No term is a difference, so that none suffers cancellation; an element without a target does not contribute,
 * whatever its logit. */
static inline floatv plus_loss(floatv x, floatv t, float positive_weight, floatv sum) {
    const floatv zero = (floatv)(0.0f), rest = log_one_plus(exp_below(-fabs(x)));
    const floatv loss = (1.0f - t) * (larger(zero, x) + rest) + positive_weight * t * (larger(zero, -x) + rest);
    return sum + (is_known(t) ? loss : zero);
}
static inline floatv slope_of(floatv x, floatv t, float positive_weight) {
    const floatv zero = (floatv)(0.0f), e = exp_below(-fabs(x)), most = 1.0f / (1.0f + e), least = e * most;
    const floatv p = x < zero ? least : most, q = x < zero ? most : least; /* sigmoid of x and of -x */
    const floatv slope = fma(1.0f - t, p, -positive_weight * t * q);
    return is_known(t) ? slope : zero;
}
#endif

/* x T, target f32 [rows, WIDTH], sample_weight f32 [rows]; losses f32 [rows]: sample_weight * loss. */
WIDE_ROWS __kernel void element_loss_rows(TENSOR(const T, x), TENSOR(const float, target),
                                          TENSOR(const float, sample_weight), TENSOR(float, losses), const int rows,
                                          const float positive_weight) {
    GROUP_SCRATCH(scratch_a);
    GROUP_SCRATCH(scratch_b);
    int lane = get_local_id(0) % ROW_ITEMS, sub = get_local_id(0) / ROW_ITEMS;
    FOR_ROWS(rows) {
        int row = min(base + sub, rows - 1);
        ulong at = (ulong)row * WIDTH;
        floatv all = (floatv)(0.0f);
#pragma unroll UNROLL
        for (int k = 0; k < PARTS; ++k) {
            const floatv t = row_part(row_load_f32(AT(target) + at, COLUMN(k)), COLUMN(k), TARGET_PAST_END);
            all = plus_loss(row_load(AT(x) + at, COLUMN(k)), t, positive_weight, all);
        }
        float sum = row_sum((float2)(sumv(all), 0.0f), scratch_a, scratch_b).x;
        if (OWNS(base + sub, rows) && lane == 0) AT(losses)[row] = AT(sample_weight)[row] * sum * (1.0f / WIDTH);
    }
}

/* dx may be x or accum. */
WIDE_ROWS __kernel void element_loss_grad(TENSOR(const T, x), TENSOR(const float, target),
                                          TENSOR(const float, sample_weight), TENSOR(const float, dloss),
                                          TENSOR(const T, accum), TENSOR(T, dx), const int rows,
                                          const float positive_weight) {
    int lane = get_local_id(0) % ROW_ITEMS, sub = get_local_id(0) / ROW_ITEMS;
    FOR_ROWS(rows) {
        int row = base + sub;
        if (!OWNS(row, rows)) break;
        ulong at = (ulong)row * WIDTH;
        float weight = AT(dloss)[0] * AT(sample_weight)[row] * (1.0f / WIDTH);
#pragma unroll UNROLL
        for (int k = 0; k < PARTS; ++k) {
            const floatv t = row_load_f32(AT(target) + at, COLUMN(k));
            const floatv d = slope_of(row_load(AT(x) + at, COLUMN(k)), t, positive_weight);
            floatv before = HAS(accum) ? row_load(AT(accum) + at, COLUMN(k)) : (floatv)(0.0f);
            row_store(fma(d, (floatv)(weight), before), AT(dx) + at, COLUMN(k));
        }
    }
}
