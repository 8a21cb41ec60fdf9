/* Fault injection: the n-th host allocation or the n-th device buffer fails. For every n, the call returns
 * the matching error and releases everything (host memory: run under ASan). */
/* ctest: device */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/memory.h"
#include "device/device.h"
#include "session/feed.h"
#include "tiny.h"
#include "train/load_model.h"

/* One graph per kind, one step, one evaluation, two checkpoints. */
static const char *const short_run[] = {"data.limit=2",
                                        "data.buckets=32",
                                        "data.max_length=32",
                                        "train.epochs=2",
                                        "loader.num_workers=0",
                                        "train.warmup_steps=0",
                                        "train.batch_size=1",
                                        "train.effective_batch_size=2",
                                        NULL};

/* Returns the number of allocations before the one that fails, or -1 if it has failed. Disables the failure. */
static long allocations_left(long most) {
    for (long i = 0; i < most; ++i) {
        void *memory = cleat_alloc(1, 1);
        if (!memory) {
            cleat_fail_allocation(0);
            return i;
        }
        cleat_free(memory);
    }
    cleat_fail_allocation(0);
    return -1;
}

/* Each of the first few, then in growing strides. */
static long next(long n) {
    return n + 1 + n / 12;
}

typedef cleat_status (*fault_call)(void *user, cleat_error *error);

/* Repeats the call until it meets no failure; `between` (may be NULL) checks what remains after each call.
 * The call may ignore a failure that does not affect it (an unwritten cache). */
static void sweep_allocations(fault_call call, void *user, void (*between)(void *user)) {
    int calls = 0, lived_with = 0;
    for (long n = 1;; n = next(n), ++calls) {
        cleat_error error = {0};
        cleat_fail_allocation(n);
        cleat_status status = call(user, &error);
        bool met = allocations_left(n) < 0;
        if (between) between(user);
        if (!met) {
            if (status) fail_msg("no failure was met, but: %s", error.text);
            print_message("%ld allocations, %d calls, %d failures tolerated\n", n, calls, lived_with);
            assert_true(n > 200);
            break;
        }
        lived_with += !status;
        if (!status) continue;
        if (status != CLEAT_ERR_MEMORY) fail_msg("allocation %ld: '%s', %s", n, cleat_status_text(status), error.text);
        if (error.status != status || !error.text[0]) fail_msg("allocation %ld: no error text", n);
    }
    assert_true(lived_with * 4 < calls);
}

/* --- a whole run --- */

typedef struct whole_run {
    const tiny *t;
    cleat_profile *profile;
    int runs;
} whole_run;

static cleat_status train(void *user, cleat_error *error) {
    whole_run *run = user;
    char out[TINY_PATH], name[32];
    cleat_train_report report;
    snprintf(name, sizeof name, "run%d", run->runs++);
    cleat_train_options options = {.out = tiny_path(run->t, name, out)};
    return cleat_train(run->profile, &options, &report, error);
}

static void training_survives_failed_allocations(void **state) {
    whole_run run = {.t = *state, .profile = tiny_profile(*state, short_run)};
    sweep_allocations(train, &run, NULL);
    cleat_profile_destroy(run.profile);
}

/* --- evaluation and prediction of a checkpoint --- */

static cleat_status evaluate(void *user, cleat_error *error) {
    whole_run *run = user;
    char path[TINY_PATH];
    cleat_metrics metrics;
    return cleat_evaluate(run->profile, tiny_path(run->t, "trained", path), "val", &metrics, error);
}

static cleat_status predict(void *user, cleat_error *error) {
    whole_run *run = user;
    char checkpoint[TINY_PATH], out[TINY_PATH], data[TINY_PATH];
    size_t count;
    return cleat_predict(run->profile, tiny_path(run->t, "trained", checkpoint), tiny_path(run->t, "one.fasta", data),
                         tiny_path(run->t, "out", out), &count, error);
}

static void evaluation_and_prediction_survive_failed_allocations(void **state) {
    char path[TINY_PATH];
    whole_run run = {.t = *state, .profile = tiny_profile(*state, short_run)};
    tiny_train_to(CLEAT_OK, *state, "trained", short_run, false, 0);
    tiny_write(tiny_path(*state, "one.fasta", path), ">a\nGGGAAACUUUCCC\n", 17);
    sweep_allocations(evaluate, &run, NULL);
    sweep_allocations(predict, &run, NULL);
    cleat_profile_destroy(run.profile);
}

/* --- a session on one device, which shows its leaks --- */

typedef struct one_session {
    cleat_profile *profile;
    cleat_device *device;
} one_session;

static cleat_status open_session(void *user, cleat_error *error) {
    const one_session *one = user;
    cleat_model *model = NULL;
    cleat_dataset *dataset = NULL;
    cleat_session *session = NULL;
    cleat_feed *feed = NULL;
    cleat_lengths lengths;
    cleat_status status = cleat_profile_create_model(one->profile, &model, error);
    if (!status)
        status = cleat_model_open_data(model, one->profile->data->path, CLEAT_MODE_EVALUATE, NULL, &dataset, error);
    if (!status) status = cleat_lengths_choose(one->profile, 0, dataset, NULL, 0, &lengths, error);
    if (!status) {
        cleat_fit_request request = cleat_fit_request_for(one->profile, model, CLEAT_FOR_TRAINING, &lengths,
                                                          cleat_device_get_facts(one->device), NULL);
        status = cleat_session_fit(one->device, &request, &session, error);
    }
    if (!status) status = cleat_session_initialise(session, 1, error);
    if (!status) status = cleat_feed_open(session, dataset, &feed, error);
    cleat_feed_close(feed);
    cleat_session_destroy(session);
    cleat_dataset_destroy(dataset);
    cleat_model_destroy(model);
    return status;
}

static void assert_device_is_empty(void *user) {
    const one_session *one = user;
    assert_int_equal(cleat_device_allocated(one->device), 0);
}

static one_session one_session_of(const tiny *t) {
    one_session one = {.profile = tiny_profile(t, short_run)};
    cleat_error error;
    if (cleat_device_open(one.profile->run.device, &one.device, &error) != CLEAT_OK) fail_msg("%s", error.text);
    return one;
}

static void one_session_close(one_session *one) {
    cleat_device_close(one->device);
    cleat_profile_destroy(one->profile);
}

static void session_gives_back_the_device(void **state) {
    one_session one = one_session_of(*state);
    sweep_allocations(open_session, &one, assert_device_is_empty);
    one_session_close(&one);
}

static void every_failed_buffer_is_reported(void **state) {
    one_session one = one_session_of(*state);
    int n = 1;
    for (;; ++n) {
        cleat_error error = {0};
        one.device->fail_buffer = n;
        cleat_status status = open_session(&one, &error);
        bool met = one.device->fail_buffer == 0;
        one.device->fail_buffer = 0;
        assert_device_is_empty(&one);
        if (!met) {
            assert_int_equal(status, CLEAT_OK);
            break;
        }
        if (status != CLEAT_ERR_DEVICE_MEMORY) fail_msg("buffer %d: %d %s", n, status, error.text);
        assert_true(error.text[0]);
    }
    print_message("%d buffers\n", n - 1);
    assert_true(n > 5);
    one_session_close(&one);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(training_survives_failed_allocations),
        cmocka_unit_test(evaluation_and_prediction_survive_failed_allocations),
        cmocka_unit_test(session_gives_back_the_device),
        cmocka_unit_test(every_failed_buffer_is_reported),
    };
    tiny_require_device();
    return cmocka_run_group_tests(tests, tiny_setup, tiny_teardown);
}
