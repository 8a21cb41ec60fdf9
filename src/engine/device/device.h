/* Internal definition of a device. Only this room, exec and the CLBlast tuner of bench call OpenCL. */
#ifndef CLEAT_SRC_DEVICE_H
#define CLEAT_SRC_DEVICE_H

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include "cleat/device.h"
#include "core/clblast_parameters.h"
#include "platform/threads.h"

/* Marked commands whose completion has not been queried; the oldest are dropped first. */
enum { CLEAT_DEVICE_MARKS = 128 };
typedef struct cleat_recorder cleat_recorder; /* recorder.h */

struct cleat_device {
    cleat_device_facts facts;
    cl_platform_id platform;
    cl_device_id id;
    cl_context context;
    cl_command_queue compute;  /* in order */
    cl_command_queue transfer; /* in order; transfers host -> device while the compute queue works */
    pthread_mutex_t activity;  /* protects `last` and the marks */
    cl_event last;             /* the last command of the compute queue that cleat_device_enqueued was told; or NULL */
    /* A ring of commands and their numbers (cleat_device_mark), under `activity`. */
    struct {
        cl_event event; /* NULL: complete when it was marked */
        int64_t number;
    } marks[CLEAT_DEVICE_MARKS];
    size_t first_mark, mark_count;
    int64_t marked;                              /* number of the last completed one */
    const struct cleat_compile_helpers *helpers; /* cleat_device_compile_with; NULL: none */
    cleat_recorder *recorder;                    /* records the commands of both queues; NULL: nothing is recorded */
    int64_t allocated, peak;
    uint32_t quirks;
    bool clblast_tuned; /* CLBlast uses `clblast` instead of its default parameters */
    cleat_clblast_parameters clblast;
    /* For tests: the n-th buffer from now on fails (1: the next), 0: none fails, -1: all fail. */
    long fail_buffer;
    long fail_launch;      /* for tests: the same for enqueued kernels */
    bool fail_timed_queue; /* for tests: queues that keep times cannot be created */
};

/* The name of an OpenCL error code: "CL_OUT_OF_RESOURCES". Static string. */
const char *cleat_cl_name(cl_int code);
/* Fails with the OpenCL error by name. Memory errors (-4, -5, -6, -61) become CLEAT_ERR_DEVICE_MEMORY, others
 * CLEAT_ERR_DEVICE. */
cleat_status cleat_cl_fail(cleat_error *error, cl_int code, const char *format, ...) CLEAT_PRINTF(3, 4);

/* Whether the driver refuses any further command for this device, even in a new queue. */
bool cleat_device_is_lost(const cleat_device *device);
/* Returns `status`, with which a command or a wait has failed. If the device is lost, `error` (may be NULL)
 * says so and the result is CLEAT_ERR_DEVICE, also where the driver's code means that memory is short. */
cleat_status cleat_device_explain(const cleat_device *device, cleat_status status, cleat_error *error);

/* Whether a build failed because PoCL's compiler does not support the processor; `log`: its messages. */
bool cleat_processor_is_unknown(const cleat_device_facts *facts, const char *log);
/* Reports it with the versions of PoCL and LLVM. */
void cleat_explain_processor(cl_platform_id platform, const cleat_device_facts *facts, char *text, size_t size);

/* Creates a device buffer of `bytes` bytes, counts it in allocated/peak and touches it, because drivers
 * allocate lazily: it physically exists after the call. Its contents are undefined until cleat_buffer_zero,
 * which waits for completion. Release it with cleat_buffer_release and the same `bytes`. */
cleat_status cleat_buffer_create(cleat_device *device, int64_t bytes, cl_mem *buffer, cleat_error *error);
cleat_status cleat_buffer_zero(cleat_device *device, cl_mem buffer, int64_t bytes, cleat_error *error);
void cleat_buffer_release(cleat_device *device, cl_mem buffer, int64_t bytes);

/* Records the last command of a run of kernels on the compute queue, for cleat_device_is_idle. The event is
 * retained; NULL: the queue counts as empty (activity.c). */
void cleat_device_enqueued(cleat_device *device, cl_event last);
/* Releases all marks. */
void cleat_device_forget_marks(cleat_device *device);

/* Bytes of the cache between the device and its memory, as the driver reports it (a GPU's L2); 0: unknown. */
int64_t cleat_device_cache(const cleat_device *device);

