/* Kernel sources and program builds. */
/* ctest: device */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/memory.h"
#include "device/embedded.h"
#include "open_device.h"
#include "platform/processes.h"

static cleat_device *device;
static char folder[64];

static int use_folder(void **state) {
    (void)state;
    make_folder(folder, sizeof folder);
    return setenv("CLEAT_KERNEL_DIR", folder, 1);
}

static int leave_folder(void **state) {
    (void)state;
    remove_folder(folder);
    return unsetenv("CLEAT_KERNEL_DIR");
}

static void expect_source(const char *file, const char *expected) {
    char *source = NULL;
    cleat_error error;
    if (cleat_kernel_source(file, &source, &error)) fail_msg("%s", error.text);
    assert_string_equal(source, expected);
    cleat_free(source);
}

static void expect_no_source(const char *file, const char *word) {
    char *source = NULL;
    cleat_error error;
    assert_int_equal(cleat_kernel_source(file, &source, &error), CLEAT_ERR_NOT_FOUND);
    assert_null(source);
    if (!strstr(error.text, word)) fail_msg("'%s' is not in: %s", word, error.text);
}

static size_t count_of(const char *text, const char *word) {
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, word)); at += strlen(word)) ++count;
    return count;
}

/* --- sources --- */

static void test_every_embedded_kernel_resolves(void **state) {
    (void)state;
    assert_non_null(cleat_embedded_kernels[0].name);
    for (const cleat_embedded_file *kernel = cleat_embedded_kernels; kernel->name; ++kernel) {
        char *source = NULL;
        cleat_error error;
        if (cleat_kernel_source(kernel->name, &source, &error)) fail_msg("%s", error.text);
        assert_int_equal(count_of(source, "#include"), 0);
        cleat_free(source);
    }
}

static void test_includes_are_put_in_place_once(void **state) {
    (void)state;
    put_file(folder, "a.cl", "one\n  #  include \"b.clh\"\n#include \"c.clh\" // why\ntwo");
    put_file(folder, "b.clh", "#include \"c.clh\"\nbee\n");
    put_file(folder, "c.clh", "sea");
    expect_source("a.cl", "#line 1 \"a.cl\"\none\n#line 1 \"b.clh\"\n#line 1 \"c.clh\"\nsea\n#line 2 \"b.clh\"\nbee\n"
                          "#line 3 \"a.cl\"\n#line 4 \"a.cl\"\ntwo\n");
}

static void test_circles_end(void **state) {
    (void)state;
    put_file(folder, "a.cl", "#include \"b.clh\"\n");
    put_file(folder, "b.clh", "#include \"a.cl\"\n");
    expect_source("a.cl", "#line 1 \"a.cl\"\n#line 1 \"b.clh\"\n#line 2 \"b.clh\"\n#line 2 \"a.cl\"\n");
}

static void test_folder_comes_before_library(void **state) {
    char *source = NULL;
    (void)state;
    put_file(folder, "a.cl", "#include \"lib/common.clh\"\n");
    assert_int_equal(cleat_kernel_source("a.cl", &source, NULL), CLEAT_OK);
    assert_non_null(strstr(source, "floatv")); /* not in the folder: uses the built-in source */
    cleat_free(source);
    put_file(folder, "lib/common.clh", "mine\n");
    expect_source("lib/common.clh", "#line 1 \"lib/common.clh\"\nmine\n");
}

static void test_missing_files(void **state) {
    (void)state;
    expect_no_source("nothing.cl", "nothing.cl");
    put_file(folder, "a.cl", "one\n#include \"nothing.clh\"\n");
    expect_no_source("a.cl", "a.cl:2: kernel file 'nothing.clh'");
    setenv("CLEAT_KERNEL_DIR", "/no/such/folder", 1);
    expect_no_source("lib/common.clh", "/no/such/folder");
}

static void test_empty_file(void **state) {
    (void)state;
    put_file(folder, "a.cl", "");
    expect_source("a.cl", "#line 1 \"a.cl\"\n");
}

/* --- builds --- */

static cleat_programs *start(const cleat_program_key *keys, size_t count) {
    cleat_programs *programs = NULL;
    cleat_error error;
    if (cleat_programs_start(device, keys, count, NULL, &programs, &error)) fail_msg("%s", error.text);
    return programs;
}

static void test_build_log_is_shown(void **state) {
    const cleat_program_key keys[] = {{"bad.cl", "-DN=7", NULL}, {"good.cl", "-DN=1", NULL}};
    cl_program program = NULL;
    cleat_error error;
    (void)state;
    put_file(folder, "good.cl", "__kernel void good(__global int *x) { x[0] = N; }\n");
    put_file(folder, "bad.cl", "\n\n__kernel void bad(__global int *x) { x[0] = nobody_knows_me; }\n");
    cleat_programs *programs = start(keys, 2);
    assert_int_equal(cleat_programs_get(programs, 0, &program, &error), CLEAT_ERR_BUILD);
    assert_null(program);
    const char *words[] = {"bad.cl", "-DN=7", "nobody_knows_me", "CL_BUILD_PROGRAM_FAILURE"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; ++i)
        if (!strstr(error.text, words[i])) fail_msg("'%s' is not in: %s", words[i], error.text);
    if (cleat_device_get_facts(device)->vendor == CLEAT_VENDOR_POCL) /* Oclgrind ignores #line */
        assert_non_null(strstr(error.text, "bad.cl:3"));
    assert_int_equal(error.cl_code, CL_BUILD_PROGRAM_FAILURE);
    assert_int_equal(cleat_programs_get(programs, 0, &program, NULL), CLEAT_ERR_BUILD);
    /* the other program is unaffected */
    assert_int_equal(cleat_programs_get(programs, 1, &program, &error), CLEAT_OK);
    cleat_program_stats stats = cleat_programs_count(programs);
    assert_int_equal(stats.count, 2);
    assert_int_equal(stats.built + stats.loaded, 1);
    cleat_programs_destroy(programs);
}

