/* The out-of-memory fallback: a device has less memory than reported and fails at every buffer and at kernels
 * throughout a run. The run continues with smaller micro-batches, with the result of a run that starts with
 * them. */
/* ctest: device */
#include <math.h>
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
#include "exec/exec.h"
#include "platform/processes.h"
#include "tiny.h"
#include "train/trainer.h"

/* Three global batches per epoch, an evaluation after each; a large eps prevents AdamW from turning rounding
 * noise into full steps. */
static const char *const settings[] = {"train.batch_size=auto", "train.effective_batch_size=4",
                                       "data.limit=11",         "data.buckets=32",
                                       "data.max_length=32",    "model.dropout=0.2",
                                       "train.eps=1e-3",        "train.warmup_steps=0",
                                       "train.epochs=2",        NULL};

/* --- faults and messages --------------------------------------------------------------------------------------- */

/* Faults injected into the devices that a run opens in sequence. */
typedef struct fault {
    long buffer, launch; /* the one that fails on the first device, from 1; 0: none */
    long every_buffer;   /* -1: all fail on every device */
    int opened;
    cleat_device *first;
} fault;

static void apply(void *user, cleat_device *device) {
    fault *f = user;
    if (f->opened++ == 0) {
        device->fail_buffer = f->buffer;
        device->fail_launch = f->launch;
    }
    if (f->every_buffer) device->fail_buffer = f->every_buffer;
}

typedef struct words {
    int refusals; /* "out of device memory" */
    int steps_down, cuts, repeats;
    char last[1024];
} words;

static void capture_log(void *user, cleat_log_level level, const char *text) {
    words *w = user;
    if (level != CLEAT_LOG_WARNING) return;
    w->refusals += strstr(text, "out of device memory") != NULL;
    w->steps_down += strstr(text, "continuing from the ") != NULL;
    w->cuts += strstr(text, "longer sequences are cut") != NULL;
    w->repeats += strstr(text, "must be repeated") != NULL;
    snprintf(w->last, sizeof w->last, "%s", text);
}

static cleat_status train(const tiny *t, const char *run, const char *const *set, fault *f, words *heard,
                          cleat_train_report *report, cleat_error *error) {
    char out[TINY_PATH];
    cleat_profile *profile = tiny_profile(t, set);
    cleat_train_options options = {.out = tiny_path(t, run, out)};
    *heard = (words){0};
    cleat_set_log(capture_log, heard, CLEAT_LOG_INFO);
    cleat_status status = cleat_train_with_callback(profile, &options, apply, f, report, error);
    cleat_set_log(NULL, NULL, CLEAT_LOG_ERROR);
    cleat_profile_destroy(profile);
    return status;
}

static void train_well(const tiny *t, const char *run, const char *const *set, fault *f, words *heard) {
    cleat_train_report report;
    cleat_error error = {0};
    if (train(t, run, set, f, heard, &report, &error) != CLEAT_OK) fail_msg("%s: %s", run, error.text);
    assert_int_equal(report.steps, 6);
    /* of the first step, even if the trainer was reopened later */
    const cleat_startup_stats *s = &report.start;
    double parts = s->data + s->device + s->plan + s->setup + s->kernels + s->step;
    if (!(fabs(parts - report.seconds_first_step) < 1e-6))
        fail_msg("%g s until the first step, in parts %g", report.seconds_first_step, parts);
}

static void remove_run(const tiny *t, const char *run) {
    char command[TINY_PATH + 16];
    snprintf(command, sizeof command, "rm -r '%s/%s'", t->folder, run);
    assert_int_equal(system(command), 0);
}

/* The line "name = value" of the run's resolved.ini, as a setting. */
static void resolved(const tiny *t, const char *run, const char *name, const char *section, char assignment[200]) {
    char path[TINY_PATH], file[128];
    snprintf(file, sizeof file, "%s/resolved.ini", run);
    cleat_profile *profile = NULL;
    char value[96], key[96];
    snprintf(key, sizeof key, "%s.%s", section, name);
    assert_int_equal(cleat_profile_load(tiny_path(t, file, path), NULL, 0, &profile, NULL), CLEAT_OK);
    assert_int_equal(cleat_profile_get(profile, key, value, sizeof value, NULL), CLEAT_OK);
    snprintf(assignment, 200, "%s=%s", key, value);
    cleat_profile_destroy(profile);
}

