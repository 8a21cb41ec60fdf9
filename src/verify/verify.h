/* A reference trajectory in memory, on a device that is open. */
#ifndef CLEAT_SRC_VERIFY_H
#define CLEAT_SRC_VERIFY_H

#include "cleat/verify.h"
#include "core/safetensors.h"
#include "verify/golden.h"

enum { CLEAT_RANK_TUNED = -1 }; /* the variants that a run takes */

/* Below 2^-32: no number of 32 bits lies under its threshold, and 1 / (1 - rate) is 1. */
#define CLEAT_RARE_DROPOUT "1e-10"

typedef struct cleat_verify_subject {
    const cleat_safetensors *file;
    bool rare_dropout; /* with the dropout of a run, but so rare that nothing is dropped: its kernels take part */
    cleat_precision precision; /* auto: as a run on this device */
    int rank; /* of each node's variants that serve it, the last where it has fewer: 0, 1, ..., or CLEAT_RANK_TUNED */
} cleat_verify_subject;

/* The subject's model, in its precision and with its dropout. */
cleat_status cleat_verify_open(const cleat_verify_subject *subject, cleat_golden *golden, cleat_error *error);
/* cleat_verify. *more (may be NULL): some node has variants of a higher rank. */
cleat_status cleat_verify_subject_on(cleat_device *device, const cleat_verify_subject *subject,
                                     cleat_verify_report *report, bool *more, cleat_error *error);

#endif
