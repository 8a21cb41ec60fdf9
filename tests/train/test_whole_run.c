/* Whole training runs with everything that waits for a device or polls it: loader threads, staging,
 * evaluation, checkpoints, the monitor, recorded steps, the finite check. Other tests cover the results. The
 * virtual card runs a command as late as OpenCL allows, never runs one whose queue was not flushed, and
 * reports what waits for it. */
/* ctest: device with=known_rates.c wrap=cleat_rates_measure */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tiny.h"

#define SMALL                                                                                                          \
    "data.limit=8", "data.buckets=16,32", "data.max_length=32", "train.warmup_steps=0", "train.schedule=constant",     \
        "run.evaluate_every_epochs=1", "run.checkpoint_every_epochs=1"

static void expect_file(const tiny *t, const char *name) {
    char path[TINY_PATH];
    size_t size;
    char *text = tiny_read(tiny_path(t, name, path), &size);
    if (size == 0) fail_msg("%s is empty", name);
    free(text);
}

static void a_run_in_f32(void **state) {
    const tiny *t = *state;
    tiny_train_to(CLEAT_OK, t, "f32", SET(SMALL, "loader.num_workers=2", "run.monitor=0.2s", "run.tensorboard=true"),
                  false, 0);
    tiny_train_to(CLEAT_OK, t, "f32", SET(SMALL, "train.epochs=3", "loader.num_workers=1", "loader.pin_memory=false"),
                  true, 0);
    expect_file(t, "f32/system.jsonl");
    expect_file(t, "f32/last");
}

/* Half weights and the loss scale add work to a step; recorded steps swap the queues twice. */
static void a_recorded_run_in_f16(void **state) {
    const tiny *t = *state;
    tiny_train_to(
        CLEAT_OK, t, "f16",
        SET(SMALL, "train.precision=f16", "loader.num_workers=2", "run.trace=wait=1,warmup=0,active=2,repeat=1"), false,
        0);
    expect_file(t, "f16/profile-S000002.json");
}

/* The host reads after each kernel. */
static void a_checked_run(void **state) {
    tiny_train_to(CLEAT_OK, *state, "checked",
                  SET(SMALL, "run.check_finite=true", "train.epochs=1", "run.monitor=none"), false, 0);
}

int main(void) {
    tiny_require_device();
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_run_in_f32), cmocka_unit_test(a_recorded_run_in_f16),
                                       cmocka_unit_test(a_checked_run)};
    return cmocka_run_group_tests(tests, tiny_setup, tiny_teardown);
}
