/* Building programs, several at once. */
#include "core/memory.h"
#include "device/probe.h"
#include "device/programs.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MAX_THREADS = 16, OPTIONS = 512 };

/* No fast-math: the tests for values that are not finite must work. */
#define COMMON_OPTIONS "-cl-std=CL1.2"

typedef struct build {
    cleat_device *device;
    const cleat_program_key *keys;
    size_t count;
    cl_program *programs; /* [count] */
    cleat_error *errors;  /* [count] */
    atomic_size_t next;
} build;

/* What the compiler said, without the warnings before the first error where not all of it fits an error text. */
static char *read_build_log(cl_device_id id, cl_program program) {
    size_t size = 0;
    if (clGetProgramBuildInfo(program, id, CL_PROGRAM_BUILD_LOG, 0, NULL, &size) != CL_SUCCESS) return NULL;
    char *log = cleat_alloc(size + 1, 1);
    if (!log) return NULL;
    clGetProgramBuildInfo(program, id, CL_PROGRAM_BUILD_LOG, size, log, NULL);
    char *first = strstr(log, "error:");
    if (strlen(log) > CLEAT_ERROR_TEXT / 2 && first) {
        while (first > log && first[-1] != '\n') --first;
        memmove(log, first, strlen(first) + 1);
    }
    return log;
}

static cleat_status fail_build(cleat_device *device, cl_program program, cl_int code, const cleat_program_key *key,
                               cleat_error *error) {
    char *log = read_build_log(device->id, program);
    cleat_fail(error, CLEAT_ERR_BUILD, "%s with options '%s' does not compile on '%s': %s (%d)\n%s", key->file,
               key->options, device->facts.name, cleat_cl_name(code), (int)code, log ? log : "(no build log)");
    if (error) error->cl_code = code;
    cleat_free(log);
    return CLEAT_ERR_BUILD;
}

static cleat_status build_source(cleat_device *device, const char *source, const char *options,
                                 const cleat_program_key *key, cl_program *program, cleat_error *error) {
    cl_int code = CL_SUCCESS;
    cl_program created = clCreateProgramWithSource(device->context, 1, &source, NULL, &code);
    if (code != CL_SUCCESS) return cleat_cl_fail(error, code, "creating the program of %s", key->file);
    code = clBuildProgram(created, 1, &device->id, options, NULL, NULL);
    if (code != CL_SUCCESS) {
        cleat_status status = fail_build(device, created, code, key, error);
        clReleaseProgram(created);
        return status;
    }
    *program = created;
    return CLEAT_OK;
}

static cleat_status build_one(cleat_device *device, const cleat_program_key *key, cl_program *program,
                              cleat_error *error) {
    char options[OPTIONS], *source = NULL;
    if ((size_t)snprintf(options, sizeof options, COMMON_OPTIONS " %s", key->options) >= sizeof options)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "build options of %s are too long: %s", key->file, key->options);
    cleat_status status = cleat_kernel_source(key->file, &source, error);
    if (status) return status;
    cl_program built = cleat_binary_load(device, source, options);
    if (!built) {
        status = build_source(device, source, options, key, &built, error);
        if (!status) cleat_binary_save(device, source, options, built);
    }
    cleat_free(source);
    if (!status) *program = built;
    return status;
}

static void *build_some(void *user) {
    build *work = user;
    for (size_t i = atomic_fetch_add(&work->next, 1); i < work->count; i = atomic_fetch_add(&work->next, 1)) {
        work->errors[i].status = CLEAT_OK;
        build_one(work->device, &work->keys[i], &work->programs[i], &work->errors[i]);
    }
    return NULL;
}

/* The calling thread works too; a thread that cannot be started is done without. */
static void build_on_threads(build *work) {
    pthread_t threads[MAX_THREADS];
    size_t started = 0;
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    size_t wanted = cpus > 1 ? (size_t)cpus : 1;
    if (wanted > MAX_THREADS) wanted = MAX_THREADS;
    if (wanted > work->count) wanted = work->count;
    if (work->device->quirks & CLEAT_QUIRK_ONE_BUILD_THREAD) wanted = 1;
    while (started + 1 < wanted && pthread_create(&threads[started], NULL, build_some, work) == 0) ++started;
    build_some(work);
    for (size_t i = 0; i < started; ++i) pthread_join(threads[i], NULL);
}

static cleat_status first_failure(const build *work, cleat_error *error) {
    for (size_t i = 0; i < work->count; ++i) {
        if (work->errors[i].status == CLEAT_OK) continue;
        if (error) *error = work->errors[i];
        return work->errors[i].status;
    }
    return CLEAT_OK;
}

cleat_status cleat_programs_build(cleat_device *device, const cleat_program_key *keys, size_t count,
                                  cl_program *programs, cleat_error *error) {
    if (count == 0) return CLEAT_OK;
    build work = {.device = device, .keys = keys, .count = count};
    work.programs = cleat_alloc(count, sizeof *work.programs);
    work.errors = cleat_alloc(count, sizeof *work.errors);
    cleat_status status = CLEAT_OK;
    if (!work.programs || !work.errors) {
        status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %zu programs", count);
        goto done;
    }
    build_on_threads(&work);
    status = first_failure(&work, error);
    for (size_t i = 0; i < count; ++i) {
        if (!status)
            programs[i] = work.programs[i];
        else if (work.programs[i])
            clReleaseProgram(work.programs[i]);
    }
done:
    cleat_free(work.errors);
    cleat_free(work.programs);
    return status;
}
