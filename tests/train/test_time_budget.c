/* The time budget on a device: the run stops in time and resumes with the same bits, or its schedule is
 * shortened once. Time is simulated, so results do not depend on the machine: the linker replaces the clock
 * and the execution (CMakeLists.txt: --wrap). Budgets are derived from the duration of a first run. */
/* ctest: device wrap=cleat_seconds,cleat_exec_run */
#include "tiny.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "checkpoint/format.h"
#include "cleat/exec.h"
#include "core/clock.h"
#include "core/memory.h"
#include "train/trainer.h"

/* Each graph run takes 5 ms (or what a test sets), each clock query by the training thread a microsecond, all
 * else no time. This clock starts ahead of any machine's: otherwise the monitor, which waits for one of its
 * times on the system's clock, would not wait. */
static int64_t simulated_us = INT64_C(1000000000000000);
static int64_t graph_us = 5000;
static _Thread_local bool trains; /* in this thread */

double __wrap_cleat_seconds(void);
double __wrap_cleat_seconds(void) {
    return 1e-6 * (double)__atomic_add_fetch(&simulated_us, trains ? 1 : 0, __ATOMIC_RELAXED);
}

cleat_status __real_cleat_exec_run(cleat_exec *exec, size_t graph, cleat_error *error);
cleat_status __wrap_cleat_exec_run(cleat_exec *exec, size_t graph, cleat_error *error);
cleat_status __wrap_cleat_exec_run(cleat_exec *exec, size_t graph, cleat_error *error) {
    __atomic_add_fetch(&simulated_us, graph_us, __ATOMIC_RELAXED);
    return __real_cleat_exec_run(exec, graph, error);
}

/* Steps only. The learning rate falls from 1e-2 to 1e-4. */
#define STEPS_ONLY "run.evaluate_every_epochs=none", "run.checkpoint_every_epochs=none", "train.min_learning_rate=1e-4"
#define ENDLESS "train.epochs=100000"

/* Log text since the last reset; a line with `stop_at` ends the run after its step. */
static struct {
    char text[8192];
    const char *stop_at;
    volatile int stop;
} logged;

static void capture_log(void *user, cleat_log_level level, const char *text) {
    (void)user, (void)level;
    size_t used = strlen(logged.text);
    snprintf(logged.text + used, sizeof logged.text - used, "%s\n", text);
    if (logged.stop_at && strstr(text, logged.stop_at)) logged.stop = 1;
}

static void start_capture(const char *stop_at) {
    *logged.text = 0;
    logged.stop_at = stop_at;
    logged.stop = 0;
    cleat_set_log(capture_log, NULL, CLEAT_LOG_INFO);
}

static void assert_contains(const char *text, const char *const *words) {
    for (; *words; ++words)
        if (!strstr(text, *words)) fail_msg("'%s' does not contain '%s'", text, *words);
}

/* Trains to the end, or until `stop_at` is logged. */
static cleat_train_report train_until(cleat_status wanted, const tiny *t, const char *run, const char *const *set,
                                      bool resume, const char *stop_at) {
    cleat_train_report report = {.folder = ""};
    cleat_error error = {0};
    char out[TINY_PATH];
    cleat_profile *profile = tiny_profile(t, set);
    cleat_train_options options = {.out = tiny_path(t, run, out), .resume = resume, .stop = &logged.stop};
    start_capture(stop_at);
    cleat_status status = cleat_train(profile, &options, &report, &error);
    if (status != wanted) fail_msg("%s: '%s': %s", run, cleat_status_text(status), error.text);
    cleat_set_log(NULL, NULL, CLEAT_LOG_INFO);
    cleat_profile_destroy(profile);
    return report;
}

/* "run.time_budget=Ns" with `seconds` rounded up. */
static const char *budget(double seconds, char text[64]) {
    snprintf(text, 64, "run.time_budget=%ds", (int)ceil(seconds));
    return text;
}

