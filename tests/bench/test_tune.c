/* The kernel tuner on the available device: autotune requests, the tuning file, and its use by runs. */
/* ctest: device slow */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/tuner.h"
#include "cleat/bench.h"
#include "cleat/fit.h"
#include "cleat/ops.h"
#include "core/files.h"
#include "core/memory.h"
#include "device/device.h"
#include "models/model.h"
#include "plan_check.h"
#include "platform/files.h"
#include "platform/processes.h"
#include "session/session.h"
#include "session/tuned_cache.h"
#include "train/tiny.h"

static char folder[64]; /* this program's cache folder; each test begins without a tuning table */

/* Replaces the tuning files shipped with the library; each test begins with files that match no device. */
static char shipped_text[2][4096];
const cleat_embedded_file cleat_embedded_tuned[] = {
    {.name = "first", .text = shipped_text[0]}, {.name = "second", .text = shipped_text[1]}, {0}};

static void ship_nothing(void) {
    for (int i = 0; i < 2; ++i)
        snprintf(shipped_text[i], sizeof shipped_text[i],
                 "[tuned]\ndevice = d\nkernels = k\ndate = t\nmatch = no-such-card\nshape = none\n");
}

static int setup(void **state) {
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s/tuned'", folder);
    unsetenv("CLEAT_TUNED");
    ship_nothing();
    setenv("CLEAT_CACHE_DIR", folder, 1);
    return system(command);
}

static cleat_device *device_open(void) {
    const char *selector = getenv("CLEAT_TEST_DEVICE");
    cleat_device *device = NULL;
    cleat_error error = {0};
    if (cleat_device_open(selector ? selector : "auto", &device, &error) != CLEAT_OK) fail_msg("%s", error.text);
    return device;
}

static void must(cleat_status status, const cleat_error *error) {
    if (status) fail_msg("%s: %s", cleat_status_text(status), error->text);
}

/* --- selection ------------------------------------------------------------------------------------------------ */

static cleat_tune_node judged(double a, double b, double c) {
    cleat_tune_node node = {
        .count = 3,
        .candidates = {{.variant = "a", .seconds = a}, {.variant = "b", .seconds = b}, {.variant = "c", .seconds = c}}};
    cleat_tune_select(&node);
    return node;
}

static void the_default_needs_to_be_beaten(void **state) {
    (void)state;
    assert_int_equal(judged(1, 2, 3).chosen, 0);
    assert_int_equal(judged(1, 0.98, 3).chosen, 0); /* noise */
    assert_int_equal(judged(1, 0.9, 3).chosen, 1);
    assert_int_equal(judged(1, 0.9, 0.5).chosen, 2);
    assert_int_equal(judged(1, 0, 0).chosen, 0); /* no other candidate ran */
    assert_int_equal(judged(1, 0, 0.5).chosen, 2);
    assert_string_equal(judged(1, 2, 4).why, "the default, 2.00 x as fast as b");
    assert_string_equal(judged(1, 0, 0.5).why, "2.00 x as fast as the default a");
    assert_string_equal(judged(1, 0, 0).why, "the default; no other variant ran");
    assert_non_null(strstr(judged(1, 0.98, 0).why, "b is no more than 2.0 % faster"));
}

/* --- autotune requests ---------------------------------------------------------------------------------------- */

typedef struct stage {
    cleat_device *device;
    cleat_store *store;
    cleat_graph *graph;
    const cleat_node *node;
    int64_t length;
} stage;

/* An attention over `length` positions, for which fast kernels are several hundred times as fast as the plain one. */
static stage stage_open(int64_t length) {
    stage s = {.device = device_open(), .length = length};
    assert_int_equal(cleat_store_create(&s.store, NULL), CLEAT_OK);
    assert_int_equal(cleat_graph_create(s.store, "stage", &s.graph, NULL), CLEAT_OK);
    cleat_tensor *qkv = cleat_input(s.graph, "qkv", CLEAT_F32, 3, (int64_t[]){2, length, 3 * 64});
    cleat_tensor *lengths = cleat_input(s.graph, "lengths", CLEAT_I32, 1, (int64_t[]){2});
    cleat_attention(s.graph, qkv, lengths, 2);
    cleat_error error = {0};
    must(cleat_graph_status(s.graph, &error), &error);
    s.node = s.graph->nodes[0];
    return s;
}

static void stage_close(stage *s) {
    cleat_graph_destroy(s->graph);
    cleat_store_destroy(s->store);
    cleat_device_close(s->device);
}

static void full_lengths(void *user, const cleat_tensor *tensor, void *values) {
    const stage *s = user;
    if (strcmp(tensor->name, "lengths") != 0) return;
    for (int i = 0; i < 2; ++i) ((int32_t *)values)[i] = (int32_t)s->length;
}

