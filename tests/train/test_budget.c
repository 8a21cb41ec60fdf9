/* The time budget: forecasts and when to stop, from made-up durations. */
/* ctest: quick */
#include "train/budget.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "train/deadline.h"

static void expect_near(double value, double wanted, double tolerance) {
    if (!(fabs(value - wanted) <= tolerance * fabs(wanted))) fail_msg("%.12g is not %.12g", value, wanted);
}

/* One kind of step: an epoch of 100 steps of 1 unit of work. */
static cleat_budget one_kind(double seconds) {
    return (cleat_budget){.seconds = seconds, .reserve = 0.05, .n_kinds = 1, .epoch_work = {100}};
}

static const cleat_schedule_shape forty_epochs = {.steps_per_epoch = 100, .epochs = 40, .min_epochs = 1};

static void measure(cleat_budget *budget, size_t kind, double work, double seconds) {
    cleat_budget_queue(budget, kind, work);
    cleat_budget_done(budget, seconds);
}

/* Three warm-up steps, and eight of `seconds` each. */
static void measure_evenly(cleat_budget *budget, double seconds) {
    for (int i = 0; i < 11; ++i) measure(budget, 0, 1, i < 3 ? 10 * seconds : seconds);
}

static cleat_time_forecast forecast(const cleat_budget *budget, const cleat_schedule_shape *shape, int64_t steps,
                                    double used) {
    cleat_time_forecast made;
    cleat_budget_forecast(budget, shape, steps, used, &made);
    return made;
}

static void nothing_is_known_at_first(void **state) {
    (void)state;
    cleat_budget budget = one_kind(0);
    assert_true(cleat_budget_step_seconds(&budget, 0, 1) == 0);
    assert_false(cleat_budget_is_measured(&budget, false));
    assert_false(cleat_budget_is_measured(&budget, true));
    assert_false(cleat_budget_must_stop(&budget, 1e9, 0, 1, true)); /* no budget is set */
    cleat_budget_done(&budget, 5);                                  /* nothing was queued */
    assert_true(cleat_budget_step_seconds(&budget, 0, 1) == 0);
}

static void eight_steps_behind_the_warm_up_are_enough(void **state) {
    (void)state;
    cleat_budget budget = one_kind(0);
    for (int i = 0; i < 11; ++i) {
        assert_false(cleat_budget_is_measured(&budget, false));
        assert_int_equal(cleat_budget_is_measured(&budget, true), i >= 6);
        measure(&budget, 0, 1, 0.5);
    }
    assert_true(cleat_budget_is_measured(&budget, false));
}

/* With a clock that is coarse relative to a step, more steps are measured. */
static void fast_steps_are_measured_for_longer(void **state) {
    (void)state;
    cleat_budget budget = one_kind(0);
    for (int i = 0; i < 3 + 64; ++i) {
        assert_false(cleat_budget_is_measured(&budget, false));
        assert_int_equal(cleat_budget_is_measured(&budget, true), i >= 3 + 8);
        measure(&budget, 0, 1, 0.001);
    }
    assert_true(cleat_budget_is_measured(&budget, false));
    budget = one_kind(0);
    for (int i = 0; i < 3 + 21; ++i) measure(&budget, 0, 1, i < 3 ? 100 : 0.048);
    assert_true(cleat_budget_is_measured(&budget, false));
}

/* A step that compiles takes a hundred times as long as the others. */
static void slow_first_steps_do_not_count(void **state) {
    (void)state;
    cleat_budget budget = one_kind(0);
    measure(&budget, 0, 1, 200);
    expect_near(cleat_budget_step_seconds(&budget, 0, 1), 200, 1e-12); /* better than no estimate */
    measure(&budget, 0, 1, 4);
    expect_near(cleat_budget_step_seconds(&budget, 0, 1), 4, 1e-12);
    measure(&budget, 0, 1, 3);
    for (int i = 0; i < 8; ++i) measure(&budget, 0, 1, 2);
    expect_near(cleat_budget_step_seconds(&budget, 0, 1), 2, 1e-12);
}

static void noise_and_hiccups_do_not_count(void **state) {
    (void)state;
    cleat_budget budget = one_kind(0);
    measure_evenly(&budget, 2);
    for (int i = 0; i < 32; ++i) measure(&budget, 0, 1, i % 8 == 0 ? 200 : 2 + 0.1 * ((i % 5) - 2));
    expect_near(cleat_budget_step_seconds(&budget, 0, 1), 2, 0.06);
}

