/* An open device: facts, buffers, errors. */
/* ctest: device quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/memory.h"
#include "device/probe.h"
#include "open_device.h"
#include "platform/files.h"
#include "platform/processes.h"

static cleat_device *device;

static void test_facts_are_plausible(void **state) {
    const cleat_device_facts *facts = cleat_device_get_facts(device);
    (void)state;
    assert_true(facts->name[0] && facts->platform[0] && facts->driver[0] && facts->memory_source[0]);
    assert_true(facts->memory_total > 0 && facts->memory_free <= facts->memory_total);
    assert_true(facts->max_allocation > 0 && facts->max_allocation <= facts->memory_total);
    assert_true(facts->alignment >= 256 && (facts->alignment & (facts->alignment - 1)) == 0);
    assert_true(facts->local_memory >= 32 * 1024 && facts->max_work_group >= facts->work_group);
    assert_true(facts->compute_units > 0 && facts->pinning[0]);
    if (facts->kind == CLEAT_DEVICE_CPU && !getenv("CLEAT_DEVICE_SHAPE"))
        assert_true(facts->work_group == 1 && facts->vector_width == 16);
    if (facts->kind == CLEAT_DEVICE_CPU) assert_true(facts->memory_free > 0);
}

static void test_list_and_open_agree(void **state) {
    cleat_device_facts *facts = NULL;
    cleat_device *first = NULL;
    cleat_error error;
    size_t count = 0;
    (void)state;
    assert_int_equal(cleat_device_list(&facts, &count, &error), CLEAT_OK);
    assert_true(count >= 1);
    assert_int_equal(cleat_device_open("0", &first, &error), CLEAT_OK);
    assert_string_equal(cleat_device_get_facts(first)->name, facts[0].name);
    cleat_device_close(first);
    cleat_device_list_free(facts);
}

static void test_unknown_selector(void **state) {
    cleat_device *none = NULL;
    cleat_error error;
    (void)state;
    assert_int_equal(cleat_device_open("no such card", &none, &error), CLEAT_ERR_NO_DEVICE);
    assert_null(none);
    assert_non_null(strstr(error.text, "no such card"));
    assert_non_null(strstr(error.text, cleat_device_get_facts(device)->name));
}

/* Runs `check` in a new process, in which OpenCL has not enumerated its drivers yet. Returns its exit
 * code. */
static int in_new_process(const char *what) {
    char *const words[] = {"device", (char *)what, NULL};
    const pid_t child = cleat_spawn(NULL, words, STDOUT_FILENO, STDERR_FILENO, SIGKILL);
    assert_true(child >= 0);
    int state = 0;
    assert_int_equal(waitpid(child, &state, 0), child);
    return WIFEXITED(state) ? WEXITSTATUS(state) : -1;
}

/* The child process of in_new_process; returns 0 on success. */
static int check_without_drivers(void) {
    cleat_device_facts *facts = NULL;
    cleat_device *none = NULL;
    cleat_error error;
    size_t count = 0;
    if (cleat_device_list(&facts, &count, &error) != CLEAT_ERR_NO_DEVICE || facts) return 1;
    if (!strstr(error.text, "pocl-opencl-icd")) return 2;
    return cleat_device_open("auto", &none, NULL) == CLEAT_ERR_NO_DEVICE && !none ? 0 : 3;
}

static int check_shape(int32_t work_group, int32_t vector_width) {
    cleat_device *opened = NULL;
    if (cleat_device_open(NULL, &opened, NULL)) return 1;
    const cleat_device_facts *facts = cleat_device_get_facts(opened);
    int wrong = facts->work_group != work_group || facts->vector_width != vector_width;
    cleat_device_close(opened);
    return wrong ? 2 : 0;
}

