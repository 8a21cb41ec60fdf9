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

/* Re-runs a reference trajectory on a device and compares the results. `file` is a folder of a published
 * checkpoint with expected.safetensors (src/inspect/verify/published.h describes it), or a safetensors file
 * with the batch, param/..., grad/..., after/..., output and loss; tests/README.md describes the format. The
 * comparisons are:
 *   output      maximum difference / maximum value;
 *   loss        maximum relative error of the 11 losses before and after each of ten AdamW steps;
 *   grad/NAME   norm of the difference / the larger of the norm of this gradient and a small fraction of
 *               the norm of all gradients together;
 *   parameters  norm of the difference / norm of the change over ten steps;
 *   update      three optimizer steps on synthetic values (clipped, not clipped, and with a non-finite
 *               gradient), against AdamW and the loss scale in double precision: maximum difference /
 *               maximum value; 1 if a value that must be exact is not.
 * The tolerances follow from the unit roundoff of the precision (f32 2^-24, f16 and tf32 2^-11, bf16 2^-8);
 * each item reports its tolerance. CLEAT_OK means only that the comparison ran; report->failed counts the
 * comparisons that failed. */
CLEAT_API cleat_status cleat_verify(const cleat_verify_request *request, const char *file, cleat_verify_report *report,
                                    cleat_error *error);
CLEAT_API void cleat_verify_free(cleat_verify_report *report);

/* The reference trainings one by one, as `cleat verify` shows them. */
typedef struct cleat_reference_result {
    size_t comparisons; /* 0: skipped, because the device has too little memory */
    int kernel_sets;    /* the training is repeated with each, so every kernel that supports it runs */
    double worst;       /* largest rel_error of a comparison / the limit above which results are wrong: 0 to 1 */
} cleat_reference_result;

/* The model.type of the i-th reference training that is built into the library; NULL after the last.
 * Small ones, which take little time, come first. */
CLEAT_API const char *cleat_reference_model(size_t i);
/* Repeats the reference training of `model` on the device, once for each kernel variant that supports it
 * there. `precision` auto: that of the device. CLEAT_ERR_DEVICE: results are wrong; the message names the
 * device, the kernels, the comparison with the largest error, and the operation that computed the first wrong
 * tensor. CLEAT_ERR_NOT_SUPPORTED: this model has no reference training, or the device has no unit for
 * tf32. */
CLEAT_API cleat_status cleat_verify_reference(cleat_device *device, const char *model, cleat_precision precision,
                                              cleat_reference_result *result, cleat_error *error);
/* Whether a training of the profile's model family in its precision has passed the check of its programs
 * (run.self_check) with this device, its driver and these kernels, according to a file in the cache folder.
 * Runs no check. */
CLEAT_API bool cleat_self_check_passed(cleat_device *device, const cleat_profile *profile);

#ifdef __cplusplus
}
#endif
#endif
