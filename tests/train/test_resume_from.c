/* A run that starts as a copy of another run has the bits of a resume in place, and only reads the other
 * run's folder. */
/* ctest: device */
#include "tiny.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "checkpoint/checkpoint.h"
#include "core/files.h"
#include "core/memory.h"
#include "platform/files.h"
#include "platform/processes.h"

static void shell(const char *format, const char *a, const char *b) {
    char command[4 * TINY_PATH];
    snprintf(command, sizeof command, format, a, b);
    if (system(command) != 0) fail_msg("%s", command);
}

static tiny_result train_with(const tiny *t, const char *source, const char *run, bool resume, const char *const *set) {
    tiny_result result = {.status = CLEAT_OK};
    char from[TINY_PATH], out[TINY_PATH];
    cleat_profile *profile = tiny_profile(t, set);
    cleat_train_options options = {
        .out = tiny_path(t, run, out), .resume = resume, .resume_from = tiny_path(t, source, from)};
    result.status = cleat_train(profile, &options, &result.report, &result.error);
    cleat_profile_destroy(profile);
    return result;
}

static tiny_result train_from(const tiny *t, const char *source, const char *run, bool resume) {
    return train_with(t, source, run, resume, NULL);
}

static void assert_contains(tiny_result result, cleat_status wanted, const char *text) {
    assert_int_equal(result.status, wanted);
    if (!strstr(result.error.text, text)) fail_msg("'%s' does not contain '%s'", result.error.text, text);
}

/* Every name, size, mode and time in the folder, including inode change times. */
static char *describe(const tiny *t, const char *run) {
    char path[TINY_PATH], list[TINY_PATH];
    size_t size;
    shell("cd '%s' && find . -printf '%%p %%y %%s %%m %%T@ %%C@\\n' | sort > '%s'", tiny_path(t, run, path),
          tiny_path(t, "list", list));
    return tiny_read(list, &size);
}

static void assert_pointer(const tiny *t, const char *run, const char *pointer, const char *wanted) {
    char path[TINY_PATH];
    cleat_checkpoint_name name;
    assert_true(cleat_checkpoint_pointer(tiny_path(t, run, path), pointer, &name));
    assert_string_equal(name.text, wanted);
}

/* Interrupted after one step; the copied folder is read-only, like /kaggle/input. */
static void continues_as_in_place(void **state) {
    const tiny *t = *state;
    char a[TINY_PATH], b[TINY_PATH];
    tiny_train_to(CLEAT_ERR_INTERRUPTED, t, "place", NULL, false, 1);
    shell("cp -r '%s' '%s'", tiny_path(t, "place", a), tiny_path(t, "source", b));
    shell("printf '{\"kind\":\"train\",\"epoch\":0,\"step\":99,\"loss\":1}\\n' >>'%s/metrics.jsonl'%s", b, "");
    shell("chmod -R a-w '%s'%s", b, "");
    char *before = describe(t, "source");
    tiny_train_to(CLEAT_OK, t, "place", NULL, true, 0);
    tiny_result result = train_from(t, "source", "copy", false);
    if (result.status) fail_msg("%s", result.error.text);
    char *after = describe(t, "source");
    assert_string_equal(before, after);
    tiny_assert_same_run(t, "place", "copy");
    cleat_free(before);
    cleat_free(after);
    shell("chmod -R u+w '%s'%s", b, "");
}

/* From the folder of a checkpoint before the last, and from a copy under another name. */
static void continues_from_a_checkpoint_folder(void **state) {
    const tiny *t = *state;
    char path[TINY_PATH], target[TINY_PATH], whole[TINY_PATH];
    cleat_checkpoint_name *names;
    size_t count;
    tiny_train_to(CLEAT_OK, t, "whole", NULL, false, 0);
    assert_int_equal(cleat_checkpoint_list(tiny_path(t, "whole", whole), &names, &count, NULL), CLEAT_OK);
    assert_int_equal(count, 2);
    snprintf(path, sizeof path, "whole/%s/", names[1].text);
    tiny_result result = train_from(t, path, "from_first", false);
    if (result.status) fail_msg("%s", result.error.text);
    tiny_assert_same_run(t, "whole", "from_first");
    snprintf(path, sizeof path, "%.400s/%s", whole, names[1].text);
    shell("cp -r '%s' '%s'", path, tiny_path(t, "renamed", target));
    result = train_from(t, "renamed", "from_renamed", false);
    if (result.status) fail_msg("%s", result.error.text);
    assert_int_equal(result.report.epochs, 2);
    cleat_free(names);
}

