/* Programs that a test program has built, kept until it ends. Op tests bind some hundred small graphs, and would build the same
 * few programs for each: even where the driver has the kernels in its cache, its preprocessor runs for every build. Linked with
 * --wrap=cleat_program_build, this stands between the queue of programs and the builder. */
#include "core/files.h"
#include "core/memory.h"
#include "device/programs.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { HASH = 33 };

typedef struct kept {
    cl_context context;
    char source[HASH], options[HASH];
    cl_program program; /* holds the context too: its address is nobody else's meanwhile */
    struct kept *next;
} kept;

static kept *all;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The linker's name for the builder itself. */
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

/* What the file says, and not only its name: tests put kernels of their own into its place. */
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

cleat_status __wrap_cleat_program_build(cleat_device *device, const cleat_program_key *key, cl_program *program,
                                        bool *loaded, cleat_error *error) {
    kept wanted = {0};
    cleat_status status = identify(device, key, &wanted, error);
    if (status) return status;
    *loaded = false;
    *program = find(&wanted);
    if (*program) return CLEAT_OK;
    status = __real_cleat_program_build(device, key, program, loaded, error);
    if (status) return status;
    wanted.program = *program;
    keep(&wanted);
    return CLEAT_OK;
}
