/* The 2-norm of n floats, in one launch where the last group can add the sums of all (last_group.clh), else in two.
 *
 * Squares are summed in blocks of BLOCK vectors first, and then the sums of the blocks, so that rounding
 * errors grow with BLOCK + n / (BLOCK items) instead of n / items. */
#include "lib/common.clh"
#include "lib/last_group.clh"
#include "lib/loss_scale.clh"

#define BLOCK 64

/* With a loss scale, the norm of the unscaled gradient replaces the norm, and corrected f32 [8] is hyper for
 * this step (loss_scale.clh). */
#define SCALING                                                                                                        \
    TENSOR(const float, loss_scale), TENSOR(const float, hyper), TENSOR(const int, updates), TENSOR(float, corrected)
#define PASS_SCALING                                                                                                   \
    loss_scale_slab, loss_scale_offset, hyper_slab, hyper_offset, updates_slab, updates_offset, corrected_slab,        \
        corrected_offset

/* norm f32 [1] = the root of the sum of `parts` sums, by one group, in blocks again: on a CPU one work-item
 * adds the sums of 8 groups per core. */
static inline void norm_of(__global const float *partial, int parts, __global float *norm, SCALING,
                           GROUP_SCRATCH_ARG scratch) {
    float sum = 0.0f, block = 0.0f;
    int filled = 0;
    for (int i = get_local_id(0); i < parts; i += WG) {
        block += partial[i];
        if (++filled == BLOCK) {
            sum += block;
            block = 0.0f;
            filled = 0;
        }
    }
    float total = group_sum(sum + block, scratch);
    if (get_local_id(0) != 0) return;
    const float scaled = sqrt(total);
    *norm = HAS(loss_scale) ? scaled * inverse_of_power(AT(loss_scale)[0]) : scaled;
    if (HAS(corrected)) correct_hyper(AT(hyper), AT(updates)[0], AT(corrected));
}

/* partial f32 [groups]: sums of squares; norm f32 [1]: only if there are counters. */
__kernel void grad_norm_partial(TENSOR(const float, x), TENSOR(float, partial), TENSOR(float, norm), SCALING,
                                const ulong n, TENSOR(int, counters)) {
    GROUP_SCRATCH(scratch);
    LAST_GROUP_SCRATCH(before);
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
    if (HAS(counters) && is_last_group(AT(counters), get_num_groups(0), before))
        norm_of(AT(partial), get_num_groups(0), AT(norm), PASS_SCALING, scratch);
}

__kernel void grad_norm_total(TENSOR(const float, partial), TENSOR(float, norm), SCALING, const int parts) {
    GROUP_SCRATCH(scratch);
    norm_of(AT(partial), parts, AT(norm), PASS_SCALING, scratch);
}