static int check_memory_limit(void) {
    cleat_device *opened = NULL;
    cl_mem buffer = NULL, second = NULL;
    cleat_error error;
    if (cleat_device_open(NULL, &opened, NULL)) return 1;
    const cleat_device_facts *facts = cleat_device_get_facts(opened);
    if (facts->memory_total != 1000000 || facts->memory_free > 1000000) return 2;
    if (facts->max_allocation > 1000000) return 3;
    if (cleat_buffer_create(opened, 600000, &buffer, &error)) return 4;
    if (cleat_buffer_create(opened, 600000, &second, &error) != CLEAT_ERR_DEVICE_MEMORY || second) return 5;
    cleat_buffer_release(opened, buffer, 600000);
    if (cleat_buffer_create(opened, 1000000, &buffer, &error)) return 6;
    cleat_buffer_release(opened, buffer, 1000000);
    cleat_device_close(opened);
    return 0;
}

static void test_no_driver(void **state) {
    (void)state;
    if (!CLEAT_FORKS) skip(); /* wine passes no changed environment to the loader of OpenCL */
    /* Oclgrind is loaded without being listed */
    if (cleat_device_get_facts(device)->vendor == CLEAT_VENDOR_OCLGRIND) skip();
    setenv("OCL_ICD_VENDORS", "/nonexistent", 1);
    assert_int_equal(in_new_process("no-driver"), 0);
    unsetenv("OCL_ICD_VENDORS");
}

static void test_environment(void **state) {
    (void)state;
    setenv("CLEAT_DEVICE_SHAPE", "gpu", 1);
    assert_int_equal(in_new_process("shape-gpu"), 0);
    setenv("CLEAT_DEVICE_SHAPE", "cpu", 1);
    assert_int_equal(in_new_process("shape-cpu"), 0);
    unsetenv("CLEAT_DEVICE_SHAPE");
    setenv("CLEAT_DEVICE_MEMORY_LIMIT", "1000000", 1);
    assert_int_equal(in_new_process("memory-limit"), 0);
    unsetenv("CLEAT_DEVICE_MEMORY_LIMIT");
}

static void test_buffers_are_counted(void **state) {
    cl_mem a = NULL, b = NULL;
    cleat_error error;
    (void)state;
    assert_int_equal(cleat_buffer_create(device, 1000, &a, &error), CLEAT_OK);
    assert_int_equal(cleat_buffer_create(device, 77, &b, &error), CLEAT_OK);
    assert_int_equal(cleat_device_allocated(device), 1077);
    cleat_buffer_release(device, a, 1000);
    assert_int_equal(cleat_device_allocated(device), 77);
    cleat_buffer_release(device, b, 77);
    cleat_buffer_release(device, NULL, 5);
    assert_int_equal(cleat_device_allocated(device), 0);
    assert_true(cleat_device_peak(device) >= 1077);
}

static void test_zeroing(void **state) {
    unsigned char values[77];
    cl_mem buffer = NULL;
    cleat_error error;
    (void)state;
    memset(values, 5, sizeof values);
    assert_int_equal(cleat_buffer_create(device, sizeof values, &buffer, &error), CLEAT_OK);
    assert_int_equal(clEnqueueWriteBuffer(device->compute, buffer, CL_TRUE, 0, sizeof values, values, 0, NULL, NULL),
                     0);
    assert_int_equal(cleat_buffer_zero(device, buffer, sizeof values, &error), CLEAT_OK);
    assert_int_equal(clEnqueueReadBuffer(device->compute, buffer, CL_TRUE, 0, sizeof values, values, 0, NULL, NULL), 0);
    for (size_t i = 0; i < sizeof values; ++i) assert_int_equal(values[i], 0);
    cleat_buffer_release(device, buffer, sizeof values);
}

/* More than 2 GiB: the driver of the virtual card, like NVIDIA's, rejects a fill of this size. */
static void test_large_buffers(void **state) {
    const int64_t bytes = ((int64_t)2 << 30) + 77;
    cl_mem buffer = NULL;
    cleat_error error;
    unsigned char last = 1;
    (void)state;
    if (cleat_device_get_facts(device)->max_allocation < bytes) skip();
    if (cleat_buffer_create(device, bytes, &buffer, &error) != CLEAT_OK) fail_msg("%s", error.text);
    if (!(device->quirks & CLEAT_QUIRK_HOST_MEMORY)) {
        assert_int_equal(
            clEnqueueReadBuffer(device->compute, buffer, CL_TRUE, (size_t)bytes - 1, 1, &last, 0, NULL, NULL), 0);
        assert_int_equal(last, 0);
    }
    cleat_buffer_release(device, buffer, bytes);
}

