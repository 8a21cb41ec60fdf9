/* The kernels of an exec as a list in shared memory, which several processes compile (cleat/compile.h).
 *
 * PoCL generates the code of a kernel when it first runs, under one lock of the process. Helper processes
 * therefore take one kernel after the other and run a single work-group of it on zeros, which fills PoCL's
 * cache. A kernel that no helper compiled is compiled by its first launch, to the same bits. */
#ifndef CLEAT_SRC_COMPILE_JOBS_H
#define CLEAT_SRC_COMPILE_JOBS_H

#include "exec/exec.h"

#include <stdatomic.h>

enum { CLEAT_JOB_FILE = 512, CLEAT_JOB_OPTIONS = 512, CLEAT_JOB_VERSION = 64 };

typedef enum cleat_job_state { CLEAT_JOB_OPEN, CLEAT_JOB_TAKEN, CLEAT_JOB_DONE, CLEAT_JOB_FAILED } cleat_job_state;

typedef struct cleat_job_program {
    char file[CLEAT_JOB_FILE];
    char options[CLEAT_JOB_OPTIONS];
    uint64_t source; /* where the text of `file` begins in the list; 0: a kernel file of the library */
    uint64_t cost;   /* of compiling it: an estimate without unit, which orders the programs */
    uint32_t first, count;
    atomic_int begun; /* a process has taken one of its kernels */
} cleat_job_program;

typedef struct cleat_job_arg {
    /* >= 0: a pointer, with an offset in elements; -1: a null pointer with offset; -2: `size` bytes of `value` */
    int32_t slab;
    int32_t size;
    int64_t value;
} cleat_job_arg;

/* One kernel with the sizes and arguments of one of its launches. */
typedef struct cleat_job {
    atomic_int state; /* cleat_job_state */
    uint32_t program;
    char kernel[CLEAT_NAME];
    int32_t dims, n_args;
    uint64_t global[3], local[3];
    cleat_job_arg args[CLEAT_MAX_ARGS];
} cleat_job;

/* Header of the memory. Then come the programs, the jobs, the sizes of the slabs, and texts. Jobs of one
 * program lie side by side; programs that are expected to take longer come first. */
typedef struct cleat_job_list {
    char magic[8];
    char version[CLEAT_JOB_VERSION];
    char device[128]; /* its name */
    uint64_t bytes;   /* of all */
    uint64_t programs, jobs, slabs;
    uint32_t program_count, job_count, slab_count;
} cleat_job_list;

static inline cleat_job_program *cleat_job_programs(cleat_job_list *list) {
    return (cleat_job_program *)(void *)((char *)list + list->programs);
}
static inline cleat_job *cleat_jobs(cleat_job_list *list) {
    return (cleat_job *)(void *)((char *)list + list->jobs);
}
static inline int64_t *cleat_job_slabs(cleat_job_list *list) {
    return (int64_t *)(void *)((char *)list + list->slabs);
}

extern const char cleat_job_magic[8];

/* Lists the kernels of `exec` that a first step needs, in a new anonymous file; *numbers
 * [exec->program_count]: the program of the list for each of exec, or -1. The caller unmaps `list`, closes
 * `file`, frees `numbers`. */
cleat_status cleat_job_list_create(const cleat_exec *exec, cleat_job_list **list, int *file, int32_t **numbers,
                                   cleat_error *error);

#endif
