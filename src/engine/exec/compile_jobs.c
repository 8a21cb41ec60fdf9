/* Lists the kernels that a first step needs. */
#include "exec/compile_jobs.h"

#include "core/memory.h"
#include "exec/join.h"
#include "platform/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char cleat_job_magic[8] = "CLEATJOB";

typedef struct collection {
    const cleat_exec *exec;
    cleat_job *jobs;
    size_t count, capacity;
} collection;

/* --- one launch ----------------------------------------------------------------------------------------------- */

/* PoCL compiles a kernel for each size of its work-groups, and again for large grids. */
enum { LARGE_GRID = 65535 };

static bool is_large(const cleat_job *job) {
    for (int d = 0; d < job->dims; ++d)
        if (job->global[d] >= LARGE_GRID) return true;
    return false;
}

static cleat_job_arg describe_argument(const cleat_exec *exec, const cleat_bound_graph *bound,
                                       const cleat_launch *launch, const cleat_arg *arg) {
    cleat_job_arg made = {.slab = -2, .size = arg->size};
    if (arg->kind == CLEAT_ARG_SCALAR)
        memcpy(&made.value, &arg->value, sizeof made.value);
    else
        made.slab = cleat_exec_find_argument(exec, bound, launch, arg, &made.value).slab;
    return made;
}

static void describe_job(const cleat_exec *exec, const cleat_bound_graph *bound, size_t i, cleat_job *job) {
    const cleat_launch *launch = &bound->binder.launches[i];
    *job = (cleat_job){
        .program = (uint32_t)bound->program[i], .dims = launch->dims, .n_args = launch->n_args, .kernel = ""};
    snprintf(job->kernel, sizeof job->kernel, "%s", bound->names[i]);
    for (int d = 0; d < launch->dims; ++d) {
        job->global[d] = launch->global[d];
        job->local[d] = launch->local[d];
    }
    for (int a = 0; a < launch->n_args; ++a) job->args[a] = describe_argument(exec, bound, launch, &launch->args[a]);
}

/* --- all launches --------------------------------------------------------------------------------------------- */

static bool is_same(const cleat_job *a, const cleat_job *b) {
    return a->program == b->program && strcmp(a->kernel, b->kernel) == 0 &&
           memcmp(a->local, b->local, sizeof a->local) == 0 && is_large(a) == is_large(b);
}

static cleat_status add(collection *all, const cleat_bound_graph *bound, size_t i, cleat_error *error) {
    cleat_job job;
    describe_job(all->exec, bound, i, &job);
    for (size_t j = 0; j < all->count; ++j)
        if (is_same(&all->jobs[j], &job)) return CLEAT_OK;
    cleat_status status = cleat_grow(&all->jobs, all->count, &all->capacity, error);
    if (!status) all->jobs[all->count++] = job;
    return status;
}

/* If a plan trains, its evaluation graphs come later: those without backward part whose operations have gradients. */
static bool comes_first(const cleat_plan *plan, const cleat_graph *graph) {
    bool trains = false;
    for (size_t g = 0; g < plan->layout_count; ++g) trains |= cleat_exec_has_backward(plan->layouts[g].graph);
    return !trains || !cleat_exec_is_evaluation(graph);
}

static cleat_status collect(collection *all, cleat_error *error) {
    const cleat_exec *exec = all->exec;
    cleat_status status = CLEAT_OK;
    for (size_t g = 0; g < exec->plan->layout_count; ++g) {
        const cleat_bound_graph *bound = &exec->graphs[g];
        if (!comes_first(exec->plan, bound->layout->graph)) continue;
        for (size_t i = 0; i < bound->binder.count && !status; ++i) {
            const cleat_launch *launch = &bound->binder.launches[i];
            if (launch->kind == CLEAT_LAUNCH_KERNEL && !launch->needs_values) status = add(all, bound, i, error);
        }
    }
    return status;
}

/* --- the list ------------------------------------------------------------------------------------------------- */

static int compare_cost(const void *a, const void *b) {
    const cleat_job_program *one = a, *other = b;
    if (one->cost != other->cost) return one->cost > other->cost ? -1 : 1;
    return one->first < other->first ? -1 : 1;
}

static size_t text_bytes(const cleat_exec *exec) {
    size_t bytes = 1;
    for (size_t p = 0; p < exec->program_count; ++p)
        if (exec->keys[p].source) bytes += strlen(exec->keys[p].source) + 1;
    return bytes;
}

/* Kernels of a program in proportion to its text, with its includes: what measured seconds come closest to of
 * all that is known before. */
static uint64_t estimate(const cleat_program_key *key, uint32_t kernels) {
    char *source = NULL;
    if (cleat_kernel_source_of(key->file, key->source, &source, NULL)) return kernels;
    const uint64_t bytes = strlen(source);
    cleat_free(source);
    return bytes * (kernels + 1);
}

static bool describe_program(const cleat_program_key *key, size_t number, cleat_job_program *program) {
    program->first = (uint32_t)number;
    if (snprintf(program->file, sizeof program->file, "%s", key->file) >= (int)sizeof program->file) return false;
    return snprintf(program->options, sizeof program->options, "%s", key->options) < (int)sizeof program->options;
}

