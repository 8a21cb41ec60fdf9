/* Whole training runs: bit-identical results with interruption and resume, and every way a run can end. */
/* ctest: device */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "core/files.h"
#include "core/memory.h"
#include "core/philox.h"
#include "exec/copy.h"
#include "platform/files.h"
#include "platform/processes.h"
#include "session/feed.h"
#include "tiny.h"
#include "train/load_model.h"
#include "train/trainer.h"

extern char **environ;

static void assert_contains(const char *text, const char *const *words) {
    for (; *words; ++words)
        if (!strstr(text, *words)) fail_msg("'%s' does not contain '%s'", text, *words);
}

/* Captured warnings that contain certain words. */
typedef struct log_capture {
    const char *words;
    int times;
    char text[1024];
} log_capture;

static void capture_log(void *user, cleat_log_level level, const char *text) {
    log_capture *w = user;
    if (level != CLEAT_LOG_WARNING || !strstr(text, w->words)) return;
    ++w->times;
    snprintf(w->text, sizeof w->text, "%s", text);
}

static void start_capture(log_capture *w, const char *words) {
    *w = (log_capture){.words = words};
    cleat_set_log(capture_log, w, CLEAT_LOG_WARNING);
}

static void stop_capture(void) {
    cleat_set_log(NULL, NULL, CLEAT_LOG_WARNING);
}

/* The reference run, trained on first use. */
static const char *base(const tiny *t) {
    char path[TINY_PATH];
    if (access(tiny_path(t, "base/last", path), F_OK) != 0) tiny_train_to(CLEAT_OK, t, "base", NULL, false, 0);
    return "base";
}

/* --- the same bits --- */

static void same_seed_gives_the_same_bits(void **state) {
    const tiny *t = *state;
    tiny_result result = tiny_train_to(CLEAT_OK, t, "again", NULL, false, 0);
    assert_int_equal(result.report.epochs, 2);
    assert_true(result.report.steps > 4);
    assert_true(result.report.memory.allocated > 0);
    assert_int_equal(result.report.memory.allocated, result.report.memory.planned);
    tiny_assert_same_run(t, base(t), "again");
}

static void another_seed_gives_other_bits(void **state) {
    const tiny *t = *state;
    char path[TINY_PATH], other[TINY_PATH];
    size_t size, other_size;
    tiny_train_to(CLEAT_OK, t, "seed", SET("run.seed=2"), false, 0);
    char *a = tiny_read(tiny_last_file(t, base(t), "model.safetensors", path), &size);
    char *b = tiny_read(tiny_last_file(t, "seed", "model.safetensors", other), &other_size);
    assert_true(size != other_size || memcmp(a, b, size) != 0);
    cleat_free(a);
    cleat_free(b);
}

static void number_of_workers_does_not_matter(void **state) {
    const tiny *t = *state;
    tiny_train_to(CLEAT_OK, t, "workers0", SET("loader.num_workers=0"), false, 0);
    tiny_train_to(CLEAT_OK, t, "workers4", SET("loader.num_workers=4", "loader.persistent_workers=false"), false, 0);
    tiny_assert_same_run(t, base(t), "workers0");
    tiny_assert_same_run(t, base(t), "workers4");
}

/* Stopped after every step, both within epochs and at their ends. */
static void interrupted_at_each_step_and_resumed(void **state) {
    const tiny *t = *state;
    cleat_status status = CLEAT_ERR_INTERRUPTED;
    int64_t steps = 0;
    for (; status == CLEAT_ERR_INTERRUPTED; ++steps) {
        tiny_result result = tiny_train(t, "steps", NULL, steps > 0, 1);
        status = result.status;
        if (status == CLEAT_ERR_INTERRUPTED) {
            assert_int_equal(result.report.steps, steps + 1);
            assert_contains(result.error.text, SET("--resume"));
        }
    }
    assert_int_equal(status, CLEAT_OK);
    assert_true(steps > 5);
    tiny_assert_same_run(t, base(t), "steps");
}

/* A stop request while the run opens ends it after the current stage: it leaves no files, and does not change
 * an existing checkpoint. */
static void stopped_before_the_first_step(void **state) {
    const tiny *t = *state;
    char out[TINY_PATH];
    volatile int stop = 1;
    cleat_train_report report;
    cleat_error error = {0};
    cleat_profile *profile = tiny_profile(t, NULL);
    const cleat_train_options options = {.out = tiny_path(t, "unborn", out), .stop = &stop},
                              resumed = {.out = out, .stop = &stop, .resume = true};
    assert_int_equal(cleat_train(profile, &options, &report, &error), CLEAT_ERR_INTERRUPTED);
    assert_contains(error.text, SET("before the first step"));
    assert_int_equal(report.steps, 0);
    assert_false(cleat_folder_exists(out));
    tiny_train_to(CLEAT_ERR_INTERRUPTED, t, "unborn", NULL, false, 1);
    assert_int_equal(cleat_train(profile, &resumed, &report, &error), CLEAT_ERR_INTERRUPTED);
    assert_contains(error.text, SET("before the first step", "--resume"));
    assert_int_equal(tiny_train_to(CLEAT_ERR_INTERRUPTED, t, "unborn", NULL, true, 1).report.steps, 2);
    cleat_profile_destroy(profile);
}

