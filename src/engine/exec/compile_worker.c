/* A process that compiles: takes kernels of the list and runs one work-group of each on memory of zeros,
 * because PoCL generates code when a kernel first runs. */
#include "cleat/compile.h"
#include "core/clock.h"
#include "core/memory.h"
#include "device/programs.h"
#include "exec/compile_jobs.h"
#include "platform/files.h"

#include <string.h>

typedef struct compiler {
    cleat_device *device;
    cleat_job_list *list;
    cl_program *programs; /* [program_count] NULL: not yet needed */
    cl_mem *slabs;        /* [slab_count] NULL: empty */
    void **memory;        /* [slab_count] of these buffers */
} compiler;

/* --- memory --------------------------------------------------------------------------------------------------- */

/* As large as the run's, but only the pages that a work-group touches exist. */
static cleat_status map_slabs(compiler *c, cleat_error *error) {
    for (uint32_t s = 0; s < c->list->slab_count; ++s) {
        const size_t bytes = (size_t)cleat_job_slabs(c->list)[s];
        cl_int code = CL_SUCCESS;
        if (bytes == 0) continue;
        void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED)
            return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a slab of %zu bytes", bytes);
        c->memory[s] = memory;
        c->slabs[s] = clCreateBuffer(c->device->context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, bytes, memory, &code);
        if (code != CL_SUCCESS) return cleat_cl_fail(error, code, "a buffer of %zu bytes", bytes);
    }
    return CLEAT_OK;
}

/* A number that one kernel wrote is not a valid index for the next. */
static void clear_slabs(const compiler *c) {
    for (uint32_t s = 0; s < c->list->slab_count; ++s)
        if (c->memory[s]) madvise(c->memory[s], (size_t)cleat_job_slabs(c->list)[s], MADV_DONTNEED);
}

/* --- one kernel ----------------------------------------------------------------------------------------------- */

static cl_int set_pointer(const compiler *c, cl_kernel kernel, cl_uint *index, const cleat_job_arg *arg) {
    const cl_ulong offset = (cl_ulong)arg->value;
    const bool is_known = arg->slab >= 0 && (uint32_t)arg->slab < c->list->slab_count;
    cl_int code = clSetKernelArg(kernel, (*index)++, sizeof(cl_mem), is_known ? &c->slabs[arg->slab] : NULL);
    return code == CL_SUCCESS ? clSetKernelArg(kernel, (*index)++, sizeof offset, &offset) : code;
}

static cl_int set_arguments(const compiler *c, cl_kernel kernel, const cleat_job *job) {
    cl_int code = CL_SUCCESS;
    cl_uint index = 0;
    for (int a = 0; a < job->n_args && code == CL_SUCCESS; ++a) {
        const cleat_job_arg *arg = &job->args[a];
        code = arg->slab > -2 ? set_pointer(c, kernel, &index, arg)
                              : clSetKernelArg(kernel, index++, (size_t)arg->size, &arg->value);
    }
    return code;
}

static cleat_status find_program(compiler *c, uint32_t index, cleat_error *error) {
    const cleat_job_program *program = &cleat_job_programs(c->list)[index];
    const cleat_program_key key = {.file = program->file,
                                   .options = program->options,
                                   .source = program->source ? (const char *)c->list + program->source : NULL};
    bool loaded;
    if (c->programs[index]) return CLEAT_OK;
    return cleat_program_build(c->device, &key, &c->programs[index], &loaded, error);
}

static cleat_status run_job(compiler *c, const cleat_job *job, cleat_error *error) {
    size_t global[3], local[3];
    cl_int code = CL_SUCCESS;
    cleat_status status = find_program(c, job->program, error);
    if (status) return status;
    cl_kernel kernel = clCreateKernel(c->programs[job->program], job->kernel, &code);
    if (code != CL_SUCCESS) return cleat_cl_fail(error, code, "creating kernel '%s'", job->kernel);
    for (int d = 0; d < 3; ++d) {
        global[d] = (size_t)job->global[d];
        local[d] = (size_t)job->local[d];
    }
    code = set_arguments(c, kernel, job);
    if (code == CL_SUCCESS)
        code =
            clEnqueueNDRangeKernel(c->device->compute, kernel, (cl_uint)job->dims, NULL, global, local, 0, NULL, NULL);
    if (code == CL_SUCCESS) code = clFinish(c->device->compute);
    clReleaseKernel(kernel);
    clear_slabs(c);
    return code == CL_SUCCESS ? CLEAT_OK : cleat_cl_fail(error, code, "kernel '%s'", job->kernel);
}