/* Trains a separate run with the final micro-batch sizes of `run`. */
static void train_alike(const tiny *t, const char *run, const char *alike) {
    char batches[200], recompute[200];
    const char *set[16];
    fault none = {0};
    words heard;
    int n = 0;
    resolved(t, run, "bucket_batch_sizes", "train", batches);
    resolved(t, run, "gradient_checkpointing", "train", recompute);
    for (; settings[n]; ++n) set[n] = settings[n];
    set[n++] = batches;
    set[n++] = recompute;
    set[n] = NULL;
    train_well(t, alike, set, &none, &heard);
    assert_int_equal(heard.refusals, 0);
}

/* --- tests ---------------------------------------------------------------------------------------------------- */

static const double CLOSE = 2e-6; /* the largest difference of a parameter, caused by reordered sums */

/* If a buffer allocation fails before the first step, the whole run is bit-identical to one with the smaller
 * setting. */
static void every_buffer(void **state) {
    const tiny *t = *state;
    fault none = {0};
    words heard;
    train_well(t, "whole", settings, &none, &heard);
    int n = 1, compared = 0;
    for (;; ++n) {
        fault f = {.buffer = n};
        train_well(t, "run", settings, &f, &heard);
        if (heard.refusals == 0) {
            remove_run(t, "run");
            break;
        }
        assert_int_equal(heard.refusals, 1);
        double distance = tiny_distance(t, "run", "whole");
        if (!(distance <= CLOSE)) fail_msg("buffer %d: %g from the whole run", n, distance);
        if (compared++ == 0) {
            train_alike(t, "run", "alike");
            tiny_assert_same_run(t, "run", "alike");
            remove_run(t, "alike");
        }
        remove_run(t, "run");
    }
    print_message("%d buffers\n", n - 1);
    assert_true(n > 6);
}

/* A kernel runs out of memory at any point of the run: in the first global batch, later ones, updates,
 * evaluations. */
static void kernels_all_over_the_run(void **state) {
    const tiny *t = *state;
    int runs = 0, went_on = 0, within = 0;
    for (long n = 1;; n += 1 + n / 4, ++runs) {
        fault f = {.launch = n};
        words heard;
        train_well(t, "run", settings, &f, &heard);
        if (heard.refusals == 0) {
            remove_run(t, "run");
            break;
        }
        assert_int_equal(heard.steps_down, 1);
        went_on += strstr(heard.last, "from the beginning ") == NULL;
        within += strstr(heard.last, "checkpoint of step 1 ") || strstr(heard.last, "checkpoint of step 4 ");
        double distance = tiny_distance(t, "run", "whole");
        if (!(distance <= CLOSE)) fail_msg("kernel %ld: %g from the whole run", n, distance);
        if (n == 1) {
            train_alike(t, "run", "alike");
            tiny_assert_same_run(t, "run", "alike");
        }
        remove_run(t, "run");
    }
    print_message("%d runs, %d continued after a completed step, %d of them within an epoch\n", runs, went_on, within);
    assert_true(runs > 12 && went_on > 5 && within > 1);
}

/* The number of kernels of one undivided global batch with its update, and of the update alone. */
static void count_kernels(const tiny *t, long *step, long *update) {
    char out[TINY_PATH];
    cleat_error error = {0};
    cleat_train_report report;
    cleat_profile *profile = tiny_profile(t, settings);
    cleat_train_options options = {.out = tiny_path(t, "counted", out)};
    cleat_trainer *trainer = cleat_alloc(1, sizeof *trainer);
    *trainer = (cleat_trainer){.settings = {.given = profile, .profile = profile},
                               .run = {.options = &options, .report = &report}};
    if (cleat_trainer_open(trainer, &error) != CLEAT_OK) fail_msg("%s", error.text);
    const cleat_workload *work = trainer->engine.session->work;
    const cleat_bound_graph *graphs = trainer->engine.session->exec->graphs;
    assert_true(cleat_workload_is_whole(work));
    *update = (long)graphs[work->update.index].binder.count;
    *step = (long)graphs[work->train[0].index].binder.count + *update;
    cleat_run_monitor_end(&trainer->monitor, 0, CLEAT_OK, "", 0);
    cleat_trainer_close(trainer);
    cleat_free(trainer);
    cleat_profile_destroy(profile);
}