static void finished_run_is_resumed_without_a_step(void **state) {
    const tiny *t = *state;
    tiny_train_to(CLEAT_OK, t, "done", NULL, false, 0);
    tiny_result result = tiny_train_to(CLEAT_OK, t, "done", NULL, true, 0);
    assert_int_equal(result.report.epochs, 2);
    tiny_assert_same_run(t, base(t), "done");
}

/* --- killed --- */

static const char *const long_run[] = {"train.epochs=12", "run.checkpoint_every_epochs=1", NULL};

/* The child process: this program, called with --train FOLDER RUN. */
static int train_as_child(const char *folder, const char *run) {
    tiny t;
    snprintf(t.folder, sizeof t.folder, "%s", folder);
    snprintf(t.data, sizeof t.data, "%.80s/data", folder);
    return tiny_train(&t, run, long_run, true, 0).status == CLEAT_OK ? 0 : 1;
}

static off_t bytes_of(const char *path) {
    struct stat about;
    return stat(path, &about) == 0 ? about.st_size : 0;
}

static pid_t start_child(const tiny *t, const char *run) {
    char *const arguments[] = {"training", "--train", (char *)t->folder, (char *)run, NULL};
    const pid_t child = cleat_spawn(NULL, arguments, STDOUT_FILENO, STDERR_FILENO, SIGKILL);
    assert_true(child >= 0);
    return child;
}

/* Kills the child some time after its log reaches this size; returns false if it ended first. */
static bool kill_child(pid_t child, const char *log, off_t bytes, double delay) {
    struct timespec moment = {.tv_nsec = 200000}, more = {.tv_nsec = (long)(delay * 1e9)};
    int code;
    while (bytes_of(log) < bytes) {
        if (waitpid(child, &code, WNOHANG) == child) return false;
        nanosleep(&moment, NULL);
    }
    nanosleep(&more, NULL);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &code, 0), child);
    return WIFSIGNALED(code) || (!CLEAT_FORKS && WEXITSTATUS(code) != 0);
}

/* Once during setup, then at random moments: in steps, evaluations and checkpoints. */
static void killed_at_any_moment_and_resumed(void **state) {
    enum { KILLS = 6 };
    const tiny *t = *state;
    cleat_random random = cleat_random_stream((uint64_t)time(NULL), 0, 0);
    char path[TINY_PATH], log[TINY_PATH];
    int kills = 0, code = 0;
    tiny_train_to(CLEAT_OK, t, "whole", long_run, false, 0);
    double whole = (double)bytes_of(tiny_path(t, "whole/metrics.jsonl", path));
    tiny_path(t, "killed/metrics.jsonl", log);
    for (int i = 0; i < KILLS; ++i) {
        double part = i == 0 ? 0 : (i - 1 + cleat_random_uniform(&random)) / KILLS;
        kills += kill_child(start_child(t, "killed"), log, (off_t)(part * whole), cleat_random_uniform(&random) * 0.05);
    }
    print_message("killed %d times\n", kills);
    assert_true(kills >= 2);
    pid_t child = start_child(t, "killed");
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_true(WIFEXITED(code) && WEXITSTATUS(code) == 0);
    tiny_assert_same_run(t, "whole", "killed");
}

/* --- resume --- */

static void changed_profile_is_not_resumed(void **state) {
    const tiny *t = *state;
    tiny_train_to(CLEAT_ERR_INTERRUPTED, t, "changed", NULL, false, 1);
    tiny_result result = tiny_train_to(CLEAT_ERR_PROFILE, t, "changed", SET("train.learning_rate=2e-2"), true, 0);
    assert_contains(result.error.text, SET("learning_rate", "0.02", "0.01", "--out"));
    result = tiny_train_to(CLEAT_ERR_PROFILE, t, "changed", SET("model.d_ff=24"), true, 0);
    assert_contains(result.error.text, SET("d_ff", "24", "16"));
    /* Environment settings do not change results. */
    tiny_train_to(CLEAT_OK, t, "changed", SET("loader.num_workers=0", "run.log_every_steps=1"), true, 0);
    tiny_assert_same_run(t, base(t), "changed");
}

static void run_is_not_overwritten(void **state) {
    const tiny *t = *state;
    tiny_result result = tiny_train_to(CLEAT_ERR_ARGUMENT, t, base(t), NULL, false, 0);
    assert_contains(result.error.text, SET("base", "--resume", "--out"));
}

/* --- the run's folder --- */

/* An open trainer; options as for cleat_train. */
typedef struct opened {
    cleat_profile *profile;
    cleat_train_options options;
    cleat_train_report report;
    cleat_trainer trainer;
    cleat_error error;
} opened;

