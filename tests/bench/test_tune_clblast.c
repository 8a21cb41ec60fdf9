/* The search for CLBlast's parameters: the combination chosen from measured times; on a device, the search
 * ends with valid parameters or none and does not affect the calling process. No test opens OpenCL in this
 * process before it forks. CLBlast compiles four times (half a minute in total with PoCL, once). */
/* ctest: device slow cost=37 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/tuner.h"
#include "device/device.h"
#include "platform/processes.h"
#include "train/tiny.h"

/* --- selection ------------------------------------------------------------------------------------------------ */

/* Times of a product with this number of multiplications, which takes `large` and `direct` seconds with every set. */
static cleat_clblast_times times(double multiplications, double uses, double large, double direct) {
    cleat_clblast_times made = {.uses = uses, .multiplications = multiplications};
    for (int i = 0; i < CLEAT_CLBLAST_SETS; ++i) {
        made.seconds[CLEAT_CLBLAST_LARGE][i] = large;
        made.seconds[CLEAT_CLBLAST_DIRECT][i] = direct;
    }
    return made;
}

static bool goes_direct(const cleat_clblast_choice *choice, double multiplications) {
    return multiplications < pow(choice->min_indirect, 3);
}

static void small_products_may_be_direct(void **state) {
    (void)state;
    cleat_clblast_times heavy = times(1e9, 1, 3, 8), middle = times(1e7, 2, 2, 1), light = times(1e5, 10, 0.5, 0.2);
    const cleat_clblast_times *const all[] = {&heavy, &middle, &light};
    heavy.seconds[CLEAT_CLBLAST_LARGE][2] = 2.5;
    middle.seconds[CLEAT_CLBLAST_DIRECT][1] = 0.5;
    light.seconds[CLEAT_CLBLAST_DIRECT][3] = 0.19; /* gains less than the middle product loses */
    cleat_clblast_choice choice = cleat_clblast_choose(all, 3);
    assert_int_equal(choice.large, 2);
    assert_int_equal(choice.direct, 1);
    assert_false(goes_direct(&choice, 1e9));
    assert_true(goes_direct(&choice, 1e7));
    assert_true(goes_direct(&choice, 1e5));
    assert_true(fabs(choice.seconds - (2.5 + 2 * 0.5 + 10 * 0.2)) < 1e-3);
}

static void one_way_may_be_best_for_all(void **state) {
    (void)state;
    cleat_clblast_times heavy = times(1e9, 1, 3, 2), light = times(1e5, 1, 3, 2);
    const cleat_clblast_times *const all[] = {&heavy, &light};
    heavy.seconds[CLEAT_CLBLAST_LARGE][4] = 2.5; /* used for products larger than these */
    cleat_clblast_choice choice = cleat_clblast_choose(all, 2);
    assert_true(goes_direct(&choice, 1e9));
    assert_int_equal(choice.large, 4);
    heavy = times(1e9, 1, 1, 2);
    light = times(1e5, 1, 1, 2);
    choice = cleat_clblast_choose(all, 2);
    assert_false(goes_direct(&choice, 1));
}

/* A set that failed or was not measured in the heaviest product is never chosen. */
static void what_failed_is_not_taken(void **state) {
    (void)state;
    cleat_clblast_times only = times(1e6, 1, INFINITY, 1);
    const cleat_clblast_times *const all[] = {&only};
    assert_false(isfinite(cleat_clblast_choose(all, 1).seconds));
    only.seconds[CLEAT_CLBLAST_LARGE][5] = 7;
    cleat_clblast_choice choice = cleat_clblast_choose(all, 1);
    assert_int_equal(choice.large, 5);
    assert_true(goes_direct(&choice, 1e6));
}

/* --- on the device -------------------------------------------------------------------------------------------- */

static bool device_is_there(void) {
    int code = 0;
    if (!CLEAT_FORKS) return true; /* without a device, the tests themselves are skipped */
    pid_t pid = fork();
    if (pid == 0) {
        tiny_require_device();
        _exit(0);
    }
    waitpid(pid, &code, 0);
    return pid > 0 && WIFEXITED(code) && WEXITSTATUS(code) == 0;
}

static cleat_clblast_answer search(const tiny *t, const char *device) {
    const cleat_tune_options options = {.seconds = 1e-3};
    cleat_profile *profile = tiny_profile(t, SET("model.d_model=64", "model.d_ff=64", "train.batch_size=4"));
    if (device) snprintf(profile->run.device, sizeof profile->run.device, "%s", device);
    cleat_clblast_answer answer = cleat_tune_clblast(profile, &options);
    cleat_profile_destroy(profile);
    return answer;
}

static void errors_are_said(void **state) {
    cleat_clblast_answer answer = search(*state, "no such device");
    assert_false(answer.found);
    assert_non_null(strstr(answer.why, "no such device"));
}

static void without_clblast_nothing_is_searched(void **state) {
    if (!device_is_there()) skip();
    setenv("CLEAT_DEVICE_SHAPE", "cpu", 1);
    cleat_clblast_answer answer = search(*state, NULL);
    assert_false(answer.found);
    assert_non_null(strstr(answer.why, "CLBlast runs none"));
}

static void a_search_ends_with_an_answer(void **state) {
    cleat_device_facts facts = {.max_work_group = 256, .local_memory = 32768};
    if (!device_is_there()) skip();
    setenv("CLEAT_DEVICE_SHAPE", "gpu", 1);
    cleat_clblast_answer answer = search(*state, NULL);
    unsetenv("CLEAT_DEVICE_SHAPE");
    if (!strstr(answer.why, "the best of ") && !strstr(answer.why, "not searched: CLBlast takes"))
        fail_msg("%s", answer.why);
    if (answer.found) assert_null(cleat_clblast_refuse(&answer.parameters, &facts));
    if (strstr(answer.why, "the best of ")) assert_non_null(strstr(answer.why, "(0 failed)"));
    print_message("%s\n", answer.why);
}

int main(void) {
    const struct CMUnitTest pure[] = {
        cmocka_unit_test(small_products_may_be_direct),
        cmocka_unit_test(one_way_may_be_best_for_all),
        cmocka_unit_test(what_failed_is_not_taken),
    };
    const struct CMUnitTest searches[] = {
        cmocka_unit_test(errors_are_said),
        cmocka_unit_test(without_clblast_nothing_is_searched),
        cmocka_unit_test(a_search_ends_with_an_answer),
    };
    setenv("CLEAT_TUNED", "never", 1);
    int failed = cmocka_run_group_tests(pure, NULL, NULL);
    return failed + cmocka_run_group_tests(searches, tiny_setup, tiny_teardown);
}
