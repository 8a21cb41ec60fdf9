/* The batch finder: the micro-batches it tries, its handling of children that are killed, crash, hang, or
 * report nothing or nonsense, and its evaluation of a curve; on a device, plans bound the runs. No test opens
 * OpenCL in this process, because it forks. */
/* ctest: device */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>
#include <time.h>

#include "bench/batch_search.h"
#include "cleat/bench.h"
#include "core/child.h"
#include "fit/buckets.h"
#include "platform/files.h"
#include "platform/processes.h"
#include "train/tiny.h"

/* --- made-up curves ------------------------------------------------------------------------------------------- */

typedef struct pair {
    int64_t micro_batch_size;
    double rate; /* samples per second; 0: did not run */
} pair;

/* All steps take the same time. */
static cleat_batch_search curve(const pair *pairs, size_t count) {
    cleat_batch_search search = {.count = count};
    for (size_t i = 0; i < count; ++i)
        search.points[i] = (cleat_batch_point){.micro_batch_size = pairs[i].micro_batch_size,
                                               .ran = pairs[i].rate != 0,
                                               .ms_min = 1e3 * (double)pairs[i].micro_batch_size / pairs[i].rate,
                                               .samples_per_second = pairs[i].rate};
    return search;
}

static cleat_batch_search select_batch(const pair *pairs, size_t count) {
    cleat_batch_search search = curve(pairs, count);
    cleat_batch_search_select(&search);
    return search;
}
#define JUDGE(...) select_batch((const pair[]){__VA_ARGS__}, sizeof((const pair[]){__VA_ARGS__}) / sizeof(pair))

static void assert_judged(cleat_batch_search search, int64_t largest, int64_t best, int64_t cliff,
                          int64_t recommended) {
    assert_int_equal(search.largest, largest);
    assert_int_equal(search.best, best);
    assert_int_equal(search.cliff, cliff);
    assert_int_equal(search.recommended, recommended);
    assert_true((search.why[0] != 0) == (recommended > 0));
}

static void curves_are_judged(void **state) {
    (void)state;
    assert_judged(JUDGE({1, 10}, {2, 19}, {4, 35}, {8, 60}), 8, 8, 0, 8);
    /* The smallest batch near the best. */
    assert_judged(JUDGE({1, 10}, {2, 97.1}, {4, 98}, {8, 100}), 8, 8, 0, 2);
    assert_judged(JUDGE({1, 10}, {2, 96.9}, {4, 98}, {8, 100}), 8, 8, 0, 4);
    /* A slightly slower batch is not a cliff, a much slower one is; it is reported at the first such batch
     * above the best. */
    assert_judged(JUDGE({1, 50}, {2, 100}, {4, 86}), 4, 2, 0, 2);
    assert_judged(JUDGE({1, 50}, {2, 100}, {4, 86}, {8, 84}, {16, 20}), 16, 2, 8, 2);
    assert_judged(JUDGE({1, 10}, {2, 100}), 2, 2, 0, 2);
    assert_judged(JUDGE({1, 100}, {2, 50}), 2, 1, 2, 1);
    /* Batches that did not run and invalid numbers are ignored. */
    assert_judged(JUDGE({1, 10}, {2, 20}, {4, 0}), 2, 2, 0, 2);
    assert_judged(JUDGE({1, 10}, {2, NAN}), 2, 1, 0, 1);
    assert_judged(JUDGE({1, 0}), 0, 0, 0, 0);
    assert_judged(select_batch(NULL, 0), 0, 0, 0, 0);
}

/* A few slow steps are not a cliff, because the machine may be busy. */
static void a_busy_machine_is_no_cliff(void **state) {
    (void)state;
    cleat_batch_search search = curve((const pair[]){{1, 50}, {2, 100}, {4, 60}, {8, 60}}, 4);
    search.points[2].ms_min = 4 / 99.0 * 1e3;
    search.points[3].ms_min = 8 / 84.0 * 1e3;
    cleat_batch_search_select(&search);
    assert_judged(search, 8, 2, 8, 2);
    search.points[3].ms_min = 8 / 86.0 * 1e3;
    cleat_batch_search_select(&search);
    assert_judged(search, 8, 2, 0, 2);
}

/* --- made-up children ----------------------------------------------------------------------------------------- */

typedef enum ending {
    RUNS,
    TOO_LARGE, /* refused by the plan */
    REFUSED,   /* fails with an error, although the plan fits */
    ABORTS,
    KILLED,
    KILLED_AFTER_PLAN,
    CRASHES_AFTERWARDS, /* crashes after reporting its result */
    HANGS,
    SILENT,
    EXIT_CODE,
    GARBAGE,
    HALF_A_REPORT,
    ANOTHER_BATCH,
} ending;