/* Returns the last value of `name` in records of `kind` of the run's metrics. */
static double last_metric(const tiny *t, const char *run, const char *kind, const char *name) {
    char path[TINY_PATH], file[96], head[64], key[64];
    size_t size;
    double value = NAN;
    snprintf(file, sizeof file, "%s/metrics.jsonl", run);
    snprintf(head, sizeof head, "{\"kind\":\"%s\"", kind);
    snprintf(key, sizeof key, "\"%s\":", name);
    char *text = tiny_read(tiny_path(t, file, path), &size);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        char *found = strncmp(line, head, strlen(head)) == 0 ? strstr(line, key) : NULL;
        if (found) value = strtod(found + strlen(key), NULL);
    }
    cleat_free(text);
    return value;
}

/* Returns the number after "name": in the last checkpoint's state.json. */
static double last_state(const tiny *t, const char *run, const char *name) {
    static const char inner[] = "{\"value\": ";
    char path[TINY_PATH], key[64];
    size_t size;
    char *text = tiny_read(tiny_last_file(t, run, "state.json", path), &size);
    snprintf(key, sizeof key, "\"%s\": ", name);
    const char *found = strstr(text, key);
    assert_non_null(found);
    found += strlen(key);
    if (strncmp(found, inner, sizeof inner - 1) == 0) found += sizeof inner - 1;
    double value = strtod(found, NULL);
    cleat_free(text);
    return value;
}

/* A run without a budget that lasts about `seconds` after its startup; *epochs receives its number of epochs. */
static cleat_train_report run_of_seconds(const tiny *t, const char *run, double seconds, int *epochs) {
    char text[64], name[64];
    snprintf(name, sizeof name, "%s_probe", run);
    cleat_train_report probe = train_until(CLEAT_OK, t, name, SET(STEPS_ONLY, "train.epochs=20"), false, NULL);
    *epochs = (int)ceil((seconds + probe.seconds_first_step) / probe.epoch_seconds);
    snprintf(text, sizeof text, "train.epochs=%d", *epochs);
    return train_until(CLEAT_OK, t, run, SET(STEPS_ONLY, text), false, NULL);
}

static void forecast_is_made_without_a_budget(void **state) {
    const tiny *t = *state;
    cleat_train_report report = train_until(CLEAT_OK, t, "forecast", SET("train.epochs=8"), false, NULL);
    assert_contains(logged.text, SET("an epoch takes", "the run", "8 epochs"));
    assert_null(strstr(logged.text, "budget"));
    assert_true(report.step_seconds > 0);
    assert_true(report.epoch_seconds > report.step_seconds);
    assert_true(report.run_seconds > 8 * report.epoch_seconds);
    assert_int_equal(report.runs_in_budget, 0);
    assert_int_equal(report.epochs_planned, 8);
    assert_true(last_state(t, "forecast", "epochs") == 8);
}

static void roomy_budget_changes_nothing(void **state) {
    const tiny *t = *state;
    tiny_train_to(CLEAT_OK, t, "free", SET("train.epochs=8"), false, 0);
    cleat_train_report report =
        train_until(CLEAT_OK, t, "roomy", SET("train.epochs=8", "run.time_budget=30h/12h"), false, NULL);
    assert_contains(logged.text, SET("a budget of 1 d 06 h is enough for", "5 % in reserve",
                                     "this session of 12 h 00 min is long enough"));
    assert_true(report.runs_in_budget > 10);
    assert_int_equal(report.epochs_planned, 8);
    tiny_assert_same_run(t, "free", "roomy");
}