/* Kinds of steps: 60 and 38 steps of 1 and 4 units at 1 and 0.5 s per unit; 2 steps of 10 units never occur. */
static void kinds_are_measured_apart(void **state) {
    (void)state;
    cleat_budget budget = {.n_kinds = 3, .epoch_work = {60, 152, 20}};
    for (int i = 0; i < 20; ++i) {
        measure(&budget, 0, 1, i == 0 ? 50 : 1);
        assert_false(cleat_budget_is_measured(&budget, false)); /* a quarter of the work */
    }
    expect_near(cleat_budget_step_seconds(&budget, 1, 4), 4, 1e-12); /* estimated from the other kinds */
    measure(&budget, 1, 4, 80);                                      /* warms up */
    expect_near(cleat_budget_step_seconds(&budget, 1, 4), 4, 1e-12);
    assert_false(cleat_budget_is_measured(&budget, false));
    measure(&budget, 1, 4, 2);
    assert_true(cleat_budget_is_measured(&budget, false));
    expect_near(cleat_budget_step_seconds(&budget, 0, 1), 1, 1e-12);
    expect_near(cleat_budget_step_seconds(&budget, 1, 4), 2, 1e-12);
    double common = (60 * 1 + 152 * 0.5) / (60 + 152);
    expect_near(cleat_budget_step_seconds(&budget, 2, 10), 10 * common, 1e-12);
    cleat_schedule_shape shape = {.steps_per_epoch = 100, .epochs = 1, .min_epochs = 1};
    expect_near(forecast(&budget, &shape, 0, 0).epoch_seconds, 60 + 76 + 20 * common, 1e-12);
}

static void run_is_its_parts(void **state) {
    (void)state;
    cleat_budget budget = one_kind(0);
    cleat_schedule_shape shape = forty_epochs;
    budget.start_seconds = 7;
    budget.checkpoint.guess = 3;
    budget.evaluation_share = 0.3;
    measure_evenly(&budget, 2);
    cleat_time_forecast made = forecast(&budget, &shape, 11, 29);
    expect_near(made.step_seconds, 2, 1e-12);
    expect_near(made.epoch_seconds, 200, 1e-12);
    expect_near(made.run_seconds, 7 + 40 * 200 + 3, 1e-12); /* the last checkpoint */
    expect_near(made.end_seconds, 29 + 40 * 200 - 11 * 2 + 3, 1e-12);
    assert_true(made.fits && made.epochs == 40 && made.runs == 0);
    shape.evaluates = true;
    shape.evaluate_every = 3; /* after 3, 6, ... 39, and 40: each may be the best so far, and saved */
    made = forecast(&budget, &shape, 0, 0);
    expect_near(made.run_seconds, 7 + 8000 + 14 * (0.3 * 200 / 3) + 14 * 3, 1e-12);
    cleat_event_stats_add(&budget.evaluation, 40);
    cleat_event_stats_add(&budget.evaluation, 20);
    cleat_event_stats_add(&budget.checkpoint, 5);
    expect_near(cleat_budget_evaluation_seconds(&budget), 30, 1e-12);
    expect_near(cleat_budget_checkpoint_seconds(&budget), 5, 1e-12);
    shape.checkpoint_every = 1;
    made = forecast(&budget, &shape, 0, 0);
    expect_near(made.run_seconds, 7 + 8000 + 14 * 30 + 40 * 5, 1e-12);
    shape.checkpoint_minutes = 10;
    made = forecast(&budget, &shape, 0, 0);
    expect_near(made.run_seconds, 7 + 8620 + floor(8620 / 600.0) * 5, 1e-12);
    /* After 3 epochs, their evaluations and checkpoints are no longer part of the forecast. */
    shape.checkpoint_minutes = 0;
    made = forecast(&budget, &shape, 300, 700);
    expect_near(made.end_seconds, 700 + 37 * 200 + 13 * 30 + 37 * 5, 1e-12);
}

/* The number of runs that fit 30 h with the reserve. */
static void runs_in_a_budget(void **state) {
    (void)state;
    cleat_budget budget = one_kind(30 * 3600);
    measure_evenly(&budget, 6.0);
    cleat_time_forecast made = forecast(&budget, &forty_epochs, 11, 300);
    expect_near(made.run_seconds, 24000, 1e-12);
    assert_true(made.fits);
    assert_int_equal(made.runs, 4); /* 28.5 h / 6.67 h */
    assert_int_equal(made.epochs, 40);
    budget.reserve = 0;
    assert_int_equal(forecast(&budget, &forty_epochs, 11, 300).runs, 4); /* 4.5 */
    budget.seconds = 24000;
    assert_int_equal(forecast(&budget, &forty_epochs, 0, 0).runs, 1);
    assert_true(forecast(&budget, &forty_epochs, 0, 0).fits);
    assert_false(forecast(&budget, &forty_epochs, 0, 1).fits);
}

