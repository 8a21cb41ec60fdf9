/* The binary cache: hits, misses, and invalid entries. */
/* ctest: device */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/files.h"
#include "core/memory.h"
#include "device/programs.h"
#include "open_device.h"
#include "platform/files.h"
#include "platform/processes.h"

#define SOURCE "__kernel void fill(__global int *x) { x[get_global_id(0)] = VALUE; }\n"
#define OPTIONS "-cl-std=CL1.2 -DVALUE=41"

static cleat_device *device;
static char folder[64];
static char path[512];

static cl_program build(const char *options) {
    const char *source = SOURCE;
    cl_program program = clCreateProgramWithSource(device->context, 1, &source, NULL, NULL);
    assert_int_equal(clBuildProgram(program, 1, &device->id, options, NULL, NULL), CL_SUCCESS);
    return program;
}

/* Each test starts with one saved entry in a separate folder. */
static int save_one(void **state) {
    cleat_error error;
    (void)state;
    make_folder(folder, sizeof folder);
    setenv("CLEAT_CACHE_DIR", folder, 1);
    setenv("CLEAT_BINARY_CACHE", "always", 1);
    cl_program program = build(OPTIONS);
    cleat_binary_save(device, SOURCE, OPTIONS, program);
    clReleaseProgram(program);
    if (cleat_binary_path(device, SOURCE, OPTIONS, path, sizeof path, &error)) return -1;
    return 0;
}

static int remove_all(void **state) {
    (void)state;
    remove_folder(folder);
    unsetenv("CLEAT_BINARY_CACHE");
    return unsetenv("CLEAT_CACHE_DIR");
}

static int value_from(cl_program program) {
    cl_int code = CL_SUCCESS;
    int value = 0;
    size_t one = 1;
    cl_mem buffer = clCreateBuffer(device->context, CL_MEM_READ_WRITE, sizeof value, NULL, NULL);
    cl_kernel kernel = clCreateKernel(program, "fill", &code);
    assert_int_equal(code, CL_SUCCESS);
    clSetKernelArg(kernel, 0, sizeof buffer, &buffer);
    assert_int_equal(clEnqueueNDRangeKernel(device->compute, kernel, 1, NULL, &one, &one, 0, NULL, NULL), CL_SUCCESS);
    assert_int_equal(clEnqueueReadBuffer(device->compute, buffer, CL_TRUE, 0, sizeof value, &value, 0, NULL, NULL), 0);
    clReleaseKernel(kernel);
    clReleaseMemObject(buffer);
    return value;
}

static void expect_hit(void) {
    cl_program program = cleat_binary_load(device, SOURCE, OPTIONS);
    assert_non_null(program);
    assert_int_equal(value_from(program), 41);
    clReleaseProgram(program);
}

static void expect_miss(void) {
    assert_null(cleat_binary_load(device, SOURCE, OPTIONS));
}

static char *read_entry(size_t *size) {
    char *data = NULL;
    assert_int_equal(cleat_file_read(path, &data, size, NULL), CLEAT_OK);
    return data;
}

static void write_entry(const void *data, size_t size) {
    assert_int_equal(cleat_file_write(path, data, size, NULL), CLEAT_OK);
}

static void test_hit(void **state) {
    (void)state;
    expect_hit();
}

static void test_other_source_or_options_miss(void **state) {
    (void)state;
    assert_null(cleat_binary_load(device, SOURCE, "-cl-std=CL1.2 -DVALUE=42"));
    assert_null(cleat_binary_load(device, SOURCE "\n", OPTIONS));
}

static void test_other_driver_misses(void **state) {
    char driver[sizeof device->facts.driver];
    (void)state;
    memcpy(driver, device->facts.driver, sizeof driver);
    strcpy(device->facts.driver, "0.0");
    expect_miss();
    memcpy(device->facts.driver, driver, sizeof driver);
    expect_hit();
}

/* An entry renamed to the file name of another key does not match that key. */
static void test_renamed_entry_misses(void **state) {
    char other[512];
    (void)state;
    assert_int_equal(cleat_binary_path(device, SOURCE, "-DVALUE=5", other, sizeof other, NULL), CLEAT_OK);
    assert_int_equal(rename(path, other), 0);
    assert_null(cleat_binary_load(device, SOURCE, "-DVALUE=5"));
}

