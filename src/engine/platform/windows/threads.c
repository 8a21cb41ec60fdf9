/* Conditions that wait by the clock of the day, the only one of winpthreads: if it is set back, a wait takes longer. */
#include "platform/threads.h"

#include <errno.h>
#include <time.h>

void cleat_condition_init(pthread_cond_t *condition) {
    pthread_cond_init(condition, NULL);
}

bool cleat_condition_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, double seconds) {
    struct timespec end;
    if (!(seconds > 0)) return false;
    clock_gettime(CLOCK_REALTIME, &end);
    const double fraction = (double)end.tv_nsec * 1e-9 + seconds, whole = (double)(long long)fraction;
    end.tv_sec += (time_t)whole;
    end.tv_nsec = (long)((fraction - whole) * 1e9);
    return pthread_cond_timedwait(condition, mutex, &end) != ETIMEDOUT;
}
