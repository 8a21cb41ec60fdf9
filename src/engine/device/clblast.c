/* CLBlast's single-precision GEMM (Nugteren, "CLBlast: a tuned OpenCL BLAS library", IWOCL 2018): calls and
 * parameters. */
#include "device/device.h"

#include <clblast_c.h>
#include <stdio.h>
#include <string.h>

/* The name of a code that CLBlast defines; NULL: it is one of OpenCL's. */
static const char *clblast_name(CLBlastStatusCode code) {
#define NAMED(code)                                                                                                    \
    { code, #code }
    static const struct {
        CLBlastStatusCode code;
        const char *name;
    } names[] = {NAMED(CLBlastNotImplemented),
                 NAMED(CLBlastInvalidMatrixA),
                 NAMED(CLBlastInvalidMatrixB),
                 NAMED(CLBlastInvalidMatrixC),
                 NAMED(CLBlastInvalidDimension),
                 NAMED(CLBlastInvalidLeadDimA),
                 NAMED(CLBlastInvalidLeadDimB),
                 NAMED(CLBlastInvalidLeadDimC),
                 NAMED(CLBlastInsufficientMemoryA),
                 NAMED(CLBlastInsufficientMemoryB),
                 NAMED(CLBlastInsufficientMemoryC),
                 NAMED(CLBlastInsufficientMemoryTemp),
                 NAMED(CLBlastMissingOverrideParameter),
                 NAMED(CLBlastInvalidOverrideKernel),
                 NAMED(CLBlastInvalidLocalMemUsage),
                 NAMED(CLBlastDatabaseError),
                 NAMED(CLBlastUnknownError),
                 NAMED(CLBlastUnexpectedError)};
#undef NAMED
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i)
        if (names[i].code == code) return names[i].name;
    return NULL;
}

static CLBlastTranspose transpose(bool transposed) {
    return transposed ? CLBlastTransposeYes : CLBlastTransposeNo;
}

static cleat_status fail_gemm(CLBlastStatusCode code, const cleat_clblast_gemm *p, cleat_error *error) {
    char what[96];
    snprintf(what, sizeof what, "CLBlast sgemm of m=%lld n=%lld k=%lld", (long long)p->m, (long long)p->n,
             (long long)p->k);
    const char *name = clblast_name(code);
    if (!name) return cleat_cl_fail(error, (cl_int)code, "%s", what);
    return cleat_fail(error, CLEAT_ERR_DEVICE, "%s: %s (%d)", what, name, (int)code);
}

static size_t lda(const cleat_clblast_gemm *p) {
    return (size_t)(p->trans_a ? p->m : p->k);
}
static size_t ldb(const cleat_clblast_gemm *p) {
    return (size_t)(p->trans_b ? p->k : p->n);
}

cleat_status cleat_clblast_workspace(cleat_device *device, const cleat_clblast_gemm *p, int64_t *bytes,
                                     cleat_error *error) {
    size_t size = 0;
    CLBlastStatusCode code =
        CLBlastSGemmTempBufferSize(CLBlastLayoutRowMajor, transpose(p->trans_a), transpose(p->trans_b), (size_t)p->m,
                                   (size_t)p->n, (size_t)p->k, (size_t)p->a_offset, lda(p), (size_t)p->b_offset, ldb(p),
                                   (size_t)p->c_offset, (size_t)p->n, &device->compute, &size);
    if (code != CLBlastSuccess) return fail_gemm(code, p, error);
    *bytes = (int64_t)size;
    return CLEAT_OK;
}

cleat_status cleat_clblast_sgemm(cleat_device *device, const cleat_clblast_gemm *p, cl_event *event,
                                 cleat_error *error) {
    CLBlastStatusCode code = CLBlastSgemmWithTempBuffer(
        CLBlastLayoutRowMajor, transpose(p->trans_a), transpose(p->trans_b), (size_t)p->m, (size_t)p->n, (size_t)p->k,
        1.0f, p->a, (size_t)p->a_offset, lda(p), p->b, (size_t)p->b_offset, ldb(p), p->beta, p->c, (size_t)p->c_offset,
        (size_t)p->n, &device->compute, event, p->workspace);
    return code == CLBlastSuccess ? CLEAT_OK : fail_gemm(code, p, error);
}

/* --- parameters ----------------------------------------------------------------------------------------------- */

/* Sets the parameters of the kernel whose parameters begin at index `first`. Returns the first index of the
 * next kernel, or -1. */
static int override_kernel(const cleat_device *device, const cleat_clblast_parameters *parameters, int first,
                           cleat_error *error) {
    const char *kernel = cleat_clblast_kernels[first], *names[CLEAT_CLBLAST_COUNT];
    size_t values[CLEAT_CLBLAST_COUNT];
    int count = 0;
    for (int i = first; i < CLEAT_CLBLAST_COUNT && strcmp(cleat_clblast_kernels[i], kernel) == 0; ++i) {
        names[count] = cleat_clblast_names[i];
        values[count++] = (size_t)parameters->values[i];
    }
    CLBlastStatusCode code =
        CLBlastOverrideParameters(device->id, kernel, CLBlastPrecisionSingle, (size_t)count, names, values);
    if (code == CLBlastSuccess) return first + count;
    const char *name = clblast_name(code);
    cleat_fail(error, CLEAT_ERR_DEVICE, "CLBlast does not accept the parameters for its kernel %s: %s (%d)", kernel,
               name ? name : cleat_cl_name((cl_int)code), (int)code);
    return -1;
}

cleat_status cleat_clblast_override(cleat_device *device, const cleat_clblast_parameters *parameters,
                                    cleat_error *error) {
    const char *reason = cleat_clblast_refuse(parameters, &device->facts);
    if (reason)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "the CLBlast parameters are not valid for '%s': %s",
                          device->facts.name, reason);
    for (int next = 0; next < CLEAT_CLBLAST_COUNT;)
        if ((next = override_kernel(device, parameters, next, error)) < 0) return CLEAT_ERR_DEVICE;
    device->clblast = *parameters;
    device->clblast_tuned = true;
    return CLEAT_OK;
}