/* After a failure within an update, the parameters may have changed: all work since the last checkpoint is
 * repeated, here from the beginning. */
static void an_update_half_done_is_not_kept(void **state) {
    const tiny *t = *state;
    long step, update;
    count_kernels(t, &step, &update);
    assert_true(update >= 3);
    for (long n = 2 * step - update + 1; n <= 2 * step + 1; ++n) {
        fault f = {.launch = n};
        words heard;
        train_well(t, "run", settings, &f, &heard);
        assert_int_equal(heard.steps_down, 1);
        if (n <= 2 * step) /* the extent of that update is unknown */
            assert_non_null(strstr(heard.last, "from the beginning "));
        else
            assert_non_null(strstr(heard.last, "from the checkpoint of step 2 "));
        double distance = tiny_distance(t, "run", "whole");
        if (!(distance <= CLOSE)) fail_msg("kernel %ld: %g from the whole run", n, distance);
        remove_run(t, "run");
    }
}

static void the_last_rung_is_an_error(void **state) {
    const tiny *t = *state;
    fault f = {.every_buffer = -1};
    words heard;
    cleat_train_report report;
    cleat_error error = {0};
    assert_int_equal(train(t, "none", settings, &f, &heard, &report, &error), CLEAT_ERR_DEVICE_MEMORY);
    assert_non_null(strstr(error.text, "failure injected by a test"));
    assert_int_equal(report.steps, 0);
}

/* Sequences are truncated only if the profile allows it; a resume keeps the length. */
static void sequences_are_cut_where_that_is_allowed(void **state) {
    const tiny *t = *state;
    fault none = {0};
    words heard;
    cleat_train_report report;
    cleat_error error = {0};
    const char *allowed[16] = {"data.min_length=16", "run.max_memory_usage=1"}, **set = allowed;
    int n = 2;
    for (int i = 0; settings[i]; ++i) allowed[n++] = settings[i];
    allowed[n] = NULL;
    assert_int_equal(train(t, "long", allowed, &none, &heard, &report, &error), CLEAT_OK);
    int64_t least = report.memory.allocated;
    char limit[32];
    /* down to a limit that requires truncation */
    for (int64_t bytes = least;; bytes -= least / 12) {
        assert_true(bytes > 0);
        snprintf(limit, sizeof limit, "%lld", (long long)bytes);
        setenv("CLEAT_DEVICE_MEMORY_LIMIT", limit, 1);
        cleat_status status = train(t, "trial", set + 1, &none, &heard, &report, &error);
        if (!status) remove_run(t, "trial");
        if (status == CLEAT_ERR_FIT) break;
        assert_int_equal(status, CLEAT_OK);
    }
    assert_non_null(strstr(error.text, "too much"));
    cleat_status status = train(t, "cut", set, &none, &heard, &report, &error);
    unsetenv("CLEAT_DEVICE_MEMORY_LIMIT");
    if (status) fail_msg("%s", error.text);
    assert_true(heard.cuts >= 1);
    char length[200];
    resolved(t, "cut", "max_length", "data", length);
    if (!strstr(length, "=24") && !strstr(length, "=16")) fail_msg("%s", length);

    char out[TINY_PATH];
    cleat_profile *profile = tiny_profile(t, allowed);
    cleat_train_options options = {.out = tiny_path(t, "cut", out), .resume = true};
    status = cleat_train(profile, &options, &report, &error);
    cleat_profile_destroy(profile);
    if (status) fail_msg("resumed with ample memory: %s", error.text);
    char kept[200];
    resolved(t, "cut", "max_length", "data", kept);
    assert_string_equal(kept, length);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_buffer),
        cmocka_unit_test(kernels_all_over_the_run),
        cmocka_unit_test(an_update_half_done_is_not_kept),
        cmocka_unit_test(the_last_rung_is_an_error),
        cmocka_unit_test(sequences_are_cut_where_that_is_allowed),
    };
    tiny_require_device();
    return cmocka_run_group_tests(tests, tiny_setup, tiny_teardown);
}
