/* A run that stops after a given epoch: its schedule is that of all epochs, and the run that is resumed has the bits of
 * one that did not stop. */
/* ctest: device */
#include "tiny.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static tiny_result train_until(const tiny *t, const char *run, int64_t until, const char *const *set) {
    tiny_result result = {.status = CLEAT_OK};
    char out[TINY_PATH];
    cleat_profile *profile = tiny_profile(t, set);
    const cleat_train_options options = {.out = tiny_path(t, run, out), .resume = true, .until_epoch = until};
    result.status = cleat_train(profile, &options, &result.report, &result.error);
    cleat_profile_destroy(profile);
    return result;
}

static void expect_stop(tiny_result result, int64_t epoch) {
    assert_int_equal(result.status, CLEAT_ERR_TIME_UP);
    assert_int_equal(result.report.epochs, epoch);
    if (!strstr(result.error.text, "--until-epoch")) fail_msg("%s", result.error.text);
}

/* Also with evaluations, checkpoints and early stopping of their own pace. */
static void resumed_run_has_the_same_bits(void **state) {
    const tiny *t = *state;
    const char *const *const sets[] = {
        SET("train.epochs=5"),
        SET("train.epochs=5", "run.evaluate_every_epochs=2", "run.checkpoint_every_epochs=none",
            "train.schedule=linear"),
        SET("train.epochs=5", "run.early_stopping_patience=1", "train.learning_rate=0.5", "train.average_decay=none")};
    for (size_t i = 0; i < sizeof sets / sizeof *sets; ++i) {
        char whole[32], parts[32];
        snprintf(whole, sizeof whole, "whole%zu", i);
        snprintf(parts, sizeof parts, "parts%zu", i);
        tiny_train_to(CLEAT_OK, t, whole, sets[i], false, 0);
        expect_stop(train_until(t, parts, 1, sets[i]), 1);
        for (int64_t until = 2; until < 5; ++until) {
            const tiny_result next = train_until(t, parts, until, sets[i]);
            if (next.status == CLEAT_OK && i == 2) break; /* early stopping came first */
            expect_stop(next, until);
        }
        assert_int_equal(train_until(t, parts, 0, sets[i]).status, CLEAT_OK);
        tiny_assert_same_run(t, whole, parts);
    }
}

/* A run that has come so far trains nothing; the last epoch ends the run as always. */
static void epochs_that_are_done_are_not_repeated(void **state) {
    const tiny *t = *state;
    const char *const *set = SET("train.epochs=3");
    expect_stop(train_until(t, "done", 2, set), 2);
    const tiny_result again = train_until(t, "done", 1, set);
    expect_stop(again, 2);
    assert_int_equal(train_until(t, "done", 3, set).status, CLEAT_OK);
    assert_int_equal(train_until(t, "done", 1, set).status, CLEAT_OK);
    assert_int_equal(train_until(t, "long", 100, set).status, CLEAT_OK);
    tiny_assert_same_run(t, "done", "long");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(resumed_run_has_the_same_bits),
                                       cmocka_unit_test(epochs_that_are_done_are_not_repeated)};
    tiny_require_device();
    return cmocka_run_group_tests(tests, tiny_setup, tiny_teardown);
}
