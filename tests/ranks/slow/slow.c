/* A slower device, by LD_PRELOAD on PoCL's CPU device: after each kernel, the device's thread sleeps
 * CLEAT_TEST_SLOW - 1 times its CPU time. Only the device is slow; unlike a busy loop, this takes no core
 * from other threads and ranks. */
#include <CL/cl.h>

#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

static double seconds_of(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void sleep_after_work(void *unused) {
    static const double least = 2e-4; /* seconds: shorter pauses are combined */
    static _Thread_local double worked, owed;
    const char *factor = getenv("CLEAT_TEST_SLOW");
    const double now = seconds_of(CLOCK_THREAD_CPUTIME_ID);
    (void)unused;
    if (!factor) return;
    if (worked == 0) prctl(PR_SET_TIMERSLACK, 1000UL, 0, 0, 0);
    owed += (atof(factor) - 1) * (worked == 0 ? 0 : now - worked);
    if (owed > least) {
        const double started = seconds_of(CLOCK_MONOTONIC);
        nanosleep(&(struct timespec){(time_t)owed, (long)((owed - (double)(time_t)owed) * 1e9)}, NULL);
        owed -= seconds_of(CLOCK_MONOTONIC) - started;
    }
    worked = seconds_of(CLOCK_THREAD_CPUTIME_ID);
}

typedef cl_int (*enqueue_fn)(cl_command_queue, cl_kernel, cl_uint, const size_t *, const size_t *, const size_t *,
                             cl_uint, const cl_event *, cl_event *);

__attribute__((visibility("default"))) CL_API_ENTRY cl_int CL_API_CALL clEnqueueNDRangeKernel(
    cl_command_queue queue, cl_kernel kernel, cl_uint dims, const size_t *offset, const size_t *global,
    const size_t *local, cl_uint waits, const cl_event *list, cl_event *event) {
    static enqueue_fn real;
    if (!real) real = (enqueue_fn)(uintptr_t)dlsym(RTLD_NEXT, "clEnqueueNDRangeKernel");
    cl_int code = real(queue, kernel, dims, offset, global, local, waits, list, event);
    if (code != CL_SUCCESS) return code;
    return clEnqueueNativeKernel(queue, sleep_after_work, NULL, 0, 0, NULL, NULL, 0, NULL, NULL);
}
