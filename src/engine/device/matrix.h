/* Matrix units: which one a device has, and the test that it computes correctly. */
#ifndef CLEAT_SRC_MATRIX_H
#define CLEAT_SRC_MATRIX_H

#include "device/device.h"

enum { CLEAT_MATRIX_CANDIDATES = 2 };

/* What identifies a card's matrix unit besides its facts. */
typedef struct cleat_matrix_signs {
    int32_t compute_capability;  /* NVIDIA: 10 x major + minor; else 0 */
    bool sub_group_matrix_intel; /* cl_intel_subgroup_matrix_multiply_accumulate is listed */
} cleat_matrix_signs;

/* Writes the units that a card with these facts may have, best first, and returns their number. */
int cleat_matrix_candidates(const cleat_device_facts *facts, const cleat_matrix_signs *signs,
                            cleat_matrix_unit units[CLEAT_MATRIX_CANDIDATES]);

/* Compiles cl/lib/mma_probe.cl for `unit`, runs it and compares all results. CLEAT_OK: all are correct.
 * CLEAT_ERR_BUILD: it does not compile; CLEAT_ERR_NOT_SUPPORTED: it computes wrong results, and the message
 * names one; others: the test could not be run. */
cleat_status cleat_matrix_check(const cleat_device *device, cleat_matrix_unit unit, bool bf16, cleat_error *error);

/* Sets matrix_unit and matrix_bf16 of a device that has just been opened. It does no work on devices without
 * candidates. It never fails: a unit that does not compute correctly is treated as absent, and the log gives
 * the reason. */
void cleat_matrix_find(cleat_device *device);
/* As cleat_matrix_find for the given units, best first: uses the result stored on disk, or tests the units
 * and stores the result. One process tests at a time; others wait at most `patience` seconds for its result
 * and then continue without a matrix unit. A test that gives no result is repeated once by the next start,
 * and never again. */
void cleat_matrix_detect(cleat_device *device, const cleat_matrix_unit *units, int count, double patience);
/* Path of the file in which the result is stored. */
cleat_status cleat_matrix_path(const cleat_device *device, char *path, size_t size, cleat_error *error);

#endif