/* A request with all usable variants, the plain one first: a bad default. */
static cleat_autotune_request plain_first(stage *s) {
    cleat_autotune_request request = {
        .device = s->device, .node = s->node, .seconds = 0.05, .input = full_lengths, .user = s};
    const cleat_device_facts *facts = cleat_device_get_facts(s->device);
    request.count = 1;
    for (const cleat_variant *v = s->node->op->variants; v->name; ++v) {
        if (v->refuse && v->refuse(s->node, facts)) continue;
        if (strcmp(v->name, "plain") == 0)
            request.variants[0] = v;
        else
            request.variants[request.count++] = v;
    }
    assert_non_null(request.variants[0]);
    return request;
}

static cleat_tune_node result_for(const cleat_autotune_request *request) {
    cleat_tune_node result = {.count = request->count};
    for (size_t i = 0; i < request->count; ++i) result.candidates[i].variant = request->variants[i]->name;
    return result;
}

static void a_bad_default_is_beaten(void **state) {
    (void)state;
    stage s = stage_open(256);
    cleat_autotune_request request = plain_first(&s);
    cleat_tune_node result = result_for(&request);
    cleat_error error = {0};
    if (request.count < 2) skip();
    must(cleat_autotune_run(&request, &result, &error), &error);
    assert_int_equal(cleat_device_allocated(s.device), 0);
    for (size_t i = 0; i < request.count; ++i) assert_true(result.candidates[i].seconds > 0);
    cleat_tune_select(&result);
    assert_true(result.chosen > 0);
    stage_close(&s);
}

static void what_is_out_is_not_run(void **state) {
    (void)state;
    stage s = stage_open(16);
    cleat_autotune_request request = plain_first(&s);
    cleat_tune_node result = result_for(&request);
    cleat_error error = {0};
    for (size_t i = 1; i < request.count; ++i) request.out[i] = true;
    must(cleat_autotune_run(&request, &result, &error), &error);
    assert_true(result.candidates[0].seconds > 0);
    for (size_t i = 1; i < request.count; ++i) assert_true(result.candidates[i].seconds == 0);
    stage_close(&s);
}

/* Binds a missing kernel. */
static void bind_broken(const cleat_node *node, cleat_binder *binder) {
    cleat_launch_kernel(binder, node, "arithmetic.cl", "no_such_kernel", CLEAT_F32);
    cleat_launch_items(binder, 1);
}
static const cleat_variant broken = {.name = "broken", .bind = bind_broken};

static void a_broken_candidate_is_left_out(void **state) {
    (void)state;
    stage s = stage_open(16);
    cleat_autotune_request request = plain_first(&s);
    cleat_error error = {0};
    request.variants[request.count++] = &broken;
    cleat_tune_node result = result_for(&request);
    must(cleat_autotune_run(&request, &result, &error), &error);
    assert_int_equal(cleat_device_allocated(s.device), 0);
    for (size_t i = 0; i + 1 < request.count; ++i) assert_true(result.candidates[i].seconds > 0);
    assert_true(result.candidates[request.count - 1].seconds == 0);
    assert_non_null(strstr(result.candidates[request.count - 1].error, "no_such_kernel"));

    request.variants[0] = &broken; /* the default must not fail */
    assert_int_not_equal(cleat_autotune_run(&request, &result, &error), CLEAT_OK);
    assert_non_null(strstr(error.text, "no_such_kernel"));
    assert_int_equal(cleat_device_allocated(s.device), 0);
    stage_close(&s);
}

static void memory_is_respected(void **state) {
    (void)state;
    stage s = stage_open(64);
    cleat_autotune_request request = plain_first(&s);
    cleat_tune_node result = result_for(&request);
    cleat_error error = {0};
    request.limit = 1000;
    assert_int_equal(cleat_autotune_run(&request, &result, &error), CLEAT_ERR_FIT);
    assert_int_equal(cleat_device_peak(s.device), 0);
    request.limit = 1 << 20; /* slightly more than 2 x 64 x 3 x 64 and 2 x 64 x 64 floats */
    must(cleat_autotune_run(&request, &result, &error), &error);
    assert_true(cleat_device_peak(s.device) > 0 && cleat_device_peak(s.device) <= request.limit);
    s.device->fail_buffer = -1;
    assert_int_equal(cleat_autotune_run(&request, &result, &error), CLEAT_ERR_DEVICE_MEMORY);
    assert_int_equal(cleat_device_allocated(s.device), 0);
    stage_close(&s);
}

/* --- the file ------------------------------------------------------------------------------------------------- */

