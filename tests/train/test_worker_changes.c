/* Training while the number of loader threads changes: the bits are the same, and the number increases until
 * the device no longer waits for batches. The linker replaces (CMakeLists.txt: --wrap) the CPUs, the clock,
 * and the decisions; slow_samples.h replaces the filling of a sample. */
/* ctest: device cost=10 with=slow_samples.c */
/* ctest: wrap=cleat_cpus,cleat_seconds,cleat_worker_tuning_is_due,cleat_worker_tuning_decide */
/* ctest: wrap=cleat_dataset_fill */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "core/clock.h"
#include "core/memory.h"
#include "platform/processes.h"
#include "session/feed.h"
#include "session/worker_tuning.h"
#include "slow_samples.h"
#include "tiny.h"
#include "train/run_data.h"

/* Replacements of the originals; zero: none. */
static struct {
    int cpus;
    const int *script; /* [script_count] numbers of threads, one per hand-over */
    size_t script_count, scripted;
    double speed; /* of the clock */
} hooks;

static void replace_nothing(void) {
    memset(&hooks, 0, sizeof hooks);
    slow_samples_ns = 0;
}

int __real_cleat_cpus(void);
int __wrap_cleat_cpus(void);
int __wrap_cleat_cpus(void) {
    return hooks.cpus ? hooks.cpus : __real_cleat_cpus();
}

double __real_cleat_seconds(void);
double __wrap_cleat_seconds(void);
double __wrap_cleat_seconds(void) {
    return __real_cleat_seconds() * (hooks.speed > 0 ? hooks.speed : 1);
}

bool __real_cleat_worker_tuning_is_due(const cleat_worker_tuning *tuning, const cleat_worker_sample *now);
bool __wrap_cleat_worker_tuning_is_due(const cleat_worker_tuning *tuning, const cleat_worker_sample *now);
bool __wrap_cleat_worker_tuning_is_due(const cleat_worker_tuning *tuning, const cleat_worker_sample *now) {
    return hooks.script ? true : __real_cleat_worker_tuning_is_due(tuning, now);
}

cleat_worker_decision __real_cleat_worker_tuning_decide(cleat_worker_tuning *tuning, const cleat_worker_sample *now,
                                                        const cleat_worker_bounds *bounds);
cleat_worker_decision __wrap_cleat_worker_tuning_decide(cleat_worker_tuning *tuning, const cleat_worker_sample *now,
                                                        const cleat_worker_bounds *bounds);
cleat_worker_decision __wrap_cleat_worker_tuning_decide(cleat_worker_tuning *tuning, const cleat_worker_sample *now,
                                                        const cleat_worker_bounds *bounds) {
    if (!hooks.script) return __real_cleat_worker_tuning_decide(tuning, now, bounds);
    tuning->workers = hooks.script[hooks.scripted++ % hooks.script_count];
    return (cleat_worker_decision){.workers = tuning->workers, .reason = "the test says so"};
}

/* --- the same bits -------------------------------------------------------------------------------------------- */

static void assert_resolved(const tiny *t, const char *run, const char *line) {
    char name[64], path[TINY_PATH];
    size_t size;
    snprintf(name, sizeof name, "%s/resolved.ini", run);
    char *text = tiny_read(tiny_path(t, name, path), &size);
    if (!strstr(text, line)) fail_msg("%s lacks '%s'", path, line);
    cleat_free(text);
}

/* resolved.ini has the initial number of threads. */
static void threads_that_change_do_not_change_the_bits(void **state) {
    static const int script[] = {1, 4, 2, 7, 3, 3, 1, 6};
    const tiny *t = *state;
    tiny_train_to(CLEAT_OK, t, "zero", SET("loader.num_workers=0"), false, 0);
    for (int persistent = 0; persistent <= 1; ++persistent) {
        const char *run = persistent ? "changing" : "ending";
        const char *keep = persistent ? "loader.persistent_workers=true" : "loader.persistent_workers=false";
        replace_nothing();
        hooks.script = script;
        hooks.script_count = sizeof script / sizeof *script;
        hooks.cpus = 2;
        tiny_train_to(CLEAT_OK, t, run, SET("loader.num_workers=auto", keep), false, 0);
        assert_true(hooks.scripted > 2 * hooks.script_count);
        replace_nothing();
        tiny_assert_same_run(t, "zero", run);
        assert_resolved(t, run, "\nnum_workers = 1\n");
    }
}

