/* Compares device results with reference values. The only definition of "close enough".
 *
 * Every check is written as "passes only if", so a NaN in any operand fails. */
#ifndef CLEAT_TESTS_COMPARE_H
#define CLEAT_TESTS_COMPARE_H

#include "cleat/graph.h"

/* Unit roundoff: the largest relative error of rounding to nearest, 2^-p for p significant bits.
 * f32 2^-24, f16 2^-11, bf16 2^-8. Integers: 0. */
double compare_roundoff(cleat_dtype dtype);

/* The value of `x` after a round trip through `dtype` (to nearest, ties to even; f16 overflows to
 * infinity). */
double compare_round(cleat_dtype dtype, double x);

/* Converts the bytes of a tensor to doubles and back (rounding as above). Integers are exact. */
void compare_decode(cleat_dtype dtype, const void *bytes, int64_t count, double *values);
void compare_encode(cleat_dtype dtype, const double *values, int64_t count, void *bytes);

/* Tolerance of a tensor against its reference:
 *
 *   |got - want| <= u(dtype) |want| + (storage_units u(storage) + f32_units u(f32) sqrt(length)) scale +
 *   tiny(dtype)
 *
 * The first term is the one rounding of the stored result, with `dtype` as the type of the compared tensor.
 * tiny is half the spacing of f16 near zero, 2^-25, and 2^-126 for the other types.
 *
 * The error of a sum is relative to its terms, not to its result: `scale` is the size of the terms, or of the
 * partial sums if those are larger.
 *
 * Each of `length` terms suffers `f32_units` roundings to f32; errors of random sign grow with sqrt(length).
 *
 * A sum over n rows may be one chain on some device. Its k-th addition rounds the partial sum s_k, so |error|
 * <= u sum |s_k| at worst, and <= c u sqrt(sum s_k^2) in all but 2 exp(-c^2 / 2) of cases, since roundings
 * have random sign (Hoeffding). With length = n and t the largest term:
 *   random signs: |s_k| ~ sqrt(k / 3) t, scale = sqrt(n) t: |error| <= f32_units n u t, c = 2.5 f32_units;
 *   one sign:     |s_k| ~ k t / 2, scale = n t: |error| <= f32_units n^1.5 u t, c = 3.5 f32_units.
 *
 * `storage_units` is the number of intermediate roundings to the storage type: 0 for a kernel that computes
 * entirely in f32. */
typedef struct compare_tolerance {
    double scale;
    double length;
    double f32_units;
    double storage_units;
} compare_tolerance;

double compare_bound(compare_tolerance tolerance, cleat_dtype dtype, cleat_dtype storage, double want);

/* Passes only if got and want are equal, or both finite and |got - want| <= bound with a finite bound >=
 * 0. */
bool compare_close(double got, double want, double bound);

/* Returns the first index that does not pass, or -1. `failures` (may be NULL) receives the number of
 * failures. */
int64_t compare_arrays(const double *got, const double *want, int64_t count, compare_tolerance tolerance,
                       cleat_dtype dtype, cleat_dtype storage, int64_t *failures);

#endif
