/* Learning-rate schedules against their formulas. */
/* ctest: quick */
#include "train/schedule.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void expect_near(double a, double b) {
    if (!(fabs(a - b) <= 1e-12 * fmax(fabs(a), fabs(b)))) fail_msg("%.17g is not %.17g", a, b);
}

static cleat_profile *make(void) {
    cleat_profile *profile = NULL;
    assert_int_equal(cleat_profile_create(&profile, NULL), CLEAT_OK);
    profile->train.learning_rate = 1e-3;
    profile->train.epochs = 10;
    return profile;
}

static void scaling_follows_its_formula(void **state) {
    (void)state;
    expect_near(cleat_scaled_learning_rate(CLEAT_LR_SCALING_NONE, 5e-4, 0, 48), 5e-4);
    expect_near(cleat_scaled_learning_rate(CLEAT_LR_SCALING_LINEAR, 5e-4, 8, 48), 3e-3);
    expect_near(cleat_scaled_learning_rate(CLEAT_LR_SCALING_SQRT, 5e-4, 8, 32), 1e-3);
    expect_near(cleat_scaled_learning_rate(CLEAT_LR_SCALING_LINEAR, 5e-4, 8, 4), 2.5e-4);
}

static void warmup_is_linear_from_its_start(void **state) {
    (void)state;
    cleat_profile *profile = make();
    cleat_schedule schedule;
    profile->train.warmup_epochs = 2;
    profile->train.warmup_start_lr = 1e-6;
    assert_int_equal(cleat_schedule_create(profile, 5, &schedule, NULL), CLEAT_OK);
    assert_int_equal(schedule.warmup_steps, 10);
    assert_int_equal(schedule.total_steps, 50);
    for (int64_t step = 0; step < 10; ++step)
        expect_near(cleat_schedule_rate(&schedule, step), 1e-6 + (1e-3 - 1e-6) * (double)step / 10);
    for (int64_t step = 10; step < 60; ++step) assert_true(cleat_schedule_rate(&schedule, step) == 1e-3);
    profile->train.warmup_epochs = 0;
    profile->train.warmup_steps = 3;
    assert_int_equal(cleat_schedule_create(profile, 5, &schedule, NULL), CLEAT_OK);
    assert_true(cleat_schedule_rate(&schedule, 2) < 1e-3);
    assert_true(cleat_schedule_rate(&schedule, 3) == 1e-3);
    cleat_profile_destroy(profile);
}

static void cosine_falls_to_its_floor(void **state) {
    (void)state;
    cleat_profile *profile = make();
    cleat_schedule schedule;
    profile->train.schedule = CLEAT_SCHEDULE_COSINE;
    profile->train.warmup_steps = 10;
    profile->train.min_learning_rate = 1e-5;
    assert_int_equal(cleat_schedule_create(profile, 11, &schedule, NULL), CLEAT_OK);
    expect_near(cleat_schedule_rate(&schedule, 10), 1e-3);
    expect_near(cleat_schedule_rate(&schedule, 60), 1e-5 + (1e-3 - 1e-5) / 2);
    expect_near(cleat_schedule_rate(&schedule, 110), 1e-5);
    expect_near(cleat_schedule_rate(&schedule, 1000), 1e-5);
    for (int64_t step = 10; step < 110; ++step)
        assert_true(cleat_schedule_rate(&schedule, step) > cleat_schedule_rate(&schedule, step + 1));
    cleat_profile_destroy(profile);
}

static void linear_falls_to_its_floor(void **state) {
    (void)state;
    cleat_profile *profile = make();
    cleat_schedule schedule;
    profile->train.schedule = CLEAT_SCHEDULE_LINEAR;
    profile->train.warmup_steps = 10;
    for (int floor = 0; floor < 2; ++floor) {
        profile->train.min_learning_rate = floor * 1e-5;
        assert_int_equal(cleat_schedule_create(profile, 11, &schedule, NULL), CLEAT_OK);
        expect_near(cleat_schedule_rate(&schedule, 5), 5e-4);
        expect_near(cleat_schedule_rate(&schedule, 10), 1e-3);
        expect_near(cleat_schedule_rate(&schedule, 35), floor * 1e-5 + (1e-3 - floor * 1e-5) * 0.75);
        expect_near(cleat_schedule_rate(&schedule, 109), floor * 1e-5 + (1e-3 - floor * 1e-5) * 0.01);
        assert_true(cleat_schedule_rate(&schedule, 110) == floor * 1e-5);
        assert_true(cleat_schedule_rate(&schedule, 1000) == floor * 1e-5);
    }
    cleat_profile_destroy(profile);
}

