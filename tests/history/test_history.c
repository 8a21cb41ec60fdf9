/* Reads a run's folder: records as columns, whatever a kill or another version left in the files. */
/* ctest: quick */
#include "cleat/history.h"

#include "core/files.h"
#include "core/memory.h"
#include "core/string.h"
#include "platform/files.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char folder[64];

static int make_folder(void **state) {
    (void)state;
    strcpy(folder, "/tmp/cleat-history-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

static void write_file(const char *name, const char *text) {
    char path[160];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(cleat_file_write(path, text, strlen(text), NULL), CLEAT_OK);
}

static cleat_history *read_run(void) {
    cleat_history *history = NULL;
    cleat_error error = {0};
    if (cleat_history_read(folder, &history, &error) != CLEAT_OK) fail_msg("%s", error.text);
    return history;
}

static void records_become_columns(void **state) {
    (void)state;
    write_file("metrics.jsonl", "{\"kind\":\"train\",\"epoch\":0,\"step\":1,\"loss\":2.5,\"grad_norm\":1e-3}\n"
                                "{\"kind\":\"eval\",\"epoch\":1,\"step\":1,\"loss\":3}\n"
                                "{\"kind\":\"train\",\"epoch\":0,\"step\":2,\"loss\":null,\"late\":-7}\n");
    cleat_history *history = read_run();
    const cleat_history_table *train = cleat_history_find(history, "train");
    assert_non_null(train);
    assert_int_equal(train->rows, 2);
    assert_true(cleat_history_values(train, "step")[1] == 2);
    assert_true(cleat_history_values(train, "loss")[0] == 2.5);
    assert_true(isnan(cleat_history_values(train, "loss")[1]));
    assert_true(cleat_history_values(train, "grad_norm")[0] == 1e-3);
    assert_true(isnan(cleat_history_values(train, "grad_norm")[1])); /* absent in this record */
    assert_true(isnan(cleat_history_values(train, "late")[0]));
    assert_true(cleat_history_values(train, "late")[1] == -7);
    assert_null(cleat_history_values(train, "no_such_column"));
    assert_null(cleat_history_find(history, "no_such_kind"));
    assert_int_equal(cleat_history_find(history, "eval")->rows, 1);
    assert_int_equal(history->damaged_lines, 0);
    cleat_history_free(history);
}

static void damaged_lines_are_counted(void **state) {
    (void)state;
    write_file("metrics.jsonl", "{\"kind\":\"train\",\"step\":1,\"loss\":2}\n"
                                "{\"kind\":\"train\",\"step\":2,\"lo\n"
                                "\n"
                                "[1,2]\n"
                                "{\"step\":3}\n"
                                "{\"kind\":\"train\",\"step\":4,\"loss\":1} x\n"
                                "{\"kind\":\"train\",\"step\":5,\"loss\":0x10}\n"
                                "{\"kind\":\"train\",\"step\":6,\"loss\":1}\n"
                                "{\"kind\":\"train\",\"step\":7,\"loss\":9}"); /* incomplete */
    cleat_history *history = read_run();
    const cleat_history_table *train = cleat_history_find(history, "train");
    assert_int_equal(train->rows, 2);
    assert_true(cleat_history_values(train, "step")[1] == 6);
    assert_int_equal(history->damaged_lines, 5);
    cleat_history_free(history);
}

/* A different name in each record would make a table as large as the file's square, which is damage, as are
 * endless kinds. */
static void tables_are_no_larger_than_their_file(void **state) {
    enum { LINES = 3000, DENSE = 200 };
    (void)state;
    for (int kinds = 0; kinds < 2; ++kinds) {
        cleat_string text = {0};
        for (int i = 0; i < LINES; ++i)
            cleat_string_add(&text, kinds ? "{\"kind\":\"k%d\",\"step\":%d}\n" : "{\"kind\":\"k\",\"n%d\":%d}\n", i, i);
        write_file("metrics.jsonl", text.data);
        cleat_history *history = read_run();
        assert_true(kinds ? history->n_tables == 64 : history->tables[0].columns < 1024);
        size_t rows = 0, cells = 0;
        for (size_t i = 0; i < history->n_tables; ++i) {
            rows += history->tables[i].rows;
            cells += history->tables[i].rows * history->tables[i].columns;
        }
        assert_true(cells <= 4 * text.size);
        assert_int_equal(rows + history->damaged_lines, LINES);
        cleat_history_free(history);
        cleat_string_free(&text);
    }
    cleat_string text = {0}; /* the maximum width of a record */
    for (int i = 0; i < LINES; ++i) {
        cleat_string_add(&text, "{\"kind\":\"eval\",\"step\":%d", i);
        for (int k = 0; k < DENSE; ++k) cleat_string_add(&text, ",\"%d\":1", k);
        cleat_string_add(&text, "}\n");
    }
    write_file("metrics.jsonl", text.data);
    cleat_history *history = read_run();
    assert_int_equal(history->damaged_lines, 0);
    assert_int_equal(cleat_history_find(history, "eval")->rows, LINES);
    cleat_history_free(history);
    cleat_string_free(&text);
}

static void later_records_replace_repeated_steps(void **state) {
    (void)state;
    write_file("metrics.jsonl",
               "{\"kind\":\"train\",\"step\":1,\"loss\":1}\n{\"kind\":\"train\",\"step\":2,\"loss\":2}\n"
               "{\"kind\":\"train\",\"step\":3,\"loss\":3}\n{\"kind\":\"train\",\"step\":2,\"loss\":20}\n");
    cleat_history *history = read_run();
    const cleat_history_table *train = cleat_history_find(history, "train");
    assert_int_equal(train->rows, 2);
    assert_true(cleat_history_values(train, "loss")[0] == 1 && cleat_history_values(train, "loss")[1] == 20);
    cleat_history_free(history);
}

static void names_are_unescaped(void **state) {
    (void)state;
    write_file("metrics.jsonl", "{\"kind\":\"eval\",\"step\":1,\"f1_a\\\"b\\\\c\\u0041\":0.5}\n");
    cleat_history *history = read_run();
    assert_true(cleat_history_values(cleat_history_find(history, "eval"), "f1_a\"b\\cA")[0] == 0.5);
    cleat_history_free(history);
}

static void system_records_are_kept(void **state) {
    (void)state;
    write_file(
        "system.jsonl",
        "{\"kind\":\"start\",\"time\":1.5,\"step\":0,\"device\":{\"name\":\"a}\\\"{\"},\"auto\":[{\"key\":\"k\"},[1,{}]"
        "]}\n"
        "{\"kind\":\"sample\",\"time\":2,\"step\":3,\"epoch\":0.5,\"values\":{\"power\":61.5,\"busy_own\":null}}\n"
        "{\"kind\":\"event\",\"time\":2,\"step\":3,\"what\":\"hint\",\"name\":\"n\",\"text\":\"t\",\"command\":\"\"}\n"
        "{\"kind\":\"start\",\"time\":9,\"step\":2}\n"
        "{\"kind\":\"sample\",\"time\":10,\"step\":2,\"epoch\":0.4,\"values\":{\"power\":60}}\n"
        "{\"kind\":\"end\",\"time\":11,\"step\":4,\"status\":\"ok\"}\n{\"kind\":\"end\",\"ti");
    cleat_history *history = read_run();
    const cleat_history_table *samples = cleat_history_find(history, "sample");
    assert_int_equal(samples->rows, 2); /* even if steps repeat: records are points in time */
    assert_true(cleat_history_values(samples, "power")[0] == 61.5);
    assert_true(cleat_history_values(samples, "time")[1] == 10);
    assert_true(isnan(cleat_history_values(samples, "busy_own")[0]));
    assert_int_equal(history->starts.count, 2);
    assert_int_equal(history->events.count, 1);
    assert_int_equal(history->ends.count, 1);
    assert_non_null(strstr(history->starts.items[0], "a}\\\"{"));
    assert_int_equal(history->damaged_lines, 0);
    cleat_history_free(history);
}

static void other_files_are_read(void **state) {
    char path[160];
    (void)state;
    write_file("resolved.ini", "# comment\n[train] ; section\nepochs = 7\n[run]\nmetric = iou\n");
    write_file("examples.json", "{\"step\":3}");
    write_file("profile-S000008.json", "{\"step\":8}");
    write_file("profile-S000120.json", "{\"step\":120}");
    write_file("profile-S000120.trace.json.gz", "no JSON");
    for (int i = 0; i < 2; ++i) {
        snprintf(path, sizeof path, "%s/ckpt-E00%d-S00001%d", folder, 2 - i, 2 - i);
        assert_int_equal(cleat_folder_make(path, NULL), CLEAT_OK);
    }
    write_file("ckpt-E002-S000012/state.json",
               "{\"state\":{\"has_best\":true,\"best_metric\":{\"value\":0.5,\"bits\":\"x\"},\"best_step\":11,\"time_"
               "used\":{\"value\":9},"
               "\"files\":{\"model.safetensors\":{\"size\":10,\"hash\":\"abc\"}}},\"hash\":\"0\"}\n");
    write_file("best", "ckpt-E001-S000011\n");
    write_file("last", "ckpt-E002-S000012\n");
    cleat_history *history = read_run();
    assert_string_equal(cleat_history_setting_of(history, "train", "epochs"), "7");
    assert_null(cleat_history_setting_of(history, "train", "metric"));
    assert_string_equal(history->profile, "{\"step\":120}");
    assert_string_equal(history->examples, "{\"step\":3}");
    assert_int_equal(history->n_checkpoints, 2);
    const cleat_history_checkpoint *first = &history->checkpoints[0], *last = &history->checkpoints[1];
    assert_true(first->step == 11 && first->is_best && !first->is_last && !*first->model_hash &&
                isnan(first->model_bytes));
    assert_true(last->step == 12 && last->epoch == 2 && !last->is_best && last->is_last);
    assert_string_equal(last->model_hash, "abc");
    assert_true(last->model_bytes == 10 && last->best_metric == 0.5 && last->best_step == 11 && last->time_used == 9);
    cleat_history_free(history);
}

static void a_locked_folder_is_running(void **state) {
    char path[160];
    (void)state;
    write_file("metrics.jsonl", "{\"kind\":\"train\",\"step\":1,\"loss\":1}\n");
    snprintf(path, sizeof path, "%s/.train.lock", folder);
    int file = open(path, O_RDWR | O_CREAT, 0600);
    assert_true(file >= 0);
    cleat_history *history = read_run();
    assert_false(history->is_running);
    cleat_history_free(history);
    assert_int_equal(flock(file, LOCK_EX), 0);
    history = read_run();
    assert_true(history->is_running);
    assert_int_equal(history->phase, CLEAT_HISTORY_RUNNING);
    cleat_history_free(history);
    close(file);
}

/* A process that was killed and one that ended; the second's time budget shortened its schedule. */
static void the_last_process_is_found(void **state) {
    static const char first[] = "{\"kind\":\"start\",\"time\":10,\"schedule\":{\"epochs\":9}}\n";
    static const char shorter[] =
        "{\"kind\":\"event\",\"time\":11,\"name\":\"shorter_schedule\",\"schedule\":{\"epochs\":5}}\n";
    static const char end[] = "{\"kind\":\"end\",\"time\":12,\"status\":\"ok\"}\n";
    static const char second[] = "{\"kind\":\"start\",\"time\":20,\"schedule\":{\"epochs\":7}}\n";
    static const struct {
        const char *lines[4], *epochs;
        cleat_history_phase phase;
    } rows[] = {
        {{first}, "\"epochs\":9", CLEAT_HISTORY_KILLED},
        {{first, shorter}, "\"epochs\":5", CLEAT_HISTORY_KILLED},
        {{first, shorter, end}, "\"epochs\":5", CLEAT_HISTORY_ENDED},
        {{first, shorter, end, second}, "\"epochs\":7", CLEAT_HISTORY_KILLED}, /* nothing from the first applies */
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        char text[512] = "";
        for (size_t k = 0; k < 4 && rows[i].lines[k]; ++k) strcat(text, rows[i].lines[k]);
        write_file("system.jsonl", text);
        cleat_history *history = read_run();
        assert_int_equal(history->phase, rows[i].phase);
        assert_non_null(strstr(history->last_start, rows[i].epochs));
        assert_true((history->last_end != NULL) == (rows[i].phase == CLEAT_HISTORY_ENDED));
        cleat_history_free(history);
    }
    write_file("system.jsonl", "");
    write_file("resolved.ini", "[train]\nepochs = 1\n");
    cleat_history *history = read_run();
    assert_int_equal(history->phase, CLEAT_HISTORY_UNKNOWN);
    assert_null(history->last_start);
    cleat_history_free(history);
}

static void folders_without_a_run_are_refused(void **state) {
    cleat_history *history = (cleat_history *)folder;
    cleat_error error = {0};
    (void)state;
    assert_int_equal(cleat_history_read("/tmp/cleat-no-such-folder", &history, &error), CLEAT_ERR_NOT_FOUND);
    assert_non_null(strstr(error.text, "no such folder"));
    assert_int_equal(cleat_history_read(folder, &history, &error), CLEAT_ERR_NOT_FOUND);
    assert_non_null(strstr(error.text, folder));
    assert_ptr_equal(history, folder); /* untouched */
}

static void memory_may_run_out_anywhere(void **state) {
    (void)state;
    other_files_are_read(state);
    write_file("metrics.jsonl",
               "{\"kind\":\"train\",\"step\":1,\"loss\":1}\n{\"kind\":\"eval\",\"step\":1,\"loss\":1}\n");
    write_file("system.jsonl", "{\"kind\":\"start\",\"time\":1,\"schedule\":{}}\n"
                               "{\"kind\":\"event\",\"time\":2,\"name\":\"shorter_schedule\",\"schedule\":{}}\n{"
                               "\"kind\":\"sample\",\"time\":2,\"values\":{\"power\":1}}\n");
    int failures = 0;
    for (long n = 1; n < 400; ++n) {
        cleat_history *history = NULL;
        cleat_fail_allocation(n);
        cleat_status status = cleat_history_read(folder, &history, NULL);
        cleat_fail_allocation(0);
        failures += status == CLEAT_ERR_MEMORY;
        assert_true(!status || (status == CLEAT_ERR_MEMORY && !history));
        cleat_history_free(history);
    }
    assert_true(failures > 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(records_become_columns, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(damaged_lines_are_counted, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(tables_are_no_larger_than_their_file, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(later_records_replace_repeated_steps, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(names_are_unescaped, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(system_records_are_kept, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(other_files_are_read, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(a_locked_folder_is_running, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(the_last_process_is_found, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(folders_without_a_run_are_refused, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(memory_may_run_out_anywhere, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
