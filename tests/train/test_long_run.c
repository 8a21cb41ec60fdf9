/* Hours of training in simulated time, with an evaluation and a checkpoint in each minute. While clocks jump
 * and the disk fills and empties, memory, file descriptors and threads remain constant, and the bits equal
 * those of an undisturbed run.
 *
 * CLEAT_TEST_HOURS: number of hours (1). Time is simulated: the linker replaces the clocks, the execution,
 * and the functions that write files (CMakeLists.txt: --wrap). Prints its measurements. */
/* ctest: device wrap=cleat_seconds,cleat_wall_seconds,cleat_exec_run,pthread_cond_timedwait,write */
#include "tiny.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "cleat/exec.h"
#include "core/clock.h"
#include "core/memory.h"
#include "platform/files.h"
#include "platform/processes.h"
#include "platform/system.h"
#include "platform/threads.h"

#ifndef __GLIBC_PREREQ /* another runtime */
#define __GLIBC_PREREQ(major, minor) 0
#endif

enum { MAX_HOURS = 240, FAILED_TRIES = 2 };
static const double hour = 3600;
/* The pools of the allocator and the driver fill gradually. */
static const double more_resident = 4e6, more_heap = 50e3;

/* --- simulated time ------------------------------------------------------------------------------------------- */

/* Time passes as on this machine, so waiting threads continue, plus the jumps of both clocks in microseconds. */
static int64_t leap_us, wall_leap_us;

static void add_seconds(int64_t *leap, double seconds) {
    __atomic_add_fetch(leap, (int64_t)(1e6 * seconds), __ATOMIC_RELAXED);
}

static double seconds_in(int64_t *leap) {
    return 1e-6 * (double)__atomic_load_n(leap, __ATOMIC_RELAXED);
}

double __real_cleat_seconds(void);
double __wrap_cleat_seconds(void);
double __wrap_cleat_seconds(void) {
    return __real_cleat_seconds() + seconds_in(&leap_us);
}

double __real_cleat_wall_seconds(void);
double __wrap_cleat_wall_seconds(void);
double __wrap_cleat_wall_seconds(void) {
    return __real_cleat_wall_seconds() + seconds_in(&leap_us) + seconds_in(&wall_leap_us);
}

/* The monitor waits until a time of the simulated clock. */
int __real_pthread_cond_timedwait(pthread_cond_t *changed, pthread_mutex_t *mutex, const struct timespec *until);
int __wrap_pthread_cond_timedwait(pthread_cond_t *changed, pthread_mutex_t *mutex, const struct timespec *until);
int __wrap_pthread_cond_timedwait(pthread_cond_t *changed, pthread_mutex_t *mutex, const struct timespec *until) {
    const double real = (double)until->tv_sec + 1e-9 * (double)until->tv_nsec - seconds_in(&leap_us);
    if (real < 0) return ETIMEDOUT;
    const struct timespec end = {.tv_sec = (time_t)real, .tv_nsec = (long)(1e9 * (real - (double)(time_t)real))};
    return __real_pthread_cond_timedwait(changed, mutex, &end);
}

/* --- a disk that fills ---------------------------------------------------------------------------------------- */

static int64_t room = INT64_MAX; /* bytes */

ssize_t __real_write(int file, const void *bytes, size_t size);
ssize_t __wrap_write(int file, const void *bytes, size_t size);
ssize_t __wrap_write(int file, const void *bytes, size_t size) {
    const int64_t left = __atomic_load_n(&room, __ATOMIC_RELAXED);
    if (left == INT64_MAX) return __real_write(file, bytes, size);
    if (left <= 0 && size > 0) {
        errno = ENOSPC;
        return -1;
    }
    const ssize_t put = __real_write(file, bytes, size < (size_t)left ? size : (size_t)left);
    if (put > 0) __atomic_sub_fetch(&room, put, __ATOMIC_RELAXED);
    return put;
}

/* --- the process's resources ----------------------------------------------------------------------------------- */

