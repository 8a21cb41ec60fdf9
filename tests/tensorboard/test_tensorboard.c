/* Event files: read back by read_events.py, which shares no code with the writer and checks both checksums of
 * each record. */
/* ctest: quick */
#include "cleat/tensorboard.h"
#include "core/clock.h"
#include "core/files.h"
#include "core/memory.h"
#include "platform/files.h"
#include "platform/processes.h"
#include "platform/threads.h"
#include "source_path.h"
#include "tensorboard/tensorboard.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>
#include <cmocka.h>

enum { PATH = 256 };

static char folder[64];

static int make_folder(void **state) {
    (void)state;
    strcpy(folder, "/tmp/cleat-board-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    return system(command);
}

static const char *in_folder(const char *name, char path[PATH]) {
    snprintf(path, PATH, "%s/%s", folder, name);
    return path;
}

static void write_file(const char *name, const char *text) {
    char path[PATH];
    cleat_error error;
    if (cleat_file_write(in_folder(name, path), text, strlen(text), &error) != CLEAT_OK) fail_msg("%s", error.text);
}

/* Returns what read_events.py prints about the folder, compared with metrics.jsonl if `compared`; NULL if it
 * fails. */
static cJSON *read_back(bool compared) {
    char command[1024];
    static char text[1 << 20];
    snprintf(command, sizeof command, "python3 '%s' '%s' %s", source_path("tests/tensorboard/read_events.py"), folder,
             compared ? folder : "");
    FILE *output = popen(command, "r");
    assert_non_null(output);
    text[fread(text, 1, sizeof text - 1, output)] = 0;
    return pclose(output) == 0 ? cJSON_Parse(text) : NULL;
}

static double number(const cJSON *summary, const char *name) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(summary, name);
    assert_true(cJSON_IsNumber(item));
    return item->valuedouble;
}

static const char *text_of(const cJSON *summary, const char *tag) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(summary, "texts"), tag);
    assert_true(cJSON_IsString(item));
    return item->valuestring;
}

static cleat_tensorboard *create(void) {
    cleat_tensorboard *board = NULL;
    cleat_error error;
    if (cleat_tensorboard_create(folder, &board, &error) != CLEAT_OK) fail_msg("%s", error.text);
    return board;
}

static void the_reader_finds_faults(void **state) {
    char command[512];
    (void)state;
    snprintf(command, sizeof command, "python3 '%s' --self-test", source_path("tests/tensorboard/read_events.py"));
    assert_int_equal(system(command), 0);
}

static void values_are_read_back(void **state) {
    (void)state;
    const cleat_scalar two[] = {{"zero", 0}, {"third", 1.0 / 3}};
    cleat_tensorboard *board = create();
    assert_int_equal(cleat_tensorboard_scalars(board, 1790000000.5, 7, "a", two, 2, NULL), CLEAT_OK);
    assert_int_equal(cleat_tensorboard_scalars(board, 1790000001.5, 8, "a", two, 0, NULL), CLEAT_OK);
    assert_int_equal(cleat_tensorboard_verbatim(board, 1790000001.5, 7, "profile", "[run]\nseed = 1\n", NULL),
                     CLEAT_OK);
    cleat_tensorboard_close(board);
    cJSON *summary = read_back(false);
    assert_non_null(summary);
    assert_int_equal(number(summary, "scalars"), 2);
    assert_int_equal(number(summary, "records"), 3); /* the version, the scalars, the text */
    assert_string_equal(text_of(summary, "profile"), "    [run]\n    seed = 1\n");
    const cJSON *times = cJSON_GetObjectItemCaseSensitive(summary, "times");
    assert_true(cJSON_GetArrayItem(times, 0)->valuedouble == 1790000000.5);
    cJSON_Delete(summary);
}

/* Two files in the same second, and one after the clock was set back. */
static void later_files_sort_behind(void **state) {
    (void)state;
    char first[PATH * 6], second[PATH * 6];
    write_file("events.out.tfevents.4000000000.host.99", "");
    cleat_tensorboard *a = create();
    cleat_tensorboard *b = create();
    snprintf(first, sizeof first, "%s", cleat_tensorboard_path(a));
    snprintf(second, sizeof second, "%s", cleat_tensorboard_path(b));
    assert_true(strcmp(first, second) < 0);
    assert_non_null(strstr(first, "events.out.tfevents.4000000001."));
    assert_true(cleat_tensorboard_exists(folder));
    cleat_tensorboard_close(a);
    cleat_tensorboard_close(b);
}