static void a_fixed_number_stays(void **state) {
    static const int script[] = {1, 4};
    const tiny *t = *state;
    replace_nothing();
    hooks.script = script;
    hooks.script_count = 2;
    tiny_train_to(CLEAT_OK, t, "fixed", SET("loader.num_workers=3"), false, 0);
    assert_int_equal(hooks.scripted, 0);
    replace_nothing();
}

/* --- climbing ------------------------------------------------------------------------------------------------- */

/* A session with its data, and a feed that trains. */
typedef struct bench {
    cleat_profile *profile;
    cleat_device *device;
    cleat_model *model;
    cleat_session *session;
    cleat_run_data data;
    cleat_feed *feed;
    int changes, most;
} bench;

static void on_workers(void *user, int before, int now, const char *reason) {
    bench *b = user;
    assert_true(before != now && reason[0]);
    ++b->changes;
    if (now > b->most) b->most = now;
}

/* Longer epochs: every sample occurs `times` times, so the start of an epoch, when no batch is ready, has
 * little weight. */
static void repeat_samples(cleat_run_data *data, size_t times) {
    uint32_t *all = cleat_alloc(data->train_count * times, sizeof *all);
    assert_non_null(all);
    for (size_t i = 0; i < data->train_count * times; ++i) all[i] = data->train[i % data->train_count];
    cleat_samples_free(data->train);
    data->train = all;
    data->train_count *= times;
}

static void open_bench(bench *b, const tiny *t, const char *const *set) {
    cleat_error error = {0};
    *b = (bench){.profile = tiny_profile(t, set)};
    cleat_status status = cleat_device_open(b->profile->run.device, &b->device, &error);
    if (!status) status = cleat_profile_create_model(b->profile, &b->model, &error);
    if (!status) status = cleat_run_data_open(&b->data, b->model, b->profile, NULL, &error);
    if (!status) status = cleat_run_data_count(&b->data, b->model, b->profile, &error);
    if (status) fail_msg("%s", error.text);
    const cleat_fit_request request = cleat_fit_request_for(b->profile, b->model, CLEAT_FOR_TRAINING, &b->data.lengths,
                                                            cleat_device_get_facts(b->device), NULL);
    status = cleat_session_fit(b->device, &request, &b->session, &error);
    if (!status) status = cleat_session_initialise(b->session, 1, &error);
    if (!status) status = cleat_feed_open(b->session, b->data.dataset, &b->feed, &error);
    if (status) fail_msg("%s", error.text);
    cleat_feed_on_workers(b->feed, on_workers, b);
}

static void close_bench(bench *b) {
    cleat_feed_close(b->feed);
    cleat_run_data_close(&b->data);
    cleat_session_destroy(b->session);
    cleat_device_close(b->device);
    cleat_model_destroy(b->model);
    cleat_profile_destroy(b->profile);
}

/* Forward and backward passes of all batches of an epoch. */
static void run_epoch(bench *b, int64_t epoch) {
    cleat_error error = {0};
    cleat_global_batch global_batch;
    cleat_status status = cleat_run_data_begin_epoch(&b->data, b->session->work, 1, epoch, &error);
    if (!status) status = cleat_feed_start(b->feed, b->data.pass, 0, &b->data.rng_key, &error);
    for (size_t i = 0; !status && cleat_batches_global_batch(b->data.pass, i, &global_batch); ++i)
        for (size_t k = 0; k < global_batch.micro_batches && !status; ++k) {
            cleat_fed_batch fed;
            const cleat_dropout_key key = {.seed = 1, .step = (int64_t)i};
            status = cleat_feed_next(b->feed, &fed, &error);
            if (status) break;
            const cleat_work_graph *graph = &b->session->work->train[fed.micro_batch->bucket];
            cleat_session_prepare(b->session, graph, fed.bytes, &fed.host, &global_batch, &key);
            status = cleat_feed_run(b->feed, graph, &fed, &error);
            cleat_feed_release(b->feed, &fed);
        }
    cleat_feed_stop(b->feed);
    cleat_run_data_end_epoch(&b->data);
    if (status) fail_msg("%s", error.text);
}

/* The share of dry hand-overs in the last epochs. */
static double run_epochs(bench *b, int64_t first, int count) {
    const cleat_loader_stats before = cleat_feed_statistics(b->feed);
    for (int i = 0; i < count; ++i) run_epoch(b, first + i);
    const cleat_loader_stats after = cleat_feed_statistics(b->feed);
    assert_true(after.hand_overs > before.hand_overs);
    return (double)(after.dry_hand_overs - before.dry_hand_overs) / (double)(after.hand_overs - before.hand_overs);
}

