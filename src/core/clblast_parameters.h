/* CLBlast's own parameters of a single-precision product, as plain data: what they are called, and which values are sound.
 * Rooms that plan, keep files or speak OpenCL share them. */
#ifndef CLEAT_SRC_CLBLAST_PARAMETERS_H
#define CLEAT_SRC_CLBLAST_PARAMETERS_H

#include "cleat/device.h"

/* A product is copied to whole tiles and runs in the kernel Xgemm, or runs in XgemmDirect as it is stored: that where
 * m n k is below the cube of XGEMM_MIN_INDIRECT_SIZE. What each parameter does: CLBlast's doc/tuning.md. */
#define CLEAT_CLBLAST_LIST(X)                                                                                          \
    X("Xgemm", GEMMK)                                                                                                  \
    X("Xgemm", KREG)                                                                                                   \
    X("Xgemm", KWG)                                                                                                    \
    X("Xgemm", KWI)                                                                                                    \
    X("Xgemm", MDIMA)                                                                                                  \
    X("Xgemm", MDIMC)                                                                                                  \
    X("Xgemm", MWG)                                                                                                    \
    X("Xgemm", NDIMB)                                                                                                  \
    X("Xgemm", NDIMC)                                                                                                  \
    X("Xgemm", NWG)                                                                                                    \
    X("Xgemm", SA)                                                                                                     \
    X("Xgemm", SB)                                                                                                     \
    X("Xgemm", STRM)                                                                                                   \
    X("Xgemm", STRN)                                                                                                   \
    X("Xgemm", VWM)                                                                                                    \
    X("Xgemm", VWN)                                                                                                    \
    X("XgemmDirect", KWID)                                                                                             \
    X("XgemmDirect", MDIMAD)                                                                                           \
    X("XgemmDirect", MDIMCD)                                                                                           \
    X("XgemmDirect", NDIMBD)                                                                                           \
    X("XgemmDirect", NDIMCD)                                                                                           \
    X("XgemmDirect", PADA)                                                                                             \
    X("XgemmDirect", PADB)                                                                                             \
    X("XgemmDirect", VWMD)                                                                                             \
    X("XgemmDirect", VWND)                                                                                             \
    X("XgemmDirect", WGD)                                                                                              \
    X("GemmRoutine", XGEMM_MIN_INDIRECT_SIZE)

typedef enum cleat_clblast_parameter {
#define CLEAT_CLBLAST_ENUM(kernel, name) CLEAT_CLBLAST_##name,
    CLEAT_CLBLAST_LIST(CLEAT_CLBLAST_ENUM)
#undef CLEAT_CLBLAST_ENUM
        CLEAT_CLBLAST_COUNT,
} cleat_clblast_parameter;

typedef struct cleat_clblast_parameters {
    int32_t values[CLEAT_CLBLAST_COUNT]; /* by cleat_clblast_parameter */
} cleat_clblast_parameters;

enum {
    /* A product's copies have whole tiles of at most this: what a plan counts on (cleat_sgemm_workspace). */
    CLEAT_CLBLAST_TILE = 128, /* MWG, NWG */
    CLEAT_CLBLAST_DEPTH = 32, /* KWG x KREG */
    CLEAT_CLBLAST_SIZE_MAX = 1 << 20,
};

extern const char *const cleat_clblast_names[CLEAT_CLBLAST_COUNT];
/* The kernel a parameter belongs to; those of a kernel follow each other. */
extern const char *const cleat_clblast_kernels[CLEAT_CLBLAST_COUNT];

/* Why CLBlast cannot run with these parameters, or a plan could not hold its copies; NULL where nothing speaks against
 * them. `facts` NULL: on any device. */
const char *cleat_clblast_refuse(const cleat_clblast_parameters *parameters, const cleat_device_facts *facts);

#endif