static void stopped_run_goes_on_with_the_same_bits(void **state) {
    const tiny *t = *state;
    char epochs_text[64], budget_text[64];
    int epochs;
    cleat_train_report whole = run_of_seconds(t, "whole", 3, &epochs);
    snprintf(epochs_text, sizeof epochs_text, "train.epochs=%d", epochs);
    double seconds = ceil(whole.seconds_first_step + 1);
    const char *const *set = SET(STEPS_ONLY, epochs_text, "run.budget=stop", budget(seconds, budget_text));

    cleat_train_report first = train_until(CLEAT_ERR_TIME_UP, t, "stop", set, false, NULL);
    assert_true(first.steps > 0 && first.steps < whole.steps);
    assert_int_equal(first.epochs_planned, epochs);
    assert_true(first.seconds <= seconds);
    assert_true(last_state(t, "stop", "step") == (double)first.steps);
    assert_true(last_state(t, "stop", "next_seconds") > 0);

    /* The budget applies to the whole run: no time remains for another process. */
    tiny_result second = tiny_train_to(CLEAT_ERR_TIME_UP, t, "stop", set, true, 0);
    assert_contains(second.error.text, SET("time is up", "--time-budget", "--resume"));
    assert_int_equal(second.report.steps, first.steps);

    cleat_train_report third = train_until(
        CLEAT_OK, t, "stop", SET(STEPS_ONLY, epochs_text, "run.budget=stop", "run.time_budget=30h"), true, NULL);
    assert_int_equal(third.steps, whole.steps);
    tiny_assert_same_run(t, "whole", "stop");
}

/* Trains into the new folder FOLDER/run; `source` NULL: from the start, else from FOLDER/source, which must
 * not change. */
static tiny_result train_session(const tiny *t, const char *source, const char *run, const char *const *set) {
    static const char list[] = "cd '%s' && find . -printf '%%p %%y %%s %%T@ %%C@\\n' | sort | md5sum %s '%s/listing'";
    char from[TINY_PATH], out[TINY_PATH], command[4 * TINY_PATH];
    tiny_result result = {.status = CLEAT_OK};
    cleat_profile *profile = tiny_profile(t, set);
    cleat_train_options options = {.out = tiny_path(t, run, out),
                                   .resume_from = source ? tiny_path(t, source, from) : NULL};
    snprintf(command, sizeof command, list, from, ">", t->folder);
    if (source) assert_int_equal(system(command), 0);
    start_capture(NULL);
    result.status = cleat_train(profile, &options, &result.report, &result.error);
    cleat_set_log(NULL, NULL, CLEAT_LOG_INFO);
    cleat_profile_destroy(profile);
    snprintf(command, sizeof command, list, from, "| cmp -", t->folder);
    if (source && system(command) != 0) fail_msg("%s has changed", from);
    return result;
}

/* Notebooks: each session finds the previous one's folder as read-only data. */
static void sessions_are_a_chain_of_folders(void **state) {
    const tiny *t = *state;
    char epochs_text[64], budget_text[64], run[8] = "", source[8];
    int epochs, sessions = 0;
    cleat_train_report whole = run_of_seconds(t, "whole_chain", 4, &epochs);
    const int seconds = (int)ceil(whole.seconds_first_step + 1);
    snprintf(epochs_text, sizeof epochs_text, "train.epochs=%d", epochs);
    snprintf(budget_text, sizeof budget_text, "run.time_budget=30h/%ds", seconds);
    const char *const *set = SET(STEPS_ONLY, epochs_text, budget_text);
    tiny_result result;
    double used = 0;
    do {
        memcpy(source, run, sizeof source);
        snprintf(run, sizeof run, "s%d", ++sessions);
        result = train_session(t, *source ? source : NULL, run, set);
        assert_true(last_state(t, run, "time_used") > used);
        used = last_state(t, run, "time_used");
        if (sessions == 1) assert_contains(logged.text, SET("enough for", "sessions of", "more after this one"));
        if (result.status) assert_contains(result.error.text, SET("time is up", "in the next session"));
        assert_true(result.report.seconds <= seconds);
    } while (result.status == CLEAT_ERR_TIME_UP && sessions < 20);
    if (result.status) fail_msg("%s", result.error.text);
    assert_true(sessions > 1);
    assert_int_equal(result.report.epochs_planned, epochs);
    tiny_assert_same_run(t, "whole_chain", run);
}

