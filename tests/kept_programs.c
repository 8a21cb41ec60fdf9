/* Caches device contexts and the programs that a test program builds until it exits. Op tests bind some
 * hundred small graphs, and training tests open a device for each of some fifty runs; each would build the
 * same few programs. Even if the driver has the kernels in its cache, its preprocessor runs for every build
 * (PoCL: 30 ms). Linked with --wrap=cleat_program_build and --wrap=clCreateContext, this file intercepts the
 * program queue's calls of the builder, and the creation of contexts: a reopened device gets its previous
 * context. */
#include "kept_programs.h"

#include "core/files.h"
#include "core/memory.h"
#include "device/programs.h"
#include "platform/threads.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HASH = 33, OPTIONS = 512 };

static atomic_bool unoptimized, named;

typedef struct kept {
    cl_context context;
    char source[HASH], options[HASH];
    cl_program program; /* also retains the context, so its address is not reused meanwhile */
    struct kept *next;
} kept;

enum { MAX_DEVICES = 16 };

typedef struct kept_context {
    cl_device_id device;
    cl_context context;
} kept_context;

static kept *all;
static kept_context contexts[MAX_DEVICES];
static int context_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The builder itself, under the name given by the linker. */
cleat_status __real_cleat_program_build(cleat_device *device, const cleat_program_key *key, cl_program *program,
                                        bool *loaded, cleat_error *error);
cleat_status __wrap_cleat_program_build(cleat_device *device, const cleat_program_key *key, cl_program *program,
                                        bool *loaded, cleat_error *error);

static cl_program find(const kept *wanted) {
    cl_program found = NULL;
    pthread_mutex_lock(&lock);
    for (const kept *k = all; k && !found; k = k->next)
        if (k->context == wanted->context && strcmp(k->source, wanted->source) == 0 &&
            strcmp(k->options, wanted->options) == 0)
            found = k->program;
    if (found) clRetainProgram(found);
    pthread_mutex_unlock(&lock);
    return found;
}

static void keep(const kept *built) {
    kept *made = malloc(sizeof *made);
    if (!made) return;
    *made = *built;
    clRetainProgram(made->program);
    pthread_mutex_lock(&lock);
    made->next = all;
    all = made;
    pthread_mutex_unlock(&lock);
}

/* Identifies a source file by its contents as well as its name, because tests replace files with their own
 * kernels. */
static cleat_status identify(cleat_device *device, const cleat_program_key *key, kept *wanted, cleat_error *error) {
    char *source = NULL;
    cleat_status status = cleat_kernel_source_of(key->file, key->source, &source, error);
    if (status) return status;
    wanted->context = device->context;
    cleat_hash_text(source, strlen(source), wanted->source);
    cleat_hash_text(key->options, strlen(key->options), wanted->options);
    cleat_free(source);
    return CLEAT_OK;
}

void kept_programs_optimize(bool optimize) {
    atomic_store(&unoptimized, !optimize);
}

void kept_programs_keep_names(void) {
    atomic_store(&named, true);
}

static cleat_status find_or_build(cleat_device *device, const cleat_program_key *key, bool build, cl_program *program,
                                  bool *loaded, cleat_error *error) {
    kept wanted = {0};
    cleat_status status = identify(device, key, &wanted, error);
    if (status) return status;
    cl_program found = find(&wanted);
    if (!found && build) {
        status = __real_cleat_program_build(device, key, &found, loaded, error);
        if (status) return status;
        wanted.program = found;
        keep(&wanted);
    }
    *program = found;
    return CLEAT_OK;
}

cleat_status __wrap_cleat_program_build(cleat_device *device, const cleat_program_key *key, cl_program *program,
                                        bool *loaded, cleat_error *error) {
    const bool is_pocl = device->facts.vendor == CLEAT_VENDOR_POCL;
    /* PoCL 7.1 computes half of a float16 with -cl-opt-disable (findings/pocl_opt_disable_float16.sh). */
    const bool plain = is_pocl && atoi(device->facts.driver) < 7 && atomic_load(&unoptimized);
    char options[OPTIONS], more[OPTIONS + 32];
    snprintf(options, sizeof options, "%s%s", is_pocl && atomic_load(&named) ? "-cl-kernel-arg-info " : "",
             key->options);
    snprintf(more, sizeof more, "-cl-opt-disable %s", options);
    const cleat_program_key optimized = {.file = key->file, .options = options, .source = key->source},
                            other = {.file = key->file, .options = more, .source = key->source};
    *loaded = false;
    cl_program found = NULL;
    cleat_status status = find_or_build(device, &optimized, !plain, &found, loaded, error);
    if (!status && !found) status = find_or_build(device, &other, true, &found, loaded, error);
    if (!status) *program = found;
    return status;
}

/* --- contexts --- */

typedef void(CL_CALLBACK *notify)(const char *text, const void *data, size_t size, void *user);

/* The function of the driver loader, under the name given by the linker. */
cl_context __real_clCreateContext(const cl_context_properties *properties, cl_uint count, const cl_device_id *devices,
                                  notify callback, void *user, cl_int *code);
cl_context __wrap_clCreateContext(const cl_context_properties *properties, cl_uint count, const cl_device_id *devices,
                                  notify callback, void *user, cl_int *code);

/* Retained for the caller; NULL if not cached. */
static cl_context find_context(cl_device_id device) {
    for (int i = 0; i < context_count; ++i)
        if (contexts[i].device == device && clRetainContext(contexts[i].context) == CL_SUCCESS)
            return contexts[i].context;
    return NULL;
}

cl_context __wrap_clCreateContext(const cl_context_properties *properties, cl_uint count, const cl_device_id *devices,
                                  notify callback, void *user, cl_int *code) {
    cl_int state = CL_SUCCESS;
    pthread_mutex_lock(&lock);
    cl_context context = count == 1 ? find_context(devices[0]) : NULL;
    if (!context) {
        context = __real_clCreateContext(properties, count, devices, callback, user, &state);
        if (context && count == 1 && context_count < MAX_DEVICES && clRetainContext(context) == CL_SUCCESS)
            contexts[context_count++] = (kept_context){devices[0], context};
    }
    pthread_mutex_unlock(&lock);
    if (code) *code = state;
    return context;
}
