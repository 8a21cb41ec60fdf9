/* Verification of devices: reference trajectories, and the self-check before the first run on a device. */
#ifndef CLEAT_VERIFY_H
#define CLEAT_VERIFY_H

#include "cleat/device.h"
#include "cleat/profile.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One comparison of a reference trajectory. */
typedef struct cleat_verification {
    char name[80]; /* "output", "loss", "grad/emb.weight", ... */
    /* the operation that makes it, as "linear_grad"; "" where it is none of a training's graphs */
    char op[48];
    int place;        /* ascending in execution order of the graphs */
    double rel_error; /* largest relative deviation */
    double tolerance;
    bool ok;
} cleat_verification;

typedef struct cleat_verify_report {
    size_t count, failed;
    cleat_verification *items; /* [count]; free with cleat_verify_free */
} cleat_verify_report;

typedef struct cleat_verify_request {
    const char *device;        /* as cleat_device_open takes it */
    cleat_precision precision; /* precision of the repetition; auto: f32 */
} cleat_verify_request;

/* Repeats a reference trajectory (safetensors: the batch, param/..., grad/..., after/..., output, loss;
 * tests/README.md describes the form) on a device and compares:
 *   output      largest difference over the largest value;
 *   loss        largest relative difference of the 11 losses before and after ten AdamW steps;
 *   grad/NAME   norm of the difference over the larger of the gradient's own norm and a small part of
 *               the whole one's;
 *   parameters  norm of the difference over the norm of what ten steps changed;
 *   update      three optimizer steps on synthetic values (clipped, not clipped, a gradient that is
 *               not finite) against AdamW and the loss scale in double precision: largest difference
 *               over the largest value; 1 where what must hold exactly does not.
 * Tolerances follow from the precision's unit roundoff (f32 2^-24, f16 2^-11, bf16 2^-8); each item states
 * its own. CLEAT_OK means that the comparison ran: see report->failed. */
CLEAT_API cleat_status cleat_verify(const cleat_verify_request *request, const char *file, cleat_verify_report *report,
                                    cleat_error *error);
CLEAT_API void cleat_verify_free(cleat_verify_report *report);

/* Refuses a device that computes wrongly: repeats a small trajectory of the profile's family of models
 * that is part of the library, in the profile's precision, once with each kernel variant that serves it on
 * this device; then single operations that no small trajectory reaches (long sums, CLBlast's products,
 * dropout's mask, running statistics), against the host's double precision. As profile->run.self_check
 * says: `once` passes at once where this device, driver and set of kernels has passed before (a file in
 * the cache folder says so), `always` repeats it, `never` passes. Costs about as much as compiling the
 * kernels of the trajectory, and a few MiB of device memory, which are released. CLEAT_ERR_DEVICE names
 * the device, the kernels, the comparison that is furthest off, and the operation that made the first
 * wrong tensor. */
CLEAT_API cleat_status cleat_self_check(cleat_device *device, const cleat_profile *profile, cleat_error *error);

#ifdef __cplusplus
}
#endif
#endif