static opened *open_trainer(const tiny *t, const char *out, cleat_status wanted) {
    opened *o = cleat_alloc(1, sizeof *o);
    o->profile = tiny_profile(t, NULL);
    o->options.out = out;
    o->trainer.settings.given = o->trainer.settings.profile = o->profile;
    o->trainer.run.options = &o->options;
    o->trainer.run.report = &o->report;
    cleat_status status = cleat_trainer_open(&o->trainer, &o->error);
    if (status != wanted) fail_msg("%s: %s", cleat_status_text(status), o->error.text);
    return o;
}

static void close_trainer(opened *o) {
    cleat_run_monitor_end(&o->trainer.monitor, 0, CLEAT_OK, "", 0);
    cleat_trainer_close(&o->trainer);
    cleat_profile_destroy(o->profile);
    cleat_free(o);
}

/* The lock ends with the trainer; its file does not block another run. */
static void two_runs_do_not_share_a_folder(void **state) {
    const tiny *t = *state;
    char path[TINY_PATH];
    opened *first = open_trainer(t, tiny_path(t, "shared", path), CLEAT_OK);
    tiny_result second = tiny_train_to(CLEAT_ERR_ARGUMENT, t, "shared", NULL, true, 0);
    assert_contains(second.error.text, SET("another process is training in", "/shared", "--out"));
    close_trainer(first);
    tiny_train_to(CLEAT_OK, t, "shared", NULL, true, 0);
    tiny_assert_same_run(t, base(t), "shared");
}

/* Folders for all seconds of a minute exist, as if other runs had begun in the same second. */
static void run_without_a_name_gets_a_folder_of_its_own(void **state) {
    const tiny *t = *state;
    char before[TINY_PATH], name[64], stamp[32];
    time_t now = time(NULL);
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(t->folder), 0);
    assert_int_equal(mkdir("runs", 0755), 0);
    for (time_t second = now; second < now + 60; ++second) {
        struct tm local;
        strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", localtime_r(&second, &local));
        snprintf(name, sizeof name, "runs/rna_transformer-%s", stamp);
        assert_int_equal(mkdir(name, 0755), 0);
    }
    opened *o = open_trainer(t, NULL, CLEAT_OK);
    const char *folder = o->trainer.run.folder;
    assert_int_equal(strlen(folder), strlen(name) + 2);
    assert_string_equal(folder + strlen(name), "-2");
    assert_int_equal(access(folder, F_OK), 0);
    close_trainer(o);
    assert_int_equal(chdir(before), 0);
}

static void folder_name_that_is_too_long_is_refused(void **state) {
    char name[2 * CLEAT_PATH];
    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = 0;
    opened *o = open_trainer(*state, name, CLEAT_ERR_ARGUMENT);
    assert_contains(o->error.text, SET("--out", "too long"));
    close_trainer(o);
}

/* If several settings are wrong, the error that is detected immediately is reported first, and no files are left. */
static void device_is_chosen_before_the_folder_and_the_data(void **state) {
    char path[TINY_PATH];
    opened *o = cleat_alloc(1, sizeof *o);
    o->profile = tiny_profile(*state, SET("run.device=no such device", "data.path=/nowhere"));
    o->options.out = tiny_path(*state, "no_device", path);
    cleat_status status = cleat_train(o->profile, &o->options, &o->report, &o->error);
    assert_int_equal(status, CLEAT_ERR_NO_DEVICE);
    assert_contains(o->error.text, SET("no such device"));
    assert_int_not_equal(access(path, F_OK), 0);
    close_trainer(o);
}

/* --- the log --- */

/* Metrics of more steps than fit the device's ring: all are in the log. */
static void log_is_complete_however_seldom_it_is_written(void **state) {
    const tiny *t = *state;
    const char *const many[] = {"train.epochs=1", "train.batch_size=1", "train.effective_batch_size=1",
                                "run.log_every_steps=1", NULL};
    const char *const seldom[] = {"train.epochs=1", "train.batch_size=1", "train.effective_batch_size=1",
                                  "run.log_every_steps=1000", NULL};
    tiny big = *t;
    cleat_rna_make molecules = cleat_rna_make_defaults();
    char path[TINY_PATH];
    molecules.count = 80;
    molecules.stem_max = 5;
    snprintf(big.data, sizeof big.data, "%s", tiny_path(t, "many", path));
    assert_int_equal(cleat_data_make_rna(big.data, &molecules, NULL), CLEAT_OK);
    tiny_result result = tiny_train_to(CLEAT_OK, &big, "often", many, false, 0);
    assert_true(result.report.steps > 64);
    tiny_train_to(CLEAT_OK, &big, "seldom", seldom, false, 0);
    tiny_assert_same_run(&big, "often", "seldom");
}

/* --- accumulation --- */

/* An epoch of `limit` samples is one step: as one batch of 8, and as micro-batches of 2 whose last global
 * batch, or last batch, is short. A large eps prevents AdamW from turning rounding noise into full steps. */
typedef struct received_records {
    char text[1 << 14];
    size_t size;
} received_records;

static void receive_record(void *user, const char *line) {
    received_records *received = user;
    const size_t size = strlen(line);
    assert_true(received->size + size < sizeof received->text);
    memcpy(received->text + received->size, line, size + 1);
    received->size += size;
}

