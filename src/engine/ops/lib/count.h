/* Integer arithmetic in int64 for sizes and counts: ceil_div, round_up, min, max, compute units. */
#ifndef CLEAT_SRC_OPS_COUNT_H
#define CLEAT_SRC_OPS_COUNT_H

#include "cleat/device.h"

/* Kernels count rows in int and add up to a tile or part to the count before they compare it. */
enum { CLEAT_MAX_ROWS = 1 << 30 };

/* a >= 0, b >= 1 */
static inline int64_t ceil_div(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

static inline int64_t round_up(int64_t a, int64_t b) {
    return ceil_div(a, b) * b;
}

static inline int64_t min(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static inline int64_t max(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* Number of compute units, at least 1. */
static inline int64_t units_of(const cleat_device_facts *facts) {
    return max(facts->compute_units, 1);
}

#endif
