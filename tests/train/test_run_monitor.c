/* The records of training runs: complete, with sources, continued by resumed runs, and without effect on the
 * result. */
/* ctest: device with=slow_samples.c wrap=cleat_dataset_fill */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>
#include <cmocka.h>

#include "core/cpus.h"
#include "core/memory.h"
#include "device/device.h"
#include "monitor/monitor.h"
#include "monitor/routes.h"
#include "platform/files.h"
#include "platform/processes.h"
#include "slow_samples.h"
#include "tiny.h"
#include "train/trainer.h"

/* --- reading records ------------------------------------------------------------------------------------------ */

/* Returns all records of a run as a cJSON array; every line must be an object. */
static cJSON *read_records(const tiny *t, const char *run) {
    char name[64], path[TINY_PATH];
    size_t size;
    cJSON *records = cJSON_CreateArray();
    snprintf(name, sizeof name, "%s/system.jsonl", run);
    char *text = tiny_read(tiny_path(t, name, path), &size);
    assert_true(size > 0 && text[size - 1] == '\n');
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        cJSON *record = cJSON_ParseWithOpts(line, NULL, true);
        if (!record) fail_msg("no JSON: %s", line);
        cJSON_AddItemToArray(records, record);
    }
    cleat_free(text);
    return records;
}

static const char *text_of(const cJSON *record, const char *name) {
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(record, name));
    return text ? text : "";
}

static double number_of(const cJSON *record, const char *name) {
    return cJSON_GetNumberValue(cJSON_GetObjectItem(record, name)); /* NaN: none */
}

static bool is_kind(const cJSON *record, const char *kind) {
    return strcmp(text_of(record, "kind"), kind) == 0;
}

static int count_kind(const cJSON *records, const char *kind) {
    int count = 0;
    const cJSON *record;
    cJSON_ArrayForEach(record, records) count += is_kind(record, kind);
    return count;
}

/* Returns the event with this name; NULL: none. */
static const cJSON *find_event(const cJSON *records, const char *what, const char *name) {
    const cJSON *record;
    cJSON_ArrayForEach(record, records) if (is_kind(record, "event") && strcmp(text_of(record, "what"), what) == 0 &&
                                            strcmp(text_of(record, "name"), name) == 0) return record;
    return NULL;
}

static const cJSON *last_of(const cJSON *records) {
    return cJSON_GetArrayItem(records, cJSON_GetArraySize(records) - 1);
}

/* --- tests ---------------------------------------------------------------------------------------------------- */

/* Every sample has exactly the listed metrics, each of which has a source or is null. */
static void check_samples(const cJSON *records) {
    const cJSON *listed = cJSON_GetObjectItem(cJSON_GetArrayItem(records, 0), "figures"), *record, *item;
    assert_int_equal(cJSON_GetArraySize(listed), CLEAT_OWN_GAUGES + CLEAT_ROUTE_FIGURES);
    cJSON_ArrayForEach(record, records) {
        if (!is_kind(record, "sample")) continue;
        const cJSON *values = cJSON_GetObjectItem(record, "values");
        assert_int_equal(cJSON_GetArraySize(values), cJSON_GetArraySize(listed));
        cJSON_ArrayForEach(item, listed) {
            const cJSON *source = cJSON_GetObjectItem(item, "source");
            const cJSON *value = cJSON_GetObjectItem(values, text_of(item, "name"));
            assert_true(cJSON_IsNull(source) || text_of(item, "source")[0]);
            assert_true(text_of(item, "meaning")[0] && cJSON_GetObjectItem(item, "unit"));
            assert_true(cJSON_IsNull(value) || (cJSON_IsNumber(value) && !cJSON_IsNull(source)));
        }
    }
}

static void a_run_is_recorded(void **state) {
    const tiny *t = *state;
    tiny_result result = tiny_train_to(CLEAT_OK, t, "recorded", SET("run.monitor=0.1s", "train.epochs=6"), false, 0);
    cJSON *records = read_records(t, "recorded");
    const cJSON *start = cJSON_GetArrayItem(records, 0), *end = last_of(records), *record;
    assert_true(is_kind(start, "start") && is_kind(end, "end"));
    assert_int_equal(count_kind(records, "start"), 1);
    assert_int_equal(count_kind(records, "end"), 1);
    assert_true(count_kind(records, "sample") >= 1);
    assert_non_null(find_event(records, "checkpoint", "best"));
    assert_string_equal(text_of(end, "status"), "ok");
    assert_int_equal(number_of(end, "step"), result.report.steps);
    assert_int_equal(number_of(start, "step"), 0);
    assert_int_equal(number_of(start, "pid"), getpid());
    assert_int_equal(number_of(cJSON_GetObjectItem(start, "plan"), "bytes"), result.report.memory.planned);
    assert_int_equal(number_of(cJSON_GetObjectItem(start, "schedule"), "total_steps"), result.report.steps);
    assert_string_equal(text_of(cJSON_GetObjectItem(start, "model"), "family"), "rna_transformer");
    assert_true(number_of(cJSON_GetObjectItem(start, "rates"), "flops") > 0);
    assert_true(number_of(cJSON_GetObjectItem(start, "forecast"), "step_seconds") > 0);
    double before = 0;
    cJSON_ArrayForEach(record, records) {
        assert_true(number_of(record, "time") >= before);
        before = number_of(record, "time");
    }
    check_samples(records);
    cJSON_Delete(records);
}