typedef struct holdings {
    double bytes; /* resident */
    double heap;  /* allocated and not freed; 0: unknown to this C library */
    int files, threads;
} holdings;

/* ASan's allocator keeps up to 256 MB of freed memory to detect its use. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
size_t __sanitizer_get_current_allocated_bytes(void);
static const bool keeps_freed = true;
#else
static const bool keeps_freed = false;
#endif

static double heap_bytes(void) {
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
    return (double)__sanitizer_get_current_allocated_bytes();
#elif __GLIBC_PREREQ(2, 33)
    const struct mallinfo2 info = mallinfo2();
    return (double)info.uordblks + (double)info.hblkhd;
#else
    return 0;
#endif
}

static int entries(const char *path) {
    int count = 0;
    DIR *folder = opendir(path);
    assert_non_null(folder);
    while (readdir(folder)) ++count;
    closedir(folder);
    return count - 2;
}

static holdings measure(void) {
    long all = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%ld %ld", &all, &resident), 2);
    fclose(file);
    return (holdings){.bytes = (double)resident * (double)sysconf(_SC_PAGESIZE),
                      .heap = heap_bytes(),
                      .files = entries("/proc/self/fd") - 1, /* the folder itself */
                      .threads = entries("/proc/self/task")};
}

/* --- minutes and their events --------------------------------------------------------------------------------- */

static struct {
    double seconds_per_run; /* of a graph; 0: no time passes, and no event occurs */
    double passed;          /* seconds, without jumps */
    int64_t runs;           /* of graphs */
    int minutes, jumps, fillings;
    holdings held[MAX_HOURS * 60]; /* at the beginning of each minute */
} day;

/* Events at minutes of each hour, which the run must not be affected by. */
static void begin_minute(void) {
    switch (day.minutes % 60) {
    case 15:
        add_seconds(&wall_leap_us, -hour), ++day.jumps;
        break; /* a user sets the clock */
    case 20:
        add_seconds(&wall_leap_us, 2 * hour), ++day.jumps;
        break;
    case 25:
        add_seconds(&wall_leap_us, -hour), ++day.jumps;
        break;
    case 30:
        add_seconds(&leap_us, hour), ++day.jumps;
        break; /* the machine was asleep */
    case 40:
        room = 5000, ++day.fillings;
        break;
    }
    if (day.minutes < MAX_HOURS * 60) day.held[day.minutes] = measure();
    ++day.minutes;
}

cleat_status __real_cleat_exec_run(cleat_exec *exec, size_t graph, cleat_error *error);
cleat_status __wrap_cleat_exec_run(cleat_exec *exec, size_t graph, cleat_error *error);
cleat_status __wrap_cleat_exec_run(cleat_exec *exec, size_t graph, cleat_error *error) {
    ++day.runs;
    day.passed += day.seconds_per_run;
    add_seconds(&leap_us, day.seconds_per_run);
    if (day.seconds_per_run > 0 && day.passed >= 60.0 * day.minutes) begin_minute();
    return __real_cleat_exec_run(exec, graph, error);
}

/* --- the runs ------------------------------------------------------------------------------------------------- */

#define DAY                                                                                                            \
    "run.evaluate_every_epochs=1", "run.checkpoint_every_epochs=1", "run.checkpoint_every_minutes=1",                  \
        "run.monitor=0.1s", "run.tensorboard=true"

static const char *epochs_text(int epochs, char text[64]) {
    snprintf(text, 64, "train.epochs=%d", epochs);
    return text;
}

/* Makes an epoch last a minute. Returns the number of graph runs in an epoch. */
static double find_speed(const tiny *t) {
    enum { EPOCHS = 8 };
    char text[64];
    day.runs = 0;
    tiny_train_to(CLEAT_OK, t, "probe", SET(DAY, epochs_text(EPOCHS, text)), false, 0);
    return (double)day.runs / EPOCHS;
}

static void assert_said(const tiny_result *result, const char *word) {
    if (!strstr(result->error.text, word)) fail_msg("'%s' does not contain '%s'", result->error.text, word);
}

