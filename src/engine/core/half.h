/* Conversion between floats and half types on the host. */
#ifndef CLEAT_SRC_HALF_H
#define CLEAT_SRC_HALF_H

#include <stddef.h>
#include <stdint.h>

/* Rounds `count` values to nearest, ties to even, to the bits of f16 (IEEE 754 binary16; infinity from 65520
 * on) or bf16. A NaN remains a NaN. The arrays must not overlap. */
void cleat_to_f16(const float *values, size_t count, uint16_t *bits);
void cleat_to_bf16(const float *values, size_t count, uint16_t *bits);

/* The values of `count` halves, exactly; a NaN remains a NaN. The arrays must not overlap. */
void cleat_from_f16(const uint16_t *bits, size_t count, float *values);
void cleat_from_bf16(const uint16_t *bits, size_t count, float *values);

#endif