static void test_long_log_keeps_the_error(void **state) {
    const cleat_program_key key = {"bad.cl", "", NULL};
    static char source[20000];
    cl_program program = NULL;
    cleat_error error;
    (void)state;
    strcpy(source, "__kernel void bad(__global int *x) {\n");
    for (int i = 0; i < 60; ++i) strcat(source, "x[0] = 1 / 0;\n");
    strcat(source, "x[0] = nobody_knows_me; }\n");
    put_file(folder, "bad.cl", source);
    assert_int_equal(build_program(device, &key, &program, &error), CLEAT_ERR_BUILD);
    if (!strstr(error.text, "nobody_knows_me")) fail_msg("%s", error.text);
}

enum { MANY = 6 };

static char many_options[MANY][32];

static void make_many(cleat_program_key keys[MANY]) {
    put_file(folder, "good.cl", "__kernel void good(__global int *x) { x[0] = N; }\n");
    for (int i = 0; i < MANY; ++i) {
        snprintf(many_options[i], sizeof many_options[i], "-DN=%d", i);
        keys[i] = (cleat_program_key){"good.cl", many_options[i], NULL};
    }
}

/* Requests programs from the last to the first: the caller builds some itself and waits for others. */
static void test_many_programs(void **state) {
    cleat_program_key keys[MANY];
    cleat_error error;
    (void)state;
    make_many(keys);
    cleat_programs *programs = start(keys, MANY);
    for (size_t i = MANY; i-- > 0;) {
        cl_int code = CL_SUCCESS;
        cl_program program = NULL, again = NULL;
        if (cleat_programs_get(programs, i, &program, &error)) fail_msg("%s", error.text);
        assert_true(cleat_programs_is_ready(programs, i));
        assert_int_equal(cleat_programs_get(programs, i, &again, &error), CLEAT_OK);
        assert_ptr_equal(program, again);
        cl_kernel kernel = clCreateKernel(program, "good", &code);
        assert_int_equal(code, CL_SUCCESS);
        clReleaseKernel(kernel);
    }
    cleat_program_stats stats = cleat_programs_count(programs);
    assert_int_equal(stats.built + stats.loaded, MANY);
    assert_true(stats.waited > 0);
    cleat_programs_destroy(programs);
}

/* The queue is destroyed while builds are in any state. */
static void test_destroyed_at_any_time(void **state) {
    cleat_program_key keys[MANY];
    cl_program program = NULL;
    cleat_error error;
    (void)state;
    make_many(keys);
    cleat_programs_destroy(NULL);
    cleat_programs_destroy(start(keys, 0));
    cleat_programs_destroy(start(keys, MANY));
    for (size_t i = 0; i < MANY; ++i) {
        cleat_programs *programs = start(keys, MANY);
        if (cleat_programs_get(programs, i, &program, &error)) fail_msg("%s", error.text);
        cleat_programs_destroy(programs);
    }
}

static void test_no_host_memory(void **state) {
    const cleat_program_key key = {"good.cl", "", NULL};
    cl_program program = NULL;
    (void)state;
    put_file(folder, "good.cl", "__kernel void good(__global int *x) { x[0] = 1; }\n");
    for (long n = 1; !program; ++n) {
        cleat_fail_allocation(n);
        cleat_status status = build_program(device, &key, &program, NULL);
        assert_true(!status || status == CLEAT_ERR_MEMORY);
        assert_true((!status) == (program != NULL));
    }
    cleat_fail_allocation(0);
    clReleaseProgram(program);
}

int main(void) {
#define FOLDER_TEST(test) cmocka_unit_test_setup_teardown(test, use_folder, leave_folder)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_embedded_kernel_resolves),
        FOLDER_TEST(test_includes_are_put_in_place_once),
        FOLDER_TEST(test_circles_end),
        FOLDER_TEST(test_folder_comes_before_library),
        FOLDER_TEST(test_missing_files),
        FOLDER_TEST(test_empty_file),
        FOLDER_TEST(test_build_log_is_shown),
        FOLDER_TEST(test_long_log_keeps_the_error),
        FOLDER_TEST(test_many_programs),
        FOLDER_TEST(test_destroyed_at_any_time),
        FOLDER_TEST(test_no_host_memory),
    };
    device = open_device();
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    cleat_device_close(device);
    return failures;
}
