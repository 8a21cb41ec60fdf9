/* Modules of PTX, and launches of their kernels on the virtual card. Nothing here knows OpenCL. */
#ifndef VIRTUAL_CARD_PTX_H
#define VIRTUAL_CARD_PTX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ptx_module ptx_module;
typedef struct ptx_kernel ptx_kernel;

/* A parameter of a kernel, at this offset of the parameter block. */
typedef struct ptx_param {
    uint32_t offset, size;
    bool pointer; /* to global memory */
    bool shared;  /* to shared memory: OpenCL's __local argument; the launch gives its bytes */
} ptx_param;

/* Reads a module. On failure NULL, and message (of size bytes) has the line and what was not understood. The
 * module owns its kernels; the text may go. */
ptx_module *ptx_read(const char *text, char *message, size_t size);
void ptx_free(ptx_module *module);

size_t ptx_kernels(const ptx_module *module);
const ptx_kernel *ptx_kernel_at(const ptx_module *module, size_t i);
const ptx_kernel *ptx_find(const ptx_module *module, const char *name); /* NULL: none */

const char *ptx_name(const ptx_kernel *kernel);
size_t ptx_params(const ptx_kernel *kernel);
const ptx_param *ptx_param_at(const ptx_kernel *kernel, size_t i);
uint32_t ptx_param_bytes(const ptx_kernel *kernel);
uint32_t ptx_shared_bytes(const ptx_kernel *kernel); /* static, of a work-group */
uint32_t ptx_local_bytes(const ptx_kernel *kernel);  /* of a work-item: spills and arrays the compiler kept in memory */
/* .reqntid: false where the kernel has none. */
bool ptx_required_group(const ptx_kernel *kernel, uint32_t size[3]);

/* Global memory that a launch may touch: [begin, end) in the host's addresses. */
typedef struct ptx_range {
    uint64_t begin, end;
    bool read_only;
} ptx_range;

/* Kinds of instructions, of those that are neither multiply-adds nor of the matrix unit. */
enum {
    PTX_FLOATS,   /* arithmetic of floating point */
    PTX_INTEGERS, /* arithmetic and logic of integers: addresses, loops */
    PTX_MOVES,    /* mov, and loads of parameters: ptxas removes most */
    PTX_COMPARES, /* setp, selp, logic of predicates */
    PTX_CONVERTS,
    PTX_MEMORY, /* loads, stores, copies, ldmatrix, atomics */
    PTX_FLOW,   /* branches, barriers, waits, exchanges within a warp */
    PTX_CLASSES
};

/* What a launch issued. Warp instructions, requests of warps, and their parts. */
typedef struct ptx_counters {
    uint64_t launches, groups;
    uint64_t instructions, lanes; /* issued to a warp; active lanes of them */
    uint64_t fma, mma,
        special; /* f32 multiply-adds (AMD: packed ones twice); matrix unit; exp2, log2, reciprocal, root, sine */
    uint64_t mma_products;        /* multiply-adds of the matrix unit: m n k of each instruction */
    uint64_t issued[PTX_CLASSES]; /* the others by their kind */
    uint64_t global_loads, global_load_sectors, global_load_least; /* sectors of 32 bytes; the least for these bytes */
    uint64_t global_stores, global_store_sectors, global_store_least;
    uint64_t shared_loads, shared_load_waves, shared_load_least; /* wavefronts; without bank conflicts */
    uint64_t shared_stores, shared_store_waves, shared_store_least;
    uint64_t async_copies, async_copy_sectors, matrix_loads, matrix_load_waves;
    uint64_t shared_wide_loads; /* of shared_loads: 16 bytes a lane or more */
    uint64_t local_accesses, barriers, branches, divergent_branches;
    /* AMD only: instructions of the vector units, matrix unit included, and of the scalar unit; s_waitcnt,
     * s_nop and the like, which no unit executes and which are not among the instructions. */
    uint64_t vectors, scalars, waits;
} ptx_counters;

/* Called for each different fault of a launch (at most 20): a race between barriers, an access outside the ranges, a
 * misaligned vector, a barrier that not all reach, ... The text names kernel and instruction. Called by any of the
 * launch's threads, by one at a time. */
typedef void ptx_fault(void *context, const char *text);

typedef struct ptx_launch {
    uint32_t groups[3], local[3];
    const void *params; /* ptx_param_bytes; a pointer parameter holds a host address, one to shared memory an offset */
    uint32_t dynamic_shared; /* bytes behind the static ones */
    const ptx_range *ranges;
    size_t n_ranges;
    int threads;    /* work-groups run on that many host threads */
    bool races;     /* look for races in shared memory */
    bool registers; /* look for registers that are read before they were written */
    uint32_t steps; /* instructions of a warp; more are taken for an endless loop (0: 2^30) */
    ptx_fault *fault;
    void *context;
} ptx_launch;

/* Runs a launch to its end and adds to the counters. False: it could not go on (the fault was reported). */
bool ptx_run(const ptx_kernel *kernel, const ptx_launch *launch, ptx_counters *counters);

#endif
