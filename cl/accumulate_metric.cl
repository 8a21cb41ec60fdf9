/* Accumulates a metric: state[index] += scalar. */
#include "lib/common.clh"

__kernel void accumulate_metric_scalar(TENSOR(const float, scalar), TENSOR(float, state), const int index) {
    if (get_global_id(0) == 0) AT(state)[index] += AT(scalar)[0];
}
