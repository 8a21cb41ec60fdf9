/* Queries of the platform and the device, answered like the vendor's driver. */
#include "icd.h"

#include <stdlib.h>

/* Queries of cl_nv_device_attribute_query. */
enum {
    COMPUTE_CAPABILITY_MAJOR_NV = 0x4000,
    COMPUTE_CAPABILITY_MINOR_NV = 0x4001,
    REGISTERS_PER_BLOCK_NV = 0x4002,
    WARP_SIZE_NV = 0x4003,
    PCI_BUS_ID_NV = 0x4008,
    PCI_SLOT_ID_NV = 0x4009,
    GPU_OVERLAP_NV = 0x4004,
    KERNEL_EXEC_TIMEOUT_NV = 0x4005,
    INTEGRATED_MEMORY_NV = 0x4006
};

/* Queries of cl_amd_device_attribute_query. */
enum { TOPOLOGY_AMD = 0x4037, BOARD_NAME_AMD = 0x4038, GLOBAL_FREE_MEMORY_AMD = 0x4039, WAVEFRONT_WIDTH_AMD = 0x4043 };

struct _cl_platform_id vc_platform;
struct _cl_device_id vc_device;

static cl_int CL_API_CALL platform_info(cl_platform_id platform, cl_platform_info what, size_t size, void *out,
                                        size_t *needed) {
    const vc_maker *maker = vc_device.card->maker;
    if (platform && platform != &vc_platform) return CL_INVALID_PLATFORM;
    switch (what) {
    case CL_PLATFORM_PROFILE:
        return vc_answer_text("FULL_PROFILE", size, out, needed);
    case CL_PLATFORM_VERSION:
        return vc_answer_text(maker->platform_version, size, out, needed);
    case CL_PLATFORM_NAME:
        return vc_answer_text(maker->platform, size, out, needed);
    case CL_PLATFORM_VENDOR:
        return vc_answer_text(maker->vendor, size, out, needed);
    case CL_PLATFORM_EXTENSIONS:
        return vc_answer_text(maker->extensions, size, out, needed);
    case CL_PLATFORM_ICD_SUFFIX_KHR:
        return vc_answer_text(maker->suffix, size, out, needed);
    default:
        return CL_INVALID_VALUE;
    }
}

static cl_int CL_API_CALL device_ids(cl_platform_id platform, cl_device_type type, cl_uint size, cl_device_id *devices,
                                     cl_uint *count) {
    if (platform && platform != &vc_platform) return CL_INVALID_PLATFORM;
    if ((!devices && !count) || (devices && size == 0)) return CL_INVALID_VALUE;
    if (!(type & (CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_DEFAULT))) return CL_DEVICE_NOT_FOUND;
    if (devices) devices[0] = &vc_device;
    if (count) *count = 1;
    return CL_SUCCESS;
}

static cl_int answer_memory(const vc_card *card, cl_device_info what, size_t size, void *out, size_t *needed) {
    switch (what) {
    case CL_DEVICE_GLOBAL_MEM_SIZE:
        return VC_ANSWER(cl_ulong, card->memory);
    case CL_DEVICE_MAX_MEM_ALLOC_SIZE:
        return VC_ANSWER(cl_ulong, card->largest);
    case CL_DEVICE_GLOBAL_MEM_CACHE_SIZE:
        return VC_ANSWER(cl_ulong, card->cache);
    case CL_DEVICE_GLOBAL_MEM_CACHE_TYPE:
        return VC_ANSWER(cl_device_mem_cache_type, CL_READ_WRITE_CACHE);
    case CL_DEVICE_GLOBAL_MEM_CACHELINE_SIZE:
        return VC_ANSWER(cl_uint, card->maker->cache_line);
    case CL_DEVICE_LOCAL_MEM_SIZE:
        return VC_ANSWER(cl_ulong, card->maker->local_memory);
    case CL_DEVICE_LOCAL_MEM_TYPE:
        return VC_ANSWER(cl_device_local_mem_type, CL_LOCAL);
    case CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE:
        return VC_ANSWER(cl_ulong, 65536);
    case CL_DEVICE_MAX_CONSTANT_ARGS:
        return VC_ANSWER(cl_uint, 9);
    case CL_DEVICE_MAX_PARAMETER_SIZE:
        return VC_ANSWER(size_t, card->maker->max_parameter_bytes);
    case CL_DEVICE_MEM_BASE_ADDR_ALIGN:
        return VC_ANSWER(cl_uint, card->maker->alignment * 8);
    case CL_DEVICE_MIN_DATA_TYPE_ALIGN_SIZE:
        return VC_ANSWER(cl_uint, 128);
    case CL_DEVICE_ADDRESS_BITS:
        return VC_ANSWER(cl_uint, 64);
    case CL_DEVICE_HOST_UNIFIED_MEMORY:
    case CL_DEVICE_ERROR_CORRECTION_SUPPORT:
        return VC_ANSWER(cl_bool, CL_FALSE);
    default:
        return CL_INVALID_VALUE;
    }
}