static void records_are_passed_on_as_they_are_written(void **state) {
    const tiny *t = *state;
    received_records received = {.size = 0};
    char out[TINY_PATH], path[TINY_PATH];
    cleat_profile *profile = tiny_profile(t, NULL);
    const cleat_train_options options = {
        .out = tiny_path(t, "recorded", out), .record = receive_record, .user = &received};
    cleat_train_report report;
    cleat_error error = {0};
    if (cleat_train(profile, &options, &report, &error) != CLEAT_OK) fail_msg("%s", error.text);
    size_t size;
    char *file = tiny_read(tiny_path(t, "recorded/metrics.jsonl", path), &size);
    assert_string_equal(received.text, file);
    assert_non_null(strstr(file, "\"kind\":\"eval\""));
    cleat_free(file);
    cleat_profile_destroy(profile);
}

static void micro_batches_add_up(void **state) {
    const tiny *t = *state;
    static const char *const limits[] = {"data.limit=8", "data.limit=7", "data.limit=5"};
    for (int i = 0; i < 3; ++i) {
        const char *const common[] = {
            limits[i],        "train.effective_batch_size=8", "model.dropout=0", "train.epochs=4",
            "train.eps=1e-3", "train.warmup_steps=0",         "data.buckets=32", "data.max_length=32"};
        const char *whole[10] = {"train.batch_size=8"}, *parts[10] = {"train.batch_size=2"};
        char run[2][16];
        for (int k = 0; k < 8; ++k) whole[k + 1] = parts[k + 1] = common[k];
        snprintf(run[0], sizeof run[0], "whole%d", i);
        snprintf(run[1], sizeof run[1], "parts%d", i);
        tiny_result a = tiny_train_to(CLEAT_OK, t, run[0], whole, false, 0);
        tiny_result b = tiny_train_to(CLEAT_OK, t, run[1], parts, false, 0);
        assert_int_equal(a.report.steps, 4);
        assert_int_equal(b.report.steps, 4);
        double worst = tiny_distance(t, run[0], run[1]);
        print_message("%s: largest difference %.2g\n", limits[i], worst);
        assert_true(worst <= 1e-6);
    }
}

/* A run may be resumed with other micro-batches, as on another card: results agree up to rounding. */
static void resume_with_other_micro_batches(void **state) {
    const tiny *t = *state;
    const char *common[] = {"train.effective_batch_size=4",
                            "train.eps=1e-3",
                            "data.buckets=32",
                            "data.max_length=32",
                            "model.dropout=0.2",
                            "train.batch_size=4",
                            NULL,
                            NULL};
    enum { BATCH = 5 };
    tiny_train_to(CLEAT_OK, t, "one_card", common, false, 0);
    tiny_train_to(CLEAT_ERR_INTERRUPTED, t, "cards", common, false, 1);
    common[BATCH] = "train.batch_size=3";
    tiny_train_to(CLEAT_ERR_INTERRUPTED, t, "cards", common, true, 1);
    common[BATCH] = "train.batch_size=1";
    common[BATCH + 1] = "train.gradient_checkpointing=true";
    tiny_train_to(CLEAT_OK, t, "cards", common, true, 0);
    double worst = tiny_distance(t, "one_card", "cards");
    print_message("largest difference %.2g\n", worst);
    assert_true(worst > 0 && worst <= 2e-6);
}

/* Recomputed outputs have the same bits, also in halves, which keep GELU's outputs. */
static void selective_recomputation_changes_no_bit(void **state) {
    static const char *const precisions[] = {"train.precision=f32", "train.precision=bf16"};
    const tiny *t = *state;
    for (int i = 0; i < 2; ++i) {
        char run[2][16], path[TINY_PATH], name[48];
        size_t size;
        snprintf(run[0], sizeof run[0], "stored%d", i);
        snprintf(run[1], sizeof run[1], "selective%d", i);
        tiny_result a = tiny_train_to(
            CLEAT_OK, t, run[0], SET("model.layers=3", "train.gradient_checkpointing=false", precisions[i]), false, 0);
        tiny_result b =
            tiny_train_to(CLEAT_OK, t, run[1],
                          SET("model.layers=3", "train.gradient_checkpointing=selective", precisions[i]), false, 0);
        assert_true(b.report.memory.allocated < a.report.memory.allocated);
        assert_true(tiny_distance(t, run[0], run[1]) == 0);
        snprintf(name, sizeof name, "%s/resolved.ini", run[1]);
        char *text = tiny_read(tiny_path(t, name, path), &size);
        assert_non_null(strstr(text, "gradient_checkpointing = selective"));
        cleat_free(text);
    }
}

