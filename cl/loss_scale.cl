/* Dynamic loss scaling: unscaling before an AdamW step, and the update of the scale afterwards. */
#include "lib/common.clh"
#include "lib/loss_scale.clh"
#include "lib/shared_numbers.clh"

/* 1 - b^n, accurate also where 1 - b is exact but b^n rounds to 1. */
static inline float bias_correction(float b, int n) {
    return -expm1((float)n * log1p(-(1.0f - b)));
}

/* unscaled = norm / loss_scale; corrected f32 [8] = hyper (adamw.cl), with the bias corrections for the
 * number of updates including this one. */
__kernel void loss_scale_unscale(TENSOR(const float, norm), TENSOR(const float, loss_scale), TENSOR(const float, hyper),
                                 TENSOR(const int, updates), TENSOR(float, unscaled), TENSOR(float, corrected)) {
    if (get_global_id(0) != 0) return;
    int n = AT(updates)[0] + 1;
    for (int i = 0; i < HYPER_CORRECTION1; ++i) AT(corrected)[i] = AT(hyper)[i];
    AT(corrected)[HYPER_CORRECTION1] = bias_correction(AT(hyper)[HYPER_BETA1], n);
    AT(corrected)[HYPER_CORRECTION2] = bias_correction(AT(hyper)[HYPER_BETA2], n);
    AT(unscaled)[0] = AT(norm)[0] * inverse_of_power(AT(loss_scale)[0]);
}

/* If norm is not finite, loss_scale / 2; else ++updates, and loss_scale * 2 after `interval` such steps in a
 * row. */
__kernel void loss_scale_update(TENSOR(const float, norm), TENSOR(float, loss_scale), TENSOR(int, clean_steps),
                                TENSOR(int, updates), const int interval) {
    const float least = 1.0f, most = 0x1p40f;
    if (get_global_id(0) != 0) return;
    int clean = 0;
    if (isfinite(AT(norm)[0])) {
        ++AT(updates)[0];
        clean = AT(clean_steps)[0] + 1;
        if (clean >= interval) {
            AT(loss_scale)[0] = fmin(AT(loss_scale)[0] * 2.0f, most);
            clean = 0;
        }
    } else {
        AT(loss_scale)[0] = fmax(AT(loss_scale)[0] * 0.5f, least);
    }
    AT(clean_steps)[0] = clean;
}
