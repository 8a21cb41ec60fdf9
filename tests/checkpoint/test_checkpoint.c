/* Checkpoints: saved state is restored, damage is detected, and a process killed at any moment leaves a
 * usable run.
 *
 * The library's file-system calls go through faults/faults.c, which counts them and makes the n-th fail or
 * kill the process. */
/* ctest: quick with=checkpoint/faults/faults.c wrap=rename,fsync,mkdir,unlink,unlinkat,write */
#include "checkpoint/checkpoint.h"
#include "checkpoint/write.h"
#include "core/files.h"
#include "core/memory.h"
#include "data/dataset.h"
#include "faults/faults.h"
#include "platform/files.h"
#include "platform/processes.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* --- a run ---------------------------------------------------------------------------------------------------- */

enum { WEIGHTS = 12, BIASES = 3 };

static char root[64], run[96];
static char warnings[8192];

static void collect(void *user, cleat_log_level level, const char *text) {
    (void)user;
    if (level <= CLEAT_LOG_WARNING) strncat(warnings, text, sizeof warnings - strlen(warnings) - 1);
}

static int make_run(void **state) {
    (void)state;
    strcpy(root, "/tmp/cleat-ckpt-XXXXXX");
    if (!mkdtemp(root)) return -1;
    snprintf(run, sizeof run, "%s/runs/a", root);
    warnings[0] = 0;
    cleat_set_log(collect, NULL, CLEAT_LOG_WARNING);
    return 0;
}

static int remove_run(void **state) {
    (void)state;
    char command[128];
    cleat_set_log(NULL, NULL, CLEAT_LOG_ERROR);
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    return system(command);
}

static const cleat_st_metadata settings[] = {{"model.d_model", "64"}, {"model.heads", "4"}};
static const cleat_model_setting same[] = {{"model.d_model", "64", NULL}, {"model.heads", "4", NULL}};

/* Arrays whose values encode their step. */
typedef struct content_arrays {
    float weight[WEIGHTS], bias[BIASES], moment[WEIGHTS];
    cleat_st_tensor model[2], optim[1];
} content_arrays;

static void fill(content_arrays *arrays, int64_t step) {
    for (int i = 0; i < WEIGHTS; ++i) {
        arrays->weight[i] = (float)step + 0.1f * (float)i;
        arrays->moment[i] = -arrays->weight[i];
    }
    for (int i = 0; i < BIASES; ++i) arrays->bias[i] = (float)(step * i);
    arrays->model[0] =
        (cleat_st_tensor){.name = "weight", .dtype = CLEAT_ST_F32, .rank = 2, .shape = {4, 3}, .data = arrays->weight};
    arrays->model[1] =
        (cleat_st_tensor){.name = "bias", .dtype = CLEAT_ST_F32, .rank = 1, .shape = {3}, .data = arrays->bias};
    arrays->optim[0] = (cleat_st_tensor){
        .name = "weight.moment1", .dtype = CLEAT_ST_F32, .rank = 2, .shape = {4, 3}, .data = arrays->moment};
}

/* Writes a preprocessor with two files. */
static cleat_status save_fitted(const cleat_dataset *dataset, const char *folder, cleat_error *error) {
    static const char *const files[] = {"vocab.txt", "labels.txt"};
    cleat_status status = CLEAT_OK;
    (void)dataset;
    for (size_t i = 0; i < 2 && !status; ++i) {
        char path[CLEAT_CHECKPOINT_PATH];
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        status = cleat_file_write(path, "one\ntwo\n", i ? 8 : 4, error);
    }
    return status;
}

static const cleat_dataset_class teaching = {.name = "teaching", .save = save_fitted};
static const cleat_dataset dataset = {.type = &teaching};

static cleat_status save(int64_t step, bool best, int64_t keep, cleat_error *error) {
    content_arrays arrays;
    cleat_train_state state = {.epoch = step / 10, .step = step, .seed = 7};
    fill(&arrays, step);
    const cleat_checkpoint_content content = {
        &state, arrays.model, 2, arrays.optim, 1, settings, 2, &dataset, "[train]\nepochs = 3\n", NULL, NULL};
    return cleat_checkpoint_write(run, &content, best, keep, NULL, error);
}

static void must_save(int64_t step, bool best, int64_t keep) {
    cleat_error error = {0};
    if (save(step, best, keep, &error) != CLEAT_OK) fail_msg("%s", error.text);
}

