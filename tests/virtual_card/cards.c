/* The virtual cards: what their drivers report. Sources: profiles/devices, and outputs of clinfo on such cards. */
#include "cards.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static const vc_card cards[] = {
    {"t4", "Tesla T4", 7, 5, 40, 1590, 15843721216, 4 << 20},
    {"v100", "Tesla V100-SXM2-16GB", 7, 0, 80, 1530, 16945512448, 6 << 20},
    {"a100", "NVIDIA A100-SXM4-40GB", 8, 0, 108, 1410, 42298834944, 40 << 20},
    {"h100", "NVIDIA H100 80GB HBM3", 9, 0, 132, 1980, 84929347584, 50 << 20},
};

const vc_card *vc_card_chosen(void) {
    const char *key = getenv("CLEAT_VIRTUAL_CARD");
    if (!key || !key[0]) return &cards[0];
    for (size_t i = 0; i < sizeof cards / sizeof *cards; ++i)
        if (strcmp(key, cards[i].key) == 0) return &cards[i];
    return NULL;
}

uint64_t vc_card_largest_allocation(const vc_card *card) {
    return card->memory / 4;
}

const char *vc_card_extensions(void) {
    return "cl_khr_global_int32_base_atomics cl_khr_global_int32_extended_atomics cl_khr_local_int32_base_atomics "
           "cl_khr_local_int32_extended_atomics cl_khr_fp64 cl_khr_byte_addressable_store cl_khr_icd "
           "cl_khr_int64_base_atomics cl_khr_int64_extended_atomics cl_nv_compiler_options "
           "cl_nv_device_attribute_query cl_nv_pragma_unroll cl_nv_copy_opts";
}
