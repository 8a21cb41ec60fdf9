/* The metrics log and the progress line. */
/* ctest: quick */
#include "core/files.h"
#include "core/memory.h"
#include "platform/files.h"
#include "platform/processes.h"
#include "train/metrics_log.h"
#include "train/progress.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>
#include <cmocka.h>

static char folder[64], path[96];

static int make_folder(void **state) {
    (void)state;
    strcpy(folder, "/tmp/cleat-log-XXXXXX");
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/metrics.jsonl", folder);
    return 0;
}

static int remove_folder(void **state) {
    (void)state;
    unlink(path);
    return rmdir(folder);
}

static cleat_metrics_log *open_log(int64_t keep) {
    cleat_metrics_log *log = NULL;
    cleat_error error = {0};
    if (cleat_metrics_log_open(path, keep, &log, &error) != CLEAT_OK) fail_msg("%s", error.text);
    return log;
}

static void write_step(cleat_metrics_log *log, int64_t step, double loss) {
    const cleat_metric metrics[] = {{"loss", loss}, {"learning_rate", 0.1f}};
    assert_int_equal(cleat_metrics_log_write(log, "train", step / 10, step, metrics, 2, NULL), CLEAT_OK);
}

static char *contents(void) {
    char *text;
    size_t size;
    assert_int_equal(cleat_file_read(path, &text, &size, NULL), CLEAT_OK);
    return text;
}

static void records_are_json_lines(void **state) {
    (void)state;
    cleat_metrics_log *log = open_log(-1);
    write_step(log, 12, 1.25);
    write_step(log, 13, NAN);
    assert_int_equal(cleat_metrics_log_records(log), 2);
    assert_int_equal(cleat_metrics_log_sync(log, NULL), CLEAT_OK);
    cleat_metrics_log_close(log);
    char *text = contents();
    assert_string_equal(text,
                        "{\"kind\":\"train\",\"epoch\":1,\"step\":12,\"loss\":1.25,\"learning_rate\":0.100000001}\n"
                        "{\"kind\":\"train\",\"epoch\":1,\"step\":13,\"loss\":null,\"learning_rate\":0.100000001}\n");
    cJSON *json = cJSON_ParseWithLengthOpts(text, strlen(text), NULL, false);
    assert_true((float)cJSON_GetObjectItem(json, "learning_rate")->valuedouble == 0.1f);
    cJSON_Delete(json);
    cleat_free(text);
}

static void nine_digits_tell_floats_apart(void **state) {
    (void)state;
    cleat_metrics_log *log = open_log(-1);
    float value = 1.0f;
    for (int i = 0; i < 200; ++i) {
        const cleat_metric metric = {"x", value};
        assert_int_equal(cleat_metrics_log_write(log, "train", 0, i, &metric, 1, NULL), CLEAT_OK);
        value = nextafterf(value, 2);
    }
    cleat_metrics_log_close(log);
    char *text = contents(), *line = text;
    value = 1.0f;
    for (int i = 0; i < 200; ++i) {
        float back = strtof(strstr(line, "\"x\":") + 4, NULL);
        assert_memory_equal(&back, &value, sizeof value);
        value = nextafterf(value, 2);
        line = strchr(line, '\n') + 1;
    }
    cleat_free(text);
}

static void a_resumed_run_writes_the_same_file(void **state) {
    (void)state;
    cleat_metrics_log *log = open_log(-1);
    for (int64_t step = 0; step < 20; ++step) write_step(log, step, 1.0 / (double)(step + 1));
    cleat_metrics_log_close(log);
    char *whole = contents();
    for (int64_t keep = 0; keep <= 20; ++keep) {
        FILE *file = fopen(path, "a");
        assert_non_null(file);
        fputs("{\"kind\":\"train\",\"ep", file); /* a record truncated by a crash */
        fclose(file);
        log = open_log(keep);
        assert_int_equal(cleat_metrics_log_records(log), keep);
        for (int64_t step = keep; step < 20; ++step) write_step(log, step, 1.0 / (double)(step + 1));
        cleat_metrics_log_close(log);
        char *again = contents();
        assert_string_equal(whole, again);
        cleat_free(again);
    }
    cleat_free(whole);
}

