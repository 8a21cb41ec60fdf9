/* Checks that the upload of a batch can overlap the computation of the previous batch: not by times, which
 * depend on the driver, but by dependencies. A command waits for its predecessor in the queue and for its
 * wait list. If the upload of batch n + 1 does not depend on the kernels of batch n, a device can run both at
 * once. */
/* ctest: device with=known_rates.c wrap=cleat_rates_measure */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "device/device.h"
#include "platform/system.h"
#include "tiny.h"

/* --- the commands of a run ------------------------------------------------------------------------------------ */

typedef enum command_kind { KERNEL, COPY, UPLOAD, OTHER } command_kind;

enum { MAX_COMMANDS = 60000, MAX_WAITS = 4, STEPS = 24, RUNS_BETWEEN = 2 };

typedef struct command {
    command_kind kind;
    cl_command_queue queue;
    cl_event event;
    int before;           /* its predecessor in the queue; -1: none */
    int waits[MAX_WAITS]; /* [n_waits] */
    int n_waits;
    int run;           /* of its graph: the number of input copies so far; 0: before the first */
    int newest_kernel; /* the newest run with a kernel that it must wait for */
} command;

static command commands[MAX_COMMANDS];
static int count;
static int runs;

static int last_of(cl_command_queue queue) {
    for (int i = count - 1; i >= 0; --i)
        if (commands[i].queue == queue) return i;
    return -1;
}

/* Handles are reused after a release: the newest command with this handle counts. */
static int command_of(cl_event event) {
    for (int i = count - 1; i >= 0; --i)
        if (commands[i].event == event) return i;
    return -1;
}

static int newest(const command *waiting) {
    int found = waiting->before >= 0 ? commands[waiting->before].newest_kernel : 0;
    for (int i = 0; i < waiting->n_waits; ++i) {
        const command *other = &commands[waiting->waits[i]];
        if (other->newest_kernel > found) found = other->newest_kernel;
    }
    return waiting->kind == KERNEL && waiting->run > found ? waiting->run : found;
}

/* A run begins with copying its inputs. */
static void record(command_kind kind, cl_command_queue queue, cl_uint n_waits, const cl_event *waits, cl_event event) {
    if (count == MAX_COMMANDS) return;
    runs += kind == COPY;
    command added = {.kind = kind, .queue = queue, .event = event, .before = last_of(queue), .run = runs};
    for (cl_uint i = 0; i < n_waits && added.n_waits < MAX_WAITS; ++i) {
        const int other = command_of(waits[i]);
        if (other >= 0) added.waits[added.n_waits++] = other;
    }
    added.newest_kernel = newest(&added);
    commands[count++] = added;
}

/* --- these functions interpose the driver's ------------------------------------------------------------ */

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

CLEAT_API cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dims, const size_t *offset,
                                        const size_t *global, const size_t *local, cl_uint n, const cl_event *wait,
                                        cl_event *event) {
    const cl_int code = NEXT(clEnqueueNDRangeKernel)(queue, kernel, dims, offset, global, local, n, wait, event);
    record(KERNEL, queue, n, wait, event ? *event : NULL);
    return code;
}

CLEAT_API cl_int clEnqueueCopyBuffer(cl_command_queue queue, cl_mem from, cl_mem to, size_t at, size_t there,
                                     size_t size, cl_uint n, const cl_event *wait, cl_event *event) {
    const cl_int code = NEXT(clEnqueueCopyBuffer)(queue, from, to, at, there, size, n, wait, event);
    record(COPY, queue, n, wait, event ? *event : NULL);
    return code;
}

/* Uploads of inputs are the only ones that do not block. */
CLEAT_API cl_int clEnqueueWriteBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t at, size_t size,
                                      const void *data, cl_uint n, const cl_event *wait, cl_event *event) {
    const cl_int code = NEXT(clEnqueueWriteBuffer)(queue, buffer, blocking, at, size, data, n, wait, event);
    record(blocking ? OTHER : UPLOAD, queue, n, wait, event ? *event : NULL);
    return code;
}

CLEAT_API cl_int clEnqueueMarkerWithWaitList(cl_command_queue queue, cl_uint n, const cl_event *wait, cl_event *event) {
    const cl_int code = NEXT(clEnqueueMarkerWithWaitList)(queue, n, wait, event);
    record(OTHER, queue, n, wait, event ? *event : NULL);
    return code;
}

/* --- tests ---------------------------------------------------------------------------------------------------- */

static tiny_result train(const tiny *t, const char *run, const char *effective_batch_size) {
    count = runs = 0;
    return tiny_train_to(CLEAT_OK, t, run,
                         SET("data.generated=160", "data.limit=24", "data.buckets=32", "data.max_length=32",
                             "train.epochs=1", "train.batch_size=1", effective_batch_size, "train.average_decay=none",
                             "run.evaluate_every_epochs=none", "run.log_every_steps=64"),
                         false, 0);
}

/* Uploads are numbered from 1; the run of the same number reads each. An upload may overlap the two runs
 * before that one (a micro-batch and an update), so it may only depend on older runs. */
static void check_uploads(int steps, int graphs_of_a_step) {
    int uploads = 0, checked = 0;
    for (int i = 0; i < count; ++i) {
        const command *c = &commands[i];
        if (c->kind != UPLOAD) continue;
        ++uploads;
        for (int k = 0; k < i; ++k)
            if (commands[k].kind == KERNEL && commands[k].queue == c->queue)
                fail_msg("upload %d is in the queue of the kernels", uploads);
        if (uploads <= graphs_of_a_step) continue;
        if (c->newest_kernel > uploads - RUNS_BETWEEN - 1)
            fail_msg("upload %d waits for the kernels of run %d: it cannot overlap it", uploads, c->newest_kernel);
        ++checked;
    }
    if (uploads < steps * graphs_of_a_step) fail_msg("%d uploads in %d steps", uploads, steps);
    assert_true(checked >= (steps - 1) * graphs_of_a_step);
    assert_true(count < MAX_COMMANDS);
}

/* Each step runs two graphs, each with an upload: the micro-batch and the hyper-parameters. */
static void the_next_batch_travels_while_one_is_computed(void **state) {
    const tiny_result result = train(*state, "one", "train.effective_batch_size=1");
    assert_int_equal(result.report.steps, STEPS);
    check_uploads(STEPS, 2);
}

static void the_next_micro_batch_travels_while_one_is_computed(void **state) {
    const tiny_result result = train(*state, "four", "train.effective_batch_size=4");
    assert_int_equal(result.report.steps, STEPS / 4);
    check_uploads(STEPS / 4, 5);
}

int main(void) {
    tiny_require_device();
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_next_batch_travels_while_one_is_computed),
                                       cmocka_unit_test(the_next_micro_batch_travels_while_one_is_computed)};
    return cmocka_run_group_tests(tests, tiny_setup, tiny_teardown);
}