/* Samples sleep 20 ms each, on a clock that runs four times too fast. */
static void sleeping_samples(int cpus) {
    replace_nothing();
    slow_samples_ns = 5000000;
    hooks.speed = 4;
    hooks.cpus = cpus;
}

static void auto_climbs_until_the_device_is_fed(void **state) {
    const tiny *t = *state;
    bench b;
    double first, dry = 1;
    if (!CLEAT_FORKS) skip(); /* wine delays threads that wait */
    sleeping_samples(2);      /* begins with one thread ... */
    open_bench(&b, t, SET("loader.num_workers=auto"));
    assert_int_equal(cleat_feed_workers(b.feed), 1);
    hooks.cpus = 24; /* ... and may use many: sleeping needs no CPU */
    repeat_samples(&b.data, 16);
    first = run_epochs(&b, 0, 1);
    assert_true(first > 0.2);
    for (int64_t epoch = 1; epoch < 200 && dry > 0.05; ++epoch) dry = run_epochs(&b, epoch, 1);
    print_message("from 1 to %d threads, dry at %.0f %% of the hand-overs, initially %.0f %%\n",
                  cleat_feed_statistics(b.feed).workers, 100 * dry, 100 * first);
    assert_true(dry <= first / 4); /* a fast device would want more than 24 */
    assert_true(b.changes >= 2 && cleat_feed_statistics(b.feed).workers >= 3);
    assert_int_equal(cleat_feed_workers(b.feed), 1); /* as resolved at the start */
    close_bench(&b);
    replace_nothing();
}

/* A quota of 2 CPUs, for which core.cgroup tests that cleat_cpus returns 2. */
static void no_more_threads_than_cpus(void **state) {
    const tiny *t = *state;
    bench b;
    sleeping_samples(2);
    open_bench(&b, t, SET("loader.num_workers=auto"));
    repeat_samples(&b.data, 16);
    for (int64_t epoch = 0; epoch < 3; ++epoch) run_epoch(&b, epoch);
    assert_int_equal(b.most, 2);
    close_bench(&b);
    replace_nothing();
}

/* The host waits for the device after every batch, so the queue is empty at every hand-over: that is not dry. */
static void an_empty_queue_alone_is_not_dry(void **state) {
    const tiny *t = *state;
    bench b;
    replace_nothing();
    open_bench(&b, t, SET("loader.num_workers=2"));
    for (int64_t epoch = 0; epoch < 3; ++epoch) {
        cleat_error error = {0};
        cleat_global_batch global_batch;
        assert_int_equal(cleat_run_data_begin_epoch(&b.data, b.session->work, 1, epoch, &error), CLEAT_OK);
        assert_int_equal(cleat_feed_start(b.feed, b.data.pass, 0, &b.data.rng_key, &error), CLEAT_OK);
        for (size_t i = 0; cleat_batches_global_batch(b.data.pass, i, &global_batch); ++i)
            for (size_t k = 0; k < global_batch.micro_batches; ++k) {
                cleat_fed_batch fed;
                nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL); /* the batch is ready by now */
                assert_true(cleat_device_is_idle(b.device));
                assert_int_equal(cleat_feed_next(b.feed, &fed, &error), CLEAT_OK);
                cleat_feed_release(b.feed, &fed);
            }
        cleat_feed_stop(b.feed);
        cleat_run_data_end_epoch(&b.data);
    }
    const cleat_loader_stats stats = cleat_feed_statistics(b.feed);
    assert_true(stats.hand_overs > 10);
    assert_true(stats.dry_hand_overs <= 1); /* a thread that was not scheduled for 20 ms */
    assert_int_equal(stats.batches, stats.hand_overs + 3);
    close_bench(&b);
}

/* Without threads the device waits idle for every batch. */
static void without_threads_every_hand_over_is_dry(void **state) {
    const tiny *t = *state;
    bench b;
    sleeping_samples(0);
    hooks.speed = 0;
    open_bench(&b, t, SET("loader.num_workers=0"));
    assert_true(run_epochs(&b, 0, 1) > 0.5);
    close_bench(&b);
    replace_nothing();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_that_change_do_not_change_the_bits),
        cmocka_unit_test(a_fixed_number_stays),
        cmocka_unit_test(auto_climbs_until_the_device_is_fed),
        cmocka_unit_test(no_more_threads_than_cpus),
        cmocka_unit_test(an_empty_queue_alone_is_not_dry),
        cmocka_unit_test(without_threads_every_hand_over_is_dry),
    };
    tiny_require_device();
    return cmocka_run_group_tests(tests, tiny_setup, tiny_teardown);
}
