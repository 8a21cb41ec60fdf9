/* Span log: a list under a lock. Threads are told apart by their pthread_t. */
#include "core/span_log.h"

#include "core/clock.h"
#include "core/memory.h"
#include "platform/threads.h"

#include <stdatomic.h>

struct cleat_span_log {
    atomic_bool recording;
    pthread_mutex_t lock; /* protects everything below */
    pthread_t threads[CLEAT_SPAN_THREADS];
    int n_threads;
    cleat_span *spans;
    size_t count, capacity, lost;
};

cleat_status cleat_span_log_create(cleat_span_log **log, cleat_error *error) {
    cleat_span_log *made = cleat_alloc(1, sizeof *made);
    if (!made) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a log of spans");
    atomic_init(&made->recording, false);
    pthread_mutex_init(&made->lock, NULL);
    *log = made;
    return CLEAT_OK;
}

void cleat_span_log_destroy(cleat_span_log *log) {
    if (!log) return;
    pthread_mutex_destroy(&log->lock);
    cleat_free(log->spans);
    cleat_free(log);
}

void cleat_span_log_start(cleat_span_log *log) {
    pthread_mutex_lock(&log->lock);
    log->count = log->lost = 0;
    log->threads[0] = pthread_self();
    log->n_threads = 1;
    atomic_store(&log->recording, true);
    pthread_mutex_unlock(&log->lock);
}

/* Under the lock: a thread that adds a span now has added it, or will find that nothing is recorded. */
void cleat_span_log_stop(cleat_span_log *log) {
    pthread_mutex_lock(&log->lock);
    atomic_store(&log->recording, false);
    pthread_mutex_unlock(&log->lock);
}

double cleat_span_begin(cleat_span_log *log) {
    return log && atomic_load_explicit(&log->recording, memory_order_relaxed) ? cleat_seconds() : 0;
}

void cleat_span_end(cleat_span_log *log, const char *name, int64_t number, double start) {
    if (start > 0) cleat_span_add(log, name, number, start, cleat_seconds());
}

/* Number of the calling thread (lock held); -1: too many threads. */
static int find_thread(cleat_span_log *log) {
    const pthread_t self = pthread_self();
    for (int i = 0; i < log->n_threads; ++i)
        if (pthread_equal(log->threads[i], self)) return i;
    if (log->n_threads == CLEAT_SPAN_THREADS) return -1;
    log->threads[log->n_threads] = self;
    return log->n_threads++;
}

void cleat_span_add(cleat_span_log *log, const char *name, int64_t number, double start, double end) {
    if (!log || !atomic_load(&log->recording)) return;
    pthread_mutex_lock(&log->lock);
    if (!atomic_load(&log->recording)) {
        pthread_mutex_unlock(&log->lock);
        return;
    }
    int thread = find_thread(log);
    if (thread < 0 || log->count == CLEAT_SPANS ||
        cleat_grow(&log->spans, log->count, &log->capacity, NULL) != CLEAT_OK)
        ++log->lost;
    else
        log->spans[log->count++] =
            (cleat_span){.name = name, .thread = thread, .number = number, .start = start, .end = end};
    pthread_mutex_unlock(&log->lock);
}

const cleat_span *cleat_span_log_spans(const cleat_span_log *log, size_t *count) {
    *count = log->count;
    return log->spans;
}

size_t cleat_span_log_lost(const cleat_span_log *log) {
    return log->lost;
}