static cl_int answer_text(const vc_card *card, cl_device_info what, size_t size, void *out, size_t *needed) {
    switch (what) {
    case CL_DEVICE_NAME:
        return vc_answer_text(card->name, size, out, needed);
    case CL_DEVICE_VENDOR:
        return vc_answer_text(card->maker->vendor, size, out, needed);
    case CL_DRIVER_VERSION:
        return vc_answer_text(card->maker->driver, size, out, needed);
    case CL_DEVICE_PROFILE:
        return vc_answer_text("FULL_PROFILE", size, out, needed);
    case CL_DEVICE_VERSION:
        return vc_answer_text(card->maker->device_version, size, out, needed);
    case CL_DEVICE_OPENCL_C_VERSION:
        return vc_answer_text(card->maker->c_version, size, out, needed);
    case CL_DEVICE_EXTENSIONS:
        return vc_answer_text(card->maker->extensions, size, out, needed);
    case CL_DEVICE_BUILT_IN_KERNELS:
        return vc_answer_text("", size, out, needed);
    default:
        return CL_INVALID_VALUE;
    }
}

static cl_int answer_nvidia(const vc_card *card, cl_device_info what, size_t size, void *out, size_t *needed) {
    const bool has_place = getenv("CLEAT_VIRTUAL_CARD_PCI") != NULL; /* for it hwloc loads plugins, which leak */
    switch (what) {
    case COMPUTE_CAPABILITY_MAJOR_NV:
        return VC_ANSWER(cl_uint, card->major);
    case COMPUTE_CAPABILITY_MINOR_NV:
        return VC_ANSWER(cl_uint, card->minor);
    case REGISTERS_PER_BLOCK_NV:
        return VC_ANSWER(cl_uint, 65536);
    case WARP_SIZE_NV:
        return VC_ANSWER(cl_uint, card->wave);
    case PCI_BUS_ID_NV: /* that of tests/monitor/stub */
        return has_place ? VC_ANSWER(cl_uint, 0x0b) : CL_INVALID_VALUE;
    case PCI_SLOT_ID_NV:
        return has_place ? VC_ANSWER(cl_uint, 0) : CL_INVALID_VALUE;
    case GPU_OVERLAP_NV:
        return VC_ANSWER(cl_bool, CL_TRUE);
    case KERNEL_EXEC_TIMEOUT_NV:
    case INTEGRATED_MEMORY_NV:
        return VC_ANSWER(cl_bool, CL_FALSE);
    default:
        return CL_INVALID_VALUE;
    }
}

