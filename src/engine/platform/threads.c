/* Conditions that wait by the monotonic clock; with winpthreads by the clock of the day, the only one that it has. */
#include "platform/threads.h"

#include <errno.h>
#include <time.h>

#ifdef _WIN32
#define CONDITION_CLOCK CLOCK_REALTIME
#else
#define CONDITION_CLOCK CLOCK_MONOTONIC
#endif

void cleat_condition_init(pthread_cond_t *condition) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CONDITION_CLOCK);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

bool cleat_condition_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, double seconds) {
    struct timespec end;
    if (!(seconds > 0)) return false;
    clock_gettime(CONDITION_CLOCK, &end);
    const double fraction = (double)end.tv_nsec * 1e-9 + seconds, whole = (double)(long long)fraction;
    end.tv_sec += (time_t)whole;
    end.tv_nsec = (long)((fraction - whole) * 1e9);
    return pthread_cond_timedwait(condition, mutex, &end) != ETIMEDOUT;
}
