/* Files of kernels that may be part of one program (kernel_source.c): all of them together compile, in every storage type
 * and shape, and macros of one do not reach the next. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/memory.h"
#include "core/text.h"
#include "device/device.h"

static cleat_device *device;

static char *all_names(void) {
    cleat_text names = {0};
    char *taken;
    for (const char *const *name = cleat_joinable_kernels; *name; ++name)
        cleat_text_add(&names, "%s%s", names.size ? "+" : "", *name);
    assert_int_equal(cleat_text_detach(&names, &taken, NULL), CLEAT_OK);
    return taken;
}

static void all_compile_together(void **state) {
    static const char *const options[] = {"-DSTORAGE_F32 -DWG=1 -DVEC=16", "-DSTORAGE_F16 -DWG=1 -DVEC=16",
                                          "-DSTORAGE_BF16 -DWG=1 -DVEC=16", "-DSTORAGE_F32 -DWG=256 -DVEC=4",
                                          "-DSTORAGE_F16 -DWG=64 -DVEC=4"};
    char *names = all_names();
    (void)state;
    for (size_t i = 0; i < sizeof options / sizeof *options; ++i) {
        const cleat_program_key key = {.file = names, .options = options[i]};
        cleat_programs *programs;
        cl_program program;
        cleat_error error = {0};
        assert_int_equal(cleat_programs_start(device, &key, 1, &programs, NULL), CLEAT_OK);
        const cleat_status status = cleat_programs_get(programs, 0, &program, &error);
        cleat_programs_destroy(programs);
        if (status) fail_msg("%s", error.text);
    }
    cleat_free(names);
}

/* Each macro of a file is undefined behind it. */
static void macros_end_with_their_file(void **state) {
    char *source;
    (void)state;
    assert_true(cleat_kernel_may_join("frame_loss.cl") && !cleat_kernel_may_join("conv/conv.cl"));
    assert_int_equal(cleat_kernel_source("frame_loss.cl+grad_norm.cl", &source, NULL), CLEAT_OK);
    const char *next = strstr(source, "#line 1 \"grad_norm.cl\""), *gone = strstr(source, "#undef NEAR\n");
    assert_non_null(next);
    assert_true(gone && gone < next);
    assert_non_null(strstr(next, "#undef BLOCK\n"));
    cleat_free(source);
    assert_int_equal(cleat_kernel_source("frame_loss.cl", &source, NULL), CLEAT_OK);
    assert_null(strstr(source, "#undef NEAR\n"));
    cleat_free(source);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_compile_together),
                                       cmocka_unit_test(macros_end_with_their_file)};
    const char *selector = getenv("CLEAT_TEST_DEVICE");
    cleat_error error = {0};
    if (cleat_device_open(selector ? selector : "auto", &device, &error)) {
        print_message("skipped, no device: %s\n", error.text);
        return 77;
    }
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    cleat_device_close(device);
    return failed;
}