/* Asserts that a checkpoint is complete: its arrays match its step. */
static void expect_whole(const cleat_checkpoint *checkpoint) {
    content_arrays want, got;
    cleat_error error = {0};
    fill(&want, checkpoint->state.step);
    fill(&got, 0);
    if (cleat_safetensors_copy(checkpoint->model, got.model, 2, &error) != CLEAT_OK) fail_msg("%s", error.text);
    assert_memory_equal(got.weight, want.weight, sizeof want.weight);
    assert_memory_equal(got.bias, want.bias, sizeof want.bias);
    if (!checkpoint->optim) return; /* opened for evaluation */
    if (cleat_safetensors_copy(checkpoint->optim, got.optim, 1, &error) != CLEAT_OK) fail_msg("%s", error.text);
    assert_memory_equal(got.moment, want.moment, sizeof want.moment);
}

/* Returns the step of the checkpoint that a resume opens; -1 if none exists. */
static int64_t last_step(void) {
    cleat_checkpoint *checkpoint = NULL;
    cleat_error error = {0};
    cleat_status status = cleat_checkpoint_open_last(run, &checkpoint, &error);
    if (status == CLEAT_ERR_NOT_FOUND) return -1;
    if (status) fail_msg("%s", error.text);
    int64_t step = checkpoint->state.step;
    assert_non_null(checkpoint->optim);
    expect_whole(checkpoint);
    cleat_checkpoint_close(checkpoint);
    return step;
}

static int64_t best_step(void) {
    cleat_checkpoint *checkpoint = NULL;
    cleat_error error = {0};
    if (cleat_checkpoint_open_best(run, &checkpoint, &error) != CLEAT_OK) fail_msg("%s", error.text);
    int64_t step = checkpoint->state.step;
    assert_null(checkpoint->optim);
    expect_whole(checkpoint);
    cleat_checkpoint_close(checkpoint);
    return step;
}

static void expect_folders(const char *const *texts, size_t count) {
    cleat_checkpoint_name *names;
    size_t found;
    assert_int_equal(cleat_checkpoint_list(run, &names, &found, NULL), CLEAT_OK);
    assert_int_equal(found, count);
    for (size_t i = 0; i < count; ++i) assert_string_equal(names[i].text, texts[i]);
    cleat_free(names);
}

static void file_path(const char *folder, const char *name, char path[256]) {
    snprintf(path, 256, "%s/%s/%s", run, folder, name);
}

static void overwrite(const char *path, const char *data, size_t size) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    fclose(file);
}

static bool has_leftovers(void) {
    char command[160];
    snprintf(command, sizeof command, "ls -A '%s' 2>/dev/null | grep -q tmp-", run);
    return system(command) == 0;
}

/* --- saving and opening --------------------------------------------------------------------------------------- */

static void every_bit_of_the_state_comes_back(void **test) {
    (void)test;
    content_arrays arrays;
    cleat_checkpoint *checkpoint = NULL;
    cleat_error error = {0};
    char folder[CLEAT_CHECKPOINT_PATH];
    cleat_train_state state = {.epoch = 5,
                               .step = 123,
                               .position = 17,
                               .seed = UINT64_MAX,
                               .has_best = true,
                               .best_metric = 0.1 + 0.2,
                               .best_step = 99,
                               .stale_evaluations = 3,
                               .time_used = 12345.678901234567,
                               .next_seconds = 0.1,
                               .epochs = 21,
                               .metrics_records = 42,
                               .n_buckets = 2,
                               .micro_batch_sizes = {8, 3},
                               .skipped_steps = 5}; /* in f16, before a resume in another precision */
    snprintf(state.profile_hash, sizeof state.profile_hash, "0123456789abcdef0123456789abcdef");
    fill(&arrays, 123);
    const cleat_checkpoint_content content = {&state, arrays.model, 2,    arrays.optim, 1,   settings,
                                              2,      NULL,         NULL, NULL,         NULL};
    if (cleat_checkpoint_write(run, &content, true, 3, folder, &error) != CLEAT_OK) fail_msg("%s", error.text);
    assert_non_null(strstr(folder, "/runs/a/ckpt-E005-S000123"));
    if (cleat_checkpoint_open(folder, &checkpoint, &error) != CLEAT_OK) fail_msg("%s", error.text);
    expect_whole(checkpoint);
    const cleat_train_state *back = &checkpoint->state;
    assert_memory_equal(&back->epoch, &state.epoch, 4 * sizeof(int64_t)); /* up to and including seed */
    assert_true(back->has_best);
    assert_memory_equal(&back->best_metric, &state.best_metric, sizeof(double));
    assert_int_equal(back->best_step, 99);
    assert_int_equal(back->stale_evaluations, 3);
    assert_memory_equal(&back->time_used, &state.time_used, sizeof(double));
    assert_memory_equal(&back->next_seconds, &state.next_seconds, sizeof(double));
    assert_int_equal(back->epochs, 21);
    assert_int_equal(back->metrics_records, 42);
    assert_string_equal(back->profile_hash, state.profile_hash);
    assert_int_equal(back->skipped_steps, 5);
    assert_int_equal(back->n_buckets, 2);
    assert_int_equal(back->micro_batch_sizes[0], 8);
    assert_int_equal(back->micro_batch_sizes[1], 3);
    cleat_checkpoint_close(checkpoint);
}

