/* Replaces pthread_mutex_lock and pthread_mutex_unlock in every test (linker, --wrap): a thread that releases
 * a lock it does not hold, or waits for one it holds, ends the test at once. Otherwise such races and
 * deadlocks would only show once in many runs. */
#include "platform/processes.h"
#include "platform/threads.h"

#include <stdio.h>
#include <stdlib.h>

int __real_pthread_mutex_lock(pthread_mutex_t *lock);
int __real_pthread_mutex_unlock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock);

static void require(int holds) {
    if (holds) return;
    fputs("a lock is taken twice, or released by a thread that does not hold it\n", stderr);
    abort();
}

/* Only glibc's locks record their owner, even those without a type. */
static int is_mine(const pthread_mutex_t *lock, int otherwise) {
#ifdef __GLIBC__
    (void)otherwise;
    return __atomic_load_n(&lock->__data.__owner, __ATOMIC_RELAXED) == (int)syscall(SYS_gettid);
#else
    (void)lock;
    return otherwise;
#endif
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *lock) {
    require(!is_mine(lock, 0));
    return __real_pthread_mutex_lock(lock);
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock) {
    require(is_mine(lock, 1));
    return __real_pthread_mutex_unlock(lock);
}