/* `auto` keeps the interrupted run's micro-batch sizes although more memory is available: same bits. */
static void resume_keeps_its_cut(void **state) {
    const tiny *t = *state;
    const char *const set[] = {"train.batch_size=auto", "train.effective_batch_size=4", "run.max_memory_usage=1",
                               "data.buckets=32",       "data.max_length=32",           NULL};
    tiny_result whole = tiny_train_to(CLEAT_OK, t, "ample", set, false, 0);
    char limit[32];
    snprintf(limit, sizeof limit, "%lld", (long long)whole.report.memory.allocated - 1);
    setenv("CLEAT_DEVICE_MEMORY_LIMIT", limit, 1);
    tiny_result small = tiny_train_to(CLEAT_OK, t, "scarce", set, false, 0);
    tiny_train_to(CLEAT_ERR_INTERRUPTED, t, "scarce_then_ample", set, false, 1);
    unsetenv("CLEAT_DEVICE_MEMORY_LIMIT");
    assert_true(small.report.memory.allocated < whole.report.memory.allocated);
    char path[TINY_PATH];
    /* the checkpoint is sufficient */
    assert_int_equal(remove(tiny_path(t, "scarce_then_ample/resolved.ini", path)), 0);
    log_capture w;
    start_capture(&w, "earlier in this run");
    tiny_train_to(CLEAT_OK, t, "scarce_then_ample", set, true, 0);
    tiny_assert_same_run(t, "scarce", "scarce_then_ample");
    assert_int_equal(w.times, 0);

    /* With less memory than in the first session this is impossible, which is logged. */
    tiny_train_to(CLEAT_ERR_INTERRUPTED, t, "ample_then_scarce", set, false, 1);
    setenv("CLEAT_DEVICE_MEMORY_LIMIT", limit, 1);
    tiny_train_to(CLEAT_OK, t, "ample_then_scarce", set, true, 0);
    unsetenv("CLEAT_DEVICE_MEMORY_LIMIT");
    stop_capture();
    assert_int_equal(w.times, 1);
    assert_contains(w.text, SET("length 32", "micro-batches of 2, but 4 earlier"));
}

/* Micro-batch sizes requested by the profile, in any form, take precedence over earlier ones. */
static void resume_takes_the_cut_that_is_asked_for(void **state) {
    const tiny *t = *state;
    static const char *const asked[] = {"train.gradient_accumulation_steps=1", "train.bucket_batch_sizes=2",
                                        "train.gradient_accumulation_steps=4", "train.bucket_batch_sizes=3",
                                        "train.gradient_accumulation_steps=2"};
    static const int64_t batches[] = {4, 2, 1, 3, 2};
    for (int i = 0; i < 5; ++i) {
        char path[TINY_PATH];
        cleat_profile *resolved = NULL;
        tiny_train_to(CLEAT_ERR_INTERRUPTED, t, "asked",
                      SET("train.batch_size=auto", "train.effective_batch_size=4", "data.buckets=32",
                          "data.max_length=32", "train.epochs=9", asked[i]),
                      i > 0, 1);
        assert_int_equal(cleat_profile_load(tiny_path(t, "asked/resolved.ini", path), NULL, 0, &resolved, NULL),
                         CLEAT_OK);
        assert_int_equal(resolved->train.bucket_batch_sizes.values[0], batches[i]);
        cleat_profile_destroy(resolved);
    }
}

/* --- the ways a run ends --- */

/* An excessive rate: the parameters grow until the gradient overflows after a few steps. */
static const char *const absurd[] = {"train.learning_rate=3",
                                     "data.limit=4",
                                     "train.weight_decay=1",
                                     "train.warmup_steps=0",
                                     "train.schedule=constant",
                                     "train.epochs=60",
                                     "model.head=absolute",
                                     "loss.coordinate=1",
                                     "run.evaluate_every_epochs=none",
                                     NULL};

/* A non-finite metric ends the run and leaves the previous checkpoint; the same step fails again, even if a
 * checkpoint is due before the metrics are read. */
static void not_a_number_stops_the_run(void **state) {
    const tiny *t = *state;
    char text[CLEAT_ERROR_TEXT];
    tiny_result result = tiny_train_to(CLEAT_ERR_NAN, t, "nan", absurd, false, 0);
    assert_contains(result.error.text, SET("step", "not finite", "learning_rate"));
    snprintf(text, sizeof text, "%s", result.error.text);
    size_t count;
    float *values = tiny_parameters(t, "nan", &count);
    for (size_t i = 0; i < count; ++i) assert_true(isfinite(values[i]));
    cleat_free(values);
    do result = tiny_train(t, "nan", absurd, true, 1);
    while (result.status == CLEAT_ERR_INTERRUPTED);
    assert_int_equal(result.status, CLEAT_ERR_NAN);
    const char *end = strstr(text, "). "); /* the rest depends on whether later steps were in flight */
    assert_non_null(end);
    assert_memory_equal(result.error.text, text, (size_t)(end - text));
}