static const char *path_of(const cleat_device *device, char path[TINY_PATH]) {
    cleat_error error = {0};
    must(cleat_tuned_path(device, path, TINY_PATH, &error), &error);
    return path;
}

static void write_table(const cleat_device *device, const cleat_tuning_table *tuning) {
    cleat_error error = {0};
    must(cleat_tuned_write(device, tuning, NULL, &error), &error);
}

static cleat_tuning_table *new_table(const cleat_device *device) {
    cleat_tuning_table *tuning = NULL;
    cleat_error error = {0};
    must(cleat_tuned_create(device, &tuning, &error), &error);
    must(cleat_tuning_set(tuning, "add f32[2] f32[2] -> f32[2]", "elements", &error), &error);
    return tuning;
}

typedef struct captured {
    int warnings, infos;
    char text[512]; /* the last message */
} captured;

static void capture_log(void *user, cleat_log_level level, const char *text) {
    captured *h = user;
    if (strncmp(text, "kernels:", 8) != 0) return;
    h->warnings += level == CLEAT_LOG_WARNING;
    h->infos += level == CLEAT_LOG_INFO;
    snprintf(h->text, sizeof h->text, "%.511s", text);
}

/* Loads the table and returns its number of entries (-1: not loaded), and captures the log. */
static int load(cleat_device *device, captured *h) {
    *h = (captured){0};
    cleat_set_log(capture_log, h, CLEAT_LOG_INFO);
    cleat_tuning_table *tuning = cleat_tuning_load(device);
    cleat_set_log(NULL, NULL, CLEAT_LOG_ERROR);
    int count = tuning ? (int)tuning->count : -1;
    cleat_tuning_destroy(tuning);
    return count;
}

static void a_file_is_kept_and_found(void **state) {
    (void)state;
    captured h;
    char path[TINY_PATH];
    cleat_device *device = device_open();
    assert_int_equal(load(device, &h), -1); /* no file: nothing is logged */
    assert_int_equal(h.warnings + h.infos, 0);
    cleat_tuning_table *tuning = new_table(device);
    write_table(device, tuning);
    assert_true(cleat_file_exists(path_of(device, path)));
    assert_int_equal(load(device, &h), 1);
    assert_int_equal(h.warnings, 0);
    setenv("CLEAT_TUNED", "never", 1);
    assert_int_equal(load(device, &h), -1);
    assert_int_equal(h.warnings, 0);
    setenv("CLEAT_TUNED", "auto", 1);
    assert_int_equal(load(device, &h), 1);
    cleat_tuning_destroy(tuning);
    cleat_device_close(device);
}

static void a_bad_file_is_not_used(void **state) {
    (void)state;
    captured h;
    char path[TINY_PATH];
    cleat_device *device = device_open();
    cleat_tuning_table *tuning = new_table(device);
    write_table(device, tuning);
    tiny_write(path_of(device, path), "[tuned]\nnonsense\n", 17);
    assert_int_equal(load(device, &h), -1);
    assert_int_equal(h.warnings, 1);
    snprintf(tuning->device, sizeof tuning->device, "a toaster");
    write_table(device, tuning);
    assert_int_equal(load(device, &h), -1);
    assert_int_equal(h.warnings, 1);
    cleat_tuning_destroy(tuning);
    tuning = new_table(device);
    /* a table of other kernels: logged, but not an error */
    tuning->kernels[0] = tuning->kernels[0] == '0' ? '1' : '0';
    write_table(device, tuning);
    assert_int_equal(load(device, &h), -1);
    assert_int_equal(h.warnings, 0);
    assert_int_equal(h.infos, 1);
    cleat_tuning_destroy(tuning);
    setenv("CLEAT_CACHE_DIR", "/proc/no/such/folder", 1);
    assert_int_equal(load(device, &h), -1);
    cleat_device_close(device);
}

/* --- shipped -------------------------------------------------------------------------------------------------- */

/* Writes the table as the i-th shipped file, with the tuner's own writer. */
static void ship(const cleat_device *device, const cleat_tuning_table *tuning, int i) {
    char path[TINY_PATH], *text = NULL;
    size_t size = 0;
    cleat_error error = {0};
    snprintf(path, sizeof path, "%s/shipped.tuned", folder);
    must(cleat_tuned_write(device, tuning, path, &error), &error);
    must(cleat_file_read(path, &text, &size, &error), &error);
    assert_true(size < sizeof shipped_text[i]);
    memcpy(shipped_text[i], text, size + 1);
    cleat_free(text);
}

