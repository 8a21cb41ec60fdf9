/* ring[slot % rows] = (terms [n], norm); terms <- 0 */
#include "common.clh"

__kernel void report_figures(TENSOR(float, terms), TENSOR(const float, norm), TENSOR(const int, slot),
                             TENSOR(float, ring), const int n, const int rows) {
    if (get_global_id(0) != 0) return;
    __global float *row = AT(ring) + (ulong)((uint)AT(slot)[0] % (uint)rows) * (n + 1);
    for (int i = 0; i < n; ++i) {
        row[i] = AT(terms)[i];
        AT(terms)[i] = 0.0f;
    }
    row[n] = AT(norm)[0];
}
