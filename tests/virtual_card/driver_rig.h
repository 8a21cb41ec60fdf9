/* Shared by the driver tests of the virtual card: an open device, buffers, kernels, and the driver's faults. */
#ifndef VIRTUAL_CARD_DRIVER_RIG_H
#define VIRTUAL_CARD_DRIVER_RIG_H

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

typedef struct rig {
    cl_platform_id platform;
    cl_device_id device;
    cl_context context;
    cl_command_queue queue, other;
    unsigned (*faults)(void);
    const char *(*last_fault)(void);
    unsigned seen; /* faults that a test expected */
} rig;

int rig_open(void **state);

/* Fails if the driver has reported a fault that the test did not expect. */
int rig_close_state(void **state);
void rig_close(rig *r);

#define RIG_TEST(test) cmocka_unit_test_setup_teardown(test, rig_open, rig_close_state)

/* Whether the card's compiler was found; tests are skipped without it. */
bool rig_has_compiler(void);

cl_mem rig_buffer(rig *r, cl_mem_flags flags, size_t bytes);

/* A built program, or the build error. */
cl_int rig_build(rig *r, const char *source, const char *options, cl_program *program);

/* The kernel `run` of a source; its program is released. */
cl_kernel rig_kernel(rig *r, const char *source);

/* Enqueues a launch with this global and local size. */
cl_int rig_launch(rig *r, cl_kernel kernel, size_t global, size_t local);

/* Runs the function in a child process that exits with 0. Returns the exit code after the driver's checks. */
int rig_exit_code(rig *r, void (*act)(rig *), bool strict);

/* Asserts that the driver has reported a new fault that contains the text. */
void rig_expect_fault(rig *r, const char *text);

#endif
