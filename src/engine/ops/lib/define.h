/* Helpers of definitions (cleat_op.define). */
#ifndef CLEAT_SRC_OPS_DEFINE_H
#define CLEAT_SRC_OPS_DEFINE_H

#include "cleat/op.h"

#include <math.h>

/* Element i of in[in]; 0 if the input is NULL (a bias, an accumulator). */
static inline double cleat_host_value(const cleat_host_values *values, int in, int64_t i) {
    return values->in[in].f ? (double)values->in[in].f[i] : 0;
}

static inline void cleat_define_add(cleat_expected_value *sum, double term) {
    sum->value += term;
    sum->size += fabs(term);
}

/* A sum that begins with element i of an accumulator or bias. */
static inline cleat_expected_value cleat_define_begin(const cleat_host_values *values, int in, int64_t i) {
    const double first = cleat_host_value(values, in, i);
    return (cleat_expected_value){.value = first, .size = fabs(first)};
}

/* The length of sample b, of at most `most` items: all of them without lengths. */
static inline int64_t cleat_define_length(const cleat_host_values *values, int in, int64_t b, int64_t most) {
    const int64_t length = values->in[in].i ? values->in[in].i[b] : most;
    return length < 0 ? 0 : length < most ? length : most;
}

static inline double cleat_define_gelu(double x) {
    return 0.5 * x * (1 + erf(x * M_SQRT1_2));
}

static inline double cleat_define_gelu_slope(double x) {
    return 0.5 * (1 + erf(x * M_SQRT1_2)) + x * exp(-0.5 * x * x) * (0.5 * M_SQRT1_2 * M_2_SQRTPI);
}

#endif
