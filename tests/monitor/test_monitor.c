/* The monitor's thread without a device: records, attribution of idle time, rates of completed steps,
 * implausible loads. */
/* ctest: quick */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cjson/cJSON.h>
#include <cmocka.h>

#include "core/files.h"
#include "core/json.h"
#include "core/memory.h"
#include "monitor/monitor.h"
#include "platform/files.h"
#include "platform/threads.h"

enum { GAUGES = 4 };
static const cleat_gauge gauges[GAUGES] = {{"busy_device", "", "a driver", "load"},
                                           {"busy_own", "", "a driver", "own load"},
                                           {"power", "W", NULL, "power"},
                                           {"throttle_reason", "", "a driver", "bits"}};

/* A device that a test sets idle, busy, or complete. */
typedef struct rig {
    char folder[64], path[96];
    cleat_journal *journal;
    cleat_monitor *monitor;
    _Atomic bool is_idle, distrusted;
    _Atomic int64_t completed, marked;
    double values[GAUGES];
} rig;

static bool fake_is_idle(void *user) {
    return atomic_load(&((rig *)user)->is_idle);
}

static void fake_mark(void *user, int64_t number) {
    atomic_store(&((rig *)user)->marked, number);
}

static int64_t fake_marked(void *user) {
    return atomic_load(&((rig *)user)->completed);
}

static void fake_read(void *user, double *values) {
    rig *r = user;
    for (int i = 0; i < GAUGES; ++i) values[i] = i == 0 && atomic_load(&r->distrusted) ? NAN : r->values[i];
}

static void fake_distrust(void *user, size_t at) {
    if (at == 0) atomic_store(&((rig *)user)->distrusted, true);
}

static int make_folder(void **state) {
    rig *r = calloc(1, sizeof *r);
    if (!r) return -1;
    strcpy(r->folder, "/tmp/cleat-monitor-XXXXXX");
    if (!mkdtemp(r->folder)) return -1;
    snprintf(r->path, sizeof r->path, "%s/system.jsonl", r->folder);
    *state = r;
    return 0;
}

static int remove_folder(void **state) {
    rig *r = *state;
    unlink(r->path);
    rmdir(r->folder);
    free(r);
    return 0;
}

static void open_journal(rig *r) {
    cleat_error error;
    if (cleat_journal_open(r->path, &r->journal, &error)) fail_msg("%s", error.text);
}

static void start_with(rig *r, const cleat_hint_facts *facts) {
    cleat_error error;
    const cleat_monitor_config config = {.period = 0.1,
                                         .journal = r->journal,
                                         .distrust_seconds = 0.25,
                                         .step = 7,
                                         .steps_per_epoch = 10,
                                         .memory_planned = 1000,
                                         .facts = *facts,
                                         .gauges = gauges,
                                         .n_gauges = GAUGES,
                                         .calls = {fake_is_idle, fake_mark, fake_marked, fake_read, fake_distrust},
                                         .user = r};
    if (cleat_monitor_start(&config, &r->monitor, &error)) fail_msg("%s", error.text);
}

static void start(rig *r) {
    for (int i = 0; i < GAUGES; ++i) r->values[i] = NAN;
    open_journal(r);
    start_with(r, &(cleat_hint_facts){.profile = "p.ini", .folder = "run", .launches = NAN, .launch_seconds = NAN});
}

static void stop(rig *r) {
    cleat_monitor_stop(r->monitor);
    cleat_journal_close(r->journal);
}

static void pause_for(double seconds) {
    const struct timespec time = {.tv_sec = (time_t)seconds, .tv_nsec = (long)(fmod(seconds, 1) * 1e9)};
    nanosleep(&time, NULL);
}

/* Returns all records of a kind as a cJSON array; every line must be an object of a known kind. */
static cJSON *records(const rig *r, const char *kind) {
    char *text;
    size_t size;
    cJSON *found = cJSON_CreateArray();
    assert_int_equal(cleat_file_read(r->path, &text, &size, NULL), CLEAT_OK);
    assert_true(size == 0 || text[size - 1] == '\n');
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        cJSON *record = cJSON_ParseWithOpts(line, NULL, true);
        if (!record) fail_msg("no JSON: %s", line);
        const char *of = cJSON_GetStringValue(cJSON_GetObjectItem(record, "kind"));
        assert_non_null(of);
        assert_true(cJSON_GetNumberValue(cJSON_GetObjectItem(record, "time")) > 1.6e9);
        if (strcmp(of, kind) == 0)
            cJSON_AddItemToArray(found, record);
        else
            cJSON_Delete(record);
    }
    cleat_free(text);
    return found;
}