static void shipped_entries_stand_behind_tuned_ones(void **state) {
    (void)state;
    captured h;
    cleat_error error = {0};
    cleat_device *device = device_open();
    cleat_tuning_table *tuning = new_table(device); /* add f32[2] is "elements" */
    must(cleat_tuning_set(tuning, "add f32[3] f32[3] -> f32[3]", "shipped", &error), &error);
    must(cleat_tuning_set(tuning, "add f32[2] f32[2] -> f32[2]", "shipped", &error), &error);
    tuning->kernels[0] ^= 1; /* other kernels: a shipped entry remains valid */
    ship(device, tuning, 0);
    cleat_tuning_destroy(tuning);
    assert_int_equal(load(device, &h), 2);
    assert_int_equal(h.warnings + h.infos, 0);

    tuning = new_table(device);
    write_table(device, tuning);
    cleat_tuning_destroy(tuning);
    tuning = cleat_tuning_load(device);
    assert_int_equal(tuning->count, 2);
    assert_string_equal(cleat_tuning_get(tuning, "add f32[2] f32[2] -> f32[2]"), "elements");
    assert_string_equal(cleat_tuning_get(tuning, "add f32[3] f32[3] -> f32[3]"), "shipped");
    assert_string_equal(tuning->shipped_file, "first");
    tuning->kernels[0] ^= 1; /* a local table tuned with other kernels is no longer used */
    write_table(device, tuning);
    cleat_tuning_destroy(tuning);
    tuning = cleat_tuning_load(device);
    assert_string_equal(cleat_tuning_get(tuning, "add f32[2] f32[2] -> f32[2]"), "shipped");
    cleat_tuning_destroy(tuning);

    setenv("CLEAT_TUNED", "never", 1);
    assert_int_equal(load(device, &h), -1);
    unsetenv("CLEAT_TUNED");
    setenv("CLEAT_CACHE_DIR", "/proc/no/such/folder", 1);
    assert_int_equal(load(device, &h), 2); /* also without a cache */
    cleat_device_close(device);
}

static void shipped_entries_are_for_their_device(void **state) {
    (void)state;
    captured h;
    cleat_device *device = device_open();
    const char *name = cleat_device_get_facts(device)->name;
    cleat_tuning_table *tuning = new_table(device);
    snprintf(tuning->match, sizeof tuning->match, "Toaster 9000");
    ship(device, tuning, 0);
    assert_int_equal(load(device, &h), -1);
    assert_int_equal(h.warnings + h.infos, 0);
    snprintf(tuning->match, sizeof tuning->match, "Toaster 9000|%s", name);
    ship(device, tuning, 1);
    assert_int_equal(load(device, &h), 1); /* the second one applies */
    snprintf(tuning->shape, sizeof tuning->shape, "CPU, groups of 7, 3 lanes");
    ship(device, tuning, 1);
    assert_int_equal(load(device, &h), -1);
    cleat_tuning_destroy(tuning);
    cleat_device_close(device);
}

static void bad_shipped_files_are_passed_over(void **state) {
    (void)state;
    captured h;
    cleat_device *device = device_open();
    cleat_tuning_table *tuning = new_table(device);
    snprintf(shipped_text[0], sizeof shipped_text[0], "[tuned]\nnonsense\n");
    ship(device, tuning, 1);
    assert_int_equal(load(device, &h), 1);
    assert_int_equal(h.warnings, 1);
    assert_non_null(strstr(h.text, "profiles/devices/first.tuned:2"));
    tuning->match[0] = 0;
    ship(device, tuning, 0);
    assert_int_equal(load(device, &h), 1);
    assert_int_equal(h.warnings, 1);
    assert_non_null(strstr(h.text, "must set match and shape"));
    cleat_tuning_destroy(tuning);
    cleat_device_close(device);
}

/* --- CLBlast -------------------------------------------------------------------------------------------------- */

/* All parameter sets are valid on any card with work-groups of 256 and 32 KiB of local memory, and no set
 * occurs twice. */
static void clblasts_sets_are_sound(void **state) {
    (void)state;
    const cleat_device_facts smallest = {.max_work_group = 256, .local_memory = 32768};
    size_t large = cleat_clblast_xgemm_sets(), direct = cleat_clblast_direct_sets();
    for (size_t i = 0; i < large * direct; ++i) {
        cleat_clblast_parameters set = cleat_clblast_set(i / direct, i % direct, 512);
        const char *reason = cleat_clblast_refuse(&set, &smallest);
        if (reason) fail_msg("sets %zu and %zu: %s", i / direct, i % direct, reason);
        assert_int_equal(set.values[CLEAT_CLBLAST_XGEMM_MIN_INDIRECT_SIZE], 512);
        for (size_t k = 0; k < i; ++k) {
            cleat_clblast_parameters other = cleat_clblast_set(k / direct, k % direct, 512);
            assert_memory_not_equal(&set, &other, sizeof set);
        }
    }
}

