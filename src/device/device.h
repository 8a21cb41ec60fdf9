/* The inside of a device: the only room (with exec) that speaks OpenCL. */
#ifndef CLEAT_SRC_DEVICE_H
#define CLEAT_SRC_DEVICE_H

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include "cleat/device.h"

struct cleat_device {
    cleat_device_facts facts;
    cl_platform_id platform;
    cl_device_id id;
    cl_context context;
    cl_command_queue compute;  /* in order */
    cl_command_queue transfer; /* in order; host -> device while the compute queue works */
    int64_t allocated, peak;
    uint32_t quirks;
    long fail_buffer; /* tests: the n-th buffer from here on fails (1: the next), 0: none does, -1: all do */
    long fail_launch; /* tests: the same of kernels that are enqueued */
};

/* "CL_OUT_OF_RESOURCES" */
const char *cleat_cl_name(cl_int code);
/* Fails with the OpenCL error by name; memory-class errors (-4, -5, -6, -61) become CLEAT_ERR_DEVICE_MEMORY,
 * others CLEAT_ERR_DEVICE. */
cleat_status cleat_cl_fail(cleat_error *error, cl_int code, const char *format, ...) CLEAT_PRINTF(3, 4);

/* A device buffer, counted in allocated/peak, really present after the call (drivers allocate lazily: it is
 * touched). Its contents are undefined until cleat_buffer_zero, which waits. */
cleat_status cleat_buffer_create(cleat_device *device, int64_t bytes, cl_mem *buffer, cleat_error *error);
cleat_status cleat_buffer_zero(cleat_device *device, cl_mem buffer, int64_t bytes, cleat_error *error);
void cleat_buffer_release(cleat_device *device, cl_mem buffer, int64_t bytes);

/* Programs (kernels.c): one wanted program = (file, options). */
typedef struct cleat_program_key {
    const char *file;
    const char *options;
} cleat_program_key;

/* Builds programs [count] in parallel, each from the binary cache where a valid entry exists, else from
 * source (saved afterwards). On success programs[i] is owned by the caller (clReleaseProgram). On failure the
 * error holds the build log. */
cleat_status cleat_programs_build(cleat_device *device, const cleat_program_key *keys, size_t count,
                                  cl_program *programs, cleat_error *error);
/* The full source of a kernel file: embedded, or from $CLEAT_KERNEL_DIR; its #include "x.clh" lines resolved.
 * The caller frees it. */
cleat_status cleat_kernel_source(const char *file, char **source, cleat_error *error);

/* C[m, n] = A B + beta C in f32, row-major and dense (clblast.c). trans_a: A is stored [k, m]; trans_b: B is stored
 * [n, k]. Offsets in elements. */
typedef struct cleat_clblast_product {
    bool trans_a, trans_b;
    int64_t m, n, k;
    cl_mem a, b, c;
    int64_t a_offset, b_offset, c_offset;
    float beta;
    cl_mem workspace; /* where copies of A, B and C go; NULL: CLBlast allocates what it needs by itself */
} cleat_clblast_product;

/* Bytes of workspace that CLBlast, with the parameters it has for this device, needs for the product. */
cleat_status cleat_clblast_workspace(cleat_device *device, const cleat_clblast_product *product, int64_t *bytes,
                                     cleat_error *error);
/* Enqueues the product on the compute queue. */
cleat_status cleat_clblast_sgemm(cleat_device *device, const cleat_clblast_product *product, cleat_error *error);

#endif
