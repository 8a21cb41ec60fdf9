/* The CLBlast parameter sets tried by the tuner. They are few, because each one compiles all of CLBlast's
 * GEMM kernels, and far apart, because neighbouring sets differ by less than the variation between compilers.
 * They come from the space of CLBlast's own tuner and from values known to be good on GPUs of three vendors:
 * square and rectangular tiles, 4 x 4 to 8 x 16 results per work-item, 64 to 256 work-items, with and without
 * local memory. The most promising sets come first, because the search may run out of time. */
#include "bench/tuner.h"

#include <string.h>

enum { XGEMM = CLEAT_CLBLAST_KWID, DIRECT = CLEAT_CLBLAST_XGEMM_MIN_INDIRECT_SIZE - CLEAT_CLBLAST_KWID };

/* GEMMK KREG KWG KWI  MDIMA MDIMC MWG  NDIMB NDIMC NWG  SA SB STRM STRN VWM VWN */
static const int32_t xgemm_sets[][XGEMM] = {
    {0, 1, 16, 2, 16, 16, 128, 16, 16, 128, 1, 1, 0, 0, 4, 4}, /* 128 x 128, 256 items of 8 x 8 */
    {0, 1, 16, 2, 8, 8, 64, 8, 8, 64, 1, 1, 0, 0, 4, 4},       /* 64 x 64, 64 items of 8 x 8 */
    {0, 1, 32, 2, 16, 16, 64, 16, 16, 64, 1, 1, 0, 0, 4, 4},   /* 64 x 64, 256 items of 4 x 4 */
    {0, 1, 32, 2, 8, 8, 64, 8, 8, 64, 0, 0, 0, 0, 4, 4},       /* the same tile without local memory */
    {0, 1, 16, 2, 16, 16, 128, 8, 8, 64, 1, 1, 0, 0, 4, 4},    /* 128 x 64, 128 items of 8 x 8 */
    {0, 1, 16, 2, 8, 8, 64, 16, 16, 128, 1, 1, 0, 0, 4, 4},    /* 64 x 128, 128 items of 8 x 8 */
    {0, 1, 32, 2, 16, 16, 64, 8, 8, 64, 1, 1, 0, 0, 4, 4},     /* 64 x 64, 128 items of 4 x 8 */
    {0, 1, 16, 2, 8, 16, 128, 8, 8, 128, 1, 1, 1, 1, 4, 8},    /* 128 x 128, 128 items of 8 x 16 */
    {0, 1, 32, 2, 8, 8, 32, 16, 16, 64, 1, 1, 0, 0, 4, 2},     /* 32 x 64, 128 items of 4 x 4 */
    {0, 1, 32, 2, 16, 16, 128, 16, 16, 64, 0, 0, 0, 0, 4, 4},  /* 128 x 64 without local memory */
    {0, 1, 16, 2, 32, 16, 64, 32, 16, 64, 1, 0, 1, 0, 2, 2},   /* A in local memory, B not */
    {0, 1, 32, 2, 8, 8, 32, 8, 8, 64, 0, 0, 0, 0, 4, 4},       /* 32 x 64, 64 items of 4 x 8 */
};

/* KWID  MDIMAD MDIMCD NDIMBD NDIMCD  PADA PADB VWMD VWND WGD */
static const int32_t direct_sets[][DIRECT] = {
    {2, 8, 8, 8, 8, 1, 1, 4, 4, 32},     /* 32 x 32, 64 items of 4 x 4 */
    {8, 8, 8, 8, 8, 0, 0, 4, 4, 64},     /* 64 x 64, 64 items of 8 x 8 */
    {2, 16, 16, 16, 16, 1, 1, 2, 2, 32}, /* 32 x 32, 256 items of 2 x 2 */
    {8, 16, 16, 16, 16, 0, 0, 4, 4, 64}, /* 64 x 64, 256 items of 4 x 4 */
    {16, 8, 8, 16, 16, 1, 1, 1, 1, 32},  /* no vectors */
    {2, 8, 8, 8, 8, 1, 1, 1, 2, 16},     /* 16 x 16 */
};

size_t cleat_clblast_xgemm_sets(void) {
    return sizeof xgemm_sets / sizeof *xgemm_sets;
}

size_t cleat_clblast_direct_sets(void) {
    return sizeof direct_sets / sizeof *direct_sets;
}

cleat_clblast_parameters cleat_clblast_set(size_t xgemm, size_t direct, int32_t min_indirect) {
    cleat_clblast_parameters set;
    memcpy(set.values, xgemm_sets[xgemm], sizeof xgemm_sets[xgemm]);
    memcpy(set.values + XGEMM, direct_sets[direct], sizeof direct_sets[direct]);
    set.values[CLEAT_CLBLAST_XGEMM_MIN_INDIRECT_SIZE] = min_indirect;
    return set;
}