/* The outcome of batches >= `from`. */
typedef struct story {
    int64_t from, global_batch_size;
    ending fate;
} story;

static void hang(void) {
    for (;;) sleep(1);
}

static void simulate(const story *script, ending fate, const cleat_batch_trial *trial, int out) {
    cleat_batch_report report = {.mark = CLEAT_BATCH_MARK,
                                 .point = {.micro_batch_size = trial->micro_batch_size,
                                           .planned_bytes = 100 * trial->micro_batch_size,
                                           .limit_bytes = 100 * script->from - 1,
                                           .planned_fits = true}};
    switch (fate) {
    case RUNS:
    case CRASHES_AFTERWARDS:
    case ANOTHER_BATCH:
        report.point.ran = true;
        report.point.ms_median = 1;
        report.point.samples_per_second = 1000.0 * (double)trial->micro_batch_size;
        if (fate == ANOTHER_BATCH) ++report.point.micro_batch_size;
        cleat_child_send(out, &report, sizeof report);
        if (fate == CRASHES_AFTERWARDS) raise(SIGKILL);
        return;
    case TOO_LARGE:
        report.point.planned_fits = false;
        report.status = CLEAT_ERR_FIT;
        report.fitting = script->from - 1 > trial->good ? script->from - 1 : 0;
        snprintf(report.point.error, sizeof report.point.error, "made-up card");
        snprintf(report.text, sizeof report.text, "made-up card, at length");
        cleat_child_send(out, &report, sizeof report);
        return;
    case REFUSED:
        report.status = CLEAT_ERR_DEVICE_MEMORY;
        snprintf(report.point.error, sizeof report.point.error, "CL_OUT_OF_RESOURCES");
        cleat_child_send(out, &report, sizeof report);
        return;
    case ABORTS:
        signal(SIGABRT, SIG_DFL); /* restores the default, replacing the handler of CMocka or a sanitizer */
        abort();
    case KILLED_AFTER_PLAN:
        cleat_child_send(out, &report, sizeof report);
        raise(SIGKILL);
        return;
    case KILLED:
        raise(SIGKILL);
        return;
    case HANGS:
        hang();
        return;
    case SILENT:
        return;
    case EXIT_CODE:
        _exit(3);
    case GARBAGE:
        for (size_t i = 0; i < sizeof report; ++i) ((unsigned char *)&report)[i] = (unsigned char)(i * 7 + 1);
        cleat_child_send(out, &report, sizeof report);
        return;
    case HALF_A_REPORT:
        cleat_child_send(out, &report, sizeof report / 2);
        return;
    }
}

static void attempt(void *user, const cleat_batch_trial *trial, int out) {
    const story *script = user;
    simulate(script, trial->micro_batch_size >= script->from ? script->fate : RUNS, trial, out);
}

typedef struct recorded {
    size_t count;
    int64_t batches[CLEAT_BATCH_POINTS];
} recorded;

static void record_point(void *user, const cleat_batch_point *point) {
    recorded *h = user;
    h->batches[h->count++] = point->micro_batch_size;
}

static cleat_status search(story *script, cleat_batch_search *found, recorded *h, cleat_error *error) {
    cleat_batch_search_options options = {.point = record_point, .user = h};
    double seconds = script->fate == HANGS ? 1 : 30;
    cleat_batch_searcher searcher = {.global_batch_size = script->global_batch_size,
                                     .attempt = attempt,
                                     .user = script,
                                     .first_seconds = seconds,
                                     .min_seconds = seconds,
                                     .options = &options};
    return cleat_batch_search_run(&searcher, found, error);
}

static void assert_tried(const recorded *h, const int64_t *batches) {
    for (size_t i = 0; batches[i] || i < h->count; ++i) {
        if (i == h->count) fail_msg("%lld was not tried", (long long)batches[i]);
        if (h->batches[i] != batches[i])
            fail_msg("try %zu was %lld, not %lld", i, (long long)h->batches[i], (long long)batches[i]);
    }
}
#define ASSERT_TRIED(h, ...) assert_tried(h, (const int64_t[]){__VA_ARGS__, 0})