static void schedule_is_shortened_to_what_fits(void **state) {
    (void)state;
    cleat_budget budget = one_kind(5000);
    cleat_schedule_shape shape = forty_epochs;
    shape.evaluates = true;
    shape.evaluate_every = 1;
    shape.min_epochs = 3;
    measure_evenly(&budget, 2);
    cleat_event_stats_add(&budget.evaluation, 9);
    cleat_event_stats_add(&budget.checkpoint, 1);
    double used = 60, left = 5000 * 0.95 - used + 11 * 2;
    cleat_time_forecast made = forecast(&budget, &shape, 11, used);
    assert_false(made.fits);
    assert_int_equal(made.epochs, (int64_t)(left / 210));
    shape.epochs = made.epochs; /* the maximum that fits */
    assert_true(forecast(&budget, &shape, 11, used).fits);
    assert_int_equal(forecast(&budget, &shape, 11, used).epochs, shape.epochs);
    ++shape.epochs;
    assert_false(forecast(&budget, &shape, 11, used).fits);
}

static void schedule_keeps_its_warm_up(void **state) {
    (void)state;
    cleat_budget budget = one_kind(1000);
    cleat_schedule_shape shape = forty_epochs;
    measure_evenly(&budget, 2); /* 4 epochs fit */
    shape.min_epochs = 4;
    assert_int_equal(forecast(&budget, &shape, 11, 30).epochs, 4);
    shape.min_epochs = 5;
    assert_int_equal(forecast(&budget, &shape, 11, 30).epochs, 40);
    assert_false(forecast(&budget, &shape, 11, 30).fits);
    /* Less than one epoch; a budget below one step; an exhausted budget; completed epochs. */
    shape.min_epochs = 1;
    budget.seconds = 150;
    assert_int_equal(forecast(&budget, &shape, 11, 30).epochs, 40);
    assert_int_equal(forecast(&budget, &shape, 11, 30).runs, 0);
    budget.seconds = 0.5;
    assert_int_equal(forecast(&budget, &shape, 11, 30).epochs, 40);
    budget.seconds = 1000;
    assert_int_equal(forecast(&budget, &shape, 500, 990).epochs, 40);
    assert_int_equal(forecast(&budget, &shape, 450, 840).epochs, 5); /* the fifth is in progress */
}

static void run_stops_before_the_budget_is_over(void **state) {
    (void)state;
    cleat_budget budget = one_kind(1000);
    measure_evenly(&budget, 2);
    cleat_event_stats_add(&budget.checkpoint, 5);
    cleat_event_stats_add(&budget.checkpoint, 3);
    assert_false(cleat_budget_must_stop(&budget, 992.9, 0, 1, false));
    assert_true(cleat_budget_must_stop(&budget, 993.1, 0, 1, false));
    assert_true(cleat_budget_must_stop(&budget, 992.9, 0, 2, false)); /* a larger global batch */
    /* An evaluation follows the last step of an epoch. */
    cleat_event_stats_add(&budget.evaluation, 50);
    cleat_event_stats_add(&budget.evaluation, 20);
    assert_true(cleat_budget_must_stop(&budget, 950, 0, 1, true));
    assert_false(cleat_budget_must_stop(&budget, 942.9, 0, 1, true));
    /* Queued work is finished first. */
    for (int i = 0; i < 10; ++i) cleat_budget_queue(&budget, 0, 1);
    assert_true(cleat_budget_must_stop(&budget, 973.1, 0, 1, false));
    assert_false(cleat_budget_must_stop(&budget, 972.9, 0, 1, false));
    cleat_budget_done(&budget, 20);
    assert_false(cleat_budget_must_stop(&budget, 992.9, 0, 1, false));
}

/* A session ends before the budget, or the budget in the middle of a session. */
static void sessions_end_too(void **state) {
    (void)state;
    cleat_budget budget = one_kind(3000);
    measure_evenly(&budget, 2);
    budget.session = 1000;
    budget.earlier = 1200;
    expect_near(cleat_budget_limit(&budget), 2200, 1e-12);
    assert_false(cleat_budget_must_stop(&budget, 2197.9, 0, 1, false));
    assert_true(cleat_budget_must_stop(&budget, 2198.1, 0, 1, false));
    budget.earlier = 2500;
    expect_near(cleat_budget_limit(&budget), 3000, 1e-12);
    assert_false(cleat_budget_must_stop(&budget, 2997.9, 0, 1, false));
    assert_true(cleat_budget_must_stop(&budget, 2998.1, 0, 1, false));
    budget.seconds = 0; /* sessions only */
    expect_near(cleat_budget_limit(&budget), 3500, 1e-12);
    budget.session = 0;
    assert_true(cleat_budget_limit(&budget) == 0);
}

