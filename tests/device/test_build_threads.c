/* Programs are built in several threads if the driver allows it: on a card a run has 30 to 60 programs, each
 * of which takes its compiler a tenth of a second or more. */
/* ctest: device quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "core/cpus.h"
#include "device/probe.h"
#include "open_device.h"
#include "platform/processes.h"
#include "platform/system.h"

enum { PROGRAMS = 4, MANY = 20 /* more than threads */, PATIENCE_MS = 5000, LONGEST_BUILD_MS = 120000 };

static cleat_device *device;
static _Atomic int in_flight, most_in_flight;

static void wait_ms(long ms) {
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

static const cleat_program_key keys[PROGRAMS] = {{"pointwise.cl", "-DSTORAGE_F32 -DWG=1 -DVEC=4 -DNUMBER=0", NULL},
                                                 {"pointwise.cl", "-DSTORAGE_F32 -DWG=1 -DVEC=4 -DNUMBER=1", NULL},
                                                 {"pointwise.cl", "-DSTORAGE_F32 -DWG=1 -DVEC=4 -DNUMBER=2", NULL},
                                                 {"pointwise.cl", "-DSTORAGE_F32 -DWG=1 -DVEC=4 -DNUMBER=3", NULL}};

/* Interposes the driver's function: a build waits a limited time for a second one to begin. */
CLEAT_API cl_int clBuildProgram(cl_program program, cl_uint n, const cl_device_id *devices, const char *options,
                                void(CL_CALLBACK *notify)(cl_program, void *), void *user) {
    const int now = ++in_flight;
    if (now > most_in_flight) most_in_flight = now;
    for (int waited = 0; most_in_flight < 2 && waited < PATIENCE_MS; waited += 10) wait_ms(10);
    __typeof__(&clBuildProgram) next = (__typeof__(&clBuildProgram))dlsym(RTLD_NEXT, "clBuildProgram");
    const cl_int code = next(program, n, devices, options, notify, user);
    --in_flight;
    return code;
}

/* The threads build all programs, requested or not. */
static void no_program_waits_to_be_asked_for(void **state) {
    cleat_programs *programs = NULL;
    cleat_error error = {0};
    cleat_program_key many[MANY];
    size_t ready = 0;
    (void)state;
    if (device->quirks & CLEAT_QUIRK_ONE_BUILD_THREAD) skip();
    for (size_t i = 0; i < MANY; ++i) many[i] = keys[i % PROGRAMS];
    if (cleat_programs_start(device, many, MANY, NULL, &programs, &error)) fail_msg("%s", error.text);
    for (int waited = 0; ready < MANY && waited < LONGEST_BUILD_MS; waited += 10) {
        wait_ms(10);
        ready = 0;
        for (size_t i = 0; i < MANY; ++i) ready += cleat_programs_is_ready(programs, i);
    }
    assert_int_equal(ready, MANY);
    cleat_programs_destroy(programs);
}

static void several_programs_are_built_at_once(void **state) {
    cleat_programs *programs = NULL;
    cleat_error error = {0};
    (void)state;
    if (cleat_programs_start(device, keys, PROGRAMS, NULL, &programs, &error)) fail_msg("%s", error.text);
    for (size_t i = 0; i < PROGRAMS; ++i) {
        cl_program program = NULL;
        if (cleat_programs_get(programs, i, &program, &error)) fail_msg("%s", error.text);
        assert_non_null(program);
    }
    assert_int_equal(cleat_programs_count(programs).built, PROGRAMS);
    cleat_programs_destroy(programs);
    if (device->quirks & CLEAT_QUIRK_ONE_BUILD_THREAD)
        assert_int_equal(most_in_flight, 1);
    else
        assert_true(most_in_flight >= 2);
}

int main(void) {
    setenv("CLEAT_BINARY_CACHE", "never", 1);
    device = open_device();
    if (cleat_cpus() < 2) return 77;
    const struct CMUnitTest tests[] = {cmocka_unit_test(several_programs_are_built_at_once),
                                       cmocka_unit_test(no_program_waits_to_be_asked_for)};
    const int failures = cmocka_run_group_tests(tests, NULL, NULL);
    cleat_device_close(device);
    return failures;
}