static void the_newest_and_the_best_stay(void **test) {
    (void)test;
    assert_false(cleat_checkpoint_exists(run));
    assert_int_equal(last_step(), -1);
    for (int64_t step = 10; step <= 60; step += 10) must_save(step, step == 20, 2);
    static const char *const names[] = {"ckpt-E006-S000060", "ckpt-E005-S000050", "ckpt-E002-S000020"};
    expect_folders(names, 3);
    assert_int_equal(last_step(), 60);
    assert_int_equal(best_step(), 20);
    assert_true(cleat_checkpoint_exists(run));
    assert_string_equal(warnings, "");
}

static void paths_of_many_kinds_open(void **test) {
    (void)test;
    static const char *const paths[] = {"", "/best", "/last", "/ckpt-E001-S000010", "/ckpt-E002-S000020/"};
    static const int64_t steps[] = {10, 10, 20, 10, 20};
    must_save(10, true, 3);
    must_save(20, false, 3);
    for (size_t i = 0; i < 5; ++i) {
        char path[160];
        cleat_checkpoint *checkpoint = NULL;
        cleat_error error = {0};
        snprintf(path, sizeof path, "%s%s", run, paths[i]);
        if (cleat_checkpoint_open_best(path, &checkpoint, &error) != CLEAT_OK) fail_msg("%s", error.text);
        assert_int_equal(checkpoint->state.step, steps[i]);
        cleat_checkpoint_close(checkpoint);
    }
    cleat_checkpoint *none = NULL;
    assert_int_equal(cleat_checkpoint_open_best("/nonexistent/run", &none, NULL), CLEAT_ERR_NOT_FOUND);
    assert_int_equal(cleat_checkpoint_open_best(root, &none, NULL), CLEAT_ERR_NOT_FOUND);
}

static void a_step_saved_again_replaces_itself(void **test) {
    (void)test;
    must_save(10, false, 3);
    must_save(20, true, 3);
    must_save(20, false, 3);
    static const char *const both[] = {"ckpt-E002-S000020.1", "ckpt-E002-S000020", "ckpt-E001-S000010"};
    expect_folders(both, 3); /* the first one is the best */
    must_save(20, true, 3);
    static const char *const one[] = {"ckpt-E002-S000020.2", "ckpt-E001-S000010"};
    expect_folders(one, 2);
    assert_int_equal(last_step(), 20);
    /* a run resumed from an earlier step leaves later steps behind; the best remains */
    must_save(15, false, 3);
    static const char *const after[] = {"ckpt-E002-S000020.2", "ckpt-E001-S000015", "ckpt-E001-S000010"};
    expect_folders(after, 3);
    assert_int_equal(last_step(), 15);
    assert_int_equal(best_step(), 20);
}

