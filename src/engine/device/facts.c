/* The device facts that OpenCL itself reports. */
#include "device/probe.h"

#include "core/kernel_shape.h"
#include "core/string.h"
#include "platform/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MIN_ALIGNMENT = 256 };

/* Size for any text that a device reports, extension lists included. A fixed buffer cannot fail for lack of
 * memory, so no fact is silently missing. */
enum { LONGEST_TEXT = 32768 };

static void read_text(cl_device_id id, cl_device_info what, char *text, size_t size) {
    char whole[LONGEST_TEXT] = "";
    text[0] = 0;
    if (clGetDeviceInfo(id, what, sizeof whole - 1, whole, NULL) == CL_SUCCESS)
        snprintf(text, size, "%s", whole + strspn(whole, " "));
}

static uint64_t read_number(cl_device_id id, cl_device_info what, size_t size) {
    unsigned char bytes[8] = {0};
    uint32_t number32;
    uint64_t number64;
    if (clGetDeviceInfo(id, what, size, bytes, NULL) != CL_SUCCESS) return 0;
    memcpy(&number32, bytes, sizeof number32);
    memcpy(&number64, bytes, sizeof number64);
    return size == sizeof number64 ? number64 : number32;
}

static uint64_t read_uint(cl_device_id id, cl_device_info what) {
    return read_number(id, what, sizeof(cl_uint));
}

static uint64_t read_ulong(cl_device_id id, cl_device_info what) {
    return read_number(id, what, sizeof(cl_ulong));
}

int64_t cleat_device_cache(const cleat_device *device) {
    return (int64_t)read_ulong(device->id, CL_DEVICE_GLOBAL_MEM_CACHE_SIZE);
}

bool cleat_has_extension(cl_device_id id, const char *word) {
    char list[LONGEST_TEXT] = "";
    return clGetDeviceInfo(id, CL_DEVICE_EXTENSIONS, sizeof list - 1, list, NULL) == CL_SUCCESS &&
           cleat_has_word(list, word, ' ');
}

/* CL_DEVICE_SUB_GROUP_SIZES_INTEL of cl_intel_required_subgroup_size; CL/cl_ext.h of OpenCL 1.2 does not
 * define it. */
enum { DEVICE_SUB_GROUP_SIZES_INTEL = 0x4108 };

/* The smallest sub-group size that a kernel may require; 0 if it cannot choose. Only Intel GPUs are asked:
 * Oclgrind and plain SPIR compilers list Intel's extensions without implementing them, and on a CPU a
 * work-group is one work-item. */
static int32_t read_sub_group(cl_device_id id, const cleat_device_facts *facts) {
    size_t sizes[16] = {0}, bytes = 0, least = 0;
    if (facts->vendor != CLEAT_VENDOR_INTEL || facts->kind != CLEAT_DEVICE_GPU) return 0;
    if (!cleat_has_extension(id, "cl_intel_required_subgroup_size")) return 0;
    if (clGetDeviceInfo(id, DEVICE_SUB_GROUP_SIZES_INTEL, sizeof sizes, sizes, &bytes) != CL_SUCCESS) return 0;
    for (size_t i = 0; i < bytes / sizeof *sizes; ++i)
        if (sizes[i] > 0 && (least == 0 || sizes[i] < least)) least = sizes[i];
    return (int32_t)least;
}

static cleat_vendor vendor_of(const cleat_device_facts *facts) {
    static const struct {
        const char *word;
        cleat_vendor vendor;
    } words[] = {
        {"Oclgrind", CLEAT_VENDOR_OCLGRIND},
        {"Portable Computing Language", CLEAT_VENDOR_POCL},
        {"NVIDIA", CLEAT_VENDOR_NVIDIA},
        {"AMD", CLEAT_VENDOR_AMD},
        {"Advanced Micro Devices", CLEAT_VENDOR_AMD},
        {"Intel", CLEAT_VENDOR_INTEL},
    };
    /* The platform first: PoCL reports Intel as the vendor of an Intel CPU. */
    for (size_t i = 0; i < sizeof words / sizeof words[0]; ++i)
        if (strstr(facts->platform, words[i].word)) return words[i].vendor;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; ++i)
        if (strstr(facts->vendor_name, words[i].word)) return words[i].vendor;
    return CLEAT_VENDOR_UNKNOWN;
}

static cleat_device_kind kind_of(cl_device_id id) {
    uint64_t type = read_ulong(id, CL_DEVICE_TYPE);
    if (type & CL_DEVICE_TYPE_GPU) return CLEAT_DEVICE_GPU;
    if (type & CL_DEVICE_TYPE_CPU) return CLEAT_DEVICE_CPU;
    return CLEAT_DEVICE_OTHER;
}