static void run_without_progress_ends_early(void **state) {
    const tiny *t = *state;
    const char *const set[] = {"run.early_stopping_patience=2", "train.learning_rate=1e-12", "train.epochs=9",
                               "train.weight_decay=0", NULL};
    tiny_result result = tiny_train_to(CLEAT_OK, t, "early", set, false, 0);
    assert_true(result.report.stopped_early);
    int64_t epochs = result.report.epochs;
    assert_true(epochs >= 3 && epochs < 9);
    size_t size;
    char path[TINY_PATH], *resolved = tiny_read(tiny_path(t, "early/resolved.ini", path), &size);
    const char *const otherwise[] = {set[0], set[1], set[2], set[3], "train.batch_size=1", NULL};
    result = tiny_train_to(CLEAT_OK, t, "early", otherwise, true, 0);
    assert_true(result.report.stopped_early);
    assert_int_equal(result.report.epochs, epochs);
    char *kept = tiny_read(path, &size); /* the settings of the training */
    assert_string_equal(kept, resolved);
    cleat_free(resolved);
    cleat_free(kept);
}

static void patience_without_a_sample_to_validate_is_said(void **state) {
    const tiny *t = *state;
    tiny all = *t;
    cleat_rna_make molecules = cleat_rna_make_defaults();
    char path[TINY_PATH];
    log_capture w;
    molecules.count = 4;
    molecules.stem_max = 5;
    molecules.val_fraction = 0;
    snprintf(all.data, sizeof all.data, "%s", tiny_path(t, "all", path));
    assert_int_equal(cleat_data_make_rna(all.data, &molecules, NULL), CLEAT_OK);
    start_capture(&w, "no validation samples");
    tiny_train_to(CLEAT_OK, &all, "unjudged", SET("run.early_stopping_patience=2", "train.warmup_steps=0"), false, 0);
    assert_int_equal(w.times, 1);
    tiny_train_to(CLEAT_OK, &all, "unasked", SET("train.warmup_steps=0"), false, 0);
    assert_int_equal(w.times, 1);
    stop_capture();
}

static void what_does_not_fit_is_said(void **state) {
    const tiny *t = *state;
    setenv("CLEAT_DEVICE_MEMORY_LIMIT", "60000", 1);
    tiny_result result = tiny_train_to(CLEAT_ERR_FIT, t, "fit", NULL, false, 0);
    assert_contains(result.error.text, SET("micro-batch of 2", "too much", "gradients", "smaller model"));
    result = tiny_train_to(CLEAT_ERR_FIT, t, "fit", SET("train.batch_size=auto"), false, 0);
    assert_contains(result.error.text, SET("micro-batch of 1", "smaller model"));
    unsetenv("CLEAT_DEVICE_MEMORY_LIMIT");
}

/* If the whole batch does not fit, the micro-batch is smaller, with the same number of samples per step. */
static void batch_is_made_to_fit(void **state) {
    const tiny *t = *state;
    const char *const set[] = {"train.batch_size=auto",  "train.effective_batch_size=8",
                               "run.max_memory_usage=1", "data.buckets=32",
                               "data.max_length=32",     "data.limit=8",
                               "train.warmup_steps=0",   NULL};
    tiny_result whole = tiny_train_to(CLEAT_OK, t, "roomy", set, false, 0);
    char limit[32], path[TINY_PATH];
    snprintf(limit, sizeof limit, "%lld", (long long)whole.report.memory.allocated - 1);
    setenv("CLEAT_DEVICE_MEMORY_LIMIT", limit, 1);
    tiny_result small = tiny_train_to(CLEAT_OK, t, "tight", set, false, 0);
    unsetenv("CLEAT_DEVICE_MEMORY_LIMIT");
    assert_true(small.report.memory.allocated < whole.report.memory.allocated);
    size_t size;
    char *resolved = tiny_read(tiny_path(t, "tight/resolved.ini", path), &size);
    assert_contains(resolved, SET("batch_size = 4", "gradient_accumulation_steps = 2", "effective_batch_size = 8"));
    cleat_free(resolved);
}

/* --- output files --- */

/* The profile's maximum length is kept for predictions, although no sequence of the data reaches it. */
static void what_was_resolved_loads_again(void **state) {
    const tiny *t = *state;
    char path[TINY_PATH];
    cleat_profile *resolved = NULL;
    cleat_error error;
    tiny_train_to(CLEAT_ERR_INTERRUPTED, t, "loads", SET("data.max_length=256", "data.min_length=128"), false, 1);
    if (cleat_profile_load(tiny_path(t, "loads/resolved.ini", path), NULL, 0, &resolved, &error) != CLEAT_OK)
        fail_msg("%s", error.text);
    assert_int_equal(resolved->data->max_length, 256);
    assert_int_equal(resolved->data->min_length, 128);
    assert_true(resolved->data->buckets.values[resolved->data->buckets.count - 1] < 128);
    cleat_profile_destroy(resolved);
    /* a difference in this length alone is not refused */
    tiny_train_to(CLEAT_OK, t, "loads", SET("data.max_length=255", "data.min_length=128"), true, 0);
}

