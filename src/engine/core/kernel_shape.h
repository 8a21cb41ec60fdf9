/* The work-group size and vector width of kernels, and the properties of matrix units, derived from plain
 * facts. This works for open devices as well as for descriptions of cards that are not present. */
#ifndef CLEAT_SRC_KERNEL_SHAPE_H
#define CLEAT_SRC_KERNEL_SHAPE_H

#include "cleat/device.h"
#include "lib/shared_numbers.clh"

/* Sets work_group and vector_width: one work-item with wide vectors for a CPU, work-groups within
 * max_work_group for any other device. */
static inline void cleat_kernel_shape(cleat_device_facts *facts, bool cpu) {
    facts->work_group = cpu ? 1 : 256;
    facts->vector_width = cpu ? 16 : 4;
    while (facts->work_group > facts->max_work_group && facts->work_group > 1) facts->work_group /= 2;
}

/* Kernels use the numbers of the public enum. */
#define CLEAT_SAME_UNIT(name)                                                                                          \
    _Static_assert((int)CLEAT_MATRIX_##name == MATRIX_##name, "the kernels' number of the unit")
CLEAT_SAME_UNIT(NONE);
CLEAT_SAME_UNIT(NV70);
CLEAT_SAME_UNIT(NV75);
CLEAT_SAME_UNIT(NV80);
CLEAT_SAME_UNIT(AMD_DOT);
CLEAT_SAME_UNIT(AMD_WMMA);
CLEAT_SAME_UNIT(AMD_MFMA);
CLEAT_SAME_UNIT(INTEL8);
CLEAT_SAME_UNIT(INTEL16);
CLEAT_SAME_UNIT(EMULATED);
CLEAT_SAME_UNIT(EMULATED_DOT);
CLEAT_SAME_UNIT(EMULATED_INTEL8);
CLEAT_SAME_UNIT(EMULATED_INTEL16);
#undef CLEAT_SAME_UNIT

/* Work-items of a subgroup of this matrix unit. */
static inline int cleat_matrix_subgroup_size(cleat_matrix_unit unit) {
    return SUBGROUP_SIZE_OF((int)unit);
}

/* False if units of this kind multiply f16 only. */
static inline bool cleat_matrix_may_have_bf16(cleat_matrix_unit unit) {
    return unit != CLEAT_MATRIX_NONE && unit != CLEAT_MATRIX_NV70 && unit != CLEAT_MATRIX_NV75 &&
           unit != CLEAT_MATRIX_AMD_DOT;
}

/* True if kernels only emulate the unit, for tests. */
static inline bool cleat_matrix_is_emulated(cleat_matrix_unit unit) {
    return unit >= CLEAT_MATRIX_EMULATED && unit < CLEAT_MATRIX_UNITS;
}

/* Build options for programs that use a matrix unit, in addition to -DMATRIX_UNIT; "" for most units. Intel's
 * units need their operands in registers, and Intel's compiler keeps them there only if a thread has 256
 * registers (half as many threads then run at the same time). The test of the unit is built with the option
 * too: a driver that does not support it is treated as having no unit. */
static inline const char *cleat_matrix_options(cleat_matrix_unit unit) {
    bool intel = unit == CLEAT_MATRIX_INTEL8 || unit == CLEAT_MATRIX_INTEL16;
    return intel ? "-cl-intel-256-GRF-per-thread" : "";
}

#endif
