/* The order of a save's system calls, which kills cannot test, because only a power failure loses unsynced
 * data. Every file is written under a temporary name, synced and renamed, and its folder is synced; the
 * checkpoint is read back before it gets its name; `best` is replaced before `last`; older checkpoints are
 * removed at the end.
 *
 * The library's calls go through the functions below, which record them and can damage written data. */
/* ctest: quick */
#include "checkpoint/checkpoint.h"
#include "checkpoint/write.h"
#include "core/files.h"
#include "data/dataset.h"
#include "platform/files.h"
#include "platform/processes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* --- the record ----------------------------------------------------------------------------------------------- */

static char root[64], run[96];
static char calls[1 << 16];
static bool records;
static const char *damaged; /* changes the first byte written to a file with this in its path; NULL: none */

/* The path within the run, without random parts of temporary names. */
static void shorten(const char *path, char text[512]) {
    const size_t length = strlen(run);
    if (strncmp(path, run, length) == 0) path += length;
    snprintf(text, 512, "%s", *path == '/' ? path + 1 : *path ? path : ".");
    for (char *at = text; (at = strstr(at, ".tmp-")); at += 5)
        if (strspn(at + 5, "0123456789abcdef") == 16) memmove(at + 5, at + 21, strlen(at + 21) + 1);
}

static void record(const char *what, const char *from, const char *to) {
    char a[512], b[512] = "";
    const size_t used = strlen(calls);
    if (!records) return;
    shorten(from, a);
    if (to) shorten(to, b);
    char line[1200];
    snprintf(line, sizeof line, "%s %s%s%s\n", what, a, to ? " " : "", b);
    const size_t size = strlen(line);
    const char *last = used >= size ? calls + used - size : ""; /* parts of a file count as one write or read */
    if (strcmp(last, line) != 0 && used + size < sizeof calls) memcpy(calls + used, line, size + 1);
}

static void path_of(int file, char path[512]) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    const ssize_t size = readlink(link, path, 511);
    path[size > 0 ? size : 0] = 0;
}

int rename(const char *from, const char *to) {
    record("rename", from, to);
    return (int)syscall(SYS_rename, from, to);
}

int fsync(int file) {
    char path[512];
    path_of(file, path);
    record("sync", path, NULL);
    return 0;
}

int unlink(const char *path) {
    record("remove", path, NULL);
    return (int)syscall(SYS_unlink, path);
}

ssize_t write(int file, const void *data, size_t size) {
    char path[512];
    if (!records) return syscall(SYS_write, file, data, size);
    path_of(file, path);
    record("write", path, NULL);
    if (!damaged || !size || !strstr(path, damaged)) return syscall(SYS_write, file, data, size);
    const char other = (char)(*(const char *)data ^ 1);
    damaged = NULL;
    if (syscall(SYS_write, file, &other, 1) != 1) return -1;
    return 1; /* the rest comes in a second call */
}

ssize_t read(int file, void *data, size_t size) {
    char path[512];
    if (records) {
        path_of(file, path);
        record("read", path, NULL);
    }
    return syscall(SYS_read, file, data, size);
}

/* --- a save --------------------------------------------------------------------------------------------------- */

static int make_run(void **state) {
    (void)state;
    strcpy(root, "/tmp/cleat-order-XXXXXX");
    if (!mkdtemp(root)) return -1;
    snprintf(run, sizeof run, "%s/run", root);
    calls[0] = 0;
    damaged = NULL;
    records = false;
    return 0;
}

static int remove_run(void **state) {
    (void)state;
    char command[128];
    records = false;
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    return system(command);
}

static cleat_status save_fitted(const cleat_dataset *dataset, const char *folder, cleat_error *error) {
    char path[CLEAT_CHECKPOINT_PATH];
    (void)dataset;
    snprintf(path, sizeof path, "%s/vocab.txt", folder);
    return cleat_file_write(path, "one\n", 4, error);
}

static cleat_status cannot_read(const cleat_dataset *dataset, const char *folder, cleat_error *error) {
    (void)dataset;
    return cleat_fail(error, CLEAT_ERR_FORMAT, "%s/vocab.txt:1: no token", folder);
}

static const cleat_dataset_class readable = {.name = "readable", .save = save_fitted},
                                 unreadable = {.name = "unreadable", .save = save_fitted, .check_saved = cannot_read};

static cleat_status save(int64_t step, const cleat_dataset_class *type, cleat_error *error) {
    const cleat_dataset dataset = {.type = type};
    float weight[3] = {(float)step, 2, 3};
    const cleat_st_tensor model = {.name = "weight", .rank = 1, .dtype = CLEAT_ST_F32, .shape = {3}, .data = weight},
                          optim = {
                              .name = "weight.moment1", .rank = 1, .dtype = CLEAT_ST_F32, .shape = {3}, .data = weight};
    const cleat_train_state state = {.epoch = 1, .step = step};
    const cleat_checkpoint_content content = {&state, &model, 1, &optim, 1, NULL, 0, &dataset, "[train]\nepochs = 3\n",
                                              NULL,   NULL};
    records = true;
    const cleat_status status = cleat_checkpoint_write(run, &content, true, 1, NULL, error);
    records = false;
    return status;
}

/* Finds the line in the record after `after`, and returns the position behind it. */
static const char *find(const char *after, const char *line) {
    char whole[700];
    snprintf(whole, sizeof whole, "%s\n", line);
    const char *at = strstr(after, whole);
    if (!at) fail_msg("there is no '%s' after\n%.*s; all calls:\n%s", line, (int)(after - calls), calls, calls);
    return at + strlen(whole);
}