static void names_are_parsed_strictly(void **test) {
    (void)test;
    cleat_checkpoint_name name;
    assert_true(cleat_checkpoint_name_parse("ckpt-E005-S000123", &name));
    assert_int_equal(name.step, 123);
    assert_true(cleat_checkpoint_name_parse("ckpt-E12345-S123456789.7", &name));
    assert_int_equal(name.copy, 7);
    static const char *const bad[] = {"",
                                      "ckpt",
                                      "ckpt-E5-S123",
                                      "ckpt-E005-S000123x",
                                      "ckpt-E005-S000123.0",
                                      "ckpt-E005-S000123/..",
                                      "ckpt-E-05-S000123",
                                      "../ckpt-E005-S000123",
                                      "ckpt-E005-S99999999999999999999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) assert_false(cleat_checkpoint_name_parse(bad[i], &name));
}

/* Of several copies of one step, the newest comes first. */
static void the_newest_is_listed_first(void **test) {
    (void)test;
    enum { COPIES = 12 };
    cleat_checkpoint_name *names = NULL, wanted;
    char path[256];
    size_t count = 0;
    for (int i = 0; i < COPIES; ++i) { /* 0 7 2 9 4 ... */
        cleat_checkpoint_name_make(2, 20, i * 7 % COPIES, &wanted);
        snprintf(path, sizeof path, "%s/%s", run, wanted.text);
        assert_int_equal(cleat_folder_make(path, NULL), CLEAT_OK);
    }
    assert_int_equal(cleat_checkpoint_list(run, &names, &count, NULL), CLEAT_OK);
    assert_int_equal(count, COPIES);
    for (int i = 0; i < COPIES; ++i) {
        assert_int_equal(names[i].copy, COPIES - 1 - i);
        snprintf(path, sizeof path, "%s/%s", run, names[i].text);
        rmdir(path);
    }
    cleat_free(names);
}

/* --- damage --------------------------------------------------------------------------------------------------- */

static cleat_status open_folder(const char *folder) {
    char path[256];
    cleat_checkpoint *checkpoint = NULL;
    cleat_error error = {0};
    snprintf(path, sizeof path, "%s/%s", run, folder);
    cleat_status status = cleat_checkpoint_open(path, &checkpoint, &error);
    if (status) {
        assert_null(checkpoint);
        assert_non_null(strstr(error.text, path));
    }
    cleat_checkpoint_close(checkpoint);
    return status;
}

static void every_flipped_bit_and_every_cut_is_noticed(void **test) {
    (void)test;
    static const char *const files[] = {"model.safetensors", "optim.safetensors", "state.json", "vocab.txt",
                                        "labels.txt"};
    must_save(10, false, 3);
    for (size_t i = 0; i < sizeof files / sizeof *files; ++i) {
        char path[256], *data;
        size_t size;
        file_path("ckpt-E001-S000010", files[i], path);
        assert_int_equal(cleat_file_read(path, &data, &size, NULL), CLEAT_OK);
        for (size_t at = 0; at < size; ++at) {
            data[at] ^= (char)(1 << (at % 8));
            overwrite(path, data, size);
            assert_int_equal(open_folder("ckpt-E001-S000010"), CLEAT_ERR_FORMAT);
            data[at] ^= (char)(1 << (at % 8));
            overwrite(path, data, at);
            assert_int_equal(open_folder("ckpt-E001-S000010"), CLEAT_ERR_FORMAT);
        }
        unlink(path);
        assert_int_equal(open_folder("ckpt-E001-S000010"), CLEAT_ERR_NOT_FOUND);
        overwrite(path, data, size);
        assert_int_equal(open_folder("ckpt-E001-S000010"), CLEAT_OK);
        cleat_free(data);
    }
}

/* Replaces the text from `from` up to `to`, exclusive, with `instead`. */
static void replace(char *text, const char *from, const char *to, const char *instead) {
    char *start = strstr(text, from), *end = start ? strstr(start, to) : NULL;
    if (!end) fail_msg("no '%s' and '%s' in %s", from, to, text);
    memmove(start + strlen(instead), end, strlen(end) + 1);
    memcpy(start, instead, strlen(instead));
}

/* Checks refusals of a changed state.json. */
static void correct_hash(char *text) {
    char hash[33], *start = text + strlen("{\"state\":"), *end = strstr(text, ",\"hash\":\"");
    cleat_hash_text(start, (size_t)(end - start), hash);
    memcpy(end + strlen(",\"hash\":\""), hash, 32);
}

static void read_state(char text[4096], char path[256]) {
    char *data;
    size_t size;
    file_path("ckpt-E001-S000010", "state.json", path);
    assert_int_equal(cleat_file_read(path, &data, &size, NULL), CLEAT_OK);
    assert_true(size < 2048);
    memcpy(text, data, size + 1);
    cleat_free(data);
}

/* A hostile checkpoint with correct hashes: it is refused unless its files are in its folder. */
static void no_file_outside_the_folder_is_named(void **test) {
    (void)test;
    static const char *const names[] = {"../model.safetensors", "/etc/passwd", "a/b"};
    char path[256], whole[4096], text[4096], instead[64];
    must_save(10, false, 3);
    read_state(whole, path);
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
        strcpy(text, whole);
        snprintf(instead, sizeof instead, "\"%s\"", names[i]);
        replace(text, "\"labels.txt\"", ": {", instead);
        correct_hash(text);
        overwrite(path, text, strlen(text));
        assert_int_equal(open_folder("ckpt-E001-S000010"), CLEAT_ERR_FORMAT);
    }
    overwrite(path, whole, strlen(whole));
    snprintf(path, sizeof path, "%s/last", run);
    overwrite(path, "../ckpt-E001-S000010\n", 21);
    assert_int_equal(last_step(), 10); /* found by name in the run's folder */
    assert_non_null(strstr(warnings, "no file 'last' that names a checkpoint"));
}

