/* The inside of a device: the only room (with exec) that speaks OpenCL. */
#ifndef CLEAT_SRC_DEVICE_H
#define CLEAT_SRC_DEVICE_H

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include "cleat/device.h"
#include "core/clblast_parameters.h"

struct cleat_device {
    cleat_device_facts facts;
    cl_platform_id platform;
    cl_device_id id;
    cl_context context;
    cl_command_queue compute;  /* in order */
    cl_command_queue transfer; /* in order; host -> device while the compute queue works */
    int64_t allocated, peak;
    uint32_t quirks;
    bool clblast_tuned;               /* CLBlast has ... */
    cleat_clblast_parameters clblast; /* ... these parameters instead of those it comes with */
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

/* One wanted program. */
typedef struct cleat_program_key {
    const char *file;
    const char *options;
} cleat_program_key;

/* Programs that are built in the background, several at once, in the order of their keys (programs.c). */
typedef struct cleat_programs cleat_programs;

typedef struct cleat_program_stats {
    size_t count;  /* of keys */
    size_t built;  /* so far, from source; the driver may have a cache of its own */
    size_t loaded; /* so far, from the binary cache */
    double waited; /* seconds cleat_programs_get took in all */
} cleat_program_stats;

/* Starts building keys [count]; device, keys and their texts must outlive the programs. Programs that fail do so in
 * cleat_programs_get. */
cleat_status cleat_programs_start(cleat_device *device, const cleat_program_key *keys, size_t count,
                                  cleat_programs **programs, cleat_error *error);
/* Whether program `index` can be had without waiting. */
bool cleat_programs_is_ready(cleat_programs *programs, size_t index);
/* Program `index`, which stays the programs'; waits until it is built, and builds it where nobody has begun to. The error
 * of a program that does not compile holds the build log. */
cleat_status cleat_programs_get(cleat_programs *programs, size_t index, cl_program *program, cleat_error *error);
cleat_program_stats cleat_programs_count(cleat_programs *programs);
/* Ends the builds that are under way and releases all programs. NULL is fine. */
void cleat_programs_destroy(cleat_programs *programs);

/* The full source of a kernel file: embedded, or from $CLEAT_KERNEL_DIR; its #include "x.clh" lines resolved.
 * The caller frees it. */
cleat_status cleat_kernel_source(const char *file, char **source, cleat_error *error);

/* C[m, n] = A B + beta C in f32, row-major and dense (clblast.c). trans_a: A is stored [k, m]; trans_b: B is stored
 * [n, k]. Offsets in elements. */
typedef struct cleat_clblast_gemm {
    bool trans_a, trans_b;
    int64_t m, n, k;
    cl_mem a, b, c;
    int64_t a_offset, b_offset, c_offset;
    float beta;
    cl_mem workspace; /* where copies of A, B and C go; NULL: CLBlast allocates what it needs by itself */
} cleat_clblast_gemm;

/* Makes CLBlast compute with `parameters` from now on. CLBlast keeps them by device for the whole process, whoever opens
 * it, and has no way back to its own ones. CLEAT_ERR_ARGUMENT: this device cannot run them; CLEAT_ERR_DEVICE: this CLBlast
 * knows others. */
cleat_status cleat_clblast_override(cleat_device *device, const cleat_clblast_parameters *parameters,
                                    cleat_error *error);
/* Bytes of workspace that CLBlast, with the parameters it has for this device, needs for the product. */
cleat_status cleat_clblast_workspace(cleat_device *device, const cleat_clblast_gemm *gemm, int64_t *bytes,
                                     cleat_error *error);
/* Enqueues the product on the compute queue. */
cleat_status cleat_clblast_sgemm(cleat_device *device, const cleat_clblast_gemm *gemm, cleat_error *error);

#endif
