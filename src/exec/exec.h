/* The inside of an exec: a plan's slabs, programs and kernels on one device. */
#ifndef CLEAT_SRC_EXEC_H
#define CLEAT_SRC_EXEC_H

#include "cleat/exec.h"
#include "device/device.h"
#include "graph/launch.h"
#include "graph/plan.h"

enum { CLEAT_SLOTS = 2 };

/* A place on the device where an upload waits for the graph it is for. A graph's inputs are copied from it at
 * its run, so that the next batch can travel while the inputs of this one are read. */
typedef struct cleat_slot {
    cl_mem buffer;    /* as large as the inputs of any graph */
    cl_event written; /* the transfer into it; NULL: nothing waits here */
    cl_event copied;  /* the last copy out of it; NULL: none yet */
} cleat_slot;

/* One graph's launches as OpenCL objects. */
typedef struct cleat_bound {
    const cleat_layout *layout;
    cleat_binder binder;
    size_t *first;             /* [nodes + 1]: node i has launches first[i] .. first[i + 1] - 1 */
    size_t *program;           /* [launches]: index into exec->programs */
    cl_kernel *kernels;        /* [launches], NULL before its first run and for sgemm */
    cleat_clblast_gemm *gemms; /* [launches]: for sgemm, of sub-buffers that are released with it */
    cl_event *events;          /* [launches]: its last run, NULL where none */
    cleat_slot *pending;       /* holds the inputs of the next run; NULL where nothing was uploaded */
} cleat_bound;

struct cleat_exec {
    cleat_device *device;
    const cleat_plan *plan;
    cl_mem *slabs; /* [plan->slab_count], NULL for slabs of no bytes */
    cleat_program_key *keys;
    cleat_programs *programs; /* of keys [program_count] */
    size_t program_count, program_capacity;
    cleat_bound *graphs; /* [plan->layout_count] */
    cleat_slot slots[CLEAT_SLOTS];
    int slot_count, next_slot; /* slots take turns */
    cleat_error failure;       /* the first kernel that failed since the last cleat_exec_finish */
};

/* The buffer and byte offset of a tensor as graph `graph` sees it. */
cleat_status cleat_exec_place(const cleat_exec *exec, size_t graph, const cleat_tensor *tensor, cl_mem *slab,
                              int64_t *offset, cleat_error *error);
cleat_status cleat_exec_check_graph(const cleat_exec *exec, size_t graph, cleat_error *error);

/* run.c: the failure of a kernel since the last call, by name; CLEAT_OK where none failed. For after everything enqueued has ended. */
cleat_status cleat_exec_pop_failure(cleat_exec *exec, cleat_error *error);

/* bind.c: describes the launches of all graphs and starts building their programs; gives a launch its kernel, once;
 * releases what both made. */
cleat_status cleat_exec_describe(cleat_exec *exec, cleat_error *error);
cleat_status cleat_exec_bind(cleat_exec *exec, cleat_bound *bound, size_t launch, cleat_error *error);
void cleat_exec_unbind(cleat_exec *exec);

/* staging.c: the slots among the plan's slabs; enqueues the copy of a waiting upload into the graph's inputs. */
void cleat_exec_find_slots(cleat_exec *exec);
cleat_status cleat_exec_consume_upload(cleat_exec *exec, cleat_bound *bound, cleat_error *error);
void cleat_exec_release_slots(cleat_exec *exec);

#endif