/* Older checkpoints had running sums, and no hash of the preprocessor. */
static void a_checkpoint_of_before_opens(void **test) {
    (void)test;
    char path[256], text[4096];
    must_save(10, false, 3);
    read_state(text, path);
    replace(text, ",\n    \"labels.txt\"", "}\n},\"hash\"", "");
    assert_null(strstr(text, "vocab.txt"));
    replace(text, "  \"files\"", ": {",
            "  \"sums\": {\n    \"loss\": {\"value\": 1, \"bits\": \"3ff0000000000000\"}},\n  \"files\"");
    correct_hash(text);
    overwrite(path, text, strlen(text));
    file_path("ckpt-E001-S000010", "vocab.txt", path);
    overwrite(path, "damaged", 7);
    assert_int_equal(open_folder("ckpt-E001-S000010"), CLEAT_OK);
    assert_int_equal(last_step(), 10);
}

/* A resume reads the optimizer's state, damaged or not; evaluations and exports do not. */
static void an_evaluation_needs_no_optimizer(void **test) {
    (void)test;
    char path[256];
    must_save(10, true, 3);
    file_path("ckpt-E001-S000010", "optim.safetensors", path);
    overwrite(path, "x", 1);
    assert_int_equal(best_step(), 10);
    unlink(path);
    assert_int_equal(best_step(), 10);
    assert_string_equal(warnings, "");
    assert_int_equal(open_folder("ckpt-E001-S000010"), CLEAT_ERR_NOT_FOUND);
}

static void a_resume_falls_back_to_what_is_intact(void **test) {
    (void)test;
    char path[256];
    for (int64_t step = 10; step <= 40; step += 10) must_save(step, step == 40, 4);
    file_path("ckpt-E004-S000040", "model.safetensors", path);
    overwrite(path, "x", 1);
    assert_int_equal(last_step(), 30);
    assert_non_null(strstr(warnings, "ckpt-E004-S000040/model.safetensors: damaged file"));
    assert_non_null(strstr(warnings, "ckpt-E003-S000030 instead"));
    assert_int_equal(best_step(), 30);
    file_path("ckpt-E003-S000030", "state.json", path);
    unlink(path);
    assert_int_equal(last_step(), 20);
    snprintf(path, sizeof path, "%s/last", run);
    overwrite(path, "nonsense\n", 9);
    assert_int_equal(last_step(), 20);
    unlink(path);
    assert_int_equal(last_step(), 20);
    file_path("ckpt-E002-S000020", "optim.safetensors", path);
    overwrite(path, "", 0);
    file_path("ckpt-E001-S000010", "optim.safetensors", path);
    overwrite(path, "", 0);
    cleat_checkpoint *checkpoint = NULL;
    cleat_error error = {0};
    assert_int_equal(cleat_checkpoint_open_last(run, &checkpoint, &error), CLEAT_ERR_FORMAT);
    assert_non_null(strstr(error.text, "no intact checkpoint"));
    assert_int_equal(cleat_checkpoint_open_last(run, &checkpoint, NULL), CLEAT_ERR_FORMAT);
    must_save(50, true, 4); /* and training can be resumed */
    assert_int_equal(last_step(), 50);
}

/* The next save would remove it; a resume and an evaluation report it instead. */
static void another_version_is_refused(void **test) {
    (void)test;
    char path[256], whole[4096], text[4096], format[32];
    int number = 0;
    cleat_checkpoint *checkpoint = NULL;
    cleat_error error = {0};
    must_save(10, false, 4);
    read_state(whole, path);
    assert_int_equal(sscanf(strstr(whole, "\"format\""), "\"format\": %d", &number), 1);
    for (int other = number - 1; other <= number + 1; other += 2) {
        strcpy(text, whole);
        snprintf(format, sizeof format, "\"format\": %d", other);
        replace(text, "\"format\":", ",", format);
        correct_hash(text);
        overwrite(path, text, strlen(text));
        assert_int_equal(cleat_checkpoint_open_last(run, &checkpoint, &error), CLEAT_ERR_NOT_SUPPORTED);
        assert_non_null(strstr(error.text, other > number ? "a newer version" : "an older version"));
        assert_int_equal(cleat_checkpoint_open_source(run, &checkpoint, &error), CLEAT_ERR_NOT_SUPPORTED);
        assert_int_equal(cleat_checkpoint_open_best(run, &checkpoint, &error), CLEAT_ERR_NOT_SUPPORTED);
    }
    must_save(20, false, 4); /* `last` is intact; a save would still remove the damaged one */
    assert_int_equal(cleat_checkpoint_open_last(run, &checkpoint, &error), CLEAT_ERR_NOT_SUPPORTED);
}

