/* Internal definition of an exec: the slabs, programs and kernels of a plan on one device. */
#ifndef CLEAT_SRC_EXEC_H
#define CLEAT_SRC_EXEC_H

#include "cleat/exec.h"
#include "core/safetensors.h"
#include "device/device.h"
#include "exec/copy.h"
#include "graph/launch.h"
#include "graph/plan.h"

enum { CLEAT_SLOTS = 2, CLEAT_PROGRAM_NAME = 400 };

/* Device memory in which an upload waits for the run of its graph. The run begins with a copy from here to
 * the graph's inputs, so that the next batch can be transferred while the current inputs are still read. */
typedef struct cleat_slot {
    cl_mem buffer;    /* as large as the inputs of the largest graph */
    cl_event written; /* the transfer into it; NULL: nothing is waiting here */
    cl_event copied;  /* the last copy out of it; NULL: none yet */
    bool is_flushed;  /* the compute queue has been flushed since that copy */
} cleat_slot;

/* The launches of one graph as OpenCL objects. */
typedef struct cleat_bound_graph {
    const cleat_layout *layout;
    cleat_binder binder;
    size_t *first;      /* [nodes + 1] node i has the launches first[i] .. first[i + 1] - 1 */
    size_t *program;    /* [launches] index into exec->programs */
    const char **names; /* [launches] of the kernel in its program: the launch's, or another in one of several parts */
    cl_kernel *kernels; /* [launches] NULL before the first run, and for sgemm */
    cleat_clblast_gemm *gemms; /* [launches] for sgemm; the sub-buffers are released with it */
    cl_event ended;            /* of the last launch of the last run; NULL: none, or it has been read */
    cleat_slot *pending;       /* contains the inputs of the next run; NULL if nothing was uploaded */
} cleat_bound_graph;

/* A kernel file with options. */
typedef struct cleat_program_part {
    cleat_program_key key;
    size_t program; /* index into the exec's programs */
    size_t number;  /* in the order in which launches first need the parts */
    bool evaluates; /* an evaluation needs it, perhaps a step as well */
} cleat_program_part;

struct cleat_exec {
    cleat_device *device;
    const cleat_plan *plan;
    cleat_plan *owned_plan; /* the same plan if cleat_exec_open created it; else NULL */
    cl_mem *slabs;          /* [plan->slab_count] NULL for slabs without bytes */
    cleat_program_key *keys;
    cleat_program_part *parts; /* [part_count] parts of the programs, in their order (join.h) */
    size_t part_count;
    char **kept; /* [kept_count] texts and names of programs of several parts, to which keys and names point */
    size_t kept_count, kept_capacity;
    struct cleat_compile_help *help; /* processes that compile; NULL: none */
    cleat_programs *programs;        /* programs of keys [program_count] */
    size_t program_count, program_capacity;
    cleat_bound_graph *graphs; /* [plan->layout_count] */
    cleat_slot slots[CLEAT_SLOTS];
    int slot_count, next_slot;         /* slots are used in turn */
    float *gathered;                   /* parts of a parameter that is stored in blocks; NULL: none */
    const cleat_tensor *gathered_of;   /* its blocks */
    int64_t gathered_count;            /* elements so far */
    bool waits;                        /* CLEAT_LAUNCH_BLOCKING: for each launch, to identify the one that fails */
    const cleat_bound_graph *last_run; /* the graph whose activations are in memory; NULL: none has run */
    cleat_error failure;               /* the first kernel failure since the last cleat_exec_finish */
};

/* The buffer and byte offset of a tensor as seen from graph `graph`. */
cleat_status cleat_exec_place(const cleat_exec *exec, size_t graph, const cleat_tensor *tensor, cl_mem *slab,
                              int64_t *offset, cleat_error *error);
cleat_status cleat_exec_check_graph(const cleat_exec *exec, size_t graph, cleat_error *error);

/* The index of `graph` among the plan's graphs; CLEAT_ERR_ARGUMENT if it is not one of them. */
cleat_status cleat_exec_find_graph(const cleat_exec *exec, const cleat_graph *graph, size_t *index, cleat_error *error);
/* Enqueues a write to a persistent tensor whose size in bytes is a power of two, at most 128. Does not wait:
 * `values` are copied before the call returns. */
cleat_status cleat_exec_enqueue_write(cleat_exec *exec, const cleat_tensor *tensor, const void *values,
                                      cleat_error *error);

/* parameters.c: host copies of f32 tensors of the store, described as tensors of a safetensors file. */
typedef struct cleat_host_tensors {
    float *values; /* values of all tensors, one after the other */
    char (*names)[CLEAT_NAME + 16];
    cleat_st_tensor *items; /* [count] they point into `names` and `values` */
    cleat_tensor **sources; /* [count] borrowed */
    size_t count, capacity;
} cleat_host_tensors;

/* Allocates space for `count` tensors with `elements` elements in total. On failure nothing is allocated. */
cleat_status cleat_host_tensors_create(size_t count, int64_t elements, cleat_host_tensors *made, cleat_error *error);
void cleat_host_tensors_clear(cleat_host_tensors *tensors);
/* Adds `tensor` under its name followed by `suffix`. */
void cleat_host_tensors_add(cleat_host_tensors *tensors, cleat_tensor *tensor, const char *suffix);
/* Read copies all tensors from the device to `values`; write copies them back. */
cleat_status cleat_host_tensors_read(cleat_host_tensors *tensors, cleat_exec *exec, cleat_error *error);
cleat_status cleat_host_tensors_write(const cleat_host_tensors *tensors, cleat_exec *exec, cleat_error *error);

/* run.c: returns and clears the first failure of a run since the last call, with the graph's name; CLEAT_OK if
 * there was none. Call it after all enqueued work has ended. */
cleat_status cleat_exec_pop_failure(cleat_exec *exec, cleat_error *error);

/* run.c: flushes the compute queue; the copies out of all slots will be made without another call. */
void cleat_exec_flush(cleat_exec *exec);

/* bind.c: list_programs lists the launches of all graphs and their programs, which needs the plan only;
 * describe also starts to build them; bind creates the kernel of a launch unless it exists; unbind releases
 * everything that all three created. */
cleat_status cleat_exec_list_programs(cleat_exec *exec, cleat_error *error);
cleat_status cleat_exec_describe(cleat_exec *exec, cleat_error *error);
cleat_status cleat_exec_bind(cleat_exec *exec, cleat_bound_graph *bound, size_t launch, cleat_error *error);
void cleat_exec_unbind(cleat_exec *exec);
/* The place of an argument that is not a scalar, and its offset in elements from the start of the slab; slab -1: a null
 * pointer, or no memory. */
cleat_slab_place cleat_exec_find_argument(const cleat_exec *exec, const cleat_bound_graph *bound,
                                          const cleat_launch *launch, const cleat_arg *arg, int64_t *element);

/* staging.c: find_slots takes the slots from the plan's slabs; consume_upload enqueues the copy of a waiting
 * upload into the graph's inputs. */
void cleat_exec_find_slots(cleat_exec *exec);
cleat_status cleat_exec_consume_upload(cleat_exec *exec, cleat_bound_graph *bound, cleat_error *error);
void cleat_exec_release_slots(cleat_exec *exec);

#endif