/* From a finished run: the last and best checkpoints are copied, and nothing is trained. */
static void copies_the_best_checkpoint(void **state) {
    const tiny *t = *state;
    char path[TINY_PATH];
    cleat_checkpoint_name *names, last, best;
    size_t count;
    tiny_train_to(CLEAT_OK, t, "ended", NULL, false, 0);
    assert_int_equal(cleat_checkpoint_list(tiny_path(t, "ended", path), &names, &count, NULL), CLEAT_OK);
    last = names[0];
    assert_true(cleat_checkpoint_pointer(path, "best", &best));
    cleat_free(names);
    tiny_result result = train_from(t, "ended/last", "ended_copy", false);
    if (result.status) fail_msg("%s", result.error.text);
    assert_pointer(t, "ended_copy", "last", last.text);
    assert_pointer(t, "ended_copy", "best", best.text);
    tiny_assert_same_run(t, "ended", "ended_copy");
}

/* If --resume cannot create the lock, here because a folder has its name, the message names the option that works. */
static void a_read_only_folder_has_another_option(void **state) {
    const tiny *t = *state;
    char path[TINY_PATH];
    tiny_train_to(CLEAT_ERR_INTERRUPTED, t, "locked", NULL, false, 1);
    shell("rm '%s/.train.lock' && mkdir '%s/.train.lock'", tiny_path(t, "locked", path), path);
    assert_contains(tiny_train(t, "locked", NULL, true, 0), CLEAT_ERR_IO, "--resume-from");
}

#define CONSTANT "train.schedule=constant"

/* A finished run continues for more epochs if its learning rates do not depend on their number. It has the
 * bits of a run that was that long from the start, even if interrupted immediately, and with the longer run's
 * resolved.ini. */
static void a_run_is_made_longer(void **state) {
    const tiny *t = *state;
    char a[TINY_PATH], b[TINY_PATH];
    tiny_train_to(CLEAT_OK, t, "long", SET(CONSTANT, "train.epochs=3"), false, 0);
    tiny_train_to(CLEAT_OK, t, "longer", SET(CONSTANT, "train.epochs=2"), false, 0);
    shell("cp -r '%s' '%s'", tiny_path(t, "longer", a), tiny_path(t, "shorter", b));
    shell("cp '%s/resolved.ini' '%s/resolved.ini'", tiny_path(t, "long", a), tiny_path(t, "longer", b));
    tiny_train_to(CLEAT_ERR_INTERRUPTED, t, "longer", SET(CONSTANT, "train.epochs=3"), true, 1);
    tiny_result result = tiny_train_to(CLEAT_OK, t, "longer", SET(CONSTANT, "train.epochs=3"), true, 0);
    assert_int_equal(result.report.epochs, 3);
    tiny_assert_same_run(t, "long", "longer");
    /* but not with other changes, nor to fewer epochs than trained */
    const char *const other[] = {CONSTANT, "train.epochs=3", "train.weight_decay=0.5", NULL};
    assert_contains(tiny_train(t, "shorter", other, true, 0), CLEAT_ERR_PROFILE, "different settings");
    const char *const less[] = {CONSTANT, "train.epochs=1", NULL};
    assert_contains(tiny_train(t, "shorter", less, true, 0), CLEAT_ERR_PROFILE, "has trained 2 epochs");
}

