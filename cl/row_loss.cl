/* The sum of the losses of all rows, by one group. */
#include "lib/common.clh"
#include "lib/row_loss.clh"

__kernel void row_loss_total(TENSOR(const float, x), TENSOR(float, loss), const ulong n) {
    GROUP_SCRATCH(scratch);
    float total = sum_by_group(AT(x), n, scratch);
    if (get_local_id(0) == 0) AT(loss)[0] = total;
}