/* Links wherever a save removes or writes: files outside are kept, including a checkpoint moved there. */
static void nothing_outside_of_the_run_changes(void **test) {
    (void)test;
    if (!CLEAT_FORKS) skip(); /* wine takes a link for the file that it names */
    static const char *const folders[] = {".tmp-ckpt", ".tmp-old-ckpt-E001-S000010", ".tmp-x", "ckpt-E000-S000003"};
    static const char *const files[] = {"last", "best", "last.tmp-0123456789abcdef", "ckpt-E000-S000004"};
    char command[1024];
    const char *form = "cd '%s' && ln -sfn ../../outside%s runs/a/%s";
    must_save(10, true, 2);
    snprintf(command, sizeof command,
             "cd '%s' && mkdir outside && echo text | tee outside/a >outside/state.json && mv runs/a/ckpt-E001-S000010 "
             "moved "
             "&& ln -s ../../moved runs/a/ckpt-E001-S000010 && ln -s ../../../outside/a moved/link",
             root);
    assert_int_equal(system(command), 0);
    for (size_t i = 0; i < sizeof folders / sizeof *folders; ++i) {
        snprintf(command, sizeof command, form, root, "", folders[i]);
        assert_int_equal(system(command), 0);
    }
    for (size_t i = 0; i < sizeof files / sizeof *files; ++i) {
        snprintf(command, sizeof command, form, root, "/a", files[i]);
        assert_int_equal(system(command), 0);
    }
    for (int64_t step = 20; step <= 50; step += 10) must_save(step, true, 1);
    assert_int_equal(last_step(), 50);
    snprintf(
        command, sizeof command,
        "cd '%s' && test \"$(ls -A outside | tr '\\n' ' ')\" = 'a state.json ' && test \"$(cat outside/a)\" = text "
        "&& test -e moved/model.safetensors && test -L moved/link && test ! -L runs/a/last && test ! -L runs/a/best "
        "&& test \"$(ls -A runs/a | tr '\\n' ' ')\" = '.tmp-x best ckpt-E005-S000050 last '",
        root);
    assert_int_equal(system(command), 0);
}

/* Leftovers of a kill are removed; other files with similar names are not. */
static void leftovers_of_kills_are_removed(void **test) {
    (void)test;
    char command[1024];
    must_save(10, true, 2);
    snprintf(
        command, sizeof command,
        "cd '%s' && for f in resolved.ini examples.json metrics.jsonl system.jsonl last best profile-S000003.csv; do "
        "touch $f.tmp-0123456789abcdef; done && mkdir .tmp-mine && touch .tmp-mine/a last.tmp-mine notes.tmp-7",
        run);
    assert_int_equal(system(command), 0);
    must_save(20, true, 2);
    snprintf(command, sizeof command,
             "cd '%s' && test \"$(ls -A | grep tmp | tr '\\n' ' ')\" = '.tmp-mine last.tmp-mine notes.tmp-7 ' && "
             "test -e .tmp-mine/a",
             run);
    assert_int_equal(system(command), 0);
}

/* Found by every name of a checkpoint; for earlier versions, resolved.ini is beside it. */
static void the_profile_is_found(void **test) {
    (void)test;
    char file[CLEAT_CHECKPOINT_PATH], path[CLEAT_CHECKPOINT_PATH], *text;
    cleat_error error = {0};
    size_t size;
    must_save(10, true, 3);
    must_save(20, false, 3);
    static const char *const names[] = {"", "/", "/best", "/last", "/ckpt-E001-S000010", "/ckpt-E002-S000020/"};
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
        snprintf(path, sizeof path, "%s%s", run, names[i]);
        if (cleat_checkpoint_find_profile(path, file, &error)) fail_msg("%s", error.text);
        assert_int_equal(cleat_file_read(file, &text, &size, &error), CLEAT_OK);
        assert_string_equal(text, "[train]\nepochs = 3\n");
        cleat_free(text);
    }
    snprintf(path, sizeof path, "%s/ckpt-E001-S000010", run);
    assert_int_equal(cleat_checkpoint_find_profile(path, file, &error), CLEAT_OK);
    assert_int_equal(remove(file), 0);
    assert_int_equal(cleat_checkpoint_find_profile(path, file, &error), CLEAT_ERR_NOT_FOUND);
    assert_non_null(strstr(error.text, "give the profile of the training"));
    char resolved[CLEAT_CHECKPOINT_PATH];
    snprintf(resolved, sizeof resolved, "%s/resolved.ini", run);
    assert_int_equal(cleat_file_write(resolved, "[train]\n", 8, &error), CLEAT_OK);
    if (cleat_checkpoint_find_profile(path, file, &error)) fail_msg("%s", error.text);
    assert_non_null(strstr(file, "/resolved.ini"));
    assert_int_equal(cleat_checkpoint_find_profile("/nonexistent", file, &error), CLEAT_ERR_NOT_FOUND);
    assert_int_equal(cleat_checkpoint_find_profile("/", file, &error), CLEAT_ERR_NOT_FOUND);
    assert_non_null(strstr(error.text, "neither a checkpoint"));
}