/* A cosine over more epochs would have had other rates: only a separate run can continue with it. */
static void another_schedule_is_another_run(void **state) {
    const tiny *t = *state;
    const char *const longer[] = {"train.epochs=3", NULL};
    tiny_train_to(CLEAT_OK, t, "cosine", NULL, false, 0);
    tiny_result result = tiny_train(t, "cosine", longer, true, 0);
    assert_contains(result, CLEAT_ERR_PROFILE, "train.epochs = 3 (was 2)");
    assert_contains(result, CLEAT_ERR_PROFILE, "--resume-from");
    /* the first step with a different rate: after the two warm-up steps, and higher because the cosine is longer */
    double had = 0, other_rate = 0;
    int step = 0;
    const char *place = strstr(result.error.text, "): step ");
    assert_int_equal(sscanf(place ? place : "", "): step %d had %lf and would have had %lf", &step, &had, &other_rate),
                     3);
    assert_true(step > 2 && step <= 4 && had > 0 && other_rate > had && other_rate < 1e-2);
    result = train_with(t, "cosine", "warm", false, longer);
    if (result.status) fail_msg("%s", result.error.text);
    assert_int_equal(result.report.epochs, 3);
    const char *const rate[] = {"train.learning_rate=5e-3", CONSTANT, "train.epochs=3", NULL};
    assert_contains(tiny_train(t, "cosine", rate, true, 0), CLEAT_ERR_PROFILE, "different settings");
    result = train_with(t, "cosine", "rate", false, rate);
    if (result.status) fail_msg("%s", result.error.text);
    const char *const other[] = {"train.epochs=3", "model.dropout=0.3", NULL};
    assert_contains(train_with(t, "cosine", "other", false, other), CLEAT_ERR_PROFILE, "model.dropout = 0.3");
}

/* The logs and the lock are truncated and appended to in place, but never through a symbolic or hard link. */
static void logs_that_are_links_are_refused(void **state) {
    if (!CLEAT_FORKS) skip(); /* wine takes a link for the file that it names */
    const tiny *t = *state;
    static const char *const files[] = {"metrics.jsonl", "system.jsonl", ".train.lock"};
    char path[TINY_PATH], outside[TINY_PATH];
    tiny_train_to(CLEAT_ERR_INTERRUPTED, t, "logs", NULL, false, 1);
    for (size_t i = 0; i < sizeof files / sizeof *files; ++i) {
        for (int hard = 0; hard < 2; ++hard) {
            shell("rm -rf '%s'; seq 100 >'%s'", tiny_path(t, "logs_linked", path), tiny_path(t, "outside", outside));
            shell("cp -r '%s' '%s'", tiny_path(t, "logs", outside), path);
            shell(hard ? "cd '%s' && ln -f ../outside %s" : "cd '%s' && ln -sf ../outside %s", path, files[i]);
            assert_contains(tiny_train(t, "logs_linked", NULL, true, 0), CLEAT_ERR_ARGUMENT,
                            hard ? "a hard link" : "is a symbolic link");
            shell("seq 100 | cmp - '%s'%s", tiny_path(t, "outside", outside), "");
        }
    }
    shell("cd '%s' && rm .train.lock && ln -s ../made .train.lock%s", path, "");
    assert_contains(tiny_train(t, "logs_linked", NULL, true, 0), CLEAT_ERR_ARGUMENT, "is a symbolic link");
    assert_false(cleat_file_exists(tiny_path(t, "made", outside)));
}

/* The copies are removed after an error, so the next try with the right settings does not fail with "already
 * contains a run". */
static void a_refused_copy_leaves_nothing(void **state) {
    const tiny *t = *state;
    char path[TINY_PATH];
    const char *const other[] = {"model.dropout=0.3", NULL};
    tiny_train_to(CLEAT_OK, t, "given", NULL, false, 0);
    assert_contains(train_with(t, "given", "refused/run", false, other), CLEAT_ERR_PROFILE, "different settings");
    assert_false(cleat_folder_exists(tiny_path(t, "refused", path)));
    assert_int_equal(mkdir(tiny_path(t, "mine", path), 0755), 0);
    shell("touch '%s/notes.txt'%s", path, "");
    assert_contains(train_with(t, "given", "mine", false, other), CLEAT_ERR_PROFILE, "different settings");
    cleat_name_list files = {0};
    assert_int_equal(cleat_listing_read(path, NULL, &files, NULL), CLEAT_OK);
    assert_int_equal(files.count, 1);
    assert_string_equal(files.names[0], "notes.txt");
    cleat_name_list_free(&files);
    tiny_result result = train_from(t, "given", "mine", false);
    if (result.status) fail_msg("%s", result.error.text);
}