/* Two sessions; the budget ends the second early, and a third is refused at once. */
static void budget_counts_all_sessions(void **state) {
    const tiny *t = *state;
    char text[64];
    cleat_train_report start = train_until(CLEAT_OK, t, "start4", SET(STEPS_ONLY), false, NULL);
    const int session = (int)ceil(2 * start.seconds_first_step + 3);
    snprintf(text, sizeof text, "run.time_budget=%ds/%ds", 2 * session - 2, session);
    const char *const *set = SET(STEPS_ONLY, ENDLESS, "run.budget=stop", text);
    tiny_result first = train_session(t, NULL, "b1", set), second = train_session(t, "b1", "b2", set);
    assert_int_equal(first.status, CLEAT_ERR_TIME_UP);
    assert_contains(first.error.text, SET("in the next session"));
    assert_int_equal(second.status, CLEAT_ERR_TIME_UP);
    assert_contains(second.error.text, SET("and a larger --time-budget"));
    assert_true(second.report.steps > first.report.steps);
    assert_true(first.report.seconds + second.report.seconds <= 2 * session - 2);
    tiny_result third = train_session(t, "b2", "b3", set);
    assert_int_equal(third.status, CLEAT_ERR_TIME_UP);
    assert_contains(third.error.text, SET("are used", "--time-budget"));
    assert_int_equal(third.report.steps, second.report.steps);
}

/* Independent of the budget of the resumed run. */
static void shortened_schedule_stays_as_it_is(void **state) {
    const tiny *t = *state;
    char text[64];
    cleat_train_report start = train_until(CLEAT_OK, t, "start", SET(STEPS_ONLY), false, NULL);
    budget(2 * start.seconds + 2, text);
    cleat_train_report cut = train_until(CLEAT_ERR_INTERRUPTED, t, "fit", SET(STEPS_ONLY, ENDLESS, text), false,
                                         "the schedule is shortened to");
    assert_contains(logged.text, SET("100000 epochs would take", "the budget is", "including the learning rate"));
    assert_true(cut.epochs_planned >= 2 && cut.epochs_planned < 100000);
    assert_true(last_state(t, "fit", "epochs") == (double)cut.epochs_planned);
    assert_true(last_metric(t, "fit", "schedule", "epochs") == (double)cut.epochs_planned);

    cleat_train_report whole =
        train_until(CLEAT_OK, t, "fit", SET(STEPS_ONLY, ENDLESS, "run.time_budget=1000h"), true, NULL);
    assert_int_equal(whole.epochs, cut.epochs_planned);
    assert_int_equal(whole.epochs_planned, cut.epochs_planned);
    assert_true(whole.steps > cut.steps);
    double rate = last_metric(t, "fit", "train", "learning_rate");
    if (!(rate >= 1e-4 && rate < 1.1e-4)) fail_msg("the last learning rate is %g", rate);
    assert_true(last_metric(t, "fit", "schedule", "epochs") == (double)cut.epochs_planned);
}

static void shortened_run_ends_within_its_budget(void **state) {
    const tiny *t = *state;
    char text[64];
    cleat_train_report start = train_until(CLEAT_OK, t, "start2", SET(STEPS_ONLY), false, NULL);
    double seconds = ceil(2 * start.seconds + 2);
    tiny_result result = tiny_train(t, "within", SET(STEPS_ONLY, ENDLESS, budget(seconds, text)), false, 0);
    assert_true(result.report.seconds <= seconds);
    assert_true(result.report.epochs_planned < 100000);
    if (result.status) fail_msg("%s", result.error.text);
    assert_int_equal(result.report.epochs, result.report.epochs_planned);
}

static void warm_up_is_not_cut(void **state) {
    const tiny *t = *state;
    char text[64];
    cleat_train_report start = train_until(CLEAT_OK, t, "start3", SET(STEPS_ONLY), false, NULL);
    cleat_train_report report = train_until(CLEAT_ERR_INTERRUPTED, t, "warm",
                                            SET(STEPS_ONLY, ENDLESS, "train.warmup_steps=0",
                                                "train.warmup_epochs=99999", budget(2 * start.seconds + 2, text)),
                                            false, "the schedule is unchanged");
    assert_int_equal(report.epochs_planned, 100000);
}