static void another_model_is_refused(void **test) {
    (void)test;
    cleat_checkpoint *checkpoint = NULL;
    cleat_error error = {0};
    content_arrays got;
    must_save(10, false, 3);
    assert_int_equal(cleat_checkpoint_open_last(run, &checkpoint, NULL), CLEAT_OK);
    assert_int_equal(cleat_checkpoint_expect_settings(checkpoint, same, 2, NULL), CLEAT_OK);
    const cleat_model_setting other[] = {{"model.d_model", "128", NULL},
                                         {"model.heads", "4", NULL},
                                         {"model.layers", "2", NULL},
                                         {"model.network", "cleat", "cleat"},
                                         {"model.positions", "64", "auto"}};
    assert_int_equal(cleat_checkpoint_expect_settings(checkpoint, other, 5, &error), CLEAT_ERR_PROFILE);
    assert_non_null(strstr(error.text, "model.d_model is 64 in the checkpoint, 128 in the profile"));
    assert_non_null(strstr(error.text, "model.layers is absent"));
    assert_null(strstr(error.text, "model.heads"));
    assert_null(strstr(error.text, "model.network")); /* it was created after the checkpoint */
    assert_non_null(strstr(error.text, "model.positions is auto in the checkpoint, 64 in the profile"));

    fill(&got, 77);
    assert_int_equal(cleat_safetensors_copy(checkpoint->model, got.model, 1, &error), CLEAT_ERR_FORMAT);
    assert_non_null(strstr(error.text, "'bias' that the model does not have"));
    got.model[1].name = "gain";
    assert_int_equal(cleat_safetensors_copy(checkpoint->model, got.model, 2, &error), CLEAT_ERR_FORMAT);
    assert_non_null(strstr(error.text, "'gain'"));
    got.model[1].name = "bias";
    got.model[1].shape[0] = 4;
    assert_int_equal(cleat_safetensors_copy(checkpoint->model, got.model, 2, &error), CLEAT_ERR_SHAPE);
    assert_non_null(strstr(error.text, "F32 [3]; it should be F32 [4]"));
    assert_true(got.weight[0] == 77); /* nothing was written */
    cleat_checkpoint_close(checkpoint);
}

/* --- faults in the middle ------------------------------------------------------------------------------------- */

/* Runs a save in a child that is killed at its n-th file-system call; returns true if the save completes first. */
static bool killed_save(int64_t step, bool best, long n) {
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        fault_kills = true;
        calls_until_fault = n;
        cleat_status status = save(step, best, 2, NULL);
        _exit(!status ? 0 : 1);
    }
    int result;
    assert_int_equal(waitpid(child, &result, 0), child);
    if (WIFSIGNALED(result)) {
        assert_int_equal(WTERMSIG(result), SIGKILL);
        return false;
    }
    assert_int_equal(WEXITSTATUS(result), 0);
    return true;
}

static void a_kill_at_any_call_leaves_a_run_that_opens(void **test) {
    (void)test;
    if (!CLEAT_FORKS) skip();
    bool done = false;
    long n = 0;
    int64_t step = 10, before = -1;
    while (!done) {
        done = killed_save(step, step % 20 == 0, ++n);
        int64_t now = last_step();
        assert_true(now == before || now == step);
        if (done) assert_int_equal(now, step);
        if (now >= 0 && cleat_checkpoint_exists(run)) assert_int_equal(best_step() % 10, 0);
        before = now;
        step += 10; /* the next save must remove the files that this one left */
    }
    assert_true(n > 15);
    assert_false(has_leftovers());
    /* the same step repeatedly, as in a resumed run */
    for (n = 1; !killed_save(step, true, n); ++n) {
        assert_true(last_step() >= step - 10);
        must_save(step, n % 2, 2);
        assert_false(has_leftovers());
        assert_int_equal(last_step(), step);
    }
}

