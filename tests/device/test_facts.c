/* Device facts derived from a driver's answers. Table-driven cards replace the OpenCL functions. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "device/probe.h"
#include "platform/processes.h"

#define GIB (1024LL * 1024 * 1024)

/* An answer of the driver: a text, numbers, or nothing (the call fails). */
typedef struct property {
    cl_device_info what;
    size_t bytes; /* 0: text */
    const char *text;
    uint64_t numbers[3];
} property;

enum { SUB_GROUP_SIZES = 0x4108, PROPERTIES = 24 };

static property card[PROPERTIES];
static const char *platform;

static property *find(cl_device_info what) {
    for (int i = 0; i < PROPERTIES; ++i)
        if (card[i].what == what) return &card[i];
    return NULL;
}

static cl_int answer(const void *data, size_t bytes, size_t size, void *value, size_t *size_needed) {
    if (size_needed) *size_needed = bytes;
    if (!value) return CL_SUCCESS;
    if (size < bytes) return CL_INVALID_VALUE;
    memcpy(value, data, bytes);
    return CL_SUCCESS;
}

CLEAT_API cl_int clGetDeviceInfo(cl_device_id id, cl_device_info what, size_t size, void *value, size_t *size_needed) {
    (void)id;
    const property *p = find(what);
    if (!p) return CL_INVALID_DEVICE;
    return p->bytes ? answer(p->numbers, p->bytes, size, value, size_needed)
                    : answer(p->text, strlen(p->text) + 1, size, value, size_needed);
}

CLEAT_API cl_int clGetPlatformInfo(cl_platform_id id, cl_platform_info what, size_t size, void *value,
                                   size_t *size_needed) {
    (void)id;
    if (what != CL_PLATFORM_NAME || !platform) return CL_INVALID_PLATFORM;
    return answer(platform, strlen(platform) + 1, size, value, size_needed);
}

/* A T4 as NVIDIA's driver describes it. */
static int put_t4(void **state) {
    const property t4[] = {
        {CL_DEVICE_NAME, 0, "  Tesla T4", {0}},
        {CL_DEVICE_VENDOR, 0, "NVIDIA Corporation", {0}},
        {CL_DRIVER_VERSION, 0, "550.90.07", {0}},
        {CL_DEVICE_VERSION, 0, "OpenCL 3.0 CUDA", {0}},
        {CL_DEVICE_EXTENSIONS, 0, "cl_khr_fp64 cl_khr_fp16_more my_cl_khr_fp16 cl_nv_pragma_unroll", {0}},
        {CL_DEVICE_AVAILABLE, 4, NULL, {1}},
        {CL_DEVICE_COMPILER_AVAILABLE, 4, NULL, {1}},
        {CL_DEVICE_ENDIAN_LITTLE, 4, NULL, {1}},
        {CL_DEVICE_TYPE, 8, NULL, {CL_DEVICE_TYPE_GPU}},
        {CL_DEVICE_GLOBAL_MEM_SIZE, 8, NULL, {15 * GIB}},
        {CL_DEVICE_MAX_MEM_ALLOC_SIZE, 8, NULL, {4 * GIB}},
        {CL_DEVICE_MEM_BASE_ADDR_ALIGN, 4, NULL, {4096}},
        {CL_DEVICE_LOCAL_MEM_SIZE, 8, NULL, {49152}},
        {CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof(size_t), NULL, {1024}},
        {CL_DEVICE_MAX_COMPUTE_UNITS, 4, NULL, {40}},
        {CL_DEVICE_HOST_UNIFIED_MEMORY, 4, NULL, {0}},
        {CL_DEVICE_SINGLE_FP_CONFIG, 8, NULL, {CL_FP_DENORM | CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT}},
    };
    (void)state;
    _Static_assert(sizeof t4 <= sizeof card, "room");
    memset(card, 0, sizeof card);
    memcpy(card, t4, sizeof t4);
    platform = "NVIDIA CUDA";
    return 0;
}

/* An Arc A770, whose kernels may select sub-groups of 32, 8 or 16. */
static void put_arc(void) {
    put_t4(NULL);
    platform = "Intel(R) OpenCL Graphics";
    find(CL_DEVICE_NAME)->text = "Intel(R) Arc(TM) A770 Graphics";
    find(CL_DEVICE_VENDOR)->text = "Intel(R) Corporation";
    find(CL_DEVICE_EXTENSIONS)->text = "cl_khr_fp16 cl_intel_required_subgroup_size";
    *find(0) = (property){SUB_GROUP_SIZES, 3 * sizeof(size_t), NULL, {32, 8, 16}};
}

