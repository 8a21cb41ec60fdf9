/* PTX modules and launches of their kernels on the virtual card; independent of OpenCL. */
#ifndef VIRTUAL_CARD_PTX_H
#define VIRTUAL_CARD_PTX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ptx_module ptx_module;
typedef struct ptx_kernel ptx_kernel;

/* A kernel parameter at this offset in the parameter block. */
typedef struct ptx_param {
    uint32_t offset, size;
    bool pointer; /* to global memory */
    bool shared;  /* to shared memory: OpenCL's __local argument, sized by the launch */
} ptx_param;

/* Reads a module. Returns NULL on failure; message (of size bytes) then names the line and the text that was
 * not understood. The module owns its kernels and keeps no reference to the text. */
ptx_module *ptx_read(const char *text, char *message, size_t size);
void ptx_free(ptx_module *module);

size_t ptx_kernels(const ptx_module *module);
const ptx_kernel *ptx_kernel_at(const ptx_module *module, size_t i);
const ptx_kernel *ptx_find(const ptx_module *module, const char *name); /* NULL: none */

const char *ptx_name(const ptx_kernel *kernel);
size_t ptx_params(const ptx_kernel *kernel);
const ptx_param *ptx_param_at(const ptx_kernel *kernel, size_t i);
uint32_t ptx_param_bytes(const ptx_kernel *kernel);
uint32_t ptx_shared_bytes(const ptx_kernel *kernel); /* static, per work-group */
uint32_t ptx_local_bytes(const ptx_kernel *kernel);  /* per work-item: spills and arrays in memory */
/* Reads .reqntid; returns false if the kernel has none. */
bool ptx_required_group(const ptx_kernel *kernel, uint32_t size[3]);

/* Global memory that a launch may access: host addresses [begin, end). */
typedef struct ptx_range {
    uint64_t begin, end;
    bool read_only;
} ptx_range;

/* Kinds of instructions other than multiply-adds and matrix instructions. */
enum {
    PTX_FLOATS,   /* floating-point arithmetic */
    PTX_INTEGERS, /* integer arithmetic and logic: addresses, loops */
    PTX_MOVES,    /* mov and parameter loads; ptxas removes most */
    PTX_COMPARES, /* setp, selp, predicate logic */
    PTX_CONVERTS,
    PTX_MEMORY, /* loads, stores, copies, ldmatrix, atomics */
    PTX_FLOW,   /* branches, barriers, waits, exchanges within a warp */
    PTX_CLASSES
};

/* Warp instructions and memory requests that a launch issued. */
typedef struct ptx_counters {
    uint64_t launches, groups;
    uint64_t instructions, lanes; /* issued per warp; their active lanes */
    uint64_t fma, mma,
        special; /* f32 multiply-adds (AMD: packed ones twice); matrix unit; exp2, log2, reciprocal, root, sine */
    uint64_t mma_products;        /* multiply-adds of the matrix unit: m n k of each instruction */
    uint64_t issued[PTX_CLASSES]; /* the others by kind */
    uint64_t global_loads, global_load_sectors, global_load_least; /* 32-byte sectors; minimum for these bytes */
    uint64_t global_stores, global_store_sectors, global_store_least;
    uint64_t shared_loads, shared_load_waves, shared_load_least; /* wavefronts; without bank conflicts */
    uint64_t shared_stores, shared_store_waves, shared_store_least;
    uint64_t async_copies, async_copy_sectors, matrix_loads, matrix_load_waves;
    uint64_t shared_wide_loads; /* shared_loads of at least 16 bytes per lane */
    uint64_t local_accesses, barriers, branches, divergent_branches;
    /* AMD only: instructions of the vector units (matrix unit included) and of the scalar unit. waits:
     * s_waitcnt, s_nop and similar, which no unit executes; `instructions` excludes them. */
    uint64_t vectors, scalars, waits;
} ptx_counters;

/* Called for each distinct fault of a launch (at most 20): a race between barriers, an access outside the
 * ranges, a misaligned vector, a barrier that some lanes miss, ... The text names kernel and instruction. May
 * be called by any thread of the launch, one at a time. */
typedef void ptx_fault(void *context, const char *text);

typedef struct ptx_launch {
    uint32_t groups[3], local[3];
    const void *params; /* ptx_param_bytes; a pointer parameter holds a host address, one to shared memory an offset */
    uint32_t dynamic_shared; /* bytes after the static ones */
    const ptx_range *ranges;
    size_t n_ranges;
    int threads;    /* host threads that run work-groups */
    bool races;     /* check shared memory for races */
    bool registers; /* check for registers read before they are written */
    uint32_t steps; /* limit of instructions per warp, for endless loops (0: 2^30) */
    ptx_fault *fault;
    void *context;
} ptx_launch;

/* Runs a launch to its end and adds to the counters. Returns false if it was aborted; the fault has been
 * reported. */
bool ptx_run(const ptx_kernel *kernel, const ptx_launch *launch, ptx_counters *counters);

#endif