/* Trains to the end: on a full disk, the run ends with an error that names the cause, and continues when the
 * disk is empty. */
static void train_through(const tiny *t, const char *run, const char *const *set) {
    int tries = 0;
    for (bool resume = false;; resume = true) {
        tiny_result result = tiny_train(t, run, set, resume, 0);
        if (!result.status) return;
        if (result.status != CLEAT_ERR_IO || room == INT64_MAX) fail_msg("%s: %s", run, result.error.text);
        assert_said(&result, "the disk is full");
        assert_said(&result, run);
        if (++tries % FAILED_TRIES == 0) room = INT64_MAX;
    }
}

/* The number of evaluations in the metrics of the run. */
static int evaluations(const tiny *t, const char *run) {
    char path[TINY_PATH], name[64];
    size_t size;
    int count = 0;
    snprintf(name, sizeof name, "%s/metrics.jsonl", run);
    char *text = tiny_read(tiny_path(t, name, path), &size);
    for (const char *at = text; (at = strstr(at, "{\"kind\":\"eval\"")); ++at) ++count;
    cleat_free(text);
    return count;
}

typedef struct extent {
    double bytes; /* the most */
    double heap;  /* the minimum, as are the following: other threads briefly hold resources */
    int files, threads;
} extent;

static extent extent_of(int from, int to) {
    extent found = {.heap = INFINITY, .files = INT32_MAX, .threads = INT32_MAX};
    for (int i = from; i < to; ++i) {
        if (day.held[i].bytes > found.bytes) found.bytes = day.held[i].bytes;
        if (day.held[i].heap < found.heap) found.heap = day.held[i].heap;
        if (day.held[i].files < found.files) found.files = day.held[i].files;
        if (day.held[i].threads < found.threads) found.threads = day.held[i].threads;
    }
    return found;
}

static void nothing_grows_in_hours(void **state) {
    const tiny *t = *state;
    const char *wanted = getenv("CLEAT_TEST_HOURS");
    const int hours = wanted ? atoi(wanted) : 1;
    char text[64];
    if (hours < 1 || hours > MAX_HOURS) fail_msg("CLEAT_TEST_HOURS=%s: 1 to %d", wanted, MAX_HOURS);
    const int epochs = 60 * hours;
    const char *const *set = SET(DAY, epochs_text(epochs, text));
    const double runs_per_epoch = find_speed(t);
    tiny_train_to(CLEAT_OK, t, "whole", set, false, 0);
    day.seconds_per_run = 60 / runs_per_epoch;
    const double began = __real_cleat_seconds();
    train_through(t, "day", set);
    day.seconds_per_run = 0;

    const extent early = extent_of(day.minutes / 4, day.minutes / 2),
                 late = extent_of(3 * day.minutes / 4, day.minutes);
    printf("%.1f simulated hours in %.0f s: %d evaluations, %d clock jumps, %d full disks\n"
           "from the second quarter to the last: resident %.2f to %.2f MB, heap %.3f to %.3f MB, files %d to %d, "
           "threads %d to %d\n",
           day.passed / hour, __real_cleat_seconds() - began, evaluations(t, "day"), day.jumps, day.fillings,
           1e-6 * early.bytes, 1e-6 * late.bytes, 1e-6 * early.heap, 1e-6 * late.heap, early.files, late.files,
           early.threads, late.threads);
    assert_true(day.minutes >= epochs - 2);
    assert_int_equal(evaluations(t, "day"), epochs);
    assert_true(day.fillings >= hours && day.jumps >= 4 * hours);
    assert_true(keeps_freed || late.bytes <= early.bytes + more_resident);
    assert_true(late.heap <= early.heap + more_heap);
    assert_int_equal(late.files, early.files);
    assert_int_equal(late.threads, early.threads);
    tiny_assert_same_run(t, "whole", "day");
}

int main(void) {
    tiny_require_device();
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_grows_in_hours)};
    return cmocka_run_group_tests_name("long_run", tests, tiny_setup, tiny_teardown);
}