/* Programs in the order of the list; `first` is the number in the exec until the jobs are placed. */
static cleat_status order_programs(const collection *all, cleat_job_program *programs, uint32_t *count,
                                   cleat_error *error) {
    const cleat_exec *exec = all->exec;
    uint32_t made = 0;
    for (size_t p = 0; p < exec->program_count; ++p) {
        uint32_t kernels = 0;
        for (size_t j = 0; j < all->count; ++j) kernels += all->jobs[j].program == p;
        if (kernels == 0) continue;
        if (!describe_program(&exec->keys[p], p, &programs[made]))
            return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED, "the name of program '%s' is too long",
                              exec->keys[p].file);
        programs[made].count = kernels;
        programs[made++].cost = estimate(&exec->keys[p], kernels);
    }
    qsort(programs, made, sizeof *programs, compare_cost);
    *count = made;
    return CLEAT_OK;
}

static cleat_status map_file(size_t bytes, cleat_job_list **list, int *file, cleat_error *error) {
    const int made = memfd_create("cleat-compile", MFD_CLOEXEC);
    if (made < 0 || ftruncate(made, (off_t)bytes) != 0) {
        if (made >= 0) close(made);
        return cleat_fail(error, CLEAT_ERR_IO, "no anonymous file of %zu bytes", bytes);
    }
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, made, 0);
    if (memory == MAP_FAILED) {
        close(made);
        return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a list of %zu bytes", bytes);
    }
    *list = memory;
    *file = made;
    return CLEAT_OK;
}

static void place_jobs(const collection *all, cleat_job_list *list, int32_t *numbers) {
    cleat_job_program *programs = cleat_job_programs(list);
    uint32_t at = 0;
    for (uint32_t p = 0; p < list->program_count; ++p) {
        const uint32_t number = programs[p].first;
        numbers[number] = (int32_t)p;
        programs[p].first = at;
        for (size_t j = 0; j < all->count; ++j) {
            if (all->jobs[j].program != number) continue;
            cleat_job *job = &cleat_jobs(list)[at++];
            memcpy(job, &all->jobs[j], sizeof *job);
            job->program = p;
            for (int d = 0; d < job->dims; ++d) /* one work-group is enough, but a large grid stays large */
                if (job->global[d] < LARGE_GRID) job->global[d] = job->local[d];
        }
    }
}

static void place_texts(const cleat_exec *exec, cleat_job_list *list, const int32_t *numbers, uint64_t at) {
    for (size_t p = 0; p < exec->program_count; ++p) {
        const char *source = exec->keys[p].source;
        if (!source || numbers[p] < 0) continue;
        strcpy((char *)list + at, source);
        cleat_job_programs(list)[numbers[p]].source = at;
        at += strlen(source) + 1;
    }
}

static void fill(const collection *all, const cleat_job_program *programs, uint32_t count, cleat_job_list *list,
                 int32_t *numbers) {
    const cleat_exec *exec = all->exec;
    cleat_job_list head = {.program_count = count,
                           .job_count = (uint32_t)all->count,
                           .slab_count = (uint32_t)exec->plan->slab_count,
                           .programs = sizeof head};
    head.jobs = head.programs + count * sizeof *programs;
    head.slabs = head.jobs + all->count * sizeof(cleat_job);
    const uint64_t texts = head.slabs + exec->plan->slab_count * sizeof(int64_t);
    head.bytes = texts + text_bytes(exec);
    memcpy(head.magic, cleat_job_magic, sizeof head.magic);
    snprintf(head.version, sizeof head.version, "%s", cleat_version());
    snprintf(head.device, sizeof head.device, "%s", exec->device->facts.name);
    *list = head;
    memcpy(cleat_job_programs(list), programs, count * sizeof *programs);
    for (size_t s = 0; s < exec->plan->slab_count; ++s) cleat_job_slabs(list)[s] = exec->plan->slabs[s].bytes;
    for (size_t p = 0; p < exec->program_count; ++p) numbers[p] = -1;
    place_jobs(all, list, numbers);
    place_texts(exec, list, numbers, texts);
}

cleat_status cleat_job_list_create(const cleat_exec *exec, cleat_job_list **list, int *file, int32_t **numbers,
                                   cleat_error *error) {
    collection all = {.exec = exec};
    uint32_t count = 0;
    cleat_job_program *programs = cleat_alloc(exec->program_count, sizeof *programs);
    int32_t *made = cleat_alloc(exec->program_count, sizeof *made);
    cleat_status status =
        programs && made ? CLEAT_OK : cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a list of kernels");
    if (!status) status = collect(&all, error);
    if (!status) status = order_programs(&all, programs, &count, error);
    if (!status)
        status = map_file(sizeof **list + count * sizeof *programs + all.count * sizeof(cleat_job) +
                              exec->plan->slab_count * sizeof(int64_t) + text_bytes(exec),
                          list, file, error);
    if (!status) {
        fill(&all, programs, count, *list, made);
        *numbers = made;
        made = NULL;
    }
    cleat_free(all.jobs);
    cleat_free(programs);
    cleat_free(made);
    return status;
}
