/* A run that is stopped while it evaluates saves at once, repeats the evaluation on resume, and has the bits
 * of an unstopped run. The linker puts this test between the trainer and cleat_average_apply. */
/* ctest: device wrap=cleat_average_apply */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "train/average.h"
#include "train/tiny.h"

static volatile int flag;
static int countdown; /* number of the evaluation to interrupt, from 1; 0: none */

cleat_status __real_cleat_average_apply(cleat_average *average, cleat_session *session, cleat_error *error);
cleat_status __wrap_cleat_average_apply(cleat_average *average, cleat_session *session, cleat_error *error);

cleat_status __wrap_cleat_average_apply(cleat_average *average, cleat_session *session, cleat_error *error) {
    if (countdown > 0 && --countdown == 0) flag = 1;
    return __real_cleat_average_apply(average, session, error);
}

/* Trains into FOLDER/run, and requests a stop within evaluation number `evaluation` of this process (0: never). */
static tiny_result train(const tiny *t, const char *run, const char *const *set, bool resume, int evaluation) {
    tiny_result result = {.status = CLEAT_OK};
    char out[TINY_PATH];
    cleat_profile *profile = tiny_profile(t, set);
    const cleat_train_options options = {.out = tiny_path(t, run, out), .resume = resume, .stop = &flag};
    flag = 0;
    countdown = evaluation;
    result.status = cleat_train(profile, &options, &result.report, &result.error);
    cleat_profile_destroy(profile);
    return result;
}

static void assert_same_after_stops(const tiny *t, const char *name, const char *const *set, int evaluations) {
    char whole[64], parts[64];
    snprintf(whole, sizeof whole, "%s_whole", name);
    assert_int_equal(train(t, whole, set, false, 0).status, CLEAT_OK);
    for (int i = 1; i <= evaluations; ++i) {
        snprintf(parts, sizeof parts, "%s_parts%d", name, i);
        tiny_result stopped = train(t, parts, set, false, i);
        assert_int_equal(stopped.status, CLEAT_ERR_INTERRUPTED);
        assert_non_null(strstr(stopped.error.text, "continue from the checkpoint"));
        stopped = train(t, parts, set, true, 1); /* again in the same evaluation */
        assert_int_equal(stopped.status, CLEAT_ERR_INTERRUPTED);
        assert_int_equal(train(t, parts, set, true, 0).status, CLEAT_OK);
        tiny_assert_same_run(t, whole, parts);
    }
}

static void evaluations_are_interrupted(void **state) {
    assert_same_after_stops(*state, "average", SET("run.evaluate_every_epochs=1"), 2);
}

static void without_an_average(void **state) {
    assert_same_after_stops(*state, "plain", SET("run.evaluate_every_epochs=1", "train.average_decay=none"), 2);
}

/* The last evaluation's decision to end the run early is not lost. */
static void early_stopping_is_decided_after_resume(void **state) {
    assert_same_after_stops(*state, "early",
                            SET("run.evaluate_every_epochs=1", "train.epochs=6", "run.early_stopping_patience=1",
                                "train.learning_rate=1e-12"),
                            2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(evaluations_are_interrupted),
        cmocka_unit_test(without_an_average),
        cmocka_unit_test(early_stopping_is_decided_after_resume),
    };
    tiny_require_device();
    return cmocka_run_group_tests(tests, tiny_setup, tiny_teardown);
}