static void missing_records_are_only_a_warning(void **state) {
    (void)state;
    cleat_metrics_log *log = open_log(-1);
    write_step(log, 1, 1);
    cleat_metrics_log_close(log);
    log = open_log(7);
    assert_int_equal(cleat_metrics_log_records(log), 1);
    cleat_metrics_log_close(log);
    unlink(path);
    log = open_log(7);
    assert_int_equal(cleat_metrics_log_records(log), 0);
    cleat_metrics_log_close(log);
    cleat_error error = {0};
    assert_int_equal(cleat_metrics_log_open("/nonexistent/x.jsonl", -1, &log, &error), CLEAT_ERR_NOT_FOUND);
    assert_non_null(strstr(error.text, "/nonexistent/x.jsonl"));
}

/* A file size limit simulates a full disk: only part of the second record fits. */
static void a_record_that_fits_only_in_part_is_taken_back(void **state) {
    (void)state;
    if (!CLEAT_FORKS) skip(); /* Windows has no limit of files */
    struct rlimit before = {0}, limit;
    cleat_error error = {0};
    const cleat_metric metric = {"loss", 1};
    cleat_metrics_log *log = open_log(-1);
    write_step(log, 1, 1);
    char *whole = contents();
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = strlen(whole) + 10;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    cleat_status status = cleat_metrics_log_write(log, "train", 0, 2, &metric, 1, &error);
    (void)setrlimit(RLIMIT_FSIZE, &before);
    assert_int_equal(status, CLEAT_ERR_IO);
    assert_non_null(strstr(error.text, path));
    assert_int_equal(cleat_metrics_log_records(log), 1);
    char *after = contents();
    assert_string_equal(whole, after);
    cleat_metrics_log_close(log);
    cleat_free(whole);
    cleat_free(after);
}

/* --- progress ------------------------------------------------------------------------------------------------- */

static char shown[4096];

static void capture_text(void *user, const char *text) {
    (void)user;
    strncat(shown, text, sizeof shown - strlen(shown) - 1);
}

static void a_log_gets_lines(void **state) {
    (void)state;
    cleat_progress progress;
    shown[0] = 0;
    cleat_progress_start(&progress, capture_text, NULL, false, 80, 0, 400, 100);
    cleat_progress_update(&progress, 0, "start", 100, false);
    cleat_progress_update(&progress, 10, "too soon", 101, false);
    cleat_progress_update(&progress, 100, "loss 1.25", 120, false);
    cleat_progress_line(&progress, "evaluated");
    cleat_progress_update(&progress, 400, "done", 121, true);
    cleat_progress_end(&progress);
    assert_string_equal(shown, "step 0/400 (0%)  start\nstep 100/400 (25%)  loss 1.25  ETA 1 min 00 s\nevaluated\n"
                               "step 400/400 (100%)  done  ETA 0 s\n");
}

static void a_run_of_one_step_begins_at_0_percent(void **state) {
    (void)state;
    cleat_progress progress;
    shown[0] = 0;
    cleat_progress_start(&progress, capture_text, NULL, false, 80, 0, 1, 100);
    cleat_progress_update(&progress, 0, "start", 100, true);
    cleat_progress_update(&progress, 1, "done", 101, true);
    assert_ptr_equal(strstr(shown, "step 0/1 (0%)  start\nstep 1/1 (100%)  done"), shown);
}

/* The first steps wait 100 seconds for kernels; the next 100 take 1 second each, later ones 2. */
static void the_remaining_time_counts_no_compilation(void **state) {
    (void)state;
    cleat_progress progress;
    shown[0] = 0;
    cleat_progress_start(&progress, capture_text, NULL, false, 80, 0, 1000, 0);
    cleat_progress_update(&progress, 10, "first", 100, true);
    assert_null(strstr(shown, "ETA"));
    cleat_progress_update(&progress, 20, "second", 110, true);
    assert_non_null(strstr(shown, "second  ETA 16 min 20 s"));
    for (int step = 30; step <= 100; step += 10) cleat_progress_update(&progress, step, "", 90 + step, true);
    assert_non_null(strstr(shown, "100/1000 (10%)    ETA 15 min 00 s"));
    for (int step = 110; step <= 500; step += 10) cleat_progress_update(&progress, step, "", 2 * step - 10, true);
    assert_non_null(strstr(shown, "500/1000 (50%)    ETA 16 min 40 s"));
}

static int lines_shown;

