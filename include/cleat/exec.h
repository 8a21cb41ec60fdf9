/* A plan bound to a device: buffers allocated once, kernels created once, then run many times.
 *
 * Threads: a device with all its execs and stagings is used by one thread at a time. The exceptions are
 * cleat_staging_wait, for any thread, and the bytes of cleat_staging_data, which any one thread may fill
 * between cleat_staging_wait and the next upload. Kernels are compiled on threads of the exec, which end
 * before cleat_exec_destroy returns. */
#ifndef CLEAT_EXEC_H
#define CLEAT_EXEC_H

#include "cleat/device.h"
#include "cleat/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cleat_exec cleat_exec;

/* Allocates exactly cleat_plan_bytes(plan) on the device, zeroes everything persistent but for what
 * cleat_buffer says, and starts compiling the kernels of all graphs (in the background and in parallel,
 * binaries cached): one that does not compile fails the first run that needs it, or cleat_exec_build.
 * `plan` and `device` must outlive it. On failure nothing stays allocated. */
CLEAT_API cleat_status cleat_exec_create(cleat_device *device, const cleat_plan *plan, cleat_exec **exec,
                                         cleat_error *error);
/* cleat_plan_create for the device, and cleat_exec_create of that plan, which the exec then owns. The
 * device, the graphs and their store must outlive it. */
CLEAT_API cleat_status cleat_exec_open(cleat_device *device, cleat_graph *const *graphs, size_t count,
                                       cleat_exec **exec, cleat_error *error);
CLEAT_API void cleat_exec_destroy(cleat_exec *exec);

/* Waits until the kernels of all graphs are compiled: before something is measured. CLEAT_ERR_BUILD, with
 * the compiler's log, where one does not compile. */
CLEAT_API cleat_status cleat_exec_build(cleat_exec *exec, cleat_error *error);

/* Programs: kernel files compiled with certain options. */
typedef struct cleat_build_stats {
    int64_t programs;      /* that the plan's graphs need */
    int64_t built;         /* so far, from source; the driver may have taken them from a cache of its own */
    int64_t loaded;        /* so far, from cleat's cache of binaries */
    double waited_seconds; /* that runs stood waiting for them so far */
} cleat_build_stats;

/* The counts at this moment: builds may be under way. */
CLEAT_API cleat_build_stats cleat_exec_build_stats(const cleat_exec *exec);

/* Enqueues all nodes of graph `graph` (an index into the plan's graphs) in order. Waits for nothing, but
 * for kernels that are still being compiled: the first run of a graph creates its kernels and sets their
 * arguments. */
CLEAT_API cleat_status cleat_exec_run(cleat_exec *exec, size_t graph, cleat_error *error);
/* Enqueues only the nodes [first, last) by index: for tests, benchmarks and profiling. */
CLEAT_API cleat_status cleat_exec_run_nodes(cleat_exec *exec, size_t graph, size_t first, size_t last,
                                            cleat_error *error);
/* Waits until everything enqueued is done. A kernel that failed is reported here, by name (CLBlast's:
 * without), or by the next cleat_exec_read. */
CLEAT_API cleat_status cleat_exec_finish(cleat_exec *exec, cleat_error *error);

/* Copies a whole tensor from or to the host in its own dtype; `graph` says in which graph's layout it lies
 * (any graph for a persistent tensor). Ordered after all enqueued work; waits. The inputs of different
 * graphs share memory: write all inputs of a graph before each of its runs, unless no other graph ran in
 * between. What is read of an activation needs cleat_retain. Of a parameter that is written its half copy
 * follows (cleat_autocast). */
CLEAT_API cleat_status cleat_exec_write(cleat_exec *exec, size_t graph, const cleat_tensor *tensor, const void *values,
                                        cleat_error *error);
CLEAT_API cleat_status cleat_exec_read(cleat_exec *exec, size_t graph, const cleat_tensor *tensor, void *values,
                                       cleat_error *error);

/* Writes the starting values of all parameters (cleat_param: of `seed` and the parameter's name only) and
 * buffers. */
CLEAT_API cleat_status cleat_exec_initialise(cleat_exec *exec, uint64_t seed, cleat_error *error);
/* Writes all parameters and buffers of the plan's store, f32 by name, to a .safetensors file: another file
 * of that name is replaced, at once and only on success. Waits for enqueued work. */
CLEAT_API cleat_status cleat_exec_save(cleat_exec *exec, const char *path, cleat_error *error);
/* Reads them back, also from the model.safetensors of a checkpoint. The file holds exactly the store's
 * tensors, with their shapes: CLEAT_ERR_FORMAT or CLEAT_ERR_SHAPE names the one that differs, and nothing
 * was changed. */
CLEAT_API cleat_status cleat_exec_load(cleat_exec *exec, const char *path, cleat_error *error);

/* A batch of inputs in pinned host memory, laid out as the graph's inputs lie on the device, so that one
 * transfer moves it. Several may be alive: a loader fills one while another travels. */
typedef struct cleat_staging cleat_staging;

/* `bytes`: at least the input bytes of every graph it will be used for (cleat_exec_input_bytes). `pinned`:
 * in memory the driver keeps in place, which travels faster; where there is none ordinary memory serves,
 * with a warning. */
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
/* Waits until the last upload of this buffer has left host memory: then it may be filled again. Thread-safe:
 * called by loader threads. */
CLEAT_API cleat_status cleat_staging_wait(cleat_staging *staging, cleat_error *error);

#ifdef __cplusplus
}
#endif
#endif
