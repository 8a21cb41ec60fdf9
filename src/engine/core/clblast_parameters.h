/* CLBlast's parameters of a single-precision product, as plain data: their names and their constraints.
 * Shared by the rooms that plan, store files or call OpenCL. */
#ifndef CLEAT_SRC_CLBLAST_PARAMETERS_H
#define CLEAT_SRC_CLBLAST_PARAMETERS_H

#include "cleat/device.h"

/* CLBlast computes a product in one of two ways: in kernel Xgemm on copies that are padded to whole tiles, or
 * in kernel XgemmDirect on the matrices as they are stored, if m n k is below the cube of
 * XGEMM_MIN_INDIRECT_SIZE. CLBlast's doc/tuning.md describes each parameter. */
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
    int32_t values[CLEAT_CLBLAST_COUNT]; /* indexed by cleat_clblast_parameter */
} cleat_clblast_parameters;

enum {
    /* Largest tile to which the matrices of a product are padded; plans rely on it
     * (cleat_sgemm_workspace). */
    CLEAT_CLBLAST_TILE = 128, /* MWG, NWG */
    CLEAT_CLBLAST_DEPTH = 32, /* KWG x KREG */
    CLEAT_CLBLAST_SIZE_MAX = 1 << 20,
};

extern const char *const cleat_clblast_names[CLEAT_CLBLAST_COUNT];
/* The kernel that each parameter belongs to. Parameters of the same kernel are adjacent. */
extern const char *const cleat_clblast_kernels[CLEAT_CLBLAST_COUNT];

/* Why CLBlast cannot run with these parameters, or why a plan's workspace could be too small for them; NULL
 * if they are valid. `facts` NULL: checks only what holds on any device. */
const char *cleat_clblast_refuse(const cleat_clblast_parameters *parameters, const cleat_device_facts *facts);

#endif
