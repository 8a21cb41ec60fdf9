/* Verification of a reference trajectory in memory on an open device. */
#ifndef CLEAT_SRC_VERIFY_H
#define CLEAT_SRC_VERIFY_H

#include "cleat/verify.h"
#include "core/safetensors.h"
#include "verify/golden.h"

enum { CLEAT_RANK_TUNED = -1 }; /* the variants that training would use */

/* Below 2^-32, so the 32-bit threshold is 0 and drops no element, and 1 / (1 - rate) rounds to 1. */
#define CLEAT_RARE_DROPOUT "1e-10"

typedef struct cleat_verify_subject {
    const cleat_safetensors *file;
    /* Enables dropout at a rate that drops nothing (CLEAT_RARE_DROPOUT), so that its kernels are checked
     * too. */
    bool rare_dropout;
    cleat_precision precision; /* auto: as in training on this device */
    /* Index among each node's supported variants (the last one if there are fewer): 0, 1, ..., or
     * CLEAT_RANK_TUNED. */
    int rank;
} cleat_verify_subject;

/* CLEAT_ERR_NOT_SUPPORTED if a run of this precision would compute in f32 (tf32 without a matrix unit for it). */
cleat_status cleat_verify_possible(const cleat_device *device, cleat_precision precision, cleat_error *error);
/* cleat_verify for one subject. *more (may be NULL): some node has variants of a higher rank. */
cleat_status cleat_verify_subject_on(cleat_device *device, const cleat_verify_subject *subject,
                                     cleat_verify_report *report, bool *more, cleat_error *error);

#endif