/* --- conversion ----------------------------------------------------------------------------------------------- */

static const char metrics[] =
    "{\"kind\":\"start\",\"epoch\":0,\"step\":1,\"seconds\":0.25}\n"
    "{\"kind\":\"train\",\"epoch\":0,\"step\":1,\"loss\":1.25,\"learning_rate\":0.000123456789}\n"
    "{\"kind\":\"train\",\"epoch\":0,\"step\":2,\"loss\":null,\"learning_rate\":3.40282347e+38}\n"
    "{\"kind\":\"train\",\"epoch\":0,\"step\":3,\"loss\":0.1,\"learning_rate\":1e-40}\n"
    "{\"kind\":\"eval\",\"epoch\":1,\"step\":3,\"loss\":0.30000001}\n"
    "{\"kind\":\"train\",\"epoch\":0,\"st";

/* The first process reaches step 5, the second repeats steps from 3. */
static const char samples[] =
    "{\"kind\":\"start\",\"time\":1790000000.000,\"step\":0,\"pid\":1}\n"
    "{\"kind\":\"sample\",\"time\":1790000001.000,\"step\":1,\"epoch\":0.1,\"values\":{\"power\":55.5,\"clock\":null}}"
    "\n"
    "{\"kind\":\"event\",\"time\":1790000001.500,\"step\":1,\"what\":\"hint\",\"name\":\"loader_bound\",\"text\":\"The "
    "loader is slow.\",\"command\":\"cleat find-workers\"}\n"
    "{\"kind\":\"sample\",\"time\":1790000005.000,\"step\":5,\"epoch\":0.5,\"values\":{\"power\":70}}\n"
    "{\"kind\":\"sample\",\"time\":1790000005.100,\"step\":2,\"epoch\":0.2,\"values\":{\"power\":71}}\n"
    "{\"kind\":\"start\",\"time\":1790000100.000,\"step\":2,\"pid\":2}\n"
    "{\"kind\":\"sample\",\"time\":1790000104.000,\"step\":4,\"epoch\":0.4,\"values\":{\"power\":60}}\n"
    "{\"kind\":\"end\",\"time\":1790000105.000,\"step\":4,\"sta";

static void a_run_folder_is_converted(void **state) {
    (void)state;
    cleat_tensorboard_report report;
    cleat_error error;
    write_file("metrics.jsonl", metrics);
    write_file("system.jsonl", samples);
    write_file("resolved.ini", "[run]\nseed = 3\n");
    for (int again = 0; again < 2; ++again) { /* the second conversion replaces the first */
        if (cleat_tensorboard_convert(folder, folder, &report, &error) != CLEAT_OK) fail_msg("%s", error.text);
        assert_int_equal(report.records, 5 + 6);
        cJSON *summary = read_back(true);
        assert_non_null(summary);
        assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(summary, "files")), 1);
        assert_int_equal(number(summary, "scalars"), 8 + 3);
        assert_string_equal(text_of(summary, "profile"), "    [run]\n    seed = 3\n");
        assert_string_equal(text_of(summary, "event/loader_bound"),
                            "hint: The loader is slow.\n\n    cleat find-workers\n");
        const cJSON *times = cJSON_GetObjectItemCaseSensitive(summary, "times");
        assert_true(cJSON_GetArrayItem(times, 0)->valuedouble == 1790000001.0); /* step 1 */
        assert_true(cJSON_GetArrayItem(times, 1)->valuedouble == 1790000104.0);
        cJSON_Delete(summary);
    }
}

/* Without system.jsonl; after a start at a later step, the file has only the steps from there. */
static void a_part_is_replayed(void **state) {
    (void)state;
    int64_t records = 0;
    write_file("metrics.jsonl", metrics);
    cleat_tensorboard *board = create();
    assert_int_equal(cleat_tensorboard_replay(board, folder, 0, 9, &records, NULL), CLEAT_OK);
    assert_int_equal(records, 5);
    cleat_tensorboard_close(board);
    board = create();
    assert_int_equal(cleat_tensorboard_start(board, cleat_wall_seconds(), 3, NULL), CLEAT_OK);
    assert_int_equal(cleat_tensorboard_replay(board, folder, 3, 3, &records, NULL), CLEAT_OK);
    assert_int_equal(records, 2);
    cleat_tensorboard_close(board);
    cJSON *summary = read_back(true);
    assert_non_null(summary);
    const cJSON *times = cJSON_GetObjectItemCaseSensitive(summary, "times");
    assert_true(cJSON_GetArrayItem(times, 0)->valuedouble > 1700000000.0);
    cJSON_Delete(summary);
}

