/* The startup report of a run, and the driver calls of its steps after startup. */
/* ctest: device with=known_rates.c wrap=cleat_rates_measure */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/memory.h"
#include "device/device.h"
#include "platform/system.h"
#include "tiny.h"

#include <cjson/cJSON.h>

/* --- every OpenCL call of the run ----------------------------------------------------------------------------- */

/* Calls from the trainer's thread. */
typedef struct calls {
    long launches, copies, writes, flushes; /* calls allowed in a step */
    long events;                            /* launches that request an event */
    long arguments, kernels, buffers;       /* calls allowed only before the first step */
    long finishes, blocking;                /* calls that make the host wait for the device */
    long event_waits;                       /* in all threads: see below */
} calls;

enum { STEPS = 120 };

/* so far, and when the last kernel of each step was enqueued */
static calls made, after[STEPS];
static _Atomic long programs, event_waits; /* also from compiling threads and the loader's */
static int steps;

/* The last kernel of an optimizer step writes its metrics; in f16 only the update of the loss scale follows. */
static void record_step(cl_kernel kernel) {
    char name[64] = "";
    clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof name, name, NULL);
    if (strcmp(name, "log_step_row") != 0 || steps == STEPS) return;
    made.event_waits = event_waits;
    after[steps++] = made;
}

/* CLBlast recreates its kernels for each product, and sets their arguments. */
static bool is_clblast(const void *caller) {
    Dl_info info;
    return dladdr(caller, &info) != 0 && info.dli_fname && strstr(info.dli_fname, "clblast");
}

/* These functions interpose the driver's. NEXT is the replaced function. */
#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

CLEAT_API cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dims, const size_t *offset,
                                        const size_t *global, const size_t *local, cl_uint n, const cl_event *wait,
                                        cl_event *event) {
    ++made.launches;
    made.events += event != NULL;
    record_step(kernel);
    return NEXT(clEnqueueNDRangeKernel)(queue, kernel, dims, offset, global, local, n, wait, event);
}

CLEAT_API cl_int clEnqueueCopyBuffer(cl_command_queue queue, cl_mem from, cl_mem to, size_t at, size_t there,
                                     size_t size, cl_uint n, const cl_event *wait, cl_event *event) {
    ++made.copies;
    return NEXT(clEnqueueCopyBuffer)(queue, from, to, at, there, size, n, wait, event);
}

CLEAT_API cl_int clEnqueueWriteBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t at, size_t size,
                                      const void *data, cl_uint n, const cl_event *wait, cl_event *event) {
    ++made.writes;
    made.blocking += blocking != 0;
    return NEXT(clEnqueueWriteBuffer)(queue, buffer, blocking, at, size, data, n, wait, event);
}

CLEAT_API cl_int clEnqueueReadBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t at, size_t size,
                                     void *data, cl_uint n, const cl_event *wait, cl_event *event) {
    made.blocking += blocking != 0;
    return NEXT(clEnqueueReadBuffer)(queue, buffer, blocking, at, size, data, n, wait, event);
}

CLEAT_API cl_int clFlush(cl_command_queue queue) {
    ++made.flushes;
    return NEXT(clFlush)(queue);
}

CLEAT_API cl_int clFinish(cl_command_queue queue) {
    ++made.finishes;
    return NEXT(clFinish)(queue);
}

CLEAT_API cl_int clWaitForEvents(cl_uint n, const cl_event *events) {
    ++event_waits;
    return NEXT(clWaitForEvents)(n, events);
}

CLEAT_API cl_int clSetKernelArg(cl_kernel kernel, cl_uint index, size_t size, const void *value) {
    made.arguments += !is_clblast(__builtin_return_address(0));
    return NEXT(clSetKernelArg)(kernel, index, size, value);
}

CLEAT_API cl_kernel clCreateKernel(cl_program program, const char *name, cl_int *code) {
    made.kernels += !is_clblast(__builtin_return_address(0));
    return NEXT(clCreateKernel)(program, name, code);
}

CLEAT_API cl_int clBuildProgram(cl_program program, cl_uint n, const cl_device_id *devices, const char *options,
                                void(CL_CALLBACK *notify)(cl_program, void *), void *user) {
    ++programs;
    return NEXT(clBuildProgram)(program, n, devices, options, notify, user);
}

CLEAT_API cl_mem clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size, void *host, cl_int *code) {
    ++made.buffers;
    return NEXT(clCreateBuffer)(context, flags, size, host, code);
}

CLEAT_API cl_mem clCreateSubBuffer(cl_mem buffer, cl_mem_flags flags, cl_buffer_create_type type, const void *what,
                                   cl_int *code) {
    ++made.buffers;
    return NEXT(clCreateSubBuffer)(buffer, flags, type, what, code);
}

CLEAT_API void *clEnqueueMapBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, cl_map_flags flags,
                                   size_t at, size_t size, cl_uint n, const cl_event *wait, cl_event *event,
                                   cl_int *code) {
    ++made.buffers;
    made.blocking += blocking != 0;
    return NEXT(clEnqueueMapBuffer)(queue, buffer, blocking, flags, at, size, n, wait, event, code);
}

/* --- steps ---------------------------------------------------------------------------------------------------- */

