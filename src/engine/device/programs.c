/* Background build of programs: a caller that needs one program waits for that one only. */
#include "device/programs.h"
#include "core/clock.h"
#include "core/cpus.h"
#include "core/memory.h"
#include "device/probe.h"
#include "platform/threads.h"

#include <time.h>

enum { MAX_THREADS = 16 };

typedef enum build_state { NOBODYS, UNDER_WAY, DONE } build_state;

typedef struct build {
    build_state state;
    cl_program program;
    bool loaded;
    cleat_error error;
} build;

struct cleat_programs {
    cleat_device *device;
    const cleat_program_key *keys; /* [count] */
    build *builds;                 /* [count] */
    size_t count;
    cleat_program_gate gate;
    double waited;
    pthread_mutex_t lock; /* protects the states, `waited` and `stop` */
    pthread_cond_t done;
    bool stop;
    pthread_t threads[MAX_THREADS];
    size_t thread_count;
};

/* Builds a program whose build has not started. The caller holds the lock, which is released during the build. */
static void build_claimed(cleat_programs *programs, size_t index) {
    build *b = &programs->builds[index];
    b->state = UNDER_WAY;
    pthread_mutex_unlock(&programs->lock);
    b->error.status = cleat_program_build(programs->device, &programs->keys[index], &b->program, &b->loaded, &b->error);
    pthread_mutex_lock(&programs->lock);
    b->state = DONE;
    pthread_cond_broadcast(&programs->done);
}

static bool is_open(const cleat_programs *programs, size_t index) {
    return !programs->gate.is_open || programs->gate.is_open(programs->gate.user, index);
}

/* Lets others work for a moment. The caller holds the lock. */
static void pause_unlocked(cleat_programs *programs) {
    const struct timespec moment = {.tv_nsec = 3000000};
    pthread_mutex_unlock(&programs->lock);
    nanosleep(&moment, NULL);
    pthread_mutex_lock(&programs->lock);
}

/* The first program whose build has not started and whose gate is open; `count` if there is none.
 * *waits: others are closed. */
static size_t next_open(const cleat_programs *programs, bool *waits) {
    *waits = false;
    for (size_t i = 0; i < programs->count; ++i) {
        if (programs->builds[i].state != NOBODYS) continue;
        if (is_open(programs, i)) return i;
        *waits = true;
    }
    return programs->count;
}

static void *build_all(void *user) {
    cleat_programs *programs = user;
    bool waits = true;
    pthread_mutex_lock(&programs->lock);
    while (waits && !programs->stop) {
        const size_t i = next_open(programs, &waits);
        if (i < programs->count) {
            build_claimed(programs, i);
            waits = true;
        } else if (waits) {
            pause_unlocked(programs);
        }
    }
    pthread_mutex_unlock(&programs->lock);
    cleat_trim_memory(); /* of the compiler, while the first step fills buffers */
    return NULL;
}

/* It is not an error if no thread starts: each program is then built when it is first needed. */
static void start_threads(cleat_programs *programs) {
    size_t thread_limit = (size_t)cleat_cpus();
    if (thread_limit > MAX_THREADS) thread_limit = MAX_THREADS;
    if (thread_limit > programs->count) thread_limit = programs->count;
    if (programs->device->quirks & CLEAT_QUIRK_ONE_BUILD_THREAD) thread_limit = 0;
    while (programs->thread_count < thread_limit &&
           pthread_create(&programs->threads[programs->thread_count], NULL, build_all, programs) == 0)
        ++programs->thread_count;
}

cleat_status cleat_programs_start(cleat_device *device, const cleat_program_key *keys, size_t count,
                                  const cleat_program_gate *gate, cleat_programs **programs, cleat_error *error) {
    cleat_programs *made = cleat_alloc(1, sizeof *made);
    build *builds = cleat_alloc(count, sizeof *builds);
    if (!made || !builds) {
        cleat_free(builds);
        cleat_free(made);
        return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %zu programs", count);
    }
    made->device = device;
    made->keys = keys;
    made->builds = builds;
    made->count = count;
    if (gate) made->gate = *gate;
    pthread_mutex_init(&made->lock, NULL);
    pthread_cond_init(&made->done, NULL);
    start_threads(made);
    *programs = made;
    return CLEAT_OK;
}

bool cleat_programs_is_ready(cleat_programs *programs, size_t index) {
    pthread_mutex_lock(&programs->lock);
    bool ready = programs->builds[index].state == DONE;
    pthread_mutex_unlock(&programs->lock);
    return ready;
}

cleat_status cleat_programs_get(cleat_programs *programs, size_t index, cl_program *program, cleat_error *error) {
    build *b = &programs->builds[index];
    double start = cleat_seconds();
    pthread_mutex_lock(&programs->lock);
    while (b->state == NOBODYS && !is_open(programs, index)) pause_unlocked(programs);
    if (b->state == NOBODYS) build_claimed(programs, index);
    while (b->state != DONE) pthread_cond_wait(&programs->done, &programs->lock);
    programs->waited += cleat_seconds() - start;
    pthread_mutex_unlock(&programs->lock);
    if (!b->error.status)
        *program = b->program;
    else if (error)
        *error = b->error;
    return b->error.status;
}

cleat_program_stats cleat_programs_count(cleat_programs *programs) {
    pthread_mutex_lock(&programs->lock);
    cleat_program_stats stats = {.count = programs->count, .waited = programs->waited};
    for (size_t i = 0; i < programs->count; ++i) {
        const build *b = &programs->builds[i];
        if (b->state == DONE && b->program) ++*(b->loaded ? &stats.loaded : &stats.built);
    }
    pthread_mutex_unlock(&programs->lock);
    return stats;
}

void cleat_programs_destroy(cleat_programs *programs) {
    if (!programs) return;
    pthread_mutex_lock(&programs->lock);
    programs->stop = true;
    pthread_mutex_unlock(&programs->lock);
    for (size_t i = 0; i < programs->thread_count; ++i) pthread_join(programs->threads[i], NULL);
    for (size_t i = 0; i < programs->count; ++i)
        if (programs->builds[i].program) clReleaseProgram(programs->builds[i].program);
    pthread_cond_destroy(&programs->done);
    pthread_mutex_destroy(&programs->lock);
    cleat_free(programs->builds);
    cleat_free(programs);
}