static cleat_device_facts facts_of_card(void) {
    cleat_device_facts facts = {0};
    cleat_error error = {0};
    if (cleat_read_facts(NULL, NULL, &facts, &error)) fail_msg("%s", error.text);
    return facts;
}

static void each_answer_is_where_it_belongs(void **state) {
    (void)state;
    cleat_device_facts t4 = facts_of_card();
    assert_string_equal(t4.name, "Tesla T4");
    assert_string_equal(t4.vendor_name, "NVIDIA Corporation");
    assert_string_equal(t4.platform, "NVIDIA CUDA");
    assert_string_equal(t4.driver, "550.90.07");
    assert_int_equal(t4.kind, CLEAT_DEVICE_GPU);
    assert_int_equal(t4.vendor, CLEAT_VENDOR_NVIDIA);
    assert_int_equal(t4.memory_total, 15 * GIB);
    assert_int_equal(t4.max_allocation, 4 * GIB);
    assert_int_equal(t4.alignment, 512); /* bytes; the driver reports bits */
    assert_int_equal(t4.local_memory, 49152);
    assert_int_equal(t4.max_work_group, 1024);
    assert_int_equal(t4.compute_units, 40);
    assert_int_equal(t4.sub_group, 0);
    assert_false(t4.unified_memory);
    assert_true(t4.double_extension && t4.rounds_correctly);
    assert_false(t4.half_extension); /* parts of other words */
    assert_int_equal(t4.work_group, 256);
    assert_int_equal(t4.vector_width, 4);
    find(CL_DEVICE_EXTENSIONS)->text = "cl_khr_fp16_more cl_khr_fp16";
    find(CL_DEVICE_HOST_UNIFIED_MEMORY)->numbers[0] = 1;
    find(CL_DEVICE_MEM_BASE_ADDR_ALIGN)->numbers[0] = 1024;
    find(CL_DEVICE_SINGLE_FP_CONFIG)->numbers[0] = CL_FP_DENORM;
    find(CL_DEVICE_MAX_WORK_GROUP_SIZE)->numbers[0] = 128;
    t4 = facts_of_card();
    assert_true(t4.half_extension && t4.unified_memory);
    assert_false(t4.double_extension || t4.rounds_correctly);
    assert_int_equal(t4.alignment, 256); /* at least */
    assert_int_equal(t4.work_group, 128);
}

static void the_smallest_sub_group_of_intels_cards_is_taken(void **state) {
    (void)state;
    put_arc();
    cleat_device_facts arc = facts_of_card();
    assert_int_equal(arc.vendor, CLEAT_VENDOR_INTEL);
    assert_int_equal(arc.sub_group, 8);
    find(SUB_GROUP_SIZES)->bytes = sizeof(size_t); /* one size only */
    assert_int_equal(facts_of_card().sub_group, 32);
    find(CL_DEVICE_TYPE)->numbers[0] = CL_DEVICE_TYPE_CPU;
    assert_int_equal(facts_of_card().sub_group, 0);
    put_arc();
    find(CL_DEVICE_EXTENSIONS)->text = "cl_khr_fp16";
    assert_int_equal(facts_of_card().sub_group, 0);
    put_arc();
    find(SUB_GROUP_SIZES)->what = 0; /* listed, but the query fails */
    assert_int_equal(facts_of_card().sub_group, 0);
}

static void the_platform_names_the_vendor_before_the_device_does(void **state) {
    (void)state;
    put_arc();
    platform = "Portable Computing Language";
    find(CL_DEVICE_TYPE)->numbers[0] = CL_DEVICE_TYPE_CPU;
    cleat_device_facts cpu = facts_of_card();
    assert_int_equal(cpu.vendor, CLEAT_VENDOR_POCL);
    assert_int_equal(cpu.kind, CLEAT_DEVICE_CPU);
    assert_int_equal(cpu.work_group, 1);
    assert_int_equal(cpu.vector_width, 16);
    platform = "rusticl"; /* does not name the vendor */
    assert_int_equal(facts_of_card().vendor, CLEAT_VENDOR_INTEL);
    find(CL_DEVICE_VENDOR)->text = "Advanced Micro Devices, Inc.";
    assert_int_equal(facts_of_card().vendor, CLEAT_VENDOR_AMD);
    find(CL_DEVICE_VENDOR)->text = "Mesa";
    find(CL_DEVICE_TYPE)->numbers[0] = CL_DEVICE_TYPE_ACCELERATOR;
    assert_int_equal(facts_of_card().vendor, CLEAT_VENDOR_UNKNOWN);
    assert_int_equal(facts_of_card().kind, CLEAT_DEVICE_OTHER);
}