/* Runs a whole search and checks the tried batches, the largest that ran, and the message of the first failure. */
static void assert_search(story script, int64_t largest, const char *says, const int64_t *tries) {
    cleat_batch_search found = {0};
    recorded h = {0};
    cleat_error error = {0};
    if (search(&script, &found, &h, &error) != CLEAT_OK) fail_msg("%s", error.text);
    assert_tried(&h, tries);
    assert_int_equal(found.count, h.count);
    assert_int_equal(found.largest, largest);
    assert_int_equal(found.global_batch_size, script.global_batch_size);
    for (size_t i = 0; i < found.count; ++i) {
        const cleat_batch_point *point = &found.points[i];
        if (i > 0) assert_true(point->micro_batch_size > found.points[i - 1].micro_batch_size);
        assert_true(point->ran == (point->micro_batch_size < script.from || script.fate == CRASHES_AFTERWARDS));
        if (point->ran)
            assert_string_equal(point->error, "");
        else if (!strstr(point->error, says))
            fail_msg("batch %lld reports '%s', not '%s'", (long long)point->micro_batch_size, point->error, says);
    }
}
#define TRIES(...) ((const int64_t[]){__VA_ARGS__, 0})

static void batches_double(void **state) {
    (void)state;
    assert_search((story){.from = 100, .global_batch_size = 1}, 1, "", TRIES(1));
    assert_search((story){.from = 100, .global_batch_size = 32}, 32, "", TRIES(1, 2, 4, 8, 16, 32));
    /* Only divisions of a global batch are tried: 24 in halves, not 16 and 8. */
    assert_search((story){.from = 100, .global_batch_size = 24}, 24, "", TRIES(1, 2, 4, 8, 12, 24));
    assert_search((story){.from = 100, .global_batch_size = 7}, 7, "", TRIES(1, 2, 4, 7));
}

/* The last try is the largest batch that the plan allows. */
static void a_plan_bounds_the_search(void **state) {
    (void)state;
    assert_search((story){.from = 12, .global_batch_size = 32, .fate = TOO_LARGE}, 11, "made-up",
                  TRIES(1, 2, 4, 8, 16, 11));
    assert_search((story){.from = 16, .global_batch_size = 32, .fate = TOO_LARGE}, 11, "made-up",
                  TRIES(1, 2, 4, 8, 16, 11));
    assert_search((story){.from = 9, .global_batch_size = 32, .fate = TOO_LARGE}, 8, "made-up", TRIES(1, 2, 4, 8, 16));
    assert_search((story){.from = 2, .global_batch_size = 32, .fate = TOO_LARGE}, 1, "made-up", TRIES(1, 2));
}

static void a_failure_bounds_the_search(void **state) {
    (void)state;
    assert_search((story){.from = 500, .global_batch_size = 1024, .fate = REFUSED}, 342, "CL_OUT_OF_RESOURCES",
                  TRIES(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 342));
    assert_search((story){.from = 3, .global_batch_size = 4, .fate = REFUSED}, 2, "CL_OUT_OF_RESOURCES",
                  TRIES(1, 2, 4));
}