static void best_checkpoint_gives_the_logged_metrics(void **state) {
    const tiny *t = *state;
    tiny_result result = tiny_train_to(CLEAT_OK, t, "figures", SET("train.epochs=3"), false, 0);
    cleat_profile *profile = tiny_profile(t, SET("train.epochs=3"));
    cleat_metrics found;
    cleat_error error;
    char path[TINY_PATH];
    if (cleat_evaluate(profile, tiny_path(t, "figures", path), "val", &found, &error) != CLEAT_OK)
        fail_msg("%s", error.text);
    assert_true(found.count > 5);
    assert_int_equal(found.count, result.report.best.count);
    for (size_t i = 0; i < found.count; ++i) {
        const cleat_metric *logged = &result.report.best.items[i];
        assert_string_equal(found.items[i].name, logged->name);
        if (memcmp(&found.items[i].value, &logged->value, sizeof logged->value) != 0)
            fail_msg("%s: %.17g, logged as %.17g", logged->name, found.items[i].value, logged->value);
    }
    assert_true(cleat_metrics_get(&found, "loss") == result.report.best_metric);
    assert_true(isnan(cleat_metrics_get(&found, "no such figure")));
    assert_int_equal(cleat_evaluate(profile, path, "elsewhere", &found, &error), CLEAT_ERR_ARGUMENT);
    assert_contains(error.text, SET("elsewhere", "val"));
    cleat_profile_destroy(profile);
}

/* The trace of validation sample `sample` as computed by the evaluation graph: [length, 3]. */
static float *evaluated(const cleat_profile *profile, const char *run, uint32_t sample, int64_t *length) {
    cleat_loaded_model loaded = {0};
    cleat_feed *feed = NULL;
    cleat_batches *batches = NULL;
    cleat_fed_batch fed;
    assert_int_equal(cleat_load_model(profile, run, profile->data->path, CLEAT_FOR_EVALUATION, NULL, &loaded, NULL),
                     CLEAT_OK);
    cleat_session *session = loaded.session;
    assert_int_equal(cleat_feed_open(session, loaded.dataset, &feed, NULL), CLEAT_OK);
    const cleat_batches_spec spec = {.dataset = loaded.dataset,
                                     .samples = &sample,
                                     .n_samples = 1,
                                     .buckets = session->work->buckets,
                                     .n_buckets = session->work->n_buckets};
    assert_int_equal(cleat_batches_create(&spec, &batches, NULL), CLEAT_OK);
    assert_int_equal(cleat_feed_start(feed, batches, 0, NULL, NULL), CLEAT_OK);
    assert_int_equal(cleat_feed_next(feed, &fed, NULL), CLEAT_OK);
    const cleat_work_graph *graph = &session->work->evaluate[fed.micro_batch->bucket];
    cleat_session_prepare(session, graph, fed.bytes, &fed.host, &(cleat_global_batch){.samples = 1}, NULL);
    assert_int_equal(cleat_feed_run(feed, graph, &fed, NULL), CLEAT_OK);
    float *output = cleat_alloc((size_t)cleat_tensor_elements(graph->built.output), sizeof *output);
    assert_non_null(output);
    assert_int_equal(cleat_exec_read_unchecked(session->exec, graph->index, graph->built.output, output, NULL),
                     CLEAT_OK);
    cleat_feed_release(feed, &fed);
    *length = cleat_dataset_length(loaded.dataset, sample);
    cleat_feed_close(feed);
    cleat_batches_destroy(batches);
    cleat_loaded_model_close(&loaded);
    return output;
}

/* Reads the numbers from `column` in the line with `word` of a CSV or PDB file. */
static void assert_coordinates(const char *text, const char *word, const char *format, const float *expected) {
    const char *line = strstr(text, word);
    double x[3];
    if (!line) fail_msg("'%s' is missing", word);
    assert_int_equal(sscanf(line + strlen(word), format, &x[0], &x[1], &x[2]), 3);
    for (int k = 0; k < 3; ++k)
        if (!(fabs(x[k] - expected[k]) <= 2e-3))
            fail_msg("%s: %g, evaluation gives %g", word, x[k], (double)expected[k]);
}

static void predictions_are_what_evaluation_computes(void **state) {
    const tiny *t = *state;
    char run[TINY_PATH], fasta[TINY_PATH], out[TINY_PATH], path[2 * TINY_PATH], word[64], text[TINY_PATH];
    cleat_profile *profile = tiny_profile(t, NULL);
    cleat_dataset *dataset = NULL;
    cleat_error error;
    size_t count = 0, size;
    tiny_path(t, base(t), run);
    assert_int_equal(cleat_rna_open(profile->data->path, NULL, &dataset, NULL), CLEAT_OK);
    snprintf(text, sizeof text, ">first a sequence\n%s\n>second\n%s\n", cleat_rna_sequence(dataset, 0),
             cleat_rna_sequence(dataset, 1));
    tiny_write(tiny_path(t, "two.fasta", fasta), text, strlen(text));
    if (cleat_predict(profile, run, fasta, tiny_path(t, "predicted", out), &count, &error) != CLEAT_OK)
        fail_msg("%s", error.text);
    assert_int_equal(count, 2);
    for (uint32_t sample = 0; sample < 2; ++sample) {
        const char *id = sample ? "second" : "first";
        int64_t length;
        float *expected = evaluated(profile, run, sample, &length);
        snprintf(path, sizeof path, "%s/%s.pdb", out, id);
        char *pdb = tiny_read(path, &size);
        snprintf(path, sizeof path, "%s/predictions.csv", out);
        char *csv = tiny_read(path, &size);
        for (int64_t i = 0; i < length; ++i) {
            snprintf(word, sizeof word, "\n%s_%lld,", id, (long long)i + 1);
            assert_coordinates(csv, word, "%*[^,],%*d,%lf,%lf,%lf", expected + 3 * i);
            snprintf(word, sizeof word, " %c A%4lld    ", cleat_rna_sequence(dataset, sample)[i], (long long)i + 1);
            assert_coordinates(pdb, word, "%8lf%8lf%8lf", expected + 3 * i);
        }
        cleat_free(expected);
        cleat_free(pdb);
        cleat_free(csv);
    }
    cleat_dataset_destroy(dataset);
    cleat_profile_destroy(profile);
}