/* Files that state.json does not list are not copied, and nothing is copied through a link. */
static void only_its_own_files_are_copied(void **state) {
    if (!CLEAT_FORKS) skip(); /* wine takes a link for the file that it names */
    const tiny *t = *state;
    static const char *const linked[] = {"ckpt-E000-S000001/model.safetensors",
                                         "ckpt-E000-S000001/state.json",
                                         "ckpt-E000-S000001",
                                         "resolved.ini",
                                         "metrics.jsonl",
                                         "system.jsonl"};
    char path[TINY_PATH], moved[TINY_PATH];
    tiny_train_to(CLEAT_ERR_INTERRUPTED, t, "own", NULL, false, 1);
    shell("cd '%s'/ckpt-* && echo mine >notes.txt && ln -s ../metrics.jsonl vocab.txt%s", tiny_path(t, "own", path),
          "");
    tiny_result result = train_from(t, "own", "own_copy", false);
    if (result.status) fail_msg("%s", result.error.text);
    shell("cd '%s' && ! ls ckpt-E000-S000001 | grep -q '%s'", tiny_path(t, "own_copy", path), "notes\\|vocab");
    for (size_t i = 0; i < sizeof linked / sizeof *linked; ++i) {
        shell("rm -rf '%s'*%s", tiny_path(t, "linked", path), "");
        shell("cp -r '%s' '%s'", tiny_path(t, "own", moved), path);
        shell("cd '%s' && mv %s ../linked_moved", path, linked[i]);
        shell("cd '%s' && ln -s \"$PWD/../linked_moved\" %s", path, linked[i]);
        assert_contains(train_from(t, "linked", "linked_copy", false), CLEAT_ERR_ARGUMENT, "is a symbolic link");
        assert_false(cleat_folder_exists(tiny_path(t, "linked_copy", path)));
    }
}

/* --resume without a checkpoint starts a run, unless the folder is evidently wrong. */
static void nothing_to_resume_is_a_new_run(void **state) {
    const tiny *t = *state;
    char path[TINY_PATH];
    assert_int_equal(mkdir(tiny_path(t, "runs", path), 0755), 0);
    tiny_train_to(CLEAT_ERR_INTERRUPTED, t, "runs/new", NULL, true, 1);
    assert_true(cleat_checkpoint_exists(tiny_path(t, "runs/new", path)));
    assert_contains(tiny_train(t, "runs", NULL, true, 1), CLEAT_ERR_ARGUMENT, "give one of its runs: new");
    assert_contains(tiny_train(t, "runs/new/ckpt-E000-S000001", NULL, true, 1), CLEAT_ERR_ARGUMENT, "is a checkpoint");
}

static void wrong_requests_are_refused(void **state) {
    const tiny *t = *state;
    char path[TINY_PATH];
    tiny_train_to(CLEAT_ERR_INTERRUPTED, t, "first", NULL, false, 1);
    assert_contains(train_from(t, "first", "second", true), CLEAT_ERR_ARGUMENT, "only one of them");
    assert_contains(train_from(t, "none", "second", false), CLEAT_ERR_NOT_FOUND, "no such checkpoint or run folder");
    assert_int_equal(mkdir(tiny_path(t, "empty", path), 0755), 0);
    assert_contains(train_from(t, "empty", "second", false), CLEAT_ERR_NOT_FOUND, "contains no checkpoint");
    assert_contains(train_from(t, "first", "first", false), CLEAT_ERR_ARGUMENT, "already contains a run");
    shell("truncate -s 100 '%s'%s", tiny_last_file(t, "first", "optim.safetensors", path), "");
    assert_contains(train_from(t, "first", "second", false), CLEAT_ERR_FORMAT, "no intact checkpoint");
    assert_false(cleat_checkpoint_exists(tiny_path(t, "second", path)));
}

int main(void) {
    tiny_require_device();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(continues_as_in_place),           cmocka_unit_test(continues_from_a_checkpoint_folder),
        cmocka_unit_test(copies_the_best_checkpoint),      cmocka_unit_test(a_read_only_folder_has_another_option),
        cmocka_unit_test(wrong_requests_are_refused),      cmocka_unit_test(a_run_is_made_longer),
        cmocka_unit_test(another_schedule_is_another_run), cmocka_unit_test(nothing_to_resume_is_a_new_run),
        cmocka_unit_test(a_refused_copy_leaves_nothing),   cmocka_unit_test(only_its_own_files_are_copied),
        cmocka_unit_test(logs_that_are_links_are_refused),
    };
    return cmocka_run_group_tests(tests, tiny_setup, tiny_teardown);
}