/* The first record describes the run correctly. */
static void the_start_says_what_is_trained(void **state) {
    const tiny *t = *state;
    size_t values;
    tiny_result result = tiny_train_to(CLEAT_OK, t, "start", SET("data.buckets=16,32"), false, 0);
    cJSON *records = read_records(t, "start");
    const cJSON *start = cJSON_GetArrayItem(records, 0), *item;
    const cJSON *model = cJSON_GetObjectItem(start, "model"), *plan = cJSON_GetObjectItem(start, "plan");
    cleat_free(tiny_parameters(t, "start", &values));
    assert_int_equal(number_of(model, "parameters"), values);
    assert_string_equal(text_of(model, "precision"), "f32");
    assert_true(cJSON_IsBool(cJSON_GetObjectItem(model, "ascends")) && text_of(model, "metric")[0]);
    assert_int_equal(number_of(cJSON_GetObjectItem(start, "schedule"), "epochs"), 2);
    assert_int_equal(number_of(cJSON_GetObjectItem(start, "schedule"), "steps_per_epoch"), result.report.steps / 2);
    assert_int_equal(number_of(cJSON_GetObjectItem(start, "cpus"), "allowed"), cleat_cpus());
    assert_string_equal(text_of(start, "cleat"), cleat_version());
    const cJSON *device = cJSON_GetObjectItem(start, "device");
    assert_true(text_of(device, "name")[0] && text_of(device, "driver")[0] && text_of(device, "kind")[0]);
    assert_true(number_of(device, "compute_units") > 0 && number_of(device, "memory_total") > 0);
    assert_int_equal(number_of(plan, "recompute"), 0);
    double bytes = 0;
    cJSON_ArrayForEach(item, cJSON_GetObjectItem(plan, "categories")) bytes += item->valuedouble;
    assert_true(bytes >= number_of(plan, "bytes")); /* tensors of one category may reuse the memory of others */
    const cJSON *buckets = cJSON_GetObjectItem(plan, "micro_batches");
    assert_int_equal(cJSON_GetArraySize(buckets), 2);
    for (int i = 0; i < 2; ++i) {
        assert_int_equal(number_of(cJSON_GetArrayItem(buckets, i), "length"), i ? 32 : 16);
        const double global = number_of(cJSON_GetArrayItem(buckets, i), "global");
        const double micro = number_of(cJSON_GetArrayItem(buckets, i), "micro");
        assert_true(micro >= 1 && micro <= 2 && global >= micro && global <= 4);
    }
    cJSON_Delete(records);
}

static void every_auto_has_an_answer(void **state) {
    const tiny *t = *state;
    char name[TINY_PATH];
    size_t size;
    static const char *const reasons[][2] = {{"train.batch_size", "whole global batches fit: the plan needs "},
                                             {"train.gradient_accumulation_steps", "micro-batches allow"},
                                             {"train.precision", "half-precision products"},
                                             {"train.loss_scale", "used by f16 only"},
                                             {"train.gradient_checkpointing", "whole global batches fit without it"},
                                             {"data.buckets", "least padding"},
                                             {"loader.num_workers", "allowed CPUs"},
                                             {"run.device", "GPUs with dedicated memory first"}};
    tiny_train_to(CLEAT_OK, t, "auto",
                  SET("train.batch_size=auto", "loader.num_workers=auto", "run.device=auto", "data.buckets=auto",
                      "train.precision=auto", "train.loss_scale=auto", "train.gradient_checkpointing=auto"),
                  false, 0);
    cJSON *records = read_records(t, "auto");
    const cJSON *item, *answers = cJSON_GetObjectItem(cJSON_GetArrayItem(records, 0), "auto");
    char *resolved = tiny_read(tiny_path(t, "auto/resolved.ini", name), &size);
    int found = 0;
    cJSON_ArrayForEach(item, answers) {
        char line[160];
        const char *key = text_of(item, "key");
        assert_string_equal(text_of(item, "given"), "auto");
        assert_true(text_of(item, "became")[0] && strcmp(text_of(item, "became"), "auto") != 0);
        for (size_t i = 0; i < sizeof reasons / sizeof *reasons; ++i)
            if (strcmp(key, reasons[i][0]) == 0 && !strstr(text_of(item, "why"), reasons[i][1]))
                fail_msg("%s because of '%s'", key, text_of(item, "why"));
        if (strcmp(key, "run.device") == 0) continue; /* stays `auto` in resolved.ini */
        snprintf(line, sizeof line, "\n%s = %s\n", strchr(key, '.') + 1, text_of(item, "became"));
        if (!strstr(resolved, line)) fail_msg("resolved.ini has no '%s'", line);
        if (strcmp(key, "train.batch_size") == 0) {
            assert_non_null(strstr(text_of(item, "why"), "usable device memory"));
            ++found;
        }
        if (strcmp(key, "run.out") == 0) fail_msg("--out was given");
        found += strcmp(key, "loader.num_workers") == 0;
        if (strcmp(key, "train.effective_batch_size") == 0) fail_msg("it was given");
    }
    assert_int_equal(found, 2);
    cleat_free(resolved);
    cJSON_Delete(records);
}