static void steps_decay_by_gamma(void **state) {
    (void)state;
    cleat_profile *profile = make();
    cleat_schedule schedule;
    profile->train.schedule = CLEAT_SCHEDULE_STEP;
    profile->train.step_epochs = 3;
    profile->train.step_gamma = 0.5;
    profile->train.min_learning_rate = 2e-4;
    assert_int_equal(cleat_schedule_create(profile, 4, &schedule, NULL), CLEAT_OK);
    expect_near(cleat_schedule_rate(&schedule, 0), 1e-3);
    expect_near(cleat_schedule_rate(&schedule, 11), 1e-3);
    expect_near(cleat_schedule_rate(&schedule, 12), 5e-4);
    expect_near(cleat_schedule_rate(&schedule, 24), 2.5e-4);
    expect_near(cleat_schedule_rate(&schedule, 39), 2e-4);
    cleat_profile_destroy(profile);
}

static void the_same_effective_batch_gives_the_same_curve(void **state) {
    (void)state;
    cleat_profile *one = make(), *two = make();
    cleat_schedule a, b;
    one->train.lr_scaling = two->train.lr_scaling = CLEAT_LR_SCALING_LINEAR;
    one->train.base_batch_size = two->train.base_batch_size = 8;
    one->train.effective_batch_size = 48;
    two->train.batch_size = 16;
    two->train.gradient_accumulation_steps = 3;
    assert_int_equal(cleat_schedule_create(one, 7, &a, NULL), CLEAT_OK);
    assert_int_equal(cleat_schedule_create(two, 7, &b, NULL), CLEAT_OK);
    expect_near(a.peak, 6e-3);
    for (int64_t step = 0; step < 70; ++step)
        assert_true(cleat_schedule_rate(&a, step) == cleat_schedule_rate(&b, step));
    cleat_profile_destroy(one);
    cleat_profile_destroy(two);
}

static void long_warmups_are_cut_to_a_tenth(void **state) {
    (void)state;
    cleat_profile *profile = make();
    cleat_schedule schedule;
    const struct {
        int64_t steps, epochs;
        double ratio;
        int64_t found; /* of 50 steps: 10 epochs of 5 */
    } rows[] = {{49, 0, 0, 49}, {50, 0, 0, 5},   {1000, 0, 0, 5},  {0, 9, 0, 45}, {0, 10, 0, 5},
                {0, 0, 0.1, 5}, {0, 0, 0.3, 15}, {0, 0, 0.99, 49}, {0, 0, 0, 0}};
    profile->train.schedule = CLEAT_SCHEDULE_COSINE;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        int64_t steps = -1;
        profile->train.warmup_steps = rows[i].steps;
        profile->train.warmup_epochs = rows[i].epochs;
        profile->train.warmup_ratio = rows[i].ratio;
        assert_int_equal(cleat_schedule_create(profile, 5, &schedule, NULL), CLEAT_OK);
        assert_int_equal(schedule.warmup_steps, rows[i].found);
        assert_int_equal(cleat_warmup_steps(profile, 5, &steps, NULL), CLEAT_OK);
        assert_int_equal(steps, rows[i].found);
        expect_near(cleat_schedule_rate(&schedule, rows[i].found), 1e-3);
    }
    profile->train.epochs = 1;
    profile->train.warmup_steps = 1;
    assert_int_equal(cleat_schedule_create(profile, 1, &schedule, NULL), CLEAT_OK);
    assert_int_equal(schedule.warmup_steps, 0);
    cleat_profile_destroy(profile);
}

