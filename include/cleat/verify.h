/* Verification of devices: reference trajectories, and the check of a device before it evaluates. */
#ifndef CLEAT_VERIFY_H
#define CLEAT_VERIFY_H

#include "cleat/device.h"
#include "cleat/profile.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One comparison between a device result and the reference. */
typedef struct cleat_verification {
    char name[80]; /* "output", "loss", "grad/emb.weight", ... */
    /* Operation that computes the tensor, for example "linear_grad"; "" if no training graph computes it. */
    char op[48];
    int place;        /* ascends with the execution order of the graphs */
    double rel_error; /* as defined at cleat_verify */
    double tolerance;
    bool ok;
} cleat_verification;

typedef struct cleat_verify_report {
    size_t count, failed;
    cleat_verification *items; /* [count]; free with cleat_verify_free */
} cleat_verify_report;

typedef struct cleat_verify_request {
    const char *device;        /* device name in the form of cleat_device_open */
    cleat_precision precision; /* precision of the re-run; auto: f32 */
} cleat_verify_request;

/* Re-runs a reference trajectory on a device and compares the results. `file` is a folder of a published checkpoint
 * with expected.safetensors (src/inspect/verify/published.h describes it), or a safetensors file with the batch, param/...,
 * grad/..., after/..., output and loss; tests/README.md describes the format. The comparisons are:
 *   output      maximum difference / maximum value;
 *   loss        maximum relative error of the 11 losses before and after each of ten AdamW steps;
 *   grad/NAME   norm of the difference / the larger of the norm of this gradient and a small fraction of
 *               the norm of all gradients together;
 *   parameters  norm of the difference / norm of the change over ten steps;
 *   update      three optimizer steps on synthetic values (clipped, not clipped, and with a non-finite
 *               gradient), against AdamW and the loss scale in double precision: maximum difference /
 *               maximum value; 1 if a value that must be exact is not.
 * The tolerances follow from the unit roundoff of the precision (f32 2^-24, f16 and tf32 2^-11, bf16 2^-8); each item
 * reports its tolerance. CLEAT_OK means only that the comparison ran; report->failed counts the comparisons
 * that failed. */
CLEAT_API cleat_status cleat_verify(const cleat_verify_request *request, const char *file, cleat_verify_report *report,
                                    cleat_error *error);
CLEAT_API void cleat_verify_free(cleat_verify_report *report);

/* Checks that a device computes correctly, and rejects it with CLEAT_ERR_DEVICE if it does not. It re-runs a small
 * reference trajectory of the profile's model family (built into the library; a family without one is not checked, which
 * the log says) in the profile's precision, once for each kernel variant that supports it on this device. An evaluation
 * or a prediction begins with it; cleat_train checks its own programs on its first batches instead.
 *
 * profile->run.self_check selects when the check runs. `once`: skipped if this combination of device, driver
 * and kernels has passed before, which is recorded in a file in the cache folder, or if a training of this family and
 * precision has passed the check of its programs. `always`: on every call.
 * `never`: no check, CLEAT_OK. The cost is about that of compiling the kernels of the trajectory, plus a few
 * MiB of device memory, which are released.
 *
 * The error message names the device, the kernels, the comparison with the largest error, and the operation
 * that computed the first wrong tensor. */
CLEAT_API cleat_status cleat_self_check(cleat_device *device, const cleat_profile *profile, cleat_error *error);
/* The reference trainings one by one, as `cleat verify` shows them. */
typedef struct cleat_reference_result {
    size_t comparisons; /* 0: skipped, because the device has too little memory */
    int kernel_sets;    /* the training was repeated with each, so that every kernel that serves it ran */
    double worst;       /* largest rel_error of a comparison / its limit, with which results would be wrong: 0 to 1 */
} cleat_reference_result;

/* The model.type of the i-th reference training that is built into the library; NULL after the last.
 * Small ones, which take little time, come first. */
CLEAT_API const char *cleat_reference_model(size_t i);
/* Repeats the reference training of `model` on the device.
 * `precision` auto: that of the device. A pass is recorded, so that cleat_self_check does not repeat it.
 * CLEAT_ERR_DEVICE: wrong results, with the message of cleat_self_check; CLEAT_ERR_NOT_SUPPORTED: there is no
 * training of this model, or the device has no unit for tf32. */
CLEAT_API cleat_status cleat_verify_reference(cleat_device *device, const char *model, cleat_precision precision,
                                              cleat_reference_result *result, cleat_error *error);
/* Whether this combination of device, driver, kernels, model family and precision is recorded as having passed. Runs no
 * check. */
CLEAT_API bool cleat_self_check_passed(cleat_device *device, const cleat_profile *profile);

#ifdef __cplusplus
}
#endif
#endif