/* Identifies a program to build. */
typedef struct cleat_program_key {
    const char *file;
    const char *options;
    const char *source; /* the text of `file`; NULL: that of cleat_kernel_source */
} cleat_program_key;

/* Programs that are built in the background, several at a time, in the order of their keys (programs.c). */
typedef struct cleat_programs cleat_programs;

typedef struct cleat_program_stats {
    size_t count;  /* number of keys */
    size_t built;  /* built from source so far, perhaps from a cache of the driver */
    size_t loaded; /* loaded from the binary cache so far */
    double waited; /* seconds spent in cleat_programs_get in total */
} cleat_program_stats;

/* Decides when a program may be built, since other processes may be about to fill the driver's cache. */
typedef struct cleat_program_gate {
    bool (*is_open)(void *user, size_t index); /* called from several threads; NULL: always open */
    void *user;
} cleat_program_gate;

/* Starts building the programs of keys [count]; device, keys and their strings, and what `gate` (may be NULL)
 * calls, must outlive `programs`. A program that fails to build reports its error in cleat_programs_get. */
cleat_status cleat_programs_start(cleat_device *device, const cleat_program_key *keys, size_t count,
                                  const cleat_program_gate *gate, cleat_programs **programs, cleat_error *error);
/* Whether program `index` is available without waiting. */
bool cleat_programs_is_ready(cleat_programs *programs, size_t index);
/* Waits until program `index` is built and returns it; builds it if no thread has begun to. `programs` keeps
 * ownership. The error of a program that does not compile contains the build log. */
cleat_status cleat_programs_get(cleat_programs *programs, size_t index, cl_program *program, cleat_error *error);
cleat_program_stats cleat_programs_count(cleat_programs *programs);
/* Waits for the builds that are under way, skips the others, and releases all programs. NULL is allowed. */
void cleat_programs_destroy(cleat_programs *programs);

/* The full source of a kernel file, embedded or from $CLEAT_KERNEL_DIR, with its #include "x.clh" lines
 * resolved. The caller frees it (cleat_free). */
cleat_status cleat_kernel_source(const char *file, char **source, cleat_error *error);
/* The same of a file whose text is given; NULL: as above. */
cleat_status cleat_kernel_source_of(const char *file, const char *text, char **source, cleat_error *error);
/* Whether all kernels are embedded ones, none from $CLEAT_KERNEL_DIR. */
bool cleat_kernels_are_embedded(void);

/* The source of a program of several parts (joined_source.c): each has the macros of its options (other
 * options are the program's), and names that are private to it. The caller frees it. */
cleat_status cleat_kernel_join(const cleat_program_key *parts, size_t count, char **source, cleat_error *error);
/* The name that `kernel` of parts[index] has in this program: its own, with a prefix where an earlier part
 * has the same file. No kernel's name begins with another's, as in the files. */
void cleat_kernel_joined_name(const cleat_program_key *parts, size_t index, const char *kernel, char *name,
                              size_t size);

/* The matrix product C[m, n] = A B + beta C in f32, row-major and dense (clblast.c). trans_a: A is stored
 * [k, m]; trans_b: B is stored [n, k]. Offsets are in elements. */
typedef struct cleat_clblast_gemm {
    bool trans_a, trans_b;
    int64_t m, n, k;
    cl_mem a, b, c;
    int64_t a_offset, b_offset, c_offset;
    float beta;
    cl_mem workspace; /* for padded copies of A, B and C; NULL: CLBlast allocates what it needs */
} cleat_clblast_gemm;

/* Makes CLBlast compute with `parameters` from now on. CLBlast keeps them per device for the whole process,
 * for every handle of the device, and offers no way back to its defaults. CLEAT_ERR_ARGUMENT: this device cannot
 * run them; CLEAT_ERR_DEVICE: this version of CLBlast has other parameters. */
cleat_status cleat_clblast_override(cleat_device *device, const cleat_clblast_parameters *parameters,
                                    cleat_error *error);
/* Bytes of workspace that CLBlast needs for the product with its current parameters for this device. */
cleat_status cleat_clblast_workspace(cleat_device *device, const cleat_clblast_gemm *gemm, int64_t *bytes,
                                     cleat_error *error);
/* Enqueues the product on the compute queue. `event` (may be NULL) receives the event of its last kernel,
 * which the caller releases. */
cleat_status cleat_clblast_sgemm(cleat_device *device, const cleat_clblast_gemm *gemm, cl_event *event,
                                 cleat_error *error);

#endif
