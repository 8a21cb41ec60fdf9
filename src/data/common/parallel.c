/* Parallel loop over items on a few threads. */
#include "data/common/parallel.h"

#include "core/cpus.h"
#include "platform/threads.h"

#include <stdatomic.h>

enum { MAX_THREADS = 8, ITEMS_A_THREAD = 16 };

typedef struct job {
    cleat_parallel_work work;
    void *user;
    size_t count;
    /* indices are handed out in order, so that all smaller ones have been handed out when one fails */
    atomic_size_t next;
    atomic_bool stop;
    pthread_mutex_t lock; /* protects the members below */
    size_t failed;        /* index of the error that ended the loop */
    cleat_status status;
    cleat_error error;
    cleat_faults faults;
} job;

static void keep_failure(job *j, size_t index, cleat_status status, const cleat_error *error) {
    const bool local = cleat_fault_is_local(error);
    pthread_mutex_lock(&j->lock);
    if (local) {
        (void)cleat_faults_keep(&j->faults, index, error, NULL);
    } else if (!j->status || index < j->failed) {
        j->failed = index;
        j->status = status;
        j->error = *error;
    }
    pthread_mutex_unlock(&j->lock);
    if (!local) atomic_store(&j->stop, true);
}

static void *run(void *argument) {
    job *j = argument;
    cleat_error error = {0};
    for (size_t i; !atomic_load(&j->stop) && (i = atomic_fetch_add(&j->next, 1)) < j->count;) {
        cleat_status status = j->work(j->user, i, &error);
        if (status) keep_failure(j, i, status, &error);
    }
    return NULL;
}

cleat_status cleat_parallel_collect(size_t count, cleat_parallel_work work, void *user, cleat_faults *faults,
                                    cleat_error *error) {
    pthread_t threads[MAX_THREADS];
    job j = {.work = work, .user = user, .count = count};
    size_t wanted = (size_t)cleat_cpus(), started = 0;
    if (wanted > MAX_THREADS) wanted = MAX_THREADS;
    if (wanted > count / ITEMS_A_THREAD + 1) wanted = count / ITEMS_A_THREAD + 1;
    if (pthread_mutex_init(&j.lock, NULL) != 0) return cleat_fail(error, CLEAT_ERR_MEMORY, "cannot create a lock");
    while (started + 1 < wanted && pthread_create(&threads[started], NULL, run, &j) == 0) ++started;
    run(&j);
    for (size_t i = 0; i < started; ++i) pthread_join(threads[i], NULL);
    pthread_mutex_destroy(&j.lock);
    if (j.status && error) *error = j.error;
    cleat_faults_append(faults, &j.faults);
    return j.status;
}

cleat_status cleat_parallel(size_t count, cleat_parallel_work work, void *user, cleat_error *error) {
    cleat_faults faults = {0};
    cleat_status status = cleat_parallel_collect(count, work, user, &faults, error);
    return status ? status : cleat_faults_report(&faults, error);
}
