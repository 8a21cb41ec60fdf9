/* CLBlast's single-precision GEMM (Nugteren, "CLBlast: a tuned OpenCL BLAS library", IWOCL 2018). */
#include "device/device.h"

#include <clblast_c.h>
#include <stdio.h>

/* The names of CLBlast's own codes; the others are OpenCL's. */
static const char *clblast_name(CLBlastStatusCode code) {
    switch (code) {
    case CLBlastNotImplemented:
        return "CLBlastNotImplemented";
    case CLBlastInvalidMatrixA:
        return "CLBlastInvalidMatrixA";
    case CLBlastInvalidMatrixB:
        return "CLBlastInvalidMatrixB";
    case CLBlastInvalidMatrixC:
        return "CLBlastInvalidMatrixC";
    case CLBlastInvalidDimension:
        return "CLBlastInvalidDimension";
    case CLBlastInvalidLeadDimA:
        return "CLBlastInvalidLeadDimA";
    case CLBlastInvalidLeadDimB:
        return "CLBlastInvalidLeadDimB";
    case CLBlastInvalidLeadDimC:
        return "CLBlastInvalidLeadDimC";
    case CLBlastInsufficientMemoryA:
        return "CLBlastInsufficientMemoryA";
    case CLBlastInsufficientMemoryB:
        return "CLBlastInsufficientMemoryB";
    case CLBlastInsufficientMemoryC:
        return "CLBlastInsufficientMemoryC";
    case CLBlastInsufficientMemoryTemp:
        return "CLBlastInsufficientMemoryTemp";
    case CLBlastInvalidLocalMemUsage:
        return "CLBlastInvalidLocalMemUsage";
    case CLBlastDatabaseError:
        return "CLBlastDatabaseError";
    case CLBlastUnknownError:
        return "CLBlastUnknownError";
    case CLBlastUnexpectedError:
        return "CLBlastUnexpectedError";
    default:
        return NULL;
    }
}

static CLBlastTranspose transpose(bool transposed) {
    return transposed ? CLBlastTransposeYes : CLBlastTransposeNo;
}

static cleat_status fail_product(CLBlastStatusCode code, const cleat_clblast_product *p, cleat_error *error) {
    char what[96];
    snprintf(what, sizeof what, "CLBlast sgemm of m=%lld n=%lld k=%lld", (long long)p->m, (long long)p->n,
             (long long)p->k);
    const char *name = clblast_name(code);
    if (!name) return cleat_cl_fail(error, (cl_int)code, "%s", what);
    return cleat_fail(error, CLEAT_ERR_DEVICE, "%s: %s (%d)", what, name, (int)code);
}

static size_t lda(const cleat_clblast_product *p) {
    return (size_t)(p->trans_a ? p->m : p->k);
}
static size_t ldb(const cleat_clblast_product *p) {
    return (size_t)(p->trans_b ? p->k : p->n);
}

cleat_status cleat_clblast_workspace(cleat_device *device, const cleat_clblast_product *p, int64_t *bytes,
                                     cleat_error *error) {
    size_t size = 0;
    CLBlastStatusCode code =
        CLBlastSGemmTempBufferSize(CLBlastLayoutRowMajor, transpose(p->trans_a), transpose(p->trans_b), (size_t)p->m,
                                   (size_t)p->n, (size_t)p->k, (size_t)p->a_offset, lda(p), (size_t)p->b_offset, ldb(p),
                                   (size_t)p->c_offset, (size_t)p->n, &device->compute, &size);
    if (code != CLBlastSuccess) return fail_product(code, p, error);
    *bytes = (int64_t)size;
    return CLEAT_OK;
}

cleat_status cleat_clblast_sgemm(cleat_device *device, const cleat_clblast_product *p, cleat_error *error) {
    CLBlastStatusCode code = CLBlastSgemmWithTempBuffer(
        CLBlastLayoutRowMajor, transpose(p->trans_a), transpose(p->trans_b), (size_t)p->m, (size_t)p->n, (size_t)p->k,
        1.0f, p->a, (size_t)p->a_offset, lda(p), p->b, (size_t)p->b_offset, ldb(p), p->beta, p->c, (size_t)p->c_offset,
        (size_t)p->n, &device->compute, NULL, p->workspace);
    return code == CLBlastSuccess ? CLEAT_OK : fail_product(code, p, error);
}