static void the_monitor_does_not_change_a_run(void **state) {
    const tiny *t = *state;
    char path[TINY_PATH];
    struct stat found;
    tiny_train_to(CLEAT_OK, t, "watched", SET("run.monitor=0.1s"), false, 0);
    tiny_train_to(CLEAT_OK, t, "unwatched", SET("run.monitor=none"), false, 0);
    tiny_assert_same_run(t, "watched", "unwatched");
    assert_int_equal(stat(tiny_path(t, "watched/system.jsonl", path), &found), 0);
    assert_int_not_equal(stat(tiny_path(t, "unwatched/system.jsonl", path), &found), 0);
}

/* The first process is interrupted after one step; the second appends. */
static void a_resumed_run_appends(void **state) {
    const tiny *t = *state;
    char path[TINY_PATH];
    tiny_train_to(CLEAT_ERR_INTERRUPTED, t, "resumed", NULL, false, 1);
    cJSON *first = read_records(t, "resumed");
    assert_string_equal(text_of(last_of(first), "status"), "interrupted");
    assert_non_null(strstr(text_of(last_of(first), "text"), "--resume"));
    FILE *file = fopen(tiny_path(t, "resumed/system.jsonl", path), "a"); /* as a killed process may leave it */
    assert_non_null(file);
    fputs("{\"kind\":\"sam", file);
    fclose(file);
    tiny_train_to(CLEAT_OK, t, "resumed", NULL, true, 0);
    cJSON *both = read_records(t, "resumed");
    assert_int_equal(count_kind(both, "start"), 2);
    assert_int_equal(count_kind(both, "end"), 2);
    for (int i = 0; i < cJSON_GetArraySize(first); ++i)
        assert_true(cJSON_Compare(cJSON_GetArrayItem(first, i), cJSON_GetArrayItem(both, i), true));
    const cJSON *second = cJSON_GetArrayItem(both, cJSON_GetArraySize(first));
    assert_true(is_kind(second, "start"));
    assert_int_equal(number_of(second, "step"), 1);
    assert_non_null(find_event(both, "resume", "resumed"));
    assert_string_equal(text_of(last_of(both), "status"), "ok");
    /* a finished run is not recorded again */
    tiny_train_to(CLEAT_OK, t, "resumed", NULL, true, 0);
    cJSON *again = read_records(t, "resumed");
    assert_int_equal(cJSON_GetArraySize(again), cJSON_GetArraySize(both));
    cJSON_Delete(first);
    cJSON_Delete(both);
    cJSON_Delete(again);
}

static void a_failed_run_ends_with_its_error(void **state) {
    const tiny *t = *state;
    tiny_result result =
        tiny_train_to(CLEAT_ERR_NAN, t, "failed",
                      SET("train.learning_rate=3", "data.limit=4", "train.weight_decay=1", "train.warmup_steps=0",
                          "train.schedule=constant", "train.epochs=60", "model.head=absolute", "loss.coordinate=1",
                          "run.evaluate_every_epochs=none"), /* as in test_training.c: overflows after a few steps */
                      false, 0);
    cJSON *records = read_records(t, "failed");
    assert_string_equal(text_of(last_of(records), "status"), cleat_status_text(CLEAT_ERR_NAN));
    assert_string_equal(text_of(last_of(records), "text"), result.error.text);
    cJSON_Delete(records);
}

static void fail_a_launch(void *user, cleat_device *device) {
    int *opened = user;
    if (*opened == 0) device->fail_launch = 150;
    ++*opened;
}

