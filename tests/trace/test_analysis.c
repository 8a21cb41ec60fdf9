/* The analysis of a recording with made-up times: sums, gaps, roofs and memory are exact; out of memory is
 * reported. */
/* ctest: device */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/memory.h"
#include "exec/exec.h"
#include "fit/estimate.h"
#include "trace/trace.h"
#include "train/tiny.h"

enum { MAX_COMMANDS = 2000, START = 1000000, RUN = 10000, GAP = 1000, LONG = 500000, LONGER = 700000, PAUSE = 3000000 };

typedef struct rig {
    const tiny *t;
    cleat_profile *profile;
    cleat_model *model;
    cleat_device *device;
    cleat_session *session;
    cleat_rates rates;
    cleat_recorder recorder;
    cleat_command commands[MAX_COMMANDS];
    cleat_traced_step steps[3];
    cleat_span spans[4];
    cleat_recording recording;
    uint64_t now;    /* nanoseconds of the device; its zero is the host's */
    int64_t kernels; /* of the active steps */
} rig;

static rig r;

static void ok(cleat_status status, const cleat_error *error) {
    if (status) fail_msg("%s", error->text);
}

static int open_session(void **state) {
    cleat_error error;
    const cleat_bucket bucket = {.length = 24, .global_batch_size = 4, .micro_batch_size = 4};
    r.t = *state;
    r.profile = tiny_profile(r.t, NULL);
    ok(cleat_profile_create_model(r.profile, &r.model, &error), &error);
    ok(cleat_device_open(r.profile->run.device, &r.device, &error), &error);
    const cleat_session_spec spec = {
        .device = r.device, .profile = r.profile, .model = r.model, .buckets = &bucket, .n_buckets = 1};
    ok(cleat_session_create(&spec, &r.session, &error), &error);
    /* threads that still build programs would take the allocations that a test makes fail */
    for (size_t i = 0; i < r.session->exec->program_count; ++i) {
        cl_program program;
        ok(cleat_programs_get(r.session->exec->programs, i, &program, &error), &error);
    }
    r.rates = (cleat_rates){.flops = 1e12, .bytes = 1e10, .launch_seconds = 1e-9, .source = "a test"};
    return 0;
}

static int close_session(void **state) {
    (void)state;
    cleat_session_destroy(r.session);
    cleat_device_close(r.device);
    cleat_model_destroy(r.model);
    cleat_profile_destroy(r.profile);
    return 0;
}

/* --- a recording ---------------------------------------------------------------------------------------------- */

/* A command that begins `gap` after the previous one and was enqueued `ahead` earlier. */
static void add(cleat_command_kind kind, size_t graph, const void *subject, uint64_t gap, uint64_t ahead) {
    assert_true(r.recorder.count < MAX_COMMANDS);
    cleat_command *command = &r.commands[r.recorder.count++];
    r.now += gap;
    double called = 1e-9 * (double)(r.now - ahead);
    *command = (cleat_command){.kind = kind,
                               .graph = graph,
                               .subject = subject,
                               .batch = kind == CLEAT_COMMAND_UPLOAD ? 7 : -1,
                               .called = called,
                               .returned = called,
                               .started = r.now,
                               .ended = r.now + RUN};
    if (kind != CLEAT_COMMAND_UPLOAD) r.now += RUN; /* the other queue */
}

/* `first_gap` precedes the first kernel, GAP all others. */
static void add_graph(size_t graph, uint64_t first_gap, uint64_t ahead, bool counts) {
    const cleat_binder *binder = &r.session->exec->graphs[graph].binder;
    for (size_t i = 0; i < binder->count; ++i) {
        const cleat_launch *launch = &binder->launches[i];
        add(launch->kind == CLEAT_LAUNCH_SGEMM ? CLEAT_COMMAND_SGEMM : CLEAT_COMMAND_KERNEL, graph, launch,
            i ? GAP : first_gap, ahead);
        r.kernels += counts;
    }
}

/* A warm-up step, an active one, and an active one after a pause of the trainer. The first active step's
 * update begins late because the host enqueued it late; the second's was enqueued in time. */