static void count_lines(void *user, const char *text) {
    (void)user;
    lines_shown += strchr(text, '\n') != NULL;
}

/* A step every 50 ms: the first minute has a line every 5 seconds, and twelve hours have about a thousand lines. */
static void lines_become_rarer(void **state) {
    (void)state;
    enum { MINUTE = 20 * 60, STEPS = 12 * 60 * MINUTE };
    cleat_progress progress;
    lines_shown = 0;
    cleat_progress_start(&progress, count_lines, NULL, false, 80, 0, STEPS, 0);
    for (int step = 1; step <= STEPS; ++step) {
        cleat_progress_update(&progress, step, "", step * 0.05, false);
        if (step == MINUTE) assert_in_range(lines_shown, 11, 13);
    }
    assert_in_range(lines_shown, 700, 1000);
}

static void a_terminal_gets_a_bar(void **state) {
    (void)state;
    cleat_progress progress;
    shown[0] = 0;
    cleat_progress_start(&progress, capture_text, NULL, true, 60, 100, 400, 0);
    cleat_progress_update(&progress, 100, "first", 0, false);
    shown[0] = 0;
    cleat_progress_update(&progress, 200, "a long text about it", 10, false);
    assert_int_equal(strlen(shown), 60); /* truncated to the width minus one, after the carriage return */
    assert_ptr_equal(strstr(shown, "\r[##########..........]  50% 200/400  a long text about it  "), shown);
    shown[0] = 0;
    cleat_progress_update(&progress, 300, "x", 10.05, false);
    assert_string_equal(shown, "");
    cleat_progress_update(&progress, 300, "x", 20, false);
    assert_int_equal(strlen(shown), 60); /* blanks overwrite the longer line */
    assert_non_null(strstr(shown, "300/400  x  ETA 10 s"));
    shown[0] = 0;
    cleat_progress_line(&progress, "evaluated");
    assert_non_null(strstr(shown, "\revaluated\n"));
    cleat_progress_update(&progress, 400, "end", 30, true);
    shown[0] = 0;
    cleat_progress_end(&progress);
    assert_string_equal(shown, "\n");
}

static void odd_values_are_harmless(void **state) {
    (void)state;
    cleat_progress progress;
    char text[1000];
    memset(text, 'y', sizeof text - 1);
    text[sizeof text - 1] = 0;
    for (int terminal = 0; terminal < 2; ++terminal)
        for (int width = 0; width < 600; width += 37) {
            shown[0] = 0;
            cleat_progress_start(&progress, capture_text, NULL, terminal, width, 0, 0, 0);
            cleat_progress_update(&progress, 5, text, 1, true);
            cleat_progress_line(&progress, text);
            cleat_progress_end(&progress);
            assert_true(strlen(shown) > 1000);
        }
    cleat_progress_start(&progress, NULL, NULL, true, 80, 0, 10, 0);
    cleat_progress_update(&progress, 5, "x", 1, true);
    cleat_progress_line(&progress, "x");
    cleat_progress_end(&progress);
}

static void durations_read_well(void **state) {
    (void)state;
    static const struct {
        double seconds;
        const char *text;
    } rows[] = {{0, "0 s"},           {59.4, "59 s"}, {59.6, "1 min 00 s"}, {245, "4 min 05 s"}, {7620, "2 h 07 min"},
                {273600, "3 d 04 h"}, {-1, "?"},      {NAN, "?"},           {1e30, "?"}};
    char text[24];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        cleat_duration_text(rows[i].seconds, text);
        assert_string_equal(text, rows[i].text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_are_json_lines),
        cmocka_unit_test(nine_digits_tell_floats_apart),
        cmocka_unit_test(a_resumed_run_writes_the_same_file),
        cmocka_unit_test(missing_records_are_only_a_warning),
        cmocka_unit_test(a_record_that_fits_only_in_part_is_taken_back),
        cmocka_unit_test(a_log_gets_lines),
        cmocka_unit_test(a_run_of_one_step_begins_at_0_percent),
        cmocka_unit_test(the_remaining_time_counts_no_compilation),
        cmocka_unit_test(lines_become_rarer),
        cmocka_unit_test(a_terminal_gets_a_bar),
        cmocka_unit_test(odd_values_are_harmless),
        cmocka_unit_test(durations_read_well),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
