/* The shape kernels are built in, chosen from plain facts, and what these say of a matrix unit: for devices that are open and for cards that are not there. */
#ifndef CLEAT_SRC_KERNEL_SHAPE_H
#define CLEAT_SRC_KERNEL_SHAPE_H

#include "cleat/device.h"

/* Sets work_group and lanes: one work-item with wide vectors for a CPU, groups within max_work_group for anything else. */
static inline void cleat_kernel_shape(cleat_device_facts *facts, bool cpu) {
    facts->work_group = cpu ? 1 : 256;
    facts->vector_width = cpu ? 16 : 4;
    while (facts->work_group > facts->max_work_group && facts->work_group > 1) facts->work_group /= 2;
}

/* SUBGROUP_SIZE of cl/lib/mma.clh: the work-items of a subgroup. */
static inline int cleat_matrix_subgroup_size(cleat_matrix_unit unit) {
    return unit == CLEAT_MATRIX_AMD_MFMA  ? 64
           : unit == CLEAT_MATRIX_INTEL8  ? 8
           : unit == CLEAT_MATRIX_INTEL16 ? 16
                                          : 32;
}

/* False where units of this kind multiply f16 only. */
static inline bool cleat_matrix_may_have_bf16(cleat_matrix_unit unit) {
    return unit != CLEAT_MATRIX_NONE && unit != CLEAT_MATRIX_NV70 && unit != CLEAT_MATRIX_NV75 &&
           unit != CLEAT_MATRIX_AMD_DOT;
}

/* True where kernels only pretend to have a unit. */
static inline bool cleat_matrix_is_emulated(cleat_matrix_unit unit) {
    return unit == CLEAT_MATRIX_EMULATED || unit == CLEAT_MATRIX_EMULATED_DOT;
}

/* What programs for a matrix unit are built with besides -DMATRIX_UNIT; "" for most. Intel's units want their operands in registers, and
 * its compiler keeps them there only where a thread has 256 of them (half as many threads then run at once). The probe of the unit is
 * built with it too: a driver that does not know the option has no unit. */
static inline const char *cleat_matrix_options(cleat_matrix_unit unit) {
    bool intel = unit == CLEAT_MATRIX_INTEL8 || unit == CLEAT_MATRIX_INTEL16;
    return intel ? "-cl-intel-256-GRF-per-thread" : "";
}

#endif