static void clblasts_parameters_are_applied(void **state) {
    (void)state;
    captured h;
    cleat_device *device = device_open();
    cleat_tuning_table *tuning = new_table(device);
    tuning->has_clblast = true;
    tuning->clblast = cleat_clblast_set(1, 0, 64);
    write_table(device, tuning);
    assert_false(device->clblast_tuned);
    assert_int_equal(load(device, &h), 1);
    assert_true(device->clblast_tuned);
    assert_memory_equal(&device->clblast, &tuning->clblast, sizeof device->clblast);
    assert_int_equal(h.warnings, 0);

    cleat_device *other = device_open(); /* a device that cannot run them uses none, and logs it */
    other->facts.local_memory = 1000;
    assert_int_equal(load(other, &h), 1);
    assert_false(other->clblast_tuned);
    assert_int_equal(h.warnings, 1);
    assert_non_null(strstr(h.text, "local memory"));
    cleat_tuning_destroy(tuning);
    cleat_device_close(other);
    cleat_device_close(device);
}

/* --- a profile ------------------------------------------------------------------------------------------------ */

typedef struct bench {
    cleat_profile *profile;
    cleat_model *model;
    cleat_device *device;
    cleat_lengths lengths;
} bench;

static bench bench_open(const tiny *t) {
    bench b = {.profile = tiny_profile(t, SET("train.batch_size=auto")), .device = device_open()};
    cleat_error error = {0};
    bool known;
    must(cleat_profile_create_model(b.profile, &b.model, &error), &error);
    must(cleat_fit_lengths(b.profile, b.model, &b.lengths, &known, &error), &error);
    return b;
}

static void bench_close(bench *b) {
    cleat_device_close(b->device);
    cleat_model_destroy(b->model);
    cleat_profile_destroy(b->profile);
}

static cleat_session *session_of(bench *b) {
    cleat_session *session = NULL;
    cleat_error error = {0};
    cleat_fit_request request = cleat_fit_request_for(b->profile, b->model, CLEAT_FOR_TRAINING, &b->lengths,
                                                      cleat_device_get_facts(b->device), NULL);
    must(cleat_session_fit(b->device, &request, &session, &error), &error);
    must(cleat_plan_check(session->work->plan, &error), &error);
    assert_int_equal(cleat_device_allocated(b->device), cleat_plan_bytes(session->work->plan));
    return session;
}

static void assert_sound(const cleat_tune_report *report) {
    assert_true(report->count > 3);
    for (size_t i = 0; i < report->count; ++i) {
        const cleat_tune_node *node = &report->nodes[i];
        assert_true(node->count >= 2 && node->chosen < node->count && node->length > 0 && node->micro_batch_size > 0);
        assert_true(node->why[0] != 0 && strstr(node->key, " ->"));
        if (node->measured) assert_true(node->candidates[0].seconds > 0);
        for (size_t k = 0; k < node->count; ++k)
            assert_true((node->candidates[k].seconds > 0) + (node->candidates[k].error[0] != 0) <= 1);
        for (size_t k = 0; k < i; ++k) assert_string_not_equal(node->key, report->nodes[k].key);
    }
    assert_true(report->tuned_seconds > 0 && report->tuned_seconds <= report->default_seconds);
    assert_true(report->tuned_bytes > 0 && report->default_bytes > 0 && report->length > 0);
}

static cleat_tune_report tune(const cleat_profile *profile) {
    char path[TINY_PATH];
    cleat_tune_report report;
    snprintf(path, sizeof path, "%s/told.tuned", folder);
    cleat_tune_options options = {.seconds = 0.002, .ship = path};
    cleat_error error = {0};
    must(cleat_tune(profile, &options, &report, &error), &error);
    return report;
}

/* The number of measured keys; the file has each one's selection. */
static size_t count_saved(const cleat_tune_report *report, const cleat_tuning_table *tuning) {
    size_t measured = 0;
    for (size_t i = 0; i < report->count; ++i) {
        const cleat_tune_node *node = &report->nodes[i];
        if (!node->measured) continue;
        ++measured;
        assert_string_equal(cleat_tuning_get(tuning, node->key), node->candidates[node->chosen].variant);
    }
    return measured;
}