/* --- taking --------------------------------------------------------------------------------------------------- */

static cleat_job *select_from(cleat_job_list *list, uint32_t program) {
    cleat_job_program *p = &cleat_job_programs(list)[program];
    for (uint32_t j = p->first; j < p->first + p->count; ++j) {
        int open = CLEAT_JOB_OPEN;
        if (!atomic_compare_exchange_strong(&cleat_jobs(list)[j].state, &open, CLEAT_JOB_TAKEN)) continue;
        atomic_store(&p->begun, 1);
        return &cleat_jobs(list)[j];
    }
    return NULL;
}

/* The next kernel of the last program, else of one that no process has begun, else of any: another process
 * has then built its program. NULL: all are done. */
static cleat_job *select_job(cleat_job_list *list, const cleat_job *last) {
    cleat_job *job = last ? select_from(list, last->program) : NULL;
    for (uint32_t p = 0; p < list->program_count && !job; ++p)
        if (!atomic_load(&cleat_job_programs(list)[p].begun)) job = select_from(list, p);
    for (uint32_t p = 0; p < list->program_count && !job; ++p) job = select_from(list, p);
    return job;
}

static void compile_all(compiler *c) {
    cleat_job *job = NULL;
    cleat_error error;
    while ((job = select_job(c->list, job))) {
        const double start = cleat_seconds();
        const bool is_new = !c->programs[job->program];
        const cleat_status status = run_job(c, job, &error);
        atomic_store(&job->state, status ? CLEAT_JOB_FAILED : CLEAT_JOB_DONE);
        if (status) cleat_log(CLEAT_LOG_DEBUG, "not compiled: %s", error.text);
        cleat_log(CLEAT_LOG_DEBUG, "compiled %s of %s%s in %.3f s", job->kernel,
                  cleat_job_programs(c->list)[job->program].file, is_new ? ", with its program," : "",
                  cleat_seconds() - start);
    }
}

/* --- life ----------------------------------------------------------------------------------------------------- */

static cleat_status map_list(int file, cleat_job_list **list, cleat_error *error) {
    struct stat facts;
    if (fstat(file, &facts) != 0 || facts.st_size < (off_t)sizeof **list)
        return cleat_fail(error, CLEAT_ERR_FORMAT, "file %d is not a kernel list", file);
    void *memory = mmap(NULL, (size_t)facts.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) return cleat_fail(error, CLEAT_ERR_IO, "file %d cannot be mapped", file);
    cleat_job_list *mapped = memory;
    if (memcmp(mapped->magic, cleat_job_magic, sizeof mapped->magic) == 0 &&
        strcmp(mapped->version, cleat_version()) == 0 && mapped->bytes <= (uint64_t)facts.st_size) {
        *list = mapped;
        return CLEAT_OK;
    }
    munmap(memory, (size_t)facts.st_size);
    return cleat_fail(error, CLEAT_ERR_FORMAT, "file %d is not a kernel list of cleat %s", file, cleat_version());
}

static void release(compiler *c) {
    for (uint32_t p = 0; c->programs && p < c->list->program_count; ++p)
        if (c->programs[p]) clReleaseProgram(c->programs[p]);
    for (uint32_t s = 0; c->slabs && c->memory && s < c->list->slab_count; ++s) {
        if (c->slabs[s]) clReleaseMemObject(c->slabs[s]);
        if (c->memory[s]) munmap(c->memory[s], (size_t)cleat_job_slabs(c->list)[s]);
    }
    cleat_free(c->programs);
    cleat_free(c->slabs);
    cleat_free(c->memory);
    cleat_device_close(c->device);
    if (c->list) munmap(c->list, (size_t)c->list->bytes);
}

cleat_status cleat_compile_jobs(int file, cleat_error *error) {
    compiler c = {0};
    cleat_status status = map_list(file, &c.list, error);
    if (status) return status;
    c.programs = cleat_alloc(c.list->program_count, sizeof *c.programs);
    c.slabs = cleat_alloc(c.list->slab_count, sizeof *c.slabs);
    c.memory = cleat_alloc(c.list->slab_count, sizeof *c.memory);
    if (!c.programs || !c.slabs || !c.memory) status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory to compile with");
    if (!status) status = cleat_device_open(c.list->device, &c.device, error);
    if (!status) status = map_slabs(&c, error);
    if (!status) compile_all(&c);
    release(&c);
    return status;
}