static void bad_folders_are_refused(void **state) {
    (void)state;
    char path[PATH];
    cleat_error error;
    assert_int_equal(cleat_tensorboard_convert(in_folder("none", path), folder, NULL, &error), CLEAT_ERR_NOT_FOUND);
    assert_non_null(strstr(error.text, "no such run folder"));
    assert_int_not_equal(cleat_tensorboard_convert(folder, folder, NULL, &error), CLEAT_OK);
    assert_non_null(strstr(error.text, "metrics.jsonl"));
    write_file("metrics.jsonl", "{\"kind\":\"train\",\"step\":1,\"loss\":1}\n{\"kind\":\"train\",\"loss\":2}\n");
    assert_int_equal(cleat_tensorboard_convert(folder, folder, NULL, &error), CLEAT_ERR_FORMAT);
    assert_non_null(strstr(error.text, "metrics.jsonl:2"));
    assert_false(cleat_tensorboard_exists(folder));
}

/* --- faults --------------------------------------------------------------------------------------------------- */

/* A full disk is reported once; the file has whole records only. */
static void a_full_disk_is_reported_once(void **state) {
    (void)state;
    if (!CLEAT_FORKS) skip(); /* Windows has no limit of the size of files */
    const cleat_scalar one = {"x", 1};
    struct rlimit before = {0}, small;
    int reported = 0;
    cleat_tensorboard *board = create();
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 1000;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    for (int step = 0; step < 100; ++step)
        reported += cleat_tensorboard_scalars(board, 1790000000, step, "a", &one, 1, NULL) != CLEAT_OK;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    cleat_tensorboard_close(board);
    assert_int_equal(reported, 1);
    cJSON *summary = read_back(false);
    assert_non_null(summary);
    assert_in_range((long)number(summary, "scalars"), 5, 50);
    cJSON_Delete(summary);
}

enum { THREADS = 4, STEPS = 500 };

static void *write_steps(void *board) {
    const cleat_scalar two[] = {{"x", 1}, {"y", 2}};
    for (int step = 0; step < STEPS; ++step)
        if (cleat_tensorboard_scalars(board, 1790000000, step, "a", two, 2, NULL) != CLEAT_OK) return board;
    return NULL;
}

static void threads_write_at_once(void **state) {
    (void)state;
    pthread_t threads[THREADS];
    void *failed;
    cleat_tensorboard *board = create();
    for (int t = 0; t < THREADS; ++t) assert_int_equal(pthread_create(&threads[t], NULL, write_steps, board), 0);
    for (int t = 0; t < THREADS; ++t) {
        pthread_join(threads[t], &failed);
        assert_null(failed);
    }
    cleat_tensorboard_close(board);
    cJSON *summary = read_back(false);
    assert_non_null(summary);
    assert_int_equal(number(summary, "records"), 1 + THREADS * STEPS);
    cJSON_Delete(summary);
}

static void allocations_may_fail(void **state) {
    (void)state;
    cleat_error error;
    long n = 1;
    write_file("metrics.jsonl", metrics);
    write_file("system.jsonl", samples);
    for (;; ++n) {
        cleat_fail_allocation(n);
        cleat_status status = cleat_tensorboard_convert(folder, folder, NULL, &error);
        cleat_fail_allocation(0);
        if (!status) break;
        assert_int_equal(status, CLEAT_ERR_MEMORY);
        assert_false(cleat_tensorboard_exists(folder));
    }
    assert_true(n > 10);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void) {
    if (system("python3 -c '' 2>/dev/null") != 0) {
        fprintf(stderr, "skipped, no python3\n");
        return 77;
    }
    const struct CMUnitTest tests[] = {
        TEST(the_reader_finds_faults),      TEST(values_are_read_back),  TEST(later_files_sort_behind),
        TEST(a_run_folder_is_converted),    TEST(a_part_is_replayed),    TEST(bad_folders_are_refused),
        TEST(a_full_disk_is_reported_once), TEST(threads_write_at_once), TEST(allocations_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