static void tuning_is_kept_and_used(void **state) {
    bench b = bench_open(*state);
    char path[TINY_PATH];
    cleat_tune_report report = tune(b.profile);
    assert_sound(&report);
    assert_string_equal(report.path, path_of(b.device, path));
    cleat_tuning_table *tuning = cleat_tuning_load(b.device);
    assert_non_null(tuning);
    assert_int_equal(tuning->count, report.entries);
    size_t measured = count_saved(&report, tuning);
    assert_int_equal(measured, tuning->count);
    assert_string_equal(report.before, "the defaults");

    char told[TINY_PATH], *text[2] = {NULL};
    size_t size = 0;
    snprintf(told, sizeof told, "%s/told.tuned", folder);
    assert_int_equal(cleat_file_read(path, &text[0], &size, NULL), CLEAT_OK);
    assert_int_equal(cleat_file_read(told, &text[1], &size, NULL), CLEAT_OK);
    assert_string_equal(text[0], text[1]);
    cleat_free(text[0]);
    cleat_free(text[1]);
    cleat_session *session = session_of(&b);
    assert_int_equal(cleat_plan_bytes(session->work->plan), report.tuned_bytes);
    assert_int_equal(cleat_tuning_count_use(tuning, session->work->plan).gone, 0);
    cleat_session_destroy(session);
    cleat_tuning_destroy(tuning);
    cleat_tune_free(&report);

    /* Another profile's entries are added to the existing ones. */
    size_t before = measured;
    cleat_profile *wider = tiny_profile(*state, SET("model.d_model=32"));
    report = tune(wider);
    assert_true(report.entries > before);
    assert_non_null(strstr(report.before, "choices tuned here on 20"));
    cleat_tune_free(&report);
    cleat_profile_destroy(wider);
    bench_close(&b);
}

/* Another process tunes concurrently, and writes its table after this one has its first result. */
typedef struct neighbour {
    const cleat_device *device;
    size_t calls, in_file; /* at the last call */
} neighbour;

static void write_beside(void *user, const cleat_tune_node *node) {
    (void)node;
    neighbour *other = user;
    cleat_tuning_table *file = cleat_tuned_read(other->device);
    other->in_file = file ? file->count : 0;
    cleat_tuning_destroy(file);
    if (other->calls++ > 0) return;
    cleat_tuning_table *tuning = new_table(other->device);
    write_table(other->device, tuning);
    cleat_tuning_destroy(tuning);
}

static void answers_are_kept_at_once_and_beside_others(void **state) {
    bench b = bench_open(*state);
    neighbour other = {.device = b.device};
    cleat_tune_report report;
    cleat_error error = {0};
    cleat_tune_options options = {.seconds = 1e-3, .node = write_beside, .user = &other};
    must(cleat_tune(b.profile, &options, &report, &error), &error);
    cleat_tuning_table *tuning = cleat_tuning_load(b.device);
    size_t measured = count_saved(&report, tuning);
    assert_true(other.calls == report.count && measured > 1);
    assert_int_equal(other.in_file, measured - report.nodes[report.count - 1].measured + 1);
    assert_int_equal(tuning->count, measured + 1);
    assert_string_equal(cleat_tuning_get(tuning, "add f32[2] f32[2] -> f32[2]"), "elements");
    cleat_tuning_destroy(tuning);
    cleat_tune_free(&report);
    bench_close(&b);
}

typedef const cleat_variant *(*pick_fn)(const cleat_node *node, const cleat_device_facts *facts);

/* Selects the last usable variant, which the tuner would not select. */
static const cleat_variant *last(const cleat_node *node, const cleat_device_facts *facts) {
    const cleat_variant *found = NULL;
    for (const cleat_variant *v = node->op->variants; v->name; ++v)
        if (!(v->refuse && v->refuse(node, facts))) found = v;
    return found;
}

/* Writes a table that lists `pick` for every node with several variants, as if tuned. */
static void write_picked(bench *b, pick_fn pick) {
    cleat_session *session = session_of(b);
    const cleat_plan *plan = session->work->plan;
    cleat_tuning_table *tuning = NULL;
    cleat_error error = {0};
    must(cleat_tuned_create(b->device, &tuning, &error), &error);
    for (size_t g = 0; g < plan->layout_count; ++g)
        for (size_t i = 0; i < plan->layouts[g].graph->node_count; ++i) {
            const cleat_node *node = plan->layouts[g].graph->nodes[i];
            char key[CLEAT_TUNING_KEY];
            if (!cleat_op_is_tunable(node->op)) continue;
            cleat_tuning_key(node, key);
            must(cleat_tuning_set(tuning, key, pick(node, &plan->facts)->name, &error), &error);
        }
    write_table(b->device, tuning);
    cleat_tuning_destroy(tuning);
    cleat_session_destroy(session);
}