/* A value of sample `at`; NaN: null. The sample must have the value. */
static double value(const cJSON *samples, int at, const char *name) {
    const cJSON *item = cJSON_GetObjectItem(cJSON_GetObjectItem(cJSON_GetArrayItem(samples, at), "values"), name);
    if (!item) fail_msg("sample %d has no figure %s", at, name);
    return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

/* --- tests --- */

static void every_figure_is_in_every_sample(void **state) {
    rig *r = *state;
    start(r);
    pause_for(0.35);
    stop(r);
    cJSON *samples = records(r, "sample");
    assert_true(cJSON_GetArraySize(samples) >= 2);
    for (int i = 0; i < cJSON_GetArraySize(samples); ++i) {
        const cJSON *values = cJSON_GetObjectItem(cJSON_GetArrayItem(samples, i), "values");
        assert_int_equal(cJSON_GetArraySize(values), CLEAT_OWN_GAUGES + GAUGES);
        for (int k = 0; k < CLEAT_OWN_GAUGES; ++k) value(samples, i, cleat_own_gauges[k].name);
        assert_true(isnan(value(samples, i, "power")));            /* unknown is null */
        assert_true(isnan(value(samples, i, "steps_per_second"))); /* no step completed */
        assert_true(value(samples, i, "memory_planned") == 1000);
        assert_int_equal(cJSON_GetNumberValue(cJSON_GetObjectItem(cJSON_GetArrayItem(samples, i), "step")), 7);
    }
    cJSON_Delete(samples);
}

static void idle_time_has_its_reason(void **state) {
    static const struct {
        cleat_activity activity;
        const char *name;
    } rows[] = {{CLEAT_DOING_LOADER, "dry_loader"},
                {CLEAT_DOING_EVALUATE, "dry_evaluate"},
                {CLEAT_DOING_CHECKPOINT, "dry_checkpoint"},
                {CLEAT_DOING_READ, "dry_read"},
                {CLEAT_DOING_OTHER, "dry_other"}};
    enum { ROWS = sizeof rows / sizeof rows[0] };
    rig *r = *state;
    for (int i = 0; i < ROWS; ++i) {
        unlink(r->path);
        atomic_store(&r->is_idle, true);
        start(r);
        cleat_monitor_set_activity(r->monitor, rows[i].activity);
        pause_for(0.25);
        stop(r);
        cJSON *samples = records(r, "sample");
        for (int k = 0; k < ROWS; ++k) {
            const double share = value(samples, cJSON_GetArraySize(samples) - 1, rows[k].name);
            assert_true(k == i ? share > 0.99 : share == 0);
        }
        assert_true(value(samples, cJSON_GetArraySize(samples) - 1, "dry_share") > 0.99);
        cJSON_Delete(samples);
    }
}

static void a_busy_device_is_not_dry(void **state) {
    rig *r = *state;
    start(r);
    cleat_monitor_set_activity(r->monitor, CLEAT_DOING_LOADER);
    atomic_store(&r->is_idle, false);
    pause_for(0.25);
    /* during enqueueing, a queue without a whole graph is not empty */
    atomic_store(&r->is_idle, true);
    assert_int_equal(cleat_monitor_set_activity(r->monitor, CLEAT_DOING_ENQUEUE), CLEAT_DOING_LOADER);
    pause_for(0.25);
    stop(r);
    cJSON *samples = records(r, "sample");
    for (int i = 0; i < cJSON_GetArraySize(samples); ++i)
        assert_true(value(samples, i, "dry_share") < 0.5); /* at most one poll between the two settings */
    cJSON_Delete(samples);
}

/* Not the time since the start. */
static void a_sample_covers_its_own_interval(void **state) {
    rig *r = *state;
    start(r);
    cleat_monitor_set_activity(r->monitor, CLEAT_DOING_LOADER);
    pause_for(0.35);
    atomic_store(&r->is_idle, true);
    pause_for(0.45);
    stop(r);
    cJSON *samples = records(r, "sample");
    assert_true(value(samples, 0, "dry_loader") == 0);
    assert_true(value(samples, cJSON_GetArraySize(samples) - 1, "dry_loader") > 0.99);
    cJSON_Delete(samples);
}

static void enqueue(rig *r, int64_t step, double samples, double roof_seconds) {
    cleat_monitor_step(r->monitor, &(cleat_monitor_totals){.step = step,
                                                           .samples = samples,
                                                           .roof_seconds = roof_seconds,
                                                           .hand_overs = (double)(step - 7),
                                                           .dry_hand_overs = 0,
                                                           .fill_seconds = NAN,
                                                           .workers = 3,
                                                           .memory_allocated = 900});
}

/* Ten steps are enqueued at once and completed one by one: rates count completed steps. Pauses are never too
 * short, so a step's time has a tight lower bound but only a coarse upper bound. */
static void rates_are_those_of_completed_steps(void **state) {
    enum { STEPS = 10 };
    rig *r = *state;
    start(r);
    for (int i = 1; i <= STEPS; ++i) enqueue(r, 7 + i, 4.0 * i, 0.025 * i);
    assert_int_equal(atomic_load(&r->marked), STEPS);
    for (int i = 1; i <= STEPS / 2; ++i) {
        pause_for(0.05);
        atomic_store(&r->completed, i);
    }
    pause_for(0.25);
    stop(r);
    cJSON *samples = records(r, "sample");
    const int last = cJSON_GetArraySize(samples) - 1;
    double known = 0;
    for (int i = 0; i <= last; ++i) {
        const double seconds = value(samples, i, "step_seconds");
        if (isnan(seconds)) continue;
        ++known;
        assert_true(seconds > 0.02 && seconds < 2);
        assert_true(fabs(value(samples, i, "steps_per_second") * seconds - 1) < 1e-6);
        assert_true(fabs(value(samples, i, "samples_per_second") * seconds - 4) < 1e-6);
        assert_true(fabs(value(samples, i, "roofline_share") * seconds - 0.025) < 1e-6);
        assert_true(value(samples, i, "dry_handovers") == 0);
        assert_true(isnan(value(samples, i, "loader_fill_seconds")));
    }
    assert_true(known > 0);
    assert_true(isnan(value(samples, last, "step_seconds"))); /* none completed in this period */
    assert_int_equal(cJSON_GetNumberValue(cJSON_GetObjectItem(cJSON_GetArrayItem(samples, last), "step")),
                     7 + STEPS / 2);
    assert_true(value(samples, last, "workers") == 3 && value(samples, last, "memory_allocated") == 900);
    cJSON_Delete(samples);
}

/* An evaluation of half a second between two steps does not count as step time. */
static void evaluations_are_no_step_time(void **state) {
    rig *r = *state;
    start(r);
    enqueue(r, 8, 4, 0.01);
    atomic_store(&r->completed, 1);
    pause_for(0.1);
    cleat_activity before = cleat_monitor_set_activity(r->monitor, CLEAT_DOING_EVALUATE);
    pause_for(1);
    cleat_monitor_set_activity(r->monitor, before);
    pause_for(0.05);
    enqueue(r, 9, 8, 0.02);
    atomic_store(&r->completed, 2);
    pause_for(0.3);
    stop(r);
    cJSON *samples = records(r, "sample");
    double seconds = NAN;
    for (int i = 0; i < cJSON_GetArraySize(samples); ++i)
        if (!isnan(value(samples, i, "step_seconds"))) seconds = value(samples, i, "step_seconds");
    assert_true(seconds > 0.05 && seconds < 1);
    cJSON_Delete(samples);
}

static void a_stuck_load_is_distrusted_once(void **state) {
    rig *r = *state;
    atomic_store(&r->is_idle, true);
    open_journal(r);
    for (int i = 0; i < GAUGES; ++i) r->values[i] = 1;
    start_with(r, &(cleat_hint_facts){.profile = "p.ini", .folder = "run"});
    pause_for(1);
    stop(r);
    assert_true(atomic_load(&r->distrusted));
    cJSON *events = records(r, "event"), *samples = records(r, "sample");
    assert_int_equal(cJSON_GetArraySize(events), 1);
    const cJSON *event = cJSON_GetArrayItem(events, 0);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(event, "what")), "note");
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(event, "name")), "busy_device_distrusted");
    assert_true(value(samples, 0, "busy_device") == 1);
    assert_true(isnan(value(samples, cJSON_GetArraySize(samples) - 1, "busy_device")));
    assert_true(value(samples, cJSON_GetArraySize(samples) - 1, "busy_own") == 1);
    cJSON_Delete(events);
    cJSON_Delete(samples);
}