/* One epoch with one micro-batch per step. The host waits for each of the first steps (67 at most), which are
 * measured; it reads the others' metrics once every 64 steps. */
static void a_step_only_enqueues(void **state) {
    enum { MEASURED = 68, READS = 2 };
    tiny_result result = tiny_train_to(
        CLEAT_OK, *state, "calls",
        SET("data.generated=160", "data.limit=120", "data.buckets=32", "data.max_length=32", "train.epochs=1",
            "train.batch_size=1", "train.effective_batch_size=1", "train.average_decay=none", "run.log_every_steps=64"),
        false, 0);
    assert_int_equal(result.report.steps, STEPS);
    assert_int_equal(steps, STEPS);
    assert_true(after[0].kernels > 0 && after[0].buffers > 0 && programs > 0);
    assert_true(after[0].arguments > after[0].kernels);
    for (int i = 2; i < STEPS; ++i) {
        const calls *last = &after[i - 1], *now = &after[i];
        assert_int_equal(now->arguments, last->arguments);
        assert_int_equal(now->kernels, last->kernels);
        assert_int_equal(now->buffers, last->buffers);
        assert_int_equal(now->launches - last->launches, after[2].launches - after[1].launches);
        assert_int_equal(now->writes - last->writes, 2);   /* the batch and the hyper-parameters */
        assert_int_equal(now->copies - last->copies, 2);   /* from their slots to the inputs */
        assert_int_equal(now->flushes - last->flushes, 3); /* one for each transfer, and one for both graphs */
        assert_int_equal(now->events - last->events, 2);   /* the last launch of each graph */
    }
    const calls *first = &after[MEASURED], *last = &after[STEPS - 1];
    assert_int_equal(last->finishes, first->finishes);
    assert_true(last->blocking - first->blocking <= READS);
    /* Host memory is refilled only after its last transfer completes: at most one wait per transfer, some in
     * advance. */
    assert_true(last->event_waits - first->event_waits <= 2 * (STEPS - MEASURED) + 8);
}

/* --- the start ------------------------------------------------------------------------------------------------ */

static double sum_of(const cleat_startup_stats *s) {
    const double parts[] = {s->data, s->device, s->plan, s->setup, s->kernels, s->step};
    double sum = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; ++i) {
        assert_true(parts[i] >= 0);
        sum += parts[i];
    }
    return sum;
}

/* Returns the first record of the run's metrics. */
static cJSON *first_record(const tiny *t, const char *run) {
    char name[64], path[TINY_PATH];
    size_t size;
    snprintf(name, sizeof name, "%s/metrics.jsonl", run);
    char *text = tiny_read(tiny_path(t, name, path), &size);
    cJSON *record = cJSON_ParseWithLength(text, strcspn(text, "\n"));
    cleat_free(text);
    assert_non_null(record);
    return record;
}

static double number(const cJSON *record, const char *name) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(record, name);
    if (!cJSON_IsNumber(item)) fail_msg("the record has no '%s'", name);
    return item->valuedouble;
}

static void assert_parts_add_up(const tiny *t, const char *run, const char *precision) {
    tiny_result result = tiny_train_to(CLEAT_OK, t, run, SET(precision), false, 0);
    const cleat_startup_stats *s = &result.report.start;
    double seconds = result.report.seconds_first_step;
    assert_true(seconds > 0 && seconds <= result.report.seconds);
    assert_true(fabs(sum_of(s) - seconds) < 1e-6);
    assert_true(s->data > 0 && s->device > 0 && s->plan > 0 && s->setup > 0);
    assert_true(s->programs > 0 && s->built + s->loaded > 0 && s->built + s->loaded <= s->programs);

    cJSON *record = first_record(t, run);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(record, "kind")), "start");
    assert_true(number(record, "step") == 1);
    assert_true(fabs(number(record, "seconds") - seconds) <= 1e-6 * seconds);
    static const char *const parts[] = {"data", "device", "plan", "setup", "kernels", "first_step"};
    double sum = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; ++i) sum += number(record, parts[i]);
    assert_true(fabs(sum - seconds) <= 1e-6 * seconds);
    const double said[] = {s->data, s->device, s->plan, s->setup, s->kernels, s->step};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; ++i)
        assert_true(fabs(number(record, parts[i]) - said[i]) <= 1e-6 * seconds);
    assert_true(number(record, "programs") == (double)s->programs);
    assert_true(number(record, "built") == (double)s->built && number(record, "loaded") == (double)s->loaded);
    cJSON_Delete(record);
}

/* In half precision the host waits before the first step for the program that makes the half-precision copies. */
static void the_parts_of_the_start_add_up(void **state) {
    static const char *const precisions[] = {"train.precision=f32", "train.precision=f16", "train.precision=bf16"};
    static const char *const runs[] = {"start32", "start16", "startb"};
    for (int i = 0; i < 3; ++i) assert_parts_add_up(*state, runs[i], precisions[i]);
}

int main(void) {
    tiny_require_device();
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_step_only_enqueues),
                                       cmocka_unit_test(the_parts_of_the_start_add_up)};
    return cmocka_run_group_tests(tests, tiny_setup, tiny_teardown);
}