static void runs_and_plans_follow_the_table(void **state) {
    const tiny *t = *state;
    bench b = bench_open(t);
    cleat_error error = {0};
    cleat_fit_report report;
    tiny_train_to(CLEAT_OK, t, "default", SET("train.batch_size=auto"), false, 0);
    write_picked(&b, last);
    cleat_tuning_table *tuning = cleat_tuning_load(b.device);
    cleat_session *session = session_of(&b);
    const cleat_plan *plan = session->work->plan;
    size_t others = 0;
    for (size_t g = 0; g < plan->layout_count; ++g)
        for (size_t i = 0; i < plan->layouts[g].graph->node_count; ++i) {
            const cleat_node *node = plan->layouts[g].graph->nodes[i];
            const cleat_variant *chosen = plan->layouts[g].variants[i];
            char key[CLEAT_TUNING_KEY];
            if (!cleat_op_is_tunable(node->op)) continue;
            cleat_tuning_key(node, key);
            assert_string_equal(chosen->name, cleat_tuning_get(tuning, key));
            others += chosen != cleat_choose_first(NULL, node, &plan->facts);
        }
    assert_true(others > 0);
    /* `cleat plan` reports the bytes that the run allocates. */
    must(cleat_fit_describe(b.profile, cleat_device_get_facts(b.device), NULL, tuning, 0, &report, &error), &error);
    assert_int_equal(report.bytes, cleat_plan_bytes(plan));
    cleat_session_destroy(session);
    cleat_tuning_destroy(tuning);

    /* The same run up to rounding, and bit-identical without the table. */
    tiny_train_to(CLEAT_OK, t, "tuned", SET("train.batch_size=auto"), false, 0);
    double distance = tiny_distance(t, "default", "tuned");
    if (!(distance < 1e-3)) fail_msg("other kernels give another result: %g", distance);
    setenv("CLEAT_TUNED", "never", 1);
    tiny_train_to(CLEAT_OK, t, "never", SET("train.batch_size=auto"), false, 0);
    tiny_assert_same_run(t, "default", "never");
    bench_close(&b);
}

/* A table of removed variants plans and runs like no table. */
static void variants_may_go(void **state) {
    bench b = bench_open(*state);
    captured h = {0};
    write_picked(&b, last);
    cleat_tuning_table *tuning = cleat_tuning_load(b.device);
    for (size_t i = 0; i < tuning->count; ++i)
        snprintf(tuning->items[i].variant, sizeof tuning->items[i].variant, "turbo");
    write_table(b.device, tuning);
    cleat_set_log(capture_log, &h, CLEAT_LOG_INFO);
    cleat_session *session = session_of(&b);
    cleat_set_log(NULL, NULL, CLEAT_LOG_ERROR);
    assert_int_equal(h.warnings, 1);
    cleat_tuning_use use = cleat_tuning_count_use(tuning, session->work->plan);
    assert_true(use.gone > 0 && use.gone == use.listed);
    int64_t bytes = cleat_plan_bytes(session->work->plan);
    cleat_session_destroy(session);
    setenv("CLEAT_TUNED", "never", 1);
    session = session_of(&b);
    assert_int_equal(cleat_plan_bytes(session->work->plan), bytes);
    cleat_session_destroy(session);
    cleat_tuning_destroy(tuning);
    bench_close(&b);
}

/* An op that computes nothing, with a variant that needs a large workspace. */
static cleat_status infer_idle(cleat_node *node, cleat_error *error) {
    int64_t one = 1;
    return cleat_set_output(node, 0, CLEAT_F32, 1, &one, error);
}
static int64_t workspace_large(const cleat_node *node, const cleat_device_facts *facts) {
    (void)node, (void)facts;
    return 64 << 20;
}
static void bind_nothing(const cleat_node *node, cleat_binder *binder) {
    (void)node, (void)binder;
}
static const cleat_variant idle_variants[] = {{.name = "small", .bind = bind_nothing},
                                              {.name = "large", .workspace = workspace_large, .bind = bind_nothing},
                                              {0}};
static const cleat_op idle = {.name = "idle", .infer = infer_idle, .variants = idle_variants};

extern const cleat_model_class cleat_rna_transformer;

static void build_with_idle(const cleat_model *model, cleat_graph *graph, cleat_mode mode, int64_t batch,
                            int64_t length, cleat_model_graph *built) {
    cleat_rna_transformer.build(model, graph, mode, batch, length, built);
    cleat_emit(graph, &idle, NULL, 0, &built->output, 1);
}

/* A card that exactly fits the plan of the default kernels: kernels that require more workspace must not
 * prevent the profile from running. */
