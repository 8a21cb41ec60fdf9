/* The 2-norm of n floats in two launches.
 *
 * Squares are summed in blocks of BLOCK vectors first, and then the sums of the blocks, so that rounding
 * errors grow with BLOCK + n / (BLOCK items) instead of n / items. */
#include "lib/common.clh"

#define BLOCK 64

/* partial f32 [groups]: sums of squares. */
__kernel void grad_norm_partial(TENSOR(const float, x), TENSOR(float, partial), const ulong n) {
    GROUP_SCRATCH(scratch);
    floatv sum = (floatv)(0.0f), block = (floatv)(0.0f);
    int filled = 0;
    FOR_VECTORS(s, n) {
        floatv v = LOADFV(AT(x), s.at);
        block = fma(v, v, block);
        if (++filled == BLOCK) {
            sum += block;
            block = (floatv)(0.0f);
            filled = 0;
        }
    }
    if (OWNS_TAIL(n)) {
        floatv v = LOADFN(AT(x), TAIL_AT(n), (int)(n - TAIL_AT(n)));
        block = fma(v, v, block);
    }
    float total = group_sum(sumv(sum + block), scratch);
    if (get_local_id(0) == 0) AT(partial)[get_group_id(0)] = total;
}

/* norm f32 [1]; one group. In blocks again: on a CPU one work-item adds the sums of 8 groups a core. */
__kernel void grad_norm_total(TENSOR(const float, partial), TENSOR(float, norm), const int parts) {
    GROUP_SCRATCH(scratch);
    float sum = 0.0f, block = 0.0f;
    int filled = 0;
    for (int i = get_local_id(0); i < parts; i += WG) {
        block += AT(partial)[i];
        if (++filled == BLOCK) {
            sum += block;
            block = 0.0f;
            filled = 0;
        }
    }
    float total = group_sum(sum + block, scratch);
    if (get_local_id(0) == 0) AT(norm)[0] = sqrt(total);
}