/* ROCm reports the free memory and the largest free block in KiB. PCI topology: PCI Express, bus 3. */
static cl_int answer_amd(const vc_card *card, cl_device_info what, size_t size, void *out, size_t *needed) {
    const size_t free_kib = (size_t)((card->memory - vc_device.allocated) / 1024), both[2] = {free_kib, free_kib};
    const unsigned char topology[24] = {[0] = 1, [21] = 3};
    switch (what) {
    case TOPOLOGY_AMD:
        return vc_answer(topology, sizeof topology, size, out, needed);
    case BOARD_NAME_AMD:
        return vc_answer_text(card->board, size, out, needed);
    case GLOBAL_FREE_MEMORY_AMD:
        return vc_answer(both, sizeof both, size, out, needed);
    case WAVEFRONT_WIDTH_AMD:
        return VC_ANSWER(cl_uint, card->wave);
    default:
        return CL_INVALID_VALUE;
    }
}

static cl_int answer_maker(const vc_card *card, cl_device_info what, size_t size, void *out, size_t *needed) {
    return card->maker->amd ? answer_amd(card, what, size, out, needed) : answer_nvidia(card, what, size, out, needed);
}

/* Preferred vector widths: the card is scalar. */
static cl_int answer_width(const vc_card *card, cl_device_info what, size_t size, void *out, size_t *needed) {
    switch (what) {
    case CL_DEVICE_PREFERRED_VECTOR_WIDTH_HALF:
    case CL_DEVICE_NATIVE_VECTOR_WIDTH_HALF:
        return VC_ANSWER(cl_uint, card->maker->native_half);
    case CL_DEVICE_PREFERRED_VECTOR_WIDTH_CHAR:
    case CL_DEVICE_PREFERRED_VECTOR_WIDTH_SHORT:
    case CL_DEVICE_PREFERRED_VECTOR_WIDTH_INT:
    case CL_DEVICE_PREFERRED_VECTOR_WIDTH_LONG:
    case CL_DEVICE_PREFERRED_VECTOR_WIDTH_FLOAT:
    case CL_DEVICE_PREFERRED_VECTOR_WIDTH_DOUBLE:
    case CL_DEVICE_NATIVE_VECTOR_WIDTH_CHAR:
    case CL_DEVICE_NATIVE_VECTOR_WIDTH_SHORT:
    case CL_DEVICE_NATIVE_VECTOR_WIDTH_INT:
    case CL_DEVICE_NATIVE_VECTOR_WIDTH_LONG:
    case CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT:
    case CL_DEVICE_NATIVE_VECTOR_WIDTH_DOUBLE:
        return VC_ANSWER(cl_uint, 1);
    default:
        return CL_INVALID_VALUE;
    }
}

/* CLEAT_VIRTUAL_CARD_UNITS=N overrides the number of compute units, so even small products have more tiles
 * than units. */
static cl_uint compute_units(const vc_card *card) {
    const char *text = getenv("CLEAT_VIRTUAL_CARD_UNITS");
    const long given = text ? strtol(text, NULL, 10) : 0;
    return given > 0 ? (cl_uint)given : card->multiprocessors;
}

