/* Dynamic loss scaling: unscaling before an AdamW step, and the update of the scale afterwards. If the norm
 * is computed on this device, grad_norm.cl unscales it; in training log_step.cl updates the scale. */
#include "lib/common.clh"
#include "lib/loss_scale.clh"

/* unscaled = norm / loss_scale; corrected f32 [8] = hyper (adamw.cl), with the bias corrections for the
 * number of updates including this one. */
__kernel void loss_scale_unscale(TENSOR(const float, norm), TENSOR(const float, loss_scale), TENSOR(const float, hyper),
                                 TENSOR(const int, updates), TENSOR(float, unscaled), TENSOR(float, corrected)) {
    if (get_global_id(0) != 0) return;
    correct_hyper(AT(hyper), AT(updates)[0], AT(corrected));
    AT(unscaled)[0] = AT(norm)[0] * inverse_of_power(AT(loss_scale)[0]);
}

__kernel void loss_scale_update(TENSOR(const float, norm), TENSOR(float, loss_scale), TENSOR(int, clean_steps),
                                TENSOR(int, updates), const int interval) {
    if (get_global_id(0) == 0) adapt_loss_scale(AT(norm)[0], AT(loss_scale), AT(clean_steps), AT(updates), interval);
}