static void make_recording(void) {
    const size_t train = r.session->work->train[0].index, update = r.session->work->update.index;
    r.recorder = (cleat_recorder){.commands = r.commands};
    r.now = START;
    r.kernels = 0;
    for (int s = 0; s < 3; ++s) {
        cleat_traced_step *step = &r.steps[s];
        *step = (cleat_traced_step){
            .step = 4 + s, .first_command = r.recorder.count, .interrupted = s == 2, .active = s > 0};
        if (s == 2) r.now += PAUSE;
        step->begin = 1e-9 * (double)r.now;
        add(CLEAT_COMMAND_UPLOAD, train, "g", 0, 0);
        add(CLEAT_COMMAND_COPY, train, "g", GAP, 0);
        add_graph(train, GAP, 100, s > 0);
        if (s == 1)
            r.spans[0] = (cleat_span){.name = "waiting for the loader",
                                      .number = -1,
                                      .start = 1e-9 * (double)r.now,
                                      .end = 1e-9 * (double)(r.now + LONG)};
        add_graph(update, s ? s == 1 ? LONG : LONGER : GAP, s == 2 ? 2 * LONGER : 0, s > 0);
        step->last_command = r.recorder.count;
        step->end = 1e-9 * (double)r.now;
    }
    r.spans[1] = (cleat_span){.name = "filling a batch", .thread = 1, .number = 7, .start = 1e-9, .end = 2e-9};
    r.recording = (cleat_recording){.session = r.session,
                                    .rates = &r.rates,
                                    .recorder = &r.recorder,
                                    .steps = r.steps,
                                    .n_steps = 3,
                                    .spans = r.spans,
                                    .n_spans = 2,
                                    .clocks = {{.source = "a test"}, {.device = 1000000000, .host = 1}},
                                    .resolution = 1,
                                    .unprofiled_seconds = NAN};
}

static cleat_analysis analysed(void) {
    cleat_analysis analysis;
    cleat_error error;
    ok(cleat_analysis_create(&r.recording, &analysis, &error), &error);
    return analysis;
}

static void expect_seconds(double value, double expected) {
    if (!(fabs(value - expected) <= 1e-12)) fail_msg("%.12g s instead of %.12g s", value, expected);
}

/* --- tests ---------------------------------------------------------------------------------------------------- */

static void test_sums(void **state) {
    (void)state;
    make_recording();
    cleat_analysis analysis = analysed();
    double kernels = 0, calls = 0, parts = 0, gaps = 1e-9 * ((double)(r.kernels - 2) * GAP + LONG + LONGER + 2 * GAP);
    for (size_t i = 0; i < analysis.kernels.count; ++i) {
        kernels += analysis.kernels.rows[i].seconds;
        calls += (double)analysis.kernels.rows[i].calls;
    }
    for (int p = 0; p < CLEAT_PARTS; ++p) parts += analysis.parts[p];
    assert_int_equal(analysis.active, 2);
    assert_int_equal(analysis.first_step, 5);
    assert_true(calls == (double)r.kernels);
    expect_seconds(kernels, 1e-9 * RUN * (double)r.kernels);
    expect_seconds(analysis.parts[CLEAT_PART_COPIES], 1e-9 * 2 * RUN);
    expect_seconds(analysis.parts[CLEAT_PART_IDLE], gaps); /* the pause does not count: the step begins after it */
    expect_seconds(analysis.seconds, parts);
    size_t forward = r.session->work->train[0].graph->forward_nodes, launches = 0;
    const size_t *first = r.session->exec->graphs[r.session->work->train[0].index].first;
    launches = first[forward];
    expect_seconds(analysis.parts[CLEAT_PART_FORWARD], 1e-9 * RUN * 2 * (double)launches);
    cleat_analysis_clear(&analysis);
}

static void test_gaps(void **state) {
    (void)state;
    make_recording();
    cleat_analysis analysis = analysed();
    assert_int_equal(analysis.n_gaps, CLEAT_GAPS);
    assert_int_equal(analysis.gaps[0].end - analysis.gaps[0].start, LONGER);
    assert_non_null(strstr(analysis.gaps[0].host, "already enqueued"));
    assert_int_equal(analysis.gaps[1].end - analysis.gaps[1].start, LONG);
    assert_string_equal(analysis.gaps[1].host, "waiting for the loader");
    cleat_analysis_clear(&analysis);
}