static void absent(const char *from, const char *to, const char *line) {
    char whole[700];
    snprintf(whole, sizeof whole, "%s\n", line);
    const char *at = strstr(from, whole);
    if (at && at < to) fail_msg("'%s' comes too early:\n%s", line, calls);
}

/* Checks that a file is written under a temporary name, synced, renamed, and its folder synced, without
 * writes after its sync. Returns the position behind. */
static const char *expect_durable(const char *after, const char *folder, const char *name) {
    char line[600];
    const char *slash = *folder ? "/" : "", *shown = *folder ? folder : ".";
    snprintf(line, sizeof line, "write %s%s%s.tmp-", folder, slash, name);
    const char *at = find(after, line);
    snprintf(line, sizeof line, "sync %s%s%s.tmp-", folder, slash, name);
    at = find(at, line);
    snprintf(line, sizeof line, "rename %s%s%s.tmp- %s%s%s", folder, slash, name, folder, slash, name);
    const char *renamed = find(at, line);
    snprintf(line, sizeof line, "write %s%s%s.tmp-", folder, slash, name);
    absent(at, renamed, line);
    snprintf(line, sizeof line, "sync %s", shown);
    return find(renamed, line);
}

/* --- tests ---------------------------------------------------------------------------------------------------- */

#define FOLDER CLEAT_CHECKPOINT_TEMPORARY

static void a_save_is_durable_in_order(void **test) {
    (void)test;
    static const char *const files[] = {"model.safetensors", "optim.safetensors", "profile.ini", "vocab.txt",
                                        "state.json"};
    cleat_error error = {0};
    char line[600];
    if (save(10, &readable, &error)) fail_msg("%s", error.text);
    calls[0] = 0;
    if (save(20, &readable, &error)) fail_msg("%s", error.text);
    const char *at = calls;
    for (size_t i = 0; i < sizeof files / sizeof *files; ++i) at = expect_durable(at, FOLDER, files[i]);
    const char *published = find(at, "rename " FOLDER " ckpt-E001-S000020");
    for (size_t i = 0; i < sizeof files / sizeof *files; ++i) {
        snprintf(line, sizeof line, "read " FOLDER "/%s", files[i]);
        if (find(at, line) > published) fail_msg("%s is not read before the checkpoint has its name", files[i]);
    }
    const char *synced = find(published, "sync .");
    absent(calls, synced, "write best.tmp-");
    const char *best = expect_durable(synced, "", "best");
    absent(calls, best, "write last.tmp-");
    const char *last = expect_durable(best, "", "last");
    absent(calls, last, "rename ckpt-E001-S000010 .tmp-old-ckpt-E001-S000010");
    find(last, "rename ckpt-E001-S000010 .tmp-old-ckpt-E001-S000010");
}

/* Nothing is written in place: neither a reader nor a kill ever finds half a file under its final name. */
static void nothing_is_written_in_place(void **test) {
    (void)test;
    cleat_error error = {0};
    if (save(10, &readable, &error) || save(20, &readable, &error)) fail_msg("%s", error.text);
    for (const char *at = calls; (at = strstr(at, "write ")); ++at) {
        const char *end = strchr(at, '\n');
        if (strncmp(end - 5, ".tmp-", 5) != 0) fail_msg("written in place: %.*s", (int)(end - at), at);
    }
}

static void last_is(const char *wanted) {
    cleat_checkpoint *checkpoint = NULL;
    cleat_error error = {0};
    if (cleat_checkpoint_open_last(run, &checkpoint, &error)) fail_msg("%s", error.text);
    assert_string_equal(strrchr(checkpoint->folder, '/') + 1, wanted);
    cleat_checkpoint_close(checkpoint);
}

/* The disk changes a byte in each file whose hash is known before it is written. */
static void a_damaged_write_does_not_count(void **test) {
    (void)test;
    static const char *const files[] = {"model.safetensors", "optim.safetensors", "profile.ini", "state.json"};
    cleat_error error = {0};
    if (save(10, &readable, &error)) fail_msg("%s", error.text);
    for (size_t i = 0; i < sizeof files / sizeof *files; ++i) {
        damaged = files[i];
        assert_int_not_equal(save(20, &readable, &error), CLEAT_OK);
        assert_null(damaged);
        if (!strstr(error.text, "cannot be read back") || !strstr(error.text, files[i]))
            fail_msg("%s: %s", files[i], error.text);
        last_is("ckpt-E001-S000010");
    }
    if (save(20, &readable, &error)) fail_msg("%s", error.text);
    last_is("ckpt-E001-S000020");
}

/* A fitted preprocessor that its reader refuses: the save fails at once, not when the checkpoint is needed. */
static void fitted_files_are_read_back(void **test) {
    (void)test;
    cleat_error error = {0};
    if (save(10, &readable, &error)) fail_msg("%s", error.text);
    assert_int_equal(save(20, &unreadable, &error), CLEAT_ERR_FORMAT);
    assert_non_null(strstr(error.text, "cannot be read back"));
    assert_non_null(strstr(error.text, "vocab.txt:1: no token"));
    last_is("ckpt-E001-S000010");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_save_is_durable_in_order, make_run, remove_run),
        cmocka_unit_test_setup_teardown(nothing_is_written_in_place, make_run, remove_run),
        cmocka_unit_test_setup_teardown(a_damaged_write_does_not_count, make_run, remove_run),
        cmocka_unit_test_setup_teardown(fitted_files_are_read_back, make_run, remove_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