/* Out of memory while training: an event and a second start, one end. */
static void a_smaller_plan_is_an_event(void **state) {
    const tiny *t = *state;
    char out[TINY_PATH];
    int opened = 0;
    cleat_error error = {0};
    cleat_train_report report;
    cleat_profile *profile = tiny_profile(t, SET("train.batch_size=auto", "data.buckets=32", "data.max_length=32"));
    cleat_train_options options = {.out = tiny_path(t, "smaller", out)};
    if (cleat_train_with_callback(profile, &options, fail_a_launch, &opened, &report, &error))
        fail_msg("%s", error.text);
    assert_int_equal(opened, 2);
    cJSON *records = read_records(t, "smaller");
    const cJSON *event = find_event(records, "memory", "smaller_plan");
    assert_non_null(event);
    assert_non_null(strstr(text_of(event, "text"), "CL_MEM_OBJECT_ALLOCATION_FAILURE"));
    assert_int_equal(count_kind(records, "start"), 2);
    assert_int_equal(count_kind(records, "end"), 1);
    cJSON_Delete(records);
    cleat_profile_destroy(profile);
}

/* The shares of idle time, weighted by the time between samples. */
static double mean_share(const cJSON *records, const char *name) {
    double sum = 0, all = 0, before = NAN;
    const cJSON *record;
    cJSON_ArrayForEach(record, records) {
        const double now = number_of(record, "time"), value = number_of(cJSON_GetObjectItem(record, "values"), name);
        if (!is_kind(record, "sample")) continue;
        if (!isnan(before) && !isnan(value)) {
            sum += value * (now - before);
            all += now - before;
        }
        before = now;
    }
    return sum / all;
}

/* A sample takes 20 ms, which is most of a step. */
static void a_slow_loader_is_the_cause(void **state) {
    if (!CLEAT_FORKS) skip(); /* wine delays both sides */
    const tiny *t = *state;
    for (int workers = 0; workers < 2; ++workers) {
        const char *run = workers ? "slow1" : "slow0";
        slow_samples_ns = 20000000;
        tiny_train_to(CLEAT_OK, t, run,
                      SET("run.monitor=0.2s", workers ? "loader.num_workers=1" : "loader.num_workers=0",
                          "train.epochs=8", "run.evaluate_every_epochs=none"),
                      false, 0);
        slow_samples_ns = 0;
        cJSON *records = read_records(t, run);
        const double loader = mean_share(records, "dry_loader"), dry = mean_share(records, "dry_share");
        print_message("%d threads: idle %.3f of the time, because of the loader %.3f\n", workers, dry, loader);
        assert_true(loader > 0.5 * dry && loader > 0.3);
        assert_true(mean_share(records, "dry_read") < loader);
        assert_true(mean_share(records, "dry_handovers") > 0.3);
        assert_true(mean_share(records, "workers") == workers);
        assert_true(mean_share(records, "loader_fill_seconds") > 0.3);
        cJSON_Delete(records);
    }
}

/* The commands of hints contain the run's options. */
static void hints_name_the_profile(void **state) {
    const tiny *t = *state;
    for (int known = 0; known < 2; ++known) {
        char out[TINY_PATH], resolved[TINY_PATH];
        cleat_error error = {0};
        cleat_train_report report = {0};
        cleat_profile *profile = tiny_profile(t, SET("run.monitor=1s"));
        const cleat_train_options options = {.out = tiny_path(t, known ? "named" : "unnamed", out),
                                             .command = "cleat train 'my rna.ini' --quiet --set train.seed=7",
                                             .profile_path = known ? "my rna.ini" : NULL};
        cleat_trainer trainer = {.settings = {.given = profile, .profile = profile},
                                 .run = {.options = &options, .report = &report}};
        if (cleat_trainer_open(&trainer, &error)) fail_msg("%s", error.text);
        assert_string_equal(trainer.monitor.profile,
                            known ? "my rna.ini" : tiny_path(t, "unnamed/resolved.ini", resolved));
        assert_string_equal(trainer.monitor.options, known ? " --set train.seed=7" : "");
        cleat_run_monitor_end(&trainer.monitor, 0, CLEAT_OK, "", 0);
        cleat_trainer_close(&trainer);
        cleat_profile_destroy(profile);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_is_recorded),          cmocka_unit_test(the_start_says_what_is_trained),
        cmocka_unit_test(every_auto_has_an_answer),   cmocka_unit_test(the_monitor_does_not_change_a_run),
        cmocka_unit_test(a_resumed_run_appends),      cmocka_unit_test(a_failed_run_ends_with_its_error),
        cmocka_unit_test(a_smaller_plan_is_an_event), cmocka_unit_test(a_slow_loader_is_the_cause),
        cmocka_unit_test(hints_name_the_profile),
    };
    tiny_require_device();
    return cmocka_run_group_tests(tests, tiny_setup, tiny_teardown);
}