/* A time budget shortens a schedule, and with it a relative warm-up. */
static void a_share_of_the_run_follows_its_length(void **state) {
    (void)state;
    cleat_profile *profile = make();
    cleat_schedule schedule;
    profile->train.warmup_ratio = 0.2;
    assert_int_equal(cleat_schedule_create(profile, 5, &schedule, NULL), CLEAT_OK);
    assert_int_equal(schedule.warmup_steps, 10);
    cleat_schedule_set_epochs(&schedule, 4);
    assert_int_equal(schedule.warmup_steps, 4);
    profile->train.warmup_ratio = 0;
    profile->train.warmup_steps = 10;
    assert_int_equal(cleat_schedule_create(profile, 5, &schedule, NULL), CLEAT_OK);
    cleat_schedule_set_epochs(&schedule, 4);
    assert_int_equal(schedule.warmup_steps, 10);
    cleat_profile_destroy(profile);
}

static void impossible_schedules_are_refused(void **state) {
    (void)state;
    cleat_profile *profile = make();
    cleat_schedule schedule;
    cleat_error error = {0};
    profile->train.warmup_steps = 49;
    profile->train.warmup_start_lr = 2e-3;
    assert_int_equal(cleat_schedule_create(profile, 5, &schedule, &error), CLEAT_ERR_PROFILE);
    profile->train.warmup_start_lr = 0;
    profile->train.min_learning_rate = 2e-3;
    assert_int_equal(cleat_schedule_create(profile, 5, &schedule, &error), CLEAT_ERR_PROFILE);
    assert_int_equal(cleat_schedule_create(profile, 0, &schedule, &error), CLEAT_ERR_ARGUMENT);
    cleat_profile_destroy(profile);
}

static void one_call_gives_the_rate_of_a_step(void **state) {
    (void)state;
    cleat_profile *profile = make();
    cleat_error error = {0};
    double rate = -1;
    profile->train.schedule = CLEAT_SCHEDULE_COSINE;
    profile->train.lr_scaling = CLEAT_LR_SCALING_SQRT;
    profile->train.base_batch_size = 8;
    profile->train.effective_batch_size = 32;
    profile->train.warmup_epochs = 2;
    profile->train.warmup_start_lr = 1e-6;
    const struct {
        int64_t step;
        double rate;
    } rows[] = {{0, 1e-6}, {10, 1e-6 + (2e-3 - 1e-6) / 2}, {20, 2e-3}, {60, 1e-3}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        assert_int_equal(cleat_learning_rate(profile, 10, rows[i].step, &rate, NULL), CLEAT_OK);
        expect_near(rate, rows[i].rate);
    }
    assert_int_equal(cleat_learning_rate(profile, 10, 100, &rate, NULL), CLEAT_OK);
    assert_true(rate == 0);
    rate = -1;
    assert_int_equal(cleat_learning_rate(profile, 10, -1, &rate, &error), CLEAT_ERR_ARGUMENT);
    assert_non_null(strstr(error.text, "-1"));
    assert_int_equal(cleat_learning_rate(profile, 0, 0, &rate, &error), CLEAT_ERR_ARGUMENT);
    profile->train.min_learning_rate = 1;
    assert_int_equal(cleat_learning_rate(profile, 10, 0, &rate, &error), CLEAT_ERR_PROFILE);
    assert_true(rate == -1);
    cleat_profile_destroy(profile);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scaling_follows_its_formula),
        cmocka_unit_test(warmup_is_linear_from_its_start),
        cmocka_unit_test(cosine_falls_to_its_floor),
        cmocka_unit_test(linear_falls_to_its_floor),
        cmocka_unit_test(steps_decay_by_gamma),
        cmocka_unit_test(the_same_effective_batch_gives_the_same_curve),
        cmocka_unit_test(one_call_gives_the_rate_of_a_step),
        cmocka_unit_test(long_warmups_are_cut_to_a_tenth),
        cmocka_unit_test(a_share_of_the_run_follows_its_length),
        cmocka_unit_test(impossible_schedules_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