/* If the query fails, the name is empty rather than uninitialised. */
static void a_driver_may_say_nothing(void **state) {
    (void)state;
    find(CL_DRIVER_VERSION)->what = 0;
    find(CL_DEVICE_LOCAL_MEM_SIZE)->what = 0;
    find(CL_DEVICE_EXTENSIONS)->what = 0;
    platform = NULL;
    cleat_device_facts facts = facts_of_card();
    assert_string_equal(facts.driver, "");
    assert_string_equal(facts.platform, "");
    assert_int_equal(facts.local_memory, 0);
    assert_false(facts.half_extension || facts.double_extension);
    cleat_error error = {0};
    find(CL_DEVICE_VERSION)->what = 0;
    assert_int_equal(cleat_read_facts(NULL, NULL, &facts, &error), CLEAT_ERR_NOT_SUPPORTED);
    assert_string_equal(error.text, "'Tesla T4' supports ''; OpenCL 1.2 is required");
}

static void refused(const char *reason) {
    cleat_device_facts facts = {.compute_units = 77};
    cleat_error error = {0};
    assert_int_equal(cleat_read_facts(NULL, NULL, &facts, &error), CLEAT_ERR_NOT_SUPPORTED);
    if (!strstr(error.text, reason) || !strstr(error.text, "Tesla T4")) fail_msg("%s", error.text);
    assert_int_equal(facts.compute_units, 77);
}

static void what_cannot_be_used_is_refused_with_its_reason(void **state) {
    static const cl_device_info needed[] = {CL_DEVICE_AVAILABLE, CL_DEVICE_COMPILER_AVAILABLE, CL_DEVICE_ENDIAN_LITTLE};
    (void)state;
    find(CL_DEVICE_VERSION)->text = "OpenCL 1.1 CUDA";
    refused("OpenCL 1.2 is required");
    find(CL_DEVICE_VERSION)->text = "OpenGL 4.6";
    refused("OpenCL 1.2 is required");
    find(CL_DEVICE_VERSION)->text = "OpenCL 1.2 CUDA";
    facts_of_card();
    for (int i = 0; i < 3; ++i) {
        find(needed[i])->numbers[0] = 0;
        refused(i < 2 ? "is not available, or has no compiler" : "is big-endian");
        find(needed[i])->numbers[0] = 1;
    }
}

static void settings_change_what_the_driver_says(void **state) {
    (void)state;
    setenv("CLEAT_DEVICE_MEMORY_LIMIT", "2147483648", 1);
    cleat_device_facts facts = facts_of_card();
    assert_int_equal(facts.memory_total, 2 * GIB);
    assert_int_equal(facts.max_allocation, 2 * GIB);
    setenv("CLEAT_DEVICE_MEMORY_LIMIT", "8589934592", 1);
    facts = facts_of_card();
    assert_int_equal(facts.memory_total, 8 * GIB);
    assert_int_equal(facts.max_allocation, 4 * GIB);
    unsetenv("CLEAT_DEVICE_MEMORY_LIMIT");
    setenv("CLEAT_DEVICE_SHAPE", "cpu", 1);
    assert_int_equal(facts_of_card().work_group, 1);
    unsetenv("CLEAT_DEVICE_SHAPE");
}

int main(void) {
#define ON_A_T4(test) cmocka_unit_test_setup(test, put_t4)
    const struct CMUnitTest tests[] = {
        ON_A_T4(each_answer_is_where_it_belongs),
        ON_A_T4(the_smallest_sub_group_of_intels_cards_is_taken),
        ON_A_T4(the_platform_names_the_vendor_before_the_device_does),
        ON_A_T4(a_driver_may_say_nothing),
        ON_A_T4(what_cannot_be_used_is_refused_with_its_reason),
        ON_A_T4(settings_change_what_the_driver_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