static void tuned_kernels_do_not_cost_the_fit(void **state) {
    bench b = bench_open(*state);
    cleat_model_class with_idle = cleat_rna_transformer;
    cleat_error error = {0};
    cleat_fit_request request = cleat_fit_request_for(b.profile, b.model, CLEAT_FOR_TRAINING, &b.lengths,
                                                      cleat_device_get_facts(b.device), NULL);
    cleat_fit_result plain = {0}, large = {0}, tight = {0};
    with_idle.build = build_with_idle;
    b.model->type = &with_idle;
    must(cleat_fit_search(&request, &plain, NULL, NULL, 0, &error), &error);
    write_picked(&b, last);
    cleat_tuning_table *tuning = cleat_tuning_load(b.device);
    request.tuning = tuning;
    must(cleat_fit_search(&request, &large, NULL, NULL, 0, &error), &error);
    int64_t bytes = cleat_plan_bytes(plain.work->plan);
    assert_true(cleat_plan_bytes(large.work->plan) > bytes);
    request.limit = bytes;
    request.exactly = true;
    must(cleat_fit_search(&request, &tight, NULL, NULL, 0, &error), &error);
    assert_int_equal(cleat_plan_bytes(tight.work->plan), bytes);
    request.limit = bytes / 2; /* a profile that fits neither is refused */
    cleat_fit_result none = {0};
    assert_int_equal(cleat_fit_search(&request, &none, NULL, NULL, 0, &error), CLEAT_ERR_FIT);
    cleat_fit_result_clear(&plain);
    cleat_fit_result_clear(&large);
    cleat_fit_result_clear(&tight);
    cleat_tuning_destroy(tuning);
    bench_close(&b);
}

static void errors_are_themselves(void **state) {
    const tiny *t = *state;
    cleat_tune_report report;
    cleat_error error = {0};
    cleat_profile *profile = tiny_profile(t, SET("run.device=no such device"));
    assert_int_equal(cleat_tune(profile, NULL, &report, &error), CLEAT_ERR_NO_DEVICE);
    assert_int_equal(report.count, 0);
    cleat_tune_free(&report);
    cleat_profile_destroy(profile);
    setenv("CLEAT_DEVICE_MEMORY_LIMIT", "20000", 1);
    profile = tiny_profile(t, NULL);
    assert_int_equal(cleat_tune(profile, NULL, &report, &error), CLEAT_ERR_FIT);
    cleat_tune_free(&report);
    unsetenv("CLEAT_DEVICE_MEMORY_LIMIT");
    setenv("CLEAT_CACHE_DIR", "/proc/no/such/folder", 1);
    cleat_tune_options options = {.seconds = 1e-3};
    assert_int_not_equal(cleat_tune(profile, &options, &report, &error), CLEAT_OK);
    assert_non_null(strstr(error.text, "saving the choices"));
    assert_true(report.count > 0);
    cleat_tune_free(&report);
    cleat_profile_destroy(profile);
}

int main(void) {
    const struct CMUnitTest pure[] = {cmocka_unit_test(the_default_needs_to_be_beaten),
                                      cmocka_unit_test(clblasts_sets_are_sound)};
    int failed = cmocka_run_group_tests(pure, NULL, NULL);
    tiny_require_device();
    const struct CMUnitTest alone[] = {
        cmocka_unit_test_setup(a_bad_default_is_beaten, setup),
        cmocka_unit_test_setup(what_is_out_is_not_run, setup),
        cmocka_unit_test_setup(a_broken_candidate_is_left_out, setup),
        cmocka_unit_test_setup(memory_is_respected, setup),
        cmocka_unit_test_setup(a_file_is_kept_and_found, setup),
        cmocka_unit_test_setup(a_bad_file_is_not_used, setup),
        cmocka_unit_test_setup(shipped_entries_stand_behind_tuned_ones, setup),
        cmocka_unit_test_setup(shipped_entries_are_for_their_device, setup),
        cmocka_unit_test_setup(bad_shipped_files_are_passed_over, setup),
        cmocka_unit_test_setup(clblasts_parameters_are_applied, setup),
    };
    const struct CMUnitTest profiles[] = {
        cmocka_unit_test_setup(tuning_is_kept_and_used, setup),
        cmocka_unit_test_setup(answers_are_kept_at_once_and_beside_others, setup),
        cmocka_unit_test_setup(runs_and_plans_follow_the_table, setup),
        cmocka_unit_test_setup(variants_may_go, setup),
        cmocka_unit_test_setup(tuned_kernels_do_not_cost_the_fit, setup),
        cmocka_unit_test_setup(errors_are_themselves, setup),
    };
    snprintf(folder, sizeof folder, "/tmp/cleat-tune-XXXXXX");
    if (!mkdtemp(folder)) return 1;
    failed += cmocka_run_group_tests(alone, NULL, NULL);
    failed += cmocka_run_group_tests(profiles, tiny_setup, tiny_teardown);
    char command[128];
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    return system(command) == 0 ? failed : 1;
}