static cl_int answer_rest(const vc_card *card, cl_device_info what, size_t size, void *out, size_t *needed) {
    const vc_maker *maker = card->maker;
    const size_t items[3] = {maker->max_items[0], maker->max_items[1], maker->max_items[2]};
    switch (what) {
    case CL_DEVICE_TYPE:
        return VC_ANSWER(cl_device_type, CL_DEVICE_TYPE_GPU);
    case CL_DEVICE_VENDOR_ID:
        return VC_ANSWER(cl_uint, maker->vendor_id);
    case CL_DEVICE_PLATFORM:
        return VC_ANSWER(cl_platform_id, &vc_platform);
    case CL_DEVICE_MAX_COMPUTE_UNITS:
        return VC_ANSWER(cl_uint, compute_units(card));
    case CL_DEVICE_MAX_CLOCK_FREQUENCY:
        return VC_ANSWER(cl_uint, card->clock_mhz);
    case CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS:
        return VC_ANSWER(cl_uint, 3);
    case CL_DEVICE_MAX_WORK_ITEM_SIZES:
        return vc_answer(items, sizeof items, size, out, needed);
    case CL_DEVICE_MAX_WORK_GROUP_SIZE:
        return VC_ANSWER(size_t, maker->max_work_items);
    case CL_DEVICE_QUEUE_PROPERTIES:
        return VC_ANSWER(cl_command_queue_properties,
                         (maker->out_of_order ? CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE : 0) |
                             CL_QUEUE_PROFILING_ENABLE);
    case CL_DEVICE_EXECUTION_CAPABILITIES:
        return VC_ANSWER(cl_device_exec_capabilities, CL_EXEC_KERNEL);
    case CL_DEVICE_PROFILING_TIMER_RESOLUTION:
        return VC_ANSWER(size_t, 1000);
    case CL_DEVICE_SINGLE_FP_CONFIG:
        return VC_ANSWER(cl_device_fp_config, CL_FP_DENORM | CL_FP_INF_NAN | CL_FP_ROUND_TO_NEAREST |
                                                  CL_FP_ROUND_TO_ZERO | CL_FP_ROUND_TO_INF | CL_FP_FMA |
                                                  CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT);
    case CL_DEVICE_DOUBLE_FP_CONFIG:
        return VC_ANSWER(cl_device_fp_config, CL_FP_DENORM | CL_FP_INF_NAN | CL_FP_ROUND_TO_NEAREST |
                                                  CL_FP_ROUND_TO_ZERO | CL_FP_ROUND_TO_INF | CL_FP_FMA);
    case CL_DEVICE_AVAILABLE:
    case CL_DEVICE_COMPILER_AVAILABLE:
    case CL_DEVICE_LINKER_AVAILABLE:
    case CL_DEVICE_ENDIAN_LITTLE:
        return VC_ANSWER(cl_bool, CL_TRUE);
    case CL_DEVICE_IMAGE_SUPPORT:
        return VC_ANSWER(cl_bool, CL_FALSE);
    case CL_DEVICE_REFERENCE_COUNT:
        return VC_ANSWER(cl_uint, 1);
    default:
        return CL_INVALID_VALUE;
    }
}

static cl_int CL_API_CALL device_info(cl_device_id device, cl_device_info what, size_t size, void *out,
                                      size_t *needed) {
    const vc_card *card = vc_device.card;
    if (device != &vc_device) return CL_INVALID_DEVICE;
    if (answer_memory(card, what, 0, NULL, NULL) == CL_SUCCESS) return answer_memory(card, what, size, out, needed);
    if (answer_text(card, what, 0, NULL, NULL) == CL_SUCCESS) return answer_text(card, what, size, out, needed);
    if (answer_maker(card, what, 0, NULL, NULL) == CL_SUCCESS) return answer_maker(card, what, size, out, needed);
    if (answer_width(card, what, 0, NULL, NULL) == CL_SUCCESS) return answer_width(card, what, size, out, needed);
    return answer_rest(card, what, size, out, needed);
}

static cl_int CL_API_CALL keep_device(cl_device_id device) {
    return device == &vc_device ? CL_SUCCESS : CL_INVALID_DEVICE;
}

/* OpenCL 2.1 and 3.0 allow a driver to lack a common timer, as here. */
static cl_int CL_API_CALL both_timers(cl_device_id device, cl_ulong *of_device, cl_ulong *of_host) {
    (void)of_device;
    (void)of_host;
    return device == &vc_device ? CL_INVALID_OPERATION : CL_INVALID_DEVICE;
}

static cl_int CL_API_CALL host_timer(cl_device_id device, cl_ulong *of_host) {
    return both_timers(device, NULL, of_host);
}

void vc_enter_devices(cl_icd_dispatch *table) {
    table->clGetPlatformInfo = platform_info;
    table->clGetDeviceIDs = device_ids;
    table->clGetDeviceInfo = device_info;
    table->clRetainDevice = keep_device;
    table->clReleaseDevice = keep_device;
    table->clGetDeviceAndHostTimer = both_timers;
    table->clGetHostTimer = host_timer;
}