static void test_impossible_buffers(void **state) {
    cl_mem none = NULL;
    cleat_error error;
    (void)state;
    assert_int_equal(cleat_buffer_create(device, 0, &none, &error), CLEAT_ERR_ARGUMENT);
    assert_int_equal(cleat_buffer_create(device, (int64_t)1 << 50, &none, &error), CLEAT_ERR_DEVICE_MEMORY);
    assert_non_null(strstr(error.text, "1125899906842624"));
    device->fail_buffer = 2;
    cl_mem first = NULL;
    assert_int_equal(cleat_buffer_create(device, 16, &first, &error), CLEAT_OK);
    assert_int_equal(cleat_buffer_create(device, 16, &none, &error), CLEAT_ERR_DEVICE_MEMORY);
    assert_null(none);
    assert_int_equal(cleat_device_allocated(device), 16);
    cleat_buffer_release(device, first, 16);
}

static void test_error_names(void **state) {
    cleat_error error;
    (void)state;
    assert_string_equal(cleat_cl_name(CL_OUT_OF_RESOURCES), "CL_OUT_OF_RESOURCES");
    assert_string_equal(cleat_cl_name(-1001), "CL_PLATFORM_NOT_FOUND_KHR");
    assert_non_null(cleat_cl_name(-12345));
    const cl_int memory[] = {-4, -5, -6, -61};
    for (int i = 0; i < 4; ++i) assert_int_equal(cleat_cl_fail(&error, memory[i], "x"), CLEAT_ERR_DEVICE_MEMORY);
    assert_int_equal(cleat_cl_fail(&error, CL_INVALID_KERNEL, "kernel '%s'", "k"), CLEAT_ERR_DEVICE);
    assert_string_equal(error.text, "kernel 'k': CL_INVALID_KERNEL (-48)");
    assert_int_equal(error.cl_code, CL_INVALID_KERNEL);
    assert_int_equal(cleat_cl_fail(NULL, CL_INVALID_KERNEL, "x"), CLEAT_ERR_DEVICE);
}

static void test_no_host_memory(void **state) {
    cleat_device *opened = NULL;
    (void)state;
    for (long n = 1; !opened; ++n) {
        cleat_fail_allocation(n);
        cleat_status status = cleat_device_open(NULL, &opened, NULL);
        assert_true(!status || status == CLEAT_ERR_MEMORY);
        assert_true((!status) == (opened != NULL));
    }
    cleat_fail_allocation(0);
    cleat_device_close(opened);
}

int main(int argc, char **argv) {
    if (argc > 1) {
        if (strcmp(argv[1], "no-driver") == 0) return check_without_drivers();
        if (strcmp(argv[1], "shape-gpu") == 0) return check_shape(256, 4);
        if (strcmp(argv[1], "shape-cpu") == 0) return check_shape(1, 16);
        if (strcmp(argv[1], "memory-limit") == 0) return check_memory_limit();
        return 98;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_facts_are_plausible),
        cmocka_unit_test(test_list_and_open_agree),
        cmocka_unit_test(test_unknown_selector),
        cmocka_unit_test(test_no_driver),
        cmocka_unit_test(test_environment),
        cmocka_unit_test(test_buffers_are_counted),
        cmocka_unit_test(test_zeroing),
        cmocka_unit_test(test_large_buffers),
        cmocka_unit_test(test_impossible_buffers),
        cmocka_unit_test(test_error_names),
        cmocka_unit_test(test_no_host_memory),
    };
    device = open_device();
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    cleat_device_close(device);
    return failures;
}
