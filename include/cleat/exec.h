/* A plan on a device: buffers are allocated once, kernels created once, and graphs then run many times.
 *
 * Threads: a device with all its execs and staging buffers is used by one thread at a time. The exceptions
 * are cleat_staging_wait, which any thread may call, and the bytes of cleat_staging_data, which any one
 * thread may fill between cleat_staging_wait and the next upload. Kernels are compiled on threads of the
 * exec, which end before cleat_exec_destroy returns. */
#ifndef CLEAT_EXEC_H
#define CLEAT_EXEC_H

#include "cleat/device.h"
#include "cleat/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cleat_exec cleat_exec;

/* Allocates exactly cleat_plan_bytes(plan) on the device, zeroes all persistent tensors except buffers
 * with another initial value (cleat_buffer), and starts compiling the kernels of all graphs in the
 * background, in parallel, with cached binaries. A kernel that does not compile fails the first run that
 * needs it, or cleat_exec_build. `plan` and `device` must outlive the exec. On failure nothing stays
 * allocated. */
CLEAT_API cleat_status cleat_exec_create(cleat_device *device, const cleat_plan *plan, cleat_exec **exec,
                                         cleat_error *error);
/* cleat_plan_create for the device, and cleat_exec_create of that plan, which the exec then owns. The
 * device, the graphs and their store must outlive it. */
CLEAT_API cleat_status cleat_exec_open(cleat_device *device, cleat_graph *const *graphs, size_t count,
                                       cleat_exec **exec, cleat_error *error);
CLEAT_API void cleat_exec_destroy(cleat_exec *exec);

/* Waits until the kernels of all graphs are compiled, as needed before a measurement. CLEAT_ERR_BUILD,
 * with the compiler log, if one does not compile. */
CLEAT_API cleat_status cleat_exec_build(cleat_exec *exec, cleat_error *error);

/* Programs: kernel files compiled with certain options. */
typedef struct cleat_build_stats {
    int64_t programs;      /* programs needed by the graphs of the plan */
    int64_t built;         /* built from source so far; the driver may have used its own cache */
    int64_t loaded;        /* loaded from the binary cache of cleat so far */
    double waited_seconds; /* time that runs have waited for programs so far */
} cleat_build_stats;

/* The counts at this moment: builds may be under way. */
CLEAT_API cleat_build_stats cleat_exec_build_stats(const cleat_exec *exec);

/* Enqueues all nodes of graph `graph` (an index into the graphs of the plan) in order. Does not wait,
 * except for kernels that are still being compiled: the first run of a graph creates its kernels and sets
 * their arguments. */
CLEAT_API cleat_status cleat_exec_run(cleat_exec *exec, size_t graph, cleat_error *error);
/* Enqueues only the nodes [first, last) by index: for tests, benchmarks and profiling. */
CLEAT_API cleat_status cleat_exec_run_nodes(cleat_exec *exec, size_t graph, size_t first, size_t last,
                                            cleat_error *error);
/* Waits until all enqueued work is done. A failed kernel is reported here or by the next cleat_exec_read,
 * with the name of its graph, or with its own name if CLEAT_LAUNCH_BLOCKING is set in the environment (every
 * launch is then waited for). */
CLEAT_API cleat_status cleat_exec_finish(cleat_exec *exec, cleat_error *error);

/* Copies a whole tensor from or to the host in its own dtype. `graph` is the graph whose layout contains the
 * tensor (any graph for a persistent tensor). `bytes`, the size of `values`, must equal cleat_tensor_bytes.
 * Ordered after all enqueued work, and blocking. The inputs of different graphs share memory: write all
 * inputs of a graph before each of its runs, unless no other graph ran in between. So do their activations:
 * read those of a graph after its run and before another graph runs. Writing a parameter also updates its
 * half weight (cleat_autocast).
 *
 * CLEAT_ERR_ARGUMENT: `bytes` is a different size; the tensor to write is neither an input nor persistent;
 * the tensor to read is an activation that was not retained (cleat_retain) when the plan was made, or whose
 * graph was not the last to run. CLEAT_ERR_NOT_FOUND: the tensor is not part of the plan. */
CLEAT_API cleat_status cleat_exec_write(cleat_exec *exec, size_t graph, const cleat_tensor *tensor, const void *values,
                                        size_t bytes, cleat_error *error);
CLEAT_API cleat_status cleat_exec_read(cleat_exec *exec, size_t graph, const cleat_tensor *tensor, void *values,
                                       size_t bytes, cleat_error *error);

/* Writes the initial values of all parameters (cleat_param: a function of `seed` and the parameter name
 * only) and buffers. */
CLEAT_API cleat_status cleat_exec_initialise(cleat_exec *exec, uint64_t seed, cleat_error *error);
/* Writes all parameters and buffers of the store, f32 by name, to a .safetensors file. An existing file is
 * replaced atomically, and only on success. Waits for enqueued work. */
CLEAT_API cleat_status cleat_exec_save(cleat_exec *exec, const char *path, cleat_error *error);
/* Reads the file of cleat_exec_save, or model.safetensors of a checkpoint of a network without running
 * statistics (a checkpoint stores the mean and variance of a layer as one tensor, NAME [2, C]). The file must
 * hold exactly the tensors of the store, with their shapes: CLEAT_ERR_FORMAT or CLEAT_ERR_SHAPE names the
 * tensor that differs, and nothing is changed. */
CLEAT_API cleat_status cleat_exec_load(cleat_exec *exec, const char *path, cleat_error *error);

/* A batch of inputs in host memory (pinned on request), in the layout of the inputs on the device, so that
 * one transfer copies it. Several staging buffers may exist: a loader fills one while another is being
 * transferred. */
typedef struct cleat_staging cleat_staging;

/* Creates a staging buffer, owned by the caller. `bytes`: at least the input bytes of every graph it is
 * used for (cleat_exec_input_bytes). `pinned`: page-locked memory, which transfers faster; if the driver
 * has none, ordinary memory is used, with a warning. */
CLEAT_API cleat_status cleat_staging_create(cleat_exec *exec, int64_t bytes, bool pinned, cleat_staging **staging,
                                            cleat_error *error);
CLEAT_API void cleat_staging_destroy(cleat_staging *staging);
CLEAT_API void *cleat_staging_data(cleat_staging *staging);
CLEAT_API int64_t cleat_exec_input_bytes(const cleat_exec *exec, size_t graph);
/* Byte offset of an input of `graph` in a staging buffer. */
CLEAT_API int64_t cleat_exec_input_offset(const cleat_exec *exec, size_t graph, const cleat_tensor *input);
/* Starts the transfer on the transfer queue, without waiting; the graph's next run waits for it on the
 * device. At most one upload per run of a graph. */
CLEAT_API cleat_status cleat_exec_upload(cleat_exec *exec, size_t graph, cleat_staging *staging, cleat_error *error);
/* Waits until the last upload from this buffer has left host memory, so that it can be filled again.
 * Thread-safe: called by loader threads. */
CLEAT_API cleat_status cleat_staging_wait(cleat_staging *staging, cleat_error *error);

#ifdef __cplusplus
}
#endif
#endif