static void a_failure_of_any_call_leaves_a_run_that_opens(void **test) {
    (void)test;
    int failures = 0;
    must_save(10, true, 2);
    for (long n = 1;; ++n) {
        int64_t step = 10 + n * 10;
        cleat_error error = {0};
        warnings[0] = 0;
        fault_kills = false;
        calls_until_fault = n;
        cleat_status status = save(step, true, 2, &error);
        bool untouched = calls_until_fault > 0;
        calls_until_fault = 0;
        assert_true(!status || status == CLEAT_ERR_IO);
        if (status == CLEAT_ERR_IO) {
            ++failures;
            assert_non_null(strstr(error.text, strerror(EIO)));
            assert_true(last_step() >= 10);
        } else {
            assert_int_equal(last_step(), step);
        }
        if (untouched) break;
        must_save(step + 5, false, 2);
        assert_false(has_leftovers());
        assert_int_equal(last_step(), step + 5);
    }
    assert_true(failures > 10);
}

/* A child that saves continuously is killed at a random moment, repeatedly. */
static void a_kill_at_random_moments_leaves_a_run_that_opens(void **test) {
    (void)test;
    if (!CLEAT_FORKS) skip();
    uint64_t random = 12345;
    int64_t step = 0;
    for (int round = 0; round < 60; ++round) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            for (int64_t next = step + 1;; ++next)
                if (save(next, next % 3 == 0, 2, NULL) != CLEAT_OK) _exit(1);
        }
        usleep((useconds_t)(random >> 33) % 5000);
        kill(child, SIGKILL);
        int result;
        assert_int_equal(waitpid(child, &result, 0), child);
        assert_true(WIFSIGNALED(result));
        int64_t now = last_step();
        assert_true(now >= step || (now == -1 && step == 0));
        step = now < 0 ? 0 : now;
    }
    print_message("%lld checkpoints survived 60 kills\n", (long long)step);
    must_save(step + 1, true, 2);
    assert_false(has_leftovers());
}

static void every_failing_allocation_is_survived(void **test) {
    (void)test;
    must_save(10, true, 2);
    for (long n = 1;; ++n) {
        cleat_checkpoint *checkpoint = NULL;
        cleat_error error = {0};
        cleat_fail_allocation(n);
        cleat_status status = save(10 + n, false, 2, &error);
        if (!status) status = cleat_checkpoint_open_last(run, &checkpoint, &error);
        if (!status) status = cleat_checkpoint_expect_settings(checkpoint, same, 2, &error);
        cleat_fail_allocation(0);
        cleat_checkpoint_close(checkpoint);
        assert_true(last_step() >= 10);
        if (!status && n > 60) return;
        if (status && status != CLEAT_ERR_MEMORY) fail_msg("%ld: %s", n, error.text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_bit_of_the_state_comes_back, make_run, remove_run),
        cmocka_unit_test_setup_teardown(the_newest_and_the_best_stay, make_run, remove_run),
        cmocka_unit_test_setup_teardown(paths_of_many_kinds_open, make_run, remove_run),
        cmocka_unit_test_setup_teardown(a_step_saved_again_replaces_itself, make_run, remove_run),
        cmocka_unit_test(names_are_parsed_strictly),
        cmocka_unit_test_setup_teardown(every_flipped_bit_and_every_cut_is_noticed, make_run, remove_run),
        cmocka_unit_test_setup_teardown(a_checkpoint_of_before_opens, make_run, remove_run),
        cmocka_unit_test_setup_teardown(the_newest_is_listed_first, make_run, remove_run),
        cmocka_unit_test_setup_teardown(no_file_outside_the_folder_is_named, make_run, remove_run),
        cmocka_unit_test_setup_teardown(an_evaluation_needs_no_optimizer, make_run, remove_run),
        cmocka_unit_test_setup_teardown(a_resume_falls_back_to_what_is_intact, make_run, remove_run),
        cmocka_unit_test_setup_teardown(another_version_is_refused, make_run, remove_run),
        cmocka_unit_test_setup_teardown(nothing_outside_of_the_run_changes, make_run, remove_run),
        cmocka_unit_test_setup_teardown(leftovers_of_kills_are_removed, make_run, remove_run),
        cmocka_unit_test_setup_teardown(the_profile_is_found, make_run, remove_run),
        cmocka_unit_test_setup_teardown(another_model_is_refused, make_run, remove_run),
        cmocka_unit_test_setup_teardown(a_kill_at_any_call_leaves_a_run_that_opens, make_run, remove_run),
        cmocka_unit_test_setup_teardown(a_failure_of_any_call_leaves_a_run_that_opens, make_run, remove_run),
        cmocka_unit_test_setup_teardown(a_kill_at_random_moments_leaves_a_run_that_opens, make_run, remove_run),
        cmocka_unit_test_setup_teardown(every_failing_allocation_is_survived, make_run, remove_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
