/* The tracer's schedule: what is parsed, what is refused, and which steps are recorded. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cleat/tracer.h"

static cleat_tracer_schedule parsed(const char *text) {
    cleat_tracer_schedule schedule;
    cleat_error error;
    if (cleat_tracer_schedule_parse(text, &schedule, &error)) fail_msg("'%s': %s", text, error.text);
    return schedule;
}

static void test_defaults(void **state) {
    (void)state;
    cleat_tracer_schedule all = parsed(CLEAT_TRACER_DEFAULT), one = parsed("active=3");
    assert_memory_equal(&all, &one, sizeof all);
    assert_int_equal(all.wait, 5);
    cleat_tracer_schedule other = parsed(" repeat=2, wait=0 ,skip_first=7");
    assert_int_equal(other.repeat, 2);
    assert_int_equal(other.wait, 0);
    assert_int_equal(other.skip_first, 7);
    assert_int_equal(other.warmup, 2);
}

static void test_phases(void **state) {
    (void)state;
    const cleat_tracer_schedule schedule = parsed("skip_first=1,wait=1,warmup=1,active=2,repeat=2");
    static const char correct[] = "o-waa-waao"; /* skipped, then twice: wait, warm-up, active, active */
    for (int64_t step = 1; step <= (int64_t)strlen(correct); ++step) {
        static const char letters[] = {[CLEAT_TRACER_OFF] = 'o',
                                       [CLEAT_TRACER_WAIT] = '-',
                                       [CLEAT_TRACER_WARMUP] = 'w',
                                       [CLEAT_TRACER_ACTIVE] = 'a'};
        assert_int_equal(letters[cleat_tracer_schedule_phase(&schedule, step)], correct[step - 1]);
    }
    assert_int_equal(cleat_tracer_schedule_first(&schedule, 1), 8);
    assert_int_equal(cleat_tracer_schedule_last(&schedule, 1), 9);
}

static void expect_text(const char *schedule_text, int64_t before, const char *expected) {
    const cleat_tracer_schedule schedule = parsed(schedule_text);
    char text[CLEAT_TRACER_TEXT];
    assert_string_equal(cleat_tracer_schedule_describe(&schedule, before, text), expected);
}

static void test_words(void **state) {
    (void)state;
    expect_text("wait=5,warmup=2,active=3,repeat=2", 0, "steps 8-10, then 18-20");
    expect_text("wait=0,warmup=0,active=1", 100, "step 101");
    expect_text("wait=0,warmup=0,active=1,repeat=9", 0, "step 1, then 2, then 3 and so on, 9 times");
}

static void expect_refusal(const char *text, const char *says) {
    cleat_tracer_schedule schedule = {.wait = 77};
    cleat_error error;
    assert_int_equal(cleat_tracer_schedule_parse(text, &schedule, &error), CLEAT_ERR_ARGUMENT);
    if (!strstr(error.text, says)) fail_msg("'%s': \"%s\" does not contain \"%s\"", text, error.text, says);
    assert_int_equal(schedule.wait, 77);
}

static void test_refusals(void **state) {
    (void)state;
    expect_refusal("", "'' at character 1");
    expect_refusal("wait=5,wram=2", "'wram' at character 8 is not one of skip_first, wait, warmup, active and repeat");
    expect_refusal("5,2,3", "'5' at character 1 is not of the form key=value");
    expect_refusal("wait=5,wait=6", "'wait' at character 8 occurs twice");
    expect_refusal("wait=-1", "'wait=-1' at character 1 must be a whole number from 0");
    expect_refusal("active=0", "must be a whole number from 1 to 1000");
    expect_refusal("repeat=0", "cycles without an end are not supported");
    expect_refusal("wait=1x", "'wait=1x'");
    expect_refusal("wait=", "'wait='");
    expect_refusal("wait=99999999999999999999", "must be a whole number");
    expect_refusal("wait=5,", "'' at character 8");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_defaults), cmocka_unit_test(test_phases),
                                       cmocka_unit_test(test_words), cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
