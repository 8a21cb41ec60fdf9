/* Floats as the bits of a half type, on the host. */
#ifndef CLEAT_SRC_HALF_H
#define CLEAT_SRC_HALF_H

#include <stddef.h>
#include <stdint.h>

/* Rounds `count` values to nearest, ties to even: to f16 (IEEE 754 binary16, infinity from 65520 on), to bf16. A NaN stays one. The arrays
 * do not overlap. */
void cleat_to_f16(const float *values, size_t count, uint16_t *bits);
void cleat_to_bf16(const float *values, size_t count, uint16_t *bits);

#endif