/* --- invalid checkpoints --- */

static cleat_status evaluate(const tiny *t, const char *run, const char *const *set, cleat_error *error) {
    cleat_profile *profile = tiny_profile(t, set);
    cleat_metrics metrics;
    char path[TINY_PATH];
    cleat_status status = cleat_evaluate(profile, tiny_path(t, run, path), "val", &metrics, error);
    cleat_profile_destroy(profile);
    return status;
}

static void other_model_is_refused(void **state) {
    const tiny *t = *state;
    cleat_error error;
    assert_int_equal(evaluate(t, base(t), SET("model.d_model=32"), &error), CLEAT_ERR_PROFILE);
    assert_contains(error.text, SET("model.d_model", "16", "32"));
    assert_int_equal(evaluate(t, base(t), SET("model.positions=start"), &error), CLEAT_ERR_PROFILE);
    assert_contains(error.text, SET("model.positions", "both_ends", "start"));
}

static void damaged_checkpoint_is_named(void **state) {
    const tiny *t = *state;
    cleat_error error;
    char path[TINY_PATH];
    size_t size;
    assert_int_equal(evaluate(t, "nowhere", NULL, &error), CLEAT_ERR_NOT_FOUND);
    assert_contains(error.text, SET("nowhere"));
    tiny_train_to(CLEAT_ERR_INTERRUPTED, t, "damaged", NULL, false, 1);
    tiny_last_file(t, "damaged", "model.safetensors", path);
    char *bytes = tiny_read(path, &size);
    bytes[size - 5] ^= 1;
    tiny_write(path, bytes, size);
    assert_int_equal(evaluate(t, "damaged", NULL, &error), CLEAT_ERR_FORMAT);
    assert_contains(error.text, SET("model.safetensors"));
    tiny_write(path, bytes, size / 2);
    tiny_result result = tiny_train(t, "damaged", NULL, true, 0);
    assert_int_not_equal(result.status, CLEAT_OK);
    assert_contains(result.error.text, SET("damaged"));
    cleat_free(bytes);
}

int main(int argc, char **argv) {
    if (argc == 4 && strcmp(argv[1], "--train") == 0) return train_as_child(argv[2], argv[3]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_seed_gives_the_same_bits),
        cmocka_unit_test(another_seed_gives_other_bits),
        cmocka_unit_test(number_of_workers_does_not_matter),
        cmocka_unit_test(interrupted_at_each_step_and_resumed),
        cmocka_unit_test(stopped_before_the_first_step),
        cmocka_unit_test(finished_run_is_resumed_without_a_step),
        cmocka_unit_test(killed_at_any_moment_and_resumed),
        cmocka_unit_test(changed_profile_is_not_resumed),
        cmocka_unit_test(run_is_not_overwritten),
        cmocka_unit_test(two_runs_do_not_share_a_folder),
        cmocka_unit_test(run_without_a_name_gets_a_folder_of_its_own),
        cmocka_unit_test(device_is_chosen_before_the_folder_and_the_data),
        cmocka_unit_test(folder_name_that_is_too_long_is_refused),
        cmocka_unit_test(log_is_complete_however_seldom_it_is_written),
        cmocka_unit_test(records_are_passed_on_as_they_are_written),
        cmocka_unit_test(micro_batches_add_up),
        cmocka_unit_test(selective_recomputation_changes_no_bit),
        cmocka_unit_test(resume_with_other_micro_batches),
        cmocka_unit_test(resume_keeps_its_cut),
        cmocka_unit_test(resume_takes_the_cut_that_is_asked_for),
        cmocka_unit_test(not_a_number_stops_the_run),
        cmocka_unit_test(run_without_progress_ends_early),
        cmocka_unit_test(patience_without_a_sample_to_validate_is_said),
        cmocka_unit_test(what_does_not_fit_is_said),
        cmocka_unit_test(batch_is_made_to_fit),
        cmocka_unit_test(what_was_resolved_loads_again),
        cmocka_unit_test(best_checkpoint_gives_the_logged_metrics),
        cmocka_unit_test(predictions_are_what_evaluation_computes),
        cmocka_unit_test(other_model_is_refused),
        cmocka_unit_test(damaged_checkpoint_is_named),
    };
    tiny_require_device();

    return cmocka_run_group_tests(tests, tiny_setup, tiny_teardown);
}