/* The roof of a kernel: its node's work at the device rates, for any number of runs. */
static void test_roofs(void **state) {
    (void)state;
    make_recording();
    cleat_analysis analysis = analysed();
    const size_t graphs[] = {r.session->work->train[0].index, r.session->work->update.index};
    double expected = 0, roof = 0, saves = 0;
    for (int g = 0; g < 2; ++g)
        for (size_t n = 0; n < r.session->work->plan->layouts[graphs[g]].graph->node_count; ++n) {
            cleat_node_estimate e;
            assert_int_equal(cleat_estimate_node(r.session->work->plan, graphs[g], n, &r.rates, &e, NULL), CLEAT_OK);
            if (e.launches) expected += 2 * fmax(e.cost.flops / r.rates.flops, e.cost.bytes / r.rates.bytes);
        }
    for (size_t i = 0; i < analysis.kernels.count; ++i) {
        roof += analysis.kernels.rows[i].roof;
        if (i) assert_true(cleat_profile_row_saves(&analysis.kernels.rows[i]) <= saves);
        saves = cleat_profile_row_saves(&analysis.kernels.rows[i]);
    }
    assert_true(expected > 0 && fabs(roof - expected) <= 1e-9 * expected);
    r.recording.rates = NULL;
    cleat_analysis_clear(&analysis);
    analysis = analysed();
    assert_null(cleat_profile_row_bound(&analysis.kernels.rows[0]));
    assert_true(analysis.kernels.rows[0].flops > 0 || analysis.kernels.rows[0].bytes > 0);
    cleat_analysis_clear(&analysis);
}

/* Commands without times are counted; without any times there is no profile. */
static void test_no_times(void **state) {
    (void)state;
    cleat_analysis analysis;
    cleat_error error;
    make_recording();
    r.commands[r.steps[1].last_command - 1].started = 0;
    analysis = analysed();
    assert_int_equal(analysis.unknown, 1);
    cleat_analysis_clear(&analysis);
    for (size_t i = 0; i < r.recorder.count; ++i) r.commands[i].started = r.commands[i].ended = 0;
    assert_int_equal(cleat_analysis_create(&r.recording, &analysis, &error), CLEAT_ERR_DEVICE);
    assert_non_null(strstr(error.text, "reported no times"));
}

static char *trace_of(const cleat_analysis *analysis, cleat_trace_counts *counts) {
    cleat_string text = {0};
    cleat_error error;
    char *json = NULL;
    ok(cleat_trace_write(analysis, &text, counts, &error), &error);
    ok(cleat_string_detach(&text, &json, &error), &error);
    return json;
}

/* Kernels that overlap by the timer's resolution stay on their track; others move to a second one. */
static void test_trace_of_overlaps(void **state) {
    (void)state;
    cleat_trace_counts counts = {0};
    make_recording();
    cleat_command *command = &r.commands[r.steps[1].last_command - 1];
    command->started = command[-1].ended - 1;
    cleat_analysis analysis = analysed();
    char *json = trace_of(&analysis, &counts);
    assert_int_equal(counts.clamped, 1);
    assert_int_equal(counts.cut, 0);
    assert_null(strstr(json, "compute (2)"));
    assert_non_null(strstr(json, "\"ph\":\"s\"")); /* from the fill of batch 7 */
    cleat_free(json);
    cleat_analysis_clear(&analysis);
    command->started = command[-1].ended - 2;
    analysis = analysed();
    json = trace_of(&analysis, &counts);
    assert_int_equal(counts.clamped, 0);
    assert_non_null(strstr(json, "compute (2)"));
    cleat_free(json);
    cleat_analysis_clear(&analysis);
}

static void test_names_become_utf8(void **state) {
    (void)state;
    make_recording();
    cleat_command *copy = &r.commands[r.steps[1].first_command + 1];
    copy->subject = "caf\xe9 \x01 \xc3\xa9";
    cleat_analysis analysis = analysed();
    cleat_trace_counts counts = {0};
    char *json = trace_of(&analysis, &counts);
    assert_non_null(strstr(json, "\"of\":\"caf\xef\xbf\xbd \\u0001 \xc3\xa9\""));
    cleat_free(json);
    cleat_analysis_clear(&analysis);
}

/* Each allocation fails once; no partial file is written. */
static void test_memory_runs_out(void **state) {
    (void)state;
    cleat_error error = {0};
    cleat_status status = CLEAT_ERR_MEMORY;
    make_recording();
    long n = 0;
    while (status == CLEAT_ERR_MEMORY && n < 5000) {
        cleat_fail_allocation(++n);
        status = cleat_profile_files_write(&r.recording, r.t->folder, &error);
        cleat_fail_allocation(0);
    }
    if (status) fail_msg("allocation %ld: %s", n, error.text);
    assert_true(n > 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sums),
                                       cmocka_unit_test(test_gaps),
                                       cmocka_unit_test(test_roofs),
                                       cmocka_unit_test(test_no_times),
                                       cmocka_unit_test(test_trace_of_overlaps),
                                       cmocka_unit_test(test_names_become_utf8),
                                       cmocka_unit_test(test_memory_runs_out)};
    void *state = NULL;
    tiny_require_device();
    if (tiny_setup(&state) || open_session(&state)) return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed || close_session(&state) || tiny_teardown(&state);
}