/* A load of 100 % is plausible while the device has work. */
static void a_true_load_is_kept(void **state) {
    rig *r = *state;
    open_journal(r);
    for (int i = 0; i < GAUGES; ++i) r->values[i] = 1;
    atomic_store(&r->is_idle, false);
    start_with(r, &(cleat_hint_facts){.profile = "p.ini", .folder = "run"});
    pause_for(0.8);
    stop(r);
    assert_false(atomic_load(&r->distrusted));
    cJSON *events = records(r, "event");
    assert_int_equal(cJSON_GetArraySize(events), 0);
    cJSON_Delete(events);
}

static void a_hint_is_given_once(void **state) {
    rig *r = *state;
    cleat_hint hint;
    int shown = 0;
    open_journal(r);
    for (int i = 0; i < GAUGES; ++i) r->values[i] = NAN;
    r->values[3] = 1; /* thermal */
    atomic_store(&r->is_idle, false);
    start_with(r, &(cleat_hint_facts){.profile = "p.ini", .folder = "run", .min_seconds = 0.01});
    for (int i = 1; i < 20; ++i) {
        enqueue(r, 7 + i, i, 0.04 * i);
        atomic_store(&r->completed, i);
        pause_for(0.05);
        while (cleat_monitor_take_hint(r->monitor, &hint)) {
            assert_string_equal(hint.name, "thermal");
            ++shown;
        }
    }
    stop(r);
    assert_int_equal(shown, 1);
    cJSON *events = records(r, "event");
    assert_int_equal(cJSON_GetArraySize(events), 1);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(cJSON_GetArrayItem(events, 0), "what")), "hint");
    cJSON_Delete(events);
}

