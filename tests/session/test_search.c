/* Plans for an open graphics card: no launch is longer than a system with a desktop allows, as the card's measured
 * speed tells; one that cannot be cut is warned of. The card and its speed are made up. */
/* ctest: quick with=fit/made_up_gpu.c wrap=cleat_device_get_facts,cleat_rates_measure */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fit/made_up_gpu.h"
#include "session/session.h"
#include "train/tiny.h"

static cleat_device_facts gpu;
static double flops; /* of the card, a second */
static char warning[1024];

const cleat_device_facts *__wrap_cleat_device_get_facts(const cleat_device *device);
const cleat_device_facts *__wrap_cleat_device_get_facts(const cleat_device *device) {
    (void)device;
    return &gpu;
}

cleat_status __wrap_cleat_rates_measure(cleat_device *device, cleat_rates *rates, cleat_error *error);
cleat_status __wrap_cleat_rates_measure(cleat_device *device, cleat_rates *rates, cleat_error *error) {
    (void)device, (void)error;
    *rates = (cleat_rates){.flops = flops, .bytes = flops / 10, .launch_seconds = 1e-6, .source = "measured"};
    return CLEAT_OK;
}

static void keep_warning(void *user, cleat_log_level level, const char *text) {
    (void)user;
    if (level == CLEAT_LOG_WARNING) snprintf(warning, sizeof warning, "%s", text);
}

/* The micro-batch of a global batch of 64 samples; *seconds: the longest launch. */
static int64_t plan(const tiny *t, const char *const *set, double speed, double *seconds) {
    cleat_profile *profile = tiny_profile(t, set);
    cleat_model *model = NULL;
    cleat_fit_result fitted = {0};
    cleat_lengths lengths = {.count = 1, .lengths = {64}, .samples = {64}};
    cleat_rates rates;
    char why[256];
    const char *node;
    cleat_error error = {0};
    flops = speed;
    warning[0] = 0;
    assert_int_equal(__wrap_cleat_rates_measure(NULL, &rates, NULL), CLEAT_OK);
    cleat_status status = cleat_profile_create_model(profile, &model, &error);
    const cleat_fit_request request = cleat_fit_request_for(profile, model, CLEAT_FOR_TRAINING, &lengths, &gpu, NULL);
    if (!status) status = cleat_session_search(NULL, &request, &fitted, why, sizeof why, &error);
    if (!status) status = cleat_fit_longest_launch(fitted.work->plan, &rates, seconds, &node, &error);
    if (status) fail_msg("%s", error.text);
    const int64_t micro_batch = fitted.work->buckets[0].micro_batch_size;
    cleat_fit_result_clear(&fitted);
    cleat_model_destroy(model);
    cleat_profile_destroy(profile);
    return micro_batch;
}

static void micro_batches_follow_speed(void **state) {
    const char *const *open = SET("train.batch_size=auto", "train.effective_batch_size=64");
    double fast, slow;
    assert_int_equal(plan(*state, open, 1e12, &fast), 64);
    const int64_t cut = plan(*state, open, 1e12 * fast, &slow); /* whole it has one of 1 s */
    assert_in_range(cut, 1, 63);
    assert_true(slow <= CLEAT_MAX_LAUNCH_SECONDS);
    assert_string_equal(warning, "");
}

static void what_cannot_be_cut_is_warned_of(void **state) {
    double seconds;
    const char *const *given = SET("train.batch_size=64", "train.effective_batch_size=64");
    assert_int_equal(plan(*state, given, 1e12, &seconds), 64);
    assert_string_equal(warning, "");
    assert_int_equal(plan(*state, given, 1e12 * seconds / 1.5, &seconds), 64);
    assert_true(seconds > 1);
    assert_non_null(strstr(warning, "train.batch_size"));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(micro_batches_follow_speed),
                                       cmocka_unit_test(what_cannot_be_cut_is_warned_of)};
    gpu = made_up_gpu(INT64_C(2) << 30);
    gpu.compute_units = 3; /* one sample keeps them busy */
    cleat_set_log(keep_warning, NULL, CLEAT_LOG_WARNING);
    return cmocka_run_group_tests(tests, tiny_setup, tiny_teardown);
}