static void test_truncated_at_any_place(void **state) {
    size_t size = 0;
    char *data = read_entry(&size);
    (void)state;
    for (size_t length = 0; length < size; length += 1 + size / 40) {
        write_entry(data, length);
        expect_miss();
    }
    write_entry(data, size);
    expect_hit();
    cleat_free(data);
}

static void test_any_flipped_bit(void **state) {
    size_t size = 0;
    char *data = read_entry(&size);
    (void)state;
    for (size_t i = 0; i < size; i += i < 32 ? 1 : 1 + size / 40) {
        if (i >= 64 && i < 104) continue; /* zero padding after a key or hash */
        data[i] ^= 4;
        write_entry(data, size);
        cl_program program = cleat_binary_load(device, SOURCE, OPTIONS);
        if (program) fail_msg("byte %zu of %zu", i, size);
        data[i] ^= 4;
    }
    cleat_free(data);
}

/* A binary that the driver rejects although the entry is intact. */
static void test_refused_by_the_driver(void **state) {
    size_t size = 0;
    char *data = read_entry(&size), hash[33];
    uint64_t length = 12;
    const size_t body = 8 + 8 + 8 + 40 + 40;
    (void)state;
    memcpy(data + body, "not a binary", 12);
    memcpy(data + 16, &length, sizeof length);
    cleat_hash_text(data + body, 12, hash);
    memcpy(data + 64, hash, sizeof hash);
    write_entry(data, body + 12);
    expect_miss();
    cleat_free(data);
}

static void test_switched_off(void **state) {
    (void)state;
    setenv("CLEAT_BINARY_CACHE", "never", 1);
    expect_miss();
    unlink(path);
    cl_program program = build(OPTIONS);
    cleat_binary_save(device, SOURCE, OPTIONS, program);
    clReleaseProgram(program);
    assert_false(cleat_file_exists(path));
}

/* If the folder cannot be written, only saving fails. */
static void test_no_folder(void **state) {
    (void)state;
    setenv("CLEAT_CACHE_DIR", "/proc/nowhere", 1);
    cl_program program = build(OPTIONS);
    cleat_binary_save(device, SOURCE, OPTIONS, program);
    clReleaseProgram(program);
    expect_miss();
    setenv("CLEAT_CACHE_DIR", folder, 1);
}

/* End to end: build, save, damage, build again. */
static void test_programs_build_falls_back(void **state) {
    char kernels[64];
    const cleat_program_key key = {"fill.cl", "-DVALUE=6", NULL};
    const bool is_pocl = cleat_device_get_facts(device)->vendor == CLEAT_VENDOR_POCL;
    const char *options = is_pocl ? "-cl-std=CL1.2 -w -DVALUE=6" : "-cl-std=CL1.2 -DVALUE=6";
    cleat_error error;
    (void)state;
    make_folder(kernels, sizeof kernels);
    put_file(kernels, "fill.cl", SOURCE);
    setenv("CLEAT_KERNEL_DIR", kernels, 1);
    for (int round = 0; round < 4; ++round) {
        cl_program program = NULL;
        if (build_program(device, &key, &program, &error)) fail_msg("%s", error.text);
        assert_int_equal(value_from(program), 6);
        clReleaseProgram(program);
        char *source = NULL, name[512];
        assert_int_equal(cleat_kernel_source("fill.cl", &source, &error), CLEAT_OK);
        assert_int_equal(cleat_binary_path(device, source, options, name, sizeof name, &error), CLEAT_OK);
        cleat_free(source);
        assert_true(cleat_file_exists(name));
        if (round >= 1) assert_int_equal(truncate(name, 150), 0);
    }
    unsetenv("CLEAT_KERNEL_DIR");
    remove_folder(kernels);
}

int main(void) {
#define CACHE_TEST(test) cmocka_unit_test_setup_teardown(test, save_one, remove_all)
    const struct CMUnitTest tests[] = {
        CACHE_TEST(test_hit),
        CACHE_TEST(test_other_source_or_options_miss),
        CACHE_TEST(test_other_driver_misses),
        CACHE_TEST(test_renamed_entry_misses),
        CACHE_TEST(test_truncated_at_any_place),
        CACHE_TEST(test_any_flipped_bit),
        CACHE_TEST(test_refused_by_the_driver),
        CACHE_TEST(test_switched_off),
        CACHE_TEST(test_no_folder),
        CACHE_TEST(test_programs_build_falls_back),
    };
    device = open_device();
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    cleat_device_close(device);
    return failures;
}
