/* The names of CLBlast's parameters, and the constraints that its kernel sources impose on them. */
#include "core/clblast_parameters.h"

const char *const cleat_clblast_names[CLEAT_CLBLAST_COUNT] = {
#define CLEAT_CLBLAST_NAME(kernel, name) #name,
    CLEAT_CLBLAST_LIST(CLEAT_CLBLAST_NAME)
#undef CLEAT_CLBLAST_NAME
};

const char *const cleat_clblast_kernels[CLEAT_CLBLAST_COUNT] = {
#define CLEAT_CLBLAST_KERNEL(kernel, name) kernel,
    CLEAT_CLBLAST_LIST(CLEAT_CLBLAST_KERNEL)
#undef CLEAT_CLBLAST_KERNEL
};

enum { FLOAT_BYTES = 4, VECTOR_MAX = 8, FLAGS = 6 };

#define VALUE(name) ((int64_t)p->values[CLEAT_CLBLAST_##name])

static bool divides(int64_t part, int64_t whole) {
    return part > 0 && whole % part == 0;
}

/* Switches must be 0 or 1; all other parameters are counts. */
static const char *refuse_ranges(const cleat_clblast_parameters *p) {
    static const cleat_clblast_parameter flags[FLAGS] = {CLEAT_CLBLAST_SA,   CLEAT_CLBLAST_SB,   CLEAT_CLBLAST_STRM,
                                                         CLEAT_CLBLAST_STRN, CLEAT_CLBLAST_PADA, CLEAT_CLBLAST_PADB};
    cleat_clblast_parameters counts = *p;
    for (int i = 0; i < FLAGS; ++i) {
        if (p->values[flags[i]] != 0 && p->values[flags[i]] != 1)
            return "SA, SB, STRM, STRN, PADA and PADB must be 0 or 1";
        counts.values[flags[i]] = 1;
    }
    if (VALUE(GEMMK) != 0) return "GEMMK must be 0: the rules of CLBlast's other kernel are not supported";
    counts.values[CLEAT_CLBLAST_GEMMK] = 1;
    for (int i = 0; i < CLEAT_CLBLAST_COUNT; ++i)
        if (counts.values[i] < 1 || counts.values[i] > CLEAT_CLBLAST_SIZE_MAX) return "a value is out of range";
    if (!divides(VALUE(VWM), VECTOR_MAX) || !divides(VALUE(VWN), VECTOR_MAX) || !divides(VALUE(VWMD), VECTOR_MAX) ||
        !divides(VALUE(VWND), VECTOR_MAX))
        return "vector widths (VWM, VWN, VWMD, VWND) must be 1, 2, 4 or 8";
    return NULL;
}

static const char *refuse_xgemm(const cleat_clblast_parameters *p) {
    int64_t items = VALUE(MDIMC) * VALUE(NDIMC);
    if (!divides(VALUE(MWG), CLEAT_CLBLAST_TILE) || !divides(VALUE(NWG), CLEAT_CLBLAST_TILE) ||
        !divides(VALUE(KWG) * VALUE(KREG), CLEAT_CLBLAST_DEPTH))
        return "MWG and NWG must divide 128 and KWG * KREG must divide 32: memory plans assume no larger tiles";
    if (!divides(VALUE(KWI), VALUE(KWG))) return "KWI must divide KWG";
    if (!divides(VALUE(MDIMC) * VALUE(VWM), VALUE(MWG))) return "MDIMC * VWM must divide MWG";
    if (!divides(VALUE(NDIMC) * VALUE(VWN), VALUE(NWG))) return "NDIMC * VWN must divide NWG";
    if (!divides(VALUE(MDIMA) * VALUE(VWM), VALUE(MWG))) return "MDIMA * VWM must divide MWG";
    if (!divides(VALUE(NDIMB) * VALUE(VWN), VALUE(NWG))) return "NDIMB * VWN must divide NWG";
    if (!divides(VALUE(MDIMA), items) || !divides(items / VALUE(MDIMA), VALUE(KWG)))
        return "MDIMC * NDIMC / MDIMA must divide KWG";
    if (!divides(VALUE(NDIMB), items) || !divides(items / VALUE(NDIMB), VALUE(KWG)))
        return "MDIMC * NDIMC / NDIMB must divide KWG";
    return NULL;
}

static const char *refuse_direct(const cleat_clblast_parameters *p) {
    int64_t items = VALUE(MDIMCD) * VALUE(NDIMCD), tile = VALUE(WGD);
    if (!divides(VALUE(KWID), tile)) return "KWID must divide WGD";
    if (!divides(VALUE(MDIMCD) * VALUE(VWMD), tile)) return "MDIMCD * VWMD must divide WGD";
    if (!divides(VALUE(NDIMCD) * VALUE(VWND), tile)) return "NDIMCD * VWND must divide WGD";
    if (!divides(VALUE(MDIMAD) * VALUE(VWMD), tile)) return "MDIMAD * VWMD must divide WGD";
    if (!divides(VALUE(NDIMBD) * VALUE(VWND), tile)) return "NDIMBD * VWND must divide WGD";
    if (!divides(VALUE(MDIMAD), items) || !divides(items / VALUE(MDIMAD), tile))
        return "MDIMCD * NDIMCD / MDIMAD must divide WGD";
    if (!divides(VALUE(NDIMBD), items) || !divides(items / VALUE(NDIMBD), tile))
        return "MDIMCD * NDIMCD / NDIMBD must divide WGD";
    return NULL;
}

static const char *refuse_device(const cleat_clblast_parameters *p, const cleat_device_facts *facts) {
    int64_t tile = VALUE(WGD);
    int64_t local = VALUE(KWG) * (VALUE(SA) * VALUE(MWG) + VALUE(SB) * VALUE(NWG)) * FLOAT_BYTES;
    int64_t direct = tile * (tile + VALUE(PADA) + tile + VALUE(PADB)) * FLOAT_BYTES;
    if (VALUE(MDIMC) * VALUE(NDIMC) > facts->max_work_group || VALUE(MDIMCD) * VALUE(NDIMCD) > facts->max_work_group)
        return "the work-group limit of the device is smaller";
    if (local > facts->local_memory || direct > facts->local_memory) return "the device has less local memory";
    return NULL;
}

const char *cleat_clblast_refuse(const cleat_clblast_parameters *p, const cleat_device_facts *facts) {
    const char *reason = refuse_ranges(p);
    if (!reason) reason = refuse_xgemm(p);
    if (!reason) reason = refuse_direct(p);
    return reason || !facts ? reason : refuse_device(p, facts);
}