static void choose_shape(cleat_device_facts *facts) {
    const char *wanted = getenv("CLEAT_DEVICE_SHAPE");
    bool cpu = facts->kind == CLEAT_DEVICE_CPU;
    if (wanted && strcmp(wanted, "gpu") == 0)
        cpu = false;
    else if (wanted && strcmp(wanted, "cpu") == 0)
        cpu = true;
    else if (wanted && wanted[0])
        cleat_log(CLEAT_LOG_WARNING, "CLEAT_DEVICE_SHAPE is '%s': valid values are 'gpu' and 'cpu'", wanted);
    cleat_kernel_shape(facts, cpu);
}

static void override_matrix_unit(cleat_device_facts *facts) {
    const char *wanted = getenv("CLEAT_MATRIX_UNIT");
    if (!wanted || !wanted[0] || strcmp(wanted, "none") == 0) return;
    for (cleat_matrix_unit unit = CLEAT_MATRIX_NONE; unit < CLEAT_MATRIX_UNITS; ++unit)
        if (cleat_matrix_is_emulated(unit) && strcmp(wanted, cleat_matrix_unit_text(unit)) == 0) {
            facts->matrix_unit = unit;
            facts->matrix_bf16 = true;
            return;
        }
    cleat_log(CLEAT_LOG_WARNING,
              "CLEAT_MATRIX_UNIT is '%s': valid values are 'none', 'emulated', 'emulated_dot', 'emulated_intel8' and "
              "'emulated_intel16'; no matrix unit is used",
              wanted);
}

static cleat_status check_usable(cl_device_id id, const cleat_device_facts *facts, cleat_error *error) {
    char version[128];
    int major = 0, minor = 0;
    read_text(id, CL_DEVICE_VERSION, version, sizeof version);
    if (sscanf(version, "OpenCL %d.%d", &major, &minor) != 2 || major * 10 + minor < 12)
        return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED, "'%s' supports '%s'; OpenCL 1.2 is required", facts->name,
                          version);
    if (!read_uint(id, CL_DEVICE_AVAILABLE) || !read_uint(id, CL_DEVICE_COMPILER_AVAILABLE))
        return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED, "'%s' is not available, or has no compiler", facts->name);
    if (!read_uint(id, CL_DEVICE_ENDIAN_LITTLE))
        return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED, "'%s' is big-endian", facts->name);
    return CLEAT_OK;
}

static void apply_memory_limit(cleat_device_facts *facts) {
    int64_t limit = cleat_device_memory_limit();
    if (limit <= 0) return;
    if (limit < facts->memory_total) facts->memory_total = limit;
    if (limit < facts->max_allocation) facts->max_allocation = limit;
}

cleat_status cleat_read_facts(cl_platform_id platform, cl_device_id id, cleat_device_facts *facts, cleat_error *error) {
    cleat_device_facts read = {0};
    read_text(id, CL_DEVICE_NAME, read.name, sizeof read.name);
    read_text(id, CL_DEVICE_VENDOR, read.vendor_name, sizeof read.vendor_name);
    read_text(id, CL_DRIVER_VERSION, read.driver, sizeof read.driver);
    clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof read.platform - 1, read.platform, NULL);
    cleat_status status = check_usable(id, &read, error);
    if (status) return status;

    read.kind = kind_of(id);
    read.vendor = vendor_of(&read);
    read.memory_total = (int64_t)read_ulong(id, CL_DEVICE_GLOBAL_MEM_SIZE);
    read.max_allocation = (int64_t)read_ulong(id, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
    read.alignment = (int64_t)read_uint(id, CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8; /* OpenCL reports bits */
    if (read.alignment < MIN_ALIGNMENT) read.alignment = MIN_ALIGNMENT;
    read.local_memory = (int64_t)read_ulong(id, CL_DEVICE_LOCAL_MEM_SIZE);
    read.max_work_group = (int32_t)read_number(id, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof(size_t));
    read.compute_units = (int32_t)read_uint(id, CL_DEVICE_MAX_COMPUTE_UNITS);
    read.sub_group = read_sub_group(id, &read);
    read.unified_memory = read_uint(id, CL_DEVICE_HOST_UNIFIED_MEMORY) != 0;
    read.half_extension = cleat_has_extension(id, "cl_khr_fp16");
    read.double_extension = cleat_has_extension(id, "cl_khr_fp64");
    read.rounds_correctly = (read_ulong(id, CL_DEVICE_SINGLE_FP_CONFIG) & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0;
    apply_memory_limit(&read);
    choose_shape(&read);
    override_matrix_unit(&read);
    *facts = read;
    return CLEAT_OK;
}

const char *cleat_device_kind_text(cleat_device_kind kind) {
    return kind == CLEAT_DEVICE_GPU ? "GPU" : kind == CLEAT_DEVICE_CPU ? "CPU" : "other";
}

const char *cleat_matrix_unit_text(cleat_matrix_unit unit) {
    static const char *const texts[CLEAT_MATRIX_UNITS] = {
        "none",   "nv70",    "nv75",     "nv80",         "amd_dot",         "amd_wmma",        "amd_mfma",
        "intel8", "intel16", "emulated", "emulated_dot", "emulated_intel8", "emulated_intel16"};
    return (unsigned)unit < CLEAT_MATRIX_UNITS ? texts[unit] : "?";
}
