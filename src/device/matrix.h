/* Matrix units: which one a device has, and the proof that it computes right. */
#ifndef CLEAT_SRC_MATRIX_H
#define CLEAT_SRC_MATRIX_H

#include "device/device.h"

enum { CLEAT_MATRIX_CANDIDATES = 2 };

/* What tells a card's unit, besides its facts. */
typedef struct cleat_matrix_signs {
    int32_t compute_capability;  /* NVIDIA: 10 x major + minor; else 0 */
    bool sub_group_matrix_intel; /* cl_intel_subgroup_matrix_multiply_accumulate is listed */
} cleat_matrix_signs;

/* The units that a card of these facts may have, best first; returns how many. */
int cleat_matrix_candidates(const cleat_device_facts *facts, const cleat_matrix_signs *signs,
                            cleat_matrix_unit units[CLEAT_MATRIX_CANDIDATES]);

/* Compiles cl/lib/mma_probe.cl for `unit`, runs it and compares: CLEAT_OK where every number is right. CLEAT_ERR_BUILD: it does not compile;
 * CLEAT_ERR_NOT_SUPPORTED: it computes wrong, and the message says what; others: it could not be tried. */
cleat_status cleat_matrix_check(const cleat_device *device, cleat_matrix_unit unit, bool bf16, cleat_error *error);

/* Sets matrix_unit and matrix_bf16 of a device that has just been opened. A device without candidates costs nothing. Never fails: a unit that
 * is not right is not there, and the log says why. */
void cleat_matrix_find(cleat_device *device);
/* The same for these units, best first: by the answer that is kept on disk, or by trying them and keeping the answer. One process tries at a
 * time: the others wait `patience` seconds at most for its answer, and then go without a unit. A trial that comes to no answer is made once
 * more by the next start, and then no more. */
void cleat_matrix_detect(cleat_device *device, const cleat_matrix_unit *units, int count, double patience);
/* The file in which the answer is kept. */
cleat_status cleat_matrix_path(const cleat_device *device, char *path, size_t size, cleat_error *error);

#endif
