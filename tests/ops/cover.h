/* Selects which cases of an op test run. In the full product of rows x storage types x shapes, most cases
 * compile kernels whose differences cannot hide a fault. Cases are therefore selected by index, but every
 * kernel is covered. */
#ifndef CLEAT_TESTS_COVER_H
#define CLEAT_TESTS_COVER_H

#include "harness.h"

/* Whether cases of the shape run on a device of this kind. CPU shapes do not run on a GPU, whose driver may
 * refuse to launch kernels of one work-item with much private memory. `only` (CLEAT_TEST_SHAPE), if not
 * empty, names the only shape that runs, on any device. */
bool cover_shape(const op_shape *shape, cleat_device_kind kind, const char *only);
/* Clears the record of covered kernels; called at the beginning of a test. */
void cover_begin(void);
/* Whether the case runs, with the variants it requests. f32 always runs in the shapes cpu and gpu, and in
 * gpu64 for every second row; a row runs alternately in f16 or bf16 (in both if the test has few rows). With
 * CLEAT_TEST_TURNS a row of f32 runs alternately plain or chained, as rows of half types always do. A case
 * also runs if one of its ops launches a kernel that has not been launched before in this storage type and
 * shape. Every case runs if CLEAT_TEST_ROW names the row or CLEAT_TEST_FULL is set. */
bool cover_needed(const op_case *c);
/* Whether the backward pass of this case is skipped: in half types only one of the chained and the plain form
 * runs, and this case is the other one. In f32 both run. */
bool cover_skips(const op_case *c);
/* Whether the kernels of the case are compiled with optimization, which takes most of the time of an op test
 * on PoCL. They are if the case launches a kernel of a variant that no recorded case launched in this storage
 * type and shape (in the shape cpu and, in f32, in the shape gpu), or if it computes enough to be faster.
 * Other cases run the same kernels with other sizes. Always if CLEAT_TEST_FULL is set. */
bool cover_optimizes(const op_case *c);
/* Records the kernels that the case launches. */
void cover_record(const op_case *c);

#endif
