/* The sum of n floats by one group, in a fixed order.
 *
 * Blocks of BLOCK vectors are summed first, and then the sums of the blocks, so that rounding errors grow
 * with BLOCK + n / (BLOCK items) instead of n / items. */
#include "lib/common.clh"

#define BLOCK 64

__kernel void row_loss_total(TENSOR(const float, x), TENSOR(float, loss), const ulong n) {
    GROUP_SCRATCH(scratch);
    floatv sum = (floatv)(0.0f), block = (floatv)(0.0f);
    int filled = 0;
    FOR_VECTORS(s, n) {
        block += LOADFV(AT(x), s.at);
        if (++filled == BLOCK) {
            sum += block;
            block = (floatv)(0.0f);
            filled = 0;
        }
    }
    if (OWNS_TAIL(n)) block += LOADFN(AT(x), TAIL_AT(n), (int)(n - TAIL_AT(n)));
    float total = group_sum(sumv(sum + block), scratch);
    if (get_local_id(0) == 0) AT(loss)[0] = total;
}
