/* Threads, by the names of POSIX; on Windows those of mingw-w64's winpthreads. */
#ifndef CLEAT_SRC_PLATFORM_THREADS_H
#define CLEAT_SRC_PLATFORM_THREADS_H

#include <pthread.h>
#include <stdbool.h>

/* A condition for cleat_condition_wait. On POSIX its waits do not depend on changes of the wall clock. */
void cleat_condition_init(pthread_cond_t *condition);
/* Waits for a signal, with the mutex locked; false after `seconds`. Like pthread_cond_wait, it may return early. */
bool cleat_condition_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, double seconds);

#endif
