/* Logs a step: ring[slot % rows] = (terms [n], norm, loss_scale if not NULL); terms <- 0. If there are
 * clean_steps, the loss scale of the next step follows. */
#include "lib/common.clh"
#include "lib/loss_scale.clh"

__kernel void log_step_row(TENSOR(float, terms), TENSOR(const float, norm), TENSOR(float, loss_scale),
                           TENSOR(const int, slot), TENSOR(float, ring), TENSOR(int, clean_steps), TENSOR(int, updates),
                           const int n, const int rows, const int interval) {
    if (get_global_id(0) != 0) return;
    int width = n + 1 + (HAS(loss_scale) ? 1 : 0);
    __global float *row = AT(ring) + (ulong)((uint)AT(slot)[0] % (uint)rows) * width;
    for (int i = 0; i < n; ++i) {
        row[i] = AT(terms)[i];
        AT(terms)[i] = 0.0f;
    }
    row[n] = AT(norm)[0];
    if (HAS(loss_scale)) row[n + 1] = AT(loss_scale)[0];
    if (HAS(clean_steps)) adapt_loss_scale(AT(norm)[0], AT(loss_scale), AT(clean_steps), AT(updates), interval);
}
