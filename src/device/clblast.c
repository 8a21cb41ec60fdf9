/* CLBlast's single-precision GEMM (Nugteren, "CLBlast: a tuned OpenCL BLAS library", IWOCL 2018). */
#include "device/device.h"

#include <clblast_c.h>

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

cleat_status cleat_clblast_sgemm(cleat_device *device, bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k,
                                 cl_mem a, int64_t a_offset, int64_t lda, cl_mem b, int64_t b_offset, int64_t ldb,
                                 float beta, cl_mem c, int64_t c_offset, int64_t ldc, cleat_error *error) {
    CLBlastStatusCode code =
        CLBlastSgemm(CLBlastLayoutRowMajor, transpose(trans_a), transpose(trans_b), (size_t)m, (size_t)n, (size_t)k,
                     1.0f, a, (size_t)a_offset, (size_t)lda, b, (size_t)b_offset, (size_t)ldb, beta, c,
                     (size_t)c_offset, (size_t)ldc, &device->compute, NULL);
    if (code == CLBlastSuccess) return CLEAT_OK;
    const char *name = clblast_name(code);
    if (!name)
        return cleat_cl_fail(error, (cl_int)code, "CLBlast sgemm of m=%lld n=%lld k=%lld", (long long)m, (long long)n,
                             (long long)k);
    return cleat_fail(error, CLEAT_ERR_DEVICE, "CLBlast sgemm of m=%lld n=%lld k=%lld: %s (%d)", (long long)m,
                      (long long)n, (long long)k, name, (int)code);
}