static void nothing_happens_without_a_monitor(void **state) {
    cleat_hint hint;
    (void)state;
    assert_int_equal(cleat_monitor_set_activity(NULL, CLEAT_DOING_READ), CLEAT_DOING_OTHER);
    cleat_monitor_step(NULL, &(cleat_monitor_totals){.step = 1});
    assert_false(cleat_monitor_take_hint(NULL, &hint));
    cleat_monitor_stop(NULL);
}

/* --- the journal --- */

static void an_incomplete_line_is_removed(void **state) {
    static const char *const rows[][2] = {
        {"{\"a\":1}\n{\"b\":", "{\"a\":1}\n"}, {"{\"a\"", ""}, {"", ""}, {"{}\n", "{}\n"}};
    rig *r = *state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        char *text, wanted[64];
        size_t size;
        assert_int_equal(cleat_file_write(r->path, rows[i][0], strlen(rows[i][0]), NULL), CLEAT_OK);
        open_journal(r);
        cleat_string record = {0};
        cleat_string_add(&record, "{}");
        cleat_journal_write(r->journal, &record);
        cleat_journal_close(r->journal);
        snprintf(wanted, sizeof wanted, "%s{}\n", rows[i][1]);
        assert_int_equal(cleat_file_read(r->path, &text, &size, NULL), CLEAT_OK);
        assert_string_equal(text, wanted);
        cleat_free(text);
    }
}

/* Also if it exceeds one read. */
static void a_long_incomplete_line_is_removed(void **state) {
    rig *r = *state;
    cleat_string before = {0};
    char *text;
    size_t size;
    cleat_string_add(&before, "{}\n");
    for (int i = 0; i < 10000; ++i) cleat_string_add(&before, "x");
    assert_int_equal(cleat_file_write_text(r->path, &before, NULL), CLEAT_OK);
    open_journal(r);
    cleat_journal_close(r->journal);
    assert_int_equal(cleat_file_read(r->path, &text, &size, NULL), CLEAT_OK);
    assert_string_equal(text, "{}\n");
    cleat_free(text);
}

static void numbers_are_exact_or_null(void **state) {
    static const struct {
        double value;
        const char *wanted;
    } rows[] = {{0, "0"},  {17179869184.0, "17179869184"}, {NAN, "null"}, {INFINITY, "null"}, {0.25, "0.25"},
                {-3, "-3"}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        cleat_string text = {0};
        cleat_json_add_number(&text, rows[i].value);
        assert_string_equal(text.data, rows[i].wanted);
        cleat_string_free(&text);
    }
    cleat_string text = {0};
    json_add(&text, json_time(NULL, 1790000000.0125));
    assert_memory_equal(text.data, "1790000000.01", 13);
    cleat_string_free(&text);
}

static void a_journal_that_cannot_be_opened_is_an_error(void **state) {
    cleat_journal *journal = NULL;
    cleat_error error = {0};
    (void)state;
    assert_int_equal(cleat_journal_open("/nonexistent/system.jsonl", &journal, &error), CLEAT_ERR_NOT_FOUND);
    assert_non_null(strstr(error.text, "/nonexistent/system.jsonl"));
    assert_null(journal);
}

#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_FOLDER(every_figure_is_in_every_sample),
        WITH_FOLDER(idle_time_has_its_reason),
        WITH_FOLDER(a_busy_device_is_not_dry),
        WITH_FOLDER(a_sample_covers_its_own_interval),
        WITH_FOLDER(rates_are_those_of_completed_steps),
        WITH_FOLDER(evaluations_are_no_step_time),
        WITH_FOLDER(a_stuck_load_is_distrusted_once),
        WITH_FOLDER(a_true_load_is_kept),
        WITH_FOLDER(a_hint_is_given_once),
        cmocka_unit_test(nothing_happens_without_a_monitor),
        WITH_FOLDER(an_incomplete_line_is_removed),
        WITH_FOLDER(a_long_incomplete_line_is_removed),
        cmocka_unit_test(numbers_are_exact_or_null),
        cmocka_unit_test(a_journal_that_cannot_be_opened_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
