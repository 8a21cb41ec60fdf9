/* The virtual cards as their drivers report them. Sources: profiles/devices, and clinfo output from such
 * cards. */
#include "cards.h"

#include <stdlib.h>
#include <string.h>

static const vc_maker nvidia = {
    .vendor = "NVIDIA Corporation",
    .platform = "NVIDIA CUDA",
    .platform_version = "OpenCL 3.0 CUDA 12.2.148",
    .suffix = "NV",
    .driver = "535.104.05",
    .device_version = "OpenCL 3.0 CUDA",
    .c_version = "OpenCL C 1.2 ",
    .extensions = "cl_khr_global_int32_base_atomics cl_khr_global_int32_extended_atomics "
                  "cl_khr_local_int32_base_atomics cl_khr_local_int32_extended_atomics cl_khr_fp64 "
                  "cl_khr_byte_addressable_store cl_khr_icd cl_khr_int64_base_atomics cl_khr_int64_extended_atomics "
                  "cl_nv_compiler_options cl_nv_device_attribute_query cl_nv_pragma_unroll cl_nv_copy_opts",
    .vendor_id = 0x10de,
    .max_work_items = 1024,
    .max_items = {1024, 1024, 64},
    .max_groups_above = 65535,
    .local_memory = 48 * 1024,
    .max_parameter_bytes = 4352,
    .alignment = 512,
    .cache_line = 128,
    .native_half = 0,
    .out_of_order = true,
};

/* ROCm 5 and 6. Image extensions are omitted because images are not modelled. */
static const vc_maker amd = {
    .amd = true,
    .vendor = "Advanced Micro Devices, Inc.",
    .platform = "AMD Accelerated Parallel Processing",
    .platform_version = "OpenCL 2.1 AMD-APP (3590.0)",
    .suffix = "AMD",
    .driver = "3590.0 (HSA1.1,LC)",
    .device_version = "OpenCL 2.0 ",
    .c_version = "OpenCL C 2.0 ",
    .extensions = "cl_khr_fp64 cl_khr_global_int32_base_atomics cl_khr_global_int32_extended_atomics "
                  "cl_khr_local_int32_base_atomics cl_khr_local_int32_extended_atomics cl_khr_int64_base_atomics "
                  "cl_khr_int64_extended_atomics cl_khr_byte_addressable_store cl_khr_fp16 cl_khr_icd "
                  "cl_amd_device_attribute_query cl_amd_media_ops cl_amd_media_ops2 cl_khr_subgroups "
                  "cl_amd_copy_buffer_p2p cl_amd_assembly_program",
    .vendor_id = 0x1002,
    .max_work_items = 256,
    .max_items = {1024, 1024, 1024},
    .max_groups_above = 65535,
    .local_memory = 64 * 1024,
    .max_parameter_bytes = 1024,
    .alignment = 256,
    .cache_line = 64,
    .native_half = 1,
    .out_of_order = false,
};

#define NVIDIA(key_, name_, major_, minor_, units, mhz, bytes, cache_)                                                 \
    {                                                                                                                  \
        .maker = &nvidia, .key = key_, .name = name_, .wave = 32, .major = major_, .minor = minor_,                    \
        .multiprocessors = units, .clock_mhz = mhz, .memory = bytes, .largest = (bytes) / 4, .cache = cache_           \
    }
/* The maximum allocation is 85 % of the memory. */
#define AMD(key_, name_, board_, processor_, isa_, wave_, units, mhz, bytes, cache_)                                   \
    {                                                                                                                  \
        .maker = &amd, .key = key_, .name = name_, .board = board_, .processor = processor_, .isa = isa_,              \
        .wave = wave_, .multiprocessors = units, .clock_mhz = mhz, .memory = bytes, .largest = (bytes) / 100 * 85,     \
        .cache = cache_                                                                                                \
    }

static const vc_card cards[] = {
    NVIDIA("t4", "Tesla T4", 7, 5, 40, 1590, 15843721216, 4 << 20),
    NVIDIA("v100", "Tesla V100-SXM2-16GB", 7, 0, 80, 1530, 16945512448, 6 << 20),
    NVIDIA("a100", "NVIDIA A100-SXM4-40GB", 8, 0, 108, 1410, 42298834944, 40 << 20),
    NVIDIA("h100", "NVIDIA H100 80GB HBM3", 9, 0, 132, 1980, 84929347584, 50 << 20),
    AMD("mi210", "gfx90a:sramecc+:xnack-", "AMD Instinct MI210", "gfx90a", 9010, 64, 104, 1700, 68702699520, 16 << 10),
    AMD("rx6800xt", "gfx1030", "AMD Radeon RX 6800 XT", "gfx1030", 10300, 32, 36, 2250, 17163091968, 16 << 10),
    AMD("rx7900xt", "gfx1100", "Radeon RX 7900 XT", "gfx1100", 11000, 32, 42, 2400, 21458059264, 32 << 10),
};

const vc_card *vc_card_chosen(void) {
    const char *key = getenv("CLEAT_VIRTUAL_CARD");
    if (!key || !key[0]) return &cards[0];
    for (size_t i = 0; i < sizeof cards / sizeof *cards; ++i)
        if (strcmp(key, cards[i].key) == 0) return &cards[i];
    return NULL;
}