static void advice_names_what_ended(void **state) {
    (void)state;
    cleat_deadline deadline = {.budget = {.seconds = 3000, .session = 1000, .earlier = 1200}};
    assert_string_equal(cleat_deadline_advice(&deadline, true), " in the next session");
    assert_non_null(strstr(cleat_deadline_advice(&deadline, false), "longer sessions"));
    deadline.budget.earlier = 2500;
    assert_string_equal(cleat_deadline_advice(&deadline, true), " and a larger --time-budget");
    deadline.budget.seconds = 0;
    assert_string_equal(cleat_deadline_advice(&deadline, true), " in the next session");
    deadline.budget = (cleat_budget){.seconds = 3000};
    assert_string_equal(cleat_deadline_advice(&deadline, false), " and a larger --time-budget");
}

/* 40 epochs of 200 seconds. Each session loses 50 seconds at its start and 30 at its end. */
static void forecast_counts_sessions(void **state) {
    (void)state;
    cleat_budget budget = one_kind(0);
    measure_evenly(&budget, 2);
    assert_int_equal(forecast(&budget, &forty_epochs, 11, 72).sessions, 0);
    budget.session = 2000;
    budget.start_seconds = 50;
    budget.checkpoint.guess = 30;
    cleat_time_forecast made = forecast(&budget, &forty_epochs, 0, 50);
    assert_int_equal(made.sessions, (int)ceil((made.end_seconds - 2000) / (2000 - 80)));
    assert_int_equal(made.epochs, 40);
    budget.seconds = 4000; /* all sessions together determine the schedule */
    made = forecast(&budget, &forty_epochs, 0, 50);
    assert_in_range(made.epochs, 17, 19);
    assert_int_equal(made.sessions, 2);
    budget.session = 60; /* too short for anything */
    assert_int_equal(forecast(&budget, &forty_epochs, 0, 50).sessions, 0);
}

/* Recent steps that took three times as long affect the forecast until enough newer ones follow. */
static void slow_steps_are_reckoned_with(void **state) {
    (void)state;
    cleat_budget budget = one_kind(1000);
    measure_evenly(&budget, 2);
    expect_near(cleat_budget_needs(&budget, 0, 1, false), 2, 1e-12);
    for (int i = 0; i < 10; ++i) cleat_budget_queue(&budget, 0, 1);
    cleat_budget_done(&budget, 60);
    expect_near(cleat_budget_needs(&budget, 0, 1, false), 6, 1e-12);
    expect_near(cleat_budget_step_seconds(&budget, 0, 1), 2, 1e-12);
    for (int i = 0; i < CLEAT_BUDGET_RECENT; ++i) measure(&budget, 0, 1, 2);
    expect_near(cleat_budget_needs(&budget, 0, 1, false), 2, 1e-12);
}

static void budget_below_a_step(void **state) {
    (void)state;
    cleat_budget budget = one_kind(1);
    assert_false(cleat_budget_must_stop(&budget, 0.9, 0, 1, false)); /* nothing has been measured */
    budget.checkpoint.guess = 0.2;
    assert_true(cleat_budget_must_stop(&budget, 0.9, 0, 1, false));
    budget.checkpoint.guess = 0;
    measure(&budget, 0, 1, 3);
    assert_true(cleat_budget_must_stop(&budget, 0, 0, 1, false));
    assert_true(cleat_budget_must_stop(&budget, 3.9, 0, 1, false));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_known_at_first),
        cmocka_unit_test(eight_steps_behind_the_warm_up_are_enough),
        cmocka_unit_test(fast_steps_are_measured_for_longer),
        cmocka_unit_test(slow_first_steps_do_not_count),
        cmocka_unit_test(noise_and_hiccups_do_not_count),
        cmocka_unit_test(kinds_are_measured_apart),
        cmocka_unit_test(run_is_its_parts),
        cmocka_unit_test(runs_in_a_budget),
        cmocka_unit_test(schedule_is_shortened_to_what_fits),
        cmocka_unit_test(schedule_keeps_its_warm_up),
        cmocka_unit_test(run_stops_before_the_budget_is_over),
        cmocka_unit_test(slow_steps_are_reckoned_with),
        cmocka_unit_test(sessions_end_too),
        cmocka_unit_test(advice_names_what_ended),
        cmocka_unit_test(forecast_counts_sessions),
        cmocka_unit_test(budget_below_a_step),
    };
    return cmocka_run_group_tests_name("budget", tests, NULL, NULL);
}