/* Returns the number of checkpoints of a run whose steps take some seconds, and its duration in *minutes. */
static size_t checkpoints_of(const tiny *t, const char *run, const char *setting, double *minutes) {
    char path[TINY_PATH];
    cleat_checkpoint_name *names = NULL;
    size_t count = 0;
    const int64_t begin = simulated_us;
    graph_us = 4000000;
    train_until(CLEAT_OK, t, run, SET(STEPS_ONLY, "train.epochs=10", "run.keep_checkpoints=1000", setting), false,
                NULL);
    graph_us = 5000;
    *minutes = 1e-6 / 60 * (double)(simulated_us - begin);
    assert_int_equal(cleat_checkpoint_list(tiny_path(t, run, path), &names, &count, NULL), CLEAT_OK);
    cleat_free(names);
    return count;
}

/* One at the end, and one after every interval; the minimum interval is one minute. */
static void checkpoints_are_written_by_the_minute(void **state) {
    const tiny *t = *state;
    double minutes;
    assert_int_equal(checkpoints_of(t, "minutes_none", "run.checkpoint_every_minutes=none", &minutes), 1);
    const size_t one = checkpoints_of(t, "minutes_1", "run.checkpoint_every_minutes=1", &minutes);
    if (!(minutes > 6)) fail_msg("only %.1f minutes", minutes);
    if ((double)one > minutes + 1 || (double)one < minutes / 1.5)
        fail_msg("%zu checkpoints in %.1f minutes", one, minutes);
    const size_t three = checkpoints_of(t, "minutes_3", "run.checkpoint_every_minutes=3", &minutes);
    if ((double)three > minutes / 3 + 1 || (double)three < minutes / 4.5)
        fail_msg("%zu checkpoints in %.1f minutes", three, minutes);
}

/* Before the first checkpoint its time is estimated: weights, moments of trained weights, and the mean, at
 * 100 MB/s. */
static void a_checkpoint_is_guessed_by_its_bytes(void **state) {
    const tiny *t = *state;
    for (int averages = 0; averages < 2; ++averages) {
        char out[TINY_PATH];
        cleat_error error = {0};
        cleat_train_report report = {0};
        cleat_profile *profile =
            tiny_profile(t, SET("run.monitor=none", "run.time_budget=1h",
                                averages ? "train.average_decay=0.5" : "train.average_decay=none"));
        const cleat_train_options options = {.out = tiny_path(t, averages ? "guess_mean" : "guess", out)};
        cleat_trainer trainer = {.settings = {.given = profile, .profile = profile},
                                 .run = {.options = &options, .report = &report}};
        if (cleat_trainer_open(&trainer, &error)) fail_msg("%s", error.text);
        const cleat_session *session = trainer.engine.session;
        const double values =
            (double)(1 + averages) * (double)cleat_session_flat(session) + 2 * (double)cleat_session_trained(session);
        assert_true(values > 1000);
        assert_true(fabs(trainer.deadline.budget.checkpoint.guess / (4 * values / 100e6) - 1) < 1e-12);
        cleat_trainer_close(&trainer);
        cleat_profile_destroy(profile);
    }
}

int main(void) {
    tiny_require_device();
    trains = true;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checkpoints_are_written_by_the_minute),
        cmocka_unit_test(forecast_is_made_without_a_budget),
        cmocka_unit_test(roomy_budget_changes_nothing),
        cmocka_unit_test(stopped_run_goes_on_with_the_same_bits),
        cmocka_unit_test(sessions_are_a_chain_of_folders),
        cmocka_unit_test(budget_counts_all_sessions),
        cmocka_unit_test(shortened_schedule_stays_as_it_is),
        cmocka_unit_test(shortened_run_ends_within_its_budget),
        cmocka_unit_test(warm_up_is_not_cut),
        cmocka_unit_test(a_checkpoint_is_guessed_by_its_bytes),
    };
    return cmocka_run_group_tests_name("time_budget", tests, tiny_setup, tiny_teardown);
}