static void bad_children_are_points(void **state) {
    (void)state;
    static const struct {
        ending fate;
        const char *says;
    } rows[] = {{ABORTS, "signal 6"},
                {KILLED, "killed by signal 9: did the system run out of memory?"},
                {KILLED_AFTER_PLAN, "killed by signal 9"},
                {SILENT, "without a result"},
                {EXIT_CODE, "exited with code 3"},
                {GARBAGE, "an invalid result"},
                {HALF_A_REPORT, "an invalid result"},
                {ANOTHER_BATCH, "an invalid result"},
                {HANGS, "no answer within"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i)
        assert_search((story){.from = 4, .global_batch_size = 4, .fate = rows[i].fate}, 2, rows[i].says,
                      TRIES(1, 2, 4));
    /* A reported result remains valid. */
    assert_search((story){.from = 4, .global_batch_size = 4, .fate = CRASHES_AFTERWARDS}, 4, "", TRIES(1, 2, 4));
}

static void a_killed_child_still_tells_its_plan(void **state) {
    (void)state;
    story killed = {.from = 2, .global_batch_size = 2, .fate = KILLED_AFTER_PLAN};
    cleat_batch_search found = {0};
    recorded h = {0};
    assert_int_equal(search(&killed, &found, &h, NULL), CLEAT_OK);
    assert_int_equal(found.points[1].planned_bytes, 200);
    assert_true(found.points[1].planned_fits);
    assert_false(found.points[1].ran);
}

/* Not even one sample trains: the status gives the reason, and the point is recorded. */
static void nothing_trains(void **state) {
    (void)state;
    static const struct {
        ending fate;
        cleat_status status;
        const char *says;
    } rows[] = {{TOO_LARGE, CLEAT_ERR_FIT, "made-up card, at length"},
                {REFUSED, CLEAT_ERR_DEVICE_MEMORY, "CL_OUT_OF_RESOURCES"},
                {KILLED, CLEAT_ERR_DEVICE_MEMORY, "out of memory?"},
                {ABORTS, CLEAT_ERR_DEVICE, "signal 6"},
                {HANGS, CLEAT_ERR_DEVICE, "no answer"},
                {SILENT, CLEAT_ERR_DEVICE, "without a result"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        story bad = {.from = 1, .global_batch_size = 8, .fate = rows[i].fate};
        cleat_batch_search found = {0};
        recorded h = {0};
        cleat_error error = {0};
        assert_int_equal(search(&bad, &found, &h, &error), rows[i].status);
        assert_non_null(strstr(error.text, rows[i].says));
        ASSERT_TRIED(&h, 1);
        assert_int_equal(found.count, 1);
        assert_int_equal(found.largest, 0);
        assert_int_equal(found.recommended, 0);
    }
}

/* No process and no open file remains. */
static void children_leave_nothing(void **state) {
    (void)state;
    story hangs = {.from = 2, .global_batch_size = 2, .fate = HANGS};
    cleat_batch_search found = {0};
    recorded h = {0};
    int before = dup(0), after;
    close(before);
    assert_int_equal(search(&hangs, &found, &h, NULL), CLEAT_OK);
    after = dup(0);
    close(after);
    assert_int_equal(after, before);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void no_signal(int signal) {
    (void)signal;
}

/* The caller's timer fires continuously: every wait is interrupted. */
static void interruptions_do_not_matter(void **state) {
    struct sigaction act = {.sa_handler = no_signal}, old;
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    const struct itimerspec often = {{0, 1000000}, {0, 1000000}};
    sigaction(SIGUSR1, &act, &old);
    assert_int_equal(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
    assert_int_equal(timer_settime(timer, 0, &often, NULL), 0);
    batches_double(state);
    assert_search((story){.from = 4, .global_batch_size = 4, .fate = HANGS}, 2, "no answer within", TRIES(1, 2, 4));
    timer_delete(timer);
    sigaction(SIGUSR1, &old, NULL);
}

/* The caller lets the system reap its children (SIGCHLD ignored). */
static void ignored_children_are_heard(void **state) {
    signal(SIGCHLD, SIG_IGN);
    batches_double(state);
    signal(SIGCHLD, SIG_DFL);
}

/* --- a device ------------------------------------------------------------------------------------------------- */

/* Runs in a child, like everything that opens a device: see tiny_require_device. */
static bool device_is_there(void) {
    int code = 0;
    pid_t pid = fork();
    if (pid == 0) {
        tiny_require_device();
        _exit(0);
    }
    waitpid(pid, &code, 0);
    return pid > 0 && WIFEXITED(code) && WEXITSTATUS(code) == 0;
}

static const char *const eight_samples[] = {"train.batch_size=auto", "train.effective_batch_size=8",
                                            "train.gradient_checkpointing=false", NULL};

static cleat_batch_search find(const tiny *t, cleat_status wanted, cleat_error *error) {
    cleat_profile *profile = tiny_profile(t, eight_samples);
    cleat_batch_search found;
    cleat_batch_search_options options = {.seconds = 1e-3};
    cleat_status status = cleat_find_batch(profile, &options, &found, error);
    cleat_profile_destroy(profile);
    if (status != wanted) fail_msg("status '%s': %s", cleat_status_text(status), error->text);
    return found;
}

static const cleat_batch_point *point_of(const cleat_batch_search *search, int64_t micro_batch_size) {
    for (size_t i = 0; i < search->count; ++i)
        if (search->points[i].micro_batch_size == micro_batch_size) return &search->points[i];
    fail_msg("no point of batch %lld", (long long)micro_batch_size);
    return NULL;
}

static void assert_ran(const cleat_batch_point *point) {
    if (!point->ran) fail_msg("batch %lld: %s", (long long)point->micro_batch_size, point->error);
    assert_true(point->planned_fits);
    assert_int_equal(point->allocated_bytes, point->planned_bytes);
    assert_true(point->planned_bytes > 0 && point->planned_bytes <= point->limit_bytes);
    assert_true(point->ms_min > 0 && point->ms_min <= point->ms_median && point->ms_median <= point->ms_max);
    assert_true(fabs(point->samples_per_second * point->ms_median / 1e3 / (double)point->micro_batch_size - 1) < 1e-9);
}

static void set_limit(int64_t bytes) {
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)bytes);
    setenv("CLEAT_DEVICE_MEMORY_LIMIT", text, 1);
}

/* The same profile on ever smaller cards: the batches that run are those that the large card's plans predict. */
static void the_plan_bounds_what_runs(void **state) {
    const tiny *t = *state;
    cleat_error error = {0};
    cleat_batch_search all = find(t, CLEAT_OK, &error);
    assert_int_equal(all.count, 4); /* 1, 2, 4, 8 */
    assert_int_equal(all.largest, 8);
    assert_int_equal(all.global_batch_size, 8);
    assert_true(all.length > 0 && all.recommended >= 1 && all.best >= all.recommended);
    for (size_t i = 0; i < all.count; ++i) assert_ran(&all.points[i]);

    /* A card whose max_memory_usage (0.9) is exactly the size of a batch of 4. */
    int64_t four = point_of(&all, 4)->planned_bytes;
    set_limit((int64_t)ceil((double)four / 0.9) + 1);
    cleat_batch_search small = find(t, CLEAT_OK, &error);
    assert_int_equal(small.largest, 4);
    assert_ran(point_of(&small, 4));
    const cleat_batch_point *eight = point_of(&small, 8);
    assert_false(eight->planned_fits || eight->ran);
    assert_true(eight->planned_bytes > eight->limit_bytes && eight->limit_bytes >= four);
    /* A smaller limit on buffers may change the layout slightly. */
    assert_true(llabs(eight->planned_bytes - point_of(&all, 8)->planned_bytes) <= eight->planned_bytes / 50);
    assert_true(eight->error[0] != 0);

    /* A card on which it is slightly less. */
    set_limit((int64_t)((double)(four - 1) / 0.9));
    cleat_batch_search smaller = find(t, CLEAT_OK, &error);
    assert_true(smaller.largest >= 2 && smaller.largest < 4);
    assert_false(point_of(&smaller, 4)->planned_fits);

    set_limit(10000);
    cleat_batch_search none = find(t, CLEAT_ERR_FIT, &error);
    assert_int_equal(none.count, 1);
    assert_int_equal(none.largest, 0);
    assert_true(none.points[0].error[0] != 0 && error.text[0] != 0);
    unsetenv("CLEAT_DEVICE_MEMORY_LIMIT");
}

/* Device and data errors are reported as such, not as a batch that does not fit. */
static void other_errors_are_themselves(void **state) {
    const tiny *t = *state;
    cleat_error error = {0};
    cleat_batch_search found;
    cleat_profile *profile = tiny_profile(t, SET("run.device=no such device"));
    assert_int_equal(cleat_find_batch(profile, NULL, &found, &error), CLEAT_ERR_NO_DEVICE);
    assert_non_null(strstr(error.text, "no such device"));
    cleat_profile_destroy(profile);

    char text[TINY_PATH], path[TINY_PATH];
    assert_non_null(mkdtemp(strcpy(path, "/tmp/cleat-empty-XXXXXX")));
    snprintf(text, sizeof text, "data.path=%.400s", path);
    profile = tiny_profile(t, SET(text));
    assert_int_not_equal(cleat_find_batch(profile, NULL, &found, &error), CLEAT_OK);
    assert_non_null(strstr(error.text, path));
    assert_int_equal(found.count, 0);
    cleat_profile_destroy(profile);
    rmdir(path);
}

int main(void) {
    const struct CMUnitTest pure[] = {
        cmocka_unit_test(curves_are_judged),
        cmocka_unit_test(a_busy_machine_is_no_cliff),
        cmocka_unit_test(batches_double),
        cmocka_unit_test(a_plan_bounds_the_search),
        cmocka_unit_test(a_failure_bounds_the_search),
        cmocka_unit_test(bad_children_are_points),
        cmocka_unit_test(a_killed_child_still_tells_its_plan),
        cmocka_unit_test(nothing_trains),
        cmocka_unit_test(children_leave_nothing),
        cmocka_unit_test(interruptions_do_not_matter),
        cmocka_unit_test(ignored_children_are_heard),
    };
    const struct CMUnitTest on_a_device[] = {
        cmocka_unit_test(the_plan_bounds_what_runs),
        cmocka_unit_test(other_errors_are_themselves),
    };
    int failed = cmocka_run_group_tests(pure, NULL, NULL);
    if (!device_is_there()) return failed ? failed : 77;
    return failed + cmocka_run_group_tests(on_a_device, tiny_setup, tiny_teardown);
}
