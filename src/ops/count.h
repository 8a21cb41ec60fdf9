/* Counting in int64: how many pieces, up to what, on how many units. */
#ifndef CLEAT_SRC_OPS_COUNT_H
#define CLEAT_SRC_OPS_COUNT_H

#include "cleat/device.h"

/* Kernels count rows in ints, and add a tile or a part to them before they compare. */
enum { CLEAT_MOST_ROWS = 1 << 30 };

/* a >= 0, b >= 1 */
static inline int64_t divide_up(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

static inline int64_t round_up(int64_t a, int64_t b) {
    return divide_up(a, b) * b;
}

static inline int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static inline int64_t most(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* Compute units, at least 1. */
static inline int64_t units_of(const cleat_device_facts *facts) {
    return most(facts->compute_units, 1);
}

#endif
